/* Compares the result of a row with float64: all of it with float64 on gpu(0), and a sample with
   float64 on cpu(), which shares no kernel with the result. Large arrays are compared in parts, so
   that the float64 arrays stay small. */
#ifndef CHECK_H
#define CHECK_H
#include "cases.h"

#define PART_ELEMENTS ((int64_t)1 << 25) /* of the largest float64 array of a part, about */
#define SPOT_ELEMENTS ((int64_t)1 << 16) /* of a sample on cpu() */
#define SPOT_COLUMNS ((int64_t)64)       /* of a product */

/* The three errors of a comparison; whole < 0: nothing was compared. */
typedef struct row_error {
    double whole; /* |result - reference| / |reference| in Euclidean norms */
    double worst; /* of one element, over the root mean square of the reference */
    double spot;  /* as whole, of the sample; < 0: no sample */
} row_error;

typedef struct span {
    int64_t from, to;
} span;

typedef struct totals {
    double off, size, worst, elements; /* sums of squares, a maximum, a count */
} totals;

static dvt_array *cut(dvt_array *x, int axis, span s) {
    return s.from == 0 && s.to == dvt_dim(x, axis) ? x : dvt_slice(x, axis, s.from, s.to, 1);
}

static dvt_array *as_double(dvt_array *x, dvt_ctx ctx) {
    dvt_array *there = dvt_as_in_ctx(x, ctx);
    return dvt_dtype_of(there) == DVT_BOOL ? there : dvt_as_in_dtype(there, DVT_F64);
}

/* Returns the axis along which input i is cut when the result is cut along axis 0; -1: it is
   needed whole; -2: the result needs the whole of every input. */
static int cut_axis(const row *r, int i) {
    const int64_t rows = argument(r, "rows", 0);
    if (rows) {
        bool of_rows = is_op(r, "softmax") || is_op(r, "layer_norm") ||
                       (is_op(r, "sum") && argument(r, "axis", -1) == 1) ||
                       (is_op(r, "sort") && rows > 1);
        return of_rows ? 0 : is_op(r, "transpose") ? 1 : -2;
    }
    if (is_op(r, "mm"))
        return i == 0 ? argument(r, "ta", 0) != 0 : -1;
    if (is_op(r, "conv"))
        return argument(r, "backward", 0) ? -2 : i == 0 ? 0 : -1;
    return 0;
}

/* Compares the slices `rows` of the result with the reference on a context; of a product, those
   columns. */
static void compare_part(const row *r, dvt_array *y, span rows, span columns, dvt_ctx ctx,
                         totals *t) {
    DVT_SCOPE {
        dvt_array *in[4], *got = y, *want, *off;
        int i;
        for (i = 0; i < 4; i++) {
            int axis = cut_axis(r, i);
            in[i] = r->in[i];
            if (in[i] && axis >= 0)
                in[i] = cut(in[i], axis, rows);
            if (in[i] && i == 1 && is_op(r, "mm"))
                in[i] = cut(in[i], argument(r, "tb", 0) ? 0 : 1, columns);
            in[i] = in[i] ? as_double(in[i], ctx) : NULL;
            if (in[i] && (argument(r, "backward", 0) || is_op(r, "relu_gradient")))
                must(dvt_attach_grad(in[i], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
        }
        if (cut_axis(r, 0) != -2)
            got = cut(got, 0, rows);
        if (is_op(r, "mm"))
            got = cut(got, 1, columns);
        want = compute(r, in, true);
        must(want != NULL, r->text);
        off = dvt_abs(dvt_sub(as_double(got, ctx), want));
        t->off += dvt_item(dvt_sum(dvt_mul(off, off), DVT_ALL));
        t->size += dvt_item(dvt_sum(dvt_mul(want, want), DVT_ALL));
        t->worst = fmax(t->worst, dvt_item(dvt_max(off, DVT_ALL)));
        t->elements += (double)dvt_size(want);
        must(dvt_error_code() == DVT_OK, "the comparison");
    }
}

static double relative(const totals *t) {
    return sqrt(t->off) / (t->size > 0 ? sqrt(t->size) : 1);
}

static row_error array_error(const row *r, dvt_array *y) {
    bool parts = cut_axis(r, 0) != -2, product = is_op(r, "mm");
    int64_t slices = parts ? dvt_dim(y, 0) : 1, each = dvt_size(y) / slices, most, at;
    span columns = {0, product ? dvt_dim(y, 1) : 0}, spot;
    totals all, sample;
    row_error e;
    memset(&all, 0, sizeof all);
    memset(&sample, 0, sizeof sample);
    if (!is_op(r, "transpose") && parts && !product && dvt_size(r->in[0]) / slices > each)
        each = dvt_size(r->in[0]) / slices;
    most = PART_ELEMENTS / each > 0 ? PART_ELEMENTS / each : 1;
    for (at = 0; at < slices; at += most) {
        span rows = {at, at + most < slices ? at + most : slices};
        compare_part(r, y, rows, columns, dvt_gpu(0), &all);
    }
    e.whole = relative(&all);
    e.worst = all.worst / (all.size > 0 ? sqrt(all.size / all.elements) : 1);
    e.spot = -1;
    if (parts) { /* the end of the result, where ragged shapes are hardest */
        if (product && columns.to > SPOT_COLUMNS)
            columns.from = columns.to - SPOT_COLUMNS;
        most = SPOT_ELEMENTS / (product ? SPOT_COLUMNS : each);
        most = product && most > SPOT_COLUMNS ? SPOT_COLUMNS : most;
        spot.from = slices > most ? slices - (most > 0 ? most : 1) : 0;
        spot.to = slices;
        compare_part(r, y, spot, columns, dvt_cpu(), &sample);
        e.spot = relative(&sample);
    }
    return e;
}

/* Random numbers have no reference. whole: the largest deviation of the first two moments, in
   units of the standard error, times 2e-4, so the bound 1e-3 allows 5 standard errors. spot: the
   difference of the first numbers from those of cpu() for the same key. */
static row_error random_error(const row *r, dvt_array *y) {
    bool normal = is_op(r, "normal");
    double mean = normal ? 0 : 0.5, variance = normal ? 1 : 1.0 / 12;
    double fourth = normal ? 3 : 1.0 / 80, n = (double)dvt_size(y), sum = 0, squares = 0;
    dvt_key key = dvt_key_new(5);
    dvt_shape shape = dvt_shape_of(y), few = DVT_SHAPE(SPOT_ELEMENTS);
    dvt_array *drawn[2];
    row_error e;
    int64_t at;
    int i;
    if (dvt_size(y) < SPOT_ELEMENTS)
        few = shape;
    for (at = 0; at < dvt_size(y); at += PART_ELEMENTS)
        DVT_SCOPE {
            span s = {at, at + PART_ELEMENTS < dvt_size(y) ? at + PART_ELEMENTS : dvt_size(y)};
            dvt_array *off = dvt_sub_scalar(as_double(cut(y, 0, s), dvt_gpu(0)), mean);
            sum += dvt_item(dvt_sum(off, DVT_ALL));
            squares += dvt_item(dvt_sum(dvt_mul(off, off), DVT_ALL));
        }
    sum = fabs(sum / n) / sqrt(variance / n);
    squares = fabs(squares / n - variance) / sqrt((fourth - variance * variance) / n);
    e.whole = 2e-4 * fmax(sum, squares);
    e.worst = 0;
    for (i = 0; i < 2; i++) {
        dvt_ctx ctx = i ? dvt_cpu() : dvt_gpu(0);
        dvt_shape of = i ? few : shape;
        drawn[i] = normal ? dvt_key_normal(key, 0, 1, of, DVT_F32, ctx)
                          : dvt_key_uniform(key, 0, 1, of, DVT_F32, ctx);
    }
    drawn[0] = dvt_copyto(dvt_slice(drawn[0], 0, 0, dvt_shape_size(few), 1), dvt_cpu());
    e.spot = dvt_item(dvt_max(dvt_abs(dvt_sub(drawn[0], drawn[1])), DVT_ALL));
    return e;
}

/* An error that is not a number is above every bound. 32: elements of a correct result are within
   a few standard deviations, and the sample is small. */
static bool is_right(row_error e, double bound) {
    return e.whole <= bound && e.worst <= 32 * bound && e.spot <= 4 * bound;
}

#endif
