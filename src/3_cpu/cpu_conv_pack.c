/* Convolution (cpu_conv.h): weights and bias in the layout of the kernels.

     forward                     [out channel][tap]: w itself, or converted to float32
     backward data               [group][tap][out channel], rows padded to 16 elements
     transposed (backward data   [channel of dx][channel of dy in the group][tap],
       as a convolution)         kernels rotated by 180 degrees
     backward weights            none */
#include "3_cpu/cpu_conv.h"

#define DVTI_CONV_CHUNK 64 /* weights of a work item */
#define DVTI_CONV_OUTS 16  /* output channels whose kernels are rotated together */

typedef struct dvti_conv_packing {
    const dvti_conv *p;
    char *to;
} dvti_conv_packing;

/* Converts float16 or bfloat16 to float32. */
static void dvti_conv_widen(void *user, int64_t begin, int64_t end) {
    const dvti_conv_packing *job = (const dvti_conv_packing *)user;
    const dvti_conv *p = job->p;
    const int64_t first = begin * DVTI_CONV_CHUNK;
    const int64_t n = DVTI_MIN(end * DVTI_CONV_CHUNK, p->o * p->taps) - first;
    p->gemm->copy(dvti_conv_at(p, job->to, first), 0,
                  (const char *)p->launch->in[1].data + first * p->size, p->dtype, 0, 1, n);
}

/* Transposes weights for backward data to [group][tap][output channel]. */
static void dvti_conv_transpose_weights(void *user, int64_t begin, int64_t end) {
    const dvti_conv_packing *job = (const dvti_conv_packing *)user;
    const dvti_conv *p = job->p;
    int64_t group, tap, taps, at;
    for (at = begin; at < end; at += taps) {
        group = at / p->taps;
        tap = at % p->taps;
        taps = DVTI_MIN(p->taps - tap, end - at);
        p->gemm->transpose(dvti_conv_at(p, job->to, at * p->weight_row), p->weight_row,
                           (const char *)p->launch->in[1].data +
                               (group * p->og * p->taps + tap) * p->size,
                           p->dtype, p->taps, taps, p->og);
    }
}

/* Copies a kernel from its last tap to its first, which rotates it by 180 degrees. */
static void dvti_conv_rotate(const dvti_conv *p, const char *from, void *to) {
    const char *last = from + (p->kernel - 1) * p->size;
    int64_t k;
    if (p->dtype == DVT_F32)
        for (k = 0; k < p->kernel; k++)
            ((float *)to)[k] = ((const float *)(const void *)last)[-k];
    else if (p->dtype == DVT_F64)
        dvti_load_row_f64(last, p->dtype, -1, p->kernel, (double *)to);
    else
        dvti_load_row_f32(last, p->dtype, -1, p->kernel, (float *)to);
}

/* Packs weights of a transposed convolution. From [channel of dy][channel of dx in the group][tap]
   to [channel of dx][channel of dy in the group][tap], with rotated kernels. */
static void dvti_conv_rotate_weights(void *user, int64_t begin, int64_t end) {
    const dvti_conv_packing *job = (const dvti_conv_packing *)user;
    const dvti_conv *p = job->p;
    const int64_t blocks = dvti_conv_cuts(p->og, DVTI_CONV_OUTS);
    for (; begin < end; begin++) {
        const int64_t group = begin / blocks, first = begin % blocks * DVTI_CONV_OUTS;
        const int64_t outs = DVTI_MIN(DVTI_CONV_OUTS, p->og - first);
        const char *w = (const char *)p->launch->in[1].data +
                        (group * p->cg * p->og + first) * p->kernel * p->size;
        char *to = dvti_conv_at(p, job->to, (group * p->og + first) * p->taps);
        int64_t c, o;
        if (p->kernel == 1 && p->size == p->element)
            p->gemm->transpose_exactly(to, p->taps, w, p->og, outs, p->cg);
        else if (p->kernel == 1 && p->cg % 16 == 0) /* transpose stores whole vectors */
            p->gemm->transpose(to, p->taps, w, p->dtype, p->og, outs, p->cg);
        else
            for (c = 0; c < p->cg; c++, w += p->og * p->kernel * p->size)
                for (o = 0; o < outs; o++)
                    dvti_conv_rotate(p, w + o * p->kernel * p->size,
                                     dvti_conv_at(p, to, o * p->taps + c * p->kernel));
    }
}

static void dvti_conv_pack_weights(dvti_conv *p, char *workspace) {
    const int64_t all = p->o * p->taps;
    int64_t *at = (int64_t *)(void *)workspace;
    dvti_conv_packing job;
    dvti_conv_tile_table(p, at);
    p->at = at;
    p->tile.copy_row = at + p->taps;
    p->partial = workspace + p->partial_at;
    job.p = p;
    job.to = workspace + p->weight_at;
    p->weight = job.to;
    if (p->op == DVTI_OP_conv2d_weight)
        return;
    if (p->transposed)
        dvti_parallel_for(p->groups * dvti_conv_cuts(p->og, DVTI_CONV_OUTS),
                          (double)(DVTI_CONV_OUTS * p->taps), dvti_conv_rotate_weights, &job);
    else if (p->op == DVTI_OP_conv2d_data)
        dvti_parallel_for(p->groups * p->taps, (double)p->og * 0.5, dvti_conv_transpose_weights,
                          &job);
    else if (p->size < p->element)
        dvti_parallel_for(dvti_conv_cuts(all, DVTI_CONV_CHUNK), 10, dvti_conv_widen, &job);
    else
        p->weight = p->launch->in[1].data;
}

DVTI_FN void dvti_conv_pack(dvti_conv *p, char *workspace) {
    const dvti_launch *launch = p->launch;
    if (p->algorithm == DVTI_CONV_WINOGRAD)
        dvti_conv_winograd_pack(p, workspace);
    else
        dvti_conv_pack_weights(p, workspace);
    if (launch->op != DVTI_OP_conv2d || launch->n_in < 3)
        return;
    p->bias = launch->in[2].data;
    if (p->size < p->element) {
        float *bias = dvti_conv_floats(workspace, p->bias_at);
        dvti_load_row_f32(launch->in[2].data, p->dtype, 1, p->o, bias);
        p->bias = bias;
    }
}

#undef DVTI_CONV_CHUNK
#undef DVTI_CONV_OUTS
