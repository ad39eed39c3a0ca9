/* Tests of contexts, devices, statuses, log, allocator and counters. */
#include "dvt_test.h"

/* ---- contexts ---- */
DVT_TEST(core_context_values) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
    CHECK_INT(dvt_cpu().type, DVT_DEVICE_CPU);
    CHECK_INT(dvt_cpu().id, 0);
    CHECK_INT(dvt_cpu_id(3).id, 3);
    CHECK_INT(dvt_gpu(2).type, DVT_DEVICE_GPU);
    CHECK_INT(dvt_gpu(2).id, 2);
    CHECK(dvt_ctx_equal(dvt_cpu(), dvt_cpu_id(0)));
    CHECK(!dvt_ctx_equal(dvt_cpu(), dvt_cpu_id(1)));
    CHECK(!dvt_ctx_equal(dvt_cpu(), dvt_gpu(0)));
    CHECK(!dvt_ctx_equal(dvt_gpu(0), dvt_gpu(1)));
    CHECK(dvt_ctx_equal(zero, dvt_cpu()));
    CHECK_STR(dvt_ctx_name(dvt_cpu()), "cpu(0)");
    CHECK_STR(dvt_ctx_name(dvt_cpu_id(42)), "cpu(42)");
    CHECK_STR(dvt_ctx_name(dvt_gpu(10)), "gpu(10)");
    CHECK_STR(dvt_ctx_name(zero), "cpu(0)");
}

/* The text of a name stays valid for the next 15 names of its thread. */
DVT_TEST(core_context_names_live) {
    const char *names[16];
    int i;
    for (i = 0; i < 16; i++)
        names[i] = dvt_ctx_name(dvt_gpu(i));
    for (i = 0; i < 16; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "gpu(%d)", i);
        CHECK_STR(names[i], expected);
    }
}

DVT_TEST(core_context_parse) {
    static const char *const good[] = {"cpu", "gpu", "cpu(0)", "cpu(7)", "gpu(3)", "gpu(12)"};
    static const char *const names[] = {"cpu(0)", "gpu(0)", "cpu(0)",
                                        "cpu(7)", "gpu(3)", "gpu(12)"};
    static const char *const bad[] = {"",
                                      "c",
                                      "CPU",
                                      "cpu()",
                                      "cpu(-1)",
                                      "cpu(1",
                                      "cpu(1)x",
                                      "gpu 1",
                                      "gpu(x)",
                                      "tpu(x)",
                                      " cpu",
                                      "cpu(0x1)",
                                      "cpu( 1)",
                                      "cpu(1 )",
                                      "gpu(1)(2)",
                                      "cpu(99999999999999999999)",
                                      "gpu(4294967296)"};
    dvt_ctx ctx;
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_INT(dvt_ctx_parse(good[i], &ctx), DVT_OK);
        CHECK_STR(dvt_ctx_name(ctx), names[i]);
    }
    ctx = dvt_gpu(5);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_ERROR(dvt_ctx_parse(bad[i], &ctx), DVT_ERR_NAME);
        CHECK(dvt_ctx_equal(ctx, dvt_gpu(5)));
    }
    CHECK_ERROR(dvt_ctx_parse(NULL, &ctx), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_ctx_parse("cpu", NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(core_context_lists) {
    dvt_ctx_list list = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(1));
    char text[64], small[10];
    CHECK_INT(list.n, 3);
    CHECK_INT(dvt_ctx_list_format(list, text, sizeof text), 24);
    CHECK_STR(text, "[cpu(0), gpu(0), gpu(1)]");
    CHECK_INT(dvt_ctx_list_format(list, small, sizeof small), 24);
    CHECK_STR(small, "[cpu(0), ");
    CHECK_INT(dvt_ctx_list_format(list, NULL, 0), 24);
    list = DVT_CONTEXTS(dvt_gpu(3));
    CHECK_INT(list.n, 1);
    dvt_ctx_list_format(list, text, sizeof text);
    CHECK_STR(text, "[gpu(3)]");
    list = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1), dvt_gpu(2), dvt_gpu(3), dvt_gpu(4), dvt_gpu(5),
                        dvt_gpu(6), dvt_gpu(7));
    CHECK_INT(list.n, 8);
    CHECK_INT(list.ctx[7].id, 7);
    list.n = 0;
    dvt_ctx_list_format(list, text, sizeof text);
    CHECK_STR(text, "[]");
}

DVT_TEST(core_no_gpus) {
    dvt_ctx_list list;
    NEEDS_NO_GPU("machines without one");
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK_INT(dvt_num_gpus(), 0);
    CHECK(strlen(dvt_gpu_reason()) > 10);
    CHECK(dvt_ctx_equal(dvt_try_gpu(0), dvt_cpu()));
    CHECK_INT(dvt_try_all_gpus().n, 0);
    list = dvt_try_all_gpus_or_cpu();
    CHECK_INT(list.n, 1);
    CHECK_STR(dvt_ctx_name(list.ctx[0]), "cpu(0)");
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)), DVT_ERR_NO_DEVICE);
    dvt_clear_error();
    dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
    CHECK(strstr(dvt_error(), "dvt_zeros: gpu(0) does not exist") != NULL);
    CHECK(strstr(dvt_error(), dvt_gpu_reason()) != NULL);
    CHECK(strstr(dvt_error(), "dvt_try_gpu(0)") != NULL);
    dvt_clear_error();
}

DVT_TEST(core_gpus) {
    char text[64];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    CHECK_INT(dvt_num_gpus(), 2);
    CHECK_STR(dvt_gpu_reason(), "");
    CHECK(dvt_ctx_equal(dvt_try_gpu(1), dvt_gpu(1)));
    CHECK(dvt_ctx_equal(dvt_try_gpu(2), dvt_cpu()));
    CHECK(dvt_ctx_equal(dvt_try_gpu(-1), dvt_cpu()));
    dvt_ctx_list_format(dvt_try_all_gpus(), text, sizeof text);
    CHECK_STR(text, "[gpu(0), gpu(1)]");
    dvt_ctx_list_format(dvt_try_all_gpus_or_cpu(), text, sizeof text);
    CHECK_STR(text, "[gpu(0), gpu(1)]");
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(2)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(-1)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_cpu_id(-1)), DVT_ERR_NO_DEVICE);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(core_missing_device_messages) {
    dvt_clear_error();
    dvt_set_virtual_gpus(2, 0);
    dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(10));
    CHECK(strstr(dvt_error(), "gpu(10) does not exist: there are 2 GPUs, gpu(0) to gpu(1)") !=
          NULL);
    dvt_clear_error();
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_virtual_gpus_setting) {
    dvt_array *x;
    CHECK_ERROR(dvt_set_virtual_gpus(-1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_virtual_gpus(DVT_MAX_GPUS + 1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_virtual_gpus(1, -1), DVT_ERR_RANGE);
    CHECK_INT(dvt_set_virtual_gpus(DVT_MAX_GPUS, 0), DVT_OK);
    x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(DVT_MAX_GPUS - 1));
    CHECK_VALUES(x, 0, 1, 1);
    CHECK_ERROR(dvt_set_virtual_gpus(1, 0), DVT_ERR_VALUE);
    CHECK_INT(dvt_num_gpus(), DVT_MAX_GPUS);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* A byte limit makes device memory run out. Released memory can be reused. */
DVT_TEST(core_virtual_gpu_memory) {
    dvt_device_info info;
    dvt_array *x;
    NEEDS_NO_GPU("the memory of a GPU made of host memory");
    dvt_set_virtual_gpus(2, 10000);
    CHECK_INT(dvt_device_query(dvt_gpu(1), &info), DVT_OK);
    CHECK(info.is_virtual && info.memory_total == 10000 && info.memory_free == 10000);
    CHECK(info.memory_used == 0 && info.driver_version == 0 && info.threads >= 1);
    CHECK(strlen(info.name) > 0 && dvt_ctx_equal(info.ctx, dvt_gpu(1)));
    DVT_SCOPE {
        x = dvt_zeros(DVT_SHAPE(2000), DVT_F32, dvt_gpu(1));
        CHECK(x != NULL);
        dvt_device_query(dvt_gpu(1), &info);
        CHECK(info.memory_used >= 8000 && info.memory_free == 10000 - info.memory_used);
        CHECK_ERROR(dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_gpu(1)), DVT_ERR_DEVICE_MEMORY);
        CHECK_ERROR(dvt_copy(x), DVT_ERR_DEVICE_MEMORY);
        CHECK_ERROR(dvt_copyto(dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_cpu()), dvt_gpu(1)),
                    DVT_ERR_DEVICE_MEMORY);
        /* the other device has its own memory, which is all free */
        CHECK(dvt_copyto(x, dvt_gpu(0)) != NULL);
        dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_gpu(1));
        CHECK(strstr(dvt_error(), "gpu(1)") != NULL && strstr(dvt_error(), "10000") != NULL);
        dvt_clear_error();
    }
    CHECK_INT(dvt_wait_all(), DVT_OK);
    dvt_device_query(dvt_gpu(1), &info);
    CHECK(info.memory_used == 0 && info.memory_peak >= 8000 && info.memory_peak <= 10000);
    DVT_SCOPE {
        CHECK(dvt_zeros(DVT_SHAPE(2400), DVT_F32, dvt_gpu(1)) != NULL);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_device_query) {
    dvt_device_info info;
    char text[4096], small[20];
    size_t length;
    CHECK_INT(dvt_device_query(dvt_cpu(), &info), DVT_OK);
    CHECK(!info.is_virtual && info.threads == dvt_num_threads() && strlen(info.name) > 0);
    CHECK(info.memory_total > 0 && info.memory_free <= info.memory_total);
    if (!dvt_test_on_gpus())
        CHECK_ERROR(dvt_device_query(dvt_gpu(0), &info), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_device_query(dvt_cpu(), NULL), DVT_ERR_NULL_ARGUMENT);
    length = dvt_devices_format(text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK(strstr(text, "cpu(0)") && strstr(text, DVT_VERSION_STRING));
    if (dvt_test_on_gpus())
        CHECK(strstr(text, "gpu(0)") != NULL);
    else
        CHECK(strstr(text, dvt_gpu_reason()) != NULL && !strstr(text, "gpu(0)"));
    CHECK(dvt_devices_format(small, sizeof small) > sizeof small && strlen(small) == 19);
    dvt_set_virtual_gpus(2, 64 << 20);
    dvt_devices_format(text, sizeof text);
    CHECK(strstr(text, "gpu(1)") && strstr(text, "64 MiB") && !strstr(text, "no GPU"));
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_default_context) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
    dvt_set_virtual_gpus(2, 0);
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    DVT_WITH_CTX(dvt_gpu(1)) {
        CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(dvt_ones(DVT_SHAPE(2), DVT_F32, zero))), "gpu(1)");
        CHECK(dvt_ctx_equal(zero, dvt_gpu(1)));
        DVT_WITH_CTX(dvt_cpu_id(2)) {
            CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(2)");
        }
        /* a scope of the zero context keeps the current default */
        DVT_WITH_CTX(zero) {
            CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
        }
        CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
    }
    while (1)
        DVT_WITH_CTX(dvt_gpu(0)) {
            goto out;
        }
out:
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

/* ---- statuses and errors ---- */
DVT_TEST(core_status_table) {
    static const int numbers[] = {
#define ROW(name, number, meaning, fix) number,
        DVT_STATUS_TABLE(ROW)
#undef ROW
    };
    static const char *const names[] = {
#define ROW(name, number, meaning, fix) "DVT_ERR_" #name,
        DVT_STATUS_TABLE(ROW)
#undef ROW
    };
    int n = (int)(sizeof numbers / sizeof numbers[0]), i, k;
    for (i = 0; i < n; i++) {
        dvt_status status = (dvt_status)numbers[i];
        CHECK_STR(dvt_status_name(status), names[i]);
        CHECK(strlen(dvt_status_meaning(status)) > 5);
        CHECK(status == DVT_OK || strlen(dvt_status_fix(status)) > 5);
        CHECK(numbers[i] == 0 || numbers[i] / 100 == 1 || numbers[i] / 100 == 2 ||
              numbers[i] / 100 == 3 || numbers[i] / 100 == 4 || numbers[i] / 100 == 9);
        for (k = 0; k < i; k++)
            CHECK(numbers[k] != numbers[i]);
    }
    CHECK_STR(dvt_status_name((dvt_status)77), "DVT_ERR_?");
    CHECK(strlen(dvt_status_meaning((dvt_status)77)) > 0);
    CHECK_STR(dvt_status_fix((dvt_status)77), "");
    CHECK_STR(dvt_version(), DVT_VERSION_STRING);
    CHECK_INT(dvt_version_number(), DVT_VERSION);
}

/* The first failure is kept. NULL passes through a chain of calls without another error. */
DVT_TEST(core_first_error_is_kept) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *y,
              *three = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    char first[1024];
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_STR(dvt_error(), "");
    y = dvt_add(x, three);
    CHECK(y == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "dvt_add") && strstr(dvt_error(), "(2,)") &&
          strstr(dvt_error(), "(3,)"));
    snprintf(first, sizeof first, "%s", dvt_error());
    CHECK(dvt_exp(dvt_mul(y, x)) == NULL);
    CHECK_INT(dvt_copy_into(x, NULL) == NULL, 1);
    CHECK_ERROR(
        (dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), dvt_linspace(0, 1, -1, DVT_F32, dvt_cpu())),
        DVT_ERR_SHAPE);
    y = dvt_add(x, three);
    dvt_linspace(0, 1, -1, DVT_F32, dvt_cpu());
    CHECK_STR(dvt_error(), first);
    dvt_clear_error();
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_STR(dvt_error(), "");
    CHECK_STR(dvt_error_site(), "");
    CHECK_VALUES(dvt_add(x, x), 0, 2, 2);
}

typedef struct log_lines {
    int n;
    dvt_log_level level;
    char last[256];
} log_lines;

static void collect(void *user, dvt_log_level level, const char *message) {
    log_lines *lines = (log_lines *)user;
    lines->n++;
    lines->level = level;
    snprintf(lines->last, sizeof lines->last, "%s", message);
}

DVT_TEST(core_logger) {
    log_lines lines = {0, DVT_LOG_DEBUG, ""};
    dvt_transfer_guard guard;
    dvt_set_logger(collect, &lines);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_INT(lines.n, 1);
    CHECK_INT(lines.level, DVT_LOG_ERROR);
    CHECK(strncmp(lines.last, "dvt_zeros: ", 11) == 0);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    guard = dvt_set_transfer_guard(DVT_TRANSFER_LOG);
    CHECK_CLOSE(dvt_item(dvt_ones(DVT_SCALAR, DVT_F32, dvt_gpu(0))), 1, 0);
    dvt_set_transfer_guard(guard);
    CHECK_INT(lines.n, 2);
    CHECK_INT(lines.level, DVT_LOG_WARNING);
    CHECK_INT(dvt_error_code(), DVT_OK);
    dvt_set_logger(NULL, NULL);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_INT(lines.n, 2);
}

/* ---- the allocator ---- */
typedef struct counts {
    long long allocations, releases, refused;
    int refuse;
} counts;

static void *count_alloc(void *user, size_t bytes) {
    counts *c = (counts *)user;
    if (c->refuse) {
        c->refused++;
        return NULL;
    }
    c->allocations++;
    return malloc(bytes);
}

static void *count_resize(void *user, void *block, size_t bytes) {
    counts *c = (counts *)user;
    if (c->refuse) {
        c->refused++;
        return NULL;
    }
    return realloc(block, bytes);
}

static void count_release(void *user, void *block) {
    ((counts *)user)->releases++;
    free(block);
}

DVT_TEST(core_allocator) {
    counts c = {0, 0, 0, 0};
    dvt_allocator allocator = {count_alloc, count_resize, count_release, NULL};
    DVT_SCOPE { /* the stacks of this thread keep their capacity */
        dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    }
    allocator.user = &c;
    dvt_set_allocator(&allocator);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, dvt_cpu());
        CHECK(c.allocations >= 3); /* an array, a storage block, its elements */
        c.refuse = 1;
        CHECK_ERROR(dvt_copy(x), DVT_ERR_HOST_MEMORY);
        CHECK_ERROR(dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
        CHECK_ERROR(dvt_t(x), DVT_ERR_HOST_MEMORY);
        CHECK(c.refused >= 3);
        c.refuse = 0;
        CHECK(dvt_copy(x) != NULL);
    }
    dvt_set_allocator(NULL); /* cached blocks return to the allocator that made them */
    CHECK_INT(c.allocations, c.releases);
    c.allocations = 0;
    CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()) != NULL);
    CHECK_INT(c.allocations, 0);
}

/* ---- counters ---- */
DVT_TEST(core_stats) {
    dvt_stats stats;
    dvt_reset_stats();
    stats = dvt_get_stats();
    CHECK(stats.kernels == 0 && stats.waits == 0 && stats.to_device_count == 0);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
        dvt_stats now;
        dvt_t(x);
        now = dvt_get_stats();
        CHECK_INT(now.arrays - stats.arrays, 2);
        CHECK_INT(now.blocks_of_memory - stats.blocks_of_memory, 1);
        CHECK_INT(now.kernels, 1);
        dvt_reset_stats();
        CHECK_INT(dvt_get_stats().kernels, 0);
        CHECK_INT(dvt_get_stats().arrays - stats.arrays, 2);
    }
    CHECK_INT(dvt_get_stats().arrays, stats.arrays);
    CHECK_INT(dvt_get_stats().blocks_of_memory, stats.blocks_of_memory);
}

/* Counters are right in any order of releasing the arrays of one storage, and after a failed
   creation. */
DVT_TEST(core_stats_of_views) {
    dvt_stats before = dvt_get_stats();
    int order;
    for (order = 0; order < 3; order++) {
        dvt_array *x[3];
        int i;
        DVT_SCOPE {
            x[0] = (dvt_array *)dvt_retain(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()));
            x[1] = (dvt_array *)dvt_retain(dvt_t(x[0]));
            x[2] = (dvt_array *)dvt_retain(dvt_t(x[1]));
            CHECK_ERROR(dvt_reshape(x[1], DVT_SHAPE(7)), DVT_ERR_SHAPE);
        }
        for (i = 0; i < 3; i++) {
            CHECK_INT(dvt_get_stats().arrays - before.arrays, 3 - i);
            CHECK_INT(dvt_get_stats().blocks_of_memory - before.blocks_of_memory, 1);
            dvt_release(x[(i + order) % 3]);
        }
        CHECK_INT(dvt_get_stats().arrays, before.arrays);
        CHECK_INT(dvt_get_stats().blocks_of_memory, before.blocks_of_memory);
    }
}

DVT_TEST(core_threads_setting) {
    int n = dvt_num_threads();
    CHECK(n >= 1 && n <= 256);
    CHECK_INT(dvt_set_num_threads(3), DVT_OK);
    CHECK(dvt_num_threads() == 3 || dvt_num_threads() == 1); /* 1: DEVTENSOR_NO_THREADS */
    CHECK_ERROR(dvt_set_num_threads(-1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_num_threads(257), DVT_ERR_RANGE);
    CHECK_INT(dvt_set_num_threads(0), DVT_OK);
    CHECK_INT(dvt_num_threads(), n);
}

/* dvt_error_code() is the first failure; a returned status belongs to its own call. */
DVT_TEST(core_status_is_of_its_own_call) {
    dvt_array *x = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()), *parts[2];
    dvt_clear_error();
    CHECK(dvt_reshape(x, DVT_SHAPE(2)) == NULL);
    CHECK_INT(dvt_array_split(x, 2, 5, parts), DVT_ERR_AXIS);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    dvt_clear_error();
}
