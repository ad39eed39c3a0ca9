/* Quicksort of keys on every ISA target that has it: small lengths, and inputs that its pivots
   divide badly. Memory ends after the keys. */
#include "isa.h"

enum { MOST = 20000 };

static int compare(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void check_sort(const dvti_simd *target, const int32_t *from, const int32_t *wanted,
                       int32_t *x, int64_t n, int form) {
    static int32_t lanes[16 * DVTI_SORT_LEAF];
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    if (!quick->sort)
        return;
    memcpy(x, from, (size_t)n * sizeof *x);
    quick->sort(x, n, lanes);
    dvt_test_check(memcmp(x, wanted, (size_t)n * sizeof *x) == 0, __FILE__, __LINE__,
                   "%s: %d keys of form %d", target->name, (int)n, form);
}

/* The first part has no key above one of the second; no key is lost. */
static void check_cut(const dvti_simd *target, const int32_t *from, const int32_t *wanted,
                      int32_t *x, int64_t n, int form) {
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    int64_t first;
    bool good;
    if (!quick->sort || n < DVTI_SORT_LEAF)
        return;
    memcpy(x, from, (size_t)n * sizeof *x);
    first = quick->cut(x, n);
    good = first > 0 && first <= n && (first < n || wanted[0] == wanted[n - 1]);
    qsort(x, (size_t)first, sizeof *x, compare);
    qsort(x + first, (size_t)(n - first), sizeof *x, compare);
    dvt_test_check(good && memcmp(x, wanted, (size_t)n * sizeof *x) == 0, __FILE__, __LINE__,
                   "%s: cut of %d keys of form %d", target->name, (int)n, form);
}

static int32_t key_of(int form, int64_t i, int64_t n) {
    switch (form) {
    case 0:
        return (int32_t)dvt_test_random(-2147483648., 2147483647.);
    case 1: /* few values */
        return (int32_t)dvt_test_random(-2, 3);
    case 2:
        return (int32_t)i;
    case 3:
        return (int32_t)-i;
    case 4: /* up and down */
        return (int32_t)DVTI_MIN(i, n - i);
    case 5:
        return i % 2 ? INT32_MAX : INT32_MIN;
    case 6: /* nearly all are the largest */
        return dvt_test_random(0, 1) < 0.98 ? INT32_MAX : (int32_t)dvt_test_random(-100, 100);
    case 7:
        return dvt_test_random(0, 1) < 0.98 ? INT32_MIN : (int32_t)dvt_test_random(-100, 100);
    case 8: /* each power of two is half as frequent as the one before */
        return (int32_t)1 << (int)fmin(30, -log2(dvt_test_random(1e-12, 1)));
    case 9: /* the keys that the first pivot reads are the smallest */
        return i % (n / 9 + 1) == n / 18 ? (int32_t)-i : (int32_t)dvt_test_random(0, 1e9);
    default:
        return 7;
    }
}

DVT_TEST(isa_quicksort) {
    static int32_t from[MOST], wanted[MOST];
    int64_t n, i;
    int form;
    guard memory = guard_new(MOST * sizeof(int32_t));
    for (n = 1; n <= MOST; n += n < 70 ? 1 : n < 1500 ? 1 + n / 20 : 9241)
        for (form = 0; form <= 10; form++) {
            int32_t *x = (int32_t *)guard_end(memory, (size_t)n * sizeof *x);
            for (i = 0; i < n; i++)
                wanted[i] = from[i] = key_of(form, i, n);
            qsort(wanted, (size_t)n, sizeof *wanted, compare);
            FOR_EACH_TARGET(check_sort(target, from, wanted, x, n, form));
            FOR_EACH_TARGET(check_cut(target, from, wanted, x, n, form));
        }
    guard_free(memory);
}

static void check_keys(const dvti_simd *target, const float *from, int32_t *key, float *back,
                       int64_t n, bool descending, bool decided) {
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    const int32_t *bits = (const int32_t *)(const void *)from;
    int64_t i;
    bool good;
    if (!quick->sort)
        return;
    good = quick->keys(bits, n, true, descending, key) == decided;
    for (i = 1; decided && i < n; i++)
        good &= descending ? (from[i - 1] < from[i]) == (key[i - 1] > key[i])
                           : (from[i - 1] < from[i]) == (key[i - 1] < key[i]);
    if (decided) {
        quick->elements(key, n, true, descending, (int32_t *)(void *)back);
        good &= memcmp(from, back, (size_t)n * sizeof *from) == 0;
    }
    dvt_test_check(good, __FILE__, __LINE__, "%s: keys of %d", target->name, (int)n);
}

DVT_TEST(isa_keys_of_quicksort) {
    static const float undecided[] = {NAN, -NAN, -0.f};
    static float from[100];
    guard memory = guard_new(sizeof from), back = guard_new(sizeof from);
    int64_t n, i;
    for (n = 1; n <= DVTI_LENGTH(from); n++) {
        const size_t bytes = (size_t)n * sizeof *from;
        int32_t *key = (int32_t *)guard_end(memory, bytes);
        float *to = (float *)guard_end(back, bytes);
        for (i = 0; i < n; i++)
            from[i] = i % 37 == 5 ? INFINITY : 0.f + floorf((float)dvt_test_random(-50, 50)) / 8;
        from[n / 2] = -INFINITY;
        FOR_EACH_TARGET(check_keys(target, from, key, to, n, false, true));
        FOR_EACH_TARGET(check_keys(target, from, key, to, n, true, true));
        from[n / 3] = undecided[n % 3];
        FOR_EACH_TARGET(check_keys(target, from, key, to, n, false, false));
    }
    guard_free(memory);
    guard_free(back);
}
