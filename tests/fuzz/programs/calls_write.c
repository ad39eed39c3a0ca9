/* Writes into existing arrays: all views of the memory change, and nothing else. */
#include "programs.h"

static void refuse(fuzz_world *w, dvt_status code) {
    w->expect.code = code;
}

static bool may_write(fuzz_world *w, const fuzz_object *o) {
    if (o->view.repeats)
        return refuse(w, DVT_ERR_VALUE), false;
    if (dvt_is_recording() && dvt_has_history(o->x))
        return refuse(w, DVT_ERR_GRAD), false;
    return true;
}

static void call_fill(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    double value = fuzz_double(w);
    int64_t n = a->x ? fuzz_size(&a->view.shape) : 0, k;
    dvt_array *y;
    fuzz_value from;
    (void)op;
    from.d = value;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (n && may_write(w, a)) {
        w->expect.must_work = true;
        w->expect.value = fuzz_values(&a->view);
        for (k = 0; k < n; k++)
            w->expect.value[k] = fuzz_convert(from, DVT_F64, a->view.dtype);
    }
    y = dvt_fill(a->x, value);
    if (y && y != a->x)
        fuzz_fail(w, "returned another array");
    if (fuzz_ended(w, !y))
        fuzz_written(w, a);
}

static void call_copy_into(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *b = fuzz_pick_like(w, a, true);
    int64_t n = a->x ? fuzz_size(&a->view.shape) : 0, k;
    dvt_array *y;
    (void)op;
    if (!a->x || !b->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (a != b && dvt_shape_equal(a->view.shape, b->view.shape) && n && may_write(w, a)) {
        w->expect.value = fuzz_values(&b->view);
        for (k = 0; k < n; k++)
            w->expect.value[k] = fuzz_convert(w->expect.value[k], b->view.dtype, a->view.dtype);
        w->expect.must_work = !(dvt_is_recording() && dvt_has_history(b->x));
    }
    w->lenient = a == b;
    y = dvt_copy_into(a->x, b->x);
    if (y && y != a->x)
        fuzz_fail(w, "returned another array");
    if (fuzz_ended(w, !y))
        fuzz_written(w, a);
}

static void call_set_from_host(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    uint8_t b = fuzz_byte(w);
    int64_t n = a->x ? fuzz_size(&a->view.shape) : 0, k,
            bytes = n * (a->x ? dvt_dtype_size(a->view.dtype) : 0);
    void *host = calloc((size_t)n + 2, 8);
    dvt_status status;
    (void)op;
    if (b >= 250)
        bytes += b == 250 ? -bytes - 1 : b == 251 ? INT64_MAX - bytes : 1;
    if (!a->x)
        refuse(w, DVT_ERR_NULL_ARGUMENT);
    else if (b >= 250)
        refuse(w, DVT_ERR_RANGE);
    else if (n && may_write(w, a)) {
        w->expect.must_work = true;
        w->expect.value = fuzz_values(&a->view);
        for (k = 0; k < n; k++)
            w->expect.value[k] =
                fuzz_convert((fuzz_value){.d = (double)(k % 7) - (b & 3)}, DVT_F64, a->view.dtype);
        fuzz_encode(w->expect.value, a->view.dtype, n, host);
    }
    status = dvt_set_from_host(a->x, host, bytes);
    free(host);
    if (fuzz_ended(w, status != DVT_OK))
        fuzz_written(w, a);
}

const fuzz_op fuzz_ops_write[] = {
    {"fill", call_fill, NULL, 12, 0, FUZZ_EXACT, 0},
    {"copy_into", call_copy_into, NULL, 25, 0, FUZZ_EXACT, 0},
    {"set_from_host", call_set_from_host, NULL, 8, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
