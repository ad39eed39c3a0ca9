/* What a trainer does with several processes: it gives all ranks the parameters of rank 0, checks
   that they do the same, and sums their gradients. */
#include "7_train/dvt_ranks.h"

/* The head of what all ranks tell each other; `used` follows. */
typedef struct dvti_rank_head {
    int64_t steps, rows;
    uint64_t key;
    int32_t n, trainer;
} dvti_rank_head;

static int dvti_rank_trainers; /* so far; the same on all ranks */

static dvt_status dvti_ranks_same_trainer(const char *function, const dvt_trainer *t,
                                          const dvti_rank_head *other, int rank) {
    if (other->trainer != t->number)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: rank %d is at trainer %d (first parameter: %s), and rank %d at "
                         "trainer %d, as they were created; all ranks must step the same trainers "
                         "in the same order",
                         function, dvt_rank(), t->number,
                         t->n ? dvt_param_name(t->trained[0].param) : "none", rank,
                         (int)other->trainer);
    if (other->n != t->n || other->steps != t->steps)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: rank %d is at step %lld of %d parameters, and rank %d at step %lld "
                         "of %d; all ranks must train the same net by the same calls",
                         function, dvt_rank(), (long long)t->steps, t->n, rank,
                         (long long)other->steps, (int)other->n);
    return DVT_OK;
}

DVTI_FN dvt_status dvti_ranks_agree(const char *function, const dvt_trainer *t, bool *used,
                                    int64_t *rows, int64_t *before, uint64_t *key) {
    const int n = dvt_num_ranks();
    dvti_rank_head head;
    dvt_status status = DVT_OK;
    dvti_rank_head *all = (dvti_rank_head *)dvti_alloc((size_t)n * sizeof *all);
    char *marks = (char *)dvti_alloc((size_t)n * (size_t)(t->n + 1));
    int64_t total = 0;
    int r, i;
    memset(&head, 0, sizeof head);
    head.steps = t->steps;
    head.n = t->n;
    head.trainer = t->number;
    head.rows = rows ? *rows : 0;
    head.key = key ? *key : 0;
    if (!all || !marks)
        status = dvti_fail_memory(function, (int64_t)n * (t->n + 1));
    if (status == DVT_OK)
        status = dvti_ranks_gather(function, &head, sizeof head, all);
    for (r = 0; r < n && status == DVT_OK; r++) {
        status = dvti_ranks_same_trainer(function, t, &all[r], r);
        if (before && r == dvt_rank())
            *before = total;
        total += all[r].rows;
    }
    if (status == DVT_OK && used)
        status = dvti_ranks_gather(function, used, t->n + 1, marks);
    for (r = 0; r < n && status == DVT_OK && used; r++)
        for (i = 0; i <= t->n; i++)
            used[i] |= marks[(int64_t)r * (t->n + 1) + i] != 0;
    if (status == DVT_OK && rows)
        *rows = total;
    if (status == DVT_OK && key)
        *key = all[0].key;
    dvti_free(marks);
    dvti_free(all);
    return status;
}

DVTI_FN dvt_status dvti_ranks_begin(const char *function, dvt_trainer *t) {
    dvt_status status = DVT_OK;
    int i, k;
    if (t->spread == dvti_ranks_run() || dvt_num_ranks() == 1)
        return DVT_OK;
    if (!t->number)
        t->number = ++dvti_rank_trainers;
    for (i = 0; i < t->n; i++)
        if (!dvti_param_ready(t->trained[i].param))
            return DVT_OK;
    for (i = 0; i < t->n && status == DVT_OK; i++) {
        dvt_param *param = t->trained[i].param;
        status = dvti_ranks_broadcast(function, param->copy[0], 0);
        for (k = 1; k < param->ctxs.n && status == DVT_OK; k++)
            status = dvt_copy_into(param->copy[k], param->copy[0]) ? DVT_OK : dvti_failure();
    }
    t->spread = status == DVT_OK ? dvti_ranks_run() : 0;
    return status;
}

DVT_API dvt_status dvt_trainer_set_bucket_bytes(dvt_trainer *trainer, int64_t bytes) {
    static const char *const function = "dvt_trainer_set_bucket_bytes";
    if (!trainer)
        return dvti_null(function, "trainer");
    if (bytes < 0)
        return dvti_fail(DVT_ERR_RANGE, "%s: bytes is %lld; expected a size, or 0 (off)", function,
                         (long long)bytes);
    trainer->bucket_bytes = bytes;
    return DVT_OK;
}

#if defined(DEVTENSOR_MPI)
/* ---- the sum of a step ---- */
/* Sums all gradients in host memory, after backward. */
static dvt_status dvti_ranks_sum_host(const char *function, const dvt_trainer *t) {
    const size_t bytes = (size_t)(t->n + 1) * sizeof(dvt_array *);
    dvt_array **like = (dvt_array **)dvti_alloc_zero(bytes);
    dvti_part_batch p;
    bool good;
    int i, k;
    if (!like)
        return dvti_fail_memory(function, (int64_t)bytes);
    good = dvti_ranks_sum_begin(function, &p, t->n);
    for (i = 0; i < t->n && good; i++)
        if (t->trained[i].taken && !t->trained[i].summed) {
            like[i] = dvti_trainer_at(t, i, 0)->gradient;
            p.sum[0].column[i] = (dvt_array *)dvti_own(like[i]);
        }
    good = good && dvti_ranks_merge(function, &p, like, t->n);
    for (i = 0; i < t->n && good; i++)
        for (k = 0; like[i] && k < t->ctxs.n && good; k++) {
            dvti_replica *at = dvti_trainer_at(t, i, k);
            good = !p.sum[0].column[i] ||
                   dvti_copy_elements(function, at->gradient, p.sum[0].column[i]) == DVT_OK;
            dvti_written(at->gradient);
            at->weight->grad_holds = DVTI_GRAD_SUM;
        }
    dvti_ranks_sum_end(&p, t->n);
    dvti_free(like);
    return good ? DVT_OK : dvti_failure();
}

/* Returns a hash of the gradients that this rank sums: FNV-1a, over numbers instead of bytes. 0:
   there are none. */
static uint64_t dvti_rank_shapes(const dvt_trainer *t) {
    uint64_t hash = 0;
    int i;
    for (i = 0; i < t->n; i++)
        if (t->trained[i].taken && !t->trained[i].summed) {
            const dvt_array *x = dvti_trainer_at(t, i, 0)->gradient;
            hash = hash ? hash : UINT64_C(1469598103934665603);
            hash = (hash ^ (uint64_t)i) * UINT64_C(1099511628211);
            hash = (hash ^ (uint64_t)x->dtype) * UINT64_C(1099511628211);
            hash = (hash ^ (uint64_t)dvt_size(x)) * UINT64_C(1099511628211);
        }
    return hash;
}

/* Tells all ranks the state of this one. Checks that all sum the same gradients. */
static dvt_status dvti_ranks_compare(const char *function, const dvt_trainer *t, bool fresh_only,
                                     dvti_rank_state *all) {
    dvti_rank_state own;
    dvt_status status;
    int r;
    memset(&own, 0, sizeof own);
    own.shapes = dvti_rank_shapes(t);
    status = dvti_buckets_report(function, t, fresh_only, &own);
    dvti_rank_devices_report(t, &own);
    if (status == DVT_OK)
        status = dvti_ranks_gather(function, &own, sizeof own, all);
    for (r = 0; r < dvt_num_ranks() && status == DVT_OK; r++)
        if (all[r].shapes != own.shapes)
            status = dvti_fail(DVT_ERR_VALUE,
                               "%s: ranks %d and %d have gradients of other parameters or shapes; "
                               "all ranks must train the same parameters of the same net",
                               function, dvt_rank(), r);
    return status;
}

DVTI_FN dvt_status dvti_ranks_sum(const char *function, dvt_trainer *t, bool fresh_only) {
    const int64_t bytes = dvt_num_ranks() * (int64_t)sizeof(dvti_rank_state);
    dvti_rank_state *all;
    dvt_status status;
    bool summed = false, idle = true;
    int r;
    if (t->parts && t->parts->parts) /* dvti_parts_finish has summed all */
        return DVT_OK;
    all = (dvti_rank_state *)dvti_alloc((size_t)bytes);
    if (!all)
        return dvti_fail_memory(function, bytes);
    status = dvti_buckets_make(function, t);
    if (status == DVT_OK)
        status = dvti_ranks_compare(function, t, fresh_only, all);
    for (r = 0; r < dvt_num_ranks() && status == DVT_OK; r++)
        idle = idle && !all[r].shapes && !all[r].started;
    if (status == DVT_OK && idle) { /* dvt_trainer_allreduce has summed all */
        dvti_turns_go_on();
        dvti_free(all);
        return DVT_OK;
    }
    dvti_turns_pause();
    if (status == DVT_OK)
        status = dvti_buckets_sum(function, t, all, &summed);
    if (status == DVT_OK && !summed && t->ctxs.n > 1)
        status = dvti_trainer_sum(function, t, fresh_only);
    if (status == DVT_OK && !summed)
        status = dvti_rank_devices_sum(function, t, all, &summed);
    if (status == DVT_OK && !summed)
        status = dvti_ranks_sum_host(function, t);
    if (status == DVT_OK)
        status = dvti_buckets_plan(function, t, all);
    dvti_turns_go_on();
    dvti_free(all);
    return status;
}
#else
DVTI_FN dvt_status dvti_ranks_sum(const char *function, dvt_trainer *t, bool fresh_only) {
    (void)function;
    (void)t;
    (void)fresh_only;
    return DVT_OK;
}
#endif
