/* [dvt:context] Contexts and devices. cpu(0), cpu(1), ... are different contexts on the same
   hardware. gpu(i) is one CUDA GPU or one virtual GPU, which has its own memory space and command
   queue. A dvt_ctx may name a device that does not exist; allocating memory there is an error
   (NO_DEVICE). */

/* Return cpu(0), cpu(id), gpu(id), tpu(id). Copies: never. Waits: no. */
DVT_API dvt_ctx dvt_cpu(void);
DVT_API dvt_ctx dvt_cpu_id(int id);
DVT_API dvt_ctx dvt_gpu(int id);
DVT_API dvt_ctx dvt_tpu(int id);
/* Returns whether type and id are equal. DVT_DEVICE_DEFAULT is replaced by dvt_default_ctx()
   first. */
DVT_API bool dvt_ctx_equal(dvt_ctx a, dvt_ctx b);
/* Returns "cpu(0)", "gpu(1)". Owns: the library; valid for this thread's next 15 calls. */
DVT_API const char *dvt_ctx_name(dvt_ctx ctx);
/* Reads a device's name as MXNet, PyTorch, TensorFlow or JAX writes it. A missing number is 0. CUDA
   devices are gpu(i), XLA devices are tpu(i):
     "cpu", "cpu(0)", "cpu:0", "gpu", "gpu(1)", "gpu:1"; "cuda", "cuda:1", "tpu(0)", "xla:0";
     "device(type='cpu')", "device(type='cuda', index=1)";
     "CPU:0", "/CPU:0", "/GPU:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1";
     "CpuDevice(id=0)", "CudaDevice(id=1)", "TpuDevice(id=0)", "TFRT_CPU_0", "TPU_0"
   Does not check whether the device exists. Errors: NAME; *out is then unchanged. */
DVT_API dvt_status dvt_ctx_parse(const char *name, dvt_ctx *out);
/* Makes a list of one to eight contexts: DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)). */
#define DVT_CONTEXTS(...) DVT_CALL_8(dvt_ctx_list_make, dvt_cpu(), __VA_ARGS__)
/* Writes "[cpu(0), gpu(0), gpu(1)]" into buffer, truncated to `size` bytes with the final 0.
   Returns the length of the whole text without the final 0. */
DVT_API size_t dvt_ctx_list_format(dvt_ctx_list list, char *buffer, size_t size);

/* Returns the number of GPUs, real or virtual. Never fails. The first call initializes CUDA if
   there is a driver. It creates no context on a GPU, but a child process that is forked later
   cannot use the GPUs. */
DVT_API int dvt_num_gpus(void);
/* Returns one line that says why dvt_num_gpus() is 0; "" if it is not 0. Owns: the library. */
DVT_API const char *dvt_gpu_reason(void);
/* Returns gpu(i) if it exists, else cpu(). */
DVT_API dvt_ctx dvt_try_gpu(int i);
/* Returns 0: devtensor has no TPU backend. Creating an array on tpu(i) is the error NO_DEVICE. */
DVT_API int dvt_num_tpus(void);
/* Returns tpu(i) if it exists, else gpu(i) if that exists, else cpu(). */
DVT_API dvt_ctx dvt_try_tpu_gpu(int i);
/* Return the list of all GPUs. Without GPUs the first returns an empty list, the second one with
   cpu(0). */
DVT_API dvt_ctx_list dvt_try_all_gpus(void);
DVT_API dvt_ctx_list dvt_try_all_gpus_or_cpu(void);

/* Returns the context that a dvt_ctx of all zeros means on this thread: cpu(0), or that of the
   innermost DVT_WITH_CTX. */
DVT_API dvt_ctx dvt_default_ctx(void);

/* State of DVT_WITH_CTX, which sets the default context of this thread within a block:
   DVT_WITH_CTX(dvt_gpu(1)) { ... } */
typedef struct dvt_ctx_guard {
    dvt_ctx previous;
    int once;
} dvt_ctx_guard;

/* Begin and end what DVT_WITH_CTX does. In code without the macro, end guards in reverse order.
   NULL is allowed. */
DVT_API dvt_ctx_guard dvt_ctx_scope_begin(dvt_ctx ctx);
DVT_API void dvt_ctx_scope_end(dvt_ctx_guard *guard);
/* Sets the default context of this thread within the block that follows. */
#define DVT_WITH_CTX(context)                                                                      \
    DVT_GUARDED("DVT_WITH_CTX", dvt_ctx_guard, dvt_g_ctx, dvt_ctx_scope_begin(context),            \
                dvt_ctx_scope_end)
/* Sets the default context until the end of the enclosing block, as a declaration. break then
   leaves the loop around it, see [dvt:scope]. */
#define DVT_CTX_SCOPED(context)                                                                    \
    DVT_GUARD_DECLARED(dvt_ctx_guard, DVT_GUARD_NAME(dvt_g_ctx_scoped, __LINE__),                  \
                       dvt_ctx_scope_begin(context), dvt_ctx_scope_end)

/* Creates n virtual GPUs with `bytes` of memory each (0: no limit), in place of the existing
   virtual ones. Errors: RANGE (n outside 0..DVT_MAX_GPUS), VALUE (arrays exist on a virtual GPU, or
   another thread is using one). */
DVT_API dvt_status dvt_set_virtual_gpus(int n, int64_t bytes);

/* A time model of virtual GPUs. Their queues and callers wait for the modeled time; results never
   change. A value of 0 takes no time, and all are 0 at the start. Real GPUs are not modeled. */
typedef struct dvt_virtual_model {
    double latency;   /* seconds of each copy between host memory and a GPU, or two GPUs */
    double bandwidth; /* bytes per second of these copies; 0: no limit */
    double launch;    /* seconds that the caller needs to start each operation on a GPU */
    double flops;     /* operations per second of a GPU; 0: no limit. Matrix products and
                         convolutions count two per multiply-add. Other operations count one per
                         element of their largest array. */
    bool clock_only;  /* nothing waits; only dvt_virtual_seconds advances */
} dvt_virtual_model;

/* Sets the model of all virtual GPUs for later calls; NULL: no time. DEVTENSOR_VIRTUAL_GPU_MODEL
   sets the initial one. Waits: no. Errors: RANGE (a negative or infinite number, or NaN); the model
   is then unchanged. */
DVT_API dvt_status dvt_set_virtual_model(const dvt_virtual_model *model);
/* Returns the current model. */
DVT_API dvt_virtual_model dvt_get_virtual_model(void);
/* Returns the modeled seconds that this thread's calls have taken; use differences of two results.
   An operation on a GPU begins when it has been called and the GPU is free. dvt_wait and reading
   values advance this thread's time to the operation's end. The program itself and cpu() take no
   time, so the same calls always give the same number. Waits: no. */
DVT_API double dvt_virtual_seconds(void);

/* What dvt_device_query tells about a device. */
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

/* Fills *out with the properties of ctx. Creates nothing on the device. Errors: NO_DEVICE. */
DVT_API dvt_status dvt_device_query(dvt_ctx ctx, dvt_device_info *out);
/* Writes a table of all devices with name, memory and versions, and the reason if there is no GPU.
   Returns the length of the whole text; writes at most `size` bytes with the final 0. */
DVT_API size_t dvt_devices_format(char *buffer, size_t size);
/* Prints that table to standard output. */
DVT_API void dvt_print_devices(void);

/* Counters of copies and operations since the start or dvt_reset_stats. */
typedef struct dvt_stats {
    int64_t to_device_count, to_device_bytes; /* host memory to a GPU */
    int64_t to_host_count, to_host_bytes;     /* a GPU to host memory */
    int64_t between_devices_count, between_devices_bytes;
    int64_t kernels;        /* operations started, on every context */
    int64_t waits;          /* times that a caller waited for a device */
    int64_t implicit_reads; /* calls of dvt_print, dvt_item and dvt_to_host on GPU arrays */
    /* existing now: array objects; buffers of devices, host and caller */
    int64_t arrays, blocks_of_memory;
} dvt_stats;

/* Returns the counters of the process. Waits: no. */
DVT_API dvt_stats dvt_get_stats(void);
/* Sets the counters to 0, except `arrays` and `blocks_of_memory`. */
DVT_API void dvt_reset_stats(void);

/* Selects what printing, dvt_item and dvt_to_host do with an array on a GPU: copy it, copy it and
   log a warning, or fail with CONTEXT. */
typedef enum dvt_transfer_guard {
    DVT_TRANSFER_ALLOW,
    DVT_TRANSFER_LOG,
    DVT_TRANSFER_FORBID
} dvt_transfer_guard;

/* Sets the transfer guard of this thread. Returns the previous setting. */
DVT_API dvt_transfer_guard dvt_set_transfer_guard(dvt_transfer_guard guard);

/* Waits until x is computed, and reports errors of queued work. Waits: yes. Errors: the error of
   the failed operation, with its name; DEVICE_LOST afterwards. */
DVT_API dvt_status dvt_wait(dvt_array *x);
/* Waits for all work that was started on ctx; cpu() never has pending work. Errors: as dvt_wait,
   NO_DEVICE. */
DVT_API dvt_status dvt_synchronize(dvt_ctx ctx);
/* Waits for all work on all contexts. Errors: as dvt_wait. */
DVT_API dvt_status dvt_wait_all(void);

/* Allows or forbids TF32 in float32 matrix products and convolutions on GPUs, for the whole
   process. Returns the previous setting. Forbidden at the start, unless DEVTENSOR_TF32=1.
   GPUs of compute capability 8.0 and higher then round both factors to TF32: 10 bits of mantissa
   instead of 23, the same range. Sums stay float32. Relative errors are about 1e-3. Matrix products
   use it only if rows begin at multiples of 16 bytes, or (on 9.0) if they are large. cpu() and
   other dtypes are not affected. The setting at the time of the call applies. */
DVT_API bool dvt_allow_tf32(bool allow);
/* Allows or forbids, for the whole process, that large float32 matrix products on GPUs of compute
   capability 9.0 are three products of TF32 numbers. Returns the previous setting. Forbidden at the
   start, unless DEVTENSOR_TF32X3=1. dvt_allow_tf32 takes precedence.
   Each factor loses at most 2^-22 of itself, or 2^-137. So errors are like those of sums in
   float32. Products that are exact in float32, such as with an identity, may differ in the last
   bit. Infinities, NaN and factors of at least 2^60 are multiplied as without this setting. Copies
   of the operands, 8 bytes per element, take up to a sixteenth of the GPU's memory (docs/GPU.md).
   Not affected: cpu(), other GPUs, convolutions, other dtypes, products with k below 64. The
   setting at the time of the call applies. Source: S. Markidis et al., NVIDIA Tensor Core
   Programmability, Performance and Precision, IPDPSW 2018. */
DVT_API bool dvt_allow_tf32x3(bool allow);
/* Allows or forbids Winograd's method on cpu() and virtual GPUs, for the whole process. It serves
   3x3 convolutions of stride 1 and their gradients with respect to the data. Returns the previous
   setting. Forbidden at the start, unless DEVTENSOR_WINOGRAD=1.
   Shapes: at least 32 input and 32 output channels, one group, no dilation, padding of at most 2.
   Output sizes are close to multiples of 4, with at least 48 tiles of 4x4 per batch. float32,
   float16 and bfloat16. Other convolutions are not affected.
   Precision: for zero-mean data the RMS error, relative to the largest values nearby, is about
   twice that of direct convolution. An infinity or NaN spreads over its tile. */
DVT_API bool dvt_allow_winograd(bool allow);

/* Sets the number of threads of cpu(). 0 means the default: DEVTENSOR_NUM_THREADS, or one for each
   processor that this process may use (affinity, a container's quota). Results do not depend on it.
   The calling thread computes alone inside OpenMP parallel regions and while another thread uses
   the thread pool. Errors: RANGE (n outside 0..256). */
DVT_API dvt_status dvt_set_num_threads(int n);
/* Returns the number of threads of cpu(). */
DVT_API int dvt_num_threads(void);
/* Returns the ISA target of cpu() and virtual GPUs: "avx512", "avx2", "neon", "plain" or
   "reference". "plain" is portable code for other processors, and for x86 under
   DEVTENSOR_PLAIN_TARGET on request. "reference" is simple loops, the default on x86 without AVX2.
   The first use chooses the best that the processor has, or DEVTENSOR_ISA. Waits: no. Owns: the
   library; constant. */
DVT_API const char *dvt_cpu_isa(void);
/* Sets the ISA target, for tests and comparisons; NULL or "": the best. Results have the same bits
   with "avx512", "avx2" and "neon", and with "plain" where the processor has fused multiply-add.
   Operations that virtual GPUs have begun finish with the previous target. Waits: no. Errors: VALUE
   (unknown, or not available on this processor). */
DVT_API dvt_status dvt_set_cpu_isa(const char *name);

/* How cpu() cuts float32 matrix products. A step multiplies `rows` rows of A with `cols` columns of
   B over `depth` elements. */
typedef struct dvt_cpu_info {
    const char *isa;        /* dvt_cpu_isa() */
    int64_t cache_bytes[3]; /* L1 for data, L2, L3; 0: none, or not known */
    int cache_ways[3], cache_line;
    int64_t rows, cols, depth; /* 0 with ISA target "reference" */
} dvt_cpu_info;

/* Fills *out with the caches and the blocks made for them. The processor reports its caches;
   DEVTENSOR_CPU_CACHES replaces them. The rule for blocks is in src/3_cpu/cpu_gemm_blocks.c. Waits:
   no. Owns: the library owns isa, which is constant. Errors: NULL_ARGUMENT. */
DVT_API dvt_status dvt_cpu_query(dvt_cpu_info *out);
/* Returns the seconds of a monotonic clock, for measuring; use differences. */
DVT_API double dvt_seconds(void);
