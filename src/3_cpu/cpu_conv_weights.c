/* Convolution (cpu_conv.h): depthwise backward weights, the tasks of all
   algorithms of backward weights, and the sum of their parts. A part
   sums some of the images:

     images     | 0 1 2 | 3 4 5 | 6 7 8 |
                    |       |       |
     partial     part 0 + part 1 + part 2   =  dw       always added in this order */
#include "3_cpu/cpu_conv.h"

/* ---- depthwise ---- */
/* Adds a block: each of 16 lanes sums columns of its own, in an order that no cut changes. */
static void dvti_conv_depthwise_weights(const dvti_conv_sums *s, const dvti_conv_block *block) {
    const dvti_conv *p = s->p;
    dvti_conv_plane plane = dvti_conv_plane_of(p, block);
    plane.taps = s->channels * p->kernel;
    p->kernels->correlate(&plane,
                          (const float *)p->launch->in[1].data +
                              dvti_conv_pixel(p, block, s->group * p->og + s->o, 0),
                          s->outs, dvti_conv_floats(s->area, p->u.depthwise.sums_at));
}

static void dvti_conv_depthwise_reduce(const dvti_conv_sums *s) {
    const dvti_conv *p = s->p;
    const int64_t taps = s->channels * p->kernel;
    const float *sums = dvti_conv_floats(s->area, p->u.depthwise.sums_at);
    int64_t o;
    for (o = 0; o < s->outs; o++)
        p->kernels->reduce_lanes((float *)(void *)s->to + o, p->og, sums + o * taps * 16, taps);
}

/* ---- the tasks ---- */
static void dvti_conv_weights_part(dvti_conv_sums *s, int64_t first, int64_t end) {
    const dvti_conv *p = s->p;
    const int64_t blocks = dvti_conv_cuts(end - first, p->images) * p->row_blocks;
    int64_t i;
    s->first = true;
    if (p->algorithm == DVTI_CONV_DEPTHWISE)
        memset(dvti_conv_floats(s->area, p->u.depthwise.sums_at), 0,
               (size_t)(s->outs * s->channels * p->kernel * 16) * sizeof(float));
    for (i = 0; i < blocks; i++) {
        dvti_conv_block block = dvti_conv_block_of(p, first, end, i);
        dvti_conv_tile_load(p, &block, s->group * p->cg + s->channel, s->channels, (char *)s->area);
        if (p->algorithm == DVTI_CONV_DEPTHWISE)
            dvti_conv_depthwise_weights(s, &block);
        else if (p->algorithm == DVTI_CONV_NHWC_WEIGHTS)
            dvti_conv_nhwc_weights(s, &block);
        else
            dvti_conv_im2col_weights(s, &block);
    }
    if (p->algorithm == DVTI_CONV_DEPTHWISE)
        dvti_conv_depthwise_reduce(s);
}

DVTI_FN void dvti_conv_weights(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t end, part, tile;
    dvti_conv_sums s;
    s.p = p;
    s.area = area;
    s.group = dvti_conv_groups(p, &task, &end);
    part = task % p->parts;
    tile = task / p->parts;
    s.channel = tile / p->out_blocks * p->ins;
    s.channels = DVTI_MIN(p->ins, p->cg - s.channel);
    s.o = tile % p->out_blocks * p->outs;
    s.outs = DVTI_MIN(p->outs, p->og - s.o);
    for (; s.group < end; s.group++) {
        const int64_t row = p->algorithm == DVTI_CONV_NHWC_WEIGHTS ? p->kernel * s.channels : 1;
        s.to = dvti_conv_at(p, p->partial,
                            (part * p->groups + s.group) * p->taps * p->og +
                                s.channel * p->kernel * p->og + s.o * row);
        dvti_conv_weights_part(&s, p->n * part / p->parts, p->n * (part + 1) / p->parts);
    }
}

/* ---- the sum of the parts ---- */
/* Sums the parts of some weights of an output channel, in order, from [tap][output channel]. */
#define DVTI_CONV_ADD_PARTS(T, name, store)                                                        \
    static void name(const dvti_conv *p, int64_t o, int64_t tap, int64_t count, char *to) {        \
        const int64_t part_size = p->o * p->taps;                                                  \
        const T *from =                                                                            \
            (const T *)(const void *)p->partial + (o / p->og * p->taps + tap) * p->og + o % p->og; \
        T row[64];                                                                                 \
        int64_t k, part;                                                                           \
        for (k = 0; k < count; k++) {                                                              \
            row[k] = from[k * p->og];                                                              \
            for (part = 1; part < p->parts; part++)                                                \
                row[k] += from[part * part_size + k * p->og];                                      \
        }                                                                                          \
        store(to, p->dtype, 1, count, row);                                                        \
    }

DVTI_CONV_ADD_PARTS(float, dvti_conv_add_parts_f32, dvti_store_row_f32)
DVTI_CONV_ADD_PARTS(double, dvti_conv_add_parts_f64, dvti_store_row_f64)
#undef DVTI_CONV_ADD_PARTS

DVTI_FN void dvti_conv_add_parts(void *user, int64_t begin, int64_t end) {
    const dvti_conv *p = (const dvti_conv *)user;
    char *dw = (char *)p->launch->out[0].data;
    int64_t tap, o;
    for (tap = 0; tap < p->taps; tap += 64)
        for (o = begin; o < end; o++)
            (p->dtype == DVT_F64 ? dvti_conv_add_parts_f64 : dvti_conv_add_parts_f32)(
                p, o, tap, DVTI_MIN(64, p->taps - tap), dw + (o * p->taps + tap) * p->size);
}
