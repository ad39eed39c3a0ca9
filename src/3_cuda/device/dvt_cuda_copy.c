/* Transfers between host memory and a GPU. Small ones use the compute stream. Large ones use
   separate streams in chunks: the host fills one staging buffer while the GPU transfers another. */
#include "3_cuda/device/dvt_cuda_device.h"

static dvti_cu_address dvti_cuda_address(const void *at) {
    return (dvti_cu_address)(uintptr_t)at;
}

/* ---- between host memory and a staging buffer ---- */
#define DVTI_CUDA_BYTE_NS 0.1 /* one core copies about 10 GB/s */

typedef struct dvti_cuda_bytes {
    char *dst;
    const char *src;
} dvti_cuda_bytes;

static void dvti_cuda_copy_range(void *user, int64_t begin, int64_t end) {
    const dvti_cuda_bytes *b = (const dvti_cuda_bytes *)user;
    memcpy(b->dst + begin, b->src + begin, (size_t)(end - begin));
}

/* Copies on the thread pool, because one core is several times slower than the bus. The caller may
   hold a gpu's lock: ranges take no lock, and a busy pool makes the caller copy alone. */
static void dvti_cuda_copy_bytes(char *dst, const char *src, int64_t bytes) {
    dvti_cuda_bytes b;
    b.dst = dst;
    b.src = src;
    dvti_parallel_for(bytes, DVTI_CUDA_BYTE_NS, dvti_cuda_copy_range, &b);
}

#undef DVTI_CUDA_BYTE_NS

/* ---- uploads ---- */
/* Uploads one chunk. Without a staging buffer it sets *direct. The driver then copies pageable
   memory before it returns; for pinned memory the caller must wait. */
static dvti_cu_result dvti_cuda_send(dvti_cuda_gpu *gpu, char *dst, const char *src, int64_t bytes,
                                     dvti_cu_stream stream, bool *direct) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_chunk *chunk = dvti_cuda_chunk_take(gpu, bytes);
    dvti_cu_result result;
    if (!chunk) {
        *direct = true;
        return cu->cuMemcpyHtoDAsync_v2(dvti_cuda_address(dst), src, (size_t)bytes, stream);
    }
    dvti_cuda_copy_bytes(chunk->at, src, bytes);
    result = cu->cuMemcpyHtoDAsync_v2(dvti_cuda_address(dst), chunk->at, (size_t)bytes, stream);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_chunk_queue(chunk, stream);
    dvti_cuda_chunk_give(chunk);
    return result;
}

static dvti_cu_result dvti_cuda_send_all(dvti_cuda_gpu *gpu, char *dst, const char *src,
                                         int64_t bytes) {
    bool small = bytes <= DVTI_CUDA_SMALL_BYTES, direct = false;
    dvti_cu_stream stream = small ? gpu->compute : gpu->upload;
    dvti_cu_result result = small ? dvti_cuda_touch(gpu, dst, bytes, true)
                                  : dvti_cuda_before_write(gpu, dst, bytes, stream);
    int64_t at;
    for (at = 0; at < bytes && result == DVTI_CU_OK; at += DVTI_CUDA_CHUNK_BYTES)
        result = dvti_cuda_send(gpu, dst + at, src + at,
                                DVTI_MIN(bytes - at, DVTI_CUDA_CHUNK_BYTES), stream, &direct);
    if (small)
        dvti_cuda_advance(gpu);
    else if (result == DVTI_CU_OK)
        result = dvti_cuda_foreign(gpu, dst, bytes, true, gpu, stream);
    if (result == DVTI_CU_OK && direct)
        result = dvti_cuda()->cuStreamSynchronize(stream);
    if (result != DVTI_CU_OK)
        dvti_cuda_settle(gpu, stream);
    return result;
}

DVTI_FN dvt_status dvti_cuda_upload(dvti_device *device, void *dst, const void *src,
                                    int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_begin(gpu, "upload", &pushed))
        return dvti_failure();
    result = dvti_cuda_send_all(gpu, (char *)dst, (const char *)src, bytes);
    status = dvti_cuda_failed(gpu, "upload", "cuMemcpyHtoDAsync_v2", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

/* ---- downloads ---- */
typedef struct dvti_cuda_transfer {
    dvti_cuda_chunk *chunk; /* NULL: no transfer in progress */
    char *dst;
    int64_t bytes;
} dvti_cuda_transfer;

static dvti_cu_result dvti_cuda_fetch(dvti_cuda_gpu *gpu, dvti_cuda_transfer *one, char *dst,
                                      const char *src, int64_t bytes, dvti_cu_stream stream) {
    dvti_cu_result result;
    one->chunk = dvti_cuda_chunk_take(gpu, bytes);
    one->dst = dst;
    one->bytes = bytes;
    if (!one->chunk) {
        result =
            dvti_cuda()->cuMemcpyDtoHAsync_v2(dst, dvti_cuda_address(src), (size_t)bytes, stream);
        return result == DVTI_CU_OK ? dvti_cuda()->cuStreamSynchronize(stream) : result;
    }
    result = dvti_cuda()->cuMemcpyDtoHAsync_v2(one->chunk->at, dvti_cuda_address(src),
                                               (size_t)bytes, stream);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_chunk_queue(one->chunk, stream);
    if (result != DVTI_CU_OK) {
        dvti_cuda_settle(gpu, stream);
        dvti_cuda_chunk_give(one->chunk);
        one->chunk = NULL;
    }
    return result;
}

/* Waits without the lock, so that other threads can use the gpu. No other thread uses a taken
   buffer. */
static dvti_cu_result dvti_cuda_finish_transfer(dvti_cuda_gpu *gpu, dvti_cuda_transfer *one) {
    dvti_cu_result result;
    if (!one->chunk)
        return DVTI_CU_OK;
    dvti_mutex_unlock(&gpu->lock);
    result = dvti_cuda()->cuEventSynchronize(one->chunk->event);
    if (result == DVTI_CU_OK)
        dvti_cuda_copy_bytes(one->dst, one->chunk->at, one->bytes);
    dvti_mutex_lock(&gpu->lock);
    one->chunk->queued = result != DVTI_CU_OK;
    dvti_cuda_chunk_give(one->chunk);
    one->chunk = NULL;
    return result;
}

static dvti_cu_result dvti_cuda_fetch_all(dvti_cuda_gpu *gpu, char *dst, const char *src,
                                          int64_t bytes) {
    bool small = bytes <= DVTI_CUDA_SMALL_BYTES;
    dvti_cu_stream stream = small ? gpu->compute : gpu->download;
    dvti_cuda_transfer transfer[2];
    dvti_cu_result result = dvti_cuda_touch(gpu, src, bytes, false), other;
    int64_t at, queued;
    int k = 0;
    memset(transfer, 0, sizeof transfer);
    if (result == DVTI_CU_OK && !small)
        result = dvti_cuda_after_compute(gpu, stream);
    else if (small)
        dvti_cuda_advance(gpu);
    queued = gpu->position;
    for (at = 0; at < bytes && result == DVTI_CU_OK; at += DVTI_CUDA_CHUNK_BYTES, k ^= 1) {
        result = dvti_cuda_finish_transfer(gpu, &transfer[k]);
        if (result == DVTI_CU_OK)
            result = dvti_cuda_fetch(gpu, &transfer[k], dst + at, src + at,
                                     DVTI_MIN(bytes - at, DVTI_CUDA_CHUNK_BYTES), stream);
    }
    other = dvti_cuda_finish_transfer(gpu, &transfer[k]);
    if (result == DVTI_CU_OK)
        result = other;
    other = dvti_cuda_finish_transfer(gpu, &transfer[k ^ 1]);
    if (result == DVTI_CU_OK)
        result = other;
    if (result == DVTI_CU_OK)
        gpu->verified = DVTI_MAX(gpu->verified, queued);
    return result;
}

DVTI_FN dvt_status dvti_cuda_download(dvti_device *device, void *dst, const void *src,
                                      int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_begin(gpu, "download", &pushed))
        return dvti_failure();
    result = dvti_cuda_fetch_all(gpu, (char *)dst, (const char *)src, bytes);
    status = dvti_cuda_failed(gpu, "download", "cuMemcpyDtoHAsync_v2", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}
