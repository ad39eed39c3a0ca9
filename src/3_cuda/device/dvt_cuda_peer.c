/* Copies between GPUs. Peer access is tested, once for each pair, before it is used. On some
   systems every call reports success and the bytes are wrong (NVIDIA/open-gpu-kernel-modules issue
   1257). If the test fails, copies go through host memory. */
#include "3_cuda/device/dvt_cuda_device.h"

typedef enum dvti_cuda_route {
    DVTI_ROUTE_UNKNOWN,
    DVTI_ROUTE_PEER,
    DVTI_ROUTE_DRIVER,
    DVTI_ROUTE_HOST
} dvti_cuda_route;

/* Indexed by the source GPU, then the target GPU. */
static dvti_cuda_route dvti_cuda_routes[DVT_MAX_GPUS][DVT_MAX_GPUS];
static dvti_mutex dvti_cuda_routes_lock = DVTI_MUTEX_INIT;

/* ---- the test ---- */
#define DVTI_PEER_TEST_WORDS 16384

static bool dvti_cuda_enable_peer(dvti_cuda_physical *physical, dvti_cuda_physical *peer) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_result result;
    bool pushed;
    int can = 0;
    if (cu->cuDeviceCanAccessPeer(&can, physical->device, peer->device) != DVTI_CU_OK || !can ||
        dvti_cuda_enter(physical, &pushed) != DVTI_CU_OK)
        return false;
    result = cu->cuCtxEnablePeerAccess(peer->context, 0);
    dvti_cuda_leave(pushed);
    return result == DVTI_CU_OK || result == DVTI_CU_PEER_ALREADY;
}

static bool dvti_cuda_alloc_on(dvti_cuda_physical *physical, dvti_cu_address *at, size_t bytes) {
    bool pushed, done;
    *at = 0;
    if (dvti_cuda_enter(physical, &pushed) != DVTI_CU_OK)
        return false;
    done = dvti_cuda()->cuMemAlloc_v2(at, bytes) == DVTI_CU_OK;
    dvti_cuda_leave(pushed);
    return done;
}

static void dvti_cuda_free_on(dvti_cuda_physical *physical, dvti_cu_address at) {
    bool pushed;
    if (!at || dvti_cuda_enter(physical, &pushed) != DVTI_CU_OK)
        return;
    dvti_cuda()->cuMemFree_v2(at);
    dvti_cuda_leave(pushed);
}

/* Writes a pattern on one GPU, copies it to the other and compares it there. */
static bool dvti_cuda_copy_is_exact(dvti_cuda_gpu *to, dvti_cuda_gpu *from, dvti_cu_address there,
                                    dvti_cu_address here, uint32_t *words) {
    const dvti_cuda_driver *cu = dvti_cuda();
    size_t bytes = DVTI_PEER_TEST_WORDS * sizeof *words, i;
    bool pushed, done;
    for (i = 0; i < DVTI_PEER_TEST_WORDS; i++)
        words[i] = (uint32_t)i * 2654435761u + 1;
    if (dvti_cuda_enter(from->physical, &pushed) != DVTI_CU_OK)
        return false;
    done = cu->cuMemcpyHtoDAsync_v2(here, words, bytes, from->copy) == DVTI_CU_OK &&
           cu->cuStreamSynchronize(from->copy) == DVTI_CU_OK;
    dvti_cuda_leave(pushed);
    memset(words, 0, bytes);
    if (!done || dvti_cuda_enter(to->physical, &pushed) != DVTI_CU_OK)
        return false;
    done = cu->cuMemcpyPeerAsync(there, to->physical->context, here, from->physical->context, bytes,
                                 to->copy) == DVTI_CU_OK &&
           cu->cuMemcpyDtoHAsync_v2(words, there, bytes, to->copy) == DVTI_CU_OK &&
           cu->cuStreamSynchronize(to->copy) == DVTI_CU_OK;
    dvti_cuda_leave(pushed);
    for (i = 0; done && i < DVTI_PEER_TEST_WORDS; i++)
        done = words[i] == (uint32_t)i * 2654435761u + 1;
    return done;
}

/* Requires both gpus locked. Without memory for the test the result is unknown. */
static dvti_cuda_route dvti_cuda_test_route(dvti_cuda_gpu *to, dvti_cuda_gpu *from) {
    size_t bytes = DVTI_PEER_TEST_WORDS * sizeof(uint32_t);
    uint32_t *words = (uint32_t *)dvti_alloc(bytes);
    dvti_cu_address here = 0, there = 0;
    dvti_cuda_route route = DVTI_ROUTE_UNKNOWN;
    bool peer = dvti_env_int("DEVTENSOR_P2P", 0, 1, 1) != 0 &&
                dvti_cuda_enable_peer(to->physical, from->physical) &&
                dvti_cuda_enable_peer(from->physical, to->physical);
    if (words && dvti_cuda_alloc_on(from->physical, &here, bytes) &&
        dvti_cuda_alloc_on(to->physical, &there, bytes))
        route = !dvti_cuda_copy_is_exact(to, from, there, here, words) ? DVTI_ROUTE_HOST
                : peer                                                 ? DVTI_ROUTE_PEER
                                                                       : DVTI_ROUTE_DRIVER;
    if (route == DVTI_ROUTE_HOST) {
        dvti_log(DVT_LOG_WARNING,
                 "copies from %s to %s arrive with wrong bytes; they go through host memory",
                 dvt_ctx_name(from->ctx), dvt_ctx_name(to->ctx));
        /* Work of the test may still be queued, and would use the memory freed below. */
        dvti_cuda_settle(from, from->copy);
        dvti_cuda_settle(to, to->copy);
    }
    dvti_cuda_free_on(from->physical, here);
    dvti_cuda_free_on(to->physical, there);
    dvti_free(words);
    return route;
}

static dvti_cuda_route dvti_cuda_route_between(dvti_cuda_gpu *to, dvti_cuda_gpu *from) {
    dvti_cuda_route *route = &dvti_cuda_routes[from->physical->index][to->physical->index], found;
    if (to->physical == from->physical)
        return DVTI_ROUTE_PEER;
    dvti_mutex_lock(&dvti_cuda_routes_lock);
    if (*route == DVTI_ROUTE_UNKNOWN)
        *route = dvti_cuda_test_route(to, from);
    found = *route;
    dvti_mutex_unlock(&dvti_cuda_routes_lock);
    return found == DVTI_ROUTE_UNKNOWN ? DVTI_ROUTE_HOST : found;
}

DVTI_FN bool dvti_cuda_reaches(dvti_cuda_gpu *a, dvti_cuda_gpu *b) {
    return dvti_cuda_route_between(a, b) == DVTI_ROUTE_PEER &&
           dvti_cuda_route_between(b, a) == DVTI_ROUTE_PEER;
}

/* ---- the copy ---- */
static dvti_cu_result dvti_cuda_queue_copy(dvti_cuda_gpu *to, void *dst, dvti_cuda_gpu *from,
                                           const void *src, int64_t bytes) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_address d = (dvti_cu_address)(uintptr_t)dst, s = (dvti_cu_address)(uintptr_t)src;
    dvti_cu_result result;
    bool pushed;
    result = dvti_cuda_enter(from->physical, &pushed);
    if (result != DVTI_CU_OK)
        return result;
    result = dvti_cuda_touch(from, src, bytes, false);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_after_compute(from, to->copy);
    dvti_cuda_leave(pushed);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_enter(to->physical, &pushed);
    if (result != DVTI_CU_OK)
        return result;
    result = dvti_cuda_before_write(to, dst, bytes, to->copy);
    if (result == DVTI_CU_OK)
        result = to->physical == from->physical
                     ? cu->cuMemcpyDtoDAsync_v2(d, s, (size_t)bytes, to->copy)
                     : cu->cuMemcpyPeerAsync(d, to->physical->context, s, from->physical->context,
                                             (size_t)bytes, to->copy);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_foreign(to, dst, bytes, true, to, to->copy);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_foreign(from, src, bytes, false, to, to->copy);
    dvti_cuda_leave(pushed);
    return result;
}

static dvt_status dvti_cuda_copy_through_host(dvti_device *device, char *dst, dvti_device *from,
                                              const char *src, int64_t bytes) {
    int64_t most = DVTI_MIN(bytes, DVTI_CUDA_CHUNK_BYTES), at;
    char *buffer = (char *)dvti_alloc((size_t)most);
    dvt_status status = DVT_OK;
    if (!buffer)
        return dvti_fail_memory("copy", most);
    for (at = 0; at < bytes && status == DVT_OK; at += most) {
        int64_t n = DVTI_MIN(bytes - at, most);
        status = dvti_cuda_download(from, buffer, src + at, n);
        if (status == DVT_OK)
            status = dvti_cuda_upload(device, dst + at, buffer, n);
    }
    dvti_free(buffer);
    return status;
}

/* Locks both in the order of their numbers, so that two threads copying in opposite directions do
   not deadlock. */
static bool dvti_cuda_begin_both(dvti_cuda_gpu *a, dvti_cuda_gpu *b) {
    dvti_cuda_gpu *first = a->ctx.id < b->ctx.id ? a : b, *second = first == a ? b : a;
    bool pushed;
    if (!dvti_cuda_begin(first, "copy", &pushed))
        return false;
    dvti_cuda_leave(pushed);
    if (!dvti_cuda_begin(second, "copy", &pushed)) {
        dvti_mutex_unlock(&first->lock);
        return false;
    }
    dvti_cuda_leave(pushed);
    return true;
}

DVTI_FN dvt_status dvti_cuda_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                       const void *src, int64_t bytes) {
    dvti_cuda_gpu *to = dvti_cuda_gpu_of(device), *source = dvti_cuda_gpu_of(from);
    dvti_cuda_gpu *both[2];
    dvti_cuda_route route;
    dvt_status status = DVT_OK;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_begin_both(to, source))
        return dvti_failure();
    both[0] = source;
    both[1] = to;
    route = dvti_cuda_route_between(to, source);
    if (route != DVTI_ROUTE_HOST)
        status = dvti_cuda_failed_among(both, 2, "copy", "cuMemcpyPeerAsync",
                                        dvti_cuda_queue_copy(to, dst, source, src, bytes));
    if (status != DVT_OK)
        dvti_cuda_settle(to, to->copy);
    dvti_mutex_unlock(&source->lock);
    dvti_mutex_unlock(&to->lock);
    if (route == DVTI_ROUTE_HOST)
        status = dvti_cuda_copy_through_host(device, (char *)dst, from, (const char *)src, bytes);
    return status;
}

#undef DVTI_PEER_TEST_WORDS
