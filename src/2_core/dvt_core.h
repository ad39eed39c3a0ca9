/* Arrays without arithmetic: objects and scopes, storages, views, contexts, copies. */
#ifndef DVTI_CORE_H
#define DVTI_CORE_H
#include "1_base/dvt_base.h"
#include "2_core/dvt_backend.h"

/* ---- objects: a counted header, and the scope that owns what a call returns ---- */
/* References are owners, and holds. Owners are scopes, other objects (a block owns its children),
   and users who called dvt_retain; these are counted apart, so that dvt_release knows whether the
   caller has something to give up. A hold keeps the object, but not what only an owner can ask it
   for: that is given up with the last owner. The tape holds what it remembers, so that an attached
   gradient whose own graph leads back to its array does not keep both alive. */
typedef struct dvti_object {
    dvti_atomic references; /* owners, and DVTI_HOLD for each hold */
    dvti_atomic retains;    /* those of the owners that dvt_retain made */
    dvti_atomic
        owned_at; /* 1 + its place in the stack of a thread's scopes; 0 when it is in none */
    void (*destroy)(void *object); /* frees everything, the object included */
    void (*abandon)(void *object); /* NULL, or gives up what only owners can reach */
} dvti_object;

/* One owner more, and one fewer, where an object owns another: dvt_retain and dvt_release are for
   users. NULL is fine. */
DVTI_FN void *dvti_own(void *object);
DVTI_FN void dvti_disown(void *object);

/* What dvti_disown does, but for the last step: the caller has to destroy the object, or to abandon
   and then unhold it. */
typedef enum dvti_last { DVTI_NOT_LAST, DVTI_LAST_DESTROYS, DVTI_LAST_ABANDONS } dvti_last;

DVTI_FN dvti_last dvti_disown_step(dvti_object *object);
#define DVTI_HOLD ((int64_t)1 << 32)
DVTI_FN void dvti_hold(void *object);
DVTI_FN void dvti_unhold(void *object);
/* dvti_own for callers that have a hold: false when there is no owner any more. */
DVTI_FN bool dvti_retain_owned(void *object);

/* Counts 1 and gives that to the innermost scope. false (nothing changed, HOST_MEMORY set):
   exhausted; the caller frees. */
DVTI_FN bool dvti_object_begin(void *object, void (*destroy)(void *), const char *function);
/* The same without a scope: the caller holds the one reference. */
DVTI_FN void dvti_object_begin_unowned(void *object, void (*destroy)(void *));
/* This thread's end will release what its scopes own, and give back what it keeps and counts in.
   Any number of times. */
DVTI_FN void dvti_scopes_at_end(void);
/* Objects with that destroy function that end with this thread's outermost scope, and not before.
   */
DVTI_FN int64_t dvti_scope_outermost(void (*destroy)(void *));
/* Takes back a reference that the innermost scope holds (for results that are stored away): after
   it the caller holds it. */
DVTI_FN void dvti_scope_take(void *object);
/* Gives a reference that the caller holds to the innermost scope. false (the caller still holds
   it): exhausted. */
DVTI_FN bool dvti_scope_give(void *object);

/* ---- dtypes and shapes ---- */
DVTI_FN bool dvti_dtype_ok(dvt_dtype dtype);
/* The class an elementwise operation on this dtype computes in. */
DVTI_FN dvti_class dvti_class_of(dvt_dtype dtype);
DVTI_FN uint16_t dvti_f32_to_f16(float x);
DVTI_FN float dvti_f16_to_f32(uint16_t x);
DVTI_FN uint16_t dvti_f32_to_bf16(float x);
DVTI_FN float dvti_bf16_to_f32(uint16_t x);
DVTI_FN uint16_t dvti_f64_to_f16(double x);  /* rounds once */
DVTI_FN uint16_t dvti_f64_to_bf16(double x); /* rounds once */
/* The range of an integer dtype. */
DVTI_FN int64_t dvti_int_lowest(dvt_dtype dtype);
DVTI_FN int64_t dvti_int_largest(dvt_dtype dtype);
/* The nearest value of a floating dtype, and the largest one below. */
DVTI_FN double dvti_round_as(dvt_dtype dtype, double x);
DVTI_FN double dvti_below(dvt_dtype dtype, double x);
/* Bytes of a shape; false with SHAPE set when an extent is negative, ndim is not 0..8, or the size
   overflows. */
DVTI_FN bool dvti_nbytes(const char *function, dvt_shape shape, dvt_dtype dtype, int64_t *bytes);
DVTI_FN void dvti_strides_c(dvt_shape shape, int64_t *stride);
DVTI_FN bool dvti_has_elements(const dvt_shape *shape);
/* The product of n extents: 0 when one of them is 0; INT64_MAX when it does not fit, which the
   extents of an array that has elements never do. */
DVTI_FN int64_t dvti_extents(const int64_t *dim, int n);
DVTI_FN bool dvti_same_shape(const dvt_shape *a, const dvt_shape *b);
/* The common shape; false when there is none. */
DVTI_FN bool dvti_broadcasts(const dvt_shape *a, const dvt_shape *b, dvt_shape *out);
/* The same; false with SHAPE set, naming both. */
DVTI_FN bool dvti_broadcast(const char *function, const dvt_shape *a, const dvt_shape *b,
                            dvt_shape *out);
/* -ndim <= *axis < ndim made non-negative; false with AXIS set. */
DVTI_FN bool dvti_axis(const char *function, int *axis, const dvt_shape *shape);
/* The same of an axis that the shape is to have in addition. */
DVTI_FN bool dvti_new_axis(const char *function, int *axis, const dvt_shape *shape);

/* ---- storage: one buffer on one context ---- */
typedef struct dvti_storage {
    dvti_atomic references;
    dvti_device *device;
    dvt_ctx ctx; /* cpu(1) and cpu(0) share a device, not a context */
    void *data;
    int64_t bytes;
    dvti_atomic version; /* counts writes after creation, for the tape */
} dvti_storage;

/* A recorded operation (4_ops/dvt_op.h) begins with this: all that 2_core knows of one. */
struct dvti_node;

typedef struct dvti_node_head {
    void (*release)(struct dvti_node *node); /* gives up one reference */
} dvti_node_head;

/* The first who counts `site` up from NONE writes file and line, then makes it KNOWN; who comes too
   late may count it further. */
#define DVTI_SITE_NONE 0
#define DVTI_SITE_KNOWN ((int64_t)1 << 32)

/* What an attached gradient holds of a network that is trained on several contexts; bits, and none
   of them: zeros. A sum must not be summed again. */
#define DVTI_GRAD_OWN 1u /* what backward found on this array's context */
#define DVTI_GRAD_SUM 2u /* what a trainer found on all contexts */

struct dvt_array {
    dvti_object object;
    dvti_storage *storage;
    int64_t offset; /* elements */
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_dtype dtype;
    bool broadcast;         /* several positions share an element: not for writing */
    struct dvti_node *node; /* what computed it, when recorded (4_ops/dvt_tape.h) */
    dvt_array *grad;        /* attached gradient, owned */
    dvt_grad_req grad_req;
    bool attached;
    bool grad_fresh;     /* backward has written grad since the trainer last looked */
    unsigned grad_holds; /* DVTI_GRAD_... */
    bool grad_sums;      /* while it is fresh, another backward adds to it (see dvt_param.sums) */
    dvti_atomic site;    /* DVTI_SITE_...: several threads may note a place at once */
    const char *file;    /* where the creating call stands, when known */
    int line;
};

/* New memory of that shape, values not set, owned by the innermost scope. NULL with the error
   set. */
DVTI_FN dvt_array *dvti_array_new(const char *function, dvt_shape shape, dvt_dtype dtype,
                                  dvt_ctx ctx);
/* The same for a shape that lies somewhere; only the extents that it has are read. */
DVTI_FN dvt_array *dvti_array_shaped(const char *function, const dvt_shape *shape, dvt_dtype dtype,
                                     dvt_ctx ctx);
/* Another window on x's memory. */
DVTI_FN dvt_array *dvti_view_new(const char *function, dvt_array *x, dvt_shape shape,
                                 const int64_t *stride, int64_t offset);
DVTI_FN dvti_view dvti_view_of(const dvt_array *x);
/* x repeated to `shape` by strides of 0. x must broadcast to it. */
DVTI_FN dvti_view dvti_view_broadcast(const dvt_array *x, dvt_shape shape);
/* dvti_view_of, but for axes that x does not have, and dvti_view_broadcast, written where they are
   wanted. */
DVTI_FN void dvti_view_into(dvti_view *view, const dvt_array *x);
DVTI_FN void dvti_view_broadcast_into(dvti_view *view, const dvt_array *x, const dvt_shape *shape);
/* "float32 (2, 3) on gpu(0) made at main.c:42": for messages. */
DVTI_FN const char *dvti_describe(const dvt_array *x);
/* " for an array of shape (2, 3), float32," while this thread takes memory for one, else "": a part
   of the messages of `acquire`. */
DVTI_FN const char *dvti_wanted_text(void);
/* For dvti_set_memory_advice: names this thread's arrays when they are suspiciously many. */
DVTI_FN void dvti_memory_advice_write(char *buffer, size_t size);
/* dvti_fail_memory with that part. */
DVTI_FN dvt_status dvti_fail_array_memory(const char *function, int64_t bytes);
DVTI_FN const char *dvti_site_text(const dvt_array *x);

/* ---- contexts ---- */
/* DVT_DEVICE_DEFAULT becomes the default context. */
DVTI_FN dvt_ctx dvti_ctx(dvt_ctx ctx);
/* Returns whether the context's arrays are in main memory, where their bytes may be read once they
   are ready. Says nothing about kernels: ask dvti_supports what a device can do. */
DVTI_FN bool dvti_is_main_memory(dvt_ctx ctx);
/* The style that dvt_set_print_style has chosen; DVT_PRINT_DEFAULT: none. */
DVTI_FN dvt_print_style dvti_print_style_chosen(void);
/* The device, opened at its first use, and not closed before the matching dvti_device_end; NULL
   with the error set (NO_DEVICE, HOST_MEMORY). */
DVTI_FN dvti_device *dvti_device_begin(const char *function, dvt_ctx ctx);
DVTI_FN void dvti_device_end(dvti_device *device);
DVTI_FN bool dvti_device_exists(const char *function, dvt_ctx ctx);
/* Whether gpu(i) exists, without opening it: which device of which kind it is; the open device
   (then the caller ends it with dvti_device_end) or NULL; and the bytes that it may hold, 0 for no
   limit. */
DVTI_FN bool dvti_device_look(dvt_ctx ctx, dvti_device **open, const dvti_backend_kind **kind,
                              int *index, int64_t *limit);

/* ---- work ---- */
/* Plans the launch, gets its workspace, and puts it into the device's queue. All views must be on
   `device`. */
DVTI_FN dvt_status dvti_run(dvti_device *device, dvti_launch *launch);
/* Whether the device's backend can do this: see dvti_feature. */
DVTI_FN bool dvti_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                           dvt_dtype dtype, dvti_feature feature);
/* Forms the product of two small matrices in the call: dvti_backend.multiply_small. False, and
   nothing done: launch it. */
DVTI_FN bool dvti_multiply_small(dvti_device *device, const dvti_kernel *kernel,
                                 const dvti_matrices *product);
/* The public call that stands there made this thread's latest launches. */
DVTI_FN void dvti_note_launches(const char *file, int line);
/* dvt_allow_tf32, as it is now. */
DVTI_FN bool dvti_tf32_allowed(void);
DVTI_FN bool dvti_winograd_allowed(void);
/* A launch without arrays: everything is 0 but kernel, op and name. The views and the plan are not
   set: whoever counts a view sets it, as far as its axes go. */
DVTI_FN void dvti_launch_begin(dvti_launch *launch, const char *name, const dvti_kernel *kernel,
                               dvti_op op);
/* Elements of src into dst: any dtype, strides, contexts; same shape. The only way between
   contexts. Does not record. */
DVTI_FN dvt_status dvti_copy_elements(const char *function, dvt_array *dst, dvt_array *src);
/* Sums over devices (see dvti_backend); at most DVT_MAX_GPUS different ones. */
DVTI_FN bool dvti_can_all_reduce(dvti_device *const *device, int n);
DVTI_FN dvt_status dvti_all_reduce(const char *function, dvti_device *const *device, int n,
                                   const dvti_reduce_part *part, int n_parts);
/* Elements of x's dtype in C order from host memory into x, on any context. Does not record. */
DVTI_FN dvt_status dvti_write_host(const char *function, dvt_array *x, const void *src);
/* Reads all elements in C order, converted to `dtype`, into host memory. Waits. An implicit read
   (see dvt_transfer_guard). */
DVTI_FN dvt_status dvti_read(const char *function, dvt_array *x, dvt_dtype dtype, void *dst);
DVTI_FN dvt_status dvti_check_guard(const char *function, const dvt_array *x);

/* ---- counters ---- */
typedef struct dvti_counters {
    dvti_atomic to_device_count, to_device_bytes, to_host_count, to_host_bytes, between_count,
        between_bytes;
    dvti_atomic waits, implicit_reads;
} dvti_counters;

DVTI_FN dvti_counters *dvti_stats(void);

/* What every operation counts, so often that atomic additions would be a tenth of a small one: each
   thread has numbers of its own. */
typedef enum dvti_counted {
    DVTI_COUNT_STORAGES,
    DVTI_COUNT_SHARERS, /* arrays beyond the first of each storage */
    DVTI_COUNT_KERNELS,
    DVTI_COUNTS
} dvti_counted;

DVTI_FN void dvti_count(dvti_counted what, int64_t n);
/* This thread's numbers go to the next thread, which counts on from there. */
DVTI_FN void dvti_count_end(void);
/* The sum over all threads. */
DVTI_FN int64_t dvti_counted_all(dvti_counted what);

#endif
