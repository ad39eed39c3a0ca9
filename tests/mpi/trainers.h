/* Several trainers, and trainers whose ranks differ: in the order of passes, in contexts, in the
   memory that they have, and in when they end. Each case trains with buckets and without: all
   parameters must have the same bits. Included by train.c after overlap.h. */

typedef struct pupil {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *trainer;
} pupil;

/* `deferred`: the net has no shapes yet. */
static pupil make_pupil_of(uint64_t seed, int64_t bucket, bool deferred) {
    pupil p;
    int i;
    p.net = dvt_nn_sequential();
    dvt_seed(seed);
    for (i = 0; i < 4; i++)
        DVT_NN_ADD(p.net, dvt_nn_dense(i < 3 ? OVERLAP_UNITS : 1, i < 3 ? DVT_TANH : DVT_IDENTITY));
    dvt_block_initialize(p.net, dvt_init_xavier(), overlap_ctxs);
    DVT_PREDICT_MODE {
        for (i = 0; i < overlap_ctxs.n && !deferred; i++)
            deep_forward(p.net,
                         dvt_ones(DVT_SHAPE(1, OVERLAP_UNITS), DVT_F32, overlap_ctxs.ctx[i]));
    }
    p.params = dvt_block_collect_params(p.net, NULL);
    p.trainer = dvt_trainer_new(p.params, dvt_optimizer_sgd(0.01));
    dvt_trainer_set_bucket_bytes(p.trainer, bucket);
    return p;
}

static pupil make_pupil(uint64_t seed, int64_t bucket) {
    return make_pupil_of(seed, bucket, false);
}

static bool passes(const pupil *p, int step, int pass) {
    return deep_pass(p->net, overlap_ctxs.n, step, pass) == DVT_OK;
}

static bool steps(const pupil *p) {
    bool good;
    in_step = true;
    good = dvt_trainer_step(p->trainer, 4) == DVT_OK;
    in_step = false;
    return good;
}

static bool trains_once(const pupil *p, int step) {
    bool good = false;
    DVT_SCOPE {
        good = passes(p, step, 0) && steps(p);
    }
    return good;
}

static void hash_pupil(const pupil *p) {
    int i;
    for (i = 0; i < dvt_params_len(p->params); i++)
        DVT_SCOPE {
            dvt_array *x = dvt_copyto(
                dvt_param_data(dvt_params_at(p->params, i), overlap_ctxs.ctx[0]), dvt_cpu());
            hash_bytes(dvt_data(x), (size_t)dvt_nbytes(x));
        }
}

static bool has_plan(const pupil *p) {
    return p->trainer->buckets && p->trainer->buckets->n_buckets;
}

/* What a case expects of buckets: always true without them. */
static bool expect(bool uses_buckets, bool holds, const char *what) {
    if (!uses_buckets || dvt_num_ranks() == 1 || holds)
        return true;
    fprintf(stderr, "rank %d: %s\n", dvt_rank(), what);
    return false;
}

/* ---- what the library logs ---- */
static char heard_log[400]; /* the last message that buckets are not used any more */

static void hear_log(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)level;
    if (strstr(message, "from now on"))
        snprintf(heard_log, sizeof heard_log, "%s", message);
}

static void hear_logs(bool on) {
    heard_log[0] = 0;
    dvt_set_log_level(on ? DVT_LOG_INFO : DVT_LOG_WARNING);
    dvt_set_logger(on ? hear_log : NULL, NULL);
}

static bool expect_log(bool uses_buckets, const char *text) {
    const bool good = expect(uses_buckets, strstr(heard_log, text) != NULL, heard_log);
    heard_log[0] = 0;
    return good;
}

/* ---- orders and ends ---- */
/* Odd ranks have the passes of two trainers in another order. In two steps they have that of the
   second trainer when rank 0 has sent its buckets, and has stepped the first one: they have sent
   zeros, and the log says so. */
static bool case_order(int64_t bucket) {
    const int odd = dvt_rank() % 2;
    pupil p[2];
    bool good = true;
    int i;
    p[0] = make_pupil(3, bucket);
    p[1] = make_pupil(4, bucket);
    hear_logs(true);
    for (i = 0; i < 7 && good; i++)
        DVT_SCOPE {
            const bool late = odd && (i == 4 || i == 6);
            good = late || passes(&p[!odd], i, !odd);
            good = good && passes(&p[odd && !late], i, odd && !late);
            good = good && expect(bucket && i == 2, has_plan(&p[0]) && has_plan(&p[1]),
                                  "two trainers have no buckets");
            good = good && steps(&p[0]);
            good = good && (!late || passes(&p[1], i, 1)) && steps(&p[1]);
            good = good && expect(bucket && i == 3, has_plan(&p[0]) && has_plan(&p[1]),
                                  "another order of passes ends the use of buckets");
        }
    good = good && expect_log(bucket != 0, "rank 1 sent zeros for gradients that backward");
    hear_logs(false);
    hash_pupil(&p[0]);
    hash_pupil(&p[1]);
    return good;
}

/* Another trainer is destroyed between its pass and its step: on the even ranks, while the odd ones
   have no pass; or on the odd ranks; or on all. */
static bool case_ended(int64_t bucket) {
    pupil main = make_pupil(3, bucket), kept;
    bool good = true;
    int turn, i;
    for (turn = 0; turn < 3 && good; turn++) {
        const bool here = turn == 2 || dvt_rank() % 2 == turn;
        dvt_scope_guard scope;
        if (here)
            scope = dvt_scope_begin();
        kept = make_pupil(5, bucket);
        for (i = 0; i < 2 && good; i++)
            good = trains_once(&kept, 10 * turn + i);
        good = good && (turn == 0 && !here ? true : passes(&kept, 10 * turn + 2, 0));
        if (here)
            dvt_scope_end(&scope);
        for (i = 0; i < (turn ? 1 : 3) && good; i++)
            good = trains_once(&main, 10 * turn + i);
        good = good && expect(bucket != 0, has_plan(&main), "no buckets next to a trainer's end");
    }
    hash_pupil(&main);
    return good;
}

/* The contexts change while there is a plan, from two to one and back, where a rank has two: before
   a pass, and between two passes. */
static bool case_contexts(int64_t bucket) {
    const dvt_ctx_list all = overlap_ctxs;
    pupil p = make_pupil(3, bucket);
    bool good = true;
    int i;
    for (i = 0; i < 9 && good; i++)
        DVT_SCOPE {
            if (i == 6)
                good = passes(&p, i, 1);
            if (i == 3 || i == 6) {
                overlap_ctxs.n = i == 3 ? 1 : all.n;
                good = good && expect(bucket != 0, has_plan(&p), "no plan before new contexts") &&
                       dvt_params_reset_ctx(p.params, overlap_ctxs) == DVT_OK;
            }
            good = good && passes(&p, i, 0) && steps(&p);
            good = good && expect(bucket && (i == 5 || i == 8),
                                  has_plan(&p) && p.trainer->buckets->ctxs.n == overlap_ctxs.n,
                                  "no plan for new contexts");
        }
    overlap_ctxs = all;
    hash_pupil(&p);
    return good;
}

/* ---- no memory on rank 1 ---- */
static dvti_buckets *scarce_buckets; /* NULL: there is memory */

static bool scarce_prepare(const char *function, dvti_bucket *b, dvt_ctx ctx) {
    (void)b;
    (void)ctx;
    dvti_fail_memory(function, 1);
    return false;
}

static bool scarce_pack(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    dvti_buckets *o = scarce_buckets;
    const dvti_bucket_transport *way = o ? o->transport : NULL;
    dvti_bucket_transport scarce;
    bool good;
    if (way) {
        scarce = *way;
        scarce.prepare = scarce_prepare;
        o->transport = &scarce;
    }
    good = dvti_buckets_hear(user, function, leaf, grad);
    if (way)
        o->transport = way;
    return good;
}

/* Rank 1 cannot pack in two passes; then it cannot make a plan in two steps. All ranks sum in the
   step, say which rank is the reason, and use buckets again when they are told to. */
static bool case_memory(int64_t bucket) {
    static const dvti_grad_watch scarce = {scarce_pack, NULL};
    const bool one = dvt_rank() == 1;
    bool good = true;
    pupil p;
    int i;
    hear_logs(true);
    dvti_watch_gradients(&scarce);
    p = make_pupil(3, bucket);
    for (i = 0; i < 7 && good; i++) {
        scarce_buckets = one && bucket && (i == 2 || i == 4) ? p.trainer->buckets : NULL;
        good = expect(bucket && (i == 2 || i == 4), has_plan(&p), "no plan before memory ends");
        good = good && trains_once(&p, i);
        if (i == 4)
            good = good && expect_log(bucket != 0, "rank 1 has no memory for a bucket");
        if (i == 4)
            dvt_trainer_set_bucket_bytes(p.trainer, bucket ? 1999 : 0);
    }
    good = good && expect(bucket != 0, has_plan(&p), "no plan with memory again");
    scarce_buckets = NULL;
    hash_pupil(&p);
    p = make_pupil(4, bucket);
    for (i = 0; i < 5 && good; i++) {
        no_memory_of = one && (i == 1 || i == 2) ? 8 * sizeof(dvti_bucket) : 0;
        good = trains_once(&p, i) && expect(bucket && i == 2, !has_plan(&p), "a plan of no memory");
        if (i == 2)
            good = good && expect_log(bucket != 0, "rank 1 has no memory for the buckets");
        if (i == 2)
            dvt_trainer_set_bucket_bytes(p.trainer, bucket ? 1999 : 0);
    }
    good = good && expect(bucket != 0, has_plan(&p), "no plan with memory again");
    hash_pupil(&p);
    if (dvt_num_ranks() > 1)
        dvti_buckets_begin();
    hear_logs(false);
    return good;
}

/* ---- others ---- */
/* Returns the bytes of all parameters. */
static int64_t weights_of(const pupil *p) {
    int64_t bytes = 0;
    int i;
    for (i = 0; i < dvt_params_len(p->params); i++)
        bytes += dvt_nbytes(dvt_param_data(dvt_params_at(p->params, i), overlap_ctxs.ctx[0]));
    return bytes;
}

/* Buckets of any size are cut to the longest message. A step sends what docs/DISTRIBUTED.md says;
   its parameters are sent once before. */
static bool case_large(int64_t bucket) {
    pupil p = make_pupil(3, bucket ? INT64_MAX : 0);
    const int64_t others = dvt_num_ranks() - 1, weights = weights_of(&p);
    bool good = true;
    int i;
    for (i = 0; i < 4 && good; i++) {
        const int64_t start = dvt_rank_bytes();
        good = trains_once(&p, i) &&
               (dvt_rank_bytes() - start <= 2 * weights * others / dvt_num_ranks() + 600 * others ||
                !expect(true, false, "a step sends more bytes than documented"));
    }
    good = good && expect(bucket != 0,
                          has_plan(&p) && p.trainer->buckets->n_buckets == 1 &&
                              p.trainer->buckets->bytes == DVTI_FLIGHT_BYTES,
                          "buckets are not cut to 1 GiB");
    hash_pupil(&p);
    return good;
}

/* Rank 0 gives turns, and calls the others when they have waited a second: they have sent zeros. */
static bool case_waits(int64_t bucket) {
    pupil p = make_pupil(3, bucket);
    bool good = true;
    int i;
    for (i = 0; i < 4 && good; i++)
        DVT_SCOPE {
            const bool late = i == 2 && dvt_rank() != 0;
            good = late || passes(&p, i, 0);
            if (bucket && i == 2 && !late)
                dvti_sleep(2.5);
            good = good && dvt_barrier_ranks() == DVT_OK;
            good = good && expect(bucket && late, has_plan(&p) && p.trainer->buckets->started > 0,
                                  "a rank that waits does not start buckets");
            good = good && (!late || passes(&p, i, 0)) && steps(&p);
        }
    hash_pupil(&p);
    return good;
}

/* A trainer ends between its pass and its step, and leaves virtual GPUs at once. Rank 1 is late, so
   buckets of rank 0 are on their way then. */
static bool case_released(int64_t bucket) {
    bool good = true;
    int i;
    DVT_SCOPE {
        pupil p = make_pupil(3, bucket);
        for (i = 0; i < 2 && good; i++)
            good = trains_once(&p, i);
        if (dvt_rank() == 1)
            dvti_sleep(0.2);
        good = good && passes(&p, 2, 0);
        while (good && bucket && dvt_rank() == 0 && has_plan(&p) && !p.trainer->buckets->started)
            good = dvti_buckets_poll("test") == DVT_OK;
        hash_pupil(&p);
    }
    return good && dvt_set_virtual_gpus(2, 0) == DVT_OK;
}

#include "failures.h"

/* `which` has a letter for each case. */
static int trainers(const char *where, const char *which) {
    static bool (*const cases[])(int64_t) = {case_order, case_ended, case_contexts, case_memory,
                                             case_large, case_waits, case_released, case_retried};
    static const char letters[] = "oecmlwrt";
    uint64_t with;
    size_t i;
    if (!choose_contexts(where))
        return failed("contexts");
    for (i = 0; letters[i]; i++) {
        bool good = true;
        int turn;
        with = 0;
        for (turn = 0; turn < 2 && strchr(which, letters[i]) && good; turn++) {
            hash = 1469598103934665603u;
            DVT_SCOPE {
                good = cases[i](turn == 0 ? 2000 : 0) && dvt_error_code() == DVT_OK;
            }
            good = good && (turn == 0 || hash == with) && same_on_all_ranks() == 0;
            with = hash;
        }
        if (!good) {
            fprintf(stderr, "rank %d, case %c, %s buckets: %s\n", dvt_rank(), letters[i],
                    turn == 1 ? "with" : "without", dvt_error());
            return 1;
        }
    }
    return 0;
}

/* Rank 1 steps another trainer of an equal net; then of one that had no shapes at its creation. */
static int swapped(void) {
    int deferred;
    overlap_ctxs = DVT_CONTEXTS(dvt_cpu());
    for (deferred = 0; deferred < 2; deferred++) {
        pupil p[2];
        dvt_clear_error();
        p[0] = make_pupil_of(3, 0, deferred);
        p[1] = make_pupil_of(3, 0, deferred);
        if (passes(&p[0], 0, 0) && passes(&p[1], 0, 0) && steps(&p[dvt_rank() == 1]))
            return 0;
    }
    return failed("swapped");
}
