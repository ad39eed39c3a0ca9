/* Arrays without arithmetic: objects and scopes, storages, views, contexts, copies. */
#ifndef DVTI_CORE_H
#define DVTI_CORE_H
#include "1_base/dvt_base.h"
#include "2_core/dvt_backend.h"

/* ---- objects: a header with reference counts; scopes own the objects that calls return ---- */
/* A reference is an owner or a hold. Owners are scopes, other objects (a block owns its children),
   and users who called dvt_retain. Retains are counted separately, so that dvt_release can detect
   one too many.
   A hold keeps the object allocated, but not its parts that only owners can access. Those are
   released with the last owner. The tape holds the arrays that it recorded. So an attached
   gradient, whose own graph leads back to its array, does not keep both alive. */
typedef struct dvti_object {
    dvti_atomic references; /* owners, and DVTI_HOLD for each hold */
    dvti_atomic retains;    /* owners by dvt_retain */
    dvti_atomic
        owned_at; /* 1 + its place in the stack of a thread's scopes; 0 when it is in none */
    void (*destroy)(void *object); /* frees everything, the object included */
    void (*abandon)(void *object); /* NULL, or gives up what only owners can reach */
} dvti_object;

/* Add and remove an owner, where an object owns another. dvt_retain and dvt_release are for users.
   NULL is allowed. */
DVTI_FN void *dvti_own(void *object);
DVTI_FN void dvti_disown(void *object);

/* Performs dvti_disown except for the last step: the caller has to destroy the object, or to
   abandon and then unhold it. */
typedef enum dvti_last { DVTI_NOT_LAST, DVTI_LAST_DESTROYS, DVTI_LAST_ABANDONS } dvti_last;

DVTI_FN dvti_last dvti_disown_step(dvti_object *object);
#define DVTI_HOLD ((int64_t)1 << 32)
DVTI_FN void dvti_hold(void *object);
DVTI_FN void dvti_unhold(void *object);
/* Adds an owner for a caller that has a hold. Returns false if the object has no owner any more. */
DVTI_FN bool dvti_retain_owned(void *object);

/* Initializes the header with one reference, which the innermost scope owns. false: memory is
   exhausted (HOST_MEMORY set), nothing changed; the caller frees the object. */
DVTI_FN bool dvti_object_begin(void *object, void (*destroy)(void *), const char *function);
/* Does the same without a scope: the caller owns the reference. */
DVTI_FN void dvti_object_begin_unowned(void *object, void (*destroy)(void *));
/* Registers the end of this thread, which releases its scopes, caches and counters. May be called
   any number of times. */
DVTI_FN void dvti_scopes_at_end(void);
/* Counts the objects with that destroy function that belong to this thread's outermost scope. */
DVTI_FN int64_t dvti_scope_outermost(void (*destroy)(void *));
/* Takes a reference from the innermost scope, for results that are stored: then the caller owns
   it. */
DVTI_FN void dvti_scope_take(void *object);
/* Gives a reference of the caller to the innermost scope. false: memory is exhausted, and the
   caller still owns it. */
DVTI_FN bool dvti_scope_give(void *object);

/* ---- dtypes and shapes ---- */
DVTI_FN bool dvti_dtype_ok(dvt_dtype dtype);
/* Returns the class in which elementwise operations on this dtype compute. */
DVTI_FN dvti_class dvti_class_of(dvt_dtype dtype);
DVTI_FN uint16_t dvti_f32_to_f16(float x);
DVTI_FN float dvti_f16_to_f32(uint16_t x);
DVTI_FN uint16_t dvti_f32_to_bf16(float x);
DVTI_FN float dvti_bf16_to_f32(uint16_t x);
DVTI_FN uint16_t dvti_f64_to_f16(double x);  /* rounds once */
DVTI_FN uint16_t dvti_f64_to_bf16(double x); /* rounds once */
/* Return the smallest and the largest value of an integer dtype. */
DVTI_FN int64_t dvti_int_lowest(dvt_dtype dtype);
DVTI_FN int64_t dvti_int_largest(dvt_dtype dtype);
/* Return the nearest value of a floating dtype, and the largest one below. */
DVTI_FN double dvti_round_as(dvt_dtype dtype, double x);
DVTI_FN double dvti_below(dvt_dtype dtype, double x);
/* Computes the bytes of a shape. Returns false with SHAPE set if an extent is negative, ndim is not
   0..8, or the size overflows. */
DVTI_FN bool dvti_nbytes(const char *function, dvt_shape shape, dvt_dtype dtype, int64_t *bytes);
DVTI_FN void dvti_strides_c(dvt_shape shape, int64_t *stride);
DVTI_FN bool dvti_has_elements(const dvt_shape *shape);
/* Returns the product of n extents: 0 if one of them is 0, INT64_MAX if it does not fit. The
   extents of a non-empty array always fit. */
DVTI_FN int64_t dvti_extents(const int64_t *dim, int n);
DVTI_FN bool dvti_same_shape(const dvt_shape *a, const dvt_shape *b);
/* Computes the common shape; returns false if there is none. */
DVTI_FN bool dvti_broadcasts(const dvt_shape *a, const dvt_shape *b, dvt_shape *out);
/* Does the same; returns false with SHAPE set, naming both shapes. */
DVTI_FN bool dvti_broadcast(const char *function, const dvt_shape *a, const dvt_shape *b,
                            dvt_shape *out);
/* Checks -ndim <= *axis < ndim of x and makes it non-negative; returns false with AXIS set. */
DVTI_FN bool dvti_axis(const char *function, int *axis, const dvt_array *x);
/* Does the same for an axis that will be added to x. */
DVTI_FN bool dvti_new_axis(const char *function, int *axis, const dvt_array *x);

/* ---- storage: one buffer on one context ---- */
typedef struct dvti_storage {
    dvti_atomic references;
    dvti_device *device;
    dvt_ctx ctx; /* cpu(1) and cpu(0) share a device, not a context */
    void *data;
    int64_t bytes;
    dvti_atomic version; /* counts writes after creation, for the tape */
    dvti_atomic shown;   /* 1: the caller has the address, so `data` may not change */
    /* Returns borrowed memory to its owner; NULL for memory of the device. Borrowed memory is never
       reused, and not counted as used by the device. */
    void (*release)(void *user);
    void *user;
} dvti_storage;

/* Initializes a storage on memory of the device, except `data`: one reference. */
static inline void dvti_storage_begin(dvti_storage *storage, dvti_device *device, dvt_ctx ctx,
                                      int64_t bytes) {
    storage->references = 1;
    storage->device = device;
    storage->ctx = ctx;
    storage->bytes = bytes;
    storage->version = 0;
    storage->shown = 0;
    storage->release = NULL;
    storage->user = NULL;
}

/* Adds a reference, and drops one. The last one frees the storage with its memory, or returns
   borrowed memory after the queued work that may use it. */
DVTI_FN void dvti_storage_own(dvti_storage *storage);
DVTI_FN void dvti_storage_release(dvti_storage *storage);

/* Returns whether both have bytes in common. Two different storages can only if one is borrowed. */
static inline bool dvti_storages_meet(const dvti_storage *a, const dvti_storage *b) {
    uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return a == b || ((a->release || b->release) && x < y + (uintptr_t)b->bytes &&
                      y < x + (uintptr_t)a->bytes);
}

/* Memory of the caller with the layout of an array. */
typedef struct dvti_memory {
    void *data; /* the element whose indices are 0; may be NULL without elements */
    dvt_shape shape;
    const int64_t *stride; /* in elements; NULL: C order */
    dvt_dtype dtype;
    void (*release)(void *user); /* NULL: nothing has to be done */
    void *user;
} dvti_memory;

/* The head of a recorded operation (4_ops/dvt_op.h); 2_core uses nothing else of it. */
struct dvti_node;

typedef struct dvti_node_head {
    void (*release)(struct dvti_node *node); /* drops one reference */
} dvti_node_head;

/* The first thread that increments `site` from NONE writes file and line, then sets it to KNOWN.
   Later threads may increment it further. */
#define DVTI_SITE_NONE 0
#define DVTI_SITE_KNOWN ((int64_t)1 << 32)

/* Contents of an attached gradient of a network that is trained on several contexts: bits; 0 means
   zeros. A sum must not be summed again. */
#define DVTI_GRAD_OWN 1u /* the result of backward on this array's context */
#define DVTI_GRAD_SUM 2u /* a trainer's sum over all contexts */

struct dvt_array {
    dvti_object object;
    dvti_storage *storage;
    int64_t offset; /* elements */
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_dtype dtype;
    bool broadcast;         /* several positions share an element: not for writing */
    struct dvti_node *node; /* the operation that computed it, if recorded (4_ops/dvt_tape.h) */
    dvt_array *grad;        /* attached gradient, owned */
    dvt_grad_req grad_req;
    bool attached;
    bool grad_fresh;     /* backward has written grad since the trainer last looked */
    unsigned grad_holds; /* DVTI_GRAD_... */
    bool grad_sums;      /* while it is fresh, another backward adds to it (see dvt_param.sums) */
    dvti_atomic site;    /* DVTI_SITE_...: several threads may note a place at once */
    const char *file;    /* location of the creating call, if known */
    int line;
};

/* Allocates an array whose values are not set, owned by the innermost scope. Returns NULL with the
   error set. */
DVTI_FN dvt_array *dvti_array_new(const char *function, dvt_shape shape, dvt_dtype dtype,
                                  dvt_ctx ctx);
/* Does the same for a shape in memory, of which only the first ndim extents are read. */
DVTI_FN dvt_array *dvti_array_shaped(const char *function, const dvt_shape *shape, dvt_dtype dtype,
                                     dvt_ctx ctx);
/* Creates an array on a storage. Takes over the caller's reference to it, also on failure. Sets
   `broadcast` to false. */
DVTI_FN dvt_array *dvti_array_on(const char *function, dvti_storage *storage,
                                 const dvt_shape *shape, const int64_t *stride, int64_t offset,
                                 dvt_dtype dtype);
/* Creates an array on memory of the caller, without a copy (dvt_borrow.c). On failure `release` is
   not called. */
DVTI_FN dvt_array *dvti_array_over(const char *function, const dvti_memory *memory, dvt_ctx ctx);
/* Creates a view of x's memory. */
DVTI_FN dvt_array *dvti_view_new(const char *function, dvt_array *x, dvt_shape shape,
                                 const int64_t *stride, int64_t offset);
DVTI_FN dvti_view dvti_view_of(const dvt_array *x);
/* Writes dvti_view_of to *view, without axes that x does not have. */
DVTI_FN void dvti_view_into(dvti_view *view, const dvt_array *x);
/* Does the same with x repeated to `shape` by strides of 0. x must broadcast to it. */
DVTI_FN void dvti_view_broadcast_into(dvti_view *view, const dvt_array *x, const dvt_shape *shape);
/* Returns "float32 (2, 3) on gpu(0) made at main.c:42", for messages. */
DVTI_FN const char *dvti_describe(const dvt_array *x);
/* Returns " for an array of shape (2, 3), float32," while this thread allocates one, else "".
   Messages of `acquire` contain it. */
DVTI_FN const char *dvti_wanted_text(void);
/* Advises on memory failures (see dvti_set_memory_advice) if this thread has suspiciously many
   arrays. */
DVTI_FN void dvti_memory_advice_write(char *buffer, size_t size);
/* Fails as dvti_fail_memory does, and names the array. */
DVTI_FN dvt_status dvti_fail_array_memory(const char *function, int64_t bytes);
DVTI_FN const char *dvti_site_text(const dvt_array *x);

/* ---- contexts ---- */
/* Replaces DVT_DEVICE_DEFAULT by the default context. */
DVTI_FN dvt_ctx dvti_ctx(dvt_ctx ctx);
/* Returns whether the context's arrays are in host memory, where their bytes can be read once they
   are ready. Says nothing about kernels: dvti_supports returns what a device can do. */
DVTI_FN bool dvti_is_host_memory(dvt_ctx ctx);
/* Returns the style of dvt_set_print_style; DVT_PRINT_DEFAULT: none. */
DVTI_FN dvt_print_style dvti_print_style_chosen(void);
/* Returns the device, which the first use opens. It is not closed before the matching
   dvti_device_end. Returns NULL with the error set (NO_DEVICE, HOST_MEMORY). */
DVTI_FN dvti_device *dvti_device_begin(const char *function, dvt_ctx ctx);
DVTI_FN void dvti_device_end(dvti_device *device);
DVTI_FN bool dvti_device_exists(const char *function, dvt_ctx ctx);
/* Returns whether gpu(i) exists, without opening it. Finds its kind and index, and the bytes that
   it may hold (0: no limit). *open is the open device, which the caller ends with dvti_device_end,
   or NULL. */
DVTI_FN bool dvti_device_look(dvt_ctx ctx, dvti_device **open, const dvti_backend_kind **kind,
                              int *index, int64_t *limit);

/* ---- arrays without memory (dvt_meta.c) ---- */
/* What a thread has set for meta(0). Zeros: the device does not exist for it. */
typedef struct dvti_meta_state {
    dvti_device *model; /* the device whose place it takes; the caller keeps it in use */
    bool read;          /* a value was asked for */
} dvti_meta_state;

static inline bool dvti_is_meta(const dvti_device *device) {
    return device->ctx.type == DVT_DEVICE_META;
}

/* Does dvti_device_begin for a context of type DVT_DEVICE_META. */
DVTI_FN dvti_device *dvti_meta_begin(const char *function, dvt_ctx ctx);
/* Returns whether x has values. Sets VALUE otherwise. */
DVTI_FN bool dvti_has_values(const char *function, const dvt_array *x);
#if !defined(DEVTENSOR_NO_NN)
/* Sets VALUE for a call that gives parameters values or contexts while shapes are inferred. */
DVTI_FN dvt_status dvti_fail_inferring(const char *function);
/* Sets this thread's state and returns the previous one. */
DVTI_FN dvti_meta_state dvti_meta_swap(dvti_meta_state state);
#endif

/* ---- work ---- */
/* Plans the launch, allocates its workspace, and queues it. All views must be on `device`. */
DVTI_FN dvt_status dvti_run(dvti_device *device, dvti_launch *launch);
/* Returns whether the device's backend supports this: see dvti_feature. */
DVTI_FN bool dvti_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                           dvt_dtype dtype, dvti_feature feature);
/* Computes the product of two small matrices in the call: dvti_backend.multiply_small. false:
   nothing is done; launch it. */
DVTI_FN bool dvti_multiply_small(dvti_device *device, const dvti_kernel *kernel,
                                 const dvti_matrices *product);
/* Records the location of the public call that made this thread's latest launches. */
DVTI_FN void dvti_note_launches(const char *file, int line);
/* Requests that location of a device which has only copied or waited. */
DVTI_FN void dvti_note_later(dvti_device *device);
/* Return the settings of dvt_allow_tf32, dvt_allow_tf32x3 and dvt_allow_winograd. */
DVTI_FN bool dvti_tf32_allowed(void);
DVTI_FN bool dvti_tf32x3_allowed(void);
DVTI_FN bool dvti_winograd_allowed(void);
/* Returns the multiply-adds of a matrix product, a convolution or its gradients; 0 for other
   operations. */
DVTI_FN double dvti_multiply_adds(const dvti_launch *launch);
/* Initializes a launch without arrays: all is 0 but kernel, op and name. Views and plan are not
   set. Code that increments n_in or n_out sets the view, as far as its axes go. */
DVTI_FN void dvti_launch_begin(dvti_launch *launch, const char *name, const dvti_kernel *kernel,
                               dvti_op op);
/* Copies elements of src to dst: any dtype, strides and contexts; same shape. The only way between
   contexts. Does not record. */
DVTI_FN dvt_status dvti_copy_elements(const char *function, dvt_array *dst, dvt_array *src);
/* Sum over devices (see dvti_backend), at most DVT_MAX_GPUS different ones. */
DVTI_FN bool dvti_can_all_reduce(dvti_device *const *device, int n);
DVTI_FN dvt_status dvti_all_reduce(const char *function, dvti_device *const *device, int n,
                                   const dvti_reduce_part *part, int n_parts);
/* Copies elements of x's dtype in C order from host memory to x, on any context. Does not
   record. */
DVTI_FN dvt_status dvti_write_host(const char *function, dvt_array *x, const void *src);
/* Copies of contiguous arrays to host memory that the caller polls (dvt_fetch.c). */
typedef struct dvti_fetch dvti_fetch;
/* Makes a fetch of up to `bytes` bytes. NULL with the error set. */
DVTI_FN dvti_fetch *dvti_fetch_new(const char *function, dvt_ctx ctx, int64_t bytes);
/* Queues the copy. x must stay, and no one may write it, until it is done. */
DVTI_FN dvt_status dvti_fetch_start(const char *function, dvti_fetch *f, dvt_array *x);
/* Returns whether the bytes have arrived. Changes *status only on errors. */
DVTI_FN bool dvti_fetch_done(dvti_fetch *f, bool wait, dvt_status *status);
/* Returns the memory, which stays the same. */
DVTI_FN char *dvti_fetch_bytes(const dvti_fetch *f);
/* Ends the use of a device that may be closed, after the copy; the bytes stay. */
DVTI_FN void dvti_fetch_leave(dvti_fetch *f);
/* Frees it after a copy in progress. NULL: does nothing. */
DVTI_FN void dvti_fetch_end(dvti_fetch *f);
/* Reads all elements in C order, converted to `dtype`, into host memory. Waits. Counts as an
   implicit read (see dvt_transfer_guard). */
DVTI_FN dvt_status dvti_read(const char *function, dvt_array *x, dvt_dtype dtype, void *dst);
DVTI_FN dvt_status dvti_check_guard(const char *function, const dvt_array *x);

/* ---- page-locked arrays of cpu(), which a GPU may still be reading (dvt_pinned.c) ---- */
DVTI_FN bool dvti_is_pinned(const dvti_storage *storage);
/* Waits until the memory may be written. Does nothing for other storages. */
DVTI_FN void dvti_pinned_settle(const dvti_storage *storage);
/* Returns whether any memory is being read: one relaxed load. */
DVTI_FN bool dvti_pinned_busy(void);
/* Waits until a launch on cpu() may write its results. */
DVTI_FN void dvti_pinned_settle_launch(const dvti_launch *launch);
/* Uploads from page-locked memory. */
DVTI_FN dvt_status dvti_pinned_upload(dvti_device *to, void *dst, const dvti_storage *from,
                                      const void *src, int64_t bytes);

/* ---- events: what threads and devices do, for traces and summaries (dvt_event.c) ---- */
typedef enum dvti_event_kind {
    DVTI_EVENT_LAUNCH,  /* this thread started a kernel; on cpu() it is done */
    DVTI_EVENT_RUN,     /* the queue of ctx ran a kernel or a copy */
    DVTI_EVENT_COPY,    /* this thread copied from `from` to ctx, or queued the copy */
    DVTI_EVENT_WAIT,    /* this thread waited for ctx */
    DVTI_EVENT_COMPILE, /* this thread compiled a kernel */
    DVTI_EVENT_RANGE,   /* a range of this thread has ended (dvt_range_pop) */
    DVTI_EVENT_NOTE     /* the public call of this thread at name:line has ended */
} dvti_event_kind;

typedef struct dvti_event {
    dvti_event_kind kind;
    int line;
    const char *name;          /* the function, or the file of NOTE */
    dvt_ctx ctx, from;         /* of a copy among all GPUs: gpu(-1) */
    const dvti_launch *launch; /* LAUNCH; NULL: a small product */
    const dvti_matrices *product;
    int64_t bytes, number; /* LAUNCH and RUN of one kernel have the same number, from 1 */
    double begin, end;     /* dvti_now() */
} dvti_event;

/* Receives events. May be called by several threads at a time; sets no error. */
typedef void (*dvti_event_fn)(void *user, const dvti_event *event);

typedef struct dvti_listener {
    dvti_event_fn hear; /* NULL: none */
    void *user;
} dvti_listener;

/* Set the listener of all threads, and that of this thread, which returns the previous one. */
DVTI_FN void dvti_listen_all(dvti_event_fn hear);
DVTI_FN dvti_listener dvti_listen_here(dvti_listener listener);
/* Returns whether there may be a listener: one relaxed load. */
DVTI_FN bool dvti_listened(void);
/* Begins an event now. dvti_event_end ends it now, and all listeners receive it. */
DVTI_FN dvti_event dvti_event_begin(dvti_event_kind kind, const char *name, dvt_ctx ctx);
DVTI_FN void dvti_event_end(dvti_event *event);
/* Sends an event whose end is set. */
DVTI_FN void dvti_event_send(const dvti_event *event);
/* Waits for the work of `device` and sends the event. Also counts it, unless `device` is a CPU. */
DVTI_FN dvt_status dvti_wait_for(const char *function, dvti_device *device);
/* Waits until the queues of all open devices are empty. Takes no error of theirs. */
DVTI_FN void dvti_settle_all(void);

/* ---- counters ---- */
typedef struct dvti_counters {
    dvti_atomic to_device_count, to_device_bytes, to_host_count, to_host_bytes, between_count,
        between_bytes;
    dvti_atomic waits, implicit_reads;
} dvti_counters;

DVTI_FN dvti_counters *dvti_stats(void);

/* Counters of every operation. Atomic additions would take 10 % of a small operation, so each
   thread has numbers of its own. */
typedef enum dvti_counted {
    DVTI_COUNT_STORAGES,
    DVTI_COUNT_SHARERS, /* arrays beyond the first of each storage */
    DVTI_COUNT_KERNELS,
    DVTI_COUNTS
} dvti_counted;

DVTI_FN void dvti_count(dvti_counted what, int64_t n);
/* Passes this thread's numbers to the next thread, which continues from them. */
DVTI_FN void dvti_count_end(void);
/* Returns the sum over all threads. */
DVTI_FN int64_t dvti_counted_all(dvti_counted what);

#endif
