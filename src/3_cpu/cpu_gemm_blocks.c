/* Block sizes of matrix products, from the caches of the machine. The rule is the analytical model
   of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance
   BLIS" (ACM TOMS 43, 2016), for kernels that keep a tile of C in registers:

              depth              cols
           +---------+      +----+---------+
     rows  |    A    |      | p  |         |  depth     p: a panel of B, `width` columns
           +---------+      +----+---------+

     L1   a panel, and the rows of A of one tile, which stream past it
     L2   a panel, and in half of the other ways A: rows x depth; the rest is for C, the next panel
          and lines of A that share sets
     L3   B: depth x cols, packed, in half of this processor's share

   One way of L1 is left for C. The panel and A's rows share the others in the ratio of their
   sizes. Wide tiles would need a depth of less than DVTI_LEAST_DEPTH; loading and storing C would
   then take 1 % of the time or more. Such panels stay in L2, in a quarter of it; only A's rows are
   in L1. A wide tile uses each line of a panel long enough for that.

   No size changes a bit of a result. */
#include "3_cpu/cpu_matmul.h"

#define DVTI_LEAST_DEPTH 256
#define DVTI_MOST_ROWS 192
#define DVTI_LEAST_COLS 256
#define DVTI_MOST_COLS 1024 /* more columns gain nothing */

/* Rounds down to a multiple, within limits. */
static int64_t dvti_within(int64_t value, int64_t multiple, int64_t least, int64_t most) {
    return DVTI_MAX(least, DVTI_MIN(value, most) / multiple * multiple);
}

DVTI_FN dvti_gemm_blocks dvti_gemm_blocks_of(const dvti_caches *caches, int64_t tile_rows,
                                             int64_t width, int64_t size) {
    const dvti_data_cache *l1 = &caches->level[0], *l2 = &caches->level[1], *l3 = &caches->level[2];
    const int64_t way1 = l1->bytes / l1->ways, way2 = l2->bytes / l2->ways;
    const int64_t panel_ways = (l1->ways - 1) * width / (width + tile_rows);
    const dvti_data_cache *last = l3->bytes ? l3 : l2;
    dvti_gemm_blocks blocks;
    int64_t panel, left;
    blocks.l1 = *l1;
    blocks.l2 = *l2;
    blocks.depth = dvti_within(panel_ways * way1 / (width * size), 16, 0, DVTI_MM_MOST_DEPTH);
    blocks.in_l1 = blocks.depth >= DVTI_LEAST_DEPTH;
    if (!blocks.in_l1)
        blocks.depth = dvti_within(
            DVTI_MIN(l2->bytes / 4 / (width * size), l1->bytes / 4 * 3 / (tile_rows * size)), 16,
            64, DVTI_MM_MOST_DEPTH);
    panel = blocks.depth * width * size;
    left = (l2->ways - (panel + way2 - 1) / way2) / 2;
    blocks.rows = dvti_within(DVTI_MAX(left, 1) * way2 / (blocks.depth * size), 2 * tile_rows,
                              8 * tile_rows, DVTI_MOST_ROWS);
    blocks.cols = dvti_within(last->bytes / 2 / last->threads / (blocks.depth * size), 64,
                              DVTI_LEAST_COLS, DVTI_MOST_COLS);
    return blocks;
}

/* The blocks of each ISA target and type. State 0: not known; 1: one thread writes them, and others
   that need them meanwhile compute their own; 2: known. */
static dvti_gemm_blocks dvti_blocks[DVTI_SIMD_NUMBERS][2];
static dvti_atomic dvti_blocks_state[DVTI_SIMD_NUMBERS][2];

DVTI_FN dvti_gemm_blocks dvti_gemm_blocks_now(const dvti_simd *simd, int64_t size) {
    dvti_gemm_blocks blocks, *known = &dvti_blocks[simd->number][size == 8];
    dvti_atomic *state = &dvti_blocks_state[simd->number][size == 8];
    dvti_caches caches;
    if (dvti_atomic_load(state) == 2)
        return *known;
    dvti_caches_find(&caches);
    blocks = dvti_gemm_blocks_of(&caches, simd->tile_rows, simd->panel_bytes / size, size);
    if (dvti_atomic_swap(state, 0, 1)) {
        *known = blocks;
        dvti_atomic_store(state, 2);
    }
    return blocks;
}

/* ---- packing ---- */
/* Returns whether the lines of A that a tile reads leave L1 before the next tile. Those of a
   transposed A do if they share few sets. */
static bool dvti_mm_loses_a(const dvti_mm *p, const dvti_gemm_blocks *blocks) {
    return p->a_k != 1 && dvti_cache_lines_per_set(&blocks->l1, DVTI_MIN(p->k, blocks->depth),
                                                   p->simd->tile_rows * p->size,
                                                   p->a_k * p->size) > blocks->l1.ways;
}

/* Each panel of B reads the rows of a block again. They stay in L2 unless too many of their cache
   lines share a set. The lines that a tile of a transposed A needs must also stay in L1, next to
   the panel. If they are a page apart, each needs an entry of the TLB, and more than 512 columns
   pay for packing. */
static bool dvti_mm_packs_a(const dvti_mm *p, const dvti_gemm_blocks *blocks) {
    const int64_t rows = DVTI_MIN(p->n, blocks->rows), depth = DVTI_MIN(p->k, blocks->depth);
    if (p->m < 128)
        return false;
    if (p->k <= DVTI_MM_FEW_DEPTH)
        return blocks->in_l1 && dvti_mm_loses_a(p, blocks);
    if (p->a_k == 1)
        return dvti_cache_lines_per_set(&blocks->l2, rows, depth * p->size, p->a_row * p->size) >
               blocks->l2.ways;
    return p->a_row != 1 || (p->m >= 512 && p->a_k * p->size >= 4096) ||
           (blocks->in_l1 &&
            dvti_cache_lines_per_set(&blocks->l1, depth, p->simd->tile_rows * p->size,
                                     p->a_k * p->size) > blocks->l1.ways / 4) ||
           dvti_cache_lines_per_set(&blocks->l2, depth, rows * p->size, p->a_k * p->size) >
               blocks->l2.ways;
}

/* B is packed for many rows, or when a panel in place would not stay in L1 as the packed one
   does. */
static bool dvti_mm_packs_b(const dvti_mm *p, const dvti_gemm_blocks *blocks) {
    const int64_t row = p->b_k * p->size, depth = DVTI_MIN(p->k, blocks->depth);
    if (p->b_col != 1)
        return true;
    if (p->k <= DVTI_MM_FEW_DEPTH && p->n <= 2 * DVTI_MM_FEW_ROWS)
        return false;
    if (blocks->in_l1)
        return p->n > 8 * p->simd->tile_rows &&
               dvti_cache_lines_per_set(&blocks->l1, depth, p->by->width * p->size, row) >
                   blocks->l1.ways - 2;
    return p->n > (p->k * p->m * p->size <= blocks->l2.bytes ? 2 : 1) * DVTI_MM_FEW_ROWS;
}

/* Decides what is packed. Returns the work in multiply-adds of 32 bytes, which fill half panels or
   64 bytes. Transposing an element takes the time of half a multiply-add, copying it the time of a
   quarter. Next to panels in L1, a transposed A in place takes a thirty-second of the product's
   time if its lines leave L1. */
static double dvti_mm_work(dvti_mm *p, const dvti_gemm_blocks *blocks) {
    const double n = (double)p->n, m = (double)p->m, k = (double)p->k;
    const int64_t filled = DVTI_MIN(p->by->width * p->size / 2, 64);
    const double multiplying = n * k * (double)(dvti_mm_up(p->m * p->size, filled) / 32);
    double work = multiplying;
    p->pack_a = p->narrow || dvti_mm_packs_a(p, blocks);
    p->pack_b = p->narrow || dvti_mm_packs_b(p, blocks);
    if (p->pack_a)
        work += n * k / (p->a_k == 1 ? 4 : 2);
    else if (blocks->in_l1 && dvti_mm_loses_a(p, blocks))
        work += multiplying / 32;
    if (p->pack_b)
        work += m * k / (p->b_col == 1 ? 4 : 2);
    return work;
}

/* The transposed product, C' = B' A', needs memory for C, and C is transposed at the end. But then
   two transposed factors are read in place, or fewer elements are packed, or rows fill vectors that
   columns do not. */
DVTI_FN void dvti_mm_choose_packing(dvti_mm *p, const dvti_gemm_blocks *blocks) {
    const double work = dvti_mm_work(p, blocks);
    dvti_mm q = *p;
    if (p->narrow || p->n * p->m * p->size > blocks->l2.bytes / 4)
        return;
    q.swapped = true;
    q.n = p->m;
    q.m = p->n;
    q.a_row = p->b_col;
    q.a_k = p->b_k;
    q.b_k = p->a_k;
    q.b_col = p->a_row;
    if (dvti_mm_work(&q, blocks) + (double)(q.n * q.m) / 2 < work)
        *p = q;
}

/* ---- for programs ---- */
DVT_API dvt_status dvt_cpu_query(dvt_cpu_info *out) {
    const dvti_simd *simd = dvti_simd_now();
    dvti_caches caches;
    int i;
    if (!out)
        return dvti_null("dvt_cpu_query", "out");
    memset(out, 0, sizeof *out);
    dvti_caches_find(&caches);
    out->isa = dvt_cpu_isa();
    out->cache_line = caches.level[0].line;
    for (i = 0; i < DVTI_LENGTH(caches.level); i++) {
        out->cache_bytes[i] = caches.level[i].bytes;
        out->cache_ways[i] = caches.level[i].ways;
    }
    if (simd) {
        const dvti_gemm_blocks blocks = dvti_gemm_blocks_now(simd, sizeof(float));
        out->rows = blocks.rows;
        out->cols = blocks.cols;
        out->depth = blocks.depth;
    }
    return DVT_OK;
}

DVTI_FN void dvti_cpu_notes(dvti_text *text) {
    dvt_cpu_info info;
    int i;
    dvt_cpu_query(&info);
    dvti_text_add(text, "cpu(): %s", info.isa);
    for (i = 0; i < 3 && info.cache_bytes[i]; i++)
        dvti_text_add(text, ", L%d %lld KiB", i + 1, (long long)(info.cache_bytes[i] / 1024));
    if (info.depth)
        dvti_text_add(text, "; blocks of products: %lld rows, %lld columns, depth %lld",
                      (long long)info.rows, (long long)info.cols, (long long)info.depth);
    dvti_text_add(text, "\n");
}

#undef DVTI_LEAST_DEPTH
#undef DVTI_MOST_ROWS
#undef DVTI_LEAST_COLS
#undef DVTI_MOST_COLS
