/* The padded input tile of a convolution (cpu_conv.h): its geometry, loading images to tiles, and
   storing tiles to images. */
#include "3_cpu/cpu_conv.h"

DVTI_FN int64_t dvti_conv_tile_rows(const dvti_conv *p, int64_t rows) {
    return ((rows - 1) * p->stride[0] + (p->kh - 1) * p->dilation[0]) / p->tile.hop + 1;
}

/* Sets the geometry of the tile. A row with a stride of 3, if taps read every column (phases =
   3), and if all taps are multiples of 3 apart (phases = 1):

     columns of the padded image   0 3 6 9 .. | 1 4 7 10 .. | 2 5 8 11 ..      0 3 6 9 ..
                                   <- phase ->                                 <- phase ->
                                   <--------------- pitch ---------------->    <- pitch ->

   Rows that no tap reads are left out likewise (hop). NHWC tiles keep all rows and columns. */
DVTI_FN void dvti_conv_tile_shape(dvti_conv *p) {
    const int64_t *stride = p->stride;
    const int64_t reach = (p->ow - 1) * stride[1] + (p->kw - 1) * p->dilation[1] + 1;
    const bool unpadded = !p->padding[0] && !p->padding[1],
               nhwc = p->algorithm == DVTI_CONV_NHWC_WEIGHTS;
    const bool forth = p->op != DVTI_OP_conv2d_data && p->algorithm != DVTI_CONV_POINTWISE;
    dvti_conv_tile *tile = &p->tile;
    tile->in_place = p->size == p->element && unpadded && !nhwc &&
                     (forth ? stride[1] == 1 || p->ow == 1 : stride[0] == 1 && stride[1] == 1);
    tile->phases = p->kw == 1 || p->dilation[1] % stride[1] == 0 ? 1 : stride[1];
    tile->phase = dvti_conv_cuts(reach, stride[1]);
    tile->pitch = tile->in_place ? p->w : nhwc ? reach : tile->phases * tile->phase;
    tile->hop =
        (p->kh == 1 || p->dilation[0] % stride[0] == 0) && !tile->in_place && !nhwc ? stride[0] : 1;
    tile->row_step = stride[0] / tile->hop;
}

/* Returns the offset in a tile row of the element that the first window reads through kernel column
   j. */
static int64_t dvti_conv_column(const dvti_conv *p, int64_t j) {
    int64_t column = j * p->dilation[1], stride = p->tile.in_place ? 1 : p->stride[1];
    return column % stride * p->tile.phase + column / stride;
}

DVTI_FN void dvti_conv_tile_table(const dvti_conv *p, int64_t *at) {
    const dvti_conv_tile *tile = &p->tile;
    int64_t channel, i, j, k = 0;
    for (channel = 0; channel < p->cg; channel++)
        for (i = 0; i < p->kh; i++)
            for (j = 0; j < p->kw; j++) {
                const int64_t row = i * p->dilation[0] / tile->hop, rest = row % tile->row_step;
                const int64_t copy = (j * tile->row_step + rest) * tile->copy_rows;
                at[k++] = channel * tile->plane +
                          (tile->copy_rows ? (copy + row / tile->row_step) * p->ow
                                           : row * tile->pitch + dvti_conv_column(p, j));
            }
    for (i = 0; i < tile->copy_rows; i++)
        at[k++] = i * tile->row_step * tile->pitch;
}

/* ---- blocks ---- */
DVTI_FN dvti_conv_block dvti_conv_block_of(const dvti_conv *p, int64_t first, int64_t end,
                                           int64_t i) {
    dvti_conv_block block;
    block.image = first + i / p->row_blocks * p->images;
    block.images = DVTI_MIN(p->images, end - block.image);
    block.row = i % p->row_blocks * p->rows;
    block.rows = DVTI_MIN(p->rows, p->oh - block.row);
    block.columns = block.images * block.rows * p->ow;
    block.tile = NULL;
    block.image_step = 0;
    return block;
}

DVTI_FN int64_t dvti_conv_pixel(const dvti_conv *p, const dvti_conv_block *block, int64_t o,
                                int64_t column) {
    int64_t each = block->rows * p->ow, image = block->image + column / each;
    return (image * p->o + o) * p->pixels + block->row * p->ow + column % each;
}

DVTI_FN int64_t dvti_conv_run(const dvti_conv *p, const dvti_conv_block *block, int64_t column,
                              int64_t most, int64_t *start) {
    const int64_t step = p->tile.row_step * p->tile.pitch;
    /* Rows without gaps between them are joined to one. */
    const bool joined = step == p->ow;
    const int64_t length = joined ? block->rows * p->ow : p->ow, rows = joined ? 1 : block->rows;
    const int64_t row = column / length;
    column %= length;
    *start = row / rows * block->image_step + row % rows * step + column;
    return DVTI_MIN(length - column, most);
}

DVTI_FN dvti_conv_plane dvti_conv_plane_of(const dvti_conv *p, const dvti_conv_block *block) {
    dvti_conv_plane plane;
    plane.src = (const float *)(void *)block->tile;
    plane.src_row = p->tile.row_step * p->tile.pitch;
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

/* ---- loading images to tiles ---- */
/* Finds the elements of one phase of a tile row that lie in the image. Element q is column q *
   stride + phase - padding. */
static void dvti_conv_inside(const dvti_conv *p, int64_t phase, int64_t *first, int64_t *count) {
    int64_t stride = p->stride[1], left = p->padding[1] - phase, end = p->w + left;
    *first = left > 0 ? (left + stride - 1) / stride : 0;
    end = DVTI_MIN(end > 0 ? (end + stride - 1) / stride : 0, p->tile.phase);
    *count = DVTI_MAX(end - *first, 0);
}

/* Finds the tile rows *first..*end - 1 that lie in the image. Row 0 of the tile is row `top` of the
   image. Returns whether there are any. */
static bool dvti_conv_rows_inside(const dvti_conv *p, int64_t top, int64_t *first, int64_t *end) {
    const int64_t hop = p->tile.hop;
    *first = top < 0 ? dvti_conv_cuts(-top, hop) : 0;
    *end = top < p->h ? DVTI_MIN(dvti_conv_cuts(p->h - top, hop), p->tile.rows) : 0;
    return *first < *end;
}

static void dvti_conv_load_plane(const dvti_conv *p, char *plane, const char *image, int64_t top) {
    const int64_t pitch = p->tile.pitch, hop = p->tile.hop;
    int64_t first, end, row, phase, q, count;
    if (!dvti_conv_rows_inside(p, top, &first, &end))
        return;
    if (p->stride[1] == 1) {
        dvti_conv_inside(p, 0, &q, &count);
        if (count > 0)
            p->gemm->copy(dvti_conv_at(p, plane, first * pitch + q), pitch,
                          image + (top + first * hop) * p->w * p->size, p->dtype, hop * p->w,
                          end - first, count);
        return;
    }
    for (phase = 0; phase < p->tile.phases; phase++) {
        dvti_conv_inside(p, phase, &q, &count);
        for (row = first; count > 0 && row < end; row++) {
            const char *from =
                image +
                ((top + row * hop) * p->w + q * p->stride[1] + phase - p->padding[1]) * p->size;
            void *to = dvti_conv_at(p, plane, row * pitch + phase * p->tile.phase + q);
            if (p->dtype == DVT_F64)
                dvti_load_row_f64(from, p->dtype, p->stride[1], count, (double *)to);
            else
                dvti_load_row_f32(from, p->dtype, p->stride[1], count, (float *)to);
        }
    }
}

/* Makes the shifted copies of a channel from its tile. The store of a row may overwrite the start
   of the next ones, which are stored later. */
static void dvti_conv_shift(const dvti_conv *p, int64_t rows, const float *plain, float *to) {
    const dvti_conv_tile *tile = &p->tile;
    int64_t j, rest;
    for (j = 0; j < p->kw; j++)
        for (rest = 0; rest < tile->row_step; rest++, to += tile->copy_rows * p->ow)
            if (rows > rest)
                p->kernels->gather(to, p->ow, plain + rest * tile->pitch + dvti_conv_column(p, j),
                                   tile->copy_row, dvti_conv_cuts(rows - rest, tile->row_step),
                                   p->ow);
}

static void dvti_conv_load_shifted(const dvti_conv *p, const dvti_conv_block *block,
                                   int64_t channel, int64_t channels, float *memory) {
    const int64_t top = block->row * p->stride[0] - p->padding[0], image_size = p->h * p->w;
    const int64_t rows = dvti_conv_tile_rows(p, block->rows);
    const float *x = (const float *)p->launch->in[0].data, *from;
    float *plain = memory + p->images * p->ins * p->tile.plane + DVTI_CONV_SLACK;
    int64_t image, i;
    if (!p->tile.in_place)
        memset(plain, 0, (size_t)p->tile.scratch * sizeof *plain);
    for (image = 0; image < block->images; image++)
        for (i = 0; i < channels; i++, memory += p->tile.plane) {
            from = x + ((block->image + image) * p->c + channel + i) * image_size;
            if (!p->tile.in_place)
                dvti_conv_load_plane(p, (char *)plain, (const char *)from, top);
            dvti_conv_shift(p, rows, p->tile.in_place ? from + top * p->w : plain, memory);
        }
}

/* Transposes some channels to [image][row][column][channel]; padding is zero. */
static void dvti_conv_load_nhwc(const dvti_conv *p, const dvti_conv_block *block, int64_t channel,
                                int64_t channels, float *memory) {
    const float *x = (const float *)p->launch->in[0].data;
    const int64_t top = block->row * p->stride[0] - p->padding[0], left = p->padding[1];
    const int64_t pitch = p->tile.pitch, count = DVTI_MIN(p->w, pitch - left);
    int64_t image, first, end, row, rows;
    memset(memory, 0, (size_t)(block->images * block->image_step) * sizeof *memory);
    if (count <= 0 || !dvti_conv_rows_inside(p, top, &first, &end))
        return;
    rows = count == pitch && count == p->w ? end - first : 1; /* without gaps */
    for (image = 0; image < block->images; image++)
        for (row = first; row < end; row += rows)
            p->gemm->transpose_exactly(
                memory + image * block->image_step + (row * pitch + left) * channels, channels,
                x + (((block->image + image) * p->c + channel) * p->h + top + row) * p->w,
                p->h * p->w, rows * count, channels);
}

DVTI_FN void dvti_conv_tile_load(const dvti_conv *p, dvti_conv_block *block, int64_t channel,
                                 int64_t channels, char *memory) {
    const char *x = (const char *)p->launch->in[0].data;
    const int64_t top = block->row * p->stride[0] - p->padding[0];
    int64_t image, i;
    block->image_step = channels * p->tile.plane;
    block->tile = memory;
    if (p->tile.copy_rows) {
        dvti_conv_load_shifted(p, block, channel, channels, (float *)(void *)memory);
        return;
    }
    if (p->algorithm == DVTI_CONV_NHWC_WEIGHTS) {
        dvti_conv_load_nhwc(p, block, channel, channels, (float *)(void *)memory);
        return;
    }
    if (p->tile.in_place) {
        block->image_step = p->c * p->tile.plane;
        block->tile = dvti_conv_at(
            p, x, block->image * block->image_step + channel * p->tile.plane + top * p->tile.pitch);
        return;
    }
    memset(memory, 0, (size_t)((block->images * block->image_step + DVTI_CONV_SLACK) * p->element));
    for (image = 0; image < block->images; image++)
        for (i = 0; i < channels; i++)
            dvti_conv_load_plane(
                p, dvti_conv_at(p, memory, image * block->image_step + i * p->tile.plane),
                x + ((block->image + image) * p->c + channel + i) * p->h * p->w * p->size, top);
}

/* ---- storing tiles to images ---- */
static void dvti_conv_store_plane(const dvti_conv *p, const char *plane, char *image) {
    const int64_t hop = p->tile.hop;
    int64_t first, end, row, phase, q, count;
    memset(image, 0, (size_t)(p->h * p->w * p->size));
    if (!dvti_conv_rows_inside(p, -p->padding[0], &first, &end))
        return;
    for (phase = 0; phase < p->tile.phases; phase++) {
        dvti_conv_inside(p, phase, &q, &count);
        for (row = first; count > 0 && row < end; row++) {
            char *to = image + ((row * hop - p->padding[0]) * p->w + q * p->stride[1] + phase -
                                p->padding[1]) *
                                   p->size;
            const void *from =
                dvti_conv_at(p, plane, row * p->tile.pitch + phase * p->tile.phase + q);
            if (p->dtype == DVT_F64)
                dvti_store_row_f64(to, p->dtype, p->stride[1], count, (const double *)from);
            else
                dvti_store_row_f32(to, p->dtype, p->stride[1], count, (const float *)from);
        }
    }
}

DVTI_FN void dvti_conv_tile_store(const dvti_conv *p, const dvti_conv_block *block, int64_t channel,
                                  int64_t channels) {
    char *dx = (char *)p->launch->out[0].data;
    int64_t i;
    for (i = 0; i < channels; i++)
        dvti_conv_store_plane(p, dvti_conv_at(p, block->tile, i * p->tile.plane),
                              dx + (block->image * p->c + channel + i) * p->h * p->w * p->size);
}
