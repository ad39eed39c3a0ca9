/* Matrix products by the kernels of an ISA target (dvt_simd_gemm.h): what is packed, and how the
   work is cut into tasks. Factors are read in place, in any layout, unless reading them repeatedly
   costs more than packing. Block sizes follow from the caches (cpu_gemm_blocks.c). None of these
   choices changes a bit of a result, but one: products with dot products (DVTI_MM_DOTS) sum in
   another order.

       C (n, m)          task: a tile         step along k: C += A' B'
     +-----+-----+       +----------+         A' (rows, depth), a block of rows at a time
     |     |     |       |          |         B' (depth, cols) in panels of `width` columns, packed
     +-----+-----+       |          |            when the first block needs them; then in L1 or L2
     |     |     |       +----------+
     +-----+-----+

   Bytes are multiplied by the float kernels too. A float holds every integer up to 2^24, which
   limits the depth of a step; between steps the sums are int32, where they wrap as the oracle's do
   in int64. */
#include "3_cpu/cpu_matmul.h"

/* The depth at which a float still holds the sums of bytes: products of at most 255 * 128 with a
   signed factor, else of 255 * 255. */
#define DVTI_MM_SIGNED_DEPTH 512
#define DVTI_MM_UNSIGNED_DEPTH 256
/* Tiles of a result that is converted at the end. */
#define DVTI_MM_NARROW_ROWS 192
#define DVTI_MM_NARROW_COLS 256
/* Up to this many rows, packing B again for each tile of rows costs 2 % or more. */
#define DVTI_MM_REPEATED 256
#define DVTI_MM_TASK 65536.0 /* multiply-adds of a task: about 1 us */
#define DVTI_MM_CHUNK 4096   /* elements of a vector result that one task computes */

static int64_t dvti_mm_cuts(int64_t n, int64_t piece) {
    return (n + piece - 1) / piece;
}

static double dvti_mm_macs(const dvti_mm *p) {
    return (double)p->batch * (double)p->n * (double)p->m * (double)p->k;
}

/* ---- the plan ---- */
static void dvti_mm_shape(dvti_mm *p, const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    int last = out->ndim - 1, i;
    p->launch = launch;
    p->swapped = false;
    p->n = out->dim[last - 1];
    p->m = out->dim[last];
    p->k = a->dim[last];
    p->a_row = a->stride[last - 1];
    p->a_k = p->k == 1 ? 1 : a->stride[last];
    p->b_k = b->stride[last - 1];
    p->b_col = p->m == 1 ? 1 : b->stride[last];
    p->batch = 1;
    for (i = 0; i < last - 1; i++)
        p->batch *= out->dim[i];
    if (p->batch > 1 && dvti_matmul_is_tall(a, b)) {
        p->n *= p->batch;
        p->batch = 1;
    }
    p->size = out->dtype == DVT_F64 ? 8 : 4;
    p->narrow = out->dtype != DVT_F64 && out->dtype != DVT_F32;
    p->int32 = !dvt_dtype_is_float(out->dtype);
}

/* Describes the product as two matrices of floats; false when it is not that. */
static bool dvti_mm_matrices(const dvti_mm *p, dvti_matrices *q) {
    if (p->batch != 1 || p->narrow)
        return false;
    q->dtype = p->launch->out[0].dtype;
    q->a = p->launch->in[0].data;
    q->b = p->launch->in[1].data;
    q->c = p->launch->out[0].data;
    q->n = p->n;
    q->m = p->m;
    q->k = p->k;
    q->a_row = p->a_row;
    q->a_k = p->a_k;
    q->b_k = p->b_k;
    q->b_col = p->b_col;
    return true;
}

static int64_t dvti_mm_transposed_chunk(const dvti_mm *p) {
    dvti_matrices q;
    return dvti_mm_matrices(p, &q) ? dvti_mm_transposed_rows(&q) : 0;
}

/* Returns whether few rows or columns, which fill vectors badly, meet factors that are both
   contiguous in k. The order of sums depends on this, so it must not depend on the number of
   threads. */
static bool dvti_mm_is_narrow(const dvti_mm *p) {
    const int64_t few = DVTI_MIN(p->n, p->m);
    return few <= DVTI_MM_NARROW && few % 8 != 0 && p->a_k == 1 && p->b_k == 1 && !p->narrow &&
           p->k >= DVTI_MM_NARROW_DEPTH && p->n * p->m * p->k >= DVTI_MM_SMALL_MACS;
}

/* The factors of the product that is computed. */
static const dvti_view *dvti_mm_a(const dvti_mm *p) {
    return &p->launch->in[p->swapped];
}

static const dvti_view *dvti_mm_b(const dvti_mm *p) {
    return &p->launch->in[!p->swapped];
}

/* Returns the distance of rows of a tile of the transposed C, which is not a power of two. */
static int64_t dvti_mm_swapped_row(int64_t cols) {
    return dvti_mm_up(cols, 16) + 16;
}

/* Chooses the kernel. With one row or column the other factor is read once, so memory decides. */
static dvti_mm_kind dvti_mm_choose(const dvti_mm *p) {
    bool row = p->n == 1;
    int64_t x_k = row ? p->a_k : p->b_k, w_k = row ? p->b_k : p->a_k;
    int64_t w_next = row ? p->b_col : p->a_row;
    if (dvti_mm_is_narrow(p))
        return DVTI_MM_DOTS;
    if (dvti_mm_transposed_chunk(p) && p->m > 1)
        return DVTI_MM_TRANSPOSED;
    if (p->narrow || (p->n != 1 && p->m != 1))
        return DVTI_MM_TILES;
    if (x_k == 1 && w_k == 1)
        return DVTI_MM_DOTS;
    return w_next == 1 ? DVTI_MM_COMBINE : DVTI_MM_TILES;
}

/* Returns the work of packing a factor again for as many tiles. Transposing takes twice the time of
   copying. */
static int64_t dvti_mm_repeated(bool packed, int64_t step, int64_t side, int64_t tiles) {
    return packed ? (step == 1 ? 1 : 2) * side * tiles : 0;
}

/* Cuts tiles in two until each thread has two: along rows if packing A again would take longer than
   packing B again, else along panels if the parts are equal. Few rows with a packed B get one tile
   per thread, narrower than a panel if need be: B is packed once. */
static void dvti_mm_cut_tiles(dvti_mm *p, int64_t most, int threads) {
    const int64_t panel = 64, lanes = 64 / p->size;
    p->rows = p->narrow ? DVTI_MIN(p->n, DVTI_MM_NARROW_ROWS) : p->n;
    p->cols = DVTI_MIN(p->m, p->narrow ? DVTI_MM_NARROW_COLS : most);
    while (threads > 1) {
        int64_t panels = dvti_mm_cuts(p->cols, panel);
        int64_t tiles = p->batch * dvti_mm_cuts(p->n, p->rows) * dvti_mm_cuts(p->m, p->cols);
        bool few = p->pack_b && p->rows <= DVTI_MM_REPEATED;
        bool by_rows = p->rows >= 16 * p->simd->tile_rows &&
                       dvti_mm_repeated(p->pack_a, p->a_k, p->n, dvti_mm_cuts(p->m, p->cols)) >
                           dvti_mm_repeated(p->pack_b, p->b_col, p->m, dvti_mm_cuts(p->n, p->rows));
        if (tiles >= (few ? 1 : 2) * threads ||
            (double)p->rows * (double)p->cols * (double)p->k < 2 * DVTI_MM_TASK)
            break;
        if (!by_rows && panels > 1 && (panels % 2 == 0 || panels > 6 || p->rows < 12))
            p->cols = (panels + 1) / 2 * panel;
        else if (!by_rows && few && panels == 1 && p->cols > lanes)
            p->cols = dvti_mm_up((p->cols + 1) / 2, lanes);
        else if (p->rows >= 12)
            p->rows = dvti_mm_up((p->rows + 1) / 2, 2);
        else
            break;
    }
    p->row_tiles = dvti_mm_cuts(p->n, p->rows);
    p->col_tiles = dvti_mm_cuts(p->m, p->cols);
}

/* Cuts along the longer side. Combined rows are cut less often, since reading each row starts anew
   with every part. */
static void dvti_mm_cut_vector(dvti_mm *p, int threads) {
    const int64_t pieces = (int64_t)threads * (p->kind == DVTI_MM_COMBINE ? 2 : 4);
    const bool row = p->n <= p->m;
    const int64_t length = DVTI_MAX(p->n, p->m), few = DVTI_MIN(p->n, p->m);
    const int64_t unit = few == 1 ? 64 : p->kind == DVTI_MM_TRANSPOSED ? 32 : 4;
    int64_t piece = DVTI_MIN(length, p->kind == DVTI_MM_TRANSPOSED ? dvti_mm_transposed_chunk(p)
                                                                   : DVTI_MM_CHUNK);
    while (threads > 1 && piece >= 2 * unit &&
           (few == 1 || piece * few * p->k >= 2 * DVTI_MM_TASK) &&
           p->batch * dvti_mm_cuts(length, piece) < pieces)
        piece = dvti_mm_up(piece / 2, unit);
    p->rows = row ? p->n : piece;
    p->cols = row ? piece : p->m;
    p->row_tiles = dvti_mm_cuts(p->n, p->rows);
    p->col_tiles = dvti_mm_cuts(p->m, p->cols);
}

static void dvti_mm_layout(dvti_mm *p, const dvti_gemm_blocks *blocks) {
    int64_t most = p->narrow ? DVTI_MM_NARROW_COLS : blocks->cols;
    int64_t cols = dvti_mm_up(DVTI_MIN(p->m, most), 64), rows = DVTI_MIN(p->n, DVTI_MM_NARROW_ROWS);
    const dvt_dtype of_a = dvti_mm_a(p)->dtype, of_b = dvti_mm_b(p)->dtype;
    const int64_t exact = !p->int32                          ? DVTI_MM_MOST_DEPTH
                          : of_a == DVT_U8 && of_b == DVT_U8 ? DVTI_MM_UNSIGNED_DEPTH
                                                             : DVTI_MM_SIGNED_DEPTH;
    const int64_t deepest = DVTI_MIN(exact, blocks->depth);
    p->depth = p->k ? dvti_mm_cuts(p->k, dvti_mm_cuts(p->k, deepest)) : 1;
    p->a_ld = dvti_mm_up(p->depth, 16) + 16;
    p->a_at = p->pack_b ? p->depth * cols * p->size : 0;
    p->c_at = p->a_at +
              (p->pack_a ? DVTI_MIN(dvti_mm_up(p->n, 2), p->block_rows) * p->a_ld * p->size : 0);
    p->sums_at = p->c_at + (p->narrow    ? rows * cols * p->size
                            : p->swapped ? p->rows * dvti_mm_swapped_row(p->cols) * p->size
                                         : 0);
    p->area = p->sums_at + (p->int32 ? rows * cols * (int64_t)sizeof(uint32_t) : 0);
}

/* Returns whether C is stored with non-temporal stores: it fits in no cache, is stored once, and
   reading its memory first would take longer than a few multiply-adds. */
static bool dvti_mm_is_streamed(const dvti_mm *p) {
    const dvti_launch *launch = p->launch;
    return !p->narrow && p->k <= p->depth &&
           p->batch * p->n * p->m * p->size >= dvti_stream_bytes() && p->m * p->size % 64 == 0 &&
           (uintptr_t)launch->out[0].data % 64 == 0 && !launch->epilogue.bias.data &&
           !launch->epilogue.activation;
}

static void dvti_mm_plan_tiles(dvti_mm *p, int threads) {
    const dvti_gemm_blocks blocks = dvti_gemm_blocks_now(p->simd, p->size);
    double each;
    p->kind = dvti_mm_choose(p);
    if (p->kind == DVTI_MM_TILES) {
        p->block_rows = blocks.rows;
        dvti_mm_choose_packing(p, &blocks);
        dvti_mm_cut_tiles(p, blocks.cols, threads);
        dvti_mm_layout(p, &blocks);
        p->stream = dvti_mm_is_streamed(p);
    } else {
        dvti_mm_cut_vector(p, threads);
        p->area = 0;
        p->stream = false;
    }
    each = (double)p->rows * (double)p->cols * (double)DVTI_MAX(p->k, 1);
    p->per_task = DVTI_MAX(1, DVTI_MIN((int64_t)(DVTI_MM_TASK / each), p->batch));
    p->tasks = p->row_tiles * p->col_tiles * dvti_mm_cuts(p->batch, p->per_task);
    p->areas = dvti_task_areas(p->tasks, dvti_mm_macs(p), threads);
}

/* ---- a tile ---- */
DVTI_FN int64_t dvti_mm_offset(const dvti_view *out, const dvti_view *in, int64_t batch) {
    int64_t offset = 0;
    int i;
    for (i = out->ndim - 3; i >= 0 && batch; i--) {
        offset += batch % out->dim[i] * in->stride[i];
        batch /= out->dim[i];
    }
    return offset;
}

static const char *dvti_mm_at(const dvti_view *view, int64_t element) {
    return (const char *)view->data + element * dvt_dtype_size(view->dtype);
}

/* Packs: dst[r * ld + c] = src[r * row + c * col]. */
static void dvti_mm_pack(const dvti_mm *p, char *dst, int64_t ld, const char *src, dvt_dtype from,
                         int64_t row, int64_t col, int64_t rows, int64_t cols) {
    int64_t r;
    if (col == 1)
        p->by->copy(dst, ld, src, from, row, rows, cols);
    else if (row == 1)
        p->by->transpose(dst, ld, src, from, col, rows, cols);
    else
        for (r = 0; r < rows; r++) {
            char *to = dst + r * ld * p->size;
            const char *at = src + r * row * dvt_dtype_size(from);
            memset(to, 0, (size_t)(dvti_mm_up(cols * p->size, 64)));
            if (from == DVT_F64)
                dvti_load_row_f64(at, from, col, cols, (double *)(void *)to);
            else
                dvti_load_row_f32(at, from, col, cols, (float *)(void *)to);
        }
}

typedef struct dvti_mm_tile {
    int64_t rows, cols;
    const char *a, *b; /* where the tile's rows and columns start, at k = 0 */
    char *c;
    int64_t c_row;
    char *area;
    int64_t b_k[DVTI_MM_MOST_DEPTH]; /* of dvti_product */
} dvti_mm_tile;

/* Multiplies some rows of A with one panel of B. The first rows pack the panel, if possible while
   they multiply: copying waits for memory, and multiplying fills that time. */
static void dvti_mm_panel(const dvti_mm *p, dvti_product q, const char *b, char *panel,
                          bool first) {
    const dvt_dtype of_b = dvti_mm_b(p)->dtype;
    int64_t done = 0;
    q.b = b;
    if (first && p->b_col == 1 && dvt_dtype_size(of_b) == p->size)
        done = p->by->multiply_packing(&q, p->b_k, panel);
    if (first && !done)
        dvti_mm_pack(p, panel, p->by->width, b, of_b, p->b_k, p->b_col, q.depth, q.cols);
    q.b = panel;
    q.rows -= done;
    q.a = (const char *)q.a + done * q.a_row * p->size;
    q.c = (char *)q.c + done * q.c_row * p->size;
    (p->stream ? p->by->multiply_stream : p->by->multiply)(&q);
}

/* Multiplies some rows of a step; B is in place or in panels. */
static void dvti_mm_block(const dvti_mm *p, const dvti_mm_tile *t, int64_t i, int64_t rows,
                          int64_t k, int64_t depth) {
    static const double zero = 0;
    const dvt_dtype of_a = dvti_mm_a(p)->dtype, of_b = dvti_mm_b(p)->dtype;
    const int64_t width = p->by->width;
    const char *a = t->a + (i * p->a_row + k * p->a_k) * dvt_dtype_size(of_a);
    const char *b = t->b + k * p->b_k * dvt_dtype_size(of_b);
    int64_t j;
    dvti_product q;
    q.rows = rows;
    q.cols = t->cols;
    q.depth = depth;
    q.a = a;
    q.a_row = p->a_row;
    q.a_k = p->a_k;
    q.b = b;
    q.b_k = t->b_k;
    q.b_panel = width;
    q.c = t->c + i * t->c_row * p->size;
    q.c_row = t->c_row;
    q.start = k && !p->int32 ? NULL : &zero;
    q.start_row = 0;
    if (p->pack_a) {
        dvti_mm_pack(p, t->area + p->a_at, p->a_ld, a, of_a, p->a_row, p->a_k, rows, depth);
        q.a = t->area + p->a_at;
        q.a_row = p->a_ld;
        q.a_k = 1;
    }
    if (!p->pack_b) {
        (p->stream ? p->by->multiply_stream : p->by->multiply)(&q);
        return;
    }
    for (j = 0; j < t->cols; j += width) {
        q.cols = DVTI_MIN(width, t->cols - j);
        q.c = t->c + (i * t->c_row + j) * p->size;
        dvti_mm_panel(p, q, b + j * p->b_col * dvt_dtype_size(of_b), t->area + j * depth * p->size,
                      i == 0);
    }
}

static void dvti_mm_store_narrow(const dvti_mm *p, const dvti_mm_tile *t, char *to) {
    const dvt_dtype dtype = p->launch->out[0].dtype;
    int64_t r;
    for (r = 0; r < t->rows; r++)
        p->simd->store_row(to + r * p->m * dvt_dtype_size(dtype), dtype, t->cols,
                           (const float *)(const void *)(t->c + r * t->c_row * p->size));
}

/* Returns where the tile at (i, j) starts in C. */
static int64_t dvti_mm_position(const dvti_mm *p, int64_t batch, int64_t i, int64_t j) {
    return batch * p->n * p->m + (p->swapped ? j * p->n + i : i * p->m + j);
}

static void dvti_mm_one_tile(const dvti_mm *p, dvti_mm_tile *t, int64_t batch, int64_t i,
                             int64_t j) {
    const dvti_view *out = &p->launch->out[0], *a = dvti_mm_a(p), *b = dvti_mm_b(p);
    char *to = (char *)out->data + dvti_mm_position(p, batch, i, j) * dvt_dtype_size(out->dtype);
    int64_t k = 0, at;
    t->rows = DVTI_MIN(p->rows, p->n - i);
    t->cols = DVTI_MIN(p->cols, p->m - j);
    t->a = dvti_mm_at(a, dvti_mm_offset(out, a, batch) + i * p->a_row);
    t->b = dvti_mm_at(b, dvti_mm_offset(out, b, batch) + j * p->b_col);
    t->c = p->narrow || p->swapped ? t->area + p->c_at : to;
    t->c_row = p->narrow ? t->cols : p->swapped ? dvti_mm_swapped_row(t->cols) : p->m;
    do {
        int64_t depth = DVTI_MIN(p->depth, p->k - k);
        for (at = 0; at < t->rows; at += p->block_rows)
            dvti_mm_block(p, t, at, DVTI_MIN(p->block_rows, t->rows - at), k, depth);
        if (p->int32)
            dvti_mm_add_int32(t->c, t->area + p->sums_at, t->rows * t->c_row, k == 0);
        k += p->depth;
    } while (k < p->k);
#if DVTI_AVX2
    if (p->stream)
        _mm_sfence(); /* non-temporal stores are not ordered with those that announce them */
#endif
    if (p->int32)
        dvti_mm_store_int32(p, t->area + p->sums_at, t->rows, t->cols, to);
    else if (p->narrow)
        dvti_mm_store_narrow(p, t, to);
    else if (p->swapped)
        p->by->transpose_exactly(to, p->n, t->c, t->c_row, t->cols, t->rows);
}

/* Computes part of one vector, or of a few with dots. */
static void dvti_mm_one_vector(const dvti_mm *p, int64_t batch, int64_t i, int64_t j) {
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    char *y = (char *)out->data + ((batch * p->n + i) * p->m + j) * p->size;
    const char *from_a = dvti_mm_at(a, dvti_mm_offset(out, a, batch) + i * p->a_row);
    const char *from_b = dvti_mm_at(b, dvti_mm_offset(out, b, batch) + j * p->b_col);
    bool row = p->n <= p->m;
    const char *x = row ? from_a : from_b, *w = row ? from_b : from_a;
    int64_t count = row ? DVTI_MIN(p->cols, p->m - j) : DVTI_MIN(p->rows, p->n - i);
    dvti_matrices matrices;
    dvti_dots dots;
    if (p->kind == DVTI_MM_TRANSPOSED && dvti_mm_matrices(p, &matrices)) {
        dvti_mm_transposed(p->by, &matrices, i, count);
        return;
    }
    if (p->kind == DVTI_MM_COMBINE) {
        p->by->combine(y, count, p->k, x, row ? p->a_k : p->b_k, w, row ? p->b_k : p->a_k);
        return;
    }
    dots.rows = count;
    dots.cols = row ? p->n : p->m;
    dots.depth = p->k;
    dots.w = w;
    dots.x = x;
    dots.w_row = row ? p->b_col : p->a_row;
    dots.x_col = row ? p->a_row : p->b_col;
    dots.y = y;
    dots.y_row = row ? 1 : p->m;
    dots.y_col = row ? p->m : 1;
    p->by->dots(&dots);
}

static void dvti_mm_task(void *user, int64_t task, void *area) {
    const dvti_mm *p = (const dvti_mm *)user;
    int64_t tiles = p->row_tiles * p->col_tiles, batch = task / tiles * p->per_task;
    int64_t end = DVTI_MIN(batch + p->per_task, p->batch), k, rows, cols;
    int64_t i = task % tiles / p->col_tiles * p->rows, j = task % p->col_tiles * p->cols;
    dvti_mm_tile t;
    t.area = (char *)area;
    if (p->kind == DVTI_MM_TILES)
        for (k = 0; k < DVTI_MIN(p->depth, p->k); k++)
            t.b_k[k] = k * (p->pack_b ? p->by->width : p->b_k);
    for (; batch < end; batch++) {
        if (p->kind == DVTI_MM_TILES)
            dvti_mm_one_tile(p, &t, batch, i, j);
        else
            dvti_mm_one_vector(p, batch, i, j);
        rows = DVTI_MIN(p->rows, p->n - i);
        cols = DVTI_MIN(p->cols, p->m - j);
        dvti_epilogue_part(p->simd, p->launch, dvti_mm_position(p, batch, i, j),
                           p->swapped ? p->n : p->m, p->swapped ? cols : rows,
                           p->swapped ? rows : cols);
    }
}

/* ---- the kernel ---- */
static bool dvti_mm_is_byte(dvt_dtype dtype) {
    return dtype == DVT_I8 || dtype == DVT_U8;
}

static bool dvti_mm_takes(const dvti_launch *launch) {
    dvt_dtype out = launch->out[0].dtype;
    return dvt_dtype_is_float(out) ||
           ((dvti_mm_is_byte(out) || out == DVT_I32) && dvti_mm_is_byte(launch->in[0].dtype) &&
            dvti_mm_is_byte(launch->in[1].dtype));
}

DVTI_FN bool dvti_cpu_matmul_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    (void)op;
    return feature == DVTI_CAN_RUN || (feature == DVTI_CAN_EPILOGUE && dtype == DVT_F32) ||
           (feature == DVTI_CAN_WIDEN && dtype == DVT_I32);
}

DVTI_PLAN_FITS(dvti_mm_plan)

DVTI_FN int64_t dvti_cpu_matmul_plan(dvti_launch *launch, int threads) {
    dvti_mm_plan *plan = (dvti_mm_plan *)(void *)&launch->plan;
    const dvti_simd *simd = dvti_simd_now();
    dvti_mm *p = &plan->as.tiled;
    dvti_matrices matrices;
    bool plain, one;
    if (!simd) {
        plan->algorithm = DVTI_MM_ORACLE;
        return 0;
    }
    if (!dvti_mm_takes(launch)) {
        plan->algorithm = DVTI_MM_INTEGERS;
        return dvti_mm_plan_integers(&plan->as.integers, launch, threads);
    }
    dvti_mm_shape(p, launch);
    plain = dvti_mm_matrices(p, &matrices);
    one = plain && dvti_mm_is_one_call(&matrices, DVTI_MM_SMALL_MACS);
    if (!one) {
        threads = dvti_cpu_threads(threads);
        one = plain && threads == 1 && dvti_mm_is_one_call(&matrices, DVTI_MM_SERIAL_MACS) &&
              !dvti_mm_is_narrow(p);
    }
    if (one) {
        plan->algorithm = DVTI_MM_ONE_CALL;
        plan->as.one.simd = simd;
        plan->as.one.matrices = matrices;
        return 0;
    }
    plan->algorithm = DVTI_MM_PLANNED;
    p->simd = simd;
    p->by = p->size == 8 ? dvti_simd_products_of(simd)->f64 : dvti_simd_products_of(simd)->f32;
    dvti_mm_plan_tiles(p, threads);
    return p->area * p->areas;
}

DVTI_FN void dvti_cpu_matmul(const dvti_launch *launch) {
    const dvti_mm_plan *plan = (const dvti_mm_plan *)(const void *)&launch->plan;
    if (plan->algorithm == DVTI_MM_ONE_CALL) {
        const dvti_matrices *q = &plan->as.one.matrices;
        const dvti_simd *simd = plan->as.one.simd;
        dvti_mm_one_call(q->dtype == DVT_F64 ? dvti_simd_products_of(simd)->f64
                                             : dvti_simd_products_of(simd)->f32,
                         q);
        dvti_epilogue_part(simd, launch, 0, q->m, q->n, q->m);
    } else if (plan->algorithm == DVTI_MM_PLANNED) {
        dvti_mm p = plan->as.tiled;
        p.launch = launch;
        dvti_run_tasks(p.tasks, dvti_mm_macs(&p), launch->workspace, p.areas, p.area, dvti_mm_task,
                       &p);
    } else if (plan->algorithm == DVTI_MM_INTEGERS) {
        dvti_mm_run_integers(&plan->as.integers, launch);
    } else {
        dvti_ref_matmul(launch);
        dvti_epilogue_whole(launch);
    }
}

#undef DVTI_MM_SIGNED_DEPTH
#undef DVTI_MM_UNSIGNED_DEPTH
#undef DVTI_MM_NARROW_ROWS
#undef DVTI_MM_NARROW_COLS
#undef DVTI_MM_REPEATED
#undef DVTI_MM_TASK
#undef DVTI_MM_CHUNK
