/* Launches of kernels: dvti_run plans a launch, allocates its workspace, queues it and counts it.
   Also the settings of the process that operations write into their launches. */
#include "1_base/dvt_float_mode.h"
#include "2_core/dvt_core.h"

DVTI_FN void dvti_launch_begin(dvti_launch *launch, const char *name, const dvti_kernel *kernel,
                               dvti_op op) {
    launch->kernel = kernel;
    launch->op = op;
    launch->compute = DVTI_F32;
    launch->n_in = launch->n_out = 0;
    DVTI_ZERO_8(launch->f);
    DVTI_ZERO_8(launch->i);
    launch->workspace = NULL;
    launch->workspace_bytes = 0;
    launch->spare = launch->lean = false;
    launch->name = name;
    launch->number = 0;
    launch->epilogue.activation = DVTI_NO_ACTIVATION;
    launch->epilogue.bias.data = NULL;
    launch->epilogue.mask = NULL;
    launch->updates = NULL;
    launch->n_updates = 0;
    launch->custom = NULL;
}

DVTI_FN bool dvti_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                           dvt_dtype dtype, dvti_feature feature) {
    return device->backend->supports(device, kernel, op, dtype, feature);
}

static bool dvti_sync_mode(void) {
    static dvti_atomic mode; /* 0: not read yet, 1: off, 2: on */
    if (!dvti_atomic_load(&mode))
        dvti_atomic_store(&mode, 1 + dvti_env_int("DEVTENSOR_SYNC", 0, 1, 0));
    return dvti_atomic_load(&mode) == 2;
}

/* The device that this thread has launched on since its last public call, for backends that note
   call sites and for listeners. */
static DVTI_TLS dvti_device *dvti_launched_on;

DVTI_FN void dvti_note_launches(const char *file, int line) {
    dvti_device *device = dvti_launched_on;
    if (!device)
        return;
    dvti_launched_on = NULL;
    if (device->backend->note)
        device->backend->note(device, file, line);
    if (dvti_listened()) {
        dvti_event event = dvti_event_begin(DVTI_EVENT_NOTE, file, device->ctx);
        event.line = line;
        dvti_event_end(&event);
    }
}

DVTI_FN void dvti_note_later(dvti_device *device) {
    if (!dvti_launched_on)
        dvti_launched_on = device;
}

/* Acquires workspace that only saves time. Without the memory, plans again without it. */
static DVTI_RARE dvt_status dvti_acquire_spare(dvti_device *device, dvti_launch *launch) {
    const dvti_backend *backend = device->backend;
    const dvti_attempt attempt = dvti_attempt_begin();
    dvt_status status =
        backend->acquire(device, launch->name, launch->workspace_bytes, &launch->workspace);
    dvti_attempt_end(&attempt);
    if (status == DVT_OK)
        return DVT_OK;
    launch->lean = true;
    launch->workspace_bytes = backend->plan(device, launch);
    if (launch->workspace_bytes == 0)
        return DVT_OK;
    return backend->acquire(device, launch->name, launch->workspace_bytes, &launch->workspace);
}

/* Plans and launches in the default floating-point mode: plans compute costs in floats, and kernels
   may be floats too. */
static dvt_status dvti_launch_in_mode(dvti_device *device, dvti_launch *launch) {
    const dvti_backend *backend = device->backend;
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_status status = DVT_OK;
    launch->workspace_bytes = backend->plan(device, launch);
    launch->workspace = NULL;
    if (launch->spare)
        status = dvti_acquire_spare(device, launch);
    else if (launch->workspace_bytes > 0)
        status =
            backend->acquire(device, launch->name, launch->workspace_bytes, &launch->workspace);
    if (status == DVT_OK)
        status = backend->launch(device, launch);
    if (launch->workspace)
        backend->release(device, launch->workspace, launch->workspace_bytes);
    dvti_float_mode_end(&mode);
    return status;
}

static DVTI_RARE dvt_status dvti_launch_heard(dvti_device *device, dvti_launch *launch) {
    static dvti_atomic launches;
    dvti_event event = dvti_event_begin(DVTI_EVENT_LAUNCH, launch->name, device->ctx);
    dvt_status status;
    launch->number = event.number = dvti_atomic_add(&launches, 1);
    event.launch = launch;
    status = dvti_launch_in_mode(device, launch);
    if (!dvti_is_meta(device))
        dvti_note_later(device);
    if (status == DVT_OK)
        dvti_event_end(&event);
    return status;
}

DVTI_FN dvt_status dvti_run(dvti_device *device, dvti_launch *launch) {
    const dvti_backend *backend = device->backend;
    dvt_status status;
    if (dvti_pinned_busy() && device->ctx.type == DVT_DEVICE_CPU)
        dvti_pinned_settle_launch(launch);
    status =
        dvti_listened() ? dvti_launch_heard(device, launch) : dvti_launch_in_mode(device, launch);
    if (status != DVT_OK)
        return status;
    if (backend->note)
        dvti_launched_on = device;
    dvti_count(DVTI_COUNT_KERNELS, !dvti_is_meta(device));
    return dvti_sync_mode() ? backend->wait(device) : DVT_OK;
}

/* Waits for GPUs that read the page-locked memory of the result. */
static DVTI_RARE void dvti_settle_product(const dvti_matrices *product) {
    dvti_launch launch;
    dvti_launch_begin(&launch, "dvt_matmul", NULL, DVTI_OP_matmul);
    launch.n_out = 1;
    launch.out[0].data = product->c;
    launch.out[0].dtype = product->dtype;
    launch.out[0].ndim = 1;
    launch.out[0].dim[0] = product->m * product->n;
    launch.out[0].stride[0] = 1;
    dvti_pinned_settle_launch(&launch);
}

DVTI_FN bool dvti_multiply_small(dvti_device *device, const dvti_kernel *kernel,
                                 const dvti_matrices *product) {
    const dvti_backend *backend = device->backend;
    dvti_float_mode mode;
    bool done;
    if (!backend->multiply_small)
        return false;
    if (dvti_pinned_busy() && device->ctx.type == DVT_DEVICE_CPU)
        dvti_settle_product(product);
    mode = dvti_float_mode_begin();
    done = backend->multiply_small(kernel, product);
    dvti_float_mode_end(&mode);
    if (!done)
        return false;
    dvti_count(DVTI_COUNT_KERNELS, 1);
    if (dvti_listened()) { /* too short to be measured: it ends when it begins */
        dvti_event event = dvti_event_begin(DVTI_EVENT_LAUNCH, "dvt_matmul", device->ctx);
        event.product = product;
        dvti_note_later(device);
        dvti_event_end(&event);
    }
    return true;
}

/* ---- the size of products ---- */
static double dvti_view_elements(const dvti_view *view) {
    double size = 1;
    int i;
    for (i = 0; i < view->ndim; i++)
        size *= (double)view->dim[i];
    return size;
}

DVTI_FN double dvti_multiply_adds(const dvti_launch *launch) {
    const dvti_view *y = &launch->in[0], *w = &launch->in[1];
    if (launch->op == DVTI_OP_matmul)
        return dvti_view_elements(&launch->out[0]) *
               (double)launch->in[0].dim[launch->in[0].ndim - 1];
    /* y (N,O,OH,OW) and w (O,C,KH,KW), either of which may be the result */
    if (launch->op == DVTI_OP_conv2d)
        y = &launch->out[0];
    else if (launch->op == DVTI_OP_conv2d_weight) {
        y = &launch->in[1];
        w = &launch->out[0];
    } else if (launch->op != DVTI_OP_conv2d_data)
        return 0;
    return w->dim[0] > 0 ? dvti_view_elements(y) * dvti_view_elements(w) / (double)w->dim[0] : 0;
}

/* ---- float32 precision ---- */
/* 0: not read yet, 1: not allowed, 2: allowed */
static dvti_atomic dvti_tf32, dvti_tf32x3, dvti_winograd;

static bool dvti_precision_allowed(dvti_atomic *setting, const char *variable) {
    if (!dvti_atomic_load(setting)) {
        /* does not replace a setting made meanwhile */
        int64_t first = 1 + dvti_env_int(variable, 0, 1, 0);
        (void)dvti_atomic_swap(setting, 0, first);
    }
    return dvti_atomic_load(setting) == 2;
}

DVTI_FN bool dvti_tf32_allowed(void) {
    return dvti_precision_allowed(&dvti_tf32, "DEVTENSOR_TF32");
}

DVTI_FN bool dvti_tf32x3_allowed(void) {
    return dvti_precision_allowed(&dvti_tf32x3, "DEVTENSOR_TF32X3");
}

DVTI_FN bool dvti_winograd_allowed(void) {
    return dvti_precision_allowed(&dvti_winograd, "DEVTENSOR_WINOGRAD");
}

DVT_API bool dvt_allow_tf32(bool allow) {
    bool previous = dvti_tf32_allowed();
    dvti_atomic_store(&dvti_tf32, allow ? 2 : 1);
    return previous;
}

DVT_API bool dvt_allow_tf32x3(bool allow) {
    bool previous = dvti_tf32x3_allowed();
    dvti_atomic_store(&dvti_tf32x3, allow ? 2 : 1);
    return previous;
}

DVT_API bool dvt_allow_winograd(bool allow) {
    bool previous = dvti_winograd_allowed();
    dvti_atomic_store(&dvti_winograd, allow ? 2 : 1);
    return previous;
}
