/* A test double of NCCL for the simulated driver: sums float32 and float64 arrays through host
   memory. Sums over the GPUs of one process end in ncclGroupEnd. Those over processes (shared.c) go
   on in ncclCommGetAsyncError, and end there in the order of their begin: ncclGroupEnd waits for no
   other process, as on a GPU. ncclReductionCount (found with dlsym) counts the sums that have
   begun, so that a test can tell that NCCL was used, and when. */
#include "shared.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { F32 = 7, F64 = 8, MOST = 4096 };

struct comm {
    int rank, size;
    CUcontext context;
    CUdevice device;
    struct shared *shared;    /* NULL: all GPUs are of this process */
    struct sum *first, *last; /* over processes, in progress */
    int error;
};

struct request {
    const void *from;
    void *to;
    size_t count;
    int type;
    struct comm *comm;
    CUstream stream;
};

/* A sum over processes. */
struct sum {
    struct sum *next;
    struct request request;
    double *own, *sum; /* in host memory */
};

static struct request queued[MOST];
static int n_queued, reductions;

API int ncclReductionCount(void) {
    return reductions;
}

API const char *ncclGetErrorString(int result) {
    return result == OK        ? "no error"
           : result == INVALID ? "invalid argument"
           : result == REMOTE  ? "remote process exited or there was a network error"
                               : "internal error";
}

API int ncclGetUniqueId(struct shared_id *id) {
    return shared_name(id);
}

API int ncclCommInitRank(struct comm **comm, int n, struct shared_id id, int rank) {
    struct comm *c = calloc(1, sizeof *c);
    c->rank = rank;
    c->size = n;
    c->shared = shared_join(&id, rank, n);
    if (!c->shared || cuCtxGetCurrent(&c->context) || cuCtxGetDevice(&c->device)) {
        free(c);
        return INTERNAL;
    }
    *comm = c;
    return OK;
}

API int ncclCommInitAll(struct comm **comms, int n, const int *devices) {
    for (int i = 0; i < n; i++) {
        comms[i] = calloc(1, sizeof *comms[i]);
        comms[i]->rank = i;
        comms[i]->size = n;
        if (cuDeviceGet(&comms[i]->device, devices[i]) ||
            cuDevicePrimaryCtxRetain(&comms[i]->context, comms[i]->device))
            return INTERNAL;
    }
    return OK;
}

API int ncclCommDestroy(struct comm *comm) {
    while (comm->first) {
        struct sum *one = comm->first;
        comm->first = one->next;
        free(one->own);
        free(one->sum);
        free(one);
    }
    if (comm->shared)
        shared_leave(comm->shared);
    else
        cuDevicePrimaryCtxRelease(comm->device);
    free(comm);
    return OK;
}

API int ncclCommAbort(struct comm *comm) {
    return ncclCommDestroy(comm);
}

API int ncclGroupStart(void) {
    n_queued = 0;
    return OK;
}

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                      struct comm *comm, CUstream stream) {
    struct request one = {from, to, count, type, comm, stream};
    if (n_queued == MOST || operation != 0 || (type != F32 && type != F64))
        return INVALID;
    queued[n_queued++] = one;
    return OK;
}

static int fetch(const struct request *one, void *host) {
    size_t bytes = one->count * (one->type == F32 ? 4 : 8);
    CUcontext popped;
    int bad = cuCtxPushCurrent(one->comm->context) ||
              cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)one->from, bytes, one->stream) ||
              cuStreamSynchronize(one->stream);
    cuCtxPopCurrent(&popped);
    return bad;
}

static int store(const struct request *one, const void *host) {
    size_t bytes = one->count * (one->type == F32 ? 4 : 8);
    CUcontext popped;
    int bad = cuCtxPushCurrent(one->comm->context) ||
              cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)one->to, host, bytes, one->stream) ||
              cuStreamSynchronize(one->stream);
    cuCtxPopCurrent(&popped);
    return bad;
}

/* Executes one sum, whose requests are adjacent and in the order of the ranks. */
static int reduce(const struct request *first) {
    size_t count = first->count;
    double *sum = calloc(count, 8), *one = malloc(count * 8);
    int bad = 0;
    for (int k = 0; k < first->comm->size && !bad; k++) {
        bad = first[k].comm->rank != k || first[k].count != count || fetch(&first[k], one);
        for (size_t i = 0; i < count && !bad; i++)
            if (first->type == F32)
                ((float *)sum)[i] += ((float *)one)[i];
            else
                sum[i] += one[i];
    }
    for (int k = 0; k < first->comm->size && !bad; k++)
        bad = store(&first[k], sum);
    free(sum);
    free(one);
    reductions++;
    return bad ? INTERNAL : OK;
}

/* Begins a sum over processes. */
static int begin_shared(const struct request *request) {
    const char *stops = getenv("SIMNCCL_STOPS");         /* the rank that stops before a sum */
    const char *before = getenv("SIMNCCL_STOPS_BEFORE"); /* its number, from 0; 2 by default */
    struct comm *comm = request->comm;
    struct sum *one = calloc(1, sizeof *one);
    one->request = *request;
    one->own = malloc(request->count * 8 + 8);
    one->sum = malloc(request->count * 8 + 8);
    if (fetch(request, one->own))
        return INTERNAL;
    if (stops && reductions == (before ? atoi(before) : 2) && atoi(stops) == comm->rank)
        raise(SIGSTOP);
    if (comm->first)
        comm->last->next = one;
    else
        shared_begin(comm->shared, one->own, one->sum, request->count, request->type == F64);
    comm->first = comm->first ? comm->first : one;
    comm->last = one;
    reductions++;
    return OK;
}

/* Goes on with the sums in progress. */
API int ncclCommGetAsyncError(struct comm *comm, int *result) {
    while (comm->first && !comm->error) {
        struct sum *one = comm->first;
        const int now = shared_go_on(comm->shared);
        if (now == IN_PROGRESS) {
            *result = IN_PROGRESS;
            return OK;
        }
        comm->error = now != OK ? now : store(&one->request, one->sum) ? INTERNAL : OK;
        if (comm->error)
            break;
        comm->first = one->next;
        free(one->own);
        free(one->sum);
        free(one);
        if (comm->first)
            shared_begin(comm->shared, comm->first->own, comm->first->sum,
                         comm->first->request.count, comm->first->request.type == F64);
    }
    *result = comm->error;
    return OK;
}

API int ncclGroupEnd(void) {
    int result = OK;
    for (int i = 0; i < n_queued && result == OK;) {
        const int alone = queued[i].comm->shared != NULL;
        result = alone ? begin_shared(&queued[i]) : reduce(&queued[i]);
        i += alone ? 1 : queued[i].comm->size;
    }
    n_queued = 0;
    return result;
}
