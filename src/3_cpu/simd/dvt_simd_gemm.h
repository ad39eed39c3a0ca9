/* What a ISA target offers for matrix products: kernels for one thread, which know nothing of shapes, batches or threads. cpu_matmul.c drives
   them, and whoever else has a sum of products to form, such as a convolution. */
#ifndef DVTI_SIMD_GEMM_H
#define DVTI_SIMD_GEMM_H
#include "3_cpu/dvt_cpu.h"

/* C (rows, cols) = start + A (rows, depth) * B (depth, cols). Distances count elements; any of the numbers may be 0.

     A(i, k)  is a[i * a_row + k * a_k]: in place, transposed or packed, all at the same speed.
     B(k, j)  is (b + j / width * b_panel)[b_k[k] + j % width], where `width` is the kernels' own: columns lie side by side, in panels of
              width columns. In place, b_panel = width and b_k[k] = k * stride; in packed panels, b_k[k] = k * width and b_panel =
              depth * width; in an image, the table says where each tap looks, and nothing is copied. Only the columns that exist are read.
     C(i, j)  is c[i * c_row + j], which must not overlap A or B.
     start    the first term of row i's sums is start[i * start_row]: a bias, or with start_row = 0 one zero for all. NULL: the sums
              go on from what C contains. Otherwise C is never read.

   Each element is one chain of fused multiply-adds, c = fma(a, b, c) with k ascending. So its bits depend on nothing else: not on the
   ISA target, nor on how the work is cut into rows, columns, threads, or pieces of k of which each continues the last. */
typedef struct dvti_product {
    /* Numbers and addresses take turns: compilers copy neighbors that stand together elsewhere as one vector, and a load of that waits
       for the stores that have just made its parts. */
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

/* y[i * y_row + j * y_col] = the sum over k of w[i * w_row + k] * x[j * x_col + k]: k lies side by side in both. Lane l of 64 bytes' worth
   of sums chains the k's that are l modulo the lanes, ascending; then the lanes are folded in halves. The bits depend on depth and
   the values alone. */
typedef struct dvti_dots {
    int64_t rows, cols, depth;
    const void *w, *x;
    int64_t w_row, x_col;
    void *y;
    int64_t y_row, y_col;
} dvti_dots;

/* One for float32, one for float64. */
typedef struct dvti_simd_gemm {
    int64_t size;  /* bytes of an element */
    int64_t width; /* columns of a panel: a multiple of the elements in 64 bytes */
    void (*multiply)(const dvti_product *product);
    /* The same with a start, for rows of C that begin at multiples of 64 bytes and are not read soon: most are stored around the caches, for
       which memory need not be read first. On x86 an sfence belongs between that and telling others. */
    void (*multiply_around)(const dvti_product *product);
    /* The first rows of a product with one panel of B, whose rows are b_row apart (b_k is not looked at): each is copied into the panel,
       `width` after the one before, when it has been read. How many rows of C that were: 0 where nothing was done. */
    int64_t (*pack_on_the_way)(const dvti_product *product, int64_t b_row, void *panel);
    /* dst[r * dst_row + c] = src[r * src_row + c], where src has the given dtype (float32's kernels also read float16, bfloat16, int8
       and uint8).
       Up to the next multiple of 64 bytes, each row of dst is filled with zeros. */
    void (*copy)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_row,
                 int64_t rows, int64_t cols);
    /* The same of a transposed src: dst[r * dst_row + c] = src[c * src_col + r]. */
    void (*transpose)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_col,
                      int64_t rows, int64_t cols);
    /* The same for the kernels' own dtype, and nothing beyond a row of dst is written. */
    void (*transpose_exactly)(void *dst, int64_t dst_row, const void *src, int64_t src_col,
                              int64_t rows, int64_t cols);
    /* y[j] = the sum over k of x[k * x_k] * w[k * w_row + j], a chain like a product's: at the speed of the memory that holds w. */
    void (*combine)(void *y, int64_t cols, int64_t depth, const void *x, int64_t x_k, const void *w,
                    int64_t w_row);
    void (*dots)(const dvti_dots *dots);
} dvti_simd_gemm;

#endif
