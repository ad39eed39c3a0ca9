/* Measures how many digits gradients keep for small and large arguments. Gradients of float32,
   float16 and bfloat16 are compared with float64 at the same points. A gradient computed from a
   rounded result or through a square may lose all digits. */
#include "gradient_check.h"
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"

typedef dvt_array *(*unary_fn)(dvt_array *);
typedef dvt_array *(*binary_fn)(dvt_array *, dvt_array *);

/* Rows of bool results have no gradient. */
#define IF_SAME(x) x
#define IF_NOBOOL(x) x
#define IF_FLOAT(x) x
#define IF_BOOL(x)
#define COMMA ,
#define UNARY(name, rule, ...) IF_##rule({#name COMMA dvt_##name} COMMA)
#define BINARY(name, rule, ...) IF_##rule({#name COMMA dvt_##name} COMMA)

static const struct {
    const char *name;
    unary_fn f;
} unary_rows[] = {DVTI_UNARY_TABLE(UNARY)};

static const struct {
    const char *name;
    binary_fn f;
} binary_rows[] = {DVTI_BINARY_TABLE(BINARY)};

#undef UNARY
#undef BINARY

static const dvt_dtype digits_dtypes[] = {DVT_F32, DVT_F16, DVT_BF16};

/* Returns the distance of neighboring numbers at v. */
static double spacing(double v, dvt_dtype dtype) {
    int bits = dtype == DVT_F32 ? 24 : dtype == DVT_F16 ? 11 : 8;
    int least = dtype == DVT_F16 ? -14 : -126, exponent;
    frexp(v, &exponent);
    return ldexp(1, (exponent - 1 < least ? least : exponent - 1) - bits + 1);
}

static double largest(dvt_dtype dtype) {
    return dtype == DVT_F16 ? 65504 : dtype == DVT_F32 ? 3.4028e38 : 3.3895e38;
}

static double least_normal(dvt_dtype dtype) {
    return dtype == DVT_F16 ? ldexp(1, -14) : ldexp(1, -126);
}

static const double grid[] = {1e-30, 1e-20, 1e-8, 1e-6, 1e-4, 5e-4, 1e-3,  3e-3, 0.01,
                              0.1,   0.3,   0.5,  0.8,  0.95, 0.99, 0.999, 1,    1.2,
                              2,     3,     5,    8,    9,    12,   17,    20,   40,
                              80,    100,   300,  1000, 5000, 3e4,  1e8,   1e19, 1e25};

enum { GRID = 2 * COUNT(grid), PAIRS = GRID * GRID };

static double grid_at(int i) {
    return i % 2 ? -grid[i / 2] : grid[i / 2];
}

typedef struct slopes {
    double *y, *to[2];
} slopes;

/* Returns y and the gradients of x and b (or NULL) in a dtype, for a gradient `head` of the
   result. */
static slopes slopes_of(unary_fn one, binary_fn two, dvt_array *const *in, dvt_dtype dtype,
                        double head) {
    slopes s;
    memset(&s, 0, sizeof s);
    DVT_SCOPE {
        dvt_array *x[2] = {NULL, NULL}, *y = NULL, *h;
        int k;
        for (k = 0; k < 2 && in[k]; k++) {
            x[k] = dvt_astype(in[k], dtype);
            dvt_attach_grad(x[k], DVT_GRAD_WRITE);
        }
        DVT_RECORD {
            y = two ? two(x[0], x[1]) : one(x[0]);
        }
        h = dvt_full_like(y, head);
        CHECK_INT(dvt_backward_from(&y, &h, 1, DVT_FREE_GRAPH), DVT_OK);
        s.y = dvt_test_values(y);
        for (k = 0; k < 2 && x[k]; k++)
            s.to[k] = dvt_test_values(dvt_grad(x[k]));
    }
    return s;
}

static void slopes_free(slopes s) {
    free(s.y);
    free(s.to[0]);
    free(s.to[1]);
}

/* Tells whether a saturated result limits precision. sigmoid and tanh compute the gradient from the
   result, whose distance from 1 has an error of one rounding of 1, as in other libraries. */
static bool is_saturated(const char *name) {
    return strcmp(name, "sigmoid") == 0 || strcmp(name, "tanh") == 0;
}

/* Tells whether the result and intermediate results are in range, where the gradient keeps its
   digits. */
static bool is_in_range(const char *name, double a, double b, double y, dvt_dtype dtype) {
    const double most = largest(dtype);
    if (y != y || fabs(y) > most)
        return false;
    if (strcmp(name, "mod") == 0)
        return fabs(a / b) <= most;
    if (strcmp(name, "pow") == 0)
        return (a > 0 || fabs(b) < 16777216) && /* b - 1 is odd where b is even */
               fabs(pow(a, b - 1)) <= most && fabs(y) >= least_normal(dtype) &&
               fabs(y * log(fabs(a))) <= most && fabs(pow(a, b - 1)) >= least_normal(dtype);
    return true;
}

static void check_digits(const char *name, const slopes *got, const slopes *exact, int to,
                         const double *a, const double *b, int n, dvt_dtype dtype, double head) {
    int k;
    for (k = 0; k < n; k++) {
        double want = exact->to[to][k], error = fabs(got->to[to][k] - want);
        double bound = 16 * spacing(want, dtype);
        if (strcmp(name, "pow") == 0) /* error of rounding b - 1 */
            bound *= 1 + fabs(log(fabs(a[k]))) / 16;
        if (strcmp(name, "gelu") == 0) /* at -0.75 two terms of 0.2 cancel */
            bound = fmax(bound, 4 * head * spacing(0.2, dtype));
        if (is_saturated(name))
            bound = 2 * head * spacing(1, dtype);
        if (want != want || fabs(want) > largest(dtype) / 2 ||
            !is_in_range(name, a[k], b ? b[k] : 0, exact->y[k], dtype))
            continue;
        if (!dvt_test_check(error <= bound, __FILE__, __LINE__,
                            "%s of %s at %g, %g: the gradient to %d is %.9g, in float64 %.9g", name,
                            dvt_dtype_name(dtype), a[k], b ? b[k] : 0, to, got->to[to][k], want))
            break;
    }
}

static void check_row(const char *name, unary_fn one, binary_fn two, const double *a,
                      const double *b, int n, dvt_dtype dtype, double head) {
    DVT_SCOPE {
        dvt_array *in[2] = {NULL, NULL};
        double *va, *vb = NULL;
        slopes got, exact;
        in[0] = dvt_as_in_dtype(dvt_from_host(a, DVT_SHAPE(n), DVT_F64, dvt_cpu()), dtype);
        va = dvt_test_values(in[0]);
        if (b) {
            in[1] = dvt_as_in_dtype(dvt_from_host(b, DVT_SHAPE(n), DVT_F64, dvt_cpu()), dtype);
            vb = dvt_test_values(in[1]);
        }
        got = slopes_of(one, two, in, dtype, head);
        exact = slopes_of(one, two, in, DVT_F64, head);
        check_digits(name, &got, &exact, 0, va, vb, n, dtype, head);
        if (b)
            check_digits(name, &got, &exact, 1, va, vb, n, dtype, head);
        slopes_free(got);
        slopes_free(exact);
        free(va);
        free(vb);
    }
}

DVT_TEST(gradients_digits_of_unary_rows) {
    double at[GRID];
    int i, d;
    for (i = 0; i < GRID; i++)
        at[i] = grid_at(i);
    for (i = 0; i < COUNT(unary_rows); i++)
        for (d = 0; d < 3; d++) {
            check_row(unary_rows[i].name, unary_rows[i].f, NULL, at, NULL, GRID, digits_dtypes[d],
                      1);
            check_row(unary_rows[i].name, unary_rows[i].f, NULL, at, NULL, GRID, digits_dtypes[d],
                      0.0078125);
        }
}

DVT_TEST(gradients_digits_of_binary_rows) {
    static double a[PAIRS], b[PAIRS];
    int i, d;
    for (i = 0; i < PAIRS; i++) {
        a[i] = grid_at(i / GRID);
        b[i] = grid_at(i % GRID);
    }
    for (i = 0; i < COUNT(binary_rows); i++)
        for (d = 0; d < 3; d++)
            check_row(binary_rows[i].name, NULL, binary_rows[i].f, a, b, PAIRS, digits_dtypes[d],
                      1);
}

/* ---- reductions ---- */
static dvt_array *sum_of(dvt_array *x) {
    return dvt_sum(x, DVT_AXES(1));
}

static dvt_array *mean_of(dvt_array *x) {
    return dvt_mean(x, DVT_AXES(1));
}

static dvt_array *prod_of(dvt_array *x) {
    return dvt_prod(x, DVT_AXES(1));
}

static dvt_array *max_of(dvt_array *x) {
    return dvt_max(x, DVT_AXES(1));
}

static dvt_array *norm_of(dvt_array *x) {
    return dvt_norm(x, DVT_AXES(1));
}

static dvt_array *std_of(dvt_array *x) {
    return dvt_std(x, DVT_AXES(1), 0);
}

static dvt_array *logsumexp_of(dvt_array *x) {
    return dvt_logsumexp(x, DVT_AXES(1));
}

static dvt_array *logsumexp_of_all(dvt_array *x) {
    return dvt_logsumexp(dvt_expand_dims(x, 1), DVT_AXES(0, 2));
}

static dvt_array *softmax_of(dvt_array *x) {
    return dvt_slice(dvt_softmax(x, 1), 1, 0, 1, 1);
}

static dvt_array *log_softmax_of(dvt_array *x) {
    return dvt_slice(dvt_log_softmax(x, 1), 1, 0, 1, 1);
}

static dvt_array *cumsum_of(dvt_array *x) {
    return dvt_cumsum(x, 1);
}

static const struct {
    const char *name;
    unary_fn f;
} sums[] = {{"sum", sum_of},
            {"mean", mean_of},
            {"prod", prod_of},
            {"max", max_of},
            {"norm", norm_of},
            {"std", std_of},
            {"logsumexp", logsumexp_of},
            {"logsumexp of all", logsumexp_of_all},
            {"softmax", softmax_of},
            {"log_softmax", log_softmax_of},
            {"cumsum", cumsum_of}};

/* The rows have equal, neighboring and distant values of every magnitude. The error is relative to
   the largest gradient of a row. */
DVT_TEST(gradients_digits_of_reductions) {
    static const double row[][4] = {{200, 200, 200, 200},      {1e7, 1e7, 1e7, 1e7},
                                    {1000, 1000.5, 998, 1001}, {-300, -302, -299, -300},
                                    {1e-5, 2e-5, -1e-5, 0},    {3e-7, 4e-7, 0, 1e-7},
                                    {1e4, 1e4, 1e-4, 1e-4},    {-8, -8.5, -9, 0},
                                    {-1, 6, 0.5, 2},           {3e4, -2e4, 0, 1e4}};
    int i, d, r, k;
    for (i = 0; i < COUNT(sums); i++)
        for (d = 0; d < 3; d++)
            for (r = 0; r < COUNT(row); r++)
                DVT_SCOPE {
                    dvt_dtype dtype = digits_dtypes[d];
                    dvt_array *in[2] = {NULL, NULL};
                    slopes got, exact;
                    double most = 0;
                    if (dtype == DVT_F16 && r == 1)
                        continue;
                    in[0] = dvt_as_in_dtype(
                        dvt_from_host(row[r], DVT_SHAPE(1, 4), DVT_F64, dvt_cpu()), dtype);
                    got = slopes_of(sums[i].f, NULL, in, dtype, 1);
                    exact = slopes_of(sums[i].f, NULL, in, DVT_F64, 1);
                    for (k = 0; k < 4; k++)
                        most = fmax(most, fabs(exact.to[0][k]));
                    for (k = 0; k < 4 && most <= largest(dtype) && most > 0; k++)
                        dvt_test_check(
                            fabs(got.to[0][k] - exact.to[0][k]) <= 4 * spacing(most, dtype),
                            __FILE__, __LINE__,
                            "%s of %s, row %d: gradient %d is %.9g, in float64 %.9g", sums[i].name,
                            dvt_dtype_name(dtype), r, k, got.to[0][k], exact.to[0][k]);
                    slopes_free(got);
                    slopes_free(exact);
                }
}
