/* Mixed precision: a net computes in 16 bits, and its parameters, gradients and files stay float32.
   The outermost forward pass of such a net is a region of its thread:

       x float32 -> 16 bits -> | blocks, with parameters in 16 bits | -> y float32

   The tape notes the loss scale of what a region records. A backward pass then scales the gradients
   that enter the region, and unscales those that leave it, wherever they do (dvti_set_loss_scale).
   7_train/dvt_loss_scale.c changes the scale. */
#include "6_nn/dvt_nn_internal.h"

static bool dvti_is_half(dvt_dtype dtype) {
    return dtype == DVT_F16 || dtype == DVT_BF16;
}

/* ---- regions ---- */
static DVTI_TLS dvti_region dvti_region_now;

static dvt_array *dvti_region_convert(dvt_array *x, dvt_dtype compute) {
    if (x->dtype != DVT_F64)
        return dvt_dtype_is_float(x->dtype) ? dvt_as_in_dtype(x, compute) : x;
    dvti_fail(DVT_ERR_DTYPE,
              "x is %s; expected float32 or 16 bits, since the net has mixed precision (%s): "
              "convert x with dvt_astype",
              dvti_describe(x), dvt_dtype_name(compute));
    return NULL;
}

DVTI_FN dvti_region dvti_region_begin(const dvt_block *net, dvt_array **x, int depth) {
    dvti_region *now = &dvti_region_now, outer;
    if (now->mixed && depth >= 0 && depth <= now->depth) { /* an exception has ended that region */
        memset(now, 0, sizeof *now);
        dvti_set_loss_scale(0);
    }
    outer = *now;
    if (!net->mixed || net->mixed == outer.mixed)
        return outer;
    if (outer.mixed) {
        dvti_fail(DVT_ERR_VALUE,
                  "it has mixed precision of its own, and is part of a net with another; switch "
                  "its own off with dvt_block_set_mixed_precision(block, DVT_F32)");
        *x = NULL;
        return outer;
    }
    now->mixed = net->mixed;
    now->depth = depth;
    now->given = *x;
    dvti_set_loss_scale(net->mixed->scaling ? net->mixed->scale : 0);
    *x = now->input = dvti_region_convert(*x, net->mixed->compute);
    return outer;
}

DVTI_FN dvt_array *dvti_region_end(const dvti_region *outer, dvt_array *y) {
    const bool ends = dvti_region_now.mixed && !outer->mixed;
    dvti_region_now = *outer;
    if (!ends)
        return y;
    dvti_set_loss_scale(0);
    return y && dvti_is_half(y->dtype) ? dvt_as_in_dtype(y, DVT_F32) : y;
}

DVTI_FN const dvti_mixed *dvti_region_mixed(void) {
    const dvti_region *now = &dvti_region_now;
    return now->mixed && dvti_forward_depth() > now->depth ? now->mixed : NULL;
}

DVTI_FN dvt_array *dvti_region_classes(dvt_array *x) {
    if (!dvti_region_mixed() || !dvti_is_half(x->dtype))
        return x;
    if (x == dvti_region_now.input)
        return dvti_region_now.given;
    dvti_fail(DVT_ERR_DTYPE,
              "x is %s in a net with mixed precision; expected integers, since 16 bits round class "
              "numbers: convert them to DVT_I64 before the net",
              dvti_describe(x));
    return NULL;
}

/* ---- parameters in 16 bits ---- */
/* The values of one copy of a parameter. They are current while neither memory was written. */
typedef struct dvti_cast {
    dvt_array *values; /* owned */
    const dvti_storage *of;
    int64_t version, own_version;
} dvti_cast;

DVTI_FN void dvti_param_drop_casts(dvt_param *p) {
    int k;
    for (k = 0; p->cast && k < p->ctxs.n; k++)
        dvti_disown(p->cast[k].values);
    dvti_free(p->cast);
    p->cast = NULL;
}

static bool dvti_cast_current(const dvti_cast *cast, const dvt_array *copy, dvt_dtype dtype) {
    return cast->values && cast->values->dtype == dtype && cast->of == copy->storage &&
           cast->version == dvti_atomic_load(&copy->storage->version) &&
           cast->own_version == dvti_atomic_load(&cast->values->storage->version);
}

static dvt_array *dvti_cast_find(const dvt_param *p, int k, dvt_dtype dtype) {
    dvt_array *values = NULL;
    dvti_params_lock(); /* several threads may compute with one net */
    if (p->cast && dvti_cast_current(&p->cast[k], p->copy[k], dtype))
        values = (dvt_array *)dvti_own(p->cast[k].values);
    dvti_params_unlock();
    return values;
}

/* Converts copy k. Replaces the old values instead of writing into them, because a tape may still
   read those. */
static dvt_array *dvti_cast_make(dvt_param *p, int k, dvt_dtype dtype) {
    dvt_array *copy = p->copy[k], *values = NULL, *old = NULL;
    dvt_scope_guard scope = dvt_scope_begin();
    dvti_cast cast;
    cast.of = copy->storage;
    cast.version = dvti_atomic_load(&copy->storage->version);
    DVT_MODE_SCOPE(DVT_OFF, DVT_UNCHANGED) {
        values = dvt_as_in_dtype(copy, dtype);
    }
    if (values)
        dvti_scope_take(values);
    dvt_scope_end(&scope);
    if (!values)
        return NULL;
    cast.values = values;
    cast.own_version = dvti_atomic_load(&values->storage->version);
    dvti_params_lock();
    if (!p->cast)
        p->cast = (dvti_cast *)dvti_alloc_zero((size_t)p->ctxs.n * sizeof *p->cast);
    if (p->cast) { /* without memory for the list, the next use converts again */
        old = p->cast[k].values;
        p->cast[k] = cast;
        dvti_own(values);
    }
    dvti_params_unlock();
    dvti_disown(old);
    return values;
}

DVTI_FN dvt_array *dvti_param_compute(dvt_param *p, dvt_ctx ctx) {
    dvt_array *copy = dvti_param_on("dvt_param_data", p, ctx), *values, *y;
    const dvti_mixed *mixed = dvti_region_mixed();
    int k = 0;
    if (!copy || !mixed || p->statistic || copy->dtype != DVT_F32)
        return copy;
    while (k < p->ctxs.n && p->copy[k] != copy)
        k++;
    if (k == p->ctxs.n) /* shapes are being inferred, on an array without memory */
        return dvt_as_in_dtype(copy, mixed->compute);
    values = dvti_cast_find(p, k, mixed->compute);
    if (!values && !(values = dvti_cast_make(p, k, mixed->compute)))
        return NULL;
    y = dvti_view_new("dvt_astype", values, values->shape, values->stride, values->offset);
    dvti_disown(values);
    return dvti_finish(y, DVTI_OP_copy, "dvt_astype", &copy, 1, NULL);
}

/* ---- setting ---- */
static void dvti_mixed_destroy(void *object) {
    dvti_free(object);
}

DVTI_FN void dvti_mixed_leave(dvt_block *block) {
    if (block->mixed && block->mixed->root == block)
        block->mixed->root = NULL;
    dvti_disown(block->mixed);
}

/* Checks that no block of the net belongs to another one with mixed precision, and that all float
   parameters are float32. */
static dvt_status dvti_mixed_check(const char *function, const dvt_block *block,
                                   const dvti_mixed *own) {
    dvt_status status = DVT_OK;
    size_t i;
    if (block->mixed && block->mixed != own && block->mixed->root)
        return dvti_fail(
            DVT_ERR_VALUE,
            "%s: a %s in the net has mixed precision already, by another call; expected "
            "one call for a whole net: switch the other off with DVT_F32",
            function, block->desc.kind);
    for (i = 0; i < block->n_param; i++) {
        const dvt_param *p = block->param[i];
        if (dvt_dtype_is_float(p->dtype) && p->dtype != DVT_F32)
            return dvti_fail(DVT_ERR_DTYPE,
                             "%s: Parameter '%s' is %s; expected float32, from which the net "
                             "computes its values in 16 bits: make the layer with DVT_F32",
                             function, dvti_param_name(p), dvt_dtype_name(p->dtype));
    }
    for (i = 0; i < block->n_child && status == DVT_OK; i++)
        status = dvti_mixed_check(function, block->child[i], own);
    return status;
}

/* Gives `mixed` to all blocks of the net; NULL takes `own` from them. */
static void dvti_mixed_spread(dvt_block *block, dvti_mixed *mixed, const dvti_mixed *own) {
    size_t i;
    if (mixed || block->mixed == own) {
        dvti_own(mixed);
        dvti_disown(block->mixed);
        block->mixed = mixed;
    }
    for (i = 0; i < block->n_param; i++)
        dvti_param_drop_casts(block->param[i]);
    for (i = 0; i < block->n_child; i++)
        dvti_mixed_spread(block->child[i], mixed, own);
}

DVTI_FN dvt_status dvti_mixed_admits(const char *function, const dvt_block *self,
                                     const dvt_block *child) {
    return self->mixed ? dvti_mixed_check(function, child, self->mixed) : DVT_OK;
}

DVTI_FN void dvti_mixed_extend(const dvt_block *self, dvt_block *child) {
    if (self->mixed)
        dvti_mixed_spread(child, self->mixed, self->mixed);
}

static void dvti_mixed_start(dvti_mixed *mixed, dvt_dtype compute) {
    mixed->compute = compute;
    mixed->scaling = compute == DVT_F16; /* the exponents of bfloat16 are those of float32 */
    mixed->fixed = false;
    mixed->scale = mixed->scaling ? 16 : 0;
    mixed->interval = 2000;
    mixed->good = mixed->skipped = 0;
}

DVT_API dvt_status dvt_block_set_mixed_precision(dvt_block *net, dvt_dtype compute) {
    static const char *const function = "dvt_block_set_mixed_precision";
    dvti_mixed *mixed;
    dvt_status status;
    if (!net)
        return dvti_null(function, "net");
    if (compute != DVT_F32 && !dvti_is_half(compute))
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: the dtype is %s; expected DVT_F16, DVT_BF16 or "
                         "DVT_F32 (off)",
                         function, dvti_dtype_ok(compute) ? dvt_dtype_name(compute) : "unknown");
    mixed = net->mixed;
    if (mixed && mixed->root && mixed->root != net)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the %s is part of a net with mixed precision; expected that net: all "
                         "its blocks compute in one dtype",
                         function, net->desc.kind);
    if (compute == DVT_F32) {
        if (mixed)
            dvti_mixed_spread(net, NULL, (dvti_mixed *)dvti_own(mixed));
        dvti_disown(mixed);
        return DVT_OK;
    }
    status = dvti_mixed_check(function, net, mixed);
    if (status != DVT_OK)
        return status;
    if (mixed && mixed->root)
        dvti_own(mixed);
    else {
        mixed = (dvti_mixed *)dvti_alloc_zero(sizeof *mixed);
        if (!mixed)
            return dvti_fail_memory(function, (int64_t)sizeof *mixed);
        dvti_object_begin_unowned(mixed, dvti_mixed_destroy);
    }
    mixed->root = net;
    if (mixed->compute != compute)
        dvti_mixed_start(mixed, compute);
    dvti_mixed_spread(net, mixed, mixed);
    dvti_disown(mixed);
    return DVT_OK;
}

DVT_API dvt_status dvt_block_set_loss_scaling(dvt_block *net, const dvt_loss_scaling *options) {
    static const char *const function = "dvt_block_set_loss_scaling";
    double scale;
    int log2 = 0;
    bool good;
    if (!net || !options)
        return dvti_null(function, net ? "options" : "net");
    if (!net->mixed)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the net has no mixed precision; call dvt_block_set_mixed_precision "
                         "first",
                         function);
    scale = options->init_scale != 0 ? options->init_scale : ldexp(1, net->mixed->scale);
    good =
        frexp(scale, &log2) == 0.5 && log2 - 1 <= DVTI_SCALE_LIMIT && log2 - 1 >= -DVTI_SCALE_LIMIT;
    if (!good || options->growth_interval < 0)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: init_scale is %g and growth_interval %lld; expected a power of two "
                         "from 2^-%d to 2^%d, and 0 (2000) or more steps",
                         function, options->init_scale, (long long)options->growth_interval,
                         DVTI_SCALE_LIMIT, DVTI_SCALE_LIMIT);
    net->mixed->scaling = true;
    net->mixed->fixed = options->fixed;
    net->mixed->scale = log2 - 1;
    net->mixed->interval = options->growth_interval ? options->growth_interval : 2000;
    net->mixed->good = 0;
    return DVT_OK;
}

DVT_API dvt_mixed_precision dvt_block_mixed_precision(const dvt_block *net) {
    dvt_mixed_precision out;
    memset(&out, 0, sizeof out);
    out.compute = DVT_F32;
    out.loss_scale = 1;
    if (!net)
        dvti_null("dvt_block_mixed_precision", "net");
    else if (net->mixed) {
        out.compute = net->mixed->compute;
        out.loss_scale = net->mixed->scaling ? ldexp(1, net->mixed->scale) : 1;
        out.skipped_steps = net->mixed->skipped;
    }
    return out;
}
