/* A launch runs as it was planned: in a copy of the launch, after the ISA target and the number of
   threads have changed, within the workspace that the plan asked for. Values are whole numbers, so
   that every order of additions gives the same bits. */
#include "launches.h"

#define MOST 300000 /* elements of an operand */

typedef struct plan_case {
    const char *name;
    const dvti_kernel *(*kernel)(void);
    dvti_op op;
    dvti_class compute;
    int n_in;
    int64_t i[8];
    dvt_dtype in, out;
    int64_t dim[3][4]; /* of in[0], in[1], out[0]; 0 ends */
    bool transposed;   /* in[0], of two axes, lies column by column */
} plan_case;

/* clang-format off */
static const plan_case plan_cases[] = {
    {"sum of rows", dvti_kernel_reduce, DVTI_OP_sum, DVTI_F32, 1, {1}, DVT_F32, DVT_F32,
     {{3, 90000}, {0}, {3}}, false},
    {"places of the largest in rows", dvti_kernel_reduce, DVTI_OP_argmax, DVTI_F32, 1, {1},
     DVT_F32, DVT_I64, {{2, 90000}, {0}, {2}}, false},
    {"sum of columns", dvti_kernel_reduce, DVTI_OP_sum, DVTI_F32, 1, {1}, DVT_F32, DVT_F32,
     {{40, 5000}, {0}, {40}}, true},
    {"sum of integers", dvti_kernel_reduce, DVTI_OP_sum, DVTI_I64, 1, {1}, DVT_I32, DVT_I64,
     {{2, 70000}, {0}, {2}}, false},
    {"sums along a line", dvti_kernel_scan, DVTI_OP_cumsum, DVTI_F64, 1, {0}, DVT_F32, DVT_F32,
     {{1, 200000, 1}, {0}, {1, 200000, 1}}, false},
    {"sums of neighboring lines", dvti_kernel_scan, DVTI_OP_cumsum, DVTI_F64, 1, {1}, DVT_F32,
     DVT_F32, {{1, 3000, 70}, {0}, {1, 3000, 70}}, false},
    {"sort of rows", dvti_kernel_sort, DVTI_OP_sort, DVTI_F32, 1, {0}, DVT_F32, DVT_F32,
     {{50, 3000}, {0}, {50, 3000}}, false},
    {"argsort of long rows", dvti_kernel_sort, DVTI_OP_argsort, DVTI_F32, 1, {1}, DVT_F64, DVT_I64,
     {{2, 40000}, {0}, {2, 40000}}, false},
    {"first of rows", dvti_kernel_sort, DVTI_OP_topk, DVTI_F32, 1, {0}, DVT_F32, DVT_I64,
     {{40, 250}, {0}, {40, 5}}, false},
    {"first of a long row", dvti_kernel_sort, DVTI_OP_topk, DVTI_F32, 1, {1}, DVT_F32, DVT_I64,
     {{1, 290000}, {0}, {1, 60}}, false},
    {"convolution", dvti_kernel_conv2d, DVTI_OP_conv2d, DVTI_F32, 2, {1, 1, 1, 1, 1, 1, 1},
     DVT_F32, DVT_F32, {{4, 16, 20, 20}, {24, 16, 3, 3}, {4, 24, 20, 20}}, false},
    {"pointwise convolution", dvti_kernel_conv2d, DVTI_OP_conv2d, DVTI_F32, 2,
     {1, 1, 0, 0, 1, 1, 1}, DVT_F32, DVT_F32,
     {{4, 32, 20, 20}, {24, 32, 1, 1}, {4, 24, 20, 20}}, false},
    {"gradient to the data", dvti_kernel_conv2d, DVTI_OP_conv2d_data, DVTI_F32, 2,
     {2, 2, 1, 1, 1, 1, 1}, DVT_F32, DVT_F32,
     {{4, 24, 10, 10}, {24, 16, 3, 3}, {4, 16, 20, 20}}, false},
    {"gradient to the weights", dvti_kernel_conv2d, DVTI_OP_conv2d_weight, DVTI_F32, 2,
     {1, 1, 1, 1, 1, 1, 1}, DVT_F32, DVT_F32,
     {{4, 16, 20, 20}, {4, 24, 20, 20}, {24, 16, 3, 3}}, false},
    {"product", dvti_kernel_matmul, DVTI_OP_matmul, DVTI_F32, 2, {0}, DVT_F32, DVT_F32,
     {{200, 300}, {300, 250}, {200, 250}}, false}};

/* clang-format on */

static dvti_view operand(dvt_dtype dtype, const int64_t *dim, void *data) {
    dvti_view view;
    int64_t stride = 1;
    int i;
    memset(&view, 0, sizeof view);
    view.dtype = dtype;
    view.data = data;
    while (view.ndim < 4 && dim[view.ndim])
        view.ndim++;
    for (i = view.ndim - 1; i >= 0; i--) {
        view.dim[i] = dim[i];
        view.stride[i] = stride;
        stride *= dim[i];
    }
    CHECK(stride <= MOST);
    return view;
}

static void fill(const dvti_view *view) {
    int64_t i;
    for (i = 0; i < dvti_view_size(view); i++)
        dvti_store_i64(view->data, view->dtype, i, (int64_t)floor(dvt_test_random(-8, 9)));
}

/* Plans with one target and number of threads, and runs a copy with others. */
static void planned(dvti_launch launch, const char *plan_isa, int plan_threads, const char *run_isa,
                    int run_threads) {
    dvti_launch *queued = (dvti_launch *)malloc(sizeof launch);
    guard memory;
    CHECK(dvt_set_cpu_isa(plan_isa) == DVT_OK && dvt_set_num_threads(plan_threads) == DVT_OK);
    launch.workspace_bytes = dvti_cpu_plan(cpu_device(), &launch);
    memory = guard_new((size_t)launch.workspace_bytes + 1);
    launch.workspace = guard_end(memory, (size_t)((launch.workspace_bytes + 63) / 64 * 64));
    memset(launch.workspace, 0xff, (size_t)launch.workspace_bytes);
    *queued = launch;
    memset(&launch, 0xff, sizeof launch);
    CHECK(dvt_set_cpu_isa(run_isa) == DVT_OK && dvt_set_num_threads(run_threads) == DVT_OK);
    dvti_cpu_run(queued);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK && dvt_set_num_threads(0) == DVT_OK);
    guard_free(memory);
    free(queued);
}

DVT_TEST(launches_run_as_they_were_planned) {
    static const char *const isa[] = {NULL, "reference"};
    char *data[3], *expected;
    size_t k;
    int i, pass;
    for (i = 0; i < 3; i++)
        data[i] = (char *)malloc(MOST * 8);
    expected = (char *)malloc(MOST * 8);
    for (k = 0; k < DVTI_LENGTH(plan_cases); k++) {
        const plan_case *c = &plan_cases[k];
        dvti_launch launch;
        size_t bytes;
        memset(&launch, 0, sizeof launch);
        launch.kernel = c->kernel();
        launch.op = c->op;
        launch.compute = c->compute;
        launch.n_in = c->n_in;
        launch.n_out = 1;
        launch.name = c->name;
        memcpy(launch.i, c->i, sizeof launch.i);
        for (i = 0; i < c->n_in; i++) {
            launch.in[i] = operand(c->in, c->dim[i], data[i]);
            fill(&launch.in[i]);
        }
        if (c->transposed) {
            launch.in[0].stride[0] = 1;
            launch.in[0].stride[1] = c->dim[0][0];
        }
        launch.out[0] = operand(c->out, c->dim[2], data[2]);
        launch.f[0] = (double)(dvti_view_size(&launch.in[0]) / launch.in[0].dim[0]);
        bytes = (size_t)(dvti_view_size(&launch.out[0]) * dvt_dtype_size(c->out));
        planned(launch, "reference", 1, "reference", 1);
        memcpy(expected, data[2], bytes);
        for (pass = 0; pass < 8; pass++) {
            memset(data[2], 0xff, bytes);
            planned(launch, isa[pass % 2], 1 + pass / 2 % 2, isa[pass / 4], 2 - pass / 2 % 2);
            dvt_test_check(memcmp(data[2], expected, bytes) == 0, __FILE__, __LINE__, "%s, pass %d",
                           c->name, pass);
        }
    }
    for (i = 0; i < 3; i++)
        free(data[i]);
    free(expected);
}

#undef MOST
