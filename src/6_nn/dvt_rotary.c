/* Rotary position embedding, composed of recorded operations. */
#include "6_nn/dvt_nn_internal.h"

static bool dvti_rotary_accepts(const char *name, const dvt_array *x, const dvt_rotary_options *p) {
    int n = x->shape.ndim;
    dvt_shape rows = x->shape, common;
    if (n < 2 || x->shape.dim[n - 1] < 2 || x->shape.dim[n - 1] % 2) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected (..., T, size) with an even size", name,
                  dvti_describe(x));
        return false;
    }
    if (!(p->base > 0) || p->base - p->base != 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: base is %g; expected a positive number, or 0 for 10000", name,
                  p->base);
        return false;
    }
    rows.ndim--;
    if (p->positions && (!dvti_broadcasts(&p->positions->shape, &rows, &common) ||
                         !dvt_shape_equal(common, rows))) {
        dvti_fail(DVT_ERR_SHAPE, "%s: positions is %s; expected a shape that broadcasts to %s",
                  name, dvti_describe(p->positions), dvti_shape_text(rows));
        return false;
    }
    return true;
}

/* Returns position * base^(-2i / size), (.., T, size / 2). float64 keeps the angles of large
   positions exact. */
static dvt_array *dvti_rotary_angles(const dvt_array *x, const dvt_rotary_options *p) {
    dvt_ctx ctx = dvt_ctx_of(x);
    int64_t steps = x->shape.dim[x->shape.ndim - 2], size = x->shape.dim[x->shape.ndim - 1];
    double first = (double)p->offset;
    dvt_array *pair = dvt_arange(0, (double)(size / 2), 1, DVT_F64, ctx);
    dvt_array *at = p->positions ? dvt_as_in_dtype(p->positions, DVT_F64)
                                 : dvt_arange(first, first + (double)steps, 1, DVT_F64, ctx);
    pair = dvt_scalar_pow(p->base, dvt_mul_scalar(pair, -2.0 / (double)size));
    return dvt_mul(dvt_expand_dims(at, -1), pair);
}

static dvt_array *dvti_rotary_of(dvt_array *x, const dvt_rotary_options *p) {
    dvt_array *angle = x ? dvti_rotary_angles(x, p) : NULL, *c, *s, *a, *b, *turned[2];
    int64_t size;
    if (!angle)
        return NULL;
    size = x->shape.dim[x->shape.ndim - 1];
    c = dvt_as_in_dtype(dvt_cos(angle), x->dtype);
    s = dvt_as_in_dtype(dvt_sin(angle), x->dtype);
    a = p->interleaved ? dvt_slice(x, -1, 0, DVT_END, 2) : dvt_slice(x, -1, 0, size / 2, 1);
    b = p->interleaved ? dvt_slice(x, -1, 1, DVT_END, 2) : dvt_slice(x, -1, size / 2, DVT_END, 1);
    turned[0] = dvt_sub(dvt_mul(a, c), dvt_mul(b, s));
    turned[1] = dvt_add(dvt_mul(b, c), dvt_mul(a, s));
    if (!turned[0] || !turned[1])
        return NULL;
    return p->interleaved ? dvt_reshape(dvt_stack(turned, 2, -1), x->shape)
                          : dvt_concat(turned, 2, -1);
}

DVT_API dvt_array *dvt_rotary(dvt_array *x, const dvt_rotary_options *options) {
    static const char name[] = "dvt_rotary";
    static const char *const names[] = {"x", "positions"};
    dvt_rotary_options p;
    dvt_array *in[2], *y;
    dvt_scope_guard scope;
    memset(&p, 0, sizeof p);
    if (options)
        p = *options;
    if (p.base == 0)
        p.base = 10000;
    in[0] = x;
    in[1] = p.positions;
    if (!dvti_check_named(name, in, p.positions ? 2 : 1, names) ||
        !dvti_rotary_accepts(name, x, &p))
        return NULL;
    scope = dvt_scope_begin();
    y = dvti_rotary_of(dvti_wide_float(dvt_as_in_dtype(x, dvti_float_dtype(x->dtype))), &p);
    y = y ? dvt_as_in_dtype(y, dvti_float_dtype(x->dtype)) : NULL;
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}
