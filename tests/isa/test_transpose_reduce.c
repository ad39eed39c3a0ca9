/* The kernels that reduce rows, each alone. They access nothing outside their rows, also at the
   edge of memory. The bits of a row do not depend on its neighbors. Of equal elements the first one
   wins. */
#include "reductions.h"

static dvti_reduction reduction_of(dvti_op op, dvt_dtype dtype, const void *x, int64_t step,
                                   int64_t rows, int64_t n, double *value, int64_t *at) {
    dvti_reduction p;
    memset(&p, 0, sizeof p);
    p.op = op;
    p.dtype = dtype;
    p.x = x;
    p.step = step;
    p.rows = rows;
    p.n = n;
    p.value = value;
    p.at = at;
    return p;
}

static dvti_reduce_kernel kernel_of(const dvti_simd *target, dvti_op op, dvt_dtype dtype) {
    if (op == DVTI_OP_any || op == DVTI_OP_all)
        return dvti_simd_reduce_of(target)->any_all;
    if (op == DVTI_OP_variance)
        return dtype == DVT_F32 ? dvti_simd_reduce_of(target)->variance
                                : dvti_simd_reduce_of(target)->variance64;
    return dtype == DVT_F32 ? dvti_simd_reduce_of(target)->reduce(op)
                            : dvti_simd_reduce_of(target)->reduce64(op);
}

DVT_TEST(isa_reduces_stay_in_their_rows) {
    static const dvt_dtype own[] = {DVT_F32, DVT_F64};
    guard memory = guard_new(3 * 4096 * sizeof(double));
    static double value[DVTI_BLOCK];
    static int64_t at[DVTI_BLOCK];
    int n, side, r, k;
    for (n = 1; n <= 200; n++)
        for (side = 0; side < 4; side++) {
            const dvt_dtype dtype = own[side / 2];
            size_t bytes = (size_t)(n * dvt_dtype_size(dtype));
            void *x = side % 2 ? guard_end(memory, bytes) : guard_start(memory);
            for (k = 0; k < n; k++)
                dvti_store_f64(x, dtype, k, k % 7 - 3);
            FOR_EACH_TARGET(for (r = 0; r < REDUCTIONS; r++) {
                const dvti_op op = reductions[r].op;
                dvti_reduce_kernel kernel = kernel_of(target, op, dtype);
                dvti_reduction p =
                    reduction_of(op, dtype, x, n, 1, n, value, places(op) ? at : NULL);
                if (kernel.rows)
                    kernel.rows(&p);
                if (places(op) && kernel.rows)
                    CHECK_INT(at[0], n == 1 ? 0 : op == DVTI_OP_argmin ? 0 : DVTI_MIN(n - 1, 6));
            });
            bytes *= 11;
            x = side % 2 ? guard_end(memory, bytes) : guard_start(memory);
            for (k = 0; k < 11 * n; k++)
                dvti_store_f64(x, dtype, k, k % 5);
            FOR_EACH_TARGET(for (r = 0; r < REDUCTIONS; r++) {
                const dvti_op op = reductions[r].op;
                dvti_reduce_kernel kernel = kernel_of(target, op, dtype);
                dvti_reduction p =
                    reduction_of(op, dtype, x, n, 11, n, value, places(op) ? at : NULL);
                memset(value, 0, sizeof value);
                if (kernel.rows)
                    kernel.columns(&p);
                if (op == DVTI_OP_sum)
                    for (k = 0; k < n; k++) {
                        double sum = 0;
                        int row;
                        for (row = 0; row < 11; row++)
                            sum += (row * n + k) % 5;
                        CHECK(value[k] == sum);
                    }
            });
        }
    guard_free(memory);
}

/* The bits of a row do not depend on the number of rows or on the elements between them. */
DVT_TEST(isa_reduces_rows_together_as_alone) {
    enum { ROWS = 37, MOST = 300 };

    static const dvt_dtype own[] = {DVT_F32, DVT_F64};
    guard memory = guard_new(ROWS * MOST * sizeof(double));
    double value[ROWS], mean[ROWS], alone;
    float narrow[ROWS];
    int64_t at[ROWS], alone_at, n, step, k;
    int d, r, row;
    for (n = 1; n <= MOST - 3; n += n < 34 ? 1 : 19)
        for (d = 0; d < 2; d++) {
            const size_t size = (size_t)dvt_dtype_size(own[d]);
            char *x;
            step = n + n % 3;
            x = (char *)guard_end(memory, size * (size_t)((ROWS - 1) * step + n));
            for (k = 0; k < (ROWS - 1) * step + n; k++)
                dvti_store_f64(x, own[d], k,
                               (int)dvt_test_random(0, 500) ? dvt_test_random(-2, 2)
                               : (int)dvt_test_random(0, 2) ? (double)NAN
                                                            : (double)INFINITY);
            for (row = 0; row < ROWS; row++)
                mean[row] = narrow[row] = (float)row / 32;
            FOR_EACH_TARGET(for (r = 0; r <= REDUCTIONS; r++) {
                const dvti_op op = r < REDUCTIONS ? reductions[r].op : DVTI_OP_variance;
                const char *means = own[d] == DVT_F64 ? (char *)mean : (char *)narrow;
                dvti_reduce_kernel kernel = kernel_of(target, op, own[d]);
                dvti_reduction p =
                    reduction_of(op, own[d], x, step, ROWS, n, value, places(op) ? at : NULL);
                bool same = true;
                if (!kernel.rows)
                    continue;
                p.mean = op == DVTI_OP_variance ? means : NULL;
                kernel.rows(&p);
                p.rows = 1;
                p.value = &alone;
                p.at = places(op) ? &alone_at : NULL;
                for (row = 0; row < ROWS; row++) {
                    p.x = x + size * (size_t)(row * step);
                    p.mean = op == DVTI_OP_variance ? means + size * (size_t)row : NULL;
                    kernel.rows(&p);
                    same = same && same_bits_f64(alone, value[row]) &&
                           (!places(op) || alone_at == at[row]);
                }
                dvt_test_check(same, __FILE__, __LINE__, "%s, op %d, %s rows of %d differ",
                               target->name, (int)op, dvt_dtype_name(own[d]), (int)n);
            });
        }
    guard_free(memory);
}

/* Uses small integers, so that every order gives the same sums. */
DVT_TEST(isa_squares_of_distances) {
    guard xs = guard_new(11 * 200 * sizeof(double)), ms = guard_new(200 * sizeof(double));
    static double value[DVTI_BLOCK];
    int n, side, k, r, j, bad;
    for (n = 1; n <= 200; n++)
        for (side = 0; side < 4; side++) {
            const dvt_dtype dtype = side / 2 ? DVT_F64 : DVT_F32;
            const size_t size = (size_t)dvt_dtype_size(dtype), bytes = size * (size_t)n;
            char *x = (char *)(side % 2 ? guard_end(xs, 11 * bytes) : guard_start(xs));
            char *mean = (char *)(side % 2 ? guard_end(ms, bytes) : guard_start(ms));
            for (k = 0; k < 11 * n; k++)
                dvti_store_f64(x, dtype, k, (k * 7 + 3) % 19);
            for (k = 0; k < n; k++)
                dvti_store_f64(mean, dtype, k, k % 5);
            FOR_EACH_TARGET({
                dvti_reduce_kernel kernel = kernel_of(target, DVTI_OP_variance, dtype);
                dvti_reduction p = reduction_of(DVTI_OP_variance, dtype, x, n, 7, n, value, NULL);
                p.mean = mean;
                bad = 0;
                memset(value, 0, sizeof value);
                kernel.columns(&p);
                p.x = x + 7 * bytes;
                p.rows = 4;
                p.seen = 7;
                kernel.columns(&p);
                for (j = 0; j < n; j++) {
                    double sum = 0;
                    for (r = 0; r < 11; r++)
                        sum += (((r * n + j) * 7 + 3) % 19 - j % 5) *
                               (((r * n + j) * 7 + 3) % 19 - j % 5);
                    bad += value[j] != sum;
                }
                p.rows = 1;
                for (r = 0; r < DVTI_MIN(11, n); r++) {
                    double sum = 0;
                    p.x = x + (size_t)r * bytes;
                    p.mean = mean + (size_t)r * size;
                    kernel.rows(&p);
                    for (j = 0; j < n; j++)
                        sum += (((r * n + j) * 7 + 3) % 19 - r % 5) *
                               (((r * n + j) * 7 + 3) % 19 - r % 5);
                    bad += value[0] != sum;
                }
                dvt_test_check(bad == 0, __FILE__, __LINE__, "%s, %d elements: %d sums are wrong",
                               target->name, n, bad);
            });
        }
    guard_free(xs);
    guard_free(ms);
}

/* Checks the first of equals and the first NaN at every position. */
DVT_TEST(isa_finds_the_first_extreme) {
    static double x[2600];
    static float narrow[2600];
    double value;
    int64_t at;
    int place, k, wide;
    for (place = 0; place < 2600; place += place < 40 ? 1 : 37)
        for (wide = 0; wide < 2; wide++)
            FOR_EACH_TARGET({
                const dvt_dtype dtype = wide ? DVT_F64 : DVT_F32;
                dvti_reduction p =
                    reduction_of(DVTI_OP_argmax, dtype, wide ? (void *)x : (void *)narrow, 0, 1,
                                 2600, &value, &at);
                for (k = 0; k < 2600; k++)
                    x[k] = narrow[k] = k < place ? 1 : 2;
                kernel_of(target, p.op, dtype).rows(&p);
                CHECK_INT(at, place);
                CHECK(value == 2);
                x[place] = narrow[place] = NAN;
                p.op = DVTI_OP_argmin;
                kernel_of(target, p.op, dtype).rows(&p);
                CHECK_INT(at, place);
                CHECK(value != value);
            });
}
