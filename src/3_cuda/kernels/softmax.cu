/* Softmax and its logarithm: y = exp(x - m) / s and y = x - m - log(s), with m the maximum of a row
   and s = sum exp(x - m).

   A row lies along the last axis of the window, with any stride. `lanes` threads share it. Short
   rows have 1 to 32 adjacent threads of a warp, and a block then has many rows. Longer ones have
   256 or 512 threads. Each thread keeps PER elements in registers. So the row is read once, 16
   bytes at a time where it is aligned, and written once.

   Rows beyond 512 * PER elements (LONG) are read twice, the first time with a running maximum and
   sum. The grid is then one or two blocks per multiprocessor, so that the rows in progress fit in
   L2 and the second read hits there. Fewer of them than fill a GPU are cut into parts (PARTS).

     dvti_softmax_parts   a block writes the maximum and the sum of a part of a row.
     dvti_softmax_finish  a block joins those of all parts, and writes the results of its part.

   Parts and bits follow from shape, dtype and layout, never from the GPU.

   COLUMNS: used where rows are interleaved in memory (the channels of an image). Adjacent threads
   have adjacent rows, and the lanes of a row are joined in shared memory.

     lanes = 4, rows:      thread 0 1 2 3 | 4 5 6 7 | ...     one row per 4 threads
     lanes = 4, COLUMNS:   thread t and t + 64, t + 128, t + 192 share row t of 64

   Elements of up to 32 bits are computed in float32, corrected for the rounding error of the
   subtraction (dvti_exp_below). The sum is float64. The logarithm subtracts m + log(s) as two
   floats. float64 and integers are computed in float64. A NaN, or a maximum that is infinite, makes
   the row NaN, as on the CPU.

   Variant: D, OUT dtypes; LOGARITHM; COLUMNS; LONG; PARTS; PER; WIDE: positions of 64 bits, else
   32. LABEL: the dtype of labels, or -1. With labels, the thread that has a row's labeled element
   also writes the loss. GRADIENT: the kernel for cross-entropy's gradient instead, one element per
   thread. */

template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };

typedef dvti_either<DVTI_IS_FLOAT(D) && D != DVT_F64, float, double>::type dvti_real;
typedef dvti_either<WIDE, int64_t, int>::type dvti_index;
typedef dvti_stored<D>::type dvti_element;
typedef dvti_stored<OUT>::type dvti_result;

#if LABEL >= 0
__device__ inline int64_t dvti_label(const dvti_ksoftmax &p, int64_t row) {
    int64_t label = dvti_load<LABEL, int64_t>(p.label, row);
    label += label < 0 ? p.n : 0;
    return label < 0 ? 0 : label < p.n ? label : p.n - 1;
}
#endif

#if GRADIENT
__device__ inline float dvti_exponential(float x) { return dvti_gpu_exp(x); }
__device__ inline double dvti_exponential(double x) { return exp(x); }

extern "C" __global__ void __launch_bounds__(256)
    dvti_cross_entropy_gradient(const dvti_ksoftmax p) {
    const dvti_index n = (dvti_index)(p.rows * p.n), step = (dvti_index)dvti_threads();
    for (dvti_index at = (dvti_index)dvti_thread(); at < n; at += step) {
        const dvti_index row = at / (dvti_index)p.n;
        const dvti_real s = p.g ? 0 - ((const dvti_real *)p.g)[row] : (dvti_real)-1;
        const dvti_real product = dvti_exponential(((const dvti_real *)p.in.data)[at]) * s;
        ((dvti_real *)p.out.data)[at] =
            (at - row * (dvti_index)p.n == dvti_label(p, row) ? s : 0) - product;
    }
}
#else
#define VEC (DVTI_IS_FLOAT(D) ? 16 / (int)sizeof(dvti_element) : 1)

__device__ inline dvti_real dvti_lowest() {
    return (dvti_real)-__longlong_as_double(0x7ff0000000000000LL);
}

/* The row and lane of this thread. */
struct dvti_spot {
    const dvti_element *in;
    dvti_result *out;
    int lane, lanes;
    bool exists; /* this thread has a row */
#if LABEL >= 0
    int64_t label;
    dvti_result *loss;
#endif
#if PARTS
    double *partial; /* maximum and sum of each part of the row */
#endif
};

/* Hides the lane from the optimizer. Otherwise the offsets of a thread's elements, which are the
   same in every iteration, would be kept in registers and fill them. */
__device__ inline void dvti_forget(dvti_spot &spot) {
    asm volatile("mov.u32 %0, %0;" : "+r"(spot.lane));
}

/* ---- PER elements of a row, from position `base` on; positions past the end are -inf ---- */
__device__ inline void dvti_tile_load(const dvti_ksoftmax &p, const dvti_spot &spot,
                                      dvti_index base, dvti_real *x) {
    if (p.vector) {
#pragma unroll
        for (int g = 0; g < PER / VEC; g++) {
            const dvti_index at = base + (g * spot.lanes + spot.lane) * VEC;
            dvti_element e[VEC];
            uint4 vector;
            if (spot.exists && at < p.n) {
                vector = *(const uint4 *)(spot.in + at);
                memcpy(e, &vector, sizeof e);
            }
#pragma unroll
            for (int k = 0; k < VEC; k++)
                x[g * VEC + k] =
                    spot.exists && at < p.n ? dvti_widen<D, dvti_real>(e[k]) : dvti_lowest();
        }
    } else {
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const dvti_index at = base + k * spot.lanes + spot.lane;
            x[k] = dvti_lowest();
            if (spot.exists && at < p.n)
                x[k] = dvti_widen<D, dvti_real>(spot.in[at * (dvti_index)p.in_step]);
        }
    }
}

__device__ inline void dvti_tile_store(const dvti_ksoftmax &p, const dvti_spot &spot,
                                       dvti_index base, const dvti_real *x) {
    if (p.vector) {
#pragma unroll
        for (int g = 0; g < PER / VEC; g++) {
            const dvti_index at = base + (g * spot.lanes + spot.lane) * VEC;
            dvti_result e[VEC];
#pragma unroll
            for (int k = 0; k < VEC; k++)
                e[k] = dvti_narrow<OUT>(x[g * VEC + k]);
            if (spot.exists && at < p.n) {
                uint4 vector;
                memcpy(&vector, e, 16);
                *(uint4 *)(spot.out + at) = vector;
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const dvti_index at = base + k * spot.lanes + spot.lane;
            if (spot.exists && at < p.n)
                spot.out[at * (dvti_index)p.out_step] = dvti_narrow<OUT>(x[k]);
        }
    }
}

#if LABEL >= 0
/* Writes the row's loss if this thread has the labeled element. */
__device__ inline void dvti_tile_pick(const dvti_ksoftmax &p, const dvti_spot &spot,
                                      dvti_index base, const dvti_real *x) {
    const int each = p.vector ? VEC : 1;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const int group = p.vector ? k / VEC : k;
        const dvti_index at =
            base + (group * spot.lanes + spot.lane) * each + (p.vector ? k % VEC : 0);
        if (spot.exists && at == spot.label)
            *spot.loss = -dvti_narrow<OUT>(x[k]);
    }
}
#endif

/* ---- joining the lanes of a row; every lane gets the result, and all threads must call this
   ---- */
__device__ inline dvti_real dvti_pair(dvti_real a, dvti_real b, dvti_real) {
    return a != a || a > b ? a : b;
}

__device__ inline double dvti_pair(double a, double b, int) { return a + b; }

/* W selects the operation: dvti_real for the maximum, int for the sum. */
template <class V, class W> __device__ inline V dvti_join_lanes(V v, int lanes, W which) {
#if COLUMNS
    __shared__ V all[256];
    const int rows = 256 / lanes;
    all[threadIdx.x] = v;
    __syncthreads();
    v = all[threadIdx.x % rows];
    for (int k = 1; k < lanes; k++)
        v = dvti_pair(v, all[k * rows + threadIdx.x % rows], which);
    __syncthreads();
#else
    __shared__ V all[32];
    for (int step = 1; step < lanes && step < 32; step *= 2)
        v = dvti_pair(v, __shfl_xor_sync(0xffffffffu, v, step), which);
    if (lanes > 32) {
        const int warps = lanes / 32;
        if (threadIdx.x % 32 == 0)
            all[threadIdx.x / 32] = v;
        __syncthreads();
        v = all[threadIdx.x % warps];
        for (int step = 1; step < warps; step *= 2)
            v = dvti_pair(v, __shfl_xor_sync(0xffffffffu, v, step), which);
        __syncthreads();
    }
#endif
    return v;
}

__device__ inline bool dvti_finite(dvti_real x) { return x - x == 0; }

#if LONG || PARTS
/* Also hides the lane between the tiles of a long row: 12.0 has no register left for wide
   positions. */
#define TIGHT (LONG && WIDE && __CUDA_ARCH__ >= 1200)

/* Returns the sum of positions begin to end of a row and their maximum with one read; a thread
   rescales its sum when its maximum grows. */
__device__ inline double dvti_max_and_sum(const dvti_ksoftmax &p, dvti_spot &spot,
                                          dvti_index begin, dvti_index end, dvti_real &largest) {
    double sum = 0;
    dvti_real mine = dvti_lowest();
    for (dvti_index base = begin; base < end; base += PER * spot.lanes) {
        dvti_real x[PER], before = mine;
        if (TIGHT)
            dvti_forget(spot);
        dvti_tile_load(p, spot, base, x);
#pragma unroll
        for (int k = 0; k < PER; k++)
            mine = dvti_pair(mine, x[k], mine);
        if (mine != before && sum != 0)
            sum *= exp((double)before - (double)mine);
        /* -inf - -inf would be NaN; relative to 0 its exponential is 0, as required. */
        const dvti_real over = dvti_finite(mine) ? mine : 0;
#pragma unroll
        for (int k = 0; k < PER; k++)
            sum += (double)dvti_exp_below(x[k], over);
    }
    largest = dvti_join_lanes(mine, spot.lanes, mine);
    return dvti_join_lanes(mine == largest ? sum : sum * exp((double)mine - (double)largest),
                           spot.lanes, 0);
}
#endif

/* The last step: from x, or for softmax from exp(x - largest), to the result. */
struct dvti_last_step {
    dvti_real scale;     /* softmax: 1 / sum */
    dvti_real high, low; /* log-softmax: the subtrahend as two floats */
};

__device__ inline dvti_last_step dvti_prepare(dvti_real largest, double sum) {
    const double all = dvti_finite(largest) ? sum : (double)largest - (double)largest,
                 logarithm = log(all);
    dvti_last_step last;
    last.scale = (dvti_real)(1 / all);
    last.high = (dvti_real)((double)largest + logarithm);
    last.low = (dvti_real)(((double)largest - (double)last.high) + logarithm);
    return last;
}

__device__ inline dvti_real dvti_value(dvti_real x, const dvti_last_step &last) {
    return LOGARITHM ? (x - last.high) - last.low : x * last.scale;
}

#if LONG || PARTS
/* Reads positions begin to end of a row again and writes the results. */
__device__ inline void dvti_write(const dvti_ksoftmax &p, dvti_spot &spot, dvti_index begin,
                                  dvti_index end, dvti_real largest, double sum) {
    const dvti_last_step last = dvti_prepare(largest, sum);
    for (dvti_index base = begin; base < end; base += PER * spot.lanes) {
        dvti_real x[PER];
        if (TIGHT)
            dvti_forget(spot);
        dvti_tile_load(p, spot, base, x);
#pragma unroll
        for (int k = 0; k < PER; k++)
            x[k] = dvti_value(LOGARITHM ? x[k] : dvti_exp_below(x[k], largest), last);
        dvti_tile_store(p, spot, base, x);
#if LABEL >= 0
        dvti_tile_pick(p, spot, base, x);
#endif
    }
}
#endif

__device__ inline dvti_spot dvti_spot_of(const dvti_ksoftmax &p, int64_t group) {
    const int lanes = (int)p.lanes, rows = (int)blockDim.x / lanes;
    const int64_t row = group * rows + (COLUMNS ? threadIdx.x % rows : threadIdx.x / lanes);
    dvti_spot spot;
    spot.lanes = lanes;
    spot.lane = COLUMNS ? threadIdx.x / rows : threadIdx.x % lanes;
    dvti_forget(spot);
    spot.exists = row < p.rows;
    spot.in = (const dvti_element *)p.in.data +
              (spot.exists ? dvti_offset<dvti_index>(p.in, (dvti_index)row) : 0);
    spot.out = (dvti_result *)p.out.data +
               (spot.exists ? dvti_offset<dvti_index>(p.out, (dvti_index)row) : 0);
#if LABEL >= 0
    spot.label = spot.exists ? dvti_label(p, row) : -1;
    spot.loss = (dvti_result *)p.loss + row;
#endif
#if PARTS
    spot.partial = (double *)p.partial + (spot.exists ? row : 0) * p.parts * 2;
#endif
    return spot;
}

/* Minimum blocks per multiprocessor; 0: the compiler's choice, at most 64 registers per thread.
   Wide positions, doubles, and long rows of 16-bit floats need more registers. On 7.5 and 12.0 all
   rows of 16-bit floats and short ones of floats do; on 9.0 the longest rows kept in registers do.
   Otherwise registers would be spilled to the stack. */
#if PARTS
#define RESIDENT (D == DVT_F32 && !WIDE ? 3 : 2)
#elif WIDE || D == DVT_F64 || !DVTI_IS_FLOAT(D) || (LONG && D != DVT_F32)
#define RESIDENT 1
#elif (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 1200) && (D != DVT_F32 || PER == 8)
#define RESIDENT (PER == 8 ? 2 : 1)
#elif __CUDA_ARCH__ == 900 && PER == 32
#define RESIDENT 1
#else
#define RESIDENT 0
#endif

#if PARTS
/* The part of this block. */
struct dvti_part {
    int number;
    dvti_index begin, end;
    dvti_spot spot;
};

__device__ inline dvti_part dvti_part_of(const dvti_ksoftmax &p) {
    const unsigned parts = (unsigned)p.parts, group = blockIdx.x / parts;
    dvti_part part;
    part.number = (int)(blockIdx.x - group * parts);
    part.begin = (dvti_index)p.part * part.number;
    part.end = part.number + 1 < (int)parts ? part.begin + (dvti_index)p.part : (dvti_index)p.n;
    part.spot = dvti_spot_of(p, group);
    return part;
}

extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_softmax_parts(const dvti_ksoftmax p) {
    dvti_part part = dvti_part_of(p);
    dvti_real largest;
    const double sum = dvti_max_and_sum(p, part.spot, part.begin, part.end, largest);
    if (part.spot.exists && part.spot.lane == 0) {
        part.spot.partial[part.number * 2] = (double)largest;
        part.spot.partial[part.number * 2 + 1] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_softmax_finish(const dvti_ksoftmax p) {
    dvti_part part = dvti_part_of(p);
    const dvti_spot &spot = part.spot;
    dvti_real largest = dvti_lowest();
    double sum = 0;
    for (int k = spot.lane; k < (int)p.parts; k += spot.lanes)
        largest = dvti_pair(largest, (dvti_real)spot.partial[k * 2], largest);
    largest = dvti_join_lanes(largest, spot.lanes, largest);
    for (int k = spot.lane; k < (int)p.parts; k += spot.lanes)
        sum += spot.partial[k * 2 + 1] * exp(spot.partial[k * 2] - (double)largest);
    sum = dvti_join_lanes(sum, spot.lanes, 0);
    dvti_write(p, part.spot, part.begin, part.end, largest, sum);
}
#else
__device__ inline void dvti_row(const dvti_ksoftmax &p, dvti_spot &spot) {
    dvti_real largest = dvti_lowest();
#if LONG
    const double sum = dvti_max_and_sum(p, spot, 0, (dvti_index)p.n, largest);
    dvti_write(p, spot, 0, (dvti_index)p.n, largest, sum);
#else
    dvti_real x[PER];
    double sum = 0;
    dvti_tile_load(p, spot, 0, x);
#pragma unroll
    for (int k = 0; k < PER; k++)
        largest = dvti_pair(largest, x[k], largest);
    largest = dvti_join_lanes(largest, spot.lanes, largest);
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const dvti_real e = dvti_exp_below(x[k], largest);
        sum += (double)e;
        if (!LOGARITHM)
            x[k] = e;
    }
    sum = dvti_join_lanes(sum, spot.lanes, 0);
    const dvti_last_step last = dvti_prepare(largest, sum);
#pragma unroll
    for (int k = 0; k < PER; k++)
        x[k] = dvti_value(x[k], last);
    dvti_tile_store(p, spot, 0, x);
#if LABEL >= 0
    dvti_tile_pick(p, spot, 0, x);
#endif
#endif
}

extern "C" __global__ void __launch_bounds__(512, RESIDENT) dvti_softmax(const dvti_ksoftmax p) {
    for (int64_t group = blockIdx.x; group < p.groups; group += gridDim.x) {
        dvti_spot spot = dvti_spot_of(p, group);
        dvti_row(p, spot);
    }
}
#endif
#endif
