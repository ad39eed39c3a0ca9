/* The directories of the CUDA backend and their interfaces to each other.

     driver/   finding libcuda and libnvrtc, and their functions
     device/   GPUs, memory, streams, copies: the state of one gpu(i)
     jit/      from a family and a variant to a loaded function: text, NVRTC, cache
     launch/   for each family of kernels: from a dvti_launch to grids and arguments
     kernels/  the CUDA source

   A *physical GPU* has a primary context. A gpu(i) is a queue with memory on a physical GPU.
   Usually there is one gpu(i) per physical GPU; with DEVTENSOR_VIRTUAL_GPUS several share one. All
   kernels of a gpu(i) run in its compute stream, in order. */
#ifndef DVTI_CUDA_H
#define DVTI_CUDA_H
#include "2_core/dvt_core.h"

/* Returns the CUDA kind of device. Under DEVTENSOR_NO_CUDA it has no devices. */
DVTI_FN const dvti_backend_kind *dvti_cuda_kind(void);

#if !defined(DEVTENSOR_NO_CUDA)
#include "3_cuda/driver/dvt_cuda_api.h"
#include "3_cuda/kernels/args.h"

typedef struct dvti_cuda_gpu dvti_cuda_gpu; /* device/dvt_cuda_device.h */

/* A kernel on CUDA: the column of its row in 3_kernels/dvt_kernels.h. */
typedef struct dvti_cuda_kernel {
    /* Fills launch->plan and returns the bytes of workspace. NULL: no plan, no workspace. */
    int64_t (*plan)(const dvti_cuda_gpu *gpu, dvti_launch *launch);
    /* Launches the kernel in the compute stream, with the GPU's context current. NULL: CUDA has no
       such kernel. */
    dvt_status (*run)(dvti_cuda_gpu *gpu, const dvti_launch *launch);
} dvti_cuda_kernel;

DVTI_FN const dvti_backend *dvti_cuda_backend(void);
/* Open and close gpu(i) on GPU `index` of the machine, and describe it (dvti_backend_kind). */
DVTI_FN dvt_status dvti_cuda_open(dvti_device *device, int index);
DVTI_FN void dvti_cuda_close(dvti_device *device);
DVTI_FN void dvti_cuda_describe(int index, const dvti_device *device, dvt_device_info *out);

/* ---- driver/ ---- */
DVTI_FN int dvti_cuda_count(void);
/* Returns why there is no GPU; "" if there is one. */
DVTI_FN const char *dvti_cuda_reason(void);
DVTI_FN int dvti_cuda_driver_version(void);
/* Returns the driver, opened at the first call. NULL if it cannot be used; dvti_cuda_reason says
   why. */
DVTI_FN const dvti_cuda_driver *dvti_cuda(void);
/* Returns whether this process was forked from the one that initialized CUDA. */
DVTI_FN bool dvti_cuda_forked(void);
/* Sets the error for a CUDA result: "dvt_add: cuLaunchKernel gave CUDA_ERROR_..: text". */
DVTI_FN dvt_status dvti_cuda_fail(const char *function, const char *call, dvti_cu_result result);
/* Returns NVRTC, opened at the first call. NULL with the error set. */
DVTI_FN const dvti_nvrtc *dvti_nvrtc_open(const char *function);
/* Searches for NVRTC once. On failure it returns false and writes the candidates to `why`. `driver`
   is the driver's version: it may refuse the code of a newer NVRTC. */
DVTI_FN bool dvti_nvrtc_find(int driver, char *why, size_t size);
/* Returns NVRTC's major version; 0 if there is none. */
DVTI_FN int dvti_nvrtc_major(void);
/* Returns the free bytes of a GPU without creating a context; -1 when unknown. */
DVTI_FN int64_t dvti_nvml_free(dvti_cu_device device);

/* ---- device/ ---- */
#define DVTI_CUDA_SLOTS 256

typedef struct dvti_cuda_physical {
    dvti_mutex lock; /* for opening, and for loading functions */
    bool open;
    int index;
    dvti_cu_device device;
    dvti_cu_context context;
    int cc;              /* compute capability, 90 for 9.0 */
    int processors;      /* streaming multiprocessors */
    int64_t memory;      /* bytes */
    bool lost, reported; /* an error has ended the context; a caller has received it */
    char reason[512];    /* the first such error */
    dvti_atomic loaded[DVTI_CUDA_SLOTS]; /* for each hash: the address of a loaded function */
} dvti_cuda_physical;

/* Makes the physical GPU's context current for this thread. dvti_cuda_leave restores the previous
   one. */
DVTI_FN dvti_cu_result dvti_cuda_enter(dvti_cuda_physical *physical, bool *pushed);
DVTI_FN void dvti_cuda_leave(bool pushed);
/* Returns the physical GPU, for geometry. */
DVTI_FN const dvti_cuda_physical *dvti_cuda_physical_of(const dvti_cuda_gpu *gpu);
DVTI_FN dvti_cuda_gpu *dvti_cuda_gpu_of(const dvti_device *device);

/* ---- jit/ ---- */
/* The families of kernels: file, whether the compiler may contract a * b + c to fused
   multiply-adds. */
#define DVTI_CUDA_FAMILY_TABLE(X)                                                                  \
    X(fill, false)                                                                                 \
    X(elementwise, false)                                                                          \
    X(reduce, false)                                                                               \
    X(softmax, false)                                                                              \
    X(layer_norm, false)                                                                           \
    X(batch_norm, false)                                                                           \
    X(scan, false)                                                                                 \
    X(matmul, true)                                                                                \
    X(matmul_mma, true)                                                                            \
    X(matmul_wgmma, true)                                                                          \
    X(conv, true)                                                                                  \
    X(conv_mma, true)                                                                              \
    X(pool, false)                                                                                 \
    X(index, false)                                                                                \
    X(sort, false)                                                                                 \
    X(order, false)                                                                                \
    X(random, false)                                                                               \
    X(optimizer, false)                                                                            \
    X(all_reduce, false)                                                                           \
    X(custom, true)
#define DVTI_CUDA_FAMILY_ENUM(name, fuse) DVTI_CUDA_FAMILY_##name,

typedef enum dvti_cuda_family {
    DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FAMILY_ENUM) DVTI_CUDA_FAMILY_COUNT
} dvti_cuda_family;

#undef DVTI_CUDA_FAMILY_ENUM

/* A program: a variant's definitions, followed by the family's file. The family packs the
   properties that it specializes on (dtypes, operation, layout) into `variant`. launch/ unpacks
   them into #define lines when the program is first built. */
typedef struct dvti_cuda_program {
    dvti_cuda_family family;
    uint64_t variant;
    /* Adds the variant's definitions and the family's file. No table names all families, so that a
       linker can drop those that a program does not use. */
    void (*write)(uint64_t variant, dvti_text *text);
    /* A kernel of the program: its whole source, needed until it is loaded, whose hash is `variant`
       and `more`. NULL and 0 for the library's own. */
    const char *source;
    uint64_t more;
} dvti_cuda_program;

#define DVTI_CUDA_DESCRIBE(name, fuse)                                                             \
    DVTI_FN void dvti_cuda_describe_##name(uint64_t variant, dvti_text *text);                     \
    DVTI_FN void dvti_cuda_write_##name(uint64_t variant, dvti_text *text);
DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_DESCRIBE)
#undef DVTI_CUDA_DESCRIBE

/* The program of a family with variant 0. */
static inline dvti_cuda_program dvti_cuda_program_of(dvti_cuda_family family,
                                                     void (*write)(uint64_t, dvti_text *)) {
    dvti_cuda_program program;
    program.family = family;
    program.variant = 0;
    program.write = write;
    program.source = NULL;
    program.more = 0;
    return program;
}

#define DVTI_CUDA_PROGRAM(name)                                                                    \
    dvti_cuda_program_of(DVTI_CUDA_FAMILY_##name, dvti_cuda_write_##name)

/* Returns whether the disk cache has any entry. Then NVRTC may not be needed. */
DVTI_FN bool dvti_cuda_cache_any(void);
/* Returns the source of a program, to be freed. NULL if memory is exhausted (no error set). */
DVTI_FN char *dvti_cuda_source(dvti_cuda_program program);
/* Returns the elementwise operation's expression from the op table, for floats or integers. NULL:
   none. */
DVTI_FN const char *dvti_cuda_op_text(dvti_op op, bool integer);
/* Returns the call of our own float32 function, and the files of 2_core/math that it needs. NULL if
   the op table's expression is used. */
DVTI_FN const char *dvti_cuda_function_text(dvti_op op, const char **files);
/* Adds the functions that the op table's expressions call. This function and the next two belong at
   the end of a variant's definitions. */
DVTI_FN void dvti_cuda_add_row_functions(dvti_text *text);
/* Adds the float functions in these files of 2_core/math, for example "exp.inl log.inl", which are
   called dvti_gpu_exp and so on. */
DVTI_FN void dvti_cuda_add_functions(dvti_text *text, const char *files);
/* Adds dvti_exp_below, for families that sum exponentials of this dtype. */
DVTI_FN void dvti_cuda_add_exp_below(dvti_text *text, dvt_dtype dtype);
/* Adds what both families of convolution share. */
DVTI_FN void dvti_cuda_add_conv_patch(dvti_text *text);
/* Adds what all families of matrix products share: jobs. */
DVTI_FN void dvti_cuda_add_matmul_jobs(dvti_text *text);
/* Adds what both families of matrix products on tensor cores share, with jobs. */
DVTI_FN void dvti_cuda_add_matmul_tiles(dvti_text *text);
DVTI_FN void dvti_cuda_add_matmul_pack(dvti_text *text);
/* Returns the function `entry` of the program on this GPU, if it is loaded. */
DVTI_FN bool dvti_cuda_loaded_function(dvti_cuda_physical *physical,
                                       const dvti_cuda_program *program, const char *entry,
                                       dvti_cu_function *out);
/* Returns whether this GPU can have a program of dvti_cuda_exact, of variant 0 to 511: it is
   loaded, or now loaded from a cache, or NVRTC can compile it, since 12.0. Looks for NVRTC only if
   the program is in no cache, or if the driver refuses it. Does not wait for compilations. */
DVTI_FN bool dvti_cuda_has_exact(dvti_cuda_physical *physical, const char *function,
                                 dvti_cuda_program program, const char *entry);
/* Compiles the program, or reads it from the disk cache. Takes seconds: hold no lock of a gpu(i),
   which other threads need to release memory. */
DVTI_FN dvt_status dvti_cuda_prepare(dvti_cuda_physical *physical, const char *function,
                                     dvti_cuda_program program);
/* Returns the function `entry` of the program on this GPU, loaded at first use. Compiles it unless
   it is prepared. */
DVTI_FN dvt_status dvti_cuda_function(dvti_cuda_physical *physical, const char *function,
                                      dvti_cuda_program program, const char *entry,
                                      dvti_cu_function *out);

/* ---- launch/ ---- */
typedef struct dvti_cuda_grid {
    int64_t x, y, z;
    int threads;
    int64_t shared; /* bytes of dynamic shared memory */
} dvti_cuda_grid;

/* Returns a one-dimensional grid for n > 0 elements, `each` per thread. Kernels loop over the
   elements beyond the grid. */
DVTI_FN dvti_cuda_grid dvti_cuda_grid_for(const dvti_cuda_gpu *gpu, int64_t n, int threads,
                                          int64_t each);
/* Returns the function on a locked gpu, which is unlocked meanwhile when it has to be compiled. */
DVTI_FN dvt_status dvti_cuda_find_function(dvti_cuda_gpu *gpu, const char *name,
                                           const dvti_cuda_program *program, const char *entry,
                                           dvti_cu_function *function);
/* Launches the kernel in the compute stream; `args` is the kernel's only argument. The gpu is
   locked, but not while the kernel is compiled, unless it is in a group of locked ones. */
DVTI_FN dvt_status dvti_cuda_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                   const dvti_cuda_program *program, const char *entry,
                                   dvti_cuda_grid grid, const void *args, size_t bytes);
/* Does the same for a function that is loaded. */
DVTI_FN dvt_status dvti_cuda_start_function(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                            dvti_cu_function function, dvti_cuda_grid grid,
                                            const void *args, size_t bytes);
/* Sets a contiguous result to 0 bytes in the compute stream. */
DVTI_FN dvt_status dvti_cuda_start_zeros(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_view *out);
DVTI_FN void dvti_cuda_view(dvti_kview *k, const dvti_view *view);
DVTI_FN int64_t dvti_cuda_view_size(const dvti_view *view);
/* Returns the divisor for a kernel. Beyond 2^31 - 1 its multiplier is 0, for programs with 64-bit
   positions. A value below 1 counts as 1. */
DVTI_FN dvti_kdivisor dvti_cuda_divisor(int64_t divisor);

/* A stable sort in a workspace of dvti_cuda_sort_bytes(n, bits) bytes. dvti_cuda_sort_begin divides
   it. Then the caller writes n keys of up to `bits` bits. dvti_cuda_sort sorts them by their lowest
   bits, and their values with them; the buffers change places. At first the values are 0, 1, 2..,
   and nothing has written them. The caller may write other keys and sort again. */
typedef struct dvti_cuda_sorting {
    void *keys, *values; /* of 64 bits if `wide`, else 32 */
    void *other_keys, *other_values, *counts;
    int64_t n;
    bool wide, sorted;
} dvti_cuda_sorting;

DVTI_FN int64_t dvti_cuda_sort_bytes(int64_t n, int bits);
DVTI_FN dvti_cuda_sorting dvti_cuda_sort_begin(void *workspace, int64_t n, int bits);
DVTI_FN dvt_status dvti_cuda_sort(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                  dvti_cuda_sorting *sorting, int bits);
/* Drops axes of extent 1, sorts the others by descending stride if `sorts`, and merges contiguous
   ones. At least one axis remains. `along` gets the same changes, so positions in both stay the
   same. */
DVTI_FN void dvti_cuda_simplify_axes(dvti_kview *view, dvti_kview *along, bool sorts);
DVTI_FN int64_t dvti_cuda_distance(int64_t stride); /* absolute value */
/* Returns the largest distance, in elements, between two elements of a window. */
DVTI_FN int64_t dvti_cuda_reach(const dvti_kview *view);
/* Returns the smallest power of two that is at least `least`. */
DVTI_FN int64_t dvti_cuda_power(int64_t least);
/* Sums dy and dy z over the rows of x (rows, n), for the gradients of layer norm's gamma and beta
   (launch/cuda_batch_norm.c). The first returns the bytes of workspace. */
DVTI_FN int64_t dvti_cuda_plan_row_sums(const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_row_sums(dvti_cuda_gpu *gpu, const dvti_launch *launch);
/* Adds the `parts` arrays of the result's size at the beginning of the workspace, in float64
   (launch/cuda_reduce.c). The first returns the bytes of workspace, with those of the arrays. */
DVTI_FN int64_t dvti_cuda_plan_part_sums(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         dvt_dtype dtype, int64_t parts);
DVTI_FN dvt_status dvti_cuda_part_sums(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvt_dtype dtype, int64_t parts);

/* ---- the CUDA column of the kernel table ---- */
/* The launch has at least one element of output. */
DVTI_FN dvt_status dvti_cuda_fill(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_elementwise(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_reduce(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_softmax(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_cross_entropy(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_layer_norm(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_batch_norm(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_order(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_scan(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_matmul(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_conv(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_pool(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_index(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_random(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_optimizer(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_custom(dvti_cuda_gpu *gpu, const dvti_launch *launch);
/* Fill launch->plan, once for each launch, and return the bytes of workspace. */
DVTI_FN int64_t dvti_cuda_plan_reduce(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_softmax(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_layer_norm(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_batch_norm(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_order(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_scan(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_matmul(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_conv(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_pool(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_index(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_random(const dvti_cuda_gpu *gpu, dvti_launch *launch);

#endif

#endif
