/* Training in parts: the loop over the parts of a batch, and the first phase of a step.
   dvt_part_tree.c has the order of the sums. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_ranks.h"

#define DVTI_MOST_PARTS 4096

/* Returns whether column i has running statistics instead of a gradient. */
static bool dvti_part_is_state(const dvt_trainer *t, int i) {
    const dvt_param *param = t->trained[i].param;
    return param->fixed && dvt_dtype_is_float(param->dtype);
}

/* ---- memory ---- */
/* Forgets the open batch, and its part. */
static void dvti_parts_drop(const dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    dvti_part_stream none;
    int i;
    memset(&none, 0, sizeof none);
    dvti_set_part_stream(none);
    while (p->n)
        dvti_part_sum_free(&p->sum[--p->n], t->n + 1);
    for (i = 0; p->before && i < t->n * p->contexts; i++)
        dvti_disown(p->before[i]);
    dvti_free(p->before);
    p->before = NULL;
    dvti_disown(p->part_loss);
    p->part_loss = NULL;
    p->open = p->done = false;
    p->now = -1;
}

DVTI_FN void dvti_parts_free(const dvt_trainer *t) {
    if (!t->parts)
        return;
    dvti_parts_drop(t);
    dvti_disown(t->parts->loss);
    dvti_free(t->parts->sum);
    dvti_free(t->parts->version);
    dvti_free(t->parts->used);
    dvti_free(t->parts);
}

DVT_API dvt_status dvt_trainer_set_parts(dvt_trainer *trainer, int parts) {
    static const char *const function = "dvt_trainer_set_parts";
    dvti_part_batch *p;
    if (!trainer)
        return dvti_null(function, "trainer");
    if (parts < 0 || parts > DVTI_MOST_PARTS)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d parts; expected 0 (off) to %d", function, parts,
                         DVTI_MOST_PARTS);
    if (parts % dvt_num_ranks())
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: %d parts for %d processes; expected a multiple of the number of "
                         "processes",
                         function, parts, dvt_num_ranks());
    p = trainer->parts;
    if (p && p->open)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: a batch has been begun; call it after dvt_trainer_step", function);
    if (!p) {
        p = (dvti_part_batch *)dvti_alloc_zero(sizeof *p);
        if (p) {
            p->version = (int64_t *)dvti_alloc_zero((size_t)trainer->n * sizeof *p->version);
            p->used = (bool *)dvti_alloc_zero((size_t)(trainer->n + 1) * sizeof *p->used);
        }
        if (!p || !p->version || !p->used) {
            if (p) {
                dvti_free(p->version);
                dvti_free(p->used);
            }
            dvti_free(p);
            return dvti_fail_memory(function, (int64_t)sizeof *p + 9 * (int64_t)trainer->n);
        }
        p->now = -1;
        trainer->parts = p;
    }
    p->parts = parts;
    return DVT_OK;
}

/* ---- one part ---- */
/* Checks that the gradient is that of this part alone. */
static bool dvti_part_gradient_ok(const char *function, const dvt_trainer *t, int i) {
    const dvti_replica *at = dvti_trainer_at(t, i, t->parts->k);
    if (!(at->weight->grad_holds & DVTI_GRAD_SUM))
        return true;
    dvti_fail(DVT_ERR_VALUE,
              "%s: the gradient of parameter %s on %s has in it the sum of the batch before, and "
              "another sum would count it twice: call dvt_params_zero_grad after the step, or use "
              "DVT_GRAD_WRITE",
              function, dvt_param_name(t->trained[i].param),
              dvt_ctx_name(t->ctxs.ctx[t->parts->k]));
    return false;
}

/* Returns what a part adds to column i: a copy, or with `borrow` the gradient itself, which the
   caller adds before the next backward pass writes it. NULL with *good false on errors. */
static dvt_array *dvti_part_column(const char *function, const dvt_trainer *t, int i, bool borrow,
                                   bool *good) {
    dvti_part_batch *p = t->parts;
    const dvti_replica *at = i < t->n ? dvti_trainer_at(t, i, p->k) : NULL;
    dvt_array *x = NULL;
    if (i == t->n) {
        x = p->part_loss;
        p->part_loss = NULL;
        p->used[i] |= x != NULL;
        return x;
    }
    if (dvti_part_is_state(t, i)) {
        x = dvt_copy(at->weight);
        p->used[i] |= dvti_atomic_load(&at->weight->storage->version) != p->version[i];
    } else if (!t->trained[i].taken) {
        return NULL;
    } else if (!at->weight->grad_fresh) {
        x = dvt_zeros_like(at->gradient);
    } else if (dvti_part_gradient_ok(function, t, i)) {
        x = borrow ? at->gradient : dvt_copy(at->gradient);
        p->used[i] = true;
    }
    *good = x != NULL;
    return (dvt_array *)dvti_own(x);
}

/* Makes the context as it was before the part. */
static bool dvti_part_restore(const char *function, const dvt_trainer *t, int i) {
    dvti_part_batch *p = t->parts;
    const dvti_replica *at = dvti_trainer_at(t, i, p->k);
    dvt_array *before = p->before[i * t->ctxs.n + p->k];
    if (before && dvti_atomic_load(&at->weight->storage->version) != p->version[i]) {
        if (dvti_copy_elements(function, at->weight, before) != DVT_OK)
            return false;
        dvti_written(at->weight);
    }
    if (!t->trained[i].taken || !at->weight->grad_fresh)
        return true;
    at->weight->grad_fresh = false;
    at->weight->grad_holds = 0;
    return at->weight->grad_req != DVT_GRAD_ADD || dvt_fill(at->gradient, 0);
}

/* Returns whether the part's sibling has run on the same context. */
static bool dvti_part_is_added(const dvt_trainer *t) {
    const dvti_part_batch *p = t->parts;
    size_t at;
    int i;
    for (at = 0; at < p->n; at++)
        if (p->sum[at].level == 0 && p->sum[at].start == (p->now ^ 1))
            for (i = 0; i < t->n; i++)
                if (p->sum[at].column[i])
                    return dvt_ctx_equal(dvt_ctx_of(p->sum[at].column[i]), t->ctxs.ctx[p->k]);
    return false;
}

static bool dvti_part_end(const char *function, const dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    dvti_part_sum sum;
    dvt_scope_guard scope;
    bool good = true, borrow;
    int i;
    sum.start = p->now;
    sum.level = 0;
    sum.column = (dvt_array **)dvti_alloc_zero((size_t)(t->n + 1) * sizeof *sum.column);
    if (!sum.column) {
        dvti_fail_memory(function, (t->n + 1) * (int64_t)sizeof *sum.column);
        return false;
    }
    scope = dvt_scope_begin();
    borrow = dvti_part_is_added(t);
    for (i = 0; i <= t->n && good; i++)
        sum.column[i] = dvti_part_column(function, t, i, borrow, &good);
    if (good)
        good = dvti_part_insert(function, p, sum, t->n + 1, false);
    else
        dvti_part_sum_free(&sum, t->n + 1);
    for (i = 0; i < t->n && good; i++)
        good = dvti_part_restore(function, t, i);
    dvt_scope_end(&scope);
    return good;
}

/* Notes the running statistics of context k before its part. */
static bool dvti_part_note(const char *function, const dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    dvt_scope_guard scope = dvt_scope_begin();
    bool good = true;
    int i;
    for (i = 0; i < t->n && good; i++) {
        dvti_replica *at = dvti_trainer_at(t, i, p->k);
        dvt_array **before = &p->before[i * t->ctxs.n + p->k];
        if (!dvti_part_is_state(t, i))
            continue;
        at->weight = dvti_param_on(function, t->trained[i].param, t->ctxs.ctx[p->k]);
        if (at->weight && !*before)
            *before = (dvt_array *)dvti_own(dvt_copy(at->weight));
        good = at->weight && *before;
        if (good)
            p->version[i] = dvti_atomic_load(&at->weight->storage->version);
    }
    dvt_scope_end(&scope);
    return good;
}

/* ---- the batch ---- */
/* Finds the rows of all ranks. Every rank must have those of its parts. */
static bool dvti_parts_share(const char *function, dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    const int n = dvt_num_ranks(), rank = dvt_rank();
    if (n == 1)
        return true;
    if (dvti_ranks_begin(function, t) != DVT_OK ||
        dvti_ranks_agree(function, t, NULL, &p->rows, &p->row0, &p->key) != DVT_OK)
        return false;
    p->first = p->parts / n * rank;
    p->end = p->first + p->parts / n;
    if (p->row0 == dvti_rank_row(p->rows, rank) &&
        p->row0 + p->local == dvti_rank_row(p->rows, rank + 1))
        return true;
    dvti_fail(
        DVT_ERR_SHAPE,
        "%s: rank %d has the rows %lld to %lld of %lld; expected %lld to %lld, the share that "
        "a loader gives it",
        function, rank, (long long)p->row0, (long long)(p->row0 + p->local), (long long)p->rows,
        (long long)dvti_rank_row(p->rows, rank), (long long)dvti_rank_row(p->rows, rank + 1));
    return false;
}

static bool dvti_parts_begin(const char *function, dvt_trainer *t, const dvt_array *x) {
    dvti_part_batch *p = t->parts;
    size_t bytes;
    if (dvti_trainer_look(function, t) != DVT_OK || !dvti_part_key(function, &p->key))
        return false;
    bytes = (size_t)t->n * (size_t)t->ctxs.n * sizeof *p->before;
    p->before = (dvt_array **)dvti_alloc_zero(bytes);
    if (!p->before) {
        dvti_fail_memory(function, (int64_t)bytes);
        return false;
    }
    p->rows = p->local = x->shape.dim[0];
    p->contexts = t->ctxs.n;
    p->row0 = 0;
    p->first = 0;
    p->end = p->parts;
    p->turn = 0;
    p->k = -1;
    memset(p->used, 0, (size_t)(t->n + 1) * sizeof *p->used);
    p->open = true;
    return dvti_parts_share(function, t);
}

/* Goes to the next part with rows: the first one of every context, then the second ones. */
static bool dvti_parts_advance(const dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    int64_t count = p->end - p->first;
    p->now = -1;
    while (p->turn < count) {
        int start, end;
        if (++p->k == t->ctxs.n) {
            p->k = 0;
            p->turn++;
        }
        start = p->first + (int)dvti_part_row(count, p->k, t->ctxs.n) + p->turn;
        end = p->first + (int)dvti_part_row(count, p->k + 1, t->ctxs.n);
        if (start < end && dvti_part_has_rows(p, start, 0)) {
            p->now = start;
            return true;
        }
    }
    p->done = true;
    return false;
}

static dvt_array *dvti_part_rows(const dvt_trainer *t, dvt_array *x) {
    const dvti_part_batch *p = t->parts;
    int64_t start = dvti_part_row(p->rows, p->now, p->parts) - p->row0;
    int64_t end = dvti_part_row(p->rows, p->now + 1, p->parts) - p->row0;
    dvt_array *rows = start == 0 && end == x->shape.dim[0] ? x : dvt_rows(x, start, end);
    return rows ? dvt_as_in_ctx(rows, t->ctxs.ctx[p->k]) : NULL;
}

static bool dvti_part_check(const char *function, const dvt_trainer *t, dvt_array *x,
                            dvt_array *y) {
    const dvti_part_batch *p = t->parts;
    if (!p || !p->parts)
        dvti_fail(DVT_ERR_VALUE, "%s: parts are not set; call dvt_trainer_set_parts first",
                  function);
    else if (p->open && p->contexts != t->ctxs.n)
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the parameters were moved within a batch; move them after dvt_trainer_step",
                  function);
    else if (p->done)
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: all parts of the batch have run; call dvt_trainer_step before the next batch",
            function);
    else if (x->shape.ndim < 1 || y->shape.ndim < 1 || x->shape.dim[0] != y->shape.dim[0] ||
             (p->open && x->shape.dim[0] != p->local))
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and y %s; expected the same number of rows on axis 0, and the same "
                  "arrays until the end of the batch",
                  function, dvti_describe(x), dvti_describe(y));
    else
        return true;
    return false;
}

/* Ends a part, and starts the next one. Returns false at the end, and with *good false on
   errors. */
static bool dvti_part_next(const char *function, dvt_trainer *t, dvt_array *x, dvt_array *y,
                           dvt_array **part_x, dvt_array **part_y, bool *good) {
    dvti_part_batch *p = t->parts;
    dvti_part_stream stream;
    memset(&stream, 0, sizeof stream);
    dvti_set_part_stream(stream);
    *good = p->open ? p->now < 0 || dvti_part_end(function, t) : dvti_parts_begin(function, t, x);
    if (!*good || !dvti_parts_advance(t))
        return false;
    *good = dvti_part_note(function, t) && (*part_x = dvti_part_rows(t, x)) != NULL &&
            (*part_y = dvti_part_rows(t, y)) != NULL;
    if (!*good)
        return false;
    stream.on = true;
    stream.key = p->key;
    stream.part = (uint32_t)p->now;
    dvti_set_part_stream(stream);
    return true;
}

DVT_API bool dvt_trainer_next_part(dvt_trainer *trainer, dvt_array *x, dvt_array *y,
                                   dvt_array **part_x, dvt_array **part_y) {
    static const char *const function = "dvt_trainer_next_part";
    dvti_float_mode mode;
    dvt_record_guard record;
    bool more, good = true;
    if (part_x)
        *part_x = NULL;
    if (part_y)
        *part_y = NULL;
    if (!trainer || !x || !y || !part_x || !part_y) {
        dvti_null(function, !trainer  ? "trainer"
                            : !x      ? "x"
                            : !y      ? "y"
                            : !part_x ? "part_x"
                                      : "part_y");
        return false;
    }
    if (!dvti_part_check(function, trainer, x, y))
        return false;
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    mode = dvti_float_mode_begin();
    more = dvti_part_next(function, trainer, x, y, part_x, part_y, &good);
    dvti_float_mode_end(&mode);
    dvt_record_end(&record);
    if (!good) {
        *part_x = *part_y = NULL;
        dvti_parts_drop(trainer);
    }
    return more && good;
}

/* ---- the step ---- */
/* Goes on with the sums of all ranks. */
static bool dvti_parts_merge_ranks(const char *function, const dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    dvt_array **like;
    size_t bytes = (size_t)(t->n + 1) * sizeof *like;
    bool good;
    int i;
    if (dvt_num_ranks() == 1)
        return true;
    if (dvti_ranks_agree(function, t, p->used, NULL, NULL, NULL) != DVT_OK)
        return false;
    like = (dvt_array **)dvti_alloc_zero(bytes);
    if (!like) {
        dvti_fail_memory(function, (int64_t)bytes);
        return false;
    }
    for (i = 0; i < t->n; i++)
        if (p->used[i])
            like[i] = dvti_trainer_at(t, i, 0)->weight;
    good = !p->used[t->n] || (like[t->n] = dvt_scalar(0, DVT_F64, dvt_cpu())) != NULL;
    good = good && dvti_ranks_merge(function, p, like, t->n + 1);
    dvti_free(like);
    return good;
}

/* Writes the mean of the running statistics to every context. */
static bool dvti_parts_write_state(const char *function, const dvt_trainer *t, int i,
                                   dvt_array *sum) {
    dvti_part_batch *p = t->parts;
    dvt_array *mean = dvt_div_scalar(sum, (double)DVTI_MIN((int64_t)p->parts, p->rows));
    bool good = mean != NULL;
    int k;
    for (k = 0; k < t->ctxs.n && good; k++) {
        dvt_array *weight = dvti_param_on(function, t->trained[i].param, t->ctxs.ctx[k]);
        good = weight && dvti_copy_elements(function, weight, mean) == DVT_OK;
        if (good)
            dvti_written(weight);
    }
    return good;
}

static bool dvti_parts_write(const char *function, const dvt_trainer *t, int i, dvt_array *sum) {
    int k;
    if (!sum || !t->parts->used[i])
        return true;
    if (dvti_part_is_state(t, i))
        return dvti_parts_write_state(function, t, i, sum);
    for (k = 0; k < t->ctxs.n; k++) {
        dvti_replica *at = dvti_trainer_at(t, i, k);
        if (dvti_copy_elements(function, at->gradient, sum) != DVT_OK)
            return false;
        dvti_written(at->gradient);
        at->weight->grad_holds = DVTI_GRAD_SUM;
        at->weight->grad_fresh = true;
    }
    return true;
}

/* Checks that no gradient is that of a whole batch. */
static dvt_status dvti_parts_unused(const char *function, const dvt_trainer *t) {
    int i, k;
    for (i = 0; i < t->n; i++)
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            if (dvti_trainer_at(t, i, k)->weight->grad_holds & DVTI_GRAD_OWN)
                return dvti_fail(DVT_ERR_VALUE,
                                 "%s: the trainer has %d parts, and this batch was not computed by "
                                 "parts; loop with DVT_FOR_TRAINER_PARTS before the step, or call "
                                 "dvt_trainer_set_parts with 0",
                                 function, t->parts->parts);
    return DVT_OK;
}

DVTI_FN dvt_status dvti_parts_finish(const char *function, dvt_trainer *t) {
    dvti_part_batch *p = t->parts;
    bool good = true;
    int i, now = p->now;
    if (!p->open)
        return dvti_parts_unused(function, t);
    if (!p->done || p->contexts != t->ctxs.n) {
        for (i = 0; i < t->n && now >= 0 && p->contexts == t->ctxs.n; i++)
            dvti_part_restore(function, t, i);
        dvti_parts_drop(t);
        return dvti_fail(
            DVT_ERR_VALUE,
            "%s: the batch was left at part %d of %d; call dvt_trainer_next_part "
            "until it returns false, do not leave DVT_FOR_TRAINER_PARTS, and do not move the "
            "parameters",
            function, now, p->parts);
    }
    good = dvti_parts_merge(function, p, t->n + 1) && dvti_parts_merge_ranks(function, t);
    for (i = 0; i < t->n && good && p->n; i++)
        good = dvti_parts_write(function, t, i, p->sum[0].column[i]);
    if (good && p->n) {
        dvti_disown(p->loss);
        p->loss = p->sum[0].column[t->n];
        p->loss_rows = p->rows;
        p->sum[0].column[t->n] = NULL;
    }
    dvti_parts_drop(t);
    return good ? DVT_OK : dvti_failure();
}

#undef DVTI_MOST_PARTS
