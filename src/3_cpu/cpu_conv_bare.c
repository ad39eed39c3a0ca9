/* Convolutions with steps of 1 whose windows skip the padding's rows (cpu_conv.h): in a picture of 14 rows, one product in twenty of a
   kernel of 3 x 3 is with a row of zeros.

   The strip holds the picture's rows alone: a copy for each column of the kernel and channel, shifted so that windows stand where they look,
   with zeros at the ends of rows. All pictures of a block lie in it row by row: [row][picture][column]. So rows of
   windows that see the picture through the same rows of the kernel are columns of one product, which reads the strip where they look. Sums of
   several pictures lie in the same order, and go to the result in the end; those of one are in the result. */
#include "3_cpu/cpu_conv.h"

#define DVTI_CV_DEEP 128 /* terms of a product that are worth reading its sums again */
#define DVTI_CV_VAIN 50  /* one of so many rows that windows look at must be padding */

static const float dvti_cv_none = 0;

/* Rows of the kernel through which row r of the windows sees the picture: from `first` to before `end`. */
static void dvti_cv_bare_seen(const dvti_cv *p, int64_t r, int64_t *first, int64_t *end) {
    const int64_t step = p->dilation[0], up = p->padding[0] - r;
    *first = up > 0 ? DVTI_MIN((up + step - 1) / step, p->kh) : 0;
    *end = p->h + up > 0 ? DVTI_MIN((p->h + up - 1) / step + 1, p->kh) : 0;
    *end = DVTI_MAX(*end, *first);
}

DVTI_FN bool dvti_cv_is_bare(const dvti_cv *p) {
    int64_t r, first, end, rows = 0;
    if (p->op != DVTI_OP_conv2d || p->dtype != DVT_F32 || p->depthwise || p->pitch == p->ow ||
        p->stride[0] != 1 || p->stride[1] != 1 || p->taps < DVTI_CV_DEEP)
        return false;
    for (r = 0; r < p->oh; r++, rows += end - first)
        dvti_cv_bare_seen(p, r, &first, &end);
    return (p->kh * p->oh - rows) * DVTI_CV_VAIN >= p->kh * p->oh;
}

/* An odd number of whole vectors: neighbours must not meet in one set of a cache. */
static int64_t dvti_cv_apart(int64_t n) {
    return ((n + 15) / 16 | 1) * 16;
}

DVTI_FN void dvti_cv_bare_cut(dvti_cv *p) {
    p->tall = DVTI_MIN(p->h, dvti_cv_tall(p, p->rows));
    p->copy = dvti_cv_apart((p->tall * p->images - 1) * p->ow + p->padding[1] +
                            (p->ow + 15) / 16 * 16); /* the last row's zeros are its own */
    p->plane = p->kw * p->copy;
    p->result_row = dvti_cv_apart(p->rows * p->images * p->ow);
}

/* The channels out are cut where blocks are too few for many threads. Where they are enough, a task takes all, and fills a strip once. */
DVTI_FN void dvti_cv_bare_share(dvti_cv *p, int64_t threads) {
    const int64_t blocks = p->image_blocks * p->row_blocks;
    if (p->groups > 1 || (blocks % threads && blocks < 4 * threads))
        return;
    p->outs = p->most_outs;
    p->out_blocks = (p->og + p->outs - 1) / p->outs;
    p->tasks = blocks * p->out_blocks;
}

/* [channel out][piece of the channels in][row and column of the kernel][channel in] */
DVTI_FN void dvti_cv_bare_weights(void *user, int64_t begin, int64_t end) {
    const dvti_cv *p = (const dvti_cv *)user;
    const float *w = (const float *)p->launch->in[1].data, *from;
    const int64_t step = p->turned ? p->og * p->kernel : p->kernel;
    int64_t o, channel, channels;
    for (o = begin; o < end; o++) {
        from =
            w + (p->turned ? (o / p->og * p->taps * p->og) + o % p->og * p->kernel : o * p->taps);
        for (channel = 0; channel < p->cg; channel += channels) {
            float *to = (float *)(uintptr_t)p->weight + o * p->taps + channel * p->kernel;
            channels = DVTI_MIN(p->ins, p->cg - channel);
            p->by->turn_exactly(p->turned ? to + (p->kernel - 1) * channels : to,
                                p->turned ? -channels : channels, from + channel * step, step,
                                p->kernel, channels);
        }
    }
}

/* Rows of the picture from `top` on, up to before the returned one, are what a block's windows see. */
static int64_t dvti_cv_bare_rows(const dvti_cv *p, const dvti_cv_block *block, int64_t *top) {
    const int64_t from = block->row - p->padding[0];
    *top = DVTI_MIN(DVTI_MAX(from, 0), p->h);
    return DVTI_MAX(DVTI_MIN(from + block->rows + (p->kh - 1) * p->dilation[0], p->h), *top);
}

/* What a row's copy writes behind it is zeros, over what has zeros there or comes later in the same copy. */
static void dvti_cv_bare_enter(const dvti_cv *p, const dvti_cv_block *block, int64_t channel,
                               int64_t channels, const int64_t *rows, float *strip) {
    const float *x = (const float *)p->launch->in[0].data;
    int64_t i, j, top, end = dvti_cv_bare_rows(p, block, &top);
    x += (block->image * p->c + channel) * p->h * p->w + top * p->w;
    for (i = 0; i < channels; i++)
        for (j = 0; j < p->kw; j++) {
            const int64_t left = j * p->dilation[1] - p->padding[1], first = DVTI_MAX(-left, 0);
            const int64_t count = DVTI_MIN(p->ow, p->w - left) - first;
            if (count > 0)
                p->kernels->gather(strip + (j * p->ins + i) * p->copy + first, p->ow,
                                   x + i * p->h * p->w + left + first, rows,
                                   (end - top) * block->images, count);
        }
}

/* Adds a piece of the channels to the sums q.c: rows of windows that see the same rows of the kernel are one product. */
static void dvti_cv_bare_add(const dvti_cv *p, const dvti_cv_block *block, int64_t channels,
                             const float *strip, const dvti_product *of) {
    const int64_t line = block->images * p->ow, each = channels * p->kw;
    const int64_t all = block->row + block->rows;
    int64_t r, next, top, first, end, others[2];
    dvti_product q = *of;
    dvti_cv_bare_rows(p, block, &top);
    for (r = block->row; r < all; r = next) {
        dvti_cv_bare_seen(p, r, &first, &end);
        for (next = r + 1; next < all; next++) {
            dvti_cv_bare_seen(p, next, &others[0], &others[1]);
            if (others[0] != first || others[1] != end)
                break;
        }
        if (first == end)
            continue;
        q.cols = (next - r) * line;
        q.depth = (end - first) * each;
        q.a = (const float *)of->a + first * each;
        q.b = strip + (r + first * p->dilation[0] - p->padding[0] - top) * line;
        q.c = (float *)of->c + (r - block->row) * line;
        p->by->multiply(&q);
    }
}

/* Where taps look, as [row and column of the kernel][channel in]. */
static void dvti_cv_bare_table(const dvti_cv *p, int64_t line, int64_t channels, int64_t *at) {
    int64_t i, j, k;
    for (i = 0; i < p->kh; i++)
        for (j = 0; j < p->kw; j++)
            for (k = 0; k < channels; k++)
                *at++ = i * p->dilation[0] * line + (j * p->ins + k) * p->copy;
}

DVTI_FN void dvti_cv_forward_bare(const dvti_cv *p, const dvti_cv_block *block, int64_t group,
                                  int64_t o, int64_t outs, void *area) {
    const int64_t line = block->images * p->ow;
    const float *weight = p->weight + o * p->taps;
    float *y = (float *)p->launch->out[0].data + dvti_cv_pixel(p, block, o, 0);
    float *strip = (float *)area, *sums = dvti_cv_floats(area, p->sums_at);
    int64_t *rows = (int64_t *)(void *)dvti_cv_floats(area, p->panel_at);
    int64_t *at = rows + p->tall * p->images;
    int64_t channel, channels, before = 0, image, i;
    dvti_product q;
    for (i = 0; i < p->tall * block->images; i++)
        rows[i] = i / block->images * p->w + i % block->images * p->c * p->h * p->w;
    memset(strip, 0, (size_t)(p->ins * p->plane) * sizeof *strip);
    memset(&q, 0, sizeof q);
    q.rows = outs;
    q.cols = block->columns;
    q.a_row = p->taps;
    q.a_k = 1;
    q.b = strip;
    q.b_k = at;
    q.b_panel = p->by->width;
    q.c = p->images == 1 ? y : sums;
    q.c_row = p->images == 1 ? p->pixels : p->result_row;
    q.start = p->bias ? p->bias + o : &dvti_cv_none;
    q.start_row = p->bias ? 1 : 0;
    p->by->multiply(&q);
    q.start = NULL;
    for (channel = 0; channel < p->cg; channel += channels, before = channels) {
        channels = DVTI_MIN(p->ins, p->cg - channel);
        if (channels != before)
            dvti_cv_bare_table(p, line, channels, at);
        dvti_cv_bare_enter(p, block, group * p->cg + channel, channels, rows, strip);
        q.a = weight + channel * p->kernel;
        dvti_cv_bare_add(p, block, channels, strip, &q);
    }
    for (image = 0; p->images > 1 && image < block->images; image++)
        for (i = 0; i < outs; i++)
            p->kernels->put(y + (image * p->o + i) * p->pixels, p->ow,
                            sums + i * p->result_row + image * p->ow, line, block->rows, p->ow);
}

#undef DVTI_CV_DEEP
#undef DVTI_CV_VAIN
