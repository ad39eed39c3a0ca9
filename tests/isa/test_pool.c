/* Pooling on every ISA target: the oracle's values (sums within rounding), the same bits on all
   targets and for any number of threads, no access outside the operands. */
#include "isa.h"

typedef struct pool_case {
    int64_t planes, height, width, size[2], stride[2], padding[2];
    int64_t inside;
} pool_case;

static int64_t windows_of(const pool_case *c, int axis) {
    int64_t extent = axis ? c->width : c->height;
    return (extent + 2 * c->padding[axis] - c->size[axis]) / c->stride[axis] + 1;
}

static dvti_view planes_of(const pool_case *c, void *data, bool windows) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = DVT_F32;
    view.ndim = 4;
    view.dim[0] = 1;
    view.dim[1] = c->planes;
    view.dim[2] = windows ? windows_of(c, 0) : c->height;
    view.dim[3] = windows ? windows_of(c, 1) : c->width;
    view.stride[3] = 1;
    view.stride[2] = view.dim[3];
    view.stride[1] = view.stride[0] = view.dim[2] * view.dim[3];
    return view;
}

static void run_pool(const char *isa, int threads, const pool_case *c, dvti_op op, bool relu_masked,
                     void *x, void *g, void *out) {
    bool forward = op == DVTI_OP_max_pool2d || op == DVTI_OP_avg_pool2d;
    dvti_launch launch;
    int k;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_pool2d();
    launch.op = op;
    launch.n_in = op == DVTI_OP_max_pool2d_data ? 2 : 1;
    launch.n_out = 1;
    launch.in[0] = planes_of(c, forward ? x : g, !forward);
    launch.in[1] = planes_of(c, x, false);
    launch.out[0] = planes_of(c, out, forward);
    for (k = 0; k < 2; k++) {
        launch.i[k] = c->size[k];
        launch.i[2 + k] = c->stride[k];
        launch.i[4 + k] = c->padding[k];
    }
    launch.i[6] = c->inside;
    launch.i[7] = relu_masked;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

static const struct {
    const char *name;
    dvti_op op;
    bool relu_masked;
} pools[] = {{"max", DVTI_OP_max_pool2d, false},
             {"mean", DVTI_OP_avg_pool2d, false},
             {"max's gradient", DVTI_OP_max_pool2d_data, false},
             {"mean's gradient", DVTI_OP_avg_pool2d_data, false},
             {"max's gradient, past relu", DVTI_OP_max_pool2d_data, true}};

/* Returns the error bound for elements up to 3: one rounding per term of a sum. A mean has the
   elements of a window, its gradient at most the windows that overlap; one of those is exact. */
static double bound_of(const pool_case *c, dvti_op op) {
    double windows = 1;
    int k;
    for (k = 0; k < 2; k++)
        windows *= (double)((c->size[k] + c->stride[k] - 1) / c->stride[k]);
    if (op == DVTI_OP_avg_pool2d)
        return 3 * (double)(c->size[0] * c->size[1] + 1) * (FLT_EPSILON / 2);
    return op == DVTI_OP_avg_pool2d_data && windows > 1
               ? 3 * windows * (windows + 1) * (FLT_EPSILON / 2)
               : 0;
}

/* Operands end, or begin, at pages without access. */
static void check_pool(const pool_case *c, int mode, bool at_end) {
    static const float special[] = {NAN, INFINITY, -INFINITY, -0.f, 0.f, 1e-40f};
    int64_t xs = c->planes * c->height * c->width,
            ys = c->planes * windows_of(c, 0) * windows_of(c, 1), k;
    size_t xb = (size_t)xs * sizeof(float), yb = (size_t)ys * sizeof(float);
    guard x_memory = guard_new(xb), g_memory = guard_new(yb),
          out_memory = guard_new(xb > yb ? xb : yb);
    float *x = (float *)(at_end ? guard_end(x_memory, xb) : guard_start(x_memory));
    float *g = (float *)(at_end ? guard_end(g_memory, yb) : guard_start(g_memory));
    float *expected = (float *)malloc(xb + yb), *first = (float *)malloc(xb + yb);
    int which, threads;
    for (k = 0; k < xs; k++)
        x[k] = mode == 0                    ? (float)dvt_test_random(-3, 3)
               : mode == 1                  ? (float)(int)dvt_test_random(-2, 3)
               : (int)dvt_test_random(0, 8) ? (float)dvt_test_random(-3, 3)
                                            : special[(int)dvt_test_random(0, 6)];
    for (k = 0; k < ys; k++)
        g[k] = k % 5 ? (float)dvt_test_random(-3, 3) : -0.f;
    for (which = 0; which < 5; which++) {
        int64_t n = which < 2 ? ys : xs;
        size_t bytes = (size_t)n * sizeof(float);
        float *out = (float *)(at_end ? guard_end(out_memory, bytes) : guard_start(out_memory));
        double bound = bound_of(c, pools[which].op);
        bool compare = false;
        for (k = 0; pools[which].relu_masked && k < xs; k++)
            x[k] = x[k] < 0 ? 0 : x[k];
        run_pool("reference", 1, c, pools[which].op, pools[which].relu_masked, x, g, expected);
        FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
            int64_t bad = -1;
            memset(out, 0x55, bytes);
            run_pool(target->name, threads, c, pools[which].op, pools[which].relu_masked, x, g,
                     out);
            for (k = 0; k < n; k++) {
                if (!(fabs((double)out[k] - expected[k]) <= bound) &&
                    !same_bits_f32(out[k], expected[k]))
                    bad = k;
                if (compare && !same_bits_f32(out[k], first[k]))
                    bad = k;
            }
            dvt_test_check(
                bad < 0, __FILE__, __LINE__,
                "%s, %s, %d x %d, window %d x %d by %d %d: element %d is %.9g, reference %.9g",
                target->name, pools[which].name, (int)c->height, (int)c->width, (int)c->size[0],
                (int)c->size[1], (int)c->stride[0], (int)c->stride[1], (int)bad,
                bad < 0 ? 0 : (double)out[bad], bad < 0 ? 0 : (double)expected[bad]);
            memcpy(first, out, bytes);
            compare = true;
        });
    }
    free(expected);
    free(first);
    guard_free(x_memory);
    guard_free(g_memory);
    guard_free(out_memory);
}

DVT_TEST(isa_pools_windows_of_two) {
    pool_case c;
    int64_t n;
    for (n = 2; n <= 80; n++) {
        memset(&c, 0, sizeof c);
        c.planes = 3;
        c.height = 2 + n % 9;
        c.width = n;
        c.size[0] = c.size[1] = c.stride[0] = c.stride[1] = 2;
        check_pool(&c, (int)n % 3, n % 2);
        check_pool(&c, (int)(n + 1) % 3, n % 2 == 0);
    }
    c.planes = 200;
    c.height = c.width = 24;
    check_pool(&c, 0, true);
}

DVT_TEST(isa_pools_any_windows) {
    pool_case c;
    int round, k;
    for (round = 0; round < 150; round++) {
        memset(&c, 0, sizeof c);
        c.planes = (int64_t)dvt_test_random(1, 5);
        c.inside = round % 2;
        for (k = 0; k < 2; k++) {
            c.size[k] = (int64_t)dvt_test_random(1, 8);
            c.stride[k] = (int64_t)dvt_test_random(1, 4);
            c.padding[k] = (int64_t)dvt_test_random(0, (double)(c.size[k] / 2) + 1);
        }
        c.height = c.size[0] + (int64_t)dvt_test_random(0, 30);
        c.width = c.size[1] + (int64_t)dvt_test_random(0, 60);
        check_pool(&c, round % 3, round % 4 < 2);
    }
    memset(&c, 0, sizeof c); /* the mean of whole planes; a row longer than the buffer */
    c.planes = 7;
    c.height = c.width = c.size[0] = c.size[1] = c.stride[0] = c.stride[1] = 7;
    check_pool(&c, 0, true);
    c.width = 5000;
    c.size[0] = c.size[1] = 2;
    c.stride[0] = c.stride[1] = 2;
    check_pool(&c, 0, true);
}
