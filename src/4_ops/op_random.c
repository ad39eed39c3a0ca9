/* Random arrays: the distributions, drawn from the streams of contexts or from explicit keys, and
   the functions that make keys. */
#include "1_base/dvt_float_mode.h"
#include "1_base/dvt_rng.h"
#include "4_ops/dvt_op.h"

static dvt_array *dvti_random(dvti_launch *launch, const dvt_key *key, int words, dvt_shape shape,
                              dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *out = dvti_array_new(launch->name, shape, dtype, ctx);
    if (!out || dvt_size(out) == 0)
        return out;
    return dvti_draw(out, launch, key, words) == DVT_OK ? out : NULL;
}

/* ---- distributions ---- */
static bool dvti_random_dtype(const char *name, dvt_dtype dtype, bool fits, const char *expected) {
    if (!fits)
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: got dtype %s; expected %s: convert the result with dvt_astype", name,
                  dvt_dtype_name(dtype), expected);
    return fits;
}

static DVTI_NOINLINE dvt_array *dvti_uniform_in_mode(const char *name, const dvt_key *key,
                                                     double low, double high, dvt_shape shape,
                                                     dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch;
    double a, b, range;
    dvti_launch_begin(&launch, name, dvti_kernel_random(), DVTI_OP_uniform);
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_float(dtype), "a floating dtype"))
        return NULL;
    a = dvti_round_as(dtype, low);
    b = dvti_round_as(dtype, high);
    range = dvti_round_as(dtype, b - a);
    if (!(low <= high) || range - range != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: bounds %g and %g; expected low <= high, and high - low within %s", name, low,
                  high, dvt_dtype_name(dtype));
        return NULL;
    }
    launch.f[0] = a;
    launch.f[1] = b;
    launch.f[2] = a < b ? dvti_below(dtype, b) : a;
    return dvti_random(&launch, key, dtype == DVT_F64 ? 2 : 1, shape, dtype, ctx);
}

static dvt_array *dvti_uniform(const char *name, const dvt_key *key, double low, double high,
                               dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *x = dvti_uniform_in_mode(name, key, low, high, shape, dtype, ctx);
    dvti_float_mode_end(&mode);
    return x;
}

static DVTI_NOINLINE dvt_array *dvti_normal_in_mode(const char *name, const dvt_key *key,
                                                    double mean, double deviation, dvt_shape shape,
                                                    dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch;
    dvt_dtype wide = dtype == DVT_F64 ? DVT_F64 : DVT_F32;
    double a = dvti_round_as(wide, mean), b = dvti_round_as(wide, deviation);
    dvti_launch_begin(&launch, name, dvti_kernel_random(), DVTI_OP_normal);
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_float(dtype), "a floating dtype"))
        return NULL;
    if (!(deviation >= 0) || b - b != 0 || a - a != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: mean %g and deviation %g; expected finite numbers of %s, and deviation >= 0",
                  name, mean, deviation, dvt_dtype_name(wide));
        return NULL;
    }
    launch.f[0] = mean;
    launch.f[1] = deviation;
    return dvti_random(&launch, key, dtype == DVT_F64 ? 2 : 1, shape, dtype, ctx);
}

static dvt_array *dvti_normal(const char *name, const dvt_key *key, double mean, double deviation,
                              dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *x = dvti_normal_in_mode(name, key, mean, deviation, shape, dtype, ctx);
    dvti_float_mode_end(&mode);
    return x;
}

/* Returns the exclusive upper limit of `high`, one above the dtype's largest value. */
static int64_t dvti_int_end(dvt_dtype dtype) {
    return dtype == DVT_I64 ? INT64_MAX : dvti_int_largest(dtype) + 1;
}

static dvt_array *dvti_randint(const char *name, const dvt_key *key, int64_t low, int64_t high,
                               dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_random(), DVTI_OP_randint);
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_int(dtype), "an integer dtype"))
        return NULL;
    if (low >= high || low < dvti_int_lowest(dtype) || high > dvti_int_end(dtype)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: low %lld and high %lld; expected low < high, low >= %lld and high <= %lld "
                  "for %s",
                  name, (long long)low, (long long)high, (long long)dvti_int_lowest(dtype),
                  (long long)dvti_int_end(dtype), dvt_dtype_name(dtype));
        return NULL;
    }
    launch.i[4] = low;
    launch.i[5] = (int64_t)((uint64_t)high - (uint64_t)low);
    return dvti_random(&launch, key, 2, shape, dtype, ctx);
}

static dvt_array *dvti_bernoulli(const char *name, const dvt_key *key, double p, dvt_shape shape,
                                 dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_random(), DVTI_OP_bernoulli);
    if (!(p >= 0 && p <= 1)) {
        dvti_fail(DVT_ERR_RANGE, "%s: p is %g; expected a probability of 0 to 1", name, p);
        return NULL;
    }
    launch.f[0] = p;
    return dvti_random(&launch, key, 1, shape, dtype, ctx);
}

static dvt_array *dvti_permutation(const char *name, const dvt_key *key, int64_t n, dvt_ctx ctx) {
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_random(), DVTI_OP_permutation);
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %lld; expected 0 or more", name, (long long)n);
        return NULL;
    }
    return dvti_random(&launch, key, 2, DVT_SHAPE(n), DVT_I64, ctx);
}

DVT_API dvt_array *dvt_uniform(double low, double high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx) {
    return dvti_uniform("dvt_uniform", NULL, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_normal(double mean, double deviation, dvt_shape shape, dvt_dtype dtype,
                              dvt_ctx ctx) {
    return dvti_normal("dvt_normal", NULL, mean, deviation, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_randint(int64_t low, int64_t high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx) {
    return dvti_randint("dvt_randint", NULL, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_bernoulli(double p, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_bernoulli("dvt_bernoulli", NULL, p, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_permutation(int64_t n, dvt_ctx ctx) {
    return dvti_permutation("dvt_permutation", NULL, n, ctx);
}

DVT_API dvt_array *dvt_key_uniform(dvt_key key, double low, double high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_uniform("dvt_key_uniform", &key, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_normal(dvt_key key, double mean, double deviation, dvt_shape shape,
                                  dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_normal("dvt_key_normal", &key, mean, deviation, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_randint(dvt_key key, int64_t low, int64_t high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_randint("dvt_key_randint", &key, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_bernoulli(dvt_key key, double p, dvt_shape shape, dvt_dtype dtype,
                                     dvt_ctx ctx) {
    return dvti_bernoulli("dvt_key_bernoulli", &key, p, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_permutation(dvt_key key, int64_t n, dvt_ctx ctx) {
    return dvti_permutation("dvt_key_permutation", &key, n, ctx);
}

/* ---- keys ---- */
DVT_API dvt_key dvt_key_new(uint64_t seed) {
    dvt_key key;
    key.word[0] = (uint32_t)(seed >> 32);
    key.word[1] = (uint32_t)seed;
    return key;
}

static dvt_key dvti_key_derive(dvt_key key, uint32_t number, uint32_t use) {
    uint32_t counter[4] = {0, 0, 0, 0}, words[4];
    dvt_key result;
    counter[0] = number;
    counter[3] = use;
    dvti_philox4x32(counter, key.word, words);
    result.word[0] = words[0];
    result.word[1] = words[1];
    return result;
}

DVT_API void dvt_key_split(dvt_key key, int n, dvt_key *out) {
    bool jax = dvti_rng_engine_now() == DVT_RNG_JAX;
    int i;
    if (n < 0)
        dvti_fail(DVT_ERR_RANGE, "dvt_key_split: n is %d; expected 0 or more", n);
    else if (!out && n)
        dvti_null("dvt_key_split", "out");
    for (i = 0; out && i < n; i++) {
        if (jax) {
            out[i].word[0] = dvti_jax_word(key.word, 2 * (int64_t)n, 2 * (int64_t)i);
            out[i].word[1] = dvti_jax_word(key.word, 2 * (int64_t)n, 2 * (int64_t)i + 1);
        } else {
            out[i] = dvti_key_derive(key, (uint32_t)i, DVTI_COUNTER_SPLIT);
        }
    }
}

DVT_API dvt_key dvt_key_fold_in(dvt_key key, uint32_t number) {
    uint32_t counter[2] = {0, 0};
    dvt_key result;
    if (dvti_rng_engine_now() != DVT_RNG_JAX)
        return dvti_key_derive(key, number, DVTI_COUNTER_FOLD_IN);
    counter[1] = number;
    dvti_threefry2x32(key.word, counter, result.word);
    return result;
}
