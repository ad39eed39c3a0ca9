/* Elementwise operations, by blocks: each operand's next block becomes a plain row of the class that the operation computes in (or is
   one already, in memory), one loop per row of the op table runs over it, and the result is stored. The loops are a tier's, or those
   expanded from the table here; dtypes and strides are ref_block.c's. */
#include "3_cpu/simd/dvt_simd.h"

/* ---- what the op table's texts use ---- */
#define DVTI_WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))

/* Python's rules: the remainder has b's sign, also when it is 0; the quotient is rounded down. */
#define DVTI_DEFINE_DIVISION(FN, T, FMOD, COPYSIGN, RINT, floor_div, mod)                          \
    FN T mod(T a, T b) {                                                                           \
        T rest = FMOD(a, b);                                                                       \
        if (rest == 0)                                                                             \
            return COPYSIGN(0, b);                                                                 \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                            \
    }                                                                                              \
    FN T floor_div(T a, T b) {                                                                     \
        T rest, quotient;                                                                          \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        rest = FMOD(a, b);                                                                         \
        quotient = (a - rest) / b; /* whole, up to rounding */                                     \
        if (rest != 0 && (rest < 0) != (b < 0))                                                    \
            quotient -= 1;                                                                         \
        return quotient == 0 ? COPYSIGN(0, a / b) : RINT(quotient);                                \
    }
DVTI_DEFINE_DIVISION(DVTI_FN, float, fmodf, copysignf, rintf, dvti_floor_divf, dvti_modf)
DVTI_DEFINE_DIVISION(DVTI_FN, double, fmod, copysign, rint, dvti_floor_div, dvti_mod)
#undef DVTI_DEFINE_DIVISION

/* The machine's division traps on x / 0 and on INT64_MIN / -1. */
static int64_t dvti_int_floor_div(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return DVTI_WRAP(0, -, a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t dvti_int_mod(int64_t a, int64_t b) {
    int64_t rest;
    if (b == 0 || b == -1)
        return 0;
    rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t dvti_int_pow(int64_t a, int64_t b) {
    uint64_t base = (uint64_t)a, result = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b; b >>= 1) {
        if (b & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

/* ---- the loops: one function per class, one case per row ---- */
typedef struct dvti_ew_plan {
    dvti_op op;
    dvti_class compute;
    int n_in;
    dvti_view in[3], out;
    double low, high; /* clip */
    int64_t low_int, high_int;
    double f; /* the scalar, which is an operand of one element */
    int64_t i;
    int64_t rows, columns; /* of the matrices that are done in strips; 0: no strips */
    int64_t widest;        /* the longest block there is */
    dvti_loop_fn loop;     /* of a tier; NULL: the reference's */
    bool truth;            /* which writes bools */
} dvti_ew_plan;

/* The program that includes us may use these short names. */
#pragma push_macro("F")
#pragma push_macro("C")
#undef F
#undef C
/* Elements by sixteens: with a known number of them, and the promise that none depends on another one (input and output may be
   the same memory), GCC makes vector instructions of a loop at -O2 already. */
#if defined(__GNUC__) && !defined(__clang__)
#define DVTI_EW_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DVTI_EW_INDEPENDENT
#endif
#define DVTI_EW_LOOP(...)                                                                          \
    for (; n >= 16; n -= 16, p += 16, q += 16, r += 16, to += 16) {                                \
        DVTI_EW_INDEPENDENT                                                                        \
        for (k = 0; k < 16; k++)                                                                   \
            __VA_ARGS__                                                                            \
    }                                                                                              \
    for (k = 0; k < n; k++)                                                                        \
        __VA_ARGS__                                                                                \
    break;
#define DVTI_EW_UNARY(name, f)                                                                     \
    case DVTI_OP_##name:                                                                           \
        DVTI_EW_LOOP({                                                                             \
            const DVTI_T x = p[k];                                                                 \
            (void)x;                                                                               \
            to[k] = (DVTI_T)(f);                                                                   \
        })
#define DVTI_EW_BINARY(name, f)                                                                    \
    case DVTI_OP_##name:                                                                           \
        DVTI_EW_LOOP({                                                                             \
            const DVTI_T a = p[k], b = q[k];                                                       \
            (void)a;                                                                               \
            (void)b;                                                                               \
            to[k] = (DVTI_T)(f);                                                                   \
        })
#define DVTI_EW_OTHERS                                                                             \
    case DVTI_OP_where:                                                                            \
        DVTI_EW_LOOP({ to[k] = p[k] != 0 ? q[k] : r[k]; })                                         \
    case DVTI_OP_clip:                                                                             \
        DVTI_EW_LOOP({ to[k] = p[k] < low ? low : p[k] > high ? high : p[k]; })                    \
    default: /* copy */                                                                            \
        if (to != p)                                                                               \
            memcpy(to, p, (size_t)n * sizeof *to);                                                 \
        break;

#define DVTI_EW_U(name, rule, f, i, grad, lo, hi, doc) DVTI_EW_UNARY(name, f)
#define DVTI_EW_B(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_EW_BINARY(name, f)
#define DVTI_T float
#define F(name) name##f
#define C(value) ((float)(value))
#define DVTI_LARGEST FLT_MAX

static void dvti_ew_f32(const dvti_ew_plan *plan, const float *p, const float *q, const float *r,
                        float *to, int64_t n) {
    const float low = (float)plan->low, high = (float)plan->high;
    int64_t k;
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef F
#undef C
#undef DVTI_LARGEST

#define DVTI_T double
#define F(name) name
#define C(value) ((double)(value))
#define DVTI_LARGEST DBL_MAX

static void dvti_ew_f64(const dvti_ew_plan *plan, const double *p, const double *q, const double *r,
                        double *to, int64_t n) {
    const double low = plan->low, high = plan->high;
    int64_t k;
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef F
#undef C
#undef DVTI_LARGEST
#undef DVTI_EW_U
#undef DVTI_EW_B

/* Of the texts only the integer ones are used here; rows of rule FLOAT never see integers, and loops of theirs would take as long to compile as
   all the others. */
#define DVTI_EW_U(name, rule, f, i, grad, lo, hi, doc) DVTI_EW_U_##rule(name, i)
#define DVTI_EW_B(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_EW_B_##rule(name, i)
#define DVTI_EW_U_SAME DVTI_EW_UNARY
#define DVTI_EW_U_NOBOOL DVTI_EW_UNARY
#define DVTI_EW_U_BOOL DVTI_EW_UNARY
#define DVTI_EW_U_FLOAT(name, i)
#define DVTI_EW_B_SAME DVTI_EW_BINARY
#define DVTI_EW_B_NOBOOL DVTI_EW_BINARY
#define DVTI_EW_B_BOOL DVTI_EW_BINARY
#define DVTI_EW_B_FLOAT(name, i)
#define DVTI_T int64_t

static bool dvti_ew_repeats(const dvti_view *view) {
    return view->ndim == 1 && view->stride[0] == 0;
}

/* x to the power `exponent`, 0 to 3. */
static void dvti_ew_power_i64(const int64_t *x, int64_t exponent, int64_t *to, int64_t n) {
    int64_t k;
    for (k = 0; k < n; k++) {
        const uint64_t a = (uint64_t)x[k];
        to[k] = (int64_t)(exponent == 0   ? 1
                          : exponent == 1 ? a
                          : exponent == 2 ? a * a
                                          : a * a * a);
    }
}

static void dvti_ew_i64(const dvti_ew_plan *plan, const int64_t *p, const int64_t *q,
                        const int64_t *r, int64_t *to, int64_t n) {
    const int64_t low = plan->low_int, high = plan->high_int;
    int64_t k;
    if (plan->op == DVTI_OP_pow && dvti_ew_repeats(&plan->in[1]) && *q >= 0 && *q <= 3) {
        dvti_ew_power_i64(p, *q, to, n);
        return;
    }
    switch (plan->op) {
        DVTI_UNARY_TABLE(DVTI_EW_U)
        DVTI_BINARY_TABLE(DVTI_EW_B)
        DVTI_EW_OTHERS
    }
}

#undef DVTI_T
#undef DVTI_EW_U
#undef DVTI_EW_B
#undef DVTI_EW_U_SAME
#undef DVTI_EW_U_NOBOOL
#undef DVTI_EW_U_BOOL
#undef DVTI_EW_U_FLOAT
#undef DVTI_EW_B_SAME
#undef DVTI_EW_B_NOBOOL
#undef DVTI_EW_B_BOOL
#undef DVTI_EW_B_FLOAT
#undef DVTI_EW_UNARY
#undef DVTI_EW_BINARY
#undef DVTI_EW_OTHERS
#undef DVTI_EW_LOOP
#undef DVTI_EW_INDEPENDENT
#undef DVTI_WRAP
#pragma pop_macro("F")
#pragma pop_macro("C")

static void dvti_ew_loop(const dvti_ew_plan *plan, void *const *operand, void *to, int64_t n) {
    if (plan->loop) {
        dvti_loop loop;
        int k;
        for (k = 0; k < plan->n_in; k++) {
            loop.in[k] = operand[k];
            loop.step[k] = !dvti_ew_repeats(&plan->in[k]);
        }
        loop.op = plan->op;
        loop.out = to;
        loop.n = n;
        loop.low = plan->low;
        loop.high = plan->high;
        loop.stream = false;
        plan->loop(&loop);
    } else if (plan->compute == DVTI_F32)
        dvti_ew_f32(plan, (const float *)operand[0], (const float *)operand[1],
                    (const float *)operand[2], (float *)to, n);
    else if (plan->compute == DVTI_F64)
        dvti_ew_f64(plan, (const double *)operand[0], (const double *)operand[1],
                    (const double *)operand[2], (double *)to, n);
    else
        dvti_ew_i64(plan, (const int64_t *)operand[0], (const int64_t *)operand[1],
                    (const int64_t *)operand[2], (int64_t *)to, n);
}

/* ---- blocks ---- */
/* where's condition holds when it is nonzero in its own dtype, also where the class would make it 0 (0.5 among integers). */
static void dvti_ew_load_condition(const dvti_ew_plan *plan, int64_t first, int64_t n, void *to) {
    double value[DVTI_BLOCK];
    uint8_t holds[DVTI_BLOCK];
    dvti_view view;
    memset(&view, 0, sizeof view);
    dvti_load_block(&plan->in[0], first, n, DVTI_F64, value);
    dvti_store_row_f64(holds, DVT_BOOL, 1, n, value);
    view.data = holds;
    view.dtype = DVT_BOOL;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = 1;
    dvti_load_block(&view, 0, n, plan->compute, to);
}

static void dvti_ew_load(const dvti_ew_plan *plan, int which, int64_t first, int64_t n, void *to) {
    if (plan->op == DVTI_OP_where && which == 0 && dvt_dtype_is_float(plan->in[0].dtype))
        dvti_ew_load_condition(plan, first, n, to);
    else
        dvti_load_block(&plan->in[which], first, n, plan->compute, to);
}

/* Rows for operands that are no plain rows in memory, and for a result that is none. */
typedef struct dvti_ew_rows {
    double operand[3][DVTI_BLOCK], result[DVTI_BLOCK]; /* room for any class */
    uint8_t truth[DVTI_BLOCK];
    bool loaded; /* operands of one element are there already */
} dvti_ew_rows;

/* Where the loop may write at once. */
static void *dvti_ew_direct(const dvti_ew_plan *plan, int64_t at) {
    const dvti_view *out = &plan->out;
    if (!plan->truth)
        return dvti_block_direct(out, plan->compute, at);
    return out->ndim == 1 && out->stride[0] == 1 && out->dtype == DVT_BOOL ? (char *)out->data + at
                                                                           : NULL;
}

static void dvti_ew_store(const dvti_ew_plan *plan, dvti_ew_rows *rows, int64_t at, int64_t n) {
    if (plan->truth && plan->compute == DVTI_F32)
        dvti_load_row_f32(rows->truth, DVT_BOOL, 1, n, (float *)(void *)rows->result);
    else if (plan->truth)
        dvti_load_row_f64(rows->truth, DVT_BOOL, 1, n, rows->result);
    dvti_store_block(&plan->out, at, n, plan->compute, rows->result);
}

static void dvti_ew_block(const dvti_ew_plan *plan, dvti_ew_rows *rows, int64_t at, int64_t n) {
    void *operand[3], *to = dvti_ew_direct(plan, at);
    void *own = plan->truth ? (void *)rows->truth : (void *)rows->result;
    int k;
    for (k = 0; k < 3; k++) {
        if (k >= plan->n_in) { /* not read, but stepped along with the others */
            operand[k] = operand[0];
            continue;
        }
        operand[k] = dvti_block_direct(&plan->in[k], plan->compute, at);
        if (operand[k])
            continue;
        operand[k] = rows->operand[k];
        if (!dvti_ew_repeats(&plan->in[k]))
            dvti_ew_load(plan, k, at, n, operand[k]);
        else if (!rows->loaded)
            dvti_ew_load(plan, k, 0, plan->loop ? 1 : plan->widest, operand[k]);
    }
    rows->loaded = true;
    dvti_ew_loop(plan, operand, to ? to : own, n);
    if (!to)
        dvti_ew_store(plan, rows, at, n);
}

static void dvti_ew_range(void *user, int64_t begin, int64_t end) {
    const dvti_ew_plan *plan = (const dvti_ew_plan *)user;
    dvti_ew_rows rows;
    bool direct = dvti_ew_direct(plan, 0) != NULL;
    int64_t at, block;
    int k;
    for (k = 0; k < plan->n_in; k++)
        direct = direct && (dvti_block_direct(&plan->in[k], plan->compute, 0) ||
                            (plan->loop && dvti_ew_repeats(&plan->in[k])));
    block = direct ? end - begin : DVTI_BLOCK;
    rows.loaded = false;
    for (at = begin; at < end; at += block)
        dvti_ew_block(plan, &rows, at, DVTI_MIN(block, end - at));
}

/* An operand that lies across the result would touch another cache line with every element. Going down a narrow strip, the
   next row finds the lines that this one has fetched. */
#define DVTI_EW_STRIP 128

static void dvti_ew_strips(void *user, int64_t begin, int64_t end) {
    const dvti_ew_plan *plan = (const dvti_ew_plan *)user;
    int64_t per_matrix = (plan->columns + DVTI_EW_STRIP - 1) / DVTI_EW_STRIP, row;
    dvti_ew_rows rows;
    rows.loaded = false;
    for (; begin < end; begin++) {
        int64_t column = begin % per_matrix * DVTI_EW_STRIP;
        int64_t at = begin / per_matrix * plan->rows * plan->columns + column;
        for (row = 0; row < plan->rows; row++, at += plan->columns)
            dvti_ew_block(plan, &rows, at, DVTI_MIN(DVTI_EW_STRIP, plan->columns - column));
    }
}

/* ---- the launch ---- */
/* The order of positions is free: following the result's memory makes transposed operands of one layout contiguous. */
static void dvti_ew_swap_axes(dvti_view *view, int a, int b) {
    int64_t dim = view->dim[a], stride = view->stride[a];
    view->dim[a] = view->dim[b];
    view->stride[a] = view->stride[b];
    view->dim[b] = dim;
    view->stride[b] = stride;
}

static int64_t dvti_ew_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void dvti_ew_order_axes(dvti_ew_plan *plan) {
    const dvti_view *out = &plan->out;
    int i, j, k;
    for (i = 1; i < out->ndim; i++)
        for (j = i; j > 0; j--) {
            if (dvti_ew_distance(out->stride[j - 1]) >= dvti_ew_distance(out->stride[j]))
                break;
            for (k = 0; k < plan->n_in; k++)
                dvti_ew_swap_axes(&plan->in[k], j - 1, j);
            dvti_ew_swap_axes(&plan->out, j - 1, j);
        }
}

/* Looks for an operand that lies across, and makes the axis along which it does the last but one: then there are matrices. */
static void dvti_ew_find_strips(dvti_ew_plan *plan, int64_t size) {
    int last = plan->out.ndim - 1, i, k, j;
    plan->rows = 0;
    while (last > 0 && plan->out.dim[last] == 1)
        last--;
    for (k = 0; size >= 16384 && k < plan->n_in && !plan->rows; k++) {
        const dvti_view *in = &plan->in[k];
        int64_t step = dvti_ew_distance(in->stride[DVTI_MAX(last, 0)]), least = 16;
        int across = -1;
        for (i = 0; i < last && step >= 16; i++)
            if (in->dim[i] > 1 && in->stride[i] && dvti_ew_distance(in->stride[i]) < least) {
                least = dvti_ew_distance(in->stride[i]);
                across = i;
            }
        if (across < 0)
            continue;
        for (i = across; i + 1 < last; i++) {
            for (j = 0; j < plan->n_in; j++)
                dvti_ew_swap_axes(&plan->in[j], i, i + 1);
            dvti_ew_swap_axes(&plan->out, i, i + 1);
        }
        plan->rows = plan->out.dim[last - 1];
        plan->columns = plan->out.dim[last];
    }
}

/* Bounds of an integer array, cut to what its dtype holds: min(max(x, 2.5), 7) without its fraction is min(max(x, 2), 7). */
static int64_t dvti_ew_bound(double bound, dvt_dtype dtype) {
    int64_t room = 0;
    if (dtype == DVT_BOOL)
        dtype = DVT_U8;
    dvti_store_f64(&room, dtype, 0, bound);
    return dvti_load_i64(&room, dtype, 0);
}

/* Nanoseconds of an element, in the plain loops. */
static double dvti_ew_cost(const dvti_ew_plan *plan) {
    return dvti_op_work_of(plan->op) >= DVTI_WORK_FUNCTION ? 2.5
                                                           : 0.3; /* what moving the memory takes */
}

DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch) {
    dvti_ew_plan plan;
    const dvti_simd *simd;
    int scalar = (int)launch->i[0] - 1, k;
    int64_t size = dvti_view_size(&launch->out[0]);
    if (size == 0)
        return;
    plan.op = launch->op;
    plan.compute = launch->compute;
    plan.n_in = launch->n_in;
    plan.out = launch->out[0];
    plan.low = launch->f[1];
    plan.high = launch->f[2];
    plan.low_int = plan.op == DVTI_OP_clip ? dvti_ew_bound(plan.low, plan.out.dtype) : 0;
    plan.high_int = plan.op == DVTI_OP_clip ? dvti_ew_bound(plan.high, plan.out.dtype) : 0;
    plan.f = launch->f[0];
    plan.i = launch->i[1];
    for (k = 0; k < plan.n_in; k++) {
        plan.in[k] = launch->in[k];
        if (k == scalar) {
            bool integer = plan.compute == DVTI_I64;
            plan.in[k] = plan.out;
            memset(plan.in[k].stride, 0, sizeof plan.in[k].stride);
            plan.in[k].data = integer ? (void *)&plan.i : (void *)&plan.f;
            plan.in[k].dtype = integer ? DVT_I64 : DVT_F64;
        }
    }
    dvti_ew_order_axes(&plan);
    dvti_ew_find_strips(&plan, size);
    for (k = 0; k < plan.n_in; k++)
        dvti_merge_axes(&plan.in[k]);
    dvti_merge_axes(&plan.out);
    plan.widest = DVTI_MIN(size, DVTI_BLOCK);
    simd = plan.compute == DVTI_I64 ? NULL : dvti_simd_now();
    plan.loop = !simd                      ? NULL
                : plan.compute == DVTI_F32 ? simd->loop_f32(plan.op)
                                           : simd->f64->loop(plan.op);
    plan.truth = plan.loop && dvti_loop_dtype(plan.op, DVT_F64) == DVT_BOOL;
    if (plan.rows)
        dvti_parallel_for(size / (plan.rows * plan.columns) *
                              ((plan.columns + DVTI_EW_STRIP - 1) / DVTI_EW_STRIP),
                          dvti_ew_cost(&plan) * (double)(plan.rows * DVTI_EW_STRIP), dvti_ew_strips,
                          &plan);
    else
        dvti_parallel_for(size, dvti_ew_cost(&plan), dvti_ew_range, &plan);
}

#undef DVTI_EW_STRIP
