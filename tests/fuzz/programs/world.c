/* A world: runs one program. Checks after every call its result, and that nothing else changed. */
#include "programs.h"
#include <stdarg.h>

int fuzz_verbose;
int64_t fuzz_op_calls[512], fuzz_op_worked[512];

void fuzz_fail(fuzz_world *w, const char *format, ...) {
    va_list list;
    int n;
    if (w->failed)
        return;
    w->failed = true;
    n = snprintf(w->why, sizeof w->why, "[%s] call %d %s: ", w->config->name, w->number,
                 w->op ? w->op->name : "end");
    va_start(list, format);
    vsnprintf(w->why + n, sizeof w->why - (size_t)n, format, list);
    va_end(list);
}

void fuzz_say(fuzz_world *w, const char *format, ...) {
    va_list list;
    if (!fuzz_verbose || w->config->compare != FUZZ_RECORD)
        return;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

/* ---- the trace ---- */
static fuzz_item *next_item(fuzz_world *w, fuzz_kind kind) {
    fuzz_trace *t = w->trace;
    fuzz_item *item;
    if (w->config->compare != FUZZ_RECORD) {
        item = w->at < t->n ? &t->item[w->at++] : NULL;
        if (!item || item->kind != kind || item->call != w->number) {
            fuzz_fail(w, "does something else than in the first world");
            return NULL;
        }
        return item;
    }
    if (t->n == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->item = (fuzz_item *)realloc(t->item, (size_t)t->capacity * sizeof *t->item);
    }
    item = &t->item[t->n++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    item->call = w->number;
    return item;
}

static void record_values(fuzz_trace *t, fuzz_item *item, const fuzz_value *v, int64_t n) {
    if (t->n_values + n > t->capacity_values) {
        t->capacity_values = 2 * (t->n_values + n) + 1024;
        t->value = (fuzz_value *)realloc(t->value, (size_t)t->capacity_values * sizeof *t->value);
    }
    item->at = t->n_values;
    item->n = n;
    if (n)
        memcpy(t->value + t->n_values, v, (size_t)n * sizeof *v);
    t->n_values += n;
}

void fuzz_text(fuzz_world *w, const char *text) {
    fuzz_item *item;
    uint64_t hash = 14695981039346656037u;
    const char *c;
    if (w->free_running)
        return;
    for (c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    item = next_item(w, FUZZ_TEXT);
    if (!item)
        return;
    if (w->config->compare == FUZZ_RECORD)
        item->hash = hash;
    else if (item->hash != hash)
        fuzz_fail(w, "another text or number than in the first world: %.200s", text);
}

void fuzz_number_item(fuzz_world *w, double value) {
    char text[40];
    if (w->config->compare == FUZZ_NEAR || w->free_running) {
        if (!w->free_running)
            next_item(w, FUZZ_TEXT);
        return;
    }
    snprintf(text, sizeof text, value != value ? "nan" : "%.17g", value);
    fuzz_text(w, text);
}

/* ---- values ---- */
static bool read_array(fuzz_world *w, dvt_array *x, fuzz_value *out) {
    int64_t bytes = dvt_nbytes(x);
    void *host = malloc((size_t)bytes + 8);
    dvt_status status;
    fuzz_pause_faults(true);
    fuzz_lift_limits(w, true);
    status = dvt_to_host(x, host, bytes);
    fuzz_lift_limits(w, false);
    fuzz_pause_faults(false);
    if (status != DVT_OK) {
        fuzz_fail(w, "cannot be read: %s", dvt_error());
        dvt_clear_error();
    } else
        fuzz_decode(host, dvt_dtype_of(x), dvt_size(x), out);
    free(host);
    return status == DVT_OK;
}

/* Writes directly into the memory, so versions and history stay. */
static void write_array(fuzz_world *w, dvt_array *x, const fuzz_value *v) {
    dvt_shape shape = dvt_shape_of(x);
    int64_t n = dvt_size(x), k, size = dvt_dtype_size(dvt_dtype_of(x));
    char *data = (char *)dvt_data(x);
    if (!data && n) {
        fuzz_fail(w, "dvt_data: %s", dvt_error());
        return;
    }
    for (k = 0; k < n; k++) {
        int64_t at = 0, rest = k;
        int i;
        for (i = shape.ndim - 1; i >= 0; i--) {
            at += rest % shape.dim[i] * dvt_stride(x, i);
            rest /= shape.dim[i];
        }
        fuzz_encode(v + k, dvt_dtype_of(x), 1, data + at * size);
    }
}

static bool is_near(const fuzz_world *w, double a, double b, dvt_dtype dtype) {
    double unit = fuzz_epsilon(dtype), scale = fabs(a) > fabs(b) ? fabs(a) : fabs(b), tiny;
    if (!strncmp(w->op->name, "gelu", 4))
        scale *= 500; /* its tail: see docs/OPERATIONS.md */
    if (a == b || (a != a && b != b) || w->op->bound == FUZZ_SHAPE_ONLY)
        return true;
    tiny = dtype == DVT_F64 ? 1e-307 : dtype == DVT_F16 ? 6.2e-5 : 2.4e-38;
    if (w->op->bound == FUZZ_SCALED) {
        scale = w->expect.scale;
        if (!(scale < (dtype == DVT_F64 ? 1e300 : dtype == DVT_F16 ? 3e4 : 1e37)))
            return true; /* worlds differ in where partial sums overflow */
    } else if (w->op->bound == FUZZ_EXACT)
        return false;
    if (isinf(a) != isinf(b) && w->op->bound == FUZZ_ULPS)
        return scale > 0 && fmin(fabs(a), fabs(b)) > (dtype == DVT_F64   ? 1.79e308
                                                      : dtype == DVT_F16 ? 65000
                                                                         : 3.38e38);
    return fabs(a - b) <= w->op->tolerance * unit * (scale + tiny);
}

static bool reading_gradient;

/* Compares relative to the gradient's largest element. */
static bool is_near_gradient(const fuzz_world *w, const fuzz_value *a, const fuzz_value *b,
                             int64_t n, int64_t k, dvt_dtype dtype) {
    double most = 0;
    int64_t i;
    if (w->wild || (dtype != DVT_F32 && dtype != DVT_F64))
        return true;
    for (i = 0; i < n; i++)
        most = fabs(a[i].d) > most ? fabs(a[i].d) : !(fabs(b[i].d) < 1e6) ? INFINITY : most;
    return !(most < 1e6) ||
           fabs(a[k].d - b[k].d) <= (most + 1e-3) * (dtype == DVT_F32 ? 1e-3 : 1e-9);
}

/* Checks new values of an array against the model and the trace. Returns the values that the model
   continues with; the caller frees them. */
static fuzz_value *settle(fuzz_world *w, dvt_array *x, bool lazily) {
    dvt_dtype dtype = dvt_dtype_of(x);
    dvt_shape shape = dvt_shape_of(x);
    int64_t n = dvt_size(x), k;
    fuzz_value *v = (fuzz_value *)calloc((size_t)n + 1, sizeof *v);
    fuzz_item *item = w->free_running ? NULL : next_item(w, FUZZ_ARRAY);
    const fuzz_value *expected =
        item && w->config->compare != FUZZ_RECORD ? w->trace->value + item->at : NULL;
    if (w->failed)
        return v;
    if (expected &&
        (item->n != n || item->dtype != dtype || !dvt_shape_equal(item->shape, shape))) {
        fuzz_fail(w, "another shape or dtype than in the first world");
        return v;
    }
    if (expected && lazily && w->config->gpu) {
        if (n)
            memcpy(v, expected, (size_t)n * sizeof *v);
        return v;
    }
    if (!read_array(w, x, v))
        return v;
    if (w->expect.value)
        for (k = 0; k < n; k++) {
            double want = fuzz_number(w->expect.value[k], dtype), got = fuzz_number(v[k], dtype);
            bool good = w->expect.slack == 0
                            ? fuzz_same(w->expect.value[k], v[k], dtype)
                            : want == got || (want != want && got != got) ||
                                  !(w->expect.scale < INFINITY) ||
                                  fabs(want - got) <= w->expect.slack * fuzz_epsilon(dtype) *
                                                              (w->expect.scale + fabs(want)) +
                                                          (dtype == DVT_F16 ? 6e-8 : 1e-40);
            if (!good) {
                fuzz_fail(w, "element %lld is %.17g; the model has %.17g (scale %g)", (long long)k,
                          got, want, w->expect.scale);
                return v;
            }
        }
    for (k = 0; k < n; k++)
        w->wild |= !(fabs(fuzz_number(v[k], dtype)) < 100);
    if (!item)
        return v;
    if (!expected) {
        item->dtype = dtype;
        item->shape = shape;
        record_values(w->trace, item, v, n);
        return v;
    }
    for (k = 0; k < n; k++) {
        bool near = w->config->compare == FUZZ_NEAR && dvt_dtype_is_float(dtype)
                        ? is_near(w, v[k].d, expected[k].d, dtype)
                        : fuzz_same(v[k], expected[k], dtype) ||
                              (w->config->compare == FUZZ_NEAR && w->op->bound == FUZZ_SHAPE_ONLY);
        if (reading_gradient && w->config->compare == FUZZ_NEAR)
            near = is_near_gradient(w, v, expected, n, k, dtype);
        if (!near) {
            fuzz_fail(w, "element %lld of %lld is %.17g, and %.17g in the first world",
                      (long long)k, (long long)n, fuzz_number(v[k], dtype),
                      fuzz_number(expected[k], dtype));
            return v;
        }
    }
    if (w->config->compare == FUZZ_NEAR) {
        write_array(w, x, expected);
        memcpy(v, expected, (size_t)n * sizeof *v);
    }
    return v;
}

/* ---- objects ---- */
void fuzz_forget(fuzz_world *w, fuzz_object *o) {
    int s, i = (int)(o - w->object);
    for (s = 0; s < FUZZ_SLOTS; s++)
        if (w->slot[s] == i)
            w->slot[s] = -1;
    fuzz_drop_view(&o->view);
    memset(o, 0, sizeof *o);
}

static void sweep(fuzz_world *w) {
    int i, s;
    for (i = 0; i < FUZZ_OBJECTS; i++) {
        fuzz_object *o = &w->object[i];
        for (s = 0; s < FUZZ_SLOTS && w->slot[s] != i; s++)
            continue;
        if (!o->x || s < FUZZ_SLOTS)
            continue;
        for (; o->retains; o->retains--)
            dvt_release(o->x);
        fuzz_forget(w, o);
    }
}

fuzz_object *fuzz_adopt(fuzz_world *w, dvt_array *x, int depth, int retains) {
    int i;
    for (i = 0; i < FUZZ_OBJECTS; i++)
        if (w->object[i].x == x)
            return &w->object[i];
    for (i = 0; w->object[i].x;)
        if (++i == FUZZ_OBJECTS)
            abort();
    w->object[i].x = x;
    w->object[i].depth = depth;
    w->object[i].retains = retains;
    return &w->object[i];
}

void fuzz_scope_ended(fuzz_world *w) {
    int i;
    for (i = 0; i < FUZZ_OBJECTS; i++) {
        fuzz_object *o = &w->object[i];
        if (!o->x || o->depth < w->scopes)
            continue;
        o->depth = -1;
        if (!o->retains)
            fuzz_forget(w, o);
    }
}

/* ---- the end of a call ---- */
static bool is_memory(dvt_status code) {
    return code == DVT_ERR_HOST_MEMORY || code == DVT_ERR_DEVICE_MEMORY;
}

bool fuzz_ended(fuzz_world *w, bool failed) {
    dvt_status code = dvt_error_code();
    fuzz_item *item;
    const char *say = dvt_error();
    w->calls++;
    if (w->expect.shape_known && fuzz_size(&w->expect.shape) > 1000000)
        w->expect.must_work = false;
    w->worked += code == DVT_OK;
    if (w->config->compare == FUZZ_RECORD) {
        int n;
        const fuzz_op *ops = fuzz_ops(&n);
        fuzz_op_calls[w->op - ops]++;
        fuzz_op_worked[w->op - ops] += code == DVT_OK && !failed;
    }
    fuzz_say(w, "    -> %s %s\n", dvt_status_name(code), say);
    if (code == DVT_OK && failed && !w->lenient)
        fuzz_fail(w, "failed without an error");
    if (code != DVT_OK && !failed)
        fuzz_fail(w, "succeeded and left an error: %s", say);
    if (code == DVT_ERR_INTERNAL ||
        (code != DVT_OK && (strncmp(say, "dvt_", 4) || strlen(say) < 20)))
        fuzz_fail(w, "code %d with the message: %s", (int)code, say);
    if (code != DVT_OK && w->expect.must_work &&
        !(is_memory(code) && w->config->compare == FUZZ_ALONE))
        fuzz_fail(w, "failed, but the model does not: %s", say);
    if (w->expect.code != DVT_OK && code != w->expect.code &&
        !(is_memory(code) && w->config->compare == FUZZ_ALONE))
        fuzz_fail(w, "gives %s, expected %s: %s", dvt_status_name(code),
                  dvt_status_name(w->expect.code), say);
    dvt_clear_error();
    if (w->failed)
        return false;
    if (w->free_running)
        return code == DVT_OK && !failed;
    item = next_item(w, FUZZ_CODE);
    if (!item)
        return false;
    if (w->config->compare == FUZZ_RECORD)
        item->code = (int)code;
    else if (item->code != (int)code) {
        if (w->config->gpu && w->differs && code == DVT_OK)
            return false;
        if (w->config->compare == FUZZ_ALONE && is_memory(code))
            w->free_running = true;
        else
            fuzz_fail(w, "gives %s (%s), and %s in the first world", dvt_status_name(code), say,
                      dvt_status_name((dvt_status)item->code));
    }
    return code == DVT_OK && !failed && !w->failed;
}

static void check_view(fuzz_world *w, dvt_array *y, const fuzz_view *view) {
    int i;
    if (fuzz_size(&view->shape) == 0)
        return;
    for (i = 0; i < view->shape.ndim; i++)
        if (view->shape.dim[i] > 1 && dvt_stride(y, i) != view->stride[i])
            fuzz_fail(w, "stride %d is %lld; the model has %lld", i, (long long)dvt_stride(y, i),
                      (long long)view->stride[i]);
    if (dvt_is_contiguous(y) != fuzz_is_c_order(view))
        fuzz_fail(w, "dvt_is_contiguous is wrong");
}

static bool shares_known(fuzz_world *w, dvt_array *y) {
    int i;
    for (i = 0; i < FUZZ_OBJECTS; i++)
        if (w->object[i].x && dvt_size(y) > 0 && dvt_shares_memory(w->object[i].x, y))
            return true;
    return false;
}

void fuzz_result(fuzz_world *w, dvt_array *y) {
    fuzz_expectation *e = &w->expect;
    fuzz_object *o;
    fuzz_view view;
    fuzz_value *v;
    dvt_shape shape = dvt_shape_of(y);
    int target = fuzz_byte(w) % FUZZ_SLOTS;
    fuzz_say(w, "    slot %d = %s", target, dvt_dtype_name(dvt_dtype_of(y)));
    for (int i = 0; i < shape.ndim; i++)
        fuzz_say(w, " %lld", (long long)shape.dim[i]);
    fuzz_say(w, " %s%s\n", dvt_ctx_name(dvt_ctx_of(y)), dvt_has_history(y) ? " recorded" : "");
    if (e->shape_known && !dvt_shape_equal(e->shape, shape))
        fuzz_fail(w, "another shape than the model's");
    if (e->dtype_known && dvt_dtype_of(y) != e->dtype)
        fuzz_fail(w, "is %s, expected %s", dvt_dtype_name(dvt_dtype_of(y)),
                  dvt_dtype_name(e->dtype));
    if (e->ctx_known && !dvt_ctx_equal(dvt_ctx_of(y), e->ctx))
        fuzz_fail(w, "is on %s, expected %s", dvt_ctx_name(dvt_ctx_of(y)), dvt_ctx_name(e->ctx));
    o = fuzz_adopt(w, y, w->scopes, 0);
    if (!o->view.buffer && !w->failed) {
        bool shares;
        fuzz_object known = *o;
        o->x = NULL;
        shares = shares_known(w, y);
        *o = known;
        if (e->view.buffer && !e->copies) {
            view = fuzz_share(&e->view);
            if (!shares && fuzz_size(&shape))
                fuzz_fail(w, "is no view, but the model's is");
            check_view(w, y, &view);
        } else {
            if (shares)
                fuzz_fail(w, "shares memory with another array");
            if (e->view.buffer && !e->value)
                e->value = fuzz_values(&e->view);
            v = settle(w, y, true);
            view = fuzz_new_view(shape, dvt_dtype_of(y), dvt_ctx_of(y));
            memcpy(view.buffer->v, v, (size_t)view.buffer->n * sizeof *v);
            free(v);
            check_view(w, y, &view);
        }
        o->view = view;
    } else if (e->view.buffer && o->view.buffer != e->view.buffer && !e->copies)
        fuzz_fail(w, "is another known array");
    free(e->value);
    e->value = NULL;
    w->slot[target] = (int)(o - w->object);
    sweep(w);
}

void fuzz_written(fuzz_world *w, fuzz_object *o) {
    fuzz_value *v = settle(w, o->x, true);
    int64_t n = fuzz_size(&o->view.shape), k;
    for (k = 0; k < n && !w->failed; k++)
        *fuzz_at(&o->view, k) = v[k];
    free(v);
    free(w->expect.value);
    w->expect.value = NULL;
}

void fuzz_look(fuzz_world *w, dvt_array *x) {
    free(settle(w, x, false));
}

/* Reads what backward may have written: a gradient in a slot, whose array may be gone, and views of
   it. */
static void read_again(fuzz_world *w, fuzz_object *o) {
    int64_t n = fuzz_size(&o->view.shape), k;
    fuzz_value *v = (fuzz_value *)calloc((size_t)n + 1, sizeof *v);
    if (read_array(w, o->x, v))
        for (k = 0; k < n; k++)
            *fuzz_at(&o->view, k) = v[k];
    free(v);
}

void fuzz_gradients(fuzz_world *w) {
    int i;
    reading_gradient = true;
    for (i = 0; i < FUZZ_OBJECTS && !w->failed; i++) {
        fuzz_object *o = &w->object[i];
        dvt_array *g = o->x ? dvt_grad(o->x) : NULL;
        dvt_clear_error();
        if (!g)
            continue;
        if (!dvt_shape_equal(dvt_shape_of(g), o->view.shape) || dvt_dtype_of(g) != o->view.dtype ||
            !dvt_ctx_equal(dvt_ctx_of(g), o->view.ctx))
            fuzz_fail(w, "a gradient has another shape, dtype or context than its array");
        free(settle(w, g, false));
    }
    for (i = 0; i < FUZZ_OBJECTS && !w->failed; i++)
        if (w->object[i].x && w->object[i].view.buffer->gradient) {
            free(settle(w, w->object[i].x, false));
            if (!w->failed)
                read_again(w, &w->object[i]);
        }
    reading_gradient = false;
}

void fuzz_verify(fuzz_world *w) {
    int i;
    for (i = 0; i < FUZZ_OBJECTS && !w->failed; i++) {
        fuzz_object *o = &w->object[i];
        int64_t n, k;
        fuzz_value *v;
        if (!o->x)
            continue;
        if (!dvt_shape_equal(dvt_shape_of(o->x), o->view.shape) ||
            dvt_dtype_of(o->x) != o->view.dtype) {
            fuzz_fail(w, "changed the shape or dtype of an array");
            return;
        }
        n = fuzz_size(&o->view.shape);
        v = (fuzz_value *)malloc(((size_t)n + 1) * sizeof *v);
        if (read_array(w, o->x, v))
            for (k = 0; k < n && !w->failed; k++)
                if (!fuzz_same(v[k], *fuzz_at(&o->view, k), o->view.dtype))
                    fuzz_fail(w, "object %d, element %lld of %lld is %.17g; it should be %.17g", i,
                              (long long)k, (long long)n, fuzz_number(v[k], o->view.dtype),
                              fuzz_number(*fuzz_at(&o->view, k), o->view.dtype));
        free(v);
    }
}
