/* Interoperability with other CUDA code of the process: the stream of a gpu(i), and addresses. The
   GPU's context is its primary one, so the runtime API and other libraries see the same memory. */
#include "3_cuda/device/dvt_cuda_device.h"

static dvti_device *dvti_cuda_device_begin(const char *function, dvt_ctx ctx) {
    dvti_device *device = dvti_device_begin(function, dvti_ctx(ctx));
    if (!device || device->backend == dvti_cuda_backend())
        return device;
    dvti_device_end(device);
    return NULL;
}

DVT_API void *dvt_cuda_stream(dvt_ctx ctx) {
    dvti_device *device, *open;
    const dvti_backend_kind *kind;
    dvti_cuda_gpu *gpu;
    int64_t limit;
    void *stream;
    int index;
    /* A query sets no error where there is no GPU. */
    if (!dvti_device_look(dvti_ctx(ctx), &open, &kind, &index, &limit))
        return NULL;
    if (open)
        dvti_device_end(open);
    device = kind != dvti_cuda_kind() ? NULL : dvti_cuda_device_begin("dvt_cuda_stream", ctx);
    if (!device)
        return NULL;
    gpu = dvti_cuda_gpu_of(device);
    dvti_mutex_lock(&gpu->lock);
    gpu->shared = true;
    stream = gpu->compute;
    dvti_mutex_unlock(&gpu->lock);
    dvti_device_end(device);
    return stream;
}

/* Locks the GPU of a context, with its CUDA context current. Returns NULL with the error set. */
static dvti_cuda_gpu *dvti_cuda_share_begin(const char *function, dvt_ctx ctx, bool *pushed) {
    dvti_device *device = dvti_cuda_device_begin(function, ctx);
    if (!device && dvti_device_exists(function, dvti_ctx(ctx)))
        dvti_fail(DVT_ERR_UNSUPPORTED,
                  "%s: %s has no CUDA stream, because it is not an NVIDIA GPU; leave this call out "
                  "there (dvt_cuda_stream returns NULL)",
                  function, dvt_ctx_name(dvti_ctx(ctx)));
    if (!device)
        return NULL;
    if (dvti_cuda_begin(dvti_cuda_gpu_of(device), function, pushed))
        return dvti_cuda_gpu_of(device);
    dvti_device_end(device);
    return NULL;
}

static void dvti_cuda_share_end(dvti_cuda_gpu *gpu, bool pushed) {
    dvti_device *device = gpu->device;
    dvti_cuda_end(gpu, pushed);
    dvti_device_end(device);
}

DVT_API dvt_status dvt_set_cuda_stream(void *stream, dvt_ctx ctx) {
    bool pushed;
    dvti_cuda_gpu *gpu = dvti_cuda_share_begin("dvt_set_cuda_stream", ctx, &pushed);
    dvt_status status;
    if (!gpu)
        return dvti_failure();
    status =
        dvti_cuda_failed(gpu, "dvt_set_cuda_stream", "cuStreamSynchronize", dvti_cuda_drain(gpu));
    if (status == DVT_OK) {
        gpu->compute = stream ? stream : gpu->own_compute;
        gpu->shared = stream != NULL;
    }
    dvti_cuda_share_end(gpu, pushed);
    return status;
}

/* Later uploads and downloads wait for a new mark, because the position advances. */
DVT_API dvt_status dvt_cuda_order_after(void *stream, dvt_ctx ctx) {
    const dvti_cuda_driver *cu = dvti_cuda();
    bool pushed;
    dvti_cuda_gpu *gpu = dvti_cuda_share_begin("dvt_cuda_order_after", ctx, &pushed);
    const char *call = "cuEventCreate";
    dvti_cu_event event;
    dvti_cu_result result;
    dvt_status status;
    if (!gpu)
        return dvti_failure();
    event = dvti_cuda_event(gpu, &result);
    if (event) {
        call = "cuEventRecord";
        result = cu->cuEventRecord(event, stream);
        if (result == DVTI_CU_OK) {
            call = "cuStreamWaitEvent";
            result = cu->cuStreamWaitEvent(gpu->compute, event, 0);
        }
        dvti_cuda_event_done(gpu, event);
        dvti_cuda_advance(gpu);
    }
    status = dvti_cuda_failed(gpu, "dvt_cuda_order_after", call, result);
    dvti_cuda_share_end(gpu, pushed);
    return status;
}

DVT_API dvt_status dvt_cuda_order_before(void *stream, dvt_ctx ctx) {
    bool pushed;
    dvti_cuda_gpu *gpu = dvti_cuda_share_begin("dvt_cuda_order_before", ctx, &pushed);
    dvti_cu_result result;
    dvt_status status;
    if (!gpu)
        return dvti_failure();
    result = dvti_cuda_join_all(gpu);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_after_compute(gpu, stream);
    status = dvti_cuda_failed(gpu, "dvt_cuda_order_before", "cuStreamWaitEvent", result);
    dvti_cuda_share_end(gpu, pushed);
    return status;
}

DVT_API uint64_t dvt_cuda_address(dvt_array *x) {
    dvti_cuda_gpu *gpu;
    void *at;
    bool pushed;
    if (!x) {
        dvti_null("dvt_cuda_address", "x");
        return 0;
    }
    if (!dvti_has_values("dvt_cuda_address", x))
        return 0;
    if (x->storage->device->backend != dvti_cuda_backend()) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "dvt_cuda_address: x is %s, which is not memory of an NVIDIA GPU; %s",
                  dvti_describe(x),
                  x->storage->ctx.type == DVT_DEVICE_CPU
                      ? "use dvt_data, or copy it to a GPU with dvt_copyto"
                      : "a virtual GPU has no addresses: copy it with dvt_copyto(x, dvt_cpu()), "
                        "and use dvt_data on the copy");
        return 0;
    }
    gpu = dvti_cuda_gpu_of(x->storage->device);
    at = dvti_view_of(x).data;
    if (!dvti_cuda_begin(gpu, "dvt_cuda_address", &pushed))
        return 0;
    gpu->shared = true;
    dvti_atomic_store(&x->storage->shown, 1);
    /* Work that the caller queues in the stream must run after copies in progress. */
    dvti_cuda_failed_quietly(gpu, "cuStreamWaitEvent",
                             dvti_cuda_touch(gpu, x->storage->data, x->storage->bytes, true));
    dvti_cuda_end(gpu, pushed);
    return (uint64_t)(uintptr_t)at;
}
