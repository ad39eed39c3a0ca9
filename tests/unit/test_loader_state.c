/* Tests of splitting datasets, and of loaders that continue at a state. */
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

static dvt_loader *loader(dvt_dataset *data, int64_t batch, dvt_last_batch last, int workers,
                          uint64_t seed) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch;
    desc.shuffle = true;
    desc.last_batch = last;
    desc.num_workers = workers;
    desc.seed = seed;
    return dvt_loader_new(data, &desc);
}

/* ---- splitting ---- */
DVT_TEST(dataset_splits) {
    static const int64_t counts[3] = {2, -1, 3}, all[2] = {4, 6}, none[2] = {-1, 0};
    static const int64_t few[2] = {4, 5}, many[2] = {11, -1}, twice[2] = {-1, -1}, below[1] = {-2};
    dvt_dataset *parts[3], *again[3], *data = numbers(10);
    dvt_array *x, *y;
    int seen[10] = {0}, moved = 0, k;
    int64_t i;
    CHECK(dvt_dataset_split(data, counts, 3, 5, parts) == DVT_OK);
    CHECK_INT(dvt_dataset_len(parts[0]), 2);
    CHECK_INT(dvt_dataset_len(parts[1]), 5);
    CHECK_INT(dvt_dataset_len(parts[2]), 3);
    CHECK(dvt_dataset_split(data, counts, 3, 5, again) == DVT_OK);
    for (k = 0; k < 3; k++)
        for (i = 0; i < dvt_dataset_len(parts[k]); i++) {
            dvt_array *other_x, *other_y;
            CHECK(dvt_dataset_get(parts[k], i, &x, &y) == DVT_OK);
            CHECK(dvt_dataset_get(again[k], i, &other_x, &other_y) == DVT_OK);
            CHECK_INT(dvt_item_int(y), dvt_item_int(other_y));
            CHECK_VALUES(x, 0, dvt_item(y), -dvt_item(y));
            seen[dvt_item_int(y)]++;
            moved += dvt_item_int(y) != i;
        }
    for (k = 0; k < 10; k++)
        CHECK_INT(seen[k], 1);
    CHECK(moved > 0);
    CHECK_ERROR(dvt_dataset_get(parts[0], 2, &x, &y), DVT_ERR_RANGE);
    CHECK(dvt_dataset_split(data, all, 2, 0, parts) == DVT_OK);
    CHECK_INT(dvt_dataset_len(parts[1]), 6);
    CHECK(dvt_dataset_split(data, none, 2, 0, parts) == DVT_OK);
    CHECK_INT(dvt_dataset_len(parts[0]), 10);
    CHECK_INT(dvt_dataset_len(parts[1]), 0);
    CHECK_ERROR(dvt_dataset_split(data, few, 2, 0, parts), DVT_ERR_RANGE);
    CHECK(parts[0] == NULL && parts[1] == NULL);
    CHECK_ERROR(dvt_dataset_split(data, many, 2, 0, parts), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_split(data, twice, 2, 0, parts), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_split(data, below, 1, 0, parts), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_split(data, all, 0, 0, parts), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_split(NULL, all, 2, 0, parts), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_split(data, NULL, 2, 0, parts), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_split(data, all, 2, 0, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* A chain of transforms that the loader cannot see; see test_loader.c. */
static dvt_array *apply_hidden(void *user, dvt_array *x) {
    return dvt_transform_apply((dvt_transform *)user, x);
}

/* Batches of parts have the same bits by both methods, before and after transforms and splits. */
DVT_TEST(dataset_split_batches) {
    static const int64_t counts[2] = {12, -1};
    static const double mean[2] = {0.3, 0.1}, deviation[2] = {0.2, 0.7};
    dvt_transform *tensor = dvt_transform_to_tensor(),
                  *normal = dvt_transform_normalize(mean, deviation, 2);
    dvt_array *x = dvt_astype(
        dvt_mod_scalar(dvt_arange(0, 30 * 3 * 4 * 2, 1, DVT_I32, dvt_cpu()), 251), DVT_U8);
    dvt_dataset *data = dvt_dataset_arrays(dvt_reshape(x, DVT_SHAPE(30, 3, 4, 2)),
                                           dvt_arange(0, 30, 1, DVT_I32, dvt_cpu()));
    dvt_dataset *fused[2], *hidden[2], *smaller[2], *last[2];
    int workers, more = 1, n = 0;
    CHECK(dvt_dataset_split(data, counts, 2, 9, fused) == DVT_OK);
    CHECK(dvt_dataset_split(data, counts, 2, 9, hidden) == DVT_OK);
    fused[0] = dvt_dataset_transform_first(dvt_dataset_transform_first(fused[0], tensor), normal);
    hidden[0] = dvt_dataset_transform_first(hidden[0], dvt_transform_new(apply_hidden, tensor));
    hidden[0] = dvt_dataset_transform_first(hidden[0], dvt_transform_new(apply_hidden, normal));
    {
        static const int64_t again[2] = {7, 5};
        CHECK(dvt_dataset_split(fused[0], again, 2, 1, smaller) == DVT_OK);
        CHECK(dvt_dataset_split(hidden[0], again, 2, 1, last) == DVT_OK);
    }
    for (workers = 0; workers < 2; workers++) {
        dvt_loader *a = loader(smaller[0], 3, DVT_LAST_KEEP, workers, 4);
        dvt_loader *b = loader(last[0], 3, DVT_LAST_KEEP, 1 - workers, 4);
        for (more = 1; more;)
            DVT_SCOPE {
                dvt_array *ax, *ay, *bx, *by;
                more = dvt_loader_next(a, &ax, &ay);
                CHECK(dvt_loader_next(b, &bx, &by) == (more != 0));
                if (more) {
                    CHECK(memcmp(dvt_data(ax), dvt_data(bx), (size_t)dvt_nbytes(ax)) == 0);
                    CHECK(memcmp(dvt_data(ay), dvt_data(by), (size_t)dvt_nbytes(ay)) == 0);
                    n += (int)dvt_size(ay);
                }
            }
    }
    CHECK_INT(n, 14);
}

/* ---- states ---- */
/* Reads up to `most` batches, over ends of epochs, as labels; -1 is the end of an epoch, and ends
   every batch too. */
static int run_on(dvt_loader *l, int most, int *out) {
    int n = 0;
    while (most-- > 0)
        DVT_SCOPE {
            dvt_array *x, *y;
            if (dvt_loader_next(l, &x, &y)) {
                double *values = dvt_test_values(y);
                int64_t i;
                for (i = 0; i < dvt_size(y); i++)
                    out[n++] = (int)values[i];
                free(values);
            } else
                out[n++] = -1;
            out[n++] = -1;
        }
    return n;
}

DVT_TEST(loader_continues_at_a_state) {
    static const dvt_last_batch lasts[] = {DVT_LAST_KEEP, DVT_LAST_DISCARD, DVT_LAST_ROLLOVER};
    static const int64_t sizes[] = {3, 4, 10, 23};
    int k, size, at, before[400], after[400], n, m;
    for (k = 0; k < 3; k++)
        for (size = 0; size < 4; size++)
            for (at = 0; at < 14; at++)
                DVT_SCOPE {
                    dvt_dataset *data = numbers(10);
                    int workers = at % 3;
                    dvt_loader *one = loader(data, sizes[size], lasts[k], workers, 8), *other;
                    dvt_loader_state state;
                    run_on(one, at, before);
                    state = dvt_loader_get_state(one);
                    n = run_on(one, 9, before);
                    other = loader(data, sizes[size], lasts[k], 2 - workers, 3);
                    run_on(other, at % 4, after);
                    CHECK(dvt_loader_set_state(other, &state) == DVT_OK);
                    CHECK_INT(dvt_loader_get_state(other).batch, state.batch);
                    m = run_on(other, 9, after);
                    CHECK_INT(m, n);
                    CHECK(m == n && memcmp(before, after, (size_t)n * sizeof *before) == 0);
                }
}

DVT_TEST(loader_states) {
    dvt_loader *l = loader(numbers(10), 4, DVT_LAST_KEEP, 1, 8);
    dvt_loader_state state = dvt_loader_get_state(l);
    int out[100], again[100], n;
    CHECK(state.seed == 8 && state.epoch == 0 && state.batch == 0);
    run_on(l, 3, out);
    state = dvt_loader_get_state(l);
    CHECK(state.epoch == 0 && state.batch == 3);
    run_on(l, 1, out);
    state = dvt_loader_get_state(l);
    CHECK(state.epoch == 1 && state.batch == 0);
    n = run_on(l, 5, out);
    state.epoch = -1;
    CHECK_ERROR(dvt_loader_set_state(l, &state), DVT_ERR_RANGE);
    state.epoch = INT64_MAX;
    CHECK_ERROR(dvt_loader_set_state(l, &state), DVT_ERR_RANGE);
    state.epoch = 1;
    state.batch = 4;
    CHECK_ERROR(dvt_loader_set_state(l, &state), DVT_ERR_RANGE);
    state.batch = -1;
    CHECK_ERROR(dvt_loader_set_state(l, &state), DVT_ERR_RANGE);
    state = dvt_loader_get_state(l); /* nothing has changed */
    CHECK(state.seed == 8 && state.epoch == 2 && state.batch == 1);
    state.epoch = 1;
    state.batch = 0;
    CHECK(dvt_loader_set_state(l, &state) == DVT_OK);
    CHECK_INT(run_on(l, 5, again), n);
    CHECK(memcmp(out, again, (size_t)n * sizeof *out) == 0);
    l = loader(numbers(10), 4, DVT_LAST_ROLLOVER, 0, 8);
    state.epoch = INT64_MAX / 4;
    CHECK_ERROR(dvt_loader_set_state(l, &state), DVT_ERR_RANGE);
    l = loader(numbers(0), 4, DVT_LAST_ROLLOVER, 0, 8);
    state.epoch = 5;
    CHECK(dvt_loader_set_state(l, &state) == DVT_OK);
    CHECK_INT(run_on(l, 1, out), 2);
    CHECK_ERROR(dvt_loader_set_state(l, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_set_state(NULL, &state), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loader_get_state(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* ---- faults ---- */
DVT_FAULTS(loader_state) {
    static const int64_t counts[2] = {9, -1};
    dvt_array *x = dvt_reshape(dvt_astype(dvt_arange(0, 12 * 12, 1, DVT_I32, dvt_cpu()), DVT_U8),
                               DVT_SHAPE(12, 2, 2, 3)),
              *batch, *labels, *mixed, *mixed_labels;
    dvt_dataset *data = dvt_dataset_arrays(x, dvt_arange(0, 12, 1, DVT_I32, dvt_cpu())), *parts[2];
    dvt_transform *all[5];
    dvt_loader_state state = {3, 2, 1};
    dvt_loader *l;
    all[0] = dvt_transform_resize(5, 5);
    all[1] = dvt_transform_random_crop(4, 4, 1);
    all[2] = dvt_transform_random_flip(0.5);
    all[3] = dvt_transform_color_jitter(0.5, 0.5, 0.5);
    all[4] = dvt_transform_to_tensor();
    data = dvt_dataset_transform_second(data, dvt_transform_one_hot(12));
    data = dvt_dataset_transform_first(data, dvt_transform_compose(all, 5));
    if (!data || dvt_dataset_split(data, counts, 2, 1, parts) != DVT_OK) {
        run->failed = 1;
        return;
    }
    l = loader(parts[0], 4, DVT_LAST_ROLLOVER, 0, 0);
    FAULTS_OK(dvt_loader_set_state(l, &state));
    if (!run->failed && dvt_loader_next(l, &batch, &labels)) {
        FAULTS_OK(dvt_mixup(batch, labels, 1, dvt_key_new(2), &mixed, &mixed_labels));
        if (!run->failed) {
            FAULTS_ADD(mixed);
            FAULTS_ADD(mixed_labels);
        }
    } else
        run->failed = 1;
}
#endif
