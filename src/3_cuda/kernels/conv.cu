/* Convolution and its two gradients as products of matrices that are gathered on the way, and never stored: implicit GEMM.

     OP        rows m         columns                        summed over k              left operand    right operand
     FORWARD   channels of y  pixels of y, of all samples    channels of x, taps        w[m][k]         the patches of x
     DATA      channels of x  pixels of x, of one phase      channels of y, taps        w[k][m]         the patches of y
     WEIGHT    channels of y  channels of x, taps            pixels of y, all samples   y[m][k]         the patches of x

   DATA gathers, so that nothing is added in memory. Pixels of x at one distance from a multiple of the stride (a phase) see the same
   taps, each stride / gcd(stride, dilation)-th; for one phase it is a convolution of y with stride 1 and a negative dilation, and no
   product with a zero between y's pixels is computed. Phases are computed side by side by different blocks.

   Memory: all arrays contiguous, NCHW and OIHW. Consecutive columns (WEIGHT: consecutive k) are consecutive pixels, so that the lanes of
   a warp read and write side by side.

   Launch: one block of threads for BM x BN results of one group, phase and part of the sum: block = ((((phase, group), part), column
   tile), row tile), the last one fastest, so that blocks at work together share the patches. A block fetches BK deep slices of both
   operands into registers while it multiplies the slices before, which lie in shared memory (two of each, one barrier per slice); a thread keeps
   TM x TN results in registers. Where there are too few tiles to fill a card, the sum is cut into parts, whose partial results
   the kernel SUM adds in their order: the same bits on every run, with no atomics.

   DIRECT: where groups leave one or two rows (depthwise), or WEIGHT has few results, tiles would be empty. FORWARD and DATA: one
   thread per result. WEIGHT: one block per row, channel and 9 taps, whose threads take the pixels in turn.

   Numerics: fused multiply-add in float32, in ascending k (float64 for float64), bias last; parts and blocks are added in a fixed tree.

   Ladder (why this shape): one thread per result reads 2 numbers per multiplication; tiles in shared memory read 2 / BM;
   TM x TN in registers makes shared memory keep up; the double buffer hides the gather.

   Variant: D the dtype, OP, WIDE (64-bit positions), one of TILED (with BM, BN, BK, TM, TN), DIRECT, SUM. */

#if D == DVT_F64
typedef double C;
#else
typedef float C;
#endif
#if WIDE
typedef int64_t I;
typedef uint64_t U;
#else
typedef int I;
typedef unsigned U;
#endif

/* The divisor d on the card, as dvti_cuda_divisor makes it. */
__device__ inline dvti_kdivisor dvti_divisor(I d) {
    dvti_kdivisor r;
    r.divisor = d > 1 ? d : 1;
    r.shift = WIDE || r.divisor == 1 ? 0 : 32 - __clz((int)r.divisor - 1);
    r.multiplier = WIDE ? 0
                        : (unsigned)(((((uint64_t)1 << r.shift) - (uint64_t)r.divisor) << 32) / (uint64_t)r.divisor + 1);
    return r;
}

/* Along an axis: column number a has its tap t at a * scale + first + t * step of the image that is read, if that is inside 0 ..
   extent - 1; the tap is kernel_first + t * kernel_step of w, the result out_first + a * out_scale. */
struct dvti_axis {
    I count, scale, first, step, taps, extent;
    I kernel_first, kernel_step, out_first, out_scale;
};

__device__ inline dvti_axis dvti_axis_of(const dvti_kconv &p, int axis, I phase) {
    const I stride = (I)p.stride[axis], dilation = (I)p.dilation[axis], padding = (I)p.padding[axis];
    dvti_axis r;
    if constexpr (OP == DATA) {
        r.kernel_step = stride / (I)p.common[axis];
        const I end = min(r.kernel_step, (I)p.window[axis]);
        I tap = 0;
        while (tap < end && (phase + padding - tap * dilation) % stride != 0)
            tap++;
        r.kernel_first = tap;
        r.taps = tap < end ? ((I)p.window[axis] - tap - 1) / r.kernel_step + 1 : 0;
        r.first = (phase + padding - tap * dilation) / stride;
        r.step = -(dilation / (I)p.common[axis]);
        r.count = ((I)p.image[axis] - phase - 1) / stride + 1;
        r.scale = 1;
        r.extent = (I)p.pixels[axis];
        r.out_first = phase;
        r.out_scale = stride;
    } else {
        r.kernel_first = r.out_first = 0;
        r.kernel_step = r.out_scale = 1;
        r.taps = (I)p.window[axis];
        r.first = -padding;
        r.step = dilation;
        r.count = (I)p.pixels[axis];
        r.scale = stride;
        r.extent = (I)p.image[axis];
    }
    return r;
}

/* What one block computes. */
struct dvti_work {
    dvti_axis rows, columns;               /* of an image */
    dvti_kdivisor grid, grid_width;        /* columns of a plane */
    dvti_kdivisor kernel, kernel_width;    /* taps */
    I group, part, m0, n0, m, n;           /* the tile's first row and column, and the matrices' extents */
    I begin, end;                          /* of k */
};

/* A place in a plane: which sample, and where the window begins in the image, whose channel 0 (of the group) begins at `at`. */
struct dvti_corner {
    I at, row, column;
    bool inside; /* there is such a column */
};

__device__ inline dvti_corner dvti_corner_of(const dvti_kconv &p, const dvti_work &b, I column, I end) {
    const I sample = dvti_divide(column, b.grid), pixel = column - sample * (I)b.grid.divisor;
    const I i = dvti_divide(pixel, b.grid_width), j = pixel - i * (I)b.grid_width.divisor;
    const I all = OP == DATA ? (I)p.o : (I)p.c, each = OP == DATA ? (I)p.og : (I)p.cg;
    dvti_corner r;
    r.at = (sample * all + b.group * each) * b.rows.extent * b.columns.extent;
    r.row = i * b.rows.scale + b.rows.first;
    r.column = j * b.columns.scale + b.columns.first;
    r.inside = column < end;
    return r;
}

struct dvti_tap {
    I channel, t, u;
};

__device__ inline dvti_tap dvti_tap_of(const dvti_work &b, I k) {
    dvti_tap r;
    r.channel = dvti_divide(k, b.kernel);
    k -= r.channel * (I)b.kernel.divisor;
    r.t = dvti_divide(k, b.kernel_width);
    r.u = k - r.t * (I)b.kernel_width.divisor;
    return r;
}

/* An element of a patch; 0 in the padding. */
__device__ inline C dvti_patch(const dvti_work &b, const void *image, const dvti_corner &corner, dvti_tap tap) {
    const I row = corner.row + tap.t * b.rows.step, column = corner.column + tap.u * b.columns.step;
    const bool inside = corner.inside && (U)row < (U)b.rows.extent && (U)column < (U)b.columns.extent;
    const I at = corner.at + (tap.channel * b.rows.extent + row) * b.columns.extent + column;
    return inside ? dvti_load<D, C>(image, at) : (C)0;
}

/* One result, or one part of it. */
__device__ inline void dvti_put(const dvti_kconv &p, I part, I at, I channel, C sum) {
    if (p.bias && part == 0)
        sum += dvti_load<D, C>(p.bias, channel);
    if (p.parts > 1)
        ((C *)p.partial)[part * (I)p.size + at] = sum;
    else
        dvti_store<D>(p.out, at, sum);
}

#if TILED
#define THREADS (BM / TM * (BN / TN))
#define LEFT (BM * BK / THREADS)
#define RIGHT (BN * BK / THREADS)
/* Two blocks of a processor hide each other's gathering: 128 registers. Unrolled, 8 x 8 results do not fit into those, and need it
   least; 64-bit positions do not fit at all. */
#define UNROLL (TM * TN >= 64 ? 1 : BK)
#define RESIDENT (WIDE ? 1 : 2)
#define PITCH(extent) ((extent) + 4) /* rows stay aligned to 16 bytes, and lanes that differ in k do not meet in a bank */

__device__ inline dvti_work dvti_work_of(const dvti_kconv &p) {
    dvti_work b;
    I block = (I)blockIdx.x, phase;
    b.m0 = block % (I)p.row_tiles * BM;
    block /= (I)p.row_tiles;
    b.n0 = block % (I)p.column_tiles * BN;
    block /= (I)p.column_tiles;
    b.part = block % (I)p.parts;
    block /= (I)p.parts;
    b.group = block % (I)p.groups;
    phase = block / (I)p.groups;
    b.rows = dvti_axis_of(p, 0, phase / (I)p.phases[1]);
    b.columns = dvti_axis_of(p, 1, phase % (I)p.phases[1]);
    b.grid = p.grid;
    b.grid_width = p.grid_width;
    b.kernel = p.kernel;
    b.kernel_width = p.kernel_width;
    if (OP == DATA && p.phases[0] * p.phases[1] > 1) {
        b.grid = dvti_divisor(b.rows.count * b.columns.count);
        b.grid_width = dvti_divisor(b.columns.count);
        b.kernel = dvti_divisor(b.rows.taps * b.columns.taps);
        b.kernel_width = dvti_divisor(b.columns.taps);
    }
    b.m = OP == DATA ? (I)p.cg : (I)p.og;
    const I taps = (OP == DATA ? (I)p.og : (I)p.cg) * b.rows.taps * b.columns.taps;
    const I places = (I)p.n * b.rows.count * b.columns.count;
    b.n = OP == WEIGHT ? taps : places;
    b.begin = b.part * (I)p.depth;
    b.end = min(b.begin + (I)p.depth, OP == WEIGHT ? places : taps);
    return b;
}

/* Fetches slices of the operands. A thread's elements of FORWARD's and DATA's patches lie in one column, those of WEIGHT in one k. */
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
            return dvti_load<D, C>(p.w, (b.group * (I)p.og + m) * (I)p.cg * (I)b.kernel.divisor + k);
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
                left[e] = corner.inside && m < b.m ? dvti_load<D, C>(p.y, first + m * (I)b.grid.divisor) : (C)0;
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

    /* Into shared memory, k by k. */
    __device__ inline void put(C (*left_slice)[PITCH(BM)], C (*right_slice)[PITCH(BN)], const C *left, const C *right) const {
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

/* Numbers that are read from shared memory at once, 16 bytes of them. */
template <int N> struct alignas(N * sizeof(C)) dvti_pack {
    C v[N];
};
#define MOST (16 / (int)sizeof(C))
#define PACK(n) ((n) < MOST ? (n) : MOST)

/* Where in the tile a thread's result number i is: packs that lie apart by a pack of every thread, so that lanes read side by side. */
__device__ inline int dvti_spread(int i, int thread, int threads, int pack) {
    return (i / pack * threads + thread) * pack + i % pack;
}

template <int N, int EXTENT> __device__ inline void dvti_read(const C *slice, int thread, C *out) {
    const int pack = PACK(N);
#pragma unroll
    for (int i = 0; i < N; i += pack) {
        const dvti_pack<pack> read = *(const dvti_pack<pack> *)(slice + dvti_spread(i, thread, EXTENT / N, pack));
#pragma unroll
        for (int k = 0; k < pack; k++)
            out[i + k] = read.v[k];
    }
}

__device__ inline void dvti_put_column(const dvti_kconv &p, const dvti_work &b, I column, int thread, const C *sums) {
    I first, pitch;
    if constexpr (OP == WEIGHT) {
        pitch = b.n;
        first = b.group * (I)p.og * pitch + column;
    } else {
        const I all = OP == DATA ? (I)p.c : (I)p.o;
        const I sample = dvti_divide(column, b.grid), pixel = column - sample * (I)b.grid.divisor;
        const I i = dvti_divide(pixel, b.grid_width), j = pixel - i * (I)b.grid_width.divisor;
        pitch = (I)p.out_height.divisor * (I)p.out_width.divisor;
        first = (sample * all + b.group * b.m) * pitch +
                (b.rows.out_first + i * b.rows.out_scale) * (I)p.out_width.divisor + b.columns.out_first +
                j * b.columns.out_scale;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        const I m = b.m0 + dvti_spread(i, thread, BM / TM, PACK(TM));
        if (m < b.m)
            dvti_put(p, b.part, first + m * pitch, b.group * b.m + m, sums[i * TN]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) dvti_conv(const dvti_kconv p) {
    __shared__ alignas(16) C left_slices[2][BK][PITCH(BM)];
    __shared__ alignas(16) C right_slices[2][BK][PITCH(BN)];
    const int thread_row = (int)threadIdx.x / (BN / TN), thread_column = (int)threadIdx.x % (BN / TN);
    const dvti_work b = dvti_work_of(p);
    C sums[TM][TN] = {}, left[LEFT], right[RIGHT];
    if (b.n0 >= b.n) /* a phase with fewer pixels than the first; the whole block leaves */
        return;
    dvti_fetcher fetcher(p, b);
    if (b.begin < b.end) {
        fetcher.fetch(p, b, b.begin, left, right);
        fetcher.put(left_slices[0], right_slices[0], left, right);
    }
    __syncthreads();
    int stage = 0;
    for (I k = b.begin; k < b.end; k += BK, stage ^= 1) {
        const bool more = k + BK < b.end;
        if (more)
            fetcher.fetch(p, b, k + BK, left, right);
#pragma unroll (UNROLL)
        for (int depth = 0; depth < BK; depth++) {
            C row[TM], column[TN];
            dvti_read<TM, BM>(left_slices[stage][depth], thread_row, row);
            dvti_read<TN, BN>(right_slices[stage][depth], thread_column, column);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    sums[i][j] += row[i] * column[j];
        }
        if (more)
            fetcher.put(left_slices[stage ^ 1], right_slices[stage ^ 1], left, right);
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < TN; j++) {
        const I column = b.n0 + dvti_spread(j, thread_column, BN / TN, PACK(TN));
        if (column < b.n)
            dvti_put_column(p, b, column, thread_row, &sums[0][j]);
    }
}
#endif

#if DIRECT && OP == WEIGHT
#define TAPS 9
#define WARPS 8

/* Block ((part, row), channel), chunk of taps. */
extern "C" __global__ void __launch_bounds__(32 * WARPS) dvti_conv(const dvti_kconv p) {
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
            sums[e] += dvti_patch(b, p.x, corner, taps[e]) * y;
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
/* The taps begin .. end - 1 of a window whose corner is at `first` lie inside an image. */
__device__ inline void dvti_inside(I first, I step, I taps, I extent, I &begin, I &end) {
    begin = first < 0 ? min((-first - 1) / step + 1, taps) : 0;
    end = first < extent ? min((extent - 1 - first) / step + 1, taps) : 0;
}

__device__ inline C dvti_forward(const dvti_kconv &p, I sample, I o, I i, I j) {
    const I height = (I)p.image[0], width = (I)p.image[1], kernel_width = (I)p.window[1];
    const I row = i * (I)p.stride[0] - (I)p.padding[0], column = j * (I)p.stride[1] - (I)p.padding[1];
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
                sum += dvti_load<D, C>(p.x, x + u * step) * dvti_load<D, C>(p.w, w + u);
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
                sum += dvti_load<D, C>(p.y, y + o * pixels) * dvti_load<D, C>(p.w, at + o * pitch);
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) dvti_conv(const dvti_kconv p) {
    for (I at = (I)dvti_thread(); at < (I)p.size; at += (I)dvti_threads()) {
        const I line = dvti_divide(at, p.out_width), column = at - line * (I)p.out_width.divisor;
        const I plane = dvti_divide(line, p.out_height), row = line - plane * (I)p.out_height.divisor;
        const I sample = dvti_divide(plane, p.out_channels);
        const I channel = plane - sample * (I)p.out_channels.divisor;
        C sum = OP == DATA ? dvti_data(p, sample, channel, row, column)
                                         : dvti_forward(p, sample, channel, row, column);
        dvti_put(p, 0, at, channel, sum);
    }
}
#endif

#if SUM
/* The parts in their order; float64 costs nothing beside reading them. */
extern "C" __global__ void __launch_bounds__(256) dvti_conv(const dvti_kconv p) {
    for (int64_t at = dvti_thread(); at < p.size; at += dvti_threads()) {
        double sum = 0;
#pragma unroll 4
        for (int64_t part = 0; part < p.parts; part++)
            sum += (double)((const C *)p.partial)[part * p.size + at];
        dvti_store<D>(p.out, at, (C)sum);
    }
}
#endif
