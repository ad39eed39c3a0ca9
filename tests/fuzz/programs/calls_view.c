/* Views and copies: the model predicts strides, aliasing and values of all of them. */
#include "programs.h"

static bool axis_good(int *axis, int ndim) {
    if (*axis < -ndim || *axis >= ndim)
        return false;
    *axis += *axis < 0 ? ndim : 0;
    return true;
}

static void expect_view(fuzz_world *w, fuzz_view view) {
    w->expect.view = view;
    w->expect.shape = view.shape;
    w->expect.dtype = view.dtype;
    w->expect.ctx = view.ctx;
    w->expect.shape_known = w->expect.dtype_known = w->expect.ctx_known = w->expect.must_work =
        true;
}

static void refuse(fuzz_world *w, dvt_status code) {
    w->expect.code = code;
}

static void finish(fuzz_world *w, dvt_array *y) {
    if (fuzz_ended(w, !y))
        fuzz_result(w, y);
}

/* ---- slices ---- */
static int64_t bound(int64_t at, int64_t extent, int64_t low, int64_t high) {
    if (at < 0)
        at = at < -extent ? low : at + extent;
    return at < low ? low : at > high ? high : at;
}

static bool slice_view(fuzz_view *v, int axis, int64_t start, int64_t stop, int64_t step) {
    int64_t extent, n = 0, i;
    if (!axis_good(&axis, v->shape.ndim))
        return false;
    extent = v->shape.dim[axis];
    start = step > 0 ? bound(start, extent, 0, extent) : bound(start, extent, -1, extent - 1);
    if (stop == DVT_END)
        stop = step > 0 ? extent : -1;
    else
        stop = step > 0 ? bound(stop, extent, 0, extent) : bound(stop, extent, -1, extent - 1);
    for (i = start; step > 0 ? i < stop : i > stop; i += step) {
        n++;
        if (step > extent || step < -extent)
            break;
    }
    if (n)
        v->offset += start * v->stride[axis];
    v->shape.dim[axis] = n;
    if (n > 1)
        v->stride[axis] *= step;
    return true;
}

static void call_slice(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int axis = op->rule ? 0 : fuzz_axis(w, a->view.shape.ndim);
    int64_t start = fuzz_int(w), stop = fuzz_int(w), step = op->rule ? 1 : fuzz_int(w);
    fuzz_view v = a->view;
    uint8_t b = fuzz_byte(w);
    if (b < 60)
        start = b & 1 ? 0 : -1;
    if (b % 3 == 0)
        stop = DVT_END;
    if (b & 4 && !op->rule)
        step = b & 8 ? -1 : b & 16 ? 2 : 1;
    fuzz_say(w, "    axis %d, %lld:%lld:%lld\n", axis, (long long)start, (long long)stop,
             (long long)step);
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (op->rule && a->view.shape.ndim == 0)
        refuse(w, DVT_ERR_SHAPE);
    else if (axis < -v.shape.ndim || axis >= v.shape.ndim)
        refuse(w, DVT_ERR_AXIS);
    else if (step == 0 || step == INT64_MIN)
        refuse(w, DVT_ERR_VALUE);
    else if (slice_view(&v, axis, start, stop, step))
        expect_view(w, v);
    finish(w, op->rule ? dvt_rows(a->x, start, stop) : dvt_slice(a->x, axis, start, stop, step));
}

static void call_index(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int64_t i = fuzz_int(w);
    fuzz_view v = a->view;
    (void)op;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (v.shape.ndim == 0)
        refuse(w, DVT_ERR_SHAPE);
    else {
        int64_t extent = v.shape.dim[0];
        if (fuzz_byte(w) & 3)
            i = extent ? i % extent : i;
        if (i < -extent || i >= extent)
            refuse(w, DVT_ERR_RANGE);
        else {
            v.offset += (i < 0 ? i + extent : i) * v.stride[0];
            v.shape.ndim--;
            memmove(v.shape.dim, v.shape.dim + 1, 7 * sizeof v.shape.dim[0]);
            memmove(v.stride, v.stride + 1, 7 * sizeof v.stride[0]);
            expect_view(w, v);
        }
    }
    finish(w, dvt_index(a->x, i));
}

/* ---- orders of axes ---- */
static void call_transpose(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    fuzz_view v = a->view;
    int n = v.shape.ndim, i, axis1 = fuzz_axis(w, n), axis2 = fuzz_axis(w, n);
    uint8_t b = fuzz_byte(w);
    dvt_axes order = DVT_ALL;
    bool good = true;
    int use[DVT_MAX_DIMS];
    for (i = 0; i < n; i++)
        use[i] = op->rule == 0 ? n - 1 - i : i;
    if (op->rule == 1) {
        unsigned seen = 0;
        if (b >= 250)
            order = fuzz_axes(w, n);
        else if (n)
            for (order.n = n, i = 0; i < n; i++)
                order.axis[i] = (b & 1 ? i + b / 2 : 2 * n - 1 - i + b / 2) % n - (b & 64 ? n : 0);
        if (order.n == 0)
            for (i = 0; i < n; i++)
                use[i] = n - 1 - i;
        else if (order.n != n)
            good = false;
        for (i = 0; good && i < order.n; i++) {
            use[i] = order.axis[i];
            good = axis_good(&use[i], n) && !(seen & 1u << use[i]);
            seen |= good ? 1u << use[i] : 0;
        }
    } else if (op->rule == 2) {
        int p = axis1, q = axis2;
        good = axis_good(&p, n) && axis_good(&q, n);
        if (good) {
            use[p] = q;
            use[q] = p;
        }
    }
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (!good || (op->rule == 0 && n > 2))
        refuse(w, good ? DVT_ERR_SHAPE : DVT_ERR_AXIS);
    else {
        for (i = 0; i < n; i++) {
            v.shape.dim[i] = a->view.shape.dim[use[i]];
            v.stride[i] = a->view.stride[use[i]];
        }
        expect_view(w, v);
    }
    finish(w, op->rule == 0   ? dvt_t(a->x)
              : op->rule == 1 ? dvt_transpose(a->x, order)
                              : dvt_swapaxes(a->x, axis1, axis2));
}

/* ---- reshape ---- */
/* Reshapes to a view when some strides address the same elements in the same order. Searches by
   brute force, innermost extent first. */
static bool reshape_view(const fuzz_view *from, fuzz_view *to) {
    int64_t n = fuzz_size(&to->shape), k, step = 1;
    int i;
    to->offset = from->offset;
    for (i = to->shape.ndim - 1; i >= 0; i--) {
        to->stride[i] = 0;
        if (to->shape.dim[i] > 1)
            to->stride[i] = fuzz_at(from, step) - fuzz_at(from, 0);
        step *= to->shape.dim[i];
    }
    for (k = 0; k < n; k++)
        if (fuzz_at(from, k) != fuzz_at(to, k))
            return false;
    return true;
}

static void call_reshape(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    fuzz_view v = a->view;
    dvt_shape shape = v.shape, wanted;
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    int64_t n = a->x ? fuzz_size(&v.shape) : 0;
    int i;
    if (op->rule == 1)
        wanted = shape.ndim ? DVT_SHAPE(shape.dim[0], shape.dim[0] ? n / shape.dim[0] : 0)
                            : DVT_SHAPE(1, 1);
    else if (b < 40)
        wanted = DVT_SHAPE(n);
    else if (b < 80)
        wanted = DVT_SHAPE(1, n);
    else if (b >= 245)
        wanted = fuzz_shape(w);
    else {
        int64_t rest = n;
        wanted = DVT_SCALAR;
        for (i = 0; i < 1 + b % 4; i++) {
            int64_t part = 2 + (c >> i) % 5;
            wanted.dim[i] = rest && rest % part == 0 ? part : 1;
            rest /= wanted.dim[i];
        }
        wanted.dim[i] = rest;
        wanted.ndim = i + 1;
    }
    shape = wanted;
    if (op->rule == 0 && c % 5 == 0 && b < 245 && n)
        shape.dim[c % 7 % (shape.ndim ? shape.ndim : 1)] = -1;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (op->rule == 1 && v.shape.ndim && n == 0)
        w->expect.must_work = true;
    else if (b < 245 || op->rule == 1) {
        v.shape = wanted;
        w->expect.copies = n && !reshape_view(&a->view, &v);
        expect_view(w, w->expect.copies ? a->view : v);
        w->expect.shape = wanted;
        if (n == 0) {
            w->expect.view = a->view;
            w->expect.view.shape = wanted;
        }
    }
    if (op->rule == 1 && v.shape.ndim && n == 0) {
        dvt_array *y = dvt_flatten(a->x);
        w->expect.view = a->view;
        w->expect.view.shape = y ? dvt_shape_of(y) : v.shape;
        finish(w, y);
        return;
    }
    if (w->expect.copies)
        w->expect.value = fuzz_values(&a->view);
    if (b >= 245 && op->rule == 0) {
        dvt_array *y = dvt_reshape(a->x, shape);
        if (!fuzz_ended(w, !y))
            return;
        v.shape = dvt_shape_of(y);
        if (fuzz_size(&v.shape) != n)
            fuzz_fail(w, "made another number of elements");
        else if (n == 0) {
            w->expect.view = v;
            fuzz_result(w, y);
        }
        return;
    }
    finish(w, op->rule ? dvt_flatten(a->x) : dvt_reshape(a->x, shape));
}

static void call_expand(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    fuzz_view v = a->view;
    int n = v.shape.ndim, axis = fuzz_axis(w, n + 1), at = axis, i;
    (void)op;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (n == DVT_MAX_DIMS)
        refuse(w, DVT_ERR_SHAPE);
    else if (!axis_good(&at, n + 1))
        refuse(w, DVT_ERR_AXIS);
    else {
        for (i = n; i > at; i--) {
            v.shape.dim[i] = v.shape.dim[i - 1];
            v.stride[i] = v.stride[i - 1];
        }
        v.shape.dim[at] = 1;
        v.stride[at] = 1;
        v.shape.ndim = n + 1;
        expect_view(w, v);
    }
    finish(w, dvt_expand_dims(a->x, axis));
}

static void call_squeeze(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    fuzz_view v = a->view;
    int n = v.shape.ndim, i, to = 0, bad = 0;
    dvt_axes axes = fuzz_axes(w, n);
    unsigned mask = 0;
    (void)op;
    if (axes.n < 0 || axes.n > DVT_MAX_DIMS)
        bad = DVT_ERR_AXIS;
    for (i = 0; !bad && i < axes.n; i++) {
        int axis = axes.axis[i];
        if (!axis_good(&axis, n) || mask & 1u << axis)
            bad = DVT_ERR_AXIS;
        else
            mask |= 1u << axis;
    }
    for (i = 0; !bad && i < n; i++)
        if (mask & 1u << i && v.shape.dim[i] != 1)
            bad = DVT_ERR_SHAPE;
    for (i = 0; i < n; i++)
        if (v.shape.dim[i] != 1 || (axes.n && !(mask & 1u << i))) {
            v.shape.dim[to] = v.shape.dim[i];
            v.stride[to++] = v.stride[i];
        }
    v.shape.ndim = to;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (bad)
        refuse(w, (dvt_status)bad);
    else
        expect_view(w, v);
    finish(w, dvt_squeeze(a->x, axes));
}

static void call_broadcast(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *b = fuzz_pick_like(w, a, false);
    dvt_shape shape = b->x ? b->view.shape : DVT_SCALAR, common;
    uint8_t c = fuzz_byte(w);
    (void)op;
    if (c < 128 && a->x && a->view.shape.ndim < 7) {
        int i;
        shape = a->view.shape;
        for (i = shape.ndim; c & 1 && i > 0; i--)
            shape.dim[i] = shape.dim[i - 1];
        if (c & 1) {
            shape.ndim++;
            shape.dim[0] = c >> 1 & 3;
        }
        for (i = 0; i < shape.ndim; i++)
            if (shape.dim[i] == 1 && fuzz_size(&shape) < 2000)
                shape.dim[i] = 1 + (c >> 3 & 3);
    } else if (c >= 250)
        shape = fuzz_shape(w);
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (c < 250 && fuzz_broadcast(&a->view.shape, &shape, &common) &&
             dvt_shape_equal(common, shape))
        expect_view(w, fuzz_broadcast_view(&a->view, &shape));
    else if (c < 250)
        refuse(w, DVT_ERR_SHAPE);
    if (c >= 250) {
        dvt_array *y = dvt_broadcast_to(a->x, shape);
        fuzz_ended(w, !y);
        return;
    }
    finish(w, dvt_broadcast_to(a->x, shape));
}

/* ---- shared memory and shared objects ---- */
static void call_same(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_array *y;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else {
        expect_view(w, a->view);
        w->expect.copies = op->rule == 1 || (op->rule == 2 && !fuzz_is_c_order(&a->view));
    }
    y = op->rule == 0 ? dvt_detach(a->x) : op->rule == 1 ? dvt_copy(a->x) : dvt_contiguous(a->x);
    if (y && y == a->x && op->rule != 2)
        fuzz_fail(w, "returned its argument");
    finish(w, y);
}

static void call_to_ctx(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_ctx ctx = fuzz_ctx(w);
    bool odd = ctx.type > DVT_DEVICE_GPU ||
               (ctx.type == DVT_DEVICE_GPU && (ctx.id < 0 || ctx.id > 1)) ||
               (ctx.type == DVT_DEVICE_CPU && ctx.id < 0);
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (odd)
        refuse(w, DVT_ERR_NO_DEVICE);
    else {
        expect_view(w, a->view);
        w->expect.ctx = ctx.type == DVT_DEVICE_DEFAULT ? dvt_default_ctx() : ctx;
        w->expect.copies = op->rule == 0 || !dvt_ctx_equal(w->expect.ctx, a->view.ctx);
    }
    finish(w, op->rule ? dvt_as_in_ctx(a->x, ctx) : dvt_copyto(a->x, ctx));
}

static void call_astype(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_dtype dtype = fuzz_dtype(w);
    bool copy = fuzz_byte(w) & 1;
    int64_t n, k;
    (void)op;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if ((int)dtype < 0 || (int)dtype >= DVT_DTYPE_COUNT)
        refuse(w, DVT_ERR_DTYPE);
    else {
        expect_view(w, a->view);
        w->expect.dtype = dtype;
        w->expect.copies = copy || dtype != a->view.dtype;
        if (w->expect.copies) {
            w->expect.value = fuzz_values(&a->view);
            n = fuzz_size(&a->view.shape);
            for (k = 0; k < n; k++)
                w->expect.value[k] = fuzz_convert(w->expect.value[k], a->view.dtype, dtype);
        }
    }
    finish(w, copy ? dvt_astype(a->x, dtype) : dvt_as_in_dtype(a->x, dtype));
}

static void call_split(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int n = fuzz_byte(w), axis = fuzz_axis(w, a->view.shape.ndim), at = axis, i,
        which = fuzz_byte(w);
    bool even = which & 1;
    dvt_array *out[8] = {NULL};
    dvt_status status;
    (void)op;
    n = n >= 250 ? 250 - n : 1 + n % 5;
    status = even ? dvt_split(a->x, n, axis, out) : dvt_array_split(a->x, n, axis, out);
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (n < 1)
        refuse(w, DVT_ERR_RANGE);
    else if (!axis_good(&at, a->view.shape.ndim))
        refuse(w, DVT_ERR_AXIS);
    else if (even && a->view.shape.dim[at] % n)
        refuse(w, DVT_ERR_SHAPE);
    else {
        fuzz_view v = a->view;
        int64_t extent = v.shape.dim[at], start = 0;
        i = which / 2 % n;
        for (int k = 0; k <= i; k++) {
            int64_t part = extent / n + (k < extent % n);
            v.shape.dim[at] = part;
            if (part && start < extent)
                v.offset = a->view.offset + start * v.stride[at];
            start += part;
        }
        expect_view(w, v);
        if (fuzz_ended(w, status != DVT_OK))
            fuzz_result(w, out[i]);
        return;
    }
    fuzz_ended(w, status != DVT_OK);
}

const fuzz_op fuzz_ops_view[] = {
    {"slice", call_slice, NULL, 30, 0, FUZZ_EXACT, 0},
    {"rows", call_slice, NULL, 6, 1, FUZZ_EXACT, 0},
    {"index", call_index, NULL, 10, 0, FUZZ_EXACT, 0},
    {"t", call_transpose, NULL, 10, 0, FUZZ_EXACT, 0},
    {"transpose", call_transpose, NULL, 10, 1, FUZZ_EXACT, 0},
    {"swapaxes", call_transpose, NULL, 6, 2, FUZZ_EXACT, 0},
    {"reshape", call_reshape, NULL, 25, 0, FUZZ_EXACT, 0},
    {"flatten", call_reshape, NULL, 5, 1, FUZZ_EXACT, 0},
    {"expand_dims", call_expand, NULL, 8, 0, FUZZ_EXACT, 0},
    {"squeeze", call_squeeze, NULL, 8, 0, FUZZ_EXACT, 0},
    {"broadcast_to", call_broadcast, NULL, 15, 0, FUZZ_EXACT, 0},
    {"detach", call_same, NULL, 8, 0, FUZZ_EXACT, 0},
    {"copy", call_same, NULL, 8, 1, FUZZ_EXACT, 0},
    {"contiguous", call_same, NULL, 6, 2, FUZZ_EXACT, 0},
    {"copyto", call_to_ctx, NULL, 8, 0, FUZZ_EXACT, 0},
    {"as_in_ctx", call_to_ctx, NULL, 8, 1, FUZZ_EXACT, 0},
    {"astype", call_astype, NULL, 16, 0, FUZZ_EXACT, 0},
    {"split", call_split, NULL, 8, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
