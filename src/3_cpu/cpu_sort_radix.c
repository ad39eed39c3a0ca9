/* Radix sort, least significant digit first, of unsigned keys in the elements' order, or of keys
   with positions. Digits have 11 bits where that saves passes, and 8 where rows are too short to
   fill as many counters.

   Keys: all NaN are the largest, -0 and +0 are one key, and equal keys keep the order of their
   positions. A row that has neither NaN nor -0 gives its elements back from the keys alone. Any
   other row is sorted by position and gathered.
   Source of the float keys: Herf, "Radix Tricks", 2001. */
#include "3_cpu/cpu_sort.h"

#define DVTI_SORT_INSERT 40 /* elements up to which insertion is faster */
#define DVTI_SORT_LONG 8192 /* from here on digits have 11 bits */

/* ---- radix sort of x with scratch y; returns the buffer with the result ---- */
#define DVTI_DEFINE_RADIX(name, T, KEY)                                                            \
    static void name##_insert(T *x, int64_t n) {                                                   \
        int64_t i, j;                                                                              \
        for (i = 1; i < n; i++) {                                                                  \
            const T own = x[i];                                                                    \
            for (j = i; j > 0 && KEY(x[j - 1]) > KEY(own); j--)                                    \
                x[j] = x[j - 1];                                                                   \
            x[j] = own;                                                                            \
        }                                                                                          \
    }                                                                                              \
    /* False: all keys have the same digit, nothing is moved. */                                   \
    static bool name##_pass(const T *x, T *y, int64_t n, int shift, int width) {                   \
        int64_t place[1 << 11], i, sum = 0;                                                        \
        const unsigned mask = (1u << width) - 1;                                                   \
        unsigned digit;                                                                            \
        memset(place, 0, sizeof *place << width);                                                  \
        for (i = 0; i < n; i++)                                                                    \
            place[(unsigned)(KEY(x[i]) >> shift) & mask]++;                                        \
        if (place[(unsigned)(KEY(x[0]) >> shift) & mask] == n)                                     \
            return false;                                                                          \
        for (digit = 0; digit <= mask; digit++) {                                                  \
            const int64_t count = place[digit];                                                    \
            place[digit] = sum;                                                                    \
            sum += count;                                                                          \
        }                                                                                          \
        for (i = 0; i < n; i++)                                                                    \
            y[place[(unsigned)(KEY(x[i]) >> shift) & mask]++] = x[i];                              \
        return true;                                                                               \
    }                                                                                              \
    static T *name(T *x, T *y, int64_t n, int bits) {                                              \
        const int width = n < DVTI_SORT_LONG || bits <= 8 ? 8 : 11;                                \
        int shift;                                                                                 \
        if (n <= DVTI_SORT_INSERT) {                                                               \
            name##_insert(x, n);                                                                   \
            return x;                                                                              \
        }                                                                                          \
        for (shift = 0; shift < bits; shift += width)                                              \
            if (name##_pass(x, y, n, shift, width)) {                                              \
                T *other = x;                                                                      \
                x = y;                                                                             \
                y = other;                                                                         \
            }                                                                                      \
        return x;                                                                                  \
    }
#define DVTI_KEY_ITSELF(x) (x)
#define DVTI_KEY_ABOVE(x) ((x) >> 32)
#define DVTI_KEY_OF_PAIR(x) ((x).key)
DVTI_DEFINE_RADIX(dvti_radix_32, uint32_t, DVTI_KEY_ITSELF)
DVTI_DEFINE_RADIX(dvti_radix_64, uint64_t, DVTI_KEY_ITSELF)
DVTI_DEFINE_RADIX(dvti_radix_packed, uint64_t, DVTI_KEY_ABOVE)
DVTI_DEFINE_RADIX(dvti_radix_pairs, dvti_sort_pair, DVTI_KEY_OF_PAIR)
#undef DVTI_DEFINE_RADIX
#undef DVTI_KEY_ITSELF
#undef DVTI_KEY_ABOVE
#undef DVTI_KEY_OF_PAIR

DVTI_FN dvti_sort_pair *dvti_sort_pairs(dvti_sort_pair *x, dvti_sort_pair *y, int64_t n, int bits) {
    return dvti_radix_pairs(x, y, n, bits);
}

/* ---- keys ---- */
/* Stored bits u of a float whose infinity is `infinity`: special counts NaN and -0. `flip` is all
   ones for a descending order. */
#define DVTI_FLOAT_KEYS(S, K, top, infinity)                                                       \
    {                                                                                              \
        const S *s = (const S *)src;                                                               \
        for (i = 0; i < n; i++) {                                                                  \
            const S u = s[i], size = (S)(u & (S) ~(top));                                          \
            const bool nan = size > (infinity), minus_zero = u == (top);                           \
            const S v = minus_zero ? (S)0 : u;                                                     \
            const S ordered = (S)(v & (top) ? (S)~v : (S)(v | (top)));                             \
            special |= nan | minus_zero;                                                           \
            key[i] = (K)(S)((nan ? (S) ~(S)0 : ordered) ^ (S)flip);                                \
        }                                                                                          \
    }                                                                                              \
    break;
#define DVTI_INT_KEYS(S, K, top)                                                                   \
    {                                                                                              \
        const S *s = (const S *)src;                                                               \
        for (i = 0; i < n; i++)                                                                    \
            key[i] = (K)(S)(s[i] ^ (top) ^ (S)flip);                                               \
    }                                                                                              \
    break;

DVTI_FN bool dvti_keys_32(const void *src, dvt_dtype dtype, int64_t n, uint32_t flip,
                          uint32_t *key) {
    bool special = false;
    int64_t i;
    switch ((int)dtype) {
    case DVT_F32:
        DVTI_FLOAT_KEYS(uint32_t, uint32_t, 0x80000000u, 0x7f800000u)
    case DVT_F16:
        DVTI_FLOAT_KEYS(uint16_t, uint32_t, 0x8000u, 0x7c00u)
    case DVT_BF16:
        DVTI_FLOAT_KEYS(uint16_t, uint32_t, 0x8000u, 0x7f80u)
    case DVT_I32:
        DVTI_INT_KEYS(uint32_t, uint32_t, 0x80000000u)
    case DVT_I8:
        DVTI_INT_KEYS(uint8_t, uint32_t, 0x80u)
    case DVT_U8:
        DVTI_INT_KEYS(uint8_t, uint32_t, 0u)
    default: /* bool: any byte but 0 is true */
        for (i = 0; i < n; i++)
            key[i] = (((const uint8_t *)src)[i] != 0) ^ (flip & 1);
    }
    return special;
}

DVTI_FN bool dvti_keys_64(const void *src, dvt_dtype dtype, int64_t n, uint64_t flip,
                          uint64_t *key) {
    const uint64_t top = (uint64_t)1 << 63;
    bool special = false;
    uint32_t narrow[DVTI_BLOCK];
    int64_t i, k, m;
    switch ((int)dtype) {
    case DVT_F64:
        DVTI_FLOAT_KEYS(uint64_t, uint64_t, top, (uint64_t)0x7ff << 52)
    case DVT_I64:
        DVTI_INT_KEYS(uint64_t, uint64_t, top)
    default: /* numbers of more than 32 bits */
        for (i = 0; i < n; i += m) {
            m = DVTI_MIN(n - i, DVTI_BLOCK);
            special |= dvti_keys_32((const char *)src + i * dvt_dtype_size(dtype), dtype, m,
                                    (uint32_t)flip, narrow);
            for (k = 0; k < m; k++)
                key[i + k] = narrow[k];
        }
    }
    return special;
}

#undef DVTI_FLOAT_KEYS
#undef DVTI_INT_KEYS

/* Returns elements from the keys of a row that has no special ones. */
#define DVTI_KEYS_BACK(S, K, back)                                                                 \
    {                                                                                              \
        S *d = (S *)dst;                                                                           \
        for (i = 0; i < n; i++) {                                                                  \
            const S v = (S)(((const K *)key)[i] ^ (K)flip);                                        \
            d[i] = (S)(back);                                                                      \
        }                                                                                          \
    }                                                                                              \
    break;

static void dvti_keys_back(const void *key, dvt_dtype dtype, int64_t n, uint64_t flip, void *dst) {
    const uint64_t top = (uint64_t)1 << 63;
    int64_t i;
    switch (dtype) {
    case DVT_F32:
        DVTI_KEYS_BACK(uint32_t, uint32_t, v & 0x80000000u ? v ^ 0x80000000u : ~v)
    case DVT_F16:
    case DVT_BF16:
        DVTI_KEYS_BACK(uint16_t, uint32_t, v & 0x8000u ? v ^ 0x8000u : v ^ 0xffffu)
    case DVT_F64:
        DVTI_KEYS_BACK(uint64_t, uint64_t, v & top ? v ^ top : ~v)
    case DVT_I32:
        DVTI_KEYS_BACK(uint32_t, uint32_t, v ^ 0x80000000u)
    case DVT_I64:
        DVTI_KEYS_BACK(uint64_t, uint64_t, v ^ top)
    case DVT_I8:
        DVTI_KEYS_BACK(uint8_t, uint32_t, v ^ 0x80u)
    case DVT_U8:
        DVTI_KEYS_BACK(uint8_t, uint32_t, v)
    case DVT_BOOL:
        DVTI_KEYS_BACK(uint8_t, uint32_t, v & 1)
    }
}

#undef DVTI_KEYS_BACK

/* ---- rows ---- */
/* Stores result i of a row that is sorted by position: the position, or the element there. */
static void dvti_sort_store(const dvti_sort_plan *plan, const void *src, int64_t i, uint64_t at,
                            void *dst) {
    size_t size = (size_t)dvt_dtype_size(plan->launch->in[0].dtype);
    if (plan->launch->op == DVTI_OP_sort)
        memcpy((char *)dst + (size_t)i * size, (const char *)src + (size_t)at * size, size);
    else
        ((int64_t *)dst)[i] = (int64_t)at;
}

DVTI_FN void dvti_sort_narrow(const dvti_sort_plan *plan, const void *src, void *dst, void *area) {
    dvt_dtype dtype = plan->launch->in[0].dtype;
    uint32_t *key = (uint32_t *)area + 2 * plan->n, flip = plan->launch->i[0] ? ~(uint32_t)0 : 0;
    uint64_t *packed = (uint64_t *)area;
    bool special = dvti_keys_32(src, dtype, plan->n, flip, key);
    int64_t i;
    if (plan->launch->op == DVTI_OP_sort && !special) {
        key = dvti_radix_32(key, key + plan->n, plan->n, plan->bits);
        dvti_keys_back(key, dtype, plan->n, flip, dst);
        return;
    }
    for (i = 0; i < plan->n; i++)
        packed[i] = (uint64_t)key[i] << 32 | (uint64_t)i;
    packed = dvti_radix_packed(packed, packed + plan->n, plan->n, plan->bits);
    for (i = 0; i < plan->k; i++)
        dvti_sort_store(plan, src, i, packed[i] & 0xffffffffu, dst);
}

DVTI_FN void dvti_sort_wide(const dvti_sort_plan *plan, const void *src, void *dst, void *area) {
    dvt_dtype dtype = plan->launch->in[0].dtype;
    uint64_t *key = (uint64_t *)area + 2 * plan->n, flip = plan->launch->i[0] ? ~(uint64_t)0 : 0;
    dvti_sort_pair *pair = (dvti_sort_pair *)area;
    bool special = dvti_keys_64(src, dtype, plan->n, flip, key);
    int64_t i;
    if (plan->launch->op == DVTI_OP_sort && !special && dvt_dtype_size(dtype) == 8) {
        key = dvti_radix_64(key, key + plan->n, plan->n, plan->bits);
        dvti_keys_back(key, dtype, plan->n, flip, dst);
        return;
    }
    for (i = 0; i < plan->n; i++) {
        pair[i].key = key[i];
        pair[i].at = (uint64_t)i;
    }
    pair = dvti_radix_pairs(pair, pair + plan->n, plan->n, plan->bits);
    for (i = 0; i < plan->k; i++)
        dvti_sort_store(plan, src, i, pair[i].at, dst);
}

#undef DVTI_SORT_INSERT
#undef DVTI_SORT_LONG
