/* Scopes, owners, contexts, reading single values, threads, memory. */
#include "programs.h"

static void call_scope(fuzz_world *w, const fuzz_op *op) {
    (void)op;
    if (w->scopes == FUZZ_GUARDS)
        return;
    w->scope[w->scopes++] = dvt_scope_begin();
    fuzz_ended(w, false);
}

static void call_scope_end(fuzz_world *w, const fuzz_op *op) {
    (void)op;
    if (!w->scopes)
        return;
    fuzz_scope_ended(w);
    dvt_scope_end(&w->scope[--w->scopes]);
    fuzz_ended(w, false);
}

static void call_keep(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    (void)op;
    if (dvt_keep(a->x) != a->x)
        fuzz_fail(w, "returned another array");
    if (a->x && w->scopes && a->depth == w->scopes)
        a->depth--;
    fuzz_ended(w, false);
}

static void call_retain(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    (void)op;
    if (dvt_retain(a->x) != a->x)
        fuzz_fail(w, "returned another array");
    if (a->x)
        a->retains++;
    fuzz_ended(w, false);
}

static void call_release(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    (void)op;
    if (a->x && a->retains) {
        dvt_release(a->x);
        a->retains--;
    } else {
        dvt_discard(a->x);
        a->depth = -1;
    }
    if (a->x && !a->retains && a->depth < 0)
        fuzz_forget(w, a);
    fuzz_ended(w, false);
}

static void call_with_ctx(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    (void)op;
    if (w->contexts == FUZZ_GUARDS)
        return;
    w->context[w->contexts++] = dvt_ctx_scope_begin(fuzz_place(w, b % 3));
    fuzz_ended(w, false);
}

static void call_with_ctx_end(fuzz_world *w, const fuzz_op *op) {
    (void)op;
    if (w->contexts <= 1)
        return;
    dvt_ctx_scope_end(&w->context[--w->contexts]);
    fuzz_ended(w, false);
}

static void call_item(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    double d = 0;
    int64_t n = a->x ? fuzz_size(&a->view.shape) : 0, i = 0, k = 0;
    dvt_shape index = a->view.shape;
    uint8_t b = fuzz_byte(w);
    fuzz_value v;
    int j;
    bool in_range = n > 0;
    v.i = 0;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (op->rule < 2 && n != 1)
        w->expect.code = DVT_ERR_SHAPE;
    else if (op->rule < 2)
        w->expect.must_work = true;
    if (op->rule == 2) {
        for (j = 0; j < index.ndim; j++) {
            int64_t extent = index.dim[j], at = extent ? (b + j) % extent : 0;
            k = k * extent + at;
            index.dim[j] = b & 64 ? at - extent : at;
            if (b >= 240 && j == index.ndim - 1) {
                index.dim[j] = fuzz_int(w);
                in_range = false;
            }
        }
        if (b == 239) {
            index.ndim++;
            in_range = false;
        }
        w->expect.must_work = in_range;
    }
    if (op->rule == 0)
        d = dvt_item(a->x);
    else if (op->rule == 1)
        i = dvt_item_int(a->x);
    else
        d = dvt_item_at(a->x, index);
    if (!fuzz_ended(w, dvt_error_code() != DVT_OK) || (op->rule == 2 && !in_range))
        return;
    v = *fuzz_at(&a->view, op->rule == 2 ? k : 0);
    if (op->rule == 1 && (dvt_dtype_is_float(a->view.dtype) ? false : i != v.i))
        fuzz_fail(w, "is %lld", (long long)i);
    if (op->rule != 1 && d != fuzz_number(v, a->view.dtype) && !(d != d))
        fuzz_fail(w, "is %g", d);
}

static void call_dim(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    int ndim = a->view.shape.ndim, axis = fuzz_axis(w, ndim);
    int64_t extent = op->rule ? dvt_stride(a->x, axis) : dvt_dim(a->x, axis);
    bool good = a->x && axis >= -ndim && axis < ndim;
    if (a->x)
        w->expect.code = good ? DVT_OK : DVT_ERR_AXIS;
    w->expect.must_work = good;
    if (fuzz_ended(w, dvt_error_code() != DVT_OK) && good && !op->rule &&
        extent != a->view.shape.dim[axis + (axis < 0 ? ndim : 0)])
        fuzz_fail(w, "is %lld", (long long)extent);
}

static void call_data(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    void *data = dvt_data(a->x);
    (void)op;
    w->differs = true;
    w->lenient = a->x && fuzz_size(&a->view.shape) == 0;
    if (a->x && a->view.ctx.type == DVT_DEVICE_GPU) {
        if (dvt_error_code() != DVT_ERR_CONTEXT)
            fuzz_fail(w, "gives no CONTEXT on a GPU");
        dvt_clear_error();
        data = a;
    }
    fuzz_ended(w, !data);
}

static void call_mark_written(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_status status = dvt_mark_written(a->x);
    (void)op;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    fuzz_ended(w, status != DVT_OK);
}

static void call_wait(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    uint8_t b = fuzz_byte(w);
    dvt_status status = DVT_OK;
    (void)op;
    if (b < 80)
        status = dvt_wait(a->x);
    else if (b < 120)
        status = dvt_wait_all();
    else if (b < 160)
        dvt_trim_memory(fuzz_place(w, b % 3));
    else
        dvt_set_num_threads(w->config->threads > 1 ? 1 + b % w->config->threads : 1);
    fuzz_ended(w, status != DVT_OK);
}

const fuzz_op fuzz_ops_life[] = {
    {"scope", call_scope, NULL, 14, 0, FUZZ_EXACT, 0},
    {"scope_end", call_scope_end, NULL, 9, 0, FUZZ_EXACT, 0},
    {"keep", call_keep, NULL, 12, 0, FUZZ_EXACT, 0},
    {"retain", call_retain, NULL, 8, 0, FUZZ_EXACT, 0},
    {"release", call_release, NULL, 10, 0, FUZZ_EXACT, 0},
    {"with_ctx", call_with_ctx, NULL, 4, 0, FUZZ_EXACT, 0},
    {"with_ctx_end", call_with_ctx_end, NULL, 4, 0, FUZZ_EXACT, 0},
    {"item", call_item, NULL, 4, 0, FUZZ_EXACT, 0},
    {"item_int", call_item, NULL, 2, 1, FUZZ_EXACT, 0},
    {"item_at", call_item, NULL, 5, 2, FUZZ_EXACT, 0},
    {"dim", call_dim, NULL, 3, 0, FUZZ_EXACT, 0},
    {"stride", call_dim, NULL, 2, 1, FUZZ_EXACT, 0},
    {"data", call_data, NULL, 2, 0, FUZZ_EXACT, 0},
    {"mark_written", call_mark_written, NULL, 4, 0, FUZZ_EXACT, 0},
    {"wait", call_wait, NULL, 6, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
