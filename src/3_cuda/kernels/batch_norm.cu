/* Batch norm: statistics of each channel of x (a, c, b), contiguous, over its count = a * b
   elements, normalization by them, and the gradients:

     y      = (x - mean) * scale * gamma + beta
     dbeta  = sum(dy)
     dgamma = sum(dy z)
     dx     = gamma * scale * (dy - dbeta / count - z * dgamma / count)
     scale  = 1 / sqrt(variance + epsilon)
     z      = (x - mean) * scale

   Also the gradients of layer norm's gamma and beta, which are sums over rows (ROWS): there a
   "channel" is a column, and `stats` has mean and scale of each row.

   A block of 256 threads has `width` adjacent channels, a power of two, and 256 / width lanes for
   each. Elements of a channel lie b at a time in memory: width is 1 where b is large, 32 where the
   neighbors of an element belong to other channels.

     width = 4:    thread 0 1 2 3 | 4 5 6 7 | ...     lane 0 of channels 0 to 3, lane 1, ...

   A sum over many elements has `parts` parts, of which each block writes one. The kernel that
   follows joins them again in each of its blocks, in one order: two launches for the result and two
   for the gradients. Nothing is added atomically, so the bits are the same each time. Means are
   sums of differences from an element or from the first part's mean, as in layer_norm.cu.

   Elements of up to 32 bits are computed in float32, others in float64.

   Variant: D, OUT, W: dtypes of x, of the result, of gamma and beta; WIDE: positions in a channel
   have 64 bits, else 32; ROWS; STEP: the kernel, of those below. */
#define STATISTICS 0
#define NORMALIZE 1
#define SUMS 2
#define GRADIENT 3
#define UNROLL 8

template <bool, class A, class B> struct dvti_either { typedef A type; };
template <class A, class B> struct dvti_either<false, A, B> { typedef B type; };

typedef dvti_either<D == DVT_F64 || OUT == DVT_F64, double, float>::type dvti_real;
typedef dvti_either<WIDE, int64_t, int>::type dvti_index;

/* The channel and lane of this thread, and the positions of its block. */
struct dvti_spot {
    int64_t channel, chunk;
    dvti_index begin, end;
    int lane, lanes;
    bool exists; /* there is such a channel */
};

__device__ inline dvti_spot dvti_spot_of(const dvti_kbatch_norm &p, int64_t item) {
    const int width = (int)p.width;
    const int64_t groups = (p.c - 1) / width + 1;
    dvti_spot spot;
    spot.lanes = 256 / width;
    spot.lane = (int)threadIdx.x / width;
    spot.chunk = item / groups;
    spot.channel = (item - spot.chunk * groups) * width + threadIdx.x % width;
    spot.begin = (dvti_index)(spot.chunk * p.chunk);
    spot.end = (dvti_index)min(spot.chunk * p.chunk + p.chunk, p.count);
    spot.exists = spot.channel < p.c;
    return spot;
}

/* Sums over the lanes of a channel. All threads must call this. */
__device__ inline dvti_real dvti_join(const dvti_kbatch_norm &p, dvti_real v) {
    __shared__ dvti_real all[256];
    const int width = (int)p.width, at = (int)threadIdx.x;
    all[at] = v;
    for (int half = 128; half >= width; half /= 2) {
        __syncthreads();
        if (at < half)
            all[at] += all[at + half];
    }
    __syncthreads();
    v = all[at % width];
    __syncthreads();
    return v;
}

/* Returns the offset of position `at` of a channel, and its a in `row`. */
__device__ inline int64_t dvti_place(const dvti_kbatch_norm &p, int64_t channel, dvti_index at,
                                     dvti_index &row) {
    row = dvti_divide(at, p.b);
    return (row * p.c + channel) * p.b.divisor + (at - row * (dvti_index)p.b.divisor);
}

__device__ inline dvti_real dvti_real_at(const void *data, int64_t at) {
    return ((const dvti_real *)data)[at];
}

#if STEP == STATISTICS
/* Writes the mean and the sum of squared differences from it of a part. */
__device__ inline void dvti_item(const dvti_kbatch_norm &p, const dvti_spot &spot) {
    dvti_index row;
    const dvti_real first =
        spot.exists
            ? dvti_load<D, dvti_real>(p.x, dvti_place(p, spot.channel, spot.begin, row))
            : (dvti_real)0;
    dvti_real count = 0, mean = 0, squared = 0, joint; /* means are relative to `first` */
    for (dvti_index base = spot.begin + spot.lane; spot.exists && base < spot.end;
         base += UNROLL * spot.lanes) {
        dvti_real x[UNROLL], sum = 0, here = 0, center, far;
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const dvti_index at = base + k * spot.lanes;
            x[k] = at < spot.end
                       ? dvti_load<D, dvti_real>(p.x, dvti_place(p, spot.channel, at, row)) - first
                       : (dvti_real)0;
            sum += x[k];
            here += at < spot.end ? (dvti_real)1 : (dvti_real)0;
        }
        center = sum / here;
#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            if (base + k * spot.lanes < spot.end)
                squared += (x[k] - center) * (x[k] - center);
        far = center - mean;
        squared += far * far * count * here / (count + here);
        mean += far * here / (count + here);
        count += here;
    }
    joint = dvti_join(p, count * mean) / (dvti_real)(spot.end - spot.begin);
    squared = dvti_join(p, squared + count * (mean - joint) * (mean - joint));
    if (spot.exists && spot.lane == 0) {
        dvti_real *partial = (dvti_real *)p.partial + 2 * spot.chunk * p.c + spot.channel;
        partial[0] = first + joint;
        partial[p.c] = squared;
    }
}
#endif

#if STEP == NORMALIZE
/* Joins the parts to the mean and the variance of the channel. */
__device__ inline void dvti_join_moments(const dvti_kbatch_norm &p, const dvti_spot &spot,
                                         dvti_real &mean, dvti_real &variance) {
    const dvti_real first = spot.exists ? dvti_real_at(p.partial, spot.channel) : (dvti_real)0;
    dvti_real sum = 0, squares = 0;
    for (int64_t k = spot.lane; spot.exists && k < p.parts; k += spot.lanes)
        sum += (dvti_real)min(p.part, p.count - k * p.part) *
               (dvti_real_at(p.partial, 2 * k * p.c + spot.channel) - first);
    mean = first + dvti_join(p, sum) / (dvti_real)p.count;
    for (int64_t k = spot.lane; spot.exists && k < p.parts; k += spot.lanes) {
        const dvti_real far = dvti_real_at(p.partial, 2 * k * p.c + spot.channel) - mean;
        squares += dvti_real_at(p.partial, (2 * k + 1) * p.c + spot.channel) +
                   (dvti_real)min(p.part, p.count - k * p.part) * far * far;
    }
    variance = dvti_join(p, squares) / (dvti_real)p.count;
}

__device__ inline void dvti_move(void *running, int64_t at, dvti_real batch,
                                 const dvti_kbatch_norm &p) {
    dvti_real *of = (dvti_real *)running + at;
    *of = *of * (dvti_real)p.momentum + batch * (dvti_real)p.share;
}

__device__ inline void dvti_item(const dvti_kbatch_norm &p, const dvti_spot &spot) {
    dvti_real mean = 0, variance = 0, scale, w = 0, shift = 0;
    if (p.training) {
        dvti_join_moments(p, spot, mean, variance);
    } else if (spot.exists) {
        mean = dvti_real_at(p.running_mean, spot.channel);
        variance = dvti_real_at(p.running_var, spot.channel);
    }
    if (!spot.exists)
        return;
    scale = (dvti_real)1 / sqrt(variance + (dvti_real)p.epsilon);
    if (spot.chunk == 0 && spot.lane == 0) {
        if (p.stats) {
            ((dvti_real *)p.stats)[spot.channel] = mean;
            ((dvti_real *)p.stats)[p.c + spot.channel] = scale;
        }
        if (p.training) {
            dvti_move(p.running_mean, spot.channel, mean, p);
            dvti_move(p.running_var, spot.channel, variance, p);
        }
    }
    w = dvti_load<W, dvti_real>(p.gamma, spot.channel);
    shift = dvti_load<W, dvti_real>(p.beta, spot.channel);
#pragma unroll 4
    for (dvti_index at = spot.begin + spot.lane; at < spot.end; at += spot.lanes) {
        dvti_index row;
        const int64_t place = dvti_place(p, spot.channel, at, row);
        const dvti_real x = dvti_load<D, dvti_real>(p.x, place);
        dvti_store<OUT>(p.out, place, (x - mean) * scale * w + shift);
    }
}
#endif

#if STEP == SUMS || STEP == GRADIENT
__device__ inline void dvti_finish_sums(const dvti_kbatch_norm &p, const dvti_spot &spot,
                                        dvti_real sum, dvti_real product) {
    if (p.gamma_grad)
        dvti_store<W>(p.gamma_grad, spot.channel, product);
    if (p.beta_grad)
        dvti_store<W>(p.beta_grad, spot.channel, sum);
}
#endif

#if STEP == SUMS
/* Writes sum(dy) and sum(dy z) of a part, or the gradients when there is only one. Without x, the
   second is not needed. */
__device__ inline void dvti_item(const dvti_kbatch_norm &p, const dvti_spot &spot) {
    dvti_real sum = 0, product = 0, mean = 0, scale = 0;
    if (!ROWS && p.x && spot.exists) {
        mean = dvti_real_at(p.stats, spot.channel);
        scale = dvti_real_at(p.stats, p.c + spot.channel);
    }
    if (spot.exists) {
#pragma unroll 4
        for (dvti_index at = spot.begin + spot.lane; at < spot.end; at += spot.lanes) {
            dvti_index row;
            const int64_t place = dvti_place(p, spot.channel, at, row);
            const dvti_real g = dvti_load<OUT, dvti_real>(p.g, place);
            sum += g;
            if (p.x) {
                if (ROWS) {
                    mean = dvti_real_at(p.stats, 2 * (int64_t)row);
                    scale = dvti_real_at(p.stats, 2 * (int64_t)row + 1);
                }
                product += g * ((dvti_load<D, dvti_real>(p.x, place) - mean) * scale);
            }
        }
    }
    sum = dvti_join(p, sum);
    product = dvti_join(p, product);
    if (!spot.exists || spot.lane != 0)
        return;
    if (p.partial) {
        dvti_real *partial = (dvti_real *)p.partial + 2 * spot.chunk * p.c + spot.channel;
        partial[0] = sum;
        partial[p.c] = product;
    } else {
        dvti_finish_sums(p, spot, sum, product);
    }
}
#endif

#if STEP == GRADIENT
/* Joins the parts of the sums, writes the gradients of gamma and beta, and dx unless it is NULL. */
__device__ inline void dvti_item(const dvti_kbatch_norm &p, const dvti_spot &spot) {
    dvti_real sum = 0, product = 0, mean, scale, w;
    for (int64_t k = spot.lane; spot.exists && k < p.parts; k += spot.lanes) {
        sum += dvti_real_at(p.partial, 2 * k * p.c + spot.channel);
        product += dvti_real_at(p.partial, (2 * k + 1) * p.c + spot.channel);
    }
    sum = dvti_join(p, sum);
    product = dvti_join(p, product);
    if (!spot.exists)
        return;
    if (spot.chunk == 0 && spot.lane == 0)
        dvti_finish_sums(p, spot, sum, product);
    if (!p.out)
        return;
    mean = dvti_real_at(p.stats, spot.channel);
    scale = dvti_real_at(p.stats, p.c + spot.channel);
    w = dvti_load<W, dvti_real>(p.gamma, spot.channel) * scale;
    sum = p.training ? sum / (dvti_real)p.count : (dvti_real)0;
    product = p.training ? product / (dvti_real)p.count : (dvti_real)0;
#pragma unroll 4
    for (dvti_index at = spot.begin + spot.lane; at < spot.end; at += spot.lanes) {
        dvti_index row;
        const int64_t place = dvti_place(p, spot.channel, at, row);
        const dvti_real g = dvti_load<OUT, dvti_real>(p.g, place),
                        z = (dvti_load<D, dvti_real>(p.x, place) - mean) * scale;
        dvti_store<D>(p.out, place, w * (p.training ? g - sum - z * product : g));
    }
}
#endif

/* Minimum blocks per multiprocessor: at most 64 registers, and 128 for statistics in float64. Left
   to itself, the compiler spills some variants. */
#define RESIDENT (STEP == STATISTICS && D == DVT_F64 ? 2 : 4)

extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_batch_norm(const dvti_kbatch_norm p) {
    for (int64_t item = blockIdx.x; item < p.items; item += gridDim.x)
        dvti_item(p, dvti_spot_of(p, item));
}
