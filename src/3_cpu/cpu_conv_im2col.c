/* Convolution (cpu_conv.h) through im2col panels: any float dtype in all three directions, and
   float32 if no other algorithm pays. float16 and bfloat16 are converted to float32 when a tile
   or panel is filled. float64 is not converted.

     forward           w (outs x taps)          * panel of x  (taps x windows)  = y
     backward data     w (taps x outs)          * panel of dy (outs x windows)  = sums for the tile
     backward weights  patches (taps x windows) * panel of dy (windows x outs)  = dw (taps x outs)
   */
#include "3_cpu/cpu_conv.h"

static void dvti_conv_copy_patches(const dvti_conv *p, void *dst, int64_t dst_k, const void *src,
                                   const int64_t *at, int64_t taps, int64_t count) {
    int64_t k;
    if (p->dtype != DVT_F64)
        p->kernels->gather((float *)dst, dst_k, (const float *)src, at, taps, count);
    else
        for (k = 0; k < taps; k++)
            memcpy((double *)dst + k * dst_k, (const double *)src + at[k],
                   (size_t)count * sizeof(double));
}

/* Copies the windows from `column` on to a panel: one row per tap. */
static void dvti_conv_im2col(const dvti_conv *p, const dvti_conv_block *block, int64_t column,
                             int64_t count, int64_t taps, int64_t first, char *panel,
                             int64_t panel_row) {
    int64_t start, run;
    for (; count > 0; column += run, count -= run) {
        run = dvti_conv_run(p, block, column, count, &start);
        dvti_conv_copy_patches(p, panel, panel_row, dvti_conv_at(p, block->tile, start),
                               p->at + first, taps, run);
        panel = dvti_conv_at(p, panel, run);
    }
}

/* ---- forward ---- */
DVTI_FN void dvti_conv_put_row(const dvti_conv *p, char *y, int64_t count, const void *sums) {
    if (p->size == p->element)
        memcpy(y, sums, (size_t)(count * p->size));
    else
        p->simd->store_row(y, p->dtype, count, (const float *)sums);
}

/* Writes the sums of some columns to the result, converted to its dtype. `row` is the channel
   stride of the sums. */
static void dvti_conv_put(const dvti_conv_output *t, int64_t column, int64_t cols, char *sums,
                          int64_t row) {
    const dvti_conv *p = t->p;
    char *y = (char *)p->launch->out[0].data;
    int64_t each = t->block->rows * p->ow, count, o;
    for (; cols > 0; cols -= count, column += count, sums = dvti_conv_at(p, sums, count)) {
        count = DVTI_MIN(cols, each - column % each);
        for (o = 0; o < t->outs; o++)
            dvti_conv_put_row(p, y + dvti_conv_pixel(p, t->block, t->o + o, column) * p->size,
                              count, dvti_conv_at(p, sums, o * row));
    }
}

static void dvti_conv_forward_panel(const dvti_conv_output *t, int64_t column, int64_t cols,
                                    const int64_t *row_at) {
    const dvti_conv *p = t->p;
    const dvti_conv_direct *direct = &p->u.direct;
    const int64_t each = t->block->rows * p->ow, steps = dvti_conv_cuts(p->taps, p->depth);
    const bool in_place = p->size == p->element && column / each == (column + cols - 1) / each;
    char *panel = (char *)t->area + direct->panel_at, *sums = (char *)t->area + direct->sums_at;
    int64_t k;
    dvti_product q;
    memset(&q, 0, sizeof q);
    q.rows = t->outs;
    q.cols = cols;
    q.a_row = p->taps;
    q.a_k = 1;
    q.b = panel;
    q.b_k = row_at;
    q.b_panel = p->gemm->width;
    q.c = in_place
              ? dvti_conv_at(p, p->launch->out[0].data, dvti_conv_pixel(p, t->block, t->o, column))
              : sums;
    q.c_row = in_place ? p->pixels : DVTI_CONV_COLUMNS;
    q.start = p->bias ? dvti_conv_at(p, p->bias, t->o) : (const void *)&dvti_conv_zero;
    q.start_row = p->bias ? 1 : 0;
    for (k = 0; k < p->taps; k += q.depth) {
        q.depth = DVTI_MIN(dvti_conv_cuts(p->taps, steps), p->taps - k);
        dvti_conv_im2col(p, t->block, column, cols, q.depth, k, panel, direct->panel_row);
        q.a = dvti_conv_at(p, p->weight, t->o * p->taps + k);
        p->gemm->multiply(&q);
        q.start = NULL;
    }
    if (!in_place)
        dvti_conv_put(t, column, cols, sums, DVTI_CONV_COLUMNS);
}

DVTI_FN void dvti_conv_im2col_forward(const dvti_conv_output *t) {
    const int64_t width = t->p->gemm->width, columns = t->block->columns;
    int64_t row_at[DVTI_CONV_DEPTH], column, k;
    for (k = 0; k < DVTI_MIN(t->p->taps, t->p->depth); k++)
        row_at[k] = k * t->p->u.direct.panel_row;
    for (column = 0; column < columns; column += width)
        dvti_conv_forward_panel(t, column, DVTI_MIN(width, columns - column), row_at);
}

/* ---- backward data ---- */
static void dvti_conv_add_patches(const dvti_conv *p, char *dst, const char *src, int64_t channels,
                                  int64_t count) {
    int64_t k, i;
    if (p->dtype != DVT_F64)
        p->kernels->scatter((float *)(void *)dst, p->at, (const float *)(const void *)src,
                            DVTI_CONV_COLUMNS, p->kernel, channels, count);
    else
        for (k = 0; k < channels * p->kernel; k++) {
            const double *from = (const double *)(const void *)src + k * DVTI_CONV_COLUMNS;
            double *to = (double *)(void *)dst + p->at[k];
            for (i = 0; i < count; i++)
                to[i] += from[i];
        }
}

/* Computes the gradient of patches, about DVTI_CONV_ROWS taps of a panel at a time, and adds it to
   the tile. Panels, tiles and the order of additions are the same on every ISA target. */
static void dvti_conv_data_panel(const dvti_conv *p, const dvti_conv_block *block, int64_t group,
                                 int64_t channel, int64_t channels, int64_t column, void *area) {
    const int64_t width = p->gemm->width, cols = DVTI_MIN(DVTI_CONV_COLUMNS, p->pixels - column);
    const int64_t tile = DVTI_MAX(1, DVTI_CONV_ROWS / p->kernel);
    char *panel = (char *)area + p->u.direct.panel_at, *sums = (char *)area + p->u.direct.sums_at;
    const char *dy = (const char *)p->launch->in[0].data +
                     ((block->image * p->o + group * p->og) * p->pixels + column) * p->size;
    int64_t row_at[DVTI_CONV_DEPTH], c, k, j, start, run;
    dvti_product q;
    memset(&q, 0, sizeof q);
    for (j = 0; j < cols; j += width)
        p->gemm->copy(dvti_conv_at(p, panel, j * p->og), width, dy + j * p->size, p->dtype,
                      p->pixels, p->og, DVTI_MIN(width, cols - j));
    for (k = 0; k < DVTI_MIN(p->og, p->depth); k++)
        row_at[k] = k * width;
    q.cols = cols;
    q.a_row = p->weight_row;
    q.a_k = 1;
    q.b_k = row_at;
    q.b_panel = p->og * width;
    q.c = sums;
    q.c_row = DVTI_CONV_COLUMNS;
    for (c = 0; c < channels; c += tile) {
        const int64_t count = DVTI_MIN(tile, channels - c);
        const int64_t row = group * p->taps + (channel + c) * p->kernel;
        q.rows = count * p->kernel;
        q.start = &dvti_conv_zero;
        for (k = 0; k < p->og; k += p->depth) {
            q.depth = DVTI_MIN(p->depth, p->og - k);
            q.a = dvti_conv_at(p, p->weight, row * p->weight_row + k);
            q.b = dvti_conv_at(p, panel, k * width);
            p->gemm->multiply(&q);
            q.start = NULL;
        }
        for (j = 0; j < cols; j += run) {
            run = dvti_conv_run(p, block, column + j, cols - j, &start);
            dvti_conv_add_patches(p, dvti_conv_at(p, block->tile, c * p->tile.plane + start),
                                  dvti_conv_at(p, sums, j), count, run);
        }
    }
}

DVTI_FN void dvti_conv_col2im(const dvti_conv *p, const dvti_conv_block *block, int64_t group,
                              int64_t channel, int64_t channels, void *area) {
    int64_t column;
    for (column = 0; column < p->pixels; column += DVTI_CONV_COLUMNS)
        dvti_conv_data_panel(p, block, group, channel, channels, column, area);
}

/* ---- backward weights ---- */
/* Sets B of a product: `count` columns of dy, transposed, in panels. One output channel without
   conversion stays in place, since rows of B may start anywhere. */
static void dvti_conv_set_dy(const dvti_conv_sums *s, const dvti_conv_block *block, int64_t column,
                             int64_t count, int64_t *row_at, dvti_product *q) {
    const dvti_conv *p = s->p;
    const int64_t width = p->gemm->width, each = block->rows * p->ow;
    const int64_t first = dvti_conv_pixel(p, block, s->group * p->og + s->o, column);
    const bool in_place = s->outs == 1 && p->size == p->element;
    const char *dy = (const char *)p->launch->in[1].data;
    char *panel = (char *)s->area + p->u.direct.panel_at;
    int64_t o, k, i, run, at;
    q->b = in_place ? dy + first * p->size : panel;
    q->b_k = row_at;
    q->b_panel = count * width;
    for (k = 0; k < count; k += run) {
        run = DVTI_MIN(count - k, each - (column + k) % each);
        at = dvti_conv_pixel(p, block, s->group * p->og + s->o, column + k);
        for (i = 0; i < run; i++)
            row_at[k + i] = in_place ? at - first + i : (k + i) * width;
        for (o = 0; o < s->outs && !in_place; o += width)
            p->gemm->transpose(dvti_conv_at(p, panel, o * count + k * width), width,
                               dy + (at + o * p->pixels) * p->size, p->dtype, p->pixels, run,
                               DVTI_MIN(width, s->outs - o));
    }
}

/* Adds some columns of a block: the product of patches, one row per tap, and dy transposed. */
static void dvti_conv_weights_panel(dvti_conv_sums *s, const dvti_conv_block *block, int64_t column,
                                    int64_t count) {
    const dvti_conv *p = s->p;
    const int64_t row = p->u.direct.panel_row;
    char *patches = (char *)s->area + p->u.direct.patches_at;
    int64_t row_at[DVTI_CONV_DEPTH];
    dvti_product q;
    memset(&q, 0, sizeof q);
    q.rows = s->channels * p->kernel;
    q.cols = s->outs;
    q.depth = count;
    dvti_conv_im2col(p, block, column, count, q.rows, 0, patches, row);
    dvti_conv_set_dy(s, block, column, count, row_at, &q);
    q.a = patches;
    q.a_row = row;
    q.a_k = 1;
    q.c = s->to;
    q.c_row = p->og;
    q.start = s->first ? &dvti_conv_zero : NULL;
    p->gemm->multiply(&q);
    s->first = false;
}

DVTI_FN void dvti_conv_im2col_weights(dvti_conv_sums *s, const dvti_conv_block *block) {
    int64_t column;
    for (column = 0; column < block->columns; column += DVTI_CONV_DEPTH)
        dvti_conv_weights_panel(s, block, column,
                                DVTI_MIN(DVTI_CONV_DEPTH, block->columns - column));
}
