/* Random numbers. Each element is a function of the key and its own position, so results do not
   depend on threads or devices. The layouts that reproduce other libraries' numbers are at the
   end. */
#include "1_base/dvt_fma.h"
#include "1_base/dvt_rng.h"
#include "3_cpu/simd/dvt_simd.h"

/* Pairs of normal float32 numbers, one pair at a time. Includes the source of the ISA targets
   (2_core/math/box_muller.inl) for single floats, so results are bitwise equal. */
#if defined(__GNUC__) && !defined(__clang__)
/* Without this, GCC fuses a multiplication and an addition where the CPU can. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#define DVTI_TARGET scalar
#include "3_cpu/simd/primitives_begin.inl"
#include "3_cpu/ref/scalar.inl"
#include "2_core/math/basics.inl"
#include "2_core/math/log.inl"
#include "2_core/math/box_muller.inl"

DVTI_FN void dvti_normal_pair(uint32_t first, uint32_t second, const dvti_launch *launch,
                              double out[2]) {
    const float mean = (float)launch->f[0], deviation = (float)launch->f[1];
    float even, odd;
    V(normal_pair)((int32_t)first, (int32_t)second, mean, deviation, &even, &odd);
    out[0] = (double)even;
    out[1] = (double)odd;
}

#include "3_cpu/simd/primitives_end.inl"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* Returns the number of elements that one Philox counter yields. */
static int dvti_random_per_counter(const dvti_launch *launch) {
    return launch->op == DVTI_OP_randint || launch->op == DVTI_OP_permutation ||
                   (launch->out[0].dtype == DVT_F64 && launch->op != DVTI_OP_bernoulli)
               ? 2
               : 4;
}

static void dvti_random_words(const dvti_launch *launch, int64_t group, uint32_t words[4]) {
    uint64_t key = (uint64_t)launch->i[1], place = (uint64_t)launch->i[3];
    uint64_t at = (uint64_t)launch->i[2] + (uint64_t)group;
    uint32_t counter[4], k[2];
    k[0] = (uint32_t)(key >> 32);
    k[1] = (uint32_t)key;
    counter[0] = (uint32_t)at;
    counter[1] = (uint32_t)(at >> 32);
    counter[2] = (uint32_t)(place >> 32);
    counter[3] = (uint32_t)place;
    dvti_philox4x32(counter, k, words);
}

static uint64_t dvti_random_pair(const uint32_t *words) {
    return (uint64_t)words[0] << 32 | words[1];
}

/* Returns low + u * (high - low), rounded after each operation. A fused multiply-add would give
   other bits on some machines. */
static double dvti_random_between(const dvti_launch *launch, double u) {
    volatile double scaled = u * (launch->f[1] - launch->f[0]);
    return DVTI_MIN(launch->f[0] + scaled, launch->f[2]);
}

/* Converts four words to two normal float64 numbers by the Box-Muller transform, with u in (0, 1]
   and v in [0, 1). */
static void dvti_random_box_muller(const dvti_launch *launch, const uint32_t *w, double *out) {
    const double step = 1.0 / 9007199254740992.0;
    double u = (double)((dvti_random_pair(w) >> 11) + 1) * step;
    double v = (double)(dvti_random_pair(w + 2) >> 11) * step;
    double r = launch->f[1] * sqrt(-2 * log(u)), angle = 6.28318530717958647693 * v;
    out[0] = launch->f[0] + r * cos(angle);
    out[1] = launch->f[0] + r * sin(angle);
}

static void dvti_random_floats(const dvti_launch *launch, const uint32_t *w, double *out) {
    bool wide = launch->out[0].dtype == DVT_F64;
    int k;
    if (launch->op == DVTI_OP_uniform && wide) {
        for (k = 0; k < 2; k++)
            out[k] = dvti_random_between(launch, (double)(dvti_random_pair(w + 2 * k) >> 11) *
                                                     (1.0 / 9007199254740992.0));
    } else if (launch->op == DVTI_OP_uniform) {
        for (k = 0; k < 4; k++)
            out[k] = dvti_random_between(launch, (double)(w[k] >> 8) * (1.0 / 16777216.0));
    } else if (wide) {
        dvti_random_box_muller(launch, w, out);
    } else {
        for (k = 0; k < 4; k += 2)
            dvti_normal_pair(w[k], w[k + 1], launch, out + k);
    }
}

static void dvti_random_philox(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    int64_t n = launch->i[6], g;
    int per = dvti_random_per_counter(launch), k;
    for (g = begin; g < end; g++) {
        uint32_t w[4];
        double v[4] = {0, 0, 0, 0};
        int here = (int)DVTI_MIN(per, n - g * per);
        dvti_random_words(launch, g, w);
        if (launch->op == DVTI_OP_randint) {
            for (k = 0; k < here; k++) {
                uint64_t at = dvti_mulhi64(dvti_random_pair(w + 2 * k), (uint64_t)launch->i[5]);
                dvti_store_i64(out->data, out->dtype, g * per + k,
                               (int64_t)((uint64_t)launch->i[4] + at));
            }
        } else if (launch->op == DVTI_OP_bernoulli) {
            for (k = 0; k < here; k++)
                dvti_store_i64(out->data, out->dtype, g * per + k,
                               (double)w[k] < launch->f[0] * 4294967296.0);
        } else {
            dvti_random_floats(launch, w, v);
            for (k = 0; k < here; k++)
                dvti_store_f64(out->data, out->dtype, g * per + k, v[k]);
        }
    }
}

/* The same computed by an ISA target. */
typedef struct dvti_random_job {
    const dvti_launch *launch;
    const dvti_simd *simd;
} dvti_random_job;

static void dvti_random_fast(void *user, int64_t begin, int64_t end) {
    const dvti_random_job *job = (const dvti_random_job *)user;
    dvti_simd_random_of(job->simd)->f32(job->launch, begin, end,
                                        (float *)job->launch->out[0].data + 4 * begin);
}

/* Normal float16 and bfloat16 numbers are the float32 ones, rounded. */
static void dvti_random_narrow(void *user, int64_t begin, int64_t end) {
    const dvti_random_job *job = (const dvti_random_job *)user;
    const dvti_view *out = &job->launch->out[0];
    int64_t n = job->launch->i[6], groups = 128, g;
    float few[4 * 128];
    for (g = begin; g < end; g += groups) {
        int64_t last = DVTI_MIN(g + groups, end), count = DVTI_MIN(4 * last, n) - 4 * g;
        dvti_simd_random_of(job->simd)->f32(job->launch, g, last, few);
        job->simd->store_row((uint16_t *)out->data + 4 * g, out->dtype, count, few);
    }
}

/* Runs a launch of Philox numbers. The costs are nanoseconds per counter. */
static void dvti_random_run_philox(const dvti_launch *launch) {
    int per = dvti_random_per_counter(launch);
    int64_t groups = (launch->i[6] + per - 1) / per;
    bool normal = launch->op == DVTI_OP_normal;
    bool fast = per == 4 && launch->out[0].dtype == DVT_F32;
    bool narrow = normal && per == 4 && launch->out[0].dtype != DVT_F32;
    dvti_random_job job;
    job.launch = launch;
    job.simd = dvti_simd_now();
    if (job.simd && (fast || narrow))
        dvti_parallel_for(groups, normal ? 4 : 2.5, fast ? dvti_random_fast : dvti_random_narrow,
                          &job);
    else
        dvti_parallel_for(groups, normal ? 60 : 20, dvti_random_philox, (void *)launch);
}

/* Shuffles 0..n-1 (Fisher-Yates): from the last element down, swaps each with a random one of the
   elements up to it. */
static void dvti_random_shuffle(const dvti_launch *launch) {
    int64_t *out = (int64_t *)launch->out[0].data, n = launch->i[6], i;
    for (i = 0; i < n; i++)
        out[i] = i;
    for (i = n - 1; i > 0; i--) {
        int64_t draw = n - 1 - i, j, value = out[i];
        uint32_t w[4];
        dvti_random_words(launch, draw / 2, w);
        j = (int64_t)dvti_mulhi64(dvti_random_pair(w + 2 * (draw % 2)), (uint64_t)i + 1);
        out[i] = out[j];
        out[j] = value;
    }
}

/* ---- JAX: like JAX, rounds each step to the dtype of the array ---- */
static void dvti_random_jax_key(const dvti_launch *launch, uint32_t key[2]) {
    key[0] = (uint32_t)((uint64_t)launch->i[1] >> 32);
    key[1] = (uint32_t)launch->i[1];
}

/* Returns a uniform number between low and high of the dtype; random bits become the mantissa. XLA
   scales it by a fused multiply-add in float32 and float64, and in two steps in narrower dtypes. */
static double dvti_random_jax_between(const uint32_t key[2], const dvti_launch *launch, int64_t e,
                                      dvt_dtype dtype, double low, double high) {
    int width = dtype == DVT_F64 ? 64 : dtype == DVT_F32 ? 32 : dtype == DVT_F16 ? 16 : 8;
    int mantissa = dtype == DVT_F64 ? 52 : dtype == DVT_F32 ? 23 : dtype == DVT_F16 ? 10 : 7;
    uint64_t bits = dvti_jax_bits(key, launch->i[6], e, width) >> (width - mantissa);
    double u = (double)bits / (double)((uint64_t)1 << mantissa);
    double range = dvti_round_as(dtype, high - low), value;
    if (dtype == DVT_F64)
        value = dvti_fma(u, range, low);
    else if (dtype == DVT_F32) /* the product is exact in double */
        value = dvti_round_as(dtype, u * range + low);
    else
        value = dvti_round_as(dtype, dvti_round_as(dtype, u * range) + low);
    return DVTI_MAX(low, value);
}

static double dvti_random_jax_normal(const uint32_t key[2], const dvti_launch *launch, int64_t e) {
    dvt_dtype dtype = launch->out[0].dtype;
    double step = dtype == DVT_F64   ? DBL_EPSILON / 2
                  : dtype == DVT_F32 ? (double)FLT_EPSILON / 2
                  : dtype == DVT_F16 ? 1.0 / 2048
                                     : 1.0 / 256;
    double u = dvti_random_jax_between(key, launch, e, dtype, step - 1, 1), z;
    z = dtype == DVT_F64 ? dvti_erfinv_f64(u) : (double)dvti_erfinv_f32((float)u);
    z = dvti_round_as(dtype,
                      dvti_round_as(dtype, 1.41421356237309504880) * dvti_round_as(dtype, z));
    return launch->f[0] + launch->f[1] * z;
}

/* Reduces twice the dtype's number of random bits modulo the span; all arithmetic is modulo
   2^width. */
static int64_t dvti_random_jax_int(const uint32_t key[2], const dvti_launch *launch, int64_t e) {
    int width = 8 * (int)dvt_dtype_size(launch->out[0].dtype);
    int64_t n = launch->i[6];
    uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    uint64_t span = (uint64_t)launch->i[5] & mask, power = (uint64_t)1 << width / 2;
    uint64_t high, low, at;
    uint32_t key_high[2], key_low[2];
    key_high[0] = dvti_jax_word(key, 4, 0);
    key_high[1] = dvti_jax_word(key, 4, 1);
    key_low[0] = dvti_jax_word(key, 4, 2);
    key_low[1] = dvti_jax_word(key, 4, 3);
    high = dvti_jax_bits(key_high, n, e, width);
    low = dvti_jax_bits(key_low, n, e, width);
    if (span == 0) { /* the span covers every value of the dtype; in XLA x mod 0 is x */
        at = high * (power * power & mask) + low;
    } else {
        power %= span;
        power = (power * power & mask) % span;
        at = (high % span * power & mask) + low % span;
        at = (at & mask) % span;
    }
    return (int64_t)((uint64_t)launch->i[4] + at);
}

static void dvti_random_jax(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    uint32_t key[2];
    int64_t e;
    dvti_random_jax_key(launch, key);
    for (e = begin; e < end; e++) {
        if (launch->op == DVTI_OP_randint)
            dvti_store_i64(out->data, out->dtype, e, dvti_random_jax_int(key, launch, e));
        else if (launch->op == DVTI_OP_bernoulli)
            dvti_store_i64(out->data, out->dtype, e,
                           dvti_random_jax_between(key, launch, e, DVT_F32, 0, 1) <
                               (double)(float)launch->f[0]);
        else if (launch->op == DVTI_OP_normal)
            dvti_store_f64(out->data, out->dtype, e, dvti_random_jax_normal(key, launch, e));
        else {
            double v =
                dvti_random_jax_between(key, launch, e, out->dtype, launch->f[0], launch->f[1]);
            dvti_store_f64(out->data, out->dtype, e, DVTI_MIN(v, launch->f[2]));
        }
    }
}

DVTI_FN int64_t dvti_cpu_random_workspace(const dvti_launch *launch) {
    int64_t bytes;
    if (launch->op != DVTI_OP_permutation || launch->i[0] != DVTI_RNG_THREEFRY)
        return 0;
    return dvti_mul(launch->i[6], 16, &bytes) ? bytes : INT64_MAX;
}

/* Sorts stably by 32-bit keys. Four passes of 8 bits alternate between the array and the
   workspace. */
static void dvti_random_radix_sort(uint32_t *keys, int64_t *values, uint32_t *other_keys,
                                   int64_t *other_values, int64_t n) {
    int shift;
    for (shift = 0; shift < 32; shift += 8) {
        int64_t start[257], i, *v = other_values;
        uint32_t *k = other_keys;
        memset(start, 0, sizeof start);
        for (i = 0; i < n; i++)
            start[1 + (keys[i] >> shift & 255u)]++;
        for (i = 1; i < 256; i++)
            start[i] += start[i - 1];
        for (i = 0; i < n; i++) {
            int64_t at = start[keys[i] >> shift & 255u]++;
            other_keys[at] = keys[i];
            other_values[at] = values[i];
        }
        other_keys = keys;
        other_values = values;
        keys = k;
        values = v;
    }
}

/* Shuffles by sorting by random keys. Repeats until equal keys hardly bias the result. */
static void dvti_random_jax_shuffle(const dvti_launch *launch) {
    int64_t n = launch->i[6], *out = (int64_t *)launch->out[0].data;
    int64_t *other = (int64_t *)launch->workspace, i;
    uint32_t *keys = (uint32_t *)(other + n), *other_keys = keys + n, key[2], next[4];
    int rounds = (int)ceil(3 * log((double)DVTI_MAX(n, 1)) / log(4294967295.0)), k;
    dvti_random_jax_key(launch, key);
    for (i = 0; i < n; i++)
        out[i] = i;
    for (; rounds > 0; rounds--) {
        for (k = 0; k < 4; k++)
            next[k] = dvti_jax_word(key, 4, k);
        for (i = 0; i < n; i++)
            keys[i] = dvti_jax_word(next + 2, n, i);
        dvti_random_radix_sort(keys, out, other_keys, other, n);
        key[0] = next[0];
        key[1] = next[1];
    }
}

/* ---- MXNet: one state on cpu(), or one subsequence on gpu(i), for each run of neighbors ---- */
static double dvti_random_mxnet_between(const dvti_launch *launch, double u) {
    volatile float range = (float)launch->f[1] - (float)launch->f[0];
    volatile float scaled = (float)u * range;
    float value = (float)launch->f[0] + scaled;
    if (launch->out[0].dtype == DVT_F64)
        return dvti_random_between(launch, u);
    return DVTI_MIN((double)value, launch->f[2]);
}

/* Returns a number in [0, 1), as std::generate_canonical of libstdc++. Rounding must not reach
   1. */
static double dvti_random_canonical(dvti_mt19937 *state, bool wide) {
    double low = dvti_mt19937_next(state), u;
    if (wide) {
        u = (low + (double)dvti_mt19937_next(state) * 4294967296.0) * (1 / 18446744073709551616.0);
        return u < 1 ? u : 1 - DBL_EPSILON / 2;
    }
    u = (double)((float)low * (1 / 4294967296.0f));
    return u < 1 ? u : 1 - (double)FLT_EPSILON / 2;
}

static double dvti_random_curand(const dvti_launch *launch, int64_t thread, int64_t draw,
                                 bool wide) {
    uint32_t key[2], counter[4], words[4], x[2];
    int k;
    key[0] = (uint32_t)launch->i[1];
    key[1] = 0;
    for (k = 0; k < (wide ? 2 : 1); k++) {
        counter[0] = (uint32_t)((draw + k) / 4);
        counter[1] = (uint32_t)((uint64_t)((draw + k) / 4) >> 32);
        counter[2] = (uint32_t)thread;
        counter[3] = 0;
        dvti_philox4x32(counter, key, words);
        x[k] = words[(draw + k) % 4];
    }
    if (wide)
        return 1 - ((double)(x[0] ^ (uint64_t)x[1] << 21) + 0.5) * (1 / 9007199254740992.0);
    return (double)(1 - ((float)x[0] * (1 / 4294967296.0f) + 0.5f / 4294967296.0f));
}

static void dvti_random_mxnet(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    bool wide = out->dtype == DVT_F64, cpu = launch->i[0] == DVTI_RNG_MT19937;
    int64_t n = launch->i[6], step = (n + launch->i[4] - 1) / launch->i[4], t, e;
    for (t = begin; t < end; t++) {
        int64_t first = t * step, last = DVTI_MIN(first + step, n), draw = launch->i[2];
        if (!cpu && launch->n_in)
            draw = dvti_load_i64(launch->in[0].data, DVT_I64, t);
        for (e = first; e < last; e++, draw += wide ? 2 : 1) {
            double u =
                cpu ? dvti_random_canonical((dvti_mt19937 *)launch->out[1].data + t,
                                            wide || out->dtype == DVT_F16 || out->dtype == DVT_BF16)
                    : dvti_random_curand(launch, t, draw, wide);
            dvti_store_f64(out->data, out->dtype, e, dvti_random_mxnet_between(launch, u));
        }
    }
}

DVTI_FN void dvti_cpu_random(const dvti_launch *launch) {
    int64_t n = launch->i[6];
    void *user = (void *)launch;
    if (launch->op == DVTI_OP_permutation) {
        if (launch->i[0] == DVTI_RNG_THREEFRY)
            dvti_random_jax_shuffle(launch);
        else
            dvti_random_shuffle(launch);
    } else if (launch->i[0] == DVTI_RNG_PHILOX) {
        dvti_random_run_philox(launch);
    } else if (launch->i[0] == DVTI_RNG_THREEFRY) {
        dvti_parallel_for(n, 20, dvti_random_jax, user);
    } else {
        int64_t states = launch->i[4];
        dvti_parallel_for(states, 10 * (double)n / (double)states, dvti_random_mxnet, user);
    }
}
