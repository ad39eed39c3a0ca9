/* Minutes long: every function of one float that the CPU's instruction sets have, on all 2^32 inputs, against the C library's in double. */
#include "dvt_test.h"
#include "../tiers/math_rows.h"

enum { BATCH = 1 << 16 };

static void check_all(const char *name, dvt_array *(*function)(dvt_array *),
                      double (*exact)(double), double bound) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(BATCH), DVT_F32, dvt_cpu());
    float *in = (float *)dvt_data(x);
    double largest = 0;
    float at = 0;
    uint64_t bits;
    CHECK(in != NULL);
    for (bits = 0; bits < (uint64_t)1 << 32; bits += BATCH)
        DVT_SCOPE {
            const float *out;
            int i;
            for (i = 0; i < BATCH; i++) {
                uint32_t pattern = (uint32_t)bits + (uint32_t)i;
                memcpy(in + i, &pattern, sizeof pattern);
            }
            out = (const float *)dvt_data(function(x));
            CHECK(out != NULL);
            for (i = 0; i < BATCH; i++) {
                double want = exact((double)in[i]), error;
                if ((float)want == out[i] && want != 0)
                    continue;
                error = ulp_error(out[i], want);
                if (error > largest) {
                    largest = error;
                    at = in[i];
                }
            }
        }
    printf("%s: at most %.3f ulp, at %.9g\n", name, largest, (double)at);
    dvt_test_check(largest <= bound, __FILE__, __LINE__, "%s: %.3f ulp at %.9g, at most %g", name,
                   largest, (double)at, bound);
}

/* A C library's own errors are no matter here; the reference has the C library's functions of float, and another gelu. */
#define EVERY(name, exact, bound)                                                                  \
    DVT_TEST(all_floats_##name) {                                                                  \
        if (strcmp(dvt_cpu_isa(), "reference") != 0)                                               \
            check_all(#name, (dvt_##name), exact, bound);                                          \
    }
MATH_TABLE(EVERY)
#undef EVERY
