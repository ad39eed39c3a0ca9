/* Records which instruction forms the unit tests run. Only hand-written PTX kernels whose results
   are compared count. With $SIMCUDA_FORMS, check_end writes the forms to that file, one per
   line. */
#ifndef COVERED_H
#define COVERED_H

/* Returns the forms of a module by kernel, or NULL after a failed check when it cannot be read. */
typedef struct covered_module covered_module;
covered_module *covered_read(const char *ptx);
void covered_free(covered_module *);

/* Adds the forms of a kernel that ran to its end. The caller compares what it computed. */
void covered_kernel(const covered_module *, const char *kernel);
/* Writes the forms that count. Returns 0 on failure. */
int covered_write(void);

#endif
