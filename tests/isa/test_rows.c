/* Conversion of rows to floats and back on every ISA target, compared with the reference. Also
   launches whose operands are broadcast. */
#include "isa.h"

enum { ALL = 65536 };

static const dvt_dtype row_dtypes[] = {DVT_F16, DVT_BF16, DVT_I32, DVT_U8, DVT_I8, DVT_BOOL};

static void check_row(const dvti_simd *target, dvt_dtype dtype, const float *got,
                      const float *expected, int n) {
    int i, bad = -1;
    for (i = 0; i < n; i++)
        if (!same_bits_f32(got[i], expected[i]))
            bad = i;
    dvt_test_check(bad < 0, __FILE__, __LINE__, "%s, %s: element %d is %.9g, expected %.9g",
                   target->name, dvt_dtype_name(dtype), bad, bad < 0 ? 0 : (double)got[bad],
                   bad < 0 ? 0 : (double)expected[bad]);
}

/* All bit patterns of the short dtypes; as many of int32. */
DVT_TEST(rows_of_other_dtypes_become_floats) {
    static uint16_t bits[ALL];
    static int32_t whole[ALL];
    static float got[ALL], expected[ALL];
    int i, d;
    for (i = 0; i < ALL; i++) {
        bits[i] = (uint16_t)i;
        whole[i] = (int32_t)((uint32_t)i * 65521u);
    }
    for (d = 0; d < 6; d++) {
        const dvt_dtype dtype = row_dtypes[d];
        const void *from = dtype == DVT_I32 ? (const void *)whole : (const void *)bits;
        dvti_load_row_f32(from, dtype, 1, ALL, expected);
        FOR_EACH_TARGET({
            CHECK(target->load_row(from, dtype, ALL, got));
            check_row(target, dtype, got, expected, ALL);
        });
    }
}

DVT_TEST(floats_become_rows_of_other_dtypes) {
    static const float special[] = {
        0.f,    -0.f,   0.5f,         -0.5f,          254.5f,   255.f,
        256.f,  -129.f, 2147483648.f, -2147483648.f,  INFINITY, -INFINITY,
        NAN,    1e-40f, 65519.f,      65520.f,        6e-8f,    2.9e-8f,
        3.1e9f, -3e9f,  2147483520.f, 1.00048828125f, 127.9f,   -128.9f};
    static float from[ALL];
    static char got[ALL * 4], expected[ALL * 4];
    int i, d;
    for (i = 0; i < ALL; i++)
        from[i] = i < 24  ? special[i]
                  : i % 3 ? (float)dvt_test_random(-300, 300)
                  : i % 2 ? (float)(exp2(dvt_test_random(-30, 40)) * dvt_test_random(-1, 1))
                          : (float)dvt_test_random(-7e4, 7e4);
    for (d = 0; d < 6; d++) {
        const dvt_dtype dtype = row_dtypes[d];
        const size_t bytes = (size_t)(ALL * dvt_dtype_size(dtype));
        memset(expected, 0, sizeof expected);
        dvti_store_row_f32(expected, dtype, 1, ALL, from);
        FOR_EACH_TARGET({
            memset(got, 0, sizeof got);
            CHECK(target->store_row(got, dtype, ALL, from));
            for (i = 0; i < (int)bytes && got[i] == expected[i]; i++) {
            }
            dvt_test_check(i == (int)bytes, __FILE__, __LINE__, "%s, %s: byte %d of %d differs",
                           target->name, dvt_dtype_name(dtype), i, (int)bytes);
        });
    }
}

/* Checks that nothing is read or written after the last element. */
DVT_TEST(rows_stay_in_their_memory) {
    guard small = guard_new(4 * 40), floats = guard_new(4 * 40);
    int n, d;
    for (n = 1; n <= 40; n++)
        for (d = 0; d < 6; d++) {
            const size_t bytes = (size_t)(n * dvt_dtype_size(row_dtypes[d]));
            void *row = guard_end(small, bytes);
            float *to = (float *)guard_end(floats, sizeof(float) * (size_t)n);
            memset(row, 0, bytes);
            FOR_EACH_TARGET({
                CHECK(target->load_row(row, row_dtypes[d], n, to));
                CHECK(target->store_row(row, row_dtypes[d], n, to));
            });
        }
    guard_free(small);
    guard_free(floats);
}

/* ---- doubles ---- */
static const dvt_dtype wide_dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_I8, DVT_U8, DVT_BOOL};

/* Every byte pattern is a number or a NaN of some dtype. */
DVT_TEST(rows_to_and_from_doubles) {
    enum { MOST = 150 };

    static const double special[] = {0., -0., INFINITY, -INFINITY, NAN, 1e-310, 1e200, -DBL_MAX};
    static double got[MOST], expected[MOST];
    static unsigned char narrow[MOST * 4];
    guard wide = guard_new(MOST * 8), small = guard_new(MOST * 4);
    int d, n, i;
    for (d = 0; d < 6; d++)
        for (n = 1; n <= MOST; n = n < 36 ? n + 1 : n + 19)
            FOR_EACH_TARGET({
                const dvt_dtype dtype = wide_dtypes[d];
                const size_t bytes = (size_t)n * (size_t)dvt_dtype_size(dtype);
                char *src = (char *)guard_end(small, bytes);
                double *dst = (double *)guard_end(wide, (size_t)n * 8);
                bool ok = true;
                for (i = 0; i < (int)bytes; i++)
                    src[i] = (char)(int)dvt_test_random(-128, 128);
                dvti_load_row_f64(src, dtype, 1, n, expected);
                CHECK(target->f64->load_row(src, dtype, n, dst));
                for (i = 0; i < n; i++)
                    ok = ok && same_bits_f64(dst[i], expected[i]);
                dvt_test_check(ok, __FILE__, __LINE__, "%s: %d of dtype %d to double", target->name,
                               n, (int)dtype);
                if (dtype != DVT_F32 && dtype != DVT_BOOL)
                    continue;
                for (i = 0; i < n; i++)
                    got[i] = i % 3 ? dvt_test_random(-4, 4) : special[i / 3 % 8];
                memcpy(dst, got, (size_t)n * 8);
                dvti_store_row_f64(narrow, dtype, 1, n, got);
                CHECK(target->f64->store_row(src, dtype, n, dst));
                for (i = 0, ok = true; i < n; i++)
                    ok = ok && (got[i] != got[i] && dtype == DVT_F32
                                    ? ((float *)(void *)src)[i] != ((float *)(void *)src)[i]
                                    : !memcmp(src + i * dvt_dtype_size(dtype),
                                              narrow + i * dvt_dtype_size(dtype),
                                              (size_t)dvt_dtype_size(dtype)));
                dvt_test_check(ok, __FILE__, __LINE__, "%s: %d doubles to dtype %d", target->name,
                               n, (int)dtype);
                if (dtype == DVT_F32) { /* the path of launches in float */
                    CHECK(target->load_row(dst, DVT_F64, n, (float *)(void *)src));
                    for (i = 0, ok = true; i < n; i++)
                        ok = ok && same_bits_f32(((float *)(void *)src)[i], (float)got[i]);
                    dvt_test_check(ok, __FILE__, __LINE__, "%s: %d doubles to float", target->name,
                                   n);
                    src = (char *)guard_end(small, bytes);
                    dst = (double *)guard_end(wide, (size_t)n * 8);
                    CHECK(target->store_row(dst, DVT_F64, n, (const float *)(void *)src));
                    for (i = 0, ok = true; i < n; i++)
                        ok = ok && same_bits_f64(dst[i], (double)((float *)(void *)src)[i]);
                    dvt_test_check(ok, __FILE__, __LINE__, "%s: %d floats to double", target->name,
                                   n);
                }
            });
    guard_free(wide);
    guard_free(small);
}

static void broadcast_launch(dvti_launch *launch, const float *a, const float *b, float *out,
                             const int64_t *dim, const int64_t *sa, const int64_t *sb) {
    int i;
    memset(launch, 0, sizeof *launch);
    launch->kernel = dvti_kernel_elementwise();
    launch->op = DVTI_OP_sub;
    launch->compute = DVTI_F32;
    launch->n_in = 2;
    launch->n_out = 1;
    launch->in[0].data = (void *)(uintptr_t)a;
    launch->in[1].data = (void *)(uintptr_t)b;
    launch->out[0].data = out;
    for (i = 0; i < 3; i++) {
        launch->in[0].dim[i] = launch->in[1].dim[i] = launch->out[0].dim[i] = dim[i];
        launch->in[0].stride[i] = sa[i];
        launch->in[1].stride[i] = sb[i];
    }
    launch->in[0].ndim = launch->in[1].ndim = launch->out[0].ndim = 3;
    launch->in[0].dtype = launch->in[1].dtype = launch->out[0].dtype = DVT_F32;
    launch->out[0].stride[2] = 1;
    launch->out[0].stride[1] = dim[2];
    launch->out[0].stride[0] = dim[1] * dim[2];
}

/* Every pattern of repeated axes, with long and short runs. */
DVT_TEST(broadcast_operands_of_every_target) {
    static const int64_t dims[][3] = {{1, 3, 4},   {3, 5, 40}, {2, 33, 64},
                                      {7, 1, 100}, {1, 1, 1},  {4, 50, 1}};
    static float a[5000], b[5000], expected[5000], got[5000];
    dvti_launch launch;
    int s, pattern, axis, i;
    for (i = 0; i < 5000; i++) {
        a[i] = (float)dvt_test_random(-9, 9);
        b[i] = (float)dvt_test_random(-9, 9);
    }
    for (s = 0; s < 6; s++)
        for (pattern = 0; pattern < 64; pattern++) {
            const int64_t *dim = dims[s], size = dim[0] * dim[1] * dim[2];
            int64_t stride[2][3], next[2] = {1, 1};
            for (axis = 2; axis >= 0; axis--)
                for (i = 0; i < 2; i++) {
                    const bool repeats = pattern >> (3 * i + axis) & 1;
                    stride[i][axis] = repeats ? 0 : next[i];
                    next[i] *= repeats ? 1 : dim[axis];
                }
            broadcast_launch(&launch, a, b, expected, dim, stride[0], stride[1]);
            CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
            dvti_cpu_run(&launch);
            launch.out[0].data = got;
            FOR_EACH_TARGET({
                CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
                memset(got, 0, sizeof got);
                dvti_cpu_run(&launch);
                CHECK(memcmp(got, expected, sizeof(float) * (size_t)size) == 0);
            });
            CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
        }
}

/* Copies to float32, of all lengths around a vector's and some that threads share. */
DVT_TEST(whole_numbers_copied_to_floats_by_every_target) {
    static const dvt_dtype dtypes[] = {DVT_I32, DVT_U8, DVT_I8, DVT_BOOL};
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 1000, 300001};
    guard small = guard_new(4 * 300001), floats = guard_new(4 * 300001);
    float *expected = (float *)malloc(sizeof(float) * 300001);
    int d, s;
    int64_t i;
    CHECK(expected != NULL);
    for (d = 0; d < 4 && expected; d++)
        for (s = 0; s < 9; s++) {
            const int64_t n = lengths[s], bytes = n * dvt_dtype_size(dtypes[d]);
            unsigned char *row = (unsigned char *)guard_end(small, (size_t)bytes);
            dvti_launch launch;
            memset(&launch, 0, sizeof launch);
            launch.kernel = dvti_kernel_elementwise();
            launch.op = DVTI_OP_copy;
            launch.compute = DVTI_I64;
            launch.n_in = launch.n_out = 1;
            launch.in[0].data = row;
            launch.in[0].dtype = dtypes[d];
            launch.out[0].dtype = DVT_F32;
            launch.in[0].ndim = launch.out[0].ndim = 1;
            launch.in[0].dim[0] = launch.out[0].dim[0] = n;
            launch.in[0].stride[0] = launch.out[0].stride[0] = 1;
            launch.out[0].data = expected;
            for (i = 0; i < bytes; i++)
                row[i] = (unsigned char)dvt_test_random(0, dtypes[d] == DVT_BOOL ? 2 : 256);
            CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
            dvti_cpu_run(&launch);
            launch.out[0].data = guard_end(floats, sizeof(float) * (size_t)n);
            FOR_EACH_TARGET({
                CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
                memset(launch.out[0].data, 0, sizeof(float) * (size_t)n);
                dvti_cpu_run(&launch);
                CHECK(memcmp(launch.out[0].data, expected, sizeof(float) * (size_t)n) == 0);
            });
            CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
        }
    guard_free(small);
    guard_free(floats);
    free(expected);
}
