/* [dvt:status] Errors. A call that fails never aborts and leaves its arguments as they were. It
   returns:

     result                 after a failure   how to tell
     object                 NULL              by NULL alone, but for dvt_cuda_stream, where it is an
                                              answer
     dvt_status             the code          by anything but DVT_OK
     bool                   false             dvt_error_code(), since false is also an answer
     double                 NaN               dvt_error_code(), since NaN is also a value
     int, int64_t, uint64_t 0; dvt_dim: -1    dvt_error_code(), but for dvt_dim
     text                   ""                dvt_error_code()
     struct                 no axes, zeros    dvt_error_code()
     nothing                                  dvt_error_code()

   Only dvt_error_code() and dvt_error() tell the failure. NULL arrays pass through every operation,
   so a chain of calls can be checked once at its end.

   THE FIRST FAILURE OF A THREAD STAYS UNTIL dvt_clear_error(). Later ones are logged only. While
   one is kept, NULL for an optional array (a bias, say) counts as the result of the failed call,
   and that call fails too. So a program that has dealt with an error clears it and goes on. */

/* One row per status: name, number, meaning, usual fix. Ranges: 1xx environment, 2xx your
   arguments, 3xx not in this build, 4xx not on this device, 9xx a bug of ours. */
#define DVT_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "no error", "")                                                                       \
    X(HOST_MEMORY, 101, "main memory is exhausted", "free arrays, or work in smaller pieces")      \
    X(DEVICE_MEMORY, 102, "the memory of a device is exhausted",                                   \
      "free arrays on that device, use a smaller batch, or another device")                        \
    X(IO, 103, "a file could not be opened, read or written",                                      \
      "check the path and its permissions")                                                        \
    X(FORMAT, 104, "a file's content is not what its format allows",                               \
      "fetch or write the file again")                                                             \
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
      "call dvt_block_initialize, and run one batch when shapes are deferred")                     \
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
    X(NO_COMPILER, 405, "NVRTC, the compiler of CUDA kernels, cannot be used",                     \
      "install the CUDA toolkit or its NVRTC package, or set DEVTENSOR_NVRTC_PATH")                \
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
/* Where the failing call stands, "main.c:42"; "" when it is not known: the call was made through a
   function pointer, returns text, a shape or nothing, or DEVTENSOR_NO_CALL_SITES is set. */
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

/* Host memory comes from here. `alloc` and `resize` return NULL on failure; memory is aligned as
   malloc's is. Set it before any other call of the library, or while no object of it exists.
   Released memory of arrays may be kept for later (DEVTENSOR_CPU_CACHE). dvt_trim_memory gives it
   back, and so does this call, to the previous allocator. */
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
