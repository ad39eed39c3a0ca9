/* The forms of instructions in a PTX text, which the unit tests must cover. A form distinguishes
   exactly the cases of the translator: the opcode with all parts of its name, and the kind of each
   operand:

     r  p  !p         a register, a predicate, a negated predicate
     i  f  d          a constant: an integer, an f32 (0f...), an f64 (0d...)
     _                an unused result
     %tid.x           a special register: each is a separate case
     &shared          the address of a variable, by state space; &function; &dynamic: of dynamic
                      shared memory in a device function, which has no fixed offset
     label  back      a label, forward or backward
     [r]  [shared]    memory at a register's address, or at a variable: its state space; kernel is a
                      parameter of a kernel; [] an absolute address
     {4 i r}          a vector of 4 elements of these kinds, in any order
     (2)              a list of 2 arguments
     r|p              two results

   A guard is handled separately from its instruction, so "@p" and "@!p" are separate forms. */
#ifndef PTX_FORMS_H
#define PTX_FORMS_H

#include "ptx_compile.h"

/* Called for each instruction of a kernel and of the functions that it reaches, in no particular
   order and often with the same form. The strings are valid during the call. */
typedef void ptx_form_fn(void *user, const char *kernel, const char *form);

/* *log as in ptx_compile. */
ptx_result ptx_forms(const char *ptx, ptx_form_fn *fn, void *user, char **log);

#endif
