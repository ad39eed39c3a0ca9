/* Launches that a test hands to the backend of cpu() itself. */
#ifndef LAUNCHES_H
#define LAUNCHES_H
#include "3_cpu/dvt_cpu.h"
#include "tiers.h"

static inline dvti_device *cpu_device(void) {
    static dvti_device device;
    device.ctx = dvt_cpu();
    return &device;
}

/* The workspace ends at a guard as well, and begins as garbage. */
static inline void run(dvti_launch *launch, const char *isa) {
    guard memory;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    launch->workspace_bytes = dvti_cpu_workspace(cpu_device(), launch);
    memory = guard_new((size_t)launch->workspace_bytes + 1);
    launch->workspace = guard_end(memory, (size_t)((launch->workspace_bytes + 63) / 64 * 64));
    memset(launch->workspace, 0xff, (size_t)launch->workspace_bytes);
    dvti_cpu_run(launch);
    guard_free(memory);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
#endif
