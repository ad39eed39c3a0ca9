/* Convolutions by the kernels of a tier (cpu_conv.h): the three operations, and who does them. */
#include "3_cpu/cpu_conv.h"

static const float dvti_cv_zero = 0;

DVTI_FN void dvti_cv_gather(const dvti_cv *p, const dvti_cv_block *block, int64_t column,
                            int64_t count, int64_t taps, int64_t first, float *dst, int64_t dst_k) {
    while (count > 0) {
        dvti_cv_run run = dvti_cv_run_at(p, block, column, count);
        p->kernels->gather(dst, dst_k, block->strip + run.start, p->at + first, taps, run.count);
        dst += run.count;
        column += run.count;
        count -= run.count;
    }
}

DVTI_FN int64_t dvti_cv_groups(const dvti_cv *p, int64_t task, int64_t *group, int64_t *end) {
    *group = task % p->group_blocks * p->span;
    *end = DVTI_MIN(*group + p->span, p->groups);
    return task / p->group_blocks;
}

/* ---- forward ---- */
/* Channels o.. of a block's result. */
typedef struct dvti_cv_tile {
    const dvti_cv *p;
    const dvti_cv_block *block;
    void *area;
    int64_t o, outs;
    int64_t terms[DVTI_CV_DEPTH]; /* dvti_product.b_k */
} dvti_cv_tile;

DVTI_FN int64_t dvti_cv_pixel(const dvti_cv *p, const dvti_cv_block *block, int64_t o,
                              int64_t column) {
    int64_t each = block->rows * p->ow, image = block->image + column / each;
    return (image * p->o + o) * p->pixels + block->row * p->ow + column % each;
}

static dvti_product dvti_cv_weights_of(const dvti_cv_tile *t) {
    const dvti_cv *p = t->p;
    dvti_product q;
    memset(&q, 0, sizeof q);
    q.rows = t->outs;
    q.depth = p->taps;
    q.a = p->weight + t->o * p->taps;
    q.a_row = p->taps;
    q.a_k = 1;
    q.b_panel = p->by->width;
    q.start = p->bias ? p->bias + t->o : &dvti_cv_zero;
    q.start_row = p->bias ? 1 : 0;
    return q;
}

/* All windows of a picture are columns of one product, which reads the strip itself: of some channels, to which the next ones add. */
static void dvti_cv_forward_straight(const dvti_cv_tile *t, int64_t channel, int64_t channels) {
    const dvti_cv *p = t->p;
    const int64_t columns = t->block->rows * p->ow;
    dvti_product q = dvti_cv_weights_of(t);
    int64_t image;
    q.cols = columns;
    q.depth = channels * p->kernel;
    q.a = (const float *)q.a + channel * p->kernel;
    q.b_k = p->at;
    q.c_row = p->pixels;
    if (channel > 0)
        q.start = NULL;
    for (image = 0; image < t->block->images; image++) {
        q.b = t->block->strip + image * t->block->image_step;
        q.c = (float *)p->launch->out[0].data + dvti_cv_pixel(p, t->block, t->o, image * columns);
        p->by->multiply(&q);
    }
}

DVTI_FN void dvti_cv_put_row(const dvti_cv *p, char *y, int64_t count, const float *sums) {
    if (p->dtype == DVT_F32)
        memcpy(y, sums, (size_t)count * sizeof *sums);
    else
        p->simd->store_row(y, p->dtype, count, sums);
}

/* Sums of some columns, `row` elements apart, to where they belong. */
static void dvti_cv_put(const dvti_cv_tile *t, int64_t column, int64_t cols, const float *sums,
                        int64_t row) {
    const dvti_cv *p = t->p;
    char *y = (char *)p->launch->out[0].data;
    int64_t each = t->block->rows * p->ow, count, o;
    for (; cols > 0; cols -= count, column += count, sums += count) {
        count = DVTI_MIN(cols, each - column % each);
        for (o = 0; o < t->outs; o++)
            dvti_cv_put_row(p, y + dvti_cv_pixel(p, t->block, t->o + o, column) * p->size, count,
                            sums + o * row);
    }
}

static void dvti_cv_forward_panel(const dvti_cv_tile *t, int64_t column, int64_t cols) {
    const dvti_cv *p = t->p;
    float *panel = dvti_cv_floats(t->area, p->panel_at),
          *sums = dvti_cv_floats(t->area, p->sums_at);
    int64_t each = t->block->rows * p->ow, k, steps = (p->taps + DVTI_CV_DEPTH - 1) / DVTI_CV_DEPTH;
    bool plain = p->dtype == DVT_F32 && column / each == (column + cols - 1) / each;
    dvti_product q = dvti_cv_weights_of(t);
    const float *a = (const float *)q.a;
    q.cols = cols;
    q.b = panel;
    q.b_k = t->terms;
    q.c = plain ? (float *)p->launch->out[0].data + dvti_cv_pixel(p, t->block, t->o, column) : sums;
    q.c_row = plain ? p->pixels : DVTI_CV_COLS;
    for (k = 0; k < p->taps; k += q.depth) {
        q.depth = DVTI_MIN((p->taps + steps - 1) / steps, p->taps - k);
        dvti_cv_gather(p, t->block, column, cols, q.depth, k, panel, p->panel_row);
        q.a = a + k;
        p->by->multiply(&q);
        q.start = NULL;
    }
    if (!plain)
        dvti_cv_put(t, column, cols, sums, DVTI_CV_COLS);
}

DVTI_FN dvti_conv_plane dvti_cv_plane(const dvti_cv *p, const dvti_cv_block *block) {
    dvti_conv_plane plane;
    plane.src = NULL;
    plane.src_row = p->row_step * p->pitch;
    plane.at = p->at;
    plane.src_image = block->image_step;
    plane.taps = p->taps;
    plane.images = block->images;
    plane.rows = block->rows;
    plane.cols = plane.y_row = p->ow;
    plane.y_image = p->o * p->pixels;
    plane.y_out = p->pixels;
    return plane;
}

static void dvti_cv_forward_depthwise(const dvti_cv *p, const dvti_cv_block *block, int64_t o) {
    dvti_conv_plane plane = dvti_cv_plane(p, block);
    int64_t image;
    for (image = 0; image < block->images; image++) {
        plane.src = block->strip + image * block->image_step;
        p->kernels->filter(&plane,
                           (float *)p->launch->out[0].data +
                               dvti_cv_pixel(p, block, o, image * block->rows * p->ow),
                           p->weight + o * p->taps, p->bias ? p->bias[o] : 0);
    }
}

/* relu of what a task has made: whole channels lie one after the other. */
static void dvti_cv_forward_relu(const dvti_cv_tile *t) {
    const dvti_cv *p = t->p;
    const int64_t each = t->block->rows * p->ow;
    const bool whole = each == p->pixels;
    int64_t image;
    for (image = 0; image < t->block->images; image++)
        dvti_epilogue_rows(
            p->simd,
            (float *)p->launch->out[0].data + dvti_cv_pixel(p, t->block, t->o, image * each),
            p->pixels, whole ? 1 : t->outs, whole ? t->outs * each : each, NULL, true);
}

static void dvti_cv_forward(void *user, int64_t task, void *area) {
    const dvti_cv *p = (const dvti_cv *)user;
    int64_t group, end, column, channel, channels, k;
    dvti_cv_block block;
    dvti_cv_tile t;
    task = dvti_cv_groups(p, task, &group, &end);
    block = dvti_cv_block_of(p, 0, p->n, task / p->out_blocks);
    t.p = p;
    t.block = &block;
    t.area = area;
    for (k = 0; k < DVTI_CV_DEPTH; k++)
        t.terms[k] = k * p->panel_row;
    for (; group < end; group++) {
        t.o = task % p->out_blocks * p->outs;
        t.outs = DVTI_MIN(p->outs, p->og - t.o);
        t.o += group * p->og;
        if (p->bare)
            dvti_cv_forward_bare(p, &block, group, t.o, t.outs, area);
        for (channel = 0; !p->bare && channel < p->cg; channel += channels) {
            channels = DVTI_MIN(p->ins, p->cg - channel);
            dvti_cv_enter(p, &block, group * p->cg + channel, channels, (float *)area);
            if (p->straight)
                dvti_cv_forward_straight(&t, channel, channels);
        }
        if (p->depthwise)
            dvti_cv_forward_depthwise(p, &block, t.o);
        for (column = 0; !p->straight && !p->depthwise && column < block.columns;
             column += p->by->width)
            dvti_cv_forward_panel(&t, column, DVTI_MIN(p->by->width, block.columns - column));
        if (p->relu)
            dvti_cv_forward_relu(&t);
    }
}

/* ---- gradient to data ---- */
/* Columns of one picture, and channels of dx that the caller owns. */
static void dvti_cv_data_panel(const dvti_cv *p, const dvti_cv_block *block, int64_t group,
                               int64_t channel, int64_t channels, int64_t column, void *area) {
    const int64_t width = p->by->width, cols = DVTI_MIN(DVTI_CV_COLS, p->pixels - column);
    const int64_t tile = p->pointwise ? channels : DVTI_MAX(1, DVTI_CV_COLS * 2 / p->kernel);
    float *panel = dvti_cv_floats(area, p->panel_at), *sums = dvti_cv_floats(area, p->sums_at);
    const char *dy = (const char *)p->launch->in[0].data +
                     ((block->image * p->o + group * p->og) * p->pixels + column) * p->size;
    int64_t terms[DVTI_CV_DEPTH], c, k, j;
    dvti_product q;
    memset(&q, 0, sizeof q);
    for (j = 0; j < cols; j += width)
        p->by->copy(panel + j * p->og, width, dy + j * p->size, p->dtype, p->pixels, p->og,
                    DVTI_MIN(width, cols - j));
    for (k = 0; k < DVTI_MIN(p->og, DVTI_CV_DEPTH); k++)
        terms[k] = k * width;
    q.cols = cols;
    q.a_row = p->weight_row;
    q.a_k = 1;
    q.b_k = terms;
    q.b_panel = p->og * width;
    for (c = 0; c < channels; c += tile) {
        int64_t count = DVTI_MIN(tile, channels - c), done, start;
        const float *w = p->weight + (group * p->taps + (channel + c) * p->kernel) * p->weight_row;
        int64_t at = (block->image * p->c + group * p->cg + channel + c) * p->pixels + column;
        q.rows = count * p->kernel;
        q.c = p->pointwise ? (float *)p->launch->out[0].data + at : sums;
        q.c_row = p->pointwise ? p->pixels : DVTI_CV_COLS;
        q.start = &dvti_cv_zero;
        for (k = 0; k < p->og; k += DVTI_CV_DEPTH) {
            q.depth = DVTI_MIN(DVTI_CV_DEPTH, p->og - k);
            q.a = w + k;
            q.b = panel + k * width;
            p->by->multiply(&q);
            q.start = NULL;
        }
        for (done = 0; !p->pointwise && done < cols; done += start) {
            dvti_cv_run run = dvti_cv_run_at(p, block, column + done, cols - done);
            p->kernels->scatter(block->strip + c * p->plane + run.start, p->at, sums + done,
                                DVTI_CV_COLS, p->kernel, count, run.count);
            start = run.count;
        }
    }
}

/* dy with zeros where rows of the strip have no window; then each tap adds a product to the strip itself, which needs no sums elsewhere. */
static void dvti_cv_data_flat(const dvti_cv *p, const dvti_cv_block *block, int64_t group,
                              int64_t channel, int64_t channels, void *area) {
    const float *y =
        (const float *)p->launch->in[0].data + (block->image * p->o + group * p->og) * p->pixels;
    float *dy = dvti_cv_floats(area, p->panel_at);
    int64_t terms[DVTI_CV_DEPTH], row, tap, k;
    dvti_product q;
    memset(&q, 0, sizeof q);
    for (row = 0; row < p->oh; row++)
        p->kernels->put(dy + row * p->step, p->flat_row, y + row * p->ow, p->pixels, p->og, p->ow);
    for (k = 0; k < DVTI_MIN(p->og, DVTI_CV_DEPTH); k++)
        terms[k] = k * p->flat_row;
    q.rows = channels;
    q.cols = (p->oh - 1) * p->step + p->ow;
    q.a_row = p->kernel * p->weight_row;
    q.a_k = 1;
    q.b_k = terms;
    q.b_panel = p->by->width;
    q.c_row = p->plane;
    for (tap = 0; tap < p->kernel; tap++)
        for (k = 0; k < p->og; k += DVTI_CV_DEPTH) {
            q.depth = DVTI_MIN(DVTI_CV_DEPTH, p->og - k);
            q.a = p->weight + (group * p->taps + channel * p->kernel + tap) * p->weight_row + k;
            q.b = dy + k * p->flat_row;
            q.c = block->strip + p->at[tap];
            p->by->multiply(&q);
        }
}

static void dvti_cv_data(void *user, int64_t task, void *area) {
    const dvti_cv *p = (const dvti_cv *)user;
    int64_t group, end, column, channel, channels;
    dvti_cv_block block;
    task = dvti_cv_groups(p, task, &group, &end);
    block = dvti_cv_block_of(p, 0, p->n, task / p->in_blocks);
    block.strip = (float *)area;
    channel = task % p->in_blocks * p->ins;
    channels = DVTI_MIN(p->ins, p->cg - channel);
    if (p->flat)
        memset(dvti_cv_floats(area, p->panel_at), 0, (size_t)(p->og * p->flat_row) * sizeof(float));
    for (; group < end; group++) {
        if (p->in_place)
            block.strip = (float *)p->launch->out[0].data +
                          (block.image * p->c + group * p->cg + channel) * p->plane;
        if (!p->pointwise)
            memset(block.strip, 0,
                   (size_t)(channels * p->plane + (p->in_place ? 0 : DVTI_CONV_SLACK)) *
                       sizeof *block.strip);
        if (p->flat)
            dvti_cv_data_flat(p, &block, group, channel, channels, area);
        for (column = 0; !p->flat && column < p->pixels; column += DVTI_CV_COLS)
            dvti_cv_data_panel(p, &block, group, channel, channels, column, area);
        if (!p->pointwise && !p->in_place)
            dvti_cv_leave(p, &block, group * p->cg + channel, channels);
    }
}

/* ---- the family ---- */
DVTI_FN int64_t dvti_cpu_conv2d_workspace(const dvti_launch *launch, int threads) {
    dvti_cv p;
    if (!dvti_simd_now() || !dvti_cv_plan(&p, launch))
        return dvti_ref_conv2d_workspace(launch, threads);
    return p.shared + p.area * dvti_task_areas(p.tasks, dvti_cv_terms(&p), threads);
}

static void dvti_cv_run_all(dvti_cv *p, const dvti_simd *simd) {
    const dvti_launch *launch = p->launch;
    char *workspace = (char *)launch->workspace;
    double terms = dvti_cv_terms(p);
    int64_t areas = p->area ? (launch->workspace_bytes - p->shared) / p->area
                            : dvti_task_areas(p->tasks, terms, dvti_parallel_width());
    p->simd = simd;
    p->by = simd->gemm_f32;
    p->kernels = simd->conv;
    if (p->op != DVTI_OP_conv2d_weight && !p->winograd)
        p->panel_row = p->by->width + DVTI_CONV_SLACK;
    if (p->winograd)
        dvti_wg_share(p, areas);
    else if (p->bare)
        dvti_cv_bare_share(p, areas);
    dvti_cv_prepare(p, workspace);
    dvti_run_tasks(p->tasks, terms, workspace + p->shared, areas, p->area,
                   p->winograd                    ? dvti_wg_task
                   : p->op == DVTI_OP_conv2d      ? dvti_cv_forward
                   : p->op == DVTI_OP_conv2d_data ? dvti_cv_data
                                                  : dvti_cv_weights,
                   p);
    if (p->op == DVTI_OP_conv2d_weight)
        dvti_parallel_for(p->o, (double)(p->parts * p->taps),
                          p->mixed ? dvti_cv_add_mixed : dvti_cv_add_parts, p);
}

/* dvt_set_cpu_isa may have been called since the workspace was made; then who can, does. */
DVTI_FN void dvti_cpu_conv2d(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now(), *tier[4];
    dvti_cv p;
    if (dvti_cv_plan(&p, launch)) {
        if (!simd && launch->workspace_bytes < dvti_ref_conv2d_workspace(launch, 1) &&
            dvti_simd_tiers(tier))
            simd = tier[0];
        if (simd && launch->workspace_bytes >= p.shared + p.area) {
            dvti_cv_run_all(&p, simd);
            if (p.relu && p.winograd)
                dvti_epilogue_whole(launch);
            return;
        }
    }
    dvti_ref_conv2d(launch);
    dvti_epilogue_whole(launch);
}
