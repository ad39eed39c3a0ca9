/* Matrix products: kernel matmul (kernels/matmul.cu, and cuda_matmul_mma.c where tensor cores can
   be used). All choices depend on the launch, the GPU, its driver and NVRTC alone. So the same
   product gives the same bits every time. */
#include "3_cuda/launch/cuda_matmul.h"

/* The kernels of matmul.cu, by its KIND. */
enum { DVTI_MM_SMALL, DVTI_MM_MEDIUM, DVTI_MM_LARGE, DVTI_MM_ROWS, DVTI_MM_COLUMNS, DVTI_MM_SUM };

/* Returns the size of the type in which operands are staged and summed. Narrow integers wrap alike
   in 32 bits. */
static int dvti_cuda_mm_bytes(dvt_dtype dtype) {
    return dtype == DVT_F64 || dtype == DVT_I64 || dtype == DVT_BOOL ? 8 : 4;
}

/* lies: DVTI_MM_ flags of a, then of b; 0 for kernels that read them from the launch. */
static uint64_t dvti_cuda_mm_variant(dvt_dtype dtype, int kind, bool wide, int lies) {
    return (uint64_t)dtype | (uint64_t)kind << 4 | (uint64_t)wide << 8 | (uint64_t)lies << 9;
}

DVTI_FN void dvti_cuda_describe_matmul(uint64_t variant, dvti_text *text) {
    dvt_dtype dtype = (dvt_dtype)(variant & 15);
    const int kind = (int)(variant >> 4 & 15);
    const char *stage = dtype == DVT_F64                 ? "double"
                        : dvt_dtype_is_float(dtype)      ? "float"
                        : dvti_cuda_mm_bytes(dtype) == 8 ? "uint64_t"
                                                         : "unsigned";
    dvti_text_add(text, "#define D %d\n#define S %s\n#define KIND %d\n#define WIDE %d\n",
                  (int)dtype, stage, kind, (int)(variant >> 8 & 1));
    if (kind == DVTI_MM_SMALL)
        dvti_text_add(text, "#define A_LIES (int)p.a_lies\n#define B_LIES (int)p.b_lies\n");
    else
        dvti_text_add(text, "#define A_LIES %d\n#define B_LIES %d\n", (int)(variant >> 9 & 3),
                      (int)(variant >> 11 & 3));
    dvti_cuda_add_matmul_jobs(text);
}

DVTI_FN dvti_cuda_mm_side dvti_cuda_mm_side_of(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b) {
    const dvti_kmatmul *p = &plan->args;
    dvti_cuda_mm_side side;
    side.data = b ? p->b : p->a;
    side.dtype = dtype;
    side.lines = b ? p->m : p->n;
    side.k = p->k;
    side.line_stride = b ? p->b_col : p->a_row;
    side.k_stride = b ? p->b_k : p->a_k;
    side.batch = b ? p->b_batch : p->a_batch;
    side.batch_axes = (int)p->ndim;
    return side;
}

DVTI_FN bool dvti_cuda_mm_packed(const dvti_cuda_mm_side *side, bool along_k, int64_t group) {
    int64_t along = along_k ? side->k_stride : side->line_stride;
    int64_t across = along_k ? side->line_stride : side->k_stride;
    int64_t across_extent = along_k ? side->lines : side->k;
    int i;
    if (along != 1 || (across % group != 0 && across_extent > 1) ||
        (uintptr_t)side->data % (uintptr_t)(group * dvt_dtype_size(side->dtype)) != 0)
        return false;
    for (i = 0; i < side->batch_axes; i++)
        if (side->batch[i] % group != 0)
            return false;
    return true;
}

/* Simplifies the batch axes. Axes of extent 1 are dropped. If all matrices share one b and those of
   a are stacked in memory, they become one tall matrix. */
static void dvti_cuda_mm_batch(const dvti_launch *launch, dvti_kmatmul *p) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    bool tall = true;
    int i;
    p->batches = 1;
    for (i = 0; i < out->ndim - 2; i++) {
        if (out->dim[i] == 1)
            continue;
        p->dim[p->ndim] = out->dim[i];
        p->a_batch[p->ndim] = a->stride[i];
        p->b_batch[p->ndim++] = b->stride[i];
        p->batches *= out->dim[i];
    }
    for (i = 0; i < p->ndim; i++) {
        int64_t inside = i + 1 < p->ndim ? p->a_batch[i + 1] * p->dim[i + 1] : p->a_row * p->n;
        tall = tall && p->b_batch[i] == 0 && p->a_batch[i] == inside;
    }
    if (!tall)
        return;
    p->n *= p->batches;
    p->batches = 1;
    p->ndim = 0;
}

/* Swaps the operands of a product whose result is a column: it is the row of the transposed
   product. */
static void dvti_cuda_mm_swap(dvti_kmatmul *p) {
    int i;
    const void *data = p->a;
    int64_t stride = p->a_k, row = p->a_row;
    if (p->m != 1 || p->n == 1)
        return;
    p->a = p->b;
    p->b = data;
    p->a_row = p->b_col;
    p->a_k = p->b_k;
    p->b_k = stride;
    p->b_col = row;
    p->m = p->n;
    p->n = 1;
    p->bias_step = 0; /* its one element belongs to what were rows */
    for (i = 0; i < p->ndim; i++) {
        int64_t step = p->a_batch[i];
        p->a_batch[i] = p->b_batch[i];
        p->b_batch[i] = step;
    }
}

DVTI_FN void dvti_cuda_mm_divide(dvti_cuda_mm *plan, int64_t rows, int64_t cols, int64_t splits) {
    dvti_kmatmul *p = &plan->args;
    p->row_tiles = (p->n - 1) / rows + 1;
    p->col_tiles = (p->m - 1) / cols + 1;
    p->chunk = DVTI_MAX(p->k, 1);
    p->splits = 1;
    if (splits > 1) {
        p->chunk = ((p->k - 1) / splits / DVTI_MM_CHUNK + 1) * DVTI_MM_CHUNK;
        p->splits = (p->k - 1) / p->chunk + 1;
    }
    p->jobs = p->row_tiles * p->col_tiles * p->splits * p->batches;
}

/* A full round of the GPU takes the
   time of one tile plus the cost of starting it. Partial results are written and read again, by one
   more kernel. */
DVTI_FN int dvti_cuda_mm_choose(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                const dvti_cuda_mm_tile *tiles, int n, int64_t most, double write,
                                int64_t *splits, double *best) {
    const dvti_kmatmul *p = &plan->args;
    const double processors = dvti_cuda_physical_of(gpu)->processors;
    const double results = (double)p->n * (double)p->m * (double)p->batches;
    int kind = 0, i;
    *best = -1;
    *splits = 1;
    for (i = 0; i < n; i++) {
        double jobs = (double)((p->n - 1) / tiles[i].rows + 1) *
                      (double)((p->m - 1) / tiles[i].cols + 1) * (double)p->batches;
        double area = (double)tiles[i].rows * (double)tiles[i].cols / tiles[i].rate;
        int64_t pieces;
        for (pieces = 1; pieces == 1 || (pieces <= most && p->k / pieces >= 4 * DVTI_MM_CHUNK);
             pieces *= 2) {
            double depth = (double)p->k / (double)pieces + DVTI_MM_CHUNK;
            double rounds = ceil(jobs * (double)pieces / processors);
            double time = rounds * area * depth;
            if (pieces > 1)
                time += (double)pieces * results * write / processors + 6000 * write;
            if (pieces > 1 && jobs * (double)pieces > 4 * processors)
                break;
            if (*best < 0 || time < *best) {
                *best = time;
                kind = i;
                *splits = pieces;
            }
        }
    }
    return kind;
}

/* Returns how a kernel of tiles reads the operand: DVTI_MM_ flags. `copied`: elements are copied
   unchanged. Then an operand that is transposed is copied element by element, and may have any
   alignment. */
static int dvti_cuda_mm_lies(const dvti_cuda_mm_side *side, bool copied, int64_t group) {
    const bool along_k = llabs(side->k_stride) < llabs(side->line_stride);
    const bool wide = (along_k && copied && side->k_stride == 1) ||
                      (dvti_cuda_mm_packed(side, along_k, group) &&
                       (along_k ? side->k : side->lines) % group == 0);
    return (along_k ? DVTI_MM_ALONG_K : 0) | (wide ? DVTI_MM_WIDE : 0);
}

/* whole: k is not split. */
static void dvti_cuda_mm_tiles(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, dvt_dtype dtype,
                               bool whole) {
    const int64_t group = 16 / dvti_cuda_mm_bytes(dtype);
    const dvti_cuda_mm_tile tiles[] = {
        {32, 32, 0.35}, {64, 64, 0.7}, {128, group == 4 ? 128 : 64, 1}};
    const dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    const dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    const bool copied =
        dvti_cuda_physical_of(gpu)->cc >= 80 && dvt_dtype_size(dtype) == dvti_cuda_mm_bytes(dtype);
    int64_t splits;
    int kind = dvti_cuda_mm_choose(gpu, plan, tiles, DVTI_LENGTH(tiles), whole ? 1 : INT64_MAX, 16,
                                   &splits, &plan->time);
    int a_lies, b_lies;
    dvti_cuda_mm_divide(plan, tiles[kind].rows, tiles[kind].cols, splits);
    a_lies = dvti_cuda_mm_lies(&a, copied, group);
    b_lies = dvti_cuda_mm_lies(&b, copied, group);
    plan->args.a_lies = a_lies;
    plan->args.b_lies = b_lies;
    plan->program.variant =
        dvti_cuda_mm_variant(dtype, kind, false, kind == DVTI_MM_SMALL ? 0 : a_lies | b_lies << 2);
    /* The address must be aligned even if nothing is copied. The stride of an axis that is never
       stepped along may be anything. */
    if (plan->args.k == 1)
        plan->args.a_k = plan->args.b_k = 0;
    plan->entry = "dvti_matmul_tiles";
    plan->threads = kind == DVTI_MM_SMALL ? 64 : kind == DVTI_MM_MEDIUM ? 128 : 256;
}

/* Chooses one warp per element where that fills the GPU, else eight; k is split where even that
   does not. */
static void dvti_cuda_mm_rows(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, dvt_dtype dtype) {
    const int64_t group = 16 / dvti_cuda_mm_bytes(dtype),
                  full = 4 * dvti_cuda_physical_of(gpu)->processors;
    dvti_kmatmul *p = &plan->args;
    dvti_cuda_mm_side x = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side w = dvti_cuda_mm_side_of(plan, dtype, true);
    bool wide = p->k % group == 0 && dvti_cuda_mm_packed(&x, true, group) &&
                dvti_cuda_mm_packed(&w, true, group);
    int64_t blocks = p->m * p->batches;
    p->team = p->k < 1024 || blocks / 8 >= full ? 1 : 8;
    blocks = blocks * p->team / 8 + 1;
    dvti_cuda_mm_divide(plan, 1, 8 / p->team, DVTI_MIN(DVTI_MIN(full / blocks, p->k / 8192), 1024));
    plan->program.variant = dvti_cuda_mm_variant(dtype, DVTI_MM_ROWS, wide, 0);
    plan->entry = "dvti_matmul_rows";
    plan->threads = 256;
}

static void dvti_cuda_mm_columns(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, dvt_dtype dtype) {
    const int64_t group = 16 / dvti_cuda_mm_bytes(dtype),
                  full = 4 * dvti_cuda_physical_of(gpu)->processors;
    dvti_kmatmul *p = &plan->args;
    dvti_cuda_mm_side w = dvti_cuda_mm_side_of(plan, dtype, true);
    bool wide = p->m % group == 0 && dvti_cuda_mm_packed(&w, false, group);
    int64_t blocks = ((p->m - 1) / (32 * group) + 1) * p->batches;
    dvti_cuda_mm_divide(plan, 1, 32 * group, DVTI_MIN(full / blocks, p->k / 256));
    plan->program.variant = dvti_cuda_mm_variant(dtype, DVTI_MM_COLUMNS, wide, 0);
    plan->entry = "dvti_matmul_columns";
    plan->threads = 256;
}

/* ---- the plan ---- */
static void dvti_cuda_mm_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                              dvti_cuda_mm *plan) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    dvti_kmatmul *p = &plan->args;
    int last = out->ndim - 1;
    dvti_clear(plan, sizeof *plan);
    plan->program = DVTI_CUDA_PROGRAM(matmul);
    plan->partial = dvti_cuda_mm_bytes(out->dtype);
    p->a = a->data;
    p->b = b->data;
    p->out = out->data;
    p->n = out->dim[last - 1];
    p->m = out->dim[last];
    p->k = a->dim[last];
    p->a_row = a->stride[last - 1];
    p->a_k = a->stride[last];
    p->b_k = b->stride[last - 1];
    p->b_col = b->stride[last];
    p->bias = launch->epilogue.bias.data;
    p->bias_step = 1;
    p->mask = launch->epilogue.mask;
    p->relu = launch->epilogue.activation == DVTI_RELU;
    dvti_cuda_mm_batch(launch, p);
    dvti_cuda_mm_swap(p);
    if (p->n == 1 && p->k > 0 && (p->m == 1 || llabs(p->b_k) < llabs(p->b_col)))
        dvti_cuda_mm_rows(gpu, plan, out->dtype);
    else if (p->n == 1 && p->k > 0)
        dvti_cuda_mm_columns(gpu, plan, out->dtype);
    else {
        if (!dvti_cuda_mma_plan(gpu, launch, plan))
            dvti_cuda_mm_tiles(gpu, plan, out->dtype, false);
        dvti_cuda_wgmma_repack(gpu, launch, plan);
    }
    p->wide = p->m % (16 / plan->partial) == 0 && (uintptr_t)p->out % 16 == 0;
}

DVTI_PLAN_FITS(dvti_cuda_mm)

/* Returns the bytes of partial results, a multiple of 256. */
static int64_t dvti_cuda_mm_partial_bytes(const dvti_cuda_mm *plan) {
    const dvti_kmatmul *p = &plan->args;
    if (p->splits == 1)
        return 0;
    return (p->splits * p->batches * p->n * p->m * plan->partial + 255) / 256 * 256;
}

DVTI_FN int64_t dvti_cuda_plan_matmul(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_mm *plan = (dvti_cuda_mm *)(void *)&launch->plan;
    if (dvti_cuda_view_size(&launch->out[0]) == 0)
        return 0;
    dvti_cuda_mm_plan(gpu, launch, plan);
    launch->spare = plan->parts > 0;
    return dvti_cuda_mm_partial_bytes(plan) + dvti_cuda_packed_bytes(plan, launch->out[0].dtype);
}

static dvt_status dvti_cuda_mm_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                     const dvti_cuda_mm *plan) {
    dvti_cuda_grid grid;
    if (plan->program.family == DVTI_CUDA_FAMILY_matmul_wgmma)
        return dvti_cuda_wgmma_start(gpu, launch, plan);
    grid.y = (plan->args.jobs - 1) / INT32_MAX + 1;
    grid.x = (plan->args.jobs - 1) / grid.y + 1;
    grid.z = 1;
    grid.threads = plan->threads;
    grid.shared = plan->shared;
    return dvti_cuda_start(gpu, launch, &plan->program, plan->entry, grid, &plan->args,
                           sizeof plan->args);
}

DVTI_FN dvt_status dvti_cuda_matmul(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_mm *planned = (const dvti_cuda_mm *)(const void *)&launch->plan;
    const dvt_dtype dtype = launch->out[0].dtype;
    dvti_cuda_mm plan;
    dvt_status status;
    if (!launch->workspace) /* neither partial results nor copies */
        return dvti_cuda_mm_start(gpu, launch, planned);
    plan = *planned;
    plan.args.partial = launch->workspace;
    if (plan.parts)
        plan.copies = (const char *)launch->workspace + dvti_cuda_mm_partial_bytes(&plan);
    if (plan.parts == 2)
        plan.args.special = (const unsigned *)(const void *)plan.copies;
    status = dvti_cuda_mm_start(gpu, launch, &plan);
    if (status == DVT_OK && plan.args.splits > 1) {
        dvti_cuda_program sum = DVTI_CUDA_PROGRAM(matmul);
        sum.variant = dvti_cuda_mm_variant(dtype, DVTI_MM_SUM, false, 0);
        status =
            dvti_cuda_start(gpu, launch, &sum, "dvti_matmul_sum",
                            dvti_cuda_grid_for(gpu, dvti_cuda_view_size(&launch->out[0]), 256, 1),
                            &plan.args, sizeof plan.args);
    }
    if (status == DVT_OK && plan.args.special) { /* computes what cannot be split into parts */
        plan.program = DVTI_CUDA_PROGRAM(matmul);
        plan.shared = 0;
        dvti_cuda_mm_tiles(gpu, &plan, dtype, true);
        status = dvti_cuda_mm_start(gpu, launch, &plan);
    }
    return status;
}
