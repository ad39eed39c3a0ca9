/* Shared by exec.c and exec_run.c. */
#ifndef EXEC_INSIDE_H
#define EXEC_INSIDE_H

#include "covered.h"
#include "exec.h"

typedef struct range {
    struct range *next;
    uint64_t address, size;
    int constant;
} range;

extern range *exec_ranges;

struct exec {
    void *library;
    const sim_module *module;
    covered_module *forms; /* NULL: the forms of this module do not count */
};

#endif
