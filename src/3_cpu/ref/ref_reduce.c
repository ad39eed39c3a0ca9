/* The oracle of reductions: one element after the other, in one thread, in float64 or int64, by the
   formulas of the table. Tests compare the ISA targets with it. It also serves processors without
   an ISA target, and results of no elements. */
#include "3_cpu/dvt_cpu.h"

/* ---- joining an element ---- */
#define DVTI_HIGHEST ((double)INFINITY)
#define DVTI_LOWEST (-(double)INFINITY)
#define W(word) dvti_f64_##word

static double dvti_oracle_join_f64(dvti_op op, double s, double x) {
    switch ((int)op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        return W(join)(s, term);
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return s;
    }
}

#undef W
#undef DVTI_HIGHEST
#undef DVTI_LOWEST
#define W(word) dvti_i64_##word

static int64_t dvti_oracle_join_i64(dvti_op op, int64_t s, int64_t x) {
    switch ((int)op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_INTEGERS_##rule(case DVTI_OP_##name : return W(join)(s, term);)
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return s;
    }
}

#undef W

/* ---- the elements of one result ---- */
typedef struct dvti_oracle_elements {
    dvti_view kept, reduced; /* of in[0] */
    int64_t n;
    int64_t first; /* distance of the result's first element from the data */
} dvti_oracle_elements;

static int64_t dvti_oracle_at(const dvti_oracle_elements *e, int64_t k) {
    return e->first + dvti_cursor_at(&e->reduced, k).at;
}

static double dvti_oracle_element_f64(const dvti_oracle_elements *e, int64_t k) {
    return dvti_load_f64(e->kept.data, e->kept.dtype, dvti_oracle_at(e, k));
}

static int64_t dvti_oracle_element_i64(const dvti_oracle_elements *e, int64_t k) {
    return dvti_load_i64(e->kept.data, e->kept.dtype, dvti_oracle_at(e, k));
}

static dvti_oracle_elements dvti_oracle_elements_of(const dvti_launch *launch) {
    const int kept = (int)launch->i[0];
    dvti_oracle_elements e;
    int i;
    e.kept = e.reduced = launch->in[0];
    e.kept.ndim = kept;
    e.reduced.ndim = launch->in[0].ndim - kept;
    for (i = 0; i < e.reduced.ndim; i++) {
        e.reduced.dim[i] = launch->in[0].dim[kept + i];
        e.reduced.stride[i] = launch->in[0].stride[kept + i];
    }
    e.n = dvti_view_size(&e.reduced);
    e.first = 0;
    dvti_merge_axes(&e.kept);
    dvti_merge_axes(&e.reduced);
    return e;
}

/* ---- one result ---- */
/* Returns the first position that join chooses: that of the first element, then wherever the value
   changes. */
static int64_t dvti_oracle_place(const dvti_oracle_elements *e, dvti_op op) {
    const bool integer = !dvt_dtype_is_float(e->kept.dtype);
    int64_t k, at = 0;
    for (k = 1; k < e->n; k++) {
        if (integer) {
            const int64_t s = dvti_oracle_element_i64(e, at);
            at = dvti_oracle_join_i64(op, s, dvti_oracle_element_i64(e, k)) != s ? k : at;
        } else {
            const double s = dvti_oracle_element_f64(e, at);
            at = s == s && dvti_oracle_join_f64(op, s, dvti_oracle_element_f64(e, k)) != s ? k : at;
        }
    }
    return at;
}

/* Subtracts the maximum, so that no exponential overflows. */
static double dvti_oracle_logsumexp(const dvti_oracle_elements *e) {
    double most = -(double)INFINITY, sum = 0;
    int64_t k;
    for (k = 0; k < e->n; k++)
        most = dvti_f64_larger(most, dvti_oracle_element_f64(e, k));
    if (most - most != 0) /* infinite or NaN */
        return most;
    for (k = 0; k < e->n; k++)
        sum += exp(dvti_oracle_element_f64(e, k) - most);
    return most + log(sum);
}

DVTI_FN void dvti_oracle_reduce(const dvti_launch *launch) {
    const dvti_reduce_row *row = dvti_reduce_row_of(launch->op);
    const dvti_view *out = &launch->out[0]; /* contiguous */
    const bool integer = row->rule != DVTI_RESULT_FLOAT && !dvt_dtype_is_float(launch->in[0].dtype);
    dvti_oracle_elements e = dvti_oracle_elements_of(launch);
    const int64_t results = dvti_view_size(out);
    int64_t result, k;
    for (result = 0; result < results; result++) {
        double f = dvti_reduce_start_f64(launch->op);
        int64_t i = dvti_reduce_start_i64(launch->op);
        e.first = dvti_cursor_at(&e.kept, result).at;
        if (row->rule == DVTI_RESULT_PLACE) {
            dvti_store_i64(out->data, out->dtype, result, dvti_oracle_place(&e, launch->op));
        } else if (integer) {
            for (k = 0; k < e.n; k++)
                i = dvti_oracle_join_i64(launch->op, i, dvti_oracle_element_i64(&e, k));
            dvti_store_i64(out->data, out->dtype, result, i);
        } else if (row->method == DVTI_METHOD_LOGSUMEXP) {
            dvti_store_f64(out->data, out->dtype, result, dvti_oracle_logsumexp(&e));
        } else {
            for (k = 0; k < e.n; k++)
                f = dvti_oracle_join_f64(launch->op, f, dvti_oracle_element_f64(&e, k));
            dvti_store_f64(out->data, out->dtype, result,
                           dvti_reduce_finish_f64(launch->op, f, (double)e.n));
        }
    }
}

/* Rounds differences and squares to the dtype, as separate operations do. */
DVTI_FN void dvti_oracle_variance(const dvti_launch *launch) {
    const dvti_view *mean = &launch->in[1], *out = &launch->out[0]; /* contiguous */
    dvti_oracle_elements e = dvti_oracle_elements_of(launch);
    const int64_t results = dvti_view_size(out);
    int64_t result, k;
    for (result = 0; result < results; result++) {
        const double m = dvti_load_f64(mean->data, mean->dtype, result);
        double sum = 0;
        e.first = dvti_cursor_at(&e.kept, result).at;
        for (k = 0; k < e.n; k++) {
            const double x = dvti_oracle_element_f64(&e, k);
            const float d = (float)x - (float)m, square = d * d;
            sum += mean->dtype == DVT_F64 ? (x - m) * (x - m) : (double)square;
        }
        dvti_store_f64(out->data, out->dtype, result, sum);
    }
}
