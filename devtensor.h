/* GENERATED from src/ by tools/amalgamate.py: do not edit. Edit src/, then run `make header`. */
/* SPDX-License-Identifier: MIT OR Unlicense */
/* ==== begin src/devtensor_spine.h ==== */
#ifdef DEVTENSOR_LINES
#line 2 "src/devtensor_spine.h"
#endif
#ifndef DEVTENSOR_H
#define DEVTENSOR_H
/* ==== begin src/0_api/dvt_api.h ==== */
/* The public declarations, in reading order. */
#ifdef DEVTENSOR_LINES
#line 1 "src/0_api/dvt_api.h"
#endif
#ifndef DVT_API_H
#define DVT_API_H
/* ==== begin src/0_api/dvt_intro.h ==== */
/* devtensor: NumPy-like arrays on cpu() and gpu(i), gradients, small networks and training, in one file.

   Quick start. In one C or C++ file:

       #define DEVTENSOR_IMPLEMENTATION
       #include "devtensor.h"
       int main(void) {
           dvt_ctx dev = dvt_try_gpu(0);
           dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dev);
           dvt_print(dvt_exp(dvt_add_scalar(x, 2)));
           return dvt_error_code() != DVT_OK;
       }

   and in every other file the include alone. Compile with: cc app.c -lm -ldl -lpthread

   What it does not do: move data by itself between contexts; abort; print behind your back (the logger's warnings
   and errors can be silenced); download anything; depend on more than libc, threads and dlopen; sparse or complex
   arrays; more than 8 dimensions.

   Contents, to search for: [dvt:config] switches - [dvt:status] errors, logging, allocator - [dvt:types] dtypes, shapes -
   [dvt:scope] who owns what - [dvt:context] devices - [dvt:array] arrays and copies - [dvt:ops] arithmetic -
   [dvt:random] - [dvt:autograd] - [dvt:io] printing and files - [dvt:nn] networks - [dvt:train] training, data.

   Threads. Any thread may call any function. Different arrays may be used at the same time; one array may be read by many
   threads at once, and written by one while no other uses it. Errors, scopes, the default context, recording and train
   mode belong to the calling thread. Nothing may be called from a signal handler. */
/* The implementation needs POSIX, which a strict -std=c99 hides unless asked for before the first system header. */
#ifdef DEVTENSOR_LINES
#line 27 "src/0_api/dvt_intro.h"
#endif
#if (defined(DEVTENSOR_IMPLEMENTATION) || defined(DEVTENSOR_STATIC) || defined(DVTI_FN)) &&        \
    !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* ==== end src/0_api/dvt_intro.h ==== */
#ifdef DEVTENSOR_LINES
#line 4 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_config.h ==== */
/* [dvt:config] Every switch, one line each. Define a switch before including devtensor.h; the ones
   that change the implementation must be the same for all includers of one implementation.

   DEVTENSOR_IMPLEMENTATION   in exactly one translation unit: compile the library itself there
   DEVTENSOR_STATIC           a private copy: every function is static (implies the implementation)
   DEVTENSOR_NO_THREADS       one thread only: no pool, no device queues, no loader workers
   DEVTENSOR_NO_CUDA          leave out the CUDA driver; virtual GPUs stay
   DEVTENSOR_NO_FILES         leave out everything that opens a file
   DEVTENSOR_NO_NN            leave out blocks, losses, data loading and training
   DEVTENSOR_NO_CALL_SITES    do not remember the file and line at which arrays were made
   DEVTENSOR_NO_STDERR        no default logger: nothing is ever printed unless a logger is set
   DEVTENSOR_LINES            compiler messages and debuggers name the files of src/, not this one

   Environment, read once at first use:
   DEVTENSOR_VIRTUAL_GPUS     number of virtual GPUs (0 to 16)
   DEVTENSOR_VIRTUAL_GPU_MEMORY  bytes of memory of each, with an optional suffix K, M or G
   DEVTENSOR_NUM_THREADS      threads of cpu(), 1 to 256
   DEVTENSOR_SYNC             1: wait after every operation, so that errors appear at the call
   DEVTENSOR_LOG              lowest level written by the default logger: debug, info, warning,
   error, off */

#ifdef DEVTENSOR_LINES
#line 21 "src/0_api/dvt_config.h"
#endif
#define DVT_VERSION_MAJOR 0
#define DVT_VERSION_MINOR 1
#define DVT_VERSION_PATCH 0
#define DVT_VERSION (DVT_VERSION_MAJOR * 10000 + DVT_VERSION_MINOR * 100 + DVT_VERSION_PATCH)
#define DVT_VERSION_STRING "0.1.0"

#if defined(DEVTENSOR_STATIC) && !defined(DEVTENSOR_IMPLEMENTATION)
#define DEVTENSOR_IMPLEMENTATION
#endif

/* DVT_API stands before every public function. */
#ifndef DVT_API
#if defined(DEVTENSOR_STATIC) && (defined(__GNUC__) || defined(__clang__))
#define DVT_API static __attribute__((__unused__))
#elif defined(DEVTENSOR_STATIC)
#define DVT_API static
#elif defined(__cplusplus)
#define DVT_API extern "C"
#else
#define DVT_API extern
#endif
#endif

/* Scope guards run on every way out (break, return, goto) where the compiler can do that. */
#if defined(__GNUC__) || defined(__clang__)
#define DVT_CLEANUP(function) __attribute__((__cleanup__(function)))
#define DVT_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define DVT_CLEANUP(function)
#define DVT_PRINTF(text, first)
#endif
/* ==== end src/0_api/dvt_config.h ==== */
#ifdef DEVTENSOR_LINES
#line 5 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_status.h ==== */
/* [dvt:status] Errors. A call that fails returns NULL, false or a status, never aborts, and leaves
   its arguments as they were. NULL arrays pass through every operation, so a chain of calls can be
   checked once at its end. The first failure of a thread is kept with a code and a sentence until
   dvt_clear_error. */

/* One row per status: name, number, meaning, usual fix. Ranges: 1xx environment, 2xx your
   arguments, 3xx not in this build, 4xx not on this device, 9xx a bug of ours. */
#ifdef DEVTENSOR_LINES
#line 7 "src/0_api/dvt_status.h"
#endif
#define DVT_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "no error", "")                                                                       \
    X(HOST_MEMORY, 101, "main memory is exhausted", "free arrays, or work in smaller pieces")      \
    X(DEVICE_MEMORY, 102, "the memory of a device is exhausted",                                   \
      "free arrays on that device, use a smaller batch, or another device")                        \
    X(IO, 103, "a file could not be opened, read or written",                                      \
      "check the path and its permissions")                                                        \
    X(FORMAT, 104, "a file's content is not what its format allows",                               \
      "fetch or write the file again")                                                             \
    X(ENVIRONMENT, 105, "an environment variable has a value that cannot be used",                 \
      "correct or unset it")                                                                       \
    X(THREAD, 106, "a thread could not be started", "raise the limit of threads of this process")  \
    X(NULL_ARGUMENT, 201, "a required argument is NULL", "check the call that made it")            \
    X(SHAPE, 202, "shapes do not fit the operation", "reshape, slice or broadcast the arguments")  \
    X(DTYPE, 203, "dtypes do not fit the operation", "convert with dvt_astype")                    \
    X(AXIS, 204, "an axis is out of range or repeated", "use -ndim <= axis < ndim, each once")     \
    X(RANGE, 205, "an index, count or value is out of range", "see the message for the bounds")    \
    X(CONTEXT, 206, "arguments live on different contexts", "copy one with dvt_as_in_ctx")         \
    X(VALUE, 207, "an argument's value cannot be used", "see the message")                         \
    X(GRAD, 208, "automatic differentiation cannot do this here",                                  \
      "compute inside DVT_RECORD after dvt_attach_grad")                                           \
    X(UNINITIALIZED, 209, "a parameter has no values yet",                                         \
      "call dvt_initialize, and run one batch when shapes are deferred")                           \
    X(STALE_GRAD, 210, "a gradient was not renewed since the last step",                           \
      "run backward on every context, or allow stale gradients")                                   \
    X(NAME, 211, "a name is unknown, missing or used twice",                                       \
      "see the message for the known names")                                                       \
    X(NOT_BUILT, 301, "left out of this build", "compile without the DEVTENSOR_NO_... switch")     \
    X(NO_DEVICE, 401, "the device does not exist",                                                 \
      "use dvt_try_gpu, or dvt_num_gpus to ask first")                                             \
    X(DEVICE_LOST, 402, "an earlier operation on the device failed", "see the first error")        \
    X(UNSUPPORTED, 403, "the device cannot do this", "copy to another context")                    \
    X(FORKED, 404, "the process was forked after a device was used",                               \
      "use devices only in the child, or only in the parent")                                      \
    X(INTERNAL, 901, "a bug in devtensor", "please report it with the message")

#define DVT_STATUS_ENUM_ROW(name, number, meaning, fix) DVT_ERR_##name = number,

typedef enum dvt_status { DVT_STATUS_TABLE(DVT_STATUS_ENUM_ROW) DVT_STATUS_LAST = 999 } dvt_status;

#undef DVT_STATUS_ENUM_ROW
#define DVT_OK DVT_ERR_OK

/* The code of this thread's first failure since dvt_clear_error; DVT_OK when there was none. */
DVT_API dvt_status dvt_error_code(void);
/* Its sentence: function, what was given, what was expected, what to do; "" when there was none.
   Owns: the library; valid until this thread's next dvt_clear_error. */
DVT_API const char *dvt_error(void);
/* Where the failing call stands, "main.c:42", when it is known; "" otherwise. */
DVT_API const char *dvt_error_site(void);
/* Forgets this thread's failure. Failures that follow are kept again. */
DVT_API void dvt_clear_error(void);
/* "DVT_ERR_SHAPE", its meaning, and the usual fix. Never NULL. */
DVT_API const char *dvt_status_name(dvt_status status);
DVT_API const char *dvt_status_meaning(dvt_status status);
DVT_API const char *dvt_status_fix(dvt_status status);

typedef enum dvt_log_level {
    DVT_LOG_DEBUG,
    DVT_LOG_INFO,
    DVT_LOG_WARNING,
    DVT_LOG_ERROR,
    DVT_LOG_OFF
} dvt_log_level;

typedef void (*dvt_log_fn)(void *user, dvt_log_level level, const char *message);
/* Replaces the logger of the process; NULL silences it. The default one writes warnings and errors
   to stderr. The function may be called from any thread and must not call devtensor. */
DVT_API void dvt_set_logger(dvt_log_fn function, void *user);
/* The default logger writes messages of this level and above (DVT_LOG_WARNING unless changed). */
DVT_API void dvt_set_log_level(dvt_log_level level);

/* Host memory comes from here. `resize` and `alloc` return NULL on failure; memory must be aligned
   as malloc's is. Set it before any other call of the library, or while no object of it exists. */
typedef struct dvt_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void *(*resize)(void *user, void *block, size_t bytes);
    void (*release)(void *user, void *block);
    void *user;
} dvt_allocator;

/* NULL restores malloc, realloc and free. */
DVT_API void dvt_set_allocator(const dvt_allocator *allocator);

/* "0.1.0", and DVT_VERSION of the implementation that is linked. */
DVT_API const char *dvt_version(void);
DVT_API int dvt_version_number(void);
/* ==== end src/0_api/dvt_status.h ==== */
#ifdef DEVTENSOR_LINES
#line 6 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_types.h ==== */
/* [dvt:types] dtypes, shapes, axes, contexts: small values, passed by value. */

#ifdef DEVTENSOR_LINES
#line 2 "src/0_api/dvt_types.h"
#endif
#define DVT_MAX_DIMS 8
#define DVT_MAX_GPUS 16
#define DVT_MAX_CONTEXTS 32

/* float32 is the default: the zero of this enum. */
typedef enum dvt_dtype {
    DVT_F32,
    DVT_F64,
    DVT_F16,
    DVT_BF16,
    DVT_I8,
    DVT_U8,
    DVT_I32,
    DVT_I64,
    DVT_BOOL
} dvt_dtype;

#define DVT_DTYPE_COUNT 9

/* "float32", "bfloat16", "bool"; "?" for a number that is no dtype. */
DVT_API const char *dvt_dtype_name(dvt_dtype dtype);
/* Finds a dtype by that name. Errors: NAME. */
DVT_API dvt_status dvt_dtype_parse(const char *name, dvt_dtype *out);
/* Bytes of one element; 0 for a number that is no dtype. */
DVT_API int64_t dvt_dtype_size(dvt_dtype dtype);
DVT_API bool dvt_dtype_is_float(dvt_dtype dtype);
DVT_API bool dvt_dtype_is_int(dvt_dtype dtype);
/* The dtype of a result computed from two: the array API standard's table; an integer (or bool)
   with a float gives that float, float16 with bfloat16 gives float32. */
DVT_API dvt_dtype dvt_promote(dvt_dtype a, dvt_dtype b);

/* Extents, outermost first. ndim 0 is a scalar; an extent of 0 makes an empty array. */
typedef struct dvt_shape {
    int ndim;
    int64_t dim[DVT_MAX_DIMS];
} dvt_shape;

/* Axes of a reduction, negative ones count from the end. n == 0, the zero value, means all axes. */
typedef struct dvt_axes {
    int n;
    int axis[DVT_MAX_DIMS];
} dvt_axes;

/* What DVT_SHAPE and DVT_AXES below call: the first n of the numbers. */
DVT_API dvt_shape dvt_shape_make(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3,
                                 int64_t d4, int64_t d5, int64_t d6, int64_t d7);
DVT_API dvt_axes dvt_axes_make(int n, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
                               int a7);
/* The same number of axes, and the same extents. */
DVT_API bool dvt_shape_equal(dvt_shape a, dvt_shape b);
/* The product of the extents; -1 when it does not fit in an int64_t or an extent is negative. */
DVT_API int64_t dvt_shape_size(dvt_shape shape);

#define DVT_COUNT(...)                                                                             \
    DVT_ARG17(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define DVT_ARG17(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, ...) q
#define DVT_FIRST8(a, b, c, d, e, f, g, h, ...) a, b, c, d, e, f, g, h
/* DVT_SHAPE(2, 3): one to eight extents. DVT_SCALAR: no extents. */
#define DVT_SHAPE(...)                                                                             \
    dvt_shape_make(DVT_COUNT(__VA_ARGS__),                                                         \
                   DVT_EXPAND(DVT_FIRST8(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
#define DVT_SCALAR dvt_shape_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
/* DVT_AXES(0, -1); DVT_ALL: every axis. */
#define DVT_AXES(...)                                                                              \
    dvt_axes_make(DVT_COUNT(__VA_ARGS__),                                                          \
                  DVT_EXPAND(DVT_FIRST8(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
#define DVT_ALL dvt_axes_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
#define DVT_EXPAND(...) __VA_ARGS__

typedef enum dvt_device_type {
    DVT_DEVICE_DEFAULT = 0, /* "the current default context": the zero value */
    DVT_DEVICE_CPU = 1,
    DVT_DEVICE_GPU = 2
} dvt_device_type;

/* Where an array lives: cpu() is all cores and main memory, gpu(i) one card and its memory. */
typedef struct dvt_ctx {
    dvt_device_type type;
    int id;
} dvt_ctx;

typedef struct dvt_ctx_list {
    int n;
    dvt_ctx ctx[DVT_MAX_CONTEXTS];
} dvt_ctx_list;

/* The objects of the library. All are counted by reference and owned by scopes (see [dvt:scope]).
 */
typedef struct dvt_array dvt_array;
typedef struct dvt_block dvt_block;
typedef struct dvt_param dvt_param;
typedef struct dvt_params dvt_params;
typedef struct dvt_trainer dvt_trainer;
typedef struct dvt_dataset dvt_dataset;
typedef struct dvt_transform dvt_transform;
typedef struct dvt_loader dvt_loader;
typedef struct dvt_metric dvt_metric;
typedef struct dvt_progress dvt_progress;
typedef struct dvt_curve dvt_curve;
typedef struct dvt_array_list dvt_array_list;
/* ==== end src/0_api/dvt_types.h ==== */
#ifdef DEVTENSOR_LINES
#line 7 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_scope.h ==== */
/* [dvt:scope] Who owns what. Every object that a call returns belongs to the innermost DVT_SCOPE of
   the calling thread, or to the thread itself when there is none, and is released when that ends.
   So nested expressions never leak:

       for (...) DVT_SCOPE {
           dvt_array *loss = dvt_mean(dvt_square(dvt_sub(a, b)), DVT_ALL, false);
           best = dvt_keep(loss);          // lives on in the enclosing scope
       }

   An object that must outlive every scope, or travel to another thread, is retained: dvt_retain
   counts one more owner, dvt_release one fewer. */

#ifdef DEVTENSOR_LINES
#line 12 "src/0_api/dvt_scope.h"
#endif
typedef struct dvt_scope_guard {
    size_t mark;
    int depth;
    int once;
} dvt_scope_guard;

/* What DVT_SCOPE calls; by hand, end what was begun, innermost first. */
DVT_API dvt_scope_guard dvt_scope_begin(void);
DVT_API void dvt_scope_end(dvt_scope_guard *guard);

/* With GCC and Clang, and in C++, a guard ends on every way out of its block. Elsewhere leave the
   block only by its closing brace. */
#if defined(__GNUC__) || defined(__clang__)
#define DVT_GUARD_NEXT(end, guard) (guard).once = 0
#else
#define DVT_GUARD_NEXT(end, guard) (end)(&(guard))
#endif
/* A name per line, so that nested guards do not hide each other (-Wshadow). */
#define DVT_GUARD_NAME_(name, line) name##line
#define DVT_GUARD_NAME(name, line) DVT_GUARD_NAME_(name, line)
#define DVT_SCOPE                                                                                  \
    for (dvt_scope_guard DVT_CLEANUP(dvt_scope_end)                                                \
             DVT_GUARD_NAME(dvt_g_scope, __LINE__) = dvt_scope_begin();                            \
         DVT_GUARD_NAME(dvt_g_scope, __LINE__).once;                                               \
         DVT_GUARD_NEXT(dvt_scope_end, DVT_GUARD_NAME(dvt_g_scope, __LINE__)))

/* Moves an object to the enclosing scope and returns it. Without an enclosing scope, and for
   objects that this scope does not own, nothing changes. NULL stays NULL. */
DVT_API void *dvt_keep(void *object);
/* One more owner; returns the object. Pair with dvt_release. Any thread may do either. */
DVT_API void *dvt_retain(void *object);
/* One owner fewer; the last one frees the object. NULL is fine. */
DVT_API void dvt_release(void *object);
/* Releases everything this thread's scopes own, in particular what a program without any DVT_SCOPE
   made. A thread that ends, and the process at exit, do this by themselves. */
DVT_API void dvt_release_all(void);

#ifdef __cplusplus
extern "C++" {
template <class T> inline T *dvt_keep(T *object) {
    return static_cast<T *>((dvt_keep)(static_cast<void *>(object)));
}

template <class T> inline T *dvt_retain(T *object) {
    return static_cast<T *>((dvt_retain)(static_cast<void *>(object)));
}
}
#endif
/* ==== end src/0_api/dvt_scope.h ==== */
#ifdef DEVTENSOR_LINES
#line 8 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_context.h ==== */
/* [dvt:context] Contexts and devices. cpu(0), cpu(1), ... are different contexts on the same
   hardware; gpu(i) is one card, or one virtual GPU with a memory space and a command queue of its
   own. Making a context value is always legal; a missing device is an error when memory is wanted
   there. */

/* cpu(0), cpu(i), gpu(0), gpu(i). Copies: never. Waits: no. */
#ifdef DEVTENSOR_LINES
#line 6 "src/0_api/dvt_context.h"
#endif
DVT_API dvt_ctx dvt_cpu(void);
DVT_API dvt_ctx dvt_cpu_id(int id);
DVT_API dvt_ctx dvt_gpu(int id);
/* Same type and same id (DVT_DEVICE_DEFAULT is resolved first). */
DVT_API bool dvt_ctx_equal(dvt_ctx a, dvt_ctx b);
/* "cpu(0)", "gpu(1)". Owns: the library, per thread; valid for this thread's next 15 calls. */
DVT_API const char *dvt_ctx_name(dvt_ctx ctx);
/* Reads "cpu", "cpu(1)", "gpu" or "gpu(2)". Errors: NAME; `out` is then unchanged. */
DVT_API dvt_status dvt_ctx_parse(const char *name, dvt_ctx *out);
/* A list by hand, DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)), of one to eight; and one context as a list.
 */
DVT_API dvt_ctx_list dvt_ctx_list_make(int n, dvt_ctx c0, dvt_ctx c1, dvt_ctx c2, dvt_ctx c3,
                                       dvt_ctx c4, dvt_ctx c5, dvt_ctx c6, dvt_ctx c7);
#define DVT_CONTEXTS(...)                                                                          \
    dvt_ctx_list_make(                                                                             \
        DVT_COUNT(__VA_ARGS__),                                                                    \
        DVT_EXPAND(DVT_FIRST8(__VA_ARGS__, dvt_cpu(), dvt_cpu(), dvt_cpu(), dvt_cpu(), dvt_cpu(),  \
                              dvt_cpu(), dvt_cpu(), dvt_cpu(), dvt_cpu())))
/* Writes "[cpu(0), gpu(0), gpu(1)]" into buffer, cut to fit. Returns the full length. */
DVT_API size_t dvt_ctx_list_format(dvt_ctx_list list, char *buffer, size_t size);

/* The number of GPUs, real or virtual; 0 without any. Never an error. */
DVT_API int dvt_num_gpus(void);
/* One line that says why dvt_num_gpus() is 0, or "" when it is not. */
DVT_API const char *dvt_gpu_reason(void);
/* gpu(i) when it exists, else cpu(). */
DVT_API dvt_ctx dvt_try_gpu(int i);
/* All GPUs: an empty list when there is none; and the variant that then has cpu(0) in it. */
DVT_API dvt_ctx_list dvt_try_all_gpus(void);
DVT_API dvt_ctx_list dvt_try_all_gpus_or_cpu(void);

/* The context that is used where a dvt_ctx of all zeros is given: cpu(0) unless a scope changed it.
 */
DVT_API dvt_ctx dvt_default_ctx(void);

/* Within the block, for this thread: DVT_WITH_CTX(dvt_gpu(1)) { ... } */
typedef struct dvt_ctx_guard {
    dvt_ctx previous;
    int once;
} dvt_ctx_guard;

/* What DVT_WITH_CTX calls; by hand, end what was begun, innermost first. */
DVT_API dvt_ctx_guard dvt_ctx_scope_begin(dvt_ctx ctx);
DVT_API void dvt_ctx_scope_end(dvt_ctx_guard *guard);
#define DVT_WITH_CTX(context)                                                                      \
    for (dvt_ctx_guard DVT_CLEANUP(dvt_ctx_scope_end)                                              \
             DVT_GUARD_NAME(dvt_g_ctx, __LINE__) = dvt_ctx_scope_begin(context);                   \
         DVT_GUARD_NAME(dvt_g_ctx, __LINE__).once;                                                 \
         DVT_GUARD_NEXT(dvt_ctx_scope_end, DVT_GUARD_NAME(dvt_g_ctx, __LINE__)))

/* n virtual GPUs with `bytes` of memory each (0: no limit), replacing the virtual ones that there
   were. Errors: RANGE (n outside 0..DVT_MAX_GPUS), VALUE (arrays are still alive on a virtual GPU).
 */
DVT_API dvt_status dvt_set_virtual_gpus(int n, int64_t bytes);

typedef struct dvt_device_info {
    dvt_ctx ctx;
    char name[96];
    bool is_virtual;
    int64_t memory_total; /* bytes; -1 when unknown or without limit */
    int64_t memory_free;  /* bytes; -1 when unknown */
    int64_t memory_used;  /* bytes held by this library's arrays */
    int64_t memory_peak;  /* the largest memory_used so far */
    int driver_version;   /* CUDA's form, 13000 is 13.0; 0 for cpu() and virtual GPUs */
    int threads;          /* threads that compute */
} dvt_device_info;

/* Asks without creating anything on the device. Errors: NO_DEVICE. */
DVT_API dvt_status dvt_device_query(dvt_ctx ctx, dvt_device_info *out);
/* The table people read nvidia-smi for: every device with name, memory and versions, and the reason
   when there is no GPU. Returns the full length; writes at most `size` bytes with the final 0. */
DVT_API size_t dvt_devices_format(char *buffer, size_t size);
/* The same to standard output. */
DVT_API void dvt_print_devices(void);

/* What crossed between memories, and what ran, since the start or dvt_reset_stats. */
typedef struct dvt_stats {
    int64_t to_device_count, to_device_bytes; /* main memory to a GPU */
    int64_t to_host_count, to_host_bytes;     /* a GPU to main memory */
    int64_t between_devices_count, between_devices_bytes;
    int64_t kernels;        /* operations started, on every context */
    int64_t waits;          /* times that the caller waited for a device */
    int64_t implicit_reads; /* printing, dvt_item and dvt_to_host of arrays that are on a GPU */
    int64_t arrays, blocks_of_memory; /* alive now: array objects, device and host buffers */
} dvt_stats;

/* The counters now. Waits: no. */
DVT_API dvt_stats dvt_get_stats(void);
/* Sets the counters to 0 (not those of what is alive). */
DVT_API void dvt_reset_stats(void);

/* What happens when printing, dvt_item or dvt_to_host read an array that is on a GPU. */
typedef enum dvt_transfer_guard {
    DVT_TRANSFER_ALLOW,
    DVT_TRANSFER_LOG,
    DVT_TRANSFER_FORBID
} dvt_transfer_guard;

/* For this thread; returns the previous setting. */
DVT_API dvt_transfer_guard dvt_set_transfer_guard(dvt_transfer_guard guard);

/* Results are ready when these return, and errors of work that ran meanwhile come out here.
   Waits: yes. Errors: what the operation gave, with its name; DEVICE_LOST afterwards. */
DVT_API dvt_status dvt_wait(dvt_array *x);
DVT_API dvt_status dvt_wait_all(void);

/* Threads that cpu() uses; 0 asks for the default: those this process may run on. */
DVT_API dvt_status dvt_set_num_threads(int n);
DVT_API int dvt_num_threads(void);
/* Seconds since some fixed moment, for measuring. */
DVT_API double dvt_seconds(void);
/* ==== end src/0_api/dvt_context.h ==== */
#ifdef DEVTENSOR_LINES
#line 9 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_array.h ==== */
/* [dvt:array] Arrays: creation, inspection, views, copies.

   Unless a comment says otherwise a function here
   Copies: never between contexts.  Waits: no.
   Owns: the result belongs to the innermost scope.
   Errors: NULL_ARGUMENT, and NULL is returned; creation also gives HOST_MEMORY, DEVICE_MEMORY,
   NO_DEVICE, SHAPE (negative extents, more than 8, or more bytes than 2^63). */

/* ---- creation: shape, dtype, context; a zero dvt_ctx means the default context ---- */

/* New memory whose values are not set. */
#ifdef DEVTENSOR_LINES
#line 11 "src/0_api/dvt_array.h"
#endif
DVT_API dvt_array *dvt_empty(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_ones(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_full(dvt_shape shape, double value, dvt_dtype dtype, dvt_ctx ctx);
/* Shape, dtype and context of x; the values of x are not read. */
DVT_API dvt_array *dvt_zeros_like(dvt_array *x);
DVT_API dvt_array *dvt_ones_like(dvt_array *x);
DVT_API dvt_array *dvt_full_like(dvt_array *x, double value);
/* One element without axes. */
DVT_API dvt_array *dvt_scalar(double value, dvt_dtype dtype, dvt_ctx ctx);
/* rows x columns, ones on the diagonal k (0 main, positive above). */
DVT_API dvt_array *dvt_eye(int64_t rows, int64_t columns, int64_t k, dvt_dtype dtype, dvt_ctx ctx);
/* start, start + step, ... before stop: max(0, ceil((stop - start) / step)) values. Errors: VALUE
 * (step 0 or NaN). */
DVT_API dvt_array *dvt_arange(double start, double stop, double step, dvt_dtype dtype, dvt_ctx ctx);
/* num values from start to stop, both included. Errors: RANGE (num < 0). */
DVT_API dvt_array *dvt_linspace(double start, double stop, int64_t num, dvt_dtype dtype,
                                dvt_ctx ctx);
/* The elements at `data`, in C order and of that dtype.
   Copies: from main memory to ctx.  Waits: only for the copy; data may be changed or freed
   afterwards. */
DVT_API dvt_array *dvt_from_host(const void *data, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);

/* From initialisers, in one line, the dtype being that of the C type:
       dvt_array *x = DVT_ARRAY2(dvt_gpu(0), float, 2, 3, {{1, 2, 3}, {4, 5, 6}});  */
#define DVT_DTYPE_OF(T)                                                                            \
    ((T)2 == (T)1     ? DVT_BOOL                                                                   \
     : (T)0.5 != (T)0 ? (sizeof(T) == 4 ? DVT_F32 : DVT_F64)                                       \
     : sizeof(T) == 1 ? ((T)-1 < (T)1 ? DVT_I8 : DVT_U8)                                           \
     : sizeof(T) == 4 ? DVT_I32                                                                    \
                      : DVT_I64)
#ifdef __cplusplus
extern "C++" {
template <class T> inline const void *dvt_initialiser(const T &values) {
    return &values;
}
}
#define DVT_INITIALISER(T, dims, ...) dvt_initialiser<T dims>(__VA_ARGS__)
#else
#define DVT_INITIALISER(T, dims, ...) ((const T dims)__VA_ARGS__)
#endif
#define DVT_ARRAY1(ctx, T, n, ...)                                                                 \
    dvt_from_host(DVT_INITIALISER(T, [n], __VA_ARGS__), DVT_SHAPE(n), DVT_DTYPE_OF(T), ctx)
#define DVT_ARRAY2(ctx, T, n, m, ...)                                                              \
    dvt_from_host(DVT_INITIALISER(T, [n][m], __VA_ARGS__), DVT_SHAPE(n, m), DVT_DTYPE_OF(T), ctx)
#define DVT_ARRAY3(ctx, T, n, m, k, ...)                                                           \
    dvt_from_host(DVT_INITIALISER(T, [n][m][k], __VA_ARGS__), DVT_SHAPE(n, m, k), DVT_DTYPE_OF(T), \
                  ctx)
#define DVT_ARRAY4(ctx, T, n, m, k, l, ...)                                                        \
    dvt_from_host(DVT_INITIALISER(T, [n][m][k][l], __VA_ARGS__), DVT_SHAPE(n, m, k, l),            \
                  DVT_DTYPE_OF(T), ctx)

/* ---- inspection; NULL gives an empty shape, 0, or the zero value. Copies: never. Waits: no. ----
 */

DVT_API dvt_shape dvt_shape_of(const dvt_array *x);
DVT_API int dvt_ndim(const dvt_array *x);
/* The extent of one axis; negative axes count from the end. Errors: AXIS, and -1 is returned. */
DVT_API int64_t dvt_dim(const dvt_array *x, int axis);
DVT_API int64_t dvt_size(const dvt_array *x);
DVT_API int64_t dvt_nbytes(const dvt_array *x);
DVT_API dvt_dtype dvt_dtype_of(const dvt_array *x);
DVT_API dvt_ctx dvt_ctx_of(const dvt_array *x);
/* The distance between neighbours along an axis, in elements. Errors: AXIS. */
DVT_API int64_t dvt_stride(const dvt_array *x, int axis);
/* Elements lie one after the other in C order. */
DVT_API bool dvt_is_contiguous(const dvt_array *x);
/* Both look at the same buffer (their elements need not overlap). */
DVT_API bool dvt_shares_memory(const dvt_array *a, const dvt_array *b);
/* Where the call stands that made x, "main.c:42"; "" when unknown. */
DVT_API const char *dvt_made_at(const dvt_array *x);
/* The elements in main memory, to read or write in place, following the strides; valid while x
   lives. Waits: for x.  Errors: CONTEXT for arrays on a GPU (use dvt_to_host or dvt_copyto). */
DVT_API void *dvt_data(dvt_array *x);

/* ---- reading values ---- */

/* Writes all elements in C order to dst, which has room for exactly `bytes` = dvt_nbytes(x).
   Copies: to main memory.  Waits: for x.  Errors: RANGE (bytes differ), CONTEXT (transfer guard).
 */
DVT_API dvt_status dvt_to_host(dvt_array *x, void *dst, int64_t bytes);
/* Writes C-order values from main memory into x. Copies: to x's context. Waits: only for the copy.
   Errors: RANGE (bytes differ), GRAD (x belongs to a recorded computation). */
DVT_API dvt_status dvt_set_from_host(dvt_array *x, const void *src, int64_t bytes);
/* The value of an array of one element. Copies: to main memory. Waits: for x.
   Errors: SHAPE (not exactly one element), CONTEXT (transfer guard); NaN or 0 is returned. */
DVT_API double dvt_item(dvt_array *x);
DVT_API int64_t dvt_item_int(dvt_array *x);
/* The value at an index, one number per axis, negative ones from the end: dvt_item_at(x,
   DVT_SHAPE(1, -1)). As dvt_item. Errors: SHAPE, RANGE. */
DVT_API double dvt_item_at(dvt_array *x, dvt_shape index);

/* ---- views: other shape and strides on the same memory. Copies: never. Differentiable. ---- */

/* x[..., start:stop:step, ...] along one axis, with Python's rules for negative and large bounds.
   DVT_END as stop means "to the end" in the direction of step. Errors: AXIS, VALUE (step 0). */
#define DVT_END INT64_MIN
DVT_API dvt_array *dvt_slice(dvt_array *x, int axis, int64_t start, int64_t stop, int64_t step);
/* x[a:b] on axis 0, and x[i], which drops axis 0. Errors: SHAPE (no axis), RANGE (i). */
DVT_API dvt_array *dvt_rows(dvt_array *x, int64_t start, int64_t stop);
DVT_API dvt_array *dvt_index(dvt_array *x, int64_t i);
/* Axes in reverse order; in the order given; two exchanged. Errors: AXIS. */
DVT_API dvt_array *dvt_t(dvt_array *x);
DVT_API dvt_array *dvt_transpose(dvt_array *x, dvt_axes order);
DVT_API dvt_array *dvt_swapaxes(dvt_array *x, int axis1, int axis2);
/* Same elements in C order under another shape; one extent may be -1.
   Copies: within the context when the strides leave no other way.  Errors: SHAPE. */
DVT_API dvt_array *dvt_reshape(dvt_array *x, dvt_shape shape);
/* Shape (n, rest); a scalar gives (1, 1). Copies: as dvt_reshape. */
DVT_API dvt_array *dvt_flatten(dvt_array *x);
DVT_API dvt_array *dvt_expand_dims(dvt_array *x, int axis);
/* Drops axes of extent 1: those named, or all of them with DVT_ALL. Errors: AXIS, SHAPE. */
DVT_API dvt_array *dvt_squeeze(dvt_array *x, dvt_axes axes);
/* Repeats x along new and length-1 axes without storing it again. Writing into the result is an
 * error. */
DVT_API dvt_array *dvt_broadcast_to(dvt_array *x, dvt_shape shape);
/* x itself when it is contiguous, else a copy on its context. */
DVT_API dvt_array *dvt_contiguous(dvt_array *x);

/* ---- copies: what the name says ---- */

/* Always new memory on ctx, even when x is there already. Same dtype. Differentiable.
   Copies: to ctx.  Waits: no.  Errors: NO_DEVICE, DEVICE_MEMORY, HOST_MEMORY. */
DVT_API dvt_array *dvt_copyto(dvt_array *x, dvt_ctx ctx);
/* x itself when it is on ctx, else dvt_copyto. Differentiable. */
DVT_API dvt_array *dvt_as_in_ctx(dvt_array *x, dvt_ctx ctx);
/* New memory on x's own context. Differentiable. */
DVT_API dvt_array *dvt_copy(dvt_array *x);
/* Writes src into dst, which exists, and returns dst. Any contexts; the dtype is converted.
   With dst == src a warning is logged and NULL is returned without an error.
   Copies: to dst's context.  Waits: no.  Errors: SHAPE (they differ), GRAD (dst is recorded), VALUE
   (dst is a broadcast view). */
DVT_API dvt_array *dvt_copy_into(dvt_array *dst, dvt_array *src);
/* Another dtype, on the same context. copy = false returns x itself when it has that dtype already.
   Float to integer drops the fraction, and clamps what does not fit; NaN gives 0. Differentiable
   between floats. */
DVT_API dvt_array *dvt_astype(dvt_array *x, dvt_dtype dtype, bool copy);
/* Sets every element. Errors: GRAD, VALUE (broadcast view). Returns x. */
DVT_API dvt_array *dvt_fill(dvt_array *x, double value);

/* What the macros that go by the names of functions call (see DEVTENSOR_NO_CALL_SITES): they
   remember where x was made, or where the call stands that failed, and return what they are given.
   Owns: `file` must live as long as x. */
DVT_API dvt_array *dvt_note_site(dvt_array *x, const char *file, int line);
DVT_API dvt_status dvt_note_status(dvt_status status, const char *file, int line);
/* ==== end src/0_api/dvt_array.h ==== */
#ifdef DEVTENSOR_LINES
#line 10 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_ops.h ==== */
/* [dvt:ops] Arithmetic. Every operation runs where its inputs are, and its result stays there.

   Shapes: broadcasting as in NumPy.  Dtypes: dvt_promote; "float" operations turn integers into
   float32. Copies: never between contexts; memory for the result is new.  Waits: no. Owns: the
   result belongs to the innermost scope.  NULL inputs give NULL. Errors: CONTEXT (inputs on
   different contexts), SHAPE, DTYPE, AXIS, HOST_MEMORY, DEVICE_MEMORY.

   A form that ends in _ writes its result into its first argument and returns that: it neither
   broadcasts that argument nor turns its integers into fractions (DTYPE), and refuses recorded
   arrays (GRAD) and broadcast views (VALUE). dvt_NAME_scalar(x, s) has a number on the right,
   dvt_scalar_NAME(s, x) on the left; an integer array and a whole number stay integer. */

#ifdef DEVTENSOR_LINES
#line 12 "src/0_api/dvt_ops.h"
#endif
#define DVT_DECLARE_UNARY(name)                                                                    \
    DVT_API dvt_array *dvt_##name(dvt_array *x);                                                   \
    DVT_API dvt_array *dvt_##name##_(dvt_array *x);
#define DVT_DECLARE_TEST(name) DVT_API dvt_array *dvt_##name(dvt_array *x);
#define DVT_DECLARE_BINARY(name)                                                                   \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b);                                     \
    DVT_API dvt_array *dvt_##name##_(dvt_array *a, dvt_array *b);                                  \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s);                                \
    DVT_API dvt_array *dvt_##name##_scalar_(dvt_array *x, double s);                               \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x);
#define DVT_DECLARE_COMPARE(name)                                                                  \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b);                                     \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s);                                \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x);

/* ---- two arguments ---- */
DVT_DECLARE_BINARY(add)       /* a + b */
DVT_DECLARE_BINARY(sub)       /* a - b; not for two bools */
DVT_DECLARE_BINARY(mul)       /* a * b */
DVT_DECLARE_BINARY(div)       /* a / b, float */
DVT_DECLARE_BINARY(floor_div) /* floor(a / b); integers by 0 give 0 */
DVT_DECLARE_BINARY(mod)       /* a - floor(a / b) * b, with b's sign; integers by 0 give 0 */
DVT_DECLARE_BINARY(pow)       /* a to the power b; integers to a negative power are truncated */
DVT_DECLARE_BINARY(minimum)   /* the smaller; NaN when either is */
DVT_DECLARE_BINARY(maximum)   /* the larger; NaN when either is */
DVT_DECLARE_BINARY(atan2)     /* the angle of the point (b, a), float */
DVT_DECLARE_BINARY(hypot)     /* sqrt(a*a + b*b) without overflow, float */

/* Results are bool. */
DVT_DECLARE_COMPARE(equal)
DVT_DECLARE_COMPARE(not_equal)
DVT_DECLARE_COMPARE(less)
DVT_DECLARE_COMPARE(less_equal)
DVT_DECLARE_COMPARE(greater)
DVT_DECLARE_COMPARE(greater_equal)
DVT_DECLARE_COMPARE(logical_and) /* nonzero counts as true */
DVT_DECLARE_COMPARE(logical_or)
DVT_DECLARE_COMPARE(logical_xor)

/* ---- one argument ---- */
DVT_DECLARE_UNARY(neg) /* -x; not for bool */
DVT_DECLARE_UNARY(abs)
DVT_DECLARE_UNARY(sign) /* -1, 0 or 1; NaN stays */
DVT_DECLARE_UNARY(square)
DVT_DECLARE_UNARY(relu) /* max(x, 0); NaN stays */
DVT_DECLARE_UNARY(floor)
DVT_DECLARE_UNARY(ceil)
DVT_DECLARE_UNARY(round) /* halves to even */
DVT_DECLARE_UNARY(trunc)
/* float from here on */
DVT_DECLARE_UNARY(reciprocal)
DVT_DECLARE_UNARY(sqrt)
DVT_DECLARE_UNARY(rsqrt) /* 1 / sqrt(x) */
DVT_DECLARE_UNARY(exp)
DVT_DECLARE_UNARY(exp2)
DVT_DECLARE_UNARY(expm1)
DVT_DECLARE_UNARY(log)
DVT_DECLARE_UNARY(log2)
DVT_DECLARE_UNARY(log10)
DVT_DECLARE_UNARY(log1p)
DVT_DECLARE_UNARY(sin)
DVT_DECLARE_UNARY(cos)
DVT_DECLARE_UNARY(tan)
DVT_DECLARE_UNARY(asin)
DVT_DECLARE_UNARY(acos)
DVT_DECLARE_UNARY(atan)
DVT_DECLARE_UNARY(sinh)
DVT_DECLARE_UNARY(cosh)
DVT_DECLARE_UNARY(tanh)
DVT_DECLARE_UNARY(sigmoid)  /* 1 / (1 + exp(-x)) */
DVT_DECLARE_UNARY(softplus) /* log(1 + exp(x)) without overflow */
DVT_DECLARE_UNARY(erf)
DVT_DECLARE_UNARY(gelu) /* x/2 * (1 + erf(x / sqrt 2)) */
/* Results are bool. */
DVT_DECLARE_TEST(isnan)
DVT_DECLARE_TEST(isinf)
DVT_DECLARE_TEST(isfinite)
DVT_DECLARE_TEST(logical_not)

/* ---- select ---- */
/* condition ? a : b, all three broadcast; nonzero conditions hold. */
DVT_API dvt_array *dvt_where(dvt_array *condition, dvt_array *a, dvt_array *b);
/* min(max(x, low), high). Use -INFINITY or INFINITY for no bound; NaN stays. Errors: VALUE (low >
 * high or NaN). */
DVT_API dvt_array *dvt_clip(dvt_array *x, double low, double high);
DVT_API dvt_array *dvt_clip_(dvt_array *x, double low, double high);

/* ---- reductions: over the named axes, or DVT_ALL. keepdims leaves axes of extent 1.
   Sums are formed in float64 (int64 for integers) in a fixed order: the same bits for any number of
   threads. ---- */
DVT_API dvt_array *dvt_sum(dvt_array *x, dvt_axes axes, bool keepdims); /* integers give int64 */
DVT_API dvt_array *dvt_prod(dvt_array *x, dvt_axes axes, bool keepdims);
DVT_API dvt_array *dvt_mean(dvt_array *x, dvt_axes axes,
                            bool keepdims); /* float; of nothing: NaN */
/* Variance and standard deviation, divided by count - ddof. */
DVT_API dvt_array *dvt_var(dvt_array *x, dvt_axes axes, double ddof, bool keepdims);
DVT_API dvt_array *dvt_std(dvt_array *x, dvt_axes axes, double ddof, bool keepdims);
/* NaN wins. Errors: SHAPE when a reduced axis is empty. */
DVT_API dvt_array *dvt_min(dvt_array *x, dvt_axes axes, bool keepdims);
DVT_API dvt_array *dvt_max(dvt_array *x, dvt_axes axes, bool keepdims);
/* The first position of the extreme (the first NaN wins) along one axis, int64; DVT_FLAT: of the
 * flattened array. */
#define DVT_FLAT (-1000)
DVT_API dvt_array *dvt_argmin(dvt_array *x, int axis, bool keepdims);
DVT_API dvt_array *dvt_argmax(dvt_array *x, int axis, bool keepdims);
DVT_API dvt_array *dvt_any(dvt_array *x, dvt_axes axes, bool keepdims); /* bool */
DVT_API dvt_array *dvt_all(dvt_array *x, dvt_axes axes, bool keepdims); /* bool */
/* sqrt of the sum of squares (Frobenius over all axes), float. */
DVT_API dvt_array *dvt_norm(dvt_array *x, dvt_axes axes, bool keepdims);
/* log(sum(exp(x))) without overflow. */
DVT_API dvt_array *dvt_logsumexp(dvt_array *x, dvt_axes axes, bool keepdims);
/* Along one axis, each row with its own maximum subtracted. float. */
DVT_API dvt_array *dvt_softmax(dvt_array *x, int axis);
DVT_API dvt_array *dvt_log_softmax(dvt_array *x, int axis);

/* ---- matrix products. Sums run in a fixed order; float16 and bfloat16 are summed in float32. ----
 */
/* (..., n, k) x (..., k, m) -> (..., n, m), batch axes broadcast; one-dimensional arguments as in
 * NumPy. */
DVT_API dvt_array *dvt_matmul(dvt_array *a, dvt_array *b);
/* The same with the last two axes of either exchanged first, without copying. */
DVT_API dvt_array *dvt_matmul_t(dvt_array *a, dvt_array *b, bool transpose_a, bool transpose_b);
/* NumPy's dot: the last axis of a with the last but one of b (its last, when b has one axis). */
DVT_API dvt_array *dvt_dot(dvt_array *a, dvt_array *b);

/* ---- joining, splitting, indexing ---- */
/* n arrays along an existing axis; along a new one. Errors: RANGE (n < 1). */
DVT_API dvt_array *dvt_concat(dvt_array *const *arrays, int n, int axis);
DVT_API dvt_array *dvt_stack(dvt_array *const *arrays, int n, int axis);
/* n views of x along an axis into out[0..n); the first (size mod n) are longer by one.
   Copies: never.  Errors: RANGE (n < 1), AXIS, SHAPE (even asked and not divisible). */
DVT_API dvt_status dvt_split(dvt_array *x, int n, int axis, bool even, dvt_array **out);
/* Slices of x along an axis, one per index; indices is an integer array of any shape, negative ones
   count from the end. An index out of range is reported where indices can be read (RANGE: main
   memory), else clamped. */
DVT_API dvt_array *dvt_take(dvt_array *x, dvt_array *indices, int axis);
/* result[..., j, ...] = x[..., indices[..., j, ...], ...]: indices has x's number of axes and
   broadcasts with x on all axes but one. Also called gather. Indices as dvt_take. */
DVT_API dvt_array *dvt_take_along_axis(dvt_array *x, dvt_array *indices, int axis);
/* One element per row: indices has x's shape without the axis (or with extent 1 there). */
DVT_API dvt_array *dvt_pick(dvt_array *x, dvt_array *indices, int axis, bool keepdims);
/* A new last axis of `depth`: 1 at the index, else 0 (all 0 for an index out of range). */
DVT_API dvt_array *dvt_one_hot(dvt_array *indices, int64_t depth, dvt_dtype dtype);

/* ---- convolution and pooling: NCHW data, OIHW weights. A field of 0 means its default. ---- */
typedef struct dvt_conv2d_params {
    int stride[2];   /* default 1, 1 (a second value of 0 repeats the first) */
    int padding[2];  /* default 0 */
    int dilation[2]; /* default 1, 1 */
    int groups;      /* default 1 */
} dvt_conv2d_params;

/* Cross-correlation. x (N, C, H, W), w (O, C/groups, KH, KW), bias (O) or NULL for none.
   Result (N, O, (H + 2p - d(KH-1) - 1)/s + 1, ...). p may be NULL. Source: im2col and a matrix
   product. */
DVT_API dvt_array *dvt_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv2d_params *p);

typedef struct dvt_pool2d_params {
    int size[2];    /* required, unless global; a second value of 0 repeats the first */
    int stride[2];  /* default: size */
    int padding[2]; /* default 0, at most size / 2 */
    bool ceil_mode; /* round output extents up instead of down */
    bool
        exclude_padding; /* dvt_avg_pool2d divides by the elements inside x instead of the window */
    bool global;         /* one window over everything */
} dvt_pool2d_params;

/* Largest value of each window; ties send the gradient to the first one. */
DVT_API dvt_array *dvt_max_pool2d(dvt_array *x, const dvt_pool2d_params *p);
DVT_API dvt_array *dvt_avg_pool2d(dvt_array *x, const dvt_pool2d_params *p);

/* ---- layers as functions ---- */
/* x (..., k) times w (units, k) transposed, plus bias (units) or NULL for none. */
DVT_API dvt_array *dvt_linear(dvt_array *x, dvt_array *w, dvt_array *bias);
/* In train mode zeroes each element with probability p and divides the rest by 1 - p; else x
   itself. Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_array *dvt_dropout(dvt_array *x, double p);
/* Over all axes but `axis` (normally 1). In train mode uses the batch's statistics and moves the
   running ones: running = momentum * running + (1 - momentum) * batch, in place; else uses the
   running ones. Source: Ioffe and Szegedy, 2015. */
DVT_API dvt_array *dvt_batch_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                  dvt_array *running_mean, dvt_array *running_var, int axis,
                                  double momentum, double epsilon);
/* Over the last axis. gamma and beta may be NULL. Source: Ba, Kiros and Hinton, 2016. */
DVT_API dvt_array *dvt_layer_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta, double epsilon);
/* ==== end src/0_api/dvt_ops.h ==== */
#ifdef DEVTENSOR_LINES
#line 11 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_random.h ==== */
/* [dvt:random] Random numbers: counter-based, the same bits for any number of threads.

   Creation functions, as in [dvt:array].  Copies: never.  Waits: no.  Errors: RANGE (bounds),
   DTYPE.
   Streams: every context has one; dvt_seed(s) restarts them all, so the same program gives the same
   numbers. Streams of different contexts and seeds never meet: the seed is the key, and the
   context's type and id are the upper half of the 128-bit counter.
   Keys: explicit and without state, as in JAX. A key gives the same numbers wherever and whenever
   it is used. */

/* Restarts the streams of all contexts, or of one. The seed of a fresh process is 0. */
#ifdef DEVTENSOR_LINES
#line 11 "src/0_api/dvt_random.h"
#endif
DVT_API void dvt_seed(uint64_t seed);
DVT_API void dvt_seed_ctx(uint64_t seed, dvt_ctx ctx);

/* Uniform on [low, high), both rounded to the dtype first; low == high gives low. Floating dtypes. 24 random bits an element, 53
   for float64. Errors: RANGE (low > high, NaN, or high - low too large for the dtype). */
DVT_API dvt_array *dvt_uniform(double low, double high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* Normal with that mean and standard deviation. Computed in float64, then rounded; float64 results may differ in their last bits
   between machines whose log, sin and cos do. Source: Box and Muller, 1958. Errors: RANGE (deviation < 0). */
DVT_API dvt_array *dvt_normal(double mean, double deviation, dvt_shape shape, dvt_dtype dtype,
                              dvt_ctx ctx);
/* Integers of [low, high). Integer dtypes. Each has the probability 1 / (high - low) to within 2^-64.
   Errors: RANGE (low >= high, or outside the dtype). */
DVT_API dvt_array *dvt_randint(int64_t low, int64_t high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* 1 with probability p, else 0. Any dtype. Errors: RANGE (p outside [0, 1]). */
DVT_API dvt_array *dvt_bernoulli(double p, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
/* 0 .. n-1 in random order, int64. Source: Fisher and Yates. */
DVT_API dvt_array *dvt_permutation(int64_t n, dvt_ctx ctx);

typedef struct dvt_key {
    uint32_t word[2];
} dvt_key;

/* A key from a number. */
DVT_API dvt_key dvt_key_new(uint64_t seed);
/* n new keys from one, which should not be used again. Errors: NULL_ARGUMENT, RANGE (n < 0). */
DVT_API void dvt_key_split(dvt_key key, int n, dvt_key *out);
/* A new key from one and a number, such as a step or a device. */
DVT_API dvt_key dvt_key_fold_in(dvt_key key, uint32_t number);
DVT_API dvt_array *dvt_key_uniform(dvt_key key, double low, double high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_normal(dvt_key key, double mean, double deviation, dvt_shape shape,
                                  dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_randint(dvt_key key, int64_t low, int64_t high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_bernoulli(dvt_key key, double p, dvt_shape shape, dvt_dtype dtype,
                                     dvt_ctx ctx);
DVT_API dvt_array *dvt_key_permutation(dvt_key key, int64_t n, dvt_ctx ctx);

/* Which generator the functions above use. The last two give the numbers that other libraries print.

   DVT_RNG_MXNET: float32 of dvt_uniform, bit for bit: mt19937 on cpu(i), one state for every 64 elements up to 1024; on gpu(i) its
   Philox layout, four generators in turn, one subsequence for every 64 elements up to 32768. Everything else, and keys, are as
   DVT_RNG_PHILOX.
   DVT_RNG_JAX: dvt_key_new, split and fold_in, and uniform, bernoulli, randint and permutation of a key, bit for bit as
   jax.random 0.4.30 gives them (int64 and float64: with jax_enable_x64; later versions: with jax_threefry_partitionable off, and
   other 8-bit randint). Normal uses the same polynomial for the inverse error function, and agrees to 1e-6 relative, or 1e-12
   in float64. bfloat16, and uniform's upper bound, which is never drawn here, may differ. Streams are as DVT_RNG_PHILOX. */
typedef enum dvt_rng_engine {
    DVT_RNG_PHILOX, /* Philox 4x32-10 for streams and keys. Source: Salmon et al., 2011 */
    DVT_RNG_MXNET,  /* dvt_uniform gives Apache MXNet 1.x's numbers */
    DVT_RNG_JAX     /* keys give JAX's numbers: Threefry 2x32-20 in the original counter layout */
} dvt_rng_engine;

/* For the whole process; restarts all streams with their seeds. Returns the previous engine.
   Errors: VALUE. */
DVT_API dvt_rng_engine dvt_set_rng_engine(dvt_rng_engine engine);
/* ==== end src/0_api/dvt_random.h ==== */
#ifdef DEVTENSOR_LINES
#line 12 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_autograd.h ==== */
/* [dvt:autograd] Gradients. Operations inside DVT_RECORD on arrays that have a gradient attached
   (or that were computed from such) are remembered; dvt_backward walks back.

       dvt_attach_grad(w, DVT_GRAD_WRITE);
       DVT_RECORD { loss = dvt_mean(dvt_square(dvt_sub(dvt_matmul(x, w), y)), DVT_ALL, false); }
       dvt_backward(loss);
       dvt_print(dvt_grad(w));

   Recording and train mode belong to the thread. Gradients are computed with recorded operations,
   so gradients of gradients work (create_graph). */

#ifdef DEVTENSOR_LINES
#line 11 "src/0_api/dvt_autograd.h"
#endif
typedef enum dvt_grad_req {
    DVT_GRAD_WRITE, /* each backward overwrites */
    DVT_GRAD_ADD,   /* each backward adds; dvt_zero_grad starts again */
    DVT_GRAD_NULL   /* none */
} dvt_grad_req;

typedef struct dvt_record_guard {
    int recording, training;
    int once;
} dvt_record_guard;

/* recording, training: 1 on, 0 off, -1 unchanged. */
DVT_API dvt_record_guard dvt_record_begin(int recording, int training);
DVT_API void dvt_record_end(dvt_record_guard *guard);
#define DVT_RECORD_SCOPE(recording, training)                                                      \
    for (dvt_record_guard DVT_CLEANUP(dvt_record_end)                                              \
             DVT_GUARD_NAME(dvt_g_record, __LINE__) = dvt_record_begin(recording, training);       \
         DVT_GUARD_NAME(dvt_g_record, __LINE__).once;                                              \
         DVT_GUARD_NEXT(dvt_record_end, DVT_GUARD_NAME(dvt_g_record, __LINE__)))
/* Record, in train mode; record, in predict mode; neither; and the modes alone. */
#define DVT_RECORD DVT_RECORD_SCOPE(1, 1)
#define DVT_RECORD_PREDICT DVT_RECORD_SCOPE(1, 0)
#define DVT_PAUSE DVT_RECORD_SCOPE(0, 0)
#define DVT_TRAIN_MODE DVT_RECORD_SCOPE(-1, 1)
#define DVT_PREDICT_MODE DVT_RECORD_SCOPE(-1, 0)
DVT_API bool dvt_is_recording(void);
DVT_API bool dvt_is_training(void);

/* Gives x a gradient array of its shape, dtype and context, filled with 0, and cuts x from whatever
   computed it. Attaching again keeps the array; DVT_GRAD_NULL takes it away. Errors: DTYPE (not a
   float), VALUE (no such req), HOST_MEMORY, DEVICE_MEMORY. */
DVT_API dvt_status dvt_attach_grad(dvt_array *x, dvt_grad_req req);
/* The gradient array. Owns: x.  Errors: GRAD (none attached), and NULL. */
DVT_API dvt_array *dvt_grad(dvt_array *x);
/* Sets x's gradient to 0. Errors: GRAD (none attached). */
DVT_API dvt_status dvt_zero_grad(dvt_array *x);

/* d(sum of y) / d(everything attached), for y of any shape: the head gradient is ones. The graph is
   freed. Where it fails, no attached gradient has changed and the graph is still there. Copies: a
   gradient returns to the context of its array.  Waits: no.  Errors: GRAD (y was not recorded; the
   graph is used up; a value that a gradient reads was overwritten since), HOST_MEMORY,
   DEVICE_MEMORY. */
DVT_API dvt_status dvt_backward(dvt_array *y);
/* Several heads at once, with their own gradients (NULL, or NULL entries: ones). retain_graph
   allows another backward; create_graph also records this one, for gradients of gradients, and
   keeps the graph. Attached gradients that were recorded are replaced by new arrays, not
   overwritten, and keep their graph alive, and with it the array they belong to, until the next
   backward, dvt_zero_grad or dvt_attach_grad; dvt_gradients makes no such tie.
   Errors: as dvt_backward; RANGE (n < 1), SHAPE, DTYPE, CONTEXT (a head and its gradient). */
DVT_API dvt_status dvt_backward_from(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                     bool retain_graph, bool create_graph);
/* Gradients of the heads with respect to `vars`, as new arrays in out[0..n_vars); attached
   gradients are left alone. An unused variable gets zeros. vars must be attached, or recorded
   results. Owns: the innermost scope owns out[]. Errors: as dvt_backward_from. */
DVT_API dvt_status dvt_gradients(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                 dvt_array *const *vars, int n_vars, bool retain_graph,
                                 bool create_graph, dvt_array **out);
/* The same memory without history: gradients stop there. Copies: never. */
DVT_API dvt_array *dvt_detach(dvt_array *x);
DVT_API dvt_array *dvt_stop_gradient(dvt_array *x);
/* Is x the result of a recorded operation, or attached? */
DVT_API bool dvt_has_history(const dvt_array *x);
/* ==== end src/0_api/dvt_autograd.h ==== */
#ifdef DEVTENSOR_LINES
#line 13 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_io.h ==== */
/* [dvt:io] Printing and files. Reading values of an array on a GPU copies them to main memory
 * first. */

/* x as NumPy prints it, then "<NDArray 2x3 @gpu(0)>", to standard output. Copies: to main memory.
   Waits: for x. Errors: CONTEXT (transfer guard), HOST_MEMORY. NULL prints "(null)". */
#ifdef DEVTENSOR_LINES
#line 5 "src/0_api/dvt_io.h"
#endif
DVT_API dvt_status dvt_print(dvt_array *x);
/* The same to a FILE *, passed as void * so that this header needs no <stdio.h>. */
DVT_API dvt_status dvt_print_file(void *file, dvt_array *x);

typedef enum dvt_print_style {
    DVT_PRINT_MXNET, /* values, newline, <NDArray 2x3 @gpu(0)>: the default */
    DVT_PRINT_NP,    /* array([[1., 1.]], ctx=gpu(0)): MXNet's np, NumPy's repr */
    DVT_PRINT_STR,   /* the values alone: NumPy's str */
    DVT_PRINT_JAX,   /* Array([[1., 1.]], dtype=float32) */
    DVT_PRINT_TORCH  /* tensor([[1., 1.]], device='cuda:0') */
} dvt_print_style;

/* NumPy's print options; a field of 0 means NumPy's default, given behind it. */
typedef struct dvt_print_options {
    dvt_print_style style;
    int precision;     /* 8; -1 for none */
    int64_t threshold; /* 1000 */
    int edge_items;    /* 3 */
    int line_width;    /* 75 */
    bool suppress;     /* no exponents for small values */
    bool no_newline;   /* leave out the final newline */
} dvt_print_options;

/* Writes the text into buffer (cut to fit, always ended by 0) and its full length to *length;
   either may be NULL. options may be NULL. */
DVT_API dvt_status dvt_format(dvt_array *x, const dvt_print_options *options, char *buffer,
                              size_t size, size_t *length);

/* ---- several named arrays ---- */
DVT_API int dvt_array_list_len(const dvt_array_list *list);
/* The i-th array, and its name ("" when the file has no names). Owns: the list. Errors: RANGE. */
DVT_API dvt_array *dvt_array_list_at(dvt_array_list *list, int i);
DVT_API const char *dvt_array_list_name(const dvt_array_list *list, int i);
/* By name. Owns: the list. Errors: NAME. */
DVT_API dvt_array *dvt_array_list_find(dvt_array_list *list, const char *name);

/* ---- files. Readers check everything before they allocate; writers write a temporary file and
   rename it. Copies: arrays on a GPU pass through main memory.  Waits: yes.  Errors: IO, FORMAT,
   memory, NOT_BUILT. ---- */

/* NumPy .npy, version 1.0: any dtype but bfloat16 (written as float32). Reads versions 1 to 3,
   either byte order and Fortran order; refuses pickled objects. */
DVT_API dvt_status dvt_save_npy(const char *path, dvt_array *x);
DVT_API dvt_array *dvt_load_npy(const char *path, dvt_ctx ctx);
/* Apache MXNet .params: writes version 2 (arrays without axes: version 3), reads versions 0 to 3.
 * names may be NULL. */
DVT_API dvt_status dvt_save_params(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n);
DVT_API dvt_array_list *dvt_load_params(const char *path, dvt_ctx ctx);
/* IDX, plain or .gz (by content): unsigned and signed bytes, int32, float32, float64; 16-bit
 * integers become int32. */
DVT_API dvt_array *dvt_load_idx(const char *path, dvt_ctx ctx);
/* The same formats from memory. */
DVT_API dvt_array *dvt_read_npy(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array_list *dvt_read_params(const void *data, size_t bytes, dvt_ctx ctx);
DVT_API dvt_array *dvt_read_idx(const void *data, size_t bytes, dvt_ctx ctx);
/* ==== end src/0_api/dvt_io.h ==== */
#ifdef DEVTENSOR_LINES
#line 14 "src/0_api/dvt_api.h"
#endif
#if !defined(DEVTENSOR_NO_NN)
/* ==== begin src/0_api/dvt_nn.h ==== */
/* [dvt:nn] Networks of blocks, with the semantics and names of Gluon.

       dvt_block *net = dvt_sequential();
       DVT_ADD(net, dvt_conv2d_block(6, 5, DVT_RELU), dvt_max_pool2d_block(2, 2),
               dvt_dense(10, DVT_LINEAR));
       dvt_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_try_gpu(0)), false);
       dvt_array *y = dvt_forward(net, x); // runs where x is

   Input sizes are inferred at the first forward.  Owns: what a call makes belongs to the innermost
   scope; a block owns its children and parameters.  Errors of constructors: HOST_MEMORY, RANGE. */

/* ---- initial values. The zero value is Uniform(0.07). ---- */
#ifdef DEVTENSOR_LINES
#line 12 "src/0_api/dvt_nn.h"
#endif
typedef enum dvt_init_kind {
    DVT_INIT_DEFAULT, /* Uniform(0.07) for weights; a parameter's own rule (zeros, ones) where it
                         has one */
    DVT_INIT_UNIFORM, /* a: scale */
    DVT_INIT_NORMAL,  /* a: sigma */
    DVT_INIT_XAVIER,  /* a: magnitude */
    DVT_INIT_MSRA,    /* a: slope */
    DVT_INIT_ZERO,
    DVT_INIT_ONE,
    DVT_INIT_CONSTANT /* a: value */
} dvt_init_kind;

typedef enum dvt_fan { DVT_FAN_AVG, DVT_FAN_IN, DVT_FAN_OUT } dvt_fan;

typedef struct dvt_init {
    dvt_init_kind kind;
    double a;
    dvt_fan fan;
    bool gaussian; /* Xavier: normal instead of uniform */
} dvt_init;

/* U(-scale, scale), and the normal distribution N(0, sigma). */
DVT_API dvt_init dvt_init_uniform(double scale);
DVT_API dvt_init dvt_init_normal(double sigma);
/* U(-c, c), c = sqrt(3 / ((fan_in + fan_out) / 2)). Source: Glorot and Bengio, 2010. */
DVT_API dvt_init dvt_init_xavier(void);
DVT_API dvt_init dvt_init_xavier_with(double magnitude, dvt_fan fan, bool gaussian);
/* Normal with variance 2 / ((1 + slope^2) fan). Source: He et al., 2015. */
DVT_API dvt_init dvt_init_msra_prelu(dvt_fan fan, double slope);
DVT_API dvt_init dvt_init_zero(void);
DVT_API dvt_init dvt_init_one(void);
DVT_API dvt_init dvt_init_constant(double value);

/* ---- parameters: one copy per context, all equal ---- */
/* "dense0_weight". Owns: the parameter. */
DVT_API const char *dvt_param_name(const dvt_param *p);
/* The shape; extents that are not known yet are 0. */
DVT_API dvt_shape dvt_param_shape(const dvt_param *p);
/* The copy on ctx, or with an all-zero ctx the only one, else the default context's. Copies: never.
   Owns: the parameter.  Errors: UNINITIALIZED, CONTEXT (not initialised on ctx). */
DVT_API dvt_array *dvt_param_data(dvt_param *p, dvt_ctx ctx);
DVT_API dvt_array *dvt_param_grad(dvt_param *p, dvt_ctx ctx);
/* The contexts, in the order given to dvt_initialize, each once. */
DVT_API dvt_ctx_list dvt_param_ctxs(const dvt_param *p);
/* Writes x (on any context) into every copy. Errors: SHAPE. */
DVT_API dvt_status dvt_param_set_data(dvt_param *p, dvt_array *x);
DVT_API dvt_status dvt_param_set_grad_req(dvt_param *p, dvt_grad_req req);
/* Factors on the learning rate and the weight decay of this parameter (1 unless set). */
DVT_API dvt_status dvt_param_set_lr_mult(dvt_param *p, double factor);
DVT_API dvt_status dvt_param_set_wd_mult(dvt_param *p, double factor);
/* This parameter's own initial values, before those of dvt_initialize. */
DVT_API dvt_status dvt_param_set_init(dvt_param *p, dvt_init init);

/* All parameters of a block and its children whose name matches a regular expression from its first
   character on (literals . * + ? [..] ( ) | ^ $; NULL: all), such as ".*weight" or
   "conv0_.*|dense1_bias". */
DVT_API dvt_params *dvt_collect_params(dvt_block *net, const char *pattern);
DVT_API int dvt_params_len(const dvt_params *params);
/* By position, by name. Owns: the block. Errors: RANGE, NAME. */
DVT_API dvt_param *dvt_params_at(dvt_params *params, int i);
DVT_API dvt_param *dvt_params_find(dvt_params *params, const char *name);
/* As dvt_initialize, for these parameters. */
DVT_API dvt_status dvt_params_initialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs,
                                         bool force_reinit);
/* Moves the parameters to other contexts, with the average of their copies. Errors: UNINITIALIZED.
 */
DVT_API dvt_status dvt_params_reset_ctx(dvt_params *params, dvt_ctx_list ctxs);
DVT_API dvt_status dvt_params_set_grad_req(dvt_params *params, dvt_grad_req req);
DVT_API dvt_status dvt_params_zero_grad(dvt_params *params);

/* ---- blocks ---- */
typedef enum dvt_activation {
    DVT_LINEAR,
    DVT_RELU,
    DVT_SIGMOID,
    DVT_TANH,
    DVT_SOFTPLUS,
    DVT_GELU
} dvt_activation;

/* Blocks one after the other; empty at first. */
DVT_API dvt_block *dvt_sequential(void);
/* Appends up to 16 blocks: DVT_ADD(net, a, b, c). The net then owns them. A NULL among them is an
 * error. */
DVT_API dvt_status dvt_sequential_add(dvt_block *net, int n, dvt_block *b0, dvt_block *b1,
                                      dvt_block *b2, dvt_block *b3, dvt_block *b4, dvt_block *b5,
                                      dvt_block *b6, dvt_block *b7, dvt_block *b8, dvt_block *b9,
                                      dvt_block *b10, dvt_block *b11, dvt_block *b12,
                                      dvt_block *b13, dvt_block *b14, dvt_block *b15);
#define DVT_FIRST16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...)                           \
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
#define DVT_ADD(net, ...)                                                                          \
    dvt_sequential_add(                                                                            \
        net, DVT_COUNT(__VA_ARGS__),                                                               \
        DVT_EXPAND(DVT_FIRST16(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,  \
                               NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)))

/* y = x W' + b on (N, in); inputs with more axes are flattened to (N, rest). */
DVT_API dvt_block *dvt_dense(int64_t units, dvt_activation activation);

typedef struct dvt_dense_desc {
    int64_t units;    /* required */
    int64_t in_units; /* 0: inferred */
    dvt_activation activation;
    bool no_bias;
    bool no_flatten; /* apply to the last axis only */
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_dense_desc;

/* The same, with every choice. */
DVT_API dvt_block *dvt_dense_with(const dvt_dense_desc *desc);

/* channels filters of kernel x kernel. */
DVT_API dvt_block *dvt_conv2d_block(int64_t channels, int kernel, dvt_activation activation);

typedef struct dvt_conv2d_desc {
    int64_t channels;    /* required */
    int kernel[2];       /* required; a second value of 0 repeats the first */
    int64_t in_channels; /* 0: inferred */
    dvt_conv2d_params params;
    dvt_activation activation;
    bool no_bias;
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_conv2d_desc;

/* The same, with every choice. */
DVT_API dvt_block *dvt_conv2d_with(const dvt_conv2d_desc *desc);

/* stride 0 means size. */
DVT_API dvt_block *dvt_max_pool2d_block(int size, int stride);
DVT_API dvt_block *dvt_avg_pool2d_block(int size, int stride);
DVT_API dvt_block *dvt_max_pool2d_with(const dvt_pool2d_params *p);
DVT_API dvt_block *dvt_avg_pool2d_with(const dvt_pool2d_params *p);
DVT_API dvt_block *dvt_global_avg_pool2d_block(void);
DVT_API dvt_block *dvt_flatten_block(void);
DVT_API dvt_block *dvt_activation_block(dvt_activation activation);
/* Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_block *dvt_dropout_block(double p);
/* axis 1, momentum 0.9, epsilon 1e-5 as in Gluon. */
DVT_API dvt_block *dvt_batch_norm_block(void);

typedef struct dvt_batch_norm_desc {
    int axis;        /* 0: axis 1 */
    double momentum; /* 0: 0.9 */
    double epsilon;  /* 0: 1e-5 */
    bool no_center, no_scale;
    int64_t in_channels;
} dvt_batch_norm_desc;

/* The same, with every choice. */
DVT_API dvt_block *dvt_batch_norm_with(const dvt_batch_norm_desc *desc);
/* Over the last axis, epsilon 1e-5. */
DVT_API dvt_block *dvt_layer_norm_block(void);
/* Rows of a (count, units) table. */
DVT_API dvt_block *dvt_embedding_block(int64_t count, int64_t units);

/* A block of your own. forward reads children and parameters through the functions below and
   returns its result (owned by the current scope) or NULL. infer, optional, is called with the
   first input to set shapes that are still unknown (dvt_param_set_shape). describe, optional,
   writes what printing shows. release, optional, frees user. */
typedef struct dvt_block_desc {
    const char *kind; /* required: "Residual"; also the prefix of parameter names, in lower case */
    dvt_array *(*forward)(dvt_block *self, void *user, dvt_array *x);
    dvt_status (*infer)(dvt_block *self, void *user, dvt_array *x);
    size_t (*describe)(const dvt_block *self, void *user, char *buffer, size_t size);
    void (*release)(void *user);
    void *user;
} dvt_block_desc;

/* A block from its description, which is copied. */
DVT_API dvt_block *dvt_block_new(const dvt_block_desc *desc);
/* Registers a parameter under a short name ("weight"); extents of 0 are inferred. Owns: the block.
 */
DVT_API dvt_param *dvt_block_add_param(dvt_block *self, const char *name, dvt_shape shape,
                                       dvt_dtype dtype, dvt_init init);
DVT_API dvt_status dvt_param_set_shape(dvt_param *p, dvt_shape shape);
/* Registers a child; the block then owns it. */
DVT_API dvt_status dvt_block_add_child(dvt_block *self, dvt_block *child);

/* The number of children. */
DVT_API int dvt_block_len(const dvt_block *net);
/* net[i], negative i from the end. Owns: the net. Errors: RANGE. */
DVT_API dvt_block *dvt_block_at(dvt_block *net, int i);
/* A parameter of this block itself by short name, "weight" or "bias". Owns: the block. Errors:
 * NAME. */
DVT_API dvt_param *dvt_block_param(dvt_block *block, const char *name);
/* Its values on ctx: dvt_param_data(dvt_block_param(block, name), ctx). */
DVT_API dvt_array *dvt_block_data(dvt_block *block, const char *name, dvt_ctx ctx);
/* "Sequential", and the user pointer of a block of your own. */
DVT_API const char *dvt_block_kind(const dvt_block *block);
DVT_API void *dvt_block_user(const dvt_block *block);

/* Sets the initial values on every context of the list (each once; an empty list: the default
   context), or remembers to do so once shapes are known. Values are drawn once, on cpu(0), and
   copied: all copies have the same bits. Already initialised parameters are left alone with a
   warning unless force_reinit. Source of the order: a parameter's own rule first, then init, then
   Uniform(0.07). */
DVT_API dvt_status dvt_initialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs,
                                  bool force_reinit);
/* net(x), on x's context. Waits: no. Owns: the innermost scope. Errors: UNINITIALIZED, CONTEXT,
 * those of operations. */
DVT_API dvt_array *dvt_forward(dvt_block *net, dvt_array *x);

/* As Gluon prints it: Sequential(\n  (0): Dense(3 -> 1, linear)\n). Returns the full length. */
DVT_API size_t dvt_block_format(const dvt_block *net, char *buffer, size_t size);
DVT_API void dvt_print_block(const dvt_block *net);
/* One line per block: output shape and number of parameters, for an input of that shape. */
DVT_API dvt_status dvt_print_summary(dvt_block *net, dvt_shape input);

/* MXNet's .params with structural names ("0.weight"). Copies: the average of the copies, to main
 * memory. Waits: yes. */
DVT_API dvt_status dvt_save_parameters(dvt_block *net, const char *path);

typedef struct dvt_load_options {
    bool allow_missing; /* parameters that the file lacks keep their values */
    bool ignore_extra;  /* arrays of the file that the net lacks are skipped */
    bool cast_dtype;    /* convert instead of refusing another dtype */
} dvt_load_options;

/* Sets parameters, on those contexts (an empty list: where they are, or the default context), also
   of a net that was not initialised. options may be NULL. Nothing changes on failure. Errors: IO,
   FORMAT, NAME, SHAPE, DTYPE. */
DVT_API dvt_status dvt_load_parameters(dvt_block *net, const char *path, dvt_ctx_list ctxs,
                                       const dvt_load_options *options);

/* ---- losses: one value per sample, shape (N). Gradients flow into prediction only.
   Errors: as operations. ---- */
/* -log softmax(prediction)[label] over the last axis. label: class numbers (N, ...), of any dtype,
   or probabilities of prediction's shape, which is told by the shape. */
DVT_API dvt_array *dvt_softmax_cross_entropy(dvt_array *prediction, dvt_array *label);
/* Mean over all axes but the first of |p - l|; of (p - l)^2 / 2. */
DVT_API dvt_array *dvt_l1_loss(dvt_array *prediction, dvt_array *label);
DVT_API dvt_array *dvt_l2_loss(dvt_array *prediction, dvt_array *label);
/* Of logits: relu(p) - p l + log(1 + exp(-|p|)). */
DVT_API dvt_array *dvt_sigmoid_bce_loss(dvt_array *prediction, dvt_array *label);
/* Quadratic within rho, linear outside: d^2 / (2 rho), |d| - rho / 2. rho 1 in Gluon. Errors: RANGE
 * (rho <= 0). */
DVT_API dvt_array *dvt_huber_loss(dvt_array *prediction, dvt_array *label, double rho);
/* ==== end src/0_api/dvt_nn.h ==== */
#ifdef DEVTENSOR_LINES
#line 16 "src/0_api/dvt_api.h"
#endif
/* ==== begin src/0_api/dvt_train.h ==== */
/* [dvt:train] Optimisers, trainer, data, metrics, progress. Owns: results belong to the innermost
 * scope. */

/* ---- learning-rate schedules: values; the zero value keeps the rate ---- */
#ifdef DEVTENSOR_LINES
#line 4 "src/0_api/dvt_train.h"
#endif
typedef enum dvt_schedule_kind {
    DVT_SCHEDULE_CONSTANT,
    DVT_SCHEDULE_FACTOR,       /* times factor every `every` steps, never below minimum */
    DVT_SCHEDULE_MULTI_FACTOR, /* times factor at each of the given steps */
    DVT_SCHEDULE_POLY,         /* from base to final over total steps, (1 - t)^power */
    DVT_SCHEDULE_COSINE        /* from base to final over total steps, half a cosine */
} dvt_schedule_kind;

typedef struct dvt_schedule {
    dvt_schedule_kind kind;
    double factor, minimum, final, power;
    int64_t every, total;
    int64_t at[16];
    int n_at;
    int64_t warmup;      /* steps of linear warm-up before the schedule */
    double warmup_begin; /* rate at its start */
} dvt_schedule;

/* The fields of each kind, named above. */
DVT_API dvt_schedule dvt_schedule_factor(int64_t every, double factor, double minimum);
DVT_API dvt_schedule dvt_schedule_multi_factor(const int64_t *at, int n, double factor);
DVT_API dvt_schedule dvt_schedule_poly(int64_t total, double power, double final);
DVT_API dvt_schedule dvt_schedule_cosine(int64_t total, double final);
/* The rate at a step, from a base rate. */
DVT_API double dvt_schedule_rate(const dvt_schedule *schedule, double base, int64_t step);

/* ---- optimisers: values; change fields before making a trainer ---- */
typedef enum dvt_optimizer_kind {
    DVT_SGD,     /* Source of the momentum form: MXNet; Nesterov: Sutskever et al., 2013 */
    DVT_ADAM,    /* Kingma and Ba, 2014 */
    DVT_ADAMW,   /* Loshchilov and Hutter, 2017 */
    DVT_RMSPROP, /* Tieleman and Hinton, 2012; with momentum: Graves, 2013 */
    DVT_ADAGRAD  /* Duchi et al., 2011 */
} dvt_optimizer_kind;

typedef struct dvt_optimizer {
    dvt_optimizer_kind kind;
    double learning_rate;
    double weight_decay;
    double momentum;
    bool nesterov;
    double beta1, beta2; /* Adam, AdamW */
    double rho;          /* RMSProp: decay of the mean square */
    bool centered;       /* RMSProp: Graves' version */
    double epsilon;
    double clip_gradient; /* after rescaling, each element to [-c, c]; 0: off */
    dvt_schedule schedule;
} dvt_optimizer;

/* With the usual values of everything else. */
DVT_API dvt_optimizer dvt_sgd(double learning_rate);
DVT_API dvt_optimizer dvt_adam(double learning_rate);
DVT_API dvt_optimizer dvt_adamw(double learning_rate, double weight_decay);
DVT_API dvt_optimizer dvt_rmsprop(double learning_rate);
DVT_API dvt_optimizer dvt_adagrad(double learning_rate);

/* ---- trainer ---- */
/* Trains all parameters of the collection whose grad_req is not null. Retains them.
   Errors: CONTEXT (parameters on different context lists), RANGE (rates). */
DVT_API dvt_trainer *dvt_trainer_new(dvt_params *params, dvt_optimizer optimizer);
/* Sums the gradients over the contexts in their order, divides by batch_size and updates every
   copy: all copies keep the same bits. Waits: no. Errors: STALE_GRAD (a gradient was not renewed
   since the last step; nothing is updated), UNINITIALIZED, RANGE (batch_size <= 0). */
DVT_API dvt_status dvt_trainer_step(dvt_trainer *trainer, int64_t batch_size);
/* The same, but parameters with stale gradients are skipped; a copy whose context had no part in
   this batch counts as 0. */
DVT_API dvt_status dvt_trainer_step_partial(dvt_trainer *trainer, int64_t batch_size);
/* The two halves of a step, for changing gradients in between. */
DVT_API dvt_status dvt_trainer_allreduce(dvt_trainer *trainer);
DVT_API dvt_status dvt_trainer_update(dvt_trainer *trainer, int64_t batch_size);
DVT_API double dvt_trainer_learning_rate(const dvt_trainer *trainer);
DVT_API dvt_status dvt_trainer_set_learning_rate(dvt_trainer *trainer, double rate);
DVT_API int64_t dvt_trainer_steps(const dvt_trainer *trainer);

/* Scales arrays in place so that their common 2-norm is at most max_norm, and returns the norm it
   was (NaN on errors). Copies: the norms to main memory.  Waits: yes.  When the norm is not finite,
   nothing is scaled and a warning is logged. Source: Pascanu, Mikolov and Bengio, 2013. */
DVT_API double dvt_clip_global_norm(dvt_array *const *arrays, int n, double max_norm);
/* The same for the gradients of a trainer, after dvt_trainer_allreduce; all contexts scale alike.
   They are sums over the batch still: give max_norm times batch_size to bound their mean. */
DVT_API double dvt_trainer_clip_global_norm(dvt_trainer *trainer, double max_norm);

/* ---- data: samples are pairs of arrays in main memory ---- */
/* x and y with the same first extent; kept, not copied. On cpu contexts. */
DVT_API dvt_dataset *dvt_dataset_arrays(dvt_array *x, dvt_array *y);
/* Image and label files of MNIST's kind: uint8 samples (28, 28, 1), int32 labels. Errors: IO,
 * FORMAT. */
DVT_API dvt_dataset *dvt_dataset_idx(const char *images, const char *labels);
/* Fashion-MNIST or MNIST: finds its files in `folder` under their usual names, with or without .gz
   and with or without the prefix "fashion-" or "mnist-". Nothing is downloaded. */
DVT_API dvt_dataset *dvt_fashion_mnist(const char *folder, bool train);
DVT_API dvt_dataset *dvt_mnist(const char *folder, bool train);
DVT_API int64_t dvt_dataset_len(const dvt_dataset *data);
/* Sample i with its transforms applied. Errors: RANGE. */
DVT_API dvt_status dvt_dataset_get(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y);

/* (H, W, C) uint8 to (C, H, W) float32 in [0, 1]. */
DVT_API dvt_transform *dvt_to_tensor(void);
/* (x - mean) / deviation on (C, H, W); n values, one per channel, or n = 1 for all. */
DVT_API dvt_transform *dvt_normalize(const double *mean, const double *deviation, int n);
/* One after the other. */
DVT_API dvt_transform *dvt_compose(dvt_transform *const *transforms, int n);
/* One of your own: returns the result in the current scope, or NULL. Called from loader threads. */
DVT_API dvt_transform *dvt_transform_new(dvt_array *(*apply)(void *user, dvt_array *x), void *user);
DVT_API dvt_array *dvt_transform_apply(dvt_transform *transform, dvt_array *x);
/* A dataset whose first part of each sample passes through the transform. */
DVT_API dvt_dataset *dvt_transform_first(dvt_dataset *data, dvt_transform *transform);

typedef enum dvt_last_batch { DVT_LAST_KEEP, DVT_LAST_DISCARD, DVT_LAST_ROLLOVER } dvt_last_batch;

typedef struct dvt_loader_desc {
    int64_t batch_size; /* required */
    bool shuffle;       /* a new order every epoch */
    dvt_last_batch last_batch;
    int num_workers; /* threads that prepare batches; the batches are the same for any number */
    uint64_t seed;   /* of the shuffling */
} dvt_loader_desc;

/* Retains the data. Errors: RANGE (batch_size). */
DVT_API dvt_loader *dvt_loader_new(dvt_dataset *data, const dvt_loader_desc *desc);
/* Batches per epoch. */
DVT_API int64_t dvt_loader_len(const dvt_loader *loader);
/* The next batch, on cpu(0), in the current scope. False at the end of an epoch (the next call
   starts a new one) and on errors, which dvt_error_code() tells apart. */
DVT_API bool dvt_loader_next(dvt_loader *loader, dvt_array **x, dvt_array **y);
/* Starts the epoch again. */
DVT_API void dvt_loader_reset(dvt_loader *loader);

/* Cuts x along axis 0 into one part per context and puts each there, in out[0..ctxs.n). One
   context: x as it is there. even_split refuses sizes that the number of contexts does not divide.
 */
DVT_API dvt_status dvt_split_and_load(dvt_array *x, dvt_ctx_list ctxs, bool even_split,
                                      dvt_array **out);

/* ---- metrics ---- */
DVT_API dvt_metric *dvt_accuracy(void);
DVT_API dvt_metric *dvt_top_k_accuracy(int k);
DVT_API dvt_metric *dvt_mean_loss(void);
/* Counts a batch: labels (N) and predictions (N, classes), or for dvt_mean_loss NULL and the
   losses. Any context. Copies: one number to main memory.  Waits: yes. */
DVT_API dvt_status dvt_metric_update(dvt_metric *metric, dvt_array *labels, dvt_array *predictions);
/* The value so far; NaN before the first sample. */
DVT_API double dvt_metric_get(const dvt_metric *metric);
DVT_API const char *dvt_metric_name(const dvt_metric *metric);
DVT_API void dvt_metric_reset(dvt_metric *metric);

/* ---- progress ---- */
/* A bar with rate, loss and remaining time on a terminal, now and then a plain line elsewhere, on
 * standard error. */
DVT_API dvt_progress *dvt_progress_new(const char *title, int64_t total);
/* `done` of total, and a loss to show (NaN for none). */
DVT_API void dvt_progress_update(dvt_progress *progress, int64_t done, double loss);
DVT_API void dvt_progress_finish(dvt_progress *progress);
/* The line as it looks `seconds` after the start, in at most `width` columns; 0 gives the plain line
   without a bar. Returns the full length; writes at most `size` bytes with the final 0. */
DVT_API size_t dvt_progress_format(const dvt_progress *progress, double seconds, int width,
                                   char *buffer, size_t size);

/* Curves as an SVG picture: several named series of points. */
DVT_API dvt_curve *dvt_curve_new(const char *title, const char *x_label, const char *y_label);
DVT_API dvt_status dvt_curve_add(dvt_curve *curve, const char *series, double x, double y);
/* Errors: IO, NOT_BUILT. */
DVT_API dvt_status dvt_curve_save(dvt_curve *curve, const char *path);
/* ==== end src/0_api/dvt_train.h ==== */
#ifdef DEVTENSOR_LINES
#line 17 "src/0_api/dvt_api.h"
#endif
#endif
#endif
/* ==== end src/0_api/dvt_api.h ==== */
#ifdef DEVTENSOR_LINES
#line 5 "src/devtensor_spine.h"
#endif
#endif

/* Stop here, if you are only interested in the API: what follows is the implementation. */
#if defined(DEVTENSOR_IMPLEMENTATION) && !defined(DEVTENSOR_IMPLEMENTED)
#define DEVTENSOR_IMPLEMENTED
/* ==== begin src/0_api/dvt_call_sites_off.h ==== */
/* GENERATED from the declarations in src/0_api by tools/call_sites.py: do not edit. */
/* The implementation defines the functions, so their names must be their own again. */
#ifdef DEVTENSOR_LINES
#line 2 "src/0_api/dvt_call_sites_off.h"
#endif
#undef DVTI_CALL_SITES_ON
#undef dvt_empty
#undef dvt_zeros
#undef dvt_ones
#undef dvt_full
#undef dvt_zeros_like
#undef dvt_ones_like
#undef dvt_full_like
#undef dvt_scalar
#undef dvt_eye
#undef dvt_arange
#undef dvt_linspace
#undef dvt_from_host
#undef dvt_to_host
#undef dvt_set_from_host
#undef dvt_slice
#undef dvt_rows
#undef dvt_index
#undef dvt_t
#undef dvt_transpose
#undef dvt_swapaxes
#undef dvt_reshape
#undef dvt_flatten
#undef dvt_expand_dims
#undef dvt_squeeze
#undef dvt_broadcast_to
#undef dvt_contiguous
#undef dvt_copyto
#undef dvt_as_in_ctx
#undef dvt_copy
#undef dvt_copy_into
#undef dvt_astype
#undef dvt_fill
#undef dvt_attach_grad
#undef dvt_zero_grad
#undef dvt_backward
#undef dvt_backward_from
#undef dvt_gradients
#undef dvt_detach
#undef dvt_stop_gradient
#undef dvt_ctx_parse
#undef dvt_set_virtual_gpus
#undef dvt_device_query
#undef dvt_wait
#undef dvt_wait_all
#undef dvt_set_num_threads
#undef dvt_print
#undef dvt_print_file
#undef dvt_format
#undef dvt_save_npy
#undef dvt_load_npy
#undef dvt_save_params
#undef dvt_load_idx
#undef dvt_read_npy
#undef dvt_read_idx
#undef dvt_param_set_data
#undef dvt_param_set_grad_req
#undef dvt_param_set_lr_mult
#undef dvt_param_set_wd_mult
#undef dvt_param_set_init
#undef dvt_params_initialize
#undef dvt_params_reset_ctx
#undef dvt_params_set_grad_req
#undef dvt_params_zero_grad
#undef dvt_sequential_add
#undef dvt_param_set_shape
#undef dvt_block_add_child
#undef dvt_initialize
#undef dvt_forward
#undef dvt_print_summary
#undef dvt_save_parameters
#undef dvt_load_parameters
#undef dvt_softmax_cross_entropy
#undef dvt_l1_loss
#undef dvt_l2_loss
#undef dvt_sigmoid_bce_loss
#undef dvt_huber_loss
#undef dvt_add
#undef dvt_add_
#undef dvt_add_scalar
#undef dvt_add_scalar_
#undef dvt_scalar_add
#undef dvt_sub
#undef dvt_sub_
#undef dvt_sub_scalar
#undef dvt_sub_scalar_
#undef dvt_scalar_sub
#undef dvt_mul
#undef dvt_mul_
#undef dvt_mul_scalar
#undef dvt_mul_scalar_
#undef dvt_scalar_mul
#undef dvt_div
#undef dvt_div_
#undef dvt_div_scalar
#undef dvt_div_scalar_
#undef dvt_scalar_div
#undef dvt_floor_div
#undef dvt_floor_div_
#undef dvt_floor_div_scalar
#undef dvt_floor_div_scalar_
#undef dvt_scalar_floor_div
#undef dvt_mod
#undef dvt_mod_
#undef dvt_mod_scalar
#undef dvt_mod_scalar_
#undef dvt_scalar_mod
#undef dvt_pow
#undef dvt_pow_
#undef dvt_pow_scalar
#undef dvt_pow_scalar_
#undef dvt_scalar_pow
#undef dvt_minimum
#undef dvt_minimum_
#undef dvt_minimum_scalar
#undef dvt_minimum_scalar_
#undef dvt_scalar_minimum
#undef dvt_maximum
#undef dvt_maximum_
#undef dvt_maximum_scalar
#undef dvt_maximum_scalar_
#undef dvt_scalar_maximum
#undef dvt_atan2
#undef dvt_atan2_
#undef dvt_atan2_scalar
#undef dvt_atan2_scalar_
#undef dvt_scalar_atan2
#undef dvt_hypot
#undef dvt_hypot_
#undef dvt_hypot_scalar
#undef dvt_hypot_scalar_
#undef dvt_scalar_hypot
#undef dvt_equal
#undef dvt_equal_scalar
#undef dvt_scalar_equal
#undef dvt_not_equal
#undef dvt_not_equal_scalar
#undef dvt_scalar_not_equal
#undef dvt_less
#undef dvt_less_scalar
#undef dvt_scalar_less
#undef dvt_less_equal
#undef dvt_less_equal_scalar
#undef dvt_scalar_less_equal
#undef dvt_greater
#undef dvt_greater_scalar
#undef dvt_scalar_greater
#undef dvt_greater_equal
#undef dvt_greater_equal_scalar
#undef dvt_scalar_greater_equal
#undef dvt_logical_and
#undef dvt_logical_and_scalar
#undef dvt_scalar_logical_and
#undef dvt_logical_or
#undef dvt_logical_or_scalar
#undef dvt_scalar_logical_or
#undef dvt_logical_xor
#undef dvt_logical_xor_scalar
#undef dvt_scalar_logical_xor
#undef dvt_neg
#undef dvt_neg_
#undef dvt_abs
#undef dvt_abs_
#undef dvt_sign
#undef dvt_sign_
#undef dvt_square
#undef dvt_square_
#undef dvt_relu
#undef dvt_relu_
#undef dvt_floor
#undef dvt_floor_
#undef dvt_ceil
#undef dvt_ceil_
#undef dvt_round
#undef dvt_round_
#undef dvt_trunc
#undef dvt_trunc_
#undef dvt_reciprocal
#undef dvt_reciprocal_
#undef dvt_sqrt
#undef dvt_sqrt_
#undef dvt_rsqrt
#undef dvt_rsqrt_
#undef dvt_exp
#undef dvt_exp_
#undef dvt_exp2
#undef dvt_exp2_
#undef dvt_expm1
#undef dvt_expm1_
#undef dvt_log
#undef dvt_log_
#undef dvt_log2
#undef dvt_log2_
#undef dvt_log10
#undef dvt_log10_
#undef dvt_log1p
#undef dvt_log1p_
#undef dvt_sin
#undef dvt_sin_
#undef dvt_cos
#undef dvt_cos_
#undef dvt_tan
#undef dvt_tan_
#undef dvt_asin
#undef dvt_asin_
#undef dvt_acos
#undef dvt_acos_
#undef dvt_atan
#undef dvt_atan_
#undef dvt_sinh
#undef dvt_sinh_
#undef dvt_cosh
#undef dvt_cosh_
#undef dvt_tanh
#undef dvt_tanh_
#undef dvt_sigmoid
#undef dvt_sigmoid_
#undef dvt_softplus
#undef dvt_softplus_
#undef dvt_erf
#undef dvt_erf_
#undef dvt_gelu
#undef dvt_gelu_
#undef dvt_isnan
#undef dvt_isinf
#undef dvt_isfinite
#undef dvt_logical_not
#undef dvt_where
#undef dvt_clip
#undef dvt_clip_
#undef dvt_sum
#undef dvt_prod
#undef dvt_mean
#undef dvt_var
#undef dvt_std
#undef dvt_min
#undef dvt_max
#undef dvt_argmin
#undef dvt_argmax
#undef dvt_any
#undef dvt_all
#undef dvt_norm
#undef dvt_logsumexp
#undef dvt_softmax
#undef dvt_log_softmax
#undef dvt_matmul
#undef dvt_matmul_t
#undef dvt_dot
#undef dvt_concat
#undef dvt_stack
#undef dvt_split
#undef dvt_take
#undef dvt_take_along_axis
#undef dvt_pick
#undef dvt_one_hot
#undef dvt_conv2d
#undef dvt_max_pool2d
#undef dvt_avg_pool2d
#undef dvt_linear
#undef dvt_dropout
#undef dvt_batch_norm
#undef dvt_layer_norm
#undef dvt_uniform
#undef dvt_normal
#undef dvt_randint
#undef dvt_bernoulli
#undef dvt_permutation
#undef dvt_key_uniform
#undef dvt_key_normal
#undef dvt_key_randint
#undef dvt_key_bernoulli
#undef dvt_key_permutation
#undef dvt_trainer_step
#undef dvt_trainer_step_partial
#undef dvt_trainer_allreduce
#undef dvt_trainer_update
#undef dvt_trainer_set_learning_rate
#undef dvt_dataset_get
#undef dvt_transform_apply
#undef dvt_split_and_load
#undef dvt_metric_update
#undef dvt_curve_add
#undef dvt_curve_save
#undef dvt_dtype_parse
/* ==== end src/0_api/dvt_call_sites_off.h ==== */
#ifdef DEVTENSOR_LINES
#line 11 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_platform.h ==== */
/* The platform: the only file of the implementation that includes system headers. Linkage of internals,
   thread-local storage, atomics, mutexes, condition variables, threads, time, dynamic libraries. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_platform.h"
#endif
#ifndef DVTI_PLATFORM_H
#define DVTI_PLATFORM_H

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#include <io.h>
#else
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/auxv.h>
#endif
#if defined(__GLIBC__) && !defined(__USE_XOPEN2K)
#error "devtensor: include devtensor.h before any system header in this file, or use -std=gnu99"
#endif
#endif

/* Internal functions: static in the generated header, extern in the split build. */
#ifndef DVTI_FN
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_FN static __attribute__((__unused__))
#else
#define DVTI_FN static
#endif
#endif
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_UNUSED __attribute__((__unused__))
#else
#define DVTI_UNUSED
#endif

#if defined(__cplusplus)
#define DVTI_TLS thread_local
#elif defined(__GNUC__) || defined(__clang__)
#define DVTI_TLS __thread
#elif defined(_MSC_VER)
#define DVTI_TLS __declspec(thread)
#else
#define DVTI_TLS _Thread_local
#endif

/* Sequentially consistent counters; the builtins exist in every dialect of GCC and Clang. */
#if defined(_MSC_VER) && !defined(__clang__)
typedef volatile LONG64 dvti_atomic;
#define dvti_atomic_load(p) InterlockedCompareExchange64((p), 0, 0)
#define dvti_atomic_store(p, v) ((void)InterlockedExchange64((p), (v)))
#define dvti_atomic_add(p, v) (InterlockedExchangeAdd64((p), (v)) + (v))
#else
typedef int64_t dvti_atomic;
#define dvti_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define dvti_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define dvti_atomic_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#endif

/* ---- threads: pthreads or Win32; with DEVTENSOR_NO_THREADS locks are nothing ---- */
#if defined(DEVTENSOR_NO_THREADS)
#define DVTI_THREADS 0
typedef int dvti_mutex;
typedef int dvti_cond;
#define DVTI_MUTEX_INIT 0
#define DVTI_COND_INIT 0
#define dvti_mutex_lock(m) ((void)(m))
#define dvti_mutex_unlock(m) ((void)(m))
#elif defined(_WIN32)
#define DVTI_THREADS 1
typedef SRWLOCK dvti_mutex;
typedef CONDITION_VARIABLE dvti_cond;
typedef HANDLE dvti_thread;
#define DVTI_MUTEX_INIT SRWLOCK_INIT
#define DVTI_COND_INIT CONDITION_VARIABLE_INIT
#define dvti_mutex_lock(m) AcquireSRWLockExclusive(m)
#define dvti_mutex_unlock(m) ReleaseSRWLockExclusive(m)
#define dvti_cond_wait(c, m) ((void)SleepConditionVariableSRW((c), (m), INFINITE, 0))
#define dvti_cond_signal(c) WakeConditionVariable(c)
#define dvti_cond_broadcast(c) WakeAllConditionVariable(c)
#else
#define DVTI_THREADS 1
typedef pthread_mutex_t dvti_mutex;
typedef pthread_cond_t dvti_cond;
typedef pthread_t dvti_thread;
#define DVTI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define DVTI_COND_INIT PTHREAD_COND_INITIALIZER
#define dvti_mutex_lock(m) ((void)pthread_mutex_lock(m))
#define dvti_mutex_unlock(m) ((void)pthread_mutex_unlock(m))
#define dvti_cond_wait(c, m) ((void)pthread_cond_wait((c), (m)))
#define dvti_cond_signal(c) ((void)pthread_cond_signal(c))
#define dvti_cond_broadcast(c) ((void)pthread_cond_broadcast(c))
#endif

#endif
/* ==== end src/1_base/dvt_platform.h ==== */
#ifdef DEVTENSOR_LINES
#line 12 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_base.h ==== */
/* What every layer stands on, and knows no arrays: memory, checked sizes, this thread's error, the log,
   growing text, environment values, threads, dynamic libraries. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_base.h"
#endif
#ifndef DVTI_BASE_H
#define DVTI_BASE_H
#ifdef DEVTENSOR_LINES
#line 6 "src/1_base/dvt_base.h"
#endif

#define DVTI_STRINGIFY_(x) #x
#define DVTI_STRINGIFY(x) DVTI_STRINGIFY_(x)
#define DVTI_LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define DVTI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DVTI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- memory: everything comes from here, so that a test can make any allocation fail ---- */
/* NULL when exhausted, without setting an error; size 0 gives a block that may be freed. */
DVTI_FN void *dvti_alloc(size_t bytes);
DVTI_FN void *dvti_alloc_zero(size_t bytes);
DVTI_FN void dvti_free(void *block);
/* 64-byte aligned, for elements. Pair with dvti_free_aligned. */
DVTI_FN void *dvti_alloc_aligned(size_t bytes);
DVTI_FN void dvti_free_aligned(void *block);
/* Makes room for `need` items in a growing array; false when exhausted (the array is unchanged). */
DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size);
DVTI_FN char *dvti_strdup(const char *text);
/* a * b and a + b for sizes >= 0; false when it does not fit. */
DVTI_FN bool dvti_mul(int64_t a, int64_t b, int64_t *out);
DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out);

/* ---- errors ---- */
/* Keeps the first failure of this thread, logs it, and returns the code. The sentence says: function, what was given,
   what was expected, what to do. */
DVTI_FN dvt_status dvti_fail(dvt_status code, const char *format, ...) DVT_PRINTF(2, 3);
/* The common two. dvti_null: argument `what` of `function` is NULL; silent when an error is already kept, since NULL
   is then that error travelling through a chain. */
DVTI_FN dvt_status dvti_fail_memory(const char *function, int64_t bytes);
DVTI_FN dvt_status dvti_null(const char *function, const char *what);
DVTI_FN void dvti_log(dvt_log_level level, const char *format, ...) DVT_PRINTF(2, 3);
/* Remembers where the failing call stands, unless it is known. */
DVTI_FN void dvti_error_at(const char *file, int line);

/* ---- growing text with a fixed end: length counts what would have been written ---- */
typedef struct dvti_text {
    char *at;
    size_t size, length;
} dvti_text;

DVTI_FN dvti_text dvti_text_begin(char *buffer, size_t size);
DVTI_FN void dvti_text_add(dvti_text *text, const char *format, ...) DVT_PRINTF(2, 3);
DVTI_FN void dvti_text_char(dvti_text *text, char c, int64_t times);
/* Small texts for messages: a ring of 16 buffers per thread. */
#define DVTI_NAME_SIZE 160
DVTI_FN char *dvti_name_buffer(void);
/* "(2, 3)", "(3,)", "()". */
DVTI_FN const char *dvti_shape_text(dvt_shape shape);

/* ---- environment ---- */
/* NULL when unset, empty, or not to be trusted (set-user-id programs). */
DVTI_FN const char *dvti_env(const char *name);
/* A whole number of low..high; `fallback` when unset; a warning and `fallback` when it is something else. */
DVTI_FN int64_t dvti_env_int(const char *name, int64_t low, int64_t high, int64_t fallback);
/* A number with an optional suffix K, M, G (powers of 1024); -1 when the text is something else. */
DVTI_FN int64_t dvti_parse_bytes(const char *text);

/* ---- threads ---- */
/* Calls body(user, begin, end) over disjoint ranges that cover 0..n, on the caller and the pool's threads. Ranges are not
   smaller than `grain`. Nested calls, and calls from device queues, run in the caller. Never fails. */
typedef void (*dvti_range_fn)(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_parallel_for(int64_t n, int64_t grain, dvti_range_fn body, void *user);
/* How many threads may take part in a dvti_parallel_for that this thread starts. */
DVTI_FN int dvti_parallel_width(void);
/* This thread runs everything itself from now on (device queues, loader workers). */
DVTI_FN void dvti_parallel_off(void);
DVTI_FN int dvti_cpu_count(void);
#if DVTI_THREADS
/* Starts a thread with all signals blocked; false when the system refuses. */
DVTI_FN bool dvti_thread_start(dvti_thread *thread, void (*run)(void *), void *user);
DVTI_FN void dvti_thread_join(dvti_thread thread);
#endif
/* Calls `run` when this thread ends (once per thread) and, for the main thread, at exit. */
DVTI_FN void dvti_at_thread_end(void (*run)(void));
DVTI_FN int64_t dvti_process_id(void);
DVTI_FN double dvti_now(void);

/* ---- dynamic libraries ---- */
DVTI_FN void *dvti_library_open(const char *name);
DVTI_FN void *dvti_library_symbol(void *library, const char *name);

#endif
/* ==== end src/1_base/dvt_base.h ==== */
#ifdef DEVTENSOR_LINES
#line 13 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_mem.c ==== */
/* Memory: one door for every allocation of the library, and the arithmetic of sizes. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_mem.c"
#endif

static void *dvti_default_alloc(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}

static void *dvti_default_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return realloc(block, bytes);
}

static void dvti_default_release(void *user, void *block) {
    (void)user;
    free(block);
}

static dvt_allocator dvti_allocator = {dvti_default_alloc, dvti_default_resize,
                                       dvti_default_release, NULL};

DVT_API void dvt_set_allocator(const dvt_allocator *allocator) {
    dvt_allocator standard = {dvti_default_alloc, dvti_default_resize, dvti_default_release, NULL};
    dvti_allocator = allocator ? *allocator : standard;
}

/* malloc(0) may return NULL, which is not "exhausted": ask for one byte instead. */
DVTI_FN void *dvti_alloc(size_t bytes) {
    return dvti_allocator.alloc(dvti_allocator.user, bytes ? bytes : 1);
}

DVTI_FN void *dvti_alloc_zero(size_t bytes) {
    void *block = dvti_alloc(bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

DVTI_FN void dvti_free(void *block) {
    if (block)
        dvti_allocator.release(dvti_allocator.user, block);
}

/* The address of the block itself stands in the word before the aligned address. */
DVTI_FN void *dvti_alloc_aligned(size_t bytes) {
    char *block, *at;
    if (bytes > SIZE_MAX - 128)
        return NULL;
    block = (char *)dvti_alloc(bytes + 64 + sizeof(void *));
    if (!block)
        return NULL;
    at = block + sizeof(void *);
    at += (64 - ((uintptr_t)at & 63)) & 63;
    memcpy(at - sizeof(void *), &block, sizeof block);
    return at;
}

DVTI_FN void dvti_free_aligned(void *block) {
    void *start;
    if (!block)
        return;
    memcpy(&start, (char *)block - sizeof(void *), sizeof start);
    dvti_free(start);
}

DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size) {
    size_t room = *capacity ? *capacity : 8;
    void *block;
    if (need <= *capacity)
        return true;
    while (room < need) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }
    if (room > SIZE_MAX / item_size)
        return false;
    block = *items ? dvti_allocator.resize(dvti_allocator.user, *items, room * item_size)
                   : dvti_alloc(room * item_size);
    if (!block)
        return false;
    *items = block;
    *capacity = room;
    return true;
}

DVTI_FN char *dvti_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = (char *)dvti_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

DVTI_FN bool dvti_mul(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || (b && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}
/* ==== end src/1_base/dvt_mem.c ==== */
#ifdef DEVTENSOR_LINES
#line 14 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_rng.c ==== */
/* The random generators: Philox 4x32-10, Threefry 2x32-20, MT19937. Plain functions on words; know no arrays. */
#ifdef DEVTENSOR_LINES
#line 1 "src/1_base/dvt_rng.c"
#endif
/* ==== begin src/1_base/dvt_rng.h ==== */
/* The random generators as plain functions on words: Philox 4x32-10, Threefry 2x32-20, MT19937, and what turns words into
   numbers the way other libraries do. No state of their own, no arrays, no memory. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_rng.h"
#endif
#ifndef DVTI_RNG_H
#define DVTI_RNG_H
#ifdef DEVTENSOR_LINES
#line 5 "src/1_base/dvt_rng.h"
#endif

/* Which generator a launch uses (i[0] of DVTI_K_RANDOM). */
typedef enum dvti_rng {
    DVTI_RNG_PHILOX,   /* streams, and keys of DVT_RNG_PHILOX and DVT_RNG_MXNET */
    DVTI_RNG_THREEFRY, /* keys of DVT_RNG_JAX */
    DVTI_RNG_MT19937,  /* DVT_RNG_MXNET on cpu() */
    DVTI_RNG_CURAND    /* DVT_RNG_MXNET on gpu(i): Philox in cuRAND's layout of subsequences */
} dvti_rng;

/* What a counter's last word says, so that no two uses of one key ever share a counter. The streams of cpu(i) and gpu(i) have
   DVT_DEVICE_CPU (1) or DVT_DEVICE_GPU (2) there, and i in the word before it. */
enum { DVTI_COUNTER_KEYED = 3, DVTI_COUNTER_SPLIT = 4, DVTI_COUNTER_FOLD_IN = 5 };

/* Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011. */
DVTI_FN void dvti_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
DVTI_FN void dvti_threefry2x32(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2]);

/* Source: Matsumoto, Nishimura: Mersenne twister. ACM TOMACS 8(1), 1998; the seeding of 2002. */
#define DVTI_MT19937_WORDS 624

typedef struct dvti_mt19937 {
    uint32_t word[DVTI_MT19937_WORDS];
    uint32_t at; /* words used since the last refill */
} dvti_mt19937;

DVTI_FN void dvti_mt19937_seed(dvti_mt19937 *state, uint32_t seed);
DVTI_FN uint32_t dvti_mt19937_next(dvti_mt19937 *state);

/* The upper half of a 128-bit product: a * b / 2^64. Uniform 64-bit a and any b give a number of 0..b-1, each with
   probability 1/b to within 2^-64. */
DVTI_FN uint64_t dvti_mulhi64(uint64_t a, uint64_t b);

/* JAX's original layout. Word j of n: counters 0..n-1 in two halves, an odd n padded by a 0; blocks of 2^32 - 1 words have keys of
   their own. Element e of n of `width` bits (8, 16, 32, 64): small ones share a word, lowest bits first; large ones take word
   e and word n + e of 2n. */
DVTI_FN uint32_t dvti_jax_word(const uint32_t key[2], int64_t n, int64_t j);
DVTI_FN uint64_t dvti_jax_bits(const uint32_t key[2], int64_t n, int64_t e, int width);

/* Inverse error function on (-1, 1); the ends give infinities. Source: Giles: Approximating the erfinv function. GPU
   Computing Gems, 2011. Relative error below 4e-7 and 4e-15; in the far tails of
   float32 5e-6, because 1 - x * x is formed as XLA does. */
DVTI_FN float dvti_erfinv_f32(float x);
DVTI_FN double dvti_erfinv_f64(double x);

#endif
/* ==== end src/1_base/dvt_rng.h ==== */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_rng.c"
#endif

DVTI_FN void dvti_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    int round;
    for (round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

DVTI_FN void dvti_threefry2x32(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2]) {
    static const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t schedule[3], x0, x1;
    int i, r;
    schedule[0] = key[0];
    schedule[1] = key[1];
    schedule[2] = key[0] ^ key[1] ^ 0x1BD11BDAu;
    x0 = counter[0] + schedule[0];
    x1 = counter[1] + schedule[1];
    for (i = 0; i < 5; i++) {
        for (r = 0; r < 4; r++) {
            int turn = turns[4 * (i & 1) + r];
            x0 += x1;
            x1 = (x1 << turn | x1 >> (32 - turn)) ^ x0;
        }
        x0 += schedule[(i + 1) % 3];
        x1 += schedule[(i + 2) % 3] + (uint32_t)(i + 1);
    }
    out[0] = x0;
    out[1] = x1;
}

/* ---- MT19937 ---- */
DVTI_FN void dvti_mt19937_seed(dvti_mt19937 *state, uint32_t seed) {
    uint32_t *s = state->word;
    int i;
    s[0] = seed;
    for (i = 1; i < DVTI_MT19937_WORDS; i++)
        s[i] = 1812433253u * (s[i - 1] ^ s[i - 1] >> 30) + (uint32_t)i;
    state->at = DVTI_MT19937_WORDS;
}

static void dvti_mt19937_refill(dvti_mt19937 *state) {
    uint32_t *s = state->word;
    int n = DVTI_MT19937_WORDS, i;
    for (i = 0; i < n; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % n] & 0x7fffffffu);
        s[i] = s[(i + 397) % n] ^ y >> 1 ^ (y & 1u ? 0x9908b0dfu : 0u);
    }
    state->at = 0;
}

DVTI_FN uint32_t dvti_mt19937_next(dvti_mt19937 *state) {
    uint32_t y;
    if (state->at >= DVTI_MT19937_WORDS)
        dvti_mt19937_refill(state);
    y = state->word[state->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* ---- words to numbers ---- */
DVTI_FN uint64_t dvti_mulhi64(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

DVTI_FN uint32_t dvti_jax_word(const uint32_t key[2], int64_t n, int64_t j) {
    const int64_t block = 0xffffffff;
    uint32_t counter[2], out[2], own[2];
    int64_t blocks = n / block, half;
    own[0] = key[0];
    own[1] = key[1];
    if (blocks) { /* as many keys as blocks, and one for the rest */
        int64_t at = j / block, words = 2 * (blocks + 1);
        own[0] = dvti_jax_word(key, words, 2 * at);
        own[1] = dvti_jax_word(key, words, 2 * at + 1);
        n = at < blocks ? block : n - blocks * block;
        j -= at * block;
    }
    half = (n + 1) / 2;
    counter[0] = (uint32_t)(j < half ? j : j - half);
    counter[1] = counter[0] + (uint32_t)half;
    if ((int64_t)counter[0] + half >= n) /* the padding */
        counter[1] = 0;
    dvti_threefry2x32(own, counter, out);
    return out[j < half ? 0 : 1];
}

DVTI_FN uint64_t dvti_jax_bits(const uint32_t key[2], int64_t n, int64_t e, int width) {
    int in_word = 32 / width;
    if (width == 64)
        return (uint64_t)dvti_jax_word(key, 2 * n, e) << 32 | dvti_jax_word(key, 2 * n, n + e);
    if (width == 32)
        return dvti_jax_word(key, n, e);
    return dvti_jax_word(key, (n + in_word - 1) / in_word, e / in_word) >> width * (e % in_word) &
           ((1u << width) - 1);
}

/* ---- the inverse error function: a polynomial in w = -log(1 - x*x), and one in its root for the tails ---- */
DVTI_FN float dvti_erfinv_f32(float x) {
    static const float middle[9] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                    -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                    -0.00417768164f,  0.246640727f,    1.50140941f};
    static const float tail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                  -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                  0.00943887047f,   1.00167406f,     2.83297682f};
    float w = -log1pf(-x * x), p;
    const float *c = w < 5 ? middle : tail;
    int i;
    if (fabsf(x) >= 1)
        return x > 0 ? (float)HUGE_VAL : -(float)HUGE_VAL;
    w = w < 5 ? w - 2.5f : sqrtf(w) - 3;
    p = c[0];
    for (i = 1; i < 9; i++)
        p = c[i] + p * w;
    return p * x;
}

DVTI_FN double dvti_erfinv_f64(double x) {
    static const double middle[23] = {
        -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
        1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
        6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
        2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
        4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
        0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
        0.24015818242558961693,     1.6536545626831027356};
    static const double tail[19] = {
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
        1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
        2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
        6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
        -0.0037512085075692412107, 0.005370914553590063617,   1.0052589676941592334,
        3.0838856104922207635};
    static const double far_tail[17] = {
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
        2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
        -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
        7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
        1.0103004648645343977,      4.8499064014085844221};
    double w = -log((1 - x) * (1 + x)), p; /* 1 - x * x would lose what is left of the tails */
    const double *c = w < 6.25 ? middle : w < 16 ? tail : far_tail;
    int n = w < 6.25 ? 23 : w < 16 ? 19 : 17, i;
    if (fabs(x) >= 1)
        return x > 0 ? HUGE_VAL : -HUGE_VAL;
    w = w < 6.25 ? w - 3.125 : sqrt(w) - (w < 16 ? 3.25 : 5.0);
    p = c[0];
    for (i = 1; i < n; i++)
        p = c[i] + p * w;
    return p * x;
}
/* ==== end src/1_base/dvt_rng.c ==== */
#ifdef DEVTENSOR_LINES
#line 15 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_status.c ==== */
/* This thread's first failure, the table of statuses, and the log. Needs no memory, so it works when there is none. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_status.c"
#endif

typedef struct dvti_error_state {
    dvt_status code;
    char text[1024];
    char site[192];
} dvti_error_state;

static DVTI_TLS dvti_error_state dvti_error_kept;

DVT_API dvt_status dvt_error_code(void) {
    return dvti_error_kept.code;
}

DVT_API const char *dvt_error(void) {
    return dvti_error_kept.code ? dvti_error_kept.text : "";
}

DVT_API const char *dvt_error_site(void) {
    return dvti_error_kept.code ? dvti_error_kept.site : "";
}

DVT_API void dvt_clear_error(void) {
    dvti_error_kept.code = DVT_OK;
    dvti_error_kept.text[0] = 0;
    dvti_error_kept.site[0] = 0;
}

/* ---- the table ---- */
typedef struct dvti_status_row {
    int number;
    const char *name, *meaning, *fix;
} dvti_status_row;

#define DVTI_STATUS_ROW(name, number, meaning, fix) {number, "DVT_ERR_" #name, meaning, fix},
static const dvti_status_row dvti_status_rows[] = {DVT_STATUS_TABLE(DVTI_STATUS_ROW)};
#undef DVTI_STATUS_ROW

static const dvti_status_row *dvti_status_find(dvt_status status) {
    static const dvti_status_row unknown = {-1, "DVT_ERR_?", "not a status of devtensor", ""};
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_status_rows); i++)
        if (dvti_status_rows[i].number == (int)status)
            return &dvti_status_rows[i];
    return &unknown;
}

DVT_API const char *dvt_status_name(dvt_status status) {
    return dvti_status_find(status)->name;
}

DVT_API const char *dvt_status_meaning(dvt_status status) {
    return dvti_status_find(status)->meaning;
}

DVT_API const char *dvt_status_fix(dvt_status status) {
    return dvti_status_find(status)->fix;
}

DVT_API const char *dvt_version(void) {
    return DVT_VERSION_STRING;
}

DVT_API int dvt_version_number(void) {
    return DVT_VERSION;
}

/* ---- the log ---- */
static void dvti_default_logger(void *user, dvt_log_level level, const char *message);
static dvti_mutex dvti_log_lock = DVTI_MUTEX_INIT;
static dvt_log_fn dvti_logger = dvti_default_logger;
static void *dvti_logger_user;
static int dvti_log_level_set = -1;

static void dvti_default_logger(void *user, dvt_log_level level, const char *message) {
    (void)user;
#if defined(DEVTENSOR_NO_STDERR)
    (void)level;
    (void)message;
#else
    {
        static const char *const names[] = {"debug", "info", "warning", "error"};
        if ((int)level >= 0 && (int)level < 4)
            fprintf(stderr, "devtensor %s: %s\n", names[level], message);
    }
#endif
}

static int dvti_log_level_from_environment(void) {
    static const char *const names[] = {"debug", "info", "warning", "error", "off"};
    const char *value = dvti_env("DEVTENSOR_LOG");
    int i;
    for (i = 0; value && i < 5; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    return DVT_LOG_WARNING;
}

DVT_API void dvt_set_logger(dvt_log_fn function, void *user) {
    dvti_mutex_lock(&dvti_log_lock);
    dvti_logger = function;
    dvti_logger_user = user;
    dvti_mutex_unlock(&dvti_log_lock);
}

DVT_API void dvt_set_log_level(dvt_log_level level) {
    dvti_mutex_lock(&dvti_log_lock);
    dvti_log_level_set = (int)level;
    dvti_mutex_unlock(&dvti_log_lock);
}

static void dvti_log_text(dvt_log_level level, const char *text) {
    dvti_mutex_lock(&dvti_log_lock);
    if (dvti_log_level_set < 0)
        dvti_log_level_set = dvti_log_level_from_environment();
    /* The level filters the default logger only: a logger of the caller's own sees everything. */
    if (dvti_logger && (dvti_logger != dvti_default_logger || (int)level >= dvti_log_level_set))
        dvti_logger(dvti_logger_user, level, text);
    dvti_mutex_unlock(&dvti_log_lock);
}

DVTI_FN void dvti_log(dvt_log_level level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dvti_log_text(level, text);
}

/* ---- failing ---- */
DVTI_FN dvt_status dvti_fail(dvt_status code, const char *format, ...) {
    char text[sizeof dvti_error_kept.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!dvti_error_kept.code) {
        dvti_error_kept.code = code;
        memcpy(dvti_error_kept.text, text, sizeof text);
        dvti_error_kept.site[0] = 0;
    }
    dvti_log_text(DVT_LOG_ERROR, text);
    return code;
}

DVTI_FN dvt_status dvti_fail_memory(const char *function, int64_t bytes) {
    return dvti_fail(
        DVT_ERR_HOST_MEMORY,
        "%s: no main memory left for %lld bytes; free arrays or work in smaller pieces", function,
        (long long)bytes);
}

DVTI_FN dvt_status dvti_null(const char *function, const char *what) {
    if (dvti_error_kept.code)
        return dvti_error_kept.code;
    return dvti_fail(DVT_ERR_NULL_ARGUMENT, "%s: %s is NULL; check the call that made it", function,
                     what);
}

DVTI_FN void dvti_error_at(const char *file, int line) {
    if (dvti_error_kept.code && !dvti_error_kept.site[0])
        snprintf(dvti_error_kept.site, sizeof dvti_error_kept.site, "%s:%d", file, line);
}
/* ==== end src/1_base/dvt_status.c ==== */
#ifdef DEVTENSOR_LINES
#line 16 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_text.c ==== */
/* Text for messages and tables, and values from the environment. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_text.c"
#endif

DVTI_FN dvti_text dvti_text_begin(char *buffer, size_t size) {
    dvti_text text;
    text.at = buffer;
    text.size = buffer ? size : 0;
    text.length = 0;
    if (text.size)
        buffer[0] = 0;
    return text;
}

DVTI_FN void dvti_text_add(dvti_text *text, const char *format, ...) {
    size_t room = text->size > text->length ? text->size - text->length : 0;
    va_list args;
    int written;
    va_start(args, format);
    written = vsnprintf(room ? text->at + text->length : NULL, room, format, args);
    va_end(args);
    if (written > 0)
        text->length += (size_t)written;
}

DVTI_FN void dvti_text_char(dvti_text *text, char c, int64_t times) {
    for (; times > 0; times--) {
        if (text->length + 1 < text->size) {
            text->at[text->length] = c;
            text->at[text->length + 1] = 0;
        }
        text->length++;
    }
}

DVTI_FN char *dvti_name_buffer(void) {
    static DVTI_TLS char ring[16][DVTI_NAME_SIZE];
    static DVTI_TLS unsigned next;
    return ring[next++ % 16];
}

DVTI_FN const char *dvti_shape_text(dvt_shape shape) {
    char *buffer = dvti_name_buffer();
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i;
    dvti_text_add(&text, "(");
    for (i = 0; i < shape.ndim && i < DVT_MAX_DIMS; i++)
        dvti_text_add(&text, "%s%lld", i ? ", " : "", (long long)shape.dim[i]);
    dvti_text_add(&text, shape.ndim == 1 ? ",)" : ")");
    return buffer;
}

/* A set-user-id program must not let its caller's environment steer it. */
DVTI_FN const char *dvti_env(const char *name) {
    const char *value;
#if defined(__linux__) && defined(AT_SECURE)
    if (getauxval(AT_SECURE))
        return NULL;
#endif
    value = getenv(name);
    return value && value[0] ? value : NULL;
}

DVTI_FN int64_t dvti_env_int(const char *name, int64_t low, int64_t high, int64_t fallback) {
    const char *value = dvti_env(name);
    char *end;
    long long number;
    if (!value)
        return fallback;
    errno = 0;
    number = strtoll(value, &end, 10);
    if (errno || end == value || *end || number < low || number > high) {
        dvti_log(DVT_LOG_WARNING, "%s=%s is not a whole number of %lld..%lld; %lld is used", name,
                 value, (long long)low, (long long)high, (long long)fallback);
        return fallback;
    }
    return number;
}

DVTI_FN int64_t dvti_parse_bytes(const char *text) {
    char *end;
    long long number;
    int64_t unit = 1, bytes;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno || end == text || number < 0)
        return -1;
    if (*end == 'K' || *end == 'k')
        unit = 1024;
    else if (*end == 'M' || *end == 'm')
        unit = 1024 * 1024;
    else if (*end == 'G' || *end == 'g')
        unit = (int64_t)1024 * 1024 * 1024;
    if (unit > 1)
        end++;
    if (end[0] == 'i' && end[1] == 'B')
        end += 2;
    else if (end[0] == 'B')
        end++;
    return *end == 0 && dvti_mul(number, unit, &bytes) ? bytes : -1;
}
/* ==== end src/1_base/dvt_text.c ==== */
#ifdef DEVTENSOR_LINES
#line 17 "src/devtensor_spine.h"
#endif
/* ==== begin src/1_base/dvt_thread.c ==== */
/* Threads: starting and ending, the pool behind dvti_parallel_for, time, processors, dynamic libraries. */
#ifdef DEVTENSOR_LINES
#line 2 "src/1_base/dvt_thread.c"
#endif

DVTI_FN double dvti_now(void) {
#if defined(_WIN32)
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart / (double)rate.QuadPart;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

DVT_API double dvt_seconds(void) {
    return dvti_now();
}

DVTI_FN int64_t dvti_process_id(void) {
#if defined(_WIN32)
    return (int64_t)GetCurrentProcessId();
#else
    return (int64_t)getpid();
#endif
}

#if defined(__linux__)
/* The processors that a container's quota pays for, rounded up; 0 when there is no quota (cgroup v2, then v1). */
static int dvti_quota(void) {
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
            quota = -1;
        fclose(file);
    } else {
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
        if (file) {
            if (fscanf(file, "%lld", &quota) != 1)
                quota = -1;
            fclose(file);
        }
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
        if (file) {
            if (fscanf(file, "%lld", &period) != 1)
                period = 0;
            fclose(file);
        }
    }
    return quota > 0 && period > 0 ? (int)DVTI_MIN((quota + period - 1) / period, 4096) : 0;
}
#endif

DVTI_FN int dvti_cpu_count(void) {
#if defined(_WIN32)
    return (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#elif defined(__linux__)
    /* Plain words instead of a cpu_set_t, which ends at 1024 processors. */
    unsigned long mask[256] = {0};
    int count = 0, quota = dvti_quota();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *)(void *)mask) == 0) {
        int i;
        for (i = 0; i < DVTI_LENGTH(mask); i++) {
            unsigned long word = mask[i];
            for (; word; word &= word - 1)
                count++;
        }
    }
    if (count < 1)
        count = online > 0 ? (int)online : 1;
    return quota > 0 && quota < count ? quota : count;
#else
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
#endif
}

DVTI_FN void *dvti_library_open(const char *name) {
#if defined(_WIN32)
    return (void *)LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
#else
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

DVTI_FN void *dvti_library_symbol(void *library, const char *name) {
#if defined(_WIN32)
    FARPROC symbol = GetProcAddress((HMODULE)library, name);
    void *result;
    memcpy(&result, &symbol, sizeof result);
    return result;
#else
    return dlsym(library, name);
#endif
}

/* ---- the end of a thread ---- */
static DVTI_TLS void (*dvti_thread_end_hook)(void);

#if DVTI_THREADS && !defined(_WIN32)
static pthread_key_t dvti_end_key;
static pthread_once_t dvti_end_once = PTHREAD_ONCE_INIT;
static bool dvti_end_key_made;

static void dvti_run_thread_end(void *hook) {
    (void)hook;
    if (dvti_thread_end_hook)
        dvti_thread_end_hook();
    dvti_thread_end_hook = NULL;
}

static void dvti_run_exit(void) {
    dvti_run_thread_end(NULL);
}

static void dvti_make_end_key(void) {
    dvti_end_key_made = pthread_key_create(&dvti_end_key, dvti_run_thread_end) == 0;
    atexit(dvti_run_exit);
}

DVTI_FN void dvti_at_thread_end(void (*run)(void)) {
    if (dvti_thread_end_hook)
        return;
    pthread_once(&dvti_end_once, dvti_make_end_key);
    dvti_thread_end_hook = run;
    if (dvti_end_key_made)
        pthread_setspecific(dvti_end_key, &dvti_end_key);
}
#else
static void dvti_run_exit(void) {
    if (dvti_thread_end_hook)
        dvti_thread_end_hook();
    dvti_thread_end_hook = NULL;
}

#if defined(_WIN32)
static void NTAPI dvti_run_fiber_end(void *hook) {
    if (hook)
        dvti_run_exit();
}
#endif

DVTI_FN void dvti_at_thread_end(void (*run)(void)) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    static bool registered;
#if defined(_WIN32)
    static DWORD slot = FLS_OUT_OF_INDEXES;
#endif
    if (dvti_thread_end_hook)
        return;
    dvti_thread_end_hook = run;
    dvti_mutex_lock(&lock);
    if (!registered) {
        registered = true;
        atexit(dvti_run_exit);
#if defined(_WIN32)
        slot = FlsAlloc(dvti_run_fiber_end);
#endif
    }
    dvti_mutex_unlock(&lock);
#if defined(_WIN32)
    if (slot != FLS_OUT_OF_INDEXES)
        FlsSetValue(slot, (void *)1);
#endif
}
#endif

/* ---- the pool ---- */
static DVTI_TLS int dvti_serial_depth;

DVTI_FN void dvti_parallel_off(void) {
    dvti_serial_depth = 1;
}

#if DVTI_THREADS

typedef struct dvti_thread_args {
    void (*run)(void *);
    void *user;
} dvti_thread_args;

#if defined(_WIN32)
static DWORD WINAPI dvti_thread_main(void *block)
#else
static void *dvti_thread_main(void *block)
#endif
{
    dvti_thread_args args = *(dvti_thread_args *)block;
    dvti_free(block);
    args.run(args.user);
    return 0;
}

DVTI_FN bool dvti_thread_start(dvti_thread *thread, void (*run)(void *), void *user) {
    dvti_thread_args *args = (dvti_thread_args *)dvti_alloc(sizeof *args);
    bool started;
    if (!args)
        return false;
    args->run = run;
    args->user = user;
#if defined(_WIN32)
    *thread = CreateThread(NULL, 0, dvti_thread_main, args, 0, NULL);
    started = *thread != NULL;
#else
    {
        /* Signals belong to the program's own threads. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        started = pthread_create(thread, NULL, dvti_thread_main, args) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
#endif
    if (!started)
        dvti_free(args);
    return started;
}

DVTI_FN void dvti_thread_join(dvti_thread thread) {
#if defined(_WIN32)
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
#else
    pthread_join(thread, NULL);
#endif
}

/* One job at a time. Whoever takes part draws ranges from the cursor; the caller can finish alone, and only waits for
   threads that have drawn something. */
typedef struct dvti_pool {
    dvti_mutex lock;
    dvti_cond work, done;
    dvti_mutex busy; /* held by the thread whose job runs; others run theirs serially */
    int threads;     /* 0: not decided yet */
    int started;
    int64_t process;
    int64_t job; /* counts jobs, so that a worker sees a new one */
    int active;  /* workers inside the current job */
    dvti_range_fn body;
    void *user;
    int64_t n, step;
    dvti_atomic cursor;
} dvti_pool;

static dvti_pool dvti_the_pool = {DVTI_MUTEX_INIT,
                                  DVTI_COND_INIT,
                                  DVTI_COND_INIT,
                                  DVTI_MUTEX_INIT,
                                  0,
                                  0,
                                  0,
                                  0,
                                  0,
                                  NULL,
                                  NULL,
                                  0,
                                  0,
                                  0};

static void dvti_pool_draw(dvti_pool *pool, dvti_range_fn body, void *user, int64_t n,
                           int64_t step) {
    for (;;) {
        int64_t end = dvti_atomic_add(&pool->cursor, step), begin = end - step;
        if (begin >= n)
            return;
        body(user, begin, DVTI_MIN(end, n));
    }
}

static void dvti_pool_worker(void *user) {
    dvti_pool *pool = (dvti_pool *)user;
    int64_t seen = 0;
    dvti_serial_depth = 1;
    dvti_mutex_lock(&pool->lock);
    for (;;) {
        dvti_range_fn body;
        void *arg;
        int64_t n, step;
        while (pool->job == seen || !pool->body)
            dvti_cond_wait(&pool->work, &pool->lock);
        seen = pool->job;
        body = pool->body;
        arg = pool->user;
        n = pool->n;
        step = pool->step;
        pool->active++;
        dvti_mutex_unlock(&pool->lock);
        dvti_pool_draw(pool, body, arg, n, step);
        dvti_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            dvti_cond_signal(&pool->done);
    }
}

/* With busy held. A forked child has none of the threads: it starts its own. */
static int dvti_pool_ready(dvti_pool *pool) {
    dvti_thread thread;
    if (pool->process != dvti_process_id()) {
        dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
        dvti_cond fresh_cond = DVTI_COND_INIT;
        memcpy(&pool->lock, &fresh_lock, sizeof fresh_lock);
        memcpy(&pool->work, &fresh_cond, sizeof fresh_cond);
        memcpy(&pool->done, &fresh_cond, sizeof fresh_cond);
        pool->started = pool->active = 0;
        pool->process = dvti_process_id();
    }
    if (!pool->threads)
        pool->threads =
            (int)dvti_env_int("DEVTENSOR_NUM_THREADS", 1, 256, DVTI_MIN(dvti_cpu_count(), 256));
    while (pool->started < pool->threads - 1 &&
           dvti_thread_start(&thread, dvti_pool_worker, pool)) {
#if defined(_WIN32)
        CloseHandle(thread);
#else
        pthread_detach(thread);
#endif
        pool->started++;
    }
    return DVTI_MIN(pool->started + 1, pool->threads);
}

DVTI_FN void dvti_parallel_for(int64_t n, int64_t grain, dvti_range_fn body, void *user) {
    dvti_pool *pool = &dvti_the_pool;
    int threads;
    if (n <= 0)
        return;
    grain = DVTI_MAX(grain, 1);
    if (n <= grain || dvti_serial_depth || pool->threads == 1) {
        body(user, 0, n);
        return;
    }
#if defined(_WIN32)
    if (!TryAcquireSRWLockExclusive(&pool->busy))
#else
    if (pthread_mutex_trylock(&pool->busy))
#endif
    {
        body(user, 0, n);
        return;
    }
    dvti_serial_depth = 1;
    threads = dvti_pool_ready(pool);
    if (threads == 1) {
        body(user, 0, n);
    } else {
        dvti_mutex_lock(&pool->lock);
        pool->body = body;
        pool->user = user;
        pool->n = n;
        pool->step = DVTI_MAX(grain, n / (threads * 4));
        dvti_atomic_store(&pool->cursor, 0);
        pool->job++;
        dvti_cond_broadcast(&pool->work);
        dvti_mutex_unlock(&pool->lock);
        dvti_pool_draw(pool, body, user, n, pool->step);
        dvti_mutex_lock(&pool->lock);
        pool->body = NULL; /* whoever wakes late finds nothing to do */
        while (pool->active)
            dvti_cond_wait(&pool->done, &pool->lock);
        dvti_mutex_unlock(&pool->lock);
    }
    dvti_serial_depth = 0;
    dvti_mutex_unlock(&pool->busy);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    dvti_pool *pool = &dvti_the_pool;
    if (n < 0 || n > 256)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to 256", n);
    dvti_mutex_lock(&pool->busy);
    pool->threads = n;
    dvti_mutex_unlock(&pool->busy);
    return DVT_OK;
}

DVT_API int dvt_num_threads(void) {
    dvti_pool *pool = &dvti_the_pool;
    int n;
    dvti_mutex_lock(&pool->busy);
    if (!pool->threads)
        pool->threads =
            (int)dvti_env_int("DEVTENSOR_NUM_THREADS", 1, 256, DVTI_MIN(dvti_cpu_count(), 256));
    n = pool->threads;
    dvti_mutex_unlock(&pool->busy);
    return n;
}

#else

DVTI_FN void dvti_parallel_for(int64_t n, int64_t grain, dvti_range_fn body, void *user) {
    (void)grain;
    if (n > 0)
        body(user, 0, n);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    if (n < 0 || n > 256)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to 256", n);
    return DVT_OK;
}

DVT_API int dvt_num_threads(void) {
    return 1;
}

#endif

DVTI_FN int dvti_parallel_width(void) {
    return dvti_serial_depth ? 1 : dvt_num_threads();
}
/* ==== end src/1_base/dvt_thread.c ==== */
#ifdef DEVTENSOR_LINES
#line 18 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_array.c ==== */
/* Storages, arrays and windows on them, and what can be asked of an array. */
#ifdef DEVTENSOR_LINES
#line 1 "src/2_core/dvt_array.c"
#endif
/* ==== begin src/2_core/dvt_core.h ==== */
/* Arrays without arithmetic: objects and scopes, storages, views, contexts, copies. */
#ifdef DEVTENSOR_LINES
#line 1 "src/2_core/dvt_core.h"
#endif
#ifndef DVTI_CORE_H
#define DVTI_CORE_H
#ifdef DEVTENSOR_LINES
#line 4 "src/2_core/dvt_core.h"
#endif
/* ==== begin src/2_core/dvt_backend.h ==== */
/* The contract between the library and whatever computes: cpu(), virtual GPUs, CUDA.

   A *device* has memory and one command queue. Work that is put into a queue runs in order; `launch`, `copy` and
   `release` return at once and may run later, `wait` returns when everything put in so far is done. A backend that computes in
   the call (cpu()) is the special case of an empty queue.

   Memory is stream-ordered: `release` may be called while work that uses the block is still queued, and a block from `acquire`
   may be the one that was just released, because whatever uses it stands behind in the same queue. Across devices the
   library orders by waiting.

   Kernels never allocate: a launch that needs room for intermediate results says how much in `workspace`, and gets it. So
   once a launch is accepted, nothing can fail for lack of memory. Errors of work in the queue (a card that falls off the bus)
   are kept, with the name of the operation, and come out of the next `wait`, once. */
#ifdef DEVTENSOR_LINES
#line 13 "src/2_core/dvt_backend.h"
#endif
#ifndef DVTI_BACKEND_H
#define DVTI_BACKEND_H
/* ==== begin src/2_core/dvt_op_table.h ==== */
/* THE table of elementwise operations. One row gives: the enum, the public functions and their checks, the CPU loops,
   the CUDA text, the gradient, the tests (value, gradient, corners) and the table in the README. See docs/ADDING_AN_OP.md.

   Columns
     name    dvt_<name>, DVTI_OP_<name>
     rule    SAME  numbers keep their dtype; bool is refused where the integer text is 0 for it (see NOBOOL)
             FLOAT integers become float32 first
             BOOL  the result is bool
     F       the value for a floating type T; F(exp) is expf or exp, C(0.5) a constant of that type
     I       the value in int64_t arithmetic (results wrap to the dtype); 0 for FLOAT rows, which never see integers
     grad    recorded operations on g (gradient of the result), x or a and b (inputs), y (result); 0: no gradient
     lo, hi  an interval where value and gradient are smooth, for tests (second pair: argument b)
     doc     one line */
#ifdef DEVTENSOR_LINES
#line 13 "src/2_core/dvt_op_table.h"
#endif
#ifndef DVTI_OP_TABLE_H
#define DVTI_OP_TABLE_H

/* name, rule, F(x), I(x), grad(g, x, y), lo, hi, doc */
#define DVTI_UNARY_TABLE(U)                                                                        \
    U(neg, NOBOOL, -x, DVTI_WRAP(0, -, x), dvt_neg(g), -2, 2, "-x")                                \
    U(abs, SAME, F(fabs)(x), x < 0 ? DVTI_WRAP(0, -, x) : x, dvt_mul(g, dvt_sign(x)), 0.2, 2,      \
      "absolute value")                                                                            \
    U(sign, SAME,                                                                                  \
      x > 0   ? C(1)                                                                               \
      : x < 0 ? C(-1)                                                                              \
              : x,                                                                                 \
      (x > 0) - (x < 0), dvti_no_gradient(g), 0.2, 2, "-1, 0 or 1; NaN stays")                     \
    U(square, SAME, x *x, DVTI_WRAP(x, *, x), dvt_mul(g, dvt_mul_scalar(x, 2)), -2, 2, "x * x")    \
    U(relu, SAME,                                                                                  \
      x > 0    ? x                                                                                 \
      : x != x ? x                                                                                 \
               : C(0),                                                                             \
      x > 0 ? x : 0, dvt_mul(g, dvti_as_dtype_of(dvt_greater_scalar(x, 0), g)), 0.2, 2,            \
      "max(x, 0)")                                                                                 \
    U(floor, SAME, F(floor)(x), x, dvti_no_gradient(g), 0.1, 0.9, "largest whole number <= x")     \
    U(ceil, SAME, F(ceil)(x), x, dvti_no_gradient(g), 0.1, 0.9, "smallest whole number >= x")      \
    U(round, SAME, F(rint)(x), x, dvti_no_gradient(g), 0.6, 0.9,                                   \
      "nearest whole number, halves to even")                                                      \
    U(trunc, SAME, F(trunc)(x), x, dvti_no_gradient(g), 0.1, 0.9, "whole part")                    \
    U(reciprocal, FLOAT, C(1) / x, 0, dvt_neg(dvt_mul(g, dvt_square(y))), 0.5, 2, "1 / x")         \
    U(sqrt, FLOAT, F(sqrt)(x), 0, dvt_div(dvt_mul_scalar(g, 0.5), y), 0.3, 3, "square root")       \
    U(rsqrt, FLOAT, C(1) / F(sqrt)(x), 0,                                                          \
      dvt_mul(dvt_mul_scalar(g, -0.5), dvt_mul(y, dvt_square(y))), 0.5, 3, "1 / sqrt(x)")          \
    U(exp, FLOAT, F(exp)(x), 0, dvt_mul(g, y), -2, 2, "e to the power x")                          \
    U(exp2, FLOAT, F(exp2)(x), 0, dvt_mul(g, dvt_mul_scalar(y, 0.69314718055994530942)), -2, 2,    \
      "2 to the power x")                                                                          \
    U(expm1, FLOAT, F(expm1)(x), 0, dvt_mul(g, dvt_add_scalar(y, 1)), -2, 2,                       \
      "exp(x) - 1, exact near 0")                                                                  \
    U(log, FLOAT, F(log)(x), 0, dvt_div(g, x), 0.3, 3, "natural logarithm")                        \
    U(log2, FLOAT, F(log2)(x), 0, dvt_div(dvt_mul_scalar(g, 1.4426950408889634074), x), 0.3, 3,    \
      "logarithm to base 2")                                                                       \
    U(log10, FLOAT, F(log10)(x), 0, dvt_div(dvt_mul_scalar(g, 0.43429448190325182765), x), 0.3, 3, \
      "logarithm to base 10")                                                                      \
    U(log1p, FLOAT, F(log1p)(x), 0, dvt_div(g, dvt_add_scalar(x, 1)), -0.5, 2,                     \
      "log(1 + x), exact near 0")                                                                  \
    U(sin, FLOAT, F(sin)(x), 0, dvt_mul(g, dvt_cos(x)), -3, 3, "sine")                             \
    U(cos, FLOAT, F(cos)(x), 0, dvt_neg(dvt_mul(g, dvt_sin(x))), -3, 3, "cosine")                  \
    U(tan, FLOAT, F(tan)(x), 0, dvt_mul(g, dvt_add_scalar(dvt_square(y), 1)), -1, 1, "tangent")    \
    U(asin, FLOAT, F(asin)(x), 0, dvt_mul(g, dvt_rsqrt(dvt_scalar_sub(1, dvt_square(x)))), -0.8,   \
      0.8, "inverse sine")                                                                         \
    U(acos, FLOAT, F(acos)(x), 0,                                                                  \
      dvt_neg(dvt_mul(g, dvt_rsqrt(dvt_scalar_sub(1, dvt_square(x))))), -0.8, 0.8,                 \
      "inverse cosine")                                                                            \
    U(atan, FLOAT, F(atan)(x), 0, dvt_div(g, dvt_add_scalar(dvt_square(x), 1)), -2, 2,             \
      "inverse tangent")                                                                           \
    U(sinh, FLOAT, F(sinh)(x), 0, dvt_mul(g, dvt_cosh(x)), -2, 2, "hyperbolic sine")               \
    U(cosh, FLOAT, F(cosh)(x), 0, dvt_mul(g, dvt_sinh(x)), -2, 2, "hyperbolic cosine")             \
    U(tanh, FLOAT, F(tanh)(x), 0, dvt_mul(g, dvt_scalar_sub(1, dvt_square(y))), -2, 2,             \
      "hyperbolic tangent")                                                                        \
    U(sigmoid, FLOAT, x >= 0 ? C(1) / (C(1) + F(exp)(-x)) : F(exp)(x) / (C(1) + F(exp)(x)), 0,     \
      dvt_mul(g, dvt_mul(y, dvt_scalar_sub(1, y))), -3, 3, "1 / (1 + exp(-x))")                    \
    U(softplus, FLOAT, x > 0 ? x + F(log1p)(F(exp)(-x)) : F(log1p)(F(exp)(x)), 0,                  \
      dvt_mul(g, dvt_sigmoid(x)), -3, 3, "log(1 + exp(x))")                                        \
    U(erf, FLOAT, F(erf)(x), 0,                                                                    \
      dvt_mul(g, dvt_mul_scalar(dvt_exp(dvt_neg(dvt_square(x))), 1.12837916709551257390)), -2, 2,  \
      "error function")                                                                            \
    U(gelu, FLOAT, C(0.5) * x * (C(1) + F(erf)(x * C(0.70710678118654752440))), 0,                 \
      dvti_grad_gelu(g, x), -2, 2, "x times the normal distribution function of x")                \
    U(isnan, BOOL, x != x, 0, dvti_no_gradient(g), -1, 1, "is NaN")                                \
    U(isinf, BOOL, F(fabs)(x) > DVTI_LARGEST, 0, dvti_no_gradient(g), -1, 1, "is infinite")        \
    U(isfinite, BOOL, F(fabs)(x) <= DVTI_LARGEST, 1, dvti_no_gradient(g), -1, 1,                   \
      "is neither infinite nor NaN")                                                               \
    U(logical_not, BOOL, x == 0, x == 0, dvti_no_gradient(g), -1, 1, "is zero")

/* name, rule, F(a, b), I(a, b), gradient to a, gradient to b, lo, hi of a, lo, hi of b, doc */
#define DVTI_BINARY_TABLE(B)                                                                       \
    B(add, SAME, a + b, DVTI_WRAP(a, +, b), g, g, -2, 2, -2, 2, "a + b")                           \
    B(sub, NOBOOL, a - b, DVTI_WRAP(a, -, b), g, dvt_neg(g), -2, 2, -2, 2, "a - b")                \
    B(mul, SAME, a *b, DVTI_WRAP(a, *, b), dvt_mul(g, b), dvt_mul(g, a), -2, 2, -2, 2, "a * b")    \
    B(div, FLOAT, a / b, 0, dvt_div(g, b), dvt_neg(dvt_div(dvt_mul(g, y), b)), -2, 2, 0.5, 2,      \
      "a / b")                                                                                     \
    B(floor_div, SAME, F(dvti_floor_div)(a, b), dvti_int_floor_div(a, b), dvti_no_gradient(g),     \
      dvti_no_gradient(g), 0.1, 0.4, 0.5, 0.9, "floor(a / b)")                                     \
    B(mod, SAME, F(dvti_mod)(a, b), dvti_int_mod(a, b), g,                                         \
      dvt_neg(dvt_mul(g, dvt_floor_div(a, b))), 0.1, 0.4, 0.5, 0.9, "a - floor(a / b) * b")        \
    B(pow, SAME, F(pow)(a, b), dvti_int_pow(a, b), dvti_grad_pow_a(g, a, b),                       \
      dvti_grad_pow_b(g, a, y), 0.4, 2, -2, 2, "a to the power b")                                 \
    B(minimum, SAME,                                                                               \
      a != a   ? a                                                                                 \
      : b != b ? b                                                                                 \
      : a < b  ? a                                                                                 \
               : b,                                                                                 \
      a < b ? a : b, dvt_mul(g, dvti_as_dtype_of(dvt_less_equal(a, b), g)),                        \
      dvt_mul(g, dvti_as_dtype_of(dvt_greater(a, b), g)), 0.1, 0.9, 1.1, 2,                        \
      "the smaller; NaN when either is")                                                           \
    B(maximum, SAME,                                                                               \
      a != a   ? a                                                                                 \
      : b != b ? b                                                                                 \
      : a > b  ? a                                                                                 \
               : b,                                                                                 \
      a > b ? a : b, dvt_mul(g, dvti_as_dtype_of(dvt_greater_equal(a, b), g)),                     \
      dvt_mul(g, dvti_as_dtype_of(dvt_less(a, b), g)), 0.1, 0.9, 1.1, 2,                           \
      "the larger; NaN when either is")                                                            \
    B(atan2, FLOAT, F(atan2)(a, b), 0,                                                             \
      dvt_mul(g, dvt_div(b, dvt_add(dvt_square(a), dvt_square(b)))),                               \
      dvt_neg(dvt_mul(g, dvt_div(a, dvt_add(dvt_square(a), dvt_square(b))))), 0.3, 2, 0.3, 2,      \
      "angle of the point (b, a)")                                                                 \
    B(hypot, FLOAT, F(hypot)(a, b), 0, dvt_mul(g, dvt_div(a, y)), dvt_mul(g, dvt_div(b, y)), 0.3,  \
      2, 0.3, 2, "sqrt(a*a + b*b)")                                                                \
    B(equal, BOOL, a == b, a == b, 0, 0, -1, 1, -1, 1, "a == b")                                   \
    B(not_equal, BOOL, a != b, a != b, 0, 0, -1, 1, -1, 1, "a != b")                               \
    B(less, BOOL, a < b, a < b, 0, 0, -1, 1, -1, 1, "a < b")                                       \
    B(less_equal, BOOL, a <= b, a <= b, 0, 0, -1, 1, -1, 1, "a <= b")                              \
    B(greater, BOOL, a > b, a > b, 0, 0, -1, 1, -1, 1, "a > b")                                    \
    B(greater_equal, BOOL, a >= b, a >= b, 0, 0, -1, 1, -1, 1, "a >= b")                           \
    B(logical_and, BOOL, a != 0 && b != 0, a != 0 && b != 0, 0, 0, -1, 1, -1, 1, "both nonzero")   \
    B(logical_or, BOOL, a != 0 || b != 0, a != 0 || b != 0, 0, 0, -1, 1, -1, 1, "either nonzero")  \
    B(logical_xor, BOOL, (a != 0) != (b != 0), (a != 0) != (b != 0), 0, 0, -1, 1, -1, 1,           \
      "exactly one nonzero")

/* Everything else: name, doc. Shapes and gradients are in 4_ops and 5_grad, one file per family. */
#define DVTI_OTHER_TABLE(O)                                                                        \
    O(copy, "elements to another place, dtype or context")                                         \
    O(where, "condition ? a : b")                                                                  \
    O(clip, "min(max(x, low), high)")                                                              \
    O(reshape, "other shape, same elements")                                                       \
    O(transpose, "other order of axes")                                                            \
    O(slice, "every step-th element between two bounds")                                           \
    O(unslice, "a slice put into zeros: the gradient of slice")                                    \
    O(broadcast_to, "repeated along new or length-1 axes")                                         \
    O(sum, "sum over axes")                                                                        \
    O(mean, "mean over axes")                                                                      \
    O(prod, "product over axes")                                                                   \
    O(min, "smallest over axes")                                                                   \
    O(max, "largest over axes")                                                                    \
    O(any, "any nonzero")                                                                          \
    O(all, "all nonzero")                                                                          \
    O(norm, "root of the sum of squares")                                                          \
    O(logsumexp, "log of the sum of exponentials")                                                 \
    O(argmin, "position of the smallest")                                                          \
    O(argmax, "position of the largest")                                                           \
    O(softmax, "exponentials divided by their sum")                                                \
    O(log_softmax, "logarithm of softmax")                                                         \
    O(matmul, "matrix product with batches")                                                       \
    O(concat, "arrays joined along an axis")                                                       \
    O(take, "slices by index")                                                                     \
    O(take_add, "slices added by index: the gradient of take")                                     \
    O(take_along, "one element per position by index")                                             \
    O(take_along_add, "elements added by index: the gradient of take_along")                       \
    O(one_hot, "1 at the index")                                                                   \
    O(conv2d, "convolution")                                                                       \
    O(conv2d_data, "gradient of conv2d to its data")                                               \
    O(conv2d_weight, "gradient of conv2d to its weights")                                          \
    O(max_pool2d, "largest of each window")                                                        \
    O(max_pool2d_data, "gradient of max_pool2d")                                                   \
    O(max_pool2d_pick, "values at the places of the maxima: the gradient of max_pool2d_data")      \
    O(avg_pool2d, "mean of each window")                                                           \
    O(avg_pool2d_data, "gradient of avg_pool2d")                                                   \
    O(uniform, "uniform random numbers")                                                           \
    O(normal, "normal random numbers")                                                             \
    O(randint, "random integers")                                                                  \
    O(bernoulli, "random 0 and 1")                                                                 \
    O(permutation, "random order")                                                                 \
    O(sgd, "optimiser step")                                                                       \
    O(adam, "optimiser step")                                                                      \
    O(adamw, "optimiser step")                                                                     \
    O(rmsprop, "optimiser step")                                                                   \
    O(adagrad, "optimiser step")                                                                   \
    O(fill, "one value everywhere")                                                                \
    O(arange, "evenly spaced values")                                                              \
    O(eye, "ones on a diagonal")

#define DVTI_ENUM_UNARY(name, rule, f, i, grad, lo, hi, doc) DVTI_OP_##name,
#define DVTI_ENUM_BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_OP_##name,
#define DVTI_ENUM_OTHER(name, doc) DVTI_OP_##name,

typedef enum dvti_op {
    DVTI_UNARY_TABLE(DVTI_ENUM_UNARY) DVTI_BINARY_TABLE(DVTI_ENUM_BINARY)
        DVTI_OTHER_TABLE(DVTI_ENUM_OTHER) DVTI_OP_COUNT
} dvti_op;

#undef DVTI_ENUM_UNARY
#undef DVTI_ENUM_BINARY
#undef DVTI_ENUM_OTHER

#endif
/* ==== end src/2_core/dvt_op_table.h ==== */
#ifdef DEVTENSOR_LINES
#line 16 "src/2_core/dvt_backend.h"
#endif

/* A strided window on a device's memory. */
typedef struct dvti_view {
    void *data; /* the first element, already offset */
    dvt_dtype dtype;
    int ndim;
    int64_t dim[DVT_MAX_DIMS], stride[DVT_MAX_DIMS]; /* strides in elements, may be 0 or negative */
} dvti_view;

/* Families of kernels and what they read. "Contiguous" is a promise of the caller; other views have any strides.
   f[], i[] are parameters; unused ones are 0. Every view of an output has the dtype that is to be stored. */
typedef enum dvti_kernel {
    /* out[0] = f[0] (i[0] for integer dtypes). */
    DVTI_K_FILL,
    /* out[0] contiguous, 1-d: f[0] + index * f[1]; integer dtypes i[0] + index * i[1]. i[2] = 1: the last one is f[2]. */
    DVTI_K_ARANGE,
    /* out[0] (n, m): 1 where column - row == i[0]. */
    DVTI_K_EYE,
    /* op is a row of the op table, copy, where or clip. in[0..n_in) have out[0]'s shape (by strides of 0). Computed in
       the class `compute`: DVTI_F32, DVTI_F64 or DVTI_I64. Operand number i[0] - 1, when i[0] > 0, is no array but the
       scalar f[0] (i[1] in class I64). clip: bounds f[1], f[2] (NaN-free). in and out may be the same memory with the
       same strides, never overlap otherwise. */
    DVTI_K_ELEMENTWISE,
    /* op: sum, mean, prod, min, max, any, all, norm, logsumexp, argmin, argmax. in[0]'s first i[0] axes are kept, in order, and are
       out[0]'s axes; the others are reduced. f[0]: the count, for mean. Sums in float64 or int64, in index order with a fixed
       tree. Reduced size 0: sum 0, prod 1, any 0, all 1, mean and logsumexp NaN and -inf. */
    DVTI_K_REDUCE,
    /* op: softmax, log_softmax. Along the last axis of in[0] and out[0], same shape. */
    DVTI_K_SOFTMAX,
    /* out[0] (batch..., n, m) contiguous = in[0] (batch..., n, k) * in[1] (batch..., k, m), all of one ndim >= 2,
       batch axes already broadcast by strides of 0; any strides. Accumulated in float32 for float32, float16, bfloat16, float64
       for float64, int64 for integers; k in ascending order. */
    DVTI_K_MATMUL,
    /* All contiguous. i[0..1] stride, i[2..3] padding, i[4..5] dilation, i[6] groups.
       op conv2d:        out[0] y (N,O,OH,OW); in x (N,C,H,W), w (O,C/g,KH,KW), and b (O) when n_in is 3.
       op conv2d_data:   out[0] dx; in dy, w.      op conv2d_weight: out[0] dw; in x, dy. */
    DVTI_K_CONV2D,
    /* All contiguous, NCHW. i[0..1] window, i[2..3] stride, i[4..5] padding, i[6] = 1: divide by the elements inside.
       op max_pool2d, avg_pool2d: out[0] y; in x.
       op max_pool2d_data: out[0] dx; in dy, x (the first maximum of a window gets dy). op avg_pool2d_data: out[0] dx; in dy.
       op max_pool2d_pick: out[0] like y; in v (like x), x: v at the place of each window's first maximum. */
    DVTI_K_POOL2D,
    /* All contiguous; index int64, negative ones from the end, clamped to 0..n-1.
       op take:     out[0] (A, M, B) = in[0] (A, N, B) at in[1] (M).
       op take_add: out[0] (A, N, B) zeroed, then in[0] (A, M, B) added at in[1] (M), in the order of M. */
    DVTI_K_TAKE,
    /* i[0] axis. out[0] and in[1] (index, int64) have one shape; in[0] agrees on the other axes by strides.
       op take_along:     out[0][..j..] = in[0][..index[..j..]..]
       op take_along_add: out[0] (contiguous) zeroed, then in[0] added at in[1], where in[0] and in[1] have one shape. */
    DVTI_K_TAKE_ALONG,
    /* out[0] (..., depth) contiguous; in[0] (...) contiguous int64; zeros for an index outside 0..depth-1. */
    DVTI_K_ONE_HOT,
    /* out[0] contiguous, of i[6] > 0 elements. i[0] generator (dvti_rng in 1_base/dvt_rng.h), i[1] key (word 0 above word 1), i[2]
       first counter, i[3] words 2 and 3 of every counter (word 2 above word 3).
       op uniform: f[0] low, f[1] high, f[2] the largest result, all exact in out's dtype. normal: f[0] mean, f[1] deviation.
       randint: i[4] low, i[5] high - low modulo 2^64. bernoulli: f[0] p. permutation: out int64.
       Philox: counter i[2] + g gives element 4g + k its word k; two words, the first one above, for each element 2g + k of
       randint and of float64 uniform, and for draw 2g + k of permutation; both words pairs together for a pair of float64 normals.
       Threefry: JAX's layout, which needs no counter.
       MT19937, uniform only: out[1] (i[4], 625) int32 are the states (dvti_mt19937) in main memory, which the launch changes; state t
       gives elements t * step .. with step = ceil(i[6] / i[4]). Only on cpu(), where a launch runs in the call.
       cuRAND, uniform only: the same with i[4] subsequences, which begin at word i[2], or at in[0][t] when there is in[0] (int64). */
    DVTI_K_RANDOM,
    /* One optimiser step, in place, all contiguous and of one shape. out[0] w, out[1..] state; in[0] gradient.
       f: 0 rate, 1 weight decay, 2 rescale, 3 clip (<= 0: none), 4.. as the op says.
       sgd:     4 momentum; i[0] nesterov; state m when momentum != 0
       adam:    4 beta1, 5 beta2, 6 epsilon, 7 the bias-corrected rate; state m, v.   adamw: the same, decoupled decay
       rmsprop: 4 rho, 5 momentum, 6 epsilon; i[0] centered; state n, and g, m when centered
       adagrad: 6 epsilon; state h */
    DVTI_K_OPTIMIZER,
    DVTI_K_COUNT
} dvti_kernel;

typedef enum dvti_class { DVTI_F32, DVTI_F64, DVTI_I64 } dvti_class;

#define DVTI_MAX_IN 4
#define DVTI_MAX_OUT 4

typedef struct dvti_launch {
    dvti_kernel kernel;
    dvti_op op;
    dvti_class compute;
    int n_in, n_out;
    dvti_view in[DVTI_MAX_IN], out[DVTI_MAX_OUT];
    double f[8];
    int64_t i[8];
    void *workspace; /* at least workspace_bytes, 64-byte aligned */
    int64_t workspace_bytes;
    const char *name; /* "dvt_add": for errors and traces */
} dvti_launch;

typedef struct dvti_device dvti_device;

/* Every function is required. Statuses other than DVT_OK come with dvti_fail's message. */
typedef struct dvti_backend {
    const char *name;
    /* Memory, at least 64-byte aligned. `acquire` fails with HOST_MEMORY or DEVICE_MEMORY; `release` never fails. */
    dvt_status (*acquire)(dvti_device *device, int64_t bytes, void **out);
    void (*release)(dvti_device *device, void *block, int64_t bytes);
    /* Copies of plain bytes. upload: `src` may change as soon as it returns. download: waits; `dst` is ready when it returns.
       copy_from: both on devices of this backend, in order after what either queue holds now. */
    dvt_status (*upload)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*download)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*copy_from)(dvti_device *device, void *dst, dvti_device *from, const void *src,
                            int64_t bytes);
    /* Bytes of workspace that this launch needs (0 for most). */
    int64_t (*workspace)(dvti_device *device, const dvti_launch *launch);
    /* Puts the launch into the queue; the structure is copied. */
    dvt_status (*launch)(dvti_device *device, const dvti_launch *launch);
    dvt_status (*wait)(dvti_device *device);
} dvti_backend;

/* What the library keeps per device; `impl` is the backend's. */
struct dvti_device {
    const dvti_backend *backend;
    dvt_ctx ctx;
    void *impl;
    int64_t limit;    /* bytes; 0: none */
    dvti_atomic used; /* bytes held now */
    dvti_atomic peak;
    dvti_atomic storages; /* buffers alive */
};

#endif
/* ==== end src/2_core/dvt_backend.h ==== */
#ifdef DEVTENSOR_LINES
#line 5 "src/2_core/dvt_core.h"
#endif

/* ---- objects: a counted header, and the scope that owns what a call returns ---- */
typedef struct dvti_object {
    dvti_atomic references;
    void (*destroy)(void *object); /* frees everything, the object included */
} dvti_object;

/* Counts 1 and gives that to the innermost scope. false (nothing changed, HOST_MEMORY set): exhausted; the caller frees. */
DVTI_FN bool dvti_object_begin(void *object, void (*destroy)(void *), const char *function);
/* The same without a scope: the caller holds the one reference. */
DVTI_FN void dvti_object_begin_unowned(void *object, void (*destroy)(void *));
/* Takes back a reference that the innermost scope holds (for results that are stored away): after it the caller holds it. */
DVTI_FN void dvti_scope_take(void *object);
/* Gives a reference that the caller holds to the innermost scope. false (the caller still holds it): exhausted. */
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
/* Bytes of a shape; false with SHAPE set when an extent is negative, ndim is not 0..8, or the size overflows. */
DVTI_FN bool dvti_nbytes(const char *function, dvt_shape shape, dvt_dtype dtype, int64_t *bytes);
DVTI_FN void dvti_strides_c(dvt_shape shape, int64_t *stride);
/* The common shape; false with SHAPE set, naming both. */
DVTI_FN bool dvti_broadcast(const char *function, dvt_shape a, dvt_shape b, dvt_shape *out);
/* -ndim <= *axis < ndim made non-negative; false with AXIS set. */
DVTI_FN bool dvti_axis(const char *function, int *axis, int ndim);

/* ---- storage: one buffer on one context ---- */
typedef struct dvti_storage {
    dvti_atomic references;
    dvti_device *device;
    dvt_ctx ctx; /* cpu(1) and cpu(0) share a device, not a context */
    void *data;
    int64_t bytes;
    dvti_atomic version; /* counts writes after creation, for the tape */
} dvti_storage;

struct dvti_node;

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
    bool grad_fresh;  /* backward has written grad since the trainer last looked */
    const char *file; /* where the creating call stands, when known */
    int line;
};

/* New memory of that shape, values not set, owned by the innermost scope. NULL with the error set. */
DVTI_FN dvt_array *dvti_array_new(const char *function, dvt_shape shape, dvt_dtype dtype,
                                  dvt_ctx ctx);
/* Another window on x's memory. */
DVTI_FN dvt_array *dvti_view_new(const char *function, dvt_array *x, dvt_shape shape,
                                 const int64_t *stride, int64_t offset);
DVTI_FN dvti_view dvti_view_of(const dvt_array *x);
/* x repeated to `shape` by strides of 0. x must broadcast to it. */
DVTI_FN dvti_view dvti_view_broadcast(const dvt_array *x, dvt_shape shape);
/* One reference fewer to what recorded an array. Defined in 4_ops/dvt_tape.c, the room that knows nodes. */
DVTI_FN void dvti_node_release(struct dvti_node *node);
/* "float32 (2, 3) on gpu(0) made at main.c:42": for messages. */
DVTI_FN const char *dvti_describe(const dvt_array *x);
DVTI_FN const char *dvti_site_text(const dvt_array *x);

/* ---- contexts ---- */
/* DVT_DEVICE_DEFAULT becomes the default context. */
DVTI_FN dvt_ctx dvti_ctx(dvt_ctx ctx);
/* The device, opened at its first use; NULL with NO_DEVICE set and the reason. */
DVTI_FN dvti_device *dvti_device_of(const char *function, dvt_ctx ctx);
/* What each backend room defines for the registry. */
DVTI_FN const dvti_backend *dvti_cpu_backend(void);
DVTI_FN const dvti_backend *dvti_virtual_backend(void);
DVTI_FN dvt_status dvti_virtual_open(dvti_device *device);
DVTI_FN void dvti_virtual_close(dvti_device *device);
/* The CUDA room's answers: why there is no GPU ("" when there is), and the driver's version. */
DVTI_FN const char *dvti_cuda_reason(void);
DVTI_FN int dvti_cuda_driver_version(void);

/* ---- work ---- */
/* Gets the workspace, counts, and puts the launch into the device's queue. All views must be on `device`. */
DVTI_FN dvt_status dvti_run(dvti_device *device, dvti_launch *launch);
/* An empty launch: everything 0, with that kernel, op and name. */
DVTI_FN dvti_launch dvti_launch_begin(const char *name, dvti_kernel kernel, dvti_op op);
/* Elements of src into dst: any dtype, strides, contexts; same shape. The only way between contexts. Does not record. */
DVTI_FN dvt_status dvti_copy_elements(const char *function, dvt_array *dst, dvt_array *src);
/* Elements of x's dtype in C order from host memory into x, on any context. Does not record. */
DVTI_FN dvt_status dvti_write_host(const char *function, dvt_array *x, const void *src);
/* Reads all elements in C order, converted to `dtype`, into host memory. Waits. An implicit read (see dvt_transfer_guard). */
DVTI_FN dvt_status dvti_read(const char *function, dvt_array *x, dvt_dtype dtype, void *dst);
DVTI_FN dvt_status dvti_check_guard(const char *function, const dvt_array *x);

/* ---- counters ---- */
typedef struct dvti_counters {
    dvti_atomic to_device_count, to_device_bytes, to_host_count, to_host_bytes, between_count,
        between_bytes;
    dvti_atomic kernels, waits, implicit_reads, arrays, storages;
} dvti_counters;

DVTI_FN dvti_counters *dvti_stats(void);

#endif
/* ==== end src/2_core/dvt_core.h ==== */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_array.c"
#endif

static void dvti_storage_release(dvti_storage *storage) {
    if (dvti_atomic_add(&storage->references, -1) != 0)
        return;
    storage->device->backend->release(storage->device, storage->data, storage->bytes);
    dvti_atomic_add(&storage->device->storages, -1);
    dvti_atomic_add(&dvti_stats()->storages, -1);
    dvti_free(storage);
}

static dvti_storage *dvti_storage_new(const char *function, dvt_ctx ctx, int64_t bytes) {
    dvti_device *device = dvti_device_of(function, ctx);
    dvti_storage *storage;
    if (!device)
        return NULL;
    storage = (dvti_storage *)dvti_alloc_zero(sizeof *storage);
    if (!storage) {
        dvti_fail_memory(function, (int64_t)sizeof *storage);
        return NULL;
    }
    if (device->backend->acquire(device, bytes, &storage->data) != DVT_OK) {
        dvti_free(storage);
        return NULL;
    }
    storage->references = 1;
    storage->device = device;
    storage->ctx = ctx;
    storage->bytes = bytes;
    dvti_atomic_add(&device->storages, 1);
    dvti_atomic_add(&dvti_stats()->storages, 1);
    return storage;
}

static void dvti_array_destroy(void *object) {
    dvt_array *x = (dvt_array *)object;
    if (x->node)
        dvti_node_release(x->node);
    dvt_release(x->grad);
    dvti_storage_release(x->storage);
    dvti_atomic_add(&dvti_stats()->arrays, -1);
    dvti_free(x);
}

/* Takes over the caller's reference to storage, also on failure. */
static dvt_array *dvti_array_on(const char *function, dvti_storage *storage, dvt_shape shape,
                                const int64_t *stride, int64_t offset, dvt_dtype dtype) {
    dvt_array *x = (dvt_array *)dvti_alloc_zero(sizeof *x);
    int i;
    if (!x || !dvti_object_begin(x, dvti_array_destroy, function)) {
        if (!x)
            dvti_fail_memory(function, (int64_t)sizeof *x);
        dvti_free(x);
        dvti_storage_release(storage);
        return NULL;
    }
    x->storage = storage;
    x->shape = shape;
    x->dtype = dtype;
    x->offset = offset;
    for (i = 0; i < shape.ndim; i++) {
        x->stride[i] = stride[i];
        if (stride[i] == 0 && shape.dim[i] > 1)
            x->broadcast = true;
    }
    dvti_atomic_add(&dvti_stats()->arrays, 1);
    return x;
}

DVTI_FN dvt_array *dvti_array_new(const char *function, dvt_shape shape, dvt_dtype dtype,
                                  dvt_ctx ctx) {
    int64_t bytes, stride[DVT_MAX_DIMS];
    dvti_storage *storage;
    if (!dvti_nbytes(function, shape, dtype, &bytes))
        return NULL;
    storage = dvti_storage_new(function, dvti_ctx(ctx), bytes);
    if (!storage)
        return NULL;
    dvti_strides_c(shape, stride);
    return dvti_array_on(function, storage, shape, stride, 0, dtype);
}

DVTI_FN dvt_array *dvti_view_new(const char *function, dvt_array *x, dvt_shape shape,
                                 const int64_t *stride, int64_t offset) {
    dvt_array *view;
    dvti_atomic_add(&x->storage->references, 1);
    view = dvti_array_on(function, x->storage, shape, stride, offset, x->dtype);
    if (view && x->broadcast)
        view->broadcast = true;
    return view;
}

DVTI_FN dvti_view dvti_view_of(const dvt_array *x) {
    dvti_view view;
    int i;
    memset(&view, 0, sizeof view);
    view.data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view.dtype = x->dtype;
    view.ndim = x->shape.ndim;
    for (i = 0; i < x->shape.ndim; i++) {
        view.dim[i] = x->shape.dim[i];
        view.stride[i] = x->stride[i];
    }
    return view;
}

DVTI_FN dvti_view dvti_view_broadcast(const dvt_array *x, dvt_shape shape) {
    dvti_view view = dvti_view_of(x);
    int lead = shape.ndim - x->shape.ndim, i;
    for (i = shape.ndim - 1; i >= 0; i--) {
        bool repeats = i < lead || (x->shape.dim[i - lead] == 1 && shape.dim[i] != 1);
        view.stride[i] = repeats ? 0 : x->stride[i - lead];
        view.dim[i] = shape.dim[i];
    }
    view.ndim = shape.ndim;
    return view;
}

DVTI_FN const char *dvti_site_text(const dvt_array *x) {
    char *buffer;
    if (!x->file)
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
    if (x->file)
        dvti_text_add(&text, " made at %s:%d", x->file, x->line);
    return buffer;
}

/* ---- what can be asked ---- */
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
    return dvti_axis("dvt_dim", &axis, x->shape.ndim) ? x->shape.dim[axis] : -1;
}

DVT_API int64_t dvt_stride(const dvt_array *x, int axis) {
    if (!x) {
        dvti_null("dvt_stride", "x");
        return 0;
    }
    return dvti_axis("dvt_stride", &axis, x->shape.ndim) ? x->stride[axis] : 0;
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
    if (dvt_shape_size(x->shape) == 0)
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
    if (!x)
        dvti_error_at(file, line);
    else if (!x->file) {
        x->file = file;
        x->line = line;
    }
    return x;
}

DVT_API dvt_status dvt_note_status(dvt_status status, const char *file, int line) {
    if (status != DVT_OK)
        dvti_error_at(file, line);
    return status;
}

DVT_API void *dvt_data(dvt_array *x) {
    if (!x) {
        dvti_null("dvt_data", "x");
        return NULL;
    }
    if (x->storage->ctx.type != DVT_DEVICE_CPU) {
        dvti_fail(
            DVT_ERR_CONTEXT,
            "dvt_data: x is %s; its memory cannot be reached from the host: use dvt_to_host, or "
            "dvt_copyto(x, dvt_cpu())",
            dvti_describe(x));
        return NULL;
    }
    if (dvt_wait(x) != DVT_OK)
        return NULL;
    return dvti_view_of(x).data;
}
/* ==== end src/2_core/dvt_array.c ==== */
#ifdef DEVTENSOR_LINES
#line 19 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_context.c ==== */
/* Contexts: values and names, the default of a thread, the registry of devices, counters. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_context.c"
#endif

/* ---- values ---- */
static dvt_ctx dvti_ctx_make(dvt_device_type type, int id) {
    dvt_ctx ctx;
    ctx.type = type;
    ctx.id = id;
    return ctx;
}

DVT_API dvt_ctx dvt_cpu(void) {
    return dvti_ctx_make(DVT_DEVICE_CPU, 0);
}

DVT_API dvt_ctx dvt_cpu_id(int id) {
    return dvti_ctx_make(DVT_DEVICE_CPU, id);
}

DVT_API dvt_ctx dvt_gpu(int id) {
    return dvti_ctx_make(DVT_DEVICE_GPU, id);
}

static DVTI_TLS dvt_ctx dvti_default; /* type DVT_DEVICE_DEFAULT until a scope sets it */

DVT_API dvt_ctx dvt_default_ctx(void) {
    return dvti_default.type == DVT_DEVICE_DEFAULT ? dvt_cpu() : dvti_default;
}

DVTI_FN dvt_ctx dvti_ctx(dvt_ctx ctx) {
    return ctx.type == DVT_DEVICE_DEFAULT ? dvt_default_ctx() : ctx;
}

DVT_API dvt_ctx_guard dvt_ctx_scope_begin(dvt_ctx ctx) {
    dvt_ctx_guard guard;
    guard.previous = dvti_default;
    guard.once = 1;
    dvti_default = dvti_ctx(ctx);
    return guard;
}

DVT_API void dvt_ctx_scope_end(dvt_ctx_guard *guard) {
    dvti_default = guard->previous;
    guard->once = 0;
}

DVT_API bool dvt_ctx_equal(dvt_ctx a, dvt_ctx b) {
    a = dvti_ctx(a);
    b = dvti_ctx(b);
    return a.type == b.type && a.id == b.id;
}

DVT_API const char *dvt_ctx_name(dvt_ctx ctx) {
    char *buffer = dvti_name_buffer();
    ctx = dvti_ctx(ctx);
    snprintf(buffer, DVTI_NAME_SIZE, "%s(%d)", ctx.type == DVT_DEVICE_GPU ? "gpu" : "cpu", ctx.id);
    return buffer;
}

DVT_API dvt_status dvt_ctx_parse(const char *name, dvt_ctx *out) {
    const char *at;
    long id = 0;
    bool good;
    if (!name || !out)
        return dvti_null("dvt_ctx_parse", name ? "out" : "name");
    good = strncmp(name, "cpu", 3) == 0 || strncmp(name, "gpu", 3) == 0;
    at = good ? name + 3 : name;
    if (good && *at == '(') {
        char *end;
        good = at[1] >= '0' && at[1] <= '9';
        errno = 0;
        id = strtol(at + 1, &end, 10);
        good = good && !errno && id <= INT_MAX && *end == ')';
        at = end + (*end == ')');
    }
    if (!good || *at)
        return dvti_fail(
            DVT_ERR_NAME,
            "dvt_ctx_parse: \"%.40s\" is no context; expected cpu, cpu(0), gpu or gpu(1)", name);
    *out = dvti_ctx_make(name[0] == 'g' ? DVT_DEVICE_GPU : DVT_DEVICE_CPU, (int)id);
    return DVT_OK;
}

DVT_API dvt_ctx_list dvt_ctx_list_make(int n, dvt_ctx c0, dvt_ctx c1, dvt_ctx c2, dvt_ctx c3,
                                       dvt_ctx c4, dvt_ctx c5, dvt_ctx c6, dvt_ctx c7) {
    dvt_ctx_list list;
    memset(&list, 0, sizeof list);
    list.n = n;
    list.ctx[0] = c0;
    list.ctx[1] = c1;
    list.ctx[2] = c2;
    list.ctx[3] = c3;
    list.ctx[4] = c4;
    list.ctx[5] = c5;
    list.ctx[6] = c6;
    list.ctx[7] = c7;
    return list;
}

DVT_API size_t dvt_ctx_list_format(dvt_ctx_list list, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    int i;
    dvti_text_add(&text, "[");
    for (i = 0; i < list.n && i < DVT_MAX_CONTEXTS; i++)
        dvti_text_add(&text, "%s%s", i ? ", " : "", dvt_ctx_name(list.ctx[i]));
    dvti_text_add(&text, "]");
    return text.length;
}

/* ---- counters ---- */
DVTI_FN dvti_counters *dvti_stats(void) {
    static dvti_counters counters;
    return &counters;
}

DVT_API dvt_stats dvt_get_stats(void) {
    dvti_counters *c = dvti_stats();
    dvt_stats stats;
    stats.to_device_count = dvti_atomic_load(&c->to_device_count);
    stats.to_device_bytes = dvti_atomic_load(&c->to_device_bytes);
    stats.to_host_count = dvti_atomic_load(&c->to_host_count);
    stats.to_host_bytes = dvti_atomic_load(&c->to_host_bytes);
    stats.between_devices_count = dvti_atomic_load(&c->between_count);
    stats.between_devices_bytes = dvti_atomic_load(&c->between_bytes);
    stats.kernels = dvti_atomic_load(&c->kernels);
    stats.waits = dvti_atomic_load(&c->waits);
    stats.implicit_reads = dvti_atomic_load(&c->implicit_reads);
    stats.arrays = dvti_atomic_load(&c->arrays);
    stats.blocks_of_memory = dvti_atomic_load(&c->storages);
    return stats;
}

DVT_API void dvt_reset_stats(void) {
    dvti_counters *c = dvti_stats();
    dvti_atomic_store(&c->to_device_count, 0);
    dvti_atomic_store(&c->to_device_bytes, 0);
    dvti_atomic_store(&c->to_host_count, 0);
    dvti_atomic_store(&c->to_host_bytes, 0);
    dvti_atomic_store(&c->between_count, 0);
    dvti_atomic_store(&c->between_bytes, 0);
    dvti_atomic_store(&c->kernels, 0);
    dvti_atomic_store(&c->waits, 0);
    dvti_atomic_store(&c->implicit_reads, 0);
}

/* ---- the registry: the CPU, and the virtual GPUs that were asked for ---- */
typedef struct dvti_registry {
    dvti_mutex lock;
    bool ready;
    dvti_device cpu;
    dvti_device gpu[DVT_MAX_GPUS];
    bool open[DVT_MAX_GPUS];
    int n_virtual;
    int64_t virtual_bytes;
} dvti_registry;

static dvti_registry dvti_the_registry;
static dvti_mutex dvti_registry_lock = DVTI_MUTEX_INIT;

/* With the lock held: reads the environment once. */
static dvti_registry *dvti_registry_ready(void) {
    dvti_registry *r = &dvti_the_registry;
    const char *bytes;
    if (r->ready)
        return r;
    r->cpu.backend = dvti_cpu_backend();
    r->cpu.ctx = dvt_cpu();
    r->n_virtual = (int)dvti_env_int("DEVTENSOR_VIRTUAL_GPUS", 0, DVT_MAX_GPUS, 0);
    bytes = dvti_env("DEVTENSOR_VIRTUAL_GPU_MEMORY");
    if (bytes && (r->virtual_bytes = dvti_parse_bytes(bytes)) < 0) {
        dvti_log(DVT_LOG_WARNING,
                 "DEVTENSOR_VIRTUAL_GPU_MEMORY=%.40s is no number of bytes such as 64M; ignored",
                 bytes);
        r->virtual_bytes = 0;
    }
    r->ready = true;
    return r;
}

DVT_API int dvt_num_gpus(void) {
    int n;
    dvti_mutex_lock(&dvti_registry_lock);
    n = dvti_registry_ready()->n_virtual;
    dvti_mutex_unlock(&dvti_registry_lock);
    return n;
}

DVT_API const char *dvt_gpu_reason(void) {
    return dvt_num_gpus() ? "" : dvti_cuda_reason();
}

DVTI_FN dvti_device *dvti_device_of(const char *function, dvt_ctx ctx) {
    dvti_device *device = NULL;
    dvti_registry *r;
    dvt_status status = DVT_OK;
    int n;
    dvti_mutex_lock(&dvti_registry_lock);
    r = dvti_registry_ready();
    n = r->n_virtual;
    if (ctx.type == DVT_DEVICE_CPU && ctx.id >= 0)
        device = &r->cpu;
    else if (ctx.type == DVT_DEVICE_GPU && ctx.id >= 0 && ctx.id < n) {
        device = &r->gpu[ctx.id];
        if (!r->open[ctx.id]) {
            memset(device, 0, sizeof *device);
            device->backend = dvti_virtual_backend();
            device->ctx = ctx;
            device->limit = r->virtual_bytes;
            status = dvti_virtual_open(device);
            r->open[ctx.id] = status == DVT_OK;
        }
    }
    dvti_mutex_unlock(&dvti_registry_lock);
    if (status != DVT_OK)
        return NULL;
    if (!device) {
        if (ctx.type == DVT_DEVICE_GPU && n == 0)
            dvti_fail(
                DVT_ERR_NO_DEVICE,
                "%s: %s does not exist: %s; use dvt_try_gpu(%d), or set DEVTENSOR_VIRTUAL_GPUS",
                function, dvt_ctx_name(ctx), dvti_cuda_reason(), ctx.id);
        else if (ctx.type == DVT_DEVICE_GPU)
            dvti_fail(
                DVT_ERR_NO_DEVICE,
                "%s: %s does not exist: there %s %d GPU%s, gpu(0) to gpu(%d); use dvt_try_gpu(%d)",
                function, dvt_ctx_name(ctx), n == 1 ? "is" : "are", n, n == 1 ? "" : "s", n - 1,
                ctx.id);
        else
            dvti_fail(DVT_ERR_NO_DEVICE,
                      "%s: a context of type %d and number %d does not exist; use dvt_cpu() or "
                      "dvt_gpu(0)",
                      function, (int)ctx.type, ctx.id);
    }
    return device;
}

DVT_API dvt_status dvt_set_virtual_gpus(int n, int64_t bytes) {
    dvti_registry *r;
    int64_t alive = 0;
    int i;
    if (n < 0 || n > DVT_MAX_GPUS || bytes < 0)
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_set_virtual_gpus: got %d GPUs of %lld bytes; expected 0 to %d, and bytes >= 0", n,
            (long long)bytes, DVT_MAX_GPUS);
    dvti_mutex_lock(&dvti_registry_lock);
    r = dvti_registry_ready();
    for (i = 0; i < DVT_MAX_GPUS; i++)
        if (r->open[i])
            alive += dvti_atomic_load(&r->gpu[i].storages);
    if (!alive) {
        for (i = 0; i < DVT_MAX_GPUS; i++)
            if (r->open[i])
                dvti_virtual_close(&r->gpu[i]);
        memset(r->open, 0, sizeof r->open);
        r->n_virtual = n;
        r->virtual_bytes = bytes;
    }
    dvti_mutex_unlock(&dvti_registry_lock);
    if (alive)
        return dvti_fail(
            DVT_ERR_VALUE,
            "dvt_set_virtual_gpus: %lld arrays are alive on virtual GPUs; release them first",
            (long long)alive);
    return DVT_OK;
}

DVT_API dvt_ctx dvt_try_gpu(int i) {
    return i >= 0 && i < dvt_num_gpus() ? dvt_gpu(i) : dvt_cpu();
}

DVT_API dvt_ctx_list dvt_try_all_gpus(void) {
    dvt_ctx_list list;
    int i;
    memset(&list, 0, sizeof list);
    list.n = dvt_num_gpus();
    for (i = 0; i < list.n; i++)
        list.ctx[i] = dvt_gpu(i);
    return list;
}

DVT_API dvt_ctx_list dvt_try_all_gpus_or_cpu(void) {
    dvt_ctx_list list = dvt_try_all_gpus();
    if (list.n == 0)
        list.ctx[list.n++] = dvt_cpu();
    return list;
}

/* ---- waiting ---- */
DVT_API dvt_status dvt_wait(dvt_array *x) {
    if (!x)
        return dvti_null("dvt_wait", "x");
    if (x->storage->ctx.type != DVT_DEVICE_CPU)
        dvti_atomic_add(&dvti_stats()->waits, 1);
    return x->storage->device->backend->wait(x->storage->device);
}

DVT_API dvt_status dvt_wait_all(void) {
    dvt_status first = DVT_OK;
    int i;
    for (i = 0; i < DVT_MAX_GPUS; i++) {
        dvti_device *device = NULL;
        dvti_mutex_lock(&dvti_registry_lock);
        if (dvti_the_registry.open[i])
            device = &dvti_the_registry.gpu[i];
        dvti_mutex_unlock(&dvti_registry_lock);
        if (device) {
            dvt_status status = device->backend->wait(device);
            dvti_atomic_add(&dvti_stats()->waits, 1);
            if (first == DVT_OK)
                first = status;
        }
    }
    return first;
}
/* ==== end src/2_core/dvt_context.c ==== */
#ifdef DEVTENSOR_LINES
#line 20 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_copy.c ==== */
/* The only file that moves elements between contexts, and the one door through which work enters a queue. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_copy.c"
#endif

DVTI_FN dvti_launch dvti_launch_begin(const char *name, dvti_kernel kernel, dvti_op op) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.name = name;
    launch.kernel = kernel;
    launch.op = op;
    return launch;
}

static bool dvti_sync_mode(void) {
    static dvti_atomic mode; /* 0: not read yet, 1: off, 2: on */
    if (!dvti_atomic_load(&mode))
        dvti_atomic_store(&mode, 1 + dvti_env_int("DEVTENSOR_SYNC", 0, 1, 0));
    return dvti_atomic_load(&mode) == 2;
}

DVTI_FN dvt_status dvti_run(dvti_device *device, dvti_launch *launch) {
    const dvti_backend *backend = device->backend;
    dvt_status status;
    launch->workspace_bytes = backend->workspace(device, launch);
    launch->workspace = NULL;
    if (launch->workspace_bytes > 0) {
        status = backend->acquire(device, launch->workspace_bytes, &launch->workspace);
        if (status != DVT_OK)
            return status;
    }
    status = backend->launch(device, launch);
    if (launch->workspace)
        backend->release(device, launch->workspace, launch->workspace_bytes);
    if (status != DVT_OK)
        return status;
    dvti_atomic_add(&dvti_stats()->kernels, 1);
    return dvti_sync_mode() ? backend->wait(device) : DVT_OK;
}

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
    dvti_atomic_add(&dvti_stats()->implicit_reads, 1);
    if (dvti_guard == DVT_TRANSFER_FORBID)
        return dvti_fail(DVT_ERR_CONTEXT,
                         "%s: reading %s would copy %lld bytes to main memory, which the transfer "
                         "guard forbids; copy with "
                         "dvt_copyto(x, dvt_cpu()) where the copy is meant",
                         function, dvti_describe(x), (long long)dvt_nbytes(x));
    if (dvti_guard == DVT_TRANSFER_LOG)
        dvti_log(DVT_LOG_WARNING, "%s: reading %s copies %lld bytes to main memory", function,
                 dvti_describe(x), (long long)dvt_nbytes(x));
    return DVT_OK;
}

/* ---- copies ---- */
/* On one device: any dtypes and strides. Class I64 keeps 64-bit integers exact; floats go through the wider of the two. */
static dvt_status dvti_copy_on_device(const char *function, dvt_array *dst, dvt_array *src) {
    dvti_launch launch = dvti_launch_begin(function, DVTI_K_ELEMENTWISE, DVTI_OP_copy);
    launch.in[0] = dvti_view_of(src);
    launch.out[0] = dvti_view_of(dst);
    launch.n_in = launch.n_out = 1;
    launch.compute = dvti_class_of(src->dtype);
    return dvti_run(dst->storage->device, &launch);
}

/* Between devices: contiguous bytes of one dtype. */
static dvt_status dvti_copy_bytes(dvt_array *dst, dvt_array *src) {
    dvti_device *to = dst->storage->device, *from = src->storage->device;
    dvti_counters *c = dvti_stats();
    int64_t bytes = dvt_nbytes(src);
    void *d = dvti_view_of(dst).data, *s = dvti_view_of(src).data;
    if (bytes == 0)
        return DVT_OK;
    if (from->ctx.type == DVT_DEVICE_CPU) {
        dvti_atomic_add(&c->to_device_count, 1);
        dvti_atomic_add(&c->to_device_bytes, bytes);
        return to->backend->upload(to, d, s, bytes);
    }
    if (to->ctx.type == DVT_DEVICE_CPU) {
        dvti_atomic_add(&c->to_host_count, 1);
        dvti_atomic_add(&c->to_host_bytes, bytes);
        dvti_atomic_add(&c->waits, 1);
        return from->backend->download(from, d, s, bytes);
    }
    dvti_atomic_add(&c->between_count, 1);
    dvti_atomic_add(&c->between_bytes, bytes);
    return to->backend->copy_from(to, d, from, s, bytes);
}

DVTI_FN dvt_status dvti_copy_elements(const char *function, dvt_array *dst, dvt_array *src) {
    dvt_status status = DVT_OK;
    dvt_array *packed = src, *landed = dst;
    dvt_scope_guard scope;
    if (dvt_shape_size(src->shape) == 0)
        return DVT_OK;
    if (dst->storage->device == src->storage->device)
        return dvti_copy_on_device(function, dst, src);
    scope = dvt_scope_begin();
    if (!dvt_is_contiguous(src)) {
        packed = dvti_array_new(function, src->shape, src->dtype, src->storage->ctx);
        status = packed ? dvti_copy_on_device(function, packed, src) : dvt_error_code();
    }
    if (status == DVT_OK && (!dvt_is_contiguous(dst) || dst->dtype != src->dtype)) {
        landed = dvti_array_new(function, src->shape, src->dtype, dst->storage->ctx);
        status = landed ? DVT_OK : dvt_error_code();
    }
    if (status == DVT_OK)
        status = dvti_copy_bytes(landed, packed);
    if (status == DVT_OK && landed != dst)
        status = dvti_copy_on_device(function, dst, landed);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN dvt_status dvti_write_host(const char *function, dvt_array *x, const void *src) {
    dvti_device *device = x->storage->device;
    int64_t bytes = dvt_nbytes(x);
    dvt_scope_guard scope;
    dvt_array *landed = x;
    dvt_status status = DVT_OK;
    if (bytes == 0)
        return DVT_OK;
    scope = dvt_scope_begin();
    if (!dvt_is_contiguous(x))
        landed = dvti_array_new(function, x->shape, x->dtype, x->storage->ctx);
    if (landed && device->ctx.type != DVT_DEVICE_CPU) {
        dvti_atomic_add(&dvti_stats()->to_device_count, 1);
        dvti_atomic_add(&dvti_stats()->to_device_bytes, bytes);
    }
    status = landed ? device->backend->upload(device, dvti_view_of(landed).data, src, bytes)
                    : dvt_error_code();
    if (status == DVT_OK && landed != x)
        status = dvti_copy_on_device(function, x, landed);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN dvt_status dvti_read(const char *function, dvt_array *x, dvt_dtype dtype, void *dst) {
    dvt_scope_guard scope;
    dvt_array *host = x;
    dvt_status status = dvti_check_guard(function, x);
    if (status != DVT_OK)
        return status;
    scope = dvt_scope_begin();
    if (x->storage->ctx.type != DVT_DEVICE_CPU || x->dtype != dtype || !dvt_is_contiguous(x)) {
        host = dvti_array_new(function, x->shape, dtype, dvt_cpu());
        status = host ? dvti_copy_elements(function, host, x) : dvt_error_code();
    }
    if (status == DVT_OK && dvt_size(host) > 0)
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
            dvti_fail(DVT_ERR_RANGE,
                      "dvt_item_at: index %lld on axis %d of x (%s); expected %lld to %lld",
                      (long long)index.dim[i], i, dvti_describe(x), (long long)-extent,
                      (long long)extent - 1);
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
/* ==== end src/2_core/dvt_copy.c ==== */
#ifdef DEVTENSOR_LINES
#line 21 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_device_table.c ==== */
/* What people run nvidia-smi for: the devices, their memory and versions, as data and as a table. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_device_table.c"
#endif

static void dvti_host_memory(int64_t *total, int64_t *available) {
    *total = *available = -1;
#if defined(_WIN32)
    {
        MEMORYSTATUSEX status;
        status.dwLength = sizeof status;
        if (GlobalMemoryStatusEx(&status)) {
            *total = (int64_t)status.ullTotalPhys;
            *available = (int64_t)status.ullAvailPhys;
        }
    }
#elif defined(__linux__)
    {
        FILE *file = fopen("/proc/meminfo", "r");
        char line[160];
        long long kib;
        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "MemTotal: %lld kB", &kib) == 1)
                *total = kib * 1024;
            if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1)
                *available = kib * 1024;
        }
        if (file)
            fclose(file);
    }
#elif defined(_SC_PHYS_PAGES)
    *total = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
#endif
}

static void dvti_cpu_model(char *name, size_t size) {
    snprintf(name, size, "CPU");
#if defined(__linux__)
    {
        FILE *file = fopen("/proc/cpuinfo", "r");
        char line[256];
        while (file && fgets(line, sizeof line, file)) {
            char *colon = strchr(line, ':');
            if (strncmp(line, "model name", 10) == 0 && colon) {
                colon[strcspn(colon, "\n")] = 0;
                snprintf(name, size, "%s", colon + 2);
                break;
            }
        }
        if (file)
            fclose(file);
    }
#endif
}

DVT_API dvt_status dvt_device_query(dvt_ctx ctx, dvt_device_info *out) {
    dvti_device *device;
    if (!out)
        return dvti_null("dvt_device_query", "out");
    ctx = dvti_ctx(ctx);
    device = dvti_device_of("dvt_device_query", ctx);
    if (!device)
        return DVT_ERR_NO_DEVICE;
    memset(out, 0, sizeof *out);
    out->ctx = ctx;
    out->memory_used = dvti_atomic_load(&device->used);
    out->memory_peak = dvti_atomic_load(&device->peak);
    if (ctx.type == DVT_DEVICE_CPU) {
        dvti_cpu_model(out->name, sizeof out->name);
        dvti_host_memory(&out->memory_total, &out->memory_free);
        out->threads = dvt_num_threads();
    } else {
        snprintf(out->name, sizeof out->name, "virtual GPU");
        out->is_virtual = true;
        out->memory_total = device->limit ? device->limit : -1;
        out->memory_free = device->limit ? device->limit - out->memory_used : -1;
        out->threads = 1;
    }
    return DVT_OK;
}

static const char *dvti_mib(int64_t bytes) {
    char *buffer = dvti_name_buffer();
    if (bytes < 0)
        snprintf(buffer, DVTI_NAME_SIZE, "-");
    else
        snprintf(buffer, DVTI_NAME_SIZE, "%lld MiB", (long long)(bytes / (1024 * 1024)));
    return buffer;
}

static void dvti_device_row(dvti_text *text, dvt_ctx ctx) {
    dvt_device_info info;
    if (dvt_device_query(ctx, &info) == DVT_OK)
        dvti_text_add(text, "| %-8s | %-36.36s | %11s | %11s | %11s |\n", dvt_ctx_name(ctx),
                      info.name, dvti_mib(info.memory_total), dvti_mib(info.memory_free),
                      dvti_mib(info.memory_used));
}

DVT_API size_t dvt_devices_format(char *buffer, size_t size) {
    static const char line[] = "+----------+--------------------------------------+-------------+--"
                               "-----------+-------------+\n";
    dvti_text text = dvti_text_begin(buffer, size);
    int driver = dvti_cuda_driver_version(), n = dvt_num_gpus(), i;
    char version[32] = "none";
    if (driver)
        snprintf(version, sizeof version, "%d.%d", driver / 1000, driver % 1000 / 10);
    dvti_text_add(&text, "devtensor %s, CUDA driver: %s, threads of cpu(): %d\n%s",
                  DVT_VERSION_STRING, version, dvt_num_threads(), line);
    dvti_text_add(&text, "| %-8s | %-36s | %11s | %11s | %11s |\n%s", "context", "name", "memory",
                  "free", "used here", line);
    dvti_device_row(&text, dvt_cpu());
    for (i = 0; i < n; i++)
        dvti_device_row(&text, dvt_gpu(i));
    dvti_text_add(&text, "%s", line);
    if (!n)
        dvti_text_add(&text, "no GPU: %s\n", dvt_gpu_reason());
    return text.length;
}

DVT_API void dvt_print_devices(void) {
    char buffer[8192];
    dvt_devices_format(buffer, sizeof buffer);
    fputs(buffer, stdout);
}
/* ==== end src/2_core/dvt_device_table.c ==== */
#ifdef DEVTENSOR_LINES
#line 22 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_dtype.c ==== */
/* dtypes: names, sizes, promotion, and the two 16-bit floats. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_dtype.c"
#endif

static const char *const dvti_dtype_names[DVT_DTYPE_COUNT] = {
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"};
static const int dvti_dtype_sizes[DVT_DTYPE_COUNT] = {4, 8, 2, 2, 1, 1, 4, 8, 1};

DVTI_FN bool dvti_dtype_ok(dvt_dtype dtype) {
    return (int)dtype >= 0 && (int)dtype < DVT_DTYPE_COUNT;
}

DVT_API const char *dvt_dtype_name(dvt_dtype dtype) {
    return dvti_dtype_ok(dtype) ? dvti_dtype_names[dtype] : "?";
}

DVT_API int64_t dvt_dtype_size(dvt_dtype dtype) {
    return dvti_dtype_ok(dtype) ? dvti_dtype_sizes[dtype] : 0;
}

DVT_API dvt_status dvt_dtype_parse(const char *name, dvt_dtype *out) {
    int i;
    if (!name || !out)
        return dvti_null("dvt_dtype_parse", name ? "out" : "name");
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        if (strcmp(name, dvti_dtype_names[i]) == 0) {
            *out = (dvt_dtype)i;
            return DVT_OK;
        }
    return dvti_fail(
        DVT_ERR_NAME,
        "dvt_dtype_parse: \"%.40s\" is no dtype; expected float32, float64, float16, bfloat16, "
        "int8, uint8, int32, int64 or bool",
        name);
}

DVT_API bool dvt_dtype_is_float(dvt_dtype dtype) {
    return (int)dtype >= DVT_F32 && (int)dtype <= DVT_BF16;
}

DVT_API bool dvt_dtype_is_int(dvt_dtype dtype) {
    return (int)dtype >= DVT_I8 && (int)dtype <= DVT_I64;
}

/* The array API standard's table. Its corner: int8 with uint8 needs int16, which this library lacks: int32. */
DVT_API dvt_dtype dvt_promote(dvt_dtype a, dvt_dtype b) {
    if (a == b)
        return a;
    if (dvt_dtype_is_float(a) || dvt_dtype_is_float(b)) {
        if (!dvt_dtype_is_float(a))
            return b;
        if (!dvt_dtype_is_float(b))
            return a;
        return a == DVT_F64 || b == DVT_F64 ? DVT_F64 : DVT_F32;
    }
    if (a == DVT_BOOL)
        return b;
    if (b == DVT_BOOL)
        return a;
    if (a == DVT_I64 || b == DVT_I64)
        return DVT_I64;
    return DVT_I32;
}

DVTI_FN int64_t dvti_int_lowest(dvt_dtype dtype) {
    return dtype == DVT_I8    ? INT8_MIN
           : dtype == DVT_I32 ? INT32_MIN
           : dtype == DVT_I64 ? INT64_MIN
                              : 0;
}

DVTI_FN int64_t dvti_int_largest(dvt_dtype dtype) {
    return dtype == DVT_I8     ? INT8_MAX
           : dtype == DVT_U8   ? UINT8_MAX
           : dtype == DVT_I32  ? INT32_MAX
           : dtype == DVT_BOOL ? 1
                               : INT64_MAX;
}

DVTI_FN dvti_class dvti_class_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVTI_F64 : dvt_dtype_is_float(dtype) ? DVTI_F32 : DVTI_I64;
}

/* ---- 16-bit floats: round to nearest, ties to even; NaN stays NaN ---- */
static uint32_t dvti_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float dvti_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

DVTI_FN float dvti_bf16_to_f32(uint16_t x) {
    return dvti_from_bits((uint32_t)x << 16);
}

DVTI_FN uint16_t dvti_f32_to_bf16(float x) {
    uint32_t bits = dvti_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

DVTI_FN float dvti_f16_to_f32(uint16_t x) {
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = x >> 10 & 31u, fraction = x & 1023u;
    if (exponent == 31)
        return dvti_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        float value = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -value : value;
    }
    return dvti_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

DVTI_FN uint16_t dvti_f32_to_f16(float x) {
    uint32_t bits = dvti_bits(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude <
        0x38800000u) { /* below 2^-14: the sum with 2^-1 leaves the 2^-24 grid in the low bits */
        float sum = dvti_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (dvti_bits(sum) - 0x3f000000u));
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

/* Through float32 a double would be rounded twice. Rounding to odd first makes the second rounding exact. */
static float dvti_round_to_odd(double x) {
    float nearest = (float)x;
    if ((double)nearest != x && x == x && nearest - nearest == 0.0f && !(dvti_bits(nearest) & 1u)) {
        bool up = (double)nearest < x;
        uint32_t bits = dvti_bits(nearest);
        if (nearest == 0.0f)
            return dvti_from_bits((x < 0 ? 0x80000000u : 0u) | 1u);
        bits = (nearest > 0) == up ? bits + 1 : bits - 1;
        return dvti_from_bits(bits);
    }
    return nearest;
}

DVTI_FN uint16_t dvti_f64_to_f16(double x) {
    return dvti_f32_to_f16(dvti_round_to_odd(x));
}

DVTI_FN uint16_t dvti_f64_to_bf16(double x) {
    return dvti_f32_to_bf16(dvti_round_to_odd(x));
}

DVTI_FN double dvti_round_as(dvt_dtype dtype, double x) {
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_f64_to_f16(x));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_f64_to_bf16(x));
    return dtype == DVT_F32 ? (double)(float)x : x;
}

/* Codes of one sign count upwards with the magnitude. */
static uint16_t dvti_code_below(uint16_t code) {
    if (code & 0x8000u)
        return (uint16_t)(code + 1);
    return code ? (uint16_t)(code - 1) : (uint16_t)0x8001u;
}

DVTI_FN double dvti_below(dvt_dtype dtype, double x) {
    double nearest = dvti_round_as(dtype, x);
    if (nearest < x)
        return nearest;
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_code_below(dvti_f64_to_f16(nearest)));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_code_below(dvti_f64_to_bf16(nearest)));
    return dtype == DVT_F32 ? (double)nextafterf((float)nearest, -(float)HUGE_VAL)
                            : nextafter(nearest, -HUGE_VAL);
}
/* ==== end src/2_core/dvt_dtype.c ==== */
#ifdef DEVTENSOR_LINES
#line 23 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_scope.c ==== */
/* Objects and the scopes that own them: per thread one stack of objects, and marks in it. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_scope.c"
#endif

typedef struct dvti_scope_stack {
    dvti_object **items;
    size_t count, capacity;
    size_t *marks; /* where each open scope begins */
    size_t depth, marks_capacity;
} dvti_scope_stack;

static DVTI_TLS dvti_scope_stack dvti_scopes;

static void dvti_scopes_end_thread(void) {
    dvt_release_all();
    dvti_free(dvti_scopes.items);
    dvti_free(dvti_scopes.marks);
    memset(&dvti_scopes, 0, sizeof dvti_scopes);
}

static size_t dvti_scope_floor(void) {
    return dvti_scopes.depth ? dvti_scopes.marks[dvti_scopes.depth - 1] : 0;
}

static bool dvti_scope_room(void) {
    dvti_at_thread_end(dvti_scopes_end_thread);
    return dvti_grow((void **)&dvti_scopes.items, &dvti_scopes.capacity, dvti_scopes.count + 1,
                     sizeof *dvti_scopes.items);
}

DVTI_FN void dvti_object_begin_unowned(void *object, void (*destroy)(void *)) {
    dvti_object *header = (dvti_object *)object;
    dvti_atomic_store(&header->references, 1);
    header->destroy = destroy;
}

DVTI_FN bool dvti_object_begin(void *object, void (*destroy)(void *), const char *function) {
    if (!dvti_scope_room()) {
        dvti_fail_memory(function, (int64_t)(sizeof(void *) * (dvti_scopes.count + 1)));
        return false;
    }
    dvti_object_begin_unowned(object, destroy);
    dvti_scopes.items[dvti_scopes.count++] = (dvti_object *)object;
    return true;
}

/* The position of an object in the innermost scope, or count when it is not there. Looks from the newest. */
static size_t dvti_scope_find(void *object) {
    size_t floor = dvti_scope_floor(), i;
    for (i = dvti_scopes.count; i > floor; i--)
        if (dvti_scopes.items[i - 1] == object)
            return i - 1;
    return dvti_scopes.count;
}

DVTI_FN void dvti_scope_take(void *object) {
    size_t at = dvti_scope_find(object);
    if (at == dvti_scopes.count) /* owned by an outer scope: leave that alone and count one more */
        dvt_retain(object);
    else
        dvti_scopes.items[at] = dvti_scopes.items[--dvti_scopes.count];
}

DVTI_FN bool dvti_scope_give(void *object) {
    if (!dvti_scope_room())
        return false;
    dvti_scopes.items[dvti_scopes.count++] = (dvti_object *)object;
    return true;
}

DVT_API void *dvt_retain(void *object) {
    if (object)
        dvti_atomic_add(&((dvti_object *)object)->references, 1);
    return object;
}

DVT_API void dvt_release(void *object) {
    dvti_object *header = (dvti_object *)object;
    if (header && dvti_atomic_add(&header->references, -1) == 0)
        header->destroy(object);
}

/* Moving to the enclosing scope is moving this scope's mark: the object changes places with the first one above it. */
DVT_API void *dvt_keep(void *object) {
    size_t at, first;
    if (!object || !dvti_scopes.depth)
        return object;
    at = dvti_scope_find(object);
    if (at == dvti_scopes.count)
        return object;
    first = dvti_scopes.marks[dvti_scopes.depth - 1]++;
    dvti_scopes.items[at] = dvti_scopes.items[first];
    dvti_scopes.items[first] = (dvti_object *)object;
    return object;
}

/* Newest first. Destroying may release others, but never opens a scope or makes an object. */
static void dvti_scope_drop(size_t floor) {
    while (dvti_scopes.count > floor)
        dvt_release(dvti_scopes.items[--dvti_scopes.count]);
}

/* Without memory for a mark the scope is not opened (once 0, depth -1): what it would have made belongs to the one outside. */
DVT_API dvt_scope_guard dvt_scope_begin(void) {
    dvt_scope_guard guard;
    guard.once = 1;
    guard.mark = dvti_scopes.count;
    guard.depth = -1;
    dvti_at_thread_end(dvti_scopes_end_thread);
    if (dvti_grow((void **)&dvti_scopes.marks, &dvti_scopes.marks_capacity, dvti_scopes.depth + 1,
                  sizeof *dvti_scopes.marks)) {
        guard.depth = (int)dvti_scopes.depth;
        dvti_scopes.marks[dvti_scopes.depth++] = dvti_scopes.count;
    }
    return guard;
}

/* Also ends inner scopes that were left without ending (possible only without guards that run by themselves). */
DVT_API void dvt_scope_end(dvt_scope_guard *guard) {
    guard->once = 0;
    if (guard->depth < 0 || (size_t)guard->depth >= dvti_scopes.depth)
        return;
    dvti_scope_drop(dvti_scopes.marks[guard->depth]);
    dvti_scopes.depth = (size_t)guard->depth;
    guard->depth = -1;
}

DVT_API void dvt_release_all(void) {
    dvti_scopes.depth = 0;
    dvti_scope_drop(0);
}
/* ==== end src/2_core/dvt_scope.c ==== */
#ifdef DEVTENSOR_LINES
#line 24 "src/devtensor_spine.h"
#endif
/* ==== begin src/2_core/dvt_shape.c ==== */
/* Shapes: sizes that cannot overflow, strides, broadcasting, axes. */
#ifdef DEVTENSOR_LINES
#line 2 "src/2_core/dvt_shape.c"
#endif

DVT_API dvt_shape dvt_shape_make(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3,
                                 int64_t d4, int64_t d5, int64_t d6, int64_t d7) {
    dvt_shape shape;
    shape.ndim = ndim;
    shape.dim[0] = d0;
    shape.dim[1] = d1;
    shape.dim[2] = d2;
    shape.dim[3] = d3;
    shape.dim[4] = d4;
    shape.dim[5] = d5;
    shape.dim[6] = d6;
    shape.dim[7] = d7;
    return shape;
}

DVT_API dvt_axes dvt_axes_make(int n, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
                               int a7) {
    dvt_axes axes;
    axes.n = n;
    axes.axis[0] = a0;
    axes.axis[1] = a1;
    axes.axis[2] = a2;
    axes.axis[3] = a3;
    axes.axis[4] = a4;
    axes.axis[5] = a5;
    axes.axis[6] = a6;
    axes.axis[7] = a7;
    return axes;
}

DVT_API bool dvt_shape_equal(dvt_shape a, dvt_shape b) {
    int i;
    if (a.ndim != b.ndim)
        return false;
    for (i = 0; i < a.ndim && i < DVT_MAX_DIMS; i++)
        if (a.dim[i] != b.dim[i])
            return false;
    return true;
}

/* An extent of 0 makes the product 0 even where the other extents overflow: the array has no elements. */
DVT_API int64_t dvt_shape_size(dvt_shape shape) {
    int64_t size = 1;
    bool fits = true, empty = false;
    int i;
    if (shape.ndim < 0 || shape.ndim > DVT_MAX_DIMS)
        return -1;
    for (i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0)
            return -1;
        empty = empty || shape.dim[i] == 0;
        fits = fits && dvti_mul(size, shape.dim[i], &size);
    }
    return empty ? 0 : fits ? size : -1;
}

DVTI_FN bool dvti_nbytes(const char *function, dvt_shape shape, dvt_dtype dtype, int64_t *bytes) {
    int64_t size;
    int i;
    if (!dvti_dtype_ok(dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: %d is no dtype; use DVT_F32, DVT_I64 and the like", function,
                  (int)dtype);
        return false;
    }
    if (shape.ndim < 0 || shape.ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: a shape of %d dimensions; expected 0 to %d", function,
                  shape.ndim, DVT_MAX_DIMS);
        return false;
    }
    for (i = 0; i < shape.ndim; i++)
        if (shape.dim[i] < 0) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: shape %s has a negative extent; extents must be 0 or more", function,
                      dvti_shape_text(shape));
            return false;
        }
    size = dvt_shape_size(shape);
    if (size < 0 || !dvti_mul(size, dvt_dtype_size(dtype), bytes)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: shape %s of %s has more than 2^63 bytes; use a smaller shape",
                  function, dvti_shape_text(shape), dvt_dtype_name(dtype));
        return false;
    }
    return true;
}

/* Strides of an empty array may overflow on the way; they are never used, so 0 is as good. */
DVTI_FN void dvti_strides_c(dvt_shape shape, int64_t *stride) {
    int64_t step = 1;
    int i;
    for (i = shape.ndim - 1; i >= 0; i--) {
        stride[i] = step;
        if (!dvti_mul(step, shape.dim[i], &step))
            step = 0;
    }
}

DVTI_FN bool dvti_broadcast(const char *function, dvt_shape a, dvt_shape b, dvt_shape *out) {
    int ndim = DVTI_MAX(a.ndim, b.ndim), i;
    dvt_shape result = DVT_SCALAR;
    result.ndim = ndim;
    for (i = 0; i < ndim; i++) {
        int64_t da = i < ndim - a.ndim ? 1 : a.dim[i - (ndim - a.ndim)];
        int64_t db = i < ndim - b.ndim ? 1 : b.dim[i - (ndim - b.ndim)];
        if (da != db && da != 1 && db != 1) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: shapes %s and %s do not broadcast: extents must be equal or 1, counted "
                      "from the last; "
                      "reshape or slice one of them",
                      function, dvti_shape_text(a), dvti_shape_text(b));
            return false;
        }
        result.dim[i] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

DVTI_FN bool dvti_axis(const char *function, int *axis, int ndim) {
    if (*axis < -ndim || *axis >= ndim) {
        if (ndim == 0)
            dvti_fail(DVT_ERR_AXIS, "%s: axis %d of an array without axes; reshape it first",
                      function, *axis);
        else
            dvti_fail(DVT_ERR_AXIS, "%s: axis %d of an array with %d %s; expected %d to %d",
                      function, *axis, ndim, ndim == 1 ? "axis" : "axes", -ndim, ndim - 1);
        return false;
    }
    if (*axis < 0)
        *axis += ndim;
    return true;
}
/* ==== end src/2_core/dvt_shape.c ==== */
#ifdef DEVTENSOR_LINES
#line 25 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/dvt_cpu.c ==== */
/* The backend of cpu(): main memory, and kernels that have finished when the call returns. Also the table of kernel families,
   which virtual GPUs share. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cpu/dvt_cpu.c"
#endif
/* ==== begin src/3_cpu/dvt_cpu.h ==== */
/* The CPU backend's rooms and what they offer each other. Kernels run a whole launch in the calling thread, helped by the pool
   where that pays; they never allocate (dvti_cpu_workspace says what they need) and never fail. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cpu/dvt_cpu.h"
#endif
#ifndef DVTI_CPU_H
#define DVTI_CPU_H
#ifdef DEVTENSOR_LINES
#line 5 "src/3_cpu/dvt_cpu.h"
#endif

/* Runs one launch to its end. */
DVTI_FN void dvti_cpu_run(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_workspace(dvti_device *device, const dvti_launch *launch);

/* For tests: the next operation that a virtual GPU runs fails with this reason. */
DVTI_FN void dvti_virtual_fail_next(dvti_device *device, const char *reason);

/* One per family, in ref/. */
DVTI_FN void dvti_ref_fill(const dvti_launch *launch);
DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch);
DVTI_FN void dvti_ref_reduce(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_reduce_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_softmax(const dvti_launch *launch);
DVTI_FN void dvti_ref_matmul(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_matmul_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_conv2d_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch);
DVTI_FN void dvti_ref_index(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_index_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_random(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_random_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_optimizer(const dvti_launch *launch);

/* One element of a view, converted; the plain way that every family may use. `at` counts elements from view.data. */
DVTI_FN double dvti_load_f64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN int64_t dvti_load_i64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN void dvti_store_f64(void *data, dvt_dtype dtype, int64_t at, double value);
DVTI_FN void dvti_store_i64(void *data, dvt_dtype dtype, int64_t at, int64_t value);
/* n elements, `step` apart, from or to a plain row of a class. */
DVTI_FN void dvti_load_row_f32(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               float *dst);
DVTI_FN void dvti_load_row_f64(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               double *dst);
DVTI_FN void dvti_load_row_i64(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               int64_t *dst);
DVTI_FN void dvti_store_row_f32(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const float *src);
DVTI_FN void dvti_store_row_f64(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const double *src);
DVTI_FN void dvti_store_row_i64(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const int64_t *src);

DVTI_FN int64_t dvti_view_size(const dvti_view *view);
/* Blocks of a view that dvti_merge_axes has prepared: n positions from `first` on, in C order. */
DVTI_FN void dvti_merge_axes(dvti_view *view);
DVTI_FN void dvti_load_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                             void *dst);
DVTI_FN void dvti_store_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                              const void *src);
/* The memory itself when it is contiguous and of the class's own dtype, so that no block is needed; else NULL. */
DVTI_FN void *dvti_block_direct(const dvti_view *view, dvti_class compute, int64_t first);

/* Where a position of a merged view stands: the index on every axis, and the element's distance from view.data. */
typedef struct dvti_cursor {
    int64_t index[DVT_MAX_DIMS];
    int64_t at;
} dvti_cursor;

DVTI_FN dvti_cursor dvti_cursor_at(const dvti_view *view, int64_t position);
/* n positions further, not beyond the end of the last axis. */
DVTI_FN void dvti_cursor_advance(dvti_cursor *cursor, const dvti_view *view, int64_t n);
#define DVTI_BLOCK 512 /* elements: four operands of 8 bytes stay in the first-level cache */

/* ---- the inside of a matrix product, shared by matmul and convolution (ref/ref_gemm.c) ----
   A product is cut into tiles, and the sums of a tile into steps of at most plan.depth terms. Both factors of a step are
   packed into panels: A by DVTI_GEMM_ROWS rows, B by plan.width columns; a panel is [k][lane], and lanes that the matrix does
   not have are zeros. The sums of a tile wait in acc, [column panel][row panel][row][column]. So every sum is
   formed in ascending k by one piece of code, and no cut and no thread count changes a bit. */
#define DVTI_GEMM_ROWS 6

typedef struct dvti_gemm {
    dvti_class compute;
    int64_t size, width;          /* bytes of an element; columns of a panel */
    int64_t rows, cols, depth;    /* of the largest tile */
    int64_t b_at, acc_at, row_at; /* where the parts of a tile's area start; a at 0 */
    int64_t bytes;                /* of the area */
} dvti_gemm;

/* For a product of that size. The area also holds one row of max(cols, depth) elements. */
DVTI_FN dvti_gemm dvti_gemm_plan(dvti_class compute, int64_t rows, int64_t cols, int64_t depth);
/* Fills panels of `width` lanes from a strided matrix of any dtype. */
DVTI_FN void dvti_gemm_pack(const dvti_gemm *plan, void *panels, int64_t width, int64_t lanes,
                            int64_t depth, const void *data, dvt_dtype dtype, int64_t lane_stride,
                            int64_t depth_stride);
/* The same piece by piece, from contiguous elements of the class: one k of all lanes; one lane, all k. Lanes that the
   matrix does not have are the caller's to clear. */
DVTI_FN void dvti_gemm_put_k(const dvti_gemm *plan, void *panels, int64_t width, int64_t lanes,
                             int64_t depth, int64_t k, const void *values);
DVTI_FN void dvti_gemm_put_lane(const dvti_gemm *plan, void *panels, int64_t width, int64_t lane,
                                int64_t depth, const void *values);
/* acc += A * B, or acc = A * B when `first`. */
DVTI_FN void dvti_gemm_multiply(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                                const void *a, const void *b, void *acc, bool first);
/* Row r of acc, in C order. */
DVTI_FN void dvti_gemm_row(const dvti_gemm *plan, int64_t rows, int64_t cols, const void *acc,
                           int64_t r, void *out);

/* Tasks that each need an area of the workspace while they run: as many at once as there are areas. */
typedef void (*dvti_task_fn)(void *user, int64_t task, void *area);
/* Areas for a launch of `tasks` that cost `work` multiplications in all: 1 when threads would not pay. */
DVTI_FN int64_t dvti_task_areas(int64_t tasks, double work);
DVTI_FN void dvti_run_tasks(int64_t tasks, void *workspace, int64_t areas, int64_t area_bytes,
                            dvti_task_fn run, void *user);

#endif
/* ==== end src/3_cpu/dvt_cpu.h ==== */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/dvt_cpu.c"
#endif

DVTI_FN void dvti_cpu_run(const dvti_launch *launch) {
    switch (launch->kernel) {
    case DVTI_K_FILL:
    case DVTI_K_ARANGE:
    case DVTI_K_EYE:
        dvti_ref_fill(launch);
        break;
    case DVTI_K_ELEMENTWISE:
        dvti_ref_elementwise(launch);
        break;
    case DVTI_K_MATMUL:
        dvti_ref_matmul(launch);
        break;
    case DVTI_K_REDUCE:
        dvti_ref_reduce(launch);
        break;
    case DVTI_K_SOFTMAX:
        dvti_ref_softmax(launch);
        break;
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
    case DVTI_K_ONE_HOT:
        dvti_ref_index(launch);
        break;
    case DVTI_K_RANDOM:
        dvti_ref_random(launch);
        break;
    case DVTI_K_CONV2D:
        dvti_ref_conv2d(launch);
        break;
    case DVTI_K_POOL2D:
        dvti_ref_pool2d(launch);
        break;
    default:
        break;
    }
}

DVTI_FN int64_t dvti_cpu_workspace(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    switch (launch->kernel) {
    case DVTI_K_REDUCE:
        return dvti_ref_reduce_workspace(launch);
    case DVTI_K_MATMUL:
        return dvti_ref_matmul_workspace(launch);
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
        return dvti_ref_index_workspace(launch);
    case DVTI_K_RANDOM:
        return dvti_ref_random_workspace(launch);
    case DVTI_K_CONV2D:
        return dvti_ref_conv2d_workspace(launch);
    default:
        return 0;
    }
}

/* Two threads that grow `used` at once must not both miss the peak. */
static void dvti_cpu_count_peak(dvti_device *device, int64_t used) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    if (used <= dvti_atomic_load(&device->peak))
        return;
    dvti_mutex_lock(&lock);
    if (used > dvti_atomic_load(&device->peak))
        dvti_atomic_store(&device->peak, used);
    dvti_mutex_unlock(&lock);
}

static dvt_status dvti_cpu_acquire(dvti_device *device, int64_t bytes, void **out) {
    void *block = dvti_alloc_aligned((size_t)bytes);
    if (!block)
        return dvti_fail_memory("allocation on cpu(0)", bytes);
    dvti_cpu_count_peak(device, dvti_atomic_add(&device->used, bytes));
    *out = block;
    return DVT_OK;
}

static void dvti_cpu_release(dvti_device *device, void *block, int64_t bytes) {
    dvti_atomic_add(&device->used, -bytes);
    dvti_free_aligned(block);
}

static dvt_status dvti_cpu_move(dvti_device *device, void *dst, const void *src, int64_t bytes) {
    (void)device;
    if (bytes > 0)
        memmove(dst, src, (size_t)bytes);
    return DVT_OK;
}

static dvt_status dvti_cpu_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                     const void *src, int64_t bytes) {
    (void)from;
    return dvti_cpu_move(device, dst, src, bytes);
}

static dvt_status dvti_cpu_launch(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    dvti_cpu_run(launch);
    return DVT_OK;
}

static dvt_status dvti_cpu_wait(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

DVTI_FN const dvti_backend *dvti_cpu_backend(void) {
    static const dvti_backend backend = {
        "cpu",         dvti_cpu_acquire,   dvti_cpu_release,   dvti_cpu_move,
        dvti_cpu_move, dvti_cpu_copy_from, dvti_cpu_workspace, dvti_cpu_launch,
        dvti_cpu_wait};
    return &backend;
}
/* ==== end src/3_cpu/dvt_cpu.c ==== */
#ifdef DEVTENSOR_LINES
#line 26 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/dvt_virtual.c ==== */
/* Virtual GPUs: a memory space with a limit and a command queue with a thread of its own, computed by the CPU's kernels. They behave
   as cards do: calls return at once, several devices work at the same time, errors come out of a later wait.

   The queue is a ring of numbered commands. Other devices, and callers that wait, look at how many are completed: a copy
   between devices waits for the source's commands so far, and the source's next commands wait for the copy. Every command waits only for
   commands that were put in before it, so queues cannot wait for each other in a circle.

   A forked child has the memory but not the thread: everything except releasing is refused there, and no lock is touched, since the
   thread may have held it. */
#ifdef DEVTENSOR_LINES
#line 10 "src/3_cpu/dvt_virtual.c"
#endif

#define DVTI_QUEUE_LENGTH 128
#define DVTI_INLINE_BYTES 512 /* uploads of this size travel inside the command */

typedef enum dvti_command_kind {
    DVTI_COMMAND_LAUNCH,
    DVTI_COMMAND_COPY,    /* src to dst; src may be bytes[], or be freed afterwards */
    DVTI_COMMAND_RELEASE, /* dst */
    DVTI_COMMAND_AWAIT    /* only the wait that any command may begin with */
} dvti_command_kind;

typedef struct dvti_command {
    dvti_command_kind kind;
    dvti_launch launch;
    void *dst;
    const void *src;
    int64_t size;
    void *staging;
    unsigned char bytes[DVTI_INLINE_BYTES];
    struct dvti_virtual
        *after; /* holds a reference; until it has completed after_number commands */
    int64_t after_number;
} dvti_command;

typedef struct dvti_virtual {
    dvti_atomic references; /* the device, and commands of other queues that wait for this one */
    dvt_ctx ctx;
    int64_t process;
    bool threaded;
#if DVTI_THREADS
    dvti_thread thread;
    dvti_cond work, done;
#endif
    dvti_mutex lock; /* of everything below */
    bool stop;
    int64_t put, completed; /* commands so far */
    const char *fail_next;  /* for tests: the next launch fails with this reason */
    bool lost;              /* a launch failed: what follows is skipped */
    char lost_text[512];
    dvt_status pending; /* comes out of the next wait */
    char pending_text[512];
    dvti_command ring[DVTI_QUEUE_LENGTH];
} dvti_virtual;

static dvti_virtual *dvti_virtual_of(dvti_device *device) {
    return (dvti_virtual *)device->impl;
}

static void dvti_virtual_unref(dvti_virtual *v) {
    if (dvti_atomic_add(&v->references, -1) == 0)
        dvti_free(v);
}

static bool dvti_virtual_forked(const dvti_virtual *v) {
    return v->process != dvti_process_id();
}

/* ---- running commands ---- */
static void dvti_virtual_fails(dvti_virtual *v, const char *name, const char *reason) {
    dvti_mutex_lock(&v->lock);
    v->lost = true;
    v->pending = DVT_ERR_INTERNAL;
    snprintf(v->lost_text, sizeof v->lost_text, "%s on gpu(%d) failed: %s", name, v->ctx.id,
             reason);
    snprintf(
        v->pending_text, sizeof v->pending_text,
        "%.400s; release the arrays on that device and call dvt_set_virtual_gpus to start again",
        v->lost_text);
    dvti_mutex_unlock(&v->lock);
}

/* The number of commands that must be completed before what is put in now may be looked at. */
static int64_t dvti_virtual_now(dvti_virtual *v) {
    int64_t number;
    dvti_mutex_lock(&v->lock);
    number = v->put;
    dvti_mutex_unlock(&v->lock);
    return number;
}

static void dvti_virtual_await(dvti_virtual *v, int64_t number) {
    dvti_mutex_lock(&v->lock);
#if DVTI_THREADS
    while (v->completed < number)
        dvti_cond_wait(&v->done, &v->lock);
#else
    (void)number;
#endif
    dvti_mutex_unlock(&v->lock);
}

/* What was copied from a device that failed before is worthless: the destination's next wait says so. */
static void dvti_virtual_check_source(dvti_virtual *v, dvti_virtual *from) {
    char reason[sizeof from->lost_text];
    bool lost;
    dvti_mutex_lock(&from->lock);
    lost = from->lost;
    memcpy(reason, from->lost_text, sizeof reason);
    dvti_mutex_unlock(&from->lock);
    if (!lost || from == v)
        return;
    dvti_mutex_lock(&v->lock);
    if (v->pending == DVT_OK) {
        v->pending = DVT_ERR_DEVICE_LOST;
        snprintf(v->pending_text, sizeof v->pending_text,
                 "a copy from gpu(%d) to gpu(%d) has no valid values, since %.400s", from->ctx.id,
                 v->ctx.id, reason);
    }
    dvti_mutex_unlock(&v->lock);
}

static void dvti_virtual_do(dvti_virtual *v, dvti_command *command) {
    const char *reason;
    bool lost;
    if (command->after) {
        dvti_virtual_await(command->after, command->after_number);
        if (command->kind == DVTI_COMMAND_COPY)
            dvti_virtual_check_source(v, command->after);
        dvti_virtual_unref(command->after);
    }
    dvti_mutex_lock(&v->lock);
    lost = v->lost;
    reason = command->kind == DVTI_COMMAND_LAUNCH ? v->fail_next : NULL;
    if (reason)
        v->fail_next = NULL;
    dvti_mutex_unlock(&v->lock);
    if (command->kind == DVTI_COMMAND_RELEASE)
        dvti_free_aligned(command->dst);
    else if (command->kind == DVTI_COMMAND_COPY && !lost)
        memcpy(command->dst, command->src, (size_t)command->size);
    else if (reason && !lost)
        dvti_virtual_fails(v, command->launch.name, reason);
    else if (command->kind == DVTI_COMMAND_LAUNCH && !lost)
        dvti_cpu_run(&command->launch);
    dvti_free(command->staging);
}

#if DVTI_THREADS
static void dvti_virtual_worker(void *user) {
    dvti_virtual *v = (dvti_virtual *)user;
    dvti_parallel_off();
    dvti_mutex_lock(&v->lock);
    for (;;) {
        dvti_command *command;
        while (v->completed == v->put && !v->stop)
            dvti_cond_wait(&v->work, &v->lock);
        if (v->completed == v->put)
            break;
        command = &v->ring[v->completed % DVTI_QUEUE_LENGTH];
        dvti_mutex_unlock(&v->lock);
        dvti_virtual_do(v, command);
        dvti_mutex_lock(&v->lock);
        v->completed++;
        dvti_cond_broadcast(&v->done);
    }
    dvti_mutex_unlock(&v->lock);
}
#endif

/* ---- putting commands in ---- */
/* A slot to be filled, with the lock held when there is a thread; dvti_virtual_put gives it away. */
static dvti_command *dvti_virtual_slot(dvti_virtual *v, dvti_command_kind kind) {
    dvti_command *command;
    dvti_mutex_lock(&v->lock);
#if DVTI_THREADS
    while (v->put - v->completed == DVTI_QUEUE_LENGTH)
        dvti_cond_wait(&v->done, &v->lock);
#endif
    command = &v->ring[v->put % DVTI_QUEUE_LENGTH];
    command->kind = kind;
    command->staging = NULL;
    command->after = NULL;
    return command;
}

static int64_t dvti_virtual_put(dvti_virtual *v) {
    int64_t number = ++v->put;
#if DVTI_THREADS
    dvti_cond_signal(&v->work);
#endif
    dvti_mutex_unlock(&v->lock);
    return number;
}

/* Nothing is queued or running, and nobody but this caller can put anything in that concerns the same memory. */
static bool dvti_virtual_idle(dvti_virtual *v) {
    bool idle;
    dvti_mutex_lock(&v->lock);
    idle = v->put == v->completed;
    dvti_mutex_unlock(&v->lock);
    return idle;
}

/* Forked children and lost devices take nothing. */
static dvt_status dvti_virtual_usable(dvti_device *device, const char *what) {
    dvti_virtual *v = dvti_virtual_of(device);
    char reason[sizeof v->lost_text];
    bool lost;
    if (dvti_virtual_forked(v))
        return dvti_fail(DVT_ERR_FORKED,
                         "%s: %s was opened before this process was forked, and its queue stayed "
                         "in the parent; use it there, or call dvt_set_virtual_gpus here",
                         what, dvt_ctx_name(device->ctx));
    dvti_mutex_lock(&v->lock);
    lost = v->lost && v->pending == DVT_OK;
    if (lost)
        memcpy(reason, v->lost_text, sizeof reason);
    dvti_mutex_unlock(&v->lock);
    if (lost)
        return dvti_fail(DVT_ERR_DEVICE_LOST,
                         "%s: %s is lost, since %.400s; release the arrays on it and call "
                         "dvt_set_virtual_gpus to start again",
                         what, dvt_ctx_name(device->ctx), reason);
    return DVT_OK;
}

/* ---- the backend ---- */
static dvt_status dvti_virtual_wait(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, "waiting");
    char text[sizeof v->pending_text];
    if (status != DVT_OK)
        return status;
    dvti_virtual_await(v, dvti_virtual_now(v));
    dvti_mutex_lock(&v->lock);
    status = v->pending;
    v->pending = DVT_OK;
    memcpy(text, v->pending_text, sizeof text);
    dvti_mutex_unlock(&v->lock);
    return status == DVT_OK ? DVT_OK : dvti_fail(status, "%s", text);
}

static bool dvti_virtual_count(dvti_device *device, int64_t bytes, int64_t *used) {
    dvti_virtual *v = dvti_virtual_of(device);
    bool fits;
    dvti_mutex_lock(&v->lock);
    *used = dvti_atomic_load(&device->used);
    fits = !device->limit || bytes <= device->limit - *used;
    if (fits) {
        int64_t now = dvti_atomic_add(&device->used, bytes);
        if (now > dvti_atomic_load(&device->peak))
            dvti_atomic_store(&device->peak, now);
    }
    dvti_mutex_unlock(&v->lock);
    return fits;
}

static dvt_status dvti_virtual_acquire(dvti_device *device, int64_t bytes, void **out) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, "allocation");
    int64_t used;
    if (status != DVT_OK)
        return status;
    if (!dvti_virtual_count(device, bytes, &used))
        return dvti_fail(DVT_ERR_DEVICE_MEMORY,
                         "allocation on %s: %lld bytes wanted, %lld of %lld are in use; free "
                         "arrays there, use a smaller batch, or another device",
                         dvt_ctx_name(device->ctx), (long long)bytes, (long long)used,
                         (long long)device->limit);
    *out = dvti_alloc_aligned((size_t)bytes);
    if (!*out) { /* blocks that are released, but still in the queue, may help */
        dvti_virtual_await(v, dvti_virtual_now(v));
        *out = dvti_alloc_aligned((size_t)bytes);
    }
    if (*out)
        return DVT_OK;
    dvti_atomic_add(&device->used, -bytes);
    return dvti_fail_memory("allocation on a virtual GPU", bytes);
}

static void dvti_virtual_release(dvti_device *device, void *block, int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_atomic_add(&device->used, -bytes);
    if (!v->threaded || dvti_virtual_forked(v) || dvti_virtual_idle(v)) {
        dvti_free_aligned(block);
        return;
    }
    dvti_virtual_slot(v, DVTI_COMMAND_RELEASE)->dst = block;
    dvti_virtual_put(v);
}

static dvt_status dvti_virtual_upload(dvti_device *device, void *dst, const void *src,
                                      int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, "upload");
    dvti_command *command;
    void *staging = NULL;
    if (status != DVT_OK || bytes == 0)
        return status;
    if (!v->threaded || dvti_virtual_idle(v)) {
        memcpy(dst, src, (size_t)bytes);
        return DVT_OK;
    }
    if (bytes > DVTI_INLINE_BYTES && !(staging = dvti_alloc((size_t)bytes)))
        return dvti_fail_memory("upload", bytes);
    if (staging)
        memcpy(staging, src, (size_t)bytes);
    command = dvti_virtual_slot(v, DVTI_COMMAND_COPY);
    if (!staging)
        memcpy(command->bytes, src, (size_t)bytes);
    command->dst = dst;
    command->src = staging ? staging : command->bytes;
    command->size = bytes;
    command->staging = staging;
    dvti_virtual_put(v);
    return DVT_OK;
}

static dvt_status dvti_virtual_download(dvti_device *device, void *dst, const void *src,
                                        int64_t bytes) {
    dvt_status status = dvti_virtual_wait(device);
    if (status == DVT_OK && bytes > 0)
        memcpy(dst, src, (size_t)bytes);
    return status;
}

/* The command goes on when `after` has completed what it holds now. */
static void dvti_virtual_order(dvti_command *command, dvti_virtual *after, int64_t number) {
    dvti_atomic_add(&after->references, 1);
    command->after = after;
    command->after_number = number;
}

static dvt_status dvti_virtual_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                         const void *src, int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device), *source = dvti_virtual_of(from);
    dvt_status status = dvti_virtual_usable(device, "copy");
    dvti_command *command;
    int64_t number;
    if (status == DVT_OK)
        status = dvti_virtual_usable(from, "copy");
    if (status != DVT_OK || bytes == 0)
        return status;
    number = dvti_virtual_now(source);
    if (!v->threaded) {
        dvti_virtual_await(source, number);
        dvti_virtual_check_source(v, source);
        memcpy(dst, src, (size_t)bytes);
        return DVT_OK;
    }
    command = dvti_virtual_slot(v, DVTI_COMMAND_COPY);
    command->dst = dst;
    command->src = src;
    command->size = bytes;
    dvti_virtual_order(command, source, number);
    number = dvti_virtual_put(v);
    if (source->threaded) {
        command = dvti_virtual_slot(source, DVTI_COMMAND_AWAIT);
        dvti_virtual_order(command, v, number);
        dvti_virtual_put(source);
    } else
        dvti_virtual_await(v, number);
    return DVT_OK;
}

static dvt_status dvti_virtual_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, launch->name);
    if (status != DVT_OK)
        return status;
    if (!v->threaded) {
        dvti_command now;
        now.kind = DVTI_COMMAND_LAUNCH;
        now.launch = *launch;
        now.staging = NULL;
        now.after = NULL;
        dvti_virtual_do(v, &now);
        return DVT_OK;
    }
    dvti_virtual_slot(v, DVTI_COMMAND_LAUNCH)->launch = *launch;
    dvti_virtual_put(v);
    return DVT_OK;
}

/* ---- opening and closing ---- */
DVTI_FN dvt_status dvti_virtual_open(dvti_device *device) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    dvti_virtual *v = (dvti_virtual *)dvti_alloc_zero(sizeof *v);
    if (!v)
        return dvti_fail_memory("opening a virtual GPU", (int64_t)sizeof *v);
    v->references = 1;
    v->ctx = device->ctx;
    v->process = dvti_process_id();
    memcpy(&v->lock, &fresh_lock, sizeof fresh_lock);
#if DVTI_THREADS
    {
        dvti_cond fresh_cond = DVTI_COND_INIT;
        memcpy(&v->work, &fresh_cond, sizeof fresh_cond);
        memcpy(&v->done, &fresh_cond, sizeof fresh_cond);
    }
    v->threaded = dvti_thread_start(&v->thread, dvti_virtual_worker, v);
    if (!v->threaded)
        dvti_log(DVT_LOG_INFO, "%s gets no thread of its own; it computes in the calling thread",
                 dvt_ctx_name(device->ctx));
#endif
    device->impl = v;
    return DVT_OK;
}

DVTI_FN void dvti_virtual_close(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
#if DVTI_THREADS
    if (v->threaded && !dvti_virtual_forked(v)) {
        dvti_mutex_lock(&v->lock);
        v->stop = true;
        dvti_cond_signal(&v->work);
        dvti_mutex_unlock(&v->lock);
        dvti_thread_join(v->thread);
    }
#endif
    device->impl = NULL;
    dvti_virtual_unref(v);
}

DVTI_FN void dvti_virtual_fail_next(dvti_device *device, const char *reason) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_mutex_lock(&v->lock);
    v->fail_next = reason;
    dvti_mutex_unlock(&v->lock);
}

DVTI_FN const dvti_backend *dvti_virtual_backend(void) {
    static const dvti_backend backend = {
        "virtual",           dvti_virtual_acquire,  dvti_virtual_release,
        dvti_virtual_upload, dvti_virtual_download, dvti_virtual_copy_from,
        dvti_cpu_workspace,  dvti_virtual_launch,   dvti_virtual_wait};
    return &backend;
}

#undef DVTI_QUEUE_LENGTH
#undef DVTI_INLINE_BYTES
/* ==== end src/3_cpu/dvt_virtual.c ==== */
#ifdef DEVTENSOR_LINES
#line 27 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_block.c ==== */
/* Blocks: a run of positions, in C order, of a view with any strides, to and from a plain buffer of a class. Kernels that work
   block by block see neither dtypes nor strides. */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/ref/ref_block.c"
#endif

static const int dvti_class_size[] = {4, 8, 8};
static const dvt_dtype dvti_class_dtype[] = {DVT_F32, DVT_F64, DVT_I64};

DVTI_FN int64_t dvti_view_size(const dvti_view *view) {
    int64_t size = 1;
    int i;
    for (i = 0; i < view->ndim; i++)
        size *= view->dim[i];
    return size;
}

/* Positions stay in the same order; axes that lie one behind the other in memory become one. Afterwards ndim >= 1. */
DVTI_FN void dvti_merge_axes(dvti_view *view) {
    int from, to = 0;
    for (from = 0; from < view->ndim; from++) {
        if (view->dim[from] == 1)
            continue;
        if (to && view->stride[to - 1] == view->stride[from] * view->dim[from]) {
            view->dim[to - 1] *= view->dim[from];
            view->stride[to - 1] = view->stride[from];
        } else {
            view->dim[to] = view->dim[from];
            view->stride[to++] = view->stride[from];
        }
    }
    if (!to) {
        view->dim[0] = 1;
        view->stride[0] = 1;
        to = 1;
    }
    view->ndim = to;
}

DVTI_FN void *dvti_block_direct(const dvti_view *view, dvti_class compute, int64_t first) {
    if (view->ndim != 1 || view->stride[0] != 1 || view->dtype != dvti_class_dtype[compute])
        return NULL;
    return (char *)view->data + first * dvti_class_size[compute];
}

static void dvti_load_row(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                          dvti_class compute, void *dst) {
    if (compute == DVTI_F32)
        dvti_load_row_f32(src, dtype, step, n, (float *)dst);
    else if (compute == DVTI_F64)
        dvti_load_row_f64(src, dtype, step, n, (double *)dst);
    else
        dvti_load_row_i64(src, dtype, step, n, (int64_t *)dst);
}

static void dvti_store_row(void *dst, dvt_dtype dtype, int64_t step, int64_t n, dvti_class compute,
                           const void *src) {
    if (compute == DVTI_F32)
        dvti_store_row_f32(dst, dtype, step, n, (const float *)src);
    else if (compute == DVTI_F64)
        dvti_store_row_f64(dst, dtype, step, n, (const double *)src);
    else
        dvti_store_row_i64(dst, dtype, step, n, (const int64_t *)src);
}

DVTI_FN dvti_cursor dvti_cursor_at(const dvti_view *view, int64_t position) {
    dvti_cursor cursor;
    int i;
    cursor.at = 0;
    for (i = view->ndim - 1; i > 0; i--) {
        cursor.index[i] = position % view->dim[i];
        position /= view->dim[i];
        cursor.at += cursor.index[i] * view->stride[i];
    }
    cursor.index[0] = position;
    cursor.at += position * view->stride[0];
    return cursor;
}

DVTI_FN void dvti_cursor_advance(dvti_cursor *cursor, const dvti_view *view, int64_t n) {
    int i = view->ndim - 1;
    cursor->index[i] += n;
    cursor->at += n * view->stride[i];
    for (; i > 0 && cursor->index[i] == view->dim[i]; i--) {
        cursor->at += view->stride[i - 1] - view->dim[i] * view->stride[i];
        cursor->index[i] = 0;
        cursor->index[i - 1]++;
    }
}

DVTI_FN void dvti_load_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                             void *dst) {
    dvti_cursor cursor = dvti_cursor_at(view, first);
    int64_t size = dvt_dtype_size(view->dtype), step = view->stride[view->ndim - 1];
    char *to = (char *)dst;
    while (n > 0) {
        int64_t row = DVTI_MIN(n, view->dim[view->ndim - 1] - cursor.index[view->ndim - 1]);
        dvti_load_row((const char *)view->data + cursor.at * size, view->dtype, step, row, compute,
                      to);
        to += row * dvti_class_size[compute];
        n -= row;
        dvti_cursor_advance(&cursor, view, row);
    }
}

DVTI_FN void dvti_store_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                              const void *src) {
    dvti_cursor cursor = dvti_cursor_at(view, first);
    int64_t size = dvt_dtype_size(view->dtype), step = view->stride[view->ndim - 1];
    const char *from = (const char *)src;
    while (n > 0) {
        int64_t row = DVTI_MIN(n, view->dim[view->ndim - 1] - cursor.index[view->ndim - 1]);
        dvti_store_row((char *)view->data + cursor.at * size, view->dtype, step, row, compute,
                       from);
        from += row * dvti_class_size[compute];
        n -= row;
        dvti_cursor_advance(&cursor, view, row);
    }
}
/* ==== end src/3_cpu/ref/ref_block.c ==== */
#ifdef DEVTENSOR_LINES
#line 28 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_conv.c ==== */
/* Convolution as matrix products with the patches of x, which are gathered a tile at a time and never stored whole. Columns are the
   pixels of all samples in a row, so that small pictures fill a tile too.

     forward   y (O x columns)  = w (O x taps)  * patches (taps x columns)
     weights   dw (O x taps)    = dy (O x columns) * patches^T
     data      dx               = the patches' gradient, w^T (taps x O) * dy (O x columns), added where each came from

   The half types are widened to float32 in the workspace. Every cut depends on shapes only. */
#ifdef DEVTENSOR_LINES
#line 9 "src/3_cpu/ref/ref_conv.c"
#endif

typedef struct dvti_conv {
    const dvti_launch *launch;
    dvti_gemm plan;
    dvt_dtype dtype; /* that is computed in */
    int64_t n, c, h, w, o, kh, kw, oh, ow;
    int64_t stride[2], padding[2], dilation[2], groups;
    int64_t cg, og, taps, pixels,
        columns; /* channels per group; cg * kh * kw; oh * ow; n * pixels */
    int64_t row_tiles, col_tiles, tasks;
    int64_t parts;             /* weights: of the samples */
    int64_t samples, channels; /* data: of one task */
    const void *x, *weight, *bias, *y;
    void *out, *partial;
} dvti_conv;

/* A walk along one row of the patch matrix: where the next column stands. */
typedef struct dvti_conv_walk {
    int64_t channel, up,
        left;        /* of x; the tap's offset from the window's corner, with the padding */
    int64_t n, i, j; /* sample and pixel */
    int64_t row;     /* of x under the tap, in elements */
    bool inside;     /* that row exists */
} dvti_conv_walk;

static dvti_conv_walk dvti_conv_begin(const dvti_conv *p, int64_t group, int64_t tap,
                                      int64_t column) {
    dvti_conv_walk walk;
    walk.channel = group * p->cg + tap / (p->kh * p->kw);
    walk.up = tap / p->kw % p->kh * p->dilation[0] - p->padding[0];
    walk.left = tap % p->kw * p->dilation[1] - p->padding[1];
    walk.n = column / p->pixels;
    walk.i = column % p->pixels / p->ow;
    walk.j = column % p->ow;
    walk.row = 0;
    walk.inside = false;
    return walk;
}

/* The columns up to the end of a row of pixels, at most `count`. Returns the place in x's row of the first. */
static int64_t dvti_conv_run(const dvti_conv *p, dvti_conv_walk *walk, int64_t count,
                             int64_t *run) {
    int64_t row = walk->i * p->stride[0] + walk->up;
    int64_t left = walk->j * p->stride[1] + walk->left;
    *run = DVTI_MIN(count, p->ow - walk->j);
    walk->inside = row >= 0 && row < p->h;
    walk->row = walk->inside ? ((walk->n * p->c + walk->channel) * p->h + row) * p->w : 0;
    walk->j = 0;
    if (++walk->i == p->oh) {
        walk->i = 0;
        walk->n++;
    }
    return left;
}

/* The first sample of a part. */
static int64_t dvti_conv_part(const dvti_conv *p, int64_t part) {
    return p->n / p->parts * part + DVTI_MIN(part, p->n % p->parts);
}

#define DVTI_T float
#define DVTI_G(name) dvti_conv_f32_##name
/* ==== begin src/3_cpu/ref/ref_conv.inl ==== */
/* The three products of a convolution for one element type. Pasted by ref_conv.c with
     DVTI_T  the element type      DVTI_G(name)  `name` for that type */

/* `count` columns from `column` of the patch matrix's row `tap`: the element of x under that tap of the kernel, 0 in the padding. */
#ifdef DEVTENSOR_LINES
#line 4 "src/3_cpu/ref/ref_conv.inl"
#endif
static void DVTI_G(patch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                          int64_t count, DVTI_T *out) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, out += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        const DVTI_T *row = (const DVTI_T *)p->x + walk.row;
        if (!walk.inside) {
            memset(out, 0, (size_t)run * sizeof(DVTI_T));
        } else if (p->stride[1] == 1) {
            int64_t first = DVTI_MIN(DVTI_MAX(-left, 0), run);
            int64_t last = DVTI_MAX(DVTI_MIN(p->w - left, run), first);
            memset(out, 0, (size_t)first * sizeof(DVTI_T));
            if (last > first)
                memcpy(out + first, row + (left + first), (size_t)(last - first) * sizeof(DVTI_T));
            memset(out + last, 0, (size_t)(run - last) * sizeof(DVTI_T));
        } else {
            for (i = 0; i < run; i++) {
                int64_t at = left + i * p->stride[1];
                out[i] = at >= 0 && at < p->w ? row[at] : 0;
            }
        }
    }
}

/* The way back: adds those columns to dx. */
static void DVTI_G(unpatch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                            int64_t count, const DVTI_T *in) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, in += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        DVTI_T *row = (DVTI_T *)p->out + walk.row;
        if (!walk.inside)
            continue;
        for (i = 0; i < run; i++) {
            int64_t at = left + i * p->stride[1];
            if (at >= 0 && at < p->w)
                row[at] += in[i];
        }
    }
}

/* `count` pixels of channel o, over the samples, from y. */
static void DVTI_G(pixels)(const dvti_conv *p, int64_t o, int64_t column, int64_t count,
                           DVTI_T *out) {
    int64_t run;
    for (; count > 0; count -= run, out += run, column += run) {
        int64_t n = column / p->pixels, at = column % p->pixels;
        run = DVTI_MIN(count, p->pixels - at);
        memcpy(out, (const DVTI_T *)p->y + (n * p->o + o) * p->pixels + at,
               (size_t)run * sizeof(DVTI_T));
    }
}

/* Lanes of the last panel that the matrix does not have. */
static void DVTI_G(clear)(void *panels, int64_t width, int64_t lanes, int64_t depth) {
    if (lanes % width)
        memset((DVTI_T *)panels + lanes / width * width * depth, 0,
               (size_t)(width * depth) * sizeof(DVTI_T));
}

/* y (channels x columns) = w (channels x taps) * patches (taps x columns), plus bias. */
static void DVTI_G(forward)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t group = task / (p->row_tiles * p->col_tiles);
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t column = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o);
    int64_t cols = DVTI_MIN(plan->cols, p->columns - column), depth, k, r, run;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    o += group * p->og;
    k = 0;
    do {
        depth = DVTI_MIN(plan->depth, p->taps - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + k, p->dtype, p->taps, 1);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(patch)(p, group, k + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
        k += depth;
    } while (k < p->taps);
    for (r = 0; r < rows; r++) {
        DVTI_T bias = p->bias ? ((const DVTI_T *)p->bias)[o + r] : 0;
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        for (k = 0; k < cols && p->bias; k++)
            row[k] += bias;
        for (k = 0; k < cols; k += run) {
            int64_t n = (column + k) / p->pixels, at = (column + k) % p->pixels;
            run = DVTI_MIN(cols - k, p->pixels - at);
            memcpy((DVTI_T *)p->out + (n * p->o + o + r) * p->pixels + at, row + k,
                   (size_t)run * sizeof(DVTI_T));
        }
    }
}

/* dw (channels x taps) = dy (channels x columns) * patches transposed (columns x taps), for the samples of one part. */
static void DVTI_G(weights)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t tiles = p->row_tiles * p->col_tiles, part = task / (tiles * p->groups);
    int64_t group = task / tiles % p->groups;
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t tap = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o), cols = DVTI_MIN(plan->cols, p->taps - tap);
    int64_t column = dvti_conv_part(p, part) * p->pixels;
    int64_t end = dvti_conv_part(p, part + 1) * p->pixels, depth, r;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    DVTI_T *out = (DVTI_T *)(p->parts > 1 ? p->partial : p->out) + part * p->o * p->taps;
    bool first = true;
    o += group * p->og;
    do {
        depth = DVTI_MIN(plan->depth, end - column);
        DVTI_G(clear)(a, DVTI_GEMM_ROWS, rows, depth);
        for (r = 0; r < rows; r++) {
            DVTI_G(pixels)(p, o + r, column, depth, row);
            dvti_gemm_put_lane(plan, a, DVTI_GEMM_ROWS, r, depth, row);
        }
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < cols; r++) {
            DVTI_G(patch)(p, group, tap + r, column, depth, row);
            dvti_gemm_put_lane(plan, b, plan->width, r, depth, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, first);
        first = false;
        column += depth;
    } while (column < end);
    for (r = 0; r < rows; r++)
        dvti_gemm_row(plan, rows, cols, acc, r, out + (o + r) * p->taps + tap);
}

static void DVTI_G(sum_parts)(void *user, int64_t begin, int64_t end) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t size = p->o * p->taps, part, i;
    for (i = begin; i < end; i++) {
        DVTI_T sum = ((const DVTI_T *)p->partial)[i];
        for (part = 1; part < p->parts; part++)
            sum += ((const DVTI_T *)p->partial)[part * size + i];
        ((DVTI_T *)p->out)[i] = sum;
    }
}

/* One tile of the patches' gradient (taps x columns) = w transposed * dy, added to dx. */
static void DVTI_G(data_tile)(const dvti_conv *p, int64_t group, int64_t tap, int64_t rows,
                              int64_t column, int64_t cols, void *area) {
    const dvti_gemm *plan = &p->plan;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    int64_t k, depth, r;
    for (k = 0; k < p->og; k += depth) {
        int64_t o = group * p->og + k;
        depth = DVTI_MIN(plan->depth, p->og - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + tap, p->dtype, 1, p->taps);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(pixels)(p, o + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
    }
    for (r = 0; r < rows; r++) {
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        DVTI_G(unpatch)(p, group, tap + r, column, cols, row);
    }
}

/* dx of some samples and channels, which no other task touches. */
static void DVTI_G(data)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t blocks = (p->cg + p->channels - 1) / p->channels, kernel = p->kh * p->kw;
    int64_t first = task / (blocks * p->groups) * p->samples;
    int64_t last = DVTI_MIN(first + p->samples, p->n), group = task / blocks % p->groups;
    int64_t channel = task % blocks * p->channels;
    int64_t channels = DVTI_MIN(p->channels, p->cg - channel);
    int64_t tap_end = (channel + channels) * kernel, tap, column, n;
    for (n = first; n < last; n++)
        memset((DVTI_T *)p->out + (n * p->c + group * p->cg + channel) * p->h * p->w, 0,
               (size_t)(channels * p->h * p->w) * sizeof(DVTI_T));
    if (p->og == 0)
        return;
    for (column = first * p->pixels; column < last * p->pixels; column += p->plan.cols)
        for (tap = channel * kernel; tap < tap_end; tap += p->plan.rows)
            DVTI_G(data_tile)
    (p, group, tap, DVTI_MIN(p->plan.rows, tap_end - tap), column,
     DVTI_MIN(p->plan.cols, last * p->pixels - column), area);
}
/* ==== end src/3_cpu/ref/ref_conv.inl ==== */
#ifdef DEVTENSOR_LINES
#line 72 "src/3_cpu/ref/ref_conv.c"
#endif
#undef DVTI_T
#undef DVTI_G

#define DVTI_T double
#define DVTI_G(name) dvti_conv_f64_##name
/* ==== begin src/3_cpu/ref/ref_conv.inl ==== */
/* The three products of a convolution for one element type. Pasted by ref_conv.c with
     DVTI_T  the element type      DVTI_G(name)  `name` for that type */

/* `count` columns from `column` of the patch matrix's row `tap`: the element of x under that tap of the kernel, 0 in the padding. */
#ifdef DEVTENSOR_LINES
#line 4 "src/3_cpu/ref/ref_conv.inl"
#endif
static void DVTI_G(patch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                          int64_t count, DVTI_T *out) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, out += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        const DVTI_T *row = (const DVTI_T *)p->x + walk.row;
        if (!walk.inside) {
            memset(out, 0, (size_t)run * sizeof(DVTI_T));
        } else if (p->stride[1] == 1) {
            int64_t first = DVTI_MIN(DVTI_MAX(-left, 0), run);
            int64_t last = DVTI_MAX(DVTI_MIN(p->w - left, run), first);
            memset(out, 0, (size_t)first * sizeof(DVTI_T));
            if (last > first)
                memcpy(out + first, row + (left + first), (size_t)(last - first) * sizeof(DVTI_T));
            memset(out + last, 0, (size_t)(run - last) * sizeof(DVTI_T));
        } else {
            for (i = 0; i < run; i++) {
                int64_t at = left + i * p->stride[1];
                out[i] = at >= 0 && at < p->w ? row[at] : 0;
            }
        }
    }
}

/* The way back: adds those columns to dx. */
static void DVTI_G(unpatch)(const dvti_conv *p, int64_t group, int64_t tap, int64_t column,
                            int64_t count, const DVTI_T *in) {
    dvti_conv_walk walk = dvti_conv_begin(p, group, tap, column);
    int64_t run, i;
    for (; count > 0; count -= run, in += run) {
        int64_t left = dvti_conv_run(p, &walk, count, &run);
        DVTI_T *row = (DVTI_T *)p->out + walk.row;
        if (!walk.inside)
            continue;
        for (i = 0; i < run; i++) {
            int64_t at = left + i * p->stride[1];
            if (at >= 0 && at < p->w)
                row[at] += in[i];
        }
    }
}

/* `count` pixels of channel o, over the samples, from y. */
static void DVTI_G(pixels)(const dvti_conv *p, int64_t o, int64_t column, int64_t count,
                           DVTI_T *out) {
    int64_t run;
    for (; count > 0; count -= run, out += run, column += run) {
        int64_t n = column / p->pixels, at = column % p->pixels;
        run = DVTI_MIN(count, p->pixels - at);
        memcpy(out, (const DVTI_T *)p->y + (n * p->o + o) * p->pixels + at,
               (size_t)run * sizeof(DVTI_T));
    }
}

/* Lanes of the last panel that the matrix does not have. */
static void DVTI_G(clear)(void *panels, int64_t width, int64_t lanes, int64_t depth) {
    if (lanes % width)
        memset((DVTI_T *)panels + lanes / width * width * depth, 0,
               (size_t)(width * depth) * sizeof(DVTI_T));
}

/* y (channels x columns) = w (channels x taps) * patches (taps x columns), plus bias. */
static void DVTI_G(forward)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t group = task / (p->row_tiles * p->col_tiles);
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t column = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o);
    int64_t cols = DVTI_MIN(plan->cols, p->columns - column), depth, k, r, run;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    o += group * p->og;
    k = 0;
    do {
        depth = DVTI_MIN(plan->depth, p->taps - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + k, p->dtype, p->taps, 1);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(patch)(p, group, k + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
        k += depth;
    } while (k < p->taps);
    for (r = 0; r < rows; r++) {
        DVTI_T bias = p->bias ? ((const DVTI_T *)p->bias)[o + r] : 0;
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        for (k = 0; k < cols && p->bias; k++)
            row[k] += bias;
        for (k = 0; k < cols; k += run) {
            int64_t n = (column + k) / p->pixels, at = (column + k) % p->pixels;
            run = DVTI_MIN(cols - k, p->pixels - at);
            memcpy((DVTI_T *)p->out + (n * p->o + o + r) * p->pixels + at, row + k,
                   (size_t)run * sizeof(DVTI_T));
        }
    }
}

/* dw (channels x taps) = dy (channels x columns) * patches transposed (columns x taps), for the samples of one part. */
static void DVTI_G(weights)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_gemm *plan = &p->plan;
    int64_t tiles = p->row_tiles * p->col_tiles, part = task / (tiles * p->groups);
    int64_t group = task / tiles % p->groups;
    int64_t o = task / p->col_tiles % p->row_tiles * plan->rows;
    int64_t tap = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->og - o), cols = DVTI_MIN(plan->cols, p->taps - tap);
    int64_t column = dvti_conv_part(p, part) * p->pixels;
    int64_t end = dvti_conv_part(p, part + 1) * p->pixels, depth, r;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    DVTI_T *out = (DVTI_T *)(p->parts > 1 ? p->partial : p->out) + part * p->o * p->taps;
    bool first = true;
    o += group * p->og;
    do {
        depth = DVTI_MIN(plan->depth, end - column);
        DVTI_G(clear)(a, DVTI_GEMM_ROWS, rows, depth);
        for (r = 0; r < rows; r++) {
            DVTI_G(pixels)(p, o + r, column, depth, row);
            dvti_gemm_put_lane(plan, a, DVTI_GEMM_ROWS, r, depth, row);
        }
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < cols; r++) {
            DVTI_G(patch)(p, group, tap + r, column, depth, row);
            dvti_gemm_put_lane(plan, b, plan->width, r, depth, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, first);
        first = false;
        column += depth;
    } while (column < end);
    for (r = 0; r < rows; r++)
        dvti_gemm_row(plan, rows, cols, acc, r, out + (o + r) * p->taps + tap);
}

static void DVTI_G(sum_parts)(void *user, int64_t begin, int64_t end) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t size = p->o * p->taps, part, i;
    for (i = begin; i < end; i++) {
        DVTI_T sum = ((const DVTI_T *)p->partial)[i];
        for (part = 1; part < p->parts; part++)
            sum += ((const DVTI_T *)p->partial)[part * size + i];
        ((DVTI_T *)p->out)[i] = sum;
    }
}

/* One tile of the patches' gradient (taps x columns) = w transposed * dy, added to dx. */
static void DVTI_G(data_tile)(const dvti_conv *p, int64_t group, int64_t tap, int64_t rows,
                              int64_t column, int64_t cols, void *area) {
    const dvti_gemm *plan = &p->plan;
    char *a = (char *)area, *b = a + plan->b_at, *acc = a + plan->acc_at;
    DVTI_T *row = (DVTI_T *)(void *)(a + plan->row_at);
    int64_t k, depth, r;
    for (k = 0; k < p->og; k += depth) {
        int64_t o = group * p->og + k;
        depth = DVTI_MIN(plan->depth, p->og - k);
        dvti_gemm_pack(plan, a, DVTI_GEMM_ROWS, rows, depth,
                       (const DVTI_T *)p->weight + o * p->taps + tap, p->dtype, 1, p->taps);
        DVTI_G(clear)(b, plan->width, cols, depth);
        for (r = 0; r < depth; r++) {
            DVTI_G(pixels)(p, o + r, column, cols, row);
            dvti_gemm_put_k(plan, b, plan->width, cols, depth, r, row);
        }
        dvti_gemm_multiply(plan, rows, cols, depth, a, b, acc, k == 0);
    }
    for (r = 0; r < rows; r++) {
        dvti_gemm_row(plan, rows, cols, acc, r, row);
        DVTI_G(unpatch)(p, group, tap + r, column, cols, row);
    }
}

/* dx of some samples and channels, which no other task touches. */
static void DVTI_G(data)(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    int64_t blocks = (p->cg + p->channels - 1) / p->channels, kernel = p->kh * p->kw;
    int64_t first = task / (blocks * p->groups) * p->samples;
    int64_t last = DVTI_MIN(first + p->samples, p->n), group = task / blocks % p->groups;
    int64_t channel = task % blocks * p->channels;
    int64_t channels = DVTI_MIN(p->channels, p->cg - channel);
    int64_t tap_end = (channel + channels) * kernel, tap, column, n;
    for (n = first; n < last; n++)
        memset((DVTI_T *)p->out + (n * p->c + group * p->cg + channel) * p->h * p->w, 0,
               (size_t)(channels * p->h * p->w) * sizeof(DVTI_T));
    if (p->og == 0)
        return;
    for (column = first * p->pixels; column < last * p->pixels; column += p->plan.cols)
        for (tap = channel * kernel; tap < tap_end; tap += p->plan.rows)
            DVTI_G(data_tile)
    (p, group, tap, DVTI_MIN(p->plan.rows, tap_end - tap), column,
     DVTI_MIN(p->plan.cols, last * p->pixels - column), area);
}
/* ==== end src/3_cpu/ref/ref_conv.inl ==== */
#ifdef DEVTENSOR_LINES
#line 78 "src/3_cpu/ref/ref_conv.c"
#endif
#undef DVTI_T
#undef DVTI_G

/* ---- shapes and cuts ---- */
/* Tasks that a launch should at least make, where its shape allows: enough for the cores of most machines. */
#define DVTI_CONV_TASKS 8
/* Columns of a data task. */
#define DVTI_CONV_COLUMNS 128

static void dvti_conv_cut(dvti_conv *p) {
    dvti_class compute = p->dtype == DVT_F64 ? DVTI_F64 : DVTI_F32;
    dvti_op op = p->launch->op;
    int64_t blocks;
    p->parts = 1;
    p->samples = p->channels = 1;
    if (op == DVTI_OP_conv2d_data) {
        p->samples = DVTI_MAX(1, DVTI_CONV_COLUMNS / p->pixels);
        blocks = (p->n + p->samples - 1) / p->samples * p->groups;
        blocks = DVTI_MAX(1, DVTI_MIN(p->cg, DVTI_CONV_TASKS / DVTI_MAX(blocks, 1)));
        p->channels = DVTI_MAX(1, (p->cg + blocks - 1) / blocks);
        p->plan = dvti_gemm_plan(compute, p->channels * p->kh * p->kw,
                                 DVTI_MIN(p->samples, p->n) * p->pixels, p->og);
        blocks = (p->cg + p->channels - 1) / p->channels;
        p->tasks = (p->n + p->samples - 1) / p->samples * p->groups * blocks;
        return;
    }
    if (op == DVTI_OP_conv2d_weight)
        p->plan = dvti_gemm_plan(compute, p->og, p->taps, p->columns);
    else
        p->plan = dvti_gemm_plan(compute, p->og, p->columns, p->taps);
    p->row_tiles = (p->og + p->plan.rows - 1) / p->plan.rows;
    p->col_tiles =
        ((op == DVTI_OP_conv2d_weight ? p->taps : p->columns) + p->plan.cols - 1) / p->plan.cols;
    p->tasks = p->groups * p->row_tiles * p->col_tiles;
    if (op == DVTI_OP_conv2d_weight) {
        p->parts = DVTI_MAX(1, DVTI_MIN(p->n, DVTI_CONV_TASKS / DVTI_MAX(p->tasks, 1)));
        p->tasks *= p->parts;
    }
}

#undef DVTI_CONV_TASKS
#undef DVTI_CONV_COLUMNS

static dvti_conv dvti_conv_plan(const dvti_launch *launch) {
    bool data = launch->op == DVTI_OP_conv2d_data, weight = launch->op == DVTI_OP_conv2d_weight;
    const dvti_view *x = data ? &launch->out[0] : &launch->in[0];
    const dvti_view *w = weight ? &launch->out[0] : &launch->in[1];
    const dvti_view *y = data ? &launch->in[0] : weight ? &launch->in[1] : &launch->out[0];
    dvti_conv p;
    int axis;
    memset(&p, 0, sizeof p);
    p.launch = launch;
    p.dtype = launch->out[0].dtype == DVT_F64 ? DVT_F64 : DVT_F32;
    p.n = x->dim[0];
    p.c = x->dim[1];
    p.h = x->dim[2];
    p.w = x->dim[3];
    p.o = w->dim[0];
    p.cg = w->dim[1];
    p.kh = w->dim[2];
    p.kw = w->dim[3];
    p.oh = y->dim[2];
    p.ow = y->dim[3];
    for (axis = 0; axis < 2; axis++) {
        p.stride[axis] = launch->i[axis];
        p.padding[axis] = launch->i[2 + axis];
        p.dilation[axis] = launch->i[4 + axis];
    }
    p.groups = launch->i[6];
    p.og = p.o / p.groups;
    p.taps = p.cg * p.kh * p.kw;
    /* Of an empty y nothing limits the extents: their product could overflow, and is not needed. */
    p.pixels = p.n && p.o ? p.oh * p.ow : 1;
    p.columns = p.n * p.pixels;
    dvti_conv_cut(&p);
    return p;
}

/* ---- the workspace: widened arrays, partial sums, areas ---- */
static int64_t dvti_conv_view_size(const dvti_view *view) {
    int64_t n = 1;
    int i;
    for (i = 0; i < view->ndim; i++)
        n *= view->dim[i];
    return n;
}

static int64_t dvti_conv_bytes(const dvti_conv *p, int64_t elements) {
    int64_t size = p->dtype == DVT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    return (elements * size + 63) / 64 * 64;
}

static int64_t dvti_conv_widened_bytes(const dvti_conv *p) {
    int64_t bytes = 0;
    int k;
    for (k = 0; k < p->launch->n_in; k++)
        if (p->launch->in[k].dtype != p->dtype)
            bytes += dvti_conv_bytes(p, dvti_conv_view_size(&p->launch->in[k]));
    if (p->launch->out[0].dtype != p->dtype)
        bytes += dvti_conv_bytes(p, dvti_conv_view_size(&p->launch->out[0]));
    return bytes;
}

static int64_t dvti_conv_partial_bytes(const dvti_conv *p) {
    return p->parts > 1 ? dvti_conv_bytes(p, p->parts * p->o * p->taps) : 0;
}

DVTI_FN int64_t dvti_ref_conv2d_workspace(const dvti_launch *launch) {
    dvti_conv p = dvti_conv_plan(launch);
    double work = (double)p.o * (double)p.taps * (double)p.columns;
    return dvti_conv_widened_bytes(&p) + dvti_conv_partial_bytes(&p) +
           dvti_task_areas(p.tasks, work) * p.plan.bytes;
}

typedef struct dvti_conv_convert {
    const dvti_view *view;
    float *wide;
} dvti_conv_convert;

static void dvti_conv_widen(void *user, int64_t begin, int64_t end) {
    const dvti_conv_convert *job = (const dvti_conv_convert *)user;
    int64_t i;
    for (i = begin; i < end; i++)
        job->wide[i] = (float)dvti_load_f64(job->view->data, job->view->dtype, i);
}

static void dvti_conv_narrow(void *user, int64_t begin, int64_t end) {
    const dvti_conv_convert *job = (const dvti_conv_convert *)user;
    int64_t i;
    for (i = begin; i < end; i++)
        dvti_store_f64(job->view->data, job->view->dtype, i, job->wide[i]);
}

/* An input in the dtype that is computed in; takes from the workspace what it needs. */
static const void *dvti_conv_input(const dvti_conv *p, int k, char **workspace) {
    dvti_conv_convert job;
    int64_t n;
    job.view = &p->launch->in[k];
    if (job.view->dtype == p->dtype)
        return job.view->data;
    n = dvti_conv_view_size(job.view);
    job.wide = (float *)(void *)*workspace;
    *workspace += dvti_conv_bytes(p, n);
    dvti_parallel_for(n, 4096, dvti_conv_widen, &job);
    return job.wide;
}

static void dvti_conv_run_tasks(dvti_conv *p, char *areas, int64_t count) {
    bool wide = p->dtype == DVT_F64;
    dvti_task_fn run;
    if (p->launch->op == DVTI_OP_conv2d_data)
        run = wide ? dvti_conv_f64_data : dvti_conv_f32_data;
    else if (p->launch->op == DVTI_OP_conv2d_weight)
        run = wide ? dvti_conv_f64_weights : dvti_conv_f32_weights;
    else
        run = wide ? dvti_conv_f64_forward : dvti_conv_f32_forward;
    dvti_run_tasks(p->tasks, areas, count, p->plan.bytes, run, p);
    if (p->parts > 1)
        dvti_parallel_for(p->o * p->taps, 4096,
                          wide ? dvti_conv_f64_sum_parts : dvti_conv_f32_sum_parts, p);
}

DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch) {
    dvti_conv p = dvti_conv_plan(launch);
    char *workspace = (char *)launch->workspace, *end = workspace + launch->workspace_bytes;
    const void *in[3] = {NULL, NULL, NULL};
    dvti_conv_convert result;
    int64_t size = dvti_conv_view_size(&launch->out[0]);
    int k;
    for (k = 0; k < launch->n_in; k++)
        in[k] = dvti_conv_input(&p, k, &workspace);
    p.x = in[0];
    p.weight = in[1];
    p.bias = in[2];
    p.y = launch->op == DVTI_OP_conv2d_data ? in[0] : in[1];
    p.out = launch->out[0].data;
    result.view = &launch->out[0];
    result.wide = NULL;
    if (launch->out[0].dtype != p.dtype) {
        p.out = result.wide = (float *)(void *)workspace;
        workspace += dvti_conv_bytes(&p, size);
    }
    p.partial = workspace;
    workspace += dvti_conv_partial_bytes(&p);
    dvti_conv_run_tasks(&p, workspace, (end - workspace) / p.plan.bytes);
    if (result.wide)
        dvti_parallel_for(size, 4096, dvti_conv_narrow, &result);
}
/* ==== end src/3_cpu/ref/ref_conv.c ==== */
#ifdef DEVTENSOR_LINES
#line 29 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_element.c ==== */
/* Elements, one at a time and by rows: every dtype into float, double or int64_t and back. The only place of the backend that
   knows how a dtype is stored. A float becomes an integer by dropping its fraction, clamped to what fits, NaN giving 0; an
   int64_t wraps in a narrower integer; bool is "nonzero". */
#ifdef DEVTENSOR_LINES
#line 4 "src/3_cpu/ref/ref_element.c"
#endif

static int64_t dvti_clamp_real(double v, int64_t low, int64_t high) {
    if (v != v)
        return 0;
    if (v <= (double)low)
        return low;
    return v >= (double)high ? high : (int64_t)v;
}

static int64_t dvti_real_to_i64(double v) {
    return dvti_clamp_real(v, INT64_MIN, INT64_MAX);
}

/* Beyond 2^53 a double would round once and the 16-bit float again: keep what is cut off as one bit that breaks ties. */
static double dvti_i64_sticky(int64_t v) {
    const int64_t exact = (int64_t)1 << 53;
    if (v > -exact && v < exact)
        return (double)v;
    return (double)((v & ~(int64_t)0x7ff) | ((v & 0x7ff) ? 0x400 : 0));
}

/* Rows: dst[i] = s[i * step], for one class. INT turns a floating value, the rest is a cast. */
#define DVTI_LOAD(S, value)                                                                        \
    {                                                                                              \
        const S *s = (const S *)src;                                                               \
        if (step == 1)                                                                             \
            for (i = 0; i < n; i++) {                                                              \
                const S v = s[i];                                                                  \
                dst[i] = value;                                                                    \
            }                                                                                      \
        else                                                                                       \
            for (i = 0; i < n; i++) {                                                              \
                const S v = s[i * step];                                                           \
                dst[i] = value;                                                                    \
            }                                                                                      \
    }                                                                                              \
    break;
#define DVTI_DEFINE_LOAD(name, T, REAL)                                                            \
    DVTI_FN void name(const void *src, dvt_dtype dtype, int64_t step, int64_t n, T *dst) {         \
        int64_t i;                                                                                 \
        switch (dtype) {                                                                           \
        case DVT_F32:                                                                              \
            DVTI_LOAD(float, REAL(v))                                                              \
        case DVT_F64:                                                                              \
            DVTI_LOAD(double, REAL(v))                                                             \
        case DVT_F16:                                                                              \
            DVTI_LOAD(uint16_t, REAL(dvti_f16_to_f32(v)))                                          \
        case DVT_BF16:                                                                             \
            DVTI_LOAD(uint16_t, REAL(dvti_bf16_to_f32(v)))                                         \
        case DVT_I8:                                                                               \
            DVTI_LOAD(int8_t, (T)v)                                                                \
        case DVT_U8:                                                                               \
            DVTI_LOAD(uint8_t, (T)v)                                                               \
        case DVT_I32:                                                                              \
            DVTI_LOAD(int32_t, (T)v)                                                               \
        case DVT_I64:                                                                              \
            DVTI_LOAD(int64_t, (T)v)                                                               \
        case DVT_BOOL:                                                                             \
            DVTI_LOAD(uint8_t, (T)(v != 0))                                                        \
        }                                                                                          \
    }

#define DVTI_CAST_F32(v) ((float)(v))
#define DVTI_CAST_F64(v) ((double)(v))
#define DVTI_CAST_I64(v) dvti_real_to_i64((double)(v))
DVTI_DEFINE_LOAD(dvti_load_row_f32, float, DVTI_CAST_F32)
DVTI_DEFINE_LOAD(dvti_load_row_f64, double, DVTI_CAST_F64)
DVTI_DEFINE_LOAD(dvti_load_row_i64, int64_t, DVTI_CAST_I64)
#undef DVTI_CAST_F32
#undef DVTI_CAST_F64
#undef DVTI_CAST_I64
#undef DVTI_LOAD
#undef DVTI_DEFINE_LOAD

#define DVTI_STORE(S, value)                                                                       \
    {                                                                                              \
        S *d = (S *)dst;                                                                           \
        if (step == 1)                                                                             \
            for (i = 0; i < n; i++)                                                                \
                d[i] = (S)(value);                                                                 \
        else                                                                                       \
            for (i = 0; i < n; i++)                                                                \
                d[i * step] = (S)(value);                                                          \
    }                                                                                              \
    break;
#define DVTI_DEFINE_STORE(name, T, F16, BF16, INT)                                                 \
    DVTI_FN void name(void *dst, dvt_dtype dtype, int64_t step, int64_t n, const T *src) {         \
        int64_t i;                                                                                 \
        switch (dtype) {                                                                           \
        case DVT_F32:                                                                              \
            DVTI_STORE(float, src[i])                                                              \
        case DVT_F64:                                                                              \
            DVTI_STORE(double, src[i])                                                             \
        case DVT_F16:                                                                              \
            DVTI_STORE(uint16_t, F16(src[i]))                                                      \
        case DVT_BF16:                                                                             \
            DVTI_STORE(uint16_t, BF16(src[i]))                                                     \
        case DVT_I8:                                                                               \
            DVTI_STORE(int8_t, INT(src[i], INT8_MIN, INT8_MAX))                                    \
        case DVT_U8:                                                                               \
            DVTI_STORE(uint8_t, INT(src[i], 0, UINT8_MAX))                                         \
        case DVT_I32:                                                                              \
            DVTI_STORE(int32_t, INT(src[i], INT32_MIN, INT32_MAX))                                 \
        case DVT_I64:                                                                              \
            DVTI_STORE(int64_t, INT(src[i], INT64_MIN, INT64_MAX))                                 \
        case DVT_BOOL:                                                                             \
            DVTI_STORE(uint8_t, src[i] != 0)                                                       \
        }                                                                                          \
    }

#define DVTI_CLAMP(v, low, high) dvti_clamp_real((double)(v), low, high)
#define DVTI_WRAPS(v, low, high) (v)
#define DVTI_I64_TO_F16(v) dvti_f64_to_f16(dvti_i64_sticky(v))
#define DVTI_I64_TO_BF16(v) dvti_f64_to_bf16(dvti_i64_sticky(v))
DVTI_DEFINE_STORE(dvti_store_row_f32, float, dvti_f32_to_f16, dvti_f32_to_bf16, DVTI_CLAMP)
DVTI_DEFINE_STORE(dvti_store_row_f64, double, dvti_f64_to_f16, dvti_f64_to_bf16, DVTI_CLAMP)
DVTI_DEFINE_STORE(dvti_store_row_i64, int64_t, DVTI_I64_TO_F16, DVTI_I64_TO_BF16, DVTI_WRAPS)
#undef DVTI_CLAMP
#undef DVTI_WRAPS
#undef DVTI_I64_TO_F16
#undef DVTI_I64_TO_BF16
#undef DVTI_STORE
#undef DVTI_DEFINE_STORE

/* ---- single elements ---- */
static const char *dvti_element_at(const void *data, dvt_dtype dtype, int64_t at) {
    return (const char *)data + at * dvt_dtype_size(dtype);
}

DVTI_FN double dvti_load_f64(const void *data, dvt_dtype dtype, int64_t at) {
    double v = 0;
    dvti_load_row_f64(dvti_element_at(data, dtype, at), dtype, 1, 1, &v);
    return v;
}

DVTI_FN int64_t dvti_load_i64(const void *data, dvt_dtype dtype, int64_t at) {
    int64_t v = 0;
    dvti_load_row_i64(dvti_element_at(data, dtype, at), dtype, 1, 1, &v);
    return v;
}

DVTI_FN void dvti_store_f64(void *data, dvt_dtype dtype, int64_t at, double value) {
    dvti_store_row_f64((char *)data + at * dvt_dtype_size(dtype), dtype, 1, 1, &value);
}

DVTI_FN void dvti_store_i64(void *data, dvt_dtype dtype, int64_t at, int64_t value) {
    dvti_store_row_i64((char *)data + at * dvt_dtype_size(dtype), dtype, 1, 1, &value);
}
/* ==== end src/3_cpu/ref/ref_element.c ==== */
#ifdef DEVTENSOR_LINES
#line 30 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_elementwise.c ==== */
/* Elementwise operations, by blocks: each operand's next block becomes a plain row of the class that the operation computes in (or is
   one already, in memory), one loop per row of the op table runs over it, and the result is stored. The loops are expanded from
   the table; dtypes and strides are ref_block.c's. */
#ifdef DEVTENSOR_LINES
#line 4 "src/3_cpu/ref/ref_elementwise.c"
#endif

/* ---- what the op table's texts use ---- */
#define DVTI_WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))

/* Python's rules: the remainder has b's sign, also when it is 0; the quotient is rounded down. */
#define DVTI_DEFINE_DIVISION(T, FMOD, COPYSIGN, RINT, floor_div, mod)                              \
    static T mod(T a, T b) {                                                                       \
        T rest = FMOD(a, b);                                                                       \
        if (rest == 0)                                                                             \
            return COPYSIGN(0, b);                                                                 \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                            \
    }                                                                                              \
    static T floor_div(T a, T b) {                                                                 \
        T rest, quotient;                                                                          \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        rest = FMOD(a, b);                                                                         \
        quotient = (a - rest) / b; /* whole, up to rounding */                                     \
        if (rest != 0 && (rest < 0) != (b < 0))                                                    \
            quotient -= 1;                                                                         \
        return quotient == 0 ? COPYSIGN(0, a / b) : RINT(quotient);                                \
    }
DVTI_DEFINE_DIVISION(float, fmodf, copysignf, rintf, dvti_floor_divf, dvti_modf)
DVTI_DEFINE_DIVISION(double, fmod, copysign, rint, dvti_floor_div, dvti_mod)
#undef DVTI_DEFINE_DIVISION

/* The machine's division traps on x / 0 and on INT64_MIN / -1. */
static int64_t dvti_int_floor_div(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return DVTI_WRAP(0, -, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t dvti_int_mod(int64_t a, int64_t b) {
    int64_t rest;
    if (b == 0 || b == -1)
        return 0;
    rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t dvti_int_pow(int64_t a, int64_t b) {
    uint64_t base = (uint64_t)a, result = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b; b >>= 1) {
        if (b & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

/* ---- the loops: one function per class, one case per row ---- */
typedef struct dvti_ew_plan {
    dvti_op op;
    dvti_class compute;
    int n_in;
    dvti_view in[3], out;
    double low, high; /* clip */
    int64_t low_int, high_int;
    double f; /* the scalar, which is an operand of one element */
    int64_t i;
} dvti_ew_plan;

/* The program that includes us may use these short names. */
#pragma push_macro("F")
#pragma push_macro("C")
#undef F
#undef C
#define DVTI_EW_UNARY(name, f)                                                                     \
    case DVTI_OP_##name:                                                                           \
        for (k = 0; k < n; k++) {                                                                  \
            const DVTI_T x = p[k];                                                                 \
            (void)x;                                                                               \
            to[k] = (DVTI_T)(f);                                                                   \
        }                                                                                          \
        break;
#define DVTI_EW_BINARY(name, f)                                                                    \
    case DVTI_OP_##name:                                                                           \
        for (k = 0; k < n; k++) {                                                                  \
            const DVTI_T a = p[k], b = q[k];                                                       \
            (void)a;                                                                               \
            (void)b;                                                                               \
            to[k] = (DVTI_T)(f);                                                                   \
        }                                                                                          \
        break;
#define DVTI_EW_OTHERS                                                                             \
    case DVTI_OP_where:                                                                            \
        for (k = 0; k < n; k++)                                                                    \
            to[k] = p[k] != 0 ? q[k] : r[k];                                                       \
        break;                                                                                     \
    case DVTI_OP_clip:                                                                             \
        for (k = 0; k < n; k++)                                                                    \
            to[k] = p[k] < low ? low : p[k] > high ? high : p[k];                                  \
        break;                                                                                     \
    default: /* copy */                                                                            \
        if (to != p)                                                                               \
            memcpy(to, p, (size_t)n * sizeof *to);                                                 \
        break;

#define DVTI_EW_U(name, rule, f, i, grad, lo, hi, doc) DVTI_EW_UNARY(name, f)
#define DVTI_EW_B(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_EW_BINARY(name, f)
#define DVTI_T float
#define F(name) name##f
#define C(value) ((float)(value))
#define DVTI_LARGEST FLT_MAX

static void dvti_ew_f32(const dvti_ew_plan *plan, const float *p, const float *q, const float *r,
                        float *to, int64_t n) {
    const float low = (float)plan->low, high = (float)plan->high;
    int64_t k;
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef F
#undef C
#undef DVTI_LARGEST

#define DVTI_T double
#define F(name) name
#define C(value) ((double)(value))
#define DVTI_LARGEST DBL_MAX

static void dvti_ew_f64(const dvti_ew_plan *plan, const double *p, const double *q, const double *r,
                        double *to, int64_t n) {
    const double low = plan->low, high = plan->high;
    int64_t k;
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef F
#undef C
#undef DVTI_LARGEST
#undef DVTI_EW_U
#undef DVTI_EW_B

/* Of the float texts only the integer ones are used here. */
#define DVTI_EW_U(name, rule, f, i, grad, lo, hi, doc) DVTI_EW_UNARY(name, i)
#define DVTI_EW_B(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_EW_BINARY(name, i)
#define DVTI_T int64_t

static void dvti_ew_i64(const dvti_ew_plan *plan, const int64_t *p, const int64_t *q,
                        const int64_t *r, int64_t *to, int64_t n) {
    const int64_t low = plan->low_int, high = plan->high_int;
    int64_t k;
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef DVTI_EW_U
#undef DVTI_EW_B
#undef DVTI_EW_UNARY
#undef DVTI_EW_BINARY
#undef DVTI_EW_OTHERS
#undef DVTI_WRAP
#pragma pop_macro("F")
#pragma pop_macro("C")

static void dvti_ew_loop(const dvti_ew_plan *plan, void *const *operand, void *to, int64_t n) {
    if (plan->compute == DVTI_F32)
        dvti_ew_f32(plan, (const float *)operand[0], (const float *)operand[1],
                    (const float *)operand[2], (float *)to, n);
    else if (plan->compute == DVTI_F64)
        dvti_ew_f64(plan, (const double *)operand[0], (const double *)operand[1],
                    (const double *)operand[2], (double *)to, n);
    else
        dvti_ew_i64(plan, (const int64_t *)operand[0], (const int64_t *)operand[1],
                    (const int64_t *)operand[2], (int64_t *)to, n);
}

/* ---- blocks ---- */
/* where's condition holds when it is nonzero in its own dtype, also where the class would make it 0 (0.5 among integers). */
static void dvti_ew_load_condition(const dvti_ew_plan *plan, int64_t first, int64_t n, void *to) {
    double value[DVTI_BLOCK];
    uint8_t holds[DVTI_BLOCK];
    dvti_view view;
    memset(&view, 0, sizeof view);
    dvti_load_block(&plan->in[0], first, n, DVTI_F64, value);
    dvti_store_row_f64(holds, DVT_BOOL, 1, n, value);
    view.data = holds;
    view.dtype = DVT_BOOL;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = 1;
    dvti_load_block(&view, 0, n, plan->compute, to);
}

static void dvti_ew_load(const dvti_ew_plan *plan, int which, int64_t first, int64_t n, void *to) {
    if (plan->op == DVTI_OP_where && which == 0 && dvt_dtype_is_float(plan->in[0].dtype))
        dvti_ew_load_condition(plan, first, n, to);
    else
        dvti_load_block(&plan->in[which], first, n, plan->compute, to);
}

static bool dvti_ew_repeats(const dvti_view *view) {
    return view->ndim == 1 && view->stride[0] == 0;
}

static void dvti_ew_range(void *user, int64_t begin, int64_t end) {
    const dvti_ew_plan *plan = (const dvti_ew_plan *)user;
    double buffer[3][DVTI_BLOCK], result[DVTI_BLOCK];
    void *operand[3] = {NULL, NULL, NULL}, *to;
    bool direct = dvti_block_direct(&plan->out, plan->compute, 0) != NULL;
    int64_t at, n, block;
    int k;
    for (k = 0; k < plan->n_in; k++)
        direct = direct && dvti_block_direct(&plan->in[k], plan->compute, 0);
    block = direct ? end - begin : DVTI_BLOCK;
    for (at = begin; at < end; at += n) {
        n = DVTI_MIN(block, end - at);
        for (k = 0; k < plan->n_in; k++) {
            operand[k] = dvti_block_direct(&plan->in[k], plan->compute, at);
            if (operand[k])
                continue;
            operand[k] = buffer[k];
            if (at == begin || !dvti_ew_repeats(&plan->in[k]))
                dvti_ew_load(plan, k, at, n, buffer[k]);
        }
        to = dvti_block_direct(&plan->out, plan->compute, at);
        dvti_ew_loop(plan, operand, to ? to : result, n);
        if (!to)
            dvti_store_block(&plan->out, at, n, plan->compute, result);
    }
}

/* ---- the launch ---- */
/* The order of positions is free: following the result's memory makes transposed operands of one layout contiguous. */
static void dvti_ew_swap_axes(dvti_view *view, int a, int b) {
    int64_t dim = view->dim[a], stride = view->stride[a];
    view->dim[a] = view->dim[b];
    view->stride[a] = view->stride[b];
    view->dim[b] = dim;
    view->stride[b] = stride;
}

static int64_t dvti_ew_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void dvti_ew_order_axes(dvti_ew_plan *plan) {
    const dvti_view *out = &plan->out;
    int i, j, k;
    for (i = 1; i < out->ndim; i++)
        for (j = i; j > 0; j--) {
            if (dvti_ew_distance(out->stride[j - 1]) >= dvti_ew_distance(out->stride[j]))
                break;
            for (k = 0; k < plan->n_in; k++)
                dvti_ew_swap_axes(&plan->in[k], j - 1, j);
            dvti_ew_swap_axes(&plan->out, j - 1, j);
        }
}

/* Bounds of an integer array, cut to what its dtype holds: min(max(x, 2.5), 7) without its fraction is min(max(x, 2), 7). */
static int64_t dvti_ew_bound(double bound, dvt_dtype dtype) {
    int64_t room = 0;
    if (dtype == DVT_BOOL)
        dtype = DVT_U8;
    dvti_store_f64(&room, dtype, 0, bound);
    return dvti_load_i64(&room, dtype, 0);
}

static int64_t dvti_ew_grain(const dvti_ew_plan *plan) {
    switch (plan->op) {
#define DVTI_GRAIN_SAME 32768
#define DVTI_GRAIN_NOBOOL 32768
#define DVTI_GRAIN_BOOL 32768
#define DVTI_GRAIN_FLOAT 4096 /* some nanoseconds per element */
#define DVTI_ROW(name, rule, f, i, grad, lo, hi, doc)                                              \
    case DVTI_OP_##name:                                                                           \
        return DVTI_GRAIN_##rule;
        DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    case DVTI_OP_pow:
    case DVTI_OP_atan2:
    case DVTI_OP_hypot:
    case DVTI_OP_mod:
    case DVTI_OP_floor_div:
        return DVTI_GRAIN_FLOAT;
    default:
        return DVTI_GRAIN_SAME;
#undef DVTI_GRAIN_SAME
#undef DVTI_GRAIN_NOBOOL
#undef DVTI_GRAIN_BOOL
#undef DVTI_GRAIN_FLOAT
    }
}

DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch) {
    dvti_ew_plan plan;
    int scalar = (int)launch->i[0] - 1, k;
    int64_t size = dvti_view_size(&launch->out[0]);
    if (size == 0)
        return;
    plan.op = launch->op;
    plan.compute = launch->compute;
    plan.n_in = launch->n_in;
    plan.out = launch->out[0];
    plan.low = launch->f[1];
    plan.high = launch->f[2];
    plan.low_int = dvti_ew_bound(plan.low, plan.out.dtype);
    plan.high_int = dvti_ew_bound(plan.high, plan.out.dtype);
    plan.f = launch->f[0];
    plan.i = launch->i[1];
    for (k = 0; k < plan.n_in; k++) {
        plan.in[k] = launch->in[k];
        if (k == scalar) {
            bool integer = plan.compute == DVTI_I64;
            plan.in[k] = plan.out;
            memset(plan.in[k].stride, 0, sizeof plan.in[k].stride);
            plan.in[k].data = integer ? (void *)&plan.i : (void *)&plan.f;
            plan.in[k].dtype = integer ? DVT_I64 : DVT_F64;
        }
    }
    dvti_ew_order_axes(&plan);
    for (k = 0; k < plan.n_in; k++)
        dvti_merge_axes(&plan.in[k]);
    dvti_merge_axes(&plan.out);
    dvti_parallel_for(size, dvti_ew_grain(&plan), dvti_ew_range, &plan);
}
/* ==== end src/3_cpu/ref/ref_elementwise.c ==== */
#ifdef DEVTENSOR_LINES
#line 31 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_fill.c ==== */
/* Values from nothing: one number everywhere, evenly spaced numbers, ones on a diagonal. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cpu/ref/ref_fill.c"
#endif

typedef struct dvti_fill_call {
    const dvti_launch *launch;
    dvti_view out;
    dvti_class compute;
} dvti_fill_call;

static void dvti_fill_range(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_launch *launch = call->launch;
    double f[DVTI_BLOCK];
    int64_t i[DVTI_BLOCK], k, n = DVTI_MIN(end - begin, DVTI_BLOCK);
    int64_t size = dvt_dtype_size(call->out.dtype);
    bool integer = call->compute == DVTI_I64;
    bool plain = call->out.ndim == 1 && call->out.stride[0] == 1;
    const void *values;
    for (k = 0; k < n; k++)
        if (integer)
            i[k] = launch->i[0];
        else
            f[k] = launch->f[0];
    values = integer ? (const void *)i : (const void *)f;
    dvti_store_block(&call->out, begin, n, call->compute, values);
    for (k = begin + n; k < end; k += n)
        if (plain) /* converted once is enough */
            memcpy((char *)call->out.data + k * size, (char *)call->out.data + begin * size,
                   (size_t)(DVTI_MIN(n, end - k) * size));
        else
            dvti_store_block(&call->out, k, DVTI_MIN(n, end - k), call->compute, values);
}

static void dvti_arange_range(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_launch *launch = call->launch;
    double f[DVTI_BLOCK];
    int64_t i[DVTI_BLOCK], at, k, n;
    bool integer = call->compute == DVTI_I64;
    for (at = begin; at < end; at += n) {
        n = DVTI_MIN(end - at, DVTI_BLOCK);
        for (k = 0; k < n; k++)
            if (integer)
                i[k] =
                    (int64_t)((uint64_t)launch->i[0] + (uint64_t)(at + k) * (uint64_t)launch->i[1]);
            else
                f[k] = launch->f[0] + (double)(at + k) * launch->f[1];
        dvti_store_block(&call->out, at, n, call->compute,
                         integer ? (const void *)i : (const void *)f);
    }
}

static void dvti_eye_rows(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_view *out = &call->launch->out[0];
    int64_t row, column;
    for (row = begin; row < end; row++)
        for (column = 0; column < out->dim[1]; column++)
            dvti_store_i64(out->data, out->dtype, row * out->stride[0] + column * out->stride[1],
                           column - row == call->launch->i[0]);
}

DVTI_FN void dvti_ref_fill(const dvti_launch *launch) {
    dvti_fill_call call;
    int64_t size = dvti_view_size(&launch->out[0]);
    call.launch = launch;
    call.out = launch->out[0];
    call.compute = dvt_dtype_is_float(call.out.dtype) ? DVTI_F64 : DVTI_I64;
    dvti_merge_axes(&call.out);
    if (launch->kernel == DVTI_K_EYE) {
        dvti_parallel_for(call.launch->out[0].dim[0], 65536 / (launch->out[0].dim[1] + 1) + 1,
                          dvti_eye_rows, &call);
        return;
    }
    dvti_parallel_for(size, 65536,
                      launch->kernel == DVTI_K_FILL ? dvti_fill_range : dvti_arange_range, &call);
    if (launch->kernel == DVTI_K_ARANGE && launch->i[2] && size > 0)
        dvti_store_f64(launch->out[0].data, launch->out[0].dtype, size - 1, launch->f[2]);
}
/* ==== end src/3_cpu/ref/ref_fill.c ==== */
#ifdef DEVTENSOR_LINES
#line 32 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_gemm.c ==== */
/* The inside of a matrix product: packing, the multiplication of packed tiles, and tasks with an area of workspace
   each. dvt_cpu.h says how the pieces fit together; ref_gemm.inl is the arithmetic. */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/ref/ref_gemm.c"
#endif

#define DVTI_T float
#define DVTI_G(name) dvti_gemm_f32_##name
#define DVTI_DTYPE DVT_F32
#define DVTI_LOAD dvti_load_f64
/* ==== begin src/3_cpu/ref/ref_gemm.inl ==== */
/* The packed matrix product for one element type. Pasted by ref_gemm.c with
     DVTI_T        the element type      DVTI_G(name)  `name` for that type
     DVTI_DTYPE    its dtype             DVTI_LOAD(data, dtype, at)  one element of another dtype

   micro: a 6 x 2-vector block of sums in 12 registers, one multiplication and one addition per term. Vectors are the
   compiler's own (16 bytes, which every 64-bit target has), else single elements: the same text either way. Measured on a
   2.5 GHz Skylake with gcc 12 and clang 14, -O2 without further flags: 24.4 GFLOP/s both; 4 x 8 from
   plain loops 23.6 with gcc and 14.0 with clang, 1.6 at -O1 (this: 12.7). */

#ifdef DEVTENSOR_LINES
#line 9 "src/3_cpu/ref/ref_gemm.inl"
#endif
#if defined(__GNUC__) || defined(__clang__)
typedef DVTI_T DVTI_G(vector) __attribute__((__vector_size__(16), __may_alias__));
#else
typedef DVTI_T DVTI_G(vector);
#endif

#define DVTI_WIDTH ((int64_t)(2 * sizeof(DVTI_G(vector)) / sizeof(DVTI_T)))
#define DVTI_ROW_LOAD(i) DVTI_G(vector) c##i##0 = acc[2 * i], c##i##1 = acc[2 * i + 1];
#define DVTI_ROW_STEP(i)                                                                           \
    c##i##0 += a[i] * b0;                                                                          \
    c##i##1 += a[i] * b1;
#define DVTI_ROW_STORE(i)                                                                          \
    acc[2 * i] = c##i##0;                                                                          \
    acc[2 * i + 1] = c##i##1;
#define DVTI_EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

static void DVTI_G(micro)(int64_t depth, const DVTI_T *a, const DVTI_G(vector) * b,
                          DVTI_G(vector) * acc) {
    int64_t k;
    DVTI_EACH_ROW(DVTI_ROW_LOAD)
    for (k = 0; k < depth; k++) {
        DVTI_G(vector) b0 = b[0], b1 = b[1];
        DVTI_EACH_ROW(DVTI_ROW_STEP)
        a += DVTI_GEMM_ROWS;
        b += 2;
    }
    DVTI_EACH_ROW(DVTI_ROW_STORE)
}

#undef DVTI_ROW_LOAD
#undef DVTI_ROW_STEP
#undef DVTI_ROW_STORE
#undef DVTI_EACH_ROW

/* One panel of B stays in the first-level cache while the panels of A pass by. */
static void DVTI_G(multiply)(int64_t rows, int64_t cols, int64_t depth, const DVTI_T *a,
                             const DVTI_T *b, DVTI_T *acc) {
    int64_t i, j;
    for (j = 0; j < cols; j += DVTI_WIDTH)
        for (i = 0; i < rows; i += DVTI_GEMM_ROWS) {
            DVTI_G(micro)
            (depth, a + i * depth, (const DVTI_G(vector) *)(const void *)(b + j * depth),
             (DVTI_G(vector) *)(void *)acc);
            acc += DVTI_GEMM_ROWS * DVTI_WIDTH;
        }
}

static void DVTI_G(row)(int64_t rows, int64_t cols, const DVTI_T *acc, int64_t r, DVTI_T *out) {
    int64_t panels = (rows + DVTI_GEMM_ROWS - 1) / DVTI_GEMM_ROWS, j, l;
    const DVTI_T *at =
        acc + (r / DVTI_GEMM_ROWS * DVTI_GEMM_ROWS + r % DVTI_GEMM_ROWS) * DVTI_WIDTH;
    for (j = 0; j + DVTI_WIDTH <= cols; j += DVTI_WIDTH) {
        for (l = 0; l < DVTI_WIDTH; l++)
            out[j + l] = at[l];
        at += panels * DVTI_GEMM_ROWS * DVTI_WIDTH;
    }
    for (l = 0; j + l < cols; l++)
        out[j + l] = at[l];
}

static void DVTI_G(put_k)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth, int64_t k,
                          const DVTI_T *values) {
    int64_t j, l;
    panels += k * width;
    if (width == DVTI_WIDTH)
        for (; lanes >= DVTI_WIDTH; lanes -= DVTI_WIDTH) {
            for (l = 0; l < DVTI_WIDTH; l++)
                panels[l] = values[l];
            panels += DVTI_WIDTH * depth;
            values += DVTI_WIDTH;
        }
    for (j = 0; j < lanes; j += width, panels += width * depth)
        for (l = 0; l < width && j + l < lanes; l++)
            panels[l] = values[j + l];
}

static void DVTI_G(put_lane)(DVTI_T *panels, int64_t width, int64_t lane, int64_t depth,
                             const DVTI_T *values) {
    int64_t k;
    panels += lane / width * width * depth + lane % width;
    for (k = 0; k < depth; k++)
        panels[k * width] = values[k];
}

static void DVTI_G(pack)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth,
                         const void *data, dvt_dtype dtype, int64_t lane_stride,
                         int64_t depth_stride) {
    int64_t k, l;
    if (lanes % width)
        memset(panels + lanes / width * width * depth, 0, (size_t)(width * depth) * sizeof(DVTI_T));
    if (dtype == DVTI_DTYPE && lane_stride == 1) {
        for (k = 0; k < depth; k++)
            DVTI_G(put_k)
        (panels, width, lanes, depth, k, (const DVTI_T *)data + k * depth_stride);
        return;
    }
    for (l = 0; l < lanes; l++) {
        DVTI_T *to = panels + l / width * width * depth + l % width;
        if (dtype == DVTI_DTYPE) {
            const DVTI_T *from = (const DVTI_T *)data + l * lane_stride;
            for (k = 0; k < depth; k++)
                to[k * width] = from[k * depth_stride];
        } else {
            for (k = 0; k < depth; k++)
                to[k * width] = (DVTI_T)DVTI_LOAD(data, dtype, l * lane_stride + k * depth_stride);
        }
    }
}

#undef DVTI_WIDTH
/* ==== end src/3_cpu/ref/ref_gemm.inl ==== */
#ifdef DEVTENSOR_LINES
#line 9 "src/3_cpu/ref/ref_gemm.c"
#endif
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE

#define DVTI_T double
#define DVTI_G(name) dvti_gemm_f64_##name
#define DVTI_DTYPE DVT_F64
/* ==== begin src/3_cpu/ref/ref_gemm.inl ==== */
/* The packed matrix product for one element type. Pasted by ref_gemm.c with
     DVTI_T        the element type      DVTI_G(name)  `name` for that type
     DVTI_DTYPE    its dtype             DVTI_LOAD(data, dtype, at)  one element of another dtype

   micro: a 6 x 2-vector block of sums in 12 registers, one multiplication and one addition per term. Vectors are the
   compiler's own (16 bytes, which every 64-bit target has), else single elements: the same text either way. Measured on a
   2.5 GHz Skylake with gcc 12 and clang 14, -O2 without further flags: 24.4 GFLOP/s both; 4 x 8 from
   plain loops 23.6 with gcc and 14.0 with clang, 1.6 at -O1 (this: 12.7). */

#ifdef DEVTENSOR_LINES
#line 9 "src/3_cpu/ref/ref_gemm.inl"
#endif
#if defined(__GNUC__) || defined(__clang__)
typedef DVTI_T DVTI_G(vector) __attribute__((__vector_size__(16), __may_alias__));
#else
typedef DVTI_T DVTI_G(vector);
#endif

#define DVTI_WIDTH ((int64_t)(2 * sizeof(DVTI_G(vector)) / sizeof(DVTI_T)))
#define DVTI_ROW_LOAD(i) DVTI_G(vector) c##i##0 = acc[2 * i], c##i##1 = acc[2 * i + 1];
#define DVTI_ROW_STEP(i)                                                                           \
    c##i##0 += a[i] * b0;                                                                          \
    c##i##1 += a[i] * b1;
#define DVTI_ROW_STORE(i)                                                                          \
    acc[2 * i] = c##i##0;                                                                          \
    acc[2 * i + 1] = c##i##1;
#define DVTI_EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

static void DVTI_G(micro)(int64_t depth, const DVTI_T *a, const DVTI_G(vector) * b,
                          DVTI_G(vector) * acc) {
    int64_t k;
    DVTI_EACH_ROW(DVTI_ROW_LOAD)
    for (k = 0; k < depth; k++) {
        DVTI_G(vector) b0 = b[0], b1 = b[1];
        DVTI_EACH_ROW(DVTI_ROW_STEP)
        a += DVTI_GEMM_ROWS;
        b += 2;
    }
    DVTI_EACH_ROW(DVTI_ROW_STORE)
}

#undef DVTI_ROW_LOAD
#undef DVTI_ROW_STEP
#undef DVTI_ROW_STORE
#undef DVTI_EACH_ROW

/* One panel of B stays in the first-level cache while the panels of A pass by. */
static void DVTI_G(multiply)(int64_t rows, int64_t cols, int64_t depth, const DVTI_T *a,
                             const DVTI_T *b, DVTI_T *acc) {
    int64_t i, j;
    for (j = 0; j < cols; j += DVTI_WIDTH)
        for (i = 0; i < rows; i += DVTI_GEMM_ROWS) {
            DVTI_G(micro)
            (depth, a + i * depth, (const DVTI_G(vector) *)(const void *)(b + j * depth),
             (DVTI_G(vector) *)(void *)acc);
            acc += DVTI_GEMM_ROWS * DVTI_WIDTH;
        }
}

static void DVTI_G(row)(int64_t rows, int64_t cols, const DVTI_T *acc, int64_t r, DVTI_T *out) {
    int64_t panels = (rows + DVTI_GEMM_ROWS - 1) / DVTI_GEMM_ROWS, j, l;
    const DVTI_T *at =
        acc + (r / DVTI_GEMM_ROWS * DVTI_GEMM_ROWS + r % DVTI_GEMM_ROWS) * DVTI_WIDTH;
    for (j = 0; j + DVTI_WIDTH <= cols; j += DVTI_WIDTH) {
        for (l = 0; l < DVTI_WIDTH; l++)
            out[j + l] = at[l];
        at += panels * DVTI_GEMM_ROWS * DVTI_WIDTH;
    }
    for (l = 0; j + l < cols; l++)
        out[j + l] = at[l];
}

static void DVTI_G(put_k)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth, int64_t k,
                          const DVTI_T *values) {
    int64_t j, l;
    panels += k * width;
    if (width == DVTI_WIDTH)
        for (; lanes >= DVTI_WIDTH; lanes -= DVTI_WIDTH) {
            for (l = 0; l < DVTI_WIDTH; l++)
                panels[l] = values[l];
            panels += DVTI_WIDTH * depth;
            values += DVTI_WIDTH;
        }
    for (j = 0; j < lanes; j += width, panels += width * depth)
        for (l = 0; l < width && j + l < lanes; l++)
            panels[l] = values[j + l];
}

static void DVTI_G(put_lane)(DVTI_T *panels, int64_t width, int64_t lane, int64_t depth,
                             const DVTI_T *values) {
    int64_t k;
    panels += lane / width * width * depth + lane % width;
    for (k = 0; k < depth; k++)
        panels[k * width] = values[k];
}

static void DVTI_G(pack)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth,
                         const void *data, dvt_dtype dtype, int64_t lane_stride,
                         int64_t depth_stride) {
    int64_t k, l;
    if (lanes % width)
        memset(panels + lanes / width * width * depth, 0, (size_t)(width * depth) * sizeof(DVTI_T));
    if (dtype == DVTI_DTYPE && lane_stride == 1) {
        for (k = 0; k < depth; k++)
            DVTI_G(put_k)
        (panels, width, lanes, depth, k, (const DVTI_T *)data + k * depth_stride);
        return;
    }
    for (l = 0; l < lanes; l++) {
        DVTI_T *to = panels + l / width * width * depth + l % width;
        if (dtype == DVTI_DTYPE) {
            const DVTI_T *from = (const DVTI_T *)data + l * lane_stride;
            for (k = 0; k < depth; k++)
                to[k * width] = from[k * depth_stride];
        } else {
            for (k = 0; k < depth; k++)
                to[k * width] = (DVTI_T)DVTI_LOAD(data, dtype, l * lane_stride + k * depth_stride);
        }
    }
}

#undef DVTI_WIDTH
/* ==== end src/3_cpu/ref/ref_gemm.inl ==== */
#ifdef DEVTENSOR_LINES
#line 17 "src/3_cpu/ref/ref_gemm.c"
#endif
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE
#undef DVTI_LOAD

/* Unsigned, so that sums wrap. */
#define DVTI_T uint64_t
#define DVTI_G(name) dvti_gemm_i64_##name
#define DVTI_DTYPE DVT_I64
#define DVTI_LOAD dvti_load_i64
/* ==== begin src/3_cpu/ref/ref_gemm.inl ==== */
/* The packed matrix product for one element type. Pasted by ref_gemm.c with
     DVTI_T        the element type      DVTI_G(name)  `name` for that type
     DVTI_DTYPE    its dtype             DVTI_LOAD(data, dtype, at)  one element of another dtype

   micro: a 6 x 2-vector block of sums in 12 registers, one multiplication and one addition per term. Vectors are the
   compiler's own (16 bytes, which every 64-bit target has), else single elements: the same text either way. Measured on a
   2.5 GHz Skylake with gcc 12 and clang 14, -O2 without further flags: 24.4 GFLOP/s both; 4 x 8 from
   plain loops 23.6 with gcc and 14.0 with clang, 1.6 at -O1 (this: 12.7). */

#ifdef DEVTENSOR_LINES
#line 9 "src/3_cpu/ref/ref_gemm.inl"
#endif
#if defined(__GNUC__) || defined(__clang__)
typedef DVTI_T DVTI_G(vector) __attribute__((__vector_size__(16), __may_alias__));
#else
typedef DVTI_T DVTI_G(vector);
#endif

#define DVTI_WIDTH ((int64_t)(2 * sizeof(DVTI_G(vector)) / sizeof(DVTI_T)))
#define DVTI_ROW_LOAD(i) DVTI_G(vector) c##i##0 = acc[2 * i], c##i##1 = acc[2 * i + 1];
#define DVTI_ROW_STEP(i)                                                                           \
    c##i##0 += a[i] * b0;                                                                          \
    c##i##1 += a[i] * b1;
#define DVTI_ROW_STORE(i)                                                                          \
    acc[2 * i] = c##i##0;                                                                          \
    acc[2 * i + 1] = c##i##1;
#define DVTI_EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

static void DVTI_G(micro)(int64_t depth, const DVTI_T *a, const DVTI_G(vector) * b,
                          DVTI_G(vector) * acc) {
    int64_t k;
    DVTI_EACH_ROW(DVTI_ROW_LOAD)
    for (k = 0; k < depth; k++) {
        DVTI_G(vector) b0 = b[0], b1 = b[1];
        DVTI_EACH_ROW(DVTI_ROW_STEP)
        a += DVTI_GEMM_ROWS;
        b += 2;
    }
    DVTI_EACH_ROW(DVTI_ROW_STORE)
}

#undef DVTI_ROW_LOAD
#undef DVTI_ROW_STEP
#undef DVTI_ROW_STORE
#undef DVTI_EACH_ROW

/* One panel of B stays in the first-level cache while the panels of A pass by. */
static void DVTI_G(multiply)(int64_t rows, int64_t cols, int64_t depth, const DVTI_T *a,
                             const DVTI_T *b, DVTI_T *acc) {
    int64_t i, j;
    for (j = 0; j < cols; j += DVTI_WIDTH)
        for (i = 0; i < rows; i += DVTI_GEMM_ROWS) {
            DVTI_G(micro)
            (depth, a + i * depth, (const DVTI_G(vector) *)(const void *)(b + j * depth),
             (DVTI_G(vector) *)(void *)acc);
            acc += DVTI_GEMM_ROWS * DVTI_WIDTH;
        }
}

static void DVTI_G(row)(int64_t rows, int64_t cols, const DVTI_T *acc, int64_t r, DVTI_T *out) {
    int64_t panels = (rows + DVTI_GEMM_ROWS - 1) / DVTI_GEMM_ROWS, j, l;
    const DVTI_T *at =
        acc + (r / DVTI_GEMM_ROWS * DVTI_GEMM_ROWS + r % DVTI_GEMM_ROWS) * DVTI_WIDTH;
    for (j = 0; j + DVTI_WIDTH <= cols; j += DVTI_WIDTH) {
        for (l = 0; l < DVTI_WIDTH; l++)
            out[j + l] = at[l];
        at += panels * DVTI_GEMM_ROWS * DVTI_WIDTH;
    }
    for (l = 0; j + l < cols; l++)
        out[j + l] = at[l];
}

static void DVTI_G(put_k)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth, int64_t k,
                          const DVTI_T *values) {
    int64_t j, l;
    panels += k * width;
    if (width == DVTI_WIDTH)
        for (; lanes >= DVTI_WIDTH; lanes -= DVTI_WIDTH) {
            for (l = 0; l < DVTI_WIDTH; l++)
                panels[l] = values[l];
            panels += DVTI_WIDTH * depth;
            values += DVTI_WIDTH;
        }
    for (j = 0; j < lanes; j += width, panels += width * depth)
        for (l = 0; l < width && j + l < lanes; l++)
            panels[l] = values[j + l];
}

static void DVTI_G(put_lane)(DVTI_T *panels, int64_t width, int64_t lane, int64_t depth,
                             const DVTI_T *values) {
    int64_t k;
    panels += lane / width * width * depth + lane % width;
    for (k = 0; k < depth; k++)
        panels[k * width] = values[k];
}

static void DVTI_G(pack)(DVTI_T *panels, int64_t width, int64_t lanes, int64_t depth,
                         const void *data, dvt_dtype dtype, int64_t lane_stride,
                         int64_t depth_stride) {
    int64_t k, l;
    if (lanes % width)
        memset(panels + lanes / width * width * depth, 0, (size_t)(width * depth) * sizeof(DVTI_T));
    if (dtype == DVTI_DTYPE && lane_stride == 1) {
        for (k = 0; k < depth; k++)
            DVTI_G(put_k)
        (panels, width, lanes, depth, k, (const DVTI_T *)data + k * depth_stride);
        return;
    }
    for (l = 0; l < lanes; l++) {
        DVTI_T *to = panels + l / width * width * depth + l % width;
        if (dtype == DVTI_DTYPE) {
            const DVTI_T *from = (const DVTI_T *)data + l * lane_stride;
            for (k = 0; k < depth; k++)
                to[k * width] = from[k * depth_stride];
        } else {
            for (k = 0; k < depth; k++)
                to[k * width] = (DVTI_T)DVTI_LOAD(data, dtype, l * lane_stride + k * depth_stride);
        }
    }
}

#undef DVTI_WIDTH
/* ==== end src/3_cpu/ref/ref_gemm.inl ==== */
#ifdef DEVTENSOR_LINES
#line 28 "src/3_cpu/ref/ref_gemm.c"
#endif
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE
#undef DVTI_LOAD

static int64_t dvti_gemm_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/* Cuts n into equal parts of at most `most`, each but the last a multiple. */
static int64_t dvti_gemm_cut(int64_t n, int64_t most, int64_t multiple) {
    int64_t parts = n > most ? (n - 1) / most + 1 : 1;
    return n <= multiple ? multiple : dvti_gemm_up((n - 1) / parts + 1, multiple);
}

/* The largest tile: its panels of A (96 KB) and B (128 KB) and its sums stay in the second-level cache. */
#define DVTI_GEMM_TILE_ROWS 96
#define DVTI_GEMM_TILE_COLS 128
#define DVTI_GEMM_TILE_DEPTH 256

DVTI_FN dvti_gemm dvti_gemm_plan(dvti_class compute, int64_t rows, int64_t cols, int64_t depth) {
    dvti_gemm plan;
    plan.compute = compute;
    if (compute == DVTI_F32) {
        plan.size = sizeof(float);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_f32_vector) / plan.size;
    } else if (compute == DVTI_F64) {
        plan.size = sizeof(double);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_f64_vector) / plan.size;
    } else {
        plan.size = sizeof(uint64_t);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_i64_vector) / plan.size;
    }
    plan.rows = dvti_gemm_cut(rows, DVTI_GEMM_TILE_ROWS, DVTI_GEMM_ROWS);
    plan.cols = dvti_gemm_cut(cols, DVTI_GEMM_TILE_COLS, plan.width);
    plan.depth = dvti_gemm_cut(depth, DVTI_GEMM_TILE_DEPTH, 1);
    plan.b_at = dvti_gemm_up(plan.rows * plan.depth * plan.size, 64);
    plan.acc_at = plan.b_at + dvti_gemm_up(plan.cols * plan.depth * plan.size, 64);
    plan.row_at = plan.acc_at + dvti_gemm_up(plan.rows * plan.cols * plan.size, 64);
    plan.bytes = plan.row_at + dvti_gemm_up(DVTI_MAX(plan.cols, plan.depth) * plan.size, 64);
    return plan;
}

#undef DVTI_GEMM_TILE_ROWS
#undef DVTI_GEMM_TILE_COLS
#undef DVTI_GEMM_TILE_DEPTH

DVTI_FN void dvti_gemm_pack(const dvti_gemm *plan, void *panels, int64_t width, int64_t lanes,
                            int64_t depth, const void *data, dvt_dtype dtype, int64_t lane_stride,
                            int64_t depth_stride) {
    if (plan->compute == DVTI_F32)
        dvti_gemm_f32_pack((float *)panels, width, lanes, depth, data, dtype, lane_stride,
                           depth_stride);
    else if (plan->compute == DVTI_F64)
        dvti_gemm_f64_pack((double *)panels, width, lanes, depth, data, dtype, lane_stride,
                           depth_stride);
    else
        dvti_gemm_i64_pack((uint64_t *)panels, width, lanes, depth, data, dtype, lane_stride,
                           depth_stride);
}

DVTI_FN void dvti_gemm_put_k(const dvti_gemm *plan, void *panels, int64_t width, int64_t lanes,
                             int64_t depth, int64_t k, const void *values) {
    if (plan->compute == DVTI_F32)
        dvti_gemm_f32_put_k((float *)panels, width, lanes, depth, k, (const float *)values);
    else if (plan->compute == DVTI_F64)
        dvti_gemm_f64_put_k((double *)panels, width, lanes, depth, k, (const double *)values);
    else
        dvti_gemm_i64_put_k((uint64_t *)panels, width, lanes, depth, k, (const uint64_t *)values);
}

DVTI_FN void dvti_gemm_put_lane(const dvti_gemm *plan, void *panels, int64_t width, int64_t lane,
                                int64_t depth, const void *values) {
    if (plan->compute == DVTI_F32)
        dvti_gemm_f32_put_lane((float *)panels, width, lane, depth, (const float *)values);
    else if (plan->compute == DVTI_F64)
        dvti_gemm_f64_put_lane((double *)panels, width, lane, depth, (const double *)values);
    else
        dvti_gemm_i64_put_lane((uint64_t *)panels, width, lane, depth, (const uint64_t *)values);
}

DVTI_FN void dvti_gemm_multiply(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                                const void *a, const void *b, void *acc, bool first) {
    if (first)
        memset(acc, 0,
               (size_t)(dvti_gemm_up(rows, DVTI_GEMM_ROWS) * dvti_gemm_up(cols, plan->width) *
                        plan->size));
    if (plan->compute == DVTI_F32)
        dvti_gemm_f32_multiply(rows, cols, depth, (const float *)a, (const float *)b, (float *)acc);
    else if (plan->compute == DVTI_F64)
        dvti_gemm_f64_multiply(rows, cols, depth, (const double *)a, (const double *)b,
                               (double *)acc);
    else
        dvti_gemm_i64_multiply(rows, cols, depth, (const uint64_t *)a, (const uint64_t *)b,
                               (uint64_t *)acc);
}

DVTI_FN void dvti_gemm_row(const dvti_gemm *plan, int64_t rows, int64_t cols, const void *acc,
                           int64_t r, void *out) {
    if (plan->compute == DVTI_F32)
        dvti_gemm_f32_row(rows, cols, (const float *)acc, r, (float *)out);
    else if (plan->compute == DVTI_F64)
        dvti_gemm_f64_row(rows, cols, (const double *)acc, r, (double *)out);
    else
        dvti_gemm_i64_row(rows, cols, (const uint64_t *)acc, r, (uint64_t *)out);
}

/* ---- tasks ---- */
DVTI_FN int64_t dvti_task_areas(int64_t tasks, double work) {
    /* Waking a thread costs about as much as 2^17 multiplications. */
    return work < 131072 ? 1 : DVTI_MAX(1, DVTI_MIN(tasks, dvti_parallel_width()));
}

typedef struct dvti_task_run {
    int64_t tasks, area_bytes;
    char *workspace;
    dvti_task_fn run;
    void *user;
    dvti_atomic next;
} dvti_task_run;

/* Whoever gets an area works through the tasks that are left, so a late thread delays nobody. */
static void dvti_task_body(void *user, int64_t begin, int64_t end) {
    dvti_task_run *run = (dvti_task_run *)user;
    int64_t area, task;
    for (area = begin; area < end; area++)
        while ((task = dvti_atomic_add(&run->next, 1) - 1) < run->tasks)
            run->run(run->user, task, run->workspace + area * run->area_bytes);
}

DVTI_FN void dvti_run_tasks(int64_t tasks, void *workspace, int64_t areas, int64_t area_bytes,
                            dvti_task_fn run, void *user) {
    dvti_task_run all;
    all.tasks = tasks;
    all.area_bytes = area_bytes;
    all.workspace = (char *)workspace;
    all.run = run;
    all.user = user;
    all.next = 0;
    dvti_parallel_for(areas, 1, dvti_task_body, &all);
}
/* ==== end src/3_cpu/ref/ref_gemm.c ==== */
#ifdef DEVTENSOR_LINES
#line 33 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_index.c ==== */
/* Indexing: slices by number, one element per position by number, their transposes that add (the gradients), one-hot rows. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cpu/ref/ref_index.c"
#endif

/* Negative numbers count from the end; what is outside goes to the nearest end. n > 0. */
static int64_t dvti_index_clamp(int64_t index, int64_t n) {
    if (index < 0)
        index += n;
    return index < 0 ? 0 : index >= n ? n - 1 : index;
}

/* Sums of 16-bit floats grow in float32, in the workspace, and are rounded once. */
static bool dvti_index_wide(const dvti_launch *launch) {
    bool adds = launch->op == DVTI_OP_take_add || launch->op == DVTI_OP_take_along_add;
    return adds && dvt_dtype_size(launch->out[0].dtype) == 2;
}

DVTI_FN int64_t dvti_ref_index_workspace(const dvti_launch *launch) {
    return dvti_index_wide(launch) ? dvti_view_size(&launch->out[0]) * 4 : 0;
}

/* Where sums grow, zeroed: a contiguous view of the result's shape. */
static dvti_view dvti_index_sums(const dvti_launch *launch) {
    dvti_view sums = launch->out[0];
    if (dvti_index_wide(launch)) {
        sums.data = launch->workspace;
        sums.dtype = DVT_F32;
    }
    memset(sums.data, 0, (size_t)(dvti_view_size(&sums) * dvt_dtype_size(sums.dtype)));
    return sums;
}

static void dvti_index_round(const dvti_launch *launch, const dvti_view *sums) {
    dvti_view out = launch->out[0];
    float x[DVTI_BLOCK];
    int64_t at, n, size = dvti_view_size(&out);
    if (sums->data == out.data)
        return;
    dvti_merge_axes(&out);
    for (at = 0; at < size; at += n) {
        n = DVTI_MIN(size - at, DVTI_BLOCK);
        memcpy(x, (const float *)sums->data + at, (size_t)n * sizeof *x);
        dvti_store_block(&out, at, n, DVTI_F32, x);
    }
}

/* to[k] += from[k], both contiguous. */
static void dvti_index_add(void *to, dvt_dtype to_dtype, const void *from, dvt_dtype dtype,
                           int64_t n) {
    double x[DVTI_BLOCK], y[DVTI_BLOCK];
    int64_t at, k, m;
    for (at = 0; at < n; at += m) {
        m = DVTI_MIN(n - at, DVTI_BLOCK);
        dvti_load_row_f64((const char *)from + at * dvt_dtype_size(dtype), dtype, 1, m, x);
        dvti_load_row_f64((char *)to + at * dvt_dtype_size(to_dtype), to_dtype, 1, m, y);
        for (k = 0; k < m; k++)
            y[k] += x[k];
        dvti_store_row_f64((char *)to + at * dvt_dtype_size(to_dtype), to_dtype, 1, m, y);
    }
}

/* ---- take: (A, N, B) at (M) gives (A, M, B) ---- */
typedef struct dvti_take_plan {
    const dvti_launch *launch;
    dvti_view sums;
} dvti_take_plan;

static void dvti_take_rows(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = ((const dvti_take_plan *)user)->launch;
    const dvti_view *in = &launch->in[0];
    const int64_t *index = (const int64_t *)launch->in[1].data;
    int64_t n = in->dim[1], m = launch->out[0].dim[1], row;
    size_t bytes = (size_t)(in->dim[2] * dvt_dtype_size(in->dtype));
    for (row = begin; row < end; row++) {
        int64_t from = row / m * n + dvti_index_clamp(index[row % m], n);
        memcpy((char *)launch->out[0].data + (size_t)row * bytes,
               (const char *)in->data + (size_t)from * bytes, bytes);
    }
}

/* A range of A * B columns: every column sees the indices in their order, whatever the number of threads. */
static void dvti_take_add_columns(void *user, int64_t begin, int64_t end) {
    const dvti_take_plan *plan = (const dvti_take_plan *)user;
    const dvti_view *in = &plan->launch->in[0], *sums = &plan->sums;
    const int64_t *index = (const int64_t *)plan->launch->in[1].data;
    int64_t m = in->dim[1], n = sums->dim[1], b = sums->dim[2], j, column, width;
    for (; begin < end; begin += width) {
        int64_t a = begin / b;
        column = begin % b;
        width = DVTI_MIN(end - begin, b - column);
        for (j = 0; j < m; j++) {
            int64_t to = (a * n + dvti_index_clamp(index[j], n)) * b + column;
            int64_t from = (a * m + j) * b + column;
            dvti_index_add((char *)sums->data + to * dvt_dtype_size(sums->dtype), sums->dtype,
                           (const char *)in->data + from * dvt_dtype_size(in->dtype), in->dtype,
                           width);
        }
    }
}

static void dvti_ref_take(const dvti_launch *launch) {
    dvti_take_plan plan;
    int64_t b = launch->out[0].dim[2], m = launch->in[0].dim[1];
    plan.launch = launch;
    if (launch->op == DVTI_OP_take) {
        dvti_parallel_for(launch->out[0].dim[0] * launch->out[0].dim[1], 16384 / (b + 8) + 1,
                          dvti_take_rows, &plan);
        return;
    }
    plan.sums = dvti_index_sums(launch);
    dvti_parallel_for(launch->out[0].dim[0] * b, DVTI_MAX(16384 / (m + 1), 64),
                      dvti_take_add_columns, &plan);
    dvti_index_round(launch, &plan.sums);
}

/* ---- take_along: one element per position ---- */
typedef struct dvti_along_plan {
    const dvti_launch *launch;
    dvti_view at;     /* the positions: in[1] */
    dvti_view source; /* take_along: in[0] without the step along the axis; take_along_add: in[0] */
    dvti_view target; /* where the position goes, without the step along the axis */
    int64_t extent, stride; /* along the axis, of what is indexed */
    int64_t row;            /* positions per work item */
} dvti_along_plan;

static void dvti_along_items(void *user, int64_t begin, int64_t end) {
    const dvti_along_plan *plan = (const dvti_along_plan *)user;
    bool adds = plan->launch->op == DVTI_OP_take_along_add;
    int64_t position = begin * plan->row, last = end * plan->row, k, n, index[DVTI_BLOCK];
    int64_t from_size = dvt_dtype_size(plan->source.dtype),
            to_size = dvt_dtype_size(plan->target.dtype);
    dvti_cursor from = dvti_cursor_at(&plan->source, position);
    dvti_cursor to = dvti_cursor_at(&plan->target, position);
    for (; position < last; position += n) {
        n = DVTI_MIN(last - position, DVTI_BLOCK);
        dvti_load_block(&plan->at, position, n, DVTI_I64, index);
        for (k = 0; k < n; k++) {
            int64_t step = dvti_index_clamp(index[k], plan->extent) * plan->stride;
            const char *x =
                (const char *)plan->source.data + (from.at + (adds ? 0 : step)) * from_size;
            char *y = (char *)plan->target.data + (to.at + (adds ? step : 0)) * to_size;
            if (adds)
                dvti_index_add(y, plan->target.dtype, x, plan->source.dtype, 1);
            else
                memcpy(y, x, (size_t)from_size);
            dvti_cursor_advance(&from, &plan->source, 1);
            dvti_cursor_advance(&to, &plan->target, 1);
        }
    }
}

static void dvti_ref_take_along(const dvti_launch *launch) {
    const dvti_view *positions = &launch->in[1];
    dvti_view sums = launch->out[0], *indexed;
    dvti_along_plan plan;
    int axis = (int)launch->i[0];
    bool adds = launch->op == DVTI_OP_take_along_add;
    int64_t size = dvti_view_size(positions), items;
    if (adds)
        sums = dvti_index_sums(launch);
    if (size == 0)
        return;
    plan.launch = launch;
    plan.at = *positions;
    plan.source = launch->in[0];
    plan.target = sums;
    indexed = adds ? &plan.target : &plan.source;
    plan.extent = indexed->dim[axis];
    plan.stride = indexed->stride[axis];
    indexed->dim[axis] = positions->dim[axis];
    indexed->stride[axis] = 0;
    /* Positions that may meet differ on the axis only: pieces of the first axis are independent unless it is that one. */
    items = adds && axis == 0 ? 1 : positions->dim[0];
    plan.row = size / items;
    dvti_merge_axes(&plan.at);
    dvti_merge_axes(&plan.source);
    dvti_merge_axes(&plan.target);
    dvti_parallel_for(items, 4096 / plan.row + 1, dvti_along_items, &plan);
    if (adds)
        dvti_index_round(launch, &sums);
}

/* ---- one_hot ---- */
static void dvti_one_hot_rows(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    const int64_t *index = (const int64_t *)launch->in[0].data;
    int64_t depth = out->dim[out->ndim - 1], size = dvt_dtype_size(out->dtype), row;
    memset((char *)out->data + begin * depth * size, 0, (size_t)((end - begin) * depth * size));
    for (row = begin; row < end; row++)
        if (index[row] >= 0 && index[row] < depth)
            dvti_store_i64(out->data, out->dtype, row * depth + index[row], 1);
}

DVTI_FN void dvti_ref_index(const dvti_launch *launch) {
    if (launch->kernel == DVTI_K_TAKE)
        dvti_ref_take(launch);
    else if (launch->kernel == DVTI_K_TAKE_ALONG)
        dvti_ref_take_along(launch);
    else
        dvti_parallel_for(dvti_view_size(&launch->in[0]),
                          16384 / (launch->out[0].dim[launch->out[0].ndim - 1] + 1) + 1,
                          dvti_one_hot_rows, (void *)launch);
}
/* ==== end src/3_cpu/ref/ref_index.c ==== */
#ifdef DEVTENSOR_LINES
#line 34 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_matmul.c ==== */
/* Matrix product, out (batch..., n, m) = a (batch..., n, k) * b (batch..., k, m): tiles through the packed product of
   ref_gemm.c, and vectors without packing. Every sum runs over k in ascending order. */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/ref/ref_matmul.c"
#endif

typedef struct dvti_matmul_job {
    const dvti_launch *launch;
    dvti_gemm plan;
    int64_t n, m, k, batch;
    int64_t tasks, row_tiles, col_tiles; /* col_tiles: pieces of the result, for vectors */
    bool vector;                         /* n or m is 1 */
} dvti_matmul_job;

/* Columns of one task of a vector product, and those summed side by side. */
#define DVTI_MATVEC_TASK 512
#define DVTI_MATVEC_BLOCK 64
#define DVTI_MATVEC_STREAMS 8

static dvti_class dvti_matmul_class(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVTI_F64 : dvt_dtype_is_float(dtype) ? DVTI_F32 : DVTI_I64;
}

static dvti_matmul_job dvti_matmul_plan(const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    dvti_matmul_job p;
    bool plain = out->dtype == DVT_F32 || out->dtype == DVT_F64 || out->dtype == DVT_I64;
    int i;
    p.launch = launch;
    p.n = out->dim[out->ndim - 2];
    p.m = out->dim[out->ndim - 1];
    p.k = a->dim[a->ndim - 1];
    p.batch = 1;
    for (i = 0; i < out->ndim - 2; i++)
        p.batch *= out->dim[i];
    p.plan = dvti_gemm_plan(dvti_matmul_class(out->dtype), p.n, p.m, p.k);
    p.vector = plain && a->dtype == out->dtype && b->dtype == out->dtype && (p.n == 1 || p.m == 1);
    p.row_tiles = p.vector ? 1 : (p.n + p.plan.rows - 1) / p.plan.rows;
    p.col_tiles = p.vector ? (DVTI_MAX(p.n, p.m) + DVTI_MATVEC_TASK - 1) / DVTI_MATVEC_TASK
                           : (p.m + p.plan.cols - 1) / p.plan.cols;
    p.tasks = p.batch * p.row_tiles * p.col_tiles;
    return p;
}

static int64_t dvti_matmul_areas(const dvti_matmul_job *p) {
    return dvti_task_areas(p->tasks, (double)p->batch * (double)p->n * (double)p->m * (double)p->k);
}

DVTI_FN int64_t dvti_ref_matmul_workspace(const dvti_launch *launch) {
    dvti_matmul_job p = dvti_matmul_plan(launch);
    return p.vector ? 0 : p.plan.bytes * dvti_matmul_areas(&p);
}

/* Where matrix number `batch` starts in a factor, in elements. */
static int64_t dvti_matmul_offset(const dvti_view *out, const dvti_view *in, int64_t batch) {
    int64_t offset = 0;
    int i;
    for (i = out->ndim - 3; i >= 0; i--) {
        offset += batch % out->dim[i] * in->stride[i];
        batch /= out->dim[i];
    }
    return offset;
}

static void *dvti_matmul_at(const dvti_view *view, int64_t offset) {
    return (char *)view->data + offset * dvt_dtype_size(view->dtype);
}

static void dvti_matmul_store(const dvti_matmul_job *p, int64_t rows, int64_t cols, const void *acc,
                              void *row, int64_t at) {
    const dvti_view *out = &p->launch->out[0];
    bool plain = out->dtype == DVT_F32 || p->plan.size == dvt_dtype_size(out->dtype);
    int64_t r, j;
    for (r = 0; r < rows; r++, at += p->m) {
        if (plain) {
            dvti_gemm_row(&p->plan, rows, cols, acc, r, dvti_matmul_at(out, at));
            continue;
        }
        dvti_gemm_row(&p->plan, rows, cols, acc, r, row);
        for (j = 0; j < cols; j++)
            if (p->plan.compute == DVTI_F32)
                dvti_store_f64(out->data, out->dtype, at + j, ((const float *)row)[j]);
            else
                dvti_store_i64(out->data, out->dtype, at + j, ((const int64_t *)row)[j]);
    }
}

static void dvti_matmul_tile(void *user, int64_t task, void *area) {
    const dvti_matmul_job *p = (const dvti_matmul_job *)user;
    const dvti_gemm *plan = &p->plan;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    int64_t tiles = p->row_tiles * p->col_tiles, batch = task / tiles;
    int64_t i = task % tiles / p->col_tiles * plan->rows, j = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->n - i), cols = DVTI_MIN(plan->cols, p->m - j), k;
    int64_t a_row = a->stride[a->ndim - 2], a_k = a->stride[a->ndim - 1];
    int64_t b_k = b->stride[b->ndim - 2], b_col = b->stride[b->ndim - 1];
    int64_t a_at = dvti_matmul_offset(out, a, batch) + i * a_row;
    int64_t b_at = dvti_matmul_offset(out, b, batch) + j * b_col;
    char *pa = (char *)area, *pb = pa + plan->b_at, *acc = pa + plan->acc_at;
    if (p->k == 0)
        dvti_gemm_multiply(plan, rows, cols, 0, pa, pb, acc, true);
    for (k = 0; k < p->k; k += plan->depth) {
        int64_t depth = DVTI_MIN(plan->depth, p->k - k);
        dvti_gemm_pack(plan, pa, DVTI_GEMM_ROWS, rows, depth, dvti_matmul_at(a, a_at + k * a_k),
                       a->dtype, a_row, a_k);
        dvti_gemm_pack(plan, pb, plan->width, cols, depth, dvti_matmul_at(b, b_at + k * b_k),
                       b->dtype, b_col, b_k);
        dvti_gemm_multiply(plan, rows, cols, depth, pa, pb, acc, k == 0);
    }
    dvti_matmul_store(p, rows, cols, acc, pa + plan->row_at, (batch * p->n + i) * p->m + j);
}

/* y[j] = sum over k of x[k] * w[k][j], for `count` columns j. Neighbours side by side: w is read along its rows.
   Else several columns at a time, so that the additions of one column do not wait for each other's. */
#define DVTI_MATVEC(T, suffix)                                                                     \
    static void dvti_matvec_##suffix(int64_t count, int64_t depth, const T *x, int64_t x_k,        \
                                     const T *w, int64_t w_k, int64_t w_col, T *y) {               \
        T sum[DVTI_MATVEC_BLOCK];                                                                  \
        int64_t most = w_col == 1 ? DVTI_MATVEC_BLOCK : DVTI_MATVEC_STREAMS, n, j, k;              \
        for (; count > 0; count -= n, y += n, w += n * w_col) {                                    \
            n = DVTI_MIN(most, count);                                                             \
            memset(sum, 0, sizeof sum);                                                            \
            for (k = 0; k < depth; k++) {                                                          \
                const T *row = w + k * w_k;                                                        \
                T factor = x[k * x_k];                                                             \
                if (w_col == 1 && n == DVTI_MATVEC_BLOCK)                                          \
                    for (j = 0; j < DVTI_MATVEC_BLOCK; j++)                                        \
                        sum[j] += factor * row[j];                                                 \
                else if (w_col != 1 && n == DVTI_MATVEC_STREAMS)                                   \
                    for (j = 0; j < DVTI_MATVEC_STREAMS; j++)                                      \
                        sum[j] += factor * row[j * w_col];                                         \
                else                                                                               \
                    for (j = 0; j < n; j++)                                                        \
                        sum[j] += factor * row[j * w_col];                                         \
            }                                                                                      \
            memcpy(y, sum, (size_t)n * sizeof(T));                                                 \
        }                                                                                          \
    }

DVTI_MATVEC(float, f32)
DVTI_MATVEC(double, f64)
DVTI_MATVEC(uint64_t, i64)

#undef DVTI_MATVEC

/* Of a column, the transposed product: its rows are then the columns. */
static void dvti_matmul_vector(void *user, int64_t task, void *area) {
    const dvti_matmul_job *p = (const dvti_matmul_job *)user;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    const dvti_view *x = p->n == 1 ? a : b, *w = p->n == 1 ? b : a;
    int x_axis = p->n == 1 ? x->ndim - 1 : x->ndim - 2,
        w_axis = p->n == 1 ? w->ndim - 2 : w->ndim - 1;
    int64_t length = DVTI_MAX(p->n, p->m), batch = task / p->col_tiles;
    int64_t j = task % p->col_tiles * DVTI_MATVEC_TASK;
    int64_t count = DVTI_MIN(DVTI_MATVEC_TASK, length - j);
    int64_t x_k = x->stride[x_axis], w_k = w->stride[w_axis];
    int64_t w_col = w->stride[2 * w->ndim - 3 - w_axis];
    const void *from = dvti_matmul_at(x, dvti_matmul_offset(out, x, batch));
    const void *with = dvti_matmul_at(w, dvti_matmul_offset(out, w, batch) + j * w_col);
    void *to = dvti_matmul_at(out, batch * length + j);
    (void)area;
    if (out->dtype == DVT_F32)
        dvti_matvec_f32(count, p->k, (const float *)from, x_k, (const float *)with, w_k, w_col,
                        (float *)to);
    else if (out->dtype == DVT_F64)
        dvti_matvec_f64(count, p->k, (const double *)from, x_k, (const double *)with, w_k, w_col,
                        (double *)to);
    else
        dvti_matvec_i64(count, p->k, (const uint64_t *)from, x_k, (const uint64_t *)with, w_k,
                        w_col, (uint64_t *)to);
}

#undef DVTI_MATVEC_TASK
#undef DVTI_MATVEC_BLOCK
#undef DVTI_MATVEC_STREAMS

DVTI_FN void dvti_ref_matmul(const dvti_launch *launch) {
    dvti_matmul_job p = dvti_matmul_plan(launch);
    if (p.vector)
        dvti_run_tasks(p.tasks, NULL, dvti_matmul_areas(&p), 0, dvti_matmul_vector, &p);
    else
        dvti_run_tasks(p.tasks, launch->workspace, launch->workspace_bytes / p.plan.bytes,
                       p.plan.bytes, dvti_matmul_tile, &p);
}
/* ==== end src/3_cpu/ref/ref_matmul.c ==== */
#ifdef DEVTENSOR_LINES
#line 35 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_optimizer.c ==== */
/* Optimiser steps. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cpu/ref/ref_optimizer.c"
#endif
/* ==== end src/3_cpu/ref/ref_optimizer.c ==== */
#ifdef DEVTENSOR_LINES
#line 36 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_pool.c ==== */
/* Pooling: the largest element or the mean of each window, and their gradients. Windows are cut to x. One task is some planes
   (a channel of a sample), whose results depend on nothing else. */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/ref/ref_pool.c"
#endif

/* Two of each: height, width. */
typedef struct dvti_pool_plan {
    const dvti_launch *launch;
    int64_t size[2], stride[2], padding[2];
    int64_t extent[2]; /* of x */
    int64_t windows[2];
    bool inside; /* a mean counts only the elements of x */
} dvti_pool_plan;

typedef struct dvti_span {
    int64_t begin, end;
    int64_t counted; /* by a mean: with padding, when that counts, but nothing beyond it */
} dvti_span;

/* The part of window number i that lies in x. */
static dvti_span dvti_pool_window(const dvti_pool_plan *p, int axis, int64_t i) {
    int64_t begin = i * p->stride[axis] - p->padding[axis], end = begin + p->size[axis];
    dvti_span span;
    span.counted = DVTI_MIN(end, p->extent[axis] + p->padding[axis]) - begin;
    span.begin = DVTI_MAX(begin, 0);
    span.end = DVTI_MIN(end, p->extent[axis]);
    if (p->inside)
        span.counted = span.end - span.begin;
    return span;
}

/* The windows that element `at` lies in. */
static dvti_span dvti_pool_windows_of(const dvti_pool_plan *p, int axis, int64_t at) {
    dvti_span span;
    at += p->padding[axis];
    span.begin = at < p->size[axis] ? 0 : (at - p->size[axis]) / p->stride[axis] + 1;
    span.end = DVTI_MIN(at / p->stride[axis] + 1, p->windows[axis]);
    span.counted = 0;
    return span;
}

#define DVTI_T float
#define DVTI_G(name) dvti_pool_f32_##name
#define DVTI_READ(view, at) (((const float *)(view)->data)[at])
#define DVTI_WRITE(view, at, value) (((float *)(view)->data)[at] = (value))
/* ==== begin src/3_cpu/ref/ref_pool.inl ==== */
/* Pooling of planes first..last for one element type. Pasted by ref_pool.c with
     DVTI_T                 the type that is computed in   DVTI_G(name)  `name` for that type
     DVTI_READ(view, at)    an element                     DVTI_WRITE(view, at, value) */

/* The place of the first largest element of rows h0..h1, columns w0..w1 of the plane at `base`; a NaN is larger than
   all numbers. */
#ifdef DEVTENSOR_LINES
#line 6 "src/3_cpu/ref/ref_pool.inl"
#endif
static int64_t DVTI_G(largest)(const dvti_view *x, int64_t base, int64_t w, const dvti_span *rows,
                               const dvti_span *cols) {
    int64_t best = base + rows->begin * w + cols->begin, r, c;
    DVTI_T most = DVTI_READ(x, best);
    for (r = rows->begin; r < rows->end; r++)
        for (c = cols->begin; c < cols->end; c++) {
            DVTI_T v = DVTI_READ(x, base + r * w + c);
            if (v > most || (v != v && most == most)) {
                most = v;
                best = base + r * w + c;
            }
        }
    return best;
}

static void DVTI_G(max)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *x = &p->launch->in[0];
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T most = DVTI_READ(x, at + cols.begin);
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++) {
                        DVTI_T v = DVTI_READ(x, at + c);
                        most = v > most || v != v ? v : most;
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           most);
            }
        }
}

/* data: the gradient goes to each window's first largest element.   pick: a value comes from there. */
static void DVTI_G(max_places)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *from = &p->launch->in[0], *x = &p->launch->in[1], *out = &p->launch->out[0];
    bool pick = p->launch->op == DVTI_OP_max_pool2d_pick;
    int64_t plane, i, j, size = p->extent[0] * p->extent[1];
    for (plane = first; plane < last; plane++) {
        for (i = 0; !pick && i < size; i++)
            DVTI_WRITE(out, plane * size + i, 0);
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t place = DVTI_G(largest)(x, plane * size, p->extent[1], &rows, &cols);
                int64_t window = (plane * p->windows[0] + i) * p->windows[1] + j;
                if (pick)
                    DVTI_WRITE(out, window, DVTI_READ(from, place));
                else
                    DVTI_WRITE(out, place, DVTI_READ(out, place) + DVTI_READ(from, window));
            }
        }
    }
}

static void DVTI_G(avg)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T sum = 0;
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++)
                        sum += DVTI_READ(&p->launch->in[0], at + c);
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           sum / (DVTI_T)(rows.counted * cols.counted));
            }
        }
}

/* Gathers: an element of x gets its part of every window that it lies in, and is rounded once. */
static void DVTI_G(avg_data)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, r, c, i, j;
    for (plane = first; plane < last; plane++)
        for (r = 0; r < p->extent[0]; r++) {
            dvti_span is = dvti_pool_windows_of(p, 0, r);
            for (c = 0; c < p->extent[1]; c++) {
                dvti_span js = dvti_pool_windows_of(p, 1, c);
                DVTI_T sum = 0;
                for (i = is.begin; i < is.end; i++)
                    for (j = js.begin; j < js.end; j++) {
                        dvti_span rows = dvti_pool_window(p, 0, i);
                        dvti_span cols = dvti_pool_window(p, 1, j);
                        sum += DVTI_READ(&p->launch->in[0],
                                         (plane * p->windows[0] + i) * p->windows[1] + j) /
                               (DVTI_T)(rows.counted * cols.counted);
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->extent[0] + r) * p->extent[1] + c, sum);
            }
        }
}

static void DVTI_G(planes)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    switch (p->launch->op) {
    case DVTI_OP_max_pool2d:
        DVTI_G(max)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d:
        DVTI_G(avg)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d_data:
        DVTI_G(avg_data)(p, first, last);
        break;
    default:
        DVTI_G(max_places)(p, first, last);
    }
}
/* ==== end src/3_cpu/ref/ref_pool.inl ==== */
#ifdef DEVTENSOR_LINES
#line 45 "src/3_cpu/ref/ref_pool.c"
#endif
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

/* float64, and the half types, which are rounded when they are written. */
#define DVTI_T double
#define DVTI_G(name) dvti_pool_any_##name
#define DVTI_READ(view, at) dvti_load_f64((view)->data, (view)->dtype, at)
#define DVTI_WRITE(view, at, value) dvti_store_f64((view)->data, (view)->dtype, at, value)
/* ==== begin src/3_cpu/ref/ref_pool.inl ==== */
/* Pooling of planes first..last for one element type. Pasted by ref_pool.c with
     DVTI_T                 the type that is computed in   DVTI_G(name)  `name` for that type
     DVTI_READ(view, at)    an element                     DVTI_WRITE(view, at, value) */

/* The place of the first largest element of rows h0..h1, columns w0..w1 of the plane at `base`; a NaN is larger than
   all numbers. */
#ifdef DEVTENSOR_LINES
#line 6 "src/3_cpu/ref/ref_pool.inl"
#endif
static int64_t DVTI_G(largest)(const dvti_view *x, int64_t base, int64_t w, const dvti_span *rows,
                               const dvti_span *cols) {
    int64_t best = base + rows->begin * w + cols->begin, r, c;
    DVTI_T most = DVTI_READ(x, best);
    for (r = rows->begin; r < rows->end; r++)
        for (c = cols->begin; c < cols->end; c++) {
            DVTI_T v = DVTI_READ(x, base + r * w + c);
            if (v > most || (v != v && most == most)) {
                most = v;
                best = base + r * w + c;
            }
        }
    return best;
}

static void DVTI_G(max)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *x = &p->launch->in[0];
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T most = DVTI_READ(x, at + cols.begin);
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++) {
                        DVTI_T v = DVTI_READ(x, at + c);
                        most = v > most || v != v ? v : most;
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           most);
            }
        }
}

/* data: the gradient goes to each window's first largest element.   pick: a value comes from there. */
static void DVTI_G(max_places)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *from = &p->launch->in[0], *x = &p->launch->in[1], *out = &p->launch->out[0];
    bool pick = p->launch->op == DVTI_OP_max_pool2d_pick;
    int64_t plane, i, j, size = p->extent[0] * p->extent[1];
    for (plane = first; plane < last; plane++) {
        for (i = 0; !pick && i < size; i++)
            DVTI_WRITE(out, plane * size + i, 0);
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t place = DVTI_G(largest)(x, plane * size, p->extent[1], &rows, &cols);
                int64_t window = (plane * p->windows[0] + i) * p->windows[1] + j;
                if (pick)
                    DVTI_WRITE(out, window, DVTI_READ(from, place));
                else
                    DVTI_WRITE(out, place, DVTI_READ(out, place) + DVTI_READ(from, window));
            }
        }
    }
}

static void DVTI_G(avg)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T sum = 0;
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++)
                        sum += DVTI_READ(&p->launch->in[0], at + c);
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           sum / (DVTI_T)(rows.counted * cols.counted));
            }
        }
}

/* Gathers: an element of x gets its part of every window that it lies in, and is rounded once. */
static void DVTI_G(avg_data)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, r, c, i, j;
    for (plane = first; plane < last; plane++)
        for (r = 0; r < p->extent[0]; r++) {
            dvti_span is = dvti_pool_windows_of(p, 0, r);
            for (c = 0; c < p->extent[1]; c++) {
                dvti_span js = dvti_pool_windows_of(p, 1, c);
                DVTI_T sum = 0;
                for (i = is.begin; i < is.end; i++)
                    for (j = js.begin; j < js.end; j++) {
                        dvti_span rows = dvti_pool_window(p, 0, i);
                        dvti_span cols = dvti_pool_window(p, 1, j);
                        sum += DVTI_READ(&p->launch->in[0],
                                         (plane * p->windows[0] + i) * p->windows[1] + j) /
                               (DVTI_T)(rows.counted * cols.counted);
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->extent[0] + r) * p->extent[1] + c, sum);
            }
        }
}

static void DVTI_G(planes)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    switch (p->launch->op) {
    case DVTI_OP_max_pool2d:
        DVTI_G(max)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d:
        DVTI_G(avg)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d_data:
        DVTI_G(avg_data)(p, first, last);
        break;
    default:
        DVTI_G(max_places)(p, first, last);
    }
}
/* ==== end src/3_cpu/ref/ref_pool.inl ==== */
#ifdef DEVTENSOR_LINES
#line 56 "src/3_cpu/ref/ref_pool.c"
#endif
#undef DVTI_T
#undef DVTI_G
#undef DVTI_READ
#undef DVTI_WRITE

static void dvti_pool_body(void *user, int64_t begin, int64_t end) {
    const dvti_pool_plan *p = (const dvti_pool_plan *)user;
    if (p->launch->out[0].dtype == DVT_F32)
        dvti_pool_f32_planes(p, begin, end);
    else
        dvti_pool_any_planes(p, begin, end);
}

DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch) {
    bool forward = launch->op == DVTI_OP_max_pool2d || launch->op == DVTI_OP_avg_pool2d ||
                   launch->op == DVTI_OP_max_pool2d_pick;
    const dvti_view *x = forward ? &launch->in[0] : &launch->out[0];
    const dvti_view *y = forward ? &launch->out[0] : &launch->in[0];
    dvti_pool_plan p;
    int64_t work;
    int axis;
    p.launch = launch;
    for (axis = 0; axis < 2; axis++) {
        p.size[axis] = launch->i[axis];
        p.stride[axis] = launch->i[2 + axis];
        p.padding[axis] = launch->i[4 + axis];
        p.extent[axis] = x->dim[2 + axis];
        p.windows[axis] = y->dim[2 + axis];
    }
    p.inside = launch->i[6] == 1;
    work = p.extent[0] * p.extent[1] + p.windows[0] * p.windows[1] * p.size[0] * p.size[1];
    dvti_parallel_for(x->dim[0] * x->dim[1], DVTI_MAX(1, 16384 / DVTI_MAX(work, 1)), dvti_pool_body,
                      &p);
}
/* ==== end src/3_cpu/ref/ref_pool.c ==== */
#ifdef DEVTENSOR_LINES
#line 37 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_random.c ==== */
/* Random numbers: each element is a function of the key and its own position, so threads and devices agree. The layouts that
   reproduce other libraries' numbers are at the end. */
#ifdef DEVTENSOR_LINES
#line 4 "src/3_cpu/ref/ref_random.c"
#endif

/* Elements for which one counter is enough. */
static int dvti_random_per_counter(const dvti_launch *launch) {
    return launch->op == DVTI_OP_randint || launch->op == DVTI_OP_permutation ||
                   (launch->out[0].dtype == DVT_F64 && launch->op != DVTI_OP_bernoulli)
               ? 2
               : 4;
}

static void dvti_random_words(const dvti_launch *launch, int64_t group, uint32_t words[4]) {
    uint64_t key = (uint64_t)launch->i[1], place = (uint64_t)launch->i[3];
    uint64_t at = (uint64_t)launch->i[2] + (uint64_t)group;
    uint32_t counter[4], k[2];
    k[0] = (uint32_t)(key >> 32);
    k[1] = (uint32_t)key;
    counter[0] = (uint32_t)at;
    counter[1] = (uint32_t)(at >> 32);
    counter[2] = (uint32_t)(place >> 32);
    counter[3] = (uint32_t)place;
    dvti_philox4x32(counter, k, words);
}

static uint64_t dvti_random_pair(const uint32_t *words) {
    return (uint64_t)words[0] << 32 | words[1];
}

/* low + u * (high - low), rounded twice everywhere: a fused multiply-add would give other bits on some machines. */
static double dvti_random_between(const dvti_launch *launch, double u) {
    volatile double scaled = u * (launch->f[1] - launch->f[0]);
    return DVTI_MIN(launch->f[0] + scaled, launch->f[2]);
}

/* Two normal numbers from u of (0, 1] and v of [0, 1). In double for every dtype, so that what is left of the differences between
   one machine's log, sin and cos and another's almost never reaches a float32. */
static void dvti_random_box_muller(const dvti_launch *launch, double u, double v, double *out) {
    double r = launch->f[1] * sqrt(-2 * log(u)), angle = 6.28318530717958647693 * v;
    out[0] = launch->f[0] + r * cos(angle);
    out[1] = launch->f[0] + r * sin(angle);
}

static void dvti_random_floats(const dvti_launch *launch, const uint32_t *w, double *out) {
    bool wide = launch->out[0].dtype == DVT_F64;
    int k;
    if (launch->op == DVTI_OP_uniform && wide) {
        for (k = 0; k < 2; k++)
            out[k] = dvti_random_between(launch, (double)(dvti_random_pair(w + 2 * k) >> 11) *
                                                     (1.0 / 9007199254740992.0));
    } else if (launch->op == DVTI_OP_uniform) {
        for (k = 0; k < 4; k++)
            out[k] = dvti_random_between(launch, (double)(w[k] >> 8) * (1.0 / 16777216.0));
    } else if (wide) {
        dvti_random_box_muller(
            launch, (double)((dvti_random_pair(w) >> 11) + 1) * (1.0 / 9007199254740992.0),
            (double)(dvti_random_pair(w + 2) >> 11) * (1.0 / 9007199254740992.0), out);
    } else {
        for (k = 0; k < 4; k += 2)
            dvti_random_box_muller(launch, ((double)w[k] + 1) * (1.0 / 4294967296.0),
                                   (double)w[k + 1] * (1.0 / 4294967296.0), out + k);
    }
}

static void dvti_random_philox(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    int64_t n = launch->i[6], g;
    int per = dvti_random_per_counter(launch), k;
    for (g = begin; g < end; g++) {
        uint32_t w[4];
        double v[4] = {0, 0, 0, 0};
        int here = (int)DVTI_MIN(per, n - g * per);
        dvti_random_words(launch, g, w);
        if (launch->op == DVTI_OP_randint) {
            for (k = 0; k < here; k++) {
                uint64_t at = dvti_mulhi64(dvti_random_pair(w + 2 * k), (uint64_t)launch->i[5]);
                dvti_store_i64(out->data, out->dtype, g * per + k,
                               (int64_t)((uint64_t)launch->i[4] + at));
            }
        } else if (launch->op == DVTI_OP_bernoulli) {
            for (k = 0; k < here; k++)
                dvti_store_i64(out->data, out->dtype, g * per + k,
                               (double)w[k] < launch->f[0] * 4294967296.0);
        } else {
            dvti_random_floats(launch, w, v);
            for (k = 0; k < here; k++)
                dvti_store_f64(out->data, out->dtype, g * per + k, v[k]);
        }
    }
}

/* From the last place down, each changes with one of those before it or itself. */
static void dvti_random_shuffle(const dvti_launch *launch) {
    int64_t *out = (int64_t *)launch->out[0].data, n = launch->i[6], i;
    for (i = 0; i < n; i++)
        out[i] = i;
    for (i = n - 1; i > 0; i--) {
        int64_t draw = n - 1 - i, j, value = out[i];
        uint32_t w[4];
        dvti_random_words(launch, draw / 2, w);
        j = (int64_t)dvti_mulhi64(dvti_random_pair(w + 2 * (draw % 2)), (uint64_t)i + 1);
        out[i] = out[j];
        out[j] = value;
    }
}

/* ---- JAX: steps are rounded to the array's dtype, as there ---- */
static void dvti_random_jax_key(const dvti_launch *launch, uint32_t key[2]) {
    key[0] = (uint32_t)((uint64_t)launch->i[1] >> 32);
    key[1] = (uint32_t)launch->i[1];
}

/* Uniform between two values of the dtype: random bits become a mantissa. XLA scales it by a fused multiply-add in float32 and
   float64, and in two steps in the narrow dtypes. */
static double dvti_random_jax_between(const uint32_t key[2], const dvti_launch *launch, int64_t e,
                                      dvt_dtype dtype, double low, double high) {
    int width = dtype == DVT_F64 ? 64 : dtype == DVT_F32 ? 32 : dtype == DVT_F16 ? 16 : 8;
    int mantissa = dtype == DVT_F64 ? 52 : dtype == DVT_F32 ? 23 : dtype == DVT_F16 ? 10 : 7;
    uint64_t bits = dvti_jax_bits(key, launch->i[6], e, width) >> (width - mantissa);
    double u = (double)bits / (double)((uint64_t)1 << mantissa);
    double range = dvti_round_as(dtype, high - low), value;
    if (dtype == DVT_F64)
        value = fma(u, range, low);
    else if (dtype == DVT_F32) /* the product is exact in double */
        value = dvti_round_as(dtype, u * range + low);
    else
        value = dvti_round_as(dtype, dvti_round_as(dtype, u * range) + low);
    return DVTI_MAX(low, value);
}

static double dvti_random_jax_normal(const uint32_t key[2], const dvti_launch *launch, int64_t e) {
    dvt_dtype dtype = launch->out[0].dtype;
    double step = dtype == DVT_F64   ? DBL_EPSILON / 2
                  : dtype == DVT_F32 ? (double)FLT_EPSILON / 2
                  : dtype == DVT_F16 ? 1.0 / 2048
                                     : 1.0 / 256;
    double u = dvti_random_jax_between(key, launch, e, dtype, step - 1, 1), z;
    z = dtype == DVT_F64 ? dvti_erfinv_f64(u) : (double)dvti_erfinv_f32((float)u);
    z = dvti_round_as(dtype,
                      dvti_round_as(dtype, 1.41421356237309504880) * dvti_round_as(dtype, z));
    return launch->f[0] + launch->f[1] * z;
}

/* Twice the bits of the dtype, reduced modulo the span; all arithmetic modulo 2^width. */
static int64_t dvti_random_jax_int(const uint32_t key[2], const dvti_launch *launch, int64_t e) {
    int width = 8 * (int)dvt_dtype_size(launch->out[0].dtype);
    int64_t n = launch->i[6];
    uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    uint64_t span = (uint64_t)launch->i[5] & mask, power = (uint64_t)1 << width / 2;
    uint64_t high, low, at;
    uint32_t key_high[2], key_low[2];
    key_high[0] = dvti_jax_word(key, 4, 0);
    key_high[1] = dvti_jax_word(key, 4, 1);
    key_low[0] = dvti_jax_word(key, 4, 2);
    key_low[1] = dvti_jax_word(key, 4, 3);
    high = dvti_jax_bits(key_high, n, e, width);
    low = dvti_jax_bits(key_low, n, e, width);
    if (span == 0) { /* every value of the dtype: x mod 0 is x there */
        at = high * (power * power & mask) + low;
    } else {
        power %= span;
        power = (power * power & mask) % span;
        at = (high % span * power & mask) + low % span;
        at = (at & mask) % span;
    }
    return (int64_t)((uint64_t)launch->i[4] + at);
}

static void dvti_random_jax(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    uint32_t key[2];
    int64_t e;
    dvti_random_jax_key(launch, key);
    for (e = begin; e < end; e++) {
        if (launch->op == DVTI_OP_randint)
            dvti_store_i64(out->data, out->dtype, e, dvti_random_jax_int(key, launch, e));
        else if (launch->op == DVTI_OP_bernoulli)
            dvti_store_i64(out->data, out->dtype, e,
                           dvti_random_jax_between(key, launch, e, DVT_F32, 0, 1) <
                               (double)(float)launch->f[0]);
        else if (launch->op == DVTI_OP_normal)
            dvti_store_f64(out->data, out->dtype, e, dvti_random_jax_normal(key, launch, e));
        else {
            double v =
                dvti_random_jax_between(key, launch, e, out->dtype, launch->f[0], launch->f[1]);
            dvti_store_f64(out->data, out->dtype, e, DVTI_MIN(v, launch->f[2]));
        }
    }
}

DVTI_FN int64_t dvti_ref_random_workspace(const dvti_launch *launch) {
    int64_t bytes;
    if (launch->op != DVTI_OP_permutation || launch->i[0] != DVTI_RNG_THREEFRY)
        return 0;
    return dvti_mul(launch->i[6], 16, &bytes) ? bytes : INT64_MAX;
}

/* Stable, by the 32-bit keys: four passes of 8 bits, back and forth between the array and the workspace. */
static void dvti_random_radix_sort(uint32_t *keys, int64_t *values, uint32_t *other_keys,
                                   int64_t *other_values, int64_t n) {
    int shift;
    for (shift = 0; shift < 32; shift += 8) {
        int64_t start[257], i, *v = other_values;
        uint32_t *k = other_keys;
        memset(start, 0, sizeof start);
        for (i = 0; i < n; i++)
            start[1 + (keys[i] >> shift & 255u)]++;
        for (i = 1; i < 256; i++)
            start[i] += start[i - 1];
        for (i = 0; i < n; i++) {
            int64_t at = start[keys[i] >> shift & 255u]++;
            other_keys[at] = keys[i];
            other_values[at] = values[i];
        }
        other_keys = keys;
        other_values = values;
        keys = k;
        values = v;
    }
}

/* Sorted by random keys, often enough that equal keys hardly matter. */
static void dvti_random_jax_shuffle(const dvti_launch *launch) {
    int64_t n = launch->i[6], *out = (int64_t *)launch->out[0].data;
    int64_t *other = (int64_t *)launch->workspace, i;
    uint32_t *keys = (uint32_t *)(other + n), *other_keys = keys + n, key[2], next[4];
    int rounds = (int)ceil(3 * log((double)DVTI_MAX(n, 1)) / log(4294967295.0)), k;
    dvti_random_jax_key(launch, key);
    for (i = 0; i < n; i++)
        out[i] = i;
    for (; rounds > 0; rounds--) {
        for (k = 0; k < 4; k++)
            next[k] = dvti_jax_word(key, 4, k);
        for (i = 0; i < n; i++)
            keys[i] = dvti_jax_word(next + 2, n, i);
        dvti_random_radix_sort(keys, out, other_keys, other, n);
        key[0] = next[0];
        key[1] = next[1];
    }
}

/* ---- MXNet: states (of cpu()) or subsequences (of gpu(i)), each for a run of neighbours ---- */
static double dvti_random_mxnet_between(const dvti_launch *launch, double u) {
    volatile float range = (float)launch->f[1] - (float)launch->f[0];
    volatile float scaled = (float)u * range;
    float value = (float)launch->f[0] + scaled;
    if (launch->out[0].dtype == DVT_F64)
        return dvti_random_between(launch, u);
    return DVTI_MIN((double)value, launch->f[2]);
}

/* As std::generate_canonical of libstdc++, which keeps rounding from reaching 1. */
static double dvti_random_canonical(dvti_mt19937 *state, bool wide) {
    double low = dvti_mt19937_next(state), u;
    if (wide) {
        u = (low + (double)dvti_mt19937_next(state) * 4294967296.0) * (1 / 18446744073709551616.0);
        return u < 1 ? u : 1 - DBL_EPSILON / 2;
    }
    u = (double)((float)low * (1 / 4294967296.0f));
    return u < 1 ? u : 1 - (double)FLT_EPSILON / 2;
}

static double dvti_random_curand(const dvti_launch *launch, int64_t thread, int64_t draw,
                                 bool wide) {
    uint32_t key[2], counter[4], words[4], x[2];
    int k;
    key[0] = (uint32_t)launch->i[1];
    key[1] = 0;
    for (k = 0; k < (wide ? 2 : 1); k++) {
        counter[0] = (uint32_t)((draw + k) / 4);
        counter[1] = (uint32_t)((uint64_t)((draw + k) / 4) >> 32);
        counter[2] = (uint32_t)thread;
        counter[3] = 0;
        dvti_philox4x32(counter, key, words);
        x[k] = words[(draw + k) % 4];
    }
    if (wide)
        return 1 - ((double)(x[0] ^ (uint64_t)x[1] << 21) + 0.5) * (1 / 9007199254740992.0);
    return (double)(1 - ((float)x[0] * (1 / 4294967296.0f) + 0.5f / 4294967296.0f));
}

static void dvti_random_mxnet(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    bool wide = out->dtype == DVT_F64, cpu = launch->i[0] == DVTI_RNG_MT19937;
    int64_t n = launch->i[6], step = (n + launch->i[4] - 1) / launch->i[4], t, e;
    for (t = begin; t < end; t++) {
        int64_t first = t * step, last = DVTI_MIN(first + step, n), draw = launch->i[2];
        if (!cpu && launch->n_in)
            draw = dvti_load_i64(launch->in[0].data, DVT_I64, t);
        for (e = first; e < last; e++, draw += wide ? 2 : 1) {
            double u =
                cpu ? dvti_random_canonical((dvti_mt19937 *)launch->out[1].data + t,
                                            wide || out->dtype == DVT_F16 || out->dtype == DVT_BF16)
                    : dvti_random_curand(launch, t, draw, wide);
            dvti_store_f64(out->data, out->dtype, e, dvti_random_mxnet_between(launch, u));
        }
    }
}

DVTI_FN void dvti_ref_random(const dvti_launch *launch) {
    int64_t n = launch->i[6];
    void *user = (void *)launch;
    if (launch->op == DVTI_OP_permutation) {
        if (launch->i[0] == DVTI_RNG_THREEFRY)
            dvti_random_jax_shuffle(launch);
        else
            dvti_random_shuffle(launch);
    } else if (launch->i[0] == DVTI_RNG_PHILOX) {
        int per = dvti_random_per_counter(launch);
        dvti_parallel_for((n + per - 1) / per, 1024, dvti_random_philox, user);
    } else if (launch->i[0] == DVTI_RNG_THREEFRY) {
        dvti_parallel_for(n, 2048, dvti_random_jax, user);
    } else {
        dvti_parallel_for(launch->i[4], 16, dvti_random_mxnet, user);
    }
}
/* ==== end src/3_cpu/ref/ref_random.c ==== */
#ifdef DEVTENSOR_LINES
#line 38 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_reduce.c ==== */
/* Reductions. The order in which elements meet depends on the shape alone, so the bits do not depend on the number of threads:
   the reduced positions of one result are cut into chunks; within a chunk blocks of elements go into a few lanes; lanes, blocks and chunks
   are then combined as a balanced tree. Where kept positions lie closer in memory than reduced ones, the lanes are neighbouring
   results instead, so that memory is read in its own order (sums of columns). */
#ifdef DEVTENSOR_LINES
#line 5 "src/3_cpu/ref/ref_reduce.c"
#endif

#define DVTI_LANES 64         /* neighbouring results at a time */
#define DVTI_ROW_LANES 8      /* lanes of one result */
#define DVTI_CHUNK 32768      /* reduced positions per chunk of one result */
#define DVTI_COLUMN_CHUNK 512 /* the same for neighbouring results */

/* What has been seen so far: f value or largest, g sum of exponentials over it, i value of integers, at its position. */
typedef struct dvti_partial {
    double f, g;
    int64_t i, at;
} dvti_partial;

typedef struct dvti_lanes {
    double f[DVTI_LANES], g[DVTI_LANES];
    int64_t i[DVTI_LANES], at[DVTI_LANES];
} dvti_lanes;

typedef struct dvti_reduce_plan {
    const dvti_launch *launch;
    dvti_op op;
    bool integer;
    dvti_view kept, reduced; /* of in[0] */
    int64_t n_kept, n_reduced, n_chunks, chunk;
    int64_t tile, n_tiles; /* results per work item */
} dvti_reduce_plan;

/* ---- the start, the end, and what combines two ---- */
static dvti_partial dvti_partial_none(dvti_op op) {
    dvti_partial p;
    p.f = op == DVTI_OP_prod                                                     ? 1
          : op == DVTI_OP_min || op == DVTI_OP_argmin                            ? (double)INFINITY
          : op == DVTI_OP_max || op == DVTI_OP_argmax || op == DVTI_OP_logsumexp ? -(double)INFINITY
                                                                                 : 0;
    p.i = op == DVTI_OP_prod || op == DVTI_OP_all     ? 1
          : op == DVTI_OP_min || op == DVTI_OP_argmin ? INT64_MAX
          : op == DVTI_OP_max || op == DVTI_OP_argmax ? INT64_MIN
                                                      : 0;
    p.g = 0;
    p.at = INT64_MAX;
    return p;
}

static int64_t dvti_wrapping_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t dvti_wrapping_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Is x at position `at` to be preferred? NaN before everything, then the extreme, then the first. */
static bool dvti_prefer(double x, int64_t at, double best, int64_t best_at, bool smallest) {
    if (x != x || best != best)
        return x != x && (best == best || at < best_at);
    return x == best ? at < best_at : smallest ? x < best : x > best;
}

static bool dvti_prefer_int(int64_t x, int64_t at, int64_t best, int64_t best_at, bool smallest) {
    return x == best ? at < best_at : smallest ? x < best : x > best;
}

/* The larger one, NaN when either is. */
static double dvti_larger(double a, double b) {
    return a != a || a > b ? a : b;
}

static double dvti_smaller(double a, double b) {
    return a != a || a < b ? a : b;
}

/* How sums of exponentials over one maximum become sums over another. */
static double dvti_rescale(double sum, double from, double to) {
    return from == to ? sum : sum * exp(from - to);
}

static void dvti_partial_combine(const dvti_reduce_plan *plan, dvti_partial *a,
                                 const dvti_partial *b) {
    double largest;
    switch (plan->op) {
    case DVTI_OP_prod:
        a->f *= b->f;
        a->i = dvti_wrapping_mul(a->i, b->i);
        break;
    case DVTI_OP_min:
        a->f = dvti_smaller(a->f, b->f);
        a->i = DVTI_MIN(a->i, b->i);
        break;
    case DVTI_OP_max:
        a->f = dvti_larger(a->f, b->f);
        a->i = DVTI_MAX(a->i, b->i);
        break;
    case DVTI_OP_any:
        a->i |= b->i;
        break;
    case DVTI_OP_all:
        a->i &= b->i;
        break;
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        if (plan->integer ? dvti_prefer_int(b->i, b->at, a->i, a->at, plan->op == DVTI_OP_argmin)
                          : dvti_prefer(b->f, b->at, a->f, a->at, plan->op == DVTI_OP_argmin))
            *a = *b;
        break;
    case DVTI_OP_logsumexp:
        largest = dvti_larger(a->f, b->f);
        a->g = dvti_rescale(a->g, a->f, largest) + dvti_rescale(b->g, b->f, largest);
        a->f = largest;
        break;
    default: /* sum, mean, norm */
        a->f += b->f;
        a->i = dvti_wrapping_add(a->i, b->i);
        break;
    }
}

/* n > 0; the result is in p[0]. */
static void dvti_partial_tree(const dvti_reduce_plan *plan, dvti_partial *p, int64_t n) {
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            dvti_partial_combine(plan, &p[i], &p[i + step]);
}

static void dvti_partial_finish(const dvti_reduce_plan *plan, const dvti_partial *p,
                                int64_t result) {
    const dvti_view *out = &plan->launch->out[0];
    int64_t at = 0, rest = result;
    double f = p->f;
    int i;
    for (i = out->ndim - 1; i >= 0; i--) {
        at += rest % out->dim[i] * out->stride[i];
        rest /= out->dim[i];
    }
    switch (plan->op) {
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        dvti_store_i64(out->data, out->dtype, at, p->at);
        return;
    case DVTI_OP_any:
    case DVTI_OP_all:
        dvti_store_i64(out->data, out->dtype, at, p->i);
        return;
    case DVTI_OP_mean:
        f /= plan->launch->f[0];
        break;
    case DVTI_OP_norm:
        f = sqrt(f);
        break;
    case DVTI_OP_logsumexp:
        f = f - f == 0 ? f + log(p->g) : f;
        break;
    default:
        break;
    }
    if (plan->integer)
        dvti_store_i64(out->data, out->dtype, at, p->i);
    else
        dvti_store_f64(out->data, out->dtype, at, f);
}

/* ---- elements into lanes: rows of `lanes` elements, x[r * lanes + j] into lane j. The position of that element is
   first + r * row_step + j * lane_step. ---- */
typedef struct dvti_rows {
    int64_t rows, lanes, first, row_step, lane_step;
} dvti_rows;

#define DVTI_EACH(statement)                                                                       \
    for (r = 0; r < rows->rows; r++, x += lanes)                                                   \
        for (j = 0; j < lanes; j++) {                                                              \
            statement;                                                                             \
        }                                                                                          \
    break

static void dvti_lanes_logsumexp(dvti_lanes *to, const double *x, const dvti_rows *rows) {
    double largest[DVTI_LANES], base;
    int64_t r, j;
    for (j = 0; j < rows->lanes; j++)
        largest[j] = to->f[j];
    for (r = 0; r < rows->rows; r++)
        for (j = 0; j < rows->lanes; j++)
            largest[j] = dvti_larger(largest[j], x[r * rows->lanes + j]);
    for (j = 0; j < rows->lanes; j++) {
        /* Minus infinity minus itself would be NaN; over 0 its exponential is 0, as it should be. */
        base = largest[j] - largest[j] == 0 ? largest[j] : 0;
        to->g[j] = dvti_rescale(to->g[j], to->f[j], largest[j]);
        to->f[j] = largest[j];
        for (r = 0; r < rows->rows; r++)
            to->g[j] += exp(x[r * rows->lanes + j] - base);
    }
}

static void dvti_lanes_f64(dvti_op op, dvti_lanes *to, const double *x, const dvti_rows *rows) {
    const int64_t lanes = rows->lanes;
    int64_t r, j, at;
    switch (op) {
    case DVTI_OP_prod:
        DVTI_EACH(to->f[j] *= x[j]);
    case DVTI_OP_norm:
        DVTI_EACH(to->f[j] += x[j] * x[j]);
    case DVTI_OP_min:
        DVTI_EACH(to->f[j] = dvti_smaller(to->f[j], x[j]));
    case DVTI_OP_max:
        DVTI_EACH(to->f[j] = dvti_larger(to->f[j], x[j]));
    case DVTI_OP_any:
        DVTI_EACH(to->i[j] |= x[j] != 0);
    case DVTI_OP_all:
        DVTI_EACH(to->i[j] &= x[j] != 0);
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        DVTI_EACH(at = rows->first + r * rows->row_step + j * rows->lane_step;
                  if (dvti_prefer(x[j], at, to->f[j], to->at[j], op == DVTI_OP_argmin)) {
                      to->f[j] = x[j];
                      to->at[j] = at;
                  });
    case DVTI_OP_logsumexp:
        dvti_lanes_logsumexp(to, x, rows);
        break;
    default:
        DVTI_EACH(to->f[j] += x[j]);
    }
}

static void dvti_lanes_i64(dvti_op op, dvti_lanes *to, const int64_t *x, const dvti_rows *rows) {
    const int64_t lanes = rows->lanes;
    int64_t r, j, at;
    switch (op) {
    case DVTI_OP_prod:
        DVTI_EACH(to->i[j] = dvti_wrapping_mul(to->i[j], x[j]));
    case DVTI_OP_min:
        DVTI_EACH(to->i[j] = DVTI_MIN(to->i[j], x[j]));
    case DVTI_OP_max:
        DVTI_EACH(to->i[j] = DVTI_MAX(to->i[j], x[j]));
    case DVTI_OP_any:
        DVTI_EACH(to->i[j] |= x[j] != 0);
    case DVTI_OP_all:
        DVTI_EACH(to->i[j] &= x[j] != 0);
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        DVTI_EACH(at = rows->first + r * rows->row_step + j * rows->lane_step;
                  if (dvti_prefer_int(x[j], at, to->i[j], to->at[j], op == DVTI_OP_argmin)) {
                      to->i[j] = x[j];
                      to->at[j] = at;
                  });
    default:
        DVTI_EACH(to->i[j] = dvti_wrapping_add(to->i[j], x[j]));
    }
}

#undef DVTI_EACH

static void dvti_lanes_begin(dvti_lanes *lanes, dvti_op op, int64_t n) {
    dvti_partial none = dvti_partial_none(op);
    int64_t j;
    for (j = 0; j < n; j++) {
        lanes->f[j] = none.f;
        lanes->g[j] = none.g;
        lanes->i[j] = none.i;
        lanes->at[j] = none.at;
    }
}

static dvti_partial dvti_lane(const dvti_lanes *lanes, int64_t j) {
    dvti_partial p;
    p.f = lanes->f[j];
    p.g = lanes->g[j];
    p.i = lanes->i[j];
    p.at = lanes->at[j];
    return p;
}

static void dvti_lanes_add(const dvti_reduce_plan *plan, dvti_lanes *lanes, const void *x,
                           const dvti_rows *rows) {
    if (plan->integer)
        dvti_lanes_i64(plan->op, lanes, (const int64_t *)x, rows);
    else
        dvti_lanes_f64(plan->op, lanes, (const double *)x, rows);
}

/* ---- chunks ---- */
/* One block of up to DVTI_BLOCK elements of one result. */
static dvti_partial dvti_reduce_block(const dvti_reduce_plan *plan, const double *x, int64_t first,
                                      int64_t n) {
    dvti_partial lane[DVTI_ROW_LANES];
    dvti_lanes lanes;
    dvti_rows rows;
    int64_t j, used = DVTI_MIN(n, DVTI_ROW_LANES);
    dvti_lanes_begin(&lanes, plan->op, used);
    rows.lanes = used;
    rows.rows = used ? n / used : 0;
    rows.first = first;
    rows.row_step = used;
    rows.lane_step = 1;
    dvti_lanes_add(plan, &lanes, x, &rows);
    if (used && n % used) {
        rows.first = first + rows.rows * used;
        x += rows.rows * used; /* both classes have 8 bytes */
        rows.lanes = n % used;
        rows.rows = 1;
        dvti_lanes_add(plan, &lanes, x, &rows);
    }
    for (j = 0; j < used; j++)
        lane[j] = dvti_lane(&lanes, j);
    if (!used)
        return dvti_partial_none(plan->op);
    dvti_partial_tree(plan, lane, used);
    return lane[0];
}

/* Reduced positions begin..end of one result. */
static dvti_partial dvti_reduce_row(const dvti_reduce_plan *plan, int64_t result, int64_t begin,
                                    int64_t end) {
    dvti_partial block[DVTI_CHUNK / DVTI_BLOCK];
    double buffer[DVTI_BLOCK];
    dvti_view row = plan->reduced;
    dvti_class compute = plan->integer ? DVTI_I64 : DVTI_F64;
    int64_t at, n, n_blocks = 0;
    if (begin == end)
        return dvti_partial_none(plan->op);
    row.data = (char *)row.data +
               dvti_cursor_at(&plan->kept, result).at * dvt_dtype_size(plan->kept.dtype);
    for (at = begin; at < end; at += n) {
        void *x = dvti_block_direct(&row, compute, at);
        n = DVTI_MIN(end - at, DVTI_BLOCK);
        if (!x)
            dvti_load_block(&row, at, n, compute, x = buffer);
        block[n_blocks++] = dvti_reduce_block(plan, (const double *)x, at, n);
    }
    dvti_partial_tree(plan, block, n_blocks);
    return block[0];
}

/* The same for n neighbouring results. */
static void dvti_reduce_columns(const dvti_reduce_plan *plan, int64_t result, int64_t n,
                                int64_t begin, int64_t end, dvti_lanes *lanes) {
    dvti_cursor cursor = dvti_cursor_at(&plan->reduced, begin);
    dvti_view row = plan->kept;
    int64_t at, size = dvt_dtype_size(row.dtype);
    double buffer[DVTI_LANES];
    dvti_rows rows;
    rows.rows = 1;
    rows.lanes = n;
    rows.row_step = rows.lane_step = 0;
    dvti_lanes_begin(lanes, plan->op, n);
    for (at = begin; at < end; at++) {
        row.data = (char *)plan->kept.data + cursor.at * size;
        dvti_load_block(&row, result, n, plan->integer ? DVTI_I64 : DVTI_F64, buffer);
        rows.first = at;
        dvti_lanes_add(plan, lanes, buffer, &rows);
        if (at + 1 < end)
            dvti_cursor_advance(&cursor, &plan->reduced, 1);
    }
}

/* ---- the launch ---- */
static void dvti_reduce_items(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_partial *partial = (dvti_partial *)plan->launch->workspace, one;
    dvti_lanes lanes;
    int64_t item, j;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, result = item / plan->n_chunks * plan->tile;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        int64_t n = DVTI_MIN(plan->tile, plan->n_kept - result);
        if (plan->tile > 1)
            dvti_reduce_columns(plan, result, n, from, to, &lanes);
        for (j = 0; j < n; j++) {
            one = plan->tile > 1 ? dvti_lane(&lanes, j) : dvti_reduce_row(plan, result, from, to);
            if (plan->n_chunks == 1)
                dvti_partial_finish(plan, &one, result + j);
            else
                partial[(result + j) * plan->n_chunks + chunk] = one;
        }
    }
}

static void dvti_reduce_finish(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_partial *partial = (dvti_partial *)plan->launch->workspace;
    int64_t result;
    for (result = begin; result < end; result++) {
        dvti_partial *mine = partial + result * plan->n_chunks;
        dvti_partial_tree(plan, mine, plan->n_chunks);
        dvti_partial_finish(plan, mine, result);
    }
}

static dvti_reduce_plan dvti_reduce_plan_of(const dvti_launch *launch) {
    dvti_reduce_plan plan;
    int kept = (int)launch->i[0], i;
    dvti_view *reduced = &plan.reduced;
    plan.launch = launch;
    plan.op = launch->op;
    plan.integer = !dvt_dtype_is_float(launch->in[0].dtype) && plan.op != DVTI_OP_mean &&
                   plan.op != DVTI_OP_norm && plan.op != DVTI_OP_logsumexp;
    plan.kept = plan.reduced = launch->in[0];
    plan.kept.ndim = kept;
    reduced->ndim = launch->in[0].ndim - kept;
    for (i = 0; i < reduced->ndim; i++) {
        reduced->dim[i] = launch->in[0].dim[kept + i];
        reduced->stride[i] = launch->in[0].stride[kept + i];
    }
    plan.n_kept = dvti_view_size(&plan.kept);
    plan.n_reduced = dvti_view_size(reduced);
    dvti_merge_axes(&plan.kept);
    dvti_merge_axes(reduced);
    plan.tile = 1;
    plan.chunk = DVTI_CHUNK;
    if (plan.n_kept >= 16 && plan.n_reduced > 1 && plan.kept.dim[plan.kept.ndim - 1] >= 16 &&
        plan.kept.stride[plan.kept.ndim - 1] < reduced->stride[reduced->ndim - 1]) {
        plan.tile = DVTI_LANES;
        plan.chunk = DVTI_COLUMN_CHUNK;
    }
    plan.n_tiles = (plan.n_kept + plan.tile - 1) / plan.tile;
    plan.n_chunks = DVTI_MAX((plan.n_reduced + plan.chunk - 1) / plan.chunk, 1);
    return plan;
}

DVTI_FN int64_t dvti_ref_reduce_workspace(const dvti_launch *launch) {
    dvti_reduce_plan plan = dvti_reduce_plan_of(launch);
    return plan.n_chunks > 1 ? plan.n_kept * plan.n_chunks * (int64_t)sizeof(dvti_partial) : 0;
}

DVTI_FN void dvti_ref_reduce(const dvti_launch *launch) {
    dvti_reduce_plan plan = dvti_reduce_plan_of(launch);
    int64_t item = plan.tile * DVTI_MIN(plan.chunk, plan.n_reduced) + 32;
    dvti_parallel_for(plan.n_tiles * plan.n_chunks, 16384 / item + 1, dvti_reduce_items, &plan);
    if (plan.n_chunks > 1)
        dvti_parallel_for(plan.n_kept, 4096 / plan.n_chunks + 1, dvti_reduce_finish, &plan);
}

#undef DVTI_LANES
#undef DVTI_ROW_LANES
#undef DVTI_CHUNK
#undef DVTI_COLUMN_CHUNK
/* ==== end src/3_cpu/ref/ref_reduce.c ==== */
#ifdef DEVTENSOR_LINES
#line 39 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cpu/ref/ref_softmax.c ==== */
/* softmax and log_softmax along the last axis, in float64 and rounded once. Three passes over a row: its maximum, the sum of the
   exponentials below it, the values. */
#ifdef DEVTENSOR_LINES
#line 3 "src/3_cpu/ref/ref_softmax.c"
#endif

typedef struct dvti_softmax_plan {
    bool logarithm;
    dvti_view rows_in, rows_out; /* all axes but the last */
    dvti_view row_in, row_out;   /* the last axis */
    int64_t n;
} dvti_softmax_plan;

/* Splits a view into its rows and one row. */
static void dvti_softmax_split(const dvti_view *view, dvti_view *rows, dvti_view *row) {
    *rows = *row = *view;
    rows->ndim = view->ndim - 1;
    row->ndim = 1;
    row->dim[0] = view->dim[view->ndim - 1];
    row->stride[0] = view->stride[view->ndim - 1];
    dvti_merge_axes(rows);
    dvti_merge_axes(row);
}

static dvti_view dvti_softmax_row(const dvti_view *rows, const dvti_view *row, int64_t which) {
    dvti_view view = *row;
    view.data = (char *)view.data + dvti_cursor_at(rows, which).at * dvt_dtype_size(rows->dtype);
    return view;
}

/* The maximum without `largest`, else the sum of exp(x - largest). */
static double dvti_softmax_scan(const dvti_view *row, int64_t n, const double *largest) {
    double x[DVTI_BLOCK], result = largest ? 0 : -(double)INFINITY;
    int64_t at, k, m;
    for (at = 0; at < n; at += m) {
        m = DVTI_MIN(n - at, DVTI_BLOCK);
        dvti_load_block(row, at, m, DVTI_F64, x);
        for (k = 0; k < m; k++)
            if (largest)
                result += exp(x[k] - *largest);
            else if (x[k] > result || x[k] != x[k])
                result = x[k];
    }
    return result;
}

static void dvti_softmax_rows(void *user, int64_t begin, int64_t end) {
    const dvti_softmax_plan *plan = (const dvti_softmax_plan *)user;
    double x[DVTI_BLOCK], largest, sum, shift;
    int64_t row, at, k, m;
    for (row = begin; row < end; row++) {
        dvti_view in = dvti_softmax_row(&plan->rows_in, &plan->row_in, row);
        dvti_view out = dvti_softmax_row(&plan->rows_out, &plan->row_out, row);
        largest = dvti_softmax_scan(&in, plan->n, NULL);
        sum = dvti_softmax_scan(&in, plan->n, &largest);
        shift = largest + log(sum);
        for (at = 0; at < plan->n; at += m) {
            m = DVTI_MIN(plan->n - at, DVTI_BLOCK);
            dvti_load_block(&in, at, m, DVTI_F64, x);
            for (k = 0; k < m; k++)
                x[k] = plan->logarithm ? x[k] - shift : exp(x[k] - largest) / sum;
            dvti_store_block(&out, at, m, DVTI_F64, x);
        }
    }
}

DVTI_FN void dvti_ref_softmax(const dvti_launch *launch) {
    dvti_softmax_plan plan;
    plan.logarithm = launch->op == DVTI_OP_log_softmax;
    dvti_softmax_split(&launch->in[0], &plan.rows_in, &plan.row_in);
    dvti_softmax_split(&launch->out[0], &plan.rows_out, &plan.row_out);
    plan.n = launch->in[0].dim[launch->in[0].ndim - 1];
    dvti_parallel_for(dvti_view_size(&plan.rows_in), 2048 / (plan.n + 1) + 1, dvti_softmax_rows,
                      &plan);
}
/* ==== end src/3_cpu/ref/ref_softmax.c ==== */
#ifdef DEVTENSOR_LINES
#line 40 "src/devtensor_spine.h"
#endif
/* ==== begin src/3_cuda/dvt_cuda_probe.c ==== */
/* What can be known about CUDA without using it: is there a driver, and which. Opens no context on any card. */
#ifdef DEVTENSOR_LINES
#line 2 "src/3_cuda/dvt_cuda_probe.c"
#endif

#if defined(DEVTENSOR_NO_CUDA)

DVTI_FN const char *dvti_cuda_reason(void) {
    return "this build leaves CUDA out (DEVTENSOR_NO_CUDA)";
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return 0;
}

#else

typedef struct dvti_cuda_probe {
    bool done;
    int version;
    char reason[200];
} dvti_cuda_probe;

static dvti_mutex dvti_cuda_lock = DVTI_MUTEX_INIT;

static const dvti_cuda_probe *dvti_cuda_probed(void) {
    static dvti_cuda_probe probe;
#if defined(_WIN32)
    static const char *const names[] = {"nvcuda.dll"};
#else
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
#endif
    dvti_mutex_lock(&dvti_cuda_lock);
    if (!probe.done) {
        void *library = NULL, *symbol;
        int (*version)(int *) = NULL;
        int i;
        for (i = 0; i < DVTI_LENGTH(names) && !library; i++)
            library = dvti_library_open(names[i]);
        symbol = library ? dvti_library_symbol(library, "cuDriverGetVersion") : NULL;
        if (symbol)
            memcpy(&version, &symbol, sizeof version);
        if (!library)
            snprintf(probe.reason, sizeof probe.reason, "no NVIDIA driver was found (%s)",
                     names[0]);
        else if (!version || version(&probe.version) != 0)
            snprintf(probe.reason, sizeof probe.reason,
                     "%s was found but does not work; reinstall the NVIDIA driver", names[0]);
        else
            snprintf(probe.reason, sizeof probe.reason,
                     "an NVIDIA driver for CUDA %d.%d was found, but devtensor %s computes on "
                     "cpu() and virtual GPUs only",
                     probe.version / 1000, probe.version % 1000 / 10, DVT_VERSION_STRING);
        probe.done = true;
    }
    dvti_mutex_unlock(&dvti_cuda_lock);
    return &probe;
}

DVTI_FN const char *dvti_cuda_reason(void) {
    return dvti_cuda_probed()->reason;
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return dvti_cuda_probed()->version;
}

#endif
/* ==== end src/3_cuda/dvt_cuda_probe.c ==== */
#ifdef DEVTENSOR_LINES
#line 41 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/dvt_op_check.c ==== */
/* Checks that every operation shares, and their messages. */
#ifdef DEVTENSOR_LINES
#line 1 "src/4_ops/dvt_op_check.c"
#endif
/* ==== begin src/4_ops/dvt_op.h ==== */
/* The way of a call. One path for every operation, one helper for each step:

       public function
         -> dvti_check       NULL inputs, mixed contexts
         -> shapes, dtypes   dvti_broadcast, dvt_promote, dvti_axis ... in the family's file
         -> dvti_array_new   the result
         -> dvti_run         the launch, in 2_core
         -> dvti_finish      the tape entry when recording

   A family's file (op_*.c) holds its public functions and nothing else's. */
#ifdef DEVTENSOR_LINES
#line 10 "src/4_ops/dvt_op.h"
#endif
#ifndef DVTI_OPS_H
#define DVTI_OPS_H
#ifdef DEVTENSOR_LINES
#line 13 "src/4_ops/dvt_op.h"
#endif

/* What a gradient needs to know of a call besides its inputs; each family says which slots it uses. */
typedef struct dvti_attr {
    double f[4];
    int64_t i[12];
} dvti_attr;

/* A remembered operation. Owns references to its inputs; the result owns a reference to the node. */
typedef struct dvti_node {
    dvti_atomic references;
    dvti_op op;
    const char *name; /* "dvt_mul" */
    int64_t sequence; /* later operations have larger numbers */
    dvti_attr attr;
    dvt_array *
        result; /* the result's memory without its history, so that the node does not own itself; NULL when no
                               gradient reads it */
    int64_t result_version; /* of the result's storage when it was recorded */
    bool used;              /* a backward without retain_graph has been here: the inputs are gone */
    int n_in;
    dvt_array **in;
    int64_t *version;       /* of each input's storage when it was recorded */
    struct dvti_node *next; /* while dying */
} dvti_node;

/* Which values the gradient to input number `input` reads: bit k for input k, and DVTI_READS_RESULT. The tape keeps results
   that are read, and backward refuses values that were overwritten since. */
#define DVTI_READS_RESULT (1u << 30)
DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input);
/* Drops what a node holds: its inputs and its result's memory. */
DVTI_FN void dvti_node_use_up(dvti_node *node);

DVTI_FN dvti_attr dvti_attr_none(void);

/* All inputs are there and live on one context. Otherwise false, with the error set. */
DVTI_FN bool dvti_check(const char *function, dvt_array *const *in, int n);
/* x may be written now: not a broadcast view, and not recorded while recording. */
DVTI_FN bool dvti_writable(const char *function, dvt_array *x);
/* Tells the tape that x's memory has changed. */
DVTI_FN void dvti_written(dvt_array *x);

/* Remembers the operation when this thread records and an input has history; the result is a float. Returns out, or NULL
   with the error set when there is no memory for the node. A NULL `out` is passed on. */
DVTI_FN dvt_array *dvti_finish(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                               int n, const dvti_attr *attr);
/* x's memory without history, not owned by a scope: release it with dvt_release. NULL with HOST_MEMORY. */
DVTI_FN dvt_array *dvti_alias_unowned(dvt_array *x);

/* ---- shared by families and gradients ---- */
/* in[k] for k = n_in of an elementwise call; scalar_at: 0 none, 1 the scalar stands before the array, 2 behind it.
   into: NULL, or the array that receives the result. */
DVTI_FN dvt_array *dvti_elementwise(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    int scalar_at, double scalar, dvt_array *into);
/* `in` is another window on the memory that `into` writes: it must be copied before. */
DVTI_FN bool dvti_overlaps(const dvt_array *in, const dvt_array *into);
/* g put into zeros of extent `extent` along an axis, at start, start + step, ...: the gradient of dvt_slice. Recorded. */
DVTI_FN dvt_array *dvti_unslice(dvt_array *g, int axis, int64_t start, int64_t step,
                                int64_t extent);
/* The gradients of dvt_take and dvt_take_along_axis: g added at the indices into zeros of extent n along the axis. index is int64, as
   the recorded operation holds it. Recorded: their own gradients are dvt_take and dvt_take_along_axis. */
DVTI_FN dvt_array *dvti_take_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
DVTI_FN dvt_array *dvti_take_along_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
/* Convolution and pooling with resolved parameters, recorded: each other's gradients. attr.i of convolution: stride, padding
   and dilation (height, width each), groups. Of pooling: window, stride and padding (height, width each), 1 to
   divide by the elements inside, extents of the result. */
DVTI_FN dvt_array *dvti_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_conv2d_data(dvt_array *g, dvt_array *w, dvt_shape x_shape,
                                    const dvti_attr *attr);
DVTI_FN dvt_array *dvti_conv2d_weight(dvt_array *x, dvt_array *g, dvt_shape w_shape,
                                      const dvti_attr *attr);
DVTI_FN dvt_array *dvti_max_pool2d_data(dvt_array *g, dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_max_pool2d_pick(dvt_array *v, dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d(dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d_data(dvt_array *g, dvt_shape x_shape, const dvti_attr *attr);
/* The dtype of a FLOAT operation's result: integers and bool become float32. */
DVTI_FN dvt_dtype dvti_float_dtype(dvt_dtype dtype);
/* The axes of a reduction as a bit mask; false with AXIS set (out of range, repeated). */
DVTI_FN bool dvti_axes_mask(const char *function, dvt_axes axes, int ndim, unsigned *mask);

#endif
/* ==== end src/4_ops/dvt_op.h ==== */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/dvt_op_check.c"
#endif

static const char *dvti_input_name(int i, int n) {
    static const char *const names[] = {"a", "b", "c", "d"};
    char *buffer;
    if (n == 1)
        return "x";
    if (n <= 4)
        return names[i];
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "array %d", i);
    return buffer;
}

DVTI_FN bool dvti_check(const char *function, dvt_array *const *in, int n) {
    int i;
    for (i = 0; i < n; i++)
        if (!in[i]) {
            dvti_null(function, dvti_input_name(i, n));
            return false;
        }
    for (i = 1; i < n; i++)
        if (!dvt_ctx_equal(in[0]->storage->ctx, in[i]->storage->ctx)) {
            dvt_ctx home = in[0]->storage->ctx;
            dvti_fail(DVT_ERR_CONTEXT,
                      "%s: all arguments must live on one context, but %s is %s and %s is %s; copy "
                      "one first, for example with "
                      "dvt_as_in_ctx(%s, dvt_%s(%d))",
                      function, dvti_input_name(0, n), dvti_describe(in[0]), dvti_input_name(i, n),
                      dvti_describe(in[i]), dvti_input_name(i, n),
                      home.type == DVT_DEVICE_GPU ? "gpu"
                      : home.id                   ? "cpu_id"
                                                  : "cpu",
                      home.id);
            return false;
        }
    return true;
}

DVTI_FN bool dvti_writable(const char *function, dvt_array *x) {
    if (x->broadcast) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: x (%s) is a broadcast view, whose positions share elements; write into "
                  "dvt_copy(x)",
                  function, dvti_describe(x));
        return false;
    }
    if (dvt_is_recording() && dvt_has_history(x)) {
        dvti_fail(DVT_ERR_GRAD,
                  "%s: x (%s) belongs to a recorded computation, and writing into it would falsify "
                  "its gradients; compute a new "
                  "array, or write inside DVT_PAUSE",
                  function, dvti_describe(x));
        return false;
    }
    return true;
}

DVTI_FN void dvti_written(dvt_array *x) {
    dvti_atomic_add(&x->storage->version, 1);
}

DVTI_FN dvt_dtype dvti_float_dtype(dvt_dtype dtype) {
    return dvt_dtype_is_float(dtype) ? dtype : DVT_F32;
}

DVTI_FN bool dvti_axes_mask(const char *function, dvt_axes axes, int ndim, unsigned *mask) {
    int i;
    *mask = 0;
    if (axes.n < 0 || axes.n > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_AXIS, "%s: %d axes; expected 0 (all) to %d", function, axes.n,
                  DVT_MAX_DIMS);
        return false;
    }
    if (axes.n == 0)
        *mask = (1u << ndim) - 1u;
    for (i = 0; i < axes.n; i++) {
        int axis = axes.axis[i];
        if (!dvti_axis(function, &axis, ndim))
            return false;
        if (*mask & 1u << axis) {
            dvti_fail(DVT_ERR_AXIS, "%s: axis %d is named twice; name each axis once", function,
                      axes.axis[i]);
            return false;
        }
        *mask |= 1u << axis;
    }
    return true;
}
/* ==== end src/4_ops/dvt_op_check.c ==== */
#ifdef DEVTENSOR_LINES
#line 42 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/dvt_reads.c ==== */
/* Which values a gradient reads, per operation: the one list behind two decisions. The tape keeps the memory of results that
   are read, and backward refuses values that were overwritten since they were recorded. It must name at least what the
   gradient functions of 5_grad use; a test overwrites every value and looks for gradients that change in silence. */
#ifdef DEVTENSOR_LINES
#line 4 "src/4_ops/dvt_reads.c"
#endif

#define DVTI_READS_X 1u
#define DVTI_READS_A 1u
#define DVTI_READS_B 2u

static unsigned dvti_reads_unary(dvti_op op) {
    switch (op) {
    case DVTI_OP_neg:
    case DVTI_OP_sign:
    case DVTI_OP_floor:
    case DVTI_OP_ceil:
    case DVTI_OP_round:
    case DVTI_OP_trunc:
        return 0;
    case DVTI_OP_reciprocal:
    case DVTI_OP_sqrt:
    case DVTI_OP_rsqrt:
    case DVTI_OP_exp:
    case DVTI_OP_exp2:
    case DVTI_OP_expm1:
    case DVTI_OP_tan:
    case DVTI_OP_tanh:
    case DVTI_OP_sigmoid:
        return DVTI_READS_RESULT;
    default:
        return DVTI_READS_X;
    }
}

/* to_b: the gradient to the second operand is asked for. */
static unsigned dvti_reads_binary(dvti_op op, bool to_b) {
    switch (op) {
    case DVTI_OP_add:
    case DVTI_OP_sub:
    case DVTI_OP_floor_div:
        return 0;
    case DVTI_OP_mul:
        return to_b ? DVTI_READS_A : DVTI_READS_B;
    case DVTI_OP_div:
        return to_b ? DVTI_READS_B | DVTI_READS_RESULT : DVTI_READS_B;
    case DVTI_OP_mod:
        return to_b ? DVTI_READS_A | DVTI_READS_B : 0;
    case DVTI_OP_pow:
        return to_b ? DVTI_READS_A | DVTI_READS_RESULT : DVTI_READS_A | DVTI_READS_B;
    case DVTI_OP_hypot:
        return DVTI_READS_RESULT | (to_b ? DVTI_READS_B : DVTI_READS_A);
    default:
        return DVTI_READS_A | DVTI_READS_B;
    }
}

static unsigned dvti_reads_other(dvti_op op, int input) {
    switch (op) {
    case DVTI_OP_where: /* the condition */
        return DVTI_READS_A;
    case DVTI_OP_clip:
    case DVTI_OP_prod:
    case DVTI_OP_max_pool2d:
        return DVTI_READS_X;
    case DVTI_OP_min:
    case DVTI_OP_max:
    case DVTI_OP_norm:
    case DVTI_OP_logsumexp:
        return DVTI_READS_X | DVTI_READS_RESULT;
    case DVTI_OP_softmax:
    case DVTI_OP_log_softmax:
        return DVTI_READS_RESULT;
    case DVTI_OP_matmul: /* products: the other operand */
    case DVTI_OP_conv2d:
    case DVTI_OP_conv2d_data:
    case DVTI_OP_conv2d_weight:
        return input == 2 ? 0 : input ? DVTI_READS_A : DVTI_READS_B;
    case DVTI_OP_take: /* the indices, or the places of the maxima */
    case DVTI_OP_take_add:
    case DVTI_OP_take_along:
    case DVTI_OP_take_along_add:
    case DVTI_OP_max_pool2d_data:
    case DVTI_OP_max_pool2d_pick:
        return DVTI_READS_B;
    default: /* copies, views, sum, mean, concat, avg_pool2d: shapes are enough */
        return 0;
    }
}

DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input) {
    dvti_op first_binary = DVTI_OP_add, first_other = DVTI_OP_copy;
    unsigned reads;
    if (node->op < first_binary)
        return dvti_reads_unary(node->op);
    if (node->op >= first_other)
        return dvti_reads_other(node->op, input);
    if (node->attr.i[0] == 0)
        return dvti_reads_binary(node->op, input == 1);
    /* One operand is the scalar attr.f[0]: before the array (1) or behind it (2). */
    reads = dvti_reads_binary(node->op, node->attr.i[0] == 1);
    if (node->attr.i[0] == 1)
        return (reads & DVTI_READS_RESULT) | (reads & DVTI_READS_B ? DVTI_READS_X : 0);
    return reads & ~DVTI_READS_B;
}

#undef DVTI_READS_X
#undef DVTI_READS_A
#undef DVTI_READS_B
/* ==== end src/4_ops/dvt_reads.c ==== */
#ifdef DEVTENSOR_LINES
#line 43 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/dvt_stream.c ==== */
/* The streams of contexts, their seeds and engines. A stream's position advances here, at the call; what a launch computes
   depends only on the key and counters that it is given. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/dvt_stream.c"
#endif
/* ==== begin src/4_ops/dvt_stream.h ==== */
/* The streams of random numbers: where each context's stream stands, which engine is set, and how a launch gets its part. */
#ifdef DEVTENSOR_LINES
#line 1 "src/4_ops/dvt_stream.h"
#endif
#ifndef DVTI_STREAM_H
#define DVTI_STREAM_H
#ifdef DEVTENSOR_LINES
#line 5 "src/4_ops/dvt_stream.h"
#endif

DVTI_FN dvt_rng_engine dvti_rng_engine_now(void);
/* Fills out, whose shape is not empty, by `launch`: from `key`, or when that is NULL from the stream of out's context. `words`:
   32-bit words that Philox needs for one element. */
DVTI_FN dvt_status dvti_draw(dvt_array *out, dvti_launch *launch, const dvt_key *key, int words);

#endif
/* ==== end src/4_ops/dvt_stream.h ==== */
#ifdef DEVTENSOR_LINES
#line 3 "src/4_ops/dvt_stream.c"
#endif

#define DVTI_MXNET_GENERATORS 4

/* Philox: key = the seed, counter = (counter low, counter high, id, type). The other members serve DVT_RNG_MXNET on GPUs. */
typedef struct dvti_stream {
    dvt_ctx ctx;
    uint64_t seed;
    bool own; /* seeded for this context alone */
    uint64_t counter;
    uint64_t uses;
    int64_t
        *position[DVTI_MXNET_GENERATORS]; /* words drawn from each subsequence of each generator */
    size_t positions[DVTI_MXNET_GENERATORS], capacity[DVTI_MXNET_GENERATORS];
} dvti_stream;

typedef struct dvti_streams {
    dvti_mutex lock;
    dvt_rng_engine engine;
    uint64_t seed;
    dvti_stream *stream;
    size_t n, capacity;
    uint64_t state_seed; /* DVT_RNG_MXNET: the states are shared by all cpu(i), as there */
    dvti_mt19937 *state;
    size_t states, states_capacity;
} dvti_streams;

static dvti_streams dvti_the_streams = {
    DVTI_MUTEX_INIT, DVT_RNG_PHILOX, 0, NULL, 0, 0, 0, NULL, 0, 0};

/* ---- with the lock held ---- */
static void dvti_stream_restart(dvti_stream *stream) {
    stream->counter = stream->uses = 0;
    memset(stream->positions, 0, sizeof stream->positions);
}

static dvti_stream *dvti_stream_of(const char *function, dvt_ctx ctx) {
    dvti_streams *all = &dvti_the_streams;
    dvti_stream *stream;
    size_t i;
    for (i = 0; i < all->n; i++)
        if (all->stream[i].ctx.type == ctx.type && all->stream[i].ctx.id == ctx.id)
            return &all->stream[i];
    if (!dvti_grow((void **)&all->stream, &all->capacity, all->n + 1, sizeof *all->stream)) {
        dvti_fail_memory(function, (int64_t)((all->n + 1) * sizeof *all->stream));
        return NULL;
    }
    stream = &all->stream[all->n++];
    memset(stream, 0, sizeof *stream);
    stream->ctx = ctx;
    stream->seed = all->seed;
    return stream;
}

DVT_API void dvt_seed(uint64_t seed) {
    dvti_streams *all = &dvti_the_streams;
    size_t i;
    dvti_mutex_lock(&all->lock);
    all->seed = all->state_seed = seed;
    all->states = 0;
    for (i = 0; i < all->n; i++) {
        all->stream[i].seed = seed;
        all->stream[i].own = false;
        dvti_stream_restart(&all->stream[i]);
    }
    dvti_mutex_unlock(&all->lock);
}

DVT_API void dvt_seed_ctx(uint64_t seed, dvt_ctx ctx) {
    dvti_streams *all = &dvti_the_streams;
    dvti_stream *stream;
    ctx = dvti_ctx(ctx);
    dvti_mutex_lock(&all->lock);
    stream = dvti_stream_of("dvt_seed_ctx", ctx);
    if (stream) {
        stream->seed = seed;
        stream->own = true;
        dvti_stream_restart(stream);
    }
    if (ctx.type == DVT_DEVICE_CPU) {
        all->state_seed = seed;
        all->states = 0;
    }
    dvti_mutex_unlock(&all->lock);
}

DVT_API dvt_rng_engine dvt_set_rng_engine(dvt_rng_engine engine) {
    dvti_streams *all = &dvti_the_streams;
    dvt_rng_engine previous;
    size_t i;
    dvti_mutex_lock(&all->lock);
    previous = all->engine;
    if ((int)engine >= DVT_RNG_PHILOX && (int)engine <= DVT_RNG_JAX) {
        all->engine = engine;
        all->states = 0;
        for (i = 0; i < all->n; i++)
            dvti_stream_restart(&all->stream[i]);
    } else {
        dvti_fail(DVT_ERR_VALUE,
                  "dvt_set_rng_engine: %d is no engine; use DVT_RNG_PHILOX, DVT_RNG_MXNET or "
                  "DVT_RNG_JAX",
                  (int)engine);
    }
    dvti_mutex_unlock(&all->lock);
    return previous;
}

DVTI_FN dvt_rng_engine dvti_rng_engine_now(void) {
    dvt_rng_engine engine;
    dvti_mutex_lock(&dvti_the_streams.lock);
    engine = dvti_the_streams.engine;
    dvti_mutex_unlock(&dvti_the_streams.lock);
    return engine;
}

/* ---- drawing ---- */
static uint64_t dvti_place(uint32_t word2, uint32_t word3) {
    return (uint64_t)word2 << 32 | word3;
}

/* Takes `counters` from the stream of out's context. What a failing launch took is given back when nobody drew since. */
static dvt_status dvti_draw_stream(dvt_array *out, dvti_launch *launch, uint64_t counters) {
    dvt_ctx ctx = out->storage->ctx;
    dvti_stream *stream;
    dvt_status status;
    uint64_t first;
    dvti_mutex_lock(&dvti_the_streams.lock);
    stream = dvti_stream_of(launch->name, ctx);
    if (!stream) {
        dvti_mutex_unlock(&dvti_the_streams.lock);
        return DVT_ERR_HOST_MEMORY;
    }
    first = stream->counter;
    stream->counter += counters;
    launch->i[1] = (int64_t)stream->seed;
    dvti_mutex_unlock(&dvti_the_streams.lock);
    launch->i[0] = DVTI_RNG_PHILOX;
    launch->i[2] = (int64_t)first;
    launch->i[3] = (int64_t)dvti_place((uint32_t)ctx.id, (uint32_t)ctx.type);
    status = dvti_run(out->storage->device, launch);
    if (status != DVT_OK) {
        dvti_mutex_lock(&dvti_the_streams.lock);
        stream = dvti_stream_of(launch->name, ctx);
        if (stream && stream->counter == first + counters)
            stream->counter = first;
        dvti_mutex_unlock(&dvti_the_streams.lock);
    }
    return status;
}

static dvt_status dvti_draw_key(dvt_array *out, dvti_launch *launch, dvt_key key) {
    launch->i[0] = dvti_rng_engine_now() == DVT_RNG_JAX ? DVTI_RNG_THREEFRY : DVTI_RNG_PHILOX;
    launch->i[1] = (int64_t)((uint64_t)key.word[0] << 32 | key.word[1]);
    launch->i[3] = (int64_t)dvti_place(0, DVTI_COUNTER_KEYED);
    return dvti_run(out->storage->device, launch);
}

/* ---- DVT_RNG_MXNET: n elements are cut over states, one for each 64 elements up to a limit ---- */
static int64_t dvti_mxnet_threads(int64_t n, int64_t limit) {
    return DVTI_MIN((n - 1) / 64 + 1, limit);
}

/* Seeds there are 32 bits wide: the user's times 127, plus 16 for each generator and 1 for each device. */
static uint32_t dvti_mxnet_seed(uint64_t seed, int generator, int id) {
    return (uint32_t)seed * 127u + (uint32_t)generator * 16u + (uint32_t)id;
}

/* With the lock held, because the launch changes the states. */
static dvt_status dvti_draw_mxnet_cpu(dvt_array *out, dvti_launch *launch) {
    dvti_streams *all = &dvti_the_streams;
    size_t threads = (size_t)dvti_mxnet_threads(launch->i[6], 1024);
    dvti_view *states = &launch->out[1];
    if (!dvti_grow((void **)&all->state, &all->states_capacity, threads, sizeof *all->state))
        return dvti_fail_memory(launch->name, (int64_t)(threads * sizeof *all->state));
    for (; all->states < threads; all->states++)
        dvti_mt19937_seed(&all->state[all->states],
                          dvti_mxnet_seed(all->state_seed, 0, 0) + (uint32_t)all->states);
    states->data = all->state;
    states->dtype = DVT_I32;
    states->ndim = 2;
    states->dim[0] = (int64_t)threads;
    states->dim[1] = states->stride[0] = (int64_t)(sizeof *all->state / 4);
    states->stride[1] = 1;
    launch->n_out = 2;
    launch->i[0] = DVTI_RNG_MT19937;
    launch->i[4] = (int64_t)threads;
    return dvti_run(out->storage->device, launch);
}

/* The places where the subsequences of one generator stand: one number when there is one, else an array on the device. */
static bool dvti_mxnet_positions(dvt_array *out, dvti_launch *launch, dvti_stream *stream, int g) {
    size_t threads = (size_t)launch->i[4];
    dvt_array *positions;
    if (!dvti_grow((void **)&stream->position[g], &stream->capacity[g], threads, 8)) {
        dvti_fail_memory(launch->name, launch->i[4] * 8);
        return false;
    }
    for (; stream->positions[g] < threads; stream->positions[g]++)
        stream->position[g][stream->positions[g]] = 0;
    launch->i[2] = stream->position[g][0];
    if (threads == 1)
        return true;
    positions = dvti_array_new(launch->name, DVT_SHAPE(launch->i[4]), DVT_I64, out->storage->ctx);
    if (!positions || dvti_write_host(launch->name, positions, stream->position[g]) != DVT_OK)
        return false;
    launch->in[0] = dvti_view_of(positions);
    launch->n_in = 1;
    return true;
}

/* Generators take turns, beginning with number 1. With the lock held. */
static dvt_status dvti_draw_mxnet_gpu(dvt_array *out, dvti_launch *launch) {
    dvt_ctx ctx = out->storage->ctx;
    dvti_stream *stream = dvti_stream_of(launch->name, ctx);
    int64_t n = launch->i[6], threads = dvti_mxnet_threads(n, 32768), t;
    int64_t step = (n + threads - 1) / threads, words = out->dtype == DVT_F64 ? 2 : 1;
    dvt_status status;
    int g;
    if (!stream)
        return DVT_ERR_HOST_MEMORY;
    g = (int)((stream->uses + 1) % DVTI_MXNET_GENERATORS);
    launch->i[0] = DVTI_RNG_CURAND;
    launch->i[1] = (int64_t)dvti_mxnet_seed(stream->seed, g, stream->own ? 0 : ctx.id);
    launch->i[4] = threads;
    if (!dvti_mxnet_positions(out, launch, stream, g))
        return dvt_error_code();
    status = dvti_run(out->storage->device, launch);
    if (status == DVT_OK) {
        stream->uses++;
        for (t = 0; t < threads && t * step < n; t++)
            stream->position[g][t] += DVTI_MIN(step, n - t * step) * words;
    }
    return status;
}

static dvt_status dvti_draw_mxnet(dvt_array *out, dvti_launch *launch) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_status status;
    dvti_mutex_lock(&dvti_the_streams.lock);
    status = out->storage->ctx.type == DVT_DEVICE_CPU ? dvti_draw_mxnet_cpu(out, launch)
                                                      : dvti_draw_mxnet_gpu(out, launch);
    dvti_mutex_unlock(&dvti_the_streams.lock);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN dvt_status dvti_draw(dvt_array *out, dvti_launch *launch, const dvt_key *key, int words) {
    int per = 4 / words;
    int64_t n = dvt_shape_size(out->shape);
    launch->out[0] = dvti_view_of(out);
    launch->n_out = 1;
    launch->i[6] = n;
    if (key)
        return dvti_draw_key(out, launch, *key);
    if (launch->op == DVTI_OP_uniform && dvti_rng_engine_now() == DVT_RNG_MXNET)
        return dvti_draw_mxnet(out, launch);
    return dvti_draw_stream(out, launch, (uint64_t)((n - 1) / per + 1));
}

#undef DVTI_MXNET_GENERATORS
/* ==== end src/4_ops/dvt_stream.c ==== */
#ifdef DEVTENSOR_LINES
#line 44 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/dvt_tape.c ==== */
/* The tape: which operations computed an array. Recording state, nodes, and the end of nodes. The way back is in 5_grad. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/dvt_tape.c"
#endif

static DVTI_TLS int dvti_recording, dvti_training;

DVT_API bool dvt_is_recording(void) {
    return dvti_recording != 0;
}

DVT_API bool dvt_is_training(void) {
    return dvti_training != 0;
}

DVT_API dvt_record_guard dvt_record_begin(int recording, int training) {
    dvt_record_guard guard;
    guard.recording = dvti_recording;
    guard.training = dvti_training;
    guard.once = 1;
    if (recording >= 0)
        dvti_recording = recording;
    if (training >= 0)
        dvti_training = training;
    return guard;
}

DVT_API void dvt_record_end(dvt_record_guard *guard) {
    dvti_recording = guard->recording;
    dvti_training = guard->training;
    guard->once = 0;
}

DVT_API bool dvt_has_history(const dvt_array *x) {
    return x && (x->node || (x->attached && x->grad_req != DVT_GRAD_NULL));
}

DVTI_FN dvti_attr dvti_attr_none(void) {
    dvti_attr attr;
    memset(&attr, 0, sizeof attr);
    return attr;
}

/* ---- nodes ---- */
/* A long chain must not be freed by a deep recursion: releasing an input's last owner would release that input's node,
   and so on. Nodes that die while another is being taken apart wait in this thread's list. */
static DVTI_TLS dvti_node *dvti_dying;
static DVTI_TLS bool dvti_taking_apart;

static void dvti_node_drop(dvti_node *node) {
    int i, n = node->n_in;
    dvt_array *result = node->result;
    node->n_in = 0;
    node->result = NULL;
    for (i = 0; i < n; i++)
        dvt_release(node->in[i]);
    dvt_release(result);
}

DVTI_FN void dvti_node_release(dvti_node *node) {
    if (!node || dvti_atomic_add(&node->references, -1) != 0)
        return;
    node->next = dvti_dying;
    dvti_dying = node;
    if (dvti_taking_apart)
        return;
    dvti_taking_apart = true;
    while (dvti_dying) {
        dvti_node *next = dvti_dying;
        dvti_dying = next->next;
        dvti_node_drop(next);
        dvti_free(next);
    }
    dvti_taking_apart = false;
}

DVTI_FN void dvti_node_use_up(dvti_node *node) {
    node->used = true;
    dvti_node_drop(node);
}

DVTI_FN dvt_array *dvti_alias_unowned(dvt_array *x) {
    dvt_array *alias = dvti_view_new("dvt_detach", x, x->shape, x->stride, x->offset);
    if (alias)
        dvti_scope_take(alias);
    return alias;
}

/* Does the gradient to any input with history read the result? */
static bool dvti_result_is_read(const dvti_node *node, dvt_array *const *in, int n) {
    int i;
    for (i = 0; i < n; i++)
        if (dvt_has_history(in[i]) && dvti_grad_reads(node, i) & DVTI_READS_RESULT)
            return true;
    return false;
}

/* One block holds the node, its inputs and their versions. */
static dvti_node *dvti_node_new(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                                int n, const dvti_attr *attr) {
    static dvti_atomic sequence;
    size_t each = sizeof(dvt_array *) + sizeof(int64_t);
    dvti_node *node = (dvti_node *)dvti_alloc(sizeof *node + each * (size_t)n);
    int i;
    if (!node)
        return NULL;
    memset(node, 0, sizeof *node);
    node->references = 1;
    node->version = (int64_t *)(void *)(node + 1);
    node->in = (dvt_array **)(void *)(node->version + n);
    node->op = op;
    node->name = name;
    node->attr = attr ? *attr : dvti_attr_none();
    node->result_version = dvti_atomic_load(&out->storage->version);
    if (dvti_result_is_read(node, in, n)) {
        node->result = dvti_alias_unowned(out);
        if (!node->result) {
            dvti_free(node);
            return NULL;
        }
    }
    for (i = 0; i < n; i++) {
        node->in[i] = in[i];
        dvt_retain(in[i]);
        node->version[i] = dvti_atomic_load(&in[i]->storage->version);
    }
    node->n_in = n;
    node->sequence = dvti_atomic_add(&sequence, 1);
    return node;
}

DVTI_FN dvt_array *dvti_finish(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                               int n, const dvti_attr *attr) {
    bool history = false;
    int i;
    if (!out || !dvti_recording || !dvt_dtype_is_float(out->dtype))
        return out;
    for (i = 0; i < n; i++)
        history = history || dvt_has_history(in[i]);
    if (!history)
        return out;
    out->node = dvti_node_new(out, op, name, in, n, attr);
    if (!out->node) {
        dvti_fail_memory(name, (int64_t)sizeof *out->node);
        return NULL;
    }
    return out;
}
/* ==== end src/4_ops/dvt_tape.c ==== */
#ifdef DEVTENSOR_LINES
#line 45 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_conv.c ==== */
/* Convolution: parameters, shapes, and the recorded operation with its two gradients, which are operations too. Pooling is in
   op_pool.c. */
#ifdef DEVTENSOR_LINES
#line 3 "src/4_ops/op_conv.c"
#endif

/* Zeros become defaults, in this one place. Only signs are checked here; what fits, with the shapes. */
static bool dvti_conv2d_resolve(const char *name, const dvt_conv2d_params *p, dvti_attr *attr) {
    static const dvt_conv2d_params none = {{0, 0}, {0, 0}, {0, 0}, 0};
    int i;
    *attr = dvti_attr_none();
    p = p ? p : &none;
    for (i = 0; i < 2; i++) {
        attr->i[i] = p->stride[i] ? p->stride[i] : i ? attr->i[0] : 1;
        attr->i[2 + i] = p->padding[i];
        attr->i[4 + i] = p->dilation[i] ? p->dilation[i] : i ? attr->i[4] : 1;
    }
    attr->i[6] = p->groups ? p->groups : 1;
    for (i = 0; i < 7; i++)
        if (attr->i[i] < 0) {
            static const char *const field[] = {"stride", "padding", "dilation", "groups"};
            dvti_fail(DVT_ERR_RANGE,
                      "%s: %s is %lld; expected a positive number, or 0 for the default", name,
                      field[i / 2], (long long)attr->i[i]);
            return false;
        }
    return true;
}

/* The extent of a result along one axis, or -1 with the error set. */
static int64_t dvti_conv2d_extent(const char *name, const char *axis, int64_t x, int64_t w,
                                  int64_t stride, int64_t padding, int64_t dilation) {
    int64_t padded, reach;
    if (!dvti_sum(x, 2 * padding, &padded) || !dvti_mul(w - 1, dilation, &reach) ||
        !dvti_sum(reach, 1, &reach)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the %s of the window overflows; use a smaller dilation or padding", name,
                  axis);
        return -1;
    }
    if (reach > padded) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the window spans a %s of %lld (kernel %lld, dilation %lld), but x with its "
                  "padding has %lld "
                  "(%lld + 2 * %lld); use a smaller kernel or more padding",
                  name, axis, (long long)reach, (long long)w, (long long)dilation,
                  (long long)padded, (long long)x, (long long)padding);
        return -1;
    }
    return (padded - reach) / stride + 1;
}

/* The result's shape; false with the error set. The texts describe x and w. */
static bool dvti_conv2d_shape(const char *name, dvt_shape x, dvt_shape w, const char *x_text,
                              const char *w_text, const dvti_attr *attr, dvt_shape *y) {
    int64_t groups = attr->i[6];
    if (x.ndim != 4 || w.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and w is %s; expected x (batch, channels, height, width) and w "
                  "(channels out, channels "
                  "in / groups, height, width); reshape them",
                  name, x_text, w_text);
        return false;
    }
    if (x.dim[1] % groups || w.dim[0] % groups) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: %lld groups do not divide the %lld channels of x and the %lld of the result "
                  "(x is %s and w is "
                  "%s); choose a common divisor",
                  name, (long long)groups, (long long)x.dim[1], (long long)w.dim[0], x_text,
                  w_text);
        return false;
    }
    if (x.dim[1] / groups != w.dim[1]) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and w is %s; with %lld groups w's second extent must be %lld", name,
                  x_text, w_text, (long long)groups, (long long)(x.dim[1] / groups));
        return false;
    }
    if (w.dim[2] < 1 || w.dim[3] < 1) {
        dvti_fail(DVT_ERR_SHAPE, "%s: w is %s; expected a kernel of at least 1 x 1", name, w_text);
        return false;
    }
    *y = x;
    y->dim[1] = w.dim[0];
    y->dim[2] =
        dvti_conv2d_extent(name, "height", x.dim[2], w.dim[2], attr->i[0], attr->i[2], attr->i[4]);
    if (y->dim[2] < 0)
        return false;
    y->dim[3] =
        dvti_conv2d_extent(name, "width", x.dim[3], w.dim[3], attr->i[1], attr->i[3], attr->i[5]);
    return y->dim[3] >= 0;
}

/* Runs and records one of the three; `in` is contiguous and of one dtype. */
static dvt_array *dvti_conv2d_launch(const char *name, dvti_op op, dvt_array *const *in, int n,
                                     dvt_shape shape, const dvti_attr *attr) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_CONV2D, op);
    dvt_array *out = dvti_array_new(name, shape, in[0]->dtype, in[0]->storage->ctx);
    int i;
    if (!out)
        return NULL;
    for (i = 0; i < n; i++)
        launch.in[i] = dvti_view_of(in[i]);
    launch.n_in = n;
    launch.out[0] = dvti_view_of(out);
    launch.n_out = 1;
    memcpy(launch.i, attr->i, sizeof launch.i);
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return dvti_finish(out, op, name, in, n, attr);
}

/* All inputs contiguous and of their common dtype (recorded where that takes a copy), then the launch. */
static dvt_array *dvti_conv2d_ready(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    dvt_shape shape, const dvti_attr *attr) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_dtype dtype = in[0]->dtype;
    dvt_array *ready[3], *out = NULL;
    int i;
    for (i = 1; i < n; i++)
        dtype = dvt_promote(dtype, in[i]->dtype);
    for (i = 0; i < n; i++)
        if (!(ready[i] = dvt_contiguous(dvt_astype(in[i], dtype, false))))
            break;
    if (i == n)
        out = (dvt_array *)dvt_keep(dvti_conv2d_launch(name, op, ready, n, shape, attr));
    dvt_scope_end(&scope);
    return out;
}

DVTI_FN dvt_array *dvti_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias, const dvti_attr *attr) {
    dvt_array *in[3];
    dvt_shape shape;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!dvti_check("dvt_conv2d", in, bias ? 3 : 2) ||
        !dvti_conv2d_shape("dvt_conv2d", x->shape, w->shape, dvti_describe(x), dvti_describe(w),
                           attr, &shape))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d, in, bias ? 3 : 2, shape, attr);
}

static bool dvti_conv2d_floats(dvt_array *const *in, int n) {
    static const char *const name[] = {"x", "w", "bias"};
    int i;
    for (i = 0; i < n; i++)
        if (!dvt_dtype_is_float(in[i]->dtype)) {
            dvti_fail(DVT_ERR_DTYPE,
                      "dvt_conv2d: %s is %s; expected floats: convert it with dvt_astype", name[i],
                      dvti_describe(in[i]));
            return false;
        }
    return true;
}

DVT_API dvt_array *dvt_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv2d_params *p) {
    dvt_array *in[3];
    dvti_attr attr;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!x || !w) {
        dvti_null("dvt_conv2d", x ? "w" : "x");
        return NULL;
    }
    if (!dvti_conv2d_resolve("dvt_conv2d", p, &attr) || !dvti_conv2d_floats(in, bias ? 3 : 2))
        return NULL;
    if (bias &&
        (bias->shape.ndim != 1 || w->shape.ndim < 1 || bias->shape.dim[0] != w->shape.dim[0])) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_conv2d: bias is %s and w is %s; expected one value per channel of the result",
            dvti_describe(bias), dvti_describe(w));
        return NULL;
    }
    return dvti_conv2d(x, w, bias, &attr);
}

/* The gradients get shapes that a forward call has accepted; anything else would read beyond a buffer. */
static bool dvti_conv2d_agree(const char *name, dvt_shape x, dvt_shape w, dvt_shape g,
                              const dvti_attr *attr) {
    dvt_shape y;
    if (!dvti_conv2d_shape(name, x, w, dvti_shape_text(x), dvti_shape_text(w), attr, &y))
        return false;
    if (!dvt_shape_equal(y, g)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the gradient has shape %s; expected %s, that of the result",
                  name, dvti_shape_text(g), dvti_shape_text(y));
        return false;
    }
    return true;
}

DVTI_FN dvt_array *dvti_conv2d_data(dvt_array *g, dvt_array *w, dvt_shape x_shape,
                                    const dvti_attr *attr) {
    dvt_array *in[2];
    in[0] = g;
    in[1] = w;
    if (!dvti_check("dvt_conv2d", in, 2) ||
        !dvti_conv2d_agree("dvt_conv2d", x_shape, w->shape, g->shape, attr))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d_data, in, 2, x_shape, attr);
}

DVTI_FN dvt_array *dvti_conv2d_weight(dvt_array *x, dvt_array *g, dvt_shape w_shape,
                                      const dvti_attr *attr) {
    dvt_array *in[2];
    in[0] = x;
    in[1] = g;
    if (!dvti_check("dvt_conv2d", in, 2) ||
        !dvti_conv2d_agree("dvt_conv2d", x->shape, w_shape, g->shape, attr))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d_weight, in, 2, w_shape, attr);
}
/* ==== end src/4_ops/op_conv.c ==== */
#ifdef DEVTENSOR_LINES
#line 46 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_copy.c ==== */
/* Copies as operations: between contexts, dtypes and arrays. The bytes are moved by 2_core/dvt_copy.c. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_copy.c"
#endif

static dvt_array *dvti_copied(const char *name, dvt_array *x, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *out = dvti_array_new(name, x->shape, dtype, ctx);
    if (!out || dvti_copy_elements(name, out, x) != DVT_OK)
        return NULL;
    return dvti_finish(out, DVTI_OP_copy, name, &x, 1, NULL);
}

DVT_API dvt_array *dvt_copyto(dvt_array *x, dvt_ctx ctx) {
    return dvti_check("dvt_copyto", &x, 1) ? dvti_copied("dvt_copyto", x, x->dtype, ctx) : NULL;
}

DVT_API dvt_array *dvt_as_in_ctx(dvt_array *x, dvt_ctx ctx) {
    if (!dvti_check("dvt_as_in_ctx", &x, 1))
        return NULL;
    return dvt_ctx_equal(x->storage->ctx, ctx) ? x : dvti_copied("dvt_as_in_ctx", x, x->dtype, ctx);
}

DVT_API dvt_array *dvt_copy(dvt_array *x) {
    return dvti_check("dvt_copy", &x, 1) ? dvti_copied("dvt_copy", x, x->dtype, x->storage->ctx)
                                         : NULL;
}

DVT_API dvt_array *dvt_contiguous(dvt_array *x) {
    if (!dvti_check("dvt_contiguous", &x, 1))
        return NULL;
    return dvt_is_contiguous(x) ? x : dvti_copied("dvt_contiguous", x, x->dtype, x->storage->ctx);
}

DVT_API dvt_array *dvt_astype(dvt_array *x, dvt_dtype dtype, bool copy) {
    if (!dvti_check("dvt_astype", &x, 1))
        return NULL;
    if (!copy && x->dtype == dtype)
        return x;
    return dvti_copied("dvt_astype", x, dtype, x->storage->ctx);
}

DVT_API dvt_array *dvt_copy_into(dvt_array *dst, dvt_array *src) {
    dvt_scope_guard scope;
    dvt_array *from = src;
    dvt_status status;
    if (!dvti_check("dvt_copy_into", &dst, 1) || !dvti_check("dvt_copy_into", &src, 1))
        return NULL;
    if (dst == src) {
        dvti_log(DVT_LOG_WARNING,
                 "dvt_copy_into: an array is copied onto itself (%s); nothing is done",
                 dvti_describe(dst));
        return NULL;
    }
    if (!dvt_shape_equal(dst->shape, src->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_copy_into: dst is %s and src is %s; expected equal shapes: reshape or slice "
                  "one of them",
                  dvti_describe(dst), dvti_describe(src));
        return NULL;
    }
    if (!dvti_writable("dvt_copy_into", dst))
        return NULL;
    scope = dvt_scope_begin();
    if (dvti_overlaps(src, dst)) {
        DVT_PAUSE {
            from = dvt_copy(src);
        }
    }
    status = from ? dvti_copy_elements("dvt_copy_into", dst, from) : dvt_error_code();
    dvt_scope_end(&scope);
    if (status != DVT_OK)
        return NULL;
    dvti_written(dst);
    return dvti_finish(dst, DVTI_OP_copy, "dvt_copy_into", &src, 1, NULL);
}
/* ==== end src/4_ops/op_copy.c ==== */
#ifdef DEVTENSOR_LINES
#line 47 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_create.c ==== */
/* Creation: arrays from nothing, from a number, from evenly spaced values, from memory of the host. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_create.c"
#endif

DVT_API dvt_array *dvt_empty(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_array_new("dvt_empty", shape, dtype, ctx);
}

/* The value as dvt_astype makes an integer of it: the fraction is dropped, what does not fit is clamped, NaN is 0. */
static int64_t dvti_whole(double value, dvt_dtype dtype) {
    int64_t lowest = dvti_int_lowest(dtype), largest = dvti_int_largest(dtype);
    if (value != value)
        return 0;
    if (dtype == DVT_BOOL)
        return value != 0;
    if (value >= (double)largest)
        return largest;
    if (value <= (double)lowest)
        return lowest;
    return (int64_t)value;
}

static bool dvti_fill_with(const char *name, dvt_array *x, double value) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_FILL, DVTI_OP_fill);
    launch.out[0] = dvti_view_of(x);
    launch.n_out = 1;
    launch.f[0] = value;
    launch.i[0] = dvti_whole(value, x->dtype);
    return dvt_shape_size(x->shape) == 0 || dvti_run(x->storage->device, &launch) == DVT_OK;
}

static dvt_array *dvti_filled(const char *name, dvt_shape shape, double value, dvt_dtype dtype,
                              dvt_ctx ctx) {
    dvt_array *x = dvti_array_new(name, shape, dtype, ctx);
    return x && dvti_fill_with(name, x, value) ? x : NULL;
}

DVT_API dvt_array *dvt_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_zeros", shape, 0, dtype, ctx);
}

DVT_API dvt_array *dvt_ones(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_ones", shape, 1, dtype, ctx);
}

DVT_API dvt_array *dvt_full(dvt_shape shape, double value, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_full", shape, value, dtype, ctx);
}

DVT_API dvt_array *dvt_scalar(double value, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_filled("dvt_scalar", DVT_SCALAR, value, dtype, ctx);
}

static dvt_array *dvti_filled_like(const char *name, dvt_array *x, double value) {
    if (!dvti_check(name, &x, 1))
        return NULL;
    return dvti_filled(name, x->shape, value, x->dtype, x->storage->ctx);
}

DVT_API dvt_array *dvt_zeros_like(dvt_array *x) {
    return dvti_filled_like("dvt_zeros_like", x, 0);
}

DVT_API dvt_array *dvt_ones_like(dvt_array *x) {
    return dvti_filled_like("dvt_ones_like", x, 1);
}

DVT_API dvt_array *dvt_full_like(dvt_array *x, double value) {
    return dvti_filled_like("dvt_full_like", x, value);
}

DVT_API dvt_array *dvt_fill(dvt_array *x, double value) {
    if (!dvti_check("dvt_fill", &x, 1) || !dvti_writable("dvt_fill", x) ||
        !dvti_fill_with("dvt_fill", x, value))
        return NULL;
    dvti_written(x);
    return x;
}

DVT_API dvt_array *dvt_eye(int64_t rows, int64_t columns, int64_t k, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvti_array_new("dvt_eye", DVT_SHAPE(rows, columns), dtype, ctx);
    dvti_launch launch = dvti_launch_begin("dvt_eye", DVTI_K_EYE, DVTI_OP_eye);
    if (!x)
        return NULL;
    launch.out[0] = dvti_view_of(x);
    launch.n_out = 1;
    launch.i[0] = k;
    if (dvt_shape_size(x->shape) > 0 && dvti_run(x->storage->device, &launch) != DVT_OK)
        return NULL;
    return x;
}

/* Values start + index * step. Integer dtypes count in integers when start and step are whole, so that they stay exact beyond
   2^53; otherwise in float64, then as dvt_astype. last, when not NULL, is the exact final value. */
static dvt_array *dvti_spaced(const char *name, double start, double step, const double *last,
                              int64_t n, dvt_dtype dtype, dvt_ctx ctx) {
    bool whole = !dvt_dtype_is_float(dtype) && !last && start == floor(start) &&
                 step == floor(step) && fabs(start) < 9e18 && fabs(step) < 9e18;
    dvt_dtype made = dvt_dtype_is_float(dtype) || whole ? dtype : DVT_F64;
    dvt_scope_guard scope;
    dvt_array *x;
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_ARANGE, DVTI_OP_arange);
    if (!dvti_dtype_ok(dtype) || dtype == DVT_BOOL) {
        dvti_fail(DVT_ERR_DTYPE, "%s: got dtype %s; expected a float or integer dtype", name,
                  dvt_dtype_name(dtype));
        return NULL;
    }
    scope = dvt_scope_begin();
    x = dvti_array_new(name, DVT_SHAPE(n), made, ctx);
    if (x) {
        launch.out[0] = dvti_view_of(x);
        launch.n_out = 1;
        launch.f[0] = start;
        launch.f[1] = step;
        launch.f[2] = last ? *last : 0;
        launch.i[0] = whole ? (int64_t)start : 0;
        launch.i[1] = whole ? (int64_t)step : 0;
        launch.i[2] = last && n > 1;
        if (n > 0 && dvti_run(x->storage->device, &launch) != DVT_OK)
            x = NULL;
        if (x && made != dtype) {
            DVT_PAUSE {
                x = dvt_astype(x, dtype, false);
            }
        }
    }
    dvt_keep(x);
    dvt_scope_end(&scope);
    return x;
}

DVT_API dvt_array *dvt_arange(double start, double stop, double step, dvt_dtype dtype,
                              dvt_ctx ctx) {
    double count;
    if (!(step != 0) || start != start || stop != stop || step != step) {
        dvti_fail(
            DVT_ERR_VALUE,
            "dvt_arange: start %g, stop %g, step %g; expected numbers, and a step that is not 0",
            start, stop, step);
        return NULL;
    }
    count = ceil((stop - start) / step);
    if (!(count < 9.2e18)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_arange: %g values from %g to %g by %g are too many; use a larger step",
                  count, start, stop, step);
        return NULL;
    }
    return dvti_spaced("dvt_arange", start, step, NULL, count > 0 ? (int64_t)count : 0, dtype, ctx);
}

DVT_API dvt_array *dvt_linspace(double start, double stop, int64_t num, dvt_dtype dtype,
                                dvt_ctx ctx) {
    if (num < 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_linspace: num is %lld; expected 0 or more", (long long)num);
        return NULL;
    }
    return dvti_spaced("dvt_linspace", start, num > 1 ? (stop - start) / (double)(num - 1) : 0,
                       &stop, num, dtype, ctx);
}

DVT_API dvt_array *dvt_from_host(const void *data, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvti_array_new("dvt_from_host", shape, dtype, ctx);
    if (!x)
        return NULL;
    if (!data && dvt_size(x) > 0) {
        dvti_null("dvt_from_host", "data");
        return NULL;
    }
    return dvti_write_host("dvt_from_host", x, data) == DVT_OK ? x : NULL;
}

DVT_API dvt_status dvt_set_from_host(dvt_array *x, const void *src, int64_t bytes) {
    dvt_status status;
    if (!x)
        return dvti_null("dvt_set_from_host", "x");
    if (bytes != dvt_nbytes(x))
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_set_from_host: src has %lld bytes and x (%s) has %lld; give exactly dvt_nbytes(x)",
            (long long)bytes, dvti_describe(x), (long long)dvt_nbytes(x));
    if (!src && bytes)
        return dvti_null("dvt_set_from_host", "src");
    if (!dvti_writable("dvt_set_from_host", x))
        return dvt_error_code();
    status = dvti_write_host("dvt_set_from_host", x, src);
    if (status == DVT_OK)
        dvti_written(x);
    return status;
}
/* ==== end src/4_ops/op_create.c ==== */
#ifdef DEVTENSOR_LINES
#line 48 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_elementwise.c ==== */
/* Elementwise operations: every public function of the op table's unary and binary rows, where and clip. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_elementwise.c"
#endif

typedef enum dvti_rule {
    DVTI_RULE_SAME,
    DVTI_RULE_NOBOOL,
    DVTI_RULE_FLOAT,
    DVTI_RULE_BOOL
} dvti_rule;

static dvti_rule dvti_rule_of(dvti_op op) {
    switch (op) {
#define DVTI_ROW(name, rule, f, i, grad, lo, hi, doc)                                              \
    case DVTI_OP_##name:                                                                           \
        return DVTI_RULE_##rule;
        DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
#define DVTI_ROW(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                    \
    case DVTI_OP_##name:                                                                           \
        return DVTI_RULE_##rule;
        DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return DVTI_RULE_SAME;
    }
}

/* A whole number beside integers stays an integer; beside bool it makes int64; a fraction makes float32. */
static dvt_dtype dvti_with_scalar(dvt_dtype dtype, double s) {
    if (dvt_dtype_is_float(dtype))
        return dtype;
    if (!(s >= -9223372036854775808.0 && s < 9223372036854775808.0) || s != floor(s))
        return DVT_F32;
    return dtype == DVT_BOOL && s != 0 && s != 1 ? DVT_I64 : dtype;
}

/* NumPy's "same kind": a float result does not fit an integer array, nor an integer one a bool. */
static bool dvti_fits(dvt_dtype result, dvt_dtype into) {
    if (dvt_dtype_is_float(result))
        return dvt_dtype_is_float(into);
    return result == DVT_BOOL || into != DVT_BOOL;
}

static bool dvti_into_ok(const char *name, dvt_array *into, dvt_shape shape, dvt_dtype dtype) {
    if (!dvt_shape_equal(into->shape, shape)) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "%s: the result has shape %s and cannot be written into %s; use the form without _",
            name, dvti_shape_text(shape), dvti_describe(into));
        return false;
    }
    if (!dvti_fits(dtype, into->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: the result is %s and cannot be written into %s; use the form without _",
                  name, dvt_dtype_name(dtype), dvti_describe(into));
        return false;
    }
    return dvti_writable(name, into);
}

/* A result written in place has no place on the tape: while recording, its inputs must have no history. */
static bool dvti_keeps_history(const char *name, dvt_array *const *in, int n) {
    int k;
    for (k = 0; dvt_is_recording() && k < n; k++)
        if (dvt_has_history(in[k])) {
            dvti_fail(DVT_ERR_GRAD,
                      "%s: argument %d (%s) belongs to a recorded computation, whose gradient "
                      "writing in place would lose; use the "
                      "form without _",
                      name, k + 1, dvti_describe(in[k]));
            return false;
        }
    return true;
}

/* Another window on the memory that is about to be written must be read before: same window, or a copy first. */
DVTI_FN bool dvti_overlaps(const dvt_array *in, const dvt_array *into) {
    int i;
    if (in->storage != into->storage)
        return false;
    if (in->offset != into->offset || in->dtype != into->dtype ||
        !dvt_shape_equal(in->shape, into->shape))
        return true;
    for (i = 0; i < in->shape.ndim; i++)
        if (in->stride[i] != into->stride[i] && in->shape.dim[i] > 1)
            return true;
    return false;
}

static dvt_array *dvti_elementwise_run(dvti_launch *launch, dvt_array **in, int n, int first,
                                       dvt_shape shape, dvt_dtype dtype, dvt_array *into) {
    dvt_array *out = into;
    int k;
    for (k = 0; into && k < n; k++)
        if (dvti_overlaps(in[k], into) && !(in[k] = dvt_copy(in[k])))
            return NULL;
    if (!out && !(out = dvti_array_new(launch->name, shape, dtype, in[0]->storage->ctx)))
        return NULL;
    for (k = 0; k < n; k++)
        launch->in[first + k] = dvti_view_broadcast(in[k], shape);
    launch->out[0] = dvti_view_of(out);
    launch->n_out = 1;
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, launch) != DVT_OK)
        return NULL;
    if (into)
        dvti_written(into);
    return out;
}

DVTI_FN dvt_array *dvti_elementwise(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    int scalar_at, double scalar, dvt_array *into) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_ELEMENTWISE, op);
    dvti_rule rule = dvti_rule_of(op);
    dvti_attr attr = dvti_attr_none();
    dvt_array *operand[3], *out = NULL;
    dvt_shape shape;
    dvt_dtype dtype, result;
    dvt_scope_guard scope;
    int k;
    if (!dvti_check(name, in, n))
        return NULL;
    shape = in[0]->shape;
    dtype = in[0]->dtype;
    for (k = 0; k < n; k++) {
        operand[k] = in[k];
        dtype = dvt_promote(dtype, in[k]->dtype);
        if (k && !dvti_broadcast(name, shape, in[k]->shape, &shape))
            return NULL;
    }
    if (scalar_at)
        dtype = dvti_with_scalar(dtype, scalar);
    if (rule == DVTI_RULE_FLOAT)
        dtype = dvti_float_dtype(dtype);
    if (rule == DVTI_RULE_NOBOOL && dtype == DVT_BOOL) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: not defined for bool; use dvt_logical_not or dvt_logical_xor, or convert "
                  "with dvt_astype",
                  name);
        return NULL;
    }
    result = rule == DVTI_RULE_BOOL ? DVT_BOOL : dtype;
    if (into && (!dvti_into_ok(name, into, shape, result) || !dvti_keeps_history(name, in, n)))
        return NULL;
    launch.compute = dvti_class_of(dtype);
    launch.n_in = n + (scalar_at ? 1 : 0);
    launch.f[0] = scalar;
    launch.i[0] = scalar_at;
    if (scalar_at && launch.compute == DVTI_I64)
        launch.i[1] = (int64_t)scalar;
    scope = dvt_scope_begin();
    out = dvti_elementwise_run(&launch, operand, n, scalar_at == 1 ? 1 : 0, shape, result, into);
    attr.f[0] = scalar;
    attr.i[0] = scalar_at;
    if (!into) {
        dvt_keep(out);
        out = dvti_finish(out, op, name, in, n, &attr);
    }
    dvt_scope_end(&scope);
    return out;
}

/* ---- the public functions, one set per row ---- */
#define DVTI_UNARY(name)                                                                           \
    DVT_API dvt_array *dvt_##name(dvt_array *x) {                                                  \
        return dvti_elementwise("dvt_" #name, DVTI_OP_##name, &x, 1, 0, 0, NULL);                  \
    }
#define DVTI_UNARY_INPLACE(name)                                                                   \
    DVT_API dvt_array *dvt_##name##_(dvt_array *x) {                                               \
        return dvti_elementwise("dvt_" #name "_", DVTI_OP_##name, &x, 1, 0, 0, x);                 \
    }
#define DVTI_BINARY(name)                                                                          \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b) {                                    \
        dvt_array *in[2];                                                                          \
        in[0] = a;                                                                                 \
        in[1] = b;                                                                                 \
        return dvti_elementwise("dvt_" #name, DVTI_OP_##name, in, 2, 0, 0, NULL);                  \
    }                                                                                              \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s) {                               \
        return dvti_elementwise("dvt_" #name "_scalar", DVTI_OP_##name, &x, 1, 2, s, NULL);        \
    }                                                                                              \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x) {                                 \
        return dvti_elementwise("dvt_scalar_" #name, DVTI_OP_##name, &x, 1, 1, s, NULL);           \
    }
#define DVTI_BINARY_INPLACE(name)                                                                  \
    DVT_API dvt_array *dvt_##name##_(dvt_array *a, dvt_array *b) {                                 \
        dvt_array *in[2];                                                                          \
        in[0] = a;                                                                                 \
        in[1] = b;                                                                                 \
        return dvti_elementwise("dvt_" #name "_", DVTI_OP_##name, in, 2, 0, 0, a);                 \
    }                                                                                              \
    DVT_API dvt_array *dvt_##name##_scalar_(dvt_array *x, double s) {                              \
        return dvti_elementwise("dvt_" #name "_scalar_", DVTI_OP_##name, &x, 1, 2, s, x);          \
    }

/* Rows whose result is bool have no form that writes in place. */
#define DVTI_INPLACE_SAME(M, name) M(name)
#define DVTI_INPLACE_NOBOOL(M, name) M(name)
#define DVTI_INPLACE_FLOAT(M, name) M(name)
#define DVTI_INPLACE_BOOL(M, name)

#define DVTI_ROW(name, rule, f, i, grad, lo, hi, doc)                                              \
    DVTI_UNARY(name) DVTI_INPLACE_##rule(DVTI_UNARY_INPLACE, name)
DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
#define DVTI_ROW(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                    \
    DVTI_BINARY(name) DVTI_INPLACE_##rule(DVTI_BINARY_INPLACE, name)
DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW

/* ---- select ---- */
DVT_API dvt_array *dvt_where(dvt_array *condition, dvt_array *a, dvt_array *b) {
    dvti_launch launch = dvti_launch_begin("dvt_where", DVTI_K_ELEMENTWISE, DVTI_OP_where);
    dvt_array *in[3], *operand[3], *out;
    dvt_shape shape;
    dvt_dtype dtype;
    in[0] = condition;
    in[1] = a;
    in[2] = b;
    if (!dvti_check("dvt_where", in, 3) ||
        !dvti_broadcast("dvt_where", a->shape, b->shape, &shape) ||
        !dvti_broadcast("dvt_where", shape, condition->shape, &shape))
        return NULL;
    dtype = dvt_promote(a->dtype, b->dtype);
    memcpy(operand, in, sizeof operand);
    launch.compute = dvti_class_of(dtype);
    launch.n_in = 3;
    out = dvti_elementwise_run(&launch, operand, 3, 0, shape, dtype, NULL);
    return dvti_finish(out, DVTI_OP_where, "dvt_where", in, 3, NULL);
}

static dvt_array *dvti_clip(const char *name, dvt_array *x, double low, double high,
                            dvt_array *into) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_ELEMENTWISE, DVTI_OP_clip);
    dvti_attr attr = dvti_attr_none();
    dvt_array *operand[1], *out;
    if (!dvti_check(name, &x, 1))
        return NULL;
    if (!(low <= high)) {
        dvti_fail(DVT_ERR_VALUE, "%s: bounds %g and %g; expected low <= high, neither of them NaN",
                  name, low, high);
        return NULL;
    }
    if (into && !dvti_into_ok(name, into, x->shape, x->dtype))
        return NULL;
    operand[0] = x;
    launch.compute = dvti_class_of(x->dtype);
    launch.n_in = 1;
    launch.f[1] = attr.f[1] = low;
    launch.f[2] = attr.f[2] = high;
    out = dvti_elementwise_run(&launch, operand, 1, 0, x->shape, x->dtype, into);
    return into ? out : dvti_finish(out, DVTI_OP_clip, name, &x, 1, &attr);
}

DVT_API dvt_array *dvt_clip(dvt_array *x, double low, double high) {
    return dvti_clip("dvt_clip", x, low, high, NULL);
}

DVT_API dvt_array *dvt_clip_(dvt_array *x, double low, double high) {
    return dvti_clip("dvt_clip_", x, low, high, x);
}
/* ==== end src/4_ops/op_elementwise.c ==== */
#ifdef DEVTENSOR_LINES
#line 49 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_index.c ==== */
/* Joining, splitting and indexing. What 5_grad finds in a node's attributes: i[0] is the axis, not negative, of concat, take, take_add,
   take_along and take_along_add. The last four have the inputs (array, index); the index is int64 and contiguous. */
#ifdef DEVTENSOR_LINES
#line 3 "src/4_ops/op_index.c"
#endif

/* ---- concat, stack, split ---- */
static bool dvti_concat_shape(const char *name, dvt_array *const *arrays, int n, int axis,
                              dvt_shape *shape, dvt_dtype *dtype) {
    int i, k;
    *shape = arrays[0]->shape;
    *dtype = arrays[0]->dtype;
    for (k = 1; k < n; k++) {
        dvt_shape other = arrays[k]->shape;
        bool fits = other.ndim == shape->ndim;
        for (i = 0; fits && i < other.ndim; i++)
            fits = i == axis || other.dim[i] == shape->dim[i];
        if (!fits) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: array 0 is %s and array %d is %s; all axes but axis %d must be equal: "
                      "reshape or slice one of them",
                      name, dvti_describe(arrays[0]), k, dvti_describe(arrays[k]), axis);
            return false;
        }
        if (!dvti_sum(shape->dim[axis], other.dim[axis], &shape->dim[axis])) {
            dvti_fail(DVT_ERR_SHAPE, "%s: the extents along axis %d add up to more than 2^63", name,
                      axis);
            return false;
        }
        *dtype = dvt_promote(*dtype, arrays[k]->dtype);
    }
    return true;
}

static dvt_array *dvti_concat(const char *name, dvt_array *const *arrays, int n, int axis) {
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape;
    dvt_dtype dtype;
    dvt_array *out;
    int64_t at = 0;
    int k;
    if (!dvti_axis(name, &axis, arrays[0]->shape.ndim) ||
        !dvti_concat_shape(name, arrays, n, axis, &shape, &dtype))
        return NULL;
    out = dvti_array_new(name, shape, dtype, arrays[0]->storage->ctx);
    if (!out)
        return NULL;
    for (k = 0; k < n; k++) {
        dvti_launch launch = dvti_launch_begin(name, DVTI_K_ELEMENTWISE, DVTI_OP_copy);
        int64_t extent = arrays[k]->shape.dim[axis];
        launch.in[0] = dvti_view_of(arrays[k]);
        launch.out[0] = dvti_view_of(out);
        launch.out[0].data =
            (char *)launch.out[0].data + at * out->stride[axis] * dvt_dtype_size(dtype);
        launch.out[0].dim[axis] = extent;
        launch.n_in = launch.n_out = 1;
        launch.compute = dvti_class_of(arrays[k]->dtype);
        if (dvt_size(arrays[k]) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
            return NULL;
        at += extent;
    }
    attr.i[0] = axis;
    return dvti_finish(out, DVTI_OP_concat, name, arrays, n, &attr);
}

static bool dvti_several(const char *name, dvt_array *const *arrays, int n) {
    if (n < 1) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected at least 1 array", name, n);
        return false;
    }
    if (!arrays) {
        dvti_null(name, "arrays");
        return false;
    }
    return dvti_check(name, arrays, n);
}

DVT_API dvt_array *dvt_concat(dvt_array *const *arrays, int n, int axis) {
    return dvti_several("dvt_concat", arrays, n) ? dvti_concat("dvt_concat", arrays, n, axis)
                                                 : NULL;
}

DVT_API dvt_array *dvt_stack(dvt_array *const *arrays, int n, int axis) {
    dvt_array **rows, *out = NULL;
    dvt_scope_guard scope;
    bool good = true;
    int k;
    if (!dvti_several("dvt_stack", arrays, n) ||
        !dvti_axis("dvt_stack", &axis, arrays[0]->shape.ndim + 1))
        return NULL;
    for (k = 1; k < n; k++)
        if (!dvt_shape_equal(arrays[0]->shape, arrays[k]->shape)) {
            dvti_fail(DVT_ERR_SHAPE,
                      "dvt_stack: array 0 is %s and array %d is %s; expected equal shapes: reshape "
                      "or slice one of them",
                      dvti_describe(arrays[0]), k, dvti_describe(arrays[k]));
            return NULL;
        }
    rows = (dvt_array **)dvti_alloc(sizeof *rows * (size_t)n);
    if (!rows) {
        dvti_fail_memory("dvt_stack", (int64_t)(sizeof *rows * (size_t)n));
        return NULL;
    }
    scope = dvt_scope_begin();
    for (k = 0; k < n && good; k++)
        good = (rows[k] = dvt_expand_dims(arrays[k], axis)) != NULL;
    if (good)
        out = dvti_concat("dvt_stack", rows, n, axis);
    dvt_keep(out);
    dvt_scope_end(&scope);
    dvti_free(rows);
    return out;
}

DVT_API dvt_status dvt_split(dvt_array *x, int n, int axis, bool even, dvt_array **out) {
    int64_t extent, begin = 0;
    dvt_scope_guard scope;
    int k;
    if (!dvti_check("dvt_split", &x, 1))
        return dvt_error_code();
    if (!out)
        return dvti_null("dvt_split", "out");
    if (n < 1)
        return dvti_fail(DVT_ERR_RANGE, "dvt_split: n is %d; expected at least 1 part", n);
    if (!dvti_axis("dvt_split", &axis, x->shape.ndim))
        return DVT_ERR_AXIS;
    extent = x->shape.dim[axis];
    if (even && extent % n)
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_split: axis %d of x (%s) has extent %lld, which %d does not divide; "
                         "ask for another number of parts, or even = false",
                         axis, dvti_describe(x), (long long)extent, n);
    scope = dvt_scope_begin();
    for (k = 0; k < n; k++) {
        int64_t end = begin + extent / n + (k < extent % n);
        out[k] = dvt_slice(x, axis, begin, end, 1);
        if (!out[k])
            break;
        begin = end;
    }
    if (k < n) /* the parts made so far end with the scope */
        memset((void *)out, 0, sizeof *out * (size_t)n);
    else
        for (k = 0; k < n; k++)
            dvt_keep(out[k]);
    dvt_scope_end(&scope);
    return out[0] ? DVT_OK : dvt_error_code();
}

/* ---- indices ---- */
/* int64 and contiguous, and in range where that can be looked at without waiting or copying: in main memory. */
static dvt_array *dvti_index_ready(const char *name, dvt_array *indices, int64_t extent, int axis) {
    dvt_array *index = NULL;
    const int64_t *value;
    int64_t i, n = dvt_size(indices);
    if (!dvt_dtype_is_int(indices->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: indices are %s; expected an integer dtype: convert them with dvt_astype",
                  name, dvti_describe(indices));
        return NULL;
    }
    DVT_PAUSE {
        index = dvt_contiguous(dvt_astype(indices, DVT_I64, false));
    }
    if (!index || index->storage->ctx.type != DVT_DEVICE_CPU || extent < 0)
        return index;
    value = (const int64_t *)dvti_view_of(index).data;
    for (i = 0; i < n; i++)
        if (value[i] < -extent || value[i] >= extent) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: index %lld (number %lld) is out of range for axis %d with extent %lld; "
                      "expected %lld to %lld",
                      name, (long long)value[i], (long long)i, axis, (long long)extent,
                      (long long)-extent, (long long)extent - 1);
            return NULL;
        }
    return index;
}

static bool dvti_index_empty(const char *name, const dvt_array *x, const dvt_array *out, int axis) {
    if (x->shape.dim[axis] > 0 || dvt_size(out) == 0)
        return false;
    dvti_fail(DVT_ERR_RANGE, "%s: axis %d of x (%s) is empty; there is nothing to take from it",
              name, axis, dvti_describe(x));
    return true;
}

/* A contiguous array as (A, N, B) around `count` axes from `axis` on. */
static dvti_view dvti_around_axis(const dvt_array *x, int axis, int count) {
    dvti_view view = dvti_view_of(x);
    int64_t dim[3] = {1, 1, 1};
    int i;
    for (i = 0; i < x->shape.ndim; i++)
        dim[i < axis ? 0 : i < axis + count ? 1 : 2] *= x->shape.dim[i];
    view.ndim = 3;
    memcpy(view.dim, dim, sizeof dim);
    view.stride[2] = 1;
    view.stride[1] = dim[2];
    view.stride[0] = dim[1] * dim[2];
    return view;
}

/* x's shape with its axis replaced by others. */
static bool dvti_replace_axis(const char *name, const dvt_array *x, int axis, int count,
                              dvt_shape by, dvt_shape *shape) {
    int i, ndim = x->shape.ndim - count + by.ndim;
    *shape = x->shape;
    if (ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the result would have %d axes; the most there can be are %d",
                  name, ndim, DVT_MAX_DIMS);
        return false;
    }
    shape->ndim = ndim;
    for (i = 0; i < by.ndim; i++)
        shape->dim[axis + i] = by.dim[i];
    for (i = axis + count; i < x->shape.ndim; i++)
        shape->dim[i - count + by.ndim] = x->shape.dim[i];
    return true;
}

/* Launches take or take_add; x is contiguous. */
static bool dvti_take_run(const char *name, dvti_op op, dvt_array *x, dvt_array *index,
                          dvt_array *out, int axis) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_TAKE, op);
    int many = index->shape.ndim;
    launch.in[0] = dvti_around_axis(x, axis, op == DVTI_OP_take ? 1 : many);
    launch.out[0] = dvti_around_axis(out, axis, op == DVTI_OP_take ? many : 1);
    launch.in[1] = dvti_view_of(index);
    launch.in[1].ndim = 1;
    launch.in[1].dim[0] = dvt_size(index);
    launch.in[1].stride[0] = 1;
    launch.n_in = 2;
    launch.n_out = 1;
    launch.compute = dvti_class_of(x->dtype);
    return dvt_size(out) == 0 || dvti_run(out->storage->device, &launch) == DVT_OK;
}

static dvt_array *dvti_take(const char *name, dvti_op op, dvt_array *x, dvt_array *index, int axis,
                            dvt_shape shape) {
    dvti_attr attr = dvti_attr_none();
    dvt_array *in[2], *packed = NULL, *out = dvti_array_new(name, shape, x->dtype, x->storage->ctx);
    in[0] = x;
    in[1] = index;
    if (!out || (op == DVTI_OP_take && dvti_index_empty(name, x, out, axis)))
        return NULL;
    DVT_PAUSE {
        packed = dvt_contiguous(x);
    }
    if (!packed || !dvti_take_run(name, op, packed, index, out, axis))
        return NULL;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, in, 2, &attr);
}

DVT_API dvt_array *dvt_take(dvt_array *x, dvt_array *indices, int axis) {
    dvt_array *in[2], *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check("dvt_take", in, 2) || !dvti_axis("dvt_take", &axis, x->shape.ndim) ||
        !dvti_replace_axis("dvt_take", x, axis, 1, indices->shape, &shape))
        return NULL;
    scope = dvt_scope_begin();
    index = dvti_index_ready("dvt_take", indices, x->shape.dim[axis], axis);
    if (index)
        out = dvti_take("dvt_take", DVTI_OP_take, x, index, axis, shape);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVTI_FN dvt_array *dvti_take_add(dvt_array *g, dvt_array *index, int axis, int64_t n) {
    dvt_array *in[2], *out;
    dvt_scope_guard scope;
    dvt_shape shape, one = DVT_SHAPE(n);
    in[0] = g;
    in[1] = index;
    if (!dvti_check("dvt_take", in, 2) ||
        !dvti_replace_axis("dvt_take", g, axis, index->shape.ndim, one, &shape))
        return NULL;
    scope = dvt_scope_begin();
    out = dvti_take("dvt_take", DVTI_OP_take_add, g, index, axis, shape);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

/* ---- one element per position ---- */
/* The shape that x and the indices broadcast to on all axes but one, where it has `extent`. */
static bool dvti_along_shape(const char *name, const dvt_array *x, const dvt_array *indices,
                             int axis, int64_t extent, dvt_shape *shape) {
    dvt_shape a = x->shape, b = indices->shape;
    if (a.ndim != b.ndim) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and indices are %s; expected the same number of axes: use "
                  "dvt_expand_dims or dvt_pick",
                  name, dvti_describe(x), dvti_describe(indices));
        return false;
    }
    a.dim[axis] = b.dim[axis] = extent;
    return dvti_broadcast(name, a, b, shape);
}

static dvt_array *dvti_take_along(const char *name, dvti_op op, dvt_array *x, dvt_array *index,
                                  int axis, dvt_shape shape, int64_t extent) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_TAKE_ALONG, op);
    dvti_attr attr = dvti_attr_none();
    dvt_array *in[2], *out;
    dvt_shape positions = shape, source = shape;
    out = dvti_array_new(name, shape, x->dtype, x->storage->ctx);
    if (!out || (op == DVTI_OP_take_along && dvti_index_empty(name, x, out, axis)))
        return NULL;
    positions.dim[axis] = extent;
    source.dim[axis] = x->shape.dim[axis];
    launch.in[0] = dvti_view_broadcast(x, source);
    launch.in[1] = dvti_view_broadcast(index, positions);
    launch.out[0] = dvti_view_of(out);
    launch.n_in = 2;
    launch.n_out = 1;
    launch.i[0] = axis;
    launch.compute = dvti_class_of(x->dtype);
    if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    in[0] = x;
    in[1] = index;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, in, 2, &attr);
}

static dvt_array *dvti_take_along_checked(const char *name, dvt_array *x, dvt_array *indices,
                                          int axis) {
    dvt_array *in[2], *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check(name, in, 2) || !dvti_axis(name, &axis, x->shape.ndim) ||
        !dvti_along_shape(name, x, indices, axis,
                          axis < indices->shape.ndim ? indices->shape.dim[axis] : 0, &shape))
        return NULL;
    scope = dvt_scope_begin();
    index = dvti_index_ready(name, indices, x->shape.dim[axis], axis);
    if (index)
        out = dvti_take_along(name, DVTI_OP_take_along, x, index, axis, shape, shape.dim[axis]);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_take_along_axis(dvt_array *x, dvt_array *indices, int axis) {
    return dvti_take_along_checked("dvt_take_along_axis", x, indices, axis);
}

DVTI_FN dvt_array *dvti_take_along_add(dvt_array *g, dvt_array *index, int axis, int64_t n) {
    dvt_array *in[2];
    dvt_shape shape;
    in[0] = g;
    in[1] = index;
    if (!dvti_check("dvt_take_along_axis", in, 2))
        return NULL;
    shape = g->shape;
    shape.dim[axis] = n;
    return dvti_take_along("dvt_take_along_axis", DVTI_OP_take_along_add, g, index, axis, shape,
                           g->shape.dim[axis]);
}

DVT_API dvt_array *dvt_pick(dvt_array *x, dvt_array *indices, int axis, bool keepdims) {
    dvt_array *in[2], *out;
    dvt_scope_guard scope;
    dvt_shape row;
    bool flat;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check("dvt_pick", in, 2) || !dvti_axis("dvt_pick", &axis, x->shape.ndim))
        return NULL;
    row = x->shape;
    row.dim[axis] = 1;
    flat = indices->shape.ndim == x->shape.ndim - 1;
    if (flat)
        memmove(row.dim + axis, row.dim + axis + 1, sizeof *row.dim * (size_t)(--row.ndim - axis));
    if (!dvt_shape_equal(row, indices->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_pick: x is %s and indices are %s; expected one index per row: %s",
                  dvti_describe(x), dvti_describe(indices), dvti_shape_text(row));
        return NULL;
    }
    scope = dvt_scope_begin();
    if (flat)
        indices = dvt_expand_dims(indices, axis);
    out = dvti_take_along_checked("dvt_pick", x, indices, axis);
    if (!keepdims)
        out = dvt_squeeze(out, DVT_AXES(axis));
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

/* ---- one_hot ---- */
DVT_API dvt_array *dvt_one_hot(dvt_array *indices, int64_t depth, dvt_dtype dtype) {
    dvti_launch launch = dvti_launch_begin("dvt_one_hot", DVTI_K_ONE_HOT, DVTI_OP_one_hot);
    dvt_array *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    if (!dvti_check("dvt_one_hot", &indices, 1))
        return NULL;
    if (depth < 0 || indices->shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(depth < 0 ? DVT_ERR_RANGE : DVT_ERR_SHAPE,
                  "dvt_one_hot: depth %lld for indices %s; expected depth >= 0 and fewer than %d "
                  "axes",
                  (long long)depth, dvti_describe(indices), DVT_MAX_DIMS);
        return NULL;
    }
    shape = indices->shape;
    shape.dim[shape.ndim++] = depth;
    scope = dvt_scope_begin();
    index = dvti_index_ready("dvt_one_hot", indices, -1, -1);
    if (index)
        out = dvti_array_new("dvt_one_hot", shape, dtype, indices->storage->ctx);
    if (out) {
        launch.in[0] = dvti_view_of(index);
        launch.out[0] = dvti_view_of(out);
        launch.n_in = launch.n_out = 1;
        if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
            out = NULL;
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}
/* ==== end src/4_ops/op_index.c ==== */
#ifdef DEVTENSOR_LINES
#line 50 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_layers.c ==== */
/* Layers as functions: linear, dropout, normalisations. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_layers.c"
#endif
/* ==== end src/4_ops/op_layers.c ==== */
#ifdef DEVTENSOR_LINES
#line 51 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_matmul.c ==== */
/* Matrix products. One recorded operation on arrays of two axes and more, with batch axes that broadcast; the other
   forms are views around it. */
#ifdef DEVTENSOR_LINES
#line 3 "src/4_ops/op_matmul.c"
#endif

/* One array's extents as a factor: rows x columns after the optional exchange. */
typedef struct dvti_factor {
    int64_t rows, columns;
} dvti_factor;

static dvti_factor dvti_factor_of(const dvt_array *x, bool transpose) {
    dvti_factor f;
    int n = x->shape.ndim;
    f.rows = x->shape.dim[transpose ? n - 1 : n - 2];
    f.columns = x->shape.dim[transpose ? n - 2 : n - 1];
    return f;
}

static dvt_shape dvti_batch_shape(const dvt_array *x) {
    dvt_shape shape = x->shape;
    shape.ndim -= 2;
    return shape;
}

/* Rows and columns of x behind the batch axes of the result, exchanged when asked. */
static dvti_view dvti_factor_view(const dvt_array *x, dvt_shape batch, bool transpose) {
    dvt_shape shape = batch;
    dvti_view view;
    int n = x->shape.ndim, last = batch.ndim + 1;
    shape.ndim += 2;
    shape.dim[last - 1] = x->shape.dim[n - 2];
    shape.dim[last] = x->shape.dim[n - 1];
    view = dvti_view_broadcast(x, shape);
    if (transpose) {
        int64_t dim = view.dim[last], stride = view.stride[last];
        view.dim[last] = view.dim[last - 1];
        view.stride[last] = view.stride[last - 1];
        view.dim[last - 1] = dim;
        view.stride[last - 1] = stride;
    }
    return view;
}

static bool dvti_matmul_batch(const char *name, const dvt_array *a, const dvt_array *b,
                              dvt_shape *batch) {
    dvt_shape x = dvti_batch_shape(a), y = dvti_batch_shape(b);
    int i;
    for (i = 1; i <= DVTI_MIN(x.ndim, y.ndim); i++) {
        int64_t p = x.dim[x.ndim - i], q = y.dim[y.ndim - i];
        if (p != q && p != 1 && q != 1) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: a is %s and b is %s; expected batch axes that broadcast, but %lld "
                      "meets %lld; reshape or slice one of them",
                      name, dvti_describe(a), dvti_describe(b), (long long)p, (long long)q);
            return false;
        }
    }
    return dvti_broadcast(name, x, y, batch);
}

/* a and b have one dtype and at least two axes. */
static dvt_array *dvti_matmul_recorded(const char *name, dvt_array *a, dvt_array *b,
                                       bool transpose_a, bool transpose_b) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_MATMUL, DVTI_OP_matmul);
    dvti_factor fa = dvti_factor_of(a, transpose_a), fb = dvti_factor_of(b, transpose_b);
    dvti_attr attr = dvti_attr_none();
    dvt_array *out, *in[2];
    dvt_shape batch, shape;
    if (!dvti_matmul_batch(name, a, b, &batch))
        return NULL;
    shape = batch;
    shape.dim[shape.ndim++] = fa.rows;
    shape.dim[shape.ndim++] = fb.columns;
    out = dvti_array_new(name, shape, a->dtype, a->storage->ctx);
    if (!out)
        return NULL;
    launch.in[0] = dvti_factor_view(a, batch, transpose_a);
    launch.in[1] = dvti_factor_view(b, batch, transpose_b);
    launch.n_in = 2;
    launch.out[0] = dvti_view_of(out);
    launch.n_out = 1;
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    attr.i[0] = transpose_a;
    attr.i[1] = transpose_b;
    in[0] = a;
    in[1] = b;
    return dvti_finish(out, DVTI_OP_matmul, name, in, 2, &attr);
}

static bool dvti_inner_ok(const char *name, const dvt_array *a, const dvt_array *b, int64_t ka,
                          int64_t kb) {
    if (ka == kb)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: a is %s and b is %s; expected equal extents where they meet, but a has %lld "
              "and b has %lld; reshape or transpose one of them",
              name, dvti_describe(a), dvti_describe(b), (long long)ka, (long long)kb);
    return false;
}

/* The rule of NumPy: an argument of one axis becomes a row (a) or a column (b), and that axis leaves the result. */
static dvt_array *dvti_matmul_any(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                                  bool transpose_b, dvt_dtype dtype) {
    bool row = a->shape.ndim == 1, column = b->shape.ndim == 1;
    dvt_array *out;
    dvt_shape shape;
    int n;
    if (row)
        transpose_a = false;
    if (column)
        transpose_b = false;
    if (!dvti_inner_ok(name, a, b, row ? a->shape.dim[0] : dvti_factor_of(a, transpose_a).columns,
                       column ? b->shape.dim[0] : dvti_factor_of(b, transpose_b).rows))
        return NULL;
    a = dvt_astype(a, dtype, false);
    b = dvt_astype(b, dtype, false);
    if (row)
        a = dvt_expand_dims(a, 0);
    if (column)
        b = dvt_expand_dims(b, 1);
    if (!a || !b)
        return NULL;
    out = dvti_matmul_recorded(name, a, b, transpose_a, transpose_b);
    if (!out || !(row || column))
        return out;
    shape = out->shape;
    n = shape.ndim;
    if (row)
        shape.dim[n - 2] = shape.dim[n - 1];
    shape.ndim -= (row ? 1 : 0) + (column ? 1 : 0);
    return dvt_reshape(out, shape);
}

static dvt_dtype dvti_matmul_dtype(const dvt_array *a, const dvt_array *b) {
    dvt_dtype dtype = dvt_promote(a->dtype, b->dtype);
    return dtype == DVT_BOOL ? DVT_I64 : dtype;
}

static dvt_array *dvti_matmul(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                              bool transpose_b) {
    dvt_scope_guard scope;
    dvt_array *in[2], *out;
    in[0] = a;
    in[1] = b;
    if (!dvti_check(name, in, 2))
        return NULL;
    if (a->shape.ndim == 0 || b->shape.ndim == 0) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: a is %s and b is %s; expected at least one axis; use dvt_mul for scalars",
                  name, dvti_describe(a), dvti_describe(b));
        return NULL;
    }
    scope = dvt_scope_begin();
    out = (dvt_array *)dvt_keep(
        dvti_matmul_any(name, a, b, transpose_a, transpose_b, dvti_matmul_dtype(a, b)));
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_matmul(dvt_array *a, dvt_array *b) {
    return dvti_matmul("dvt_matmul", a, b, false, false);
}

DVT_API dvt_array *dvt_matmul_t(dvt_array *a, dvt_array *b, bool transpose_a, bool transpose_b) {
    return dvti_matmul("dvt_matmul_t", a, b, transpose_a, transpose_b);
}

/* Two arrays of at least two axes, b more than two: every row of a meets every matrix of b, so b's matrices stand
   side by side as one. */
static dvt_array *dvti_dot_wide(dvt_array *a, dvt_array *b) {
    dvt_shape flat = DVT_SHAPE(1, a->shape.dim[a->shape.ndim - 1]), shape = a->shape;
    dvt_axes order = DVT_ALL;
    int64_t columns = 1;
    int i, k_axis = b->shape.ndim - 2;
    if (!dvti_inner_ok("dvt_dot", a, b, flat.dim[1], b->shape.dim[k_axis]))
        return NULL;
    if (a->shape.ndim + b->shape.ndim - 2 > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_dot: a is %s and b is %s, whose product has %d axes; at most %d are "
                  "possible: use dvt_matmul, or reshape",
                  dvti_describe(a), dvti_describe(b), a->shape.ndim + b->shape.ndim - 2,
                  DVT_MAX_DIMS);
        return NULL;
    }
    shape.ndim--;
    for (i = 0; i < shape.ndim; i++)
        flat.dim[0] *= shape.dim[i];
    order.axis[order.n++] = k_axis;
    for (i = 0; i < b->shape.ndim; i++)
        if (i != k_axis) {
            order.axis[order.n++] = i;
            shape.dim[shape.ndim++] = b->shape.dim[i];
            columns *= b->shape.dim[i];
        }
    a = dvt_reshape(a, flat);
    b = dvt_reshape(dvt_transpose(b, order), DVT_SHAPE(flat.dim[1], columns));
    return dvt_reshape(dvti_matmul("dvt_dot", a, b, false, false), shape);
}

DVT_API dvt_array *dvt_dot(dvt_array *a, dvt_array *b) {
    dvt_scope_guard scope;
    dvt_array *in[2], *out;
    in[0] = a;
    in[1] = b;
    if (!dvti_check("dvt_dot", in, 2))
        return NULL;
    if (a->shape.ndim == 0 || b->shape.ndim == 0)
        return dvt_mul(a, b);
    if (a->shape.ndim == 1 || b->shape.ndim <= 2)
        return dvti_matmul("dvt_dot", a, b, false, false);
    scope = dvt_scope_begin();
    out = (dvt_array *)dvt_keep(dvti_dot_wide(a, b));
    dvt_scope_end(&scope);
    return out;
}
/* ==== end src/4_ops/op_matmul.c ==== */
#ifdef DEVTENSOR_LINES
#line 52 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_pool.c ==== */
/* Pooling: parameters, shapes, and the recorded operations, each other's gradients. Windows are cut to x: padding is never the
   largest, and counts in a mean only where asked. */
#ifdef DEVTENSOR_LINES
#line 3 "src/4_ops/op_pool.c"
#endif

/* Zeros become defaults, in this one place; `global` takes its window from x. */
static void dvti_pool2d_resolve(const dvt_pool2d_params *p, const dvt_array *x, dvti_attr *attr) {
    int i;
    *attr = dvti_attr_none();
    for (i = 0; i < 2; i++) {
        if (p->global) {
            attr->i[i] = x->shape.dim[2 + i];
            attr->i[2 + i] = 1;
            continue;
        }
        attr->i[i] = p->size[i] ? p->size[i] : i ? attr->i[0] : 0;
        attr->i[2 + i] = p->stride[i]        ? p->stride[i]
                         : i && p->stride[0] ? p->stride[0]
                                             : attr->i[i];
        attr->i[4 + i] = p->padding[i];
    }
    attr->i[6] = p->exclude_padding;
}

static bool dvti_pool2d_valid(const char *name, const dvti_attr *attr) {
    int i;
    for (i = 0; i < 2; i++) {
        int64_t size = attr->i[i], stride = attr->i[2 + i], padding = attr->i[4 + i];
        const char *axis = i ? "width" : "height";
        if (size < 1 || stride < 1) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: along the %s, size is %lld and stride %lld; expected at least 1 (a "
                      "stride of 0 means the "
                      "size)",
                      name, axis, (long long)size, (long long)stride);
            return false;
        }
        if (padding < 0 || padding > size / 2) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: along the %s, padding is %lld; expected 0 to %lld, half the size of the "
                      "window",
                      name, axis, (long long)padding, (long long)(size / 2));
            return false;
        }
    }
    return true;
}

/* The number of windows along one axis, or -1 with the error set. */
static int64_t dvti_pool2d_extent(const char *name, const char *axis, int64_t x, int64_t size,
                                  int64_t stride, int64_t padding, bool ceil_mode) {
    int64_t padded = x, n;
    if (!dvti_sum(x, 2 * padding, &padded) || x < 1 || size > padded) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x has a %s of %lld, with padding on both sides %lld; expected at least 1 "
                  "and at least the window's %lld",
                  name, axis, (long long)x, (long long)padded, (long long)size);
        return -1;
    }
    n = (padded - size) / stride + 1;
    /* Rounded up, when the further window still begins inside x. */
    if (ceil_mode && (padded - size) % stride && n <= (x + padding - 1) / stride)
        n++;
    return n;
}

static bool dvti_pool2d_begin(const char *name, dvt_array *x, const dvt_pool2d_params *p,
                              dvti_attr *attr) {
    int i;
    if (!x || !p) {
        dvti_null(name, x ? "p" : "x");
        return false;
    }
    if (x->shape.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s; expected (batch, channels, height, width): reshape it", name,
                  dvti_describe(x));
        return false;
    }
    if (!dvt_dtype_is_float(x->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: x is %s; expected floats: convert it with dvt_astype", name,
                  dvti_describe(x));
        return false;
    }
    dvti_pool2d_resolve(p, x, attr);
    if (p->global && (attr->i[0] < 1 || attr->i[1] < 1)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected a height and width of at least 1", name,
                  dvti_describe(x));
        return false;
    }
    if (!dvti_pool2d_valid(name, attr))
        return false;
    for (i = 0; i < 2; i++) {
        attr->i[7 + i] =
            dvti_pool2d_extent(name, i ? "width" : "height", x->shape.dim[2 + i], attr->i[i],
                               attr->i[2 + i], attr->i[4 + i], p->ceil_mode);
        if (attr->i[7 + i] < 0)
            return false;
    }
    return true;
}

/* Contiguous inputs (recorded where that takes a copy), the launch, the tape. */
static dvt_array *dvti_pool2d_run(const char *name, dvti_op op, dvt_array *const *in, int n,
                                  dvt_shape shape, const dvti_attr *attr) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_POOL2D, op);
    dvt_array *ready[2], *out;
    int i;
    if (!dvti_check(name, in, n))
        return NULL;
    for (i = 0; i < n; i++) {
        if (!(ready[i] = dvt_contiguous(in[i])))
            return NULL;
        launch.in[i] = dvti_view_of(ready[i]);
    }
    out = dvti_array_new(name, shape, in[0]->dtype, in[0]->storage->ctx);
    if (!out)
        return NULL;
    launch.n_in = n;
    launch.out[0] = dvti_view_of(out);
    launch.n_out = 1;
    memcpy(launch.i, attr->i, 7 * sizeof launch.i[0]);
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return dvti_finish(out, op, name, ready, n, attr);
}

static dvt_array *dvti_pool2d(const char *name, dvti_op op, dvt_array *const *in, int n,
                              dvt_shape shape, const dvti_attr *attr) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *out = (dvt_array *)dvt_keep(dvti_pool2d_run(name, op, in, n, shape, attr));
    dvt_scope_end(&scope);
    return out;
}

/* The shape that pooling x gives. */
static dvt_shape dvti_pool2d_result(dvt_shape x, const dvti_attr *attr) {
    x.dim[2] = attr->i[7];
    x.dim[3] = attr->i[8];
    return x;
}

DVT_API dvt_array *dvt_max_pool2d(dvt_array *x, const dvt_pool2d_params *p) {
    dvti_attr attr;
    if (!dvti_pool2d_begin("dvt_max_pool2d", x, p, &attr))
        return NULL;
    return dvti_pool2d("dvt_max_pool2d", DVTI_OP_max_pool2d, &x, 1,
                       dvti_pool2d_result(x->shape, &attr), &attr);
}

DVT_API dvt_array *dvt_avg_pool2d(dvt_array *x, const dvt_pool2d_params *p) {
    dvti_attr attr;
    return dvti_pool2d_begin("dvt_avg_pool2d", x, p, &attr) ? dvti_avg_pool2d(x, &attr) : NULL;
}

DVTI_FN dvt_array *dvti_avg_pool2d(dvt_array *x, const dvti_attr *attr) {
    if (!dvti_check("dvt_avg_pool2d", &x, 1))
        return NULL;
    return dvti_pool2d("dvt_avg_pool2d", DVTI_OP_avg_pool2d, &x, 1,
                       dvti_pool2d_result(x->shape, attr), attr);
}

/* The gradients get shapes that a forward call has made; anything else is refused before it is read. */
static bool dvti_pool2d_agree(const char *name, dvt_shape given, dvt_shape expected) {
    if (dvt_shape_equal(given, expected))
        return true;
    dvti_fail(DVT_ERR_SHAPE, "%s: the gradient has shape %s; expected %s", name,
              dvti_shape_text(given), dvti_shape_text(expected));
    return false;
}

DVTI_FN dvt_array *dvti_avg_pool2d_data(dvt_array *g, dvt_shape x_shape, const dvti_attr *attr) {
    if (!dvti_check("dvt_avg_pool2d", &g, 1) ||
        !dvti_pool2d_agree("dvt_avg_pool2d", g->shape, dvti_pool2d_result(x_shape, attr)))
        return NULL;
    return dvti_pool2d("dvt_avg_pool2d", DVTI_OP_avg_pool2d_data, &g, 1, x_shape, attr);
}

static dvt_array *dvti_max_pool2d_pair(dvti_op op, dvt_array *a, dvt_array *x,
                                       const dvti_attr *attr) {
    bool pick = op == DVTI_OP_max_pool2d_pick;
    dvt_array *in[2];
    dvt_shape result;
    in[0] = a;
    in[1] = x;
    if (!dvti_check("dvt_max_pool2d", in, 2))
        return NULL;
    result = dvti_pool2d_result(x->shape, attr);
    if (!dvti_pool2d_agree("dvt_max_pool2d", a->shape, pick ? x->shape : result))
        return NULL;
    in[0] = dvt_astype(a, x->dtype, false);
    return dvti_pool2d("dvt_max_pool2d", op, in, 2, pick ? result : x->shape, attr);
}

DVTI_FN dvt_array *dvti_max_pool2d_data(dvt_array *g, dvt_array *x, const dvti_attr *attr) {
    return dvti_max_pool2d_pair(DVTI_OP_max_pool2d_data, g, x, attr);
}

DVTI_FN dvt_array *dvti_max_pool2d_pick(dvt_array *v, dvt_array *x, const dvti_attr *attr) {
    return dvti_max_pool2d_pair(DVTI_OP_max_pool2d_pick, v, x, attr);
}
/* ==== end src/4_ops/op_pool.c ==== */
#ifdef DEVTENSOR_LINES
#line 53 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_random.c ==== */
/* Random arrays: the distributions, from the streams of contexts and from explicit keys, and what makes keys. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_random.c"
#endif

static dvt_array *dvti_random(dvti_launch *launch, const dvt_key *key, int words, dvt_shape shape,
                              dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *out = dvti_array_new(launch->name, shape, dtype, ctx);
    if (!out || dvt_size(out) == 0)
        return out;
    return dvti_draw(out, launch, key, words) == DVT_OK ? out : NULL;
}

/* ---- distributions ---- */
static bool dvti_random_dtype(const char *name, dvt_dtype dtype, bool fits, const char *expected) {
    if (!fits)
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: got dtype %s; expected %s: convert the result with dvt_astype", name,
                  dvt_dtype_name(dtype), expected);
    return fits;
}

static dvt_array *dvti_uniform(const char *name, const dvt_key *key, double low, double high,
                               dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_RANDOM, DVTI_OP_uniform);
    double a, b, range;
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_float(dtype), "a floating dtype"))
        return NULL;
    a = dvti_round_as(dtype, low);
    b = dvti_round_as(dtype, high);
    range = dvti_round_as(dtype, b - a);
    if (!(low <= high) || range - range != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: bounds %g and %g; expected low <= high, and high - low within %s", name, low,
                  high, dvt_dtype_name(dtype));
        return NULL;
    }
    launch.f[0] = a;
    launch.f[1] = b;
    launch.f[2] = a < b ? dvti_below(dtype, b) : a;
    return dvti_random(&launch, key, dtype == DVT_F64 ? 2 : 1, shape, dtype, ctx);
}

static dvt_array *dvti_normal(const char *name, const dvt_key *key, double mean, double deviation,
                              dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_RANDOM, DVTI_OP_normal);
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_float(dtype), "a floating dtype"))
        return NULL;
    if (!(deviation >= 0) || deviation - deviation != 0 || mean - mean != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: mean %g and deviation %g; expected finite numbers, and deviation >= 0", name,
                  mean, deviation);
        return NULL;
    }
    launch.f[0] = mean;
    launch.f[1] = deviation;
    return dvti_random(&launch, key, dtype == DVT_F64 ? 2 : 1, shape, dtype, ctx);
}

/* high is the first number that is not drawn, so it may be one above the dtype's largest. */
static int64_t dvti_int_end(dvt_dtype dtype) {
    return dtype == DVT_I64 ? INT64_MAX : dvti_int_largest(dtype) + 1;
}

static dvt_array *dvti_randint(const char *name, const dvt_key *key, int64_t low, int64_t high,
                               dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_RANDOM, DVTI_OP_randint);
    if (!dvti_random_dtype(name, dtype, dvt_dtype_is_int(dtype), "an integer dtype"))
        return NULL;
    if (low >= high || low < dvti_int_lowest(dtype) || high > dvti_int_end(dtype)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: low %lld and high %lld; expected low < high, low >= %lld and high <= %lld "
                  "for %s",
                  name, (long long)low, (long long)high, (long long)dvti_int_lowest(dtype),
                  (long long)dvti_int_end(dtype), dvt_dtype_name(dtype));
        return NULL;
    }
    launch.i[4] = low;
    launch.i[5] = (int64_t)((uint64_t)high - (uint64_t)low);
    return dvti_random(&launch, key, 2, shape, dtype, ctx);
}

static dvt_array *dvti_bernoulli(const char *name, const dvt_key *key, double p, dvt_shape shape,
                                 dvt_dtype dtype, dvt_ctx ctx) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_RANDOM, DVTI_OP_bernoulli);
    if (!(p >= 0 && p <= 1)) {
        dvti_fail(DVT_ERR_RANGE, "%s: p is %g; expected a probability of 0 to 1", name, p);
        return NULL;
    }
    launch.f[0] = p;
    return dvti_random(&launch, key, 1, shape, dtype, ctx);
}

static dvt_array *dvti_permutation(const char *name, const dvt_key *key, int64_t n, dvt_ctx ctx) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_RANDOM, DVTI_OP_permutation);
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %lld; expected 0 or more", name, (long long)n);
        return NULL;
    }
    return dvti_random(&launch, key, 2, DVT_SHAPE(n), DVT_I64, ctx);
}

DVT_API dvt_array *dvt_uniform(double low, double high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx) {
    return dvti_uniform("dvt_uniform", NULL, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_normal(double mean, double deviation, dvt_shape shape, dvt_dtype dtype,
                              dvt_ctx ctx) {
    return dvti_normal("dvt_normal", NULL, mean, deviation, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_randint(int64_t low, int64_t high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx) {
    return dvti_randint("dvt_randint", NULL, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_bernoulli(double p, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_bernoulli("dvt_bernoulli", NULL, p, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_permutation(int64_t n, dvt_ctx ctx) {
    return dvti_permutation("dvt_permutation", NULL, n, ctx);
}

DVT_API dvt_array *dvt_key_uniform(dvt_key key, double low, double high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_uniform("dvt_key_uniform", &key, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_normal(dvt_key key, double mean, double deviation, dvt_shape shape,
                                  dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_normal("dvt_key_normal", &key, mean, deviation, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_randint(dvt_key key, int64_t low, int64_t high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx) {
    return dvti_randint("dvt_key_randint", &key, low, high, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_bernoulli(dvt_key key, double p, dvt_shape shape, dvt_dtype dtype,
                                     dvt_ctx ctx) {
    return dvti_bernoulli("dvt_key_bernoulli", &key, p, shape, dtype, ctx);
}

DVT_API dvt_array *dvt_key_permutation(dvt_key key, int64_t n, dvt_ctx ctx) {
    return dvti_permutation("dvt_key_permutation", &key, n, ctx);
}

/* ---- keys ---- */
DVT_API dvt_key dvt_key_new(uint64_t seed) {
    dvt_key key;
    key.word[0] = (uint32_t)(seed >> 32);
    key.word[1] = (uint32_t)seed;
    return key;
}

static dvt_key dvti_key_derive(dvt_key key, uint32_t number, uint32_t use) {
    uint32_t counter[4] = {0, 0, 0, 0}, words[4];
    dvt_key result;
    counter[0] = number;
    counter[3] = use;
    dvti_philox4x32(counter, key.word, words);
    result.word[0] = words[0];
    result.word[1] = words[1];
    return result;
}

DVT_API void dvt_key_split(dvt_key key, int n, dvt_key *out) {
    bool jax = dvti_rng_engine_now() == DVT_RNG_JAX;
    int i;
    if (n < 0)
        dvti_fail(DVT_ERR_RANGE, "dvt_key_split: n is %d; expected 0 or more", n);
    else if (!out && n)
        dvti_null("dvt_key_split", "out");
    for (i = 0; out && i < n; i++) {
        if (jax) {
            out[i].word[0] = dvti_jax_word(key.word, 2 * (int64_t)n, 2 * (int64_t)i);
            out[i].word[1] = dvti_jax_word(key.word, 2 * (int64_t)n, 2 * (int64_t)i + 1);
        } else {
            out[i] = dvti_key_derive(key, (uint32_t)i, DVTI_COUNTER_SPLIT);
        }
    }
}

DVT_API dvt_key dvt_key_fold_in(dvt_key key, uint32_t number) {
    uint32_t counter[2] = {0, 0};
    dvt_key result;
    if (dvti_rng_engine_now() != DVT_RNG_JAX)
        return dvti_key_derive(key, number, DVTI_COUNTER_FOLD_IN);
    counter[1] = number;
    dvti_threefry2x32(key.word, counter, result.word);
    return result;
}
/* ==== end src/4_ops/op_random.c ==== */
#ifdef DEVTENSOR_LINES
#line 54 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_reduce.c ==== */
/* Reductions over axes, and softmax along one. What 5_grad finds in a node's attributes: for reductions i[0] is the bit mask of the
   reduced axes and i[1] is keepdims; for softmax and log_softmax i[0] is the axis, not negative. var and std are composed
   of recorded operations, and int64 and bool results are never recorded. */
#ifdef DEVTENSOR_LINES
#line 4 "src/4_ops/op_reduce.c"
#endif

/* The result's shape, and the kernel's view of it, which has the kept axes only. */
static dvt_shape dvti_reduced_shape(dvt_shape x, unsigned mask, bool keepdims) {
    dvt_shape shape = DVT_SCALAR;
    int i;
    for (i = 0; i < x.ndim; i++)
        if (!(mask & 1u << i))
            shape.dim[shape.ndim++] = x.dim[i];
        else if (keepdims)
            shape.dim[shape.ndim++] = 1;
    return shape;
}

static dvti_view dvti_reduced_view(const dvt_array *out, dvt_shape x, unsigned mask) {
    dvt_shape kept = dvti_reduced_shape(x, mask, false);
    dvti_view view = dvti_view_of(out);
    view.ndim = kept.ndim;
    memcpy(view.dim, kept.dim, sizeof view.dim);
    dvti_strides_c(kept, view.stride);
    return view;
}

/* The kept axes first, then the reduced ones. Returns how many elements make one result. */
static int64_t dvti_reduction_view(const dvt_array *x, unsigned mask, dvti_view *view) {
    int64_t count = 1;
    int pass, i, to = 0;
    *view = dvti_view_of(x);
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < x->shape.ndim; i++)
            if ((int)(mask >> i & 1u) == pass) {
                view->dim[to] = x->shape.dim[i];
                view->stride[to++] = x->stride[i];
                if (pass)
                    count *= x->shape.dim[i];
            }
    return count;
}

static bool dvti_needs_elements(dvti_op op) {
    return op == DVTI_OP_min || op == DVTI_OP_max || op == DVTI_OP_argmin || op == DVTI_OP_argmax;
}

static dvt_dtype dvti_reduction_dtype(dvti_op op, dvt_dtype dtype) {
    switch (op) {
    case DVTI_OP_any:
    case DVTI_OP_all:
        return DVT_BOOL;
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        return DVT_I64;
    case DVTI_OP_min:
    case DVTI_OP_max:
        return dtype;
    case DVTI_OP_sum:
    case DVTI_OP_prod:
        return dvt_dtype_is_float(dtype) ? dtype : DVT_I64;
    default:
        return dvti_float_dtype(dtype);
    }
}

static dvt_array *dvti_reduce_mask(const char *name, dvti_op op, dvt_array *x, unsigned mask,
                                   bool keepdims) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_REDUCE, op);
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape = dvti_reduced_shape(x->shape, mask, keepdims);
    int64_t count = dvti_reduction_view(x, mask, &launch.in[0]);
    dvt_array *out;
    if (count == 0 && dvti_needs_elements(op)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and a reduced axis is empty; nothing is the extreme of no elements: "
                  "give at least one",
                  name, dvti_describe(x));
        return NULL;
    }
    out = dvti_array_new(name, shape, dvti_reduction_dtype(op, x->dtype), x->storage->ctx);
    if (!out)
        return NULL;
    launch.compute = dvti_class_of(x->dtype);
    launch.n_in = launch.n_out = 1;
    launch.out[0] = dvti_reduced_view(out, x->shape, mask);
    launch.i[0] = launch.out[0].ndim;
    launch.f[0] = (double)count;
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    attr.i[0] = mask;
    attr.i[1] = keepdims;
    return dvti_finish(out, op, name, &x, 1, &attr);
}

static dvt_array *dvti_reduce(const char *name, dvti_op op, dvt_array *x, dvt_axes axes,
                              bool keepdims) {
    unsigned mask;
    if (!dvti_check(name, &x, 1) || !dvti_axes_mask(name, axes, x->shape.ndim, &mask))
        return NULL;
    return dvti_reduce_mask(name, op, x, mask, keepdims);
}

#define DVTI_REDUCTION(name)                                                                       \
    DVT_API dvt_array *dvt_##name(dvt_array *x, dvt_axes axes, bool keepdims) {                    \
        return dvti_reduce("dvt_" #name, DVTI_OP_##name, x, axes, keepdims);                       \
    }
DVTI_REDUCTION(sum)
DVTI_REDUCTION(prod)
DVTI_REDUCTION(mean)
DVTI_REDUCTION(min)
DVTI_REDUCTION(max)
DVTI_REDUCTION(any)
DVTI_REDUCTION(all)
DVTI_REDUCTION(norm)
DVTI_REDUCTION(logsumexp)
#undef DVTI_REDUCTION

static dvt_array *dvti_arg_extreme(const char *name, dvti_op op, dvt_array *x, int axis,
                                   bool keepdims) {
    if (!dvti_check(name, &x, 1))
        return NULL;
    if (axis == DVT_FLAT)
        return dvti_reduce(name, op, x, DVT_ALL, keepdims);
    if (!dvti_axis(name, &axis, x->shape.ndim))
        return NULL;
    return dvti_reduce_mask(name, op, x, 1u << axis, keepdims);
}

DVT_API dvt_array *dvt_argmin(dvt_array *x, int axis, bool keepdims) {
    return dvti_arg_extreme("dvt_argmin", DVTI_OP_argmin, x, axis, keepdims);
}

DVT_API dvt_array *dvt_argmax(dvt_array *x, int axis, bool keepdims) {
    return dvti_arg_extreme("dvt_argmax", DVTI_OP_argmax, x, axis, keepdims);
}

/* ---- spread ---- */
/* The mean of squared distances from the mean, in at least float32: squares leave a 16-bit float's range early. A negative
   divisor counts as 0, as in NumPy. */
static dvt_array *dvti_spread(const char *name, dvt_array *x, dvt_axes axes, double ddof,
                              bool keepdims, bool root) {
    dvt_array *out = NULL, *wide;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    dvti_view view;
    unsigned mask;
    double divisor;
    if (!dvti_check(name, &x, 1) || !dvti_axes_mask(name, axes, x->shape.ndim, &mask))
        return NULL;
    if (ddof != ddof) {
        dvti_fail(DVT_ERR_VALUE, "%s: ddof is NaN; expected a number such as 0 or 1", name);
        return NULL;
    }
    scope = dvt_scope_begin();
    dtype = dvti_float_dtype(x->dtype);
    divisor = (double)dvti_reduction_view(x, mask, &view) - ddof;
    wide = dvt_astype(x, dtype == DVT_F64 ? DVT_F64 : DVT_F32, false);
    out = dvt_square(dvt_sub(wide, dvt_mean(wide, axes, true)));
    out = dvt_div_scalar(dvt_sum(out, axes, keepdims), DVTI_MAX(divisor, 0));
    out = dvt_astype(root ? dvt_sqrt(out) : out, dtype, false);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_var(dvt_array *x, dvt_axes axes, double ddof, bool keepdims) {
    return dvti_spread("dvt_var", x, axes, ddof, keepdims, false);
}

DVT_API dvt_array *dvt_std(dvt_array *x, dvt_axes axes, double ddof, bool keepdims) {
    return dvti_spread("dvt_std", x, axes, ddof, keepdims, true);
}

/* ---- softmax ---- */
static void dvti_axis_last(dvti_view *view, int axis) {
    int last = view->ndim - 1;
    int64_t dim = view->dim[axis], stride = view->stride[axis];
    view->dim[axis] = view->dim[last];
    view->stride[axis] = view->stride[last];
    view->dim[last] = dim;
    view->stride[last] = stride;
}

static dvt_array *dvti_softmax(const char *name, dvti_op op, dvt_array *x, int axis) {
    dvti_launch launch = dvti_launch_begin(name, DVTI_K_SOFTMAX, op);
    dvti_attr attr = dvti_attr_none();
    dvt_array *out;
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x->shape.ndim))
        return NULL;
    out = dvti_array_new(name, x->shape, dvti_float_dtype(x->dtype), x->storage->ctx);
    if (!out)
        return NULL;
    launch.compute = dvti_class_of(out->dtype);
    launch.n_in = launch.n_out = 1;
    launch.in[0] = dvti_view_of(x);
    launch.out[0] = dvti_view_of(out);
    dvti_axis_last(&launch.in[0], axis);
    dvti_axis_last(&launch.out[0], axis);
    if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, &x, 1, &attr);
}

DVT_API dvt_array *dvt_softmax(dvt_array *x, int axis) {
    return dvti_softmax("dvt_softmax", DVTI_OP_softmax, x, axis);
}

DVT_API dvt_array *dvt_log_softmax(dvt_array *x, int axis) {
    return dvti_softmax("dvt_log_softmax", DVTI_OP_log_softmax, x, axis);
}
/* ==== end src/4_ops/op_reduce.c ==== */
#ifdef DEVTENSOR_LINES
#line 55 "src/devtensor_spine.h"
#endif
/* ==== begin src/4_ops/op_view.c ==== */
/* Views: other shapes and strides on the same memory. */
#ifdef DEVTENSOR_LINES
#line 2 "src/4_ops/op_view.c"
#endif

static dvt_array *dvti_reshaped(const char *name, dvt_array *x, dvt_shape shape,
                                const int64_t *stride) {
    dvt_array *view = dvti_view_new(name, x, shape, stride, x->offset);
    return dvti_finish(view, DVTI_OP_reshape, name, &x, 1, NULL);
}

/* ---- slice ---- */
/* Python's rules: bounds are counted from the end when negative, and cut to what exists. */
static int64_t dvti_bound(int64_t at, int64_t extent, int64_t low, int64_t high) {
    if (at < 0)
        at = at < -extent ? low : at + extent;
    return at < low ? low : at > high ? high : at;
}

DVT_API dvt_array *dvt_slice(dvt_array *x, int axis, int64_t start, int64_t stop, int64_t step) {
    dvti_attr attr = dvti_attr_none();
    int64_t extent, n;
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_array *view;
    if (!dvti_check("dvt_slice", &x, 1) || !dvti_axis("dvt_slice", &axis, x->shape.ndim))
        return NULL;
    if (step == 0 || step == INT64_MIN) {
        dvti_fail(DVT_ERR_VALUE, "dvt_slice: step is %lld; expected any other number",
                  (long long)step);
        return NULL;
    }
    extent = x->shape.dim[axis];
    if (step > 0) {
        start = dvti_bound(start, extent, 0, extent);
        stop = stop == DVT_END ? extent : dvti_bound(stop, extent, 0, extent);
        n = stop > start ? (stop - start - 1) / step + 1 : 0;
    } else {
        start = dvti_bound(start, extent, -1, extent - 1);
        stop = stop == DVT_END ? -1 : dvti_bound(stop, extent, -1, extent - 1);
        n = start > stop ? (start - stop - 1) / -step + 1 : 0;
    }
    if (n == 0)
        start = 0;
    shape = x->shape;
    shape.dim[axis] = n;
    memcpy(stride, x->stride, sizeof stride);
    if (n > 1)
        stride[axis] *= step; /* n > 1 bounds |step| by the extent, so this fits */
    view = dvti_view_new("dvt_slice", x, shape, stride, x->offset + start * x->stride[axis]);
    attr.i[0] = axis;
    attr.i[1] = start;
    attr.i[2] = step;
    attr.i[3] = extent;
    return dvti_finish(view, DVTI_OP_slice, "dvt_slice", &x, 1, &attr);
}

DVTI_FN dvt_array *dvti_unslice(dvt_array *g, int axis, int64_t start, int64_t step,
                                int64_t extent) {
    dvti_attr attr = dvti_attr_none();
    dvt_scope_guard scope;
    dvt_array *out, *window;
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    if (!dvti_check("dvt_slice", &g, 1))
        return NULL;
    shape = g->shape;
    shape.dim[axis] = extent;
    scope = dvt_scope_begin();
    out = dvt_zeros(shape, g->dtype, g->storage->ctx);
    if (out && dvt_size(g) > 0) {
        memcpy(stride, out->stride, sizeof stride);
        if (g->shape.dim[axis] > 1)
            stride[axis] *= step;
        window = dvti_view_new("dvt_slice", out, g->shape, stride, start * out->stride[axis]);
        if (!window || dvti_copy_elements("dvt_slice", window, g) != DVT_OK)
            out = NULL;
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    attr.i[0] = axis;
    attr.i[1] = start;
    attr.i[2] = step;
    attr.i[3] = extent;
    return dvti_finish(out, DVTI_OP_unslice, "dvt_slice", &g, 1, &attr);
}

DVT_API dvt_array *dvt_rows(dvt_array *x, int64_t start, int64_t stop) {
    if (!dvti_check("dvt_rows", &x, 1))
        return NULL;
    if (x->shape.ndim == 0) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_rows: x (%s) has no axis to cut; reshape it first",
                  dvti_describe(x));
        return NULL;
    }
    return dvt_slice(x, 0, start, stop, 1);
}

DVT_API dvt_array *dvt_index(dvt_array *x, int64_t i) {
    int64_t extent, at;
    dvt_scope_guard scope;
    dvt_array *row;
    dvt_shape shape;
    if (!dvti_check("dvt_index", &x, 1))
        return NULL;
    if (x->shape.ndim == 0) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_index: x (%s) has no axis to index; use dvt_item",
                  dvti_describe(x));
        return NULL;
    }
    extent = x->shape.dim[0];
    at = i < 0 ? i + extent : i;
    if (at < 0 || at >= extent) {
        dvti_fail(DVT_ERR_RANGE, "dvt_index: index %lld of x (%s); expected %lld to %lld",
                  (long long)i, dvti_describe(x), (long long)-extent, (long long)extent - 1);
        return NULL;
    }
    shape = x->shape;
    shape.ndim--;
    memmove(shape.dim, shape.dim + 1, sizeof shape.dim[0] * (size_t)shape.ndim);
    scope = dvt_scope_begin();
    row = dvt_slice(x, 0, at, at + 1, 1);
    if (row)
        row = dvti_reshaped("dvt_index", row, shape, row->stride + 1);
    dvt_keep(row);
    dvt_scope_end(&scope);
    return row;
}

/* ---- order of axes ---- */
static dvt_array *dvti_permuted(const char *name, dvt_array *x, const int *order) {
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape = x->shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_array *view;
    int i;
    for (i = 0; i < shape.ndim; i++) {
        shape.dim[i] = x->shape.dim[order[i]];
        stride[i] = x->stride[order[i]];
        attr.i[i] = order[i];
    }
    view = dvti_view_new(name, x, shape, stride, x->offset);
    return dvti_finish(view, DVTI_OP_transpose, name, &x, 1, &attr);
}

DVT_API dvt_array *dvt_t(dvt_array *x) {
    int order[DVT_MAX_DIMS], i;
    if (!dvti_check("dvt_t", &x, 1))
        return NULL;
    for (i = 0; i < x->shape.ndim; i++)
        order[i] = x->shape.ndim - 1 - i;
    return dvti_permuted("dvt_t", x, order);
}

DVT_API dvt_array *dvt_transpose(dvt_array *x, dvt_axes order) {
    unsigned mask;
    int i;
    if (!dvti_check("dvt_transpose", &x, 1))
        return NULL;
    if (order.n == 0)
        return dvt_t(x);
    if (!dvti_axes_mask("dvt_transpose", order, x->shape.ndim, &mask))
        return NULL;
    if (order.n != x->shape.ndim) {
        dvti_fail(DVT_ERR_AXIS, "dvt_transpose: %d axes for x (%s); name every axis once", order.n,
                  dvti_describe(x));
        return NULL;
    }
    for (i = 0; i < order.n; i++)
        if (order.axis[i] < 0)
            order.axis[i] += order.n;
    return dvti_permuted("dvt_transpose", x, order.axis);
}

DVT_API dvt_array *dvt_swapaxes(dvt_array *x, int axis1, int axis2) {
    int order[DVT_MAX_DIMS], i;
    if (!dvti_check("dvt_swapaxes", &x, 1) || !dvti_axis("dvt_swapaxes", &axis1, x->shape.ndim) ||
        !dvti_axis("dvt_swapaxes", &axis2, x->shape.ndim))
        return NULL;
    for (i = 0; i < x->shape.ndim; i++)
        order[i] = i == axis1 ? axis2 : i == axis2 ? axis1 : i;
    return dvti_permuted("dvt_swapaxes", x, order);
}

/* ---- reshape ---- */
/* Replaces one -1 by what is left; false with SHAPE set when the sizes do not agree. */
static bool dvti_reshape_resolve(dvt_array *x, dvt_shape *shape) {
    dvt_shape known = *shape;
    int64_t size = dvt_shape_size(x->shape), rest;
    int free_axis = -1, i;
    bool good = shape->ndim >= 0 && shape->ndim <= DVT_MAX_DIMS;
    for (i = 0; good && i < shape->ndim; i++)
        if (shape->dim[i] == -1) {
            good = free_axis < 0;
            free_axis = i;
            known.dim[i] = 1;
        }
    rest = good ? dvt_shape_size(known) : -1;
    if (good && free_axis >= 0) {
        good = rest > 0 && size % rest == 0;
        if (good)
            shape->dim[free_axis] = size / rest;
    } else
        good = good && rest == size;
    if (!good)
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_reshape: x is %s with %lld elements, and the new shape is %s; expected as "
                  "many elements (one "
                  "extent may be -1)",
                  dvti_describe(x), (long long)size, dvti_shape_text(*shape));
    return good;
}

/* Strides of `shape` on x's memory when that needs no copy. Old and new axes are matched in runs of equal size; within a run the
   old axes must lie one after the other. */
static bool dvti_reshape_strides(const dvt_array *x, dvt_shape shape, int64_t *stride) {
    int64_t dim[DVT_MAX_DIMS], step[DVT_MAX_DIMS];
    int n = 0, i, o = 0, s = 0;
    if (dvt_shape_size(shape) == 0 || dvt_is_contiguous(x)) {
        dvti_strides_c(shape, stride);
        return true;
    }
    for (i = 0; i < x->shape.ndim; i++)
        if (x->shape.dim[i] != 1) {
            dim[n] = x->shape.dim[i];
            step[n++] = x->stride[i];
        }
    while (o < n && s < shape.ndim) {
        int o_end = o + 1, s_end = s + 1, k;
        int64_t old_size = dim[o], new_size = shape.dim[s];
        while (old_size != new_size)
            if (new_size < old_size)
                new_size *= shape.dim[s_end++];
            else
                old_size *= dim[o_end++];
        for (k = o; k < o_end - 1; k++)
            if (step[k] != dim[k + 1] * step[k + 1])
                return false;
        stride[s_end - 1] = step[o_end - 1];
        for (k = s_end - 1; k > s; k--)
            stride[k - 1] = stride[k] * shape.dim[k];
        o = o_end;
        s = s_end;
    }
    for (; s < shape.ndim; s++) /* what is left over has extent 1 */
        stride[s] = 1;
    return true;
}

DVT_API dvt_array *dvt_reshape(dvt_array *x, dvt_shape shape) {
    int64_t stride[DVT_MAX_DIMS];
    dvt_scope_guard scope;
    dvt_array *packed, *out = NULL;
    if (!dvti_check("dvt_reshape", &x, 1) || !dvti_reshape_resolve(x, &shape))
        return NULL;
    if (dvti_reshape_strides(x, shape, stride))
        return dvti_reshaped("dvt_reshape", x, shape, stride);
    scope = dvt_scope_begin();
    packed = dvt_copy(x);
    if (packed) {
        dvti_strides_c(shape, stride);
        out = dvti_reshaped("dvt_reshape", packed, shape, stride);
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_flatten(dvt_array *x) {
    int64_t n;
    if (!dvti_check("dvt_flatten", &x, 1))
        return NULL;
    n = x->shape.ndim ? x->shape.dim[0] : 1;
    return dvt_reshape(x, n ? DVT_SHAPE(n, -1) : DVT_SHAPE(0, 0));
}

DVT_API dvt_array *dvt_expand_dims(dvt_array *x, int axis) {
    dvt_shape shape = DVT_SCALAR;
    int64_t stride[DVT_MAX_DIMS];
    int i;
    if (!dvti_check("dvt_expand_dims", &x, 1))
        return NULL;
    if (x->shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_expand_dims: x (%s) has %d axes already, the most there can be",
                  dvti_describe(x), DVT_MAX_DIMS);
        return NULL;
    }
    shape.ndim = x->shape.ndim + 1;
    if (!dvti_axis("dvt_expand_dims", &axis, shape.ndim))
        return NULL;
    for (i = 0; i < shape.ndim; i++) {
        shape.dim[i] = i == axis ? 1 : x->shape.dim[i - (i > axis)];
        stride[i] = i == axis ? 1 : x->stride[i - (i > axis)];
    }
    return dvti_reshaped("dvt_expand_dims", x, shape, stride);
}

DVT_API dvt_array *dvt_squeeze(dvt_array *x, dvt_axes axes) {
    dvt_shape shape = DVT_SCALAR;
    int64_t stride[DVT_MAX_DIMS];
    unsigned mask;
    int i;
    if (!dvti_check("dvt_squeeze", &x, 1) ||
        !dvti_axes_mask("dvt_squeeze", axes, x->shape.ndim, &mask))
        return NULL;
    for (i = 0; i < x->shape.ndim; i++) {
        bool one = x->shape.dim[i] == 1;
        if (axes.n && mask & 1u << i && !one) {
            dvti_fail(
                DVT_ERR_SHAPE,
                "dvt_squeeze: axis %d of x (%s) has extent %lld; only extents of 1 can be dropped",
                i, dvti_describe(x), (long long)x->shape.dim[i]);
            return NULL;
        }
        if (!(mask & 1u << i) || !one) {
            stride[shape.ndim] = x->stride[i];
            shape.dim[shape.ndim++] = x->shape.dim[i];
        }
    }
    return dvti_reshaped("dvt_squeeze", x, shape, stride);
}

DVT_API dvt_array *dvt_broadcast_to(dvt_array *x, dvt_shape shape) {
    dvt_shape common;
    int64_t bytes;
    dvti_view view;
    dvt_array *out;
    if (!dvti_check("dvt_broadcast_to", &x, 1) ||
        !dvti_nbytes("dvt_broadcast_to", shape, x->dtype, &bytes) ||
        !dvti_broadcast("dvt_broadcast_to", x->shape, shape, &common))
        return NULL;
    if (!dvt_shape_equal(common, shape)) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_broadcast_to: x (%s) does not broadcast to %s; extents of x must be 1 or equal",
            dvti_describe(x), dvti_shape_text(shape));
        return NULL;
    }
    view = dvti_view_broadcast(x, shape);
    out = dvti_view_new("dvt_broadcast_to", x, shape, view.stride, x->offset);
    return dvti_finish(out, DVTI_OP_broadcast_to, "dvt_broadcast_to", &x, 1, NULL);
}
/* ==== end src/4_ops/op_view.c ==== */
#ifdef DEVTENSOR_LINES
#line 56 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/dvt_attach.c ==== */
/* Attached gradients: attaching, reading, clearing, writing them after a backward pass; and the ends of gradients, detach and
   stop_gradient. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/dvt_attach.c"
#endif
/* ==== begin src/5_grad/dvt_grad.h ==== */
/* The way back. A gradient function gets a node and the gradient of its result, and writes the gradients of the inputs that need
   one. It is written with public operations, so that it can itself be recorded. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/dvt_grad.h"
#endif
#ifndef DVTI_GRAD_H
#define DVTI_GRAD_H
#ifdef DEVTENSOR_LINES
#line 5 "src/5_grad/dvt_grad.h"
#endif

typedef struct dvti_grad_call {
    const dvti_node *node;
    dvt_array *const *in; /* the inputs */
    int n_in;
    dvt_array *
        y; /* the result, with its history when the backward pass is recorded; NULL when no gradient reads it */
    dvt_array *g;     /* the gradient of the result: its shape, dtype and context */
    const bool *need; /* per input */
    dvt_array **
        out; /* per input: to be set where needed, in any shape that broadcasting made of the input's */
} dvti_grad_call;

/* Fills call->out. An entry that is needed and stays NULL means that it failed, with the error set. One function per family, in
   grad_*.c. */
DVTI_FN void dvti_grad_elementwise(dvti_grad_call *call);
DVTI_FN void dvti_grad_view(dvti_grad_call *call);
DVTI_FN void dvti_grad_reduce(dvti_grad_call *call);
DVTI_FN void dvti_grad_matmul(dvti_grad_call *call);
DVTI_FN void dvti_grad_index(dvti_grad_call *call);
DVTI_FN void dvti_grad_conv(dvti_grad_call *call);

/* ---- helpers of gradient functions (grad_helpers.c); NULL in, NULL out ---- */
/* g summed over the axes that broadcasting added or repeated, in x's shape and dtype. */
DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x);
/* x in the dtype of g: x itself when it has it already. */
DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g);
/* Zeros like g: the gradient of steps. */
DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g);
/* One 0-d number of g's dtype and context. */
DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value);

/* ---- the graph behind some heads (dvt_graph.c) ---- */
/* A node, or a leaf: an array with an attached gradient. */
typedef struct dvti_slot {
    dvti_node *node; /* a counted reference; NULL for a leaf */
    dvt_array *leaf;
    dvt_array *grad; /* what has arrived so far, a counted reference */
    bool variable;   /* asked for by dvt_gradients */
    bool needed;     /* a leaf or variable stands at it or behind it */
    bool passed;     /* its gradient went on to its inputs */
    bool in_place;   /* a leaf whose gradient array is written; else it is replaced */
} dvti_slot;

/* Slots in the order of the way back: nodes from the last recorded to the first, then leaves. `table` finds a slot by its node
   or leaf: open addressing, entries are slot numbers + 1. */
typedef struct dvti_graph {
    const char *name; /* the public function */
    dvti_slot *slots;
    size_t count, capacity;
    size_t *table;
    size_t table_size; /* a power of two */
} dvti_graph;

/* Where x's gradient is gathered: its slot when it has one, NULL when x has no history. consumer: the node that x is an input
   of, or NULL. */
DVTI_FN dvti_slot *dvti_graph_slot(dvti_graph *graph, const dvti_node *consumer, dvt_array *x);
/* Collects everything behind the heads; vars as in dvt_gradients, or NULL to want all leaves. False with the error set (GRAD,
   HOST_MEMORY); end it in any case. */
DVTI_FN bool dvti_graph_begin(dvti_graph *graph, const char *name, dvt_array *const *heads, int n,
                              dvt_array *const *vars, int n_vars);
DVTI_FN void dvti_graph_end(dvti_graph *graph);
/* x is ours alone: no other owner, no other window on its memory. */
DVTI_FN bool dvti_exclusive(dvt_array *x);
/* Adds part (whose reference it takes over, also on failure) to what the slot has. */
DVTI_FN bool dvti_slot_add(dvti_slot *slot, dvt_array *part);
/* The status of a call that just failed. */
DVTI_FN dvt_status dvti_failed(const char *function);

/* ---- attached gradients (dvt_attach.c) ---- */
/* Writes the gathered gradients of all leaves, or none. */
DVTI_FN dvt_status dvti_write_leaves(dvti_graph *graph, bool create_graph);

#endif
/* ==== end src/5_grad/dvt_grad.h ==== */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/dvt_attach.c"
#endif

/* A gradient that is itself recorded is not overwritten, since the graph it belongs to may still be wanted, but replaced. */
static bool dvti_grad_is_plain(const dvt_array *x) {
    return x->grad && !x->grad->node;
}

/* A gradient array that is about to be replaced may be in the caller's hands: it lives on in the innermost scope. */
static bool dvti_outlive(const char *name, dvt_array *grad) {
    dvt_retain(grad);
    if (!grad || dvti_scope_give(grad))
        return true;
    dvt_release(grad);
    dvti_fail_memory(name, (int64_t)sizeof(void *));
    return false;
}

/* Zeros in x's gradient array, made when there is none. */
static dvt_status dvti_clear_grad(const char *name, dvt_array *x) {
    dvt_array *zeros;
    dvt_scope_guard scope;
    bool good;
    if (dvti_grad_is_plain(x)) {
        dvt_record_guard guard = dvt_record_begin(0, -1);
        good = dvt_fill(x->grad, 0) != NULL;
        dvt_record_end(&guard);
        return good ? DVT_OK : dvti_failed(name);
    }
    scope = dvt_scope_begin();
    zeros = dvt_zeros_like(x);
    if (zeros)
        dvti_scope_take(zeros);
    dvt_scope_end(&scope);
    if (!zeros || !dvti_outlive(name, x->grad)) {
        dvt_release(zeros);
        return dvti_failed(name);
    }
    dvt_release(x->grad);
    x->grad = zeros;
    return DVT_OK;
}

DVT_API dvt_status dvt_attach_grad(dvt_array *x, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    if (!x)
        return dvti_null("dvt_attach_grad", "x");
    if ((int)req < DVT_GRAD_WRITE || (int)req > DVT_GRAD_NULL)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_attach_grad: req is %d; expected DVT_GRAD_WRITE, DVT_GRAD_ADD or "
                         "DVT_GRAD_NULL",
                         (int)req);
    if (!dvt_dtype_is_float(x->dtype))
        return dvti_fail(DVT_ERR_DTYPE,
                         "dvt_attach_grad: x is %s; only floating-point arrays have gradients: "
                         "convert with dvt_astype",
                         dvti_describe(x));
    if (req != DVT_GRAD_NULL)
        status = dvti_clear_grad("dvt_attach_grad", x);
    else if (!dvti_outlive("dvt_attach_grad", x->grad))
        status = dvti_failed("dvt_attach_grad");
    if (status != DVT_OK)
        return status;
    if (req == DVT_GRAD_NULL) {
        dvt_release(x->grad);
        x->grad = NULL;
    }
    dvti_node_release(x->node);
    x->node = NULL;
    x->attached = true;
    x->grad_req = req;
    x->grad_fresh = false;
    return DVT_OK;
}

static bool dvti_has_grad(const char *name, dvt_array *x) {
    if (x->grad)
        return true;
    dvti_fail(DVT_ERR_GRAD,
              "%s: x (%s) has no gradient array%s; give it one with dvt_attach_grad(x, "
              "DVT_GRAD_WRITE) before recording",
              name, dvti_describe(x), x->attached ? ": it was attached with DVT_GRAD_NULL" : "");
    return false;
}

DVT_API dvt_array *dvt_grad(dvt_array *x) {
    if (!x) {
        dvti_null("dvt_grad", "x");
        return NULL;
    }
    return dvti_has_grad("dvt_grad", x) ? x->grad : NULL;
}

DVT_API dvt_status dvt_zero_grad(dvt_array *x) {
    if (!x)
        return dvti_null("dvt_zero_grad", "x");
    return dvti_has_grad("dvt_zero_grad", x) ? dvti_clear_grad("dvt_zero_grad", x)
                                             : dvti_failed("dvt_zero_grad");
}

/* ---- after a backward pass ---- */
/* What becomes of a leaf's gathered gradient: written into the array that exists, or a new array in its place. Everything that
   needs memory happens here, before the first attached gradient changes. */
static bool dvti_prepare_leaf(const char *name, dvti_slot *slot, bool create_graph) {
    dvt_array *old = slot->leaf->grad, *grad;
    dvt_scope_guard scope;
    slot->in_place = !create_graph && dvti_grad_is_plain(slot->leaf);
    if (slot->in_place)
        return true;
    scope = dvt_scope_begin();
    grad = slot->leaf->grad_req == DVT_GRAD_ADD && old ? dvt_add(old, slot->grad)
                                                       : dvt_copy(slot->grad);
    if (grad)
        dvti_scope_take(grad);
    dvt_scope_end(&scope);
    if (!grad || !dvti_outlive(name, old)) {
        dvt_release(grad);
        return false;
    }
    dvt_release(slot->grad);
    slot->grad = grad;
    return true;
}

/* Into the array that exists: a launch, no new memory. */
static bool dvti_write_leaf(const char *name, dvti_slot *slot) {
    dvt_array *x = slot->leaf;
    if (x->grad_req == DVT_GRAD_ADD)
        return dvt_add_(x->grad, slot->grad) != NULL;
    if (dvti_copy_elements(name, x->grad, slot->grad) != DVT_OK)
        return false;
    dvti_written(x->grad);
    return true;
}

DVTI_FN dvt_status dvti_write_leaves(dvti_graph *graph, bool create_graph) {
    dvti_slot *slot, *end = graph->slots + graph->count;
    for (slot = graph->slots; slot < end; slot++)
        if (slot->leaf && slot->grad && !dvti_prepare_leaf(graph->name, slot, create_graph))
            return dvti_failed(graph->name);
    for (slot = graph->slots; slot < end; slot++) {
        if (!slot->leaf || !slot->grad)
            continue;
        if (slot->in_place) {
            if (!dvti_write_leaf(graph->name, slot))
                return dvti_failed(graph->name);
        } else {
            dvt_release(slot->leaf->grad);
            slot->leaf->grad = slot->grad;
            slot->grad = NULL;
        }
        slot->leaf->grad_fresh = true;
    }
    return DVT_OK;
}

/* ---- ends of gradients ---- */
static dvt_array *dvti_without_history(const char *name, dvt_array *x) {
    return dvti_check(name, &x, 1) ? dvti_view_new(name, x, x->shape, x->stride, x->offset) : NULL;
}

DVT_API dvt_array *dvt_detach(dvt_array *x) {
    return dvti_without_history("dvt_detach", x);
}

DVT_API dvt_array *dvt_stop_gradient(dvt_array *x) {
    return dvti_without_history("dvt_stop_gradient", x);
}
/* ==== end src/5_grad/dvt_attach.c ==== */
#ifdef DEVTENSOR_LINES
#line 57 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/dvt_backward.c ==== */
/* The backward pass: heads, the sweep from the last recorded operation to the first, and its two public forms. Attached
   gradients change at the very end or not at all; the graph is used up only when everything went well. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/dvt_backward.c"
#endif

DVTI_FN dvt_status dvti_failed(const char *function) {
    dvt_status status = dvt_error_code();
    return status != DVT_OK
               ? status
               : dvti_fail(DVT_ERR_INTERNAL,
                           "%s: a step failed without saying why; please report this", function);
}

/* ---- heads ---- */
static dvt_status dvti_check_head(const char *name, dvt_array *head, dvt_array *grad, int i) {
    if (!head)
        return dvti_null(name, "a head");
    if (!grad)
        return DVT_OK;
    if (!dvt_ctx_equal(grad->storage->ctx, head->storage->ctx))
        return dvti_fail(DVT_ERR_CONTEXT,
                         "%s: head %d is %s and its gradient is %s; expected one context: copy the "
                         "gradient with dvt_as_in_ctx",
                         name, i, dvti_describe(head), dvti_describe(grad));
    if (!dvt_shape_equal(grad->shape, head->shape))
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: head %d is %s and its gradient is %s; expected equal shapes: reshape "
                         "or broadcast the gradient",
                         name, i, dvti_describe(head), dvti_describe(grad));
    if (grad->dtype != head->dtype)
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: head %d is %s and its gradient is %s; expected equal dtypes: convert "
                         "the gradient with dvt_astype",
                         name, i, dvti_describe(head), dvti_describe(grad));
    return DVT_OK;
}

static dvt_status dvti_check_heads(const char *name, dvt_array *const *heads,
                                   dvt_array *const *grads, int n) {
    dvt_status status = DVT_OK;
    int i;
    if (n < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d heads; expected at least one", name, n);
    if (!heads)
        return dvti_null(name, "heads");
    for (i = 0; status == DVT_OK && i < n; i++)
        status = dvti_check_head(name, heads[i], grads ? grads[i] : NULL, i);
    return status;
}

static bool dvti_start_heads(dvti_graph *graph, dvt_array *const *heads, dvt_array *const *grads,
                             int n) {
    int i;
    for (i = 0; i < n; i++) {
        dvti_slot *slot = dvti_graph_slot(graph, NULL, heads[i]);
        dvt_array *g = grads ? grads[i] : NULL;
        if (!slot->needed)
            continue;
        if (g)
            dvt_retain(g);
        else if ((g = dvt_ones_like(heads[i])) != NULL)
            dvti_scope_take(g);
        if (!g || !dvti_slot_add(slot, g))
            return false;
    }
    return true;
}

/* ---- one node ---- */
/* Argument number i, counted from 1, or with 0 the result. */
static bool dvti_overwritten(const char *name, const dvti_node *node, int i, dvt_array *x,
                             int64_t version) {
    int64_t now = dvti_atomic_load(&x->storage->version);
    char what[24] = "the result";
    if (now == version)
        return false;
    if (i)
        snprintf(what, sizeof what, "argument %d", i);
    dvti_fail(DVT_ERR_GRAD,
              "%s: a gradient needs %s of %s (%s), which was overwritten since it was recorded; "
              "write after the backward pass, or compute a new array",
              name, what, node->name, dvti_describe(x));
    return true;
}

/* All values that the wanted gradients read are still those that were recorded. */
static bool dvti_values_intact(const char *name, const dvti_grad_call *call) {
    const dvti_node *node = call->node;
    unsigned reads = 0;
    int i;
    for (i = 0; i < node->n_in; i++)
        if (call->need[i])
            reads |= dvti_grad_reads(node, i);
    for (i = 0; reads && i < node->n_in && i < 8; i++)
        if (reads & 1u << i && dvti_overwritten(name, node, i + 1, node->in[i], node->version[i]))
            return false;
    return !(reads & DVTI_READS_RESULT) ||
           !dvti_overwritten(name, node, 0, node->result, node->result_version);
}

/* The node's result for its gradient function. When this pass is recorded it has the node as its history. */
static bool dvti_result_of(dvti_grad_call *call, dvti_node *node) {
    call->y = node->result;
    if (!node->result || !dvt_is_recording())
        return true;
    call->y = dvti_view_new(node->name, node->result, node->result->shape, node->result->stride,
                            node->result->offset);
    if (!call->y)
        return false;
    call->y->node = node;
    dvti_atomic_add(&node->references, 1);
    return true;
}

static void dvti_call_family(dvti_grad_call *call) {
    dvti_op op = call->node->op, first_other = DVTI_OP_copy;
    if (op < first_other) {
        dvti_grad_elementwise(call);
        return;
    }
    switch (op) {
    case DVTI_OP_copy:
    case DVTI_OP_where:
    case DVTI_OP_clip:
        dvti_grad_elementwise(call);
        break;
    case DVTI_OP_reshape:
    case DVTI_OP_transpose:
    case DVTI_OP_slice:
    case DVTI_OP_unslice:
    case DVTI_OP_broadcast_to:
        dvti_grad_view(call);
        break;
    case DVTI_OP_sum:
    case DVTI_OP_mean:
    case DVTI_OP_prod:
    case DVTI_OP_min:
    case DVTI_OP_max:
    case DVTI_OP_norm:
    case DVTI_OP_logsumexp:
    case DVTI_OP_softmax:
    case DVTI_OP_log_softmax:
        dvti_grad_reduce(call);
        break;
    case DVTI_OP_matmul:
        dvti_grad_matmul(call);
        break;
    case DVTI_OP_concat:
    case DVTI_OP_take:
    case DVTI_OP_take_add:
    case DVTI_OP_take_along:
    case DVTI_OP_take_along_add:
        dvti_grad_index(call);
        break;
    case DVTI_OP_conv2d:
    case DVTI_OP_conv2d_data:
    case DVTI_OP_conv2d_weight:
    case DVTI_OP_max_pool2d:
    case DVTI_OP_max_pool2d_data:
    case DVTI_OP_max_pool2d_pick:
    case DVTI_OP_avg_pool2d:
    case DVTI_OP_avg_pool2d_data:
        dvti_grad_conv(call);
        break;
    default:
        dvti_fail(DVT_ERR_INTERNAL, "%s: recorded without a gradient; please report this",
                  call->node->name);
    }
}

/* The gradients of the inputs, each with a reference of its own, in call->out. */
static bool dvti_call_gradient(const char *name, dvti_grad_call *call, dvti_node *node) {
    dvt_scope_guard scope = dvt_scope_begin();
    bool good = dvti_values_intact(name, call) && dvti_result_of(call, node);
    int i;
    if (good)
        dvti_call_family(call);
    for (i = 0; good && i < call->n_in; i++)
        if (call->need[i]) {
            call->out[i] = dvti_unbroadcast(call->out[i], call->in[i]);
            good = call->out[i] != NULL;
        }
    for (i = 0; i < call->n_in; i++)
        if (good && call->need[i])
            dvt_retain(call->out[i]);
        else
            call->out[i] = NULL;
    dvt_scope_end(&scope);
    return good;
}

/* Passes a node's gradient on to its inputs. */
static bool dvti_step(dvti_graph *graph, dvti_slot *slot, dvti_grad_call *call, bool *need) {
    dvti_node *node = slot->node;
    bool any = false, good;
    int i;
    for (i = 0; i < node->n_in; i++) {
        const dvti_slot *input = dvti_graph_slot(graph, node, node->in[i]);
        need[i] = input && input->needed;
        any = any || need[i];
    }
    if (!any)
        return true;
    call->node = node;
    call->in = node->in;
    call->n_in = node->n_in;
    call->g = slot->grad;
    call->need = need;
    memset(call->out, 0, sizeof *call->out * (size_t)node->n_in);
    good = dvti_call_gradient(graph->name, call, node);
    for (i = 0; i < node->n_in; i++)
        if (call->out[i] && good)
            good = dvti_slot_add(dvti_graph_slot(graph, node, node->in[i]), call->out[i]);
        else
            dvt_release(call->out[i]);
    slot->passed = true;
    return good;
}

/* ---- the sweep ---- */
static bool dvti_sweep(dvti_graph *graph) {
    dvti_grad_call call;
    int most = 0;
    size_t at;
    bool *need, good = true;
    memset(&call, 0, sizeof call);
    for (at = 0; at < graph->count; at++)
        if (graph->slots[at].node)
            most = DVTI_MAX(most, graph->slots[at].node->n_in);
    need = (bool *)dvti_alloc((sizeof *need) * (size_t)most);
    call.out = (dvt_array **)dvti_alloc(sizeof *call.out * (size_t)most);
    if (!need || !call.out) {
        dvti_fail_memory(graph->name, (int64_t)(sizeof *call.out * (size_t)most));
        good = false;
    }
    for (at = 0; good && at < graph->count; at++) {
        dvti_slot *slot = graph->slots + at;
        if (!slot->node || !slot->needed || !slot->grad)
            continue;
        good = dvti_step(graph, slot, &call, need);
        if (!slot->variable) {
            dvt_release(slot->grad);
            slot->grad = NULL;
        }
    }
    dvti_free(need);
    dvti_free(call.out);
    return good;
}

static void dvti_use_up(dvti_graph *graph) {
    size_t at;
    for (at = 0; at < graph->count; at++)
        if (graph->slots[at].passed)
            dvti_node_use_up(graph->slots[at].node);
}

static bool dvti_walk_back(dvti_graph *graph, dvt_array *const *heads, dvt_array *const *grads,
                           int n) {
    return dvti_start_heads(graph, heads, grads, n) && dvti_sweep(graph);
}

static dvt_status dvti_backward(const char *name, dvt_array *const *heads, dvt_array *const *grads,
                                int n, bool retain_graph, bool create_graph) {
    dvti_graph graph;
    dvt_record_guard guard;
    dvt_status status = dvti_check_heads(name, heads, grads, n);
    if (status != DVT_OK)
        return status;
    guard = dvt_record_begin(create_graph ? 1 : 0, -1);
    if (dvti_graph_begin(&graph, name, heads, n, NULL, 0) &&
        dvti_walk_back(&graph, heads, grads, n))
        status = dvti_write_leaves(&graph, create_graph);
    else
        status = dvti_failed(name);
    if (status == DVT_OK && !retain_graph && !create_graph)
        dvti_use_up(&graph);
    dvti_graph_end(&graph);
    dvt_record_end(&guard);
    return status;
}

DVT_API dvt_status dvt_backward(dvt_array *y) {
    if (!y)
        return dvti_null("dvt_backward", "y");
    return dvti_backward("dvt_backward", &y, NULL, 1, false, false);
}

DVT_API dvt_status dvt_backward_from(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                     bool retain_graph, bool create_graph) {
    return dvti_backward("dvt_backward_from", heads, head_grads, n, retain_graph, create_graph);
}

/* ---- gradients of chosen variables ---- */
/* A new array: the gathered one itself, the first time it is asked for and when nobody else sees its memory. */
static dvt_array *dvti_variable_gradient(dvti_graph *graph, dvt_array *var) {
    dvti_slot *slot = dvti_graph_slot(graph, NULL, var);
    dvt_array *grad = slot->grad;
    if (!grad)
        return dvt_zeros_like(var);
    if (!slot->variable || !dvti_exclusive(grad) || !dvt_is_contiguous(grad))
        return dvt_copy(grad);
    slot->variable = false;
    dvt_retain(grad);
    if (dvti_scope_give(grad))
        return grad;
    dvt_release(grad);
    dvti_fail_memory(graph->name, (int64_t)sizeof(void *));
    return NULL;
}

/* Into out[0..n_vars), all or none. */
static bool dvti_hand_out(dvti_graph *graph, dvt_array *const *vars, int n_vars, dvt_array **out) {
    dvt_array **found = (dvt_array **)dvti_alloc(sizeof *found * (size_t)n_vars);
    dvt_scope_guard scope = dvt_scope_begin();
    bool good = found != NULL;
    int i;
    if (!good)
        dvti_fail_memory(graph->name, (int64_t)(sizeof *found * (size_t)n_vars));
    for (i = 0; good && i < n_vars; i++)
        good = (found[i] = dvti_variable_gradient(graph, vars[i])) != NULL;
    for (i = n_vars - 1; good && i >= 0; i--) {
        out[i] = found[i];
        dvt_keep(found[i]);
    }
    dvt_scope_end(&scope);
    dvti_free(found);
    return good;
}

static dvt_status dvti_check_variables(dvt_array *const *vars, int n_vars, dvt_array **out) {
    int i;
    if (n_vars < 1)
        return dvti_fail(DVT_ERR_RANGE, "dvt_gradients: %d variables; expected at least one",
                         n_vars);
    if (!vars || !out)
        return dvti_null("dvt_gradients", vars ? "out" : "vars");
    for (i = 0; i < n_vars; i++)
        if (!vars[i])
            return dvti_null("dvt_gradients", "a variable");
    return DVT_OK;
}

DVT_API dvt_status dvt_gradients(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                 dvt_array *const *vars, int n_vars, bool retain_graph,
                                 bool create_graph, dvt_array **out) {
    static const char name[] = "dvt_gradients";
    dvti_graph graph;
    dvt_record_guard guard;
    dvt_status status = dvti_check_heads(name, heads, head_grads, n);
    if (status == DVT_OK)
        status = dvti_check_variables(vars, n_vars, out);
    if (status != DVT_OK)
        return status;
    guard = dvt_record_begin(create_graph ? 1 : 0, -1);
    if (!dvti_graph_begin(&graph, name, heads, n, vars, n_vars) ||
        !dvti_walk_back(&graph, heads, head_grads, n) || !dvti_hand_out(&graph, vars, n_vars, out))
        status = dvti_failed(name);
    if (status == DVT_OK && !retain_graph && !create_graph)
        dvti_use_up(&graph);
    dvti_graph_end(&graph);
    dvt_record_end(&guard);
    return status;
}
/* ==== end src/5_grad/dvt_backward.c ==== */
#ifdef DEVTENSOR_LINES
#line 58 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/dvt_graph.c ==== */
/* The graph behind some heads: which nodes and leaves there are, their order, and the gradients gathered at each. Nothing is
   written into nodes, so a failing pass leaves no trace and two threads never meet in one. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/dvt_graph.c"
#endif

typedef struct dvti_origin {
    dvti_node *node;
    dvt_array *leaf;
} dvti_origin;

/* What stands behind x. A node that was recorded after its consumer did not make the value that the consumer saw: the array was
   written later. */
static dvti_origin dvti_origin_of(const dvti_node *consumer, dvt_array *x) {
    dvti_origin origin;
    origin.node = NULL;
    origin.leaf = NULL;
    if (x->node && (!consumer || x->node->sequence < consumer->sequence))
        origin.node = x->node;
    else if (x->attached && x->grad_req != DVT_GRAD_NULL)
        origin.leaf = x;
    return origin;
}

/* ---- the table ---- */
static size_t dvti_graph_hash(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32);
}

/* The table's place of a key: where it is, or where it would be entered. */
static size_t *dvti_graph_place(const dvti_graph *graph, const void *key) {
    size_t mask = graph->table_size - 1, at = dvti_graph_hash(key) & mask;
    for (;; at = (at + 1) & mask) {
        const dvti_slot *slot = graph->table[at] ? graph->slots + graph->table[at] - 1 : NULL;
        if (!slot || (const void *)slot->node == key || (const void *)slot->leaf == key)
            return graph->table + at;
    }
}

static const void *dvti_slot_key(const dvti_slot *slot) {
    return slot->node ? (const void *)slot->node : (const void *)slot->leaf;
}

static void dvti_graph_enter_all(dvti_graph *graph) {
    size_t i;
    memset(graph->table, 0, sizeof *graph->table * graph->table_size);
    for (i = 0; i < graph->count; i++)
        *dvti_graph_place(graph, dvti_slot_key(graph->slots + i)) = i + 1;
}

/* Room for one more slot; the table stays at most half full. */
static bool dvti_graph_room(dvti_graph *graph) {
    size_t *table;
    if (!dvti_grow((void **)&graph->slots, &graph->capacity, graph->count + 1,
                   sizeof *graph->slots))
        return false;
    if (graph->table_size >= 2 * (graph->count + 1))
        return true;
    table = (size_t *)dvti_alloc(sizeof *table * graph->capacity * 2);
    if (!table)
        return false;
    dvti_free(graph->table);
    graph->table = table;
    graph->table_size = graph->capacity * 2;
    dvti_graph_enter_all(graph);
    return true;
}

/* The slot of an origin, made when it is new. NULL with HOST_MEMORY set. */
static dvti_slot *dvti_graph_add(dvti_graph *graph, dvti_origin origin) {
    const void *key = origin.node ? (const void *)origin.node : (const void *)origin.leaf;
    dvti_slot *slot;
    size_t *place;
    if (!dvti_graph_room(graph)) {
        dvti_fail_memory(graph->name, (int64_t)(sizeof *slot * 2 * (graph->count + 1)));
        return NULL;
    }
    place = dvti_graph_place(graph, key);
    if (*place)
        return graph->slots + *place - 1;
    slot = graph->slots + graph->count++;
    memset(slot, 0, sizeof *slot);
    slot->node = origin.node;
    slot->leaf = origin.leaf;
    if (slot->node)
        dvti_atomic_add(&slot->node->references, 1);
    else
        dvt_retain(slot->leaf);
    *place = graph->count;
    return slot;
}

DVTI_FN dvti_slot *dvti_graph_slot(dvti_graph *graph, const dvti_node *consumer, dvt_array *x) {
    dvti_origin origin = dvti_origin_of(consumer, x);
    const void *key = origin.node ? (const void *)origin.node : (const void *)origin.leaf;
    size_t *place = key && graph->table_size ? dvti_graph_place(graph, key) : NULL;
    return place && *place ? graph->slots + *place - 1 : NULL;
}

/* ---- collecting ---- */
static bool dvti_graph_add_origin(dvti_graph *graph, const char *kind, int i, dvt_array *x,
                                  dvti_slot **out) {
    dvti_origin origin = dvti_origin_of(NULL, x);
    if (!origin.node && !origin.leaf) {
        dvti_fail(
            DVT_ERR_GRAD,
            "%s: %s %d (%s) is not in a computational graph, so there is nothing to differentiate; "
            "compute it inside DVT_RECORD { ... } from arrays with dvt_attach_grad. To "
            "differentiate one graph twice, pass retain_graph = true to dvt_backward_from",
            graph->name, kind, i, dvti_describe(x));
        return false;
    }
    *out = dvti_graph_add(graph, origin);
    return *out != NULL;
}

/* Every slot is looked at once, in the order of discovery: no recursion, however long the graph. */
static bool dvti_graph_follow(dvti_graph *graph) {
    size_t at;
    int i;
    for (at = 0; at < graph->count; at++) {
        const dvti_node *node = graph->slots[at].node;
        if (!node)
            continue;
        if (node->used) {
            dvti_fail(DVT_ERR_GRAD,
                      "%s: the graph behind a result of %s was freed by an earlier backward; to "
                      "differentiate it twice pass retain_graph = true to the first "
                      "dvt_backward_from, or compute it again inside DVT_RECORD",
                      graph->name, node->name);
            return false;
        }
        for (i = 0; i < node->n_in; i++) {
            dvti_origin origin = dvti_origin_of(node, node->in[i]);
            if ((origin.node || origin.leaf) && !dvti_graph_add(graph, origin))
                return false;
        }
    }
    return true;
}

static int dvti_slot_compare(const void *a, const void *b) {
    const dvti_slot *x = (const dvti_slot *)a, *y = (const dvti_slot *)b;
    int64_t p = x->node ? x->node->sequence : -1, q = y->node ? y->node->sequence : -1;
    return p > q ? -1 : p < q;
}

/* From the inputs to the heads: what leads to something wanted is needed. */
static void dvti_graph_mark_needed(dvti_graph *graph, bool all_leaves) {
    size_t at;
    int i;
    for (at = graph->count; at-- > 0;) {
        dvti_slot *slot = graph->slots + at;
        slot->needed = slot->variable || (slot->leaf && all_leaves);
        for (i = 0; slot->node && !slot->needed && i < slot->node->n_in; i++) {
            const dvti_slot *input = dvti_graph_slot(graph, slot->node, slot->node->in[i]);
            slot->needed = input && input->needed;
        }
    }
}

DVTI_FN bool dvti_graph_begin(dvti_graph *graph, const char *name, dvt_array *const *heads, int n,
                              dvt_array *const *vars, int n_vars) {
    dvti_slot *slot;
    int i;
    memset(graph, 0, sizeof *graph);
    graph->name = name;
    for (i = 0; i < n; i++)
        if (!dvti_graph_add_origin(graph, "head", i, heads[i], &slot))
            return false;
    if (!dvti_graph_follow(graph))
        return false;
    for (i = 0; i < n_vars; i++) {
        if (!dvti_graph_add_origin(graph, "variable", i, vars[i], &slot))
            return false;
        slot->variable = true;
    }
    qsort(graph->slots, graph->count, sizeof *graph->slots, dvti_slot_compare);
    dvti_graph_enter_all(graph);
    dvti_graph_mark_needed(graph, vars == NULL);
    return true;
}

DVTI_FN void dvti_graph_end(dvti_graph *graph) {
    size_t i;
    for (i = 0; i < graph->count; i++) {
        dvti_node_release(graph->slots[i].node);
        dvt_release(graph->slots[i].leaf);
        dvt_release(graph->slots[i].grad);
    }
    dvti_free(graph->slots);
    dvti_free(graph->table);
    memset(graph, 0, sizeof *graph);
}

/* ---- gathering ---- */
DVTI_FN bool dvti_exclusive(dvt_array *x) {
    return dvti_atomic_load(&x->object.references) == 1 &&
           dvti_atomic_load(&x->storage->references) == 1 && !x->broadcast;
}

/* The sum of two is the same in either order, so it is formed in whichever array is free. */
DVTI_FN bool dvti_slot_add(dvti_slot *slot, dvt_array *part) {
    dvt_array *sum = NULL;
    dvt_scope_guard scope;
    if (!slot->grad) {
        slot->grad = part;
        return true;
    }
    if (!dvt_is_recording() && dvti_exclusive(slot->grad))
        sum = dvt_add_(slot->grad, part);
    else if (!dvt_is_recording() && dvti_exclusive(part)) {
        sum = dvt_add_(part, slot->grad);
        if (sum) {
            part = slot->grad;
            slot->grad = sum;
        }
    } else {
        scope = dvt_scope_begin();
        sum = dvt_add(slot->grad, part);
        if (sum) {
            dvt_release(slot->grad);
            slot->grad = sum;
            dvti_scope_take(sum);
        }
        dvt_scope_end(&scope);
    }
    dvt_release(part);
    return sum != NULL;
}
/* ==== end src/5_grad/dvt_graph.c ==== */
#ifdef DEVTENSOR_LINES
#line 59 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_conv.c ==== */
/* Gradients of convolution and pooling. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/grad_conv.c"
#endif

DVTI_FN void dvti_grad_conv(dvti_grad_call *call) {
    (void)call;
}
/* ==== end src/5_grad/grad_conv.c ==== */
#ifdef DEVTENSOR_LINES
#line 60 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_elementwise.c ==== */
/* Gradients of the op table's rows, where, clip and copy. The rows' texts come from the table; here stand the functions they
   name and the operands they read. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/grad_elementwise.c"
#endif

/* ---- functions that rows name ---- */
/* g * (Phi(x) + x phi(x)), the normal distribution's function and density. */
static dvt_array *dvti_grad_gelu(dvt_array *g, dvt_array *x) {
    dvt_array *phi, *cdf;
    cdf = dvt_add_scalar(dvt_mul_scalar(dvt_erf(dvt_mul_scalar(x, 0.70710678118654752440)), 0.5),
                         0.5);
    phi = dvt_mul_scalar(dvt_exp(dvt_mul_scalar(dvt_square(x), -0.5)), 0.39894228040143267794);
    return dvt_mul(g, dvt_add(cdf, dvt_mul(x, phi)));
}

/* g * b * a^(b - 1). Where a and b are both 0 the power is replaced by a^0, so that its product with b is 0 and not NaN. */
static dvt_array *dvti_grad_pow_a(dvt_array *g, dvt_array *a, dvt_array *b) {
    dvt_array *both =
        dvt_logical_and(dvt_equal_scalar(a, 0), dvt_equal_scalar(b, 0)); /* a^b has slope 0 there */
    dvt_array *power = dvt_where(both, dvti_number_like(g, 0), dvt_sub_scalar(b, 1));
    return dvt_mul(g, dvt_mul(b, dvt_pow(a, power)));
}

/* g * y * log(a), and 0 where a is 0 and y is not infinite: the limit for b > 0. */
static dvt_array *dvti_grad_pow_b(dvt_array *g, dvt_array *a, dvt_array *y) {
    dvt_array *flat = dvt_logical_and(dvt_equal_scalar(a, 0), dvt_isfinite(y));
    return dvt_mul(g, dvt_mul(y, dvt_log(dvt_where(flat, dvti_number_like(g, 1), a))));
}

/* ---- rows ---- */
static dvt_array *dvti_grad_unary_row(dvti_op op, dvt_array *g, dvt_array *x, dvt_array *y) {
    switch (op) {
#define DVTI_ROW(name, rule, f, i, grad, lo, hi, doc)                                              \
    case DVTI_OP_##name:                                                                           \
        return grad;
        DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

static dvt_array *dvti_grad_binary_row_a(dvti_op op, dvt_array *g, dvt_array *a, dvt_array *b,
                                         dvt_array *y) {
    (void)y;
    switch (op) {
#define DVTI_ROW(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                    \
    case DVTI_OP_##name:                                                                           \
        return ga;
        DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

static dvt_array *dvti_grad_binary_row_b(dvti_op op, dvt_array *g, dvt_array *a, dvt_array *b,
                                         dvt_array *y) {
    switch (op) {
#define DVTI_ROW(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                    \
    case DVTI_OP_##name:                                                                           \
        return gb;
        DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

/* x with the number s behind it. The common ones without an array that holds s. */
static dvt_array *dvti_grad_scalar_behind(dvti_op op, dvt_array *g, dvt_array *x, double s,
                                          dvt_array *y) {
    switch (op) {
    case DVTI_OP_add:
    case DVTI_OP_sub:
        return g;
    case DVTI_OP_mul:
        return dvt_mul_scalar(g, s);
    case DVTI_OP_div:
        return dvt_div_scalar(g, s);
    case DVTI_OP_pow:
        return s == 0 ? dvti_no_gradient(g)
                      : dvt_mul(g, dvt_mul_scalar(dvt_pow_scalar(x, s - 1), s));
    default:
        return dvti_grad_binary_row_a(op, g, x, dvti_number_like(g, s), y);
    }
}

/* The number s before x. */
static dvt_array *dvti_grad_scalar_before(dvti_op op, dvt_array *g, double s, dvt_array *x,
                                          dvt_array *y) {
    switch (op) {
    case DVTI_OP_add:
        return g;
    case DVTI_OP_sub:
        return dvt_neg(g);
    case DVTI_OP_mul:
        return dvt_mul_scalar(g, s);
    default:
        return dvti_grad_binary_row_b(op, g, dvti_number_like(g, s), x, y);
    }
}

static void dvti_grad_row(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    dvti_op op = node->op, first_binary = DVTI_OP_add;
    dvt_array *a = dvti_as_dtype_of(call->in[0], call->g), *b;
    if (op < first_binary) {
        call->out[0] = dvti_grad_unary_row(op, call->g, a, call->y);
        return;
    }
    if (node->attr.i[0] == 1)
        call->out[0] = dvti_grad_scalar_before(op, call->g, node->attr.f[0], a, call->y);
    else if (node->attr.i[0] == 2)
        call->out[0] = dvti_grad_scalar_behind(op, call->g, a, node->attr.f[0], call->y);
    if (node->attr.i[0])
        return;
    /* The rows' texts compute with a and b as the operation did: in the dtype of the result. */
    b = dvti_as_dtype_of(call->in[1], call->g);
    if (call->need[0])
        call->out[0] = dvti_grad_binary_row_a(op, call->g, a, b, call->y);
    if (call->need[1])
        call->out[1] = dvti_grad_binary_row_b(op, call->g, a, b, call->y);
}

/* ---- select and copy ---- */
static void dvti_grad_where(dvti_grad_call *call) {
    dvt_array *zero = dvti_number_like(call->g, 0);
    if (call->need[0]) /* a float condition: it acts only through being zero or not */
        call->out[0] = dvti_no_gradient(call->g);
    if (call->need[1])
        call->out[1] = dvt_where(call->in[0], call->g, zero);
    if (call->need[2])
        call->out[2] = dvt_where(call->in[0], zero, call->g);
}

/* Inside the closed interval; nothing for NaN. */
static void dvti_grad_clip(dvti_grad_call *call) {
    double low = call->node->attr.f[1], high = call->node->attr.f[2];
    dvt_array *x = call->in[0];
    dvt_array *inside =
        dvt_logical_and(dvt_greater_equal_scalar(x, low), dvt_less_equal_scalar(x, high));
    call->out[0] = dvt_where(inside, call->g, dvti_number_like(call->g, 0));
}

/* Back to where it came from, in the dtype it had there. */
static void dvti_grad_copy(dvti_grad_call *call) {
    dvt_array *x = call->in[0];
    call->out[0] = dvt_as_in_ctx(dvti_as_dtype_of(call->g, x), x->storage->ctx);
}

DVTI_FN void dvti_grad_elementwise(dvti_grad_call *call) {
    dvti_op op = call->node->op;
    if (op == DVTI_OP_where)
        dvti_grad_where(call);
    else if (op == DVTI_OP_clip)
        dvti_grad_clip(call);
    else if (op == DVTI_OP_copy)
        dvti_grad_copy(call);
    else
        dvti_grad_row(call);
}
/* ==== end src/5_grad/grad_elementwise.c ==== */
#ifdef DEVTENSOR_LINES
#line 61 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_helpers.c ==== */
/* What gradient functions share. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/grad_helpers.c"
#endif

DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g) {
    return x && g ? dvt_astype(x, g->dtype, false) : NULL;
}

DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g) {
    return dvt_zeros_like(g);
}

DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value) {
    return g ? dvt_full(DVT_SCALAR, value, g->dtype, g->storage->ctx) : NULL;
}

DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x) {
    dvt_axes axes = DVT_ALL;
    int lead, i;
    if (!g)
        return NULL;
    lead = g->shape.ndim - x->shape.ndim;
    for (i = 0; i < g->shape.ndim; i++)
        if (i < lead || (x->shape.dim[i - lead] == 1 && g->shape.dim[i] != 1))
            axes.axis[axes.n++] = i;
    if (axes.n)
        g = dvt_sum(g, axes, true);
    if (g && !dvt_shape_equal(g->shape, x->shape))
        g = dvt_reshape(g, x->shape);
    return dvti_as_dtype_of(g, x);
}
/* ==== end src/5_grad/grad_helpers.c ==== */
#ifdef DEVTENSOR_LINES
#line 62 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_index.c ==== */
/* Gradients of joining and indexing. Taking and adding by index are each other's gradients. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/grad_index.c"
#endif

static void dvti_grad_concat(dvti_grad_call *call) {
    int axis = (int)call->node->attr.i[0], i;
    int64_t at = 0;
    for (i = 0; i < call->n_in; i++) {
        int64_t end = at + call->in[i]->shape.dim[axis];
        if (call->need[i])
            call->out[i] = dvt_slice(call->g, axis, at, end, 1);
        at = end;
    }
}

/* Indices have no gradient: they are integers, and never needed. */
DVTI_FN void dvti_grad_index(dvti_grad_call *call) {
    int axis = (int)call->node->attr.i[0];
    dvt_array *x = call->in[0], *index, *g = call->g;
    if (call->node->op == DVTI_OP_concat) {
        dvti_grad_concat(call);
        return;
    }
    index = call->in[1];
    switch (call->node->op) {
    case DVTI_OP_take:
        call->out[0] = dvti_take_add(g, index, axis, x->shape.dim[axis]);
        break;
    case DVTI_OP_take_add:
        call->out[0] = dvt_take(g, index, axis);
        break;
    case DVTI_OP_take_along:
        call->out[0] = dvti_take_along_add(g, index, axis, x->shape.dim[axis]);
        break;
    default:
        call->out[0] = dvt_take_along_axis(g, index, axis);
    }
}
/* ==== end src/5_grad/grad_index.c ==== */
#ifdef DEVTENSOR_LINES
#line 63 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_matmul.c ==== */
/* Gradients of matrix products. With C = A B: dA = G B^T and dB = A^T G; transposed operands move the transposes around. Batch
   axes that were broadcast are summed afterwards. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/grad_matmul.c"
#endif

/* x with all but its last axis in one. */
static dvt_array *dvti_rows_of(dvt_array *x) {
    return dvt_reshape(x, DVT_SHAPE(-1, x->shape.dim[x->shape.ndim - 1]));
}

static dvt_array *dvti_grad_matmul_a(dvt_array *g, dvt_array *b, bool ta, bool tb) {
    return ta ? dvt_matmul_t(b, g, tb, true) : dvt_matmul_t(g, b, false, !tb);
}

static dvt_array *dvti_grad_matmul_b(dvt_array *g, dvt_array *a, dvt_array *b, bool ta, bool tb) {
    /* One matrix for a whole batch: the sum over the batch is part of a single product. */
    if (b->shape.ndim == 2 && a->shape.ndim > 2 && !ta && dvt_size(a) > 0 && dvt_size(g) > 0) {
        a = dvti_rows_of(a);
        g = dvti_rows_of(g);
        if (!a || !g)
            return NULL;
    }
    return tb ? dvt_matmul_t(g, a, true, ta) : dvt_matmul_t(a, g, !ta, false);
}

DVTI_FN void dvti_grad_matmul(dvti_grad_call *call) {
    bool ta = call->node->attr.i[0] != 0, tb = call->node->attr.i[1] != 0;
    dvt_array *a = call->in[0], *b = call->in[1];
    if (call->need[0])
        call->out[0] = dvti_grad_matmul_a(call->g, b, ta, tb);
    if (call->need[1])
        call->out[1] = dvti_grad_matmul_b(call->g, a, b, ta, tb);
}
/* ==== end src/5_grad/grad_matmul.c ==== */
#ifdef DEVTENSOR_LINES
#line 64 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_reduce.c ==== */
/* Gradients of reductions and softmax. Reduced arrays are first given back their axes with extent 1, so that everything else is
   broadcasting. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_grad/grad_reduce.c"
#endif

/* x's shape with extent 1 on the axes of the mask. */
static dvt_shape dvti_kept_shape(const dvt_array *x, int64_t mask) {
    dvt_shape shape = x->shape;
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (mask >> i & 1)
            shape.dim[i] = 1;
    return shape;
}

static int64_t dvti_reduced_count(const dvt_array *x, int64_t mask) {
    int64_t count = 1;
    int i;
    for (i = 0; i < x->shape.ndim; i++)
        if (mask >> i & 1)
            count *= x->shape.dim[i];
    return count;
}

static dvt_axes dvti_mask_axes(int64_t mask) {
    dvt_axes axes = DVT_ALL;
    int i;
    for (i = 0; i < DVT_MAX_DIMS; i++)
        if (mask >> i & 1)
            axes.axis[axes.n++] = i;
    return axes;
}

/* ---- prod ---- */
/* The product of the elements before each one along the last axis (from_end: behind it), 1 for the first. Hillis and Steele's
   scan, 1986: after the round with distance d every place holds the product of 2d elements, so log2(n) rounds are enough. */
static dvt_array *dvti_products_before(dvt_array *x, bool from_end) {
    int axis = x->shape.ndim - 1;
    int64_t n = x->shape.dim[axis], d, shift = 1;
    dvt_array *p = x;
    for (d = 0; p && d < n; d = d ? 2 * d : 1) { /* the round with d = 0 only moves */
        dvt_array *pair[2], *moved;
        dvt_shape edge = x->shape;
        shift = d ? d : 1;
        edge.dim[axis] = shift;
        pair[from_end ? 1 : 0] = dvt_ones(edge, x->dtype, x->storage->ctx);
        pair[from_end ? 0 : 1] =
            from_end ? dvt_slice(p, axis, shift, n, 1) : dvt_slice(p, axis, 0, n - shift, 1);
        moved = dvt_concat(pair, 2, axis);
        p = d ? dvt_mul(p, moved) : moved;
    }
    return p;
}

/* g times the product of all others. No division, so zeros are nothing special, and the text can be differentiated again. */
static dvt_array *dvti_grad_prod(dvt_array *x, dvt_array *g, int64_t mask) {
    dvt_axes order = DVT_ALL, back = DVT_ALL;
    dvt_shape rows, moved;
    dvt_array *t, *others;
    int pass, i;
    if (dvt_size(x) == 0 || x->shape.ndim == 0)
        return dvt_broadcast_to(g, x->shape);
    for (pass = 0; pass < 2; pass++) /* kept axes first, then the reduced ones, which become one */
        for (i = 0; i < x->shape.ndim; i++)
            if ((mask >> i & 1) == pass) {
                back.axis[i] = order.n;
                order.axis[order.n++] = i;
            }
    back.n = order.n;
    t = dvt_transpose(x, order);
    if (!t)
        return NULL;
    moved = t->shape;
    rows = DVT_SHAPE(-1, dvti_reduced_count(x, mask));
    t = dvt_reshape(t, rows);
    if (!t)
        return NULL;
    others = dvt_mul(dvti_products_before(t, false), dvti_products_before(t, true));
    return dvt_mul(g, dvt_transpose(dvt_reshape(others, moved), back));
}

/* ---- the others ---- */
/* Divided equally among all elements that reach the extreme. */
static dvt_array *dvti_grad_extreme(dvt_array *x, dvt_array *g, dvt_array *y, int64_t mask) {
    dvt_array *reach = dvt_equal(x, y);
    dvt_array *share = dvt_div(g, dvt_sum(reach, dvti_mask_axes(mask), true));
    return dvt_where(reach, share, dvti_number_like(g, 0));
}

/* g x / y, and 0 where the norm is 0. */
static dvt_array *dvti_grad_norm(dvt_array *x, dvt_array *g, dvt_array *y) {
    dvt_array *zero = dvt_equal_scalar(y, 0);
    dvt_array *divisor = dvt_where(zero, dvti_number_like(g, 1), y);
    return dvt_mul(x, dvt_where(zero, dvti_number_like(g, 0), dvt_div(g, divisor)));
}

/* g exp(x - y). Where all of x is -inf so is y, and x - y would be NaN: exp(-inf - 0) is the 0 that is meant. */
static dvt_array *dvti_grad_logsumexp(dvt_array *x, dvt_array *g, dvt_array *y) {
    dvt_array *nothing = dvt_equal_scalar(y, -(double)INFINITY);
    dvt_array *safe = dvt_where(nothing, dvti_number_like(g, 0), y);
    return dvt_mul(g, dvt_exp(dvt_sub(x, safe)));
}

static dvt_array *dvti_grad_softmax(const dvti_node *node, dvt_array *g, dvt_array *y) {
    dvt_axes axes = DVT_AXES((int)node->attr.i[0]);
    if (node->op == DVTI_OP_softmax)
        return dvt_mul(y, dvt_sub(g, dvt_sum(dvt_mul(g, y), axes, true)));
    return dvt_sub(g, dvt_mul(dvt_exp(y), dvt_sum(g, axes, true)));
}

DVTI_FN void dvti_grad_reduce(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    int64_t mask = node->attr.i[0];
    dvt_array *x = call->in[0], *g = call->g, *y = call->y;
    if (node->op == DVTI_OP_softmax || node->op == DVTI_OP_log_softmax) {
        call->out[0] = dvti_grad_softmax(node, g, y);
        return;
    }
    x = dvti_as_dtype_of(x, g);
    g = dvt_reshape(g, dvti_kept_shape(call->in[0], mask));
    if (y)
        y = dvt_reshape(y, dvti_kept_shape(call->in[0], mask));
    if (!x || !g || (call->y && !y))
        return;
    switch (node->op) {
    case DVTI_OP_sum:
        call->out[0] = dvt_broadcast_to(g, x->shape);
        break;
    case DVTI_OP_mean:
        call->out[0] =
            dvt_broadcast_to(dvt_div_scalar(g, (double)dvti_reduced_count(x, mask)), x->shape);
        break;
    case DVTI_OP_prod:
        call->out[0] = dvti_grad_prod(x, g, mask);
        break;
    case DVTI_OP_norm:
        call->out[0] = dvti_grad_norm(x, g, y);
        break;
    case DVTI_OP_logsumexp:
        call->out[0] = dvti_grad_logsumexp(x, g, y);
        break;
    default: /* min, max */
        call->out[0] = dvti_grad_extreme(x, g, y, mask);
    }
}
/* ==== end src/5_grad/grad_reduce.c ==== */
#ifdef DEVTENSOR_LINES
#line 65 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_grad/grad_view.c ==== */
/* Gradients of views: the same view, backwards. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_grad/grad_view.c"
#endif

static dvt_array *dvti_grad_transpose(const dvti_node *node, dvt_array *g) {
    dvt_axes order = DVT_ALL;
    int i;
    order.n = g->shape.ndim;
    for (i = 0; i < order.n; i++)
        order.axis[node->attr.i[i]] = i;
    return dvt_transpose(g, order);
}

/* The elements of g that unslice took from x. Bounds are given so that no negative one is read as "from the end". */
static dvt_array *dvti_grad_unslice(const dvti_node *node, dvt_array *x, dvt_array *g) {
    int axis = (int)node->attr.i[0];
    int64_t start = node->attr.i[1], step = node->attr.i[2], n = x->shape.dim[axis], stop;
    if (n == 0)
        return dvt_slice(g, axis, 0, 0, 1);
    if (n == 1)
        step = 1;
    stop = start + (n - 1) * step + (step > 0 ? 1 : -1);
    return dvt_slice(g, axis, start, stop < 0 ? DVT_END : stop, step);
}

DVTI_FN void dvti_grad_view(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    const int64_t *at = node->attr.i;
    dvt_array *x = call->in[0], *g = call->g;
    switch (node->op) {
    case DVTI_OP_reshape:
        call->out[0] = dvt_reshape(g, x->shape);
        break;
    case DVTI_OP_transpose:
        call->out[0] = dvti_grad_transpose(node, g);
        break;
    case DVTI_OP_slice:
        call->out[0] = dvti_unslice(g, (int)at[0], at[1], at[2], at[3]);
        break;
    case DVTI_OP_unslice:
        call->out[0] = dvti_grad_unslice(node, x, g);
        break;
    default: /* broadcast_to: what follows every gradient function sums it */
        call->out[0] = g;
    }
}
/* ==== end src/5_grad/grad_view.c ==== */
#ifdef DEVTENSOR_LINES
#line 66 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_array_list.c ==== */
/* Several named arrays, as a parameter file holds them. */
#ifdef DEVTENSOR_LINES
#line 1 "src/5_io/dvt_array_list.c"
#endif
/* ==== begin src/5_io/dvt_io_internal.h ==== */
/* What printing, the readers and the writers share: growing bytes, the text of one float, whole files, a checked
   cursor over bytes, decompression, and lists of named arrays. */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_io/dvt_io_internal.h"
#endif
#ifndef DVTI_IO_H
#define DVTI_IO_H
#ifdef DEVTENSOR_LINES
#line 5 "src/5_io/dvt_io_internal.h"
#endif

/* ---- bytes that grow; `failed` is set when memory runs out, and what follows is dropped ---- */
typedef struct dvti_writer {
    char *at;
    size_t length, capacity;
    bool failed;
} dvti_writer;

DVTI_FN dvti_writer dvti_writer_begin(void);
DVTI_FN void dvti_writer_free(dvti_writer *writer);
DVTI_FN void dvti_writer_bytes(dvti_writer *writer, const void *bytes, size_t n);
DVTI_FN void dvti_writer_text(dvti_writer *writer, const char *text);
DVTI_FN void dvti_writer_repeat(dvti_writer *writer, char c, int64_t times);
DVTI_FN void dvti_writer_int(dvti_writer *writer, int64_t value);
/* Unsigned, little-endian, `bytes` wide. */
DVTI_FN void dvti_writer_le(dvti_writer *writer, uint64_t value, int bytes);

/* ---- the decimal text of one float: the shortest digits that its own dtype reads back, or exact ones ---- */
typedef enum dvti_float_kind { DVTI_FINITE, DVTI_INFINITE, DVTI_NAN } dvti_float_kind;

/* The value is mantissa * 2^exponent. */
typedef struct dvti_float {
    dvti_float_kind kind;
    bool negative;
    bool lopsided; /* the next smaller float is only half as far away as the next larger one */
    uint64_t mantissa;
    int exponent;
} dvti_float;

DVTI_FN dvti_float dvti_float_read(dvt_dtype dtype, const void *at);

typedef enum dvti_trim {
    DVTI_TRIM_KEEP,  /* zeros are kept, and added up to at_least */
    DVTI_TRIM_POINT, /* "1." */
    DVTI_TRIM_ZERO,  /* "1.0" */
    DVTI_TRIM_ALL    /* "1" */
} dvti_trim;

/* Behind the point: at most and at least so many digits (-1: no bound). Blanks on the left of the whole part and on the
   right of the fraction up to the widths given. */
typedef struct dvti_number_format {
    bool scientific, exact;
    dvti_trim trim;
    int at_most, at_least;
    int pad_left, pad_right;
    int exponent_digits;
} dvti_number_format;

#define DVTI_MAX_PRECISION 500
#define DVTI_NUMBER_SIZE 2048
/* Writes a finite number, ended by 0, and returns its length. Independent of the locale. */
DVTI_FN int dvti_number_text(char *buffer, const dvti_float *x, const dvti_number_format *format);

/* ---- one array's elements as text ---- */
typedef struct dvti_element_format {
    dvt_dtype dtype;
    bool torch_like, scalar, whole; /* whole: PyTorch's form for floats without fractions */
    int width;                      /* of integers and bools, of everything in PyTorch's form */
    dvti_number_format number;
} dvti_element_format;

typedef struct dvti_print_rules {
    dvt_print_style style;
    int precision; /* -1: none */
    int64_t threshold, edge_items, line_width;
    bool suppress;
} dvti_print_rules;

/* Looks at all n elements and decides on one form for them, as NumPy or PyTorch do. ndim 0: the one element of an array
   without axes. */
DVTI_FN dvti_element_format dvti_element_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                              const void *elements, int64_t n, int ndim);
/* Writes one element, ended by 0, and returns its length. */
DVTI_FN int dvti_element_text(char *buffer, const dvti_element_format *format, const void *element);

/* ---- whole files. `function` is for messages. ---- */
/* The content of a file, in a block for dvti_free. False with IO, HOST_MEMORY or NOT_BUILT set. */
DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size);

/* A file that appears under its name only when it is complete. */
typedef struct dvti_file_out {
    const char *function;
    char *path, *temporary; /* temporary: NULL when written in place (devices, pipes) */
    FILE *file;
    bool failed;
} dvti_file_out;

/* False with the error set; then nothing is left to do. */
DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path);
/* Does nothing after a failure. */
DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n);
/* Ends the file: renames it when all went well and `ok`, else removes it. */
DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok);

/* ---- a reader of bytes that come from outside ---- */
typedef struct dvti_source {
    const unsigned char *at;
    size_t left;
    bool failed; /* something was read beyond the end; that and what follows reads as 0 */
} dvti_source;

DVTI_FN dvti_source dvti_source_begin(const void *bytes, size_t size);
/* n bytes and past them; NULL beyond the end. */
DVTI_FN const unsigned char *dvti_source_bytes(dvti_source *cursor, uint64_t n);
/* Unsigned, `bytes` wide. */
DVTI_FN uint64_t dvti_source_le(dvti_source *cursor, int bytes);
DVTI_FN uint64_t dvti_source_be(dvti_source *cursor, int bytes);
/* The same as a signed number of two's complement. */
DVTI_FN int64_t dvti_signed(uint64_t value, int bytes);

/* ---- elements as files store them ---- */
/* How a number is stored: its kind, its bytes, their order, and the dtype that holds all its values (or those that fit). */
typedef struct dvti_stored {
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int bytes;
    bool big_endian;
    dvt_dtype dtype;
} dvti_stored;

/* n elements at `from` become C-order elements of stored->dtype at `to`. False when one does not fit (uint64 only); its
   number is then in *bad. */
DVTI_FN bool dvti_stored_convert(const dvti_stored *stored, const unsigned char *from, void *to,
                                 int64_t n, int64_t *bad);
/* An array on ctx with these elements, which are the whole shape. NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_array(const char *function, const dvti_stored *stored,
                                     const unsigned char *from, dvt_shape shape, dvt_ctx ctx);
/* x's elements as files store them: contiguous, little-endian, of that dtype, in main memory (x itself where it is that
   already). Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype);

/* ---- gzip (RFC 1952) and deflate (RFC 1951) ---- */
DVTI_FN bool dvti_is_gzip(const void *bytes, size_t size);
/* All members, one after the other, in a block for dvti_free, of at most `limit` bytes. False with FORMAT or HOST_MEMORY
   set; `what` names the file in messages. */
DVTI_FN bool dvti_gunzip(const char *function, const char *what, const void *bytes, size_t size,
                         size_t limit, void **out, size_t *out_size);
/* The first n bytes of what the data hold, or all that there are. */
DVTI_FN bool dvti_gunzip_head(const char *function, const char *what, const void *bytes,
                              size_t size, unsigned char *head, size_t n, size_t *got);
/* Deflated data are at most so many times shorter than what they hold. */
#define DVTI_DEFLATE_RATIO 1032

/* ---- lists of named arrays ---- */
struct dvt_array_list {
    dvti_object object;
    int n;
    dvt_array **array;
    char **name; /* NULL: the file has no names */
};

/* A list of n places without arrays, owned by the innermost scope. NULL with HOST_MEMORY set. */
DVTI_FN dvt_array_list *dvti_array_list_new(const char *function, int n, bool named);

#endif
/* ==== end src/5_io/dvt_io_internal.h ==== */
#ifdef DEVTENSOR_LINES
#line 2 "src/5_io/dvt_array_list.c"
#endif

static void dvti_array_list_destroy(void *object) {
    dvt_array_list *list = (dvt_array_list *)object;
    int i;
    for (i = 0; i < list->n; i++) {
        dvt_release(list->array[i]);
        if (list->name)
            dvti_free(list->name[i]);
    }
    dvti_free(list->array);
    dvti_free(list->name);
    dvti_free(list);
}

DVTI_FN dvt_array_list *dvti_array_list_new(const char *function, int n, bool named) {
    dvt_array_list *list = (dvt_array_list *)dvti_alloc_zero(sizeof *list);
    size_t bytes = sizeof(void *) * (size_t)n;
    bool ok = list != NULL;
    if (ok) {
        list->n = n;
        list->array = (dvt_array **)dvti_alloc_zero(bytes);
        list->name = named ? (char **)dvti_alloc_zero(bytes) : NULL;
        ok = list->array && (list->name || !named);
    }
    if (!ok)
        dvti_fail_memory(function, (int64_t)bytes);
    if (ok && dvti_object_begin(list, dvti_array_list_destroy, function))
        return list;
    if (list) {
        dvti_free(list->array);
        dvti_free(list->name);
        dvti_free(list);
    }
    return NULL;
}

DVT_API int dvt_array_list_len(const dvt_array_list *list) {
    return list ? list->n : 0;
}

static bool dvti_array_list_index(const char *function, const dvt_array_list *list, int i) {
    if (!list) {
        dvti_null(function, "list");
        return false;
    }
    if (i >= 0 && i < list->n)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: i is %d; expected 0 to %d, the list has %d arrays", function, i,
              list->n - 1, list->n);
    return false;
}

DVT_API dvt_array *dvt_array_list_at(dvt_array_list *list, int i) {
    return dvti_array_list_index("dvt_array_list_at", list, i) ? list->array[i] : NULL;
}

DVT_API const char *dvt_array_list_name(const dvt_array_list *list, int i) {
    if (!dvti_array_list_index("dvt_array_list_name", list, i) || !list->name)
        return "";
    return list->name[i];
}

DVT_API dvt_array *dvt_array_list_find(dvt_array_list *list, const char *name) {
    char known[512];
    dvti_text text = dvti_text_begin(known, sizeof known);
    int i;
    if (!list || !name) {
        dvti_null("dvt_array_list_find", list ? "name" : "list");
        return NULL;
    }
    for (i = 0; list->name && i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return list->array[i];
    for (i = 0; list->name && i < list->n; i++)
        dvti_text_add(&text, "%s\"%.60s\"", i ? ", " : "", list->name[i]);
    dvti_fail(DVT_ERR_NAME, "dvt_array_list_find: no array is named \"%.100s\"; the list %s%s%s",
              name, list->name ? "has " : "has no names: use dvt_array_list_at", known,
              text.length >= sizeof known ? "..." : "");
    return NULL;
}
/* ==== end src/5_io/dvt_array_list.c ==== */
#ifdef DEVTENSOR_LINES
#line 67 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_files.c ==== */
/* Whole files into memory, files that appear only when they are complete, the checked cursor over bytes, and elements as
   files store them. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_files.c"
#endif

/* ---- cursor ---- */
DVTI_FN dvti_source dvti_source_begin(const void *bytes, size_t size) {
    dvti_source cursor;
    cursor.at = (const unsigned char *)bytes;
    cursor.left = size;
    cursor.failed = false;
    return cursor;
}

DVTI_FN const unsigned char *dvti_source_bytes(dvti_source *cursor, uint64_t n) {
    const unsigned char *at = cursor->at;
    if (cursor->failed || n > cursor->left) {
        cursor->failed = true;
        return NULL;
    }
    if (n) { /* adding 0 to NULL is undefined */
        cursor->at += n;
        cursor->left -= (size_t)n;
    }
    return at;
}

static uint64_t dvti_bytes_value(const unsigned char *at, int bytes, bool big_endian) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < bytes; i++)
        value = value << 8 | at[big_endian ? i : bytes - 1 - i];
    return value;
}

DVTI_FN uint64_t dvti_source_le(dvti_source *cursor, int bytes) {
    const unsigned char *at = dvti_source_bytes(cursor, (uint64_t)bytes);
    return at ? dvti_bytes_value(at, bytes, false) : 0;
}

DVTI_FN uint64_t dvti_source_be(dvti_source *cursor, int bytes) {
    const unsigned char *at = dvti_source_bytes(cursor, (uint64_t)bytes);
    return at ? dvti_bytes_value(at, bytes, true) : 0;
}

DVTI_FN int64_t dvti_signed(uint64_t value, int bytes) {
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    int64_t result;
    value = (value ^ sign) - sign;
    memcpy(&result, &value, sizeof result);
    return result;
}

/* ---- stored elements ---- */
static void dvti_store_int(dvt_dtype dtype, char *to, int64_t i, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (dtype == DVT_I64)
        memcpy(to + 8 * i, &value, 8);
    else if (dtype == DVT_I32)
        memcpy(to + 4 * i, &narrow, 4);
    else if (dtype == DVT_BOOL)
        to[i] = value != 0;
    else
        memcpy(to + i, &narrow, 1);
}

/* Floats keep their bits, whatever the byte order of this machine. */
static void dvti_store_bits(char *to, int bytes, int64_t i, uint64_t value) {
    uint32_t b32 = (uint32_t)value;
    uint16_t b16 = (uint16_t)value;
    if (bytes == 8)
        memcpy(to + 8 * i, &value, 8);
    else if (bytes == 4)
        memcpy(to + 4 * i, &b32, 4);
    else
        memcpy(to + 2 * i, &b16, 2);
}

static bool dvti_host_is_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

DVTI_FN bool dvti_stored_convert(const dvti_stored *stored, const unsigned char *from, void *to,
                                 int64_t n, int64_t *bad) {
    int64_t i;
    if (n == 0)
        return true;
    if (stored->kind != 'b' && stored->bytes == (int)dvt_dtype_size(stored->dtype) &&
        (stored->bytes == 1 || stored->big_endian == dvti_host_is_big_endian()) &&
        (stored->kind != 'u' || stored->bytes == 1)) {
        memcpy(to, from, (size_t)n * (size_t)stored->bytes);
        return true;
    }
    for (i = 0; i < n; i++) {
        uint64_t value =
            dvti_bytes_value(from + i * stored->bytes, stored->bytes, stored->big_endian);
        if (stored->kind == 'f')
            dvti_store_bits((char *)to, stored->bytes, i, value);
        else if (stored->kind == 'i')
            dvti_store_int(stored->dtype, (char *)to, i, dvti_signed(value, stored->bytes));
        else if (value > (uint64_t)INT64_MAX) {
            *bad = i;
            return false;
        } else
            dvti_store_int(stored->dtype, (char *)to, i, (int64_t)value);
    }
    return true;
}

DVTI_FN dvt_array *dvti_stored_array(const char *function, const dvti_stored *stored,
                                     const unsigned char *from, dvt_shape shape, dvt_ctx ctx) {
    dvt_array *host, *result = NULL;
    int64_t bad = 0;
    dvt_scope_guard scope;
    ctx = dvti_ctx(ctx);
    scope = dvt_scope_begin();
    host = dvti_array_new(function, shape, stored->dtype,
                          ctx.type == DVT_DEVICE_CPU ? ctx : dvt_cpu());
    if (host) {
        if (!dvti_stored_convert(stored, from, dvti_view_of(host).data, dvt_size(host), &bad))
            dvti_fail(DVT_ERR_FORMAT,
                      "%s: element %lld is a uint64 above 9223372036854775807, which int64 cannot "
                      "hold; convert the data to int64 or a float before saving",
                      function, (long long)bad);
        else if (ctx.type == DVT_DEVICE_CPU)
            result = host;
        else {
            result = dvti_array_new(function, shape, stored->dtype, ctx);
            if (result && dvti_copy_elements(function, result, host) != DVT_OK)
                result = NULL;
        }
    }
    dvt_keep(result);
    dvt_scope_end(&scope);
    return result;
}

static void dvti_swap_bytes(unsigned char *at, int bytes, int64_t n) {
    for (; n > 0; n--, at += bytes) {
        int i;
        for (i = 0; i < bytes / 2; i++) {
            unsigned char low = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = low;
        }
    }
}

/* A named way to read values: the guard of implicit reads does not apply. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype) {
    dvt_array *host;
    bool swap = dvti_host_is_big_endian() && dvt_dtype_size(dtype) > 1;
    if (!swap && x->storage->ctx.type == DVT_DEVICE_CPU && x->dtype == dtype &&
        dvt_is_contiguous(x))
        return dvt_wait(x) == DVT_OK ? x : NULL;
    host = dvti_array_new(function, x->shape, dtype, dvt_cpu());
    if (!host || dvti_copy_elements(function, host, x) != DVT_OK || dvt_wait(host) != DVT_OK)
        return NULL;
    if (swap)
        dvti_swap_bytes((unsigned char *)dvti_view_of(host).data, (int)dvt_dtype_size(dtype),
                        dvt_size(host));
    return host;
}

/* ---- files ---- */
#if defined(DEVTENSOR_NO_FILES)
static bool dvti_no_files(const char *function) {
    dvti_fail(DVT_ERR_NOT_BUILT,
              "%s: this build was compiled with DEVTENSOR_NO_FILES; read the bytes yourself and "
              "use the form that takes memory, or compile without that switch",
              function);
    return false;
}

DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size) {
    *bytes = NULL;
    *size = 0;
    return path ? dvti_no_files(function) : (dvti_null(function, "path"), false);
}

DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path) {
    memset(out, 0, sizeof *out);
    return path ? dvti_no_files(function) : (dvti_null(function, "path"), false);
}

DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n) {
    (void)out;
    (void)bytes;
    (void)n;
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    (void)ok;
    return dvti_no_files(out->function) ? DVT_OK : DVT_ERR_NOT_BUILT;
}
#else
static bool dvti_file_error(const char *function, const char *path, const char *what, int error) {
    dvti_fail(DVT_ERR_IO,
              "%s: \"%.300s\" could not be %s: %s; check the path, its permissions and "
              "the space that is left",
              function, path, what, error ? strerror(error) : "unknown reason");
    return false;
}

/* What can be asked beforehand: the bytes from here to the end; -1 for pipes and other streams. */
static int64_t dvti_file_size(FILE *file) {
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    return size >= 0 && fseek(file, 0, SEEK_SET) == 0 ? (int64_t)size : -1;
}

/* Reads until the end, in steps that grow: the size asked for beforehand is a hint, the end of the file decides. */
static bool dvti_file_read_all(const char *function, FILE *file, const char *path, int64_t size,
                               void **bytes, size_t *got) {
    size_t capacity = 0, want = size >= 0 ? (size_t)size + 1 : 65536, n;
    for (;;) {
        if (want - *got > capacity - *got) {
            if (!*bytes && (*bytes = dvti_alloc(want)) != NULL)
                capacity = want;
            if (!*bytes || !dvti_grow(bytes, &capacity, want, 1)) {
                dvti_fail_memory(function, (int64_t)want);
                return false;
            }
        }
        n = fread((char *)*bytes + *got, 1, capacity - *got, file);
        *got += n;
        if (ferror(file))
            return dvti_file_error(function, path, "read", errno);
        if (n == 0 || feof(file))
            return true;
        want = *got + 65536;
    }
}

DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size) {
    FILE *file;
    int64_t known;
    bool ok = true;
    int first;
    *bytes = NULL;
    *size = 0;
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    errno = 0;
    file = fopen(path, "rb");
    if (!file)
        return dvti_file_error(function, path, "opened", errno);
    known = dvti_file_size(file);
    /* A directory opens, and claims to be enormous; reading one byte tells. */
    first = fgetc(file);
    if (first == EOF && ferror(file))
        ok = dvti_file_error(function, path, "read", errno);
    else if (first != EOF) {
        ungetc(first, file);
        ok = dvti_file_read_all(function, file, path, known, bytes, size);
    }
    fclose(file);
    if (!ok) {
        dvti_free(*bytes);
        *bytes = NULL;
        *size = 0;
    }
    return ok;
}

/* Renaming onto a device or a pipe would replace it by a file: such are written in place. */
static bool dvti_file_in_place(const char *path) {
#if defined(_WIN32)
    (void)path;
    return false;
#else
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
#endif
}

static bool dvti_file_name_temporary(dvti_file_out *out) {
    static dvti_atomic counter;
    size_t room = strlen(out->path) + 64;
    out->temporary = (char *)dvti_alloc(room);
    if (!out->temporary)
        return false;
    snprintf(out->temporary, room, "%s.tmp%lld-%lld", out->path, (long long)dvti_process_id(),
             (long long)dvti_atomic_add(&counter, 1));
    return true;
}

static void dvti_file_out_free(dvti_file_out *out) {
    dvti_free(out->path);
    dvti_free(out->temporary);
    memset(out, 0, sizeof *out);
}

DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path) {
    memset(out, 0, sizeof *out);
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    out->function = function;
    out->path = dvti_strdup(path);
    if (!out->path || (!dvti_file_in_place(path) && !dvti_file_name_temporary(out))) {
        dvti_fail_memory(function, (int64_t)strlen(path) + 64);
        dvti_file_out_free(out);
        return false;
    }
    errno = 0;
    /* x: never through a link that somebody else put there */
    out->file = fopen(out->temporary ? out->temporary : path, out->temporary ? "wbx" : "wb");
    if (!out->file) {
        dvti_file_error(function, path, "written", errno);
        dvti_file_out_free(out);
        return false;
    }
    return true;
}

DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n) {
    if (out->failed || !n)
        return;
    errno = 0;
    if (fwrite(bytes, 1, n, out->file) != n) {
        out->failed = true;
        dvti_file_error(out->function, out->path, "written", errno);
    }
}

static bool dvti_file_rename(const char *from, const char *to) {
#if defined(_WIN32)
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
#else
    return rename(from, to) == 0;
#endif
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    bool done;
    errno = 0;
    if (fclose(out->file) != 0 && !out->failed && ok) {
        out->failed = true;
        dvti_file_error(out->function, out->path, "written", errno);
    }
    done = ok && !out->failed;
    if (done && out->temporary && !dvti_file_rename(out->temporary, out->path)) {
        dvti_file_error(out->function, out->path, "replaced", errno);
        done = false;
    }
    if (!done && out->temporary)
        remove(out->temporary);
    dvti_file_out_free(out);
    return done ? DVT_OK : dvt_error_code();
}
#endif
/* ==== end src/5_io/dvt_files.c ==== */
#ifdef DEVTENSOR_LINES
#line 68 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_float_text.c ==== */
/* The decimal digits of a binary float, exactly: a fixed-size big integer, digit generation after Steele and White
   ("How to print floating-point numbers accurately", 1990) with the scaling of Burger and Dybvig (1996), and the two
   notations. Uses no printf, so neither the locale nor the C library's rounding matters. */
#ifdef DEVTENSOR_LINES
#line 4 "src/5_io/dvt_float_text.c"
#endif

/* 2^1077 * 10 is the largest number needed (the smallest float64). */
#define DVTI_BIG_WORDS 36
/* No float64 has more significant decimal digits than 767. */
#define DVTI_DIGITS 800

typedef struct dvti_big {
    int n;
    uint32_t word[DVTI_BIG_WORDS]; /* low words first; none above n */
} dvti_big;

static void dvti_big_set(dvti_big *x, uint64_t value) {
    x->word[0] = (uint32_t)value;
    x->word[1] = (uint32_t)(value >> 32);
    x->n = value >> 32 ? 2 : value ? 1 : 0;
}

static void dvti_big_shift(dvti_big *x, int bits) {
    int words = bits / 32, rest = bits % 32, i;
    uint32_t carry = 0;
    if (!x->n || !bits)
        return;
    for (i = 0; rest && i < x->n; i++) {
        uint32_t w = x->word[i];
        x->word[i] = w << rest | carry;
        carry = w >> (32 - rest);
    }
    if (carry)
        x->word[x->n++] = carry;
    memmove(x->word + words, x->word, sizeof x->word[0] * (size_t)x->n);
    memset(x->word, 0, sizeof x->word[0] * (size_t)words);
    x->n += words;
}

static void dvti_big_times(dvti_big *x, uint32_t factor) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < x->n; i++) {
        carry += (uint64_t)x->word[i] * factor;
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        x->word[x->n++] = (uint32_t)carry;
}

static void dvti_big_times_power_of_10(dvti_big *x, int power) {
    for (; power >= 9; power -= 9)
        dvti_big_times(x, 1000000000u);
    for (; power > 0; power--)
        dvti_big_times(x, 10);
}

static int dvti_big_compare(const dvti_big *a, const dvti_big *b) {
    int i;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (i = a->n - 1; i >= 0; i--)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

static void dvti_big_add(dvti_big *x, const dvti_big *y) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < x->n || i < y->n || carry; i++) {
        carry += (uint64_t)(i < x->n ? x->word[i] : 0) + (i < y->n ? y->word[i] : 0);
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
        if (i >= x->n)
            x->n = i + 1;
    }
}

/* Only for x >= y. */
static void dvti_big_subtract(dvti_big *x, const dvti_big *y) {
    uint64_t borrow = 0;
    int i;
    for (i = 0; i < x->n; i++) {
        uint64_t difference = (uint64_t)x->word[i] - (i < y->n ? y->word[i] : 0) - borrow;
        x->word[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    while (x->n && !x->word[x->n - 1])
        x->n--;
}

/* x / y, which is 0 to 9; the remainder stays in x. */
static int dvti_big_digit(dvti_big *x, const dvti_big *y) {
    int digit = 0;
    for (; dvti_big_compare(x, y) >= 0; digit++)
        dvti_big_subtract(x, y);
    return digit;
}

/* ---- taking a float apart ---- */
typedef struct dvti_float_layout {
    int fraction_bits, exponent_bits;
} dvti_float_layout;

static dvti_float dvti_float_split(uint64_t bits, dvti_float_layout layout) {
    int bias = (1 << (layout.exponent_bits - 1)) - 1 + layout.fraction_bits;
    int exponent = (int)(bits >> layout.fraction_bits & ((1u << layout.exponent_bits) - 1));
    uint64_t fraction = bits & (((uint64_t)1 << layout.fraction_bits) - 1);
    dvti_float x;
    memset(&x, 0, sizeof x);
    x.negative = bits >> (layout.fraction_bits + layout.exponent_bits) & 1;
    if (exponent == (1 << layout.exponent_bits) - 1) {
        x.kind = fraction ? DVTI_NAN : DVTI_INFINITE;
        return x;
    }
    x.kind = DVTI_FINITE;
    x.lopsided = fraction == 0 && exponent > 1;
    x.mantissa = exponent ? fraction | (uint64_t)1 << layout.fraction_bits : fraction;
    x.exponent = (exponent ? exponent : 1) - bias;
    return x;
}

DVTI_FN dvti_float dvti_float_read(dvt_dtype dtype, const void *at) {
    static const dvti_float_layout f32 = {23, 8}, f64 = {52, 11}, f16 = {10, 5}, bf16 = {7, 8};
    uint64_t bits64;
    uint32_t bits32;
    uint16_t bits16;
    if (dtype == DVT_F64) {
        memcpy(&bits64, at, sizeof bits64);
        return dvti_float_split(bits64, f64);
    }
    if (dtype == DVT_F32) {
        memcpy(&bits32, at, sizeof bits32);
        return dvti_float_split(bits32, f32);
    }
    memcpy(&bits16, at, sizeof bits16);
    return dvti_float_split(bits16, dtype == DVT_F16 ? f16 : bf16);
}

/* ---- digits ---- */
typedef struct dvti_digits {
    int n;
    int exponent; /* of the first digit: d.ddd * 10^exponent */
    char digit[DVTI_DIGITS];
} dvti_digits;

/* The value as value / scale, and half the distances to its neighbours in the same unit. */
typedef struct dvti_ratio {
    dvti_big value, scale, below, above;
} dvti_ratio;

/* Distances of a whole unit and more decide nothing further: they stop growing, so that many digits fit as well. */
static void dvti_ratio_times_10(dvti_ratio *r) {
    dvti_big_times(&r->value, 10);
    if (dvti_big_compare(&r->below, &r->scale) >= 0)
        return;
    dvti_big_times(&r->below, 10);
    dvti_big_times(&r->above, 10);
}

/* Brings value / scale to [1, 10) and returns the power of ten that this took; not below `floor`, where the first digit
   may then be 0. */
static int dvti_ratio_scale(dvti_ratio *r, const dvti_float *x, int floor_position) {
    int up = x->lopsided ? 2 : 1, high = 0, position;
    while (x->mantissa >> high > 1)
        high++;
    dvti_big_set(&r->value, x->mantissa);
    dvti_big_set(&r->scale, 1);
    dvti_big_set(&r->below, 1);
    dvti_big_shift(&r->value, up + (x->exponent > 0 ? x->exponent : 0));
    dvti_big_shift(&r->scale, up + (x->exponent < 0 ? -x->exponent : 0));
    dvti_big_shift(&r->below, x->exponent > 0 ? x->exponent : 0);
    r->above = r->below;
    if (x->lopsided)
        dvti_big_shift(&r->above, 1);
    /* log10(2) times the binary exponent: right, or one too small */
    position = (int)floor((high + x->exponent) * 0.30102999566398119 - 1e-9);
    if (position < floor_position)
        position = floor_position;
    if (position > 0)
        dvti_big_times_power_of_10(&r->scale, position);
    else {
        dvti_big_times_power_of_10(&r->value, -position);
        dvti_big_times_power_of_10(&r->below, -position);
        dvti_big_times_power_of_10(&r->above, -position);
    }
    {
        dvti_big ten = r->scale;
        dvti_big_times(&ten, 10);
        if (dvti_big_compare(&r->value, &ten) >= 0) {
            r->scale = ten;
            position++;
        }
    }
    return position;
}

/* Adds one to the last digit, carrying; 999 becomes 1 of the next higher power. */
static void dvti_digits_round_up(dvti_digits *d) {
    while (d->n > 0 && d->digit[d->n - 1] == '9')
        d->n--;
    if (d->n > 0)
        d->digit[d->n - 1]++;
    else {
        d->digit[d->n++] = '1';
        d->exponent++;
    }
}

/* Digits until they tell x from its neighbours, but down to position `least` in any case and never below `last`; exact:
   until nothing is left or `last` is reached. The last digit is rounded, ties to even. */
static void dvti_digits_make(dvti_digits *d, const dvti_float *x,
                             const dvti_number_format *format) {
    bool even = !(x->mantissa & 1), down = false, up = false, relative = format->scientific;
    int position, least, last, digit;
    dvti_ratio r;
    d->n = 0;
    d->exponent = 0;
    if (!x->mantissa) {
        d->digit[d->n++] = '0';
        return;
    }
    position =
        dvti_ratio_scale(&r, x, relative || format->at_most < 0 ? INT_MIN / 2 : -format->at_most);
    last = format->at_most < 0 ? INT_MIN / 2 : (relative ? position : 0) - format->at_most;
    least = format->at_least < 0 ? INT_MAX : (relative ? position : 0) - format->at_least;
    d->exponent = position;
    for (;; position--) {
        digit = dvti_big_digit(&r.value, &r.scale);
        if (!format->exact) {
            dvti_big top = r.value;
            dvti_big_add(&top, &r.above);
            down = dvti_big_compare(&r.value, &r.below) < (even ? 1 : 0);
            up = dvti_big_compare(&top, &r.scale) > (even ? -1 : 0);
        }
        d->digit[d->n++] = (char)('0' + digit);
        if (((down || up) && position <= least) || position <= last || d->n == DVTI_DIGITS ||
            (format->exact && !r.value.n))
            break;
        dvti_ratio_times_10(&r);
    }
    if (down == up) { /* both neighbours are out of the way, or neither: the nearer digit */
        int half;
        dvti_big_shift(&r.value, 1);
        half = dvti_big_compare(&r.value, &r.scale);
        up = half > 0 || (half == 0 && digit & 1);
    }
    if (up)
        dvti_digits_round_up(d);
}

/* ---- the two notations ---- */
typedef struct dvti_pen {
    char *at;
    int n;
} dvti_pen;

static void dvti_pen_repeat(dvti_pen *pen, char c, int times) {
    for (; times > 0; times--)
        pen->at[pen->n++] = c;
}

static void dvti_pen_digits(dvti_pen *pen, const dvti_digits *d, int from, int to) {
    int i;
    for (i = from; i < to; i++)
        pen->at[pen->n++] = i >= 0 && i < d->n ? d->digit[i] : '0';
}

/* The point and the digits from..to behind it, trimmed. Returns how many characters stand behind the point. */
static int dvti_pen_fraction(dvti_pen *pen, const dvti_digits *d, int from,
                             const dvti_number_format *format) {
    int to = d->n, places;
    if (format->trim == DVTI_TRIM_KEEP)
        to = DVTI_MAX(to, from + format->at_least);
    else
        while (to > from && (to <= 0 || d->digit[to - 1] == '0'))
            to--;
    places = to > from ? to - from : 0;
    if (!places && format->trim == DVTI_TRIM_ALL)
        return 0;
    pen->at[pen->n++] = '.';
    dvti_pen_digits(pen, d, from, from + places);
    if (!places && format->trim == DVTI_TRIM_ZERO) {
        pen->at[pen->n++] = '0';
        places = 1;
    }
    return places;
}

static void dvti_pen_exponent(dvti_pen *pen, int exponent, int least_digits) {
    char digits[8];
    int n = 0, left = exponent < 0 ? -exponent : exponent;
    for (; left || n < least_digits || n < 2; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    pen->at[pen->n++] = 'e';
    pen->at[pen->n++] = exponent < 0 ? '-' : '+';
    while (n)
        pen->at[pen->n++] = digits[--n];
}

DVTI_FN int dvti_number_text(char *buffer, const dvti_float *x, const dvti_number_format *format) {
    dvti_digits digits;
    dvti_pen pen;
    int whole, places;
    dvti_digits_make(&digits, x, format);
    pen.at = buffer;
    pen.n = 0;
    whole = format->scientific || digits.exponent < 0 ? 1 : digits.exponent + 1;
    dvti_pen_repeat(&pen, ' ', format->pad_left - whole - (x->negative ? 1 : 0));
    if (x->negative)
        pen.at[pen.n++] = '-';
    if (format->scientific) {
        dvti_pen_digits(&pen, &digits, 0, 1);
        dvti_pen_fraction(&pen, &digits, 1, format);
        dvti_pen_exponent(&pen, digits.exponent, format->exponent_digits);
    } else {
        if (digits.exponent < 0)
            pen.at[pen.n++] = '0';
        else
            dvti_pen_digits(&pen, &digits, 0, whole);
        places = dvti_pen_fraction(&pen, &digits, digits.exponent + 1, format);
        dvti_pen_repeat(&pen, ' ', format->pad_right - places);
    }
    pen.at[pen.n] = 0;
    return pen.n;
}

#undef DVTI_BIG_WORDS
#undef DVTI_DIGITS
/* ==== end src/5_io/dvt_float_text.c ==== */
#ifdef DEVTENSOR_LINES
#line 69 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_idx.c ==== */
/* IDX, the format of MNIST: 0, 0, type, number of axes; the extents; the elements; all big-endian. Plain or gzip, told
   apart by content. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_idx.c"
#endif

#define DVTI_IDX_HEADER (4 + 4 * DVT_MAX_DIMS)

typedef struct dvti_idx_header {
    dvti_stored stored;
    dvt_shape shape;
    int64_t begin, bytes; /* of the header, and of all */
} dvti_idx_header;

static bool dvti_idx_type(unsigned type, dvti_stored *stored) {
    static const struct {
        unsigned type;
        char kind;
        int bytes;
        dvt_dtype dtype;
    } known[] = {{0x08, 'u', 1, DVT_U8},  {0x09, 'i', 1, DVT_I8},  {0x0b, 'i', 2, DVT_I32},
                 {0x0c, 'i', 4, DVT_I32}, {0x0d, 'f', 4, DVT_F32}, {0x0e, 'f', 8, DVT_F64}};

    int i;
    for (i = 0; i < DVTI_LENGTH(known); i++)
        if (known[i].type == type) {
            stored->kind = known[i].kind;
            stored->bytes = known[i].bytes;
            stored->big_endian = true;
            stored->dtype = known[i].dtype;
            return true;
        }
    return false;
}

static bool dvti_idx_parse(const char *function, const char *what, const void *bytes, size_t size,
                           dvti_idx_header *header) {
    dvti_source in = dvti_source_begin(bytes, size);
    unsigned zero = (unsigned)dvti_source_be(&in, 2), type = (unsigned)dvti_source_be(&in, 1);
    int ndim = (int)dvti_source_be(&in, 1), i;
    int64_t count = 1;
    bool fits = true;
    memset(header, 0, sizeof *header);
    if (in.failed || zero != 0 || !dvti_idx_type(type, &header->stored) || ndim == 0) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: this is not an IDX file (it has %lld bytes and begins with %02x %02x "
            "%02x %02x); expected 00 00, a type of 08, 09, 0b, 0c, 0d or 0e, and the number of "
            "axes: check that the path names the right file",
            function, what, (long long)size, zero >> 8, zero & 255, type, (unsigned)ndim);
        return false;
    }
    if (ndim > DVT_MAX_DIMS) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says %d axes; expected at most %d: the file is damaged, or "
            "not IDX",
            function, what, ndim, DVT_MAX_DIMS);
        return false;
    }
    header->shape.ndim = ndim;
    for (i = 0; i < ndim; i++) {
        header->shape.dim[i] = (int64_t)dvti_source_be(&in, 4);
        fits = fits && dvti_mul(count, header->shape.dim[i], &count);
    }
    if (in.failed) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the file ends within its header, after %lld bytes; expected %d extents "
            "of 4 bytes: fetch the file again",
            function, what, (long long)size, ndim);
        return false;
    }
    header->begin = 4 + 4 * ndim;
    if (!fits || !dvti_mul(count, header->stored.bytes, &header->bytes) ||
        !dvti_sum(header->bytes, header->begin, &header->bytes)) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says %s, which is more than any file holds: it is damaged, "
            "fetch it again",
            function, what, dvti_shape_text(header->shape));
        return false;
    }
    return true;
}

static dvt_array *dvti_idx_plain(const char *function, const char *what, const void *bytes,
                                 size_t size, dvt_ctx ctx) {
    dvti_idx_header header;
    if (!dvti_idx_parse(function, what, bytes, size, &header))
        return NULL;
    if ((uint64_t)header.bytes != size) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says shape %s, which takes %lld bytes, but there are %lld; "
            "the file is cut off, damaged, or followed by something else: fetch it again",
            function, what, dvti_shape_text(header.shape), (long long)header.bytes,
            (long long)size);
        return NULL;
    }
    return dvti_stored_array(function, &header.stored, (const unsigned char *)bytes + header.begin,
                             header.shape, ctx);
}

/* The header, which is unpacked first, says how much there may be. */
static dvt_array *dvti_idx_gzip(const char *function, const char *what, const void *bytes,
                                size_t size, dvt_ctx ctx) {
    unsigned char head[DVTI_IDX_HEADER];
    dvti_idx_header header;
    dvt_array *result;
    void *plain;
    size_t got;
    if (!dvti_gunzip_head(function, what, bytes, size, head, sizeof head, &got) ||
        !dvti_idx_parse(function, what, head, got, &header))
        return NULL;
    if ((uint64_t)header.bytes / DVTI_DEFLATE_RATIO > size) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: %.300s: the header says shape %s, which takes %lld bytes, more than %lld "
                  "compressed bytes can hold; the file is cut off or damaged: fetch it again",
                  function, what, dvti_shape_text(header.shape), (long long)header.bytes,
                  (long long)size);
        return NULL;
    }
    if (!dvti_gunzip(function, what, bytes, size, (size_t)header.bytes, &plain, &got))
        return NULL;
    result = dvti_idx_plain(function, what, plain, got, ctx);
    dvti_free(plain);
    return result;
}

static dvt_array *dvti_idx(const char *function, const char *what, const void *bytes, size_t size,
                           dvt_ctx ctx) {
    return dvti_is_gzip(bytes, size) ? dvti_idx_gzip(function, what, bytes, size, ctx)
                                     : dvti_idx_plain(function, what, bytes, size, ctx);
}

DVT_API dvt_array *dvt_read_idx(const void *data, size_t bytes, dvt_ctx ctx) {
    if (!data) {
        dvti_null("dvt_read_idx", "data");
        return NULL;
    }
    return dvti_idx("dvt_read_idx", "the data", data, bytes, ctx);
}

DVT_API dvt_array *dvt_load_idx(const char *path, dvt_ctx ctx) {
    void *bytes;
    size_t size;
    dvt_array *result;
    if (!dvti_file_read("dvt_load_idx", path, &bytes, &size))
        return NULL;
    result = dvti_idx("dvt_load_idx", path, bytes, size, ctx);
    dvti_free(bytes);
    return result;
}

#undef DVTI_IDX_HEADER
/* ==== end src/5_io/dvt_idx.c ==== */
#ifdef DEVTENSOR_LINES
#line 70 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_inflate.c ==== */
/* Reading gzip (RFC 1952) and deflate (RFC 1951). Codes of up to 11 bits are looked up in a table, the rare longer ones
   are found by counting. The output is checked against the checksum and the length that the file gives. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_inflate.c"
#endif

#define DVTI_LOOKUP_BITS 11
#define DVTI_MAX_CODE 15

typedef struct dvti_huffman {
    uint16_t
        lookup[1 << DVTI_LOOKUP_BITS]; /* symbol * 16 + length of its code; 0: longer, or none */
    uint16_t count[DVTI_MAX_CODE + 1]; /* codes of each length */
    uint16_t symbol[288];              /* by length, then by value */
} dvti_huffman;

typedef struct dvti_inflater {
    const unsigned char *in, *end;
    uint64_t bits;
    int n_bits;
    unsigned char *out;
    size_t n, capacity, limit;
    size_t start;      /* of this member's output: matches do not reach before it */
    const char *wrong; /* what is wrong with the data; NULL so far */
    bool no_memory, full;
    dvti_huffman literal, distance;
} dvti_inflater;

/* ---- bits ---- */
static void dvti_refill(dvti_inflater *s) {
    if (s->end - s->in >= 8) {
        uint64_t word = 0;
        int i;
        for (i = 7; i >= 0; i--) /* one load, where the compiler sees it */
            word = word << 8 | s->in[i];
        s->bits |= word << s->n_bits;
        s->in += (63 - s->n_bits) >> 3;
        s->n_bits |= 56;
        return;
    }
    while (s->n_bits <= 56 && s->in < s->end) {
        s->bits |= (uint64_t)*s->in++ << s->n_bits;
        s->n_bits += 8;
    }
}

static bool dvti_inflate_fail(dvti_inflater *s, const char *wrong) {
    if (!s->wrong)
        s->wrong = wrong;
    return false;
}

static unsigned dvti_take_bits(dvti_inflater *s, int n) {
    unsigned value;
    if (s->n_bits < n)
        dvti_refill(s);
    if (s->n_bits < n) {
        dvti_inflate_fail(s, "it ends in the middle");
        return 0;
    }
    value = (unsigned)(s->bits & (((uint64_t)1 << n) - 1));
    s->bits >>= n;
    s->n_bits -= n;
    return value;
}

/* Back to whole bytes: what was read ahead is given back. */
static void dvti_align(dvti_inflater *s) {
    s->in -= s->n_bits >> 3;
    s->bits = 0;
    s->n_bits = 0;
}

/* ---- codes ---- */
/* From the length of each symbol's code. A set of codes must be complete, except that one code, or none, may stand alone
   with one bit. */
static bool dvti_huffman_build(dvti_huffman *h, const unsigned char *length, int n) {
    uint16_t next[DVTI_MAX_CODE + 2], offset[DVTI_MAX_CODE + 2];
    int left = 1, i, bits, used;
    unsigned code = 0;
    memset(h, 0, sizeof *h);
    for (i = 0; i < n; i++)
        h->count[length[i]]++;
    used = n - h->count[0];
    h->count[0] = 0;
    offset[1] = 0;
    for (bits = 1; bits <= DVTI_MAX_CODE; bits++) {
        left = left * 2 - h->count[bits];
        if (left < 0)
            return false;
        code = (code + h->count[bits - 1]) << 1;
        next[bits] = (uint16_t)code;
        offset[bits + 1] = (uint16_t)(offset[bits] + h->count[bits]);
    }
    if (left > 0 && !(used == 0 || (used == 1 && h->count[1] == 1)))
        return false;
    for (i = 0; i < n; i++) {
        unsigned reversed = 0, rest;
        int k;
        bits = length[i];
        if (!bits)
            continue;
        h->symbol[offset[bits]++] = (uint16_t)i;
        rest = next[bits]++;
        for (k = 0; k < bits; k++, rest >>= 1)
            reversed = reversed << 1 | (rest & 1);
        for (; bits <= DVTI_LOOKUP_BITS && reversed < 1u << DVTI_LOOKUP_BITS;
             reversed += 1u << bits)
            h->lookup[reversed] = (uint16_t)(i * 16 + bits);
    }
    return true;
}

/* The symbol of a code longer than the table, or -1. Codes of one length are consecutive numbers. */
static int dvti_decode_long(dvti_inflater *s, const dvti_huffman *h) {
    int code = 0, first = 0, index = 0, bits;
    for (bits = 1; bits <= DVTI_MAX_CODE && bits <= s->n_bits; bits++) {
        int count = h->count[bits];
        code |= (int)(s->bits >> (bits - 1) & 1);
        if (code - first < count) {
            s->bits >>= bits;
            s->n_bits -= bits;
            return h->symbol[index + code - first];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    dvti_inflate_fail(s, s->n_bits < DVTI_MAX_CODE ? "it ends in the middle"
                                                   : "it has a code without meaning");
    return -1;
}

/* With at least 15 bits in the buffer, or all that are left. */
static int dvti_decode(dvti_inflater *s, const dvti_huffman *h) {
    unsigned entry = h->lookup[s->bits & ((1u << DVTI_LOOKUP_BITS) - 1)];
    int length = (int)(entry & 15);
    if (length == 0 || length > s->n_bits)
        return dvti_decode_long(s, h);
    s->bits >>= length;
    s->n_bits -= length;
    return (int)(entry >> 4);
}

/* ---- output ---- */
static bool dvti_inflate_room(dvti_inflater *s, size_t n) {
    size_t need = s->n + n;
    if (need <= s->capacity)
        return true;
    if (n > s->limit - s->n) {
        s->full = true;
        return dvti_inflate_fail(s, "it holds more than expected");
    }
    if (!dvti_grow((void **)&s->out, &s->capacity, need, 1)) {
        s->no_memory = true;
        return dvti_inflate_fail(s, "");
    }
    s->capacity = DVTI_MIN(s->capacity, s->limit);
    return true;
}

static bool dvti_copy_match(dvti_inflater *s, size_t distance, size_t length) {
    unsigned char *to;
    const unsigned char *from;
    if (distance > s->n - s->start)
        return dvti_inflate_fail(s, "it refers to data before its beginning");
    if (!dvti_inflate_room(s, length))
        return false;
    to = s->out + s->n;
    from = to - distance;
    s->n += length;
    if (distance >= length)
        memcpy(to, from, length);
    else if (distance == 1)
        memset(to, *from, length);
    else /* repeats what it has just written */
        while (length--)
            *to++ = *from++;
    return true;
}

/* ---- blocks ---- */
static const uint16_t dvti_length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                              15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                              67, 83, 99, 115, 131, 163, 195, 227, 258};
static const unsigned char dvti_length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                    2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t dvti_distance_base[30] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const unsigned char dvti_distance_extra[30] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                      4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                      9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static bool dvti_inflate_match(dvti_inflater *s, int symbol) {
    unsigned length, distance;
    if (symbol > 285)
        return dvti_inflate_fail(s, "it has a length without meaning");
    length = dvti_length_base[symbol - 257];
    length += dvti_take_bits(s, dvti_length_extra[symbol - 257]);
    if (s->n_bits < DVTI_MAX_CODE)
        dvti_refill(s);
    symbol = dvti_decode(s, &s->distance);
    if (symbol < 0 || s->wrong)
        return false;
    if (symbol > 29)
        return dvti_inflate_fail(s, "it has a distance without meaning");
    distance = dvti_distance_base[symbol];
    distance += dvti_take_bits(s, dvti_distance_extra[symbol]);
    return !s->wrong && dvti_copy_match(s, distance, length);
}

static bool dvti_inflate_codes(dvti_inflater *s) {
    for (;;) {
        int symbol;
        if (s->n_bits < 48)
            dvti_refill(s);
        symbol = dvti_decode(s, &s->literal);
        while (symbol >= 0 && symbol < 256) {
            if (s->n >= s->capacity && !dvti_inflate_room(s, 1))
                return false;
            s->out[s->n++] = (unsigned char)symbol;
            if (s->n_bits < DVTI_MAX_CODE)
                dvti_refill(s);
            symbol = dvti_decode(s, &s->literal);
        }
        if (symbol < 0)
            return false;
        if (symbol == 256)
            return true;
        if (!dvti_inflate_match(s, symbol))
            return false;
    }
}

static bool dvti_inflate_stored(dvti_inflater *s) {
    unsigned length, check;
    s->bits >>= s->n_bits & 7;
    s->n_bits -= s->n_bits & 7;
    length = dvti_take_bits(s, 16);
    check = dvti_take_bits(s, 16);
    if (s->wrong)
        return false;
    if (length != (check ^ 0xffffu))
        return dvti_inflate_fail(s, "the length of a stored block contradicts itself");
    dvti_align(s);
    if ((size_t)(s->end - s->in) < length)
        return dvti_inflate_fail(s, "it ends in the middle");
    if (!length)
        return true;
    if (!dvti_inflate_room(s, length))
        return false;
    memcpy(s->out + s->n, s->in, length);
    s->in += length;
    s->n += length;
    return true;
}

static void dvti_fixed_codes(dvti_inflater *s) {
    unsigned char length[288];
    int i;
    for (i = 0; i < 288; i++)
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    dvti_huffman_build(&s->literal, length, 288);
    memset(length, 5, 32);
    dvti_huffman_build(&s->distance, length, 32);
}

/* The code lengths of both tables are themselves coded. */
static bool dvti_dynamic_codes(dvti_inflater *s) {
    static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                            11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char length[288 + 32];
    int literals = (int)dvti_take_bits(s, 5) + 257, distances = (int)dvti_take_bits(s, 5) + 1;
    int codes = (int)dvti_take_bits(s, 4) + 4, i, n = 0;
    if (s->wrong)
        return false;
    if (literals > 286 || distances > 30)
        return dvti_inflate_fail(s, "it has too many codes");
    memset(length, 0, sizeof length);
    for (i = 0; i < codes; i++)
        length[order[i]] = (unsigned char)dvti_take_bits(s, 3);
    if (s->wrong || !dvti_huffman_build(&s->literal, length, 19))
        return dvti_inflate_fail(s, "its codes are not a tree");
    while (n < literals + distances) {
        int symbol, repeat = 1, value = 0;
        dvti_refill(s);
        symbol = dvti_decode(s, &s->literal);
        if (symbol < 0)
            return false;
        if (symbol < 16)
            value = symbol;
        else if (symbol == 16) {
            if (n == 0)
                return dvti_inflate_fail(s, "it repeats a code length before the first");
            value = length[n - 1];
            repeat = 3 + (int)dvti_take_bits(s, 2);
        } else if (symbol == 17)
            repeat = 3 + (int)dvti_take_bits(s, 3);
        else
            repeat = 11 + (int)dvti_take_bits(s, 7);
        if (s->wrong)
            return false;
        if (n + repeat > literals + distances)
            return dvti_inflate_fail(s, "it has too many code lengths");
        memset(length + n, value, (size_t)repeat);
        n += repeat;
    }
    if (length[256] == 0)
        return dvti_inflate_fail(s, "it has no code for the end of a block");
    return (dvti_huffman_build(&s->literal, length, literals) &&
            dvti_huffman_build(&s->distance, length + literals, distances)) ||
           dvti_inflate_fail(s, "its codes are not a tree");
}

static bool dvti_inflate(dvti_inflater *s) {
    unsigned last, type;
    s->start = s->n;
    do {
        last = dvti_take_bits(s, 1);
        type = dvti_take_bits(s, 2);
        if (s->wrong)
            return false;
        if (type == 3)
            return dvti_inflate_fail(s, "it has a block of no known type");
        if (type == 1)
            dvti_fixed_codes(s);
        if (type == 2 && !dvti_dynamic_codes(s))
            return false;
        if (!(type == 0 ? dvti_inflate_stored(s) : dvti_inflate_codes(s)))
            return false;
    } while (!last);
    dvti_align(s);
    return true;
}

/* ---- checksum: four bytes at a time ---- */
typedef struct dvti_crc {
    uint32_t table[4][256];
} dvti_crc;

static void dvti_crc_build(dvti_crc *crc) {
    uint32_t i, value;
    int k;
    for (i = 0; i < 256; i++) {
        value = i;
        for (k = 0; k < 8; k++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        crc->table[0][i] = value;
    }
    for (i = 0; i < 256; i++)
        for (k = 1; k < 4; k++) {
            value = crc->table[k - 1][i];
            crc->table[k][i] = value >> 8 ^ crc->table[0][value & 255];
        }
}

static uint32_t dvti_crc_of(const dvti_crc *crc, const unsigned char *at, size_t n) {
    uint32_t value = 0xffffffffu;
    for (; n >= 4; n -= 4, at += 4) {
        value ^=
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        value = crc->table[3][value & 255] ^ crc->table[2][value >> 8 & 255] ^
                crc->table[1][value >> 16 & 255] ^ crc->table[0][value >> 24];
    }
    for (; n; n--)
        value = value >> 8 ^ crc->table[0][(value ^ *at++) & 255];
    return ~value;
}

/* ---- gzip members ---- */
DVTI_FN bool dvti_is_gzip(const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    return size >= 2 && at[0] == 0x1f && at[1] == 0x8b;
}

static bool dvti_skip_text(dvti_source *in) {
    const unsigned char *end = in->left ? (const unsigned char *)memchr(in->at, 0, in->left) : NULL;
    return end && dvti_source_bytes(in, (uint64_t)(end - in->at) + 1) != NULL;
}

static bool dvti_gzip_header(dvti_inflater *s, const dvti_crc *crc) {
    dvti_source in = dvti_source_begin(s->in, (size_t)(s->end - s->in));
    unsigned magic = (unsigned)dvti_source_le(&in, 2), method = (unsigned)dvti_source_le(&in, 1);
    unsigned flags = (unsigned)dvti_source_le(&in, 1);
    dvti_source_bytes(&in, 6);
    if (magic != 0x8b1f)
        return dvti_inflate_fail(s, "something that is not gzip follows its end");
    if (!in.failed && (method != 8 || flags & 0xe0))
        return dvti_inflate_fail(s, "its header has an unknown method or flag");
    if (flags & 4)
        dvti_source_bytes(&in, dvti_source_le(&in, 2));
    if ((flags & 8 && !dvti_skip_text(&in)) || (flags & 16 && !dvti_skip_text(&in)))
        in.failed = true;
    if (flags & 2 && !in.failed) {
        uint32_t sum = dvti_crc_of(crc, s->in, (size_t)(in.at - s->in)) & 0xffffu;
        if (dvti_source_le(&in, 2) != sum && !in.failed)
            return dvti_inflate_fail(s, "the checksum of its header is wrong");
    }
    if (in.failed)
        return dvti_inflate_fail(s, "it ends in the middle");
    s->in = in.at;
    return true;
}

static bool dvti_gzip_member(dvti_inflater *s, const dvti_crc *crc) {
    uint32_t sum, length;
    dvti_source in;
    if (!dvti_gzip_header(s, crc) || !dvti_inflate(s))
        return false;
    in = dvti_source_begin(s->in, (size_t)(s->end - s->in));
    sum = (uint32_t)dvti_source_le(&in, 4);
    length = (uint32_t)dvti_source_le(&in, 4);
    if (in.failed)
        return dvti_inflate_fail(s, "it ends in the middle");
    s->in = in.at;
    if (length != (uint32_t)(s->n - s->start))
        return dvti_inflate_fail(s, "it has another length than it says");
    if (sum != dvti_crc_of(crc, s->out + s->start, s->n - s->start))
        return dvti_inflate_fail(s, "its checksum is wrong");
    return true;
}

static bool dvti_only_zeros(const unsigned char *at, const unsigned char *end) {
    while (at < end && *at == 0)
        at++;
    return at == end;
}

static bool dvti_gunzip_members(dvti_inflater *s, const dvti_crc *crc) {
    do
        if (!dvti_gzip_member(s, crc))
            return false;
    while (!dvti_only_zeros(s->in, s->end)); /* tapes and disks pad with zeros */
    return true;
}

/* The length that the last member gives for itself: room to begin with, when that is possible at all. */
static size_t dvti_gzip_hint(const unsigned char *at, size_t size, size_t limit) {
    dvti_source in = dvti_source_begin(at + (size < 4 ? 0 : size - 4), size < 4 ? size : 4);
    uint64_t hint = dvti_source_le(&in, 4);
    if (hint == 0 || hint / DVTI_DEFLATE_RATIO > size)
        hint = 1; /* a block even when the output is empty */
    return hint < limit ? (size_t)hint : limit;
}

static bool dvti_gunzip_begin(dvti_inflater *s, dvti_crc *crc, const void *bytes, size_t size,
                              size_t limit) {
    size_t room = dvti_gzip_hint((const unsigned char *)bytes, size, limit);
    s->in = (const unsigned char *)bytes;
    s->end = s->in + size;
    s->limit = limit;
    dvti_crc_build(crc);
    s->out = (unsigned char *)dvti_alloc(room);
    s->capacity = s->out ? room : 0;
    s->no_memory = !s->out;
    return s->out != NULL;
}

/* head: success is also when the limit was reached. */
static bool dvti_gunzip_run(const char *function, const char *what, const void *bytes, size_t size,
                            size_t limit, bool head, void **out, size_t *out_size) {
    dvti_inflater *s = (dvti_inflater *)dvti_alloc_zero(sizeof *s);
    dvti_crc *crc = (dvti_crc *)dvti_alloc(sizeof *crc);
    bool ok = false;
    *out = NULL;
    *out_size = 0;
    if (s && crc && dvti_gunzip_begin(s, crc, bytes, size, limit))
        ok = dvti_gunzip_members(s, crc) || (head && s->full);
    if (!s || !crc || s->no_memory)
        dvti_fail_memory(function, (int64_t)(s ? s->n + 1 : sizeof *s));
    else if (!ok)
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the compressed data cannot be read: %s; fetch or write the file again",
            function, what, s->wrong);
    if (ok) {
        *out = s->out;
        *out_size = s->n;
    } else if (s)
        dvti_free(s->out);
    dvti_free(s);
    dvti_free(crc);
    return ok;
}

DVTI_FN bool dvti_gunzip(const char *function, const char *what, const void *bytes, size_t size,
                         size_t limit, void **out, size_t *out_size) {
    return dvti_gunzip_run(function, what, bytes, size, limit, false, out, out_size);
}

/* One step of inflating writes less than 65536 bytes, so the limit is not met before n bytes are there. */
DVTI_FN bool dvti_gunzip_head(const char *function, const char *what, const void *bytes,
                              size_t size, unsigned char *head, size_t n, size_t *got) {
    void *out;
    if (!dvti_gunzip_run(function, what, bytes, size, n + 65536, true, &out, got))
        return false;
    *got = DVTI_MIN(*got, n);
    memcpy(head, out, *got);
    dvti_free(out);
    return true;
}

#undef DVTI_LOOKUP_BITS
#undef DVTI_MAX_CODE
/* ==== end src/5_io/dvt_inflate.c ==== */
#ifdef DEVTENSOR_LINES
#line 71 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_npy.c ==== */
/* NumPy's .npy: a magic, a version, a Python dictionary with exactly three keys, and the elements. Pickled objects are
   refused by name. What is written is byte for byte what NumPy writes for an array in C order. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_npy.c"
#endif

/* NumPy's own limit for files that are not trusted. */
#define DVTI_NPY_HEADER 10000
/* NumPy leaves room for the first extent to grow to this many digits. */
#define DVTI_NPY_GROWTH 21

typedef struct dvti_npy_header {
    dvti_stored stored;
    bool fortran_order;
    dvt_shape shape;
    const unsigned char *data;
    size_t left; /* bytes from data on */
} dvti_npy_header;

/* ---- the dictionary ---- */
typedef struct dvti_literal {
    const char *at, *end;
    const char *wrong;
} dvti_literal;

static bool dvti_literal_fail(dvti_literal *in, const char *wrong) {
    if (!in->wrong)
        in->wrong = wrong;
    return false;
}

static void dvti_literal_blanks(dvti_literal *in) {
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n'))
        in->at++;
}

/* The character, if it is next. */
static bool dvti_literal_char(dvti_literal *in, char c) {
    dvti_literal_blanks(in);
    if (in->at >= in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

/* A quoted text without escapes, of fewer than `size` characters. */
static bool dvti_literal_text(dvti_literal *in, char *text, size_t size) {
    const char *start;
    char quote;
    dvti_literal_blanks(in);
    if (in->at >= in->end || (*in->at != '\'' && *in->at != '"'))
        return false;
    quote = *in->at++;
    start = in->at;
    while (in->at < in->end && *in->at != quote)
        if (*in->at++ == '\\')
            return false;
    if (in->at >= in->end || (size_t)(in->at - start) >= size)
        return false;
    memcpy(text, start, (size_t)(in->at - start));
    text[in->at - start] = 0;
    in->at++;
    return true;
}

static bool dvti_literal_word(dvti_literal *in, const char *word) {
    size_t n = strlen(word);
    dvti_literal_blanks(in);
    if ((size_t)(in->end - in->at) < n || memcmp(in->at, word, n) != 0)
        return false;
    in->at += n;
    return true;
}

/* Digits, with the L that Python 2 wrote behind them. */
static bool dvti_literal_extent(dvti_literal *in, int64_t *value) {
    int digits = 0;
    *value = 0;
    dvti_literal_blanks(in);
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++, digits++)
        if (!dvti_mul(*value, 10, value) || !dvti_sum(*value, *in->at - '0', value))
            return dvti_literal_fail(in, "an extent does not fit in 63 bits");
    if (in->at < in->end && *in->at == 'L' && digits)
        in->at++;
    return digits > 0;
}

static bool dvti_literal_shape(dvti_literal *in, dvt_shape *shape) {
    bool comma = true;
    if (!dvti_literal_char(in, '('))
        return false;
    while (!dvti_literal_char(in, ')')) {
        int64_t extent;
        if (!comma || !dvti_literal_extent(in, &extent))
            return false;
        if (shape->ndim == DVT_MAX_DIMS)
            return dvti_literal_fail(in, "it has more than 8 axes");
        shape->dim[shape->ndim++] = extent;
        comma = dvti_literal_char(in, ',');
    }
    return shape->ndim != 1 || comma; /* (3) is a number, (3,) a tuple */
}

/* ---- the type ---- */
static const char *dvti_descr_refusal(char kind) {
    switch (kind) {
    case 'O':
        return "it holds pickled Python objects, which are programs and never loaded; save plain "
               "numbers";
    case 'U':
    case 'S':
    case 'a':
        return "it holds text; save numbers";
    case 'M':
    case 'm':
        return "it holds dates or times; convert them with .astype('int64') before saving";
    case 'c':
        return "it holds complex numbers; save .real and .imag";
    case 'V':
        return "it holds records or raw bytes; save each field as an array of its own";
    default:
        return "its dtype is unknown; convert it with .astype('float32') before saving";
    }
}

static bool dvti_descr_parse(const char *descr, dvti_stored *stored, const char **wrong) {
    static const struct {
        const char *name;
        dvt_dtype dtype;
    } known[] = {{"b1", DVT_BOOL}, {"i1", DVT_I8},  {"u1", DVT_U8},  {"i2", DVT_I32},
                 {"u2", DVT_I32},  {"i4", DVT_I32}, {"u4", DVT_I64}, {"i8", DVT_I64},
                 {"u8", DVT_I64},  {"f2", DVT_F16}, {"f4", DVT_F32}, {"f8", DVT_F64}};

    const char *name = descr;
    int i;
    stored->big_endian = *descr == '>';
    if (*descr && strchr("<>|=", *descr))
        name++;
    for (i = 0; i < DVTI_LENGTH(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            stored->kind = name[0];
            stored->bytes = name[1] - '0';
            stored->dtype = known[i].dtype;
            return true;
        }
    *wrong = dvti_descr_refusal(name[0]);
    return false;
}

/* ---- reading ---- */
static bool dvti_npy_dictionary(dvti_literal *in, dvti_npy_header *header) {
    char key[32], descr[32];
    unsigned seen = 0;
    bool comma = true;
    if (!dvti_literal_char(in, '{'))
        return false;
    while (!dvti_literal_char(in, '}')) {
        unsigned bit;
        bool ok;
        if (!comma || !dvti_literal_text(in, key, sizeof key) || !dvti_literal_char(in, ':'))
            return false;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            dvti_literal_blanks(in);
            if (in->at < in->end && *in->at == '[')
                return dvti_literal_fail(in, dvti_descr_refusal('V'));
            ok = dvti_literal_text(in, descr, sizeof descr) &&
                 dvti_descr_parse(descr, &header->stored, &in->wrong);
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            header->fortran_order = dvti_literal_word(in, "True");
            ok = header->fortran_order || dvti_literal_word(in, "False");
        } else {
            bit = 4;
            ok = strcmp(key, "shape") == 0 && dvti_literal_shape(in, &header->shape);
        }
        if (!ok || seen & bit)
            return false;
        seen |= bit;
        comma = dvti_literal_char(in, ',');
    }
    dvti_literal_blanks(in);
    return seen == 7 && in->at == in->end;
}

static bool dvti_npy_fail(const char *function, const char *what, const char *wrong) {
    dvti_fail(DVT_ERR_FORMAT, "%s: %.300s: %s", function, what, wrong);
    return false;
}

static bool dvti_npy_parse(const char *function, const char *what, const void *bytes, size_t size,
                           dvti_npy_header *header) {
    dvti_source in = dvti_source_begin(bytes, size);
    const unsigned char *magic = dvti_source_bytes(&in, 6), *text;
    unsigned major = (unsigned)dvti_source_le(&in, 1), minor = (unsigned)dvti_source_le(&in, 1);
    uint64_t length;
    dvti_literal literal;
    memset(header, 0, sizeof *header);
    if (!magic || memcmp(magic, "\x93NUMPY", 6) != 0)
        return dvti_npy_fail(function, what,
                             "this is not an .npy file (those begin with \\x93NUMPY); check that "
                             "the path names the right file");
    if (in.failed || major < 1 || major > 3 || minor != 0)
        return dvti_npy_fail(function, what,
                             "the version is unknown; expected 1.0, 2.0 or 3.0: write the file "
                             "again with numpy.save");
    length = dvti_source_le(&in, major == 1 ? 2 : 4);
    if (length > DVTI_NPY_HEADER)
        return dvti_npy_fail(function, what,
                             "the header is longer than 10000 bytes, which NumPy refuses too; the "
                             "file is damaged, or holds records");
    text = dvti_source_bytes(&in, length);
    if (!text)
        return dvti_npy_fail(function, what, "it ends within its header; fetch or write it again");
    literal.at = (const char *)text;
    literal.end = literal.at + length;
    literal.wrong = NULL;
    if (!dvti_npy_dictionary(&literal, header))
        return dvti_npy_fail(function, what,
                             literal.wrong ? literal.wrong
                                           : "the header is not the dictionary that NumPy writes "
                                             "(descr, fortran_order, shape); write it again with "
                                             "numpy.save");
    header->data = in.at;
    header->left = in.left;
    return true;
}

static dvt_shape dvti_shape_reversed(dvt_shape shape) {
    dvt_shape reversed = shape;
    int i;
    for (i = 0; i < shape.ndim; i++)
        reversed.dim[i] = shape.dim[shape.ndim - 1 - i];
    return reversed;
}

/* Fortran order is C order of the reversed shape: read it so, look at it with its axes exchanged, and pack that. */
static dvt_array *dvti_npy_fortran(const char *function, const dvti_npy_header *header,
                                   dvt_ctx ctx) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *raw = dvti_stored_array(function, &header->stored, header->data,
                                       dvti_shape_reversed(header->shape), ctx);
    dvt_array *view = NULL, *result = NULL;
    int64_t stride[DVT_MAX_DIMS];
    int n = header->shape.ndim, i;
    if (raw) {
        for (i = 0; i < n; i++)
            stride[i] = raw->stride[n - 1 - i];
        view = dvti_view_new(function, raw, header->shape, stride, 0);
        result = view ? dvti_array_new(function, header->shape, header->stored.dtype, ctx) : NULL;
    }
    if (result && dvti_copy_elements(function, result, view) != DVT_OK)
        result = NULL;
    dvt_keep(result);
    dvt_scope_end(&scope);
    return result;
}

static dvt_array *dvti_npy(const char *function, const char *what, const void *bytes, size_t size,
                           dvt_ctx ctx) {
    dvti_npy_header header;
    int64_t need = 1;
    int i;
    bool fits = true;
    if (!dvti_npy_parse(function, what, bytes, size, &header))
        return NULL;
    for (i = 0; i < header.shape.ndim; i++)
        fits = fits && dvti_mul(need, header.shape.dim[i], &need);
    if (!fits || !dvti_mul(need, header.stored.bytes, &need) || (uint64_t)need != header.left) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says shape %s with %d bytes for an element, but %lld bytes "
            "follow it; the file is cut off, damaged, or followed by something else: fetch or "
            "write it again",
            function, what, dvti_shape_text(header.shape), header.stored.bytes,
            (long long)header.left);
        return NULL;
    }
    if (header.fortran_order && header.shape.ndim > 1)
        return dvti_npy_fortran(function, &header, ctx);
    return dvti_stored_array(function, &header.stored, header.data, header.shape, ctx);
}

DVT_API dvt_array *dvt_read_npy(const void *data, size_t bytes, dvt_ctx ctx) {
    if (!data) {
        dvti_null("dvt_read_npy", "data");
        return NULL;
    }
    return dvti_npy("dvt_read_npy", "the data", data, bytes, ctx);
}

DVT_API dvt_array *dvt_load_npy(const char *path, dvt_ctx ctx) {
    void *bytes;
    size_t size;
    dvt_array *result;
    if (!dvti_file_read("dvt_load_npy", path, &bytes, &size))
        return NULL;
    result = dvti_npy("dvt_load_npy", path, bytes, size, ctx);
    dvti_free(bytes);
    return result;
}

/* ---- writing ---- */
static void dvti_npy_write_header(dvti_file_out *out, dvt_dtype dtype, dvt_shape shape) {
    static const char *const descr[DVT_DTYPE_COUNT] = {"<f4", "<f8", "<f2", "<f4", "|i1",
                                                       "|u1", "<i4", "<i8", "|b1"};
    char header[512], first[32];
    dvti_text text = dvti_text_begin(header, sizeof header);
    int64_t begin = 10;
    dvti_text_add(&text, "%cNUMPY%c%c%c%c", 0x93, 1, 0, 0, 0);
    dvti_text_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr[dtype],
                  dvti_shape_text(shape));
    if (shape.ndim > 0) {
        int digits = snprintf(first, sizeof first, "%lld", (long long)shape.dim[0]);
        dvti_text_char(&text, ' ', DVTI_NPY_GROWTH - digits);
    }
    dvti_text_char(&text, ' ', 64 - (int64_t)((text.length + 1) % 64));
    dvti_text_char(&text, '\n', 1);
    begin = (int64_t)text.length - begin;
    header[8] = (char)(begin & 255);
    header[9] = (char)(begin >> 8);
    dvti_file_write(out, header, text.length);
}

DVT_API dvt_status dvt_save_npy(const char *path, dvt_array *x) {
    dvt_dtype dtype;
    dvt_scope_guard scope;
    dvt_array *host;
    dvti_file_out out;
    dvt_status status;
    if (!x)
        return dvti_null("dvt_save_npy", "x");
    dtype = x->dtype == DVT_BF16 ? DVT_F32 : x->dtype;
    scope = dvt_scope_begin();
    host = dvti_stored_host("dvt_save_npy", x, dtype);
    if (host && dvti_file_begin(&out, "dvt_save_npy", path)) {
        dvti_npy_write_header(&out, dtype, x->shape);
        dvti_file_write(&out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
        status = dvti_file_end(&out, true);
    } else
        status = dvt_error_code();
    dvt_scope_end(&scope);
    return status;
}

#undef DVTI_NPY_HEADER
#undef DVTI_NPY_GROWTH
/* ==== end src/5_io/dvt_npy.c ==== */
#ifdef DEVTENSOR_LINES
#line 72 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_params.c ==== */
/* Apache MXNet's .params: a list of arrays, each with its version, shape and dtype, and then their names. Everything is
   checked against the bytes that are there before anything is allocated for it. The format is that of
   NDArray::Save in MXNet; where an array lived is not looked at. */
#ifdef DEVTENSOR_LINES
#line 4 "src/5_io/dvt_params.c"
#endif

#define DVTI_PARAMS_LIST 0x112
#define DVTI_PARAMS_V1 0xf993fac8u
#define DVTI_PARAMS_V2 0xf993fac9u
#define DVTI_PARAMS_V3 0xf993facau

typedef struct dvti_params_entry {
    dvti_stored stored;
    dvt_shape shape;
    const unsigned char *data;
    const char *name; /* not ended by 0 */
    size_t name_length;
} dvti_params_entry;

typedef struct dvti_params_reader {
    const char *function, *what;
    dvti_source in;
    int64_t n, at; /* arrays, and the one being read */
    dvti_params_entry *entry;
} dvti_params_reader;

/* ---- what is wrong ---- */
static bool dvti_params_wrong(const dvti_params_reader *r, const char *wrong) {
    dvti_fail(DVT_ERR_FORMAT, "%s: %.300s: %s; fetch or write the file again", r->function, r->what,
              wrong);
    return false;
}

static bool dvti_params_wrong_array(const dvti_params_reader *r, const char *wrong) {
    dvti_fail(DVT_ERR_FORMAT, "%s: %.300s: array %lld of %lld %s; fetch or write the file again",
              r->function, r->what, (long long)r->at, (long long)r->n, wrong);
    return false;
}

static bool dvti_bytes_contain(const unsigned char *at, size_t size, const char *text) {
    size_t n = strlen(text), i;
    for (i = 0; i + n <= size; i++)
        if (memcmp(at + i, text, n) == 0)
            return true;
    return false;
}

/* Other libraries write other formats under the same file name. */
static bool dvti_params_foreign(const dvti_params_reader *r) {
    const unsigned char *at = r->in.at;
    size_t size = r->in.left;
    const char *is;
    if (size >= 4 && memcmp(at, "PK\3\4", 4) == 0)
        is =
            dvti_bytes_contain(at, size < 512 ? size : 512, "data.pkl")
                ? "a PyTorch file; load it there and save its arrays with numpy.save"
                : "a NumPy .npz archive, as MXNet 2 writes in np mode; load it there and save each "
                  "array with numpy.save";
    else if (size >= 6 && memcmp(at, "\x93NUMPY", 6) == 0)
        is = "a NumPy .npy file; read it with dvt_load_npy";
    else
        is =
            "no MXNet parameter file (those begin with 12 01 00 00); check that the path names the "
            "right one";
    dvti_fail(DVT_ERR_FORMAT, "%s: %.300s: this is %s", r->function, r->what, is);
    return false;
}

/* ---- one array ---- */
static bool dvti_params_type(const dvti_params_reader *r, int64_t flag, dvti_stored *stored) {
    static const struct {
        char kind;
        int bytes;
        dvt_dtype dtype;
    } known[] = {{'f', 4, DVT_F32}, {'f', 8, DVT_F64}, {'f', 2, DVT_F16}, {'u', 1, DVT_U8},
                 {'i', 4, DVT_I32}, {'i', 1, DVT_I8},  {'i', 8, DVT_I64}, {'b', 1, DVT_BOOL},
                 {'i', 2, DVT_I32}, {'u', 2, DVT_I32}, {'u', 4, DVT_I64}, {'u', 8, DVT_I64},
                 {'f', 2, DVT_BF16}};

    if (flag < 0 || flag >= DVTI_LENGTH(known))
        return dvti_params_wrong_array(r, "has a dtype of unknown number");
    stored->kind = known[flag].kind;
    stored->bytes = known[flag].bytes;
    stored->dtype = known[flag].dtype;
    stored->big_endian = false;
    return true;
}

static bool dvti_params_shape(dvti_params_reader *r, int64_t ndim, int extent_bytes,
                              dvt_shape *shape) {
    int i;
    if (ndim < 0 || ndim > DVT_MAX_DIMS)
        return dvti_params_wrong_array(r, "has more than 8 axes, or an unknown number of them");
    shape->ndim = (int)ndim;
    for (i = 0; i < shape->ndim; i++) {
        uint64_t extent = dvti_source_le(&r->in, extent_bytes);
        shape->dim[i] = dvti_signed(extent, 8);
        if (shape->dim[i] < 0)
            return dvti_params_wrong_array(r, "has a negative extent");
    }
    return true;
}

/* Device, dtype and elements: the same in all versions. */
static bool dvti_params_data(dvti_params_reader *r, dvti_params_entry *entry) {
    int64_t need = 1;
    int i;
    bool fits = true;
    dvti_source_bytes(&r->in, 8); /* the device it was saved from */
    if (!dvti_params_type(r, dvti_signed(dvti_source_le(&r->in, 4), 4), &entry->stored))
        return false;
    for (i = 0; i < entry->shape.ndim; i++)
        fits = fits && dvti_mul(need, entry->shape.dim[i], &need);
    if (!fits || !dvti_mul(need, entry->stored.bytes, &need))
        return dvti_params_wrong_array(r, "has a shape that is more than any file holds");
    entry->data = dvti_source_bytes(&r->in, (uint64_t)need);
    return r->in.failed ? dvti_params_wrong_array(r, "goes beyond the end of the file") : true;
}

/* The oldest version has no number: it begins with its number of axes. */
static bool dvti_params_array(dvti_params_reader *r, dvti_params_entry *entry) {
    uint32_t version = (uint32_t)dvti_source_le(&r->in, 4);
    bool numbered = version == DVTI_PARAMS_V2 || version == DVTI_PARAMS_V3;
    int64_t ndim;
    if (r->in.failed)
        return dvti_params_wrong_array(r, "goes beyond the end of the file");
    if (numbered && dvti_source_le(&r->in, 4) != 0)
        return dvti_params_wrong_array(
            r, "is sparse (row_sparse or csr), which devtensor does not have: convert it with "
               ".tostype('default') before saving");
    if (numbered || version == DVTI_PARAMS_V1)
        ndim = dvti_signed(dvti_source_le(&r->in, 4), 4);
    else if (version <= DVT_MAX_DIMS)
        ndim = version;
    else
        return dvti_params_wrong_array(r, "begins with the number of no known version");
    if (r->in.failed)
        return dvti_params_wrong_array(r, "goes beyond the end of the file");
    if (ndim == (version == DVTI_PARAMS_V3 ? -1 : 0))
        return dvti_params_wrong_array(r, "is an array without shape and values, which MXNet "
                                          "writes for what was never initialised");
    return dvti_params_shape(r, ndim, numbered || version == DVTI_PARAMS_V1 ? 8 : 4,
                             &entry->shape) &&
           dvti_params_data(r, entry);
}

/* ---- names ---- */
static int dvti_params_compare(const void *a, const void *b) {
    const dvti_params_entry *x = *(const dvti_params_entry *const *)a;
    const dvti_params_entry *y = *(const dvti_params_entry *const *)b;
    size_t n = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = n ? memcmp(x->name, y->name, n) : 0;
    if (order)
        return order;
    return x->name_length < y->name_length ? -1 : x->name_length > y->name_length;
}

static bool dvti_params_unique(const dvti_params_reader *r) {
    size_t n = (size_t)r->n, i;
    const dvti_params_entry **sorted;
    bool ok = true;
    if (n < 2)
        return true;
    sorted = (const dvti_params_entry **)dvti_alloc(n * sizeof *sorted);
    if (!sorted) {
        dvti_fail_memory(r->function, (int64_t)(n * sizeof *sorted));
        return false;
    }
    for (i = 0; i < n; i++)
        sorted[i] = &r->entry[i];
    qsort((void *)sorted, n, sizeof *sorted, dvti_params_compare);
    for (i = 1; i < n && ok; i++)
        if (dvti_params_compare(&sorted[i - 1], &sorted[i]) == 0) {
            dvti_fail(DVT_ERR_FORMAT,
                      "%s: %.300s: two arrays are named \"%.*s\"; write the file again with "
                      "different names",
                      r->function, r->what, (int)DVTI_MIN(sorted[i]->name_length, 100),
                      sorted[i]->name);
            ok = false;
        }
    dvti_free((void *)sorted);
    return ok;
}

static bool dvti_params_names(dvti_params_reader *r, bool *named) {
    uint64_t count = dvti_source_le(&r->in, 8);
    *named = count != 0;
    if (r->in.failed)
        return dvti_params_wrong(r, "it ends before the names of its arrays");
    if (count != 0 && count != (uint64_t)r->n)
        return dvti_params_wrong(r, "it does not have as many names as arrays");
    for (r->at = 0; *named && r->at < r->n; r->at++) {
        dvti_params_entry *entry = &r->entry[r->at];
        uint64_t length = dvti_source_le(&r->in, 8);
        entry->name = (const char *)dvti_source_bytes(&r->in, length);
        if (r->in.failed)
            return dvti_params_wrong_array(r, "has a name that goes beyond the end of the file");
        entry->name_length = (size_t)length;
        if (length && memchr(entry->name, 0, (size_t)length))
            return dvti_params_wrong_array(r, "has a name with a zero byte");
    }
    if (r->in.left)
        return dvti_params_wrong(r, "something follows its end");
    return !*named || dvti_params_unique(r);
}

/* ---- reading ---- */
static bool dvti_params_parse(dvti_params_reader *r, bool *named) {
    dvti_source in = r->in;
    uint64_t count;
    if (dvti_source_le(&in, 8) != DVTI_PARAMS_LIST)
        return dvti_params_foreign(r);
    dvti_source_le(&in, 8); /* reserved */
    count = dvti_source_le(&in, 8);
    r->in = in;
    if (in.failed)
        return dvti_params_wrong(r, "it ends within its header");
    /* No record is shorter than 12 bytes: entries are allocated only for what the file can hold. */
    if (count > in.left / 12 || count > (uint64_t)INT_MAX)
        return dvti_params_wrong(r, "its header promises more arrays than the file can hold");
    r->n = (int64_t)count;
    r->entry = (dvti_params_entry *)dvti_alloc_zero(sizeof *r->entry * (size_t)count);
    if (!r->entry) {
        dvti_fail_memory(r->function, (int64_t)(sizeof *r->entry * (size_t)count));
        return false;
    }
    for (r->at = 0; r->at < r->n; r->at++)
        if (!dvti_params_array(r, &r->entry[r->at]))
            return false;
    return dvti_params_names(r, named);
}

static bool dvti_params_fill(const dvti_params_reader *r, dvt_array_list *list, dvt_ctx ctx) {
    int i;
    for (i = 0; i < list->n; i++) {
        const dvti_params_entry *entry = &r->entry[i];
        dvt_array *x =
            dvti_stored_array(r->function, &entry->stored, entry->data, entry->shape, ctx);
        if (!x)
            return false;
        dvti_scope_take(x);
        list->array[i] = x;
        if (list->name) {
            list->name[i] = (char *)dvti_alloc(entry->name_length + 1);
            if (!list->name[i]) {
                dvti_fail_memory(r->function, (int64_t)entry->name_length + 1);
                return false;
            }
            if (entry->name_length)
                memcpy(list->name[i], entry->name, entry->name_length);
            list->name[i][entry->name_length] = 0;
        }
    }
    return true;
}

static dvt_array_list *dvti_params_read(const char *function, const char *what, const void *bytes,
                                        size_t size, dvt_ctx ctx) {
    dvti_params_reader r;
    dvt_array_list *list = NULL;
    dvt_scope_guard scope = dvt_scope_begin();
    bool named = false;
    memset(&r, 0, sizeof r);
    r.function = function;
    r.what = what;
    r.in = dvti_source_begin(bytes, size);
    if (dvti_params_parse(&r, &named)) {
        list = dvti_array_list_new(function, (int)r.n, named);
        if (list && !dvti_params_fill(&r, list, ctx))
            list = NULL;
    }
    dvti_free(r.entry);
    dvt_keep(list);
    dvt_scope_end(&scope);
    return list;
}

DVT_API dvt_array_list *dvt_read_params(const void *data, size_t bytes, dvt_ctx ctx) {
    if (!data) {
        dvti_null("dvt_read_params", "data");
        return NULL;
    }
    return dvti_params_read("dvt_read_params", "the data", data, bytes, ctx);
}

DVT_API dvt_array_list *dvt_load_params(const char *path, dvt_ctx ctx) {
    void *bytes;
    size_t size;
    dvt_array_list *list;
    if (!dvti_file_read("dvt_load_params", path, &bytes, &size))
        return NULL;
    list = dvti_params_read("dvt_load_params", path, bytes, size, ctx);
    dvti_free(bytes);
    return list;
}

/* ---- writing ---- */
static int dvti_params_flag(dvt_dtype dtype) {
    static const int flags[DVT_DTYPE_COUNT] = {0, 1, 2, 12, 5, 3, 4, 6, 7};
    return flags[dtype];
}

/* Extents of 0, and no axes at all, mean "unknown" in version 2: those arrays are written as version 3. */
static bool dvti_params_write_array(dvti_file_out *out, dvt_array *x) {
    bool np_shape = x->shape.ndim == 0 || dvt_size(x) == 0, ok;
    dvti_writer head = dvti_writer_begin();
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *host = dvti_stored_host(out->function, x, x->dtype);
    int i;
    dvti_writer_le(&head, np_shape ? DVTI_PARAMS_V3 : DVTI_PARAMS_V2, 4);
    dvti_writer_le(&head, 0, 4); /* dense */
    dvti_writer_le(&head, (uint64_t)x->shape.ndim, 4);
    for (i = 0; i < x->shape.ndim; i++)
        dvti_writer_le(&head, (uint64_t)x->shape.dim[i], 8);
    dvti_writer_le(&head, 1, 4); /* cpu */
    dvti_writer_le(&head, 0, 4);
    dvti_writer_le(&head, (uint64_t)dvti_params_flag(x->dtype), 4);
    if (head.failed)
        dvti_fail_memory(out->function, (int64_t)head.capacity * 2);
    ok = host && !head.failed;
    if (ok) {
        dvti_file_write(out, head.at, head.length);
        dvti_file_write(out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
    }
    dvti_writer_free(&head);
    dvt_scope_end(&scope);
    return ok;
}

static void dvti_params_write_number(dvti_file_out *out, uint64_t value) {
    unsigned char raw[8];
    int i;
    for (i = 0; i < 8; i++)
        raw[i] = (unsigned char)(value >> 8 * i);
    dvti_file_write(out, raw, 8);
}

static int dvti_params_compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool dvti_params_check_names(const char *const *names, int n) {
    const char **sorted = (const char **)dvti_alloc(sizeof *sorted * (size_t)n);
    bool ok = true;
    int i;
    if (!sorted) {
        dvti_fail_memory("dvt_save_params", (int64_t)sizeof *sorted * n);
        return false;
    }
    for (i = 0; i < n && ok; i++) {
        sorted[i] = names[i];
        if (!names[i]) {
            dvti_null("dvt_save_params", "a name");
            ok = false;
        }
    }
    if (ok)
        qsort((void *)sorted, (size_t)n, sizeof *sorted, dvti_params_compare_names);
    for (i = 1; i < n && ok; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            dvti_fail(DVT_ERR_NAME,
                      "dvt_save_params: two arrays are named \"%.100s\"; give each its own name",
                      sorted[i]);
            ok = false;
        }
    dvti_free((void *)sorted);
    return ok;
}

DVT_API dvt_status dvt_save_params(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n) {
    dvti_file_out out;
    bool ok = true;
    int i;
    if (n < 0)
        return dvti_fail(DVT_ERR_RANGE, "dvt_save_params: n is %d; expected 0 or more arrays", n);
    if (n && !arrays)
        return dvti_null("dvt_save_params", "arrays");
    for (i = 0; i < n; i++)
        if (!arrays[i])
            return dvti_null("dvt_save_params", "an array");
    if ((names && n && !dvti_params_check_names(names, n)) ||
        !dvti_file_begin(&out, "dvt_save_params", path))
        return dvt_error_code();
    dvti_params_write_number(&out, DVTI_PARAMS_LIST);
    dvti_params_write_number(&out, 0);
    dvti_params_write_number(&out, (uint64_t)n);
    for (i = 0; i < n && ok; i++)
        ok = dvti_params_write_array(&out, arrays[i]);
    dvti_params_write_number(&out, names ? (uint64_t)n : 0);
    for (i = 0; i < n && names; i++) {
        dvti_params_write_number(&out, (uint64_t)strlen(names[i]));
        dvti_file_write(&out, names[i], strlen(names[i]));
    }
    return dvti_file_end(&out, ok);
}

#undef DVTI_PARAMS_LIST
#undef DVTI_PARAMS_V1
#undef DVTI_PARAMS_V2
#undef DVTI_PARAMS_V3
/* ==== end src/5_io/dvt_params.c ==== */
#ifdef DEVTENSOR_LINES
#line 73 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_print.c ==== */
/* Arrays as text: brackets, line breaks and summaries by NumPy's rules, and what each style writes around them. Only the
   elements that are shown are copied from the array's context. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_print.c"
#endif

/* ---- growing bytes ---- */
DVTI_FN dvti_writer dvti_writer_begin(void) {
    dvti_writer writer;
    memset(&writer, 0, sizeof writer);
    return writer;
}

DVTI_FN void dvti_writer_free(dvti_writer *writer) {
    dvti_free(writer->at);
    memset(writer, 0, sizeof *writer);
}

static bool dvti_writer_room(dvti_writer *writer, size_t n) {
    if (writer->failed || n > SIZE_MAX - 1 - writer->length ||
        !dvti_grow((void **)&writer->at, &writer->capacity, writer->length + n + 1, 1))
        writer->failed = true;
    return !writer->failed;
}

DVTI_FN void dvti_writer_bytes(dvti_writer *writer, const void *bytes, size_t n) {
    if (!n || !dvti_writer_room(writer, n))
        return;
    memcpy(writer->at + writer->length, bytes, n);
    writer->length += n;
}

DVTI_FN void dvti_writer_text(dvti_writer *writer, const char *text) {
    dvti_writer_bytes(writer, text, strlen(text));
}

DVTI_FN void dvti_writer_repeat(dvti_writer *writer, char c, int64_t times) {
    if (times <= 0 || !dvti_writer_room(writer, (size_t)times))
        return;
    memset(writer->at + writer->length, c, (size_t)times);
    writer->length += (size_t)times;
}

DVTI_FN void dvti_writer_int(dvti_writer *writer, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    dvti_writer_text(writer, text);
}

DVTI_FN void dvti_writer_le(dvti_writer *writer, uint64_t value, int bytes) {
    unsigned char raw[8];
    int i;
    for (i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(value >> 8 * i);
    dvti_writer_bytes(writer, raw, (size_t)bytes);
}

/* ---- the elements that are shown ---- */
/* shape: extents as shown; where an axis is cut, `gap` elements stand before the cut and as many behind it. */
typedef struct dvti_shown {
    dvt_shape shape;
    bool cut[DVT_MAX_DIMS];
    int64_t gap;
} dvti_shown;

static dvti_shown dvti_shown_of(const dvt_array *x, const dvti_print_rules *rules) {
    dvti_shown shown;
    int i;
    memset(&shown, 0, sizeof shown);
    shown.shape = x->shape;
    shown.gap = rules->edge_items;
    if (dvt_size(x) > rules->threshold)
        for (i = 0; i < x->shape.ndim; i++)
            if (x->shape.dim[i] > 2 * rules->edge_items) {
                shown.cut[i] = true;
                shown.shape.dim[i] = 2 * rules->edge_items;
            }
    return shown;
}

/* Copies one corner: bit i of `far_side` chooses the elements behind the cut of axis i. */
static bool dvti_copy_corner(dvt_array *packed, dvt_array *x, const dvti_shown *shown,
                             unsigned far_side) {
    dvt_shape shape = shown->shape;
    int64_t from = x->offset, to = 0;
    dvt_array *source, *target;
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (shown->cut[i]) {
            shape.dim[i] = shown->gap;
            if (far_side & 1u << i) {
                from += (x->shape.dim[i] - shown->gap) * x->stride[i];
                to += shown->gap * packed->stride[i];
            }
        }
    source = dvti_view_new("dvt_print", x, shape, x->stride, from);
    target = source ? dvti_view_new("dvt_print", packed, shape, packed->stride, to) : NULL;
    return target && dvti_copy_elements("dvt_print", target, source) == DVT_OK;
}

/* The shown elements, contiguous in main memory, as an array of the innermost scope; NULL with the error set. A summary
   is packed on x's own context first, so that only it travels. */
static dvt_array *dvti_fetch_shown(dvt_array *x, const dvti_shown *shown) {
    dvt_array *packed = x, *host;
    unsigned cuts = 0, side = 0;
    int i;
    for (i = 0; i < shown->shape.ndim; i++)
        cuts |= shown->cut[i] ? 1u << i : 0;
    if (cuts) {
        packed = dvti_array_new("dvt_print", shown->shape, x->dtype, x->storage->ctx);
        do {
            if (!packed || !dvti_copy_corner(packed, x, shown, side))
                return NULL;
            side = (side - cuts) & cuts; /* the next subset of cuts */
        } while (side);
    }
    if (packed->storage->ctx.type == DVT_DEVICE_CPU && dvt_is_contiguous(packed))
        return dvt_wait(packed) == DVT_OK ? packed : NULL;
    host = dvti_array_new("dvt_print", shown->shape, x->dtype, dvt_cpu());
    if (!host || dvti_copy_elements("dvt_print", host, packed) != DVT_OK ||
        dvt_wait(host) != DVT_OK)
        return NULL;
    return host;
}

/* ---- layout ---- */
typedef struct dvti_layout {
    dvti_writer *out;
    const dvti_print_rules *rules;
    const dvti_shown *shown;
    dvti_element_format format;
    const char *at; /* the next element: they are written in C order */
    const char *separator;
    bool torch_like;
} dvti_layout;

static int64_t dvti_next_element(dvti_layout *layout, char *text) {
    int n = dvti_element_text(text, &layout->format, layout->at);
    layout->at += dvt_dtype_size(layout->format.dtype);
    return n;
}

static void dvti_strip_blanks(dvti_writer *out) {
    while (out->length && out->at[out->length - 1] == ' ')
        out->length--;
}

/* A row wraps before the word that would pass `width`, unless that would not help. */
static void dvti_row_numpy(dvti_layout *layout, int64_t indent, int64_t width) {
    int axis = layout->shown->shape.ndim - 1;
    int64_t n = layout->shown->shape.dim[axis], column = indent, i, length;
    int64_t separator = (int64_t)strlen(layout->separator);
    char text[DVTI_NUMBER_SIZE];
    bool dots = layout->shown->cut[axis];
    for (i = 0; i < n; i++) {
        bool ellipsis = dots && i == layout->shown->gap;
        if (ellipsis) {
            memcpy(text, "...", 4);
            length = 3;
            dots = false;
            i--;
        } else
            length = dvti_next_element(layout, text);
        if (column + length > width && column > indent) {
            dvti_strip_blanks(layout->out);
            dvti_writer_text(layout->out, "\n");
            dvti_writer_repeat(layout->out, ' ', indent);
            column = indent;
        }
        dvti_writer_bytes(layout->out, text, (size_t)length);
        column += length;
        if (i < n - 1) {
            dvti_writer_text(layout->out, layout->separator);
            column += separator;
        }
    }
}

/* PyTorch puts a fixed number of elements on a line; the ellipsis counts as one. */
static void dvti_row_torch(dvti_layout *layout, int64_t indent) {
    int axis = layout->shown->shape.ndim - 1;
    int64_t n = layout->shown->shape.dim[axis], place = 0, i;
    int64_t per_line = (layout->rules->line_width - indent + 1) / (layout->format.width + 2);
    char text[DVTI_NUMBER_SIZE];
    bool dots = layout->shown->cut[axis];
    per_line = DVTI_MAX(per_line, 1);
    for (i = 0; i < n; i++, place++) {
        int64_t length = 4;
        if (dots && i == layout->shown->gap) {
            memcpy(text, " ...", 5);
            dots = false;
            i--;
        } else
            length = dvti_next_element(layout, text);
        if (place && place % per_line == 0) {
            dvti_writer_text(layout->out, ",\n");
            dvti_writer_repeat(layout->out, ' ', indent);
        } else if (place)
            dvti_writer_text(layout->out, ", ");
        dvti_writer_bytes(layout->out, text, (size_t)length);
    }
}

/* One block from its opening bracket on, which stands at column indent - 1. `width` is what its lines may take. */
static void dvti_block_text(dvti_layout *layout, int axis, int64_t indent, int64_t width) {
    int left = layout->shown->shape.ndim - axis;
    int64_t n = layout->shown->shape.dim[axis], i;
    bool dots = layout->shown->cut[axis];
    dvti_writer_text(layout->out, "[");
    if (left == 1) {
        if (layout->torch_like)
            dvti_row_torch(layout, indent);
        else
            dvti_row_numpy(layout, indent, width - 1);
    } else
        for (i = 0; i < n; i++) {
            if (dots && i == layout->shown->gap) {
                dvti_writer_text(layout->out, "...");
                dots = false;
                i--;
            } else
                dvti_block_text(layout, axis + 1, indent + 1, width - 1);
            if (i == n - 1)
                break;
            dvti_writer_bytes(layout->out, layout->separator,
                              layout->separator[0] == ',' ? (size_t)1 : 0);
            dvti_writer_repeat(layout->out, '\n', left - 1);
            dvti_writer_repeat(layout->out, ' ', indent);
        }
    dvti_writer_text(layout->out, "]");
}

/* The values: `prefix` columns are taken on the first line, `suffix` ones on the last. */
static void dvti_values_text(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, const dvt_array *host, int64_t prefix,
                             int64_t suffix, const char *separator) {
    dvti_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.out = out;
    layout.rules = rules;
    layout.shown = shown;
    layout.separator = separator;
    layout.torch_like = rules->style == DVT_PRINT_TORCH;
    if (dvt_size(host) == 0) {
        dvti_writer_text(out, "[]");
        return;
    }
    layout.at = (const char *)dvti_view_of(host).data;
    layout.format =
        dvti_element_plan(rules, host->dtype, layout.at, dvt_size(host), shown->shape.ndim);
    if (shown->shape.ndim == 0) {
        char text[DVTI_NUMBER_SIZE];
        int64_t n = dvti_next_element(&layout, text);
        dvti_writer_bytes(out, text, (size_t)n);
    } else
        dvti_block_text(&layout, 0, prefix + 1, rules->line_width - suffix);
}

/* Characters since the last newline. */
static int64_t dvti_last_line(const dvti_writer *out, size_t start) {
    size_t i = out->length;
    while (i > start && out->at[i - 1] != '\n')
        i--;
    return (int64_t)(out->length - i);
}

/* ---- what stands around the values ---- */
/* MXNet's np: NumPy's repr, whose dtype is left out for float32 and bool and added for NumPy's other defaults; the
   context unless it is a cpu. */
static void dvti_style_np(dvti_writer *out, const dvti_print_rules *rules, const dvti_shown *shown,
                          dvt_array *x, const dvt_array *host) {
    const char *name = dvt_dtype_name(x->dtype);
    bool empty = dvt_size(x) == 0, implied = x->dtype == DVT_F64 || x->dtype == DVT_I64;
    dvti_writer_text(out, "array(");
    dvti_values_text(out, rules, shown, host, 6, 1, ", ");
    if (empty && x->shape.ndim != 1) {
        dvti_writer_text(out, ", shape=");
        dvti_writer_text(out, dvti_shape_text(x->shape));
    }
    if (x->dtype != DVT_F32 && (x->dtype != DVT_BOOL || empty)) {
        int64_t line = dvti_last_line(out, 0) + 1;
        bool wrap = (!implied || empty) && line + 7 + (int64_t)strlen(name) + 1 > rules->line_width;
        dvti_writer_text(out, wrap ? ",\n      dtype=" : ", dtype=");
        dvti_writer_text(out, name);
    }
    if (x->storage->ctx.type != DVT_DEVICE_CPU) {
        dvti_writer_text(out, ", ctx=");
        dvti_writer_text(out, dvt_ctx_name(x->storage->ctx));
    }
    dvti_writer_text(out, ")");
}

/* JAX measures a single line without "Array(", and where the dtype does not fit it adds blanks, not a newline. */
static void dvti_style_jax(dvti_writer *out, const dvti_print_rules *rules, const dvti_shown *shown,
                           dvt_array *x, const dvt_array *host) {
    const char *name = dvt_dtype_name(x->dtype);
    int64_t line;
    dvti_writer_text(out, "Array(");
    dvti_values_text(out, rules, shown, host, 6, 1, ", ");
    if (dvt_size(x) == 0) {
        dvti_writer_text(out, ", shape=");
        dvti_writer_text(out, dvti_shape_text(x->shape));
    }
    line = dvti_last_line(out, 6) + 2;
    dvti_writer_text(out, ",");
    dvti_writer_repeat(out, ' ', line + 7 + (int64_t)strlen(name) + 1 > rules->line_width ? 6 : 1);
    dvti_writer_text(out, "dtype=");
    dvti_writer_text(out, name);
    dvti_writer_text(out, ")");
}

static void dvti_torch_suffix(dvti_writer *out, const dvti_print_rules *rules, int64_t *line,
                              const char *text) {
    int64_t n = (int64_t)strlen(text);
    if (*line + n + 2 > rules->line_width) {
        dvti_writer_text(out, ",\n       ");
        *line = 7 + n;
    } else {
        dvti_writer_text(out, ", ");
        *line += n + 2;
    }
    dvti_writer_text(out, text);
}

static void dvti_style_torch(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, dvt_array *x, const dvt_array *host) {
    bool empty = dvt_size(x) == 0;
    char *text = dvti_name_buffer();
    int64_t line;
    dvti_writer_text(out, "tensor(");
    dvti_values_text(out, rules, shown, host, 7, 0, ", ");
    line = dvti_last_line(out, 0) + 2;
    if (x->storage->ctx.type == DVT_DEVICE_GPU) {
        snprintf(text, DVTI_NAME_SIZE, "device='cuda:%d'", x->storage->ctx.id);
        dvti_torch_suffix(out, rules, &line, text);
    }
    if (empty && x->shape.ndim != 1) {
        snprintf(text, DVTI_NAME_SIZE, "size=%.140s", dvti_shape_text(x->shape));
        dvti_torch_suffix(out, rules, &line, text);
    }
    if (x->dtype != DVT_F32 && (empty || (x->dtype != DVT_I64 && x->dtype != DVT_BOOL))) {
        snprintf(text, DVTI_NAME_SIZE, "dtype=torch.%s", dvt_dtype_name(x->dtype));
        dvti_torch_suffix(out, rules, &line, text);
    }
    dvti_writer_text(out, ")");
}

static void dvti_style_mxnet(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, dvt_array *x, const dvt_array *host) {
    int i;
    dvti_values_text(out, rules, shown, host, 0, 0, " ");
    dvti_writer_text(out, "\n<NDArray ");
    for (i = 0; i < x->shape.ndim; i++) {
        dvti_writer_text(out, i ? "x" : "");
        dvti_writer_int(out, x->shape.dim[i]);
    }
    dvti_writer_text(out, " @");
    dvti_writer_text(out, dvt_ctx_name(x->storage->ctx));
    dvti_writer_text(out, ">");
}

/* ---- the call ---- */
static bool dvti_print_rules_of(const dvt_print_options *options, dvti_print_rules *rules) {
    static const dvt_print_options standard = {DVT_PRINT_MXNET, 0, 0, 0, 0, false, false};
    const dvt_print_options *o = options ? options : &standard;
    bool torch_like = o->style == DVT_PRINT_TORCH;
    if ((int)o->style < 0 || (int)o->style > (int)DVT_PRINT_TORCH || o->precision < -1 ||
        o->precision > DVTI_MAX_PRECISION || o->threshold < 0 || o->edge_items < 0 ||
        o->line_width < 0) {
        dvti_fail(
            DVT_ERR_RANGE,
            "dvt_format: options with style %d, precision %d, threshold %lld, edge_items %d, "
            "line_width %d; expected a style of dvt_print_style, a precision of -1 to %d, and "
            "no other negative number: start from options of all zeros",
            (int)o->style, o->precision, (long long)o->threshold, o->edge_items, o->line_width,
            DVTI_MAX_PRECISION);
        return false;
    }
    rules->style = o->style;
    rules->precision = o->precision ? o->precision : torch_like ? 4 : 8;
    rules->threshold = o->threshold ? o->threshold : 1000;
    rules->edge_items = o->edge_items ? o->edge_items : 3;
    rules->line_width = o->line_width ? o->line_width : torch_like ? 80 : 75;
    rules->suppress = o->suppress;
    return true;
}

/* The whole text; the caller frees the writer, also on failure. */
static dvt_status dvti_print_text(dvti_writer *out, const char *function, dvt_array *x,
                                  const dvt_print_options *options) {
    dvti_print_rules rules;
    dvti_shown shown;
    dvt_array *host;
    dvt_status status;
    dvt_scope_guard scope;
    if (!dvti_print_rules_of(options, &rules))
        return DVT_ERR_RANGE;
    if (!x)
        dvti_writer_text(out, "(null)");
    else {
        status = dvti_check_guard(function, x);
        if (status != DVT_OK)
            return status;
        shown = dvti_shown_of(x, &rules);
        scope = dvt_scope_begin();
        host = dvti_fetch_shown(x, &shown);
        if (!host)
            status = dvt_error_code();
        else if (rules.style == DVT_PRINT_MXNET)
            dvti_style_mxnet(out, &rules, &shown, x, host);
        else if (rules.style == DVT_PRINT_NP)
            dvti_style_np(out, &rules, &shown, x, host);
        else if (rules.style == DVT_PRINT_JAX)
            dvti_style_jax(out, &rules, &shown, x, host);
        else if (rules.style == DVT_PRINT_TORCH)
            dvti_style_torch(out, &rules, &shown, x, host);
        else
            dvti_values_text(out, &rules, &shown, host, 0, 0, " ");
        dvt_scope_end(&scope);
        if (!host)
            return status;
    }
    if (!options || !options->no_newline)
        dvti_writer_text(out, "\n");
    return out->failed ? dvti_fail_memory(function, (int64_t)out->capacity * 2) : DVT_OK;
}

DVT_API dvt_status dvt_format(dvt_array *x, const dvt_print_options *options, char *buffer,
                              size_t size, size_t *length) {
    dvti_writer out = dvti_writer_begin();
    dvt_status status = dvti_print_text(&out, "dvt_format", x, options);
    if (status == DVT_OK) {
        size_t n = out.length < size ? out.length : size ? size - 1 : 0;
        if (buffer && size) {
            memcpy(buffer, out.at, n);
            buffer[n] = 0;
        }
        if (length)
            *length = out.length;
    }
    dvti_writer_free(&out);
    return status;
}

static dvt_status dvti_print_to(const char *function, FILE *file, dvt_array *x) {
    dvti_writer out = dvti_writer_begin();
    dvt_status status = dvti_print_text(&out, function, x, NULL);
    if (status == DVT_OK && fwrite(out.at, 1, out.length, file) != out.length)
        status = dvti_fail(DVT_ERR_IO, "%s: %lld bytes could not be written: %s", function,
                           (long long)out.length, strerror(errno));
    dvti_writer_free(&out);
    return status;
}

DVT_API dvt_status dvt_print(dvt_array *x) {
    return dvti_print_to("dvt_print", stdout, x);
}

DVT_API dvt_status dvt_print_file(void *file, dvt_array *x) {
    if (!file)
        return dvti_null("dvt_print_file", "file");
    return dvti_print_to("dvt_print_file", (FILE *)file, x);
}
/* ==== end src/5_io/dvt_print.c ==== */
#ifdef DEVTENSOR_LINES
#line 74 "src/devtensor_spine.h"
#endif
/* ==== begin src/5_io/dvt_print_element.c ==== */
/* How the elements of one array look: one form for all of them, decided by NumPy's rules (arrayprint of NumPy 1.24) or
   PyTorch's. Knows nothing of brackets and lines. */
#ifdef DEVTENSOR_LINES
#line 3 "src/5_io/dvt_print_element.c"
#endif

/* What decides: the extremes of what is finite and not zero, and what else there is. */
typedef struct dvti_survey {
    double largest, smallest; /* magnitudes; 0 when there is none */
    bool finite, special, minus_infinity, fractions;
} dvti_survey;

static double dvti_float_value(const dvti_float *x) {
    double magnitude = ldexp((double)x->mantissa, x->exponent);
    return x->negative ? -magnitude : magnitude;
}

static const char *dvti_printed_at(const void *elements, dvt_dtype dtype, int64_t i) {
    return (const char *)elements + i * dvt_dtype_size(dtype);
}

static dvti_survey dvti_survey_of(dvt_dtype dtype, const void *elements, int64_t n) {
    dvti_survey s;
    int64_t i;
    memset(&s, 0, sizeof s);
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(dtype, dvti_printed_at(elements, dtype, i));
        double magnitude;
        if (x.kind != DVTI_FINITE) {
            s.special = true;
            s.minus_infinity = s.minus_infinity || (x.kind == DVTI_INFINITE && x.negative);
            continue;
        }
        s.finite = true;
        magnitude = fabs(dvti_float_value(&x));
        if (magnitude == 0)
            continue;
        s.fractions = s.fractions || magnitude != floor(magnitude);
        if (s.largest == 0 || magnitude > s.largest)
            s.largest = magnitude;
        if (s.smallest == 0 || magnitude < s.smallest)
            s.smallest = magnitude;
    }
    return s;
}

/* NumPy divides in the array's own dtype, so the quotient is rounded to it (and may become infinite). */
static double dvti_quotient(dvt_dtype dtype, double a, double b) {
    if (dtype == DVT_F64)
        return a / b;
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_f32_to_f16((float)(a / b)));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_f32_to_bf16((float)(a / b)));
    return (double)(float)(a / b);
}

static bool dvti_numpy_scientific(const dvti_print_rules *rules, dvt_dtype dtype,
                                  const dvti_survey *s) {
    if (s->largest == 0)
        return false;
    return s->largest >= 1e8 ||
           (!rules->suppress &&
            (s->smallest < 0.0001 || dvti_quotient(dtype, s->largest, s->smallest) > 1000.0));
}

/* The widths of a number's parts. */
typedef struct dvti_parts {
    int whole, fraction, exponent;
} dvti_parts;

static dvti_parts dvti_parts_of(const char *text) {
    dvti_parts parts;
    const char *point = strchr(text, '.'), *e = strchr(text, 'e'), *end = text + strlen(text);
    if (!e)
        e = end;
    if (!point)
        point = e;
    parts.whole = (int)(point - text);
    parts.fraction = e > point ? (int)(e - point) - 1 : 0;
    parts.exponent = end > e ? (int)(end - e) - 2 : 0;
    return parts;
}

/* The widest parts over all finite elements in a preliminary form. */
static dvti_parts dvti_widest(dvt_dtype dtype, const void *elements, int64_t n,
                              const dvti_number_format *form) {
    char buffer[DVTI_NUMBER_SIZE];
    dvti_parts most, parts;
    int64_t i;
    memset(&most, 0, sizeof most);
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(dtype, dvti_printed_at(elements, dtype, i));
        if (x.kind != DVTI_FINITE)
            continue;
        dvti_number_text(buffer, &x, form);
        parts = dvti_parts_of(buffer);
        most.whole = DVTI_MAX(most.whole, parts.whole);
        most.fraction = DVTI_MAX(most.fraction, parts.fraction);
        most.exponent = DVTI_MAX(most.exponent, parts.exponent);
    }
    return most;
}

/* Fixed form: shortest digits, blanks on both sides. Scientific: all mantissas as long as the longest. */
static dvti_number_format dvti_numpy_float_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                                const void *elements, int64_t n) {
    dvti_survey survey = dvti_survey_of(dtype, elements, n);
    dvti_number_format form;
    dvti_parts most;
    memset(&form, 0, sizeof form);
    form.trim = DVTI_TRIM_POINT;
    form.at_most = rules->precision;
    form.at_least = -1;
    form.scientific = dvti_numpy_scientific(rules, dtype, &survey);
    most = dvti_widest(dtype, elements, n, &form);
    form.pad_left = most.whole;
    form.at_least = 0;
    if (form.scientific) {
        form.trim = DVTI_TRIM_KEEP;
        form.at_most = form.at_least = most.fraction;
        form.exponent_digits = most.exponent;
        form.pad_right = most.exponent + 2 + most.fraction;
    } else
        form.pad_right = most.fraction;
    if (survey.special) {
        int room = form.pad_right + 1, longest = survey.minus_infinity ? 4 : 3;
        form.pad_left = DVTI_MAX(form.pad_left, longest - room);
    }
    return form;
}

/* A NumPy scalar prints all its digits: 1.0, 1e-05. */
static dvti_number_format dvti_numpy_scalar_plan(dvt_dtype dtype, const void *element) {
    dvti_float x = dvti_float_read(dtype, element);
    double magnitude = x.kind == DVTI_FINITE ? fabs(dvti_float_value(&x)) : 0;
    dvti_number_format form;
    memset(&form, 0, sizeof form);
    form.at_most = form.at_least = -1;
    form.scientific = magnitude != 0 && (magnitude >= 1e16 || magnitude < 1e-4);
    form.trim = form.scientific ? DVTI_TRIM_ALL : DVTI_TRIM_ZERO;
    return form;
}

/* PyTorch: so many digits behind the point for all, none when all values are whole; one width, which looks neither at
   zeros nor at what is not finite. */
static void dvti_torch_float_plan(dvti_element_format *format, const dvti_print_rules *rules,
                                  const void *elements, int64_t n) {
    dvti_survey s = dvti_survey_of(format->dtype, elements, n);
    dvti_number_format *form = &format->number;
    char buffer[DVTI_NUMBER_SIZE];
    int64_t i;
    format->whole = !s.fractions;
    form->exact =
        rules->precision >= 0; /* without a precision, PyTorch has none: shortest digits */
    form->trim = form->exact ? DVTI_TRIM_KEEP : DVTI_TRIM_ZERO;
    form->at_most = form->at_least = rules->precision;
    form->scientific = s.largest != 0 && (s.largest / s.smallest > 1000.0 || s.largest > 1e8 ||
                                          (!format->whole && s.smallest < 1e-4));
    if (format->whole && !form->scientific)
        form->at_most = form->at_least = 0;
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(format->dtype, dvti_printed_at(elements, format->dtype, i));
        if (x.kind == DVTI_FINITE && x.mantissa)
            format->width = DVTI_MAX(format->width, dvti_number_text(buffer, &x, form));
    }
    if (rules->suppress && form->scientific) {
        form->scientific = false;
        if (format->whole)
            form->at_most = form->at_least = 0;
    }
}

static int64_t dvti_int_value(dvt_dtype dtype, const void *at) {
    int32_t i32;
    int64_t i64;
    if (dtype == DVT_I64) {
        memcpy(&i64, at, sizeof i64);
        return i64;
    }
    if (dtype == DVT_I32) {
        memcpy(&i32, at, sizeof i32);
        return i32;
    }
    return dtype == DVT_I8 ? *(const signed char *)at : *(const unsigned char *)at;
}

/* Blanks and the text, ended by 0. */
static int dvti_padded(char *buffer, const char *text, int n, int width) {
    int blanks = width > n ? width - n : 0;
    memset(buffer, ' ', (size_t)blanks);
    memcpy(buffer + blanks, text, (size_t)n);
    buffer[blanks + n] = 0;
    return blanks + n;
}

static int dvti_int_text(char *buffer, int64_t value, int width) {
    char text[24];
    int n = DVTI_LENGTH(text);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        text[--n] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        text[--n] = '-';
    return dvti_padded(buffer, text + n, DVTI_LENGTH(text) - n, width);
}

static int dvti_special_text(char *buffer, const dvti_float *x, int width) {
    const char *text = x->kind == DVTI_NAN ? "nan" : x->negative ? "-inf" : "inf";
    return dvti_padded(buffer, text, (int)strlen(text), width);
}

DVTI_FN int dvti_element_text(char *buffer, const dvti_element_format *format,
                              const void *element) {
    char text[DVTI_NUMBER_SIZE];
    const dvti_number_format *form = &format->number;
    dvti_float x;
    int n;
    if (format->dtype == DVT_BOOL) {
        bool value = *(const unsigned char *)element != 0;
        return dvti_padded(buffer, value ? "True" : "False", value ? 4 : 5, format->width);
    }
    if (!dvt_dtype_is_float(format->dtype))
        return dvti_int_text(buffer, dvti_int_value(format->dtype, element), format->width);
    x = dvti_float_read(format->dtype, element);
    if (!format->torch_like) {
        if (x.kind != DVTI_FINITE)
            return dvti_special_text(buffer, &x,
                                     format->scalar ? 0 : form->pad_left + form->pad_right + 1);
        return dvti_number_text(buffer, &x, form);
    }
    if (x.kind != DVTI_FINITE)
        return dvti_special_text(buffer, &x, format->width);
    n = dvti_number_text(text, &x, form);
    return dvti_padded(buffer, text, n, format->width);
}

DVTI_FN dvti_element_format dvti_element_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                              const void *elements, int64_t n, int ndim) {
    bool scalar = ndim == 0 && (rules->style == DVT_PRINT_MXNET || rules->style == DVT_PRINT_STR);
    char buffer[DVTI_NUMBER_SIZE];
    dvti_element_format format;
    int64_t i;
    memset(&format, 0, sizeof format);
    format.dtype = dtype;
    format.torch_like = rules->style == DVT_PRINT_TORCH;
    format.scalar = scalar;
    format.width = format.torch_like ? 1 : 0;
    if (dvt_dtype_is_float(dtype)) {
        if (format.torch_like)
            dvti_torch_float_plan(&format, rules, elements, n);
        else if (scalar)
            format.number = dvti_numpy_scalar_plan(dtype, elements);
        else
            format.number = dvti_numpy_float_plan(rules, dtype, elements, n);
        return format;
    }
    if (dtype == DVT_BOOL && !format.torch_like) {
        format.width = ndim ? 5 : 0;
        return format;
    }
    for (i = 0; i < n; i++) {
        dvti_element_format bare = format;
        int length;
        bare.width = 0;
        length = dvti_element_text(buffer, &bare, dvti_printed_at(elements, dtype, i));
        format.width = DVTI_MAX(format.width, length);
    }
    return format;
}
/* ==== end src/5_io/dvt_print_element.c ==== */
#ifdef DEVTENSOR_LINES
#line 75 "src/devtensor_spine.h"
#endif
#if !defined(DEVTENSOR_NO_NN)
/* ==== begin src/6_nn/block_basic.c ==== */
/* Sequential, Dense, Flatten, Activation, Dropout, Embedding. Each is a block as a user would make one, with its settings as
   the user pointer. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/block_basic.c"
#endif
/* ==== begin src/6_nn/dvt_nn_internal.h ==== */
/* Blocks and parameters from the inside, for this room and for training.

   A parameter is new, deferred (dvt_initialize was called, extents are unknown) or ready. Whatever changes several
   parameters at once makes a plan for each first, everything that can fail included, and then commits all of them. */
#ifdef DEVTENSOR_LINES
#line 4 "src/6_nn/dvt_nn_internal.h"
#endif
#ifndef DVTI_NN_H
#define DVTI_NN_H
#ifdef DEVTENSOR_LINES
#line 7 "src/6_nn/dvt_nn_internal.h"
#endif

typedef enum dvti_param_state {
    DVTI_PARAM_NEW,
    DVTI_PARAM_DEFERRED,
    DVTI_PARAM_READY
} dvti_param_state;

struct dvt_param {
    dvti_object object;
    char *name;             /* "dense0_weight" */
    const char *short_name; /* "weight", inside name */
    dvt_shape shape;        /* extents of 0 are not known yet */
    dvt_dtype dtype;
    dvt_init own;  /* dvt_param_set_init and descriptors; kind DVT_INIT_DEFAULT: none */
    dvt_init rule; /* what the short name implies: bias 0, gamma 1 ...; DVT_INIT_DEFAULT: nothing */
    bool fixed;    /* never has a gradient: running statistics, integers */
    dvt_grad_req grad_req;
    double lr_mult, wd_mult;
    dvti_atomic state; /* dvti_param_state; what follows may be read once it says so */
    dvt_init pending;  /* deferred: what to draw */
    dvt_ctx_list ctxs; /* deferred and ready: each once, in the order given */
    dvt_array *copy[DVT_MAX_CONTEXTS]; /* ready: one per context, owned, gradients attached */
};

struct dvt_params {
    dvti_object object;
    dvt_param **item; /* retained */
    size_t count, capacity;
};

struct dvt_block {
    dvti_object object;
    dvt_block_desc desc; /* its kind is our own text */
    char *prefix;        /* "dense0_" */
    dvt_block **child;   /* retained */
    size_t n_child, child_capacity;
    dvt_param **param; /* owned */
    size_t n_param, param_capacity;
};

/* ---- parameters ---- */
DVTI_FN bool dvti_param_ready(const dvt_param *p);
/* No extent is 0. */
DVTI_FN bool dvti_shape_known(dvt_shape shape);
/* Two shapes agree wherever the first is known. */
DVTI_FN bool dvti_shape_accepts(dvt_shape known, dvt_shape given);
/* A parameter with one reference, that of the block which registers it. NULL with HOST_MEMORY. */
DVTI_FN dvt_param *dvti_param_new(const char *function, const char *prefix, const char *short_name,
                                  dvt_shape shape, dvt_dtype dtype, dvt_init own);
/* The mean of the copies, in main memory, in the parameter's dtype; exact where all copies are equal. */
DVTI_FN dvt_array *dvti_param_average(const char *function, dvt_param *p);
/* The contexts of a list, defaults resolved and each once (empty: the default context). False with RANGE or NO_DEVICE. */
DVTI_FN bool dvti_ctxs_resolve(const char *function, dvt_ctx_list given, dvt_ctx_list *out);
/* One line for messages: "a, b, c, ... (12 in all)". name(user, i) gives the texts. */
DVTI_FN const char *dvti_brief(char *buffer, size_t size, int n,
                               const char *(*name)(const void *user, int i), const void *user);

/* ---- plans ---- */
typedef struct dvti_plan {
    dvt_param *param; /* NULL: nothing to do */
    bool deferred;    /* only remember init and contexts */
    dvt_init init;
    dvt_shape shape;
    dvt_ctx_list ctxs;
    dvt_array *copy[DVT_MAX_CONTEXTS];
} dvti_plan;

/* n empty plans; NULL with HOST_MEMORY set. */
DVTI_FN dvti_plan *dvti_plans_new(const char *function, size_t n);
/* Copies of `values` (any dtype and context) on the plan's contexts, with gradients attached as the parameter wants. */
DVTI_FN bool dvti_plan_fill(dvti_plan *plan, dvt_array *values);
/* Cannot fail. Arrays of contexts that stay keep their identity. */
DVTI_FN void dvti_plans_commit(dvti_plan *plans, size_t n);
/* Frees the plans and what was not committed. */
DVTI_FN void dvti_plans_drop(dvti_plan *plans, size_t n);
/* One lock for the changes of all parameters: first forwards may come from several threads. */
DVTI_FN void dvti_params_lock(void);
DVTI_FN void dvti_params_unlock(void);
DVTI_FN void dvti_plan_commit_locked(dvti_plan *plan);

/* ---- initial values ---- */
/* What is drawn for p when dvt_initialize is given `init`. */
DVTI_FN dvt_init dvti_init_choose(const dvt_param *p, dvt_init init);
/* False with RANGE or SHAPE set: numbers that cannot be used, Xavier on a vector. */
DVTI_FN bool dvti_init_check(const char *function, const dvt_param *p, dvt_init init);
/* New values on cpu(0), in the current scope. */
DVTI_FN dvt_array *dvti_init_draw(const char *function, const dvt_param *p, dvt_init init,
                                  dvt_shape shape);
/* Gives a deferred parameter its values if its shape is known now. False with the error set. */
DVTI_FN bool dvti_param_finish(const char *function, dvt_param *p);

/* ---- collections ---- */
DVTI_FN dvt_params *dvti_params_new(const char *function);
/* Appends p unless it is there already, counting one more owner. */
DVTI_FN bool dvti_params_add(const char *function, dvt_params *params, dvt_param *p);

/* ---- regular expressions ---- */
typedef struct dvti_pattern_step {
    unsigned char op, c;
    int32_t x, y; /* jumps, relative to this step */
    uint32_t set[8];
} dvti_pattern_step;

typedef struct dvti_pattern {
    dvti_pattern_step *step;
    size_t count, capacity;
    int32_t *now, *next, *stack; /* scratch of one match */
    size_t *seen;
} dvti_pattern;

/* False with VALUE set (where it goes wrong and why) or HOST_MEMORY. */
DVTI_FN bool dvti_pattern_compile(const char *function, const char *text, dvti_pattern *out);
/* Does a prefix of the text match, as in Python's re.match? */
DVTI_FN bool dvti_pattern_match(dvti_pattern *pattern, const char *text);
DVTI_FN void dvti_pattern_free(dvti_pattern *pattern);

/* ---- blocks ---- */
/* A block of the library: names parameters "<stem>0_", takes `state`, which is freed with it and also on failure. */
DVTI_FN dvt_block *dvti_block_make(const char *function, const dvt_block_desc *desc,
                                   const char *stem, void *state);
/* Takes a block that could not be completed out of the scope and frees it. Returns NULL. */
DVTI_FN dvt_block *dvti_block_discard(dvt_block *block);
/* A parameter that never has a gradient. */
DVTI_FN dvt_param *dvti_block_add_fixed(dvt_block *block, const char *name, dvt_shape shape,
                                        dvt_dtype dtype);
DVTI_FN bool dvti_block_is_sequential(const dvt_block *block);
DVTI_FN dvt_array *dvti_sequential_forward(dvt_block *self, void *user, dvt_array *x);

/* Called before (y NULL) and after each block of this thread's dvt_forward. Returns the tracer that was set. */
typedef struct dvti_tracer {
    void (*visit)(void *user, dvt_block *block, dvt_array *y);
    void *user;
} dvti_tracer;

DVTI_FN dvti_tracer dvti_set_tracer(dvti_tracer tracer);
/* Activations: checked, applied, and as Gluon prints them, "Activation(relu)". */
DVTI_FN bool dvti_activation_ok(const char *function, dvt_activation activation);
DVTI_FN dvt_array *dvti_activate(dvt_array *x, dvt_activation activation);
DVTI_FN const char *dvti_activation_text(dvt_activation activation);
/* A float as Python prints it: 0.9, 1e-05, 1.0. */
DVTI_FN const char *dvti_python_number(double value);

/* ---- names in files ---- */
typedef struct dvti_named {
    char *name; /* "0.weight" */
    dvt_param *param;
} dvti_named;

typedef struct dvti_named_list {
    dvti_named *item;
    size_t count, capacity;
} dvti_named_list;

DVTI_FN void dvti_named_free(dvti_named_list *list);
/* All structural names of a net, in order; a shared parameter has several. False with HOST_MEMORY set. */
DVTI_FN bool dvti_named_collect(const char *function, const dvt_block *net, dvti_named_list *list);

/* One call of dvt_load_parameters. */
typedef struct dvti_load {
    const char *path;
    dvt_load_options options;
    dvt_ctx_list ctxs; /* n 0: where the parameters are */
    dvt_array_list *file;
    dvti_named_list named; /* what the net has, and for each which array of the file (-1: none) */
    int *from;
} dvti_load;

/* Fills in named and from; false with NAME (missing, extra) or HOST_MEMORY set. */
DVTI_FN bool dvti_load_match(dvti_load *load, const dvt_block *net);

#endif
/* ==== end src/6_nn/dvt_nn_internal.h ==== */
#ifdef DEVTENSOR_LINES
#line 3 "src/6_nn/block_basic.c"
#endif

/* ---- activations ---- */
DVTI_FN bool dvti_activation_ok(const char *function, dvt_activation activation) {
    if ((int)activation >= DVT_LINEAR && (int)activation <= DVT_GELU)
        return true;
    dvti_fail(DVT_ERR_RANGE,
              "%s: activation number %d does not exist; expected DVT_LINEAR, DVT_RELU, "
              "DVT_SIGMOID, DVT_TANH, DVT_SOFTPLUS or DVT_GELU",
              function, (int)activation);
    return false;
}

DVTI_FN dvt_array *dvti_activate(dvt_array *x, dvt_activation activation) {
    switch (activation) {
    case DVT_RELU:
        return dvt_relu(x);
    case DVT_SIGMOID:
        return dvt_sigmoid(x);
    case DVT_TANH:
        return dvt_tanh(x);
    case DVT_SOFTPLUS:
        return dvt_softplus(x);
    case DVT_GELU:
        return dvt_gelu(x);
    default:
        return x;
    }
}

/* Gluon calls softplus softrelu. */
DVTI_FN const char *dvti_activation_text(dvt_activation activation) {
    static const char *const texts[] = {"Activation(linear)",   "Activation(relu)",
                                        "Activation(sigmoid)",  "Activation(tanh)",
                                        "Activation(softrelu)", "Activation(gelu)"};
    return texts[(int)activation];
}

/* ---- settings of a block ---- */
static void *dvti_nn_state(const char *function, size_t bytes) {
    void *state = dvti_alloc_zero(bytes);
    if (!state)
        dvti_fail_memory(function, (int64_t)bytes);
    return state;
}

static dvt_block_desc dvti_nn_desc(const char *kind,
                                   dvt_array *(*forward)(dvt_block *, void *, dvt_array *),
                                   size_t (*describe)(const dvt_block *, void *, char *, size_t)) {
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    desc.forward = forward;
    desc.describe = describe;
    return desc;
}

/* ---- Sequential ---- */
/* An intermediate result that nothing else holds (a tape, a caller) is freed as soon as the next one is there. */
DVTI_FN dvt_array *dvti_sequential_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *y = x, *next;
    size_t i;
    (void)user;
    for (i = 0; y && i < self->n_child; i++) {
        next = dvt_forward(self->child[i], y);
        if (y != x && y != next) {
            dvti_scope_take(y);
            dvt_release(y);
        }
        y = next;
    }
    return y;
}

DVTI_FN bool dvti_block_is_sequential(const dvt_block *block) {
    return block->desc.forward == dvti_sequential_forward;
}

DVT_API dvt_block *dvt_sequential(void) {
    dvt_block_desc desc = dvti_nn_desc("Sequential", dvti_sequential_forward, NULL);
    return dvti_block_make("dvt_sequential", &desc, "sequential", NULL);
}

/* ---- Dense ---- */
typedef struct dvti_dense_block {
    int64_t units;
    dvt_activation activation;
    bool no_flatten;
} dvti_dense_block;

static dvt_array *dvti_dense_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *w = dvt_block_data(self, "weight", ctx), *b = NULL;
    if (!w || (self->n_param > 1 && !(b = dvt_block_data(self, "bias", ctx))))
        return NULL;
    if (!d->no_flatten && x->shape.ndim != 2)
        x = dvt_flatten(x);
    x = x ? dvt_linear(x, w, b) : NULL;
    return x ? dvti_activate(x, d->activation) : NULL;
}

/* The extent that an axis of the weight takes from the input; 0 or no axis is an error. */
static int64_t dvti_dense_block_inputs(const dvti_dense_block *d, const dvt_array *x) {
    int64_t count = 1;
    int i;
    if (d->no_flatten)
        return x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 0;
    for (i = 1; i < x->shape.ndim; i++)
        if (!dvti_mul(count, x->shape.dim[i], &count))
            return 0;
    return count;
}

static dvt_status dvti_dense_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    int64_t in = dvti_dense_block_inputs(d, x);
    if (in <= 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_forward: Dense cannot infer in_units from x %s; expected an input "
                         "with elements, or give in_units",
                         dvti_describe(x));
    return dvt_param_set_shape(dvt_block_param(self, "weight"), DVT_SHAPE(d->units, in));
}

static size_t dvti_dense_block_describe(const dvt_block *self, void *user, char *buffer,
                                        size_t size) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "Dense(");
    if (shape.dim[1])
        dvti_text_add(&text, "%lld", (long long)shape.dim[1]);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld, %s)", (long long)d->units,
                  d->activation == DVT_LINEAR ? "linear" : dvti_activation_text(d->activation));
    return text.length;
}

static bool dvti_dense_block_check(const char *function, const dvt_dense_desc *desc) {
    if (desc->units < 1 || desc->in_units < 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: %lld units and %lld in_units; expected at least 1, and 0 (inferred) or more",
                  function, (long long)desc->units, (long long)desc->in_units);
        return false;
    }
    if (!dvt_dtype_is_float(desc->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype %s; expected a float dtype", function,
                  dvt_dtype_name(desc->dtype));
        return false;
    }
    return dvti_activation_ok(function, desc->activation);
}

static dvt_block *dvti_dense_block_make(const char *function, const dvt_dense_desc *desc) {
    dvt_block_desc block_desc =
        dvti_nn_desc("Dense", dvti_dense_block_forward, dvti_dense_block_describe);
    dvt_block *block;
    dvti_dense_block *state;
    if (!dvti_dense_block_check(function, desc) ||
        !(state = (dvti_dense_block *)dvti_nn_state(function, sizeof *state)))
        return NULL;
    state->units = desc->units;
    state->activation = desc->activation;
    state->no_flatten = desc->no_flatten;
    block_desc.infer = dvti_dense_block_infer;
    block = dvti_block_make(function, &block_desc, "dense", state);
    if (block && (!dvt_block_add_param(block, "weight", DVT_SHAPE(desc->units, desc->in_units),
                                       desc->dtype, desc->weight_init) ||
                  (!desc->no_bias && !dvt_block_add_param(block, "bias", DVT_SHAPE(desc->units),
                                                          desc->dtype, desc->bias_init))))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_dense_with(const dvt_dense_desc *desc) {
    if (desc)
        return dvti_dense_block_make("dvt_dense_with", desc);
    dvti_null("dvt_dense_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_dense(int64_t units, dvt_activation activation) {
    dvt_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.activation = activation;
    return dvti_dense_block_make("dvt_dense", &desc);
}

/* ---- Flatten ---- */
static dvt_array *dvti_flatten_block_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    return dvt_flatten(x);
}

static size_t dvti_flatten_block_describe(const dvt_block *self, void *user, char *buffer,
                                          size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    (void)user;
    dvti_text_add(&text, "Flatten");
    return text.length;
}

DVT_API dvt_block *dvt_flatten_block(void) {
    dvt_block_desc desc =
        dvti_nn_desc("Flatten", dvti_flatten_block_forward, dvti_flatten_block_describe);
    return dvti_block_make("dvt_flatten_block", &desc, "flatten", NULL);
}

/* ---- Activation ---- */
static dvt_array *dvti_activation_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvti_activate(x, *(const dvt_activation *)user);
}

static size_t dvti_activation_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    dvti_text_add(&text, "%s", dvti_activation_text(*(const dvt_activation *)user));
    return text.length;
}

DVT_API dvt_block *dvt_activation_block(dvt_activation activation) {
    const char *function = "dvt_activation_block";
    dvt_block_desc desc =
        dvti_nn_desc("Activation", dvti_activation_forward, dvti_activation_describe);
    dvt_activation *state;
    if (!dvti_activation_ok(function, activation) ||
        !(state = (dvt_activation *)dvti_nn_state(function, sizeof *state)))
        return NULL;
    *state = activation;
    return dvti_block_make(function, &desc, "activation", state);
}

/* ---- Dropout ---- */
static dvt_array *dvti_dropout_block_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvt_dropout(x, *(const double *)user);
}

static size_t dvti_dropout_block_describe(const dvt_block *self, void *user, char *buffer,
                                          size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    dvti_text_add(&text, "Dropout(p = %s, axes=())", dvti_python_number(*(const double *)user));
    return text.length;
}

DVT_API dvt_block *dvt_dropout_block(double p) {
    const char *function = "dvt_dropout_block";
    dvt_block_desc desc =
        dvti_nn_desc("Dropout", dvti_dropout_block_forward, dvti_dropout_block_describe);
    double *state;
    if (!(p >= 0 && p < 1)) {
        dvti_fail(DVT_ERR_RANGE, "%s: p is %g; expected 0 <= p < 1", function, p);
        return NULL;
    }
    if (!(state = (double *)dvti_nn_state(function, sizeof *state)))
        return NULL;
    *state = p;
    return dvti_block_make(function, &desc, "dropout", state);
}

/* ---- Embedding ---- */
/* Gluon takes class numbers of any dtype. */
static dvt_array *dvti_embedding_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *w = dvt_block_data(self, "weight", dvt_ctx_of(x));
    (void)user;
    if (w && !dvt_dtype_is_int(x->dtype))
        x = dvt_astype(x, DVT_I64, false);
    return w && x ? dvt_take(w, x, 0) : NULL;
}

static size_t dvti_embedding_describe(const dvt_block *self, void *user, char *buffer,
                                      size_t size) {
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    (void)user;
    dvti_text_add(&text, "Embedding(%lld -> %lld, %s)", (long long)shape.dim[0],
                  (long long)shape.dim[1], dvt_dtype_name(self->param[0]->dtype));
    return text.length;
}

DVT_API dvt_block *dvt_embedding_block(int64_t count, int64_t units) {
    const char *function = "dvt_embedding_block";
    dvt_block_desc desc =
        dvti_nn_desc("Embedding", dvti_embedding_forward, dvti_embedding_describe);
    dvt_init none;
    dvt_block *block;
    if (count < 1 || units < 1) {
        dvti_fail(DVT_ERR_RANGE, "%s: %lld rows of %lld units; expected at least 1 of each",
                  function, (long long)count, (long long)units);
        return NULL;
    }
    memset(&none, 0, sizeof none);
    block = dvti_block_make(function, &desc, "embedding", NULL);
    if (block && !dvt_block_add_param(block, "weight", DVT_SHAPE(count, units), DVT_F32, none))
        return dvti_block_discard(block);
    return block;
}
/* ==== end src/6_nn/block_basic.c ==== */
#ifdef DEVTENSOR_LINES
#line 77 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/block_conv.c ==== */
/* Conv2D and pooling. Settings are checked and their defaults filled in once, when the block is made, so that printing and
   computing see the same numbers. */
#ifdef DEVTENSOR_LINES
#line 3 "src/6_nn/block_conv.c"
#endif

static void *dvti_nn_conv_state(const char *function, const void *settings, size_t bytes) {
    void *state = dvti_alloc(bytes);
    if (state)
        memcpy(state, settings, bytes);
    else
        dvti_fail_memory(function, (int64_t)bytes);
    return state;
}

/* A pair whose zeros mean: first, the default; second, the first again. */
static void dvti_nn_pair(int *pair, int first) {
    if (pair[0] == 0)
        pair[0] = first;
    if (pair[1] == 0)
        pair[1] = pair[0];
}

static bool dvti_nn_pair_ok(const char *function, const char *what, const int *pair, int least) {
    if (pair[0] >= least && pair[1] >= least)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: %s is (%d, %d); expected at least %d in both places", function,
              what, pair[0], pair[1], least);
    return false;
}

/* ---- Conv2D ---- */
static dvt_array *dvti_conv_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvt_conv2d_desc *d = (const dvt_conv2d_desc *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *w = dvt_block_data(self, "weight", ctx), *b = NULL;
    if (!w || (!d->no_bias && !(b = dvt_block_data(self, "bias", ctx))))
        return NULL;
    x = dvt_conv2d(x, w, b, &d->params);
    return x ? dvti_activate(x, d->activation) : NULL;
}

static dvt_status dvti_conv_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvt_conv2d_desc *d = (const dvt_conv2d_desc *)user;
    if (x->shape.ndim != 4 || x->shape.dim[1] == 0 || x->shape.dim[1] % d->params.groups != 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_forward: Conv2D cannot infer in_channels from x %s; expected (N, C, "
                         "H, W) with a C that groups (%d) divide",
                         dvti_describe(x), d->params.groups);
    return dvt_param_set_shape(
        dvt_block_param(self, "weight"),
        DVT_SHAPE(d->channels, x->shape.dim[1] / d->params.groups, d->kernel[0], d->kernel[1]));
}

static size_t dvti_conv_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvt_conv2d_desc *d = (const dvt_conv2d_desc *)user;
    const dvt_conv2d_params *p = &d->params;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "Conv2D(");
    if (shape.dim[1])
        dvti_text_add(&text, "%lld", (long long)shape.dim[1]);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld, kernel_size=(%d, %d), stride=(%d, %d)", (long long)d->channels,
                  d->kernel[0], d->kernel[1], p->stride[0], p->stride[1]);
    if (p->padding[0] || p->padding[1])
        dvti_text_add(&text, ", padding=(%d, %d)", p->padding[0], p->padding[1]);
    if (p->dilation[0] != 1 || p->dilation[1] != 1)
        dvti_text_add(&text, ", dilation=(%d, %d)", p->dilation[0], p->dilation[1]);
    if (p->groups != 1)
        dvti_text_add(&text, ", groups=%d", p->groups);
    if (d->no_bias)
        dvti_text_add(&text, ", bias=False");
    if (d->activation != DVT_LINEAR)
        dvti_text_add(&text, ", %s", dvti_activation_text(d->activation));
    dvti_text_add(&text, ")");
    return text.length;
}

/* Fills in the defaults of d and checks it. */
static bool dvti_conv_block_resolve(const char *function, dvt_conv2d_desc *d) {
    dvti_nn_pair(d->kernel, 0);
    dvti_nn_pair(d->params.stride, 1);
    dvti_nn_pair(d->params.dilation, 1);
    if (d->params.groups == 0)
        d->params.groups = 1;
    if (!dvti_nn_pair_ok(function, "kernel", d->kernel, 1) ||
        !dvti_nn_pair_ok(function, "stride", d->params.stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", d->params.padding, 0) ||
        !dvti_nn_pair_ok(function, "dilation", d->params.dilation, 1))
        return false;
    if (d->channels < 1 || d->in_channels < 0 || d->params.groups < 1 ||
        d->channels % d->params.groups != 0 || d->in_channels % d->params.groups != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: %lld channels from %lld in %d groups; expected at least 1 channel, and both "
                  "numbers divisible by groups",
                  function, (long long)d->channels, (long long)d->in_channels, d->params.groups);
        return false;
    }
    if (!dvt_dtype_is_float(d->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype %s; expected a float dtype", function,
                  dvt_dtype_name(d->dtype));
        return false;
    }
    return dvti_activation_ok(function, d->activation);
}

static dvt_block *dvti_conv_block_make(const char *function, dvt_conv2d_desc d) {
    dvt_block_desc desc;
    dvt_block *block;
    void *state;
    if (!dvti_conv_block_resolve(function, &d) ||
        !(state = dvti_nn_conv_state(function, &d, sizeof d)))
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Conv2D";
    desc.forward = dvti_conv_block_forward;
    desc.infer = dvti_conv_block_infer;
    desc.describe = dvti_conv_block_describe;
    block = dvti_block_make(function, &desc, "conv", state);
    if (block && (!dvt_block_add_param(block, "weight",
                                       DVT_SHAPE(d.channels, d.in_channels / d.params.groups,
                                                 d.kernel[0], d.kernel[1]),
                                       d.dtype, d.weight_init) ||
                  (!d.no_bias && !dvt_block_add_param(block, "bias", DVT_SHAPE(d.channels), d.dtype,
                                                      d.bias_init))))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_conv2d_with(const dvt_conv2d_desc *desc) {
    if (desc)
        return dvti_conv_block_make("dvt_conv2d_with", *desc);
    dvti_null("dvt_conv2d_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_conv2d_block(int64_t channels, int kernel, dvt_activation activation) {
    dvt_conv2d_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.channels = channels;
    desc.kernel[0] = kernel;
    desc.activation = activation;
    return dvti_conv_block_make("dvt_conv2d_block", desc);
}

/* ---- pooling ---- */
typedef struct dvti_pool_block {
    dvt_pool2d_params params;
    bool average;
} dvti_pool_block;

static dvt_array *dvti_pool_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    (void)self;
    return pool->average ? dvt_avg_pool2d(x, &pool->params) : dvt_max_pool2d(x, &pool->params);
}

/* Gluon's global pools print a window of 1 and ceil_mode. */
static size_t dvti_pool_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    dvt_pool2d_params p = pool->params;
    dvti_text text = dvti_text_begin(buffer, size);
    if (p.global) {
        memset(&p, 0, sizeof p);
        p.size[0] = p.size[1] = p.stride[0] = p.stride[1] = 1;
        p.global = p.ceil_mode = true;
    }
    dvti_text_add(&text,
                  "%s(size=(%d, %d), stride=(%d, %d), padding=(%d, %d), ceil_mode=%s, "
                  "global_pool=%s, pool_type=%s, layout=NCHW)",
                  self->desc.kind, p.size[0], p.size[1], p.stride[0], p.stride[1], p.padding[0],
                  p.padding[1], p.ceil_mode ? "True" : "False", p.global ? "True" : "False",
                  pool->average ? "avg" : "max");
    return text.length;
}

static bool dvti_pool_block_resolve(const char *function, dvt_pool2d_params *p) {
    if (p->global)
        return true;
    dvti_nn_pair(p->size, 0);
    if (p->stride[0] == 0 && p->stride[1] == 0)
        memcpy(p->stride, p->size, sizeof p->stride);
    dvti_nn_pair(p->stride, p->size[0]);
    if (!dvti_nn_pair_ok(function, "size", p->size, 1) ||
        !dvti_nn_pair_ok(function, "stride", p->stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", p->padding, 0))
        return false;
    if (p->padding[0] > p->size[0] / 2 || p->padding[1] > p->size[1] / 2) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: padding is (%d, %d) and size (%d, %d); expected at most half the size",
                  function, p->padding[0], p->padding[1], p->size[0], p->size[1]);
        return false;
    }
    return true;
}

static dvt_block *dvti_pool_block_make(const char *function, const dvt_pool2d_params *p,
                                       bool average) {
    dvt_block_desc desc;
    dvti_pool_block pool;
    void *state;
    memset(&pool, 0, sizeof pool);
    pool.params = *p;
    pool.average = average;
    if (!dvti_pool_block_resolve(function, &pool.params) ||
        !(state = dvti_nn_conv_state(function, &pool, sizeof pool)))
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.kind = average     ? p->global ? "GlobalAvgPool2D" : "AvgPool2D"
                : p->global ? "GlobalMaxPool2D"
                            : "MaxPool2D";
    desc.forward = dvti_pool_block_forward;
    desc.describe = dvti_pool_block_describe;
    return dvti_block_make(function, &desc, "pool", state);
}

static dvt_block *dvti_pool_block_simple(const char *function, int size, int stride, bool average) {
    dvt_pool2d_params p;
    memset(&p, 0, sizeof p);
    p.size[0] = size;
    p.stride[0] = stride;
    return dvti_pool_block_make(function, &p, average);
}

static dvt_block *dvti_pool_block_with(const char *function, const dvt_pool2d_params *p,
                                       bool average) {
    if (p)
        return dvti_pool_block_make(function, p, average);
    dvti_null(function, "p");
    return NULL;
}

DVT_API dvt_block *dvt_max_pool2d_block(int size, int stride) {
    return dvti_pool_block_simple("dvt_max_pool2d_block", size, stride, false);
}

DVT_API dvt_block *dvt_avg_pool2d_block(int size, int stride) {
    return dvti_pool_block_simple("dvt_avg_pool2d_block", size, stride, true);
}

DVT_API dvt_block *dvt_max_pool2d_with(const dvt_pool2d_params *p) {
    return dvti_pool_block_with("dvt_max_pool2d_with", p, false);
}

DVT_API dvt_block *dvt_avg_pool2d_with(const dvt_pool2d_params *p) {
    return dvti_pool_block_with("dvt_avg_pool2d_with", p, true);
}

DVT_API dvt_block *dvt_global_avg_pool2d_block(void) {
    dvt_pool2d_params p;
    memset(&p, 0, sizeof p);
    p.global = true;
    return dvti_pool_block_make("dvt_global_avg_pool2d_block", &p, true);
}
/* ==== end src/6_nn/block_conv.c ==== */
#ifdef DEVTENSOR_LINES
#line 78 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/block_norm.c ==== */
/* BatchNorm and LayerNorm. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/block_norm.c"
#endif

/* ---- BatchNorm ---- */
/* gamma counts as 1 without scale, and beta as 0 without center, whatever a file may have put there. */
static dvt_array *dvti_batch_norm_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvt_batch_norm_desc *d = (const dvt_batch_norm_desc *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *gamma = dvt_block_data(self, "gamma", ctx);
    dvt_array *beta = gamma ? dvt_block_data(self, "beta", ctx) : NULL;
    dvt_array *mean = beta ? dvt_block_data(self, "running_mean", ctx) : NULL;
    dvt_array *var = mean ? dvt_block_data(self, "running_var", ctx) : NULL;
    if (var && d->no_scale)
        gamma = dvt_ones_like(gamma);
    if (var && gamma && d->no_center)
        beta = dvt_zeros_like(beta);
    if (!var || !gamma || !beta)
        return NULL;
    return dvt_batch_norm(x, gamma, beta, mean, var, d->axis, d->momentum, d->epsilon);
}

static dvt_status dvti_batch_norm_infer(dvt_block *self, void *user, dvt_array *x) {
    int axis = ((const dvt_batch_norm_desc *)user)->axis;
    dvt_status status = DVT_OK;
    size_t i;
    if (!dvti_axis("dvt_forward: BatchNorm", &axis, x->shape.ndim))
        return dvt_error_code();
    if (x->shape.dim[axis] == 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_forward: BatchNorm cannot infer in_channels from x %s; expected a "
                         "positive extent on axis %d",
                         dvti_describe(x), axis);
    for (i = 0; i < self->n_param && status == DVT_OK; i++)
        status = dvt_param_set_shape(self->param[i], DVT_SHAPE(x->shape.dim[axis]));
    return status;
}

static size_t dvti_batch_norm_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvt_batch_norm_desc *d = (const dvt_batch_norm_desc *)user;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text,
                  "BatchNorm(axis=%d, eps=%s, momentum=%s, fix_gamma=%s, use_global_stats=False, "
                  "in_channels=",
                  d->axis, dvti_python_number(d->epsilon), dvti_python_number(d->momentum),
                  d->no_scale ? "True" : "False");
    if (shape.dim[0])
        dvti_text_add(&text, "%lld)", (long long)shape.dim[0]);
    else
        dvti_text_add(&text, "None)");
    return text.length;
}

static bool dvti_batch_norm_check(const char *function, const dvt_batch_norm_desc *d) {
    if (!(d->momentum >= 0 && d->momentum <= 1) || !(d->epsilon > 0) ||
        d->epsilon - d->epsilon != 0 || d->in_channels < 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: momentum %g, epsilon %g, in_channels %lld; expected 0 to 1, a positive "
                  "number, and 0 (inferred) or more",
                  function, d->momentum, d->epsilon, (long long)d->in_channels);
        return false;
    }
    if (d->axis < -DVT_MAX_DIMS || d->axis >= DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_AXIS, "%s: axis %d; expected %d to %d", function, d->axis, -DVT_MAX_DIMS,
                  DVT_MAX_DIMS - 1);
        return false;
    }
    return true;
}

/* gamma or beta: without a gradient when it is not wanted. */
static bool dvti_norm_add(dvt_block *block, const char *name, int64_t extent, bool fixed) {
    dvt_init none;
    memset(&none, 0, sizeof none);
    return fixed ? dvti_block_add_fixed(block, name, DVT_SHAPE(extent), DVT_F32) != NULL
                 : dvt_block_add_param(block, name, DVT_SHAPE(extent), DVT_F32, none) != NULL;
}

static dvt_block *dvti_batch_norm_make(const char *function, dvt_batch_norm_desc d) {
    dvt_block_desc desc;
    dvt_batch_norm_desc *state;
    dvt_block *block;
    if (d.axis == 0)
        d.axis = 1;
    if (d.momentum == 0)
        d.momentum = 0.9;
    if (d.epsilon == 0)
        d.epsilon = 1e-5;
    if (!dvti_batch_norm_check(function, &d))
        return NULL;
    if (!(state = (dvt_batch_norm_desc *)dvti_alloc(sizeof *state))) {
        dvti_fail_memory(function, (int64_t)sizeof *state);
        return NULL;
    }
    *state = d;
    memset(&desc, 0, sizeof desc);
    desc.kind = "BatchNorm";
    desc.forward = dvti_batch_norm_forward;
    desc.infer = dvti_batch_norm_infer;
    desc.describe = dvti_batch_norm_describe;
    block = dvti_block_make(function, &desc, "batchnorm", state);
    if (block && (!dvti_norm_add(block, "gamma", d.in_channels, d.no_scale) ||
                  !dvti_norm_add(block, "beta", d.in_channels, d.no_center) ||
                  !dvti_norm_add(block, "running_mean", d.in_channels, true) ||
                  !dvti_norm_add(block, "running_var", d.in_channels, true)))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_batch_norm_with(const dvt_batch_norm_desc *desc) {
    if (desc)
        return dvti_batch_norm_make("dvt_batch_norm_with", *desc);
    dvti_null("dvt_batch_norm_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_batch_norm_block(void) {
    dvt_batch_norm_desc desc;
    memset(&desc, 0, sizeof desc);
    return dvti_batch_norm_make("dvt_batch_norm_block", desc);
}

/* ---- LayerNorm ---- */
static dvt_array *dvti_layer_norm_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *gamma = dvt_block_data(self, "gamma", dvt_ctx_of(x));
    dvt_array *beta = gamma ? dvt_block_data(self, "beta", dvt_ctx_of(x)) : NULL;
    (void)user;
    return beta ? dvt_layer_norm(x, gamma, beta, 1e-5) : NULL;
}

static dvt_status dvti_layer_norm_infer(dvt_block *self, void *user, dvt_array *x) {
    int64_t extent = x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 0;
    dvt_status status;
    (void)user;
    if (extent == 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "dvt_forward: LayerNorm cannot infer in_channels from x %s; expected a "
                         "last axis with elements",
                         dvti_describe(x));
    status = dvt_param_set_shape(self->param[0], DVT_SHAPE(extent));
    return status == DVT_OK ? dvt_param_set_shape(self->param[1], DVT_SHAPE(extent)) : status;
}

/* Unlike BatchNorm, Gluon prints an unknown extent as 0 here. */
static size_t dvti_layer_norm_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)user;
    dvti_text_add(&text, "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=%lld)",
                  (long long)dvt_param_shape(self->param[0]).dim[0]);
    return text.length;
}

DVT_API dvt_block *dvt_layer_norm_block(void) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "LayerNorm";
    desc.forward = dvti_layer_norm_forward;
    desc.infer = dvti_layer_norm_infer;
    desc.describe = dvti_layer_norm_describe;
    block = dvti_block_make("dvt_layer_norm_block", &desc, "layernorm", NULL);
    if (block &&
        (!dvti_norm_add(block, "gamma", 0, false) || !dvti_norm_add(block, "beta", 0, false)))
        return dvti_block_discard(block);
    return block;
}
/* ==== end src/6_nn/block_norm.c ==== */
#ifdef DEVTENSOR_LINES
#line 79 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_block.c ==== */
/* Blocks: making, children, parameters, forward. What the blocks of the library compute is in block_*.c. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_block.c"
#endif

/* ---- names: a counter per kind, for the whole process. A table of fixed size: kinds that find no room share one counter, so
   that their names are unique all the same. ---- */
typedef struct dvti_kind_counter {
    char stem[40];
    int64_t next;
} dvti_kind_counter;

static dvti_mutex dvti_kind_lock = DVTI_MUTEX_INIT;
static dvti_kind_counter dvti_kinds[64];
static int64_t dvti_kinds_other;

static int64_t dvti_block_number(const char *stem) {
    int64_t number;
    int i;
    dvti_mutex_lock(&dvti_kind_lock);
    for (i = 0; i < DVTI_LENGTH(dvti_kinds); i++)
        if (!dvti_kinds[i].stem[0] || strcmp(dvti_kinds[i].stem, stem) == 0)
            break;
    if (i < DVTI_LENGTH(dvti_kinds) && strlen(stem) < sizeof dvti_kinds[i].stem) {
        memcpy(dvti_kinds[i].stem, stem, strlen(stem) + 1);
        number = dvti_kinds[i].next++;
    } else
        number = dvti_kinds_other++;
    dvti_mutex_unlock(&dvti_kind_lock);
    return number;
}

/* ---- making ---- */
static void dvti_block_destroy(void *object) {
    dvt_block *block = (dvt_block *)object;
    size_t i;
    for (i = 0; i < block->n_child; i++)
        dvt_release(block->child[i]);
    for (i = 0; i < block->n_param; i++)
        dvt_release(block->param[i]);
    if (block->desc.release)
        block->desc.release(block->desc.user);
    dvti_free(block->child);
    dvti_free(block->param);
    dvti_free(block->prefix);
    dvti_free((void *)block->desc.kind);
    dvti_free(block);
}

/* On failure desc->user stays the caller's. */
static dvt_block *dvti_block_create(const char *function, const dvt_block_desc *desc,
                                    const char *stem) {
    size_t bytes = strlen(stem) + 24;
    dvt_block *block = (dvt_block *)dvti_alloc_zero(sizeof *block);
    char *kind = dvti_strdup(desc->kind), *prefix = (char *)dvti_alloc(bytes);
    if (!block || !kind || !prefix)
        dvti_fail_memory(function, (int64_t)(sizeof *block + strlen(desc->kind) + bytes));
    else if (dvti_object_begin(block, dvti_block_destroy, function)) {
        snprintf(prefix, bytes, "%s%lld_", stem, (long long)dvti_block_number(stem));
        block->desc = *desc;
        block->desc.kind = kind;
        block->prefix = prefix;
        return block;
    }
    dvti_free(block);
    dvti_free(kind);
    dvti_free(prefix);
    return NULL;
}

DVTI_FN dvt_block *dvti_block_make(const char *function, const dvt_block_desc *desc,
                                   const char *stem, void *state) {
    dvt_block_desc own = *desc;
    dvt_block *block;
    own.user = state;
    own.release = dvti_free;
    block = dvti_block_create(function, &own, stem);
    if (!block)
        dvti_free(state);
    return block;
}

DVTI_FN dvt_block *dvti_block_discard(dvt_block *block) {
    dvti_scope_take(block);
    dvt_release(block);
    return NULL;
}

DVT_API dvt_block *dvt_block_new(const dvt_block_desc *desc) {
    char stem[64];
    size_t i;
    if (!desc || !desc->kind || !desc->forward) {
        dvti_null("dvt_block_new", !desc ? "desc" : !desc->kind ? "desc->kind" : "desc->forward");
        return NULL;
    }
    if (!desc->kind[0] || strlen(desc->kind) >= sizeof stem) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_new: the kind \"%.70s\" has %llu characters; expected 1 to %d",
                  desc->kind, (unsigned long long)strlen(desc->kind), (int)sizeof stem - 1);
        return NULL;
    }
    for (i = 0; desc->kind[i]; i++)
        stem[i] = (char)(desc->kind[i] >= 'A' && desc->kind[i] <= 'Z' ? desc->kind[i] + 'a' - 'A'
                                                                      : desc->kind[i]);
    stem[i] = 0;
    return dvti_block_create("dvt_block_new", desc, stem);
}

/* ---- parameters of a block ---- */
static dvt_param *dvti_block_find(const dvt_block *block, const char *name) {
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if (strcmp(block->param[i]->short_name, name) == 0)
            return block->param[i];
    return NULL;
}

static bool dvti_param_name_ok(const dvt_block *self, const char *name) {
    if (!name[0] || strchr(name, '.')) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_add_param: the name \"%.60s\" is empty or has a dot in it; dots "
                  "separate blocks in files: choose another name",
                  name);
        return false;
    }
    if (dvti_block_find(self, name)) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_add_param: %s has a parameter '%.60s' already; choose another name",
                  self->desc.kind, name);
        return false;
    }
    return true;
}

DVT_API dvt_param *dvt_block_add_param(dvt_block *self, const char *name, dvt_shape shape,
                                       dvt_dtype dtype, dvt_init init) {
    const char *function = "dvt_block_add_param";
    dvt_param *p;
    int64_t bytes;
    if (!self || !name) {
        dvti_null(function, self ? "name" : "self");
        return NULL;
    }
    if (!dvti_dtype_ok(dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype number %d does not exist; use DVT_F32 or another",
                  function, (int)dtype);
        return NULL;
    }
    if (!dvti_param_name_ok(self, name) || !dvti_nbytes(function, shape, dtype, &bytes) ||
        !dvti_init_check(function, NULL, init))
        return NULL;
    if (!dvti_grow((void **)&self->param, &self->param_capacity, self->n_param + 1,
                   sizeof *self->param)) {
        dvti_fail_memory(function, (int64_t)(sizeof *self->param * (self->n_param + 1)));
        return NULL;
    }
    p = dvti_param_new(function, self->prefix, name, shape, dtype, init);
    if (p)
        self->param[self->n_param++] = p;
    return p;
}

DVTI_FN dvt_param *dvti_block_add_fixed(dvt_block *block, const char *name, dvt_shape shape,
                                        dvt_dtype dtype) {
    dvt_init none;
    dvt_param *p;
    memset(&none, 0, sizeof none);
    p = dvt_block_add_param(block, name, shape, dtype, none);
    if (p) {
        p->fixed = true;
        p->grad_req = DVT_GRAD_NULL;
    }
    return p;
}

static const char *dvti_block_param_name_at(const void *user, int i) {
    return ((const dvt_block *)user)->param[i]->short_name;
}

DVT_API dvt_param *dvt_block_param(dvt_block *block, const char *name) {
    char known[600];
    dvt_param *p;
    if (!block || !name) {
        dvti_null("dvt_block_param", block ? "name" : "block");
        return NULL;
    }
    p = dvti_block_find(block, name);
    if (!p)
        dvti_fail(
            DVT_ERR_NAME,
            "dvt_block_param: %s has no parameter '%.60s' of its own; it has %s (children's "
            "are found with dvt_block_at or dvt_collect_params)",
            block->desc.kind, name,
            dvti_brief(known, sizeof known, (int)block->n_param, dvti_block_param_name_at, block));
    return p;
}

DVT_API dvt_array *dvt_block_data(dvt_block *block, const char *name, dvt_ctx ctx) {
    dvt_param *p = dvt_block_param(block, name);
    return p ? dvt_param_data(p, ctx) : NULL;
}

/* ---- children ---- */
static bool dvti_block_reaches(const dvt_block *from, const dvt_block *to) {
    size_t i;
    if (from == to)
        return true;
    for (i = 0; i < from->n_child; i++)
        if (dvti_block_reaches(from->child[i], to))
            return true;
    return false;
}

/* All of them or none. */
static dvt_status dvti_block_adopt(const char *function, dvt_block *self, dvt_block *const *child,
                                   int n) {
    int i;
    for (i = 0; i < n; i++) {
        if (!child[i])
            return dvti_null(function, "a block");
        if (dvti_block_reaches(child[i], self))
            return dvti_fail(DVT_ERR_VALUE,
                             "%s: a %s cannot be added to a %s that is itself or one of its own "
                             "descendants; blocks must form no circle",
                             function, child[i]->desc.kind, self->desc.kind);
    }
    if (!dvti_grow((void **)&self->child, &self->child_capacity, self->n_child + (size_t)n,
                   sizeof *self->child))
        return dvti_fail_memory(function,
                                (int64_t)(sizeof *self->child * (self->n_child + (size_t)n)));
    for (i = 0; i < n; i++)
        self->child[self->n_child++] = (dvt_block *)dvt_retain(child[i]);
    return DVT_OK;
}

DVT_API dvt_status dvt_block_add_child(dvt_block *self, dvt_block *child) {
    if (!self || !child)
        return dvti_null("dvt_block_add_child", self ? "child" : "self");
    return dvti_block_adopt("dvt_block_add_child", self, &child, 1);
}

DVT_API dvt_status dvt_sequential_add(dvt_block *net, int n, dvt_block *b0, dvt_block *b1,
                                      dvt_block *b2, dvt_block *b3, dvt_block *b4, dvt_block *b5,
                                      dvt_block *b6, dvt_block *b7, dvt_block *b8, dvt_block *b9,
                                      dvt_block *b10, dvt_block *b11, dvt_block *b12,
                                      dvt_block *b13, dvt_block *b14, dvt_block *b15) {
    dvt_block *all[16];
    if (!net)
        return dvti_null("dvt_sequential_add", "net");
    if (!dvti_block_is_sequential(net))
        return dvti_fail(
            DVT_ERR_VALUE,
            "dvt_sequential_add: net is a %s; expected what dvt_sequential() makes (others take "
            "children with dvt_block_add_child)",
            net->desc.kind);
    if (n < 1 || n > 16)
        return dvti_fail(DVT_ERR_RANGE, "dvt_sequential_add: %d blocks; expected 1 to 16 in a call",
                         n);
    all[0] = b0;
    all[1] = b1;
    all[2] = b2;
    all[3] = b3;
    all[4] = b4;
    all[5] = b5;
    all[6] = b6;
    all[7] = b7;
    all[8] = b8;
    all[9] = b9;
    all[10] = b10;
    all[11] = b11;
    all[12] = b12;
    all[13] = b13;
    all[14] = b14;
    all[15] = b15;
    return dvti_block_adopt("dvt_sequential_add", net, all, n);
}

DVT_API int dvt_block_len(const dvt_block *net) {
    if (net)
        return (int)net->n_child;
    dvti_null("dvt_block_len", "net");
    return 0;
}

DVT_API dvt_block *dvt_block_at(dvt_block *net, int i) {
    int64_t n, at;
    if (!net) {
        dvti_null("dvt_block_at", "net");
        return NULL;
    }
    n = (int64_t)net->n_child;
    at = i < 0 ? i + n : i;
    if (at >= 0 && at < n)
        return net->child[at];
    dvti_fail(DVT_ERR_RANGE,
              "dvt_block_at: index %d of a %s with %lld children; expected %lld to %lld", i,
              net->desc.kind, (long long)n, (long long)-n, (long long)n - 1);
    return NULL;
}

DVT_API const char *dvt_block_kind(const dvt_block *block) {
    if (block)
        return block->desc.kind;
    dvti_null("dvt_block_kind", "block");
    return "";
}

DVT_API void *dvt_block_user(const dvt_block *block) {
    if (block)
        return block->desc.user;
    dvti_null("dvt_block_user", "block");
    return NULL;
}

/* ---- forward ---- */
static DVTI_TLS dvti_tracer dvti_tracing;

DVTI_FN dvti_tracer dvti_set_tracer(dvti_tracer tracer) {
    dvti_tracer previous = dvti_tracing;
    dvti_tracing = tracer;
    return previous;
}

/* Completes parameters whose values wait for a shape. */
static bool dvti_block_prepare(dvt_block *block, dvt_array *x) {
    bool waiting = false, unknown = false;
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if (dvti_atomic_load(&block->param[i]->state) == DVTI_PARAM_DEFERRED) {
            waiting = true;
            unknown = unknown || !dvti_shape_known(dvt_param_shape(block->param[i]));
        }
    if (!waiting)
        return true;
    if (unknown && block->desc.infer && block->desc.infer(block, block->desc.user, x) != DVT_OK) {
        if (dvt_error_code() == DVT_OK)
            dvti_fail(DVT_ERR_SHAPE, "dvt_forward: the infer function of %s failed with x %s",
                      block->desc.kind, dvti_describe(x));
        return false;
    }
    for (i = 0; i < block->n_param; i++)
        if (!dvti_param_finish("dvt_forward", block->param[i]))
            return false;
    return true;
}

DVT_API dvt_array *dvt_forward(dvt_block *net, dvt_array *x) {
    dvt_scope_guard scope;
    dvt_array *y = NULL;
    if (!net || !x) {
        dvti_null("dvt_forward", net ? "x" : "net");
        return NULL;
    }
    scope = dvt_scope_begin();
    if (dvti_tracing.visit)
        dvti_tracing.visit(dvti_tracing.user, net, NULL);
    if (dvti_block_prepare(net, x)) {
        y = net->desc.forward(net, net->desc.user, x);
        if (!y && dvt_error_code() == DVT_OK)
            dvti_fail(DVT_ERR_VALUE,
                      "dvt_forward: the forward function of %s returned NULL without an error",
                      net->desc.kind);
    }
    if (y && dvti_tracing.visit)
        dvti_tracing.visit(dvti_tracing.user, net, y);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}
/* ==== end src/6_nn/dvt_block.c ==== */
#ifdef DEVTENSOR_LINES
#line 80 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_block_print.c ==== */
/* Blocks as text: the form Gluon prints, and the summary table of a forward pass. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_block_print.c"
#endif

/* The shortest digits that give the number back. */
DVTI_FN const char *dvti_python_number(double value) {
    char *buffer = dvti_name_buffer(), *exponent;
    int digits, power;
    for (digits = 0; digits < 17; digits++) {
        snprintf(buffer, DVTI_NAME_SIZE, "%.*e", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    exponent = strchr(buffer, 'e');
    if (!exponent) /* inf, nan */
        return buffer;
    power = (int)strtol(exponent + 1, NULL, 10);
    if (power >= -4 && power < 16)
        snprintf(buffer, DVTI_NAME_SIZE, "%.*f", DVTI_MAX(digits - power, 1), value);
    return buffer;
}

/* ---- as Gluon prints ---- */
static void dvti_nn_text_indented(dvti_text *text, const char *from, int indent) {
    for (; *from; from++) {
        dvti_text_char(text, *from, 1);
        if (*from == '\n')
            dvti_text_char(text, ' ', indent);
    }
}

/* What the block's describe function writes; longer texts than the stack's need memory, and are cut without it. */
static void dvti_block_described(dvti_text *text, const dvt_block *block, int indent) {
    char brief[400], *large = NULL;
    size_t length = block->desc.describe(block, block->desc.user, brief, sizeof brief);
    if (length >= sizeof brief && (large = (char *)dvti_alloc(length + 1)) != NULL)
        block->desc.describe(block, block->desc.user, large, length + 1);
    dvti_nn_text_indented(text, large ? large : brief, indent);
    dvti_free(large);
}

static void dvti_nn_block_text(dvti_text *text, const dvt_block *block, int indent) {
    size_t i;
    if (block->desc.describe) {
        dvti_block_described(text, block, indent);
        return;
    }
    dvti_text_add(text, "%s(\n", block->desc.kind);
    for (i = 0; i < block->n_child; i++) {
        dvti_text_char(text, ' ', indent + 2);
        dvti_text_add(text, "(%lld): ", (long long)i);
        dvti_nn_block_text(text, block->child[i], indent + 2);
        dvti_text_add(text, "\n");
    }
    if (block->n_child == 0)
        dvti_text_add(text, "\n");
    dvti_text_char(text, ' ', indent);
    dvti_text_add(text, ")");
}

DVT_API size_t dvt_block_format(const dvt_block *net, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    if (!net)
        dvti_null("dvt_block_format", "net");
    else
        dvti_nn_block_text(&text, net, 0);
    return text.length;
}

/* Calls format twice: for the length, and into memory of that length. */
static dvt_status dvti_nn_print_text(const char *function,
                                     size_t (*format)(const void *, char *, size_t),
                                     const void *user) {
    size_t length = format(user, NULL, 0);
    char *buffer = (char *)dvti_alloc(length + 1);
    if (!buffer)
        return dvti_fail_memory(function, (int64_t)length + 1);
    format(user, buffer, length + 1);
    printf("%s\n", buffer);
    dvti_free(buffer);
    return DVT_OK;
}

static size_t dvti_format_block(const void *user, char *buffer, size_t size) {
    return dvt_block_format((const dvt_block *)user, buffer, size);
}

DVT_API void dvt_print_block(const dvt_block *net) {
    if (net)
        dvti_nn_print_text("dvt_print_block", dvti_format_block, net);
    else
        printf("(null)\n");
}

/* ---- the summary ---- */
typedef struct dvti_summary_row {
    dvt_block *block;
    int depth;
    int64_t index; /* among the children of the block that called it; -1: none */
    dvt_shape shape;
} dvti_summary_row;

typedef struct dvti_summary {
    dvti_summary_row *row;
    size_t count, capacity;
    size_t *open; /* rows of the blocks that are running */
    size_t depth, open_capacity;
    bool exhausted;
    dvt_shape input;
    int64_t trainable, fixed;
} dvti_summary;

static int64_t dvti_child_index(const dvt_block *parent, const dvt_block *child) {
    size_t i;
    for (i = 0; i < parent->n_child; i++)
        if (parent->child[i] == child)
            return (int64_t)i;
    return -1;
}

static void dvti_summary_visit(void *user, dvt_block *block, dvt_array *y) {
    dvti_summary *s = (dvti_summary *)user;
    dvti_summary_row *row;
    if (s->exhausted)
        return;
    if (y) {
        s->row[s->open[--s->depth]].shape = y->shape;
        return;
    }
    if (!dvti_grow((void **)&s->row, &s->capacity, s->count + 1, sizeof *s->row) ||
        !dvti_grow((void **)&s->open, &s->open_capacity, s->depth + 1, sizeof *s->open)) {
        s->exhausted = true;
        return;
    }
    row = &s->row[s->count];
    memset(row, 0, sizeof *row);
    row->block = block;
    row->depth = (int)s->depth;
    row->index = s->depth ? dvti_child_index(s->row[s->open[s->depth - 1]].block, block) : -1;
    s->open[s->depth++] = s->count++;
}

/* "60,170" */
static const char *dvti_nn_grouped(int64_t number) {
    char *buffer = dvti_name_buffer(), digits[24];
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i, n = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (i = 0; i < n; i++)
        dvti_text_add(&text, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
    return buffer;
}

static void dvti_summary_line(dvti_text *text, const char *name, const char *shape,
                              const char *number) {
    dvti_text_add(text, "%-34s %-24s %14s\n", name, shape, number);
}

static int64_t dvti_block_own_count(const dvt_block *block) {
    int64_t count = 0;
    size_t i;
    for (i = 0; i < block->n_param; i++)
        count += dvt_shape_size(block->param[i]->shape);
    return count;
}

static size_t dvti_summary_format(const void *user, char *buffer, size_t size) {
    const dvti_summary *s = (const dvti_summary *)user;
    dvti_text text = dvti_text_begin(buffer, size);
    size_t i;
    dvti_summary_line(&text, "Block", "Output shape", "Parameters");
    dvti_text_char(&text, '=', 74);
    dvti_text_add(&text, "\n");
    dvti_summary_line(&text, "Input", dvti_shape_text(s->input), "0");
    for (i = 0; i < s->count; i++) {
        const dvti_summary_row *row = &s->row[i];
        char *name = dvti_name_buffer();
        dvti_text line = dvti_text_begin(name, DVTI_NAME_SIZE);
        dvti_text_char(&line, ' ', 2 * row->depth);
        if (row->index >= 0)
            dvti_text_add(&line, "(%lld): ", (long long)row->index);
        dvti_text_add(&line, "%s", row->block->desc.kind);
        dvti_summary_line(&text, name, dvti_shape_text(row->shape),
                          dvti_nn_grouped(dvti_block_own_count(row->block)));
    }
    dvti_text_char(&text, '=', 74);
    dvti_text_add(&text, "\nParameters: %s (each counted once)\n",
                  dvti_nn_grouped(s->trainable + s->fixed));
    dvti_text_add(&text, "  trained: %s\n", dvti_nn_grouped(s->trainable));
    dvti_text_add(&text, "  not trained: %s", dvti_nn_grouped(s->fixed));
    return text.length;
}

/* Runs the net on zeros, without touching running statistics, and notes what every block gives. */
static dvt_status dvti_summary_run(dvti_summary *s, dvt_block *net, dvt_params *params) {
    dvt_record_guard record = dvt_record_begin(0, 0);
    dvti_tracer tracer, before;
    dvt_ctx ctx = dvt_default_ctx();
    dvt_array *x, *y;
    if (params->count && params->item[0]->ctxs.n)
        ctx = params->item[0]->ctxs.ctx[0];
    tracer.visit = dvti_summary_visit;
    tracer.user = s;
    x = dvt_zeros(s->input, DVT_F32, ctx);
    before = dvti_set_tracer(tracer);
    y = x ? dvt_forward(net, x) : NULL;
    dvti_set_tracer(before);
    dvt_record_end(&record);
    if (y && s->exhausted)
        return dvti_fail_memory("dvt_print_summary", (int64_t)(sizeof *s->row * s->count));
    return y ? DVT_OK : dvt_error_code();
}

DVT_API dvt_status dvt_print_summary(dvt_block *net, dvt_shape input) {
    dvti_summary s;
    dvt_scope_guard scope;
    dvt_params *params;
    dvt_status status;
    size_t i;
    if (!net)
        return dvti_null("dvt_print_summary", "net");
    memset(&s, 0, sizeof s);
    s.input = input;
    scope = dvt_scope_begin();
    params = dvt_collect_params(net, NULL);
    status = params ? dvti_summary_run(&s, net, params) : dvt_error_code();
    for (i = 0; status == DVT_OK && i < params->count; i++)
        *(params->item[i]->grad_req == DVT_GRAD_NULL ? &s.fixed : &s.trainable) +=
            dvt_shape_size(params->item[i]->shape);
    if (status == DVT_OK)
        status = dvti_nn_print_text("dvt_print_summary", dvti_summary_format, &s);
    dvt_scope_end(&scope);
    dvti_free(s.row);
    dvti_free(s.open);
    return status;
}
/* ==== end src/6_nn/dvt_block_print.c ==== */
#ifdef DEVTENSOR_LINES
#line 81 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_initialise.c ==== */
/* Initial values: what each kind draws, which one a parameter gets, and when. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_initialise.c"
#endif

/* ---- values ---- */
static dvt_init dvti_init_make(dvt_init_kind kind, double a, dvt_fan fan, bool gaussian) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    init.kind = kind;
    init.a = a;
    init.fan = fan;
    init.gaussian = gaussian;
    return init;
}

DVT_API dvt_init dvt_init_uniform(double scale) {
    return dvti_init_make(DVT_INIT_UNIFORM, scale, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_normal(double sigma) {
    return dvti_init_make(DVT_INIT_NORMAL, sigma, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_xavier(void) {
    return dvt_init_xavier_with(3, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_xavier_with(double magnitude, dvt_fan fan, bool gaussian) {
    return dvti_init_make(DVT_INIT_XAVIER, magnitude, fan, gaussian);
}

DVT_API dvt_init dvt_init_msra_prelu(dvt_fan fan, double slope) {
    return dvti_init_make(DVT_INIT_MSRA, slope, fan, true);
}

DVT_API dvt_init dvt_init_zero(void) {
    return dvti_init_make(DVT_INIT_ZERO, 0, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_one(void) {
    return dvti_init_make(DVT_INIT_ONE, 0, DVT_FAN_AVG, false);
}

DVT_API dvt_init dvt_init_constant(double value) {
    return dvti_init_make(DVT_INIT_CONSTANT, value, DVT_FAN_AVG, false);
}

/* ---- choosing and checking ---- */
DVTI_FN dvt_init dvti_init_choose(const dvt_param *p, dvt_init init) {
    if (p->own.kind != DVT_INIT_DEFAULT)
        return p->own;
    if (p->rule.kind != DVT_INIT_DEFAULT)
        return p->rule;
    return init.kind != DVT_INIT_DEFAULT ? init : dvt_init_uniform(0.07);
}

DVTI_FN bool dvti_init_check(const char *function, const dvt_param *p, dvt_init init) {
    bool by_fan = init.kind == DVT_INIT_XAVIER || init.kind == DVT_INIT_MSRA;
    bool spread = init.kind == DVT_INIT_UNIFORM || init.kind == DVT_INIT_NORMAL ||
                  init.kind == DVT_INIT_XAVIER;
    if ((int)init.kind < DVT_INIT_DEFAULT || (int)init.kind > DVT_INIT_CONSTANT ||
        (by_fan && ((int)init.fan < DVT_FAN_AVG || (int)init.fan > DVT_FAN_OUT))) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: an initial value of kind %d and fan %d; make it with a dvt_init_ function",
                  function, (int)init.kind, (int)init.fan);
        return false;
    }
    if ((spread && !(init.a >= 0)) || (init.kind != DVT_INIT_CONSTANT && init.a - init.a != 0)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: the number of an initial value is %g; expected a finite scale, sigma or "
                  "magnitude of 0 or more",
                  function, init.a);
        return false;
    }
    if (p && by_fan && p->shape.ndim < 2) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: Xavier initializer cannot be applied to vector %s. It requires at least 2D; "
                  "give this parameter values of its own with dvt_param_set_init",
                  function, p->name);
        return false;
    }
    return true;
}

/* Half the width of the uniform distribution, or the deviation of the normal one. */
static double dvti_init_scale(dvt_init init, dvt_shape shape) {
    double magnitude = init.kind == DVT_INIT_MSRA ? 2 / (1 + init.a * init.a) : init.a;
    double window = 1, in, out, fan;
    int i;
    for (i = 2; i < shape.ndim; i++)
        window *= (double)shape.dim[i];
    in = (double)shape.dim[1] * window;
    out = (double)shape.dim[0] * window;
    fan = init.fan == DVT_FAN_IN ? in : init.fan == DVT_FAN_OUT ? out : (in + out) / 2;
    return sqrt(magnitude / fan);
}

DVTI_FN dvt_array *dvti_init_draw(const char *function, const dvt_param *p, dvt_init init,
                                  dvt_shape shape) {
    bool normal = init.kind == DVT_INIT_NORMAL || init.kind == DVT_INIT_MSRA ||
                  (init.kind == DVT_INIT_XAVIER && init.gaussian);
    double scale;
    switch (init.kind) {
    case DVT_INIT_ZERO:
        return dvt_zeros(shape, p->dtype, dvt_cpu());
    case DVT_INIT_ONE:
        return dvt_ones(shape, p->dtype, dvt_cpu());
    case DVT_INIT_CONSTANT:
        return dvt_full(shape, init.a, p->dtype, dvt_cpu());
    case DVT_INIT_UNIFORM:
    case DVT_INIT_NORMAL:
        scale = init.a;
        break;
    default:
        if (!dvti_init_check(function, p, init))
            return NULL;
        scale = dvti_init_scale(init, shape);
    }
    if (scale == 0)
        return dvt_zeros(shape, p->dtype, dvt_cpu());
    return normal ? dvt_normal(0, scale, shape, p->dtype, dvt_cpu())
                  : dvt_uniform(-scale, scale, shape, p->dtype, dvt_cpu());
}

/* ---- when ---- */
static bool dvti_plan_draw(const char *function, dvti_plan *plan) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *values = dvti_init_draw(function, plan->param, plan->init, plan->shape);
    bool good = values && dvti_plan_fill(plan, values);
    dvt_scope_end(&scope);
    return good;
}

static bool dvti_param_finish_locked(const char *function, dvt_param *p) {
    dvti_plan *plan;
    bool good;
    if (dvti_atomic_load(&p->state) != DVTI_PARAM_DEFERRED)
        return true;
    if (!dvti_shape_known(p->shape)) {
        dvti_fail(DVT_ERR_UNINITIALIZED,
                  "%s: Cannot initialize Parameter '%s' because its shape %s has unknown extents; "
                  "give in_units, in_channels and the like, or set it in the block's infer "
                  "function with dvt_param_set_shape",
                  function, p->name, dvti_shape_text(p->shape));
        return false;
    }
    if (!(plan = dvti_plans_new(function, 1)))
        return false;
    plan->param = p;
    plan->init = p->pending;
    plan->shape = p->shape;
    plan->ctxs = p->ctxs;
    good = dvti_plan_draw(function, plan);
    if (good)
        dvti_plan_commit_locked(plan);
    dvti_plans_drop(plan, 1);
    return good;
}

DVTI_FN bool dvti_param_finish(const char *function, dvt_param *p) {
    bool good;
    dvti_params_lock();
    good = dvti_param_finish_locked(function, p);
    dvti_params_unlock();
    return good;
}

/* What happens to one parameter: values now, later, or (initialised already) nothing. */
static bool dvti_plan_initialise(const char *function, dvti_plan *plan, dvt_param *p, dvt_init init,
                                 const dvt_ctx_list *ctxs, bool force) {
    if (dvti_param_ready(p) && !force) {
        dvti_log(DVT_LOG_WARNING,
                 "%s: Parameter '%s' is already initialized, ignoring. Set force_reinit to "
                 "initialize it again",
                 function, p->name);
        return true;
    }
    plan->param = p;
    plan->init = dvti_init_choose(p, init);
    plan->shape = dvt_param_shape(p);
    plan->ctxs = *ctxs;
    plan->deferred = !dvti_shape_known(plan->shape);
    return dvti_init_check(function, p, plan->init) &&
           (plan->deferred || dvti_plan_draw(function, plan));
}

static dvt_status dvti_initialise(const char *function, dvt_params *params, dvt_init init,
                                  dvt_ctx_list given, bool force) {
    dvt_ctx_list ctxs;
    dvti_plan *plans;
    bool good = true;
    size_t i;
    if (!dvti_init_check(function, NULL, init) || !dvti_ctxs_resolve(function, given, &ctxs) ||
        !(plans = dvti_plans_new(function, params->count)))
        return dvt_error_code();
    for (i = 0; good && i < params->count; i++)
        good = dvti_plan_initialise(function, &plans[i], params->item[i], init, &ctxs, force);
    if (good)
        dvti_plans_commit(plans, params->count);
    dvti_plans_drop(plans, params->count);
    return good ? DVT_OK : dvt_error_code();
}

DVT_API dvt_status dvt_params_initialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs,
                                         bool force_reinit) {
    if (!params)
        return dvti_null("dvt_params_initialize", "params");
    return dvti_initialise("dvt_params_initialize", params, init, ctxs, force_reinit);
}

DVT_API dvt_status dvt_initialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs,
                                  bool force_reinit) {
    dvt_scope_guard scope;
    dvt_params *params;
    dvt_status status;
    if (!net)
        return dvti_null("dvt_initialize", "net");
    scope = dvt_scope_begin();
    params = dvt_collect_params(net, NULL);
    status = params ? dvti_initialise("dvt_initialize", params, init, ctxs, force_reinit)
                    : dvt_error_code();
    dvt_scope_end(&scope);
    return status;
}
/* ==== end src/6_nn/dvt_initialise.c ==== */
#ifdef DEVTENSOR_LINES
#line 82 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_load_match.c ==== */
/* Which array of a file belongs to which parameter. Files of save_parameters have structural names ("0.weight"). Files without
   a dot in any name are of the old kind ("dense0_weight", "arg:lenet0_conv0_weight"): their numbers come from the process that
   wrote them, so unless the names are the same, the layers of one kind are matched by their order. */
#ifdef DEVTENSOR_LINES
#line 4 "src/6_nn/dvt_load_match.c"
#endif

static const char *dvti_file_name(const void *user, int i) {
    return dvt_array_list_name((const dvt_array_list *)user, i);
}

static const char *dvti_named_name(const void *user, int i) {
    return ((const dvti_named_list *)user)->item[i].name;
}

/* Without the "arg:" or "aux:" of exported models. */
static const char *dvti_plain_name(const dvti_load *load, int i) {
    const char *name = dvt_array_list_name(load->file, i);
    return strncmp(name, "arg:", 4) == 0 || strncmp(name, "aux:", 4) == 0 ? name + 4 : name;
}

static int dvti_file_find(const dvti_load *load, const char *name) {
    int i, n = dvt_array_list_len(load->file);
    for (i = 0; i < n; i++)
        if (strcmp(dvti_plain_name(load, i), name) == 0)
            return i;
    return -1;
}

static bool dvti_file_used(const dvti_load *load, int i) {
    size_t k;
    for (k = 0; k < load->named.count; k++)
        if (load->from[k] == i)
            return true;
    return false;
}

/* Fills in from by equal names: how many of the net's and of the file's are matched. */
static void dvti_match_equal(dvti_load *load, size_t *of_net, int *of_file) {
    size_t k;
    int i, n = dvt_array_list_len(load->file);
    *of_net = 0;
    *of_file = 0;
    for (k = 0; k < load->named.count; k++) {
        load->from[k] = dvti_file_find(load, load->named.item[k].name);
        *of_net += load->from[k] >= 0;
    }
    for (i = 0; i < n; i++)
        *of_file += dvti_file_used(load, i);
}

/* ---- the old kind, by order ---- */
/* "lenet0_conv10_weight": layer "lenet0_conv10", kind "conv", short name "weight". */
typedef struct dvti_old_name {
    const char *text, *short_name;
    size_t layer, kind_at, kind; /* lengths; kind_at: where the kind begins */
    bool first;                  /* of its layer in its list */
    int rank;                    /* of its layer among those of its kind */
} dvti_old_name;

/* Short names may have a _ in them: the longest one of the net that ends the text. */
static void dvti_old_split(const dvti_load *load, const char *text, dvti_old_name *out) {
    size_t length = strlen(text), k, best = 0;
    memset(out, 0, sizeof *out);
    out->text = text;
    for (k = 0; k < load->named.count; k++) {
        const char *candidate = load->named.item[k].param->short_name;
        size_t n = strlen(candidate);
        if (n > best && n + 1 < length && text[length - n - 1] == '_' &&
            strcmp(text + length - n, candidate) == 0)
            best = n;
    }
    if (!best)
        return;
    out->short_name = text + length - best;
    out->layer = length - best - 1;
    for (out->kind_at = out->layer; out->kind_at > 0 && text[out->kind_at - 1] != '_';)
        out->kind_at--;
    out->kind = out->layer - out->kind_at;
    while (out->kind > 0 && text[out->kind_at + out->kind - 1] >= '0' &&
           text[out->kind_at + out->kind - 1] <= '9')
        out->kind--;
}

static bool dvti_old_same_kind(const dvti_old_name *a, const dvti_old_name *b) {
    return a->short_name && b->short_name && a->kind == b->kind &&
           memcmp(a->text + a->kind_at, b->text + b->kind_at, a->kind) == 0;
}

/* Layers in the order people count: numbers within the text compare as numbers. */
static int dvti_old_compare(const dvti_old_name *a, const dvti_old_name *b) {
    size_t i = 0, k = 0;
    while (i < a->layer && k < b->layer) {
        unsigned char c = (unsigned char)a->text[i], d = (unsigned char)b->text[k];
        if (c >= '0' && c <= '9' && d >= '0' && d <= '9') {
            long long x = strtoll(a->text + i, NULL, 10), y = strtoll(b->text + k, NULL, 10);
            if (x != y)
                return x < y ? -1 : 1;
            while (i < a->layer && a->text[i] >= '0' && a->text[i] <= '9')
                i++;
            while (k < b->layer && b->text[k] >= '0' && b->text[k] <= '9')
                k++;
        } else if (c != d)
            return c < d ? -1 : 1;
        else {
            i++;
            k++;
        }
    }
    return i < a->layer ? 1 : k < b->layer ? -1 : 0;
}

static void dvti_old_rank(dvti_old_name *name, size_t n) {
    size_t i, k;
    for (i = 0; i < n; i++) {
        name[i].first = name[i].short_name != NULL;
        for (k = 0; k < i && name[i].first; k++)
            if (dvti_old_same_kind(&name[i], &name[k]) && dvti_old_compare(&name[i], &name[k]) == 0)
                name[i].first = false;
    }
    for (i = 0; i < n; i++)
        for (k = 0; k < n; k++)
            if (name[k].first && dvti_old_same_kind(&name[i], &name[k]) &&
                dvti_old_compare(&name[k], &name[i]) < 0)
                name[i].rank++;
}

static bool dvti_match_by_order(dvti_load *load) {
    size_t n = load->named.count, m = (size_t)dvt_array_list_len(load->file), i, k;
    dvti_old_name *net = (dvti_old_name *)dvti_alloc((n + m) * sizeof *net), *file;
    if (!net) {
        dvti_fail_memory("dvt_load_parameters", (int64_t)((n + m) * sizeof *net));
        return false;
    }
    file = net + n;
    for (i = 0; i < n; i++)
        dvti_old_split(load, load->named.item[i].name, &net[i]);
    for (k = 0; k < m; k++)
        dvti_old_split(load, dvti_plain_name(load, (int)k), &file[k]);
    dvti_old_rank(net, n);
    dvti_old_rank(file, m);
    for (i = 0; i < n; i++) {
        load->from[i] = -1;
        for (k = 0; k < m; k++)
            if (dvti_old_same_kind(&net[i], &file[k]) && net[i].rank == file[k].rank &&
                strcmp(net[i].short_name, file[k].short_name) == 0)
                load->from[i] = (int)k;
    }
    dvti_free(net);
    return true;
}

/* ---- which kind of names ---- */
static bool dvti_file_is_old(const dvti_load *load) {
    int i, n = dvt_array_list_len(load->file);
    for (i = 0; i < n; i++)
        if (strchr(dvt_array_list_name(load->file, i), '.'))
            return false;
    return true;
}

/* The net's names as old files have them: each parameter once. */
static bool dvti_named_flat(dvti_load *load) {
    dvti_named_list *list = &load->named;
    size_t i, k, kept = 0;
    for (i = 0; i < list->count; i++) {
        char *name;
        for (k = 0; k < kept && list->item[k].param != list->item[i].param; k++)
            continue;
        name = k == kept ? dvti_strdup(list->item[i].param->name) : NULL;
        if (k == kept && !name) {
            dvti_fail_memory("dvt_load_parameters", (int64_t)strlen(list->item[i].param->name));
            memmove(list->item + kept, list->item + i, (list->count - i) * sizeof *list->item);
            list->count -= i - kept;
            return false;
        }
        dvti_free(list->item[i].name);
        if (k == kept) {
            list->item[kept].param = list->item[i].param;
            list->item[kept++].name = name;
        }
    }
    list->count = kept;
    return true;
}

static bool dvti_match_names(dvti_load *load) {
    int n = dvt_array_list_len(load->file), of_file;
    size_t of_net;
    dvti_match_equal(load, &of_net, &of_file);
    if (!dvti_file_is_old(load) || of_net == load->named.count || of_file == n)
        return true;
    if (!dvti_named_flat(load))
        return false;
    dvti_match_equal(load, &of_net, &of_file);
    return of_net == load->named.count || of_file == n || dvti_match_by_order(load);
}

/* ---- what is missing, what is too much ---- */
static bool dvti_load_has(const dvti_load *load, const dvt_param *p) {
    size_t k;
    for (k = 0; k < load->named.count; k++)
        if (load->named.item[k].param == p && load->from[k] >= 0)
            return true;
    return false;
}

static bool dvti_load_complete(const dvti_load *load) {
    char known[500];
    int i, n = dvt_array_list_len(load->file);
    size_t k;
    for (k = 0; !load->options.allow_missing && k < load->named.count; k++)
        if (!dvti_load_has(load, load->named.item[k].param)) {
            dvti_fail(DVT_ERR_NAME,
                      "dvt_load_parameters: Parameter '%s' is missing in file '%.200s', which "
                      "contains parameters: %s. Set allow_missing to ignore missing parameters",
                      load->named.item[k].name, load->path,
                      dvti_brief(known, sizeof known, n, dvti_file_name, load->file));
            return false;
        }
    for (i = 0; !load->options.ignore_extra && i < n; i++)
        if (!dvti_file_used(load, i)) {
            dvti_fail(DVT_ERR_NAME,
                      "dvt_load_parameters: Parameter '%.100s' loaded from file '%.200s' is not "
                      "present in the net, which contains parameters %s. Set ignore_extra to "
                      "ignore it",
                      dvt_array_list_name(load->file, i), load->path,
                      dvti_brief(known, sizeof known, (int)load->named.count, dvti_named_name,
                                 &load->named));
            return false;
        }
    return true;
}

DVTI_FN bool dvti_load_match(dvti_load *load, const dvt_block *net) {
    if (!dvti_named_collect("dvt_load_parameters", net, &load->named))
        return false;
    load->from = (int *)dvti_alloc(load->named.count * sizeof *load->from);
    if (!load->from) {
        dvti_fail_memory("dvt_load_parameters", (int64_t)(load->named.count * sizeof *load->from));
        return false;
    }
    return dvti_match_names(load) && dvti_load_complete(load);
}
/* ==== end src/6_nn/dvt_load_match.c ==== */
#ifdef DEVTENSOR_LINES
#line 83 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_loss.c ==== */
/* Losses: one value per sample, composed of recorded operations. Labels are cut from their history, so that gradients flow into
   the prediction only. */
#ifdef DEVTENSOR_LINES
#line 3 "src/6_nn/dvt_loss.c"
#endif

/* Both there, on one context, and a prediction with a first axis to keep. */
static bool dvti_loss_check(const char *name, dvt_array *prediction, dvt_array *label) {
    dvt_array *in[2];
    in[0] = prediction;
    in[1] = label;
    if (!prediction || !label) {
        dvti_null(name, prediction ? "label" : "prediction");
        return false;
    }
    if (!dvti_check(name, in, 2))
        return false;
    if (prediction->shape.ndim > 0)
        return true;
    dvti_fail(DVT_ERR_SHAPE, "%s: prediction is %s; expected one value or row per sample: (N, ...)",
              name, dvti_describe(prediction));
    return false;
}

/* The mean over all axes but the first. */
static dvt_array *dvti_loss_mean(dvt_array *x) {
    dvt_axes axes;
    int i;
    if (!x || x->shape.ndim < 2)
        return x;
    memset(&axes, 0, sizeof axes);
    for (i = 1; i < x->shape.ndim; i++)
        axes.axis[axes.n++] = i;
    return dvt_mean(x, axes, false);
}

/* The label without history, in the prediction's shape: (N) and (N, 1) are the same labels, as in Gluon. */
static dvt_array *dvti_loss_label(const char *name, dvt_array *prediction, dvt_array *label) {
    if (dvt_size(prediction) != dvt_size(label)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: prediction is %s and label is %s; expected equal shapes",
                  name, dvti_describe(prediction), dvti_describe(label));
        return NULL;
    }
    label = dvt_stop_gradient(label);
    return label && !dvt_shape_equal(label->shape, prediction->shape)
               ? dvt_reshape(label, prediction->shape)
               : label;
}

/* ---- softmax cross-entropy ---- */
/* Class numbers: prediction's shape without its last axis, or with extent 1 there. */
static bool dvti_is_class_numbers(const dvt_array *prediction, const dvt_array *label) {
    int i, n = prediction->shape.ndim;
    if (label->shape.ndim != n - 1 && !(label->shape.ndim == n && label->shape.dim[n - 1] == 1))
        return false;
    for (i = 0; i < n - 1; i++)
        if (label->shape.dim[i] != prediction->shape.dim[i])
            return false;
    return true;
}

static dvt_array *dvti_loss_cross_entropy(dvt_array *prediction, dvt_array *label) {
    bool dense = dvt_shape_equal(prediction->shape, label->shape);
    dvt_array *log_p, *loss;
    if (!(label = dvt_stop_gradient(label)) || !(log_p = dvt_log_softmax(prediction, -1)))
        return NULL;
    if (dense) {
        loss = dvt_mul(log_p, label);
        loss = loss ? dvt_sum(loss, DVT_AXES(-1), false) : NULL;
    } else {
        if (!dvt_dtype_is_int(label->dtype))
            label = dvt_astype(label, DVT_I64, false);
        loss = label ? dvt_pick(log_p, label, -1, false) : NULL;
    }
    loss = loss ? dvt_neg(loss) : NULL;
    return dvti_loss_mean(loss);
}

DVT_API dvt_array *dvt_softmax_cross_entropy(dvt_array *prediction, dvt_array *label) {
    const char *name = "dvt_softmax_cross_entropy";
    dvt_scope_guard scope;
    dvt_array *loss;
    if (!dvti_loss_check(name, prediction, label))
        return NULL;
    if (prediction->shape.ndim < 2 || (!dvt_shape_equal(prediction->shape, label->shape) &&
                                       !dvti_is_class_numbers(prediction, label))) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: prediction is %s and label is %s; expected a prediction (N, ..., classes), "
                  "and class numbers (N, ...) or probabilities of its shape",
                  name, dvti_describe(prediction), dvti_describe(label));
        return NULL;
    }
    scope = dvt_scope_begin();
    loss = dvti_loss_cross_entropy(prediction, label);
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

/* ---- losses of a difference ---- */
static dvt_array *dvti_loss_l1(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *d = dvt_sub(p, l);
    (void)unused;
    return d ? dvt_abs(d) : NULL;
}

static dvt_array *dvti_loss_l2(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *d = dvt_sub(p, l);
    (void)unused;
    d = d ? dvt_square(d) : NULL;
    return d ? dvt_mul_scalar(d, 0.5) : NULL;
}

/* relu(p) - p l + log(1 + exp(-|p|)) is softplus(p) - p l, whose gradient is right at 0 too. */
static dvt_array *dvti_loss_sigmoid_bce(dvt_array *p, dvt_array *l, double unused) {
    dvt_array *a = dvt_softplus(p), *b = a ? dvt_mul(p, l) : NULL;
    (void)unused;
    return b ? dvt_sub(a, b) : NULL;
}

static dvt_array *dvti_loss_huber(dvt_array *p, dvt_array *l, double rho) {
    dvt_array *d = dvt_sub(p, l), *size = d ? dvt_abs(d) : NULL, *inside, *outside, *is_outside;
    if (!size)
        return NULL;
    inside = dvt_square(d);
    inside = inside ? dvt_mul_scalar(inside, 0.5 / rho) : NULL;
    outside = inside ? dvt_sub_scalar(size, 0.5 * rho) : NULL;
    is_outside = outside ? dvt_greater_scalar(size, rho) : NULL;
    return is_outside ? dvt_where(is_outside, outside, inside) : NULL;
}

static dvt_array *dvti_loss_of(const char *name,
                               dvt_array *(*each)(dvt_array *, dvt_array *, double),
                               dvt_array *prediction, dvt_array *label, double rho) {
    dvt_scope_guard scope;
    dvt_array *loss;
    if (!dvti_loss_check(name, prediction, label))
        return NULL;
    scope = dvt_scope_begin();
    label = dvti_loss_label(name, prediction, label);
    if (label && !dvt_dtype_is_float(prediction->dtype))
        prediction = dvt_astype(prediction, DVT_F32, false); /* differences of integers wrap */
    loss = label && prediction ? dvti_loss_mean(each(prediction, label, rho)) : NULL;
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}

DVT_API dvt_array *dvt_l1_loss(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_l1_loss", dvti_loss_l1, prediction, label, 0);
}

DVT_API dvt_array *dvt_l2_loss(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_l2_loss", dvti_loss_l2, prediction, label, 0);
}

DVT_API dvt_array *dvt_sigmoid_bce_loss(dvt_array *prediction, dvt_array *label) {
    return dvti_loss_of("dvt_sigmoid_bce_loss", dvti_loss_sigmoid_bce, prediction, label, 0);
}

DVT_API dvt_array *dvt_huber_loss(dvt_array *prediction, dvt_array *label, double rho) {
    if (!(rho > 0) || rho - rho != 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_huber_loss: rho is %g; expected a positive number", rho);
        return NULL;
    }
    return dvti_loss_of("dvt_huber_loss", dvti_loss_huber, prediction, label, rho);
}
/* ==== end src/6_nn/dvt_loss.c ==== */
#ifdef DEVTENSOR_LINES
#line 84 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_match.c ==== */
/* Regular expressions for names of parameters: compiled to a small program whose threads run side by side, so that no pattern
   is slow. Source: Thompson, 1968. Knows . * + ? [..] ( ) | ^ $, \ before punctuation, \d \w \s; a match starts at the first
   character and may end anywhere. */
#ifdef DEVTENSOR_LINES
#line 4 "src/6_nn/dvt_match.c"
#endif

enum {
    DVTI_PAT_CHAR,
    DVTI_PAT_ANY,
    DVTI_PAT_SET,
    DVTI_PAT_BEGIN,
    DVTI_PAT_END,
    DVTI_PAT_SPLIT,
    DVTI_PAT_JUMP,
    DVTI_PAT_MATCH
};

#define DVTI_PAT_DEPTH 50

typedef struct dvti_pat_reader {
    const char *function, *text, *at;
    dvti_pattern *out;
    int depth;
} dvti_pat_reader;

static bool dvti_pat_bad(dvti_pat_reader *r, const char *why) {
    dvti_fail(DVT_ERR_VALUE,
              "%s: the pattern \"%.100s\" is wrong at character %lld: %s; expected a regular "
              "expression of literals . * + ? [..] ( ) | ^ $ and \\ before punctuation",
              r->function, r->text, (long long)(r->at - r->text) + 1, why);
    return false;
}

static bool dvti_pat_room(dvti_pat_reader *r, size_t more) {
    dvti_pattern *p = r->out;
    if (dvti_grow((void **)&p->step, &p->capacity, p->count + more, sizeof *p->step))
        return true;
    dvti_fail_memory(r->function, (int64_t)(sizeof *p->step * (p->count + more)));
    return false;
}

static dvti_pattern_step *dvti_pat_emit(dvti_pat_reader *r, int op) {
    dvti_pattern_step *step;
    if (!dvti_pat_room(r, 1))
        return NULL;
    step = &r->out->step[r->out->count++];
    memset(step, 0, sizeof *step);
    step->op = (unsigned char)op;
    return step;
}

/* Puts a step before those from `at` on. Jumps are relative and stay within what moves, so they stay right. */
static dvti_pattern_step *dvti_pat_insert(dvti_pat_reader *r, size_t at, int op) {
    dvti_pattern *p = r->out;
    if (!dvti_pat_room(r, 1))
        return NULL;
    memmove(p->step + at + 1, p->step + at, (p->count - at) * sizeof *p->step);
    p->count++;
    memset(&p->step[at], 0, sizeof p->step[at]);
    p->step[at].op = (unsigned char)op;
    return &p->step[at];
}

/* ---- sets of characters ---- */
static void dvti_pat_set_add(uint32_t *set, unsigned low, unsigned high) {
    for (; low <= high; low++)
        set[low / 32] |= (uint32_t)1 << low % 32;
}

/* \d \w \s and their opposites; false for any other letter. */
static bool dvti_pat_set_class(uint32_t *set, char letter) {
    uint32_t found[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int i;
    switch (letter) {
    case 'd':
    case 'D':
        dvti_pat_set_add(found, '0', '9');
        break;
    case 'w':
    case 'W':
        dvti_pat_set_add(found, '0', '9');
        dvti_pat_set_add(found, 'A', 'Z');
        dvti_pat_set_add(found, 'a', 'z');
        dvti_pat_set_add(found, '_', '_');
        break;
    case 's':
    case 'S':
        dvti_pat_set_add(found, 9, 13);
        dvti_pat_set_add(found, ' ', ' ');
        break;
    default:
        return false;
    }
    for (i = 0; i < 8; i++)
        set[i] |= letter < 'a' ? ~found[i] : found[i];
    return true;
}

static bool dvti_pat_is_punctuation(char c) {
    return c > ' ' && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
}

/* One member of [..] into *c; a class goes into the set at once and gives *is_class. */
static bool dvti_pat_member(dvti_pat_reader *r, uint32_t *set, unsigned *c, bool *is_class) {
    *is_class = false;
    if (*r->at != '\\') {
        *c = (unsigned char)*r->at++;
        return true;
    }
    r->at++;
    if (dvti_pat_is_punctuation(*r->at)) {
        *c = (unsigned char)*r->at++;
        return true;
    }
    if (!dvti_pat_set_class(set, *r->at))
        return dvti_pat_bad(r, "an unknown escape");
    r->at++;
    *is_class = true;
    return true;
}

/* Behind the '['. A ']' that comes first is a member. */
static bool dvti_pat_brackets(dvti_pat_reader *r) {
    uint32_t set[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    bool opposite = *r->at == '^', first = true, is_class;
    dvti_pattern_step *step;
    unsigned low, high;
    int i;
    if (opposite)
        r->at++;
    for (; first || *r->at != ']'; first = false) {
        if (!*r->at)
            return dvti_pat_bad(r, "a [ without its ]");
        if (!dvti_pat_member(r, set, &low, &is_class))
            return false;
        if (is_class)
            continue;
        high = low;
        if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
            r->at++;
            if (!dvti_pat_member(r, set, &high, &is_class))
                return false;
            if (is_class || high < low)
                return dvti_pat_bad(r, "a range that runs backwards");
        }
        dvti_pat_set_add(set, low, high);
    }
    r->at++;
    if (!(step = dvti_pat_emit(r, DVTI_PAT_SET)))
        return false;
    for (i = 0; i < 8; i++)
        step->set[i] = opposite ? ~set[i] : set[i];
    return true;
}

/* ---- the grammar: alternatives of sequences of repeated atoms ---- */
static bool dvti_pat_alternatives(dvti_pat_reader *r);

static bool dvti_pat_group(dvti_pat_reader *r) {
    const char *open = r->at - 1;
    if (++r->depth > DVTI_PAT_DEPTH)
        return dvti_pat_bad(r, "groups are nested too deeply");
    if (r->at[0] == '?' && r->at[1] == ':')
        r->at += 2;
    else if (r->at[0] == '?')
        return dvti_pat_bad(r, "(?...) is known only as (?:...)");
    if (!dvti_pat_alternatives(r))
        return false;
    if (*r->at != ')') {
        r->at = open;
        return dvti_pat_bad(r, "a ( without its )");
    }
    r->at++;
    r->depth--;
    return true;
}

static bool dvti_pat_escape(dvti_pat_reader *r) {
    char c = *r->at;
    dvti_pattern_step *step;
    uint32_t set[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    bool literal = dvti_pat_is_punctuation(c);
    if (!literal && !dvti_pat_set_class(set, c))
        return dvti_pat_bad(r, c ? "an unknown escape" : "a \\ at the end");
    if (!(step = dvti_pat_emit(r, literal ? DVTI_PAT_CHAR : DVTI_PAT_SET)))
        return false;
    step->c = (unsigned char)c;
    memcpy(step->set, set, sizeof set);
    r->at++;
    return true;
}

static bool dvti_pat_atom(dvti_pat_reader *r, bool *anchor) {
    char c = *r->at++;
    dvti_pattern_step *step;
    *anchor = c == '^' || c == '$';
    switch (c) {
    case '(':
        return dvti_pat_group(r);
    case '[':
        return dvti_pat_brackets(r);
    case '\\':
        return dvti_pat_escape(r);
    case '*':
    case '+':
    case '?':
        r->at--;
        return dvti_pat_bad(r, "there is nothing to repeat");
    case '{':
        r->at--;
        return dvti_pat_bad(r, "counted repetition is not known; write it out, or \\{");
    default:
        break;
    }
    step = dvti_pat_emit(r, c == '.'   ? DVTI_PAT_ANY
                            : c == '^' ? DVTI_PAT_BEGIN
                            : c == '$' ? DVTI_PAT_END
                                       : DVTI_PAT_CHAR);
    if (!step)
        return false;
    step->c = (unsigned char)c;
    return true;
}

/* x*: split over x and a jump back.  x+: x, then a split back.  x?: split over x. */
static bool dvti_pat_repeat(dvti_pat_reader *r, size_t start) {
    char kind = *r->at++;
    int32_t length = (int32_t)(r->out->count - start);
    dvti_pattern_step *step;
    if (kind == '+') {
        if (!(step = dvti_pat_emit(r, DVTI_PAT_SPLIT)))
            return false;
        step->x = -length;
        step->y = 1;
    } else {
        if (!(step = dvti_pat_insert(r, start, DVTI_PAT_SPLIT)))
            return false;
        step->x = 1;
        step->y = length + (kind == '*' ? 2 : 1);
        if (kind == '*') {
            if (!(step = dvti_pat_emit(r, DVTI_PAT_JUMP)))
                return false;
            step->x = -(length + 1);
        }
    }
    if (*r->at == '?') /* "as little as possible" changes what is matched, not whether */
        r->at++;
    if (*r->at == '*' || *r->at == '+' || *r->at == '?')
        return dvti_pat_bad(r, "a repetition is repeated");
    return true;
}

static bool dvti_pat_sequence(dvti_pat_reader *r) {
    while (*r->at && *r->at != '|' && *r->at != ')') {
        size_t start = r->out->count;
        bool anchor;
        if (!dvti_pat_atom(r, &anchor))
            return false;
        if (*r->at != '*' && *r->at != '+' && *r->at != '?')
            continue;
        if (anchor)
            return dvti_pat_bad(r, "there is nothing to repeat");
        if (!dvti_pat_repeat(r, start))
            return false;
    }
    return true;
}

/* a|b: split over a and a jump over b. */
static bool dvti_pat_alternatives(dvti_pat_reader *r) {
    size_t start = r->out->count, jump;
    dvti_pattern_step *step;
    if (!dvti_pat_sequence(r))
        return false;
    if (*r->at != '|')
        return true;
    if (!(step = dvti_pat_insert(r, start, DVTI_PAT_SPLIT)))
        return false;
    step->x = 1;
    step->y = (int32_t)(r->out->count - start) + 1;
    jump = r->out->count;
    if (!dvti_pat_emit(r, DVTI_PAT_JUMP))
        return false;
    r->at++;
    if (!dvti_pat_alternatives(r))
        return false;
    r->out->step[jump].x = (int32_t)(r->out->count - jump);
    return true;
}

DVTI_FN void dvti_pattern_free(dvti_pattern *pattern) {
    dvti_free(pattern->step);
    dvti_free(pattern->now);
    dvti_free(pattern->next);
    dvti_free(pattern->stack);
    dvti_free(pattern->seen);
    memset(pattern, 0, sizeof *pattern);
}

DVTI_FN bool dvti_pattern_compile(const char *function, const char *text, dvti_pattern *out) {
    dvti_pat_reader r;
    bool good;
    memset(out, 0, sizeof *out);
    r.function = function;
    r.text = r.at = text;
    r.out = out;
    r.depth = 0;
    if (strlen(text) > 10000) {
        dvti_fail(DVT_ERR_VALUE, "%s: the pattern has %llu characters; expected at most 10000",
                  function, (unsigned long long)strlen(text));
        return false;
    }
    good = dvti_pat_alternatives(&r) && (!*r.at || dvti_pat_bad(&r, "a ) without its (")) &&
           dvti_pat_emit(&r, DVTI_PAT_MATCH);
    if (good) {
        out->now = (int32_t *)dvti_alloc(out->count * sizeof *out->now);
        out->next = (int32_t *)dvti_alloc(out->count * sizeof *out->next);
        out->stack = (int32_t *)dvti_alloc(2 * out->count * sizeof *out->stack);
        out->seen = (size_t *)dvti_alloc(out->count * sizeof *out->seen);
        if (!out->now || !out->next || !out->stack || !out->seen) {
            dvti_fail_memory(function, (int64_t)(out->count * 4 * sizeof *out->now));
            good = false;
        }
    }
    if (!good)
        dvti_pattern_free(out);
    return good;
}

/* ---- running ---- */
/* Follows jumps from `from` and appends the steps that read a character to list. True when MATCH is reached. */
static bool dvti_pat_follow(dvti_pattern *p, int32_t from, int32_t *list, int32_t *n,
                            const char *text, size_t at) {
    int32_t depth = 0;
    p->stack[depth++] = from;
    while (depth) {
        int32_t i = p->stack[--depth];
        const dvti_pattern_step *step = &p->step[i];
        if (p->seen[i] == at + 1)
            continue;
        p->seen[i] = at + 1;
        switch (step->op) {
        case DVTI_PAT_MATCH:
            return true;
        case DVTI_PAT_SPLIT:
            p->stack[depth++] = i + step->y;
            p->stack[depth++] = i + step->x;
            break;
        case DVTI_PAT_JUMP:
            p->stack[depth++] = i + step->x;
            break;
        case DVTI_PAT_BEGIN:
            if (at == 0)
                p->stack[depth++] = i + 1;
            break;
        case DVTI_PAT_END:
            if (!text[at])
                p->stack[depth++] = i + 1;
            break;
        default:
            list[(*n)++] = i;
        }
    }
    return false;
}

static bool dvti_pat_reads(const dvti_pattern_step *step, unsigned char c) {
    if (step->op == DVTI_PAT_SET)
        return step->set[c / 32] >> c % 32 & 1;
    return step->op == DVTI_PAT_ANY ? c != '\n' : step->c == c;
}

DVTI_FN bool dvti_pattern_match(dvti_pattern *p, const char *text) {
    int32_t n = 0, m, k, *swap;
    size_t at;
    memset(p->seen, 0, p->count * sizeof *p->seen);
    if (dvti_pat_follow(p, 0, p->now, &n, text, 0))
        return true;
    for (at = 0; text[at] && n; at++) {
        m = 0;
        for (k = 0; k < n; k++)
            if (dvti_pat_reads(&p->step[p->now[k]], (unsigned char)text[at]) &&
                dvti_pat_follow(p, p->now[k] + 1, p->next, &m, text, at + 1))
                return true;
        swap = p->now;
        p->now = p->next;
        p->next = swap;
        n = m;
    }
    return false;
}

#undef DVTI_PAT_DEPTH
/* ==== end src/6_nn/dvt_match.c ==== */
#ifdef DEVTENSOR_LINES
#line 85 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_param.c ==== */
/* One parameter: its copies, one per context, and their gradients. How several change at once is in dvt_param_plan.c. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_param.c"
#endif

/* ---- making ---- */
/* Gluon's rules by the last part of a name. Anything else, such as "weight", has none. */
static dvt_init dvti_param_rule(const char *short_name, dvt_dtype dtype) {
    static const char *const zeros[] = {"bias", "beta", "running_mean", "moving_mean"};
    static const char *const ones[] = {"gamma", "running_var", "moving_var"};
    dvt_init none;
    int i;
    memset(&none, 0, sizeof none);
    for (i = 0; i < DVTI_LENGTH(zeros); i++)
        if (strcmp(short_name, zeros[i]) == 0)
            return dvt_init_zero();
    for (i = 0; i < DVTI_LENGTH(ones); i++)
        if (strcmp(short_name, ones[i]) == 0)
            return dvt_init_one();
    return dvt_dtype_is_float(dtype) ? none : dvt_init_zero();
}

static void dvti_param_destroy(void *object) {
    dvt_param *p = (dvt_param *)object;
    int i;
    for (i = 0; i < p->ctxs.n; i++)
        dvt_release(p->copy[i]);
    dvti_free(p->name);
    dvti_free(p);
}

DVTI_FN dvt_param *dvti_param_new(const char *function, const char *prefix, const char *short_name,
                                  dvt_shape shape, dvt_dtype dtype, dvt_init own) {
    size_t bytes = strlen(prefix) + strlen(short_name) + 1;
    dvt_param *p = (dvt_param *)dvti_alloc_zero(sizeof *p);
    char *name = (char *)dvti_alloc(bytes);
    if (!p || !name) {
        dvti_free(p);
        dvti_free(name);
        dvti_fail_memory(function, (int64_t)(sizeof *p + bytes));
        return NULL;
    }
    snprintf(name, bytes, "%s%s", prefix, short_name);
    dvti_object_begin_unowned(p, dvti_param_destroy);
    p->name = name;
    p->short_name = name + strlen(prefix);
    p->shape = shape;
    p->dtype = dtype;
    p->own = own;
    p->rule = dvti_param_rule(short_name, dtype);
    p->fixed = !dvt_dtype_is_float(dtype);
    p->grad_req = p->fixed ? DVT_GRAD_NULL : DVT_GRAD_WRITE;
    p->lr_mult = p->wd_mult = 1;
    return p;
}

/* ---- asking ---- */
DVTI_FN bool dvti_param_ready(const dvt_param *p) {
    return dvti_atomic_load((dvti_atomic *)&p->state) == DVTI_PARAM_READY;
}

DVTI_FN bool dvti_shape_known(dvt_shape shape) {
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (shape.dim[i] == 0)
            return false;
    return true;
}

DVTI_FN bool dvti_shape_accepts(dvt_shape known, dvt_shape given) {
    int i;
    if (known.ndim != given.ndim)
        return false;
    for (i = 0; i < known.ndim; i++)
        if (known.dim[i] != 0 && known.dim[i] != given.dim[i])
            return false;
    return true;
}

DVT_API const char *dvt_param_name(const dvt_param *p) {
    if (p)
        return p->name;
    dvti_null("dvt_param_name", "p");
    return "";
}

DVT_API dvt_shape dvt_param_shape(const dvt_param *p) {
    dvt_shape shape = DVT_SCALAR;
    if (!p) {
        dvti_null("dvt_param_shape", "p");
        return shape;
    }
    dvti_params_lock();
    shape = p->shape;
    dvti_params_unlock();
    return shape;
}

DVT_API dvt_ctx_list dvt_param_ctxs(const dvt_param *p) {
    dvt_ctx_list none;
    memset(&none, 0, sizeof none);
    if (p)
        return p->ctxs;
    dvti_null("dvt_param_ctxs", "p");
    return none;
}

static void dvti_param_not_ready(const char *function, const dvt_param *p) {
    if (dvti_atomic_load((dvti_atomic *)&p->state) == DVTI_PARAM_DEFERRED)
        dvti_fail(
            DVT_ERR_UNINITIALIZED,
            "%s: Parameter '%s' has not been initialized yet because initialization was deferred "
            "(its shape is %s): its values are set during the first forward pass. Pass one batch "
            "of data through the network before reading parameters, or give in_units, in_channels "
            "and the like when making the layers",
            function, p->name, dvti_shape_text(p->shape));
    else
        dvti_fail(DVT_ERR_UNINITIALIZED,
                  "%s: Parameter '%s' has not been initialized; call dvt_initialize on the whole "
                  "net, or dvt_params_initialize on what dvt_collect_params gives, which includes "
                  "the parameters of children",
                  function, p->name);
}

/* The copy on ctx; NULL with the error set. */
static dvt_array *dvti_param_on(const char *function, dvt_param *p, dvt_ctx ctx) {
    char list[256];
    int i;
    if (!p) {
        dvti_null(function, "p");
        return NULL;
    }
    if (!dvti_param_ready(p)) {
        dvti_param_not_ready(function, p);
        return NULL;
    }
    if (ctx.type == DVT_DEVICE_DEFAULT && p->ctxs.n == 1)
        return p->copy[0];
    for (i = 0; i < p->ctxs.n; i++)
        if (dvt_ctx_equal(p->ctxs.ctx[i], ctx))
            return p->copy[i];
    dvt_ctx_list_format(p->ctxs, list, sizeof list);
    dvti_fail(DVT_ERR_CONTEXT,
              "%s: Parameter '%s' was not initialized on context %s. It was only initialized on "
              "%s. Copy the input with dvt_as_in_ctx, or move the parameters with "
              "dvt_params_reset_ctx",
              function, p->name, dvt_ctx_name(ctx), list);
    return NULL;
}

DVT_API dvt_array *dvt_param_data(dvt_param *p, dvt_ctx ctx) {
    return dvti_param_on("dvt_param_data", p, ctx);
}

DVT_API dvt_array *dvt_param_grad(dvt_param *p, dvt_ctx ctx) {
    dvt_array *copy;
    if (p && p->grad_req == DVT_GRAD_NULL && dvti_param_ready(p)) {
        dvti_fail(DVT_ERR_GRAD,
                  "dvt_param_grad: Cannot get gradient array for Parameter '%s' because "
                  "grad_req='null'; set another with dvt_param_set_grad_req%s",
                  p->name, p->fixed ? " (this one never has a gradient)" : "");
        return NULL;
    }
    copy = dvti_param_on("dvt_param_grad", p, ctx);
    return copy ? dvt_grad(copy) : NULL;
}

/* The mean is the first copy plus the mean distance to it, in float64: where all copies are equal it is that value exactly, for
   any number of them. */
static bool dvti_average_into(double *base, double *distance, const double *value, int64_t n,
                              bool first) {
    int64_t i;
    if (!value)
        return false;
    for (i = 0; i < n; i++)
        if (first) {
            base[i] = value[i];
            distance[i] = 0;
        } else if (value[i] != base[i])
            distance[i] += value[i] - base[i];
    return true;
}

DVTI_FN dvt_array *dvti_param_average(const char *function, dvt_param *p) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_record_guard record = dvt_record_begin(0, -1);
    dvt_array *out = NULL, *base, *distance;
    int64_t i, n;
    int k;
    if (!dvti_param_ready(p))
        dvti_param_not_ready(function, p);
    else if (p->ctxs.n == 1 || !dvt_dtype_is_float(p->dtype))
        out = dvt_copyto(p->copy[0], dvt_cpu());
    else {
        base = dvt_empty(p->shape, DVT_F64, dvt_cpu());
        distance = dvt_empty(p->shape, DVT_F64, dvt_cpu());
        n = dvt_size(base);
        for (k = 0; base && distance && k < p->ctxs.n; k++) {
            dvt_scope_guard inner = dvt_scope_begin();
            dvt_array *host = dvt_as_in_ctx(p->copy[k], dvt_cpu());
            dvt_array *wide = host ? dvt_astype(host, DVT_F64, true) : NULL;
            if (!dvti_average_into((double *)dvt_data(base), (double *)dvt_data(distance),
                                   wide ? (const double *)dvt_data(wide) : NULL, n, k == 0))
                base = NULL;
            dvt_scope_end(&inner);
        }
        if (base && distance) {
            double *b = (double *)dvt_data(base), *d = (double *)dvt_data(distance);
            for (i = 0; i < n; i++)
                b[i] += d[i] / p->ctxs.n;
            out = dvt_astype(base, p->dtype, false);
        }
    }
    dvt_record_end(&record);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

/* ---- changing ---- */
DVT_API dvt_status dvt_param_set_shape(dvt_param *p, dvt_shape shape) {
    dvt_status status = DVT_OK;
    int64_t bytes;
    if (!p)
        return dvti_null("dvt_param_set_shape", "p");
    if (!dvti_nbytes("dvt_param_set_shape", shape, p->dtype, &bytes))
        return dvt_error_code();
    dvti_params_lock();
    if (!dvti_shape_accepts(p->shape, shape))
        status = dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_param_set_shape: Parameter '%s' has shape %s and is given %s; expected the same "
            "number of axes, and the same extents where they are known (not 0)",
            p->name, dvti_shape_text(p->shape), dvti_shape_text(shape));
    else if (!dvti_param_ready(p))
        p->shape = shape;
    dvti_params_unlock();
    return status;
}

DVT_API dvt_status dvt_param_set_init(dvt_param *p, dvt_init init) {
    if (!p)
        return dvti_null("dvt_param_set_init", "p");
    if (!dvti_init_check("dvt_param_set_init", p, init))
        return dvt_error_code();
    p->own = init;
    return DVT_OK;
}

static dvt_status dvti_param_factor(const char *function, dvt_param *p, double factor, bool decay) {
    if (!p)
        return dvti_null(function, "p");
    if (!(factor - factor == 0))
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: factor is %g for Parameter '%s'; expected a finite number", function,
                         factor, p->name);
    *(decay ? &p->wd_mult : &p->lr_mult) = factor;
    return DVT_OK;
}

DVT_API dvt_status dvt_param_set_lr_mult(dvt_param *p, double factor) {
    return dvti_param_factor("dvt_param_set_lr_mult", p, factor, false);
}

DVT_API dvt_status dvt_param_set_wd_mult(dvt_param *p, double factor) {
    return dvti_param_factor("dvt_param_set_wd_mult", p, factor, true);
}

static void dvti_copy_drop_grad(dvt_array *copy) {
    dvt_release(copy->grad);
    copy->grad = NULL;
    copy->grad_req = DVT_GRAD_NULL;
    copy->attached = copy->grad_fresh = false;
}

/* Gradients start again at 0, as in Gluon. */
static dvt_status dvti_copies_set_req(dvt_param *p, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    int i;
    if (req != DVT_GRAD_NULL && p->grad_req != DVT_GRAD_NULL) {
        for (i = 0; i < p->ctxs.n && status == DVT_OK; i++)
            status = dvt_zero_grad(p->copy[i]);
        for (i = 0; i < p->ctxs.n && status == DVT_OK; i++)
            p->copy[i]->grad_req = req;
        return status;
    }
    for (i = 0; i < p->ctxs.n; i++) {
        if (req != DVT_GRAD_NULL)
            status = dvt_attach_grad(p->copy[i], req);
        if (req == DVT_GRAD_NULL || status != DVT_OK)
            dvti_copy_drop_grad(p->copy[i]);
        if (status != DVT_OK)
            break;
    }
    while (status != DVT_OK && --i >= 0)
        dvti_copy_drop_grad(p->copy[i]);
    return status;
}

DVT_API dvt_status dvt_param_set_grad_req(dvt_param *p, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    if (!p)
        return dvti_null("dvt_param_set_grad_req", "p");
    if ((int)req < DVT_GRAD_WRITE || (int)req > DVT_GRAD_NULL)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_param_set_grad_req: req is %d; expected DVT_GRAD_WRITE, DVT_GRAD_ADD "
                         "or DVT_GRAD_NULL",
                         (int)req);
    if (p->fixed || req == p->grad_req)
        return DVT_OK;
    if (dvti_param_ready(p))
        status = dvti_copies_set_req(p, req);
    if (status == DVT_OK)
        p->grad_req = req;
    return status;
}

/* First a copy of the new values on every context, which may fail; then, on each device, into the array that is there. */
static dvt_status dvti_param_write(dvt_param *p, dvt_array *x) {
    const char *function = "dvt_param_set_data";
    dvt_array *staged[DVT_MAX_CONTEXTS];
    dvt_array *converted = dvt_astype(x, p->dtype, false);
    dvt_status status = converted ? DVT_OK : dvt_error_code();
    int i;
    for (i = 0; i < p->ctxs.n && status == DVT_OK; i++) {
        staged[i] = dvt_copyto(converted, p->ctxs.ctx[i]);
        if (!staged[i])
            status = dvt_error_code();
    }
    for (i = 0; i < p->ctxs.n && status == DVT_OK; i++) {
        status = dvti_copy_elements(function, p->copy[i], staged[i]);
        if (status == DVT_OK)
            dvti_written(p->copy[i]);
    }
    return status;
}

/* A deferred parameter gets its values from the data, and with them its shape. */
static dvt_status dvti_param_complete(dvt_param *p, dvt_array *x) {
    dvti_plan *plan = dvti_plans_new("dvt_param_set_data", 1);
    dvt_status status;
    if (!plan)
        return dvt_error_code();
    plan->param = p;
    plan->shape = x->shape;
    plan->ctxs = p->ctxs;
    status = dvti_plan_fill(plan, x) ? DVT_OK : dvt_error_code();
    if (status == DVT_OK)
        dvti_plans_commit(plan, 1);
    dvti_plans_drop(plan, 1);
    return status;
}

DVT_API dvt_status dvt_param_set_data(dvt_param *p, dvt_array *x) {
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_status status;
    if (!p || !x)
        return dvti_null("dvt_param_set_data", p ? "x" : "p");
    if (!dvti_shape_accepts(p->shape, x->shape) || !dvti_shape_known(x->shape))
        return dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_param_set_data: Parameter '%s' has shape %s and x is %s; expected equal shapes",
            p->name, dvti_shape_text(p->shape), dvti_describe(x));
    if (dvti_atomic_load(&p->state) == DVTI_PARAM_NEW) {
        dvti_param_not_ready("dvt_param_set_data", p);
        return dvt_error_code();
    }
    scope = dvt_scope_begin();
    record = dvt_record_begin(0, -1);
    status = dvti_param_ready(p) ? dvti_param_write(p, x) : dvti_param_complete(p, x);
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return status;
}
/* ==== end src/6_nn/dvt_param.c ==== */
#ifdef DEVTENSOR_LINES
#line 86 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_param_list.c ==== */
/* Collections of parameters: gathered from blocks by name, and changed together or not at all. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_param_list.c"
#endif

static void dvti_params_destroy(void *object) {
    dvt_params *params = (dvt_params *)object;
    size_t i;
    for (i = 0; i < params->count; i++)
        dvt_release(params->item[i]);
    dvti_free(params->item);
    dvti_free(params);
}

DVTI_FN dvt_params *dvti_params_new(const char *function) {
    dvt_params *params = (dvt_params *)dvti_alloc_zero(sizeof *params);
    if (!params)
        dvti_fail_memory(function, (int64_t)sizeof *params);
    else if (!dvti_object_begin(params, dvti_params_destroy, function)) {
        dvti_free(params);
        params = NULL;
    }
    return params;
}

DVTI_FN bool dvti_params_add(const char *function, dvt_params *params, dvt_param *p) {
    size_t i;
    for (i = 0; i < params->count; i++)
        if (params->item[i] == p)
            return true;
    if (!dvti_grow((void **)&params->item, &params->capacity, params->count + 1,
                   sizeof *params->item)) {
        dvti_fail_memory(function, (int64_t)(sizeof *params->item * (params->count + 1)));
        return false;
    }
    params->item[params->count++] = (dvt_param *)dvt_retain(p);
    return true;
}

static bool dvti_params_collect(dvt_params *params, dvt_block *block, dvti_pattern *pattern) {
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if ((!pattern || dvti_pattern_match(pattern, block->param[i]->name)) &&
            !dvti_params_add("dvt_collect_params", params, block->param[i]))
            return false;
    for (i = 0; i < block->n_child; i++)
        if (!dvti_params_collect(params, block->child[i], pattern))
            return false;
    return true;
}

DVT_API dvt_params *dvt_collect_params(dvt_block *net, const char *text) {
    dvti_pattern pattern;
    dvt_scope_guard scope;
    dvt_params *params;
    if (!net) {
        dvti_null("dvt_collect_params", "net");
        return NULL;
    }
    if (text && !dvti_pattern_compile("dvt_collect_params", text, &pattern))
        return NULL;
    scope = dvt_scope_begin();
    params = dvti_params_new("dvt_collect_params");
    if (params && !dvti_params_collect(params, net, text ? &pattern : NULL))
        params = NULL;
    if (text)
        dvti_pattern_free(&pattern);
    dvt_keep(params);
    dvt_scope_end(&scope);
    return params;
}

DVT_API int dvt_params_len(const dvt_params *params) {
    if (params)
        return (int)params->count;
    dvti_null("dvt_params_len", "params");
    return 0;
}

DVT_API dvt_param *dvt_params_at(dvt_params *params, int i) {
    if (!params) {
        dvti_null("dvt_params_at", "params");
        return NULL;
    }
    if (i < 0 || (size_t)i >= params->count) {
        dvti_fail(DVT_ERR_RANGE, "dvt_params_at: index %d of %llu parameters; expected 0 to %lld",
                  i, (unsigned long long)params->count, (long long)params->count - 1);
        return NULL;
    }
    return params->item[i];
}

DVTI_FN const char *dvti_brief(char *buffer, size_t size, int n,
                               const char *(*name)(const void *user, int i), const void *user) {
    dvti_text text = dvti_text_begin(buffer, size);
    int i, shown = n > 8 ? 6 : n;
    if (n == 0)
        dvti_text_add(&text, "none");
    for (i = 0; i < shown; i++)
        dvti_text_add(&text, "%s'%.60s'", i ? ", " : "", name(user, i));
    if (shown < n)
        dvti_text_add(&text, ", ..., '%.60s' (%d in all)", name(user, n - 1), n);
    return buffer;
}

static const char *dvti_params_name_at(const void *user, int i) {
    return ((const dvt_params *)user)->item[i]->name;
}

DVT_API dvt_param *dvt_params_find(dvt_params *params, const char *name) {
    char known[600];
    size_t i;
    if (!params || !name) {
        dvti_null("dvt_params_find", params ? "name" : "params");
        return NULL;
    }
    for (i = 0; i < params->count; i++)
        if (strcmp(params->item[i]->name, name) == 0)
            return params->item[i];
    dvti_fail(DVT_ERR_NAME, "dvt_params_find: no parameter is called '%.100s'; there are %s", name,
              dvti_brief(known, sizeof known, (int)params->count, dvti_params_name_at, params));
    return NULL;
}

/* ---- all at once ---- */
DVT_API dvt_status dvt_params_reset_ctx(dvt_params *params, dvt_ctx_list given) {
    const char *function = "dvt_params_reset_ctx";
    dvt_ctx_list ctxs;
    dvti_plan *plans;
    bool good = true;
    size_t i;
    if (!params)
        return dvti_null(function, "params");
    for (i = 0; i < params->count; i++)
        if (dvti_atomic_load(&params->item[i]->state) == DVTI_PARAM_NEW)
            return dvti_fail(DVT_ERR_UNINITIALIZED,
                             "%s: Cannot reset context for Parameter '%s' because it has not been "
                             "initialized; call dvt_initialize first",
                             function, params->item[i]->name);
    if (!dvti_ctxs_resolve(function, given, &ctxs) ||
        !(plans = dvti_plans_new(function, params->count)))
        return dvt_error_code();
    for (i = 0; good && i < params->count; i++) {
        dvti_plan *plan = &plans[i];
        plan->param = params->item[i];
        plan->ctxs = ctxs;
        plan->init = plan->param->pending;
        plan->shape = plan->param->shape;
        plan->deferred = !dvti_param_ready(plan->param);
        if (!plan->deferred) {
            dvt_scope_guard scope = dvt_scope_begin();
            dvt_array *average = dvti_param_average(function, plan->param);
            good = average && dvti_plan_fill(plan, average);
            dvt_scope_end(&scope);
        }
    }
    if (good)
        dvti_plans_commit(plans, params->count);
    dvti_plans_drop(plans, params->count);
    return good ? DVT_OK : dvt_error_code();
}

/* On failure those that were changed go back, which only takes away gradients or restarts them. */
DVT_API dvt_status dvt_params_set_grad_req(dvt_params *params, dvt_grad_req req) {
    dvt_grad_req *before;
    dvt_status status = DVT_OK;
    size_t i;
    if (!params)
        return dvti_null("dvt_params_set_grad_req", "params");
    before = (dvt_grad_req *)dvti_alloc(params->count * sizeof *before);
    if (!before)
        return dvti_fail_memory("dvt_params_set_grad_req",
                                (int64_t)(params->count * sizeof *before));
    for (i = 0; i < params->count && status == DVT_OK; i++) {
        before[i] = params->item[i]->grad_req;
        status = dvt_param_set_grad_req(params->item[i], req);
    }
    if (status != DVT_OK)
        for (i--; i > 0; i--)
            dvt_param_set_grad_req(params->item[i - 1], before[i - 1]);
    dvti_free(before);
    return status;
}

DVT_API dvt_status dvt_params_zero_grad(dvt_params *params) {
    dvt_status status = DVT_OK;
    size_t i;
    int k;
    if (!params)
        return dvti_null("dvt_params_zero_grad", "params");
    for (i = 0; i < params->count && status == DVT_OK; i++) {
        dvt_param *p = params->item[i];
        if (dvti_param_ready(p) && p->grad_req != DVT_GRAD_NULL)
            for (k = 0; k < p->ctxs.n && status == DVT_OK; k++)
                status = dvt_zero_grad(p->copy[k]);
    }
    return status;
}
/* ==== end src/6_nn/dvt_param_list.c ==== */
#ifdef DEVTENSOR_LINES
#line 87 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_param_plan.c ==== */
/* Changing several parameters at once: everything that can fail happens in plans; committing them cannot. */
#ifdef DEVTENSOR_LINES
#line 2 "src/6_nn/dvt_param_plan.c"
#endif

static dvti_mutex dvti_param_mutex = DVTI_MUTEX_INIT;

DVTI_FN void dvti_params_lock(void) {
    dvti_mutex_lock(&dvti_param_mutex);
}

DVTI_FN void dvti_params_unlock(void) {
    dvti_mutex_unlock(&dvti_param_mutex);
}

DVTI_FN bool dvti_ctxs_resolve(const char *function, dvt_ctx_list given, dvt_ctx_list *out) {
    dvt_ctx_list list;
    int i, k;
    if (given.n < 0 || given.n > DVT_MAX_CONTEXTS) {
        dvti_fail(DVT_ERR_RANGE, "%s: a list of %d contexts; expected 0 to %d", function, given.n,
                  DVT_MAX_CONTEXTS);
        return false;
    }
    if (given.n == 0) {
        given.n = 1;
        given.ctx[0] = dvt_default_ctx();
    }
    memset(&list, 0, sizeof list);
    for (i = 0; i < given.n; i++) {
        dvt_ctx ctx = dvti_ctx(given.ctx[i]);
        for (k = 0; k < list.n && !dvt_ctx_equal(list.ctx[k], ctx); k++)
            continue;
        if (k == list.n && !dvti_device_of(function, ctx))
            return false;
        if (k == list.n)
            list.ctx[list.n++] = ctx;
    }
    *out = list;
    return true;
}

DVTI_FN dvti_plan *dvti_plans_new(const char *function, size_t n) {
    dvti_plan *plans = NULL;
    if (n <= SIZE_MAX / sizeof *plans)
        plans = (dvti_plan *)dvti_alloc_zero(n * sizeof *plans);
    if (!plans)
        dvti_fail_memory(function, (int64_t)(n * sizeof *plans));
    return plans;
}

DVTI_FN void dvti_plans_drop(dvti_plan *plans, size_t n) {
    size_t i;
    int k;
    for (i = 0; plans && i < n; i++)
        for (k = 0; k < DVT_MAX_CONTEXTS; k++)
            dvt_release(plans[i].copy[k]);
    dvti_free(plans);
}

DVTI_FN bool dvti_plan_fill(dvti_plan *plan, dvt_array *values) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_record_guard record = dvt_record_begin(0, -1);
    dvt_array *converted = dvt_astype(values, plan->param->dtype, false);
    bool good = converted != NULL;
    int i;
    for (i = 0; good && i < plan->ctxs.n; i++) {
        dvt_array *copy = dvt_copyto(converted, plan->ctxs.ctx[i]);
        good = copy && (plan->param->grad_req == DVT_GRAD_NULL ||
                        dvt_attach_grad(copy, plan->param->grad_req) == DVT_OK);
        if (good) {
            dvti_scope_take(copy);
            plan->copy[i] = copy;
        }
    }
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return good;
}

/* Two arrays of one shape, dtype and context exchange their memory, so that pointers to `kept` see the new values. The version
   says so to a tape that remembers the old ones. */
static void dvti_copy_exchange(dvt_array *kept, dvt_array *fresh) {
    dvti_storage *old = kept->storage;
    dvti_atomic_store(&fresh->storage->version, dvti_atomic_load(&old->version) + 1);
    kept->storage = fresh->storage;
    fresh->storage = old;
}

static void dvti_copy_renew(dvt_array *kept, dvt_array *fresh) {
    dvti_copy_exchange(kept, fresh);
    if (kept->grad && fresh->grad)
        dvti_copy_exchange(kept->grad, fresh->grad);
    else {
        dvt_array *grad = kept->grad;
        kept->grad = fresh->grad;
        fresh->grad = grad;
    }
    kept->grad_req = fresh->grad_req;
    kept->attached = fresh->attached;
    kept->grad_fresh = false;
}

static void dvti_plan_commit_values(dvti_plan *plan) {
    dvt_param *p = plan->param;
    dvt_array *now[DVT_MAX_CONTEXTS];
    int i, k;
    memset(now, 0, sizeof now);
    for (i = 0; i < plan->ctxs.n; i++) {
        now[i] = plan->copy[i];
        plan->copy[i] = NULL;
        for (k = 0; k < p->ctxs.n; k++)
            if (p->copy[k] && dvt_ctx_equal(p->ctxs.ctx[k], plan->ctxs.ctx[i])) {
                dvti_copy_renew(p->copy[k], now[i]);
                dvt_release(now[i]);
                now[i] = p->copy[k];
                p->copy[k] = NULL;
            }
    }
    for (k = 0; k < p->ctxs.n; k++)
        dvt_release(p->copy[k]);
    memcpy(p->copy, now, sizeof now);
    p->ctxs = plan->ctxs;
    p->shape = plan->shape;
    dvti_atomic_store(&p->state, DVTI_PARAM_READY);
}

DVTI_FN void dvti_plan_commit_locked(dvti_plan *plan) {
    if (!plan->param)
        return;
    if (!plan->deferred) {
        dvti_plan_commit_values(plan);
        return;
    }
    plan->param->pending = plan->init;
    plan->param->ctxs = plan->ctxs;
    dvti_atomic_store(&plan->param->state, DVTI_PARAM_DEFERRED);
}

DVTI_FN void dvti_plans_commit(dvti_plan *plans, size_t n) {
    size_t i;
    dvti_params_lock();
    for (i = 0; i < n; i++)
        dvti_plan_commit_locked(&plans[i]);
    dvti_params_unlock();
}
/* ==== end src/6_nn/dvt_param_plan.c ==== */
#ifdef DEVTENSOR_LINES
#line 88 "src/devtensor_spine.h"
#endif
/* ==== begin src/6_nn/dvt_save_load.c ==== */
/* save_parameters and load_parameters. Names in files are structural, "0.weight": the path of child numbers, then the short
   name. How names of a file find their parameters is in dvt_load_match.c. */
#ifdef DEVTENSOR_LINES
#line 3 "src/6_nn/dvt_save_load.c"
#endif

/* ---- structural names ---- */
DVTI_FN void dvti_named_free(dvti_named_list *list) {
    size_t i;
    for (i = 0; i < list->count; i++)
        dvti_free(list->item[i].name);
    dvti_free(list->item);
    memset(list, 0, sizeof *list);
}

/* path + name, in memory of its own. */
static char *dvti_path_join(const char *path, const char *name) {
    size_t bytes = strlen(path) + strlen(name) + 1;
    char *joined = (char *)dvti_alloc(bytes);
    if (joined)
        snprintf(joined, bytes, "%s%s", path, name);
    return joined;
}

static bool dvti_named_add(dvti_named_list *list, const char *path, dvt_param *p) {
    char *name;
    if (!dvti_grow((void **)&list->item, &list->capacity, list->count + 1, sizeof *list->item) ||
        !(name = dvti_path_join(path, p->short_name)))
        return false;
    list->item[list->count].name = name;
    list->item[list->count++].param = p;
    return true;
}

static bool dvti_named_walk(dvti_named_list *list, const dvt_block *block, const char *path) {
    bool good = true;
    size_t i;
    for (i = 0; good && i < block->n_param; i++)
        good = dvti_named_add(list, path, block->param[i]);
    for (i = 0; good && i < block->n_child; i++) {
        char number[24], *inner;
        snprintf(number, sizeof number, "%lld.", (long long)i);
        inner = dvti_path_join(path, number);
        good = inner && dvti_named_walk(list, block->child[i], inner);
        dvti_free(inner);
    }
    return good;
}

DVTI_FN bool dvti_named_collect(const char *function, const dvt_block *net, dvti_named_list *list) {
    memset(list, 0, sizeof *list);
    if (dvti_named_walk(list, net, ""))
        return true;
    dvti_fail_memory(function, (int64_t)(sizeof *list->item * (list->count + 1)));
    dvti_named_free(list);
    return false;
}

/* ---- saving ---- */
static dvt_status dvti_save_named(const dvti_named_list *list, const char *path) {
    dvt_array **array = (dvt_array **)dvti_alloc(list->count * sizeof *array);
    const char **name = (const char **)dvti_alloc(list->count * sizeof *name);
    dvt_status status = DVT_OK;
    size_t i;
    if (!array || !name)
        status =
            dvti_fail_memory("dvt_save_parameters", (int64_t)(list->count * 2 * sizeof *array));
    for (i = 0; status == DVT_OK && i < list->count; i++) {
        name[i] = list->item[i].name;
        array[i] = dvti_param_average("dvt_save_parameters", list->item[i].param);
        if (!array[i])
            status = dvt_error_code();
    }
    if (status == DVT_OK)
        status = dvt_save_params(path, array, name, (int)list->count);
    dvti_free(array);
    dvti_free((void *)name);
    return status;
}

DVT_API dvt_status dvt_save_parameters(dvt_block *net, const char *path) {
    dvti_named_list list;
    dvt_scope_guard scope;
    dvt_status status;
    if (!net || !path)
        return dvti_null("dvt_save_parameters", net ? "path" : "net");
    if (!dvti_named_collect("dvt_save_parameters", net, &list))
        return dvt_error_code();
    scope = dvt_scope_begin();
    status = dvti_save_named(&list, path);
    dvt_scope_end(&scope);
    dvti_named_free(&list);
    return status;
}

/* ---- loading ---- */
/* The file's array fits the parameter: known extents and dtype. */
static bool dvti_load_check(const dvti_load *load, const dvt_param *p, const char *name,
                            const dvt_array *saved) {
    if (!dvti_shape_accepts(p->shape, saved->shape) || !dvti_shape_known(saved->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_load_parameters: Failed loading Parameter '%s' from saved params: shape "
                  "incompatible expected %s vs saved %s (%s in '%s'); load it into a net of the "
                  "same layers",
                  p->name, dvti_shape_text(p->shape), dvti_shape_text(saved->shape), name,
                  load->path);
        return false;
    }
    if (p->dtype != saved->dtype && !load->options.cast_dtype) {
        dvti_fail(DVT_ERR_DTYPE,
                  "dvt_load_parameters: Failed loading Parameter '%s' from saved params: dtype "
                  "incompatible expected %s vs saved %s. Set cast_dtype to cast the dtype of saved "
                  "params",
                  p->name, dvt_dtype_name(p->dtype), dvt_dtype_name(saved->dtype));
        return false;
    }
    return true;
}

/* A parameter under several names takes the last of them, as in Gluon. */
static bool dvti_load_is_last(const dvti_load *load, size_t i) {
    size_t k;
    for (k = i + 1; k < load->named.count; k++)
        if (load->named.item[k].param == load->named.item[i].param && load->from[k] >= 0)
            return false;
    return true;
}

static bool dvti_load_plan(const dvti_load *load, size_t i, dvti_plan *plan) {
    dvt_param *p = load->named.item[i].param;
    dvt_array *saved = dvt_array_list_at(load->file, load->from[i]);
    if (!saved || !dvti_load_check(load, p, load->named.item[i].name, saved))
        return false;
    if (!dvti_load_is_last(load, i))
        return true;
    plan->param = p;
    plan->shape = saved->shape;
    if (load->ctxs.n)
        plan->ctxs = load->ctxs;
    else if (p->ctxs.n)
        plan->ctxs = p->ctxs;
    else if (!dvti_ctxs_resolve("dvt_load_parameters", load->ctxs, &plan->ctxs))
        return false;
    return true;
}

/* First every check, then every copy, then all parameters change. */
static dvt_status dvti_load_apply(const dvti_load *load) {
    size_t i, n = load->named.count;
    dvti_plan *plans = dvti_plans_new("dvt_load_parameters", n);
    bool good = plans != NULL;
    for (i = 0; good && i < n; i++)
        if (load->from[i] >= 0)
            good = dvti_load_plan(load, i, &plans[i]);
    for (i = 0; good && i < n; i++)
        if (plans[i].param)
            good = dvti_plan_fill(&plans[i], dvt_array_list_at(load->file, load->from[i]));
    if (good)
        dvti_plans_commit(plans, n);
    dvti_plans_drop(plans, n);
    return good ? DVT_OK : dvt_error_code();
}

static dvt_status dvti_load_run(dvti_load *load, dvt_block *net) {
    load->file = dvt_load_params(load->path, dvt_cpu());
    if (!load->file || !dvti_load_match(load, net))
        return dvt_error_code();
    return dvti_load_apply(load);
}

DVT_API dvt_status dvt_load_parameters(dvt_block *net, const char *path, dvt_ctx_list ctxs,
                                       const dvt_load_options *options) {
    dvti_load load;
    dvt_scope_guard scope;
    dvt_status status;
    if (!net || !path)
        return dvti_null("dvt_load_parameters", net ? "path" : "net");
    memset(&load, 0, sizeof load);
    load.path = path;
    if (options)
        load.options = *options;
    if (ctxs.n && !dvti_ctxs_resolve("dvt_load_parameters", ctxs, &load.ctxs))
        return dvt_error_code();
    scope = dvt_scope_begin();
    status = dvti_load_run(&load, net);
    dvt_scope_end(&scope);
    dvti_named_free(&load.named);
    dvti_free(load.from);
    return status;
}
/* ==== end src/6_nn/dvt_save_load.c ==== */
#ifdef DEVTENSOR_LINES
#line 89 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_batch.c ==== */
/* Making one batch out of numbered samples, on cpu(0). Two ways with the same bits: datasets whose samples are rows of an
   array, or pixels that a table maps to floats, are written straight into the batch; everything else is asked for sample by
   sample and stacked. May be called from several threads at once. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_batch.c"
#endif
/* ==== begin src/7_train/dvt_train_internal.h ==== */
/* Training from the inside: what the files of this room share. */
#ifdef DEVTENSOR_LINES
#line 1 "src/7_train/dvt_train_internal.h"
#endif
#ifndef DVTI_TRAIN_H
#define DVTI_TRAIN_H
#ifdef DEVTENSOR_LINES
#line 4 "src/7_train/dvt_train_internal.h"
#endif

/* ---- optimisers and schedules ---- */
DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule);
/* All fields can be used; otherwise RANGE, naming the field. */
DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer);
/* State arrays per copy of a parameter. */
DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer);
/* One step without its views: rate and decay of this parameter; count: which step of it this is, from 1. */
DVTI_FN dvti_launch dvti_optimizer_launch(const dvt_optimizer *optimizer, double rate, double decay,
                                          double rescale, int64_t count);

/* ---- the trainer ---- */
#define DVTI_TRAINER_STATES 3

/* One copy of a parameter. Weight and gradient belong to the parameter and are looked up anew at every step. */
typedef struct dvti_replica {
    dvt_array *weight, *gradient;
    dvt_array *state[DVTI_TRAINER_STATES]; /* owned; NULL until the first step */
} dvti_replica;

typedef struct dvti_trained {
    dvt_param *param;
    int64_t count;      /* steps of this parameter so far */
    dvt_array *landing; /* on the first context: where the others' gradients arrive; owned */
    bool taken;         /* part of the step that is under way */
} dvti_trained;

struct dvt_trainer {
    dvti_object object;
    dvt_params *params; /* retained */
    dvt_optimizer optimizer;
    int states, n;
    int64_t steps;
    bool summed;           /* allreduce has been here since the last update */
    dvti_trained *trained; /* n */
    dvt_ctx_list ctxs;
    dvti_replica *replica; /* n rows of ctxs.n */
};

/* Copy k of parameter i. */
DVTI_FN dvti_replica *dvti_trainer_at(const dvt_trainer *t, int i, int k);
DVTI_FN void dvti_replicas_free(dvti_replica *replica, int64_t n);
/* The contexts that all parameters agree on; those without any (not initialised yet) are passed over. Otherwise CONTEXT. */
DVTI_FN dvt_status dvti_trainer_ctxs(const char *function, const dvt_trainer *t,
                                     dvt_ctx_list *ctxs);
/* Looks up every copy; parameters without gradients are not taken. Changes nothing that a failure would have to undo. */
DVTI_FN dvt_status dvti_trainer_look(const char *function, dvt_trainer *t);
/* The memory that a step needs for parameter i: its states; room for a gradient that comes from another device. */
DVTI_FN dvt_status dvti_trainer_make_states(dvt_trainer *t, int i);
DVTI_FN dvt_status dvti_trainer_make_landing(dvt_trainer *t, int i);
/* Sums the gradients of all that is taken over the contexts, in their order, and gives every copy the sum. fresh_only: stale
   ones count as 0. */
DVTI_FN dvt_status dvti_trainer_sum(const char *function, const dvt_trainer *t, bool fresh_only);

/* ---- clipping ---- */
/* The common 2-norm. False with the error set: RANGE (max_norm), memory, a read that is forbidden. */
DVTI_FN bool dvti_global_norm(const char *function, dvt_array *const *arrays, int n,
                              double max_norm, double *out);
/* Scales in place when norm is above max_norm. */
DVTI_FN bool dvti_clip_to_norm(const char *function, dvt_array *const *arrays, int n, double norm,
                               double max_norm);

/* ---- data ---- */
typedef enum dvti_transform_kind {
    DVTI_TRANSFORM_TO_TENSOR,
    DVTI_TRANSFORM_NORMALIZE,
    DVTI_TRANSFORM_COMPOSE,
    DVTI_TRANSFORM_CUSTOM
} dvti_transform_kind;

/* Each result element depends on one pixel and its channel only: dvt_to_tensor, then any dvt_normalize. *as_tensor, false at
   the start of a chain, tells whether dvt_to_tensor has been seen. */
DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor);

/* Either two arrays, or another dataset and a transform of its first parts. */
struct dvt_dataset {
    dvti_object object;
    int64_t length;
    dvt_array *x, *y;
    dvt_dataset *source;
    dvt_transform *transform;
};

/* How a batch is made: whole rows copied, pixels mapped by a table, or sample by sample. */
typedef enum dvti_batch_way {
    DVTI_BATCH_SAMPLES,
    DVTI_BATCH_ROWS,
    DVTI_BATCH_TABLE
} dvti_batch_way;

typedef struct dvti_batcher {
    dvt_dataset *data; /* retained */
    dvti_batch_way way;
    dvt_array *x, *y; /* the dataset's arrays, where the way needs them */
    float *table;     /* 256 floats per channel */
} dvti_batcher;

DVTI_FN void dvti_batcher_begin(dvti_batcher *batcher, dvt_dataset *data);
DVTI_FN void dvti_batcher_end(dvti_batcher *batcher);
/* Makes the table; before the first batch. False with the error set. */
DVTI_FN bool dvti_batcher_ready(const char *function, dvti_batcher *batcher);
/* The samples with these n numbers as one batch in the current scope. False with the error set. */
DVTI_FN bool dvti_batch_make(const char *function, const dvti_batcher *batcher,
                             const int64_t *index, int64_t n, dvt_array **x, dvt_array **y);

#endif
/* ==== end src/7_train/dvt_train_internal.h ==== */
#ifdef DEVTENSOR_LINES
#line 4 "src/7_train/dvt_batch.c"
#endif

#define DVTI_TABLE_CHANNELS 64

/* The arrays at the bottom, if every transform on the way works pixel by pixel. */
static const dvt_dataset *dvti_bottom(const dvt_dataset *data, bool *as_tensor) {
    const dvt_dataset *bottom;
    if (!data->source)
        return data;
    bottom = dvti_bottom(data->source, as_tensor);
    return bottom && dvti_transform_by_pixel(data->transform, as_tensor) ? bottom : NULL;
}

DVTI_FN void dvti_batcher_begin(dvti_batcher *batcher, dvt_dataset *data) {
    const dvt_dataset *bottom;
    bool as_tensor = false;
    memset(batcher, 0, sizeof *batcher);
    batcher->data = (dvt_dataset *)dvt_retain(data);
    bottom = dvti_bottom(data, &as_tensor);
    if (!bottom || !dvt_is_contiguous(bottom->x) || !dvt_is_contiguous(bottom->y))
        return;
    if (as_tensor && (bottom->x->dtype != DVT_U8 || bottom->x->shape.ndim != 4 ||
                      bottom->x->shape.dim[3] > DVTI_TABLE_CHANNELS))
        return;
    batcher->way = as_tensor ? DVTI_BATCH_TABLE : DVTI_BATCH_ROWS;
    batcher->x = bottom->x;
    batcher->y = bottom->y;
}

DVTI_FN void dvti_batcher_end(dvti_batcher *batcher) {
    dvt_release(batcher->data);
    dvti_free(batcher->table);
    memset(batcher, 0, sizeof *batcher);
}

/* ---- the table: what the transforms make of each of the 256 values of a pixel, per channel ---- */
static dvt_array *dvti_apply_all(const dvt_dataset *data, dvt_array *x) {
    if (!data->source)
        return x;
    x = dvti_apply_all(data->source, x);
    return x ? dvt_transform_apply(data->transform, x) : NULL;
}

/* An image of one column in which row v holds v: the transforms themselves fill the table, so it has their bits. */
static dvt_array *dvti_all_pixels(int64_t channels) {
    dvt_array *x =
        dvti_array_new("dvt_loader_next", DVT_SHAPE(256, 1, channels), DVT_U8, dvt_cpu());
    uint8_t *pixel = x ? (uint8_t *)dvt_data(x) : NULL;
    int64_t i;
    for (i = 0; pixel && i < 256 * channels; i++)
        pixel[i] = (uint8_t)(i / channels);
    return pixel ? x : NULL;
}

DVTI_FN bool dvti_batcher_ready(const char *function, dvti_batcher *batcher) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array *x;
    int64_t channels;
    float *table;
    bool ok;
    if (batcher->way != DVTI_BATCH_TABLE || batcher->table)
        return true;
    channels = batcher->x->shape.dim[3];
    table = (float *)dvti_alloc((size_t)channels * 256 * sizeof *table);
    if (!table) {
        dvti_fail_memory(function, channels * 256 * (int64_t)sizeof *table);
        return false;
    }
    record = dvt_record_begin(0, -1);
    scope = dvt_scope_begin();
    x = dvti_all_pixels(channels);
    x = x ? dvti_apply_all(batcher->data, x) : NULL;
    ok = x && dvti_read(function, x, DVT_F32, table) == DVT_OK;
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    if (ok)
        batcher->table = table;
    else
        dvti_free(table);
    return ok;
}

/* ---- straight into the batch ---- */
/* The shape of n samples: axis 0 replaced. */
static dvt_shape dvti_batch_rows_shape(const dvt_array *all, int64_t n) {
    dvt_shape shape = all->shape;
    shape.dim[0] = n;
    return shape;
}

static dvt_array *dvti_gather_rows(const char *function, const dvt_array *all, const int64_t *index,
                                   int64_t n) {
    dvt_array *batch =
        dvti_array_new(function, dvti_batch_rows_shape(all, n), all->dtype, dvt_cpu());
    const char *from = (const char *)dvti_view_of(all).data;
    size_t row;
    char *to;
    int64_t i;
    if (!batch)
        return NULL;
    to = (char *)dvti_view_of(batch).data;
    row = n ? (size_t)(dvt_nbytes(batch) / n) : 0;
    for (i = 0; row && i < n; i++)
        memcpy(to + (size_t)i * row, from + (size_t)index[i] * row, row);
    return batch;
}

/* (H, W, C) bytes to (C, H, W) floats. */
static void dvti_map_pixels(const uint8_t *from, float *to, const float *table, int64_t pixels,
                            int64_t channels) {
    int64_t c, p;
    for (c = 0; c < channels; c++, to += pixels, table += 256)
        for (p = 0; p < pixels; p++)
            to[p] = table[from[p * channels + c]];
}

static dvt_array *dvti_gather_pixels(const char *function, const dvti_batcher *batcher,
                                     const int64_t *index, int64_t n) {
    const int64_t *dim = batcher->x->shape.dim;
    int64_t pixels = dim[1] * dim[2], size = pixels * dim[3], i;
    dvt_array *batch =
        dvti_array_new(function, DVT_SHAPE(n, dim[3], dim[1], dim[2]), DVT_F32, dvt_cpu());
    const uint8_t *from = (const uint8_t *)dvti_view_of(batcher->x).data;
    float *to;
    if (!batch)
        return NULL;
    to = (float *)dvti_view_of(batch).data;
    for (i = 0; i < n; i++)
        dvti_map_pixels(from + index[i] * size, to + i * size, batcher->table, pixels, dim[3]);
    return batch;
}

/* ---- sample by sample ---- */
/* Samples of one batch must be alike; the first one decides. */
static bool dvti_sample_ok(const char *function, const char *what, const dvt_array *batch,
                           const dvt_array *sample, int64_t first, int64_t i) {
    bool same = batch->dtype == sample->dtype && batch->shape.ndim == sample->shape.ndim + 1;
    int k;
    if (sample->storage->ctx.type != DVT_DEVICE_CPU) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: %s of sample %lld is %s; batches are made in main memory: let the transform "
                  "return an array on cpu(0), and move whole batches",
                  function, what, (long long)i, dvti_describe(sample));
        return false;
    }
    for (k = 0; same && k < sample->shape.ndim; k++)
        same = batch->shape.dim[k + 1] == sample->shape.dim[k];
    if (!same)
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: %s of sample %lld is %s, unlike that of sample %lld in the same batch; "
                  "all samples of a batch must have one shape and dtype",
                  function, what, (long long)i, dvti_describe(sample), (long long)first);
    return same;
}

static dvt_array *dvti_batch_like(const char *function, const dvt_array *sample, int64_t n) {
    dvt_shape shape = sample->shape;
    int k;
    if (shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: a sample is %s; a batch of such would have more than %d axes",
                  function, dvti_describe(sample), DVT_MAX_DIMS);
        return NULL;
    }
    for (k = shape.ndim++; k > 0; k--)
        shape.dim[k] = shape.dim[k - 1];
    shape.dim[0] = n;
    return dvti_array_new(function, shape, sample->dtype, dvt_cpu());
}

static bool dvti_put_sample(const char *function, dvt_array *batch, int64_t at, dvt_array *sample) {
    dvt_array *row = dvti_view_new(function, batch, sample->shape, batch->stride + 1,
                                   batch->offset + at * batch->stride[0]);
    return row && dvti_copy_elements(function, row, sample) == DVT_OK;
}

static bool dvti_stack_samples(const char *function, dvt_dataset *data, const int64_t *index,
                               int64_t n, dvt_array **x, dvt_array **y) {
    dvt_array *sample, *label;
    int64_t i;
    bool ok = true;
    for (i = 0; ok && i < n; i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        ok = dvt_dataset_get(data, index[i], &sample, &label) == DVT_OK;
        if (ok && i == 0) {
            *x = (dvt_array *)dvt_keep(dvti_batch_like(function, sample, n));
            *y = *x ? (dvt_array *)dvt_keep(dvti_batch_like(function, label, n)) : NULL;
            ok = *y != NULL;
        }
        ok = ok && dvti_sample_ok(function, "x", *x, sample, index[0], index[i]) &&
             dvti_sample_ok(function, "y", *y, label, index[0], index[i]) &&
             dvti_put_sample(function, *x, i, sample) && dvti_put_sample(function, *y, i, label);
        dvt_scope_end(&scope);
    }
    return ok;
}

DVTI_FN bool dvti_batch_make(const char *function, const dvti_batcher *batcher,
                             const int64_t *index, int64_t n, dvt_array **x, dvt_array **y) {
    dvt_record_guard record = dvt_record_begin(0, -1);
    dvt_ctx_guard ctx = dvt_ctx_scope_begin(dvt_cpu());
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *samples = NULL, *labels = NULL;
    bool ok;
    if (batcher->way == DVTI_BATCH_SAMPLES) {
        ok = dvti_stack_samples(function, batcher->data, index, n, &samples, &labels);
    } else {
        samples = batcher->way == DVTI_BATCH_TABLE
                      ? dvti_gather_pixels(function, batcher, index, n)
                      : dvti_gather_rows(function, batcher->x, index, n);
        labels = samples ? dvti_gather_rows(function, batcher->y, index, n) : NULL;
        ok = labels != NULL;
    }
    if (ok) {
        *x = (dvt_array *)dvt_keep(samples);
        *y = (dvt_array *)dvt_keep(labels);
    }
    dvt_scope_end(&scope);
    dvt_ctx_scope_end(&ctx);
    dvt_record_end(&record);
    return ok;
}

#undef DVTI_TABLE_CHANNELS
/* ==== end src/7_train/dvt_batch.c ==== */
#ifdef DEVTENSOR_LINES
#line 90 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_clip.c ==== */
/* Clipping by the common norm of several arrays, on any contexts. Source: Pascanu, Mikolov and Bengio, 2013. */
#ifdef DEVTENSOR_LINES
#line 2 "src/7_train/dvt_clip.c"
#endif

/* The norms of those arrays that are on ctx, as float64 on ctx; NULL with the error set. */
static dvt_array *dvti_norms_on(dvt_array *const *arrays, int n, dvt_ctx ctx, dvt_array **norm,
                                int *count) {
    int i;
    *count = 0;
    for (i = 0; i < n; i++)
        if (dvt_ctx_equal(arrays[i]->storage->ctx, ctx)) {
            /* The largest float16 is 65504, less than the norms of many gradients. */
            dvt_dtype wide = arrays[i]->dtype == DVT_F64 ? DVT_F64 : DVT_F32;
            norm[*count] = dvt_astype(dvt_norm(dvt_astype(arrays[i], wide, false), DVT_ALL, false),
                                      DVT_F64, false);
            if (!norm[(*count)++])
                return NULL;
        }
    return dvt_stack(norm, *count, 0);
}

/* One read per context. */
static bool dvti_sum_of_squares(const char *function, dvt_array *const *arrays, int n,
                                dvt_array **norm, double *values, double *sum) {
    int i, k, count;
    *sum = 0;
    for (i = 0; i < n; i++) {
        dvt_array *norms;
        for (k = 0; k < i; k++)
            if (dvt_ctx_equal(arrays[k]->storage->ctx, arrays[i]->storage->ctx))
                break;
        if (k < i)
            continue;
        norms = dvti_norms_on(arrays, n, arrays[i]->storage->ctx, norm, &count);
        if (!norms || dvti_read(function, norms, DVT_F64, values) != DVT_OK)
            return false;
        for (k = 0; k < count; k++)
            *sum += values[k] * values[k];
    }
    return true;
}

DVTI_FN bool dvti_global_norm(const char *function, dvt_array *const *arrays, int n,
                              double max_norm, double *out) {
    size_t room = (size_t)DVTI_MAX(n, 1);
    dvt_array **norm;
    double *values, sum;
    bool ok;
    if (!(max_norm > 0)) {
        dvti_fail(DVT_ERR_RANGE, "%s: max_norm is %g; expected a positive number", function,
                  max_norm);
        return false;
    }
    norm = (dvt_array **)dvti_alloc(room * sizeof *norm);
    values = (double *)dvti_alloc(room * sizeof *values);
    ok = norm && values;
    if (!ok)
        dvti_fail_memory(function, (int64_t)(room * (sizeof *norm + sizeof *values)));
    ok = ok && dvti_sum_of_squares(function, arrays, n, norm, values, &sum);
    if (ok)
        *out = sqrt(sum);
    dvti_free(norm);
    dvti_free(values);
    return ok;
}

DVTI_FN bool dvti_clip_to_norm(const char *function, dvt_array *const *arrays, int n, double norm,
                               double max_norm) {
    double scale = max_norm / (norm + 1e-8);
    int i;
    if (!(norm <= DBL_MAX)) {
        dvti_log(DVT_LOG_WARNING,
                 "%s: the norm is %g, so the arrays are left as they are; a NaN or an infinity is "
                 "among their elements",
                 function, norm);
        return true;
    }
    for (i = 0; i < n && scale < 1; i++)
        if (!dvt_mul_scalar_(arrays[i], scale))
            return false;
    return true;
}

static bool dvti_clip_check(const char *function, dvt_array *const *arrays, int n) {
    int i;
    if (n < 0 || (n > 0 && !arrays)) {
        if (n < 0)
            dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected 0 or more", function, n);
        else
            dvti_null(function, "arrays");
        return false;
    }
    for (i = 0; i < n; i++) {
        if (!arrays[i]) {
            dvti_null(function, "one of the arrays");
            return false;
        }
        if (!dvt_dtype_is_float(arrays[i]->dtype)) {
            dvti_fail(DVT_ERR_DTYPE, "%s: array %d is %s; expected floats", function, i,
                      dvti_describe(arrays[i]));
            return false;
        }
        if (!dvti_writable(function, arrays[i]))
            return false;
    }
    return true;
}

DVT_API double dvt_clip_global_norm(dvt_array *const *arrays, int n, double max_norm) {
    static const char *const function = "dvt_clip_global_norm";
    double norm = (double)NAN;
    dvt_record_guard record;
    dvt_scope_guard scope;
    if (!dvti_clip_check(function, arrays, n))
        return norm;
    record = dvt_record_begin(0, -1);
    scope = dvt_scope_begin();
    if (!dvti_global_norm(function, arrays, n, max_norm, &norm) ||
        !dvti_clip_to_norm(function, arrays, n, norm, max_norm))
        norm = (double)NAN;
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return norm;
}
/* ==== end src/7_train/dvt_clip.c ==== */
#ifdef DEVTENSOR_LINES
#line 91 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_curve.c ==== */
/* Training curves as an SVG picture: axes with round ticks, one line per series, a legend. The text depends on the points only:
   no dates, no locale. Points with a NaN or an infinity are not drawn. */
#ifdef DEVTENSOR_LINES
#line 4 "src/7_train/dvt_curve.c"
#endif

/* The rectangle of the axes, in a picture of 720 x 420 pixels. */
#define DVTI_CURVE_LEFT 72
#define DVTI_CURVE_RIGHT 560
#define DVTI_CURVE_TOP 44
#define DVTI_CURVE_BOTTOM 364
/* Lines with at most so many points show them as dots. */
#define DVTI_CURVE_DOTS 50
/* What is larger cannot be drawn: differences of such numbers overflow. */
#define DVTI_CURVE_LARGEST 1e300

typedef struct dvti_series {
    char *name;
    double *x, *y;
    size_t n, x_capacity, y_capacity;
} dvti_series;

struct dvt_curve {
    dvti_object object;
    char *title, *x_label, *y_label;
    dvti_series *series;
    size_t n, capacity;
};

static void dvti_curve_destroy(void *object) {
    dvt_curve *curve = (dvt_curve *)object;
    size_t i;
    for (i = 0; i < curve->n; i++) {
        dvti_free(curve->series[i].name);
        dvti_free(curve->series[i].x);
        dvti_free(curve->series[i].y);
    }
    dvti_free(curve->series);
    dvti_free(curve->title);
    dvti_free(curve->x_label);
    dvti_free(curve->y_label);
    dvti_free(curve);
}

DVT_API dvt_curve *dvt_curve_new(const char *title, const char *x_label, const char *y_label) {
    dvt_curve *curve = (dvt_curve *)dvti_alloc_zero(sizeof *curve);
    bool ok = curve != NULL;
    if (ok) {
        curve->title = dvti_strdup(title ? title : "");
        curve->x_label = dvti_strdup(x_label ? x_label : "");
        curve->y_label = dvti_strdup(y_label ? y_label : "");
        ok = curve->title && curve->x_label && curve->y_label;
    }
    if (!ok)
        dvti_fail_memory("dvt_curve_new", (int64_t)sizeof *curve);
    if (!ok || !dvti_object_begin(curve, dvti_curve_destroy, "dvt_curve_new")) {
        if (curve)
            dvti_curve_destroy(curve);
        return NULL;
    }
    return curve;
}

static dvti_series *dvti_curve_series(dvt_curve *curve, const char *name) {
    dvti_series *series;
    size_t i;
    for (i = 0; i < curve->n; i++)
        if (strcmp(curve->series[i].name, name) == 0)
            return &curve->series[i];
    if (!dvti_grow((void **)&curve->series, &curve->capacity, curve->n + 1, sizeof *series))
        return NULL;
    series = &curve->series[curve->n];
    memset(series, 0, sizeof *series);
    series->name = dvti_strdup(name);
    if (!series->name)
        return NULL;
    curve->n++;
    return series;
}

DVT_API dvt_status dvt_curve_add(dvt_curve *curve, const char *series, double x, double y) {
    dvti_series *s;
    if (!curve || !series)
        return dvti_null("dvt_curve_add", curve ? "series" : "curve");
    s = dvti_curve_series(curve, series);
    if (!s || !dvti_grow((void **)&s->x, &s->x_capacity, s->n + 1, sizeof *s->x) ||
        !dvti_grow((void **)&s->y, &s->y_capacity, s->n + 1, sizeof *s->y))
        return dvti_fail_memory("dvt_curve_add", (int64_t)sizeof *s);
    if (!(fabs(x) <= DVTI_CURVE_LARGEST) || !(fabs(y) <= DVTI_CURVE_LARGEST))
        return DVT_OK;
    s->x[s->n] = x;
    s->y[s->n++] = y;
    return DVT_OK;
}

/* ---- axes ---- */
typedef struct dvti_scale {
    double low, high, step;
    int ticks; /* steps from low to high */
} dvti_scale;

/* The next of 1, 2, 5 times a power of ten. */
static double dvti_round_step(double rough) {
    double power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* Round bounds around what is to be drawn; a single value gets some room. */
static dvti_scale dvti_scale_make(double low, double high) {
    dvti_scale scale;
    double least;
    if (!(low <= high)) { /* no points */
        low = 0;
        high = 1;
    }
    least = 1e-9 * DVTI_MAX(fabs(low), fabs(high));
    if (high - low <= DVTI_MAX(least, 1e-300)) {
        double room = DVTI_MAX(0.1 * fabs(low), least > 0 ? least : 0.5);
        low -= room;
        high += room;
    }
    scale.step = dvti_round_step((high - low) / 6);
    scale.low = floor(low / scale.step) * scale.step;
    scale.ticks = (int)ceil((high - scale.low) / scale.step - 1e-9);
    scale.ticks = DVTI_MAX(scale.ticks, 1);
    scale.high = scale.low + scale.ticks * scale.step;
    return scale;
}

static void dvti_curve_scales(const dvt_curve *curve, dvti_scale *x, dvti_scale *y) {
    double x_low = HUGE_VAL, x_high = -HUGE_VAL, y_low = HUGE_VAL, y_high = -HUGE_VAL;
    size_t i, k;
    for (i = 0; i < curve->n; i++)
        for (k = 0; k < curve->series[i].n; k++) {
            x_low = DVTI_MIN(x_low, curve->series[i].x[k]);
            x_high = DVTI_MAX(x_high, curve->series[i].x[k]);
            y_low = DVTI_MIN(y_low, curve->series[i].y[k]);
            y_high = DVTI_MAX(y_high, curve->series[i].y[k]);
        }
    *x = dvti_scale_make(x_low, x_high);
    *y = dvti_scale_make(y_low, y_high);
}

/* ---- text ---- */
/* |value| * 10^decimals below 2^53. printf would follow the locale. */
static void dvti_svg_fixed(dvti_writer *out, double value, int decimals) {
    int64_t unit = 1, number;
    int i;
    for (i = 0; i < decimals; i++)
        unit *= 10;
    number = (int64_t)(fabs(value) * (double)unit + 0.5);
    if (value < 0 && number)
        dvti_writer_text(out, "-");
    dvti_writer_int(out, number / unit);
    for (number %= unit, i = 0; i < decimals; i++) {
        unit /= 10;
        if (i == 0)
            dvti_writer_text(out, ".");
        dvti_writer_int(out, number / unit);
        number %= unit;
    }
}

/* A tick's value with as many decimals as its step needs; large and small ones as 1.5e9. */
static void dvti_svg_value(dvti_writer *out, double value, const dvti_scale *scale) {
    double largest = DVTI_MAX(fabs(scale->low), fabs(scale->high));
    int step = (int)floor(log10(scale->step) + 1e-9), top = (int)floor(log10(largest) + 1e-9);
    if (top < 7 && step > -6) {
        dvti_svg_fixed(out, value, step < 0 ? -step : 0);
    } else if (fabs(value) < scale->step / 2) {
        dvti_writer_text(out, "0");
    } else {
        /* In two steps: 10^top may itself be too small or too large. */
        double part = value / pow(10, top / 2) / pow(10, top - top / 2);
        dvti_svg_fixed(out, part, DVTI_MAX(0, DVTI_MIN(top - step, 9)));
        dvti_writer_text(out, "e");
        dvti_writer_int(out, top);
    }
}

/* The length of the UTF-8 character at `at`, 0 when it is none or XML 1.0 forbids it. */
static int dvti_utf8_length(const unsigned char *at) {
    uint32_t c = at[0], least;
    int n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0, i;
    if (n < 2)
        return n && (c >= 0x20 || c == '\t' || c == '\n' || c == '\r') ? 1 : 0;
    least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
    c &= 0x7Fu >> n;
    for (i = 1; i < n; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3Fu);
    }
    return c < least || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) || c == 0xFFFE || c == 0xFFFF
               ? 0
               : n;
}

static void dvti_svg_escape(dvti_writer *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        int n = dvti_utf8_length(at);
        if (*at == '&')
            dvti_writer_text(out, "&amp;");
        else if (*at == '<')
            dvti_writer_text(out, "&lt;");
        else if (*at == '>')
            dvti_writer_text(out, "&gt;");
        else if (*at == '"')
            dvti_writer_text(out, "&quot;");
        else if (n)
            dvti_writer_bytes(out, at, (size_t)n);
        else
            dvti_writer_text(out, "?");
        at += n ? n : 1;
    }
}

/* <text x= y= attributes>content</text> */
static void dvti_svg_text(dvti_writer *out, double x, double y, const char *attributes,
                          const char *content) {
    dvti_writer_text(out, "<text x=\"");
    dvti_svg_fixed(out, x, 2);
    dvti_writer_text(out, "\" y=\"");
    dvti_svg_fixed(out, y, 2);
    dvti_writer_text(out, "\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, ">");
    dvti_svg_escape(out, content);
    dvti_writer_text(out, "</text>\n");
}

static void dvti_svg_line(dvti_writer *out, double x1, double y1, double x2, double y2,
                          const char *attributes) {
    dvti_writer_text(out, "<path d=\"M");
    dvti_svg_fixed(out, x1, 2);
    dvti_writer_text(out, " ");
    dvti_svg_fixed(out, y1, 2);
    dvti_writer_text(out, " L");
    dvti_svg_fixed(out, x2, 2);
    dvti_writer_text(out, " ");
    dvti_svg_fixed(out, y2, 2);
    dvti_writer_text(out, "\" fill=\"none\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, "/>\n");
}

/* ---- the parts of the picture ---- */
static double dvti_curve_x(const dvti_scale *scale, double x) {
    return DVTI_CURVE_LEFT +
           (x - scale->low) / (scale->high - scale->low) * (DVTI_CURVE_RIGHT - DVTI_CURVE_LEFT);
}

static double dvti_curve_y(const dvti_scale *scale, double y) {
    return DVTI_CURVE_BOTTOM -
           (y - scale->low) / (scale->high - scale->low) * (DVTI_CURVE_BOTTOM - DVTI_CURVE_TOP);
}

static void dvti_svg_tick(dvti_writer *out, double x, double y, const char *attributes,
                          double value, const dvti_scale *scale) {
    dvti_writer_text(out, "<text x=\"");
    dvti_svg_fixed(out, x, 2);
    dvti_writer_text(out, "\" y=\"");
    dvti_svg_fixed(out, y, 2);
    dvti_writer_text(out, attributes);
    dvti_svg_value(out, value, scale);
    dvti_writer_text(out, "</text>\n");
}

static void dvti_svg_axes(dvti_writer *out, const dvt_curve *curve, const dvti_scale *x,
                          const dvti_scale *y) {
    static const char *const grid = " stroke=\"#dddddd\"";
    int i;
    for (i = 0; i <= x->ticks; i++) {
        double value = x->low + i * x->step, at = dvti_curve_x(x, value);
        dvti_svg_line(out, at, DVTI_CURVE_TOP, at, DVTI_CURVE_BOTTOM, grid);
        dvti_svg_tick(out, at, DVTI_CURVE_BOTTOM + 18, "\" text-anchor=\"middle\">", value, x);
    }
    for (i = 0; i <= y->ticks; i++) {
        double value = y->low + i * y->step, at = dvti_curve_y(y, value);
        dvti_svg_line(out, DVTI_CURVE_LEFT, at, DVTI_CURVE_RIGHT, at, grid);
        dvti_svg_tick(out, DVTI_CURVE_LEFT - 8, at + 4, "\" text-anchor=\"end\">", value, y);
    }
    dvti_svg_line(out, DVTI_CURVE_LEFT, DVTI_CURVE_BOTTOM, DVTI_CURVE_RIGHT, DVTI_CURVE_BOTTOM,
                  " stroke=\"#333333\"");
    dvti_svg_line(out, DVTI_CURVE_LEFT, DVTI_CURVE_TOP, DVTI_CURVE_LEFT, DVTI_CURVE_BOTTOM,
                  " stroke=\"#333333\"");
    dvti_svg_text(out, (DVTI_CURVE_LEFT + DVTI_CURVE_RIGHT) / 2.0, 26,
                  " text-anchor=\"middle\" font-size=\"16\"", curve->title);
    dvti_svg_text(out, (DVTI_CURVE_LEFT + DVTI_CURVE_RIGHT) / 2.0, DVTI_CURVE_BOTTOM + 42,
                  " text-anchor=\"middle\"", curve->x_label);
    /* Turned around the origin, so x runs upwards. */
    dvti_svg_text(out, -(DVTI_CURVE_TOP + DVTI_CURVE_BOTTOM) / 2.0, 18,
                  " text-anchor=\"middle\" transform=\"rotate(-90)\"", curve->y_label);
}

static void dvti_svg_series(dvti_writer *out, const dvti_series *series, const dvti_scale *x,
                            const dvti_scale *y, const char *attributes, const char *colour) {
    size_t i;
    dvti_writer_text(out, "<polyline fill=\"none\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, " points=\"");
    for (i = 0; i < series->n; i++) {
        if (i)
            dvti_writer_text(out, i % 8 ? " " : "\n");
        dvti_svg_fixed(out, dvti_curve_x(x, series->x[i]), 2);
        dvti_writer_text(out, ",");
        dvti_svg_fixed(out, dvti_curve_y(y, series->y[i]), 2);
    }
    dvti_writer_text(out, "\"/>\n");
    for (i = 0; series->n <= DVTI_CURVE_DOTS && i < series->n; i++) {
        dvti_writer_text(out, "<circle r=\"2.5\" fill=\"");
        dvti_writer_text(out, colour);
        dvti_writer_text(out, "\" cx=\"");
        dvti_svg_fixed(out, dvti_curve_x(x, series->x[i]), 2);
        dvti_writer_text(out, "\" cy=\"");
        dvti_svg_fixed(out, dvti_curve_y(y, series->y[i]), 2);
        dvti_writer_text(out, "\"/>\n");
    }
}

static void dvti_svg_write(dvti_writer *out, const dvt_curve *curve) {
    /* Colours that stay apart for colour-blind eyes. Source: Okabe and Ito, 2008. */
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#000000"};
    static const char *const dashes[] = {"", " stroke-dasharray=\"6 3\"",
                                         " stroke-dasharray=\"2 3\""};
    dvti_scale x, y;
    size_t i;
    dvti_curve_scales(curve, &x, &y);
    dvti_writer_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"420\" "
                          "viewBox=\"0 0 720 420\" font-family=\"sans-serif\" font-size=\"12\">\n"
                          "<rect width=\"720\" height=\"420\" fill=\"#ffffff\"/>\n");
    dvti_svg_axes(out, curve, &x, &y);
    for (i = 0; i < curve->n; i++) {
        const char *colour = colours[i % (size_t)DVTI_LENGTH(colours)];
        double at = DVTI_CURVE_TOP + 12 + 20.0 * (double)i;
        char attributes[96];
        snprintf(attributes, sizeof attributes, " stroke=\"%s\" stroke-width=\"2\"%s", colour,
                 dashes[i / (size_t)DVTI_LENGTH(colours) % (size_t)DVTI_LENGTH(dashes)]);
        dvti_svg_series(out, &curve->series[i], &x, &y, attributes, colour);
        dvti_svg_line(out, DVTI_CURVE_RIGHT + 16, at, DVTI_CURVE_RIGHT + 40, at, attributes);
        dvti_svg_text(out, DVTI_CURVE_RIGHT + 46, at + 4, "", curve->series[i].name);
    }
    dvti_writer_text(out, "</svg>\n");
}

DVT_API dvt_status dvt_curve_save(dvt_curve *curve, const char *path) {
    static const char *const function = "dvt_curve_save";
    dvti_writer text;
    dvti_file_out file;
    dvt_status status;
    if (!curve || !path)
        return dvti_null(function, curve ? "path" : "curve");
    text = dvti_writer_begin();
    dvti_svg_write(&text, curve);
    if (text.failed) {
        status = dvti_fail_memory(function, (int64_t)text.length);
    } else if (!dvti_file_begin(&file, function, path)) {
        status = dvt_error_code();
    } else {
        dvti_file_write(&file, text.at, text.length);
        status = dvti_file_end(&file, true);
    }
    dvti_writer_free(&text);
    return status;
}

#undef DVTI_CURVE_LEFT
#undef DVTI_CURVE_RIGHT
#undef DVTI_CURVE_TOP
#undef DVTI_CURVE_BOTTOM
#undef DVTI_CURVE_DOTS
#undef DVTI_CURVE_LARGEST
/* ==== end src/7_train/dvt_curve.c ==== */
#ifdef DEVTENSOR_LINES
#line 92 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_dataset.c ==== */
/* Datasets: two arrays in main memory, image and label files of MNIST's kind, and a transform on top of another dataset.
   Immutable once made, so loader threads share them. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_dataset.c"
#endif

static void dvti_dataset_destroy(void *object) {
    dvt_dataset *data = (dvt_dataset *)object;
    dvt_release(data->x);
    dvt_release(data->y);
    dvt_release(data->source);
    dvt_release(data->transform);
    dvti_free(data);
}

static dvt_dataset *dvti_dataset_new(const char *function, int64_t length) {
    dvt_dataset *data = (dvt_dataset *)dvti_alloc_zero(sizeof *data);
    if (!data) {
        dvti_fail_memory(function, (int64_t)sizeof *data);
        return NULL;
    }
    if (!dvti_object_begin(data, dvti_dataset_destroy, function)) {
        dvti_free(data);
        return NULL;
    }
    data->length = length;
    return data;
}

static bool dvti_dataset_part_ok(const char *function, const char *what, dvt_array *part) {
    if (!part) {
        dvti_null(function, what);
        return false;
    }
    if (part->storage->ctx.type != DVT_DEVICE_CPU) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: %s is %s; samples are kept in main memory: copy it with "
                  "dvt_copyto(%s, dvt_cpu())",
                  function, what, dvti_describe(part), what);
        return false;
    }
    if (part->shape.ndim < 1) {
        dvti_fail(DVT_ERR_SHAPE, "%s: %s is %s; expected one sample per entry of axis 0", function,
                  what, dvti_describe(part));
        return false;
    }
    return true;
}

DVT_API dvt_dataset *dvt_dataset_arrays(dvt_array *x, dvt_array *y) {
    static const char *const function = "dvt_dataset_arrays";
    dvt_dataset *data;
    if (!dvti_dataset_part_ok(function, "x", x) || !dvti_dataset_part_ok(function, "y", y))
        return NULL;
    if (x->shape.dim[0] != y->shape.dim[0]) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s and y is %s; expected as many samples as labels",
                  function, dvti_describe(x), dvti_describe(y));
        return NULL;
    }
    data = dvti_dataset_new(function, x->shape.dim[0]);
    if (data) {
        data->x = (dvt_array *)dvt_retain(x);
        data->y = (dvt_array *)dvt_retain(y);
    }
    return data;
}

DVT_API dvt_dataset *dvt_transform_first(dvt_dataset *data, dvt_transform *transform) {
    dvt_dataset *result;
    if (!data || !transform) {
        dvti_null("dvt_transform_first", data ? "transform" : "data");
        return NULL;
    }
    result = dvti_dataset_new("dvt_transform_first", data->length);
    if (result) {
        result->source = (dvt_dataset *)dvt_retain(data);
        result->transform = (dvt_transform *)dvt_retain(transform);
    }
    return result;
}

DVT_API int64_t dvt_dataset_len(const dvt_dataset *data) {
    return data ? data->length : 0;
}

static bool dvti_dataset_sample(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y) {
    if (!data->source) {
        *x = dvt_index(data->x, i);
        *y = dvt_index(data->y, i);
        return *x && *y;
    }
    if (!dvti_dataset_sample(data->source, i, x, y))
        return false;
    *x = dvt_transform_apply(data->transform, *x);
    return *x != NULL;
}

DVT_API dvt_status dvt_dataset_get(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y) {
    dvt_array *sample = NULL, *label = NULL;
    dvt_scope_guard scope;
    bool ok;
    if (x)
        *x = NULL;
    if (y)
        *y = NULL;
    if (!data || !x || !y)
        return dvti_null("dvt_dataset_get", !data ? "data" : !x ? "x" : "y");
    if (i < 0 || i >= data->length)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_dataset_get: sample %lld of %lld; expected 0 or more and less than "
                         "that",
                         (long long)i, (long long)data->length);
    scope = dvt_scope_begin();
    ok = dvti_dataset_sample(data, i, &sample, &label);
    if (ok) {
        *x = (dvt_array *)dvt_keep(sample);
        *y = (dvt_array *)dvt_keep(label);
    }
    dvt_scope_end(&scope);
    return ok ? DVT_OK : dvt_error_code();
}

/* ---- files of MNIST's kind ---- */
/* The images as (N, H, W, 1), the labels as int32. */
static dvt_dataset *dvti_dataset_of_idx(const char *function, const char *images,
                                        const char *labels, int64_t classes) {
    dvt_array *x = dvt_load_idx(images, dvt_cpu());
    dvt_array *y = x ? dvt_load_idx(labels, dvt_cpu()) : NULL;
    const int32_t *label;
    int64_t i;
    if (!x || !y)
        return NULL;
    if (x->dtype != DVT_U8 || x->shape.ndim != 3) {
        dvti_fail(DVT_ERR_FORMAT, "%s: %s holds %s; expected uint8 images (N, height, width)",
                  function, images, dvti_describe(x));
        return NULL;
    }
    if (!dvt_dtype_is_int(y->dtype) || y->shape.ndim != 1) {
        dvti_fail(DVT_ERR_FORMAT, "%s: %s holds %s; expected whole numbers (N,)", function, labels,
                  dvti_describe(y));
        return NULL;
    }
    if (x->shape.dim[0] != y->shape.dim[0]) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: %s holds %lld images and %s holds %lld labels; expected files that belong "
                  "together",
                  function, images, (long long)x->shape.dim[0], labels, (long long)y->shape.dim[0]);
        return NULL;
    }
    y = dvt_astype(y, DVT_I32, false);
    x = dvt_expand_dims(x, -1);
    label = y ? (const int32_t *)dvt_data(y) : NULL;
    if (!x || !label)
        return NULL;
    for (i = 0; i < y->shape.dim[0]; i++)
        if (label[i] < 0 || (classes && label[i] >= classes)) {
            dvti_fail(DVT_ERR_FORMAT, "%s: label %lld of %s is %d; expected 0 to %lld", function,
                      (long long)i, labels, (int)label[i],
                      (long long)(classes ? classes - 1 : INT32_MAX));
            return NULL;
        }
    return dvt_dataset_arrays(x, y);
}

static dvt_dataset *dvti_dataset_of_files(const char *function, const char *images,
                                          const char *labels, int64_t classes) {
    dvt_record_guard record = dvt_record_begin(0, -1);
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_dataset *data =
        (dvt_dataset *)dvt_keep(dvti_dataset_of_idx(function, images, labels, classes));
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return data;
}

DVT_API dvt_dataset *dvt_dataset_idx(const char *images, const char *labels) {
    if (!images || !labels) {
        dvti_null("dvt_dataset_idx", images ? "labels" : "images");
        return NULL;
    }
    return dvti_dataset_of_files("dvt_dataset_idx", images, labels, 0);
}

#if !defined(DEVTENSOR_NO_FILES)
/* "folder/fashion-train-images-idx3-ubyte.gz", or with the other spellings; false when none is there. */
static bool dvti_find_idx(char *path, size_t size, const char *folder, const char *prefix,
                          const char *name) {
    static const char *const ends[] = {".gz", ""};
    int i;
    for (i = 0; i < DVTI_LENGTH(ends); i++) {
        FILE *file;
        int length = snprintf(path, size, "%s/%s%s%s", folder, prefix, name, ends[i]);
        if (length < 0 || (size_t)length >= size)
            continue;
        file = fopen(path, "rb");
        if (file) {
            fclose(file);
            return true;
        }
    }
    return false;
}

static dvt_dataset *dvti_dataset_find(const char *function, const char *folder, const char *prefix,
                                      bool train) {
    const char *images = train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
    const char *labels = train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
    const char *prefixes[2];
    dvt_dataset *data = NULL;
    bool found = false;
    size_t size;
    char *path;
    int i;
    if (!folder) {
        dvti_null(function, "folder");
        return NULL;
    }
    size = strlen(folder) + strlen(prefix) + 64;
    path = (char *)dvti_alloc(2 * size);
    if (!path) {
        dvti_fail_memory(function, (int64_t)(2 * size));
        return NULL;
    }
    prefixes[0] = prefix;
    prefixes[1] = "";
    /* Images and labels must agree on the prefix: a folder may hold both data sets. */
    for (i = 0; i < 2 && !found; i++)
        found = dvti_find_idx(path, size, folder, prefixes[i], images) &&
                dvti_find_idx(path + size, size, folder, prefixes[i], labels);
    if (found)
        data = dvti_dataset_of_files(function, path, path + size, 10);
    else
        dvti_fail(DVT_ERR_IO,
                  "%s: no data in \"%s\"; looked for %s%s and %s%s, with and without .gz and "
                  "\"%s\": put the files there, or name another folder (nothing is downloaded)",
                  function, folder, prefix, images, prefix, labels, prefix);
    dvti_free(path);
    return data;
}
#else
static dvt_dataset *dvti_dataset_find(const char *function, const char *folder, const char *prefix,
                                      bool train) {
    (void)folder;
    (void)prefix;
    (void)train;
    dvti_fail(DVT_ERR_NOT_BUILT, "%s: left out of this build by DEVTENSOR_NO_FILES", function);
    return NULL;
}
#endif

DVT_API dvt_dataset *dvt_fashion_mnist(const char *folder, bool train) {
    return dvti_dataset_find("dvt_fashion_mnist", folder, "fashion-", train);
}

DVT_API dvt_dataset *dvt_mnist(const char *folder, bool train) {
    return dvti_dataset_find("dvt_mnist", folder, "mnist-", train);
}
/* ==== end src/7_train/dvt_dataset.c ==== */
#ifdef DEVTENSOR_LINES
#line 93 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_loader.c ==== */
/* The loader: the order of an epoch, and batches in that order. Worker threads make batches ahead into a ring of places; the
   caller takes them out in order, so that their number changes nothing but the speed. */
#ifdef DEVTENSOR_LINES
#line 4 "src/7_train/dvt_loader.c"
#endif

#define DVTI_MAX_WORKERS 64

typedef enum dvti_made_state { DVTI_MADE_EMPTY, DVTI_MADE_READY, DVTI_MADE_FAILED } dvti_made_state;

/* A batch that a worker made, or why it could not. */
typedef struct dvti_made {
    dvti_made_state state;
    dvt_array *x, *y; /* owned */
    dvt_status status;
    char message[1024];
} dvti_made;

typedef struct dvti_worker {
    dvt_loader *loader;
#if DVTI_THREADS
    dvti_thread thread;
#endif
    int64_t *index; /* the samples of its batch: the order may change while it works */
    size_t capacity;
} dvti_worker;

struct dvt_loader {
    dvti_object object;
    dvt_loader_desc desc;
    dvti_batcher batcher;
    int64_t epoch;
    int64_t *order; /* the samples of this epoch; what the last one left over stands first */
    size_t order_capacity;
    int64_t order_length, batches, taken;
    bool open; /* an epoch has begun; the rest is about workers */
    dvti_mutex lock;
    dvti_cond work, done;
    int64_t making;     /* the next batch that a worker will begin */
    int64_t generation; /* batches that were begun under another one are thrown away */
    bool tried, stop;
    int started, places;
    int64_t process;
    dvti_worker *worker;
    dvti_made *place;
};

/* ---- the order of an epoch ---- */
/* Source: Fisher and Yates. Depends on nothing but the seed and the epoch. */
static void dvti_shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch) {
    uint32_t key[2], counter[4], word[4];
    int64_t i;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    counter[2] = (uint32_t)epoch;
    counter[3] = (uint32_t)((uint64_t)epoch >> 32);
    for (i = n - 1; i > 0; i--) {
        int64_t j, held = order[i];
        counter[0] = (uint32_t)i;
        counter[1] = (uint32_t)((uint64_t)i >> 32);
        dvti_philox4x32(counter, key, word);
        j = (int64_t)dvti_mulhi64((uint64_t)word[0] << 32 | word[1], (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = held;
    }
}

/* Samples of the last epoch that the next one begins with. */
static int64_t dvti_left_over(const dvt_loader *l) {
    return l->desc.last_batch == DVT_LAST_ROLLOVER ? l->order_length % l->desc.batch_size : 0;
}

static int64_t dvti_batches_of(const dvt_loader *l, int64_t samples) {
    int64_t size = l->desc.batch_size;
    return samples / size + (l->desc.last_batch == DVT_LAST_KEEP && samples % size ? 1 : 0);
}

/* Nothing changes when there is no memory for it. */
static bool dvti_epoch_open(dvt_loader *l) {
    int64_t n = l->batcher.data->length, left = dvti_left_over(l), i;
    if (n > INT64_MAX / 16 - left ||
        !dvti_grow((void **)&l->order, &l->order_capacity, (size_t)(left + n), sizeof *l->order)) {
        dvti_fail_memory("dvt_loader_next", n);
        return false;
    }
    if (left)
        memmove(l->order, l->order + (l->order_length - left), (size_t)left * sizeof *l->order);
    for (i = 0; i < n; i++)
        l->order[left + i] = i;
    if (l->desc.shuffle)
        dvti_shuffle(l->order + left, n, l->desc.seed, l->epoch);
    l->order_length = left + n;
    l->batches = dvti_batches_of(l, left + n);
    l->taken = l->making = 0;
    l->open = true;
    return true;
}

static int64_t dvti_batch_length(const dvt_loader *l, int64_t batch) {
    return DVTI_MIN(l->desc.batch_size, l->order_length - batch * l->desc.batch_size);
}

/* ---- workers; what they share with the caller is touched with the lock held ---- */
/* Empties the ring and begins again at the batch that is to be taken next. */
static void dvti_ring_restart(dvt_loader *l) {
    int i;
    for (i = 0; i < l->places; i++) {
        dvt_release(l->place[i].x);
        dvt_release(l->place[i].y);
        l->place[i].x = l->place[i].y = NULL;
        l->place[i].state = DVTI_MADE_EMPTY;
    }
    l->generation++;
    l->making = l->taken;
}

#if DVTI_THREADS
static void dvti_worker_make(dvti_worker *w, int64_t n, dvti_made *made) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_clear_error();
    memset(made, 0, sizeof *made);
    made->state = DVTI_MADE_FAILED;
    if (dvti_batch_make("dvt_loader_next", &w->loader->batcher, w->index, n, &made->x, &made->y)) {
        dvt_retain(made->x);
        dvt_retain(made->y);
        made->state = DVTI_MADE_READY;
    } else {
        made->x = made->y = NULL;
        made->status = dvt_error_code();
        snprintf(made->message, sizeof made->message, "%s", dvt_error());
    }
    dvt_scope_end(&scope);
}

/* Takes the samples of the next batch; false when there is no memory for their numbers. */
static bool dvti_worker_begin(dvti_worker *w, int64_t batch, int64_t n) {
    const dvt_loader *l = w->loader;
    if (!dvti_grow((void **)&w->index, &w->capacity, (size_t)n, sizeof *w->index))
        return false;
    memcpy(w->index, l->order + batch * l->desc.batch_size, (size_t)n * sizeof *w->index);
    return true;
}

static void dvti_worker_run(void *user) {
    dvti_worker *w = (dvti_worker *)user;
    dvt_loader *l = w->loader;
    dvti_made made;
    dvti_parallel_off();
    dvti_mutex_lock(&l->lock);
    for (;;) {
        int64_t batch, n, generation;
        while (!l->stop && !(l->open && l->making < l->batches && l->making < l->taken + l->places))
            dvti_cond_wait(&l->work, &l->lock);
        if (l->stop)
            break;
        batch = l->making++;
        n = dvti_batch_length(l, batch);
        generation = l->generation;
        if (dvti_worker_begin(w, batch, n)) {
            dvti_mutex_unlock(&l->lock);
            dvti_worker_make(w, n, &made);
            dvti_mutex_lock(&l->lock);
        } else {
            memset(&made, 0, sizeof made);
            made.state = DVTI_MADE_FAILED;
            made.status = DVT_ERR_HOST_MEMORY;
            snprintf(made.message, sizeof made.message,
                     "dvt_loader_next: no main memory left for the numbers of a batch's samples");
        }
        if (generation == l->generation) {
            l->place[batch % l->places] = made;
            dvti_cond_broadcast(&l->done);
        } else {
            dvt_release(made.x);
            dvt_release(made.y);
        }
    }
    dvti_mutex_unlock(&l->lock);
}

/* Starts the workers at the first batch. With fewer than were asked for, or none, only the speed differs. */
static bool dvti_workers_start(dvt_loader *l) {
    int n = l->desc.num_workers, i;
    if (l->tried || n == 0)
        return true;
    l->worker = (dvti_worker *)dvti_alloc_zero((size_t)n * sizeof *l->worker);
    l->place = (dvti_made *)dvti_alloc_zero((size_t)n * 2 * sizeof *l->place);
    if (!l->worker || !l->place) {
        dvti_free(l->worker);
        dvti_free(l->place);
        l->worker = NULL;
        l->place = NULL;
        dvti_fail_memory("dvt_loader_next",
                         n * (int64_t)(sizeof *l->worker + 2 * sizeof *l->place));
        return false;
    }
    l->tried = true;
    l->places = 2 * n;
    l->process = dvti_process_id();
    for (i = 0; i < n; i++) {
        l->worker[i].loader = l;
        if (!dvti_thread_start(&l->worker[i].thread, dvti_worker_run, &l->worker[i]))
            break;
        l->started++;
    }
    if (l->started < n)
        dvti_log(DVT_LOG_WARNING, "dvt_loader_next: only %d of %d worker threads could be started",
                 l->started, n);
    return true;
}

static void dvti_workers_stop(dvt_loader *l) {
    int i;
    dvti_mutex_lock(&l->lock);
    l->stop = true;
    dvti_cond_broadcast(&l->work);
    dvti_mutex_unlock(&l->lock);
    for (i = 0; i < l->started; i++)
        dvti_thread_join(l->worker[i].thread);
    l->started = 0;
}

/* A forked child has none of the threads, and nobody in it holds the lock: it goes on without them. */
static void dvti_workers_forget(dvt_loader *l) {
    static const dvti_mutex unlocked = DVTI_MUTEX_INIT;
    if (!l->started || l->process == dvti_process_id())
        return;
    memcpy(&l->lock, &unlocked, sizeof unlocked);
    l->started = 0;
    dvti_ring_restart(l);
}

/* Both arrays into the caller's scope, or neither. */
static bool dvti_made_give(dvti_made *place) {
    if (!dvti_scope_give(place->x))
        return false;
    if (!dvti_scope_give(place->y)) {
        dvti_scope_take(place->x);
        return false;
    }
    return true;
}

/* The next batch out of the ring. A batch that failed is begun again at the next call. */
static bool dvti_ring_take(dvt_loader *l, dvt_array **x, dvt_array **y) {
    dvti_made *place = &l->place[l->taken % l->places];
    char message[sizeof place->message];
    dvt_status status = DVT_OK;
    dvti_mutex_lock(&l->lock);
    dvti_cond_broadcast(&l->work);
    while (place->state == DVTI_MADE_EMPTY)
        dvti_cond_wait(&l->done, &l->lock);
    if (place->state == DVTI_MADE_FAILED) {
        status = place->status;
        memcpy(message, place->message, sizeof message);
        dvti_ring_restart(l);
    } else if (!dvti_made_give(place)) {
        status = DVT_ERR_HOST_MEMORY;
        snprintf(message, sizeof message, "dvt_loader_next: no main memory left for the batch");
    } else {
        *x = place->x;
        *y = place->y;
        place->x = place->y = NULL;
        place->state = DVTI_MADE_EMPTY;
        l->taken++;
        dvti_cond_signal(&l->work);
    }
    dvti_mutex_unlock(&l->lock);
    if (status != DVT_OK)
        dvti_fail(status, "%s", message);
    return status == DVT_OK;
}
#else
static bool dvti_workers_start(dvt_loader *l) {
    (void)l;
    return true;
}

static void dvti_workers_stop(dvt_loader *l) {
    (void)l;
}

static void dvti_workers_forget(dvt_loader *l) {
    (void)l;
}

static bool dvti_ring_take(dvt_loader *l, dvt_array **x, dvt_array **y) {
    (void)l;
    (void)x;
    (void)y;
    return false;
}
#endif

/* ---- making and destroying ---- */
static void dvti_loader_destroy(void *object) {
    dvt_loader *l = (dvt_loader *)object;
    int i;
    dvti_workers_forget(l);
    dvti_workers_stop(l);
    dvti_ring_restart(l);
    for (i = 0; l->worker && i < l->desc.num_workers; i++)
        dvti_free(l->worker[i].index);
    dvti_free(l->worker);
    dvti_free(l->place);
    dvti_free(l->order);
    dvti_batcher_end(&l->batcher);
    dvti_free(l);
}

static dvt_status dvti_loader_check(const char *function, const dvt_loader_desc *desc) {
    if (desc->batch_size < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: batch_size is %lld; expected at least 1", function,
                         (long long)desc->batch_size);
    if ((int)desc->last_batch < DVT_LAST_KEEP || desc->last_batch > DVT_LAST_ROLLOVER)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: last_batch must be one of DVT_LAST_KEEP, DVT_LAST_DISCARD or "
                         "DVT_LAST_ROLLOVER, but got %d",
                         function, (int)desc->last_batch);
    if (desc->num_workers < 0 || desc->num_workers > DVTI_MAX_WORKERS)
        return dvti_fail(DVT_ERR_RANGE, "%s: num_workers is %d; expected 0 to %d", function,
                         desc->num_workers, DVTI_MAX_WORKERS);
    return DVT_OK;
}

DVT_API dvt_loader *dvt_loader_new(dvt_dataset *data, const dvt_loader_desc *desc) {
    static const char *const function = "dvt_loader_new";
    static const dvti_mutex unlocked = DVTI_MUTEX_INIT;
    static const dvti_cond fresh = DVTI_COND_INIT;
    dvt_loader *l;
    if (!data || !desc) {
        dvti_null(function, data ? "desc" : "data");
        return NULL;
    }
    if (dvti_loader_check(function, desc) != DVT_OK)
        return NULL;
    l = (dvt_loader *)dvti_alloc_zero(sizeof *l);
    if (!l) {
        dvti_fail_memory(function, (int64_t)sizeof *l);
        return NULL;
    }
    memcpy(&l->lock, &unlocked, sizeof unlocked);
    memcpy(&l->work, &fresh, sizeof fresh);
    memcpy(&l->done, &fresh, sizeof fresh);
    l->desc = *desc;
    if (!dvti_object_begin(l, dvti_loader_destroy, function)) {
        dvti_free(l);
        return NULL;
    }
    dvti_batcher_begin(&l->batcher, data);
    return l;
}

DVT_API int64_t dvt_loader_len(const dvt_loader *loader) {
    if (!loader)
        return 0;
    return loader->open
               ? loader->batches
               : dvti_batches_of(loader, dvti_left_over(loader) + loader->batcher.data->length);
}

/* ---- batches ---- */
static void dvti_epoch_close(dvt_loader *l) {
    l->open = false;
    l->epoch++;
}

static bool dvti_loader_advance(dvt_loader *l, dvt_array **x, dvt_array **y) {
    static const char *const function = "dvt_loader_next";
    bool ok;
    dvti_workers_forget(l);
    if (!dvti_batcher_ready(function, &l->batcher) || !dvti_workers_start(l))
        return false;
    if (!l->open) {
        dvti_mutex_lock(&l->lock);
        ok = dvti_epoch_open(l);
        dvti_mutex_unlock(&l->lock);
        if (!ok)
            return false;
    }
    if (l->taken >= l->batches) {
        dvti_mutex_lock(&l->lock);
        dvti_epoch_close(l);
        dvti_mutex_unlock(&l->lock);
        return false;
    }
    if (l->started)
        return dvti_ring_take(l, x, y);
    ok = dvti_batch_make(function, &l->batcher, l->order + l->taken * l->desc.batch_size,
                         dvti_batch_length(l, l->taken), x, y);
    if (ok)
        l->taken++;
    return ok;
}

DVT_API bool dvt_loader_next(dvt_loader *loader, dvt_array **x, dvt_array **y) {
    if (x)
        *x = NULL;
    if (y)
        *y = NULL;
    if (!loader || !x || !y) {
        dvti_null("dvt_loader_next", !loader ? "loader" : !x ? "x" : "y");
        return false;
    }
    return dvti_loader_advance(loader, x, y);
}

/* After the last batch this is the end of the epoch, so that a caller who counts batches still gets a new order. */
DVT_API void dvt_loader_reset(dvt_loader *loader) {
    if (!loader || !loader->open)
        return;
    dvti_workers_forget(loader);
    dvti_mutex_lock(&loader->lock);
    if (loader->taken >= loader->batches)
        dvti_epoch_close(loader);
    loader->taken = 0;
    dvti_ring_restart(loader);
    dvti_mutex_unlock(&loader->lock);
}

#undef DVTI_MAX_WORKERS
/* ==== end src/7_train/dvt_loader.c ==== */
#ifdef DEVTENSOR_LINES
#line 94 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_metric.c ==== */
/* Metrics: sums over batches, kept as an exact count and a float64. The comparison runs where the arrays are; one number
   comes back. Nothing here is recorded. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_metric.c"
#endif

typedef enum dvti_metric_kind {
    DVTI_METRIC_ACCURACY,
    DVTI_METRIC_TOP_K,
    DVTI_METRIC_LOSS
} dvti_metric_kind;

struct dvt_metric {
    dvti_object object;
    dvti_metric_kind kind;
    int k;
    char name[40];
    int64_t count, correct;
    double sum;
};

static void dvti_metric_destroy(void *object) {
    dvti_free(object);
}

static dvt_metric *dvti_metric_new(const char *function, dvti_metric_kind kind, const char *name,
                                   int k) {
    dvt_metric *metric = (dvt_metric *)dvti_alloc_zero(sizeof *metric);
    if (!metric) {
        dvti_fail_memory(function, (int64_t)sizeof *metric);
        return NULL;
    }
    if (!dvti_object_begin(metric, dvti_metric_destroy, function)) {
        dvti_free(metric);
        return NULL;
    }
    metric->kind = kind;
    metric->k = k;
    if (k)
        snprintf(metric->name, sizeof metric->name, "%s_%d", name, k);
    else
        snprintf(metric->name, sizeof metric->name, "%s", name);
    return metric;
}

DVT_API dvt_metric *dvt_accuracy(void) {
    return dvti_metric_new("dvt_accuracy", DVTI_METRIC_ACCURACY, "accuracy", 0);
}

DVT_API dvt_metric *dvt_top_k_accuracy(int k) {
    if (k < 1) {
        dvti_fail(DVT_ERR_RANGE, "dvt_top_k_accuracy: k is %d; expected at least 1", k);
        return NULL;
    }
    return dvti_metric_new("dvt_top_k_accuracy", DVTI_METRIC_TOP_K, "top_k_accuracy", k);
}

DVT_API dvt_metric *dvt_mean_loss(void) {
    return dvti_metric_new("dvt_mean_loss", DVTI_METRIC_LOSS, "loss", 0);
}

DVT_API const char *dvt_metric_name(const dvt_metric *metric) {
    return metric ? metric->name : "";
}

DVT_API void dvt_metric_reset(dvt_metric *metric) {
    if (!metric)
        return;
    metric->count = metric->correct = 0;
    metric->sum = 0;
}

DVT_API double dvt_metric_get(const dvt_metric *metric) {
    if (!metric) {
        dvti_null("dvt_metric_get", "metric");
        return (double)NAN;
    }
    if (!metric->count)
        return (double)NAN;
    return (metric->kind == DVTI_METRIC_LOSS ? metric->sum : (double)metric->correct) /
           (double)metric->count;
}

/* Predictions of shape labels x classes, or with `same` also class numbers in the shape of the labels. */
static dvt_status dvti_metric_shapes(dvt_array *labels, dvt_array *predictions, bool same) {
    dvt_shape rows = predictions->shape;
    if (same && dvt_shape_equal(rows, labels->shape))
        return DVT_OK;
    if (rows.ndim) {
        rows.ndim--;
        if (dvt_shape_equal(rows, labels->shape) && predictions->shape.dim[rows.ndim] > 0)
            return DVT_OK;
    }
    return dvti_fail(
        DVT_ERR_SHAPE,
        "dvt_metric_update: labels are %s and predictions are %s; expected predictions "
        "of the labels' shape and one more axis for the classes%s",
        dvti_describe(labels), dvti_describe(predictions),
        same ? ", or class numbers in the labels' shape" : "");
}

/* How many predictions are right, as an array of one int64. */
static dvt_array *dvti_metric_right(dvt_array *labels, dvt_array *predictions) {
    dvt_array *chosen = predictions;
    if (!dvt_shape_equal(labels->shape, predictions->shape))
        chosen = dvt_argmax(predictions, -1, false);
    return dvt_sum(dvt_equal(chosen, labels), DVT_ALL, false);
}

/* The label is among the k largest when fewer than k classes stand before it. In the order of argmax: NaN is the largest, and
   of equals the first. A label that is no class is never among them; its place is borrowed from class 0. */
static dvt_array *dvti_metric_right_in_k(dvt_array *labels, dvt_array *predictions, int k) {
    int64_t classes = predictions->shape.dim[predictions->shape.ndim - 1];
    dvt_array *number = dvt_arange(0, (double)classes, 1, DVT_I64, predictions->storage->ctx);
    dvt_array *label = dvt_expand_dims(dvt_astype(labels, DVT_I64, false), -1);
    dvt_array *known = dvt_logical_and(dvt_greater_equal_scalar(label, 0),
                                       dvt_less_scalar(label, (double)classes));
    dvt_array *place = dvt_where(known, label, dvt_zeros_like(label));
    dvt_array *own = dvt_take_along_axis(predictions, place, -1);
    dvt_array *nan = dvt_isnan(predictions), *own_nan = dvt_isnan(own);
    dvt_array *larger = dvt_logical_or(dvt_greater(predictions, own),
                                       dvt_logical_and(nan, dvt_logical_not(own_nan)));
    dvt_array *equal = dvt_logical_or(dvt_equal(predictions, own), dvt_logical_and(nan, own_nan));
    dvt_array *before = dvt_logical_or(larger, dvt_logical_and(equal, dvt_less(number, label)));
    dvt_array *rank = dvt_sum(before, DVT_AXES(-1), true);
    return dvt_sum(dvt_logical_and(known, dvt_less_scalar(rank, k)), DVT_ALL, false);
}

static dvt_status dvti_metric_count(dvt_metric *metric, dvt_array *labels, dvt_array *predictions) {
    dvt_array *in[2], *right;
    int64_t correct = 0;
    dvt_status status;
    in[0] = labels;
    in[1] = predictions;
    if (!dvti_check("dvt_metric_update", in, 2))
        return dvt_error_code();
    status = dvti_metric_shapes(labels, predictions, metric->kind == DVTI_METRIC_ACCURACY);
    if (status != DVT_OK)
        return status;
    right = metric->kind == DVTI_METRIC_TOP_K
                ? dvti_metric_right_in_k(labels, predictions, metric->k)
                : dvti_metric_right(labels, predictions);
    if (!right)
        return dvt_error_code();
    status = dvti_read("dvt_metric_update", right, DVT_I64, &correct);
    if (status != DVT_OK)
        return status;
    metric->correct += correct;
    metric->count += dvt_size(labels);
    return DVT_OK;
}

static dvt_status dvti_metric_add_loss(dvt_metric *metric, dvt_array *losses) {
    dvt_array *total = dvt_sum(dvt_astype(losses, DVT_F64, false), DVT_ALL, false);
    double sum = 0;
    dvt_status status =
        total ? dvti_read("dvt_metric_update", total, DVT_F64, &sum) : dvt_error_code();
    if (status != DVT_OK)
        return status;
    metric->sum += sum;
    metric->count += dvt_size(losses);
    return DVT_OK;
}

DVT_API dvt_status dvt_metric_update(dvt_metric *metric, dvt_array *labels,
                                     dvt_array *predictions) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_status status;
    if (!metric)
        return dvti_null("dvt_metric_update", "metric");
    if (!predictions)
        return dvti_null("dvt_metric_update", "predictions");
    if (!labels && metric->kind != DVTI_METRIC_LOSS)
        return dvti_null("dvt_metric_update", "labels");
    record = dvt_record_begin(0, -1);
    scope = dvt_scope_begin();
    status = metric->kind == DVTI_METRIC_LOSS ? dvti_metric_add_loss(metric, predictions)
                                              : dvti_metric_count(metric, labels, predictions);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return status;
}
/* ==== end src/7_train/dvt_metric.c ==== */
#ifdef DEVTENSOR_LINES
#line 95 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_optimizer.c ==== */
/* Optimisers: what each kind needs to know, checked once, and the launch that applies one step to one copy of a parameter.
   The arithmetic itself is a kernel (DVTI_K_OPTIMIZER). */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_optimizer.c"
#endif

/* The usual values, those of Gluon; fields that a kind does not use are harmless. */
static dvt_optimizer dvti_optimizer_of(dvt_optimizer_kind kind, double learning_rate) {
    dvt_optimizer optimizer;
    memset(&optimizer, 0, sizeof optimizer);
    optimizer.kind = kind;
    optimizer.learning_rate = learning_rate;
    optimizer.beta1 = 0.9;
    optimizer.beta2 = 0.999;
    optimizer.rho = 0.9;
    optimizer.epsilon = kind == DVT_ADAGRAD ? 1e-7 : 1e-8;
    return optimizer;
}

DVT_API dvt_optimizer dvt_sgd(double learning_rate) {
    return dvti_optimizer_of(DVT_SGD, learning_rate);
}

DVT_API dvt_optimizer dvt_adam(double learning_rate) {
    return dvti_optimizer_of(DVT_ADAM, learning_rate);
}

DVT_API dvt_optimizer dvt_adamw(double learning_rate, double weight_decay) {
    dvt_optimizer optimizer = dvti_optimizer_of(DVT_ADAMW, learning_rate);
    optimizer.weight_decay = weight_decay;
    return optimizer;
}

DVT_API dvt_optimizer dvt_rmsprop(double learning_rate) {
    return dvti_optimizer_of(DVT_RMSPROP, learning_rate);
}

DVT_API dvt_optimizer dvt_adagrad(double learning_rate) {
    return dvti_optimizer_of(DVT_ADAGRAD, learning_rate);
}

static dvt_status dvti_optimizer_need(const char *function, bool ok, const char *name, double value,
                                      const char *expected) {
    return ok ? DVT_OK
              : dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected %s", function, name, value,
                          expected);
}

DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer) {
    static const char *const size = "a finite number that is not negative";
    static const char *const part = "at least 0 and below 1";

    struct {
        const char *name;
        double value;
        bool is_part;
    } field[8];

    dvt_status status = DVT_OK;
    int i;
    memset(field, 0, sizeof field);
    field[0].name = "learning_rate";
    field[0].value = optimizer->learning_rate;
    field[1].name = "weight_decay";
    field[1].value = optimizer->weight_decay;
    field[2].name = "epsilon";
    field[2].value = optimizer->epsilon;
    field[3].name = "clip_gradient";
    field[3].value = optimizer->clip_gradient;
    field[4].name = "momentum";
    field[4].value = optimizer->momentum;
    field[5].name = "beta1";
    field[5].value = optimizer->beta1;
    field[6].name = "beta2";
    field[6].value = optimizer->beta2;
    field[7].name = "rho";
    field[7].value = optimizer->rho;
    for (i = 4; i < 8; i++)
        field[i].is_part = true;
    if ((int)optimizer->kind < 0 || optimizer->kind > DVT_ADAGRAD)
        return dvti_fail(DVT_ERR_RANGE, "%s: optimizer.kind is %d, none of dvt_optimizer_kind",
                         function, (int)optimizer->kind);
    for (i = 0; i < 8 && status == DVT_OK; i++)
        status = dvti_optimizer_need(
            function,
            field[i].value >= 0 &&
                (field[i].is_part ? field[i].value < 1 : field[i].value <= DBL_MAX),
            field[i].name, field[i].value, field[i].is_part ? part : size);
    return status == DVT_OK ? dvti_schedule_check(function, &optimizer->schedule) : status;
}

DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer) {
    switch (optimizer->kind) {
    case DVT_SGD:
        return optimizer->momentum != 0 ? 1 : 0;
    case DVT_ADAM:
    case DVT_ADAMW:
        return 2;
    case DVT_RMSPROP:
        return optimizer->centered ? 3 : 1;
    default:
        return 1;
    }
}

static dvti_op dvti_optimizer_op(dvt_optimizer_kind kind) {
    switch (kind) {
    case DVT_ADAM:
        return DVTI_OP_adam;
    case DVT_ADAMW:
        return DVTI_OP_adamw;
    case DVT_RMSPROP:
        return DVTI_OP_rmsprop;
    case DVT_ADAGRAD:
        return DVTI_OP_adagrad;
    default:
        return DVTI_OP_sgd;
    }
}

DVTI_FN dvti_launch dvti_optimizer_launch(const dvt_optimizer *optimizer, double rate, double decay,
                                          double rescale, int64_t count) {
    dvti_launch launch =
        dvti_launch_begin("dvt_trainer_step", DVTI_K_OPTIMIZER, dvti_optimizer_op(optimizer->kind));
    launch.f[0] = rate;
    launch.f[1] = decay;
    launch.f[2] = rescale;
    launch.f[3] = optimizer->clip_gradient;
    launch.f[6] = optimizer->epsilon;
    switch (optimizer->kind) {
    case DVT_SGD:
        launch.f[4] = optimizer->momentum;
        launch.i[0] = optimizer->nesterov;
        break;
    case DVT_ADAM:
    case DVT_ADAMW:
        launch.f[4] = optimizer->beta1;
        launch.f[5] = optimizer->beta2;
        launch.f[7] = rate * sqrt(1 - pow(optimizer->beta2, (double)count)) /
                      (1 - pow(optimizer->beta1, (double)count));
        break;
    case DVT_RMSPROP:
        launch.f[4] = optimizer->rho;
        launch.f[5] = optimizer->momentum;
        launch.i[0] = optimizer->centered;
        break;
    default:
        break;
    }
    return launch;
}
/* ==== end src/7_train/dvt_optimizer.c ==== */
#ifdef DEVTENSOR_LINES
#line 96 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_progress.c ==== */
/* Progress of a run on standard error: a bar that redraws itself on a terminal, now and then a plain line elsewhere.
   The line is made by a pure function of the state, the time and the width. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_progress.c"
#endif

#define DVTI_PROGRESS_BAR 40
#define DVTI_PROGRESS_LINES 10

struct dvt_progress {
    dvti_object object;
    dvti_mutex lock;
    char *title;
    int64_t total, done;
    double loss;
    double start, drawn; /* seconds; when the last line was written, -1 for never */
    int64_t drawn_at;    /* `done` of that line */
    bool terminal, finished;
};

/* Columns of a text: continuation bytes of UTF-8 take none, characters from U+3000 on take two. */
static int dvti_progress_columns(const char *text, size_t bytes) {
    int columns = 0;
    size_t i;
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        columns += (c & 0xC0) == 0x80 ? 0 : c >= 0xE3 ? 2 : 1;
    }
    return columns;
}

/* The longest beginning that fits, never half a character. */
static size_t dvti_progress_fit(const char *text, size_t bytes, int columns) {
    while (bytes > 0 && dvti_progress_columns(text, bytes) > columns) {
        bytes--;
        while (bytes > 0 && ((unsigned char)text[bytes] & 0xC0) == 0x80)
            bytes--;
    }
    return bytes;
}

static void dvti_progress_add_duration(dvti_text *text, double seconds) {
    int64_t s = seconds < 3.6e8 ? (int64_t)(seconds + 0.5) : (int64_t)360000000;
    if (s >= 3600)
        dvti_text_add(text, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                      (int)(s % 60));
    else
        dvti_text_add(text, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

/* "27000/60000  1234/s  loss 0.4321  0:12 left". */
static void dvti_progress_add_numbers(dvti_text *text, const dvt_progress *p, double seconds) {
    double rate = seconds > 0 ? (double)p->done / seconds : 0;
    dvti_text_add(text, "%lld/%lld", (long long)p->done, (long long)p->total);
    if (rate > 0)
        dvti_text_add(text, "  %.*f/s", rate >= 100 ? 0 : rate >= 10 ? 1 : 2, rate);
    if (p->loss == p->loss)
        dvti_text_add(text, "  loss %.4f", p->loss);
    if (p->done >= p->total) {
        dvti_text_add(text, "  in ");
        dvti_progress_add_duration(text, seconds);
    } else if (rate > 0) {
        dvti_text_add(text, "  ");
        dvti_progress_add_duration(text, (double)(p->total - p->done) / rate);
        dvti_text_add(text, " left");
    }
}

static void dvti_progress_add_bar(dvti_text *text, double part, int columns) {
    int filled = (int)(part * columns);
    dvti_text_char(text, '[', 1);
    dvti_text_char(text, '=', filled < columns ? filled : columns);
    if (filled < columns)
        dvti_text_char(text, '>', 1);
    dvti_text_char(text, ' ', columns - filled - 1);
    dvti_text_char(text, ']', 1);
}

DVT_API size_t dvt_progress_format(const dvt_progress *p, double seconds, int width, char *buffer,
                                   size_t size) {
    dvti_text text = dvti_text_begin(buffer, size), numbers;
    char tail[160];
    double part;
    int room;
    size_t title;
    if (!p || p->total <= 0)
        return 0;
    part = (double)p->done / (double)p->total;
    numbers = dvti_text_begin(tail, sizeof tail);
    dvti_progress_add_numbers(&numbers, p, seconds > 0 ? seconds : 0);
    title = strlen(p->title);
    if (width <= 0) {
        dvti_text_add(&text, "%s%s%3d%%  %s", p->title, title ? " " : "", (int)(part * 100), tail);
        return text.length;
    }
    /* The numbers come first, then the title, then the bar. */
    room = width - 4 - 2 - (int)strlen(tail);
    if (room < 0) {
        dvti_text_add(&text, "%.*s", width, tail);
        return text.length;
    }
    title = dvti_progress_fit(p->title, title, room - 1);
    if (title) {
        dvti_text_add(&text, "%.*s ", (int)title, p->title);
        room -= dvti_progress_columns(p->title, title) + 1;
    }
    dvti_text_add(&text, "%3d%%", (int)(part * 100));
    if (room >= 8) {
        dvti_text_char(&text, ' ', 1);
        dvti_progress_add_bar(&text, part, DVTI_MIN(room - 3, DVTI_PROGRESS_BAR));
    }
    dvti_text_add(&text, "  %s", tail);
    return text.length;
}

/* ---- drawing ---- */
#if !defined(DEVTENSOR_NO_STDERR)
/* A bar needs a terminal that can go back to the beginning of the line. */
static bool dvti_stderr_is_terminal(void) {
#if defined(_WIN32)
    return _isatty(2) != 0;
#else
    const char *kind = getenv("TERM");
    return isatty(2) && kind && strcmp(kind, "dumb") != 0;
#endif
}

/* One column less than there are: a full line would wrap. */
static int dvti_stderr_width(void) {
    int width = 0;
#if defined(_WIN32)
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info))
        width = info.srWindow.Right - info.srWindow.Left + 1;
#elif defined(TIOCGWINSZ)
    struct winsize size;
    if (ioctl(2, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
#endif
    return width > 1 ? width - 1 : 79;
}

static void dvti_progress_write(const dvt_progress *p, double seconds, bool last) {
    char line[512];
    size_t length =
        dvt_progress_format(p, seconds, p->terminal ? dvti_stderr_width() : 0, line, sizeof line);
    if (length && p->terminal) {
        /* Blanks, not an escape sequence, over what a longer line left behind. */
        int blank = dvti_stderr_width() - dvti_progress_columns(line, strlen(line));
        fprintf(stderr, "\r%s%*s%s", line, blank > 0 ? blank : 0, "", last ? "\n" : "");
    } else if (length) {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
}
#else
static bool dvti_stderr_is_terminal(void) {
    return false;
}

/* Nothing is printed in this build: a logger that is set may show it. */
static void dvti_progress_write(const dvt_progress *p, double seconds, bool last) {
    char line[512];
    (void)last;
    if (dvt_progress_format(p, seconds, 0, line, sizeof line))
        dvti_log(DVT_LOG_INFO, "%s", line);
}
#endif

/* On a terminal ten times a second; elsewhere at every tenth of the way, but not more than once a second. */
static bool dvti_progress_due(const dvt_progress *p, double now) {
    if (p->done >= p->total)
        return p->drawn_at < p->total;
    if (p->terminal)
        return p->drawn < 0 || now - p->drawn >= 0.1;
    return now - (p->drawn < 0 ? p->start : p->drawn) >= 1 &&
           (double)(p->done - DVTI_MAX(p->drawn_at, 0)) >= (double)p->total / DVTI_PROGRESS_LINES;
}

static void dvti_progress_draw(dvt_progress *p, double now, bool last) {
    dvti_progress_write(p, now - p->start, last);
    p->drawn = now;
    p->drawn_at = p->done;
}

static void dvti_progress_destroy(void *object) {
    dvt_progress *p = (dvt_progress *)object;
    dvti_free(p->title);
    dvti_free(p);
}

DVT_API dvt_progress *dvt_progress_new(const char *title, int64_t total) {
    static const dvti_mutex unlocked = DVTI_MUTEX_INIT;
    dvt_progress *p = (dvt_progress *)dvti_alloc_zero(sizeof *p);
    char *c;
    if (p)
        p->title = dvti_strdup(title ? title : "");
    if (!p || !p->title) {
        dvti_free(p);
        dvti_fail_memory("dvt_progress_new", (int64_t)sizeof *p);
        return NULL;
    }
    if (!dvti_object_begin(p, dvti_progress_destroy, "dvt_progress_new")) {
        dvti_progress_destroy(p);
        return NULL;
    }
    for (c = p->title; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';
    memcpy(&p->lock, &unlocked, sizeof unlocked);
    p->total = total;
    p->loss = (double)NAN;
    p->start = dvti_now();
    p->drawn = -1;
    p->drawn_at = -1;
    p->terminal = dvti_stderr_is_terminal();
    return p;
}

DVT_API void dvt_progress_update(dvt_progress *p, int64_t done, double loss) {
    double now = dvti_now();
    if (!p || p->total <= 0)
        return;
    dvti_mutex_lock(&p->lock);
    p->done = DVTI_MAX(0, DVTI_MIN(done, p->total));
    p->loss = loss;
    if (!p->finished && dvti_progress_due(p, now))
        dvti_progress_draw(p, now, false);
    dvti_mutex_unlock(&p->lock);
}

DVT_API void dvt_progress_finish(dvt_progress *p) {
    if (!p || p->total <= 0)
        return;
    dvti_mutex_lock(&p->lock);
    if (!p->finished && (p->terminal || p->drawn_at != p->done))
        dvti_progress_draw(p, dvti_now(), true);
    p->finished = true;
    dvti_mutex_unlock(&p->lock);
}

#undef DVTI_PROGRESS_BAR
#undef DVTI_PROGRESS_LINES
/* ==== end src/7_train/dvt_progress.c ==== */
#ifdef DEVTENSOR_LINES
#line 97 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_replicas.c ==== */
/* The copies of the parameters that are trained: where they are, the memory that a step needs beside them, and the sum of their
   gradients, which is formed on the first context in the order of the contexts, so that every copy receives the same bits. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_replicas.c"
#endif

DVTI_FN dvti_replica *dvti_trainer_at(const dvt_trainer *t, int i, int k) {
    return &t->replica[(size_t)i * (size_t)t->ctxs.n + (size_t)k];
}

DVTI_FN void dvti_replicas_free(dvti_replica *replica, int64_t n) {
    int64_t i;
    int s;
    for (i = 0; replica && i < n; i++)
        for (s = 0; s < DVTI_TRAINER_STATES; s++)
            dvt_release(replica[i].state[s]);
    dvti_free(replica);
}

/* ---- contexts ---- */
static bool dvti_same_ctxs(const dvt_ctx_list *a, const dvt_ctx_list *b) {
    int i;
    if (a->n != b->n)
        return false;
    for (i = 0; i < a->n; i++)
        if (!dvt_ctx_equal(a->ctx[i], b->ctx[i]))
            return false;
    return true;
}

DVTI_FN dvt_status dvti_trainer_ctxs(const char *function, const dvt_trainer *t,
                                     dvt_ctx_list *ctxs) {
    dvt_param *first = NULL;
    char here[256], there[256];
    int i;
    memset(ctxs, 0, sizeof *ctxs);
    for (i = 0; i < t->n; i++) {
        dvt_ctx_list own = dvt_param_ctxs(t->trained[i].param);
        if (own.n < 1)
            continue;
        if (!first) {
            first = t->trained[i].param;
            *ctxs = own;
        } else if (!dvti_same_ctxs(ctxs, &own)) {
            dvt_ctx_list_format(own, here, sizeof here);
            dvt_ctx_list_format(*ctxs, there, sizeof there);
            return dvti_fail(DVT_ERR_CONTEXT,
                             "%s: all parameters must be initialised on the same contexts, but "
                             "parameter %s is on %s while %s is on %s; move them with "
                             "dvt_params_reset_ctx",
                             function, dvt_param_name(t->trained[i].param), here,
                             dvt_param_name(first), there);
        }
    }
    return DVT_OK;
}

/* ---- looking at the parameters: checks only, no change that a later failure would have to undo ---- */
/* The state goes along when parameters have moved to other contexts: a copy that stays keeps its own, another one gets a
   copy of the first. */
static bool dvti_replica_move(dvti_replica *to, const dvti_replica *own, const dvti_replica *first,
                              dvt_ctx ctx, int states) {
    int s;
    for (s = 0; s < states; s++) {
        if (own)
            to->state[s] = (dvt_array *)dvt_retain(own->state[s]);
        else if (first->state[s]) {
            to->state[s] = dvt_copyto(first->state[s], ctx);
            if (!to->state[s])
                return false;
            dvti_scope_take(to->state[s]);
        }
    }
    return true;
}

static dvt_status dvti_trainer_place(const char *function, dvt_trainer *t,
                                     const dvt_ctx_list *ctxs) {
    dvti_replica *fresh;
    int i, k, old;
    int64_t n = (int64_t)t->n * ctxs->n;
    if (t->replica && dvti_same_ctxs(&t->ctxs, ctxs))
        return DVT_OK;
    fresh = (dvti_replica *)dvti_alloc_zero((size_t)n * sizeof *fresh);
    if (!fresh)
        return dvti_fail_memory(function, n * (int64_t)sizeof *fresh);
    for (k = 0; t->ctxs.n && k < ctxs->n; k++) {
        for (old = 0; old < t->ctxs.n; old++)
            if (dvt_ctx_equal(t->ctxs.ctx[old], ctxs->ctx[k]))
                break;
        for (i = 0; i < t->n; i++)
            if (!dvti_replica_move(&fresh[i * ctxs->n + k],
                                   old < t->ctxs.n ? dvti_trainer_at(t, i, old) : NULL,
                                   dvti_trainer_at(t, i, 0), ctxs->ctx[k], t->states)) {
                dvti_replicas_free(fresh, n);
                return dvt_error_code();
            }
    }
    dvti_replicas_free(t->replica, (int64_t)t->n * t->ctxs.n);
    for (i = 0; i < t->n; i++) {
        dvt_release(t->trained[i].landing);
        t->trained[i].landing = NULL;
    }
    t->replica = fresh;
    t->ctxs = *ctxs;
    t->summed = false;
    return DVT_OK;
}

/* Weight and gradient of every copy; parameters without gradients are not taken. */
static dvt_status dvti_trainer_find(dvt_trainer *t, int i) {
    dvti_trained *trained = &t->trained[i];
    int k;
    trained->taken = false;
    for (k = 0; k < t->ctxs.n; k++) {
        dvti_replica *at = dvti_trainer_at(t, i, k);
        at->weight = dvt_param_data(trained->param, t->ctxs.ctx[k]);
        if (!at->weight)
            return dvt_error_code();
        at->gradient = at->weight->grad;
        if (!at->gradient || at->weight->grad_req == DVT_GRAD_NULL)
            return DVT_OK;
    }
    trained->taken = true;
    return DVT_OK;
}

DVTI_FN dvt_status dvti_trainer_look(const char *function, dvt_trainer *t) {
    dvt_ctx_list ctxs;
    dvt_status status = dvti_trainer_ctxs(function, t, &ctxs);
    int i;
    /* Nothing is initialised at all: the first parameter says so. */
    if (status == DVT_OK && t->n && ctxs.n < 1)
        return dvt_param_data(t->trained[0].param, dvt_default_ctx()) ? DVT_OK : dvt_error_code();
    if (status == DVT_OK)
        status = dvti_trainer_place(function, t, &ctxs);
    for (i = 0; i < t->n && status == DVT_OK; i++)
        status = dvti_trainer_find(t, i);
    return status;
}

/* ---- memory for the step ---- */
/* Sums of half precision would lose most of a small step: their states are float32. */
static dvt_dtype dvti_state_dtype(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVT_F64 : DVT_F32;
}

static dvt_array *dvti_owned_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvt_zeros(shape, dtype, ctx);
    if (x)
        dvti_scope_take(x);
    return x;
}

static bool dvti_state_fits(const dvt_array *state, const dvt_array *weight) {
    return state && dvt_shape_equal(state->shape, weight->shape) &&
           state->dtype == dvti_state_dtype(weight->dtype);
}

/* States that are missing, or left from a weight of another shape, are zero. */
DVTI_FN dvt_status dvti_trainer_make_states(dvt_trainer *t, int i) {
    int k, s;
    for (k = 0; k < t->ctxs.n; k++)
        for (s = 0; s < t->states; s++) {
            dvti_replica *at = dvti_trainer_at(t, i, k);
            dvt_array *state;
            if (dvti_state_fits(at->state[s], at->weight))
                continue;
            state = dvti_owned_zeros(at->weight->shape, dvti_state_dtype(at->weight->dtype),
                                     t->ctxs.ctx[k]);
            if (!state)
                return dvt_error_code();
            dvt_release(at->state[s]);
            at->state[s] = state;
        }
    return DVT_OK;
}

/* Room for a gradient that comes from another device; one for all of them, since its queue keeps the order. */
DVTI_FN dvt_status dvti_trainer_make_landing(dvt_trainer *t, int i) {
    dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient, *landing = t->trained[i].landing;
    bool needed = false;
    int k;
    for (k = 1; k < t->ctxs.n; k++)
        if (dvti_trainer_at(t, i, k)->gradient->storage->device != gradient->storage->device)
            needed = true;
    if (!needed || (landing && landing->dtype == gradient->dtype &&
                    dvt_shape_equal(landing->shape, gradient->shape)))
        return DVT_OK;
    landing = dvti_owned_zeros(gradient->shape, gradient->dtype, t->ctxs.ctx[0]);
    if (!landing)
        return dvt_error_code();
    dvt_release(t->trained[i].landing);
    t->trained[i].landing = landing;
    return DVT_OK;
}

/* ---- the sum ---- */
static bool dvti_counts(const dvt_trainer *t, int i, int k, bool fresh_only) {
    return t->trained[i].taken && (!fresh_only || dvti_trainer_at(t, i, k)->weight->grad_fresh);
}

/* The gradient of context k is added to the one of the first context. */
static dvt_status dvti_trainer_add(const dvt_trainer *t, int i, int k) {
    dvt_array *sum = dvti_trainer_at(t, i, 0)->gradient;
    dvt_array *other = dvti_trainer_at(t, i, k)->gradient;
    dvti_launch launch =
        dvti_launch_begin("dvt_trainer_allreduce", DVTI_K_ELEMENTWISE, DVTI_OP_add);
    if (!dvt_size(sum))
        return DVT_OK;
    launch.compute = dvti_class_of(sum->dtype);
    launch.in[0] = launch.out[0] = dvti_view_of(sum);
    launch.in[1] = dvti_view_of(
        other->storage->device == sum->storage->device ? other : t->trained[i].landing);
    launch.n_in = 2;
    launch.n_out = 1;
    return dvti_run(sum->storage->device, &launch);
}

/* Without a fresh gradient of its own the first context starts from zero. */
static dvt_status dvti_trainer_start_sum(const dvt_trainer *t, bool fresh_only) {
    dvt_status status = DVT_OK;
    int i;
    for (i = 0; i < t->n && status == DVT_OK; i++)
        if (t->trained[i].taken && !dvti_counts(t, i, 0, fresh_only) &&
            !dvt_fill(dvti_trainer_at(t, i, 0)->gradient, 0))
            status = dvt_error_code();
    return status;
}

/* Context by context, and within one first all copies, then all sums: the queues wait once and not at every parameter. */
DVTI_FN dvt_status dvti_trainer_sum(const char *function, const dvt_trainer *t, bool fresh_only) {
    dvt_status status = dvti_trainer_start_sum(t, fresh_only);
    int i, k;
    for (k = 1; k < t->ctxs.n; k++) {
        for (i = 0; i < t->n && status == DVT_OK; i++) {
            dvt_array *other = dvti_trainer_at(t, i, k)->gradient;
            if (dvti_counts(t, i, k, fresh_only) && t->trained[i].landing &&
                other->storage->device != t->trained[i].landing->storage->device)
                status = dvti_copy_elements(function, t->trained[i].landing, other);
        }
        for (i = 0; i < t->n && status == DVT_OK; i++)
            if (dvti_counts(t, i, k, fresh_only))
                status = dvti_trainer_add(t, i, k);
    }
    for (i = 0; i < t->n && status == DVT_OK; i++)
        for (k = 1; t->trained[i].taken && k < t->ctxs.n && status == DVT_OK; k++)
            status = dvti_copy_elements(function, dvti_trainer_at(t, i, k)->gradient,
                                        dvti_trainer_at(t, i, 0)->gradient);
    for (i = 0; i < t->n; i++)
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            dvti_written(dvti_trainer_at(t, i, k)->gradient);
    return status;
}
/* ==== end src/7_train/dvt_replicas.c ==== */
#ifdef DEVTENSOR_LINES
#line 98 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_schedule.c ==== */
/* Learning-rate schedules: pure functions of a step counted from 0. Warm-up comes first, and the schedule counts its own
   steps from the end of it. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_schedule.c"
#endif

static dvt_schedule dvti_schedule_of(dvt_schedule_kind kind) {
    dvt_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.kind = kind;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_factor(int64_t every, double factor, double minimum) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_FACTOR);
    schedule.every = every;
    schedule.factor = factor;
    schedule.minimum = minimum;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_multi_factor(const int64_t *at, int n, double factor) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_MULTI_FACTOR);
    int i;
    schedule.factor = factor;
    schedule.n_at = n;
    if (!at && n > 0) {
        dvti_null("dvt_schedule_multi_factor", "at");
        schedule.n_at = 0;
    } else if (n < 0 || n > DVTI_LENGTH(schedule.at)) {
        dvti_fail(DVT_ERR_RANGE, "dvt_schedule_multi_factor: %d steps; expected 0 to %d", n,
                  DVTI_LENGTH(schedule.at));
        schedule.n_at = 0;
    }
    for (i = 0; i < schedule.n_at; i++)
        schedule.at[i] = at[i];
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_poly(int64_t total, double power, double final) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_POLY);
    schedule.total = total;
    schedule.power = power;
    schedule.final = final;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_cosine(int64_t total, double final) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_COSINE);
    schedule.total = total;
    schedule.final = final;
    return schedule;
}

/* How much of the way has been gone: 0 at the first step, 1 from `total` on. */
static double dvti_schedule_part(const dvt_schedule *schedule, int64_t step) {
    if (step >= schedule->total)
        return 1;
    return (double)step / (double)schedule->total;
}

static double dvti_schedule_multi(const dvt_schedule *schedule, double base, int64_t step) {
    int i, passed = 0;
    for (i = 0; i < schedule->n_at && i < DVTI_LENGTH(schedule->at); i++)
        if (step >= schedule->at[i])
            passed++;
    return passed ? base * pow(schedule->factor, passed) : base;
}

static double dvti_schedule_stairs(const dvt_schedule *schedule, double base, int64_t step) {
    int64_t stairs = schedule->every > 0 ? step / schedule->every : 0;
    double rate = base;
    if (stairs > 0)
        rate *= pow(schedule->factor, (double)stairs);
    /* A base that is below the minimum to begin with is left where it is. */
    return rate < schedule->minimum ? DVTI_MIN(schedule->minimum, base) : rate;
}

DVT_API double dvt_schedule_rate(const dvt_schedule *schedule, double base, int64_t step) {
    double left;
    if (!schedule) {
        dvti_null("dvt_schedule_rate", "schedule");
        return (double)NAN;
    }
    step = DVTI_MAX(step, 0);
    if (step < schedule->warmup)
        return schedule->warmup_begin +
               (base - schedule->warmup_begin) * ((double)step / (double)schedule->warmup);
    step -= DVTI_MAX(schedule->warmup, 0);
    left = 1 - dvti_schedule_part(schedule, step);
    switch (schedule->kind) {
    case DVT_SCHEDULE_FACTOR:
        return dvti_schedule_stairs(schedule, base, step);
    case DVT_SCHEDULE_MULTI_FACTOR:
        return dvti_schedule_multi(schedule, base, step);
    case DVT_SCHEDULE_POLY:
        return schedule->final + (base - schedule->final) * pow(left, schedule->power);
    case DVT_SCHEDULE_COSINE:
        return schedule->final +
               (base - schedule->final) * (1 - cos(3.14159265358979323846 * left)) / 2;
    default:
        return base;
    }
}

static bool dvti_schedule_usable(double x) {
    return x >= 0 && x <= DBL_MAX;
}

DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule) {
    const char *wrong = NULL;
    if ((int)schedule->kind < 0 || schedule->kind > DVT_SCHEDULE_COSINE)
        wrong = "kind is none of dvt_schedule_kind";
    else if (schedule->warmup < 0 || !dvti_schedule_usable(schedule->warmup_begin))
        wrong = "warmup and warmup_begin must be finite and not negative";
    else if (schedule->kind == DVT_SCHEDULE_FACTOR && schedule->every < 1)
        wrong = "every must be at least 1";
    else if ((schedule->kind == DVT_SCHEDULE_FACTOR ||
              schedule->kind == DVT_SCHEDULE_MULTI_FACTOR) &&
             !(schedule->factor > 0 && schedule->factor <= 1))
        wrong = "factor must be above 0 and at most 1";
    else if (schedule->kind == DVT_SCHEDULE_MULTI_FACTOR &&
             (schedule->n_at < 0 || schedule->n_at > DVTI_LENGTH(schedule->at)))
        wrong = "n_at must be 0 to 16";
    else if (schedule->kind >= DVT_SCHEDULE_POLY &&
             (schedule->total < 1 || !dvti_schedule_usable(schedule->final)))
        wrong = "total must be at least 1, and final finite and not negative";
    else if (schedule->kind == DVT_SCHEDULE_POLY && !dvti_schedule_usable(schedule->power))
        wrong = "power must be finite and not negative";
    return wrong ? dvti_fail(DVT_ERR_RANGE, "%s: the learning-rate schedule cannot be used: %s",
                             function, wrong)
                 : DVT_OK;
}
/* ==== end src/7_train/dvt_schedule.c ==== */
#ifdef DEVTENSOR_LINES
#line 99 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_split.c ==== */
/* Cutting a batch into one part per context. Source of the uneven rule: NumPy's array_split. */
#ifdef DEVTENSOR_LINES
#line 2 "src/7_train/dvt_split.c"
#endif

static dvt_status dvti_split_check(const char *function, dvt_array *x, const dvt_ctx_list *ctxs,
                                   bool even_split) {
    char list[256];
    if (!x)
        return dvti_null(function, "x");
    if (ctxs->n < 1 || ctxs->n > DVT_MAX_CONTEXTS)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d contexts; expected 1 to %d", function, ctxs->n,
                         DVT_MAX_CONTEXTS);
    if (x->shape.ndim < 1)
        return dvti_fail(DVT_ERR_SHAPE, "%s: x (%s) has no axis that could be cut", function,
                         dvti_describe(x));
    if (!even_split || x->shape.dim[0] % ctxs->n == 0)
        return DVT_OK;
    dvt_ctx_list_format(*ctxs, list, sizeof list);
    return dvti_fail(DVT_ERR_SHAPE,
                     "%s: data with shape %s cannot be evenly split into %d slices along axis 0, "
                     "one for each of %s; use a batch size that is a multiple of %d, or set "
                     "even_split to false to allow uneven parts",
                     function, dvti_shape_text(x->shape), ctxs->n, list, ctxs->n);
}

DVT_API dvt_status dvt_split_and_load(dvt_array *x, dvt_ctx_list ctxs, bool even_split,
                                      dvt_array **out) {
    static const char *const function = "dvt_split_and_load";
    dvt_array *part[DVT_MAX_CONTEXTS];
    dvt_status status;
    dvt_scope_guard scope;
    int64_t each, extra, start = 0;
    int i;
    if (!out)
        return dvti_null(function, "out");
    for (i = 0; i < ctxs.n && i < DVT_MAX_CONTEXTS; i++)
        out[i] = NULL;
    status = dvti_split_check(function, x, &ctxs, even_split);
    if (status != DVT_OK)
        return status;
    each = x->shape.dim[0] / ctxs.n;
    extra = x->shape.dim[0] % ctxs.n;
    scope = dvt_scope_begin();
    for (i = 0; i < ctxs.n && status == DVT_OK; i++) {
        int64_t stop = start + each + (i < extra ? 1 : 0);
        dvt_array *rows = ctxs.n == 1 ? x : dvt_rows(x, start, stop);
        part[i] = rows ? dvt_as_in_ctx(rows, ctxs.ctx[i]) : NULL;
        status = part[i] ? DVT_OK : dvt_error_code();
        start = stop;
    }
    for (i = 0; i < ctxs.n && status == DVT_OK; i++)
        out[i] = (dvt_array *)dvt_keep(part[i]);
    dvt_scope_end(&scope);
    return status;
}
/* ==== end src/7_train/dvt_split.c ==== */
#ifdef DEVTENSOR_LINES
#line 100 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_trainer.c ==== */
/* The trainer: checks, then memory, then the sum of the gradients and the same step for every copy. Everything that can fail
   for want of memory happens before the first value changes. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_trainer.c"
#endif

static void dvti_trainer_destroy(void *object) {
    dvt_trainer *t = (dvt_trainer *)object;
    int i;
    dvti_replicas_free(t->replica, (int64_t)t->n * t->ctxs.n);
    for (i = 0; t->trained && i < t->n; i++)
        dvt_release(t->trained[i].landing);
    dvti_free(t->trained);
    dvt_release(t->params);
    dvti_free(t);
}

/* ---- making one ---- */
DVT_API dvt_trainer *dvt_trainer_new(dvt_params *params, dvt_optimizer optimizer) {
    static const char *const function = "dvt_trainer_new";
    dvt_trainer *t;
    dvt_ctx_list ctxs;
    int i, n;
    if (!params) {
        dvti_null(function, "params");
        return NULL;
    }
    if (dvti_optimizer_check(function, &optimizer) != DVT_OK)
        return NULL;
    n = dvt_params_len(params);
    if (!n)
        dvti_log(DVT_LOG_WARNING, "%s: the collection has no parameters; nothing will be trained",
                 function);
    t = (dvt_trainer *)dvti_alloc_zero(sizeof *t);
    if (t)
        t->trained = (dvti_trained *)dvti_alloc_zero((size_t)n * sizeof *t->trained);
    if (!t || !t->trained) {
        dvti_free(t);
        dvti_fail_memory(function, (int64_t)sizeof *t + n * (int64_t)sizeof *t->trained);
        return NULL;
    }
    t->optimizer = optimizer;
    t->states = dvti_optimizer_states(&optimizer);
    t->n = n;
    for (i = 0; i < n; i++)
        t->trained[i].param = dvt_params_at(params, i);
    if (dvti_trainer_ctxs(function, t, &ctxs) != DVT_OK ||
        !dvti_object_begin(t, dvti_trainer_destroy, function)) {
        dvti_trainer_destroy(t);
        return NULL;
    }
    t->params = (dvt_params *)dvt_retain(params);
    return t;
}

/* ---- the step ---- */
/* A gradient that backward has not written since the last step. With `partial`, parameters that are stale everywhere are left
   out. */
static dvt_status dvti_trainer_check_stale(const char *function, dvt_trainer *t, bool partial) {
    int i, k;
    for (i = 0; i < t->n; i++) {
        int stale = 0, first = -1;
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            if (!dvti_trainer_at(t, i, k)->weight->grad_fresh) {
                stale++;
                if (first < 0)
                    first = k;
            }
        if (stale && !partial)
            return dvti_fail(
                DVT_ERR_STALE_GRAD,
                "%s: the gradient of parameter %s on %s has not been updated by backward since the "
                "last step; this can mean that the network used only some of its parameters, or "
                "that a context got no data, and nothing was updated: run backward on every "
                "context, or call dvt_trainer_step_partial to skip parameters with stale gradients",
                function, dvt_param_name(t->trained[i].param), dvt_ctx_name(t->ctxs.ctx[first]));
        if (stale == t->ctxs.n)
            t->trained[i].taken = false;
    }
    return DVT_OK;
}

static dvt_status dvti_trainer_apply(dvt_trainer *t, int i, double rate, double rescale) {
    dvti_trained *trained = &t->trained[i];
    dvti_launch launch = dvti_optimizer_launch(&t->optimizer, rate * trained->param->lr_mult,
                                               t->optimizer.weight_decay * trained->param->wd_mult,
                                               rescale, trained->count + 1);
    dvt_status status = DVT_OK;
    int k, s;
    launch.n_in = 1;
    launch.n_out = 1 + t->states;
    for (k = 0; k < t->ctxs.n && status == DVT_OK; k++) {
        dvti_replica *at = dvti_trainer_at(t, i, k);
        launch.compute = dvti_class_of(at->weight->dtype);
        launch.in[0] = dvti_view_of(at->gradient);
        launch.out[0] = dvti_view_of(at->weight);
        for (s = 0; s < t->states; s++)
            launch.out[1 + s] = dvti_view_of(at->state[s]);
        if (dvt_size(at->weight))
            status = dvti_run(at->weight->storage->device, &launch);
        at->weight->grad_fresh = false;
        dvti_written(at->weight);
    }
    trained->count++;
    return status;
}

static dvt_status dvti_trainer_apply_all(dvt_trainer *t, int64_t batch_size) {
    double rate = dvt_trainer_learning_rate(t);
    dvt_status status = DVT_OK;
    int i;
    for (i = 0; i < t->n && status == DVT_OK; i++)
        if (t->trained[i].taken)
            status = dvti_trainer_apply(t, i, rate, 1.0 / (double)batch_size);
    t->steps++;
    return status;
}

typedef struct dvti_step_plan {
    bool sum, apply, partial;
} dvti_step_plan;

static dvt_status dvti_trainer_run(const char *function, dvt_trainer *t, int64_t batch_size,
                                   dvti_step_plan plan) {
    dvt_status status;
    int i;
    if (plan.apply && batch_size < 1)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: batch_size is %lld; expected the number of samples, at least 1",
                         function, (long long)batch_size);
    status = dvti_trainer_look(function, t);
    if (status == DVT_OK && plan.apply)
        status = dvti_trainer_check_stale(function, t, plan.partial);
    if (status == DVT_OK && plan.apply && !plan.sum && t->ctxs.n > 1 && !t->summed)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the gradients of %d contexts have not been summed, and the copies "
                         "would drift apart; call dvt_trainer_allreduce first, or dvt_trainer_step",
                         function, t->ctxs.n);
    for (i = 0; i < t->n && status == DVT_OK; i++) {
        if (!t->trained[i].taken)
            continue;
        if (plan.apply)
            status = dvti_trainer_make_states(t, i);
        if (plan.sum && status == DVT_OK)
            status = dvti_trainer_make_landing(t, i);
    }
    if (status == DVT_OK && plan.sum && t->ctxs.n > 1)
        status = dvti_trainer_sum(function, t, plan.partial);
    if (status == DVT_OK && plan.apply)
        status = dvti_trainer_apply_all(t, batch_size);
    if (status == DVT_OK)
        t->summed = !plan.apply;
    return status;
}

static dvt_status dvti_trainer_call(const char *function, dvt_trainer *t, int64_t batch_size,
                                    bool sum, bool apply, bool partial) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvti_step_plan plan;
    dvt_status status;
    if (!t)
        return dvti_null(function, "trainer");
    plan.sum = sum;
    plan.apply = apply;
    plan.partial = partial;
    record = dvt_record_begin(0, -1);
    scope = dvt_scope_begin();
    status = dvti_trainer_run(function, t, batch_size, plan);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return status;
}

DVT_API dvt_status dvt_trainer_step(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_step", trainer, batch_size, true, true, false);
}

DVT_API dvt_status dvt_trainer_step_partial(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_step_partial", trainer, batch_size, true, true, true);
}

DVT_API dvt_status dvt_trainer_allreduce(dvt_trainer *trainer) {
    return dvti_trainer_call("dvt_trainer_allreduce", trainer, 1, true, false, false);
}

DVT_API dvt_status dvt_trainer_update(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_update", trainer, batch_size, false, true, false);
}

/* ---- what can be asked and set ---- */
DVT_API double dvt_trainer_learning_rate(const dvt_trainer *trainer) {
    if (!trainer) {
        dvti_null("dvt_trainer_learning_rate", "trainer");
        return (double)NAN;
    }
    return dvt_schedule_rate(&trainer->optimizer.schedule, trainer->optimizer.learning_rate,
                             trainer->steps);
}

DVT_API dvt_status dvt_trainer_set_learning_rate(dvt_trainer *trainer, double rate) {
    if (!trainer)
        return dvti_null("dvt_trainer_set_learning_rate", "trainer");
    if (!(rate >= 0 && rate <= DBL_MAX))
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_trainer_set_learning_rate: rate is %g; expected a finite number that "
                         "is not negative",
                         rate);
    trainer->optimizer.learning_rate = rate;
    return DVT_OK;
}

DVT_API int64_t dvt_trainer_steps(const dvt_trainer *trainer) {
    return trainer ? trainer->steps : 0;
}

/* ---- the norm of all gradients ---- */
static double dvti_trainer_clip(dvt_trainer *t, dvt_array **list, double max_norm) {
    static const char *const function = "dvt_trainer_clip_global_norm";
    double norm = (double)NAN;
    int i, k, n = 0;
    /* After allreduce all copies are alike: the norm is that of the first context's. */
    for (i = 0; i < t->n; i++)
        if (t->trained[i].taken)
            list[n++] = dvti_trainer_at(t, i, 0)->gradient;
    if (!dvti_global_norm(function, list, n, max_norm, &norm))
        return (double)NAN;
    for (k = 1; k < t->ctxs.n; k++)
        for (i = 0; i < t->n; i++)
            if (t->trained[i].taken)
                list[n++] = dvti_trainer_at(t, i, k)->gradient;
    return dvti_clip_to_norm(function, list, n, norm, max_norm) ? norm : (double)NAN;
}

DVT_API double dvt_trainer_clip_global_norm(dvt_trainer *trainer, double max_norm) {
    static const char *const function = "dvt_trainer_clip_global_norm";
    double norm = (double)NAN;
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array **list;
    size_t room;
    if (!trainer) {
        dvti_null(function, "trainer");
        return norm;
    }
    record = dvt_record_begin(0, -1);
    scope = dvt_scope_begin();
    if (dvti_trainer_look(function, trainer) == DVT_OK) {
        room = (size_t)trainer->n * (size_t)trainer->ctxs.n * sizeof *list;
        list = (dvt_array **)dvti_alloc(room);
        if (!list)
            dvti_fail_memory(function, (int64_t)room);
        else
            norm = dvti_trainer_clip(trainer, list, max_norm);
        dvti_free(list);
    }
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return norm;
}
/* ==== end src/7_train/dvt_trainer.c ==== */
#ifdef DEVTENSOR_LINES
#line 101 "src/devtensor_spine.h"
#endif
/* ==== begin src/7_train/dvt_transform.c ==== */
/* What happens to a sample before it is put into a batch: pixels to floats, normalisation, chains, functions of the user's.
   Everything here is written with public operations and runs where the sample is. */
#ifdef DEVTENSOR_LINES
#line 3 "src/7_train/dvt_transform.c"
#endif

struct dvt_transform {
    dvti_object object;
    dvti_transform_kind kind;
    int n;                    /* of values, or of parts */
    double *mean, *deviation; /* normalize */
    dvt_transform **part;     /* compose; retained */
    dvt_array *(*apply)(void *user, dvt_array *x);
    void *user;
};

static void dvti_transform_destroy(void *object) {
    dvt_transform *transform = (dvt_transform *)object;
    int i;
    for (i = 0; transform->part && i < transform->n; i++)
        dvt_release(transform->part[i]);
    dvti_free(transform->part);
    dvti_free(transform->mean);
    dvti_free(transform->deviation);
    dvti_free(transform);
}

/* Room for n values or parts, all zero. */
static dvt_transform *dvti_transform_new(const char *function, dvti_transform_kind kind, int n) {
    dvt_transform *transform = (dvt_transform *)dvti_alloc_zero(sizeof *transform);
    size_t room = (size_t)DVTI_MAX(n, 1);
    bool ok = transform != NULL;
    if (ok && kind == DVTI_TRANSFORM_NORMALIZE) {
        transform->mean = (double *)dvti_alloc_zero(room * sizeof(double));
        transform->deviation = (double *)dvti_alloc_zero(room * sizeof(double));
        ok = transform->mean && transform->deviation;
    }
    if (ok && kind == DVTI_TRANSFORM_COMPOSE) {
        transform->part = (dvt_transform **)dvti_alloc_zero(room * sizeof *transform->part);
        ok = transform->part != NULL;
    }
    if (!ok)
        dvti_fail_memory(function, (int64_t)(room * sizeof(double)));
    if (!ok || !dvti_object_begin(transform, dvti_transform_destroy, function)) {
        if (transform)
            dvti_transform_destroy(transform);
        return NULL;
    }
    transform->kind = kind;
    transform->n = n;
    return transform;
}

DVT_API dvt_transform *dvt_to_tensor(void) {
    return dvti_transform_new("dvt_to_tensor", DVTI_TRANSFORM_TO_TENSOR, 0);
}

DVT_API dvt_transform *dvt_normalize(const double *mean, const double *deviation, int n) {
    dvt_transform *transform;
    int i;
    if (!mean || !deviation) {
        dvti_null("dvt_normalize", mean ? "deviation" : "mean");
        return NULL;
    }
    if (n < 1) {
        dvti_fail(DVT_ERR_RANGE, "dvt_normalize: n is %d; expected one value per channel, or 1", n);
        return NULL;
    }
    for (i = 0; i < n; i++)
        if (!(fabs(mean[i]) <= DBL_MAX) || !(deviation[i] > 0 && deviation[i] <= DBL_MAX)) {
            dvti_fail(DVT_ERR_RANGE,
                      "dvt_normalize: mean %g and deviation %g of channel %d; expected a finite "
                      "mean and a positive, finite deviation",
                      mean[i], deviation[i], i);
            return NULL;
        }
    transform = dvti_transform_new("dvt_normalize", DVTI_TRANSFORM_NORMALIZE, n);
    for (i = 0; transform && i < n; i++) {
        transform->mean[i] = mean[i];
        transform->deviation[i] = deviation[i];
    }
    return transform;
}

DVT_API dvt_transform *dvt_compose(dvt_transform *const *transforms, int n) {
    dvt_transform *transform;
    int i;
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_compose: n is %d; expected 0 or more", n);
        return NULL;
    }
    for (i = 0; i < n; i++)
        if (!transforms || !transforms[i]) {
            dvti_null("dvt_compose", transforms ? "one of the transforms" : "transforms");
            return NULL;
        }
    transform = dvti_transform_new("dvt_compose", DVTI_TRANSFORM_COMPOSE, n);
    for (i = 0; transform && i < n; i++)
        transform->part[i] = (dvt_transform *)dvt_retain(transforms[i]);
    return transform;
}

DVT_API dvt_transform *dvt_transform_new(dvt_array *(*apply)(void *user, dvt_array *x),
                                         void *user) {
    dvt_transform *transform;
    if (!apply) {
        dvti_null("dvt_transform_new", "apply");
        return NULL;
    }
    transform = dvti_transform_new("dvt_transform_new", DVTI_TRANSFORM_CUSTOM, 0);
    if (transform) {
        transform->apply = apply;
        transform->user = user;
    }
    return transform;
}

/* ---- applying ---- */
/* (H, W, C), or a stack of such, with the channels moved to the front. */
static dvt_array *dvti_to_tensor(dvt_array *x) {
    dvt_array *planes;
    if (x->dtype != DVT_U8) {
        dvti_fail(DVT_ERR_DTYPE, "dvt_to_tensor: x is %s; expected uint8 pixels", dvti_describe(x));
        return NULL;
    }
    if (x->shape.ndim != 3 && x->shape.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_to_tensor: x is %s; expected (height, width, channels), or several such as "
                  "(N, height, width, channels)",
                  dvti_describe(x));
        return NULL;
    }
    planes = x->shape.ndim == 3 ? dvt_transpose(x, DVT_AXES(2, 0, 1))
                                : dvt_transpose(x, DVT_AXES(0, 3, 1, 2));
    return dvt_div_scalar(planes, 255);
}

/* One value per channel as an array that broadcasts along the height and the width. */
static dvt_array *dvti_per_channel(const double *values, int n, dvt_array *x) {
    return dvt_as_in_ctx(
        dvt_astype(dvt_from_host(values, DVT_SHAPE(n, 1, 1), DVT_F64, dvt_cpu()), x->dtype, false),
        x->storage->ctx);
}

static dvt_array *dvti_normalize(const dvt_transform *t, dvt_array *x) {
    int channel = x->shape.ndim - 3;
    if (!dvt_dtype_is_float(x->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "dvt_normalize: x is %s; expected floats: apply dvt_to_tensor first",
                  dvti_describe(x));
        return NULL;
    }
    if (channel < 0 || (t->n > 1 && x->shape.dim[channel] != t->n)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_normalize: x is %s and there are %d means; expected (channels, height, "
                  "width) and one mean, or one per channel",
                  dvti_describe(x), t->n);
        return NULL;
    }
    if (t->n == 1)
        return dvt_div_scalar(dvt_sub_scalar(x, t->mean[0]), t->deviation[0]);
    return dvt_div(dvt_sub(x, dvti_per_channel(t->mean, t->n, x)),
                   dvti_per_channel(t->deviation, t->n, x));
}

static dvt_array *dvti_transform_run(dvt_transform *t, dvt_array *x) {
    dvt_array *y = x;
    int i;
    switch (t->kind) {
    case DVTI_TRANSFORM_TO_TENSOR:
        return dvti_to_tensor(x);
    case DVTI_TRANSFORM_NORMALIZE:
        return dvti_normalize(t, x);
    case DVTI_TRANSFORM_COMPOSE:
        for (i = 0; y && i < t->n; i++)
            y = dvti_transform_run(t->part[i], y);
        return y;
    default:
        y = t->apply(t->user, x);
        if (!y && dvt_error_code() == DVT_OK)
            dvti_fail(DVT_ERR_VALUE,
                      "dvt_transform_apply: the function given to dvt_transform_new returned NULL "
                      "for x (%s) without an error; expected an array",
                      dvti_describe(x));
        return y;
    }
}

DVT_API dvt_array *dvt_transform_apply(dvt_transform *transform, dvt_array *x) {
    dvt_scope_guard scope;
    dvt_array *y;
    if (!transform || !x) {
        dvti_null("dvt_transform_apply", transform ? "x" : "transform");
        return NULL;
    }
    scope = dvt_scope_begin();
    y = (dvt_array *)dvt_keep(dvti_transform_run(transform, x));
    dvt_scope_end(&scope);
    return y;
}

DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor) {
    int i;
    switch (transform->kind) {
    case DVTI_TRANSFORM_TO_TENSOR:
        if (*as_tensor)
            return false;
        *as_tensor = true;
        return true;
    case DVTI_TRANSFORM_NORMALIZE:
        return *as_tensor;
    case DVTI_TRANSFORM_COMPOSE:
        for (i = 0; i < transform->n; i++)
            if (!dvti_transform_by_pixel(transform->part[i], as_tensor))
                return false;
        return true;
    default:
        return false;
    }
}
/* ==== end src/7_train/dvt_transform.c ==== */
#ifdef DEVTENSOR_LINES
#line 102 "src/devtensor_spine.h"
#endif
#endif
#endif

#if !defined(DEVTENSOR_NO_CALL_SITES) && !defined(DVTI_CALL_SITES_ON)
/* ==== begin src/0_api/dvt_call_sites.h ==== */
/* GENERATED from the declarations in src/0_api by tools/call_sites.py: do not edit. */
/* Calls remember where they stand. The name without parentheses, as in `f = dvt_add` or
   `(dvt_add)(a, b)`, is the function itself. */
#ifdef DEVTENSOR_LINES
#line 3 "src/0_api/dvt_call_sites.h"
#endif
#define DVTI_CALL_SITES_ON
#define dvt_empty(...) dvt_note_site(dvt_empty(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_zeros(...) dvt_note_site(dvt_zeros(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_ones(...) dvt_note_site(dvt_ones(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_full(...) dvt_note_site(dvt_full(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_zeros_like(...) dvt_note_site(dvt_zeros_like(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_ones_like(...) dvt_note_site(dvt_ones_like(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_full_like(...) dvt_note_site(dvt_full_like(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar(...) dvt_note_site(dvt_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_eye(...) dvt_note_site(dvt_eye(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_arange(...) dvt_note_site(dvt_arange(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_linspace(...) dvt_note_site(dvt_linspace(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_from_host(...) dvt_note_site(dvt_from_host(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_to_host(...) dvt_note_status(dvt_to_host(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_set_from_host(...) dvt_note_status(dvt_set_from_host(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_slice(...) dvt_note_site(dvt_slice(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_rows(...) dvt_note_site(dvt_rows(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_index(...) dvt_note_site(dvt_index(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_t(...) dvt_note_site(dvt_t(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_transpose(...) dvt_note_site(dvt_transpose(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_swapaxes(...) dvt_note_site(dvt_swapaxes(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_reshape(...) dvt_note_site(dvt_reshape(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_flatten(...) dvt_note_site(dvt_flatten(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_expand_dims(...) dvt_note_site(dvt_expand_dims(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_squeeze(...) dvt_note_site(dvt_squeeze(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_broadcast_to(...) dvt_note_site(dvt_broadcast_to(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_contiguous(...) dvt_note_site(dvt_contiguous(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_copyto(...) dvt_note_site(dvt_copyto(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_as_in_ctx(...) dvt_note_site(dvt_as_in_ctx(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_copy(...) dvt_note_site(dvt_copy(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_copy_into(...) dvt_note_site(dvt_copy_into(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_astype(...) dvt_note_site(dvt_astype(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_fill(...) dvt_note_site(dvt_fill(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_attach_grad(...) dvt_note_status(dvt_attach_grad(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_zero_grad(...) dvt_note_status(dvt_zero_grad(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_backward(...) dvt_note_status(dvt_backward(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_backward_from(...) dvt_note_status(dvt_backward_from(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_gradients(...) dvt_note_status(dvt_gradients(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_detach(...) dvt_note_site(dvt_detach(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_stop_gradient(...) dvt_note_site(dvt_stop_gradient(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_ctx_parse(...) dvt_note_status(dvt_ctx_parse(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_set_virtual_gpus(...) dvt_note_status(dvt_set_virtual_gpus(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_device_query(...) dvt_note_status(dvt_device_query(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_wait(...) dvt_note_status(dvt_wait(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_wait_all(...) dvt_note_status(dvt_wait_all(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_set_num_threads(...) dvt_note_status(dvt_set_num_threads(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_print(...) dvt_note_status(dvt_print(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_print_file(...) dvt_note_status(dvt_print_file(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_format(...) dvt_note_status(dvt_format(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_save_npy(...) dvt_note_status(dvt_save_npy(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_load_npy(...) dvt_note_site(dvt_load_npy(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_save_params(...) dvt_note_status(dvt_save_params(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_load_idx(...) dvt_note_site(dvt_load_idx(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_read_npy(...) dvt_note_site(dvt_read_npy(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_read_idx(...) dvt_note_site(dvt_read_idx(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_data(...) dvt_note_status(dvt_param_set_data(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_grad_req(...) dvt_note_status(dvt_param_set_grad_req(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_lr_mult(...) dvt_note_status(dvt_param_set_lr_mult(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_wd_mult(...) dvt_note_status(dvt_param_set_wd_mult(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_init(...) dvt_note_status(dvt_param_set_init(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_params_initialize(...) dvt_note_status(dvt_params_initialize(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_params_reset_ctx(...) dvt_note_status(dvt_params_reset_ctx(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_params_set_grad_req(...) dvt_note_status(dvt_params_set_grad_req(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_params_zero_grad(...) dvt_note_status(dvt_params_zero_grad(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sequential_add(...) dvt_note_status(dvt_sequential_add(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_param_set_shape(...) dvt_note_status(dvt_param_set_shape(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_block_add_child(...) dvt_note_status(dvt_block_add_child(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_initialize(...) dvt_note_status(dvt_initialize(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_forward(...) dvt_note_site(dvt_forward(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_print_summary(...) dvt_note_status(dvt_print_summary(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_save_parameters(...) dvt_note_status(dvt_save_parameters(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_load_parameters(...) dvt_note_status(dvt_load_parameters(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_softmax_cross_entropy(...) dvt_note_site(dvt_softmax_cross_entropy(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_l1_loss(...) dvt_note_site(dvt_l1_loss(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_l2_loss(...) dvt_note_site(dvt_l2_loss(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sigmoid_bce_loss(...) dvt_note_site(dvt_sigmoid_bce_loss(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_huber_loss(...) dvt_note_site(dvt_huber_loss(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_add(...) dvt_note_site(dvt_add(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_add_(...) dvt_note_site(dvt_add_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_add_scalar(...) dvt_note_site(dvt_add_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_add_scalar_(...) dvt_note_site(dvt_add_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_add(...) dvt_note_site(dvt_scalar_add(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sub(...) dvt_note_site(dvt_sub(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sub_(...) dvt_note_site(dvt_sub_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sub_scalar(...) dvt_note_site(dvt_sub_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sub_scalar_(...) dvt_note_site(dvt_sub_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_sub(...) dvt_note_site(dvt_scalar_sub(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mul(...) dvt_note_site(dvt_mul(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mul_(...) dvt_note_site(dvt_mul_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mul_scalar(...) dvt_note_site(dvt_mul_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mul_scalar_(...) dvt_note_site(dvt_mul_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_mul(...) dvt_note_site(dvt_scalar_mul(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_div(...) dvt_note_site(dvt_div(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_div_(...) dvt_note_site(dvt_div_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_div_scalar(...) dvt_note_site(dvt_div_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_div_scalar_(...) dvt_note_site(dvt_div_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_div(...) dvt_note_site(dvt_scalar_div(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor_div(...) dvt_note_site(dvt_floor_div(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor_div_(...) dvt_note_site(dvt_floor_div_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor_div_scalar(...) dvt_note_site(dvt_floor_div_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor_div_scalar_(...) dvt_note_site(dvt_floor_div_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_floor_div(...) dvt_note_site(dvt_scalar_floor_div(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mod(...) dvt_note_site(dvt_mod(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mod_(...) dvt_note_site(dvt_mod_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mod_scalar(...) dvt_note_site(dvt_mod_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mod_scalar_(...) dvt_note_site(dvt_mod_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_mod(...) dvt_note_site(dvt_scalar_mod(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_pow(...) dvt_note_site(dvt_pow(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_pow_(...) dvt_note_site(dvt_pow_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_pow_scalar(...) dvt_note_site(dvt_pow_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_pow_scalar_(...) dvt_note_site(dvt_pow_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_pow(...) dvt_note_site(dvt_scalar_pow(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_minimum(...) dvt_note_site(dvt_minimum(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_minimum_(...) dvt_note_site(dvt_minimum_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_minimum_scalar(...) dvt_note_site(dvt_minimum_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_minimum_scalar_(...) dvt_note_site(dvt_minimum_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_minimum(...) dvt_note_site(dvt_scalar_minimum(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_maximum(...) dvt_note_site(dvt_maximum(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_maximum_(...) dvt_note_site(dvt_maximum_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_maximum_scalar(...) dvt_note_site(dvt_maximum_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_maximum_scalar_(...) dvt_note_site(dvt_maximum_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_maximum(...) dvt_note_site(dvt_scalar_maximum(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan2(...) dvt_note_site(dvt_atan2(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan2_(...) dvt_note_site(dvt_atan2_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan2_scalar(...) dvt_note_site(dvt_atan2_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan2_scalar_(...) dvt_note_site(dvt_atan2_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_atan2(...) dvt_note_site(dvt_scalar_atan2(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_hypot(...) dvt_note_site(dvt_hypot(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_hypot_(...) dvt_note_site(dvt_hypot_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_hypot_scalar(...) dvt_note_site(dvt_hypot_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_hypot_scalar_(...) dvt_note_site(dvt_hypot_scalar_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_hypot(...) dvt_note_site(dvt_scalar_hypot(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_equal(...) dvt_note_site(dvt_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_equal_scalar(...) dvt_note_site(dvt_equal_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_equal(...) dvt_note_site(dvt_scalar_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_not_equal(...) dvt_note_site(dvt_not_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_not_equal_scalar(...) dvt_note_site(dvt_not_equal_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_not_equal(...) dvt_note_site(dvt_scalar_not_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_less(...) dvt_note_site(dvt_less(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_less_scalar(...) dvt_note_site(dvt_less_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_less(...) dvt_note_site(dvt_scalar_less(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_less_equal(...) dvt_note_site(dvt_less_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_less_equal_scalar(...) dvt_note_site(dvt_less_equal_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_less_equal(...) dvt_note_site(dvt_scalar_less_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_greater(...) dvt_note_site(dvt_greater(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_greater_scalar(...) dvt_note_site(dvt_greater_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_greater(...) dvt_note_site(dvt_scalar_greater(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_greater_equal(...) dvt_note_site(dvt_greater_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_greater_equal_scalar(...) dvt_note_site(dvt_greater_equal_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_greater_equal(...) dvt_note_site(dvt_scalar_greater_equal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_and(...) dvt_note_site(dvt_logical_and(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_and_scalar(...) dvt_note_site(dvt_logical_and_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_logical_and(...) dvt_note_site(dvt_scalar_logical_and(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_or(...) dvt_note_site(dvt_logical_or(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_or_scalar(...) dvt_note_site(dvt_logical_or_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_logical_or(...) dvt_note_site(dvt_scalar_logical_or(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_xor(...) dvt_note_site(dvt_logical_xor(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_xor_scalar(...) dvt_note_site(dvt_logical_xor_scalar(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_scalar_logical_xor(...) dvt_note_site(dvt_scalar_logical_xor(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_neg(...) dvt_note_site(dvt_neg(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_neg_(...) dvt_note_site(dvt_neg_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_abs(...) dvt_note_site(dvt_abs(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_abs_(...) dvt_note_site(dvt_abs_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sign(...) dvt_note_site(dvt_sign(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sign_(...) dvt_note_site(dvt_sign_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_square(...) dvt_note_site(dvt_square(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_square_(...) dvt_note_site(dvt_square_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_relu(...) dvt_note_site(dvt_relu(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_relu_(...) dvt_note_site(dvt_relu_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor(...) dvt_note_site(dvt_floor(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_floor_(...) dvt_note_site(dvt_floor_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_ceil(...) dvt_note_site(dvt_ceil(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_ceil_(...) dvt_note_site(dvt_ceil_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_round(...) dvt_note_site(dvt_round(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_round_(...) dvt_note_site(dvt_round_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trunc(...) dvt_note_site(dvt_trunc(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trunc_(...) dvt_note_site(dvt_trunc_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_reciprocal(...) dvt_note_site(dvt_reciprocal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_reciprocal_(...) dvt_note_site(dvt_reciprocal_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sqrt(...) dvt_note_site(dvt_sqrt(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sqrt_(...) dvt_note_site(dvt_sqrt_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_rsqrt(...) dvt_note_site(dvt_rsqrt(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_rsqrt_(...) dvt_note_site(dvt_rsqrt_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_exp(...) dvt_note_site(dvt_exp(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_exp_(...) dvt_note_site(dvt_exp_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_exp2(...) dvt_note_site(dvt_exp2(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_exp2_(...) dvt_note_site(dvt_exp2_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_expm1(...) dvt_note_site(dvt_expm1(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_expm1_(...) dvt_note_site(dvt_expm1_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log(...) dvt_note_site(dvt_log(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log_(...) dvt_note_site(dvt_log_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log2(...) dvt_note_site(dvt_log2(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log2_(...) dvt_note_site(dvt_log2_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log10(...) dvt_note_site(dvt_log10(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log10_(...) dvt_note_site(dvt_log10_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log1p(...) dvt_note_site(dvt_log1p(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log1p_(...) dvt_note_site(dvt_log1p_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sin(...) dvt_note_site(dvt_sin(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sin_(...) dvt_note_site(dvt_sin_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_cos(...) dvt_note_site(dvt_cos(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_cos_(...) dvt_note_site(dvt_cos_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_tan(...) dvt_note_site(dvt_tan(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_tan_(...) dvt_note_site(dvt_tan_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_asin(...) dvt_note_site(dvt_asin(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_asin_(...) dvt_note_site(dvt_asin_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_acos(...) dvt_note_site(dvt_acos(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_acos_(...) dvt_note_site(dvt_acos_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan(...) dvt_note_site(dvt_atan(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_atan_(...) dvt_note_site(dvt_atan_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sinh(...) dvt_note_site(dvt_sinh(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sinh_(...) dvt_note_site(dvt_sinh_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_cosh(...) dvt_note_site(dvt_cosh(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_cosh_(...) dvt_note_site(dvt_cosh_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_tanh(...) dvt_note_site(dvt_tanh(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_tanh_(...) dvt_note_site(dvt_tanh_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sigmoid(...) dvt_note_site(dvt_sigmoid(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sigmoid_(...) dvt_note_site(dvt_sigmoid_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_softplus(...) dvt_note_site(dvt_softplus(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_softplus_(...) dvt_note_site(dvt_softplus_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_erf(...) dvt_note_site(dvt_erf(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_erf_(...) dvt_note_site(dvt_erf_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_gelu(...) dvt_note_site(dvt_gelu(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_gelu_(...) dvt_note_site(dvt_gelu_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_isnan(...) dvt_note_site(dvt_isnan(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_isinf(...) dvt_note_site(dvt_isinf(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_isfinite(...) dvt_note_site(dvt_isfinite(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logical_not(...) dvt_note_site(dvt_logical_not(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_where(...) dvt_note_site(dvt_where(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_clip(...) dvt_note_site(dvt_clip(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_clip_(...) dvt_note_site(dvt_clip_(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_sum(...) dvt_note_site(dvt_sum(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_prod(...) dvt_note_site(dvt_prod(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_mean(...) dvt_note_site(dvt_mean(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_var(...) dvt_note_site(dvt_var(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_std(...) dvt_note_site(dvt_std(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_min(...) dvt_note_site(dvt_min(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_max(...) dvt_note_site(dvt_max(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_argmin(...) dvt_note_site(dvt_argmin(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_argmax(...) dvt_note_site(dvt_argmax(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_any(...) dvt_note_site(dvt_any(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_all(...) dvt_note_site(dvt_all(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_norm(...) dvt_note_site(dvt_norm(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_logsumexp(...) dvt_note_site(dvt_logsumexp(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_softmax(...) dvt_note_site(dvt_softmax(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_log_softmax(...) dvt_note_site(dvt_log_softmax(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_matmul(...) dvt_note_site(dvt_matmul(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_matmul_t(...) dvt_note_site(dvt_matmul_t(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_dot(...) dvt_note_site(dvt_dot(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_concat(...) dvt_note_site(dvt_concat(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_stack(...) dvt_note_site(dvt_stack(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_split(...) dvt_note_status(dvt_split(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_take(...) dvt_note_site(dvt_take(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_take_along_axis(...) dvt_note_site(dvt_take_along_axis(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_pick(...) dvt_note_site(dvt_pick(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_one_hot(...) dvt_note_site(dvt_one_hot(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_conv2d(...) dvt_note_site(dvt_conv2d(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_max_pool2d(...) dvt_note_site(dvt_max_pool2d(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_avg_pool2d(...) dvt_note_site(dvt_avg_pool2d(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_linear(...) dvt_note_site(dvt_linear(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_dropout(...) dvt_note_site(dvt_dropout(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_batch_norm(...) dvt_note_site(dvt_batch_norm(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_layer_norm(...) dvt_note_site(dvt_layer_norm(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_uniform(...) dvt_note_site(dvt_uniform(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_normal(...) dvt_note_site(dvt_normal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_randint(...) dvt_note_site(dvt_randint(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_bernoulli(...) dvt_note_site(dvt_bernoulli(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_permutation(...) dvt_note_site(dvt_permutation(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_key_uniform(...) dvt_note_site(dvt_key_uniform(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_key_normal(...) dvt_note_site(dvt_key_normal(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_key_randint(...) dvt_note_site(dvt_key_randint(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_key_bernoulli(...) dvt_note_site(dvt_key_bernoulli(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_key_permutation(...) dvt_note_site(dvt_key_permutation(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trainer_step(...) dvt_note_status(dvt_trainer_step(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trainer_step_partial(...) dvt_note_status(dvt_trainer_step_partial(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trainer_allreduce(...) dvt_note_status(dvt_trainer_allreduce(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trainer_update(...) dvt_note_status(dvt_trainer_update(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_trainer_set_learning_rate(...) dvt_note_status(dvt_trainer_set_learning_rate(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_dataset_get(...) dvt_note_status(dvt_dataset_get(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_transform_apply(...) dvt_note_site(dvt_transform_apply(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_split_and_load(...) dvt_note_status(dvt_split_and_load(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_metric_update(...) dvt_note_status(dvt_metric_update(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_curve_add(...) dvt_note_status(dvt_curve_add(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_curve_save(...) dvt_note_status(dvt_curve_save(__VA_ARGS__), __FILE__, __LINE__)
#define dvt_dtype_parse(...) dvt_note_status(dvt_dtype_parse(__VA_ARGS__), __FILE__, __LINE__)
/* ==== end src/0_api/dvt_call_sites.h ==== */
#ifdef DEVTENSOR_LINES
#line 107 "src/devtensor_spine.h"
#endif
#endif
/* ==== end src/devtensor_spine.h ==== */
