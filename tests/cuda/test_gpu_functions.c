/* The float functions that the CPU's ISA targets and the GPU share (2_core/math) give the same bits
   on both; all NaN count as equal. The reference loops, with which other GPU tests compare, use the
   C library's functions instead. */
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"
#include "on_gpu.h"
#include <float.h>

#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

typedef struct function1 {
    const char *name;
    dvt_array *(*call)(dvt_array *);
    const char *files; /* NULL: none of 2_core/math */
} function1;

typedef struct function2 {
    const char *name;
    dvt_array *(*call)(dvt_array *, dvt_array *);
    const char *files;
} function2;

/* Rows with their own float32 functions: those that name files. The quotients are not functions of
   that directory, but have the same bits too. */
#define ROW(name, rule, cost, f, i, vector, math, ...) {#name, dvt_##name, math},
static const function1 functions1[] = {DVTI_UNARY_TABLE(ROW)};
static const function2 functions2[] = {DVTI_BINARY_TABLE(ROW){"mod", dvt_mod, "row_functions.inl"},
                                       {"floor_div", dvt_floor_div, "row_functions.inl"}};
#undef ROW

static dvt_array *on_gpu(dvt_array *x) {
    return dvt_copyto(x, dvt_gpu(0));
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---- ISA targets ---- */
/* Chooses the k-th ISA target. Returns false where this machine does not support it. */
static int choose_isa(int k) {
    static const char *const names[] = {"avx512", "avx2", "neon", "plain"};
    if (dvt_set_cpu_isa(names[k]) == DVT_OK)
        return 1;
    dvt_clear_error();
    return 0;
}

#define MOST_ISAS 4

/* Restores the ISA target of the other tests, which the environment has chosen. */
static void choose_before(const char *before) {
    CHECK(dvt_set_cpu_isa(before) == DVT_OK);
}

static int have_isa(void) {
    const char *before = dvt_cpu_isa();
    int k, n = 0;
    for (k = 0; k < MOST_ISAS; k++)
        n += choose_isa(k);
    choose_before(before);
    return n > 0;
}

#define NEEDS_ISA                                                                                  \
    NEEDS_GPU;                                                                                     \
    if (!have_isa())                                                                               \
    SKIP("cpu() has no functions of its own for this processor")

/* Doubles hold the elements of these dtypes exactly, so equal numbers with equal signs are equal
   bits. */
static void same_bits(dvt_array *got, dvt_array *want, dvt_array *x, const char *name) {
    double *a = dvt_test_values(dvt_copyto(got, dvt_cpu())), *b = dvt_test_values(want);
    double *in = dvt_test_values(x);
    int64_t n = a && b && in ? dvt_size(want) : 0, per = n ? n / dvt_size(x) : 1, i;
    dvt_test_check(n > 0 && dvt_size(got) == n, __FILE__, __LINE__, "%s: %s", name, dvt_error());
    for (i = 0; i < n; i++) {
        int same = a[i] != a[i] || b[i] != b[i] ? a[i] != a[i] && b[i] != b[i]
                                                : a[i] == b[i] && signbit(a[i]) == signbit(b[i]);
        if (!dvt_test_check(same, __FILE__, __LINE__,
                            "%s of %s: element %lld, of %.9g, is %.9g on the GPU, %.9g with %s",
                            name, dvt_dtype_name(dvt_dtype_of(x)), (long long)i, in[i / per], a[i],
                            b[i], dvt_cpu_isa()))
            break;
    }
    free(a);
    free(b);
    free(in);
}

/* ---- inputs ---- */
/* Every STEP-th float, then the neighbors of points where a function changes its method or the
   class of its result. */
enum { STEP = 16381, ALL = (int)(((int64_t)1 << 32) / STEP) + 1, AROUND = 32 };

static const float places[] = {
    0.f,          FLT_MIN, 1.f,         0.5f,         2.f,          0.625f,      0.875f,
    4.f,          9.1f,    15.f,        16.635532f,   88.7228394f,  87.3365479f, 103.972084f,
    126.f,        128.f,   149.f,       0.346573591f, 1.03972077f,  89.4159851f, 1.41421354f,
    0.707106769f, 1e-4f,   1e-8f,       14.1f,        3.92f,        8388608.f,   16777216.f,
    67108864.f,   FLT_MAX, 1.57079637f, 3.14159274f,  0.785398185f, 65536.f,     1e10f,
    1e-30f,       10.f,    100.f,       1000.f};

static dvt_array *sample(void) {
    int64_t n = ALL + (int64_t)LENGTH(places) * 4 * AROUND, at = 0, bits;
    dvt_array *x = dvt_zeros(DVT_SHAPE(n), DVT_F32, dvt_cpu());
    float *to = (float *)dvt_data(x);
    int p, i;
    for (bits = 0; bits < (int64_t)1 << 32; bits += STEP)
        to[at++] = float_of((uint32_t)bits);
    for (p = 0; p < LENGTH(places); p++)
        for (i = 0; i < 4 * AROUND; i++)
            to[at++] = float_of((bits_of(places[p]) + (uint32_t)(i >> 1) - AROUND) ^
                                (uint32_t)(i & 1) << 31);
    CHECK_INT(at, n);
    return x;
}

/* Returns numbers for pairs: special ones, multiples of 0.5 of both signs, then any. */
static dvt_array *sample_for_pairs(int64_t n) {
    static const float corners[] = {0.f,     -0.f, 1.f,    -1.f,    0.5f,    -0.5f,      2.f,
                                    -2.f,    3.f,  -3.f,   2.5f,    -2.5f,   INFINITY,   -INFINITY,
                                    FLT_MAX, -7.f, 1e-45f, -1e-45f, FLT_MIN, 16777216.f, NAN};
    dvt_array *x = dvt_zeros(DVT_SHAPE(n), DVT_F32, dvt_cpu());
    float *to = (float *)dvt_data(x);
    int64_t i;
    for (i = 0; i < n; i++)
        to[i] = i < LENGTH(corners) ? corners[i]
                : i % 2             ? (float)dvt_test_random(-20, 20)
                        : (float)ldexp(dvt_test_random(-1, 1), (int)dvt_test_random(-148, 128));
    return x;
}

/* ---- tests ---- */
/* Compares one function of x on the GPU with each ISA target. */
static void compare1(const function1 *f, dvt_array *x) {
    const char *before = dvt_cpu_isa();
    if (!f->files)
        return;
    DVT_SCOPE {
        dvt_array *got = f->call(on_gpu(x));
        int k;
        for (k = 0; k < MOST_ISAS; k++)
            if (choose_isa(k))
                same_bits(got, f->call(x), x, f->name);
    }
    choose_before(before);
}

DVT_TEST(gpu_functions_have_the_bits_of_cpu) {
    int i;
    NEEDS_ISA;
    DVT_SCOPE {
        dvt_array *x = sample();
        for (i = 0; i < LENGTH(functions1); i++)
            compare1(&functions1[i], x);
    }
}

/* Combines every element of a row with every one of a column. */
DVT_TEST(gpu_functions_of_two_have_the_bits_of_cpu) {
    const char *before = dvt_cpu_isa();
    int i, k;
    NEEDS_ISA;
    for (i = 0; i < LENGTH(functions2); i++)
        DVT_SCOPE {
            dvt_array *a, *b, *got;
            if (!functions2[i].files)
                continue;
            a = dvt_reshape(sample_for_pairs(400), DVT_SHAPE(400, 1));
            b = sample_for_pairs(400);
            got = functions2[i].call(on_gpu(a), on_gpu(b));
            for (k = 0; k < MOST_ISAS; k++)
                if (choose_isa(k))
                    same_bits(got, functions2[i].call(a, b), a, functions2[i].name);
        }
    choose_before(before);
}

/* All 16-bit floats: they are converted to float32, and the result is rounded. */
DVT_TEST(gpu_functions_of_all_16_bit_floats_have_the_bits_of_cpu) {
    int i, d;
    NEEDS_ISA;
    for (d = 0; d < 2; d++)
        DVT_SCOPE {
            dvt_array *x = dvt_zeros(DVT_SHAPE(65536), d ? DVT_BF16 : DVT_F16, dvt_cpu());
            uint16_t *to = (uint16_t *)dvt_data(x);
            for (i = 0; i < 65536; i++)
                to[i] = (uint16_t)i;
            for (i = 0; i < LENGTH(functions1); i++)
                if (EACH(i + d, 4))
                    compare1(&functions1[i], x);
        }
}

/* Integers are converted to float32 first, by another program. */
DVT_TEST(gpu_functions_of_integers_have_the_bits_of_cpu) {
    int i;
    NEEDS_ISA;
    DVT_SCOPE {
        dvt_array *x = random_on_cpu(DVT_SHAPE(3001), DVT_I32, -1000, 1000);
        for (i = 0; i < LENGTH(functions1); i++)
            if (EACH(i, 5))
                compare1(&functions1[i], x);
    }
}

/* The Box-Muller transform, which the reference loops take from 2_core/math too. */
DVT_TEST(gpu_normal_numbers_have_the_bits_of_cpu) {
    const char *before = dvt_cpu_isa();
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16};
    dvt_key key = dvt_key_new(11);
    int i, k;
    NEEDS_GPU;
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            dvt_shape shape = DVT_SHAPE(i ? 4099 : 200003);
            dvt_array *got = dvt_key_normal(key, 0.5, 2, shape, dtypes[i], dvt_gpu(0));
            for (k = 0; k <= MOST_ISAS; k++) {
                if (k == MOST_ISAS)
                    choose_before("reference");
                if (k == MOST_ISAS || choose_isa(k)) {
                    dvt_array *want = dvt_key_normal(key, 0.5, 2, shape, dtypes[i], dvt_cpu());
                    same_bits(got, want, want, "normal");
                }
            }
        }
    choose_before(before);
}
