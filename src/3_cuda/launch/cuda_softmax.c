/* Softmax along the last axis: kernel softmax (kernels/softmax.cu). */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_PAIR 32768 /* longest row of which two per multiprocessor fit in L2 */

typedef struct dvti_cuda_softmax_plan {
    dvti_ksoftmax args;
    dvti_cuda_grid grid;
    bool columns, in_registers, wide; /* in_registers: a row fits in its threads' registers */
    int per;                          /* elements per thread */
} dvti_cuda_softmax_plan;

/* Returns whether groups of 16 bytes can be read and written with one access. */
static bool dvti_cuda_softmax_vector(const dvti_launch *launch, const dvti_ksoftmax *args) {
    int64_t each = 16 / dvt_dtype_size(launch->out[0].dtype);
    int i;
    bool good = launch->in[0].dtype == launch->out[0].dtype && args->n % each == 0 &&
                args->in_step == 1 && args->out_step == 1 && (uintptr_t)args->in.data % 16 == 0 &&
                (uintptr_t)args->out.data % 16 == 0;
    for (i = 0; i < (int)args->in.ndim; i++)
        good = good && args->in.stride[i] % each == 0 && args->out.stride[i] % each == 0;
    return good;
}

/* Sets threads per row and elements per thread for interleaved rows. */
static void dvti_cuda_softmax_columns(dvti_cuda_softmax_plan *plan, int64_t most) {
    dvti_ksoftmax *args = &plan->args;
    plan->per = (int)(args->n <= 64 ? 8 : DVTI_MIN(most, 32));
    args->lanes = args->n <= 8 ? 1 : 8;
    if (args->rows < 256 / args->lanes)
        args->lanes = 256 / dvti_cuda_power(args->rows);
    plan->in_registers = args->n <= args->lanes * plan->per;
    plan->grid.threads = 256;
}

static void dvti_cuda_softmax_rows(dvti_cuda_softmax_plan *plan, int64_t each, int64_t most) {
    dvti_ksoftmax *args = &plan->args;
    plan->per = (int)(args->n <= 256 ? 8 : most);
    plan->in_registers = args->n <= 512 * most;
    if (args->n <= 32 * plan->per)
        args->lanes = DVTI_MIN(dvti_cuda_power((args->n - 1) / DVTI_MAX(each, 4) + 1), 32);
    else
        args->lanes = args->n <= 256 * most ? 256 : 512;
    plan->grid.threads = (int)DVTI_MAX(args->lanes, 256);
}

static dvti_cuda_softmax_plan dvti_cuda_softmax_plan_of(const dvti_cuda_gpu *gpu,
                                                        const dvti_launch *launch) {
    const int64_t narrow = INT32_MAX - ((int64_t)1 << 20); /* positions past the end still fit */
    dvti_cuda_softmax_plan plan;
    dvti_ksoftmax *args = &plan.args;
    int last = launch->in[0].ndim - 1, i;
    bool doubles = launch->in[0].dtype == DVT_F64 || !dvt_dtype_is_float(launch->in[0].dtype);
    int64_t each, most = doubles ? 16 : 32; /* elements that fit in 128 registers */
    memset(&plan, 0, sizeof plan);
    args->in = dvti_cuda_view(&launch->in[0]);
    args->out = dvti_cuda_view(&launch->out[0]);
    args->n = args->in.dim[last];
    args->in_step = args->in.stride[last];
    args->out_step = args->out.stride[last];
    args->in.ndim = args->out.ndim = last;
    args->rows = 1;
    for (i = 0; i < last; i++)
        args->rows *= args->in.dim[i];
    dvti_cuda_simplify_axes(&args->in, &args->out, true);
    args->vector = dvti_cuda_softmax_vector(launch, args);
    each = args->vector ? 16 / dvt_dtype_size(launch->out[0].dtype) : 1;
    last = (int)args->in.ndim - 1;
    plan.columns = args->in.dim[last] > 1 && args->n > 1 &&
                   dvti_cuda_distance(args->in.stride[last]) < dvti_cuda_distance(args->in_step);
    plan.wide = dvti_cuda_reach(&args->in) + args->n * dvti_cuda_distance(args->in_step) > narrow ||
                dvti_cuda_reach(&args->out) + args->n * dvti_cuda_distance(args->out_step) > narrow;
    if (plan.columns)
        dvti_cuda_softmax_columns(&plan, most);
    else
        dvti_cuda_softmax_rows(&plan, each, most);
    args->groups = (args->rows - 1) / (plan.grid.threads / args->lanes) + 1;
    plan.grid.x = DVTI_MIN(args->groups, INT32_MAX);
    if (!plan.in_registers && !plan.columns) /* rows in progress stay in L2 */
        plan.grid.x = DVTI_MIN(args->groups, (int64_t)dvti_cuda_physical_of(gpu)->processors *
                                                 (args->n <= DVTI_CUDA_PAIR ? 2 : 1));
    plan.grid.y = plan.grid.z = 1;
    return plan;
}

DVTI_FN void dvti_cuda_describe_softmax(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define OUT %d\n#define PER %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 63));
    dvti_text_add(text,
                  "#define LOGARITHM %d\n#define COLUMNS %d\n#define LONG %d\n#define WIDE %d\n",
                  (int)(variant >> 14 & 1), (int)(variant >> 15 & 1), (int)(variant >> 16 & 1),
                  (int)(variant >> 17 & 1));
    dvti_cuda_add_exp_below(text, (dvt_dtype)(variant & 15));
}

DVTI_FN dvt_status dvti_cuda_softmax(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_cuda_softmax_plan plan = dvti_cuda_softmax_plan_of(gpu, launch);
    dvti_cuda_program program;
    program = DVTI_CUDA_PROGRAM(softmax);
    program.variant = (uint64_t)launch->in[0].dtype | (uint64_t)launch->out[0].dtype << 4 |
                      (uint64_t)plan.per << 8 |
                      (uint64_t)(launch->op == DVTI_OP_log_softmax) << 14 |
                      (uint64_t)plan.columns << 15 | (uint64_t)!plan.in_registers << 16 |
                      (uint64_t)plan.wide << 17;
    return dvti_cuda_start(gpu, launch, program, "dvti_softmax", plan.grid, &plan.args,
                           sizeof plan.args);
}

#undef DVTI_CUDA_PAIR
