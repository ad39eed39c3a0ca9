/* Opens NCCL and creates its communicators. DEVTENSOR_NCCL=1 enables it. Otherwise, or without the
   library, our own kernels sum over GPUs. Communicators live as long as the process: destroying
   them at exit would race with the driver's exit. */
#include "3_cuda/driver/dvt_nccl.h"

#define DVTI_NCCL_GROUPS 8

typedef struct dvti_nccl_group {
    int n, device[DVT_MAX_GPUS];
    dvti_nccl_comm comm[DVT_MAX_GPUS];
} dvti_nccl_group;

typedef struct dvti_nccl_state {
    bool tried, usable;
    dvti_nccl library;
    dvti_nccl_group group[DVTI_NCCL_GROUPS];
    int n;
} dvti_nccl_state;

static dvti_nccl_state dvti_nccl_the_state;
static dvti_mutex dvti_nccl_lock = DVTI_MUTEX_INIT;

static bool dvti_nccl_resolve(void *library, dvti_nccl *nccl) {
    void *symbol;
#define DVTI_NCCL_RESOLVE(name, arguments)                                                         \
    symbol = dvti_library_symbol(library, #name);                                                  \
    if (!symbol)                                                                                   \
        return false;                                                                              \
    memcpy(&nccl->name, &symbol, sizeof symbol);
    DVTI_NCCL_TABLE(DVTI_NCCL_RESOLVE)
#undef DVTI_NCCL_RESOLVE
    symbol = dvti_library_symbol(library, "ncclGetErrorString");
    memcpy(&nccl->ncclGetErrorString, &symbol, sizeof symbol);
    return symbol != NULL;
}

DVTI_FN const dvti_nccl *dvti_nccl_open(void) {
    dvti_nccl_state *s = &dvti_nccl_the_state;
    dvti_mutex_lock(&dvti_nccl_lock);
    if (!s->tried) {
        s->tried = true;
        if (dvti_env_int("DEVTENSOR_NCCL", 0, 1, 0)) {
            void *library = dvti_library_open("libnccl.so.2");
            s->usable = library && dvti_nccl_resolve(library, &s->library);
            if (!s->usable)
                dvti_log(DVT_LOG_WARNING,
                         "DEVTENSOR_NCCL=1, but libnccl.so.2 %s; sums over GPUs "
                         "are made without it",
                         library ? "lacks a function that is needed" : "was not found");
        }
    }
    dvti_mutex_unlock(&dvti_nccl_lock);
    return s->usable ? &s->library : NULL;
}

DVTI_FN int dvti_nccl_type(dvt_dtype dtype) {
    static const int types[DVT_DTYPE_COUNT] = {DVTI_NCCL_F32,  DVTI_NCCL_F64, DVTI_NCCL_F16,
                                               DVTI_NCCL_BF16, DVTI_NCCL_I8,  DVTI_NCCL_U8,
                                               DVTI_NCCL_I32,  DVTI_NCCL_I64, -1};
    return types[dtype];
}

/* The caller holds the lock. */
static const dvti_nccl_comm *dvti_nccl_group_of(dvti_nccl_state *s, const int *devices, int n) {
    dvti_nccl_group *group;
    int i, result;
    for (i = 0; i < s->n; i++)
        if (s->group[i].n == n &&
            memcmp(s->group[i].device, devices, (size_t)n * sizeof *devices) == 0)
            return s->group[i].comm;
    if (s->n == DVTI_NCCL_GROUPS)
        return NULL;
    group = &s->group[s->n];
    result = s->library.ncclCommInitAll(group->comm, n, devices);
    if (result != DVTI_NCCL_OK) {
        dvti_log(DVT_LOG_WARNING, "NCCL gave: %s; sums over GPUs are made without it",
                 s->library.ncclGetErrorString(result));
        s->usable = false;
        return NULL;
    }
    group->n = n;
    memcpy(group->device, devices, (size_t)n * sizeof *devices);
    s->n++;
    return group->comm;
}

DVTI_FN const dvti_nccl_comm *dvti_nccl_comms(const int *devices, int n) {
    const dvti_nccl_comm *comms;
    dvti_mutex_lock(&dvti_nccl_lock);
    comms = dvti_nccl_group_of(&dvti_nccl_the_state, devices, n);
    dvti_mutex_unlock(&dvti_nccl_lock);
    return comms;
}

#undef DVTI_NCCL_GROUPS
