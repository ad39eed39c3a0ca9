/* The only file that moves elements between contexts. */
#include "1_base/dvt_float_mode.h"
#include "2_core/dvt_core.h"

/* ---- the guard of implicit reads ---- */
static DVTI_TLS dvt_transfer_guard dvti_guard;

DVT_API dvt_transfer_guard dvt_set_transfer_guard(dvt_transfer_guard guard) {
    dvt_transfer_guard previous = dvti_guard;
    dvti_guard = guard;
    return previous;
}

DVTI_FN dvt_status dvti_check_guard(const char *function, const dvt_array *x) {
    if (x->storage->ctx.type == DVT_DEVICE_CPU)
        return DVT_OK;
    if (!dvti_has_values(function, x))
        return dvti_failure();
    dvti_atomic_add(&dvti_stats()->implicit_reads, 1);
    if (dvti_guard == DVT_TRANSFER_FORBID)
        return dvti_fail(DVT_ERR_CONTEXT,
                         "%s: reading %s would copy %lld bytes to host memory, which the transfer "
                         "guard forbids; copy with "
                         "dvt_copyto(x, dvt_cpu()) where the copy is meant",
                         function, dvti_describe(x), (long long)dvt_nbytes(x));
    if (dvti_guard == DVT_TRANSFER_LOG)
        dvti_log(DVT_LOG_WARNING, "%s: reading %s copies %lld bytes to host memory", function,
                 dvti_describe(x), (long long)dvt_nbytes(x));
    return DVT_OK;
}

/* ---- copies ---- */
/* Copies on one device, with any dtypes and strides. Class I64 keeps 64-bit integers exact; floats
   are converted through the wider of the two dtypes. */
static dvt_status dvti_copy_on_device(const char *function, dvt_array *dst, dvt_array *src) {
    dvti_launch launch;
    dvti_launch_begin(&launch, function, dvti_built()->copy(), DVTI_OP_copy);
    launch.in[0] = dvti_view_of(src);
    launch.out[0] = dvti_view_of(dst);
    launch.n_in = launch.n_out = 1;
    launch.compute = dvti_class_of(src->dtype);
    return dvti_run(dst->storage->device, &launch);
}

/* Copies contiguous bytes of one dtype between devices. */
static dvt_status dvti_copy_bytes_in_mode(dvt_array *dst, dvt_array *src) {
    dvti_device *to = dst->storage->device, *from = src->storage->device;
    dvti_counters *c = dvti_stats();
    int64_t bytes = dvt_nbytes(src);
    void *d = dvti_view_of(dst).data, *s = dvti_view_of(src).data;
    if (bytes == 0)
        return DVT_OK;
    if (from->ctx.type == DVT_DEVICE_CPU) {
        dvti_atomic_add(&c->to_device_count, 1);
        dvti_atomic_add(&c->to_device_bytes, bytes);
        if (dvti_is_pinned(src->storage) && to->backend->pinned)
            return dvti_pinned_upload(to, d, src->storage, s, bytes);
        return to->backend->upload(to, d, s, bytes);
    }
    if (to->ctx.type == DVT_DEVICE_CPU) {
        dvti_atomic_add(&c->to_host_count, 1);
        dvti_atomic_add(&c->to_host_bytes, bytes);
        dvti_atomic_add(&c->waits, 1);
        if (dvti_is_pinned(dst->storage) && from->backend->pinned) {
            dvti_pinned_settle(dst->storage);
            return from->backend->pinned()->download(from, d, s, bytes);
        }
        return from->backend->download(from, d, s, bytes);
    }
    dvti_atomic_add(&c->between_count, 1);
    dvti_atomic_add(&c->between_bytes, bytes);
    return to->backend->copy_from(to, d, from, s, bytes);
}

/* Sends the event of a copy that began at `begin` and ends now. */
static DVTI_RARE void dvti_copy_heard(const char *function, double begin, dvti_device *device,
                                      dvt_ctx to, dvt_ctx from, int64_t bytes) {
    dvti_event event = dvti_event_begin(DVTI_EVENT_COPY, function, to);
    event.begin = begin;
    event.from = from;
    event.bytes = bytes;
    dvti_note_later(device);
    dvti_event_end(&event);
}

/* Sends the wait of a copy to host memory and the copy itself as two events. */
static DVTI_RARE dvt_status dvti_copy_bytes_heard(const char *function, dvt_array *dst,
                                                  dvt_array *src) {
    dvti_device *from = src->storage->device, *to = dst->storage->device;
    dvt_status status = DVT_OK;
    dvti_event event = dvti_event_begin(DVTI_EVENT_WAIT, function, from->ctx);
    double begin;
    if (to->ctx.type == DVT_DEVICE_CPU) {
        status = from->backend->wait(from);
        dvti_event_end(&event);
    }
    begin = dvti_now();
    if (status == DVT_OK)
        status = dvti_copy_bytes_in_mode(dst, src);
    if (status == DVT_OK)
        dvti_copy_heard(function, begin, from, dst->storage->ctx, src->storage->ctx,
                        dvt_nbytes(src));
    return status;
}

/* Sets the default floating-point mode: the modeled times of virtual GPUs are floats. */
static dvt_status dvti_copy_bytes(const char *function, dvt_array *dst, dvt_array *src) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_status status = dvti_listened() ? dvti_copy_bytes_heard(function, dst, src)
                                        : dvti_copy_bytes_in_mode(dst, src);
    dvti_float_mode_end(&mode);
    return status;
}

DVTI_FN dvt_status dvti_copy_elements(const char *function, dvt_array *dst, dvt_array *src) {
    dvt_status status = DVT_OK;
    dvt_array *packed = src, *landed = dst;
    dvt_scope_guard scope;
    if (dvt_shape_size(src->shape) == 0)
        return DVT_OK;
    if (dst->storage->device == src->storage->device)
        return dvti_copy_on_device(function, dst, src);
    if (!dvti_has_values(function, src))
        return dvti_failure();
    if (dvti_is_meta(dst->storage->device))
        return DVT_OK;
    scope = dvt_scope_begin();
    if (!dvt_is_contiguous(src)) {
        packed = dvti_array_new(function, src->shape, src->dtype, src->storage->ctx);
        status = packed ? dvti_copy_on_device(function, packed, src) : dvti_failure();
    }
    if (status == DVT_OK && (!dvt_is_contiguous(dst) || dst->dtype != src->dtype)) {
        landed = dvti_array_new(function, src->shape, src->dtype, dst->storage->ctx);
        status = landed ? DVT_OK : dvti_failure();
    }
    if (status == DVT_OK)
        status = dvti_copy_bytes(function, landed, packed);
    if (status == DVT_OK && landed != dst)
        status = dvti_copy_on_device(function, dst, landed);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN bool dvti_can_all_reduce(dvti_device *const *device, int n) {
    int i;
    if (n < 2 || n > DVT_MAX_GPUS || !device[0]->backend->can_all_reduce)
        return false;
    for (i = 1; i < n; i++)
        if (device[i]->backend != device[0]->backend)
            return false;
    return device[0]->backend->can_all_reduce(device, n);
}

DVTI_FN dvt_status dvti_all_reduce(const char *function, dvti_device *const *device, int n,
                                   const dvti_reduce_part *part, int n_parts) {
    dvti_counters *c = dvti_stats();
    const double begin = dvti_listened() ? dvti_now() : 0;
    dvt_status status;
    int64_t bytes = 0;
    int i;
    for (i = 0; i < n_parts; i++)
        bytes += part[i].count * dvt_dtype_size(part[i].dtype);
    status = device[0]->backend->all_reduce(function, device, n, part, n_parts);
    if (status == DVT_OK) { /* all but one device's share crosses twice: to be summed, and to be
                     distributed */
        dvti_atomic_add(&c->between_count, (int64_t)2 * (n - 1) * n_parts);
        dvti_atomic_add(&c->between_bytes, 2 * (n - 1) * bytes);
        if (dvti_listened())
            dvti_copy_heard(function, begin, device[0], dvt_gpu(-1), dvt_gpu(-1),
                            2 * (n - 1) * bytes);
    }
    return status;
}

DVTI_FN dvt_status dvti_write_host(const char *function, dvt_array *x, const void *src) {
    dvti_device *device = x->storage->device;
    int64_t bytes = dvt_nbytes(x);
    dvt_scope_guard scope;
    dvt_array *landed = x;
    dvt_status status = DVT_OK;
    dvti_float_mode mode;
    double begin;
    if (bytes == 0 || dvti_is_meta(device))
        return DVT_OK;
    scope = dvt_scope_begin();
    if (!dvt_is_contiguous(x))
        landed = dvti_array_new(function, x->shape, x->dtype, x->storage->ctx);
    if (landed && device->ctx.type != DVT_DEVICE_CPU) {
        dvti_atomic_add(&dvti_stats()->to_device_count, 1);
        dvti_atomic_add(&dvti_stats()->to_device_bytes, bytes);
    }
    begin = dvti_listened() ? dvti_now() : 0;
    mode = dvti_float_mode_begin();
    if (landed)
        dvti_pinned_settle(landed->storage);
    status = landed ? device->backend->upload(device, dvti_view_of(landed).data, src, bytes)
                    : dvti_failure();
    dvti_float_mode_end(&mode);
    if (status == DVT_OK && device->ctx.type != DVT_DEVICE_CPU && dvti_listened())
        dvti_copy_heard(function, begin, device, x->storage->ctx, dvt_cpu(), bytes);
    if (status == DVT_OK && landed != x)
        status = dvti_copy_on_device(function, x, landed);
    dvt_scope_end(&scope);
    return status;
}

/* Returns an array on cpu() at dst, with x's shape and dtype. dst must be aligned. */
static dvt_array *dvti_array_at(const char *function, const dvt_array *x, void *dst) {
    dvti_memory memory;
    memset(&memory, 0, sizeof memory);
    memory.data = dst;
    memory.shape = x->shape;
    memory.dtype = x->dtype;
    return dvti_array_over(function, &memory, dvt_cpu());
}

DVTI_FN dvt_status dvti_read(const char *function, dvt_array *x, dvt_dtype dtype, void *dst) {
    dvt_scope_guard scope;
    dvt_array *host = x;
    dvt_status status = dvti_check_guard(function, x);
    const bool on_cpu = x->storage->ctx.type == DVT_DEVICE_CPU;
    const bool direct =
        !on_cpu && x->dtype == dtype && (uintptr_t)dst % (uintptr_t)dvt_dtype_size(dtype) == 0;
    if (status != DVT_OK)
        return status;
    scope = dvt_scope_begin();
    if (!on_cpu || x->dtype != dtype || !dvt_is_contiguous(x)) {
        host = direct ? dvti_array_at(function, x, dst)
                      : dvti_array_new(function, x->shape, dtype, dvt_cpu());
        status = host ? dvti_copy_elements(function, host, x) : dvti_failure();
    }
    if (status == DVT_OK && !direct && dvt_size(host) > 0)
        memcpy(dst, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_to_host(dvt_array *x, void *dst, int64_t bytes) {
    if (!x)
        return dvti_null("dvt_to_host", "x");
    if (bytes != dvt_nbytes(x))
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_to_host: dst has %lld bytes and x (%s) has %lld; give exactly dvt_nbytes(x)",
            (long long)bytes, dvti_describe(x), (long long)dvt_nbytes(x));
    if (!dst && bytes)
        return dvti_null("dvt_to_host", "dst");
    return dvti_read("dvt_to_host", x, x->dtype, dst);
}

static bool dvti_one_element(const char *function, dvt_array *x) {
    if (!x) {
        dvti_null(function, "x");
        return false;
    }
    if (dvt_size(x) == 1)
        return true;
    dvti_fail(
        DVT_ERR_SHAPE,
        "%s: x is %s and has %lld elements; expected exactly one: reduce it, or use dvt_item_at",
        function, dvti_describe(x), (long long)dvt_size(x));
    return false;
}

DVT_API double dvt_item(dvt_array *x) {
    double value = (double)NAN;
    if (!dvti_one_element("dvt_item", x) || dvti_read("dvt_item", x, DVT_F64, &value) != DVT_OK)
        return (double)NAN;
    return value;
}

DVT_API int64_t dvt_item_int(dvt_array *x) {
    int64_t value = 0;
    if (!dvti_one_element("dvt_item_int", x) ||
        dvti_read("dvt_item_int", x, DVT_I64, &value) != DVT_OK)
        return 0;
    return value;
}

DVT_API double dvt_item_at(dvt_array *x, dvt_shape index) {
    dvt_shape one = DVT_SCALAR;
    int64_t offset;
    double value = (double)NAN;
    dvt_scope_guard scope;
    dvt_array *element;
    int i;
    if (!x) {
        dvti_null("dvt_item_at", "x");
        return value;
    }
    if (index.ndim != x->shape.ndim) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_item_at: %d indices for x (%s); give one per axis",
                  index.ndim, dvti_describe(x));
        return value;
    }
    offset = x->offset;
    for (i = 0; i < index.ndim; i++) {
        int64_t extent = x->shape.dim[i],
                at = index.dim[i] < 0 ? index.dim[i] + extent : index.dim[i];
        if (at < 0 || at >= extent) {
            dvti_fail(DVT_ERR_RANGE, "dvt_item_at: index %lld on axis %d of x (%s); expected %s",
                      (long long)index.dim[i], i, dvti_describe(x),
                      dvti_range_text(-extent, extent - 1));
            return value;
        }
        offset += at * x->stride[i];
    }
    scope = dvt_scope_begin();
    element = dvti_view_new("dvt_item_at", x, one, NULL, offset);
    if (element && dvti_read("dvt_item_at", element, DVT_F64, &value) != DVT_OK)
        value = (double)NAN;
    dvt_scope_end(&scope);
    return value;
}
