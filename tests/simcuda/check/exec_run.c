/* Runs blocks on ucontexts. The scheduler resumes one ready thread after another; callbacks return
   to it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "exec_inside.h"

enum { MOST_THREADS = 1024, BARRIERS = 16, SLICE = 5000, MOST_SLICES = 20000 };

typedef enum state { READY, AT_BARRIER, IN_WARP, PARKED, ENDED } state;

typedef struct fiber {
    sim_thread thread; /* first: callbacks get its address */
    ucontext_t context;
    char *stack;
    state state;
    uint32_t barrier, result;
    sim_warp_fn *fn;
    uint32_t mask;
} fiber;

typedef struct barrier {
    uint32_t arrived, expected, popc;
} barrier;

static fiber *fibers;
static uint32_t threads, slices, fences;
static barrier barriers[BARRIERS];
static ucontext_t scheduler;
static const sim_kernel *kernel;
static sim_block block;
static char error[2000], printed[2000];

static void give_up(sim_thread *t) {
    fiber *f = (fiber *)t;
    swapcontext(&f->context, &scheduler);
}

static void fail(sim_thread *t, const char *message, const sim_site *site) {
    snprintf(error, sizeof error, "%s [thread %u, %s line %u, %s:%u: %s]", message,
             (unsigned)((fiber *)t - fibers), site->function, site->ptx_line,
             site->source_file ? site->source_file : "?", site->source_line, site->text);
    give_up(t); /* the scheduler sees the error and never resumes this thread */
    abort();
}

static void on_fault(sim_thread *t, sim_fault_code code, const char *message,
                     const sim_site *site) {
    char text[1000];
    snprintf(text, sizeof text, "fault %d: %s", (int)code, message);
    fail(t, text, site);
}

/* ---- barriers ---- */

static void release_barrier(uint32_t id, sim_barrier_kind kind) {
    barrier *b = &barriers[id];
    uint32_t result = kind == SIM_BARRIER_POPC  ? b->popc
                      : kind == SIM_BARRIER_AND ? b->popc == b->arrived
                                                : b->popc != 0;
    for (uint32_t i = 0; i < threads; i++)
        if (fibers[i].state == AT_BARRIER && fibers[i].barrier == id) {
            fibers[i].state = READY;
            fibers[i].result = result;
        }
    memset(b, 0, sizeof *b);
}

static uint32_t on_barrier(sim_thread *t, sim_barrier_kind kind, uint32_t id, uint32_t count,
                           int predicate, int aligned, const sim_site *site) {
    fiber *f = (fiber *)t;
    (void)aligned;
    if (id >= BARRIERS || count % 32)
        fail(t, "a barrier that makes no sense", site);
    barrier *b = &barriers[id];
    if (b->arrived && b->expected != (count ? count : threads))
        fail(t, "threads disagree on a barrier's count", site);
    b->expected = count ? count : threads;
    b->arrived++;
    b->popc += (uint32_t)predicate;
    f->barrier = id;
    if (kind != SIM_BARRIER_ARRIVE)
        f->state = AT_BARRIER;
    if (b->arrived == b->expected)
        release_barrier(id, kind);
    if (kind != SIM_BARRIER_ARRIVE)
        give_up(t);
    return f->result;
}

/* ---- warps ---- */

static void on_collective(sim_thread *t, sim_warp_fn *fn, uint32_t mask, int aligned,
                          const sim_site *site) {
    fiber *f = (fiber *)t, *warp = fibers + t->warp * SIM_WARP;
    sim_thread *lane[SIM_WARP] = {NULL};
    uint32_t arrived = 0, expected = 0;
    (void)aligned;
    if (!(mask >> t->lane & 1))
        fail(t, "a lane that is not in its own mask", site);
    f->state = IN_WARP;
    f->fn = fn;
    f->mask = mask;
    for (uint32_t l = 0; l < SIM_WARP && warp + l < fibers + threads; l++) {
        if (!(mask >> l & 1) || warp[l].state == ENDED)
            continue;
        expected |= 1u << l;
        if (warp[l].state == IN_WARP && warp[l].fn == fn && warp[l].mask == mask)
            arrived |= 1u << l;
    }
    if (arrived != expected) {
        give_up(t);
        return;
    }
    for (uint32_t l = 0; l < SIM_WARP; l++)
        lane[l] = arrived >> l & 1 ? &warp[l].thread : NULL;
    fn(lane, arrived);
    for (uint32_t l = 0; l < SIM_WARP; l++)
        if (arrived >> l & 1)
            warp[l].state = READY;
}

/* ---- the other callbacks ---- */

static void on_access(sim_thread *t, uint64_t address, uint32_t size, sim_access_kind kind,
                      const sim_site *site) {
    uint64_t shared = (uint64_t)(uintptr_t)block.shared;
    int writes = kind == SIM_STORE || kind == SIM_ATOMIC || kind == SIM_STORE_STRONG;
    char text[100];
    if (address >= shared && address + size <= shared + block.shared_size)
        return;
    for (const range *r = exec_ranges; r; r = r->next)
        if (address >= r->address && address + size <= r->address + r->size) {
            if (writes && r->constant)
                fail(t, "a write to constant memory", site);
            t->fast_base = r->constant ? 0 : r->address;
            t->fast_size = r->constant ? 0 : r->size;
            return;
        }
    snprintf(text, sizeof text, "no memory: %u bytes, kind %d", size, (int)kind);
    fail(t, text, site);
}

static void on_end(sim_thread *t) {
    ((fiber *)t)->state = ENDED;
    give_up(t);
    abort();
}

static void on_yield(sim_thread *t, sim_yield_reason reason, const sim_site *site) {
    if (reason == SIM_YIELD_BUDGET && ++slices > MOST_SLICES)
        fail(t, "a kernel that never ends", site);
    t->budget = SLICE;
    give_up(t);
}

static uint64_t on_clock(sim_thread *t) {
    static uint64_t now;
    (void)t;
    return now += 7;
}

static int on_print(sim_thread *t, const char *format, const void *args, const sim_site *site) {
    uint32_t first = 0;
    (void)t;
    (void)site;
    memcpy(&first, args, sizeof first);
    size_t used = strlen(printed);
    snprintf(printed + used, sizeof printed - used, "%s|%u;", format, first);
    return 1;
}

static void on_fence(sim_thread *t, int scope, const sim_site *site) {
    (void)t;
    (void)scope;
    (void)site;
    fences++;
}

static void on_park(sim_thread *t, const sim_site *site) {
    (void)site;
    ((fiber *)t)->state = PARKED;
    give_up(t);
}

static void on_unpark(sim_thread *t) {
    (void)t;
    for (uint32_t i = 0; i < threads; i++)
        if (fibers[i].state == PARKED)
            fibers[i].state = READY;
}

static const sim_driver driver = {on_barrier, on_collective, on_access, on_fault,
                                  on_end,     on_yield,      on_clock,  on_print,
                                  on_fence,   NULL,          on_park,   on_unpark};

/* ---- blocks ---- */

static void fiber_main(int index) {
    kernel->entry(&fibers[index].thread);
    fibers[index].state = ENDED;
    give_up(&fibers[index].thread);
}

static void start_thread(uint32_t i, uint32_t width, uint32_t height) {
    fiber *f = &fibers[i];
    size_t stack = (kernel->stack_bytes + 65536 + (kernel->recursive ? 1u << 20 : 0)) & ~4095u;
    memset(&f->thread, 0, sizeof f->thread);
    f->thread.driver = &driver;
    f->thread.block = &block;
    f->thread.tid = (sim_u3){i % width, i / width % height, i / width / height};
    f->thread.lane = i % SIM_WARP;
    f->thread.warp = i / SIM_WARP;
    f->thread.budget = SLICE;
    f->state = READY;
    f->stack = malloc(stack);
    if (!f->stack)
        abort();
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack;
    f->context.uc_link = NULL;
    makecontext(&f->context, (void (*)(void))fiber_main, 1, (int)i);
}

static void run_block(int reverse) {
    for (uint32_t ended = 0; ended < threads && !error[0];) {
        uint32_t ran = 0;
        ended = 0;
        for (uint32_t k = 0; k < threads && !error[0]; k++) {
            fiber *f = &fibers[reverse ? threads - 1 - k : k];
            if (f->state == READY) {
                ran++;
                swapcontext(&scheduler, &f->context);
            }
            ended += f->state == ENDED;
        }
        if (!ran && ended < threads && !error[0])
            snprintf(error, sizeof error, "deadlock: %u of %u threads wait", threads - ended,
                     threads);
    }
}

static void end_block(const sim_module *module) {
    for (uint32_t i = 0; i < threads; i++) {
        if (fibers[i].thread.async)
            module->release(&fibers[i].thread);
        free(fibers[i].stack);
    }
    const char *left = module->end_block ? module->end_block(&block) : NULL;
    if (left && !error[0])
        snprintf(error, sizeof error, "%s", left);
}

const char *exec_run(exec *e, const char *name, exec_launch l, const void *params) {
    uint32_t width = l.block, height = l.block_y ? l.block_y : 1, depth = l.block_z ? l.block_z : 1;
    kernel = exec_kernel(e, name);
    threads = width * height * depth;
    error[0] = printed[0] = 0;
    slices = fences = 0;
    if (!kernel || threads > MOST_THREADS)
        return "no such kernel, or too many threads";
    uint32_t rows = l.grid_y ? l.grid_y : 1, layers = l.grid_z ? l.grid_z : 1;
    uint32_t size = kernel->dynamic_offset + l.dynamic_shared;
    fibers = calloc(threads, sizeof *fibers);
    char *shared = aligned_alloc(1024, (size + 2047) / 1024 * 1024);
    if (!fibers || !shared)
        abort();
    for (uint32_t b = 0; b < l.grid * rows * layers && !error[0]; b++) {
        memset(shared, 0xff, size);
        memset(barriers, 0, sizeof barriers);
        block = (sim_block){{b % l.grid, b / l.grid % rows, b / l.grid / rows},
                            {width, height, depth},
                            {l.grid, rows, layers},
                            shared,
                            size,
                            l.dynamic_shared,
                            b % 4,
                            4,
                            77,
                            params,
                            kernel->params_size,
                            NULL};
        for (uint32_t i = 0; i < threads; i++)
            start_thread(i, width, height);
        run_block(l.reverse);
        end_block(e->module);
    }
    free(shared);
    free(fibers);
    return error[0] ? error : NULL;
}

unsigned exec_fences(void) {
    return fences;
}

const char *exec_printed(void) {
    return printed;
}
