/* [dvt:status] Errors. A call that fails never aborts the process, and does not change its
   arguments. It returns:

     return type            after a failure   how to detect the failure
     object                 NULL              NULL (but dvt_cuda_stream may return NULL as a result)
     dvt_status             the code          any value but DVT_OK
     bool                   false             dvt_error_code(): false is also a result
     double                 NaN               dvt_error_code(): NaN is also a value
     int, int64_t, uint64_t 0; dvt_dim: -1    dvt_error_code(); dvt_dim: -1
     text                   ""                dvt_error_code()
     struct                 no axes, zeros    dvt_error_code()
     void                                     dvt_error_code()

   dvt_error_code() and dvt_error() describe the failure. An operation on a NULL array returns NULL,
   so a chain of calls can be checked once at its end.

   THE FIRST FAILURE OF A THREAD IS KEPT UNTIL dvt_clear_error(). Later ones are only logged. While
   a failure is kept, NULL for an optional array (a bias, say) counts as the result of the failed
   call, and the new call fails too. So a program that has handled an error calls
   dvt_clear_error(). */

/* One row per status: name, number, meaning, usual fix. Ranges: 1xx environment, 2xx arguments of
   the caller, 3xx not in this build, 4xx not on this device, 9xx a bug in devtensor. */
#define DVT_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "no error", "")                                                                       \
    X(HOST_MEMORY, 101, "host memory is exhausted", "free arrays, or work in smaller pieces")      \
    X(DEVICE_MEMORY, 102, "the memory of a device is exhausted",                                   \
      "free arrays on that device, use a smaller batch, or another device")                        \
    X(IO, 103, "a file could not be opened, read or written",                                      \
      "check the path and its permissions")                                                        \
    X(FORMAT, 104, "a file's content is not what its format allows",                               \
      "fetch or write the file again")                                                             \
    X(RANK_LOST, 110, "another process of the run has ended, or does not answer",                  \
      "see the message for its rank; start the run again from its last checkpoint")                \
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
      "call dvt_block_initialize, and dvt_block_infer_shapes when shapes are deferred")            \
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

/* Result of a call: DVT_OK, or a DVT_ERR_ code of the table above. */
typedef enum dvt_status { DVT_STATUS_TABLE(DVT_STATUS_ENUM_ROW) DVT_STATUS_LAST = 999 } dvt_status;

#undef DVT_STATUS_ENUM_ROW
#define DVT_OK DVT_ERR_OK /* no error */

/* Returns the code of this thread's first failure since dvt_clear_error; DVT_OK if there was
   none. */
DVT_API dvt_status dvt_error_code(void);
/* Returns the message of that failure: the function, what was given, what was expected, how to fix
   it. "" if there was none.
   Owns: the library; valid until this thread's next dvt_clear_error. */
DVT_API const char *dvt_error(void);
/* Returns the source location of the failed call, "main.c:42"; "" if it is unknown. It is unknown
   for calls through a function pointer, for functions that return text, a struct, a setting or
   void, and with DEVTENSOR_NO_CALL_SITES.
   Owns: the library; valid until this thread's next dvt_clear_error. */
DVT_API const char *dvt_error_site(void);
/* Clears this thread's failure, so that the next failure is kept. */
DVT_API void dvt_clear_error(void);
/* Return "DVT_ERR_SHAPE", its meaning, and the usual fix. Never NULL; for an unknown status the
   name is "DVT_ERR_?".
   Owns: the library; constant. */
DVT_API const char *dvt_status_name(dvt_status status);
DVT_API const char *dvt_status_meaning(dvt_status status);
DVT_API const char *dvt_status_fix(dvt_status status);

/* Importance of a message in the log. */
typedef enum dvt_log_level {
    DVT_LOG_DEBUG,
    DVT_LOG_INFO,
    DVT_LOG_WARNING,
    DVT_LOG_ERROR,
    DVT_LOG_OFF
} dvt_log_level;

/* Receives one message without a newline. May be called from any thread, one call at a time, and
   must not call devtensor. `message` is valid during the call. */
typedef void (*dvt_log_fn)(void *user, dvt_log_level level, const char *message);
/* Replaces the logger of the process; NULL silences it. The function receives messages of every
   level, and `user`. The default logger writes warnings and errors to stderr. */
DVT_API void dvt_set_logger(dvt_log_fn function, void *user);
/* Sets the lowest level that the default logger writes (DVT_LOG_WARNING unless changed). */
DVT_API void dvt_set_log_level(dvt_log_level level);

/* Functions that allocate host memory. `alloc` and `resize` return NULL on failure, and memory
   aligned as malloc's. Any thread may call them. `user` is passed to each. */
typedef struct dvt_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void *(*resize)(void *user, void *block, size_t bytes);
    void (*release)(void *user, void *block);
    void *user;
} dvt_allocator;

/* Replaces the allocator of host memory with a copy of *allocator; NULL restores malloc, realloc
   and free. Call it before any other function, or while no object of the library exists. Blocks
   that are kept for reuse (DEVTENSOR_CPU_CACHE) go back to the previous allocator in this call. */
DVT_API void dvt_set_allocator(const dvt_allocator *allocator);

/* Return "0.1.0", and DVT_VERSION, of the implementation that is linked. */
DVT_API const char *dvt_version(void);
DVT_API int dvt_version_number(void);
