/* The interface between the files of cumulative sums: (a, n, b), contiguous, along n. A line has
   n elements, b apart, in chunks of 1024. A work item is the unit that dvti_parallel_for
   distributes:

     b = 1: lines along memory              b > 1: lines across memory
                                                       <- width -><- width ->
       a=0  |  chunk 0  |  chunk 1  |       n=0       +----------+----------+
       a=1  |  chunk 0  |  chunk 1  |       chunk 0   |          |          |
       a=2  |  chunk 0  |  chunk 1  |       n=1024    +----------+----------+
                                            chunk 1   |          |          |
                                                      +----------+----------+
     one pass:   `lines` lines              one pass:   a column tile, all its chunks
     two passes: four chunks of a line      two passes: one chunk of a column tile */
#ifndef DVTI_CPU_SCAN_H
#define DVTI_CPU_SCAN_H
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SCAN_CHUNK 1024
#define DVTI_SCAN_INTERLEAVE 4               /* independent chains of additions, interleaved */
#define DVTI_SCAN_ROW (DVTI_SCAN_CHUNK + 24) /* padded: rows of a block are not 4096 bytes apart */
#define DVTI_SCAN_WORK (DVTI_SCAN_INTERLEAVE * DVTI_SCAN_ROW)
#define DVTI_SCAN_ITEM 16384 /* elements of a work item of short lines */

/* Contents of launch->plan. */
typedef struct dvti_scan {
    const dvti_simd *simd;     /* NULL: the plain loops */
    const dvti_view *in, *out; /* set by `run`, as `before` and `totals` are */
    int64_t a, n, b, chunks;
    bool backwards, floats;
    int64_t width, col_tiles; /* neighboring lines of a column tile, and tiles, if b > 1 */
    int64_t lines;            /* of a work item of short lines, if b is 1 */
    /* double or int64_t [a][chunk][b]: the sums of chunks, written by the first pass and read by
       the second. NULL if one pass is enough. */
    void *before;
    bool cut;    /* there are two passes */
    bool totals; /* true in the first pass, which writes only the sums of chunks */
} dvti_scan;

/* Returns the number of a chunk's first element in memory, and its positions in *n. With
   `backwards` the first chunk is the last in memory. */
DVTI_FN int64_t dvti_scan_first(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t *n);
DVTI_FN char *dvti_scan_at(const dvti_view *view, int64_t at);
/* Loads n elements, from number `at` on, as float64. */
DVTI_FN void dvti_scan_load(const dvti_scan *scan, int64_t at, int64_t n, double *to);
/* Stores n sums after adding `before` to each. */
DVTI_FN void dvti_scan_store(const dvti_scan *scan, int64_t at, int64_t n, double *from,
                             double before);

DVTI_FN void dvti_scan_line_items(void *scan, int64_t begin, int64_t end);
DVTI_FN void dvti_scan_chunk_items(void *scan, int64_t begin, int64_t end);
DVTI_FN void dvti_scan_columns_items(void *scan, int64_t begin, int64_t end);

#endif
