/* The interface between the files of convolution on the CPU. The head of cpu_conv.c has a diagram
   of the data and describes the algorithms.

     algorithm      forward                    backward data              backward weights
     POINTWISE      cpu_conv_direct.c          -                          -
     DEPTHWISE      cpu_conv_direct.c          -                          cpu_conv_weights.c
     DIRECT         SHIFTED cpu_conv_direct.c  SHIFT_ADD cpu_conv_direct.c
                    IM2COL cpu_conv_im2col.c   IM2COL cpu_conv_im2col.c   cpu_conv_im2col.c
     NHWC_WEIGHTS   -                          -                          cpu_conv_nhwc.c
     WINOGRAD       cpu_conv_winograd.c        as forward (transposed)    -

   Transposed backward data (dvti_conv.transposed) uses the algorithms of forward. */
#ifndef DVTI_CPU_CONV_H
#define DVTI_CPU_CONV_H
#include "3_cpu/cpu_matmul.h"

#define DVTI_CONV_DEPTH 384  /* the most multiply-adds of a step of a sum; rows of a panel */
#define DVTI_CONV_COLUMNS 64 /* columns of a panel of the widest ISA target */
#define DVTI_CONV_ROWS 128   /* rows of patches per product in both backward passes */
/* Elements of a tile where its size changes the order of sums: in backward weights, and where it
   selects an algorithm. The caches of the machine must not change a bit. */
#define DVTI_CONV_TILE 131072
#define DVTI_CONV_KERNEL 4096 /* the most taps per channel of the backward passes */

static const double dvti_conv_zero = 0; /* starts sums; its first bytes are a float 0 */

typedef enum dvti_conv_algorithm {
    DVTI_CONV_ORACLE,       /* dvti_ref_conv2d: no ISA target is chosen, or no algorithm fits */
    DVTI_CONV_POINTWISE,    /* 1 x 1: a product with the image, or with every s-th pixel */
    DVTI_CONV_DEPTHWISE,    /* channel by channel, without a product */
    DVTI_CONV_DIRECT,       /* a product with patches: any dtype, shape and direction */
    DVTI_CONV_NHWC_WEIGHTS, /* backward weights from an NHWC tile */
    DVTI_CONV_WINOGRAD      /* F(4 x 4, 3 x 3), if the program allows it */
} dvti_conv_algorithm;

/* Sources of the patches that DVTI_CONV_DIRECT reads, or that backward data adds. */
typedef enum dvti_conv_patches {
    DVTI_CONV_SHIFTED,   /* forward: in shifted copies of the tile */
    DVTI_CONV_SHIFT_ADD, /* backward data: each tap adds its product to the tile */
    DVTI_CONV_IM2COL     /* in im2col panels; backward data: col2im from panels */
} dvti_conv_patches;

/* The padded input tile of a block of windows. Row r holds row r * hop of the padded image. The
   head of cpu_conv_tile.c shows a row. */
typedef struct dvti_conv_tile {
    bool in_place;           /* x is the tile; nothing is copied */
    int64_t phases, phase;   /* column remainders modulo the stride; elements of each */
    int64_t pitch, hop;      /* row stride of the tile; rows of the padded image per tile row */
    int64_t row_step;        /* tile rows from one row of windows to the next */
    int64_t rows, plane;     /* rows of a block; channel stride */
    int64_t copy_rows;       /* SHIFTED: rows of a copy per remainder modulo row_step */
    int64_t scratch;         /* SHIFTED: elements of the tile of one channel, not shifted */
    const int64_t *copy_row; /* SHIFTED: offsets of the rows of one remainder in that tile */
} dvti_conv_tile;

/* Members *_at are byte offsets in a task's area. */
typedef struct dvti_conv_direct {
    dvti_conv_patches patches;
    int64_t panel_row;            /* IM2COL: row stride of a panel */
    int64_t dy_row;               /* SHIFT_ADD: elements of a channel of dy, with gaps */
    int64_t panel_at, patches_at; /* backward weights: the panel is dy, patches are apart */
    int64_t sums_at;
} dvti_conv_direct;

typedef struct dvti_conv_depthwise {
    int64_t sums_at; /* backward weights: 16 lanes for each weight */
} dvti_conv_depthwise;

typedef struct dvti_conv_nhwc {
    int64_t dy_at; /* dy of several images, interleaved by rows */
} dvti_conv_nhwc;

/* Distances are in elements. */
typedef struct dvti_conv_winograd {
    int64_t down, across;     /* 4 x 4 tiles of an image */
    int64_t weight_row;       /* stride of the 36 arrays of weights */
    int64_t plane, sum_plane; /* and of the 36 of tiles, and of sums */
    int64_t pitch;            /* channel stride of tiles and of sums */
    int64_t line, phase;      /* lengths of a padded row, and of each of its 4 phases */
    int64_t rows_at, tiles_at, sums_at, y_at; /* byte offsets in the area */
} dvti_conv_winograd;

/* Contents of launch->plan. Only `algorithm` is set for the oracle. */
typedef struct dvti_conv {
    const dvti_launch *launch; /* set by `run`, as the pointers into the workspace are */
    const dvti_simd *simd;
    const dvti_simd_gemm *gemm;
    const dvti_simd_conv *kernels;
    dvti_conv_algorithm algorithm;
    dvti_op op;      /* the computed operation: conv2d if `transposed` */
    bool transposed; /* backward data computed as convolution of dy: x is dy, w is rotated */
    bool relu;       /* forward: the epilogue has a relu */
    dvt_dtype dtype;
    int64_t size, element; /* bytes of a stored element, and of a computed one */
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
    int64_t cg, og;               /* input and output channels of a group */
    int64_t kernel, taps, pixels; /* kh * kw; cg * kernel; oh * ow */
    /* A task computes a block, or some of the images, for some groups and some input and output
       channels. */
    int64_t images, rows, image_blocks, row_blocks;
    int64_t ins, in_blocks, outs, out_blocks, parts;
    int64_t most_outs; /* forward: capacity of a task's area in output channels */
    int64_t groups_per_task, group_blocks, tasks;
    int64_t areas;     /* tasks that run at once at most */
    int64_t depth;     /* of a step of a sum: forward and data */
    int64_t tile_most; /* elements of a tile that fit in L2 with a panel and weights */
    /* Byte offsets in the workspace, the bytes that all tasks share, and those of a task's area.
       dvti_conv_layout (cpu_conv_plan.c) has a diagram. */
    int64_t weight_at, bias_at, partial_at, shared, area;
    int64_t weight_row; /* row stride of packed weights */
    const int64_t *at;  /* offset of each tap in the tile; WINOGRAD: of each channel */
    const void *weight, *bias;
    char *partial; /* backward weights: the partial sums of each of `parts` */
    dvti_conv_tile tile;

    union {
        dvti_conv_direct direct;
        dvti_conv_depthwise depthwise;
        dvti_conv_nhwc nhwc;
        dvti_conv_winograd winograd;
    } u;
} dvti_conv;

/* The columns of a task: windows of some images, or of some rows of one image. */
typedef struct dvti_conv_block {
    int64_t image, images, row, rows, columns;
    char *tile;         /* the corner of the first window */
    int64_t image_step; /* image stride of the tile, in elements */
} dvti_conv_block;

/* Output channels o..o + outs - 1 of a block. */
typedef struct dvti_conv_output {
    const dvti_conv *p;
    const dvti_conv_block *block;
    void *area;
    int64_t o, outs;
} dvti_conv_output;

/* Backward weights of output channels o.. and input channels channel.. of a group. */
typedef struct dvti_conv_sums {
    const dvti_conv *p;
    void *area;
    /* IM2COL, DEPTHWISE: [tap][output channel of the group]. NHWC: [output channel][kernel row and
       column][input channel]. */
    char *to;
    int64_t group, channel, channels, o, outs;
    bool first;
} dvti_conv_sums;

/* Returns the address `elements` elements after `base`. */
DVTI_INLINE char *dvti_conv_at(const dvti_conv *p, const void *base, int64_t elements) {
    return (char *)(uintptr_t)base + elements * p->element;
}

/* Returns the floats at offset `at`, in bytes, of an area. */
DVTI_INLINE float *dvti_conv_floats(void *area, int64_t at) {
    return (float *)(void *)((char *)area + at);
}

/* ---- the plan (cpu_conv.c, cpu_conv_plan.c) ---- */
/* Plans the launch, the same for every ISA target and number of threads. Returns false if only the
   reference implementation supports it. */
DVTI_FN bool dvti_conv_plan(dvti_conv *p, const dvti_launch *launch,
                            const dvti_gemm_blocks *blocks);
DVTI_FN void dvti_conv_cut(dvti_conv *p);
/* Cuts the launch into tasks for this number of threads. Results do not depend on it. */
DVTI_FN void dvti_conv_share(dvti_conv *p, int64_t threads);
DVTI_FN double dvti_conv_work(const dvti_conv *p); /* multiply-adds */
DVTI_FN int64_t dvti_conv_cuts(int64_t n, int64_t piece);
DVTI_FN int64_t dvti_conv_up(int64_t n, int64_t multiple);

/* ---- weights and bias in the layout of the kernels (cpu_conv_pack.c) ---- */
DVTI_FN void dvti_conv_pack(dvti_conv *p, char *workspace);

/* ---- the padded input tile (cpu_conv_tile.c) ---- */
DVTI_FN void dvti_conv_tile_shape(dvti_conv *p);
/* Returns the tile rows that `rows` rows of windows read. */
DVTI_FN int64_t dvti_conv_tile_rows(const dvti_conv *p, int64_t rows);
/* Writes the offsets of the taps, and tile.copy_row. */
DVTI_FN void dvti_conv_tile_table(const dvti_conv *p, int64_t *at);
/* Returns block `i` of images first..end - 1. */
DVTI_FN dvti_conv_block dvti_conv_block_of(const dvti_conv *p, int64_t first, int64_t end,
                                           int64_t i);
/* Sets the block's tile: `channels` channels of x from `channel` on. Fills `memory` unless x is the
   tile. */
DVTI_FN void dvti_conv_tile_load(const dvti_conv *p, dvti_conv_block *block, int64_t channel,
                                 int64_t channels, char *memory);
/* Writes dx from the tile of one whole image. */
DVTI_FN void dvti_conv_tile_store(const dvti_conv *p, const dvti_conv_block *block, int64_t channel,
                                  int64_t channels);
/* Returns how many windows from `column` on are adjacent in the tile, at most `most`. Sets *start
   to the offset of the first one. */
DVTI_FN int64_t dvti_conv_run(const dvti_conv *p, const dvti_conv_block *block, int64_t column,
                              int64_t most, int64_t *start);
/* Returns the element number in y of output channel o at a block's column. */
DVTI_FN int64_t dvti_conv_pixel(const dvti_conv *p, const dvti_conv_block *block, int64_t o,
                                int64_t column);
/* Returns a block's geometry for the depthwise kernels. */
DVTI_FN dvti_conv_plane dvti_conv_plane_of(const dvti_conv *p, const dvti_conv_block *block);
/* Returns the first group of a task and sets *end to the last one plus 1. Removes the group from
   *task. */
DVTI_FN int64_t dvti_conv_groups(const dvti_conv *p, int64_t *task, int64_t *end);

/* ---- tasks ---- */
DVTI_FN void dvti_conv_forward(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_data(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_weights(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_winograd_task(void *user, int64_t task, void *area);

/* ---- forward ---- */
DVTI_FN void dvti_conv_im2col_forward(const dvti_conv_output *t);
/* Writes a row of a result, converted from the computed dtype. */
DVTI_FN void dvti_conv_put_row(const dvti_conv *p, char *y, int64_t count, const void *sums);

/* ---- backward data: adds columns of one image to the tile of `channels` channels ---- */
DVTI_FN void dvti_conv_col2im(const dvti_conv *p, const dvti_conv_block *block, int64_t group,
                              int64_t channel, int64_t channels, void *area);

/* ---- backward weights: add a block; reduce the lanes of DEPTHWISE; sum the parts of output
   channels begin..end - 1 into dw ---- */
DVTI_FN void dvti_conv_im2col_weights(dvti_conv_sums *s, const dvti_conv_block *block);
DVTI_FN void dvti_conv_nhwc_weights(dvti_conv_sums *s, const dvti_conv_block *block);
DVTI_FN void dvti_conv_add_parts(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_conv_nhwc_add_parts(void *user, int64_t begin, int64_t end);

/* ---- Winograd: whether the launch and its shape are suitable; the plan; the tasks for some
   threads; packing of weights ---- */
DVTI_FN bool dvti_conv_winograd_fits(const dvti_conv *p);
DVTI_FN void dvti_conv_winograd_plan(dvti_conv *p);
DVTI_FN void dvti_conv_winograd_share(dvti_conv *p, int64_t threads);
DVTI_FN void dvti_conv_winograd_pack(dvti_conv *p, char *workspace);

#endif
