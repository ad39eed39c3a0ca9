/* Runs translated modules without the driver, one block at a time, each thread on a ucontext. It
   does what tests of the translator need. The memory check knows to the byte the buffers of
   exec_buffer, the module's variables and the shared memory of the block. */
#ifndef EXEC_H
#define EXEC_H

#include "../sim_module.h"

typedef struct exec exec;

exec *exec_ptx(const char *ptx);  /* translates, compiles, loads; NULL after a failed check */
exec *exec_unit(const char *ptx); /* the same for a unit test, whose forms count (covered.h) */
/* Counts the forms of a kernel whose results are about to be compared. */
void exec_counts(const exec *, const char *kernel);
exec *exec_container(const void *container, size_t size);
void exec_close(exec *);
const sim_module *exec_module(const exec *);
const sim_kernel *exec_kernel(const exec *, const char *name); /* NULL when there is none */
void *exec_global(const exec *, const char *name, uint64_t *size);

/* Returns memory that kernels may access, filled with 0xff. exec_forget frees all of it. */
void *exec_buffer(size_t size);
void exec_forget(void);

typedef struct exec_launch {
    uint32_t grid, block; /* only x, unless the others are set */
    uint32_t block_y, block_z, grid_y, grid_z;
    uint32_t dynamic_shared;
    int reverse; /* threads in reverse order */
} exec_launch;

/* Runs a kernel. Returns NULL, or an error text with the site, valid until the next call. */
const char *exec_run(exec *, const char *kernel, exec_launch, const void *params);
unsigned exec_fences(void); /* fence callbacks in the last run */
/* output of the last run: "format|first argument as 32 bits|..." */
const char *exec_printed(void);

#endif
