/* Arrays of cpu() in page-locked memory. A GPU copies from it by itself, after the call of the copy
   has returned. So whoever may write the memory waits for these copies first: kernels of cpu(),
   copies into it, dvt_data, and its release. A caller who has its address may write at any time;
   then the copy itself waits. */
#include "2_core/dvt_core.h"

typedef struct dvti_pinned {
    struct dvti_pinned *next; /* of those that are being read */
    dvti_device *device;      /* that has allocated it; kept in use */
    void *at;
    int64_t bytes;
    dvti_device *reader; /* NULL: none; a device is kept in use */
    void *mark;          /* the copy's end in its queue */
} dvti_pinned;

static dvti_mutex dvti_pinned_lock = DVTI_MUTEX_INIT;
static dvti_pinned *dvti_pinned_read; /* blocks with a reader */
static dvti_atomic dvti_pinned_reads; /* their number */
static dvti_atomic dvti_pinned_home;  /* the process that has made such arrays */

/* Returns whether this process was forked from that one. Then another thread may have held the
   lock, and the copies are those of the parent. */
static bool dvti_pinned_forked(void) {
    return dvti_atomic_load(&dvti_pinned_home) != dvti_process_id();
}

/* Waits for the reader of a block. The caller holds the lock. A failure of the reader is left for
   its next wait; it reads no more. */
static void dvti_pinned_wait(dvti_pinned *block) {
    dvti_pinned **link = &dvti_pinned_read;
    dvti_device *reader = block->reader;
    if (!reader)
        return;
    reader->backend->pinned()->settle(reader, block->mark);
    block->reader = NULL;
    block->mark = NULL;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    dvti_atomic_add(&dvti_pinned_reads, -1);
    dvti_device_end(reader);
}

static void dvti_pinned_release(void *user) {
    dvti_pinned *block = (dvti_pinned *)user;
    if (!dvti_pinned_forked()) {
        dvti_mutex_lock(&dvti_pinned_lock);
        dvti_pinned_wait(block);
        dvti_mutex_unlock(&dvti_pinned_lock);
    }
    block->device->backend->pinned()->release(block->device, block->at);
    dvti_device_end(block->device);
    dvti_free(block);
}

static dvti_pinned *dvti_pinned_of(const dvti_storage *storage) {
    return storage->release == dvti_pinned_release ? (dvti_pinned *)storage->user : NULL;
}

DVTI_FN bool dvti_is_pinned(const dvti_storage *storage) {
    return dvti_pinned_of(storage) != NULL;
}

DVTI_FN void dvti_pinned_settle(const dvti_storage *storage) {
    dvti_pinned *block = dvti_pinned_of(storage);
    if (!block || !dvti_atomic_load(&dvti_pinned_reads) || dvti_pinned_forked())
        return;
    dvti_mutex_lock(&dvti_pinned_lock);
    dvti_pinned_wait(block);
    dvti_mutex_unlock(&dvti_pinned_lock);
}

/* Returns whether a launch may write the block. Kernels with lists of arrays of their own count as
   writers. */
static bool dvti_pinned_written(const dvti_pinned *block, const dvti_launch *launch) {
    const uintptr_t begin = (uintptr_t)block->at, end = begin + (uintptr_t)block->bytes;
    int k, axis;
    if (launch->updates || launch->custom)
        return true;
    for (k = 0; k < launch->n_out; k++) {
        const dvti_view *view = &launch->out[k];
        const int64_t size = dvt_dtype_size(view->dtype);
        uintptr_t low = (uintptr_t)view->data, high = low + (uintptr_t)size;
        for (axis = 0; axis < view->ndim && view->dim[axis] > 0; axis++) {
            const int64_t reach = (view->dim[axis] - 1) * view->stride[axis] * size;
            if (reach < 0)
                low -= (uintptr_t)-reach;
            else
                high += (uintptr_t)reach;
        }
        if (view->data && low < end && begin < high)
            return true;
    }
    return false;
}

DVTI_FN DVTI_RARE void dvti_pinned_settle_launch(const dvti_launch *launch) {
    dvti_pinned *block, *next;
    if (dvti_pinned_forked())
        return;
    dvti_mutex_lock(&dvti_pinned_lock);
    for (block = dvti_pinned_read; block; block = next) {
        next = block->next;
        if (dvti_pinned_written(block, launch))
            dvti_pinned_wait(block);
    }
    dvti_mutex_unlock(&dvti_pinned_lock);
}

DVTI_FN bool dvti_pinned_busy(void) {
    return dvti_atomic_peek(&dvti_pinned_reads) != 0;
}

DVTI_FN dvt_status dvti_pinned_upload(dvti_device *to, void *dst, const dvti_storage *from,
                                      const void *src, int64_t bytes) {
    dvti_pinned *block = dvti_pinned_of(from);
    void *mark = NULL;
    dvt_status status;
    if (dvti_pinned_forked()) /* fails with FORKED, unless CUDA was initialized by this process */
        return to->backend->upload(to, dst, src, bytes);
    dvti_mutex_lock(&dvti_pinned_lock);
    if (block->reader && block->reader != to)
        dvti_pinned_wait(block);
    status = to->backend->pinned()->upload(to, dst, src, bytes, &mark);
    if (status == DVT_OK && mark && block->reader) {
        to->backend->pinned()->drop(to, block->mark); /* the same queue: the new one comes later */
        block->mark = mark;
    } else if (status == DVT_OK && mark) {
        dvti_atomic_add(&to->users, 1);
        block->reader = to;
        block->mark = mark;
        block->next = dvti_pinned_read;
        dvti_pinned_read = block;
        dvti_atomic_add(&dvti_pinned_reads, 1);
    }
    if (dvti_atomic_load(&from->shown))
        dvti_pinned_wait(block);
    dvti_mutex_unlock(&dvti_pinned_lock);
    return status;
}

/* ---- creation ---- */
static dvt_array *dvti_pinned_array(const char *function, dvti_device *device, dvt_shape shape,
                                    dvt_dtype dtype, int64_t bytes) {
    dvti_pinned *block = (dvti_pinned *)dvti_alloc_zero(sizeof *block);
    dvti_memory memory;
    dvt_array *x;
    if (!block) {
        dvti_fail_memory(function, (int64_t)sizeof *block);
        return NULL;
    }
    dvti_atomic_store(&dvti_pinned_home, dvti_process_id());
    block->device = device;
    block->bytes = bytes;
    if (device->backend->pinned()->acquire(device, function, bytes, &block->at) != DVT_OK) {
        dvti_free(block);
        return NULL;
    }
    memset(&memory, 0, sizeof memory);
    memory.data = block->at;
    memory.shape = shape;
    memory.dtype = dtype;
    memory.release = dvti_pinned_release;
    memory.user = block;
    x = dvti_array_over(function, &memory, dvt_cpu());
    if (!x) {
        device->backend->pinned()->release(device, block->at);
        dvti_free(block);
    }
    return x;
}

DVT_API dvt_array *dvt_empty_pinned(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    static const char *const function = "dvt_empty_pinned";
    dvti_device *device;
    dvt_array *x;
    int64_t bytes;
    if (!dvti_nbytes(function, shape, dtype, &bytes))
        return NULL;
    device = dvti_device_begin(function, dvti_ctx(ctx));
    if (!device)
        return NULL;
    if (device->backend->pinned && bytes > 0) {
        x = dvti_pinned_array(function, device, shape, dtype, bytes);
        if (!x)
            dvti_device_end(device);
        return x;
    }
    dvti_device_end(device);
    return dvti_array_new(function, shape, dtype, dvt_cpu());
}
