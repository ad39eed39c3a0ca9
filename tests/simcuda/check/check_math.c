/* The math library that NVRTC expands into device code, within the error bounds of NVIDIA's tables;
   float16 and tensor-core instructions through the toolkit's headers. Needs NVRTC. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "compiler.h"
#include "expect.h"
#include "kernels.h"
#include "nearest.h"

enum { N = 4000 };

typedef double function(double x, double y);

#define ONE(name)                                                                                  \
    static double name##_(double x, double y) {                                                    \
        (void)y;                                                                                   \
        return name(x);                                                                            \
    }

ONE(exp)
ONE(exp2)
ONE(expm1)
ONE(log)
ONE(log2)
ONE(log1p)
ONE(sin)
ONE(cos)
ONE(tan)
ONE(sinh)
ONE(tanh)
ONE(asin)
ONE(erf)
ONE(erfc)
ONE(sqrt)
ONE(floor)
ONE(rint)
ONE(round)

/* cbrt of the C library is less accurate than that of the device. */
static double cbrt_(double x, double y) {
    (void)y;
    return (double)cbrtl(x);
}

static double rsqrt_(double x, double y) {
    (void)y;
    return 1 / sqrt(x);
}

static double divide(double x, double y) {
    return x / y;
}

static double multiply_add(double x, double y) {
    return fma(x, y, x);
}

static double to_int(double x, double y) {
    (void)y;
    return x != x ? 0 : x > INT32_MAX ? 0x1p31 : x < INT32_MIN ? -0x1p31 : trunc(x);
}

typedef struct row {
    const char *name;
    function *expected;
    double ulps; /* the bound of NVIDIA's table, rounded up */
} row;

static const row singles[] = {
    {"expf", exp_, 2},      {"exp2f", exp2_, 2},
    {"expm1f", expm1_, 2},  {"logf", log_, 1},
    {"log2f", log2_, 1},    {"log1pf", log1p_, 1},
    {"sinf", sin_, 2},      {"cosf", cos_, 2},
    {"tanf", tan_, 4},      {"sinhf", sinh_, 3},
    {"tanhf", tanh_, 2},    {"asinf", asin_, 2},
    {"atan2f", atan2, 3},   {"erff", erf_, 2},
    {"erfcf", erfc_, 4},    {"powf", pow, 4},
    {"sqrtf", sqrt_, 0.51}, {"cbrtf", cbrt_, 1},
    {"rsqrtf", rsqrt_, 2},  {"hypotf", hypot, 3},
    {"fmodf", fmod, 0},     {"a / b", divide, 0.51},
    {"floorf", floor_, 0},  {"rintf", rint_, 0},
    {"roundf", round_, 0},  {"fmaf", multiply_add, 0.51},
    {"fminf", fmin, 0},     {"copysignf", copysign, 0},
    {"(int)", to_int, 0},
};

static const row wides[] = {
    {"exp", exp_, 2},     {"log", log_, 2},     {"sin", sin_, 2},     {"cos", cos_, 2},
    {"tanh", tanh_, 3},   {"erf", erf_, 3},     {"pow", pow, 3},      {"sqrt", sqrt_, 1},
    {"cbrt", cbrt_, 2},   {"atan2", atan2, 3},  {"fmod", fmod, 0},    {"a / b", divide, 0},
    {"log1p", log1p_, 2}, {"rsqrt", rsqrt_, 2}, {"floor", floor_, 0},
};

/* Returns one unit in the last place of x in a format with a fraction of this many bits. */
static double unit(double x, int fraction, int least) {
    int e;
    frexp(x, &e);
    e = e - 1 < least ? least : e - 1;
    return ldexp(1, e - fraction);
}

static double off_by(double got, double expected, int fraction, int least, double top) {
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected) ? 0 : INFINITY;
    if (isinf(expected))
        return got == expected ? 0 : INFINITY;
    if (isinf(got)) /* any finite number passes at the end of the range */
        return fabs(expected) >= top * 0.999999 && signbit(got) == signbit(expected) ? 0 : INFINITY;
    return fabs(got - expected) / unit(expected, fraction, least);
}

static int is_small_zero(double got, double expected) {
    return fabs(expected) < 0x1p-1022 && fabs(got) <= 0x1p-1022;
}

static void check_singles(exec *e) {
    float *x = exec_buffer(4 * N), *y = exec_buffer(4 * N),
          *r = exec_buffer(COUNT(singles) * 4 * N);
    for (unsigned i = 0; i < N; i++) {
        x[i] = f32_of(floats(32, 0, i));
        y[i] = f32_of(floats(32, 1, i));
    }

    struct {
        void *x, *y, *r;
        int n;
    } p = {x, y, r, N};

    const char *problem = exec_run(e, "singles", (exec_launch){.grid = N / 250, .block = 250}, &p);
    if (!check_that(!problem, "singles: %s", problem ? problem : ""))
        return;
    for (size_t k = 0; k < COUNT(singles); k++) {
        double worst = 0;
        int at = 0;
        for (int i = 0; i < N; i++) {
            double d = off_by(r[k * N + (size_t)i], singles[k].expected(x[i], y[i]), 23, -126,
                              0x1.fffffep127);
            if (d > worst)
                worst = d, at = i;
        }
        check_that(worst <= singles[k].ulps, "%s(%a, %a) is %a: %g ulp from %a", singles[k].name,
                   x[at], y[at], r[k * N + (size_t)at], worst, singles[k].expected(x[at], y[at]));
    }
}

static void check_wides(exec *e) {
    double *x = exec_buffer(8 * N), *y = exec_buffer(8 * N), *r = exec_buffer(COUNT(wides) * 8 * N);
    for (unsigned i = 0; i < N; i++) {
        x[i] = f64_of(floats(64, 0, i));
        y[i] = f64_of(floats(64, 1, i));
    }

    struct {
        void *x, *y, *r;
        int n;
    } p = {x, y, r, N};

    const char *problem = exec_run(e, "doubles", (exec_launch){.grid = N / 250, .block = 250}, &p);
    if (!check_that(!problem, "doubles: %s", problem ? problem : ""))
        return;
    for (size_t k = 0; k < COUNT(wides); k++) {
        double worst = 0;
        int at = 0;
        for (int i = 0; i < N; i++) {
            double got = r[k * N + (size_t)i], expected = wides[k].expected(x[i], y[i]);
            double d = is_small_zero(got, expected)
                           ? 0
                           : off_by(got, expected, 52, -1022, 0x1.fffffffffffffp1023);
            if (d > worst)
                worst = d, at = i;
        }
        check_that(worst <= wides[k].ulps, "%s(%a, %a) is %a: %g ulp from %a", wides[k].name, x[at],
                   y[at], r[k * N + (size_t)at], worst, wides[k].expected(x[at], y[at]));
    }
}

/* ---- float16 and bfloat16 ---- */

static u16 rounded(const format *f, quad a, quad b) {
    quad rest, exact = exact_sum(a, b, &rest);
    return (u16)format_round(f, exact, rest, NEAREST, 0);
}

static void check_float16(exec *e) {
    u16 *x = exec_buffer(2 * N), *y = exec_buffer(2 * N), *r = exec_buffer(20 * N);
    int wrong[10] = {0};
    for (unsigned i = 0; i < N; i++) {
        x[i] = (u16)floats(16, 0, i);
        y[i] = (u16)floats(16, 1, i);
    }

    struct {
        void *x, *y, *r;
        int n;
    } p = {x, y, r, N};

    const char *problem = exec_run(e, "float16", (exec_launch){.grid = N / 250, .block = 250}, &p);
    if (!check_that(!problem, "float16: %s", problem ? problem : ""))
        return;
    for (int i = 0; i < N; i++) {
        quad a = (quad)format_value(&f16, x[i]), b = (quad)format_value(&f16, y[i]);
        quad c = (quad)format_value(&bf16, x[i]), d = (quad)format_value(&bf16, y[i]);
        double cd = (double)c, dd = (double)d;
        u16 expected[] = {
            rounded(&f16, a, b),
            (u16)format_round(&f16, a * b, 0, NEAREST, 0),
            rounded(&f16, a * b, a),
            (u16)format_round(&f16, (quad)((float)a * 3.0f), 0, NEAREST, 0),
            rounded(&bf16, c, d),
            (u16)format_round(&bf16, c * d, 0, NEAREST, 0),
            (u16)format_round(&bf16, (quad)((float)c / 3.0f), 0, NEAREST, 0),
            rounded(&f16, a * b, a),
            rounded(&f16, b * b, a),
            (u16)((a < b) | (c > d) << 1 | (!isnan(cd) && (isnan(dd) || c >= d)) << 2)};
        for (int k = 0; k < 10; k++)
            wrong[k] += r[k * N + i] != expected[k];
    }
    for (int k = 0; k < 10; k++)
        check_that(wrong[k] == 0, "float16, operation %d: %d wrong", k, wrong[k]);
}

static void check_tile(exec *e) {
    u16 *a = exec_buffer(512), *b = exec_buffer(256);
    float *c = exec_buffer(512);
    int wrong = 0;
    for (int i = 0; i < 256; i++)
        a[i] = (u16)format_round(&f16, (quad)(i * 7 % 15 - 7) / 4, 0, NEAREST, 0);
    for (int i = 0; i < 128; i++)
        b[i] = (u16)format_round(&f16, (quad)(i * 5 % 13 - 6) / 8, 0, NEAREST, 0);

    struct {
        void *a, *b, *c;
    } p = {a, b, c};

    const char *problem = exec_run(e, "tile", THREADS(32), &p);
    if (!check_that(!problem, "tile: %s", problem ? problem : ""))
        return;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            double sum = 0;
            for (int k = 0; k < 16; k++)
                sum += format_value(&f16, a[16 * i + k]) * format_value(&f16, b[8 * k + j]);
            wrong += c[8 * i + j] != (float)sum;
        }
    CHECK_INT(wrong, 0);
}

static void with_module(const char *file, const char *const *options, void (*first)(exec *),
                        void (*second)(exec *)) {
    char *source = read_source(file);
    exec *e = source ? nvrtc_module(source, "sm_80", options) : NULL;
    free(source);
    if (!e)
        return;
    first(e);
    second(e);
    exec_close(e);
    exec_forget();
}

int main(void) {
    static const char *const fast[] = {"--use_fast_math", NULL};
    char include[PATH_MAX];
    const char *home = getenv("CUDA_HOME");
    snprintf(include, sizeof include, "--include-path=%s/include",
             home && *home ? home : "/usr/local/cuda");
    const char *const headers[] = {include, "--std=c++17", NULL};
    if (!nvrtc_is_real()) {
        check_skip("the mathematical library", "no NVRTC: set CUDA_HOME or SIMNVRTC_REAL");
        return check_end();
    }
    with_module("math.cu", NULL, check_singles, check_wides);
    char *source = read_source("math.cu"); /* only compiled, not run */
    exec *e = nvrtc_module(source, "sm_90", fast);
    CHECK(e && exec_kernel(e, "singles"));
    exec_close(e);
    free(source);
    char fp16[PATH_MAX + 16];
    snprintf(fp16, sizeof fp16, "%s/cuda_fp16.h", include + strlen("--include-path="));
    FILE *header = fopen(fp16, "r");
    if (header) {
        fclose(header);
        with_module("half.cu", headers, check_float16, check_tile);
    } else {
        check_skip("float16", "no cuda_fp16.h");
    }
    return check_end();
}
