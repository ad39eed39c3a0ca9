/* Scaled dot-product attention, composed of recorded operations. */
#include "6_nn/dvt_nn_internal.h"

/* The sizes of one call. */
typedef struct dvti_attending {
    int64_t batch, heads, groups, queries, keys, size, values;
} dvti_attending;

static bool dvti_attention_accepts(const char *name, dvt_array *const *in, dvti_attending *a) {
    const dvt_shape q = in[0]->shape, k = in[1]->shape, v = in[2]->shape;
    if (q.ndim == 4 && k.ndim == 4 && v.ndim == 4 && k.dim[0] == q.dim[0] && v.dim[0] == q.dim[0] &&
        k.dim[1] > 0 && v.dim[1] == k.dim[1] && q.dim[1] % k.dim[1] == 0 && v.dim[2] == k.dim[2] &&
        k.dim[3] == q.dim[3] && q.dim[3] > 0 && k.dim[2] > 0) {
        a->batch = q.dim[0];
        a->heads = q.dim[1];
        a->groups = k.dim[1];
        a->queries = q.dim[2];
        a->keys = k.dim[2];
        a->size = q.dim[3];
        a->values = v.dim[3];
        return true;
    }
    dvti_fail(DVT_ERR_SHAPE,
              "%s: q is %s, k is %s and v is %s; expected (N, heads, Tq, size), (N, groups, Tk, "
              "size) and (N, groups, Tk, values), where groups divides heads and size and Tk are "
              "not 0: reshape or transpose them",
              name, dvti_describe(in[0]), dvti_describe(in[1]), dvti_describe(in[2]));
    return false;
}

static bool dvti_attention_mask_ok(const char *name, const dvt_array *mask,
                                   const dvti_attending *a) {
    dvt_shape scores = DVT_SHAPE(a->batch, a->heads, a->queries, a->keys), common;
    if (!dvti_broadcasts(&mask->shape, &scores, &common) || !dvt_shape_equal(common, scores)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: mask is %s; expected a shape that broadcasts to %s (N, heads, Tq, Tk)", name,
                  dvti_describe(mask), dvti_shape_text(scores));
        return false;
    }
    if (mask->dtype == DVT_BOOL || dvt_dtype_is_float(mask->dtype))
        return true;
    dvti_fail(DVT_ERR_DTYPE,
              "%s: mask is %s; expected bool (true: attend) or a float dtype (added to the scores)",
              name, dvti_describe(mask));
    return false;
}

/* Returns (Tq, Tk) of bool: key j is allowed for query i when j <= i + Tk - Tq. */
static dvt_array *dvti_attention_causal(const dvti_attending *a, dvt_ctx ctx) {
    double first = (double)(a->keys - a->queries);
    dvt_array *i = dvt_arange(first, (double)a->keys, 1, DVT_I64, ctx);
    dvt_array *j = dvt_arange(0, (double)a->keys, 1, DVT_I64, ctx);
    return dvt_less_equal(j, dvt_expand_dims(i, 1));
}

/* Applies the masks to the scores. *allowed, if set, says which keys each query may use. Finite
   numbers replace -INFINITY: a row without any allowed key then has no NaN, also in its gradient,
   and is replaced by zeros later. */
static dvt_array *dvti_attention_masked(dvt_array *scores, dvt_array *mask, dvt_array *causal,
                                        dvt_array **allowed) {
    *allowed = causal;
    if (mask && mask->dtype == DVT_BOOL) {
        *allowed = causal ? dvt_logical_and(mask, causal) : mask;
        mask = NULL;
    } else if (mask) {
        dvt_array *is = dvt_not_equal_scalar(mask, -(double)INFINITY);
        *allowed = causal ? dvt_logical_and(is, causal) : is;
        scores = dvt_add(scores, dvt_clip(mask, -1e30, (double)INFINITY));
    }
    return *allowed ? dvt_where_scalar(*allowed, scores, -1e30) : scores;
}

static dvt_array *dvti_attention_of(dvt_array *q, dvt_array *k, dvt_array *v, dvt_array *mask,
                                    const dvti_attending *a, const dvt_attention_options *p) {
    /* the queries of the heads that share a key are the rows of one product */
    dvt_shape grouped = DVT_SHAPE(a->batch, a->groups, a->heads / a->groups * a->queries, a->size);
    dvt_shape scored = DVT_SHAPE(a->batch, a->heads, a->queries, a->keys);
    dvt_shape result = DVT_SHAPE(a->batch, a->heads, a->queries, a->values);
    dvt_array *causal = NULL, *allowed = NULL, *x;
    if (p->causal && a->queries != 1 && !(causal = dvti_attention_causal(a, dvt_ctx_of(q))))
        return NULL;
    x = dvt_mul_scalar(q, p->scale != 0 ? p->scale : 1 / sqrt((double)a->size));
    x = dvti_matmul("dvt_attention", dvt_reshape(x, grouped), k, false, true);
    x = dvti_attention_masked(dvt_reshape(x, scored), mask, causal, &allowed);
    x = dvt_dropout(dvt_softmax(x, -1), p->dropout);
    grouped.dim[3] = a->keys;
    x = dvti_matmul("dvt_attention", dvt_reshape(x, grouped), v, false, false);
    x = dvt_reshape(x, result);
    if (x && allowed && (mask || a->queries > a->keys))
        x = dvt_where_scalar(dvt_any(allowed, DVT_KEEPDIMS(-1)), x, 0);
    return x;
}

DVT_API dvt_array *dvt_attention(dvt_array *q, dvt_array *k, dvt_array *v, dvt_array *mask,
                                 const dvt_attention_options *options) {
    static const char name[] = "dvt_attention";
    static const char *const names[] = {"q", "k", "v", "mask"};
    dvt_attention_options p;
    dvti_attending a;
    dvt_array *in[4], *y;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = q;
    in[1] = k;
    in[2] = v;
    in[3] = mask;
    memset(&p, 0, sizeof p);
    if (options)
        p = *options;
    if (!dvti_optional(name, "mask", mask) || !dvti_check_named(name, in, mask ? 4 : 3, names) ||
        !dvti_attention_accepts(name, in, &a) || (mask && !dvti_attention_mask_ok(name, mask, &a)))
        return NULL;
    if (!(p.dropout >= 0 && p.dropout < 1) || !(p.scale - p.scale == 0)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: dropout is %g and scale %g; expected 0 <= dropout < 1 and a finite scale, "
                  "or 0 for 1 / sqrt(size)",
                  name, p.dropout, p.scale);
        return NULL;
    }
    dtype = dvti_float_dtype(dvt_promote(dvt_promote(q->dtype, k->dtype), v->dtype));
    scope = dvt_scope_begin();
    y = dvti_attention_of(dvti_wide_float(q), dvti_wide_float(k), dvti_wide_float(v), mask, &a, &p);
    y = y ? dvt_as_in_dtype(y, dtype) : NULL;
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}
