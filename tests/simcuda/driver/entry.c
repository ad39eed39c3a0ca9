/* Entering and leaving the driver: one lock, call counts, injected failures, the remembered
   error. */
#define _GNU_SOURCE
#include "entry.h"
#define SIM_CONTROL_IMPLEMENTATION
#include "../sim_control.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
    rule { /* "the nth call of name returns code"; a negative code stays with the context */
    char *name;
    int nth, seen, code;
    struct rule *next;
} rule;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;
static rule *rules;
static bool forked, rules_read;
static uint64_t all_calls;
static uint64_t bugs;
static char last_error[1024];
_Thread_local bool inside_host_function;

void sim_lock(void) {
    pthread_mutex_lock(&mutex);
}

void sim_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

/* Several threads may wait for a stream whose host function runs without the lock. */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

void stream_wait_idle(stream *s) {
    while (s->busy)
        pthread_cond_wait(&idle, &mutex);
}

void stream_wake(void) {
    pthread_cond_broadcast(&idle);
}

/* ---- error messages ---- */

static void remember(const char *format, va_list args) {
    vsnprintf(last_error, sizeof last_error, format, args);
    if (settings.verbose)
        fprintf(stderr, "simcuda: %s\n", last_error);
}

void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    remember(format, args);
    va_end(args);
    bugs++;
}

CUresult fail(CUresult code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    remember(format, args);
    va_end(args);
    bugs++;
    return code;
}

/* ---- injected failures ---- */

static void rule_add(const char *name, size_t length, int nth, int code) {
    rule *r = calloc(1, sizeof *r);
    if (!r || !(r->name = strndup(name, length)))
        abort();
    r->nth = nth;
    r->code = code;
    r->next = rules;
    rules = r;
}

/* SIMCUDA_FAIL="cuMemAlloc_v2@2=2,*@17=700,cuLaunchKernel@3=-719" */
static void rules_from_environment(void) {
    const char *at = getenv("SIMCUDA_FAIL");
    rules_read = true;
    while (at && *at) {
        const char *sign = strchr(at, '@');
        char *end = NULL;
        long nth = sign ? strtol(sign + 1, &end, 10) : 0, code = 0;
        if (!end || *end != '=' || (code = strtol(end + 1, &end, 10)) == 0 ||
            (*end && *end != ',')) {
            fprintf(stderr, "simcuda: SIMCUDA_FAIL: '%s' is not NAME@NTH=CODE\n", at);
            abort();
        }
        rule_add(at, (size_t)(sign - at), (int)nth, (int)code);
        at = *end ? end + 1 : end;
    }
}

static CUresult injected(const char *name) {
    CUresult code = CUDA_SUCCESS;
    if (!rules_read)
        rules_from_environment();
    for (rule *r = rules; r; r = r->next) {
        if (strcmp(r->name, name) != 0 && strcmp(r->name, "*") != 0)
            continue;
        r->seen++;
        if ((r->nth == 0 || r->seen == r->nth) && code == CUDA_SUCCESS)
            code = (CUresult)r->code;
    }
    if (code != CUDA_SUCCESS)
        snprintf(last_error, sizeof last_error, "%s: failed on demand with %d", name, (int)code);
    if ((int)code < 0) {
        code = (CUresult) - (int)code;
        if (current)
            current->sticky = code;
    }
    return code;
}

/* ---- enter and leave ---- */

/* As with the real driver, a child cannot use what the parent set up. */
static void child_after_fork(void) {
    forked = device_count > 0;
    pthread_mutex_init(&mutex, NULL); /* another thread may have held it */
}

bool driver_forked(void) {
    return forked;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, child_after_fork);
}

static CUresult context_state(int need) {
    if (!(need & NEED_INIT & ~UNSAFE))
        return CUDA_SUCCESS;
    if (device_count == 0)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (settings.policy == POLICY_RANDOM)
        streams_step();
    if ((need & NEED_CONTEXT) == NEED_CONTEXT) {
        if (!current)
            return CUDA_ERROR_INVALID_CONTEXT;
        if (!current->alive)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if ((need & NEED_HEALTHY) == NEED_HEALTHY && current->sticky != CUDA_SUCCESS)
        return current->sticky;
    return need & UNSAFE ? capture_forbids() : CUDA_SUCCESS;
}

CUresult sim_enter(entry *e, const char *name, int need) {
    CUresult code;
    if (forked && need != NEED_NOTHING)
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_lock();
    config_read();
    if (!e->name) {
        e->name = name;
        e->next = entries;
        entries = e;
    }
    e->calls++;
    all_calls++;
    code = injected(name);
    if (code == CUDA_SUCCESS && inside_host_function && need != NEED_NOTHING)
        code = fail(CUDA_ERROR_NOT_PERMITTED,
                    "%s: called from a host function of a stream, which may "
                    "not use CUDA",
                    name);
    if (code == CUDA_SUCCESS)
        code = context_state(need);
    if (code != CUDA_SUCCESS) {
        memory_close();
        sim_unlock();
    }
    return code;
}

void sim_leave(const CUresult *entered) {
    if (*entered != CUDA_SUCCESS)
        return; /* sim_enter has released the lock */
    memory_close();
    sim_unlock();
}

/* ---- interface for tests ---- */

void sim_fail(const char *name, int nth, int code) {
    sim_lock();
    rule_add(name, strlen(name), nth, code);
    sim_unlock();
}

void sim_fail_clear(void) {
    sim_lock();
    rules_read = true;
    while (rules) {
        rule *r = rules;
        rules = r->next;
        free(r->name);
        free(r);
    }
    sim_unlock();
}

uint64_t sim_calls(const char *name) {
    uint64_t calls = 0;
    sim_lock();
    for (entry *e = entries; e; e = e->next)
        if (name && strcmp(e->name, name) == 0)
            calls = e->calls;
    if (!name)
        calls = all_calls;
    sim_unlock();
    return calls;
}

const char *sim_last_error(void) {
    return last_error;
}

void sim_clear_error(void) {
    last_error[0] = 0;
}

void sim_reset_device(int id) {
    sim_lock();
    if (id >= 0 && id < device_count)
        devices[id].ctx.sticky = CUDA_SUCCESS;
    sim_unlock();
}

int sim_set_policy(const char *name, uint64_t seed) {
    static const char *const names[] = {"lazy", "eager", "random"};
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            found = i;
    if (found < 0)
        return 1;
    sim_lock();
    config_read();
    settings.policy = (policy)found;
    random_seed(seed);
    for (object *o = object_first(); o; o = o->next)
        if (o->kind == KIND_STREAM)
            ((stream *)o)->urgency = 0;
    sim_unlock();
    return 0;
}

void sim_get_stats(sim_stats *stats) {
    memset(stats, 0, sizeof *stats);
    sim_lock();
    stats->launches = counts.launches;
    stats->blocks = counts.blocks;
    stats->threads = counts.threads;
    stats->switches = counts.switches;
    stats->accesses = counts.accesses;
    stats->copies = counts.copies;
    stats->copied_bytes = counts.bytes;
    stats->bugs = bugs;
    for (region *r = region_first(); r; r = r->next) {
        if (r->state == REGION_FREED || r->kind == REGION_GLOBAL)
            continue;
        if (r->kind == REGION_HOST) {
            stats->host_blocks++;
            continue;
        }
        stats->device_allocations++;
        stats->device_bytes += r->size;
    }
    for (object *o = object_first(); o; o = o->next) {
        stats->streams += o->kind == KIND_STREAM && !((stream *)o)->is_null &&
                          !((stream *)o)->per_thread && !((stream *)o)->zombie;
        stats->events += o->kind == KIND_EVENT;
        stats->modules += o->kind == KIND_MODULE;
        stats->graphs += o->kind == KIND_GRAPH || o->kind == KIND_EXEC;
        stats->pools += o->kind == KIND_POOL && !pool_is_own((pool *)o);
    }
    sim_unlock();
}

int sim_leaks(void) {
    int leaks = 0;
    sim_lock();
    for (region *r = region_first(); r; r = r->next) {
        if (r->state == REGION_FREED || r->kind == REGION_GLOBAL)
            continue;
        leaks++;
        fprintf(stderr, "simcuda: leak: %s %llu of %llu bytes on device %d\n",
                r->kind == REGION_HOST ? "pinned block" : "allocation",
                (unsigned long long)r->number, (unsigned long long)r->size, r->dev->id);
    }
    for (object *o = object_first(); o; o = o->next) {
        stream *s = (stream *)o;
        if (o->kind == KIND_FUNCTION ||
            (o->kind == KIND_STREAM && (s->is_null || s->per_thread || s->zombie)))
            continue;
        if (o->kind == KIND_POOL && pool_is_own((pool *)o))
            continue;
        leaks++;
        fprintf(stderr, "simcuda: leak: %s\n", object_kind_name(o->kind));
    }
    sim_unlock();
    return leaks;
}

__attribute__((destructor)) static void report_at_exit(void) {
    if (settings.leaks && !forked && device_count > 0)
        sim_leaks();
}
