/* Convolutions on all ISA targets, forward and both gradients. Results agree with sums in float64
   within the rounding bounds. All targets and any number of threads give the same bits. No byte is
   accessed outside the operands. */
#include "3_cpu/cpu_conv.h"
#include "launches.h"

typedef struct shape {
    int64_t n, c, h, w, o, kh, kw, stride[2], padding[2], dilation[2], groups;
} shape;

static uint32_t seed = 1;

static uint32_t draw(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static int64_t extent(const shape *s, int axis) {
    int64_t x = axis ? s->w : s->h, k = axis ? s->kw : s->kh;
    return (x + 2 * s->padding[axis] - (k - 1) * s->dilation[axis] - 1) / s->stride[axis] + 1;
}

static dvti_view view_of(dvt_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t dim[4] = {a, b, c, d};
    int64_t stride = 1;
    dvti_view view;
    int i;
    memset(&view, 0, sizeof view);
    view.dtype = dtype;
    view.ndim = 4;
    for (i = 3; i >= 0; i--) {
        view.dim[i] = dim[i];
        view.stride[i] = stride;
        stride *= dim[i];
    }
    return view;
}

/* Returns the launch without its memory. */
static dvti_launch launch_of(const shape *s, dvti_op op, dvt_dtype dtype, bool bias) {
    dvti_view x = view_of(dtype, s->n, s->c, s->h, s->w);
    dvti_view w = view_of(dtype, s->o, s->c / s->groups, s->kh, s->kw);
    dvti_view y = view_of(dtype, s->n, s->o, extent(s, 0), extent(s, 1));
    dvti_launch launch;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_conv2d();
    launch.op = op;
    launch.n_in = op == DVTI_OP_conv2d && bias ? 3 : 2;
    launch.n_out = 1;
    launch.in[0] = op == DVTI_OP_conv2d_data ? y : x;
    launch.in[1] = op == DVTI_OP_conv2d_weight ? y : w;
    launch.in[2] = view_of(dtype, 1, 1, 1, s->o);
    launch.in[2].ndim = 1;
    launch.in[2].dim[0] = s->o;
    launch.in[2].stride[0] = 1;
    launch.out[0] = op == DVTI_OP_conv2d_data ? x : op == DVTI_OP_conv2d_weight ? w : y;
    for (i = 0; i < 2; i++) {
        launch.i[i] = s->stride[i];
        launch.i[2 + i] = s->padding[i];
        launch.i[4 + i] = s->dilation[i];
    }
    launch.i[6] = s->groups;
    return launch;
}

/* Computes the result in float64 with the oracle. Or computes that of the absolute values of the
   operands with the best ISA target, as a bound. */
static double *oracle(const dvti_launch *of, const shape *s, bool absolute) {
    dvti_launch launch = launch_of(s, of->op, DVT_F64, of->n_in == 3);
    double *memory[4];
    int k;
    for (k = 0; k < 4; k++) {
        dvti_view *view = k < launch.n_in ? &launch.in[k] : &launch.out[0];
        int64_t n = dvti_view_size(view), i;
        memory[k] = NULL;
        if (k >= launch.n_in && k != 3)
            continue;
        memory[k] = (double *)malloc((size_t)(n + 1) * sizeof(double));
        view->data = memory[k];
        for (i = 0; k < 3 && i < n; i++) {
            double v = dvti_load_f64(of->in[k].data, of->in[k].dtype, i);
            memory[k][i] = absolute ? fabs(v) : v;
        }
    }
    run(&launch, absolute ? NULL : "reference");
    for (k = 0; k < 3; k++)
        free(memory[k]);
    return memory[3];
}

static double epsilon_of(dvt_dtype dtype) {
    return dtype == DVT_F16 ? 0x1p-11 : dtype == DVT_BF16 ? 0x1p-8 : 0;
}

/* Returns the error bound of sums of `terms` terms in float32 or float64, rounded to the dtype
   once. */
static void check_values(const dvti_launch *launch, const shape *s, const char *target,
                         const double *expected, const double *size) {
    int64_t n = dvti_view_size(&launch->out[0]), i;
    const double unit = launch->out[0].dtype == DVT_F64 ? 0x1p-52 : 0x1p-24;
    double terms = launch->op == DVTI_OP_conv2d ? (double)(s->c / s->groups * s->kh * s->kw)
                   : launch->op == DVTI_OP_conv2d_data
                       ? (double)(s->o / s->groups * s->kh * s->kw)
                       : (double)(s->n * extent(s, 0) * extent(s, 1));
    for (i = 0; i < n; i++) {
        double want =
            launch->epilogue.activation == DVTI_RELU && !(expected[i] > 0) ? 0 : expected[i];
        double got = dvti_load_f64(launch->out[0].data, launch->out[0].dtype, i);
        double bound = size[i] * (terms + 2) * unit +
                       fabs(expected[i]) * epsilon_of(launch->out[0].dtype) * 1.01 + 2 * unit;
        if (!(fabs(got - want) <= bound)) {
            dvt_test_check(false, __FILE__, __LINE__,
                           "%s op %d dtype %d: x (%d, %d, %d, %d) w (%d, ., %d, %d) stride %d %d "
                           "padding %d %d dilation %d %d groups %d: element %d is %.9g, expected "
                           "%.9g within %.2g",
                           target, (int)launch->op, (int)launch->out[0].dtype, (int)s->n, (int)s->c,
                           (int)s->h, (int)s->w, (int)s->o, (int)s->kh, (int)s->kw,
                           (int)s->stride[0], (int)s->stride[1], (int)s->padding[0],
                           (int)s->padding[1], (int)s->dilation[0], (int)s->dilation[1],
                           (int)s->groups, (int)i, got, want, bound);
            return;
        }
    }
}

static void check_op(const shape *s, dvti_op op, dvt_dtype dtype, bool at_end, const int *threads) {
    dvti_launch launch = launch_of(s, op, dtype, draw(2) != 0);
    int64_t size = dvt_dtype_size(dtype), i, out_bytes = 0;
    double *expected, *sizes;
    char *first = NULL;
    guard memory[4];
    int k;
    if (op == DVTI_OP_conv2d && dtype == DVT_F32 && draw(2))
        launch.epilogue.activation =
            DVTI_RELU; /* relu follows, which cannot increase a difference */
    for (k = 0; k < 4; k++) {
        dvti_view *view = k < 3 ? &launch.in[k] : &launch.out[0];
        int64_t n = dvti_view_size(view);
        memory[k] = guard_new((size_t)(n * size) + 1);
        view->data = at_end ? guard_end(memory[k], (size_t)(n * size)) : guard_start(memory[k]);
        for (i = 0; k < 3 && i < n; i++)
            dvti_store_f64(view->data, dtype, i, ((int)draw(2001) - 1000) / 512.);
        out_bytes = n * size;
    }
    expected = oracle(&launch, s, false);
    sizes = oracle(&launch, s, true);
    first = (char *)malloc((size_t)out_bytes + 1);
    for (k = 0; threads[k]; k++) {
        CHECK(dvt_set_num_threads(threads[k]) == DVT_OK);
        FOR_EACH_TARGET({
            bool is_first = k == 0 && target == targets_of_this_machine[0];
            memset(launch.out[0].data, 0xff, (size_t)out_bytes);
            run(&launch, target->name);
            if (is_first) {
                memcpy(first, launch.out[0].data, (size_t)out_bytes);
                check_values(&launch, s, target->name, expected, sizes);
            } else if (memcmp(first, launch.out[0].data, (size_t)out_bytes) != 0) {
                dvt_test_check(false, __FILE__, __LINE__, "%s, %d threads: other bits (op %d)",
                               target->name, threads[k], (int)op);
                check_values(&launch, s, target->name, expected, sizes);
            }
        });
    }
    free(first);
    free(expected);
    free(sizes);
    for (k = 0; k < 4; k++)
        guard_free(memory[k]);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
}

static void check_shape(const shape *s, dvt_dtype dtype, const int *threads) {
    static const dvti_op ops[] = {DVTI_OP_conv2d, DVTI_OP_conv2d_data, DVTI_OP_conv2d_weight};
    int k;
    for (k = 0; k < 3; k++)
        check_op(s, ops[k], dtype, draw(2) != 0, threads);
}

static const int one_thread[] = {1, 0}, some_threads[] = {1, 2, 8, 0};

DVT_TEST(convolutions_of_every_width) {
    shape s = {2, 3, 5, 1, 7, 3, 1, {1, 1}, {1, 0}, {1, 1}, 1};
    for (s.w = 1; s.w <= 40; s.w++)
        for (s.kw = 1; s.kw <= 4; s.kw += 3) {
            s.padding[1] = s.w % 3;
            s.stride[1] = 1 + s.w % 2;
            s.o = 1 + s.w % 13;
            if (s.w + 2 * s.padding[1] >= s.kw)
                check_shape(&s, DVT_F32, one_thread);
        }
}

DVT_TEST(convolutions_at_random) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int i, axis;
    for (i = 0; i < 180; i++) {
        shape s;
        s.groups = 1 + (i % 4 == 3) * (1 + draw(3));
        s.n = 1 + draw(4);
        s.c = s.groups * (1 + draw(6));
        s.o = s.groups * (1 + draw(9));
        s.kh = 1 + draw(4);
        s.kw = 1 + draw(4);
        for (axis = 0; axis < 2; axis++) {
            s.stride[axis] = 1 + draw(3);
            s.padding[axis] = draw(4);
            s.dilation[axis] = 1 + draw(3);
        }
        s.h = 1 + draw(14);
        s.w = 1 + draw(30);
        if (extent(&s, 0) > 0 && extent(&s, 1) > 0 &&
            s.h + 2 * s.padding[0] > (s.kh - 1) * s.dilation[0] &&
            s.w + 2 * s.padding[1] > (s.kw - 1) * s.dilation[1])
            check_shape(&s, dtypes[draw(5)], i % 10 ? one_thread : some_threads);
    }
}

/* One shape for each way to divide the work: rows and images of a block, ranges of k, channel
   tiles, batch ranges, groups. */
DVT_TEST(convolutions_that_are_cut) {
    /* clang-format off */
    static const shape shapes[] = {
        {9, 1, 28, 28, 20, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1},   /* LeNet */
        {9, 1, 28, 28, 6, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1},    /* weights by lanes */
        {9, 6, 12, 12, 16, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},   /* to data by shift and add */
        {2, 5, 5, 9, 400, 2, 2, {1, 1}, {0, 0}, {1, 1}, 1},    /* the same in steps of k */
        {2, 8, 30, 37, 14, 2, 3, {1, 1}, {0, 1}, {2, 3}, 2},   /* pieces that end in a row */
        {9, 20, 12, 12, 50, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1},  /* an image is a panel */
        {5, 64, 7, 7, 70, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},    /* images share a panel */
        {1, 130, 9, 9, 65, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},   /* steps of k, few tasks */
        {1, 3, 67, 65, 33, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1},   /* phases of columns */
        {2, 40, 10, 33, 300, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1}, /* pointwise, in place */
        {2, 40, 11, 33, 20, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1},  /* pointwise, every second pixel */
        {2, 40, 11, 33, 20, 1, 1, {1, 1}, {1, 2}, {1, 1}, 1},  /* pointwise, padded */
        {2, 34, 15, 33, 34, 3, 3, {2, 2}, {1, 1}, {1, 1}, 34}, /* depthwise */
        {3, 600, 1, 1, 410, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},  /* one window per image */
        {1, 20, 130, 60, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},  /* blocks of rows */
        {5, 90, 8, 9, 7, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},     /* pieces of the input channels */
        {3, 44, 23, 19, 33, 3, 2, {2, 3}, {1, 2}, {1, 1}, 1},  /* NHWC weights, with strides */
        {2, 45, 23, 29, 9, 3, 3, {1, 1}, {2, 2}, {2, 2}, 1},   /* tap by tap, windows in steps */
        {2, 45, 21, 24, 70, 3, 3, {2, 1}, {1, 1}, {1, 1}, 1},  /* rows sorted by their remainder */
        {2, 500, 8, 8, 60, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},   /* many channels of 1 x 1 */
        {1, 20, 41, 52, 48, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},  /* wide rows, many output channels */
        {3, 12, 17, 40, 44, 3, 2, {2, 1}, {2, 0}, {2, 2}, 2},  /* all parameters */
        {2, 4, 3, 3, 5, 9, 9, {1, 1}, {4, 4}, {1, 1}, 1},      /* kernel larger than image */
        {3, 40, 14, 14, 21, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},  /* two images of three in a block */
        {4, 20, 14, 14, 130, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1}, /* threads share output channels */
        {4, 40, 4, 14, 21, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},   /* copies that fill whole vectors */
        {5, 104, 6, 7, 9, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},    /* and pieces of channels */
        {3, 72, 9, 16, 10, 3, 2, {1, 1}, {3, 1}, {2, 3}, 2},   /* groups, dilation */
        {2, 26, 3, 5, 41, 5, 5, {1, 1}, {4, 4}, {1, 1}, 1},    /* rows that see only padding */
        {1, 24, 40, 60, 12, 3, 3, {1, 1}, {2, 1}, {4, 1}, 1},  /* dilated rows in blocks */
        {2, 2, 40, 40, 3, 33, 33, {1, 1}, {0, 0}, {1, 1}, 1},  /* a kernel of 1089 taps */
        {1, 1, 5, 6, 1, 1, 2, {9, 70}, {90, 900}, {1, 3}, 1}}; /* mostly padding */
    /* clang-format on */
    size_t i;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_shape(&shapes[i], DVT_F32, some_threads);
        if (i % 2 == 0)
            check_shape(&shapes[i], DVT_BF16, one_thread);
    }
}

/* Each method has a shape and an operation that takes it. Every dtype but float32 uses im2col. */
DVT_TEST(every_algorithm_of_convolution_is_chosen) {
    static const struct {
        shape s;
        dvti_op op;
        dvt_dtype dtype;
        dvti_conv_algorithm algorithm;
        dvti_conv_patches patches;
        bool transposed;
    } choices[] = {{{2, 9, 8, 8, 6, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
                    DVTI_OP_conv2d,
                    DVT_F32,
                    DVTI_CONV_POINTWISE,
                    DVTI_CONV_SHIFTED,
                    false},
                   {{2, 9, 8, 8, 6, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
                    DVTI_OP_conv2d_data,
                    DVT_F32,
                    DVTI_CONV_POINTWISE,
                    DVTI_CONV_SHIFTED,
                    true},
                   {{2, 9, 8, 8, 9, 3, 3, {1, 1}, {0, 0}, {1, 1}, 9},
                    DVTI_OP_conv2d,
                    DVT_F32,
                    DVTI_CONV_DEPTHWISE,
                    DVTI_CONV_SHIFTED,
                    false},
                   {{2, 9, 8, 8, 9, 3, 3, {1, 1}, {0, 0}, {1, 1}, 9},
                    DVTI_OP_conv2d_weight,
                    DVT_F32,
                    DVTI_CONV_DEPTHWISE,
                    DVTI_CONV_SHIFTED,
                    false},
                   {{2, 9, 12, 12, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_SHIFTED,
                    false},
                   {{2, 9, 12, 12, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d_data,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_SHIFTED,
                    true},
                   {{2, 9, 12, 12, 6, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
                    DVTI_OP_conv2d_data,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_SHIFT_ADD,
                    false},
                   {{2, 9, 12, 12, 6, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d_data,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_IM2COL,
                    false},
                   {{2, 9, 7, 7, 48, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_IM2COL,
                    false},
                   {{2, 9, 7, 7, 48, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d_weight,
                    DVT_F32,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_IM2COL,
                    false},
                   {{2, 16, 7, 7, 17, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
                    DVTI_OP_conv2d_weight,
                    DVT_F32,
                    DVTI_CONV_NHWC_WEIGHTS,
                    DVTI_CONV_SHIFTED,
                    false},
                   {{2, 9, 8, 8, 6, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},
                    DVTI_OP_conv2d,
                    DVT_F64,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_IM2COL,
                    false},
                   {{2, 9, 8, 8, 9, 3, 3, {1, 1}, {0, 0}, {1, 1}, 9},
                    DVTI_OP_conv2d_weight,
                    DVT_F16,
                    DVTI_CONV_DIRECT,
                    DVTI_CONV_IM2COL,
                    false}};

    size_t i;
    for (i = 0; i < sizeof choices / sizeof *choices; i++) {
        dvti_launch launch = launch_of(&choices[i].s, choices[i].op, choices[i].dtype, false);
        const dvti_gemm_blocks blocks = launch_blocks("32K/8,1M/8,32M/16");
        dvti_conv plan;
        CHECK(dvti_conv_plan(&plan, &launch, &blocks));
        CHECK_INT(plan.algorithm, choices[i].algorithm);
        if (plan.algorithm == DVTI_CONV_DIRECT)
            CHECK_INT(plan.u.direct.patches, choices[i].patches);
        CHECK_INT(plan.transposed, choices[i].transposed);
    }
}

/* Compares the oracle, Winograd and all other methods: the ReLU of the same sums, with NaN and
   zeros of both signs. */
DVT_TEST(relu_follows_every_convolution) {
    static const shape shapes[] = {
        {2, 3, 12, 12, 5, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},   /* shifted copies */
        {2, 2, 7, 32, 5, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1},    /* pointwise */
        {2, 60, 7, 7, 50, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},   /* im2col */
        {2, 6, 9, 9, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 6},     /* depthwise */
        {2, 32, 24, 24, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1}, /* Winograd, if permitted */
        {1, 3, 67, 65, 5, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1}};  /* blocks of rows */
    size_t i;
    int64_t k, n;
    int way;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (way = 0; way < 4; way += 2) {
            dvti_launch launch = launch_of(&shapes[i], DVTI_OP_conv2d, DVT_F32, false);
            float *memory[3], *plain;
            for (k = 0; k < 3; k++) {
                dvti_view *view = k < 2 ? &launch.in[k] : &launch.out[0];
                int64_t j;
                n = dvti_view_size(view);
                view->data = memory[k] = (float *)malloc((size_t)n * sizeof(float));
                for (j = 0; j < n; j++)
                    memory[k][j] = (float)((int)draw(2001) - 1000) / 512;
            }
            n = dvti_view_size(&launch.out[0]);
            memory[0][5] = NAN;
            plain = (float *)malloc((size_t)n * sizeof(float));
            FOR_EACH_TARGET({
                launch.i[7] = way;
                launch.epilogue.activation = DVTI_NO_ACTIVATION;
                run(&launch, target->name);
                memcpy(plain, memory[2], (size_t)n * sizeof(float));
                launch.epilogue.activation = DVTI_RELU;
                run(&launch, target->name);
                for (k = 0; k < n; k++) {
                    float want = plain[k] <= 0 ? 0 : plain[k];
                    if (memcmp(&want, &memory[2][k], sizeof want) != 0)
                        break;
                }
                CHECK_INT(k, n);
            });
            launch.i[7] = way;
            launch.epilogue.activation = DVTI_NO_ACTIVATION;
            run(&launch, "reference");
            memcpy(plain, memory[2], (size_t)n * sizeof(float));
            launch.epilogue.activation = DVTI_RELU;
            run(&launch, "reference");
            for (k = 0;
                 k < n && (plain[k] != plain[k] || memory[2][k] == (plain[k] <= 0 ? 0 : plain[k]));)
                k++;
            CHECK_INT(k, n);
            for (k = 0; k < 3; k++)
                free(memory[k]);
            free(plain);
        }
}

/* A workspace of another ISA target, or of none, is sufficient. */
DVT_TEST(convolutions_when_the_target_changes) {
    static const shape s = {4, 6, 9, 9, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1};
    const char *names[2] = {"reference", NULL};
    dvti_launch launch = launch_of(&s, DVTI_OP_conv2d, DVT_F32, false);
    float *memory[3], *result[2];
    int k, i;
    for (k = 0; k < 3; k++) {
        dvti_view *view = k < 2 ? &launch.in[k] : &launch.out[0];
        int64_t n = dvti_view_size(view);
        memory[k] = (float *)malloc((size_t)n * sizeof(float));
        view->data = memory[k];
        for (i = 0; i < n; i++)
            memory[k][i] = (float)((int)draw(17) - 8); /* integers: every order adds them exactly */
    }
    for (k = 0; k < 2; k++) {
        size_t bytes = (size_t)dvti_view_size(&launch.out[0]) * sizeof(float);
        CHECK(dvt_set_cpu_isa(names[k]) == DVT_OK);
        launch.workspace_bytes = dvti_cpu_plan(cpu_device(), &launch);
        launch.workspace = malloc((size_t)launch.workspace_bytes);
        CHECK(dvt_set_cpu_isa(names[!k]) == DVT_OK);
        memset(launch.out[0].data, 0xff, bytes);
        dvti_cpu_run(&launch);
        result[k] = (float *)malloc(bytes);
        memcpy(result[k], launch.out[0].data, bytes);
        free(launch.workspace);
        if (k)
            CHECK(memcmp(result[0], result[1], bytes) == 0);
    }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    for (k = 0; k < 3; k++)
        free(memory[k]);
    free(result[0]);
    free(result[1]);
}
