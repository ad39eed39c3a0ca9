/* Reductions, orders along an axis, softmax, matrix products. */
#include "programs.h"
#include "../../matmul_forms.h"

enum { SUM, PROD, MEAN, MIN, MAX, ANY, ALL, NORM, LOGSUMEXP, VAR, STD, ARGMIN, ARGMAX };

static void finish(fuzz_world *w, dvt_array *y) {
    if (fuzz_ended(w, !y))
        fuzz_result(w, y);
}

static bool mask_of(dvt_axes axes, int ndim, unsigned *mask) {
    int i;
    *mask = axes.n == 0 ? (1u << ndim) - 1 : 0;
    if (axes.n < 0 || axes.n > DVT_MAX_DIMS)
        return false;
    for (i = 0; i < axes.n; i++) {
        int axis = axes.axis[i];
        if (axis < -ndim || axis >= ndim)
            return false;
        axis += axis < 0 ? ndim : 0;
        if (*mask & 1u << axis)
            return false;
        *mask |= 1u << axis;
    }
    return true;
}

/* Reduces the elements of a group to one value; returns false where the model has none. */
static bool reduce_group(int kind, const fuzz_view *view, const int64_t *at, int64_t n,
                         fuzz_value *out, double *scale) {
    bool is_integer = !dvt_dtype_is_float(view->dtype);
    double sum = 0, terms = 0;
    int64_t total = 0, best = 0, k;
    uint64_t product = 1;
    int logical = kind == ALL;
    for (k = 0; k < n; k++) {
        fuzz_value v = *fuzz_at(view, at[k]), b = *fuzz_at(view, at[best]);
        double d = fuzz_number(v, view->dtype);
        sum += d;
        terms += fabs(d);
        total = (int64_t)((uint64_t)total + (is_integer ? (uint64_t)v.i : 0));
        product *= is_integer ? (uint64_t)v.i : 1;
        logical = kind == ALL ? logical && d != 0 : logical || d != 0;
        if (is_integer ? (kind == MIN || kind == ARGMIN ? v.i < b.i : v.i > b.i)
                       : b.d == b.d && (v.d != v.d ||
                                        (kind == MIN || kind == ARGMIN ? v.d < b.d : v.d > b.d)))
            best = k;
    }
    *scale = terms > *scale || terms != terms ? (terms == terms ? terms : INFINITY) : *scale;
    switch (kind) {
    case SUM:
        *out = fuzz_store(is_integer ? DVT_I64 : view->dtype, sum, total);
        return true;
    case PROD:
        out->i = (int64_t)product;
        return is_integer;
    case MEAN:
        *out = fuzz_store(is_integer ? DVT_F32 : view->dtype, n ? sum / (double)n : NAN, 0);
        return true;
    case MIN:
    case MAX:
        *out = *fuzz_at(view, at[best]);
        if (!is_integer && out->d == 0)
            return false; /* either zero */
        return true;
    case ARGMIN:
    case ARGMAX:
        out->i = best;
        return true;
    case ANY:
    case ALL:
        out->i = logical;
        return true;
    default:
        return false;
    }
}

static void expect_reduced(fuzz_world *w, int kind, const fuzz_object *a, unsigned mask,
                           bool keepdims) {
    const fuzz_view *v = &a->view;
    int ndim = v->shape.ndim, i;
    int64_t n = fuzz_size(&v->shape), groups, count = 1, k, *at;
    dvt_shape kept = DVT_SCALAR, shape = DVT_SCALAR;
    bool is_integer = !dvt_dtype_is_float(v->dtype), known = true;
    for (i = 0; i < ndim; i++) {
        if (mask & 1u << i)
            count *= v->shape.dim[i];
        if (!(mask & 1u << i))
            kept.dim[kept.ndim++] = v->shape.dim[i];
        if (!(mask & 1u << i) || keepdims)
            shape.dim[shape.ndim++] = mask & 1u << i ? 1 : v->shape.dim[i];
    }
    w->expect.shape = shape;
    w->expect.shape_known = w->expect.dtype_known = true;
    w->expect.dtype = kind == ANY || kind == ALL                    ? DVT_BOOL
                      : kind == ARGMIN || kind == ARGMAX            ? DVT_I64
                      : kind == MIN || kind == MAX                  ? v->dtype
                      : is_integer && (kind == SUM || kind == PROD) ? DVT_I64
                      : is_integer                                  ? DVT_F32
                                                                    : v->dtype;
    w->expect.must_work = true;
    groups = fuzz_size(&kept);
    w->expect.scale = fuzz_largest(v) * (double)count;
    if (kind == VAR || kind == STD || kind == NORM)
        w->expect.scale = fuzz_largest(v) * fuzz_largest(v) * (double)(count + 1);
    if (kind == LOGSUMEXP)
        w->expect.scale = fuzz_largest(v) + log((double)count + 1) + 1;
    if (n > 3000 || groups > 3000)
        return;
    at = (int64_t *)malloc(((size_t)groups + 1) * ((size_t)count + 1) * sizeof *at);
    {
        int64_t *fill = (int64_t *)calloc((size_t)groups + 1, sizeof *fill);
        for (k = 0; k < n; k++) {
            int64_t rest = k, group = 0, step = 1;
            for (i = ndim - 1; i >= 0; i--) {
                if (!(mask & 1u << i)) {
                    group += rest % v->shape.dim[i] * step;
                    step *= v->shape.dim[i];
                }
                rest /= v->shape.dim[i];
            }
            at[group * count + fill[group]++] = k;
        }
        free(fill);
    }
    w->expect.value = (fuzz_value *)malloc(((size_t)groups + 1) * sizeof(fuzz_value));
    w->expect.scale = 0;
    for (k = 0; k < groups && known; k++)
        known = reduce_group(kind, v, at + k * count, count, &w->expect.value[k], &w->expect.scale);
    free(at);
    w->expect.slack = !is_integer && (kind == SUM || kind == MEAN) ? 4 : kind == MEAN ? 4 : 0;
    if (kind == SUM && !is_integer &&
        w->expect.scale > (v->dtype == DVT_F16   ? 6e4
                           : v->dtype == DVT_F64 ? 1e300
                                                 : 1e37))
        known = false;
    if (!known) {
        double scale = fuzz_largest(v) * (double)count;
        free(w->expect.value);
        w->expect.value = NULL;
        w->expect.scale = kind == VAR || kind == STD || kind == NORM
                              ? fuzz_largest(v) * fuzz_largest(v) * (double)(count + 1)
                          : kind == LOGSUMEXP ? fuzz_largest(v) + log((double)count + 1) + 1
                                              : scale;
    }
}

static void call_reduce(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_axes axes = fuzz_axes(w, a->view.shape.ndim);
    bool keepdims = fuzz_byte(w) & 1;
    double ddof = op->rule == VAR || op->rule == STD ? fuzz_double(w) : 0;
    unsigned mask = 0;
    int kind = op->rule, i;
    fuzz_say(w, "    %d axes %d %d keepdims %d\n", axes.n, axes.axis[0], axes.axis[1], keepdims);
    if (kind == ARGMIN || kind == ARGMAX) {
        axes.n = axes.n > 0;
        axes.axis[0] = fuzz_axis(w, a->view.shape.ndim);
    }
    axes.keepdims = keepdims;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (!mask_of(axes, a->view.shape.ndim, &mask))
        w->expect.code = DVT_ERR_AXIS;
    else if (ddof != ddof)
        w->expect.code = DVT_ERR_VALUE;
    else {
        bool empty = false;
        for (i = 0; i < a->view.shape.ndim; i++)
            empty |= mask & 1u << i && a->view.shape.dim[i] == 0;
        if (empty && (kind == MIN || kind == MAX || kind == ARGMIN || kind == ARGMAX))
            w->expect.code = DVT_ERR_SHAPE;
        else
            expect_reduced(w, kind, a, mask, keepdims);
    }
    if (kind == VAR || kind == STD)
        finish(w,
               ((dvt_array * (*)(dvt_array *, dvt_axes, double)) op->function)(a->x, axes, ddof));
    else
        finish(w, ((dvt_array * (*)(dvt_array *, dvt_axes)) op->function)(a->x, axes));
}

/* ---- along one axis ---- */
enum { CUMSUM, SORT, ARGSORT, TOPK, SOFTMAX, LOG_SOFTMAX };

/* Orders NaN as the largest value; the sorts are stable. */
static bool before(fuzz_value a, fuzz_value b, bool is_integer, bool descending) {
    if (is_integer)
        return descending ? a.i > b.i : a.i < b.i;
    if (a.d != a.d || b.d != b.d)
        return descending ? a.d != a.d && b.d == b.d : a.d == a.d && b.d != b.d;
    return descending ? a.d > b.d : a.d < b.d;
}

static void expect_line(fuzz_world *w, int kind, const fuzz_view *v, int axis, int64_t k,
                        bool descending, fuzz_value *positions) {
    int64_t n = fuzz_size(&v->shape), extent = v->shape.dim[axis], inner = 1, i, j, line;
    bool is_integer = !dvt_dtype_is_float(v->dtype);
    int64_t *order = (int64_t *)malloc(((size_t)extent + 1) * sizeof *order);
    for (i = axis + 1; i < v->shape.ndim; i++)
        inner *= v->shape.dim[i];
    w->expect.value = (fuzz_value *)malloc(((size_t)n + 1) * sizeof(fuzz_value));
    for (line = 0; line < (extent ? n / extent : 0); line++) {
        int64_t from = line / inner * inner * extent + line % inner,
                to = line / inner * inner * k + line % inner, total = 0;
        double sum = 0, terms = 0;
        for (i = 0; i < extent; i++) {
            fuzz_value x = *fuzz_at(v, from + i * inner);
            if (kind == CUMSUM) {
                total = (int64_t)((uint64_t)total + (uint64_t)x.i);
                sum += x.d;
                terms += is_integer ? 0 : fabs(x.d);
                w->expect.value[to + i * inner] =
                    fuzz_store(is_integer ? DVT_I64 : v->dtype, sum, total);
                continue;
            }
            for (j = i; j > 0 &&
                        before(x, *fuzz_at(v, from + order[j - 1] * inner), is_integer, descending);
                 j--)
                order[j] = order[j - 1];
            order[j] = i;
        }
        if (!(terms <= w->expect.scale))
            w->expect.scale = terms == terms ? terms : INFINITY;
        for (i = 0; kind != CUMSUM && i < k; i++) {
            fuzz_value at;
            at.i = order[i];
            w->expect.value[to + i * inner] =
                kind == ARGSORT ? at : *fuzz_at(v, from + order[i] * inner);
            if (positions)
                positions[to + i * inner] = at;
        }
    }
    free(order);
}

static void call_along(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int kind = op->rule, ndim = a->view.shape.ndim, axis = fuzz_axis(w, ndim), at = axis;
    uint8_t b = fuzz_byte(w);
    bool descending = b & 1;
    int64_t k = fuzz_int(w), extent;
    dvt_array *y, *indices = NULL;
    fuzz_value *positions = NULL;
    bool is_integer = !dvt_dtype_is_float(a->view.dtype), small;
    at += at < 0 ? ndim : 0;
    fuzz_say(w, "    axis %d descending %d k %lld\n", axis, descending, (long long)k);
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (axis < -ndim || axis >= ndim)
        w->expect.code = DVT_ERR_AXIS;
    else {
        extent = a->view.shape.dim[at];
        if (kind != TOPK)
            k = extent;
        else if (b & 2 && extent)
            k = (k % extent + extent) % extent;
        if (k < 0 || k > extent)
            w->expect.code = DVT_ERR_RANGE;
        else {
            small = fuzz_size(&a->view.shape) <= 3000;
            w->expect.shape = a->view.shape;
            w->expect.shape.dim[at] = k;
            w->expect.dtype = kind == ARGSORT                 ? DVT_I64
                              : kind == CUMSUM && is_integer  ? DVT_I64
                              : kind >= SOFTMAX && is_integer ? DVT_F32
                                                              : a->view.dtype;
            w->expect.shape_known = w->expect.dtype_known = w->expect.must_work = true;
            w->expect.scale =
                kind >= SOFTMAX ? fuzz_largest(&a->view) * (kind == LOG_SOFTMAX) + 20 : 0;
            if (kind < SOFTMAX && small) {
                positions = kind == TOPK
                                ? (fuzz_value *)calloc((size_t)fuzz_size(&a->view.shape) + 1,
                                                       sizeof *positions)
                                : NULL;
                expect_line(w, kind, &a->view, at, k, kind == TOPK ? descending : descending,
                            positions);
                w->expect.slack = kind == CUMSUM && !is_integer ? 4 : 0;
                if (kind == CUMSUM && !is_integer &&
                    w->expect.scale > (a->view.dtype == DVT_F16   ? 6e4
                                       : a->view.dtype == DVT_F64 ? 1e300
                                                                  : 1e37))
                    w->expect.scale = INFINITY;
            } else if (kind == CUMSUM)
                w->expect.scale = fuzz_largest(&a->view) * (double)extent;
        }
    }
    y = kind == CUMSUM    ? dvt_cumsum(a->x, axis)
        : kind == SORT    ? dvt_sort(a->x, axis, descending ? DVT_DESCENDING : DVT_ASCENDING)
        : kind == ARGSORT ? dvt_argsort(a->x, axis, descending ? DVT_DESCENDING : DVT_ASCENDING)
        : kind == TOPK    ? dvt_topk(a->x, k, axis, descending ? DVT_LARGEST : DVT_SMALLEST,
                                  b & 4 ? &indices : NULL)
        : kind == SOFTMAX ? dvt_softmax(a->x, axis)
                          : dvt_log_softmax(a->x, axis);
    if (!fuzz_ended(w, !y)) {
        free(positions);
        return;
    }
    if (indices) {
        fuzz_value *values = w->expect.value;
        dvt_dtype dtype = w->expect.dtype;
        w->expect.value = positions;
        w->expect.dtype = DVT_I64;
        fuzz_result(w, indices);
        w->expect.value = values;
        w->expect.dtype = dtype;
    } else
        free(positions);
    fuzz_result(w, y);
}

/* ---- matrix products ---- */
enum { MATMUL, MATMUL_T, MATMUL_AS, MATMUL_INTO, DOT, LINEAR };

static bool fits_product(fuzz_world *w, fuzz_object *a, fuzz_object **b) {
    int s, start = fuzz_byte(w);
    for (s = 0; a->x && a->view.shape.ndim && start < 250 && s < FUZZ_SLOTS; s++) {
        int slot = w->slot[(start + s) % FUZZ_SLOTS];
        fuzz_object *o = slot < 0 ? NULL : &w->object[slot];
        if (o && o->view.shape.ndim && dvt_ctx_equal(a->view.ctx, o->view.ctx) &&
            (start & 16 || o->view.dtype == a->view.dtype) &&
            a->view.shape.dim[a->view.shape.ndim - 1] ==
                o->view.shape.dim[o->view.shape.ndim > 1 ? o->view.shape.ndim - 2 : 0]) {
            *b = o;
            return true;
        }
    }
    *b = fuzz_pick_like(w, a, false);
    return false;
}

/* Calls with a destination of the product's shape, which must get the product's bits. */
static void product_into(fuzz_world *w, fuzz_object *a, fuzz_object *b, int bits) {
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *y = matmul_t(a->x, b->x, bits & 1, bits & 2), *into = y ? dvt_ones_like(y) : NULL,
              *same = NULL;
    if (into && bits & 8)
        into = dvt_t(dvt_copy(dvt_t(into)));
    if (into && matmul_into(into, a->x, b->x, bits & 1, bits & 2) &&
        dvt_dtype_is_float(dvt_dtype_of(y)))
        same = dvt_all(dvt_logical_or(dvt_equal(into, y), dvt_isnan(y)), DVT_ALL);
    w->lenient = same == NULL;
    if (same && dvt_item(same) == 0)
        fuzz_fail(w, "a product that is written differs from a new one");
    dvt_scope_end(&guard);
    fuzz_ended(w, dvt_error_code() != DVT_OK);
}

static void call_linear(fuzz_world *w, fuzz_object *a, fuzz_object *b, int bits) {
    dvt_scope_guard guard = dvt_scope_begin();
    int64_t depth = a->view.shape.ndim ? a->view.shape.dim[a->view.shape.ndim - 1] : 1;
    dvt_array *weight = b->x, *bias = NULL, *y;
    if (a->x && bits % 8 && depth < 5000 && dvt_dtype_is_float(a->view.dtype)) {
        weight = fuzz_make(DVT_SHAPE(1 + bits % 5, depth), a->view.dtype, a->view.ctx, bits);
        if (bits & 16)
            bias = fuzz_make(DVT_SHAPE(1 + bits % 5), a->view.dtype, a->view.ctx, bits);
        w->expect.scale = fuzz_largest(&a->view) * 2 * (double)(depth + 1);
        w->expect.code = DVT_OK;
        if (bits & 32 && weight && dvt_attach_grad(weight, DVT_GRAD_WRITE) != DVT_OK)
            weight = NULL;
    }
    y = dvt_keep(dvt_linear(a->x, weight, bias));
    dvt_scope_end(&guard);
    finish(w, y);
}

static void call_product(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *b, *c = NULL;
    uint8_t bits;
    dvt_dtype dtype;
    dvt_array *y;
    double depth;
    fits_product(w, a, &b);
    bits = fuzz_byte(w);
    dtype = fuzz_dtype(w);
    if (a->x && b->x && (double)fuzz_size(&a->view.shape) * (double)fuzz_size(&b->view.shape) > 3e6)
        return;
    depth = a->x ? (double)fuzz_size(&a->view.shape) + 1 : 1;
    if (a->x && b->x) {
        w->expect.scale = fuzz_largest(&a->view) * fuzz_largest(&b->view) * depth;
        if (w->expect.scale != w->expect.scale)
            w->expect.scale = INFINITY;
    }
    if (!a->x || !b->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (!dvt_ctx_equal(a->view.ctx, b->view.ctx))
        w->expect.code = op->rule == MATMUL_AS && dtype == DVT_BOOL ? DVT_OK : DVT_ERR_CONTEXT;
    if (op->rule == MATMUL_AS && ((int)dtype < 0 || (int)dtype >= DVT_DTYPE_COUNT))
        w->expect.code = w->expect.code ? DVT_OK : DVT_ERR_DTYPE;
    switch (op->rule) {
    case MATMUL:
        y = dvt_matmul(a->x, b->x);
        break;
    case MATMUL_T:
        y = matmul_t(a->x, b->x, bits & 1, bits & 2);
        break;
    case MATMUL_AS:
        y = matmul_as(a->x, b->x, dtype);
        break;
    case DOT:
        y = dvt_dot(a->x, b->x);
        break;
    case LINEAR:
        call_linear(w, a, b, bits);
        return;
    default:
        if (bits & 4) {
            product_into(w, a, b, bits);
            return;
        }
        c = fuzz_pick(w);
        w->expect.code = DVT_OK;
        y = matmul_into(c->x, a->x, b->x, bits & 1, bits & 2);
        if (fuzz_ended(w, !y))
            fuzz_written(w, c);
        return;
    }
    finish(w, y);
}

#define REDUCE(name, kind, bound, tolerance)                                                       \
    {#name, call_reduce, FUZZ_FN(dvt_##name), 6, kind, bound, tolerance},
const fuzz_op fuzz_ops_reduce[] = {
    REDUCE(sum, SUM, FUZZ_SCALED, 8) REDUCE(prod, PROD, FUZZ_SHAPE_ONLY, 0) REDUCE(
        mean, MEAN, FUZZ_SCALED, 8) REDUCE(min, MIN, FUZZ_EXACT, 0) REDUCE(max, MAX, FUZZ_EXACT, 0)
        REDUCE(any, ANY, FUZZ_EXACT, 0) REDUCE(all, ALL, FUZZ_EXACT, 0)
            REDUCE(norm, NORM, FUZZ_SHAPE_ONLY, 0) REDUCE(logsumexp, LOGSUMEXP, FUZZ_SCALED, 16)
                REDUCE(var, VAR, FUZZ_SHAPE_ONLY, 0) REDUCE(std, STD, FUZZ_SHAPE_ONLY, 0)
                    REDUCE(argmin, ARGMIN, FUZZ_EXACT, 0) REDUCE(argmax, ARGMAX, FUZZ_EXACT, 0){
                        "cumsum", call_along, NULL, 5, CUMSUM, FUZZ_SCALED, 8},
    {"sort", call_along, NULL, 5, SORT, FUZZ_EXACT, 0},
    {"argsort", call_along, NULL, 5, ARGSORT, FUZZ_EXACT, 0},
    {"topk", call_along, NULL, 8, TOPK, FUZZ_EXACT, 0},
    {"softmax", call_along, NULL, 6, SOFTMAX, FUZZ_SCALED, 16},
    {"log_softmax", call_along, NULL, 6, LOG_SOFTMAX, FUZZ_SCALED, 16},
    {"matmul", call_product, NULL, 14, MATMUL, FUZZ_SCALED, 16},
    {"matmul_t", call_product, NULL, 8, MATMUL_T, FUZZ_SCALED, 16},
    {"matmul_as", call_product, NULL, 6, MATMUL_AS, FUZZ_SCALED, 16},
    {"matmul_into", call_product, NULL, 6, MATMUL_INTO, FUZZ_SCALED, 16},
    {"dot", call_product, NULL, 6, DOT, FUZZ_SCALED, 16},
    {"linear", call_product, NULL, 8, LINEAR, FUZZ_SCALED, 16},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
