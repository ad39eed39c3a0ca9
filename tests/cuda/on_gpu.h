/* For tests of the CUDA backend: runs a computation on cpu() and on gpu(0), a real GPU or the
   simulated one (tests/simcuda), and compares the results. */
#ifndef ON_GPU_H
#define ON_GPU_H
#include "dvt_test.h"

/* First line of each test. */
#define NEEDS_GPU                                                                                  \
    if (dvt_num_gpus() == 0)                                                                       \
    SKIP(dvt_gpu_reason())

/* Returns random values of a dtype on cpu(), in [low, high). Integers are rounded down, bools are 0
   and 1. */
static __attribute__((__unused__)) dvt_array *random_on_cpu(dvt_shape shape, dvt_dtype dtype,
                                                            double low, double high) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++) {
        values[i] = dvt_test_random(dtype == DVT_BOOL ? 0 : low, dtype == DVT_BOOL ? 2 : high);
        if (!dvt_dtype_is_float(dtype))
            values[i] = floor(values[i]);
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

/* Returns the unit in the last place of a dtype, relative to 1; 0 for integers. */
static __attribute__((__unused__)) double ulp_of(dvt_dtype dtype) {
    return dtype == DVT_F64    ? 2.220446049250313e-16
           : dtype == DVT_F32  ? 1.1920928955078125e-07
           : dtype == DVT_F16  ? 9.765625e-04
           : dtype == DVT_BF16 ? 7.8125e-03
                               : 0;
}

/* Checks that `got` is on a GPU and has the shape, dtype and values of `want`. Each value must be
   within `ulps` units in the last place of its size or of `floor_size`, whichever is larger. NaN
   equals only NaN, an infinity only itself. Prints the first difference. */
static __attribute__((__unused__)) void same_on_gpu(dvt_array *got, dvt_array *want, double ulps,
                                                    double floor_size, const char *what,
                                                    const char *file, int line) {
    double *a, *b, ulp;
    int64_t i, n;
    if (!dvt_test_check(got && want, file, line, "%s: no result: %s", what, dvt_error()))
        return;
    if (!dvt_test_check(dvt_shape_equal(dvt_shape_of(got), dvt_shape_of(want)) &&
                            dvt_dtype_of(got) == dvt_dtype_of(want),
                        file, line, "%s: another shape or dtype than on cpu()", what))
        return;
    dvt_test_check(dvt_ctx_of(got).type == DVT_DEVICE_GPU, file, line, "%s: not on a GPU", what);
    a = dvt_test_values(dvt_copyto(got, dvt_cpu()));
    b = dvt_test_values(want);
    ulp = ulp_of(dvt_dtype_of(want));
    n = dvt_size(want);
    for (i = 0; a && b && i < n; i++) {
        double size = fabs(b[i]) > floor_size ? fabs(b[i]) : floor_size;
        int same = a[i] != a[i] || b[i] != b[i]
                       ? a[i] != a[i] && b[i] != b[i]
                       : a[i] == b[i] || fabs(a[i] - b[i]) <= ulps * ulp * size;
        if (!dvt_test_check(same, file, line,
                            "%s: element %lld is %.17g on the GPU, %.17g on cpu()", what,
                            (long long)i, a[i], b[i]))
            break;
    }
    dvt_test_check(a && b, file, line, "%s: could not be read: %s", what, dvt_error());
    free(a);
    free(b);
}

#define SAME_ON_GPU(got, want, ulps, what)                                                         \
    same_on_gpu((got), (want), (ulps), 0, what, __FILE__, __LINE__)

#endif
