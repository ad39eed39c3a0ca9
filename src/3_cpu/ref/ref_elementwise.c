/* The oracle of elementwise operations: one element after the other, by F and I of the op table.
   Also the loops of operations without vector code. */
#include "3_cpu/simd/dvt_simd.h"

/* A program that includes the implementation may define these short names. */
#pragma push_macro("F")
#pragma push_macro("C")
#undef F
#undef C

#define DVTI_UNARY(name, rule, cost, f, ...)                                                       \
    case DVTI_OP_##name:                                                                           \
        return (DVTI_T)(f);
#define DVTI_SPECIAL(name, operands, rule, cost, f, ...)                                           \
    case DVTI_OP_##name:                                                                           \
        return (DVTI_T)(f);
#define DVTI_SCALAR(name)                                                                          \
    static DVTI_T name(dvti_op op, DVTI_T a, DVTI_T b, DVTI_T c, DVTI_T low, DVTI_T high) {        \
        const DVTI_T x = a;                                                                        \
        switch ((int)op) {                                                                         \
            DVTI_UNARY_TABLE(DVTI_UNARY)                                                           \
            DVTI_BINARY_TABLE(DVTI_UNARY)                                                          \
            DVTI_SPECIAL_TABLE(DVTI_SPECIAL)                                                       \
        default:                                                                                   \
            return x;                                                                              \
        }                                                                                          \
    }

#define DVTI_T float
#define DVTI_LARGEST FLT_MAX
#define F(name) name##f
#define C(value) ((float)(value))
DVTI_SCALAR(dvti_scalar_f32)
#undef DVTI_T
#undef DVTI_LARGEST
#undef F
#undef C

#define DVTI_T double
#define DVTI_LARGEST DBL_MAX
#define F(name) name
#define C(value) ((double)(value))
DVTI_SCALAR(dvti_scalar_f64)
#undef DVTI_T
#undef DVTI_LARGEST
#undef F
#undef C
#undef DVTI_UNARY
#undef DVTI_SPECIAL

#define DVTI_UNARY(name, rule, cost, f, i, ...)                                                    \
    case DVTI_OP_##name:                                                                           \
        return (i);
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, ...)                                        \
    case DVTI_OP_##name:                                                                           \
        return (i);
#define DVTI_T int64_t
DVTI_SCALAR(dvti_scalar_i64)
#undef DVTI_T
#undef DVTI_UNARY
#undef DVTI_SPECIAL
#undef DVTI_SCALAR
#pragma pop_macro("F")
#pragma pop_macro("C")

#define DVTI_SCALAR_LOOP(name, T, scalar)                                                          \
    DVTI_FN void name(const dvti_loop *p) {                                                        \
        const T *a = (const T *)p->in[0];                                                          \
        const int operands = dvti_op_row_of(p->op)->operands;                                      \
        const T *b = operands > 1 ? (const T *)p->in[1] : a;                                       \
        const T *c = operands > 2 ? (const T *)p->in[2] : a;                                       \
        const int b_step = operands > 1 && p->step[1], c_step = operands > 2 && p->step[2];        \
        const bool bools = dvti_op_row_of(p->op)->rule == DVTI_RULE_BOOL;                          \
        int64_t k;                                                                                 \
        for (k = 0; k < p->n; k++) {                                                               \
            const T r = scalar(p->op, a[k * p->step[0]], b[k * b_step], c[k * c_step], (T)p->low,  \
                               (T)p->high);                                                        \
            if (bools)                                                                             \
                ((uint8_t *)p->out)[k] = r != 0;                                                   \
            else                                                                                   \
                ((T *)p->out)[k] = r;                                                              \
        }                                                                                          \
    }
DVTI_SCALAR_LOOP(dvti_scalar_loop_f32, float, dvti_scalar_f32)
DVTI_SCALAR_LOOP(dvti_scalar_loop_f64, double, dvti_scalar_f64)
#undef DVTI_SCALAR_LOOP

/* ---- the oracle ---- */
typedef union dvti_value {
    float f;
    double d;
    int64_t i;
} dvti_value;

static dvti_value dvti_ref_load(const dvti_view *view, int64_t at, dvti_class compute) {
    const char *from = (const char *)view->data + at * dvt_dtype_size(view->dtype);
    dvti_value v;
    if (compute == DVTI_F32)
        dvti_load_row_f32(from, view->dtype, 1, 1, &v.f);
    else if (compute == DVTI_F64)
        dvti_load_row_f64(from, view->dtype, 1, 1, &v.d);
    else
        dvti_load_row_i64(from, view->dtype, 1, 1, &v.i);
    return v;
}

static dvti_value dvti_ref_number(double f, int64_t i, dvti_class compute) {
    dvti_value v;
    if (compute == DVTI_F32)
        v.f = (float)f;
    else if (compute == DVTI_F64)
        v.d = f;
    else
        v.i = i;
    return v;
}

static void dvti_ref_store(const dvti_view *view, int64_t at, dvti_class compute, dvti_op op,
                           const dvti_value *v, const dvti_value *low, const dvti_value *high) {
    char *to = (char *)view->data + at * dvt_dtype_size(view->dtype);
    if (compute == DVTI_F32) {
        const float r = dvti_scalar_f32(op, v[0].f, v[1].f, v[2].f, low->f, high->f);
        dvti_store_row_f32(to, view->dtype, 1, 1, &r);
    } else if (compute == DVTI_F64) {
        const double r = dvti_scalar_f64(op, v[0].d, v[1].d, v[2].d, low->d, high->d);
        dvti_store_row_f64(to, view->dtype, 1, 1, &r);
    } else {
        const int64_t r = dvti_scalar_i64(op, v[0].i, v[1].i, v[2].i, low->i, high->i);
        dvti_store_row_i64(to, view->dtype, 1, 1, &r);
    }
}

static int64_t dvti_ref_place(const dvti_view *view, const int64_t *index) {
    int64_t at = 0;
    int axis;
    for (axis = 0; axis < view->ndim; axis++)
        at += index[axis] * view->stride[axis];
    return at;
}

DVTI_FN int64_t dvti_clip_bound(double bound, dvt_dtype dtype) {
    int64_t v = 0;
    if (dtype == DVT_BOOL)
        dtype = DVT_U8;
    dvti_store_f64(&v, dtype, 0, bound);
    return dvti_load_i64(&v, dtype, 0);
}

DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0];
    const dvti_class compute = launch->compute;
    const dvti_value low =
        dvti_ref_number(launch->f[1], dvti_clip_bound(launch->f[1], out->dtype), compute);
    const dvti_value high =
        dvti_ref_number(launch->f[2], dvti_clip_bound(launch->f[2], out->dtype), compute);
    const bool same = launch->op == DVTI_OP_copy && launch->in[0].dtype == out->dtype;
    int64_t index[DVT_MAX_DIMS] = {0}, left = dvti_view_size(out);
    int k, axis;
    for (; left > 0; left--) {
        dvti_value v[3] = {{0}, {0}, {0}};
        for (k = 0; k < launch->n_in; k++) {
            const dvti_view *in = &launch->in[k];
            if (k == (int)launch->i[0] - 1)
                v[k] = dvti_ref_number(launch->f[0], launch->i[1], compute);
            else if (launch->op == DVTI_OP_where && k == 0) { /* nonzero in its own dtype */
                const bool holds =
                    dvti_load_f64(in->data, in->dtype, dvti_ref_place(in, index)) != 0;
                v[k] = dvti_ref_number(holds, holds, compute);
            } else
                v[k] = dvti_ref_load(in, dvti_ref_place(in, index), compute);
        }
        if (same && launch->i[0] == 0) { /* copies every bit, also of a signaling NaN */
            const size_t size = (size_t)dvt_dtype_size(out->dtype);
            memmove((char *)out->data + dvti_ref_place(out, index) * (int64_t)size,
                    (const char *)launch->in[0].data +
                        dvti_ref_place(&launch->in[0], index) * (int64_t)size,
                    size);
        } else
            dvti_ref_store(out, dvti_ref_place(out, index), compute, launch->op, v, &low, &high);
        for (axis = out->ndim - 1; axis >= 0 && ++index[axis] == out->dim[axis]; axis--)
            index[axis] = 0;
    }
}
