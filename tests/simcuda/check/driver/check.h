/* What the check programs share: the driver opened at run time as any user does, counted checks, a module
   of kernels written by hand (kernels.h), one device with a stream. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../sim_control.h"

extern void *check_driver; /* libcuda.so.1 */
extern long check_passed, check_failed;

void *check_symbol(const char *name);
int check_that(int ok, const char *file, int line, const char *format, ...)
    __attribute__((__format__(__printf__, 4, 5)));
/* Opens the driver; the environment counts from here on. */
void check_open(void);
/* And cuInit, the primary context of device 0, current. */
void check_start(void);
CUcontext check_device(int i);
/* kernels.so as a module on the current device. */
CUmodule check_module(void);
CUfunction check_kernel(CUmodule m, const char *name);
/* An image of that file; the caller frees it. arch: 80 for sm_80; flags: SIM_CONTAINER_*. */
void *check_image(unsigned arch, unsigned flags);
const char *check_last_error(void);
void check_policy(const char *name, uint64_t seed);
int check_finish(void);

/* A driver function by its full name, with its type from cuda.h. */
#define CU(name) ((__typeof__(&name))check_symbol(#name))
#define CTL(name) ((name##_fn *)check_symbol(#name))
#define CHECK(condition, ...) check_that((condition) != 0, __FILE__, __LINE__, __VA_ARGS__)
#define OK(call) expect(call, CUDA_SUCCESS, #call, __FILE__, __LINE__)
#define GIVES(code, call) expect(call, code, #call, __FILE__, __LINE__)
/* The latest error text contains this. */
#define SAYS(text)                                                                                 \
    CHECK(strstr(check_last_error(), text), "'%s' does not say '%s'", check_last_error(), text)

static inline void expect(int got, int wanted, const char *call, const char *file, int line) {
    check_that(got == wanted, file, line, "%s gave %d, expected %d (%s)", call, got, wanted,
               check_last_error());
}

#endif
