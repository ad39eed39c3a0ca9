/* Convolutions by Winograd on all ISA targets: within the bound of its rounding steps, with the
   same bits for every target and any number of threads. No byte is accessed outside the
   operands. */
#include "3_cpu/cpu_conv.h"
#include "launches.h"

typedef struct shape {
    int64_t n, c, h, w, o, padding[2];
} shape;

static uint32_t seed = 1;

static uint32_t draw(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static dvti_view view_of(dvt_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.dtype = dtype;
    view.ndim = 4;
    view.dim[0] = a;
    view.dim[1] = b;
    view.dim[2] = c;
    view.dim[3] = d;
    view.stride[3] = 1;
    view.stride[2] = d;
    view.stride[1] = c * d;
    view.stride[0] = b * c * d;
    return view;
}

/* x is transformed: the image, or dy. */
static dvti_launch launch_of(const shape *s, bool data, dvt_dtype dtype, bool bias) {
    const int64_t h = s->h + 2 * s->padding[0] - 2, w = s->w + 2 * s->padding[1] - 2;
    dvti_view x = view_of(dtype, s->n, s->c, s->h, s->w), y = view_of(dtype, s->n, s->o, h, w);
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_conv2d();
    launch.op = data ? DVTI_OP_conv2d_data : DVTI_OP_conv2d;
    launch.n_in = !data && bias ? 3 : 2;
    launch.n_out = 1;
    launch.in[0] = x;
    launch.in[1] = data ? view_of(dtype, s->c, s->o, 3, 3) : view_of(dtype, s->o, s->c, 3, 3);
    launch.in[2] = view_of(dtype, 1, 1, 1, s->o);
    launch.in[2].ndim = 1;
    launch.in[2].dim[0] = s->o;
    launch.in[2].stride[0] = 1;
    launch.out[0] = y;
    launch.i[0] = launch.i[1] = launch.i[4] = launch.i[5] = launch.i[6] = 1;
    launch.i[2] = data ? 2 - s->padding[0] : s->padding[0];
    launch.i[3] = data ? 2 - s->padding[1] : s->padding[1];
    launch.i[7] = 2;
    return launch;
}

static double image_at(const dvti_launch *l, int64_t n, int64_t c, int64_t y, int64_t x) {
    const dvti_view *v = &l->in[0];
    if (y < 0 || y >= v->dim[2] || x < 0 || x >= v->dim[3])
        return 0;
    return load_element(v->data, v->dtype, ((n * v->dim[1] + c) * v->dim[2] + y) * v->dim[3] + x);
}

static double weight_at(const dvti_launch *l, int64_t o, int64_t c, int i, int j) {
    const dvti_view *v = &l->in[1];
    if (l->op == DVTI_OP_conv2d)
        return load_element(v->data, v->dtype, (o * v->dim[1] + c) * 9 + 3 * i + j);
    return load_element(v->data, v->dtype, (c * v->dim[1] + o) * 9 + 8 - 3 * i - j);
}

/* Computes to (rows x rows) = m (rows x cols) * from (cols x cols) * m transposed. */
static void both_sides(const double *m, int rows, int cols, const double *from, double *to) {
    double half[36];
    int i, j, k;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++)
            for (half[i * cols + j] = 0, k = 0; k < cols; k++)
                half[i * cols + j] += m[i * cols + k] * from[k * cols + j];
    for (i = 0; i < rows; i++)
        for (j = 0; j < rows; j++)
            for (to[i * rows + j] = 0, k = 0; k < cols; k++)
                to[i * rows + j] += half[i * cols + k] * m[j * cols + k];
}

/* Absolute values of the matrices: the largest contribution of an element. */
#define H 0.70710678118654752
#define R 1.41421356237309505
static const double of_data[36] = {1, 0, 2.5, 0, 1, 0, 0, R, 2,  H, 1, 0, 0, R, 2, H,   1, 0,
                                   0, H, .5,  R, 1, 0, 0, H, .5, R, 1, 0, 0, 1, 0, 2.5, 0, 1};
static const double of_kernel[18] = {1,      0,     0,      2 / 3., R / 3, 1 / 3.,
                                     2 / 3., R / 3, 1 / 3., 1 / 6., R / 6, 1 / 3.,
                                     1 / 6., R / 6, 1 / 3., 0,      0,     1};
static const double of_sums[24] = {1, 1,  1,  1, 1, 0, 0, H,     H,     R,     R,     0,
                                   0, .5, .5, 2, 2, 0, 0, H / 2, H / 2, 2 * R, 2 * R, 1};
#undef H
#undef R

/* Computes for one tile and channel of the result the exact sums, and the largest sums of absolute
   values in any order of rounding. */
static void expect_tile(const dvti_launch *l, const double *kernels, const double *tiles, int64_t n,
                        int64_t o, int64_t y, int64_t x, double *sum, double *most) {
    const int64_t c = l->in[0].dim[1];
    double m[36] = {0};
    int64_t k;
    int i, j, a, b;
    memset(sum, 0, 16 * sizeof *sum);
    for (k = 0; k < c; k++) {
        for (i = 0; i < 36; i++)
            m[i] += kernels[(o * c + k) * 36 + i] * tiles[k * 36 + i];
        for (i = 0; i < 16; i++)
            for (a = 0; a < 3; a++)
                for (b = 0; b < 3; b++)
                    sum[i] +=
                        weight_at(l, o, k, a, b) * image_at(l, n, k, y + i / 4 + a, x + i % 4 + b);
    }
    both_sides(of_sums, 4, 6, m, most);
    for (j = 0; j < 16 && l->n_in == 3; j++)
        sum[j] += dvti_load_f64(l->in[2].data, l->in[2].dtype, o);
}

/* Roundings of a product: of constants and sums on both sides, of the chain over channels, of the
   results. */
static void check_values(const dvti_launch *l, const char *target) {
    const dvti_view *x = &l->in[0], *out = &l->out[0];
    const int64_t c = x->dim[1], o_all = out->dim[1], h = out->dim[2], w = out->dim[3];
    const int64_t pad[2] = {l->op == DVTI_OP_conv2d ? l->i[2] : 2 - l->i[2],
                            l->op == DVTI_OP_conv2d ? l->i[3] : 2 - l->i[3]};
    const double steps = ((double)c + 30) * 0x1p-24;
    const double last = out->dtype == DVT_F16 ? 0x1p-11 : out->dtype == DVT_BF16 ? 0x1p-8 : 0x1p-24;
    double *kernels = (double *)malloc((size_t)(o_all * c * 36) * sizeof(double));
    double *tiles = (double *)malloc((size_t)(c * 36) * sizeof(double));
    double part[36], sum[16], most[16];
    int64_t n, o, k, y, at_x;
    int i, bad = 0;
    for (o = 0; o < o_all; o++)
        for (k = 0; k < c; k++) {
            for (i = 0; i < 9; i++)
                part[i] = fabs(weight_at(l, o, k, i / 3, i % 3));
            both_sides(of_kernel, 6, 3, part, kernels + (o * c + k) * 36);
        }
    for (n = 0; n < x->dim[0]; n++)
        for (y = 0; y < h; y += 4)
            for (at_x = 0; at_x < w; at_x += 4) {
                for (k = 0; k < c; k++) {
                    for (i = 0; i < 36; i++)
                        part[i] =
                            fabs(image_at(l, n, k, y + i / 6 - pad[0], at_x + i % 6 - pad[1]));
                    both_sides(of_data, 6, 6, part, tiles + k * 36);
                }
                for (o = 0; o < o_all; o++) {
                    expect_tile(l, kernels, tiles, n, o, y - pad[0], at_x - pad[1], sum, most);
                    for (i = 0; i < 16; i++) {
                        const int64_t row = y + i / 4, col = at_x + i % 4;
                        double got;
                        if (row >= h || col >= w)
                            continue;
                        got = dvti_load_f64(out->data, out->dtype,
                                            ((n * o_all + o) * h + row) * w + col);
                        if (!(fabs(got - sum[i]) <=
                              most[i] * steps + fabs(sum[i]) * last * 1.01 + 1e-7) &&
                            !bad++)
                            dvt_test_check(false, __FILE__, __LINE__,
                                           "%s op %d dtype %d: x (%d, %d, %d, %d), %d out: (%d, "
                                           "%d, %d, %d) is %.9g, expected %.9g within %.2g",
                                           target, (int)l->op, (int)out->dtype, (int)x->dim[0],
                                           (int)c, (int)x->dim[2], (int)x->dim[3], (int)o_all,
                                           (int)n, (int)o, (int)row, (int)col, got, sum[i],
                                           most[i] * steps);
                    }
                }
            }
    free(kernels);
    free(tiles);
}

static void check(const shape *s, bool data, dvt_dtype dtype) {
    dvti_launch launch = launch_of(s, data, dtype, draw(2) != 0);
    const bool at_end = draw(2) != 0;
    int64_t size = dvt_dtype_size(dtype), i, bytes = 0;
    guard memory[4];
    char *first;
    const dvti_gemm_blocks blocks = launch_blocks("32K/8,1M/8,32M/16");
    dvti_conv plan;
    int k, threads;
    for (k = 0; k < 4; k++) {
        dvti_view *view = k < 3 ? &launch.in[k] : &launch.out[0];
        bytes = dvti_view_size(view) * size;
        memory[k] = guard_new((size_t)bytes + 1);
        view->data = at_end ? guard_end(memory[k], (size_t)bytes) : guard_start(memory[k]);
        for (i = 0; k < 3 && i < bytes / size; i++)
            dvti_store_f64(view->data, dtype, i, ((int)draw(2001) - 1000) / 512.);
    }
    CHECK(dvti_conv_plan(&plan, &launch, &blocks) && plan.algorithm == DVTI_CONV_WINOGRAD);
    first = (char *)malloc((size_t)bytes + 1);
    for (threads = 1; threads <= 2; threads++) {
        CHECK(dvt_set_num_threads(threads) == DVT_OK);
        FOR_EACH_TARGET({
            memset(launch.out[0].data, 0xff, (size_t)bytes);
            run(&launch, target->name);
            if (threads == 1 && at_target == 0) {
                memcpy(first, launch.out[0].data, (size_t)bytes);
                check_values(&launch, target->name);
            }
            dvt_test_check(memcmp(first, launch.out[0].data, (size_t)bytes) == 0, __FILE__,
                           __LINE__, "%s, %d threads: other bits (op %d)", target->name, threads,
                           (int)launch.op);
        });
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    free(first);
    for (k = 0; k < 4; k++)
        guard_free(memory[k]);
}

/* Covers all widths of the last tile, several vectors of tiles, blocks across images, and channels
   that do not fill a vector. */
DVT_TEST(winograd_is_within_its_bound_on_all_targets_and_threads) {
    static const shape shapes[] = {
        {16, 32, 8, 8, 32, {1, 1}}, {9, 33, 7, 13, 35, {1, 1}},   {5, 32, 14, 14, 40, {1, 1}},
        {2, 40, 9, 70, 32, {1, 0}}, {8, 32, 12, 10, 33, {0, 2}},  {1, 35, 6, 131, 32, {2, 1}},
        {17, 32, 7, 7, 32, {1, 1}}, {3, 32, 38, 11, 130, {1, 1}}, {3, 64, 15, 16, 34, {2, 2}}};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F32, DVT_F16, DVT_BF16};
    size_t i;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check(&shapes[i], false, dtypes[i % 4]);
        if (shapes[i].padding[0] == 1 && shapes[i].padding[1] == 1)
            check(&shapes[i], true, dtypes[(i + 1) % 4]);
    }
}

/* Without permission, or for other shapes, the sums are those of the other methods. */
DVT_TEST(winograd_asks_for_permission) {
    static const shape s = {4, 32, 16, 16, 32, {1, 1}};
    dvti_launch launch = launch_of(&s, false, DVT_F32, false);
    const dvti_gemm_blocks blocks = launch_blocks("32K/8,1M/8,32M/16");
    dvti_conv plan;
    CHECK(dvti_conv_plan(&plan, &launch, &blocks) && plan.algorithm == DVTI_CONV_WINOGRAD);
    launch.i[7] = 1;
    CHECK(dvti_conv_plan(&plan, &launch, &blocks) && plan.algorithm != DVTI_CONV_WINOGRAD);
    launch = launch_of(&s, false, DVT_F32, false);
    launch.op = DVTI_OP_conv2d_weight;
    launch.in[1] = launch.out[0];
    launch.out[0] = view_of(DVT_F32, 32, 32, 3, 3);
    CHECK(dvti_conv_plan(&plan, &launch, &blocks) && plan.algorithm != DVTI_CONV_WINOGRAD);
}
