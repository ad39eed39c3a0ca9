/* Compares every row of the op table on a GPU with cpu()'s reference loops. Inputs are a dense
   sample, NaN and infinities, in every class of dtypes. Rows of correctly rounded operations give
   the same bits. In float64, functions differ by the bounds of CUDA's manual and by the C library's
   own error. In float32 they differ by the errors of 2_core/math, which test_gpu_functions.c
   compares with the CPU's bits. */
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"
#include "on_gpu.h"

#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

typedef enum rule { RULE_SAME, RULE_NOBOOL, RULE_FLOAT, RULE_BOOL } rule;

/* ---- bounds in units in the last place. float64: "Mathematical Functions Appendix" of the CUDA
   C++ Programming Guide; float32: as tests/isa/math_rows.h, rounded up to integers ---- */
typedef struct bound {
    const char *name;
    double f32, f64;
} bound;

/* A row of several steps with at least one function has the sum of their bounds. The tail of gelu
   magnifies the rounding of its argument, so its error is relative to the size of x (see
   `scale`). */
static const bound bounds[] = {
    {"exp", 1, 1},   {"exp2", 1, 1},  {"expm1", 2, 1},   {"log", 1, 1},      {"log2", 2, 1},
    {"log10", 1, 1}, {"log1p", 2, 1}, {"sin", 1, 2},     {"cos", 1, 2},      {"tan", 3, 2},
    {"asin", 2, 2},  {"acos", 2, 2},  {"atan", 2, 2},    {"sinh", 3, 2},     {"cosh", 2, 1},
    {"tanh", 2, 1},  {"erf", 2, 2},   {"sigmoid", 4, 4}, {"softplus", 4, 4}, {"gelu", 5, 4},
    {"pow", 1, 2},   {"atan2", 2, 2}, {"hypot", 1, 2},
};

/* Returns 0 for the same bits. Adds one for the CPU's library. In 16 bits a result close
   to the midpoint may be rounded to the other side. */
static double bound_of(const char *name, dvt_dtype dtype) {
    int i;
    for (i = 0; i < LENGTH(bounds); i++)
        if (strcmp(bounds[i].name, name) == 0)
            return dtype == DVT_F64 ? bounds[i].f64 + 1 : dtype == DVT_F32 ? bounds[i].f32 + 1 : 1;
    return 0;
}

/* ---- comparing ---- */
/* Returns the distance of adjacent values of |size| in a dtype. */
static double spacing(double size, dvt_dtype dtype) {
    int digits = dtype == DVT_F64 ? 53 : dtype == DVT_F32 ? 24 : dtype == DVT_F16 ? 11 : 8;
    int least = dtype == DVT_F64 ? -1074 : dtype == DVT_F16 ? -24 : dtype == DVT_F32 ? -149 : -133;
    int exponent;
    frexp(size, &exponent);
    return ldexp(1, exponent - digits > least ? exponent - digits : least);
}

static int same_number(double a, double b) {
    return a != a || b != b ? a != a && b != b : a == b && signbit(a) == signbit(b);
}

/* Tells whether values at the largest number of a dtype differ by one step, which is infinity. */
static int close_to_infinity(double a, double b, double ulps, dvt_dtype dtype) {
    double largest = dtype == DVT_F64   ? 1.7976931348623157e308
                     : dtype == DVT_F32 ? 3.4028234663852886e38
                     : dtype == DVT_F16 ? 65504
                                        : 3.3895313892515355e38;
    return isinf(a) != isinf(b) && signbit(a) == signbit(b) &&
           fmin(fabs(a), fabs(b)) >= largest - ulps * spacing(largest, dtype);
}

/* Compares values. `scale`, unless NULL, holds magnitudes to use where the result's own is
   smaller. */
static void within(dvt_array *got, dvt_array *want, double ulps, dvt_array *scale,
                   const char *what) {
    dvt_dtype dtype = want ? dvt_dtype_of(want) : DVT_F32;
    double *a, *b, *s = scale ? dvt_test_values(scale) : NULL;
    int64_t i, n;
    if (!dvt_test_check(got && want && dvt_dtype_of(got) == dtype &&
                            dvt_shape_equal(dvt_shape_of(got), dvt_shape_of(want)),
                        __FILE__, __LINE__, "%s: %s", what, dvt_error()))
        return;
    a = dvt_test_values(dvt_copyto(got, dvt_cpu()));
    b = dvt_test_values(want);
    n = a && b ? dvt_size(want) : 0;
    for (i = 0; i < n; i++) {
        double size = fmax(fabs(b[i]), s ? fabs(s[i]) : 0);
        int ok = same_number(a[i], b[i]) ||
                 (ulps > 0 && (fabs(a[i] - b[i]) <= ulps * spacing(size, dtype) ||
                               close_to_infinity(a[i], b[i], ulps, dtype)));
        if (!dvt_test_check(ok, __FILE__, __LINE__,
                            "%s, %s: element %lld is %.17g on the GPU, %.17g on cpu()", what,
                            dvt_dtype_name(dtype), (long long)i, a[i], b[i]))
            break;
    }
    CHECK(a && b);
    free(a);
    free(b);
    free(s);
}

/* ---- inputs ---- */
static const double corners[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 2.5,
                                 -2.5,
                                 2,
                                 -3,
                                 7,
                                 1e-45,
                                 -1e-45,
                                 1e-40,
                                 1.17549435e-38,
                                 3.40282347e38,
                                 -3.40282347e38,
                                 4.9e-324,
                                 2.2250738585072014e-308,
                                 1.7976931348623157e308,
                                 16777217,
                                 -9007199254740993.0,
                                 127,
                                 -128,
                                 2147483647,
                                 -9223372036854775808.0,
                                 88.8,
                                 -104,
                                 709.9,
                                 -746,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 (double)NAN};

/* Returns corner values, then numbers of [low, high], then numbers of every magnitude; integers
   rounded down. */
static dvt_array *sample(int64_t n, dvt_dtype dtype, double low, double high) {
    double *values = (double *)malloc(sizeof(double) * (size_t)n);
    dvt_array *x;
    int64_t i;
    for (i = 0; i < n; i++) {
        values[i] = i < LENGTH(corners) ? corners[i]
                    : i % 2             ? dvt_test_random(low, high)
                            : ldexp(dvt_test_random(-1, 1), (int)dvt_test_random(-160, 140));
        if (!dvt_dtype_is_float(dtype) && i >= LENGTH(corners))
            values[i] = floor(i % 3 ? dvt_test_random(-10, 10) : dvt_test_random(-3e9, 3e9));
    }
    x = dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(n), DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

/* ---- the rows ---- */
typedef struct unary_row {
    const char *name;
    rule kind;
    dvt_array *(*call)(dvt_array *);
    double low, high;
} unary_row;

#define ROW(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)                        \
    {#name, RULE_##rule, dvt_##name, lo, hi},
static const unary_row unary_rows[] = {DVTI_UNARY_TABLE(ROW)};
#undef ROW

typedef struct binary_row {
    const char *name;
    rule kind;
    dvt_array *(*call)(dvt_array *, dvt_array *);
    dvt_array *(*with_scalar)(dvt_array *, double);
    dvt_array *(*from_scalar)(double, dvt_array *);
    double low, high;
} binary_row;

#define ROW(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb, hb, doc)   \
    {#name, RULE_##rule, dvt_##name, dvt_##name##_scalar, dvt_scalar_##name, la, ha},
static const binary_row binary_rows[] = {DVTI_BINARY_TABLE(ROW)};
#undef ROW

static dvt_array *on_gpu(dvt_array *x) {
    return dvt_copyto(x, dvt_gpu(0));
}

static void unary(const unary_row *row, dvt_dtype dtype, int64_t n) {
    if (row->kind == RULE_NOBOOL && dtype == DVT_BOOL)
        return;
    DVT_SCOPE {
        dvt_array *x = sample(n, dtype, 2 * row->low, 2 * row->high);
        dvt_array *y = row->call(x);
        within(row->call(on_gpu(x)), y, bound_of(row->name, dvt_dtype_of(y)),
               strcmp(row->name, "gelu") == 0 ? x : NULL, row->name);
    }
}

/* Combines every sampled number with every other one. */
static void binary(const binary_row *row, dvt_dtype a, dvt_dtype b) {
    if (row->kind == RULE_NOBOOL && a == DVT_BOOL && b == DVT_BOOL)
        return;
    DVT_SCOPE {
        dvt_array *x = sample(60, a, row->low, row->high), *y = sample(60, b, row->low, row->high);
        dvt_array *z;
        x = dvt_reshape(x, DVT_SHAPE(60, 1));
        z = row->call(x, y);
        within(row->call(on_gpu(x), on_gpu(y)), z, bound_of(row->name, dvt_dtype_of(z)), NULL,
               row->name);
    }
}

/* Layouts of arrays next to a scalar. FLAT has a program of its own, with a tail. STRIDED, rows of
   12 of 16 elements, has that of `binary`. In full, both. */
typedef enum scalar_layout { FLAT, STRIDED } scalar_layout;

static void with_scalar_of(const binary_row *row, dvt_dtype dtype, double scalar,
                           scalar_layout layout) {
    dvt_array *x = sample(layout == FLAT ? 77 : 8 * 16, dtype, row->low, row->high), *gx, *y;
    gx = on_gpu(x);
    if (layout == STRIDED) {
        x = dvt_slice(dvt_reshape(x, DVT_SHAPE(8, 16)), 1, 0, 12, 1);
        gx = dvt_slice(dvt_reshape(gx, DVT_SHAPE(8, 16)), 1, 0, 12, 1);
    }
    y = row->with_scalar(x, scalar);
    within(row->with_scalar(gx, scalar), y, bound_of(row->name, dvt_dtype_of(y)), NULL, row->name);
    y = row->from_scalar(scalar, x);
    within(row->from_scalar(scalar, gx), y, bound_of(row->name, dvt_dtype_of(y)), NULL, row->name);
}

static void with_scalar(const binary_row *row, dvt_dtype dtype, double scalar,
                        scalar_layout layout) {
    if (row->kind == RULE_NOBOOL && dtype == DVT_BOOL)
        return;
    DVT_SCOPE {
        with_scalar_of(row, dtype, scalar, layout);
        if (IN_FULL)
            with_scalar_of(row, dtype, scalar, layout == FLAT ? STRIDED : FLAT);
    }
}

/* ---- values ---- */
DVT_TEST(gpu_unary_values_f32) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(unary_rows); i++)
        unary(&unary_rows[i], DVT_F32, 4001);
}

DVT_TEST(gpu_unary_values_f64) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(unary_rows); i++)
        if (EACH(i, 3))
            unary(&unary_rows[i], DVT_F64, 2001);
}

/* The other dtypes are distributed over the rows. Rows with a formula for integers have integers;
   others have them, a 16-bit float or, in the test above, float64. */
DVT_TEST(gpu_unary_values_of_other_dtypes) {
    static const dvt_dtype integers[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64, DVT_BOOL};
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(unary_rows); i++) {
        bool formula = unary_rows[i].kind == RULE_NOBOOL || unary_rows[i].kind == RULE_SAME;
        if (EACH(i + 1, 3))
            unary(&unary_rows[i], i % 4 ? DVT_F16 : DVT_BF16, 1001);
        if (formula || EACH(i + 2, 6))
            unary(&unary_rows[i], integers[i % 5], 1001);
        if (formula && IN_FULL)
            unary(&unary_rows[i], integers[(i + 2) % 5], 1001);
    }
}

DVT_TEST(gpu_binary_values_f32) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(binary_rows); i++)
        binary(&binary_rows[i], DVT_F32, DVT_F32);
}

DVT_TEST(gpu_binary_values_f64) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(binary_rows); i++)
        if (EACH(i, 2))
            binary(&binary_rows[i], DVT_F64, DVT_F64);
}

DVT_TEST(gpu_binary_values_of_integers) {
    static const dvt_dtype integers[] = {DVT_I8, DVT_U8, DVT_I32, DVT_BOOL};
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(binary_rows); i++) {
        if (EACH(i, 2))
            binary(&binary_rows[i], DVT_I64, DVT_I64);
        if (EACH(i + 1, 2))
            binary(&binary_rows[i], integers[i / 2 % 4], integers[i / 2 % 4]);
    }
}

/* One row with every pair of dtypes, then every row with some pairs. All share a few programs. */
DVT_TEST(gpu_binary_values_of_mixed_dtypes) {
    int a, b, i;
    NEEDS_GPU;
    for (a = 0; a < DVT_DTYPE_COUNT; a++)
        for (b = 0; b < DVT_DTYPE_COUNT; b++)
            binary(&binary_rows[0], (dvt_dtype)a, (dvt_dtype)b);
    for (i = 0; i < LENGTH(binary_rows); i++) {
        if (EACH(i, 6))
            binary(&binary_rows[i], DVT_BF16, DVT_I32);
        if (EACH(i + 2, 6))
            binary(&binary_rows[i], DVT_F16, DVT_F32);
        if (i % 3 == 0 && EACH(i, 12))
            binary(&binary_rows[i], DVT_U8, DVT_I64);
    }
}

/* Groups of four need rows that are multiples of four, and 16 aligned bytes or the whole group. */
DVT_TEST(gpu_mixed_dtypes_in_groups) {
    static const dvt_dtype pairs[][2] = {
        {DVT_F32, DVT_F16},  {DVT_BF16, DVT_F32}, {DVT_F32, DVT_I32},
        {DVT_BOOL, DVT_F32}, {DVT_U8, DVT_F32},   {DVT_I64, DVT_I32},
        {DVT_F64, DVT_F32},  {DVT_I8, DVT_F64},   {DVT_I64, DVT_F16}};
    const int step = IN_FULL ? 1 : 2;
    int i, from;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(pairs); i++)
        for (from = 0; from < 2; from++)
            DVT_SCOPE {
                dvt_array *x = sample(24 * 36, pairs[i][0], 0, 9),
                          *y = sample(24 * 36, pairs[i][1], 0, 9), *a, *b, *row, *column, *where;
                dvt_array *gx = on_gpu(x), *gy = on_gpu(y);
                int k;
                for (k = i % step; k < 5; k += step) {
                    int64_t columns = k == 1 ? 35 : 32;
#define VIEW(z) dvt_slice(dvt_reshape(z, DVT_SHAPE(24, 36)), 1, from, from + columns, 1)
#define MADE(z, w)                                                                                 \
    (a = VIEW(z), b = VIEW(w), row = dvt_slice(b, 0, 3, 4, 1), column = dvt_slice(b, 1, 3, 4, 1),  \
     where = dvt_slice(a, 0, 5, 6, 1),                                                             \
     k < 2    ? dvt_add(a, b)                                                                      \
     : k == 2 ? dvt_less(row, a)                                                                   \
     : k == 3 ? dvt_mul(a, column)                                                                 \
              : dvt_where(where, b, a))
                    dvt_array *want = MADE(x, y), *got = MADE(gx, gy);
                    within(got, want, 0, NULL, "mixed dtypes");
                }
            }
}

DVT_TEST(gpu_scalar_operands) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(binary_rows); i++) {
        scalar_layout some = i % 2 ? FLAT : STRIDED;
        with_scalar(&binary_rows[i], DVT_F32, 0.1, some);
        with_scalar(&binary_rows[i], DVT_F32, 0, some);
        if (EACH(i, 4))
            with_scalar(&binary_rows[i], DVT_I64, -3, STRIDED);
        if (i % 4 == 0 && EACH(i, 8)) {
            with_scalar(&binary_rows[i], DVT_I64, 4611686018427387904.0, STRIDED);
            if (EACH(i, 24))
                with_scalar(&binary_rows[i], DVT_I32, 2.5, FLAT);
            if (EACH(i + 8, 24))
                with_scalar(&binary_rows[i], DVT_BOOL, 1, FLAT);
            if (EACH(i + 16, 24))
                with_scalar(&binary_rows[i], DVT_BF16, 1e30, FLAT);
        }
    }
    with_scalar(&binary_rows[0], DVT_F64, 0.1, STRIDED);
    with_scalar(&binary_rows[0], DVT_F32, (double)NAN, STRIDED);
}

/* Exponents with short formulas: as a scalar, in an array of one element, and among others. */
DVT_TEST(gpu_pow_by_formulas) {
    static const double exponents[] = {-1, 0, 0.5, 1, 2, 3};
    int i;
    NEEDS_GPU;
    for (i = 0; i < LENGTH(exponents); i++)
        DVT_SCOPE {
            const double s = exponents[i];
            dvt_array *x = sample(133, DVT_F32, -9, 9), *one = dvt_scalar(s, DVT_F32, dvt_cpu());
            dvt_array *some = dvt_where_scalar(dvt_greater_scalar(x, 1), one, 1.5);
            within(dvt_pow_scalar(on_gpu(x), s), dvt_pow_scalar(x, s), bound_of("pow", DVT_F32),
                   NULL, "pow_scalar");
            within(dvt_pow(on_gpu(x), on_gpu(one)), dvt_pow(x, one), bound_of("pow", DVT_F32), NULL,
                   "pow by one");
            within(dvt_pow(on_gpu(x), on_gpu(some)), dvt_pow(x, some), bound_of("pow", DVT_F32),
                   NULL, "pow by some");
        }
}

/* ---- in place ---- */
/* The result keeps the dtype of its array, whatever the dtype of the computation. */
DVT_TEST(gpu_in_place_keeps_the_dtype) {
    static const dvt_dtype floats[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int i, j;
    NEEDS_GPU;
    for (i = 0; i < 4; i++)
        for (j = 0; j < DVT_DTYPE_COUNT; j++)
            DVT_SCOPE {
                dvt_array *x = sample(61, floats[i], -9, 9), *gx = on_gpu(x);
                dvt_array *y = sample(61, (dvt_dtype)j, -9, 9);
                CHECK(dvt_mul_(x, y) && dvt_mul_(gx, on_gpu(y)));
                within(gx, x, 0, NULL, "mul_");
                CHECK(dvt_add_scalar_(x, 0.5) && dvt_add_scalar_(gx, 0.5));
                within(gx, x, 0, NULL, "add_scalar_");
            }
    for (j = DVT_I8; j <= DVT_I64; j++)
        DVT_SCOPE {
            dvt_array *x = sample(61, DVT_U8, 0, 1), *gx = on_gpu(x);
            dvt_array *y = sample(61, (dvt_dtype)j, -9, 9);
            CHECK(dvt_sub_(x, y) && dvt_sub_(gx, on_gpu(y)));
            within(gx, x, 0, NULL, "sub_ of uint8");
        }
}

/* ---- where, clip ---- */
DVT_TEST(gpu_where_with_every_condition) {
    int c, a;
    NEEDS_GPU;
    for (c = 0; c < DVT_DTYPE_COUNT; c++)
        for (a = 0; a < DVT_DTYPE_COUNT; a++) {
            if (c == a && !EACH(a, 2)) /* it has its own program, as a bool has */
                continue;
            DVT_SCOPE {
                dvt_array *condition = sample(133, (dvt_dtype)c, -1, 1);
                dvt_array *x = sample(133, (dvt_dtype)a, -9, 9),
                          *y = sample(133, (dvt_dtype)a, -9, 9);
                dvt_array *z = sample(133, (dvt_dtype)((a + 4) % DVT_DTYPE_COUNT), -9, 9);
                within(dvt_where(on_gpu(condition), on_gpu(x), on_gpu(y)),
                       dvt_where(condition, x, y), 0, NULL, "where");
                if (a % 3 == 0)
                    within(dvt_where(on_gpu(condition), on_gpu(x), on_gpu(z)),
                           dvt_where(condition, x, z), 0, NULL, "where of two dtypes");
            }
        }
}

DVT_TEST(gpu_where_with_scalars) {
    static const double numbers[] = {0, -3, 0.5};
    int a, i;
    NEEDS_GPU;
    for (a = 0; a < DVT_DTYPE_COUNT; a++)
        for (i = 0; i < LENGTH(numbers); i++)
            DVT_SCOPE {
                dvt_array *condition = sample(133, i ? DVT_BOOL : DVT_F32, -1, 1);
                dvt_array *x = sample(133, (dvt_dtype)a, -9, 9);
                within(dvt_where_scalar(on_gpu(condition), on_gpu(x), numbers[i]),
                       dvt_where_scalar(condition, x, numbers[i]), 0, NULL, "where_scalar");
                within(dvt_scalar_where(on_gpu(condition), numbers[i], on_gpu(x)),
                       dvt_scalar_where(condition, numbers[i], x), 0, NULL, "scalar_where");
            }
}

DVT_TEST(gpu_clip) {
    static const double limits[][2] = {{-1, 1},
                                       {0.5, 2.75},
                                       {-0.5, -0.5},
                                       {-1e300, 1e300},
                                       {-300, 3e10},
                                       {300, (double)INFINITY},
                                       {-(double)INFINITY, -7}};
    int dtype, i;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (i = 0; i < LENGTH(limits); i++)
            DVT_SCOPE {
                dvt_array *x = sample(501, (dvt_dtype)dtype, -4, 4), *y = on_gpu(x);
                within(dvt_clip(y, limits[i][0], limits[i][1]),
                       dvt_clip(x, limits[i][0], limits[i][1]), 0, NULL, "clip");
                CHECK(dvt_clip_(y, limits[i][0], limits[i][1]) &&
                      dvt_clip_(x, limits[i][0], limits[i][1]));
                within(y, x, 0, NULL, "clip_");
            }
}
