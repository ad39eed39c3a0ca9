/* A kernel while it runs: the launch, its resident blocks, their threads. One launch runs at a
   time, on the host thread that drains its stream. */
#ifndef SIM_EXEC_H
#define SIM_EXEC_H

#include "sim.h"
#include <pthread.h>

typedef enum fiber_state {
    FIBER_READY,
    FIBER_SPUN, /* yielded to the others */
    FIBER_BARRIER,
    FIBER_WARP,
    FIBER_PARKED,
    FIBER_DONE
} fiber_state;

typedef struct stack stack;
typedef struct resident resident;

typedef struct fiber {
    sim_thread thread; /* first member: callbacks receive its address */
    resident *home;
    void *sp; /* NULL before the first switch */
    stack *stack;
    uint32_t index; /* within the block */
    fiber_state state;
    const sim_site *site; /* where it waits */
    uint32_t barrier, result;
    /* a plain read of a value that others change by atomics: correct when the next access of this
       thread there is an atomic, as in a loop around atomicCAS; otherwise a race */
    uint64_t guess;
    uint32_t guess_size;
    const sim_site *guess_site;
} fiber;

typedef struct barrier {
    uint32_t arrived, expected;
    bool whole; /* expects all threads of the block */
    sim_barrier_kind kind;
    uint32_t votes;
    const sim_site *site;
    uint32_t waiting[SIM_WARP], parties[SIM_WARP]; /* one bit per thread: waits; has arrived */
} barrier;

typedef struct rendezvous {
    sim_warp_fn *fn;
    uint32_t mask, arrived;
    const sim_site *site;
} rendezvous;

typedef struct warp {
    uint32_t exited; /* lanes that have returned or never existed */
    uint32_t meetings;
    rendezvous meeting[SIM_WARP]; /* at most one per lane */
} warp;

typedef struct launch launch;
typedef struct shared_check shared_check;
typedef struct block_counts block_counts;

struct resident { /* a block with its threads */
    sim_block block;
    launch *launch;
    uint64_t number; /* within the grid */
    uint32_t threads, done, ready_count, spun_count;
    fiber *fibers;
    uint32_t *ready, *spun;
    char *memory; /* allocation that contains the aligned block.shared */
    barrier barriers[16];
    warp warps[SIM_WARP];
    uint32_t divergent_exit; /* the first thread that returned, for messages */
    shared_check *check;
    uint16_t clock;            /* race_global.c: fences that its threads have passed */
    struct acquired *acquired; /* releases that it has acquired */
    block_counts *counts;      /* count.c; NULL when the module does not count */
};

struct launch {
    pthread_t host; /* the host thread that runs it */
    device *dev;
    context *ctx;
    const launch_plan *plan;
    function *function;
    const sim_kernel *kernel;
    const sim_module *code;
    uint64_t blocks, next_block, stride,
        offset; /* block i of the order is (i * stride + offset) % blocks */
    uint32_t id;
    bool failed, direct;
    CUresult code_result;
    char *why;
    size_t why_capacity;
    void *scheduler;
    fiber *running;
    resident **residents;
    uint32_t resident_count, resident_capacity, resident_most;
    uint64_t idle, quanta; /* watchdog: budgets used since the last progress, and in total */
    bool race_global;
    uint64_t direct_block;
    uint32_t direct_thread;
    struct launch_counts *counts;
};

extern launch *now;
extern const sim_driver driver_callbacks;

enum { BUDGET = 1 << 16 };

/* ---- fiber.c ---- */
void sim_switch(void **save, void *to);
stack *stack_take(size_t need);
void stack_give(stack *s);
bool stack_holds(const stack *s, uint64_t address);
/* Prepares a stack for a new fiber that will call run(). Returns its stack pointer. */
void *stack_prepare(stack *s, void (*run)(void));
void faults_watch(void);
void faults_thread(void);

/* ---- scheduler.c ---- */
/* Records why the launch ends. The text gets the kernel, the thread and the site. f and site may be
   NULL. */
void launch_report(CUresult code, const fiber *f, const sim_site *site, const char *format, ...)
    SIM_PRINTF(4, 5);
/* Marks the thread as returned. The others continue, or fail because they can never be released. */
void fiber_exit(fiber *f);
/* Returns to the scheduler. */
void fiber_leave(void);
_Noreturn void launch_abort(CUresult code, const fiber *f, const sim_site *site, const char *format,
                            ...) SIM_PRINTF(4, 5);
void fiber_wake(fiber *f);
void fiber_wait(fiber *f, fiber_state state, const sim_site *site);
sim_u3 position(uint64_t i, sim_u3 extent);

/* ---- barrier.c, warp.c ---- */
uint32_t on_barrier(sim_thread *t, sim_barrier_kind kind, uint32_t id, uint32_t count,
                    int predicate, int aligned, const sim_site *site);
void on_collective(sim_thread *t, sim_warp_fn *fn, uint32_t mask, int aligned,
                   const sim_site *site);
void barriers_reset(resident *r);
void warps_reset(resident *r);
void warp_exit(fiber *f);
/* Reports why no thread of the block can continue. */
void block_stuck(resident *r);

/* ---- access.c ---- */
void on_access(sim_thread *t, uint64_t address, uint32_t size, sim_access_kind kind,
               const sim_site *site);

void guess_open(fiber *f, uint64_t address, uint32_t size, const sim_site *site);
/* Ends the guess when the thread ends or makes this access: reports a race unless its atomic
   followed. */
void guess_end(fiber *f, uint64_t address, sim_access_kind kind);

/* ---- count.c: all return at once for a module that does not count ---- */
bool count_launch(launch *l);
void count_launch_end(launch *l);
bool count_resident(resident *r);
void count_resident_free(resident *r);
void count_block_start(resident *r);
void count_thread_end(fiber *f);
void count_block_end(resident *r);
/* All threads of these warps have arrived at a barrier, or these lanes at a collective: what they
   did before is complete. */
void count_barrier(resident *r, const barrier *b);
void count_collective(resident *r, uint32_t warp, uint32_t arrived);
void on_count(sim_thread *t, uint64_t address, uint32_t size, sim_access_kind kind,
              const sim_site *site);

/* ---- race_shared.c ---- */
bool shared_check_start(resident *r);
void shared_check_free(resident *r);
void shared_check_block(resident *r);
void shared_check_access(fiber *f, uint32_t offset, uint32_t size, sim_access_kind kind,
                         const sim_site *site);
void shared_check_barrier(resident *r, const barrier *b);
void shared_check_warp(resident *r, uint32_t warp, uint32_t mask);

/* ---- race_global.c ---- */
void global_check_start(launch *l);
void global_check_end(launch *l);
void global_check_block(resident *r);
void global_check_access(fiber *f, region *r, uint64_t address, uint32_t size, sim_access_kind kind,
                         const sim_site *site);
void global_check_fence(fiber *f, int scope);
/* Compares what a suspicious store wrote with the previous value. */
void global_check_settle(void);

#endif
