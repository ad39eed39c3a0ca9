/* Functions that F and I of the op table call: division as in Python, powers of integers,
   arithmetic that wraps. Plain C of one element. The CPU includes it (3_cpu/dvt_row_text.h), and
   CUDA programs embed it after DVTI_ROW_FN is defined. */

#define DVTI_WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))

/* Python's rules: the remainder has b's sign, also if it is 0; the quotient is rounded down. */
#define DVTI_DEFINE_DIVISION(T, FMOD, COPYSIGN, RINT, floor_div, mod)                              \
    DVTI_ROW_FN T mod(T a, T b) {                                                                  \
        const T rest = FMOD(a, b);                                                                 \
        if (rest == 0)                                                                             \
            return COPYSIGN((T)0, b);                                                              \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                            \
    }                                                                                              \
    DVTI_ROW_FN T floor_div(T a, T b) {                                                            \
        T rest, quotient;                                                                          \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        rest = FMOD(a, b);                                                                         \
        quotient = (a - rest) / b; /* an integer, up to rounding */                                \
        if (rest != 0 && (rest < 0) != (b < 0))                                                    \
            quotient -= 1;                                                                         \
        return quotient == 0 ? COPYSIGN((T)0, a / b) : RINT(quotient);                             \
    }
DVTI_DEFINE_DIVISION(float, fmodf, copysignf, rintf, dvti_floor_divf, dvti_modf)
DVTI_DEFINE_DIVISION(double, fmod, copysign, rint, dvti_floor_div, dvti_mod)
#undef DVTI_DEFINE_DIVISION

/* Avoids machine division for x / 0 and INT64_MIN / -1, which trap. */
DVTI_ROW_FN int64_t dvti_int_floor_div(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return DVTI_WRAP(0, -, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

DVTI_ROW_FN int64_t dvti_int_mod(int64_t a, int64_t b) {
    int64_t rest;
    if (b == 0 || b == -1)
        return 0;
    rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

DVTI_ROW_FN int64_t dvti_int_pow(int64_t a, int64_t b) {
    uint64_t base = (uint64_t)a, result = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b; b >>= 1) {
        if (b & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}
