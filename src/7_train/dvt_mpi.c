/* The transport between processes, over MPI: point-to-point messages only. Collective functions of
   MPI add floats in an order of their own, and cannot tell which rank is late. */
#include "7_train/dvt_ranks.h"

#define DVTI_MPI_CHUNK DVTI_FLIGHT_BYTES /* MPI counts bytes in an int */
#define DVTI_MPI_TAG 17

typedef struct dvti_mpi_state {
    bool on;
    int lost;      /* 1 + the rank, 0: none */
    char why[400]; /* this rank was lost */
    int rank, ranks;
    int runs;      /* so far */
    int64_t bytes; /* sent */
#if defined(DEVTENSOR_MPI)
    MPI_Comm comm;
    bool own;  /* MPI was started here */
    bool busy; /* in calls of MPI */
#endif
} dvti_mpi_state;

static dvti_mpi_state dvti_mpi;

DVTI_FN double dvti_ranks_timeout(void) {
    return (double)dvti_env_int("DEVTENSOR_RANK_TIMEOUT", 1, INT64_C(1000000000), 600);
}

DVTI_FN bool dvti_ranks_on(void) {
    return dvti_mpi.on;
}

DVTI_FN int dvti_ranks_run(void) {
    return dvti_mpi.runs;
}

DVT_API int dvt_rank(void) {
    return dvti_mpi.on ? dvti_mpi.rank : 0;
}

DVT_API int dvt_num_ranks(void) {
    return dvti_mpi.on ? dvti_mpi.ranks : 1;
}

DVT_API int64_t dvt_rank_bytes(void) {
    return dvti_mpi.bytes;
}

#if defined(DEVTENSOR_MPI)
/* Reports that this rank cannot be reached, with MPI's sentence. */
static dvt_status dvti_mpi_lost(const char *function, int rank, int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    dvti_mpi.lost = rank + 1;
    MPI_Error_string(code, text, &length);
    return dvti_fail(DVT_ERR_RANK_LOST,
                     "%s: rank %d cannot reach rank %d: MPI says %s; start the run again from its "
                     "last checkpoint",
                     function, dvti_mpi.rank, rank, text);
}

/* Ends all processes when this one exits early. The launcher of MPICH would report success. MPICH
   itself calls exit within its functions when another rank ends the run. */
static void dvti_mpi_at_exit(void) {
    int ended = 0;
    if (!dvti_mpi.on || dvti_mpi.busy)
        return;
    MPI_Finalized(&ended);
    if (ended)
        return;
    dvti_log(DVT_LOG_ERROR,
             "rank %d exits without dvt_distributed_end, so all processes of the run are ended",
             dvti_mpi.rank);
    MPI_Abort(dvti_mpi.comm, 1);
}

DVTI_FN dvt_status dvti_ranks_start(const char *function) {
    static bool registered;
    int there = 0, ended = 0, provided, code;
    MPI_Initialized(&there);
    MPI_Finalized(&ended);
    if (ended)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: MPI has ended, and cannot start twice in a process; join once",
                         function);
    code = there ? MPI_SUCCESS : MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &dvti_mpi.comm);
    if (code != MPI_SUCCESS)
        return dvti_mpi_lost(function, 0, code);
    MPI_Comm_set_errhandler(dvti_mpi.comm, MPI_ERRORS_RETURN);
    if (!there) /* MPICH asks this one for tests of requests */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(dvti_mpi.comm, &dvti_mpi.rank);
    MPI_Comm_size(dvti_mpi.comm, &dvti_mpi.ranks);
    dvti_mpi.own = !there;
    if (dvti_mpi.own && !registered)
        registered = atexit(dvti_mpi_at_exit) == 0;
    dvti_mpi.lost = 0;
    dvti_mpi.runs++;
    dvti_mpi.on = true;
    dvti_buckets_begin();
    dvti_log(DVT_LOG_INFO, "%s: rank %d of %d is process %lld", function, dvti_mpi.rank,
             dvti_mpi.ranks, (long long)dvti_process_id());
    return DVT_OK;
}

DVTI_FN void dvti_ranks_stop(bool whole) {
    if (whole)
        dvti_rank_devices_end();
    dvti_mpi.busy = true;
    if (!whole || dvti_mpi.lost)
        MPI_Abort(dvti_mpi.comm, 1);
    MPI_Comm_free(&dvti_mpi.comm);
    dvti_mpi.on = dvti_mpi.busy = false;
    if (dvti_mpi.own)
        MPI_Finalize();
}

DVTI_FN void dvti_ranks_machine(char *name, int size) {
    char text[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0;
    MPI_Get_processor_name(text, &length);
    snprintf(name, (size_t)size, "%s", text);
}

DVTI_FN void dvti_ranks_break(void) {
    const dvt_status status = dvti_failure();
    if (dvti_mpi.lost)
        return;
    dvti_mpi.lost = dvti_mpi.rank + 1;
    snprintf(dvti_mpi.why, sizeof dvti_mpi.why, "%s",
             dvt_error_code() == status ? dvt_error() : dvt_status_meaning(status));
}

/* Messages on their way. The requests of rank r are 2 r (receive) and 2 r + 1 (send); `expected`
   has the bytes to receive from each rank. */
struct dvti_flight {
    MPI_Request *request;
    MPI_Status *status;
    int *expected;
};

static dvti_flight *dvti_flight_new(const char *function) {
    const size_t n = (size_t)dvti_mpi.ranks;
    const size_t bytes =
        sizeof(dvti_flight) + n * (2 * sizeof(MPI_Status) + 2 * sizeof(MPI_Request) + sizeof(int));
    dvti_flight *f = (dvti_flight *)dvti_alloc_zero(bytes);
    size_t i;
    if (!f) {
        dvti_fail_memory(function, (int64_t)bytes);
        return NULL;
    }
    f->request = (MPI_Request *)(void *)(f + 1);
    f->status = (MPI_Status *)(void *)(f->request + 2 * n);
    f->expected = (int *)(void *)(f->status + 2 * n);
    for (i = 0; i < 2 * n; i++)
        f->request[i] = MPI_REQUEST_NULL;
    return f;
}

/* Gives up requests, whose memory the caller will free. */
static void dvti_mpi_cancel(dvti_flight *f) {
    int i;
    for (i = 0; i < 2 * dvti_mpi.ranks; i++) {
        if (f->request[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&f->request[i]);
        MPI_Request_free(&f->request[i]);
    }
}

/* Tests all requests once. Returns how many are open, or -1 with the error set. One call for all
   would not tell which one failed. */
static int dvti_mpi_test(const char *function, dvti_flight *f) {
    int i, open = 0;
    for (i = 0; i < 2 * dvti_mpi.ranks; i++) {
        int done = 0, class_of = MPI_SUCCESS, code;
        if (f->request[i] == MPI_REQUEST_NULL)
            continue;
        code = MPI_Test(&f->request[i], &done, &f->status[i]);
        open += !done;
        if (code == MPI_SUCCESS)
            continue;
        MPI_Error_class(code, &class_of);
        if (class_of != MPI_ERR_TRUNCATE) {
            dvti_mpi_lost(function, i / 2, code);
            return -1;
        }
        dvti_mpi.lost = i / 2 + 1;
        dvti_fail(DVT_ERR_VALUE,
                  "%s: rank %d sent more bytes than rank %d expects; all ranks must make the same "
                  "calls in the same order, with the same shapes",
                  function, i / 2, dvti_mpi.rank);
        return -1;
    }
    return open;
}

/* Checks the lengths of the messages that have arrived. */
static dvt_status dvti_mpi_check(const char *function, const dvti_flight *f) {
    int r, bytes;
    for (r = 0; r < dvti_mpi.ranks; r++) {
        if (!f->expected[r])
            continue;
        MPI_Get_count(&f->status[2 * r], MPI_BYTE, &bytes);
        if (bytes == f->expected[r])
            continue;
        dvti_mpi.lost = r + 1;
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: rank %d sent %d bytes, and rank %d expects %d; all ranks must make "
                         "the same calls in the same order, with the same shapes",
                         function, r, bytes, dvti_mpi.rank, f->expected[r]);
    }
    return DVT_OK;
}

static dvt_status dvti_mpi_post(const char *function, int tag, const dvti_message *send,
                                const dvti_message *receive, int64_t at, dvti_flight *f) {
    int r, code = MPI_SUCCESS, n;
    for (r = 0; r < dvti_mpi.ranks && code == MPI_SUCCESS; r++) {
        if (r == dvti_mpi.rank)
            continue;
        f->expected[r] = (int)DVTI_MAX(DVTI_MIN(receive[r].bytes - at, DVTI_MPI_CHUNK), 0);
        n = (int)DVTI_MAX(DVTI_MIN(send[r].bytes - at, DVTI_MPI_CHUNK), 0);
        if (f->expected[r])
            code = MPI_Irecv(receive[r].at + at, f->expected[r], MPI_BYTE, r, tag, dvti_mpi.comm,
                             &f->request[2 * r]);
        if (n && code == MPI_SUCCESS)
            code = MPI_Isend(send[r].at + at, n, MPI_BYTE, r, tag, dvti_mpi.comm,
                             &f->request[2 * r + 1]);
        dvti_mpi.bytes += n;
    }
    return code == MPI_SUCCESS ? DVT_OK : dvti_mpi_lost(function, r - 1, code);
}

/* `attend`: buckets whose turn comes meanwhile start. */
static dvt_status dvti_mpi_wait(const char *function, dvti_flight *f, bool attend) {
    const double limit = dvti_ranks_timeout();
    const double begin = dvti_now();
    int open, i, turns = 0;
    while ((open = dvti_mpi_test(function, f)) > 0) {
        if (++turns < 1000)
            continue;
        dvti_sleep(20e-6); /* with more processes than processors, the others must run */
        if (dvti_now() > begin + limit)
            break;
        if (attend)
            dvti_buckets_attend(function, dvti_now() - begin);
        if (!dvti_ranks_whole(function))
            return dvti_failure();
    }
    if (open <= 0)
        return open ? dvti_failure() : dvti_mpi_check(function, f);
    for (i = 0; f->request[i] == MPI_REQUEST_NULL;) /* the first rank whose message is missing */
        i++;
    dvti_mpi.lost = i / 2 + 1;
    return dvti_fail(DVT_ERR_RANK_LOST,
                     "%s: rank %d has waited %g s for rank %d, which does not answer; start the "
                     "run again from its last checkpoint, or set DEVTENSOR_RANK_TIMEOUT to more "
                     "seconds",
                     function, dvti_mpi.rank, limit, i / 2);
}

DVTI_FN bool dvti_ranks_whole(const char *function) {
    if (dvti_mpi.lost == dvti_mpi.rank + 1)
        dvti_fail(DVT_ERR_RANK_LOST,
                  "%s: an exchange of rank %d failed earlier (%s); start the run again from its "
                  "last checkpoint",
                  function, dvti_mpi.rank, dvti_mpi.why);
    else if (dvti_mpi.lost)
        dvti_fail(DVT_ERR_RANK_LOST,
                  "%s: rank %d was lost earlier; start the run again from its last checkpoint",
                  function, dvti_mpi.lost - 1);
    return !dvti_mpi.lost;
}

DVTI_FN dvti_flight *dvti_ranks_post(const char *function, int tag, const dvti_message *send,
                                     const dvti_message *receive) {
    dvti_flight *f = dvti_ranks_whole(function) ? dvti_flight_new(function) : NULL;
    const bool busy = dvti_mpi.busy; /* buckets move while a call waits */
    dvt_status status;
    if (!f)
        return NULL;
    dvti_mpi.busy = true;
    status = dvti_mpi_post(function, DVTI_MPI_TAG + tag, send, receive, 0, f);
    dvti_mpi.busy = busy;
    if (status == DVT_OK)
        return f;
    dvti_ranks_land(f);
    return NULL;
}

DVTI_FN bool dvti_ranks_arrived(const char *function, dvti_flight *f, dvt_status *status) {
    const bool busy = dvti_mpi.busy;
    int open;
    *status = DVT_OK;
    if (!dvti_ranks_whole(function)) {
        *status = dvti_failure();
        return false;
    }
    dvti_mpi.busy = true;
    open = dvti_mpi_test(function, f);
    if (open <= 0)
        *status = open ? dvti_failure() : dvti_mpi_check(function, f);
    dvti_mpi.busy = busy;
    return open == 0 && *status == DVT_OK;
}

DVTI_FN dvt_status dvti_ranks_await(const char *function, dvti_flight *f) {
    dvt_status status;
    if (!dvti_ranks_whole(function))
        return dvti_failure();
    dvti_mpi.busy = true;
    status = dvti_mpi_wait(function, f, false);
    dvti_mpi.busy = false;
    return status;
}

DVTI_FN void dvti_ranks_land(dvti_flight *f) {
    bool busy;
    if (!f)
        return;
    busy = dvti_mpi.busy;
    dvti_mpi.busy = true;
    dvti_mpi_cancel(f);
    dvti_mpi.busy = busy;
    dvti_free(f);
}

DVTI_FN dvt_status dvti_ranks_exchange(const char *function, const dvti_message *send,
                                       const dvti_message *receive) {
    int64_t most = 0, at;
    dvt_status status = DVT_OK;
    dvti_flight *f;
    int r;
    if (!dvti_ranks_whole(function))
        return dvti_failure();
    f = dvti_flight_new(function);
    if (!f)
        return dvti_failure();
    for (r = 0; r < dvti_mpi.ranks; r++)
        most = DVTI_MAX(most, DVTI_MAX(send[r].bytes, receive[r].bytes));
    if (send[dvti_mpi.rank].bytes)
        memcpy(receive[dvti_mpi.rank].at, send[dvti_mpi.rank].at,
               (size_t)send[dvti_mpi.rank].bytes);
    dvti_mpi.busy = true;
    for (at = 0; at < most && status == DVT_OK; at += DVTI_MPI_CHUNK) {
        status = dvti_mpi_post(function, DVTI_MPI_TAG, send, receive, at, f);
        if (status == DVT_OK)
            status = dvti_mpi_wait(function, f, true);
    }
    dvti_mpi.busy = false;
    dvti_ranks_land(f);
    return status;
}
#else
DVTI_FN dvt_status dvti_ranks_start(const char *function) {
    return dvti_fail(
        DVT_ERR_NOT_BUILT,
        "%s: this program has no MPI; compile it with mpicc -DDEVTENSOR_MPI, and start "
        "it with mpirun",
        function);
}

DVTI_FN void dvti_ranks_stop(bool whole) {
    (void)whole;
}

DVTI_FN dvt_status dvti_ranks_exchange(const char *function, const dvti_message *send,
                                       const dvti_message *receive) {
    if (send[0].bytes)
        memcpy(receive[0].at, send[0].at, (size_t)send[0].bytes);
    (void)function;
    return DVT_OK;
}
#endif

#undef DVTI_MPI_CHUNK
#undef DVTI_MPI_TAG
