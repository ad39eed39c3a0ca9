/* Convolution (cpu_conv.h): the tasks of forward and backward data, and the algorithms without
   im2col panels. Pointwise and shifted products read the tile, depthwise sums too, and shift-add
   products add to it. */
#include "3_cpu/cpu_conv.h"

DVTI_FN int64_t dvti_conv_groups(const dvti_conv *p, int64_t *task, int64_t *end) {
    const int64_t first = *task % p->group_blocks * p->groups_per_task;
    *end = DVTI_MIN(first + p->groups_per_task, p->groups);
    *task /= p->group_blocks;
    return first;
}

/* ---- forward: pointwise and shifted ---- */
/* Multiplies the weights by a tile of some input channels, one product per image. Its columns are
   all windows of the image's block. Later channels add to the result. */
static void dvti_conv_multiply_tile(const dvti_conv_output *t, int64_t channel, int64_t channels) {
    const dvti_conv *p = t->p;
    const int64_t columns = t->block->rows * p->ow;
    dvti_product q;
    int64_t image;
    memset(&q, 0, sizeof q);
    q.rows = t->outs;
    q.cols = columns;
    q.depth = channels * p->kernel;
    q.a = (const float *)p->weight + t->o * p->taps + channel * p->kernel;
    q.a_row = p->taps;
    q.a_k = 1;
    q.b_k = p->at;
    q.b_panel = p->gemm->width;
    q.c_row = p->pixels;
    if (channel == 0) {
        q.start = p->bias ? dvti_conv_at(p, p->bias, t->o) : (const void *)&dvti_conv_zero;
        q.start_row = p->bias ? 1 : 0;
    }
    for (image = 0; image < t->block->images; image++) {
        q.b = dvti_conv_at(p, t->block->tile, image * t->block->image_step);
        q.c = (float *)p->launch->out[0].data + dvti_conv_pixel(p, t->block, t->o, image * columns);
        p->gemm->multiply(&q);
    }
}

/* ---- forward: depthwise ---- */
/* Sums a channel's windows in registers, without patches or a product. */
static void dvti_conv_depthwise_forward(const dvti_conv_output *t) {
    const dvti_conv *p = t->p;
    const dvti_conv_block *block = t->block;
    dvti_conv_plane plane = dvti_conv_plane_of(p, block);
    int64_t image;
    for (image = 0; image < block->images; image++, plane.src += block->image_step)
        p->kernels->filter(&plane,
                           (float *)p->launch->out[0].data +
                               dvti_conv_pixel(p, block, t->o, image * block->rows * p->ow),
                           (const float *)p->weight + t->o * p->taps,
                           p->bias ? ((const float *)p->bias)[t->o] : 0);
}

/* ---- forward: the tasks of all algorithms but Winograd ---- */
/* Applies relu to the results of a task. If a block has all rows, its channels are contiguous. */
static void dvti_conv_relu(const dvti_conv_output *t) {
    const dvti_conv *p = t->p;
    const int64_t each = t->block->rows * p->ow;
    const bool joined = each == p->pixels;
    int64_t image;
    for (image = 0; image < t->block->images; image++)
        dvti_epilogue_rows(
            p->simd,
            (float *)p->launch->out[0].data + dvti_conv_pixel(p, t->block, t->o, image * each),
            p->pixels, joined ? 1 : t->outs, joined ? t->outs * each : each, NULL, true);
}

DVTI_FN void dvti_conv_forward(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const bool depthwise = p->algorithm == DVTI_CONV_DEPTHWISE;
    const bool im2col = p->algorithm == DVTI_CONV_DIRECT && p->u.direct.patches == DVTI_CONV_IM2COL;
    int64_t end, group = dvti_conv_groups(p, &task, &end), channel, channels;
    dvti_conv_block block = dvti_conv_block_of(p, 0, p->n, task / p->out_blocks);
    dvti_conv_output t;
    t.p = p;
    t.block = &block;
    t.area = area;
    for (; group < end; group++) {
        t.o = task % p->out_blocks * p->outs;
        t.outs = DVTI_MIN(p->outs, p->og - t.o);
        t.o += group * p->og;
        for (channel = 0; channel < p->cg; channel += channels) {
            channels = DVTI_MIN(p->ins, p->cg - channel);
            dvti_conv_tile_load(p, &block, group * p->cg + channel, channels, (char *)area);
            if (!depthwise && !im2col)
                dvti_conv_multiply_tile(&t, channel, channels);
        }
        if (depthwise)
            dvti_conv_depthwise_forward(&t);
        else if (im2col)
            dvti_conv_im2col_forward(&t);
        if (p->relu)
            dvti_conv_relu(&t);
    }
}

/* ---- backward data: shift-add ---- */
/* Adds one product per tap to the tile: the part of dx that all windows contribute through that
   tap. dy gets the same gaps as the tile's rows, filled with zeros. The columns of a product are
   then adjacent in both:

     dy, windows of 3 x 3      a b c 0 0  d e f 0 0  g h i
     tile, rows of 5           . . . . .  . . . . .  . . . . .  . . . . .  . . . . .
                                           ^
                                           tap (1, 1) adds dy from element 1 * 5 + 1 on */
static void dvti_conv_shift_add(const dvti_conv *p, const dvti_conv_block *block, int64_t group,
                                int64_t channel, int64_t channels, void *area) {
    const int64_t step = p->tile.row_step * p->tile.pitch, dy_row = p->u.direct.dy_row;
    const float *y =
        (const float *)p->launch->in[0].data + (block->image * p->o + group * p->og) * p->pixels;
    float *dy = dvti_conv_floats(area, p->u.direct.panel_at);
    int64_t at[DVTI_CONV_DEPTH], row, tap, k;
    dvti_product q;
    memset(&q, 0, sizeof q);
    for (row = 0; row < p->oh; row++)
        p->kernels->copy_rows(dy + row * step, dy_row, y + row * p->ow, p->pixels, p->og, p->ow);
    for (k = 0; k < DVTI_MIN(p->og, p->depth); k++)
        at[k] = k * dy_row;
    q.rows = channels;
    q.cols = (p->oh - 1) * step + p->ow;
    q.a_row = p->kernel * p->weight_row;
    q.a_k = 1;
    q.b_k = at;
    q.b_panel = p->gemm->width;
    q.c_row = p->tile.plane;
    for (tap = 0; tap < p->kernel; tap++)
        for (k = 0; k < p->og; k += p->depth) {
            q.depth = DVTI_MIN(p->depth, p->og - k);
            q.a = (const float *)p->weight +
                  (group * p->taps + channel * p->kernel + tap) * p->weight_row + k;
            q.b = dy + k * dy_row;
            q.c = dvti_conv_at(p, block->tile, p->at[tap]);
            p->gemm->multiply(&q);
        }
}

/* ---- gradient to data: the tasks ---- */
DVTI_FN void dvti_conv_data(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const bool shift_add = p->u.direct.patches == DVTI_CONV_SHIFT_ADD;
    int64_t end, group = dvti_conv_groups(p, &task, &end);
    const int64_t channel = task % p->in_blocks * p->ins;
    const int64_t channels = DVTI_MIN(p->ins, p->cg - channel);
    const int64_t elements = channels * p->tile.plane + (p->tile.in_place ? 0 : DVTI_CONV_SLACK);
    dvti_conv_block block = dvti_conv_block_of(p, 0, p->n, task / p->in_blocks);
    block.tile = (char *)area;
    if (shift_add)
        memset(dvti_conv_floats(area, p->u.direct.panel_at), 0,
               (size_t)(p->og * p->u.direct.dy_row) * sizeof(float));
    for (; group < end; group++) {
        if (p->tile.in_place)
            block.tile =
                dvti_conv_at(p, p->launch->out[0].data,
                             (block.image * p->c + group * p->cg + channel) * p->tile.plane);
        memset(block.tile, 0, (size_t)(elements * p->element));
        if (shift_add)
            dvti_conv_shift_add(p, &block, group, channel, channels, area);
        else
            dvti_conv_col2im(p, &block, group, channel, channels, area);
        if (!p->tile.in_place)
            dvti_conv_tile_store(p, &block, group * p->cg + channel, channels);
    }
}
