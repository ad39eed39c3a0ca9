/* Tests of the timing model of virtual GPUs: its numbers, its clock, and that results and unmodeled
   programs do not change. Modeled times are the same in every run. */
#include "dvt_test.h"

/* Starts the model. All times are sums of powers of two, so that clocks are exact. */
static void model_begin(double latency, double bandwidth, double launch, double flops) {
    dvt_virtual_model model;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    memset(&model, 0, sizeof model);
    model.latency = latency;
    model.bandwidth = bandwidth;
    model.launch = launch;
    model.flops = flops;
    model.clock_only = true;
    CHECK_INT(dvt_set_virtual_model(&model), DVT_OK);
}

static void model_end(void) {
    CHECK_INT(dvt_set_virtual_model(NULL), DVT_OK);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_model_is_off) {
    dvt_virtual_model model = dvt_get_virtual_model();
    double start = dvt_virtual_seconds();
    CHECK(model.latency == 0 && model.bandwidth == 0 && model.launch == 0 && model.flops == 0);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(8), DVT_F32, dvt_gpu(0));
        CHECK(dvt_item(dvt_sum(dvt_copyto(x, dvt_gpu(1)), DVT_ALL)) == 8);
    }
    CHECK(dvt_virtual_seconds() == start);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_model_numbers) {
    dvt_virtual_model model, now;
    memset(&model, 0, sizeof model);
    model.flops = 5;
    CHECK_INT(dvt_set_virtual_model(&model), DVT_OK);
    model.latency = -1;
    CHECK_ERROR(dvt_set_virtual_model(&model), DVT_ERR_RANGE);
    model.latency = NAN;
    CHECK_ERROR(dvt_set_virtual_model(&model), DVT_ERR_RANGE);
    model.latency = INFINITY;
    CHECK_ERROR(dvt_set_virtual_model(&model), DVT_ERR_RANGE);
    now = dvt_get_virtual_model();
    CHECK(now.flops == 5 && now.latency == 0);
    CHECK_INT(dvt_set_virtual_model(NULL), DVT_OK);
    CHECK(dvt_get_virtual_model().flops == 0);
}

DVT_TEST(virtual_model_copies) {
    double start;
    NEEDS_NO_GPU("GPUs made of host memory");
    model_begin(1, 4, 0, 0);
    DVT_SCOPE {
        dvt_array *x, *y;
        float values[2];
        start = dvt_virtual_seconds();
        x = DVT_ARRAY(float, DVT_SHAPE(2), dvt_gpu(0), 1, 2); /* 1 s + 8 bytes at 4 bytes/s */
        CHECK(dvt_virtual_seconds() == start);                /* the caller does not wait */
        dvt_wait(x);
        CHECK(dvt_virtual_seconds() - start == 3);
        y = dvt_copyto(x, dvt_gpu(1));
        dvt_wait(x); /* the source is busy for the same time */
        CHECK(dvt_virtual_seconds() - start == 6);
        dvt_wait(y);
        CHECK(dvt_virtual_seconds() - start == 6);
        CHECK_INT(dvt_to_host(y, values, sizeof values), DVT_OK);
        CHECK(dvt_virtual_seconds() - start >= 9 && values[1] == 2);
    }
    model_end();
}

DVT_TEST(virtual_model_operations) {
    double start;
    NEEDS_NO_GPU("GPUs made of host memory");
    model_begin(0, 0, 0.25, 16);
    DVT_SCOPE {
        dvt_array *a = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0)),
                  *b = dvt_ones(DVT_SHAPE(3, 4), DVT_F32, dvt_gpu(0)), *c;
        dvt_array *x = dvt_ones(DVT_SHAPE(1, 3, 3, 3), DVT_F32, dvt_gpu(0)),
                  *w = dvt_ones(DVT_SHAPE(2, 3, 2, 2), DVT_F32, dvt_gpu(0));
        dvt_conv2d_options params;
        memset(&params, 0, sizeof params);
        dvt_wait_all();
        dvt_wait(a);
        start = dvt_virtual_seconds();
        c = dvt_matmul(a, b);
        CHECK(dvt_virtual_seconds() - start == 0.25);
        dvt_wait(c);
        CHECK(dvt_virtual_seconds() - start == 0.25 + 48 / 16.0);
        start = dvt_virtual_seconds();
        dvt_wait(dvt_conv2d(x, w, NULL, &params));
        CHECK(dvt_virtual_seconds() - start == 0.25 + 2 * 8 * 12 / 16.0);
        start = dvt_virtual_seconds();
        dvt_wait(dvt_exp(c));
        CHECK(dvt_virtual_seconds() - start == 0.25 + 8 / 16.0);
        start = dvt_virtual_seconds();
        dvt_wait(dvt_matmul(dvt_copyto(a, dvt_cpu()), dvt_copyto(b, dvt_cpu())));
        CHECK(dvt_virtual_seconds() == start); /* cpu() takes no modeled time */
    }
    model_end();
}

/* Compares with the exercises of the documents. Reading values one by one makes the caller wait
   each time, and two GPUs take half the time of one. */
static double thousand_products(bool log_on_device) {
    double start = 0;
    int i, n = 50;
    DVT_SCOPE {
        dvt_array *a = dvt_ones(DVT_SHAPE(4, 4), DVT_F32, dvt_gpu(0));
        dvt_array *log = dvt_zeros(DVT_SHAPE(n), DVT_F32, dvt_gpu(0));
        dvt_wait(log);
        start = dvt_virtual_seconds();
        for (i = 0; i < n; i++)
            DVT_SCOPE {
                dvt_array *norm = dvt_norm(dvt_matmul(a, a), DVT_ALL);
                if (log_on_device)
                    dvt_copy_into(dvt_index(log, i), norm);
                else
                    dvt_item(norm);
            }
        dvt_item(dvt_sum(log, DVT_ALL));
        start = dvt_virtual_seconds() - start;
    }
    return start;
}

static double two_products(int gpus) {
    double start = 0;
    DVT_SCOPE {
        dvt_array *a[2], *c[2];
        int i;
        for (i = 0; i < 2; i++) {
            a[i] = dvt_ones(DVT_SHAPE(16, 16), DVT_F32, dvt_gpu(i % gpus));
            dvt_wait(a[i]);
        }
        start = dvt_virtual_seconds();
        for (i = 0; i < 2; i++)
            c[i] = dvt_matmul(a[i], a[i]);
        dvt_wait(c[0]);
        dvt_wait(c[1]);
        start = dvt_virtual_seconds() - start;
    }
    return start;
}

DVT_TEST(virtual_model_exercises) {
    double one_by_one, kept;
    NEEDS_NO_GPU("GPUs made of host memory");
    model_begin(16, 0, 0.5, 0);
    one_by_one = thousand_products(false);
    kept = thousand_products(true);
    CHECK(one_by_one == thousand_products(false) && kept == thousand_products(true));
    CHECK(one_by_one > 50 * 16 && kept < one_by_one / 4);
    model_end();
    model_begin(0, 0, 0.5, 64);
    CHECK(two_products(1) == 0.5 + 2 * 8192 / 64.0);
    CHECK(two_products(2) == 1 + 8192 / 64.0);
    model_end();
}

/* Waiting also takes real time, at least the modeled time. The bits of results do not change. */
DVT_TEST(virtual_model_waits) {
    dvt_virtual_model model;
    double start, modeled;
    int round;
    float sums[2];
    NEEDS_NO_GPU("GPUs made of host memory");
    for (round = 0; round < 2; round++)
        DVT_SCOPE {
            dvt_array *x;
            memset(&model, 0, sizeof model);
            model.latency = round * 1e-3;
            model.launch = round * 1e-4;
            model.flops = round * 1e6;
            CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
            CHECK_INT(dvt_set_virtual_model(&model), DVT_OK);
            dvt_seed(7);
            start = dvt_seconds();
            modeled = dvt_virtual_seconds();
            x = dvt_copyto(dvt_normal(0, 1, DVT_SHAPE(1000), DVT_F32, dvt_cpu()), dvt_gpu(0));
            x = dvt_sum(dvt_copyto(dvt_exp(x), dvt_gpu(1)), DVT_ALL);
            sums[round] = (float)dvt_item(x);
            modeled = dvt_virtual_seconds() - modeled;
            CHECK(round ? modeled >= 5e-3 : modeled == 0);
#if !defined(DEVTENSOR_NO_THREADS)
            CHECK(dvt_seconds() - start >= (round ? 5e-3 : 0));
#endif
        }
    CHECK(sums[0] == sums[1]);
    model_end();
}
