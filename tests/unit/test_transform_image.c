/* Tests of the transforms of images and labels: values, and random numbers that depend on the
   loader's seed, the epoch and the sample, not on the number of workers. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

/* Returns n images of random pixels with labels 0, 1, 2, ... */
static dvt_dataset *pixels(int64_t n, int64_t h, int64_t w, int64_t c) {
    dvt_array *x = dvt_empty(DVT_SHAPE(n, h, w, c), DVT_U8, dvt_cpu());
    uint8_t *px = (uint8_t *)dvt_data(x);
    int64_t i;
    for (i = 0; i < n * h * w * c; i++)
        px[i] = (uint8_t)dvt_test_random(0, 256);
    return dvt_dataset_arrays(x, dvt_arange(0, (double)n, 1, DVT_I32, dvt_cpu()));
}

/* Returns the image (h, w, 1) of 1, 2, 3, ... */
static dvt_array *counting(int64_t h, int64_t w) {
    return dvt_reshape(dvt_arange(1, (double)(h * w) + 1, 1, DVT_U8, dvt_cpu()),
                       DVT_SHAPE(h, w, 1));
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

/* ---- values ---- */
DVT_TEST(transform_center_crop) {
    dvt_array *x = counting(4, 5);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_center_crop(2, 3), x), 0, 7, 8, 9, 12, 13, 14);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_center_crop(1, 2), x), 0, 7, 8);
    CHECK(dvt_shares_memory(dvt_transform_apply(dvt_transform_center_crop(4, 5), x), x));
    CHECK_ERROR(dvt_transform_apply(dvt_transform_center_crop(5, 5), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_center_crop(4, 6), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_center_crop(0, 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_center_crop(1, INT64_MAX), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_center_crop(1, 1), dvt_index(x, 0)),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_center_crop(1, 1), dvt_astype(x, DVT_F32)),
                DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_random_flip(1),
                                    dvt_zeros(DVT_SHAPE(2, 2, 0), DVT_U8, dvt_cpu())),
                DVT_ERR_SHAPE);
}

/* Every part of the padded image appears about equally often. */
DVT_TEST(transform_random_crop) {
    dvt_array *x = counting(2, 3);
    dvt_transform *crop = dvt_transform_random_crop(2, 2, 1);
    int seen[3][4] = {{0}}, i, r, c, top, left, least = 1000000;
    dvt_seed(3);
    for (i = 0; i < 1200; i++) {
        DVT_SCOPE {
            dvt_array *y = dvt_transform_apply(crop, x);
            double *values = dvt_test_values(y);
            bool found = false;
            CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 2, 1)));
            for (top = -1; values && top <= 1; top++)
                for (left = -1; left <= 2; left++) {
                    bool same = true;
                    for (r = 0; r < 2; r++)
                        for (c = 0; c < 2; c++) {
                            int from_r = top + r, from_c = left + c;
                            bool inside = from_r >= 0 && from_r < 2 && from_c >= 0 && from_c < 3;
                            same =
                                same && values[2 * r + c] == (inside ? 3 * from_r + from_c + 1 : 0);
                        }
                    if (same) {
                        seen[top + 1][left + 1]++;
                        found = true;
                    }
                }
            CHECK(found);
            free(values);
        }
    }
    for (r = 0; r < 3; r++)
        for (c = 0; c < 4; c++)
            least = seen[r][c] < least ? seen[r][c] : least;
    CHECK(least > 60); /* of 100 expected */
    CHECK_VALUES(dvt_transform_apply(dvt_transform_random_crop(2, 3, 0), x), 0, 1, 2, 3, 4, 5, 6);
    CHECK_INT(dvt_size(dvt_transform_apply(dvt_transform_random_crop(1, 1, 9), x)), 1);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_random_crop(5, 2, 1), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_random_crop(2, 2, -1), DVT_ERR_RANGE);
}

DVT_TEST(transform_random_flip) {
    dvt_array *x = counting(2, 3);
    int i, flipped = 0;
    CHECK_VALUES(dvt_transform_apply(dvt_transform_random_flip(1), x), 0, 3, 2, 1, 6, 5, 4);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_random_flip(0), x), 0, 1, 2, 3, 4, 5, 6);
    dvt_seed(1);
    for (i = 0; i < 1000; i++)
        DVT_SCOPE {
            flipped += dvt_item_at(dvt_transform_apply(dvt_transform_random_flip(0.3), x),
                                   DVT_SHAPE(0, 0, 0)) == 3;
        }
    CHECK(flipped > 240 && flipped < 360);
    CHECK_ERROR(dvt_transform_random_flip(1.5), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_random_flip(NAN), DVT_ERR_RANGE);
}

/* The same interpolation in float64, from its definition. */
static double between(const double *image, int64_t h, int64_t w, double row, double column) {
    int64_t r, c, r1, c1;
    row = fmin(fmax(row, 0), (double)h - 1);
    column = fmin(fmax(column, 0), (double)w - 1);
    r = (int64_t)row;
    c = (int64_t)column;
    r1 = r + 1 < h ? r + 1 : r;
    c1 = c + 1 < w ? c + 1 : c;
    row -= (double)r;
    column -= (double)c;
    return (1 - row) * ((1 - column) * image[r * w + c] + column * image[r * w + c1]) +
           row * ((1 - column) * image[r1 * w + c] + column * image[r1 * w + c1]);
}

DVT_TEST(transform_resize) {
    static const int64_t sizes[][4] = {{2, 2, 4, 4}, {5, 7, 3, 11}, {1, 1, 3, 2},
                                       {9, 4, 1, 1}, {6, 6, 6, 6},  {3, 8, 8, 3}};
    dvt_array *x, *y;
    int i;
    int64_t r, c;
    x = DVT_ARRAY(unsigned char, DVT_SHAPE(1, 2, 1), dvt_cpu(), 0, 100);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_resize(1, 4), x), 0, 0, 25, 75, 100);
    x = DVT_ARRAY(unsigned char, DVT_SHAPE(2, 1, 1), dvt_cpu(), 0, 1);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_resize(1, 1), x), 0, 1); /* a tie */
    for (i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        DVT_SCOPE {
            int64_t h = sizes[i][0], w = sizes[i][1], to_h = sizes[i][2], to_w = sizes[i][3];
            double *from, *to;
            dvt_array *label;
            CHECK(dvt_dataset_get(pixels(1, h, w, 2), 0, &x, &label) == DVT_OK);
            y = dvt_transform_apply(dvt_transform_resize(to_h, to_w), x);
            CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(to_h, to_w, 2)));
            from = dvt_test_values(dvt_index(dvt_transpose(x, DVT_AXES(2, 0, 1)), 1));
            to = dvt_test_values(dvt_index(dvt_transpose(y, DVT_AXES(2, 0, 1)), 1));
            for (r = 0; r < to_h; r++)
                for (c = 0; c < to_w; c++) {
                    double row = ((double)r + 0.5) * (double)h / (double)to_h - 0.5;
                    double column = ((double)c + 0.5) * (double)w / (double)to_w - 0.5;
                    CHECK(fabs(to[r * to_w + c] - between(from, h, w, row, column)) < 0.50001);
                }
            free(from);
            free(to);
        }
    CHECK_ERROR(dvt_transform_resize(0, 2), DVT_ERR_RANGE);
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        CHECK_ERROR(
            dvt_transform_apply(dvt_transform_resize(2, 2), dvt_copyto(counting(2, 2), dvt_gpu(0))),
            DVT_ERR_CONTEXT);
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(transform_color_jitter) {
    dvt_array *gray = DVT_ARRAY(unsigned char, DVT_SHAPE(1, 2, 1), dvt_cpu(), 50, 150);
    dvt_array *color = DVT_ARRAY(unsigned char, DVT_SHAPE(1, 1, 3), dvt_cpu(), 200, 100, 50);
    dvt_array *x, *label;
    double low[3] = {1e9, 1e9, 1e9}, high[3] = {-1, -1, -1};
    int i, k;
    dvt_seed(5);
    for (i = 0; i < 500; i++)
        DVT_SCOPE {
            double *values;
            values =
                dvt_test_values(dvt_transform_apply(dvt_transform_color_jitter(0.5, 0, 0), gray));
            /* One factor for all pixels. */
            CHECK(fabs(values[1] - 3 * values[0]) <= 2);
            low[0] = fmin(low[0], values[1]);
            high[0] = fmax(high[0], values[1]);
            free(values);
            values =
                dvt_test_values(dvt_transform_apply(dvt_transform_color_jitter(0, 0.5, 0), gray));
            CHECK(fabs(values[0] + values[1] - 200) <= 1); /* the mean stays */
            low[1] = fmin(low[1], values[1]);
            high[1] = fmax(high[1], values[1]);
            free(values);
            values =
                dvt_test_values(dvt_transform_apply(dvt_transform_color_jitter(0, 0, 0.5), color));
            /* The brightness stays: 124.2. */
            CHECK(fabs(0.299 * values[0] + 0.587 * values[1] + 0.114 * values[2] - 124.2) <= 1);
            low[2] = fmin(low[2], values[0]);
            high[2] = fmax(high[2], values[0]);
            free(values);
        }
    CHECK(low[0] >= 75 && low[0] < 80 && high[0] <= 225 && high[0] > 220);
    CHECK(low[1] >= 125 && low[1] < 128 && high[1] <= 175 && high[1] > 172);
    CHECK(low[2] >= 162 && low[2] < 165 && high[2] <= 238 && high[2] > 234);
    /* Amounts of 0 change nothing; large ones stay within 0 to 255. */
    CHECK(dvt_dataset_get(pixels(1, 5, 6, 3), 0, &x, &label) == DVT_OK);
    CHECK(dvt_array_equal(dvt_transform_apply(dvt_transform_color_jitter(0, 0, 0), x), x,
                          DVT_NAN_DIFFERS));
    for (k = 0; k < 20; k++)
        CHECK_INT(dvt_size(dvt_transform_apply(dvt_transform_color_jitter(100, 100, 100), x)), 90);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_color_jitter(0, 0, 1), gray), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_color_jitter(-1, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_color_jitter(0, NAN, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_color_jitter(0, 0, 101), DVT_ERR_RANGE);
}

DVT_TEST(transform_second) {
    dvt_dataset *data = dvt_dataset_transform_second(pixels(4, 2, 2, 1), dvt_transform_one_hot(3));
    dvt_array *x, *y;
    dvt_loader *l;
    CHECK(dvt_dataset_get(data, 1, &x, &y) == DVT_OK);
    CHECK(dvt_dtype_of(x) == DVT_U8 && dvt_dtype_of(y) == DVT_F32);
    CHECK_VALUES(y, 0, 0, 1, 0);
    l = loader(dvt_dataset_transform_first(data, dvt_transform_to_tensor()), 3, false,
               DVT_LAST_KEEP, 1, 0);
    CHECK(dvt_loader_next(l, &x, &y));
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(3, 1, 2, 2)));
    CHECK_VALUES(y, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    CHECK_ERROR(dvt_transform_one_hot(0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_transform_second(data, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_transform_second(NULL, dvt_transform_one_hot(2)),
                DVT_ERR_NULL_ARGUMENT);
}

/* ---- random numbers in loaders ---- */
static dvt_dataset *augmented(dvt_dataset *data) {
    dvt_transform *parts[4];
    parts[0] = dvt_transform_random_crop(6, 6, 2);
    parts[1] = dvt_transform_random_flip(0.5);
    parts[2] = dvt_transform_color_jitter(0.4, 0.4, 0.4);
    parts[3] = dvt_transform_to_tensor();
    return dvt_dataset_transform_first(data, dvt_transform_compose(parts, 4));
}

/* Adds up products of all values of an epoch with their positions, and puts the sum of sample 3
   into *third. */
static double epoch_of(dvt_loader *l, double *third) {
    double sum = 0;
    int64_t at = 1, i, k;
    int more = 1;
    while (more)
        DVT_SCOPE {
            dvt_array *x, *y;
            more = dvt_loader_next(l, &x, &y);
            if (more) {
                double *values = dvt_test_values(x), *labels = dvt_test_values(y);
                int64_t size = dvt_size(x) / dvt_size(y);
                for (k = 0; k < dvt_size(y); k++) {
                    double own = 0;
                    for (i = 0; i < size; i++) {
                        own += (double)(i + 1) * values[k * size + i];
                        sum += (double)at++ * values[k * size + i];
                    }
                    if (labels[k] == 3 && third)
                        *third = own;
                }
                free(values);
                free(labels);
            }
        }
    return sum;
}

DVT_TEST(transform_random_in_loaders) {
    dvt_dataset *data = augmented(pixels(20, 6, 6, 3));
    double first, second, third = 0, own = 0, later = 0;
    int workers;
    dvt_loader *l = loader(data, 4, true, DVT_LAST_KEEP, 0, 11);
    first = epoch_of(l, &third);
    second = epoch_of(l, &later);
    CHECK(first != second && third != later);
    for (workers = 1; workers < 4; workers++) {
        dvt_seed((uint64_t)workers); /* has no influence */
        l = loader(data, 4, true, DVT_LAST_KEEP, workers, 11);
        CHECK(epoch_of(l, NULL) == first);
        CHECK(epoch_of(l, NULL) == second);
    }
    /* Neither order nor batch size change what happens to a sample. */
    epoch_of(loader(data, 7, false, DVT_LAST_KEEP, 1, 11), &own);
    CHECK(own == third);
    epoch_of(loader(data, 4, true, DVT_LAST_KEEP, 0, 12), &own);
    CHECK(own != third);
}

DVT_TEST(transform_random_outside_loaders) {
    dvt_dataset *data = augmented(pixels(1, 6, 6, 3));
    dvt_array *a, *b, *c, *d, *y;
    dvt_seed(7);
    CHECK(dvt_dataset_get(data, 0, &a, &y) == DVT_OK);
    CHECK(dvt_dataset_get(data, 0, &b, &y) == DVT_OK);
    dvt_seed(7);
    CHECK(dvt_dataset_get(data, 0, &c, &y) == DVT_OK);
    CHECK(dvt_dataset_get(data, 0, &d, &y) == DVT_OK);
    CHECK(dvt_array_equal(a, c, DVT_NAN_DIFFERS) && dvt_array_equal(b, d, DVT_NAN_DIFFERS));
    CHECK(!dvt_array_equal(a, b, DVT_NAN_DIFFERS));
}

/* ---- mixup ---- */
DVT_TEST(mixup) {
    enum { N = 6 };

    dvt_array *x = dvt_reshape(dvt_arange(0, N * 2, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(N, 2));
    dvt_array *y = dvt_one_hot(dvt_arange(0, N, 1, DVT_I64, dvt_cpu()), N, DVT_F32), *a, *b, *c, *d;
    static const double alphas[] = {0.2, 1, 5, 1e-3, 1e6};
    int i, k;
    CHECK(dvt_mixup(x, y, 1, dvt_key_new(1), &a, &b) == DVT_OK);
    CHECK(dvt_mixup(x, y, 1, dvt_key_new(1), &c, &d) == DVT_OK);
    CHECK(dvt_array_equal(a, c, DVT_NAN_DIFFERS) && dvt_array_equal(b, d, DVT_NAN_DIFFERS));
    CHECK(dvt_dtype_of(a) == DVT_F32);
    for (k = 0; k < 5; k++) {
        double mean = 0, square = 0, alpha = alphas[k];
        int n = 2000, partners = 0;
        for (i = 0; i < n; i++)
            DVT_SCOPE {
                double *labels, *images, share, sum;
                int j;
                CHECK(dvt_mixup(x, y, alpha, dvt_key_new((uint64_t)i), &a, &b) == DVT_OK);
                labels = dvt_test_values(b);
                images = dvt_test_values(a);
                /* The labels tell the shares, with which the images must agree. */
                share = labels[0];
                sum = 0;
                for (j = 0; j < N; j++)
                    sum += labels[j] * 2 * j;
                CHECK_CLOSE(images[0], sum, 1e-5);
                if (share < 1) {
                    mean += share;
                    square += (share - 0.5) * (share - 0.5);
                    partners++;
                } else if (alpha < 0.1) { /* the share itself is 1, often */
                    mean += 0.5;
                    square += 0.25;
                    partners++;
                }
                free(labels);
                free(images);
            }
        /* Beta(alpha, alpha): the mean is 1/2, the variance 1 / (8 alpha + 4). */
        CHECK(partners > n / 2);
        if (alpha >= 0.1) {
            CHECK_CLOSE(mean / partners, 0.5, 0.05);
            CHECK_CLOSE(square / partners, 1 / (8 * alpha + 4), 0.03);
        }
    }
    CHECK_ERROR(dvt_mixup(x, y, 0, dvt_key_new(1), &a, &b), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_mixup(x, y, NAN, dvt_key_new(1), &a, &b), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_mixup(dvt_astype(x, DVT_I32), y, 1, dvt_key_new(1), &a, &b), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_mixup(x, dvt_astype(y, DVT_I32), 1, dvt_key_new(1), &a, &b), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_mixup(x, dvt_rows(y, 0, 3), 1, dvt_key_new(1), &a, &b), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_mixup(dvt_rows(x, 0, 0), dvt_rows(y, 0, 0), 1, dvt_key_new(1), &a, &b),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_mixup(x, NULL, 1, dvt_key_new(1), &a, &b), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_mixup(x, y, 1, dvt_key_new(1), NULL, &b), DVT_ERR_NULL_ARGUMENT);
    CHECK(b == NULL);
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        CHECK(dvt_mixup(dvt_copyto(x, dvt_gpu(0)), dvt_copyto(y, dvt_gpu(0)), 1, dvt_key_new(1), &a,
                        &b) == DVT_OK);
        CHECK(dvt_ctx_equal(dvt_ctx_of(a), dvt_gpu(0)));
        CHECK(dvt_allclose(dvt_copyto(a, dvt_cpu()), c, 1e-6, 1e-6, DVT_NAN_DIFFERS));
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}
#endif
