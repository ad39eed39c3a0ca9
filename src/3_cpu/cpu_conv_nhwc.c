/* Convolution (cpu_conv.h): backward weights from an NHWC tile, in which the channels of a pixel
   are adjacent. The elements that a window reads through a kernel row are then adjacent, too.
   The product dw (outs x taps) = dy (outs x windows) * patches transposed reads them in place:

     tile row i   c0 c1 c2  c0 c1 c2  c0 c1 c2  c0 c1 c2        3 channels, kernel 3 wide, stride 1
                  [------- window 0 --------]                   B's row: kw * channels elements
                            [------- window 1 --------] */
#include "3_cpu/cpu_conv.h"

/* Finds the columns *first..*end - 1 of a block whose windows read the image through row i of the
   kernel. The other windows read only padding. */
static void dvti_conv_valid_columns(const dvti_conv *p, const dvti_conv_block *block, int64_t i,
                                    int64_t *first, int64_t *end) {
    const int64_t up = p->padding[0] - i * p->dilation[0], stride = p->stride[0];
    const int64_t line = block->images * p->ow;
    *first = up > 0 ? dvti_conv_cuts(up, stride) : 0;
    *end = p->h + up > 0 ? (p->h + up - 1) / stride + 1 : 0;
    *first = DVTI_MAX(*first - block->row, 0) * line;
    *end = (DVTI_MIN(*end, block->row + block->rows) - block->row) * line;
}

/* Writes the tile offsets of `count` windows from column `first` on. Columns are ordered by row,
   then by image. */
static void dvti_conv_nhwc_table(const dvti_conv_sums *s, const dvti_conv_block *block,
                                 int64_t first, int64_t count, int64_t *at) {
    const dvti_conv *p = s->p;
    const int64_t line = block->images * p->ow;
    int64_t k;
    for (k = first; k < first + count; k++) {
        const int64_t row = k / line, window = k % line;
        *at++ = window / p->ow * block->image_step +
                (row * p->stride[0] * p->tile.pitch + window % p->ow * p->stride[1]) * s->channels;
    }
}

/* Returns dy of a block and its channel stride in *row. The dy of several images is copied in the
   order of the columns. */
static const float *dvti_conv_nhwc_dy(const dvti_conv_sums *s, const dvti_conv_block *block,
                                      int64_t *row) {
    const dvti_conv *p = s->p;
    const float *dy = (const float *)p->launch->in[1].data +
                      dvti_conv_pixel(p, block, s->group * p->og + s->o, 0);
    float *to = dvti_conv_floats(s->area, p->u.nhwc.dy_at);
    int64_t k;
    *row = p->pixels;
    if (block->images == 1)
        return dy;
    *row = block->columns;
    for (k = 0; k < block->images * block->rows; k++)
        p->kernels->copy_rows(to + k * p->ow, block->columns,
                              dy + k % block->images * p->o * p->pixels + k / block->images * p->ow,
                              p->pixels, s->outs, p->ow);
    return to;
}

/* Adds a block, some columns at a time. Each row of the kernel (each tap, if it is dilated) is one
   product of the windows that read the image through it. */
DVTI_FN void dvti_conv_nhwc_weights(dvti_conv_sums *s, const dvti_conv_block *block) {
    const dvti_conv *p = s->p;
    const int64_t run = p->dilation[1] == 1 ? p->kw : 1;
    int64_t windows[DVTI_CONV_DEPTH], tap, at, depth, first, end;
    const float *dy;
    dvti_product q;
    memset(&q, 0, sizeof q);
    dy = dvti_conv_nhwc_dy(s, block, &q.a_row);
    q.rows = s->outs;
    q.cols = run * s->channels;
    q.a_k = 1;
    q.b_panel = p->gemm->width;
    q.c_row = p->kernel * s->channels;
    for (at = 0; at < block->columns; at += depth) {
        depth = DVTI_MIN(DVTI_CONV_DEPTH, block->columns - at);
        dvti_conv_nhwc_table(s, block, at, depth, windows);
        q.start = s->first ? &dvti_conv_zero : NULL;
        for (tap = 0; tap < p->kernel; tap += run) {
            const int64_t row = tap / p->kw * p->dilation[0], column = tap % p->kw * p->dilation[1];
            dvti_conv_valid_columns(p, block, tap / p->kw, &first, &end);
            first = DVTI_MIN(DVTI_MAX(first - at, 0), depth);
            q.depth = DVTI_MAX(DVTI_MIN(end - at, depth) - first, 0);
            q.a = dy + at + first;
            q.b_k = windows + first;
            q.b = dvti_conv_at(p, block->tile, (row * p->tile.pitch + column) * s->channels);
            q.c = dvti_conv_at(p, s->to, tap * s->channels);
            p->gemm->multiply(&q);
        }
        s->first = false;
    }
}

/* Sums the parts of output channels begin..end - 1 and transposes them to [input
   channel][row][column]. */
DVTI_FN void dvti_conv_nhwc_add_parts(void *user, int64_t begin, int64_t end) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_loop_fn add = p->simd->loop_f32(DVTI_OP_add);
    float *dw = (float *)p->launch->out[0].data;
    int64_t o, channel, channels, part;
    dvti_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.op = DVTI_OP_add;
    loop.step[0] = loop.step[1] = 1;
    for (o = begin; o < end; o++)
        for (channel = 0; channel < p->cg; channel += channels) {
            float *sum = dvti_conv_floats(p->partial, 0) + o / p->og * p->og * p->taps +
                         channel * p->kernel * p->og;
            channels = DVTI_MIN(p->ins, p->cg - channel);
            sum += o % p->og * p->kernel * channels;
            loop.n = p->kernel * channels;
            loop.in[0] = loop.out = sum;
            for (part = 1; part < p->parts; part++) {
                loop.in[1] = sum + part * p->o * p->taps;
                add(&loop);
            }
            p->gemm->transpose_exactly(dw + o * p->taps + channel * p->kernel, p->kernel, sum,
                                       channels, channels, p->kernel);
        }
}
