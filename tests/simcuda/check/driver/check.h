/* What the driver tests share: the driver opened at run time as any user does, counted checks, a
   module of hand-written kernels (kernels.h), and one device with a stream. */
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
/* Opens the driver, which reads the environment at this point. */
void check_open(void);
/* Opens the driver, calls cuInit, and makes the primary context of device 0 current. */
void check_start(void);
CUcontext check_device(int i);
/* Loads kernels.so as a module on the current device. */
CUmodule check_module(void);
CUfunction check_kernel(CUmodule m, const char *name);
/* Returns an image of that file, which the caller frees. arch: 80 for sm_80; flags:
   SIM_CONTAINER_*. */
void *check_image(unsigned arch, unsigned flags);
const char *check_last_error(void);
void check_policy(const char *name, uint64_t seed);
int check_finish(void);

/* Looks up a driver function by its full name, with its type from cuda.h. */
#define CU(name) ((__typeof__(&name))check_symbol(#name))
#define CTL(name) ((name##_fn *)check_symbol(#name))
#define CHECK(condition, ...) check_that((condition) != 0, __FILE__, __LINE__, __VA_ARGS__)
#define OK(call) expect(call, CUDA_SUCCESS, #call, __FILE__, __LINE__)
#define GIVES(code, call) expect(call, code, #call, __FILE__, __LINE__)
/* Checks that the latest error text contains this. */
#define SAYS(text)                                                                                 \
    CHECK(strstr(check_last_error(), text), "'%s' does not say '%s'", check_last_error(), text)

static inline void expect(int got, int wanted, const char *call, const char *file, int line) {
    check_that(got == wanted, file, line, "%s gave %d, expected %d (%s)", call, got, wanted,
               check_last_error());
}

#endif
