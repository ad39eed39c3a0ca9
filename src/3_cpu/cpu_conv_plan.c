/* Convolution (cpu_conv.h): how a shape is cut into tasks, and the workspace of a task. Only
   dvti_conv_share reads the number of threads, and nothing here depends on the ISA target. All of
   them therefore give the same bits. */
#include "3_cpu/cpu_conv.h"

#define DVTI_CONV_TASKS 8          /* the least number of tasks, if the shape allows it */
#define DVTI_CONV_TASK 262144.0    /* the least multiply-adds of a task */
#define DVTI_CONV_WEIGHT_OUTS 128  /* the most output channels of a task: backward weights */
#define DVTI_CONV_FORWARD_OUTS 256 /* forward */

DVTI_FN int64_t dvti_conv_cuts(int64_t n, int64_t piece) {
    return (n + piece - 1) / piece;
}

DVTI_FN int64_t dvti_conv_up(int64_t n, int64_t multiple) {
    return dvti_conv_cuts(n, multiple) * multiple;
}

DVTI_FN double dvti_conv_work(const dvti_conv *p) {
    return (double)p->o * (double)p->taps * (double)p->n * (double)p->pixels;
}

static bool dvti_conv_is_shifted(const dvti_conv *p) {
    return p->algorithm == DVTI_CONV_DIRECT && p->u.direct.patches == DVTI_CONV_SHIFTED;
}

/* ---- cuts ---- */
static int64_t dvti_conv_copy_rows(const dvti_conv *p, int64_t rows) {
    return dvti_conv_cuts(dvti_conv_tile_rows(p, rows), p->tile.row_step);
}

/* Returns the elements of a tile, or of its shifted copies. */
static double dvti_conv_tile_size(const dvti_conv *p, int64_t channels, int64_t rows) {
    if (!dvti_conv_is_shifted(p))
        return (double)channels * (double)p->tile.pitch * (double)dvti_conv_tile_rows(p, rows);
    return (double)channels * (double)(p->kw * p->tile.row_step * dvti_conv_copy_rows(p, rows)) *
           (double)p->ow;
}

static void dvti_conv_cut_tile(dvti_conv *p) {
    dvti_conv_tile *tile = &p->tile;
    tile->rows = dvti_conv_tile_rows(p, p->rows);
    tile->plane = (tile->in_place ? p->h : tile->rows) * tile->pitch;
    if (!dvti_conv_is_shifted(p))
        return;
    tile->copy_rows = dvti_conv_copy_rows(p, p->rows);
    tile->scratch = tile->in_place ? 0 : tile->rows * tile->pitch + DVTI_CONV_SLACK;
    tile->plane = p->kw * tile->row_step * tile->copy_rows * p->ow;
}

/* Returns the cost of a block of rows per channel, in multiplied vectors of 8. It includes the cost
   of the copies (measured on a Zen 4). */
static double dvti_conv_shifted_cost(const dvti_conv *p, int64_t rows) {
    return (double)(dvti_conv_cuts(rows * p->ow, 8) * p->outs * p->kernel) +
           5 * dvti_conv_tile_size(p, 1, rows) / 8;
}

/* Sets the rows of a block, between half of what fits in L2 and all of it. Chooses those that leave
   few lanes empty and copy few rows twice. */
static void dvti_conv_cut_shifted(dvti_conv *p) {
    int64_t rows, best = p->rows;
    double least = 0, cost;
    for (rows = p->rows; 2 * rows > p->rows; rows--) {
        int64_t blocks = (p->oh - 1) / rows;
        cost = (double)blocks * dvti_conv_shifted_cost(p, rows) +
               dvti_conv_shifted_cost(p, p->oh - blocks * rows);
        if (least == 0 || cost < least) {
            least = cost;
            best = rows;
        }
    }
    p->rows = best;
}

/* Cuts images into blocks of rows whose tiles fit in L2, or joins small images until they fill a
   panel. */
static void dvti_conv_cut_blocks(dvti_conv *p, int64_t channels, int64_t most) {
    const bool shifted = dvti_conv_is_shifted(p);
    double size;
    p->rows = p->oh;
    p->images = 1;
    while ((shifted || !p->tile.in_place) && p->rows > 1 &&
           p->rows * p->ow > 2 * DVTI_CONV_COLUMNS &&
           dvti_conv_tile_size(p, channels, p->rows) > (double)most)
        p->rows = (p->rows + 1) / 2;
    if (shifted && p->rows < p->oh)
        dvti_conv_cut_shifted(p);
    size = dvti_conv_tile_size(p, channels, p->rows);
    if (p->rows == p->oh && p->pixels < 4 * DVTI_CONV_COLUMNS)
        p->images =
            DVTI_MAX(1, DVTI_MIN(4 * DVTI_CONV_COLUMNS / p->pixels,
                                 DVTI_MIN((p->n + 1) / 2, (int64_t)(2 * (double)most / size))));
}

static int64_t dvti_conv_count_blocks(dvti_conv *p) {
    p->image_blocks = dvti_conv_cuts(p->n, p->images);
    p->row_blocks = dvti_conv_cuts(p->oh, p->rows);
    return p->image_blocks * p->row_blocks;
}

/* Sets the number of groups of a task, which it computes in order. */
static void dvti_conv_cut_groups(dvti_conv *p, int64_t others) {
    double each = dvti_conv_work(p) / ((double)others * (double)p->groups);
    int64_t most = p->groups * others / (2 * DVTI_CONV_TASKS);
    p->groups_per_task =
        DVTI_MAX(1, DVTI_MIN((int64_t)(DVTI_CONV_TASK / each), DVTI_MIN(most, p->groups)));
    p->group_blocks = dvti_conv_cuts(p->groups, p->groups_per_task);
    p->tasks = others * p->group_blocks;
}

/* Cuts forward into tasks. Products that read the tile directly cut the input channels into nearly
   equal pieces, each at most one step deep. */
static void dvti_conv_cut_forward(dvti_conv *p) {
    int64_t tasks;
    p->ins = p->cg;
    if (p->algorithm == DVTI_CONV_POINTWISE || dvti_conv_is_shifted(p))
        p->ins = dvti_conv_cuts(p->cg, dvti_conv_cuts(p->taps, DVTI_MAX(p->depth, p->kernel)));
    p->in_blocks = 1;
    p->outs = p->most_outs = DVTI_MIN(p->og, DVTI_CONV_FORWARD_OUTS);
    dvti_conv_cut_blocks(p, p->ins, p->tile_most);
    for (;;) {
        p->out_blocks = dvti_conv_cuts(p->og, p->outs);
        tasks = dvti_conv_count_blocks(p) * p->out_blocks;
        if (tasks * p->groups >= DVTI_CONV_TASKS ||
            dvti_conv_work(p) < DVTI_CONV_TASK * (double)(tasks * p->groups))
            break;
        if (p->rows > 1 && p->images == 1 && p->rows * p->ow >= 4 * DVTI_CONV_COLUMNS)
            p->rows = (p->rows + 1) / 2;
        else if (p->outs >= 64)
            p->outs = (p->outs + 1) / 2;
        else if (p->images > 1)
            p->images = (p->images + 1) / 2;
        else
            break;
    }
    dvti_conv_cut_tile(p);
    dvti_conv_cut_groups(p, tasks);
}

/* Undoes the cut of output channels if there are enough blocks for these threads. The cut makes
   more tasks, but each of them loads the tile again. */
DVTI_FN void dvti_conv_share(dvti_conv *p, int64_t threads) {
    const int64_t blocks = p->image_blocks * p->row_blocks;
    if (p->op != DVTI_OP_conv2d || p->groups > 1 || (blocks % threads && blocks < 4 * threads))
        return;
    p->outs = p->most_outs;
    p->out_blocks = dvti_conv_cuts(p->og, p->outs);
    p->tasks = blocks * p->out_blocks;
}

/* Cuts backward data. A task computes some channels of dx of one image. */
static void dvti_conv_cut_data(dvti_conv *p) {
    int64_t least = DVTI_MAX(1, DVTI_CONV_ROWS / p->kernel), tasks;
    p->rows = p->oh;
    p->images = 1;
    p->outs = p->og;
    p->out_blocks = 1;
    dvti_conv_cut_tile(p);
    p->ins = DVTI_MAX(DVTI_MIN(p->cg, p->tile_most / p->tile.plane), 1);
    for (;;) {
        p->in_blocks = dvti_conv_cuts(p->cg, p->ins);
        tasks = dvti_conv_count_blocks(p) * p->in_blocks;
        if (tasks * p->groups >= DVTI_CONV_TASKS || p->ins <= least)
            break;
        p->ins = (p->ins + 1) / 2;
    }
    dvti_conv_cut_groups(p, tasks);
}

/* Cuts backward weights. A task sums some images. If dw has few tiles, several tasks share one, and
   their sums are added at the end. */
static void dvti_conv_cut_weights(dvti_conv *p) {
    int64_t tiles;
    p->ins = DVTI_CONV_ROWS / p->kernel;
    if (p->algorithm == DVTI_CONV_NHWC_WEIGHTS)
        p->ins = DVTI_MIN(DVTI_CONV_COLUMNS, 8 * DVTI_CONV_ROWS / p->kernel);
    p->ins = DVTI_MIN(p->cg, DVTI_MAX(1, p->ins));
    p->in_blocks = dvti_conv_cuts(p->cg, p->ins);
    p->outs = DVTI_MIN(p->og, DVTI_CONV_WEIGHT_OUTS);
    p->out_blocks = dvti_conv_cuts(p->og, p->outs);
    dvti_conv_cut_blocks(p, p->ins, DVTI_CONV_TILE);
    dvti_conv_count_blocks(p);
    dvti_conv_cut_tile(p);
    tiles = p->in_blocks * p->out_blocks;
    p->parts = DVTI_MAX(1, DVTI_MIN(p->n, DVTI_CONV_TASKS / DVTI_MIN(tiles * p->groups, 8)));
    dvti_conv_cut_groups(p, tiles * p->parts);
}

/* ---- memory ---- */
/* Reserves `elements` of `size` bytes in the workspace and returns their offset. */
static int64_t dvti_conv_take(int64_t *at, int64_t elements, int64_t size) {
    int64_t here = *at;
    *at += dvti_conv_up(elements * size, 64);
    return here;
}

/* Reserves panels and sums of DIRECT, large enough for the widest ISA target. */
static void dvti_conv_layout_direct(dvti_conv *p) {
    dvti_conv_direct *direct = &p->u.direct;
    const int64_t size = p->element, cols = DVTI_CONV_COLUMNS, slack = DVTI_CONV_SLACK;
    int64_t deep = DVTI_MIN(p->taps, p->depth);
    direct->panel_at = p->area;
    if (direct->patches == DVTI_CONV_SHIFT_ADD) {
        dvti_conv_take(&p->area, p->og * direct->dy_row, size);
    } else if (direct->patches == DVTI_CONV_SHIFTED) {
        return;
    } else if (p->op == DVTI_OP_conv2d) {
        dvti_conv_take(&p->area, deep * (cols + slack), size);
        direct->sums_at = dvti_conv_take(&p->area, p->most_outs * cols, size);
    } else if (p->op == DVTI_OP_conv2d_data) {
        const int64_t rows = DVTI_MAX(1, DVTI_CONV_ROWS / p->kernel) * p->kernel;
        dvti_conv_take(&p->area, p->og * cols, size);
        direct->sums_at = dvti_conv_take(&p->area, rows * cols, size);
    } else {
        deep = DVTI_MIN(DVTI_CONV_DEPTH, p->images * p->rows * p->ow);
        direct->panel_row = dvti_conv_up(deep, 16) + 16;
        dvti_conv_take(&p->area, deep * dvti_conv_up(p->outs, cols), size);
        direct->patches_at =
            dvti_conv_take(&p->area, p->ins * p->kernel * direct->panel_row + slack, size);
    }
}

/* Lays out the workspace:

     | offsets of taps | copy_row | weights | bias | partial sums | area 0 | area 1 | ...
     <------------------------- shared ------------------------->

   and the area of each running task:

     | tile | one channel's tile (SHIFTED) | panel | sums or patches (DIRECT) | or dy (NHWC), .. */
static void dvti_conv_layout(dvti_conv *p) {
    const int64_t size = p->element;
    const bool data = p->op == DVTI_OP_conv2d_data, forward = p->op == DVTI_OP_conv2d;
    const bool half = p->size < size;
    dvti_conv_take(&p->shared, p->taps + p->tile.copy_rows, (int64_t)sizeof(int64_t));
    p->weight_row = data ? dvti_conv_up(p->og, 16) : p->taps;
    p->weight_at = p->shared;
    if (data)
        dvti_conv_take(&p->shared, p->groups * p->taps * p->weight_row, size);
    else if (forward && (half || p->transposed))
        dvti_conv_take(&p->shared, p->o * p->taps + 16, size);
    p->bias_at = dvti_conv_take(&p->shared, half ? p->o + 16 : 0, size);
    p->partial_at = dvti_conv_take(&p->shared, p->parts * p->o * p->taps, size);
    if (dvti_conv_is_shifted(p) || !p->tile.in_place)
        dvti_conv_take(
            &p->area, p->images * p->ins * p->tile.plane + DVTI_CONV_SLACK + p->tile.scratch, size);
    if (p->algorithm == DVTI_CONV_DIRECT)
        dvti_conv_layout_direct(p);
    else if (p->algorithm == DVTI_CONV_NHWC_WEIGHTS)
        p->u.nhwc.dy_at =
            dvti_conv_take(&p->area, p->images == 1 ? 0 : p->outs * p->images * p->pixels, size);
    else if (p->algorithm == DVTI_CONV_DEPTHWISE && !forward)
        p->u.depthwise.sums_at = dvti_conv_take(&p->area, p->outs * p->ins * p->kernel * 16, size);
}

DVTI_FN void dvti_conv_cut(dvti_conv *p) {
    if (p->op == DVTI_OP_conv2d)
        dvti_conv_cut_forward(p);
    else if (p->op == DVTI_OP_conv2d_data)
        dvti_conv_cut_data(p);
    else
        dvti_conv_cut_weights(p);
    dvti_conv_layout(p);
}

#undef DVTI_CONV_TASKS
#undef DVTI_CONV_TASK
#undef DVTI_CONV_WEIGHT_OUTS
#undef DVTI_CONV_FORWARD_OUTS
