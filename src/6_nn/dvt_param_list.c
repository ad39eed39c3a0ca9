/* Collections of parameters: collected from blocks by name, and changed together or not at all. */
#include "6_nn/dvt_nn_internal.h"

static void dvti_params_destroy(void *object) {
    dvt_params *params = (dvt_params *)object;
    size_t i;
    for (i = 0; i < params->count; i++)
        dvti_disown(params->item[i]);
    dvti_free(params->item);
    dvti_free(params);
}

DVTI_FN dvt_params *dvti_params_new(const char *function) {
    dvt_params *params = (dvt_params *)dvti_alloc_zero(sizeof *params);
    if (!params)
        dvti_fail_memory(function, (int64_t)sizeof *params);
    else if (!dvti_object_begin(params, dvti_params_destroy, function)) {
        dvti_free(params);
        params = NULL;
    }
    return params;
}

DVTI_FN bool dvti_params_add(const char *function, dvt_params *params, dvt_param *p) {
    size_t i;
    for (i = 0; i < params->count; i++)
        if (params->item[i] == p)
            return true;
    if (!dvti_grow((void **)&params->item, &params->capacity, params->count + 1,
                   sizeof *params->item)) {
        dvti_fail_memory(function, (int64_t)(sizeof *params->item * (params->count + 1)));
        return false;
    }
    params->item[params->count++] = (dvt_param *)dvti_own(p);
    return true;
}

static bool dvti_params_collect(dvt_params *params, dvt_block *block, dvti_pattern *pattern) {
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if ((!pattern || dvti_pattern_match(pattern, dvti_param_name(block->param[i]))) &&
            !dvti_params_add("dvt_block_collect_params", params, block->param[i]))
            return false;
    for (i = 0; i < block->n_child; i++)
        if (!dvti_params_collect(params, block->child[i], pattern))
            return false;
    return true;
}

/* Returns the name of one parameter of the net as an example of what patterns must match. Returns
   NULL when the net has none. */
static const char *dvti_params_example(const dvt_block *block) {
    const char *name = block->n_param ? dvti_param_name(block->param[0]) : NULL;
    size_t i;
    for (i = 0; !name && i < block->n_child; i++)
        name = dvti_params_example(block->child[i]);
    return name;
}

static void dvti_params_warn_empty(const dvt_block *net, const char *pattern) {
    const char *name = dvti_params_example(net);
    if (name)
        dvti_log(DVT_LOG_WARNING,
                 "dvt_block_collect_params: the pattern \"%.100s\" matches no parameter of the "
                 "net, which "
                 "has '%.60s' and others; patterns begin at a name's first character: "
                 "\".*%.100s\" finds it anywhere",
                 pattern, name, pattern);
    else
        dvti_log(DVT_LOG_WARNING,
                 "dvt_block_collect_params: the pattern \"%.100s\" matches nothing: the net has no "
                 "parameters",
                 pattern);
}

DVT_API dvt_params *dvt_block_collect_params(dvt_block *net, const char *text) {
    dvti_pattern pattern;
    dvt_scope_guard scope;
    dvt_params *params;
    if (!net) {
        dvti_null("dvt_block_collect_params", "net");
        return NULL;
    }
    if (text && !dvti_pattern_compile("dvt_block_collect_params", text, &pattern))
        return NULL;
    scope = dvt_scope_begin();
    params = dvti_params_new("dvt_block_collect_params");
    if (params && !dvti_params_collect(params, net, text ? &pattern : NULL))
        params = NULL;
    if (params && text && params->count == 0)
        dvti_params_warn_empty(net, text);
    if (text)
        dvti_pattern_free(&pattern);
    dvt_keep(params);
    dvt_scope_end(&scope);
    return params;
}

DVT_API int dvt_params_len(const dvt_params *params) {
    if (params)
        return (int)params->count;
    dvti_null("dvt_params_len", "params");
    return 0;
}

DVT_API dvt_param *dvt_params_at(dvt_params *params, int i) {
    if (!params) {
        dvti_null("dvt_params_at", "params");
        return NULL;
    }
    if (i < 0 || (size_t)i >= params->count) {
        dvti_fail(DVT_ERR_RANGE, "dvt_params_at: index %d of %llu parameters; expected %s", i,
                  (unsigned long long)params->count,
                  dvti_range_text(0, (int64_t)params->count - 1));
        return NULL;
    }
    return params->item[i];
}

static const char *dvti_params_name_at(const void *user, int i) {
    return dvti_param_name(((const dvt_params *)user)->item[i]);
}

DVT_API dvt_param *dvt_params_find(dvt_params *params, const char *name) {
    char known[600];
    size_t i;
    if (!params || !name) {
        dvti_null("dvt_params_find", params ? "name" : "params");
        return NULL;
    }
    for (i = 0; i < params->count; i++)
        if (strcmp(dvti_param_name(params->item[i]), name) == 0)
            return params->item[i];
    dvti_fail(DVT_ERR_NAME, "dvt_params_find: no parameter is called '%.100s'; there are %s", name,
              dvti_brief(known, sizeof known, (int)params->count, dvti_params_name_at, params));
    return NULL;
}

/* ---- changes of all parameters ---- */
DVT_API dvt_status dvt_params_reset_ctx(dvt_params *params, dvt_ctx_list given) {
    const char *function = "dvt_params_reset_ctx";
    dvt_ctx_list ctxs;
    dvti_plan *plans;
    bool good = true;
    size_t i;
    if (!params)
        return dvti_null(function, "params");
    for (i = 0; i < params->count; i++)
        if (dvti_atomic_load(&params->item[i]->state) == DVTI_PARAM_NEW)
            return dvti_fail(DVT_ERR_UNINITIALIZED,
                             "%s: Cannot reset context for Parameter '%s' because it has not been "
                             "initialized; call dvt_block_initialize first",
                             function, dvti_param_name(params->item[i]));
    if (!dvti_ctxs_resolve(function, given, &ctxs) ||
        !(plans = dvti_plans_new(function, params->count)))
        return dvti_failure();
    for (i = 0; good && i < params->count; i++) {
        dvti_plan *plan = &plans[i];
        plan->param = params->item[i];
        plan->ctxs = ctxs;
        plan->sums = dvti_ctxs_repeat(&given);
        plan->init = plan->param->pending;
        plan->shape = plan->param->shape;
        plan->deferred = !dvti_param_ready(plan->param);
        if (!plan->deferred) {
            dvt_scope_guard scope = dvt_scope_begin();
            dvt_array *average = dvti_param_average(function, plan->param);
            good = average && dvti_plan_fill(plan, average);
            dvt_scope_end(&scope);
        }
    }
    if (good)
        dvti_plans_commit(plans, params->count);
    dvti_plans_drop(plans, params->count);
    return good ? DVT_OK : dvti_failure();
}

/* Sets grad_req on all parameters. On failure the changed ones are restored, which only removes or
   restarts gradients. */
DVT_API dvt_status dvt_params_set_grad_req(dvt_params *params, dvt_grad_req req) {
    dvt_grad_req *before;
    dvt_status status = DVT_OK;
    size_t i;
    if (!params)
        return dvti_null("dvt_params_set_grad_req", "params");
    before = (dvt_grad_req *)dvti_alloc(params->count * sizeof *before);
    if (!before)
        return dvti_fail_memory("dvt_params_set_grad_req",
                                (int64_t)(params->count * sizeof *before));
    for (i = 0; i < params->count && status == DVT_OK; i++) {
        before[i] = params->item[i]->grad_req;
        status = dvt_param_set_grad_req(params->item[i], req);
    }
    if (status != DVT_OK)
        for (i--; i > 0; i--)
            dvt_param_set_grad_req(params->item[i - 1], before[i - 1]);
    dvti_free(before);
    return status;
}

DVT_API dvt_status dvt_params_zero_grad(dvt_params *params) {
    dvt_status status = DVT_OK;
    size_t i;
    int k;
    if (!params)
        return dvti_null("dvt_params_zero_grad", "params");
    for (i = 0; i < params->count && status == DVT_OK; i++) {
        dvt_param *p = params->item[i];
        if (dvti_param_ready(p) && p->grad_req != DVT_GRAD_NULL)
            for (k = 0; k < p->ctxs.n && status == DVT_OK; k++)
                status = dvt_zero_grad(p->copy[k]);
    }
    return status;
}
