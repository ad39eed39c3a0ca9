/* BatchNorm, LayerNorm, RMSNorm, GroupNorm, InstanceNorm. */
#include "6_nn/dvt_nn_internal.h"

/* Returns the parameter in float32, also in a net with mixed precision. */
static dvt_array *dvti_norm_data(dvt_block *self, const char *name, dvt_ctx ctx) {
    dvt_param *p = dvt_block_param(self, name);
    return p ? dvt_param_data(p, ctx) : NULL;
}

/* Returns y in the dtype of x in a net with mixed precision, where float32 parameters would make
   everything after this block float32. Returns NULL for NULL. */
static dvt_array *dvti_norm_result(dvt_array *y, const dvt_array *x) {
    return y && dvti_region_mixed() ? dvt_as_in_dtype(y, x->dtype) : y;
}

/* ---- BatchNorm ---- */
/* Checks that x is a float array with this axis, of extent `channels` unless that is 0. */
static bool dvti_batch_norm_accepts(const dvt_array *x, int axis, int64_t channels) {
    int ndim = x->shape.ndim, at = axis < 0 ? axis + ndim : axis;
    bool there = at >= 0 && at < ndim;
    if (!there || x->shape.dim[at] == 0 || (channels && x->shape.dim[at] != channels)) {
        if (channels)
            dvti_fail(there ? DVT_ERR_SHAPE : DVT_ERR_AXIS,
                      "x is %s; expected an extent of %lld on axis %d: transpose it, or make the "
                      "block for other channels",
                      dvti_describe(x), (long long)channels, axis);
        else
            dvti_fail(there ? DVT_ERR_SHAPE : DVT_ERR_AXIS,
                      "in_channels cannot be inferred from x %s; expected elements on axis %d",
                      dvti_describe(x), axis);
        return false;
    }
    if (dvt_dtype_is_float(x->dtype))
        return true;
    dvti_fail(DVT_ERR_DTYPE, "x is %s; expected a float dtype: convert it with dvt_astype",
              dvti_describe(x));
    return false;
}

/* Normalizes. Without scale, gamma counts as 1, and without center, beta counts as 0, whatever a
   file stored there. */
static dvt_array *dvti_batch_norm_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvt_nn_batch_norm_desc *d = (const dvt_nn_batch_norm_desc *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *gamma = dvti_norm_data(self, "gamma", ctx);
    dvt_array *beta = gamma ? dvti_norm_data(self, "beta", ctx) : NULL;
    dvt_array *mean = beta ? dvti_norm_data(self, "running_mean", ctx) : NULL;
    dvt_array *var = mean ? dvti_norm_data(self, "running_var", ctx) : NULL;
    if (var && d->no_scale)
        gamma = dvt_ones_like(gamma);
    if (var && gamma && d->no_center)
        beta = dvt_zeros_like(beta);
    if (!var || !gamma || !beta || !dvti_batch_norm_accepts(x, d->axis, mean->shape.dim[0]))
        return NULL;
    return dvti_norm_result(
        dvt_batch_norm(x, gamma, beta, mean, var, d->axis, d->momentum, d->epsilon), x);
}

static dvt_status dvti_batch_norm_infer(dvt_block *self, void *user, dvt_array *x) {
    int axis = ((const dvt_nn_batch_norm_desc *)user)->axis;
    dvt_status status = DVT_OK;
    size_t i;
    if (!dvti_batch_norm_accepts(x, axis, 0))
        return dvti_failure();
    if (axis < 0)
        axis += x->shape.ndim;
    for (i = 0; i < self->n_param && status == DVT_OK; i++)
        status = dvt_param_set_shape(self->param[i], DVT_SHAPE(x->shape.dim[axis]));
    return status;
}

static size_t dvti_batch_norm_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvt_nn_batch_norm_desc *d = (const dvt_nn_batch_norm_desc *)user;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text,
                  "BatchNorm(axis=%d, eps=%s, momentum=%s, fix_gamma=%s, use_global_stats=False, "
                  "in_channels=",
                  d->axis, dvti_python_number(d->epsilon), dvti_python_number(d->momentum),
                  d->no_scale ? "True" : "False");
    if (shape.dim[0])
        dvti_text_add(&text, "%lld)", (long long)shape.dim[0]);
    else
        dvti_text_add(&text, "None)");
    return text.length;
}

static bool dvti_batch_norm_check(const char *function, const dvt_nn_batch_norm_desc *d) {
    if (!(d->momentum >= 0 && d->momentum <= 1) || !(d->epsilon > 0) ||
        d->epsilon - d->epsilon != 0 || d->in_channels < 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: momentum %g, epsilon %g, in_channels %lld; expected 0 to 1, a positive "
                  "number, and 0 (inferred) or more",
                  function, d->momentum, d->epsilon, (long long)d->in_channels);
        return false;
    }
    if (d->axis < -DVT_MAX_DIMS || d->axis >= DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_AXIS, "%s: axis %d; expected %d to %d", function, d->axis, -DVT_MAX_DIMS,
                  DVT_MAX_DIMS - 1);
        return false;
    }
    return true;
}

/* Adds gamma or beta; `fixed` parameters have no gradient. */
static bool dvti_norm_add(dvt_block *block, const char *name, int64_t extent, bool fixed) {
    dvt_init none;
    memset(&none, 0, sizeof none);
    return fixed ? dvti_block_add_fixed(block, name, DVT_SHAPE(extent), DVT_F32) != NULL
                 : dvt_block_add_param(block, name, DVT_SHAPE(extent), DVT_F32, none) != NULL;
}

static dvt_block *dvti_batch_norm_make(const char *function, dvt_nn_batch_norm_desc d) {
    dvt_block_desc desc;
    dvt_nn_batch_norm_desc *state;
    dvt_block *block;
    if (d.axis == 0)
        d.axis = 1;
    if (d.momentum == 0)
        d.momentum = 0.9;
    if (d.epsilon == 0)
        d.epsilon = 1e-5;
    if (!dvti_batch_norm_check(function, &d))
        return NULL;
    if (!(state = (dvt_nn_batch_norm_desc *)dvti_alloc(sizeof *state))) {
        dvti_fail_memory(function, (int64_t)sizeof *state);
        return NULL;
    }
    *state = d;
    memset(&desc, 0, sizeof desc);
    desc.kind = "BatchNorm";
    desc.forward = dvti_batch_norm_forward;
    desc.infer = dvti_batch_norm_infer;
    desc.describe = dvti_batch_norm_describe;
    block = dvti_block_make(function, &desc, "batchnorm", state);
    if (block && (!dvti_norm_add(block, "gamma", d.in_channels, d.no_scale) ||
                  !dvti_norm_add(block, "beta", d.in_channels, d.no_center) ||
                  !dvti_norm_add(block, "running_mean", d.in_channels, true) ||
                  !dvti_norm_add(block, "running_var", d.in_channels, true)))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_nn_batch_norm_with(const dvt_nn_batch_norm_desc *desc) {
    if (desc)
        return dvti_batch_norm_make("dvt_nn_batch_norm_with", *desc);
    dvti_null("dvt_nn_batch_norm_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_nn_batch_norm(void) {
    dvt_nn_batch_norm_desc desc;
    memset(&desc, 0, sizeof desc);
    return dvti_batch_norm_make("dvt_nn_batch_norm", desc);
}

/* ---- LayerNorm ---- */
static dvt_array *dvti_layer_norm_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *gamma = dvti_norm_data(self, "gamma", dvt_ctx_of(x));
    dvt_array *beta = gamma ? dvti_norm_data(self, "beta", dvt_ctx_of(x)) : NULL;
    (void)user;
    if (beta && (x->shape.ndim < 1 || x->shape.dim[x->shape.ndim - 1] != beta->shape.dim[0])) {
        dvti_fail(DVT_ERR_SHAPE,
                  "x is %s; expected (..., %lld): reshape it, or make the block for other sizes",
                  dvti_describe(x), (long long)beta->shape.dim[0]);
        return NULL;
    }
    return beta ? dvti_norm_result(dvt_layer_norm(x, gamma, beta, 1e-5), x) : NULL;
}

static dvt_status dvti_layer_norm_infer(dvt_block *self, void *user, dvt_array *x) {
    int64_t extent = x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 0;
    dvt_status status;
    (void)user;
    if (extent == 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "in_channels cannot be inferred from x %s; expected a last axis with "
                         "elements: (..., features)",
                         dvti_describe(x));
    status = dvt_param_set_shape(self->param[0], DVT_SHAPE(extent));
    return status == DVT_OK ? dvt_param_set_shape(self->param[1], DVT_SHAPE(extent)) : status;
}

/* Describes the block. Unlike for BatchNorm, Gluon prints an unknown extent as 0 here. */
static size_t dvti_layer_norm_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)user;
    dvti_text_add(&text, "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=%lld)",
                  (long long)dvt_param_shape(self->param[0]).dim[0]);
    return text.length;
}

DVT_API dvt_block *dvt_nn_layer_norm(void) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "LayerNorm";
    desc.forward = dvti_layer_norm_forward;
    desc.infer = dvti_layer_norm_infer;
    desc.describe = dvti_layer_norm_describe;
    block = dvti_block_make("dvt_nn_layer_norm", &desc, "layernorm", NULL);
    if (block &&
        (!dvti_norm_add(block, "gamma", 0, false) || !dvti_norm_add(block, "beta", 0, false)))
        return dvti_block_discard(block);
    return block;
}

/* ---- RMSNorm, GroupNorm, InstanceNorm ---- */
typedef struct dvti_norm_block {
    int axis;   /* of gamma and beta: -1 in RMSNorm, else 1 */
    int groups; /* GroupNorm only */
    double epsilon;
    bool no_scale;
} dvti_norm_block;

/* Returns the extent of gamma's axis; 0 when x has no such axis, or groups do not divide it. */
static int64_t dvti_norm_block_extent(const dvti_norm_block *d, const dvt_array *x) {
    int axis = d->axis < 0 ? x->shape.ndim - 1 : d->axis;
    int64_t extent = axis >= 0 && axis < x->shape.ndim ? x->shape.dim[axis] : 0;
    return d->groups && extent % d->groups ? 0 : extent;
}

static dvt_array *dvti_norm_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_norm_block *d = (const dvti_norm_block *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *gamma = dvti_norm_data(self, "gamma", ctx), *beta = NULL;
    if (!gamma || (self->n_param > 1 && !(beta = dvti_norm_data(self, "beta", ctx))))
        return NULL;
    if (dvti_norm_block_extent(d, x) != gamma->shape.dim[0]) {
        dvti_fail(DVT_ERR_SHAPE,
                  "x is %s; expected an extent of %lld on axis %d: transpose it, or make the block "
                  "for other sizes",
                  dvti_describe(x), (long long)gamma->shape.dim[0], d->axis);
        return NULL;
    }
    if (!beta)
        return dvti_norm_result(dvt_rms_norm(x, gamma, d->epsilon), x);
    if (d->groups)
        return dvti_norm_result(dvt_group_norm(x, d->groups, gamma, beta, d->epsilon), x);
    gamma = d->no_scale ? dvt_ones_like(gamma) : gamma;
    return gamma ? dvti_norm_result(dvt_instance_norm(x, gamma, beta, d->epsilon), x) : NULL;
}

static dvt_status dvti_norm_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvti_norm_block *d = (const dvti_norm_block *)user;
    int64_t extent = dvti_norm_block_extent(d, x);
    dvt_status status = DVT_OK;
    size_t i;
    if (extent == 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "in_channels cannot be inferred from x %s; expected elements on axis %d, "
                         "in a number that %d divides",
                         dvti_describe(x), d->axis, d->groups ? d->groups : 1);
    for (i = 0; i < self->n_param && status == DVT_OK; i++)
        status = dvt_param_set_shape(self->param[i], DVT_SHAPE(extent));
    return status;
}

static size_t dvti_norm_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvti_norm_block *d = (const dvti_norm_block *)user;
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "%s(eps=%s", self->desc.kind, dvti_python_number(d->epsilon));
    if (d->groups)
        dvti_text_add(&text, ", num_groups=%d", d->groups);
    else if (d->axis == 1)
        dvti_text_add(&text, ", axis=1");
    if (self->n_param > 1)
        dvti_text_add(&text, ", center=True, scale=%s", d->no_scale ? "False" : "True");
    dvti_text_add(&text, ", in_channels=%lld)", (long long)dvt_param_shape(self->param[0]).dim[0]);
    return text.length;
}

static dvt_block *dvti_norm_block_make(const char *function, const char *kind, const char *stem,
                                       int groups, double epsilon, bool no_scale) {
    dvti_nn_kind of = {NULL, NULL, dvti_norm_block_forward, dvti_norm_block_infer,
                       dvti_norm_block_describe};
    dvti_norm_block d;
    dvt_block *block;
    memset(&d, 0, sizeof d);
    of.kind = kind;
    of.stem = stem;
    d.axis = groups < 0 ? -1 : 1;
    d.groups = groups < 0 ? 0 : groups;
    d.epsilon = epsilon;
    d.no_scale = no_scale;
    block = dvti_nn_block(function, &of, &d, sizeof d);
    if (block && (!dvti_norm_add(block, "gamma", 0, no_scale) ||
                  (groups >= 0 && !dvti_norm_add(block, "beta", 0, false))))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_nn_rms_norm(double epsilon) {
    if (epsilon >= 0 && epsilon - epsilon == 0)
        return dvti_norm_block_make("dvt_nn_rms_norm", "RMSNorm", "rmsnorm", -1,
                                    epsilon > 0 ? epsilon : 1e-6, false);
    dvti_fail(DVT_ERR_RANGE,
              "dvt_nn_rms_norm: epsilon is %g; expected a positive number, or 0 for "
              "1e-6",
              epsilon);
    return NULL;
}

DVT_API dvt_block *dvt_nn_group_norm(int groups) {
    if (groups > 0)
        return dvti_norm_block_make("dvt_nn_group_norm", "GroupNorm", "groupnorm", groups, 1e-5,
                                    false);
    dvti_fail(DVT_ERR_RANGE, "dvt_nn_group_norm: groups is %d; expected 1 or more", groups);
    return NULL;
}

DVT_API dvt_block *dvt_nn_instance_norm(bool scale) {
    return dvti_norm_block_make("dvt_nn_instance_norm", "InstanceNorm", "instancenorm", 0, 1e-5,
                                !scale);
}
