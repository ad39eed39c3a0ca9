/* Finds and loads the real NVRTC, by absolute path and RTLD_LOCAL: by name the loader would return
   this library itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int is_this_library(void *handle) {
    Dl_info mine, theirs;
    void *version = dlsym(handle, "nvrtcVersion");
    return version && dladdr(&library, &mine) && dladdr(version, &theirs) &&
           mine.dli_fbase == theirs.dli_fbase;
}

static int try_path(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle && is_this_library(handle)) {
        dlclose(handle);
        handle = NULL;
    }
    library = handle;
    return handle != NULL;
}

static int try_home(const char *home) {
    static const char *const names[] = {"lib64/libnvrtc.so", "lib64/libnvrtc.so.13",
                                        "lib64/libnvrtc.so.12", "lib/libnvrtc.so", NULL};
    for (int i = 0; home && *home && names[i]; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", home, names[i]);
        if (n > 0 && (size_t)n < sizeof path && try_path(path))
            return 1;
    }
    return 0;
}

static void load(void) {
    const char *path = getenv("SIMNVRTC_REAL");
    if (path && *path ? try_path(path)
                      : try_home(getenv("CUDA_HOME")) || try_home("/usr/local/cuda"))
        return;
    fprintf(stderr, "simcuda: no real NVRTC: set SIMNVRTC_REAL to its path, or CUDA_HOME\n");
}

int real_function(const char *name, void *pointer) {
    pthread_once(&once, load);
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}
