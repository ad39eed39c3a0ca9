/* Indexing: kernels take, take_along and one_hot (kernels/index.cu). */
#include "3_cuda/dvt_cuda.h"

enum { DVTI_CUDA_TAKE, DVTI_CUDA_ALONG, DVTI_CUDA_ONE_HOT, DVTI_CUDA_INDEX_ADD };

/* Values of launch->plan.i. Adding operations sort the indices first, or add line by line. */
enum { DVTI_CUDA_INDEX_READS, DVTI_CUDA_INDEX_SORTS, DVTI_CUDA_INDEX_LINES };

DVTI_FN void dvti_cuda_describe_index(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define PART %d\n#define UNIT %d\n#define D %d\n#define WIDE %d\n",
                  (int)(variant & 15), (int)(variant >> 4 & 31), (int)(variant >> 9 & 15),
                  (int)(variant >> 13 & 1));
}

static dvt_status dvti_cuda_index_start(dvti_cuda_gpu *gpu, const dvti_launch *launch, int part,
                                        int unit, bool wide, const char *entry,
                                        const dvti_kindex *args, int64_t threads) {
    dvt_dtype dtype = launch->out[0].dtype;
    dvti_cuda_program program;
    program = DVTI_CUDA_PROGRAM(index);
    program.variant = (uint64_t)part | (uint64_t)unit << 4 |
                      (uint64_t)(unit ? DVT_U8 : dtype) << 9 | (uint64_t)wide << 13;
    return dvti_cuda_start(gpu, launch, &program, entry, dvti_cuda_grid_for(gpu, threads, 256, 1),
                           args, sizeof *args);
}

/* Returns the widest unit of up to 16 bytes that divides `bytes` and both addresses. */
static int dvti_cuda_index_unit(int64_t bytes, const void *a, const void *b) {
    int unit = 16;
    while (bytes % unit || (uintptr_t)a % (unsigned)unit || (uintptr_t)b % (unsigned)unit)
        unit /= 2;
    return unit;
}

static bool dvti_cuda_index_wide(const dvti_kindex *args) {
    const int64_t narrow = INT32_MAX;
    return args->total > narrow || dvti_cuda_reach(&args->in) > narrow ||
           dvti_cuda_reach(&args->out) > narrow || dvti_cuda_reach(&args->places) > narrow;
}

static dvt_status dvti_cuda_index_take(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvti_kindex *args) {
    int64_t bytes = launch->in[0].dim[2] * dvt_dtype_size(launch->in[0].dtype);
    int unit = dvti_cuda_index_unit(bytes, args->in.data, args->out.data);
    args->n = launch->in[0].dim[1];
    args->m = launch->out[0].dim[1];
    args->b = bytes / unit;
    args->total = launch->out[0].dim[0] * args->m * args->b;
    return dvti_cuda_index_start(gpu, launch, DVTI_CUDA_TAKE, unit, args->total > INT32_MAX,
                                 "dvti_take", args, args->total);
}

static dvt_status dvti_cuda_index_along(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                        dvti_kindex *args) {
    int axis = (int)launch->i[0];
    args->n = args->in.dim[axis];
    args->step = args->in.stride[axis];
    args->in.dim[axis] = args->out.dim[axis];
    args->in.stride[axis] = 0;
    args->total = dvti_cuda_view_size(&launch->out[0]);
    return dvti_cuda_index_start(gpu, launch, DVTI_CUDA_ALONG,
                                 (int)dvt_dtype_size(launch->out[0].dtype),
                                 dvti_cuda_index_wide(args), "dvti_take_along", args, args->total);
}

static dvt_status dvti_cuda_index_one_hot(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                          dvti_kindex *args) {
    args->index = (const int64_t *)launch->in[0].data;
    args->n = launch->out[0].dim[launch->out[0].ndim - 1];
    args->total = dvti_cuda_view_size(&launch->out[0]);
    return dvti_cuda_index_start(gpu, launch, DVTI_CUDA_ONE_HOT, 0, args->total > INT32_MAX,
                                 "dvti_one_hot", args, args->total);
}

/* ---- gradients ---- */
/* Returns whether one thread adds one line, without sorting: lines are short, or there are many.
   Sums of 16-bit floats must not be rounded on the way. */
static bool dvti_cuda_index_lines(const dvti_launch *launch) {
    int64_t along = launch->in[1].dim[launch->i[0]];
    if (launch->op != DVTI_OP_take_along_add)
        return false;
    return along <= 1 || (dvt_dtype_size(launch->out[0].dtype) != 2 &&
                          (along <= 32 || dvti_cuda_view_size(&launch->in[1]) / along >= 65536));
}

static dvt_status dvti_cuda_index_add_lines(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                            dvti_kindex *args, bool wide) {
    int axis = (int)launch->i[0];
    args->m = args->places.dim[axis];
    args->along = args->in.stride[axis];
    args->along_index = args->places.stride[axis];
    args->in.dim[axis] = args->places.dim[axis] = args->out.dim[axis] = 1;
    args->total = dvti_cuda_view_size(&launch->in[1]) / args->m;
    return dvti_cuda_index_start(gpu, launch, DVTI_CUDA_INDEX_ADD, 0, wide, "dvti_index_lines",
                                 args, args->total);
}

/* Returns how many bits hold the places: rows of the result, or its elements. */
static int dvti_cuda_index_bits(const dvti_launch *launch) {
    int64_t places = launch->op == DVTI_OP_take_add ? launch->out[0].dim[1]
                                                    : dvti_cuda_view_size(&launch->out[0]);
    int bits = 1;
    while (bits < 63 && (places - 1) >> bits > 0)
        bits++;
    return bits;
}

static dvt_status dvti_cuda_index_add_sorted(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                             dvti_kindex *args, bool wide) {
    int bits = dvti_cuda_index_bits(launch);
    dvti_cuda_sorting sorting;
    dvt_status status;
    sorting = dvti_cuda_sort_begin(launch->workspace, args->m, bits);
    args->wide = sorting.wide;
    args->keys = sorting.keys;
    status = dvti_cuda_index_start(gpu, launch, DVTI_CUDA_INDEX_ADD, 0, wide, "dvti_index_keys",
                                   args, args->m);
    if (status == DVT_OK)
        status = dvti_cuda_sort(gpu, launch, &sorting, bits);
    args->keys = sorting.keys;
    args->values = sorting.values;
    if (status == DVT_OK)
        status = dvti_cuda_index_start(gpu, launch, DVTI_CUDA_INDEX_ADD, 0, wide, "dvti_index_add",
                                       args, args->total);
    return status;
}

static dvt_status dvti_cuda_index_add(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                      dvti_kindex *args) {
    int axis = launch->op == DVTI_OP_take_add ? 1 : (int)launch->i[0];
    dvti_kview same = args->in;
    dvt_status status;
    bool wide;
    args->n_out = dvti_cuda_view_size(&launch->out[0]);
    args->n = args->out.dim[axis];
    args->total = dvti_cuda_view_size(&launch->in[0]);
    wide = dvti_cuda_index_wide(args);
    status = dvti_cuda_index_start(gpu, launch, DVTI_CUDA_INDEX_ADD, 0, wide, "dvti_index_zero",
                                   args, args->n_out);
    if (status != DVT_OK || args->total == 0)
        return status;
    args->m = dvti_cuda_view_size(&launch->in[1]);
    args->b = 1;
    args->step = launch->op == DVTI_OP_take_add ? 1 : args->out.stride[axis];
    if (launch->op == DVTI_OP_take_add) { /* keys are rows of the result */
        args->b = args->out.dim[2];
        args->rows = args->n;
        dvti_clear(args->out.stride, sizeof args->out.stride);
        dvti_cuda_simplify_axes(&args->in, &same, false);
        return dvti_cuda_index_add_sorted(gpu, launch, args, wide);
    }
    args->out.stride[axis] = 0;
    if (launch->plan.i == DVTI_CUDA_INDEX_LINES)
        return dvti_cuda_index_add_lines(gpu, launch, args, wide);
    return dvti_cuda_index_add_sorted(gpu, launch, args, wide);
}

DVTI_FN dvt_status dvti_cuda_index(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_kindex args;
    dvti_clear(&args, sizeof args);
    dvti_cuda_view(&args.in, &launch->in[0]);
    dvti_cuda_view(&args.out, &launch->out[0]);
    if (launch->op == DVTI_OP_one_hot)
        return dvti_cuda_index_one_hot(gpu, launch, &args);
    dvti_cuda_view(&args.places, &launch->in[1]);
    args.index = (const int64_t *)launch->in[1].data;
    if (launch->op == DVTI_OP_take)
        return dvti_cuda_index_take(gpu, launch, &args);
    if (launch->op == DVTI_OP_take_along)
        return dvti_cuda_index_along(gpu, launch, &args);
    return dvti_cuda_index_add(gpu, launch, &args);
}

DVTI_FN int64_t dvti_cuda_plan_index(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    bool adds = launch->op == DVTI_OP_take_add || launch->op == DVTI_OP_take_along_add;
    int64_t m;
    (void)gpu;
    launch->plan.i = !adds                           ? DVTI_CUDA_INDEX_READS
                     : dvti_cuda_index_lines(launch) ? DVTI_CUDA_INDEX_LINES
                                                     : DVTI_CUDA_INDEX_SORTS;
    if (launch->plan.i != DVTI_CUDA_INDEX_SORTS)
        return 0;
    m = dvti_cuda_view_size(&launch->in[1]);
    return m ? dvti_cuda_sort_bytes(m, dvti_cuda_index_bits(launch)) : 0;
}
