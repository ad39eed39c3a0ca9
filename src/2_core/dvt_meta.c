/* The device of arrays without memory: shape, dtype and strides, but no values. Every operation
   takes its usual path, and its launch computes nothing. The name is PyTorch's.

   6_nn runs nets on it to infer shapes. It exists for a thread while that thread has set a model,
   the device whose place it takes: operations are composed as they would be there. */
#include "2_core/dvt_core.h"

static DVTI_TLS dvti_meta_state dvti_meta_here;

/* Accessing the address of an array without memory faults. */
static dvt_status dvti_meta_acquire(dvti_device *device, const char *function, int64_t bytes,
                                    void **out) {
    (void)device;
    (void)function;
    (void)bytes;
    *out = (void *)(uintptr_t)64;
    return DVT_OK;
}

static void dvti_meta_release(dvti_device *device, void *block, int64_t bytes) {
    (void)device;
    (void)block;
    (void)bytes;
}

/* 2_core copies nothing to or from the device, see dvti_copy_elements. */
static dvt_status dvti_meta_move(dvti_device *device, void *dst, const void *src, int64_t bytes) {
    (void)device;
    (void)dst;
    (void)src;
    (void)bytes;
    return DVT_OK;
}

static dvt_status dvti_meta_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                      const void *src, int64_t bytes) {
    (void)from;
    return dvti_meta_move(device, dst, src, bytes);
}

static bool dvti_meta_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                               dvt_dtype dtype, dvti_feature feature) {
    const dvti_device *model = dvti_meta_here.model;
    (void)device;
    return model && model->backend->supports(model, kernel, op, dtype, feature);
}

static int64_t dvti_meta_plan(dvti_device *device, dvti_launch *launch) {
    (void)device;
    (void)launch;
    return 0;
}

static dvt_status dvti_meta_launch(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    (void)launch;
    return DVT_OK;
}

static dvt_status dvti_meta_wait(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

static const dvti_backend dvti_meta_backend = {"meta",
                                               dvti_meta_acquire,
                                               dvti_meta_release,
                                               dvti_meta_move,
                                               dvti_meta_move,
                                               dvti_meta_copy_from,
                                               dvti_meta_supports,
                                               dvti_meta_plan,
                                               dvti_meta_launch,
                                               dvti_meta_wait,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL,
                                               false,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL};

static void dvti_meta_describe(int index, const dvti_device *device, dvt_device_info *out) {
    (void)index;
    (void)device;
    out->memory_total = out->memory_free = -1;
    snprintf(out->name, sizeof out->name, "shapes only");
}

/* Not a kind of the build: its only device is never counted or opened. */
static const dvti_backend_kind dvti_meta_kind = {"meta", DVT_DEVICE_META,    true, NULL, NULL, NULL,
                                                 NULL,   dvti_meta_describe, NULL, NULL, 0};

static dvti_device dvti_meta_device = {
    &dvti_meta_backend, &dvti_meta_kind, {DVT_DEVICE_META, 0}, NULL, 0, 0, 0, 0};

DVTI_FN dvti_device *dvti_meta_begin(const char *function, dvt_ctx ctx) {
    if (ctx.id != 0 || !dvti_meta_here.model) {
        dvti_fail(DVT_ERR_NO_DEVICE,
                  "%s: %s exists only while dvt_block_infer_shapes runs in this thread; make new "
                  "arrays on dvt_cpu() or another context",
                  function, dvt_ctx_name(ctx));
        return NULL;
    }
    dvti_atomic_add(&dvti_meta_device.users, 1);
    return &dvti_meta_device;
}

DVTI_FN bool dvti_has_values(const char *function, const dvt_array *x) {
    if (!dvti_is_meta(x->storage->device))
        return true;
    dvti_meta_here.read = true;
    dvti_fail(DVT_ERR_VALUE,
              "%s: x is %s, which has no values: it was made to infer the shapes of a net; run the "
              "net once with dvt_block_forward instead, or read values only where "
              "dvt_ctx_of(x).type is not DVT_DEVICE_META",
              function, dvti_describe(x));
    return false;
}

#if !defined(DEVTENSOR_NO_NN)
DVTI_FN dvt_status dvti_fail_inferring(const char *function) {
    dvti_meta_here.read = true;
    return dvti_fail(DVT_ERR_VALUE,
                     "%s: called by a forward function while the shapes of the net are inferred, "
                     "which gives no parameter a value; run the net once with dvt_block_forward "
                     "instead, or make this call before",
                     function);
}

DVTI_FN dvti_meta_state dvti_meta_swap(dvti_meta_state state) {
    dvti_meta_state before = dvti_meta_here;
    dvti_meta_here = state;
    return before;
}
#endif
