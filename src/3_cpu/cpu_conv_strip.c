/* Strips (cpu_conv.h): their geometry, and how pictures get into them and out of them. */
#include "3_cpu/cpu_conv.h"

/* Where a strip's row has what the first window sees through the kernel's column j. */
static int64_t dvti_cv_column(const dvti_cv *p, int64_t j) {
    int64_t column = j * p->dilation[1], stride = p->in_place ? 1 : p->stride[1];
    return column % stride * p->wide + column / stride;
}

DVTI_FN void dvti_cv_table(const dvti_cv *p, int64_t *at) {
    int64_t channel, i, j, k = 0;
    if (p->bare)
        return;
    for (channel = 0; channel < p->cg; channel++)
        for (i = 0; i < p->kh; i++)
            for (j = 0; j < p->kw; j++) {
                int64_t row = i * p->dilation[0] / p->hop, rest = row % p->row_step;
                at[k++] =
                    channel * p->plane +
                    (p->spread ? ((j * p->row_step + rest) * p->narrow + row / p->row_step) * p->ow
                               : row * p->pitch + dvti_cv_column(p, j));
            }
    for (i = 0; p->spread && i < p->narrow; i++)
        at[k++] = i * p->row_step * p->pitch;
}

DVTI_FN dvti_cv_block dvti_cv_block_of(const dvti_cv *p, int64_t first, int64_t end, int64_t i) {
    dvti_cv_block block;
    block.image = first + i / p->row_blocks * p->images;
    block.images = DVTI_MIN(p->images, end - block.image);
    block.row = i % p->row_blocks * p->rows;
    block.rows = DVTI_MIN(p->rows, p->oh - block.row);
    block.columns = block.images * block.rows * p->ow;
    block.strip = NULL;
    block.image_step = 0;
    return block;
}

/* The elements of a strip's row that are in the picture, in one phase. Element q is column q * stride + phase - padding. */
static void dvti_cv_inside(const dvti_cv *p, int64_t phase, int64_t *first, int64_t *count) {
    int64_t stride = p->stride[1], left = p->padding[1] - phase, end = p->w + left;
    *first = left > 0 ? (left + stride - 1) / stride : 0;
    end = DVTI_MIN(end > 0 ? (end + stride - 1) / stride : 0, p->wide);
    *count = DVTI_MAX(end - *first, 0);
}

/* The rows of a strip that are in the picture: from `first` to before `end`. Row 0 is the picture's row `top`. */
static int64_t dvti_cv_rows_inside(const dvti_cv *p, int64_t top, int64_t *first, int64_t *end) {
    *first = top < 0 ? (-top + p->hop - 1) / p->hop : 0;
    *end = top < p->h ? DVTI_MIN((p->h - top + p->hop - 1) / p->hop, p->tall) : 0;
    return *first < *end;
}

static void dvti_cv_load(const dvti_cv *p, float *plane, const char *picture, int64_t top) {
    int64_t first, end, row, phase, q, count;
    if (!dvti_cv_rows_inside(p, top, &first, &end))
        return;
    if (p->stride[1] == 1) {
        dvti_cv_inside(p, 0, &q, &count);
        if (count > 0)
            p->by->copy(plane + first * p->pitch + q, p->pitch,
                        picture + (top + first * p->hop) * p->w * p->size, p->dtype, p->hop * p->w,
                        end - first, count);
        return;
    }
    for (phase = 0; phase < p->phases; phase++) {
        dvti_cv_inside(p, phase, &q, &count);
        for (row = first; count > 0 && row < end; row++)
            dvti_load_row_f32(
                picture + ((top + row * p->hop) * p->w + q * p->stride[1] + phase - p->padding[1]) *
                              p->size,
                p->dtype, p->stride[1], count, plane + row * p->pitch + phase * p->wide + q);
    }
}

/* A channel's copies, from its strip. Each row's store may reach into those that follow, which are stored later. */
static void dvti_cv_spread(const dvti_cv *p, int64_t tall, const float *strip, float *to) {
    int64_t j, rest;
    for (j = 0; j < p->kw; j++)
        for (rest = 0; rest < p->row_step; rest++, to += p->narrow * p->ow)
            if (tall > rest)
                p->kernels->gather(to, p->ow, strip + rest * p->pitch + dvti_cv_column(p, j),
                                   p->row_at, (tall - rest + p->row_step - 1) / p->row_step, p->ow);
}

static void dvti_cv_enter_spread(const dvti_cv *p, dvti_cv_block *block, int64_t channel,
                                 int64_t channels, float *memory) {
    const int64_t top = block->row * p->stride[0] - p->padding[0];
    const int64_t tall = dvti_cv_tall(p, block->rows), picture = p->h * p->w;
    const float *x = (const float *)p->launch->in[0].data, *from;
    float *strip = memory + p->images * p->ins * p->plane + DVTI_CONV_SLACK;
    int64_t image, i;
    block->image_step = channels * p->plane;
    block->strip = memory;
    if (!p->in_place)
        memset(strip, 0, (size_t)p->channel_size * sizeof *strip);
    for (image = 0; image < block->images; image++)
        for (i = 0; i < channels; i++, memory += p->plane) {
            from = x + ((block->image + image) * p->c + channel + i) * picture;
            if (!p->in_place)
                dvti_cv_load(p, strip, (const char *)from, top);
            dvti_cv_spread(p, tall, p->in_place ? from + top * p->w : strip, memory);
        }
}

/* [picture][row][column][channel] */
static void dvti_cv_enter_mixed(const dvti_cv *p, dvti_cv_block *block, int64_t channel,
                                int64_t channels, float *memory) {
    const float *x = (const float *)p->launch->in[0].data;
    const int64_t top = block->row * p->stride[0] - p->padding[0], left = p->padding[1];
    const int64_t count = DVTI_MIN(p->w, p->pitch - left);
    int64_t image, first, end, row, rows;
    block->image_step = channels * p->plane;
    block->strip = memory;
    memset(memory, 0, (size_t)(block->images * block->image_step) * sizeof *memory);
    if (count <= 0 || !dvti_cv_rows_inside(p, top, &first, &end))
        return;
    rows = count == p->pitch && count == p->w ? end - first : 1; /* without gaps */
    for (image = 0; image < block->images; image++)
        for (row = first; row < end; row += rows)
            p->by->turn_exactly(
                memory + image * block->image_step + (row * p->pitch + left) * channels, channels,
                x + (((block->image + image) * p->c + channel) * p->h + top + row) * p->w,
                p->h * p->w, rows * count, channels);
}

DVTI_FN void dvti_cv_enter(const dvti_cv *p, dvti_cv_block *block, int64_t channel,
                           int64_t channels, float *memory) {
    const char *x = (const char *)p->launch->in[0].data;
    int64_t top = block->row * p->stride[0] - p->padding[0], image, i;
    if (p->spread) {
        dvti_cv_enter_spread(p, block, channel, channels, memory);
        return;
    }
    if (p->mixed) {
        dvti_cv_enter_mixed(p, block, channel, channels, memory);
        return;
    }
    if (p->in_place) {
        block->image_step = p->c * p->plane;
        block->strip = (float *)(void *)(uintptr_t)(const void *)x +
                       block->image * block->image_step + channel * p->plane + top * p->pitch;
        return;
    }
    block->image_step = channels * p->plane;
    block->strip = memory;
    memset(memory, 0,
           (size_t)(block->images * block->image_step + DVTI_CONV_SLACK) * sizeof *memory);
    for (image = 0; image < block->images; image++)
        for (i = 0; i < channels; i++)
            dvti_cv_load(p, memory + image * block->image_step + i * p->plane,
                         x + ((block->image + image) * p->c + channel + i) * p->h * p->w * p->size,
                         top);
}

static void dvti_cv_store(const dvti_cv *p, const float *plane, char *picture) {
    int64_t first, end, row, phase, q, count;
    memset(picture, 0, (size_t)(p->h * p->w * p->size));
    if (!dvti_cv_rows_inside(p, -p->padding[0], &first, &end))
        return;
    for (phase = 0; phase < p->phases; phase++) {
        dvti_cv_inside(p, phase, &q, &count);
        for (row = first; count > 0 && row < end; row++)
            dvti_store_row_f32(picture + ((row * p->hop - p->padding[0]) * p->w + q * p->stride[1] +
                                          phase - p->padding[1]) *
                                             p->size,
                               p->dtype, p->stride[1], count,
                               plane + row * p->pitch + phase * p->wide + q);
    }
}

DVTI_FN void dvti_cv_leave(const dvti_cv *p, const dvti_cv_block *block, int64_t channel,
                           int64_t channels) {
    char *dx = (char *)p->launch->out[0].data;
    int64_t i;
    for (i = 0; i < channels; i++)
        dvti_cv_store(p, block->strip + i * p->plane,
                      dx + (block->image * p->c + channel + i) * p->h * p->w * p->size);
}

DVTI_FN dvti_cv_run dvti_cv_run_at(const dvti_cv *p, const dvti_cv_block *block, int64_t column,
                                   int64_t most) {
    /* Rows that follow each other without a gap are one. */
    bool whole = p->pitch == p->ow && p->row_step == 1;
    int64_t length = whole ? block->rows * p->ow : p->ow, rows = whole ? 1 : block->rows;
    int64_t row = column / length;
    dvti_cv_run run;
    column %= length;
    run.image = row / rows;
    run.start = run.image * block->image_step + row % rows * p->row_step * p->pitch + column;
    run.count = DVTI_MIN(length - column, most);
    return run;
}
