/* Matrix products without tensor cores: out (batch, n, m) = a (batch, n, k) * b (batch, k, m), any
   strides of a and b.

   Variant: D the dtype. S the type in which operands are staged and summed: float, double, unsigned
   or uint64_t. Integers wrap alike in both, and dtypes below 64 bits need the low 32 bits only.
   KIND the kernel. WIDE (kernels rows and columns): V elements (16 bytes of S) can be read with one
   access. A_LIES, B_LIES (kernels of tiles): how a and b lie in memory, DVTI_MM_ flags. For the
   small tile these are read from the launch: small products have many layouts, and NVRTC takes
   longer than they do. A block's job is one tile of one matrix and one split of k; jobs are ordered
   in bands of rows.

     kernel   tile                            threads   accumulators per thread
     large    128x128 (128x64 for 8 bytes)    256       8x8 (8x4)
     medium   64x64                           128       8x4
     small    32x32                            64       4x4
     rows     n or m is 1, matrix contiguous along k: one warp or eight per element, lanes along k
     columns  n or m is 1, matrix contiguous across k: a lane per V columns, eight warps share k
     sum      adds the splits of k, in order

   All of them apply the epilogue (bias, relu or mask) to whole sums.

   Tiles of both operands lie in shared memory as [k][row or column], 4 V deep, with two stages:

          columns of b                 stage 0     stage 1
           +------+                    multiply    fetch the next 4 V of k
      4 V  |      |                    fetch       multiply
      +----+------+
      |    | tile |   rows of a x columns of b
      +----+------+

   Elements arrive by cp.async (sm_80 and up, where no conversion is needed). Otherwise they pass
   through registers. These are loaded before the arithmetic of the previous tile and stored after
   it. An operand that is contiguous along k is transposed when it is stored. Groups of V are
   permuted, group XOR 2 (k / V), so that 32 lanes of that store (8 lines x 4 groups of k) write to
   32 banks. A warp reads 8 groups of a and 4 of b per k. Its quarters read in turn, and two of them
   merge when lanes in pairs read the same group; the numbering of lanes makes both reads merge
   (Gray, maxas, 2014). Accumulators are float32 (fmaf) or the dtype's accumulator class; within a
   split, tiles add in ascending k.

   Reasons: one element per thread is limited by loads from global memory (about 1 % of the speed of
   a GEMM library). Tiles in shared memory are limited by loads from there (10 %). 8x8 accumulators
   per thread need 16 loads for 64 multiplications, and 16-byte accesses reduce those to 4. Two
   stages hide the latency of global memory behind 4 V * 64 multiplications. */

typedef typename dvti_stored<D>::type dvti_mm_element;

#define V ((int)(16 / sizeof(S)))

__device__ inline S dvti_mm_factor(dvti_mm_element v) {
    if constexpr (DVTI_IS_FLOAT(D))
        return dvti_widen<D, S>(v);
    else
        return (S)dvti_widen<D, int64_t>(v);
}

__device__ inline float dvti_mm_add(float a, float b, float sum) { return fmaf(a, b, sum); }
__device__ inline double dvti_mm_add(double a, double b, double sum) { return fma(a, b, sum); }
__device__ inline unsigned dvti_mm_add(unsigned a, unsigned b, unsigned sum) { return a * b + sum; }
__device__ inline uint64_t dvti_mm_add(uint64_t a, uint64_t b, uint64_t sum) { return a * b + sum; }

/* Returns element number `at` of the result, which is in this column, after the epilogue. Integers
   have none. */
template <class C>
__device__ inline dvti_mm_element dvti_mm_result(const dvti_kmatmul &p, int64_t at, int64_t col,
                                                 C v) {
    return p.mask && dvti_load_global<D, C>(p.mask, at) == 0
               ? dvti_narrow<D>((C)0)
               : dvti_epilogue<D>(v, p.bias, col * p.bias_step, p.relu);
}

__device__ inline dvti_mm_element dvti_mm_result(const dvti_kmatmul &, int64_t, int64_t,
                                                 unsigned v) {
    return dvti_narrow<D>((int64_t)v);
}

__device__ inline dvti_mm_element dvti_mm_result(const dvti_kmatmul &, int64_t, int64_t,
                                                 uint64_t v) {
    return dvti_narrow<D>((int64_t)v);
}

template <class T, int N> struct alignas(sizeof(T) * N) dvti_mm_pack { T v[N]; };

/* A job, and the first elements of its two matrices. */
struct dvti_mm_place : dvti_mm_job {
    int64_t a, b;
    bool partial;
};

__device__ inline int64_t dvti_mm_number() { return (int64_t)blockIdx.y * gridDim.x + blockIdx.x; }

__device__ inline dvti_mm_place dvti_mm_locate(const dvti_kmatmul &p) {
    dvti_mm_place at;
    (dvti_mm_job &)at = dvti_mm_find(p, dvti_mm_number());
    at.partial = p.splits > 1;
    at.a = at.b = 0;
    int64_t batch = at.batch;
#pragma unroll 1
    for (int axis = (int)p.ndim - 1; axis >= 0; axis--) {
        const int64_t index = batch % p.dim[axis];
        at.a += index * p.a_batch[axis];
        at.b += index * p.b_batch[axis];
        batch /= p.dim[axis];
    }
    return at;
}

/* Stores one result: into the array, or unrounded into its split's partial result. */
__device__ inline void dvti_mm_put(const dvti_kmatmul &p, bool partial, int64_t at, int64_t col,
                                   S v) {
    if (partial)
        ((S *)p.partial)[at] = v;
    else
        ((dvti_mm_element *)p.out)[at] = dvti_mm_result(p, at, col, v);
}

#if KIND <= 2 /* tiles: 0 small, 1 medium, 2 large */
#define MINE_ROWS (KIND == 0 ? 4 : 8)
#define MINE_COLS (KIND == 2 && V == 4 ? 8 : 4)
#define WARP_ROWS (KIND == 2 ? 2 : 1)
#define WARP_COLS (KIND == 0 ? 2 : 4)
#define ROWS (8 * MINE_ROWS * WARP_ROWS)
#define COLS (4 * MINE_COLS * WARP_COLS)
#define DEPTH (4 * V)
#define THREADS (32 * WARP_ROWS * WARP_COLS)

#if __CUDA_ARCH__ >= 800
#define ASYNC (sizeof(dvti_mm_element) == sizeof(S))
#else
#define ASYNC false
#endif

/* Copies into shared memory; the copy ends at dvti_mm_arrived. Stores zeros without reading when
   the source does not exist. */
template <int BYTES> __device__ inline void dvti_mm_copy(void *to, const void *from, bool there) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int bytes = there ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from),
                     "n"(BYTES), "r"(bytes)
                     : "memory");
#endif
}

__device__ inline void dvti_mm_arrived() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
#endif
}

/* The path of one operand into shared memory. T: rows of a or columns of b in a tile; both are
   called lines here. `lies` (LIES where it is known) says how the operand lies in memory. A thread
   moves UNITS units of V elements per tile:

     lies              thread             unit i          element e of a unit
     WIDE              V lines, one k     more k          next line, one access
     WIDE | ALONG_K    one line, V of k   more lines      next k
     ALONG_K           one line, V of k   more lines      next k, any strides
     0                 one line, one k    V more of k     next of these k, any strides */
template <int T> struct dvti_mm_side {
    static const int UNITS = T * DEPTH / V / THREADS;

    const dvti_mm_element *at; /* this thread's first element of the next tile */
    int64_t line_stride, k_stride;
    int line, k, spot; /* this thread's first line and k, its position in the tile */
    unsigned inside;   /* bit i is set when the line of unit i exists */
    dvti_mm_element held[UNITS][V];

    __device__ inline void begin(const void *data, int64_t matrix, int lies, int64_t stride,
                                 int64_t k_step, int64_t first, int64_t extent, int64_t k_first) {
        const int id = (int)threadIdx.x;
        const bool along = lies & DVTI_MM_ALONG_K, pack = lies == DVTI_MM_WIDE;
        line_stride = stride;
        k_stride = k_step;
        line = along ? id / 4 : pack ? id % (T / V) * V : id % T;
        k = along ? id % 4 * V : pack ? id / (T / V) : id / T;
        spot = place(lies, line, k);
        inside = 0;
#pragma unroll
        for (int i = 0; i < UNITS; i++)
            inside |= (unsigned)(first + line + (along ? i * (THREADS / 4) : 0) < extent) << i;
        at = (const dvti_mm_element *)data + matrix + (first + line) * line_stride +
             (k_first + k) * k_stride;
    }

    /* A tile whose layout is known, and not along k, is not permuted. */
    static __device__ inline int place(int lies, int line, int k) {
        const bool permuted = KIND == 0 || (lies & DVTI_MM_ALONG_K);
        return k * T + ((line / V) ^ (permuted ? k / V * 2 : 0)) * V + line % V;
    }

    /* Returns the distance of unit i, element e, from the thread's first element, in lines. */
    template <int LIES> static __device__ inline int line_step(int i, int e) {
        return LIES & DVTI_MM_ALONG_K ? i * (THREADS / 4) : LIES == DVTI_MM_WIDE ? e : 0;
    }
    template <int LIES> static __device__ inline int k_step(int i, int e) {
        return LIES & DVTI_MM_ALONG_K ? e
               : LIES == DVTI_MM_WIDE ? i * (THREADS * V / T)
                                      : (i * V + e) * (THREADS / T);
    }

    /* Returns the position in the tile of unit i, element e. Steps of 8 groups of lines do not
       change the XOR permutation. */
    template <int LIES> __device__ inline int spot_of(int i, int e) const {
        const int l = line_step<LIES>(i, e), d = k_step<LIES>(i, e);
        return (KIND != 0 && !(LIES & DVTI_MM_ALONG_K)) ||
                       ((LIES & DVTI_MM_ALONG_K) && THREADS / 4 / V % 8 == 0)
                   ? spot + l + d * T
                   : place(LIES, line + l, k + d);
    }

    /* Starts to move the next tile, of which k_left elements along k exist; `store` completes the
       move. */
    template <int LIES> __device__ inline void fetch(S *tile, int k_left) {
        constexpr bool ALONG = LIES & DVTI_MM_ALONG_K, FULL = LIES & DVTI_MM_WIDE;
        constexpr bool PACKED = FULL && !(ALONG && ASYNC);
        const int64_t line_1 = FULL && !ALONG ? 1 : line_stride, k_1 = FULL && ALONG ? 1 : k_stride;
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
#pragma unroll
            for (int e = 0; e < (PACKED ? 1 : V); e++) {
                const int l = line_step<LIES>(i, e), d = k_step<LIES>(i, e);
                const bool there = (inside >> i & 1) && k + d < k_left;
                const dvti_mm_element *from = at + l * line_1 + d * k_1;
                if constexpr (ASYNC)
                    dvti_mm_copy<(int)sizeof(S) * (PACKED ? V : 1)>(tile + spot_of<LIES>(i, e),
                                                                    there ? from : at, there);
                else if constexpr (PACKED) {
                    dvti_mm_pack<dvti_mm_element, V> pack = {};
                    if (there)
                        pack = *(const dvti_mm_pack<dvti_mm_element, V> *)from;
#pragma unroll
                    for (int j = 0; j < V; j++)
                        held[i][j] = pack.v[j];
                } else
                    held[i][e] = there ? *from : (dvti_mm_element)0;
            }
        }
        at += DEPTH * k_1;
    }

    template <int LIES> __device__ inline void store(S *tile) {
        if constexpr (!ASYNC) {
#pragma unroll
            for (int i = 0; i < UNITS; i++) {
                if constexpr (LIES == DVTI_MM_WIDE) {
                    dvti_mm_pack<S, V> pack;
#pragma unroll
                    for (int e = 0; e < V; e++)
                        pack.v[e] = dvti_mm_factor(held[i][e]);
                    *(dvti_mm_pack<S, V> *)(tile + spot_of<LIES>(i, 0)) = pack;
                } else {
#pragma unroll
                    for (int e = 0; e < V; e++)
                        tile[spot_of<LIES>(i, e)] = dvti_mm_factor(held[i][e]);
                }
            }
        }
    }
};

/* Calls a function of the side for its layout. All threads of a launch take the same branch. */
#if KIND == 0
#define DVTI_MM_MOVE(side, function, lies, ...)                                                    \
    ((lies) == 3   ? side.template function<3>(__VA_ARGS__)                                        \
     : (lies) == 2 ? side.template function<2>(__VA_ARGS__)                                        \
     : (lies) == 1 ? side.template function<1>(__VA_ARGS__)                                        \
                   : side.template function<0>(__VA_ARGS__))
#else
#define DVTI_MM_MOVE(side, function, lies, ...) side.template function<lies>(__VA_ARGS__)
#endif

__device__ inline int dvti_mm_depth(int64_t left) { return left < DEPTH ? (int)left : DEPTH; }

/* Multiplies V steps along k, of group `at`. */
__device__ inline void dvti_mm_multiply(const S *a, int a_lies, const S *b, int b_lies, int row,
                                        int col, int at, S (&sum)[MINE_ROWS][MINE_COLS]) {
#pragma unroll
    for (int k = 0; k < V; k++) {
        dvti_mm_pack<S, V> x[MINE_ROWS / V], y[MINE_COLS / V];
#pragma unroll
        for (int h = 0; h < MINE_ROWS / V; h++)
            x[h] = *(const dvti_mm_pack<S, V> *)(
                a + dvti_mm_side<ROWS>::place(a_lies, row, at * V) + h * 8 * V + k * ROWS);
#pragma unroll
        for (int h = 0; h < MINE_COLS / V; h++)
            y[h] = *(const dvti_mm_pack<S, V> *)(
                b + dvti_mm_side<COLS>::place(b_lies, col + h * 4 * V, at * V) + k * COLS);
#pragma unroll
        for (int i = 0; i < MINE_ROWS; i++)
#pragma unroll
            for (int j = 0; j < MINE_COLS; j++)
                sum[i][j] = dvti_mm_add(x[i / V].v[i % V], y[j / V].v[j % V], sum[i][j]);
    }
}

/* Stores V adjacent numbers that begin in column `col`. */
template <class T>
__device__ inline void dvti_mm_put_pack(const dvti_kmatmul &p, T *to, int64_t col,
                                        const dvti_mm_pack<T, V> &pack) {
    if (p.wide) /* all columns are inside */
        *(dvti_mm_pack<T, V> *)to = pack;
    else
#pragma unroll
        for (int e = 0; e < V; e++)
            if (col + e < p.m)
                to[e] = pack.v[e];
}

/* Stores V adjacent results of one row. */
__device__ inline void dvti_mm_put_group(const dvti_kmatmul &p, bool partial, int64_t row,
                                         int64_t col, int64_t out, const S *v) {
    const int64_t at = out + row * p.m + col;
    if (partial) {
        dvti_mm_pack<S, V> pack;
#pragma unroll
        for (int e = 0; e < V; e++)
            pack.v[e] = v[e];
        dvti_mm_put_pack(p, (S *)p.partial + at, col, pack);
    } else {
        dvti_mm_pack<dvti_mm_element, V> pack = {};
#pragma unroll
        for (int e = 0; e < V; e++)
            if (col + e < p.m) /* mask and bias end there */
                pack.v[e] = dvti_mm_result(p, at + e, col + e, v[e]);
        dvti_mm_put_pack(p, (dvti_mm_element *)p.out + at, col, pack);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, KIND < 2                                ? 4
                                                      : ASYNC && (V == 4 || DVTI_IS_FLOAT(D)) ? 2
                                                                                              : 1)
    dvti_matmul_tiles(const dvti_kmatmul p) {
    alignas(16) __shared__ S tile_a[2][ROWS * DEPTH];
    alignas(16) __shared__ S tile_b[2][COLS * DEPTH];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    /* Bits 1 to 3 of the lane select the group of a, bits 0 and 4 that of b. So lanes in pairs read
       the same group: lanes i and i XOR 1 of a, i and i XOR 2 of b. */
    const int row = warp / WARP_COLS * 8 * MINE_ROWS + (lane >> 1 & 7) * V,
              col = warp % WARP_COLS * 4 * MINE_COLS + (lane & 1 | lane >> 3 & 2) * V;
    __shared__ dvti_mm_place at; /* in shared memory, because the accumulators need all registers */
    int64_t left;                /* positions of k left, from the current stage on */
    S sum[MINE_ROWS][MINE_COLS] = {};
    dvti_mm_side<ROWS> a;
    dvti_mm_side<COLS> b;
    if (dvti_mm_number() >= p.jobs || (p.special && *p.special == 0))
        return;
    if (threadIdx.x == 0)
        at = dvti_mm_locate(p);
    __syncthreads();
    left = at.k_end - at.k;
    a.begin(p.a, at.a, A_LIES, p.a_row, p.a_k, at.row * ROWS, p.n, at.k);
    b.begin(p.b, at.b, B_LIES, p.b_col, p.b_k, at.col * COLS, p.m, at.k);
    /* The first stage only moves. NVRTC takes time for each copy of the code, so there is one copy
       of the moves, and one of the stores of a row. */
    bool first = true;
    for (int stage = 1; left > 0; stage ^= 1) {
        const bool more = first || left > DEPTH; /* uniform across the block */
        const int depth = dvti_mm_depth(first ? left : left - DEPTH);
        if (more) {
            DVTI_MM_MOVE(a, fetch, A_LIES, tile_a[stage ^ 1], depth);
            DVTI_MM_MOVE(b, fetch, B_LIES, tile_b[stage ^ 1], depth);
        }
        if (!first) {
#pragma unroll
            for (int group = 0; group < DEPTH / V; group++)
                dvti_mm_multiply(tile_a[stage], A_LIES, tile_b[stage], B_LIES, row, col, group,
                                 sum);
            left -= DEPTH;
        }
        if (more) {
            DVTI_MM_MOVE(a, store, A_LIES, tile_a[stage ^ 1]);
            DVTI_MM_MOVE(b, store, B_LIES, tile_b[stage ^ 1]);
            dvti_mm_arrived();
        }
        __syncthreads();
        first = false;
    }
#pragma unroll 1
    for (int i = 0; i < MINE_ROWS; i++) {
        const int64_t r = at.row * ROWS + row + i / V * 8 * V + i % V;
#pragma unroll
        for (int h = 0; h < MINE_COLS / V; h++) {
            const int64_t c = at.col * COLS + col + h * 4 * V;
            if (r < p.n && c < p.m)
                dvti_mm_put_group(p, at.partial, r, c, at.out, &sum[0][h * V]);
        }
#pragma unroll
        for (int j = 0; j + 1 < MINE_ROWS; j++) /* row 0 is always next: an index needs memory */
#pragma unroll
            for (int h = 0; h < MINE_COLS; h++)
                sum[j][h] = sum[j + 1][h];
    }
}
#endif

/* Vector products: a is the row (1, k), b the matrix (k, m). The host swaps the operands when m is
   1. */
#if KIND == 3
/* Four units of V elements per lane are in flight. The minimum number of blocks is the compiler's
   choice (0): it takes five, 48 registers per thread. On 12.0 the accumulators of float64 do not
   fit into those. */
extern "C" __global__ void __launch_bounds__(256, D == DVT_F64 && __CUDA_ARCH__ >= 1200 ? 2 : 0)
    dvti_matmul_rows(const dvti_kmatmul p) {
    typedef dvti_mm_pack<dvti_mm_element, V> pack;
    __shared__ S part[8];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, team = (int)p.team;
    const int unit = WIDE ? V : 1;
    const dvti_mm_place at = dvti_mm_locate(p);
    if (dvti_mm_number() >= p.jobs)
        return;
    const int64_t col = at.col * (8 / team) + warp / team;
    const dvti_mm_element *x = (const dvti_mm_element *)p.a + at.a;
    const dvti_mm_element *w =
        (const dvti_mm_element *)p.b + at.b + (col < p.m ? col : 0) * p.b_col;
    const int64_t step = 32 * unit * team;
    S sum[4] = {};
    for (int64_t k = at.k + (warp % team * 32 + lane) * unit; k < at.k_end; k += 4 * step) {
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int64_t here = k + u * step;
            if (here < at.k_end) {
                if constexpr (WIDE) {
                    const pack f = *(const pack *)(x + here), g = *(const pack *)(w + here);
#pragma unroll
                    for (int e = 0; e < V; e++)
                        sum[u] =
                            dvti_mm_add(dvti_mm_factor(f.v[e]), dvti_mm_factor(g.v[e]), sum[u]);
                } else
                    sum[u] = dvti_mm_add(dvti_mm_factor(x[here * p.a_k]),
                                         dvti_mm_factor(w[here * p.b_k]), sum[u]);
            }
        }
    }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], other);
    if (lane == 0)
        part[warp] = sum[0];
    __syncthreads();
    if (lane == 0 && warp % team == 0 && col < p.m) {
        for (int i = 1; i < team; i++)
            sum[0] += part[warp + i];
        dvti_mm_put(p, at.partial, at.out + col, col, sum[0]);
    }
}
#endif

#if KIND == 4
/* Computes 32 V columns per block. The V columns of a lane are adjacent when they are read with one
   access, else 32 apart. */
extern "C" __global__ void __launch_bounds__(256) dvti_matmul_columns(const dvti_kmatmul p) {
    typedef dvti_mm_pack<dvti_mm_element, V> pack;
    alignas(16) __shared__ S part[8][32 * V];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const dvti_mm_place at = dvti_mm_locate(p);
    if (dvti_mm_number() >= p.jobs)
        return;
    const int64_t first = at.col * 32 * V, col = first + lane * (WIDE ? V : 1);
    const dvti_mm_element *x = (const dvti_mm_element *)p.a + at.a;
    const dvti_mm_element *w = (const dvti_mm_element *)p.b + at.b + col * p.b_col;
    S sum[V] = {};
#pragma unroll 4
    for (int64_t k = at.k + warp; k < at.k_end; k += 8) {
        const S factor = dvti_mm_factor(x[k * p.a_k]);
        if constexpr (WIDE) {
            pack g = {};
            if (col < p.m)
                g = *(const pack *)(w + k * p.b_k);
#pragma unroll
            for (int e = 0; e < V; e++)
                sum[e] = dvti_mm_add(factor, dvti_mm_factor(g.v[e]), sum[e]);
        } else {
#pragma unroll
            for (int e = 0; e < V; e++)
                if (col + 32 * e < p.m)
                    sum[e] = dvti_mm_add(factor, dvti_mm_factor(w[k * p.b_k + 32 * e * p.b_col]),
                                         sum[e]);
        }
    }
#pragma unroll
    for (int e = 0; e < V; e++)
        part[warp][WIDE ? lane * V + e : lane + 32 * e] = sum[e];
    __syncthreads();
    if ((int)threadIdx.x < 32 * V && first + threadIdx.x < p.m) {
        S total = part[0][threadIdx.x];
        for (int i = 1; i < 8; i++)
            total += part[i][threadIdx.x];
        dvti_mm_put(p, at.partial, at.out + first + threadIdx.x, first + threadIdx.x, total);
    }
}
#endif

#if KIND == 5
extern "C" __global__ void __launch_bounds__(256) dvti_matmul_sum(const dvti_kmatmul p) {
    const int64_t n = p.batches * p.n * p.m;
    for (int64_t at = dvti_thread(); at < n; at += dvti_threads()) {
        S total = ((const S *)p.partial)[at];
#pragma unroll 4
        for (int64_t i = 1; i < p.splits; i++)
            total += ((const S *)p.partial)[i * n + at];
        dvti_mm_put(p, false, at, at % p.m, total);
    }
}
#endif
