/* Tests of pow with exponents that have short formulas. A scalar, an array of one element and a
   full array of exponents give the same bits. The values equal those of C's pow, also at zeros,
   infinities and NaN. */
#include "dvt_test.h"
#include <float.h>

#define N 83 /* full vectors and a remainder */

static const double exponents[] = {-1, 0, 0.5, 1, 2, 3};
#define EXPONENTS (int)(sizeof exponents / sizeof exponents[0])

static dvt_array *inputs(dvt_dtype dtype) {
    static const double special[] = {
        0,     -0.0,  INFINITY, -INFINITY, NAN,  1,     -1,       1e-30,   -1e-30,  1e20,
        -1e20, 1e-42, -1e-42,   FLT_MAX,   1e13, -1e13, -FLT_MAX, FLT_MIN, 0x1p-63, 0x1.fffffep63};
    double values[N];
    int i, n = (int)(sizeof special / sizeof special[0]);
    for (i = 0; i < N; i++)
        if (i < n)
            values[i] = special[i];
        else if (i % 3)
            values[i] = dvt_test_random(i % 3 == 1 ? -20 : 0, 20);
        else /* squares are finite, cubes are not */
            values[i] = ldexp(dvt_test_random(-1, 1), dtype == DVT_F64 ? 342 + 2 * i : 43 + i / 4);
    return dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(N), DVT_F64, dvt_cpu()), dtype);
}

/* Checks that a and b have the same bits, except of NaN. */
static void check_same(dvt_array *a, dvt_array *b, int step, double s, int line) {
    double *x = dvt_test_values(a), *y = dvt_test_values(b);
    int i;
    for (i = 0; i < N; i += step)
        dvt_test_check(
            (isnan(x[i]) && isnan(y[i])) || (x[i] == y[i] && signbit(x[i]) == signbit(y[i])),
            __FILE__, line, "element %d to the power %g: %.17g and %.17g", i, s, x[i], y[i]);
    free(x);
    free(y);
}

/* Checks that results are rounded once. Exceptions are pow of the C library, which the reference
   uses, and cubes of double. */
static void check_values(dvt_array *x, dvt_array *y, double s) {
    const bool narrow = dvt_dtype_of(x) == DVT_F32;
    const bool exact = narrow && strcmp(dvt_cpu_isa(), "reference") != 0;
    double *from = dvt_test_values(x), *to = dvt_test_values(y);
    int i;
    for (i = 0; i < N; i++) {
        double wanted = narrow ? (double)(float)pow(from[i], s) : pow(from[i], s);
        double off = exact ? 0 : fabs(wanted) * (narrow ? FLT_EPSILON : DBL_EPSILON);
        dvt_test_check(
            (isnan(wanted) && isnan(to[i])) ||
                (wanted == to[i] && (wanted != 0 || signbit(wanted) == signbit(to[i]))) ||
                fabs(wanted - to[i]) <= off,
            __FILE__, __LINE__, "%.9g to the power %g is %.17g, expected %.17g", from[i], s, to[i],
            wanted);
    }
    free(from);
    free(to);
}

DVT_TEST(pow_by_formulas) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    dvt_ctx ctx[2];
    int d, e, c;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_gpu(0);
    for (c = 0; c < 2; c++)
        for (d = 0; d < 4; d++)
            for (e = 0; e < EXPONENTS; e++)
                DVT_SCOPE {
                    const double s = exponents[e];
                    dvt_array *x = dvt_as_in_ctx(inputs(dtypes[d]), ctx[c]);
                    dvt_array *b = dvt_full(DVT_SHAPE(N), s, dtypes[d], ctx[c]), *y;
                    y = dvt_pow_scalar(x, s);
                    if (dtypes[d] == DVT_F32 || dtypes[d] == DVT_F64)
                        check_values(x, y, s);
                    check_same(y, dvt_pow(x, dvt_scalar(s, dtypes[d], ctx[c])), 1, s, __LINE__);
                    check_same(y, dvt_pow(x, b), 1, s, __LINE__);
                    dvt_fill(dvt_slice(b, 0, 1, DVT_END, 2), 1.7); /* mixed exponents */
                    check_same(y, dvt_pow(x, b), 2, s, __LINE__);
                    check_same(y, dvt_pow_scalar_(dvt_copy(x), s), 1, s, __LINE__);
                }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(pow_of_integers_by_formulas) {
    static const dvt_dtype dtypes[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64};
    int d, e;
    for (d = 0; d < 4; d++)
        for (e = 0; e < 4; e++)
            DVT_SCOPE {
                dvt_array *x =
                    dvt_as_in_dtype(dvt_arange(-41, 42, 1, DVT_I64, dvt_cpu()), dtypes[d]);
                dvt_array *y = dvt_ones_like(x);
                int k;
                for (k = 0; k < e; k++)
                    y = dvt_mul(y, x);
                check_same(y, dvt_pow_scalar(x, e), 1, e, __LINE__);
                check_same(y, dvt_pow(x, dvt_scalar(e, dtypes[d], dvt_cpu())), 1, e, __LINE__);
                check_same(y, dvt_pow(x, dvt_full(DVT_SHAPE(N), e, dtypes[d], dvt_cpu())), 1, e,
                           __LINE__);
                CHECK_INT(dvt_dtype_of(dvt_pow_scalar(x, e)), dtypes[d]);
            }
}

/* Checks exponents that are constant along one axis only. */
DVT_TEST(pow_by_a_row_of_exponents) {
    dvt_array *x =
        dvt_add_scalar(dvt_reshape(dvt_arange(0, 320, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(5, 64)), 1);
    const double values[] = {2, -1, 1.5, 0.5, 3};
    dvt_array *b =
        dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(5, 1), DVT_F64, dvt_cpu()), DVT_F32);
    dvt_array *y = dvt_pow(x, b);
    int i;
    for (i = 0; i < 5; i++)
        CHECK(memcmp(dvt_data(dvt_index(y, i)),
                     dvt_data(dvt_pow_scalar(dvt_index(x, i), values[i])),
                     64 * sizeof(float)) == 0);
}
