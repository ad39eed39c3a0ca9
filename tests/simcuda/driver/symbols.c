/* Looks up entry points by name and version; and the few calls that do nothing. */
#include "entry.h"
#undef cuDeviceGetUuid
#undef cuEventElapsedTime
#undef cuGraphExecUpdate
#undef cuGetProcAddress
#include <string.h>
#pragma GCC visibility push(default)
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph g, CUgraphNode *node,
                           CUgraphExecUpdateResult *result);
#pragma GCC visibility pop

typedef struct symbol {
    const char *base, *name;
    void *address;
    int version;
} symbol;

static const symbol symbols[] = {
#define SYMBOL(base, name, version) {#base, #name, (void *)(uintptr_t)name, version},
#include "symbols.def"
#undef SYMBOL
};

/* SIMCUDA_MISSING lists names separated by commas, with or without the suffix. */
static bool missing(const symbol *s) {
    const char *at = settings.missing;
    while (at && *at) {
        size_t n = strcspn(at, ",");
        if ((strlen(s->base) == n && strncmp(s->base, at, n) == 0) ||
            (strlen(s->name) == n && strncmp(s->name, at, n) == 0))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static CUresult look_up(const char *name, void **out, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    const symbol *found = NULL;
    bool too_new = false;
    if (!name || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        say("cuGetProcAddress: forms for the per-thread default stream are not simulated; pass "
            "CU_STREAM_PER_THREAD");
        return CUDA_ERROR_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const symbol *s = &symbols[i];
        if (strcmp(s->base, name) != 0 || missing(s))
            continue;
        if (s->version > version || s->version > settings.driver)
            too_new = true;
        else if (!found || s->version > found->version)
            found = s;
    }
    if (status)
        *status = found     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : too_new ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (found)
        *out = found->address;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    ENTER(NEED_NOTHING);
    return look_up(name, out, version, flags, status);
}

CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags) {
    ENTER(NEED_NOTHING);
    return look_up(name, out, version, flags, NULL);
}

/* The real NVRTC opens this library, requests a table, and crashes when the function is missing. */
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    ENTER(NEED_NOTHING);
    (void)id;
    if (table)
        *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart(void) {
    ENTER(NEED_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void) {
    ENTER(NEED_CONTEXT);
    return CUDA_SUCCESS;
}

/* ---- for old_abi.c ---- */

int newer_form(int version) {
    config_read();
    return settings.driver >= version;
}
