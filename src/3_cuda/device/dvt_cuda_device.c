/* Cards and the gpu(i) on them: opening, closing, making their context current. */
#include "3_cuda/dvt_cuda.h"

static dvti_cuda_card dvti_cuda_cards[DVT_MAX_GPUS];

DVTI_FN bool dvti_cuda_enter(dvti_cuda_card *card, const char *function, bool *pushed) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_context current = NULL;
    dvti_cu_result result = cu->cuCtxGetCurrent(&current);
    *pushed = false;
    if (result == DVTI_CU_OK && current == card->context)
        return true;
    if (result == DVTI_CU_OK)
        result = cu->cuCtxPushCurrent_v2(card->context);
    *pushed = result == DVTI_CU_OK;
    if (result != DVTI_CU_OK)
        dvti_cuda_fail(function, "cuCtxPushCurrent_v2", result);
    return *pushed;
}

DVTI_FN void dvti_cuda_leave(bool pushed) {
    dvti_cu_context popped;
    if (pushed)
        dvti_cuda()->cuCtxPopCurrent_v2(&popped);
}

static dvti_cu_result dvti_cuda_ask(dvti_cuda_card *card, int index) {
    const dvti_cuda_driver *cu = dvti_cuda();
    int major = 0, minor = 0, shared = 0;
    dvti_cu_result result = cu->cuDeviceGet(&card->device, index);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&major, DVTI_CU_ATTR_MAJOR, card->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&minor, DVTI_CU_ATTR_MINOR, card->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&card->processors, DVTI_CU_ATTR_PROCESSORS, card->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&shared, DVTI_CU_ATTR_SHARED_OPTIN, card->device);
    card->cc = major * 10 + minor;
    card->shared_most = shared;
    return result;
}

static dvt_status dvti_cuda_open_card(dvti_cuda_card *card, int index) {
    dvti_mutex fresh = DVTI_MUTEX_INIT;
    dvti_cu_result result;
    if (card->open)
        return DVT_OK;
    memset(card, 0, sizeof *card);
    memcpy(&card->lock, &fresh, sizeof fresh);
    result = dvti_cuda_ask(card, index);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuDevicePrimaryCtxRetain(&card->context, card->device);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("opening a GPU", "cuDevicePrimaryCtxRetain", result);
    card->open = true;
    return DVT_OK;
}

DVTI_FN dvt_status dvti_cuda_open(dvti_device *device, int index) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_card *card = &dvti_cuda_cards[index];
    dvti_cuda_gpu *gpu;
    dvti_cu_result result;
    bool pushed;
    dvt_status status = dvti_cuda_open_card(card, index);
    if (status != DVT_OK)
        return status;
    gpu = (dvti_cuda_gpu *)dvti_alloc_zero(sizeof *gpu);
    if (!gpu)
        return dvti_fail_memory("opening a GPU", (int64_t)sizeof *gpu);
    gpu->card = card;
    gpu->ctx = device->ctx;
    gpu->process = dvti_process_id();
    gpu->device = device;
    if (!dvti_cuda_enter(card, "opening a GPU", &pushed)) {
        dvti_free(gpu);
        return dvti_failure();
    }
    result = cu->cuStreamCreateWithPriority(&gpu->compute, DVTI_CU_STREAM_NON_BLOCKING, 0);
    dvti_cuda_leave(pushed);
    if (result != DVTI_CU_OK) {
        dvti_free(gpu);
        return dvti_cuda_fail("opening a GPU", "cuStreamCreateWithPriority", result);
    }
    device->impl = gpu;
    return DVT_OK;
}

DVTI_FN void dvti_cuda_close(dvti_device *device) {
    dvti_cuda_gpu *gpu = (dvti_cuda_gpu *)device->impl;
    bool pushed;
    if (dvti_cuda_enter(gpu->card, "closing a GPU", &pushed)) {
        dvti_cuda()->cuStreamDestroy_v2(gpu->compute);
        dvti_cuda_leave(pushed);
    }
    device->impl = NULL;
    dvti_free(gpu);
}
