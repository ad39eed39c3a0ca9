/* Elementwise operations: the public functions of the op table's rows, where and clip. */
#include "1_base/dvt_float_mode.h"
#include "4_ops/dvt_op.h"

/* Returns the dtype of an integer array with a scalar: an integral scalar keeps the dtype (int64
   with bool, except for 0 and 1), a fraction makes it float32. */
static DVTI_NOINLINE dvt_dtype dvti_int_with_scalar(dvt_dtype dtype, double s) {
    DVTI_NOT_PURE();
    if (!(s >= -9223372036854775808.0 && s < 9223372036854775808.0) || s != floor(s))
        return DVT_F32;
    return dtype == DVT_BOOL && s != 0 && s != 1 ? DVT_I64 : dtype;
}

DVTI_FN dvt_dtype dvti_with_scalar(dvt_dtype dtype, double s) {
    dvti_float_mode mode;
    if (dvt_dtype_is_float(dtype))
        return dtype;
    mode = dvti_float_mode_begin(); /* with DAZ set, small fractions would compare as integers */
    dtype = dvti_int_with_scalar(dtype, s);
    dvti_float_mode_end(&mode);
    return dtype;
}

DVTI_FN bool dvti_overlaps(const dvt_array *in, const dvt_array *into) {
    int i;
    if (!dvti_storages_meet(in->storage, into->storage))
        return false;
    if (dvti_view_of(in).data != dvti_view_of(into).data || in->dtype != into->dtype ||
        !dvt_shape_equal(in->shape, into->shape))
        return true;
    for (i = 0; i < in->shape.ndim; i++)
        if (in->stride[i] != into->stride[i] && in->shape.dim[i] > 1)
            return true;
    return false;
}

static dvt_array *dvti_elementwise_run(dvti_launch *launch, dvt_array **in, int n, int first,
                                       const dvt_shape *shape, dvt_dtype dtype, dvt_array *into) {
    dvt_array *out = into;
    int k;
    for (k = 0; into && k < n; k++)
        if (dvti_overlaps(in[k], into) && !(in[k] = dvt_copy(in[k])))
            return NULL;
    if (!out && !(out = dvti_array_shaped(launch->name, shape, dtype, in[0]->storage->ctx)))
        return NULL;
    for (k = 0; k < n; k++)
        if (dvti_same_shape(&in[k]->shape, shape))
            dvti_view_into(&launch->in[first + k], in[k]);
        else
            dvti_view_broadcast_into(&launch->in[first + k], in[k], shape);
    dvti_view_into(&launch->out[0], out);
    launch->n_out = 1;
    if (dvti_has_elements(shape) && dvti_run(out->storage->device, launch) != DVT_OK)
        return NULL;
    if (into)
        dvti_written(into);
    return out;
}

/* Broadcasts the shapes of in[0..k) and in[k]. The error says where the arrays were made. */
static bool dvti_broadcast_arrays(const char *name, dvt_array *const *in, int k,
                                  const dvt_shape *shape, dvt_shape *common) {
    if (dvti_broadcasts(shape, &in[k]->shape, common))
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: %s and %s do not broadcast: extents must be equal or 1, counted from the last; "
              "reshape or slice one of them",
              name, k == 1 ? dvti_describe(in[0]) : dvti_shape_text(*shape), dvti_describe(in[k]));
    return false;
}

DVTI_FN dvt_array *dvti_elementwise(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    int scalar_at, double scalar, dvt_array *into) {
    dvti_launch launch;
    const int rule = dvti_op_row_of(op)->rule;
    dvti_attr attr;
    dvt_array *operand[3], *out = NULL;
    const dvt_shape *shape;
    dvt_shape common;
    dvt_dtype dtype, result;
    int k;
    dvti_launch_begin(&launch, name, dvti_kernel_elementwise(), op);
    if (!dvti_check(name, in, n))
        return NULL;
    shape = &in[0]->shape;
    dtype = in[0]->dtype;
    for (k = 0; k < n; k++) {
        operand[k] = in[k];
        dtype = dvt_promote(dtype, in[k]->dtype);
        if (k == 0 || dvti_same_shape(shape, &in[k]->shape))
            continue;
        if (!dvti_broadcast_arrays(name, in, k, shape, &common))
            return NULL;
        shape = &common;
    }
    if (scalar_at)
        dtype = dvti_with_scalar(dtype, scalar);
    if (rule == DVTI_RULE_FLOAT)
        dtype = dvti_float_dtype(dtype);
    if (rule == DVTI_RULE_NOBOOL && dtype == DVT_BOOL) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: not defined for bool; use dvt_logical_not or dvt_logical_xor, or convert "
                  "with dvt_astype",
                  name);
        return NULL;
    }
    result = rule == DVTI_RULE_BOOL ? DVT_BOOL : dtype;
    if (into && (!dvti_into_ok(name, into, shape, result, "the form without _") ||
                 !dvti_keeps_history(name, in, n, NULL, "the form without _")))
        return NULL;
    launch.compute = dvti_class_of(dtype);
    launch.n_in = n + (scalar_at ? 1 : 0);
    launch.f[0] = scalar;
    launch.i[0] = scalar_at;
    if (scalar_at) {
        dvti_clear(&launch.in[scalar_at - 1], sizeof launch.in[0]);
        launch.i[1] = launch.compute == DVTI_I64 ? (int64_t)scalar : 0;
    }
    if (into) {
        dvt_scope_guard scope = dvt_scope_begin(); /* owns the copies of overlapping inputs */
        out = dvti_elementwise_run(&launch, operand, n, scalar_at == 1, shape, result, into);
        dvt_scope_end(&scope);
        return out;
    }
    out = dvti_elementwise_run(&launch, operand, n, scalar_at == 1, shape, result, NULL);
    if (!scalar_at)
        return dvti_finish(out, op, name, in, n, NULL);
    attr = dvti_attr_none();
    attr.f[0] = scalar;
    attr.i[0] = scalar_at;
    return dvti_finish(out, op, name, in, n, &attr);
}

/* ---- the public functions, one set per row ---- */
#define DVTI_UNARY(name)                                                                           \
    DVT_API dvt_array *dvt_##name(dvt_array *x) {                                                  \
        return dvti_elementwise("dvt_" #name, DVTI_OP_##name, &x, 1, 0, 0, NULL);                  \
    }
#define DVTI_UNARY_INPLACE(name)                                                                   \
    DVT_API dvt_array *dvt_##name##_(dvt_array *x) {                                               \
        return dvti_elementwise("dvt_" #name "_", DVTI_OP_##name, &x, 1, 0, 0, x);                 \
    }
#define DVTI_BINARY(name)                                                                          \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b) {                                    \
        dvt_array *in[2];                                                                          \
        in[0] = a;                                                                                 \
        in[1] = b;                                                                                 \
        return dvti_elementwise("dvt_" #name, DVTI_OP_##name, in, 2, 0, 0, NULL);                  \
    }                                                                                              \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s) {                               \
        return dvti_elementwise("dvt_" #name "_scalar", DVTI_OP_##name, &x, 1, 2, s, NULL);        \
    }                                                                                              \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x) {                                 \
        return dvti_elementwise("dvt_scalar_" #name, DVTI_OP_##name, &x, 1, 1, s, NULL);           \
    }
#define DVTI_BINARY_INPLACE(name)                                                                  \
    DVT_API dvt_array *dvt_##name##_(dvt_array *a, dvt_array *b) {                                 \
        dvt_array *in[2];                                                                          \
        in[0] = a;                                                                                 \
        in[1] = b;                                                                                 \
        return dvti_elementwise("dvt_" #name "_", DVTI_OP_##name, in, 2, 0, 0, a);                 \
    }                                                                                              \
    DVT_API dvt_array *dvt_##name##_scalar_(dvt_array *x, double s) {                              \
        return dvti_elementwise("dvt_" #name "_scalar_", DVTI_OP_##name, &x, 1, 2, s, x);          \
    }

/* Rows with a bool result have no in-place form. */
#define DVTI_INPLACE_SAME(M, name) M(name)
#define DVTI_INPLACE_NOBOOL(M, name) M(name)
#define DVTI_INPLACE_FLOAT(M, name) M(name)
#define DVTI_INPLACE_BOOL(M, name)

#define DVTI_ROW(name, rule, ...) DVTI_UNARY(name) DVTI_INPLACE_##rule(DVTI_UNARY_INPLACE, name)
DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
#define DVTI_ROW(name, rule, ...) DVTI_BINARY(name) DVTI_INPLACE_##rule(DVTI_BINARY_INPLACE, name)
DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW

/* ---- select ---- */
DVT_API dvt_array *dvt_where(dvt_array *condition, dvt_array *a, dvt_array *b) {
    static const char *const names[] = {"condition", "a", "b"};
    dvti_launch launch;
    dvt_array *in[3], *operand[3], *out;
    dvt_shape shape;
    dvt_dtype dtype;
    dvti_launch_begin(&launch, "dvt_where", dvti_kernel_elementwise(), DVTI_OP_where);
    in[0] = condition;
    in[1] = a;
    in[2] = b;
    if (!dvti_check_named("dvt_where", in, 3, names) ||
        !dvti_broadcast_arrays("dvt_where", in + 1, 1, &a->shape, &shape) ||
        !dvti_broadcast("dvt_where", &shape, &condition->shape, &shape))
        return NULL;
    dtype = dvt_promote(a->dtype, b->dtype);
    memcpy(operand, in, sizeof operand);
    launch.compute = dvti_class_of(dtype);
    launch.n_in = 3;
    out = dvti_elementwise_run(&launch, operand, 3, 0, &shape, dtype, NULL);
    return dvti_finish(out, DVTI_OP_where, "dvt_where", in, 3, NULL);
}

/* Runs where() with the scalar s in place of one value: scalar_at is 2 for the first, 3 for the
   second. */
static dvt_array *dvti_where_scalar(const char *name, dvt_array *condition, dvt_array *x,
                                    int scalar_at, double s) {
    const char *names[2];
    const int array_at = 5 - scalar_at; /* position of x, counted as scalar_at */
    dvti_launch launch;
    dvti_attr attr = dvti_attr_none();
    dvt_array *in[2], *out;
    dvt_shape shape;
    dvt_dtype dtype;
    names[0] = "condition";
    names[1] = array_at == 2 ? "a" : "b";
    dvti_launch_begin(&launch, name, dvti_kernel_elementwise(), DVTI_OP_where);
    in[0] = condition;
    in[1] = x;
    if (!dvti_check_named(name, in, 2, names) ||
        !dvti_broadcast_arrays(name, in, 1, &condition->shape, &shape))
        return NULL;
    dtype = dvti_with_scalar(x->dtype, s);
    out = dvti_array_new(name, shape, dtype, x->storage->ctx);
    if (!out)
        return NULL;
    launch.compute = dvti_class_of(dtype);
    memset(launch.in, 0, sizeof launch.in);
    dvti_view_broadcast_into(&launch.in[0], condition, &shape);
    dvti_view_broadcast_into(&launch.in[array_at - 1], x, &shape);
    dvti_view_into(&launch.out[0], out);
    launch.n_in = 3;
    launch.n_out = 1;
    launch.f[0] = attr.f[0] = s;
    launch.i[0] = attr.i[0] = scalar_at;
    launch.i[1] = launch.compute == DVTI_I64 ? (int64_t)s : 0;
    if (dvti_has_elements(&shape) && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return dvti_finish(out, DVTI_OP_where, name, in, 2, &attr);
}

DVT_API dvt_array *dvt_where_scalar(dvt_array *condition, dvt_array *a, double s) {
    return dvti_where_scalar("dvt_where_scalar", condition, a, 3, s);
}

DVT_API dvt_array *dvt_scalar_where(dvt_array *condition, double s, dvt_array *b) {
    return dvti_where_scalar("dvt_scalar_where", condition, b, 2, s);
}

static dvt_array *dvti_clip(const char *name, dvt_array *x, double low, double high,
                            dvt_array *into) {
    dvti_launch launch;
    dvti_attr attr = dvti_attr_none();
    dvt_array *operand[1], *out;
    dvti_launch_begin(&launch, name, dvti_kernel_elementwise(), DVTI_OP_clip);
    if (!dvti_check(name, &x, 1))
        return NULL;
    if (!(low <= high)) {
        dvti_fail(DVT_ERR_VALUE, "%s: bounds %g and %g; expected low <= high, neither of them NaN",
                  name, low, high);
        return NULL;
    }
    if (into && !dvti_into_ok(name, into, &x->shape, x->dtype, "the form without _"))
        return NULL;
    operand[0] = x;
    launch.compute = dvti_class_of(x->dtype);
    launch.n_in = 1;
    launch.f[1] = attr.f[1] = low;
    launch.f[2] = attr.f[2] = high;
    out = dvti_elementwise_run(&launch, operand, 1, 0, &x->shape, x->dtype, into);
    return into ? out : dvti_finish(out, DVTI_OP_clip, name, &x, 1, &attr);
}

DVT_API dvt_array *dvt_clip(dvt_array *x, double low, double high) {
    return dvti_clip("dvt_clip", x, low, high, NULL);
}

DVT_API dvt_array *dvt_clip_(dvt_array *x, double low, double high) {
    return dvti_clip("dvt_clip_", x, low, high, x);
}
