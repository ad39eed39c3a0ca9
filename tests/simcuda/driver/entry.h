/* The common start of every entry point: the lock, the call count, injected failures, and the state
   that the call needs. */
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

/* For old_abi.c: tells whether the driver has the newer form; else the functions below run. */
int newer_form(int version);
CUresult old_event_elapsed(float *ms, CUevent start, CUevent end);
CUresult old_exec_update(CUgraphExec exec, CUgraph g, CUgraphNode *node,
                         CUgraphExecUpdateResult *result);
CUresult old_uuid(CUuuid *out, CUdevice id);

CUresult sim_enter(entry *e, const char *name, int need);
/* Tells whether this process is a fork of one that had started the driver. It may not use it. */
bool driver_forked(void);
void sim_leave(const CUresult *entered);

/* First statement of an entry point. Returns from it when the call must not continue. */
#define ENTER(need) ENTER_AS(__func__, need)

#define ENTER_AS(name, need)                                                                       \
    static entry entry_here;                                                                       \
    const CUresult entered __attribute__((cleanup(sim_leave))) =                                   \
        sim_enter(&entry_here, name, need);                                                        \
    if (entered != CUDA_SUCCESS)                                                                   \
    return entered

#endif
