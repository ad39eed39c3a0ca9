/* Losses of values, one label for each, and their shared helpers. A loss has one value per sample
   and is composed of recorded operations. Labels lose their history, so gradients flow into the
   prediction only. Losses of 16-bit predictions are computed in float32 and rounded once. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

DVTI_FN bool dvti_loss_check(const char *name, dvt_array *prediction, dvt_array *label) {
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

DVTI_FN dvt_array *dvti_loss_reduce(dvt_array *x, dvt_array *(*reduce)(dvt_array *, dvt_axes)) {
    dvt_axes axes;
    int i;
    if (!x || x->shape.ndim < 2)
        return x;
    memset(&axes, 0, sizeof axes);
    for (i = 1; i < x->shape.ndim; i++)
        axes.axis[axes.n++] = i;
    return reduce(x, axes);
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

/* ---- one function for each element ---- */
/* What a loss reads besides prediction and label. */
typedef struct dvti_loss_with {
    double number;
    dvt_array *array;
} dvti_loss_with;

static dvt_array *dvti_loss_l1(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    (void)with;
    return dvt_abs(dvt_sub(p, l));
}

static dvt_array *dvti_loss_l2(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    (void)with;
    return dvt_mul_scalar(dvt_square(dvt_sub(p, l)), 0.5);
}

/* Computes relu(p) - p l + log(1 + exp(-|p|)) as softplus(p) - p l, whose gradient is also correct
   at 0. */
static dvt_array *dvti_loss_sigmoid_bce(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    (void)with;
    return dvt_sub(dvt_softplus(p), dvt_mul(p, l));
}

/* Computes (1 - l) p + (1 + (w - 1) l) softplus(-p). */
static dvt_array *dvti_loss_sigmoid_bce_weighted(dvt_array *p, dvt_array *l,
                                                 const dvti_loss_with *with) {
    dvt_array *factor, *a;
    l = dvti_compute_float(l);
    factor = dvt_mul(dvt_sub_scalar(with->array, 1), l);
    a = dvt_mul(dvt_scalar_sub(1, l), p);
    return dvt_add(a, dvt_mul(dvt_add_scalar(factor, 1), dvt_softplus(dvt_neg(p))));
}

static dvt_array *dvti_loss_huber(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    const double rho = with->number;
    dvt_array *d = dvt_sub(p, l), *size = dvt_abs(d);
    dvt_array *inside = dvt_mul_scalar(dvt_square(d), 0.5 / rho);
    return dvt_where(dvt_greater_scalar(size, rho), dvt_sub_scalar(size, 0.5 * rho), inside);
}

/* Where l is 0 the term is 0, also for a p of -infinity. */
static dvt_array *dvti_loss_kl_div(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    dvt_array *y;
    l = dvti_wide_float(l);
    p = with->number != 0 ? p : dvt_log_softmax(p, -1);
    y = dvt_mul(l, dvt_sub(dvt_log(l), p));
    return dvt_where_scalar(dvt_greater_scalar(l, 0), y, 0);
}

static dvt_array *dvti_loss_hinge(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    return dvt_relu(dvt_scalar_sub(with->number, dvt_mul(p, l)));
}

static dvt_array *dvti_loss_squared_hinge(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    return dvt_square(dvti_loss_hinge(p, l, with));
}

static dvt_array *dvti_loss_poisson_nll(dvt_array *p, dvt_array *l, const dvti_loss_with *with) {
    if (with->number != 0)
        return dvt_sub(dvt_exp(p), dvt_mul(l, p));
    return dvt_sub(p, dvt_mul(l, dvt_log(dvt_add_scalar(p, 1e-8))));
}

static dvt_array *dvti_loss_of(const char *name,
                               dvt_array *(*each)(dvt_array *, dvt_array *, const dvti_loss_with *),
                               dvt_array *prediction, dvt_array *label, double number,
                               dvt_array *array) {
    dvti_loss_with with;
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
    with.number = number;
    with.array = array;
    mode = dvti_float_mode_begin();
    loss = prediction ? dvti_loss_reduce(each(prediction, label, &with), dvt_mean) : NULL;
    dvti_float_mode_end(&mode);
    loss = loss ? dvt_as_in_dtype(loss, dtype) : NULL;
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

static bool dvti_loss_finite(const char *name, const char *what, double value) {
    if (value - value == 0)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected a finite number", name, what, value);
    return false;
}

DVT_API dvt_array *dvt_loss_l1(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_l1", dvti_loss_l1, prediction, label, 0, NULL);
}

DVT_API dvt_array *dvt_loss_l2(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_l2", dvti_loss_l2, prediction, label, 0, NULL);
}

DVT_API dvt_array *dvt_loss_sigmoid_bce(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_loss_sigmoid_bce", dvti_loss_sigmoid_bce, prediction, label, 0, NULL);
}

DVT_API dvt_array *dvt_loss_sigmoid_bce_weighted(dvt_array *prediction, dvt_array *label,
                                                 dvt_array *pos_weight) {
    static const char *const names[] = {"prediction", "label", "pos_weight"};
    const char *name = "dvt_loss_sigmoid_bce_weighted";
    dvt_array *in[3], *weight, *loss;
    dvt_scope_guard scope;
    dvt_shape shape;
    in[0] = prediction;
    in[1] = label;
    in[2] = pos_weight;
    if (!dvti_check_named(name, in, 3, names))
        return NULL;
    if (!dvti_broadcasts(&prediction->shape, &pos_weight->shape, &shape) ||
        !dvt_shape_equal(shape, prediction->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: pos_weight is %s and prediction is %s; expected a shape that broadcasts to "
                  "prediction's, (classes,) for example",
                  name, dvti_describe(pos_weight), dvti_describe(prediction));
        return NULL;
    }
    scope = dvt_scope_begin();
    weight = dvti_compute_float(dvt_detach(pos_weight));
    loss = weight ? dvti_loss_of(name, dvti_loss_sigmoid_bce_weighted, prediction, label, 0, weight)
                  : NULL;
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

DVT_API dvt_array *dvt_loss_huber(dvt_array *prediction, dvt_array *label, double rho) {
    if (!(rho > 0) || rho - rho != 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_loss_huber: rho is %g; expected a positive number", rho);
        return NULL;
    }
    return dvti_loss_of("dvt_loss_huber", dvti_loss_huber, prediction, label, rho, NULL);
}

DVT_API dvt_array *dvt_loss_kl_div(dvt_array *prediction, dvt_array *label, bool from_logits) {
    return dvti_loss_of("dvt_loss_kl_div", dvti_loss_kl_div, prediction, label, from_logits, NULL);
}

DVT_API dvt_array *dvt_loss_hinge(dvt_array *prediction, dvt_array *label, double margin) {
    const char *name = "dvt_loss_hinge";
    return dvti_loss_finite(name, "margin", margin)
               ? dvti_loss_of(name, dvti_loss_hinge, prediction, label, margin, NULL)
               : NULL;
}

DVT_API dvt_array *dvt_loss_squared_hinge(dvt_array *prediction, dvt_array *label, double margin) {
    const char *name = "dvt_loss_squared_hinge";
    return dvti_loss_finite(name, "margin", margin)
               ? dvti_loss_of(name, dvti_loss_squared_hinge, prediction, label, margin, NULL)
               : NULL;
}

DVT_API dvt_array *dvt_loss_poisson_nll(dvt_array *prediction, dvt_array *label, bool from_logits) {
    return dvti_loss_of("dvt_loss_poisson_nll", dvti_loss_poisson_nll, prediction, label,
                        from_logits, NULL);
}
