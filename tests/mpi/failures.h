/* Buckets when a call fails halfway, and when the processes join twice. Included by trainers.h. */

/* ---- requests of MPI ---- */
static int open_requests; /* of messages */
static int late_message;  /* the rank to which the next message leaves late; 0: none */

int MPI_Isend(const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    if (late_message && to == late_message) {
        late_message = 0;
        dvti_sleep(0.3);
    }
    open_requests++;
    return PMPI_Isend(at, n, type, to, tag, comm, request);
}

int MPI_Irecv(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
    open_requests++;
    return PMPI_Irecv(at, n, type, from, tag, comm, request);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
    const int code = PMPI_Test(request, done, status);
    open_requests -= *done;
    return code;
}

int MPI_Request_free(MPI_Request *request) {
    open_requests--;
    return PMPI_Request_free(request);
}

/* ---- messages without memory ---- */
static int no_flight_in_start, no_flight_in_add; /* no_flight of the next start or add */

static bool short_start(const char *function, dvti_bucket *b, int number, bool wait,
                        dvt_status *status) {
    bool good;
    no_flight = no_flight_in_start;
    good = dvti_bucket_messages()->start(function, b, number, wait, status);
    no_flight_in_start = no_flight;
    no_flight = 0;
    return good;
}

static bool short_add(const char *function, dvti_bucket *b, int number, bool wait,
                      dvt_status *status) {
    bool good;
    no_flight = no_flight_in_add;
    good = dvti_bucket_messages()->add(function, b, number, wait, status);
    no_flight_in_add = no_flight;
    no_flight = 0;
    return good;
}

/* Hears a gradient, and goes on when the call that finds no memory has failed. */
static bool short_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    static dvti_bucket_transport way;
    dvti_buckets *o = dvti_buckets_list;
    const bool fails = no_flight_in_start || no_flight_in_add;
    bool good;
    way = *dvti_bucket_messages();
    way.start = short_start;
    way.add = short_add;
    if (o && o->n_buckets && fails)
        o->transport = &way;
    good = dvti_buckets_hear(user, function, leaf, grad);
    while (good && o && o->packed && (no_flight_in_start || no_flight_in_add))
        good = dvti_buckets_poll(function) == DVT_OK;
    if (o && o->n_buckets && fails)
        o->transport = dvti_bucket_messages();
    return good;
}

/* Frees the buckets of destroyed trainers. */
static bool reaps(void) {
    bool good = true;
    while (good && dvti_buckets_list)
        good = dvti_buckets_poll("test") == DVT_OK;
    return good;
}

/* Rank 1 has no memory to send the sum of its slice, in a pass that runs again. The sum that it has
   made is sent then, and nothing is left at the end. */
static bool case_retried(int64_t bucket) {
    static const dvti_grad_watch watch = {short_complete, NULL};
    const bool one = bucket && dvt_rank() == 1;
    bool good = reaps();
    const int64_t arrays = dvt_get_stats().arrays;
    dvti_watch_gradients(&watch);
    DVT_SCOPE {
        pupil p = make_pupil(3, bucket);
        int i;
        for (i = 0; i < 5 && good; i++) {
            no_flight_in_add = one && i == 2;
            if (no_flight_in_add)
                DVT_SCOPE {
                    good =
                        expect(true, !passes(&p, i, 0) && dvt_error_code() == DVT_ERR_HOST_MEMORY,
                               "a pass without memory for a message");
                    dvt_clear_error();
                }
            good = good && trains_once(&p, i);
        }
        good = good && expect(bucket != 0, has_plan(&p), "no plan after a pass without memory");
        hash_pupil(&p);
    }
    good = good && reaps() &&
           expect(bucket != 0, dvt_get_stats().arrays == arrays, "arrays are left behind");
    if (dvt_num_ranks() > 1)
        dvti_buckets_begin();
    return good;
}

/* ---- what ends a run ---- */
static int(DVTI_CUDA_CALL *group_end)(void);

/* Fails the record of the event behind a sum that has begun. */
static int DVTI_CUDA_CALL failing_group_end(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*fail)(const char *name, int nth, int code) = NULL;
    const int result = group_end();
    if (library)
        *(void **)&fail = dlsym(library, "sim_fail");
    if (fail)
        fail("cuEventRecord", 1, 2);
    dvti_nccl_the_state.library.ncclGroupEnd = group_end;
    return result;
}

/* A bucket of rank 1 has begun, and cannot end: its second message finds no memory, or NCCL sums it
   and the event is not recorded. It must not begin again, so all later calls fail. */
static int broken(const char *where) {
    static const dvti_grad_watch watch = {short_complete, NULL};
    pupil p;
    int i, sums;
    bool good;
    if (!choose_contexts(where))
        return failed("contexts");
    p = make_pupil(3, 2000);
    for (i = 0; i < 2; i++)
        if (!trains_once(&p, i))
            return failed("train");
    if (dvt_rank() != 1)
        return trains_once(&p, 2) ? 0 : failed("step");
    if (overlap_nccl) {
        group_end = dvti_nccl_the_state.library.ncclGroupEnd;
        dvti_nccl_the_state.library.ncclGroupEnd = failing_group_end;
    } else {
        no_flight_in_start = 2;
        dvti_watch_gradients(&watch);
    }
    good = trains_once(&p, 2);
    if (good || !strstr(dvt_error(), overlap_nccl ? "cuEventRecord" : "memory"))
        return failed("a bucket that is not sent");
    fprintf(stderr, "rank 1: %s\n", dvt_error());
    dvt_clear_error();
    sums = sums_by_nccl();
    good = passes(&p, 2, 0);
    if (good || dvt_error_code() != DVT_ERR_RANK_LOST || sums_by_nccl() != sums ||
        dvti_rank_group.group)
        return failed("a bucket begins twice, or goes on");
    return failed("a later pass fails");
}

/* ---- two runs ---- */
/* Trains with buckets and without: all bits must be the same, also on all ranks. */
static bool trains_equally(const pupil p[2], int first) {
    uint64_t bits[2];
    int i, k;
    for (i = first; i < first + 4; i++)
        for (k = 0; k < 2; k++)
            DVT_SCOPE {
                const int64_t waits = dvti_atomic_load(&dvti_stats()->waits);
                if (!passes(&p[k], i, 0) ||
                    (k == 0 && i >= first + 2 && !all_packed(p[k].trainer, waits)) || !steps(&p[k]))
                    return false;
            }
    for (k = 0; k < 2; k++) {
        hash = 1469598103934665603u;
        hash_pupil(&p[k]);
        bits[k] = hash;
    }
    return bits[0] == bits[1] && same_on_all_ranks() == 0;
}

/* Trainers outlive dvt_distributed_end. In the second run they get the parameters of rank 0, and
   use buckets, as in the first one. A message of rank 2 is late in dvt_distributed_end, so rank 1
   takes the last turn while it waits. It leaves no request of MPI. */
static int again(void) {
    pupil p[2];
    int run, k, rank = 0;
    MPI_Init(NULL, NULL);
    for (run = 0; run < 2; run++) {
        if (dvt_distributed_init() != DVT_OK || !choose_contexts("cpu"))
            return failed("start");
        rank = dvt_rank();
        for (k = 0; k < 2 && run == 0; k++)
            p[k] = make_pupil(3, k ? 0 : 2000);
        if (!trains_equally(p, 4 * run))
            return failed("train");
        late_message = rank == 2 ? 1 : 0;
        if (dvt_distributed_end() != DVT_OK)
            return failed("end");
        if (open_requests) {
            fprintf(stderr, "rank %d, run %d: %d requests are open\n", rank, run, open_requests);
            return 1;
        }
        for (k = 0; k < 2; k++)
            poke(dvt_param_data(dvt_params_at(p[k].params, 0), dvt_cpu()), rank);
    }
    MPI_Finalize();
    return 0;
}
