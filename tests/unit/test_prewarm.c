/* Tests of dvt_prewarm without a GPU: it does nothing, silently, and a missing device is an error.
   tests/cuda/test_gpu_prewarm.c tests it on a GPU. */
#include "dvt_test.h"

DVT_TEST(prewarm_does_nothing_on_the_cpu) {
    dvt_memory_stats before, after;
    dvt_jit_stats jit = dvt_get_jit_stats();
    CHECK_INT(dvt_memory_query(dvt_cpu(), &before), DVT_OK);
    CHECK_INT(dvt_prewarm(dvt_cpu()), DVT_OK);
    CHECK_INT(dvt_memory_query(dvt_cpu(), &after), DVT_OK);
    CHECK_INT(after.used_peak, before.used_peak);
    CHECK_INT(dvt_get_jit_stats().compiled, jit.compiled);
    CHECK_INT(dvt_error_code(), DVT_OK);
}

DVT_TEST(prewarm_does_nothing_in_host_memory) {
    dvt_memory_stats stats;
    NEEDS_NO_GPU("GPUs made of host memory");
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    CHECK_INT(dvt_prewarm(dvt_gpu(0)), DVT_OK);
    CHECK_INT(dvt_memory_query(dvt_gpu(0), &stats), DVT_OK);
    CHECK_INT(stats.used_peak, 0);
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(prewarm_of_a_missing_device) {
    CHECK_INT(dvt_prewarm(dvt_gpu(63)), DVT_ERR_NO_DEVICE);
    CHECK_INT(dvt_error_code(), DVT_ERR_NO_DEVICE);
    dvt_clear_error();
}
