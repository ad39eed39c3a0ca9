/* The memory of a GPU: reuse without the driver, limits, the message when it is full, trimming. */
#include "on_gpu.h"

static dvt_memory_stats memory_of(int gpu) {
    dvt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    CHECK_INT(dvt_memory_query(dvt_gpu(gpu), &stats), DVT_OK);
    return stats;
}

DVT_TEST(gpu_memory_repeats_without_the_driver) {
    dvt_memory_stats before, after;
    int round;
    NEEDS_GPU;
    for (round = 0; round < 6; round++) {
        if (round == 1)
            before = memory_of(0);
        DVT_SCOPE {
            CHECK(dvt_full(DVT_SHAPE(1000), 1, DVT_F32, dvt_gpu(0)) != NULL);
            CHECK(dvt_full(DVT_SHAPE(700, 1000), 2, DVT_F32, dvt_gpu(0)) != NULL);
            CHECK(dvt_full(DVT_SHAPE(3, 1000), 3, DVT_F64, dvt_gpu(0)) != NULL);
        }
    }
    after = memory_of(0);
    CHECK_INT(after.taken, before.taken);
    CHECK_INT(after.reserved, before.reserved);
    CHECK_INT(after.used, before.used);
    CHECK(after.reused >= before.reused + 15);
}

DVT_TEST(gpu_memory_merges_free_blocks) {
    dvt_array *piece[8];
    dvt_memory_stats before, after;
    int i;
    NEEDS_GPU;
    DVT_SCOPE {
        for (i = 0; i < 8; i++)
            piece[i] = dvt_retain(dvt_empty(DVT_SHAPE(2 << 20), DVT_U8, dvt_gpu(0)));
    }
    before = memory_of(0);
    for (i = 0; i < 8; i++) /* not in address order */
        dvt_release(piece[i * 3 % 8]);
    DVT_SCOPE {
        CHECK(dvt_empty(DVT_SHAPE(9 << 20), DVT_U8, dvt_gpu(0)) != NULL);
    }
    after = memory_of(0);
    CHECK_INT(after.taken, before.taken);
}

DVT_TEST(gpu_memory_trims) {
    dvt_memory_stats stats;
    NEEDS_GPU;
    DVT_SCOPE {
        CHECK(dvt_full(DVT_SHAPE(3000000), 1, DVT_F32, dvt_gpu(0)) != NULL);
        dvt_trim_memory(dvt_gpu(0));
    }
    CHECK(dvt_trim_memory(dvt_gpu(0)) >= 12000000);
    stats = memory_of(0);
    CHECK(stats.reserved >= stats.used);
    CHECK_INT(dvt_trim_memory(dvt_gpu(0)), 0);
}

DVT_TEST(gpu_memory_limit) {
    dvt_memory_stats stats;
    NEEDS_GPU;
    stats = memory_of(0);
    CHECK_INT(dvt_set_memory_limit(stats.used + 1000, dvt_gpu(0)), DVT_OK);
    CHECK(dvt_empty(DVT_SHAPE(1000), DVT_U8, dvt_gpu(0)) != NULL);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(1), DVT_U8, dvt_gpu(0)), DVT_ERR_DEVICE_MEMORY);
    CHECK_INT(dvt_set_memory_limit(0, dvt_gpu(0)), DVT_OK);
    CHECK(dvt_empty(DVT_SHAPE(1), DVT_U8, dvt_gpu(0)) != NULL);
    CHECK_ERROR(dvt_set_memory_limit(-1, dvt_gpu(0)), DVT_ERR_RANGE);
}

/* On a full GPU the cached memory is released first. Then the error lists the owners of the memory,
   and the program continues. */
DVT_TEST(gpu_memory_runs_out) {
    dvt_device_info info;
    int64_t piece;
    int n = 0;
    NEEDS_GPU;
    CHECK_INT(dvt_device_query(dvt_gpu(0), &info), DVT_OK);
    piece = info.memory_total / 5;
    DVT_SCOPE {
        CHECK(dvt_empty(DVT_SHAPE(info.memory_total / 2), DVT_U8, dvt_gpu(0)) != NULL);
    }
    DVT_SCOPE { /* half of the GPU is cached in one block that is large enough for all of these */
        while (n < 6 && dvt_empty(DVT_SHAPE(piece), DVT_U8, dvt_gpu(0)))
            n++;
        CHECK(n >= 3 && n < 6);
        CHECK_INT(dvt_error_code(), DVT_ERR_DEVICE_MEMORY);
        CHECK(strstr(dvt_error(), "gpu(0)") != NULL);
        CHECK(strstr(dvt_error(), "in use by arrays") != NULL);
        dvt_clear_error();
    }
    CHECK(dvt_full(DVT_SHAPE(100), 1, DVT_F32, dvt_gpu(0)) != NULL);
    dvt_trim_memory(dvt_gpu(0));
}
