/* The test interface of the simulated driver and compiler (tests/simcuda), looked up in the loaded
   libraries. */
#ifndef SIMULATED_H
#define SIMULATED_H
#include "simcuda/sim_control.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct simulated {
    sim_fail_fn *fail;
    sim_fail_clear_fn *fail_clear;
    sim_calls_fn *calls;
    sim_set_policy_fn *set_policy;
    sim_get_stats_fn *get_stats;
    sim_leaks_fn *leaks;
    void (*nvrtc_fail)(const char *name, int nth, int code);
    unsigned (*nvrtc_calls)(const char *name);
    void (*nvrtc_reset)(void);
} simulated;

static int simulated_symbol(void *library, const char *name, void *pointer) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(pointer, &symbol, sizeof symbol);
    if (!symbol)
        fprintf(stderr, "%s: not in the simulated driver: is LD_LIBRARY_PATH its directory?\n",
                name);
    return symbol != NULL;
}

/* Returns 0 when these are not the simulated libraries. They stay loaded, so the library under test
   finds them. */
static __attribute__((unused)) int simulated_find(simulated *sim) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *compiler = dlopen("libnvrtc.so.13", RTLD_NOW);
    return simulated_symbol(driver, "sim_fail", &sim->fail) &&
           simulated_symbol(driver, "sim_fail_clear", &sim->fail_clear) &&
           simulated_symbol(driver, "sim_calls", &sim->calls) &&
           simulated_symbol(driver, "sim_set_policy", &sim->set_policy) &&
           simulated_symbol(driver, "sim_get_stats", &sim->get_stats) &&
           simulated_symbol(driver, "sim_leaks", &sim->leaks) &&
           simulated_symbol(compiler, "sim_nvrtc_fail", &sim->nvrtc_fail) &&
           simulated_symbol(compiler, "sim_nvrtc_calls", &sim->nvrtc_calls) &&
           simulated_symbol(compiler, "sim_nvrtc_reset", &sim->nvrtc_reset);
}

#endif
