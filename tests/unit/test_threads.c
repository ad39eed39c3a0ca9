/* Tests with several threads: shared data, data of each thread, and what remains after their
   end. */
#include "in_threads.h"

#if !defined(DEVTENSOR_NO_THREADS)
/* ---- arrays that all threads read ---- */
static void *read_shared(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < 50; i++)
        DVT_SCOPE {
            dvt_array *x = (dvt_array *)dvt_retain(w->shared), *y;
            y = dvt_add(dvt_mul_scalar(x, w->number), dvt_t(dvt_t(x)));
            w->sum += dvt_item_at(y, DVT_SHAPE(i % 10, 3));
            dvt_release(x);
        }
    return NULL;
}

DVT_TEST(threads_share_arrays) {
    worker workers[THREADS];
    dvt_array *x = dvt_reshape(dvt_arange(0, 100, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(10, 10));
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++)
        workers[i].shared = x;
    in_threads(read_shared, workers);
    for (i = 0; i < THREADS; i++)
        CHECK_CLOSE(workers[i].sum, (i + 1) * 50 * (45 + 3), 1e-9);
}

/* Releases an object that only another thread's scope owns, which is an error. */
static void *release_anothers(void *user) {
    worker *w = (worker *)user;
    dvt_release(w->shared);
    w->status = dvt_error_code();
    return NULL;
}

DVT_TEST(threads_cannot_release_objects_of_others) {
    worker workers[THREADS];
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++)
        workers[i].shared = x;
    in_threads(release_anothers, workers);
    for (i = 0; i < THREADS; i++)
        CHECK_INT(workers[i].status, DVT_ERR_VALUE);
    CHECK_VALUES(x, 0, 1, 1);
}

/* Releases references that were retained for this thread while another thread's scope ends. */
static void *release_retained(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < w->count; i++) {
        dvt_release(w->many[i]);
        if (dvt_error_code())
            w->status = dvt_error_code();
    }
    return NULL;
}

DVT_TEST(threads_release_while_a_scope_ends) {
    enum { MANY = 2000 };

    static dvt_array *made[MANY];
    int64_t before = dvt_get_stats().arrays;
    worker mine;
    pthread_t thread;
    int round, i, started;
    memset(&mine, 0, sizeof mine);
    mine.many = made;
    mine.count = MANY;
    for (round = 0; round < 20; round++) {
        DVT_SCOPE {
            for (i = 0; i < MANY; i++)
                made[MANY - 1 - i] = dvt_retain(dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu()));
            started = pthread_create(&thread, NULL, release_retained, &mine) == 0;
            CHECK(started);
        }
        if (started)
            pthread_join(thread, NULL);
    }
    CHECK_INT(mine.status, DVT_OK);
    CHECK_INT(dvt_get_stats().arrays, before);
}

/* Calls that return the array itself to all threads. */
static void *same_array(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < 100; i++)
        DVT_SCOPE {
            CHECK(dvt_as_in_ctx(w->shared, dvt_cpu()) == w->shared);
            CHECK(dvt_contiguous(w->shared) == w->shared);
            CHECK(dvt_as_in_dtype(w->shared, DVT_F32) == w->shared);
            w->sum += (double)strlen(dvt_made_at(w->shared));
        }
    return NULL;
}

DVT_TEST(threads_share_an_array_without_a_site) {
    worker workers[THREADS];
    dvt_array *x = (dvt_ones)(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++)
        workers[i].shared = x;
    in_threads(same_array, workers);
    CHECK_VALUES(x, 0, 1, 1, 1);
}

/* ---- creation and release ---- */
static void *create_and_release(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < 300; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(5 + w->number, 7), i, DVT_F32, w->ctx);
            dvt_array *y = dvt_retain(dvt_add(x, dvt_rows(x, 0, 1)));
            w->sum += dvt_item_at(y, DVT_SHAPE(-1, -1)) - 2 * i;
            dvt_release(y);
        }
    return NULL;
}

DVT_TEST(threads_create_and_release) {
    worker workers[THREADS];
    dvt_stats before = dvt_get_stats(), after;
    int g, i;
    dvt_set_virtual_gpus(2, 0);
    for (g = 0; g < 2; g++) {
        memset(workers, 0, sizeof workers);
        for (i = 0; i < THREADS; i++)
            workers[i].ctx = g ? dvt_gpu(i % 2) : dvt_cpu_id(i % 3);
        in_threads(create_and_release, workers);
        for (i = 0; i < THREADS; i++)
            CHECK(workers[i].sum == 0);
        after = dvt_get_stats();
        CHECK_INT(after.arrays, before.arrays);
        CHECK_INT(after.blocks_of_memory, before.blocks_of_memory);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- the end of a thread ---- */
static void *leave_things_behind(void *user) {
    worker *w = (worker *)user;
    dvt_scope_guard scope;
    dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, dvt_cpu());
    scope = dvt_scope_begin();
    w->result = dvt_retain(dvt_mul_scalar(x, w->number));
    dvt_neg(x);
    (void)scope; /* never ended */
    dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu());
    w->status = dvt_error_code();
    return NULL;
}

DVT_TEST(threads_end_releases_their_objects) {
    worker workers[THREADS];
    dvt_stats before = dvt_get_stats(), after;
    int i;
    memset(workers, 0, sizeof workers);
    in_threads(leave_things_behind, workers);
    after = dvt_get_stats();
    CHECK_INT(after.arrays, before.arrays + THREADS);
    for (i = 0; i < THREADS; i++) {
        CHECK_CLOSE(dvt_item_at(workers[i].result, DVT_SHAPE(99)), i, 0);
        CHECK_INT(workers[i].status, DVT_ERR_SHAPE);
        dvt_release(workers[i].result);
    }
    CHECK_INT(dvt_get_stats().arrays, before.arrays);
    CHECK_INT(dvt_get_stats().blocks_of_memory, before.blocks_of_memory);
    CHECK_INT(dvt_error_code(), DVT_OK); /* their errors were their own */
}

/* ---- state of each thread ---- */
static pthread_barrier_t barrier;

static void *own_state(void *user) {
    worker *w = (worker *)user;
    dvt_ctx mine = dvt_cpu_id(w->number), zero = {DVT_DEVICE_DEFAULT, 0};
    int odd = w->number % 2;
    CHECK(!dvt_is_recording() && !dvt_is_training());
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    CHECK_INT(dvt_set_transfer_guard(odd ? DVT_TRANSFER_FORBID : DVT_TRANSFER_ALLOW),
              DVT_TRANSFER_ALLOW);
    DVT_SCOPE {
        DVT_WITH_CTX(mine) {
            DVT_MODE_SCOPE(odd ? DVT_ON : DVT_OFF, odd ? DVT_OFF : DVT_ON) {
                dvt_array *x;
                pthread_barrier_wait(&barrier); /* all threads are inside now */
                CHECK_INT(dvt_is_recording(), odd);
                CHECK_INT(dvt_is_training(), !odd);
                x = dvt_ones(DVT_SHAPE(2), DVT_F32, zero);
                CHECK(dvt_ctx_equal(dvt_ctx_of(x), mine));
                if (odd)
                    dvt_linspace(0, 1, -1, DVT_F32, dvt_cpu());
                else
                    dvt_arange(0, 1, 0, DVT_F32, dvt_cpu());
                pthread_barrier_wait(&barrier);
                CHECK_INT(dvt_error_code(), odd ? DVT_ERR_RANGE : DVT_ERR_VALUE);
                CHECK(strstr(dvt_error(), odd ? "dvt_linspace" : "dvt_arange") != NULL);
                pthread_barrier_wait(&barrier);
                dvt_clear_error();
            }
        }
    }
    CHECK(!dvt_is_recording());
    return NULL;
}

DVT_TEST(threads_have_their_own_state) {
    worker workers[THREADS];
    memset(workers, 0, sizeof workers);
    if (pthread_barrier_init(&barrier, NULL, THREADS))
        SKIP("this system has no barriers");
    in_threads(own_state, workers);
    pthread_barrier_destroy(&barrier);
    CHECK(!dvt_is_recording() && !dvt_is_training());
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    CHECK_INT(dvt_set_transfer_guard(DVT_TRANSFER_ALLOW), DVT_TRANSFER_ALLOW);
    CHECK_INT(dvt_error_code(), DVT_OK);
}

/* ---- work that itself uses the thread pool ---- */
static void *large_work(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < 2; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(200, 300), w->number + 1, DVT_F32, dvt_cpu());
            dvt_array *y = dvt_matmul(x, dvt_t(x));
            w->sum += dvt_item_at(y, DVT_SHAPE(199, 199));
            y = dvt_add(dvt_exp(dvt_mul_scalar(x, 0)), x);
            w->sum += dvt_item_at(y, DVT_SHAPE(199, 299));
        }
    return NULL;
}

DVT_TEST(threads_use_the_pool_together) {
    worker workers[THREADS];
    int i;
    memset(workers, 0, sizeof workers);
    CHECK_INT(dvt_set_num_threads(3), DVT_OK);
    in_threads(large_work, workers);
    for (i = 0; i < THREADS; i++)
        CHECK_CLOSE(workers[i].sum, 2 * (300.0 * (i + 1) * (i + 1) + i + 2), 1e-6);
    dvt_set_num_threads(0);
}

/* ---- random streams ---- */
static void *draw(void *user) {
    worker *w = (worker *)user;
    float *out = (float *)malloc(4000);
    int i;
    for (i = 0; i < 125; i++)
        DVT_SCOPE {
            dvt_to_host(dvt_uniform(0, 1, DVT_SHAPE(8), DVT_F32, w->ctx), out + 8 * i, 32);
        }
    w->result = (dvt_array *)(void *)out;
    return NULL;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Together the threads draw the numbers that a single thread would draw, each number once. */
DVT_TEST(threads_draw_from_one_stream) {
    static float all[8000], serial[8000];
    worker workers[THREADS];
    int i, g;
    dvt_set_virtual_gpus(1, 0);
    for (g = 0; g < 2; g++) {
        dvt_ctx ctx = g ? dvt_gpu(0) : dvt_cpu();
        memset(workers, 0, sizeof workers);
        for (i = 0; i < THREADS; i++)
            workers[i].ctx = ctx;
        dvt_seed(11);
        in_threads(draw, workers);
        for (i = 0; i < THREADS; i++) {
            memcpy(all + 1000 * i, workers[i].result, 4000);
            free(workers[i].result);
        }
        dvt_seed(11);
        DVT_SCOPE {
            dvt_to_host(dvt_uniform(0, 1, DVT_SHAPE(8000), DVT_F32, ctx), serial, sizeof serial);
        }
        qsort(all, 8000, sizeof(float), by_value);
        qsort(serial, 8000, sizeof(float), by_value);
        CHECK(memcmp(all, serial, sizeof all) == 0);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* ---- gradients ---- */
static void *train_alone(void *user) {
    worker *w = (worker *)user;
    int i;
    for (i = 0; i < 20; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(3), w->number, DVT_F32, w->ctx), *y = NULL;
            dvt_attach_grad(x, DVT_GRAD_WRITE);
            DVT_RECORD {
                y = dvt_mul(dvt_square(x), dvt_as_in_ctx(w->shared, w->ctx));
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            w->sum += dvt_item_at(dvt_grad(x), DVT_SHAPE(1));
        }
    return NULL;
}

DVT_TEST(threads_record_alone) {
    worker workers[THREADS];
    dvt_array *factor = dvt_full(DVT_SHAPE(3), 5, DVT_F32, dvt_cpu());
    int i;
    dvt_set_virtual_gpus(2, 0);
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++) {
        workers[i].shared = factor;
        workers[i].ctx = i < 4 ? dvt_cpu() : dvt_gpu(i % 2);
    }
    in_threads(train_alone, workers);
    for (i = 0; i < THREADS; i++)
        CHECK_CLOSE(workers[i].sum, 20 * 2 * i * 5, 1e-6);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Records an own graph on an array that all threads share. */
static void *use_recorded(void *user) {
    worker *w = (worker *)user;
    DVT_SCOPE {
        dvt_array *y = NULL, *out = NULL, *var = w->shared;
        DVT_RECORD {
            y = dvt_mul_scalar(w->shared, w->number);
        }
        CHECK_INT(dvt_gradients(&y, NULL, 1, &var, 1, DVT_FREE_GRAPH, &out), DVT_OK);
        w->sum = dvt_item_at(out, DVT_SHAPE(0));
    }
    return NULL;
}

DVT_TEST(threads_share_a_recorded_array) {
    worker workers[THREADS];
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int i;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    memset(workers, 0, sizeof workers);
    for (i = 0; i < THREADS; i++)
        workers[i].shared = x;
    in_threads(use_recorded, workers);
    for (i = 0; i < THREADS; i++)
        CHECK_CLOSE(workers[i].sum, i, 0);
}

/* ---- moving objects between threads ---- */
static void *release_here(void *user) {
    worker *w = (worker *)user;
    dvt_release(w->shared);
    return NULL;
}

DVT_TEST(threads_release_objects_of_other_threads) {
    worker workers[THREADS];
    dvt_stats before = dvt_get_stats();
    int i;
    dvt_set_virtual_gpus(1, 0);
    memset(workers, 0, sizeof workers);
    DVT_SCOPE {
        for (i = 0; i < THREADS; i++)
            workers[i].shared =
                dvt_retain(dvt_ones(DVT_SHAPE(50), DVT_F32, i % 2 ? dvt_gpu(0) : dvt_cpu()));
    }
    CHECK_INT(dvt_get_stats().arrays, before.arrays + THREADS);
    in_threads(release_here, workers);
    CHECK_INT(dvt_get_stats().arrays, before.arrays);
    CHECK_INT(dvt_get_stats().blocks_of_memory, before.blocks_of_memory);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

#else

DVT_TEST(threads_left_out) {
    SKIP("DEVTENSOR_NO_THREADS");
}

#endif
