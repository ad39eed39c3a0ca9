/* Calls that create arrays: fills, numbers, memory, random values. */
#include "programs.h"

#define KEY 1 /* by a key: the same numbers on all contexts */

static bool shape_good(const dvt_shape *shape, bool *small) {
    double size = 1;
    int i;
    *small = false;
    if (shape->ndim < 0 || shape->ndim > DVT_MAX_DIMS)
        return false;
    for (i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 0)
            return false;
        size *= (double)shape->dim[i];
    }
    *small = size < 1e6;
    return size < 1e17;
}

static bool dtype_good(dvt_dtype dtype) {
    return (int)dtype >= 0 && (int)dtype < DVT_DTYPE_COUNT;
}

static bool ctx_missing(dvt_ctx ctx) {
    return ctx.type == DVT_DEVICE_GPU && (ctx.id < 0 || ctx.id > 1);
}

static dvt_ctx resolve(dvt_ctx ctx) {
    return ctx.type == DVT_DEVICE_DEFAULT ? dvt_default_ctx() : ctx;
}

/* Predicts the errors of all creation functions. Returns false when the call must be skipped
   because the model cannot follow. */
static bool expect_created(fuzz_world *w, const dvt_shape *shape, dvt_dtype dtype, dvt_ctx ctx) {
    bool small, good = shape_good(shape, &small);
    int bad = !good + !dtype_good(dtype) + ctx_missing(ctx);
    if (good && !small && dvt_shape_size(*shape) > 0 && dvt_shape_size(*shape) < ((int64_t)1 << 36))
        return false;
    if (ctx.type > DVT_DEVICE_GPU || (ctx.type == DVT_DEVICE_CPU && ctx.id < 0)) {
        w->expect.code = bad ? DVT_OK : DVT_ERR_NO_DEVICE;
        return true;
    }
    if (bad == 1 && w->expect.code == DVT_OK)
        w->expect.code = !good              ? DVT_ERR_SHAPE
                         : ctx_missing(ctx) ? DVT_ERR_NO_DEVICE
                                            : DVT_ERR_DTYPE;
    if (bad)
        return true;
    w->expect.shape_known = w->expect.dtype_known = w->expect.ctx_known = true;
    w->expect.shape = *shape;
    w->expect.dtype = dtype;
    w->expect.ctx = resolve(ctx);
    w->expect.must_work = small && w->expect.code == DVT_OK;
    return true;
}

static void finish(fuzz_world *w, dvt_array *y) {
    if (fuzz_ended(w, !y))
        fuzz_result(w, y);
}

static fuzz_value *all(const dvt_shape *shape, dvt_dtype dtype, double value) {
    int64_t n = fuzz_size(shape), k;
    fuzz_value *v = (fuzz_value *)malloc(((size_t)n + 1) * sizeof *v), from;
    from.d = value;
    for (k = 0; k < n; k++)
        v[k] = fuzz_convert(from, DVT_F64, dtype);
    return v;
}

static void call_filled(fuzz_world *w, const fuzz_op *op) {
    dvt_shape shape = op->rule == 3 ? DVT_SCALAR : fuzz_shape(w);
    dvt_dtype dtype = fuzz_dtype(w);
    dvt_ctx ctx = fuzz_ctx(w);
    double value = op->rule >= 2 ? fuzz_double(w) : op->rule;
    if (!expect_created(w, &shape, dtype, ctx))
        return;
    if (w->expect.must_work)
        w->expect.value = all(&shape, dtype, value);
    fuzz_say(w, "    %s value %g on %d:%d\n", dvt_dtype_name(dtype), value, (int)ctx.type, ctx.id);
    finish(w, op->rule == 0   ? dvt_zeros(shape, dtype, ctx)
              : op->rule == 1 ? dvt_ones(shape, dtype, ctx)
              : op->rule == 2 ? dvt_full(shape, value, dtype, ctx)
                              : dvt_scalar(value, dtype, ctx));
}

static void call_like(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    double value = op->rule == 2 ? fuzz_double(w) : op->rule;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (expect_created(w, &a->view.shape, a->view.dtype, a->view.ctx))
        w->expect.value = all(&a->view.shape, a->view.dtype, value);
    finish(w, op->rule == 0   ? dvt_zeros_like(a->x)
              : op->rule == 1 ? dvt_ones_like(a->x)
                              : dvt_full_like(a->x, value));
}

static void call_eye(fuzz_world *w, const fuzz_op *op) {
    static const int64_t extent[] = {3, 0, 5, 1, 2, 8, -1, 30};
    uint8_t b = fuzz_byte(w);
    int64_t rows = extent[b & 7], columns = extent[b >> 3 & 7], k = fuzz_int(w), i;
    dvt_shape shape = DVT_SHAPE(rows, columns);
    dvt_dtype dtype = fuzz_dtype(w);
    dvt_ctx ctx = fuzz_ctx(w);
    (void)op;
    if (!expect_created(w, &shape, dtype, ctx))
        return;
    if (w->expect.must_work) {
        w->expect.value = all(&shape, dtype, 0);
        for (i = 0; i < rows; i++)
            if (k < columns && k > -rows && i + k >= 0 && i + k < columns)
                w->expect.value[i * columns + i + k] = fuzz_store(dtype, 1, 1);
    }
    finish(w, dvt_eye(rows, columns, k, dtype, ctx));
}

static void call_arange(fuzz_world *w, const fuzz_op *op) {
    double start = fuzz_double(w), stop = fuzz_double(w), step = fuzz_double(w), count;
    dvt_dtype dtype = fuzz_dtype(w);
    dvt_ctx ctx = fuzz_ctx(w);
    count = ceil((stop - start) / step);
    if (op->rule) {
        int64_t n = fuzz_int(w);
        if (n > 5000 && n < (int64_t)1 << 36)
            return;
        fuzz_say(w, "    %g %g n %lld\n", start, stop, (long long)n);
        finish(w, dvt_linspace(start, stop, n, dtype, ctx));
        return;
    }
    if (count > 5000 && count < 1e11)
        return;
    fuzz_say(w, "    %g %g %g\n", start, stop, step);
    if (!(step != 0) || start != start || stop != stop)
        w->expect.code =
            dtype_good(dtype) && dtype != DVT_BOOL && !ctx_missing(ctx) ? DVT_ERR_VALUE : DVT_OK;
    finish(w, dvt_arange(start, stop, step, dtype, ctx));
}

/* Values of several kinds, stored as the dtype. */
static void call_from_host(fuzz_world *w, const fuzz_op *op) {
    dvt_shape shape = fuzz_shape(w);
    dvt_dtype dtype = fuzz_dtype(w);
    uint8_t kind = fuzz_byte(w), seed = fuzz_byte(w);
    dvt_ctx ctx = fuzz_ctx(w);
    int64_t n, k;
    uint64_t s = 1 + seed + 256 * (uint64_t)kind;
    void *host;
    (void)op;
    if (!expect_created(w, &shape, dtype, ctx) || !w->expect.must_work)
        return;
    n = fuzz_size(&shape);
    w->expect.value = (fuzz_value *)malloc(((size_t)n + 1) * sizeof(fuzz_value));
    for (k = 0; k < n; k++) {
        static const double odd[] = {0, -0.0, INFINITY, -INFINITY, NAN,   1e30, -1e-30, 65504,
                                     1, -1,   2,        0.5,       1e-45, 3e38, 255,    -128};
        double d;
        fuzz_value from;
        s = s * 6364136223846793005u + 1442695040888963407u;
        d = kind % 8 < 3    ? (double)(int64_t)(s >> 60) - 4
            : kind % 8 == 3 ? odd[s >> 60]
            : kind % 8 == 4 ? (double)(s >> 40) / 8388608.0 - 1
            : kind % 8 == 5 ? ((double)(s >> 40) / 8388608.0 - 1) * 1000
            : kind % 8 == 6 ? (double)(s >> 61)
                            : (double)(s >> 40) / 16777216.0;
        from.d = d;
        w->expect.value[k] = fuzz_convert(from, DVT_F64, dtype);
    }
    host = calloc((size_t)n + 1, 8);
    fuzz_encode(w->expect.value, dtype, n, host);
    fuzz_say(w, "    kind %d\n", kind % 8);
    {
        dvt_array *y = dvt_from_host(host, shape, dtype, ctx);
        memset(host, 0x77, (size_t)n * 8);
        free(host);
        finish(w, y);
    }
}

static void call_from_host_null(fuzz_world *w, const fuzz_op *op) {
    dvt_shape shape = fuzz_shape(w);
    dvt_array *y;
    (void)op;
    y = dvt_from_host(NULL, shape, DVT_F32, fuzz_place(w, 0));
    finish(w, y);
}

/* ---- random numbers ---- */
static void check_range(fuzz_world *w, dvt_array *y, double low, double high) {
    int64_t n = dvt_size(y), k;
    fuzz_value *v = (fuzz_value *)calloc((size_t)n + 1, sizeof *v);
    void *host = malloc((size_t)n * 8 + 8);
    fuzz_pause_faults(true);
    fuzz_lift_limits(w, true);
    if (dvt_to_host(y, host, dvt_nbytes(y)) == DVT_OK) {
        fuzz_decode(host, dvt_dtype_of(y), n, v);
        for (k = 0; k < n; k++) {
            double d = fuzz_number(v[k], dvt_dtype_of(y));
            if (d < low || d > high)
                fuzz_fail(w, "drew %g outside [%g, %g]", d, low, high);
        }
    }
    fuzz_lift_limits(w, false);
    fuzz_pause_faults(false);
    free(host);
    free(v);
}

/* Rounds a bound as dvt_uniform does first. */
static double bound(double d, dvt_dtype dtype) {
    return fuzz_convert((fuzz_value){.d = d}, DVT_F64, dtype).d;
}

static void call_random(fuzz_world *w, const fuzz_op *op) {
    dvt_shape shape = fuzz_shape(w);
    dvt_dtype dtype = fuzz_dtype(w);
    dvt_ctx ctx = fuzz_ctx(w);
    double a = fuzz_double(w), b = fuzz_double(w);
    int64_t low = fuzz_int(w), high = fuzz_int(w);
    dvt_key key = dvt_key_new(fuzz_byte(w));
    dvt_array *y = NULL;
    bool with_key = op->rule & KEY;
    if (!expect_created(w, &shape, dtype, ctx))
        return;
    w->expect.must_work = false;
    w->expect.code = DVT_OK;
    switch (op->rule >> 1) {
    case 0:
        y = with_key ? dvt_key_uniform(key, a, b, shape, dtype, ctx)
                     : dvt_uniform(a, b, shape, dtype, ctx);
        break;
    case 1:
        y = with_key ? dvt_key_normal(key, a, b, shape, dtype, ctx)
                     : dvt_normal(a, b, shape, dtype, ctx);
        break;
    case 2:
        y = with_key ? dvt_key_randint(key, low, high, shape, dtype, ctx)
                     : dvt_randint(low, high, shape, dtype, ctx);
        a = (double)low;
        b = (double)high - 1;
        break;
    case 3:
        y = with_key ? dvt_key_bernoulli(key, a, shape, dtype, ctx)
                     : dvt_bernoulli(a, shape, dtype, ctx);
        a = 0;
        b = 1;
        break;
    default:
        low = low > 3000 && low < (int64_t)1 << 36 ? 7 : low;
        w->expect.shape = DVT_SHAPE(low);
        w->expect.dtype = DVT_I64;
        y = with_key ? dvt_key_permutation(key, low, ctx) : dvt_permutation(low, ctx);
        a = 0;
        b = (double)low - 1;
    }
    if (!fuzz_ended(w, !y))
        return;
    if (op->rule >> 1 != 1)
        check_range(w, y, bound(a, op->rule >> 1 ? DVT_F64 : dtype),
                    bound(b, op->rule >> 1 ? DVT_F64 : dtype));
    if (with_key)
        fuzz_result(w, y);
}

static void call_seed(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    if (b & 1)
        dvt_seed(b);
    else
        dvt_seed_ctx(b, fuzz_ctx(w));
    (void)op;
    w->lenient = true;
    fuzz_ended(w, dvt_error_code() != DVT_OK);
}

const fuzz_op fuzz_ops_create[] = {
    {"from_host", call_from_host, NULL, 60, 0, FUZZ_EXACT, 0},
    {"from_host_null", call_from_host_null, NULL, 1, 0, FUZZ_EXACT, 0},
    {"zeros", call_filled, NULL, 4, 0, FUZZ_EXACT, 0},
    {"ones", call_filled, NULL, 4, 1, FUZZ_EXACT, 0},
    {"full", call_filled, NULL, 6, 2, FUZZ_EXACT, 0},
    {"scalar", call_filled, NULL, 6, 3, FUZZ_EXACT, 0},
    {"zeros_like", call_like, NULL, 2, 0, FUZZ_EXACT, 0},
    {"ones_like", call_like, NULL, 2, 1, FUZZ_EXACT, 0},
    {"full_like", call_like, NULL, 3, 2, FUZZ_EXACT, 0},
    {"eye", call_eye, NULL, 4, 0, FUZZ_EXACT, 0},
    {"arange", call_arange, NULL, 6, 0, FUZZ_ULPS, 2},
    {"linspace", call_arange, NULL, 4, 1, FUZZ_ULPS, 4},
    {"key_uniform", call_random, NULL, 4, 1, FUZZ_ULPS, 2},
    {"uniform", call_random, NULL, 1, 0, FUZZ_ULPS, 2},
    {"key_normal", call_random, NULL, 4, 3, FUZZ_SHAPE_ONLY, 0},
    {"normal", call_random, NULL, 1, 2, FUZZ_SHAPE_ONLY, 0},
    {"key_randint", call_random, NULL, 4, 5, FUZZ_EXACT, 0},
    {"randint", call_random, NULL, 1, 4, FUZZ_EXACT, 0},
    {"key_bernoulli", call_random, NULL, 4, 7, FUZZ_EXACT, 0},
    {"bernoulli", call_random, NULL, 1, 6, FUZZ_EXACT, 0},
    {"key_permutation", call_random, NULL, 3, 9, FUZZ_EXACT, 0},
    {"permutation", call_random, NULL, 1, 8, FUZZ_EXACT, 0},
    {"seed", call_seed, NULL, 1, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
