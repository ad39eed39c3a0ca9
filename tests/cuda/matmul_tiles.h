/* For tests of matrix products on tensor cores: plans, which need no GPU, and products compared
   with sums in float64. The library is a private copy, because decisions are only visible
   internally. */
#ifndef MATMUL_TILES_H
#define MATMUL_TILES_H
#include "on_gpu.h"
#include "matmul_forms.h"

#define COUNT_OF(x) ((int)(sizeof(x) / sizeof((x)[0])))

/* ---- selection, which needs no GPU ---- */
typedef struct product {
    dvt_dtype dtype;
    int64_t n, m, k, a_row, a_k, b_k, b_col, a_batch,
        b_batch;    /* strides; two matrices when there is a batch */
    int64_t offset; /* of a, in elements */
    int64_t memory; /* of the GPU; 0: none for copies of operands */
    int cc, tf32, processors;
} product;

static __attribute__((__unused__)) product plain_product(dvt_dtype dtype, int64_t n, int64_t k,
                                                         int64_t m) {
    product p;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    p.n = n;
    p.k = k;
    p.m = m;
    p.a_row = k;
    p.b_k = m;
    p.a_k = p.b_col = 1;
    p.cc = 80;
    p.processors = 100;
    return p;
}

static __attribute__((__unused__)) dvti_cuda_mm plan_of(product q) {
    static char memory[1 << 12];
    dvti_cuda_physical physical;
    dvti_cuda_gpu gpu;
    dvti_launch launch;
    int batch = q.a_batch || q.b_batch, i;
    dvti_cuda_mm plan;
    char *start = memory + (64 - (uintptr_t)memory % 64);
    dvti_launch_begin(&launch, "a test", dvti_kernel_matmul(), DVTI_OP_matmul);
    memset(&physical, 0, sizeof physical);
    memset(&gpu, 0, sizeof gpu);
    physical.cc = q.cc;
    physical.processors = q.processors;
    physical.memory = q.memory;
    gpu.physical = &physical;
    launch.n_in = 2;
    launch.n_out = 1;
    launch.i[0] = q.tf32;
    for (i = 0; i < 3; i++) {
        dvti_view *view = i == 2 ? &launch.out[0] : &launch.in[i];
        view->ndim = 2 + batch;
        view->dtype = q.dtype;
        view->data = start + (i == 0 ? q.offset * dvt_dtype_size(q.dtype) : 0);
        view->dim[0] = 2;
        view->dim[batch] = i == 1 ? q.k : q.n;
        view->dim[batch + 1] = i == 0 ? q.k : q.m;
        view->stride[0] = i == 0 ? q.a_batch : i == 1 ? q.b_batch : q.n * q.m;
        view->stride[batch] = i == 0 ? q.a_row : i == 1 ? q.b_k : q.m;
        view->stride[batch + 1] = i == 0 ? q.a_k : i == 1 ? q.b_col : 1;
    }
    dvti_cuda_mm_plan(&gpu, &launch, &plan);
    return plan;
}

/* ---- results ---- */
static __attribute__((__unused__)) void random_values(double *values, int64_t n, dvt_dtype dtype) {
    int64_t i;
    for (i = 0; i < n; i++)
        values[i] = dvt_test_random(-2, 2);
    (void)dtype;
}

/* Returns values as `dtype` on gpu(0), in rows of `pitch` elements of which the first `columns` are
   the matrix; transposed in memory on request. */
static __attribute__((__unused__)) dvt_array *on_gpu(const double *values, int64_t rows,
                                                     int64_t columns, dvt_dtype dtype,
                                                     int transposed, int group) {
    dvt_array *x = dvt_from_host(values, DVT_SHAPE(rows, columns), DVT_F64, dvt_cpu()), *wide;
    int64_t lines, length;
    x = transposed ? dvt_t(x) : x;
    lines = dvt_dim(x, 0);
    length = dvt_dim(x, 1);
    wide = dvt_full(DVT_SHAPE(lines, (length + group - 1) / group * group), (double)NAN, dtype,
                    dvt_cpu());
    if (length > 0)
        CHECK(dvt_copy_into(dvt_slice(wide, 1, 0, length, 1), x) != NULL);
    wide = dvt_slice(dvt_copyto(wide, dvt_gpu(0)), 1, 0, length, 1);
    return transposed ? dvt_t(wide) : wide;
}

/* Returns the value as stored, rounded to the dtype. For TF32 it is rounded as the tensor cores do:
   to nearest, ties away from zero. */
static __attribute__((__unused__)) double stored(double v, dvt_dtype dtype, int tf32) {
    float f = (float)v;
    uint32_t bits;
    if (tf32) {
        memcpy(&bits, &f, sizeof f);
        bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    return dvt_item(dvt_as_in_dtype(dvt_full(DVT_SHAPE(1), v, DVT_F64, dvt_cpu()), dtype));
}

/* Returns the step between the rows of a product that are compared: a real GPU multiplies so many
   that a loop of one thread would take half a minute. */
static __attribute__((__unused__)) int64_t step_of_rows(int64_t n, int64_t k, int64_t m) {
    return n * k * m > 100000000 ? 37 : 1;
}

static __attribute__((__unused__)) void check_mma(int64_t n, int64_t k, int64_t m, dvt_dtype dtype,
                                                  int layout) {
    DVT_SCOPE {
        int tf32 = dtype == DVT_F32 && dvti_tf32_allowed(), group = dtype == DVT_F32 ? 4 : 8;
        double *a = (double *)malloc(sizeof(double) * (size_t)(n * k + 1));
        double *b = (double *)malloc(sizeof(double) * (size_t)(k * m + 1));
        double *got = (double *)calloc((size_t)(n * m), sizeof(double)), unit = ulp_of(dtype);
        dvt_array *x, *y, *product_of;
        const int64_t each = step_of_rows(n, k, m);
        int64_t i, j, p;
        int ok = 1;
        random_values(a, n * k, dtype);
        random_values(b, k * m, dtype);
        x = on_gpu(a, n, k, dtype, layout & 1, group);
        y = on_gpu(b, k, m, dtype, layout >> 1, group);
        product_of = dvt_matmul(x, y);
        CHECK_INT(dvt_to_host(dvt_as_in_dtype(dvt_copyto(product_of, dvt_cpu()), DVT_F64), got,
                              n * m * 8),
                  DVT_OK);
        for (i = 0; i < n * k; i++)
            a[i] = stored(a[i], dtype, tf32);
        for (i = 0; i < k * m; i++)
            b[i] = stored(b[i], dtype, tf32);
        for (i = n - 1; i >= 0 && ok; i -= each)
            for (j = 0; j < m && ok; j++) {
                double sum = 0, size = 0, bound;
                for (p = 0; p < k; p++) {
                    sum += a[i * k + p] * b[p * m + j];
                    size += fabs(a[i * k + p] * b[p * m + j]);
                }
                /* tensor cores may truncate where float32 would round: one unit for each
                   addition */
                bound = (tf32 ? 0 : 0.5 * unit * fabs(sum)) +
                        (double)(k + 2) * ulp_of(DVT_F32) * size + 1e-7;
                ok = dvt_test_check(fabs(got[i * m + j] - sum) <= bound, __FILE__, __LINE__,
                                    "%s (%lld, %lld) x (%lld, %lld), layout %d: element (%lld, "
                                    "%lld) is %.9g, exactly %.9g",
                                    dvt_dtype_name(dtype), (long long)n, (long long)k, (long long)k,
                                    (long long)m, layout, (long long)i, (long long)j,
                                    got[i * m + j], sum);
            }
        free(a);
        free(b);
        free(got);
    }
}

/* Tells whether the program ran on this GPU, which proves that products used it. */
static __attribute__((__unused__)) int loaded(dvti_cuda_family family, int wanted_variant) {
    dvti_cuda_program program = dvti_cuda_program_of(family, NULL);
    program.variant = (uint64_t)wanted_variant;
    return dvti_cuda_is_loaded(&dvti_cuda_physical_gpus[0], program);
}

#endif
