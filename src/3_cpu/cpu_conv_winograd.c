/* Convolution (cpu_conv.h) of 3 x 3 by Winograd's F(4 x 4, 3 x 3), if the program allows it
   (dvt_allow_winograd). Source: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
   Networks", 2016. A tile of 4 x 4 results takes 36 multiplications per channel instead of 144.

     x: tiles of 6 x 6, 4 apart       36 products of channels            y: tiles of 4 x 4

     columns 0 1 2 3 4 5 6 7 8 9      [36][out][in] * [36][in][tile]     columns 0 1 2 3 4 5 6 7
             [-- tile 0 -]            = [36][out][tile]                          [tile 0][tile 1]
                     [-- tile 1 -]
               -- transform -->                         -- transform, + bias -->

   A block is some consecutive rows of tiles, which may span images, with all channels. Each sum
   is one chain over the channels, so results do not depend on cuts. Backward data is the same
   with rotated kernels (dvti_conv.transposed). */
#include "3_cpu/cpu_conv.h"

#define DVTI_WINOGRAD_CHANNELS 32 /* the least, in and out, that pay for the transforms */
#define DVTI_WINOGRAD_WASTE 1.5   /* the most elements of tiles per result that pay */
#define DVTI_WINOGRAD_LEAST 48    /* the least tiles that pay for the transform of the weights */
#define DVTI_WINOGRAD_BLOCK 128   /* the most tiles of a block */
#define DVTI_WINOGRAD_OUTS 64     /* output channels that pay for transforming a block again */
#define DVTI_WINOGRAD_CHUNK 256   /* kernels of one call of the transform */

DVTI_FN bool dvti_conv_winograd_fits(const dvti_conv *p) {
    const double tiles = (double)dvti_conv_cuts(p->oh, 4) * (double)dvti_conv_cuts(p->ow, 4);
    return (p->launch->i[7] & 2) && p->op == DVTI_OP_conv2d && p->dtype != DVT_F64 && p->kh == 3 &&
           p->kw == 3 && p->stride[0] == 1 && p->stride[1] == 1 && p->dilation[0] == 1 &&
           p->dilation[1] == 1 && p->groups == 1 && p->padding[0] <= 2 && p->padding[1] <= 2 &&
           p->c >= DVTI_WINOGRAD_CHANNELS && p->o >= DVTI_WINOGRAD_CHANNELS &&
           16 * tiles <= DVTI_WINOGRAD_WASTE * (double)p->oh * (double)p->ow &&
           (double)p->n * tiles >= DVTI_WINOGRAD_LEAST;
}

/* Sets the rows of tiles of a block. Chooses a number of tiles that fills vectors. */
static void dvti_conv_winograd_cut(dvti_conv *p) {
    const int64_t across = dvti_conv_cuts(p->ow, 4), down = dvti_conv_cuts(p->oh, 4);
    int64_t rows, count;
    double quality = 0;
    p->u.winograd.down = down;
    p->u.winograd.across = across;
    for (rows = 1; rows <= p->n * down && (rows == 1 || rows * across <= DVTI_WINOGRAD_BLOCK);
         rows++) {
        double now;
        count = rows * across;
        now =
            (double)count / (double)dvti_conv_up(count, 16) * (double)count / (double)(count + 16);
        if (now > quality) {
            quality = now;
            p->rows = rows;
        }
    }
    p->row_blocks = dvti_conv_cuts(p->n * down, p->rows);
}

/* Shares the output channels among threads if there are fewer blocks than threads; each then
   transforms the image. Otherwise a task computes all output channels, since each block reads all
   weights. */
DVTI_FN void dvti_conv_winograd_share(dvti_conv *p, int64_t threads) {
    const int64_t most = dvti_conv_cuts(p->o, DVTI_WINOGRAD_OUTS);
    const int64_t wanted = p->row_blocks >= threads ? 1 : dvti_conv_cuts(threads, p->row_blocks);
    p->outs = dvti_conv_cuts(p->o, DVTI_MIN(wanted, most));
    p->out_blocks = dvti_conv_cuts(p->o, p->outs);
    p->tasks = p->row_blocks * p->out_blocks;
}

/* Sets the layout. The strides of the 36 arrays are not powers of two, so that the arrays do not
   fall into the same cache sets. */
DVTI_FN void dvti_conv_winograd_plan(dvti_conv *p) {
    const int64_t f = (int64_t)sizeof(float);
    dvti_conv_winograd *w = &p->u.winograd;
    dvti_conv_winograd_cut(p);
    dvti_conv_winograd_share(p, p->row_blocks * dvti_conv_cuts(p->o, DVTI_WINOGRAD_OUTS));
    w->line = dvti_conv_up(4 * (w->across + 1), 64);
    w->phase = w->line / 4 + 16;
    w->pitch = dvti_conv_up(p->rows * w->across, 16) + 16;
    w->weight_row = dvti_conv_up(p->o * p->c, 16) + 16;
    w->plane = p->c * w->pitch + 16;
    w->sum_plane = p->o * w->pitch + 16;
    p->weight_at = dvti_conv_up(p->c * (int64_t)sizeof(int64_t), 64);
    p->bias_at = p->weight_at + dvti_conv_up(36 * w->weight_row * f, 64);
    p->shared = p->bias_at + dvti_conv_up((p->o + 16) * f, 64);
    w->rows_at = dvti_conv_up((w->line + 32) * f, 64);
    w->tiles_at = w->rows_at + (4 * p->rows + 2) * 4 * w->phase * f;
    w->sums_at = w->tiles_at + 36 * w->plane * f;
    w->y_at = w->sums_at + 36 * w->sum_plane * f;
    p->area = w->y_at + 4 * w->line * f;
}

/* ---- weights: [36][kernels of w] ---- */
typedef struct dvti_conv_winograd_packing {
    const dvti_conv *p;
    float *to;
} dvti_conv_winograd_packing;

static void dvti_conv_winograd_pack_some(void *user, int64_t begin, int64_t end) {
    const dvti_conv_winograd_packing *job = (const dvti_conv_winograd_packing *)user;
    const dvti_conv *p = job->p;
    const int64_t step = DVTI_WINOGRAD_CHUNK + 16;
    float taps[9 * (DVTI_WINOGRAD_CHUNK + 16)];
    int64_t at, n;
    for (; begin < end; begin++) {
        at = begin * DVTI_WINOGRAD_CHUNK;
        n = DVTI_MIN(DVTI_WINOGRAD_CHUNK, p->o * p->c - at);
        p->gemm->transpose(taps, step, (const char *)p->launch->in[1].data + 9 * at * p->size,
                           p->dtype, 9, 9, n);
        p->kernels->winograd->weights(job->to + at, p->u.winograd.weight_row,
                                      p->transposed ? taps + 8 * step : taps,
                                      p->transposed ? -step : step, n);
    }
}

DVTI_FN void dvti_conv_winograd_pack(dvti_conv *p, char *workspace) {
    int64_t *at = (int64_t *)(void *)workspace, k;
    dvti_conv_winograd_packing job;
    for (k = 0; k < p->c; k++)
        at[k] = k * p->u.winograd.pitch;
    job.p = p;
    job.to = dvti_conv_floats(workspace, p->weight_at);
    p->at = at;
    p->weight = job.to;
    dvti_parallel_for(dvti_conv_cuts(p->o * p->c, DVTI_WINOGRAD_CHUNK), DVTI_WINOGRAD_CHUNK * 10.,
                      dvti_conv_winograd_pack_some, &job);
}

/* ---- blocks ---- */
/* Transforms one channel of some rows of tiles. Each image row is padded, then split into its
   columns modulo 4. */
static void dvti_conv_winograd_load(const dvti_conv *p, int64_t channel, int64_t row, int64_t end,
                                    void *area) {
    const dvti_conv_winograd *w = &p->u.winograd;
    const dvti_simd_winograd *by = p->kernels->winograd;
    const int64_t image_size = p->h * p->w, step = 4 * w->phase;
    float *line = (float *)area, *rows = dvti_conv_floats(area, w->rows_at);
    float *to = dvti_conv_floats(area, w->tiles_at) + channel * w->pitch;
    int64_t count, i, y;
    for (; row < end; row += count) {
        const char *image = (const char *)p->launch->in[0].data +
                            (row / w->down * p->c + channel) * image_size * p->size;
        count = DVTI_MIN(end - row, w->down - row % w->down); /* within one image */
        for (i = 0; i < 4 * count + 2; i++) {
            y = row % w->down * 4 + i - p->padding[0];
            if (y < 0 || y >= p->h) {
                memset(rows + i * step, 0, (size_t)step * sizeof *rows);
                continue;
            }
            p->gemm->copy(line + p->padding[1], 0, image + y * p->w * p->size, p->dtype, 0, 1,
                          p->w);
            by->deinterleave(rows + i * step, w->phase, line, w->line);
        }
        for (i = 0; i < count; i++, to += w->across)
            by->tiles(to, w->plane, rows + 4 * i * step, w->phase, w->across);
    }
}

static void dvti_conv_winograd_multiply(const dvti_conv *p, int64_t o, int64_t outs, int64_t count,
                                        void *area) {
    const dvti_conv_winograd *w = &p->u.winograd;
    dvti_product q;
    int k;
    memset(&q, 0, sizeof q);
    q.rows = outs;
    q.cols = count;
    q.depth = p->c;
    q.a_row = p->transposed ? 1 : p->c;
    q.a_k = p->transposed ? p->o : 1;
    q.b_k = p->at;
    q.b_panel = p->gemm->width;
    q.c_row = w->pitch;
    q.start = &dvti_conv_zero;
    for (k = 0; k < 36; k++) {
        q.a = (const float *)p->weight + k * w->weight_row + o * q.a_row;
        q.b = dvti_conv_floats(area, w->tiles_at) + k * w->plane;
        q.c = dvti_conv_floats(area, w->sums_at) + k * w->sum_plane;
        p->gemm->multiply(&q);
    }
}

/* Transforms the sums of output channel o, which is number i of the task. Writes the results that
   lie in y. */
static void dvti_conv_winograd_store(const dvti_conv *p, int64_t o, int64_t i, int64_t row,
                                     int64_t end, void *area) {
    const dvti_conv_winograd *w = &p->u.winograd;
    const float *sums = dvti_conv_floats(area, w->sums_at) + i * w->pitch;
    const float bias = p->bias ? ((const float *)p->bias)[o] : 0;
    float *y = dvti_conv_floats(area, w->y_at);
    int64_t at, line;
    for (; row < end; row++, sums += w->across) {
        char *to = (char *)p->launch->out[0].data;
        p->kernels->winograd->results(y, w->line, sums, w->sum_plane, w->across, bias);
        at = row % w->down * 4;
        to += ((row / w->down * p->o + o) * p->oh + at) * p->ow * p->size;
        for (line = 0; line < 4 && at + line < p->oh; line++, to += p->ow * p->size)
            dvti_conv_put_row(p, to, p->ow, y + line * w->line);
    }
}

DVTI_FN void dvti_conv_winograd_task(void *user, int64_t task, void *area) {
    const dvti_conv *p = (const dvti_conv *)user;
    const dvti_conv_winograd *w = &p->u.winograd;
    const int64_t row = task / p->out_blocks * p->rows;
    const int64_t end = DVTI_MIN(row + p->rows, p->n * w->down);
    const int64_t o = task % p->out_blocks * p->outs, outs = DVTI_MIN(p->outs, p->o - o);
    int64_t i;
    memset(area, 0, (size_t)(w->line + 32) * sizeof(float));
    for (i = 0; i < p->c; i++)
        dvti_conv_winograd_load(p, i, row, end, area);
    dvti_conv_winograd_multiply(p, o, outs, (end - row) * w->across, area);
    for (i = 0; i < outs; i++)
        dvti_conv_winograd_store(p, o + i, i, row, end, area);
}

#undef DVTI_WINOGRAD_CHANNELS
#undef DVTI_WINOGRAD_WASTE
#undef DVTI_WINOGRAD_LEAST
#undef DVTI_WINOGRAD_BLOCK
#undef DVTI_WINOGRAD_OUTS
#undef DVTI_WINOGRAD_CHUNK
