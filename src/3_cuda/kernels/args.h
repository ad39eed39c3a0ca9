/* The arguments of the kernels: one structure per kernel, passed by value. This file is compiled
   twice, as C by the host and as CUDA by NVRTC, so that both agree on every offset. Members are
   int, unsigned, int64_t, uint64_t, float, double, and pointers into the GPU's memory only. */
#ifndef DVTI_KERNEL_ARGS_H
#define DVTI_KERNEL_ARGS_H

/* A strided window, as dvti_view. The program's variant knows the dtype. Strides are in
   elements. */
typedef struct dvti_kview {
    void *data;
    int64_t ndim;
    int64_t dim[8], stride[8];
} dvti_kview;

/* A divisor d with the multiplier and shift that replace n / d by a multiplication, for 0 <= n <
   2^31 and 1 <= d < 2^31 (Granlund and Montgomery 1994). */
typedef struct dvti_kdivisor {
    int64_t divisor;
    unsigned multiplier, shift;
} dvti_kdivisor;

/* fill.cu */
typedef struct dvti_kfill {
    dvti_kview out;
    int64_t n;     /* elements */
    double f0, f1; /* fill: the value; arange: first and step */
    double last;   /* arange: the last value, when `fixed` */
    int64_t i0, i1;
    int64_t fixed;
} dvti_kfill;

/* elementwise.cu: index 0 is the result, 1 to 3 are the operands */
typedef struct dvti_kelementwise {
    void *data[4];
    int kind[4];            /* DVTI_EW_EACH.. */
    int dtype[4], bytes[4]; /* for programs compiled for any dtype: dtype, size of an element */
    int64_t stride[4][8];   /* in elements, between two positions of an axis */
    int64_t ndim, n;        /* n: positions, which are groups of elements accessed at once */
    dvti_kdivisor axis[8];  /* extents in positions */
    int64_t tail;           /* elements after the last full group, when there is only one row */
    int64_t rows, columns;  /* tiles: the last two axes in elements, and their strides */
    int64_t row_step[4], column_step[4];
    double f, f_low, f_high; /* the scalar operand, the bounds of clip */
    int64_t i, i_low, i_high;
} dvti_kelementwise;

/* How an operand repeats: one element per position; one for each group; one for all; the scalar. */
#define DVTI_EW_EACH 0
#define DVTI_EW_GROUP 1
#define DVTI_EW_SINGLE 2
#define DVTI_EW_SCALAR 3

/* reduce.cu */
typedef struct dvti_kreduce {
    dvti_kview kept, reduced; /* axes of in[0]; both windows have its data */
    dvti_kview out;
    void *partial; /* (n_kept, n_chunks) states */
    int64_t n_kept, n_reduced;
    int64_t chunk, n_chunks; /* reduced positions per chunk */
    int64_t items;           /* work items, over which blocks loop */
    int64_t lanes;           /* threads that share a result, or neighboring results of a block */
    int64_t vector;          /* groups of 16 bytes are aligned and never cross the end of an axis */
    double count;            /* for mean */
} dvti_kreduce;

/* softmax.cu */
typedef struct dvti_ksoftmax {
    dvti_kview in, out;           /* all axes but the last */
    int64_t n, in_step, out_step; /* extent and strides of the last axis */
    int64_t rows;
    int64_t lanes;       /* threads that share a row */
    int64_t groups;      /* groups of rows; a block computes one group at a time */
    int64_t vector;      /* rows are contiguous, aligned, and multiples of 16 bytes */
    int64_t part, parts; /* positions of a part of a row, number of parts */
    void *partial;       /* (rows, parts, 2) double: maximum, sum */
    /* cross-entropy; its gradient reads g (NULL: 1), and `in` has the logarithms of softmax */
    const void *label, *g;
    void *loss;
} dvti_ksoftmax;

/* layer_norm.cu: rows of n contiguous elements */
typedef struct dvti_klayer_norm {
    const void *x, *g, *gamma, *beta; /* g: of the gradient; gamma, beta: NULL for none */
    void *out, *stats;                /* stats (rows, 2): mean and scale, or NULL */
    int64_t rows, n;
    int64_t lanes;  /* threads that share a row */
    int64_t groups; /* groups of rows; a block computes one group at a time */
    double epsilon;
} dvti_klayer_norm;

/* batch_norm.cu: x (a, c, b), count = a * b elements of each channel */
typedef struct dvti_kbatch_norm {
    const void *x, *g, *gamma, *beta;
    void *out, *stats, *partial; /* partial: (parts, 2, c) */
    void *running_mean, *running_var;
    void *gamma_grad, *beta_grad; /* NULL: not needed */
    int64_t c, count;
    int64_t part, parts;         /* positions of a part of the sums, number of parts */
    int64_t chunk, items, width; /* positions of a block, blocks, channels of a block */
    int64_t training;
    dvti_kdivisor b;
    double epsilon, momentum, share; /* share: 1 - momentum */
} dvti_kbatch_norm;

/* scan.cu */
typedef struct dvti_kscan {
    const void *in;
    void *out, *before;    /* before: (chunks, lines), when chunks > 1 */
    int64_t n, b, lines;   /* of (A, N, B); lines: A * B */
    int64_t chunk, chunks; /* positions per chunk, chunks per line */
    int64_t backwards;
} dvti_kscan;

/* How an operand of a product of tiles lies in memory: adjacent threads read along k, whose stride
   is the smaller one, else along the other axis; the stride of that axis is 1, and 16 bytes of sums
   can be read with one access, or are copied one by one anyway. */
#define DVTI_MM_ALONG_K 1
#define DVTI_MM_WIDE 2

/* matmul.cu, matmul_mma.cu, matmul_wgmma.cu */
typedef struct dvti_kmatmul {
    const void *a, *b;
    void *out, *partial; /* partial: unrounded sums, (splits, batches, n, m), when splits > 1 */
    int64_t n, m, k;
    int64_t a_row, a_k, b_k, b_col; /* strides in elements */
    int64_t batches, ndim;          /* batches: product of the batch extents; ndim: batch axes */
    int64_t dim[8], a_batch[8], b_batch[8];     /* batch axes: extents, strides */
    int64_t row_tiles, col_tiles, splits, jobs; /* jobs: tiles of all matrices times splits of k */
    int64_t chunk;    /* positions of k per split, a multiple of the kernel's step along k */
    int64_t wide;     /* result rows can be written 16 bytes of sums at a time */
    const void *bias; /* NULL, or one element per column; bias_step 0: one for all */
    int64_t bias_step, relu;
    const void *mask;       /* NULL, or like out: the result is 0 where it is 0 */
    int64_t team;           /* kernel rows: warps per element, 1 or 8 */
    int64_t a_lies, b_lies; /* kernels of tiles: DVTI_MM_ flags */
    /* NULL, or set by matmul_pack.cu. Not 0: an operand has values that cannot be split into two
       TF32 numbers. Then the kernel of tiles, which comes last, computes the product, else
       matmul_wgmma.cu. */
    const unsigned *special;
} dvti_kmatmul;

/* matmul_wgmma.cu. Its size is a multiple of 128, the alignment of a tensor map in CUDA 13. */
typedef struct dvti_kwgmma {
    uint64_t a[16], b[16]; /* tensor maps of three axes: along memory, across it, batch */
    dvti_kmatmul p;        /* with at most one batch axis */
    int64_t padding[13];
} dvti_kwgmma;

/* matmul_pack.cu: the operands a and b. Arrays of two: of a, of b. */
typedef struct dvti_kpack {
    const void *from[2];
    void *to[2];
    int64_t lines[2], line_stride[2], k_stride[2]; /* of `from`, in elements */
    int64_t jobs[2];                               /* tiles of 64 lines and 32 of k */
    int64_t k, pitch;                              /* pitch: elements of a line of `to` */
    int64_t ndim, dim[8], batch[2][8];             /* batch axes: extents, strides */
    unsigned *special;                             /* as in dvti_kmatmul */
} dvti_kpack;

/* conv.cu */
/* x (n, c, h, w), w (o, cg, kh, kw), y (n, o, oh, ow); pairs are height, width. */
typedef struct dvti_kconv {
    const void *x, *w, *y,
        *bias; /* the operands; the array that is the result is NULL, and so is a missing bias */
    void *out, *partial; /* partial: `parts` results in the accumulator's type, when parts > 1 */
    int64_t n, c, o, cg, og, groups;
    int64_t image[2], window[2], pixels[2]; /* h, w;  kh, kw;  oh, ow */
    int64_t stride[2], padding[2], dilation[2];
    int64_t common[2]; /* greatest common divisor of stride and dilation */
    int64_t phases[2]; /* of the gradient of x */
    int64_t row_tiles, column_tiles;
    int64_t parts, depth;               /* parts of the sum over k, positions of k per part */
    int64_t size;                       /* elements of the result */
    int64_t relu;                       /* applied to the result */
    dvti_kdivisor kernel, kernel_width; /* kh * kw, kw */
    dvti_kdivisor grid, grid_width;     /* one plane of columns: pixels of y, or of x */
    dvti_kdivisor out_channels, out_height, out_width; /* extents of the result */
} dvti_kconv;

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
    const void *in, *x; /* in: read at windows or places; x: the array that has the maxima */
    void *out, *places;
    int64_t n;                     /* work items of all planes: windows, cells or elements of x */
    dvti_kdivisor rows, columns;   /* work items of one plane */
    int64_t extent[2], windows[2]; /* of x, of y */
    int64_t size[2], padding[2];
    dvti_kdivisor stride[2];
    int64_t inside;      /* a mean counts only elements inside x */
    int64_t relu_masked; /* a maximum of 0 gets no gradient */
} dvti_kpool;

/* index.cu */
typedef struct dvti_kindex {
    dvti_kview in, places, out; /* places: axes of the index */
    const int64_t *index;
    int64_t n, m,
        b; /* extent of the indexed axis, positions of the index, elements (or units) of a row */
    int64_t step;        /* elements from one index to the next */
    int64_t total;       /* threads with an element */
    int64_t n_out, rows; /* n_out: elements of the result; rows: its rows for each a */
    int64_t along, along_index;
    void *keys, *values; /* of sort.cu, of 64 bits if `wide`, else 32 */
    int64_t wide;
} dvti_kindex;

/* sort.cu */
typedef struct dvti_ksort {
    const void *keys, *values; /* values: NULL for 0, 1, 2.. */
    void *other_keys, *other_values, *counts;
    int64_t n, tile, tiles, shift;
} dvti_ksort;

/* order.cu */
typedef struct dvti_korder {
    const void *in;
    void *out;
    int64_t rows, n, k, descending; /* k: results per row */
    int64_t width, groups;          /* keys of a row in a block, a power of two; groups of rows */
    void *keys, *values;            /* long rows: of sort.cu, of 64 bits if `wide`, else 32 */
    int64_t wide;
    int64_t above; /* key bits above the element's bits hold the row */
    int64_t whole; /* sorted keys still hold the elements */
    /* Selection of the first k by rounds: the first k of each of `tiles` tiles of a row are written
       to other_keys and other_values. */
    int64_t m, tiles, kept; /* candidates of a row before and after the round */
    uint64_t *other_keys;
    int64_t *other_values;
} dvti_korder;

/* random.cu */
typedef struct dvti_krandom {
    void *out;
    int64_t n, threads,
        aligned;         /* elements, threads with an element; `out` is aligned to 16 bytes */
    uint64_t key, place; /* place: words 2 and 3 of every counter, word 2 in the high half */
    int64_t first;
    double f0, f1, f2;
    int64_t low, span;
    int64_t step; /* cuRAND: elements of a subsequence; permutation: number of the round */
    const int64_t *starts;
    uint64_t *keys; /* permutation */
    int64_t *values;
    int64_t wide; /* keys and values of sort.cu have 64 bits, else 32 */
    int *left;
    int64_t rounds;
} dvti_krandom;

/* optimizer.cu: arrays are contiguous. Each has STATES + 3 words: the addresses of weight, gradient
   and states; then its elements and, from bit 56 on, the number of its row of f. */
#define DVTI_KOPT_WORDS 440
#define DVTI_KOPT_ROWS 4
#define DVTI_KOPT_ROW_BIT 56

typedef struct dvti_koptimizer {
    double f[DVTI_KOPT_ROWS][8]; /* as in 2_core/dvt_backend.h; clip may be infinite */
    int64_t chunks;              /* of all arrays */
    uint64_t word[DVTI_KOPT_WORDS];
} dvti_koptimizer;

/* all_reduce.cu */
#define DVTI_KALL_POINTERS 192
#define DVTI_KALL_PARTS 64

typedef struct dvti_kall {
    void *at[DVTI_KALL_POINTERS]; /* [array][GPU] */
    int64_t count[DVTI_KALL_PARTS];
    int64_t devices, self; /* self: index of the GPU that computes; -1: one GPU computes for all */
} dvti_kall;

/* custom.cu: an expression of the program, with up to 8 inputs */
typedef struct dvti_kcustom {
    void *out;
    const void *in[8];     /* NULL: the scalar f[k], or i[k] */
    int64_t stride[8][8];  /* in elements: of input k along each axis; 0 for scalars */
    int64_t ndim, n;       /* n: elements of the result */
    dvti_kdivisor axis[8]; /* extents */
    double f[8];
    int64_t i[8];
} dvti_kcustom;

#endif
