/* Which forms of instructions the unit tests run: those of kernels in PTX written by hand, whose
   results are compared. With $SIMCUDA_FORMS, check_end writes them to that file, one a line. */
#ifndef COVERED_H
#define COVERED_H

/* The forms of a module, by kernel; NULL, after a failed check, when it cannot be read. */
typedef struct covered_module covered_module;
covered_module *covered_read(const char *ptx);
void covered_free(covered_module *);

/* The kernel ran to its end: its forms count. The caller compares what it computed. */
void covered_kernel(const covered_module *, const char *kernel);
/* Writes what counts; 0 when that is not possible. */
int covered_write(void);

#endif
