/* Kernels of matrix products and convolutions at the edge of memory. */
#include "bounds.h"

/* ---- products ---- */
enum { WIDEST_PANEL = 64 }; /* of all ISA targets */

typedef struct product_how {
    bool wide;
    int64_t rows, cols, depth;
    int64_t a_row, a_k, b_row, c_row;
    int start;   /* as in test_gemm_kernels.c: continues C, one zero, or a bias per row */
    int variant; /* multiply, multiply_stream, multiply_packing */
    dvt_dtype dtype;
} product_how;

static const dvti_simd_gemm *gemm_of(const dvti_simd *target, bool wide) {
    return wide ? dvti_simd_products_of(target)->f64 : dvti_simd_products_of(target)->f32;
}

/* a, b, the table, c, start, a panel */
static void run_product(const dvti_simd *target, void *const *at, const void *user) {
    const product_how *how = (const product_how *)user;
    const dvti_simd_gemm *by = gemm_of(target, how->wide);
    dvti_product p;
    int64_t done = 0;
    memset(&p, 0, sizeof p);
    p.rows = how->rows;
    p.cols = how->cols;
    p.depth = how->depth;
    p.a = at[0];
    p.a_row = how->a_row;
    p.a_k = how->a_k;
    p.b = at[1];
    p.b_k = (const int64_t *)at[2];
    p.b_panel = by->width;
    p.c = at[3];
    p.c_row = how->c_row;
    p.start = how->start ? at[4] : NULL;
    p.start_row = how->start == 2;
    if (how->variant == 2 && how->cols <= by->width)
        done = by->multiply_packing(&p, how->b_row, at[5]);
    p.rows -= done;
    p.a = (const char *)p.a + done * p.a_row * by->size;
    p.c = (char *)p.c + done * p.c_row * by->size;
    if (p.start)
        p.start = (const char *)p.start + done * p.start_row * by->size;
    (how->variant == 1 ? by->multiply_stream : by->multiply)(&p);
}

static void check_product(product_how *how, bool transposed) {
    static int64_t table[64];
    const dvt_dtype own = how->wide ? DVT_F64 : DVT_F32;
    const int64_t lanes = how->wide ? 8 : 16;
    bounds_call call = bounds_of("product", run_product, how);
    int64_t k, c;
    how->a_row = transposed ? 1 : how->depth + how->cols % 3;
    how->a_k = transposed ? how->rows + how->cols % 3 : 1;
    how->b_row = how->cols + how->rows % 3;
    how->c_row =
        how->variant == 1 ? (how->cols + lanes - 1) / lanes * lanes : how->cols + how->rows % 2;
    for (k = 0; k < how->depth; k++)
        table[k] = k * how->b_row;
    c = (how->rows - 1) * how->c_row + how->cols;
    bounds_reads(&call, own, (how->rows - 1) * how->a_row + (how->depth - 1) * how->a_k + 1);
    bounds_reads(&call, own, (how->depth - 1) * how->b_row + how->cols);
    bounds_reads(&call, DVT_I64, how->depth)->set = table;
    bounds_writes(&call, own, c, c)->align = how->variant == 1 ? 64 : 0;
    bounds_reads(&call, own, how->start == 2 ? how->rows : 1);
    if (how->variant == 2)
        bounds_writes(&call, own, WIDEST_PANEL * how->depth, 0);
    bounds_check(&call);
}

static void check_products(void) {
    product_how how;
    int wide;
    memset(&how, 0, sizeof how);
    FOR_EACH_TARGET(CHECK(dvti_simd_products_of(target)->f32->width <= WIDEST_PANEL &&
                          dvti_simd_products_of(target)->f64->width <= WIDEST_PANEL));
    for (wide = 0; wide < 2; wide++)
        for (how.cols = 1; how.cols <= 100; how.cols++)
            for (how.rows = 1; how.rows <= 14; how.rows += how.cols % 16 ? 3 : 1)
                for (how.variant = 0; how.variant < 3; how.variant++) {
                    how.wide = wide != 0;
                    how.start = (int)(how.cols + how.rows) % 3;
                    if (how.variant && !how.start)
                        how.start = 1;
                    how.depth = how.rows % 4 ? 3 : 19;
                    check_product(&how, (how.cols + how.rows) % 2 != 0);
                }
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, size);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, width);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, multiply);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, multiply_stream);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, multiply_packing);
}

/* ---- vectors ---- */
static void run_combine(const dvti_simd *target, void *const *at, const void *user) {
    const product_how *how = (const product_how *)user;
    gemm_of(target, how->wide)
        ->combine(at[0], how->cols, how->depth, at[1], how->a_k, at[2], how->b_row);
}

static void run_dots(const dvti_simd *target, void *const *at, const void *user) {
    const product_how *how = (const product_how *)user;
    dvti_dots dots;
    memset(&dots, 0, sizeof dots);
    dots.rows = how->rows;
    dots.cols = how->cols;
    dots.depth = how->depth;
    dots.w = at[0];
    dots.w_row = how->a_row;
    dots.x = at[1];
    dots.x_col = how->b_row;
    dots.y = at[2];
    dots.y_row = how->c_row;
    dots.y_col = how->a_k;
    gemm_of(target, how->wide)->dots(&dots);
}

static void check_combine(product_how *how, dvt_dtype own) {
    for (how->cols = 1; how->cols <= 150; how->cols++)
        for (how->depth = 1; how->depth <= 13; how->depth += 3) {
            bounds_call call = bounds_of("matrix and vector", run_combine, how);
            how->a_k = how->depth % 4 + 1;
            how->b_row = how->cols + how->depth % 3;
            bounds_writes(&call, own, how->cols, how->cols);
            bounds_reads(&call, own, (how->depth - 1) * how->a_k + 1);
            bounds_reads(&call, own, (how->depth - 1) * how->b_row + how->cols);
            bounds_check(&call);
        }
}

static void check_dots(product_how *how, dvt_dtype own) {
    for (how->depth = 1; how->depth <= 150; how->depth += how->depth < 80 ? 1 : 23)
        for (how->cols = 1; how->cols <= 11; how->cols++)
            for (how->rows = 1; how->rows <= 11; how->rows += 5) {
                bounds_call call = bounds_of("dots", run_dots, how);
                int64_t y;
                how->a_row = how->depth + how->cols % 3;
                how->b_row = how->depth + how->rows % 3;
                how->a_k = how->depth % 2 ? 1 : how->rows; /* y as rows or as columns */
                how->c_row = how->depth % 2 ? how->cols : 1;
                y = how->rows * how->cols;
                bounds_reads(&call, own, (how->rows - 1) * how->a_row + how->depth);
                bounds_reads(&call, own, (how->cols - 1) * how->b_row + how->depth);
                bounds_writes(&call, own, y, y);
                bounds_check(&call);
            }
}

static void check_vectors(void) {
    product_how how;
    int wide;
    memset(&how, 0, sizeof how);
    for (wide = 0; wide < 2; wide++) {
        how.wide = wide != 0;
        check_combine(&how, wide ? DVT_F64 : DVT_F32);
        check_dots(&how, wide ? DVT_F64 : DVT_F32);
    }
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, combine);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, dots);
}

/* ---- packing ---- */
static void run_packing(const dvti_simd *target, void *const *at, const void *user) {
    const product_how *how = (const product_how *)user;
    const dvti_simd_gemm *by = gemm_of(target, how->wide);
    if (how->variant == 2)
        by->transpose_exactly(at[0], how->c_row, at[1], how->b_row, how->rows, how->cols);
    else
        (how->variant ? by->transpose : by->copy)(at[0], how->c_row, at[1], how->dtype, how->b_row,
                                                  how->rows, how->cols);
}

static void check_packing(product_how *how) {
    const dvt_dtype own = how->wide ? DVT_F64 : DVT_F32;
    const int64_t lanes = how->wide ? 8 : 16, lines = how->variant ? how->cols : how->rows;
    const int64_t each = how->variant ? how->rows : how->cols;
    const int64_t full = how->variant == 2 ? how->cols : (how->cols + lanes - 1) / lanes * lanes;
    bounds_call call = bounds_of("packing", run_packing, how);
    int64_t n;
    how->c_row = full + how->rows % 2 * lanes;
    how->b_row = each + how->cols % 3;
    n = (how->rows - 1) * how->c_row + full;
    bounds_writes(&call, own, n, n);
    bounds_reads(&call, how->dtype, (lines - 1) * how->b_row + each);
    bounds_check(&call);
}

static void check_packings(void) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_I8, DVT_U8, DVT_F64};
    product_how how;
    int d;
    memset(&how, 0, sizeof how);
    for (d = 0; d < 6; d++)
        for (how.rows = 1; how.rows <= 66; how.rows += how.rows < 18 ? 1 : 12)
            for (how.cols = 1; how.cols <= 35; how.cols++)
                for (how.variant = 0; how.variant < 3; how.variant++) {
                    how.dtype = dtypes[d];
                    how.wide = dtypes[d] == DVT_F64;
                    if (how.variant < 2 || d == 0 || how.wide)
                        check_packing(&how);
                }
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, copy);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, transpose);
    BOUNDS_SEEN(BOUNDS_GEMM, dvti_simd_gemm, transpose_exactly);
}

/* ---- convolutions ---- */
typedef struct conv_how {
    int64_t taps, count, rows, images, outs, step, row, channels;
} conv_how;

enum { WIDEST = 70, TAPS = 9 };

static const int64_t furthest = 12;

/* Places taps at all allowed offsets, the last one farthest. */
static const int64_t *places_of_taps(int64_t taps, int64_t channels, int64_t apart) {
    static int64_t at[4 * TAPS];
    int64_t k, c;
    for (c = 0; c < channels; c++)
        for (k = 0; k < taps; k++)
            at[c * taps + k] = c * apart + (k == taps - 1 ? furthest : k);
    return at;
}

static void run_gather(const dvti_simd *target, void *const *at, const void *user) {
    const conv_how *how = (const conv_how *)user;
    dvti_simd_conv_of(target)->gather((float *)at[0], how->count, (const float *)at[1],
                                      (const int64_t *)at[2], how->taps, how->count);
}

static void run_scatter(const dvti_simd *target, void *const *at, const void *user) {
    const conv_how *how = (const conv_how *)user;
    dvti_simd_conv_of(target)->scatter((float *)at[0], (const int64_t *)at[2], (const float *)at[1],
                                       how->step, how->taps, how->channels, how->count);
}

static void run_put(const dvti_simd *target, void *const *at, const void *user) {
    const conv_how *how = (const conv_how *)user;
    dvti_simd_conv_of(target)->copy_rows((float *)at[0], how->row, (const float *)at[1], how->step,
                                         how->rows, how->count);
}

static void run_sums(const dvti_simd *target, void *const *at, const void *user) {
    const conv_how *how = (const conv_how *)user;
    dvti_simd_conv_of(target)->reduce_lanes((float *)at[0], how->step, (const float *)at[1],
                                            how->count);
}

static dvti_conv_plane plane_of(const conv_how *how, void *const *at) {
    dvti_conv_plane p;
    memset(&p, 0, sizeof p);
    p.src = (const float *)at[0];
    p.at = (const int64_t *)at[1];
    p.src_row = how->row;
    p.src_image = how->rows * how->row;
    p.taps = how->taps;
    p.images = how->images;
    p.rows = how->rows;
    p.cols = p.y_row = how->count;
    p.y_out = how->rows * how->count;
    p.y_image = how->outs * p.y_out;
    return p;
}

static void run_filter(const dvti_simd *target, void *const *at, const void *user) {
    const dvti_conv_plane p = plane_of((const conv_how *)user, at);
    dvti_simd_conv_of(target)->filter(&p, (float *)at[2], (const float *)at[3], 0.5f);
}

static void run_correlate(const dvti_simd *target, void *const *at, const void *user) {
    const conv_how *how = (const conv_how *)user;
    const dvti_conv_plane p = plane_of(how, at);
    dvti_simd_conv_of(target)->correlate(&p, (const float *)at[2], how->outs, (float *)at[3]);
}

/* Checks gather and scatter. */
static void check_patches(conv_how *how) {
    const int64_t apart = how->count + furthest + DVTI_CONV_SLACK, all = how->channels * how->taps;
    const int64_t rows = (how->taps - 1) * how->count;
    bounds_call gather = bounds_of("gather", run_gather, how);
    bounds_call scatter = bounds_of("scatter", run_scatter, how);
    bounds_call put = bounds_of("copy of rows", run_put, how);
    bounds_call sums = bounds_of("sums of lanes", run_sums, how);
    const int64_t touched =
        (how->channels - 1) * apart + furthest + how->count + DVTI_CONV_SLACK - 1;
    how->step = how->count + how->taps % 3;
    how->row = how->count + how->taps % 2;
    bounds_writes(&gather, DVT_F32, rows + how->count + DVTI_CONV_SLACK - 1, rows + how->count);
    bounds_reads(&gather, DVT_F32, furthest + how->count);
    bounds_reads(&gather, DVT_I64, how->taps)->set = places_of_taps(how->taps, 1, 0);
    bounds_check(&gather);
    bounds_writes(&scatter, DVT_F32, touched, touched);
    bounds_reads(&scatter, DVT_F32, (all - 1) * how->step + how->count);
    bounds_reads(&scatter, DVT_I64, all)->set = places_of_taps(how->taps, how->channels, apart);
    bounds_check(&scatter);
    bounds_writes(&put, DVT_F32, (how->rows - 1) * how->row + how->count,
                  (how->rows - 1) * how->row + how->count);
    bounds_reads(&put, DVT_F32, (how->rows - 1) * how->step + how->count);
    bounds_check(&put);
    how->step = how->taps;
    bounds_writes(&sums, DVT_F32, (how->count - 1) * how->step + 1,
                  (how->count - 1) * how->step + 1);
    bounds_reads(&sums, DVT_F32, 16 * how->count);
    bounds_check(&sums);
}

static void check_planes(conv_how *how) {
    bounds_call filter = bounds_of("filter", run_filter, how);
    bounds_call correlate = bounds_of("correlate", run_correlate, how);
    const int64_t one = how->rows * how->count;
    const int64_t src = (how->rows - 1) * (how->count + 2) + furthest + how->count;
    how->row = how->count + 2;
    bounds_reads(&filter, DVT_F32, src);
    bounds_reads(&filter, DVT_I64, how->taps)->set = places_of_taps(how->taps, 1, 0);
    bounds_writes(&filter, DVT_F32, one, one);
    bounds_reads(&filter, DVT_F32, how->taps);
    bounds_check(&filter);
    bounds_reads(&correlate, DVT_F32, src + (how->images - 1) * how->rows * how->row);
    bounds_reads(&correlate, DVT_I64, how->taps)->set = places_of_taps(how->taps, 1, 0);
    bounds_reads(&correlate, DVT_F32, how->images * how->outs * one);
    bounds_writes(&correlate, DVT_F32, how->outs * how->taps * 16, how->outs * how->taps * 16);
    bounds_check(&correlate);
}

static void check_convolutions(void) {
    conv_how how;
    memset(&how, 0, sizeof how);
    for (how.count = 1; how.count <= WIDEST; how.count++)
        for (how.taps = 1; how.taps <= TAPS; how.taps += how.taps < 5 ? 1 : 4) {
            how.rows = how.count % 3 + 1;
            how.images = how.count % 2 + 1;
            how.outs = how.count % 8 + 1;
            how.channels = how.taps % 3 + 1;
            check_patches(&how);
            check_planes(&how);
        }
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, gather);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, scatter);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, filter);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, correlate);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, reduce_lanes);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, copy_rows);
}

/* ---- Winograd ---- */
typedef struct tiles_how {
    int64_t n, first, second;
} tiles_how;

static void run_deal(const dvti_simd *target, void *const *at, const void *user) {
    const tiles_how *how = (const tiles_how *)user;
    dvti_simd_conv_of(target)->winograd->deinterleave((float *)at[0], how->first,
                                                      (const float *)at[1], how->n);
}

static void run_tiles(const dvti_simd *target, void *const *at, const void *user) {
    const tiles_how *how = (const tiles_how *)user;
    dvti_simd_conv_of(target)->winograd->tiles((float *)at[0], how->first, (const float *)at[1],
                                               how->second, how->n);
}

static void run_kernels(const dvti_simd *target, void *const *at, const void *user) {
    const tiles_how *how = (const tiles_how *)user;
    dvti_simd_conv_of(target)->winograd->weights((float *)at[0], how->first, (const float *)at[1],
                                                 how->second, how->n);
}

static void run_results(const dvti_simd *target, void *const *at, const void *user) {
    const tiles_how *how = (const tiles_how *)user;
    dvti_simd_conv_of(target)->winograd->results((float *)at[0], how->first, (const float *)at[1],
                                                 how->second, how->n, 0.25f);
}

/* Arrays are whole vectors, `gap` elements apart; the last one ends with its last vector. */
static void check_tiles(int64_t tiles, int64_t gap) {
    const int64_t whole = (tiles + 15) / 16 * 16, dealt = 4 * whole;
    tiles_how how;
    bounds_call deal = bounds_of("deinterleave", run_deal, &how);
    bounds_call into = bounds_of("tiles", run_tiles, &how);
    bounds_call kernels = bounds_of("weights", run_kernels, &how);
    bounds_call results = bounds_of("results", run_results, &how);
    how.n = dealt;
    how.first = whole + gap;
    bounds_writes(&deal, DVT_F32, 3 * how.first + whole, 3 * how.first + whole);
    bounds_reads(&deal, DVT_F32, dealt);
    bounds_check(&deal);
    how.n = tiles;
    how.second = whole + 1 + gap;
    bounds_writes(&into, DVT_F32, 35 * how.first + whole, 35 * how.first + whole);
    bounds_reads(&into, DVT_F32, 23 * how.second + whole);
    bounds_check(&into);
    bounds_writes(&kernels, DVT_F32, 35 * how.first + whole, 35 * how.first + whole);
    bounds_reads(&kernels, DVT_F32, 8 * how.second + whole);
    bounds_check(&kernels);
    how.first = dealt + gap;
    bounds_writes(&results, DVT_F32, 3 * how.first + dealt, 3 * how.first + dealt);
    bounds_reads(&results, DVT_F32, 35 * how.second + whole);
    bounds_check(&results);
}

static void check_winograd(void) {
    int64_t tiles, gap;
    for (tiles = 1; tiles <= 50; tiles++)
        for (gap = 0; gap < 18; gap += 1 + gap / 3)
            check_tiles(tiles, gap);
    BOUNDS_SEEN(BOUNDS_CONV, dvti_simd_conv, winograd);
    BOUNDS_SEEN(BOUNDS_WINOGRAD, dvti_simd_winograd, deinterleave);
    BOUNDS_SEEN(BOUNDS_WINOGRAD, dvti_simd_winograd, tiles);
    BOUNDS_SEEN(BOUNDS_WINOGRAD, dvti_simd_winograd, weights);
    BOUNDS_SEEN(BOUNDS_WINOGRAD, dvti_simd_winograd, results);
}

void bounds_of_products(void) {
    check_products();
    bounds_report("product kernels");
    check_vectors();
    bounds_report("vectors");
    check_packings();
    bounds_report("packings");
    check_convolutions();
    bounds_report("convolution kernels");
    check_winograd();
    bounds_report("winograd");
    BOUNDS_SEEN(BOUNDS_PRODUCTS, dvti_simd_products, f32);
    BOUNDS_SEEN(BOUNDS_PRODUCTS, dvti_simd_products, f64);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, f64);
}
