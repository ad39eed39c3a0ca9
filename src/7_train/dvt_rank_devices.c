/* Sums over ranks on their GPUs, where the backend has such sums (NCCL): one GPU of each rank,
   after the sum over the contexts of the rank. Buckets are summed while backward runs
   (dvt_bucket_send.c), all other gradients in the step. The processes agree by messages: on whether
   all can take part, and at every step that all are there. The order of additions is that of the
   backend. */
#include "7_train/dvt_ranks.h"

#if defined(DEVTENSOR_MPI)
#define DVTI_RANK_PLACE 384

/* The group of this process. A second GPU would need a group of its own, so its sums go through
   host memory. */
static struct dvti_rank_group {
    const dvti_process_sums *sums;
    dvti_device *device;         /* NULL: none was asked for */
    char place[DVTI_RANK_PLACE]; /* machine and GPU; "": it cannot take part */
    void *group;
    bool refused, told;
} dvti_rank_group;

/* Looks at the device of the first sum. */
static void dvti_rank_group_look(dvti_device *device) {
    struct dvti_rank_group *g = &dvti_rank_group;
    char id[64] = "";
    g->device = device;
    g->sums = device->backend->process_sums ? device->backend->process_sums() : NULL;
    if (!g->sums || !g->sums->identify(device, id, (int)sizeof id))
        return;
    dvti_ranks_machine(g->place, (int)sizeof g->place - (int)sizeof id - 1);
    snprintf(g->place + strlen(g->place), sizeof id + 1, " %s", id);
}

DVTI_FN void dvti_rank_devices_report(const dvt_trainer *t, dvti_rank_state *state) {
    struct dvti_rank_group *g = &dvti_rank_group;
    bool fits = true;
    int i, n = 0;
    for (i = 0; i < t->n && fits; i++)
        if (t->trained[i].taken && !t->trained[i].summed) {
            const dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient;
            if (!g->device)
                dvti_rank_group_look(gradient->storage->device);
            fits = gradient->storage->device == g->device && dvt_is_contiguous(gradient);
            n++;
        }
    if (!n || !fits || g->refused || !g->place[0])
        state->device = DVTI_RANK_HOST;
    else
        state->device = g->group ? DVTI_RANK_JOINED : DVTI_RANK_READY;
}

DVTI_FN bool dvti_rank_devices_joined(const dvti_rank_state *all) {
    bool joined = dvti_rank_group.group != NULL;
    int r;
    for (r = 0; r < dvt_num_ranks(); r++)
        joined = joined && all[r].device != DVTI_RANK_HOST;
    return joined;
}

/* ---- joining ---- */
/* Logs, once, why sums go through host memory. */
static void dvti_rank_group_refuse(const char *function, const char *why, int rank, int other) {
    struct dvti_rank_group *g = &dvti_rank_group;
    if (!g->told)
        dvti_log(DVT_LOG_WARNING,
                 "%s: gradients of all ranks are summed through host memory, because ranks %d and "
                 "%d %s",
                 function, rank, other, why);
    g->told = true;
}

/* Returns whether all ranks have a GPU of their own. */
static bool dvti_rank_places_differ(const char *function, const char *places) {
    const int n = dvt_num_ranks();
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j < i; j++)
            if (strcmp(places + i * DVTI_RANK_PLACE, places + j * DVTI_RANK_PLACE) == 0) {
                dvti_rank_group_refuse(function, "share a GPU; give each rank a GPU of its own", j,
                                       i);
                return false;
            }
    return true;
}

/* Makes the group, on all ranks or none. `all` holds DVTI_RANK_PLACE bytes for each rank. */
static dvt_status dvti_rank_group_join(const char *function, char *all) {
    struct dvti_rank_group *g = &dvti_rank_group;
    char key[DVTI_PROCESS_KEY_BYTES + 1], joined;
    dvt_status status = dvti_ranks_gather(function, g->place, DVTI_RANK_PLACE, all);
    int r;
    g->refused = true; /* until all have joined */
    if (status != DVT_OK || !dvti_rank_places_differ(function, all))
        return status;
    memset(key, 0, sizeof key); /* the last byte: there is a key */
    key[DVTI_PROCESS_KEY_BYTES] = dvt_rank() == 0 && g->sums->name(key);
    status = dvti_ranks_gather(function, key, (int64_t)sizeof key, all);
    if (status != DVT_OK || !all[DVTI_PROCESS_KEY_BYTES])
        return status;
    g->group = g->sums->join(g->device, all, dvt_rank(), dvt_num_ranks());
    joined = g->group != NULL;
    status = dvti_ranks_gather(function, &joined, 1, all);
    g->refused = false;
    for (r = 0; r < dvt_num_ranks() && status == DVT_OK; r++)
        g->refused = g->refused || !all[r];
    if (g->group && (g->refused || status != DVT_OK)) {
        g->sums->leave(g->device, g->group, true);
        g->group = NULL;
    }
    return status;
}

/* Returns whether all ranks can take part, and tells once if only some can. */
static bool dvti_rank_devices_agree(const char *function, const dvti_rank_state *all) {
    int r, host = -1, device = -1;
    for (r = 0; r < dvt_num_ranks(); r++) {
        if (all[r].device == DVTI_RANK_HOST && host < 0)
            host = r;
        if (all[r].device != DVTI_RANK_HOST && device < 0)
            device = r;
    }
    if (host >= 0 && device >= 0)
        dvti_rank_group_refuse(
            function,
            "do not both have a GPU and NCCL; set DEVTENSOR_NCCL=1 on all ranks, or on none",
            device, host);
    return host < 0;
}

static dvt_status dvti_rank_devices_join(const char *function, const dvti_rank_state *all) {
    const int64_t bytes = dvt_num_ranks() * (int64_t)DVTI_RANK_PLACE;
    dvt_status status;
    char *places;
    bool joined = true;
    int r;
    for (r = 0; r < dvt_num_ranks(); r++)
        joined = joined && all[r].device == DVTI_RANK_JOINED;
    if (joined)
        return DVT_OK;
    places = (char *)dvti_alloc((size_t)bytes);
    status = places ? dvti_rank_group_join(function, places) : dvti_fail_memory(function, bytes);
    dvti_free(places);
    return status;
}

/* ---- the sum ---- */
/* Reports that another rank does not take part in a sum. Messages tell which one, if any answers
   them no more. */
static dvt_status dvti_rank_devices_lost(const char *function, const char *why) {
    const int n = dvt_num_ranks();
    char own = 0, *all = (char *)dvti_alloc((size_t)n);
    dvt_status status = all ? dvti_ranks_gather(function, &own, 1, all) : DVT_OK;
    dvti_free(all);
    if (status == DVT_OK)
        status =
            dvti_fail(DVT_ERR_RANK_LOST,
                      "%s: rank %d of %d: the sum of the GPUs %s%s; start the run again from "
                      "its last checkpoint, or unset DEVTENSOR_NCCL",
                      function, dvt_rank(), n, why ? "gave: " : "does not end", why ? why : "");
    dvti_ranks_break();
    return status;
}

/* Ends the group, and with it the sums in progress. */
static void dvti_rank_group_abort(void) {
    struct dvti_rank_group *g = &dvti_rank_group;
    g->sums->leave(g->device, g->group, true);
    g->group = NULL;
    g->refused = true;
}

/* Waits in polls, because a GPU would wait for a lost rank for ever. */
DVTI_FN dvt_status dvti_rank_devices_done(const char *function, void *ticket, bool wait,
                                          bool *done) {
    struct dvti_rank_group *g = &dvti_rank_group;
    const double end = dvti_now() + dvti_ranks_timeout();
    const char *why = NULL;
    dvt_status status = DVT_OK;
    bool open = true;
    int turns = 0;
    *done = false;
    if (!dvti_ranks_whole(function))
        return dvti_failure();
    while (status == DVT_OK && !*done && !why && open) {
        status = g->sums->done(function, g->device, g->group, ticket, done, &why);
        if (!wait && status == DVT_OK && !why)
            return DVT_OK;
        if (!*done && ++turns > 1000)
            dvti_sleep(20e-6);
        open = dvti_now() < end;
    }
    if (*done)
        return DVT_OK;
    dvti_rank_group_abort();
    if (status == DVT_OK)
        return dvti_rank_devices_lost(function, why);
    dvti_ranks_break();
    return status;
}

static dvt_status dvti_rank_devices_queue(const char *function, const dvti_reduce_part *part, int n,
                                          void **ticket) {
    struct dvti_rank_group *g = &dvti_rank_group;
    dvt_status status;
    if (!dvti_ranks_whole(function))
        return dvti_failure();
    if (!g->group) /* while dvti_rank_devices_lost asks which rank it is */
        return DVT_ERR_RANK_LOST;
    status = g->sums->sum(function, g->device, g->group, part, n, ticket);
    if (status != DVT_OK && *ticket) { /* the sums may run, and would be started twice */
        dvti_rank_group_abort();
        dvti_ranks_break();
    }
    return status;
}

DVTI_FN dvt_status dvti_rank_devices_start(const char *function, const dvt_array *from,
                                           const dvt_array *to, void **ticket) {
    dvti_reduce_part part;
    part.dtype = from->dtype;
    part.count = dvt_size(from);
    part.at[0] = dvti_view_of(from).data;
    part.at[1] = dvti_view_of(to).data;
    return dvti_rank_devices_queue(function, &part, 1, ticket);
}

DVTI_FN void dvti_rank_devices_forget(void *ticket) {
    if (ticket)
        dvti_rank_group.sums->forget(dvti_rank_group.device, ticket);
}

/* Sums all gradients in the step. */
static dvt_status dvti_rank_devices_run(const char *function, const dvt_trainer *t) {
    const size_t bytes = (size_t)t->n * sizeof(dvti_reduce_part);
    dvti_reduce_part *part = (dvti_reduce_part *)dvti_alloc(bytes);
    void *ticket = NULL;
    dvt_status status;
    bool done;
    int i, n = 0;
    if (!part)
        return dvti_fail_memory(function, (int64_t)bytes);
    for (i = 0; i < t->n; i++)
        if (t->trained[i].taken && !t->trained[i].summed) {
            dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient;
            part[n].dtype = gradient->dtype;
            part[n].count = dvt_size(gradient);
            part[n].at[0] = part[n].at[1] = dvti_view_of(gradient).data;
            dvti_written(gradient);
            n++;
        }
    status = dvti_rank_devices_queue(function, part, n, &ticket);
    dvti_free(part);
    if (status == DVT_OK)
        status = dvti_rank_devices_done(function, ticket, true, &done);
    dvti_rank_devices_forget(ticket);
    return status;
}

DVTI_FN dvt_status dvti_rank_devices_sum(const char *function, dvt_trainer *t,
                                         const dvti_rank_state *all, bool *summed) {
    dvt_status status;
    int i, k;
    *summed = false;
    if (!dvti_rank_devices_agree(function, all))
        return DVT_OK;
    status = dvti_rank_devices_join(function, all);
    if (status != DVT_OK || !dvti_rank_group.group)
        return status;
    status = dvti_rank_devices_run(function, t);
    for (i = 0; i < t->n && status == DVT_OK; i++)
        for (k = 0; t->trained[i].taken && !t->trained[i].summed && k < t->ctxs.n; k++) {
            dvti_replica *at = dvti_trainer_at(t, i, k);
            if (k && status == DVT_OK)
                status =
                    dvti_copy_elements(function, at->gradient, dvti_trainer_at(t, i, 0)->gradient);
            dvti_written(at->gradient);
            at->weight->grad_holds = DVTI_GRAD_SUM;
        }
    *summed = status == DVT_OK;
    return status;
}

DVTI_FN void dvti_rank_devices_end(void) {
    struct dvti_rank_group *g = &dvti_rank_group;
    if (g->group)
        g->sums->leave(g->device, g->group, false);
    memset(g, 0, sizeof *g);
}

#undef DVTI_RANK_PLACE
#endif
