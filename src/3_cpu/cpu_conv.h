/* Convolution on the CPU: what its files share. The head of cpu_conv.c has a diagram of the data
   and the rules that choose the way.

     way            forward                    gradient to data           gradient to weights
     POINTWISE      cpu_conv_direct.c          -                          -
     DEPTHWISE      cpu_conv_direct.c          -                          cpu_conv_weights.c
     DIRECT         SHIFTED cpu_conv_direct.c  SHIFT_ADD cpu_conv_direct.c
                    IM2COL cpu_conv_im2col.c   IM2COL cpu_conv_im2col.c   cpu_conv_im2col.c
     NHWC_WEIGHTS   -                          -                          cpu_conv_nhwc.c
     WINOGRAD       cpu_conv_winograd.c        as forward (transposed)    -

   A gradient to the data that is transposed (dvti_conv.transposed) takes the forward ways. */
#ifndef DVTI_CPU_CONV_H
#define DVTI_CPU_CONV_H
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_CONV_DEPTH 384   /* multiply-adds of one step of a sum: rows of an im2col panel */
#define DVTI_CONV_COLUMNS 64  /* columns of a panel of the widest ISA target */
#define DVTI_CONV_ROWS 128    /* rows of patches per call of a product in both gradients */
#define DVTI_CONV_L2 131072   /* elements of a tile that fit in L2 next to a panel and weights */
#define DVTI_CONV_KERNEL 4096 /* the most taps per channel that the gradients take */

static const double dvti_conv_zero = 0; /* the first term of sums, of float32 as well */

typedef enum dvti_conv_way {
    DVTI_CONV_ORACLE,       /* dvti_ref_conv2d: no ISA target is chosen, or no way fits */
    DVTI_CONV_POINTWISE,    /* 1 x 1: a product with the image itself, or with every s-th pixel */
    DVTI_CONV_DEPTHWISE,    /* channel by channel, without a product */
    DVTI_CONV_DIRECT,       /* a product with patches: any dtype, shape and direction */
    DVTI_CONV_NHWC_WEIGHTS, /* the gradient to the weights from an NHWC tile */
    DVTI_CONV_WINOGRAD      /* F(4 x 4, 3 x 3), on request */
} dvti_conv_way;

/* Where the product of DVTI_CONV_DIRECT reads patches, or the gradient to the data adds them. */
typedef enum dvti_conv_patches {
    DVTI_CONV_SHIFTED,   /* forward: in shifted copies of the tile */
    DVTI_CONV_SHIFT_ADD, /* to data: each tap adds its product to the tile */
    DVTI_CONV_IM2COL     /* in panels; to data: from panels, which is col2im */
} dvti_conv_patches;

/* The padded input tile of a block of windows. Row r holds row r * hop of the padded image. */
typedef struct dvti_conv_tile {
    bool in_place;           /* x itself is the tile */
    int64_t phases, phase;   /* remainders of columns modulo the stride, and elements of each */
    int64_t pitch, hop;      /* elements from one row to the next; padded image rows per row */
    int64_t row_step;        /* rows of the tile from one row of windows to the next */
    int64_t rows, plane;     /* of a block; elements from one channel to the next */
    int64_t copy_rows;       /* SHIFTED: rows of a copy per remainder modulo row_step */
    int64_t scratch;         /* SHIFTED: elements of the plain tile of one channel */
    const int64_t *copy_row; /* SHIFTED: where the plain tile has the rows of one remainder */
} dvti_conv_tile;

/* Every *_at is in bytes from the start of a task's area. */
typedef struct dvti_conv_direct {
    dvti_conv_patches patches;
    int64_t panel_row;            /* IM2COL: elements from one row of a panel to the next */
    int64_t dy_row;               /* SHIFT_ADD: elements of a channel of dy with its gaps */
    int64_t panel_at, patches_at; /* patches_at: to weights alone, whose panel is dy */
    int64_t sums_at;
} dvti_conv_direct;

typedef struct dvti_conv_depthwise {
    int64_t sums_at; /* to weights: 16 lanes for each weight */
} dvti_conv_depthwise;

typedef struct dvti_conv_nhwc {
    int64_t dy_at; /* dy of several images, row by row of all */
} dvti_conv_nhwc;

/* Distances count elements. */
typedef struct dvti_conv_winograd {
    int64_t down, across; /* 4 x 4 tiles of an image */
    int64_t weight_row;   /* from one of the 36 arrays to the next: of weights, tiles, sums */
    int64_t plane, sum_plane;
    int64_t pitch;                            /* from one channel to the next in both */
    int64_t line, phase;                      /* of a padded row, and of its quarter */
    int64_t rows_at, tiles_at, sums_at, y_at; /* bytes */
} dvti_conv_winograd;

/* What launch->plan contains. Only `way` is set for the oracle. */
typedef struct dvti_conv {
    const dvti_launch *launch; /* set by `run`, as the pointers into the workspace are */
    const dvti_simd *simd;
    const dvti_simd_gemm *gemm;
    const dvti_simd_conv *kernels;
    dvti_conv_way way;
    dvti_op op;      /* what is computed: conv2d where `transposed` */
    bool transposed; /* a gradient to data as a convolution of dy: x is dy, w is rotated */
    bool relu;       /* forward: follows */
    dvt_dtype dtype;
    int64_t size, element; /* bytes of an element, stored and computed in */
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
    int64_t cg, og;               /* channels in and out of a group */
    int64_t kernel, taps, pixels; /* kh * kw; cg * kernel; oh * ow */
    /* A task takes a block or a part of the images, some groups, some channels in and some out. */
    int64_t images, rows, image_blocks, row_blocks;
    int64_t ins, in_blocks, outs, out_blocks, parts;
    int64_t most_outs; /* forward: a task has memory for so many */
    int64_t groups_per_task, group_blocks, tasks;
    int64_t areas; /* tasks that run at once at most */
    /* Bytes: the shared part of the workspace, and an area for each task that runs. */
    int64_t weight_at, bias_at, partial_at, shared, area;
    int64_t weight_row; /* elements from one row of packed weights to the next */
    const int64_t *at;  /* where each tap looks in the tile; WINOGRAD: each channel */
    const void *weight, *bias;
    char *partial; /* to weights: the sums of each part */
    dvti_conv_tile tile;

    union {
        dvti_conv_direct direct;
        dvti_conv_depthwise depthwise;
        dvti_conv_nhwc nhwc;
        dvti_conv_winograd winograd;
    } u;
} dvti_conv;

/* Columns of a task: windows of some images, or of some rows of one. */
typedef struct dvti_conv_block {
    int64_t image, images, row, rows, columns;
    char *tile;         /* the corner of the first window */
    int64_t image_step; /* elements of the tile from one image to the next */
} dvti_conv_block;

/* Output channels o .. o + outs of a block. */
typedef struct dvti_conv_output {
    const dvti_conv *p;
    const dvti_conv_block *block;
    void *area;
    int64_t o, outs;
} dvti_conv_output;

/* A gradient to some weights: output channels o .. and input channels channel .. of a group. */
typedef struct dvti_conv_sums {
    const dvti_conv *p;
    void *area;
    /* IM2COL, DEPTHWISE: [tap][output channel of the group]. NHWC: [output channel][kernel row and
       column][input channel]. */
    char *to;
    int64_t group, channel, channels, o, outs;
    bool first;
} dvti_conv_sums;

/* Returns the address `elements` elements behind `base`. */
DVTI_INLINE char *dvti_conv_at(const dvti_conv *p, const void *base, int64_t elements) {
    return (char *)(uintptr_t)base + elements * p->element;
}

/* Returns floats `at` bytes behind the start of an area. */
DVTI_INLINE float *dvti_conv_floats(void *area, int64_t at) {
    return (float *)(void *)((char *)area + at);
}

/* ---- the plan (cpu_conv.c, cpu_conv_plan.c) ---- */
/* Plans a launch, the same for every ISA target and number of threads. Returns false for one that
   only the oracle takes. */
DVTI_FN bool dvti_conv_plan(dvti_conv *p, const dvti_launch *launch);
DVTI_FN void dvti_conv_cut(dvti_conv *p);
/* Cuts the tasks for so many threads. No bit depends on it. */
DVTI_FN void dvti_conv_share(dvti_conv *p, int64_t threads);
DVTI_FN double dvti_conv_work(const dvti_conv *p); /* multiply-adds */
DVTI_FN int64_t dvti_conv_cuts(int64_t n, int64_t piece);
DVTI_FN int64_t dvti_conv_up(int64_t n, int64_t multiple);

/* ---- weights and bias as the kernels read them (cpu_conv_pack.c) ---- */
DVTI_FN void dvti_conv_pack(dvti_conv *p, char *workspace);

/* ---- the padded input tile (cpu_conv_tile.c) ---- */
DVTI_FN void dvti_conv_tile_shape(dvti_conv *p);
/* Returns the rows that `rows` rows of windows see. */
DVTI_FN int64_t dvti_conv_tile_rows(const dvti_conv *p, int64_t rows);
/* Writes where taps look, and tile.copy_row. */
DVTI_FN void dvti_conv_tile_table(const dvti_conv *p, int64_t *at);
/* Returns block `i` of images first .. end. */
DVTI_FN dvti_conv_block dvti_conv_block_of(const dvti_conv *p, int64_t first, int64_t end,
                                           int64_t i);
/* Sets the block's tile: `channels` channels of x from `channel` on. Fills `memory` unless x is the
   tile. */
DVTI_FN void dvti_conv_tile_load(const dvti_conv *p, dvti_conv_block *block, int64_t channel,
                                 int64_t channels, char *memory);
/* Writes dx from the tile of one whole image. */
DVTI_FN void dvti_conv_tile_store(const dvti_conv *p, const dvti_conv_block *block, int64_t channel,
                                  int64_t channels);
/* Returns how many windows from `column` on are adjacent in the tile, `most` at most, and sets
   where the first one starts. */
DVTI_FN int64_t dvti_conv_run(const dvti_conv *p, const dvti_conv_block *block, int64_t column,
                              int64_t most, int64_t *start);
/* Returns the element of y of output channel o at a block's column. */
DVTI_FN int64_t dvti_conv_pixel(const dvti_conv *p, const dvti_conv_block *block, int64_t o,
                                int64_t column);
/* Returns what depthwise kernels need to know of a block. */
DVTI_FN dvti_conv_plane dvti_conv_plane_of(const dvti_conv *p, const dvti_conv_block *block);
/* Returns the first group of a task, its last one in `end`, and the task's number without groups in
   `task`. */
DVTI_FN int64_t dvti_conv_groups(const dvti_conv *p, int64_t *task, int64_t *end);

/* ---- tasks ---- */
DVTI_FN void dvti_conv_forward(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_data(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_weights(void *user, int64_t task, void *area);
DVTI_FN void dvti_conv_winograd_task(void *user, int64_t task, void *area);

/* ---- forward ---- */
DVTI_FN void dvti_conv_im2col_forward(const dvti_conv_output *t);
/* Writes a row of a result from the dtype that is computed in. */
DVTI_FN void dvti_conv_put_row(const dvti_conv *p, char *y, int64_t count, const void *sums);

/* ---- gradient to data: adds columns of one image to the tile of `channels` channels ---- */
DVTI_FN void dvti_conv_col2im(const dvti_conv *p, const dvti_conv_block *block, int64_t group,
                              int64_t channel, int64_t channels, void *area);

/* ---- gradient to weights: adds a block; adds the parts of output channels begin .. end to dw
   ---- */
DVTI_FN void dvti_conv_im2col_weights(dvti_conv_sums *s, const dvti_conv_block *block);
DVTI_FN void dvti_conv_nhwc_weights(dvti_conv_sums *s, const dvti_conv_block *block);
DVTI_FN void dvti_conv_add_parts(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_conv_nhwc_add_parts(void *user, int64_t begin, int64_t end);

/* ---- Winograd: whether the launch allows it and the shape suits; its plan; the tasks of some
   threads; its weights ---- */
DVTI_FN bool dvti_conv_winograd_fits(const dvti_conv *p);
DVTI_FN void dvti_conv_winograd_plan(dvti_conv *p);
DVTI_FN void dvti_conv_winograd_share(dvti_conv *p, int64_t threads);
DVTI_FN void dvti_conv_winograd_pack(dvti_conv *p, char *workspace);

#endif
