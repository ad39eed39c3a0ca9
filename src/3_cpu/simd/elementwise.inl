/* Elementwise loops in float: one function per row of the op table. What stays with the reference has no case in the switch. */

/* Where an operand stands. One that is repeated becomes a vector in memory that stays where it is. */
DVTI_INLINE const float *V(ew_operand)(const dvti_loop *loop, int which, float *repeated) {
    const float *at = (const float *)loop->in[which];
    if (loop->step[which])
        return at;
    V(store)(repeated, V(set)(*at));
    return repeated;
}

/* Operands are asked for so many floats ahead where results leave the caches alone: processors look less far. */
#define DVTI_AHEAD 256

/* The last vector is partial; a repeated operand has 16 elements to take from all the same. One body for whole vectors and the partial
   one: compiling it twice would cost more than the branch does. */
/* What lies beyond the end counts as 1, for which no operation raises a floating-point exception. */
#define DVTI_EW1_TO(name, R, E, store, around, value)                                              \
    static void V(ew_##name)(const dvti_loop *loop) {                                              \
        float row_a[16];                                                                           \
        const float *p = V(ew_operand)(loop, 0, row_a);                                            \
        const int64_t p_step = 16 * loop->step[0];                                                 \
        E *to = (E *)loop->out;                                                                    \
        const bool stream = loop->stream;                                                          \
        int64_t n;                                                                                 \
        for (n = loop->n; n > 0; n -= 16, to += 16, p += p_step) {                                 \
            const V(f) a = V(load_or)(p, n, 1);                                                    \
            const V(R) r = value;                                                                  \
            if (n < 16)                                                                            \
                V(store##_n)(to, n, r);                                                            \
            else if (stream) {                                                                     \
                DVTI_PREFETCH(p + DVTI_AHEAD);                                                     \
                V(around)(to, r);                                                                  \
            } else                                                                                 \
                V(store)(to, r);                                                                   \
        }                                                                                          \
    }
#define DVTI_EW2_TO(name, R, E, store, around, value)                                              \
    static void V(ew_##name)(const dvti_loop *loop) {                                              \
        float row_a[16], row_b[16];                                                                \
        const float *p = V(ew_operand)(loop, 0, row_a), *q = V(ew_operand)(loop, 1, row_b);        \
        const int64_t p_step = 16 * loop->step[0], q_step = 16 * loop->step[1];                    \
        E *to = (E *)loop->out;                                                                    \
        const bool stream = loop->stream;                                                          \
        int64_t n;                                                                                 \
        for (n = loop->n; n > 0; n -= 16, to += 16, p += p_step, q += q_step) {                    \
            const V(f) a = V(load_or)(p, n, 1);                                                    \
            const V(f) b = V(load_or)(q, n, 1);                                                    \
            const V(R) r = value;                                                                  \
            if (n < 16)                                                                            \
                V(store##_n)(to, n, r);                                                            \
            else if (stream) {                                                                     \
                DVTI_PREFETCH(p + DVTI_AHEAD);                                                     \
                DVTI_PREFETCH(q + DVTI_AHEAD);                                                     \
                V(around)(to, r);                                                                  \
            } else                                                                                 \
                V(store)(to, r);                                                                   \
        }                                                                                          \
    }
#define DVTI_EW1(name, value) DVTI_EW1_TO(name, f, float, store, stream, value)
#define DVTI_EW2(name, value) DVTI_EW2_TO(name, f, float, store, stream, value)

#define DVTI_EW3(name, value)                                                                      \
    static void V(ew_##name)(const dvti_loop *loop) {                                              \
        float row_a[16], row_b[16], row_c[16];                                                     \
        const float *p = V(ew_operand)(loop, 0, row_a), *q = V(ew_operand)(loop, 1, row_b);        \
        const float *s = V(ew_operand)(loop, 2, row_c);                                            \
        const int64_t p_step = 16 * loop->step[0], q_step = 16 * loop->step[1];                    \
        const int64_t s_step = 16 * loop->step[2];                                                 \
        float *to = (float *)loop->out;                                                            \
        int64_t n;                                                                                 \
        for (n = loop->n; n > 0; n -= 16, to += 16, p += p_step, q += q_step, s += s_step) {       \
            const V(f) a = n >= 16 ? V(load)(p) : V(load_n)(p, n);                                 \
            const V(f) b = n >= 16 ? V(load)(q) : V(load_n)(q, n);                                 \
            const V(f) c = n >= 16 ? V(load)(s) : V(load_n)(s, n);                                 \
            const V(f) r = value;                                                                  \
            if (n >= 16)                                                                           \
                V(store)(to, r);                                                                   \
            else                                                                                   \
                V(store_n)(to, n, r);                                                              \
        }                                                                                          \
    }

/* 1 where m, else 0 */
DVTI_INLINE V(f) V(truth)(V(m) m) {
    return V(select)(m, V(set)(1), V(zero)());
}

DVTI_INLINE V(m) V(nonzero)(V(f) a) {
    return V(ne)(a, V(zero)());
}

/* The op table's: NaN when either is, else the smaller. */
DVTI_INLINE V(f) V(smaller)(V(f) a, V(f) b) {
    return V(select)(V(unord)(a, a), a, V(select)(V(unord)(b, b), b, V(min)(a, b)));
}

DVTI_INLINE V(f) V(larger)(V(f) a, V(f) b) {
    return V(select)(V(unord)(a, a), a, V(select)(V(unord)(b, b), b, V(max)(a, b)));
}

DVTI_INLINE V(f) V(sign_of)(V(f) a) {
    const V(f) one = V(set)(1);
    return V(select)(V(gt)(a, V(zero)()), one,
                     V(select)(V(lt)(a, V(zero)()), V(set)(-1), a));
}

DVTI_INLINE V(f) V(clipped)(V(f) a, const dvti_loop *loop) {
    const V(f) low = V(set)((float)loop->low), high = V(set)((float)loop->high);
    return V(select)(V(lt)(a, low), low, V(select)(V(gt)(a, high), high, a));
}

/* What is quick stands in one loop, with a switch that the processor predicts. */
#define DVTI_SIMPLE1(R)                                                                            \
    R(neg, V(neg)(a))                                                                              \
    R(abs, V(abs)(a))                                                                              \
    R(sign, V(sign_of)(a))                                                                         \
    R(square, V(mul)(a, a))                                                                        \
    R(relu, V(select)(V(le)(a, V(zero)()), V(zero)(), a))                                          \
    R(floor, V(floor)(a))                                                                          \
    R(ceil, V(ceil)(a))                                                                            \
    R(round, V(round)(a))                                                                          \
    R(trunc, V(trunc)(a))                                                                          \
    R(reciprocal, V(div)(V(set)(1), a))                                                            \
    R(sqrt, V(sqrt)(a))                                                                            \
    R(rsqrt, V(div)(V(set)(1), V(sqrt)(a)))                                                        \
    R(clip, V(clipped)(a, loop))
#define DVTI_SIMPLE2(R)                                                                            \
    R(div, V(div)(a, b))                                                                           \
    R(minimum, V(smaller)(a, b))                                                                   \
    R(maximum, V(larger)(a, b))
/* These write a bool for each element. */
#define DVTI_TRUTH1(R)                                                                             \
    R(isnan, V(unord)(a, a))                                                                       \
    R(isinf, V(gt)(V(abs)(a), V(set)(FLT_MAX)))                                                    \
    R(isfinite, V(le)(V(abs)(a), V(set)(FLT_MAX)))                                                 \
    R(logical_not, V(eq)(a, V(zero)()))
#define DVTI_TRUTH2(R)                                                                             \
    R(equal, V(eq)(a, b))                                                                          \
    R(not_equal, V(ne)(a, b))                                                                      \
    R(less, V(lt)(a, b))                                                                           \
    R(less_equal, V(le)(a, b))                                                                     \
    R(greater, V(gt)(a, b))                                                                        \
    R(greater_equal, V(ge)(a, b))                                                                  \
    R(logical_and, V(mand)(V(nonzero)(a), V(nonzero)(b)))                                          \
    R(logical_or, V(mor)(V(nonzero)(a), V(nonzero)(b)))                                            \
    R(logical_xor, V(mand)(V(mor)(V(nonzero)(a), V(nonzero)(b)),                                   \
                           V(mor)(V(eq)(a, V(zero)()), V(eq)(b, V(zero)()))))
#define DVTI_ROW(name, value)                                                                      \
    case DVTI_OP_##name:                                                                           \
        return value;

DVTI_INLINE V(f) V(simple1)(V(f) a, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_SIMPLE1(DVTI_ROW)
    default:
        return a;
    }
}

DVTI_INLINE V(f) V(simple2)(V(f) a, V(f) b, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_SIMPLE2(DVTI_ROW)
    default:
        return a;
    }
}

DVTI_INLINE V(m) V(truth1)(V(f) a, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_TRUTH1(DVTI_ROW)
    default:
        return V(eq)(a, a);
    }
}

DVTI_INLINE V(m) V(truth2)(V(f) a, V(f) b, const dvti_loop *loop) {
    switch ((int)loop->op) {
        DVTI_TRUTH2(DVTI_ROW)
    default:
        return V(eq)(a, b);
    }
}
#undef DVTI_ROW

DVTI_EW1_TO(truth1, m, uint8_t, mstore, mstore, V(truth1)(a, loop))
DVTI_EW2_TO(truth2, m, uint8_t, mstore, mstore, V(truth2)(a, b, loop))
DVTI_EW1(simple1, V(simple1)(a, loop))
DVTI_EW2(simple2, V(simple2)(a, b, loop))
#define DVTI_ROW(name, files) DVTI_EW1(name, V(name)(a))
DVTI_FUNCTIONS1(DVTI_ROW)
#undef DVTI_ROW
#define DVTI_ROW(name, files) DVTI_EW2(name, V(name)(a, b))
DVTI_FUNCTIONS2(DVTI_ROW)
#undef DVTI_ROW
DVTI_EW2(add, V(add)(a, b))
DVTI_EW2(sub, V(sub)(a, b))
DVTI_EW2(mul, V(mul)(a, b))
DVTI_EW2(floor_div, V(floor_div)(a, b))
DVTI_EW2(mod, V(mod)(a, b))
DVTI_EW3(where, V(select)(V(nonzero)(a), b, c))

/* Twice the exponent is in loop->low. */
DVTI_INLINE V(f) V(power_of)(V(f) a, const dvti_loop *loop) {
    switch ((int)loop->low) {
    case -2:
        return V(div)(V(set)(1), a);
    case 0:
        return V(set)(1);
    case 1:
        return V(pow_half)(a);
    case 2:
        return a;
    case 4:
        return V(mul)(a, a);
    default:
        return V(pow_cube)(a);
    }
}

DVTI_EW1(powers, V(power_of)(a, loop))

/* One exponent for all elements may make pow a quick loop; the bits are those of V(pow). */
static void V(ew_power)(const dvti_loop *loop) {
    const float *exponent = (const float *)loop->in[1];
    dvti_loop quick = *loop;
    if (loop->step[1] || !dvti_simple_exponent((double)*exponent)) {
        V(ew_pow)(loop);
        return;
    }
    quick.low = 2 * (double)*exponent;
    V(ew_powers)(&quick);
}

static dvti_loop_fn V(loop_f32)(dvti_op op) {
#define DVTI_ROW(name)                                                                             \
    case DVTI_OP_##name:                                                                           \
        return V(ew_##name);
#define DVTI_FUNCTION(name, files) DVTI_ROW(name)
#define DVTI_QUICK(name, value) case DVTI_OP_##name:
    if (op == DVTI_OP_pow)
        return V(ew_power);
    switch ((int)op) {
        DVTI_SIMPLE1(DVTI_QUICK)
        return V(ew_simple1);
        DVTI_SIMPLE2(DVTI_QUICK)
        return V(ew_simple2);
        DVTI_TRUTH1(DVTI_QUICK)
        return V(ew_truth1);
        DVTI_TRUTH2(DVTI_QUICK)
        return V(ew_truth2);
        DVTI_FUNCTIONS1(DVTI_FUNCTION)
        DVTI_FUNCTIONS2(DVTI_FUNCTION)
        DVTI_ROW(add)
        DVTI_ROW(sub)
        DVTI_ROW(mul)
        DVTI_ROW(floor_div)
        DVTI_ROW(mod)
        DVTI_ROW(where)
    default:
        return NULL;
    }
#undef DVTI_ROW
#undef DVTI_FUNCTION
#undef DVTI_QUICK
}

#undef DVTI_SIMPLE1
#undef DVTI_SIMPLE2
#undef DVTI_TRUTH1
#undef DVTI_TRUTH2
#undef DVTI_AHEAD
#undef DVTI_EW1
#undef DVTI_EW2
#undef DVTI_EW1_TO
#undef DVTI_EW2_TO
#undef DVTI_EW3
