/* Pooling on a GPU: results, gradients and second gradients as on cpu(). */
#include "on_gpu.h"

/* Results of one context for x, a gradient g of the result, and values v of the shape of x. */
typedef struct pooled {
    dvt_array *y, *dx, *again; /* again: the gradient of dx by g, a forward operation */
    dvt_array
        *past; /* the gradient of x for the maxima of relu(x); relu's own backward is skipped */
} pooled;

static pooled pool_in(dvt_ctx ctx, bool max, dvt_array *x, dvt_array *g, dvt_array *v,
                      const dvt_pool2d_options *p) {
    pooled r = {NULL, NULL, NULL, NULL};
    dvt_array *maxima = NULL;
    x = dvt_copyto(x, ctx);
    g = dvt_copyto(g, ctx);
    v = dvt_copyto(v, ctx);
    CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
    CHECK(dvt_attach_grad(g, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD r.y = max ? dvt_max_pool2d(x, p) : dvt_avg_pool2d(x, p);
    CHECK(dvt_gradients(&r.y, &g, 1, &x, 1, DVT_CREATE_GRAPH, &r.dx) == DVT_OK);
    CHECK(dvt_gradients(&r.dx, &v, 1, &g, 1, DVT_FREE_GRAPH, &r.again) == DVT_OK);
    DVT_RECORD maxima = max ? dvt_max_pool2d(dvt_relu(x), p) : dvt_avg_pool2d(dvt_relu(x), p);
    CHECK(dvt_gradients(&maxima, &g, 1, &x, 1, DVT_FREE_GRAPH, &r.past) == DVT_OK);
    return r;
}

/* Compares means within `ulps` of values as large as the inputs. A cooperating block adds in
   another order, and cpu() rounds a 16-bit gradient after each window. */
static void same_pool(bool max, dvt_array *x, const dvt_pool2d_options *p, double ulps,
                      const char *what) {
    dvt_array *y = max ? dvt_max_pool2d(x, p) : dvt_avg_pool2d(x, p);
    dvt_array *g, *v;
    pooled gpu, cpu;
    if (!CHECK(y != NULL))
        return;
    if (!max && ulps < 1) /* the oracle sums in float64 */
        ulps = 1;
    g = random_on_cpu(dvt_shape_of(y), dvt_dtype_of(x), -4, 4);
    v = random_on_cpu(dvt_shape_of(x), dvt_dtype_of(x), -4, 4);
    if (max) /* sums of few integers are exact in every dtype and order */
        g = dvt_floor(g);
    gpu = pool_in(dvt_gpu(0), max, x, g, v, p);
    cpu = pool_in(dvt_cpu(), max, x, g, v, p);
    same_on_gpu(gpu.y, cpu.y, ulps, 4, what, __FILE__, __LINE__);
    same_on_gpu(gpu.dx, cpu.dx, ulps, 4, what, __FILE__, __LINE__);
    same_on_gpu(gpu.again, cpu.again, ulps, 4, what, __FILE__, __LINE__);
    same_on_gpu(gpu.past, cpu.past, ulps, 4, what, __FILE__, __LINE__);
}

typedef struct pool_case {
    int64_t n, c, h, w;
    int size[2], stride[2], padding[2];
    bool ceil_mode, exclude_padding, global;
    const char *what;
} pool_case;

static dvt_pool2d_options params_of(const pool_case *at) {
    dvt_pool2d_options p;
    int i;
    memset(&p, 0, sizeof p);
    for (i = 0; i < 2; i++) {
        p.size[i] = at->size[i];
        p.stride[i] = at->stride[i];
        p.padding[i] = at->padding[i] ? at->padding[i] : DVT_PAD_NONE;
    }
    p.ceil_mode = at->ceil_mode;
    p.exclude_padding = at->exclude_padding;
    p.global = at->global;
    return p;
}

static const pool_case pool_cases[] = {
    {2, 3, 28, 28, {2, 2}, {2, 2}, {0, 0}, false, false, false, "LeNet 2x2"},
    {3, 5, 9, 7, {2, 2}, {2, 2}, {0, 0}, false, false, false, "a last row and column in no window"},
    {3, 5, 9, 7, {2, 2}, {2, 2}, {0, 0}, true, false, false, "windows cut at the end"},
    {2, 4, 15, 15, {3, 3}, {2, 2}, {1, 1}, false, false, false, "ResNet 3x3/2"},
    {2, 4, 15, 15, {3, 3}, {2, 2}, {1, 1}, true, true, false, "ResNet 3x3/2, counted inside"},
    {1, 2, 11, 13, {5, 3}, {1, 1}, {2, 1}, false, true, false, "overlapping, asymmetric"},
    {1, 2, 11, 13, {2, 3}, {3, 5}, {1, 0}, false, false, false, "windows with gaps"},
    {2, 2, 12, 12, {4, 4}, {4, 4}, {2, 2}, false, false, false, "first cells cut by the padding"},
    {1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, false, false, false, "one pixel"},
    {1, 1, 1, 1, {4, 4}, {1, 1}, {2, 2}, false, false, false, "one pixel, nothing but padding"},
    {3, 1, 1, 257, {1, 2}, {1, 1}, {0, 0}, false, false, false, "one row"},
    {3, 1, 257, 1, {3, 1}, {2, 1}, {1, 0}, false, false, false, "one column"},
};

/* Windows that a whole block computes, and offsets of 64 bits. */
static const pool_case block_cases[] = {
    {3, 5, 7, 7, {0, 0}, {0, 0}, {0, 0}, false, false, true, "global 7x7"},
    {2, 3, 40, 37, {0, 0}, {0, 0}, {0, 0}, false, false, true, "global, a block of 256"},
    {2, 2, 33, 3, {0, 0}, {0, 0}, {0, 0}, false, false, true, "global, narrower than a warp"},
    {2, 2, 30, 47, {8, 8}, {8, 8}, {0, 0}, true, false, false, "8x8 side by side"},
    {2, 2, 30, 47, {11, 9}, {8, 8}, {3, 4}, false, true, false, "overlapping, far apart"},
    {2, 3, 9, 50, {3, 3}, {2, 1 << 30}, {1, 1}, false, false, false, "64 bits, overlapping"},
    {2, 3, 9, 50, {2, 2}, {2, 1 << 30}, {0, 0}, false, true, false, "64 bits, side by side"},
    {2, 3, 9, 50, {4, 40}, {4, 1 << 30}, {1, 0}, false, false, false, "64 bits, teams"},
};

static void same_cases(const pool_case *cases, int count, dvt_dtype dtype) {
    int i;
    for (i = 0; i < count; i++) {
        const pool_case *at = &cases[i];
        dvt_pool2d_options p = params_of(at);
        DVT_SCOPE {
            dvt_shape shape = DVT_SHAPE(at->n, at->c, at->h, at->w);
            dvt_array *x = random_on_cpu(shape, dtype, -4, 4);
            bool half = dtype == DVT_F16 || dtype == DVT_BF16;
            same_pool(true, x, &p, 0, at->what);
            same_pool(true, dvt_floor(x), &p, 0, at->what); /* with many ties */
            same_pool(false, x, &p, half ? 4 : cases == block_cases ? 16 : 0, at->what);
        }
    }
}

DVT_TEST(gpu_pool_windows) {
    NEEDS_GPU;
    same_cases(pool_cases, (int)(sizeof pool_cases / sizeof pool_cases[0]), DVT_F32);
}

DVT_TEST(gpu_pool_cooperative_blocks) {
    NEEDS_GPU;
    same_cases(block_cases, (int)(sizeof block_cases / sizeof block_cases[0]), DVT_F32);
}

DVT_TEST(gpu_pool_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_F16, DVT_BF16};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 3; i++) {
        same_cases(pool_cases + 4, 2, dtypes[i]);
        same_cases(pool_cases, 1, dtypes[i]);
        same_cases(block_cases, 2, dtypes[i]);
    }
}

/* The first of equal values wins, with +0 and -0 equal; a NaN precedes every number, and the first
   NaN wins. */
DVT_TEST(gpu_pool_special_values) {
    static const double odd[] = {0.0, -0.0, (double)INFINITY, (double)-INFINITY, (double)NAN,
                                 1,   -1};
    static const pool_case cases[] = {
        {1, 1, 40, 12, {2, 2}, {2, 2}, {0, 0}, false, false, false, "cells"},
        {1, 1, 40, 12, {3, 3}, {1, 1}, {1, 1}, false, false, false, "places"},
        {40, 1, 12, 4, {0, 0}, {0, 0}, {0, 0}, false, false, true, "teams"},
        {40, 1, 12, 4, {4, 3}, {4, 3}, {0, 0}, true, false, false, "cut cells"},
    };
    double values[40 * 12 * 4];
    int i, k, kinds;
    NEEDS_GPU;
    for (i = 0; i < 4; i++)
        for (kinds = 2; kinds <= 7; kinds++) {
            const pool_case *at = &cases[i];
            dvt_pool2d_options p = params_of(at);
            int n = (int)(at->n * at->h * at->w);
            for (k = 0; k < n; k++)
                values[k] = odd[(int)dvt_test_random(0, kinds)];
            DVT_SCOPE {
                dvt_array *x = dvt_from_host(values, DVT_SHAPE(at->n, at->c, at->h, at->w), DVT_F64,
                                             dvt_cpu());
                same_pool(true, dvt_as_in_dtype(x, DVT_F32), &p, 0, at->what);
                same_pool(true, dvt_as_in_dtype(x, DVT_F16), &p, 0, at->what);
            }
        }
}

/* More windows and elements than threads in one wave of a small GPU, so kernels must loop. */
DVT_TEST(gpu_pool_many) {
    static const pool_case many = {16,     8,     64,    64,    {2, 2},        {2, 2},
                                   {0, 0}, false, false, false, "many windows"};
    dvt_pool2d_options p;
    NEEDS_GPU;
    p = params_of(&many);
    same_pool(true, random_on_cpu(DVT_SHAPE(16, 9, 64, 64), DVT_F32, -4, 4), &p, 0, many.what);
    same_pool(false, random_on_cpu(DVT_SHAPE(16, 9, 64, 64), DVT_F32, -4, 4), &p, 0, many.what);
}
