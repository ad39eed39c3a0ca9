/* Tests of convolution and its gradients against plain loops in double: shapes, parameters, dtypes,
   threads, errors. */
#include "dvt_test.h"
#include <limits.h>

typedef struct conv_case {
    int64_t n, c, h, w, o, kh, kw;
    dvt_conv2d_options p;
} conv_case;

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] = dvt_test_random(-1, 1);
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

static int64_t field(int value, int64_t unset) {
    return value ? value : unset;
}

/* Returns the padding of one axis. A second value of 0 repeats the first; DVT_PAD_NONE is 0. */
static int padding_of(const dvt_conv2d_options *p, int axis) {
    int value = axis && !p->padding[1] ? p->padding[0] : p->padding[axis];
    return value == DVT_PAD_NONE ? 0 : value;
}

/* y, and the gradients of sum(y * g). */
typedef struct conv_values {
    double *y, *dx, *dw, *db;
    int64_t oh, ow, y_size, x_size, w_size;
} conv_values;

static conv_values naive(const conv_case *t, const double *x, const double *w, const double *b,
                         const double *g) {
    int64_t sh = field(t->p.stride[0], 1), sw = field(t->p.stride[1], sh);
    int64_t dh = field(t->p.dilation[0], 1), dw = field(t->p.dilation[1], dh);
    int64_t groups = field(t->p.groups, 1), cg = t->c / groups, og = t->o / groups;
    int64_t ph = padding_of(&t->p, 0), pw = padding_of(&t->p, 1);
    int64_t n, o, i, j, c, r, s;
    conv_values v;
    v.oh = (t->h + 2 * ph - dh * (t->kh - 1) - 1) / sh + 1;
    v.ow = (t->w + 2 * pw - dw * (t->kw - 1) - 1) / sw + 1;
    v.y_size = t->n * t->o * v.oh * v.ow;
    v.x_size = t->n * t->c * t->h * t->w;
    v.w_size = t->o * cg * t->kh * t->kw;
    v.y = (double *)calloc((size_t)v.y_size + 1, sizeof(double));
    v.dx = (double *)calloc((size_t)v.x_size + 1, sizeof(double));
    v.dw = (double *)calloc((size_t)v.w_size + 1, sizeof(double));
    v.db = (double *)calloc((size_t)t->o + 1, sizeof(double));
    for (n = 0; n < t->n; n++)
        for (o = 0; o < t->o; o++)
            for (i = 0; i < v.oh; i++)
                for (j = 0; j < v.ow; j++) {
                    int64_t at = ((n * t->o + o) * v.oh + i) * v.ow + j;
                    v.y[at] = b[o];
                    v.db[o] += g[at];
                    for (c = 0; c < cg; c++)
                        for (r = 0; r < t->kh; r++)
                            for (s = 0; s < t->kw; s++) {
                                int64_t up = i * sh - ph + r * dh;
                                int64_t left = j * sw - pw + s * dw;
                                int64_t wa = ((o * cg + c) * t->kh + r) * t->kw + s, xa;
                                if (up < 0 || up >= t->h || left < 0 || left >= t->w)
                                    continue;
                                xa = ((n * t->c + o / og * cg + c) * t->h + up) * t->w + left;
                                v.y[at] += x[xa] * w[wa];
                                v.dx[xa] += g[at] * w[wa];
                                v.dw[wa] += g[at] * x[xa];
                            }
                }
    return v;
}

static void naive_free(conv_values *v) {
    free(v->y);
    free(v->dx);
    free(v->dw);
    free(v->db);
}

static double tolerance_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? 1e-13 : dtype == DVT_F32 ? 2e-5 : dtype == DVT_F16 ? 2e-2 : 2e-1;
}

static int all_equal(dvt_array *x, const double *expected, int64_t n, double tolerance) {
    return dvt_test_equal(x, expected, n, tolerance, __FILE__, __LINE__);
}

static void check_conv(const conv_case *t, dvt_dtype dtype) {
    int64_t groups = field(t->p.groups, 1);
    DVT_SCOPE {
        dvt_array *x = random_array(DVT_SHAPE(t->n, t->c, t->h, t->w), dtype);
        dvt_array *w = random_array(DVT_SHAPE(t->o, t->c / groups, t->kh, t->kw), dtype);
        dvt_array *b = random_array(DVT_SHAPE(t->o), dtype), *y = NULL, *g;
        double *vx = dvt_test_values(x), *vw = dvt_test_values(w), *vb = dvt_test_values(b), *vg;
        double tolerance = tolerance_of(dtype);
        conv_values v;
        int ok;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        dvt_attach_grad(w, DVT_GRAD_WRITE);
        dvt_attach_grad(b, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = dvt_conv2d(x, w, b, &t->p);
        }
        CHECK(y != NULL);
        g = random_array(dvt_shape_of(y), dtype);
        vg = dvt_test_values(g);
        v = naive(t, vx, vw, vb, vg);
        CHECK_INT(dvt_dim(y, 2), v.oh);
        CHECK_INT(dvt_dim(y, 3), v.ow);
        CHECK_INT(dvt_dtype_of(y), dtype);
        ok = all_equal(y, v.y, v.y_size, tolerance);
        CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
        ok = all_equal(dvt_grad(x), v.dx, v.x_size, tolerance) && ok;
        ok = all_equal(dvt_grad(w), v.dw, v.w_size, 8 * tolerance) && ok;
        ok = all_equal(dvt_grad(b), v.db, t->o, 8 * tolerance) && ok;
        if (!ok)
            printf("  x (%lld, %lld, %lld, %lld) w (%lld, %lld, %lld, %lld) stride %d %d padding "
                   "%d %d dilation %d %d groups %d %s\n",
                   (long long)t->n, (long long)t->c, (long long)t->h, (long long)t->w,
                   (long long)t->o, (long long)(t->c / groups), (long long)t->kh, (long long)t->kw,
                   t->p.stride[0], t->p.stride[1], t->p.padding[0], t->p.padding[1],
                   t->p.dilation[0], t->p.dilation[1], t->p.groups, dvt_dtype_name(dtype));
        naive_free(&v);
        free(vx);
        free(vw);
        free(vb);
        free(vg);
    }
}

static int random_int(int low, int high) {
    return low + (int)dvt_test_random(0, high - low + 1);
}

DVT_TEST(conv2d_random_cases) {
    int i;
    for (i = 0; i < 150; i++) {
        conv_case t;
        int axis, reach[2];
        memset(&t, 0, sizeof t);
        t.p.groups = random_int(0, 3);
        t.n = random_int(1, 5);
        t.c = field(t.p.groups, 1) * random_int(1, 3);
        t.o = field(t.p.groups, 1) * random_int(1, 4);
        t.kh = random_int(1, 4);
        t.kw = random_int(1, 4);
        for (axis = 0; axis < 2; axis++) {
            t.p.stride[axis] = random_int(0, 3);
            t.p.padding[axis] = random_int(-1, 2);
            if (t.p.padding[axis] < 0)
                t.p.padding[axis] = DVT_PAD_NONE;
            t.p.dilation[axis] = random_int(0, 2);
        }
        reach[0] = (int)(field(t.p.dilation[0], 1) * (t.kh - 1));
        reach[1] = (int)(field(t.p.dilation[1], field(t.p.dilation[0], 1)) * (t.kw - 1));
        t.h = random_int(reach[0] + 1, reach[0] + 7);
        t.w = random_int(reach[1] + 1, reach[1] + 7);
        check_conv(&t, i % 3 ? DVT_F32 : DVT_F64);
    }
}

/* Shapes larger than one tile in every direction, and shapes of common networks. */
DVT_TEST(conv2d_larger_cases) {
    static const conv_case t[] = {
        {3, 1, 28, 28, 6, 5, 5, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {5, 6, 12, 12, 16, 3, 3, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {2, 33, 5, 5, 101, 3, 3, {{0, 0}, {1, 1}, {0, 0}, 0}},
        {2, 12, 9, 9, 12, 3, 3, {{2, 0}, {1, 1}, {0, 0}, 12}},
        {1, 4, 40, 7, 5, 1, 1, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {40, 2, 3, 3, 3, 3, 3, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {1, 1, 1, 700, 2, 1, 300, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {1, 300, 2, 2, 2, 2, 2, {{0, 0}, {0, 0}, {0, 0}, 0}},
        {2, 2, 3, 2, 3, 3, 2, {{3, 2}, {7, 9}, {0, 0}, 0}},
    };
    int i;
    for (i = 0; i < (int)(sizeof t / sizeof t[0]); i++)
        check_conv(&t[i], DVT_F32);
}

DVT_TEST(conv2d_float16_and_bfloat16) {
    static const conv_case t = {2, 3, 6, 5, 4, 3, 2, {{0, 0}, {1, 0}, {0, 0}, 0}};
    static const conv_case grouped = {2, 4, 6, 5, 4, 3, 2, {{2, 1}, {1, 1}, {0, 0}, 2}};
    check_conv(&t, DVT_F16);
    check_conv(&t, DVT_BF16);
    check_conv(&grouped, DVT_F16);
}

DVT_TEST(conv2d_views_and_mixed_dtypes) {
    dvt_array *x = random_array(DVT_SHAPE(4, 5, 6, 3), DVT_F32);
    dvt_array *w = random_array(DVT_SHAPE(2, 3, 3, 7), DVT_F32);
    dvt_array *xv = dvt_transpose(x, DVT_AXES(0, 3, 1, 2)), *wv = dvt_slice(w, 3, 1, 6, 2);
    double *expected =
        dvt_test_values(dvt_conv2d(dvt_contiguous(xv), dvt_contiguous(wv), NULL, NULL));
    dvt_array *y = dvt_conv2d(xv, wv, NULL, NULL), *wide;
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(4, 2, 3, 4)));
    all_equal(y, expected, dvt_size(y), 0);
    wide = dvt_conv2d(xv, dvt_as_in_dtype(wv, DVT_F64), NULL, NULL);
    CHECK_INT(dvt_dtype_of(wide), DVT_F64);
    all_equal(wide, expected, dvt_size(y), 1e-5);
    y = dvt_conv2d(
        dvt_broadcast_to(dvt_ones(DVT_SHAPE(1, 1, 1), DVT_F32, dvt_cpu()), DVT_SHAPE(2, 1, 3, 3)),
        dvt_ones(DVT_SHAPE(1, 1, 2, 2), DVT_F32, dvt_cpu()), NULL, NULL);
    CHECK_VALUES(y, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    free(expected);
}

DVT_TEST(conv2d_empty) {
    dvt_array *none = dvt_zeros(DVT_SHAPE(0, 2, 4, 4), DVT_F32, dvt_cpu());
    dvt_array *w = random_array(DVT_SHAPE(3, 2, 2, 2), DVT_F32), *y = NULL;
    dvt_array *nothing = dvt_zeros(DVT_SHAPE(1, 0, 2, 2), DVT_F32, dvt_cpu());
    dvt_array *from_nothing = dvt_zeros(DVT_SHAPE(2, 0, 1, 1), DVT_F32, dvt_cpu());
    dvt_array *to_nothing = dvt_zeros(DVT_SHAPE(0, 2, 1, 1), DVT_F32, dvt_cpu());
    dvt_array *x = random_array(DVT_SHAPE(1, 2, 2, 2), DVT_F32), *flat;
    dvt_conv2d_options padded = {{0, 0}, {1, 1}, {0, 0}, 0};
    dvt_attach_grad(w, DVT_GRAD_WRITE);
    dvt_attach_grad(none, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_conv2d(none, w, NULL, NULL);
    }
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0, 3, 3, 3)));
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_sum(dvt_abs(dvt_grad(w)), DVT_ALL), 0, 0);
    /* Without input channels the result is the bias. */
    y = dvt_conv2d(nothing, from_nothing, DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 1, 2), NULL);
    CHECK_VALUES(y, 0, 1, 1, 1, 1, 2, 2, 2, 2);
    /* Without output channels the gradient is zero. */
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_conv2d(x, to_nothing, NULL, NULL);
    }
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(1, 0, 2, 2)));
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    /* An empty height: windows cover padding only. */
    flat = dvt_zeros(DVT_SHAPE(1, 2, 0, 2), DVT_F32, dvt_cpu());
    y = dvt_conv2d(flat, w, DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3), &padded);
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(1, 3, 1, 3)));
    CHECK_VALUES(y, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3);
}

DVT_TEST(conv2d_pairs) {
    static const struct {
        dvt_conv2d_options p;
        int64_t height, width;
    } t[] = {{{{0}, {2}, {0}, 0}, 6, 7},
             {{{0}, {0, 2}, {0}, 0}, 2, 7},
             {{{0}, {2, DVT_PAD_NONE}, {0}, 0}, 6, 3},
             {{{0}, {DVT_PAD_NONE, 2}, {0}, 0}, 2, 7},
             {{{0}, {DVT_PAD_NONE}, {0}, 0}, 2, 3},
             {{{2}, {2}, {0}, 0}, 3, 4},
             {{{0, 2}, {0}, {2}, 0}, 2, 1}};

    dvt_array *x = dvt_zeros(DVT_SHAPE(1, 1, 4, 5), DVT_F32, dvt_cpu());
    dvt_array *w = dvt_zeros(DVT_SHAPE(1, 1, 3, 3), DVT_F32, dvt_cpu());
    dvt_conv2d_options wrong;
    int i;
    for (i = 0; i < (int)(sizeof t / sizeof t[0]); i++) {
        /* a window of 2 for the dilated case */
        dvt_array *window = t[i].p.dilation[0] ? dvt_slice(w, 2, 0, 2, 1) : w;
        dvt_array *y = dvt_conv2d(x, window, NULL, &t[i].p);
        CHECK_INT(dvt_dim(y, 2), t[i].height);
        CHECK_INT(dvt_dim(y, 3), t[i].width);
    }
    /* DVT_PAD_NONE is no stride, and other negative paddings are errors. */
    memset(&wrong, 0, sizeof wrong);
    wrong.stride[1] = DVT_PAD_NONE;
    CHECK_ERROR(dvt_conv2d(x, w, NULL, &wrong), DVT_ERR_RANGE);
    wrong.stride[1] = 0;
    wrong.dilation[0] = DVT_PAD_NONE;
    CHECK_ERROR(dvt_conv2d(x, w, NULL, &wrong), DVT_ERR_RANGE);
    wrong.dilation[0] = 0;
    for (i = 0; i < 2; i++) {
        static const int negative[] = {-1, INT_MIN};
        wrong.padding[0] = negative[i];
        CHECK_ERROR(dvt_conv2d(x, w, NULL, &wrong), DVT_ERR_RANGE);
        wrong.padding[0] = 1;
        wrong.padding[1] = negative[i];
        CHECK_ERROR(dvt_conv2d(x, w, NULL, &wrong), DVT_ERR_RANGE);
    }
}

/* The gradients too: those of the weights are sums over the batch. */
DVT_TEST(conv2d_same_bits_for_any_threads) {
    static const int64_t batch[] = {1, 7, 64};
    int i, k, threads;
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            dvt_array *x = random_array(DVT_SHAPE(batch[i], 4, 14, 14), DVT_F32);
            dvt_array *w = random_array(DVT_SHAPE(10, 4, 3, 3), DVT_F32);
            dvt_array *first[3] = {NULL, NULL, NULL};
            dvt_attach_grad(x, DVT_GRAD_WRITE);
            dvt_attach_grad(w, DVT_GRAD_WRITE);
            for (threads = 1; threads <= 3; threads++) {
                dvt_array *now[3];
                dvt_set_num_threads(threads);
                DVT_RECORD {
                    now[0] = dvt_conv2d(x, w, NULL, NULL);
                    dvt_backward(dvt_square(now[0]));
                }
                now[1] = dvt_copy(dvt_grad(x));
                now[2] = dvt_copy(dvt_grad(w));
                for (k = 0; k < 3; k++) {
                    if (first[k])
                        CHECK(memcmp(dvt_data(first[k]), dvt_data(now[k]),
                                     (size_t)dvt_nbytes(now[k])) == 0);
                    else
                        first[k] = now[k];
                }
            }
        }
    dvt_set_num_threads(0);
}

/* Returns the result and the gradients of x and w. */
static void with_gradients(dvt_array *x, dvt_array *w, dvt_array *bias, dvt_array **to) {
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    p.padding[0] = 1;
    DVT_RECORD {
        to[0] = dvt_conv2d(x, w, bias, &p);
        dvt_backward(dvt_square(to[0]));
    }
    to[1] = dvt_copy(dvt_grad(x));
    to[2] = dvt_copy(dvt_grad(w));
}

/* The permission changes nothing where the reference computes. */
DVT_TEST(conv2d_by_winograd_on_request) {
    const bool fast = strcmp(dvt_cpu_isa(), "reference") != 0;
    DVT_SCOPE {
        dvt_array *x = random_array(DVT_SHAPE(4, 33, 14, 17), DVT_F32);
        dvt_array *w = random_array(DVT_SHAPE(40, 33, 3, 3), DVT_F32);
        dvt_array *bias = random_array(DVT_SHAPE(40), DVT_F32), *plain[3], *quick[3];
        bool before;
        int k;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        dvt_attach_grad(w, DVT_GRAD_WRITE);
        before = dvt_allow_winograd(false);
        with_gradients(x, w, bias, plain);
        CHECK(!dvt_allow_winograd(true));
        with_gradients(x, w, bias, quick);
        CHECK(dvt_allow_winograd(before));
        for (k = 0; k < 3; k++) {
            double size = dvt_item(dvt_max(dvt_abs(plain[k]), DVT_ALL));
            double off = dvt_item(dvt_max(dvt_abs(dvt_sub(plain[k], quick[k])), DVT_ALL));
            CHECK(off <= 1e-5 * size);
            if (k < 2)
                CHECK((off > 0) == fast);
        }
    }
}

DVT_TEST(conv2d_virtual_gpu) {
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        dvt_array *x = random_array(DVT_SHAPE(8, 3, 9, 9), DVT_F32);
        dvt_array *w = random_array(DVT_SHAPE(5, 3, 3, 3), DVT_F32);
        dvt_array *there = dvt_copyto(x, dvt_gpu(1)), *weights = dvt_copyto(w, dvt_gpu(1)),
                  *y = NULL;
        double *expected, tolerance = dvt_test_on_gpus() ? tolerance_of(DVT_F32) : 0;
        dvt_attach_grad(w, DVT_GRAD_WRITE);
        dvt_attach_grad(weights, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = dvt_conv2d(x, w, NULL, NULL);
            dvt_backward(y);
        }
        expected = dvt_test_values(y);
        DVT_RECORD {
            y = dvt_conv2d(there, weights, NULL, NULL);
            dvt_backward(y);
        }
        CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(1)));
        all_equal(y, expected, dvt_size(y), tolerance);
        free(expected);
        expected = dvt_test_values(dvt_grad(w));
        all_equal(dvt_grad(weights), expected, dvt_size(w), tolerance);
        free(expected);
        CHECK_ERROR(dvt_conv2d(x, weights, NULL, NULL), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_conv2d(there, weights, dvt_zeros(DVT_SHAPE(5), DVT_F32, dvt_cpu()), NULL),
                    DVT_ERR_CONTEXT);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

static dvt_array *convolve(dvt_array *x, dvt_array *w, int stride, int padding, int dilation,
                           int groups) {
    dvt_conv2d_options p;
    p.stride[0] = p.stride[1] = stride;
    p.padding[0] = p.padding[1] = padding;
    p.dilation[0] = p.dilation[1] = dilation;
    p.groups = groups;
    return dvt_conv2d(x, w, NULL, &p);
}

DVT_TEST(conv2d_errors) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 4, 5, 5), DVT_F32, dvt_cpu());
    dvt_array *w = dvt_zeros(DVT_SHAPE(6, 4, 3, 3), DVT_F32, dvt_cpu());
    dvt_array *b = dvt_zeros(DVT_SHAPE(5), DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_conv2d(NULL, w, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_conv2d(x, NULL, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_conv2d(x, w, b, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, w, dvt_reshape(b, DVT_SHAPE(5, 1)), NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(dvt_index(x, 0), w, NULL, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_index(w, 0), NULL, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_scalar(1, DVT_F32, dvt_cpu()), b, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_zeros(DVT_SHAPE(6, 3, 3, 3), DVT_F32, dvt_cpu()), NULL, NULL),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_zeros(DVT_SHAPE(6, 4, 6, 3), DVT_F32, dvt_cpu()), NULL, NULL),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_zeros(DVT_SHAPE(6, 4, 0, 3), DVT_F32, dvt_cpu()), NULL, NULL),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_conv2d(dvt_as_in_dtype(x, DVT_I32), w, NULL, NULL), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_conv2d(x, dvt_as_in_dtype(w, DVT_U8), NULL, NULL), DVT_ERR_DTYPE);
    CHECK_ERROR(convolve(x, w, -1, 0, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(convolve(x, w, 0, -1, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(convolve(x, w, 0, 0, -2, 0), DVT_ERR_RANGE);
    CHECK_ERROR(convolve(x, w, 0, 0, 0, -1), DVT_ERR_RANGE);
    CHECK_ERROR(convolve(x, w, 0, 0, 0, 3), DVT_ERR_SHAPE);
    CHECK_ERROR(convolve(x, w, 0, 0, 0, 4), DVT_ERR_SHAPE);
    CHECK_ERROR(convolve(x, w, 0, 0, 0, INT_MAX), DVT_ERR_SHAPE);
    CHECK_ERROR(convolve(x, w, 0, 0, INT_MAX, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(convolve(x, w, INT_MIN, INT_MIN, INT_MIN, INT_MIN), DVT_ERR_RANGE);
    /* A result too large for any memory, and parameters that are too large. */
    CHECK_ERROR(convolve(x, w, 0, INT_MAX, 0, 0), DVT_ERR_SHAPE);
    CHECK(dvt_shape_equal(dvt_shape_of(convolve(x, w, INT_MAX, 0, 0, 0)), DVT_SHAPE(2, 6, 1, 1)));
    CHECK_VALUES(convolve(dvt_ones_like(dvt_rows(x, 0, 1)), dvt_ones_like(dvt_rows(w, 0, 1)),
                          INT_MAX, INT_MAX, INT_MAX, 0),
                 0, 4);
    dvt_conv2d(x, dvt_zeros(DVT_SHAPE(6, 4, 7, 3), DVT_F32, dvt_cpu()), NULL, NULL);
    CHECK(strstr(dvt_error(), "height of 7") != NULL);
    dvt_clear_error();
}
