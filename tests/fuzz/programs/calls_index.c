/* Joining and indexing. Out-of-range indices are an error on a CPU, and clamped on a GPU. */
#include "programs.h"

static void finish(fuzz_world *w, dvt_array *y) {
    if (fuzz_ended(w, !y))
        fuzz_result(w, y);
}

static bool outside(const fuzz_object *indices, int64_t extent) {
    int64_t n = indices->x ? fuzz_size(&indices->view.shape) : 0, k;
    for (k = 0; k < n; k++) {
        double at = fuzz_number(*fuzz_at(&indices->view, k), indices->view.dtype);
        if (!(at >= (double)-extent && at < (double)extent))
            return true;
    }
    return false;
}

static int64_t extent_of(const fuzz_object *a, int axis) {
    int ndim = a->view.shape.ndim;
    axis += axis < 0 ? ndim : 0;
    return a->x && axis >= 0 && axis < ndim ? a->view.shape.dim[axis] : 0;
}

static void call_join(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *in[4];
    dvt_array *x[4];
    int n = fuzz_byte(w), i, axis, at, ndim = a->view.shape.ndim + op->rule;
    bool good = true;
    dvt_shape shape = a->view.shape;
    n = n >= 250 ? 250 - n : 1 + n % 4;
    in[0] = a;
    for (i = 1; i < 4; i++)
        in[i] = fuzz_pick_like(w, a, true);
    for (i = 0; i < 4; i++)
        x[i] = in[i]->x;
    axis = at = fuzz_axis(w, ndim);
    at += at < 0 ? ndim : 0;
    for (i = 0; i < n; i++)
        good &= x[i] && dvt_ctx_equal(a->view.ctx, in[i]->view.ctx);
    if (good && n > 0 && at >= 0 && at < ndim && op->rule == 0) {
        dvt_dtype dtype = a->view.dtype;
        int64_t extent = 0, inner = 1, outer = 1, o, k, to = 0;
        int d;
        for (i = 0; i < n; i++) {
            good &= in[i]->view.shape.ndim == ndim;
            for (d = 0; good && d < ndim; d++)
                good = d == at || in[i]->view.shape.dim[d] == shape.dim[d];
            extent += good ? in[i]->view.shape.dim[at] : 0;
            dtype = dvt_promote(dtype, in[i]->view.dtype);
        }
        if (!good)
            w->expect.code = DVT_ERR_SHAPE;
        else {
            shape.dim[at] = extent;
            w->expect.shape = shape;
            w->expect.dtype = dtype;
            w->expect.shape_known = w->expect.dtype_known = w->expect.must_work = true;
            w->expect.value =
                (fuzz_value *)malloc(((size_t)fuzz_size(&shape) + 1) * sizeof(fuzz_value));
            for (d = 0; d < at; d++)
                outer *= shape.dim[d];
            for (d = at + 1; d < ndim; d++)
                inner *= shape.dim[d];
            for (o = 0; o < outer; o++)
                for (i = 0; i < n; i++) {
                    int64_t run = in[i]->view.shape.dim[at] * inner;
                    for (k = 0; k < run; k++)
                        w->expect.value[to++] = fuzz_convert(*fuzz_at(&in[i]->view, o * run + k),
                                                             in[i]->view.dtype, dtype);
                }
        }
    }
    finish(w, op->rule ? dvt_stack(x, n, axis) : dvt_concat(x, n, axis));
}

enum { TAKE, TAKE_ALONG, PICK };

/* Creates indices of a valid shape and range. */
static void call_along(fuzz_world *w, int kind, fuzz_object *a, int axis, bool keepdims) {
    dvt_shape shape = a->view.shape;
    int64_t n, k, *host, extent = shape.dim[axis];
    uint8_t b = fuzz_byte(w);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *indices, *y;
    shape.dim[axis] = kind == PICK ? 1 : b % 4;
    n = fuzz_size(&shape);
    host = (int64_t *)calloc((size_t)n + 1, sizeof *host);
    for (k = 0; k < n; k++)
        host[k] = (k * 7 + b) % extent - (b & 64 ? extent : 0);
    indices = dvt_from_host(host, shape, DVT_I64, a->view.ctx);
    free(host);
    w->expect.code = DVT_OK;
    w->differs = false;
    y = dvt_keep(kind == PICK ? dvt_pick(a->x, indices,
                                         keepdims ? dvt_keepdims(DVT_AXES(axis)) : DVT_AXES(axis))
                              : dvt_take_along_axis(a->x, indices, axis));
    dvt_scope_end(&guard);
    finish(w, y);
}

static void call_take(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *b = fuzz_pick_dtype(w, a, fuzz_is_index);
    int axis = fuzz_axis(w, a->view.shape.ndim), at = axis, ndim = a->view.shape.ndim;
    bool keepdims = fuzz_byte(w) & 1, out = outside(b, extent_of(a, axis));
    if (a->x && b->x && fuzz_size(&a->view.shape) * (fuzz_size(&b->view.shape) + 1) > 200000)
        return;
    at += at < 0 ? ndim : 0;
    w->differs = out;
    fuzz_say(w, "    axis %d%s\n", axis, out ? ", out of range" : "");
    if (!a->x || !b->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (op->rule == TAKE && !out && at >= 0 && at < ndim &&
             dvt_ctx_equal(a->view.ctx, b->view.ctx) && fuzz_is_index(b->view.dtype) &&
             ndim - 1 + b->view.shape.ndim <= DVT_MAX_DIMS && extent_of(a, axis)) {
        fuzz_view v = a->view;
        int64_t n = fuzz_size(&b->view.shape), inner = 1, outer = 1, o, k, i, to = 0,
                extent = v.shape.dim[at];
        dvt_shape shape = DVT_SCALAR;
        int d;
        for (d = 0; d < at; d++)
            outer *= shape.dim[shape.ndim++] = v.shape.dim[d];
        for (d = 0; d < b->view.shape.ndim; d++)
            shape.dim[shape.ndim++] = b->view.shape.dim[d];
        for (d = at + 1; d < ndim; d++)
            inner *= shape.dim[shape.ndim++] = v.shape.dim[d];
        w->expect.shape = shape;
        w->expect.dtype = v.dtype;
        w->expect.shape_known = w->expect.dtype_known = w->expect.must_work = true;
        w->expect.value =
            (fuzz_value *)malloc(((size_t)fuzz_size(&shape) + 1) * sizeof(fuzz_value));
        for (o = 0; o < outer; o++)
            for (k = 0; k < n; k++) {
                int64_t j = fuzz_at(&b->view, k)->i;
                j += j < 0 ? extent : 0;
                for (i = 0; i < inner; i++)
                    w->expect.value[to++] = *fuzz_at(&v, (o * extent + j) * inner + i);
            }
    }
    if (op->rule != TAKE && a->x && b->x && at >= 0 && at < ndim && w->call->arg[0] % 4 &&
        extent_of(a, axis) && fuzz_size(&a->view.shape) < 3000) {
        call_along(w, op->rule, a, at, keepdims);
        return;
    }
    finish(w, op->rule == TAKE ? dvt_take(a->x, b->x, axis)
              : op->rule == TAKE_ALONG
                  ? dvt_take_along_axis(a->x, b->x, axis)
                  : dvt_pick(a->x, b->x, keepdims ? dvt_keepdims(DVT_AXES(axis)) : DVT_AXES(axis)));
}

/* Uses valid indices that are made here: take_along_axis(x, argsort(x)) is sort(x). */
static void call_along_sorted(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int axis = fuzz_axis(w, a->view.shape.ndim);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *order = dvt_argsort(a->x, axis, DVT_ASCENDING),
              *y = order ? dvt_take_along_axis(a->x, order, axis) : NULL;
    (void)op;
    dvt_keep(y);
    dvt_scope_end(&guard);
    finish(w, y);
}

static void call_one_hot(fuzz_world *w, const fuzz_op *op) {
    fuzz_object none = {NULL, {0}, 0, 0}, *a = fuzz_pick_dtype(w, &none, fuzz_is_index);
    int64_t depth = fuzz_int(w);
    dvt_dtype dtype = fuzz_dtype(w);
    (void)op;
    if (depth > 2000 && depth < (int64_t)1 << 36)
        return;
    if (a->x && fuzz_size(&a->view.shape) > 3000)
        return;
    if (a->x && fuzz_is_index(a->view.dtype) && a->view.shape.ndim < 8 && depth > 0 &&
        depth < 3000 && (int)dtype >= 0 && (int)dtype < DVT_DTYPE_COUNT) {
        int64_t n = fuzz_size(&a->view.shape), k, j;
        w->expect.shape = a->view.shape;
        w->expect.shape.dim[w->expect.shape.ndim++] = depth;
        w->expect.shape_known = w->expect.must_work = true;
        w->expect.value = (fuzz_value *)malloc((size_t)(n * depth + 1) * sizeof(fuzz_value));
        for (k = 0; k < n; k++)
            for (j = 0; j < depth; j++)
                w->expect.value[k * depth + j] =
                    fuzz_store(dtype, fuzz_at(&a->view, k)->i == j, fuzz_at(&a->view, k)->i == j);
    }
    finish(w, dvt_one_hot(a->x, depth, dtype));
}

const fuzz_op fuzz_ops_index[] = {
    {"concat", call_join, NULL, 12, 0, FUZZ_EXACT, 0},
    {"stack", call_join, NULL, 8, 1, FUZZ_EXACT, 0},
    {"take", call_take, NULL, 12, TAKE, FUZZ_EXACT, 0},
    {"take_along_axis", call_take, NULL, 10, TAKE_ALONG, FUZZ_EXACT, 0},
    {"pick", call_take, NULL, 8, PICK, FUZZ_EXACT, 0},
    {"take_along_sorted", call_along_sorted, NULL, 5, 0, FUZZ_EXACT, 0},
    {"one_hot", call_one_hot, NULL, 6, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
