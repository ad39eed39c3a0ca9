/* What the host hands to the kernels: one structure per kernel, by value. This file is compiled twice, as C by the host and as CUDA by
   NVRTC, so that both agree on every offset. Only int, unsigned, int64_t, uint64_t, float, double, and pointers into the
   device's memory. */
#ifndef DVTI_KERNEL_ARGS_H
#define DVTI_KERNEL_ARGS_H

/* A strided window, as dvti_view; its dtype is the program's business. Strides in elements. */
typedef struct dvti_kview {
    void *data;
    int64_t ndim;
    int64_t dim[8], stride[8];
} dvti_kview;

/* A divisor d and what makes n / d a multiplication, for 0 <= n < 2^31 and 1 <= d < 2^31 (Granlund and Montgomery 1994). */
typedef struct dvti_kdivisor {
    int64_t divisor;
    unsigned multiplier, shift;
} dvti_kdivisor;

/* fill.cu */
typedef struct dvti_kfill {
    dvti_kview out;
    int64_t n;     /* elements */
    double f0, f1; /* fill: the value; arange: first and step */
    double last;   /* arange: the last one, when `fixed` */
    int64_t i0, i1;
    int64_t fixed;
} dvti_kfill;

/* elementwise.cu: number 0 is the result, 1.. are the operands */
typedef struct dvti_kelementwise {
    void *data[4];
    int kind[4];            /* DVTI_EW_EACH.. */
    int dtype[4], bytes[4]; /* for programs that leave it open: dtype, and size of an element */
    int64_t stride[4][8];   /* in elements, from one position of an axis to the next */
    int64_t ndim, n;        /* positions: groups of elements that are accessed at once */
    dvti_kdivisor axis[8];  /* positions on it */
    int64_t tail;           /* elements after the last whole group, when all lies in one row */
    int64_t rows, columns;  /* tiles: the last two axes in elements, and their strides */
    int64_t row_step[4], column_step[4];
    double f, f_low, f_high; /* the scalar operand, the bounds of clip */
    int64_t i, i_low, i_high;
} dvti_kelementwise;

/* One element per position; the same one for the whole group; the same one everywhere; the scalar. */
#define DVTI_EW_EACH 0
#define DVTI_EW_GROUP 1
#define DVTI_EW_SINGLE 2
#define DVTI_EW_SCALAR 3

/* reduce.cu */
typedef struct dvti_kreduce {
    dvti_kview kept, reduced; /* of in[0]; both have its data */
    dvti_kview out;
    void *partial; /* n_kept by n_chunks states */
    int64_t n_kept, n_reduced;
    int64_t chunk, n_chunks; /* reduced positions per chunk */
    int64_t items;           /* what blocks take one after another */
    int64_t lanes;           /* threads that share a result, or neighboring results */
    int64_t vector;          /* groups of 16 bytes never cross an end and are aligned */
    double count;            /* for mean */
} dvti_kreduce;

/* softmax.cu */
typedef struct dvti_ksoftmax {
    dvti_kview in, out;           /* all axes but the last */
    int64_t n, in_step, out_step; /* the last one */
    int64_t rows;
    int64_t lanes;  /* threads that share a row */
    int64_t groups; /* of as many rows as a block has at a time */
    int64_t vector; /* rows are contiguous, of whole groups of 16 bytes, and aligned */
} dvti_ksoftmax;

/* scan.cu */
typedef struct dvti_kscan {
    const void *in;
    void *out, *before;    /* before: (chunks, lines), when chunks > 1 */
    int64_t n, b, lines;   /* of (A, N, B); lines: A * B */
    int64_t chunk, chunks; /* positions of a chunk, chunks of a line */
    int64_t backwards;
} dvti_kscan;

/* matmul.cu, matmul_mma.cu */
typedef struct dvti_kmatmul {
    const void *a, *b;
    void *out, *partial; /* partial: what is summed, (splits, batches, n, m), when splits > 1 */
    int64_t n, m, k;
    int64_t a_row, a_k, b_k, b_col;         /* strides in elements */
    int64_t batches, ndim;                  /* product and number of the batch axes */
    int64_t dim[8], a_batch[8], b_batch[8]; /* of the batch axes: extents, strides */
    int64_t row_tiles, col_tiles, splits,
        jobs;      /* jobs: tiles of all matrices and all pieces of k */
    int64_t chunk; /* of k, per piece; a multiple of what kernels take at once */
    int64_t wide;  /* rows of the result can be written 16 bytes of sums at a time */
    int64_t team;  /* rows: warps per element, 1 or 8 */
} dvti_kmatmul;

/* conv.cu */
/* x (n, c, h, w), w (o, cg, kh, kw), y (n, o, oh, ow); pairs are height, width. */
typedef struct dvti_kconv {
    const void *x, *w, *y,
        *bias; /* the operands; that of the result is NULL, and so is a missing bias */
    void *out,
        *partial; /* partial: parts results in the type that is computed in, when parts > 1 */
    int64_t n, c, o, cg, og, groups;
    int64_t image[2], window[2], pixels[2]; /* h, w;  kh, kw;  oh, ow */
    int64_t stride[2], padding[2], dilation[2];
    int64_t common[2]; /* the greatest common divisor of stride and dilation */
    int64_t phases[2]; /* of the data's gradient */
    int64_t row_tiles, column_tiles;
    int64_t parts, depth;               /* a part's share of the sum */
    int64_t size;                       /* elements of the result */
    dvti_kdivisor kernel, kernel_width; /* kh * kw, kw */
    dvti_kdivisor grid, grid_width;     /* of one plane of columns: y's pixels, or the data's */
    dvti_kdivisor out_channels, out_height, out_width; /* of the result */
} dvti_kconv;

/* conv_mma.cu */

/* pool.cu */
typedef enum dvti_kpool_kind {
    DVTI_KPOOL_MAX,
    DVTI_KPOOL_AVG,
    DVTI_KPOOL_PICK,
    DVTI_KPOOL_PLACES,
    DVTI_KPOOL_CELLS,
    DVTI_KPOOL_GATHER_MAX,
    DVTI_KPOOL_GATHER_AVG
} dvti_kpool_kind;

typedef struct dvti_kpool {
    const void *in, *x; /* in: what is read at windows or places; x: what has the maxima */
    void *out, *places;
    int64_t n;                     /* units of all planes: windows, cells or elements of x */
    dvti_kdivisor rows, columns;   /* units of one plane */
    int64_t extent[2], windows[2]; /* of x, of y */
    int64_t size[2], padding[2];
    dvti_kdivisor stride[2];
    int64_t inside;    /* a mean counts only the elements of x */
    int64_t past_relu; /* a maximum of 0 gets nothing */
} dvti_kpool;

/* index.cu */
typedef struct dvti_kindex {
    dvti_kview in, places, out; /* places: of the index */
    const int64_t *index;
    int64_t n, m,
        b; /* extent of what is indexed, positions of the index, elements (or units) of a row */
    int64_t step;        /* elements from one index to the next */
    int64_t total;       /* threads with something to do */
    int64_t n_out, rows; /* elements of the result; of its rows for each a */
    int64_t along, along_index;
    uint64_t *keys;
    int64_t *values;
} dvti_kindex;

/* sort.cu */
typedef struct dvti_ksort {
    const uint64_t *keys;
    const int64_t *values;
    uint64_t *other_keys;
    int64_t *other_values;
    int64_t *counts;
    int64_t n, tile, tiles, shift;
} dvti_ksort;

/* order.cu */
typedef struct dvti_korder {
    const void *in;
    void *out;
    int64_t rows, n, k, descending; /* k: results of a row */
    int64_t width,
        groups; /* places of a row in a block, a power of two; groups of rows that blocks take */
    uint64_t *keys; /* long rows */
    int64_t *values;
    int64_t above; /* the row stands above the key */
    /* the first k by rounds: of m candidates a row, in `tiles` tiles, the first k of each go where `other_` says */
    int64_t m, tiles, kept; /* kept: candidates of a row after it */
    uint64_t *other_keys;
    int64_t *other_values;
} dvti_korder;

/* random.cu */
typedef struct dvti_krandom {
    void *out;
    int64_t n, threads,
        aligned;         /* elements, threads with something to do, out is aligned to 16 bytes */
    uint64_t key, place; /* words 2 and 3 of every counter, word 2 above */
    int64_t first;
    double f0, f1, f2;
    int64_t low, span;
    int64_t step; /* cuRAND: elements of a subsequence; permutation: the number of a round */
    const int64_t *starts;
    uint64_t *keys; /* permutation */
    int64_t *values;
    int *left;
    int64_t rounds;
} dvti_krandom;

/* optimizer.cu: weights, state and gradients, contiguous */
typedef struct dvti_koptimizer {
    void *w, *state[3], *g;
    int64_t n;   /* elements */
    double f[8]; /* as in 2_core/dvt_backend.h, clip maybe infinite */
} dvti_koptimizer;

/* all_reduce.cu */
#define DVTI_KALL_POINTERS 192
#define DVTI_KALL_PARTS 64

typedef struct dvti_kall {
    void *at[DVTI_KALL_POINTERS]; /* [part][device] */
    int64_t count[DVTI_KALL_PARTS];
    int64_t devices, self; /* self: which of the devices computes; -1: one for all */
} dvti_kall;

#endif
