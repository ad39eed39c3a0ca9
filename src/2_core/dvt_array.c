/* Storages, arrays and views, and the functions that inspect an array. */
#include "2_core/dvt_core.h"

DVTI_FN void dvti_storage_own(dvti_storage *storage) {
    dvti_atomic_add(&storage->references, 1);
    dvti_count(DVTI_COUNT_SHARERS, 1);
}

/* The owner's function comes last, because it may release other arrays. */
DVTI_FN void dvti_storage_release(dvti_storage *storage) {
    dvti_device *device = storage->device;
    void (*release)(void *user) = storage->release;
    void *user = storage->user;
    if (dvti_atomic_load(&storage->references) != 1 &&
        dvti_atomic_add(&storage->references, -1) != 0) {
        dvti_count(DVTI_COUNT_SHARERS, -1);
        return;
    }
    if (!release)
        device->backend->release(device, storage->data, storage->bytes);
    else if (device->backend->settle && storage->bytes)
        device->backend->settle(device, storage->data, storage->bytes);
    dvti_device_end(device);
    dvti_count(DVTI_COUNT_STORAGES, -1);
    dvti_small_free(storage, sizeof *storage);
    if (release)
        release(user);
}

/* The array that this thread is allocating; shape is NULL if there is none. */
static DVTI_TLS struct {
    const dvt_shape *shape;
    dvt_dtype dtype;
} dvti_wanted;

DVTI_FN const char *dvti_wanted_text(void) {
    char *text = dvti_name_buffer();
    if (!dvti_wanted.shape)
        return "";
    snprintf(text, DVTI_NAME_SIZE, " for an array of shape %s, %s,",
             dvti_shape_text(*dvti_wanted.shape), dvt_dtype_name(dvti_wanted.dtype));
    return text;
}

DVTI_FN dvt_status dvti_fail_array_memory(const char *function, int64_t bytes) {
    const char *wanted = dvti_wanted_text();
    return dvti_fail(
        DVT_ERR_HOST_MEMORY,
        "%s: no host memory left%s %s %lld bytes; free arrays or work in smaller pieces", function,
        wanted, *wanted ? "of" : "for", (long long)bytes);
}

/* Creates a storage with one reference. The device stays in use until the storage is freed. */
static dvti_storage *dvti_storage_new(const char *function, dvt_ctx ctx, int64_t bytes) {
    dvti_device *device = dvti_device_begin(function, ctx);
    dvti_storage *storage;
    if (!device)
        return NULL;
    storage = (dvti_storage *)dvti_small_alloc(sizeof *storage);
    if (!storage)
        dvti_fail_memory(function, (int64_t)sizeof *storage);
    if (!storage || device->backend->acquire(device, function, bytes, &storage->data) != DVT_OK) {
        dvti_small_free(storage, sizeof *storage);
        dvti_device_end(device);
        return NULL;
    }
    dvti_storage_begin(storage, device, ctx, bytes);
    dvti_count(DVTI_COUNT_STORAGES, 1);
    return storage;
}

/* Releases a gradient, the gradient of that gradient, and so on. A loop, because recursion could
   exhaust the stack. */
static void dvti_gradients_disown(dvt_array *x) {
    dvt_array *grad;
    for (; x; x = grad) {
        dvti_last last = dvti_disown_step(&x->object);
        grad = NULL;
        if (last == DVTI_NOT_LAST)
            continue;
        grad = x->grad;
        x->grad = NULL;
        if (last == DVTI_LAST_DESTROYS)
            x->object.destroy(x);
        else
            dvti_unhold(x);
    }
}

static void dvti_array_destroy(void *object) {
    dvt_array *x = (dvt_array *)object;
    if (x->node)
        ((dvti_node_head *)(void *)x->node)->release(x->node);
    dvti_gradients_disown(x->grad);
    dvti_storage_release(x->storage);
    dvti_small_free(x, sizeof *x);
}

/* Releases the gradient when the array loses its last owner: only owners can read it. */
static void dvti_array_abandon(void *object) {
    dvt_array *x = (dvt_array *)object, *grad = x->grad;
    x->grad = NULL;
    dvti_gradients_disown(grad);
}

/* A loop without a scope of its own keeps the arrays of all its iterations. The advice below
   appears from this many arrays on. */
#define DVTI_MANY_ARRAYS 100

DVTI_FN void dvti_memory_advice_write(char *buffer, size_t size) {
    int64_t n = dvti_scope_outermost(dvti_array_destroy);
    if (n >= DVTI_MANY_ARRAYS)
        snprintf(buffer, size,
                 "; %lld arrays live in this thread's outermost scope: if a loop creates them, "
                 "DVT_SCOPED; at the beginning of its block releases them after each iteration",
                 (long long)n);
}

#undef DVTI_MANY_ARRAYS

DVTI_FN dvt_array *dvti_array_on(const char *function, dvti_storage *storage,
                                 const dvt_shape *shape, const int64_t *stride, int64_t offset,
                                 dvt_dtype dtype) {
    dvt_array *x = (dvt_array *)dvti_small_alloc(sizeof *x);
    int i;
    if (!x || !dvti_object_begin(x, dvti_array_destroy, function)) {
        if (!x)
            dvti_fail_memory(function, (int64_t)sizeof *x);
        dvti_small_free(x, sizeof *x);
        dvti_storage_release(storage);
        return NULL;
    }
    x->object.abandon = dvti_array_abandon;
    x->storage = storage;
    x->offset = offset;
    x->shape.ndim = shape->ndim;
    DVTI_ZERO_8(x->shape.dim);
    DVTI_ZERO_8(x->stride);
    for (i = 0; i < shape->ndim; i++) {
        x->shape.dim[i] = shape->dim[i];
        x->stride[i] = stride[i];
    }
    x->dtype = dtype;
    x->broadcast = false;
    x->node = NULL;
    x->grad = NULL;
    x->grad_req = DVT_GRAD_WRITE;
    x->attached = x->grad_fresh = x->grad_sums = false;
    x->grad_holds = 0;
    x->site = DVTI_SITE_NONE;
    x->file = NULL;
    x->line = 0;
    return x;
}

/* Computes bytes and strides in C order of a valid shape. Returns false for shapes that need the
   slow path. */
static bool dvti_layout_c(const dvt_shape *shape, dvt_dtype dtype, int64_t *stride,
                          int64_t *bytes) {
    int64_t step = 1;
    int i;
    if (!dvti_dtype_ok(dtype) || shape->ndim < 0 || shape->ndim > DVT_MAX_DIMS)
        return false;
    for (i = shape->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        if (!dvti_mul(step, shape->dim[i], &step))
            return false;
    }
    return dvti_mul(step, dvt_dtype_size(dtype), bytes);
}

DVTI_FN dvt_array *dvti_array_shaped(const char *function, const dvt_shape *shape, dvt_dtype dtype,
                                     dvt_ctx ctx) {
    int64_t bytes, stride[DVT_MAX_DIMS];
    dvti_storage *storage;
    if (!dvti_layout_c(shape, dtype, stride, &bytes)) {
        if (!dvti_nbytes(function, *shape, dtype, &bytes))
            return NULL;
        dvti_strides_c(*shape, stride); /* empty, with extents that overflow */
    }
    dvti_wanted.shape = shape;
    dvti_wanted.dtype = dtype;
    storage = dvti_storage_new(function, dvti_ctx(ctx), bytes);
    dvti_wanted.shape = NULL;
    if (!storage)
        return NULL;
    return dvti_array_on(function, storage, shape, stride, 0, dtype);
}

DVTI_FN dvt_array *dvti_array_new(const char *function, dvt_shape shape, dvt_dtype dtype,
                                  dvt_ctx ctx) {
    return dvti_array_shaped(function, &shape, dtype, ctx);
}

/* Returns whether several positions share an element. An empty array has none, whatever its
   strides. */
static bool dvti_repeats(const dvt_shape *shape, const int64_t *stride) {
    bool shared = false;
    int i;
    for (i = 0; i < shape->ndim; i++)
        shared = shared || (stride[i] == 0 && shape->dim[i] > 1);
    return shared && dvti_has_elements(shape);
}

DVTI_FN dvt_array *dvti_view_new(const char *function, dvt_array *x, dvt_shape shape,
                                 const int64_t *stride, int64_t offset) {
    dvt_array *view;
    dvti_storage_own(x->storage);
    view = dvti_array_on(function, x->storage, &shape, stride, offset, x->dtype);
    if (view)
        view->broadcast = x->broadcast || dvti_repeats(&shape, stride);
    return view;
}

DVTI_FN dvti_view dvti_view_of(const dvt_array *x) {
    dvti_view view;
    view.data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view.dtype = x->dtype;
    view.ndim = x->shape.ndim;
    memcpy(view.dim, x->shape.dim, sizeof view.dim);
    memcpy(view.stride, x->stride, sizeof view.stride);
    return view;
}

DVTI_FN void dvti_view_into(dvti_view *view, const dvt_array *x) {
    int i;
    view->data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view->dtype = x->dtype;
    view->ndim = x->shape.ndim;
    for (i = 0; i < x->shape.ndim; i++) {
        view->dim[i] = x->shape.dim[i];
        view->stride[i] = x->stride[i];
    }
}

/* Copies axis by axis. A vector load of extents that were just stored one by one would stall (store
   forwarding). */
DVTI_FN void dvti_view_broadcast_into(dvti_view *view, const dvt_array *x, const dvt_shape *shape) {
    int lead = shape->ndim - x->shape.ndim, i;
    view->data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view->dtype = x->dtype;
    view->ndim = shape->ndim;
    for (i = 0; i < lead; i++) {
        view->dim[i] = shape->dim[i];
        view->stride[i] = 0;
    }
    for (; i < shape->ndim; i++) {
        bool repeats = x->shape.dim[i - lead] == 1 && shape->dim[i] != 1;
        view->dim[i] = shape->dim[i];
        view->stride[i] = repeats ? 0 : x->stride[i - lead];
    }
}

DVTI_FN const char *dvti_site_text(const dvt_array *x) {
    char *buffer;
    if (dvti_atomic_load(&x->site) < DVTI_SITE_KNOWN)
        return "";
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "%s:%d", x->file, x->line);
    return buffer;
}

DVTI_FN const char *dvti_describe(const dvt_array *x) {
    char *buffer = dvti_name_buffer();
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    dvti_text_add(&text, "%s %s on %s", dvt_dtype_name(x->dtype), dvti_shape_text(x->shape),
                  dvt_ctx_name(x->storage->ctx));
    if (dvti_atomic_load(&x->site) >= DVTI_SITE_KNOWN)
        dvti_text_add(&text, " made at %s:%d", x->file, x->line);
    return buffer;
}

/* ---- inspection ---- */
DVT_API dvt_shape dvt_shape_of(const dvt_array *x) {
    dvt_shape none = DVT_SCALAR;
    return x ? x->shape : none;
}

DVT_API int dvt_ndim(const dvt_array *x) {
    return x ? x->shape.ndim : 0;
}

DVT_API int64_t dvt_dim(const dvt_array *x, int axis) {
    if (!x) {
        dvti_null("dvt_dim", "x");
        return -1;
    }
    return dvti_axis("dvt_dim", &axis, x) ? x->shape.dim[axis] : -1;
}

DVT_API int64_t dvt_stride(const dvt_array *x, int axis) {
    if (!x) {
        dvti_null("dvt_stride", "x");
        return 0;
    }
    return dvti_axis("dvt_stride", &axis, x) ? x->stride[axis] : 0;
}

DVT_API int64_t dvt_size(const dvt_array *x) {
    return x ? dvt_shape_size(x->shape) : 0;
}

DVT_API int64_t dvt_nbytes(const dvt_array *x) {
    return x ? dvt_shape_size(x->shape) * dvt_dtype_size(x->dtype) : 0;
}

DVT_API dvt_dtype dvt_dtype_of(const dvt_array *x) {
    return x ? x->dtype : DVT_F32;
}

DVT_API dvt_ctx dvt_ctx_of(const dvt_array *x) {
    dvt_ctx none = {DVT_DEVICE_DEFAULT, 0};
    return x ? x->storage->ctx : none;
}

DVT_API bool dvt_is_contiguous(const dvt_array *x) {
    int64_t step = 1;
    int i;
    if (!x)
        return false;
    if (!dvti_has_elements(&x->shape))
        return true;
    for (i = x->shape.ndim - 1; i >= 0; i--) {
        if (x->shape.dim[i] != 1 && x->stride[i] != step)
            return false;
        step *= x->shape.dim[i];
    }
    return true;
}

DVT_API bool dvt_shares_memory(const dvt_array *a, const dvt_array *b) {
    return a && b && a->storage == b->storage;
}

DVT_API const char *dvt_made_at(const dvt_array *x) {
    return x ? dvti_site_text(x) : "";
}

DVT_API dvt_array *dvt_note_site(dvt_array *x, const char *file, int line) {
    dvti_note_launches(file, line);
    if (!x)
        dvti_error_at(file, line);
    else if (dvti_atomic_load(&x->site) == DVTI_SITE_NONE && dvti_atomic_add(&x->site, 1) == 1) {
        x->file = file;
        x->line = line;
        dvti_atomic_publish(&x->site, DVTI_SITE_KNOWN);
    }
    return x;
}

static void dvti_note(bool failed, const char *file, int line) {
    dvti_note_launches(file, line);
    if (failed)
        dvti_error_at(file, line);
}

DVT_API dvt_status dvt_note_status(dvt_status status, const char *file, int line) {
    dvti_note(status != DVT_OK, file, line);
    return status;
}

DVT_API void *dvt_note_pointer(const void *object, const char *file, int line) {
    dvti_note(!object, file, line);
    return (void *)object;
}

DVT_API double dvt_note_double(double value, const char *file, int line) {
    dvti_note(value == 0 || value != value, file, line);
    return value;
}

DVT_API int dvt_note_int(int value, const char *file, int line) {
    dvti_note(value <= 0, file, line);
    return value;
}

DVT_API int64_t dvt_note_int64(int64_t value, const char *file, int line) {
    dvti_note(value <= 0, file, line);
    return value;
}

DVT_API uint64_t dvt_note_uint64(uint64_t value, const char *file, int line) {
    dvti_note(value == 0, file, line);
    return value;
}

DVT_API bool dvt_note_bool(bool value, const char *file, int line) {
    dvti_note(!value, file, line);
    return value;
}

DVT_API void *dvt_data(dvt_array *x) {
    if (!x) {
        dvti_null("dvt_data", "x");
        return NULL;
    }
    if (x->storage->ctx.type != DVT_DEVICE_CPU) {
        if (dvti_has_values("dvt_data", x))
            dvti_fail(DVT_ERR_CONTEXT,
                      "dvt_data: x is %s; its memory cannot be reached from the host: use "
                      "dvt_to_host, or dvt_copyto(x, dvt_cpu())",
                      dvti_describe(x));
        return NULL;
    }
    if (dvt_wait(x) != DVT_OK)
        return NULL;
    dvti_pinned_settle(x->storage);
    dvti_atomic_store(&x->storage->shown, 1);
    return dvti_view_of(x).data;
}
