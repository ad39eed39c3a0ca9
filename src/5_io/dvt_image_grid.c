/* A grid of images as one image. Each image fills the lower right part of a cell of a padded array;
   one transpose brings rows of cells together:

       (rows, columns, height + p, width + p, C) -> (rows, height + p, columns, width + p, C)  */
#include "5_io/dvt_io_internal.h"

/* Returns the images as (N, H, W, C); NULL with SHAPE set. */
static dvt_array *dvti_grid_images(const char *function, dvt_array *x) {
    const int64_t *dim = x->shape.dim;
    bool ok = dvti_has_elements(&x->shape);
    if (ok && x->shape.ndim == 3)
        return dvt_reshape(x, DVT_SHAPE(dim[0], dim[1], dim[2], 1));
    if (ok && x->shape.ndim == 4 && dim[3] <= 4)
        return x;
    if (ok && x->shape.ndim == 4 && dim[1] <= 4)
        return dvt_transpose(x, DVT_AXES(0, 2, 3, 1));
    dvti_fail(DVT_ERR_SHAPE,
              "%s: images are %s; expected (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 to 4 "
              "channels and at least one pixel: reshape them",
              function, dvti_describe(x));
    return NULL;
}

/* Returns zeros of that shape with x copied to the indices from `at` on. */
static dvt_array *dvti_grid_paste(const char *function, dvt_array *x, dvt_shape shape,
                                  const int64_t *at) {
    dvt_array *y = dvt_zeros(shape, x->dtype, x->storage->ctx), *part = y;
    int i;
    for (i = 0; part && i < shape.ndim; i++)
        part = dvt_slice(part, i, at[i], at[i] + x->shape.dim[i], 1);
    return part && dvti_copy_elements(function, part, x) == DVT_OK ? y : NULL;
}

static dvt_array *dvti_grid_join(const char *function, dvt_array *x, int64_t columns, int64_t p) {
    const int64_t n = x->shape.dim[0], height = x->shape.dim[1] + p, width = x->shape.dim[2] + p;
    const int64_t channels = x->shape.dim[3], rows = (n + columns - 1) / columns;
    int64_t at[4];
    memset(at, 0, sizeof at);
    at[1] = at[2] = p;
    x = dvti_grid_paste(function, x, DVT_SHAPE(rows * columns, height, width, channels), at);
    x = dvt_reshape(x, DVT_SHAPE(rows, columns, height, width, channels));
    x = dvt_transpose(x, DVT_AXES(0, 2, 1, 3, 4));
    x = dvt_reshape(x, DVT_SHAPE(rows * height, columns * width, channels));
    memset(at, 0, sizeof at);
    return x && p ? dvti_grid_paste(function, x,
                                    DVT_SHAPE(rows * height + p, columns * width + p, channels), at)
                  : x;
}

DVT_API dvt_array *dvt_image_grid(dvt_array *images, int64_t columns, int64_t padding) {
    static const char *const function = "dvt_image_grid";
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array *x;
    int64_t n;
    if (!images) {
        dvti_null(function, "images");
        return NULL;
    }
    if (columns < 0 || padding < 0 || padding > 65536) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: columns is %lld and padding is %lld; expected columns of at least 0 and a "
                  "padding of 0 to 65536",
                  function, (long long)columns, (long long)padding);
        return NULL;
    }
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    x = dvti_grid_images(function, images);
    if (x) {
        n = x->shape.dim[0];
        if (columns == 0)
            while (columns * columns < n)
                columns++;
        x = dvti_grid_join(function, x, DVTI_MIN(columns, n), padding);
    }
    dvt_keep(x);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return x;
}
