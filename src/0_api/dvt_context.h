/* [dvt:context] Contexts and devices. cpu(0), cpu(1), ... are different contexts on the same
   hardware; gpu(i) is one CUDA GPU, or one virtual GPU with a memory space and a command queue of
   its own. Making a context value is always legal; a missing device is an error when memory is
   wanted there. */

/* cpu(0), cpu(i), gpu(i), tpu(i). Copies: never. Waits: no. */
DVT_API dvt_ctx dvt_cpu(void);
DVT_API dvt_ctx dvt_cpu_id(int id);
DVT_API dvt_ctx dvt_gpu(int id);
DVT_API dvt_ctx dvt_tpu(int id);
/* Same type and same id (DVT_DEVICE_DEFAULT is resolved first). */
DVT_API bool dvt_ctx_equal(dvt_ctx a, dvt_ctx b);
/* "cpu(0)", "gpu(1)". Owns: the library, per thread; valid for this thread's next 15 calls. */
DVT_API const char *dvt_ctx_name(dvt_ctx ctx);
/* Reads a device's name as MXNet, PyTorch, TensorFlow or JAX writes it. A missing number is 0.
   CUDA devices are gpu(i), XLA devices are tpu(i):
     "cpu", "cpu(0)", "cpu:0", "gpu", "gpu(1)", "gpu:1", "cuda", "cuda:1", "tpu(0)", "xla:0"
     "device(type='cpu')", "device(type='cuda', index=1)"
     "CPU:0", "/CPU:0", "/GPU:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1"
     "CpuDevice(id=0)", "CudaDevice(id=1)", "TpuDevice(id=0)", "TFRT_CPU_0", "TPU_0"
   Does not ask whether the device exists. Errors: NAME; `out` is then unchanged. */
DVT_API dvt_status dvt_ctx_parse(const char *name, dvt_ctx *out);
/* DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)): a list of one to eight. */
#define DVT_CONTEXTS(...) DVT_CALL_8(dvt_ctx_list_make, dvt_cpu(), __VA_ARGS__)
/* Writes "[cpu(0), gpu(0), gpu(1)]" into buffer, cut to fit. Returns the full length. */
DVT_API size_t dvt_ctx_list_format(dvt_ctx_list list, char *buffer, size_t size);

/* The number of GPUs, real or virtual; 0 without any. Never an error. The first call initializes
   CUDA where there is a driver. It creates no context on a GPU, but GPUs then belong to this
   process: a child forked later cannot use them. */
DVT_API int dvt_num_gpus(void);
/* One line that says why dvt_num_gpus() is 0, or "" when it is not. */
DVT_API const char *dvt_gpu_reason(void);
/* gpu(i) when it exists, else cpu(). */
DVT_API dvt_ctx dvt_try_gpu(int i);
/* The number of TPUs: 0, since devtensor has no TPU backend. An array on tpu(i) is the error
   NO_DEVICE. */
DVT_API int dvt_num_tpus(void);
/* tpu(i) when it exists, else gpu(i) when that exists, else cpu(). */
DVT_API dvt_ctx dvt_try_tpu_gpu(int i);
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

/* What DVT_WITH_CTX calls; by hand, end what was begun, innermost first. NULL is fine. */
DVT_API dvt_ctx_guard dvt_ctx_scope_begin(dvt_ctx ctx);
DVT_API void dvt_ctx_scope_end(dvt_ctx_guard *guard);
#define DVT_WITH_CTX(context)                                                                      \
    DVT_GUARDED("DVT_WITH_CTX", dvt_ctx_guard, dvt_g_ctx, dvt_ctx_scope_begin(context),            \
                dvt_ctx_scope_end)
/* The same as a declaration, until the end of the enclosing block: break leaves the loop around it,
   as in [dvt:scope]. */
#define DVT_CTX_SCOPED(context)                                                                    \
    DVT_GUARD_DECLARED(dvt_ctx_guard, DVT_GUARD_NAME(dvt_g_ctx_scoped, __LINE__),                  \
                       dvt_ctx_scope_begin(context), dvt_ctx_scope_end)

/* n virtual GPUs with `bytes` of memory each (0: no limit), replacing the virtual ones that there
   were. Errors: RANGE (n outside 0..DVT_MAX_GPUS), VALUE (arrays are still alive on a virtual GPU,
   or another thread is using one). */
DVT_API dvt_status dvt_set_virtual_gpus(int n, int64_t bytes);

/* A model of the time that virtual GPUs in main memory take. Their queues and callers wait for it;
   results never change. A value of 0 costs nothing, and all are 0 at the start. Real GPUs are
   not modeled. */
typedef struct dvt_virtual_model {
    double latency;   /* seconds of each copy between main memory and a GPU, or two GPUs */
    double bandwidth; /* bytes per second of these copies; 0: no limit */
    double launch;    /* seconds that each operation on a GPU takes its caller */
    double flops;     /* operations per second of a GPU; 0: no limit. A multiply-add of a product
                         or a convolution counts as two, everything else as one for each element
                         of its largest array */
    bool clock_only;  /* nothing waits: only dvt_virtual_seconds counts */
} dvt_virtual_model;

/* Sets the model of all virtual GPUs for the calls that follow; NULL: none. The first model is that
   of DEVTENSOR_VIRTUAL_GPU_MODEL. Waits: no. Errors: RANGE (a negative or infinite number, or NaN;
   then nothing changes). */
DVT_API dvt_status dvt_set_virtual_model(const dvt_virtual_model *model);
DVT_API dvt_virtual_model dvt_get_virtual_model(void);
/* Returns the modeled seconds that this thread's calls have taken; take differences. An operation
   on a GPU begins when it has been called and the GPU is free. Waiting (dvt_wait, reading values)
   moves this thread's time to its end. The program itself and cpu() take no time, so the same calls
   always give the same number. Waits: no. */
DVT_API double dvt_virtual_seconds(void);

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
/* For everything that was started on ctx; on cpu() nothing is pending. Errors also: NO_DEVICE. */
DVT_API dvt_status dvt_synchronize(dvt_ctx ctx);
/* For every context. */
DVT_API dvt_status dvt_wait_all(void);

/* Allows or forbids TF32 in float32 matrix products and convolutions on GPUs, for the whole
   process; returns the previous setting. Forbidden at the start, unless DEVTENSOR_TF32=1. GPUs of
   compute capability 8.0 and higher then round both factors to TF32 (10 bits of mantissa instead of
   23, the same range); sums stay float32. Relative errors are about 1e-3. Matrix products need rows
   that begin at multiples of 16 bytes. cpu() and other dtypes never change. The setting when the
   operation is called counts. */
DVT_API bool dvt_allow_tf32(bool allow);
/* Allows or forbids Winograd's method for 3x3 convolutions of stride 1, and for their gradients to
   the data, on cpu() and virtual GPUs, for the whole process; returns the previous setting.
   Forbidden at the start, unless DEVTENSOR_WINOGRAD=1.
   Shapes: at least 32 input and 32 output channels, one group, no dilation, padding of at most 2,
   output sizes close to multiples of 4, at least 48 tiles of 4x4 per batch. float32, float16 and
   bfloat16. Other convolutions never change.
   Precision: the RMS error is about twice that of direct convolution on zero-mean data, relative to
   the largest values nearby. An infinity or NaN spreads over its tile. */
DVT_API bool dvt_allow_winograd(bool allow);

/* Sets the number of threads of cpu(). 0 means the default: DEVTENSOR_NUM_THREADS, or one for each
   processor that this process may use (affinity, a container's quota). Results do not depend on it.
   In a parallel region of OpenMP, and in threads that find the others busy, the calling thread
   computes alone. Errors: RANGE (n outside 0..256). */
DVT_API dvt_status dvt_set_num_threads(int n);
DVT_API int dvt_num_threads(void);
/* Returns the ISA target of cpu() and virtual GPUs: "avx512", "avx2", "neon", "plain" (portable
   code: processors without the others, and x86 under DEVTENSOR_PLAIN_TARGET when asked for), or
   "reference" (simple loops, the default on x86 without AVX2). Chosen at first use: the best that
   the processor has, or DEVTENSOR_ISA. Waits: no. */
DVT_API const char *dvt_cpu_isa(void);
/* Chooses the ISA target, for tests and comparisons; NULL or "": the best. Results have the same
   bits with "avx512", "avx2" and "neon", and with "plain" where the processor has fused
   multiply-add. Commands that virtual GPUs have begun finish with the previous target. Waits: no.
   Errors: VALUE (unknown, or not available on this processor). */
DVT_API dvt_status dvt_set_cpu_isa(const char *name);
/* Seconds since some fixed moment, for measuring. */
DVT_API double dvt_seconds(void);
