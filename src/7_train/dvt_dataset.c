/* Datasets: two arrays in host memory, image and label files in MNIST's format, and transforms of
   another dataset. They are immutable, so loader threads share them. */
#include "7_train/dvt_train_internal.h"

static void dvti_dataset_destroy(void *object) {
    dvt_dataset *data = (dvt_dataset *)object;
    dvti_disown(data->x);
    dvti_disown(data->y);
    dvti_disown(data->source);
    dvti_disown(data->transform);
    dvti_free(data->index);
    dvti_free(data);
}

static dvt_dataset *dvti_dataset_new(const char *function, int64_t length) {
    dvt_dataset *data = (dvt_dataset *)dvti_alloc_zero(sizeof *data);
    if (!data) {
        dvti_fail_memory(function, (int64_t)sizeof *data);
        return NULL;
    }
    if (!dvti_object_begin(data, dvti_dataset_destroy, function)) {
        dvti_free(data);
        return NULL;
    }
    data->length = length;
    return data;
}

static bool dvti_dataset_part_ok(const char *function, const char *what, dvt_array *part) {
    if (!part) {
        dvti_null(function, what);
        return false;
    }
    if (!dvti_is_host_memory(part->storage->ctx)) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: %s is %s; samples are kept in host memory: copy it with "
                  "dvt_copyto(%s, dvt_cpu())",
                  function, what, dvti_describe(part), what);
        return false;
    }
    if (part->shape.ndim < 1) {
        dvti_fail(DVT_ERR_SHAPE, "%s: %s is %s; expected one sample per entry of axis 0", function,
                  what, dvti_describe(part));
        return false;
    }
    return true;
}

DVT_API dvt_dataset *dvt_dataset_arrays(dvt_array *x, dvt_array *y) {
    static const char *const function = "dvt_dataset_arrays";
    dvt_dataset *data;
    if (!dvti_dataset_part_ok(function, "x", x) || !dvti_dataset_part_ok(function, "y", y))
        return NULL;
    if (x->shape.dim[0] != y->shape.dim[0]) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s and y is %s; expected as many samples as labels",
                  function, dvti_describe(x), dvti_describe(y));
        return NULL;
    }
    data = dvti_dataset_new(function, x->shape.dim[0]);
    if (data) {
        data->x = (dvt_array *)dvti_own(x);
        data->y = (dvt_array *)dvti_own(y);
    }
    return data;
}

DVTI_FN dvt_dataset *dvti_dataset_on(const char *function, dvt_dataset *source, int64_t length,
                                     const char *what) {
    dvt_dataset *result;
    if (source->nested >= DVTI_MOST_NESTED) {
        dvti_fail(DVT_ERR_VALUE, "%s: %s would be nested more than %d deep; expected fewer: %s",
                  function, what, DVTI_MOST_NESTED,
                  "join transforms with dvt_transform_compose, and begin at the first dataset");
        return NULL;
    }
    result = dvti_dataset_new(function, length);
    if (result) {
        result->nested = source->nested + 1;
        result->source = (dvt_dataset *)dvti_own(source);
    }
    return result;
}

static dvt_dataset *dvti_dataset_transformed(const char *function, dvt_dataset *data,
                                             dvt_transform *transform, bool second) {
    dvt_dataset *result;
    if (!data || !transform) {
        dvti_null(function, data ? "transform" : "data");
        return NULL;
    }
    result = dvti_dataset_on(function, data, data->length, "transforms");
    if (result) {
        result->transform = (dvt_transform *)dvti_own(transform);
        result->of_second = second;
    }
    return result;
}

DVT_API dvt_dataset *dvt_dataset_transform_first(dvt_dataset *data, dvt_transform *transform) {
    return dvti_dataset_transformed("dvt_dataset_transform_first", data, transform, false);
}

DVT_API dvt_dataset *dvt_dataset_transform_second(dvt_dataset *data, dvt_transform *transform) {
    return dvti_dataset_transformed("dvt_dataset_transform_second", data, transform, true);
}

DVT_API int64_t dvt_dataset_len(const dvt_dataset *data) {
    return data ? data->length : 0;
}

static bool dvti_dataset_sample(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y) {
    if (!data->source) {
        *x = dvt_index(data->x, i);
        *y = dvt_index(data->y, i);
        return *x && *y;
    }
    if (!dvti_dataset_sample(data->source, data->index ? data->index[i] : i, x, y))
        return false;
    if (data->transform && !data->of_second)
        *x = dvt_transform_apply(data->transform, *x);
    else if (data->transform)
        *y = dvt_transform_apply(data->transform, *y);
    return *x && *y;
}

DVTI_FN int64_t dvti_dataset_bottom_index(const dvt_dataset *data, int64_t i) {
    for (; data->source; data = data->source)
        i = data->index ? data->index[i] : i;
    return i;
}

DVT_API dvt_status dvt_dataset_get(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y) {
    dvt_array *sample = NULL, *label = NULL;
    dvt_scope_guard scope;
    bool ok;
    if (x)
        *x = NULL;
    if (y)
        *y = NULL;
    if (!data || !x || !y)
        return dvti_null("dvt_dataset_get", !data ? "data" : !x ? "x" : "y");
    if (i < 0 || i >= data->length)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_dataset_get: sample %lld of %lld; expected 0 or more and less than "
                         "that",
                         (long long)i, (long long)data->length);
    scope = dvt_scope_begin();
    ok = dvti_dataset_sample(data, i, &sample, &label);
    if (ok) {
        *x = (dvt_array *)dvt_keep(sample);
        *y = (dvt_array *)dvt_keep(label);
    }
    dvt_scope_end(&scope);
    return ok ? DVT_OK : dvti_failure();
}

/* ---- files in MNIST's format ---- */
/* Reads the images as (N, H, W, 1) and the labels as int32. */
static dvt_dataset *dvti_dataset_of_idx(const char *function, const char *images,
                                        const char *labels, int64_t classes) {
    dvt_array *x = dvt_load_idx(images, dvt_cpu());
    dvt_array *y = x ? dvt_load_idx(labels, dvt_cpu()) : NULL;
    const int32_t *label;
    int64_t i;
    if (!x || !y)
        return NULL;
    if (x->dtype != DVT_U8 || x->shape.ndim != 3) {
        dvti_fail(DVT_ERR_FORMAT, "%s: %s holds %s; expected uint8 images (N, height, width)",
                  function, images, dvti_describe(x));
        return NULL;
    }
    if (!dvt_dtype_is_int(y->dtype) || y->shape.ndim != 1) {
        dvti_fail(DVT_ERR_FORMAT, "%s: %s holds %s; expected whole numbers (N,)", function, labels,
                  dvti_describe(y));
        return NULL;
    }
    if (x->shape.dim[0] != y->shape.dim[0]) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: %s holds %lld images and %s holds %lld labels; expected files that belong "
                  "together",
                  function, images, (long long)x->shape.dim[0], labels, (long long)y->shape.dim[0]);
        return NULL;
    }
    y = dvt_as_in_dtype(y, DVT_I32);
    x = dvt_expand_dims(x, -1);
    label = y ? (const int32_t *)dvt_data(y) : NULL;
    if (!x || !label)
        return NULL;
    for (i = 0; i < y->shape.dim[0]; i++)
        if (label[i] < 0 || (classes && label[i] >= classes)) {
            dvti_fail(DVT_ERR_FORMAT, "%s: label %lld of %s is %d; expected 0 to %lld", function,
                      (long long)i, labels, (int)label[i],
                      (long long)(classes ? classes - 1 : INT32_MAX));
            return NULL;
        }
    return dvt_dataset_arrays(x, y);
}

static dvt_dataset *dvti_dataset_of_files(const char *function, const char *images,
                                          const char *labels, int64_t classes) {
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_dataset *data =
        (dvt_dataset *)dvt_keep(dvti_dataset_of_idx(function, images, labels, classes));
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return data;
}

DVT_API dvt_dataset *dvt_dataset_idx(const char *images, const char *labels) {
    if (!images || !labels) {
        dvti_null("dvt_dataset_idx", images ? "labels" : "images");
        return NULL;
    }
    return dvti_dataset_of_files("dvt_dataset_idx", images, labels, 0);
}

#if !defined(DEVTENSOR_NO_FILES)
DVTI_FN bool dvti_dataset_file_exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

/* Finds "folder/fashion-train-images-idx3-ubyte.gz" or one of its other spellings. Returns false
   when none exists. */
static bool dvti_find_idx(char *path, size_t size, const char *folder, const char *prefix,
                          const char *name) {
    static const char *const ends[] = {".gz", ""};
    int i;
    for (i = 0; i < DVTI_LENGTH(ends); i++) {
        int length = snprintf(path, size, "%s/%s%s%s", folder, prefix, name, ends[i]);
        if (length >= 0 && (size_t)length < size && dvti_dataset_file_exists(path))
            return true;
    }
    return false;
}

static dvt_dataset *dvti_dataset_find(const char *function, const char *folder, const char *prefix,
                                      dvt_dataset_part part) {
    const bool train = part == DVT_DATASET_TRAIN;
    const char *images = train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
    const char *labels = train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
    const char *prefixes[2];
    dvt_dataset *data = NULL;
    bool found = false;
    size_t size;
    char *path;
    int i;
    if (!folder) {
        dvti_null(function, "folder");
        return NULL;
    }
    if (!dvti_choice(function, "part", (int)part, "DVT_DATASET_TRAIN", "DVT_DATASET_TEST"))
        return NULL;
    size = strlen(folder) + strlen(prefix) + 64;
    path = (char *)dvti_alloc(2 * size);
    if (!path) {
        dvti_fail_memory(function, (int64_t)(2 * size));
        return NULL;
    }
    prefixes[0] = prefix;
    prefixes[1] = "";
    /* Images and labels must have the same prefix: a directory may hold both data sets. */
    for (i = 0; i < 2 && !found; i++)
        found = dvti_find_idx(path, size, folder, prefixes[i], images) &&
                dvti_find_idx(path + size, size, folder, prefixes[i], labels);
    if (found)
        data = dvti_dataset_of_files(function, path, path + size, 10);
    else
        dvti_fail(DVT_ERR_IO,
                  "%s: no data in \"%s\"; looked for %s%s and %s%s, with and without .gz and "
                  "\"%s\": put the files there, or name another folder (nothing is downloaded)",
                  function, folder, prefix, images, prefix, labels, prefix);
    dvti_free(path);
    return data;
}
#else
static dvt_dataset *dvti_dataset_find(const char *function, const char *folder, const char *prefix,
                                      dvt_dataset_part part) {
    (void)folder;
    (void)prefix;
    (void)part;
    dvti_fail(DVT_ERR_NOT_BUILT, "%s: left out of this build by DEVTENSOR_NO_FILES", function);
    return NULL;
}
#endif

DVT_API dvt_dataset *dvt_dataset_fashion_mnist(const char *folder, dvt_dataset_part part) {
    return dvti_dataset_find("dvt_dataset_fashion_mnist", folder, "fashion-", part);
}

DVT_API dvt_dataset *dvt_dataset_mnist(const char *folder, dvt_dataset_part part) {
    return dvti_dataset_find("dvt_dataset_mnist", folder, "mnist-", part);
}
