/* The frame of a tier's words: V(name) is the name of this tier's `name`, and the shapes in which parts say their words. Pasted after DVTI_TIER
   is defined; words_end.inl takes it away again. */
#pragma push_macro("V")
#undef V
#define DVTI_V_(tier, name) dvti_##tier##_##name
#define DVTI_V(tier, name) DVTI_V_(tier, name)
#define V(name) DVTI_V(DVTI_TIER, name)

#define DVTI_PART1(R, name, A, value)                                                              \
    DVTI_INLINE V(R) V(name)(V(A) a) {                                                             \
        return value;                                                                              \
    }
#define DVTI_PART2(R, name, A, B, value)                                                           \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b) {                                                     \
        return value;                                                                              \
    }
#define DVTI_PART3(R, name, A, B, C, value)                                                        \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b, V(C) c) {                                             \
        return value;                                                                              \
    }
#define DVTI_PART_SET(R, name, E, value)                                                           \
    DVTI_INLINE V(R) V(name)(E x) {                                                                \
        return value;                                                                              \
    }
#define DVTI_PART_SHIFT(R, name, value)                                                            \
    DVTI_INLINE V(R) V(name)(V(R) a, int n) {                                                      \
        return value;                                                                              \
    }
#define DVTI_PART_LOAD(R, name, E, value)                                                          \
    DVTI_INLINE V(R) V(name)(const E *p) {                                                         \
        return value;                                                                              \
    }
#define DVTI_PART_LOAD_N(R, name, E, value)                                                        \
    DVTI_INLINE V(R) V(name)(const E *p, int64_t n) {                                              \
        return value;                                                                              \
    }
#define DVTI_PART_STORE(R, name, E, statement)                                                     \
    DVTI_INLINE void V(name)(E * p, V(R) a) {                                                      \
        statement;                                                                                 \
    }
#define DVTI_PART_STORE_N(R, name, E, statement)                                                   \
    DVTI_INLINE void V(name)(E * p, int64_t n, V(R) a) {                                           \
        statement;                                                                                 \
    }
#define DVTI_PART_BITS(name, A, value)                                                             \
    DVTI_INLINE uint32_t V(name)(V(A) a) {                                                         \
        return value;                                                                              \
    }

/* Polynomials of vectors of floats by Horner's rule, lowest order first. */
#define DVTI_P1(x, a, b) V(fma)(V(set)(b), x, V(set)(a))
#define DVTI_P2(x, a, b, c) V(fma)(DVTI_P1(x, b, c), x, V(set)(a))
#define DVTI_P3(x, a, b, c, d) V(fma)(DVTI_P2(x, b, c, d), x, V(set)(a))
#define DVTI_P4(x, a, b, c, d, e) V(fma)(DVTI_P3(x, b, c, d, e), x, V(set)(a))
#define DVTI_P5(x, a, b, c, d, e, f) V(fma)(DVTI_P4(x, b, c, d, e, f), x, V(set)(a))
#define DVTI_P6(x, a, b, c, d, e, f, g) V(fma)(DVTI_P5(x, b, c, d, e, f, g), x, V(set)(a))
#define DVTI_P7(x, a, b, c, d, e, f, g, h) V(fma)(DVTI_P6(x, b, c, d, e, f, g, h), x, V(set)(a))
#define DVTI_P8(x, a, b, c, d, e, f, g, h, i)                                                      \
    V(fma)(DVTI_P7(x, b, c, d, e, f, g, h, i), x, V(set)(a))
#define DVTI_P10(x, a, b, c, d, e, f, g, h, i, j, k)                                               \
    V(fma)(V(fma)(DVTI_P8(x, c, d, e, f, g, h, i, j, k), x, V(set)(b)), x, V(set)(a))
