/* [dvt:gpu] What most programs never call: the memory that a GPU keeps for later, kernels compiled ahead of their
   first use, streams and addresses shared with other CUDA code of the process. */

/* Memory of one device. The allocator keeps released memory for later; `reserved` is what it holds. In main memory (cpu() and
   virtual GPUs) at most DEVTENSOR_CPU_CACHE bytes are kept on each device, a quarter of the machine's memory unless set, and never so
   much that used and kept memory exceed 5/4 of the most that was used at once by more than 64 MiB. */
typedef struct dvt_memory_stats {
    int64_t used, used_peak;         /* bytes of arrays and workspaces */
    int64_t reserved, reserved_peak; /* bytes taken from the card or from main memory */
    int64_t reused, taken; /* requests served from what was kept, and by the card or the system */
} dvt_memory_stats;

/* Waits: no. Errors: NO_DEVICE. */
DVT_API dvt_status dvt_memory_query(dvt_ctx ctx, dvt_memory_stats *out);
/* Gives back to the card, or to the program's allocator, what is kept for later. Returns the bytes. Waits: for a GPU. Errors: NO_DEVICE
   (then 0). */
DVT_API int64_t dvt_trim_memory(dvt_ctx ctx);
/* Arrays on the device may have that many bytes together; 0: no limit. Waits: no. Errors: NO_DEVICE,
   RANGE. */
DVT_API dvt_status dvt_set_memory_limit(dvt_ctx ctx, int64_t bytes);

/* Kernels are compiled by NVRTC when they are first used, and kept on disk (DEVTENSOR_CACHE_DIR). */
typedef struct dvt_jit_stats {
    int64_t compiled;  /* programs compiled in this process */
    int64_t from_disk; /* programs read from the cache instead */
    int64_t loaded;    /* modules loaded into cards */
    double compile_seconds, load_seconds;
} dvt_jit_stats;

/* The counters of this process. Waits: for a program that another thread compiles. */
DVT_API dvt_jit_stats dvt_get_jit_stats(void);
/* Compiles and loads now the kernels that networks in float32 use most, so that no first use has to wait. Does nothing on cpu() and on
   virtual GPUs in main memory. Waits: yes, seconds with an empty cache. Errors: NO_DEVICE, NO_COMPILER, DEVICE_MEMORY. */
DVT_API dvt_status dvt_prewarm(dvt_ctx ctx);
/* The CUstream in which gpu(i) computes, for work of your own in the same order; NULL, and no error, where there is
   no card: on a CPU, a virtual GPU, a gpu(i) that does not exist. Waits: no. Owns: the library. */
DVT_API void *dvt_cuda_stream(dvt_ctx ctx);
/* gpu(i) computes in that CUstream from now on, which must belong to the card's primary context and stay alive; NULL: its own again.
   Waits: for work queued before. Owns: the caller keeps the stream. Errors: NO_DEVICE, UNSUPPORTED (not a card). */
DVT_API dvt_status dvt_set_cuda_stream(dvt_ctx ctx, void *stream);
/* The CUdeviceptr of x's first element, valid while x lives and in the order of dvt_cuda_stream; 0 when x is not on a card.
   Copies: never. Waits: no. Owns: x. Errors: CONTEXT, and what the card had failed with. */
DVT_API uint64_t dvt_cuda_address(dvt_array *x);
