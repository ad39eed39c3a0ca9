/* PTX text to C text, complete with its prelude. */
#ifndef PTX_TRANSLATE_H
#define PTX_TRANSLATE_H

#include "ptx_compile.h"

/* Sets *c to the C of the module and *arch to its target's number. `checked`: with memory checks.
   *log as in ptx_compile. */
ptx_result ptx_translate(const char *ptx, int checked, char **c, int *arch, char **log);

#endif
