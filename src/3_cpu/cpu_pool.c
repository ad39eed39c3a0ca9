/* Pooling by a tier's loops: float32 planes, windows of any size whose step along a row is 1 or 2; gradients where windows of 2 x 2 lie side by
   side. */
#include "3_cpu/simd/dvt_simd.h"

typedef struct dvti_pooling_work {
    dvti_pooling pool;
    dvti_pooling_fn run;
    float counted[DVTI_POOL_BUFFER];
} dvti_pooling_work;

static void dvti_pooling_range(void *user, int64_t begin, int64_t end) {
    const dvti_pooling_work *work = (const dvti_pooling_work *)user;
    work->run(&work->pool, begin, end);
}

/* How many elements of a row the mean of each window counts; beyond the last window 1. */
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

/* Windows of a row that begin further apart than 2 are left to the reference; a single one begins nowhere else. */
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
    bool forward = launch->op == DVTI_OP_max_pool2d || launch->op == DVTI_OP_avg_pool2d;
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_pooling_work work;
    dvti_pooling *p = &work.pool;
    int axis;
    work.run = simd->pool(launch->op);
    if (!work.run || x->dtype != DVT_F32)
        return false;
    for (axis = 0; axis < 2; axis++) {
        p->size[axis] = launch->i[axis];
        p->padding[axis] = launch->i[4 + axis];
        p->windows[axis] = y->dim[2 + axis];
    }
    p->height = x->dim[2];
    p->width = x->dim[3];
    p->stride = launch->i[2];
    p->inside = launch->i[6] == 1;
    p->past_relu = launch->i[7] == 1;
    p->counted = work.counted;
    p->pairs = dvti_pooling_is_pairs(launch, p);
    if (!(forward ? dvti_pooling_forward(launch, &work) : dvti_pooling_backward(launch, &work)))
        return false;
    dvti_parallel_for(x->dim[0] * x->dim[1],
                      0.03 * (double)(p->windows[0] * p->size[0] * (p->width + 16)) + 20,
                      dvti_pooling_range, &work);
    return true;
}
