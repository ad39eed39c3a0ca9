/* Indexing. Indices are int64. Negative ones count from the end; indices out of range are clamped.

     take        out (A, M, B) = in (A, N, B) at index (M). A thread copies UNIT bytes, as many
                 as the alignment of the rows allows.
     take_along  out[..j..] = in[..index[..j..]..]. One element per thread; one division per axis
                 gives the positions in all three windows.
     one_hot     out (..., depth). One element per thread.
     take_add    out (A, N, B) is zeroed, then in (A, M, B) is added at index (M), in order of M.
     take_along_add   the same for every element of the index.

   take_add sorts the places with their positions (sort.cu, stable), so that equal places are
   adjacent and in order. The thread at the first of a run adds the whole run in a register, with
   four loads in flight. 16-bit floats are added in float32 and rounded once. The work is A * M * B,
   independent of N. Floating-point atomics would add in another order each time; one thread per
   result that scans all indices would be quadratic.

     index            2  0  2  5  0
     sorted places    0  0  2  2  5     a thread for the first 0 adds rows 1 and 4,
     position         1  4  0  2  3     one for the first 2 adds rows 0 and 2, ...

   take_along_add does the same with places in the whole result. If the index is short along its
   axis and there are many lines, one thread handles each line, without conflicts.

   Variant: PART; UNIT bytes for copies; D dtype; WIDE: positions of 64 bits, else 32. */

#if WIDE
typedef int64_t dvti_index;
#else
typedef int dvti_index;
#endif

template <int> struct dvti_unit;
template <> struct dvti_unit<1> { typedef unsigned char type; };
template <> struct dvti_unit<2> { typedef unsigned short type; };
template <> struct dvti_unit<4> { typedef unsigned type; };
template <> struct dvti_unit<8> { typedef uint2 type; };
template <> struct dvti_unit<16> { typedef uint4 type; };

__device__ inline int64_t dvti_inside(int64_t index, int64_t n) {
    if (index < 0)
        index += n;
    return index < 0 ? 0 : index >= n ? n - 1 : index;
}

#if PART == 0
typedef dvti_unit<UNIT>::type dvti_unit_type;

extern "C" __global__ void dvti_take(const dvti_kindex p) {
    const dvti_index width = (dvti_index)p.b, m = (dvti_index)p.m;
    for (int64_t i = dvti_thread(); i < p.total; i += dvti_threads()) {
        const dvti_index at = (dvti_index)i, row = at / width, a = row / m;
        const int64_t from = a * p.n + dvti_inside(p.index[row - a * m], p.n);
        ((dvti_unit_type *)p.out.data)[i] =
            ((const dvti_unit_type *)p.in.data)[from * p.b + (at - row * width)];
    }
}
#endif

#if PART == 1
typedef dvti_unit<UNIT>::type dvti_unit_type;

extern "C" __global__ void dvti_take_along(const dvti_kindex p) {
    for (int64_t i = dvti_thread(); i < p.total; i += dvti_threads()) {
        dvti_index at = (dvti_index)i, from = 0, where = 0, to = 0;
        for (int axis = (int)p.out.ndim - 1; axis >= 0; axis--) {
            const dvti_index extent = (dvti_index)p.out.dim[axis], up = axis ? at / extent : 0,
                             step = at - up * extent;
            from += step * (dvti_index)p.in.stride[axis];
            where += step * (dvti_index)p.places.stride[axis];
            to += step * (dvti_index)p.out.stride[axis];
            at = up;
        }
        ((dvti_unit_type *)p.out.data)[to] =
            ((const dvti_unit_type *)p.in.data)[from + dvti_inside(p.index[where], p.n) * p.step];
    }
}
#endif

#if PART == 2
extern "C" __global__ void dvti_one_hot(const dvti_kindex p) {
    const dvti_index depth = (dvti_index)p.n;
    for (int64_t i = dvti_thread(); i < p.total; i += dvti_threads()) {
        const dvti_index row = (dvti_index)i / depth;
        dvti_store<D>(p.out.data, i, (int64_t)(p.index[row] == (dvti_index)i - row * depth));
    }
}
#endif

#if PART == 3
template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };
typedef dvti_either<D == DVT_F64, double, dvti_either<DVTI_IS_FLOAT(D), float, int64_t>::type>::type
    dvti_sum;

extern "C" __global__ void dvti_index_zero(const dvti_kindex p) {
    const dvti_stored<D>::type zero = 0;
    for (int64_t i = dvti_thread(); i < p.n_out; i += dvti_threads())
        ((dvti_stored<D>::type *)p.out.data)[i] = zero;
}

/* Writes keys[i], the place that position i of the index adds to: a row of the result for take_add,
   an element for take_along_add. */
extern "C" __global__ void dvti_index_keys(const dvti_kindex p) {
    for (int64_t i = dvti_thread(); i < p.m; i += dvti_threads()) {
        int64_t at = i, where = 0, to = 0;
        for (int axis = (int)p.places.ndim - 1; axis >= 0; axis--) {
            const int64_t up = at / p.places.dim[axis], step = at - up * p.places.dim[axis];
            where += step * p.places.stride[axis];
            to += step * p.out.stride[axis];
            at = up;
        }
        to += dvti_inside(p.index[where], p.n) * p.step;
        if (WIDE && p.wide)
            ((int64_t *)p.keys)[i] = to;
        else
            ((unsigned *)p.keys)[i] = (unsigned)to;
    }
}

__device__ inline int64_t dvti_total(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

__device__ inline float dvti_total(float a, float b) { return a + b; }

__device__ inline double dvti_total(double a, double b) { return a + b; }

/* Only programs with wide positions meet wide keys. */
__device__ inline int64_t dvti_sorted_key(const dvti_kindex &p, int64_t at) {
    return WIDE && p.wide ? ((const int64_t *)p.keys)[at]
                          : (int64_t)((const unsigned *)p.keys)[at];
}

__device__ inline dvti_index dvti_sorted_value(const dvti_kindex &p, int64_t at) {
    return WIDE && p.wide ? (dvti_index)((const int64_t *)p.values)[at]
                          : ((const int *)p.values)[at];
}

/* Adds runs of equal places: one thread for each (a, sorted place, b); the first of equal places
   adds them all. p.in has the axes (a, m.., b). */
extern "C" __global__ void dvti_index_add(const dvti_kindex p) {
    const dvti_index width = (dvti_index)p.b, m = (dvti_index)p.m;
    for (int64_t i = dvti_thread(); i < p.total; i += dvti_threads()) {
        const dvti_index at = (dvti_index)i, row = at / width, a = row / m, b = at - row * width;
        int64_t first = row - a * m;
        const int64_t key = dvti_sorted_key(p, first);
        if (first > 0 && dvti_sorted_key(p, first - 1) == key)
            continue;
        dvti_sum sum = 0;
        for (int same = 4; same == 4; first += 4) {
            dvti_sum x[4];
            same = 0;
            for (int k = 0; k < 4; k++) {
                const bool more =
                    same == k && first + k < m && dvti_sorted_key(p, first + k) == key;
                x[k] = more ? dvti_load<D, dvti_sum>(
                                  p.in.data,
                                  dvti_offset<dvti_index>(
                                      p.in, (a * m + dvti_sorted_value(p, first + k)) * width + b))
                            : 0;
                same += more;
            }
            for (int k = 0; k < 4; k++)
                sum = k < same ? dvti_total(sum, x[k]) : sum;
        }
        dvti_store<D>(p.out.data, (a * p.rows + key) * p.b + b, sum);
    }
}

/* Adds one line along the axis per thread: `m` positions, p.along and p.along_index apart. */
extern "C" __global__ void dvti_index_lines(const dvti_kindex p) {
    for (int64_t i = dvti_thread(); i < p.total; i += dvti_threads()) {
        const int64_t from = dvti_offset<int64_t>(p.in, i),
                      where = dvti_offset<int64_t>(p.places, i),
                      to = dvti_offset<int64_t>(p.out, i);
        for (int64_t j = 0; j < p.m; j++) {
            const int64_t place =
                to + dvti_inside(p.index[where + j * p.along_index], p.n) * p.step;
            const dvti_sum x = dvti_load<D, dvti_sum>(p.in.data, from + j * p.along);
            dvti_store<D>(p.out.data, place,
                          dvti_total(dvti_load<D, dvti_sum>(p.out.data, place), x));
        }
    }
}
#endif
