/* Results that are written with non-temporal stores: the bits of a loop over blocks, at every
   offset. They are not used if an operand is overwritten or the result is unaligned. */
#include "isa.h"

enum { LARGE = (32 << 20) / (int)sizeof(float) + 21, PIECE = 1000 };

static void check_pieces(const dvti_simd *target, dvti_op op, const float *a, const float *b,
                         int step, const float *got) {
    static float want[PIECE];
    dvti_loop loop;
    int64_t at;
    memset(&loop, 0, sizeof loop);
    loop.op = op;
    loop.step[0] = 1;
    loop.step[1] = step;
    loop.out = want;
    for (at = 0; at < LARGE; at += PIECE) {
        loop.in[0] = a + at;
        loop.in[1] = b ? b + at * step : NULL;
        loop.n = DVTI_MIN(LARGE - at, PIECE);
        target->loop_f32(op)(&loop);
        if (memcmp(want, got + at, (size_t)loop.n * sizeof(float)) != 0) {
            dvt_test_check(false, __FILE__, __LINE__, "%s, operation %d, from element %d on",
                           target->name, (int)op, (int)at);
            return;
        }
    }
}

static float *values(dvt_array *array) {
    float *at = (float *)dvt_data(array);
    CHECK(at != NULL);
    return at;
}

static void check_target(const dvti_simd *target, dvt_array *x, dvt_array *y) {
    const float half = 0.5f, *a = values(x), *b = values(y);
    dvt_array *z;
    CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
    DVT_SCOPE {
        check_pieces(target, DVTI_OP_exp, a, NULL, 0, values(dvt_exp(x)));
        check_pieces(target, DVTI_OP_sub, a, b, 1, values(dvt_sub(x, y)));
        check_pieces(target, DVTI_OP_mul, a, &half, 0, values(dvt_mul_scalar(x, half)));
        z = dvt_copy(x);
        CHECK(dvt_mul_(z, y) != NULL);
        check_pieces(target, DVTI_OP_mul, a, b, 1, values(z));
    }
}

/* A result one element after an aligned address; elements around it do not change. */
static void check_unaligned(const dvti_simd *target, dvt_array *x) {
    dvt_array *space = dvt_full(DVT_SHAPE(LARGE + 2), 7, DVT_F32, dvt_cpu());
    float *to = values(space) + 1;
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.op = DVTI_OP_neg;
    launch.compute = DVTI_F32;
    launch.n_in = 1;
    launch.in[0].data = values(x);
    launch.in[0].dtype = DVT_F32;
    launch.in[0].ndim = 1;
    launch.in[0].dim[0] = LARGE;
    launch.in[0].stride[0] = 1;
    launch.out[0] = launch.in[0];
    launch.out[0].data = to;
    dvti_fast_elementwise(&launch, target);
    check_pieces(target, DVTI_OP_neg, values(x), NULL, 0, to);
    CHECK(to[-1] == 7 && to[LARGE] == 7);
}

/* Floats, doubles and bools of lengths that end within a block and within a vector. */
static void check_loop(const dvti_simd *target, dvti_op op, bool wide, int64_t n) {
    enum { MOST = 1700 };

    static double in[2][MOST], want[MOST];
    static char space[MOST * 8 + 64];
    char *got = space + (64 - (uintptr_t)space % 64) % 64;
    const int64_t bytes = n * dvt_dtype_size(dvti_loop_dtype(op, wide ? DVT_F64 : DVT_F32));
    const dvti_loop_fn run = wide ? target->f64->loop(op) : target->loop_f32(op);
    dvti_loop loop;
    int64_t k;
    for (k = 0; k < n; k++)
        if (wide) {
            in[0][k] = dvt_test_random(-4, 4);
            in[1][k] = dvt_test_random(-4, 4);
        } else {
            ((float *)(void *)in[0])[k] = (float)dvt_test_random(-4, 4);
            ((float *)(void *)in[1])[k] = (float)dvt_test_random(-4, 4);
        }
    memset(&loop, 0, sizeof loop);
    loop.op = op;
    loop.in[0] = in[0];
    loop.in[1] = in[1];
    loop.step[0] = loop.step[1] = 1;
    loop.n = n;
    loop.out = want;
    run(&loop);
    memset(space, 7, sizeof space);
    loop.out = got;
    loop.stream = true;
    run(&loop);
    dvt_test_check(memcmp(got, want, (size_t)bytes) == 0 && got[bytes] == 7, __FILE__, __LINE__,
                   "%s, operation %d, %d elements, %s", target->name, (int)op, (int)n,
                   wide ? "float64" : "float32");
}

DVT_TEST(streams_of_every_type) {
    static const int64_t lengths[] = {1, 16, 37, 512, 513, 1040, 1699};
    int k;
    for (k = 0; k < 14; k++)
        FOR_EACH_TARGET({
            check_loop(target, DVTI_OP_sub, k % 2 != 0, lengths[k / 2]);
            check_loop(target, DVTI_OP_less, k % 2 != 0, lengths[k / 2]);
        });
}

DVT_TEST(large_results_are_streamed) {
    dvt_array *x = dvt_uniform(-4, 4, DVT_SHAPE(LARGE), DVT_F32, dvt_cpu());
    dvt_array *y = dvt_uniform(-1, 1, DVT_SHAPE(LARGE), DVT_F32, dvt_cpu());
    CHECK(x && y);
    FOR_EACH_TARGET({
        check_target(target, x, y);
        DVT_SCOPE {
            check_unaligned(target, x);
        }
    });
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
