/* The parts of NVIDIA's collectives library that sums need. The types match nccl.h; tests/cuda
   checks them. */
#ifndef DVTI_NCCL_H
#define DVTI_NCCL_H
#include "3_cuda/dvt_cuda.h"

typedef void *dvti_nccl_comm;

/* Names a group of processes; passed by value. */
typedef struct dvti_nccl_id {
    char bytes[128];
} dvti_nccl_id;

enum {
    DVTI_NCCL_OK = 0,
    DVTI_NCCL_IN_PROGRESS = 7, /* not a failure */
    DVTI_NCCL_SUM = 0,
    DVTI_NCCL_I8 = 0,
    DVTI_NCCL_U8 = 1,
    DVTI_NCCL_I32 = 2,
    DVTI_NCCL_I64 = 4,
    DVTI_NCCL_F16 = 6,
    DVTI_NCCL_F32 = 7,
    DVTI_NCCL_F64 = 8,
    DVTI_NCCL_BF16 = 9
};

#define DVTI_NCCL_TABLE(X)                                                                         \
    X(ncclCommInitAll, (dvti_nccl_comm * comms, int n, const int *devices))                        \
    X(ncclGetUniqueId, (dvti_nccl_id * id))                                                        \
    X(ncclCommInitRank, (dvti_nccl_comm * comm, int n, dvti_nccl_id id, int rank))                 \
    X(ncclCommGetAsyncError, (dvti_nccl_comm comm, int *result))                                   \
    X(ncclCommAbort, (dvti_nccl_comm comm))                                                        \
    X(ncclCommDestroy, (dvti_nccl_comm comm))                                                      \
    X(ncclGroupStart, (void))                                                                      \
    X(ncclGroupEnd, (void))                                                                        \
    X(ncclAllReduce, (const void *from, void *to, size_t count, int type, int operation,           \
                      dvti_nccl_comm comm, dvti_cu_stream stream))

#define DVTI_NCCL_MEMBER(name, arguments) int(DVTI_CUDA_CALL * name) arguments;

typedef struct dvti_nccl {
    DVTI_NCCL_TABLE(DVTI_NCCL_MEMBER)
    const char *(DVTI_CUDA_CALL *ncclGetErrorString)(int result);
} dvti_nccl;

#undef DVTI_NCCL_MEMBER

/* Returns the library, opened at the first call. Returns NULL, with one log message, unless
   DEVTENSOR_NCCL=1 is set and the library loads. */
DVTI_FN const dvti_nccl *dvti_nccl_open(void);
/* Returns -1 for a dtype that NCCL does not sum. */
DVTI_FN int dvti_nccl_type(dvt_dtype dtype);
/* Returns one communicator per GPU, in that order, created at the first use of the list and kept.
   NULL on failure. */
DVTI_FN const dvti_nccl_comm *dvti_nccl_comms(const int *devices, int n);

#endif
