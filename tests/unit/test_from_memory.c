/* Tests of arrays on memory of the caller: layouts, writes in both directions, the release of the
   memory, and the refusals. */
#include "dvt_faults.h"

static void count_release(void *user) {
    __atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
}

static int64_t used_bytes(dvt_ctx ctx) {
    dvt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    CHECK_INT(dvt_memory_query(ctx, &stats), DVT_OK);
    return stats.used;
}

DVT_TEST(from_memory_shares) {
    float values[6] = {1, 2, 3, 4, 5, 6};
    int released = 0;
    int64_t used = used_bytes(dvt_cpu()), blocks = dvt_get_stats().blocks_of_memory;
    dvt_array *x = dvt_from_memory(values, DVT_SHAPE(2, 3), NULL, DVT_F32, count_release, &released,
                                   dvt_cpu());
    CHECK(dvt_data(x) == values);
    CHECK(dvt_is_contiguous(x));
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
    values[4] = -5; /* both sides see what the other one writes */
    CHECK_VALUES(dvt_index(x, 1), 0, 4, -5, 6);
    CHECK(dvt_mul_scalar_(x, 2) == x);
    CHECK_CLOSE(values[5], 12, 0);
    CHECK(dvt_fill(dvt_slice(x, 1, 0, 1, 1), 9) != NULL);
    CHECK_CLOSE(values[0], 9, 0);
    CHECK_CLOSE(values[1], 4, 0);
    CHECK_INT(used_bytes(dvt_cpu()), used);
    CHECK_INT(dvt_get_stats().blocks_of_memory, blocks + 1);
    CHECK_INT(released, 0);
    dvt_discard_all();
    CHECK_INT(released, 1);
    CHECK_CLOSE(values[5], 12, 0); /* the memory was not reused */
    CHECK_INT(dvt_get_stats().blocks_of_memory, blocks);
}

DVT_TEST(from_memory_is_never_reused) {
    static float values[1 << 16];
    int i, released = 0;
    for (i = 0; i < 4; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_from_memory(values, DVT_SHAPE(1 << 16), NULL, DVT_F32, count_release,
                                           &released, dvt_cpu());
            dvt_array *y;
            dvt_discard(x);
            CHECK_INT(released, i + 1);
            y = dvt_full(DVT_SHAPE(1 << 16), 7, DVT_F32, dvt_cpu());
            CHECK(dvt_data(y) != values);
        }
    CHECK_CLOSE(values[77], 0, 0);
}

DVT_TEST(from_memory_lives_as_long_as_a_view) {
    double values[4] = {1, 2, 3, 4};
    int released = 0;
    dvt_array *view = NULL;
    DVT_SCOPE {
        dvt_array *x = dvt_from_memory(values, DVT_SHAPE(2, 2), NULL, DVT_F64, count_release,
                                       &released, dvt_cpu());
        view = (dvt_array *)dvt_retain(dvt_t(x));
        CHECK(dvt_shares_memory(x, view));
    }
    CHECK_INT(released, 0);
    CHECK_VALUES(view, 0, 1, 3, 2, 4);
    dvt_release(view);
    CHECK_INT(released, 1);
}

DVT_TEST(from_memory_strides) {
    static const int64_t padded[] = {4, 1}, backward[] = {-4, -1}, repeated[] = {0, 1},
                         wild[] = {INT64_MIN, 2, INT64_MAX}, windows[] = {1, 1};
    int32_t v[12] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_from_memory(v, DVT_SHAPE(3, 2), padded, DVT_I32, NULL, NULL, cpu);
    CHECK_VALUES(x, 0, 0, 1, 10, 11, 20, 21);
    CHECK_INT(dvt_stride(x, 0), 4);
    CHECK(!dvt_is_contiguous(x));
    x = dvt_from_memory(&v[11], DVT_SHAPE(2, 3), backward, DVT_I32, NULL, NULL, cpu);
    CHECK(dvt_data(x) == &v[11]);
    CHECK_VALUES(x, 0, 23, 22, 21, 13, 12, 11);
    CHECK_VALUES(dvt_slice(x, 1, -1, DVT_END, -1), 0, 21, 22, 23, 11, 12, 13);
    CHECK(dvt_fill(dvt_index(x, 1), -1) != NULL);
    CHECK_INT(v[7], -1);
    CHECK_INT(v[4], 10);
    /* Strides of extents of 1 mean nothing. */
    x = dvt_from_memory(v, DVT_SHAPE(1, 3, 1), wild, DVT_I32, NULL, NULL, cpu);
    CHECK_VALUES(x, 0, 0, 2, 10);
    CHECK(dvt_fill(x, 5) == x);
    /* Several indices of one element: for reading only, also through a view. */
    x = dvt_from_memory(v, DVT_SHAPE(2, 2), repeated, DVT_I32, NULL, NULL, cpu);
    CHECK_VALUES(x, 0, 5, 1, 5, 1);
    CHECK_ERROR(dvt_fill(x, 1), DVT_ERR_VALUE);
    x = dvt_from_memory(v, DVT_SHAPE(2, 3), windows, DVT_I32, NULL, NULL, cpu);
    CHECK_VALUES(x, 0, 5, 1, 5, 1, 5, 3);
    CHECK_ERROR(dvt_fill(dvt_index(x, 0), 1), DVT_ERR_VALUE);
    CHECK_INT(dvt_item_int(dvt_sum(x, DVT_ALL)), 20);
}

/* Compares random layouts with indices computed here. Writable arrays have distinct elements. */
DVT_TEST(from_memory_random_layouts) {
    enum { MIDDLE = 500, MOST = 256 };

    static int32_t v[2 * MIDDLE];
    int round, i, written = 0;
    for (round = 0; round < 400; round++)
        DVT_SCOPE {
            int32_t got[MOST], want[MOST];
            bool seen[2 * MIDDLE], repeats = false, writable;
            dvt_shape shape = DVT_SCALAR;
            int64_t strides[4] = {0, 0, 0, 0}, n, k;
            dvt_array *x;
            memset(seen, 0, sizeof seen);
            for (i = 0; i < 2 * MIDDLE; i++)
                v[i] = i;
            shape.ndim = (int)dvt_test_random(0, 5);
            for (i = 0; i < shape.ndim; i++) {
                shape.dim[i] = (int64_t)dvt_test_random(1, 5);
                strides[i] = (int64_t)dvt_test_random(-31, 31);
            }
            n = dvt_shape_size(shape);
            for (k = 0; k < n; k++) {
                int64_t rest = k, at = MIDDLE;
                for (i = shape.ndim - 1; i >= 0; i--) {
                    at += rest % shape.dim[i] * strides[i];
                    rest /= shape.dim[i];
                }
                want[k] = v[at];
                repeats = repeats || seen[at];
                seen[at] = true;
            }
            x = dvt_from_memory(v + MIDDLE, shape, strides, DVT_I32, NULL, NULL, dvt_cpu());
            CHECK_INT(dvt_to_host(x, got, n * 4), DVT_OK);
            CHECK(memcmp(got, want, (size_t)n * 4) == 0);
            writable = dvt_fill(x, -1) != NULL;
            dvt_clear_error();
            CHECK(!writable || !repeats);
            for (i = 0; i < 2 * MIDDLE; i++)
                if (v[i] != (writable && seen[i] ? -1 : i))
                    CHECK_INT(v[i], writable && seen[i] ? -1 : i);
            written += writable;
        }
    CHECK(written > 50 && written < 390);
}

DVT_TEST(from_memory_dtypes) {
    static const float numbers[] = {-1.5f, 0, 2.5f};
    dvt_ctx cpu = dvt_cpu();
    int d;
    for (d = 0; d < DVT_DTYPE_COUNT; d++)
        DVT_SCOPE {
            dvt_array *host = dvt_from_host(numbers, DVT_SHAPE(3), DVT_F32, cpu);
            dvt_array *made = dvt_astype(host, (dvt_dtype)d);
            char bytes[3 * 8 + 8];
            char *at = bytes + (8 - (uintptr_t)bytes % 8) % 8;
            dvt_array *x;
            CHECK_INT(dvt_to_host(made, at, dvt_nbytes(made)), DVT_OK);
            x = dvt_from_memory(at, DVT_SHAPE(3), NULL, (dvt_dtype)d, NULL, NULL, cpu);
            CHECK(dvt_array_equal(x, made, DVT_NAN_DIFFERS));
            CHECK_INT(dvt_dtype_of(x), d);
        }
}

DVT_TEST(from_memory_without_elements) {
    static const int64_t strides[] = {INT64_MAX, -3};
    int released = 0;
    float one = 3;
    dvt_array *x = dvt_from_memory(NULL, DVT_SHAPE(0, 5), strides, DVT_F32, count_release,
                                   &released, dvt_cpu());
    CHECK_INT(dvt_size(x), 0);
    CHECK_INT(dvt_size(dvt_exp(x)), 0);
    CHECK_CLOSE(dvt_item(dvt_sum(x, DVT_ALL)), 0, 0);
    CHECK(dvt_fill(x, 1) == x);
    dvt_discard(x);
    CHECK_INT(released, 1);
    x = dvt_from_memory(&one, DVT_SCALAR, NULL, DVT_F32, NULL, NULL, dvt_cpu());
    CHECK_CLOSE(dvt_item(x), 3, 0);
}

DVT_TEST(from_memory_refuses) {
    static const int64_t bytes[] = {INT64_MAX / 2, 1}, lowest[] = {INT64_MIN, 1},
                         before_zero[] = {-((int64_t)1 << 59), 1};
    double values[4] = {1, 2, 3, 4};
    dvt_ctx cpu = dvt_cpu();
    int released = 0;
#define REFUSED(data, shape, strides, dtype, ctx, status)                                          \
    CHECK_ERROR(dvt_from_memory(data, shape, strides, dtype, count_release, &released, ctx), status)
    REFUSED(NULL, DVT_SHAPE(2), NULL, DVT_F64, cpu, DVT_ERR_NULL_ARGUMENT);
    REFUSED((char *)values + 4, DVT_SHAPE(2), NULL, DVT_F64, cpu, DVT_ERR_VALUE);
    REFUSED((char *)values + 1, DVT_SHAPE(2), NULL, DVT_F16, cpu, DVT_ERR_VALUE);
    REFUSED(values, DVT_SHAPE(2, -1), NULL, DVT_F64, cpu, DVT_ERR_SHAPE);
    REFUSED(values, DVT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), NULL, DVT_F64, cpu, DVT_ERR_SHAPE);
    REFUSED(values, DVT_SHAPE(INT64_MAX, 2), NULL, DVT_F64, cpu, DVT_ERR_SHAPE);
    REFUSED(values, DVT_SHAPE(2, 2), bytes, DVT_F64, cpu, DVT_ERR_RANGE);
    REFUSED(values, DVT_SHAPE(2, 2), lowest, DVT_F64, cpu, DVT_ERR_RANGE);
    REFUSED(values, DVT_SHAPE(2, 2), before_zero, DVT_F64, cpu, DVT_ERR_RANGE);
    REFUSED(values, DVT_SHAPE(2), NULL, (dvt_dtype)77, cpu, DVT_ERR_DTYPE);
    REFUSED(values, DVT_SHAPE(2), NULL, DVT_F64, dvt_gpu(15), DVT_ERR_NO_DEVICE);
#undef REFUSED
    CHECK_INT(released, 0);
    dvt_from_memory((char *)values + 4, DVT_SHAPE(2), NULL, DVT_F64, NULL, NULL, cpu);
    CHECK(strstr(dvt_error(), "dvt_from_memory: the data begins 4 bytes after a multiple of 8"));
    dvt_clear_error();
}

/* The recorded operation keeps the memory until the graph is freed. */
DVT_TEST(from_memory_gradients) {
    float values[3] = {1, 2, 3};
    int released = 0;
    dvt_array *loss = NULL, *w = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_attach_grad(w, DVT_GRAD_WRITE), DVT_OK);
    DVT_SCOPE {
        dvt_array *x = dvt_from_memory(values, DVT_SHAPE(3), NULL, DVT_F32, count_release,
                                       &released, dvt_cpu());
        DVT_RECORD {
            loss = dvt_sum(dvt_mul(w, x), DVT_ALL);
        }
        dvt_keep(loss);
    }
    CHECK_INT(released, 0);
    CHECK_INT(dvt_backward(loss), DVT_OK);
    CHECK_VALUES(dvt_grad(w), 0, 1, 2, 3);
    dvt_discard(loss);
    CHECK_INT(released, 1);
}

DVT_TEST(from_memory_with_a_gradient) {
    float values[3] = {1, 2, 3};
    int released = 0;
    dvt_array *loss = NULL, *x;
    x = dvt_from_memory(values, DVT_SHAPE(3), NULL, DVT_F32, count_release, &released, dvt_cpu());
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        loss = dvt_sum(dvt_square(x), DVT_ALL);
    }
    values[1] = 5; /* not seen, unless it is said */
    CHECK_INT(dvt_mark_written(x), DVT_OK);
    CHECK_ERROR(dvt_backward(loss), DVT_ERR_GRAD);
    DVT_RECORD {
        loss = dvt_sum(dvt_square(x), DVT_ALL);
    }
    CHECK_INT(dvt_backward(loss), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 2, 10, 6);
    CHECK_CLOSE(values[0], 1, 0);
    dvt_discard_all();
    CHECK_INT(released, 1);
}

/* A gradient that the caller passes in is never written, although nothing else holds the array. */
DVT_TEST(from_memory_as_a_head_gradient) {
    float head[2] = {3, 4};
    int released = 0;
    dvt_array *w = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *y[2] = {NULL, NULL}, *g[2], *out;
    CHECK_INT(dvt_attach_grad(w, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        y[0] = dvt_add_scalar(w, 1);
        y[1] = dvt_mul_scalar(w, 1);
    }
    g[0] = dvt_from_memory(head, DVT_SHAPE(2), NULL, DVT_F32, count_release, &released, dvt_cpu());
    g[1] = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_gradients(y, g, 2, &w, 1, DVT_RETAIN_GRAPH, &out), DVT_OK);
    CHECK_VALUES(out, 0, 4, 5);
    CHECK_INT(dvt_gradients(y, g, 1, &w, 1, DVT_FREE_GRAPH, &out), DVT_OK);
    CHECK_VALUES(out, 0, 3, 4);
    CHECK(!dvt_shares_memory(out, g[0]));
    CHECK_CLOSE(head[0], 3, 0);
    CHECK_CLOSE(head[1], 4, 0);
    dvt_discard_all();
    CHECK_INT(released, 1);
}

/* Two arrays on the same bytes: functions that write in place read their inputs first. */
DVT_TEST(from_memory_overlaps) {
    enum { MOST = 1000, SIDE = 30 };

    static float v[MOST + 1];
    dvt_ctx cpu = dvt_cpu();
    dvt_array *low = dvt_from_memory(v, DVT_SHAPE(MOST), NULL, DVT_F32, NULL, NULL, cpu);
    dvt_array *high = dvt_from_memory(v + 1, DVT_SHAPE(MOST), NULL, DVT_F32, NULL, NULL, cpu);
    dvt_array *matrix, *same, *want;
    dvt_matmul_desc desc;
    int i;
    CHECK(!dvt_shares_memory(low, high));
    for (i = 0; i <= MOST; i++)
        v[i] = (float)i;
    want = dvt_add(high, low);
    CHECK(dvt_add_(high, low) == high);
    CHECK(dvt_array_equal(high, want, DVT_NAN_DIFFERS));
    want = dvt_copy(dvt_slice(low, 0, -1, DVT_END, -1));
    CHECK(dvt_copy_into(high, dvt_slice(low, 0, -1, DVT_END, -1)) == high);
    CHECK(dvt_array_equal(high, want, DVT_NAN_DIFFERS));
    for (i = 0; i <= MOST; i++)
        v[i] = (float)(i % 7);
    matrix = dvt_from_memory(v, DVT_SHAPE(SIDE, SIDE), NULL, DVT_F32, NULL, NULL, cpu);
    same = dvt_from_memory(v, DVT_SHAPE(SIDE, SIDE), NULL, DVT_F32, NULL, NULL, cpu);
    want = dvt_mul_scalar(same, 2);
    CHECK(dvt_add_(matrix, same) == matrix); /* an identical view */
    CHECK(dvt_array_equal(matrix, want, DVT_NAN_DIFFERS));
    want = dvt_matmul(same, same);
    memset(&desc, 0, sizeof desc);
    desc.out = matrix;
    CHECK(dvt_matmul_with(same, same, &desc) == matrix);
    CHECK(dvt_array_equal(matrix, want, DVT_NAN_DIFFERS));
}

/* ---- virtual GPUs ---- */
typedef struct poisoned {
    float *at;
    int n, released;
} poisoned;

/* A queued operation that has not read the memory yet would see NaN. */
static void poison(void *user) {
    poisoned *p = (poisoned *)user;
    int i;
    for (i = 0; i < p->n; i++)
        p->at[i] = NAN;
    p->released++;
}

DVT_TEST(from_memory_on_virtual_gpus) {
    static float values[1 << 18], results[1 << 18];
    poisoned p = {values, 1 << 18, 0};
    dvt_array *x, *y, *z, *into;
    dvt_memory_stats stats;
    int i;
    NEEDS_NO_GPU("GPUs made of host memory");
    for (i = 0; i < p.n; i++)
        values[i] = 1;
    CHECK_INT(dvt_set_virtual_gpus(2, 1 << 21), DVT_OK);
    x = dvt_from_memory(values, DVT_SHAPE(p.n), NULL, DVT_F32, poison, &p, dvt_gpu(1));
    CHECK_INT(dvt_memory_query(dvt_gpu(1), &stats), DVT_OK);
    CHECK_INT(stats.used, 0);
    CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(1)));
    CHECK_ERROR(dvt_data(x), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_set_virtual_gpus(0, 0), DVT_ERR_VALUE); /* it is in use */
    y = dvt_exp(dvt_exp(x));
    z = dvt_copyto(x, dvt_gpu(0)); /* the other queue reads the memory */
    dvt_discard(x);
    CHECK_INT(p.released, 1);
    CHECK(isnan(values[0]));
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(p.n - 1)), exp(exp(1)), 1e-6);
    CHECK_CLOSE(dvt_item(dvt_sum(z, DVT_ALL)), p.n, 0);
    dvt_discard_all();
    into = dvt_from_memory(results, DVT_SHAPE(p.n), NULL, DVT_F32, NULL, NULL, dvt_gpu(0));
    dvt_fill(into, 3);
    dvt_add_scalar_(into, 1);
    CHECK_INT(dvt_wait(into), DVT_OK);
    CHECK_CLOSE(results[p.n - 1], 4, 0);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- the function that releases ---- */
static void release_array(void *user) {
    dvt_release(user);
}

DVT_TEST(from_memory_releases_another_array) {
    dvt_array *owner = dvt_arange(0, 4, 1, DVT_F32, dvt_cpu()), *x;
    int64_t before = dvt_get_stats().arrays;
    x = dvt_from_memory(dvt_data(owner), DVT_SHAPE(2, 2), NULL, DVT_F32, release_array,
                        dvt_retain(owner), dvt_cpu());
    dvt_discard(owner);
    CHECK_VALUES(x, 0, 0, 1, 2, 3);
    dvt_discard(x);
    CHECK_INT(dvt_get_stats().arrays, before - 1);
}

#if !defined(DEVTENSOR_NO_THREADS)
static void *release_there(void *user) {
    dvt_release(user);
    return NULL;
}

DVT_TEST(from_memory_is_released_by_another_thread) {
    float values[2] = {1, 2};
    int released = 0;
    pthread_t thread;
    dvt_array *x = (dvt_array *)dvt_retain(
        dvt_from_memory(values, DVT_SHAPE(2), NULL, DVT_F32, count_release, &released, dvt_cpu()));
    dvt_discard(x);
    CHECK_INT(released, 0);
    if (CHECK(pthread_create(&thread, NULL, release_there, x) == 0))
        pthread_join(thread, NULL);
    CHECK_INT(released, 1);
}
#endif

static int faulty_releases;

DVT_FAULTS(from_memory) {
    float values[4] = {1, 2, 3, 4};
    int before = faulty_releases, made;
    DVT_SCOPE {
        dvt_array *x = dvt_from_memory(values, DVT_SHAPE(2, 2), NULL, DVT_F32, count_release,
                                       &faulty_releases, dvt_cpu());
        made = x != NULL;
        FAULTS_ADD(x);
        FAULTS_ADD(dvt_t(x));
        CHECK_INT(faulty_releases, before);
    }
    CHECK_INT(faulty_releases - before, made);
}
