/* What follows a product in its launch: a bias along the rows of the result, and relu. The bits are those of the operations one after the other;
   a task does it while its part of the result is near. */
#include "3_cpu/simd/dvt_simd.h"

static void dvti_follow_row(const dvti_simd *simd, dvti_op op, float *y, int64_t n,
                            const float *with, int step) {
    dvti_loop loop;
    dvti_loop_fn run = simd->loop_f32(op);
    memset(&loop, 0, sizeof loop);
    loop.op = op;
    loop.in[0] = loop.out = y;
    loop.in[1] = with;
    loop.step[0] = 1;
    loop.step[1] = step;
    loop.n = n;
    run(&loop);
}

DVTI_FN void dvti_follow(const dvti_simd *simd, float *y, int64_t row, int64_t rows, int64_t cols,
                         const float *bias, bool relu) {
    /* One column is as good as one row. */
    int step = cols > 1 || row > 1;
    if (!step) {
        cols = rows;
        rows = 1;
    }
    for (; rows > 0; rows--, y += row) {
        if (bias)
            dvti_follow_row(simd, DVTI_OP_add, y, cols, bias, step);
        if (relu)
            dvti_follow_row(simd, DVTI_OP_relu, y, cols, NULL, 0);
    }
}

DVTI_FN void dvti_follow_product(const dvti_simd *simd, const dvti_launch *launch, int64_t at,
                                 int64_t row, int64_t rows, int64_t cols) {
    const float *bias = launch->n_in > 2 ? (const float *)launch->in[2].data + at % row : NULL;
    if (bias || launch->i[1])
        dvti_follow(simd, (float *)launch->out[0].data + at, row, rows, cols, bias,
                    launch->i[1] != 0);
}

DVTI_FN void dvti_follow_whole(const dvti_launch *of) {
    bool product = of->kernel == DVTI_K_MATMUL;
    const dvti_view *y = &of->out[0];
    dvti_launch launch;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_ELEMENTWISE;
    launch.compute = DVTI_F32;
    launch.name = of->name;
    launch.n_out = 1;
    launch.in[0] = launch.in[1] = launch.out[0] = *y;
    if (product && of->n_in > 2) {
        launch.op = DVTI_OP_add;
        launch.n_in = 2;
        launch.in[1].data = of->in[2].data;
        for (i = 0; i < y->ndim; i++)
            launch.in[1].stride[i] = i == y->ndim - 1 ? of->in[2].stride[0] : 0;
        dvti_cpu_run(&launch);
    }
    if (product ? of->i[1] : of->op == DVTI_OP_conv2d && of->i[7] & 4) {
        launch.op = DVTI_OP_relu;
        launch.n_in = 1;
        dvti_cpu_run(&launch);
    }
}
