/* The running sums of every tier: against plain loops, to the bit, for all tails, with operands that begin and end where memory does; and whole
   cumulative sums through the plan, in both directions. */
#include "tiers.h"

enum { MOST = 37 };

/* rows x columns floats that end (or begin) at a page that may not be touched. */
static void check_running(int64_t rows, int64_t columns, int64_t gap, bool writes, int side) {
    size_t bytes = (size_t)((rows - 1) * (columns + gap) + columns) * sizeof(float);
    guard from = guard_new(bytes), to = guard_new(bytes);
    double start[MOST + 16], before[MOST + 16], expected[MOST + 16], sum[MOST + 16];
    dvti_running p;
    int64_t r, c;
    p.x_step = p.y_step = columns + gap;
    p.rows = rows;
    p.columns = columns;
    p.sum = sum;
    p.before = before;
    for (c = 0; c < MOST + 16; c++) {
        start[c] = c % 3 ? dvt_test_random(-5, 5) : -0.;
        before[c] = c % 2 ? dvt_test_random(-50, 50) : -0.;
    }
    FOR_EACH_TIER({
        float *x = (float *)(side ? guard_end(from, bytes) : guard_start(from));
        float *y = (float *)(side ? guard_end(to, bytes) : guard_start(to));
        bool good = true;
        for (r = 0; r < (int64_t)(bytes / sizeof *x); r++) {
            x[r] = r % 11 == 5 ? -0.f : (float)dvt_test_random(-3, 3);
            y[r] = 77;
        }
        memcpy(sum, start, sizeof sum);
        memcpy(expected, start, sizeof expected);
        p.x = x;
        p.y = writes ? y : NULL;
        tier->running(&p);
        for (r = 0; r < rows; r++)
            for (c = 0; c < columns; c++) {
                expected[c] += (double)x[r * p.x_step + c];
                good = good && same_bits_f32(y[r * p.y_step + c],
                                             writes ? (float)(before[c] + expected[c]) : 77);
            }
        for (c = 0; c < columns; c++)
            good = good && memcmp(&sum[c], &expected[c], sizeof *sum) == 0;
        for (r = 0; r < (int64_t)(bytes / sizeof *y); r++)
            good = good && (r % p.y_step < columns || y[r] == 77);
        dvt_test_check(good, __FILE__, __LINE__, "%s: %d rows of %d columns", tier->name, (int)rows,
                       (int)columns);
    });
    guard_free(from);
    guard_free(to);
}

DVT_TEST(tier_running_sums) {
    int64_t rows, columns;
    for (columns = 1; columns <= MOST; columns++)
        for (rows = 1; rows <= 9; rows += 4) {
            check_running(rows, columns, 0, true, 1);
            check_running(rows, columns, 3, true, 0);
            check_running(rows, columns, 1, false, 1);
        }
}

static dvti_view block_of(void *data, dvt_dtype dtype, int64_t a, int64_t n, int64_t b) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = dtype;
    view.ndim = 3;
    view.dim[0] = a;
    view.dim[1] = n;
    view.dim[2] = b;
    view.stride[2] = 1;
    view.stride[1] = b;
    view.stride[0] = n * b;
    return view;
}

static void run_scan(const char *isa, int threads, dvti_view in, dvti_view out, bool backwards) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_SCAN;
    launch.op = DVTI_OP_cumsum;
    launch.compute = DVTI_F64;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = in;
    launch.out[0] = out;
    launch.i[0] = backwards;
    launch.workspace_bytes = dvti_scan_workspace(&launch);
    launch.workspace = malloc((size_t)launch.workspace_bytes + 1);
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK && dvt_set_num_threads(threads) == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK && dvt_set_num_threads(0) == DVT_OK);
    free(launch.workspace);
}

static void check_scan(int64_t a, int64_t n, int64_t b, bool backwards) {
    size_t bytes = (size_t)(a * n * b) * sizeof(float);
    guard from = guard_new(bytes), to = guard_new(bytes);
    float *expected = (float *)malloc(bytes), *x = (float *)guard_end(from, bytes);
    void *y = guard_end(to, bytes);
    int64_t k;
    int threads;
    for (k = 0; k < a * n * b; k++)
        x[k] = (float)dvt_test_random(-1, 1);
    run_scan("reference", 1, block_of(x, DVT_F32, a, n, b), block_of(expected, DVT_F32, a, n, b),
             backwards);
    FOR_EACH_TIER(for (threads = 1; threads <= 2; threads++) {
        memset(y, 0, bytes);
        run_scan(tier->name, threads, block_of(x, DVT_F32, a, n, b), block_of(y, DVT_F32, a, n, b),
                 backwards);
        dvt_test_check(memcmp(y, expected, bytes) == 0, __FILE__, __LINE__,
                       "%s: (%d, %d, %d), backwards %d", tier->name, (int)a, (int)n, (int)b,
                       backwards);
    });
    free(expected);
    guard_free(from);
    guard_free(to);
}

DVT_TEST(tier_cumulative_sums) {
    static const int64_t lengths[] = {1, 16, 31, 100, 4096, 5000, 70001};
    int i, backwards;
    for (i = 0; i < 7; i++)
        for (backwards = 0; backwards < 2; backwards++) {
            check_scan(1, lengths[i], 1, backwards);
            check_scan(16, lengths[i], 1, backwards);
            check_scan(23, lengths[i], 1, backwards);
            check_scan(2, lengths[i], 5, backwards);
            check_scan(1, DVTI_MIN(lengths[i], 5000), 530, backwards);
        }
}
