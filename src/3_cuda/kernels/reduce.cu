/* Reductions: many elements to one, for every result.

   in[0] is a grid of kept positions (one per result) times reduced positions. Both are windows of
   up to 8 axes that the host has merged. Where order has no meaning (all but argmin and argmax), it
   has also sorted them by stride, so that a transposed array is read in the order of its memory.

   The innermost axes in memory decide between two kernels:

     rows: reduced axes are innermost           columns: kept axes are innermost

             reduced -->                                  kept -->
     kept    t0 t1 .. t0 t1 .. -> result 0      reduced   t0  t1  t2  t3
      |      t2 t3 .. t2 t3 .. -> result 1         |      t4  t5  t6  t7
      v                                            v      t0  t1  t2  t3
             lanes = 2 threads per result                  |   |   |   |
                                                          r0  r1  r2  r3   lanes = 4

   rows: `lanes` threads (1 to 32, or a block of 256) share a result. Each reads VEC adjacent
   elements (16 bytes) at a time, four times before it adds any, so that 64 bytes per thread are in
   flight. Shuffles, then shared memory, join the threads.

   columns: a block covers `lanes` neighboring results times 256 / lanes rows. Every thread reduces
   down its column, eight loads at a time, and the rows are joined in shared memory. A warp reads
   whole sectors without a transposition.

   A result of many elements is cut into chunks, one block each, whose states go to the workspace; a
   second kernel joins them. The usual alternative, atomics at the end of one kernel, gives other
   bits on every run.

   Numerics: the order of additions depends on shape, strides and dtype alone, neither on the GPU
   nor on the alignment. Sums, products, means and norms are computed in float64. That is two double
   operations per element: hidden behind memory on data-center GPUs, and for float32 just about
   hidden on GPUs with few float64 units. Extremes are compared in the elements' own type.

   logsumexp keeps a running maximum and the sum relative to it. Each group of VEC elements needs
   one test of the maximum, and each element one exponential. For floats of up to 32 bits that is a
   float's, corrected for the rounding error of the difference (dvti_exp_below).

   Variant: D, OUT dtypes; RULE, METHOD, NONE, TERM, JOIN and FINISH of the operation's row
   (2_core/dvt_reduce_table.h); SMALLEST where JOIN is smaller; KERNEL: rows, columns, or the one
   that joins chunks; WIDE: positions of 64 bits, else 32. */

#define VEC (16 / (int)sizeof(typename dvti_stored<D>::type))
#define INTEGER (!DVTI_IS_FLOAT(D) && RULE != RULE_FLOAT)
#define BITS (METHOD == METHOD_BITS)
#define EXTREME (METHOD == METHOD_EXTREME)
#define LOGSUMEXP (METHOD == METHOD_LOGSUMEXP)
#define SUMS (!BITS && !EXTREME && !LOGSUMEXP)
#define ARG (RULE == RULE_PLACE)

template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };

/* ---- the operations of the table ---- */
#define W(word) dvti_w_##word
template <class T> __device__ inline T dvti_w_add(T a, T b) { return a + b; }
template <class T> __device__ inline T dvti_w_sub(T a, T b) { return a - b; }
template <class T> __device__ inline T dvti_w_mul(T a, T b) { return a * b; }
template <class T> __device__ inline T dvti_w_neg(T a) { return -a; }
template <class T> __device__ inline T dvti_w_abs(T a) { return a < 0 ? -a : a; }
__device__ inline int64_t dvti_w_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
__device__ inline int64_t dvti_w_sub(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
__device__ inline int64_t dvti_w_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
__device__ inline int64_t dvti_w_neg(int64_t a) { return dvti_w_sub((int64_t)0, a); }
__device__ inline int64_t dvti_w_abs(int64_t a) { return a < 0 ? dvti_w_neg(a) : a; }
__device__ inline float dvti_w_abs(float a) { return fabsf(a); }
__device__ inline double dvti_w_abs(double a) { return fabs(a); }
__device__ inline double dvti_w_div(double a, double b) { return a / b; }
__device__ inline double dvti_w_sqrt(double a) { return sqrt(a); }
__device__ inline double dvti_w_exp(double a) { return exp(a); }
__device__ inline double dvti_w_log(double a) { return log(a); }
template <class T> __device__ inline T dvti_w_nonzero(T a) { return a != 0; }
template <class T> __device__ inline T dvti_w_smaller(T a, T b) { return a != a || a < b ? a : b; }
template <class T> __device__ inline T dvti_w_larger(T a, T b) { return a != a || a > b ? a : b; }

/* The class in which elements are read. */
typedef dvti_either<
    INTEGER, int64_t,
    dvti_either<SUMS || D == DVT_F64 || !DVTI_IS_FLOAT(D), double, float>::type>::type dvti_value;
typedef dvti_either<BITS, int, dvti_value>::type dvti_first;
typedef dvti_either<ARG, int64_t, double>::type dvti_second;
typedef dvti_either<INTEGER, double, dvti_value>::type dvti_real;
/* The class of FINISH. */
typedef dvti_either<RULE == RULE_FLOAT, double, dvti_value>::type dvti_result;
#if WIDE
typedef int64_t dvti_index;
#else
typedef int dvti_index;
#endif
typedef dvti_stored<D>::type dvti_element;

/* The state of a reduction. `a`: the value or the maximum. `b`: the position, or the sum of
   exponentials relative to the maximum. */
struct dvti_state {
    dvti_first a;
    dvti_second b;
};

__device__ inline dvti_value dvti_highest() {
    if constexpr (INTEGER)
        return (dvti_value)9223372036854775807LL;
    else
        return (dvti_value)__longlong_as_double(0x7ff0000000000000LL);
}

#define DVTI_HIGHEST dvti_highest()
#define DVTI_LOWEST (INTEGER ? -dvti_highest() - 1 : -dvti_highest())

__device__ inline dvti_state dvti_neutral() {
    const dvti_value x = (dvti_value)(NONE);
    dvti_state s;
    s.b = 0;
    if constexpr (LOGSUMEXP)
        s.a = x;
    else
        s.a = (dvti_first)(TERM);
    if constexpr (ARG)
        s.b = 9223372036854775807LL;
    return s;
}

/* Returns whether x is preferred: NaN before all numbers, then the extreme, then the first
   position. */
__device__ inline bool dvti_prefer(dvti_first x, dvti_second at, const dvti_state &s) {
    if (x != x || s.a != s.a)
        return x != x && (s.a == s.a || at < s.b);
    return x == s.a ? at < s.b : SMALLEST ? x < s.a : x > s.a;
}

/* Converts a sum of exponentials relative to one maximum into one relative to another. */
__device__ inline double dvti_rescale(double sum, dvti_first from, dvti_first to) {
    return from == to ? sum : sum * exp((double)from - (double)to);
}

__device__ inline void dvti_join(dvti_state &s, const dvti_state &t) {
    if constexpr (ARG) {
        if (dvti_prefer(t.a, t.b, s))
            s = t;
    } else if constexpr (LOGSUMEXP) {
        const dvti_first largest = dvti_w_larger(s.a, t.a);
        s.b = dvti_rescale(s.b, s.a, largest) + dvti_rescale(t.b, t.a, largest);
        s.a = largest;
    } else if constexpr (BITS) {
        s.a = SMALLEST ? s.a && t.a : s.a || t.a;
    } else {
        s.a = JOIN(s.a, t.a);
    }
}

/* Adds N elements to a state, `step` positions apart, the first at position `at`. */
template <int N>
__device__ inline void dvti_accumulate(dvti_state &s, const dvti_element *from, int64_t at,
                                       int64_t step) {
    if constexpr (LOGSUMEXP) {
        dvti_first v[N], largest = s.a;
#pragma unroll
        for (int k = 0; k < N; k++) {
            v[k] = dvti_widen<D, dvti_value>(from[k]);
            largest = dvti_w_larger(largest, v[k]);
        }
        s.b = dvti_rescale(s.b, s.a, largest);
        s.a = largest;
        /* -inf - -inf would be NaN; relative to 0 its exponential is 0, as required. */
        const dvti_first base = largest - largest == 0 ? largest : 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            s.b += (double)dvti_exp_below((dvti_real)v[k], (dvti_real)base);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) {
            const dvti_value x = dvti_widen<D, dvti_value>(from[k]);
            dvti_state t;
            t.a = (dvti_first)(TERM);
            t.b = 0;
            if constexpr (ARG)
                t.b = at + k * step;
            dvti_join(s, t);
        }
    }
}

__device__ inline void dvti_finish(const dvti_kreduce &p, const dvti_state &of, int64_t result) {
    const int64_t place = dvti_offset<int64_t>(p.out, result);
    if constexpr (ARG) {
        dvti_store<OUT>(p.out.data, place, (int64_t)of.b);
    } else if constexpr (BITS) {
        dvti_store<OUT>(p.out.data, place, (int64_t)of.a);
    } else if constexpr (LOGSUMEXP) {
        dvti_store<OUT>(p.out.data, place,
                        of.a - of.a == 0 ? (double)of.a + log((double)of.b) : (double)of.a);
    } else {
        const dvti_result s = (dvti_result)of.a, n = (dvti_result)p.count;
        (void)n;
        dvti_store<OUT>(p.out.data, place, FINISH);
    }
}

/* Stores a thread's state for chunk `chunk` of a result, or finishes the result. */
__device__ inline void dvti_store_state(const dvti_kreduce &p, const dvti_state &s, int64_t result,
                                        int64_t chunk) {
    if (p.n_chunks > 1)
        ((dvti_state *)p.partial)[result * p.n_chunks + chunk] = s;
    else
        dvti_finish(p, s, result);
}

/* Joins the states of `lanes` (at most 32) adjacent threads into the first of them. All threads of
   the warp must call this. */
__device__ inline void dvti_join_lanes(dvti_state &s, int lanes) {
#pragma unroll 1
    for (int step = lanes / 2; step > 0; step /= 2) {
        dvti_state t;
        t.a = __shfl_down_sync(0xffffffffu, s.a, step, lanes);
        t.b = 0;
        if constexpr (ARG || LOGSUMEXP)
            t.b = __shfl_down_sync(0xffffffffu, s.b, step, lanes);
        dvti_join(s, t);
    }
}

/* Joins the states of the 256 threads of a block into the first one. All threads must call this;
   the shared memory is free on return. */
__device__ inline void dvti_join_block(dvti_state &s) {
    __shared__ dvti_first first[8];
    __shared__ dvti_second second[8];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    dvti_join_lanes(s, 32);
    if (lane == 0) {
        first[warp] = s.a;
        second[warp] = s.b;
    }
    __syncthreads();
    s.a = first[lane % 8];
    s.b = second[lane % 8];
    dvti_join_lanes(s, 8);
    __syncthreads();
}

__device__ inline void dvti_join_group(dvti_state &s, int lanes) {
    if (lanes == 256)
        dvti_join_block(s);
    else
        dvti_join_lanes(s, lanes);
}

/* By default (0) the compiler aims at 64 registers and spills the rest to the stack. That is too
   few for wide positions, and from 9.0 on for bytes and logsumexp. Two blocks per multiprocessor
   leave 128 registers per thread. */
#define RESIDENT                                                                                   \
    (WIDE || ((sizeof(dvti_element) == 1 || LOGSUMEXP) && __CUDA_ARCH__ >= 900) ? 2 : 0)

#if KERNEL == ROWS
/* Reads VEC elements from reduced position `at` on, which lie in one line. */
__device__ inline void dvti_read_line(const dvti_kreduce &p, const dvti_element *row, dvti_index at,
                                      dvti_element *x) {
    const dvti_index place = dvti_offset<dvti_index>(p.reduced, at);
    if (p.vector) {
        const uint4 vector = *(const uint4 *)(row + place);
        memcpy(x, &vector, 16);
        return;
    }
#pragma unroll
    for (int k = 0; k < VEC; k++)
        x[k] = row[place + k * (dvti_index)p.reduced.stride[0]];
}

/* The same, across the ends of lines. */
__device__ inline void dvti_read_across(const dvti_kreduce &p, const dvti_element *row,
                                        dvti_index at, dvti_element *x) {
    const int last = (int)p.reduced.ndim - 1;
    const dvti_index extent = (dvti_index)p.reduced.dim[last],
                     stride = (dvti_index)p.reduced.stride[last];
    dvti_index place = dvti_offset<dvti_index>(p.reduced, at),
               left = extent - (at - dvti_quotient(at, extent) * extent);
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        x[k] = row[place];
        place += stride;
        if (--left == 0 && k + 1 < VEC) {
            place = dvti_offset<dvti_index>(p.reduced, at + k + 1);
            left = extent;
        }
    }
}

/* Reduces positions begin .. end - 1 of one result that belong to thread `lane` of `lanes`. */
__device__ inline dvti_state dvti_reduce_range(const dvti_kreduce &p, const dvti_element *row,
                                               dvti_index begin, dvti_index end, int lane,
                                               int lanes) {
    const dvti_index group = (dvti_index)lanes * VEC;
    const bool line = p.vector || p.reduced.ndim == 1;
    dvti_index at = begin + (dvti_index)lane * VEC;
    dvti_state s = dvti_neutral();
    for (; line && end - begin >= 4 * group; begin += 4 * group, at += 4 * group) {
        dvti_element x[4][VEC];
#pragma unroll
        for (int u = 0; u < 4; u++)
            dvti_read_line(p, row, at + u * group, x[u]);
#pragma unroll
        for (int u = 0; u < 4; u++)
            dvti_accumulate<VEC>(s, x[u], at + u * group, 1);
    }
#pragma unroll 1
    for (; at + VEC <= end; at += group) {
        dvti_element x[VEC];
        if (line)
            dvti_read_line(p, row, at, x);
        else
            dvti_read_across(p, row, at, x);
        dvti_accumulate<VEC>(s, x, at, 1);
    }
#pragma unroll 1
    for (; at < end; at++)
        dvti_accumulate<1>(s, row + dvti_offset<dvti_index>(p.reduced, at), at, 1);
    return s;
}

/* Reduces rows. An item is one chunk of a group of 256 / lanes results. */
extern "C" __global__ void __launch_bounds__(256, RESIDENT) dvti_reduce_rows(const dvti_kreduce p) {
    const int lanes = (int)p.lanes, lane = threadIdx.x % lanes;
    for (int64_t item = blockIdx.x; item < p.items; item += gridDim.x) {
        const int64_t group = dvti_quotient(item, p.n_chunks), chunk = item - group * p.n_chunks,
                      begin = chunk * p.chunk;
        const int64_t result = group * (256 / lanes) + threadIdx.x / lanes;
        const int64_t end = begin + p.chunk < p.n_reduced ? begin + p.chunk : p.n_reduced;
        dvti_state s = dvti_neutral();
        if (result < p.n_kept)
            s = dvti_reduce_range(p,
                                  (const dvti_element *)p.kept.data +
                                      dvti_offset<dvti_index>(p.kept, (dvti_index)result),
                                  (dvti_index)begin, (dvti_index)end, lane, lanes);
        dvti_join_group(s, lanes);
        if (lane == 0 && result < p.n_kept)
            dvti_store_state(p, s, result, chunk);
    }
}
#endif

#if KERNEL == COLUMNS
/* Reduces columns. An item is one chunk of a tile of `lanes` results. */
extern "C" __global__ void __launch_bounds__(256, LOGSUMEXP ? 2 : 1)
    dvti_reduce_columns(const dvti_kreduce p) {
    __shared__ dvti_first first[256];
    __shared__ dvti_second second[256];
    const int lanes = (int)p.lanes, rows = 256 / lanes, lane = threadIdx.x % lanes,
              row = threadIdx.x / lanes;
    for (int64_t item = blockIdx.x; item < p.items; item += gridDim.x) {
        const int64_t tile = dvti_quotient(item, p.n_chunks), chunk = item - tile * p.n_chunks,
                      begin = chunk * p.chunk;
        const int64_t result = tile * lanes + lane;
        const dvti_index end =
            (dvti_index)(begin + p.chunk < p.n_reduced ? begin + p.chunk : p.n_reduced);
        dvti_state s = dvti_neutral();
        if (result < p.n_kept) {
            const dvti_element *column = (const dvti_element *)p.kept.data +
                                         dvti_offset<dvti_index>(p.kept, (dvti_index)result);
            dvti_index at = (dvti_index)begin + row;
            for (; at + 7 * rows < end; at += 8 * rows) {
                dvti_element x[8];
#pragma unroll
                for (int u = 0; u < 8; u++)
                    x[u] = column[dvti_offset<dvti_index>(p.reduced, at + u * rows)];
                dvti_accumulate<8>(s, x, at, rows);
            }
            for (; at < end; at += rows)
                dvti_accumulate<1>(s, column + dvti_offset<dvti_index>(p.reduced, at), at, 1);
        }
        first[threadIdx.x] = s.a;
        second[threadIdx.x] = s.b;
        for (int step = rows / 2; step > 0; step /= 2) {
            __syncthreads();
            if (row < step) {
                dvti_state t;
                t.a = first[threadIdx.x + step * lanes];
                t.b = second[threadIdx.x + step * lanes];
                dvti_join(s, t);
                first[threadIdx.x] = s.a;
                second[threadIdx.x] = s.b;
            }
        }
        if (row == 0 && result < p.n_kept)
            dvti_store_state(p, s, result, chunk);
        __syncthreads();
    }
}
#endif

#if KERNEL == CHUNKS
/* Joins the chunks of a result, by `lanes` threads. */
extern "C" __global__ void __launch_bounds__(256, 2) dvti_reduce_chunks(const dvti_kreduce p) {
    const int lanes = (int)p.lanes, lane = threadIdx.x % lanes;
    for (int64_t item = blockIdx.x; item < p.items; item += gridDim.x) {
        const int64_t result = item * (256 / lanes) + threadIdx.x / lanes;
        const dvti_state *mine = (const dvti_state *)p.partial + result * p.n_chunks;
        dvti_state s = dvti_neutral();
        if (result < p.n_kept)
#pragma unroll 2
            for (int64_t chunk = lane; chunk < p.n_chunks; chunk += lanes)
                dvti_join(s, mine[chunk]);
        dvti_join_group(s, lanes);
        if (lane == 0 && result < p.n_kept)
            dvti_finish(p, s, result);
    }
}
#endif
