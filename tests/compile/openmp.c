/* A program with OpenMP: in its parallel regions the library computes in the calling thread,
   elsewhere with the thread pool. */
#define DEVTENSOR_STATIC
#include "devtensor.h"
#include <omp.h>
#include <stdio.h>

int main(void) {
    int inside = 0, width = 0, threads = 0;
    dvt_set_num_threads(3);
    if (dvti_openmp_busy() || dvti_parallel_width() != 3)
        return 1;
#pragma omp parallel num_threads(4) reduction(+ : inside, width, threads)
    {
        threads += 1;
        inside += dvti_openmp_busy();
        width += dvti_parallel_width();
        DVT_SCOPE {
            dvt_array *x = dvt_ones(DVT_SHAPE(200, 200), DVT_F32, dvt_cpu());
            if (dvt_item_at(dvt_matmul(x, x), DVT_SHAPE(7, 7)) != 200)
                inside = -1000;
        }
    }
    printf("%d threads, %d know that they are in a region, widths sum up to %d\n", threads, inside,
           width);
    return threads < 1 || inside != threads || width != threads || dvti_openmp_busy();
}
