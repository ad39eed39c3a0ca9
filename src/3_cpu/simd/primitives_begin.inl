/* Defines V(name), the name of this ISA target's `name`, and macros that define the primitives of
   one register. Included after DVTI_TARGET is defined; primitives_end.inl undefines everything. */
#pragma push_macro("V")
#undef V
#define DVTI_V_(target, name) dvti_##target##_##name
#define DVTI_V(target, name) DVTI_V_(target, name)
#define V(name) DVTI_V(DVTI_TARGET, name)

#define DVTI_REG1(R, name, A, value)                                                               \
    DVTI_INLINE V(R) V(name)(V(A) a) {                                                             \
        return value;                                                                              \
    }
#define DVTI_REG2(R, name, A, B, value)                                                            \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b) {                                                     \
        return value;                                                                              \
    }
#define DVTI_REG3(R, name, A, B, C, value)                                                         \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b, V(C) c) {                                             \
        return value;                                                                              \
    }
#define DVTI_REG_SET(R, name, E, value)                                                            \
    DVTI_INLINE V(R) V(name)(E x) {                                                                \
        return value;                                                                              \
    }
#define DVTI_REG_SHIFT(R, name, value)                                                             \
    DVTI_INLINE V(R) V(name)(V(R) a, int n) {                                                      \
        return value;                                                                              \
    }
#define DVTI_REG_LOAD(R, name, E, value)                                                           \
    DVTI_INLINE V(R) V(name)(const E *p) {                                                         \
        return value;                                                                              \
    }
#define DVTI_REG_LOAD_N(R, name, E, value)                                                         \
    DVTI_INLINE V(R) V(name)(const E *p, int64_t n) {                                              \
        return value;                                                                              \
    }
#define DVTI_REG_STORE(R, name, E, statement)                                                      \
    DVTI_INLINE void V(name)(E * p, V(R) a) {                                                      \
        statement;                                                                                 \
    }
#define DVTI_REG_STORE_N(R, name, E, statement)                                                    \
    DVTI_INLINE void V(name)(E * p, int64_t n, V(R) a) {                                           \
        statement;                                                                                 \
    }
#define DVTI_REG_BITS(name, A, value)                                                              \
    DVTI_INLINE uint32_t V(name)(V(A) a) {                                                         \
        return value;                                                                              \
    }
