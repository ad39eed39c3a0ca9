/* Arrays on memory of the caller. They are like views: nothing is copied, and the memory returns to
   its owner with the last array on it. */
#include "2_core/dvt_core.h"

/* Elements as offsets from the one whose indices are 0, which `data` points to:

     stride -4, extent 3       |  2  |  .  |  1  |  .  |  0  |
                               ^ below = 8             ^ data
                                                            above = 0 */
typedef struct dvti_span {
    int64_t stride[DVT_MAX_DIMS]; /* those of extents below 2 are as in C order */
    int64_t below, above;         /* elements before and after the one at `data` */
    int64_t bytes;                /* 0: there are no elements */
} dvti_span;

static bool dvti_span_strides(const dvti_memory *memory, dvti_span *span) {
    int64_t reach;
    int i;
    for (i = 0; i < memory->shape.ndim; i++) {
        int64_t stride = memory->stride ? memory->stride[i] : span->stride[i];
        if (memory->shape.dim[i] < 2)
            continue;
        span->stride[i] = stride;
        if (stride == INT64_MIN || /* has no absolute value */
            !dvti_mul(memory->shape.dim[i] - 1, stride < 0 ? -stride : stride, &reach) ||
            !dvti_sum(stride < 0 ? span->below : span->above, reach,
                      stride < 0 ? &span->below : &span->above))
            return false;
    }
    return true;
}

/* Computes the bytes from the first one of any element to the last one. Returns false if they do
   not fit in the address space. */
static bool dvti_span_bytes(const dvti_memory *memory, dvti_span *span) {
    const uint64_t at = (uintptr_t)memory->data;
    const int64_t size = dvt_dtype_size(memory->dtype);
    int64_t elements, below;
    if (!dvti_span_strides(memory, span) || !dvti_sum(span->below, span->above, &elements) ||
        !dvti_sum(elements, 1, &elements) || !dvti_mul(elements, size, &span->bytes))
        return false;
    below = span->below * size;
    return (uint64_t)below <= at && (uint64_t)(span->bytes - below) <= UINTPTR_MAX - at;
}

static bool dvti_span_of(const char *function, const dvti_memory *memory, dvti_span *span) {
    const int64_t size = dvt_dtype_size(memory->dtype);
    if (!dvti_nbytes(function, memory->shape, memory->dtype, &span->bytes))
        return false;
    span->below = span->above = 0;
    dvti_strides_c(memory->shape, span->stride);
    if (!span->bytes)
        return true;
    if (!memory->data) {
        dvti_null(function, "data");
        return false;
    }
    if ((uintptr_t)memory->data % (uintptr_t)size) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the data begins %d bytes after a multiple of %d; %s needs an aligned "
                  "address: copy the data to one",
                  function, (int)((uintptr_t)memory->data % (uintptr_t)size), (int)size,
                  dvt_dtype_name(memory->dtype));
        return false;
    }
    if (dvti_span_bytes(memory, span))
        return true;
    dvti_fail(DVT_ERR_RANGE,
              "%s: shape %s with these strides reaches beyond the address space; expected strides "
              "in elements, not in bytes",
              function, dvti_shape_text(memory->shape));
    return false;
}

/* Returns whether several indices may reach one element: some axis does not step over everything
   that the axes with smaller strides reach. A few layouts are reported although their elements are
   distinct, such as strides (2, 3) of shape (3, 2). */
static bool dvti_span_repeats(const dvt_shape *shape, const dvti_span *span) {
    bool seen[DVT_MAX_DIMS];
    int64_t reach = 0;
    int i, k;
    memset(seen, 0, sizeof seen);
    for (k = 0; k < shape->ndim; k++) {
        int64_t step = INT64_MAX;
        int least = -1;
        for (i = 0; i < shape->ndim; i++) {
            int64_t stride = span->stride[i] < 0 ? -span->stride[i] : span->stride[i];
            if (seen[i] || shape->dim[i] < 2 || stride >= step)
                continue;
            step = stride;
            least = i;
        }
        if (least < 0)
            return false;
        if (step <= reach)
            return true;
        seen[least] = true;
        reach += step * (shape->dim[least] - 1);
    }
    return false;
}

static dvti_storage *dvti_storage_over(const char *function, dvt_ctx ctx, void *first,
                                       int64_t bytes) {
    dvti_device *device = dvti_device_begin(function, ctx);
    dvti_storage *storage;
    if (!device)
        return NULL;
    storage = (dvti_storage *)dvti_small_alloc(sizeof *storage);
    if (!storage)
        dvti_fail_memory(function, (int64_t)sizeof *storage);
    if (!storage || (bytes && device->backend->borrow &&
                     device->backend->borrow(device, function, first, bytes) != DVT_OK)) {
        dvti_small_free(storage, sizeof *storage);
        dvti_device_end(device);
        return NULL;
    }
    dvti_storage_begin(storage, device, ctx, bytes);
    storage->data = first;
    dvti_count(DVTI_COUNT_STORAGES, 1);
    return storage;
}

static void dvti_nothing_to_release(void *user) {
    (void)user;
}

DVTI_FN dvt_array *dvti_array_over(const char *function, const dvti_memory *memory, dvt_ctx ctx) {
    static double nowhere[8]; /* arrays without elements have an address as well */
    dvti_span span;
    dvti_storage *storage;
    dvt_array *x;
    void *first = nowhere;
    if (!dvti_span_of(function, memory, &span))
        return NULL;
    if (span.bytes)
        first = (char *)memory->data - span.below * dvt_dtype_size(memory->dtype);
    storage = dvti_storage_over(function, dvti_ctx(ctx), first, span.bytes);
    if (!storage)
        return NULL;
    storage->release = dvti_nothing_to_release; /* a failure does not reach the owner's function */
    x = dvti_array_on(function, storage, &memory->shape, span.stride, span.below, memory->dtype);
    if (!x)
        return NULL;
    x->broadcast = span.bytes && dvti_span_repeats(&memory->shape, &span);
    if (memory->release) {
        storage->user = memory->user;
        storage->release = memory->release;
    }
    return x;
}

DVT_API dvt_array *dvt_from_memory(void *data, dvt_shape shape, const int64_t *strides,
                                   dvt_dtype dtype, dvt_release_fn release, void *user,
                                   dvt_ctx ctx) {
    dvti_memory memory;
    memory.data = data;
    memory.shape = shape;
    memory.stride = strides;
    memory.dtype = dtype;
    memory.release = release;
    memory.user = user;
    return dvti_array_over("dvt_from_memory", &memory, ctx);
}
