/* Matrix products on tensor cores: kernels/matmul_mma.cu (mma.sync), and the choice between it and
   wgmma. */
#include "3_cuda/launch/cuda_matmul.h"

/* The tiles of both families: mma.sync with 64x64 and 128x128, wgmma with 128x128 and 128x256. By
   published measurements, wgmma is up to 1.6x faster. */
static const dvti_cuda_mm_tile dvti_cuda_mma_tiles[] = {
    {64, 64, 0.5}, {128, 128, 1}, {128, 128, 1.3}, {128, 256, 1.6}};

#define DVTI_MMA_TILES 2 /* the first of wgmma */

DVTI_FN void dvti_cuda_describe_matmul_mma(uint64_t variant, dvti_text *text) {
    const dvti_cuda_mm_tile *tile = &dvti_cuda_mma_tiles[variant >> 4 & 1];
    dvti_text_add(text, "#define D %d\n#define ROWS %d\n#define COLS %d\n", (int)(variant & 15),
                  (int)tile->rows, (int)tile->cols);
    dvti_text_add(text, "#define A_ALONG_K %d\n#define B_ALONG_K %d\n", (int)(variant >> 5 & 1),
                  (int)(variant >> 6 & 1));
    dvti_cuda_add_matmul_tiles(text);
}

/* Decides, in this one place, whether tensor cores compute a product. GPUs before 8.0 lack the
   instructions (mma of these shapes, cp.async). float32 is rounded to TF32 only if the program has
   allowed it.

   Memory is copied 16 bytes at a time into shared memory. So the contiguous axis, along k or across
   it, must begin at a multiple of 16 bytes in every row and every matrix. Vectors do not
   use tensor cores: memory limits them. */
static bool dvti_cuda_mma_serves(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                 const dvti_cuda_mm *plan, bool *a_along_k, bool *b_along_k) {
    dvt_dtype dtype = launch->out[0].dtype;
    dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    int64_t group = 16 / dvt_dtype_size(dtype);
    bool has = dtype == DVT_F16 || dtype == DVT_BF16 || (dtype == DVT_F32 && launch->i[0] == 1);
    if (dvti_cuda_physical_of(gpu)->cc < 80 || !has)
        return false;
    *a_along_k = dvti_cuda_mm_packed(&a, true, group);
    *b_along_k = dvti_cuda_mm_packed(&b, true, group);
    return (*a_along_k || dvti_cuda_mm_packed(&a, false, group)) &&
           (*b_along_k || dvti_cuda_mm_packed(&b, false, group));
}

DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan) {
    const dvti_cuda_mm_tile *tiles = dvti_cuda_mma_tiles;
    const dvt_dtype dtype = launch->out[0].dtype;
    bool a_along_k, b_along_k;
    int64_t splits;
    int tile, n = DVTI_MMA_TILES;
    if (!dvti_cuda_mma_serves(gpu, launch, plan, &a_along_k, &b_along_k))
        return false;
    if (dvti_cuda_wgmma_serves(gpu, plan, dtype, a_along_k, b_along_k))
        n = DVTI_LENGTH(dvti_cuda_mma_tiles);
    /* Multiplications are 8 (TF32) or 16 times as fast as on CUDA cores, so a write costs that many
       more. */
    tile = dvti_cuda_mm_choose(gpu, plan, tiles, n, INT64_MAX, 256, &splits, &plan->time);
    if (tile >= DVTI_MMA_TILES &&
        !dvti_cuda_wgmma_use(gpu, plan, dtype, tile > DVTI_MMA_TILES, a_along_k, b_along_k))
        tile = dvti_cuda_mm_choose(gpu, plan, tiles, DVTI_MMA_TILES, INT64_MAX, 256, &splits,
                                   &plan->time);
    plan->time /= dtype == DVT_F32 ? 8 : 16;
    dvti_cuda_mm_divide(plan, tiles[tile].rows, tiles[tile].cols, splits);
    if (tile >= DVTI_MMA_TILES)
        return true;
    plan->program = DVTI_CUDA_PROGRAM(matmul_mma);
    plan->program.variant =
        (uint64_t)dtype | (uint64_t)tile << 4 | (uint64_t)a_along_k << 5 | (uint64_t)b_along_k << 6;
    plan->entry = "dvti_matmul_mma";
    plan->threads = 128;
    return true;
}

#undef DVTI_MMA_TILES
