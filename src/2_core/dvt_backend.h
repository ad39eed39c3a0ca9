/* The interface between the library and its backends: cpu(), virtual GPUs, CUDA.
   docs/ADDING_A_BACKEND.md explains how to write a backend.

   A *device* has memory and one command queue. Work in a queue runs in order. `launch`, `copy` and
   `release` return at once and may run later; `wait` returns when all work queued so far is done.
   A backend that computes in the call, such as cpu(), is the special case of an empty queue.

   Memory is stream-ordered. `release` may be called while queued work still uses the block.
   `acquire` may return that block at once, because its next user follows in the same queue. The
   library orders work of different devices by waiting.

   Kernels never allocate: `plan` returns the bytes of workspace that a launch needs, and the
   library provides them. So an accepted launch cannot fail for lack of memory. Errors of queued
   work (a lost GPU, for example) are kept with the name of the operation. The next `wait` returns
   them, once.

   2_core knows no backend and no kernel by name. 3_kernels/dvt_kernels.c registers those of a build
   (dvti_built). */
#ifndef DVTI_BACKEND_H
#define DVTI_BACKEND_H
/* The op table numbers all operations, so it follows the tables of reductions and optimizers. */
#include "2_core/dvt_optimizer_table.h"
#include "2_core/dvt_reduce_table.h"
#include "2_core/dvt_op_table.h"
#include "2_core/dvt_reduce_scalar.h"

/* A strided view of a device's memory. */
typedef struct dvti_view {
    void *data; /* the first element, already offset */
    dvt_dtype dtype;
    int ndim;
    int64_t dim[DVT_MAX_DIMS], stride[DVT_MAX_DIMS]; /* strides in elements, may be 0 or negative */
} dvti_view;

/* One family of kernels: its name, and its functions on each backend (NULL: not available there).
   Each backend defines the type of its column. 3_kernels/dvt_kernels.h lists the kernels and their
   arguments. */
typedef struct dvti_kernel {
    const char *name;
    const struct dvti_cpu_kernel *cpu;   /* 3_cpu/dvt_cpu.h */
    const struct dvti_cuda_kernel *cuda; /* 3_cuda/dvt_cuda.h */
} dvti_kernel;

/* A capability that an operation queries before it prepares a launch. */
typedef enum dvti_feature {
    DVTI_CAN_RUN,        /* the operation, with a result of that dtype */
    DVTI_CAN_EPILOGUE,   /* the launch's epilogue, but for its mask */
    DVTI_CAN_MASK,       /* the epilogue's mask */
    DVTI_CAN_WIDEN,      /* matmul: factors of int8 and uint8, a result of int32 */
    DVTI_CAN_HOST_STATE, /* random: states in host memory, which change in the call */
    DVTI_CAN_MANY,       /* optimizer: the launch's updates */
    DVTI_CAN_SOURCE /* custom: compiles CUDA source; without it the call needs a host function */
} dvti_feature;

typedef enum dvti_class { DVTI_F32, DVTI_F64, DVTI_I64 } dvti_class;

/* The columns of the op table that are needed at run time. */
typedef struct dvti_op_row {
    uint8_t operands; /* 1 to 3; 0: not elementwise */
    uint8_t rule;     /* dvti_rule */
    uint8_t cost;     /* dvti_cost */
    uint16_t reads;   /* by the gradients: DVTI_READS_*, four bits for each input */
} dvti_op_row;

DVTI_FN const dvti_op_row *dvti_op_row_of(dvti_op op);

typedef enum dvti_activation { DVTI_NO_ACTIVATION, DVTI_RELU } dvti_activation;

/* Work of a launch after its product, with the bits of the separate operations: the bias is added,
   then the activation is applied. Only for kernels with DVTI_CAN_EPILOGUE; the mask is only for
   those with DVTI_CAN_MASK. */
typedef struct dvti_epilogue {
    dvti_activation activation;
    dvti_view bias;   /* of matmul: 1-d, a value for each column; data NULL: none */
    const void *mask; /* NULL, or like out[0], contiguous: the result is 0 where it is 0 */
} dvti_epilogue;

/* One array that an optimizer updates: contiguous arrays of n elements, and the numbers f of its
   step. See the kernel `optimizer` in 3_kernels/dvt_kernels.h. */
typedef struct dvti_update_of {
    void *w, *g, *state[3];
    int64_t n;
    double f[8];
} dvti_update_of;

/* Returns the row of a reduction (dvt_op_row.c); NULL for other operations. */
DVTI_FN const dvti_reduce_row *dvti_reduce_row_of(dvti_op op);
/* Return the initial value of a reduction, and its result from the joined terms of n elements. */
DVTI_FN double dvti_reduce_start_f64(dvti_op op);
DVTI_FN int64_t dvti_reduce_start_i64(dvti_op op);
DVTI_FN double dvti_reduce_finish_f64(dvti_op op, double s, double n);

#define DVTI_MAX_IN 4
#define DVTI_MAX_OUT 4
#define DVTI_PLAN_BYTES 640

/* Storage for the decisions of a kernel's plan function, which its run function reads. The largest
   plans are dvti_conv and dvti_reduce_plan (3_cpu). A launch does not clear it, which would slow
   down small operations. */
typedef union dvti_launch_plan {
    int64_t i;
    double f;
    void *p;
    unsigned char bytes[DVTI_PLAN_BYTES];
} dvti_launch_plan;

/* Checks at compile time that a plan type fits. */
#define DVTI_PLAN_FITS(T) typedef char T##_fits_plan[sizeof(T) <= DVTI_PLAN_BYTES ? 1 : -1];

/* A call of a kernel of the program (dvt_kernel). Texts are valid during the call, except `entry`,
   which is never freed. The rest may be copied. */
typedef struct dvti_custom {
    const char *source;            /* CUDA source, or the expression */
    const char *entry;             /* name of the function; NULL: an expression */
    uint64_t hash[2];              /* of the texts */
    const char *const *input;      /* expression: a name for each argument */
    dvt_kernel_host_fn host;       /* NULL: none */
    dvt_kernel_element_fn element; /* the same for an expression */
    void *user;
    dvt_kernel_call call;
    dvti_view view[DVT_KERNEL_ARGS]; /* of the arguments that are arrays; an expression's have the
                                        result's shape, by strides of 0 */
} dvti_custom;

/* Returns whether an argument is an array. */
static inline bool dvti_arg_is_array(dvt_arg_kind kind) {
    return kind >= DVT_ARG_IN && kind <= DVT_ARG_INOUT;
}

typedef struct dvti_launch {
    const dvti_kernel *kernel;
    dvti_op op;
    dvti_class compute;
    int n_in, n_out;
    double f[8];
    int64_t i[8];
    void *workspace; /* at least workspace_bytes, 64-byte aligned */
    int64_t workspace_bytes;
    bool spare;       /* set by a plan whose workspace only saves time */
    bool lean;        /* plan without such workspace */
    const char *name; /* "dvt_add": for errors and traces */
    int64_t number;   /* of its event (dvti_event); 0: none */
    dvti_epilogue epilogue;
    const dvti_update_of *updates; /* of an optimizer, valid during the call: see dvt_kernels.h */
    int64_t n_updates;
    const dvti_custom *custom;   /* of a kernel of the program, valid during the call */
    dvti_view in[DVTI_MAX_IN];   /* n_in of them are set, each as far as its axes go */
    dvti_view out[DVTI_MAX_OUT]; /* n_out of them */
    dvti_launch_plan plan;       /* the backend's own */
} dvti_launch;

/* Operands of a small product: c (n, m), in C order, = a (n, k) * b (k, m), all float32 or all
   float64. Distances count elements. Sizes and pointers alternate for the reason given at
   dvti_product (3_cpu). */
typedef struct dvti_matrices {
    dvt_dtype dtype;
    int64_t n;
    const void *a;
    int64_t a_row;
    const void *b;
    int64_t a_k;
    void *c;
    int64_t m, b_k, k, b_col;
} dvti_matrices;

typedef struct dvti_device dvti_device;

/* One device's array of an all-reduce. All have one dtype and size and are contiguous; each device
   has one. */
typedef struct dvti_reduce_part {
    dvt_dtype dtype;
    int64_t count;
    void *at[DVT_MAX_GPUS];
} dvti_reduce_part;

#define DVTI_PROCESS_KEY_BYTES 128

/* Sums over processes that each have a device of one backend, without copies to host memory. */
typedef struct dvti_process_sums {
    /* Writes the device's place in its machine. Returns false when it cannot take part. */
    bool (*identify)(dvti_device *device, char *id, int size);
    /* Writes the key of a new group, in one process. false: a message was logged. */
    bool (*name)(char key[DVTI_PROCESS_KEY_BYTES]);
    /* Joins a group, and waits for all n processes. NULL: a message was logged. */
    void *(*join)(dvti_device *device, const char key[DVTI_PROCESS_KEY_BYTES], int rank, int n);
    /* Starts sums of the arrays at[0] into at[1], which may be the same, behind the work queued so
       far. Later work does not wait for them. All processes get the same bits if they start the
       same sums in the same order. Nothing may write or release the arrays before the sums are
       done. *ticket, NULL before, names them; `forget` frees it. An error with a ticket: some may
       run, and `done` cannot tell their end; `leave` the group with `abort`. */
    dvt_status (*sum)(const char *function, dvti_device *device, void *group,
                      const dvti_reduce_part *part, int n_parts, void **ticket);
    /* Sets *done when the sums are complete, and *why when another process has failed. Work that is
       queued later may use the arrays. */
    dvt_status (*done)(const char *function, dvti_device *device, void *group, void *ticket,
                       bool *done, const char **why);
    void (*forget)(dvti_device *device, void *ticket);
    /* Frees the group. `abort`: without the other processes, in the middle of sums. No sum writes
       its arrays after that. */
    void (*leave)(dvti_device *device, void *group, bool abort);
} dvti_process_sums;

/* Points in a device's queue, for dvt_event. */
typedef struct dvti_marks {
    /* Makes a mark after all work queued so far. */
    dvt_status (*record)(dvti_device *device, const char *function, void **mark);
    /* Sets *done when the queue has come to the mark, for which `wait` waits. */
    dvt_status (*reached)(dvti_device *device, const char *function, void *mark, bool wait,
                          bool *done);
    /* Computes the time between two marks that the queue has come to. */
    dvt_status (*elapsed)(dvti_device *device, const char *function, void *begin, void *end,
                          double *milliseconds);
    void (*drop)(dvti_device *device, void *mark); /* never fails */
} dvti_marks;

/* Host memory that the device reads and writes by itself (dvt_pinned.c). */
typedef struct dvti_page_locked {
    dvt_status (*acquire)(dvti_device *device, const char *function, int64_t bytes, void **out);
    void (*release)(dvti_device *device, void *block); /* nothing reads it any more; never fails */
    /* upload: `src` may change when it returns, or when the new *mark is reached. */
    dvt_status (*upload)(dvti_device *device, void *dst, const void *src, int64_t bytes,
                         void **mark);
    dvt_status (*download)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    void (*settle)(dvti_device *device, void *mark); /* waits for a mark and drops it */
    void (*drop)(dvti_device *device, void *mark);
} dvti_page_locked;

/* Copies to host memory that the caller polls. */
typedef struct dvti_fetches {
    /* Makes a fetch of up to `bytes` bytes, and sets *at to the memory that receives them. NULL
       with the error set. */
    void *(*make)(dvti_device *device, const char *function, int64_t bytes, char **at);
    /* Queues a copy behind the work so far; later work does not wait for it. Nothing may write or
       release `src` before it is done. A fetch makes one copy at a time. */
    dvt_status (*start)(dvti_device *device, void *fetch, const void *src, int64_t bytes);
    /* Sets *done when the bytes have arrived. `wait`: waits for that. */
    dvt_status (*poll)(dvti_device *device, void *fetch, bool wait, bool *done);
    /* Frees the memory, after the copy. */
    void (*end)(dvti_device *device, void *fetch);
    /* Does so when the copy is done and the device may be closed. NULL: the memory is its own. */
    void (*end_alone)(void *fetch);
} dvti_fetches;

/* The functions of a device. All up to `wait` are required. A function that does not return DVT_OK
   has set the message by dvti_fail. */
typedef struct dvti_backend {
    const char *name;
    /* Allocates memory with an alignment of at least 64 bytes. `function` is the caller's name, for
       the message. `acquire` fails with HOST_MEMORY or DEVICE_MEMORY; `release` never fails. */
    dvt_status (*acquire)(dvti_device *device, const char *function, int64_t bytes, void **out);
    void (*release)(dvti_device *device, void *block, int64_t bytes);
    /* Copy bytes. upload: `src` may change when it returns. download: waits; `dst` is ready when it
       returns. copy_from: both on devices of this backend, ordered after the current work of both
       queues. */
    dvt_status (*upload)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*download)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*copy_from)(dvti_device *device, void *dst, dvti_device *from, const void *src,
                            int64_t bytes);
    /* Returns whether the kernel supports this operation and dtype. The answer never changes. */
    bool (*supports)(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                     dvt_dtype dtype, dvti_feature feature);
    /* Fills launch->plan, once, and returns the bytes of workspace that `launch` needs. Only the
       backend reads the plan. Later changes, such as of the number of threads, do not affect it. */
    int64_t (*plan)(dvti_device *device, dvti_launch *launch);
    /* Queues a copy of the launch, or runs this one before it returns. The backend may then still
       write to its plan. */
    dvt_status (*launch)(dvti_device *device, const dvti_launch *launch);
    dvt_status (*wait)(dvti_device *device);
    /* Records the call site of this thread's launches since its last call, for the message if one
       fails later. NULL: not needed. */
    void (*note)(dvti_device *device, const char *file, int line);
    /* Frees memory that is kept for reuse, and returns its bytes. NULL: none is kept. */
    int64_t (*trim)(dvti_device *device);
    void (*memory)(dvti_device *device, dvt_memory_stats *out);
    /* Sums the arrays over the n devices, in their order, into each of them, with the same bits
       everywhere. Ordered after the current work of their queues. can_all_reduce: the devices can
       access each other's memory. NULL: the library copies and adds. */
    bool (*can_all_reduce)(dvti_device *const *device, int n);
    dvt_status (*all_reduce)(const char *name, dvti_device *const *device, int n,
                             const dvti_reduce_part *part, int n_parts);
    /* Computes a small product in the call, with the bits of a launch of `kernel`, which is matmul.
       false: launch it. Preparing a launch takes 10 ns, 14 % of a 4 x 4 dvt_matmul (70 ns on a Zen
       5). Other operations do not need this. NULL: always launch. */
    bool (*multiply_small)(const dvti_kernel *kernel, const dvti_matrices *product);
    bool compiles; /* kernels are compiled at their first use, or by dvt_prewarm */
    /* Memory of the caller, which becomes an array without `acquire` and `release`. borrow: checks
       that the device can use it. NULL: it can use any host memory. settle: returns when the work
       queued so far no longer uses it. Reports no error, so that the next `wait` does, and never
       fails. NULL: no work is ever queued. */
    dvt_status (*borrow)(dvti_device *device, const char *function, const void *at, int64_t bytes);
    void (*settle)(dvti_device *device, const void *at, int64_t bytes);
    /* Sums over processes. NULL: through host memory. */
    const dvti_process_sums *(*process_sums)(void);
    const dvti_marks *(*marks)(void);        /* NULL: the queue is always empty */
    const dvti_page_locked *(*pinned)(void); /* NULL: all host memory is alike */
    /* Copies that are polled. NULL: downloads wait. */
    const dvti_fetches *(*fetches)(void);
} dvti_backend;

/* A kind of device in this build. Any thread may call any function at any time, but the library
   serializes open and close. */
typedef struct dvti_backend_kind {
    const char *name;
    dvt_device_type type; /* of its devices' contexts */
    bool simulates;       /* opens any number of devices, where no other kind has one */
    int (*count)(void);   /* devices of this machine; 0 when simulates */
    /* Returns why there are no devices; "" if there are, or if none are expected. */
    const char *(*reason)(void);
    /* Opens device number `index` of this kind: sets device->backend and device->impl. On entry
       only kind, ctx and limit of `device` are not zero. */
    dvt_status (*open)(dvti_device *device, int index);
    void (*close)(dvti_device *device);
    /* Fills name, memory and so on of device number `index`. `device` is the open device, or NULL;
       the call opens nothing. */
    void (*describe)(int index, const dvti_device *device, dvt_device_info *out);
    /* Adds to the first line of dvt_print_devices: ", CUDA driver: 12.4". NULL: adds nothing. */
    void (*version)(dvti_text *text);
    /* Adds a line below the table of dvt_print_devices. NULL: none. */
    void (*notes)(dvti_text *text);
    /* DVT_DL_CPU, DVT_DL_CUDA: the memory of its devices, for exchange by DLPack. 0: other
       libraries cannot use it. */
    int memory;
} dvti_backend_kind;

#define DVTI_MAX_KINDS 4

/* The backends of this build. Kinds of one type are in the order in which their devices are
   numbered. NULL ends the list. */
typedef struct dvti_build {
    const dvti_backend_kind *(*kind[DVTI_MAX_KINDS + 1])(void);
    const dvti_kernel *(*copy)(
        void); /* the kernel that copies and converts elements on a device (op copy) */
} dvti_build;

/* Returns the backends. The only function that 2_core calls but does not define:
   3_kernels/dvt_kernels.c does, or a test without backends. */
DVTI_FN const dvti_build *dvti_built(void);

/* The library's state of a device; `impl` belongs to the backend. */
struct dvti_device {
    const dvti_backend *backend;
    const dvti_backend_kind *kind;
    dvt_ctx ctx;
    void *impl;
    dvti_atomic limit; /* bytes; 0: none */
    dvti_atomic used;  /* bytes held now */
    dvti_atomic peak;
    dvti_atomic users; /* existing buffers, and calls that use the device now; unused for cpu() */
};

#endif
