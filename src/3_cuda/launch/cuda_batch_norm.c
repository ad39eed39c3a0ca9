/* Batch norm, and the gradients of layer norm's gamma and beta (kernels/batch_norm.cu).

   Variant, from the lowest bit: 4 dtype of x, 4 of the result, 4 of gamma and beta, 1 WIDE, 1 ROWS,
   2 STEP. */
#include "3_cuda/dvt_cuda.h"

typedef enum dvti_cuda_norm_step {
    DVTI_NORM_STATISTICS,
    DVTI_NORM_NORMALIZE,
    DVTI_NORM_SUMS,
    DVTI_NORM_GRADIENT
} dvti_cuda_norm_step;

/* Blocks over which sums are distributed, and those of the others. Both are independent of the GPU:
   the order of the sums, and so the bits, depend on the shape alone. */
#define DVTI_NORM_BLOCKS 1024
#define DVTI_NORM_PARTS 256 /* of a sum at most: each block that follows joins all of them */

DVTI_FN void dvti_cuda_describe_batch_norm(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define OUT %d\n#define W %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 15));
    dvti_text_add(text, "#define WIDE %d\n#define ROWS %d\n#define STEP %d\n",
                  (int)(variant >> 12 & 1), (int)(variant >> 13 & 1), (int)(variant >> 14 & 3));
}

/* Returns positions of a channel for each of about DVTI_NORM_BLOCKS blocks, at least 16 for each
   thread. */
static int64_t dvti_cuda_norm_chunk(const dvti_kbatch_norm *args, int64_t most) {
    const int64_t groups = (args->c - 1) / args->width + 1;
    int64_t chunks = args->count / (256 / args->width * 16);
    chunks = DVTI_MIN(DVTI_MIN(chunks, DVTI_NORM_BLOCKS / groups), most);
    return (args->count - 1) / DVTI_MAX(chunks, 1) + 1;
}

/* Sets the geometry for x (a, c, b). */
static dvti_kbatch_norm dvti_cuda_norm_args(int64_t a, int64_t c, int64_t b) {
    dvti_kbatch_norm args;
    dvti_clear(&args, sizeof args);
    args.c = c;
    args.count = a * b;
    args.b = dvti_cuda_divisor(b);
    args.width = b >= 16 ? 1 : DVTI_MIN(dvti_cuda_power(c), 32);
    args.part = dvti_cuda_norm_chunk(&args, DVTI_NORM_PARTS);
    args.parts = (args.count - 1) / args.part + 1;
    return args;
}

static int64_t dvti_cuda_norm_bytes(const dvti_kbatch_norm *args, dvti_class compute) {
    return args->parts * 2 * args->c * (compute == DVTI_F64 ? 8 : 4);
}

/* Starts a step with blocks of `chunk` positions. dtype: of x, of the result, of gamma. */
static dvt_status dvti_cuda_norm_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvti_kbatch_norm *args, const dvt_dtype *dtype,
                                       int64_t chunk, dvti_cuda_norm_step step) {
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(batch_norm);
    dvti_cuda_grid grid;
    dvti_clear(&grid, sizeof grid);
    args->chunk = chunk;
    args->items = ((args->c - 1) / args->width + 1) * ((args->count - 1) / chunk + 1);
    grid.x = DVTI_MIN(args->items, INT32_MAX);
    grid.y = grid.z = 1;
    grid.threads = 256;
    program.variant = (uint64_t)dtype[0] | (uint64_t)dtype[1] << 4 | (uint64_t)dtype[2] << 8 |
                      (uint64_t)(args->count >= (int64_t)1 << 30) << 12 |
                      (uint64_t)(launch->op == DVTI_OP_layer_norm_data) << 13 |
                      (uint64_t)step << 14;
    return dvti_cuda_start(gpu, launch, &program, "dvti_batch_norm", grid, args, sizeof *args);
}

/* Starts the sums of dy and dy z. They are the gradients of gamma and beta at once when there is
   one part and no step follows. */
static dvt_status dvti_cuda_norm_sums(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                      dvti_kbatch_norm *args, const dvt_dtype *dtype,
                                      bool follows) {
    args->partial = follows || args->parts > 1 ? launch->workspace : NULL;
    return dvti_cuda_norm_start(gpu, launch, args, dtype, args->part, DVTI_NORM_SUMS);
}

/* ---- the gradients of gamma and beta of layer norm ---- */
static dvti_kbatch_norm dvti_cuda_row_args(const dvti_launch *launch) {
    const dvti_view *x = &launch->in[1];
    const int64_t n = x->dim[x->ndim - 1];
    return dvti_cuda_norm_args(dvti_cuda_view_size(x) / n, n, 1);
}

DVTI_FN int64_t dvti_cuda_plan_row_sums(const dvti_launch *launch) {
    const dvti_kbatch_norm args = dvti_cuda_row_args(launch);
    const bool sums = launch->out[1].data || launch->out[2].data;
    return sums && args.parts > 1 ? dvti_cuda_norm_bytes(&args, launch->compute) : 0;
}

DVTI_FN dvt_status dvti_cuda_row_sums(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_kbatch_norm args = dvti_cuda_row_args(launch);
    dvt_dtype dtype[3];
    dvt_status status;
    args.gamma_grad = launch->out[1].data;
    args.beta_grad = launch->out[2].data;
    if (!args.gamma_grad && !args.beta_grad)
        return DVT_OK;
    args.g = launch->in[0].data;
    args.x = args.gamma_grad ? launch->in[1].data : NULL;
    args.stats = launch->in[3].data;
    dtype[0] = launch->in[1].dtype;
    dtype[1] = launch->in[0].dtype;
    dtype[2] = launch->out[args.gamma_grad ? 1 : 2].dtype;
    status = dvti_cuda_norm_sums(gpu, launch, &args, dtype, false);
    return status == DVT_OK && args.parts > 1
               ? dvti_cuda_norm_start(gpu, launch, &args, dtype, args.count, DVTI_NORM_GRADIENT)
               : status;
}

/* ---- batch norm ---- */
static bool dvti_cuda_norm_has_sums(const dvti_launch *launch) {
    return launch->out[1].data || launch->out[2].data || (launch->i[0] && launch->out[0].data);
}

static dvti_kbatch_norm dvti_cuda_batch_args(const dvti_launch *launch) {
    const dvti_view *x = &launch->in[launch->op == DVTI_OP_batch_norm ? 0 : 1];
    return dvti_cuda_norm_args(x->dim[0], x->dim[1], x->dim[2]);
}

DVTI_FN int64_t dvti_cuda_plan_batch_norm(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    const dvti_kbatch_norm args = dvti_cuda_batch_args(launch);
    (void)gpu;
    if (launch->op == DVTI_OP_batch_norm ? !launch->i[0] : !dvti_cuda_norm_has_sums(launch))
        return 0;
    return dvti_cuda_norm_bytes(&args, launch->compute);
}

static dvt_status dvti_cuda_batch_gradient(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                           dvti_kbatch_norm *args, const dvt_dtype *dtype) {
    const bool sums = dvti_cuda_norm_has_sums(launch), follows = launch->out[0].data != NULL;
    dvt_status status = DVT_OK;
    args->g = launch->in[0].data;
    args->x = launch->in[1].data;
    args->gamma = launch->in[2].data;
    args->stats = launch->in[3].data;
    args->out = launch->out[0].data;
    args->gamma_grad = launch->out[1].data;
    args->beta_grad = launch->out[2].data;
    if (sums)
        status = dvti_cuda_norm_sums(gpu, launch, args, dtype, follows);
    else
        args->parts = 0;
    if (status != DVT_OK || !(follows || args->parts > 1))
        return status;
    return dvti_cuda_norm_start(gpu, launch, args, dtype,
                                follows ? dvti_cuda_norm_chunk(args, INT32_MAX) : args->count,
                                DVTI_NORM_GRADIENT);
}

DVTI_FN dvt_status dvti_cuda_batch_norm(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const bool forward = launch->op == DVTI_OP_batch_norm;
    dvti_kbatch_norm args = dvti_cuda_batch_args(launch);
    dvt_status status = DVT_OK;
    dvt_dtype dtype[3];
    dtype[0] = launch->in[forward ? 0 : 1].dtype;
    dtype[1] = forward ? launch->out[0].dtype : launch->in[0].dtype;
    dtype[2] = launch->in[forward ? 1 : 2].dtype;
    args.training = launch->i[0];
    if (!forward)
        return dvti_cuda_batch_gradient(gpu, launch, &args, dtype);
    args.x = launch->in[0].data;
    args.gamma = launch->in[1].data;
    args.beta = launch->in[2].data;
    args.out = launch->out[0].data;
    args.stats = launch->out[1].data;
    args.running_mean = launch->out[2].data;
    args.running_var = launch->out[3].data;
    args.partial = launch->workspace;
    args.epsilon = launch->f[0];
    args.momentum = launch->f[1];
    args.share = 1 - launch->f[1];
    if (args.training)
        status = dvti_cuda_norm_start(gpu, launch, &args, dtype, args.part, DVTI_NORM_STATISTICS);
    /* The last step writes the running statistics: a failure above leaves them as they were. */
    return status == DVT_OK
               ? dvti_cuda_norm_start(gpu, launch, &args, dtype,
                                      dvti_cuda_norm_chunk(&args, INT32_MAX), DVTI_NORM_NORMALIZE)
               : status;
}

#undef DVTI_NORM_BLOCKS
#undef DVTI_NORM_PARTS
