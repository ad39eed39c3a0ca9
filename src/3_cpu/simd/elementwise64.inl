/* Elementwise loops in double: one body per row of the op table, over whole vectors. Ends of arrays and repeated operands are prepared by
   one function for all of them, so that a body costs little to compile. What stays with the reference has no case in the switch. */

typedef void (*V(body))(const dvti_loop *loop, const double *const *in, void *out, int64_t n);

/* n vectors; an operand that is repeated stands in memory as one vector. */
#define DVTI_BODY1_TO(name, E, store, value)                                                       \
    static void V(body_##name)(const dvti_loop *loop, const double *const *in, void *out,          \
                               int64_t n) {                                                        \
        const double *p = in[0];                                                                   \
        const int64_t p_step = 8 * loop->step[0];                                                  \
        E *to = (E *)out;                                                                          \
        for (; n > 0; n--, to += 8, p += p_step) {                                                 \
            const V(d) a = V(dload)(p);                                                            \
            V(store)(to, value);                                                                   \
        }                                                                                          \
    }
#define DVTI_BODY2_TO(name, E, store, value)                                                       \
    static void V(body_##name)(const dvti_loop *loop, const double *const *in, void *out,          \
                               int64_t n) {                                                        \
        const double *p = in[0], *q = in[1];                                                       \
        const int64_t p_step = 8 * loop->step[0], q_step = 8 * loop->step[1];                      \
        E *to = (E *)out;                                                                          \
        for (; n > 0; n--, to += 8, p += p_step, q += q_step) {                                    \
            const V(d) a = V(dload)(p), b = V(dload)(q);                                           \
            V(store)(to, value);                                                                   \
        }                                                                                          \
    }
#define DVTI_BODY1(name, value) DVTI_BODY1_TO(name, double, dstore, value)
#define DVTI_BODY2(name, value) DVTI_BODY2_TO(name, double, dstore, value)

DVTI_INLINE V(n) V(dnonzero)(V(d) a) {
    return V(dne)(a, V(dzero)());
}

/* The op table's: NaN when either is, else the smaller. */
DVTI_INLINE V(d) V(dsmaller)(V(d) a, V(d) b) {
    return V(dselect)(V(dunord)(a, a), a, V(dselect)(V(dunord)(b, b), b, V(dmin)(a, b)));
}

DVTI_INLINE V(d) V(dlarger)(V(d) a, V(d) b) {
    return V(dselect)(V(dunord)(a, a), a, V(dselect)(V(dunord)(b, b), b, V(dmax)(a, b)));
}

DVTI_INLINE V(d) V(dsign_of)(V(d) a) {
    const V(d) none = V(dzero)();
    return V(dselect)(V(dgt)(a, none), V(dset)(1), V(dselect)(V(dlt)(a, none), V(dset)(-1), a));
}

DVTI_INLINE V(d) V(dclipped)(V(d) a, const dvti_loop *loop) {
    const V(d) low = V(dset)(loop->low), high = V(dset)(loop->high);
    return V(dselect)(V(dlt)(a, low), low, V(dselect)(V(dgt)(a, high), high, a));
}

/* What is quick stands in one loop, with a switch that the processor predicts. */
#define DVTI_SIMPLE1(R)                                                                            \
    R(neg, V(dneg)(a))                                                                             \
    R(abs, V(dabs)(a))                                                                             \
    R(sign, V(dsign_of)(a))                                                                        \
    R(square, V(dmul)(a, a))                                                                       \
    R(relu, V(dselect)(V(dle)(a, V(dzero)()), V(dzero)(), a))                                      \
    R(floor, V(dfloor)(a))                                                                         \
    R(ceil, V(dceil)(a))                                                                           \
    R(round, V(dround)(a))                                                                         \
    R(trunc, V(dtrunc)(a))                                                                         \
    R(reciprocal, V(ddiv)(V(dset)(1), a))                                                          \
    R(sqrt, V(dsqrt)(a))                                                                           \
    R(rsqrt, V(ddiv)(V(dset)(1), V(dsqrt)(a)))                                                     \
    R(clip, V(dclipped)(a, loop))
#define DVTI_SIMPLE2(R)                                                                            \
    R(sub, V(dsub)(a, b))                                                                          \
    R(div, V(ddiv)(a, b))                                                                          \
    R(minimum, V(dsmaller)(a, b))                                                                  \
    R(maximum, V(dlarger)(a, b))
/* These write a bool for each element. */
#define DVTI_TRUTH1(R)                                                                             \
    R(isnan, V(dunord)(a, a))                                                                      \
    R(isinf, V(dgt)(V(dabs)(a), V(dset)(DBL_MAX)))                                                 \
    R(isfinite, V(dle)(V(dabs)(a), V(dset)(DBL_MAX)))                                              \
    R(logical_not, V(deq)(a, V(dzero)()))
#define DVTI_TRUTH2(R)                                                                             \
    R(equal, V(deq)(a, b))                                                                         \
    R(not_equal, V(dne)(a, b))                                                                     \
    R(less, V(dlt)(a, b))                                                                          \
    R(less_equal, V(dle)(a, b))                                                                    \
    R(greater, V(dgt)(a, b))                                                                       \
    R(greater_equal, V(dge)(a, b))                                                                 \
    R(logical_and, V(nand)(V(dnonzero)(a), V(dnonzero)(b)))                                        \
    R(logical_or, V(nor)(V(dnonzero)(a), V(dnonzero)(b)))                                          \
    R(logical_xor, V(nand)(V(nor)(V(dnonzero)(a), V(dnonzero)(b)),                                 \
                           V(nor)(V(deq)(a, V(dzero)()), V(deq)(b, V(dzero)()))))
#define DVTI_ROW(name, value)                                                                      \
    case DVTI_OP_##name:                                                                           \
        return value;

DVTI_INLINE V(d) V(dsimple1)(V(d) a, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_SIMPLE1(DVTI_ROW)
    default:
        return a;
    }
}

DVTI_INLINE V(d) V(dsimple2)(V(d) a, V(d) b, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_SIMPLE2(DVTI_ROW)
    default:
        return a;
    }
}

DVTI_INLINE V(n) V(dtruth1)(V(d) a, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_TRUTH1(DVTI_ROW)
    default:
        return V(deq)(a, a);
    }
}

DVTI_INLINE V(n) V(dtruth2)(V(d) a, V(d) b, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_TRUTH2(DVTI_ROW)
    default:
        return V(deq)(a, b);
    }
}
#undef DVTI_ROW

DVTI_BODY1_TO(truth1, uint8_t, nstore, V(dtruth1)(a, loop))
DVTI_BODY2_TO(truth2, uint8_t, nstore, V(dtruth2)(a, b, loop))
DVTI_BODY1(simple1, V(dsimple1)(a, loop))
DVTI_BODY2(simple2, V(dsimple2)(a, b, loop))
DVTI_BODY2(add, V(dadd)(a, b))
DVTI_BODY2(mul, V(dmul)(a, b))
DVTI_BODY1(exp, V(dexp)(a))
DVTI_BODY1(exp2, V(dexp2)(a))
DVTI_BODY1(expm1, V(dexpm1)(a))
DVTI_BODY1(log1p, V(dlog1p)(a))
DVTI_BODY1(sinh, V(dsinh)(a))
DVTI_BODY1(cosh, V(dcosh)(a))
DVTI_BODY1(tanh, V(dtanh)(a))
DVTI_BODY1(sigmoid, V(dsigmoid)(a))
DVTI_BODY1(softplus, V(dsoftplus)(a))
DVTI_BODY1(erf, V(derf)(a))
DVTI_BODY1(gelu, V(dgelu)(a))
DVTI_BODY1(tan, V(dtan)(a))
DVTI_BODY1(asin, V(dasin)(a))
DVTI_BODY1(acos, V(dacos)(a))
DVTI_BODY1(atan, V(datan)(a))
DVTI_BODY2(floor_div, V(dfloor_div)(a, b))
DVTI_BODY2(mod, V(dmod)(a, b))
DVTI_BODY2(pow, V(dpow)(a, b))
DVTI_BODY2(atan2, V(datan2)(a, b))
DVTI_BODY2(hypot, V(dhypot)(a, b))

/* Logarithms to three bases; sine and cosine. */
static void V(body_log)(const dvti_loop *loop, const double *const *in, void *out, int64_t n) {
    double *to = (double *)out;
    const double *p = in[0], *c = V(log_constants)(loop->op);
    const int64_t p_step = 8 * loop->step[0];
    for (; n > 0; n--, to += 8, p += p_step)
        V(dstore)(to, V(dlog)(V(dload)(p), c));
}

static void V(body_wave)(const dvti_loop *loop, const double *const *in, void *out, int64_t n) {
    double *to = (double *)out;
    const double *p = in[0];
    const int64_t p_step = 8 * loop->step[0];
    const int32_t turn = loop->op == DVTI_OP_cos;
    for (; n > 0; n--, to += 8, p += p_step)
        V(dstore)(to, V(dsin_turned)(V(dload)(p), turn));
}

static void V(body_where)(const dvti_loop *loop, const double *const *in, void *out, int64_t n) {
    double *to = (double *)out;
    const double *p = in[0], *q = in[1], *s = in[2];
    const int64_t p_step = 8 * loop->step[0], q_step = 8 * loop->step[1];
    const int64_t s_step = 8 * loop->step[2];
    for (; n > 0; n--, to += 8, p += p_step, q += q_step, s += s_step)
        V(dstore)(to, V(dselect)(V(dnonzero)(V(dload)(p)), V(dload)(q), V(dload)(s)));
}

DVTI_INLINE V(d) V(dpower_of)(V(d) a, int twice) {
    switch (twice) {
    case -2:
        return V(ddiv)(V(dset)(1), a);
    case 0:
        return V(dset)(1);
    case 1:
        return V(dpow_half)(a);
    case 2:
        return a;
    case 4:
        return V(dmul)(a, a);
    default:
        return V(dpow_cube)(a);
    }
}

/* One exponent for all elements may make pow a quick loop; the bits are those of V(dpow). */
static void V(body_power)(const dvti_loop *loop, const double *const *in, void *out, int64_t n) {
    const double *p = in[0];
    const int64_t p_step = 8 * loop->step[0];
    double *to = (double *)out;
    int twice;
    if (loop->step[1] || !dvti_simple_exponent(*in[1])) {
        V(body_pow)(loop, in, out, n);
        return;
    }
    twice = (int)(2 * *in[1]);
    for (; n > 0; n--, to += 8, p += p_step)
        V(dstore)(to, V(dpower_of)(V(dload)(p), twice));
}

/* NULL: there is none. */
static V(body) V(body_of)(dvti_op op, int *operands) {
#define DVTI_ROW(name, count)                                                                      \
    case DVTI_OP_##name:                                                                           \
        *operands = count;                                                                         \
        return V(body_##name);
#define DVTI_QUICK(name, value) case DVTI_OP_##name:
    *operands = 1;
    switch ((int)op) {
        DVTI_SIMPLE1(DVTI_QUICK)
        return V(body_simple1);
        DVTI_TRUTH1(DVTI_QUICK)
        return V(body_truth1);
        DVTI_SIMPLE2(DVTI_QUICK)
        *operands = 2;
        return V(body_simple2);
        DVTI_TRUTH2(DVTI_QUICK)
        *operands = 2;
        return V(body_truth2);
        DVTI_ROW(exp, 1)
        DVTI_ROW(exp2, 1)
        DVTI_ROW(expm1, 1)
        DVTI_ROW(log1p, 1)
        DVTI_ROW(sinh, 1)
        DVTI_ROW(cosh, 1)
        DVTI_ROW(tanh, 1)
        DVTI_ROW(sigmoid, 1)
        DVTI_ROW(softplus, 1)
        DVTI_ROW(erf, 1)
        DVTI_ROW(gelu, 1)
        DVTI_ROW(tan, 1)
        DVTI_ROW(asin, 1)
        DVTI_ROW(acos, 1)
        DVTI_ROW(atan, 1)
        DVTI_ROW(floor_div, 2)
        DVTI_ROW(mod, 2)
        DVTI_ROW(atan2, 2)
        DVTI_ROW(hypot, 2)
        DVTI_ROW(add, 2)
        DVTI_ROW(mul, 2)
        DVTI_ROW(where, 3)
    case DVTI_OP_pow:
        *operands = 2;
        return V(body_power);
    case DVTI_OP_log:
    case DVTI_OP_log2:
    case DVTI_OP_log10:
        return V(body_log);
    case DVTI_OP_sin:
    case DVTI_OP_cos:
        return V(body_wave);
    default:
        return NULL;
    }
#undef DVTI_ROW
#undef DVTI_QUICK
}

static void V(loop64)(const dvti_loop *loop) {
    const int64_t whole = loop->n / 8 * 8, rest = loop->n - whole;
    const int64_t size = dvt_dtype_size(dvti_loop_dtype(loop->op, DVT_F64));
    double same[3][8], few[3][8], last[8];
    const double *in[3], *end[3];
    int operands, k, j;
    const V(body) body = V(body_of)(loop->op, &operands);
    for (k = 0; k < operands; k++) {
        end[k] = in[k] = (const double *)loop->in[k];
        if (!loop->step[k]) {
            V(dstore)(same[k], V(dset)(*in[k]));
            end[k] = in[k] = same[k];
        } else if (rest) { /* lanes that nobody asked for repeat one that somebody did, so that they are nothing special */
            for (j = 0; j < 8; j++)
                few[k][j] = in[k][whole + (j < rest ? j : 0)];
            end[k] = few[k];
        }
    }
    if (rest)
        body(loop, end, last, 1);
    if (whole)
        body(loop, in, loop->out, whole / 8);
    memcpy((char *)loop->out + whole * size, last, (size_t)(rest * size));
}

static dvti_loop_fn V(loop_f64)(dvti_op op) {
    int operands;
    return V(body_of)(op, &operands) ? V(loop64) : NULL;
}

/* ---- rows of other dtypes ---- */
static bool V(load_row64)(const void *src, dvt_dtype dtype, int64_t n, double *to) {
    const int64_t size = dvt_dtype_size(dtype);
    const char *from = (const char *)src;
    float some[64];
    int64_t count;
    int k;
    if (dtype == DVT_F64 || dtype == DVT_I32 || dtype == DVT_I64)
        return false; /* no float holds them */
    for (; n > 0; n -= count, from += count * size, to += count) {
        const float *p = some;
        count = DVTI_MIN(n, 64);
        if (dtype == DVT_F32)
            p = (const float *)(const void *)from;
        else
            V(load_row)(from, dtype, count, some);
        for (k = 0; k + 8 <= count; k += 8)
            V(dstore)(to + k, V(load_wide)(p + k));
        for (; k < count; k++)
            to[k] = (double)p[k];
    }
    return true;
}

static void V(narrow_row)(const double *from, int64_t n, float *to) {
    int k;
    for (; n >= 16; n -= 16, from += 16, to += 16)
        V(store)(to, V(narrow)(V(dload)(from), V(dload)(from + 8)));
    for (k = 0; k < n; k++)
        to[k] = (float)from[k];
}

static bool V(store_row64)(void *dst, dvt_dtype dtype, int64_t n, const double *from) {
    uint8_t *to = (uint8_t *)dst, last[8];
    if (dtype == DVT_F32)
        V(narrow_row)(from, n, (float *)dst);
    else if (dtype != DVT_BOOL)
        return false;
    else {
        for (; n >= 8; n -= 8, from += 8, to += 8)
            V(nstore)(to, V(dnonzero)(V(dload)(from)));
        V(nstore)(last, V(dnonzero)(V(dload_n)(from, n)));
        memcpy(to, last, (size_t)n);
    }
    return true;
}

#undef DVTI_SIMPLE1
#undef DVTI_SIMPLE2
#undef DVTI_TRUTH1
#undef DVTI_TRUTH2
#undef DVTI_BODY1
#undef DVTI_BODY2
#undef DVTI_BODY1_TO
#undef DVTI_BODY2_TO
