/* Compares every function of one float of the ISA targets with the C library's in double, on all
   2^32 inputs. Takes minutes. */
#include "../unit/in_threads.h"
#include "../isa/math_rows.h"

#if !defined(DEVTENSOR_NO_THREADS)

enum { BATCH = 1 << 16 };

static struct {
    dvt_array *(*function)(dvt_array *);
    double (*exact)(double);
} of;

static float worst_at[THREADS];

/* Writes the largest error over this worker's share of the inputs to `sum`. */
static void *check_share(void *argument) {
    worker *w = (worker *)argument;
    const uint64_t share = ((uint64_t)1 << 32) / THREADS, begin = share * (uint64_t)w->number;
    dvt_array *x = dvt_zeros(DVT_SHAPE(BATCH), DVT_F32, dvt_cpu());
    float *in = (float *)dvt_data(x);
    double largest = 0;
    uint64_t bits;
    for (bits = begin; in && bits < begin + share; bits += BATCH)
        DVT_SCOPE {
            const float *out;
            int i;
            for (i = 0; i < BATCH; i++) {
                uint32_t pattern = (uint32_t)bits + (uint32_t)i;
                memcpy(in + i, &pattern, sizeof pattern);
            }
            out = (const float *)dvt_data(of.function(x));
            if (!out) {
                in = NULL;
                continue;
            }
            for (i = 0; i < BATCH; i++) {
                double want = of.exact((double)in[i]), error;
                if ((float)want == out[i] && want != 0)
                    continue;
                error = ulp_error(out[i], want);
                if (error > largest) {
                    largest = error;
                    worst_at[w->number] = in[i];
                }
            }
        }
    w->status = in ? DVT_OK : DVT_ERR_INTERNAL;
    w->sum = largest;
    dvt_discard(x);
    return NULL;
}

static void check_all(const char *name, dvt_array *(*function)(dvt_array *),
                      double (*exact)(double), double bound) {
    worker workers[THREADS];
    int i, worst = 0;
    memset(workers, 0, sizeof workers);
    of.function = function;
    of.exact = exact;
    in_threads(check_share, workers);
    for (i = 0; i < THREADS; i++) {
        CHECK(workers[i].status == DVT_OK);
        if (workers[i].sum > workers[worst].sum)
            worst = i;
    }
    printf("%s: at most %.3f ulp, at %.9g\n", name, workers[worst].sum, (double)worst_at[worst]);
    fflush(stdout);
    dvt_test_check(workers[worst].sum <= bound, __FILE__, __LINE__,
                   "%s: %.3f ulp at %.9g, at most %g", name, workers[worst].sum,
                   (double)worst_at[worst], bound);
}

/* Skips the reference, which uses the C library's functions of float, and another gelu. */
#define EVERY(name, exact, bound)                                                                  \
    DVT_TEST(all_floats_##name) {                                                                  \
        if (strcmp(dvt_cpu_isa(), "reference") == 0)                                               \
            SKIP("the reference has the C library's functions");                                   \
        check_all(#name, (dvt_##name), exact, bound);                                              \
    }
MATH_TABLE(EVERY)
#undef EVERY

#endif
