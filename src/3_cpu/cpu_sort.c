/* Sorts rows, stable. Elements become unsigned keys in the elements' order. A radix sort, least
   significant digit first, moves keys, or keys with positions. Digits have 11 bits where that saves
   passes, and 8 where rows are too short to fill as many counters.

     float32, int32, sort, up to 4096      16 rows at a time, each in a lane of the ISA target's
                                           vectors, where there is neither NaN nor -0
     float32, int32, argsort, up to 256    counts the elements before each
     others                                radix sort; up to 40 elements insertion sort

   Keys: all NaN are the largest, -0 and +0 are one key, and equal keys keep the order of their
   positions. A row that has neither NaN nor -0 gives its elements back from the keys alone. Any
   other row is sorted by position and gathered.
   Source of the float keys: Herf, "Radix Tricks", 2001. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SORT_INSERT 40        /* elements up to which insertion is faster */
#define DVTI_SORT_LONG 8192        /* from here on digits have 11 bits */
#define DVTI_SORT_TASK 4096        /* elements of rows that a thread takes at once */
#define DVTI_SORT_AHEAD 256        /* elements of rows of which the next ones are fetched ahead */
#define DVTI_SORT_INTERLEAVED 4096 /* elements of the longest rows that are sorted side by side */
#define DVTI_SORT_RANKED 256       /* elements of rows whose places are counted */
#define DVTI_SORT_COST 130.        /* per element, in multiply-adds (dvti_task_areas) */
#define DVTI_SORT_INTERLEAVED_COST 20.

/* Contents of launch->plan. */
typedef struct dvti_sort_plan {
    const dvti_launch *launch;        /* set by `run` */
    const dvti_simd *simd;            /* NULL: no ISA target is chosen */
    int64_t rows, n, k, group, tasks; /* k: results of a row; group: rows of a task */
    int64_t area_bytes, areas;        /* areas: tasks that run at once at most */
    bool interleaved; /* rows of float32 or int32, 16 side by side where an ISA target computes */
    int bits;         /* of a key */
    bool wide;        /* keys of 64 bits, or numbers of more than 32 */
} dvti_sort_plan;

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

static void dvti_sort_narrow(const dvti_sort_plan *plan, const void *src, void *dst, void *area) {
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

static void dvti_sort_wide(const dvti_sort_plan *plan, const void *src, void *dst, void *area) {
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

/* ---- 16 rows side by side, each in a lane ---- */
DVTI_FN void dvti_rows_to_lanes(const dvti_simd *simd, const float *rows, int64_t step,
                                int64_t count, int64_t columns, float *lanes) {
    float block[256];
    int64_t k;
    if (columns == 16 && count == 16) {
        simd->transpose(rows, step, lanes, 16);
        return;
    }
    for (k = 0; k < 16; k++)
        memcpy(block + 16 * k, rows + DVTI_MIN(k, count - 1) * step,
               (size_t)columns * sizeof *rows);
    simd->transpose(block, 16, block, 16);
    memcpy(lanes, block, (size_t)(16 * columns) * sizeof *lanes);
}

/* Returns where the 16 columns after those from `at` on begin. The last block overlaps the one
   before it, since a whole block takes less time than a partial one. */
static int64_t dvti_sort_next(int64_t at, int64_t n) {
    return at + 16 < n && at + 32 > n ? n - 16 : at + 16;
}

static void dvti_sort_from_lanes(const dvti_simd *simd, const float *lanes, int64_t count,
                                 int64_t n, float *rows) {
    float block[256];
    int64_t at, next, k;
    for (at = 0; at < n; at = next) {
        const int64_t m = DVTI_MIN(n - at, 16);
        next = dvti_sort_next(at, n);
        if (m == 16 && count == 16) {
            simd->transpose(lanes + 16 * at, 16, rows + at, n);
            continue;
        }
        memcpy(block, lanes + 16 * at, (size_t)(16 * m) * sizeof *lanes);
        simd->transpose(block, 16, block, 16);
        for (k = 0; k < count; k++)
            memcpy(rows + k * n + at, block + 16 * k, (size_t)m * sizeof *rows);
    }
}

/* Prefetches short rows: no processor does for 16 streams, and the rows of a large array would wait
   for memory longer than their sort takes. */
static void dvti_sort_ahead(const float *p, int64_t n) {
    int64_t i;
    for (i = 0; i < n && n <= 16 * DVTI_SORT_AHEAD; i += 16)
        DVTI_PREFETCH(p + i);
}

/* Sorts rows first .. first + count - 1, at most 16. Returns false where it does not: a few rows
   take as long as 16. */
static bool dvti_sort_interleaved(const dvti_sort_plan *plan, int64_t first, int64_t count,
                                  float *area) {
    const dvti_simd *simd = plan->simd;
    const float *from = (const float *)plan->launch->in[0].data + first * plan->n;
    float *to = (float *)plan->launch->out[0].data + first * plan->n;
    int64_t n = plan->n, at;
    if (!plan->interleaved || !simd || count < (n <= 1024 ? 4 : 8))
        return false;
    for (at = 0; at < n; at = dvti_sort_next(at, n))
        dvti_rows_to_lanes(simd, from + at, n, count, DVTI_MIN(n - at, 16), area + 16 * at);
    dvti_sort_ahead(from + count * n, DVTI_MIN(plan->rows - first - count, 16) * n);
    dvti_sort_ahead(to, count * n);
    if (!dvti_simd_order_of(simd)->sort_columns(area, n, plan->launch->in[0].dtype == DVT_F32,
                                                plan->launch->i[0] != 0))
        return false;
    dvti_sort_from_lanes(simd, area, count, n, to);
    return true;
}

/* Writes the positions of a short row in order. Elements with the same count before them are equal,
   and the first of them comes first. */
static bool dvti_sort_ranked(const dvti_sort_plan *plan, const void *src, int64_t *dst) {
    const dvti_simd *simd = plan->simd;
    const dvt_dtype dtype = plan->launch->in[0].dtype;
    const int64_t n = plan->n;
    int32_t key[DVTI_SORT_RANKED + 64], rank[DVTI_SORT_RANKED + 64], next[DVTI_SORT_RANKED];
    int64_t i;
    if (!simd || plan->launch->op != DVTI_OP_argsort || plan->k < n || n > DVTI_SORT_RANKED ||
        (dtype != DVT_F32 && dtype != DVT_I32))
        return false;
    dvti_simd_order_of(simd)->ranks((const int32_t *)src, n, dtype == DVT_F32,
                                    plan->launch->i[0] != 0, key, rank);
    for (i = 0; i < n; i++)
        next[i] = (int32_t)i;
    for (i = 0; i < n; i++)
        dst[next[rank[i]]++] = i;
    return true;
}

/* ---- tasks ---- */
static void dvti_sort_one(const dvti_sort_plan *plan, int64_t row, void *area) {
    const dvti_view *in = &plan->launch->in[0], *out = &plan->launch->out[0];
    const void *src = (const char *)in->data + row * plan->n * dvt_dtype_size(in->dtype);
    void *dst = (char *)out->data + row * plan->k * dvt_dtype_size(out->dtype);
    if (plan->wide)
        dvti_sort_wide(plan, src, dst, area);
    else if (!dvti_sort_ranked(plan, src, (int64_t *)dst))
        dvti_sort_narrow(plan, src, dst, area);
}

static void dvti_sort_task(void *user, int64_t task, void *area) {
    const dvti_sort_plan *plan = (const dvti_sort_plan *)user;
    int64_t first = task * plan->group, end = DVTI_MIN(plan->rows, first + plan->group), row;
    for (; first < end; first += 16) {
        const int64_t count = DVTI_MIN(end - first, 16);
        if (!dvti_sort_interleaved(plan, first, count, (float *)area))
            for (row = first; row < first + count; row++)
                dvti_sort_one(plan, row, area);
    }
}

/* ---- the kernel ---- */
static double dvti_sort_cost(const dvti_sort_plan *plan) {
    return (double)(plan->rows * plan->n) *
           (plan->interleaved ? DVTI_SORT_INTERLEAVED_COST : DVTI_SORT_COST);
}

DVTI_PLAN_FITS(dvti_sort_plan)

DVTI_FN int64_t dvti_sort_plan_of(dvti_launch *launch, int threads) {
    dvti_sort_plan *plan = (dvti_sort_plan *)(void *)&launch->plan;
    const dvt_dtype dtype = launch->in[0].dtype;
    const int64_t size = dvt_dtype_size(dtype);
    const int64_t rows = launch->in[0].dim[0], n = launch->in[0].dim[1];
    const bool interleaved = launch->op == DVTI_OP_sort && (dtype == DVT_F32 || dtype == DVT_I32) &&
                             rows >= 4 && n > 1 && n <= DVTI_SORT_INTERLEAVED;
    const bool wide = size == 8 || n > UINT32_MAX;
    int64_t group = DVTI_MAX(DVTI_SORT_TASK / n, 1), bytes = (n * (wide ? 32 : 16) + 63) / 64 * 64;
    if (interleaved) {
        group = (group + 15) / 16 * 16;
        for (bytes = 1024; bytes < 64 * n; bytes *= 2)
            ;
    }
    plan->simd = dvti_simd_now();
    plan->rows = rows;
    plan->n = n;
    plan->k = launch->out[0].dim[1];
    plan->interleaved = interleaved;
    plan->group = group;
    plan->tasks = (rows - 1) / group + 1;
    plan->bits = dtype == DVT_BOOL ? 1 : 8 * (int)size;
    plan->wide = wide;
    plan->area_bytes = bytes;
    plan->areas = dvti_task_areas(plan->tasks, dvti_sort_cost(plan), dvti_cpu_threads(threads));
    return plan->areas * bytes;
}

DVTI_FN void dvti_cpu_sort(const dvti_launch *launch) {
    dvti_sort_plan *plan = (dvti_sort_plan *)dvti_cpu_plan_at(launch);
    plan->launch = launch;
    dvti_run_tasks(plan->tasks, dvti_sort_cost(plan), launch->workspace, plan->areas,
                   plan->area_bytes, dvti_sort_task, plan);
}

#undef DVTI_SORT_INSERT
#undef DVTI_SORT_LONG
#undef DVTI_SORT_TASK
#undef DVTI_SORT_AHEAD
#undef DVTI_SORT_INTERLEAVED
#undef DVTI_SORT_RANKED
#undef DVTI_SORT_COST
#undef DVTI_SORT_INTERLEAVED_COST
