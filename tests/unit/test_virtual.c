/* Tests of virtual GPUs: memory limits, order of commands, copies between devices and their
   counters, several callers, forked children. */
#include "dvt_test.h"
#if !defined(_WIN32)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

DVT_TEST(virtual_results_equal_the_cpus) {
    dvt_array *host, *x, *y;
    NEEDS_NO_GPU("GPUs made of host memory");
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    CHECK_INT(dvt_num_gpus(), 2);
    CHECK_STR(dvt_gpu_reason(), "");
    host = dvt_reshape(dvt_arange(0, 24, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(4, 6));
    x = dvt_copyto(host, dvt_gpu(1));
    CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(1)));
    y = dvt_sum(dvt_exp(dvt_mul_scalar(dvt_t(x), 0.1)), DVT_AXES(1));
    CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(1)));
    {
        dvt_array *expected = dvt_sum(dvt_exp(dvt_mul_scalar(dvt_t(host), 0.1)), DVT_AXES(1));
        double *values = dvt_test_values(expected);
        dvt_test_equal(y, values, dvt_size(expected), 0, __FILE__, __LINE__);
        free(values);
    }
    CHECK(dvt_data(x) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
    dvt_clear_error();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK(strlen(dvt_gpu_reason()) > 0);
}

DVT_TEST(virtual_contexts_do_not_mix) {
    dvt_array *a, *b;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    a = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
    b = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(1));
    CHECK(dvt_add(a, b) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
    CHECK(strstr(dvt_error(), "gpu(0)") && strstr(dvt_error(), "gpu(1)") &&
          strstr(dvt_error(), "dvt_as_in_ctx"));
    dvt_clear_error();
    CHECK_ERROR(dvt_add(a, dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu())), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(2)), DVT_ERR_NO_DEVICE);
    CHECK_VALUES(dvt_add(a, dvt_as_in_ctx(b, dvt_gpu(0))), 0, 2, 2);
    CHECK(dvt_as_in_ctx(a, dvt_gpu(0)) == a);
    CHECK_ERROR(dvt_set_virtual_gpus(1, 0), DVT_ERR_VALUE); /* arrays still exist there */
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_memory_has_a_limit) {
    dvt_device_info info;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(1, 1 << 20);
    DVT_SCOPE {
        dvt_array *half = dvt_zeros(DVT_SHAPE(1 << 17), DVT_F32, dvt_gpu(0));
        CHECK(half != NULL);
        CHECK(dvt_zeros(DVT_SHAPE((1 << 17) + 1), DVT_F32, dvt_gpu(0)) == NULL);
        CHECK_INT(dvt_error_code(), DVT_ERR_DEVICE_MEMORY);
        CHECK(strstr(dvt_error(), "gpu(0)") && strstr(dvt_error(), "524292") &&
              strstr(dvt_error(), "524288") && strstr(dvt_error(), "1048576"));
        dvt_clear_error();
        CHECK_INT(dvt_device_query(dvt_gpu(0), &info), DVT_OK);
        CHECK(info.is_virtual);
        CHECK_INT(info.memory_total, 1 << 20);
        CHECK_INT(info.memory_used, 1 << 19);
        CHECK_INT(info.memory_peak, 1 << 19);
        CHECK_INT(info.memory_free, 1 << 19);
        /* A result that fits still works, and an operation whose result does not fit changes
           nothing. */
        CHECK(dvt_add_scalar_(half, 1) == half);
        CHECK(dvt_exp(half) != NULL);
        CHECK_ERROR(dvt_exp(half), DVT_ERR_DEVICE_MEMORY);
        CHECK_CLOSE(dvt_item_at(half, DVT_SHAPE(-1)), 1, 0);
    }
    dvt_device_query(dvt_gpu(0), &info);
    CHECK_INT(info.memory_used, 0);
    CHECK_INT(info.memory_peak, 1 << 20);
    /* Released memory is available at once, although commands on it may still be queued. */
    for (int i = 0; i < 50; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(1 << 17), i, DVT_F32, dvt_gpu(0));
            CHECK(dvt_add_scalar_(x, 1) != NULL);
            if (i % 10 == 9)
                CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(77)), i + 1, 0);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_transfers_are_counted) {
    dvt_stats s;
    dvt_array *host, *a, *b;
    float values[10];
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    host = dvt_ones(DVT_SHAPE(10), DVT_F32, dvt_cpu());
    dvt_reset_stats();
    a = dvt_copyto(host, dvt_gpu(0));
    b = dvt_copyto(a, dvt_gpu(1));
    s = dvt_get_stats();
    CHECK_INT(s.to_device_count, 1);
    CHECK_INT(s.to_device_bytes, 40);
    CHECK_INT(s.between_devices_count, 1);
    CHECK_INT(s.between_devices_bytes, 40);
    CHECK_INT(s.to_host_count, 0);
    CHECK_INT(dvt_to_host(b, values, sizeof values), DVT_OK);
    CHECK_CLOSE(values[9], 1, 0);
    CHECK_CLOSE(dvt_item(dvt_sum(b, DVT_ALL)), 10, 0);
    s = dvt_get_stats();
    CHECK_INT(s.to_host_count, 2);
    CHECK_INT(s.implicit_reads, 2);
    CHECK_INT(s.to_device_count, 1);
    CHECK_INT(dvt_set_transfer_guard(DVT_TRANSFER_FORBID), DVT_TRANSFER_ALLOW);
    CHECK_ERROR(dvt_item(dvt_sum(b, DVT_ALL)), DVT_ERR_CONTEXT);
    dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(virtual_uploads_take_a_snapshot) {
    static float small[16], large[100000];
    dvt_array *slow, *x, *y;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(1, 0);
    slow = dvt_full(DVT_SHAPE(300000), 0.5, DVT_F32, dvt_gpu(0));
    for (int i = 0; i < 5; i++)
        dvt_sin_(slow); /* keeps the queue busy */
    small[3] = 1;
    large[99999] = 2;
    x = dvt_from_host(small, DVT_SHAPE(16), DVT_F32, dvt_gpu(0));
    y = dvt_from_host(large, DVT_SHAPE(100000), DVT_F32, dvt_gpu(0));
    small[3] = -1;
    large[99999] = -1;
    dvt_add_scalar_(y, 1);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(3)), 1, 0);
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(-1)), 3, 0);
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(0)), 1, 0);
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

/* Overwrites and releases the source directly after requesting a copy. The copy must have the
   earlier values. */
static dvt_array *copy_around(int i, dvt_array **second) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *x = dvt_full(DVT_SHAPE(50000), i, DVT_F32, dvt_gpu(0)), *y, *z;
    dvt_sqrt_(dvt_square_(x));
    y = dvt_copyto(x, dvt_gpu(1));
    dvt_fill(x, -1);
    z = dvt_copyto(dvt_add_scalar_(y, 1), dvt_gpu(2));
    dvt_copy_into(x, z);
    dvt_add_scalar_(x, 1);
    dvt_copy_into(y, x);
    dvt_keep(y);
    *second = (dvt_array *)dvt_keep(z);
    dvt_scope_end(&scope);
    return y;
}

DVT_TEST(virtual_copies_between_devices_are_in_order) {
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(3, 0);
    for (int i = 0; i < 20; i++)
        DVT_SCOPE {
            dvt_array *z, *y = copy_around(i, &z);
            CHECK_CLOSE(dvt_item_at(z, DVT_SHAPE(49999)), i + 1, 0);
            CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(0)), i + 2, 0);
        }
    CHECK_INT(dvt_wait_all(), DVT_OK);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Fills the queues beyond their capacity, and closes them while commands of other devices wait. */
DVT_TEST(virtual_queues_fill_and_close) {
    NEEDS_NO_GPU("GPUs made of host memory");
    for (int round = 0; round < 5; round++) {
        dvt_set_virtual_gpus(4, 0);
        DVT_SCOPE {
            dvt_array *x[4];
            for (int d = 0; d < 4; d++)
                x[d] = dvt_zeros(DVT_SHAPE(5000), DVT_F32, dvt_gpu(d));
            for (int i = 0; i < 100; i++)
                for (int d = 0; d < 4; d++)
                    dvt_add_scalar_(dvt_copy_into(x[(d + 1) % 4], x[d]), 1);
            if (round == 0)
                for (int d = 0; d < 4; d++)
                    CHECK_CLOSE(dvt_item_at(x[d], DVT_SHAPE(4999)), 397 + (d == 0 ? 3 : d - 1), 0);
        }
        CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    }
}

DVT_TEST(virtual_strided_views_cross_contexts) {
    dvt_array *host, *x, *y;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    host = dvt_reshape(dvt_arange(0, 12, 1, DVT_I32, dvt_cpu()), DVT_SHAPE(3, 4));
    x = dvt_copyto(dvt_t(host), dvt_gpu(0));
    CHECK_VALUES(dvt_slice(x, 1, 0, DVT_END, 2), 0, 0, 8, 1, 9, 2, 10, 3, 11);
    y = dvt_zeros(DVT_SHAPE(4, 6), DVT_F64, dvt_gpu(1));
    CHECK(dvt_copy_into(dvt_slice(y, 1, 1, DVT_END, 2), x) != NULL);
    CHECK_VALUES(dvt_rows(y, 0, 2), 0, 0, 0, 0, 4, 0, 8, 0, 1, 0, 5, 0, 9);
    CHECK_VALUES(dvt_broadcast_to(dvt_rows(x, 0, 1), DVT_SHAPE(2, 3)), 0, 0, 4, 8, 0, 4, 8);
    CHECK_INT(dvt_size(dvt_copyto(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_gpu(0)), dvt_gpu(1))), 0);
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

#if !defined(_WIN32) && !defined(DEVTENSOR_NO_THREADS)
static void *work_on_all(void *user) {
    int *bad = (int *)user;
    for (int i = 0; i < 30; i++)
        DVT_SCOPE {
            dvt_array *sum = dvt_zeros(DVT_SHAPE(100, 10), DVT_F32, dvt_gpu(0));
            for (int d = 0; d < 3; d++) {
                dvt_array *x = dvt_full(DVT_SHAPE(10), d + 1, DVT_F32, dvt_gpu(d));
                dvt_add_(sum, dvt_copyto(dvt_square(x), dvt_gpu(0)));
            }
            if (dvt_item(dvt_sum(sum, DVT_ALL)) != 14000)
                ++*bad;
        }
    return NULL;
}

DVT_TEST(virtual_many_callers) {
    pthread_t thread[4];
    int bad[4] = {0, 0, 0, 0};
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(3, 0);
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, work_on_all, &bad[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK_INT(bad[i], 0);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
#endif

#if !defined(_WIN32)
/* Runs in a forked child, where nothing may hang. The parent's devices refuse commands, releasing
   is allowed, and new devices work. */
static int child(dvt_array *x) {
    dvt_clear_error();
    if (dvt_add_scalar(x, 1) || dvt_error_code() != DVT_ERR_FORKED)
        return 1;
    dvt_clear_error();
    if (dvt_wait(x) != DVT_ERR_FORKED)
        return 2;
    dvt_clear_error();
    if (dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_gpu(0)) || dvt_error_code() != DVT_ERR_FORKED)
        return 3;
    dvt_clear_error();
    dvt_discard_all();
#if !DVT_TEST_TSAN /* it cannot start threads in a forked child */
    if (dvt_set_virtual_gpus(1, 0) != DVT_OK)
        return 4;
    if (dvt_item(dvt_sum(dvt_ones(DVT_SHAPE(5), DVT_F32, dvt_gpu(0)), DVT_ALL)) != 5)
        return 5;
    if (dvt_item(dvt_sum(dvt_ones(DVT_SHAPE(500000), DVT_F32, dvt_cpu()), DVT_ALL)) != 500000)
        return 6;
#endif
    return 0;
}

DVT_TEST(virtual_forked_child) {
    dvt_array *x;
    pid_t process;
    int status = -1;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    x = dvt_full(DVT_SHAPE(200000), 1, DVT_F32, dvt_gpu(0));
    for (int i = 0; i < 5; i++)
        dvt_sqrt_(x);
    fflush(stdout);
    process = fork();
    if (process == 0)
        _exit(child(x));
    CHECK(process > 0);
    CHECK_INT(waitpid(process, &status, 0), process);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(0)), 1, 0);
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}
#endif
