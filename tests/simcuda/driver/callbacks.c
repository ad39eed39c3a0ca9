/* The callbacks that running code may call (sim_driver of sim_module.h), except those with files of
   their own. */
#include "exec.h"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

static CUresult fault_result(sim_fault_code code) {
    switch (code) {
    case SIM_FAULT_MISALIGNED:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case SIM_FAULT_ADDRESS:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SIM_FAULT_ASSERT:
        return CUDA_ERROR_ASSERT;
    case SIM_FAULT_ILLEGAL:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static void on_fault(sim_thread *t, sim_fault_code code, const char *message,
                     const sim_site *site) {
    launch_abort(fault_result(code), (fiber *)t, site, "%s", message);
}

static void on_exit_thread(sim_thread *t) {
    fiber *f = (fiber *)t;
    if (!now->direct)
        fiber_exit(f);
    else
        f->state = FIBER_DONE; /* the loop restarts on a fresh stack with the next thread */
    fiber_leave();
    abort();
}

static void on_yield(sim_thread *t, sim_yield_reason reason, const sim_site *site) {
    fiber *f = (fiber *)t;
    t->budget = BUDGET;
    now->quanta++;
    (void)reason; /* a sleeping thread waits as well */
    if (++now->idle > settings.quanta || now->quanta > settings.quanta * 16)
        launch_abort(CUDA_ERROR_LAUNCH_TIMEOUT, f, site,
                     "the kernel does not end: a thread spins and nothing "
                     "else happens");
    if (now->direct)
        return;
    f->home->spun[f->home->spun_count++] = f->index;
    fiber_wait(f, FIBER_SPUN, site);
}

static uint64_t on_clock(sim_thread *t) {
    static uint64_t ticks;
    (void)t;
    return ticks += 97;
}

/* Determines the size of each argument from the conversions of the format, after C's default
   promotions. */
static int on_print(sim_thread *t, const char *format, const void *args, const sim_site *site) {
    const char *at = args;
    int count = 0;
    (void)t;
    (void)site;
    for (const char *p = format; *p;) {
        char spec[64], last;
        size_t n = strcspn(p, "%");
        fwrite(p, 1, n, stdout);
        p += n;
        if (!*p)
            break;
        n = 1 + strspn(p + 1, "-+ #0123456789.hlzjt");
        last = p[n];
        if (!last || n + 2 > sizeof spec) {
            fputs(p, stdout);
            break;
        }
        memcpy(spec, p, n + 1);
        spec[n + 1] = 0;
        p += n + 1;
        if (last == '%') {
            putchar('%');
            continue;
        }
        count++;
        if (strchr("eEfFgGaA", last) || last == 's' || last == 'p' || strpbrk(spec, "lzjt")) {
            at = (const char *)args + ((size_t)(at - (const char *)args + 7) & ~(size_t)7);
            if (last == 's')
                printf(spec, *(char *const *)(const void *)at);
            else if (last == 'p')
                printf(spec, *(void *const *)(const void *)at);
            else if (strpbrk(spec, "lzjt"))
                printf(spec, *(const long long *)(const void *)at);
            else
                printf(spec, *(const double *)(const void *)at);
            at += 8;
        } else {
            printf(spec, *(const int *)(const void *)at);
            at += 4;
        }
    }
    fflush(stdout);
    return count;
}

static void on_fence(sim_thread *t, int scope, const sim_site *site) {
    (void)site;
    global_check_fence((fiber *)t, scope);
}

static void on_park(sim_thread *t, const sim_site *site) {
    fiber_wait((fiber *)t, FIBER_PARKED, site);
}

static void on_unpark(sim_thread *t) {
    resident *r = ((fiber *)t)->home;
    now->idle = 0;
    for (uint32_t i = r->threads; i-- > 0;)
        if (r->fibers[i].state == FIBER_PARKED)
            fiber_wake(&r->fibers[i]);
}

const sim_driver driver_callbacks = {on_barrier,     on_collective, on_access, on_fault,
                                     on_exit_thread, on_yield,      on_clock,  on_print,
                                     on_fence,       on_count,      on_park,   on_unpark};
