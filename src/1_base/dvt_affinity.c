/* Where the pool's threads run.

   Linux often wakes a thread on the processor of whoever wakes it, above all in virtual machines, whose processors do not look like
   neighbours. There it stands behind the caller, which computes, until the load is balanced some milliseconds later: longer than most jobs
   take. So a worker that goes to sleep says beforehand that it will not run where the caller does, and takes that back when it is awake. */
#include "1_base/dvt_base.h"

#if DVTI_THREADS

#if DVTI_LINUX && defined(SYS_getcpu) && defined(SYS_sched_setaffinity)

DVTI_FN int dvti_affinity_now(void) {
    unsigned processor = 0;
    return syscall(SYS_getcpu, &processor, NULL, NULL) == 0 ? (int)processor : -1;
}

DVTI_FN void dvti_affinity_leave(dvti_affinity_mask *home, int processor) {
    const int bits = 8 * (int)sizeof home->before[0];
    long bytes;
    int i, left = 0;
    home->bytes = 0;
    if (processor < 0 || processor >= DVTI_AFFINITY_CPUS)
        return;
    memset(home, 0, sizeof *home);
    bytes = syscall(SYS_sched_getaffinity, 0, sizeof home->before, home->before);
    if (bytes <= 0 || !(home->before[processor / bits] >> processor % bits & 1))
        return;
    memcpy(home->without, home->before, sizeof home->without);
    home->without[processor / bits] &= ~(1ul << processor % bits);
    for (i = 0; i < DVTI_AFFINITY_CPUS / bits; i++)
        left |= home->without[i] != 0;
    if (left && syscall(SYS_sched_setaffinity, 0, (size_t)bytes, home->without) == 0)
        home->bytes = bytes;
}

/* Unless somebody else has said meanwhile where this thread is to run. */
DVTI_FN void dvti_affinity_return(dvti_affinity_mask *home) {
    unsigned long now[sizeof home->without / sizeof home->without[0]];
    if (!home->bytes)
        return;
    memset(now, 0, sizeof now);
    if (syscall(SYS_sched_getaffinity, 0, sizeof now, now) == home->bytes &&
        memcmp(now, home->without, sizeof now) == 0)
        syscall(SYS_sched_setaffinity, 0, (size_t)home->bytes, home->before);
    home->bytes = 0;
}

#else

DVTI_FN int dvti_affinity_now(void) {
    return -1;
}

DVTI_FN void dvti_affinity_leave(dvti_affinity_mask *home, int processor) {
    (void)processor;
    home->bytes = 0;
}

DVTI_FN void dvti_affinity_return(dvti_affinity_mask *home) {
    (void)home;
}

#endif

DVTI_FN void dvti_affinity_yield(void) {
#if defined(_WIN32)
    SwitchToThread();
#else
    sched_yield();
#endif
}

/* Threads of a process with several groups of processors (more than 64) begin in one of them. */
DVTI_FN void dvti_affinity_begin(int64_t number) {
#if defined(_WIN32)
    WORD group, groups = GetActiveProcessorGroupCount();
    int64_t all = (int64_t)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), at;
    if (groups < 2 || all < 1)
        return;
    at = (number + 1) % all; /* the caller has the first processor */
    for (group = 0; group < groups; group++) {
        DWORD here = GetActiveProcessorCount(group);
        if (at < (int64_t)here) {
            GROUP_AFFINITY affinity;
            memset(&affinity, 0, sizeof affinity);
            affinity.Group = group;
            affinity.Mask =
                here >= 8 * sizeof affinity.Mask ? ~(KAFFINITY)0 : ((KAFFINITY)1 << here) - 1;
            SetThreadGroupAffinity(GetCurrentThread(), &affinity, NULL);
            return;
        }
        at -= (int64_t)here;
    }
#else
    (void)number;
#endif
}

#endif
