/* Sixteen columns on every ISA target, for all lengths, with memory ending after them. They are
   sorted as insertion sort does, and the best are selected. NaN and -0 must be reported. */
#include "isa.h"

enum { MOST = 300 }; /* more than 16 * 16 */

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

static int64_t rows_for(int64_t n) {
    int64_t rows = 16;
    while (rows < n)
        rows *= 2;
    return rows;
}

static void check_columns(const dvti_simd *target, const float *from, float *x, int64_t n,
                          bool descending, bool decided) {
    static float wanted[16 * MOST];
    size_t bytes = (size_t)n * 16 * sizeof *x;
    int column;
    bool good;
    memcpy(wanted, from, bytes);
    memcpy(x, from, bytes);
    for (column = 0; decided && column < 16; column++)
        insert(wanted + column, n, descending);
    good = dvti_simd_order_of(target)->sort_columns(x, n, true, descending) == decided;
    if (decided)
        good &= memcmp(x, wanted, bytes) == 0;
    dvt_test_check(good, __FILE__, __LINE__, "%s: columns of %d", target->name, (int)n);
}

static int compare_ints(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Every int32 is sorted, also the bit patterns of NaN and -0. */
static void check_ints(const dvti_simd *target, const int32_t *from, int32_t *x, int64_t n,
                       bool descending) {
    int32_t wanted[MOST];
    int column;
    int64_t i;
    bool good;
    memcpy(x, from, (size_t)n * 16 * sizeof *x);
    good = dvti_simd_order_of(target)->sort_columns(x, n, false, descending);
    for (column = 0; column < 16; column++) {
        for (i = 0; i < n; i++)
            wanted[i] = from[16 * i + column];
        qsort(wanted, (size_t)n, sizeof *wanted, compare_ints);
        for (i = 0; i < n; i++)
            good &= x[16 * i + column] == wanted[descending ? n - 1 - i : i];
    }
    dvt_test_check(good, __FILE__, __LINE__, "%s: columns of %d int32", target->name, (int)n);
}

DVT_TEST(isa_sorted_columns) {
    static const float undecided[] = {NAN, -NAN, -0.f};
    static const int32_t corner[] = {INT32_MIN, INT32_MAX, -1, 0x7fc00000};
    static float from[16 * MOST];
    static int32_t ints[16 * MOST];
    int64_t n, i;
    for (n = 1; n <= MOST; n++) {
        size_t bytes = (size_t)rows_for(n) * 16 * sizeof *from;
        guard memory = guard_new(bytes);
        float *x = (float *)guard_end(memory, bytes);
        for (i = 0; i < 16 * n; i++)
            from[i] = i % 37 == 5   ? INFINITY
                      : i % 41 == 7 ? -INFINITY
                                    : 0.f + floorf((float)dvt_test_random(-50, 50));
        for (i = 0; i < 16 * n; i++)
            ints[i] = i % 11 == 3 ? corner[i % 4] : (int32_t)dvt_test_random(-2e9, 2e9);
        FOR_EACH_TARGET(check_columns(target, from, x, n, false, true));
        FOR_EACH_TARGET(check_columns(target, from, x, n, true, true));
        FOR_EACH_TARGET(check_ints(target, ints, (int32_t *)x, n, false));
        FOR_EACH_TARGET(check_ints(target, ints, (int32_t *)x, n, true));
        from[(n * 7) % (16 * n)] = undecided[n % 3];
        FOR_EACH_TARGET(check_columns(target, from, x, n, false, false));
        guard_free(memory);
    }
}

/* Selects in two calls, the second of which continues the first. */
static void check_best(const dvti_simd *target, const float *x, int64_t n, int64_t k, bool below,
                       bool decided) {
    float value[16 * 16];
    int32_t at[16 * 16];
    int64_t half = n / 2, column, i, j;
    bool good, decides;
    for (i = 0; i < 16 * k; i++)
        value[i] = NAN;
    memset(at, 0, sizeof at);
    decides = dvti_simd_order_of(target)->best_of_columns(x, half, 0, k, below, value, at);
    decides &= dvti_simd_order_of(target)->best_of_columns(x + 16 * half, n - half, (int32_t)half,
                                                           k, below, value, at);
    good = decides == decided;
    for (column = 0; decided && column < 16; column++)
        for (i = 0; i < n; i++) {
            const float own = x[16 * i + column];
            int64_t before = 0;
            for (j = 0; j < n; j++) {
                const float other = x[16 * j + column];
                before += (below ? other < own : other > own) || (other == own && j < i);
            }
            good &= before >= k || (at[16 * before + column] == i &&
                                    value[16 * before + column] == (below ? -own : own));
        }
    dvt_test_check(good, __FILE__, __LINE__, "%s: best %d of columns of %d", target->name, (int)k,
                   (int)n);
}

DVT_TEST(isa_best_of_columns) {
    static const float undecided[] = {NAN, -NAN, -0.f};
    int64_t n, k, i;
    for (n = 1; n < 60; n++)
        for (k = 1; k <= DVTI_MIN(n, 16); k += 1 + k / 2) {
            size_t bytes = (size_t)n * 16 * sizeof(float);
            guard memory = guard_new(bytes);
            float *x = (float *)guard_end(memory, bytes);
            for (i = 0; i < 16 * n; i++)
                x[i] = i % 37 == 5   ? INFINITY
                       : i % 41 == 7 ? -INFINITY
                                     : 0.f + floorf((float)dvt_test_random(-9, 9));
            FOR_EACH_TARGET(check_best(target, x, n, k, false, true));
            FOR_EACH_TARGET(check_best(target, x, n, k, true, true));
            x[n * 7 % (16 * n)] = undecided[n % 3];
            FOR_EACH_TARGET(check_best(target, x, n, k, false, false));
            guard_free(memory);
        }
}

/* Ranks NaN after all numbers, of either sign; -0 equals 0. */
static bool stands_before(const void *x, int64_t i, int64_t j, bool floats) {
    const float a = ((const float *)x)[i], b = ((const float *)x)[j];
    if (!floats)
        return ((const int32_t *)x)[i] < ((const int32_t *)x)[j];
    return b != b ? a == a : a < b;
}

static void check_ranks(const dvti_simd *target, const void *x, int64_t n, bool floats,
                        bool descending, int32_t *key, int32_t *rank) {
    int64_t i, j, bad = 0;
    dvti_simd_order_of(target)->ranks((const int32_t *)x, n, floats, descending, key, rank);
    for (i = 0; i < n; i++) {
        int32_t wanted = 0;
        for (j = 0; j < n; j++)
            wanted += descending ? stands_before(x, i, j, floats) : stands_before(x, j, i, floats);
        bad += rank[i] != wanted;
    }
    dvt_test_check(bad == 0, __FILE__, __LINE__, "%s: %d of %d ranks are wrong", target->name,
                   (int)bad, (int)n);
}

DVT_TEST(isa_ranks_of_a_row) {
    static const uint32_t corner[] = {0x7fc00000, 0xffc00001, 0x80000000, 0,          0xffffffff,
                                      0x7fffffff, 0x7f800000, 0xff800000, 0x00000001, 0x80000001};
    guard memory = guard_new(MOST * sizeof(int32_t));
    guard keys = guard_new((MOST + 64) * sizeof(int32_t));
    guard ranks = guard_new((MOST + 64) * sizeof(int32_t));
    int64_t n, i;
    for (n = 1; n <= MOST; n += n < 70 ? 1 : 23) {
        const size_t bytes = (size_t)n * sizeof(int32_t), more = bytes + 64 * sizeof(int32_t);
        int32_t *x = (int32_t *)guard_end(memory, bytes);
        int32_t *key = (int32_t *)guard_end(keys, more), *rank = (int32_t *)guard_end(ranks, more);
        int way;
        for (way = 0; way < 4; way++) {
            for (i = 0; i < n; i++) {
                const float value = (float)(int)dvt_test_random(-40, 40);
                memcpy(x + i,
                       (int)dvt_test_random(0, 5) ? (const void *)&value
                                                  : &corner[(int)dvt_test_random(0, 10)],
                       sizeof *x);
            }
            FOR_EACH_TARGET(check_ranks(target, x, n, way / 2 == 0, way % 2 == 0, key, rank));
        }
    }
    guard_free(memory);
    guard_free(keys);
    guard_free(ranks);
}
