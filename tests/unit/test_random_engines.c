/* Tests of engines that give other libraries' numbers: what the tutorials print, MXNet's states and
   generators, JAX's keys. */
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

/* ---- what the tutorials and other libraries print ---- */
DVT_TEST(random_tutorials_mxnet_cpu) {
    CHECK_INT(dvt_set_rng_engine(DVT_RNG_MXNET), DVT_RNG_PHILOX);
    SAME_F32(dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), 0.5488135f, 0.5928446f,
             0.71518934f, 0.84426576f, 0.60276335f, 0.8579456f);
    CHECK_INT(dvt_set_rng_engine(DVT_RNG_PHILOX), DVT_RNG_MXNET);
}

DVT_TEST(random_tutorials_mxnet_gpu) {
    dvt_set_virtual_gpus(2, 0);
    dvt_set_rng_engine(DVT_RNG_MXNET);
    DVT_SCOPE {
        SAME_F32(dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0)), 0.6686509f, 0.17409194f,
                 0.3850025f, 0.24678314f, 0.35134333f, 0.8404298f);
    }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(random_tutorials_jax) {
    dvt_set_rng_engine(DVT_RNG_JAX);
    SAME_F32(dvt_key_uniform(dvt_key_new(0), 0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()),
             0.57450044f, 0.09968603f, 0.7419659f, 0.8941783f, 0.59656656f, 0.45325184f);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

/* Draws of 64 elements or more are split over several states, which continue where they stopped. */
DVT_TEST(random_mxnet_cpu_states) {
    float v[200];
    dvt_array *x;
    dvt_set_rng_engine(DVT_RNG_MXNET);
    uniform(6, dvt_cpu());
    x = uniform(200, dvt_cpu());
    CHECK(dvt_to_host(x, v, sizeof v) == DVT_OK);
    CHECK(v[0] == 0.544883192f && v[49] == 0.758615613f && v[50] == 0.41702199f);
    CHECK(v[51] == 0.997184813f && v[100] == 0.435994893f && v[150] == 0.55079788f);
    CHECK(v[199] == 0.757665217f);
    /* every cpu(i) shares these states */
    SAME_F32(uniform(5, dvt_cpu_id(3)), 0.521848321f, 0.105907604f, 0.414661944f, 0.473600417f,
             0.264555603f);
    dvt_seed(5);
    SAME_F32(uniform(3, dvt_cpu()), 0.860737324f, 0.322620243f, 0.766228437f);
    dvt_seed_ctx(0, dvt_cpu());
    SAME_F32(uniform(2, dvt_cpu()), 0.5488135f, 0.5928446f);
    dvt_seed(0);
    SAME_F32(dvt_uniform(-2, 3, DVT_SHAPE(2), DVT_F32, dvt_cpu()), 0.744067669f, 0.964222908f);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

/* Four generators take turns, starting with number 1. Each keeps the positions of its
   subsequences. */
DVT_TEST(random_mxnet_gpu_generators) {
    float v[200];
    dvt_set_virtual_gpus(2, 0);
    dvt_set_rng_engine(DVT_RNG_MXNET);
    DVT_SCOPE {
        uniform(6, dvt_gpu(0));
        SAME_F32(uniform(3, dvt_gpu(0)), 0.338102162f, 0.0312792659f, 0.229098499f);
        CHECK(dvt_to_host(uniform(200, dvt_gpu(0)), v, 800) == DVT_OK);
        CHECK(v[0] == 0.700198293f && v[50] == 0.942510188f && v[199] == 0.310746789f);
        uniform(5, dvt_gpu(0));
        SAME_F32(uniform(7, dvt_gpu(0)), 0.63699168f, 0.128470004f, 0.172498822f, 0.936820626f,
                 0.591834545f, 0.949709654f, 0.39255017f);
        CHECK(dvt_to_host(uniform(70, dvt_gpu(0)), v, 280) == DVT_OK);
        CHECK(v[0] == 0.740925908f && v[34] == 0.262620151f && v[35] == 0.722190022f &&
              v[69] == 0.948453665f);
        SAME_F32(uniform(4, dvt_gpu(0)), 0.674191475f, 0.9845137f, 0.843461394f, 0.120373905f);
        dvt_seed(9);
        SAME_F32(uniform(3, dvt_gpu(1)), 0.802398205f, 0.826288939f, 0.667257547f);
    }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(random_mxnet_other_dtypes_and_limits) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_F16, DVT_BF16};
    dvt_ctx ctx[2];
    int i, c;
    dvt_set_virtual_gpus(1, 0);
    dvt_set_rng_engine(DVT_RNG_MXNET);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_gpu(0);
    for (i = 0; i < 3; i++)
        for (c = 0; c < 2; c++)
            DVT_SCOPE {
                dvt_array *x = dvt_uniform(2, 5, DVT_SHAPE(5000), dtypes[i], ctx[c]);
                double *v = dvt_test_values(x), sum = 0;
                int j;
                for (j = 0; v && j < 5000; j++) {
                    CHECK(v[j] >= 2 && v[j] < 5);
                    sum += v[j];
                }
                CHECK_CLOSE(sum / 5000, 3.5, 0.02);
                free(v);
            }
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_set_virtual_gpus(0, 0);
}

/* Expected values were computed with JAX 0.4.30 and jax_enable_x64. */
DVT_TEST(random_jax_keys) {
    dvt_key key = dvt_key_new(42), out[3];
    dvt_set_rng_engine(DVT_RNG_JAX);
    CHECK(dvt_key_new(0x123456789abcdef0u).word[0] == 305419896u);
    CHECK(dvt_key_new(0x123456789abcdef0u).word[1] == 2596069104u);
    dvt_key_split(dvt_key_new(0), 2, out);
    CHECK(out[0].word[0] == 4146024105u && out[0].word[1] == 967050713u);
    CHECK(out[1].word[0] == 2718843009u && out[1].word[1] == 1272950319u);
    dvt_key_split(key, 3, out);
    CHECK(out[0].word[0] == 3134548294u && out[0].word[1] == 3733159049u);
    CHECK(out[1].word[0] == 3746501087u && out[1].word[1] == 894150801u);
    CHECK(out[2].word[0] == 801545058u && out[2].word[1] == 2363201431u);
    key = dvt_key_fold_in(key, 7);
    CHECK(key.word[0] == 2547012911u && key.word[1] == 1371500959u);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

DVT_TEST(random_jax_uniform) {
    dvt_key key = dvt_key_new(42);
    dvt_ctx cpu = dvt_cpu();
    dvt_set_rng_engine(DVT_RNG_JAX);
    SAME_F32(dvt_key_uniform(key, 0, 1, DVT_SHAPE(6), DVT_F32, cpu), 0.729818821f, 0.869193792f,
             0.872300148f, 0.208185673f, 0.186624169f, 0.550225616f);
    SAME_F32(dvt_key_uniform(key, 0, 1, DVT_SHAPE(5), DVT_F32, cpu), 0.729818821f, 0.869193792f,
             0.196437955f, 0.208185673f, 0.186624169f);
    SAME_F32(dvt_key_uniform(key, 0, 1, DVT_SCALAR, DVT_F32, cpu), 0.426727533f);
    SAME_F32(dvt_key_uniform(key, -2, 3, DVT_SHAPE(5), DVT_F32, cpu), 1.6490941f, 2.34596896f,
             -1.01781023f, -0.959071636f, -1.06687915f);
    SAME_F32(dvt_key_uniform(key, 0.1, 0.7, DVT_SHAPE(5), DVT_F32, cpu), 0.537891269f, 0.621516228f,
             0.21786277f, 0.224911392f, 0.211974502f);
    CHECK_VALUES(dvt_key_uniform(key, 0, 1, DVT_SHAPE(5), DVT_F64, cpu), 0, 0.6439377419166104,
                 0.3225158153439711, 0.19349373184432794, 0.8864933847523995, 0.842085325544413);
    CHECK_VALUES(dvt_key_uniform(key, -0.3, 1.7, DVT_SHAPE(5), DVT_F64, cpu), 1e-15,
                 0.9878754838332207, 0.34503163068794224, 0.0869874636886559, 1.472986769504799,
                 1.3841706510888259);
    CHECK_VALUES(dvt_key_uniform(key, 0, 1, DVT_SHAPE(5), DVT_F16, cpu), 0, 0.1279296875,
                 0.5732421875, 0.9697265625, 0.099609375, 0.84765625);
    CHECK_VALUES(dvt_key_uniform(key, 0, 1, DVT_SHAPE(5), DVT_BF16, cpu), 0, 0.171875, 0.6953125,
                 0.8359375, 0.0078125, 0.953125);
    CHECK_VALUES(dvt_key_uniform(key, -1, 3, DVT_SHAPE(5), DVT_F16, cpu), 0, -0.48828125,
                 1.29296875, 2.87890625, -0.6015625, 2.390625);
    CHECK_VALUES(dvt_key_uniform(key, 0.1, 0.7, DVT_SHAPE(6), DVT_F16, cpu), 0, 0.1767578125,
                 0.44384765625, 0.68212890625, 0.1597900390625, 0.60888671875, 0.1351318359375);
    CHECK_VALUES(dvt_key_uniform(key, 0.1, 0.7, DVT_SHAPE(6), DVT_F64, cpu), 0,
                 0x1.f276a5ae81e77p-2, 0x1.603060b0ff1f7p-3, 0x1.20dff7bc7ca42p-2,
                 0x1.5e7eabfda0243p-1, 0x1.4417d6ce330ddp-3, 0x1.0ccc7e30a8b1cp-2);
    CHECK_VALUES(dvt_key_uniform(key, -1, 3, DVT_SHAPE(5), DVT_BF16, cpu), 0, -0.3125, 1.78125,
                 2.34375, -0.96875, 2.8125);
    CHECK_VALUES(dvt_key_bernoulli(key, 0.3, DVT_SHAPE(12), DVT_BOOL, cpu), 0, 0, 1, 0, 0, 1, 1, 0,
                 0, 1, 0, 1, 1);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

DVT_TEST(random_jax_normal) {
    dvt_key key = dvt_key_new(42);
    dvt_ctx cpu = dvt_cpu();
    double *v;
    double low = 0, high = 0;
    int i;
    dvt_set_rng_engine(DVT_RNG_JAX);
    CHECK_VALUES(dvt_key_normal(dvt_key_new(0), 0, 1, DVT_SHAPE(10), DVT_F32, cpu), 1e-6,
                 -0.37211090326309204, 0.2642311453819275, -0.18252767622470856,
                 -0.7368196845054626, -0.440303772687912, -0.152144193649292, -0.6713534593582153,
                 -0.5908641219139099, 0.7316888570785522, 0.5673025846481323);
    CHECK_CLOSE(dvt_item(dvt_key_normal(key, 0, 1, DVT_SCALAR, DVT_F32, cpu)), -0.1847117692232132,
                1e-6);
    CHECK_CLOSE(dvt_item(dvt_key_normal(key, 3, 2, DVT_SCALAR, DVT_F32, cpu)),
                3 - 2 * 0.1847117692232132, 1e-6);
    CHECK_VALUES(dvt_key_normal(key, 0, 1, DVT_SHAPE(5), DVT_F64, cpu), 1e-12, 0.36900430470828355,
                 -0.46067522739329636, -0.8650935152175325, 1.2080884797486335, 1.003065314088024);
    CHECK_VALUES(dvt_key_normal(key, 0, 1, DVT_SHAPE(5), DVT_F16, cpu), 1e-3, -1.134765625,
                 0.1851806640625, 1.880859375, -1.2822265625, 1.02734375);
    CHECK_VALUES(dvt_key_normal(key, 0, 1, DVT_SHAPE(5), DVT_BF16, cpu), 1e-2, -0.9375, 0.515625,
                 0.984375, -2.328125, 1.703125);
    /* includes the tails */
    v = dvt_test_values(dvt_key_normal(key, 0, 1, DVT_SHAPE(100000), DVT_F32, cpu));
    for (i = 0; v && i < 100000; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    CHECK_CLOSE(high, 4.588222503662109, 1e-6);
    CHECK_CLOSE(low, -4.889041900634766, 1e-6);
    free(v);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

DVT_TEST(random_jax_randint_and_permutation) {
    dvt_key key = dvt_key_new(42);
    dvt_ctx cpu = dvt_cpu();
    dvt_shape seven = DVT_SHAPE(7), five = DVT_SHAPE(5);
    dvt_array *x;
    dvt_set_rng_engine(DVT_RNG_JAX);
    CHECK_VALUES(dvt_key_randint(key, -5, 100, seven, DVT_I32, cpu), 0, -5, 50, 16, 94, 55, 53, 18);
    CHECK_VALUES(dvt_key_randint(key, -128, 128, seven, DVT_I8, cpu), 0, -118, -80, 59, 116, -107,
                 95, -68);
    CHECK_VALUES(dvt_key_randint(key, 0, 256, seven, DVT_U8, cpu), 0, 10, 48, 187, 244, 21, 223,
                 60);
    CHECK_VALUES(dvt_key_randint(key, 3, 200, seven, DVT_U8, cpu), 0, 13, 51, 190, 50, 24, 29, 63);
    CHECK_VALUES(dvt_key_randint(key, -10, 1000000000000000, five, DVT_I64, cpu), 0,
                 253895364918881, 983702267084027, 320749094592970, 69405895547000,
                 105259193649677);
    CHECK_VALUES(dvt_key_randint(key, INT32_MIN, (int64_t)INT32_MAX + 1, five, DVT_I32, cpu), 0,
                 -901947532, 1406548075, -1163441337, -936397815, 1588042568);
    CHECK_VALUES(dvt_key_permutation(key, 10, cpu), 0, 9, 0, 2, 6, 1, 4, 5, 8, 3, 7);
    CHECK_VALUES(dvt_key_permutation(key, 1, cpu), 0, 0);
    x = dvt_key_permutation(key, 3000, cpu);
    CHECK_VALUES(dvt_rows(x, 0, 8), 0, 2553, 1066, 2991, 1806, 2159, 2768, 1383, 1946);
    CHECK_VALUES(dvt_rows(x, 2997, 3000), 0, 1345, 1067, 1544);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}
