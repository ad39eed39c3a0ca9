/* Tests of random numbers: streams and keys whose numbers must never change, distributions, edge
   cases, errors. */
#include "dvt_test.h"

/* Checks the elements of a float32 array, bit for bit. */
static void same_f32(dvt_array *x, const float *expected, int n, int line) {
    float *values = (float *)malloc(sizeof(float) * (size_t)(n ? n : 1));
    int i;
    if (dvt_test_check(x && dvt_to_host(x, values, n * 4) == DVT_OK, __FILE__, line, "%s",
                       dvt_error()))
        for (i = 0; i < n; i++)
            dvt_test_check(memcmp(&values[i], &expected[i], 4) == 0, __FILE__, line,
                           "element %d is %.9g, expected %.9g", i, (double)values[i],
                           (double)expected[i]);
    free(values);
}

#define SAME_F32(x, ...)                                                                           \
    do {                                                                                           \
        const float same_e_[] = {__VA_ARGS__};                                                     \
        same_f32(x, same_e_, (int)(sizeof same_e_ / sizeof same_e_[0]), __LINE__);                 \
    } while (0)

static dvt_array *uniform(int64_t n, dvt_ctx ctx) {
    return dvt_uniform(0, 1, DVT_SHAPE(n), DVT_F32, ctx);
}

/* ---- our own streams and keys: their numbers must never change ---- */
DVT_TEST(random_streams_golden) {
    dvt_ctx cpu = dvt_cpu();
    SAME_F32(uniform(6, cpu), 0.178931415f, 0.0753308535f, 0.988172531f, 0.634882569f, 0.911428154f,
             0.316593468f);
    dvt_seed(7);
    CHECK_VALUES(dvt_uniform(0, 1, DVT_SHAPE(3), DVT_F64, cpu), 0, 0.87750941332802868,
                 0.7961045351244399, 0.59093779752510034);
    dvt_seed(7);
    SAME_F32(dvt_normal(0, 1, DVT_SHAPE(4), DVT_F32, cpu), 0.229131907f, 0.456983328f,
             -0.632832468f, -0.235738516f);
    dvt_seed(7);
    CHECK_VALUES(dvt_normal(0, 1, DVT_SHAPE(2), DVT_F64, cpu), 1e-15, 0.14602637649730152,
                 -0.4899096752337922);
    dvt_seed(7);
    CHECK_VALUES(dvt_randint(-5, 100, DVT_SHAPE(6), DVT_I32, cpu), 0, 87, 78, 57, 19, -4, 12);
    dvt_seed(7);
    CHECK_VALUES(dvt_bernoulli(0.3, DVT_SHAPE(12), DVT_F32, cpu), 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1,
                 1, 0);
    dvt_seed(7);
    CHECK_VALUES(dvt_permutation(10, cpu), 0, 9, 3, 6, 2, 5, 0, 1, 4, 7, 8);
    dvt_set_virtual_gpus(2, 0);
    DVT_SCOPE {
        dvt_seed(0x123456789u);
        SAME_F32(uniform(5, dvt_gpu(1)), 0.71592176f, 0.426513255f, 0.229897738f, 0.994773924f,
                 0.045545876f);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(random_keys_golden) {
    dvt_key key = dvt_key_new(0x1100000022u), out[3];
    SAME_F32(dvt_key_uniform(key, 0, 1, DVT_SHAPE(5), DVT_F32, dvt_cpu()), 0.598696411f,
             0.641314864f, 0.665919542f, 0.278206408f, 0.821438372f);
    dvt_key_split(key, 3, out);
    CHECK(out[0].word[0] == 2696789135u && out[0].word[1] == 3288693517u);
    CHECK(out[2].word[0] == 2414201485u && out[2].word[1] == 2958105866u);
    key = dvt_key_fold_in(key, 9);
    CHECK(key.word[0] == 2874443216u && key.word[1] == 2693507013u);
}

static int equal_arrays(dvt_array *a, dvt_array *b) {
    double *x = dvt_test_values(a), *y = dvt_test_values(b);
    int same = x && y && dvt_size(a) == dvt_size(b) &&
               memcmp(x, y, sizeof(double) * (size_t)dvt_size(a)) == 0;
    free(x);
    free(y);
    return same;
}

DVT_TEST(random_seeds_and_contexts) {
    dvt_array *a, *b, *c;
    dvt_seed(3);
    a = uniform(100, dvt_cpu());
    b = uniform(100, dvt_cpu());
    CHECK(!equal_arrays(a, b));
    dvt_seed(3);
    CHECK(equal_arrays(a, uniform(100, dvt_cpu())));
    CHECK(equal_arrays(b, uniform(100, dvt_cpu())));
    dvt_seed(4);
    CHECK(!equal_arrays(a, uniform(100, dvt_cpu())));
    /* each context has its own stream; drawing from one does not advance the others */
    dvt_seed(3);
    c = uniform(100, dvt_cpu_id(1));
    CHECK(!equal_arrays(a, c));
    CHECK(equal_arrays(a, uniform(100, dvt_cpu())));
    dvt_seed_ctx(3, dvt_cpu());
    CHECK(equal_arrays(a, uniform(100, dvt_cpu())));
    CHECK(!equal_arrays(c, uniform(100, dvt_cpu_id(1))));
    dvt_seed_ctx(4, dvt_cpu_id(1));
    CHECK(equal_arrays(b, uniform(100, dvt_cpu())));
    dvt_seed(3);
    CHECK(equal_arrays(c, uniform(100, dvt_cpu_id(1))));
    /* the default context, and the engine, restart at the seed */
    dvt_seed(3);
    DVT_WITH_CTX(dvt_cpu_id(1)) {
        dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
        dvt_array *x = uniform(100, zero);
        CHECK(equal_arrays(c, x));
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(x)), "cpu(1)");
    }
    dvt_set_rng_engine(DVT_RNG_JAX);
    CHECK(equal_arrays(a, uniform(100, dvt_cpu())));
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    CHECK(equal_arrays(a, uniform(100, dvt_cpu())));
    /* a seed keeps all of its 64 bits */
    dvt_seed((uint64_t)3 << 32 | 3);
    CHECK(!equal_arrays(a, uniform(100, dvt_cpu())));
}

DVT_TEST(random_keys_do_not_depend_on_the_context) {
    static const dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_MXNET, DVT_RNG_JAX};
    dvt_key key = dvt_key_new(99), other[2];
    int i;
    dvt_set_virtual_gpus(2, 0);
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            dvt_array *a;
            dvt_set_rng_engine(engines[i]);
            a = dvt_key_normal(key, 0, 1, DVT_SHAPE(7, 3), DVT_F32, dvt_cpu());
            uniform(10, dvt_cpu());
            dvt_seed(5);
            CHECK(equal_arrays(a, dvt_key_normal(key, 0, 1, DVT_SHAPE(7, 3), DVT_F32, dvt_gpu(1))));
            CHECK(equal_arrays(a, dvt_key_normal(key, 0, 1, DVT_SHAPE(21), DVT_F32, dvt_cpu())));
            dvt_key_split(key, 2, other);
            CHECK(!equal_arrays(
                a, dvt_key_normal(other[0], 0, 1, DVT_SHAPE(7, 3), DVT_F32, dvt_cpu())));
            CHECK(!equal_arrays(a, dvt_key_normal(dvt_key_fold_in(key, 0), 0, 1, DVT_SHAPE(7, 3),
                                                  DVT_F32, dvt_cpu())));
        }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_set_virtual_gpus(0, 0);
}

/* The bits do not depend on the number of threads. */
DVT_TEST(random_same_bits_for_any_threads) {
    static const int counts[] = {1, 2, 3, 8};
    static const dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_MXNET, DVT_RNG_JAX};
    dvt_key key = dvt_key_new(1);
    int e, i;
    for (e = 0; e < 3; e++) {
        dvt_array *first[4] = {NULL, NULL, NULL, NULL};
        dvt_set_rng_engine(engines[e]);
        for (i = 0; i < 4; i++) {
            dvt_array *now[4];
            int k;
            CHECK_INT(dvt_set_num_threads(counts[i]), DVT_OK);
            dvt_seed(1);
            now[0] = uniform(30001, dvt_cpu());
            now[1] = dvt_normal(0, 1, DVT_SHAPE(30001), DVT_F32, dvt_cpu());
            now[2] = dvt_key_randint(key, 0, 1000, DVT_SHAPE(30001), DVT_I32, dvt_cpu());
            now[3] = dvt_key_permutation(key, 5001, dvt_cpu());
            for (k = 0; k < 4; k++) {
                if (i)
                    CHECK(equal_arrays(first[k], now[k]));
                else
                    first[k] = now[k];
            }
        }
    }
    dvt_set_num_threads(0);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

/* A short draw is a prefix of a long one: elements do not depend on the length (Philox). */
DVT_TEST(random_short_draws_are_prefixes) {
    int64_t n;
    for (n = 1; n < 12; n++) {
        dvt_key key = dvt_key_new(17);
        dvt_array *u = dvt_key_uniform(key, 0, 1, DVT_SHAPE(12), DVT_F64, dvt_cpu());
        dvt_array *z = dvt_key_normal(key, 0, 1, DVT_SHAPE(12), DVT_F32, dvt_cpu());
        CHECK(equal_arrays(dvt_rows(u, 0, n),
                           dvt_key_uniform(key, 0, 1, DVT_SHAPE(n), DVT_F64, dvt_cpu())));
        CHECK(equal_arrays(dvt_rows(z, 0, n),
                           dvt_key_normal(key, 0, 1, DVT_SHAPE(n), DVT_F32, dvt_cpu())));
    }
}

/* ---- distributions ---- */
typedef struct moments {
    double mean, variance, skew, kurtosis, lowest, highest, neighbors;
} moments;

static moments moments_of(dvt_array *x) {
    moments m = {0, 0, 0, 0, INFINITY, -INFINITY, 0};
    int64_t n = dvt_size(x), i;
    double *v = dvt_test_values(x);
    for (i = 0; v && i < n; i++) {
        m.mean += v[i] / (double)n;
        m.lowest = fmin(m.lowest, v[i]);
        m.highest = fmax(m.highest, v[i]);
    }
    for (i = 0; v && i < n; i++) {
        double d = v[i] - m.mean;
        m.variance += d * d / (double)n;
        m.skew += d * d * d / (double)n;
        m.kurtosis += d * d * d * d / (double)n;
        if (i)
            m.neighbors += d * (v[i - 1] - m.mean) / (double)n;
    }
    m.neighbors /= m.variance;
    m.skew /= pow(m.variance, 1.5);
    m.kurtosis /= m.variance * m.variance;
    free(v);
    return m;
}

DVT_TEST(random_uniform_distribution) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int i;
    for (i = 0; i < 4; i++) {
        moments m = moments_of(dvt_uniform(-1, 3, DVT_SHAPE(200, 500), dtypes[i], dvt_cpu()));
        CHECK(m.lowest >= -1 && m.lowest < -0.99 && m.highest < 3 && m.highest > 2.97);
        CHECK_CLOSE(m.mean, 1, 0.02);
        CHECK_CLOSE(m.variance, 16.0 / 12, 0.02);
        CHECK_CLOSE(m.kurtosis, 1.8, 0.02);
        CHECK_CLOSE(m.neighbors, 0, 0.015);
    }
}

DVT_TEST(random_normal_distribution) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    static const dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_JAX};
    int i, e;
    for (e = 0; e < 2; e++)
        for (i = 0; i < 4; i++) {
            dvt_shape shape = DVT_SHAPE(100000);
            moments m;
            dvt_set_rng_engine(engines[e]);
            m = moments_of(dvt_key_normal(dvt_key_new(6), 2, 3, shape, dtypes[i], dvt_cpu()));
            CHECK_CLOSE(m.mean, 2, 0.02);
            CHECK_CLOSE(m.variance, 9, 0.02);
            /* JAX draws 8 bits for bfloat16: 128 values, which reach 2.9 deviations on one side */
            CHECK_CLOSE(m.skew, 0, dtypes[i] == DVT_BF16 ? 0.15 : 0.04);
            CHECK_CLOSE(m.kurtosis, 3, 0.05);
            CHECK_CLOSE(m.neighbors, 0, 0.015);
            CHECK(m.highest > 2 + 3 * (dtypes[i] == DVT_BF16 ? 2.4 : 3.0));
            CHECK(m.lowest < 2 - 3 * (dtypes[i] == DVT_BF16 ? 2.4 : 3.0));
        }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    CHECK_VALUES(dvt_normal(5, 0, DVT_SHAPE(3), DVT_F32, dvt_cpu()), 0, 5, 5, 5);
}

/* Counts a million numbers in 128 bins of equal probability. Chi-square with 127 degrees of freedom
   exceeds 212 with probability 3e-6. Then the tails: counts within five of their deviations. */
DVT_TEST(random_normal_histogram) {
    enum { N = 1000000, PARTS = 128 };

    static const double beyond[] = {2, 3, 4, 4.5};
    dvt_array *x = dvt_key_normal(dvt_key_new(23), 0, 1, DVT_SHAPE(N), DVT_F32, dvt_cpu());
    double *v = dvt_test_values(x), count[PARTS] = {0}, chi = 0;
    int i, k;
    for (i = 0; v && i < N; i++)
        count[(int)fmin(PARTS - 1, PARTS * 0.5 * erfc(-v[i] * 0.70710678118654752440))]++;
    for (k = 0; k < PARTS; k++)
        chi += (count[k] - N / PARTS) * (count[k] - N / PARTS) / (N / PARTS);
    dvt_test_check(chi < 212, __FILE__, __LINE__, "chi-square is %g", chi);
    for (k = 0; k < 4; k++) {
        double p = 0.5 * erfc(beyond[k] * 0.70710678118654752440), tail[2] = {0, 0};
        for (i = 0; v && i < N; i++) {
            tail[0] += v[i] < -beyond[k];
            tail[1] += v[i] > beyond[k];
        }
        for (i = 0; i < 2; i++)
            dvt_test_check(fabs(tail[i] - N * p) < 5 * sqrt(N * p), __FILE__, __LINE__,
                           "%g numbers beyond %g, expected %g", tail[i], beyond[k], N * p);
    }
    free(v);
}

/* Mean and deviation are as large and as small as a float allows. */
DVT_TEST(random_normal_extremes) {
    const double largest = 3.4028234663852886e38, least = 1.4012984643248171e-45;
    dvt_shape shape = DVT_SHAPE(1000);
    double *v = dvt_test_values(dvt_normal(largest, largest, shape, DVT_F32, dvt_cpu()));
    int i;
    for (i = 0; v && i < 1000; i++)
        CHECK(v[i] == v[i]);
    free(v);
    v = dvt_test_values(dvt_normal(0, least, shape, DVT_F32, dvt_cpu()));
    for (i = 0; v && i < 1000; i++)
        CHECK(fabs(v[i]) < 7 * least && v[i] / least == floor(v[i] / least));
    free(v);
    v = dvt_test_values(dvt_normal(1, 1e-9, shape, DVT_F32, dvt_cpu()));
    for (i = 0; v && i < 1000; i++)
        CHECK(v[i] == 1);
    free(v);
}

/* Compares counts of each value with their expectation. Chi-square with 9 degrees of freedom
   exceeds 40 with probability 1e-5. */
DVT_TEST(random_randint_distribution) {
    static const dvt_dtype dtypes[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64};
    int i, j;
    for (i = 0; i < 4; i++) {
        double *v = dvt_test_values(dvt_randint(3, 13, DVT_SHAPE(50000), dtypes[i], dvt_cpu()));
        double count[10] = {0}, chi = 0;
        for (j = 0; v && j < 50000; j++) {
            CHECK(v[j] >= 3 && v[j] < 13 && v[j] == floor(v[j]));
            count[(int)v[j] - 3]++;
        }
        for (j = 0; j < 10; j++)
            chi += (count[j] - 5000) * (count[j] - 5000) / 5000;
        CHECK(chi < 40 && chi > 0.5);
        free(v);
    }
    CHECK_VALUES(dvt_randint(-7, -6, DVT_SHAPE(3), DVT_I64, dvt_cpu()), 0, -7, -7, -7);
}

DVT_TEST(random_randint_full_range) {
    moments m = moments_of(dvt_randint(INT64_MIN, INT64_MAX, DVT_SHAPE(20000), DVT_I64, dvt_cpu()));
    CHECK_CLOSE(m.mean / 9.2e18, 0, 0.02);
    CHECK_CLOSE(m.variance / (9.223372036854775807e18 * 9.223372036854775807e18), 1.0 / 3, 0.02);
    m = moments_of(dvt_randint(-128, 128, DVT_SHAPE(20000), DVT_I8, dvt_cpu()));
    CHECK(m.lowest == -128 && m.highest == 127);
    m = moments_of(dvt_randint(0, 256, DVT_SHAPE(20000), DVT_U8, dvt_cpu()));
    CHECK(m.lowest == 0 && m.highest == 255);
}

DVT_TEST(random_bernoulli_distribution) {
    int i;
    for (i = 0; i < DVT_DTYPE_COUNT; i++) {
        moments m = moments_of(dvt_bernoulli(0.25, DVT_SHAPE(20000), (dvt_dtype)i, dvt_cpu()));
        CHECK_CLOSE(m.mean, 0.25, 0.02);
        CHECK(m.lowest == 0 && m.highest == 1);
        CHECK_INT(
            dvt_item(dvt_sum(
                dvt_astype(dvt_bernoulli(1, DVT_SHAPE(500), (dvt_dtype)i, dvt_cpu()), DVT_F64),
                DVT_ALL)),
            500);
        CHECK_INT(
            dvt_item(dvt_sum(
                dvt_astype(dvt_bernoulli(0, DVT_SHAPE(500), (dvt_dtype)i, dvt_cpu()), DVT_F64),
                DVT_ALL)),
            0);
    }
}

/* Each value occurs once; each of the 24 orders of 4 is equally frequent (chi-square, 23 degrees of
   freedom). */
DVT_TEST(random_permutation_distribution) {
    static const dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_JAX};
    int e, i, j;
    for (e = 0; e < 2; e++) {
        double count[256] = {0}, chi = 0;
        dvt_key key = dvt_key_new(8);
        double *v;
        int seen[1000] = {0};
        dvt_set_rng_engine(engines[e]);
        v = dvt_test_values(dvt_key_permutation(key, 1000, dvt_cpu()));
        for (i = 0; v && i < 1000; i++)
            seen[(int)v[i]]++;
        for (i = 0; i < 1000; i++)
            CHECK_INT(seen[i], 1);
        free(v);
        for (i = 0; i < 4800; i++)
            DVT_SCOPE {
                int64_t order[4];
                dvt_to_host(dvt_key_permutation(dvt_key_fold_in(key, (uint32_t)i), 4, dvt_cpu()),
                            order, sizeof order);
                count[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]]++;
            }
        for (i = 0, j = 0; i < 256; i++)
            if (count[i] > 0) {
                chi += (count[i] - 200) * (count[i] - 200) / 200;
                j++;
            }
        CHECK_INT(j, 24);
        CHECK(chi < 60);
    }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    CHECK_INT(dvt_size(dvt_permutation(0, dvt_cpu())), 0);
    CHECK_VALUES(dvt_permutation(1, dvt_cpu()), 0, 0);
    CHECK_INT(dvt_dtype_of(dvt_permutation(4, dvt_cpu())), DVT_I64);
}

/* ---- corners ---- */
/* Rounding to a narrow dtype would often give the upper bound, which must not be drawn. */
DVT_TEST(random_uniform_never_high) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32};
    static const double bounds[][2] = {{0, 1},       {-1, 0},      {0.999, 1},  {100, 101},
                                       {-101, -100}, {1e-5, 2e-5}, {2048, 2056}};
    static const dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_MXNET, DVT_RNG_JAX};
    int i, b, e, j;
    for (e = 0; e < 3; e++)
        for (i = 0; i < 3; i++)
            for (b = 0; b < 7; b++)
                DVT_SCOPE {
                    double low = bounds[b][0], high = bounds[b][1], ends[2], *v;
                    dvt_array *x, *end[2];
                    dvt_set_rng_engine(engines[e]);
                    end[0] = dvt_scalar(low, dtypes[i], dvt_cpu());
                    end[1] = dvt_scalar(high, dtypes[i], dvt_cpu());
                    ends[0] = dvt_item(end[0]);
                    ends[1] = dvt_item(end[1]);
                    x = e == 2 ? dvt_key_uniform(dvt_key_new(3), low, high, DVT_SHAPE(4000),
                                                 dtypes[i], dvt_cpu())
                               : dvt_uniform(low, high, DVT_SHAPE(4000), dtypes[i], dvt_cpu());
                    v = dvt_test_values(x);
                    for (j = 0; v && j < 4000; j++)
                        CHECK(v[j] >= ends[0] && (v[j] < ends[1] || ends[0] == ends[1]));
                    free(v);
                }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    CHECK_VALUES(dvt_uniform(2, 2, DVT_SHAPE(2), DVT_F32, dvt_cpu()), 0, 2, 2);
    CHECK_VALUES(dvt_uniform(1, 1 + 1e-12, DVT_SHAPE(2), DVT_F32, dvt_cpu()), 0, 1, 1);
}

DVT_TEST(random_shapes) {
    dvt_array *x = dvt_uniform(0, 1, DVT_SCALAR, DVT_F32, dvt_cpu());
    CHECK_INT(dvt_ndim(x), 0);
    CHECK(dvt_item(x) >= 0 && dvt_item(x) < 1);
    x = dvt_normal(0, 1, DVT_SHAPE(2, 0, 3), DVT_F64, dvt_cpu());
    CHECK_INT(dvt_size(x), 0);
    CHECK_INT(dvt_ndim(x), 3);
    /* the empty draw uses no counter, and the scalar uses one */
    dvt_seed(0);
    uniform(4, dvt_cpu());
    x = uniform(4, dvt_cpu());
    dvt_seed(0);
    dvt_uniform(0, 1, DVT_SCALAR, DVT_F32, dvt_cpu());
    dvt_uniform(0, 1, DVT_SHAPE(0), DVT_F32, dvt_cpu());
    CHECK(equal_arrays(x, uniform(4, dvt_cpu())));
}

DVT_TEST(random_errors) {
    dvt_ctx cpu = dvt_cpu();
    dvt_shape three = DVT_SHAPE(3);
    dvt_key key = dvt_key_new(0), out[2];
    double nan = (double)NAN, inf = (double)INFINITY;
    CHECK_ERROR(dvt_uniform(0, 1, three, DVT_I32, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_uniform(0, 1, three, DVT_BOOL, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_uniform(0, 1, three, (dvt_dtype)77, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_normal(0, 1, three, DVT_U8, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_randint(0, 5, three, DVT_F32, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_randint(0, 1, three, DVT_BOOL, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_bernoulli(0.5, three, (dvt_dtype)-1, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_uniform(1, 0, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(nan, 1, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(0, nan, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(0, inf, three, DVT_F64, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(-1e308, 1e308, three, DVT_F64, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(0, 1e300, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(-60000, 60000, three, DVT_F16, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(0, -1, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(0, nan, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(inf, 1, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(0, 1e39, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(-1e39, 1, three, DVT_F16, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(5, 5, three, DVT_I32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(-1, 5, three, DVT_U8, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(0, 257, three, DVT_U8, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(-129, 5, three, DVT_I8, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(0, (int64_t)1 << 32, three, DVT_I32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_bernoulli(1.5, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_bernoulli(-0.1, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_bernoulli(nan, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_permutation(-1, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_uniform(0, 1, DVT_SHAPE(-1), DVT_F32, cpu), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_uniform(0, 1, three, DVT_F32, dvt_gpu(9)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_key_normal(key, 0, -1, three, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_key_split(key, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_key_split(key, -2, out), DVT_ERR_RANGE);
    dvt_key_split(key, 0, NULL);
    CHECK_ERROR(dvt_set_rng_engine((dvt_rng_engine)9), DVT_ERR_VALUE);
    CHECK_INT(dvt_set_rng_engine(DVT_RNG_PHILOX), DVT_RNG_PHILOX);
    dvt_clear_error();
    CHECK(dvt_key_uniform(key, 2, 1, three, DVT_F32, cpu) == NULL);
    CHECK(strstr(dvt_error(), "dvt_key_uniform") != NULL);
    dvt_clear_error();
}

/* A refused call does not advance the stream. */
DVT_TEST(random_refused_calls_draw_nothing) {
    dvt_array *a;
    dvt_seed(1);
    a = uniform(8, dvt_cpu());
    dvt_seed(1);
    CHECK_ERROR(dvt_uniform(1, 0, DVT_SHAPE(3), DVT_F32, dvt_cpu()), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_randint(0, 999, DVT_SHAPE(3), DVT_I8, dvt_cpu()), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_normal(0, 1, DVT_SHAPE(3), DVT_I8, dvt_cpu()), DVT_ERR_DTYPE);
    CHECK(equal_arrays(a, uniform(8, dvt_cpu())));
}
