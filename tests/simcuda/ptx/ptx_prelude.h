/* The text prepended to every translated module: sim_module.h and rt/, embedded at build time. */
#ifndef PTX_PRELUDE_H
#define PTX_PRELUDE_H

typedef struct ptx_piece {
    const char *name, *text;
} ptx_piece;

extern const ptx_piece ptx_prelude[]; /* in order, ended by a NULL name */

#endif
