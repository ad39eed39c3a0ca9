/* Losses of embeddings: triplet and cosine. Gradients flow into all embeddings. */
#include "6_nn/dvt_nn_internal.h"

/* Checks three arrays, of which the first `alike` have one shape with at least one axis. */
static bool dvti_loss_embedding_ok(const char *name, dvt_array *const *in, const char *const *names,
                                   int alike, double margin) {
    int i;
    if (!dvti_check_named(name, in, 3, names))
        return false;
    for (i = 0; i < alike; i++)
        if (in[0]->shape.ndim < 1 || !dvt_shape_equal(in[i]->shape, in[0]->shape)) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: %s is %s and %s is %s; expected the same shape, one row per sample: "
                      "(N, features)",
                      name, names[0], dvti_describe(in[0]), names[i ? i : 1],
                      dvti_describe(in[i ? i : 1]));
            return false;
        }
    if (margin - margin == 0)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: margin is %g; expected a finite number", name, margin);
    return false;
}

/* Differences of integers wrap, so they become float32. */
static dvt_array *dvti_loss_distance(dvt_array *a, dvt_array *b) {
    return dvt_square(dvt_sub(dvti_compute_float(a), dvti_compute_float(b)));
}

DVT_API dvt_array *dvt_loss_triplet(dvt_array *prediction, dvt_array *positive, dvt_array *negative,
                                    double margin) {
    static const char *const names[] = {"prediction", "positive", "negative"};
    dvt_array *in[3], *loss;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = prediction;
    in[1] = positive;
    in[2] = negative;
    if (!dvti_loss_embedding_ok("dvt_loss_triplet", in, names, 3, margin))
        return NULL;
    scope = dvt_scope_begin();
    dtype = dvt_promote(dvt_promote(prediction->dtype, positive->dtype), negative->dtype);
    loss =
        dvt_sub(dvti_loss_distance(positive, prediction), dvti_loss_distance(negative, prediction));
    loss = dvt_relu(dvt_add_scalar(dvti_loss_reduce(loss, dvt_sum), margin));
    loss = dvt_as_in_dtype(loss, dvti_float_dtype(dtype));
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

/* Returns 1 / |x|. The bound makes the gradient at a vector of zeros finite. */
static dvt_array *dvti_loss_inverse_length(dvt_array *x) {
    dvt_array *sum = dvt_sum(dvt_square(x), DVT_AXES(-1));
    return dvt_rsqrt(dvt_maximum_scalar(sum, 1e-24));
}

static dvt_array *dvti_loss_cosine(dvt_array *a, dvt_array *b, dvt_array *label, double margin) {
    dvt_array *cosine, *same;
    a = dvti_compute_float(a);
    b = dvti_compute_float(b);
    cosine = dvt_sum(dvt_mul(a, b), DVT_AXES(-1));
    cosine = dvt_mul(dvt_mul(cosine, dvti_loss_inverse_length(a)), dvti_loss_inverse_length(b));
    if (!cosine)
        return NULL;
    same = dvt_reshape(dvt_equal_scalar(label, 1), cosine->shape);
    return dvt_where(same, dvt_scalar_sub(1, cosine), dvt_relu(dvt_sub_scalar(cosine, margin)));
}

DVT_API dvt_array *dvt_loss_cosine_embedding(dvt_array *a, dvt_array *b, dvt_array *label,
                                             double margin) {
    static const char *const names[] = {"a", "b", "label"};
    const char *name = "dvt_loss_cosine_embedding";
    dvt_array *in[3], *loss;
    dvt_scope_guard scope;
    dvt_shape rows;
    in[0] = a;
    in[1] = b;
    in[2] = label;
    if (!dvti_loss_embedding_ok(name, in, names, 2, margin))
        return NULL;
    rows = a->shape;
    rows.ndim--;
    if (rows.ndim < 1 || dvt_shape_size(rows) != dvt_size(label)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: a is %s and label is %s; expected (N, ..., features) and one label for each "
                  "row",
                  name, dvti_describe(a), dvti_describe(label));
        return NULL;
    }
    scope = dvt_scope_begin();
    loss = dvti_loss_reduce(dvti_loss_cosine(a, b, dvt_detach(label), margin), dvt_mean);
    loss = dvt_as_in_dtype(loss, dvti_float_dtype(dvt_promote(a->dtype, b->dtype)));
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}
