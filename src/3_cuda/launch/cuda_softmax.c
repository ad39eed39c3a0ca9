/* Softmax along the last axis, and cross-entropy: kernels softmax and cross_entropy
   (kernels/softmax.cu).

   Variant, from the lowest bit: 4 dtype of the input, 4 of the result, 6 PER, 1 each LOGARITHM,
   COLUMNS, LONG, WIDE, GRADIENT, 4 dtype of labels + 1, 1 PARTS. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_PAIR 32768 /* longest row of which two per multiprocessor fit in L2 */

/* Long rows are cut into parts where there are fewer blocks than fill a GPU; then into at most so
   many that there are twice as many blocks. */
#define DVTI_CUDA_SOFTMAX_BLOCKS 512
#define DVTI_CUDA_SOFTMAX_PARTS 64
#define DVTI_CUDA_SOFTMAX_PER 16 /* elements per thread, 2048 per block */

typedef struct dvti_cuda_softmax_plan {
    dvti_ksoftmax args;
    dvti_cuda_grid grid;
    bool columns, in_registers, wide; /* in_registers: a row fits in its threads' registers */
    int per;                          /* elements per thread */
} dvti_cuda_softmax_plan;

/* Returns whether groups of 16 bytes can be read and written with one access. */
static bool dvti_cuda_softmax_vector(const dvti_view *in, const dvti_view *out,
                                     const dvti_ksoftmax *args) {
    int64_t each = 16 / dvt_dtype_size(out->dtype);
    int i;
    bool good = in->dtype == out->dtype && args->n % each == 0 && args->in_step == 1 &&
                args->out_step == 1 && (uintptr_t)args->in.data % 16 == 0 &&
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

static void dvti_cuda_softmax_cut(dvti_cuda_softmax_plan *plan) {
    dvti_ksoftmax *args = &plan->args;
    int64_t tile, tiles, most;
    plan->per = DVTI_CUDA_SOFTMAX_PER;
    if (!plan->columns)
        args->lanes = plan->grid.threads = 128;
    tile = args->lanes * plan->per;
    tiles = (args->n - 1) / tile + 1;
    most = DVTI_MIN((2 * DVTI_CUDA_SOFTMAX_BLOCKS - 1) / args->groups + 1, DVTI_CUDA_SOFTMAX_PARTS);
    args->part = ((tiles - 1) / most + 1) * tile;
    args->parts = (args->n - 1) / args->part + 1;
    plan->grid.x = args->groups * args->parts;
}

DVTI_PLAN_FITS(dvti_cuda_softmax_plan)

static void dvti_cuda_softmax_plan_of(const dvti_cuda_gpu *gpu, const dvti_view *in,
                                      const dvti_view *out, dvti_cuda_softmax_plan *plan) {
    const int64_t narrow = INT32_MAX - ((int64_t)1 << 20); /* positions past the end still fit */
    dvti_ksoftmax *args = &plan->args;
    int last = in->ndim - 1, i;
    bool doubles = in->dtype == DVT_F64 || !dvt_dtype_is_float(in->dtype);
    int64_t each, most = doubles ? 16 : 32; /* elements that fit in 128 registers */
    dvti_clear(plan, sizeof *plan);
    dvti_cuda_view(&args->in, in);
    dvti_cuda_view(&args->out, out);
    args->n = args->in.dim[last];
    args->in_step = args->in.stride[last];
    args->out_step = args->out.stride[last];
    args->in.ndim = args->out.ndim = last;
    args->rows = 1;
    for (i = 0; i < last; i++)
        args->rows *= args->in.dim[i];
    dvti_cuda_simplify_axes(&args->in, &args->out, true);
    args->vector = dvti_cuda_softmax_vector(in, out, args);
    each = args->vector ? 16 / dvt_dtype_size(out->dtype) : 1;
    last = (int)args->in.ndim - 1;
    plan->columns = args->in.dim[last] > 1 && args->n > 1 &&
                    dvti_cuda_distance(args->in.stride[last]) < dvti_cuda_distance(args->in_step);
    plan->wide =
        dvti_cuda_reach(&args->in) + args->n * dvti_cuda_distance(args->in_step) > narrow ||
        dvti_cuda_reach(&args->out) + args->n * dvti_cuda_distance(args->out_step) > narrow;
    if (plan->columns)
        dvti_cuda_softmax_columns(plan, most);
    else
        dvti_cuda_softmax_rows(plan, each, most);
    args->groups = (args->rows - 1) / (plan->grid.threads / args->lanes) + 1;
    args->parts = 1;
    plan->grid.x = DVTI_MIN(args->groups, INT32_MAX);
    if (!plan->in_registers && args->groups < DVTI_CUDA_SOFTMAX_BLOCKS)
        dvti_cuda_softmax_cut(plan);
    else if (!plan->in_registers && !plan->columns) /* rows in progress stay in L2 */
        plan->grid.x = DVTI_MIN(args->groups, (int64_t)dvti_cuda_physical_of(gpu)->processors *
                                                  (args->n <= DVTI_CUDA_PAIR ? 2 : 1));
    plan->grid.y = plan->grid.z = 1;
}

DVTI_FN void dvti_cuda_describe_softmax(uint64_t variant, dvti_text *text) {
    const bool gradient = (variant >> 18 & 1) != 0;
    dvti_text_add(text, "#define D %d\n#define OUT %d\n#define PER %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 63));
    dvti_text_add(text,
                  "#define LOGARITHM %d\n#define COLUMNS %d\n#define LONG %d\n#define WIDE %d\n",
                  (int)(variant >> 14 & 1), (int)(variant >> 15 & 1), (int)(variant >> 16 & 1),
                  (int)(variant >> 17 & 1));
    dvti_text_add(text, "#define GRADIENT %d\n#define LABEL %d\n#define PARTS %d\n", gradient,
                  (int)(variant >> 19 & 15) - 1, (int)(variant >> 23 & 1));
    if (gradient)
        dvti_cuda_add_functions(text, "exp.inl");
    else
        dvti_cuda_add_exp_below(text, (dvt_dtype)(variant & 15));
}

static dvti_cuda_program dvti_cuda_softmax_program(const dvti_cuda_softmax_plan *plan, dvt_dtype in,
                                                   dvt_dtype out, bool logarithm) {
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(softmax);
    program.variant = (uint64_t)in | (uint64_t)out << 4 | (uint64_t)plan->per << 8 |
                      (uint64_t)logarithm << 14 | (uint64_t)plan->columns << 15 |
                      (uint64_t)(!plan->in_registers && plan->args.parts == 1) << 16 |
                      (uint64_t)plan->wide << 17 | (uint64_t)(plan->args.parts > 1) << 23;
    return program;
}

DVTI_FN int64_t dvti_cuda_plan_softmax(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_softmax_plan *plan = (dvti_cuda_softmax_plan *)(void *)&launch->plan;
    if (launch->op == DVTI_OP_cross_entropy_data)
        return 0;
    dvti_cuda_softmax_plan_of(gpu, &launch->in[0], &launch->out[launch->n_out - 1], plan);
    if (launch->op == DVTI_OP_cross_entropy) {
        plan->args.label = launch->in[1].data;
        plan->args.loss = launch->out[0].data;
    }
    return plan->args.parts > 1 ? plan->args.rows * plan->args.parts * 16 : 0;
}

/* Starts the one kernel, or the two that compute parts. */
static dvt_status dvti_cuda_softmax_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                          const dvti_cuda_softmax_plan *plan,
                                          dvti_cuda_program program) {
    dvti_ksoftmax args;
    dvt_status status;
    if (plan->args.parts == 1)
        return dvti_cuda_start(gpu, launch, &program, "dvti_softmax", plan->grid, &plan->args,
                               sizeof plan->args);
    args = plan->args;
    args.partial = launch->workspace;
    status = dvti_cuda_start(gpu, launch, &program, "dvti_softmax_parts", plan->grid, &args,
                             sizeof args);
    if (status != DVT_OK)
        return status;
    return dvti_cuda_start(gpu, launch, &program, "dvti_softmax_finish", plan->grid, &args,
                           sizeof args);
}

DVTI_FN dvt_status dvti_cuda_softmax(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_softmax_plan *plan =
        (const dvti_cuda_softmax_plan *)(const void *)&launch->plan;
    return dvti_cuda_softmax_start(gpu, launch, plan,
                                   dvti_cuda_softmax_program(plan, launch->in[0].dtype,
                                                             launch->out[0].dtype,
                                                             launch->op == DVTI_OP_log_softmax));
}

/* ---- cross-entropy ---- */
static dvt_status dvti_cuda_entropy_gradient(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0];
    const int64_t size = dvti_cuda_view_size(out);
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(softmax);
    dvti_ksoftmax args;
    dvti_clear(&args, sizeof args);
    args.n = out->dim[out->ndim - 1];
    args.rows = size / args.n;
    args.in.data = launch->in[2].data;
    args.out.data = out->data;
    args.g = launch->in[0].data;
    args.label = launch->in[1].data;
    program.variant = (uint64_t)out->dtype | (uint64_t)out->dtype << 4 | (uint64_t)1 << 18 |
                      (uint64_t)(size >= (int64_t)1 << 30) << 17 |
                      (uint64_t)(launch->in[1].dtype + 1) << 19;
    return dvti_cuda_start(gpu, launch, &program, "dvti_cross_entropy_gradient",
                           dvti_cuda_grid_for(gpu, size, 256, 1), &args, sizeof args);
}

DVTI_FN dvt_status dvti_cuda_cross_entropy(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_softmax_plan *plan =
        (const dvti_cuda_softmax_plan *)(const void *)&launch->plan;
    dvti_cuda_program program;
    if (launch->op == DVTI_OP_cross_entropy_data)
        return dvti_cuda_entropy_gradient(gpu, launch);
    program = dvti_cuda_softmax_program(plan, launch->in[0].dtype, launch->out[1].dtype, true);
    program.variant |= (uint64_t)(launch->in[1].dtype + 1) << 19;
    return dvti_cuda_softmax_start(gpu, launch, plan, program);
}

#undef DVTI_CUDA_PAIR
#undef DVTI_CUDA_SOFTMAX_BLOCKS
#undef DVTI_CUDA_SOFTMAX_PARTS
#undef DVTI_CUDA_SOFTMAX_PER
