/* Convolution (cpu_conv.h) channel by channel, without patches or a product: sums stay in
   registers.

     forward, for each tap (i, j) of a 3 x 3 kernel:

        tile row i   | a b c d e f g h i j ...
                       [---- lanes ----]           * w[i][0]
                         [---- lanes ----]         * w[i][1]    sum: one vector of y's row
                           [---- lanes ----]       * w[i][2]

     backward weights, for each tap: tile row times dy's row, into 16 lanes

        column j     | 0 1 2 .. 15 | 16 17 .. 31 | ...
        lane         | 0 1 2 .. 15 |  0  1 .. 15 | ...         reduced to one weight at the end */
#include "3_cpu/cpu_conv.h"

DVTI_FN void dvti_conv_depthwise_forward(const dvti_conv_output *t) {
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

/* Adds a block. Lane l sums the columns j with j % 16 == l, in an order that does not depend on
   cuts. */
DVTI_FN void dvti_conv_depthwise_weights(const dvti_conv_sums *s, const dvti_conv_block *block) {
    const dvti_conv *p = s->p;
    dvti_conv_plane plane = dvti_conv_plane_of(p, block);
    plane.taps = s->channels * p->kernel;
    p->kernels->correlate(&plane,
                          (const float *)p->launch->in[1].data +
                              dvti_conv_pixel(p, block, s->group * p->og + s->o, 0),
                          s->outs, dvti_conv_floats(s->area, p->u.depthwise.sums_at));
}

DVTI_FN void dvti_conv_depthwise_reduce(const dvti_conv_sums *s) {
    const dvti_conv *p = s->p;
    const int64_t taps = s->channels * p->kernel;
    const float *sums = dvti_conv_floats(s->area, p->u.depthwise.sums_at);
    int64_t o;
    for (o = 0; o < s->outs; o++)
        p->kernels->reduce_lanes((float *)(void *)s->to + o, p->og, sums + o * taps * 16, taps);
}
