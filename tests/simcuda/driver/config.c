/* Settings from the environment, random numbers, and the registry of live objects.

   SIMCUDA_DEVICES=2        how many           SIMCUDA_POLICY=lazy   lazy, eager or random
   SIMCUDA_MEM=256M,...     bytes per device   SIMCUDA_SEED=1        of the random policy
   SIMCUDA_CC=80,...        compute capability SIMCUDA_FAIL=...      failures on demand (entry.c)
   SIMCUDA_DRIVER=13000     version            SIMCUDA_MISSING=a,b   symbols cuGetProcAddress lacks
   SIMCUDA_BROKEN=999       result of cuInit   SIMCUDA_PEER=yes      yes, no, lies
   SIMCUDA_NO_VMM=1         no cuMemMap        SIMCUDA_NO_POOLS=1    no cuMemAllocAsync
   SIMCUDA_SMS=4            multiprocessors    SIMCUDA_RACES=0       no checks of global memory
   SIMCUDA_VERBOSE=1        errors to stderr   SIMCUDA_LEAKS=1       report at exit
   SIMCUDA_ARENA=64G        addresses a device SIMCUDA_QUANTA=...    watchdog, callbacks.c
   SIMCUDA_EXITED_LANES=1   masks may name lanes that have returned */
#define _GNU_SOURCE
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

config settings;
static uint64_t random_state = 1;
static object *objects;

/* ---- random numbers: xorshift64, repeatable for a seed ---- */

uint64_t random_next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void random_seed(uint64_t seed) {
    random_state = seed * 0x9E3779B97F4A7C15u | 1;
}

/* ---- settings ---- */

static uint64_t number(const char *text, char **end) {
    uint64_t n = strtoull(text, end, 0);
    int shift = **end == 'K' ? 10 : **end == 'M' ? 20 : **end == 'G' ? 30 : 0;
    *end += shift != 0;
    return n << shift;
}

uint64_t config_item(const char *list, int i, uint64_t otherwise) {
    uint64_t value = otherwise;
    char *end;
    if (!list || !*list)
        return otherwise;
    for (;; list = end + 1) {
        value = number(list, &end);
        if (end == list || (*end && *end != ',')) {
            fprintf(stderr, "simcuda: '%s' is not a list of numbers\n", list);
            abort();
        }
        if (i-- == 0 || !*end)
            return value;
    }
}

static uint64_t from(const char *name, uint64_t otherwise) {
    return config_item(getenv(name), 0, otherwise);
}

/* Returns the index of the variable's value among the names. Any other value is an error of the
   test. */
static int choice(const char *name, const char *const *names) {
    const char *value = getenv(name);
    if (!value || !*value)
        return 0;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    fprintf(stderr, "simcuda: %s=%s is not known\n", name, value);
    abort();
}

void config_read(void) {
    static const char *const policies[] = {"lazy", "eager", "random", NULL};
    static const char *const peers[] = {"yes", "no", "lies", NULL};
    static bool done;
    if (done)
        return;
    done = true;
    settings.devices = (int)from("SIMCUDA_DEVICES", 2);
    settings.driver = (int)from("SIMCUDA_DRIVER", 13000);
    settings.multiprocessors = (int)from("SIMCUDA_SMS", 4);
    settings.broken = (int)from("SIMCUDA_BROKEN", 0);
    settings.policy = (policy)choice("SIMCUDA_POLICY", policies);
    settings.peers = (peer_mode)choice("SIMCUDA_PEER", peers);
    settings.no_vmm = from("SIMCUDA_NO_VMM", 0) != 0;
    settings.no_pools = from("SIMCUDA_NO_POOLS", 0) != 0 || settings.driver < 11020;
    settings.races = from("SIMCUDA_RACES", 1) != 0;
    settings.exited_lanes = from("SIMCUDA_EXITED_LANES", 0) != 0;
    settings.verbose = from("SIMCUDA_VERBOSE", 0) != 0;
    settings.leaks = from("SIMCUDA_LEAKS", 0) != 0;
    settings.arena = from("SIMCUDA_ARENA", (uint64_t)64 << 30) & ~(uint64_t)0x1FFFFF;
    settings.quanta = from("SIMCUDA_QUANTA", 1 << 18);
    settings.missing = getenv("SIMCUDA_MISSING");
    settings.memory = getenv("SIMCUDA_MEM");
    settings.capability = getenv("SIMCUDA_CC");
    settings.seed = from("SIMCUDA_SEED", 1);
    random_seed(settings.seed);
}

/* ---- objects ---- */

/* Destroyed handles stay here before their memory is reused, so that their use gives an error. */
enum { GRAVES = 4096 };

static void *graves[GRAVES];
static unsigned grave;

void *object_new(handle_kind kind, context *ctx, size_t size) {
    object *o = calloc(1, size);
    if (!o)
        return NULL;
    o->kind = (uint32_t)kind;
    o->ctx = ctx;
    o->next = objects;
    if (objects)
        objects->prev = o;
    objects = o;
    return o;
}

void object_retire(void *pointer) {
    object *o = pointer;
    if (o->prev)
        o->prev->next = o->next;
    else
        objects = o->next;
    if (o->next)
        o->next->prev = o->prev;
    o->kind = 0;
    free(graves[grave % GRAVES]);
    graves[grave++ % GRAVES] = o;
}

void *object_get(const void *handle, handle_kind kind) {
    const object *o = handle;
    if (!o || ((uintptr_t)o & 7) != 0 || o->kind == (uint32_t)kind)
        return (uintptr_t)o & 7 ? NULL : (void *)(uintptr_t)o;
    say("a handle of a %s was expected: %s", object_kind_name((uint32_t)kind),
        o->kind ? object_kind_name(o->kind) : "it has been destroyed");
    return NULL;
}

object *object_first(void) {
    return objects;
}

const char *object_kind_name(uint32_t kind) {
    switch (kind) {
    case KIND_STREAM:
        return "stream";
    case KIND_EVENT:
        return "event";
    case KIND_MODULE:
        return "module";
    case KIND_FUNCTION:
        return "function";
    case KIND_GRAPH:
        return "graph";
    case KIND_EXEC:
        return "executable graph";
    case KIND_POOL:
        return "memory pool";
    case KIND_PHYSICAL:
        return "physical memory";
    default:
        return "nothing known";
    }
}
