/* The elements beyond a bound, by every tier: against a plain loop, for all tails, with elements that begin and end where memory does. */
#include "tiers.h"

enum { MOST = 70 };

static void check_beyond(int64_t n, float bound, bool below, int side) {
    size_t bytes = (size_t)n * sizeof(float);
    guard memory = guard_new(bytes);
    FOR_EACH_TIER({
        float *x = (float *)(side ? guard_end(memory, bytes) : guard_start(memory));
        uint16_t at[MOST + 1];
        int64_t i, found = 0, got;
        bool good = true;
        for (i = 0; i < n; i++)
            x[i] = i % 7 == 3   ? NAN
                   : i % 5 == 1 ? bound
                   : i % 9 == 4 ? INFINITY
                                : (float)dvt_test_random(-2, 2);
        memset(at, 0xff, sizeof at);
        got = tier->beyond(x, n, bound, below, at);
        for (i = 0; i < n; i++)
            if (below ? !(x[i] >= bound) : !(x[i] <= bound))
                good = good && at[found++] == i;
        dvt_test_check(good && got == found && at[found] == 0xffff, __FILE__, __LINE__,
                       "%s: %d elements, %s %g", tier->name, (int)n, below ? "below" : "above",
                       (double)bound);
    });
    guard_free(memory);
}

DVT_TEST(tier_beyond_a_bound) {
    static const float bounds[] = {0, -0.f, 1.5f, -1, INFINITY, -INFINITY};
    int64_t n;
    int i;
    for (n = 1; n <= MOST; n++)
        for (i = 0; i < 6; i++) {
            check_beyond(n, bounds[i], false, 1);
            check_beyond(n, bounds[i], true, 1);
            check_beyond(n, bounds[i], true, 0);
        }
}
