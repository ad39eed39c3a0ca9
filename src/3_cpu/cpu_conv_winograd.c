/* Convolutions of 3 x 3 by Winograd's method, F(4 x 4, 3 x 3), where the program has allowed it (dvt_allow_winograd): tiles of 4 x 4
   results are made of 36 products each instead of 144. Pictures and weights are transformed, 36 matrix products of channels meet, and the
   results are transformed back; the gradient to data is the same with turned kernels (dvti_cv.turned).

   A block is some rows of tiles, of one picture after the other, and all channels: it has `count` tiles. Its transformed pictures are
   [36][channel][tile], and so are its sums. What is cut, and how, changes no bit: each element is a chain over the channels. */
#include "3_cpu/cpu_conv.h"

/* Fewer channels do not pay for the transforms, nor do pictures that tiles cover badly. */
#define DVTI_WG_CHANNELS 32
#define DVTI_WG_VAIN 1.5
#define DVTI_WG_TILES 128 /* of a block, at most */
#define DVTI_WG_FEW 48    /* in all, that do not pay for the weights */
#define DVTI_WG_OUTS 64   /* channels of a result that are worth transforming a block again */
#define DVTI_WG_CHUNK 256 /* kernels that are transformed at once */

static int64_t dvti_wg_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

static int64_t dvti_wg_cuts(int64_t n, int64_t piece) {
    return (n + piece - 1) / piece;
}

DVTI_FN bool dvti_wg_takes(const dvti_cv *p) {
    double tiles = (double)dvti_wg_cuts(p->oh, 4) * (double)dvti_wg_cuts(p->ow, 4);
    return (p->launch->i[7] & 2) && p->op == DVTI_OP_conv2d && p->kh == 3 && p->kw == 3 &&
           p->stride[0] == 1 && p->stride[1] == 1 && p->dilation[0] == 1 && p->dilation[1] == 1 &&
           p->groups == 1 && p->padding[0] <= 2 && p->padding[1] <= 2 && p->c >= DVTI_WG_CHANNELS &&
           p->o >= DVTI_WG_CHANNELS && 16 * tiles <= DVTI_WG_VAIN * (double)p->oh * (double)p->ow &&
           (double)p->n * tiles >= DVTI_WG_FEW;
}

/* Rows of tiles whose number of tiles fills vectors. */
static void dvti_wg_cut(dvti_cv *p) {
    const int64_t across = dvti_wg_cuts(p->ow, 4);
    int64_t rows, count;
    double quality = 0;
    p->tiles[0] = dvti_wg_cuts(p->oh, 4);
    p->tiles[1] = across;
    for (rows = 1; rows <= p->n * p->tiles[0] && (rows == 1 || rows * across <= DVTI_WG_TILES);
         rows++) {
        double now;
        count = rows * across;
        now = (double)count / (double)dvti_wg_up(count, 16) * (double)count / (double)(count + 16);
        if (now > quality) {
            quality = now;
            p->rows = rows;
        }
    }
    p->row_blocks = dvti_wg_cuts(p->n * p->tiles[0], p->rows);
}

/* Weights are read once for each block. So where there are fewer blocks than threads, these share the channels of the result, and each
   transforms the picture. */
DVTI_FN void dvti_wg_share(dvti_cv *p, int64_t threads) {
    const int64_t most = dvti_wg_cuts(p->o, DVTI_WG_OUTS);
    int64_t wanted = p->row_blocks >= threads ? 1 : dvti_wg_cuts(threads, p->row_blocks);
    p->outs = dvti_wg_cuts(p->o, DVTI_MIN(wanted, most));
    p->out_blocks = dvti_wg_cuts(p->o, p->outs);
    p->tasks = p->row_blocks * p->out_blocks;
}

/* A line is a row of a picture with its padding, in floats; a plane its rows for a block, dealt into columns by their remainder modulo 4. */
DVTI_FN void dvti_wg_plan(dvti_cv *p) {
    const int64_t f = (int64_t)sizeof(float);
    int64_t line, phase, pitch;
    dvti_wg_cut(p);
    dvti_wg_share(p, p->row_blocks * dvti_wg_cuts(p->o, DVTI_WG_OUTS));
    line = dvti_wg_up(4 * (p->tiles[1] + 1), 64);
    phase = line / 4 + 16;
    pitch = dvti_wg_up(p->rows * p->tiles[1], 16) + 16;
    /* A line more than what may be a power of two: 36 arrays must not meet in one set of a cache. */
    p->weight_row = dvti_wg_up(p->o * p->c, 16) + 16;
    p->plane = p->c * pitch + 16;
    p->result_row = p->o * pitch + 16;
    p->pitch = pitch;
    p->wide = line;
    p->panel_row = phase;
    p->shared = dvti_wg_up(p->c * (int64_t)sizeof(int64_t), 64);
    p->weight_at = p->shared;
    p->bias_at = p->weight_at + dvti_wg_up(36 * p->weight_row * f, 64);
    p->shared = p->bias_at + dvti_wg_up((p->o + 16) * f, 64);
    p->panel_at = dvti_wg_up((line + 32) * f, 64);
    p->other_at = p->panel_at + (4 * p->rows + 2) * 4 * phase * f;
    p->sums_at = p->other_at + 36 * p->plane * f;
    p->result_at = p->sums_at + 36 * p->result_row * f;
    p->area = p->result_at + 4 * line * f;
}

/* ---- weights: [36][channels of the array w] ---- */
typedef struct dvti_wg_pack {
    const dvti_cv *p;
    float *to;
} dvti_wg_pack;

static void dvti_wg_pack_some(void *user, int64_t begin, int64_t end) {
    const dvti_wg_pack *job = (const dvti_wg_pack *)user;
    const dvti_cv *p = job->p;
    const int64_t step = DVTI_WG_CHUNK + 16;
    float taps[9 * (DVTI_WG_CHUNK + 16)];
    int64_t at, n;
    for (; begin < end; begin++) {
        at = begin * DVTI_WG_CHUNK;
        n = DVTI_MIN(DVTI_WG_CHUNK, p->o * p->c - at);
        p->by->turn(taps, step, (const char *)p->launch->in[1].data + 9 * at * p->size, p->dtype, 9,
                    9, n);
        p->kernels->winograd->kernels(job->to + at, p->weight_row,
                                      p->turned ? taps + 8 * step : taps, p->turned ? -step : step,
                                      n);
    }
}

DVTI_FN void dvti_wg_prepare(dvti_cv *p, char *workspace) {
    int64_t *at = (int64_t *)(void *)workspace, k;
    dvti_wg_pack job;
    for (k = 0; k < p->c; k++)
        at[k] = k * p->pitch;
    job.p = p;
    job.to = dvti_cv_floats(workspace, p->weight_at);
    p->at = at;
    p->weight = job.to;
    dvti_parallel_for(dvti_wg_cuts(p->o * p->c, DVTI_WG_CHUNK), DVTI_WG_CHUNK * 10.,
                      dvti_wg_pack_some, &job);
}

/* ---- blocks ---- */
/* Rows of tiles from `row` on of one picture. */
static int64_t dvti_wg_of_one(const dvti_cv *p, int64_t row, int64_t end) {
    return DVTI_MIN(end - row, p->tiles[0] - row % p->tiles[0]);
}

static void dvti_wg_enter(const dvti_cv *p, int64_t channel, int64_t row, int64_t end, void *area) {
    const dvti_simd_winograd *by = p->kernels->winograd;
    const int64_t plane = p->h * p->w, across = p->tiles[1], step = 4 * p->panel_row;
    float *line = (float *)area, *rows = dvti_cv_floats(area, p->panel_at);
    float *v = dvti_cv_floats(area, p->other_at) + channel * p->pitch;
    int64_t count, i, y;
    for (; row < end; row += count) {
        const char *picture = (const char *)p->launch->in[0].data +
                              (row / p->tiles[0] * p->c + channel) * plane * p->size;
        count = dvti_wg_of_one(p, row, end);
        for (i = 0; i < 4 * count + 2; i++) {
            y = row % p->tiles[0] * 4 + i - p->padding[0];
            if (y < 0 || y >= p->h) {
                memset(rows + i * step, 0, (size_t)step * sizeof *rows);
                continue;
            }
            p->by->copy(line + p->padding[1], 0, picture + y * p->w * p->size, p->dtype, 0, 1,
                        p->w);
            by->deal(rows + i * step, p->panel_row, line, p->wide);
        }
        for (i = 0; i < count; i++, v += across)
            by->tiles(v, p->plane, rows + 4 * i * step, p->panel_row, across);
    }
}

static void dvti_wg_multiply(const dvti_cv *p, int64_t o, int64_t outs, int64_t count, void *area) {
    static const float zero = 0;
    dvti_product q;
    int k;
    memset(&q, 0, sizeof q);
    q.rows = outs;
    q.cols = count;
    q.depth = p->c;
    q.a_row = p->turned ? 1 : p->c;
    q.a_k = p->turned ? p->o : 1;
    q.b_k = p->at;
    q.b_panel = p->by->width;
    q.c_row = p->pitch;
    q.start = &zero;
    for (k = 0; k < 36; k++) {
        q.a = p->weight + k * p->weight_row + o * q.a_row;
        q.b = dvti_cv_floats(area, p->other_at) + k * p->plane;
        q.c = dvti_cv_floats(area, p->sums_at) + k * p->result_row;
        p->by->multiply(&q);
    }
}

/* Channel o, which is number i of the block's. */
static void dvti_wg_leave(const dvti_cv *p, int64_t o, int64_t i, int64_t row, int64_t end,
                          void *area) {
    const int64_t across = p->tiles[1];
    const float *m = dvti_cv_floats(area, p->sums_at) + i * p->pitch;
    float *y = dvti_cv_floats(area, p->result_at);
    int64_t at, line;
    for (; row < end; row++, m += across) {
        p->kernels->winograd->results(y, p->wide, m, p->result_row, across,
                                      p->bias ? p->bias[o] : 0);
        at = row % p->tiles[0] * 4;
        for (line = 0; line < 4 && at + line < p->oh; line++)
            dvti_cv_put_row(p,
                            (char *)p->launch->out[0].data +
                                (((row / p->tiles[0] * p->o + o) * p->oh + at + line) * p->ow) *
                                    p->size,
                            p->ow, y + line * p->wide);
    }
}

DVTI_FN void dvti_wg_task(void *user, int64_t task, void *area) {
    const dvti_cv *p = (const dvti_cv *)user;
    const int64_t row = task / p->out_blocks * p->rows;
    const int64_t end = DVTI_MIN(row + p->rows, p->n * p->tiles[0]);
    const int64_t o = task % p->out_blocks * p->outs, outs = DVTI_MIN(p->outs, p->o - o);
    int64_t i;
    memset(area, 0, (size_t)(p->wide + 32) * sizeof(float));
    for (i = 0; i < p->c; i++)
        dvti_wg_enter(p, i, row, end, area);
    dvti_wg_multiply(p, o, outs, (end - row) * p->tiles[1], area);
    for (i = 0; i < outs; i++)
        dvti_wg_leave(p, o + i, i, row, end, area);
}

#undef DVTI_WG_CHANNELS
#undef DVTI_WG_VAIN
#undef DVTI_WG_TILES
#undef DVTI_WG_FEW
#undef DVTI_WG_OUTS
#undef DVTI_WG_CHUNK
