/* Random numbers: the bits of Philox 4x32-10 and Threefry 2x32-20 as in 1_base/dvt_rng.c, and the
   distributions as in 3_cpu/cpu_random.c.

   Every element is a function of the key and its own position. So integers, and all results
   computed from them by exact steps, have the same bits as on the CPU. So have Philox's normal
   numbers, except float64, because they use the CPU's functions (2_core/math). The others use
   CUDA's log, sin and cos.

   Launch: one thread per counter (Philox: 4 or 2 elements, stored with one access), per element
   (Threefry) or per element of a subsequence (cuRAND). Compiled without contraction of a * b + c.
   Where XLA contracts, the source calls fma.

   permutation, Philox: the Fisher-Yates shuffle. From the last place down, it exchanges place i
   with place t[i] <= i. One thread would take about 1 us per place. Exchanges that share no place
   may run in any order, and the longest chain of those that do is short (about e * log(n)). So the
   exchanges run in rounds. Each remaining exchange claims its two places, and the greatest i wins a
   place. An exchange that wins both places is done. This gives the sequential result, whatever the
   order within a round.

   Small permutations take one block. Large ones take a fixed number of rounds over the GPU. Rounds
   are cheap when no exchange is left. One thread does the exchanges that remain after them.
   Source: Shun, Gu, Blelloch, Fineman, Gibbons: Sequential random permutation, list contraction and
   tree contraction are highly parallel. SODA 2015.

   permutation, Threefry: the keys for a stable sort (sort.cu), as often as JAX sorts.

   Variant: D dtype; DIST; GEN. */

enum { UNIFORM, NORMAL, RANDINT, BERNOULLI, PERMUTATION };
enum { PHILOX, THREEFRY, CURAND };

struct dvti_words {
    unsigned w[4];
};

__device__ inline dvti_words dvti_philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3,
                                         unsigned k0, unsigned k1) {
    for (int round = 0; round < 10; round++) {
        const unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0,
                       h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

__device__ inline dvti_words dvti_counter_words(const dvti_krandom &p, int64_t group) {
    const uint64_t at = (uint64_t)p.first + (uint64_t)group;
    return dvti_philox((unsigned)at, (unsigned)(at >> 32), (unsigned)(p.place >> 32),
                       (unsigned)p.place, (unsigned)(p.key >> 32), (unsigned)p.key);
}

__device__ inline uint64_t dvti_both(const dvti_words &w, int k) {
    return (uint64_t)w.w[2 * k] << 32 | w.w[2 * k + 1];
}

/* Returns low + u * (high - low), rounded twice. */
__device__ inline double dvti_between(const dvti_krandom &p, double u) {
    const double v = p.f0 + u * (p.f1 - p.f0);
    return v < p.f2 ? v : p.f2;
}

#if GEN == 0 && DIST != 4
#define PER (DIST == RANDINT || (D == DVT_F64 && DIST != BERNOULLI) ? 2 : 4)
typedef dvti_stored<D>::type dvti_element;

#if DIST == 1 && D == DVT_F64
__device__ inline void dvti_draw(const dvti_krandom &p, const dvti_words &w, double *e) {
    const double u = (double)((dvti_both(w, 0) >> 11) + 1) * (1.0 / 9007199254740992.0);
    const double v = (double)(dvti_both(w, 1) >> 11) * (1.0 / 9007199254740992.0);
    const double r = p.f1 * sqrt(-2 * log(u)), angle = 6.28318530717958647693 * v;
    e[0] = p.f0 + r * cos(angle);
    e[1] = p.f0 + r * sin(angle);
}
#elif DIST == 1
__device__ inline void dvti_draw(const dvti_krandom &p, const dvti_words &w, dvti_element *e) {
    for (int k = 0; k < PER; k += 2) {
        float even, odd;
        dvti_gpu_normal_pair((int)w.w[k], (int)w.w[k + 1], (float)p.f0, (float)p.f1, &even, &odd);
        e[k] = dvti_narrow<D>(even);
        e[k + 1] = dvti_narrow<D>(odd);
    }
}
#else
__device__ inline void dvti_draw(const dvti_krandom &p, const dvti_words &w, dvti_element *e) {
    for (int k = 0; k < PER; k++) {
        if (DIST == RANDINT)
            e[k] = dvti_narrow<D>(
                (int64_t)((uint64_t)p.low + __umul64hi(dvti_both(w, k & 1), (uint64_t)p.span)));
        else if (DIST == BERNOULLI)
            e[k] = dvti_narrow<D>((int64_t)((double)w.w[k] < p.f0 * 4294967296.0));
        else
            e[k] = dvti_narrow<D>(dvti_between(
                p, PER == 2 ? (double)(dvti_both(w, k & 1) >> 11) * (1.0 / 9007199254740992.0)
                            : (double)(w.w[k] >> 8) * (1.0 / 16777216.0)));
    }
}
#endif

extern "C" __global__ void dvti_random(const dvti_krandom p) {
    for (int64_t group = dvti_thread(); group < p.threads; group += dvti_threads()) {
        dvti_element e[PER], *to = (dvti_element *)p.out + group * PER;
        dvti_draw(p, dvti_counter_words(p, group), e);
        if (sizeof e == 16 && p.aligned && (group + 1) * PER <= p.n) {
            uint4 vector;
            memcpy(&vector, e, sizeof e);
            *(uint4 *)to = vector;
        } else {
            for (int k = 0; k < PER; k++)
                if (group * PER + k < p.n)
                    to[k] = e[k];
        }
    }
}
#endif

/* ---- Threefry in JAX's layout ---- */
__device__ inline void dvti_threefry(unsigned k0, unsigned k1, unsigned &x0, unsigned &x1) {
    const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const unsigned schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
    x0 += schedule[0];
    x1 += schedule[1];
    for (int i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++) {
            const int rotation = rotations[4 * (i & 1) + r];
            x0 += x1;
            x1 = (x1 << rotation | x1 >> (32 - rotation)) ^ x0;
        }
        x0 += schedule[(i + 1) % 3];
        x1 += schedule[(i + 2) % 3] + (unsigned)(i + 1);
    }
}

/* Returns word j of n < 2^32 words. Word i and word i + (n + 1) / 2 come from one counter
   pair; an odd n is padded by a 0. */
__device__ inline unsigned dvti_short_word(uint64_t key, int64_t n, int64_t j) {
    const int64_t half = (n + 1) / 2;
    unsigned x0 = (unsigned)(j < half ? j : j - half), x1 = x0 + (unsigned)half;
    if ((int64_t)x0 + half >= n)
        x1 = 0;
    dvti_threefry((unsigned)(key >> 32), (unsigned)key, x0, x1);
    return j < half ? x0 : x1;
}

/* Returns word j of any n: blocks of 2^32 - 1 words have keys of their own. */
__device__ inline unsigned dvti_jax_word(uint64_t key, int64_t n, int64_t j) {
    const int64_t block = 0xffffffffLL, blocks = n / block;
    if (blocks) {
        const int64_t at = j / block, words = 2 * (blocks + 1);
        key = (uint64_t)dvti_short_word(key, words, 2 * at) << 32 |
              dvti_short_word(key, words, 2 * at + 1);
        n = at < blocks ? block : n - blocks * block;
        j -= at * block;
    }
    return dvti_short_word(key, n, j);
}

template <int WIDTH> __device__ inline uint64_t dvti_jax_bits(uint64_t key, int64_t n, int64_t e) {
    const int in_word = WIDTH < 32 ? 32 / WIDTH : 1;
    if (WIDTH == 64)
        return (uint64_t)dvti_jax_word(key, 2 * n, e) << 32 | dvti_jax_word(key, 2 * n, n + e);
    if (WIDTH == 32)
        return dvti_jax_word(key, n, e);
    return dvti_jax_word(key, (n + in_word - 1) / in_word, e / in_word) >>
               WIDTH % 32 * (e % in_word) &
           ((1u << WIDTH % 32) - 1);
}

/* Rounds a value to dtype T. */
template <int T> __device__ inline double dvti_rounded(double v) {
    return dvti_widen<T, double>(dvti_narrow<T>(v));
}

/* Returns a uniform value between two values of the dtype, rounded as XLA does. */
template <int T>
__device__ inline double dvti_jax_between(const dvti_krandom &p, int64_t e, double low,
                                          double high) {
    constexpr int width = T == DVT_F64 ? 64 : T == DVT_F32 ? 32 : T == DVT_F16 ? 16 : 8;
    constexpr int mantissa = T == DVT_F64 ? 52 : T == DVT_F32 ? 23 : T == DVT_F16 ? 10 : 7;
    const double u = (double)(dvti_jax_bits<width>(p.key, p.n, e) >> (width - mantissa)) /
                     (double)((uint64_t)1 << mantissa);
    const double range = dvti_rounded<T>(high - low);
    double v;
    if (T == DVT_F64)
        v = fma(u, range, low);
    else if (T == DVT_F32)
        v = dvti_rounded<T>(u * range + low);
    else
        v = dvti_rounded<T>(dvti_rounded<T>(u * range) + low);
    return v > low ? v : low;
}

#if GEN == 1 && DIST == 1
/* The inverse error function, as in 1_base/dvt_rng.c (Giles, 2011). */
/* The polynomial of each interval, highest power first. float needs no third interval. */
__constant__ float dvti_erfinv_float[2][9] = {
    {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
     -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f},
    {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
     -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f}};

__constant__ double dvti_erfinv_double[3][23] = {
    {-3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
     1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
     6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
     2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
     1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
     4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
     0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
     0.24015818242558961693,     1.6536545626831027356},
    {2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
     1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
     2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
     6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
     0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
     -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
     3.0838856104922207635},
    {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
     -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
     2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
     -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
     7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
     1.0103004648645343977, 4.8499064014085844221}};

__device__ inline float dvti_erfinv(float x) {
    float w = -log1pf(-x * x), p;
    const float *c = dvti_erfinv_float[w < 5 ? 0 : 1];
    if (fabsf(x) >= 1)
        return copysignf(__uint_as_float(0x7f800000u), x);
    w = w < 5 ? w - 2.5f : sqrtf(w) - 3;
    p = c[0];
    for (int i = 1; i < 9; i++)
        p = c[i] + p * w;
    return p * x;
}

__device__ inline double dvti_erfinv(double x) {
    double w = -log((1 - x) * (1 + x)), p; /* 1 - x * x would cancel in the tails */
    const int interval = w < 6.25 ? 0 : w < 16 ? 1 : 2, n = w < 6.25 ? 23 : w < 16 ? 19 : 17;
    const double *c = dvti_erfinv_double[interval];
    if (fabs(x) >= 1)
        return copysign(__longlong_as_double(0x7ff0000000000000LL), x);
    w = w < 6.25 ? w - 3.125 : sqrt(w) - (w < 16 ? 3.25 : 5.0);
    p = c[0];
    for (int i = 1; i < n; i++)
        p = c[i] + p * w;
    return p * x;
}

__device__ inline double dvti_jax_normal(const dvti_krandom &p, int64_t e) {
    typedef typename dvti_stored<D == DVT_F64 ? DVT_F64 : DVT_F32>::type real;
    const double step = D == DVT_F64   ? 1.0 / 9007199254740992.0
                        : D == DVT_F32 ? 1.0 / 16777216.0
                        : D == DVT_F16 ? 1.0 / 2048
                                       : 1.0 / 256;
    const double u = dvti_jax_between<D>(p, e, step - 1, 1), z = (double)dvti_erfinv((real)u);
    return p.f0 +
           p.f1 * dvti_rounded<D>(dvti_rounded<D>(1.41421356237309504880) * dvti_rounded<D>(z));
}
#endif

#if GEN == 1 && DIST == 2
/* Returns twice the bits of the dtype, reduced modulo the span. All arithmetic is modulo
   2^width. */
__device__ inline int64_t dvti_jax_int(const dvti_krandom &p, int64_t e) {
    constexpr int width = 8 * (int)sizeof(typename dvti_stored<D>::type);
    const uint64_t mask = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width % 64) - 1,
                   span = (uint64_t)p.span & mask;
    const uint64_t above =
        (uint64_t)dvti_short_word(p.key, 4, 0) << 32 | dvti_short_word(p.key, 4, 1);
    const uint64_t below =
        (uint64_t)dvti_short_word(p.key, 4, 2) << 32 | dvti_short_word(p.key, 4, 3);
    const uint64_t high = dvti_jax_bits<width>(above, p.n, e),
                   low = dvti_jax_bits<width>(below, p.n, e);
    uint64_t power = (uint64_t)1 << width / 2, at;
    if (span == 0) { /* all values of the dtype: JAX defines x mod 0 as x */
        at = high * (power * power & mask) + low;
    } else {
        power %= span;
        power = (power * power & mask) % span;
        at = (high % span * power & mask) + low % span;
        at = (at & mask) % span;
    }
    return (int64_t)((uint64_t)p.low + at);
}
#endif

#if GEN == 1 && DIST != 4
extern "C" __global__ void dvti_random(const dvti_krandom p) {
    for (int64_t e = dvti_thread(); e < p.threads; e += dvti_threads()) {
#if DIST == 0
        const double v = dvti_jax_between<D>(p, e, p.f0, p.f1);
        dvti_store<D>(p.out, e, v < p.f2 ? v : p.f2);
#elif DIST == 1
        dvti_store<D>(p.out, e, dvti_jax_normal(p, e));
#elif DIST == 2
        dvti_store<D>(p.out, e, dvti_jax_int(p, e));
#else
        dvti_store<D>(p.out, e,
                      (int64_t)(dvti_jax_between<DVT_F32>(p, e, 0, 1) < (double)(float)p.f0));
#endif
    }
}
#endif

/* ---- cuRAND's layout, as MXNet uses it: `step` neighbors from each subsequence ---- */
#if GEN == 2
__device__ inline unsigned dvti_subsequence(const dvti_krandom &p, int64_t thread, int64_t draw) {
    const uint64_t counter = (uint64_t)draw / 4;
    return dvti_philox((unsigned)counter, (unsigned)(counter >> 32), (unsigned)thread, 0,
                       (unsigned)p.key, 0)
        .w[draw % 4];
}

extern "C" __global__ void dvti_random(const dvti_krandom p) {
    for (int64_t e = dvti_thread(); e < p.threads; e += dvti_threads()) {
        const int64_t thread = e / p.step, words = D == DVT_F64 ? 2 : 1;
        const int64_t draw =
            (p.starts ? p.starts[thread] : p.first) + (e - thread * p.step) * words;
        const unsigned x = dvti_subsequence(p, thread, draw);
        if (D == DVT_F64) {
            const uint64_t both = x ^ (uint64_t)dvti_subsequence(p, thread, draw + 1) << 21;
            dvti_store<D>(p.out, e,
                          dvti_between(p, 1 - ((double)both + 0.5) * (1 / 9007199254740992.0)));
        } else {
            const float u = 1 - ((float)x * (1 / 4294967296.0f) + 0.5f / 4294967296.0f);
            const float v = (float)p.f0 + u * ((float)p.f1 - (float)p.f0);
            dvti_store<D>(p.out, e, (double)v < p.f2 ? (double)v : p.f2);
        }
    }
}
#endif

/* ---- permutation ---- */
#if DIST == 4 && GEN == 1
extern "C" __global__ void dvti_shuffle_keys(const dvti_krandom p) {
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads()) {
        const unsigned key = dvti_jax_word(p.key, p.n, i);
        if (p.wide)
            p.keys[i] = key;
        else
            ((unsigned *)p.keys)[i] = key;
    }
}

/* No values: nothing was sorted. */
extern "C" __global__ void dvti_shuffle_copy(const dvti_krandom p) {
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads())
        ((int64_t *)p.out)[i] = !p.values ? i
                                : p.wide  ? p.values[i]
                                          : ((const int *)p.values)[i];
}
#endif

#if DIST == 4 && GEN == 0
/* p.values[i]: the place that i is exchanged with, -1 when done. p.keys: the claim on a place, its
   round in the high bits, its number in the low ones. p.left[r]: whether any exchange is left when
   round r begins. */
__device__ inline void dvti_shuffle_begin(const dvti_krandom &p, int64_t i) {
    const int64_t draw = p.n - 1 - i;
    ((int64_t *)p.out)[i] = i;
    p.keys[i] = 0;
    p.values[i] =
        i ? (int64_t)__umul64hi(dvti_both(dvti_counter_words(p, draw / 2), (int)(draw % 2)),
                                (uint64_t)i + 1)
          : -1;
}

__device__ inline uint64_t dvti_claim(int64_t round, int64_t i) {
    return (uint64_t)(round + 1) << 48 | (uint64_t)i;
}

__device__ inline void dvti_shuffle_claim(const dvti_krandom &p, int64_t round, int64_t i) {
    const int64_t with = p.values[i];
    if (with < 0)
        return;
    atomicMax((unsigned long long *)&p.keys[i], (unsigned long long)dvti_claim(round, i));
    atomicMax((unsigned long long *)&p.keys[with], (unsigned long long)dvti_claim(round, i));
}

__device__ inline void dvti_exchange(const dvti_krandom &p, int64_t i, int64_t with) {
    int64_t *out = (int64_t *)p.out, value = out[i];
    out[i] = out[with];
    out[with] = value;
    p.values[i] = -1;
}

/* Returns whether exchange i needs another round. */
__device__ inline bool dvti_shuffle_settle(const dvti_krandom &p, int64_t round, int64_t i) {
    const int64_t with = p.values[i];
    const uint64_t mine = dvti_claim(round, i);
    if (with < 0)
        return false;
    if (p.keys[i] != mine || p.keys[with] != mine)
        return true;
    dvti_exchange(p, i, with);
    return false;
}

extern "C" __global__ void __launch_bounds__(1024) dvti_shuffle_block(const dvti_krandom p) {
    __shared__ int left;
    for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x)
        dvti_shuffle_begin(p, i);
    for (int64_t round = 0;; round++) {
        int mine = 0;
        if (threadIdx.x == 0)
            left = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x)
            dvti_shuffle_claim(p, round, i);
        __syncthreads();
        for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x)
            mine += dvti_shuffle_settle(p, round, i);
        if (mine)
            atomicAdd(&left, mine);
        __syncthreads();
        const int some = left;
        __syncthreads();
        if (!some)
            break;
    }
}

extern "C" __global__ void dvti_shuffle_start(const dvti_krandom p) {
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads())
        dvti_shuffle_begin(p, i);
    for (int64_t r = dvti_thread(); r <= p.rounds; r += dvti_threads())
        p.left[r] = r == 0;
}

extern "C" __global__ void dvti_shuffle_claims(const dvti_krandom p) {
    if (p.left[p.step] == 0)
        return;
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads())
        dvti_shuffle_claim(p, p.step, i);
}

extern "C" __global__ void dvti_shuffle_settles(const dvti_krandom p) {
    int mine = 0;
    if (p.left[p.step] == 0)
        return;
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads())
        mine |= dvti_shuffle_settle(p, p.step, i);
    if (mine)
        atomicExch(&p.left[p.step + 1], 1);
}

extern "C" __global__ void dvti_shuffle_end(const dvti_krandom p) {
    if (p.left[p.rounds])
        for (int64_t i = p.n - 1; i > 0; i--)
            if (p.values[i] >= 0)
                dvti_exchange(p, i, p.values[i]);
}
#endif
