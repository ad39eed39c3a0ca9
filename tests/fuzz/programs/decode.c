/* Decodes a call's bytes into arguments: most are valid, some are not, a few are absurd. */
#include "programs.h"

uint8_t fuzz_byte(fuzz_world *w) {
    return w->cursor < FUZZ_ARGS ? w->call->arg[w->cursor++] : 0;
}

static fuzz_object fuzz_nothing; /* represents NULL */

static fuzz_object *object_from(fuzz_world *w, int start, const fuzz_object *near,
                                bool (*fits)(const fuzz_object *near, const fuzz_object *o)) {
    int k;
    for (k = 0; k < FUZZ_SLOTS; k++) {
        int slot = w->slot[(start + k) % FUZZ_SLOTS];
        if (slot >= 0 && (!fits || fits(near, &w->object[slot])))
            return &w->object[slot];
    }
    return NULL;
}

fuzz_object *fuzz_pick(fuzz_world *w) {
    uint8_t b = fuzz_byte(w);
    fuzz_object *o = b >= 252 ? NULL : object_from(w, b % FUZZ_SLOTS, NULL, NULL);
    return o ? o : &fuzz_nothing;
}

static bool fits_broadcast(const fuzz_object *near, const fuzz_object *o) {
    dvt_shape shape;
    return dvt_ctx_equal(near->view.ctx, o->view.ctx) &&
           fuzz_broadcast(&near->view.shape, &o->view.shape, &shape) && fuzz_size(&shape) <= 40000;
}

static bool fits_same(const fuzz_object *near, const fuzz_object *o) {
    return o != near && dvt_ctx_equal(near->view.ctx, o->view.ctx) &&
           dvt_shape_equal(near->view.shape, o->view.shape);
}

static bool fits_into(const fuzz_object *near, const fuzz_object *o) {
    dvt_shape shape;
    return dvt_ctx_equal(near->view.ctx, o->view.ctx) &&
           fuzz_broadcast(&near->view.shape, &o->view.shape, &shape) &&
           dvt_shape_equal(shape, near->view.shape);
}

fuzz_object *fuzz_pick_like(fuzz_world *w, const fuzz_object *a, bool same_shape) {
    uint8_t b = fuzz_byte(w);
    fuzz_object *o = NULL;
    if (b >= 252)
        return &fuzz_nothing;
    if (a->x && b % 16 != 15) {
        if (same_shape)
            o = object_from(w, b % FUZZ_SLOTS, a, fits_same);
        if (!o)
            o = object_from(w, b % FUZZ_SLOTS, a, same_shape ? fits_into : fits_broadcast);
    }
    if (!o)
        o = object_from(w, b % FUZZ_SLOTS, NULL, NULL);
    return o ? o : &fuzz_nothing;
}

bool fuzz_is_float(dvt_dtype dtype) {
    return dvt_dtype_is_float(dtype);
}

bool fuzz_is_float32(dvt_dtype dtype) {
    return dtype == DVT_F32;
}

bool fuzz_is_index(dvt_dtype dtype) {
    return dvt_dtype_is_int(dtype);
}

fuzz_object *fuzz_pick_dtype(fuzz_world *w, const fuzz_object *near, bool (*wanted)(dvt_dtype)) {
    uint8_t b = fuzz_byte(w);
    int k;
    if (b >= 252)
        return &fuzz_nothing;
    for (k = 0; b % 16 != 15 && k < FUZZ_SLOTS; k++) {
        int slot = w->slot[(b + k) % FUZZ_SLOTS];
        fuzz_object *o = slot < 0 ? NULL : &w->object[slot];
        if (o && wanted(o->view.dtype) && (!near->x || dvt_ctx_equal(near->view.ctx, o->view.ctx)))
            return o;
    }
    {
        fuzz_object *o = object_from(w, b % FUZZ_SLOTS, NULL, NULL);
        return o ? o : &fuzz_nothing;
    }
}

int fuzz_axis(fuzz_world *w, int ndim) {
    static const int odd[] = {-1000, INT32_MAX, INT32_MIN, 8, -9, 100, 1000, 1};
    uint8_t b = fuzz_byte(w);
    if (b >= 248)
        return odd[b - 248];
    if (b >= 240)
        return b & 1 ? ndim : -ndim - 1;
    return ndim ? b % (2 * ndim) - ndim : 0;
}

dvt_axes fuzz_axes(fuzz_world *w, int ndim) {
    uint8_t b = fuzz_byte(w);
    dvt_axes axes = DVT_ALL;
    int k;
    if (b < 64)
        return axes;
    if (b >= 250) {
        axes.n = b == 250 ? -1 : b == 251 ? 9 : b == 252 ? INT32_MAX : b == 253 ? INT32_MIN : 8;
        return axes;
    }
    axes.n = 1 + (b & 1) * (ndim > 1) + (b % 7 == 0);
    axes.axis[0] = fuzz_axis(w, ndim);
    for (k = 1; k < axes.n; k++)
        axes.axis[k] =
            ndim > 1 && b % 5 ? (axes.axis[k - 1] + ndim + 1) % ndim : fuzz_axis(w, ndim);
    return axes;
}

dvt_shape fuzz_shape(fuzz_world *w) {
    static const uint8_t extent[] = {1, 2, 3, 4, 5, 0, 7, 8, 1, 2, 3, 4, 9, 16, 17, 33};
    static const int64_t huge[] = {INT64_MAX,        INT64_MIN, -1, (int64_t)1 << 40,
                                   (int64_t)1 << 62, 3,         0,  1};
    uint8_t b = fuzz_byte(w), bits;
    dvt_shape shape = DVT_SCALAR;
    int i;
    if (b >= 252) {
        static const int ndim[] = {9, -1, INT32_MAX, INT32_MIN};
        shape.ndim = ndim[b - 252];
        return shape;
    }
    shape.ndim = b % 16 < 2    ? 0
                 : b % 16 < 5  ? 1
                 : b % 16 < 10 ? 2
                 : b % 16 < 13 ? 3
                 : b % 16 < 15 ? 4
                               : 5;
    if (b >= 248)
        shape.ndim = 8;
    for (i = 0; i < shape.ndim; i++) {
        bits = i < 4 ? fuzz_byte(w) : 1;
        shape.dim[i] = b >= 244 && bits & 1 ? huge[bits >> 1 & 7] : extent[bits % 16];
    }
    if (b >= 240 && b < 244) { /* large enough for several threads */
        shape = b & 1 ? DVT_SHAPE(170, 173) : b & 2 ? DVT_SHAPE(30011) : DVT_SHAPE(5, 71, 83);
        return shape;
    }
    while (shape.ndim && b < 244 && fuzz_size(&shape) > 2000)
        shape.ndim--;
    return shape;
}

dvt_dtype fuzz_dtype(fuzz_world *w) {
    static const dvt_dtype dtype[] = {DVT_F32,  DVT_F32, DVT_F32, DVT_F32, DVT_F64, DVT_F16,
                                      DVT_BF16, DVT_I64, DVT_I32, DVT_U8,  DVT_I8,  DVT_BOOL,
                                      DVT_I64,  DVT_F32, DVT_F64, DVT_I32};
    uint8_t b = fuzz_byte(w);
    return b == 255 ? (dvt_dtype)DVT_DTYPE_UNSIGNED : b == 254 ? (dvt_dtype)-1 : dtype[b % 16];
}

dvt_ctx fuzz_place(const fuzz_world *w, int i) {
    return w->config->gpu ? (i == 2 ? dvt_cpu() : dvt_gpu(i)) : dvt_cpu_id(i);
}

dvt_ctx fuzz_ctx(fuzz_world *w) {
    uint8_t b = fuzz_byte(w);
    dvt_ctx ctx = {DVT_DEVICE_DEFAULT, 0};
    if (b == 255)
        ctx.type = (dvt_device_type)77;
    else if (b == 254)
        ctx = dvt_gpu(15);
    else if (b == 253)
        ctx = dvt_gpu(-1);
    else if (b == 252)
        ctx = dvt_cpu_id(-5);
    else if (b >= 150)
        ctx = fuzz_place(w, b % 8 == 0 ? 1 : b % 8 == 1 ? 2 : 0);
    return ctx;
}

double fuzz_double(fuzz_world *w) {
    static const double table[] = {
        0,    -0.0,     1,     -1,           0.5,   2,      3,     -2,    INFINITY, -INFINITY,
        NAN,  1e30,     1e-30, 1e308,        65504, 255,    -128,  256,   0.1,      1e-8,
        -0.5, 7,        100,   -100,         1e-45, 9.3e18, -1e19, 65520, 2.5,      1.5,
        1e38, 16777217, 3.7e9, 4294967296.0, -3,    1e-300, 1e-38, 40000, 0.25,     -0.25};
    uint8_t b = fuzz_byte(w);
    if (b & 1)
        return (b >> 1) * 0.125 - 4;
    return table[(b >> 1) % (sizeof table / sizeof table[0])];
}

int64_t fuzz_int(fuzz_world *w) {
    static const int64_t odd[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, (int64_t)1 << 40,
                                  -1000000,  1000000,   INT32_MAX,     255};
    uint8_t b = fuzz_byte(w);
    return b >= 248 ? odd[b - 248] : b % 24 - 8;
}
