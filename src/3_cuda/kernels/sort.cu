/* A stable radix sort of keys, each with a value, by 8 bits of the key at a time (least significant
   first).

   The keys are cut into tiles, one block each. A pass has three kernels:

     count     how often each digit occurs in each tile: counts[digit][tile]
     scan      one block replaces the counts by their exclusive prefix sums: the destination of each
               tile's first key of each digit
     scatter   a block moves its tile, 1024 keys at a time, to their destinations

   A key's destination is that of its tile and digit, plus the number of equal digits before it in
   the tile: in earlier rounds, in earlier warps, in the same warp. A warp ranks 128 keys, 32 at a
   time. One vote per bit of the digit counts the lanes. No step depends on which block or thread is
   first. So equal keys keep their order, and the bits are always the same.

   The first pass needs no values: p.values is NULL, and a value is its key's position.

   Variant: WIDE: keys, values and counts of 64 bits, else 32. Launch: 256 threads per tile; scan
   one block of 1024. */

#define DIGITS 256
#define EACH 4 /* keys per thread in a round */
#define ROUND (256 * EACH)

#if WIDE
typedef uint64_t dvti_sort_key;
typedef int64_t dvti_sort_place;
#else
typedef unsigned dvti_sort_key;
typedef int dvti_sort_place;
#endif

__device__ inline int dvti_digit(const dvti_ksort &p, dvti_sort_key key) {
    return (int)(key >> (int)p.shift) & (DIGITS - 1);
}

extern "C" __global__ void __launch_bounds__(256) dvti_sort_count(const dvti_ksort p) {
    __shared__ int found[DIGITS];
    const int64_t begin = blockIdx.x * p.tile, end = begin + p.tile < p.n ? begin + p.tile : p.n;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t at = begin + threadIdx.x; at < end; at += 256)
        atomicAdd(&found[dvti_digit(p, ((const dvti_sort_key *)p.keys)[at])], 1);
    __syncthreads();
    ((dvti_sort_place *)p.counts)[threadIdx.x * p.tiles + blockIdx.x] = found[threadIdx.x];
}

/* Replaces DIGITS * tiles counts by their exclusive prefix sums. */
extern "C" __global__ void __launch_bounds__(1024) dvti_sort_scan(const dvti_ksort p) {
    __shared__ dvti_sort_place sums[32];
    dvti_sort_place *counts = (dvti_sort_place *)p.counts;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t n = p.tiles * DIGITS;
    dvti_sort_place before = 0;
    for (int64_t base = 0; base < n; base += 8 * 1024) {
        const int64_t first = base + 8 * (int64_t)threadIdx.x;
        dvti_sort_place own[8], all = 0;
        for (int k = 0; k < 8; k++) {
            own[k] = first + k < n ? counts[first + k] : 0;
            all += own[k];
        }
        dvti_sort_place sum = all; /* inclusive prefix sum of the lanes */
        for (int step = 1; step < 32; step *= 2) {
            const dvti_sort_place other = __shfl_up_sync(0xffffffffu, sum, step);
            sum += lane >= step ? other : 0;
        }
        if (lane == 31)
            sums[warp] = sum;
        __syncthreads();
        dvti_sort_place place = before + sum - all;
        for (int k = 0; k < 32; k++) {
            place += k < warp ? sums[k] : 0;
            before += sums[k];
        }
        for (int k = 0; k < 8; k++) {
            if (first + k < n)
                counts[first + k] = place;
            place += own[k];
        }
        __syncthreads();
    }
}

/* Returns the lanes of this warp that have the same digit. */
__device__ inline unsigned dvti_equals(int digit, bool here) {
    unsigned equals = __ballot_sync(0xffffffffu, here);
    for (int bit = 1; bit < DIGITS; bit *= 2) {
        const unsigned set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
        equals &= digit & bit ? set : ~set;
    }
    return equals;
}

extern "C" __global__ void __launch_bounds__(256) dvti_sort_scatter(const dvti_ksort p) {
    /* Keys of a digit in each warp's part of the round; then the destination of the first one. */
    __shared__ dvti_sort_place found[8][DIGITS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t begin = blockIdx.x * p.tile, end = begin + p.tile < p.n ? begin + p.tile : p.n;
    dvti_sort_place *mine = found[warp];
    /* The destination of the next key whose digit is threadIdx.x. */
    dvti_sort_place next =
        ((const dvti_sort_place *)p.counts)[threadIdx.x * p.tiles + blockIdx.x];
    for (int64_t base = begin; base < end; base += ROUND) {
        const int64_t first = base + warp * (32 * EACH) + lane;
        dvti_sort_key key[EACH];
        int rank[EACH];
        for (int k = 0; k < 8; k++)
            found[k][threadIdx.x] = 0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++)
            key[k] = first + k * 32 < end ? ((const dvti_sort_key *)p.keys)[first + k * 32] : 0;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const bool here = first + k * 32 < end;
            const int digit = dvti_digit(p, key[k]);
            const unsigned equals = dvti_equals(digit, here);
            const int before = __popc(equals & ((1u << lane) - 1)), others = (int)mine[digit];
            __syncwarp();
            if (here && before == 0)
                mine[digit] = others + __popc(equals);
            __syncwarp();
            rank[k] = others + before;
        }
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            const dvti_sort_place more = found[k][threadIdx.x];
            found[k][threadIdx.x] = next;
            next += more;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int64_t at = first + k * 32;
            if (at < end) {
                const dvti_sort_place to = mine[dvti_digit(p, key[k])] + rank[k];
                ((dvti_sort_key *)p.other_keys)[to] = key[k];
                ((dvti_sort_place *)p.other_values)[to] =
                    p.values ? ((const dvti_sort_place *)p.values)[at] : (dvti_sort_place)at;
            }
        }
        __syncthreads();
    }
}
