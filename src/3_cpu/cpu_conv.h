/* Convolutions by the kernels of a tier: what its files share.

   A *strip* is a picture, or some rows of it, as float32 with its padding, and with the columns sorted by their remainder modulo the
   stride. So windows that are neighbours in a row of the result look at neighbours in memory, whatever tap they look through, and
   nothing lies outside. Then all three operations are matrix products with the patches, a panel at a time and never stored whole:

     forward   y (outs x columns) = w (outs x taps) * patches (taps x columns)
     weights   dw transposed (taps x outs) = patches (taps x columns) * dy transposed (columns x outs)
     data      the patches' gradient (taps x columns) = w transposed (taps x outs) * dy (outs x columns), added to a strip

   The forward direction spreads a strip, where its products are wide enough: each column of the kernel has a copy of its own, whose
   rows hold the windows' elements alone, and lie without a gap, sorted by their remainder modulo the stride. Then all windows of a
   picture are neighbours through any tap, and the product reads its patches where they are.

   Where a good part of its rows would be padding, it is bare: it has the picture's rows alone, and windows skip the others.

   The gradient to weights mixes a strip where that pays: the channels of a pixel lie side by side, and so does what a window sees through a row
   of the kernel. dw (outs x taps) = dy (outs x columns) * patches transposed then reads dy and the strip where they are.

   A picture that needs none of this is its own strip. Columns are the windows of some pictures in a row, or of some rows of one
   picture: a *block*. Cuts depend on shapes alone, and results do not depend on cuts, but for dw's: its partial sums are cut by shape
   too. */
#ifndef DVTI_CPU_CONV_H
#define DVTI_CPU_CONV_H
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_CV_DEPTH 384 /* terms of a step */
#define DVTI_CV_COLS                                                                               \
    64 /* columns of a panel: the widest tier's, and what data sums at once on every tier */

typedef struct dvti_cv {
    const dvti_launch *launch;
    const dvti_simd *simd;
    const dvti_simd_gemm *by;
    const dvti_simd_conv *kernels;
    dvti_op
        op; /* what is computed: conv2d where a gradient to data is the convolution of dy with turned kernels */
    dvt_dtype dtype;
    int64_t size; /* bytes of an element */
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
    int64_t cg, og, kernel, taps, pixels; /* channels per group; kh * kw; cg * kernel; oh * ow */
    bool in_place;                        /* x is its own strip */
    bool pointwise;                       /* data: the product is the result */
    bool depthwise;                       /* one channel makes one: its own kernels */
    bool lanes;                           /* weights: sums for each lane, without patches */
    bool mixed;                           /* weights: channels side by side */
    bool turned;                          /* forward: x is dy, and w is turned */
    bool straight;                        /* forward: products read the strip itself */
    bool spread;                          /* forward: it is spread */
    bool bare;        /* forward: over the picture's own rows; cpu_conv_bare.c */
    bool flat;        /* data: products do not stop at the ends of the strip's rows */
    bool relu;        /* forward: it follows */
    bool winograd;    /* forward: none of this; cpu_conv_winograd.c */
    int64_t tiles[2]; /* of its picture */
    /* The strip. Row r of it is padded row r * hop; windows of the next row start row_step rows further. */
    int64_t phases, wide, pitch, hop, row_step;
    int64_t tall, plane; /* of a block's strip: rows, and elements from one channel to the next */
    int64_t copy;        /* bare: elements from one copy to the next */
    int64_t most_outs;   /* bare: channels out for which a task has room */
    int64_t narrow,
        channel_size; /* spread: rows of a copy with one remainder; elements of the channel that is spread */
    /* Cuts. A task takes a block or a part of the pictures, some groups, some channels in and some out. */
    int64_t images, rows, image_blocks, row_blocks;
    int64_t span, group_blocks, ins, in_blocks, outs, out_blocks, parts, tasks;
    /* Elements from one row of packed weights to the next, and of a packed panel. */
    int64_t weight_row, panel_row, result_row;
    int64_t step,
        flat_row; /* flat: columns from one row of windows to the next, and of a picture */
    /* In bytes: the shared part of the workspace, and inside a task's area. */
    int64_t weight_at, bias_at, partial_at, shared;
    int64_t panel_at, other_at, sums_at, result_at, area;
    const int64_t *at, *row_at; /* of taps; spread: of a channel's rows with one remainder */
    const float *weight, *bias;
    float *partial;
} dvti_cv;

/* Columns of a task; `strip` is the corner of the first window. */
typedef struct dvti_cv_block {
    int64_t image, images, row, rows, columns;
    float *strip;
    int64_t image_step; /* elements of the strip from one picture to the next */
} dvti_cv_block;

/* Windows side by side: the strip's elements for the first one start at `start`. */
typedef struct dvti_cv_run {
    int64_t image, start, count;
} dvti_cv_run;

/* What stands `at` bytes behind the beginning of an area. */
DVTI_INLINE float *dvti_cv_floats(void *area, int64_t at) {
    return (float *)(void *)((char *)area + at);
}

/* False: the reference does it. */
DVTI_FN bool dvti_cv_plan(dvti_cv *p, const dvti_launch *launch);
DVTI_FN double dvti_cv_terms(const dvti_cv *p);

/* Weights and bias as the kernels want them. */
DVTI_FN void dvti_cv_prepare(dvti_cv *p, char *workspace);
/* A row of a result, from floats. */
DVTI_FN void dvti_cv_put_row(const dvti_cv *p, char *y, int64_t count, const float *sums);

/* Groups of a task, and the task's number without them. */
DVTI_FN int64_t dvti_cv_groups(const dvti_cv *p, int64_t task, int64_t *group, int64_t *end);
/* The element of y where channel o of a block's column stands. */
DVTI_FN int64_t dvti_cv_pixel(const dvti_cv *p, const dvti_cv_block *block, int64_t o,
                              int64_t column);
/* What the planes of a block's images have in common. */
DVTI_FN dvti_conv_plane dvti_cv_plane(const dvti_cv *p, const dvti_cv_block *block);
/* The windows from `column` on through `taps` taps: one row of dst for each tap. */
DVTI_FN void dvti_cv_gather(const dvti_cv *p, const dvti_cv_block *block, int64_t column,
                            int64_t count, int64_t taps, int64_t first, float *dst, int64_t dst_k);

/* The gradient to weights: a task, and dw's rows of the channels begin..end from its parts in their order. */
DVTI_FN void dvti_cv_weights(void *user, int64_t task, void *area);
DVTI_FN void dvti_cv_add_parts(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_cv_add_mixed(void *user, int64_t begin, int64_t end);

/* Bare: whether that pays, its cuts, the tasks of some threads, the weights, and a task's channels o.. of a block. */
DVTI_FN bool dvti_cv_is_bare(const dvti_cv *p);
DVTI_FN void dvti_cv_bare_cut(dvti_cv *p);
DVTI_FN void dvti_cv_bare_share(dvti_cv *p, int64_t threads);
DVTI_FN void dvti_cv_bare_weights(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_cv_forward_bare(const dvti_cv *p, const dvti_cv_block *block, int64_t group,
                                  int64_t o, int64_t outs, void *area);

/* By Winograd's method: whether it may and can be, its cuts and memory, the tasks of some threads, the weights, and a task. */
DVTI_FN bool dvti_wg_takes(const dvti_cv *p);
DVTI_FN void dvti_wg_plan(dvti_cv *p);
DVTI_FN void dvti_wg_share(dvti_cv *p, int64_t threads);
DVTI_FN void dvti_wg_prepare(dvti_cv *p, char *workspace);
DVTI_FN void dvti_wg_task(void *user, int64_t task, void *area);

/* Rows of a strip that `rows` rows of windows see. */
DVTI_FN int64_t dvti_cv_tall(const dvti_cv *p, int64_t rows);
/* Where taps look; bare: each task has a table of its own. */
DVTI_FN void dvti_cv_table(const dvti_cv *p, int64_t *at);
/* Number i of the blocks that some pictures make. */
DVTI_FN dvti_cv_block dvti_cv_block_of(const dvti_cv *p, int64_t first, int64_t end, int64_t i);
/* The strip of `channels` channels of x from `channel` on; fills `memory` unless x is its own. */
DVTI_FN void dvti_cv_enter(const dvti_cv *p, dvti_cv_block *block, int64_t channel,
                           int64_t channels, float *memory);
/* Adds up to dx, once: the strip of one whole picture. */
DVTI_FN void dvti_cv_leave(const dvti_cv *p, const dvti_cv_block *block, int64_t channel,
                           int64_t channels);
/* The windows from `column` on that lie side by side, `most` at most. */
DVTI_FN dvti_cv_run dvti_cv_run_at(const dvti_cv *p, const dvti_cv_block *block, int64_t column,
                                   int64_t most);

#endif
