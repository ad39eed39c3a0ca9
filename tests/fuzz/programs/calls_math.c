/* Elementwise operations: every row of the table in src/2_core/dvt_op_table.h, in all its forms. */
#include "elementwise.h"

#include "2_core/dvt_optimizer_table.h"
#include "2_core/dvt_reduce_table.h"
#include "2_core/dvt_op_table.h"

enum { SAME = 0, NOBOOL = 1, FLOAT = 2, BOOL = 3, INPLACE = 4, SCALAR_RIGHT = 8, SCALAR_LEFT = 16 };

static void finish(fuzz_world *w, dvt_array *y, fuzz_object *into) {
    if (into && y && y != into->x)
        fuzz_fail(w, "returned another array");
    if (!fuzz_ended(w, !y))
        return;
    if (into)
        fuzz_written(w, into);
    else
        fuzz_result(w, y);
}

/* Returns "add" for "scalar_add_". */
static const char *base_name(const fuzz_op *op, char *text) {
    size_t n;
    snprintf(text, 40, "%s", strncmp(op->name, "scalar_", 7) ? op->name : op->name + 7);
    n = strlen(text);
    if (n && text[n - 1] == '_')
        text[--n] = 0;
    if (n > 7 && !strcmp(text + n - 7, "_scalar"))
        text[n - 7] = 0;
    return text;
}

static bool fits(dvt_dtype result, dvt_dtype into) {
    if (dvt_dtype_is_float(result))
        return dvt_dtype_is_float(into);
    return result == DVT_BOOL || into != DVT_BOOL;
}

/* Predicts the errors that all forms share. Returns false when there will be one, or when that is
   unknown. */
static bool expect_elementwise(fuzz_world *w, const fuzz_op *op, fuzz_object *const *in, int n,
                               double s, dvt_dtype *dtype) {
    dvt_shape shape;
    int i, rule = op->rule & 3;
    bool scalar = op->rule & (SCALAR_LEFT | SCALAR_RIGHT);
    dvt_dtype result;
    for (i = 0; i < n; i++)
        if (!in[i]->x) {
            w->expect.code = DVT_ERR_NULL_ARGUMENT;
            return false;
        }
    shape = in[0]->view.shape;
    *dtype = in[0]->view.dtype;
    for (i = 1; i < n; i++) {
        if (!dvt_ctx_equal(in[0]->view.ctx, in[i]->view.ctx)) {
            w->expect.code = DVT_ERR_CONTEXT;
            return false;
        }
        if (!fuzz_broadcast(&shape, &in[i]->view.shape, &shape)) {
            w->expect.code = DVT_ERR_SHAPE;
            return false;
        }
        *dtype = dvt_promote(*dtype, in[i]->view.dtype);
    }
    if (scalar && !dvt_dtype_is_float(*dtype)) {
        if (!(s >= -9223372036854775808.0 && s < 9223372036854775808.0) || s != floor(s))
            *dtype = DVT_F32;
        else if (*dtype == DVT_BOOL && s != 0 && s != 1)
            *dtype = DVT_I64;
    }
    if (rule == NOBOOL && *dtype == DVT_BOOL) {
        w->expect.code = DVT_ERR_DTYPE;
        return false;
    }
    result = rule == BOOL                                   ? DVT_BOOL
             : rule == FLOAT && !dvt_dtype_is_float(*dtype) ? DVT_F32
                                                            : *dtype;
    if (op->rule & INPLACE) {
        bool recorded = false;
        for (i = 0; i < n; i++)
            recorded |= dvt_is_recording() && dvt_has_history(in[i]->x);
        w->expect.code = !dvt_shape_equal(shape, in[0]->view.shape) ? DVT_ERR_SHAPE
                         : !fits(result, in[0]->view.dtype)         ? DVT_ERR_DTYPE
                         : in[0]->view.repeats                      ? DVT_ERR_VALUE
                         : recorded                                 ? DVT_ERR_GRAD
                                                                    : DVT_OK;
        if (w->expect.code == DVT_ERR_VALUE && fuzz_size(&shape) == 0)
            w->expect.code = DVT_OK;
        if (w->expect.code != DVT_OK)
            return false;
    }
    w->expect.must_work = fuzz_size(&shape) > 0;
    w->expect.shape_known = w->expect.dtype_known = w->expect.ctx_known = true;
    w->expect.shape = shape;
    w->expect.dtype = op->rule & INPLACE ? in[0]->view.dtype : result;
    w->expect.ctx = in[0]->view.ctx;
    return true;
}

static bool too_large(fuzz_object *const *in, int n) {
    dvt_shape shape = in[0]->x ? in[0]->view.shape : DVT_SCALAR;
    int i;
    for (i = 1; i < n; i++)
        if (in[i]->x && !fuzz_broadcast(&shape, &in[i]->view.shape, &shape))
            return false;
    return fuzz_size(&shape) > 60000;
}

static void expect_values(fuzz_world *w, const fuzz_op *op, fuzz_object *const *in, int n, double s,
                          dvt_dtype dtype) {
    char text[40];
    const char *name = base_name(op, text);
    int64_t size = fuzz_size(&w->expect.shape), k;
    fuzz_view a = fuzz_broadcast_view(&in[0]->view, &w->expect.shape), b = a;
    dvt_dtype result = (op->rule & 3) == BOOL                                  ? DVT_BOOL
                       : (op->rule & 3) == FLOAT && !dvt_dtype_is_float(dtype) ? DVT_F32
                                                                               : dtype;
    fuzz_value *out = (fuzz_value *)malloc(((size_t)size + 1) * sizeof *out), x, y;
    bool known = true;
    if ((op->rule & 3) == FLOAT)
        dtype = result;
    if (n > 1)
        b = fuzz_broadcast_view(&in[1]->view, &w->expect.shape);
    for (k = 0; k < size && known; k++) {
        x = fuzz_convert(*fuzz_at(&a, k), a.dtype, dtype);
        if (dvt_dtype_is_float(dtype) && !dvt_dtype_is_float(a.dtype))
            x.d = dtype == DVT_F64 ? (double)fuzz_at(&a, k)->i : (double)(float)fuzz_at(&a, k)->i;
        y = n > 1 ? fuzz_convert(*fuzz_at(&b, k), b.dtype, dtype) : fuzz_scalar_value(dtype, s);
        if (n > 1 && dvt_dtype_is_float(dtype) && !dvt_dtype_is_float(b.dtype))
            y.d = dtype == DVT_F64 ? (double)fuzz_at(&b, k)->i : (double)(float)fuzz_at(&b, k)->i;
        if (n == 1 && !(op->rule & (SCALAR_LEFT | SCALAR_RIGHT)))
            known = fuzz_unary_value(name, dtype, x, &out[k]);
        else if (op->rule & SCALAR_LEFT)
            known = fuzz_binary_value(name, dtype, y, x, &out[k]);
        else
            known = fuzz_binary_value(name, dtype, x, y, &out[k]);
        if (known && op->rule & INPLACE)
            out[k] = fuzz_convert(out[k], result, in[0]->view.dtype);
    }
    if (known && size)
        w->expect.value = out;
    else
        free(out);
}

static void call_unary(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_dtype dtype;
    if (expect_elementwise(w, op, &a, 1, 0, &dtype))
        expect_values(w, op, &a, 1, 0, dtype);
    finish(w, ((dvt_array * (*)(dvt_array *)) op->function)(a->x), op->rule & INPLACE ? a : NULL);
}

static void call_binary(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *in[2];
    dvt_dtype dtype;
    in[0] = fuzz_pick(w);
    in[1] = fuzz_pick_like(w, in[0], op->rule & INPLACE);
    if (too_large(in, 2))
        return;
    if (expect_elementwise(w, op, in, 2, 0, &dtype))
        expect_values(w, op, in, 2, 0, dtype);
    finish(w, ((dvt_array * (*)(dvt_array *, dvt_array *)) op->function)(in[0]->x, in[1]->x),
           op->rule & INPLACE ? in[0] : NULL);
}

static void call_scalar(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    double s = fuzz_double(w);
    dvt_dtype dtype;
    dvt_array *y;
    fuzz_say(w, "    number %g\n", s);
    if (expect_elementwise(w, op, &a, 1, s, &dtype))
        expect_values(w, op, &a, 1, s, dtype);
    y = op->rule & SCALAR_LEFT ? ((dvt_array * (*)(double, dvt_array *)) op->function)(s, a->x)
                               : ((dvt_array * (*)(dvt_array *, double)) op->function)(a->x, s);
    finish(w, y, op->rule & INPLACE ? a : NULL);
}

static void call_where(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *in[3];
    dvt_shape shape;
    (void)op;
    in[1] = fuzz_pick(w);
    in[2] = fuzz_pick_like(w, in[1], false);
    in[0] = fuzz_pick_like(w, in[1], false);
    if (too_large(in, 3))
        return;
    if (!in[0]->x || !in[1]->x || !in[2]->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (!dvt_ctx_equal(in[0]->view.ctx, in[1]->view.ctx) ||
             !dvt_ctx_equal(in[0]->view.ctx, in[2]->view.ctx))
        w->expect.code = DVT_ERR_CONTEXT;
    else if (!fuzz_broadcast(&in[0]->view.shape, &in[1]->view.shape, &shape) ||
             !fuzz_broadcast(&shape, &in[2]->view.shape, &shape))
        w->expect.code = DVT_ERR_SHAPE;
    else {
        fuzz_view c = fuzz_broadcast_view(&in[0]->view, &shape),
                  a = fuzz_broadcast_view(&in[1]->view, &shape),
                  b = fuzz_broadcast_view(&in[2]->view, &shape);
        int64_t n = fuzz_size(&shape), k;
        w->expect.shape = shape;
        w->expect.dtype = dvt_promote(a.dtype, b.dtype);
        w->expect.shape_known = w->expect.dtype_known = w->expect.must_work = true;
        w->expect.value = (fuzz_value *)malloc(((size_t)n + 1) * sizeof(fuzz_value));
        for (k = 0; k < n; k++)
            w->expect.value[k] = fuzz_number(*fuzz_at(&c, k), c.dtype) != 0
                                     ? fuzz_convert(*fuzz_at(&a, k), a.dtype, w->expect.dtype)
                                     : fuzz_convert(*fuzz_at(&b, k), b.dtype, w->expect.dtype);
    }
    finish(w, dvt_where(in[0]->x, in[1]->x, in[2]->x), NULL);
}

static void call_clip(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    double low = fuzz_double(w), high = fuzz_double(w);
    bool inplace = op->rule & INPLACE;
    if (fuzz_byte(w) & 3 && low > high) {
        double swap = low;
        low = high;
        high = swap;
    }
    fuzz_say(w, "    %g to %g\n", low, high);
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (!(low <= high))
        w->expect.code = DVT_ERR_VALUE;
    else if (fuzz_size(&a->view.shape) && inplace && a->view.repeats)
        w->expect.code = DVT_ERR_VALUE;
    else {
        w->expect.shape = a->view.shape;
        w->expect.dtype = a->view.dtype;
        w->expect.shape_known = w->expect.dtype_known = true;
        w->expect.must_work = !inplace;
        if (dvt_dtype_is_float(a->view.dtype)) {
            int64_t n = fuzz_size(&a->view.shape), k;
            w->expect.value = fuzz_values(&a->view);
            for (k = 0; k < n; k++) {
                double x = w->expect.value[k].d;
                if (x < low || x > high)
                    w->expect.value[k] = fuzz_store(a->view.dtype, x < low ? low : high, 0);
            }
            if (fuzz_store(a->view.dtype, low, 0).d == 0 ||
                fuzz_store(a->view.dtype, high, 0).d ==
                    0) { /* the sign of a zero bound is unspecified */
                free(w->expect.value);
                w->expect.value = NULL;
            }
        }
    }
    finish(w, inplace ? dvt_clip_(a->x, low, high) : dvt_clip(a->x, low, high), inplace ? a : NULL);
}

/* ---- the table ---- */
#define ROW(text, call, f, weight, rule) {text, call, FUZZ_FN(f), weight, rule, FUZZ_ULPS, 8},
#define UNARY_SAME(name)                                                                           \
    ROW(#name, call_unary, dvt_##name, 2, SAME)                                                    \
    ROW(#name "_", call_unary, dvt_##name##_, 1, SAME | INPLACE)
#define UNARY_NOBOOL(name)                                                                         \
    ROW(#name, call_unary, dvt_##name, 2, NOBOOL)                                                  \
    ROW(#name "_", call_unary, dvt_##name##_, 1, NOBOOL | INPLACE)
#define UNARY_FLOAT(name)                                                                          \
    ROW(#name, call_unary, dvt_##name, 2, FLOAT)                                                   \
    ROW(#name "_", call_unary, dvt_##name##_, 1, FLOAT | INPLACE)
#define UNARY_BOOL(name) ROW(#name, call_unary, dvt_##name, 2, BOOL)
#define UNARY(name, rule, ...) UNARY_##rule(name)
#define FORMS(name, rule)                                                                          \
    ROW(#name, call_binary, dvt_##name, 5, rule)                                                   \
    ROW(#name "_scalar", call_scalar, dvt_##name##_scalar, 3, rule | SCALAR_RIGHT)                 \
    ROW("scalar_" #name, call_scalar, dvt_scalar_##name, 2, rule | SCALAR_LEFT)
#define INTO(name, rule)                                                                           \
    ROW(#name "_", call_binary, dvt_##name##_, 4, rule | INPLACE)                                  \
    ROW(#name "_scalar_", call_scalar, dvt_##name##_scalar_, 3, rule | INPLACE | SCALAR_RIGHT)
#define BINARY_SAME(name) FORMS(name, SAME) INTO(name, SAME)
#define BINARY_NOBOOL(name) FORMS(name, NOBOOL) INTO(name, NOBOOL)
#define BINARY_FLOAT(name) FORMS(name, FLOAT) INTO(name, FLOAT)
#define BINARY_BOOL(name) FORMS(name, BOOL)
#define BINARY(name, rule, ...) BINARY_##rule(name)

const fuzz_op fuzz_ops_math[] = {
    DVTI_UNARY_TABLE(UNARY)
        DVTI_BINARY_TABLE(BINARY){"where", call_where, NULL, 8, 0, FUZZ_EXACT, 0},
    {"clip", call_clip, NULL, 5, 0, FUZZ_EXACT, 0},
    {"clip_", call_clip, NULL, 3, INPLACE, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
