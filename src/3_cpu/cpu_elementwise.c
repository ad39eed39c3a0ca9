/* Elementwise launches in float32 and float64 on the arrays themselves: by runs, along which every operand either stands in one piece or is one element.
   Rows and columns that are broadcast are read where they are. Other launches go by blocks (ref/ref_elementwise.c), which use the same
   loops. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_RUN_LEAST 32                /* shorter runs cost more to find than a block to fill */
#define DVTI_RUN_QUICK (DVTI_HOT_NS / 5) /* elements that no loop needs threads for */
/* A result of so many bytes does not stay in the last cache until somebody reads it. Written around the caches, its memory need not be
   read first: a third less traffic where one array becomes another one. */
#define DVTI_STREAM_BYTES (32 << 20)

/* A scalar operand in the launch's class. */
typedef union dvti_scalar {
    float f;
    double d;
} dvti_scalar;

static dvti_scalar dvti_scalar_of(const dvti_launch *launch) {
    dvti_scalar scalar;
    if (launch->compute == DVTI_F32)
        scalar.f = (float)launch->f[0];
    else
        scalar.d = launch->f[0];
    return scalar;
}

DVTI_FN dvt_dtype dvti_loop_dtype(dvti_op op, dvt_dtype dtype) {
    switch ((int)op) {
#define DVTI_DTYPE_SAME dtype
#define DVTI_DTYPE_NOBOOL dtype
#define DVTI_DTYPE_FLOAT dtype
#define DVTI_DTYPE_BOOL DVT_BOOL
#define DVTI_UNARY(name, rule, f, i, grad, lo, hi, doc)                                            \
    case DVTI_OP_##name:                                                                           \
        return DVTI_DTYPE_##rule;
#define DVTI_BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                 \
    case DVTI_OP_##name:                                                                           \
        return DVTI_DTYPE_##rule;
        DVTI_UNARY_TABLE(DVTI_UNARY)
        DVTI_BINARY_TABLE(DVTI_BINARY)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_DTYPE_SAME
#undef DVTI_DTYPE_NOBOOL
#undef DVTI_DTYPE_FLOAT
#undef DVTI_DTYPE_BOOL
    default:
        return dtype;
    }
}

typedef struct dvti_runs {
    dvti_loop loop; /* but for the operands' places */
    dvti_loop_fn run;
    int n_in;
    dvti_scalar scalar;
    bool stream;
    dvti_view in[3], out;
} dvti_runs;

static bool dvti_is_run(const dvti_view *view, dvt_dtype dtype, int64_t size, bool input) {
    int last = view->ndim - 1;
    return view->dtype == dtype &&
           (view->stride[last] == 1 || (input && view->stride[last] == 0)) &&
           (view->dim[last] >= DVTI_RUN_LEAST || view->dim[last] == size);
}

static int64_t dvti_run_left(const dvti_view *view, const dvti_cursor *cursor) {
    return view->dim[view->ndim - 1] - cursor->index[view->ndim - 1];
}

static void dvti_runs_range(void *user, int64_t begin, int64_t end) {
    const dvti_runs *runs = (const dvti_runs *)user;
    const int64_t bytes = dvt_dtype_size(runs->in[0].dtype);
    const int64_t out_bytes = dvt_dtype_size(runs->out.dtype);
    dvti_loop loop = runs->loop;
    dvti_cursor at[3], to = dvti_cursor_at(&runs->out, begin);
    int k;
    for (k = 0; k < runs->n_in; k++)
        at[k] = dvti_cursor_at(&runs->in[k], begin);
    for (; begin < end; begin += loop.n) {
        loop.n = DVTI_MIN(end - begin, dvti_run_left(&runs->out, &to));
        loop.out = (char *)runs->out.data + out_bytes * to.at;
        loop.stream = runs->stream && (uintptr_t)loop.out % 64 == 0;
        for (k = 0; k < runs->n_in; k++) {
            loop.in[k] = (const char *)runs->in[k].data + bytes * at[k].at;
            loop.n = DVTI_MIN(loop.n, dvti_run_left(&runs->in[k], &at[k]));
        }
        runs->run(&loop);
        dvti_cursor_advance(&to, &runs->out, loop.n);
        for (k = 0; k < runs->n_in; k++)
            dvti_cursor_advance(&at[k], &runs->in[k], loop.n);
    }
#if DVTI_X86
    if (runs->stream)
        _mm_sfence(); /* such stores are in no order with what tells the others that they are done */
#endif
}

/* Nanoseconds of a float: quick loops wait for memory. */
static double dvti_float_cost(dvti_op op) {
    switch (dvti_op_work_of(op)) {
    case DVTI_WORK_FUNCTION:
        return 0.5;
    case DVTI_WORK_LONG:
        return 1.2;
    default:
        return 0.15;
    }
}

DVTI_FN bool dvti_simple_exponent(double exponent) {
    return exponent == -1 || exponent == 0 || exponent == 0.5 || exponent == 1 || exponent == 2 ||
           exponent == 3;
}

/* pow by one such number, in the launch or in an array of one element. */
static bool dvti_is_quick_power(const dvti_launch *launch) {
    const dvti_view *b = &launch->in[1];
    int i;
    if (launch->op != DVTI_OP_pow || launch->i[0] == 1)
        return false;
    if (launch->i[0] == 2)
        return dvti_simple_exponent(launch->f[0]);
    for (i = 0; i < b->ndim; i++)
        if (b->stride[i] && b->dim[i] != 1)
            return false;
    return dvti_simple_exponent(dvti_load_f64(b->data, b->dtype, 0));
}

static double dvti_runs_cost(const dvti_launch *launch) {
    double cost =
        dvti_is_quick_power(launch) ? dvti_float_cost(DVTI_OP_mul) : dvti_float_cost(launch->op);
    return launch->compute == DVTI_F32 ? cost : cost < 0.5 ? 2 * cost : 4 * cost;
}

static bool dvti_is_plain(const dvti_view *view, dvt_dtype dtype) {
    int64_t stride = 1;
    int i;
    if (view->ndim == 1 && view->stride[0] == 1)
        return view->dtype == dtype;
    for (i = view->ndim - 1; i >= 0; i--) {
        if (view->stride[i] != stride && view->dim[i] != 1)
            return false;
        stride *= view->dim[i];
    }
    return view->dtype == dtype;
}

/* Small arrays in C order, the commonest of all: neither axes nor threads to think about. */
static bool dvti_small_elementwise(const dvti_launch *launch, dvti_loop_fn run, dvt_dtype dtype,
                                   int64_t size) {
    dvti_scalar scalar = dvti_scalar_of(launch);
    dvti_loop loop;
    int k;
    if ((size > DVTI_RUN_QUICK && (double)size * dvti_runs_cost(launch) >= DVTI_HOT_NS) ||
        !dvti_is_plain(&launch->out[0], launch->out[0].dtype))
        return false;
    for (k = 0; k < launch->n_in; k++) {
        bool repeated = k == (int)launch->i[0] - 1;
        if (!repeated && !dvti_is_plain(&launch->in[k], dtype))
            return false;
        loop.in[k] = repeated ? (const void *)&scalar : launch->in[k].data;
        loop.step[k] = !repeated;
    }
    loop.op = launch->op;
    loop.out = launch->out[0].data;
    loop.n = size;
    loop.low = launch->f[1];
    loop.high = launch->f[2];
    loop.stream = false;
    run(&loop);
    return true;
}

DVTI_FN bool dvti_fast_elementwise(const dvti_launch *launch, const dvti_simd *simd) {
    dvti_runs runs;
    const dvt_dtype dtype = launch->compute == DVTI_F32 ? DVT_F32 : DVT_F64;
    const dvt_dtype result = dvti_loop_dtype(launch->op, dtype);
    int64_t size = dvti_view_size(&launch->out[0]);
    int k;
    if (launch->compute == DVTI_I64 || launch->out[0].dtype != result || size == 0)
        return false;
    runs.run = dtype == DVT_F32 ? simd->loop_f32(launch->op) : simd->f64->loop(launch->op);
    if (!runs.run)
        return false;
    if (dvti_small_elementwise(launch, runs.run, dtype, size))
        return true;
    runs.n_in = launch->n_in;
    runs.out = launch->out[0];
    dvti_merge_axes(&runs.out);
    if (!dvti_is_run(&runs.out, result, size, false))
        return false;
    for (k = 0; k < runs.n_in; k++) {
        dvti_view *in = &runs.in[k];
        if (k == (int)launch->i[0] - 1) {
            runs.scalar = dvti_scalar_of(launch);
            in->data = &runs.scalar;
            in->dtype = dtype;
            in->ndim = 1;
            in->dim[0] = size;
            in->stride[0] = 0;
        } else {
            *in = launch->in[k];
            dvti_merge_axes(in);
        }
        if (!dvti_is_run(in, dtype, size, true))
            return false;
        runs.loop.step[k] = (int)in->stride[in->ndim - 1];
    }
    runs.loop.op = launch->op;
    runs.loop.low = launch->f[1];
    runs.loop.high = launch->f[2];
    runs.stream = size * dvt_dtype_size(result) >= DVTI_STREAM_BYTES;
    for (k = 0; k < runs.n_in; k++) /* in place, what is written has been read */
        runs.stream = runs.stream && runs.in[k].data != runs.out.data;
    dvti_parallel_soon(size, dvti_runs_cost(launch), dvti_runs_range, &runs);
    return true;
}

#undef DVTI_RUN_LEAST
#undef DVTI_RUN_QUICK
#undef DVTI_STREAM_BYTES
