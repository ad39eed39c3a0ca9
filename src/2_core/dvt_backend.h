/* The contract between the library and whatever computes: cpu(), virtual GPUs, CUDA. How to write a
   backend: docs/ADDING_A_BACKEND.md.

   A *device* has memory and one command queue. Work in a queue runs in order. `launch`, `copy` and
   `release` return at once and may run later; `wait` returns when everything queued so far is done.
   A backend that computes in the call, such as cpu(), is the special case of an empty queue.

   Memory is stream-ordered. `release` may be called while queued work still uses the block, and
   `acquire` may return that block at once, because its next user stands behind in the same queue.
   The library orders work of different devices by waiting.

   Kernels never allocate: `plan` says how many bytes of workspace a launch needs, and the library
   provides them. So an accepted launch cannot fail for lack of memory. Errors of queued work (a GPU
   that falls off the bus) are kept with the name of the operation, and the next `wait` returns
   them, once.

   2_core knows no backend and no kernel by name. 3_kernels/dvt_kernels.c registers what a build has
   (dvti_built). */
#ifndef DVTI_BACKEND_H
#define DVTI_BACKEND_H
/* The tables of reductions and optimizers before the one that numbers all operations. */
#include "2_core/dvt_optimizer_table.h"
#include "2_core/dvt_reduce_table.h"
#include "2_core/dvt_op_table.h"
#include "2_core/dvt_reduce_scalar.h"

/* A strided window on a device's memory. */
typedef struct dvti_view {
    void *data; /* the first element, already offset */
    dvt_dtype dtype;
    int ndim;
    int64_t dim[DVT_MAX_DIMS], stride[DVT_MAX_DIMS]; /* strides in elements, may be 0 or negative */
} dvti_view;

/* One family of kernels: its name, and its functions on each backend that has it (NULL: the backend
   has not). A backend defines its column's type; 3_kernels/dvt_kernels.h lists the kernels and says
   what each one reads. */
typedef struct dvti_kernel {
    const char *name;
    const struct dvti_cpu_kernel *cpu;   /* 3_cpu/dvt_cpu.h */
    const struct dvti_cuda_kernel *cuda; /* 3_cuda/dvt_cuda.h */
} dvti_kernel;

/* What an operation may ask of a kernel before it prepares a launch. */
typedef enum dvti_feature {
    DVTI_CAN_RUN,       /* the operation, with a result of that dtype */
    DVTI_CAN_EPILOGUE,  /* the launch's epilogue */
    DVTI_CAN_WIDEN,     /* matmul: factors of int8 and uint8, a result of int32 */
    DVTI_CAN_HOST_STATE /* random: states in main memory, which change in the call */
} dvti_feature;

typedef enum dvti_class { DVTI_F32, DVTI_F64, DVTI_I64 } dvti_class;

/* The columns of the op table that code asks for by number. */
typedef struct dvti_op_row {
    uint8_t operands; /* 1 to 3; 0: not elementwise */
    uint8_t rule;     /* dvti_rule */
    uint8_t cost;     /* dvti_cost */
    uint16_t reads;   /* by the gradients: DVTI_READS_*, four bits for each input */
} dvti_op_row;

DVTI_FN const dvti_op_row *dvti_op_row_of(dvti_op op);

typedef enum dvti_activation { DVTI_NO_ACTIVATION, DVTI_RELU } dvti_activation;

/* What follows a product in its launch, with the bits of the separate operations: the bias is
   added, then the activation is applied. Only where the kernel has DVTI_CAN_EPILOGUE. */
typedef struct dvti_epilogue {
    dvti_activation activation;
    dvti_view bias; /* of matmul: 1-d, a value for each column; data NULL: none */
} dvti_epilogue;

/* The row of a reduction (dvt_reduce_row.c); NULL for other operations. */
DVTI_FN const dvti_reduce_row *dvti_reduce_row_of(dvti_op op);
/* The initial value of a reduction, and its result from the joined terms of n elements. */
DVTI_FN double dvti_reduce_start_f64(dvti_op op);
DVTI_FN int64_t dvti_reduce_start_i64(dvti_op op);
DVTI_FN double dvti_reduce_finish_f64(dvti_op op, double s, double n);

#define DVTI_MAX_IN 4
#define DVTI_MAX_OUT 4
#define DVTI_PLAN_BYTES 640

/* What a kernel's plan function decides for its run function. The largest are dvti_conv and
   dvti_reduce_plan (3_cpu). A launch does not clear it: a small operation would feel that. */
typedef union dvti_launch_plan {
    int64_t i;
    double f;
    void *p;
    unsigned char bytes[DVTI_PLAN_BYTES];
} dvti_launch_plan;

/* A type of plan is small enough. */
#define DVTI_PLAN_FITS(T) typedef char T##_fits_plan[sizeof(T) <= DVTI_PLAN_BYTES ? 1 : -1];

typedef struct dvti_launch {
    const dvti_kernel *kernel;
    dvti_op op;
    dvti_class compute;
    int n_in, n_out;
    double f[8];
    int64_t i[8];
    void *workspace; /* at least workspace_bytes, 64-byte aligned */
    int64_t workspace_bytes;
    const char *name; /* "dvt_add": for errors and traces */
    dvti_epilogue epilogue;
    dvti_view in[DVTI_MAX_IN];   /* n_in of them are set, each as far as its axes go */
    dvti_view out[DVTI_MAX_OUT]; /* n_out of them */
    dvti_launch_plan plan;       /* the backend's own */
} dvti_launch;

/* c (n, m), in C order, = a (n, k) * b (k, m), all float32 or all float64. Distances count
   elements. Sizes and pointers alternate for the reason that dvti_product (3_cpu) gives. */
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

/* An array of an all-reduce: of one dtype and size, contiguous, once on each device. */
typedef struct dvti_reduce_part {
    dvt_dtype dtype;
    int64_t count;
    void *at[DVT_MAX_GPUS];
} dvti_reduce_part;

/* The functions of a device. Every function up to `wait` is required. Statuses other than DVT_OK
   come with dvti_fail's message. */
typedef struct dvti_backend {
    const char *name;
    /* Memory, at least 64-byte aligned. `acquire` (function: the caller's name, for the message)
       fails with HOST_MEMORY or DEVICE_MEMORY; `release` never fails. */
    dvt_status (*acquire)(dvti_device *device, const char *function, int64_t bytes, void **out);
    void (*release)(dvti_device *device, void *block, int64_t bytes);
    /* Copy plain bytes. upload: `src` may change as soon as it returns. download: waits; `dst` is
       ready when it returns. copy_from: both on devices of this backend, in order after what either
       queue holds now. */
    dvt_status (*upload)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*download)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*copy_from)(dvti_device *device, void *dst, dvti_device *from, const void *src,
                            int64_t bytes);
    /* Says whether the kernel can do this for the operation and dtype. Depends on nothing that
       changes. */
    bool (*supports)(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                     dvt_dtype dtype, dvti_feature feature);
    /* Decides how the launch is run, once: fills launch->plan, which nobody else reads, and returns
       the bytes of workspace that `launch` will need. What changes later, such as the number of
       threads, does not change the launch. */
    int64_t (*plan)(dvti_device *device, dvti_launch *launch);
    /* Puts the launch into the queue: a copy of it, or this one if it runs in the call. Then the
       backend may still write to its plan. */
    dvt_status (*launch)(dvti_device *device, const dvti_launch *launch);
    dvt_status (*wait)(dvti_device *device);
    /* Remembers where this thread's launches since its last call stand, for the message when one
       fails later. NULL: not wanted. */
    void (*note)(dvti_device *device, const char *file, int line);
    /* Gives back memory that is kept for later, and returns its bytes. NULL: none is ever kept. */
    int64_t (*trim)(dvti_device *device);
    void (*memory)(dvti_device *device, dvt_memory_stats *out);
    /* Makes every array the sum over the n devices, formed in their order, with the same bits on
       all of them; in order after what their queues hold now. can_all_reduce: the devices reach
       each other's memory. NULL: the library copies and adds. */
    bool (*can_all_reduce)(dvti_device *const *device, int n);
    dvt_status (*all_reduce)(const char *name, dvti_device *const *device, int n,
                             const dvti_reduce_part *part, int n_parts);
    /* Forms a small product in the call, with the bits of a launch of `kernel`, which is matmul;
       false: launch it. Preparing a launch takes 10 ns, 14 % of a dvt_matmul of 4 x 4 (70 ns on a
       Zen 5): too much for this one operation. NULL: always launch. */
    bool (*multiply_small)(const dvti_kernel *kernel, const dvti_matrices *product);
    bool compiles; /* kernels are compiled at their first use, which dvt_prewarm does ahead */
} dvti_backend;

/* A kind of device that a build has. All functions may be called at any time, by any thread, except
   that the library serializes open and close. */
typedef struct dvti_backend_kind {
    const char *name;
    dvt_device_type type; /* of the contexts that its devices serve */
    bool simulates;       /* opens any number of devices, where no other kind has one */
    int (*count)(void);   /* devices of this machine; 0 when simulates */
    /* Says why there are none; "" when there are, or when nobody expects any. */
    const char *(*reason)(void);
    /* Opens device number `index` of this kind: sets device->backend and device->impl. `device` is
       zero but for kind, ctx and limit. */
    dvt_status (*open)(dvti_device *device, int index);
    void (*close)(dvti_device *device);
    /* Name, memory and so on of device number `index`; `device` is the open device on it, or NULL:
       asking opens nothing. */
    void (*describe)(int index, const dvti_device *device, dvt_device_info *out);
    /* Adds to the first line of dvt_print_devices: ", CUDA driver: 12.4". NULL: nothing to say. */
    void (*version)(dvti_text *text);
} dvti_backend_kind;

#define DVTI_MAX_KINDS 4

/* What this build has. Kinds of one type stand in the order in which their devices are numbered;
   behind the last one NULL. */
typedef struct dvti_build {
    const dvti_backend_kind *(*kind[DVTI_MAX_KINDS + 1])(void);
    const dvti_kernel *(*copy)(
        void); /* the kernel that copies and converts elements on a device (op copy) */
} dvti_build;

/* The only function that 2_core calls and does not have: 3_kernels/dvt_kernels.c defines it, or a
   test that needs no backend. */
DVTI_FN const dvti_build *dvti_built(void);

/* What the library keeps per device; `impl` is the backend's. */
struct dvti_device {
    const dvti_backend *backend;
    const dvti_backend_kind *kind;
    dvt_ctx ctx;
    void *impl;
    dvti_atomic limit; /* bytes; 0: none */
    dvti_atomic used;  /* bytes held now */
    dvti_atomic peak;
    dvti_atomic users; /* buffers alive, and calls that look at the device now; not of cpu() */
};

#endif
