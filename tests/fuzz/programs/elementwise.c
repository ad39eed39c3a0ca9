/* The model of elementwise operations that are correctly rounded or exact. */
#include "programs.h"
#include "elementwise.h"

#define IS(text) (!strcmp(name, text))

static double to_class(double d, dvt_dtype dtype) {
    return dtype == DVT_F64 ? d : (double)(float)d;
}

bool fuzz_unary_value(const char *name, dvt_dtype dtype, fuzz_value x, fuzz_value *out) {
    double d = dvt_dtype_is_float(dtype) ? x.d : (double)(float)x.i, r;
    bool is_integer = !dvt_dtype_is_float(dtype);
    dvt_dtype result = is_integer ? DVT_F32 : dtype;
    if (IS("isnan") || IS("isinf") || IS("isfinite") || IS("logical_not")) {
        d = fuzz_number(x, dtype);
        out->i = IS("isnan")      ? d != d
                 : IS("isinf")    ? isinf(d) != 0
                 : IS("isfinite") ? d - d == 0
                 : is_integer     ? x.i == 0
                                  : d == 0;
        return true;
    }
    if (IS("reciprocal"))
        r = 1 / d;
    else if (IS("sqrt"))
        r = sqrt(d);
    else if (is_integer) {
        int64_t i = x.i;
        if (IS("neg"))
            i = (int64_t)(0 - (uint64_t)i);
        else if (IS("abs"))
            i = i < 0 ? (int64_t)(0 - (uint64_t)i) : i;
        else if (IS("sign"))
            i = (i > 0) - (i < 0);
        else if (IS("square"))
            i = (int64_t)((uint64_t)i * (uint64_t)i);
        else if (IS("relu"))
            i = i > 0 ? i : 0;
        else if (!IS("floor") && !IS("ceil") && !IS("round") && !IS("trunc"))
            return false;
        *out = fuzz_store(dtype, 0, i);
        return true;
    } else if (IS("neg"))
        r = -d;
    else if (IS("abs"))
        r = fabs(d);
    else if (IS("sign"))
        r = d > 0 ? 1 : d < 0 ? -1 : d != d ? d : 0;
    else if (IS("square"))
        r = d * d;
    else if (IS("relu"))
        r = d > 0 ? d : d != d ? d : 0;
    else if (IS("floor"))
        r = floor(d);
    else if (IS("ceil"))
        r = ceil(d);
    else if (IS("round"))
        r = nearbyint(d);
    else if (IS("trunc"))
        r = trunc(d);
    else
        return false;
    *out = fuzz_store(result, r, 0);
    return true;
}

static int compare_kind(const char *name) {
    static const char *const names[] = {"equal",       "not_equal",  "less",
                                        "less_equal",  "greater",    "greater_equal",
                                        "logical_and", "logical_or", "logical_xor"};
    int i;
    for (i = 0; i < 9; i++)
        if (IS(names[i]))
            return i;
    return -1;
}

/* Computes a binary operation. a and b are stored in `dtype`, the promoted one. */
bool fuzz_binary_value(const char *name, dvt_dtype dtype, fuzz_value a, fuzz_value b,
                       fuzz_value *out) {
    bool is_integer = !dvt_dtype_is_float(dtype);
    int kind = compare_kind(name);
    double x, y, r;
    if (kind >= 0) {
        bool less = is_integer ? a.i < b.i : a.d < b.d,
             greater = is_integer ? a.i > b.i : a.d > b.d;
        bool equal = is_integer ? a.i == b.i : a.d == b.d, p = is_integer ? a.i != 0 : a.d != 0,
             q = is_integer ? b.i != 0 : b.d != 0;
        bool results[9] = {equal,  !equal, less,  less || equal, greater, greater || equal,
                           p && q, p || q, p != q};
        out->i = results[kind];
        return true;
    }
    if (IS("div")) {
        x = is_integer ? (double)(float)a.i : a.d;
        y = is_integer ? (double)(float)b.i : b.d;
        *out = fuzz_store(is_integer ? DVT_F32 : dtype, x / y, 0);
        return true;
    }
    if (is_integer) {
        int64_t i;
        if (IS("add"))
            i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
        else if (IS("sub"))
            i = (int64_t)((uint64_t)a.i - (uint64_t)b.i);
        else if (IS("mul"))
            i = (int64_t)((uint64_t)a.i * (uint64_t)b.i);
        else if (IS("minimum"))
            i = a.i < b.i ? a.i : b.i;
        else if (IS("maximum"))
            i = a.i > b.i ? a.i : b.i;
        else if (IS("floor_div") || IS("mod")) {
            int64_t q;
            if (b.i == 0)
                i = 0;
            else if (b.i == -1)
                i = IS("mod") ? 0 : (int64_t)(0 - (uint64_t)a.i);
            else {
                q = a.i / b.i - (a.i % b.i != 0 && (a.i < 0) != (b.i < 0));
                i = IS("mod") ? a.i - q * b.i : q;
            }
        } else
            return false;
        *out = fuzz_store(dtype, 0, i);
        return true;
    }
    x = a.d;
    y = b.d;
    if (IS("add"))
        r = x + y;
    else if (IS("sub"))
        r = x - y;
    else if (IS("mul"))
        r = x * y;
    else if (IS("minimum"))
        r = x != x ? x : y != y ? y : x < y ? x : y;
    else if (IS("maximum"))
        r = x != x ? x : y != y ? y : x > y ? x : y;
    else
        return false;
    *out = fuzz_store(dtype, r, 0);
    return true;
}

fuzz_value fuzz_scalar_value(dvt_dtype dtype, double s) {
    fuzz_value v;
    v.i = 0;
    if (dvt_dtype_is_float(dtype))
        v.d = to_class(s, dtype);
    else
        v.i = (int64_t)s;
    return v;
}
