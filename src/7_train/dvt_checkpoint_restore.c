/* Restoring a run from the arrays of a checkpoint. First everything is compared, and one error
   lists all differences. Then everything is allocated and copied. Then all objects change. */
#include "7_train/dvt_checkpoint_internal.h"

#if defined(DVTI_CHECKPOINTS)
typedef struct dvti_restore {
    const char *function, *path;
    dvt_checkpoint *c;
    dvt_array_list *list;
    bool *used; /* arrays of the list */
    dvti_writer name;
    bool memory; /* exhausted, and the error is set */
    char fault_text[800];
    dvti_text faults;
    int n_faults;
    dvt_status code; /* of the first fault */
    dvti_named_list named;
    dvti_plan *plan;   /* one for each name of the net; no param: another name has it */
    dvt_ctx_list ctxs; /* of the trainer */
    dvti_replica *replica;
    int64_t steps, scale, good, skipped;
    bool has_scale; /* the three numbers of the loss scale are valid */
    double learning_rate;
    const dvt_array *counts;
    dvt_array **own; /* new values of the caller's arrays, on their contexts */
    struct dvti_streams *streams;
    dvt_loader_state position;
} dvti_restore;

/* Returns the text to which the caller adds the next difference. */
static dvti_text *dvti_restore_fault(dvti_restore *r, dvt_status code) {
    if (r->n_faults++ == 0)
        r->code = code;
    else
        dvti_text_add(&r->faults, "; ");
    return &r->faults;
}

/* ---- arrays of the file ---- */
/* Returns the array called prefix + name (@k unless k is negative), or NULL. */
static dvt_array *dvti_restore_find(dvti_restore *r, const char *prefix, const char *name, int k) {
    int i;
    r->name.length = 0;
    dvti_writer_text(&r->name, prefix);
    dvti_writer_text(&r->name, name);
    if (k >= 0) {
        dvti_writer_text(&r->name, "@");
        dvti_writer_int(&r->name, k);
    }
    dvti_writer_bytes(&r->name, "", 1);
    if (r->name.failed && !r->memory) {
        r->memory = true;
        dvti_fail_memory(r->function, 64);
    }
    for (i = 0; !r->memory && i < r->list->n; i++)
        if (strcmp(r->list->name[i], r->name.at) == 0) {
            r->used[i] = true;
            return r->list->array[i];
        }
    return NULL;
}

/* Finds the copies of an array, at most one for each context. Returns their number. */
static int dvti_restore_copies(dvti_restore *r, const char *prefix, const char *name,
                               dvt_array **copy) {
    int k = 0;
    if ((copy[0] = dvti_restore_find(r, prefix, name, -1)) != NULL)
        return 1;
    while (k < DVT_MAX_CONTEXTS && (copy[k] = dvti_restore_find(r, prefix, name, k)) != NULL)
        k++;
    return k;
}

/* Compares the copies of an array with what is expected; extents of 0 are any above 0. Returns
   their number, 0 with a difference. */
static int dvti_restore_compare(dvti_restore *r, const char *prefix, const char *name,
                                dvt_shape shape, bool open, dvt_dtype dtype, dvt_array **copy) {
    int n = dvti_restore_copies(r, prefix, name, copy), k;
    for (k = 0; k < n; k++) {
        const dvt_shape saved = copy[k]->shape;
        if (!(open ? dvti_shape_accepts(shape, saved) && dvti_shape_known(saved)
                   : dvt_shape_equal(shape, saved)) ||
            !dvt_shape_equal(saved, copy[0]->shape)) {
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_SHAPE), "%s%.60s has shape %s, not %s",
                          prefix, name, dvti_shape_text(saved),
                          open ? dvti_open_shape_text(shape) : dvti_shape_text(shape));
            return 0;
        }
        if (copy[k]->dtype != dtype) {
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_DTYPE), "%s%.60s is %s, not %s", prefix,
                          name, dvt_dtype_name(copy[k]->dtype), dvt_dtype_name(dtype));
            return 0;
        }
    }
    if (n == 0 && !r->memory)
        dvti_text_add(dvti_restore_fault(r, DVT_ERR_NAME), "%s%.60s is missing", prefix, name);
    return n;
}

/* Gives each of `to` contexts a copy: its own, or the mean when their number has changed. */
static bool dvti_restore_spread(dvt_array **copy, int n, int to) {
    int k;
    if (n == to)
        return true;
    if (n > 1 && dvt_dtype_is_float(copy[0]->dtype))
        copy[0] = dvti_copies_average(copy, n);
    for (k = 1; k < to; k++)
        copy[k] = copy[0];
    return copy[0] != NULL;
}

/* Lists the arrays with this prefix that nothing has used. */
static void dvti_restore_extra(dvti_restore *r, const char *prefix, const char *where) {
    int i;
    for (i = 0; i < r->list->n; i++)
        if (!r->used[i] && strncmp(r->list->name[i], prefix, strlen(prefix)) == 0)
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_NAME), "%.60s is not in %s",
                          r->list->name[i], where);
}

/* Reads a number of the metadata, or notes that it is missing. */
static bool dvti_restore_number(dvti_restore *r, const char *key, dvt_dtype dtype, void *value) {
    if (dvti_noted_number(r->list, key, dtype, value))
        return true;
    dvti_text_add(dvti_restore_fault(r, DVT_ERR_NAME), "%s is missing", key);
    return false;
}

static void dvti_restore_setting(dvti_restore *r, const char *key, const char *here,
                                 dvt_status code) {
    const char *saved = dvt_array_list_metadata(r->list, key);
    if (!saved || strcmp(saved, here) != 0)
        dvti_text_add(dvti_restore_fault(r, code), "%s is %.60s, here %.60s", key,
                      saved ? saved : "missing", here);
}

/* ---- comparing ---- */
static bool dvti_restore_look_net(dvti_restore *r) {
    dvt_array *copy[DVT_MAX_CONTEXTS];
    dvt_ctx_list given;
    size_t i, k;
    memset(&given, 0, sizeof given);
    if (!dvti_named_collect(r->function, r->c->net, &r->named) ||
        (r->c->ctxs.n && !dvti_ctxs_resolve(r->function, r->c->ctxs, &given)))
        return false;
    if (!(r->plan = dvti_plans_new(r->function, r->named.count)))
        return false;
    for (i = 0; i < r->named.count; i++) {
        dvt_param *p = r->named.item[i].param;
        for (k = 0; k < i && r->named.item[k].param != p; k++)
            continue;
        if (k < i ||
            !dvti_restore_compare(r, "net.", r->named.item[i].name, p->shape, true, p->dtype, copy))
            continue;
        r->plan[i].param = p;
        r->plan[i].shape = copy[0]->shape;
        r->plan[i].sums = r->c->ctxs.n ? dvti_ctxs_repeat(&r->c->ctxs) : p->sums;
        r->plan[i].ctxs = given.n ? given : p->ctxs;
        if (!r->plan[i].ctxs.n && !dvti_ctxs_resolve(r->function, given, &r->plan[i].ctxs))
            return false;
    }
    dvti_restore_extra(r, "net.", "the net");
    return !r->memory;
}

/* Returns the plan of a parameter of the net, or NULL. */
static const dvti_plan *dvti_restore_plan(const dvti_restore *r, const dvt_param *p) {
    size_t i;
    for (i = 0; i < r->named.count; i++)
        if (r->plan[i].param == p)
            return &r->plan[i];
    return NULL;
}

/* Finds the contexts that all trained parameters have afterwards. */
static bool dvti_restore_trainer_ctxs(dvti_restore *r, const dvt_trainer *t) {
    int i;
    for (i = 0; i < t->n; i++) {
        dvt_param *p = t->trained[i].param;
        const dvti_plan *plan = dvti_restore_plan(r, p);
        const dvt_ctx_list *ctxs = plan ? &plan->ctxs : &p->ctxs;
        if (!ctxs->n)
            continue;
        if (!r->ctxs.n)
            r->ctxs = *ctxs;
        if (dvti_same_ctxs(&r->ctxs, ctxs))
            continue;
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: parameter %s would be on other contexts than %s; move them with "
                  "dvt_params_reset_ctx, or give ctxs",
                  r->function, dvt_param_name(p), dvt_param_name(t->trained[0].param));
        return false;
    }
    return true;
}

static void dvti_restore_look_settings(dvti_restore *r, const dvt_optimizer *optimizer) {
    char text[DVTI_SETTING_SIZE];
    const char *key;
    int i;
    /* The first two are the kind and its number of states, which decide what the states mean. */
    for (i = 0; (key = dvti_optimizer_setting(optimizer, i, text)) != NULL; i++)
        if (i < 2 || !r->c->other_settings)
            dvti_restore_setting(r, key, text, DVT_ERR_VALUE);
}

/* A file without mixed precision has no entry. */
static void dvti_restore_look_scale(dvti_restore *r, const dvti_mixed *mixed) {
    const char *saved = dvt_array_list_metadata(r->list, "trainer.compute");
    const char *here = dvt_dtype_name(mixed ? mixed->compute : DVT_F32);
    if (strcmp(saved ? saved : "float32", here) != 0) {
        if (!r->c->other_settings)
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_VALUE),
                          "trainer.compute is %.60s, here %s: call dvt_block_set_mixed_precision "
                          "before loading",
                          saved ? saved : "float32", here);
    } else if (mixed) {
        r->has_scale = true;
        dvti_restore_number(r, "trainer.scale", DVT_I64, &r->scale);
        dvti_restore_number(r, "trainer.good", DVT_I64, &r->good);
        dvti_restore_number(r, "trainer.skipped", DVT_I64, &r->skipped);
        if (r->scale < -DVTI_SCALE_LIMIT || r->scale > DVTI_SCALE_LIMIT || r->good < 0 ||
            r->skipped < 0)
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_FORMAT), "its loss scale is not valid");
    }
}

static void dvti_restore_look_states(dvti_restore *r, const dvt_trainer *t, int i) {
    dvt_param *p = t->trained[i].param;
    const dvti_plan *plan = dvti_restore_plan(r, p);
    dvt_array *copy[DVT_MAX_CONTEXTS];
    char name[40];
    int s;
    for (s = 0; s < t->states; s++) {
        snprintf(name, sizeof name, "%d.%d", i, s);
        if (!dvti_restore_copies(r, "trainer.", name, copy))
            continue; /* parameter I has had no step */
        if (!r->ctxs.n || !(plan || dvti_param_ready(p)))
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_UNINITIALIZED),
                          "%.60s has states, but no values: set net", dvt_param_name(p));
        else
            dvti_restore_compare(r, "trainer.", name, plan ? plan->shape : p->shape, false,
                                 dvti_state_dtype(p->dtype), copy);
    }
}

static bool dvti_restore_look_trainer(dvti_restore *r) {
    const dvt_trainer *t = r->c->trainer;
    int before = r->n_faults, i;
    if (!dvti_restore_trainer_ctxs(r, t))
        return false;
    r->counts = dvti_restore_find(r, "trainer.", "counts", -1);
    if (!r->counts) {
        if (!r->memory)
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_NAME), "it has no trainer");
        return !r->memory;
    }
    dvti_restore_number(r, "trainer.steps", DVT_I64, &r->steps);
    dvti_restore_number(r, "trainer.learning_rate", DVT_F64, &r->learning_rate);
    if (!(r->learning_rate >= 0 && r->learning_rate <= DBL_MAX) || r->steps < 0 ||
        r->steps > INT64_MAX / 2)
        dvti_text_add(dvti_restore_fault(r, DVT_ERR_FORMAT), "its rate or step is not valid");
    dvti_restore_look_settings(r, &t->optimizer);
    dvti_restore_look_scale(r, dvti_trainer_mixed(t));
    if (r->counts->dtype != DVT_I64 || !dvt_shape_equal(r->counts->shape, DVT_SHAPE(t->n)))
        dvti_text_add(dvti_restore_fault(r, DVT_ERR_SHAPE),
                      "its trainer has %s parameters, here %d", dvti_shape_text(r->counts->shape),
                      t->n);
    if (r->n_faults > before)
        return true;
    for (i = 0; i < t->n; i++) {
        const int64_t count = ((const int64_t *)dvti_view_of(r->counts).data)[i];
        if (count < 0 || count > INT64_MAX / 2)
            dvti_text_add(dvti_restore_fault(r, DVT_ERR_FORMAT), "a step count is not valid");
        dvti_restore_look_states(r, t, i);
    }
    if (r->n_faults == before)
        dvti_restore_extra(r, "trainer.", "the trainer");
    return !r->memory;
}

static void dvti_restore_look_loader(dvti_restore *r) {
    char text[DVTI_SETTING_SIZE];
    const char *key;
    int64_t seed = 0;
    int i;
    if (!dvt_array_list_metadata(r->list, "loader.seed")) {
        dvti_text_add(dvti_restore_fault(r, DVT_ERR_NAME), "it has no loader");
        return;
    }
    dvti_restore_number(r, "loader.seed", DVT_I64, &seed);
    dvti_restore_number(r, "loader.epoch", DVT_I64, &r->position.epoch);
    dvti_restore_number(r, "loader.batch", DVT_I64, &r->position.batch);
    r->position.seed = (uint64_t)seed;
    for (i = 0; (key = dvti_loader_setting(r->c->loader, i, text)) != NULL; i++)
        dvti_restore_setting(r, key, text, DVT_ERR_VALUE);
}

static bool dvti_restore_look_own(dvti_restore *r) {
    dvt_array *copy[DVT_MAX_CONTEXTS];
    int i;
    for (i = 0; i < r->c->n_arrays; i++) {
        if (!dvti_writable(r->function, r->c->arrays[i]))
            return false;
        dvti_restore_compare(r, "array.", r->c->array_names[i], r->c->arrays[i]->shape, false,
                             r->c->arrays[i]->dtype, copy);
    }
    for (i = 0; i < r->c->n_numbers; i++)
        dvti_restore_compare(r, "number.", r->c->number_names[i], DVT_SCALAR, false, DVT_F64, copy);
    return !r->memory;
}

static bool dvti_restore_look(dvti_restore *r) {
    const dvt_checkpoint *c = r->c;
    return (!c->net || dvti_restore_look_net(r)) && (!c->trainer || dvti_restore_look_trainer(r)) &&
           (!c->loader || (dvti_restore_look_loader(r), true)) && dvti_restore_look_own(r);
}

/* ---- allocating and copying ---- */
static bool dvti_restore_fill_net(dvti_restore *r) {
    dvt_array *copy[DVT_MAX_CONTEXTS];
    size_t i;
    for (i = 0; i < r->named.count; i++) {
        dvti_plan *plan = &r->plan[i];
        int n = plan->param ? dvti_restore_copies(r, "net.", r->named.item[i].name, copy) : 0;
        if (n && !(dvti_restore_spread(copy, n, plan->ctxs.n) && dvti_plan_fill_each(plan, copy)))
            return false;
    }
    return !r->memory;
}

static bool dvti_restore_fill_states(dvti_restore *r, const dvt_trainer *t, int i) {
    dvt_array *copy[DVT_MAX_CONTEXTS];
    char name[40];
    int n, k, s;
    for (s = 0; s < t->states; s++) {
        snprintf(name, sizeof name, "%d.%d", i, s);
        n = dvti_restore_copies(r, "trainer.", name, copy);
        if (n && !dvti_restore_spread(copy, n, r->ctxs.n))
            return false;
        for (k = 0; n && k < r->ctxs.n; k++) {
            dvt_array *state = dvt_copyto(copy[k], r->ctxs.ctx[k]);
            if (!state)
                return false;
            dvti_scope_take(state);
            r->replica[(size_t)i * (size_t)r->ctxs.n + (size_t)k].state[s] = state;
        }
    }
    return !r->memory;
}

static bool dvti_restore_fill_trainer(dvti_restore *r) {
    const dvt_trainer *t = r->c->trainer;
    int i;
    r->replica =
        (dvti_replica *)dvti_alloc_zero((size_t)t->n * (size_t)r->ctxs.n * sizeof *r->replica);
    if (!r->replica) {
        dvti_fail_memory(r->function, (int64_t)t->n * r->ctxs.n * (int64_t)sizeof *r->replica);
        return false;
    }
    for (i = 0; i < t->n; i++)
        if (!dvti_restore_fill_states(r, t, i))
            return false;
    return true;
}

static bool dvti_restore_fill_own(dvti_restore *r) {
    int n = r->c->n_arrays, i;
    r->own = (dvt_array **)dvti_alloc_zero((size_t)n * sizeof *r->own);
    if (!r->own) {
        dvti_fail_memory(r->function, (int64_t)n * (int64_t)sizeof *r->own);
        return false;
    }
    for (i = 0; i < n; i++) {
        dvt_array *copy[DVT_MAX_CONTEXTS];
        if (!dvti_restore_copies(r, "array.", r->c->array_names[i], copy) ||
            !(r->own[i] = dvt_copyto(copy[0], r->c->arrays[i]->storage->ctx)))
            return false;
    }
    return true;
}

static bool dvti_restore_fill_random(dvti_restore *r) {
    dvt_array *state = dvti_restore_find(r, "random", "", -1);
    const bool clean = dvt_error_code() == DVT_OK;
    if (state && state->dtype == DVT_I64)
        r->streams = dvti_streams_make(r->function, (const int64_t *)dvti_view_of(state).data,
                                       dvt_size(state));
    if (!r->streams && !r->memory && (!clean || dvt_error_code() == DVT_OK))
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: '%.200s' has no random state; set no_random to go on without it",
                  r->function, r->path);
    return r->streams != NULL;
}

/* ---- changing ---- */
static dvt_status dvti_restore_write_own(const dvti_restore *r) {
    dvt_status status = DVT_OK;
    int i;
    for (i = 0; i < r->c->n_arrays && status == DVT_OK; i++) {
        status = dvti_copy_elements(r->function, r->c->arrays[i], r->own[i]);
        if (status == DVT_OK)
            dvti_written(r->c->arrays[i]);
    }
    return status;
}

static void dvti_restore_commit_trainer(dvti_restore *r, dvt_trainer *t) {
    dvti_replica *old = t->replica;
    dvti_mixed *mixed = r->has_scale ? dvti_trainer_mixed(t) : NULL;
    int n = t->ctxs.n, i;
    for (i = 0; i < t->n; i++) {
        dvti_disown(t->trained[i].staging);
        t->trained[i].staging = NULL;
        t->trained[i].count = ((const int64_t *)dvti_view_of(r->counts).data)[i];
    }
    t->replica = r->replica;
    t->ctxs = r->ctxs;
    t->steps = r->steps;
    t->optimizer.learning_rate = r->learning_rate;
    if (mixed) {
        mixed->scale = (int)r->scale;
        mixed->good = r->good;
        mixed->skipped = r->skipped;
    }
    r->replica = NULL;
    dvti_replicas_free(old, (int64_t)t->n * n);
}

/* The loader and the caller's arrays come first, because they can still fail. */
static dvt_status dvti_restore_commit(dvti_restore *r) {
    dvt_checkpoint *c = r->c;
    dvt_array *copy[DVT_MAX_CONTEXTS];
    dvt_status status = DVT_OK;
    int i;
    if (c->loader)
        status = dvt_loader_set_state(c->loader, &r->position);
    if (status == DVT_OK)
        status = dvti_restore_write_own(r);
    if (status != DVT_OK)
        return status;
    if (c->net)
        dvti_plans_commit(r->plan, r->named.count);
    if (c->trainer)
        dvti_restore_commit_trainer(r, c->trainer);
    dvti_streams_adopt(r->streams);
    r->streams = NULL;
    for (i = 0; i < c->n_numbers; i++)
        if (dvti_restore_copies(r, "number.", c->number_names[i], copy))
            c->numbers[i] = *(const double *)dvti_view_of(copy[0]).data;
    dvti_noted_number(r->list, "epoch", DVT_I64, &c->epoch);
    dvti_noted_number(r->list, "step", DVT_I64, &c->step);
    c->loaded_step = c->trainer && c->step == c->trainer->steps ? c->step : 0;
    dvti_noted_number(r->list, "metric", DVT_F64, &c->metric);
    return DVT_OK;
}

static dvt_status dvti_restore_run(dvti_restore *r) {
    const dvt_checkpoint *c = r->c;
    if (!dvti_restore_look(r))
        return dvti_failure();
    if (r->n_faults)
        return dvti_fail(r->code,
                         "%s: '%.200s' does not fit: %s%s; load it into a run with the same net, "
                         "optimizer and data",
                         r->function, r->path, r->fault_text,
                         r->faults.length < sizeof r->fault_text ? "" : "...");
    if ((c->net && !dvti_restore_fill_net(r)) || (c->trainer && !dvti_restore_fill_trainer(r)) ||
        !dvti_restore_fill_own(r) || (!c->no_random && !dvti_restore_fill_random(r)))
        return dvti_failure();
    return dvti_restore_commit(r);
}

DVTI_FN dvt_status dvti_checkpoint_restore(const char *function, dvt_checkpoint *c,
                                           dvt_array_list *list, const char *path) {
    dvti_restore r;
    dvt_status status;
    memset(&r, 0, sizeof r);
    r.function = function;
    r.path = path;
    r.c = c;
    r.list = list;
    r.name = dvti_writer_begin();
    r.faults = dvti_text_begin(r.fault_text, sizeof r.fault_text);
    r.used = (bool *)dvti_alloc_zero((size_t)list->n * sizeof *r.used);
    status = r.used ? dvti_restore_run(&r) : dvti_fail_memory(function, list->n);
    if (c->trainer)
        dvti_replicas_free(r.replica, (int64_t)c->trainer->n * r.ctxs.n);
    dvti_plans_drop(r.plan, r.named.count);
    dvti_named_free(&r.named);
    dvti_streams_free(r.streams);
    dvti_free(r.own);
    dvti_free(r.used);
    dvti_writer_free(&r.name);
    return status;
}
#endif
