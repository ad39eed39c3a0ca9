/* Random numbers on a GPU: the CPU's bits for the same key, for every distribution; streams; the
   sequences of other libraries. */
#include "on_gpu.h"

static const dvt_dtype float_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
static const dvt_dtype int_dtypes[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64};
/* Around the elements of one counter and of one block. */
static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 64, 1023, 1026};

#define SIZES 9

/* Tests every distribution of keys for the current engine. normal_ulps: float32 and 16-bit floats;
   wide_ulps: float64. */
static void check_keys(double normal_ulps, double wide_ulps, double size) {
    dvt_key key = dvt_key_fold_in(dvt_key_new(7), 11);
    dvt_ctx on[2];
    dvt_array *x[2];
    int k, i, side;
    on[0] = dvt_cpu();
    on[1] = dvt_gpu(0);
    for (k = 0; k < 4; k++)
        for (i = 0; i < SIZES; i++)
            DVT_SCOPE {
                dvt_shape shape = DVT_SHAPE(sizes[i]);
                for (side = 0; side < 2; side++)
                    x[side] = dvt_key_uniform(key, -1.5, 2.25, shape, float_dtypes[k], on[side]);
                SAME_ON_GPU(x[1], x[0], 0, "uniform");
                for (side = 0; side < 2; side++)
                    x[side] = dvt_key_normal(key, 0.5, 2, shape, float_dtypes[k], on[side]);
                same_on_gpu(x[1], x[0], k == 1 ? wide_ulps : normal_ulps, size, "normal", __FILE__,
                            __LINE__);
                for (side = 0; side < 2; side++)
                    x[side] = dvt_key_randint(key, k == 1 ? 3 : -100, 113, shape, int_dtypes[k],
                                              on[side]);
                SAME_ON_GPU(x[1], x[0], 0, "randint");
                for (side = 0; side < 2; side++)
                    x[side] =
                        dvt_key_bernoulli(key, 0.3, shape, k ? int_dtypes[k] : DVT_BOOL, on[side]);
                SAME_ON_GPU(x[1], x[0], 0, "bernoulli");
                for (side = 0; side < 2; side++)
                    x[side] = dvt_key_permutation(key, sizes[i], on[side]);
                SAME_ON_GPU(x[1], x[0], 0, "permutation");
            }
}

DVT_TEST(gpu_random_keys_are_the_cpus) {
    NEEDS_GPU;
    check_keys(0, 8, 2);
}

DVT_TEST(gpu_random_whole_range_of_int64) {
    dvt_key key = dvt_key_new(3);
    dvt_array *x[2];
    int64_t values[2][99];
    NEEDS_GPU;
    x[0] = dvt_key_randint(key, INT64_MIN, INT64_MAX, DVT_SHAPE(99), DVT_I64, dvt_cpu());
    x[1] = dvt_copyto(
        dvt_key_randint(key, INT64_MIN, INT64_MAX, DVT_SHAPE(99), DVT_I64, dvt_gpu(0)), dvt_cpu());
    CHECK_INT(dvt_to_host(x[0], values[0], sizeof values[0]), DVT_OK);
    CHECK_INT(dvt_to_host(x[1], values[1], sizeof values[1]), DVT_OK);
    CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0);
}

/* A permutation by one block, with more elements than it has threads; one by the whole grid. */
DVT_TEST(gpu_random_long_permutations) {
    static const int64_t n[] = {2000, 5000, 17001};
    int k;
    NEEDS_GPU;
    for (k = 0; k < 3; k++)
        DVT_SCOPE {
            dvt_key key = dvt_key_new((uint64_t)k);
            SAME_ON_GPU(dvt_key_permutation(key, n[k], dvt_gpu(0)),
                        dvt_key_permutation(key, n[k], dvt_cpu()), 0, "permutation");
        }
}

DVT_TEST(gpu_random_jax) {
    dvt_rng_engine before;
    NEEDS_GPU;
    before = dvt_set_rng_engine(DVT_RNG_JAX);
    check_keys(8, 4096, 1); /* the documented bounds are 1e-6 and 1e-12 */
    SAME_ON_GPU(dvt_key_permutation(dvt_key_new(5), 3000, dvt_gpu(0)),
                dvt_key_permutation(dvt_key_new(5), 3000, dvt_cpu()), 0, "a sort of several tiles");
    dvt_set_rng_engine(before);
}

/* The stream continues where the last array ended: two draws equal one draw in two parts. */
DVT_TEST(gpu_random_stream_continues) {
    dvt_array *whole, *part[2];
    NEEDS_GPU;
    dvt_seed(17);
    whole = dvt_copyto(dvt_uniform(0, 1, DVT_SHAPE(200), DVT_F32, dvt_gpu(0)), dvt_cpu());
    dvt_seed(17);
    part[0] = dvt_copyto(dvt_uniform(0, 1, DVT_SHAPE(120), DVT_F32, dvt_gpu(0)), dvt_cpu());
    part[1] = dvt_copyto(dvt_uniform(0, 1, DVT_SHAPE(80), DVT_F32, dvt_gpu(0)), dvt_cpu());
    {
        double *values = dvt_test_values(whole);
        dvt_test_equal(dvt_concat(part, 2, 0), values, 200, 0, __FILE__, __LINE__);
        free(values);
    }
    dvt_seed(0);
}

/* The numbers that Apache MXNet prints on a GPU (tests/unit/test_random_engines.c has them too):
   four generators in turn, one subsequence or several, each continuing its sequence; and float64,
   whose numbers use two words each. */
DVT_TEST(gpu_random_mxnet) {
    static const double first[] = {0.6686509f,  0.17409194f, 0.3850025f,
                                   0.24678314f, 0.35134333f, 0.8404298f};
    dvt_rng_engine before;
    double *v;
    int i, k;
    NEEDS_GPU;
    before = dvt_set_rng_engine(DVT_RNG_MXNET);
    dvt_seed(0);
    dvt_test_equal(dvt_copyto(dvt_uniform(0, 1, DVT_SHAPE(6), DVT_F32, dvt_gpu(0)), dvt_cpu()),
                   first, 6, 0, __FILE__, __LINE__);
    dvt_uniform(0, 1, DVT_SHAPE(3), DVT_F32, dvt_gpu(0));
    v = dvt_test_values(dvt_uniform(0, 1, DVT_SHAPE(200), DVT_F32, dvt_gpu(0)));
    CHECK(v && v[0] == 0.700198293f && v[50] == 0.942510188f && v[199] == 0.310746789f);
    free(v);
    for (k = 1; k < 4; k++) {
        v = dvt_test_values(dvt_uniform(2, 5, DVT_SHAPE(1000), float_dtypes[k], dvt_gpu(0)));
        for (i = 0; v && i < 1000; i++)
            CHECK(v[i] >= 2 && v[i] < 5);
        free(v);
    }
    dvt_set_rng_engine(before);
    dvt_seed(0);
}
