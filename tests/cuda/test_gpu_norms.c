/* Layer norm, RMSNorm, group norm and batch norm on a GPU, and their gradients, compared with
   float64 on cpu(). Each is one launch forward and one backward; both are counted. */
#include "on_gpu.h"

typedef enum norm_kind { LAYER, RMS, GROUP, BATCH, PREDICT } norm_kind;

typedef struct norm {
    norm_kind kind;
    dvt_shape shape;
    int axis; /* of batch norm */
    dvt_dtype dtype;
    int scaled; /* 0: neither gamma nor beta; 1: gamma; 2: both; 3: both in float32 */
} norm;

enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR, ARRAYS };

static const char *norm_text(const norm *c, const char *what) {
    static const char *const kinds[] = {"layer norm", "RMSNorm", "group norm", "batch norm",
                                        "predicted batch norm"};
    static char text[160];
    snprintf(text, sizeof text, "%s of %s %lld x %lld.., axis %d, scaled %d: %s", kinds[c->kind],
             dvt_dtype_name(c->dtype), (long long)c->shape.dim[0], (long long)c->shape.dim[1],
             c->axis, c->scaled, what);
    return text;
}

static int64_t channels_of(const norm *c) {
    return c->kind >= BATCH   ? c->shape.dim[c->axis]
           : c->kind == GROUP ? c->shape.dim[1]
                              : c->shape.dim[c->shape.ndim - 1];
}

/* Makes the inputs on cpu(); `x` is far from 0, so that differences to the mean matter. */
static void norm_inputs(const norm *c, dvt_array **in) {
    dvt_dtype of = c->scaled == 3 && c->dtype != DVT_F64 ? DVT_F32 : c->dtype;
    dvt_dtype statistics = c->dtype == DVT_F64 ? DVT_F64 : DVT_F32;
    dvt_shape channels = DVT_SHAPE(channels_of(c));
    in[X] = random_on_cpu(c->shape, c->dtype, 3, 5);
    in[GAMMA] = c->scaled > 0 ? random_on_cpu(channels, of, 0.5, 1.5) : NULL;
    in[BETA] = c->scaled > 1 ? random_on_cpu(channels, of, -1, 1) : NULL;
    in[RUNNING_MEAN] = random_on_cpu(channels, statistics, 3, 5);
    in[RUNNING_VAR] = random_on_cpu(channels, statistics, 0.5, 1.5);
}

static dvt_array *norm_compute(const norm *c, dvt_array *const *in) {
    dvt_array *y = NULL;
    switch (c->kind) {
    case LAYER:
        return dvt_layer_norm(in[X], in[GAMMA], in[BETA], 1e-5);
    case RMS:
        return dvt_rms_norm(in[X], in[GAMMA], 1e-5);
    case GROUP:
        return dvt_group_norm(in[X], 2, in[GAMMA], in[BETA], 1e-5);
    case BATCH:
    case PREDICT:
        DVT_MODE_SCOPE(DVT_UNCHANGED, c->kind == BATCH ? DVT_ON : DVT_OFF) {
            y = dvt_batch_norm(in[X], in[GAMMA], in[BETA], in[RUNNING_MEAN], in[RUNNING_VAR],
                               c->axis, 0.75, 1e-5);
        }
        return y;
    }
    return NULL;
}

/* Computes y and the gradients of x, gamma and beta from g, where `wanted` says so. */
static dvt_array *norm_run(const norm *c, dvt_array **in, dvt_array *g, unsigned wanted,
                           int forward, int backward) {
    dvt_array *y = NULL;
    dvt_stats before, after;
    int i;
    for (i = X; i <= BETA; i++)
        if (in[i] && wanted >> i & 1)
            CHECK_INT(dvt_attach_grad(in[i], DVT_GRAD_WRITE), DVT_OK);
    before = dvt_get_stats();
    DVT_RECORD {
        y = norm_compute(c, in);
    }
    after = dvt_get_stats();
    if (forward && after.kernels - before.kernels != forward)
        dvt_test_check(0, __FILE__, __LINE__, "%s: %d launches", norm_text(c, "forward"),
                       (int)(after.kernels - before.kernels));
    before = after;
    CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
    after = dvt_get_stats();
    if (backward && after.kernels - before.kernels != backward)
        dvt_test_check(0, __FILE__, __LINE__, "%s: %d launches", norm_text(c, "backward"),
                       (int)(after.kernels - before.kernels));
    return y;
}

/* Compares within a few roundings of the result, plus those of float32 sums of `size`. */
static void norm_near(const norm *c, dvt_array *got, dvt_array *want, double size,
                      const char *what) {
    dvt_dtype dtype = got ? dvt_dtype_of(got) : c->dtype;
    double ulps = dtype == DVT_F64 ? 256 : dtype == DVT_F32 ? 32 : 1; /* float64: of both */
    same_on_gpu(got, dvt_astype(want, dtype), ulps, size, norm_text(c, what), __FILE__, __LINE__);
}

static void norm_check(norm_kind kind, dvt_shape shape, int axis, dvt_dtype dtype, int scaled,
                       unsigned wanted) {
    static const char *const names[] = {"dx", "dgamma", "dbeta", "running mean",
                                        "running variance"};
    norm c;
    dvt_array *in[ARRAYS], *exact[ARRAYS], *there[ARRAYS], *g, *y, *z;
    int i;
    c.kind = kind;
    c.shape = shape;
    c.axis = axis;
    c.dtype = dtype;
    c.scaled = scaled;
    norm_inputs(&c, in);
    for (i = 0; i < ARRAYS; i++) {
        exact[i] = in[i] ? dvt_astype(in[i], DVT_F64) : NULL;
        there[i] = in[i] ? dvt_copyto(in[i], dvt_gpu(0)) : NULL;
    }
    dvt_clear_error();
    g = random_on_cpu(shape, scaled == 3 && dtype != DVT_F64 ? DVT_F32 : dtype, -1, 1);
    y = norm_run(&c, there, dvt_copyto(g, dvt_gpu(0)), wanted, kind == GROUP ? 0 : 1,
                 kind == GROUP ? 0 : 1);
    z = norm_run(&c, exact, dvt_astype(g, DVT_F64), wanted, 0, 0);
    norm_near(&c, y, z, 2, "y");
    for (i = 0; i < ARRAYS; i++)
        if (i > BETA && kind >= BATCH)
            norm_near(&c, there[i], exact[i], 2, names[i]);
        else if (i <= BETA && in[i] && wanted >> i & 1)
            norm_near(&c, dvt_grad(there[i]), dvt_grad(exact[i]), i == X ? 2 : 16, names[i]);
    /* Not recorded, it gives the same bits. */
    if (kind != BATCH)
        same_on_gpu(norm_compute(&c, there), dvt_copyto(y, dvt_cpu()), 0, 0,
                    norm_text(&c, "not recorded"), __FILE__, __LINE__);
}

/* Rows of one lane, several, a warp, a block; too long for registers. */
DVT_TEST(gpu_norms_of_rows) {
    static const int64_t lengths[] = {1, 7, 33, 64, 257, 1000, 8200};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 7; i++)
        DVT_SCOPE {
            const int64_t rows = lengths[i] > 1000 ? 2 : 9;
            norm_check(LAYER, DVT_SHAPE(rows, lengths[i]), 0, DVT_F32, 2, 7);
            if (i == 3 || i == 6 || IN_FULL)
                norm_check(RMS, DVT_SHAPE(rows, lengths[i]), 0, DVT_F32, 1, 7);
        }
}

DVT_TEST(gpu_norms_of_other_dtypes) {
    NEEDS_GPU;
    norm_check(LAYER, DVT_SHAPE(2, 3, 40), 0, DVT_F16, 2, 7);
    norm_check(LAYER, DVT_SHAPE(3, 4100), 0, DVT_F64, 0, 7);
    norm_check(RMS, DVT_SHAPE(3, 24), 0, DVT_BF16, 3, 7);
    norm_check(BATCH, DVT_SHAPE(4, 3, 5, 5), 1, DVT_F16, 3, 7);
    norm_check(GROUP, DVT_SHAPE(2, 4, 3, 5), 0, DVT_F32, 2, 7);
    if (!IN_FULL)
        return;
    norm_check(LAYER, DVT_SHAPE(5, 48), 0, DVT_BF16, 3, 7);
    norm_check(LAYER, DVT_SHAPE(3, 10), 0, DVT_F64, 2, 7);
    norm_check(RMS, DVT_SHAPE(3, 24), 0, DVT_BF16, 1, 7);
    norm_check(RMS, DVT_SHAPE(3, 9), 0, DVT_F16, 3, 7);
    norm_check(BATCH, DVT_SHAPE(6, 5), 1, DVT_BF16, 2, 7);
    norm_check(BATCH, DVT_SHAPE(4, 3, 6), 1, DVT_F64, 2, 7);
}

/* Some gradients alone, and sums over several parts. */
DVT_TEST(gpu_norms_of_some_gradients) {
    unsigned wanted;
    NEEDS_GPU;
    for (wanted = 1; wanted < 7; wanted++)
        DVT_SCOPE {
            norm_check(LAYER, DVT_SHAPE(5, 12), 0, DVT_F32, 2, wanted);
            norm_check(BATCH, DVT_SHAPE(5, 12), 1, DVT_F32, 2, wanted);
            norm_check(PREDICT, DVT_SHAPE(5, 12), 1, DVT_F32, 2, wanted);
        }
    norm_check(LAYER, DVT_SHAPE(700, 8), 0, DVT_F32, 2, 7);
    norm_check(LAYER, DVT_SHAPE(300, 40), 0, DVT_F32, 1, 2);
    norm_check(BATCH, DVT_SHAPE(700, 4), 1, DVT_F32, 2, 6);
}

/* Channels on any axis, one and several blocks for each. */
DVT_TEST(gpu_norms_of_channels) {
    static const norm_kind kinds[] = {BATCH, PREDICT};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 2; i++)
        DVT_SCOPE {
            norm_check(kinds[i], DVT_SHAPE(3, 5, 7, 7), 1, DVT_F32, 2, 7);
            norm_check(kinds[i], DVT_SHAPE(2, 3, 4, 37), 3, DVT_F32, 2, 7);
            norm_check(kinds[i], DVT_SHAPE(3, 4, 5), 0, DVT_F32, 2, 7);
            norm_check(kinds[i], DVT_SHAPE(1, 4), 1, DVT_F32, 2, 7);
            norm_check(kinds[i], DVT_SHAPE(900, 3), 1, DVT_F32, 2, 7);
        }
    norm_check(BATCH, DVT_SHAPE(9, 2, 31, 33), 1, DVT_F32, 2, 7);
}

/* A mean of 4096 with deviations of 1 leaves no digits to sums of squares in float32. */
DVT_TEST(gpu_norms_far_from_zero) {
    static const int64_t lengths[] = {40, 8200};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 2; i++) {
        dvt_array *x =
            dvt_add_scalar(random_on_cpu(DVT_SHAPE(2, lengths[i]), DVT_F32, -1, 1), 4096);
        dvt_array *ones = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)), *mean, *var, *y = NULL;
        dvt_array *want = dvt_layer_norm(dvt_astype(x, DVT_F64), NULL, NULL, 1e-5);
        want = dvt_astype(want, DVT_F32);
        same_on_gpu(dvt_layer_norm(dvt_copyto(x, dvt_gpu(0)), NULL, NULL, 1e-5), want, 8192, 1,
                    "layer norm", __FILE__, __LINE__);
        mean = dvt_zeros_like(ones);
        var = dvt_zeros_like(ones);
        DVT_TRAIN_MODE {
            y = dvt_batch_norm(dvt_copyto(x, dvt_gpu(0)), ones, dvt_zeros_like(ones), mean, var, 0,
                               0.5, 1e-5);
        }
        same_on_gpu(y, want, 8192, 1, "batch norm", __FILE__, __LINE__);
        same_on_gpu(mean, dvt_mul_scalar(dvt_mean(x, DVT_AXES(1)), 0.5), 4, 0, "its mean", __FILE__,
                    __LINE__);
        same_on_gpu(var, dvt_mul_scalar(dvt_var(x, DVT_AXES(1), 0), 0.5), 64, 0, "its variance",
                    __FILE__, __LINE__);
    }
}

/* ---- second order: the gradient is recorded ---- */
static void norm_check_twice(norm_kind kind, dvt_shape shape, int axis) {
    norm c;
    dvt_array *in[ARRAYS], *of[2][ARRAYS], *g, *y = NULL, *first[3], *dot = NULL;
    int k, i;
    memset(&c, 0, sizeof c);
    c.kind = kind;
    c.shape = shape;
    c.axis = axis;
    c.scaled = kind == RMS ? 1 : 2;
    c.dtype = DVT_F32;
    norm_inputs(&c, in);
    g = random_on_cpu(shape, DVT_F32, -1, 1);
    for (k = 0; k < 2; k++) {
        const int n = kind == RMS ? 2 : 3;
        for (i = 0; i < ARRAYS; i++) {
            of[k][i] = !in[i] ? NULL
                       : k    ? dvt_copyto(in[i], dvt_gpu(0))
                              : dvt_astype(in[i], DVT_F64);
            if (in[i] && i <= BETA)
                CHECK_INT(dvt_attach_grad(of[k][i], DVT_GRAD_WRITE), DVT_OK);
        }
        DVT_RECORD {
            dvt_array *head = k ? dvt_copyto(g, dvt_gpu(0)) : dvt_astype(g, DVT_F64);
            y = norm_compute(&c, of[k]);
            y = dvt_mul(y, y);
            CHECK_INT(dvt_gradients(&y, &head, 1, of[k], n, DVT_CREATE_GRAPH, first), DVT_OK);
            dot = dvt_sum(dvt_mul(first[0], head), DVT_ALL);
            for (i = 1; i < n; i++)
                dot = dvt_add(dot, dvt_sum(dvt_square(first[i]), DVT_ALL));
        }
        CHECK_INT(dvt_backward(dot), DVT_OK);
    }
    norm_near(&c, dvt_grad(of[1][X]), dvt_grad(of[0][X]), 1000, "second order, x");
    norm_near(&c, dvt_grad(of[1][GAMMA]), dvt_grad(of[0][GAMMA]), 1000, "second order, gamma");
    if (in[BETA])
        norm_near(&c, dvt_grad(of[1][BETA]), dvt_grad(of[0][BETA]), 1000, "second order, beta");
}

DVT_TEST(gpu_norms_of_second_order) {
    NEEDS_GPU;
    norm_check_twice(LAYER, DVT_SHAPE(3, 6), 0);
    if (IN_FULL)
        norm_check_twice(RMS, DVT_SHAPE(3, 6), 0);
    norm_check_twice(BATCH, DVT_SHAPE(4, 3, 2), 1);
    norm_check_twice(PREDICT, DVT_SHAPE(4, 3), 1);
}

/* ---- what is read and written ---- */
/* Values that the gradient reads are protected. Running statistics are written only at success. */
DVT_TEST(gpu_norms_protect_values) {
    dvt_array *x, *gamma, *beta, *mean, *var, *y = NULL;
    NEEDS_GPU;
    x = dvt_copyto(random_on_cpu(DVT_SHAPE(4, 3), DVT_F32, -1, 1), dvt_gpu(0));
    gamma = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_gpu(0));
    beta = dvt_zeros_like(gamma);
    mean = dvt_zeros_like(gamma);
    var = dvt_ones_like(gamma);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_layer_norm(x, gamma, beta, 1e-5);
    }
    CHECK(dvt_fill(gamma, 2) != NULL);
    CHECK_INT(dvt_backward(y), DVT_ERR_GRAD);
    CHECK(strstr(dvt_error(), "argument 2 of dvt_layer_norm") != NULL);
    dvt_clear_error();
    DVT_RECORD {
        y = dvt_layer_norm(x, NULL, beta, 1e-5);
    }
    CHECK(dvt_fill(beta, 1) != NULL); /* no gradient reads it */
    CHECK_INT(dvt_backward(y), DVT_OK);
    /* Predictions keep the statistics that they used. */
    DVT_MODE_SCOPE(DVT_ON, DVT_OFF) {
        y = dvt_batch_norm(x, gamma, beta, mean, var, 1, 0.5, 0);
    }
    CHECK(dvt_fill(var, 9) != NULL);
    CHECK_INT(dvt_backward(y), DVT_OK);
    same_on_gpu(dvt_grad(x), dvt_full(DVT_SHAPE(4, 3), 2, DVT_F32, dvt_cpu()), 0, 0, "dx", __FILE__,
                __LINE__);
    DVT_TRAIN_MODE {
        CHECK(dvt_batch_norm(x, gamma, beta, mean,
                             dvt_broadcast_to(dvt_slice(var, 0, 0, 1, 1), DVT_SHAPE(3)), 1, 0.5,
                             0) == NULL);
        dvt_clear_error();
        CHECK_VALUES(mean, 0, 0, 0, 0);
        /* gamma and the running mean are one array: it is read before it is written */
        y = dvt_batch_norm(x, mean, beta, mean, var, 1, 0.5, 1e-5);
    }
    CHECK_VALUES(y, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

/* Every part starts from the running statistics before the batch, and the step stores the mean of
   the results. */
#if !defined(DEVTENSOR_NO_NN)
DVT_TEST(gpu_norms_in_parts) {
    static const float values[] = {1, 3, 5, 9};
    dvt_block *net = dvt_nn_batch_norm();
    dvt_trainer *trainer;
    dvt_array *x, *px, *py;
    int parts = 0;
    NEEDS_GPU;
    x = dvt_from_host(values, DVT_SHAPE(4, 1), DVT_F32, dvt_gpu(0));
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
    dvt_block_forward(net, x);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0));
    CHECK_INT(dvt_trainer_set_parts(trainer, 2), DVT_OK);
    while (dvt_trainer_next_part(trainer, x, x, &px, &py)) {
        dvt_array *loss = NULL;
        CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_gpu(0)), 0, 0);
        DVT_RECORD {
            loss = dvt_sum(dvt_square(dvt_block_forward(net, px)), DVT_ALL);
        }
        CHECK_INT(dvt_backward(loss), DVT_OK);
        parts++;
    }
    CHECK_INT(parts, 2);
    CHECK_INT(dvt_trainer_step(trainer, 4), DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_gpu(0)), 1e-6, 0.45);
    CHECK_VALUES(dvt_block_data(net, "running_var", dvt_gpu(0)), 1e-6, 1.15);
}
#endif
