/* The CUDA backend's rooms and what they offer each other.

     driver/   finding libcuda and libnvrtc, and what they are asked for
     device/   cards, memory, streams, copies: what one gpu(i) is
     jit/      from a family and a variant to a function on a card: text, NVRTC, cache
     launch/   per family of kernels: from a dvti_launch to grids and arguments
     kernels/  the CUDA source itself

   A *card* is a physical device with its primary context; a gpu(i) is a queue with memory on a
   card. Usually they are one to one; with DEVTENSOR_VIRTUAL_GPUS several gpu(i) share a card. All
   kernels of a gpu(i) run on its compute stream, in order. */
#ifndef DVTI_CUDA_H
#define DVTI_CUDA_H
#include "3_cuda/dvt_cuda_kind.h"
#include "3_cuda/driver/dvt_cuda_api.h"
#include "3_cuda/kernels/args.h"

typedef struct dvti_cuda_gpu dvti_cuda_gpu; /* device/dvt_cuda_device.h */

/* A kernel on CUDA: its row's column in 3_kernels/dvt_kernels.h. */
typedef struct dvti_cuda_kernel {
    /* Fills launch->plan and returns the bytes of workspace; NULL: no plan, no workspace. */
    int64_t (*plan)(const dvti_cuda_gpu *gpu, dvti_launch *launch);
    /* Puts the kernel into the compute stream, with the GPU's context current. NULL: CUDA has no
       such kernel. */
    dvt_status (*run)(dvti_cuda_gpu *gpu, const dvti_launch *launch);
} dvti_cuda_kernel;

DVTI_FN const dvti_backend *dvti_cuda_backend(void);
/* Opens and closes gpu(i) on GPU `index` of the machine, and describes it (dvti_backend_kind). */
DVTI_FN dvt_status dvti_cuda_open(dvti_device *device, int index);
DVTI_FN void dvti_cuda_close(dvti_device *device);
DVTI_FN void dvti_cuda_describe(int index, const dvti_device *device, dvt_device_info *out);

/* ---- driver/ ---- */
DVTI_FN int dvti_cuda_count(void);
/* Says why there is no GPU; "" when there is. */
DVTI_FN const char *dvti_cuda_reason(void);
DVTI_FN int dvti_cuda_driver_version(void);
/* The driver, opened at the first call; NULL when it cannot be used, and dvti_cuda_reason says
   why. */
DVTI_FN const dvti_cuda_driver *dvti_cuda(void);
/* This process was forked from the one that initialized CUDA. */
DVTI_FN bool dvti_cuda_forked(void);
/* A CUDA result as a failure of `function`: "dvt_add: cuLaunchKernel gave CUDA_ERROR_..: text". */
DVTI_FN dvt_status dvti_cuda_fail(const char *function, const char *call, dvti_cu_result result);
/* NVRTC, opened at the first call; NULL with the error set. */
DVTI_FN const dvti_nvrtc *dvti_nvrtc_open(const char *function);

/* ---- device/ ---- */
typedef struct dvti_cuda_loaded dvti_cuda_loaded; /* jit/: a function on a card */

#define DVTI_CUDA_SLOTS 256

typedef struct dvti_cuda_physical {
    dvti_mutex lock; /* of opening, and of the functions */
    bool open;
    int index;
    dvti_cu_device device;
    dvti_cu_context context;
    int cc;              /* compute capability, 90 for 9.0 */
    int processors;      /* streaming multiprocessors */
    bool lost, reported; /* an error has ended the context, and a caller has heard of it */
    char reason[512];    /* the first such error */
    dvti_cuda_loaded *loaded;
    size_t n_loaded, loaded_capacity;
    int first[DVTI_CUDA_SLOTS]; /* of each hash: the place in `loaded` + 1; 0: none */
} dvti_cuda_physical;

/* Makes the card's context current for this thread. Pair with dvti_cuda_leave, which restores what
   was current before. */
DVTI_FN dvti_cu_result dvti_cuda_enter(dvti_cuda_physical *physical, bool *pushed);
DVTI_FN void dvti_cuda_leave(bool pushed);
/* For geometry: the card that computes. */
DVTI_FN const dvti_cuda_physical *dvti_cuda_physical_of(const dvti_cuda_gpu *gpu);
DVTI_FN dvti_cuda_gpu *dvti_cuda_gpu_of(const dvti_device *device);

/* ---- jit/ ---- */
/* The families of kernels: file, whether a * b + c may be fused where the text does not say so. */
#define DVTI_CUDA_FAMILY_TABLE(X)                                                                  \
    X(fill, false)                                                                                 \
    X(elementwise, false)                                                                          \
    X(reduce, false)                                                                               \
    X(softmax, false)                                                                              \
    X(scan, false)                                                                                 \
    X(matmul, true)                                                                                \
    X(matmul_mma, true)                                                                            \
    X(conv, true)                                                                                  \
    X(conv_mma, true)                                                                              \
    X(pool, false)                                                                                 \
    X(index, false)                                                                                \
    X(sort, false)                                                                                 \
    X(order, false)                                                                                \
    X(random, false)                                                                               \
    X(optimizer, false)                                                                            \
    X(all_reduce, false)
#define DVTI_CUDA_FAMILY_ENUM(name, fuse) DVTI_CUDA_FAMILY_##name,

typedef enum dvti_cuda_family {
    DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FAMILY_ENUM) DVTI_CUDA_FAMILY_COUNT
} dvti_cuda_family;

#undef DVTI_CUDA_FAMILY_ENUM

/* A program: the family's file under the definitions of a variant. The family packs what it
   specializes on (dtypes, operation, layout) into `variant`; launch/ unpacks it into #define lines
   when the program is built for the first time. */
typedef struct dvti_cuda_program {
    dvti_cuda_family family;
    uint64_t variant;
} dvti_cuda_program;

#define DVTI_CUDA_DESCRIBE(name, fuse)                                                             \
    DVTI_FN void dvti_cuda_describe_##name(uint64_t variant, dvti_text *text);
DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_DESCRIBE)
#undef DVTI_CUDA_DESCRIBE

/* The whole source of a program, to be freed; NULL when memory is exhausted (no error set). */
DVTI_FN char *dvti_cuda_source(dvti_cuda_program program);
/* The elementwise operation's text from the op table: floating, or integer. NULL: none. */
DVTI_FN const char *dvti_cuda_op_text(dvti_op op, bool integer);
/* In float32: the call of our own function, and the files of 2_core/math that it needs; NULL where
   the op table's text says all. */
DVTI_FN const char *dvti_cuda_function_text(dvti_op op, const char **files);
/* For the end of a variant's definitions. The functions that the op table's texts call. */
DVTI_FN void dvti_cuda_add_row_functions(dvti_text *text);
/* The functions of floats in these files of 2_core/math, "exp.inl log.inl", which are called
   dvti_gpu_exp and so on; or dvti_exp_below, for families that add exponentials of this dtype. */
DVTI_FN void dvti_cuda_add_functions(dvti_text *text, const char *files);
DVTI_FN void dvti_cuda_add_exp_below(dvti_text *text, dvt_dtype dtype);
/* The function `entry` of the program on this card, compiled and loaded at its first use. */
DVTI_FN dvt_status dvti_cuda_function(dvti_cuda_physical *physical, const char *function,
                                      dvti_cuda_program program, const char *entry,
                                      dvti_cu_function *out);

/* ---- launch/ ---- */
typedef struct dvti_cuda_grid {
    int64_t x, y, z;
    int threads;
    int64_t shared; /* bytes of dynamic shared memory */
} dvti_cuda_grid;

/* A one-dimensional grid for n > 0 elements, `each` of them per thread; kernels loop over what is
   left. */
DVTI_FN dvti_cuda_grid dvti_cuda_grid_for(const dvti_cuda_gpu *gpu, int64_t n, int threads,
                                          int64_t each);
/* Puts the kernel into the compute stream; `args` is the kernel's one argument. */
DVTI_FN dvt_status dvti_cuda_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                   dvti_cuda_program program, const char *entry,
                                   dvti_cuda_grid grid, const void *args, size_t bytes);
DVTI_FN dvti_kview dvti_cuda_view(const dvti_view *view);
DVTI_FN int64_t dvti_cuda_view_size(const dvti_view *view);
/* Beyond 2^31 - 1 the multiplier is 0: such a divisor is for 64-bit positions. Less than 1 counts
   as 1. */
DVTI_FN dvti_kdivisor dvti_cuda_divisor(int64_t divisor);

/* Sorting in a workspace of dvti_cuda_sort_bytes(n): keys and values stand at its beginning, n of
   each, and are sorted in place by the lowest `bits` of the keys; equal keys keep their order. */
DVTI_FN int64_t dvti_cuda_sort_bytes(int64_t n);
DVTI_FN dvt_status dvti_cuda_sort(dvti_cuda_gpu *gpu, const dvti_launch *launch, void *workspace,
                                  int64_t n, int bits);
/* Axes of extent 1 are left out, larger strides come first when `sorts`, and neighbors are merged;
   at least one axis is left. `along` goes through the same changes, so that positions in both stay
   the same. */
DVTI_FN void dvti_cuda_tidy_axes(dvti_kview *view, dvti_kview *along, bool sorts);
DVTI_FN int64_t dvti_cuda_distance(int64_t stride); /* without its sign */
/* The most elements between two of a window. */
DVTI_FN int64_t dvti_cuda_reach(const dvti_kview *view);
/* The smallest power of two of at least `least`. */
DVTI_FN int64_t dvti_cuda_power(int64_t least);

/* ---- the kernels' columns ---- */
/* The launch has at least one element of output. */
DVTI_FN dvt_status dvti_cuda_fill(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_elementwise(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_reduce(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_softmax(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_order(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_scan(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_matmul(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_conv(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_pool(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_index(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_random(dvti_cuda_gpu *gpu, const dvti_launch *launch);
DVTI_FN dvt_status dvti_cuda_optimizer(dvti_cuda_gpu *gpu, const dvti_launch *launch);
/* Fill launch->plan, once for each launch, and return the bytes of workspace. */
DVTI_FN int64_t dvti_cuda_plan_reduce(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_order(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_scan(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_matmul(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_conv(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_pool(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_index(const dvti_cuda_gpu *gpu, dvti_launch *launch);
DVTI_FN int64_t dvti_cuda_plan_random(const dvti_cuda_gpu *gpu, dvti_launch *launch);

#endif
