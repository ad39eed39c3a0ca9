/* The model: arrays as strided views of buffers of float64 or int64, written without the library's
   code. */
#include "programs.h"

int64_t fuzz_size(const dvt_shape *shape) {
    double size = 1;
    int64_t n = 1;
    int i;
    for (i = 0; i < shape->ndim; i++)
        size *= (double)shape->dim[i];
    if (size == 0 || size > 9e18)
        return size == 0 ? 0 : INT64_MAX;
    for (i = 0; i < shape->ndim; i++)
        n *= shape->dim[i];
    return n;
}

double fuzz_epsilon(dvt_dtype dtype) {
    switch (dtype) {
    case DVT_F64:
        return 2.220446049250313e-16;
    case DVT_F16:
        return 9.765625e-4;
    case DVT_BF16:
        return 7.8125e-3;
    default:
        return 1.1920928955078125e-7;
    }
}

/* ---- 16-bit floats ---- */
static double float16_to_double(uint16_t h, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = h >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = h & ((1 << fraction_bits) - 1);
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/* Rounds to the nearest multiple of the unit in the last place, ties to even. */
static double round_float16(double d, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    double unit, rounded, largest = ldexp(2 - ldexp(1, -fraction_bits), bias);
    if (d != d || isinf(d) || d == 0)
        return d;
    frexp(d, &exponent);
    exponent--;
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    unit = ldexp(1, exponent - fraction_bits);
    rounded = nearbyint(d / unit) * unit;
    if (rounded == 0)
        return copysign(0, d);
    return fabs(rounded) > largest ? copysign(INFINITY, d) : rounded;
}

static uint16_t double_to_float16(double d, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    uint16_t sign = signbit(d) ? 0x8000 : 0;
    double a = fabs(d);
    if (d != d)
        return (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits | 1 << (fraction_bits - 1));
    if (isinf(d))
        return (uint16_t)(sign | ((1 << exponent_bits) - 1) << fraction_bits);
    if (a == 0)
        return sign;
    frexp(a, &exponent);
    exponent--;
    if (exponent < 1 - bias)
        return (uint16_t)(sign | (int)ldexp(a, bias - 1 + fraction_bits));
    return (uint16_t)(sign | (exponent + bias) << fraction_bits |
                      ((int)ldexp(a, fraction_bits - exponent) & ((1 << fraction_bits) - 1)));
}

static int64_t lowest(dvt_dtype dtype) {
    return dtype == DVT_I8 ? -128 : dtype == DVT_I32 ? INT32_MIN : dtype == DVT_I64 ? INT64_MIN : 0;
}

static int64_t largest(dvt_dtype dtype) {
    return dtype == DVT_I8     ? 127
           : dtype == DVT_U8   ? 255
           : dtype == DVT_I32  ? INT32_MAX
           : dtype == DVT_BOOL ? 1
                               : INT64_MAX;
}

/* Converts d to floats, and i to integers, which wrap. */
fuzz_value fuzz_store(dvt_dtype dtype, double d, int64_t i) {
    fuzz_value v;
    v.i = 0;
    switch (dtype) {
    case DVT_F32:
        v.d = (float)d;
        break;
    case DVT_F64:
        v.d = d;
        break;
    case DVT_F16:
        v.d = round_float16((float)d, 5, 10);
        break;
    case DVT_BF16:
        v.d = round_float16((float)d, 8, 7);
        break;
    case DVT_I8:
        v.i = (int8_t)(uint8_t)i;
        break;
    case DVT_U8:
        v.i = (uint8_t)i;
        break;
    case DVT_I32:
        v.i = (int32_t)(uint32_t)i;
        break;
    case DVT_I64:
        v.i = i;
        break;
    case DVT_BOOL:
        v.i = i != 0;
        break;
    }
    return v;
}

double fuzz_number(fuzz_value v, dvt_dtype dtype) {
    return dvt_dtype_is_float(dtype) ? v.d : (double)v.i;
}

fuzz_value fuzz_convert(fuzz_value v, dvt_dtype from, dvt_dtype to) {
    int64_t i;
    if (dvt_dtype_is_float(from) && dvt_dtype_is_float(to)) {
        if (to == DVT_F16 || to == DVT_BF16) {
            fuzz_value once;
            once.d = to == DVT_F16 ? round_float16(v.d, 5, 10) : round_float16(v.d, 8, 7);
            return once;
        }
        return fuzz_store(to, v.d, 0);
    }
    if (dvt_dtype_is_float(from)) {
        if (to == DVT_BOOL)
            i = v.d != 0;
        else if (v.d != v.d)
            i = 0;
        else if (v.d >= (double)largest(to))
            i = largest(to);
        else
            i = v.d <= (double)lowest(to) ? lowest(to) : (int64_t)v.d;
        return fuzz_store(to, 0, i);
    }
    if (dvt_dtype_is_float(to))
        return fuzz_store(to, to == DVT_F64 ? (double)v.i : (double)(float)v.i, 0);
    return fuzz_store(to, 0, v.i);
}

bool fuzz_same(fuzz_value a, fuzz_value b, dvt_dtype dtype) {
    if (!dvt_dtype_is_float(dtype))
        return a.i == b.i;
    if (a.d != a.d || b.d != b.d)
        return a.d != a.d && b.d != b.d;
    return a.d == b.d && signbit(a.d) == signbit(b.d);
}

/* ---- views ---- */
fuzz_view fuzz_new_view(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    fuzz_view view;
    int64_t n = fuzz_size(&shape);
    uint64_t step = 1;
    int i;
    memset(&view, 0, sizeof view);
    view.buffer = (fuzz_buffer *)calloc(1, sizeof *view.buffer);
    view.buffer->references = 1;
    view.buffer->n = n;
    view.buffer->v = (fuzz_value *)calloc((size_t)n + 1, sizeof *view.buffer->v);
    view.shape = shape;
    view.dtype = dtype;
    view.ctx = ctx;
    for (i = shape.ndim - 1; i >= 0; i--) {
        view.stride[i] = (int64_t)step;
        step *= (uint64_t)shape.dim[i];
    }
    return view;
}

void fuzz_drop_view(fuzz_view *view) {
    if (view->buffer && --view->buffer->references == 0) {
        free(view->buffer->v);
        free(view->buffer);
    }
    view->buffer = NULL;
}

fuzz_view fuzz_share(const fuzz_view *view) {
    if (view->buffer)
        view->buffer->references++;
    return *view;
}

/* Returns element k in C order. Views without elements are not allowed. */
fuzz_value *fuzz_at(const fuzz_view *view, int64_t k) {
    int64_t at = view->offset;
    int i;
    for (i = view->shape.ndim - 1; i >= 0; i--) {
        at += k % view->shape.dim[i] * view->stride[i];
        k /= view->shape.dim[i];
    }
    return view->buffer->v + at;
}

fuzz_value *fuzz_values(const fuzz_view *view) {
    int64_t n = fuzz_size(&view->shape), k;
    fuzz_value *out = (fuzz_value *)malloc(((size_t)n + 1) * sizeof *out);
    for (k = 0; k < n; k++)
        out[k] = *fuzz_at(view, k);
    return out;
}

void fuzz_decode(const void *bytes, dvt_dtype dtype, int64_t n, fuzz_value *out) {
    int64_t k;
    for (k = 0; k < n; k++)
        switch (dtype) {
        case DVT_F32: {
            float f;
            memcpy(&f, (const char *)bytes + 4 * k, 4);
            out[k].d = f;
            break;
        }
        case DVT_F16:
        case DVT_BF16: {
            uint16_t h = ((const uint16_t *)bytes)[k];
            out[k].d = dtype == DVT_F16 ? float16_to_double(h, 5, 10) : float16_to_double(h, 8, 7);
            break;
        }
        case DVT_I8:
            out[k].i = ((const int8_t *)bytes)[k];
            break;
        case DVT_U8:
        case DVT_BOOL:
            out[k].i = ((const uint8_t *)bytes)[k];
            break;
        case DVT_I32:
            out[k].i = ((const int32_t *)bytes)[k];
            break;
        case DVT_F64:
        case DVT_I64:
            memcpy(&out[k], (const char *)bytes + 8 * k, 8);
            break;
        }
}

void fuzz_encode(const fuzz_value *v, dvt_dtype dtype, int64_t n, void *bytes) {
    int64_t k;
    for (k = 0; k < n; k++)
        switch (dtype) {
        case DVT_F32:
            ((float *)bytes)[k] = (float)v[k].d;
            break;
        case DVT_F16:
            ((uint16_t *)bytes)[k] = double_to_float16(v[k].d, 5, 10);
            break;
        case DVT_BF16:
            ((uint16_t *)bytes)[k] = double_to_float16(v[k].d, 8, 7);
            break;
        case DVT_I8:
        case DVT_U8:
        case DVT_BOOL:
            ((uint8_t *)bytes)[k] = (uint8_t)v[k].i;
            break;
        case DVT_I32:
            ((int32_t *)bytes)[k] = (int32_t)v[k].i;
            break;
        case DVT_F64:
        case DVT_I64:
            memcpy((char *)bytes + 8 * k, &v[k], 8);
            break;
        }
}

static bool repeats(const fuzz_view *view) {
    int i;
    for (i = 0; i < view->shape.ndim; i++)
        if (view->shape.dim[i] > 1 && view->stride[i] == 0)
            return true;
    return false;
}

bool fuzz_is_c_order(const fuzz_view *view) {
    int64_t step = 1;
    int i;
    if (fuzz_size(&view->shape) == 0)
        return true;
    for (i = view->shape.ndim - 1; i >= 0; i--) {
        if (view->shape.dim[i] != 1 && view->stride[i] != step)
            return false;
        step *= view->shape.dim[i];
    }
    return true;
}

bool fuzz_broadcast(const dvt_shape *a, const dvt_shape *b, dvt_shape *out) {
    dvt_shape shape;
    int i;
    memset(&shape, 0, sizeof shape);
    shape.ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (i = 1; i <= shape.ndim; i++) {
        int64_t x = i <= a->ndim ? a->dim[a->ndim - i] : 1,
                y = i <= b->ndim ? b->dim[b->ndim - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        shape.dim[shape.ndim - i] = x == 1 ? y : x;
    }
    *out = shape;
    return true;
}

fuzz_view fuzz_broadcast_view(const fuzz_view *view, const dvt_shape *shape) {
    fuzz_view out = *view;
    int i, skip = shape->ndim - view->shape.ndim;
    out.shape = *shape;
    for (i = 0; i < shape->ndim; i++)
        out.stride[i] = i < skip || (view->shape.dim[i - skip] == 1 && shape->dim[i] != 1)
                            ? 0
                            : view->stride[i - skip];
    out.repeats |= repeats(&out);
    return out;
}

double fuzz_largest(const fuzz_view *view) {
    int64_t n = view->buffer ? fuzz_size(&view->shape) : 0, k;
    double most = 0;
    for (k = 0; k < n; k++) {
        double v = fabs(fuzz_number(*fuzz_at(view, k), view->dtype));
        if (!(v < INFINITY))
            return INFINITY;
        most = v > most ? v : most;
    }
    return most;
}
