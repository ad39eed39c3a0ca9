/* Random numbers of every ISA target equal the reference's for any offset and any end. Nothing
   after the end is written. */
#include "launches.h"

static void check_random(dvti_op op, uint64_t at, int64_t n, double a, double b) {
    guard expected = guard_new((size_t)n * sizeof(float)),
          got = guard_new((size_t)n * sizeof(float));
    float *want = (float *)guard_end(expected, (size_t)n * sizeof(float));
    float *have = (float *)guard_end(got, (size_t)n * sizeof(float));
    dvti_launch launch;
    int64_t i, differ;
    launch = random_launch(op, DVT_F32, n, 0x9e3779b97f4a7c15ULL, at, 0x100000003ULL);
    launch.f[0] = a;
    launch.f[1] = b;
    launch.f[2] = (double)nextafterf((float)b, -INFINITY);
    launch.out[0].data = want;
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
    dvti_cpu_run(&launch);
    launch.out[0].data = have;
    FOR_EACH_TARGET({
        memset(have, 0xff, (size_t)n * sizeof(float));
        CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
        dvti_cpu_run(&launch);
        for (i = differ = 0; i < n; i++)
            differ += !same_bits_f32(have[i], want[i]);
        dvt_test_check(differ == 0, __FILE__, __LINE__,
                       "%s, operation %d from counter %llu, %lld elements: %lld differ",
                       target->name, (int)op, (unsigned long long)at, (long long)n,
                       (long long)differ);
    });
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    guard_free(expected);
    guard_free(got);
}

DVT_TEST(random_numbers_of_every_target) {
    /* second and third: the low word, and the whole counter, wrap within a vector */
    static const uint64_t places[] = {0, 0xfffffffaULL, 0xfffffffffffffffcULL, 123456789012345ULL};
    int64_t n;
    int k;
    for (k = 0; k < 4; k++)
        for (n = 1; n < 400; n += n < 140 ? 1 : 37) {
            check_random(DVTI_OP_uniform, places[k], n, 0, 1);
            check_random(DVTI_OP_uniform, places[k], n, -2.5, 7.25);
            check_random(DVTI_OP_normal, places[k], n, 0, 1);
            check_random(DVTI_OP_normal, places[k], n, 3, 0.5);
            check_random(DVTI_OP_bernoulli, places[k], n, 0.3, 0);
        }
    check_random(DVTI_OP_bernoulli, 5, 1000, 0, 0);
    check_random(DVTI_OP_bernoulli, 5, 1000, 1, 0);
    check_random(DVTI_OP_bernoulli, 5, 1000, 0.9999999999, 0);
}
