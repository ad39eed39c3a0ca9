/* Elementwise loops in int64, the class of all integers and bools. Every row of the op table
   becomes one case, from its column I. */
#include "3_cpu/simd/dvt_simd.h"

/* Loops run over blocks of 16. The constant length and the promise of independent elements let GCC
   vectorize at -O2. Input and output may be the same memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define DVTI_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DVTI_INDEPENDENT
#endif
#define DVTI_LOOP(...)                                                                             \
    for (; n >= 16; n -= 16, p += 16, q += 16, r += 16, to += 16) {                                \
        DVTI_INDEPENDENT                                                                           \
        for (k = 0; k < 16; k++)                                                                   \
            __VA_ARGS__                                                                            \
    }                                                                                              \
    for (k = 0; k < n; k++)                                                                        \
        __VA_ARGS__                                                                                \
    break;
#define DVTI_CASE(name, i)                                                                         \
    case DVTI_OP_##name:                                                                           \
        DVTI_LOOP({                                                                                \
            const int64_t x = p[k], a = x, b = q[k], c = r[k];                                     \
            (void)x;                                                                               \
            (void)a;                                                                               \
            (void)b;                                                                               \
            (void)c;                                                                               \
            to[k] = (int64_t)(i);                                                                  \
        })
/* Rows of rule FLOAT never get integers. Their cases would double the compile time. */
#define DVTI_CASE_SAME DVTI_CASE
#define DVTI_CASE_NOBOOL DVTI_CASE
#define DVTI_CASE_BOOL DVTI_CASE
#define DVTI_CASE_FLOAT(name, i)
#define DVTI_ROW(name, rule, cost, f, i, ...) DVTI_CASE_##rule(name, i)
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, ...) DVTI_CASE_##rule(name, i)

/* Raises x to the power `exponent`, 0 to 3. */
static void dvti_int_powers(const int64_t *x, int64_t exponent, int64_t *to, int64_t n) {
    int64_t k;
    for (k = 0; k < n; k++) {
        const uint64_t a = (uint64_t)x[k];
        to[k] = (int64_t)(exponent == 0   ? 1
                          : exponent == 1 ? a
                          : exponent == 2 ? a * a
                                          : a * a * a);
    }
}

DVTI_FN void dvti_loop_i64(const dvti_loop *loop) {
    const int operands = dvti_op_row_of(loop->op)->operands;
    const int64_t low = loop->low_int, high = loop->high_int, *p = (const int64_t *)loop->in[0];
    const int64_t *q = operands > 1 ? (const int64_t *)loop->in[1] : p;
    const int64_t *r = operands > 2 ? (const int64_t *)loop->in[2] : p;
    int64_t *to = (int64_t *)loop->out, n = loop->n, k;
    if (loop->op == DVTI_OP_pow && !loop->step[1] && *q >= 0 && *q <= 3) {
        dvti_int_powers(p, *q, to, n);
        return;
    }
    switch ((int)loop->op) {
        DVTI_UNARY_TABLE(DVTI_ROW)
        DVTI_BINARY_TABLE(DVTI_ROW)
        DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
    }
}

#undef DVTI_INDEPENDENT
#undef DVTI_LOOP
#undef DVTI_CASE
#undef DVTI_CASE_SAME
#undef DVTI_CASE_NOBOOL
#undef DVTI_CASE_BOOL
#undef DVTI_CASE_FLOAT
#undef DVTI_ROW
#undef DVTI_SPECIAL
