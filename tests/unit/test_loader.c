/* Tests of the loader: orders, last batches, workers, errors, and equal bits of its two ways to
   make a batch. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

/* Returns n images of h x w x c random bytes with labels 0..9. */
static dvt_dataset *pixels(int64_t n, int64_t h, int64_t w, int64_t c) {
    dvt_array *x = dvt_empty(DVT_SHAPE(n, h, w, c), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_empty(DVT_SHAPE(n), DVT_I32, dvt_cpu());
    uint8_t *px = (uint8_t *)dvt_data(x);
    int32_t *py = (int32_t *)dvt_data(y);
    int64_t i;
    for (i = 0; i < n * h * w * c; i++)
        px[i] = (uint8_t)dvt_test_random(0, 256);
    for (i = 0; i < n; i++)
        py[i] = (int32_t)(i % 10);
    return dvt_dataset_arrays(x, y);
}

/* Returns x = 0..n-1 as float (n, 2) rows {i, -i}, y = i. */
static dvt_dataset *numbers(int64_t n) {
    dvt_array *i = dvt_arange(0, (double)n, 1, DVT_F32, dvt_cpu());
    dvt_array *both[2];
    both[0] = i;
    both[1] = dvt_neg(i);
    return dvt_dataset_arrays(dvt_stack(both, 2, 1), dvt_astype(i, DVT_I32));
}

static dvt_loader *loader(dvt_dataset *data, int64_t batch, bool shuffle, dvt_last_batch last,
                          int workers, uint64_t seed) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch;
    desc.shuffle = shuffle;
    desc.last_batch = last;
    desc.num_workers = workers;
    desc.seed = seed;
    return dvt_loader_new(data, &desc);
}

/* Reads the labels of one epoch into out. Returns their number, and the number of batches in
   *batches. */
static int epoch_of(dvt_loader *l, int *out, int *batches) {
    dvt_array *x, *y;
    int n = 0, more = 1;
    *batches = 0;
    while (more) {
        DVT_SCOPE {
            more = dvt_loader_next(l, &x, &y);
            if (more) {
                double *values = dvt_test_values(y);
                int i;
                for (i = 0; i < dvt_size(y); i++)
                    out[n++] = (int)values[i];
                free(values);
                ++*batches;
            }
        }
    }
    return n;
}

DVT_TEST(loader_last_batch) {
    int out[64], batches;
    dvt_loader *l = loader(numbers(10), 4, false, DVT_LAST_KEEP, 0, 0);
    CHECK_INT(dvt_loader_len(l), 3);
    CHECK_INT(epoch_of(l, out, &batches), 10);
    CHECK_INT(batches, 3);
    CHECK_INT(out[9], 9);
    l = loader(numbers(10), 4, false, DVT_LAST_DISCARD, 0, 0);
    CHECK_INT(dvt_loader_len(l), 2);
    CHECK_INT(epoch_of(l, out, &batches), 8);
    CHECK_INT(epoch_of(l, out, &batches), 8);
    CHECK_INT(out[0], 0);
    /* 10 = 2 batches and a rest of 2; 12 = 3 batches; 10 again. */
    l = loader(numbers(10), 4, false, DVT_LAST_ROLLOVER, 0, 0);
    CHECK_INT(dvt_loader_len(l), 2);
    CHECK_INT(epoch_of(l, out, &batches), 8);
    CHECK_INT(dvt_loader_len(l), 3);
    CHECK_INT(epoch_of(l, out, &batches), 12);
    CHECK_INT(out[0], 8);
    CHECK_INT(out[1], 9);
    CHECK_INT(out[2], 0);
    CHECK_INT(dvt_loader_len(l), 2);
    CHECK_INT(epoch_of(l, out, &batches), 8);
    CHECK_INT(out[0], 0);
    /* Less than one batch: no batch until enough samples are carried over. */
    l = loader(numbers(3), 7, false, DVT_LAST_ROLLOVER, 2, 0);
    CHECK_INT(epoch_of(l, out, &batches), 0);
    CHECK_INT(epoch_of(l, out, &batches), 0);
    CHECK_INT(epoch_of(l, out, &batches), 7);
    CHECK_INT(out[6], 0);
    CHECK_INT(epoch_of(l, out, &batches), 0);
    l = loader(numbers(3), INT64_MAX, false, DVT_LAST_KEEP, 1, 0);
    CHECK_INT(dvt_loader_len(l), 1);
    CHECK_INT(epoch_of(l, out, &batches), 3);
    l = loader(numbers(0), 2, true, DVT_LAST_KEEP, 1, 0);
    CHECK_INT(dvt_loader_len(l), 0);
    CHECK_INT(epoch_of(l, out, &batches), 0);
    CHECK_INT(epoch_of(l, out, &batches), 0);
    /* The sizes of Fashion-MNIST: 235 batches, the last of 96. */
    l = loader(dvt_dataset_arrays(dvt_zeros(DVT_SHAPE(60000, 1), DVT_U8, dvt_cpu()),
                                  dvt_zeros(DVT_SHAPE(60000), DVT_U8, dvt_cpu())),
               256, false, DVT_LAST_KEEP, 0, 0);
    CHECK_INT(dvt_loader_len(l), 235);
}

DVT_TEST(loader_shuffles) {
    int first[100], second[100], again[100], other[100], seen[100], batches, i;
    dvt_loader *l = loader(numbers(100), 8, true, DVT_LAST_KEEP, 0, 5);
    int moved = 0, differ = 0, same = 0, seeds = 0;
    CHECK_INT(epoch_of(l, first, &batches), 100);
    CHECK_INT(epoch_of(l, second, &batches), 100);
    CHECK_INT(epoch_of(loader(numbers(100), 50, true, DVT_LAST_KEEP, 0, 5), again, &batches), 100);
    CHECK_INT(epoch_of(loader(numbers(100), 8, true, DVT_LAST_KEEP, 0, 6), other, &batches), 100);
    memset(seen, 0, sizeof seen);
    for (i = 0; i < 100; i++) {
        seen[second[i]]++;
        moved += first[i] != i;
        differ += first[i] != second[i];
        same += first[i] == again[i];
        seeds += first[i] != other[i];
    }
    for (i = 0; i < 100; i++)
        CHECK_INT(seen[i], 1);
    CHECK(moved > 80 && differ > 80 && seeds > 80);
    CHECK_INT(same, 100);
}

/* Every sample takes every position about equally often. */
DVT_TEST(loader_shuffle_is_fair) {
    int counts[6][6] = {{0}}, out[6], batches, epoch, i, k;
    double chi = 0;
    dvt_loader *l = loader(numbers(6), 6, true, DVT_LAST_KEEP, 0, 1);
    for (epoch = 0; epoch < 3000; epoch++) {
        DVT_SCOPE {
            epoch_of(l, out, &batches);
        }
        for (i = 0; i < 6; i++)
            counts[i][out[i]]++;
    }
    for (i = 0; i < 6; i++)
        for (k = 0; k < 6; k++)
            chi += (counts[i][k] - 500.0) * (counts[i][k] - 500.0) / 500;
    CHECK(chi < 60); /* 25 degrees of freedom: probability 1e-4 */
}

DVT_TEST(loader_reset) {
    int out[12], again[12], batches;
    dvt_array *x, *y;
    int workers;
    for (workers = 0; workers < 3; workers++) {
        dvt_loader *l = loader(numbers(12), 3, true, DVT_LAST_KEEP, workers, 3);
        dvt_loader_reset(l);
        epoch_of(l, out, &batches);
        /* In the middle of an epoch: the same epoch from its beginning. */
        l = loader(numbers(12), 3, true, DVT_LAST_KEEP, workers, 3);
        CHECK(dvt_loader_next(l, &x, &y));
        CHECK(dvt_loader_next(l, &x, &y));
        dvt_loader_reset(l);
        CHECK_INT(epoch_of(l, again, &batches), 12);
        CHECK(memcmp(out, again, sizeof out) == 0);
        /* After the last batch: the next epoch. */
        l = loader(numbers(12), 6, true, DVT_LAST_KEEP, workers, 3);
        CHECK(dvt_loader_next(l, &x, &y));
        CHECK(dvt_loader_next(l, &x, &y));
        dvt_loader_reset(l);
        CHECK_INT(epoch_of(l, out, &batches), 12);
        CHECK(memcmp(out, again, sizeof out) != 0);
    }
    dvt_loader_reset(NULL);
}

/* Applies a chain of transforms that the loader cannot see. It must give the same bits as ToTensor
   and Normalize, which the loader writes directly into the batch, for any number of workers. */
static dvt_array *apply_hidden(void *user, dvt_array *x) {
    return dvt_transform_apply((dvt_transform *)user, x);
}

static void check_same_batches(dvt_loader *a, dvt_loader *b) {
    dvt_array *ax, *ay, *bx, *by;
    int more = 1, n = 0;
    while (more) {
        DVT_SCOPE {
            more = dvt_loader_next(a, &ax, &ay);
            CHECK(dvt_loader_next(b, &bx, &by) == (more != 0));
            if (more && CHECK(bx != NULL && by != NULL)) {
                CHECK(dvt_shape_equal(dvt_shape_of(ax), dvt_shape_of(bx)));
                CHECK(dvt_dtype_of(ax) == dvt_dtype_of(bx) && dvt_dtype_of(ay) == dvt_dtype_of(by));
                CHECK(dvt_is_contiguous(bx) && dvt_ctx_equal(dvt_ctx_of(bx), dvt_cpu()));
                CHECK(memcmp(dvt_data(ax), dvt_data(bx), (size_t)dvt_nbytes(ax)) == 0);
                CHECK(memcmp(dvt_data(ay), dvt_data(by), (size_t)dvt_nbytes(ay)) == 0);
                n++;
            }
        }
    }
    CHECK(n > 0);
}

DVT_TEST(loader_same_bits_fused_and_general) {
    static const double mean[3] = {0.13, 0.5, 0.25}, deviation[3] = {0.31, 0.2, 0.7};
    int channels, workers, epoch;
    for (channels = 1; channels <= 3; channels += 2) {
        dvt_dataset *data = pixels(53, 5, 7, channels), *fused, *hidden, *twice;
        dvt_transform *parts[2], *all;
        parts[0] = dvt_transform_to_tensor();
        parts[1] = dvt_transform_normalize(mean, deviation, channels);
        all = dvt_transform_compose(parts, 2);
        fused = dvt_dataset_transform_first(data, all);
        twice = dvt_dataset_transform_first(dvt_dataset_transform_first(data, parts[0]), parts[1]);
        hidden = dvt_dataset_transform_first(data, dvt_transform_new(apply_hidden, all));
        for (workers = 0; workers < 4; workers++) {
            dvt_loader *a = loader(fused, 8, true, DVT_LAST_KEEP, 0, 9);
            dvt_loader *b = loader(hidden, 8, true, DVT_LAST_KEEP, workers, 9);
            dvt_loader *c = loader(twice, 8, true, DVT_LAST_KEEP, 3 - workers, 9);
            for (epoch = 0; epoch < 3; epoch++) {
                check_same_batches(a, b);
                dvt_loader_reset(a);
            }
            a = loader(fused, 8, true, DVT_LAST_KEEP, workers, 9);
            check_same_batches(a, c);
        }
    }
}

DVT_TEST(loader_batches) {
    static const double mean = 0.13, deviation = 0.31;
    dvt_dataset *data = pixels(10, 28, 28, 1);
    dvt_transform *parts[2];
    dvt_array *x, *y, *one, *label;
    dvt_loader *l;
    parts[0] = dvt_transform_to_tensor();
    parts[1] = dvt_transform_normalize(&mean, &deviation, 1);
    data = dvt_dataset_transform_first(data, dvt_transform_compose(parts, 2));
    l = loader(data, 4, false, DVT_LAST_KEEP, 0, 0);
    CHECK(dvt_loader_next(l, &x, &y));
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(4, 1, 28, 28)));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(4)));
    CHECK(dvt_dtype_of(x) == DVT_F32 && dvt_dtype_of(y) == DVT_I32);
    CHECK_VALUES(y, 0, 0, 1, 2, 3);
    CHECK_INT(dvt_dataset_get(data, 2, &one, &label), DVT_OK);
    CHECK(memcmp(dvt_data(one), (float *)dvt_data(x) + 2 * 784, 784 * 4) == 0);
    CHECK(dvt_loader_next(l, &x, &y) && dvt_loader_next(l, &x, &y));
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 1, 28, 28)));
    CHECK(!dvt_loader_next(l, &x, &y) && x == NULL && y == NULL);
    /* Views as data use the general path. */
    l = loader(dvt_dataset_arrays(
                   dvt_t(DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 1, 2, 3, 4, 5, 6)),
                   dvt_slice(dvt_arange(0, 6, 1, DVT_I64, dvt_cpu_id(1)), 0, 0, DVT_END, 2)),
               2, false, DVT_LAST_KEEP, 0, 0);
    CHECK(dvt_loader_next(l, &x, &y));
    CHECK_VALUES(x, 0, 1, 4, 2, 5);
    CHECK_VALUES(y, 0, 0, 2);
    CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_cpu()));
}

/* Batches are owned by the caller's scope and outlive the loader. */
DVT_TEST(loader_batches_belong_to_the_caller) {
    int workers;
    for (workers = 0; workers < 3; workers++) {
        dvt_array *x = NULL, *y;
        dvt_stats before = dvt_get_stats();
        DVT_SCOPE {
            dvt_loader *l = loader(numbers(100), 2, false, DVT_LAST_KEEP, workers, 0);
            CHECK(dvt_loader_next(l, &x, &y) && dvt_loader_next(l, &x, &y));
            dvt_keep(x); /* the loader is released in the middle of its epoch */
        }
        CHECK_VALUES(x, 0, 2, -2, 3, -3);
        CHECK_INT(dvt_get_stats().arrays - before.arrays, 1);
    }
}

/* Sample 5 fails `left` times. */
typedef struct trap {
    int left;
    const char *mode;
} trap;

static dvt_array *trapped(void *user, dvt_array *x) {
    trap *t = (trap *)user;
    if (dvt_item(dvt_index(x, 0)) != 5 || t->left == 0)
        return dvt_mul_scalar(x, 2);
    t->left--;
    if (strcmp(t->mode, "null") == 0)
        return NULL;
    if (strcmp(t->mode, "error") == 0)
        return dvt_add(x, dvt_zeros(DVT_SHAPE(5), DVT_F32, dvt_cpu()));
    if (strcmp(t->mode, "shape") == 0)
        return dvt_reshape(x, DVT_SHAPE(2, 1));
    if (strcmp(t->mode, "dtype") == 0)
        return dvt_astype(x, DVT_F64);
    return dvt_copyto(x, dvt_gpu(0));
}

DVT_TEST(loader_reports_errors_in_order) {
    static const struct {
        const char *mode;
        dvt_status status;
        const char *text;
    } cases[] = {{"null", DVT_ERR_VALUE, "dvt_loader_next: sample 5: dvt_transform_apply: "},
                 {"error", DVT_ERR_SHAPE, "dvt_loader_next: sample 5: dvt_add: "},
                 {"shape", DVT_ERR_SHAPE, "dvt_loader_next: x of sample 5 is "},
                 {"dtype", DVT_ERR_SHAPE, "dvt_loader_next: x of sample 5 is "},
                 {"gpu", DVT_ERR_CONTEXT, "dvt_loader_next: x of sample 5 is "}};

    int workers, i, k;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (workers = 0; workers < 4; workers++)
        for (i = 0; i < 5; i++) {
            trap t; /* must outlive the loader, whose workers use it */
            t.left = 2;
            t.mode = cases[i].mode;
            DVT_SCOPE {
                dvt_array *x, *y;
                dvt_loader *l;
                l = loader(dvt_dataset_transform_first(numbers(20), dvt_transform_new(trapped, &t)),
                           2, false, DVT_LAST_KEEP, workers, 0);
                CHECK(dvt_loader_next(l, &x, &y) && dvt_loader_next(l, &x, &y));
                CHECK_VALUES(x, 0, 4, -4, 6, -6);
                CHECK_INT(dvt_error_code(), DVT_OK);
                for (k = 0; k < 2; k++) { /* a failed batch is tried again */
                    CHECK(!dvt_loader_next(l, &x, &y));
                    CHECK(x == NULL && y == NULL);
                    CHECK_INT(dvt_error_code(), cases[i].status);
                    if (!CHECK(strstr(dvt_error(), cases[i].text) == dvt_error()))
                        printf("%s: %s\n", cases[i].mode, dvt_error());
                    dvt_clear_error();
                }
                CHECK(dvt_loader_next(l, &x, &y));
                CHECK_VALUES(x, 0, 8, -8, 10, -10);
            }
        }
    dvt_set_virtual_gpus(0, 0);
}

#if !defined(DEVTENSOR_NO_THREADS)
static void count_trapped(void *user, dvt_log_level level, const char *message) {
    if (level == DVT_LOG_ERROR && strstr(message, "returned NULL"))
        ++*(int *)user;
}

/* A worker's error is logged once, when it occurs, and not again when the caller gets it. */
DVT_TEST(loader_logs_an_error_once) {
    int workers, lines, k;
    for (workers = 0; workers < 2; workers++) {
        trap t;
        t.left = 2;
        t.mode = "null";
        lines = 0;
        dvt_set_logger(count_trapped, &lines);
        DVT_SCOPE {
            dvt_array *x, *y;
            dvt_loader *l =
                loader(dvt_dataset_transform_first(numbers(6), dvt_transform_new(trapped, &t)), 2,
                       false, DVT_LAST_KEEP, workers, 0);
            CHECK(dvt_loader_next(l, &x, &y) && dvt_loader_next(l, &x, &y));
            for (k = 0; k < 2; k++)
                CHECK_ERROR(dvt_loader_next(l, &x, &y), DVT_ERR_VALUE);
            CHECK(dvt_loader_next(l, &x, &y));
            CHECK_INT(lines, 2);
        }
        dvt_set_logger(NULL, NULL);
    }
}
#endif

/* The loader also reports errors of the transforms that it fuses, with a sample's own shape. */
DVT_TEST(loader_transform_errors) {
    static const double three[3] = {1, 1, 1};
    dvt_transform *parts[2];
    dvt_array *x, *y;
    dvt_loader *l;
    parts[0] = dvt_transform_to_tensor();
    parts[1] = dvt_transform_normalize(three, three, 3);
    l = loader(dvt_dataset_transform_first(pixels(4, 2, 2, 1), dvt_transform_compose(parts, 2)), 2,
               false, DVT_LAST_KEEP, 2, 0);
    CHECK_ERROR(dvt_loader_next(l, &x, &y), DVT_ERR_SHAPE);
    CHECK(!dvt_loader_next(l, &x, &y));
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "sample 0: dvt_transform_normalize: x is float32 (1, 2, 2)") != NULL);
    dvt_clear_error();
    l = loader(dvt_dataset_transform_first(numbers(4), parts[0]), 2, false, DVT_LAST_KEEP, 2, 0);
    CHECK_ERROR(dvt_loader_next(l, &x, &y), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_loader_next(NULL, &x, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_next(l, NULL, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(loader(numbers(4), 0, false, DVT_LAST_KEEP, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(loader(numbers(4), 2, false, (dvt_last_batch)3, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(loader(numbers(4), 2, false, DVT_LAST_KEEP, -1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(loader(NULL, 2, false, DVT_LAST_KEEP, 0, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_new(numbers(4), NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_loader_len(NULL), 0);
}

#if !defined(DEVTENSOR_NO_THREADS) && !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>

/* A forked child has no workers and continues without them. */
DVT_TEST(loader_after_fork) {
    dvt_loader *l = loader(numbers(40), 2, false, DVT_LAST_KEEP, 2, 0);
    dvt_array *x, *y;
    int status = 0;
    pid_t child;
    CHECK(dvt_loader_next(l, &x, &y));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        bool ok = dvt_loader_next(l, &x, &y) && dvt_item_int(dvt_index(y, 0)) == 2 &&
                  dvt_loader_next(l, &x, &y) && dvt_item_int(dvt_index(y, 1)) == 5;
        dvt_discard_all();
        _exit(ok ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(dvt_loader_next(l, &x, &y) && dvt_item_int(dvt_index(y, 0)) == 2);
}
#endif
#endif
