/* Convolution as matrix products with the patches of x, which are gathered a tile at a time and never stored whole. Columns are the
   pixels of all samples in a row, so that small pictures fill a tile too.

     forward   y (O x columns)  = w (O x taps)  * patches (taps x columns)
     weights   dw (O x taps)    = dy (O x columns) * patches^T
     data      dx               = the patches' gradient, w^T (taps x O) * dy (O x columns), added where each came from

   The half types are widened to float32 in the workspace. Every cut depends on shapes only. */
#include "3_cpu/dvt_cpu.h"

typedef struct dvti_conv {
    const dvti_launch *launch;
    dvti_gemm plan;
    dvt_dtype dtype; /* that is computed in */
    int64_t n, c, h, w, o, kh, kw, oh, ow;
    int64_t stride[2], padding[2], dilation[2], groups;
    int64_t cg, og, taps, pixels,
        columns; /* channels per group; cg * kh * kw; oh * ow; n * pixels */
    int64_t row_tiles, col_tiles, tasks;
    bool unpadded;
    int64_t parts;             /* weights: of the samples */
    int64_t samples, channels; /* data: of one task */
    const void *x, *weight, *bias, *y;
    void *out, *partial;
} dvti_conv;

/* Columns that stand in one row of pixels. Element i of the run, for a tap at (channel, up, left), is
   x[start + (channel * h + up) * w + left + i * stride]; whether it exists, row and left say. */
typedef struct dvti_conv_run {
    int64_t start, row, left, count;
} dvti_conv_run;

/* The columns of a tile or step, cut into runs; and where the first one is. */
typedef struct dvti_conv_columns {
    int64_t sample, pixel, count;
    int64_t padded; /* count, up to whole panels */
    int n;
    dvti_conv_run run[DVTI_GEMM_DEPTH];
} dvti_conv_columns;

/* A row of the patch matrix: a channel of x, and the offset from a window's corner, which stands in the padding. */
typedef struct dvti_conv_tap {
    int64_t channel, i, j, up, left;
} dvti_conv_tap;

static void dvti_conv_find(const dvti_conv *p, int64_t column, int64_t count,
                           dvti_conv_columns *columns) {
    int64_t n = column / p->pixels, pixel = column % p->pixels;
    int64_t i = pixel / p->ow, j = pixel % p->ow;
    columns->sample = n;
    columns->pixel = pixel;
    columns->count = count;
    columns->padded = (count + p->plan.width - 1) / p->plan.width * p->plan.width;
    for (columns->n = 0; count > 0; columns->n++) {
        dvti_conv_run *run = &columns->run[columns->n];
        run->row = i * p->stride[0];
        run->left = j * p->stride[1];
        run->start = (n * p->c * p->h + run->row) * p->w + run->left;
        run->count = DVTI_MIN(count, p->ow - j);
        count -= run->count;
        j = 0;
        if (++i == p->oh) {
            i = 0;
            n++;
        }
    }
}

static dvti_conv_tap dvti_conv_tap_at(const dvti_conv *p, int64_t group, int64_t tap) {
    dvti_conv_tap at;
    at.channel = group * p->cg + tap / (p->kh * p->kw);
    at.i = tap / p->kw % p->kh;
    at.j = tap % p->kw;
    at.up = at.i * p->dilation[0] - p->padding[0];
    at.left = at.j * p->dilation[1] - p->padding[1];
    return at;
}

static void dvti_conv_next_tap(const dvti_conv *p, dvti_conv_tap *at) {
    if (++at->j == p->kw) {
        at->j = 0;
        if (++at->i == p->kh) {
            at->i = 0;
            at->channel++;
        }
        at->up = at->i * p->dilation[0] - p->padding[0];
    }
    at->left = at->j * p->dilation[1] - p->padding[1];
}

/* The elements first..last of a run are in x, the others in the padding. */
static void dvti_conv_inside(const dvti_conv *p, const dvti_conv_run *run, const dvti_conv_tap *tap,
                             int64_t *first, int64_t *last) {
    int64_t row = run->row + tap->up, left = run->left + tap->left, stride = p->stride[1];
    *first = 0;
    *last = p->unpadded ? run->count : 0;
    if (p->unpadded || row < 0 || row >= p->h || left >= p->w)
        return;
    if (left < 0)
        *first = DVTI_MIN(stride == 1 ? -left : (stride - 1 - left) / stride, run->count);
    left = stride == 1 ? p->w - left : (p->w - 1 - left) / stride + 1;
    *last = DVTI_MAX(DVTI_MIN(left, run->count), *first);
}

/* The first sample of a part. */
static int64_t dvti_conv_part(const dvti_conv *p, int64_t part) {
    return p->n / p->parts * part + DVTI_MIN(part, p->n % p->parts);
}

#define DVTI_T float
#define DVTI_G(name) dvti_conv_f32_##name
#include "3_cpu/ref/ref_conv.inl"
#undef DVTI_T
#undef DVTI_G

#define DVTI_T double
#define DVTI_G(name) dvti_conv_f64_##name
#include "3_cpu/ref/ref_conv.inl"
#undef DVTI_T
#undef DVTI_G

/* ---- shapes and cuts ---- */
/* Tasks that a launch should at least make, where its shape allows: enough for the cores of most machines. */
#define DVTI_CONV_TASKS 8
/* Columns of a data task. */
#define DVTI_CONV_COLUMNS 128

static void dvti_conv_cut(dvti_conv *p) {
    dvti_class compute = p->dtype == DVT_F64 ? DVTI_F64 : DVTI_F32;
    dvti_op op = p->launch->op;
    int64_t blocks;
    p->parts = 1;
    p->samples = p->channels = 1;
    if (op == DVTI_OP_conv2d_data) {
        p->samples = DVTI_MAX(1, DVTI_CONV_COLUMNS / p->pixels);
        blocks = (p->n + p->samples - 1) / p->samples * p->groups;
        blocks = DVTI_MAX(1, DVTI_MIN(p->cg, DVTI_CONV_TASKS / DVTI_MAX(blocks, 1)));
        p->channels = DVTI_MAX(1, (p->cg + blocks - 1) / blocks);
        p->plan = dvti_gemm_plan(compute, p->channels * p->kh * p->kw,
                                 DVTI_MIN(p->samples, p->n) * p->pixels, p->og);
        blocks = (p->cg + p->channels - 1) / p->channels;
        p->tasks = (p->n + p->samples - 1) / p->samples * p->groups * blocks;
        return;
    }
    if (op == DVTI_OP_conv2d_weight)
        p->plan = dvti_gemm_plan_dots(compute, p->og, p->taps, p->columns);
    else
        p->plan = dvti_gemm_plan(compute, p->og, p->columns, p->taps);
    p->row_tiles = (p->og + p->plan.rows - 1) / p->plan.rows;
    p->col_tiles =
        ((op == DVTI_OP_conv2d_weight ? p->taps : p->columns) + p->plan.cols - 1) / p->plan.cols;
    p->tasks = p->groups * p->row_tiles * p->col_tiles;
    if (op == DVTI_OP_conv2d_weight) {
        p->parts = DVTI_MAX(1, DVTI_MIN(p->n, DVTI_CONV_TASKS / DVTI_MAX(p->tasks, 1)));
        p->tasks *= p->parts;
    }
}

#undef DVTI_CONV_TASKS
#undef DVTI_CONV_COLUMNS

static dvti_conv dvti_conv_plan(const dvti_launch *launch) {
    bool data = launch->op == DVTI_OP_conv2d_data, weight = launch->op == DVTI_OP_conv2d_weight;
    const dvti_view *x = data ? &launch->out[0] : &launch->in[0];
    const dvti_view *w = weight ? &launch->out[0] : &launch->in[1];
    const dvti_view *y = data ? &launch->in[0] : weight ? &launch->in[1] : &launch->out[0];
    dvti_conv p;
    int axis;
    memset(&p, 0, sizeof p);
    p.launch = launch;
    p.dtype = launch->out[0].dtype == DVT_F64 ? DVT_F64 : DVT_F32;
    p.n = x->dim[0];
    p.c = x->dim[1];
    p.h = x->dim[2];
    p.w = x->dim[3];
    p.o = w->dim[0];
    p.cg = w->dim[1];
    p.kh = w->dim[2];
    p.kw = w->dim[3];
    p.oh = y->dim[2];
    p.ow = y->dim[3];
    for (axis = 0; axis < 2; axis++) {
        p.stride[axis] = launch->i[axis];
        p.padding[axis] = launch->i[2 + axis];
        p.dilation[axis] = launch->i[4 + axis];
    }
    p.unpadded = p.padding[0] == 0 && p.padding[1] == 0;
    p.groups = launch->i[6];
    p.og = p.o / p.groups;
    /* Of empty weights and an empty y nothing limits the extents: their product could overflow, and is not needed. */
    if (p.o == 0 || p.cg == 0)
        p.kh = p.kw = 1;
    p.taps = p.cg * p.kh * p.kw;
    p.pixels = p.n && p.o ? p.oh * p.ow : 1;
    p.columns = p.n * p.pixels;
    dvti_conv_cut(&p);
    return p;
}

/* ---- the workspace: widened arrays, partial sums, areas ---- */
static int64_t dvti_conv_bytes(const dvti_conv *p, int64_t elements) {
    int64_t size = p->dtype == DVT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    return (elements * size + 63) / 64 * 64;
}

static int64_t dvti_conv_widened_bytes(const dvti_conv *p) {
    int64_t bytes = 0;
    int k;
    for (k = 0; k < p->launch->n_in; k++)
        if (p->launch->in[k].dtype != p->dtype)
            bytes += dvti_conv_bytes(p, dvti_view_size(&p->launch->in[k]));
    if (p->launch->out[0].dtype != p->dtype)
        bytes += dvti_conv_bytes(p, dvti_view_size(&p->launch->out[0]));
    return bytes;
}

static int64_t dvti_conv_partial_bytes(const dvti_conv *p) {
    return p->parts > 1 ? dvti_conv_bytes(p, p->parts * p->o * p->taps) : 0;
}

static double dvti_conv_terms(const dvti_conv *p) {
    return (double)p->o * (double)p->taps * (double)p->columns;
}

DVTI_FN int64_t dvti_ref_conv2d_workspace(const dvti_launch *launch, int threads) {
    dvti_conv p = dvti_conv_plan(launch);
    return dvti_conv_widened_bytes(&p) + dvti_conv_partial_bytes(&p) +
           dvti_task_areas(p.tasks, dvti_conv_terms(&p), threads) * p.plan.bytes;
}

typedef struct dvti_conv_convert {
    const dvti_view *view;
    float *wide;
} dvti_conv_convert;

static void dvti_conv_widen(void *user, int64_t begin, int64_t end) {
    const dvti_conv_convert *job = (const dvti_conv_convert *)user;
    int64_t i;
    for (i = begin; i < end; i++)
        job->wide[i] = (float)dvti_load_f64(job->view->data, job->view->dtype, i);
}

static void dvti_conv_narrow(void *user, int64_t begin, int64_t end) {
    const dvti_conv_convert *job = (const dvti_conv_convert *)user;
    int64_t i;
    for (i = begin; i < end; i++)
        dvti_store_f64(job->view->data, job->view->dtype, i, job->wide[i]);
}

/* An input in the dtype that is computed in; takes from the workspace what it needs. */
static const void *dvti_conv_input(const dvti_conv *p, int k, char **workspace) {
    dvti_conv_convert job;
    int64_t n;
    job.view = &p->launch->in[k];
    if (job.view->dtype == p->dtype)
        return job.view->data;
    n = dvti_view_size(job.view);
    job.wide = (float *)(void *)*workspace;
    *workspace += dvti_conv_bytes(p, n);
    dvti_parallel_for(n, 2.5, dvti_conv_widen, &job);
    return job.wide;
}

static void dvti_conv_run_tasks(dvti_conv *p, char *areas, int64_t count) {
    bool wide = p->dtype == DVT_F64;
    dvti_task_fn run;
    if (p->launch->op == DVTI_OP_conv2d_data)
        run = wide ? dvti_conv_f64_data : dvti_conv_f32_data;
    else if (p->launch->op == DVTI_OP_conv2d_weight)
        run = wide ? dvti_conv_f64_weights : dvti_conv_f32_weights;
    else
        run = wide ? dvti_conv_f64_forward : dvti_conv_f32_forward;
    dvti_run_tasks(p->tasks, dvti_conv_terms(p), areas, count, p->plan.bytes, run, p);
    if (p->parts > 1)
        dvti_parallel_for(p->o * p->taps, (double)p->parts * 0.3,
                          wide ? dvti_conv_f64_sum_parts : dvti_conv_f32_sum_parts, p);
}

DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch) {
    dvti_conv p = dvti_conv_plan(launch);
    char *workspace = (char *)launch->workspace, *end = workspace + launch->workspace_bytes;
    const void *in[3] = {NULL, NULL, NULL};
    dvti_conv_convert result;
    int64_t size = dvti_view_size(&launch->out[0]);
    int k;
    for (k = 0; k < launch->n_in; k++)
        in[k] = dvti_conv_input(&p, k, &workspace);
    p.x = in[0];
    p.weight = in[1];
    p.bias = in[2];
    p.y = launch->op == DVTI_OP_conv2d_data ? in[0] : in[1];
    p.out = launch->out[0].data;
    result.view = &launch->out[0];
    result.wide = NULL;
    if (launch->out[0].dtype != p.dtype) {
        p.out = result.wide = (float *)(void *)workspace;
        workspace += dvti_conv_bytes(&p, size);
    }
    p.partial = workspace;
    workspace += dvti_conv_partial_bytes(&p);
    dvti_conv_run_tasks(&p, workspace, (end - workspace) / p.plan.bytes);
    if (result.wide)
        dvti_parallel_for(size, 2.5, dvti_conv_narrow, &result);
}
