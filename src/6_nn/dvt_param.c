/* One parameter: its copies, one per context, and their gradients. Changes of several parameters at
   once are in dvt_param_plan.c. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

/* ---- making ---- */
/* Returns the rule that Gluon derives from the end of a name. Other names, such as "weight", have
   none. */
static dvt_init dvti_param_rule(const char *short_name, dvt_dtype dtype) {
    static const char *const zeros[] = {"bias", "beta", "running_mean", "moving_mean"};
    static const char *const ones[] = {"gamma", "running_var", "moving_var"};
    dvt_init none;
    int i;
    memset(&none, 0, sizeof none);
    for (i = 0; i < DVTI_LENGTH(zeros); i++)
        if (strcmp(short_name, zeros[i]) == 0)
            return dvt_init_zero();
    for (i = 0; i < DVTI_LENGTH(ones); i++)
        if (strcmp(short_name, ones[i]) == 0)
            return dvt_init_one();
    return dvt_dtype_is_float(dtype) ? none : dvt_init_zero();
}

static void dvti_param_destroy(void *object) {
    dvt_param *p = (dvt_param *)object;
    int i;
    dvti_param_drop_casts(p);
    for (i = 0; i < p->ctxs.n; i++)
        dvti_disown(p->copy[i]);
    dvti_free(p->name_text);
    dvti_free(p);
}

DVTI_FN dvt_param *dvti_param_new(const char *function, dvt_block *block, const char *short_name,
                                  dvt_shape shape, dvt_dtype dtype, dvt_init own) {
    size_t name_size = dvti_param_name_size(block, short_name),
           bytes = name_size + strlen(short_name) + 1;
    dvt_param *p = (dvt_param *)dvti_alloc_zero(sizeof *p);
    char *text = (char *)dvti_alloc_zero(bytes);
    if (!p || !text) {
        dvti_free(p);
        dvti_free(text);
        dvti_fail_memory(function, (int64_t)(sizeof *p + bytes));
        return NULL;
    }
    memcpy(text + name_size, short_name, strlen(short_name));
    dvti_object_begin_unowned(p, dvti_param_destroy);
    p->name_text = text;
    p->short_name = text + name_size;
    p->block = block;
    dvti_param_write_name(p);
    p->shape = shape;
    p->dtype = dtype;
    p->own = own;
    p->rule = dvti_param_rule(short_name, dtype);
    p->fixed = !dvt_dtype_is_float(dtype);
    p->statistic =
        strncmp(short_name, "running_", 8) == 0 || strncmp(short_name, "moving_", 7) == 0;
    p->grad_req = p->fixed ? DVT_GRAD_NULL : DVT_GRAD_WRITE;
    p->lr_mult = p->wd_mult = 1;
    return p;
}

/* ---- queries ---- */
DVTI_FN bool dvti_param_ready(const dvt_param *p) {
    return dvti_atomic_load((dvti_atomic *)&p->state) == DVTI_PARAM_READY;
}

DVTI_FN bool dvti_shape_known(dvt_shape shape) {
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (shape.dim[i] == 0)
            return false;
    return true;
}

DVTI_FN bool dvti_shape_accepts(dvt_shape known, dvt_shape given) {
    int i;
    if (known.ndim != given.ndim)
        return false;
    for (i = 0; i < known.ndim; i++)
        if (known.dim[i] != 0 && known.dim[i] != given.dim[i])
            return false;
    return true;
}

DVT_API const char *dvt_param_name(const dvt_param *p) {
    if (p)
        return dvti_param_name(p);
    dvti_null("dvt_param_name", "p");
    return "";
}

DVT_API dvt_shape dvt_param_shape(const dvt_param *p) {
    dvt_shape shape = DVT_SCALAR;
    if (!p) {
        dvti_null("dvt_param_shape", "p");
        return shape;
    }
    if (dvti_inferred_shape(p, &shape))
        return shape;
    dvti_params_lock();
    shape = p->shape;
    dvti_params_unlock();
    return shape;
}

DVT_API dvt_ctx_list dvt_param_ctxs(const dvt_param *p) {
    dvt_ctx_list ctxs;
    memset(&ctxs, 0, sizeof ctxs);
    if (!p) {
        dvti_null("dvt_param_ctxs", "p");
        return ctxs;
    }
    dvti_params_lock(); /* another thread's first forward pass may be initializing it */
    ctxs = p->ctxs;
    dvti_params_unlock();
    return ctxs;
}

DVTI_FN void dvti_param_not_ready(const char *function, const dvt_param *p) {
    if (dvti_atomic_load((dvti_atomic *)&p->state) == DVTI_PARAM_DEFERRED)
        dvti_fail(
            DVT_ERR_UNINITIALIZED,
            "%s: Parameter '%s' has not been initialized yet because initialization was deferred "
            "(its shape is %s): its values are set during the first forward pass. Pass one batch "
            "of data through the network, or call dvt_block_infer_shapes, before its parameters "
            "are used; or give in_units, in_channels and the like when making the layers",
            function, dvti_param_name(p), dvti_shape_text(p->shape));
    else
        dvti_fail(
            DVT_ERR_UNINITIALIZED,
            "%s: Parameter '%s' has not been initialized; call dvt_block_initialize on the whole "
            "net, or dvt_params_initialize on what dvt_block_collect_params gives, which includes "
            "the parameters of children",
            function, dvti_param_name(p));
}

static void dvti_param_elsewhere(const char *function, const dvt_param *p, dvt_ctx ctx) {
    char list[256];
    dvt_ctx_list_format(p->ctxs, list, sizeof list);
    dvti_fail(DVT_ERR_CONTEXT,
              "%s: Parameter '%s' was not initialized on context %s. It was only initialized on "
              "%s. Copy the input with dvt_as_in_ctx, or move the parameters with "
              "dvt_params_reset_ctx",
              function, dvti_param_name(p), dvt_ctx_name(ctx), list);
}

DVTI_FN bool dvti_param_is_on(const char *function, const dvt_param *p, dvt_ctx ctx) {
    dvt_ctx_list ctxs = dvt_param_ctxs(p);
    int i;
    for (i = 0; i < ctxs.n; i++)
        if (dvt_ctx_equal(ctxs.ctx[i], ctx))
            return true;
    dvti_param_elsewhere(function, p, ctx);
    return false;
}

DVTI_FN dvt_array *dvti_param_on(const char *function, dvt_param *p, dvt_ctx ctx) {
    int i;
    if (!p) {
        dvti_null(function, "p");
        return NULL;
    }
    if ((ctx.type == DVT_DEVICE_META || ctx.type == DVT_DEVICE_DEFAULT) && dvti_inferring())
        return dvti_infer_data(function, p);
    if (!dvti_param_ready(p)) {
        dvti_param_not_ready(function, p);
        return NULL;
    }
    if (ctx.type == DVT_DEVICE_DEFAULT && p->ctxs.n == 1)
        return p->copy[0];
    for (i = 0; i < p->ctxs.n; i++)
        if (dvt_ctx_equal(p->ctxs.ctx[i], ctx))
            return p->copy[i];
    dvti_param_elsewhere(function, p, ctx);
    return NULL;
}

DVT_API dvt_array *dvt_param_data(dvt_param *p, dvt_ctx ctx) {
    return dvti_param_on("dvt_param_data", p, ctx);
}

DVT_API dvt_array *dvt_param_grad(dvt_param *p, dvt_ctx ctx) {
    dvt_array *copy;
    if (p && p->grad_req == DVT_GRAD_NULL && dvti_param_ready(p)) {
        dvti_fail(DVT_ERR_GRAD,
                  "dvt_param_grad: Cannot get gradient array for Parameter '%s' because "
                  "grad_req='null'; set another with dvt_param_set_grad_req%s",
                  dvti_param_name(p), p->fixed ? " (this one never has a gradient)" : "");
        return NULL;
    }
    copy = dvti_param_on("dvt_param_grad", p, ctx);
    return copy ? dvt_grad(copy) : NULL;
}

/* Computes the mean as the first copy plus the mean difference from it, in float64. Where all
   copies are equal, the result is exactly that value for any number of copies. */
static bool dvti_average_into(double *base, double *distance, const double *value, int64_t n,
                              bool first) {
    int64_t i;
    if (!value)
        return false;
    for (i = 0; i < n; i++)
        if (first) {
            base[i] = value[i];
            distance[i] = 0;
        } else if (value[i] != base[i])
            distance[i] += value[i] - base[i];
    return true;
}

static DVTI_NOINLINE dvt_array *dvti_average_in_mode(dvt_array *const *copy, int n) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    dvt_array *base = dvt_empty(copy[0]->shape, DVT_F64, dvt_cpu()), *out = NULL;
    dvt_array *distance = dvt_empty(copy[0]->shape, DVT_F64, dvt_cpu());
    int64_t size = dvt_size(base), i;
    int k;
    for (k = 0; base && distance && k < n; k++) {
        dvt_scope_guard inner = dvt_scope_begin();
        dvt_array *host = dvt_as_in_ctx(copy[k], dvt_cpu());
        dvt_array *wide = host ? dvt_astype(host, DVT_F64) : NULL;
        if (!dvti_average_into((double *)dvt_data(base), (double *)dvt_data(distance),
                               wide ? (const double *)dvt_data(wide) : NULL, size, k == 0))
            base = NULL;
        dvt_scope_end(&inner);
    }
    if (base && distance) {
        double *b = (double *)dvt_data(base), *d = (double *)dvt_data(distance);
        for (i = 0; i < size; i++)
            b[i] += d[i] / n;
        out = dvt_as_in_dtype(base, copy[0]->dtype);
    }
    dvt_record_end(&record);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVTI_FN dvt_array *dvti_copies_average(dvt_array *const *copy, int n) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *out = dvti_average_in_mode(copy, n);
    dvti_float_mode_end(&mode);
    return out;
}

DVTI_FN dvt_array *dvti_param_average(const char *function, dvt_param *p) {
    dvt_record_guard record;
    dvt_array *out;
    if (!dvti_param_ready(p)) {
        dvti_param_not_ready(function, p);
        return NULL;
    }
    if (p->ctxs.n == 1 || !dvt_dtype_is_float(p->dtype)) {
        record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
        out = dvt_copyto(p->copy[0], dvt_cpu());
        dvt_record_end(&record);
        return out;
    }
    return dvti_copies_average(p->copy, p->ctxs.n);
}

/* ---- changes ---- */
DVT_API dvt_status dvt_param_set_shape(dvt_param *p, dvt_shape shape) {
    dvt_shape known;
    int64_t bytes;
    bool fits, kept = true;
    if (!p)
        return dvti_null("dvt_param_set_shape", "p");
    if (!dvti_nbytes("dvt_param_set_shape", shape, p->dtype, &bytes))
        return dvti_failure();
    dvti_params_lock();
    known = dvt_param_shape(p);
    fits = dvti_shape_accepts(known, shape);
    if (fits && !dvti_param_ready(p)) {
        if (dvti_inferring())
            kept = dvti_infer_set_shape(p, shape);
        else
            p->shape = shape;
    }
    dvti_params_unlock();
    if (fits)
        return kept ? DVT_OK : dvti_failure();
    return dvti_fail(
        DVT_ERR_SHAPE,
        "dvt_param_set_shape: Parameter '%s' has shape %s and is given %s; expected the same "
        "number of axes, and the same extents where they are known (not 0)",
        dvti_param_name(p), dvti_shape_text(known), dvti_shape_text(shape));
}

DVT_API dvt_status dvt_param_set_init(dvt_param *p, dvt_init init) {
    if (!p)
        return dvti_null("dvt_param_set_init", "p");
    if (!dvti_init_check("dvt_param_set_init", p, init))
        return dvti_failure();
    p->own = init;
    return DVT_OK;
}

static dvt_status dvti_param_factor(const char *function, dvt_param *p, double factor, bool decay) {
    if (!p)
        return dvti_null(function, "p");
    if (!(factor - factor == 0))
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: factor is %g for Parameter '%s'; expected a finite number", function,
                         factor, dvti_param_name(p));
    *(decay ? &p->wd_mult : &p->lr_mult) = factor;
    return DVT_OK;
}

DVT_API dvt_status dvt_param_set_lr_mult(dvt_param *p, double factor) {
    return dvti_param_factor("dvt_param_set_lr_mult", p, factor, false);
}

DVT_API dvt_status dvt_param_set_wd_mult(dvt_param *p, double factor) {
    return dvti_param_factor("dvt_param_set_wd_mult", p, factor, true);
}

static void dvti_copy_drop_grad(dvt_array *copy) {
    dvti_disown(copy->grad);
    copy->grad = NULL;
    copy->grad_req = DVT_GRAD_NULL;
    copy->attached = copy->grad_fresh = false;
    copy->grad_holds = 0;
}

/* Sets grad_req on all copies. Gradients restart at 0, as in Gluon. */
static dvt_status dvti_copies_set_req(dvt_param *p, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    int i;
    if (req != DVT_GRAD_NULL && p->grad_req != DVT_GRAD_NULL) {
        for (i = 0; i < p->ctxs.n && status == DVT_OK; i++)
            status = dvt_zero_grad(p->copy[i]);
        for (i = 0; i < p->ctxs.n && status == DVT_OK; i++)
            p->copy[i]->grad_req = req;
        return status;
    }
    for (i = 0; i < p->ctxs.n; i++) {
        if (req != DVT_GRAD_NULL)
            status = dvt_attach_grad(p->copy[i], req);
        if (req == DVT_GRAD_NULL || status != DVT_OK)
            dvti_copy_drop_grad(p->copy[i]);
        if (status != DVT_OK)
            break;
    }
    while (status != DVT_OK && --i >= 0)
        dvti_copy_drop_grad(p->copy[i]);
    return status;
}

DVT_API dvt_status dvt_param_set_grad_req(dvt_param *p, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    if (!p)
        return dvti_null("dvt_param_set_grad_req", "p");
    if ((int)req < DVT_GRAD_WRITE || (int)req > DVT_GRAD_NULL)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_param_set_grad_req: req is %d; expected DVT_GRAD_WRITE, DVT_GRAD_ADD "
                         "or DVT_GRAD_NULL",
                         (int)req);
    if (p->fixed || req == p->grad_req)
        return DVT_OK;
    if (dvti_param_ready(p))
        status = dvti_copies_set_req(p, req);
    if (status == DVT_OK)
        p->grad_req = req;
    return status;
}

/* Copies the new values to every context first, which may fail. Then each device copies them into
   the existing array. */
static dvt_status dvti_param_write(dvt_param *p, dvt_array *x) {
    const char *function = "dvt_param_set_data";
    dvt_array *staged[DVT_MAX_CONTEXTS];
    dvt_array *converted = dvt_as_in_dtype(x, p->dtype);
    dvt_status status = converted ? DVT_OK : dvti_failure();
    int i;
    for (i = 0; i < p->ctxs.n && status == DVT_OK; i++) {
        staged[i] = dvt_copyto(converted, p->ctxs.ctx[i]);
        if (!staged[i])
            status = dvti_failure();
    }
    for (i = 0; i < p->ctxs.n && status == DVT_OK; i++) {
        status = dvti_copy_elements(function, p->copy[i], staged[i]);
        if (status == DVT_OK)
            dvti_written(p->copy[i]);
    }
    return status;
}

/* Initializes a deferred parameter with the data, which also determines its shape. */
static dvt_status dvti_param_complete(dvt_param *p, dvt_array *x) {
    dvti_plan *plan = dvti_plans_new("dvt_param_set_data", 1);
    dvt_status status;
    if (!plan)
        return dvti_failure();
    plan->param = p;
    plan->shape = x->shape;
    plan->ctxs = p->ctxs;
    plan->sums = p->sums;
    status = dvti_plan_fill(plan, x) ? DVT_OK : dvti_failure();
    if (status == DVT_OK)
        dvti_plans_commit(plan, 1);
    dvti_plans_drop(plan, 1);
    return status;
}

DVT_API dvt_status dvt_param_set_data(dvt_param *p, dvt_array *x) {
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_status status;
    if (!p || !x)
        return dvti_null("dvt_param_set_data", p ? "x" : "p");
    if (dvti_inferring())
        return dvti_fail_inferring("dvt_param_set_data");
    if (!dvti_shape_accepts(p->shape, x->shape) || !dvti_shape_known(x->shape))
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_param_set_data: Parameter '%s' has shape %s and x is %s; expected "
                         "equal shapes, where a parameter's 0 is any extent above 0",
                         dvti_param_name(p), dvti_shape_text(p->shape), dvti_describe(x));
    if (dvti_atomic_load(&p->state) == DVTI_PARAM_NEW) {
        dvti_param_not_ready("dvt_param_set_data", p);
        return dvti_failure();
    }
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    status = dvti_param_ready(p) ? dvti_param_write(p, x) : dvti_param_complete(p, x);
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return status;
}
