/* Runs a kernel: its blocks, and the threads of a block as fibers, one at a time. A kernel that
   never waits runs as a plain loop on one fiber. Under the random policy blocks and threads run in
   any order.

   Blocks run one after another until a thread spins (its instruction budget is used up, or it
   sleeps). Then further blocks join, up to the number that a GPU would hold at once, because the
   thread may be waiting for them. */
#include "exec.h"
#include "entry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

launch *now;

/* ---- launch errors ---- */

static void report(CUresult code, const fiber *f, const sim_site *site, const char *format,
                   va_list args) {
    char *at = now->why;
    size_t capacity = now->why_capacity;
    int n;
    if (now->failed)
        return;
    now->failed = true;
    now->code_result = code;
#define ADD(...)                                                                                   \
    n = snprintf(at, capacity, __VA_ARGS__);                                                       \
    n = n < 0 ? 0 : (size_t)n >= capacity ? (int)capacity - 1 : n;                                 \
    at += n;                                                                                       \
    capacity -= (size_t)n
    ADD("kernel %s: ", now->kernel->name);
    n = vsnprintf(at, capacity, format, args);
    n = n < 0 ? 0 : (size_t)n >= capacity ? (int)capacity - 1 : n;
    at += n;
    capacity -= (size_t)n;
    if (f) {
        sim_u3 b = f->home->block.ctaid, t = f->thread.tid;
        ADD(" [block %u,%u,%u thread %u,%u,%u]", b.x, b.y, b.z, t.x, t.y, t.z);
    }
    if (site && site->source_file) {
        ADD(" at %s:%u", site->source_file, site->source_line);
    } else if (site) {
        ADD(" at PTX line %u of %s", site->ptx_line, site->function);
    }
    if (site && site->text) {
        ADD(": %s", site->text);
    }
#undef ADD
}

void launch_report(CUresult code, const fiber *f, const sim_site *site, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(code, f, site, format, args);
    va_end(args);
}

void launch_abort(CUresult code, const fiber *f, const sim_site *site, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(code, f, site, format, args);
    va_end(args);
    fiber_leave();
    abort(); /* never resumed */
}

/* ---- fibers ---- */

void fiber_leave(void) {
    fiber *f = now->running;
    counts.switches++;
    sim_switch(&f->sp, now->scheduler);
}

void fiber_wait(fiber *f, fiber_state state, const sim_site *site) {
    f->state = state;
    f->site = site;
    fiber_leave();
}

void fiber_wake(fiber *f) {
    resident *r = f->home;
    if (f->state == FIBER_READY)
        return;
    f->state = FIBER_READY;
    r->ready[r->ready_count++] = f->index;
}

static void progress(void) {
    now->idle = 0;
}

static void thread_end(fiber *f) {
    if (f->guess && !now->failed)
        guess_end(f, 0, SIM_LOAD);
    f->guess = 0;
    if (f->thread.async && now->code->release)
        now->code->release(&f->thread);
    f->thread.async = NULL;
    count_thread_end(f);
}

void fiber_exit(fiber *f) {
    resident *r = f->home;
    f->state = FIBER_DONE;
    if (r->done++ == 0)
        r->divergent_exit = f->index;
    progress();
    warp_exit(f);
}

static void fiber_main(void) {
    fiber *f = now->running;
    now->kernel->entry(&f->thread);
    fiber_exit(f);
    fiber_leave();
    abort();
}

static void thread_start(fiber *f, uint32_t i) {
    sim_thread *t = &f->thread;
    sim_u3 n = f->home->block.ntid;
    t->tid.x = i % n.x;
    t->tid.y = i / n.x % n.y;
    t->tid.z = i / n.x / n.y;
    t->lane = i % SIM_WARP;
    t->warp = i / SIM_WARP;
    t->budget = BUDGET;
    t->locals = NULL;
    t->async = NULL;
    f->guess = 0;
    f->index = i;
}

/* ---- blocks ---- */

sim_u3 position(uint64_t i, sim_u3 n) {
    sim_u3 p;
    p.x = (uint32_t)(i % n.x);
    p.y = (uint32_t)(i / n.x % n.y);
    p.z = (uint32_t)(i / n.x / n.y);
    return p;
}

static void resident_free(resident *r) {
    if (!r)
        return;
    shared_check_free(r);
    count_resident_free(r);
    free(r->fibers);
    free(r->ready);
    free(r->spun);
    free(r->memory);
    free(r);
}

static resident *resident_new(launch *l) {
    const sim_kernel *k = l->kernel;
    const launch_plan *plan = l->plan;
    resident *r = calloc(1, sizeof *r);
    uint32_t threads = plan->block.x * plan->block.y * plan->block.z;
    if (!r)
        return NULL;
    r->launch = l;
    r->threads = threads;
    r->fibers = calloc(l->direct ? 1 : threads, sizeof *r->fibers);
    r->ready = calloc(threads, sizeof *r->ready);
    r->spun = calloc(threads, sizeof *r->spun);
    r->block.shared_size = plan->dynamic ? k->dynamic_offset + plan->dynamic : k->static_shared;
    r->memory = malloc(r->block.shared_size + 2048);
    r->block.ntid = plan->block;
    r->block.nctaid = plan->grid;
    r->block.dynamic_size = plan->dynamic;
    r->block.nsmid = (uint32_t)settings.multiprocessors;
    r->block.gridid = l->id;
    r->block.params = plan->params;
    r->block.params_size = k->params_size;
    if (!r->fibers || !r->ready || !r->spun || !r->memory || !shared_check_start(r) ||
        !count_resident(r)) {
        resident_free(r);
        return NULL;
    }
    r->block.shared = (char *)(((uintptr_t)r->memory + 1023) & ~(uintptr_t)1023);
    for (uint32_t i = 0; i < (l->direct ? 1 : threads); i++) {
        r->fibers[i].home = r;
        r->fibers[i].thread.driver = &driver_callbacks;
        r->fibers[i].thread.block = &r->block;
    }
    return r;
}

static void block_start(resident *r) {
    launch *l = r->launch;
    r->number = (l->next_block++ * l->stride + l->offset) % l->blocks;
    r->block.ctaid = position(r->number, l->plan->grid);
    r->block.smid = (uint32_t)(r->number % r->block.nsmid);
    memset(r->block.shared, 0xFF, r->block.shared_size); /* NaN, as all fresh memory */
    r->done = r->ready_count = r->spun_count = 0;
    r->block.async = NULL;
    counts.blocks++;
    counts.threads += r->threads;
    count_block_start(r);
    global_check_block(r);
    if (l->direct)
        return;
    barriers_reset(r);
    warps_reset(r);
    shared_check_block(r);
    for (uint32_t i = 0; i < r->threads; i++) {
        fiber *f = &r->fibers[i];
        thread_start(f, i);
        f->sp = NULL;
        f->state = FIBER_READY;
        r->ready[r->ready_count++] = r->threads - 1 - i; /* taken from the end */
    }
    progress();
}

/* ---- kernels that never wait ---- */

static void direct_main(void) {
    launch *l = now;
    resident *r = l->residents[0];
    fiber *f = r->fibers;
    uint32_t stride = 1, offset = 0;
    for (;;) {
        if (l->direct_thread == r->threads) {
            count_block_end(r);
            if (l->next_block == l->blocks)
                break;
            block_start(r);
            l->direct_thread = 0;
        }
        if (settings.policy == POLICY_RANDOM) { /* a cheap permutation: 31 and 33 are units */
            stride = r->threads % 31 ? 31 : 1;
            offset = (uint32_t)(r->number * 17);
        }
        while (l->direct_thread < r->threads) {
            thread_start(f,
                         (uint32_t)(((uint64_t)l->direct_thread++ * stride + offset) % r->threads));
            l->kernel->entry(&f->thread);
            thread_end(f);
        }
    }
    f->state = FIBER_SPUN; /* the budget is used up */
    fiber_leave();
    abort();
}

static size_t stack_need(const sim_kernel *k) {
    return k->recursive ? (size_t)1 << 20 : (size_t)k->stack_bytes + (24 << 10);
}

static void run_direct(launch *l) {
    fiber *f = l->residents[0]->fibers;
    l->direct_thread = l->residents[0]->threads;
    f->stack = stack_take(stack_need(l->kernel));
    if (!f->stack) {
        launch_report(CUDA_ERROR_OUT_OF_MEMORY, NULL, NULL, "no memory for a stack");
        return;
    }
    do { /* restarts after each thread that ended inside a function */
        f->state = FIBER_READY;
        l->running = f;
        sim_switch(&l->scheduler, stack_prepare(f->stack, direct_main));
        thread_end(f);
    } while (f->state == FIBER_DONE && !l->failed);
    l->running = NULL;
    stack_give(f->stack);
}

/* ---- kernels that wait ---- */

static bool resume(fiber *f) {
    launch *l = now;
    if (!f->sp) {
        f->stack = stack_take(stack_need(l->kernel));
        if (!f->stack) {
            launch_report(CUDA_ERROR_OUT_OF_MEMORY, f, NULL, "no memory for a stack");
            return false;
        }
        f->sp = stack_prepare(f->stack, fiber_main);
    }
    l->running = f;
    sim_switch(&l->scheduler, f->sp);
    l->running = NULL;
    if (f->state == FIBER_DONE) {
        thread_end(f);
        stack_give(f->stack); /* reused at once: a kernel without waits stays on one cached stack */
        f->stack = NULL;
    }
    return !l->failed;
}

static fiber *pick(resident *r) {
    uint32_t last = r->ready_count - 1;
    if (settings.policy == POLICY_RANDOM) {
        uint32_t i = (uint32_t)(random_next() % r->ready_count), t = r->ready[i];
        r->ready[i] = r->ready[last];
        r->ready[last] = t;
    }
    r->ready_count = last;
    return &r->fibers[r->ready[last]];
}

static bool add_resident(launch *l) {
    resident *r;
    if (l->resident_count == l->resident_capacity) {
        uint32_t capacity = l->resident_capacity ? 2 * l->resident_capacity : 4;
        resident **more = realloc(l->residents, capacity * sizeof *more);
        if (!more)
            return false;
        l->residents = more;
        l->resident_capacity = capacity;
    }
    if (!(r = resident_new(l)))
        return false;
    l->residents[l->resident_count++] = r;
    if (!l->direct)
        block_start(r);
    return true;
}

/* Makes spinning threads ready again after the other blocks have run. */
static void second_round(launch *l, resident *r) {
    while (r->spun_count > 0)
        fiber_wake(&r->fibers[r->spun[--r->spun_count]]);
    if (l->next_block < l->blocks && l->resident_count < l->resident_most)
        add_resident(l);
}

static const char *end_block(resident *r) {
    const sim_module *m = r->launch->code;
    return m->end_block ? m->end_block(&r->block) : NULL;
}

static void retire(launch *l, uint32_t i) {
    resident *r = l->residents[i];
    const char *left = end_block(r);
    if (left)
        launch_report(CUDA_ERROR_LAUNCH_FAILED, &r->fibers[0], NULL, "%s", left);
    count_block_end(r);
    if (l->next_block < l->blocks) {
        block_start(r);
        return;
    }
    l->residents[i] = l->residents[--l->resident_count];
    resident_free(r);
}

static void run_fibers(launch *l) {
    uint32_t turn = 0;
    while (l->resident_count > 0 && !l->failed) {
        resident *r = l->residents[turn %= l->resident_count];
        while (r->ready_count > 0) {
            if (!resume(pick(r)))
                return;
            /* Resident blocks take turns. */
            if (l->resident_count > 1 && settings.policy == POLICY_RANDOM &&
                random_next() % 16 == 0)
                break;
        }
        if (r->done == r->threads) {
            retire(l, turn);
        } else if (r->ready_count == 0 && r->spun_count > 0) {
            second_round(l, r);
        } else if (r->ready_count == 0) {
            block_stuck(r);
            return;
        }
        turn++;
    }
}

/* ---- the whole launch ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t c = a % b;
        a = b;
        b = c;
    }
    return a;
}

static void order_blocks(launch *l) {
    l->stride = 1;
    if (settings.policy != POLICY_RANDOM || l->blocks < 2)
        return;
    l->offset = random_next() % l->blocks;
    do
        l->stride = 1 + random_next() % l->blocks;
    while (common_divisor(l->stride, l->blocks) != 1);
    if (l->stride > UINT32_MAX) /* the product must not wrap */
        l->stride = 1;
}

static void abandon(launch *l) {
    for (uint32_t i = 0; i < l->resident_count; i++) {
        resident *r = l->residents[i];
        for (uint32_t k = 0; !l->direct && k < r->threads; k++) {
            fiber *f = &r->fibers[k];
            thread_end(f);
            if (f->stack && f->sp && f->state != FIBER_DONE)
                stack_give(f->stack);
        }
        end_block(r);
        resident_free(r);
    }
    free(l->residents);
}

CUresult launch_run(device *d, const launch_plan *plan, char *why, size_t capacity) {
    static uint32_t ids;
    launch l = {.dev = d,
                .ctx = &d->ctx,
                .plan = plan,
                .function = plan->function,
                .why = why,
                .why_capacity = capacity};
    uint32_t threads = plan->block.x * plan->block.y * plan->block.z;
    l.host = pthread_self();
    l.kernel = plan->function->kernel;
    l.code = plan->function->module->code;
    l.blocks = (uint64_t)plan->grid.x * plan->grid.y * plan->grid.z;
    l.id = ++ids;
    l.direct = !l.kernel->needs_fibers && !l.kernel->static_shared && !plan->dynamic;
    l.resident_most = (uint32_t)settings.multiprocessors *
                      occupancy_blocks(d, plan->function, threads, plan->dynamic);
    if (l.resident_most == 0)
        l.resident_most = 1;
    faults_watch();
    faults_thread();
    counts.launches++;
    order_blocks(&l);
    now = &l;
    global_check_start(&l);
    memory_open();
    if (!count_launch(&l))
        launch_report(CUDA_ERROR_OUT_OF_MEMORY, NULL, NULL, "no memory for counts");
    do /* a cooperative grid is resident as a whole; random runs several blocks */
        if (!add_resident(&l)) {
            launch_report(CUDA_ERROR_OUT_OF_MEMORY, NULL, NULL, "no memory for a block");
            break;
        }
    while (l.next_block < l.blocks && !l.direct && l.resident_count < l.resident_most &&
           (plan->cooperative || (settings.policy == POLICY_RANDOM && l.resident_count < 2)));
    if (!l.failed && l.direct)
        run_direct(&l);
    else if (!l.failed)
        run_fibers(&l);
    if (!l.failed)
        global_check_settle();
    global_check_end(&l);
    abandon(&l);
    count_launch_end(&l);
    now = NULL;
    return l.failed ? l.code_result : CUDA_SUCCESS;
}
