/* Selects the processors that the workers of the thread pool run on.

   Linux often wakes a thread on the processor of the thread that wakes it. Virtual machines
   suffer most, because they hide which processors share caches. There the worker queues behind
   the caller, which computes, until load balancing moves it after some milliseconds. Most jobs
   are shorter. So a worker excludes the caller's processor from its affinity mask before it
   sleeps, and restores the mask after it wakes. */
#include "1_base/dvt_base.h"

#if DVTI_THREADS

#if DVTI_LINUX && defined(SYS_getcpu) && defined(SYS_sched_setaffinity)

typedef unsigned long dvti_affinity_words[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))];

/* Reads the affinity mask of a thread. The main thread's id is the process id. */
static long dvti_affinity_of(int64_t thread, unsigned long *mask) {
    memset(mask, 0, sizeof(dvti_affinity_words));
    return syscall(SYS_sched_getaffinity, (pid_t)thread, sizeof(dvti_affinity_words), mask);
}

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
    bytes = dvti_affinity_of(0, home->before);
    if (bytes <= 0 || dvti_affinity_of(dvti_process_id(), home->others) != bytes ||
        !(home->before[processor / bits] >> processor % bits & 1))
        return;
    memcpy(home->without, home->before, sizeof home->without);
    home->without[processor / bits] &= ~(1ul << processor % bits);
    for (i = 0; i < DVTI_AFFINITY_CPUS / bits; i++)
        left |= home->without[i] != 0;
    if (left && syscall(SYS_sched_setaffinity, 0, (size_t)bytes, home->without) == 0)
        home->bytes = bytes;
}

/* Changes nothing when another part of the program has set this thread's mask, or the process's,
   meanwhile. The main thread's mask is taken as the process's. */
DVTI_FN void dvti_affinity_return(dvti_affinity_mask *home) {
    dvti_affinity_words now;
    if (home->bytes && dvti_affinity_of(dvti_process_id(), now) == home->bytes &&
        memcmp(now, home->others, sizeof now) == 0 && dvti_affinity_of(0, now) == home->bytes &&
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

DVTI_FN int dvti_affinity_group(int64_t number, const int *processors, int groups) {
    int64_t all = 0, at;
    int group;
    for (group = 0; group < groups; group++)
        all += processors[group];
    if (groups < 2 || all < 1)
        return -1;
    at = (number + 1) % all; /* the caller runs on the first processor */
    for (group = 0; at >= processors[group]; group++)
        at -= processors[group];
    return group;
}

/* Windows starts the threads of a process with several processor groups (more than 64 processors)
   in one of them. */
DVTI_FN void dvti_affinity_begin(int64_t number) {
#if defined(_WIN32)
    int processors[64], group, groups = DVTI_MIN((int)GetActiveProcessorGroupCount(), 64);
    GROUP_AFFINITY affinity;
    for (group = 0; group < groups; group++)
        processors[group] = (int)GetActiveProcessorCount((WORD)group);
    group = dvti_affinity_group(number, processors, groups);
    if (group < 0)
        return;
    memset(&affinity, 0, sizeof affinity);
    affinity.Group = (WORD)group;
    affinity.Mask = processors[group] >= 8 * (int)sizeof affinity.Mask
                        ? ~(KAFFINITY)0
                        : ((KAFFINITY)1 << processors[group]) - 1;
    SetThreadGroupAffinity(GetCurrentThread(), &affinity, NULL);
#else
    (void)number;
#endif
}

#endif
