/* Multiplies two float16 matrices on gpu(0), and compares the result with the host's. The numbers
   are small integers, so that all orders of summation are exact. */
#ifndef COMPILING_PRODUCT_H
#define COMPILING_PRODUCT_H
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

#endif
