/* Elementwise launches: how operands are read, how the result is written, and how many threads
   share the work. The ISA target's loops compute floats (simd/elementwise.inl); dvti_loop_i64
   computes everything else.

   An operand is read in place if it has the dtype of the class and is contiguous, or constant,
   along the last axis. Any other operand is converted in blocks of at most DVTI_BLOCK elements,
   which fit in L1. The same holds for results that cannot be written in place.

   The file is long because the short paths and the plan read the same operands. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_RUN_LEAST 32                /* finding a shorter run costs more than filling a block */
#define DVTI_RUN_QUICK (DVTI_HOT_NS / 5) /* elements for which no loop needs threads */

static const dvt_dtype dvti_own_dtype[] = {DVT_F32, DVT_F64, DVT_I64};

/* A number in the launch's class. */
typedef union dvti_scalar {
    float f;
    double d;
    int64_t i;
} dvti_scalar;

static dvti_scalar dvti_scalar_of(const dvti_launch *launch) {
    dvti_scalar scalar;
    if (launch->compute == DVTI_F32)
        scalar.f = (float)launch->f[0];
    else if (launch->compute == DVTI_F64)
        scalar.d = launch->f[0];
    else
        scalar.i = launch->i[1];
    return scalar;
}

DVTI_FN dvt_dtype dvti_loop_dtype(dvti_op op, dvt_dtype dtype) {
    return dvti_op_row_of(op)->rule == DVTI_RULE_BOOL ? DVT_BOOL : dtype;
}

/* ---- costs ---- */
DVTI_FN bool dvti_simple_exponent(double exponent) {
    return exponent == -1 || exponent == 0 || exponent == 0.5 || exponent == 1 || exponent == 2 ||
           exponent == 3;
}

/* Returns whether the launch is pow with a simple exponent: a scalar, or an array whose elements
   are all the same one in memory. */
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

/* Returns the nanoseconds per element that is read and written in place. QUICK loops are limited by
   memory. */
static double dvti_ew_cost(const dvti_launch *launch) {
    static const double of_float[] = {0.15, 0.15, 0.5, 1.2};
    const int row = dvti_op_row_of(launch->op)->cost;
    const double cost = of_float[dvti_is_quick_power(launch) ? DVTI_COST_QUICK : row];
    if (launch->compute == DVTI_I64)
        return row == DVTI_COST_LONG ? 2.5 : 0.3;
    return launch->compute == DVTI_F32 ? cost : cost < 0.5 ? 2 * cost : 4 * cost;
}

/* ---- small arrays ---- */
static bool dvti_is_c_order(const dvti_view *view) {
    int64_t stride = 1;
    int i;
    if (view->ndim == 1 && view->stride[0] == 1)
        return true;
    for (i = view->ndim - 1; i >= 0; i--) {
        if (view->stride[i] != stride && view->dim[i] != 1)
            return false;
        stride *= view->dim[i];
    }
    return true;
}

/* Runs a launch of small arrays in C order, the most common case, without merging axes or starting
   threads. Returns false if the launch is not of this kind. */
static bool dvti_small_elementwise(const dvti_launch *launch, dvti_loop_fn run, dvt_dtype dtype,
                                   int64_t size) {
    dvti_scalar scalar = dvti_scalar_of(launch);
    dvti_loop loop;
    int k;
    if ((size > DVTI_RUN_QUICK && (double)size * dvti_ew_cost(launch) >= DVTI_HOT_NS) ||
        launch->out[0].dtype != dvti_loop_dtype(launch->op, dtype) ||
        !dvti_is_c_order(&launch->out[0]))
        return false;
    for (k = 0; k < launch->n_in; k++) {
        bool repeated = k == (int)launch->i[0] - 1;
        if (!repeated && (launch->in[k].dtype != dtype || !dvti_is_c_order(&launch->in[k])))
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

static dvti_view dvti_row_view(const dvti_view *view, int64_t size) {
    dvti_view row;
    row.data = view->data;
    row.dtype = view->dtype;
    row.ndim = 1;
    row.dim[0] = size;
    row.stride[0] = 1;
    return row;
}

/* Does the same for arrays of one block that need conversions. run is NULL for copies. */
static DVTI_NOINLINE bool dvti_small_conversion(const dvti_launch *launch, dvti_loop_fn run,
                                                dvti_class compute, int64_t size) {
    const dvt_dtype own = dvti_own_dtype[compute];
    const bool bools = compute != DVTI_I64 && dvti_loop_dtype(launch->op, own) == DVT_BOOL;
    const dvti_view *out = &launch->out[0];
    double operand[3][DVTI_BLOCK], result[DVTI_BLOCK];
    uint8_t bools_out[DVTI_BLOCK];
    dvti_view row;
    dvti_loop loop;
    int k;
    if (launch->i[0] || launch->op == DVTI_OP_clip || !dvti_is_c_order(out) ||
        (launch->op == DVTI_OP_where && dvt_dtype_is_float(launch->in[0].dtype)))
        return false;
    for (k = 0; k < launch->n_in; k++)
        if (!dvti_is_c_order(&launch->in[k]))
            return false;
    for (k = 0; k < launch->n_in; k++) {
        loop.in[k] = launch->in[k].data;
        loop.step[k] = 1;
        if (launch->in[k].dtype != own) {
            row = dvti_row_view(&launch->in[k], size);
            loop.in[k] = !run && out->dtype == own ? out->data : (void *)operand[k];
            dvti_load_block(&row, 0, size, compute, (void *)(uintptr_t)loop.in[k]);
        }
    }
    if (!run && out->dtype == own)
        return true;
    loop.op = launch->op;
    loop.out = out->dtype == (bools ? DVT_BOOL : own) ? out->data
               : bools                                ? (void *)bools_out
                                                      : (void *)result;
    loop.n = size;
    loop.stream = false;
    if (run)
        run(&loop);
    else
        loop.out = (void *)(uintptr_t)loop.in[0];
    if (loop.out == bools_out && compute == DVTI_F32)
        dvti_load_row_f32(bools_out, DVT_BOOL, 1, size, (float *)(loop.out = result));
    else if (loop.out == bools_out)
        dvti_load_row_f64(bools_out, DVT_BOOL, 1, size, (double *)(loop.out = result));
    if (loop.out != out->data) {
        row = dvti_row_view(out, size);
        dvti_store_block(&row, 0, size, compute, loop.out);
    }
    return true;
}

/* ---- the plan ---- */
typedef enum dvti_ew_access {
    DVTI_EW_IN_PLACE,
    DVTI_EW_ONE,  /* an operand that repeats one element; converted once */
    DVTI_EW_BLOCK /* converted block by block */
} dvti_ew_access;

/* In arrays of n_in + 1 entries, the last one is the result. */
typedef struct dvti_ew_plan {
    dvti_loop loop;   /* without in, out and n */
    dvti_loop_fn run; /* NULL for copies, which only convert */
    dvti_class compute;
    int n_in;
    dvti_view view[4];
    dvti_ew_access access[4];
    bool bools; /* run writes bools */
    bool blocks, stream;
    dvti_scalar scalar;
    int64_t rows, columns; /* of the matrices computed by column tiles; 0: no tiles */
} dvti_ew_plan;

static int64_t dvti_ew_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void dvti_ew_swap_axes(dvti_ew_plan *plan, int a, int b) {
    int k;
    for (k = 0; k <= plan->n_in; k++) {
        dvti_view *view = &plan->view[k];
        const int64_t dim = view->dim[a], stride = view->stride[a];
        view->dim[a] = view->dim[b];
        view->stride[a] = view->stride[b];
        view->dim[b] = dim;
        view->stride[b] = stride;
    }
}

/* Orders the axes by the strides of the result. The order of positions is free, and transposed
   operands of one layout become contiguous. */
static void dvti_ew_order_axes(dvti_ew_plan *plan) {
    const dvti_view *out = &plan->view[plan->n_in];
    int i, j;
    for (i = 1; i < out->ndim; i++)
        for (j = i; j > 0; j--) {
            if (dvti_ew_distance(out->stride[j - 1]) >= dvti_ew_distance(out->stride[j]))
                break;
            dvti_ew_swap_axes(plan, j - 1, j);
        }
}

/* An operand that is contiguous along another axis than the result touches a new cache line with
   every element. Matrices are therefore computed in tiles of 128 columns. The next row of a tile
   finds the operand's cache lines in L1:

              tile 0           tile 1
     row 0  | ---128 cols---> | -------> |     Each cache line of the operand
     row 1  | --------------> |              holds 16 rows of one column.
     row 2  | --------------> | */
#define DVTI_EW_COLUMNS 128

/* Finds such an operand and moves its contiguous axis to the last but one. The last two axes then
   form matrices. Without such an operand, plan->rows is 0. */
static void dvti_ew_find_columns(dvti_ew_plan *plan, int64_t size) {
    const dvti_view *out = &plan->view[plan->n_in];
    int last = out->ndim - 1, i, k;
    plan->rows = 0;
    while (last > 0 && out->dim[last] == 1)
        last--;
    for (k = 0; size >= 16384 && k < plan->n_in && !plan->rows; k++) {
        const dvti_view *in = &plan->view[k];
        int64_t step = dvti_ew_distance(in->stride[DVTI_MAX(last, 0)]), least = 16;
        int across = -1;
        for (i = 0; i < last && step >= 16; i++)
            if (in->dim[i] > 1 && in->stride[i] && dvti_ew_distance(in->stride[i]) < least) {
                least = dvti_ew_distance(in->stride[i]);
                across = i;
            }
        if (across < 0)
            continue;
        for (i = across; i + 1 < last; i++)
            dvti_ew_swap_axes(plan, i, i + 1);
        plan->rows = out->dim[last - 1];
        plan->columns = out->dim[last];
    }
}

/* Integers are read in place only where they are contiguous: dvti_loop_i64 has no repeated
   operands. */
static dvti_ew_access dvti_ew_access_of(const dvti_ew_plan *plan, int k, int64_t size) {
    const dvti_view *view = &plan->view[k];
    const int last = view->ndim - 1;
    const bool input = k < plan->n_in, repeats = view->ndim == 1 && view->stride[0] == 0;
    const dvt_dtype own = !input && plan->bools ? DVT_BOOL : dvti_own_dtype[plan->compute];
    if (view->dtype == own &&
        (view->stride[last] == 1 ||
         (input && view->stride[last] == 0 && plan->compute != DVTI_I64)) &&
        (view->dim[last] >= DVTI_RUN_LEAST || view->dim[last] == size))
        return DVTI_EW_IN_PLACE;
    return input && repeats ? DVTI_EW_ONE : DVTI_EW_BLOCK;
}

static dvti_loop_fn dvti_ew_run_of(dvti_op op, dvti_class compute, const dvti_simd *simd) {
    dvti_loop_fn run;
    if (compute == DVTI_I64)
        return dvti_loop_i64;
    run = compute == DVTI_F32 ? simd->loop_f32(op) : simd->f64->loop(op);
    return run ? run : compute == DVTI_F32 ? dvti_scalar_loop_f32 : dvti_scalar_loop_f64;
}

/* ---- blocks ---- */
typedef struct dvti_ew_state {
    const dvti_ew_plan *plan;
    dvti_loop loop;
    dvti_cursor at[4]; /* positions in the arrays read or written in place */
    double operand[3][DVTI_BLOCK], result[DVTI_BLOCK]; /* values of the class */
    uint8_t bools[DVTI_BLOCK];
} dvti_ew_state;

/* Loads the condition of `where`, which is true if nonzero in its own dtype. Converting it to the
   class first would truncate 0.5 to 0 for integers. */
static void dvti_ew_load_condition(const dvti_ew_plan *plan, int64_t first, int64_t n, void *to) {
    double value[DVTI_BLOCK];
    uint8_t holds[DVTI_BLOCK];
    dvti_view view;
    memset(&view, 0, sizeof view);
    dvti_load_block(&plan->view[0], first, n, DVTI_F64, value);
    dvti_store_row_f64(holds, DVT_BOOL, 1, n, value);
    view.data = holds;
    view.dtype = DVT_BOOL;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = 1;
    dvti_load_block(&view, 0, n, plan->compute, to);
}

static void dvti_ew_load(const dvti_ew_plan *plan, int k, int64_t first, int64_t n, void *to) {
    if (plan->loop.op == DVTI_OP_where && k == 0 && dvt_dtype_is_float(plan->view[0].dtype))
        dvti_ew_load_condition(plan, first, n, to);
    else
        dvti_load_block(&plan->view[k], first, n, plan->compute, to);
}

static void *dvti_ew_place(const dvti_ew_state *s, int k) {
    return (char *)s->plan->view[k].data + s->at[k].at * dvt_dtype_size(s->plan->view[k].dtype);
}

static void dvti_ew_start(dvti_ew_state *s, const dvti_ew_plan *plan) {
    int k;
    s->plan = plan;
    s->loop = plan->loop;
    for (k = 0; k < plan->n_in; k++) {
        const dvti_view *view = &plan->view[k];
        /* dvti_loop_i64 reads n elements of every operand, so a repeated one fills the block. */
        const int64_t n = plan->compute == DVTI_I64 ? DVTI_MIN(view->dim[0], DVTI_BLOCK) : 1;
        s->loop.in[k] = s->operand[k];
        s->loop.step[k] = 1;
        if (plan->access[k] == DVTI_EW_IN_PLACE)
            s->loop.step[k] = view->stride[view->ndim - 1] != 0;
        else if (plan->access[k] == DVTI_EW_ONE) {
            s->loop.step[k] = 0;
            dvti_ew_load(plan, k, 0, n, s->operand[k]);
        }
    }
}

static void dvti_ew_seek(dvti_ew_state *s, int64_t position) {
    int k;
    for (k = 0; k <= s->plan->n_in; k++)
        if (s->plan->access[k] == DVTI_EW_IN_PLACE)
            s->at[k] = dvti_cursor_at(&s->plan->view[k], position);
}

static void dvti_ew_store(dvti_ew_state *s, int64_t at, int64_t n) {
    const dvti_ew_plan *plan = s->plan;
    if (plan->bools && plan->compute == DVTI_F32)
        dvti_load_row_f32(s->bools, DVT_BOOL, 1, n, (float *)(void *)s->result);
    else if (plan->bools)
        dvti_load_row_f64(s->bools, DVT_BOOL, 1, n, s->result);
    dvti_store_block(&plan->view[plan->n_in], at, n, plan->compute, s->result);
}

/* Computes n positions from `at` on. In every array in place they must be contiguous. */
static void dvti_ew_block(dvti_ew_state *s, int64_t at, int64_t n) {
    const dvti_ew_plan *plan = s->plan;
    const bool stored = plan->access[plan->n_in] != DVTI_EW_IN_PLACE;
    dvti_loop *loop = &s->loop;
    int k;
    loop->n = n;
    loop->out = !stored       ? dvti_ew_place(s, plan->n_in)
                : plan->bools ? (void *)s->bools
                              : (void *)s->result;
    loop->stream = plan->stream && (uintptr_t)loop->out % 64 == 0;
    if (!plan->run && plan->access[0] == DVTI_EW_IN_PLACE) {
        dvti_store_block(&plan->view[1], at, n, plan->compute, dvti_ew_place(s, 0));
        return;
    }
    if (!plan->run) {
        dvti_ew_load(plan, 0, at, n, loop->out);
    } else {
        for (k = 0; k < plan->n_in; k++)
            if (plan->access[k] == DVTI_EW_IN_PLACE)
                loop->in[k] = dvti_ew_place(s, k);
            else if (plan->access[k] == DVTI_EW_BLOCK)
                dvti_ew_load(plan, k, at, n, s->operand[k]);
        plan->run(loop);
    }
    if (stored)
        dvti_ew_store(s, at, n);
}

static void dvti_ew_range(void *user, int64_t begin, int64_t end) {
    const dvti_ew_plan *plan = (const dvti_ew_plan *)user;
    dvti_ew_state s;
    int64_t n;
    int k;
    dvti_ew_start(&s, plan);
    dvti_ew_seek(&s, begin);
    for (; begin < end; begin += n) {
        n = plan->blocks ? DVTI_MIN(end - begin, DVTI_BLOCK) : end - begin;
        for (k = 0; k <= plan->n_in; k++)
            if (plan->access[k] == DVTI_EW_IN_PLACE) {
                const int last = plan->view[k].ndim - 1;
                n = DVTI_MIN(n, plan->view[k].dim[last] - s.at[k].index[last]);
            }
        dvti_ew_block(&s, begin, n);
        for (k = 0; k <= plan->n_in; k++)
            if (plan->access[k] == DVTI_EW_IN_PLACE)
                dvti_cursor_advance(&s.at[k], &plan->view[k], n);
    }
#if DVTI_AVX2
    if (plan->stream)
        _mm_sfence(); /* orders non-temporal stores before the store of the completion flag */
#endif
}

/* Computes column tiles begin..end-1, row by row. */
static void dvti_ew_columns(void *user, int64_t begin, int64_t end) {
    const dvti_ew_plan *plan = (const dvti_ew_plan *)user;
    const int64_t per_matrix = (plan->columns + DVTI_EW_COLUMNS - 1) / DVTI_EW_COLUMNS;
    dvti_ew_state s;
    int64_t row;
    dvti_ew_start(&s, plan);
    for (; begin < end; begin++) {
        int64_t column = begin % per_matrix * DVTI_EW_COLUMNS;
        int64_t at = begin / per_matrix * plan->rows * plan->columns + column;
        for (row = 0; row < plan->rows; row++, at += plan->columns) {
            dvti_ew_seek(&s, at);
            dvti_ew_block(&s, at, DVTI_MIN(DVTI_EW_COLUMNS, plan->columns - column));
        }
    }
}

/* ---- the launch ---- */
/* Copies of small integers and bools to float32 skip int64: the values are the same. */
static dvti_class dvti_ew_class(const dvti_launch *launch) {
    const dvt_dtype from = launch->in[0].dtype;
    const bool small = from == DVT_BOOL || from == DVT_U8 || from == DVT_I8 || from == DVT_I32;
    return launch->op == DVTI_OP_copy && !launch->i[0] && small && launch->out[0].dtype == DVT_F32
               ? DVTI_F32
               : launch->compute;
}

static void dvti_ew_make_plan(dvti_ew_plan *plan, const dvti_launch *launch, int64_t size) {
    const int n = launch->n_in;
    int k;
    plan->n_in = n;
    plan->scalar = dvti_scalar_of(launch);
    plan->loop.op = launch->op;
    plan->loop.low = launch->f[1];
    plan->loop.high = launch->f[2];
    if (launch->op == DVTI_OP_clip) {
        plan->loop.low_int = dvti_clip_bound(launch->f[1], launch->out[0].dtype);
        plan->loop.high_int = dvti_clip_bound(launch->f[2], launch->out[0].dtype);
    }
    plan->view[n] = launch->out[0];
    for (k = 0; k < n; k++)
        if (k == (int)launch->i[0] - 1) {
            plan->view[k] = plan->view[n];
            memset(plan->view[k].stride, 0, sizeof plan->view[k].stride);
            plan->view[k].data = &plan->scalar;
            plan->view[k].dtype = dvti_own_dtype[launch->compute];
        } else
            plan->view[k] = launch->in[k];
    dvti_ew_order_axes(plan);
    dvti_ew_find_columns(plan, size);
    plan->blocks = false;
    for (k = 0; k <= n; k++) {
        dvti_merge_axes(&plan->view[k]);
        plan->access[k] = dvti_ew_access_of(plan, k, size);
        if (!plan->run && k == 0 && plan->view[0].stride[plan->view[0].ndim - 1] != 1)
            plan->access[k] = DVTI_EW_BLOCK;
        if (plan->access[k] == DVTI_EW_BLOCK ||
            (plan->access[k] == DVTI_EW_ONE && plan->compute == DVTI_I64))
            plan->blocks = true;
    }
    if (!plan->run && plan->access[n] == DVTI_EW_IN_PLACE) { /* converts directly into the result */
        plan->access[0] = DVTI_EW_BLOCK;
        plan->blocks = true;
    }
    /* A tile's row is contiguous in an array in place only if all of that array is one axis. */
    for (k = 0; k <= n && plan->rows; k++)
        if (plan->access[k] == DVTI_EW_IN_PLACE && plan->view[k].ndim > 1)
            plan->access[k] = DVTI_EW_BLOCK;
    /* Non-temporal stores save 33 % of the memory traffic of an operation with one operand. */
    plan->stream = !plan->blocks && plan->compute != DVTI_I64 &&
                   size * dvt_dtype_size(plan->view[n].dtype) >= dvti_stream_bytes();
    for (k = 0; k < n; k++) /* not in place, where the result's cache lines have been read */
        plan->stream = plan->stream && plan->view[k].data != plan->view[n].data;
}

DVTI_FN void dvti_fast_elementwise(const dvti_launch *launch, const dvti_simd *simd) {
    const int64_t size = dvti_view_size(&launch->out[0]);
    const bool copies = launch->op == DVTI_OP_copy;
    dvti_ew_plan plan;
    double cost;
    if (size == 0 || (copies && dvti_cpu_copy(launch, simd)))
        return;
    plan.compute = dvti_ew_class(launch);
    plan.run = copies ? NULL : dvti_ew_run_of(launch->op, plan.compute, simd);
    if (!copies && plan.compute != DVTI_I64 &&
        dvti_small_elementwise(launch, plan.run, dvti_own_dtype[plan.compute], size))
        return;
    if (size <= DVTI_BLOCK && dvti_small_conversion(launch, plan.run, plan.compute, size))
        return;
    plan.bools = plan.compute != DVTI_I64 && dvti_op_row_of(launch->op)->rule == DVTI_RULE_BOOL;
    dvti_ew_make_plan(&plan, launch, size);
    cost = dvti_ew_cost(launch);
    if (plan.rows)
        dvti_parallel_for(size / (plan.rows * plan.columns) *
                              ((plan.columns + DVTI_EW_COLUMNS - 1) / DVTI_EW_COLUMNS),
                          DVTI_MAX(cost, 0.3) * (double)(plan.rows * DVTI_EW_COLUMNS),
                          dvti_ew_columns, &plan);
    else if (plan.blocks)
        dvti_parallel_for(size, DVTI_MAX(cost, 0.3), dvti_ew_range, &plan);
    else
        dvti_parallel_fine(size, cost, dvti_ew_range, &plan);
}
