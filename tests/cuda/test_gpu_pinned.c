/* Page-locked arrays and events on a GPU. The simulated driver reads page-locked memory when the
   copy runs, which may be much later than the call. */
#include "on_gpu.h"
#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#define N 100000

static int all_are(dvt_array *x, double value) {
    return dvt_item(dvt_min(x, DVT_ALL)) == value && dvt_item(dvt_max(x, DVT_ALL)) == value;
}

/* Each write on cpu() comes after the copy that was made before it. */
DVT_TEST(gpu_pinned_uploads_before_writes) {
    static float values[N];
    dvt_array *x, *y[6];
    int i;
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
    CHECK(dvt_ctx_of(x).type == DVT_DEVICE_CPU);
    dvt_fill(x, 1);
    y[0] = dvt_copyto(x, dvt_gpu(0));
    dvt_fill(x, 2);
    y[1] = dvt_copyto(x, dvt_gpu(0));
    dvt_add_scalar_(dvt_slice(x, 0, -1, DVT_END, -1), 1);
    y[2] = dvt_copyto(x, dvt_gpu(0));
    for (i = 0; i < N; i++)
        values[i] = 4;
    dvt_set_from_host(x, values, sizeof values);
    y[3] = dvt_copyto(x, dvt_gpu(0));
    dvt_copy_into(x, dvt_full(DVT_SHAPE(N), 5, DVT_F32, dvt_gpu(0)));
    y[4] = dvt_copyto(x, dvt_gpu(0));
    for (i = 0; i < N; i++)
        ((float *)dvt_data(x))[i] = 6;
    y[5] = dvt_copyto(x, dvt_gpu(0)); /* waits, because the address is known */
    for (i = 0; i < N; i++)
        values[i] = -1;
    memset(dvt_data(x), 0, sizeof values);
    for (i = 0; i < 6; i++)
        CHECK(all_are(y[i], i + 1));
}

/* A small product is written without a launch. */
DVT_TEST(gpu_pinned_uploads_before_small_products) {
    dvt_array *x, *y;
    dvt_matmul_desc desc = {0};
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(256, 256), DVT_F32, dvt_gpu(0));
    dvt_fill(x, 1);
    y = dvt_copyto(x, dvt_gpu(0));
    desc.out = dvt_rows(x, 0, 8);
    CHECK(dvt_matmul_with(dvt_full(DVT_SHAPE(8, 2), 50, DVT_F32, dvt_cpu()),
                          dvt_ones(DVT_SHAPE(2, 256), DVT_F32, dvt_cpu()), &desc) == desc.out);
    CHECK(all_are(y, 1) && all_are(dvt_rows(x, 0, 8), 100));
}

/* The address of the first call stays valid without another dvt_data. */
DVT_TEST(gpu_pinned_address_is_safe) {
    dvt_array *x, *y;
    float *at;
    int i;
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
    at = (float *)dvt_data(x);
    for (i = 0; i < N; i++)
        at[i] = 1;
    y = dvt_copyto(x, dvt_gpu(0));
    for (i = 0; i < N; i++)
        at[i] = 2;
    CHECK(all_are(y, 1));
}

/* Released, and read by two GPUs, while copies are pending. */
DVT_TEST(gpu_pinned_release_and_two_gpus) {
    dvt_array *x, *y, *z, *small;
    int other = dvt_num_gpus() > 1;
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
    small = dvt_empty_pinned(DVT_SHAPE(100), DVT_F32, dvt_gpu(0));
    dvt_fill(x, 3);
    dvt_fill(small, 4);
    y = dvt_copyto(x, dvt_gpu(0));
    y = dvt_copyto(x, dvt_gpu(0));
    z = dvt_copyto(x, dvt_gpu(other));
    dvt_fill(x, 5);
    CHECK(all_are(z, 3) && all_are(y, 3));
    y = dvt_copyto(x, dvt_gpu(0));
    z = dvt_copyto(small, dvt_gpu(0));
    dvt_fill(small, 0);
    dvt_discard(x);
    CHECK(all_are(y, 5) && all_are(z, 4));
}

DVT_TEST(gpu_pinned_downloads) {
    dvt_array *x, *y;
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
    y = dvt_add_scalar(dvt_zeros(DVT_SHAPE(N), DVT_F32, dvt_gpu(0)), 7);
    dvt_copy_into(x, y);
    dvt_fill(y, 0);
    CHECK(all_are(x, 7));
    dvt_copy_into(dvt_rows(x, 0, 10), dvt_full(DVT_SHAPE(10), 8, DVT_F32, dvt_gpu(0)));
    CHECK_CLOSE(dvt_item(dvt_sum(x, DVT_ALL)), 7.0 * N + 10, 0);
}

DVT_TEST(gpu_events) {
    dvt_array *x;
    dvt_event *begin, *end;
    int i;
    NEEDS_GPU;
    x = dvt_copyto(dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu()), dvt_gpu(0));
    begin = dvt_event_record(dvt_gpu(0));
    for (i = 0; i < 10; i++)
        dvt_add_scalar_(x, 1);
    end = dvt_event_record(dvt_gpu(0));
    CHECK_INT(dvt_event_wait(end), DVT_OK);
    CHECK(dvt_event_done(begin) && dvt_event_done(end));
    CHECK(dvt_event_elapsed(begin, end) >= 0);
    CHECK_CLOSE(dvt_event_elapsed(begin, begin), 0, 0);
    CHECK_ERROR(dvt_event_elapsed(begin, dvt_event_record(dvt_cpu())), DVT_ERR_CONTEXT);
    dvt_discard(dvt_event_record(dvt_gpu(0)));
    CHECK(all_are(x, 11));
}

#if !defined(_WIN32)
/* The child may release what it has inherited, and gets errors for all else. */
static int child_of(dvt_array *x, dvt_event *event, dvt_array *y) {
    dvt_set_logger(NULL, NULL);
    if (dvt_event_wait(event) != DVT_ERR_FORKED)
        return 1;
    dvt_clear_error();
    if (dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0)) || dvt_error_code() != DVT_ERR_FORKED)
        return 2;
    dvt_clear_error();
    if (dvt_kernel_apply(dvt_kernel_expression("x", "x + 1"), DVT_ARGS(DVT_IN(y))) ||
        dvt_error_code() != DVT_ERR_FORKED)
        return 3;
    dvt_clear_error();
    if (dvt_copyto(x, dvt_gpu(0)) || dvt_error_code() != DVT_ERR_FORKED)
        return 4;
    dvt_clear_error();
    dvt_discard_all();
    return dvt_item(dvt_sum(dvt_full(DVT_SHAPE(3), 2, DVT_F32, dvt_cpu()), DVT_ALL)) == 6 ? 0 : 5;
}

DVT_TEST(gpu_pinned_in_a_forked_child) {
    dvt_array *x, *y;
    dvt_event *event;
    pid_t child;
    int state = 0;
    NEEDS_GPU;
    x = dvt_empty_pinned(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
    dvt_fill(x, 1);
    y = dvt_copyto(x, dvt_gpu(0)); /* pending */
    event = dvt_event_record(dvt_gpu(0));
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(child_of(x, event, y));
    CHECK(child > 0 && waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state));
    CHECK_INT(WEXITSTATUS(state), 0);
    dvt_fill(x, 2);
    CHECK(all_are(y, 1) && dvt_event_done(event));
}
#endif
