/* The three products of a convolution for one element type. Pasted by ref_conv.c with
     DVTI_T  the element type      DVTI_G(name)  `name` for that type */

/* One row of the patch matrix: for each column the element of x under that tap of the kernel, 0 in the padding. */
static void DVTI_G(patch)(const dvti_conv *p, const dvti_conv_columns *columns,
                          const dvti_conv_tap *tap, DVTI_T *out) {
    const DVTI_T *x = (const DVTI_T *)p->x;
    int64_t offset = (tap->channel * p->h + tap->up) * p->w + tap->left, i, first, last, run;
    int r;
    for (r = 0; r < columns->n; r++, out += run) {
        const dvti_conv_run *at = &columns->run[r];
        run = at->count;
        if (p->unpadded && p->stride[1] == 1) {
            memcpy(out, x + (at->start + offset), (size_t)run * sizeof(DVTI_T));
            continue;
        }
        dvti_conv_inside(p, at, tap, &first, &last);
        for (i = 0; i < first; i++)
            out[i] = 0;
        if (p->stride[1] == 1 && last > first)
            memcpy(out + first, x + (at->start + offset + first),
                   (size_t)(last - first) * sizeof(DVTI_T));
        else
            for (; i < last; i++)
                out[i] = x[at->start + offset + i * p->stride[1]];
        for (i = last; i < run; i++)
            out[i] = 0;
    }
}

/* The way back: adds those columns to dx. */
static void DVTI_G(unpatch)(const dvti_conv *p, const dvti_conv_columns *columns,
                            const dvti_conv_tap *tap, const DVTI_T *in) {
    DVTI_T *x = (DVTI_T *)p->out;
    int64_t offset = (tap->channel * p->h + tap->up) * p->w + tap->left, i, first, last;
    int r;
    for (r = 0; r < columns->n; r++) {
        const dvti_conv_run *at = &columns->run[r];
        dvti_conv_inside(p, at, tap, &first, &last);
        for (i = first; i < last; i++)
            x[at->start + offset + i * p->stride[1]] += in[i];
        in += at->count;
    }
}

/* The columns of channel o of y. */
static void DVTI_G(pixels)(const dvti_conv *p, const dvti_conv_columns *columns, int64_t o,
                           DVTI_T *out) {
    int64_t n = columns->sample, pixel = columns->pixel, left = columns->count, run;
    for (; left > 0; left -= run, out += run) {
        run = DVTI_MIN(left, p->pixels - pixel);
        memcpy(out, (const DVTI_T *)p->y + (n * p->o + o) * p->pixels + pixel,
               (size_t)run * sizeof(DVTI_T));
        pixel = 0;
        n++;
    }
}

/* Zeros up to a whole panel. */
static void DVTI_G(fill_up)(DVTI_T *row, int64_t count, int64_t end) {
    for (; count < end; count++)
        row[count] = 0;
}

/* A row of the product to y. */
static void DVTI_G(put_pixels)(const dvti_conv *p, const dvti_conv_columns *columns, int64_t o,
                               const DVTI_T *row) {
    int64_t n = columns->sample, pixel = columns->pixel, left = columns->count, run;
    for (; left > 0; left -= run, row += run) {
        run = DVTI_MIN(left, p->pixels - pixel);
        memcpy((DVTI_T *)p->out + (n * p->o + o) * p->pixels + pixel, row,
               (size_t)run * sizeof(DVTI_T));
        pixel = 0;
        n++;
    }
}

/* y (channels x columns) = w (channels x taps) * patches (taps x columns), plus bias. */
static void DVTI_G(forward)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t group = task / (p->row_tiles * p->col_tiles);
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t column = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o);
    int64_t cols = DVTI_MIN(plan->cols, p->columns - column), depth, k = 0, r;
    char *a = (char *)area, *acc = a + plan->acc_at;
    DVTI_T *b = (DVTI_T *)(void *)(a + plan->b_at), *row = (DVTI_T *)(void *)(a + plan->row_at);
    dvti_conv_tap tap = dvti_conv_tap_at(p, group, 0);
    dvti_conv_columns columns;
    dvti_conv_find(p, column, cols, &columns);
    o += group * p->og;
    do {
        depth = DVTI_MIN(plan->depth, p->taps - k);
        dvti_gemm_pack_a(plan, a, rows, depth, (const DVTI_T *)p->weight + o * p->taps + k,
                         p->dtype, p->taps, 1);
        for (r = 0; r < depth; r++, dvti_conv_next_tap(p, &tap)) {
            DVTI_G(patch)(p, &columns, &tap, b + r * plan->ld);
            DVTI_G(fill_up)(b + r * plan->ld, cols, columns.padded);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
        k += depth;
    } while (k < p->taps);
    for (r = 0; r < rows; r++) {
        const DVTI_T *bias = p->bias ? (const DVTI_T *)p->bias + o + r : NULL;
        dvti_gemm_row(plan, rows, cols, acc, r, bias, row);
        DVTI_G(put_pixels)(p, &columns, o + r, row);
    }
}

/* dw (channels x taps) = dy (channels x columns) * patches transposed (columns x taps), for the samples of one part. */
static void DVTI_G(weights)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t tiles = p->row_tiles * p->col_tiles, part = task / (tiles * p->groups);
    int64_t group = task / tiles % p->groups;
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t first_tap = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o),
            cols = DVTI_MIN(plan->cols, p->taps - first_tap);
    int64_t column = dvti_conv_part(p, part) * p->pixels;
    int64_t end = dvti_conv_part(p, part + 1) * p->pixels, depth, r;
    DVTI_T *a = (DVTI_T *)area, *b = (DVTI_T *)(void *)((char *)area + plan->b_at);
    DVTI_T *acc = (DVTI_T *)(void *)((char *)area + plan->acc_at);
    DVTI_T *out = (DVTI_T *)(p->parts > 1 ? p->partial : p->out) + part * p->o * p->taps;
    dvti_conv_columns columns;
    bool first = true;
    o += group * p->og;
    do {
        dvti_conv_tap tap = dvti_conv_tap_at(p, group, first_tap);
        depth = DVTI_MIN(plan->depth, end - column);
        dvti_conv_find(p, column, depth, &columns);
        for (r = 0; r < rows; r++) {
            DVTI_G(pixels)(p, &columns, o + r, a + r * plan->ld);
            DVTI_G(fill_up)(a + r * plan->ld, depth, columns.padded);
        }
        for (r = 0; r < cols; r++, dvti_conv_next_tap(p, &tap)) {
            DVTI_G(patch)(p, &columns, &tap, b + r * plan->ld);
            DVTI_G(fill_up)(b + r * plan->ld, depth, columns.padded);
        }
        dvti_gemm_dots(plan, rows, cols, depth, a, b, acc, first);
        first = false;
        column += depth;
    } while (column < end);
    for (r = 0; r < rows; r++)
        memcpy(out + (o + r) * p->taps + first_tap, acc + r * plan->cols,
               (size_t)cols * sizeof(DVTI_T));
}

static void DVTI_G(sum_parts)(void *user, int64_t begin, int64_t end) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t size = p->o * p->taps, part, i;
    for (i = begin; i < end; i++) {
        DVTI_T sum = ((const DVTI_T *)p->partial)[i];
        for (part = 1; part < p->parts; part++)
            sum += ((const DVTI_T *)p->partial)[part * size + i];
        ((DVTI_T *)p->out)[i] = sum;
    }
}

/* One tile of the patches' gradient (taps x columns) = w transposed * dy, added to dx. */
static void DVTI_G(data_tile)(const dvti_conv *p, int64_t group, int64_t first_tap, int64_t rows,
                              const dvti_conv_columns *columns, void *area) {
    const dvti_gemm *plan = &p->plan;
    char *a = (char *)area, *acc = a + plan->acc_at;
    DVTI_T *b = (DVTI_T *)(void *)(a + plan->b_at), *row = (DVTI_T *)(void *)(a + plan->row_at);
    dvti_conv_tap tap = dvti_conv_tap_at(p, group, first_tap);
    int64_t k, depth, r, cols = columns->count;
    for (k = 0; k < p->og; k += depth) {
        int64_t o = group * p->og + k;
        depth = DVTI_MIN(plan->depth, p->og - k);
        dvti_gemm_pack_a(plan, a, rows, depth, (const DVTI_T *)p->weight + o * p->taps + first_tap,
                         p->dtype, 1, p->taps);
        for (r = 0; r < depth; r++) {
            DVTI_G(pixels)(p, columns, o + r, b + r * plan->ld);
            DVTI_G(fill_up)(b + r * plan->ld, cols, columns->padded);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
    }
    for (r = 0; r < rows; r++, dvti_conv_next_tap(p, &tap)) {
        dvti_gemm_row(plan, rows, cols, acc, r, NULL, row);
        DVTI_G(unpatch)(p, columns, &tap, row);
    }
}

/* dx of some samples and channels, which no other task touches. */
static void DVTI_G(data)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t blocks = (p->cg + p->channels - 1) / p->channels, kernel = p->kh * p->kw;
    int64_t first = task / (blocks * p->groups) * p->samples;
    int64_t last = DVTI_MIN(first + p->samples, p->n), group = task / blocks % p->groups;
    int64_t channel = task % blocks * p->channels;
    int64_t channels = DVTI_MIN(p->channels, p->cg - channel);
    int64_t tap_end = (channel + channels) * kernel, end = last * p->pixels, tap, column, n;
    for (n = first; n < last; n++)
        memset((DVTI_T *)p->out + (n * p->c + group * p->cg + channel) * p->h * p->w, 0,
               (size_t)(channels * p->h * p->w) * sizeof(DVTI_T));
    if (p->og == 0)
        return;
    for (column = first * p->pixels; column < end; column += p->plan.cols) {
        dvti_conv_columns columns;
        dvti_conv_find(p, column, DVTI_MIN(p->plan.cols, end - column), &columns);
        for (tap = channel * kernel; tap < tap_end; tap += p->plan.rows)
            DVTI_G(data_tile)(p, group, tap, DVTI_MIN(p->plan.rows, tap_end - tap), &columns, area);
    }
}
