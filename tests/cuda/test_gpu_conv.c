/* Convolution on a GPU: results and gradients as on cpu(). Integer inputs make every sum exact in
   any order, so every element must agree. One test uses fractions. */
#include "on_gpu.h"
#include "simcuda/sim_control.h"
#if !defined(_WIN32)
#include <dlfcn.h>
#endif

typedef struct conv_case {
    int64_t n, c, h, w, o, kh, kw;
    int stride[2], padding[2], dilation[2], groups;
    const char *what;
} conv_case;

static dvt_conv2d_options conv_params(const conv_case *at) {
    dvt_conv2d_options p;
    int i;
    memset(&p, 0, sizeof p);
    for (i = 0; i < 2; i++) {
        p.stride[i] = at->stride[i];
        p.padding[i] = at->padding[i] ? at->padding[i] : DVT_PAD_NONE;
        p.dilation[i] = at->dilation[i];
    }
    p.groups = at->groups;
    return p;
}

typedef struct convolved {
    dvt_array *y, *grads[2]; /* of x and w */
} convolved;

static convolved conv_in(dvt_ctx ctx, dvt_array *x, dvt_array *w, dvt_array *b, dvt_array *g,
                         const dvt_conv2d_options *p, int grads) {
    convolved r = {NULL, {NULL, NULL}};
    dvt_array *vars[2];
    vars[0] = dvt_copyto(x, ctx);
    vars[1] = dvt_copyto(w, ctx);
    b = b ? dvt_copyto(b, ctx) : NULL;
    g = dvt_copyto(g, ctx);
    CHECK(dvt_attach_grad(vars[0], DVT_GRAD_WRITE) == DVT_OK);
    CHECK(dvt_attach_grad(vars[1], DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD r.y = dvt_conv2d(vars[0], vars[1], b, p);
    if (grads > 0)
        CHECK(dvt_gradients(&r.y, &g, 1, vars, grads, DVT_FREE_GRAPH, r.grads) == DVT_OK);
    return r;
}

/* Returns numbers of magnitude 2 at most. With `whole` they are integers, and sums below 2^24 / 4
   products are exact in float32. */
static dvt_array *numbers(dvt_shape shape, dvt_dtype dtype, bool whole) {
    dvt_array *x = random_on_cpu(shape, whole ? DVT_I32 : DVT_F64, -2, 3);
    return dvt_as_in_dtype(x, dtype);
}

/* Compares sums of `depth` products. The error grows with the root of the depth; 16-bit floats are
   rounded only at the end. */
static void same_sum(dvt_array *gpu, dvt_array *cpu, double depth, bool whole, const char *what,
                     int line) {
    bool half = dvt_dtype_of(cpu) == DVT_F16 || dvt_dtype_of(cpu) == DVT_BF16;
    double ulps = whole ? 0 : half ? 1 : 4 + 2 * sqrt(depth);
    same_on_gpu(gpu, cpu, ulps, sqrt(depth), what, __FILE__, line);
}

/* Compares the result and the first `grads` gradients, of x and w. */
static void same_some(const conv_case *at, dvt_dtype dtype, bool bias, bool whole, int grads) {
    DVT_SCOPE {
        dvt_conv2d_options p = conv_params(at);
        dvt_array *x = numbers(DVT_SHAPE(at->n, at->c, at->h, at->w), dtype, whole);
        int64_t groups = at->groups ? at->groups : 1;
        dvt_array *w = numbers(DVT_SHAPE(at->o, at->c / groups, at->kh, at->kw), dtype, whole);
        dvt_array *b = bias ? numbers(DVT_SHAPE(at->o), dtype, whole) : NULL;
        dvt_array *y = dvt_conv2d(x, w, b, &p);
        if (CHECK(y != NULL)) {
            dvt_array *g = numbers(dvt_shape_of(y), dtype, whole);
            convolved gpu = conv_in(dvt_gpu(0), x, w, b, g, &p, grads);
            convolved cpu = conv_in(dvt_cpu(), x, w, b, g, &p, grads);
            double kernel = (double)at->kh * (double)at->kw / (double)groups;
            double pixels = (double)dvt_size(y) / (double)(at->o ? at->o : 1);
            same_sum(gpu.y, cpu.y, (double)at->c * kernel, whole, at->what, __LINE__);
            if (grads > 0)
                same_sum(gpu.grads[0], cpu.grads[0], (double)at->o * kernel, whole, at->what,
                         __LINE__);
            if (grads > 1)
                same_sum(gpu.grads[1], cpu.grads[1], pixels, whole, at->what, __LINE__);
        }
    }
}

static void same_conv(const conv_case *at, dvt_dtype dtype, bool bias, bool whole) {
    same_some(at, dtype, bias, whole, 2);
}

#define CASES(list) (int)(sizeof(list) / sizeof((list)[0]))

static const conv_case nets[] = {
    {2, 1, 28, 28, 6, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1, "LeNet 1"},
    {2, 6, 14, 14, 16, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1, "LeNet 2"},
    {1, 3, 30, 30, 16, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1, "ResNet stem"},
    {2, 20, 9, 9, 36, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "ResNet 3x3"},
    {2, 24, 9, 9, 40, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, "ResNet 3x3/2"},
    {2, 33, 7, 7, 65, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "1x1"},
    {2, 17, 8, 9, 34, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1, "1x1/2"},
    {1, 3, 16, 16, 40, 4, 4, {4, 4}, {0, 0}, {1, 1}, 1, "patches"},
};

static const conv_case corners[] = {
    {2, 12, 9, 10, 18, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, "groups"},
    {2, 12, 9, 10, 18, 3, 3, {2, 2}, {1, 1}, {1, 1}, 6, "groups of 2 and 3"},
    {2, 7, 11, 9, 7, 3, 3, {1, 1}, {1, 1}, {1, 1}, 7, "depthwise"},
    {2, 7, 11, 9, 14, 5, 5, {2, 2}, {2, 2}, {1, 1}, 7, "depthwise, 5x5/2, two for one"},
    {1, 5, 14, 13, 9, 3, 3, {1, 1}, {2, 2}, {2, 2}, 1, "dilation"},
    {1, 5, 14, 13, 9, 3, 3, {2, 3}, {2, 1}, {2, 2}, 1, "stride and dilation, a common divisor"},
    {1, 5, 17, 13, 9, 3, 2, {3, 2}, {0, 1}, {2, 3}, 1, "stride and dilation, none"},
    {2, 4, 13, 7, 11, 5, 2, {2, 1}, {1, 1}, {1, 2}, 1, "asymmetric"},
    {1, 3, 4, 5, 6, 3, 3, {1, 1}, {5, 4}, {1, 1}, 1, "padding beyond the window"},
    {2, 3, 9, 9, 5, 2, 2, {5, 5}, {0, 0}, {1, 1}, 1, "stride beyond the window"},
    {1, 1, 1, 1, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "one number"},
    {3, 5, 1, 1, 7, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "one pixel"},
    {1, 70, 3, 3, 3, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, "the window is the image"},
    {1, 600, 3, 2, 5, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "a deep sum, in parts"},
    {2, 4, 20, 70, 1, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "one channel out"},
    {2, 1, 70, 70, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, "one weight, in parts"},
    {2, 4, 9, 9, 10, 3, 3, {1, 1 << 30}, {1, 1}, {1, 1}, 1, "64 bits"},
    {2, 4, 9, 9, 4, 3, 3, {2, 1 << 30}, {1, 1}, {1, 1}, 4, "64 bits, depthwise"},
};

DVT_TEST(gpu_conv_nets) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < CASES(nets); i++)
        same_conv(&nets[i], DVT_F32, i % 2 == 0, true);
}

DVT_TEST(gpu_conv_corners) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < CASES(corners); i++)
        same_conv(&corners[i], DVT_F32, i % 2 == 1, true);
}

DVT_TEST(gpu_conv_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_F16, DVT_BF16};
    int i;
    NEEDS_GPU;
    for (i = 0; i < (IN_FULL ? 3 : 1); i++) { /* gpu_conv_float16 has the others too */
        same_conv(&nets[1], dtypes[i], true, true);
        same_conv(&nets[4], dtypes[i], false, true);
        same_conv(&corners[3], dtypes[i], true, true);
    }
}

DVT_TEST(gpu_conv_fractions) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 4; i++) {
        same_conv(&nets[3], dtypes[i], true, false);
        if (EACH(i, 3))
            same_conv(&corners[2], dtypes[i], true, false);
    }
}

/* float16 and bfloat16, on tensor cores where the GPU has them. */
DVT_TEST(gpu_conv_float16) {
    int i;
    NEEDS_GPU;
    for (i = 0; i < CASES(nets); i++)
        same_conv(&nets[i], i % 2 ? DVT_F16 : DVT_BF16, i % 3 == 0, true);
    for (i = 0; i < CASES(corners); i++)
        same_conv(&corners[i], i % 2 ? DVT_BF16 : DVT_F16, i % 3 == 1, true);
}

/* Integers of few bits are exact in TF32 too. */
DVT_TEST(gpu_conv_tf32) {
    bool before;
    int i;
    NEEDS_GPU;
    before = dvt_allow_tf32(true);
    for (i = 0; i < CASES(nets); i++)
        if (EACH(i + 1, 2)) /* float16 uses the tiles of all */
            same_conv(&nets[i], DVT_F32, i % 4 == 1, true);
    same_conv(&corners[5], DVT_F32, true, true);
    same_conv(&corners[15], DVT_F32, true, true);
    dvt_allow_tf32(before);
}

/* Enough tiles for the largest tile size, with a partial last row, column and slice. By default
   only the result and the gradient of the data, which have that tile. */
DVT_TEST(gpu_conv_many_tiles) {
    static const conv_case many = {7, 10,     62,     62,     127, 1,
                                   1, {1, 1}, {0, 0}, {1, 1}, 1,   "128 x 128 forward"};
    static const conv_case back = {7, 127,    62,     62,     10, 1,
                                   1, {1, 1}, {0, 0}, {1, 1}, 1,  "128 x 128 data"};
    NEEDS_GPU;
    same_some(&many, DVT_F32, true, true, IN_FULL ? 2 : 0);
    if (IN_FULL) {
        same_conv(&back, DVT_F32, false, true);
        same_conv(&many, DVT_F16, true, true);
    }
    same_some(&back, DVT_BF16, false, true, IN_FULL ? 2 : 1);
}

/* Sums without terms: the bias alone, or zeros. */
DVT_TEST(gpu_conv_empty_sums) {
    static const conv_case none = {2, 0, 5, 5, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "no channels"};
    static const conv_case nobody = {0, 3, 5, 5, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "no samples"};
    static const conv_case nothing = {2, 3, 5, 5, 0, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, "no results"};
    NEEDS_GPU;
    same_conv(&none, DVT_F32, true, true);
    same_conv(&nobody, DVT_F32, true, true);
    same_conv(&nothing, DVT_F32, false, true);
}

/* A NaN affects only the results that use it; padding is not multiplied. */
DVT_TEST(gpu_conv_special_values) {
    double values[2 * 3 * 6 * 6];
    dvt_conv2d_options p = {{1, 1}, {1, 1}, {1, 1}, 1};
    dvt_array *x, *w;
    int i;
    NEEDS_GPU;
    for (i = 0; i < 2 * 3 * 6 * 6; i++)
        values[i] = i % 50 == 7 ? (double)INFINITY : i % 70 == 60 ? (double)NAN : i % 5;
    x = dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(2, 3, 6, 6), DVT_F64, dvt_cpu()), DVT_F32);
    w = numbers(DVT_SHAPE(4, 3, 3, 3), DVT_F32, true);
    SAME_ON_GPU(dvt_conv2d(dvt_copyto(x, dvt_gpu(0)), dvt_copyto(w, dvt_gpu(0)), NULL, &p),
                dvt_conv2d(x, w, NULL, &p), 0, "NaN and infinity");
}

/* ---- tiles ---- */
#if !defined(_WIN32)
/* 16 and 6 filters with many results take the same tile, 16 x 256, and so the same program. */
DVT_TEST(gpu_conv_few_filters_share_a_tile) {
    static const int64_t filters[] = {16, 6}, images[] = {256, 264};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = driver ? dlsym(driver, "sim_get_stats") : NULL;
    sim_get_stats_fn *get_stats;
    dvt_conv2d_options options;
    int k;
    NEEDS_GPU;
    if (!symbol)
        SKIP("not the simulated driver");
    memcpy(&get_stats, &symbol, sizeof symbol);
    memset(&options, 0, sizeof options);
    for (k = 0; k < 2; k++)
        DVT_SCOPE {
            sim_stats before, after;
            dvt_array *x = dvt_ones(DVT_SHAPE(images[k], 1, 10, 10), DVT_F32, dvt_gpu(0));
            dvt_array *w = dvt_ones(DVT_SHAPE(filters[k], 1, 1, 1), DVT_F32, dvt_gpu(0)), *y;
            CHECK_INT(dvt_wait(x), DVT_OK);
            CHECK_INT(dvt_wait(w), DVT_OK);
            get_stats(&before);
            y = dvt_conv2d(x, w, NULL, &options);
            CHECK_INT(dvt_wait(y), DVT_OK);
            get_stats(&after);
            CHECK_INT(after.blocks - before.blocks, (images[k] * 100 + 255) / 256);
        }
}
#endif
