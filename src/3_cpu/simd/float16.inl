/* float16 and bfloat16 in memory: V(load_f16)(p), V(load_bf16)(p), V(store_f16)(p, a),
   V(store_bf16)(p, a), each also with _n for the first n lanes. vec.inl has float16 without _n. */

DVTI_INLINE V(f) V(load_bf16)(const uint16_t *p) {
    return V(as_f)(V(ishl)(V(load_u16)(p), 16));
}

/* To nearest even; NaN stays one. */
DVTI_INLINE void V(store_bf16)(uint16_t *p, V(f) a) {
    V(i) bits = V(as_i)(a), odd = V(iand)(V(ishr)(bits, 16), V(iset)(1));
    V(i) rounded = V(ishr)(V(iadd)(V(iadd)(bits, V(iset)(0x7fff)), odd), 16);
    V(i) quiet = V(ior)(V(ishr)(bits, 16), V(iset)(0x40));
    V(store_u16)(p, V(iselect)(V(unord)(a, a), quiet, rounded));
}

#define DVTI_TAIL16(name)                                                                          \
    DVTI_INLINE V(f) V(load_##name##_n)(const uint16_t *p, int64_t n) {                            \
        uint16_t lane[16] = {0};                                                                   \
        memcpy(lane, p, (size_t)n * sizeof *p);                                                    \
        return V(load_##name)(lane);                                                               \
    }                                                                                              \
    DVTI_INLINE void V(store_##name##_n)(uint16_t * p, int64_t n, V(f) a) {                        \
        uint16_t lane[16];                                                                         \
        V(store_##name)(lane, a);                                                                  \
        memcpy(p, lane, (size_t)n * sizeof *p);                                                    \
    }
DVTI_TAIL16(f16)
DVTI_TAIL16(bf16)
#undef DVTI_TAIL16
