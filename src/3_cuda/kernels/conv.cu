/* Convolution and its two gradients on CUDA cores. Has the matrix products that conv_patch.cu
   describes, and the sum of their parts. For shapes that would leave a tile mostly empty it has
   direct sums.

   TILED: a block fetches slices of both operands, BK deep, into registers while it multiplies the
   previous slices, which lie in shared memory. There are two buffers for each operand and one
   barrier per slice. A thread keeps TM x TN accumulators in registers.

   One thread per result would read 2 numbers per multiplication. Tiles in shared memory read 2 / BM
   of that. Accumulators in registers reduce the reads from shared memory to what it can deliver,
   and two buffers hide the latency of the gather.

   DIRECT: used where groups have only one or two rows (depthwise), or where WEIGHT has few results.
   FORWARD and DATA: one thread per result, 256 in a block. WEIGHT: one block per row, channel, 9
   taps and part; its threads loop over the pixels.

   SUM: adds the parts of FORWARD and DATA, which are few; one thread per result, 256 in a block.
   Those of WEIGHT are many for few results: reduce.cu adds them.

   Numerics: fused multiply-add in float32 (float64 for float64), in ascending k, then the bias.

   Variant: the variant of conv_patch.cu, and one of TILED (with BM, BN, BK, TM, TN), DIRECT,
   SUM. */

#if TILED
#define THREADS (BM / TM * (BN / TN))
#define LEFT (BM * BK / THREADS)
#define RIGHT (BN * BK / THREADS)
/* Two blocks per multiprocessor hide each other's gather latency, which leaves 128 registers per
   thread. An unrolled loop with 8 x 8 results does not fit into those, and profits least from
   unrolling. 64-bit positions do not fit at all. */
#define UNROLL (TM * TN >= 64 ? 1 : BK)
#define RESIDENT (WIDE ? 1 : 2)
#define PITCH(extent)                                                                              \
    ((extent) +                                                                                    \
     4) /* rows stay aligned to 16 bytes, and lanes with different k have different banks */

/* Fetches slices of the operands. The patch elements of one thread lie in one column (FORWARD,
   DATA) or in one k (WEIGHT). */
struct dvti_fetcher {
    dvti_corner corner;
    dvti_tap tap[OP == WEIGHT ? RIGHT : 1];

    __device__ inline dvti_fetcher(const dvti_kconv &p, const dvti_work &b) {
        if constexpr (OP == WEIGHT) {
#pragma unroll
            for (int e = 0; e < RIGHT; e++)
                tap[e] = dvti_tap_of(b, b.n0 + (int)(threadIdx.x / BK) + e * (THREADS / BK));
        } else
            corner = dvti_corner_of(p, b, b.n0 + (int)(threadIdx.x % BN), b.n);
    }

    __device__ inline C weight(const dvti_kconv &p, const dvti_work &b, I k, I m) const {
        if (k >= b.end || m >= b.m)
            return 0;
        if constexpr (OP == FORWARD)
            return dvti_load<D, C>(p.w,
                                   (b.group * (I)p.og + m) * (I)p.cg * (I)b.kernel.divisor + k);
        const dvti_tap t = dvti_tap_of(b, k);
        const I row = b.rows.kernel_first + t.t * b.rows.kernel_step;
        const I column = b.columns.kernel_first + t.u * b.columns.kernel_step;
        const I filter = (b.group * (I)p.og + t.channel) * (I)p.cg + m;
        return dvti_load<D, C>(p.w, (filter * (I)p.window[0] + row) * (I)p.window[1] + column);
    }

    __device__ inline void fetch(const dvti_kconv &p, const dvti_work &b, I k, C *left, C *right) {
        const int thread = (int)threadIdx.x;
        if constexpr (OP == WEIGHT) {
            const I at = k + thread % BK;
            const I sample = dvti_divide(at, b.grid), pixel = at - sample * (I)b.grid.divisor;
            const I first = (sample * (I)p.o + b.group * (I)p.og) * (I)b.grid.divisor + pixel;
            corner = dvti_corner_of(p, b, at, b.end);
#pragma unroll
            for (int e = 0; e < LEFT; e++) {
                const I m = b.m0 + thread / BK + e * (THREADS / BK);
                left[e] = corner.inside && m < b.m
                              ? dvti_load<D, C>(p.y, first + m * (I)b.grid.divisor)
                              : (C)0;
            }
#pragma unroll
            for (int e = 0; e < RIGHT; e++) {
                const bool there = b.n0 + thread / BK + e * (THREADS / BK) < b.n;
                right[e] = there ? dvti_patch(b, p.x, corner, tap[e]) : (C)0;
            }
        } else {
#pragma unroll
            for (int e = 0; e < LEFT; e++) {
                const int slot = thread + e * THREADS;
                left[e] = OP == FORWARD ? weight(p, b, k + slot % BK, b.m0 + slot / BK)
                                        : weight(p, b, k + slot / BM, b.m0 + slot % BM);
            }
#pragma unroll
            for (int e = 0; e < RIGHT; e++) {
                const I at = k + thread / BN + e * (THREADS / BN);
                const void *image = OP == DATA ? p.y : p.x;
                right[e] = at < b.end ? dvti_patch(b, image, corner, dvti_tap_of(b, at)) : (C)0;
            }
        }
    }

    /* Stores the slices into shared memory, one row per k. */
    __device__ inline void put(C (*left_slice)[PITCH(BM)], C (*right_slice)[PITCH(BN)],
                               const C *left, const C *right) const {
        const int thread = (int)threadIdx.x;
#pragma unroll
        for (int e = 0; e < LEFT; e++) {
            const int slot = thread + e * THREADS;
            if (OP == DATA)
                left_slice[slot / BM][slot % BM] = left[e];
            else
                left_slice[slot % BK][slot / BK] = left[e];
        }
#pragma unroll
        for (int e = 0; e < RIGHT; e++) {
            const int slot = thread + e * THREADS;
            if (OP == WEIGHT)
                right_slice[slot % BK][slot / BK] = right[e];
            else
                right_slice[slot / BN][slot % BN] = right[e];
        }
    }
};

/* Numbers that are read from shared memory with one access of up to 16 bytes. */
template <int N> struct alignas(N * sizeof(C)) dvti_pack { C v[N]; };
#define MOST (16 / (int)sizeof(C))
#define PACK(n) ((n) < MOST ? (n) : MOST)

/* Returns the position in the tile of result number i of a thread. Threads take packs in turn, so
   that the lanes of a warp read adjacent packs:

     pack     0    1    2   ...  threads - 1   threads   threads + 1
     thread   0    1    2   ...  threads - 1      0           1 */
__device__ inline int dvti_pack_position(int i, int thread, int threads, int pack) {
    return (i / pack * threads + thread) * pack + i % pack;
}

template <int N, int EXTENT> __device__ inline void dvti_read(const C *slice, int thread, C *out) {
    const int pack = PACK(N);
#pragma unroll
    for (int i = 0; i < N; i += pack) {
        const dvti_pack<pack> read =
            *(const dvti_pack<pack> *)(slice + dvti_pack_position(i, thread, EXTENT / N, pack));
#pragma unroll
        for (int k = 0; k < pack; k++)
            out[i + k] = read.v[k];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) dvti_conv(const dvti_kconv p) {
    alignas(16) __shared__ C left_slices[2][BK][PITCH(BM)];
    alignas(16) __shared__ C right_slices[2][BK][PITCH(BN)];
    const int thread_row = (int)threadIdx.x / (BN / TN),
              thread_column = (int)threadIdx.x % (BN / TN);
    const dvti_work b = dvti_work_of(p);
    C sums[TM][TN] = {}, left[LEFT], right[RIGHT];
    if (b.n0 >= b.n) /* a phase with fewer pixels than the first; the whole block returns */
        return;
    dvti_fetcher fetcher(p, b);
    /* The first stage only moves. NVRTC takes time for each copy of the code, so there is one copy
       of the gather, and one of the stores of a column. */
    int stage = 1;
    for (I k = b.begin - BK; k < b.end; k += BK, stage ^= 1) {
        const bool more = k + BK < b.end, first = k < b.begin;
        if (more)
            fetcher.fetch(p, b, k + BK, left, right);
        if (!first) {
#pragma unroll(UNROLL)
            for (int depth = 0; depth < BK; depth++) {
                C row[TM], column[TN];
                dvti_read<TM, BM>(left_slices[stage][depth], thread_row, row);
                dvti_read<TN, BN>(right_slices[stage][depth], thread_column, column);
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++)
                        sums[i][j] = dvti_fma(row[i], column[j], sums[i][j]);
            }
        }
        if (more)
            fetcher.put(left_slices[stage ^ 1], right_slices[stage ^ 1], left, right);
        __syncthreads();
    }
#pragma unroll 1
    for (int j = 0; j < TN; j++) {
        const I column = b.n0 + dvti_pack_position(j, thread_column, BN / TN, PACK(TN));
        if (column < b.n) {
            I pitch;
            const I place = dvti_place(p, b, column, pitch);
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const I m = b.m0 + dvti_pack_position(i, thread_row, BM / TM, PACK(TM));
                if (m < b.m)
                    dvti_put(p, b.part, place + m * pitch, b.group * b.m + m, sums[i][0]);
            }
        }
#pragma unroll
        for (int i = 0; i < TM; i++) /* column 0 is always next: an index needs memory */
#pragma unroll
            for (int next = 1; next < TN; next++)
                sums[i][next - 1] = sums[i][next];
    }
}
#endif

#if DIRECT && OP == WEIGHT
#define TAPS 9
#define WARPS 8

/* Block index: (((part, row), channel), chunk of taps). Two blocks per multiprocessor leave the
   registers that NVRTC 12.0 otherwise spills. */
extern "C" __global__ void __launch_bounds__(32 * WARPS, 2) dvti_conv(const dvti_kconv p) {
    __shared__ C found[WARPS][TAPS];
    const I kernel = (I)p.kernel.divisor, chunks = (kernel - 1) / TAPS + 1;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    I block = (I)blockIdx.x;
    const I tap0 = block % chunks * TAPS;
    block /= chunks;
    const I channel = block % (I)p.cg;
    block /= (I)p.cg;
    const I row = block % (I)p.o;
    dvti_work b;
    b.part = block / (I)p.o;
    b.group = row / (I)p.og;
    b.rows = dvti_axis_of(p, 0, 0);
    b.columns = dvti_axis_of(p, 1, 0);
    b.grid = p.grid;
    b.grid_width = p.grid_width;
    b.kernel = p.kernel;
    b.kernel_width = p.kernel_width;
    b.begin = b.part * (I)p.depth;
    b.end = min(b.begin + (I)p.depth, (I)p.n * (I)b.grid.divisor);
    dvti_tap taps[TAPS];
    C sums[TAPS] = {};
#pragma unroll
    for (int e = 0; e < TAPS; e++)
        taps[e] = dvti_tap_of(b, channel * kernel + min(tap0 + e, kernel - 1));
    for (I at = b.begin + (I)threadIdx.x; at < b.end; at += 32 * WARPS) {
        const I sample = dvti_divide(at, b.grid), pixel = at - sample * (I)b.grid.divisor;
        const C y = dvti_load<D, C>(p.y, (sample * (I)p.o + row) * (I)b.grid.divisor + pixel);
        const dvti_corner corner = dvti_corner_of(p, b, at, b.end);
#pragma unroll
        for (int e = 0; e < TAPS; e++)
            sums[e] = dvti_fma(dvti_patch(b, p.x, corner, taps[e]), y, sums[e]);
    }
#pragma unroll
    for (int e = 0; e < TAPS; e++) {
        for (int distance = 16; distance; distance >>= 1)
            sums[e] += __shfl_down_sync(0xffffffffu, sums[e], distance);
        if (lane == 0)
            found[warp][e] = sums[e];
    }
    __syncthreads();
    if ((int)threadIdx.x >= TAPS || tap0 + (I)threadIdx.x >= kernel)
        return;
    C sum = 0;
    for (int from = 0; from < WARPS; from++)
        sum += found[from][threadIdx.x];
    dvti_put(p, b.part, (row * (I)p.cg + channel) * kernel + tap0 + (I)threadIdx.x, row, sum);
}
#endif

#if DIRECT && OP != WEIGHT
/* Finds the taps begin .. end - 1 that lie inside an image, of a window whose corner is at
   `first`. */
__device__ inline void dvti_inside(I first, I step, I taps, I extent, I &begin, I &end) {
    begin = first < 0 ? min((-first - 1) / step + 1, taps) : 0;
    end = first < extent ? min((extent - 1 - first) / step + 1, taps) : 0;
}

__device__ inline C dvti_forward(const dvti_kconv &p, I sample, I o, I i, I j) {
    const I height = (I)p.image[0], width = (I)p.image[1], kernel_width = (I)p.window[1];
    const I row = i * (I)p.stride[0] - (I)p.padding[0],
            column = j * (I)p.stride[1] - (I)p.padding[1];
    const I channel = sample * (I)p.c + o / (I)p.og * (I)p.cg, step = (I)p.dilation[1];
    I t0, t1, u0, u1;
    C sum = 0;
    dvti_inside(row, (I)p.dilation[0], (I)p.window[0], height, t0, t1);
    dvti_inside(column, step, kernel_width, width, u0, u1);
    for (I c = 0; c < (I)p.cg; c++)
        for (I t = t0; t < t1; t++) {
            const I x = ((channel + c) * height + row + t * (I)p.dilation[0]) * width + column;
            const I w = ((o * (I)p.cg + c) * (I)p.window[0] + t) * kernel_width;
#pragma unroll 4
            for (I u = u0; u < u1; u++)
                sum = dvti_fma(dvti_load<D, C>(p.x, x + u * step), dvti_load<D, C>(p.w, w + u),
                               sum);
        }
    return sum;
}

__device__ inline C dvti_data(const dvti_kconv &p, I sample, I c, I h, I w) {
    const I group = c / (I)p.cg, row = h + (I)p.padding[0], column = w + (I)p.padding[1];
    const I pixels = (I)p.pixels[0] * (I)p.pixels[1], pitch = (I)p.cg * (I)p.kernel.divisor;
    C sum = 0;
    for (I t = 0; t < (I)p.window[0]; t++) {
        const I up = row - t * (I)p.dilation[0], i = up / (I)p.stride[0];
        if (up < 0 || i * (I)p.stride[0] != up || i >= (I)p.pixels[0])
            continue;
        for (I u = 0; u < (I)p.window[1]; u++) {
            const I left = column - u * (I)p.dilation[1], j = left / (I)p.stride[1];
            if (left < 0 || j * (I)p.stride[1] != left || j >= (I)p.pixels[1])
                continue;
            const I y = (sample * (I)p.o + group * (I)p.og) * pixels + i * (I)p.pixels[1] + j;
            const I at = group * (I)p.og * pitch + (c - group * (I)p.cg) * (I)p.kernel.divisor +
                         t * (I)p.window[1] + u;
#pragma unroll 4
            for (I o = 0; o < (I)p.og; o++)
                sum = dvti_fma(dvti_load<D, C>(p.y, y + o * pixels),
                               dvti_load<D, C>(p.w, at + o * pitch), sum);
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) dvti_conv(const dvti_kconv p) {
    for (I at = (I)dvti_thread(); at < (I)p.size; at += (I)dvti_threads()) {
        const I line = dvti_divide(at, p.out_width), column = at - line * (I)p.out_width.divisor;
        const I plane = dvti_divide(line, p.out_height),
                row = line - plane * (I)p.out_height.divisor;
        const I sample = dvti_divide(plane, p.out_channels);
        const I channel = plane - sample * (I)p.out_channels.divisor;
        C sum = OP == DATA ? dvti_data(p, sample, channel, row, column)
                           : dvti_forward(p, sample, channel, row, column);
        dvti_put(p, 0, at, channel, sum);
    }
}
#endif

#if SUM
/* Adds the parts in ascending order. Memory limits this kernel, so float64 costs no time. */
extern "C" __global__ void __launch_bounds__(256) dvti_conv(const dvti_kconv p) {
    for (int64_t at = dvti_thread(); at < p.size; at += dvti_threads()) {
        double sum = 0;
#pragma unroll 4
        for (int64_t part = 0; part < p.parts; part++)
            sum += (double)((const C *)p.partial)[part * p.size + at];
        dvti_store<D>(p.out, at, p.relu ? dvti_relu((C)sum) : (C)sum);
    }
}
#endif
