/* Embeds the prelude. PTX_DIR is the directory of this file as the assembler can find it, so the
   library works from anywhere afterwards. */
#include "ptx_prelude.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".section .rodata\n" #symbol ":\n.incbin \"" PTX_DIR "/" file                          \
            "\"\n.byte 0\n.previous\n");                                                           \
    extern const char symbol[] __attribute__((visibility("hidden")));

EMBED(ptx_text_module, "../sim_module.h")
EMBED(ptx_text_base, "rt/rt_base.h")
EMBED(ptx_text_integer, "rt/rt_integer.h")
EMBED(ptx_text_float, "rt/rt_float.h")
EMBED(ptx_text_convert, "rt/rt_convert.h")
EMBED(ptx_text_memory, "rt/rt_memory.h")
EMBED(ptx_text_warp, "rt/rt_warp.h")
EMBED(ptx_text_matrix, "rt/rt_matrix.h")
EMBED(ptx_text_async, "rt/rt_async.h")

const ptx_piece ptx_prelude[] = {
    {"sim_module.h", ptx_text_module},  {"rt_base.h", ptx_text_base},
    {"rt_integer.h", ptx_text_integer}, {"rt_float.h", ptx_text_float},
    {"rt_convert.h", ptx_text_convert}, {"rt_memory.h", ptx_text_memory},
    {"rt_warp.h", ptx_text_warp},       {"rt_matrix.h", ptx_text_matrix},
    {"rt_async.h", ptx_text_async},     {0, 0}};
