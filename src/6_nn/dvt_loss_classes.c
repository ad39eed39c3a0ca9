/* Losses of classes: softmax cross-entropy and the negative log-likelihood. Labels are class
   numbers or probabilities. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

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

/* The state of one call: options whose share of smoothing is split into two factors. */
typedef struct dvti_classes {
    const char *name;
    const dvt_cross_entropy_options *options;
    dvt_array *prediction, *label, *weight; /* weight may be NULL */
    dvt_array *log_p;                       /* NULL when fused */
    bool fused;                             /* one launch computes the logarithms and picks */
    double own, other;                      /* factors on the label's term and on every class's */
} dvti_classes;

static dvt_array *dvti_classes_weighted(const dvti_classes *c, dvt_array *x) {
    return c->weight ? dvt_mul(x, c->weight) : x;
}

/* Returns the loss of labels that are probabilities. */
static dvt_array *dvti_classes_shares(const dvti_classes *c) {
    dvt_array *label = c->label;
    if (c->other > 0)
        label = dvt_add_scalar(dvt_mul_scalar(label, c->own), c->other);
    return dvt_neg(dvt_sum(dvti_classes_weighted(c, dvt_mul(c->log_p, label)), DVT_AXES(-1)));
}

/* Returns the loss of labels that are class numbers. */
static dvt_array *dvti_classes_numbers(const dvti_classes *c) {
    dvt_array *loss = c->fused ? dvti_cross_entropy(c->name, c->prediction, c->label)
                               : dvt_neg(dvt_pick(c->log_p, c->label, DVT_AXES(-1))),
              *even;
    if (c->weight && loss)
        loss = dvt_mul(loss, dvt_reshape(dvt_take(c->weight, c->label, 0), loss->shape));
    if (c->other > 0) {
        even = dvt_sum(dvti_classes_weighted(c, c->log_p), DVT_AXES(-1));
        loss = dvt_sub(dvt_mul_scalar(loss, c->own), dvt_mul_scalar(even, c->other));
    }
    return loss;
}

/* Checks that class numbers are 0 .. classes - 1 where reading them is free. A negative index would
   silently train on the wrong class. The comparisons are false for NaN. On a device the index is
   clamped, as dvt_take documents. `given` has the numbers as the caller wrote them. */
static bool dvti_classes_in_range(const char *name, dvt_array *prediction, dvt_array *label,
                                  const dvt_array *given) {
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
                          name, dvti_describe(given), dvt_item(low), dvt_item(high),
                          dvti_range_text(0, classes - 1), dvti_describe(prediction));
                good = false;
            }
        }
    }
    return good;
}

/* Divides the sum of each sample's terms by the number of its positions that count. */
static dvt_array *dvti_classes_mean(dvt_array *loss, dvt_array *counted) {
    dvt_array *n;
    if (!counted || !loss)
        return dvti_loss_reduce(loss, dvt_mean);
    counted = dvt_reshape(counted, loss->shape);
    loss = dvt_where_scalar(counted, loss, 0);
    if (!loss || loss->shape.ndim < 2)
        return loss;
    n = dvti_loss_reduce(dvt_as_in_dtype(counted, loss->dtype), dvt_sum);
    return dvt_div(dvti_loss_reduce(loss, dvt_sum), dvt_maximum_scalar(n, 1));
}

static DVTI_NOINLINE dvt_array *dvti_classes_loss(dvti_classes *c, dvt_array *prediction,
                                                  dvt_array *label, bool dense) {
    const dvt_cross_entropy_options *o = c->options;
    dvt_dtype dtype = dvti_float_dtype(prediction->dtype);
    dvt_array *counted = NULL, *loss;
    if (dense)
        dtype = dvt_promote(dtype, label->dtype);
    c->label = dvt_detach(label);
    if (o->ignore) {
        if (!dvt_dtype_is_float(label->dtype))
            c->label = dvt_as_in_dtype(c->label, DVT_I64); /* -1 as uint8 would be 255 */
        counted = dvt_not_equal_scalar(c->label, (double)o->ignore_index);
        c->label = dvt_where_scalar(counted, c->label, 0);
    }
    if (!c->label || (!dense && !dvti_classes_in_range(c->name, prediction, c->label, label)))
        return NULL;
    if (!dense && !dvt_dtype_is_int(c->label->dtype))
        c->label = dvt_as_in_dtype(c->label, DVT_I64);
    prediction = dvti_compute_float(prediction);
    if (!prediction || !c->label)
        return NULL;
    c->prediction = prediction;
    c->other = o->label_smoothing / (double)prediction->shape.dim[prediction->shape.ndim - 1];
    c->fused = !dense && !o->from_logits && !(c->other > 0) &&
               dvti_cross_entropy_fits(prediction, c->label);
    c->log_p = o->from_logits ? prediction : c->fused ? NULL : dvt_log_softmax(prediction, -1);
    if (!c->log_p && !c->fused)
        return NULL;
    if (o->class_weight &&
        !(c->weight = dvt_as_in_dtype(dvt_detach(o->class_weight), prediction->dtype)))
        return NULL;
    c->own = 1 - o->label_smoothing;
    loss = dense ? dvti_classes_shares(c) : dvti_classes_numbers(c);
    return dvt_as_in_dtype(dvti_classes_mean(loss, counted), dtype);
}

static bool dvti_classes_options_ok(const char *name, const dvt_cross_entropy_options *o,
                                    dvt_array *prediction, bool dense) {
    static const char *const names[] = {"prediction", "options->class_weight"};
    dvt_array *in[2];
    int64_t classes = prediction->shape.dim[prediction->shape.ndim - 1];
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1)) {
        dvti_fail(DVT_ERR_RANGE, "%s: label_smoothing is %g; expected 0 to 1", name,
                  o->label_smoothing);
        return false;
    }
    if (o->ignore && dense) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: ignore is set and the labels are probabilities; expected class numbers: "
                  "multiply the loss by a mask instead",
                  name);
        return false;
    }
    if (!o->class_weight)
        return true;
    in[0] = prediction;
    in[1] = o->class_weight;
    if (!dvti_check_named(name, in, 2, names))
        return false;
    if (o->class_weight->shape.ndim == 1 && o->class_weight->shape.dim[0] == classes)
        return true;
    dvti_fail(DVT_ERR_SHAPE, "%s: class_weight is %s; expected shape (%lld,), one factor per class",
              name, dvti_describe(o->class_weight), (long long)classes);
    return false;
}

static dvt_array *dvti_classes_call(const char *name, dvt_array *prediction, dvt_array *label,
                                    const dvt_cross_entropy_options *options) {
    dvti_float_mode mode;
    dvt_scope_guard scope;
    dvti_classes c;
    dvt_array *loss;
    bool dense;
    if (!dvti_loss_check(name, prediction, label))
        return NULL;
    dense = dvt_shape_equal(prediction->shape, label->shape);
    if (prediction->shape.ndim < 2 || (!dense && !dvti_is_class_numbers(prediction, label))) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: prediction is %s and label is %s; expected a prediction (N, ..., classes), "
                  "and class numbers (N, ...) or probabilities of its shape",
                  name, dvti_describe(prediction), dvti_describe(label));
        return NULL;
    }
    if (!dvti_classes_options_ok(name, options, prediction, dense))
        return NULL;
    memset(&c, 0, sizeof c);
    c.name = name;
    c.options = options;
    scope = dvt_scope_begin();
    mode = dvti_float_mode_begin();
    loss = dvti_classes_loss(&c, prediction, label, dense);
    dvti_float_mode_end(&mode);
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

static const dvt_cross_entropy_options dvti_classes_default = {false, 0, NULL, false, 0};

DVT_API dvt_array *dvt_loss_softmax_cross_entropy(dvt_array *prediction, dvt_array *label) {
    return dvti_classes_call("dvt_loss_softmax_cross_entropy", prediction, label,
                             &dvti_classes_default);
}

DVT_API dvt_array *dvt_loss_softmax_cross_entropy_with(dvt_array *prediction, dvt_array *label,
                                                       const dvt_cross_entropy_options *options) {
    const char *name = "dvt_loss_softmax_cross_entropy_with";
    if (!options)
        options = &dvti_classes_default;
    else if (!dvti_optional(name, "options->class_weight", options->class_weight))
        return NULL;
    return dvti_classes_call(name, prediction, label, options);
}

DVT_API dvt_array *dvt_loss_nll(dvt_array *prediction, dvt_array *label) {
    dvt_cross_entropy_options options = dvti_classes_default;
    options.from_logits = true;
    return dvti_classes_call("dvt_loss_nll", prediction, label, &options);
}
