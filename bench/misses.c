/* Multiplies two square matrices with AVX2 on one thread, for bench/misses.sh.
   usage: misses SIZE TRANSPOSE_A TRANSPOSE_B TIMES */
#include "devtensor.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    dvt_matmul_desc desc = {0};
    dvt_array *a, *b;
    int64_t n;
    int k;
    if (argc != 5) {
        fprintf(stderr, "usage: misses SIZE TRANSPOSE_A TRANSPOSE_B TIMES\n");
        return 2;
    }
    n = atoll(argv[1]);
    dvt_set_num_threads(1);
    dvt_set_cpu_isa("avx2");
    a = dvt_ones(DVT_SHAPE(n, n), DVT_F32, dvt_cpu());
    b = dvt_ones(DVT_SHAPE(n, n), DVT_F32, dvt_cpu());
    desc.out = dvt_zeros(DVT_SHAPE(n, n), DVT_F32, dvt_cpu());
    desc.transpose_a = atoi(argv[2]) != 0;
    desc.transpose_b = atoi(argv[3]) != 0;
    for (k = 0; k < atoi(argv[4]); k++)
        dvt_matmul_with(a, b, &desc);
    if (dvt_error_code() || dvt_item(dvt_max(desc.out, DVT_ALL)) != (double)n) {
        fprintf(stderr, "misses: wrong result: %s\n", dvt_error());
        return 1;
    }
    return 0;
}
