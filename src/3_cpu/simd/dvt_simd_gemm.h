/* Matrix product kernels of an ISA target. They run on one thread and know nothing of shapes,
   batches or threads. cpu_matmul.c and the convolutions call them. */
#ifndef DVTI_SIMD_GEMM_H
#define DVTI_SIMD_GEMM_H
#include "3_cpu/dvt_cpu.h"

/* C (rows, cols) = start + A (rows, depth) * B (depth, cols). Distances count elements; any size
   may be 0.

     A (rows, depth)              B (depth, cols) in panels of `width` columns

     +-----+-----+-----+          +-------+ +-------+ +-------+  b_k[0]
     |  a  |     |     |          |       | |       | |       |
     +-----+-----+-----+          +-------+ +-------+ +-------+  b_k[1]
     |     |     |     |          |       | |       | |       |
     +-----+-----+-----+          +-------+ +-------+ +-------+  b_k[2]
     right: a_k                   b         b + b_panel
     down: a_row                  <-width->           b + 2 * b_panel

   A(i, k) is a[i * a_row + k * a_k]: in place, transposed or packed, all at the same speed.

   B(k, j) is (b + j / width * b_panel)[b_k[k] + j % width]. `width` belongs to the kernels; columns
   of a panel are contiguous. In place: b_panel = width and b_k[k] = k * stride. In packed panels:
   b_k[k] = k * width and b_panel = depth * width. In an image: b_k[k] is the offset of tap k, and
   nothing is copied. Kernels read only columns that exist.

   C(i, j) is c[i * c_row + j], which must not overlap A or B.

   start[i * start_row] is the first term of the sums of row i: a bias, or with start_row = 0 one
   zero for all. If start is NULL, sums continue from C. Otherwise C is never read.

   Each element is one chain of fused multiply-adds, c = fma(a, b, c) with k ascending. So its bits
   do not depend on the ISA target. They do not depend on how rows, columns, threads or consecutive
   ranges of k divide the work. */
typedef struct dvti_product {
    /* Field order matters: sizes and pointers alternate, so that compilers do not merge two stored
       fields into one vector load. Such a load waits for both stores (store forwarding fails). */
    int64_t rows;
    const void *a;
    int64_t a_row;
    const void *b;
    int64_t a_k;
    const int64_t *b_k;
    int64_t cols;
    void *c;
    int64_t c_row;
    const void *start;
    int64_t depth, b_panel, start_row;
} dvti_product;

/* Dot products: y[i * y_row + j * y_col] = the sum over k of w[i * w_row + k] * x[j * x_col + k].
   Both operands are contiguous in k. Lane l of one vector (64 bytes) of sums accumulates the k with
   k % lanes == l, ascending. Then the lanes are reduced: i with i + lanes / 2, then lanes / 4 and
   so on. The bits depend only on depth and the values. */
typedef struct dvti_dots {
    int64_t rows, cols, depth;
    const void *w, *x;
    int64_t w_row, x_col;
    void *y;
    int64_t y_row, y_col;
} dvti_dots;

/* One table for float32, one for float64. */
typedef struct dvti_simd_gemm {
    int64_t size;  /* bytes of an element */
    int64_t width; /* columns of a panel: a multiple of the elements in 64 bytes */
    void (*multiply)(const dvti_product *product);
    /* The same with a start, for rows of C that are aligned to 64 bytes and not read soon. Most are
       written with non-temporal stores, which do not read memory first. On x86 the caller executes
       sfence before other threads may read C. */
    void (*multiply_stream)(const dvti_product *product);
    /* Computes the first rows of a product with one panel of B and packs the panel meanwhile. Rows
       of B are b_row apart (b_k is ignored). Each is copied into the panel after it has been read,
       `width` elements after the previous one. Returns the number of rows of C; 0 if nothing was
       done. */
    int64_t (*multiply_packing)(const dvti_product *product, int64_t b_row, void *panel);
    /* Sets dst[r * dst_row + c] = src[r * src_row + c]. src has the given dtype; float32 kernels
       also read float16, bfloat16, int8 and uint8. Fills each row of dst with zeros up to the next
       multiple of 64 bytes. */
    void (*copy)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_row,
                 int64_t rows, int64_t cols);
    /* The same for a transposed src: dst[r * dst_row + c] = src[c * src_col + r]. */
    void (*transpose)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_col,
                      int64_t rows, int64_t cols);
    /* The same for the kernels' own dtype; writes nothing after a row of dst. */
    void (*transpose_exactly)(void *dst, int64_t dst_row, const void *src, int64_t src_col,
                              int64_t rows, int64_t cols);
    /* Sets y[j] = the sum over k of x[k * x_k] * w[k * w_row + j], a chain like a product's. Runs
       at the bandwidth of the memory that holds w. */
    void (*combine)(void *y, int64_t cols, int64_t depth, const void *x, int64_t x_k, const void *w,
                    int64_t w_row);
    void (*dots)(const dvti_dots *dots);
} dvti_simd_gemm;

#endif
