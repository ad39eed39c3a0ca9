/* Tests of pooling and its gradients against plain loops: windows, padding, rounding up, ties, NaN,
   dtypes, threads, errors. */
#include "dvt_test.h"
#include <limits.h>

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        /* Multiples of 1/4 are exact, and ties are frequent. */
        values[i] = floor(dvt_test_random(-20, 20)) / 4;
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

static dvt_pool2d_options window(int kh, int kw, int sh, int sw, int ph, int pw) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = kh;
    p.size[1] = kw;
    p.stride[0] = sh;
    p.stride[1] = sw;
    p.padding[0] = ph;
    p.padding[1] = pw;
    return p;
}

/* Returns p as the operations expect it: DVT_PAD_NONE prevents that padding repeats. */
static dvt_pool2d_options padded(dvt_pool2d_options p) {
    if (!p.padding[1])
        p.padding[1] = DVT_PAD_NONE;
    return p;
}

/* Counts the windows. Each begins in x or in the padding before it. Unless rounded up, it ends
   within the padding after x.

        p p x x x x x x x x p p     size 4, stride 3, padding p of 2
        [-----]                     window 0
              [-----]               window 1
                    [-----]         window 2
                          [-----]   window 3, only when rounded up: it begins in x */
static int64_t count_windows(int64_t x, int64_t size, int64_t stride, int64_t padding, bool up) {
    int64_t n = 0;
    while (n * stride + size <= x + 2 * padding)
        n++;
    if (up && (n - 1) * stride + size < x + 2 * padding && n * stride < x + padding)
        n++;
    return n;
}

typedef struct pool_values {
    double *y, *dx;
    int64_t oh, ow;
} pool_values;

static pool_values naive(const dvt_pool2d_options *p, bool max, const double *x, const double *g,
                         int64_t planes, int64_t h, int64_t w) {
    int64_t kh = p->size[0], kw = p->size[1], sh = p->stride[0], sw = p->stride[1];
    int64_t plane, i, j, r, c;
    pool_values v;
    v.oh = count_windows(h, kh, sh, p->padding[0], p->ceil_mode);
    v.ow = count_windows(w, kw, sw, p->padding[1], p->ceil_mode);
    v.y = (double *)calloc((size_t)(planes * v.oh * v.ow + 1), sizeof(double));
    v.dx = (double *)calloc((size_t)(planes * h * w + 1), sizeof(double));
    for (plane = 0; plane < planes; plane++)
        for (i = 0; i < v.oh; i++)
            for (j = 0; j < v.ow; j++) {
                int64_t at = (plane * v.oh + i) * v.ow + j, best = -1, counted = 0, pass;
                double sum = 0;
                for (pass = 0; pass < 2; pass++)
                    for (r = i * sh - p->padding[0]; r < i * sh - p->padding[0] + kh; r++)
                        for (c = j * sw - p->padding[1]; c < j * sw - p->padding[1] + kw; c++) {
                            bool inside = r >= 0 && r < h && c >= 0 && c < w;
                            int64_t from = (plane * h + r) * w + c;
                            if (pass == 0 && r < h + p->padding[0] && c < w + p->padding[1] &&
                                (inside || !p->exclude_padding))
                                counted++;
                            if (!inside)
                                continue;
                            if (pass == 0) {
                                sum += x[from];
                                if (best < 0 || x[from] > x[best] ||
                                    (isnan(x[from]) && !isnan(x[best])))
                                    best = from;
                            } else if (!max) {
                                v.dx[from] += g[at] / (double)counted;
                            }
                        }
                v.y[at] = max ? x[best] : sum / (double)counted;
                if (max)
                    v.dx[best] += g[at];
            }
    return v;
}

static int all_equal(dvt_array *x, const double *expected, int64_t n, double tolerance) {
    return dvt_test_equal(x, expected, n, tolerance, __FILE__, __LINE__);
}

static void check_pool(dvt_pool2d_options p, bool max, dvt_shape shape, dvt_dtype dtype) {
    double tolerance = dtype == DVT_F64 ? 1e-14 : dtype == DVT_F32 ? 1e-6 : 2e-2;
    dvt_pool2d_options given = padded(p);
    DVT_SCOPE {
        dvt_array *x = random_array(shape, dtype), *y = NULL, *g;
        double *vx = dvt_test_values(x), *vg;
        int64_t planes = shape.dim[0] * shape.dim[1];
        pool_values v;
        int ok;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = max ? dvt_max_pool2d(x, &given) : dvt_avg_pool2d(x, &given);
        }
        CHECK(y != NULL);
        g = random_array(dvt_shape_of(y), dtype);
        vg = dvt_test_values(g);
        v = naive(&p, max, vx, vg, planes, shape.dim[2], shape.dim[3]);
        CHECK_INT(dvt_dtype_of(y), dtype);
        CHECK_INT(dvt_dim(y, 2), v.oh);
        CHECK_INT(dvt_dim(y, 3), v.ow);
        ok = all_equal(y, v.y, planes * v.oh * v.ow, tolerance);
        CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
        ok = all_equal(dvt_grad(x), v.dx, dvt_size(x), tolerance) && ok;
        if (!ok)
            printf(
                "  %s (%lld, %lld) window %d %d stride %d %d padding %d %d ceil %d exclude %d %s\n",
                max ? "max" : "avg", (long long)shape.dim[2], (long long)shape.dim[3], p.size[0],
                p.size[1], p.stride[0], p.stride[1], p.padding[0], p.padding[1], p.ceil_mode,
                p.exclude_padding, dvt_dtype_name(dtype));
        free(v.y);
        free(v.dx);
        free(vx);
        free(vg);
    }
}

static int random_int(int low, int high) {
    return low + (int)dvt_test_random(0, high - low + 1);
}

DVT_TEST(pool2d_random_cases) {
    static const dvt_dtype dtype[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int i;
    for (i = 0; i < 300; i++) {
        int kh = random_int(1, 4), kw = random_int(1, 4);
        dvt_pool2d_options p = window(kh, kw, random_int(1, 4), random_int(1, 4),
                                      random_int(0, kh / 2), random_int(0, kw / 2));
        dvt_shape shape = DVT_SHAPE(random_int(1, 3), random_int(1, 3), random_int(kh, kh + 6),
                                    random_int(kw, kw + 6));
        p.ceil_mode = i % 2;
        p.exclude_padding = i % 4 > 1;
        check_pool(p, i % 3 != 0, shape, dtype[random_int(0, 3)]);
    }
    check_pool(window(2, 2, 2, 2, 0, 0), true, DVT_SHAPE(9, 6, 24, 24), DVT_F32);
    check_pool(window(2, 2, 2, 2, 0, 0), false, DVT_SHAPE(9, 6, 24, 24), DVT_F32);
}

/* One rule for all pairs: a second 0 repeats the first value. */
DVT_TEST(pool2d_pairs) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(1, 1, 6, 8), DVT_F32, dvt_cpu());
    dvt_pool2d_options p = window(4, 0, 1, 0, 2, 0);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_max_pool2d(x, &p)), DVT_SHAPE(1, 1, 7, 9)));
    p.padding[1] = DVT_PAD_NONE;
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_avg_pool2d(x, &p)), DVT_SHAPE(1, 1, 7, 5)));
    p.padding[0] = DVT_PAD_NONE;
    p.padding[1] = 2;
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_max_pool2d(x, &p)), DVT_SHAPE(1, 1, 3, 9)));
    p = window(4, 3, 1, 0, 2, 0); /* (2, 2) exceeds a width of 3 */
    CHECK_ERROR(dvt_max_pool2d(x, &p), DVT_ERR_RANGE);
    p.padding[1] = -1;
    CHECK_ERROR(dvt_max_pool2d(x, &p), DVT_ERR_RANGE);
    p = window(DVT_PAD_NONE, 3, 1, 0, 0, 0);
    CHECK_ERROR(dvt_max_pool2d(x, &p), DVT_ERR_RANGE);
    p = window(2, 2, DVT_PAD_NONE, 0, 0, 0);
    CHECK_ERROR(dvt_max_pool2d(x, &p), DVT_ERR_RANGE);
}

DVT_TEST(pool2d_defaults) {
    dvt_array *x = dvt_reshape(dvt_arange(0, 30, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(1, 1, 5, 6));
    dvt_pool2d_options p = window(2, 0, 0, 0, 0, 0);
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, 7, 9, 11, 19, 21, 23);
    p = window(2, 3, 0, 0, 0, 0); /* the stride defaults to the size of each axis */
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, 8, 11, 20, 23);
    p = window(2, 3, 1, 0, 0, 0); /* a single stride applies to both axes */
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_max_pool2d(x, &p)), DVT_SHAPE(1, 1, 4, 4)));
    p = window(2, 0, 0, 0, 0, 0);
    p.ceil_mode = true;
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, 7, 9, 11, 19, 21, 23, 25, 27, 29);
    CHECK_VALUES(dvt_avg_pool2d(x, &p), 0, 3.5, 5.5, 7.5, 15.5, 17.5, 19.5, 24.5, 26.5, 28.5);
    p = window(7, 7, 7, 7, 7, 7); /* ignored: one window covers everything */
    p.global = true;
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, 29);
    CHECK_VALUES(dvt_avg_pool2d(x, &p), 0, 14.5);
}

DVT_TEST(pool2d_ties_and_nan) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(1, 1, 2, 4), dvt_cpu(), 3, 3, 1, NAN, 3, 3, NAN, 9);
    dvt_array *y = NULL;
    dvt_pool2d_options p = window(2, 2, 0, 0, 0, 0);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_max_pool2d(x, &p);
        dvt_backward(y);
    }
    CHECK_VALUES(y, 0, 3, NAN);
    CHECK_VALUES(dvt_grad(x), 0, 1, 0, 0, 1, 0, 0, 0, 0);
    x = DVT_ARRAY(double, DVT_SHAPE(1, 1, 2, 2), dvt_cpu(), -INFINITY, -INFINITY, -INFINITY, NAN);
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, NAN);
    CHECK_VALUES(dvt_avg_pool2d(x, &p), 0, NAN);
    /* Padding is never the maximum. */
    x = dvt_full(DVT_SHAPE(1, 1, 2, 2), -INFINITY, DVT_F32, dvt_cpu());
    p = window(2, 2, 0, 0, 1, 1);
    CHECK_VALUES(dvt_max_pool2d(x, &p), 0, -INFINITY, -INFINITY, -INFINITY, -INFINITY);
}

DVT_TEST(pool2d_views_and_empty) {
    dvt_array *x = random_array(DVT_SHAPE(6, 4, 3, 2), DVT_F32);
    dvt_array *view = dvt_transpose(x, DVT_AXES(3, 2, 0, 1)), *y;
    dvt_array *none = dvt_zeros(DVT_SHAPE(0, 3, 4, 4), DVT_F32, dvt_cpu());
    dvt_pool2d_options p = window(2, 2, 0, 0, 0, 0);
    double *expected = dvt_test_values(dvt_max_pool2d(dvt_contiguous(view), &p));
    all_equal(dvt_max_pool2d(view, &p), expected, 2 * 3 * 3 * 2, 0);
    free(expected);
    dvt_attach_grad(none, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_max_pool2d(none, &p);
        CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0, 3, 2, 2)));
        CHECK_INT(dvt_backward(y), DVT_OK);
        y = dvt_avg_pool2d(none, &p);
        CHECK_INT(dvt_backward(y), DVT_OK);
    }
    CHECK_INT(dvt_size(dvt_grad(none)), 0);
}

DVT_TEST(pool2d_same_bits_for_any_threads_and_device) {
    dvt_array *x = random_array(DVT_SHAPE(20, 7, 13, 11), DVT_F32), *first[2] = {NULL, NULL};
    dvt_pool2d_options p = window(3, 3, 2, 2, 1, 1);
    int threads, k;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    for (threads = 1; threads <= 3; threads++) {
        dvt_array *now[2];
        dvt_set_num_threads(threads);
        DVT_RECORD {
            now[0] = dvt_add(dvt_max_pool2d(x, &p), dvt_avg_pool2d(x, &p));
            dvt_backward(now[0]);
        }
        now[1] = dvt_copy(dvt_grad(x));
        for (k = 0; k < 2; k++) {
            if (first[k])
                CHECK(memcmp(dvt_data(first[k]), dvt_data(now[k]), (size_t)dvt_nbytes(now[k])) ==
                      0);
            else
                first[k] = now[k];
        }
    }
    dvt_set_num_threads(0);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        dvt_array *there = dvt_copyto(x, dvt_gpu(0));
        double *expected = dvt_test_values(first[0]);
        all_equal(dvt_add(dvt_max_pool2d(there, &p), dvt_avg_pool2d(there, &p)), expected,
                  dvt_size(first[0]), 0);
        free(expected);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

static dvt_array *pool(dvt_array *x, int size, int stride, int padding) {
    dvt_pool2d_options p = window(size, size, stride, stride, padding, padding);
    return dvt_max_pool2d(x, &p);
}

DVT_TEST(pool2d_errors) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(1, 1, 4, 4), DVT_F32, dvt_cpu());
    dvt_array *flat = dvt_zeros(DVT_SHAPE(1, 1, 0, 4), DVT_F32, dvt_cpu());
    dvt_pool2d_options global_pool = window(0, 0, 0, 0, 0, 0);
    global_pool.global = true;
    CHECK_ERROR(dvt_max_pool2d(NULL, &global_pool), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_avg_pool2d(x, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_avg_pool2d(dvt_index(x, 0), &global_pool), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_avg_pool2d(flat, &global_pool), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_avg_pool2d(dvt_as_in_dtype(x, DVT_U8), &global_pool), DVT_ERR_DTYPE);
    CHECK_ERROR(pool(x, 0, 1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(pool(x, -2, 1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(pool(x, 2, -1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(pool(x, 2, 1, -1), DVT_ERR_RANGE);
    CHECK_ERROR(pool(x, 3, 1, 2), DVT_ERR_RANGE);
    CHECK_ERROR(pool(x, 5, 1, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(pool(flat, 2, 1, 1), DVT_ERR_SHAPE);
    CHECK_ERROR(pool(x, INT_MAX, 1, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(pool(x, INT_MIN, INT_MIN, INT_MIN), DVT_ERR_RANGE);
    /* Very large but valid: the first window ends in the padding. */
    CHECK_VALUES(pool(x, INT_MAX, INT_MAX, INT_MAX / 2), 0, 0);
    CHECK_VALUES(pool(x, 4, INT_MAX, 0), 0, 0);
    dvt_clear_error();
    CHECK(pool(x, 3, 1, 2) == NULL);
    CHECK(strstr(dvt_error(), "padding is 2; expected 0 to 1") != NULL);
    dvt_clear_error();
}
