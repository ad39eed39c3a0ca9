/* Stable sort of rows (rows, n), or its first k elements: kernel sort. Elements become unsigned
   keys in the same order. All NaN are the largest, -0 equals +0, and a descending order inverts all
   bits.

   Rows of up to 2048 elements: dvti_order_block sorts as many rows as have 2048 places in shared
   memory. Each row is padded to a power of two and sorted by a bitonic network (Batcher 1968). A
   place breaks ties between equal keys, so the order is stable. Keys of up to 32 bits have the
   place below them, in one word. A thread loads 8 entries and does up to three steps of the network
   in registers.

   Longer rows: dvti_order_keys writes keys of the element's width, with the row in bits above if
   there are any left. sort.cu sorts them with their numbers, and dvti_order_finish finds the
   elements. If a key has no bits left for the row, the numbers are sorted twice: by key, then by
   row (dvti_order_by_row).

   An element follows from its key, unless it is NaN or zero: these are read at their places.

   The first few elements of longer rows: dvti_order_first runs in rounds. A block sorts a tile of
   PLACES candidates; the first k of each tile are the candidates of the next round. The candidates
   of the first round are the row's elements. Ties go to the earlier place, as in the row.

     row          [ tile 0 | tile 1 | tile 2 | ... ]     PLACES candidates each
                    |        |        |
     next round   [ k      | k      | k      | ... ]     until one tile is left

   Variant: D; INDICES: the result is indices, else elements. Launch: 256 threads. */

#define PLACES 2048
#define PLACE_BITS 11
#define KEY_BITS (D == DVT_BOOL ? 1 : 8 * (int)sizeof(dvti_stored<D>::type))
#define TOP (1ULL << (KEY_BITS - 1))
#define ALL (~0ULL >> (64 - KEY_BITS))
#define EACH 8 /* entries per thread of a block's network */

typedef dvti_stored<D>::type dvti_element;

/* Maps a float of `bits` bits to an unsigned integer in the same order. */
__device__ inline uint64_t dvti_float_key(uint64_t u, int bits, uint64_t infinity) {
    const uint64_t top = 1ULL << (bits - 1), all = top | (top - 1);
    if ((u & ~top) > infinity)
        return all;
    if (u == top)
        return top;
    return u & top ? ~u & all : u | top;
}

__device__ inline uint64_t dvti_key(const dvti_korder &p, int64_t at) {
    const dvti_element x = ((const dvti_element *)p.in)[at];
    uint64_t key;
    if constexpr (D == DVT_F32)
        key = dvti_float_key(__float_as_uint(x), 32, 0x7f800000);
    else if constexpr (D == DVT_F64)
        key = dvti_float_key((uint64_t)__double_as_longlong(x), 64, 0x7ff0000000000000ULL);
    else if constexpr (D == DVT_F16)
        key = dvti_float_key(x, 16, 0x7c00);
    else if constexpr (D == DVT_BF16)
        key = dvti_float_key(x, 16, 0x7f80);
    else if constexpr (D == DVT_BOOL)
        key = x != 0;
    else if constexpr (D == DVT_U8)
        key = x;
    else
        key = ((uint64_t)(int64_t)x ^ TOP) & ALL;
    return p.descending ? ~key & ALL : key;
}

/* Finds the element of a key. Returns false for NaN and zeros, which share keys. */
__device__ inline bool dvti_unkey(const dvti_korder &p, uint64_t key, dvti_element *x) {
    key = p.descending ? ~key & ALL : key & ALL;
    if (!DVTI_IS_FLOAT(D)) {
        *x = (dvti_element)(D == DVT_BOOL || D == DVT_U8 ? key : key ^ TOP);
        return true;
    }
    const uint64_t bits = key & TOP ? key ^ TOP : ~key & ALL;
    memcpy(x, &bits, sizeof *x);
    return key != ALL && key != TOP;
}

/* Writes the result for sorted element `at` of the row that begins at `first`. */
__device__ inline void dvti_result(const dvti_korder &p, int64_t to, int64_t first, int64_t at,
                                   bool whole, uint64_t key) {
    dvti_element x;
    if (INDICES) {
        ((int64_t *)p.out)[to] = at;
        return;
    }
    if (!whole || !dvti_unkey(p, key, &x))
        x = ((const dvti_element *)p.in)[first + at];
    ((dvti_element *)p.out)[to] = x;
}

/* ---- the network of a block ---- */
/* A key and its place: one word where both fit. */
#if D == DVT_F64 || D == DVT_I64
struct dvti_entry {
    uint64_t key;
    unsigned short place;
};

__device__ inline dvti_entry dvti_entry_of(uint64_t key, int place) {
    dvti_entry e;
    e.key = key;
    e.place = (unsigned short)place;
    return e;
}

__device__ inline uint64_t dvti_entry_key(dvti_entry e) { return e.key; }
__device__ inline int dvti_entry_place(dvti_entry e) { return e.place; }

__device__ inline bool dvti_after(dvti_entry a, dvti_entry b) {
    return a.key > b.key || (a.key == b.key && a.place > b.place);
}
#else
template <bool> struct dvti_entry_word { typedef unsigned type; };
template <> struct dvti_entry_word<false> { typedef uint64_t type; };
typedef dvti_entry_word<(KEY_BITS + PLACE_BITS <= 32)>::type dvti_entry;

__device__ inline dvti_entry dvti_entry_of(uint64_t key, int place) {
    return (dvti_entry)(key << PLACE_BITS | (unsigned)place);
}

__device__ inline uint64_t dvti_entry_key(dvti_entry e) { return e >> PLACE_BITS; }
__device__ inline int dvti_entry_place(dvti_entry e) { return (int)(e & (PLACES - 1)); }
__device__ inline bool dvti_after(dvti_entry a, dvti_entry b) { return a > b; }
#endif

/* The entries in shared memory. A gap of one follows every 128 bytes of keys, so that threads that
   read 8 adjacent ones find them in different banks. */
#define GAP(at) ((at) + ((at) >> (KEY_BITS + PLACE_BITS <= 32 ? 5 : 4)))

struct dvti_entries {
#if D == DVT_F64 || D == DVT_I64
    uint64_t keys[GAP(PLACES)];
    unsigned short places[GAP(PLACES)];
    __device__ inline dvti_entry get(int at) const {
        return dvti_entry_of(keys[GAP(at)], places[GAP(at)]);
    }
    __device__ inline void put(int at, dvti_entry e) {
        keys[GAP(at)] = e.key;
        places[GAP(at)] = e.place;
    }
#else
    dvti_entry words[GAP(PLACES)];
    __device__ inline dvti_entry get(int at) const { return words[GAP(at)]; }
    __device__ inline void put(int at, dvti_entry e) { words[GAP(at)] = e; }
#endif
};

/* Compares and exchanges entries that are DISTANCE apart in this thread's 8, at first + k * step.
   Groups of `size` places are sorted up and down in turn; the last size only up. */
template <int DISTANCE>
__device__ inline void dvti_exchange(dvti_entry (&e)[EACH], int first, int step, int size,
                                     bool last) {
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (!(k & DISTANCE)) {
            const dvti_entry a = e[k], b = e[k | DISTANCE];
            const bool up = last || ((first + k * step) & size) == 0;
            const bool swap = dvti_after(a, b) == up;
            e[k] = swap ? b : a;
            e[k | DISTANCE] = swap ? a : b;
        }
}

/* Sorts every `width` of the PLACES places, by key and then by place. */
__device__ inline void dvti_bitonic_sort(dvti_entries &all, int width) {
    dvti_entry e[EACH];
    int first = (int)threadIdx.x * EACH;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        e[k] = all.get(first + k);
    if (width >= 2)
        dvti_exchange<1>(e, first, 1, 2, width == 2);
    if (width >= 4) {
        dvti_exchange<2>(e, first, 1, 4, width == 4);
        dvti_exchange<1>(e, first, 1, 4, width == 4);
    }
    if (width >= 8) {
        dvti_exchange<4>(e, first, 1, 8, width == 8);
        dvti_exchange<2>(e, first, 1, 8, width == 8);
        dvti_exchange<1>(e, first, 1, 8, width == 8);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        all.put(first + k, e[k]);
    __syncthreads();
#pragma unroll 1
    for (int size = 16; size <= width; size *= 2)
#pragma unroll 1
        for (int far = size / 2; far > 0; far /= EACH) { /* distances far, far / 2, far / 4 */
            const int step = far >= 4 ? far / 4 : 1, t = (int)threadIdx.x;
            first = (t & ~(step - 1)) * EACH + (t & (step - 1));
#pragma unroll
            for (int k = 0; k < EACH; k++)
                e[k] = all.get(first + k * step);
            if (far >= 4)
                dvti_exchange<4>(e, first, step, size, size == width);
            if (far >= 2)
                dvti_exchange<2>(e, first, step, size, size == width);
            dvti_exchange<1>(e, first, step, size, size == width);
#pragma unroll
            for (int k = 0; k < EACH; k++)
                all.put(first + k * step, e[k]);
            __syncthreads();
        }
}

/* ---- short rows ---- */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_block(const dvti_korder p) {
    __shared__ dvti_entries all;
    const int width = (int)p.width, rows = PLACES / width; /* places of a row; rows of the block */
    for (int64_t group = blockIdx.x; group < p.groups; group += gridDim.x) {
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            const int64_t row = group * rows + i / width;
            const int at = i % width;
            const uint64_t key = row < p.rows && at < p.n ? dvti_key(p, row * p.n + at) : ALL;
            all.put(i, dvti_entry_of(key, at));
        }
        __syncthreads();
        dvti_bitonic_sort(all, width);
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            const int64_t row = group * rows + i / width;
            const int at = i % width;
            const dvti_entry e = all.get(i);
            if (row < p.rows && at < p.k)
                dvti_result(p, row * p.k + at, row * p.n, dvti_entry_place(e), true,
                            dvti_entry_key(e));
        }
        __syncthreads();
    }
}

/* ---- long rows ---- */
__device__ inline void dvti_sort_put(const dvti_korder &p, int64_t i, uint64_t key) {
    if (p.wide)
        ((uint64_t *)p.keys)[i] = key;
    else
        ((unsigned *)p.keys)[i] = (unsigned)key;
}

__device__ inline int64_t dvti_sort_value(const dvti_korder &p, int64_t i) {
    return p.wide ? ((const int64_t *)p.values)[i] : ((const int *)p.values)[i];
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_keys(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.n; i += dvti_threads()) {
        const uint64_t row = p.above ? (uint64_t)dvti_quotient(i, p.n) << (KEY_BITS % 64) : 0;
        dvti_sort_put(p, i, dvti_key(p, i) | row);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_by_row(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.n; i += dvti_threads())
        dvti_sort_put(p, i, (uint64_t)dvti_quotient(dvti_sort_value(p, i), p.n));
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_finish(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.k; i += dvti_threads()) {
        const int64_t row = dvti_quotient(i, p.k), first = row * p.n, at = first + i - row * p.k;
        const uint64_t key =
            p.wide ? ((const uint64_t *)p.keys)[at] : ((const unsigned *)p.keys)[at];
        dvti_result(p, i, first, dvti_sort_value(p, at) - first, p.whole, key);
    }
}

/* ---- the first few elements of long rows; indices only ---- */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_first(const dvti_korder p) {
    __shared__ dvti_entries all;
    const uint64_t *keys = (const uint64_t *)p.keys;
    const int64_t *values = (const int64_t *)p.values;
    for (int64_t tile = blockIdx.x; tile < p.rows * p.tiles; tile += gridDim.x) {
        const int64_t row = dvti_quotient(tile, p.tiles);
        const int64_t number = tile - row * p.tiles, begin = number * PLACES, left = p.m - begin;
        const int64_t base = row * p.m + begin, kept = row * p.kept + number * p.k;
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            const uint64_t key = i >= left ? ALL : keys ? keys[base + i] : dvti_key(p, base + i);
            all.put(i, dvti_entry_of(key, i));
        }
        __syncthreads();
        dvti_bitonic_sort(all, PLACES);
        for (int i = threadIdx.x; i < p.k && i < left; i += 256) {
            const dvti_entry e = all.get(i);
            const int place = dvti_entry_place(e);
            p.other_keys[kept + i] = dvti_entry_key(e);
            p.other_values[kept + i] = keys ? values[base + place] : begin + place;
        }
        __syncthreads();
    }
}
