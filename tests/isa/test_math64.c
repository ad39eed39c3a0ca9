/* Functions of double on every ISA target: within their bounds of the C library's in long
   double, and the same bits on all ISA targets. Inputs are a sample of all doubles, ordinary
   numbers and the neighborhood of special values. If long double is double, only the ISA targets
   are compared. */
#include "isa.h"
#include "math_rows.h"

typedef struct math64_row {
    const char *name;
    dvti_op op;
    long double (*exact)(long double);
    double bound;
} math64_row;

#define ROW(name, exact, bound) {#name, DVTI_OP_##name, exact, bound},
static const math64_row math64_rows[] = {MATH64_TABLE(ROW)};
#undef ROW

enum { MATH64_ROWS = (int)(sizeof math64_rows / sizeof math64_rows[0]), BATCH = 4096 };

static double double_of(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

static uint64_t bits_of(double d) {
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

static uint64_t any_bits(void) {
    return (uint64_t)dvt_test_random(0, 4294967296.) << 32 |
           (uint64_t)dvt_test_random(0, 4294967296.);
}

static void run(const dvti_simd *target, dvti_op op, const double *a, const double *b, double *y,
                int n) {
    dvti_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.in[0] = a;
    loop.in[1] = b;
    loop.step[0] = loop.step[1] = 1;
    loop.out = y;
    loop.op = op;
    loop.n = n;
    target->f64->loop(op)(&loop);
}

/* Computes on the best ISA target and checks that the others agree. Returns false if there is no
   ISA target. */
static bool run_all(const char *name, dvti_op op, const double *a, const double *b, double *first,
                    int n) {
    static double other[BATCH];
    bool have_first = false;
    int i;
    FOR_EACH_TARGET({
        run(target, op, a, b, have_first ? other : first, n);
        for (i = 0; have_first && i < n; i++)
            if (!same_bits_f64(first[i], other[i])) {
                dvt_test_check(false, __FILE__, __LINE__,
                               "%s(%.17g, %.17g) is %.17g on %s and %.17g on the best ISA target",
                               name, a[i], b ? b[i] : 0, other[i], target->name, first[i]);
                break;
            }
        have_first = true;
    });
    return have_first;
}

static void check_batch(const math64_row *row, const double *x, int n) {
    static double y[BATCH];
    int i;
    if (!run_all(row->name, row->op, x, NULL, y, n))
        return;
    for (i = 0; LDBL_MANT_DIG > DBL_MANT_DIG && i < n; i++) {
        long double exact = row->exact((long double)x[i]);
        double error = ulp_error64(y[i], exact);
        if (!(error <= row->bound)) {
            dvt_test_check(false, __FILE__, __LINE__,
                           "%s(%.17g) is %.17g, expected %.20Lg: %.3f ulp, at most %g", row->name,
                           x[i], y[i], exact, error, row->bound);
            return;
        }
    }
}

DVT_TEST(functions_of_double_are_close_to_exact_ones) {
    static const double ranges[] = {1, 1.5, 3, 10, 40, 100, 750, 1e5, 1e9};
    static double x[BATCH];
    int r, i, round;
    for (r = 0; r < MATH64_ROWS; r++) {
        for (round = 0; round < 16; round++) {
            for (i = 0; i < BATCH; i++)
                x[i] = double_of(any_bits());
            check_batch(&math64_rows[r], x, BATCH);
        }
        for (round = 0; round < 36; round++) {
            double most = ranges[round % 9];
            for (i = 0; i < BATCH; i++)
                x[i] = dvt_test_random(-most, most);
            check_batch(&math64_rows[r], x, BATCH);
        }
    }
}

/* Inputs where a result becomes infinite, 0 or denormal, where methods change, and around zeros of
   the functions, of sine and cosine. */
DVT_TEST(functions_of_double_near_special_places) {
    static const double places[] = {0.,
                                    DBL_MIN,
                                    1.,
                                    0.5,
                                    2.,
                                    6.,
                                    22.,
                                    40.,
                                    39.,
                                    38.5,
                                    709.78271289338397,
                                    708.39641853226408,
                                    745.13321910194122,
                                    710.47586007394386,
                                    1024.,
                                    1022.,
                                    1074.,
                                    1075.,
                                    0.34657359027997264,
                                    1.0397207708399179,
                                    1.4142135623730951,
                                    0.70710678118654752,
                                    0.41421356237309503,
                                    2.4142135623730951,
                                    1e-290,
                                    1e-8,
                                    36.7368,
                                    37.,
                                    4503599627370496.,
                                    9007199254740992.,
                                    1152921504606846976.,
                                    DBL_MAX,
                                    1.5707963267948966,
                                    3.1415926535897931,
                                    0.78539816339744828,
                                    536870912.,
                                    1e22,
                                    6381956970095103e0 * 0x1p797,
                                    1e-30,
                                    INFINITY,
                                    10.,
                                    100.,
                                    1000.};
    static double x[BATCH];
    int r, p, i, sign;
    for (r = 0; r < MATH64_ROWS; r++)
        for (p = 0; p < (int)(sizeof places / sizeof places[0]); p++)
            for (sign = 0; sign < 2; sign++) {
                /* nearest neighbors, then at growing distance */
                for (i = 0; i < 512; i++) {
                    int64_t off = i - 256;
                    off = i % 2 ? off : off * off * off * (i % 4 ? 1 : 1048573);
                    x[i] = double_of((bits_of(places[p]) + (uint64_t)off) ^ (uint64_t)sign << 63);
                }
                check_batch(&math64_rows[r], x, 512);
            }
    for (p = 1; p < 400; p++) { /* multiples of a quarter turn */
        double multiple = p < 200 ? p : p < 300 ? p * 1048583. : ldexp(p, 3 * (p - 300));
        for (i = 0; i < 16; i++)
            x[i] = double_of(bits_of(multiple * 1.5707963267948966) + (uint64_t)i - 8);
        for (r = 0; r < MATH64_ROWS; r++)
            check_batch(&math64_rows[r], x, 16);
    }
}

static long double mod_f80(long double a, long double b) {
    long double rest = fmodl(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? copysignl(0, b) : rest;
}

/* All pairs would be too many: random and special pairs. */
DVT_TEST(functions_of_two_doubles_are_close_to_exact_ones) {
#define ROW(name, exact, bound) {#name, DVTI_OP_##name, exact, bound},

    static const struct {
        const char *name;
        dvti_op op;
        long double (*exact)(long double, long double);
        double bound;
    } rows[] = {MATH64_2_TABLE(ROW){"mod", DVTI_OP_mod, mod_f80, 0.51}};

#undef ROW

    static double a[BATCH], b[BATCH], y[BATCH];
    int r, i, round;
    for (r = 0; r < (int)(sizeof rows / sizeof rows[0]); r++)
        for (round = 0; round < 60; round++) {
            double range = round % 3 == 0 ? 1000 : round % 3 == 1 ? 3 : 0.01;
            for (i = 0; i < BATCH; i++) {
                a[i] = exp2(dvt_test_random(-range, range)) * (r && i & 1 ? -1. : 1.);
                b[i] = dvt_test_random(-1024, 1024) / range;
                if (round < 6)
                    a[i] = double_of(any_bits());
                if (round < 3)
                    b[i] = double_of(any_bits());
            }
            if (!run_all(rows[r].name, rows[r].op, a, b, y, BATCH) || LDBL_MANT_DIG == DBL_MANT_DIG)
                continue;
            for (i = 0; i < BATCH; i++) {
                long double exact = rows[r].exact((long double)a[i], (long double)b[i]);
                double error = ulp_error64(y[i], exact);
                if (!(error <= rows[r].bound)) {
                    dvt_test_check(false, __FILE__, __LINE__,
                                   "%s(%.17g, %.17g) is %.17g, expected %.20Lg: %.3f ulp",
                                   rows[r].name, a[i], b[i], y[i], exact, error);
                    break;
                }
            }
        }
}
