/* Losses: one value per sample, composed of recorded operations. Labels lose their history, so
   gradients flow into the prediction only. Losses of 16-bit predictions are computed in float32 and
   rounded once. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

/* Checks that both are given and on one context, and that the prediction has a first axis to
   keep. */
static bool dvti_loss_check(const char *name, dvt_array *prediction, dvt_array *label) {
    static const char *const names[] = {"prediction", "label"};
    dvt_array *in[2];
    in[0] = prediction;
    in[1] = label;
    if (!dvti_check_named(name, in, 2, names))
        return false;
    if (prediction->shape.ndim > 0)
        return true;
    dvti_fail(DVT_ERR_SHAPE, "%s: prediction is %s; expected one value or row per sample: (N, ...)",
              name, dvti_describe(prediction));
    return false;
}

/* Returns the mean over all axes but the first. */
static dvt_array *dvti_loss_mean(dvt_array *x) {
    dvt_axes axes;
    int i;
    if (!x || x->shape.ndim < 2)
        return x;
    memset(&axes, 0, sizeof axes);
    for (i = 1; i < x->shape.ndim; i++)
        axes.axis[axes.n++] = i;
    return dvt_mean(x, axes);
}

/* Returns the label without history, in the prediction's shape: (N) and (N, 1) are the same labels,
   as in Gluon. */
static dvt_array *dvti_loss_label(const char *name, dvt_array *prediction, dvt_array *label) {
    if (dvt_size(prediction) != dvt_size(label)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: prediction is %s and label is %s; expected as many labels as values in "
                  "prediction: give labels of its shape, or dvt_reshape or dvt_broadcast_to them",
                  name, dvti_describe(prediction), dvti_describe(label));
        return NULL;
    }
    label = dvt_detach(label);
    return label && !dvt_shape_equal(label->shape, prediction->shape)
               ? dvt_reshape(label, prediction->shape)
               : label;
}

/* ---- softmax cross-entropy ---- */
/* Returns whether the label holds class numbers: its shape is the prediction's without its last
   axis, or with extent 1 there. */
static bool dvti_is_class_numbers(const dvt_array *prediction, const dvt_array *label) {
    int i, n = prediction->shape.ndim;
    if (label->shape.ndim != n - 1 && !(label->shape.ndim == n && label->shape.dim[n - 1] == 1))
        return false;
    for (i = 0; i < n - 1; i++)
        if (label->shape.dim[i] != prediction->shape.dim[i])
            return false;
    return true;
}

static dvt_array *dvti_loss_cross_entropy(dvt_array *prediction, dvt_array *label) {
    bool dense = dvt_shape_equal(prediction->shape, label->shape);
    dvt_dtype dtype = dvti_float_dtype(prediction->dtype);
    dvt_array *log_p, *loss;
    if (dense)
        dtype = dvt_promote(dtype, label->dtype);
    if (!(label = dvt_detach(label)) || !(prediction = dvti_wide_float(prediction)) ||
        !(log_p = dvt_log_softmax(prediction, -1)))
        return NULL;
    if (dense) {
        loss = dvt_mul(log_p, label);
        loss = loss ? dvt_sum(loss, DVT_AXES(-1)) : NULL;
    } else {
        if (!dvt_dtype_is_int(label->dtype))
            label = dvt_as_in_dtype(label, DVT_I64);
        loss = label ? dvt_pick(log_p, label, DVT_AXES(-1)) : NULL;
    }
    loss = loss ? dvt_neg(loss) : NULL;
    loss = dvti_loss_mean(loss);
    return loss ? dvt_as_in_dtype(loss, dtype) : NULL;
}

/* Checks that class numbers are 0 .. classes - 1 where reading them is free. A negative index would
   silently train on the wrong class. The comparisons are false for NaN. On a device the index is
   clamped, as dvt_take documents. */
static bool dvti_classes_in_range(const char *name, dvt_array *prediction, dvt_array *label) {
    int64_t classes = prediction->shape.dim[prediction->shape.ndim - 1];
    bool good = true;
    if (!dvti_is_host_memory(label->storage->ctx) || dvt_size(label) == 0)
        return true;
    DVT_MODE_SCOPE(DVT_OFF, DVT_UNCHANGED) {
        DVT_SCOPE {
            dvt_array *low = dvt_min(label, DVT_ALL), *high = dvt_max(label, DVT_ALL);
            good = low && high;
            if (good && !(dvt_item(low) >= 0 && dvt_item(high) < (double)classes)) {
                dvti_fail(DVT_ERR_RANGE,
                          "%s: label (%s) has class numbers from %g to %g; expected %s, for "
                          "the last axis of prediction (%s)",
                          name, dvti_describe(label), dvt_item(low), dvt_item(high),
                          dvti_range_text(0, classes - 1), dvti_describe(prediction));
                good = false;
            }
        }
    }
    return good;
}

DVT_API dvt_array *dvt_loss_softmax_cross_entropy(dvt_array *prediction, dvt_array *label) {
    const char *name = "dvt_loss_softmax_cross_entropy";
    dvt_scope_guard scope;
    dvt_array *loss;
    if (!dvti_loss_check(name, prediction, label))
        return NULL;
    if (prediction->shape.ndim < 2 || (!dvt_shape_equal(prediction->shape, label->shape) &&
                                       !dvti_is_class_numbers(prediction, label))) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: prediction is %s and label is %s; expected a prediction (N, ..., classes), "
                  "and class numbers (N, ...) or probabilities of its shape",
                  name, dvti_describe(prediction), dvti_describe(label));
        return NULL;
    }
    if (!dvt_shape_equal(prediction->shape, label->shape) &&
        !dvti_classes_in_range(name, prediction, label))
        return NULL;
    scope = dvt_scope_begin();
    loss = dvti_loss_cross_entropy(prediction, label);
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

/* ---- losses of a difference ---- */
static dvt_array *dvti_loss_l1(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *d = dvt_sub(p, l);
    (void)unused;
    return d ? dvt_abs(d) : NULL;
}

static dvt_array *dvti_loss_l2(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *d = dvt_sub(p, l);
    (void)unused;
    d = d ? dvt_square(d) : NULL;
    return d ? dvt_mul_scalar(d, 0.5) : NULL;
}

/* Computes relu(p) - p l + log(1 + exp(-|p|)) as softplus(p) - p l, whose gradient is also correct
   at 0. */
static dvt_array *dvti_loss_sigmoid_bce(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *a = dvt_softplus(p), *b = a ? dvt_mul(p, l) : NULL;
    (void)unused;
    return b ? dvt_sub(a, b) : NULL;
}

static dvt_array *dvti_loss_huber(dvt_array *p, dvt_array *l, double rho) {
    dvt_array *d = dvt_sub(p, l), *size = d ? dvt_abs(d) : NULL, *inside, *outside, *is_outside;
    if (!size)
        return NULL;
    inside = dvt_square(d);
    inside = inside ? dvt_mul_scalar(inside, 0.5 / rho) : NULL;
    outside = inside ? dvt_sub_scalar(size, 0.5 * rho) : NULL;
    is_outside = outside ? dvt_greater_scalar(size, rho) : NULL;
    return is_outside ? dvt_where(is_outside, outside, inside) : NULL;
}

static dvt_array *dvti_loss_of(const char *name,
                               dvt_array *(*each)(dvt_array *, dvt_array *, double),
                               dvt_array *prediction, dvt_array *label, double rho) {
    dvti_float_mode mode;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    dvt_array *loss;
    if (!dvti_loss_check(name, prediction, label))
        return NULL;
    scope = dvt_scope_begin();
    dtype = dvt_promote(dvti_float_dtype(prediction->dtype), label->dtype);
    label = dvti_loss_label(name, prediction, label);
    /* Differences of integers wrap. */
    if (label && !dvt_dtype_is_float(prediction->dtype))
        prediction = dvt_as_in_dtype(prediction, DVT_F32);
    prediction = label ? dvti_wide_float(prediction) : NULL;
    mode = dvti_float_mode_begin();
    loss = prediction ? dvti_loss_mean(each(prediction, label, rho)) : NULL;
    dvti_float_mode_end(&mode);
    loss = loss ? dvt_as_in_dtype(loss, dtype) : NULL;
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

DVT_API dvt_array *dvt_loss_l1(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_l1", dvti_loss_l1, prediction, label, 0);
}

DVT_API dvt_array *dvt_loss_l2(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_l2", dvti_loss_l2, prediction, label, 0);
}

DVT_API dvt_array *dvt_loss_sigmoid_bce(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_sigmoid_bce", dvti_loss_sigmoid_bce, prediction, label, 0);
}

DVT_API dvt_array *dvt_loss_huber(dvt_array *prediction, dvt_array *label, double rho) {
    if (!(rho > 0) || rho - rho != 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_loss_huber: rho is %g; expected a positive number", rho);
        return NULL;
    }
    return dvti_loss_of("dvt_loss_huber", dvti_loss_huber, prediction, label, rho);
}
