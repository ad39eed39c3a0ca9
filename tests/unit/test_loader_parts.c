/* Tests of loaders that hand one part of each batch to each context: contexts, rows, equal bits for
   any number of workers, memory, states, errors. */
#include "dvt_faults.h"
#if !defined(DEVTENSOR_NO_NN)

/* Returns x = (n, 2) rows {i, -i}, y = i. */
static dvt_dataset *numbers(int64_t n) {
    dvt_array *i = dvt_arange(0, (double)n, 1, DVT_F32, dvt_cpu());
    dvt_array *both[2];
    both[0] = i;
    both[1] = dvt_neg(i);
    return dvt_dataset_arrays(dvt_stack(both, 2, 1), dvt_astype(i, DVT_I32));
}

static dvt_loader *loader(dvt_dataset *data, int64_t batch, bool shuffle, int workers,
                          dvt_ctx_list ctxs) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch;
    desc.shuffle = shuffle;
    desc.num_workers = workers;
    desc.seed = 4;
    desc.ctxs = ctxs;
    return dvt_loader_new(data, &desc);
}

/* The parts are those of dvt_array_split_and_load of the batches of a loader without contexts. */
DVT_TEST(loader_parts) {
    dvt_ctx_list lists[3];
    dvt_array *x[DVT_MAX_CONTEXTS], *y[DVT_MAX_CONTEXTS], *wx[3], *wy[3], *wholex, *wholey;
    int k, workers, i, batches;
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    lists[0] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1), dvt_cpu());
    lists[1] = DVT_CONTEXTS(dvt_cpu(), dvt_cpu());
    lists[2] = DVT_CONTEXTS(dvt_gpu(1));
    for (k = 0; k < 3; k++)
        for (workers = 0; workers < 3; workers++)
            DVT_SCOPE {
                dvt_ctx_list none = {0};
                dvt_loader *parts = loader(numbers(26), 8, true, workers, lists[k]);
                dvt_loader *whole = loader(numbers(26), 8, true, 0, none);
                batches = 0;
                CHECK_INT(dvt_loader_len(parts), 4);
                DVT_FOR_PARTS(parts, x, y) {
                    CHECK(dvt_loader_next(whole, &wholex, &wholey));
                    CHECK(dvt_array_split_and_load(wholex, lists[k], wx) == DVT_OK);
                    CHECK(dvt_array_split_and_load(wholey, lists[k], wy) == DVT_OK);
                    for (i = 0; i < lists[k].n; i++) {
                        double *values = dvt_test_values(wx[i]), *labels = dvt_test_values(wy[i]);
                        CHECK(dvt_ctx_equal(dvt_ctx_of(x[i]), lists[k].ctx[i]));
                        CHECK(dvt_ctx_equal(dvt_ctx_of(y[i]), lists[k].ctx[i]));
                        dvt_test_equal(x[i], values, dvt_size(wx[i]), 0, __FILE__, __LINE__);
                        dvt_test_equal(y[i], labels, dvt_size(wy[i]), 0, __FILE__, __LINE__);
                        free(values);
                        free(labels);
                    }
                    batches++;
                }
                CHECK_INT(dvt_error_code(), DVT_OK);
                CHECK_INT(batches, 4); /* the last one has 2 rows: 1, 1, 0 on three contexts */
            }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* A loader with one context is one of batches: on a GPU, made and copied in advance. */
DVT_TEST(loader_on_one_context) {
    dvt_array *x, *y;
    int workers;
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    for (workers = 0; workers < 3; workers++)
        DVT_SCOPE {
            dvt_loader *l = loader(numbers(10), 4, false, workers, DVT_CONTEXTS(dvt_gpu(0)));
            CHECK(dvt_loader_next(l, &x, &y));
            CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
            CHECK_VALUES(y, 0, 0, 1, 2, 3);
            CHECK(dvt_loader_next_parts(l, &x, &y)); /* one place is enough */
            CHECK_VALUES(x, 0, 4, -4, 5, -5, 6, -6, 7, -7);
        }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* The default context is that of the thread that makes the loader. */
DVT_TEST(loader_parts_of_the_default_context) {
    dvt_ctx_list list = {0};
    dvt_array *x, *y;
    list.n = 1;
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_loader *l = NULL;
        DVT_WITH_CTX(dvt_gpu(0)) {
            l = loader(numbers(4), 2, false, 1, list);
        }
        CHECK(dvt_loader_next(l, &x, &y));
        CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* A loader that continues at a state of another one has the same parts. */
DVT_TEST(loader_parts_continue) {
    dvt_array *x[2], *y[2], *again_x[2], *again_y[2];
    int workers, i;
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    for (workers = 0; workers < 3; workers++)
        DVT_SCOPE {
            dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
            dvt_loader *first = loader(numbers(20), 6, true, workers, ctxs);
            dvt_loader *second = loader(numbers(20), 6, true, 2 - workers, ctxs);
            dvt_loader_state state;
            for (i = 0; i < 6; i++) /* 4 batches, an end, the first batch of epoch 1 */
                CHECK(dvt_loader_next_parts(first, x, y) == (i != 4));
            state = dvt_loader_get_state(first);
            CHECK_INT(state.epoch, 1);
            CHECK_INT(state.batch, 1);
            CHECK(dvt_loader_set_state(second, &state) == DVT_OK);
            CHECK(dvt_loader_next_parts(first, x, y));
            CHECK(dvt_loader_next_parts(second, again_x, again_y));
            for (i = 0; i < 2; i++) {
                double *labels = dvt_test_values(y[i]);
                dvt_test_equal(again_y[i], labels, 3, 0, __FILE__, __LINE__);
                free(labels);
            }
        }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

#if !defined(DEVTENSOR_NO_THREADS)
/* Workers make at most two batches each in advance, on the device too. */
DVT_TEST(loader_parts_bound_memory) {
    dvt_memory_stats stats;
    dvt_array *x, *y;
    int tries;
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *zeros = dvt_zeros(DVT_SHAPE(64, 4096), DVT_F32, dvt_cpu());
        dvt_dataset *data = dvt_dataset_arrays(zeros, dvt_zeros(DVT_SHAPE(64), DVT_I32, dvt_cpu()));
        dvt_loader *l = loader(data, 2, false, 2, DVT_CONTEXTS(dvt_gpu(0)));
        CHECK(dvt_loader_next(l, &x, &y));
        for (tries = 0; tries < 2000; tries++) {
            CHECK(dvt_memory_query(dvt_gpu(0), &stats) == DVT_OK);
            if (stats.used >= 5 * 32768)
                break;
            dvt_wait_all();
        }
        CHECK(dvt_memory_query(dvt_gpu(0), &stats) == DVT_OK);
        CHECK(stats.used_peak < 6 * (32768 + 4096)); /* the one that was taken, and four */
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}
#endif

static dvt_array *refuse_seven(void *user, dvt_array *x) {
    (void)user;
    return dvt_item(dvt_index(x, 0)) == 7 ? dvt_reshape(x, DVT_SHAPE(3)) : x;
}

DVT_TEST(loader_parts_errors) {
    dvt_array *x[2], *y[2];
    dvt_ctx_list two, many = {0};
    dvt_loader *l;
    int workers;
    CHECK(dvt_set_virtual_gpus(2, 65536) == DVT_OK);
    two = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    many.n = DVT_MAX_CONTEXTS + 1;
    CHECK_ERROR(loader(numbers(4), 2, false, 0, many), DVT_ERR_RANGE);
    many.n = -1;
    CHECK_ERROR(loader(numbers(4), 2, false, 0, many), DVT_ERR_RANGE);
    CHECK_ERROR(loader(numbers(4), 2, false, 0, DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(2))),
                DVT_ERR_NO_DEVICE);
    l = loader(numbers(4), 2, false, 0, two);
    CHECK_ERROR(dvt_loader_next(l, x, y), DVT_ERR_VALUE);
    CHECK(x[0] == NULL && y[0] == NULL);
    CHECK_ERROR(dvt_loader_next_parts(NULL, x, y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_next_parts(l, x, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_next_parts(l, NULL, y), DVT_ERR_NULL_ARGUMENT);
    for (workers = 0; workers < 2; workers++)
        DVT_SCOPE {
            dvt_dataset *data =
                dvt_dataset_transform_first(numbers(20), dvt_transform_new(refuse_seven, NULL));
            l = loader(data, 4, false, workers, two);
            CHECK(dvt_loader_next_parts(l, x, y));
            x[1] = y[1] = x[0];
            CHECK(!dvt_loader_next_parts(l, x, y));
            CHECK(x[0] == NULL && x[1] == NULL && y[0] == NULL && y[1] == NULL);
            CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
            CHECK(strstr(dvt_error(), "sample 7") != NULL);
            dvt_clear_error();
            /* a batch that does not fit on the device */
            data = dvt_dataset_arrays(dvt_zeros(DVT_SHAPE(8, 8192), DVT_F32, dvt_cpu()),
                                      dvt_zeros(DVT_SHAPE(8), DVT_I32, dvt_cpu()));
            l = loader(data, 8, false, workers, two);
            CHECK_ERROR(dvt_loader_next_parts(l, x, y), DVT_ERR_DEVICE_MEMORY);
        }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_FAULTS(loader_parts) {
    dvt_array *x[2], *y[2];
    dvt_loader *l = loader(numbers(8), 4, true, 0, DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1)));
    if (l && dvt_loader_next_parts(l, x, y)) {
        FAULTS_ADD(x[1]);
        FAULTS_ADD(y[0]);
    } else
        run->failed = 1;
}
#endif
