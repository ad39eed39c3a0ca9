/* Pooling: kernel pool2d (kernels/pool.cu). Variant: dtype, kind, whether a team computes a window,
   whether positions have 64 bits. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN void dvti_cuda_describe_pool(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define KIND %d\n#define TEAM %d\n#define WIDE %d\n",
                  (int)(variant & 15), (int)(variant >> 4 & 15), (int)(variant >> 8 & 1),
                  (int)(variant >> 9 & 1));
}

/* The plan that all kernels of a launch share. Each kernel sets n, rows and columns itself. */
typedef struct dvti_cuda_pool_plan {
    dvti_kpool args;
    int64_t planes, window_area, x_size, y_size;
    bool wide;  /* positions need 64 bits */
    bool apart; /* windows do not overlap */
    bool team;
} dvti_cuda_pool_plan;

/* Returns false when all sums of positions in a kernel are below 2^31. */
static bool dvti_cuda_pool_is_wide(const dvti_cuda_pool_plan *plan, const dvti_launch *launch) {
    const int64_t most = (int64_t)1 << 29;
    int i;
    for (i = 0; i < 6; i++)
        if (launch->i[i] >= most)
            return true;
    return plan->x_size >= most || plan->y_size >= most || launch->i[0] * launch->i[1] >= most;
}

static void dvti_cuda_pool_plan_of(const dvti_launch *launch, dvti_cuda_pool_plan *plan) {
    bool forward = launch->op == DVTI_OP_max_pool2d || launch->op == DVTI_OP_avg_pool2d ||
                   launch->op == DVTI_OP_max_pool2d_pick;
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_kpool *args = &plan->args;
    int axis;
    dvti_clear(plan, sizeof *plan);
    plan->planes = x->dim[0] * x->dim[1];
    plan->window_area = 1;
    plan->x_size = dvti_cuda_view_size(x);
    plan->y_size = dvti_cuda_view_size(y);
    plan->apart = true;
    for (axis = 0; axis < 2; axis++) {
        int64_t size = launch->i[axis], stride = launch->i[2 + axis];
        args->extent[axis] = x->dim[2 + axis];
        args->windows[axis] = y->dim[2 + axis];
        args->size[axis] = size;
        args->padding[axis] = launch->i[4 + axis];
        if (args->windows[axis] == 1) /* any stride that leads out of x is equivalent */
            stride = DVTI_MAX(stride, DVTI_MAX(size, args->extent[axis] + args->padding[axis]));
        args->stride[axis] = dvti_cuda_divisor(stride);
        plan->apart = plan->apart && stride >= size;
        plan->window_area *= DVTI_MIN(size, args->extent[axis]);
    }
    args->inside = launch->i[6] == 1;
    args->relu_masked = launch->i[7] == 1;
    args->in = launch->in[0].data;
    args->x = launch->in[launch->n_in - 1].data;
    args->out = launch->out[0].data;
    plan->wide = dvti_cuda_pool_is_wide(plan, launch);
    /* Lanes that are 8 elements apart read one sector of 32 bytes each. */
    plan->team = plan->window_area >= 32 && (args->windows[1] == 1 || args->stride[1].divisor >= 8);
}

static dvt_status dvti_cuda_pool_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvti_cuda_pool_plan *plan, dvti_kpool_kind kind,
                                       int64_t rows, int64_t columns) {
    bool team = plan->team && kind != DVTI_KPOOL_GATHER_MAX && kind != DVTI_KPOOL_GATHER_AVG;
    dvti_cuda_program program;
    dvti_cuda_grid grid;
    plan->args.n = plan->planes * rows * columns;
    plan->args.rows = dvti_cuda_divisor(rows);
    plan->args.columns = dvti_cuda_divisor(columns);
    program = DVTI_CUDA_PROGRAM(pool);
    program.variant = (uint64_t)launch->out[0].dtype | (uint64_t)kind << 4 | (uint64_t)team << 8 |
                      (uint64_t)plan->wide << 9;
    grid = dvti_cuda_grid_for(gpu, plan->args.n, 256, 1);
    if (team) {
        grid.threads = plan->window_area >= 1024 ? 256 : 32;
        grid.x = DVTI_MIN(plan->args.n, (int64_t)dvti_cuda_physical_of(gpu)->processors * 512);
    }
    return dvti_cuda_start(gpu, launch, &program, "dvti_pool", grid, &plan->args,
                           sizeof plan->args);
}

DVTI_PLAN_FITS(dvti_cuda_pool_plan)

/* Where windows overlap, a first kernel stores the place of each maximum in the workspace, and a
   second one reads it. */
DVTI_FN int64_t dvti_cuda_plan_pool(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_pool_plan *plan = (dvti_cuda_pool_plan *)(void *)&launch->plan;
    (void)gpu;
    dvti_cuda_pool_plan_of(launch, plan);
    if (launch->op != DVTI_OP_max_pool2d_data || plan->apart)
        return 0;
    return plan->y_size * (plan->wide ? (int64_t)sizeof(int64_t) : (int64_t)sizeof(int));
}

/* Returns the number of cells into which the strides divide an axis. */
static int64_t dvti_cuda_pool_cells(const dvti_kpool *args, int axis) {
    int64_t stride = args->stride[axis].divisor;
    return (args->extent[axis] + args->padding[axis] - 1) / stride + 1;
}

static dvt_status dvti_cuda_pool_max_data(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                          dvti_cuda_pool_plan *plan) {
    const dvti_kpool *args = &plan->args;
    dvt_status status;
    if (plan->apart)
        return dvti_cuda_pool_start(gpu, launch, plan, DVTI_KPOOL_CELLS,
                                    dvti_cuda_pool_cells(args, 0), dvti_cuda_pool_cells(args, 1));
    status = dvti_cuda_pool_start(gpu, launch, plan, DVTI_KPOOL_PLACES, args->windows[0],
                                  args->windows[1]);
    if (status != DVT_OK)
        return status;
    return dvti_cuda_pool_start(gpu, launch, plan, DVTI_KPOOL_GATHER_MAX, args->extent[0],
                                args->extent[1]);
}

DVTI_FN dvt_status dvti_cuda_pool(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_cuda_pool_plan plan = *(const dvti_cuda_pool_plan *)(const void *)&launch->plan;
    dvti_kpool_kind kind = DVTI_KPOOL_PICK;
    plan.args.places = launch->workspace;
    if (launch->op == DVTI_OP_max_pool2d_data)
        return dvti_cuda_pool_max_data(gpu, launch, &plan);
    if (launch->op == DVTI_OP_avg_pool2d_data)
        return dvti_cuda_pool_start(gpu, launch, &plan, DVTI_KPOOL_GATHER_AVG, plan.args.extent[0],
                                    plan.args.extent[1]);
    if (launch->op == DVTI_OP_max_pool2d)
        kind = DVTI_KPOOL_MAX;
    if (launch->op == DVTI_OP_avg_pool2d)
        kind = DVTI_KPOOL_AVG;
    return dvti_cuda_pool_start(gpu, launch, &plan, kind, plan.args.windows[0],
                                plan.args.windows[1]);
}
