/* Matrix products by the kernels of a tier: what cpu_matmul.c, which plans them, and cpu_matmul_small.c share. */
#ifndef DVTI_CPU_MATMUL_H
#define DVTI_CPU_MATMUL_H
#include "3_cpu/simd/dvt_simd.h"

/* Terms of one call, whose table of B's rows stands on the stack. */
#define DVTI_MM_DEPTH 512
/* Fewer rows, or fewer terms, do not pay for packing: measured on a Zen 4 with leading dimensions up to 4096. Of a B of so few bytes, which
   stays in a second-level cache, twice as many rows do not either. */
#define DVTI_MM_FEW_ROWS 256
#define DVTI_MM_NEAR_BYTES (1 << 20)
#define DVTI_MM_FEW_TERMS 64
/* Terms of a product that is not worth planning, and of one that is not where one thread computes. */
#define DVTI_MM_SMALL_TERMS 131072
#define DVTI_MM_ALONE_TERMS 1048576
/* Up to so many rows, or columns, are dots rather than parts of vectors; of so many terms, which pay for folding their sums. */
#define DVTI_MM_NARROW 10
#define DVTI_MM_NARROW_TERMS 128

typedef enum dvti_mm_kind {
    DVTI_MM_TILES,
    DVTI_MM_COMBINE,
    DVTI_MM_DOTS,
    DVTI_MM_SLIM
} dvti_mm_kind;

/* c (n, m), in C order, = a (n, k) * b (k, m), all float32 or all float64. Distances count elements. Sizes and pointers alternate for
   the reason that dvti_product gives. */
typedef struct dvti_matrices {
    dvt_dtype dtype;
    int64_t n;
    const void *a;
    int64_t a_row;
    const void *b;
    int64_t a_k;
    void *c;
    int64_t m, b_k, k, b_col;
} dvti_matrices;

/* A planned product. Distances count elements. */
typedef struct dvti_mm {
    const dvti_launch *launch;
    const dvti_simd *simd;
    const dvti_simd_gemm *by;
    dvti_mm_kind kind;
    int64_t n, batch, m, k; /* n not beside m, for the reason that dvti_product gives */
    int64_t a_row, a_k, b_k, b_col;
    int64_t size; /* bytes of an element of the sums */
    bool half;    /* the result is converted */
    bool whole;   /* and its sums are integers between steps */
    bool pack_a, pack_b;
    bool around;         /* the result is stored around the caches */
    int64_t depth, a_ld; /* terms of a step; from one packed row of A to the next */
    /* A task forms a tile of each of `per_task` products. */
    int64_t rows, cols, row_tiles, col_tiles, per_task, tasks;
    int64_t a_at, c_at, sums_at, area; /* bytes */
    int64_t areas;                     /* tasks that run at once at most */
} dvti_mm;

/* What launch->plan contains. */
typedef enum dvti_mm_way {
    DVTI_MM_PORTABLE, /* no ISA target computes it: dvti_ref_matmul */
    DVTI_MM_ONE_CALL, /* of a kernel, without workspace */
    DVTI_MM_PLANNED
} dvti_mm_way;

typedef struct dvti_mm_plan {
    dvti_mm_way way;

    union {
        struct {
            const dvti_simd *simd;
            dvti_matrices matrices;
        } one;

        dvti_mm tiled;
    } as;
} dvti_mm_plan;

DVTI_FN int64_t dvti_mm_up(int64_t n, int64_t multiple);
/* ---- of float32 or float64 ---- */
/* Whether one call of a kernel, without any workspace, forms the product, of fewer than so many terms. */
DVTI_FN bool dvti_mm_is_one_call(const dvti_matrices *p, int64_t terms);
DVTI_FN void dvti_mm_one_call(const dvti_simd_gemm *by, const dvti_matrices *p);
/* A few columns, which would fill their vectors badly, of many rows that lie side by side: the transposed product fills them with rows.
   How many at most at once; 0: it is no such product. */
DVTI_FN int64_t dvti_mm_slim_rows(const dvti_matrices *p);
DVTI_FN void dvti_mm_slim(const dvti_simd_gemm *by, const dvti_matrices *p, int64_t i,
                          int64_t rows);
/* Joins n sums of a step to those before, which are 32 bits each. */
DVTI_FN void dvti_mm_add_whole(const char *step, char *sums, int64_t n, bool first);
/* Rows of such sums that lie side by side, as the result's dtype. */
DVTI_FN void dvti_mm_store_whole(const dvti_mm *p, const char *sums, int64_t rows, int64_t cols,
                                 char *to);

#endif
