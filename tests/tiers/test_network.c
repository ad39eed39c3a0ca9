/* Sixteen columns side by side, by every tier: sorted as plain insertion sorts them, for all lengths, with memory ending behind them; and left
   alone where floats do not decide. */
#include "tiers.h"

enum { MOST = 140 };

static void insert(float *column, int64_t n, bool descending) {
    int64_t i, j;
    for (i = 1; i < n; i++) {
        float own = column[16 * i];
        for (j = i; j > 0 && (descending ? column[16 * (j - 1)] < own : column[16 * (j - 1)] > own);
             j--)
            column[16 * j] = column[16 * (j - 1)];
        column[16 * j] = own;
    }
}

static void check_columns(const dvti_simd *tier, const float *from, float *x, int64_t n,
                          bool descending, bool decided) {
    static float wanted[16 * MOST];
    size_t bytes = (size_t)n * 16 * sizeof *x;
    int column;
    memcpy(wanted, from, bytes);
    memcpy(x, from, bytes);
    for (column = 0; decided && column < 16; column++)
        insert(wanted + column, n, descending);
    dvt_test_check(tier->sort_columns(x, n, descending) == decided && memcmp(x, wanted, bytes) == 0,
                   __FILE__, __LINE__, "%s: columns of %d", tier->name, (int)n);
}

DVT_TEST(tier_sorted_columns) {
    static const float undecided[] = {NAN, -NAN, -0.f};
    static float from[16 * MOST];
    int64_t n, i;
    for (n = 1; n <= MOST; n++) {
        size_t bytes = (size_t)n * 16 * sizeof *from;
        guard memory = guard_new(bytes);
        float *x = (float *)guard_end(memory, bytes);
        for (i = 0; i < 16 * n; i++)
            from[i] = i % 37 == 5   ? INFINITY
                      : i % 41 == 7 ? -INFINITY
                                    : 0.f + floorf((float)dvt_test_random(-50, 50));
        FOR_EACH_TIER(check_columns(tier, from, x, n, false, true));
        FOR_EACH_TIER(check_columns(tier, from, x, n, true, true));
        from[(n * 7) % (16 * n)] = undecided[n % 3];
        FOR_EACH_TIER(check_columns(tier, from, x, n, false, false));
        guard_free(memory);
    }
}
