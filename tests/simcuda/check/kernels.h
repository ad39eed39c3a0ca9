/* Whole kernels in PTX with a common head, run with up to four pointer-sized parameters. */
#ifndef KERNELS_H
#define KERNELS_H

#include "exec.h"

#define HEAD(target) ".version 9.0\n.target " target "\n.address_size 64\n"
/* Defines a kernel with parameters p0 to p3. %i is the thread, %n the block size, %p0 to %p3 are
   the parameters as 64 bits. */
#define KERNEL(name, body)                                                                         \
    ".visible .entry " name                                                                        \
    "(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"                        \
    ".reg .pred %q<8>; .reg .b16 %h<16>; .reg .b32 %r<40>; .reg .b64 %w<24>; .reg .b32 %i, %n;\n"  \
    ".reg .b64 %p0, %p1, %p2, %p3;\n"                                                              \
    "ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u64 %p2, [p2]; ld.param.u64 %p3, "   \
    "[p3];\n"                                                                                      \
    "mov.u32 %i, %tid.x; mov.u32 %n, %ntid.x;\n" body "\nret;\n}\n"
/* The thread's own element of a 4-byte array: [%w0] of %p0, [%w1] of %p1 */
#define MINE "mad.wide.u32 %w0, %i, 4, %p0; mad.wide.u32 %w1, %i, 4, %p1;\n"
#define MINE8 "mad.wide.u32 %w0, %i, 8, %p0; mad.wide.u32 %w1, %i, 8, %p1;\n"

/* Runs kernel with these parameters and checks that it succeeds. */
int run(exec *, const char *kernel, exec_launch, uint64_t p0, uint64_t p1, uint64_t p2,
        uint64_t p3);
/* Runs a kernel and checks that it fails with this text in its message. */
int run_fails(exec *, const char *kernel, exec_launch, const char *text, uint64_t p0, uint64_t p1,
              uint64_t p2, uint64_t p3);

#define P(pointer) ((uint64_t)(uintptr_t)(pointer))
#define THREADS(n) ((exec_launch){.grid = 1, .block = (n)})

#endif
