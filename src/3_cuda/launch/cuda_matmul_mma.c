/* Matrix products on tensor cores: kernels/matmul_mma.cu (mma.sync) and, on compute capability 9.0,
   kernels/matmul_wgmma.cu (wgmma and tensor maps). */
#include "3_cuda/launch/cuda_matmul.h"

/* The tiles of both families: mma.sync with 64x64 and 128x128, wgmma with 128x128 and 128x256. By
   published measurements, wgmma is up to 1.6x faster. */
static const dvti_cuda_mm_tile dvti_cuda_mma_tiles[] = {
    {64, 64, 0.5}, {128, 128, 1}, {128, 128, 1.3}, {128, 256, 1.6}};

#define DVTI_MMA_TILES 2 /* the first of wgmma */

static uint64_t dvti_cuda_mma_variant(dvt_dtype dtype, int tile, bool a_along_k, bool b_along_k) {
    return (uint64_t)dtype | (uint64_t)(tile % DVTI_MMA_TILES) << 4 | (uint64_t)a_along_k << 5 |
           (uint64_t)b_along_k << 6;
}

static void dvti_cuda_describe_mma(uint64_t variant, int first, dvti_text *text) {
    const dvti_cuda_mm_tile *tile = &dvti_cuda_mma_tiles[first + (int)(variant >> 4 & 1)];
    dvti_text_add(text, "#define D %d\n#define ROWS %d\n#define COLS %d\n", (int)(variant & 15),
                  (int)tile->rows, (int)tile->cols);
    dvti_text_add(text, "#define A_ALONG_K %d\n#define B_ALONG_K %d\n", (int)(variant >> 5 & 1),
                  (int)(variant >> 6 & 1));
}

DVTI_FN void dvti_cuda_describe_matmul_mma(uint64_t variant, dvti_text *text) {
    dvti_cuda_describe_mma(variant, 0, text);
    dvti_cuda_add_matmul_tiles(text);
}

/* Also writes the instruction, which has an operand for each of its accumulators. */
DVTI_FN void dvti_cuda_describe_matmul_wgmma(uint64_t variant, dvti_text *text) {
    const int cols = (int)dvti_cuda_mma_tiles[DVTI_MMA_TILES + (int)(variant >> 4 & 1)].cols;
    const char *dtype = (variant & 15) == DVT_F16 ? "f16" : "bf16";
    int n = cols / 2, i;
    dvti_cuda_describe_mma(variant, DVTI_MMA_TILES, text);
    dvti_text_add(text,
                  "#define MULTIPLY \"setp.ne.b32 p, %%%d, 0;\\n\" "
                  "\"wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {",
                  n + 2, cols, dtype, dtype);
    for (i = 0; i < n; i++)
        dvti_text_add(text, "%s%%%d", i ? ", " : "", i);
    dvti_text_add(text, "}, %%%d, %%%d, p, 1, 1, %d, %d;\\n\"\n#define SUMS ", n, n + 1,
                  !(variant >> 5 & 1), !(variant >> 6 & 1));
    for (i = 0; i < n; i++)
        dvti_text_add(text, "%s\"+f\"(sum[%d])", i ? ", " : "", i);
    dvti_text_add(text, "\n");
    dvti_cuda_add_matmul_tiles(text);
}

/* Decides, in this one place, whether tensor cores compute a product. GPUs before 8.0 lack the
   instructions (mma of these shapes, cp.async). float32 is rounded to TF32 only if the program has
   allowed it.

   Memory is copied 16 bytes at a time into shared memory. So the contiguous axis, along k or across
   it, must begin at a multiple of 16 bytes in every row and every matrix. Copying an operand to
   align it would take longer than the other kernels. Vectors do not use tensor cores: memory limits
   them. */
static bool dvti_cuda_mma_serves(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                 const dvti_cuda_mm *plan, bool *a_along_k, bool *b_along_k) {
    dvt_dtype dtype = launch->out[0].dtype;
    dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    int64_t group = 16 / dvt_dtype_size(dtype);
    bool has = dtype == DVT_F16 || dtype == DVT_BF16 || (dtype == DVT_F32 && launch->i[0]);
    if (dvti_cuda_physical_of(gpu)->cc < 80 || !has)
        return false;
    *a_along_k = dvti_cuda_mm_packed(&a, true, group);
    *b_along_k = dvti_cuda_mm_packed(&b, true, group);
    return (*a_along_k || dvti_cuda_mm_packed(&a, false, group)) &&
           (*b_along_k || dvti_cuda_mm_packed(&b, false, group));
}

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

/* Returns whether wgmma can compute the product: compute capability 9.0, 16-bit floats, tensor maps
   of both operands. NVRTC knows it since 12.0, as drivers know tensor maps. */
static bool dvti_cuda_wgmma_serves(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                   dvt_dtype dtype, bool a_along_k, bool b_along_k) {
    dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    dvti_cuda_mm_map map;
    return dvti_cuda_physical_of(gpu)->cc == 90 && dvti_cuda()->cuTensorMapEncodeTiled &&
           (dtype == DVT_F16 || dtype == DVT_BF16) && plan->args.k > 0 &&
           dvti_cuda_mm_map_of(&a, a_along_k, plan->args.batches, &map) &&
           dvti_cuda_mm_map_of(&b, b_along_k, plan->args.batches, &map) &&
           dvti_nvrtc_major() != 11; /* last, because the first call looks for NVRTC */
}

DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan) {
    const dvti_cuda_mm_tile *tiles = dvti_cuda_mma_tiles;
    const dvt_dtype dtype = launch->out[0].dtype;
    bool a_along_k, b_along_k, wgmma;
    int64_t splits;
    int tile;
    if (!dvti_cuda_mma_serves(gpu, launch, plan, &a_along_k, &b_along_k))
        return false;
    wgmma = dvti_cuda_wgmma_serves(gpu, plan, dtype, a_along_k, b_along_k);
    /* Multiplications are about 16x faster than on CUDA cores, so a write costs 16x as many. */
    tile = dvti_cuda_mm_choose(
        gpu, plan, tiles, wgmma ? DVTI_LENGTH(dvti_cuda_mma_tiles) : DVTI_MMA_TILES, 256, &splits);
    dvti_cuda_mm_divide(plan, tiles[tile].rows, tiles[tile].cols, splits);
    wgmma = tile >= DVTI_MMA_TILES;
    plan->program = wgmma ? DVTI_CUDA_PROGRAM(matmul_wgmma) : DVTI_CUDA_PROGRAM(matmul_mma);
    plan->program.variant = dvti_cuda_mma_variant(dtype, tile, a_along_k, b_along_k);
    plan->entry = wgmma ? "dvti_matmul_wgmma" : "dvti_matmul_mma";
    plan->threads = wgmma ? 384 : 128;
    /* stages, results and barriers, as the kernel places them; 4 stages of 48 KiB or 6 of 32 */
    plan->shared = wgmma ? 192 * 1024 + 8 * 16 * 64 * 4 + 12 * 8 : 0;
    return true;
}

/* Writes the tensor map of an operand: boxes of 64 x 64 elements, the swizzle of 128 bytes, zeros
   outside. */
static dvti_cu_result dvti_cuda_mm_encode(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b,
                                          uint64_t *to) {
    const bool along_k = plan->program.variant >> (b ? 6 : 5) & 1;
    const unsigned box[3] = {64, 64, 1}, step[3] = {1, 1, 1};
    dvti_cuda_mm_side side = dvti_cuda_mm_side_of(plan, dtype, b);
    dvti_cuda_mm_map map;
    uint64_t space[24], dim[3], stride[2];
    uint64_t *at = space + (64 - (uintptr_t)space % 64) / 8; /* at a multiple of 64 bytes */
    dvti_cu_result result;
    int i;
    dvti_cuda_mm_map_of(&side, along_k, plan->args.batches, &map);
    for (i = 0; i < 3; i++)
        dim[i] = (uint64_t)map.dim[i];
    for (i = 0; i < 2; i++)
        stride[i] = (uint64_t)(map.stride[i] * dvt_dtype_size(dtype));
    result = dvti_cuda()->cuTensorMapEncodeTiled(
        at, dtype == DVT_F16 ? DVTI_CU_TENSOR_MAP_FLOAT16 : DVTI_CU_TENSOR_MAP_BFLOAT16, 3,
        (void *)side.data, dim, stride, box, step, 0, DVTI_CU_TENSOR_MAP_SWIZZLE_128B,
        DVTI_CU_TENSOR_MAP_PROMOTION_256B, 0);
    memcpy(to, at, 128);
    return result;
}

/* Starts as many blocks as there are multiprocessors; each computes one tile after another. */
DVTI_FN dvt_status dvti_cuda_wgmma_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_cuda_mm *plan, dvti_cuda_grid grid) {
    const dvt_dtype dtype = launch->out[0].dtype;
    dvti_kwgmma args;
    dvti_cu_function function;
    const char *call = "cuTensorMapEncodeTiled";
    void *list[1];
    dvti_cu_result result;
    dvt_status status =
        dvti_cuda_find_function(gpu, launch->name, plan->program, plan->entry, &function);
    if (status != DVT_OK)
        return status;
    memset(&args, 0, sizeof args);
    args.p = plan->args;
    result = dvti_cuda_mm_encode(plan, dtype, false, args.a);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_mm_encode(plan, dtype, true, args.b);
    if (result == DVTI_CU_OK) {
        call = "cuFuncSetAttribute";
        result = dvti_cuda()->cuFuncSetAttribute(function, DVTI_CU_FUNC_SHARED, (int)grid.shared);
    }
    if (result != DVTI_CU_OK)
        return dvti_cuda_failed(gpu, launch->name, call, result);
    /* As a list of one argument: ptxas places one that is aligned to 64 bytes at an offset that
       only the driver knows. */
    list[0] = &args;
    result = dvti_cuda()->cuLaunchKernel(
        function, (unsigned)DVTI_MIN(plan->args.jobs, dvti_cuda_physical_of(gpu)->processors), 1, 1,
        (unsigned)grid.threads, 1, 1, (unsigned)grid.shared, gpu->compute, list, NULL);
    return dvti_cuda_failed(gpu, launch->name, "cuLaunchKernel", result);
}

#undef DVTI_MM_CHUNK
#undef DVTI_MMA_TILES
