/* Pooling: the largest element or the mean of each window, and their gradients. Windows are cut to x. One task is some planes
   (a channel of a sample), whose results depend on nothing else. */
#include "3_cpu/dvt_cpu.h"

/* Two of each: height, width. */
typedef struct dvti_pool_plan {
    const dvti_launch *launch;
    int64_t size[2], stride[2], padding[2];
    int64_t extent[2]; /* of x */
    int64_t windows[2];
    bool inside; /* a mean counts only the elements of x */
} dvti_pool_plan;

typedef struct dvti_span {
    int64_t begin, end;
    int64_t counted; /* by a mean: with padding, when that counts, but nothing beyond it */
} dvti_span;

/* The part of window number i that lies in x. */
static dvti_span dvti_pool_window(const dvti_pool_plan *p, int axis, int64_t i) {
    int64_t begin = i * p->stride[axis] - p->padding[axis], end = begin + p->size[axis];
    dvti_span span;
    span.counted = DVTI_MIN(end, p->extent[axis] + p->padding[axis]) - begin;
    span.begin = DVTI_MAX(begin, 0);
    span.end = DVTI_MIN(end, p->extent[axis]);
    if (p->inside)
        span.counted = span.end - span.begin;
    return span;
}

#define DVTI_T float
#define DVTI_G(name) dvti_pool_f32_##name
#define DVTI_READ(view, at) (((const float *)(view)->data)[at])
#define DVTI_WRITE(view, at, value) (((float *)(view)->data)[at] = (value))
#include "3_cpu/ref/ref_pool.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

/* float64, and the half types, which are rounded when they are written. */
#define DVTI_T double
#define DVTI_G(name) dvti_pool_any_##name
#define DVTI_READ(view, at) dvti_load_f64((view)->data, (view)->dtype, at)
#define DVTI_WRITE(view, at, value) dvti_store_f64((view)->data, (view)->dtype, at, value)
#include "3_cpu/ref/ref_pool.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

static void dvti_pool_body(void *user, int64_t begin, int64_t end) {
    const dvti_pool_plan *p = (const dvti_pool_plan *)user;
    if (p->launch->out[0].dtype == DVT_F32)
        dvti_pool_f32_planes(p, begin, end);
    else
        dvti_pool_any_planes(p, begin, end);
}

DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch) {
    bool forward = launch->op == DVTI_OP_max_pool2d || launch->op == DVTI_OP_avg_pool2d ||
                   launch->op == DVTI_OP_max_pool2d_pick;
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_pool_plan p;
    int64_t work;
    int axis;
    p.launch = launch;
    for (axis = 0; axis < 2; axis++) {
        p.size[axis] = launch->i[axis];
        p.stride[axis] = launch->i[2 + axis];
        p.padding[axis] = launch->i[4 + axis];
        p.extent[axis] = x->dim[2 + axis];
        p.windows[axis] = y->dim[2 + axis];
    }
    p.inside = launch->i[6] == 1;
    work = p.extent[0] * p.extent[1] + p.windows[0] * p.windows[1] * p.size[0] * p.size[1];
    dvti_parallel_for(x->dim[0] * x->dim[1], 0.6 * (double)work, dvti_pool_body, &p);
}
