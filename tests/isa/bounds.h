/* Kernels at the edge of memory: one call, made on every ISA target with its operands in every place that could matter. */
#ifndef BOUNDS_H
#define BOUNDS_H
#include "isa.h"

enum { BOUNDS_MOST = 6 };

/* What a call may touch, to the byte, and nothing around it. */
typedef struct bounds_operand {
    dvt_dtype dtype;
    int64_t n;       /* elements */
    const void *set; /* their values before the call; NULL: random ones */
    int align;       /* bytes; 0: an element's */
    /* The first so many must be the same wherever operands stand, on every ISA target; -1: all, and they are only read. */
    int64_t results;
} bounds_operand;

typedef struct bounds_call {
    const char *name;
    void (*run)(const dvti_simd *target, void *const *at, const void *how);
    const void *how;
    int operands;
    bounds_operand operand[BOUNDS_MOST];
} bounds_call;

/* Operands are added in the order in which `run` finds them. */
bounds_call bounds_of(const char *name, void (*run)(const dvti_simd *, void *const *, const void *),
                      const void *how);
bounds_operand *bounds_reads(bounds_call *call, dvt_dtype dtype, int64_t n);
/* All n may be written; `results` of them say something. */
bounds_operand *bounds_writes(bounds_call *call, dvt_dtype dtype, int64_t n, int64_t results);

/* Every operand ends where memory does; begins there; and stands at each of 16 distances, in elements, from a multiple of 64 bytes, which differ
   from operand to operand. Random values are between -4 and 4. */
void bounds_check(const bounds_call *call);

/* The results since the last time, for bits.h. */
void bounds_say(const char *what);

/* ---- which kernels have been run ---- */
typedef enum bounds_table {
    BOUNDS_SIMD,
    BOUNDS_GEMM,
    BOUNDS_CONV,
    BOUNDS_WINOGRAD,
    BOUNDS_F64,
    BOUNDS_TABLES
} bounds_table;

void bounds_seen(bounds_table table, size_t offset, size_t bytes);
#define BOUNDS_SEEN(table, type, field)                                                            \
    bounds_seen(table, offsetof(type, field), sizeof(((type *)0)->field))

/* Whether that was every member of every table; ends what the calls have shared. */
void bounds_all_seen(void);

void bounds_of_axes(void);
void bounds_of_products(void);
#endif
