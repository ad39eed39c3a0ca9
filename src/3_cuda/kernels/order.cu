/* Stable sort of rows (rows, n), or its first k elements: kernel sort. Elements become unsigned
   keys in the same order. All NaN are the largest, -0 equals +0, and a descending order inverts all
   bits.

   Rows of up to 2048 elements: dvti_order_block sorts as many rows as have 2048 places in shared
   memory. Each row is padded to a power of two and sorted by a bitonic network (Batcher 1968). A
   place breaks ties between equal keys, so the order is stable.

   Longer rows: dvti_order_keys writes keys with the row in the bits above the element's. sort.cu
   sorts them with their numbers, and dvti_order_finish reads the elements at those numbers. If a
   key has no bits left for the row, the numbers are sorted twice: by key, then by row
   (dvti_order_by_row).

   The first few elements of longer rows: dvti_order_first runs in rounds. A block sorts a tile of
   PLACES candidates; the first k of each tile are the candidates of the next round. The candidates
   of the first round are the row's elements. Ties go to the earlier place, as in the row.

     row          [ tile 0 | tile 1 | tile 2 | ... ]     PLACES candidates each
                    |        |        |
     next round   [ k      | k      | k      | ... ]     until one tile is left

   Variant: D; INDICES: the result is indices, else elements. Launch: 256 threads. */

#define PLACES 2048
#define KEY_BITS (D == DVT_BOOL ? 1 : 8 * (int)sizeof(dvti_stored<D>::type))

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
    const uint64_t all = ~0ULL >> (64 - KEY_BITS);
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
        key = ((uint64_t)(int64_t)x ^ 1ULL << (KEY_BITS - 1)) & all;
    return p.descending ? ~key & all : key;
}

__device__ inline void dvti_result(const dvti_korder &p, int64_t to, int64_t first, int64_t at) {
    if (INDICES)
        ((int64_t *)p.out)[to] = at;
    else
        ((dvti_element *)p.out)[to] = ((const dvti_element *)p.in)[first + at];
}

/* Sorts every `width` of the PLACES places, by key and then by place. */
__device__ inline void dvti_bitonic_sort(uint64_t *keys, unsigned short *places, int width) {
    for (int size = 2; size <= width; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int k = threadIdx.x; k < PLACES / 2; k += 256) {
                const int a = 2 * k - (k & (step - 1)), b = a + step;
                const bool up = size == width || (a & size) == 0;
                const uint64_t x = keys[a], y = keys[b];
                const unsigned short i = places[a], j = places[b];
                if ((x > y || (x == y && i > j)) == up) {
                    keys[a] = y;
                    keys[b] = x;
                    places[a] = j;
                    places[b] = i;
                }
            }
            __syncthreads();
        }
}

/* ---- short rows ---- */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_block(const dvti_korder p) {
    __shared__ uint64_t keys[PLACES];
    __shared__ unsigned short places[PLACES];
    const int width = (int)p.width, rows = PLACES / width; /* places of a row; rows of the block */
    for (int64_t group = blockIdx.x; group < p.groups; group += gridDim.x) {
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            const int64_t row = group * rows + i / width;
            const int at = i % width;
            keys[i] = row < p.rows && at < p.n ? dvti_key(p, row * p.n + at) : ~0ULL;
            places[i] = (unsigned short)at;
        }
        __syncthreads();
        dvti_bitonic_sort(keys, places, width);
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            const int64_t row = group * rows + i / width;
            const int at = i % width;
            if (row < p.rows && at < p.k)
                dvti_result(p, row * p.k + at, row * p.n, places[i]);
        }
        __syncthreads();
    }
}

/* ---- long rows ---- */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_keys(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.n; i += dvti_threads()) {
        const uint64_t row = p.above ? (uint64_t)dvti_quotient(i, p.n) << (KEY_BITS % 64) : 0;
        p.keys[i] = dvti_key(p, i) | row;
        p.values[i] = i;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_by_row(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.n; i += dvti_threads())
        p.keys[i] = (uint64_t)dvti_quotient(p.values[i], p.n);
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_finish(const dvti_korder p) {
    for (int64_t i = dvti_thread(); i < p.rows * p.k; i += dvti_threads()) {
        const int64_t row = dvti_quotient(i, p.k), first = row * p.n;
        dvti_result(p, i, first, p.values[first + i - row * p.k] - first);
    }
}

/* ---- the first few elements of long rows; indices only ---- */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_order_first(const dvti_korder p) {
    __shared__ uint64_t keys[PLACES];
    __shared__ unsigned short places[PLACES];
    for (int64_t tile = blockIdx.x; tile < p.rows * p.tiles; tile += gridDim.x) {
        const int64_t row = dvti_quotient(tile, p.tiles);
        const int64_t number = tile - row * p.tiles, begin = number * PLACES, left = p.m - begin;
        const int64_t base = row * p.m + begin, kept = row * p.kept + number * p.k;
        for (int i = threadIdx.x; i < PLACES; i += 256) {
            keys[i] = i >= left ? ~0ULL : p.keys ? p.keys[base + i] : dvti_key(p, base + i);
            places[i] = (unsigned short)i;
        }
        __syncthreads();
        dvti_bitonic_sort(keys, places, PLACES);
        for (int i = threadIdx.x; i < p.k && i < left; i += 256) {
            p.other_keys[kept + i] = keys[i];
            p.other_values[kept + i] = p.keys ? p.values[base + places[i]] : begin + places[i];
        }
        __syncthreads();
    }
}
