/* Pooling: the maximum or the mean of each window, and their gradients. All arrays are contiguous,
   NCHW.

   The work item of each KIND (DVTI_KPOOL_*), and its result:

     MAX, AVG     a window         y: its maximum, or its mean
     PICK         a window         y: v at the place of its first maximum
     PLACES       a window         the workspace: that place, counted from its plane's beginning
     CELLS        a cell           dx, where windows do not overlap: cells cut the plane into pieces
                                   with at most one window each
     GATHER_MAX   an element of x  dx, where windows overlap: the sum of dy over the windows whose
                                   place (PLACES) is this element
     GATHER_AVG   an element of x  dx: the sum of dy / count over the windows that contain it

   Cell i begins where window i begins and ends where window i + 1 begins:

     windows of 2, stride 3      [0 0].[1 1].[2 2]
     cells                       |--0--|--1--|--2-

   Every element of dx is written once, by one thread, which adds in the order of the windows: no
   atomics, the same bits on every run.

   Launch: one thread per work item, 256 threads per block; with TEAM, one block of 32 or 256
   threads per work item. One thread per window reaches the memory's bandwidth while neighboring
   windows share cache lines. In large windows that lie far apart (global pooling) each lane would
   read cache lines of its own, so there the lanes of a block read adjacent elements of one window.
   Threads loop when there are more work items than threads. Reading is the bottleneck: four loads
   of a window are in flight at once, and divisions are done by multiplication.

   Numerics: a NaN is larger than all numbers; of equal elements the first one counts. Means and
   gradients are added in float32 (float64 for float64): in row-major order for a thread, in a fixed
   tree for a team.

   Variant: D the dtype, KIND, TEAM, WIDE (64-bit positions). */

#if D == DVT_F64
typedef double C;
#else
typedef float C;
#endif
#if WIDE
typedef int64_t I;
#else
typedef int I;
#endif
#define LOADS 4

struct dvti_span {
    I begin, end,
        counted; /* divisor of a mean: with padding when that counts, but nothing beyond it */
};

/* Returns the range of window number i that lies in x, along an axis. */
__device__ inline dvti_span dvti_window(const dvti_kpool &p, int axis, I i) {
    const I begin = i * (I)p.stride[axis].divisor - (I)p.padding[axis],
            end = begin + (I)p.size[axis];
    const I extent = (I)p.extent[axis];
    dvti_span span;
    span.counted = min(end, extent + (I)p.padding[axis]) - begin;
    span.begin = max(begin, (I)0);
    span.end = min(end, extent);
    if (p.inside)
        span.counted = span.end - span.begin;
    return span;
}

/* Returns the windows begin .. end - 1 that contain an element of x, along an axis. */
__device__ inline dvti_span dvti_covering(const dvti_kpool &p, int axis, I at) {
    dvti_span span;
    at += (I)p.padding[axis];
    span.begin = at < (I)p.size[axis] ? 0 : dvti_divide(at - (I)p.size[axis], p.stride[axis]) + 1;
    span.end = min(dvti_divide(at, p.stride[axis]) + 1, (I)p.windows[axis]);
    span.counted = 0;
    return span;
}

/* Calls take(value, place) for the elements of a window in row-major order; with TEAM, for those of
   this thread. */
template <class F>
__device__ inline void dvti_each(const void *x, I plane, I pitch, dvti_span rows, dvti_span columns,
                                 F take) {
    const I width = columns.end - columns.begin, height = rows.end - rows.begin;
    const I corner = rows.begin * pitch + columns.begin;
    const I first = TEAM ? (I)threadIdx.x : 0, step = TEAM ? (I)blockDim.x : 1;
    const I down = TEAM ? step / width : width == 1, right = step - down * width;
    I row = TEAM ? first / width : 0, column = first - row * width;
    while (row < height) {
        C value[LOADS];
        I at[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            at[k] = row < height ? corner + row * pitch + column : -1;
            value[k] = at[k] >= 0 ? dvti_load<D, C>(x, plane + at[k]) : 0;
            row += down;
            column += right;
            if (column >= width) {
                column -= width;
                row++;
            }
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            if (at[k] >= 0)
                take(value[k], at[k]);
    }
}

/* ---- joining the results of a team ---- */
struct dvti_best {
    C value;
    I at; /* -1: no element yet */
};

__device__ inline bool dvti_is_larger(C value, C most) {
    return value > most || (value != value && most == most);
}

__device__ inline dvti_best dvti_join(dvti_best a, dvti_best b) {
    const bool later = b.at < 0 || dvti_is_larger(a.value, b.value) ||
                       (!dvti_is_larger(b.value, a.value) && a.at < b.at);
    return a.at >= 0 && later ? a : b;
}

__device__ inline C dvti_join(C a, C b) { return a + b; }

__device__ inline dvti_best dvti_from_lane(dvti_best a, int distance) {
    a.value = __shfl_down_sync(0xffffffffu, a.value, distance);
    a.at = __shfl_down_sync(0xffffffffu, a.at, distance);
    return a;
}

__device__ inline C dvti_from_lane(C a, int distance) {
    return __shfl_down_sync(0xffffffffu, a, distance);
}

/* Joins the results of a block's threads; all threads get the result. */
template <class T> __device__ inline T dvti_team(T mine) {
    if constexpr (TEAM) {
        __shared__ T found[32];
        const int warps = blockDim.x >> 5;
        for (int distance = 16; distance; distance >>= 1)
            mine = dvti_join(mine, dvti_from_lane(mine, distance));
        __syncthreads(); /* all threads have read the previous results */
        if ((threadIdx.x & 31) == 0)
            found[threadIdx.x >> 5] = mine;
        __syncthreads();
        mine = found[0];
        for (int warp = 1; warp < warps; warp++)
            mine = dvti_join(mine, found[warp]);
    }
    return mine;
}

__device__ inline dvti_best dvti_largest(const dvti_kpool &p, I plane, dvti_span rows,
                                         dvti_span columns) {
    dvti_best best;
    best.value = 0;
    best.at = -1;
    dvti_each(p.x, plane, (I)p.extent[1], rows, columns, [&](C value, I at) {
        if (best.at < 0 || dvti_is_larger(value, best.value)) {
            best.value = value;
            best.at = at;
        }
    });
    return dvti_team(best);
}

/* Returns the place that gets a window's gradient; -1: none. */
__device__ inline I dvti_place(const dvti_kpool &p, dvti_best best) {
    return p.relu_masked && best.value == 0 ? -1 : best.at;
}

/* ---- the work items ---- */
/* Computes window (i, j) of a plane; `unit` is its position in y. */
__device__ inline void dvti_on_window(const dvti_kpool &p, I unit, I plane, I i, I j) {
    const dvti_span rows = dvti_window(p, 0, i), columns = dvti_window(p, 1, j);
    const bool writes = !TEAM || threadIdx.x == 0;
    plane *= (I)p.extent[0] * (I)p.extent[1];
    if constexpr (KIND == DVTI_KPOOL_AVG) {
        C sum = 0;
        dvti_each(p.x, plane, (I)p.extent[1], rows, columns, [&](C value, I) { sum += value; });
        sum = dvti_team(sum);
        if (writes)
            dvti_store<D>(p.out, unit, sum / (C)(rows.counted * columns.counted));
    } else {
        const dvti_best best = dvti_largest(p, plane, rows, columns);
        if (!writes)
            return;
        if constexpr (KIND == DVTI_KPOOL_MAX)
            dvti_store<D>(p.out, unit, best.value);
        if constexpr (KIND == DVTI_KPOOL_PICK)
            ((dvti_stored<D>::type *)p.out)[unit] =
                ((const dvti_stored<D>::type *)p.in)[plane + best.at];
        if constexpr (KIND == DVTI_KPOOL_PLACES)
            ((I *)p.places)[unit] = dvti_place(p, best);
    }
}

/* Writes cell (i, j): zeros, and dy at one place. */
__device__ inline void dvti_on_cell(const dvti_kpool &p, I plane, I i, I j) {
    const bool window = i < (I)p.windows[0] && j < (I)p.windows[1];
    const I window_at = (plane * (I)p.windows[0] + i) * (I)p.windows[1] + j;
    const I corner = plane * (I)p.extent[0] * (I)p.extent[1];
    dvti_span rows = dvti_window(p, 0, i), columns = dvti_window(p, 1, j);
    const I place = window ? dvti_place(p, dvti_largest(p, corner, rows, columns)) : -1;
    const I first = TEAM ? (I)threadIdx.x : 0, step = TEAM ? (I)blockDim.x : 1;
    rows.end = min(rows.begin + (I)p.stride[0].divisor - (i ? 0 : (I)p.padding[0]), (I)p.extent[0]);
    columns.end =
        min(columns.begin + (I)p.stride[1].divisor - (j ? 0 : (I)p.padding[1]), (I)p.extent[1]);
    for (I row = rows.begin; row < rows.end; row++)
        for (I column = columns.begin + first; column < columns.end; column += step) {
            const I at = row * (I)p.extent[1] + column;
            dvti_store<D>(p.out, corner + at,
                          at == place ? dvti_load<D, C>(p.in, window_at) : (C)0);
        }
}

/* Computes element (row, column) of a plane of x; `unit` is its position in x. */
__device__ inline void dvti_on_element(const dvti_kpool &p, I unit, I plane, I row, I column) {
    const dvti_span is = dvti_covering(p, 0, row), js = dvti_covering(p, 1, column);
    const I here = row * (I)p.extent[1] + column;
    C sum = 0;
    for (I i = is.begin; i < is.end; i++) {
        const I at = (plane * (I)p.windows[0] + i) * (I)p.windows[1];
        const I rows = KIND == DVTI_KPOOL_GATHER_AVG ? dvti_window(p, 0, i).counted : 0;
        for (I j = js.begin; j < js.end; j++) {
            if constexpr (KIND == DVTI_KPOOL_GATHER_AVG)
                sum += dvti_load<D, C>(p.in, at + j) / (C)(rows * dvti_window(p, 1, j).counted);
            else if (((const I *)p.places)[at + j] == here)
                sum += dvti_load<D, C>(p.in, at + j);
        }
    }
    dvti_store<D>(p.out, unit, sum);
}

extern "C" __global__ void __launch_bounds__(256) dvti_pool(const dvti_kpool p) {
    const I step = (I)(TEAM ? gridDim.x : dvti_threads());
    for (I unit = (I)(TEAM ? blockIdx.x : dvti_thread()); unit < (I)p.n; unit += step) {
        const I line = dvti_divide(unit, p.columns), plane = dvti_divide(line, p.rows);
        const I column = unit - line * (I)p.columns.divisor, row = line - plane * (I)p.rows.divisor;
        if constexpr (KIND == DVTI_KPOOL_CELLS)
            dvti_on_cell(p, plane, row, column);
        else if constexpr (KIND == DVTI_KPOOL_GATHER_MAX || KIND == DVTI_KPOOL_GATHER_AVG)
            dvti_on_element(p, unit, plane, row, column);
        else
            dvti_on_window(p, unit, plane, row, column);
    }
}
