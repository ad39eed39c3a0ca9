/* [dvt:config] Every switch, one line each. Define a switch before including devtensor.h; the ones
   that change the implementation must be the same for all includers of one implementation.

   DEVTENSOR_IMPLEMENTATION   in exactly one translation unit: compile the library itself there
   DEVTENSOR_STATIC           a private copy: every function is static (implies the implementation)
   DEVTENSOR_NO_THREADS       one thread only: no pool, no device queues, no loader workers
   DEVTENSOR_NO_CUDA          leave out the CUDA driver; virtual GPUs stay
   DEVTENSOR_NO_FILES         leave out everything that opens a file
   DEVTENSOR_NO_NN            leave out blocks, losses, data loading and training
   DEVTENSOR_NO_AVX512        leave out the kernels for AVX-512, which saves their compile time
   DEVTENSOR_PLAIN_TARGET       on x86 too: the portable ISA target "plain"
   DEVTENSOR_NO_CALL_SITES    do not remember the file and line at which arrays were made
   DEVTENSOR_NO_STDERR        no default logger: nothing is ever printed unless a logger is set
   DEVTENSOR_FILE             this file's name in quotes, where it is not "devtensor.h": the
                              implementation includes it again for the kernels of each ISA target
   DEVTENSOR_LINES            compiler messages and debuggers name the files of src/, not this one

   Environment, read once at first use:
   DEVTENSOR_VIRTUAL_GPUS     number of virtual GPUs (0 to 16)
   DEVTENSOR_VIRTUAL_GPU_MEMORY  bytes of memory of each, with an optional suffix K, M or G
   DEVTENSOR_VIRTUAL_GPU_MODEL  the time they take (see dvt_set_virtual_model): any of
                              latency=10us,bandwidth=12G,launch=5us,flops=1T; units s, ms, us, ns
                              and K, M, G, T
   DEVTENSOR_CUDA             0: do as if there were no CUDA GPU
   DEVTENSOR_CUDA_PATH        the driver's library, instead of looking for it
   DEVTENSOR_NVRTC_PATH       NVRTC's library or its directory, instead of looking for it
   DEVTENSOR_P2P              0: copies between GPUs never go directly
   DEVTENSOR_NCCL             1: gradients are summed over GPUs by NCCL, when it is found
   DEVTENSOR_CACHE            0: compiled kernels are not kept on disk
   DEVTENSOR_CACHE_DIR        where they are kept; must be writable by this user only
   DEVTENSOR_CACHE_SIZE       bytes they may take, with an optional suffix K, M or G (256M)
   DEVTENSOR_JIT_DUMP         a directory: CUDA sources and the logs of errors are written there
   DEVTENSOR_NUM_THREADS      threads of cpu(), 1 to 256
   DEVTENSOR_ISA              ISA target of cpu(): avx512, avx2, neon, plain, reference
   DEVTENSOR_CPU_CACHE        bytes of released memory that cpu(), and each virtual GPU, keeps for
                              later, with an optional suffix K, M or G (a quarter of the machine's)
   DEVTENSOR_TF32             1: as dvt_allow_tf32(true)
   DEVTENSOR_WINOGRAD         1: as dvt_allow_winograd(true)
   DEVTENSOR_SYNC             1: wait after every operation, so that errors appear at the call
   DEVTENSOR_LOG              lowest level written by the default logger: debug, info, warning,
   error, off */

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
