/* Matrix products on all ISA targets. Every element is one chain of fused multiply-adds for every
   layout, blocking and number of threads, so expectations are exact. Operands end and begin at
   pages without access. */
#include "gemm_inputs.h"

/* ---- whole launches ---- */
typedef enum layout { PLAIN, TURNED, PADDED, EVERY_SECOND, REVERSED, LAYOUTS } layout;

/* A view of (batch, rows, cols), or of one matrix for the whole batch. Its elements end or begin at
   the guard page. */
static dvti_view matrix(guard g, dvt_dtype dtype, layout how, int64_t batch, bool shared,
                        int64_t rows, int64_t cols, bool at_start) {
    const int64_t step = how == EVERY_SECOND ? 2 : 1, ld = step * cols + (how == PADDED ? GAP : 0);
    const int64_t one =
        how == TURNED || !rows ? rows * cols : (rows - 1) * ld + step * (cols - 1) + 1;
    const int64_t n = rows && cols ? (shared ? 1 : batch) * one : 0;
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.dtype = dtype;
    view.ndim = 3;
    view.dim[0] = batch;
    view.dim[1] = rows;
    view.dim[2] = cols;
    view.stride[0] = shared ? 0 : one;
    view.stride[1] = how == TURNED ? 1 : ld;
    view.stride[2] = how == TURNED ? rows : step;
    view.data = place(g, n * dvt_dtype_size(dtype), at_start);
    fill(view.data, dtype, n);
    if (how == REVERSED && cols) {
        view.data = (char *)view.data + (cols - 1) * dvt_dtype_size(dtype);
        view.stride[2] = -1;
    }
    return view;
}

static double at(const dvti_view *view, int64_t batch, int64_t i, int64_t j) {
    return load_element(view->data, view->dtype,
                        batch * view->stride[0] + i * view->stride[1] + j * view->stride[2]);
}

/* Sums a vector times a matrix that is contiguous in k in the kernels' order: lanes of 64 bytes,
   then i with i + lanes / 2 and so on. */
static double lanes_sum(const dvti_view *a, const dvti_view *b, int64_t batch, int64_t i, int64_t j,
                        int64_t depth) {
    const int lanes = a->dtype == DVT_F64 ? 8 : 16;
    double lane[16] = {0};
    int64_t k;
    int half;
    for (k = 0; k < depth; k++)
        lane[k % lanes] = chain(a->dtype, at(a, batch, i, k), at(b, batch, k, j), lane[k % lanes]);
    for (half = lanes / 2; half; half /= 2)
        for (k = 0; k < half; k++)
            lane[k] = a->dtype == DVT_F64 ? lane[k] + lane[k + half]
                                          : (double)((float)lane[k] + (float)lane[k + half]);
    return lane[0];
}

static void expect(const dvti_launch *launch, double *to) {
    const dvti_view *a = &launch->in[0], *b = &launch->in[1], *out = &launch->out[0];
    const int64_t n = out->dim[1], m = out->dim[2], depth = a->dim[2];
    const bool tall = out->dim[0] > 1 && b->stride[0] == 0 && a->stride[0] == n * a->stride[1];
    const int64_t a_k = depth == 1 ? 1 : a->stride[2], b_k = b->stride[1];
    const int64_t rows = tall ? n * out->dim[0] : n, few = DVTI_MIN(rows, m);
    const bool narrow = few <= 10 && few % 8 != 0 && depth >= 128 && rows * m * depth >= 131072;
    const bool lanes = (out->dtype == DVT_F32 || out->dtype == DVT_F64) && a_k == 1 && b_k == 1 &&
                       (few == 1 || narrow);
    int64_t batch, i, j, k;
    uint16_t half;
    for (batch = 0; batch < out->dim[0]; batch++)
        for (i = 0; i < n; i++)
            for (j = 0; j < m; j++, to++) {
                *to = 0;
                if (lanes)
                    *to = lanes_sum(a, b, batch, i, j, depth);
                else
                    for (k = 0; k < depth; k++)
                        *to = chain(out->dtype, at(a, batch, i, k), at(b, batch, k, j), *to);
                if (out->dtype == DVT_F16 || out->dtype == DVT_BF16) {
                    dvti_store_f64(&half, out->dtype, 0, *to);
                    *to = dvti_load_f64(&half, out->dtype, 0);
                }
            }
}

/* Returns the last element of the result that is wrong; -1: none. */
static int64_t last_wrong(const dvti_view *out, const double *expected) {
    int64_t i = out->dim[0] * out->dim[1] * out->dim[2] - 1;
    while (i >= 0 && same_bits(dvti_load_f64(out->data, out->dtype, i), expected[i]))
        i--;
    return i;
}

/* Runs with 1 and 2 threads on every ISA target; the result must be exact. */
static void check_launch(dvti_launch *launch, guard g, bool at_start) {
    const dvti_view *out = &launch->out[0];
    const int64_t n = out->dim[0] * out->dim[1] * out->dim[2], size = dvt_dtype_size(out->dtype);
    double *expected = (double *)malloc((size_t)(n + 1) * sizeof(double));
    int64_t bad;
    int threads;
    expect(launch, expected);
    launch->out[0].data = place(g, n * size, at_start);
    for (threads = 1; threads <= 2; threads++) {
        CHECK(dvt_set_num_threads(threads) == DVT_OK);
        FOR_EACH_TARGET({
            CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
            launch->workspace_bytes = dvti_cpu_matmul_plan(launch, threads);
            launch->workspace = aligned_alloc(64, (size_t)(launch->workspace_bytes + 64) / 64 * 64);
            memset(launch->workspace, 0xff, (size_t)launch->workspace_bytes);
            memset(launch->out[0].data, 0xff, (size_t)(n * size));
            dvti_cpu_run(launch);
            bad = last_wrong(out, expected);
            dvt_test_check(bad < 0, __FILE__, __LINE__,
                           "%s, %d threads, %s %dx%dx%d, strides %d %d and %d %d: element %d",
                           target->name, threads, dvt_dtype_name(out->dtype), (int)out->dim[1],
                           (int)launch->in[0].dim[2], (int)out->dim[2],
                           (int)launch->in[0].stride[1], (int)launch->in[0].stride[2],
                           (int)launch->in[1].stride[1], (int)launch->in[1].stride[2], (int)bad);
            free(launch->workspace);
        });
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    free(expected);
}

static void check_product(const guard *g, dvt_dtype dtype, layout of_a, layout of_b, int64_t batch,
                          bool shared_a, bool shared_b, int64_t n, int64_t k, int64_t m,
                          bool at_start) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_matmul();
    launch.op = DVTI_OP_matmul;
    launch.n_in = 2;
    launch.n_out = 1;
    launch.in[0] = matrix(g[0], dtype, of_a, batch, shared_a, n, k, at_start);
    launch.in[1] = matrix(g[1], dtype, of_b, batch, shared_b, k, m, at_start);
    launch.out[0] = matrix(g[2], dtype, PLAIN, batch, false, n, m, at_start);
    check_launch(&launch, g[2], at_start);
}

DVT_TEST(products_of_every_layout_are_chains_on_all_targets_and_threads) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 0, 5},    {5, 3, 2},    {1, 37, 19},
                                        {19, 37, 1},  {8, 8, 8},    {17, 33, 70}, {50, 70, 45},
                                        {64, 20, 10}, {7, 200, 65}, {70, 90, 40}, {1, 40, 200}};
    guard g[3];
    int d, s, of_a, of_b, i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 20);
    for (d = 0; d < 4; d++)
        for (s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
            for (of_a = 0; of_a < LAYOUTS; of_a++)
                for (of_b = (s + of_a) % 2; of_b < LAYOUTS; of_b += 2)
                    check_product(g, dtypes[d], (layout)of_a, (layout)of_b, 1, false, false,
                                  shapes[s][0], shapes[s][1], shapes[s][2], draw() % 3 == 0);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

DVT_TEST(batches_of_products_share_factors) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16};
    static const int64_t shapes[][3] = {{1, 5, 1}, {4, 6, 3}, {1, 20, 30}, {40, 50, 30}};
    guard g[3];
    int d, s, shared, i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 20);
    for (d = 0; d < 3; d++)
        for (s = 0; s < 4; s++)
            for (shared = 0; shared < 4; shared++)
                for (i = 0; i < 4; i++)
                    check_product(g, dtypes[d], (layout)(i % 2), (layout)(i / 2), 7, shared & 1,
                                  shared & 2, shapes[s][0], shapes[s][1], shapes[s][2], i == 1);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* Several ranges of k, blocks of rows, tiles of columns. */
DVT_TEST(large_products_are_chains_too) {
    guard g[3];
    int i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 22);
    for (i = 0; i < 4; i++)
        check_product(g, DVT_F32, (layout)(i % 2), (layout)(i / 2), 1, false, false, 273, 600, 70,
                      false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 50, 65, 1100, false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 517, 1100, 68, false);
    check_product(g, DVT_F64, PLAIN, PLAIN, 1, false, false, 517, 600, 36, false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 530, 65, 70, false);
    check_product(g, DVT_F64, TURNED, TURNED, 1, false, false, 99, 500, 70, false);
    check_product(g, DVT_F32, TURNED, PLAIN, 1, false, false, 600, 70, 140, false);
    check_product(g, DVT_F32, TURNED, PLAIN, 1, false, false, 130, 600, 140, true);
    check_product(g, DVT_F16, PLAIN, TURNED, 1, false, false, 200, 390, 260, false);
    check_product(g, DVT_BF16, TURNED, PLAIN, 1, false, false, 97, 390, 33, false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 1, 20, 9000, false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 9000, 20, 1, false);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* 34 MB are written with non-temporal stores, unless rows are unaligned (2001 columns). */
DVT_TEST(results_that_no_cache_keeps_are_chains_too) {
    guard g[3];
    int i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(i < 2 ? 1 << 18 : 34 << 20);
    check_product(g, DVT_F32, TURNED, PLAIN, 1, false, false, 4250, 2, 2000, false);
    check_product(g, DVT_F32, PLAIN, PLAIN, 1, false, false, 4250, 1, 2001, false);
    check_product(g, DVT_F64, PLAIN, TURNED, 7, false, true, 310, 1, 2000, false);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* Checks shapes in float32 and float64, in the layouts of A and B whose bit, 1 << (2 * B + A), is
   in `layouts`. */
static void check_shapes(const int64_t (*shapes)[3], int count, int layouts) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64};
    guard g[3];
    int d, s, i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 22);
    for (d = 0; d < 2; d++)
        for (s = 0; s < count; s++)
            for (i = 0; i < 4; i++)
                if (layouts >> i & 1 && !(EMULATED && layouts == 15 && (d + s + i) % 3))
                    check_product(g, dtypes[d], (layout)(i % 2), (layout)(i / 2), 1, false, false,
                                  shapes[s][0], shapes[s][1], shapes[s][2], (s + i) % 2 == 1);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* A few rows or columns contiguous in k, which use dot products. Covers all counts of them, odd
   lengths of the other side, and shapes that just miss this path. */
DVT_TEST(narrow_products_along_k_are_dots) {
    static const int64_t shapes[][3] = {
        {64, 500, 10}, {10, 500, 64}, {67, 300, 9}, {7, 299, 66},   {6, 129, 203}, {350, 130, 5},
        {4, 500, 70},  {111, 513, 3}, {2, 700, 99}, {103, 127, 11}, {64, 500, 8},  {130, 1030, 10}};
    guard g[3];
    int i;
    check_shapes(shapes, DVTI_LENGTH(shapes), 1 << (2 * TURNED + PLAIN));
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 22);
    check_product(g, DVT_F32, PLAIN, TURNED, 3, false, false, 65, 260, 10, false);
    check_product(g, DVT_F32, PLAIN, TURNED, 5, false, true, 30, 260, 10, true);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* A few contiguous columns of many rows: transposed at once and in pieces. */
DVT_TEST(narrow_products_are_chains_too) {
    static const int64_t shapes[][3] = {{64, 500, 10}, {256, 84, 10}, {67, 512, 15}, {1300, 33, 11},
                                        {900, 200, 3}, {73, 300, 9},  {2100, 40, 2}, {300, 513, 7}};
    check_shapes(shapes, DVTI_LENGTH(shapes),
                 1 << (2 * PLAIN + TURNED) | 1 << (2 * TURNED + TURNED));
}

/* Sizes between one kernel call and a plan: few and many rows with operands in unfavorable layouts.
   Runs with and without a second thread. */
DVT_TEST(products_that_one_thread_does_in_one_call) {
    static const int64_t shapes[][3] = {
        {64, 64, 64}, {70, 90, 60},   {130, 64, 70}, {200, 84, 10},  {260, 60, 7}, {64, 300, 3},
        {100, 3, 9},  {129, 128, 20}, {40, 500, 16}, {300, 100, 11}, {30, 1, 200}};
    check_shapes(shapes, DVTI_LENGTH(shapes), 15);
}

/* Sizes at which C' = B' A' is less work in some layouts, on some targets. */
DVT_TEST(transposed_products_are_chains_too) {
    static const int64_t shapes[][3] = {{64, 300, 203}, {70, 1100, 133}, {203, 120, 84}};
    guard g[3];
    int i;
    check_shapes(shapes, DVTI_LENGTH(shapes), 15);
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 22);
    for (i = 1; i < 4; i++)
        check_product(g, DVT_F32, (layout)(i % 2), (layout)(i / 2), 3, i == 1, i == 2, 33, 260, 130,
                      i == 3);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* The number of threads may also change: one thread plans and two compute, and the reverse. */
DVT_TEST(a_change_of_threads_between_workspace_and_product) {
    guard g[3];
    dvti_launch launch;
    double *expected = (double *)malloc(90 * 80 * sizeof(double));
    int64_t i, bad;
    int pass;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 16);
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_matmul();
    launch.n_in = 2;
    launch.n_out = 1;
    for (pass = 0; pass < 8; pass++) {
        launch.in[0] = matrix(g[0], DVT_F32, (layout)(pass / 2 % 2), 1, false, 90, 96, false);
        launch.in[1] = matrix(g[1], DVT_F32, (layout)(pass / 4), 1, false, 96, 80, false);
        launch.out[0] = matrix(g[2], DVT_F32, PLAIN, 1, false, 90, 80, false);
        expect(&launch, expected);
        launch.workspace_bytes = dvti_cpu_matmul_plan(&launch, pass % 2 + 1);
        launch.workspace = aligned_alloc(64, (size_t)(launch.workspace_bytes + 64) / 64 * 64);
        CHECK(dvt_set_num_threads(2 - pass % 2) == DVT_OK);
        dvti_cpu_run(&launch);
        for (i = 0, bad = -1; i < 90 * 80; i++)
            if (!same_bits(at(&launch.out[0], 0, i / 80, i % 80), expected[i]))
                bad = i;
        CHECK(bad < 0);
        free(launch.workspace);
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    free(expected);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* The ISA target may change between the workspace query and the launch. */
DVT_TEST(a_change_of_target_between_workspace_and_product) {
    static const char *const names[][2] = {{"reference", NULL}, {NULL, "reference"}};
    guard g[3];
    dvti_launch launch;
    int i, pass;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 16);
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_matmul();
    launch.n_in = 2;
    launch.n_out = 1;
    for (pass = 0; pass < 4; pass++) {
        int64_t n = pass < 2 ? 64 : 2;
        double worst = 0;
        launch.in[0] = matrix(g[0], DVT_F32, PLAIN, 1, false, n, 96, false);
        launch.in[1] = matrix(g[1], DVT_F32, PLAIN, 1, false, 96, 80, false);
        launch.out[0] = matrix(g[2], DVT_F32, PLAIN, 1, false, n, 80, false);
        CHECK(dvt_set_cpu_isa(names[pass % 2][0]) == DVT_OK);
        launch.workspace_bytes = dvti_cpu_matmul_plan(&launch, 2);
        launch.workspace = aligned_alloc(64, (size_t)(launch.workspace_bytes + 64) / 64 * 64);
        CHECK(dvt_set_cpu_isa(names[pass % 2][1]) == DVT_OK);
        dvti_cpu_run(&launch);
        for (i = 0; i < (int)n * 80; i++) {
            double sum = 0;
            int k;
            for (k = 0; k < 96; k++)
                sum += at(&launch.in[0], 0, i / 80, k) * at(&launch.in[1], 0, k, i % 80);
            worst = DVTI_MAX(worst, fabs(sum - at(&launch.out[0], 0, i / 80, i % 80)));
        }
        CHECK(worst < 1e-3);
        free(launch.workspace);
    }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}

/* ---- integers of 8 bits ---- */
static int64_t whole_at(const dvti_view *view, int64_t batch, int64_t i, int64_t j) {
    return dvti_load_i64(view->data, view->dtype,
                         batch * view->stride[0] + i * view->stride[1] + j * view->stride[2]);
}

/* Checks exact sums, wrapped to the result's dtype, on every ISA target and the reference. */
static void check_bytes(const guard *g, const dvt_dtype *dtype, layout of_a, layout of_b,
                        int64_t batch, int64_t n, int64_t k, int64_t m, int extreme) {
    const int64_t size = dvt_dtype_size(dtype[2]), all = batch * n * m;
    char *expected = (char *)malloc((size_t)(all * size + 1));
    dvti_launch launch;
    int64_t at, t, i;
    int f, threads;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_matmul();
    launch.op = DVTI_OP_matmul;
    launch.n_in = 2;
    launch.n_out = 1;
    launch.in[0] = matrix(g[0], dtype[0], of_a, batch, false, n, k, draw() % 2);
    launch.in[1] = matrix(g[1], dtype[1], of_b, batch, batch > 1 && draw() % 2, k, m, draw() % 2);
    launch.out[0] = matrix(g[2], dtype[2], PLAIN, batch, false, n, m, draw() % 2);
    for (f = 0; f < 2; f++) {
        unsigned char *byte = (unsigned char *)guard_start(g[f]);
        for (at = 0; at < (int64_t)g[f].bytes; at++)
            byte[at] = (unsigned char)(extreme ? dtype[f] == DVT_I8 ? 0x80 : 0xff : draw());
    }
    for (at = 0; at < all; at++) {
        int64_t sum = 0;
        for (t = 0; t < k; t++)
            sum += whole_at(&launch.in[0], at / (n * m), at / m % n, t) *
                   whole_at(&launch.in[1], at / (n * m), t, at % m);
        dvti_store_i64(expected, dtype[2], at, sum);
    }
    for (threads = 1; threads <= 2; threads++) {
        const dvti_simd *target[4];
        int targets = dvti_simd_targets(target);
        CHECK(dvt_set_num_threads(threads) == DVT_OK);
        for (i = 0; i <= targets; i++) {
            CHECK(dvt_set_cpu_isa(i < targets ? target[i]->name : "reference") == DVT_OK);
            launch.workspace_bytes = dvti_cpu_matmul_plan(&launch, threads);
            launch.workspace = aligned_alloc(64, (size_t)(launch.workspace_bytes + 64) / 64 * 64);
            memset(launch.workspace, 0xff, (size_t)launch.workspace_bytes);
            memset(launch.out[0].data, 0x55, (size_t)(all * size));
            dvti_cpu_run(&launch);
            dvt_test_check(memcmp(launch.out[0].data, expected, (size_t)(all * size)) == 0,
                           __FILE__, __LINE__, "%s, %d threads, %s x %s to %s, %d x %dx%dx%d",
                           i < targets ? target[i]->name : "reference", threads,
                           dvt_dtype_name(dtype[0]), dvt_dtype_name(dtype[1]),
                           dvt_dtype_name(dtype[2]), (int)batch, (int)n, (int)k, (int)m);
            free(launch.workspace);
        }
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    free(expected);
}

/* Depths around the number of terms that a float sums exactly, with factors of the largest sums. */
DVT_TEST(products_of_bytes_are_exact) {
    static const dvt_dtype dtypes[][3] = {{DVT_I8, DVT_I8, DVT_I8},  {DVT_U8, DVT_U8, DVT_U8},
                                          {DVT_I8, DVT_I8, DVT_I32}, {DVT_U8, DVT_U8, DVT_I32},
                                          {DVT_U8, DVT_I8, DVT_I32}, {DVT_I8, DVT_U8, DVT_I32}};
    static const int64_t shapes[][3] = {{1, 1, 1},   {3, 0, 5},     {5, 257, 3},  {2, 512, 17},
                                        {4, 513, 5}, {1, 1025, 33}, {19, 37, 1},  {17, 33, 70},
                                        {2, 256, 2}, {200, 5, 270}, {70, 90, 40}, {6, 2000, 6}};
    guard g[3];
    int d, s, i;
    for (i = 0; i < 3; i++)
        g[i] = guard_new(1 << 19);
    for (d = 0; d < 6; d++)
        for (s = EMULATED ? d % 2 : 0; s < DVTI_LENGTH(shapes); s += EMULATED ? 2 : 1)
            for (i = 0; i < 2; i++)
                check_bytes(g, dtypes[d], (layout)(draw() % LAYOUTS), (layout)(draw() % LAYOUTS),
                            s % 3 ? 1 : 2, shapes[s][0], shapes[s][1], shapes[s][2], i);
    for (i = 0; i < 3; i++)
        guard_free(g[i]);
}
