/* Sums over processes, each with one GPU, by NCCL (DEVTENSOR_NCCL=1). Sums have their own stream,
   which waits for the compute work so far. Later compute work runs at the same time. NCCL waits for
   the other processes on the GPU, without a limit. So the caller polls, and ends the group when
   another process is lost. Compute work that uses a sum is queued when the caller has seen its end,
   and needs no event. */
#include "3_cuda/device/dvt_cuda_device.h"
#include "3_cuda/driver/dvt_nccl.h"

typedef struct dvti_cuda_ranks {
    dvti_nccl_comm comm;
    dvti_cu_stream stream;
} dvti_cuda_ranks;

static bool dvti_cuda_ranks_identify(dvti_device *device, char *id, int size) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    return dvti_nccl_open() &&
           dvti_cuda()->cuDeviceGetPCIBusId(id, size, gpu->physical->device) == DVTI_CU_OK;
}

static bool dvti_cuda_ranks_name(char *key) {
    dvti_nccl_id id;
    const dvti_nccl *nccl = dvti_nccl_open();
    int result = nccl->ncclGetUniqueId(&id);
    memcpy(key, id.bytes, sizeof id.bytes);
    if (result != DVTI_NCCL_OK)
        dvti_log(DVT_LOG_WARNING, "ncclGetUniqueId gave: %s", nccl->ncclGetErrorString(result));
    return result == DVTI_NCCL_OK;
}

/* Ends the group; with `abort`, also sums that wait for other processes. */
static void dvti_cuda_ranks_leave(dvti_device *device, void *group, bool abort) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_ranks *ranks = (dvti_cuda_ranks *)group;
    const dvti_nccl *nccl = dvti_nccl_open();
    bool pushed;
    if (dvti_cuda_begin(gpu, "dvt_distributed_end", &pushed)) {
        if (ranks->comm && abort) {
            if (nccl->ncclCommAbort(ranks->comm) == DVTI_NCCL_OK && ranks->stream)
                dvti_cuda()->cuStreamSynchronize(ranks->stream); /* sums end now */
        } else if (ranks->comm) {
            nccl->ncclCommDestroy(ranks->comm);
        }
        if (ranks->stream)
            dvti_cuda()->cuStreamDestroy_v2(ranks->stream);
        dvti_cuda_end(gpu, pushed);
    }
    dvti_free(ranks);
}

static void *dvti_cuda_ranks_join(dvti_device *device, const char *key, int rank, int n) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_ranks *ranks = (dvti_cuda_ranks *)dvti_alloc_zero(sizeof *ranks);
    const dvti_nccl *nccl = dvti_nccl_open();
    dvti_cu_result made;
    dvti_nccl_id id;
    int result;
    bool pushed;
    memcpy(id.bytes, key, sizeof id.bytes);
    if (!ranks || !dvti_cuda_begin(gpu, "ncclCommInitRank", &pushed)) {
        dvti_free(ranks);
        return NULL;
    }
    made = dvti_cuda()->cuStreamCreateWithPriority(&ranks->stream, DVTI_CU_STREAM_NON_BLOCKING, 0);
    result = nccl->ncclCommInitRank(&ranks->comm, n, id, rank);
    dvti_cuda_end(gpu, pushed);
    if (result == DVTI_NCCL_OK && made == DVTI_CU_OK)
        return ranks;
    dvti_log(DVT_LOG_WARNING, "rank %d cannot join NCCL: %s", rank,
             result == DVTI_NCCL_OK ? "no stream" : nccl->ncclGetErrorString(result));
    if (result != DVTI_NCCL_OK)
        ranks->comm = NULL;
    if (made != DVTI_CU_OK)
        ranks->stream = NULL;
    dvti_cuda_ranks_leave(device, ranks, true);
    return NULL;
}

/* Sets *begun when a sum may run, also on errors. */
static dvt_status dvti_cuda_ranks_queue(dvti_cuda_gpu *gpu, const dvti_cuda_ranks *ranks,
                                        const char *name, const dvti_reduce_part *part, int n,
                                        dvti_cu_event event, bool *begun) {
    const dvti_nccl *nccl = dvti_nccl_open();
    dvti_cu_result touched = DVTI_CU_OK;
    int result, ended, i;
    for (i = 0; i < 2 * n && touched == DVTI_CU_OK; i++)
        touched = dvti_cuda_touch(gpu, part[i / 2].at[i % 2],
                                  part[i / 2].count * dvt_dtype_size(part[i / 2].dtype), true);
    if (touched == DVTI_CU_OK)
        touched = dvti_cuda_after_compute(gpu, ranks->stream);
    if (touched != DVTI_CU_OK)
        return dvti_cuda_failed(gpu, name, "cuStreamWaitEvent", touched);
    *begun = true;
    result = nccl->ncclGroupStart();
    for (i = 0; i < n && result == DVTI_NCCL_OK; i++)
        if (part[i].count > 0)
            result = nccl->ncclAllReduce(part[i].at[0], part[i].at[1], (size_t)part[i].count,
                                         dvti_nccl_type(part[i].dtype), DVTI_NCCL_SUM, ranks->comm,
                                         ranks->stream);
    ended = nccl->ncclGroupEnd();
    dvti_cuda_remember(gpu, name);
    result = result == DVTI_NCCL_OK ? ended : result;
    if (result != DVTI_NCCL_OK)
        return dvti_fail(DVT_ERR_INTERNAL,
                         "%s: summing over processes with NCCL gave: %s; unset DEVTENSOR_NCCL to "
                         "sum without it",
                         name, nccl->ncclGetErrorString(result));
    return dvti_cuda_failed(gpu, name, "cuEventRecord",
                            dvti_cuda()->cuEventRecord(event, ranks->stream));
}

static dvt_status dvti_cuda_ranks_sum(const char *name, dvti_device *device, void *group,
                                      const dvti_reduce_part *part, int n, void **ticket) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result made;
    dvti_cu_event event;
    dvt_status status;
    bool pushed, begun = false;
    if (!dvti_cuda_begin(gpu, name, &pushed))
        return dvti_failure();
    event = dvti_cuda_event(gpu, &made);
    status = dvti_cuda_failed(gpu, name, "cuEventCreate", made);
    if (status == DVT_OK)
        status = dvti_cuda_ranks_queue(gpu, (const dvti_cuda_ranks *)group, name, part, n, event,
                                       &begun);
    if (begun)
        *ticket = (void *)event;
    else if (event)
        dvti_cuda_event_done(gpu, event);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static dvt_status dvti_cuda_ranks_done(const char *name, dvti_device *device, void *group,
                                       void *ticket, bool *done, const char **why) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    const dvti_cuda_ranks *ranks = (const dvti_cuda_ranks *)group;
    const dvti_nccl *nccl = dvti_nccl_open();
    dvti_cu_result result;
    dvt_status status = DVT_OK;
    int found, error = DVTI_NCCL_OK;
    bool pushed;
    *why = NULL;
    if (!dvti_cuda_begin(gpu, name, &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuEventQuery((dvti_cu_event)ticket);
    found = nccl->ncclCommGetAsyncError(ranks->comm, &error);
    error = found == DVTI_NCCL_OK ? error : found;
    *done = result == DVTI_CU_OK && error == DVTI_NCCL_OK;
    if (error != DVTI_NCCL_OK && error != DVTI_NCCL_IN_PROGRESS)
        *why = nccl->ncclGetErrorString(error);
    else if (result != DVTI_CU_NOT_READY)
        status = dvti_cuda_failed(gpu, name, "cuEventQuery", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static void dvti_cuda_ranks_forget(dvti_device *device, void *ticket) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed;
    if (!dvti_cuda_begin(gpu, "sum over processes", &pushed))
        return;
    dvti_cuda_event_done(gpu, (dvti_cu_event)ticket);
    dvti_cuda_end(gpu, pushed);
}

DVTI_FN const dvti_process_sums *dvti_cuda_process_sums(void) {
    static const dvti_process_sums sums = {
        dvti_cuda_ranks_identify, dvti_cuda_ranks_name,   dvti_cuda_ranks_join, dvti_cuda_ranks_sum,
        dvti_cuda_ranks_done,     dvti_cuda_ranks_forget, dvti_cuda_ranks_leave};
    return &sums;
}
