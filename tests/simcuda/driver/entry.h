/* The way into every entry point: the lock, the call's count, failures on demand, what the call needs. */
#ifndef SIM_ENTRY_H
#define SIM_ENTRY_H

#include "sim.h"

typedef struct entry {
    const char *name;
    uint64_t calls;
    struct entry *next;
} entry;

enum {
    NEED_NOTHING = 0,
    NEED_INIT = 1,
    NEED_CONTEXT = 3, /* a current context that exists */
    NEED_HEALTHY = 7, /* and has no asynchronous error */
    UNSAFE = 8        /* forbidden while a stream captures, see cuThreadExchangeStreamCaptureMode */
};

/* What old_abi.c stands for, on drivers that have no newer form. */
int newer_form(int version);
CUresult old_event_elapsed(float *ms, CUevent start, CUevent end);
CUresult old_exec_update(CUgraphExec exec, CUgraph g, CUgraphNode *node,
                         CUgraphExecUpdateResult *result);
CUresult old_uuid(CUuuid *out, CUdevice id);

CUresult sim_enter(entry *e, const char *name, int need);
/* Is this the child of a process that had the driver started? It may not use it. */
bool driver_forked(void);
void sim_leave(const CUresult *entered);

/* First statement of an entry point. Returns from it when the call may not go on. */
#define ENTER(need) ENTER_AS(__func__, need)

#define ENTER_AS(name, need)                                                                       \
    static entry entry_here;                                                                       \
    const CUresult entered __attribute__((cleanup(sim_leave))) =                                   \
        sim_enter(&entry_here, name, need);                                                        \
    if (entered != CUDA_SUCCESS)                                                                   \
    return entered

#endif
