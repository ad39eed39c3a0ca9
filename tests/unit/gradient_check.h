/* Checks one problem in several ways. First and second derivatives must match central differences
   in float64. A value overwritten after recording must be either refused or not read. The
   test_gradients files use this header.

   On a GPU (dvt_test_ctx) both derivatives are computed in float32 and compared with those of cpu()
   in float64. */
#ifndef GRADIENT_CHECK_H
#define GRADIENT_CHECK_H
#include "dvt_test.h"

#define MAX_INPUTS 3
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

typedef dvt_array *(*compute_fn)(dvt_array *const *x, const void *user);

typedef struct problem {
    const char *name;
    compute_fn compute;
    const void *user;
    int n; /* number of inputs */
    dvt_shape shape[MAX_INPUTS];
    double low[MAX_INPUTS], high[MAX_INPUTS]; /* random values are uniform between these */
    const double *fixed[MAX_INPUTS];          /* values that replace the random ones */
} problem;

static problem problem_begin(const char *name, compute_fn compute, const void *user) {
    problem p;
    memset(&p, 0, sizeof p);
    p.name = name;
    p.compute = compute;
    p.user = user;
    return p;
}

static void problem_input(problem *p, dvt_shape shape, double low, double high) {
    p->shape[p->n] = shape;
    p->low[p->n] = low;
    p->high[p->n++] = high;
}

static double *random_values(dvt_shape shape, double low, double high, const double *fixed) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    for (i = 0; i < n; i++)
        values[i] = fixed ? fixed[i] : (double)(float)dvt_test_random(low, high);
    return values;
}

static bool check_on_cpu; /* computes the exact values of a problem for comparison with a GPU */
static dvt_dtype check_dtype = DVT_F64;

static dvt_ctx check_ctx(void) {
    return check_on_cpu ? dvt_cpu() : dvt_test_ctx();
}

static dvt_array *constant_of(const double *values, dvt_shape shape) {
    dvt_array *x = dvt_from_host(values, shape, DVT_F64, dvt_cpu());
    return dvt_as_in_ctx(dvt_as_in_dtype(x, check_dtype), check_ctx());
}

static dvt_array *leaf_of(const double *values, dvt_shape shape) {
    dvt_array *x = constant_of(values, shape);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    return x;
}

/* Returns the sum of weight * x. */
static double dot(dvt_array *x, const double *weight) {
    double *values = dvt_test_values(x), sum = 0;
    int64_t i;
    for (i = 0; values && i < dvt_size(x); i++)
        sum += weight[i] * values[i];
    if (!values)
        sum = (double)NAN;
    free(values);
    return sum;
}

/* The values of one check: the inputs, the head gradient and the weights of the first gradients. On
   a GPU it also holds the float64 derivatives of both orders from cpu(). */
typedef struct point {
    const problem *p;
    dvt_shape head_shape;
    double *value[MAX_INPUTS + 1], *weight[MAX_INPUTS];
    double *exact[2][MAX_INPUTS + 1];
} point;

static void point_arrays(const point *at, dvt_array **x, dvt_array **head) {
    int k;
    for (k = 0; k < at->p->n; k++)
        x[k] = leaf_of(at->value[k], at->p->shape[k]);
    *head = leaf_of(at->value[k], at->head_shape);
}

static dvt_array *record(const problem *p, dvt_array *const *x) {
    dvt_array *y = NULL;
    DVT_RECORD {
        y = p->compute(x, p->user);
    }
    return y;
}

/* Returns head . y for order 0, and the weighted sum of the first gradients for order 1. */
static double objective(const point *at, int order) {
    double result = (double)NAN;
    DVT_SCOPE {
        dvt_array *x[MAX_INPUTS], *g[MAX_INPUTS], *head, *y;
        int k;
        point_arrays(at, x, &head);
        y = record(at->p, x);
        if (order == 0)
            result = y ? dot(y, at->value[at->p->n]) : result;
        else if (dvt_gradients(&y, &head, 1, x, at->p->n, DVT_FREE_GRAPH, g) == DVT_OK)
            for (result = 0, k = 0; k < at->p->n; k++)
                result += dot(g[k], at->weight[k]);
    }
    return result;
}

/* ---- derivatives against differences or exact values ---- */
static double difference(point *at, int order, int input, int64_t element) {
    const double step = 1e-5;
    double *place = &at->value[input][element], here = *place, above;
    *place = here + step;
    above = objective(at, order - 1);
    *place = here - step;
    above -= objective(at, order - 1);
    *place = here;
    return above / (2 * step);
}

static void compare(point *at, int order, int input, dvt_array *gradient) {
    dvt_shape shape = input < at->p->n ? at->p->shape[input] : at->head_shape;
    double *values, *exact = at->exact[order - 1][input];
    int64_t i;
    dvt_test_check(gradient && dvt_shape_equal(dvt_shape_of(gradient), shape) &&
                       dvt_dtype_of(gradient) == check_dtype,
                   __FILE__, __LINE__,
                   "%s: the gradient of order %d to input %d has another dtype or shape",
                   at->p->name, order, input);
    values = dvt_test_values(gradient);
    if (check_on_cpu) {
        at->exact[order - 1][input] = values;
        return;
    }
    for (i = 0; values && i < dvt_shape_size(shape); i++) {
        double wanted = exact ? exact[i] : difference(at, order, input, i);
        if (!dvt_test_check(dvt_test_close(values[i], wanted, exact ? 2e-5 : 2e-6), __FILE__,
                            __LINE__, "%s: order %d, input %d, element %lld is %.12g, %s %.12g",
                            at->p->name, order, input, (long long)i, values[i],
                            exact ? "in float64 on cpu()" : "by differences", wanted))
            break;
    }
    free(values);
}

static bool check_first(point *at) {
    bool good = false;
    DVT_SCOPE {
        dvt_array *x[MAX_INPUTS], *g[MAX_INPUTS], *head, *y;
        int k;
        point_arrays(at, x, &head);
        y = record(at->p, x);
        good = dvt_test_check(dvt_gradients(&y, &head, 1, x, at->p->n, DVT_FREE_GRAPH, g) == DVT_OK,
                              __FILE__, __LINE__, "%s: %s", at->p->name, dvt_error()) != 0;
        for (k = 0; good && k < at->p->n; k++)
            compare(at, 1, k, g[k]);
    }
    return good;
}

/* Differentiates the first gradients again, with respect to the inputs and the head gradient. */
static void check_second(point *at) {
    DVT_SCOPE {
        dvt_array *x[MAX_INPUTS + 1], *g[MAX_INPUTS], *heads[MAX_INPUTS], *weights[MAX_INPUTS];
        dvt_array *second[MAX_INPUTS + 1] = {NULL, NULL, NULL, NULL}, *head, *y;
        int k, n = 0, inputs = at->p->n;
        point_arrays(at, x, &head);
        x[inputs] = head;
        y = record(at->p, x);
        if (!dvt_test_check(dvt_gradients(&y, &head, 1, x, inputs, DVT_CREATE_GRAPH, g) == DVT_OK,
                            __FILE__, __LINE__, "%s, recorded: %s", at->p->name, dvt_error()))
            return;
        for (k = 0; k < inputs; k++)
            if (dvt_has_history(g[k])) { /* a gradient that is zero everywhere has no history */
                heads[n] = g[k];
                weights[n++] = constant_of(at->weight[k], at->p->shape[k]);
            }
        if (n)
            dvt_test_check(
                dvt_gradients(heads, weights, n, x, inputs + 1, DVT_FREE_GRAPH, second) == DVT_OK,
                __FILE__, __LINE__, "%s, second order: %s", at->p->name, dvt_error());
        for (k = 0; k <= inputs; k++)
            compare(at, 2, k, n ? second[k] : dvt_zeros_like(x[k]));
    }
}

/* Fills one input or the result with NaN after recording. Backward must fail or give the same
   gradients. */
static void check_overwritten(const point *at, int target) {
    DVT_SCOPE {
        dvt_array *x[MAX_INPUTS], *g[MAX_INPUTS], *again[MAX_INPUTS], *head, *y;
        dvt_status status;
        int k, inputs = at->p->n;
        point_arrays(at, x, &head);
        y = record(at->p, x);
        if (y && dvt_gradients(&y, &head, 1, x, inputs, DVT_RETAIN_GRAPH, g) == DVT_OK &&
            dvt_fill(target < inputs ? x[target] : y, (double)NAN)) {
            status = dvt_gradients(&y, &head, 1, x, inputs, DVT_RETAIN_GRAPH, again);
            dvt_test_check(status == DVT_OK || status == DVT_ERR_GRAD, __FILE__, __LINE__, "%s: %s",
                           at->p->name, dvt_error());
            for (k = 0; status == DVT_OK && k < inputs; k++) {
                double *old = dvt_test_values(g[k]), *now = dvt_test_values(again[k]);
                dvt_test_check(memcmp(old, now, sizeof(double) * (size_t)dvt_size(g[k])) == 0,
                               __FILE__, __LINE__,
                               "%s: the gradient to input %d reads value %d, which was overwritten",
                               at->p->name, k, target);
                free(old);
                free(now);
            }
            dvt_clear_error();
        } else
            dvt_clear_error(); /* writing to a broadcast result is an error */
    }
}

/* Computes in float64 what a GPU must compute. The inputs are exact in float32. */
static void find_exact(point *at) {
    check_on_cpu = true;
    if (check_first(at))
        check_second(at);
    check_on_cpu = false;
    check_dtype = DVT_F32;
}

static void check_problem(const problem *p) {
    bool on_gpu = dvt_test_ctx().type == DVT_DEVICE_GPU;
    point at;
    int k;
    memset(&at, 0, sizeof at);
    at.p = p;
    for (k = 0; k < p->n; k++) {
        at.value[k] = random_values(p->shape[k], p->low[k], p->high[k], p->fixed[k]);
        at.weight[k] = random_values(p->shape[k], -1, 1, NULL);
    }
    DVT_SCOPE {
        dvt_array *x[MAX_INPUTS], *y;
        for (k = 0; k < p->n; k++)
            x[k] = leaf_of(at.value[k], p->shape[k]);
        y = record(p, x);
        dvt_test_check(y != NULL, __FILE__, __LINE__, "%s: %s", p->name, dvt_error());
        at.head_shape = dvt_shape_of(y);
    }
    at.value[p->n] = random_values(at.head_shape, 0.5, 1.5, NULL);
    if (on_gpu)
        find_exact(&at);
    if (check_first(&at)) {
        check_second(&at);
        for (k = 0; k <= p->n; k++)
            check_overwritten(&at, k);
    }
    check_dtype = DVT_F64;
    for (k = 0; k <= p->n; k++) {
        free(at.value[k]);
        free(at.exact[0][k]);
        free(at.exact[1][k]);
    }
    for (k = 0; k < p->n; k++)
        free(at.weight[k]);
}

/* Checks a function of one input with values between low and high. */
static void check_one(const char *name, compute_fn compute, const void *user, dvt_shape shape,
                      double low, double high) {
    problem p = problem_begin(name, compute, user);
    problem_input(&p, shape, low, high);
    check_problem(&p);
}

/* Checks a function of two inputs with values in [-2, 2]. */
static inline void check_two(const char *name, compute_fn compute, const void *user, dvt_shape a,
                             dvt_shape b) {
    problem p = problem_begin(name, compute, user);
    problem_input(&p, a, -2, 2);
    problem_input(&p, b, -2, 2);
    check_problem(&p);
}

#endif
