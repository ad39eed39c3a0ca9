/* The shapes of a net, without computing: dvt_block_infer_shapes runs forward on arrays without
   memory (2_core/dvt_meta.c), so blocks need no function of their own for it.

   While a thread infers, shapes that are set stay in its dvti_inference, and parameters have an
   array without memory in place of their copies. At the end all parameters change, or none. */
#include "6_nn/dvt_nn_internal.h"

typedef struct dvti_inferred {
    dvt_param *param; /* owned */
    dvt_shape shape;
    bool ran;        /* its block ran: if it is deferred, its values are drawn at the end */
    dvt_array *data; /* owned; NULL until a block reads it */
} dvti_inferred;

/* In allocated memory, because an exception may end a forward function: see dvti_infer_enter. */
typedef struct dvti_inference {
    const char *function;
    dvti_inferred *item; /* in the order in which blocks ran, which is the order of drawing */
    size_t count, capacity, latest;
    dvti_device *model;
    int depth; /* of its forward pass; -1 before */
    /* state of the thread before */
    dvti_meta_state meta;
    dvt_ctx_guard ctx;
    dvt_record_guard record;
    dvti_tracer tracer;
    bool attempts;
    dvti_attempt attempt;
} dvti_inference;

static DVTI_TLS dvti_inference *dvti_inference_here;

DVTI_FN bool dvti_inferring(void) {
    return dvti_inference_here != NULL;
}

/* ---- shapes and arrays of parameters ---- */
/* Searches from the latest result on: blocks read their parameters in the order of the list. */
static dvti_inferred *dvti_infer_find(dvti_inference *s, const dvt_param *p) {
    size_t i;
    for (i = 0; i < s->count; i++) {
        size_t at = s->latest + i < s->count ? s->latest + i : s->latest + i - s->count;
        if (s->item[at].param == p) {
            s->latest = at;
            return &s->item[at];
        }
    }
    return NULL;
}

/* Returns the entry of p, which is new if there is none; NULL with HOST_MEMORY set. */
static dvti_inferred *dvti_infer_entry(dvti_inference *s, dvt_param *p) {
    dvti_inferred *item = dvti_infer_find(s, p);
    if (item)
        return item;
    if (!dvti_grow((void **)&s->item, &s->capacity, s->count + 1, sizeof *s->item)) {
        dvti_fail_memory(s->function, (int64_t)(sizeof *s->item * (s->count + 1)));
        return NULL;
    }
    item = &s->item[s->count];
    item->shape = dvt_param_shape(p);
    item->param = (dvt_param *)dvti_own(p);
    item->ran = false;
    item->data = NULL;
    s->latest = s->count++;
    return item;
}

DVTI_FN bool dvti_inferred_shape(const dvt_param *p, dvt_shape *shape) {
    dvti_inferred *item = dvti_inference_here ? dvti_infer_find(dvti_inference_here, p) : NULL;
    if (item)
        *shape = item->shape;
    return item != NULL;
}

DVTI_FN bool dvti_infer_set_shape(dvt_param *p, dvt_shape shape) {
    dvti_inferred *item = dvti_infer_entry(dvti_inference_here, p);
    if (item)
        item->shape = shape;
    return item != NULL;
}

static bool dvti_param_deferred(dvt_param *p) {
    return dvti_atomic_load(&p->state) == DVTI_PARAM_DEFERRED;
}

DVTI_FN dvt_array *dvti_infer_data(const char *function, dvt_param *p) {
    dvti_inferred *item = dvti_infer_entry(dvti_inference_here, p);
    dvt_ctx meta = {DVT_DEVICE_META, 0};
    if (!item)
        return NULL;
    if (!dvti_shape_known(item->shape) || (dvti_param_deferred(p) && !item->ran)) {
        dvti_param_not_ready(function, p);
        return NULL;
    }
    if (!item->data && (item->data = dvti_array_new(function, item->shape, p->dtype, meta)) != NULL)
        dvti_scope_take(item->data);
    return item->data;
}

DVTI_FN bool dvti_infer_prepare(dvt_block *block, dvt_array *x) {
    bool waiting = false, unknown = false;
    dvti_inferred *item;
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if (!dvti_param_ready(block->param[i])) {
            waiting = true;
            unknown = unknown || !dvti_shape_known(dvt_param_shape(block->param[i]));
        }
    if (!waiting)
        return true;
    if (!dvti_is_meta(x->storage->device)) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "x is %s while %s runs the net on arrays without values; make it on the context "
                  "of the block's input (dvt_ctx_of)",
                  dvti_describe(x), dvti_inference_here->function);
        return false;
    }
    if (unknown && block->desc.infer && !dvti_block_infer(block, x))
        return false;
    for (i = 0; i < block->n_param; i++) {
        dvt_param *p = block->param[i];
        if (dvti_param_ready(p))
            continue;
        if (!dvti_param_shape_ready("dvt_block_initialize", p, dvt_param_shape(p)) ||
            !(item = dvti_infer_entry(dvti_inference_here, p)))
            return false;
        item->ran = true;
    }
    return true;
}

/* ---- the end: all parameters or none ---- */
/* Plans one parameter. Another thread may have changed it meanwhile. */
static bool dvti_infer_plan(const char *function, const dvti_inferred *item, dvti_plan *plan) {
    dvt_param *p = item->param;
    if (!dvti_shape_accepts(p->shape, item->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: Parameter '%s' needs shape %s for this input, and another thread gave it "
                  "%s; use one shape of input in all threads",
                  function, dvti_param_name(p), dvti_shape_text(item->shape),
                  dvti_shape_text(p->shape));
        return false;
    }
    if (!item->ran || !dvti_param_deferred(p))
        return true;
    plan->param = p;
    plan->init = p->pending;
    plan->shape = item->shape;
    plan->ctxs = p->ctxs;
    plan->sums = p->sums;
    return dvti_plan_draw(function, plan);
}

static dvt_status dvti_infer_commit(const dvti_inference *s) {
    dvti_plan *plans = dvti_plans_new(s->function, s->count);
    bool good = plans != NULL;
    size_t i;
    dvti_params_lock();
    for (i = 0; good && i < s->count; i++)
        good = dvti_infer_plan(s->function, &s->item[i], &plans[i]);
    for (i = 0; good && i < s->count; i++) {
        if (!dvti_param_ready(s->item[i].param))
            s->item[i].param->shape = s->item[i].shape;
        dvti_plan_commit_locked(&plans[i]);
    }
    dvti_params_unlock();
    dvti_plans_drop(plans, s->count);
    return good ? DVT_OK : dvti_failure();
}

/* ---- the state of a thread ---- */
static void dvti_infer_free(dvti_inference *s) {
    size_t i;
    for (i = 0; i < s->count; i++) {
        dvti_disown(s->item[i].data);
        dvti_disown(s->item[i].param);
    }
    dvti_free(s->item);
    dvti_free(s);
}

/* Begins an inference of this thread in place of `model`, in predict mode. The default context
   changes with it if it is the model. Takes over the use of the model. */
static dvti_inference *dvti_infer_begin(dvti_device *model, dvti_tracer tracer, bool attempts) {
    dvti_inference *s = (dvti_inference *)dvti_alloc_zero(sizeof *s);
    dvt_ctx meta = {DVT_DEVICE_META, 0};
    dvti_meta_state state;
    if (!s) {
        dvti_fail_memory(tracer.function, (int64_t)sizeof *s);
        dvti_device_end(model);
        return NULL;
    }
    s->function = tracer.function;
    s->model = state.model = model;
    s->depth = -1;
    state.read = false;
    s->meta = dvti_meta_swap(state);
    s->ctx = dvt_ctx_scope_begin(dvt_ctx_equal(dvt_default_ctx(), model->ctx) ? meta
                                                                              : dvt_default_ctx());
    s->record = dvt_record_begin(DVT_OFF, DVT_OFF);
    s->tracer = dvti_set_tracer(tracer);
    s->attempts = attempts;
    if (attempts)
        s->attempt = dvti_attempt_begin();
    dvti_inference_here = s;
    return s;
}

/* Ends an attempt. Repeats its failure as an error, unless it needs values. */
static void dvti_infer_judge(dvti_inference *s, dvt_status status, bool read) {
    char text[1024];
    snprintf(text, sizeof text, "%s", dvt_error());
    dvti_attempt_end(&s->attempt);
    if (status != DVT_OK && !read)
        dvti_fail(status, "%s", s->attempt.clean ? text : s->function);
}

/* Restores the state before. Returns whether a forward function asked for values. */
static bool dvti_infer_end(dvti_inference *s) {
    dvti_meta_state state;
    dvti_inference_here = NULL;
    dvti_set_tracer(s->tracer);
    dvt_record_end(&s->record);
    dvt_ctx_scope_end(&s->ctx);
    state = dvti_meta_swap(s->meta);
    dvti_device_end(s->model);
    return state.read;
}

/* A forward pass at or above the depth of the inference's own: that one has ended without a
   return. */
DVTI_FN void dvti_infer_enter(int depth) {
    dvti_inference *s = dvti_inference_here;
    if (!s || depth < 0)
        return;
    if (s->depth < 0)
        s->depth = depth;
    else if (depth <= s->depth) {
        dvti_infer_end(s);
        if (s->attempts)
            dvti_attempt_end(&s->attempt);
        dvti_infer_free(s);
    }
}

/* ---- running ---- */
/* Returns the device whose place the arrays take: where the first parameter is or will be, or the
   default context. The caller ends its use. */
static dvti_device *dvti_infer_model(const char *function, dvt_block *net) {
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_ctx ctx = dvt_default_ctx();
    dvt_ctx_list ctxs;
    if (!params)
        return NULL;
    if (params->count) {
        ctxs = dvt_param_ctxs(params->item[0]);
        if (ctxs.n)
            ctx = ctxs.ctx[0];
    }
    return dvti_device_begin(function, ctx);
}

static dvt_status dvti_infer_forward(const char *function, dvt_block *net, dvt_shape input,
                                     dvt_dtype dtype, dvt_shape *out) {
    dvt_ctx meta = {DVT_DEVICE_META, 0};
    dvt_array *x = dvti_array_new(function, input, dtype, meta);
    dvt_array *y = x ? dvt_block_forward(net, x) : NULL;
    if (y)
        *out = y->shape;
    return y ? DVT_OK : dvti_failure();
}

static dvt_status dvti_infer_alone(dvt_block *net, dvt_shape input, dvt_dtype dtype,
                                   dvti_tracer tracer, dvt_shape *out, bool *needs_values) {
    dvti_device *model = dvti_infer_model(tracer.function, net);
    dvti_inference *s = model ? dvti_infer_begin(model, tracer, needs_values != NULL) : NULL;
    dvt_status status;
    bool read;
    if (!s)
        return dvti_failure();
    status = dvti_infer_forward(s->function, net, input, dtype, out);
    if (dvti_inference_here != s)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: a forward function switched to another stack, such as a coroutine's; "
                         "run the net once with dvt_block_forward instead",
                         tracer.function);
    read = dvti_infer_end(s);
    if (read) /* also if forward has a result: it may depend on the values */
        status = DVT_ERR_VALUE;
    if (needs_values) {
        *needs_values = read;
        dvti_infer_judge(s, status, read);
    }
    if (status == DVT_OK)
        status = dvti_infer_commit(s);
    dvti_infer_free(s);
    return status;
}

DVTI_FN dvt_status dvti_infer_net(dvt_block *net, dvt_shape input, dvt_dtype dtype,
                                  dvti_tracer tracer, dvt_shape *out, bool *needs_values) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_shape result;
    dvt_status status;
    dvti_infer_enter(dvti_forward_depth());
    if (dvti_inference_here) /* within a forward function: the outer call sets the shapes */
        status = dvti_infer_forward(tracer.function, net, input, dtype, &result);
    else
        status = dvti_infer_alone(net, input, dtype, tracer, &result, needs_values);
    if (status == DVT_OK && out)
        *out = result;
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_block_infer_shapes(dvt_block *net, dvt_shape input, dvt_dtype dtype,
                                          dvt_shape *output) {
    dvti_tracer tracer;
    memset(&tracer, 0, sizeof tracer);
    tracer.function = "dvt_block_infer_shapes";
    return net ? dvti_infer_net(net, input, dtype, tracer, output, NULL)
               : dvti_null(tracer.function, "net");
}
