/* Cumulative sums along the middle axis of (A, N, B): kernel scan.

   A line (a, b) is cut into chunks, unless there are enough lines to fill the GPU. Then there are
   three kernels:

     totals   the sum of each chunk                  chunk    |  0  |  1  |  2  |
     starts   the sum of all chunks before each      totals   |  s0 |  s1 |  s2 |
     apply    the sums within a chunk, plus its      starts   |  0  |  s0 |s0+s1|
              start

   With one chunk per line, `apply` is enough.

   Rows (B = 1): a block per chunk, 1024 positions per round. A thread sums 4 adjacent elements,
   which it moves by accesses of up to 16 bytes where they are aligned. The lanes of a warp are
   joined by shuffles, the warps in shared memory, the rounds in a register.
   COLUMNS: adjacent threads have adjacent lines, and each adds sequentially.

   Sums are float64, or int64 for integers. Their order depends on the extents alone, so the bits
   are always the same.

   Variant: D, OUT dtypes; COLUMNS. Launch: 256 threads. Two blocks per multiprocessor are enough;
   the register limit of more blocks would cause spills on 10.0 and 12.0. */

template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };

typedef dvti_either<DVTI_IS_FLOAT(OUT), double, int64_t>::type dvti_sum;

#define EACH 4
#define ROUND (256 * EACH)

__device__ inline double dvti_plus(double a, double b) { return a + b; }

__device__ inline int64_t dvti_plus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* The neutral element: -0 keeps the sign of a leading -0. */
__device__ inline dvti_sum dvti_neutral() {
    return DVTI_IS_FLOAT(OUT) ? (dvti_sum)-0.0 : (dvti_sum)0;
}

/* Returns the offset of position `at` of a line, in the order of summation. */
__device__ inline int64_t dvti_place(const dvti_kscan &p, int64_t a, int64_t at, int64_t b) {
    return (a * p.n + (p.backwards ? p.n - 1 - at : at)) * p.b + b;
}

#if COLUMNS

/* Sums one line's chunk per thread: (chunk, a, b), b fastest. */
template <bool APPLY> __device__ inline void dvti_columns(const dvti_kscan &p) {
    for (int64_t i = dvti_thread(); i < p.lines * p.chunks; i += dvti_threads()) {
        const int64_t chunk = dvti_quotient(i, p.lines), line = i - chunk * p.lines,
                      a = dvti_quotient(line, p.b), b = line - a * p.b;
        const int64_t begin = chunk * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
        const dvti_sum start = APPLY && p.chunks > 1 ? ((dvti_sum *)p.before)[i] : dvti_neutral();
        dvti_sum sum = dvti_neutral();
        for (int64_t at = begin; at < end; at++) {
            const int64_t place = dvti_place(p, a, at, b);
            sum = dvti_plus(sum, dvti_load<D, dvti_sum>(p.in, place));
            if (APPLY)
                dvti_store<OUT>(p.out, place, dvti_plus(start, sum));
        }
        if (!APPLY)
            ((dvti_sum *)p.before)[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_scan_totals(const dvti_kscan p) {
    dvti_columns<false>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_scan_apply(const dvti_kscan p) {
    dvti_columns<true>(p);
}

extern "C" __global__ void __launch_bounds__(256) dvti_scan_starts(const dvti_kscan p) {
    for (int64_t line = dvti_thread(); line < p.lines; line += dvti_threads()) {
        dvti_sum sum = dvti_neutral();
        for (int64_t chunk = 0; chunk < p.chunks; chunk++) {
            dvti_sum *at = (dvti_sum *)p.before + chunk * p.lines + line;
            const dvti_sum own = *at;
            *at = sum;
            sum = dvti_plus(sum, own);
        }
    }
}

#else

/* Returns the sum of `own` over all preceding threads, plus `carry`, and adds the block's total to
   `carry`. All threads must call this. */
__device__ inline dvti_sum dvti_before(dvti_sum own, dvti_sum &carry) {
    __shared__ dvti_sum warps[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    dvti_sum sum = own;
    for (int step = 1; step < 32; step *= 2) {
        const dvti_sum other = __shfl_up_sync(0xffffffffu, sum, step);
        sum = lane >= step ? dvti_plus(other, sum) : sum;
    }
    if (lane == 31)
        warps[warp] = sum;
    const dvti_sum left = __shfl_up_sync(0xffffffffu, sum, 1);
    __syncthreads();
    dvti_sum before = carry;
    for (int k = 0; k < 8; k++) {
        before = k < warp ? dvti_plus(before, warps[k]) : before;
        carry = dvti_plus(carry, warps[k]);
    }
    __syncthreads();
    return lane ? dvti_plus(before, left) : before;
}

/* Elements of one access: those of a thread, or two of 8 bytes. */
template <int E> struct dvti_scan_group {
    static constexpr int n = sizeof(typename dvti_stored<E>::type) == 8 ? 2 : EACH;
    typedef dvti_group<E, n> type;
};

/* Tells whether a thread's elements exist, are adjacent in order, and begin at an access. */
template <int E>
__device__ inline bool dvti_together(const dvti_kscan &p, const void *data, int64_t place,
                                     int64_t left) {
    const uint64_t at = (uint64_t)data + (uint64_t)place * sizeof(typename dvti_stored<E>::type);
    return !p.backwards && left >= EACH && at % sizeof(typename dvti_scan_group<E>::type) == 0;
}

/* Loads a thread's elements of a row. Those at `end` and beyond are neutral. */
__device__ inline void dvti_take(const dvti_kscan &p, int64_t row, int64_t first, int64_t end,
                                 dvti_sum (&x)[EACH]) {
    typedef dvti_scan_group<D> group;
    const int64_t place = row * p.n + first;
    if (dvti_together<D>(p, p.in, place, end - first)) {
#pragma unroll
        for (int k = 0; k < EACH; k += group::n) {
            typename group::type pack;
            pack.word = *(const decltype(pack.word) *)((const typename dvti_stored<D>::type *)p.in +
                                                       place + k);
#pragma unroll
            for (int e = 0; e < group::n; e++)
                x[k + e] = dvti_widen<D, dvti_sum>(pack.v[e]);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        x[k] = first + k < end ? dvti_load<D, dvti_sum>(p.in, dvti_place(p, row, first + k, 0))
                               : dvti_neutral();
}

/* Store a word with one instruction. NVRTC splits stores of structures. */
__device__ inline void dvti_put_word(void *to, uint4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(dvti_global(to)), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ inline void dvti_put_word(void *to, uint2 v) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(dvti_global(to)), "r"(v.x), "r"(v.y)
                 : "memory");
}

__device__ inline void dvti_put_word(void *to, unsigned v) { *(unsigned *)to = v; }

__device__ inline void dvti_give(const dvti_kscan &p, int64_t row, int64_t first, int64_t end,
                                 const dvti_sum (&x)[EACH]) {
    typedef dvti_scan_group<OUT> group;
    const int64_t place = row * p.n + first;
    if (dvti_together<OUT>(p, p.out, place, end - first)) {
#pragma unroll
        for (int k = 0; k < EACH; k += group::n) {
            typename dvti_stored<OUT>::type v[group::n];
            decltype(group::type::word) word;
#pragma unroll
            for (int e = 0; e < group::n; e++)
                v[e] = dvti_narrow<OUT>(x[k + e]);
            memcpy(&word, v, sizeof word);
            dvti_put_word((typename dvti_stored<OUT>::type *)p.out + place + k, word);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k < end)
            dvti_store<OUT>(p.out, dvti_place(p, row, first + k, 0), x[k]);
}

/* Sums one chunk of a row per block. */
template <bool APPLY> __device__ inline void dvti_rows(const dvti_kscan &p) {
    for (int64_t i = blockIdx.x; i < p.lines * p.chunks; i += gridDim.x) {
        const int64_t chunk = dvti_quotient(i, p.lines), row = i - chunk * p.lines;
        const int64_t begin = chunk * p.chunk, end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
        dvti_sum carry = APPLY && p.chunks > 1 ? ((dvti_sum *)p.before)[i] : dvti_neutral();
        for (int64_t base = begin; base < end; base += ROUND) {
            const int64_t first = base + (int64_t)threadIdx.x * EACH;
            dvti_sum x[EACH];
            dvti_take(p, row, first, end, x);
#pragma unroll
            for (int k = 1; k < EACH; k++)
                x[k] = dvti_plus(x[k - 1], x[k]);
            const dvti_sum before = dvti_before(x[EACH - 1], carry);
#pragma unroll
            for (int k = 0; k < EACH; k++)
                x[k] = dvti_plus(before, x[k]);
            if (APPLY)
                dvti_give(p, row, first, end, x);
        }
        if (!APPLY && threadIdx.x == 0)
            ((dvti_sum *)p.before)[i] = carry;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_scan_totals(const dvti_kscan p) {
    dvti_rows<false>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2) dvti_scan_apply(const dvti_kscan p) {
    dvti_rows<true>(p);
}

/* Computes the starts, one row per block. */
extern "C" __global__ void __launch_bounds__(256) dvti_scan_starts(const dvti_kscan p) {
    for (int64_t row = blockIdx.x; row < p.lines; row += gridDim.x) {
        dvti_sum carry = dvti_neutral();
        for (int64_t base = 0; base < p.chunks; base += 256) {
            const int64_t chunk = base + threadIdx.x;
            dvti_sum *at = (dvti_sum *)p.before + chunk * p.lines + row;
            const dvti_sum before = dvti_before(chunk < p.chunks ? *at : dvti_neutral(), carry);
            if (chunk < p.chunks)
                *at = before;
        }
    }
}
#endif
