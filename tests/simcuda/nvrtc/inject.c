/* Call counts and injected failures, in unbounded lists. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

typedef struct counter {
    struct counter *next;
    unsigned calls;
    char name[];
} counter;

typedef struct plan {
    struct plan *next;
    unsigned at; /* the call that fails, by the counter; 0: every one */
    int code;
    char name[];
} plan;

static counter *counters;
static plan *plans;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *new_entry(size_t head, const char *name) {
    char *entry = calloc(1, head + strlen(name) + 1);
    if (!entry) {
        fprintf(stderr, "simcuda: no memory for failure injection\n");
        abort(); /* without this failure the test would test nothing */
    }
    strcpy(entry + head, name);
    return entry;
}

static counter *counter_of(const char *name) {
    for (counter *c = counters; c; c = c->next)
        if (!strcmp(c->name, name))
            return c;
    counter *c = new_entry(offsetof(counter, name), name);
    c->next = counters;
    counters = c;
    return c;
}

static void add_plan(const char *name, unsigned at, int code) {
    plan *p = new_entry(offsetof(plan, name), name);
    p->at = at;
    p->code = code;
    p->next = plans;
    plans = p;
}

static void read_environment(void) {
    const char *text = getenv("SIMNVRTC_FAIL");
    char name[64];
    unsigned at;
    int code, length;
    while (text && sscanf(text, "%63[^@]@%u=%d%n", name, &at, &code, &length) == 3) {
        add_plan(name, at, code);
        text += length;
        text += *text == ',';
    }
    if (text && *text) {
        fprintf(stderr, "simcuda: SIMNVRTC_FAIL: cannot read \"%s\"\n", text);
        abort();
    }
}

int inject(const char *name) {
    int code = 0;
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    unsigned call = ++counter_of(name)->calls;
    for (const plan *p = plans; p && !code; p = p->next)
        if (!strcmp(p->name, name) && (p->at == call || p->at == 0))
            code = p->code;
    pthread_mutex_unlock(&lock);
    return code;
}

static void drop_plans(const char *name) {
    for (plan **at = &plans; *at;) {
        plan *p = *at;
        if (name && strcmp(p->name, name) != 0) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free(p);
    }
}

void sim_nvrtc_fail(const char *name, int nth, int code) {
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    if (nth > 0)
        add_plan(name, counter_of(name)->calls + (unsigned)nth, code);
    else if (code)
        add_plan(name, 0, code);
    else
        drop_plans(name);
    pthread_mutex_unlock(&lock);
}

unsigned sim_nvrtc_calls(const char *name) {
    unsigned calls = 0;
    pthread_mutex_lock(&lock);
    for (const counter *c = counters; c; c = c->next)
        if (!name || !strcmp(c->name, name))
            calls += c->calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

void sim_nvrtc_reset(void) {
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    drop_plans(NULL);
    while (counters) {
        counter *next = counters->next;
        free(counters);
        counters = next;
    }
    pthread_mutex_unlock(&lock);
}
