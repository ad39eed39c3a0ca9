/* [dvt:config] All switches. Define a switch before including devtensor.h. Switches that change the
   implementation must be the same in all files that use one implementation.

   DEVTENSOR_IMPLEMENTATION   compile the library here: in exactly one translation unit
   DEVTENSOR_STATIC           a private copy: every function is static (implies the implementation)
   DEVTENSOR_NO_THREADS       one thread only: no thread pool, device queues or loader workers
   DEVTENSOR_NO_CUDA          leave out the CUDA driver; virtual GPUs stay
   DEVTENSOR_NO_FILES         leave out everything that opens a file
   DEVTENSOR_NO_FORMATS       leave out all formats of files but .npy, .params, plain IDX and bytes:
                              their functions fail with NOT_BUILT
   DEVTENSOR_NO_NN            leave out blocks, losses, data loading and training
   DEVTENSOR_MPI              training by several processes: needs mpi.h and MPI's compiler
   DEVTENSOR_NO_AVX512        leave out the kernels for AVX-512, which saves their compile time
   DEVTENSOR_NO_SIMD          leave out all vector kernels: small code, many times slower
   DEVTENSOR_PLAIN_TARGET     build the portable ISA target "plain" on x86 too
   DEVTENSOR_NO_CALL_SITES    do not record the file and line of calls
   DEVTENSOR_NO_STDERR        no default logger: nothing is ever printed unless a logger is set
   DEVTENSOR_FILE             this file's name in quotes, if it is not "devtensor.h": the
                              implementation includes it again for the kernels of each ISA target
   DEVTENSOR_LINES            compiler messages and debuggers name the files of src/, not this one

   Environment, read once at first use (defaults in parentheses):
   DEVTENSOR_VIRTUAL_GPUS     number of virtual GPUs (0 to 16)
   DEVTENSOR_VIRTUAL_GPU_MEMORY  bytes of memory of each, with an optional suffix K, M or G
   DEVTENSOR_VIRTUAL_GPU_MODEL  their time model (see dvt_set_virtual_model): any of
                              latency=10us,bandwidth=12G,launch=5us,flops=1T; units s, ms, us, ns
                              and K, M, G, T
   DEVTENSOR_CUDA             0: ignore all CUDA GPUs
   DEVTENSOR_CUDA_PATH        file name of the CUDA driver's library (searched for)
   DEVTENSOR_NVRTC_PATH       file name of NVRTC's library, or its directory (searched for)
   DEVTENSOR_P2P              0: no direct copies between GPUs
   DEVTENSOR_NCCL             1: NCCL sums gradients over GPUs and over processes with GPUs, if its
                             library is found
   DEVTENSOR_CACHE            0: do not keep compiled kernels on disk
   DEVTENSOR_CACHE_DIR        directory of compiled kernels; only this user may be able to write it
   DEVTENSOR_CACHE_SIZE       limit of its bytes, with an optional suffix K, M or G (256M)
   DEVTENSOR_JIT_DUMP         directory to which CUDA sources and compiler logs are written
   DEVTENSOR_NUM_THREADS      threads of cpu(), 1 to 256
   DEVTENSOR_ISA              ISA target of cpu(): avx512, avx2, neon, plain, reference
   DEVTENSOR_CPU_CACHES       caches that cpu() cuts its work for, where the machine reports others:
                              bytes/ways of L1, L2 and L3, such as 32K/8,512K/8,32M/16
   DEVTENSOR_CPU_CACHE        bytes of released memory that cpu(), and each virtual GPU, keeps for
                              reuse, with an optional suffix K, M or G (a quarter of the machine's)
   DEVTENSOR_TF32             1: as dvt_allow_tf32(true)
   DEVTENSOR_TF32X3           1: as dvt_allow_tf32x3(true)
   DEVTENSOR_WINOGRAD         1: as dvt_allow_winograd(true)
   DEVTENSOR_SYNC             1: wait after every operation, so that errors appear at the call
   DEVTENSOR_RANK_TIMEOUT     seconds after which a rank that does not answer is lost (600)
   DEVTENSOR_LOG              lowest level that the default logger writes: debug, info, warning,
                              error, off (warning)
   NVTX_INJECTION64_PATH      library of a profiler, which sets it; it gets the ranges of
                              dvt_range_push */

/* The version of this header, as numbers and as text. */
#define DVT_VERSION_MAJOR 0
#define DVT_VERSION_MINOR 1
#define DVT_VERSION_PATCH 0
#define DVT_VERSION (DVT_VERSION_MAJOR * 10000 + DVT_VERSION_MINOR * 100 + DVT_VERSION_PATCH)
#define DVT_VERSION_STRING "0.1.0"

#if defined(DEVTENSOR_STATIC) && !defined(DEVTENSOR_IMPLEMENTATION)
#define DEVTENSOR_IMPLEMENTATION
#endif

/* Linkage of every public function. */
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
