/* When a matrix product runs on tensor cores, and how (kernels/matmul_mma.cu). */
#include "3_cuda/launch/cuda_matmul.h"

DVTI_FN void dvti_cuda_describe_matmul_mma(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define LARGE %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 1));
    dvti_text_add(text, "#define A_ALONG_K %d\n#define B_ALONG_K %d\n", (int)(variant >> 5 & 1),
                  (int)(variant >> 6 & 1));
}

/* The one place that decides. Cards before 8.0 lack the instructions (mma of these shapes, cp.async). float32 is rounded to
   TF32 only where the program has allowed it. Memory goes 16 bytes at a time into shared memory, so what lies side by side,
   along k or across, must begin at multiples of 16 bytes in every row and every matrix; copying an operand to make it so would
   take longer than the other kernels do. Vectors never come here: memory bounds them. */
static bool dvti_cuda_mma_serves(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                 const dvti_cuda_mm *plan, bool *a_along_k, bool *b_along_k) {
    dvt_dtype dtype = launch->out[0].dtype;
    dvti_cuda_mm_side a = dvti_cuda_mm_side_of(plan, dtype, false);
    dvti_cuda_mm_side b = dvti_cuda_mm_side_of(plan, dtype, true);
    int64_t group = 16 / dvt_dtype_size(dtype);
    bool has = dtype == DVT_F16 || dtype == DVT_BF16 || (dtype == DVT_F32 && launch->i[0]);
    if (dvti_cuda_card_of(gpu)->cc < 80 || !has)
        return false;
    *a_along_k = dvti_cuda_mm_packed(&a, true, group);
    *b_along_k = dvti_cuda_mm_packed(&b, true, group);
    return (*a_along_k || dvti_cuda_mm_packed(&a, false, group)) &&
           (*b_along_k || dvti_cuda_mm_packed(&b, false, group));
}

DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan) {
    static const dvti_cuda_mm_tile tiles[] = {{64, 64, 0.5}, {128, 128, 1}};
    bool a_along_k, b_along_k;
    int64_t splits;
    int large;
    if (!dvti_cuda_mma_serves(gpu, launch, plan, &a_along_k, &b_along_k))
        return false;
    /* a tensor core multiplies some 16 times as fast as it could write */
    large = dvti_cuda_mm_choose(gpu, plan, tiles, DVTI_LENGTH(tiles), 256, &splits);
    dvti_cuda_mm_divide(plan, tiles[large].rows, tiles[large].cols, splits);
    plan->program.family = DVTI_CUDA_FAMILY_matmul_mma;
    plan->program.variant = (uint64_t)launch->out[0].dtype | (uint64_t)large << 4 |
                            (uint64_t)a_along_k << 5 | (uint64_t)b_along_k << 6;
    plan->entry = "dvti_matmul_mma";
    plan->threads = 128;
    return true;
}
