/* Elementwise operations of one float type. elementwise.inl includes it with

     DVTI_E                           the element
     DVTI_VECTOR, DVTI_MASK           a vector, and a mask of its lanes
     W(name)                          the primitive `name` of vectors
     DVTI_MASK_AND, _OR, _STORE       primitives of masks
     DVTI_LARGEST                     the largest finite number

   A body computes whole vectors. One driver, W(elementwise), handles scalars and tails for all of
   them. Large results are written with non-temporal stores, chosen by a predictable branch: a copy
   from a block in L1 took 7 to 16 % longer (log and tanh of 1e7 elements, Zen 5). The vector
   expressions of the op table become bodies.

     operands   | vector | vector | vector | rest |
                 body(in, out, 3)           copied to the stack, padded with its first element:
                                            body(in_last, result, 1), then the rest is stored */

#define DVTI_LANES (64 / (int)sizeof(DVTI_E))

/* ---- primitives that vector expressions need besides those of vec.inl and 2_core/math ---- */
DVTI_INLINE DVTI_MASK W(nonzero)(DVTI_VECTOR a) {
    return W(ne)(a, W(zero)());
}

/* Returns NaN if either is NaN, else the smaller. W(min) returns b if it is NaN. */
DVTI_INLINE DVTI_VECTOR W(minimum)(DVTI_VECTOR a, DVTI_VECTOR b) {
    return W(select)(W(unord)(a, a), a, W(min)(a, b));
}

DVTI_INLINE DVTI_VECTOR W(maximum)(DVTI_VECTOR a, DVTI_VECTOR b) {
    return W(select)(W(unord)(a, a), a, W(max)(a, b));
}

/* a + 0 is +0 for either zero, and keeps NaN. */
DVTI_INLINE DVTI_VECTOR W(sign)(DVTI_VECTOR a) {
    const DVTI_VECTOR zero = W(zero)(), rest = W(add)(a, zero),
                      below = W(select)(W(lt)(a, zero), W(set)(-1), rest);
    return W(select)(W(gt)(a, zero), W(set)(1), below);
}

DVTI_INLINE DVTI_VECTOR W(clip)(DVTI_VECTOR a, const dvti_loop *p) {
    const DVTI_VECTOR low = W(set)((DVTI_E)p->low), high = W(set)((DVTI_E)p->high);
    return W(select)(W(lt)(a, low), low, W(select)(W(gt)(a, high), high, a));
}

DVTI_INLINE DVTI_MASK W(logical_and)(DVTI_VECTOR a, DVTI_VECTOR b) {
    return DVTI_MASK_AND(W(nonzero)(a), W(nonzero)(b));
}

DVTI_INLINE DVTI_MASK W(logical_or)(DVTI_VECTOR a, DVTI_VECTOR b) {
    return DVTI_MASK_OR(W(nonzero)(a), W(nonzero)(b));
}

DVTI_INLINE DVTI_MASK W(logical_xor)(DVTI_VECTOR a, DVTI_VECTOR b) {
    const DVTI_VECTOR zero = W(zero)();
    return DVTI_MASK_AND(W(logical_or)(a, b), DVTI_MASK_OR(W(eq)(a, zero), W(eq)(b, zero)));
}

/* ---- bodies: n > 0 whole vectors ---- */
#define DVTI_STORE_SAME(text)                                                                      \
    {                                                                                              \
        const DVTI_VECTOR y = text;                                                                \
        if (stream)                                                                                \
            W(stream)((DVTI_E *)(void *)to, y);                                                    \
        else                                                                                       \
            W(store)((DVTI_E *)(void *)to, y);                                                     \
    }
#define DVTI_STORE_NOBOOL DVTI_STORE_SAME
#define DVTI_STORE_FLOAT DVTI_STORE_SAME
#define DVTI_STORE_BOOL(text)                                                                      \
    (void)stream;                                                                                  \
    DVTI_MASK_STORE(to, text);
#define DVTI_BYTES_SAME 64
#define DVTI_BYTES_NOBOOL 64
#define DVTI_BYTES_FLOAT 64
#define DVTI_BYTES_BOOL DVTI_LANES

#define DVTI_OPERAND(k)                                                                            \
    const DVTI_E *in##k = (const DVTI_E *)in[k];                                                   \
    const int64_t step##k = p->step[k] ? DVTI_LANES : 0;
#define DVTI_BODY_HEAD(name)                                                                       \
    static void W(name)(const dvti_loop *p, const void *const *in, void *out, int64_t n) {         \
        const bool stream = p->stream;                                                             \
        uint8_t *to = (uint8_t *)out;
#define DVTI_BODY1_1(name, rule, ...)                                                              \
    DVTI_BODY_HEAD(name)                                                                           \
    DVTI_OPERAND(0)                                                                                \
    for (; n > 0; n--, to += DVTI_BYTES_##rule, in0 += step0) {                                    \
        const DVTI_VECTOR x = W(load)(in0);                                                        \
        DVTI_STORE_##rule((__VA_ARGS__))                                                          \
    }                                                                                              \
    }
#define DVTI_BODY2_1(name, rule, ...)                                                              \
    DVTI_BODY_HEAD(name)                                                                           \
    DVTI_OPERAND(0)                                                                                \
    DVTI_OPERAND(1)                                                                                \
    for (; n > 0; n--, to += DVTI_BYTES_##rule, in0 += step0, in1 += step1) {                      \
        const DVTI_VECTOR a = W(load)(in0), b = W(load)(in1);                                      \
        DVTI_STORE_##rule((__VA_ARGS__))                                                          \
    }                                                                                              \
    }
#define DVTI_BODY3_1(name, rule, ...)                                                              \
    DVTI_BODY_HEAD(name)                                                                           \
    DVTI_OPERAND(0)                                                                                \
    DVTI_OPERAND(1)                                                                                \
    DVTI_OPERAND(2)                                                                                \
    for (; n > 0; n--, to += DVTI_BYTES_##rule, in0 += step0, in1 += step1, in2 += step2) {        \
        const DVTI_VECTOR a = W(load)(in0), b = W(load)(in1), c = W(load)(in2);                    \
        DVTI_STORE_##rule((__VA_ARGS__))                                                          \
    }                                                                                              \
    }
#define DVTI_BODY1_0(name, rule, none)
#define DVTI_BODY2_0(name, rule, none)
#define DVTI_BODY3_0(name, rule, none)

/* A vector expression begins with W or is DVTI_NO_VECTOR. Concatenated with DVTI_HAS_ it expands to
   1 and itself, or to 0. */
#define DVTI_HAS_W(name) 1, W(name)
#define DVTI_HAS_DVTI_NO_VECTOR 0, 0
#define DVTI_EXPAND(x) x /* MSVC passes __VA_ARGS__ on as one argument otherwise */
#define DVTI_BODY(...) DVTI_EXPAND(DVTI_BODY_(__VA_ARGS__))
#define DVTI_BODY_(operands, name, rule, has, ...)                                                 \
    DVTI_BODY##operands##_##has(name, rule, __VA_ARGS__)
#define DVTI_UNARY(name, rule, cost, f, i, vector, ...)                                            \
    DVTI_BODY(1, ew_##name, rule, DVTI_HAS_##vector)
#define DVTI_BINARY(name, rule, cost, f, i, vector, ...)                                           \
    DVTI_BODY(2, ew_##name, rule, DVTI_HAS_##vector)
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, vector, ...)                                \
    DVTI_BODY(operands, ew_##name, rule, DVTI_HAS_##vector)
DVTI_UNARY_TABLE(DVTI_UNARY)
DVTI_BINARY_TABLE(DVTI_BINARY)
DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_SPECIAL
#undef DVTI_BODY
#undef DVTI_BODY_

/* Computes pow with one exponent of dvti_simple_exponent for all elements, without a logarithm. The
   bits equal those of W(pow). */
DVTI_INLINE DVTI_VECTOR W(power_by_twice)(DVTI_VECTOR a, int twice_exponent) {
    switch (twice_exponent) {
    case -2:
        return W(div)(W(set)(1), a);
    case 0:
        return W(set)(1);
    case 1:
        return W(pow_half)(a);
    case 2:
        return a;
    case 4:
        return W(mul)(a, a);
    default:
        return W(pow_cube)(a);
    }
}

static void W(ew_simple_power)(const dvti_loop *p, const void *const *in, void *out, int64_t n) {
    const int twice = (int)(2 * *(const DVTI_E *)in[1]);
    DVTI_E *to = (DVTI_E *)out;
    DVTI_OPERAND(0)
    for (; n > 0; n--, to += DVTI_LANES, in0 += step0)
        W(store)(to, W(power_by_twice)(W(load)(in0), twice));
}

/* ---- the table of bodies ---- */
typedef struct W(ew_row) {
    dvti_ew_body body; /* NULL: no vector expression */
    int operands, bytes; /* bytes: of a vector of the result */
} W(ew_row);

static const W(ew_row) * W(ew_row_of)(dvti_op op) {
    /* in the order of dvti_op */
    static const W(ew_row) rows[] = {
#define DVTI_ROW_1(name, operands, bytes) {W(name), operands, bytes},
#define DVTI_ROW_0(name, operands, bytes) {NULL, operands, bytes},
#define DVTI_ROW(...) DVTI_EXPAND(DVTI_ROW_(__VA_ARGS__))
#define DVTI_ROW_(name, operands, bytes, has, ...) DVTI_ROW_##has(name, operands, bytes)
#define DVTI_UNARY(name, rule, cost, f, i, vector, ...)                                            \
    DVTI_ROW(ew_##name, 1, DVTI_BYTES_##rule, DVTI_HAS_##vector)
#define DVTI_BINARY(name, rule, cost, f, i, vector, ...)                                           \
    DVTI_ROW(ew_##name, 2, DVTI_BYTES_##rule, DVTI_HAS_##vector)
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, vector, ...)                                \
    DVTI_ROW(ew_##name, operands, DVTI_BYTES_##rule, DVTI_HAS_##vector)
        DVTI_UNARY_TABLE(DVTI_UNARY) DVTI_BINARY_TABLE(DVTI_BINARY) DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_SPECIAL
#undef DVTI_ROW
#undef DVTI_ROW_
#undef DVTI_ROW_0
#undef DVTI_ROW_1
    };

    return (int)op < DVTI_LENGTH(rows) ? &rows[op] : NULL;
}

/* ---- the driver ---- */
static void W(elementwise)(const dvti_loop *p) {
    const W(ew_row) *row = W(ew_row_of)(p->op);
    const int64_t whole = p->n / DVTI_LANES, rest = p->n % DVTI_LANES;
    uint8_t space[5 * 64]; /* aligned: vectors that cross a cache line are forwarded late */
    uint8_t *const vector = space + (64 - (uintptr_t)space % 64);
    DVTI_E *const result = (DVTI_E *)(void *)(vector + 3 * 64);
    const void *in[3], *in_last[3];
    uint8_t *end = (uint8_t *)p->out + whole * row->bytes;
    dvti_ew_body body = row->body;
    int k;
    for (k = 0; k < row->operands; k++) {
        const DVTI_E *from = (const DVTI_E *)p->in[k];
        DVTI_E *own = (DVTI_E *)(void *)(vector + 64 * k);
        in[k] = p->step[k] ? (const void *)from : own;
        in_last[k] = own;
        if (!p->step[k])
            W(store)(own, W(set)(*from));
        else if (rest) { /* padding that repeats an element raises no other exceptions */
            from += whole * DVTI_LANES;
            W(store)(own, W(load_or)(from, rest, *from));
        }
    }
    if (p->op == DVTI_OP_pow && !p->step[1] &&
        dvti_simple_exponent((double)*(const DVTI_E *)in[1]))
        body = W(ew_simple_power);
    if (whole)
        body(p, in, p->out, whole);
    if (rest) {
        dvti_loop last;
        if (p->stream) {
            last = *p;
            last.stream = false;
            p = &last;
        }
        body(p, in_last, result, 1);
    }
    if (rest && row->bytes == 64)
        W(store_n)((DVTI_E *)(void *)end, rest, W(load)(result));
    else if (rest)
        memcpy(end, result, (size_t)rest);
}

static dvti_loop_fn W(elementwise_of)(dvti_op op) {
    const W(ew_row) *row = W(ew_row_of)(op);
    return row && row->body ? W(elementwise) : NULL;
}

#undef DVTI_LANES
#undef DVTI_STORE_SAME
#undef DVTI_STORE_NOBOOL
#undef DVTI_STORE_FLOAT
#undef DVTI_STORE_BOOL
#undef DVTI_BYTES_SAME
#undef DVTI_BYTES_NOBOOL
#undef DVTI_BYTES_FLOAT
#undef DVTI_BYTES_BOOL
#undef DVTI_OPERAND
#undef DVTI_BODY_HEAD
#undef DVTI_BODY1_1
#undef DVTI_BODY2_1
#undef DVTI_BODY3_1
#undef DVTI_BODY1_0
#undef DVTI_BODY2_0
#undef DVTI_BODY3_0
#undef DVTI_EXPAND
#undef DVTI_HAS_W
#undef DVTI_HAS_DVTI_NO_VECTOR
