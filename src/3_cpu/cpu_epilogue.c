/* The epilogue of a product: a bias along the rows of the result, then an activation. The results
   are bitwise those of the separate operations. A task applies it while its tile of the result is
   in cache. */
#include "3_cpu/simd/dvt_simd.h"

static void dvti_epilogue_row(const dvti_simd *simd, dvti_op op, float *y, int64_t n,
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

DVTI_FN void dvti_epilogue_rows(const dvti_simd *simd, float *y, int64_t row, int64_t rows,
                                int64_t cols, const float *bias, bool relu) {
    /* A contiguous column is computed as one row. */
    int step = cols > 1 || row > 1;
    if (!step) {
        cols = rows;
        rows = 1;
    }
    for (; rows > 0; rows--, y += row) {
        if (bias)
            dvti_epilogue_row(simd, DVTI_OP_add, y, cols, bias, step);
        if (relu)
            dvti_epilogue_row(simd, DVTI_OP_relu, y, cols, NULL, 0);
    }
}

DVTI_FN void dvti_epilogue_part(const dvti_simd *simd, const dvti_launch *launch, int64_t at,
                                int64_t row, int64_t rows, int64_t cols) {
    const dvti_epilogue *epilogue = &launch->epilogue;
    const float *bias = (const float *)epilogue->bias.data;
    if (bias || epilogue->activation)
        dvti_epilogue_rows(simd, (float *)launch->out[0].data + at, row, rows, cols,
                           bias ? bias + at % row : NULL, epilogue->activation == DVTI_RELU);
}

DVTI_FN void dvti_epilogue_whole(const dvti_launch *of) {
    const dvti_view *y = &of->out[0], *bias = &of->epilogue.bias;
    dvti_launch launch;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.compute = DVTI_F32;
    launch.name = of->name;
    launch.n_out = 1;
    launch.in[0] = launch.in[1] = launch.out[0] = *y;
    if (bias->data) {
        launch.op = DVTI_OP_add;
        launch.n_in = 2;
        launch.in[1].data = bias->data;
        for (i = 0; i < y->ndim; i++)
            launch.in[1].stride[i] = i == y->ndim - 1 ? bias->stride[0] : 0;
        dvti_cpu_elementwise(&launch);
    }
    if (of->epilogue.activation == DVTI_RELU) {
        launch.op = DVTI_OP_relu;
        launch.n_in = 1;
        dvti_cpu_elementwise(&launch);
    }
}
