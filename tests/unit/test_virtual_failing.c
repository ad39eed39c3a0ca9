/* Tests of commands that fail in the queue of a virtual GPU. Injecting failures needs a private
   copy of the library. The harness counts the checks of this file, but cannot read its arrays. */
#include "private_copy.h"
#include "dvt_test.h"

static void break_next(int gpu) {
    dvti_device *device = dvti_device_begin("break_next", dvt_gpu(gpu));
    dvti_virtual_fail_next(device, "out of luck");
    dvti_device_end(device);
}

static void start(void) {
    dvt_set_log_level(DVT_LOG_OFF);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
}

static void finish(void) {
    dvt_clear_error();
    dvt_discard_all();
    CHECK_INT(dvt_get_stats().arrays, 0);
    CHECK_INT(dvt_get_stats().blocks_of_memory, 0);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_failing_command_is_reported_by_the_next_wait) {
    dvt_array *x, *y, *other;
    NEEDS_NO_GPU("GPUs made of host memory");
    start();
    x = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_gpu(0));
    other = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_gpu(1));
    CHECK_INT(dvt_wait(x), DVT_OK);
    break_next(0);
    y = dvt_exp(x);
    CHECK(y != NULL); /* accepted: the failure occurs later */
    CHECK_INT(dvt_wait(y), DVT_ERR_INTERNAL);
    CHECK(strstr(dvt_error(), "dvt_exp") && strstr(dvt_error(), "gpu(0)") &&
          strstr(dvt_error(), "out of luck") && strstr(dvt_error(), "dvt_set_virtual_gpus"));
    dvt_clear_error();
    /* Only the first wait reports it. From then on the device is lost for every call. */
    CHECK_INT(dvt_wait(y), DVT_ERR_DEVICE_LOST);
    CHECK(strstr(dvt_error(), "dvt_exp"));
    CHECK_ERROR(dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_gpu(0)), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_add_(x, x), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_item(x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_item_at(x, DVT_SHAPE(0)), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_fill(x, 1), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_copy_into(x, dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu())), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_copyto(x, dvt_gpu(1)), DVT_ERR_DEVICE_LOST);
    CHECK_ERROR(dvt_copy_into(x, other), DVT_ERR_DEVICE_LOST);
    /* Other devices still work. */
    CHECK_CLOSE(dvt_item_at(dvt_add(other, other), DVT_SHAPE(3)), 2, 0);
    finish();
    start();
    CHECK_CLOSE(dvt_item(dvt_exp(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0)))), 1, 0);
    finish();
}

DVT_TEST(virtual_failing_source_of_a_copy) {
    dvt_array *x, *y;
    NEEDS_NO_GPU("GPUs made of host memory");
    start();
    x = dvt_ones(DVT_SHAPE(300000), DVT_F32, dvt_gpu(0));
    for (int i = 0; i < 4; i++)
        dvt_sin_(x); /* delays the failure until after the copy is requested */
    break_next(0);
    dvt_add_scalar_(x, 1);
    y = dvt_copyto(x, dvt_gpu(1));
    if (y) {
        CHECK_INT(dvt_wait(y), DVT_ERR_DEVICE_LOST);
        CHECK(strstr(dvt_error(), "gpu(0) to gpu(1)"));
    } else
        CHECK_INT(dvt_error_code(), DVT_ERR_DEVICE_LOST);
    dvt_clear_error();
    CHECK_CLOSE(dvt_item(dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_gpu(1))), 1, 0);
    finish();
}

DVT_TEST(virtual_failing_is_seen_by_wait_all) {
    NEEDS_NO_GPU("GPUs made of host memory");
    start();
    dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_gpu(0));
    dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_gpu(1));
    CHECK_INT(dvt_wait_all(), DVT_OK);
    break_next(1);
    dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_gpu(1));
    CHECK_INT(dvt_wait_all(), DVT_ERR_INTERNAL);
    finish();
}

/* ---- further tests that need a private copy ---- */
DVT_TEST(virtual_failing_model_text) {
    dvt_virtual_model model;
    CHECK(dvti_model_parse("latency=10us,bandwidth=12G,launch=2.5us,flops=1.5T", &model));
    CHECK(fabs(model.latency - 10e-6) < 1e-12);
    CHECK(fabs(model.bandwidth - 12e9) < 1e-3);
    CHECK(fabs(model.launch - 2.5e-6) < 1e-12);
    CHECK(fabs(model.flops - 1.5e12) < 1);
    CHECK(dvti_model_parse("flops=64", &model) && model.flops == 64 && model.latency == 0);
    CHECK(dvti_model_parse("launch=0,latency=2s", &model) && model.latency == 2);
    CHECK(dvti_model_parse("latency=3ms", &model) && dvti_model_parse("latency=3ns", &model));
    CHECK(!dvti_model_parse("", &model) && !dvti_model_parse("latency", &model));
    CHECK(!dvti_model_parse("latency=", &model) && !dvti_model_parse("latency=us", &model));
    CHECK(!dvti_model_parse("latency=5", &model) && !dvti_model_parse("latency=5G", &model));
    CHECK(!dvti_model_parse("flops=1e9", &model) && !dvti_model_parse("flops=-1", &model));
    CHECK(!dvti_model_parse("flops=1G,", &model) && !dvti_model_parse("flops=1G;", &model));
    CHECK(!dvti_model_parse("speed=1", &model) && !dvti_model_parse(" flops=1", &model));
    CHECK(!dvti_model_parse("flops=100000000000000000000000", &model));
}
