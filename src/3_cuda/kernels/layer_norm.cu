/* Layer norm and RMSNorm over contiguous rows of n elements, and their gradients to x:

     y     = (x - mean) * scale * gamma + beta
     dx    = scale * (d - sum(d) / n - z * sum(d z) / n)
     scale = 1 / sqrt(variance + epsilon)
     d     = dy * gamma
     z     = (x - mean) * scale

   RMS: mean is 0, and sum(d) counts as 0. `stats` has mean and scale of each row. The gradients of
   gamma and beta are sums over rows: batch_norm.cu.

   `lanes` threads share a row: 1 to 32 adjacent ones of a warp, then 256 or 512. Each keeps PER
   elements in registers, EACH of them adjacent in memory and moved by one access. So a row is read
   once and written once. The variance is the mean of the squared differences from the mean.

     lanes = 4:    thread 0 1 2 3 | 4 5 6 7 | ...     one row per 4 threads

   The mean is a row's first element plus the mean of the differences from it. So it is exact to one
   rounding where x is far from 0. The variance is the mean of the squared differences from it.

   Rows beyond 512 * PER elements (LONG) are read twice. The first read gives each thread the mean
   and the squares of its own elements, tile by tile (Chan, Golub and LeVeque, 1979).

   Elements of up to 32 bits are computed in float32, others in float64.

   Variant: D, OUT, W: dtypes of x, of the result, of gamma and beta; PER; EACH; LONG; RMS; WIDE:
   positions in a row have 64 bits, else 32; GRADIENT: the kernel for dx. */

template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };

typedef dvti_either<D == DVT_F64 || OUT == DVT_F64, double, float>::type dvti_real;
typedef dvti_either<WIDE, int64_t, int>::type dvti_index;

/* The row and lane of this thread. */
struct dvti_spot {
    int64_t start; /* of the row, in elements */
    int lane, lanes;
    dvti_index n; /* elements of the row; 0: this thread has no row */
};

/* Returns the position of the group of EACH elements that has a thread's element k, in the tile
   from `base` on. n is a multiple of EACH: the whole group is inside the row, or outside. */
__device__ inline dvti_index dvti_place(const dvti_spot &spot, dvti_index base, int k) {
    return base + (k / EACH * spot.lanes + spot.lane) * EACH;
}

/* Loads PER elements of a tile; positions past the end are 0. */
template <int T>
__device__ inline void dvti_tile_load(const void *data, int64_t start, const dvti_spot &spot,
                                      dvti_index base, dvti_real *v) {
    typedef dvti_group<T, EACH> group;
#pragma unroll
    for (int k = 0; k < PER; k += EACH) {
        const dvti_index at = dvti_place(spot, base, k);
        group e;
        if (at < spot.n)
            e.word = *(const decltype(e.word) *)((const typename dvti_stored<T>::type *)data +
                                                 start + at);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            v[k + j] = at < spot.n ? dvti_widen<T, dvti_real>(e.v[j]) : (dvti_real)0;
    }
}

template <int T>
__device__ inline void dvti_tile_store(void *data, const dvti_spot &spot, dvti_index base,
                                       const dvti_real *v) {
    typedef dvti_group<T, EACH> group;
#pragma unroll
    for (int k = 0; k < PER; k += EACH) {
        const dvti_index at = dvti_place(spot, base, k);
        group e;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            e.v[j] = dvti_narrow<T>(v[k + j]);
        if (at < spot.n)
            *(decltype(e.word) *)((typename dvti_stored<T>::type *)data + spot.start + at) = e.word;
    }
}

/* Sums over the lanes of a row. Every lane gets the result, and all threads must call this. */
__device__ inline dvti_real dvti_join(dvti_real v, int lanes) {
    __shared__ dvti_real all[16];
    for (int step = 1; step < lanes && step < 32; step *= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    if (lanes > 32) {
        const int warps = lanes / 32;
        if (threadIdx.x % 32 == 0)
            all[threadIdx.x / 32] = v;
        __syncthreads();
        v = all[threadIdx.x % warps];
        for (int step = 1; step < warps; step *= 2)
            v += __shfl_xor_sync(0xffffffffu, v, step);
        __syncthreads();
    }
    return v;
}

#if GRADIENT
/* Replaces x by z and returns d in `d`. */
__device__ inline void dvti_tile_terms(const dvti_klayer_norm &p, const dvti_spot &spot,
                                       dvti_index base, dvti_real mean, dvti_real scale,
                                       dvti_real *x, dvti_real *d) {
    dvti_tile_load<D>(p.x, spot.start, spot, base, x);
    dvti_tile_load<OUT>(p.g, spot.start, spot, base, d);
#pragma unroll
    for (int k = 0; k < PER; k++)
        x[k] = RMS ? x[k] * scale : (x[k] - mean) * scale;
    if (p.gamma) {
        dvti_real w[PER];
        dvti_tile_load<W>(p.gamma, 0, spot, base, w);
#pragma unroll
        for (int k = 0; k < PER; k++)
            d[k] *= w[k];
    }
}

__device__ inline void dvti_row(const dvti_klayer_norm &p, const dvti_spot &spot, int64_t row) {
    const dvti_real mean = spot.n ? ((const dvti_real *)p.stats)[2 * row] : (dvti_real)0,
                    scale = spot.n ? ((const dvti_real *)p.stats)[2 * row + 1] : (dvti_real)0,
                    n = (dvti_real)p.n;
    dvti_real x[PER], d[PER], sum = 0, product = 0;
    for (dvti_index base = 0; base < p.n; base += PER * spot.lanes) {
        dvti_tile_terms(p, spot, base, mean, scale, x, d);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            sum += d[k]; /* 0 past the end */
            product += d[k] * x[k];
        }
        if (!LONG)
            break;
    }
    sum = RMS ? (dvti_real)0 : dvti_join(sum, spot.lanes) / n;
    product = dvti_join(product, spot.lanes) / n;
    for (dvti_index base = 0; base < p.n; base += PER * spot.lanes) {
        if (LONG)
            dvti_tile_terms(p, spot, base, mean, scale, x, d);
#pragma unroll
        for (int k = 0; k < PER; k++)
            d[k] = scale * (RMS ? d[k] - x[k] * product : d[k] - sum - x[k] * product);
        dvti_tile_store<D>(p.out, spot, base, d);
        if (!LONG)
            break;
    }
}
#else
/* Returns the first element of the row. */
__device__ inline dvti_real dvti_first(const dvti_klayer_norm &p, const dvti_spot &spot) {
    return spot.n ? dvti_load<D, dvti_real>(p.x, spot.start) : (dvti_real)0;
}

/* Adds the differences of a tile from a center. */
__device__ inline dvti_real dvti_tile_sum(const dvti_spot &spot, dvti_index base,
                                          const dvti_real *x, dvti_real center) {
    dvti_real sum = 0;
#pragma unroll
    for (int k = 0; k < PER; k++)
        sum += dvti_place(spot, base, k) < spot.n ? x[k] - center : (dvti_real)0;
    return sum;
}

/* Adds the squared differences of a tile from a center. */
__device__ inline dvti_real dvti_tile_squares(const dvti_spot &spot, dvti_index base,
                                              const dvti_real *x, dvti_real center) {
    dvti_real sum = 0;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const dvti_real far = x[k] - center;
        if (dvti_place(spot, base, k) < spot.n)
            sum += far * far;
    }
    return sum;
}

#if LONG
/* Computes the mean and the sum of squared differences from it of a row. */
__device__ inline void dvti_moments(const dvti_klayer_norm &p, const dvti_spot &spot,
                                    dvti_real &mean, dvti_real &squares) {
    const dvti_real first = RMS ? (dvti_real)0 : dvti_first(p, spot);
    dvti_real count = 0, own = 0, squared = 0; /* own: the thread's mean, relative to `first` */
    for (dvti_index base = 0; base < p.n; base += PER * spot.lanes) {
        dvti_real x[PER], here = 0, center = 0;
        dvti_tile_load<D>(p.x, spot.start, spot, base, x);
        if (!RMS) {
#pragma unroll
            for (int k = 0; k < PER; k++)
                here += dvti_place(spot, base, k) < spot.n ? (dvti_real)1 : (dvti_real)0;
            if (here > 0)
                center = dvti_tile_sum(spot, base, x, first) / here;
        }
        squared += dvti_tile_squares(spot, base, x, first + center);
        if (here > 0) {
            const dvti_real far = center - own, both = count + here;
            own += far * here / both;
            squared += far * far * count * here / both;
            count = both;
        }
    }
    mean = RMS ? (dvti_real)0 : dvti_join(count * own, spot.lanes) / (dvti_real)p.n;
    squares = dvti_join(squared + count * (own - mean) * (own - mean), spot.lanes);
    mean += first;
}
#endif

__device__ inline void dvti_row(const dvti_klayer_norm &p, const dvti_spot &spot, int64_t row) {
    dvti_real x[PER], mean = 0, squares;
#if LONG
    dvti_moments(p, spot, mean, squares);
#else
    dvti_tile_load<D>(p.x, spot.start, spot, 0, x);
    if (!RMS) {
        const dvti_real first = dvti_first(p, spot);
        mean = first + dvti_join(dvti_tile_sum(spot, 0, x, first), spot.lanes) / (dvti_real)p.n;
    }
    squares = dvti_join(dvti_tile_squares(spot, 0, x, mean), spot.lanes);
#endif
    const dvti_real scale = (dvti_real)1 / sqrt(squares / (dvti_real)p.n + (dvti_real)p.epsilon);
    for (dvti_index base = 0; base < p.n; base += PER * spot.lanes) {
        dvti_real w[PER];
        if (LONG)
            dvti_tile_load<D>(p.x, spot.start, spot, base, x);
#pragma unroll
        for (int k = 0; k < PER; k++)
            x[k] = (x[k] - mean) * scale;
        if (p.gamma) {
            dvti_tile_load<W>(p.gamma, 0, spot, base, w);
#pragma unroll
            for (int k = 0; k < PER; k++)
                x[k] *= w[k];
        }
        if (p.beta) {
            dvti_tile_load<W>(p.beta, 0, spot, base, w);
#pragma unroll
            for (int k = 0; k < PER; k++)
                x[k] += w[k];
        }
        dvti_tile_store<OUT>(p.out, spot, base, x);
        if (!LONG)
            break;
    }
    if (p.stats && spot.n && spot.lane == 0) {
        ((dvti_real *)p.stats)[2 * row] = mean;
        ((dvti_real *)p.stats)[2 * row + 1] = scale;
    }
}
#endif

/* One block per multiprocessor is enough: left to itself, the compiler spills some variants. */
extern "C" __global__ void __launch_bounds__(512, 1) dvti_layer_norm(const dvti_klayer_norm p) {
    const int lanes = (int)p.lanes, rows = (int)blockDim.x / lanes;
    for (int64_t group = blockIdx.x; group < p.groups; group += gridDim.x) {
        const int64_t row = group * rows + threadIdx.x / lanes;
        dvti_spot spot;
        spot.lanes = lanes;
        spot.lane = (int)threadIdx.x % lanes;
        spot.n = row < p.rows ? (dvti_index)p.n : 0;
        spot.start = row * p.n;
        dvti_row(p, spot, row);
    }
}
