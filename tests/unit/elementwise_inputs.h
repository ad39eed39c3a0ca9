/* Helpers for tests that loop over the op table: inputs of every dtype and layout, the expected
   dtype, comparison. */
#ifndef ELEMENTWISE_INPUTS_H
#define ELEMENTWISE_INPUTS_H
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"
#include "dvt_test.h"

typedef enum rule { RULE_SAME, RULE_NOBOOL, RULE_FLOAT, RULE_BOOL } rule;

#define IN_PLACE_SAME(f) f
#define IN_PLACE_NOBOOL(f) f
#define IN_PLACE_FLOAT(f) f
#define IN_PLACE_BOOL(f) NULL
#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

static dvt_dtype expected_dtype(rule kind, dvt_dtype dtype) {
    return kind == RULE_BOOL                                  ? DVT_BOOL
           : kind == RULE_FLOAT && !dvt_dtype_is_float(dtype) ? DVT_F32
                                                              : dtype;
}

/* Returns v as the integer dtype stores it, wrapped. x / 0 and x mod 0 are 0; negative powers
   truncate. */
static double wrapped(double v, dvt_dtype dtype) {
    switch ((int)dtype) {
    case DVT_I8:
        return v - 256 * floor((v + 128) / 256);
    case DVT_U8:
        return v - 256 * floor(v / 256);
    case DVT_BOOL:
        return v != 0;
    default:
        return v;
    }
}

/* ---- inputs ---- */
static double tolerance_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? 1e-12 : dtype == DVT_F32 ? 3e-6 : dtype == DVT_F16 ? 1e-3 : 8e-3;
}

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype, double low, double high,
                               dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    if (!dvt_dtype_is_float(dtype)) {
        low = dtype == DVT_U8 || dtype == DVT_BOOL ? 0 : -4;
        high = dtype == DVT_BOOL ? 2 : 6;
    }
    for (i = 0; i < n; i++) {
        values[i] = dvt_test_random(low, high);
        if (!dvt_dtype_is_float(dtype))
            values[i] = floor(values[i]);
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, ctx), dtype);
    free(values);
    return x;
}

/* Memory layouts of the (7, 90) values of x, or of a selection of them. */
enum { LAYOUTS = 7 };

static dvt_array *layout(dvt_array *x, int which) {
    switch (which) {
    case 0:
        return x;
    case 1:
        return dvt_transpose(dvt_contiguous(dvt_transpose(x, DVT_ALL)),
                             DVT_ALL); /* Fortran order */
    case 2:
        return dvt_slice(x, 1, 1, DVT_END, 3); /* with gaps */
    case 3:
        return dvt_slice(dvt_slice(x, 1, -1, DVT_END, -1), 0, -1, DVT_END, -2); /* reversed */
    case 4:
        return dvt_broadcast_to(dvt_slice(x, 1, 4, 5, 1), DVT_SHAPE(7, 600));
    case 5:
        return dvt_index(dvt_index(x, 3), 2); /* 0-d */
    default:
        return dvt_slice(x, 0, 2, 2, 1); /* empty */
    }
}

/* Returns the tolerance: functions on a GPU differ in the last digits. tests/cuda checks their
   error bounds. */
static double device_tolerance(dvt_array *a, dvt_array *b) {
    bool apart = a && b && !dvt_ctx_equal(dvt_ctx_of(a), dvt_ctx_of(b));
    return apart && dvt_test_on_gpus() ? 2e-6 : 0;
}

static bool same_values(dvt_array *a, dvt_array *b) {
    double *p = dvt_test_values(a), *q = dvt_test_values(b);
    int64_t i, n = dvt_size(a);
    double tolerance = device_tolerance(a, b);
    bool same = p && q && n == dvt_size(b);
    for (i = 0; same && i < n; i++)
        same = dvt_test_close(p[i], q[i], tolerance);
    free(p);
    free(q);
    return same;
}

#endif
