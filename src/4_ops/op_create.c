/* Creation of arrays: uninitialized, constant, evenly spaced, or from host memory. */
#include "1_base/dvt_float_mode.h"
#include "4_ops/dvt_op.h"

DVT_API dvt_array *dvt_empty(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_array_new("dvt_empty", shape, dtype, ctx);
}

/* Converts as dvt_astype does: drops the fraction, clamps values out of range, converts NaN to 0
   (to true for bool). */
static DVTI_NOINLINE int64_t dvti_to_integer(double value, dvt_dtype dtype) {
    int64_t lowest = dvti_int_lowest(dtype), largest = dvti_int_largest(dtype);
    DVTI_NOT_PURE();
    if (dtype == DVT_BOOL)
        return value != 0;
    if (value != value)
        return 0;
    if (value >= (double)largest)
        return largest;
    if (value <= (double)lowest)
        return lowest;
    return (int64_t)value;
}

static bool dvti_fill_with(const char *name, dvt_array *x, double value) {
    dvti_float_mode mode;
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_fill(), DVTI_OP_fill);
    dvti_view_into(&launch.out[0], x);
    launch.n_out = 1;
    launch.f[0] = value;
    mode = dvti_float_mode_begin(); /* with DAZ set, small numbers would compare as 0 */
    launch.i[0] = dvti_to_integer(value, x->dtype);
    dvti_float_mode_end(&mode);
    return dvt_shape_size(x->shape) == 0 || dvti_run(x->storage->device, &launch) == DVT_OK;
}

static dvt_array *dvti_filled(const char *name, dvt_shape shape, double value, dvt_dtype dtype,
                              dvt_ctx ctx) {
    dvt_array *x = dvti_array_new(name, shape, dtype, ctx);
    return x && dvti_fill_with(name, x, value) ? x : NULL;
}

DVT_API dvt_array *dvt_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_zeros", shape, 0, dtype, ctx);
}

DVT_API dvt_array *dvt_ones(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_ones", shape, 1, dtype, ctx);
}

DVT_API dvt_array *dvt_full(dvt_shape shape, double value, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_full", shape, value, dtype, ctx);
}

DVT_API dvt_array *dvt_scalar(double value, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_scalar", DVT_SCALAR, value, dtype, ctx);
}

static dvt_array *dvti_filled_like(const char *name, dvt_array *x, double value) {
    if (!dvti_check(name, &x, 1))
        return NULL;
    return dvti_filled(name, x->shape, value, x->dtype, x->storage->ctx);
}

DVT_API dvt_array *dvt_zeros_like(dvt_array *x) {
    return dvti_filled_like("dvt_zeros_like", x, 0);
}

DVT_API dvt_array *dvt_ones_like(dvt_array *x) {
    return dvti_filled_like("dvt_ones_like", x, 1);
}

DVT_API dvt_array *dvt_full_like(dvt_array *x, double value) {
    return dvti_filled_like("dvt_full_like", x, value);
}

DVT_API dvt_array *dvt_fill(dvt_array *x, double value) {
    if (!dvti_check("dvt_fill", &x, 1) || !dvti_writable("dvt_fill", x) ||
        !dvti_fill_with("dvt_fill", x, value))
        return NULL;
    dvti_written(x);
    return x;
}

DVT_API dvt_array *dvt_eye(int64_t rows, int64_t columns, int64_t k, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvti_array_new("dvt_eye", DVT_SHAPE(rows, columns), dtype, ctx);
    dvti_launch launch;
    dvti_launch_begin(&launch, "dvt_eye", dvti_kernel_eye(), DVTI_OP_eye);
    if (!x)
        return NULL;
    dvti_view_into(&launch.out[0], x);
    launch.n_out = 1;
    launch.i[0] = k;
    if (dvt_shape_size(x->shape) > 0 && dvti_run(x->storage->device, &launch) != DVT_OK)
        return NULL;
    return x;
}

/* Returns the values start + index * step. When start and step are integers, integer dtypes compute
   in integers, which stay exact beyond 2^53. Otherwise the values are computed in float64 and
   converted as by dvt_astype. `last`, when not NULL, is the exact final value. */
static dvt_array *dvti_spaced(const char *name, double start, double step, const double *last,
                              int64_t n, dvt_dtype dtype, dvt_ctx ctx) {
    bool integral = !dvt_dtype_is_float(dtype) && !last && start == floor(start) &&
                    step == floor(step) && fabs(start) < 9e18 && fabs(step) < 9e18;
    dvt_dtype made = dvt_dtype_is_float(dtype) || integral ? dtype : DVT_F64;
    dvt_scope_guard scope;
    dvt_array *x;
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_arange(), DVTI_OP_arange);
    if (!dvti_dtype_ok(dtype) || dtype == DVT_BOOL) {
        dvti_fail(DVT_ERR_DTYPE, "%s: got dtype %s; expected a float or integer dtype", name,
                  dvt_dtype_name(dtype));
        return NULL;
    }
    scope = dvt_scope_begin();
    x = dvti_array_new(name, DVT_SHAPE(n), made, ctx);
    if (x) {
        dvti_view_into(&launch.out[0], x);
        launch.n_out = 1;
        launch.f[0] = start;
        launch.f[1] = step;
        launch.f[2] = last ? *last : 0;
        launch.i[0] = integral ? (int64_t)start : 0;
        launch.i[1] = integral ? (int64_t)step : 0;
        launch.i[2] = last && n > 1;
        if (n > 0 && dvti_run(x->storage->device, &launch) != DVT_OK)
            x = NULL;
        if (x && made != dtype) {
            DVT_PAUSE {
                x = dvt_as_in_dtype(x, dtype);
            }
        }
    }
    dvt_keep(x);
    dvt_scope_end(&scope);
    return x;
}

static DVTI_NOINLINE dvt_array *dvti_arange(double start, double stop, double step, dvt_dtype dtype,
                                            dvt_ctx ctx) {
    double count;
    if (!(step != 0) || start != start || stop != stop || step != step) {
        dvti_fail(
            DVT_ERR_VALUE,
            "dvt_arange: start %g, stop %g, step %g; expected numbers, and a step that is not 0",
            start, stop, step);
        return NULL;
    }
    count = ceil((stop - start) / step);
    if (!(count < 9.2e18)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_arange: %g values from %g to %g by %g are too many; use a larger step",
                  count, start, stop, step);
        return NULL;
    }
    return dvti_spaced("dvt_arange", start, step, NULL, count > 0 ? (int64_t)count : 0, dtype, ctx);
}

DVT_API dvt_array *dvt_arange(double start, double stop, double step, dvt_dtype dtype,
                              dvt_ctx ctx) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *x = dvti_arange(start, stop, step, dtype, ctx);
    dvti_float_mode_end(&mode);
    return x;
}

static DVTI_NOINLINE dvt_array *dvti_linspace(double start, double stop, int64_t num,
                                              dvt_dtype dtype, dvt_ctx ctx) {
    if (num < 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_linspace: num is %lld; expected 0 or more", (long long)num);
        return NULL;
    }
    return dvti_spaced("dvt_linspace", start, num > 1 ? (stop - start) / (double)(num - 1) : 0,
                       &stop, num, dtype, ctx);
}

DVT_API dvt_array *dvt_linspace(double start, double stop, int64_t num, dvt_dtype dtype,
                                dvt_ctx ctx) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *x = dvti_linspace(start, stop, num, dtype, ctx);
    dvti_float_mode_end(&mode);
    return x;
}

DVT_API dvt_array *dvt_from_host(const void *data, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvti_array_new("dvt_from_host", shape, dtype, ctx);
    if (!x)
        return NULL;
    if (!data && dvt_size(x) > 0) {
        dvti_null("dvt_from_host", "data");
        return NULL;
    }
    return dvti_write_host("dvt_from_host", x, data) == DVT_OK ? x : NULL;
}

DVT_API dvt_array *dvt_from_values(const void *data, int64_t count, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx) {
    int64_t size = dvt_shape_size(shape);
    dvt_array *x;
    if (size >= 0 && size != count) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "DVT_ARRAY: %lld values for shape %s, which has %lld elements; give one value for "
            "each element, in C order",
            (long long)count, dvti_shape_text(shape), (long long)size);
        return NULL;
    }
    x = dvti_array_new("DVT_ARRAY", shape, dtype, ctx);
    return x && dvti_write_host("DVT_ARRAY", x, data) == DVT_OK ? x : NULL;
}

DVT_API dvt_status dvt_mark_written(dvt_array *x) {
    if (!x)
        return dvti_null("dvt_mark_written", "x");
    dvti_written(x);
    return DVT_OK;
}

DVT_API dvt_status dvt_set_from_host(dvt_array *x, const void *src, int64_t bytes) {
    dvt_status status;
    if (!x)
        return dvti_null("dvt_set_from_host", "x");
    if (bytes != dvt_nbytes(x))
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_set_from_host: src has %lld bytes and x (%s) has %lld; give exactly dvt_nbytes(x)",
            (long long)bytes, dvti_describe(x), (long long)dvt_nbytes(x));
    if (!src && bytes)
        return dvti_null("dvt_set_from_host", "src");
    if (!dvti_writable("dvt_set_from_host", x))
        return dvti_failure();
    status = dvti_write_host("dvt_set_from_host", x, src);
    if (status == DVT_OK)
        dvti_written(x);
    return status;
}
