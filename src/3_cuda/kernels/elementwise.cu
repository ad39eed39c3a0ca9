/* Elementwise operations: out[at] = op(in0[at], in1[at], in2[at]) for every position of a shape,
   any strides, any dtypes.

   TEXT is the expression of the operation's row in the op table; it calls functions of
   2_core/math/row_functions.inl. All other code is the same for all operations. The host sorts the
   axes by the result's memory order and merges axes that are contiguous in every array. So most
   launches have one axis.

   A position is a group of N elements along the last axis. One thread moves it with one access of
   up to 16 bytes per array; N is 1 where strides or alignment do not allow more. A thread starts U
   positions together, a block's width apart, so that all their loads are in flight before the first
   use. dvti_divide converts positions to offsets. An array whose axis order differs from the
   result's goes through shared memory (dvti_elementwise_tile), so that reads and writes are both
   coalesced.

   Programs for any dtypes (ANY) know each array's dtype at run time. With N = 4 a thread moves 4
   elements of any size, and converts all of them after one branch (dvti_mixed).

   Launch: one-dimensional, 256 threads, grid-stride loops.

   Variant: T the class to compute in; N_IN the number of operands; D0 the result's dtype, D1 .. D3
   the operands' (ANY: known at run time, for rare mixtures); N, U as above. WIDE: 64-bit positions.
   FLAT: one axis. TILE: a position is a tile of 32 by 32 along the last two axes, N is 1 and U is
   4. ACROSS: bit k - 1 for an operand k that goes through shared memory.

   Numerics: the same operations as on the CPU, each rounded (no contraction). float uses the same
   functions as the CPU (2_core/math); double uses CUDA's, within their documented errors. in and
   out may be the same memory: a thread reads its positions before it writes them. */

#define ANY 15
#define MIXED (D0 == ANY && N > 1)

template <> struct dvti_stored<ANY> { typedef uint64_t type; };

/* ---- the operation ---- */
__device__ inline T dvti_apply(const dvti_kelementwise &p, T a, T b, T c) {
    const T x = a, low = IS_INT ? (T)p.i_low : (T)p.f_low,
            high = IS_INT ? (T)p.i_high : (T)p.f_high;
    (void)x, (void)b, (void)c, (void)low, (void)high;
    return (T)(TEXT);
}

/* ---- elements ---- */
template <int D> __device__ inline T dvti_ew_widen(typename dvti_stored<D>::type raw, int dtype) {
    if constexpr (D != ANY)
        return dvti_widen<D, T>(raw);
    else
        switch (dtype) {
        case DVT_F32:
            return dvti_widen<DVT_F32, T>(__uint_as_float((unsigned)raw));
        case DVT_F64:
            return dvti_widen<DVT_F64, T>(__longlong_as_double((int64_t)raw));
        case DVT_F16:
            return dvti_widen<DVT_F16, T>((unsigned short)raw);
        case DVT_BF16:
            return dvti_widen<DVT_BF16, T>((unsigned short)raw);
        case DVT_I8:
            return dvti_widen<DVT_I8, T>((signed char)raw);
        case DVT_U8:
            return dvti_widen<DVT_U8, T>((unsigned char)raw);
        case DVT_I32:
            return dvti_widen<DVT_I32, T>((int)raw);
        case DVT_I64:
            return dvti_widen<DVT_I64, T>((int64_t)raw);
        default:
            return dvti_widen<DVT_BOOL, T>((unsigned char)raw);
        }
}

/* Returns the condition of `where`: nonzero in its own dtype, also where T would make it 0 (0.5
   among integers). Every bit but a float's sign counts. */
template <int D>
__device__ inline T dvti_ew_condition(typename dvti_stored<D>::type raw, int dtype) {
    if constexpr (D == ANY) {
        if (dtype == DVT_F32)
            raw &= 0x7fffffff;
        if (dtype == DVT_F64)
            raw &= 0x7fffffffffffffff;
        if (dtype == DVT_F16 || dtype == DVT_BF16)
            raw &= 0x7fff;
    }
    if constexpr (D == DVT_F16 || D == DVT_BF16)
        raw &= 0x7fff;
    return (T)(raw != 0);
}

template <int D> __device__ inline typename dvti_stored<D>::type dvti_ew_narrow(T v, int dtype) {
    if constexpr (D != ANY)
        return dvti_narrow<D>(v);
    else
        switch (dtype) {
        case DVT_F32:
            return __float_as_uint(dvti_narrow<DVT_F32>(v));
        case DVT_F64:
            return (uint64_t)__double_as_longlong(dvti_narrow<DVT_F64>(v));
        case DVT_F16:
            return dvti_narrow<DVT_F16>(v);
        case DVT_BF16:
            return dvti_narrow<DVT_BF16>(v);
        case DVT_I8:
            return (unsigned char)dvti_narrow<DVT_I8>(v);
        case DVT_U8:
            return dvti_narrow<DVT_U8>(v);
        case DVT_I32:
            return (unsigned)dvti_narrow<DVT_I32>(v);
        case DVT_I64:
            return (uint64_t)dvti_narrow<DVT_I64>(v);
        default:
            return dvti_narrow<DVT_BOOL>(v);
        }
}

template <int D>
__device__ inline typename dvti_stored<D>::type dvti_ew_get(const void *data, int64_t at,
                                                            int bytes) {
    if constexpr (D != ANY)
        return ((const typename dvti_stored<D>::type *)data)[at];
    else
        return bytes == 8   ? ((const uint64_t *)data)[at]
               : bytes == 4 ? ((const unsigned *)data)[at]
               : bytes == 2 ? ((const unsigned short *)data)[at]
                            : ((const unsigned char *)data)[at];
}

template <int D>
__device__ inline void dvti_ew_put(void *data, int64_t at, typename dvti_stored<D>::type raw,
                                   int bytes) {
    if constexpr (D != ANY)
        ((typename dvti_stored<D>::type *)data)[at] = raw;
    else if (bytes == 8)
        ((uint64_t *)data)[at] = raw;
    else if (bytes == 4)
        ((unsigned *)data)[at] = (unsigned)raw;
    else if (bytes == 2)
        ((unsigned short *)data)[at] = (unsigned short)raw;
    else
        ((unsigned char *)data)[at] = (unsigned char)raw;
}

/* Operand K of a thread: the value that does not change, and U groups in flight. */
template <int K, int D> struct dvti_operand {
    dvti_group<D, D == ANY ? 1 : N> group[U];
    T single;

    __device__ inline T widen(const dvti_kelementwise &p, typename dvti_stored<D>::type raw) const {
        if constexpr (K == 1 && CONDITION)
            return dvti_ew_condition<D>(raw, p.dtype[K]);
        else
            return dvti_ew_widen<D>(raw, p.dtype[K]);
    }

    __device__ inline void prepare(const dvti_kelementwise &p) {
        single = 0;
        if (p.kind[K] == DVTI_EW_SINGLE)
            single = widen(p, dvti_ew_get<D>(p.data[K], 0, p.bytes[K]));
        if (p.kind[K] == DVTI_EW_SCALAR)
            single = IS_INT ? (T)p.i : (T)p.f;
    }

    __device__ inline void load(const dvti_kelementwise &p, int u, int64_t at) {
        if (p.kind[K] == DVTI_EW_EACH) {
            if constexpr (N > 1 && D != ANY)
                group[u].word =
                    *(decltype(group[u].word) *)((typename dvti_stored<D>::type *)p.data[K] + at);
            else
                group[u].v[0] = dvti_ew_get<D>(p.data[K], at, p.bytes[K]);
        } else if (!FLAT && p.kind[K] == DVTI_EW_GROUP)
            group[u].v[0] = dvti_ew_get<D>(p.data[K], at, p.bytes[K]);
    }

    /* Loads an element of the tail. There is one row then, so a repeated operand is the same for
       all elements. */
    __device__ inline void load_one(const dvti_kelementwise &p, int64_t at) {
        if (p.kind[K] == DVTI_EW_EACH)
            group[0].v[0] = dvti_ew_get<D>(p.data[K], at, p.bytes[K]);
    }

    /* Returns the stored element, for copies within one dtype. A conversion to float would make a
       signaling NaN of 16 bits quiet. */
    __device__ inline typename dvti_stored<D>::type stored(const dvti_kelementwise &p, int u,
                                                           int j) const {
        if (p.kind[K] == DVTI_EW_SINGLE)
            return dvti_ew_get<D>(p.data[K], 0, p.bytes[K]);
        return group[u].v[!FLAT && p.kind[K] == DVTI_EW_GROUP ? 0 : j];
    }

    __device__ inline T value(const dvti_kelementwise &p, int u, int j) const {
        if (p.kind[K] >= DVTI_EW_SINGLE)
            return single;
        return widen(p, !FLAT && p.kind[K] == DVTI_EW_GROUP ? group[u].v[0] : group[u].v[j]);
    }
};

/* ---- groups of four elements of any dtype ---- */
#if MIXED
/* The dtypes that groups have, by the class to compute in; the host uses programs with N = 1 for
   others. NVRTC takes twice as long as for N = 1, and longer for all nine. */
template <int D> __device__ constexpr bool dvti_mixed_reads() {
    return IS_INT         ? !DVTI_IS_FLOAT(D)
           : sizeof(T) == 4 ? D != DVT_F64 && D != DVT_I64
                            : D == DVT_BOOL || sizeof(typename dvti_stored<D>::type) >= 4;
}

template <int D> __device__ constexpr bool dvti_mixed_writes() {
    return D == DVT_BOOL || (IS_INT           ? D == DVT_I64 || D == DVT_I32
                             : sizeof(T) == 4 ? DVTI_IS_FLOAT(D) && D != DVT_F64
                                              : D == DVT_F64 || D == DVT_F32);
}

/* Calls F<D>() for the dtype. */
#define DVTI_EACH_DTYPE(dtype, F)                                                                  \
    switch (dtype) {                                                                               \
    case DVT_F32:                                                                               \
        return F(DVT_F32);                                                                    \
    case DVT_F64:                                                                               \
        return F(DVT_F64);                                                                    \
    case DVT_F16:                                                                               \
        return F(DVT_F16);                                                                    \
    case DVT_BF16:                                                                              \
        return F(DVT_BF16);                                                                   \
    case DVT_I8:                                                                                \
        return F(DVT_I8);                                                                     \
    case DVT_U8:                                                                                \
        return F(DVT_U8);                                                                     \
    case DVT_I32:                                                                               \
        return F(DVT_I32);                                                                    \
    case DVT_I64:                                                                               \
        return F(DVT_I64);                                                                    \
    default:                                                                                       \
        return F(DVT_BOOL);                                                                        \
    }

template <int K> struct dvti_mixed : dvti_operand<K, ANY> {
    uint4 raw[U][2];
    T values[N];

    __device__ inline void load(const dvti_kelementwise &p, int u, int64_t at) {
        if (p.kind[K] != DVTI_EW_EACH)
            return dvti_operand<K, ANY>::load(p, u, at);
        const char *from = (const char *)p.data[K] + at * p.bytes[K];
        if (p.bytes[K] >= 4)
            raw[u][0] = *(const uint4 *)from;
        if (p.bytes[K] == 8)
            raw[u][1] = *(const uint4 *)(from + 16);
        if (p.bytes[K] == 2) {
            const uint2 half = *(const uint2 *)from;
            raw[u][0].x = half.x;
            raw[u][0].y = half.y;
        }
        if (p.bytes[K] == 1)
            raw[u][0].x = *(const unsigned *)from;
    }

    template <int D> __device__ inline void widen_all(int u) {
        if constexpr (dvti_mixed_reads<D>())
            widen_these<D>(u);
    }

    template <int D> __device__ inline void widen_these(int u) {
        typename dvti_stored<D>::type e[N];
        memcpy(e, raw[u], sizeof e);
#pragma unroll
        for (int j = 0; j < N; j++)
            if constexpr (K == 1 && CONDITION)
                values[j] = dvti_ew_condition<D>(e[j], D);
            else
                values[j] = dvti_widen<D, T>(e[j]);
    }

    __device__ inline void open(const dvti_kelementwise &p, int u) {
        if (p.kind[K] != DVTI_EW_EACH) {
            const T same = this->value(p, u, 0);
#pragma unroll
            for (int j = 0; j < N; j++)
                values[j] = same;
            return;
        }
#define DVTI_WIDEN(D) widen_all<D>(u)
        DVTI_EACH_DTYPE(p.dtype[K], DVTI_WIDEN)
    }
};

template <int D> __device__ inline void dvti_mixed_put_these(void *to, const T (&values)[N]) {
    typename dvti_stored<D>::type e[N];
    uint4 raw[2];
#pragma unroll
    for (int j = 0; j < N; j++)
        e[j] = dvti_narrow<D>(values[j]);
    memcpy(raw, e, sizeof e);
    if constexpr (sizeof e >= 16)
        *(uint4 *)to = raw[0];
    if constexpr (sizeof e == 32)
        ((uint4 *)to)[1] = raw[1];
    if constexpr (sizeof e == 8)
        *(uint2 *)to = *(const uint2 *)&raw[0];
    if constexpr (sizeof e == 4)
        *(unsigned *)to = raw[0].x;
}

template <int D> __device__ inline void dvti_mixed_put_as(void *to, const T (&values)[N]) {
    if constexpr (dvti_mixed_writes<D>())
        dvti_mixed_put_these<D>(to, values);
}

__device__ inline void dvti_mixed_put(const dvti_kelementwise &p, int64_t at,
                                      const T (&values)[N]) {
    void *to = (char *)p.data[0] + at * p.bytes[0];
#define DVTI_PUT(D) dvti_mixed_put_as<D>(to, values)
    DVTI_EACH_DTYPE(p.dtype[0], DVTI_PUT)
}

typedef dvti_mixed<1> dvti_first;
typedef dvti_mixed<2> dvti_second;
typedef dvti_mixed<3> dvti_third;
#else
typedef dvti_operand<1, D1> dvti_first;
typedef dvti_operand<2, D2> dvti_second;
typedef dvti_operand<3, D3> dvti_third;
#endif

__device__ inline void dvti_prepare(const dvti_kelementwise &p, dvti_first &a, dvti_second &b,
                                    dvti_third &c) {
    a.prepare(p);
    if (N_IN > 1)
        b.prepare(p);
    if (N_IN > 2)
        c.prepare(p);
}

__device__ inline typename dvti_stored<D0>::type
dvti_ew_result(const dvti_kelementwise &p, const dvti_operand<1, D1> &a,
               const dvti_operand<2, D2> &b, const dvti_operand<3, D3> &c, int u, int j) {
    if constexpr (COPIES && D0 == D1 && D0 != ANY)
        return a.stored(p, u, j);
    else {
        const T x = a.value(p, u, j), y = N_IN > 1 ? b.value(p, u, j) : (T)0,
                z = N_IN > 2 ? c.value(p, u, j) : (T)0;
        return dvti_ew_narrow<D0>(dvti_apply(p, x, y, z), p.dtype[0]);
    }
}

/* ---- positions ---- */
#if WIDE
typedef int64_t dvti_position;
#else
typedef int dvti_position;
#endif

struct dvti_places {
    dvti_position of[4]; /* offsets in elements from each array's first one */
};

__device__ inline dvti_places dvti_locate(const dvti_kelementwise &p, dvti_position at) {
    dvti_places places;
    int k;
    for (k = 0; k < 4; k++)
        places.of[k] = 0;
#pragma unroll 1
    for (int axis = FLAT ? 0 : (int)p.ndim - 1; axis > 0; axis--) {
        const dvti_position next = dvti_divide(at, p.axis[axis]);
        const dvti_position index = at - next * (dvti_position)p.axis[axis].divisor;
        for (k = 0; k <= N_IN; k++)
            places.of[k] += index * (dvti_position)p.stride[k][axis];
        at = next;
    }
    for (k = 0; k <= N_IN; k++)
        places.of[k] += at * (dvti_position)p.stride[k][0];
    return places;
}

/* Minimum blocks per multiprocessor; 0: the compiler's choice. For float64 on 10.0 the compiler
   limits a thread to 40 registers and spills temporaries of a division or a sine to the stack. For
   powers of float computed in double it takes 64 on every architecture. Two blocks allow 128. */
#define RESIDENT (DOUBLES && (sizeof(T) == 4 || __CUDA_ARCH__ >= 1000) ? 2 : 0)

#if TILE
/* An operand in another axis order, in tiles of 32 by 32 elements. Shared memory is written along
   the operand's contiguous axis and read along the result's. A column ends in a word of padding,
   which avoids bank conflicts both times.

     operand's memory --> cell[column][row] --> result's memory
                          32 x 33 */
template <int K, int D> struct dvti_tile {
    typedef typename dvti_stored<D>::type element;
    element cell[32][32 + (sizeof(element) < 4 ? 4 / sizeof(element) : 1)];

    __device__ inline void fill(const dvti_kelementwise &p, int64_t from, int rows, int columns) {
        const int row = threadIdx.x & 31, first = threadIdx.x >> 5;
        element raw[4];
        int i;
        for (i = 0; i < 4; i++)
            if (row < rows && first + 8 * i < columns)
                raw[i] = dvti_ew_get<D>(
                    p.data[K], from + row * p.row_step[K] + (first + 8 * i) * p.column_step[K],
                    p.bytes[K]);
        for (i = 0; i < 4; i++)
            if (row < rows && first + 8 * i < columns)
                cell[first + 8 * i][row] = raw[i];
    }
};

/* Computes a tile of 32 x 32 results, 8 rows at a time, one warp per row. */
extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_elementwise_tile(const dvti_kelementwise p) {
    __shared__ dvti_tile<1, ACROSS & 1 ? D1 : DVT_BOOL> ta;
    __shared__ dvti_tile<2, ACROSS & 2 ? D2 : DVT_BOOL> tb;
    __shared__ dvti_tile<3, ACROSS & 4 ? D3 : DVT_BOOL> tc;
    dvti_first a;
    dvti_second b;
    dvti_third c;
    const int last = (int)p.ndim - 1, column = threadIdx.x & 31;
    const dvti_position n = (dvti_position)p.n;
    dvti_prepare(p, a, b, c);
    for (dvti_position tile = blockIdx.x; tile < n; tile += gridDim.x) {
        const dvti_places places = dvti_locate(p, tile);
        const dvti_position band = dvti_divide(tile, p.axis[last]);
        const dvti_position batch = dvti_divide(band, p.axis[last - 1]);
        const int64_t row = (int64_t)(band - batch * (dvti_position)p.axis[last - 1].divisor) * 32;
        const int64_t at = (int64_t)(tile - band * (dvti_position)p.axis[last].divisor) * 32;
        const int rows = (int)min(p.rows - row, (int64_t)32),
                  columns = (int)min(p.columns - at, (int64_t)32);
        __syncthreads(); /* the previous tile has been read */
        if constexpr (ACROSS & 1)
            ta.fill(p, places.of[1], rows, columns);
        if constexpr (ACROSS & 2)
            tb.fill(p, places.of[2], rows, columns);
        if constexpr (ACROSS & 4)
            tc.fill(p, places.of[3], rows, columns);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int r = (int)(threadIdx.x >> 5) + 8 * u;
            if (r >= rows || column >= columns)
                continue;
            if constexpr (ACROSS & 1)
                a.group[u].v[0] = ta.cell[column][r];
            else
                a.load(p, u, places.of[1] + r * p.row_step[1] + column * p.column_step[1]);
            if constexpr (ACROSS & 2)
                b.group[u].v[0] = tb.cell[column][r];
            else if constexpr (N_IN > 1)
                b.load(p, u, places.of[2] + r * p.row_step[2] + column * p.column_step[2]);
            if constexpr (ACROSS & 4)
                c.group[u].v[0] = tc.cell[column][r];
            else if constexpr (N_IN > 2)
                c.load(p, u, places.of[3] + r * p.row_step[3] + column * p.column_step[3]);
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int r = (int)(threadIdx.x >> 5) + 8 * u;
            if (r < rows && column < columns)
                dvti_ew_put<D0>(p.data[0],
                                places.of[0] + r * p.row_step[0] + column * p.column_step[0],
                                dvti_ew_result(p, a, b, c, u, 0), p.bytes[0]);
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_elementwise(const dvti_kelementwise p) {
    dvti_first a;
    dvti_second b;
    dvti_third c;
    const dvti_position n = (dvti_position)p.n, step = (dvti_position)dvti_threads() * U;
    dvti_prepare(p, a, b, c);
    for (dvti_position first = (dvti_position)blockIdx.x * blockDim.x * U + threadIdx.x; first < n;
         first += step) {
        dvti_position to[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const dvti_position at = first + u * blockDim.x;
            if (at < n) {
                const dvti_places places = dvti_locate(p, at);
                to[u] = places.of[0];
                a.load(p, u, places.of[1]);
                if (N_IN > 1)
                    b.load(p, u, places.of[2]);
                if (N_IN > 2)
                    c.load(p, u, places.of[3]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; u++)
            if (first + u * blockDim.x < n) {
#if MIXED
                T out[N];
                a.open(p, u);
                if (N_IN > 1)
                    b.open(p, u);
                if (N_IN > 2)
                    c.open(p, u);
#pragma unroll
                for (int j = 0; j < N; j++)
                    out[j] = dvti_apply(p, a.values[j], N_IN > 1 ? b.values[j] : (T)0,
                                        N_IN > 2 ? c.values[j] : (T)0);
                dvti_mixed_put(p, to[u], out);
#else
                dvti_group<D0, N> out;
#pragma unroll
                for (int j = 0; j < N; j++)
                    out.v[j] = dvti_ew_result(p, a, b, c, u, j);
                if (N > 1)
                    *(decltype(out.word) *)((typename dvti_stored<D0>::type *)p.data[0] + to[u]) =
                        out.word;
                else
                    dvti_ew_put<D0>(p.data[0], to[u], out.v[0], p.bytes[0]);
#endif
            }
    }
    if (N > 1 && blockIdx.x == 0 && threadIdx.x < p.tail) {
        const int64_t at = p.n * N + threadIdx.x;
        a.load_one(p, at);
        if (N_IN > 1)
            b.load_one(p, at);
        if (N_IN > 2)
            c.load_one(p, at);
        dvti_ew_put<D0>(p.data[0], at, dvti_ew_result(p, a, b, c, 0, 0), p.bytes[0]);
    }
}
#endif
