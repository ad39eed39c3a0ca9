/* Staging buffers of pinned memory between host memory and a GPU. The GPU copies without the
   driver's own staging. So the caller's memory is never read after an upload returns, nor written
   after a download returns. Buffers are allocated at first use and kept. */
#include "3_cuda/device/dvt_cuda_device.h"

/* Returns whether the GPU has finished with the buffer. Errors of the GPU are reported by later
   waits. */
static bool dvti_cuda_chunk_idle(dvti_cuda_chunk *chunk) {
    if (chunk->queued && dvti_cuda()->cuEventQuery(chunk->event) == DVTI_CU_OK)
        chunk->queued = false;
    return !chunk->queued;
}

static bool dvti_cuda_chunk_make(dvti_cuda_chunk *chunk, int64_t bytes) {
    const dvti_cuda_driver *cu = dvti_cuda();
    void *at = NULL;
    if (cu->cuMemHostAlloc(&at, (size_t)bytes, DVTI_CU_HOST_PORTABLE) != DVTI_CU_OK)
        return false;
    if (cu->cuEventCreate(&chunk->event, DVTI_CU_EVENT_DISABLE_TIMING) != DVTI_CU_OK) {
        cu->cuMemFreeHost(at);
        return false;
    }
    chunk->at = (char *)at;
    return true;
}

DVTI_FN dvti_cuda_chunk *dvti_cuda_chunk_take(dvti_cuda_gpu *gpu, int64_t bytes) {
    bool small = bytes <= DVTI_CUDA_SMALL_BYTES;
    dvti_cuda_chunk *chunks = small ? gpu->small : gpu->large, *waiting = NULL;
    int n = small ? DVTI_CUDA_SMALL_CHUNKS : DVTI_CUDA_CHUNKS, i;
    for (i = 0; i < n; i++) {
        dvti_cuda_chunk *chunk = &chunks[i];
        if (chunk->taken)
            continue;
        if (!chunk->at &&
            !dvti_cuda_chunk_make(chunk, small ? DVTI_CUDA_SMALL_BYTES : DVTI_CUDA_CHUNK_BYTES))
            continue;
        if (dvti_cuda_chunk_idle(chunk)) {
            chunk->taken = true;
            return chunk;
        }
        if (!waiting)
            waiting = chunk;
    }
    if (!waiting || dvti_cuda()->cuEventSynchronize(waiting->event) != DVTI_CU_OK)
        return NULL;
    waiting->queued = false;
    waiting->taken = true;
    return waiting;
}

DVTI_FN dvti_cu_result dvti_cuda_chunk_queue(dvti_cuda_chunk *chunk, dvti_cu_stream stream) {
    dvti_cu_result result = dvti_cuda()->cuEventRecord(chunk->event, stream);
    chunk->queued = result == DVTI_CU_OK;
    return result;
}

DVTI_FN void dvti_cuda_chunk_give(dvti_cuda_chunk *chunk) {
    chunk->taken = false;
}

DVTI_FN void dvti_cuda_staging_close(dvti_cuda_gpu *gpu) {
    dvti_cuda_chunk *all[2];
    int n[2], kind, i;
    all[0] = gpu->small;
    all[1] = gpu->large;
    n[0] = DVTI_CUDA_SMALL_CHUNKS;
    n[1] = DVTI_CUDA_CHUNKS;
    for (kind = 0; kind < 2; kind++)
        for (i = 0; i < n[kind]; i++)
            if (all[kind][i].at) {
                dvti_cuda()->cuEventDestroy_v2(all[kind][i].event);
                dvti_cuda()->cuMemFreeHost(all[kind][i].at);
                all[kind][i].at = NULL;
            }
}
