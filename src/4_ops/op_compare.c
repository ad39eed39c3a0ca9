/* Comparisons of arrays with tolerances, by NumPy's rules. They are never recorded, because their
   results are bool. */
#include "4_ops/dvt_op.h"

static const char *const dvti_compare_names[] = {"a", "b"};

static bool dvti_tolerance(const char *name, const char *argument, double value) {
    if (value >= 0)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected 0 or more, such as 1e-5", name, argument,
              value);
    return false;
}

static bool dvti_nan_rule(const char *name, dvt_nan_rule nan) {
    return dvti_choice(name, "nan", (int)nan, "DVT_NAN_DIFFERS", "DVT_NAN_EQUALS");
}

static bool dvti_close_check(const char *name, dvt_array *a, dvt_array *b, double rtol, double atol,
                             dvt_nan_rule nan) {
    dvt_array *in[2];
    dvt_shape shape;
    in[0] = a;
    in[1] = b;
    return dvti_check_named(name, in, 2, dvti_compare_names) &&
           dvti_tolerance(name, "rtol", rtol) && dvti_tolerance(name, "atol", atol) &&
           dvti_nan_rule(name, nan) && dvti_broadcast(name, &a->shape, &b->shape, &shape);
}

/* Returns the dtype of the comparison, in which rtol and atol can be represented: float64 for
   integers, float32 for 16-bit floats. */
static dvt_dtype dvti_close_dtype(const dvt_array *a, const dvt_array *b) {
    dvt_dtype dtype = dvt_promote(a->dtype, b->dtype);
    return dtype == DVT_F32 || dtype == DVT_F16 || dtype == DVT_BF16 ? DVT_F32 : DVT_F64;
}

/* Returns same | (a and b are NaN) for DVT_NAN_EQUALS, otherwise same. */
static dvt_array *dvti_same(dvt_array *same, dvt_array *a, dvt_array *b, dvt_nan_rule nan) {
    return nan == DVT_NAN_EQUALS ? dvt_logical_or(same, dvt_logical_and(dvt_isnan(a), dvt_isnan(b)))
                                 : same;
}

/* Returns |a - b| <= atol + rtol |b| where b is finite, or a == b, which holds for equal
   infinities. */
static dvt_array *dvti_close(dvt_array *a, dvt_array *b, double rtol, double atol,
                             dvt_nan_rule nan) {
    dvt_dtype dtype = dvti_close_dtype(a, b);
    dvt_array *equal = dvt_equal(a, b), *within, *x = dvt_as_in_dtype(a, dtype),
              *y = dvt_as_in_dtype(b, dtype);
    within = dvt_less_equal(dvt_abs(dvt_sub(x, y)),
                            dvt_add_scalar(dvt_mul_scalar(dvt_abs(y), rtol), atol));
    within = dvt_logical_and(within, dvt_isfinite(y));
    return dvti_same(dvt_logical_or(within, equal), x, y, nan);
}

/* Returns whether all elements of a bool array are true. Waits. */
static bool dvti_holds(dvt_array *x) {
    x = x ? dvt_all(x, DVT_ALL) : NULL;
    return x && dvt_item(x) == 1;
}

DVT_API dvt_array *dvt_isclose(dvt_array *a, dvt_array *b, double rtol, double atol,
                               dvt_nan_rule nan) {
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_array *out;
    if (!dvti_close_check("dvt_isclose", a, b, rtol, atol, nan))
        return NULL;
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    out = dvti_close(a, b, rtol, atol, nan);
    dvt_record_end(&record);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API bool dvt_allclose(dvt_array *a, dvt_array *b, double rtol, double atol, dvt_nan_rule nan) {
    dvt_scope_guard scope;
    dvt_record_guard record;
    bool close;
    if (!dvti_close_check("dvt_allclose", a, b, rtol, atol, nan))
        return false;
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    close = dvti_holds(dvti_close(a, b, rtol, atol, nan));
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return close;
}

DVT_API bool dvt_array_equal(dvt_array *a, dvt_array *b, dvt_nan_rule nan) {
    static const char name[] = "dvt_array_equal";
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_array *in[2];
    bool same;
    in[0] = a;
    in[1] = b;
    if (!dvti_check_named(name, in, 2, dvti_compare_names) || !dvti_nan_rule(name, nan) ||
        !dvt_shape_equal(a->shape, b->shape))
        return false;
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    same = dvti_holds(dvti_same(dvt_equal(a, b), a, b, nan));
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return same;
}
