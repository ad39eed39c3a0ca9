/* Makes one batch from numbered samples, on cpu(0). Two methods give the same bits. Samples that
   are rows of an array, or pixels that a table maps to floats, are written straight into the batch.
   All other datasets are read sample by sample and stacked. Several threads may call this at
   once. */
#include "7_train/dvt_train_internal.h"

#define DVTI_TABLE_CHANNELS 64

/* Returns the underlying arrays, if every transform above them works pixel by pixel. */
static const dvt_dataset *dvti_bottom(const dvt_dataset *data, bool *as_tensor) {
    const dvt_dataset *bottom;
    if (!data->source)
        return data;
    bottom = dvti_bottom(data->source, as_tensor);
    if (bottom && data->transform &&
        (data->of_second || !dvti_transform_by_pixel(data->transform, as_tensor)))
        return NULL;
    return bottom;
}

DVTI_FN void dvti_batcher_begin(dvti_batcher *batcher, dvt_dataset *data) {
    const dvt_dataset *bottom;
    bool as_tensor = false;
    memset(batcher, 0, sizeof *batcher);
    batcher->data = (dvt_dataset *)dvti_own(data);
    bottom = dvti_bottom(data, &as_tensor);
    if (!bottom || !dvt_is_contiguous(bottom->x) || !dvt_is_contiguous(bottom->y))
        return;
    if (as_tensor && (bottom->x->dtype != DVT_U8 || bottom->x->shape.ndim != 4 ||
                      bottom->x->shape.dim[3] > DVTI_TABLE_CHANNELS))
        return;
    batcher->method = as_tensor ? DVTI_BATCH_TABLE : DVTI_BATCH_ROWS;
    batcher->x = bottom->x;
    batcher->y = bottom->y;
}

DVTI_FN void dvti_batcher_end(dvti_batcher *batcher) {
    dvti_disown(batcher->data);
    dvti_free(batcher->table);
    memset(batcher, 0, sizeof *batcher);
}

/* Starts errors with the sample's number, which is `object` itself: an exception may end the call
   and leave the frame. */
static void dvti_sample_write_frame(const void *object, char *buffer, size_t size) {
    snprintf(buffer, size, "dvt_loader_next: sample %lld: ", (long long)(intptr_t)object);
}

static bool dvti_sample_get(dvt_dataset *data, const uint32_t key[2], int64_t i, dvt_array **x,
                            dvt_array **y) {
    dvti_sample_random random, outer_random;
    dvti_error_frame frame, outer;
    bool ok;
    random.on = true;
    random.key[0] = key[0];
    random.key[1] = key[1];
    random.sample = i;
    random.draws = 0;
    outer_random = dvti_set_sample_random(random);
    frame.write = dvti_sample_write_frame;
    frame.object = (const void *)(intptr_t)i;
    outer = dvti_set_error_frame(frame);
    ok = dvt_dataset_get(data, i, x, y) == DVT_OK;
    dvti_set_error_frame(outer);
    dvti_set_sample_random(outer_random);
    return ok;
}

/* ---- the table: each of the 256 pixel values after the transforms, per channel ---- */
static dvt_array *dvti_apply_all(const dvt_dataset *data, dvt_array *x) {
    if (!data->source)
        return x;
    x = dvti_apply_all(data->source, x);
    return x && data->transform ? dvt_transform_apply(data->transform, x) : x;
}

/* Returns an image of one column in which row v holds v. The transforms themselves fill the table
   from it, so it has their bits. */
static dvt_array *dvti_all_pixels(int64_t channels) {
    dvt_array *x =
        dvti_array_new("dvt_loader_next", DVT_SHAPE(256, 1, channels), DVT_U8, dvt_cpu());
    uint8_t *pixel = x ? (uint8_t *)dvt_data(x) : NULL;
    int64_t i;
    for (i = 0; pixel && i < 256 * channels; i++)
        pixel[i] = (uint8_t)(i / channels);
    return pixel ? x : NULL;
}

DVTI_FN bool dvti_batcher_ready(const char *function, dvti_batcher *batcher) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    static const uint32_t no_key[2] = {0, 0}; /* transforms with a table are not random */
    dvt_array *x, *y;
    int64_t channels;
    float *table;
    bool ok;
    if (batcher->method != DVTI_BATCH_TABLE || batcher->table)
        return true;
    channels = batcher->x->shape.dim[3];
    table = (float *)dvti_alloc((size_t)channels * 256 * sizeof *table);
    if (!table) {
        dvti_fail_memory(function, channels * 256 * (int64_t)sizeof *table);
        return false;
    }
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    /* A transform that fails for the table fails for sample 0, whose error has the true shape. */
    ok = !batcher->data->length || dvti_sample_get(batcher->data, no_key, 0, &x, &y);
    x = ok ? dvti_all_pixels(channels) : NULL;
    x = x ? dvti_apply_all(batcher->data, x) : NULL;
    ok = x && dvti_read(function, x, DVT_F32, table) == DVT_OK;
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    if (ok)
        batcher->table = table;
    else
        dvti_free(table);
    return ok;
}

/* ---- straight into the batch ---- */
/* Returns the shape of n samples: axis 0 replaced. */
static dvt_shape dvti_batch_rows_shape(const dvt_array *all, int64_t n) {
    dvt_shape shape = all->shape;
    shape.dim[0] = n;
    return shape;
}

static dvt_array *dvti_gather_rows(const char *function, const dvti_batcher *batcher,
                                   const dvt_array *all, const int64_t *index, int64_t n) {
    dvt_array *batch =
        dvti_array_new(function, dvti_batch_rows_shape(all, n), all->dtype, dvt_cpu());
    const char *from = (const char *)dvti_view_of(all).data;
    size_t row;
    char *to;
    int64_t i;
    if (!batch)
        return NULL;
    to = (char *)dvti_view_of(batch).data;
    row = n ? (size_t)(dvt_nbytes(batch) / n) : 0;
    for (i = 0; row && i < n; i++)
        memcpy(to + (size_t)i * row,
               from + (size_t)dvti_dataset_bottom_index(batcher->data, index[i]) * row, row);
    return batch;
}

/* Maps (H, W, C) bytes to (C, H, W) floats. */
static void dvti_map_pixels(const uint8_t *from, float *to, const float *table, int64_t pixels,
                            int64_t channels) {
    int64_t c, p;
    if (channels == 1) { /* separate, because a constant step of 1 is twice as fast */
        for (p = 0; p < pixels; p++)
            to[p] = table[from[p]];
        return;
    }
    for (c = 0; c < channels; c++, to += pixels, table += 256)
        for (p = 0; p < pixels; p++)
            to[p] = table[from[p * channels + c]];
}

static dvt_array *dvti_gather_pixels(const char *function, const dvti_batcher *batcher,
                                     const int64_t *index, int64_t n) {
    const int64_t *dim = batcher->x->shape.dim;
    int64_t pixels = dvti_extents(dim + 1, 2), size = dvti_extents(dim + 1, 3), i;
    dvt_array *batch =
        dvti_array_new(function, DVT_SHAPE(n, dim[3], dim[1], dim[2]), DVT_F32, dvt_cpu());
    const uint8_t *from = (const uint8_t *)dvti_view_of(batcher->x).data;
    float *to;
    if (!batch)
        return NULL;
    to = (float *)dvti_view_of(batch).data;
    for (i = 0; i < n; i++)
        dvti_map_pixels(from + dvti_dataset_bottom_index(batcher->data, index[i]) * size,
                        to + i * size, batcher->table, pixels, dim[3]);
    return batch;
}

/* ---- sample by sample ---- */
/* Checks that the samples of a batch have equal shapes and dtypes; the first one decides. */
static bool dvti_sample_ok(const char *function, const char *what, const dvt_array *batch,
                           const dvt_array *sample, int64_t first, int64_t i) {
    bool same = batch->dtype == sample->dtype && batch->shape.ndim == sample->shape.ndim + 1;
    int k;
    if (!dvti_is_host_memory(sample->storage->ctx)) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: %s of sample %lld is %s; batches are made in host memory: let the transform "
                  "return an array on cpu(0), and move whole batches",
                  function, what, (long long)i, dvti_describe(sample));
        return false;
    }
    for (k = 0; same && k < sample->shape.ndim; k++)
        same = batch->shape.dim[k + 1] == sample->shape.dim[k];
    if (!same)
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: %s of sample %lld is %s, unlike that of sample %lld in the same batch; "
                  "all samples of a batch must have one shape and dtype",
                  function, what, (long long)i, dvti_describe(sample), (long long)first);
    return same;
}

static dvt_array *dvti_batch_like(const char *function, const dvt_array *sample, int64_t n) {
    dvt_shape shape = sample->shape;
    int k;
    if (shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: a sample is %s; a batch of such would have more than %d axes",
                  function, dvti_describe(sample), DVT_MAX_DIMS);
        return NULL;
    }
    for (k = shape.ndim++; k > 0; k--)
        shape.dim[k] = shape.dim[k - 1];
    shape.dim[0] = n;
    return dvti_array_new(function, shape, sample->dtype, dvt_cpu());
}

static bool dvti_put_sample(const char *function, dvt_array *batch, int64_t at, dvt_array *sample) {
    dvt_array *row = dvti_view_new(function, batch, sample->shape, batch->stride + 1,
                                   batch->offset + at * batch->stride[0]);
    return row && dvti_copy_elements(function, row, sample) == DVT_OK;
}

static bool dvti_stack_samples(const char *function, dvt_dataset *data, const uint32_t key[2],
                               const int64_t *index, int64_t n, dvt_array **x, dvt_array **y) {
    dvt_array *sample, *label;
    int64_t i;
    bool ok = true;
    /* A process without a share of the batch takes the shape from sample 0. */
    for (i = 0; ok && i < DVTI_MAX(n, 1); i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        ok = dvti_sample_get(data, key, n ? index[i] : 0, &sample, &label);
        if (ok && i == 0) {
            *x = (dvt_array *)dvt_keep(dvti_batch_like(function, sample, n));
            *y = *x ? (dvt_array *)dvt_keep(dvti_batch_like(function, label, n)) : NULL;
            ok = *y != NULL;
        }
        if (ok && n)
            ok = dvti_sample_ok(function, "x", *x, sample, index[0], index[i]) &&
                 dvti_sample_ok(function, "y", *y, label, index[0], index[i]) &&
                 dvti_put_sample(function, *x, i, sample) &&
                 dvti_put_sample(function, *y, i, label);
        dvt_scope_end(&scope);
    }
    return ok;
}

DVTI_FN bool dvti_batch_make(const char *function, const dvti_batcher *batcher,
                             const uint32_t key[2], const int64_t *index, int64_t n, dvt_array **x,
                             dvt_array **y) {
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    dvt_ctx_guard ctx = dvt_ctx_scope_begin(dvt_cpu());
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *samples = NULL, *labels = NULL;
    bool ok;
    if (batcher->method == DVTI_BATCH_SAMPLES) {
        ok = dvti_stack_samples(function, batcher->data, key, index, n, &samples, &labels);
    } else {
        samples = batcher->method == DVTI_BATCH_TABLE
                      ? dvti_gather_pixels(function, batcher, index, n)
                      : dvti_gather_rows(function, batcher, batcher->x, index, n);
        labels = samples ? dvti_gather_rows(function, batcher, batcher->y, index, n) : NULL;
        ok = labels != NULL;
    }
    if (ok) {
        *x = (dvt_array *)dvt_keep(samples);
        *y = (dvt_array *)dvt_keep(labels);
    }
    dvt_scope_end(&scope);
    dvt_ctx_scope_end(&ctx);
    dvt_record_end(&record);
    return ok;
}

#undef DVTI_TABLE_CHANNELS
