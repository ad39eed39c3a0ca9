/* Selection of the first k on every ISA target: elements beyond a bound, against a plain loop, and
   a bound that enough elements reach. Covers all tails, with elements at both ends of memory. */
#include "isa.h"

enum { MOST = 70 };

static void check_above(const dvti_simd *target, const float *x, int64_t n, float bound,
                        bool below) {
    uint16_t at[MOST + 1];
    int64_t i, found = 0, got;
    bool good = true;
    memset(at, 0xff, sizeof at);
    got = dvti_simd_order_of(target)->above(x, n, bound, below, at);
    for (i = 0; i < n; i++)
        if (below ? !(x[i] >= bound) : !(x[i] <= bound))
            good = good && at[found++] == i;
    dvt_test_check(good && got == found && at[found] == 0xffff, __FILE__, __LINE__,
                   "%s: %d elements, %s %g", target->name, (int)n, below ? "below" : "above",
                   (double)bound);
}

static float mixed(int64_t i, float bound) {
    return i % 7 == 3   ? NAN
           : i % 5 == 1 ? bound
           : i % 9 == 4 ? INFINITY
                        : (float)dvt_test_random(-2, 2);
}

DVT_TEST(isa_above_a_bound) {
    static const float bounds[] = {0, -0.f, 1.5f, -1, INFINITY, -INFINITY};
    int64_t n, i;
    int b;
    for (n = 1; n <= MOST; n++)
        for (b = 0; b < 6; b++) {
            size_t bytes = (size_t)n * sizeof(float);
            guard memory = guard_new(bytes);
            float *first = (float *)guard_start(memory), *last = (float *)guard_end(memory, bytes);
            for (i = 0; i < n; i++)
                last[i] = mixed(i, bounds[b]);
            FOR_EACH_TARGET(check_above(target, last, n, bounds[b], false));
            FOR_EACH_TARGET(check_above(target, last, n, bounds[b], true));
            for (i = 0; i < n; i++)
                first[i] = mixed(i, bounds[b]);
            FOR_EACH_TARGET(check_above(target, first, n, bounds[b], true));
            guard_free(memory);
        }
}

/* Checks that at least k elements reach the bound, and without NaN not many more. All ISA targets
   return the same bound. */
static void check_kth_bound(const dvti_simd *target, const float *x, int64_t n, int64_t k,
                            bool below, bool some_nan, float *before) {
    float bound = dvti_simd_order_of(target)->kth_bound(x, n, k, below);
    int64_t i, better = 0;
    for (i = 0; i < n; i++)
        better += below ? x[i] <= bound : x[i] >= bound;
    dvt_test_check(bound != bound ? n < 64 || some_nan
                                  : better >= k && (some_nan || better <= 8 * k + 40),
                   __FILE__, __LINE__, "%s: %d of %d: %d reach %g", target->name, (int)k, (int)n,
                   (int)better, (double)bound);
    dvt_test_check(some_nan || *before == 0 || same_bits_f32(bound, *before), __FILE__, __LINE__,
                   "%s: another bound for %d of %d", target->name, (int)k, (int)n);
    *before = bound;
}

DVT_TEST(isa_kth_bound) {
    static const int64_t of[] = {63, 64, 65, 79, 80, 127, 130, 500, 1024};
    int64_t i, k;
    int at, some_nan;
    for (at = 0; at < 9; at++)
        for (some_nan = 0; some_nan < 2; some_nan++) {
            size_t bytes = (size_t)of[at] * sizeof(float);
            guard memory = guard_new(bytes);
            float *x = (float *)guard_end(memory, bytes);
            for (i = 0; i < of[at]; i++)
                x[i] = some_nan && i % 3 == 0 ? NAN : ((float)(i * 7919 % 1009) - 500.5f) / 7;
            for (k = 1; k <= 40; k++) {
                float up = 0, down = 0;
                FOR_EACH_TARGET(check_kth_bound(target, x, of[at], k, false, some_nan != 0, &up));
                FOR_EACH_TARGET(check_kth_bound(target, x, of[at], k, true, some_nan != 0, &down));
            }
            FOR_EACH_TARGET(
                CHECK(isnan(dvti_simd_order_of(target)->kth_bound(x, of[at], 41, false))));
            guard_free(memory);
        }
}
