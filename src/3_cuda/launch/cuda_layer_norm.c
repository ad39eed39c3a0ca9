/* Layer norm and RMSNorm (kernels/layer_norm.cu). The gradients of gamma and beta are sums over
   rows (cuda_batch_norm.c).

   Variant, from the lowest bit: 4 dtype of x, 4 of the result, 4 of gamma and beta, 6 PER, 2 log2
   of EACH, 1 each LONG, RMS, WIDE, GRADIENT. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN void dvti_cuda_describe_layer_norm(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define OUT %d\n#define W %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 15));
    dvti_text_add(text, "#define PER %d\n#define EACH %d\n", (int)(variant >> 12 & 63),
                  1 << (variant >> 18 & 3));
    dvti_text_add(text, "#define LONG %d\n#define RMS %d\n#define WIDE %d\n#define GRADIENT %d\n",
                  (int)(variant >> 20 & 1), (int)(variant >> 21 & 1), (int)(variant >> 22 & 1),
                  (int)(variant >> 23 & 1));
}

/* Returns how many of `each` elements one access can move, in rows of n elements from `data` on. */
static int dvti_cuda_norm_each(int each, const void *data, dvt_dtype dtype, int64_t n) {
    const int64_t size = dvt_dtype_size(dtype);
    while (data && (each * size > 16 || n % each || (uintptr_t)data % (uintptr_t)(each * size)))
        each /= 2;
    return each;
}

/* Launches the kernel for these arguments, of which only the geometry is missing. */
static dvt_status dvti_cuda_norm_rows(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                      dvti_klayer_norm *args, const dvt_dtype *dtype,
                                      bool gradient) {
    const int most = launch->compute == DVTI_F64 ? 8 : 16, per = args->n <= 256 ? 8 : most;
    const bool is_long = args->n > 512 * most;
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(layer_norm);
    dvti_cuda_grid grid;
    int each = 8, i;
    dvti_clear(&grid, sizeof grid);
    each = dvti_cuda_norm_each(each, args->x, dtype[0], args->n);
    each = dvti_cuda_norm_each(each, args->g, dtype[1], args->n);
    each = dvti_cuda_norm_each(each, args->out, dtype[gradient ? 0 : 1], args->n);
    each = dvti_cuda_norm_each(each, args->gamma, dtype[2], args->n);
    each = dvti_cuda_norm_each(each, args->beta, dtype[2], args->n);
    for (i = 0; i < 3; i++) /* a group of 16-bit elements has at least 8 bytes */
        each = each == 2 && dvt_dtype_size(dtype[i]) == 2 ? 1 : each;
    if (args->n <= 32 * per)
        args->lanes = DVTI_MIN(dvti_cuda_power((args->n - 1) / DVTI_MAX(each, 4) + 1), 32);
    else
        args->lanes = args->n <= 256 * most ? 256 : 512;
    grid.threads = (int)DVTI_MAX(args->lanes, 256);
    args->groups = (args->rows - 1) / (grid.threads / args->lanes) + 1;
    grid.x = DVTI_MIN(args->groups, INT32_MAX);
    if (is_long) /* rows in progress stay in L2 */
        grid.x = DVTI_MIN(grid.x, 2 * (int64_t)dvti_cuda_physical_of(gpu)->processors);
    grid.y = grid.z = 1;
    program.variant = (uint64_t)dtype[0] | (uint64_t)dtype[1] << 4 | (uint64_t)dtype[2] << 8 |
                      (uint64_t)per << 12 | (uint64_t)(each == 8 ? 3 : each / 2) << 18 |
                      (uint64_t)is_long << 20 | (uint64_t)(launch->i[0] != 0) << 21 |
                      (uint64_t)(args->n >= (int64_t)1 << 30) << 22 | (uint64_t)gradient << 23;
    return dvti_cuda_start(gpu, launch, &program, "dvti_layer_norm", grid, args, sizeof *args);
}

DVTI_FN int64_t dvti_cuda_plan_layer_norm(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    (void)gpu;
    return launch->op == DVTI_OP_layer_norm_data ? dvti_cuda_plan_row_sums(launch) : 0;
}

DVTI_FN dvt_status dvti_cuda_layer_norm(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const bool gradient = launch->op == DVTI_OP_layer_norm_data;
    const dvti_view *x = &launch->in[gradient ? 1 : 0], *gamma = &launch->in[gradient ? 2 : 1];
    dvt_dtype dtype[3]; /* x, the result, gamma and beta */
    dvti_klayer_norm args;
    dvt_status status = DVT_OK;
    dvti_clear(&args, sizeof args);
    args.n = x->dim[x->ndim - 1];
    args.rows = dvti_cuda_view_size(x) / args.n;
    args.x = x->data;
    args.gamma = gamma->data;
    args.out = launch->out[0].data;
    args.epsilon = launch->f[0];
    dtype[0] = x->dtype;
    dtype[1] = gradient ? launch->in[0].dtype : launch->out[0].dtype;
    dtype[2] = gamma->data ? gamma->dtype : DVT_F32;
    if (gradient) {
        args.g = launch->in[0].data;
        args.stats = launch->in[3].data;
    } else {
        args.stats = launch->out[1].data;
        args.beta = launch->in[2].data;
        if (args.beta)
            dtype[2] = launch->in[2].dtype;
    }
    if (args.out)
        status = dvti_cuda_norm_rows(gpu, launch, &args, dtype, gradient);
    return status == DVT_OK && gradient ? dvti_cuda_row_sums(gpu, launch) : status;
}
