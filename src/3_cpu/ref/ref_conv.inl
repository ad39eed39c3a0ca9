/* The three products of a convolution for one element type. Pasted by ref_conv.c with
     DVTI_T  the element type      DVTI_G(name)  `name` for that type */

/* `count` columns from `column` of the patch matrix's row `tap`: the element of x under that tap of the kernel, 0 in the padding. */
static void DVTI_G(patch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                          int64_t count, DVTI_T *out) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, out += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        const DVTI_T *row = (const DVTI_T *)p->x + walk.row;
        if (!walk.inside) {
            memset(out, 0, (size_t)run * sizeof(DVTI_T));
        } else if (p->stride[1] == 1) {
            int64_t first = DVTI_MIN(DVTI_MAX(-left, 0), run);
            int64_t last = DVTI_MAX(DVTI_MIN(p->w - left, run), first);
            memset(out, 0, (size_t)first * sizeof(DVTI_T));
            if (last > first)
                memcpy(out + first, row + (left + first), (size_t)(last - first) * sizeof(DVTI_T));
            memset(out + last, 0, (size_t)(run - last) * sizeof(DVTI_T));
        } else {
            for (i = 0; i < run; i++) {
                int64_t at = left + i * p->stride[1];
                out[i] = at >= 0 && at < p->w ? row[at] : 0;
            }
        }
    }
}

/* The way back: adds those columns to dx. */
static void DVTI_G(unpatch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                            int64_t count, const DVTI_T *in) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, in += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        DVTI_T *row = (DVTI_T *)p->out + walk.row;
        if (!walk.inside)
            continue;
        for (i = 0; i < run; i++) {
            int64_t at = left + i * p->stride[1];
            if (at >= 0 && at < p->w)
                row[at] += in[i];
        }
    }
}

/* `count` pixels of channel o, over the samples, from y. */
static void DVTI_G(pixels)(const dvti_conv *p, int64_t o, int64_t column, int64_t count,
                           DVTI_T *out) {
    int64_t run;
    for (; count > 0; count -= run, out += run, column += run) {
        int64_t n = column / p->pixels, at = column % p->pixels;
        run = DVTI_MIN(count, p->pixels - at);
        memcpy(out, (const DVTI_T *)p->y + (n * p->o + o) * p->pixels + at,
               (size_t)run * sizeof(DVTI_T));
    }
}

/* Lanes of the last panel that the matrix does not have. */
static void DVTI_G(clear)(void *panels, int64_t width, int64_t lanes, int64_t depth) {
    if (lanes % width)
        memset((DVTI_T *)panels + lanes / width * width * depth, 0,
               (size_t)(width * depth) * sizeof(DVTI_T));
}

/* y (channels x columns) = w (channels x taps) * patches (taps x columns), plus bias. */
static void DVTI_G(forward)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t group = task / (p->row_tiles * p->col_tiles);
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t column = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o);
    int64_t cols = DVTI_MIN(plan->cols, p->columns - column), depth, k, r, run;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    o += group * p->og;
    k = 0;
    do {
        depth = DVTI_MIN(plan->depth, p->taps - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + k, p->dtype, p->taps, 1);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(patch)(p, group, k + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
        k += depth;
    } while (k < p->taps);
    for (r = 0; r < rows; r++) {
        DVTI_T bias = p->bias ? ((const DVTI_T *)p->bias)[o + r] : 0;
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        for (k = 0; k < cols && p->bias; k++)
            row[k] += bias;
        for (k = 0; k < cols; k += run) {
            int64_t n = (column + k) / p->pixels, at = (column + k) % p->pixels;
            run = DVTI_MIN(cols - k, p->pixels - at);
            memcpy((DVTI_T *)p->out + (n * p->o + o + r) * p->pixels + at, row + k,
                   (size_t)run * sizeof(DVTI_T));
        }
    }
}

/* dw (channels x taps) = dy (channels x columns) * patches transposed (columns x taps), for the samples of one part. */
static void DVTI_G(weights)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t tiles = p->row_tiles * p->col_tiles, part = task / (tiles * p->groups);
    int64_t group = task / tiles % p->groups;
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t tap = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o), cols = DVTI_MIN(plan->cols, p->taps - tap);
    int64_t column = dvti_conv_part(p, part) * p->pixels;
    int64_t end = dvti_conv_part(p, part + 1) * p->pixels, depth, r;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    DVTI_T *out = (DVTI_T *)(p->parts > 1 ? p->partial : p->out) + part * p->o * p->taps;
    bool first = true;
    o += group * p->og;
    do {
        depth = DVTI_MIN(plan->depth, end - column);
        DVTI_G(clear)(a, DVTI_GEMM_ROWS, rows, depth);
        for (r = 0; r < rows; r++) {
            DVTI_G(pixels)(p, o + r, column, depth, row);
            dvti_gemm_put_lane(plan, a, DVTI_GEMM_ROWS, r, depth, row);
        }
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < cols; r++) {
            DVTI_G(patch)(p, group, tap + r, column, depth, row);
            dvti_gemm_put_lane(plan, b, plan->width, r, depth, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, first);
        first = false;
        column += depth;
    } while (column < end);
    for (r = 0; r < rows; r++)
        dvti_gemm_row(plan, rows, cols, acc, r, out + (o + r) * p->taps + tap);
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
static void DVTI_G(data_tile)(const dvti_conv *p, int64_t group, int64_t tap, int64_t rows,
                              int64_t column, int64_t cols, void *area) {
    const dvti_gemm *plan = &p->plan;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    int64_t k, depth, r;
    for (k = 0; k < p->og; k += depth) {
        int64_t o = group * p->og + k;
        depth = DVTI_MIN(plan->depth, p->og - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + tap, p->dtype, 1, p->taps);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(pixels)(p, o + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
    }
    for (r = 0; r < rows; r++) {
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        DVTI_G(unpatch)(p, group, tap + r, column, cols, row);
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
    int64_t tap_end = (channel + channels) * kernel, tap, column, n;
    for (n = first; n < last; n++)
        memset((DVTI_T *)p->out + (n * p->c + group * p->cg + channel) * p->h * p->w, 0,
               (size_t)(channels * p->h * p->w) * sizeof(DVTI_T));
    if (p->og == 0)
        return;
    for (column = first * p->pixels; column < last * p->pixels; column += p->plan.cols)
        for (tap = channel * kernel; tap < tap_end; tap += p->plan.rows)
            DVTI_G(data_tile)
    (p, group, tap, DVTI_MIN(p->plan.rows, tap_end - tap), column,
     DVTI_MIN(p->plan.cols, last * p->pixels - column), area);
}
