/* Matrix products on the CPU: the plan, which cpu_matmul.c, cpu_matmul_small.c and cpu_matmul_int.c
   share. */
#ifndef DVTI_CPU_MATMUL_H
#define DVTI_CPU_MATMUL_H
#include "3_cpu/simd/dvt_simd.h"

/* The depth of one call of a kernel, whose table of B's rows is on the stack. */
#define DVTI_MM_DEPTH 512
#define DVTI_MM_MOST_DEPTH 1024 /* of a step of a planned product, whose table is there too */
/* A smaller depth does not pay for packing. Nor do fewer rows, if panels of B are read from L2 in
   any case. */
#define DVTI_MM_FEW_ROWS 256
#define DVTI_MM_FEW_DEPTH 64
/* Products below this many multiply-adds run without a plan; the second limit is for one thread. */
#define DVTI_MM_SMALL_MACS 131072
#define DVTI_MM_SERIAL_MACS 1048576
/* At most this many rows or columns, and at least this depth, are computed with dot products. */
#define DVTI_MM_NARROW 10
#define DVTI_MM_NARROW_DEPTH 128

/* Block sizes of products of one type by one ISA target (cpu_gemm_blocks.c). */
typedef struct dvti_gemm_blocks {
    int64_t rows, depth, cols; /* of A in L2; of a step; of packed B */
    bool in_l1;                /* a panel of B stays in L1 while A's rows pass, else in L2 */
    dvti_data_cache l1, l2;
} dvti_gemm_blocks;

DVTI_FN dvti_gemm_blocks dvti_gemm_blocks_of(const dvti_caches *caches, int64_t tile_rows,
                                             int64_t width, int64_t size);
/* Those of this machine, for elements of `size` bytes. */
DVTI_FN dvti_gemm_blocks dvti_gemm_blocks_now(const dvti_simd *simd, int64_t size);

typedef enum dvti_mm_kind {
    DVTI_MM_TILES,
    DVTI_MM_COMBINE,
    DVTI_MM_DOTS,
    DVTI_MM_TRANSPOSED /* few columns of many rows: computes the transposed product */
} dvti_mm_kind;

/* A planned product. Distances count elements. */
typedef struct dvti_mm {
    const dvti_launch *launch;
    const dvti_simd *simd;
    const dvti_simd_gemm *by;
    dvti_mm_kind kind;
    int64_t n, batch, m, k; /* n and m are not adjacent: see field order in dvti_product */
    int64_t a_row, a_k, b_k, b_col;
    int64_t size; /* bytes of an element of the sums */
    bool narrow;  /* the result is converted */
    bool int32;   /* and its sums are int32 between steps */
    bool swapped; /* C' = B' A' is computed: here n and m, and A and B, are exchanged */
    bool pack_a, pack_b;
    bool stream;         /* C is written with non-temporal stores */
    int64_t depth, a_ld; /* of a step; from one packed row of A to the next */
    int64_t block_rows;  /* of A in L2 */
    /* A task computes a tile of each of `per_task` products. */
    int64_t rows, cols, row_tiles, col_tiles, per_task, tasks;
    int64_t a_at, c_at, sums_at, area; /* bytes */
    int64_t areas;                     /* tasks that run at once at most */
} dvti_mm;

/* Decides what is packed, and whether the transposed product is computed. */
DVTI_FN void dvti_mm_choose_packing(dvti_mm *p, const dvti_gemm_blocks *blocks);

/* A planned product of integers that are summed in int64. */
typedef struct dvti_mm_integers {
    const dvti_launch *launch;
    dvti_gemm plan;
    int64_t n, m, k, batch;
    int64_t tasks, row_tiles, col_tiles; /* col_tiles: parts of the result, for vectors */
    int64_t areas;                       /* tasks that run at once at most */
    bool vector;                         /* n or m is 1, and nothing is converted */
} dvti_mm_integers;

/* Contents of launch->plan. */
typedef enum dvti_mm_algorithm {
    DVTI_MM_ORACLE,   /* no ISA target is chosen: dvti_ref_matmul */
    DVTI_MM_INTEGERS, /* summed in int64 */
    DVTI_MM_ONE_CALL, /* of a kernel, without workspace */
    DVTI_MM_PLANNED
} dvti_mm_algorithm;

typedef struct dvti_mm_plan {
    dvti_mm_algorithm algorithm;

    union {
        struct {
            const dvti_simd *simd;
            dvti_matrices matrices;
        } one;

        dvti_mm tiled;
        dvti_mm_integers integers;
    } as;
} dvti_mm_plan;

DVTI_FN int64_t dvti_mm_up(int64_t n, int64_t multiple);
/* ---- of float32 or float64 ---- */
/* Returns whether one call of a kernel, without workspace, computes the product, of fewer than
   `macs` multiply-adds. */
DVTI_FN bool dvti_mm_is_one_call(const dvti_matrices *p, int64_t macs);
DVTI_FN void dvti_mm_one_call(const dvti_simd_gemm *by, const dvti_matrices *p);
/* Returns how many rows one call computes; 0: unsuitable. For tall, column-major A and few columns:
   the transposed product fills vectors with rows. */
DVTI_FN int64_t dvti_mm_transposed_rows(const dvti_matrices *p);
DVTI_FN void dvti_mm_transposed(const dvti_simd_gemm *by, const dvti_matrices *p, int64_t i,
                                int64_t rows);
/* Returns the offset of matrix number `batch` in a factor, in elements. */
DVTI_FN int64_t dvti_mm_offset(const dvti_view *out, const dvti_view *in, int64_t batch);
/* Returns whether b is shared by the batch and a's matrices are stacked: the product is then one
   tall matrix. */
DVTI_FN bool dvti_matmul_is_tall(const dvti_view *a, const dvti_view *b);

/* ---- of integers (cpu_matmul_int.c) ---- */
/* Returns the bytes of workspace. */
DVTI_FN int64_t dvti_mm_plan_integers(dvti_mm_integers *p, const dvti_launch *launch, int threads);
DVTI_FN void dvti_mm_run_integers(const dvti_mm_integers *plan, const dvti_launch *launch);
/* Adds n sums of a step to those before, which are 32 bits each. */
DVTI_FN void dvti_mm_add_int32(const char *step, char *sums, int64_t n, bool first);
/* Stores contiguous rows of such sums in the result's dtype. */
DVTI_FN void dvti_mm_store_int32(const dvti_mm *p, const char *sums, int64_t rows, int64_t cols,
                                 char *to);

#endif
