/* Normal numbers of float32: their error against the exact transform, for random numbers that
   Philox is made to return. */
#include "launches.h"

/* Bound in units in the last place. The largest of 2 * 10^7 pairs, most of them near special
   values, was 3.28. */
#define MOST_ULPS 3.5L

static const uint32_t factor[2] = {0xD2511F53u, 0xCD9E8D57u};

/* Returns x with x * factor = 1 modulo 2^32, by Newton's iteration. */
static uint32_t inverse(uint32_t a) {
    uint32_t x = a;
    int i;
    for (i = 0; i < 5; i++)
        x *= 2 - a * x;
    return x;
}

/* Returns the counter for which Philox gives these outputs. Each round is invertible, as the
   factors are odd. */
static void undo_philox(const uint32_t key[2], uint32_t c[4]) {
    uint32_t before[4];
    int round;
    for (round = 9; round >= 0; round--) {
        uint32_t k0 = key[0] + (uint32_t)round * 0x9E3779B9u;
        uint32_t k1 = key[1] + (uint32_t)round * 0xBB67AE85u;
        before[2] = c[1] * inverse(factor[1]);
        before[0] = c[3] * inverse(factor[0]);
        before[1] = c[0] ^ k0 ^ (uint32_t)((uint64_t)factor[1] * before[2] >> 32);
        before[3] = c[2] ^ k1 ^ (uint32_t)((uint64_t)factor[0] * before[0] >> 32);
        memcpy(c, before, sizeof before);
    }
}

static dvti_launch normal_launch(const uint32_t words[4], dvt_dtype dtype, int64_t n, void *out) {
    const uint32_t key[2] = {0x9e3779b9u, 0x7f4a7c15u};
    uint32_t counter[4];
    dvti_launch launch;
    memcpy(counter, words, sizeof counter);
    undo_philox(key, counter);
    launch = random_launch(DVTI_OP_normal, dtype, n, (uint64_t)key[0] << 32 | key[1],
                           (uint64_t)counter[1] << 32 | counter[0],
                           (uint64_t)counter[2] << 32 | counter[3]);
    launch.out[0].data = out;
    launch.f[1] = 1;
    return launch;
}

/* Computes the transform of (first + 1) / 2^32 and second / 2^32. Reduces the angle first, because
   no long double equals pi / 2. */
static void transform(uint32_t first, uint32_t second, long double out[2]) {
    const long double unit = 1 / 4294967296.0L;
    uint32_t quarter = (second + 0x20000000u) >> 30;
    int32_t rest = (int32_t)(second - (quarter << 30));
    long double r = sqrtl(-2 * log1pl(-(long double)(0xffffffffu - first) * unit)), swapped;
    long double angle = 6.283185307179586476925286766559L * ((long double)rest * unit);
    out[0] = r * cosl(angle);
    out[1] = r * sinl(angle);
    for (; quarter; quarter--) {
        swapped = out[0];
        out[0] = -out[1];
        out[1] = swapped;
    }
}

static void check_pair(uint32_t first, uint32_t second, double even, double odd, const char *who) {
    long double want[2], error;
    int k, exponent;
    transform(first, second, want);
    for (k = 0; k < 2; k++) {
        frexpl(want[k], &exponent);
        error = fabsl((k ? odd : even) - want[k]) / ldexpl(1, exponent - 24);
        dvt_test_check(error <= MOST_ULPS || (want[k] == 0 && (k ? odd : even) == 0), __FILE__,
                       __LINE__, "%s: words %08x %08x, number %d: %.9g, expected %.12Lg: %.2Lf ulp",
                       who, (unsigned)first, (unsigned)second, k, k ? odd : even, want[k], error);
    }
}

DVT_TEST(normal_numbers_are_accurate) {
    dvti_launch launch;
    double pair[2];
    int i, few;
    memset(&launch, 0, sizeof launch);
    launch.f[1] = 1;
    for (i = 0; i < 100000; i++) {
        uint32_t first = (uint32_t)dvt_test_random(0, 4294967296.0);
        uint32_t second = (uint32_t)dvt_test_random(0, 4294967296.0);
        few = (int)dvt_test_random(0, 32);
        if (i % 4 == 1) /* small, */
            first >>= few;
        if (i % 4 == 2) /* close to 1, */
            first = ~(first >> few);
        if (i % 4 == 3) /* and where the exponent changes */
            first = 0xb504f333u + (second & 1 ? 1 : -1u) * (first >> 2 >> few);
        if (i % 8 >= 4) /* close to an axis */
            second = (second & 0xc0000000u) + (second >> few & 1 ? 1 : -1u) * (second << 2 >> few);
        dvti_normal_pair(first, second, &launch, pair);
        check_pair(first, second, pair[0], pair[1], "reference");
    }
}

DVT_TEST(normal_numbers_of_special_words) {
    static const uint32_t first[] = {
        0,          1,          2,           253,         254,         255,         256,
        0xfffffe,   0xffffff,   0x1000000,   0x7ffffffe,  0x7fffffff,  0x80000000u, 0xb504f2ffu,
        0xb504f332, 0xb504f333, 0xb504f3ffu, 0xfffffeffu, 0xffffff00u, 0xfffffffeu, 0xffffffffu};
    static const uint32_t second[] = {
        0,           1,           0x1fffffff,  0x20000000,  0x20000001,  0x3fffffff,  0x40000000,
        0x40000001,  0x5fffffff,  0x60000000,  0x7fffffff,  0x80000000u, 0x9fffffffu, 0xa0000000u,
        0xbfffffffu, 0xc0000000u, 0xc0000001u, 0xdfffffffu, 0xe0000000u, 0xffffffffu};
    int i, j, k;
    for (i = 0; i < (int)(sizeof first / sizeof *first); i++)
        for (j = 0; j < (int)(sizeof second / sizeof *second); j++) {
            uint32_t words[4];
            float want[4], have[4];
            dvti_launch launch;
            words[0] = words[2] = first[i];
            words[1] = words[3] = second[j];
            launch = normal_launch(words, DVT_F32, 4, want);
            CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
            dvti_cpu_run(&launch);
            for (k = 0; k < 4; k += 2)
                check_pair(first[i], second[j], want[k], want[k + 1], "reference");
            launch.out[0].data = have;
            FOR_EACH_TARGET({
                CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
                dvti_cpu_run(&launch);
                CHECK(memcmp(have, want, sizeof want) == 0);
            });
        }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* 16-bit results are those of float32, rounded; nothing after the array is written. */
DVT_TEST(normal_numbers_of_16_bits) {
    static const int64_t sizes[] = {1, 2, 3, 5, 63, 64, 67, 511, 512, 513, 1030, 5000};
    static const uint32_t words[4] = {12345, 678, 90, 0xfffffff0u};
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16};
    uint16_t want[5000];
    float wide[5000];
    int i, k;
    for (i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        for (k = 0; k < 2; k++) {
            int64_t n = sizes[i];
            size_t bytes = (size_t)n * sizeof(uint16_t);
            guard got = guard_new(bytes);
            void *have = guard_end(got, bytes);
            dvti_launch launch = normal_launch(words, DVT_F32, n, wide);
            CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
            dvti_cpu_run(&launch);
            dvti_store_row_f32(want, dtypes[k], 1, n, wide);
            launch = normal_launch(words, dtypes[k], n, have);
            dvti_cpu_run(&launch);
            CHECK(memcmp(have, want, bytes) == 0);
            FOR_EACH_TARGET({
                memset(have, 0xff, bytes);
                CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
                dvti_cpu_run(&launch);
                CHECK(memcmp(have, want, bytes) == 0);
            });
            guard_free(got);
        }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

#undef MOST_ULPS
