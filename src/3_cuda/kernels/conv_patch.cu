/* Code that the convolution kernels share. The three operations are matrix products whose operands
   are gathered on the fly and never stored (implicit GEMM).

     OP       rows m         columns n                 summed over k             left     right
     FORWARD  channels of y  pixels of y, all samples  channels of x, taps       w[m][k]  patches, x
     DATA     channels of x  pixels of x, one phase    channels of y, taps       w[k][m]  patches, y
     WEIGHT   channels of y  channels of x, taps       pixels of y, all samples  y[m][k]  patches, x

   DATA gathers instead of scattering, so nothing is added in memory. A phase is the set of pixels
   of x with the same position modulo the stride; they see the same taps, every stride / gcd(stride,
   dilation)-th one. For one phase DATA is a convolution of y with stride 1 and a negative dilation.
   No product with a zero between the pixels of y is computed. Different blocks compute different
   phases.

     stride 2, 1-D:   pixel of x   0  1  2  3  4  5
                      phase        0  1  0  1  0  1

   Memory: all arrays are contiguous, NCHW and OIHW. Consecutive columns (WEIGHT: consecutive k) are
   consecutive pixels, so that the accesses of a warp are coalesced.

   Launch: one block for BM x BN results of one group, phase and part of the sum: block = ((((phase,
   group), part), column tile), row tile). The row tile changes fastest, so that concurrent blocks
   share the patches. If there are too few tiles to fill a GPU, the sum is cut into parts. A second
   kernel adds the partial results in a fixed order: the same bits on every run, no atomics.

   Variant: D the dtype, OP, WIDE (64-bit positions), MMA (tensor cores), TILED. */

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

/* An element in the type in which it is multiplied. */
#if MMA && D == DVT_F32
typedef unsigned E; /* a float rounded to TF32 */

__device__ inline E dvti_element(const void *data, I at) {
    E e;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(e) : "f"(((const float *)data)[at]));
    return e;
}
#elif MMA
typedef unsigned short E; /* the tensor cores take 16-bit floats unchanged */

__device__ inline E dvti_element(const void *data, I at) { return ((const E *)data)[at]; }
#else
typedef C E;

__device__ inline E dvti_element(const void *data, I at) { return dvti_load<D, C>(data, at); }
#endif

/* Computes the divisor d on the GPU, as dvti_cuda_divisor does on the host. */
__device__ inline dvti_kdivisor dvti_divisor(I d) {
    dvti_kdivisor r;
    r.divisor = d > 1 ? d : 1;
    r.shift = WIDE || r.divisor == 1 ? 0 : 32 - __clz((int)r.divisor - 1);
    r.multiplier = WIDE ? 0
                        : (unsigned)(((((uint64_t)1 << r.shift) - (uint64_t)r.divisor) << 32) /
                                         (uint64_t)r.divisor +
                                     1);
    return r;
}

/* One axis of the gather. Column a reads tap t at a * scale + first + t * step of the input image,
   if that lies in 0 .. extent - 1. The tap is kernel_first + t * kernel_step of w. The result's
   position is out_first + a * out_scale. */
struct dvti_axis {
    I count, scale, first, step, taps, extent;
    I kernel_first, kernel_step, out_first, out_scale;
};

__device__ inline dvti_axis dvti_axis_of(const dvti_kconv &p, int axis, I phase) {
    const I stride = (I)p.stride[axis], dilation = (I)p.dilation[axis],
            padding = (I)p.padding[axis];
    dvti_axis r;
    if constexpr (OP == DATA) {
        r.kernel_step = stride / (I)p.common[axis];
        const I end = min(r.kernel_step, (I)p.window[axis]);
        I tap = 0;
#pragma unroll 1
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

/* The work of one block. */
struct dvti_work {
    dvti_axis rows, columns;            /* axes of an image */
    dvti_kdivisor grid, grid_width;     /* columns of a plane */
    dvti_kdivisor kernel, kernel_width; /* taps */
    I group, part, m0, n0, m, n;        /* the tile's first row and column, the matrices' extents */
    I begin, end;                       /* range of k */
};

/* The corner of a window: its row and column in the image, and the position `at` where channel 0 of
   the group begins in that sample. */
struct dvti_corner {
    I at, row, column;
    bool inside; /* the column exists */
};

__device__ inline dvti_corner dvti_corner_of(const dvti_kconv &p, const dvti_work &b, I column,
                                             I end) {
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

/* Returns an element of a patch, 0 in the padding. */
__device__ inline E dvti_patch(const dvti_work &b, const void *image, const dvti_corner &corner,
                               dvti_tap tap) {
    const I row = corner.row + tap.t * b.rows.step, column = corner.column + tap.u * b.columns.step;
    const bool inside =
        corner.inside && (U)row < (U)b.rows.extent && (U)column < (U)b.columns.extent;
    const I at = corner.at + (tap.channel * b.rows.extent + row) * b.columns.extent + column;
    return inside ? dvti_element(image, at) : (E)0;
}

/* Stores one result, or one part of it. */
__device__ inline void dvti_put(const dvti_kconv &p, I part, I at, I channel, C sum) {
    if (p.bias && part == 0)
        sum += dvti_load<D, C>(p.bias, channel);
    if (p.parts > 1)
        ((C *)p.partial)[part * (I)p.size + at] = sum;
    else
        dvti_store<D>(p.out, at, p.relu ? dvti_relu(sum) : sum);
}

#if TILED
/* Sets the axes of a phase. NVRTC takes time for each copy of the divisions of DATA. */
__device__ inline void dvti_axes_of(const dvti_kconv &p, dvti_work &b, I phase) {
#pragma unroll(OP == DATA ? 1 : 2)
    for (int axis = 0; axis < 2; axis++) {
        const I of_axis = axis ? phase % (I)p.phases[1] : phase / (I)p.phases[1];
        const dvti_axis r = dvti_axis_of(p, axis, of_axis);
        if (axis == 0)
            b.rows = r;
        else
            b.columns = r;
    }
}

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
    dvti_axes_of(p, b, phase);
    b.grid = p.grid;
    b.grid_width = p.grid_width;
    b.kernel = p.kernel;
    b.kernel_width = p.kernel_width;
    if (OP == DATA && p.phases[0] * p.phases[1] > 1) {
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
            const I down = i < 2 ? b.rows.count : b.rows.taps,
                    across = i < 2 ? b.columns.count : b.columns.taps;
            const dvti_kdivisor d = dvti_divisor(i % 2 ? across : down * across);
            if (i == 0)
                b.grid = d;
            else if (i == 1)
                b.grid_width = d;
            else if (i == 2)
                b.kernel = d;
            else
                b.kernel_width = d;
        }
    }
    b.m = OP == DATA ? (I)p.cg : (I)p.og;
    const I taps = (OP == DATA ? (I)p.og : (I)p.cg) * b.rows.taps * b.columns.taps;
    const I places = (I)p.n * b.rows.count * b.columns.count;
    b.n = OP == WEIGHT ? taps : places;
    b.begin = b.part * (I)p.depth;
    b.end = min(b.begin + (I)p.depth, OP == WEIGHT ? places : taps);
    return b;
}

/* Returns the position of the first result of a column, and in `pitch` the distance between
   rows. */
__device__ inline I dvti_place(const dvti_kconv &p, const dvti_work &b, I column, I &pitch) {
    if constexpr (OP == WEIGHT) {
        pitch = b.n;
        return b.group * (I)p.og * pitch + column;
    }
    const I all = OP == DATA ? (I)p.c : (I)p.o;
    const I sample = dvti_divide(column, b.grid), pixel = column - sample * (I)b.grid.divisor;
    const I i = dvti_divide(pixel, b.grid_width), j = pixel - i * (I)b.grid_width.divisor;
    pitch = (I)p.out_height.divisor * (I)p.out_width.divisor;
    return (sample * all + b.group * b.m) * pitch +
           (b.rows.out_first + i * b.rows.out_scale) * (I)p.out_width.divisor +
           b.columns.out_first + j * b.columns.out_scale;
}
#endif
