/* The gradient to the weights of a convolution (cpu_conv.h): by lanes, with patches, or with mixed channels, and the sums of the tasks' parts. */
#include "3_cpu/cpu_conv.h"

static const float dvti_cv_nought = 0;

typedef struct dvti_cv_sums {
    const dvti_cv *p;
    void *area;
    float *
        to; /* of the first tap and channel: [tap][channel of the group]; mixed: [channel out][row and column of the kernel][channel in] */
    int64_t group, channel, channels, o, outs;
    bool first;
} dvti_cv_sums;

/* Some columns of a block: their patches beside each other, dy transposed, and the product of the two. */
static void dvti_cv_weights_step(dvti_cv_sums *s, const dvti_cv_block *block, int64_t column,
                                 int64_t count) {
    const dvti_cv *p = s->p;
    const int64_t width = p->by->width, each = block->rows * p->ow;
    float *panel = dvti_cv_floats(s->area, p->panel_at);
    float *patches = dvti_cv_floats(s->area, p->other_at);
    int64_t terms[DVTI_CV_DEPTH], k, o;
    dvti_product q;
    memset(&q, 0, sizeof q);
    q.rows = s->channels * p->kernel;
    q.cols = s->outs;
    q.depth = count;
    dvti_cv_gather(p, block, column, count, q.rows, 0, patches, p->panel_row);
    for (k = 0; k < count; k++)
        terms[k] = k * width;
    for (o = 0; o < s->outs; o += width)
        for (k = 0; k < count;) {
            int64_t run = DVTI_MIN(count - k, each - (column + k) % each);
            int64_t at = dvti_cv_pixel(p, block, s->group * p->og + s->o + o, column + k);
            p->by->turn(panel + o * count + k * width, width,
                        (const char *)p->launch->in[1].data + at * p->size, p->dtype, p->pixels,
                        run, DVTI_MIN(width, s->outs - o));
            k += run;
        }
    q.a = patches;
    q.a_row = p->panel_row;
    q.a_k = 1;
    q.b = panel;
    q.b_k = terms;
    q.b_panel = count * width;
    q.c = s->to;
    q.c_row = p->og;
    q.start = s->first ? &dvti_cv_nought : NULL;
    p->by->multiply(&q);
    s->first = false;
}

/* Without patches: each lane sums columns of its own, in an order that no cut changes. */
static void dvti_cv_weights_lanes(dvti_cv_sums *s, const dvti_cv_block *block) {
    const dvti_cv *p = s->p;
    dvti_conv_plane plane = dvti_cv_plane(p, block);
    plane.src = block->strip;
    plane.taps = s->channels * p->kernel;
    p->kernels->correlate(&plane,
                          (const float *)p->launch->in[1].data +
                              dvti_cv_pixel(p, block, s->group * p->og + s->o, 0),
                          s->outs, dvti_cv_floats(s->area, p->sums_at));
}

/* Columns of a block, `first` to before `end`, whose windows see the picture through the kernel's row i. */
static void dvti_cv_seen_through(const dvti_cv *p, const dvti_cv_block *block, int64_t i,
                                 int64_t *first, int64_t *end) {
    const int64_t up = p->padding[0] - i * p->dilation[0], stride = p->stride[0];
    const int64_t line = block->images * p->ow;
    *first = up > 0 ? (up + stride - 1) / stride : 0;
    *end = p->h + up > 0 ? (p->h + up - 1) / stride + 1 : 0;
    *first = DVTI_MAX(*first - block->row, 0) * line;
    *end = (DVTI_MIN(*end, block->row + block->rows) - block->row) * line;
}

/* Channels side by side: dy in place, or of several pictures, row by row of all, times the strip through each row of the kernel, where windows
   see the picture through it. */
static void dvti_cv_weights_mixed(dvti_cv_sums *s, const dvti_cv_block *block) {
    const dvti_cv *p = s->p;
    const int64_t run = p->dilation[1] == 1 ? p->kw : 1, line = block->images * p->ow;
    const float *dy =
        (const float *)p->launch->in[1].data + dvti_cv_pixel(p, block, s->group * p->og + s->o, 0);
    float *panel = dvti_cv_floats(s->area, p->panel_at);
    int64_t terms[DVTI_CV_DEPTH], k, tap, at, depth, first, end;
    dvti_product q;
    memset(&q, 0, sizeof q);
    q.rows = s->outs;
    q.cols = run * s->channels;
    q.a_row = block->images == 1 ? p->pixels : block->columns;
    q.a_k = 1;
    q.b_panel = p->by->width;
    q.c_row = p->kernel * s->channels;
    for (k = 0; block->images > 1 && k < block->images * block->rows; k++)
        p->kernels->put(panel + k * p->ow, block->columns,
                        dy + k % block->images * p->o * p->pixels + k / block->images * p->ow,
                        p->pixels, s->outs, p->ow);
    for (at = 0; at < block->columns; at += depth) {
        depth = DVTI_MIN(DVTI_CV_DEPTH, block->columns - at);
        for (k = 0; k < depth; k++) {
            int64_t row = (at + k) / line, window = (at + k) % line;
            terms[k] =
                window / p->ow * block->image_step +
                (row * p->stride[0] * p->pitch + window % p->ow * p->stride[1]) * s->channels;
        }
        q.start = s->first ? &dvti_cv_nought : NULL;
        for (tap = 0; tap < p->kernel; tap += run) {
            dvti_cv_seen_through(p, block, tap / p->kw, &first, &end);
            first = DVTI_MIN(DVTI_MAX(first - at, 0), depth);
            q.depth = DVTI_MAX(DVTI_MIN(end - at, depth) - first, 0);
            q.a = (block->images == 1 ? dy : panel) + at + first;
            q.b_k = terms + first;
            q.b = block->strip +
                  (tap / p->kw * p->dilation[0] * p->pitch + tap % p->kw * p->dilation[1]) *
                      s->channels;
            q.c = s->to + tap * s->channels;
            p->by->multiply(&q);
        }
        s->first = false;
    }
}

static void dvti_cv_weights_part(dvti_cv_sums *s, int64_t first, int64_t end) {
    const dvti_cv *p = s->p;
    int64_t blocks = (end - first + p->images - 1) / p->images * p->row_blocks, i, column;
    float *sums = dvti_cv_floats(s->area, p->sums_at);
    int64_t taps = s->channels * p->kernel, o;
    s->first = true;
    if (p->lanes)
        memset(sums, 0, (size_t)(s->outs * taps * 16) * sizeof *sums);
    for (i = 0; i < blocks; i++) {
        dvti_cv_block block = dvti_cv_block_of(p, first, end, i);
        dvti_cv_enter(p, &block, s->group * p->cg + s->channel, s->channels, (float *)s->area);
        if (p->lanes)
            dvti_cv_weights_lanes(s, &block);
        else if (p->mixed)
            dvti_cv_weights_mixed(s, &block);
        else
            for (column = 0; column < block.columns; column += DVTI_CV_DEPTH)
                dvti_cv_weights_step(s, &block, column,
                                     DVTI_MIN(DVTI_CV_DEPTH, block.columns - column));
    }
    for (o = 0; p->lanes && o < s->outs; o++)
        p->kernels->fold(s->to + o, p->og, sums + o * taps * 16, taps);
}

DVTI_FN void dvti_cv_weights(void *user, int64_t task, void *area) {
    const dvti_cv *p = (const dvti_cv *)user;
    int64_t end, part, tile;
    dvti_cv_sums s;
    s.p = p;
    s.area = area;
    task = dvti_cv_groups(p, task, &s.group, &end);
    part = task % p->parts;
    tile = task / p->parts;
    s.channel = tile / p->out_blocks * p->ins;
    s.channels = DVTI_MIN(p->ins, p->cg - s.channel);
    s.o = tile % p->out_blocks * p->outs;
    s.outs = DVTI_MIN(p->outs, p->og - s.o);
    for (; s.group < end; s.group++) {
        s.to = p->partial + (part * p->groups + s.group) * p->taps * p->og +
               s.channel * p->kernel * p->og + s.o * (p->mixed ? p->kernel * s.channels : 1);
        dvti_cv_weights_part(&s, p->n * part / p->parts, p->n * (part + 1) / p->parts);
    }
}

DVTI_FN void dvti_cv_add_parts(void *user, int64_t begin, int64_t end) {
    const dvti_cv *p = (const dvti_cv *)user;
    const int64_t all = p->o * p->taps;
    char *dw = (char *)p->launch->out[0].data;
    float row[64];
    int64_t tap, o, k, part;
    for (tap = 0; tap < p->taps; tap += 64)
        for (o = begin; o < end; o++) {
            const float *from = p->partial + (o / p->og * p->taps + tap) * p->og + o % p->og;
            int64_t count = DVTI_MIN(64, p->taps - tap);
            for (k = 0; k < count; k++) {
                row[k] = from[k * p->og];
                for (part = 1; part < p->parts; part++)
                    row[k] += from[part * all + k * p->og];
            }
            dvti_store_row_f32(dw + (o * p->taps + tap) * p->size, p->dtype, 1, count, row);
        }
}

DVTI_FN void dvti_cv_add_mixed(void *user, int64_t begin, int64_t end) {
    const dvti_cv *p = (const dvti_cv *)user;
    const dvti_loop_fn add = p->simd->loop_f32(DVTI_OP_add);
    float *dw = (float *)p->launch->out[0].data;
    int64_t o, channel, channels, part;
    dvti_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.op = DVTI_OP_add;
    loop.step[0] = loop.step[1] = 1;
    for (o = begin; o < end; o++)
        for (channel = 0; channel < p->cg; channel += channels) {
            float *sum = p->partial + o / p->og * p->og * p->taps + channel * p->kernel * p->og;
            channels = DVTI_MIN(p->ins, p->cg - channel);
            sum += o % p->og * p->kernel * channels;
            loop.n = p->kernel * channels;
            loop.in[0] = loop.out = sum;
            for (part = 1; part < p->parts; part++) {
                loop.in[1] = sum + part * p->o * p->taps;
                add(&loop);
            }
            p->by->turn_exactly(dw + o * p->taps + channel * p->kernel, p->kernel, sum, channels,
                                channels, p->kernel);
        }
}
