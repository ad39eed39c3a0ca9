/* Reductions: kernel reduce (kernels/reduce.cu). The geometry depends on shape, strides and dtype
   alone, so every GPU gives the same bits. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_BLOCKS 4096 /* enough blocks to keep a large GPU busy to the end */

typedef struct dvti_cuda_reduction {
    dvti_kreduce args;
    int64_t tiles, join_lanes;
    bool columns, split, wide;
} dvti_cuda_reduction;

typedef enum dvti_cuda_reduce_kernel {
    DVTI_CUDA_REDUCE_ROWS,
    DVTI_CUDA_REDUCE_COLUMNS,
    DVTI_CUDA_REDUCE_CHUNKS /* shared by the others */
} dvti_cuda_reduce_kernel;

/* ---- geometry ---- */
/* Returns whether all groups of 16 bytes are contiguous and aligned, for every result. */
static bool dvti_cuda_reduce_vector(const dvti_kreduce *args, int64_t each) {
    const dvti_kview *kept = &args->kept, *reduced = &args->reduced;
    int last = (int)reduced->ndim - 1, i;
    bool good = reduced->stride[last] == 1 && (uintptr_t)kept->data % 16 == 0;
    for (i = 0; i < (int)kept->ndim; i++)
        good = good && kept->stride[i] % each == 0;
    for (i = 0; i < last; i++)
        good = good && reduced->stride[i] % each == 0;
    return good && (last == 0 || reduced->dim[last] % each == 0);
}

/* Splits results into chunks, multiples of `step`, where that makes more blocks and each chunk
   still has enough work. */
static void dvti_cuda_reduce_cut(dvti_cuda_reduction *r, int64_t step) {
    dvti_kreduce *args = &r->args;
    int64_t chunks = DVTI_MIN(args->n_reduced / (4 * step), DVTI_CUDA_BLOCKS / r->tiles);
    args->chunk = args->n_reduced;
    args->n_chunks = 1;
    if (chunks >= 2) {
        args->chunk = ((args->n_reduced - 1) / (chunks * step) + 1) * step;
        args->n_chunks = (args->n_reduced - 1) / args->chunk + 1;
    }
    r->split = args->n_chunks > 1;
    r->join_lanes = args->n_chunks > 128 ? 256 : 32;
}

static void dvti_cuda_reduce_shape(dvti_cuda_reduction *r, int64_t each) {
    dvti_kreduce *args = &r->args;
    const dvti_kview *kept = &args->kept, *reduced = &args->reduced;
    int64_t inner = kept->stride[kept->ndim - 1], depth = reduced->stride[reduced->ndim - 1];
    int64_t rows;
    r->columns = kept->dim[kept->ndim - 1] > 1 && args->n_reduced > 1 &&
                 dvti_cuda_distance(inner) < dvti_cuda_distance(depth);
    if (r->columns) {
        rows = DVTI_MIN(dvti_cuda_power(args->n_reduced / 8 + 1), 8);
        args->lanes = DVTI_MIN(dvti_cuda_power(args->n_kept), 256 / rows);
        r->tiles = (args->n_kept - 1) / args->lanes + 1;
        dvti_cuda_reduce_cut(r, 256 / args->lanes * 8);
        return;
    }
    args->lanes = DVTI_MIN(dvti_cuda_power((args->n_reduced - 1) / each + 1), 32);
    if (args->n_reduced >= (args->n_kept > 2048 ? 256 : 32) * each * 4)
        args->lanes = 256;
    r->tiles = (args->n_kept - 1) / (256 / args->lanes) + 1;
    dvti_cuda_reduce_cut(r, args->lanes == 256 ? 256 * each * 4 : INT32_MAX);
    args->vector = dvti_cuda_reduce_vector(args, each);
}

static void dvti_cuda_reduce_plan_of(const dvti_launch *launch, dvti_cuda_reduction *r) {
    const int64_t narrow = INT32_MAX - ((int64_t)1 << 20); /* positions past the end still fit */
    dvti_kreduce *args = &r->args;
    dvti_kview none;
    int kept = (int)launch->i[0], i;
    bool sorts = dvti_reduce_row_of(launch->op)->rule != DVTI_RESULT_PLACE; /* axes, by stride */
    dvti_clear(r, sizeof *r);
    dvti_cuda_view(&args->out, &launch->out[0]);
    args->kept.data = args->reduced.data = launch->in[0].data;
    args->kept.ndim = kept;
    args->reduced.ndim = launch->in[0].ndim - kept;
    args->n_kept = args->n_reduced = 1;
    for (i = 0; i < kept; i++) {
        args->kept.dim[i] = launch->in[0].dim[i];
        args->kept.stride[i] = launch->in[0].stride[i];
        args->n_kept *= args->kept.dim[i];
    }
    for (i = 0; i < (int)args->reduced.ndim; i++) {
        args->reduced.dim[i] = launch->in[0].dim[kept + i];
        args->reduced.stride[i] = launch->in[0].stride[kept + i];
        args->n_reduced *= args->reduced.dim[i];
    }
    args->count = launch->f[0];
    dvti_cuda_simplify_axes(&args->kept, &args->out, true);
    none = args->reduced;
    dvti_cuda_simplify_axes(&args->reduced, &none, sorts);
    r->wide = dvti_cuda_reach(&args->kept) + dvti_cuda_reach(&args->reduced) > narrow ||
              DVTI_MAX(args->n_kept, args->n_reduced) > narrow;
    dvti_cuda_reduce_shape(r, 16 / dvt_dtype_size(launch->in[0].dtype));
    args->items = r->tiles * args->n_chunks;
}

/* ---- the program ---- */
/* Adds the texts of the operation's row; reduce.cu defines the functions in them. */
static void dvti_cuda_add_row(dvti_text *text, int op) {
    switch (op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        dvti_text_add(text, "%s",                                                                  \
                      "#define RULE RULE_" #rule "\n#define METHOD METHOD_" #method                \
                      "\n#define NONE " #none "\n#define TERM " #term "\n#define JOIN W(" #join    \
                      ")\n#define FINISH " #finish "\n");                                          \
        break;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        break;
    }
}

DVTI_FN void dvti_cuda_describe_reduce(uint64_t variant, dvti_text *text) {
    const int op = (int)(variant >> 8 & 255);
    const dvti_reduce_row *row = dvti_reduce_row_of((dvti_op)op);
    dvti_text_add(text, "enum { RULE_SUM, RULE_FLOAT, RULE_SAME, RULE_BOOL, RULE_PLACE };\n"
                        "enum { METHOD_ADD, METHOD_WIDE2, METHOD_WIDE4, METHOD_EXTREME, "
                        "METHOD_BITS, METHOD_LOGSUMEXP };\n");
    dvti_text_add(text, "#define D %d\n#define OUT %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15));
    dvti_cuda_add_row(text, op);
    dvti_text_add(text, "#define SMALLEST %d\n", row->join == DVTI_JOIN_smaller);
    dvti_text_add(text,
                  "#define ROWS 0\n#define COLUMNS 1\n"
                  "#define CHUNKS 2\n#define KERNEL %d\n#define WIDE %d\n",
                  (int)(variant >> 16 & 3), (int)(variant >> 18 & 1));
    if (row->method == DVTI_METHOD_LOGSUMEXP)
        dvti_cuda_add_exp_below(text, (dvt_dtype)(variant & 15));
}

static dvti_cuda_grid dvti_cuda_reduce_grid(int64_t items) {
    dvti_cuda_grid grid;
    grid.x = DVTI_MIN(items, INT32_MAX);
    grid.y = grid.z = 1;
    grid.threads = 256;
    grid.shared = 0;
    return grid;
}

static dvt_status dvti_cuda_reduce_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_kreduce *args, bool wide,
                                         dvti_cuda_reduce_kernel kernel) {
    static const char *const entry[] = {"dvti_reduce_rows", "dvti_reduce_columns",
                                        "dvti_reduce_chunks"};
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(reduce);
    program.variant = (uint64_t)launch->in[0].dtype | (uint64_t)launch->out[0].dtype << 4 |
                      (uint64_t)launch->op << 8 | (uint64_t)kernel << 16 | (uint64_t)wide << 18;
    return dvti_cuda_start(gpu, launch, &program, entry[kernel], dvti_cuda_reduce_grid(args->items),
                           args, sizeof *args);
}

DVTI_FN dvt_status dvti_cuda_reduce(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_reduction *r = (const dvti_cuda_reduction *)(const void *)&launch->plan;
    const dvti_cuda_reduce_kernel kernel =
        r->columns ? DVTI_CUDA_REDUCE_COLUMNS : DVTI_CUDA_REDUCE_ROWS;
    dvti_kreduce args;
    dvt_status status;
    if (!r->split)
        return dvti_cuda_reduce_start(gpu, launch, &r->args, r->wide, kernel);
    args = r->args;
    args.partial = launch->workspace;
    status = dvti_cuda_reduce_start(gpu, launch, &args, r->wide, kernel);
    if (status != DVT_OK)
        return status;
    args.lanes = r->join_lanes;
    args.items = (args.n_kept - 1) / (256 / args.lanes) + 1;
    return dvti_cuda_reduce_start(gpu, launch, &args, r->wide, DVTI_CUDA_REDUCE_CHUNKS);
}

DVTI_PLAN_FITS(dvti_cuda_reduction)

DVTI_FN int64_t dvti_cuda_plan_reduce(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_reduction *r = (dvti_cuda_reduction *)(void *)&launch->plan;
    (void)gpu;
    if (dvti_cuda_view_size(&launch->out[0]) == 0)
        return 0;
    dvti_cuda_reduce_plan_of(launch, r);
    return r->split ? r->args.n_kept * r->args.n_chunks * 16 : 0;
}

/* ---- sums of parts ---- */
/* Describes the sum of `parts` arrays, one after another in the workspace, as a launch. */
static dvti_launch dvti_cuda_part_sums_of(const dvti_launch *launch, dvt_dtype dtype,
                                          int64_t parts) {
    const int64_t size = dvti_cuda_view_size(&launch->out[0]);
    dvti_launch sum = *launch;
    sum.op = DVTI_OP_sum;
    sum.n_in = sum.n_out = 1;
    sum.i[0] = 1;
    sum.f[0] = (double)parts;
    sum.in[0].data = launch->workspace;
    sum.in[0].dtype = dtype;
    sum.in[0].ndim = 2;
    sum.in[0].dim[0] = sum.in[0].stride[1] = sum.out[0].dim[0] = size;
    sum.in[0].dim[1] = parts;
    sum.in[0].stride[0] = sum.out[0].stride[0] = 1;
    sum.out[0].ndim = 1;
    return sum;
}

static int64_t dvti_cuda_part_bytes(const dvti_launch *launch, dvt_dtype dtype, int64_t parts) {
    return (parts * dvti_cuda_view_size(&launch->out[0]) * dvt_dtype_size(dtype) + 15) / 16 * 16;
}

DVTI_FN int64_t dvti_cuda_plan_part_sums(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         dvt_dtype dtype, int64_t parts) {
    dvti_launch sum = dvti_cuda_part_sums_of(launch, dtype, parts);
    return dvti_cuda_part_bytes(launch, dtype, parts) + dvti_cuda_plan_reduce(gpu, &sum);
}

DVTI_FN dvt_status dvti_cuda_part_sums(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvt_dtype dtype, int64_t parts) {
    dvti_launch sum = dvti_cuda_part_sums_of(launch, dtype, parts);
    sum.workspace = (char *)launch->workspace + dvti_cuda_part_bytes(launch, dtype, parts);
    dvti_cuda_plan_reduce(gpu, &sum);
    return dvti_cuda_reduce(gpu, &sum);
}

#undef DVTI_CUDA_BLOCKS
