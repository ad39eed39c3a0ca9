/* Multiplies two float16 matrices on gpu(0), twice, and compares the results with the host's: on
   compute capability 9.0 by wgmma, where its program can be had, else by mma.sync. The numbers are
   small integers, so that all orders of summation are exact. Prints how many programs were compiled
   and read from disk, or the error. */
#include "devtensor.h"
#include <stdio.h>

enum { N = 256, K = 72 };

static float value(int i, int j) {
    return (float)((i * 7 + j * 3) % 5 - 2);
}

static dvt_array *matrix(int rows, int columns, int from) {
    static float values[N * N];
    int i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            values[i * columns + j] = value(i + from, j);
    return dvt_copyto(
        dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(rows, columns), DVT_F32, dvt_cpu()),
                        DVT_F16),
        dvt_gpu(0));
}

static int multiply(void) {
    static float got[N * N];
    dvt_array *product = dvt_matmul(matrix(N, K, 0), matrix(K, N, 1));
    int i, j, k;
    product = dvt_as_in_dtype(dvt_copyto(product, dvt_cpu()), DVT_F32);
    if (!product || dvt_to_host(product, got, sizeof got) != DVT_OK)
        return 0;
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
            float sum = 0;
            for (k = 0; k < K; k++)
                sum += value(i, k) * value(k + 1, j);
            if (got[i * N + j] != sum) {
                printf("element (%d, %d) is %g, expected %g\n", i, j, got[i * N + j], sum);
                return 0;
            }
        }
    return 1;
}

int main(void) {
    dvt_jit_stats stats;
    dvt_set_log_level(DVT_LOG_OFF);
    if (!multiply() || !multiply() || dvt_error_code() != DVT_OK) {
        printf("%s\n", dvt_status_name(dvt_error_code()));
        return 1;
    }
    stats = dvt_get_jit_stats();
    printf("compiled %d, from disk %d\n", (int)stats.compiled, (int)stats.from_disk);
    return 0;
}
