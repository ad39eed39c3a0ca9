/* Cumulative sums: what their files share. A work item of dvti_parallel_for is some lines, four chunks of a line, or a strip of
   neighboring lines or a chunk of one. */
#ifndef DVTI_CPU_SCAN_H
#define DVTI_CPU_SCAN_H
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SCAN_CHUNK 1024
#define DVTI_SCAN_SIDE 4                     /* chains that take turns */
#define DVTI_SCAN_ROW (DVTI_SCAN_CHUNK + 24) /* of a block, not 4096 bytes apart */
#define DVTI_SCAN_WORK (DVTI_SCAN_SIDE * DVTI_SCAN_ROW)
#define DVTI_SCAN_ITEM 16384 /* elements of a work item of short lines */

/* What launch->plan contains. */
typedef struct dvti_scan {
    const dvti_simd *simd;     /* NULL: the plain loops */
    const dvti_view *in, *out; /* set by `run`, as `before` and `totals` are */
    int64_t a, n, b, chunks;
    bool backwards, floats;
    int64_t width, strips; /* of neighboring lines, where b > 1 */
    int64_t lines;         /* of a work item of short lines, where b is 1 */
    /* double or int64_t [a][chunk][b], between the first pass, which forms the sums of chunks, and the second; NULL when one is enough */
    void *before;
    bool cut;    /* there are two passes */
    bool totals; /* this is the first pass */
} dvti_scan;

/* Where a chunk begins in memory, as an element's number, and how many positions it has. The first chunk backwards is the last in memory. */
DVTI_FN int64_t dvti_scan_first(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t *n);
DVTI_FN char *dvti_scan_at(const dvti_view *view, int64_t at);
/* n elements from number `at` on, as float64. */
DVTI_FN void dvti_scan_load(const dvti_scan *scan, int64_t at, int64_t n, double *to);
/* n sums, each with what stands before them. */
DVTI_FN void dvti_scan_store(const dvti_scan *scan, int64_t at, int64_t n, double *from,
                             double before);

DVTI_FN void dvti_scan_line_items(void *scan, int64_t begin, int64_t end);
DVTI_FN void dvti_scan_chunk_items(void *scan, int64_t begin, int64_t end);
DVTI_FN void dvti_scan_columns_items(void *scan, int64_t begin, int64_t end);

#endif
