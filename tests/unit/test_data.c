/* Tests of datasets, transforms, the synthetic images, and splitting a batch. */
#include "../../examples/drawn_data.h"
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

/* Returns x = 0..n-1 as float (n, 2) rows {i, -i}, y = i. */
static dvt_dataset *numbers(int64_t n) {
    dvt_array *i = dvt_arange(0, (double)n, 1, DVT_F32, dvt_cpu());
    dvt_array *both[2];
    both[0] = i;
    both[1] = dvt_neg(i);
    return dvt_dataset_arrays(dvt_stack(both, 2, 1), dvt_astype(i, DVT_I32));
}

/* ---- datasets ---- */
DVT_TEST(dataset_arrays) {
    dvt_dataset *data = numbers(5);
    dvt_array *x, *y, *a = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_dataset_len(data), 5);
    CHECK_INT(dvt_dataset_get(data, 3, &x, &y), DVT_OK);
    CHECK_VALUES(x, 0, 3, -3);
    CHECK_INT(dvt_ndim(y), 0);
    CHECK_INT(dvt_item_int(y), 3);
    data = dvt_dataset_arrays(a, a);
    CHECK_INT(dvt_dataset_get(data, 1, &x, &y), DVT_OK);
    CHECK(dvt_shares_memory(x, a)); /* shared, not copied */
    CHECK_ERROR(dvt_dataset_get(data, 2, &x, &y), DVT_ERR_RANGE);
    CHECK(x == NULL && y == NULL);
    CHECK_ERROR(dvt_dataset_get(data, -1, &x, &y), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_dataset_get(NULL, 0, &x, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_get(data, 0, NULL, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_arrays(a, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dataset_arrays(a, dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_dataset_arrays(a, dvt_scalar(1, DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_dataset_transform_first(data, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_dataset_len(NULL), 0);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        CHECK_ERROR(dvt_dataset_arrays(dvt_copyto(a, dvt_gpu(0)), a), DVT_ERR_CONTEXT);
    }
    dvt_set_virtual_gpus(0, 0);
}

#if !defined(DEVTENSOR_NO_FILES)
#include "dvt_host.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[400];

static const char *path_of(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/devtensor-data-%ld", base && base[0] ? base : "/tmp",
             (long)getpid());
    CHECK(mkdir(folder, 0700) == 0);
}

static void write_idx(const char *name, int type, int ndim, const int *dim, const void *bytes,
                      size_t n) {
    FILE *file = fopen(path_of(name), "wb");
    int i, shift;
    if (!CHECK(file != NULL))
        return;
    fputc(0, file);
    fputc(0, file);
    fputc(type, file);
    fputc(ndim, file);
    for (i = 0; i < ndim; i++)
        for (shift = 24; shift >= 0; shift -= 8)
            fputc(dim[i] >> shift & 255, file);
    fwrite(bytes, 1, n, file);
    fclose(file);
}

static void write_pair(const char *images, const char *labels, int n, int n_labels, int label) {
    uint8_t px[3 * 6], py[5];
    int dim[3], i;
    for (i = 0; i < 18; i++)
        px[i] = (uint8_t)(i * 7);
    for (i = 0; i < 5; i++)
        py[i] = (uint8_t)i;
    py[1] = (uint8_t)label;
    dim[0] = n;
    dim[1] = 2;
    dim[2] = 3;
    write_idx(images, 8, 3, dim, px, (size_t)n * 6);
    dim[0] = n_labels;
    write_idx(labels, 8, 1, dim, py, (size_t)n_labels);
}

DVT_TEST(dataset_idx) {
    dvt_dataset *data;
    dvt_array *x, *y;
    int dim[3] = {3, 2, 3};
    make_folder();
    write_pair("images", "labels", 3, 3, 7);
    data = dvt_dataset_idx(path_of("images"), path_of("labels"));
    CHECK_INT(dvt_dataset_len(data), 3);
    CHECK_INT(dvt_dataset_get(data, 1, &x, &y), DVT_OK);
    CHECK(dvt_dtype_of(x) == DVT_U8 && dvt_dtype_of(y) == DVT_I32);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 3, 1)));
    CHECK_VALUES(x, 0, 42, 49, 56, 63, 70, 77);
    CHECK_INT(dvt_item_int(y), 7);
    write_pair("images", "labels", 3, 2, 7);
    CHECK_ERROR(dvt_dataset_idx(path_of("images"), path_of("labels")), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_dataset_idx(path_of("labels"), path_of("labels")), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_dataset_idx(path_of("images"), path_of("images")), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_dataset_idx(path_of("images"), path_of("nothing")), DVT_ERR_IO);
    write_idx("labels", 9, 1, dim, "\x01\xff\x02", 3); /* signed: -1 */
    CHECK_ERROR(dvt_dataset_idx(path_of("images"), path_of("labels")), DVT_ERR_FORMAT);
    write_idx("images", 9, 3, dim, "abcdefghijklmnopqr", 18); /* signed pixels */
    CHECK_ERROR(dvt_dataset_idx(path_of("images"), path_of("labels")), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_dataset_idx(NULL, path_of("labels")), DVT_ERR_NULL_ARGUMENT);
    remove(path_of("images"));
    remove(path_of("labels"));
    rmdir(folder);
}

DVT_TEST(dataset_prefers_prefixed_files) {
    dvt_dataset *data;
    make_folder();
    dvt_clear_error();
    CHECK(dvt_dataset_fashion_mnist(folder, DVT_DATASET_TRAIN) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_IO);
    CHECK(strstr(dvt_error(), folder) && strstr(dvt_error(), "fashion-train-images-idx3-ubyte"));
    dvt_clear_error();
    /* Official names have precedence; with the prefix, prefixed names have. */
    write_pair("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 3, 3, 9);
    data = dvt_dataset_mnist(folder, DVT_DATASET_TRAIN);
    CHECK_INT(dvt_dataset_len(data), 3);
    write_pair("mnist-train-images-idx3-ubyte", "mnist-train-labels-idx1-ubyte.gz", 2, 2, 9);
    CHECK_INT(dvt_dataset_len(dvt_dataset_mnist(folder, DVT_DATASET_TRAIN)),
              2); /* the content decides, not the suffix .gz */
    CHECK_INT(dvt_dataset_len(dvt_dataset_fashion_mnist(folder, DVT_DATASET_TRAIN)), 3);
    CHECK_ERROR(dvt_dataset_mnist(folder, DVT_DATASET_TEST), DVT_ERR_IO);
    /* A prefix applies only when both files have it. */
    write_pair("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 3, 3, 9);
    rename(path_of("mnist-train-images-idx3-ubyte"), path_of("mnist-t10k-images-idx3-ubyte"));
    CHECK_INT(dvt_dataset_len(dvt_dataset_mnist(folder, DVT_DATASET_TEST)), 3);
    CHECK_INT(dvt_dataset_len(dvt_dataset_mnist(folder, DVT_DATASET_TRAIN)), 3);
    /* Labels must be below ten. */
    write_pair("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 3, 3, 10);
    CHECK_ERROR(dvt_dataset_mnist(folder, DVT_DATASET_TEST), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_dataset_mnist(folder, (dvt_dataset_part)2), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_dataset_mnist(NULL, DVT_DATASET_TEST), DVT_ERR_NULL_ARGUMENT);
    remove(path_of("train-images-idx3-ubyte"));
    remove(path_of("train-labels-idx1-ubyte"));
    remove(path_of("t10k-images-idx3-ubyte"));
    remove(path_of("t10k-labels-idx1-ubyte"));
    remove(path_of("mnist-t10k-images-idx3-ubyte"));
    remove(path_of("mnist-train-labels-idx1-ubyte.gz"));
    CHECK(rmdir(folder) == 0);
}
#else
DVT_TEST(dataset_without_files) {
    CHECK_ERROR(dvt_dataset_mnist("data", DVT_DATASET_TRAIN), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_dataset_idx("a", "b"), DVT_ERR_NOT_BUILT);
}
#endif

/* ---- transforms ---- */
DVT_TEST(transform_to_tensor) {
    dvt_transform *t = dvt_transform_to_tensor();
    dvt_array *x = DVT_ARRAY(unsigned char, DVT_SHAPE(2, 1, 3), dvt_cpu(), 0, 51, 255, 1, 2, 3);
    dvt_array *y = dvt_transform_apply(t, x);
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(3, 2, 1)));
    CHECK(dvt_dtype_of(y) == DVT_F32);
    CHECK_VALUES(y, 0, 0, 1.0f / 255, 51.0f / 255, 2.0f / 255, 1, 3.0f / 255);
    CHECK(dvt_shape_equal(
        dvt_shape_of(dvt_transform_apply(t, dvt_zeros(DVT_SHAPE(5, 2, 4, 3), DVT_U8, dvt_cpu()))),
        DVT_SHAPE(5, 3, 2, 4)));
    CHECK_ERROR(dvt_transform_apply(t, y), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_transform_apply(t, dvt_zeros(DVT_SHAPE(2, 2), DVT_U8, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_apply(t, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_transform_apply(NULL, x), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(transform_normalize) {
    static const double mean[2] = {1, 2}, deviation[2] = {2, 4}, zero = 0, one = 1;
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 1, 2), dvt_cpu(), 1, 3, 2, 10);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_normalize(mean, deviation, 2), x), 0, 0, 1, 0,
                 2);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_normalize(mean + 1, deviation, 1), x), 0, -0.5,
                 0.5, 0, 4);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_normalize(mean, deviation, 2),
                                     dvt_astype(dvt_reshape(x, DVT_SHAPE(1, 2, 1, 2)), DVT_F64)),
                 0, 0, 1, 0, 2);
    CHECK_ERROR(
        dvt_transform_apply(dvt_transform_normalize(mean, deviation, 2), dvt_transpose(x, DVT_ALL)),
        DVT_OK);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_normalize(mean, deviation, 2), dvt_rows(x, 0, 1)),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_normalize(mean, deviation, 1), dvt_index(x, 0)),
                DVT_ERR_SHAPE);
    CHECK_ERROR(
        dvt_transform_apply(dvt_transform_normalize(mean, deviation, 1), dvt_astype(x, DVT_I32)),
        DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_transform_normalize(mean, &zero, 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_normalize(&one, deviation, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_normalize(NULL, deviation, 1), DVT_ERR_NULL_ARGUMENT);
}

static dvt_array *halve(void *user, dvt_array *x) {
    ++*(int *)user;
    return dvt_mul_scalar(x, 0.5);
}

static dvt_array *refuse(void *user, dvt_array *x) {
    (void)user;
    (void)x;
    return NULL;
}

DVT_TEST(transform_compose_and_own) {
    int calls = 0;
    dvt_transform *parts[2];
    dvt_array *x = dvt_full(DVT_SHAPE(1, 1, 1), 255, DVT_U8, dvt_cpu());
    parts[0] = dvt_transform_to_tensor();
    parts[1] = dvt_transform_new(halve, &calls);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_compose(parts, 2), x), 0, 0.5);
    CHECK_INT(calls, 1);
    CHECK(dvt_transform_apply(dvt_transform_compose(NULL, 0), x) == x);
    CHECK_ERROR(dvt_transform_apply(dvt_transform_new(refuse, NULL), x), DVT_ERR_VALUE);
    parts[1] = NULL;
    CHECK_ERROR(dvt_transform_compose(parts, 2), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_transform_compose(parts, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_transform_new(NULL, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* Synthetic images: a seed always gives the same bytes, another seed gives others. Classes are
   about equally frequent, and all images differ. */
DVT_TEST(synthetic_images) {
    enum { N = 2000 };

    uint8_t *a = (uint8_t *)malloc(N * 784), *b = (uint8_t *)malloc(N * 784);
    static int32_t la[N], lb[N];
    int counts[10] = {0}, i, k, same = 0;
    double mean[10][784];
    drawn_images(a, la, N, 1);
    drawn_images(b, lb, N, 1);
    CHECK(memcmp(a, b, N * 784) == 0 && memcmp(la, lb, sizeof la) == 0);
    drawn_images(b, lb, N, 2);
    for (i = 0; i < N; i++)
        same += memcmp(a + 784 * i, b + 784 * i, 784) == 0;
    CHECK_INT(same, 0);
    memset(mean, 0, sizeof mean);
    for (i = 0; i < N; i++) {
        if (!CHECK(la[i] >= 0 && la[i] < 10))
            break;
        counts[la[i]]++;
        for (k = 0; k < 784; k++)
            mean[la[i]][k] += a[784 * i + k];
    }
    for (i = 0; i < 10; i++)
        CHECK(counts[i] > N / 20 && counts[i] < N / 5);
    /* The nearest mean image classifies many images correctly, but not all. */
    same = 0;
    for (i = 0; i < N; i++) {
        int c, best = 0;
        double least = 1e300;
        for (c = 0; c < 10; c++) {
            double d = 0;
            for (k = 0; k < 784; k++) {
                double e = mean[c][k] / counts[c] - b[784 * i + k];
                d += e * e;
            }
            if (d < least) {
                least = d;
                best = c;
            }
        }
        same += best == lb[i];
    }
    CHECK(same > N / 2 && same < N * 97 / 100);
    free(a);
    free(b);
}

/* ---- splitting ---- */
DVT_TEST(split_and_load_parts) {
    dvt_array *out[4], *x;
    dvt_ctx_list ctxs;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        ctxs = DVT_CONTEXTS(dvt_gpu(0), dvt_cpu(), dvt_gpu(1));
        x = dvt_reshape(dvt_arange(0, 14, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(7, 2));
        CHECK_INT(dvt_array_split_and_load(x, ctxs, out), DVT_OK);
        CHECK(dvt_ctx_equal(dvt_ctx_of(out[0]), dvt_gpu(0)));
        CHECK(dvt_ctx_equal(dvt_ctx_of(out[2]), dvt_gpu(1)));
        CHECK_VALUES(out[0], 0, 0, 1, 2, 3, 4, 5); /* rows 3, 2, 2 */
        CHECK_VALUES(out[1], 0, 6, 7, 8, 9);
        CHECK_VALUES(out[2], 0, 10, 11, 12, 13);
        CHECK(dvt_shares_memory(out[1], x)); /* data already on the context becomes a view */
        dvt_clear_error();
        CHECK_INT(dvt_split_and_load(x, ctxs, out), DVT_ERR_SHAPE);
        CHECK(strstr(dvt_error(), "(7, 2)") && strstr(dvt_error(), "3 slices") &&
              strstr(dvt_error(), "axis 0") && strstr(dvt_error(), "dvt_array_split_and_load"));
        CHECK(out[0] == NULL && out[2] == NULL);
        dvt_clear_error();
        CHECK_INT(dvt_split_and_load(dvt_rows(x, 0, 6), ctxs, out), DVT_OK);
        CHECK_INT(dvt_dim(out[2], 0), 2);
        /* Fewer rows than contexts give empty slices. */
        CHECK_INT(dvt_array_split_and_load(dvt_rows(x, 0, 2), ctxs, out), DVT_OK);
        CHECK_INT(dvt_dim(out[1], 0), 1);
        CHECK_INT(dvt_size(out[2]), 0);
        CHECK(dvt_ctx_equal(dvt_ctx_of(out[2]), dvt_gpu(1)));
        /* One context: no slice, and no copy if the data is already there. */
        CHECK_INT(dvt_split_and_load(x, DVT_CONTEXTS(dvt_cpu()), out), DVT_OK);
        CHECK(out[0] == x);
        CHECK_INT(dvt_split_and_load(x, DVT_CONTEXTS(dvt_gpu(1)), out), DVT_OK);
        CHECK(out[0] != x && dvt_ctx_equal(dvt_ctx_of(out[0]), dvt_gpu(1)));
        ctxs.n = 0;
        CHECK_ERROR(dvt_split_and_load(x, ctxs, out), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_split_and_load(NULL, DVT_CONTEXTS(dvt_cpu()), out), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_split_and_load(x, DVT_CONTEXTS(dvt_cpu()), NULL), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_split_and_load(dvt_scalar(1, DVT_F32, dvt_cpu()),
                                       DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0)), out),
                    DVT_ERR_SHAPE);
        CHECK_ERROR(
            dvt_array_split_and_load(x, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(7)), out),
            DVT_ERR_NO_DEVICE);
        CHECK(out[0] == NULL && out[1] == NULL && out[2] == NULL);
    }
    dvt_set_virtual_gpus(0, 0);
}
#endif
