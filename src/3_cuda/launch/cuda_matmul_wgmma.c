/* Matrix products by warpgroups, on compute capability 9.0: kernels/matmul_wgmma.cu (wgmma and
   tensor maps) and kernels/matmul_pack.cu (copies of operands that tensor maps can describe). */
#include "3_cuda/launch/cuda_matmul.h"

#define DVTI_WGMMA_WIDE (1 << 4) /* flags of a variant, with the dtype in bits 0 to 3 */
#define DVTI_WGMMA_A_ALONG_K (1 << 5)
#define DVTI_WGMMA_B_ALONG_K (1 << 6)
#define DVTI_WGMMA_PACKED (1 << 7)
#define DVTI_WGMMA_TWO_PARTS (1 << 8)

/* Writes the instruction, which has an operand for each of its accumulators. TF32 has no transposed
   operands. */
static void dvti_cuda_describe_multiply(uint64_t variant, int cols, dvti_text *text) {
    const dvt_dtype d = (dvt_dtype)(variant & 15);
    const char *dtype = d == DVT_F16 ? "f16" : d == DVT_BF16 ? "bf16" : "tf32";
    int n = cols / 2, i;
    dvti_text_add(text,
                  "#define MULTIPLY \"setp.ne.b32 p, %%%d, 0;\\n\" "
                  "\"wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {",
                  n + 2, cols, d == DVT_F32 ? 8 : 16, dtype, dtype);
    for (i = 0; i < n; i++)
        dvti_text_add(text, "%s%%%d", i ? ", " : "", i);
    dvti_text_add(text, "}, %%%d, %%%d, p, 1, 1", n, n + 1);
    if (d != DVT_F32)
        dvti_text_add(text, ", %d, %d", !(variant & DVTI_WGMMA_A_ALONG_K),
                      !(variant & DVTI_WGMMA_B_ALONG_K));
    dvti_text_add(text, ";\\n\"\n#define SUMS ");
    for (i = 0; i < n; i++)
        dvti_text_add(text, "%s\"+f\"(sum[%d])", i ? ", " : "", i);
    dvti_text_add(text, "\n");
}

DVTI_FN void dvti_cuda_describe_matmul_wgmma(uint64_t variant, dvti_text *text) {
    const int cols = variant & DVTI_WGMMA_WIDE ? 256 : 128;
    dvti_text_add(text, "#define D %d\n#define ROWS 128\n#define COLS %d\n", (int)(variant & 15),
                  cols);
    dvti_text_add(text, "#define A_ALONG_K %d\n#define B_ALONG_K %d\n#define PARTS %d\n",
                  (variant & DVTI_WGMMA_A_ALONG_K) != 0, (variant & DVTI_WGMMA_B_ALONG_K) != 0,
                  variant & DVTI_WGMMA_TWO_PARTS ? 2 : 1);
    dvti_cuda_describe_multiply(variant, cols, text);
    dvti_cuda_add_matmul_tiles(text);
    if (variant & DVTI_WGMMA_PACKED)
        dvti_cuda_add_matmul_pack(text);
}

/* ---- tensor maps ---- */
/* An operand as a tensor map: the axis along memory, the one across it, the batch. Strides are in
   elements, of the last two. */
typedef struct dvti_cuda_mm_map {
    int64_t dim[3], stride[2];
} dvti_cuda_mm_map;

/* Returns false if a tensor map cannot describe the operand. Its strides must be multiples of each
   other, and of 16 bytes. An operand without an own batch stride has one matrix. */
static bool dvti_cuda_mm_map_of(const dvti_cuda_mm_side *side, bool along_k, int64_t batches,
                                dvti_cuda_mm_map *map) {
    const int64_t limit = (int64_t)1 << 38, most = INT32_MAX - 256; /* coordinates have 32 bits */
    const int64_t group = 16 / dvt_dtype_size(side->dtype);
    bool batched = side->batch_axes == 1 && side->batch[0] != 0;
    map->dim[0] = along_k ? side->k : side->lines;
    map->dim[1] = along_k ? side->lines : side->k;
    map->dim[2] = batched ? batches : 1;
    map->stride[0] = along_k ? side->line_stride : side->k_stride;
    if (map->dim[1] == 1)
        map->stride[0] = (map->dim[0] + group - 1) / group * group;
    map->stride[1] = batched ? side->batch[0] : map->dim[1] * map->stride[0];
    return side->batch_axes <= 1 && map->dim[0] <= most && map->dim[1] <= most &&
           map->dim[2] <= most && map->stride[0] >= map->dim[0] && map->stride[0] < limit &&
           map->stride[1] < limit && map->stride[1] % map->stride[0] == 0 &&
           map->stride[1] / map->stride[0] >= map->dim[1];
}

/* Writes a tensor map: boxes of 64 lines x 128 bytes, the swizzle of 128 bytes, zeros outside. */
static dvti_cu_result dvti_cuda_mm_encode(const dvti_cuda_mm_side *side, bool along_k,
                                          int64_t batches, uint64_t *to) {
    const dvt_dtype dtype = side->dtype;
    const int64_t size = dvt_dtype_size(dtype);
    const unsigned box[3] = {(unsigned)(128 / size), 64, 1}, step[3] = {1, 1, 1};
    dvti_cuda_mm_map map;
    uint64_t space[24], dim[3], stride[2];
    uint64_t *at = space + (64 - (uintptr_t)space % 64) / 8; /* at a multiple of 64 bytes */
    dvti_cu_result result;
    int i;
    dvti_cuda_mm_map_of(side, along_k, batches, &map);
    for (i = 0; i < 3; i++)
        dim[i] = (uint64_t)map.dim[i];
    for (i = 0; i < 2; i++)
        stride[i] = (uint64_t)(map.stride[i] * size);
    result = dvti_cuda()->cuTensorMapEncodeTiled(at,
                                                 dtype == DVT_F16    ? DVTI_CU_TENSOR_MAP_FLOAT16
                                                 : dtype == DVT_BF16 ? DVTI_CU_TENSOR_MAP_BFLOAT16
                                                                     : DVTI_CU_TENSOR_MAP_FLOAT32,
                                                 3, (void *)side->data, dim, stride, box, step, 0,
                                                 DVTI_CU_TENSOR_MAP_SWIZZLE_128B,
                                                 DVTI_CU_TENSOR_MAP_PROMOTION_256B, 0);
    memcpy(to, at, 128);
    return result;
}

/* ---- the choice ---- */
/* Drivers know tensor maps since 12.0. */
static bool dvti_cuda_has_wgmma(const dvti_cuda_gpu *gpu) {
    return dvti_cuda_physical_of(gpu)->cc == 90 && dvti_cuda()->cuTensorMapEncodeTiled;
}

DVTI_FN bool dvti_cuda_wgmma_serves(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                    dvt_dtype dtype, bool a_along_k, bool b_along_k) {
    dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    dvti_cuda_mm_map map;
    return (dtype == DVT_F16 || dtype == DVT_BF16) && plan->args.k > 0 &&
           dvti_cuda_mm_map_of(&a, a_along_k, plan->args.batches, &map) &&
           dvti_cuda_mm_map_of(&b, b_along_k, plan->args.batches, &map) && dvti_cuda_has_wgmma(gpu);
}

/* Looks for the program last, because it may be on disk. */
static bool dvti_cuda_wgmma_set(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, uint64_t variant) {
    static const char entry[] = "dvti_matmul_wgmma";
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(matmul_wgmma);
    program.variant = variant;
    if (!dvti_cuda_has_exact(gpu->physical, "dvt_matmul", program, entry))
        return false;
    plan->program = program;
    plan->entry = entry;
    plan->threads = 384;
    /* stages, results and barriers, as the kernel places them: 3 stages of 64 KiB, 4 of 48 or 6 of
       32 */
    plan->shared = 192 * 1024 + 8 * 16 * 64 * 4 + 12 * 8;
    return true;
}

DVTI_FN bool dvti_cuda_wgmma_use(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, dvt_dtype dtype,
                                 bool wide, bool a_along_k, bool b_along_k) {
    return dvti_cuda_wgmma_set(gpu, plan,
                               (uint64_t)dtype | (wide ? DVTI_WGMMA_WIDE : 0) |
                                   (a_along_k ? DVTI_WGMMA_A_ALONG_K : 0) |
                                   (b_along_k ? DVTI_WGMMA_B_ALONG_K : 0));
}

/* ---- copies of operands ---- */
/* Returns the number of different matrices of an operand. */
static int64_t dvti_cuda_pack_matrices(const dvti_cuda_mm *plan, const dvti_cuda_mm_side *side) {
    int i;
    for (i = 0; i < side->batch_axes; i++)
        if (side->batch[i] != 0)
            return plan->args.batches;
    return 1;
}

static int64_t dvti_cuda_pack_pitch(const dvti_cuda_mm_side *side) {
    const int64_t group = 16 / dvt_dtype_size(side->dtype);
    return (side->k + group - 1) / group * group;
}

/* Returns the bytes of a copy, a multiple of 256. */
static int64_t dvti_cuda_pack_bytes(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b) {
    const dvti_cuda_mm_side side = dvti_cuda_mm_side_of(plan, dtype, b);
    const int64_t bytes = plan->parts * dvti_cuda_pack_matrices(plan, &side) * side.lines *
                          dvti_cuda_pack_pitch(&side) * dvt_dtype_size(dtype);
    return (bytes + 255) / 256 * 256;
}

DVTI_FN int64_t dvti_cuda_packed_bytes(const dvti_cuda_mm *plan, dvt_dtype dtype) {
    if (!plan->parts)
        return 0;
    return 256 + dvti_cuda_pack_bytes(plan, dtype, false) + dvti_cuda_pack_bytes(plan, dtype, true);
}

/* Returns an operand's copy. Its matrices are one batch axis. */
static dvti_cuda_mm_side dvti_cuda_packed_side(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b,
                                               int64_t *matrix) {
    dvti_cuda_mm_side side = dvti_cuda_mm_side_of(plan, dtype, b);
    side.data = plan->copies + 256 + (b ? dvti_cuda_pack_bytes(plan, dtype, false) : 0);
    side.line_stride = dvti_cuda_pack_pitch(&side);
    side.k_stride = 1;
    *matrix = side.lines * side.line_stride;
    side.batch = matrix;
    side.batch_axes = 1;
    return side;
}

/* The unit of time is that of dvti_cuda_mm_choose. Tensor cores multiply 16-bit floats about 16
   times as fast as CUDA cores multiply float32, TF32 8 times. Two parts of a tile need three
   products, and twice the bytes, which limit them as well: 2.7 times as fast. The copies are
   limited by memory: one byte takes as long as about nine multiplications. Launches take a few
   microseconds. A small k does not hide the time to store results, and its sums are more exact
   in float32. */
static const double dvti_cuda_pack_byte = 9, dvti_cuda_pack_launch = 6e5;

#define DVTI_PACK_LEAST_K 64

static bool dvti_cuda_may_repack(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                 const dvti_kmatmul *p) {
    const int64_t most = INT32_MAX - 256;
    const dvt_dtype dtype = launch->out[0].dtype;
    return dvti_cuda_has_wgmma(gpu) && !launch->lean &&
           (dtype == DVT_F16 || dtype == DVT_BF16 || (dtype == DVT_F32 && launch->i[0])) &&
           p->k >= DVTI_PACK_LEAST_K && p->n <= most && p->m <= most && p->k <= most &&
           p->batches <= most / 2;
}

/* Returns the bytes of the copies, which may be more than INT64_MAX for repeated operands. */
static double dvti_cuda_copied_bytes(const dvti_cuda_mm *plan, dvt_dtype dtype) {
    double bytes = 0;
    int b;
    for (b = 0; b < 2; b++) {
        const dvti_cuda_mm_side side = dvti_cuda_mm_side_of(plan, dtype, b);
        bytes += (double)dvti_cuda_pack_matrices(plan, &side) * (double)side.lines *
                 (double)dvti_cuda_pack_pitch(&side);
    }
    return bytes * plan->parts * (double)dvt_dtype_size(dtype);
}

/* Copies the operands if that is faster than the plan so far. */
static bool dvti_cuda_repack_faster(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                    dvti_cuda_mm *plan) {
    const dvti_cuda_physical *physical = dvti_cuda_physical_of(gpu);
    const dvt_dtype dtype = launch->out[0].dtype;
    const bool split = dtype == DVT_F32 && launch->i[0] == 2;
    const double speed = dtype == DVT_F32 ? 8 : 16;
    const dvti_cuda_mm_tile tiles[] = {{128, 128, 1.3 * speed}, {128, 256, 1.6 * speed}},
                            in_parts[] = {{128, 128, speed / 3}};
    dvti_cuda_mm packed = *plan;
    uint64_t variant;
    double bytes;
    int64_t splits;
    int tile;
    packed.parts = split ? 2 : 1;
    tile = dvti_cuda_mm_choose(gpu, &packed, split ? in_parts : tiles, split ? 1 : 2, INT64_MAX, 16,
                               &splits, &packed.time);
    bytes = dvti_cuda_copied_bytes(&packed, dtype);
    packed.time += bytes * (1 + 1.0 / packed.parts) * dvti_cuda_pack_byte / physical->processors +
                   dvti_cuda_pack_launch * (2 * packed.parts - 1);
    variant = (uint64_t)dtype | (tile == 1 ? DVTI_WGMMA_WIDE : 0) | DVTI_WGMMA_A_ALONG_K |
              DVTI_WGMMA_B_ALONG_K | DVTI_WGMMA_PACKED | (split ? DVTI_WGMMA_TWO_PARTS : 0);
    if (packed.time >= plan->time || bytes > (double)physical->memory / 16 ||
        !dvti_cuda_wgmma_set(gpu, &packed, variant))
        return false;
    dvti_cuda_mm_divide(&packed, 128, tiles[tile].cols, splits);
    *plan = packed;
    return true;
}

DVTI_FN bool dvti_cuda_wgmma_repack(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                    dvti_cuda_mm *plan) {
    return dvti_cuda_may_repack(gpu, launch, &plan->args) &&
           dvti_cuda_repack_faster(gpu, launch, plan);
}

/* Starts the copies of both operands. */
static dvt_status dvti_cuda_mm_pack(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                    const dvti_cuda_mm *plan) {
    const dvt_dtype dtype = launch->out[0].dtype;
    const dvti_kmatmul *p = &plan->args;
    dvti_kpack args;
    dvti_cuda_grid grid;
    dvti_cu_result result = DVTI_CU_OK;
    dvt_status status;
    int64_t matrix;
    int b;
    dvti_clear(&args, sizeof args);
    for (b = 0; b < 2; b++) {
        const dvti_cuda_mm_side from = dvti_cuda_mm_side_of(plan, dtype, b);
        const dvti_cuda_mm_side to = dvti_cuda_packed_side(plan, dtype, b, &matrix);
        args.from[b] = from.data;
        args.to[b] = (void *)(uintptr_t)to.data;
        args.lines[b] = from.lines;
        args.line_stride[b] = from.line_stride;
        args.k_stride[b] = from.k_stride;
        args.pitch = to.line_stride;
        args.jobs[b] = dvti_cuda_pack_matrices(plan, &from) * ((from.lines - 1) / 64 + 1) *
                       ((p->k - 1) / 32 + 1);
        memcpy(args.batch[b], from.batch, sizeof args.batch[b]);
    }
    args.k = p->k;
    args.ndim = p->ndim;
    memcpy(args.dim, p->dim, sizeof args.dim);
    args.special = (unsigned *)(uintptr_t)p->special;
    if (p->special)
        result = dvti_cuda()->cuMemsetD8Async((dvti_cu_address)(uintptr_t)p->special, 0,
                                              sizeof *p->special, gpu->compute);
    status = dvti_cuda_failed(gpu, launch->name, "cuMemsetD8Async", result);
    if (status != DVT_OK)
        return status;
    dvti_clear(&grid, sizeof grid);
    grid.x = DVTI_MIN(args.jobs[0] + args.jobs[1], INT32_MAX);
    grid.y = grid.z = 1;
    grid.threads = 256;
    return dvti_cuda_start(gpu, launch, &plan->program, "dvti_matmul_pack", grid, &args,
                           sizeof args);
}

/* ---- launches ---- */
/* Writes the tensor map of an operand, or of its copy. */
static dvti_cu_result dvti_cuda_wgmma_map(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b,
                                          uint64_t *to) {
    const int flag = b ? DVTI_WGMMA_B_ALONG_K : DVTI_WGMMA_A_ALONG_K;
    dvti_cuda_mm_side side = dvti_cuda_mm_side_of(plan, dtype, b);
    int64_t batches = plan->args.batches, matrix;
    if (plan->parts) {
        batches = plan->parts * dvti_cuda_pack_matrices(plan, &side);
        side = dvti_cuda_packed_side(plan, dtype, b, &matrix);
    }
    return dvti_cuda_mm_encode(&side, (plan->program.variant & flag) != 0, batches, to);
}

/* Writes the arguments. The kernel takes the batch strides of an operand as whether it has a matrix
   for each batch. */
static dvti_cu_result dvti_cuda_wgmma_args(const dvti_cuda_mm *plan, dvt_dtype dtype,
                                           dvti_kwgmma *args) {
    const dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    const dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    dvti_cu_result result;
    dvti_clear(args, sizeof *args);
    args->p = plan->args;
    args->p.a_batch[0] = dvti_cuda_pack_matrices(plan, &a) > 1;
    args->p.b_batch[0] = dvti_cuda_pack_matrices(plan, &b) > 1;
    result = dvti_cuda_wgmma_map(plan, dtype, false, args->a);
    return result == DVTI_CU_OK ? dvti_cuda_wgmma_map(plan, dtype, true, args->b) : result;
}

/* Starts as many blocks as there are multiprocessors; each computes one tile after another. */
static dvt_status dvti_cuda_wgmma_multiply(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                           const dvti_cuda_mm *plan, int64_t shared) {
    dvti_kwgmma args;
    dvti_cu_function function;
    const char *call = "cuTensorMapEncodeTiled";
    void *list[1];
    dvti_cu_result result;
    dvt_status status =
        dvti_cuda_find_function(gpu, launch->name, &plan->program, plan->entry, &function);
    if (status != DVT_OK)
        return status;
    result = dvti_cuda_wgmma_args(plan, launch->out[0].dtype, &args);
    if (result == DVTI_CU_OK) {
        call = "cuFuncSetAttribute";
        result = dvti_cuda()->cuFuncSetAttribute(function, DVTI_CU_FUNC_SHARED, (int)shared);
    }
    if (result != DVTI_CU_OK)
        return dvti_cuda_failed(gpu, launch->name, call, result);
    /* As a list of one argument: ptxas places one that is aligned to 64 bytes at an offset that
       only the driver knows. */
    list[0] = &args;
    result = dvti_cuda()->cuLaunchKernel(
        function, (unsigned)DVTI_MIN(plan->args.jobs, dvti_cuda_physical_of(gpu)->processors), 1, 1,
        (unsigned)plan->threads, 1, 1, (unsigned)shared, gpu->compute, list, NULL);
    return dvti_cuda_failed(gpu, launch->name, "cuLaunchKernel", result);
}

DVTI_FN dvt_status dvti_cuda_wgmma_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_cuda_mm *plan) {
    dvt_status status = plan->parts ? dvti_cuda_mm_pack(gpu, launch, plan) : DVT_OK;
    return status == DVT_OK ? dvti_cuda_wgmma_multiply(gpu, launch, plan, plan->shared) : status;
}

#undef DVTI_WGMMA_WIDE
#undef DVTI_WGMMA_A_ALONG_K
#undef DVTI_WGMMA_B_ALONG_K
#undef DVTI_WGMMA_PACKED
#undef DVTI_WGMMA_TWO_PARTS
#undef DVTI_PACK_LEAST_K
#undef DVTI_MM_CHUNK
