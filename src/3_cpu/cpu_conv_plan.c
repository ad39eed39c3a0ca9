/* Convolutions by the kernels of a tier: shapes, cuts, and what they need of the workspace. The plan is the same for all tiers, since
   the tier may change before the launch, and for any number of threads. */
#include "3_cpu/cpu_conv.h"

/* Elements of a strip that stay near, with a panel and some weights beside them. */
#define DVTI_CV_NEAR 131072
/* Elements of a strip that are worth their memory: more than that is a small picture in a wide padding. */
#define DVTI_CV_MOST 8388608.
/* Tasks that a launch should at least make, where its shape allows: enough for the cores of most machines. */
#define DVTI_CV_TASKS 8
/* Rows of patches that meet a panel while it is near, and windows of a kernel that data and weights take. */
#define DVTI_CV_TILE 128
#define DVTI_CV_KERNEL 1024
#define DVTI_CV_ROW 288       /* terms of a step through one row of a kernel */
#define DVTI_CV_TASK 262144.0 /* terms that are worth a task */
#define DVTI_CV_SIDE 40       /* mixed channels side by side that are worth it */
#define DVTI_CV_SWAP(a, b)                                                                         \
    k = a;                                                                                         \
    a = b;                                                                                         \
    b = k;

static int64_t dvti_cv_cuts(int64_t n, int64_t piece) {
    return (n + piece - 1) / piece;
}

static int64_t dvti_cv_up(int64_t n) {
    return dvti_cv_cuts(n, 16) * 16;
}

DVTI_FN double dvti_cv_terms(const dvti_cv *p) {
    return (double)p->o * (double)p->taps * (double)p->n * (double)p->pixels;
}

/* ---- shapes ---- */
/* A gradient to data with steps of 1 is the convolution of dy with the kernels turned by half a circle, without a sum in memory. That pays
   where dy needs little padding: every zero of it is multiplied. */
static bool dvti_cv_turn_round(dvti_cv *p) {
    int64_t left[2], k;
    left[0] = (p->kh - 1) * p->dilation[0] - p->padding[0];
    left[1] = (p->kw - 1) * p->dilation[1] - p->padding[1];
    p->turned = p->op == DVTI_OP_conv2d_data && p->stride[0] == 1 && p->stride[1] == 1 &&
                (p->kh > 1 || p->kw > 1) && left[0] >= 0 && left[1] >= 0 &&
                (double)p->h * (double)p->w < 1.1 * (double)p->oh * (double)p->ow;
    if (!p->turned)
        return false;
    p->op = DVTI_OP_conv2d;
    p->padding[0] = left[0];
    p->padding[1] = left[1];
    DVTI_CV_SWAP(p->c, p->o)
    DVTI_CV_SWAP(p->h, p->oh)
    DVTI_CV_SWAP(p->w, p->ow)
    return true;
}

static void dvti_cv_shape(dvti_cv *p, const dvti_launch *launch) {
    bool data = launch->op == DVTI_OP_conv2d_data, weight = launch->op == DVTI_OP_conv2d_weight;
    const dvti_view *x = data ? &launch->out[0] : &launch->in[0];
    const dvti_view *w = weight ? &launch->out[0] : &launch->in[1];
    const dvti_view *y = data ? &launch->in[0] : weight ? &launch->in[1] : &launch->out[0];
    int axis;
    memset(p, 0, sizeof *p);
    p->launch = launch;
    p->dtype = launch->out[0].dtype;
    p->size = dvt_dtype_size(p->dtype);
    p->n = x->dim[0];
    p->c = x->dim[1];
    p->h = x->dim[2];
    p->w = x->dim[3];
    p->o = w->dim[0];
    p->cg = w->dim[1];
    p->kh = w->dim[2];
    p->kw = w->dim[3];
    p->oh = y->dim[2];
    p->ow = y->dim[3];
    for (axis = 0; axis < 2; axis++) {
        p->stride[axis] = launch->i[axis];
        p->padding[axis] = launch->i[2 + axis];
        p->dilation[axis] = launch->i[4 + axis];
    }
    p->groups = launch->i[6];
    p->relu = launch->epilogue.activation == DVTI_RELU;
    p->op = launch->op;
    if (dvti_cv_turn_round(p))
        p->cg = p->c / p->groups;
    p->og = p->o / p->groups;
}

/* Empty operands, and what would need much memory, are the reference's. So nothing here overflows. */
static bool dvti_cv_takes(const dvti_cv *p) {
    bool forward = p->op == DVTI_OP_conv2d;
    double kernel = (double)p->kh * (double)p->kw, rows, cols;
    if (p->dtype != DVT_F32 && p->dtype != DVT_F16 && p->dtype != DVT_BF16)
        return false;
    if (!p->n || !p->c || !p->o || !p->h || !p->w || !p->oh || !p->ow)
        return false;
    rows = (double)(p->kh - 1) * (double)p->dilation[0] + 1;
    rows += p->op == DVTI_OP_conv2d_data ? (double)(p->oh - 1) * (double)p->stride[0] : 0;
    cols = (double)(p->ow - 1 + p->kw) * (double)DVTI_MAX(p->stride[1], p->dilation[1]);
    return rows * cols * (forward ? (double)p->cg : 1.) < DVTI_CV_MOST &&
           (forward || kernel <= DVTI_CV_KERNEL);
}

DVTI_FN int64_t dvti_cv_tall(const dvti_cv *p, int64_t rows) {
    return ((rows - 1) * p->stride[0] + (p->kh - 1) * p->dilation[0]) / p->hop + 1;
}

/* Sums by lanes, products with patches, or with mixed channels: the vectors that each multiplies for 16 windows and a tap, and what else it does
   (measured on a Zen 4: loads for the lanes; patches, and dy turned, as much as 11 channels out; mixing, as much as 4). Lanes take six channels
   at once. */
static void dvti_cv_choose_weights(dvti_cv *p, int64_t reach) {
    double row = (double)reach * (double)((p->kh - 1) * p->dilation[0] + 1);
    int64_t side = (p->dilation[1] == 1 ? p->kw : 1) * p->cg;
    double lanes =
        1.45 * (double)dvti_cv_up(p->ow) / (double)p->ow * (double)(dvti_cv_cuts(p->og, 6) * 6);
    double patches = (double)dvti_cv_up(p->og) + 11;
    double mixed = (double)p->og * (double)((side + 7) / 8 * 8) / (double)side + 4;
    if (p->op != DVTI_OP_conv2d_weight || p->dtype != DVT_F32)
        return;
    p->lanes = p->og == 1 || lanes < patches;
    p->mixed =
        !p->lanes && mixed < patches && side >= DVTI_CV_SIDE && row * DVTI_CV_COLS <= DVTI_CV_NEAR;
}

/* Few windows may be in vain; dy as the gradient to data spreads it must stay near, and products of few rows are slow. */
static bool dvti_cv_is_flat(const dvti_cv *p) {
    return p->op == DVTI_OP_conv2d_data && p->dtype == DVT_F32 && !p->pointwise &&
           (double)p->ow >= 0.7 * (double)p->step && p->cg >= 4 &&
           (double)p->og * (double)p->flat_row <= DVTI_CV_NEAR / 2;
}

/* A picture's windows fill vectors, half of which is as good as none; else many channels out pay for panels that several pictures fill. */
static bool dvti_cv_is_straight(const dvti_cv *p) {
    return p->op == DVTI_OP_conv2d && p->dtype == DVT_F32 && !p->depthwise &&
           (p->og <= 40 || (double)p->pixels >= 0.9 * (double)((p->pixels + 7) / 8 * 8));
}

/* A kernel that looks at every stride-th column only, from the first one on, needs one phase of them. */
static void dvti_cv_strip_shape(dvti_cv *p) {
    bool forth = p->op != DVTI_OP_conv2d_data;
    int64_t reach = (p->ow - 1) * p->stride[1] + (p->kw - 1) * p->dilation[1] + 1;
    p->kernel = p->kh * p->kw;
    p->taps = p->cg * p->kernel;
    p->pixels = p->oh * p->ow;
    p->in_place =
        p->dtype == DVT_F32 && !p->padding[0] && !p->padding[1] &&
        (forth ? p->stride[1] == 1 || p->ow == 1 : p->stride[0] == 1 && p->stride[1] == 1);
    p->pointwise = !forth && p->dtype == DVT_F32 && p->kernel == 1 && !p->padding[0] &&
                   !p->padding[1] && p->stride[0] == 1 && p->stride[1] == 1;
    p->depthwise = forth && p->dtype == DVT_F32 && p->cg == 1 && p->og == 1;
    dvti_cv_choose_weights(p, reach);
    p->phases = p->kw == 1 || p->dilation[1] % p->stride[1] == 0 ? 1 : p->stride[1];
    p->wide = dvti_cv_cuts(reach, p->stride[1]);
    p->pitch = p->in_place ? p->w : p->phases * p->wide;
    p->hop = (p->kh == 1 || p->dilation[0] % p->stride[0] == 0) && !p->in_place ? p->stride[0] : 1;
    if (p->mixed) {
        p->in_place = false;
        p->pitch = reach;
        p->hop = 1;
    }
    p->row_step = p->stride[0] / p->hop;
    p->step = p->row_step * p->pitch;
    p->flat_row = dvti_cv_up((p->oh - 1) * p->step + p->ow);
    p->flat = dvti_cv_is_flat(p);
    p->bare = dvti_cv_is_bare(p);
    p->straight = p->bare || dvti_cv_is_straight(p);
    p->spread = p->straight && (p->pitch != p->ow || p->row_step != 1);
    p->in_place = p->in_place && (forth || p->flat);
}

/* ---- cuts ---- */
static int64_t dvti_cv_narrow(const dvti_cv *p, int64_t rows) {
    return dvti_cv_cuts(dvti_cv_tall(p, rows), p->row_step);
}

static double dvti_cv_strip_size(const dvti_cv *p, int64_t channels, int64_t rows) {
    double line = p->spread ? (double)(p->kw * p->row_step * dvti_cv_narrow(p, rows)) : 1;
    return (double)channels * line *
           (p->spread ? (double)p->ow : (double)p->pitch * (double)dvti_cv_tall(p, rows));
}

static void dvti_cv_strip_cut(dvti_cv *p) {
    p->tall = dvti_cv_tall(p, p->rows);
    p->plane = (p->in_place ? p->h : p->tall) * p->pitch;
    if (p->bare)
        dvti_cv_bare_cut(p);
    if (!p->spread || p->bare)
        return;
    p->narrow = dvti_cv_narrow(p, p->rows);
    p->channel_size = p->in_place ? 0 : p->tall * p->pitch + DVTI_CONV_SLACK;
    p->plane = p->kw * p->row_step * p->narrow * p->ow;
}

/* The vectors that a spread block of rows multiplies for a channel, and what its copies cost in such (measured on a Zen 4). */
static double dvti_cv_spread_cost(const dvti_cv *p, int64_t rows) {
    return (double)((rows * p->ow + 7) / 8 * p->outs * p->kernel) +
           5 * dvti_cv_strip_size(p, 1, rows) / 8;
}

/* Rows from half of what stays near, so that as few lanes as possible are empty and few rows are copied twice. */
static void dvti_cv_cut_spread(dvti_cv *p) {
    int64_t rows, best = p->rows;
    double least = 0, cost;
    for (rows = p->rows; 2 * rows > p->rows; rows--) {
        int64_t blocks = (p->oh - 1) / rows;
        cost = (double)blocks * dvti_cv_spread_cost(p, rows) +
               dvti_cv_spread_cost(p, p->oh - blocks * rows);
        if (least == 0 || cost < least) {
            least = cost;
            best = rows;
        }
    }
    p->rows = best;
}

/* Blocks of rows whose strips stay near; or small pictures together, so that they fill a panel. */
static void dvti_cv_cut_blocks(dvti_cv *p, int64_t channels) {
    double size;
    p->rows = p->oh;
    p->images = 1;
    while ((p->spread || !p->in_place) && p->rows > 1 && p->rows * p->ow > 2 * DVTI_CV_COLS &&
           dvti_cv_strip_size(p, channels, p->rows) > DVTI_CV_NEAR)
        p->rows = (p->rows + 1) / 2;
    if (p->spread && p->rows < p->oh)
        dvti_cv_cut_spread(p);
    size = dvti_cv_strip_size(p, channels, p->rows);
    if (p->rows == p->oh && p->pixels < 4 * DVTI_CV_COLS)
        p->images =
            DVTI_MAX(1, DVTI_MIN((4 * DVTI_CV_COLS + (p->bare ? p->pixels - 1 : 0)) / p->pixels,
                                 DVTI_MIN((p->n + 1) / 2, (int64_t)(2 * DVTI_CV_NEAR / size))));
}

static int64_t dvti_cv_count_blocks(dvti_cv *p) {
    p->image_blocks = dvti_cv_cuts(p->n, p->images);
    p->row_blocks = dvti_cv_cuts(p->oh, p->rows);
    return p->image_blocks * p->row_blocks;
}

/* Groups that a task takes one after the other. */
static void dvti_cv_cut_groups(dvti_cv *p, int64_t others) {
    double each = dvti_cv_terms(p) / ((double)others * (double)p->groups);
    int64_t most = p->groups * others / (2 * DVTI_CV_TASKS);
    p->span = DVTI_MAX(1, DVTI_MIN((int64_t)(DVTI_CV_TASK / each), DVTI_MIN(most, p->groups)));
    p->group_blocks = dvti_cv_cuts(p->groups, p->span);
    p->tasks = others * p->group_blocks;
}

static void dvti_cv_cut_forward(dvti_cv *p) {
    int64_t tasks;
    p->ins = p->cg;
    if (p->bare) /* in nearly equal pieces */
        p->ins = dvti_cv_cuts(p->cg, dvti_cv_cuts(p->cg * p->kw, DVTI_MAX(DVTI_CV_ROW, p->kw)));
    else if (p->straight)
        p->ins = dvti_cv_cuts(p->cg, dvti_cv_cuts(p->taps, DVTI_MAX(DVTI_CV_DEPTH, p->kernel)));
    p->in_blocks = 1;
    p->outs = p->most_outs = DVTI_MIN(p->og, 4 * DVTI_CV_COLS);
    dvti_cv_cut_blocks(p, p->ins);
    for (;;) {
        p->out_blocks = dvti_cv_cuts(p->og, p->outs);
        tasks = dvti_cv_count_blocks(p) * p->out_blocks;
        if (tasks * p->groups >= DVTI_CV_TASKS ||
            dvti_cv_terms(p) < DVTI_CV_TASK * (double)(tasks * p->groups))
            break;
        if (p->rows > 1 && p->images == 1 && p->rows * p->ow >= 4 * DVTI_CV_COLS)
            p->rows = (p->rows + 1) / 2;
        else if (p->outs >= 64)
            p->outs = (p->outs + 1) / 2;
        else if (p->images > 1)
            p->images = (p->images + 1) / 2;
        else
            break;
    }
    dvti_cv_strip_cut(p);
    dvti_cv_cut_groups(p, tasks);
}

static void dvti_cv_cut_data(dvti_cv *p) {
    int64_t tile = DVTI_MAX(1, DVTI_CV_TILE / p->kernel), tasks;
    p->rows = p->oh;
    p->images = 1;
    p->outs = p->og;
    p->out_blocks = 1;
    dvti_cv_strip_cut(p);
    p->ins = DVTI_MAX(DVTI_MIN(p->cg, DVTI_CV_NEAR / p->plane), 1);
    for (;;) {
        p->in_blocks = dvti_cv_cuts(p->cg, p->ins);
        tasks = dvti_cv_count_blocks(p) * p->in_blocks;
        if (tasks * p->groups >= DVTI_CV_TASKS || p->ins <= tile)
            break;
        p->ins = (p->ins + 1) / 2;
    }
    dvti_cv_cut_groups(p, tasks);
}

/* A task sums some pictures; with few tiles of dw, several tasks share one, and their sums are added in the end. */
static void dvti_cv_cut_weights(dvti_cv *p) {
    int64_t tiles;
    p->ins = DVTI_MAX(1, p->mixed ? DVTI_MIN(DVTI_CV_COLS, DVTI_CV_KERNEL / p->kernel)
                                  : DVTI_CV_TILE / p->kernel);
    p->ins = DVTI_MIN(p->cg, p->ins);
    p->in_blocks = dvti_cv_cuts(p->cg, p->ins);
    p->outs = DVTI_MIN(p->og, 2 * DVTI_CV_COLS);
    p->out_blocks = dvti_cv_cuts(p->og, p->outs);
    dvti_cv_cut_blocks(p, p->ins);
    dvti_cv_count_blocks(p);
    dvti_cv_strip_cut(p);
    tiles = p->in_blocks * p->out_blocks;
    p->parts = DVTI_MAX(1, DVTI_MIN(p->n, DVTI_CV_TASKS / DVTI_MIN(tiles * p->groups, 8)));
    dvti_cv_cut_groups(p, tiles * p->parts);
}

/* ---- memory ---- */
static int64_t dvti_cv_take(int64_t *at, int64_t elements, int64_t size) {
    int64_t here = *at;
    *at += (elements * size + 63) / 64 * 64;
    return here;
}

static void dvti_cv_layout(dvti_cv *p) {
    const int64_t f = (int64_t)sizeof(float), cols = DVTI_CV_COLS;
    const bool half = p->dtype != DVT_F32;
    const dvti_op op = p->op;
    int64_t strip = (p->bare ? 1 : p->images) * p->ins * p->plane,
            deep = DVTI_MIN(p->taps, DVTI_CV_DEPTH);
    dvti_cv_take(&p->shared, p->taps + p->narrow, (int64_t)sizeof(int64_t));
    p->weight_row = op == DVTI_OP_conv2d_data ? dvti_cv_up(p->og) : p->taps;
    p->weight_at = p->shared;
    if (op == DVTI_OP_conv2d_data)
        dvti_cv_take(&p->shared, p->groups * p->taps * p->weight_row, f);
    else if (op == DVTI_OP_conv2d && (half || p->turned || p->bare))
        dvti_cv_take(&p->shared, p->o * p->taps + 16, f);
    p->bias_at = dvti_cv_take(&p->shared, half ? p->o + 16 : 0, f);
    p->partial_at = dvti_cv_take(&p->shared, p->parts * p->o * p->taps, f);
    if (p->spread || (!p->in_place && !p->pointwise))
        dvti_cv_take(&p->area, strip + DVTI_CONV_SLACK + p->channel_size, f);
    p->panel_at = p->area;
    if (op == DVTI_OP_conv2d && !p->straight && !p->depthwise) {
        dvti_cv_take(&p->area, deep * (cols + DVTI_CONV_SLACK), f);
        p->sums_at = dvti_cv_take(&p->area, p->outs * cols, f);
    } else if (p->bare) {
        dvti_cv_take(&p->area, p->tall * p->images + p->ins * p->kernel, (int64_t)sizeof(int64_t));
        p->sums_at = dvti_cv_take(&p->area, p->images > 1 ? p->most_outs * p->result_row : 0, f);
    } else if (op == DVTI_OP_conv2d_data) {
        int64_t tile = DVTI_MAX(1, DVTI_CV_TILE / p->kernel) * p->kernel;
        dvti_cv_take(&p->area, p->og * (p->flat ? p->flat_row : cols), f);
        p->sums_at = dvti_cv_take(&p->area, p->pointwise || p->flat ? 0 : tile * cols, f);
    } else if (op == DVTI_OP_conv2d_weight) {
        deep = DVTI_MIN(DVTI_CV_DEPTH, p->images * p->rows * p->ow);
        dvti_cv_take(&p->area,
                     !p->mixed        ? deep * dvti_cv_cuts(p->outs, cols) * cols
                     : p->images == 1 ? 0
                                      : p->outs * p->images * p->pixels,
                     f);
        p->panel_row = dvti_cv_up(deep) + 16;
        p->other_at = dvti_cv_take(
            &p->area, p->mixed ? 0 : p->ins * p->kernel * p->panel_row + DVTI_CONV_SLACK, f);
        p->sums_at = dvti_cv_take(&p->area, p->lanes ? p->outs * p->ins * p->kernel * 16 : 0, f);
    }
}

DVTI_FN bool dvti_cv_plan(dvti_cv *p, const dvti_launch *launch) {
    dvti_cv_shape(p, launch);
    if (!dvti_cv_takes(p))
        return false;
    dvti_cv_strip_shape(p);
    p->winograd = dvti_wg_takes(p);
    if (p->winograd) {
        dvti_wg_plan(p);
        return true;
    }
    if (p->op == DVTI_OP_conv2d)
        dvti_cv_cut_forward(p);
    else if (p->op == DVTI_OP_conv2d_data)
        dvti_cv_cut_data(p);
    else
        dvti_cv_cut_weights(p);
    dvti_cv_layout(p);
    return true;
}

#undef DVTI_CV_NEAR
#undef DVTI_CV_MOST
#undef DVTI_CV_TASKS
#undef DVTI_CV_TILE
#undef DVTI_CV_KERNEL
#undef DVTI_CV_ROW
#undef DVTI_CV_TASK
#undef DVTI_CV_SIDE
#undef DVTI_CV_SWAP
