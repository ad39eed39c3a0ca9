/* PTX text to C text, complete with its prelude. */
#ifndef PTX_TRANSLATE_H
#define PTX_TRANSLATE_H

#include "ptx_compile.h"

typedef struct ptx_mode {
    int checked;       /* with memory checks */
    int counted;       /* counts accesses and instructions */
    const char *usage; /* sim_module.usage; NULL: none */
} ptx_mode;

/* Sets *c to the C of the module and *arch to its target's number. *log as in ptx_compile. */
ptx_result ptx_translate(const char *ptx, ptx_mode mode, char **c, int *arch, char **log);

#endif
