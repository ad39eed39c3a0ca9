/* Opens the test double as a library would: by name, at run time. clang runs as a program and
   writes PTX. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ptx/ptx_cache.h"
#include "check.h"
#include "compiler.h"

static nvrtc api;

static const struct {
    const char *name;
    size_t offset;
} entries[] = {

#define ENTRY(name)                                                                                \
    { #name, offsetof(nvrtc, name) }
    ENTRY(nvrtcVersion),
    ENTRY(nvrtcGetNumSupportedArchs),
    ENTRY(nvrtcGetSupportedArchs),
    ENTRY(nvrtcGetErrorString),
    ENTRY(nvrtcCreateProgram),
    ENTRY(nvrtcDestroyProgram),
    ENTRY(nvrtcCompileProgram),
    ENTRY(nvrtcGetPTXSize),
    ENTRY(nvrtcGetPTX),
    ENTRY(nvrtcGetCUBINSize),
    ENTRY(nvrtcGetCUBIN),
    ENTRY(nvrtcGetLTOIRSize),
    ENTRY(nvrtcGetOptiXIRSize),
    ENTRY(nvrtcGetProgramLogSize),
    ENTRY(nvrtcGetProgramLog),
    ENTRY(nvrtcAddNameExpression),
    ENTRY(nvrtcGetLoweredName),
    ENTRY(nvrtcGetPCHHeapSize),
    ENTRY(nvrtcSetPCHHeapSize),
    ENTRY(nvrtcGetPCHHeapSizeRequired),
    ENTRY(nvrtcGetPCHCreateStatus),
    ENTRY(nvrtcSetFlowCallback),
    ENTRY(sim_nvrtc_fail),
    ENTRY(sim_nvrtc_calls),
    ENTRY(sim_nvrtc_reset),
#undef ENTRY
};

const nvrtc *nvrtc_double(void) {
    static int opened;
    char path[PATH_MAX];
    const char *folder = getenv("SIMCUDA_LIB");
    if (opened)
        return opened > 0 ? &api : NULL;
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder ? folder : "build/simcuda/lib");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    opened = -1;
    if (!check_that(library != NULL, "%s: %s", path, library ? "" : dlerror()))
        return NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = dlsym(library, entries[i].name);
        if (!check_that(symbol != NULL, "the double has no %s", entries[i].name))
            return NULL;
        memcpy((char *)&api + entries[i].offset, &symbol, sizeof symbol);
    }
    opened = 1;
    return &api;
}

int nvrtc_is_real(void) {
    int major, minor;
    return nvrtc_double() && api.nvrtcVersion(&major, &minor) == 0;
}

char *read_source(const char *name) {
    char path[PATH_MAX];
    size_t size;
    snprintf(path, sizeof path, "tests/simcuda/check/cuda/%s", name);
    char *text = ptx_read_file(path, &size);
    check_that(text != NULL, "cannot read %s", path);
    return text;
}

static void show_log(void *program) {
    size_t size = 0;
    if (api.nvrtcGetProgramLogSize(program, &size) || !size)
        return;
    char *log = calloc(1, size);
    if (log && api.nvrtcGetProgramLog(program, log) == 0)
        printf("%s\n", log);
    free(log);
}

exec *nvrtc_module(const char *source, const char *arch, const char *const *options) {
    const char *given[16] = {NULL};
    char target[64];
    int count = 1;
    void *program = NULL;
    size_t size = 0;
    exec *e = NULL;
    snprintf(target, sizeof target, "--gpu-architecture=%s", arch);
    given[0] = target;
    for (; options && options[count - 1] && count < 16; count++)
        given[count] = options[count - 1];
    if (!source || !nvrtc_double() ||
        !check_that(api.nvrtcCreateProgram(&program, source, "test.cu", 0, NULL, NULL) == 0,
                    "create"))
        return NULL;
    int code = api.nvrtcCompileProgram(program, count, given);
    if (code)
        show_log(program);
    if (check_that(code == 0, "nvrtcCompileProgram gave %d", code) &&
        check_that(api.nvrtcGetCUBINSize(program, &size) == 0 && size, "no cubin")) {
        char *cubin = malloc(size);
        if (cubin && check_that(api.nvrtcGetCUBIN(program, cubin) == 0, "nvrtcGetCUBIN"))
            e = exec_container(cubin, size);
        free(cubin);
    }
    api.nvrtcDestroyProgram(&program);
    return e;
}

exec *clang_module(const char *file) {
    char command[2 * PATH_MAX], path[] = "/tmp/simclangXXXXXX";
    size_t size;
    int temporary = mkstemp(path);
    if (temporary < 0)
        return NULL;
    snprintf(
        command, sizeof command,
        "clang -x cuda --cuda-device-only -S -O2 --cuda-gpu-arch=sm_75 -nocudainc -nocudalib -w "
        "-Xclang -target-feature -Xclang +ptx63 -include tests/simcuda/check/cuda/clang.h "
        "tests/simcuda/check/cuda/%s -o %s 2>/dev/null",
        file, path);
    int status = system(command);
    char *ptx = status == 0 ? ptx_read_file(path, &size) : NULL;
    unlink(path);
    exec *e = ptx && *ptx ? exec_ptx(ptx) : NULL;
    free(ptx);
    return e;
}
