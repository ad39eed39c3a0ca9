/* Fibers: stacks, the switch between them, and the signals that an invalid access raises on one.

   The switch saves the callee-saved registers and swaps stacks: measured 7.5 ns. swapcontext took
   231 ns on the same machine, because it reads the signal mask from the kernel each time. */
#define _GNU_SOURCE
#include "exec.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl sim_switch\n"
        ".hidden sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, (%rdi)\n"
        " mov %rsi, %rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        " ret\n"
        ".size sim_switch, . - sim_switch\n");

enum { SAVED = 8, RETURN_SLOT = 6 }; /* words below the start, including the return address */
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl sim_switch\n"
        ".hidden sim_switch\n"
        ".type sim_switch, %function\n"
        "sim_switch:\n"
        " sub sp, sp, #160\n"
        " stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
        " stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
        " stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n"
        " stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
        " mov x9, sp\n"
        " str x9, [x0]\n"
        " mov sp, x1\n"
        " ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
        " ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
        " ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n"
        " ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
        " add sp, sp, #160\n"
        " ret\n"
        ".size sim_switch, . - sim_switch\n");

enum { SAVED = 20, RETURN_SLOT = 11 };
#else
#error "fibers are written for x86-64 and aarch64"
#endif

/* ---- stacks ---- */

struct stack {
    char *low; /* guard pages, then the stack */
    size_t size;
    unsigned number;
    stack *next;
};

/* Large, because a frame may skip over a small one. */
enum { GUARD = 256 << 10 };

static stack *free_stacks;
static unsigned stack_numbers;

static void stack_unmap(stack *s) {
    munmap(s->low, s->size + GUARD);
    free(s);
}

stack *stack_take(size_t need) {
    size_t size = 64 << 10;
    stack *s;
    while (size < need)
        size *= 2;
    while ((s = free_stacks)) { /* all of one size, unless a kernel needs larger ones */
        free_stacks = s->next;
        if (s->size >= size)
            return s;
        stack_unmap(s);
    }
    if (!(s = calloc(1, sizeof *s)))
        return NULL;
    s->size = size;
    s->number = stack_numbers++;
    s->low = mmap(NULL, size + GUARD, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->low == MAP_FAILED) {
        free(s);
        return NULL;
    }
    mprotect(s->low, GUARD, PROT_NONE);
    return s;
}

void stack_give(stack *s) {
    s->next = free_stacks;
    free_stacks = s;
}

bool stack_holds(const stack *s, uint64_t address) {
    return s && address - (uint64_t)(uintptr_t)s->low < s->size + GUARD;
}

void *stack_prepare(stack *s, void (*run)(void)) {
    /* Start offsets are staggered: with equal offsets all stacks would compete for the same cache
       sets. */
    uintptr_t top = (uintptr_t)s->low + GUARD + s->size - (s->number % 61) * 192;
    void **sp = (void **)(top & ~(uintptr_t)63) - SAVED;
    memset(sp, 0, SAVED * sizeof *sp);
    sp[RETURN_SLOT] = (void *)(uintptr_t)run;
    return sp;
}

/* ---- signals ---- */

static struct sigaction before[2];

/* A handler does not leave by switching stacks, because ThreadSanitizer would assume that it never
   ended. It returns to land(), on a separate stack since the fiber's may be full. */
static char landing_stack[16 << 10] __attribute__((aligned(64)));

static void land(void) {
    fiber_leave();
    abort();
}

static void return_to_landing(ucontext_t *machine) {
    uintptr_t top = (uintptr_t)landing_stack + sizeof landing_stack;
#if defined(__x86_64__)
    machine->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)land;
    machine->uc_mcontext.gregs[REG_RSP] = (greg_t)(top - 8); /* as after a call */
#else
    machine->uc_mcontext.pc = (uintptr_t)land;
    machine->uc_mcontext.sp = top;
#endif
}

static void on_signal(int number, siginfo_t *info, void *machine) {
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    if (now && now->running && pthread_equal(now->host, pthread_self())) {
        fiber *f = now->running;
        if (stack_holds(f->stack, address))
            launch_report(CUDA_ERROR_LAUNCH_FAILED, f, NULL,
                          "stack overflow on the fiber of a thread");
        else
            launch_report(CUDA_ERROR_ILLEGAL_ADDRESS, f, NULL, "signal %d at address %#llx", number,
                          (unsigned long long)address);
        return_to_landing(machine);
        return;
    }
    if (in_device_space(address)) {
        static const char text[] = "simcuda: host code follows a device pointer\n";
        if (write(2, text, sizeof text - 1) < 0)
            abort();
    }
    sigaction(number, &before[number == SIGBUS], NULL); /* and again for the previous handler */
}

void faults_watch(void) {
    static bool done;
    struct sigaction action;
    if (done)
        return;
    done = true;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}

/* A thread that has overflowed its fiber's stack needs another stack to report that. */
void faults_thread(void) {
    static _Thread_local bool done;
    stack_t alternative;
    if (done)
        return;
    done = true;
    if (sigaltstack(NULL, &alternative) == 0 && !(alternative.ss_flags & SS_DISABLE))
        return;
    memset(&alternative, 0, sizeof alternative);
    alternative.ss_size = 64 << 10;
    alternative.ss_sp =
        mmap(NULL, alternative.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (alternative.ss_sp != MAP_FAILED)
        sigaltstack(&alternative, NULL);
}
