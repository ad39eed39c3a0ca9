/* Products of bytes: the kernels form a step's sums in floats, which hold them exactly; between steps they are integers. */
#include "3_cpu/cpu_matmul.h"

/* 16 at a time, so that compilers use vectors. */
DVTI_FN void dvti_mm_add_whole(const char *step, char *sums, int64_t n, bool first) {
    const float *from = (const float *)(const void *)step;
    uint32_t *to = (uint32_t *)(void *)sums;
    int64_t i;
    int j;
    if (first)
        memset(to, 0, (size_t)n * sizeof *to);
    for (i = 0; i + 16 <= n; i += 16)
        for (j = 0; j < 16; j++)
            to[i + j] += (uint32_t)(int32_t)from[i + j];
    for (; i < n; i++)
        to[i] += (uint32_t)(int32_t)from[i];
}

DVTI_FN void dvti_mm_store_whole(const dvti_mm *p, const char *sums, int64_t rows, int64_t cols,
                                 char *to) {
    const dvt_dtype dtype = p->launch->out[0].dtype;
    const int64_t row = p->m * dvt_dtype_size(dtype);
    const uint32_t *sum = (const uint32_t *)(const void *)sums;
    int64_t r, j;
    for (r = 0; r < rows; r++, to += row, sum += cols) {
        if (dtype == DVT_I32)
            memcpy(to, sum, (size_t)cols * sizeof *sum);
        else
            for (j = 0; j < cols; j++)
                to[j] = (char)(unsigned char)sum[j];
    }
}
