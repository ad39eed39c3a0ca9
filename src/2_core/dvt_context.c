/* Contexts: constructors, the default of a thread, their devices. */
#include "2_core/dvt_core.h"

/* ---- values ---- */
static dvt_ctx dvti_ctx_make(dvt_device_type type, int id) {
    dvt_ctx ctx;
    ctx.type = type;
    ctx.id = id;
    return ctx;
}

DVT_API dvt_ctx dvt_cpu(void) {
    return dvti_ctx_make(DVT_DEVICE_CPU, 0);
}

DVT_API dvt_ctx dvt_cpu_id(int id) {
    return dvti_ctx_make(DVT_DEVICE_CPU, id);
}

DVT_API dvt_ctx dvt_gpu(int id) {
    return dvti_ctx_make(DVT_DEVICE_GPU, id);
}

DVT_API dvt_ctx dvt_tpu(int id) {
    return dvti_ctx_make(DVT_DEVICE_TPU, id);
}

static DVTI_TLS dvt_ctx dvti_default; /* type DVT_DEVICE_DEFAULT until a scope sets it */

DVT_API dvt_ctx dvt_default_ctx(void) {
    return dvti_default.type == DVT_DEVICE_DEFAULT ? dvt_cpu() : dvti_default;
}

DVTI_FN dvt_ctx dvti_ctx(dvt_ctx ctx) {
    return ctx.type == DVT_DEVICE_DEFAULT ? dvt_default_ctx() : ctx;
}

DVTI_FN bool dvti_is_host_memory(dvt_ctx ctx) {
    return ctx.type == DVT_DEVICE_CPU;
}

DVT_API dvt_ctx_guard dvt_ctx_scope_begin(dvt_ctx ctx) {
    dvt_ctx_guard guard;
    guard.previous = dvti_default;
    guard.once = 1;
    dvti_default = dvti_ctx(ctx);
    return guard;
}

DVT_API void dvt_ctx_scope_end(dvt_ctx_guard *guard) {
    if (!guard)
        return;
    dvti_default = guard->previous;
    guard->once = 0;
}

DVT_API bool dvt_ctx_equal(dvt_ctx a, dvt_ctx b) {
    a = dvti_ctx(a);
    b = dvti_ctx(b);
    return a.type == b.type && a.id == b.id;
}

DVT_API dvt_ctx_list dvt_ctx_list_make(int n, dvt_ctx c0, dvt_ctx c1, dvt_ctx c2, dvt_ctx c3,
                                       dvt_ctx c4, dvt_ctx c5, dvt_ctx c6, dvt_ctx c7) {
    dvt_ctx_list list;
    memset(&list, 0, sizeof list);
    list.n = n;
    list.ctx[0] = c0;
    list.ctx[1] = c1;
    list.ctx[2] = c2;
    list.ctx[3] = c3;
    list.ctx[4] = c4;
    list.ctx[5] = c5;
    list.ctx[6] = c6;
    list.ctx[7] = c7;
    return list;
}

/* ---- the devices: cpu(), and the gpu(i) that exist or were created ---- */
typedef struct dvti_devices {
    bool ready;
    dvti_device cpu;
    dvti_device gpu[DVT_MAX_GPUS];
    dvti_atomic open[DVT_MAX_GPUS]; /* changed with the lock held */
    int n_virtual;                  /* 0: the GPUs of the machine */
    int64_t virtual_bytes;
} dvti_devices;

static dvti_devices dvti_all_devices;
static dvti_mutex dvti_devices_lock = DVTI_MUTEX_INIT;
static dvti_atomic dvti_cpu_ready; /* cpu() is open, and stays as it is */

/* Returns kind number i of this build; NULL after the last one. */
static const dvti_backend_kind *dvti_kind(int i) {
    const dvti_build *built = dvti_built();
    return built->kind[i] ? built->kind[i]() : NULL;
}

/* Returns the number of GPUs of the machine. If `number` is one of them, finds its kind and its
   index there. */
static int dvti_machine_gpus(int number, const dvti_backend_kind **found, int *index) {
    const dvti_backend_kind *kind;
    int n = 0, i;
    for (i = 0; (kind = dvti_kind(i)) != NULL; i++)
        if (kind->type == DVT_DEVICE_GPU && !kind->simulates) {
            int count = kind->count();
            if (number >= n && number < n + count) {
                *found = kind;
                *index = number - n;
            }
            n += count;
        }
    return DVTI_MIN(n, DVT_MAX_GPUS);
}

/* Returns the kind that simulates GPUs; NULL if the build has none. */
static const dvti_backend_kind *dvti_simulating_kind(void) {
    const dvti_backend_kind *kind;
    int i;
    for (i = 0; (kind = dvti_kind(i)) != NULL; i++)
        if (kind->type == DVT_DEVICE_GPU && kind->simulates)
            return kind;
    return NULL;
}

/* Finds the kind and index of gpu(number): a GPU of the machine, else a simulated one. */
static const dvti_backend_kind *dvti_kind_of_gpu(int number, int *index) {
    const dvti_backend_kind *kind = NULL;
    int n = dvti_machine_gpus(-1, &kind, index);
    *index = number;
    if (!n)
        return dvti_simulating_kind();
    dvti_machine_gpus(number % n, &kind, index);
    return kind;
}

static const dvti_backend_kind *dvti_kind_of_cpu(void) {
    const dvti_backend_kind *kind;
    int i;
    for (i = 0; (kind = dvti_kind(i)) != NULL && kind->type != DVT_DEVICE_CPU; i++) {
    }
    return kind;
}

static dvt_status dvti_devices_open(const dvti_backend_kind *kind, dvti_device *device, dvt_ctx ctx,
                                    int index, int64_t limit) {
    if (!kind)
        return dvti_fail(DVT_ERR_NOT_BUILT, "%s: this build has no backend for it; use dvt_cpu()",
                         dvt_ctx_name(ctx));
    device->backend = NULL;
    device->kind = kind;
    device->ctx = ctx;
    device->impl = NULL;
    device->limit = limit;
    device->used = device->peak = 0; /* dvti_gpu_use may be counting a user, and takes it back */
    return kind->open(device, index);
}

/* Opens cpu() and reads the environment, once. The caller holds the lock. */
static dvti_devices *dvti_devices_ready(void) {
    dvti_devices *all = &dvti_all_devices;
    const char *bytes;
    if (all->ready)
        return all;
    dvti_log_ready();
    dvti_set_memory_advice(dvti_memory_advice_write);
    dvti_devices_open(dvti_kind_of_cpu(), &all->cpu, dvt_cpu(), 0, 0); /* never fails */
    if (dvti_simulating_kind())
        all->n_virtual = (int)dvti_env_int("DEVTENSOR_VIRTUAL_GPUS", 0, DVT_MAX_GPUS, 0);
    bytes = dvti_env("DEVTENSOR_VIRTUAL_GPU_MEMORY");
    if (bytes && (all->virtual_bytes = dvti_parse_bytes(bytes)) < 0) {
        dvti_log(DVT_LOG_WARNING,
                 "DEVTENSOR_VIRTUAL_GPU_MEMORY=%.40s is not a number of bytes such as 64M; ignored",
                 bytes);
        all->virtual_bytes = 0;
    }
    all->ready = true;
    dvti_atomic_publish(&dvti_cpu_ready, 1);
    return all;
}

/* Returns the number of GPUs. Requested virtual GPUs replace the machine's, and are mapped onto
   them if there are any. The caller holds the lock. */
static int dvti_devices_gpus(const dvti_devices *all) {
    const dvti_backend_kind *kind;
    int index;
    return all->n_virtual ? all->n_virtual : dvti_machine_gpus(-1, &kind, &index);
}

static const char *dvti_no_gpu_reason(void) {
    const dvti_backend_kind *kind;
    const char *reason;
    int i;
    for (i = 0; (kind = dvti_kind(i)) != NULL; i++)
        if (kind->type == DVT_DEVICE_GPU && *(reason = kind->reason()))
            return reason;
    return "this build has no GPU backend";
}

DVT_API int dvt_num_gpus(void) {
    int n;
    dvti_mutex_lock(&dvti_devices_lock);
    n = dvti_devices_gpus(dvti_devices_ready());
    dvti_mutex_unlock(&dvti_devices_lock);
    return n;
}

DVT_API const char *dvt_gpu_reason(void) {
    return dvt_num_gpus() ? "" : dvti_no_gpu_reason();
}

/* If gpu(i) is open, counts a user and returns it, for dvti_device_end; else NULL. Takes no lock:
   closing first marks the GPU as closed, then reads its users. So closing finds this user, or this
   finds the mark. */
static dvti_device *dvti_gpu_use(int i) {
    dvti_device *device = &dvti_all_devices.gpu[i];
    if (!dvti_atomic_load(&dvti_all_devices.open[i]))
        return NULL;
    dvti_atomic_add(&device->users, 1);
    if (dvti_atomic_load(&dvti_all_devices.open[i]))
        return device;
    dvti_atomic_add(&device->users, -1);
    return NULL;
}

/* Opens a GPU at its first use. A device in use is not closed. cpu() is never closed, so its users
   are not counted. */
static DVTI_NOINLINE dvti_device *dvti_device_begin_locked(const char *function, dvt_ctx ctx) {
    dvti_device *device = NULL;
    dvti_devices *all;
    dvt_status status = DVT_OK;
    int n;
    if (ctx.type == DVT_DEVICE_META)
        return dvti_meta_begin(function, ctx);
    dvti_mutex_lock(&dvti_devices_lock);
    all = dvti_devices_ready();
    n = ctx.type == DVT_DEVICE_GPU ? dvti_devices_gpus(all) : 0;
    if (ctx.type == DVT_DEVICE_CPU && ctx.id >= 0)
        device = &all->cpu;
    else if (ctx.type == DVT_DEVICE_GPU && ctx.id >= 0 && ctx.id < n) {
        device = &all->gpu[ctx.id];
        if (!dvti_atomic_load(&all->open[ctx.id])) {
            int index;
            const dvti_backend_kind *kind = dvti_kind_of_gpu(ctx.id, &index);
            status = dvti_devices_open(kind, device, ctx, index,
                                       all->n_virtual ? all->virtual_bytes : 0);
            dvti_atomic_store(&all->open[ctx.id], status == DVT_OK);
        }
        if (status == DVT_OK)
            dvti_gpu_use(ctx.id);
    }
    dvti_mutex_unlock(&dvti_devices_lock);
    if (status != DVT_OK)
        return NULL;
    if (!device) {
        if (ctx.type == DVT_DEVICE_GPU && n == 0)
            dvti_fail(
                DVT_ERR_NO_DEVICE,
                "%s: %s does not exist: %s; use dvt_try_gpu(%d), or set DEVTENSOR_VIRTUAL_GPUS",
                function, dvt_ctx_name(ctx), dvti_no_gpu_reason(), ctx.id);
        else if (ctx.type == DVT_DEVICE_GPU)
            dvti_fail(
                DVT_ERR_NO_DEVICE,
                "%s: %s does not exist: there %s %d GPU%s, gpu(0) to gpu(%d); use dvt_try_gpu(%d)",
                function, dvt_ctx_name(ctx), n == 1 ? "is" : "are", n, n == 1 ? "" : "s", n - 1,
                ctx.id);
        else if (ctx.type == DVT_DEVICE_CPU)
            dvti_fail(DVT_ERR_NO_DEVICE, "%s: %s does not exist: ids begin at 0; use dvt_cpu()",
                      function, dvt_ctx_name(ctx));
        else if (ctx.type == DVT_DEVICE_TPU)
            dvti_fail(DVT_ERR_NO_DEVICE,
                      "%s: %s does not exist: devtensor has no TPU backend; use "
                      "dvt_try_tpu_gpu(%d), which gives a GPU or cpu(0)",
                      function, dvt_ctx_name(ctx), ctx.id);
        else
            dvti_fail(DVT_ERR_NO_DEVICE,
                      "%s: a context of type %d and number %d does not exist; use dvt_cpu() or "
                      "dvt_gpu(0)",
                      function, (int)ctx.type, ctx.id);
    }
    return device;
}

DVTI_FN dvti_device *dvti_device_begin(const char *function, dvt_ctx ctx) {
    if (ctx.type == DVT_DEVICE_CPU && ctx.id >= 0 && dvti_atomic_load(&dvti_cpu_ready))
        return &dvti_all_devices.cpu;
    if (ctx.type == DVT_DEVICE_GPU && ctx.id >= 0 && ctx.id < DVT_MAX_GPUS) {
        dvti_device *device = dvti_gpu_use(ctx.id);
        if (device)
            return device;
    }
    return dvti_device_begin_locked(function, ctx);
}

DVTI_FN void dvti_device_end(dvti_device *device) {
    if (device != &dvti_all_devices.cpu)
        dvti_atomic_add(&device->users, -1);
}

DVTI_FN bool dvti_device_exists(const char *function, dvt_ctx ctx) {
    dvti_device *device = dvti_device_begin(function, ctx);
    if (device)
        dvti_device_end(device);
    return device != NULL;
}

DVTI_FN bool dvti_device_look(dvt_ctx ctx, dvti_device **open, const dvti_backend_kind **kind,
                              int *index, int64_t *limit) {
    dvti_devices *all;
    bool exists;
    dvti_mutex_lock(&dvti_devices_lock);
    all = dvti_devices_ready();
    exists = ctx.type == DVT_DEVICE_GPU && ctx.id >= 0 && ctx.id < dvti_devices_gpus(all);
    *open = exists ? dvti_gpu_use(ctx.id) : NULL;
    *kind = exists ? dvti_kind_of_gpu(ctx.id, index) : NULL;
    *limit = all->n_virtual ? all->virtual_bytes : 0;
    if (*open)
        *limit = dvti_atomic_load(&(*open)->limit);
    dvti_mutex_unlock(&dvti_devices_lock);
    return exists;
}

DVT_API dvt_status dvt_set_virtual_gpus(int n, int64_t bytes) {
    dvti_devices *all;
    bool open[DVT_MAX_GPUS];
    int64_t users = 0;
    int i;
    if (n < 0 || n > DVT_MAX_GPUS || bytes < 0)
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_set_virtual_gpus: got %d GPUs of %lld bytes; expected 0 to %d, and bytes >= 0", n,
            (long long)bytes, DVT_MAX_GPUS);
    dvti_mutex_lock(&dvti_devices_lock);
    all = dvti_devices_ready();
    for (i = 0; i < DVT_MAX_GPUS; i++) {
        open[i] = dvti_atomic_load(&all->open[i]);
        dvti_atomic_store(&all->open[i], 0);
        users += open[i] ? dvti_atomic_load(&all->gpu[i].users) : 0;
    }
    for (i = 0; i < DVT_MAX_GPUS; i++)
        if (users)
            dvti_atomic_store(&all->open[i], open[i]);
        else if (open[i])
            all->gpu[i].kind->close(&all->gpu[i]);
    if (!users) {
        all->n_virtual = n;
        all->virtual_bytes = bytes;
    }
    dvti_mutex_unlock(&dvti_devices_lock);
    if (users)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_set_virtual_gpus: %lld arrays, events or calls of other threads are "
                         "using virtual GPUs; release arrays and events, and wait for the calls "
                         "first",
                         (long long)users);
    return DVT_OK;
}

DVT_API dvt_ctx dvt_try_gpu(int i) {
    return i >= 0 && i < dvt_num_gpus() ? dvt_gpu(i) : dvt_cpu();
}

DVT_API int dvt_num_tpus(void) {
    return 0;
}

DVT_API dvt_ctx dvt_try_tpu_gpu(int i) {
    return i >= 0 && i < dvt_num_tpus() ? dvt_tpu(i) : dvt_try_gpu(i);
}

DVT_API dvt_ctx_list dvt_try_all_gpus(void) {
    dvt_ctx_list list;
    int i;
    memset(&list, 0, sizeof list);
    list.n = dvt_num_gpus();
    for (i = 0; i < list.n; i++)
        list.ctx[i] = dvt_gpu(i);
    return list;
}

DVT_API dvt_ctx_list dvt_try_all_gpus_or_cpu(void) {
    dvt_ctx_list list = dvt_try_all_gpus();
    if (list.n == 0)
        list.ctx[list.n++] = dvt_cpu();
    return list;
}

/* ---- waiting ---- */
static DVTI_RARE dvt_status dvti_wait_heard(const char *function, dvti_device *device) {
    dvti_event event = dvti_event_begin(DVTI_EVENT_WAIT, function, device->ctx);
    dvt_status status = device->backend->wait(device);
    dvti_note_later(device);
    dvti_event_end(&event);
    return status;
}

DVTI_FN dvt_status dvti_wait_for(const char *function, dvti_device *device) {
    if (device->ctx.type == DVT_DEVICE_GPU) {
        dvti_atomic_add(&dvti_stats()->waits, 1);
        if (dvti_listened())
            return dvti_wait_heard(function, device);
    }
    return device->backend->wait(device);
}

DVT_API dvt_status dvt_wait(dvt_array *x) {
    return x ? dvti_wait_for("dvt_wait", x->storage->device) : dvti_null("dvt_wait", "x");
}

DVT_API dvt_status dvt_synchronize(dvt_ctx ctx) {
    dvti_device *device = dvti_device_begin("dvt_synchronize", dvti_ctx(ctx));
    dvt_status status;
    if (!device)
        return dvti_failure();
    status = dvti_wait_for("dvt_synchronize", device);
    dvti_device_end(device);
    return status;
}

/* The same as dvti_gpu_use, where a GPU that could not be closed must not be missed. */
static dvti_device *dvti_gpu_open(int i) {
    dvti_device *device;
    dvti_mutex_lock(&dvti_devices_lock);
    device = dvti_gpu_use(i);
    dvti_mutex_unlock(&dvti_devices_lock);
    return device;
}

DVT_API dvt_status dvt_wait_all(void) {
    dvt_status first = DVT_OK;
    int i;
    for (i = 0; i < DVT_MAX_GPUS; i++) {
        dvti_device *device = dvti_gpu_open(i);
        if (device) {
            dvt_status status = dvti_wait_for("dvt_wait_all", device);
            dvti_device_end(device);
            if (first == DVT_OK)
                first = status;
        }
    }
    return first;
}

DVTI_FN void dvti_settle_all(void) {
    int i;
    for (i = 0; i < DVT_MAX_GPUS; i++) {
        dvti_device *device = dvti_gpu_open(i);
        if (device) {
            if (device->backend->settle)
                device->backend->settle(device, NULL, 0);
            dvti_device_end(device);
        }
    }
}
