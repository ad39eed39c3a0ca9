/* Checks that every operation shares, with their messages. */
#include "4_ops/dvt_op.h"

static const char *dvti_input_name(const char *const *names, int i) {
    char *buffer;
    if (names)
        return names[i];
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "array %d", i);
    return buffer;
}

/* Returns MXNet's name of the operator behind a function. */
static const char *dvti_mxnet_operator(const char *function) {
    static const char *const names[][2] = {{"dvt_add", "broadcast_add"},
                                           {"dvt_sub", "broadcast_sub"},
                                           {"dvt_mul", "broadcast_mul"},
                                           {"dvt_div", "broadcast_div"},
                                           {"dvt_mod", "broadcast_mod"},
                                           {"dvt_pow", "broadcast_power"},
                                           {"dvt_maximum", "broadcast_maximum"},
                                           {"dvt_minimum", "broadcast_minimum"},
                                           {"dvt_hypot", "broadcast_hypot"},
                                           {"dvt_equal", "broadcast_equal"},
                                           {"dvt_not_equal", "broadcast_not_equal"},
                                           {"dvt_less", "broadcast_lesser"},
                                           {"dvt_less_equal", "broadcast_lesser_equal"},
                                           {"dvt_greater", "broadcast_greater"},
                                           {"dvt_greater_equal", "broadcast_greater_equal"}};
    size_t i, n = strlen(function);
    n -= n && function[n - 1] == '_'; /* dvt_add_ writes into its first argument */
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i][0]) == n && strncmp(names[i][0], function, n) == 0)
            return names[i][1];
    return strncmp(function, "dvt_", 4) == 0 ? function + 4 : function;
}

/* Returns argument number i as an expression. */
static const char *dvti_input_expression(const char *const *names, int i) {
    char *buffer;
    if (names)
        return names[i];
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "arrays[%d]", i);
    return buffer;
}

static DVTI_RARE void dvti_fail_mixed(const char *function, dvt_array *const *in,
                                      const char *const *names, int i) {
    dvt_ctx home = in[0]->storage->ctx;
    const bool from_meta = dvti_is_meta(in[i]->storage->device); /* has no values to copy */
    const char *at = dvti_input_expression(names, from_meta ? 0 : i);
    char *where = dvti_name_buffer(), line[200] = "";
    if (from_meta || dvti_is_meta(in[0]->storage->device))
        snprintf(where, DVTI_NAME_SIZE, "dvt_ctx_of(%s)",
                 dvti_input_expression(names, from_meta ? i : 0));
    else if (home.type == DVT_DEVICE_CPU && home.id == 0)
        snprintf(where, DVTI_NAME_SIZE, "dvt_cpu()");
    else
        snprintf(where, DVTI_NAME_SIZE, "dvt_%s(%d)",
                 home.type == DVT_DEVICE_GPU ? "gpu" : "cpu_id", home.id);
    if (dvti_print_style_chosen() == DVT_PRINT_MXNET)
        snprintf(line, sizeof line,
                 "Operator %.60s require all inputs live on the same context. But the first "
                 "argument is on %s while the %d-th argument is on %s\n",
                 dvti_mxnet_operator(function), dvt_ctx_name(home), i + 1,
                 dvt_ctx_name(in[i]->storage->ctx));
    dvti_fail(DVT_ERR_CONTEXT,
              "%s%s: all arguments must live on one context, but %s is %s and %s is %s; copy one "
              "first, for example with dvt_as_in_ctx(%s, %s)",
              line, function, dvti_input_name(names, 0), dvti_describe(in[0]),
              dvti_input_name(names, i), dvti_describe(in[i]), at, where);
}

DVTI_FN bool dvti_check_named(const char *function, dvt_array *const *in, int n,
                              const char *const *names) {
    int i;
    for (i = 0; i < n; i++)
        if (!in[i]) {
            dvti_null(function, dvti_input_name(names, i));
            return false;
        }
    for (i = 1; i < n; i++)
        if (in[0]->storage->ctx.id != in[i]->storage->ctx.id ||
            in[0]->storage->ctx.type != in[i]->storage->ctx.type) {
            dvti_fail_mixed(function, in, names, i);
            return false;
        }
    return true;
}

/* Returns the parameter names that most functions use. */
static const char *const *dvti_usual_names(int n) {
    static const char *const one[] = {"x"}, *const several[] = {"a", "b", "c", "d"};
    return n == 1 ? one : several;
}

DVTI_FN bool dvti_check(const char *function, dvt_array *const *in, int n) {
    return dvti_check_named(function, in, n, dvti_usual_names(n));
}

DVTI_FN bool dvti_optional(const char *function, const char *what, const dvt_array *x) {
    if (x || dvt_error_code() == DVT_OK)
        return true;
    dvti_log(
        DVT_LOG_WARNING,
        "%s: %s is NULL while this thread keeps an error, so it is taken for the result of the "
        "call that failed; if it means none, call dvt_clear_error when the error is dealt with",
        function, what);
    dvti_null(function, what);
    return false;
}

DVTI_FN bool dvti_writable(const char *function, dvt_array *x) {
    if (x->broadcast) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the array to write into (%s) is a broadcast view, whose positions share "
                  "elements; write into a dvt_copy of it, or into what it is a view of",
                  function, dvti_describe(x));
        return false;
    }
    if (dvt_is_recording() && dvt_has_history(x)) {
        dvti_fail(DVT_ERR_GRAD,
                  "%s: the array to write into (%s) belongs to a recorded computation, whose "
                  "gradients would become wrong; compute a new array, or write inside DVT_PAUSE",
                  function, dvti_describe(x));
        return false;
    }
    return true;
}

/* Implements NumPy's "same kind" rule: a float result does not fit an integer array, nor an integer
   result a bool array. */
static bool dvti_fits(dvt_dtype result, dvt_dtype into) {
    if (dvt_dtype_is_float(result))
        return dvt_dtype_is_float(into);
    return result == DVT_BOOL || into != DVT_BOOL;
}

DVTI_FN bool dvti_into_ok(const char *function, dvt_array *into, const dvt_shape *shape,
                          dvt_dtype dtype, const char *instead) {
    if (!dvti_same_shape(&into->shape, shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the result has shape %s and cannot be written into %s; expected an array of "
                  "the result's shape: make or reshape one, or use %s",
                  function, dvti_shape_text(*shape), dvti_describe(into), instead);
        return false;
    }
    if (!dvti_fits(dtype, into->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: the result is %s and cannot be written into %s; expected an array of the "
                  "result's dtype: make one, or use %s",
                  function, dvt_dtype_name(dtype), dvti_describe(into), instead);
        return false;
    }
    return dvti_writable(function, into);
}

DVTI_FN bool dvti_keeps_history(const char *function, dvt_array *const *in, int n,
                                const char *const *names, const char *instead) {
    int k;
    if (!names)
        names = dvti_usual_names(n);
    for (k = 0; dvt_is_recording() && k < n; k++)
        if (dvt_has_history(in[k])) {
            dvti_fail(DVT_ERR_GRAD,
                      "%s: %s (%s) belongs to a recorded computation, whose gradient writing in "
                      "place would lose; use %s, or write inside DVT_PAUSE",
                      function, names[k], dvti_describe(in[k]), instead);
            return false;
        }
    return true;
}

DVTI_FN void dvti_written(dvt_array *x) {
    dvti_atomic_add(&x->storage->version, 1);
}

DVTI_FN dvt_dtype dvti_float_dtype(dvt_dtype dtype) {
    return dvt_dtype_is_float(dtype) ? dtype : DVT_F32;
}

DVTI_FN dvt_array *dvti_wide_float(dvt_array *x) {
    bool narrow = x && (x->dtype == DVT_F16 || x->dtype == DVT_BF16);
    return narrow ? dvt_as_in_dtype(x, DVT_F32) : x;
}

DVTI_FN dvt_array *dvti_compute_float(dvt_array *x) {
    return x && x->dtype != DVT_F64 ? dvt_as_in_dtype(x, DVT_F32) : x;
}

DVTI_FN bool dvti_axes_mask(const char *function, dvt_axes axes, const dvt_array *x,
                            unsigned *mask) {
    int i;
    *mask = 0;
    if (axes.n < 0 || axes.n > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_AXIS, "%s: %d axes for x (%s); expected 0 (all) to %d", function, axes.n,
                  dvti_describe(x), DVT_MAX_DIMS);
        return false;
    }
    if (axes.n == 0)
        *mask = (1u << x->shape.ndim) - 1u;
    for (i = 0; i < axes.n; i++) {
        int axis = axes.axis[i];
        if (!dvti_axis(function, &axis, x))
            return false;
        if (*mask & 1u << axis) {
            dvti_fail(DVT_ERR_AXIS, "%s: axis %d of %s is named twice; name each axis once",
                      function, axes.axis[i], dvti_describe(x));
            return false;
        }
        *mask |= 1u << axis;
    }
    return true;
}

DVTI_FN bool dvti_choice(const char *function, const char *argument, int value, const char *zero,
                         const char *one) {
    if (value == 0 || value == 1)
        return true;
    dvti_fail(DVT_ERR_VALUE, "%s: %s is %d; expected %s or %s", function, argument, value, zero,
              one);
    return false;
}
