/* What the programs of this directory share. */
#ifndef COMPILING_COMMON_H
#define COMPILING_COMMON_H
#include "devtensor.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, dvt_error());
    exit(1);
}

/* Returns a function of the double of NVRTC. */
static void (*named(void *library, const char *name))(void) {
    void (*function)(void);
    void *symbol = dlsym(library, name);
    require(symbol != NULL, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

#endif
