/* Runs kernels at the edge of memory: one call, on every ISA target, with its operands in every
   place that could matter.

        | no access |operand ..                |              place 0: begins at a guard page
        | no access |                ..operand| no access |   place 1: ends at a guard page
        | no access |   ..operand..            |              others: 16 offsets from 64 bytes */
#ifndef BOUNDS_H
#define BOUNDS_H
#include "isa.h"

enum { BOUNDS_MOST = 6 };

/* An operand: what a call may access, to the byte. */
typedef struct bounds_operand {
    dvt_dtype dtype;
    int64_t n;       /* elements */
    const void *set; /* values before the call; NULL: random ones */
    int align;       /* alignment in bytes; 0: that of an element */
    /* The first `results` elements must be the same for all places and ISA targets. -1: all
       elements, which are only read. */
    int64_t results;
} bounds_operand;

typedef struct bounds_call {
    const char *name;
    void (*run)(const dvti_simd *target, void *const *at, const void *how);
    const void *how;
    int operands;
    bounds_operand operand[BOUNDS_MOST];
} bounds_call;

/* Adds an operand; `run` receives them in this order. */
bounds_call bounds_of(const char *name, void (*run)(const dvti_simd *, void *const *, const void *),
                      const void *how);
bounds_operand *bounds_reads(bounds_call *call, dvt_dtype dtype, int64_t n);
/* Adds an operand of which all n may be written; the first `results` are compared. */
bounds_operand *bounds_writes(bounds_call *call, dvt_dtype dtype, int64_t n, int64_t results);

/* Runs the call with every operand at the end of memory, at its beginning, and at 16 distances, in
   elements, from a multiple of 64 bytes. The distances differ between operands. Under an emulator
   each call draws two of the distances. Random values are between -4 and 4. */
void bounds_check(const bounds_call *call);

/* Reports the results since the last report, for bits.h. */
void bounds_report(const char *what);

/* ---- which kernels have been run ---- */
typedef enum bounds_table {
    BOUNDS_SIMD,
    BOUNDS_GEMM,
    BOUNDS_CONV,
    BOUNDS_WINOGRAD,
    BOUNDS_F64,
    BOUNDS_REDUCE,
    BOUNDS_PRODUCTS,
    BOUNDS_RANDOM,
    BOUNDS_SOFTMAX,
    BOUNDS_POOL,
    BOUNDS_SCAN,
    BOUNDS_ORDER,
    BOUNDS_OPTIMIZER,
    BOUNDS_TABLES
} bounds_table;

void bounds_seen(bounds_table table, size_t offset, size_t bytes);
#define BOUNDS_SEEN(table, type, field)                                                            \
    bounds_seen(table, offsetof(type, field), sizeof(((type *)0)->field))

/* Checks that every member of every table was run, and frees what the calls have shared. */
void bounds_all_seen(void);

void bounds_of_axes(void);
void bounds_of_products(void);
#endif
