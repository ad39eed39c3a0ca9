/* Plans reductions: merges and splits axes, chooses the kernel, cuts the work into items. */
#include "3_cpu/cpu_reduce.h"

#define DVTI_REDUCE_CHUNK 32768       /* reduced positions per chunk of one result */
#define DVTI_REDUCE_COLUMN_CHUNK 1024 /* the same for neighboring results */
#define DVTI_REDUCE_LONG 256          /* 16-bit floats of a row that is read in place */
#define DVTI_REDUCE_ITEM 8192         /* elements of a work item of short rows */

/* Splits the axes into kept and reduced ones. */
static void dvti_reduce_split(const dvti_launch *launch, dvti_reduce_plan *plan) {
    int kept = (int)launch->i[0], i;
    dvti_view *reduced = &plan->reduced;
    int64_t width;
    plan->kept = plan->reduced = plan->whole = launch->in[0];
    plan->kept.ndim = kept;
    reduced->ndim = launch->in[0].ndim - kept;
    for (i = 0; i < reduced->ndim; i++) {
        reduced->dim[i] = launch->in[0].dim[kept + i];
        reduced->stride[i] = launch->in[0].stride[kept + i];
    }
    plan->size = dvt_dtype_size(launch->in[0].dtype);
    plan->n_kept = dvti_view_size(&plan->kept);
    plan->n_reduced = dvti_view_size(reduced);
    dvti_merge_axes(&plan->kept);
    dvti_merge_axes(reduced);
    dvti_merge_axes(&plan->whole);
    plan->chunk = DVTI_REDUCE_CHUNK;
    width = plan->kept.dim[plan->kept.ndim - 1];
    plan->columns = plan->n_reduced > 1 && width > 1 &&
                    plan->kept.stride[plan->kept.ndim - 1] < reduced->stride[reduced->ndim - 1];
    if (plan->columns)
        plan->chunk = DVTI_REDUCE_COLUMN_CHUNK;
    plan->n_chunks = DVTI_MAX((plan->n_reduced + plan->chunk - 1) / plan->chunk, 1);
}

/* Divides the work into items. Full pages of columns read faster, if each thread gets enough of
   them. */
static void dvti_reduce_cut(dvti_reduce_plan *plan, int threads) {
    const int last = plan->kept.ndim - 1;
    const int64_t width = plan->kept.dim[last];
    const bool pages = plan->readable && plan->wide == 4 && plan->kept.stride[last] == 1 &&
                       plan->method != DVTI_METHOD_LOGSUMEXP;
    plan->across = 1;
    if (!plan->columns) {
        plan->tile = DVTI_MIN(DVTI_BLOCK, DVTI_MAX(DVTI_REDUCE_ITEM / plan->n_reduced, 1));
        plan->n_tiles = (plan->n_kept + plan->tile - 1) / plan->tile;
        return;
    }
    plan->tile = pages ? DVTI_ACROSS : DVTI_BLOCK;
    threads = dvti_cpu_threads(threads);
    if (threads > 1 &&
        plan->n_kept / width * ((width + plan->tile - 1) / plan->tile) * plan->n_chunks <
            2 * threads)
        plan->tile = DVTI_BLOCK;
    plan->tile = DVTI_MIN(plan->tile, width);
    plan->across = (width + plan->tile - 1) / plan->tile;
    plan->n_tiles = plan->n_kept / width * plan->across;
}

/* Chooses the class of blocks, the kernel, and whether this reads x's dtype: any and all read every
   dtype, sums of floats also 16-bit ones. */
static void dvti_reduce_choose(const dvti_launch *launch, const dvti_simd *simd,
                               dvti_reduce_plan *plan) {
    const dvti_reduce_row *row = dvti_reduce_row_of(launch->op); /* NULL: variance */
    const dvt_dtype dtype = launch->in[0].dtype;
    const bool narrow = dtype == DVT_F16 || dtype == DVT_BF16;
    const bool integer = row && row->rule != DVTI_RESULT_FLOAT && row->method != DVTI_METHOD_BITS &&
                         !dvt_dtype_is_float(dtype);
    const dvt_dtype own = integer ? DVT_I64 : dtype == DVT_F32 || narrow ? DVT_F32 : DVT_F64;
    plan->simd = simd;
    plan->method = row ? row->method : DVTI_METHOD_ADD;
    plan->join = row ? row->join : DVTI_JOIN_add;
    plan->place = row && row->rule == DVTI_RESULT_PLACE;
    if (plan->method == DVTI_METHOD_BITS) {
        plan->kernel = dvti_simd_reduce_of(simd)->any_all;
        plan->readable = true;
        plan->compute = DVTI_F64;
        plan->wide = 8;
        return;
    }
    plan->kernel = integer          ? dvti_reduce_integers(launch->op)
                   : own == DVT_F32 ? (row ? dvti_simd_reduce_of(simd)->reduce(launch->op)
                                           : dvti_simd_reduce_of(simd)->variance)
                   : row            ? dvti_simd_reduce_of(simd)->reduce64(launch->op)
                                    : dvti_simd_reduce_of(simd)->variance64;
    plan->readable = dtype == own;
    plan->compute = integer ? DVTI_I64 : own == DVT_F32 ? DVTI_F32 : DVTI_F64;
    plan->wide = dvt_dtype_size(own);
}

/* Returns whether results have no elements: kernels expect at least one. */
static bool dvti_reduce_is_empty(const dvti_launch *launch) {
    int i;
    for (i = (int)launch->i[0]; i < launch->in[0].ndim; i++)
        if (launch->in[0].dim[i] == 0)
            return true;
    return false;
}

DVTI_PLAN_FITS(dvti_reduce_plan)

DVTI_FN int64_t dvti_cpu_reduce_plan(dvti_launch *launch, int threads) {
    dvti_reduce_plan *plan = (dvti_reduce_plan *)(void *)&launch->plan;
    const dvti_simd *simd = dvti_simd_now();
    if (!simd || dvti_reduce_is_empty(launch)) {
        plan->simd = NULL;
        return 0;
    }
    dvti_reduce_choose(launch, simd, plan);
    dvti_reduce_split(launch, plan);
    /* Long 16-bit rows are read in place. For short ones a partial vector costs more than a block
       copy. */
    if (plan->compute == DVTI_F32 && plan->method == DVTI_METHOD_ADD &&
        launch->op != DVTI_OP_variance &&
        (plan->columns ? 4 * plan->kept.dim[plan->kept.ndim - 1] : plan->n_reduced) >=
            DVTI_REDUCE_LONG)
        plan->readable = true;
    dvti_reduce_cut(plan, threads);
    plan->plain = plan->readable && plan->reduced.ndim == 1 &&
                  (plan->reduced.stride[0] == 1 || plan->n_reduced == 1);
    return plan->n_chunks > 1 ? plan->n_kept * plan->n_chunks * (int64_t)sizeof(dvti_partial) : 0;
}

#undef DVTI_REDUCE_CHUNK
#undef DVTI_REDUCE_COLUMN_CHUNK
#undef DVTI_REDUCE_LONG
#undef DVTI_REDUCE_ITEM
