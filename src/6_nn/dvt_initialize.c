/* Initial values: the distribution of each kind, the choice for a parameter, and the time of
   drawing. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

/* ---- values ---- */
static dvt_init dvti_init_make(dvt_init_kind kind, double value, dvt_fan fan, bool gaussian) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    init.kind = kind;
    init.value = value;
    init.fan = fan;
    init.gaussian = gaussian;
    return init;
}

DVT_API dvt_init dvt_init_uniform(double scale) {
    return dvti_init_make(DVT_INIT_UNIFORM, scale, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_normal(double sigma) {
    return dvti_init_make(DVT_INIT_NORMAL, sigma, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_xavier(void) {
    return dvti_init_make(DVT_INIT_XAVIER, 3, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_msra(dvt_fan fan, double slope) {
    return dvti_init_make(DVT_INIT_MSRA, slope, fan, true);
}

DVT_API dvt_init dvt_init_zero(void) {
    return dvti_init_make(DVT_INIT_ZERO, 0, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_one(void) {
    return dvti_init_make(DVT_INIT_ONE, 0, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_constant(double value) {
    return dvti_init_make(DVT_INIT_CONSTANT, value, DVT_FAN_AVG, false);
}

/* ---- choosing and checking ---- */
DVTI_FN dvt_init dvti_init_choose(const dvt_param *p, dvt_init init) {
    if (p->own.kind != DVT_INIT_DEFAULT)
        return p->own;
    if (p->rule.kind != DVT_INIT_DEFAULT)
        return p->rule;
    return init.kind != DVT_INIT_DEFAULT ? init : dvt_init_uniform(0.07);
}

DVTI_FN bool dvti_init_check(const char *function, const dvt_param *p, dvt_init init) {
    bool by_fan = init.kind == DVT_INIT_XAVIER || init.kind == DVT_INIT_MSRA;
    bool spread = init.kind == DVT_INIT_UNIFORM || init.kind == DVT_INIT_NORMAL ||
                  init.kind == DVT_INIT_XAVIER;
    if ((int)init.kind < DVT_INIT_DEFAULT || (int)init.kind > DVT_INIT_CONSTANT ||
        (by_fan && ((int)init.fan < DVT_FAN_AVG || (int)init.fan > DVT_FAN_OUT))) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: an initial value of kind %d and fan %d; make it with a dvt_init_ function",
                  function, (int)init.kind, (int)init.fan);
        return false;
    }
    if ((spread && !(init.value >= 0)) ||
        (init.kind != DVT_INIT_CONSTANT && init.value - init.value != 0)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: the number of an initial value is %g; expected a finite scale, sigma or "
                  "magnitude of 0 or more",
                  function, init.value);
        return false;
    }
    if (p && by_fan && p->shape.ndim < 2) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: Xavier initializer cannot be applied to vector %s. It requires at least 2D; "
                  "give this parameter values of its own with dvt_param_set_init",
                  function, dvti_param_name(p));
        return false;
    }
    return true;
}

/* Returns half the width of the uniform distribution, or the standard deviation of the normal
   one. */
static double dvti_init_scale(dvt_init init, dvt_shape shape) {
    double magnitude = init.kind == DVT_INIT_MSRA ? 2 / (1 + init.value * init.value) : init.value;
    double window = 1, in, out, fan;
    int i;
    for (i = 2; i < shape.ndim; i++)
        window *= (double)shape.dim[i];
    in = (double)shape.dim[1] * window;
    out = (double)shape.dim[0] * window;
    fan = init.fan == DVT_FAN_IN ? in : init.fan == DVT_FAN_OUT ? out : (in + out) / 2;
    return sqrt(magnitude / fan);
}

static DVTI_NOINLINE dvt_array *dvti_init_draw_in_mode(const char *function, const dvt_param *p,
                                                       dvt_init init, dvt_shape shape) {
    bool normal = init.kind == DVT_INIT_NORMAL || init.kind == DVT_INIT_MSRA ||
                  (init.kind == DVT_INIT_XAVIER && init.gaussian);
    double scale;
    switch (init.kind) {
    case DVT_INIT_ZERO:
        return dvt_zeros(shape, p->dtype, dvt_cpu());
    case DVT_INIT_ONE:
        return dvt_ones(shape, p->dtype, dvt_cpu());
    case DVT_INIT_CONSTANT:
        return dvt_full(shape, init.value, p->dtype, dvt_cpu());
    case DVT_INIT_UNIFORM:
    case DVT_INIT_NORMAL:
        scale = init.value;
        break;
    default:
        if (!dvti_init_check(function, p, init))
            return NULL;
        scale = dvti_init_scale(init, shape);
    }
    if (scale == 0)
        return dvt_zeros(shape, p->dtype, dvt_cpu());
    return normal ? dvt_normal(0, scale, shape, p->dtype, dvt_cpu())
                  : dvt_uniform(-scale, scale, shape, p->dtype, dvt_cpu());
}

DVTI_FN dvt_array *dvti_init_draw(const char *function, const dvt_param *p, dvt_init init,
                                  dvt_shape shape) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *x = dvti_init_draw_in_mode(function, p, init, shape);
    dvti_float_mode_end(&mode);
    return x;
}

/* ---- plans ---- */
DVTI_FN bool dvti_plan_draw(const char *function, dvti_plan *plan) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *values = dvti_init_draw(function, plan->param, plan->init, plan->shape);
    bool good = values && dvti_plan_fill(plan, values);
    dvt_scope_end(&scope);
    return good;
}

DVTI_FN bool dvti_param_shape_ready(const char *function, const dvt_param *p, dvt_shape shape) {
    if (dvti_shape_known(shape))
        return true;
    dvti_fail(DVT_ERR_UNINITIALIZED,
              "%s: Cannot initialize Parameter '%s' because its shape %s has unknown extents; "
              "give in_units, in_channels and the like, or set it in the block's infer "
              "function with dvt_param_set_shape",
              function, dvti_param_name(p), dvti_shape_text(shape));
    return false;
}

static bool dvti_param_finish_locked(const char *function, dvt_param *p) {
    dvti_plan *plan;
    bool good;
    if (dvti_atomic_load(&p->state) != DVTI_PARAM_DEFERRED)
        return true;
    if (!dvti_param_shape_ready(function, p, p->shape))
        return false;
    if (!(plan = dvti_plans_new(function, 1)))
        return false;
    plan->param = p;
    plan->init = p->pending;
    plan->shape = p->shape;
    plan->ctxs = p->ctxs;
    plan->sums = p->sums;
    good = dvti_plan_draw(function, plan);
    if (good)
        dvti_plan_commit_locked(plan);
    dvti_plans_drop(plan, 1);
    return good;
}

DVTI_FN bool dvti_param_finish(const char *function, dvt_param *p) {
    bool good;
    dvti_params_lock();
    good = dvti_param_finish_locked(function, p);
    dvti_params_unlock();
    return good;
}

/* Plans the initialization of one parameter: now, later, or not at all if it is initialized
   already. */
static bool dvti_plan_initialize(const char *function, dvti_plan *plan, dvt_param *p, dvt_init init,
                                 const dvt_ctx_list *ctxs, bool force) {
    if (dvti_param_ready(p) && !force) {
        dvti_log(DVT_LOG_WARNING,
                 "%s: Parameter '%s' is already initialized, ignoring. Call "
                 "dvt_block_reinitialize to initialize it again",
                 function, dvti_param_name(p));
        return true;
    }
    plan->param = p;
    plan->init = dvti_init_choose(p, init);
    plan->shape = dvt_param_shape(p);
    plan->ctxs = *ctxs;
    plan->deferred = !dvti_shape_known(plan->shape);
    return dvti_init_check(function, p, plan->init) &&
           (plan->deferred || dvti_plan_draw(function, plan));
}

static dvt_status dvti_initialize(const char *function, dvt_params *params, dvt_init init,
                                  dvt_ctx_list given, bool force) {
    dvt_ctx_list ctxs;
    dvti_plan *plans;
    bool good = true;
    size_t i;
    if (!dvti_init_check(function, NULL, init) || !dvti_ctxs_resolve(function, given, &ctxs) ||
        !(plans = dvti_plans_new(function, params->count)))
        return dvti_failure();
    for (i = 0; good && i < params->count; i++) {
        plans[i].sums = dvti_ctxs_repeat(&given);
        good = dvti_plan_initialize(function, &plans[i], params->item[i], init, &ctxs, force);
    }
    if (good)
        dvti_plans_commit(plans, params->count);
    dvti_plans_drop(plans, params->count);
    return good ? DVT_OK : dvti_failure();
}

static dvt_status dvti_params_initialize(const char *function, dvt_params *params, dvt_init init,
                                         dvt_ctx_list ctxs, bool force) {
    return params ? dvti_initialize(function, params, init, ctxs, force)
                  : dvti_null(function, "params");
}

DVT_API dvt_status dvt_params_initialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs) {
    return dvti_params_initialize("dvt_params_initialize", params, init, ctxs, false);
}

DVT_API dvt_status dvt_params_reinitialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs) {
    return dvti_params_initialize("dvt_params_reinitialize", params, init, ctxs, true);
}

static dvt_status dvti_block_initialize(const char *function, dvt_block *net, dvt_init init,
                                        dvt_ctx_list ctxs, bool force) {
    dvt_scope_guard scope;
    dvt_params *params;
    dvt_status status;
    if (!net)
        return dvti_null(function, "net");
    scope = dvt_scope_begin();
    params = dvt_block_collect_params(net, NULL);
    status = params ? dvti_initialize(function, params, init, ctxs, force) : dvti_failure();
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_block_initialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs) {
    return dvti_block_initialize("dvt_block_initialize", net, init, ctxs, false);
}

DVT_API dvt_status dvt_block_reinitialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs) {
    return dvti_block_initialize("dvt_block_reinitialize", net, init, ctxs, true);
}
