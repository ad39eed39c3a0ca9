/* Functions of float on every ISA target: within their bounds of the C library's in double, and
   the same bits on all ISA targets. Inputs are a dense sample and the neighborhood of special
   values. */
#include "isa.h"
#include "math_rows.h"

typedef struct math_row {
    const char *name;
    dvti_op op;
    double (*exact)(double);
    double bound;
} math_row;

#define ROW(name, exact, bound) {#name, DVTI_OP_##name, exact, bound},
static const math_row math_rows[] = {MATH_TABLE(ROW)};
#undef ROW

enum { MATH_ROWS = (int)(sizeof math_rows / sizeof math_rows[0]), BATCH = 4096 };

static void run(const dvti_simd *target, dvti_op op, const float *x, float *y, int n) {
    dvti_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.in[0] = x;
    loop.step[0] = 1;
    loop.out = y;
    loop.op = op;
    loop.n = n;
    target->loop_f32(op)(&loop);
}

/* Returns the largest error over a batch of inputs on the best ISA target, and checks that the
   others agree. */
static void check_batch(const math_row *row, const float *x, int n) {
    static float first[BATCH], other[BATCH];
    bool have_first = false;
    int i;
    FOR_EACH_TARGET({
        run(target, row->op, x, have_first ? other : first, n);
        for (i = 0; have_first && i < n; i++)
            if (!same_bits_f32(first[i], other[i])) {
                dvt_test_check(false, __FILE__, __LINE__,
                               "%s(%.9g) is %.9g on %s and %.9g on the best ISA target", row->name,
                               (double)x[i], (double)other[i], target->name, (double)first[i]);
                break;
            }
        have_first = true;
    });
    for (i = 0; have_first && i < n; i++) {
        double exact = row->exact((double)x[i]), error = ulp_error(first[i], exact);
        if (!(error <= row->bound)) {
            dvt_test_check(false, __FILE__, __LINE__,
                           "%s(%.9g) is %.9g, expected %.9g: %.3f ulp, at most %g", row->name,
                           (double)x[i], (double)first[i], exact, error, row->bound);
            return;
        }
    }
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

DVT_TEST(functions_are_close_to_exact_ones) {
    static float x[BATCH];
    int r, i;
    for (r = 0; r < MATH_ROWS; r++) {
        uint64_t bits = 0;
        while (bits < (uint64_t)1 << 32) {
            for (i = 0; i < BATCH && bits < (uint64_t)1 << 32; i++, bits += 1021)
                x[i] = float_of((uint32_t)bits);
            check_batch(&math_rows[r], x, i);
        }
    }
}

/* Inputs where a result becomes infinite, 0 or denormal, where methods change, and around zeros of
   the functions. */
DVT_TEST(functions_near_special_places) {
    static const float places[] = {
        0.f,          FLT_MIN,  1.f,          0.5f,         2.f,          0.625f,      0.875f,
        4.f,          9.1f,     15.f,         16.635532f,   88.7228394f,  87.3365479f, 103.972084f,
        126.f,        128.f,    149.f,        0.346573591f, 1.03972077f,  89.4159851f, 1.41421354f,
        0.707106769f, 1e-4f,    1e-8f,        14.1f,        3.92f,        8388608.f,   16777216.f,
        67108864.f,   FLT_MAX,  1.57079637f,  3.14159274f,  0.785398185f, 65536.f,     1e10f,
        1e-30f,       INFINITY, 10.f,         100.f,        1000.f,       0.25f,       1.25f,
        3.25f,        5.25f,    0.262346745f, 0.787040234f, 1.58113885f};
    static float x[BATCH];
    int r, p, i, sign;
    for (r = 0; r < MATH_ROWS; r++)
        for (p = 0; p < (int)(sizeof places / sizeof places[0]); p++)
            for (sign = 0; sign < 2; sign++) {
                for (i = 0; i < BATCH; i++)
                    x[i] = float_of((bits_of(places[p]) + (uint32_t)i - BATCH / 2) ^ (uint32_t)sign
                                                                                         << 31);
                check_batch(&math_rows[r], x, BATCH);
            }
}

typedef struct math_row2 {
    const char *name;
    dvti_op op;
    double (*exact)(double, double);
    double bound;
} math_row2;

static void check_batch2(const dvti_simd *target, const math_row2 *row, const float *a,
                         const float *b) {
    static float out[BATCH];
    dvti_loop loop;
    int i;
    memset(&loop, 0, sizeof loop);
    loop.in[0] = a;
    loop.in[1] = b;
    loop.step[0] = loop.step[1] = 1;
    loop.out = out;
    loop.op = row->op;
    loop.n = BATCH;
    target->loop_f32(row->op)(&loop);
    for (i = 0; i < BATCH; i++) {
        double exact = row->exact((double)a[i], (double)b[i]), error = ulp_error(out[i], exact);
        if (!(error <= row->bound)) {
            dvt_test_check(false, __FILE__, __LINE__,
                           "%s, %s(%.9g, %.9g) is %.9g, expected %.9g: %.3f ulp", target->name,
                           row->name, (double)a[i], (double)b[i], (double)out[i], exact, error);
            return;
        }
    }
}

/* All pairs would be too many: random and special pairs. */
DVT_TEST(functions_of_two_are_close_to_exact_ones) {
#define ROW(name, exact, bound) {#name, DVTI_OP_##name, exact, bound},
    static const math_row2 rows[] = {MATH2_TABLE(ROW)};
#undef ROW
    static float a[BATCH], b[BATCH];
    int r, i, round;
    for (r = 0; r < (int)(sizeof rows / sizeof rows[0]); r++)
        for (round = 0; round < 100; round++) {
            double range = round % 4 * 30 + 1;
            for (i = 0; i < BATCH; i++) {
                a[i] = (float)exp2(dvt_test_random(-range, range)) * (r && i & 1 ? -1.f : 1.f);
                b[i] = (float)(dvt_test_random(-128, 128) / range);
            }
            FOR_EACH_TARGET(check_batch2(target, &rows[r], a, b));
        }
}
