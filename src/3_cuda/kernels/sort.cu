/* A stable radix sort of 64-bit keys, each with a 64-bit value, by 8 bits of the key at a time
   (least significant first).

   The keys are cut into tiles, one block each. A pass has three kernels:

     count     how often each digit occurs in each tile: counts[digit][tile]
     scan      one block replaces the counts by their exclusive prefix sums: the destination of each
               tile's first key of each digit
     scatter   a block moves its tile, 256 keys at a time, to their destinations

   A key's destination is that of its tile and digit, plus the number of equal digits before it in
   the tile: in earlier rounds, in earlier warps, in earlier lanes. One vote per bit of the digit
   counts the lanes. No step depends on which block or thread is first. So equal keys keep their
   order, and the bits are always the same.

   Launch: 256 threads per tile; scan one block of 1024. */

#define DIGITS 256

__device__ inline int dvti_digit(const dvti_ksort &p, int64_t at) {
    return (int)(p.keys[at] >> p.shift) & (DIGITS - 1);
}

extern "C" __global__ void __launch_bounds__(256) dvti_sort_count(const dvti_ksort p) {
    __shared__ int found[DIGITS];
    const int64_t begin = blockIdx.x * p.tile, end = begin + p.tile < p.n ? begin + p.tile : p.n;
    found[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t at = begin + threadIdx.x; at < end; at += 256)
        atomicAdd(&found[dvti_digit(p, at)], 1);
    __syncthreads();
    p.counts[threadIdx.x * p.tiles + blockIdx.x] = found[threadIdx.x];
}

/* Replaces DIGITS * tiles counts by their exclusive prefix sums. */
extern "C" __global__ void __launch_bounds__(1024) dvti_sort_scan(const dvti_ksort p) {
    __shared__ int64_t sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t n = p.tiles * DIGITS;
    int64_t before = 0;
    for (int64_t base = 0; base < n; base += 8 * 1024) {
        const int64_t first = base + 8 * (int64_t)threadIdx.x;
        int64_t own[8], all = 0;
        for (int k = 0; k < 8; k++) {
            own[k] = first + k < n ? p.counts[first + k] : 0;
            all += own[k];
        }
        int64_t sum = all; /* inclusive prefix sum of the lanes */
        for (int step = 1; step < 32; step *= 2) {
            const int64_t other = __shfl_up_sync(0xffffffffu, sum, step);
            sum += lane >= step ? other : 0;
        }
        if (lane == 31)
            sums[warp] = sum;
        __syncthreads();
        int64_t place = before + sum - all;
        for (int k = 0; k < 32; k++) {
            place += k < warp ? sums[k] : 0;
            before += sums[k];
        }
        for (int k = 0; k < 8; k++) {
            if (first + k < n)
                p.counts[first + k] = place;
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
    __shared__ int64_t next[DIGITS]; /* destination of the next key of a digit */
    __shared__ int found[8][DIGITS]; /* per warp in this round; then: in all warps before it */
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t begin = blockIdx.x * p.tile, end = begin + p.tile < p.n ? begin + p.tile : p.n;
    next[threadIdx.x] = p.counts[threadIdx.x * p.tiles + blockIdx.x];
    for (int64_t base = begin; base < end; base += 256) {
        const int64_t at = base + threadIdx.x;
        const bool here = at < end;
        const int digit = here ? dvti_digit(p, at) : 0;
        const unsigned equals = dvti_equals(digit, here);
        const int rank = __popc(equals & ((1u << lane) - 1));
        for (int k = 0; k < 8; k++)
            found[k][threadIdx.x] = 0;
        __syncthreads();
        if (here && rank == 0)
            found[warp][digit] = __popc(equals);
        __syncthreads();
        int sum = 0; /* keys of digit threadIdx.x in this round */
        for (int k = 0; k < 8; k++) {
            const int more = found[k][threadIdx.x];
            found[k][threadIdx.x] = sum;
            sum += more;
        }
        __syncthreads();
        if (here) {
            const int64_t to = next[digit] + found[warp][digit] + rank;
            p.other_keys[to] = p.keys[at];
            p.other_values[to] = p.values[at];
        }
        __syncthreads();
        next[threadIdx.x] += sum;
    }
}
