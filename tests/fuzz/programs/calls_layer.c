/* Convolution, pooling, layers as functions, losses. Weights are made here, mostly of valid
   shapes. */
#include "programs.h"

dvt_array *fuzz_make(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx, int seed) {
    int64_t n = dvt_shape_size(shape), k;
    fuzz_value *v = (fuzz_value *)malloc(((size_t)n + 1) * sizeof *v), from;
    void *host = calloc((size_t)n + 1, 8);
    dvt_array *y;
    for (k = 0; k < n; k++) {
        from.d = (double)((k * 7 + seed * 5) % 11 - 5) / 4;
        v[k] = fuzz_convert(from, DVT_F64, dtype);
    }
    fuzz_encode(v, dtype, n, host);
    y = dvt_from_host(host, shape, dtype, ctx);
    free(host);
    free(v);
    return y;
}

dvt_array *fuzz_with_axes(fuzz_world *w, const fuzz_object *a, int n) {
    uint8_t b = fuzz_byte(w);
    dvt_shape shape = DVT_SCALAR;
    int64_t rest;
    int i;
    if (!a->x || a->view.shape.ndim == n || b >= 250)
        return a->x;
    rest = fuzz_size(&a->view.shape);
    shape.ndim = n;
    for (i = 0; i < n - 1; i++) {
        int64_t part = 1 + (b >> 2 * i & 3);
        shape.dim[i] = rest && rest % part == 0 ? part : 1;
        rest /= shape.dim[i];
    }
    if (n == 4 && rest % 4 == 0 && rest) {
        shape.dim[2] *= 4;
        rest /= 4;
    }
    shape.dim[n - 1] = rest;
    return dvt_reshape(a->x, shape);
}

/* Ends the scope of intermediate arrays, and the call. */
static void finish(fuzz_world *w, dvt_scope_guard *guard, dvt_array *y, bool store) {
    int i;
    bool known = false;
    for (i = 0; i < FUZZ_OBJECTS; i++)
        known |= y && w->object[i].x == y;
    if (!known)
        dvt_keep(y);
    dvt_scope_end(guard);
    if (fuzz_ended(w, !y) && store)
        fuzz_result(w, y);
}

static int odd_int(fuzz_world *w, int usual) {
    static const int odd[] = {-1, INT32_MAX, INT32_MIN, 1000, 7, 65536};
    uint8_t b = fuzz_byte(w);
    return b >= 250 ? odd[b - 250] : b % usual;
}

static void call_conv(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *x = fuzz_with_axes(w, a, 4), *weight = NULL, *bias = NULL, *y;
    dvt_conv2d_options p;
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    dvt_shape shape = dvt_shape_of(x);
    dvt_dtype dtype = dvt_dtype_of(x);
    int64_t channels = shape.ndim > 1 ? shape.dim[1] : 1, kernel = 1 + (b & 3) % 3,
            kernel2 = c & 64 ? 1 + (b >> 2 & 1) : kernel;
    (void)op;
    memset(&p, 0, sizeof p);
    p.groups = b & 16 && channels > 0 ? (int)channels : 0;
    p.stride[0] = odd_int(w, 3);
    p.padding[0] = odd_int(w, 3);
    p.padding[1] = p.padding[0];
    p.dilation[0] = odd_int(w, 3);
    if (c & 1)
        p.stride[1] = odd_int(w, 3);
    if (c >= 240)
        p.groups = odd_int(w, 5);
    if (x) {
        dvt_ctx ctx = dvt_ctx_of(x);
        int64_t outs = p.groups > 1 && p.groups < 100 ? p.groups * (1 + (c & 1)) : 1 + (b >> 5);
        int64_t ins = p.groups > 1 && p.groups < 100 ? channels / p.groups : channels;
        weight = fuzz_make(DVT_SHAPE(outs, ins > 0 ? ins : 1, kernel, kernel2), dtype, ctx, b);
        if (c & 2)
            bias = fuzz_make(DVT_SHAPE(outs), dtype, ctx, c);
        if (weight && c & 8 && dvt_attach_grad(weight, DVT_GRAD_WRITE) != DVT_OK)
            weight = NULL;
    }
    w->expect.scale = fuzz_largest(&a->view) * 2 * (double)(channels * 9 + 1) + 4;
    y = dvt_conv2d(x, weight, bias, c & 4 && x ? NULL : &p);
    finish(w, &guard, y, true);
}

enum { MAX_POOL, AVG_POOL };

static void call_pool(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *x = fuzz_with_axes(w, a, 4), *y;
    dvt_pool2d_options p;
    uint8_t b = fuzz_byte(w);
    memset(&p, 0, sizeof p);
    p.size[0] = 1 + odd_int(w, 3) % 1000;
    p.size[1] = b & 1 ? odd_int(w, 4) : 0;
    p.stride[0] = odd_int(w, 3);
    p.padding[0] = b & 2 ? odd_int(w, 2) : 0;
    p.padding[1] = p.padding[0];
    p.ceil_mode = b & 4;
    p.exclude_padding = b & 8;
    p.global = b >= 230;
    w->expect.scale = fuzz_largest(&a->view) * 9;
    y = op->rule == MAX_POOL ? dvt_max_pool2d(x, &p) : dvt_avg_pool2d(x, b == 200 ? NULL : &p);
    finish(w, &guard, y, true);
}

static void call_dropout(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    uint8_t b = fuzz_byte(w);
    double p = b >= 230 ? fuzz_double(w) : (b % 8) * 0.125;
    dvt_array *y;
    (void)op;
    y = dvt_dropout(a->x, p);
    if (!fuzz_ended(w, !y))
        return;
    if (y == a->x) {
        w->expect.view = a->view;
        fuzz_result(w, y);
    } else if (!dvt_shape_equal(dvt_shape_of(y), a->view.shape))
        fuzz_fail(w, "another shape");
}

static void call_batch_norm(fuzz_world *w, const fuzz_op *op) {
    fuzz_object none = {NULL, {0}, 0, 0}, *a = fuzz_pick_dtype(w, &none, fuzz_is_float);
    dvt_scope_guard guard = dvt_scope_begin();
    uint8_t b = fuzz_byte(w);
    int ndim = a->view.shape.ndim, axis = fuzz_axis(w, ndim), at = axis + (axis < 0 ? ndim : 0), k;
    double momentum = b < 200 ? 0.9 : fuzz_double(w), epsilon = b < 220 ? 1e-3 : fuzz_double(w);
    dvt_array *part[4] = {NULL, NULL, NULL, NULL}, *y;
    (void)op;
    for (k = 0; a->x && k < 4; k++) {
        int64_t n = at >= 0 && at < ndim ? a->view.shape.dim[at] : 2;
        dvt_dtype dtype = dvt_dtype_is_float(a->view.dtype) ? a->view.dtype : DVT_F32;
        part[k] = k == 3 ? dvt_ones(DVT_SHAPE(b >= 250 ? n + 1 : n), dtype, a->view.ctx)
                         : fuzz_make(DVT_SHAPE(n), dtype, a->view.ctx, k);
    }
    if (part[0] && b & 4 && dvt_attach_grad(part[0], DVT_GRAD_WRITE) != DVT_OK)
        part[2] = NULL;
    y = dvt_batch_norm(a->x, b >= 240 ? NULL : part[0], b >= 230 && b < 240 ? NULL : part[1],
                       part[2], b == 128 ? NULL : part[3], axis, momentum, epsilon);
    finish(w, &guard, y, true);
}

static void call_layer_norm(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    dvt_scope_guard guard = dvt_scope_begin();
    uint8_t b = fuzz_byte(w);
    int ndim = a->view.shape.ndim;
    dvt_array *gamma = NULL, *beta = NULL, *y;
    double epsilon = b & 1 ? 1e-5 : fuzz_double(w);
    dvt_dtype dtype = dvt_dtype_is_float(a->view.dtype) ? a->view.dtype : DVT_F32;
    (void)op;
    if (a->x && b & 2)
        gamma = fuzz_make(DVT_SHAPE(ndim ? a->view.shape.dim[ndim - 1] : 1), dtype, a->view.ctx, 2);
    if (a->x && b & 4)
        beta = fuzz_make(DVT_SHAPE((ndim ? a->view.shape.dim[ndim - 1] : 1) + (b >= 250)), dtype,
                         a->view.ctx, 4);
    if (gamma && b & 8 && dvt_attach_grad(gamma, DVT_GRAD_WRITE) != DVT_OK)
        gamma = NULL;
    y = dvt_layer_norm(a->x, gamma, beta, epsilon);
    finish(w, &guard, y, true);
}

enum { SOFTMAX_CE, L1, L2, BCE, HUBER };

static void call_loss(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w), *b;
    uint8_t bits = fuzz_byte(w);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *label, *y;
    double rho = op->rule == HUBER ? fuzz_double(w) : 1;
    if (op->rule == SOFTMAX_CE && bits & 1 && a->x && a->view.shape.ndim) {
        dvt_shape shape = a->view.shape;
        int64_t n, k, classes = shape.dim[--shape.ndim];
        int64_t *host;
        n = fuzz_size(&shape);
        host = (int64_t *)calloc((size_t)n + 1, sizeof *host);
        for (k = 0; k < n; k++)
            host[k] = classes ? (k * 5 + bits) % classes : 0;
        if (n && bits >= 224) {
            host[n - 1] = bits & 2 ? -1 : classes;
            w->differs = true;
        }
        if (classes == 0)
            w->differs = true;
        label = dvt_from_host(host, shape, DVT_I64, a->view.ctx);
        free(host);
    } else {
        b = fuzz_pick_like(w, a, true);
        label = b->x;
        w->differs = op->rule == SOFTMAX_CE;
    }
    y = op->rule == SOFTMAX_CE ? dvt_loss_softmax_cross_entropy(a->x, label)
        : op->rule == L1       ? dvt_loss_l1(a->x, label)
        : op->rule == L2       ? dvt_loss_l2(a->x, label)
        : op->rule == BCE      ? dvt_loss_sigmoid_bce(a->x, label)
                               : dvt_loss_huber(a->x, label, rho);
    finish(w, &guard, y, true);
}

const fuzz_op fuzz_ops_layer[] = {
    {"conv2d", call_conv, NULL, 16, 0, FUZZ_SCALED, 32},
    {"max_pool2d", call_pool, NULL, 8, MAX_POOL, FUZZ_EXACT, 0},
    {"avg_pool2d", call_pool, NULL, 8, AVG_POOL, FUZZ_SCALED, 8},
    {"dropout", call_dropout, NULL, 4, 0, FUZZ_EXACT, 0},
    {"batch_norm", call_batch_norm, NULL, 8, 0, FUZZ_SHAPE_ONLY, 0},
    {"layer_norm", call_layer_norm, NULL, 8, 0, FUZZ_SHAPE_ONLY, 0},
    {"softmax_cross_entropy", call_loss, NULL, 8, SOFTMAX_CE, FUZZ_SHAPE_ONLY, 0},
    {"l1_loss", call_loss, NULL, 3, L1, FUZZ_SHAPE_ONLY, 0},
    {"l2_loss", call_loss, NULL, 3, L2, FUZZ_SHAPE_ONLY, 0},
    {"sigmoid_bce_loss", call_loss, NULL, 3, BCE, FUZZ_SHAPE_ONLY, 0},
    {"huber_loss", call_loss, NULL, 3, HUBER, FUZZ_SHAPE_ONLY, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
