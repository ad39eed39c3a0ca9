/* Pooling: the maximum or the mean of each window, and their gradients. Windows are clipped to x. A
   work item is a plane (one channel of one image); planes are independent. The ISA target's kernels
   take float32 with windows of a row 1 or 2 columns apart. They take gradients only of adjacent
   windows of 2 x 2. All else is computed window by window. */
#include "3_cpu/simd/dvt_simd.h"

/* ---- window by window ---- */
/* Arrays of two: height, width. */
typedef struct dvti_pool2d_shape {
    const dvti_launch *launch;
    int64_t size[2], stride[2], padding[2];
    int64_t extent[2]; /* of x */
    int64_t windows[2];
    bool inside; /* a mean counts only the elements of x */
} dvti_pool2d_shape;

typedef struct dvti_pool2d_span {
    int64_t begin, end;
    int64_t counted; /* elements that a mean divides by, along this axis */
} dvti_pool2d_span;

/* Returns the span of window i along an axis. A mean counts padding unless p->inside, but
   nothing beyond it:

         | padding |        x         | padding | beyond
                             +----- window i ------+
                           begin      end
                             <---- counted -----> */
static dvti_pool2d_span dvti_pool2d_window(const dvti_pool2d_shape *p, int axis, int64_t i) {
    const int64_t begin = i * p->stride[axis] - p->padding[axis], end = begin + p->size[axis];
    dvti_pool2d_span span;
    span.counted = DVTI_MIN(end, p->extent[axis] + p->padding[axis]) - begin;
    span.begin = DVTI_MAX(begin, 0);
    span.end = DVTI_MIN(end, p->extent[axis]);
    if (p->inside)
        span.counted = span.end - span.begin;
    return span;
}

#define DVTI_T float
#define DVTI_G(name) dvti_pool2d_f32_##name
#define DVTI_READ(view, at) (((const float *)(view)->data)[at])
#define DVTI_WRITE(view, at, value) (((float *)(view)->data)[at] = (value))
#include "3_cpu/cpu_pool.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

/* float64, float16 and bfloat16, all computed in double */
#define DVTI_T double
#define DVTI_G(name) dvti_pool2d_f64_##name
#define DVTI_READ(view, at) dvti_load_f64((view)->data, (view)->dtype, at)
#define DVTI_WRITE(view, at, value) dvti_store_f64((view)->data, (view)->dtype, at, value)
#include "3_cpu/cpu_pool.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

static void dvti_pool2d_planes(void *user, int64_t begin, int64_t end) {
    const dvti_pool2d_shape *p = (const dvti_pool2d_shape *)user;
    if (p->launch->out[0].dtype == DVT_F32)
        dvti_pool2d_f32_planes(p, begin, end);
    else
        dvti_pool2d_f64_planes(p, begin, end);
}

/* Returns whether the launch reads x and writes one value per window. */
static bool dvti_pool2d_is_forward(dvti_op op) {
    return op == DVTI_OP_max_pool2d || op == DVTI_OP_avg_pool2d || op == DVTI_OP_max_pool2d_pick;
}

static void dvti_pool2d_by_window(const dvti_launch *launch) {
    const bool forward = dvti_pool2d_is_forward(launch->op);
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_pool2d_shape p;
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
    dvti_parallel_for(x->dim[0] * x->dim[1], 0.6 * (double)work, dvti_pool2d_planes, &p);
}

/* ---- by an ISA target's kernels ---- */
typedef struct dvti_pooling_work {
    dvti_pooling pool;
    dvti_pooling_fn run;
    float counted[DVTI_POOL_BUFFER];
} dvti_pooling_work;

static void dvti_pooling_range(void *user, int64_t begin, int64_t end) {
    const dvti_pooling_work *work = (const dvti_pooling_work *)user;
    work->run(&work->pool, begin, end);
}

/* Writes the number of elements of a row that the mean of each window counts. The rest of the last
   vector gets 1. */
static void dvti_pooling_count(dvti_pooling_work *work) {
    const dvti_pooling *p = &work->pool;
    int64_t j, begin, end;
    for (j = 0; j < (p->windows[1] + 15) / 16 * 16; j++) {
        begin = j * p->step - p->padding[1];
        end = DVTI_MIN(begin + p->size[1], p->width + p->padding[1]);
        if (p->inside) {
            begin = DVTI_MAX(begin, 0);
            end = DVTI_MIN(end, p->width);
        }
        work->counted[j] = j < p->windows[1] ? (float)(end - begin) : 1;
    }
}

static bool dvti_pooling_is_pairs(const dvti_launch *launch, const dvti_pooling *p) {
    int k;
    for (k = 0; k < 4; k++)
        if (launch->i[k] != 2)
            return false;
    return !p->padding[0] && !p->padding[1] && 2 * p->windows[0] <= p->height &&
           2 * p->windows[1] <= p->width;
}

/* Returns false if the windows of a row are more than 2 columns apart. The step of a single window
   is 1. */
static bool dvti_pooling_forward(const dvti_launch *launch, dvti_pooling_work *work) {
    dvti_pooling *p = &work->pool;
    p->x = (const float *)launch->in[0].data;
    p->y = (float *)launch->out[0].data;
    if (p->pairs)
        return true;
    p->step = p->windows[1] == 1 ? 1 : launch->i[3];
    p->buffered =
        DVTI_MAX(p->width + p->padding[1], (p->windows[1] + 15) / 16 * 16 * p->step + p->size[1]) +
        16;
    if (p->step > 2 || p->buffered > DVTI_POOL_BUFFER)
        return false;
    dvti_pooling_count(work);
    return true;
}

static bool dvti_pooling_backward(const dvti_launch *launch, dvti_pooling_work *work) {
    dvti_pooling *p = &work->pool;
    p->x = launch->op == DVTI_OP_max_pool2d_data ? (const float *)launch->in[1].data : NULL;
    p->g = (const float *)launch->in[0].data;
    p->y = (float *)launch->out[0].data;
    return p->pairs;
}

DVTI_FN bool dvti_fast_pool2d(const dvti_launch *launch, const dvti_simd *simd) {
    const bool forward = dvti_pool2d_is_forward(launch->op);
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_pooling_work work;
    dvti_pooling *p = &work.pool;
    bool takes;
    int axis;
    work.run = x->dtype == DVT_F32 ? dvti_simd_pool_of(simd)->of(launch->op) : NULL;
    for (axis = 0; axis < 2; axis++) {
        p->size[axis] = launch->i[axis];
        p->padding[axis] = launch->i[4 + axis];
        p->windows[axis] = y->dim[2 + axis];
    }
    p->height = x->dim[2];
    p->width = x->dim[3];
    p->stride = launch->i[2];
    p->inside = launch->i[6] == 1;
    p->relu_masked = launch->i[7] == 1;
    p->counted = work.counted;
    p->pairs = dvti_pooling_is_pairs(launch, p);
    takes = work.run &&
            (forward ? dvti_pooling_forward(launch, &work) : dvti_pooling_backward(launch, &work));
    if (takes)
        dvti_parallel_for(x->dim[0] * x->dim[1],
                          0.03 * (double)(p->windows[0] * p->size[0] * (p->width + 16)) + 20,
                          dvti_pooling_range, &work);
    else
        dvti_pool2d_by_window(launch);
    return true;
}
