/* Runs translated modules without the driver: one block at a time, each thread a ucontext. Just
   enough to test the translator; the memory check knows the buffers of exec_buffer, the module's
   variables and the block's shared memory, to the byte. */
#ifndef EXEC_H
#define EXEC_H

#include "../sim_module.h"

typedef struct exec exec;

exec *exec_ptx(const char *ptx);  /* translated, compiled, loaded; NULL after a failed check */
exec *exec_unit(const char *ptx); /* the same for a unit test, whose forms count (covered.h) */
/* The kernel's results are about to be compared. */
void exec_counts(const exec *, const char *kernel);
exec *exec_container(const void *container, size_t size);
void exec_close(exec *);
const sim_module *exec_module(const exec *);
const sim_kernel *exec_kernel(const exec *, const char *name); /* NULL when there is none */
void *exec_global(const exec *, const char *name, uint64_t *size);

/* Memory that kernels may touch, filled with 0xff. Freed by exec_forget, all of it. */
void *exec_buffer(size_t size);
void exec_forget(void);

typedef struct exec_launch {
    uint32_t grid, block; /* x only, unless the others are set */
    uint32_t block_y, block_z, grid_y, grid_z;
    uint32_t dynamic_shared;
    int reverse; /* threads in reverse order */
} exec_launch;

/* Runs a kernel. Returns NULL, or what went wrong, with the site: valid until the next call. */
const char *exec_run(exec *, const char *kernel, exec_launch, const void *params);
unsigned exec_fences(void); /* calls of the driver's fence in the last run */
/* what the last run printed: "format|first argument as 32 bits|..." */
const char *exec_printed(void);

#endif
