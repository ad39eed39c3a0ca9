/* Optimizer steps of every ISA target: the reference's bits for any number of threads, no access
   outside the operands. */
#include "isa.h"

typedef struct method {
    const char *name;
    dvti_op op;
    int states, flag;
    double f[8];
} method;

/* rate, decay, rescale, clip, then the parameters of the method */
static const method methods[] = {
    {"sgd", DVTI_OP_sgd, 0, 0, {0.1, 0.01, 0.5, 0, 0, 0, 0, 0}},
    {"clipped sgd", DVTI_OP_sgd, 0, 0, {0.1, 0, 2, 1.5, 0, 0, 0, 0}},
    {"momentum", DVTI_OP_sgd, 1, 0, {0.1, 0.01, 1, 0, 0.9, 0, 0, 0}},
    {"nesterov", DVTI_OP_sgd, 1, 1, {0.1, 0.01, 1, 2, 0.9, 0, 0, 0}},
    {"adam", DVTI_OP_adam, 2, 0, {0.01, 0.02, 1, 0, 0.9, 0.999, 1e-8, 0.004}},
    {"adamw", DVTI_OP_adamw, 2, 0, {0.01, 0.02, 1, 0, 0.9, 0.999, 1e-8, 0.004}},
    {"rmsprop", DVTI_OP_rmsprop, 1, 0, {0.01, 0.02, 1, 0, 0.95, 0, 1e-6, 0}},
    {"centered rmsprop", DVTI_OP_rmsprop, 3, 1, {0.01, 0.02, 1, 0, 0.95, 0.9, 1e-3, 0}},
    {"adagrad", DVTI_OP_adagrad, 1, 0, {0.05, 0.02, 1, 3, 0, 0, 1e-7, 0}}};

/* Every row of the table, with the numbers of states that have a vector kernel. */
#define ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)               \
    {#name, DVTI_OP_##name, few, 0, {0.05, 0.02, 0.5, 3, 0.9, 0.95, 1e-3, 0.004}},                 \
        {#name, DVTI_OP_##name, many, 0, {0.05, 0.02, 0.5, 3, 0.9, 0.95, 1e-3, 0.004}},

static const method rows[] = {DVTI_OPTIMIZER_TABLE(ROW)};

#undef ROW

enum {
    METHODS = (int)(sizeof methods / sizeof methods[0]),
    ROWS = (int)(sizeof rows / sizeof rows[0]),
    LONGEST_STEP = 40000
};

/* arrays: the gradient, the weights, the state. */
static void run_step(const char *isa, int threads, const method *m, float *const *arrays,
                     int64_t n) {
    dvti_launch launch;
    int k;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_optimizer();
    launch.op = m->op;
    launch.n_in = 1;
    launch.n_out = 1 + m->states;
    for (k = 0; k < 2 + m->states; k++) {
        dvti_view *view = k ? &launch.out[k - 1] : &launch.in[0];
        view->data = arrays[k];
        view->dtype = DVT_F32;
        view->ndim = 1;
        view->dim[0] = n;
        view->stride[0] = 1;
    }
    memcpy(launch.f, m->f, sizeof launch.f);
    launch.i[0] = m->flag;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* Runs a method on n elements, whose arrays end at pages without access. */
static void check_method(const method *m, int64_t n, const guard *memory) {
    static float start[5][LONGEST_STEP], expected[5][LONGEST_STEP];
    float *at[5];
    int k, arrays = 2 + m->states, threads;
    int64_t j;
    for (k = 0; k < 5; k++)
        for (j = 0; j < n; j++)
            start[k][j] = (float)dvt_test_random(k < 2 ? -4 : 0, 4);
    if (n > 5)
        start[0][n / 2] = NAN;
    memcpy(expected, start, sizeof start);
    for (k = 0; k < 5; k++)
        at[k] = expected[k];
    run_step("reference", 1, m, at, n);
    for (k = 0; k < 5; k++)
        at[k] = (float *)guard_end(memory[k], (size_t)n * sizeof(float));
    FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
        int64_t bad = -1;
        for (k = 0; k < arrays; k++)
            memcpy(at[k], start[k], (size_t)n * sizeof(float));
        run_step(target->name, threads, m, at, n);
        for (k = 1; k < arrays; k++) {
            for (j = 0; j < n; j++)
                if (!same_bits_f32(at[k][j], expected[k][j]))
                    bad = j;
            dvt_test_check(bad < 0, __FILE__, __LINE__,
                           "%s, %s, %d threads: array %d, element %d of %d is %.9g, reference %.9g",
                           target->name, m->name, threads, k, (int)bad, (int)n,
                           bad < 0 ? 0 : (double)at[k][bad],
                           bad < 0 ? 0 : (double)expected[k][bad]);
        }
    });
}

DVT_TEST(isa_optimizer_steps) {
    guard memory[5];
    int k;
    int64_t n;
    for (k = 0; k < 5; k++)
        memory[k] = guard_new(LONGEST_STEP * sizeof(float));
    for (k = 0; k < METHODS; k++) {
        for (n = 1; n <= 100; n++)
            check_method(&methods[k], n, memory);
        check_method(&methods[k], LONGEST_STEP, memory);
        check_method(&methods[k], LONGEST_STEP - 3, memory);
    }
    for (k = 0; k < ROWS; k++)
        for (n = 1; n <= 35; n++)
            check_method(&rows[k], n, memory);
    for (k = 0; k < 5; k++)
        guard_free(memory[k]);
}
