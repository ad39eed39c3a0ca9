/* [dvt:gpu] Functions that most programs do not need. Memory that a device keeps for reuse, kernels
   compiled before their first use, streams and addresses shared with other CUDA code of the
   process. */

/* Memory of one device, without memory of the caller (dvt_from_memory). The allocator keeps
   released memory for reuse; `reserved` includes it. In host memory (cpu() and virtual GPUs) each
   device keeps at most DEVTENSOR_CPU_CACHE bytes, a quarter of the machine's memory unless set.
   Used and kept memory together stay below 5/4 of the peak use plus 64 MiB. */
typedef struct dvt_memory_stats {
    int64_t used, used_peak;         /* bytes of arrays and workspaces */
    int64_t reserved, reserved_peak; /* bytes taken from the GPU or from host memory */
    int64_t reused, taken; /* requests served from kept memory, and by the device or system */
} dvt_memory_stats;

/* Fills *out with the counters of ctx. Waits: no. Errors: NO_DEVICE. */
DVT_API dvt_status dvt_memory_query(dvt_ctx ctx, dvt_memory_stats *out);
/* Returns kept memory to the GPU, or to the program's allocator; returns the bytes. Waits: for a
   GPU. Errors: NO_DEVICE, and 0 is returned. */
DVT_API int64_t dvt_trim_memory(dvt_ctx ctx);
/* Limits the bytes of all arrays on the device; 0: no limit. Waits: no. Errors: NO_DEVICE,
   RANGE. */
DVT_API dvt_status dvt_set_memory_limit(int64_t bytes, dvt_ctx ctx);

/* Counters of the kernel compiler. NVRTC compiles kernels at their first use, and the disk keeps
   them (DEVTENSOR_CACHE_DIR). */
typedef struct dvt_jit_stats {
    int64_t compiled;  /* programs compiled in this process */
    int64_t from_disk; /* programs read from the cache on disk */
    int64_t loaded;    /* modules loaded into GPUs */
    double compile_seconds, load_seconds;
} dvt_jit_stats;

/* Returns the counters of this process. Waits: for a program that another thread compiles. */
DVT_API dvt_jit_stats dvt_get_jit_stats(void);
/* Compiles and loads the kernels that networks in float32 use most, so that no first use waits.
   Does nothing on cpu() and on virtual GPUs. Waits: yes, seconds with an empty cache. Errors:
   NO_DEVICE, NO_COMPILER, DEVICE_MEMORY. */
DVT_API dvt_status dvt_prewarm(dvt_ctx ctx);
/* Returns the CUstream in which gpu(i) computes, for other work in the same order. NULL, without an
   error, if there is none: on cpu(), a virtual GPU, a gpu(i) that does not exist. Waits: no. Owns:
   the library. */
DVT_API void *dvt_cuda_stream(dvt_ctx ctx);
/* Makes gpu(i) compute in that CUstream, which must belong to the GPU's primary context and stay
   alive. NULL restores its own stream. Waits: for work queued before. Owns: the caller keeps the
   stream. Errors: NO_DEVICE, UNSUPPORTED (not a CUDA GPU). */
DVT_API dvt_status dvt_set_cuda_stream(void *stream, dvt_ctx ctx);
/* Order gpu(i) and a CUstream of other code, without waiting on the host. _after: later work of
   gpu(i) begins when the work queued in the stream is done. _before: later work in the stream
   begins when the work queued on gpu(i) is done. The stream belongs to the GPU's primary context;
   NULL is its default stream. For an event, call cuStreamWaitEvent with dvt_cuda_stream(ctx).
   Waits: no. Errors: NO_DEVICE, UNSUPPORTED (not a CUDA GPU), and earlier failures of the GPU. */
DVT_API dvt_status dvt_cuda_order_after(void *stream, dvt_ctx ctx);
DVT_API dvt_status dvt_cuda_order_before(void *stream, dvt_ctx ctx);
/* Returns the CUdeviceptr of x's first element. It is valid while x lives, for work in the order of
   dvt_cuda_stream. Other streams need dvt_cuda_order_before and dvt_cuda_order_after.
   Copies: never. Waits: no. Owns: x. Errors: CONTEXT (x is not on a CUDA GPU), and earlier failures
   of the GPU; 0 is returned. */
DVT_API uint64_t dvt_cuda_address(dvt_array *x);
/* Makes an array of cpu() in memory that is page-locked for copies to and from a CUDA GPU, without
   setting its values. With ctx a virtual GPU or cpu(), this is dvt_empty on cpu().
   Copies of more than 64 KiB need no staging buffer. A copy to a GPU returns at once, and
   operations of cpu() that write the array wait for it. dvt_data waits too. From then on every copy
   waits until it has read the memory, because the caller may write to it at any time. A copy from a
   GPU waits, as into any array. Use few and keep them: the memory cannot be swapped out, and making
   one takes long. A forked child may neither use the memory nor copy to a GPU.
   Waits: no; its release, for copies from it.  Owns: the innermost scope. Errors: SHAPE, DTYPE,
   NO_DEVICE, HOST_MEMORY, FORKED. */
DVT_API dvt_array *dvt_empty_pinned(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
