/* Tests of gradients of the op table's rows, of select, copies, views, joining and indexing.
   test_gradients_sums.c has products and reductions, test_gradients_conv.c has convolution.
   test_gradients_points.c has kinks, zeros and large arguments. */
#include "gradient_check.h"
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"

/* ---- the table ---- */
typedef struct unary_row {
    const char *name;
    dvt_array *(*f)(dvt_array *);
    double low, high;
} unary_row;

typedef struct binary_row {
    const char *name;
    dvt_array *(*f)(dvt_array *, dvt_array *);
    dvt_array *(*behind)(dvt_array *, double);
    dvt_array *(*before)(double, dvt_array *);
    double low_a, high_a, low_b, high_b;
} binary_row;

/* Rows whose result is bool have no gradient. */
#define IF_SAME(x) x
#define IF_NOBOOL(x) x
#define IF_FLOAT(x) x
#define IF_BOOL(x)
#define COMMA ,
#define UNARY(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)                      \
    IF_##rule({#name COMMA dvt_##name COMMA lo COMMA hi} COMMA)
#define BINARY(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb, hb,     \
               doc)                                                                                \
    IF_##rule({#name COMMA dvt_##name COMMA dvt_##name##_scalar COMMA dvt_scalar_##name COMMA la   \
                   COMMA ha COMMA lb COMMA hb} COMMA)
static const unary_row unary_rows[] = {DVTI_UNARY_TABLE(UNARY)};
static const binary_row binary_rows[] = {DVTI_BINARY_TABLE(BINARY)};

static dvt_array *apply_unary(dvt_array *const *x, const void *user) {
    return ((const unary_row *)user)->f(x[0]);
}

static dvt_array *apply_unary_to_view(dvt_array *const *x, const void *user) {
    return ((const unary_row *)user)
        ->f(dvt_transpose(dvt_slice(x[0], 1, -1, DVT_END, -2), DVT_ALL));
}

static dvt_array *apply_binary(dvt_array *const *x, const void *user) {
    return ((const binary_row *)user)->f(x[0], x[1]);
}

static dvt_array *apply_behind(dvt_array *const *x, const void *user) {
    const binary_row *row = (const binary_row *)user;
    return row->behind(x[0], 0.3 * row->low_b + 0.7 * row->high_b);
}

static dvt_array *apply_before(dvt_array *const *x, const void *user) {
    const binary_row *row = (const binary_row *)user;
    return row->before(0.3 * row->low_a + 0.7 * row->high_a, x[0]);
}

DVT_TEST(gradients_of_unary_rows) {
    int i;
    for (i = 0; i < COUNT(unary_rows); i++) {
        const unary_row *row = &unary_rows[i];
        if (EACH_THERE(i, 3))
            check_one(row->name, apply_unary, row, DVT_SHAPE(2, 3), row->low, row->high);
        if (EACH_THERE(i, 6))
            check_one(row->name, apply_unary_to_view, row, DVT_SHAPE(2, 3), row->low, row->high);
    }
    CHECK(COUNT(unary_rows) >= 32);
}

static void check_binary(const binary_row *row, dvt_shape a, dvt_shape b) {
    problem p = problem_begin(row->name, apply_binary, row);
    problem_input(&p, a, row->low_a, row->high_a);
    problem_input(&p, b, row->low_b, row->high_b);
    check_problem(&p);
}

DVT_TEST(gradients_of_binary_rows) {
    int i;
    for (i = 0; i < COUNT(binary_rows); i++) {
        const binary_row *row = &binary_rows[i];
        if (!EACH_THERE(i, 3))
            continue;
        check_binary(row, DVT_SHAPE(2, 3), DVT_SHAPE(2, 3));
        check_binary(row, DVT_SHAPE(2, 3), DVT_SHAPE(3));
        check_binary(row, DVT_SHAPE(2, 1), DVT_SHAPE(1, 3));
        check_binary(row, DVT_SCALAR, DVT_SHAPE(2, 2));
        check_one(row->name, apply_behind, row, DVT_SHAPE(4), row->low_a, row->high_a);
        check_one(row->name, apply_before, row, DVT_SHAPE(4), row->low_b, row->high_b);
    }
    CHECK(COUNT(binary_rows) >= 11);
}

static dvt_array *apply_row_to_empty(dvt_array *const *x, const void *user) {
    return ((const unary_row *)user)->f(x[0]);
}

DVT_TEST(gradients_of_empty_arrays) {
    check_one("empty", apply_row_to_empty, &unary_rows[0], DVT_SHAPE(2, 0), 0, 1);
}

/* In every float dtype the gradient has the shape and dtype of its input, for any dtype of the
   other operand. */
DVT_TEST(gradients_of_binary_rows_with_mixed_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_F64, DVT_I32, DVT_U8};
    int i, a, b;
    for (i = 0; i < COUNT(binary_rows); i++)
        for (a = 0; a < 4; a++)
            for (b = 0; b < COUNT(dtypes); b++) {
                if (!EACH_THERE(i + 7 * a + 5 * b, 31))
                    continue;
                DVT_SCOPE {
                    const binary_row *row = &binary_rows[i];
                    double middle = 0.5 * (row->low_a + row->high_a);
                    dvt_array *x[2], *wide[2], *y = NULL, *exact = NULL, *g[2];
                    int n = b < 4 ? 2 : 1;
                    x[0] = dvt_full(DVT_SHAPE(2, 1), middle, dtypes[a], dvt_test_ctx());
                    x[1] = dvt_full(DVT_SHAPE(3), 1.0, dtypes[b], dvt_test_ctx());
                    wide[0] = dvt_astype(x[0], DVT_F64);
                    wide[1] = dvt_astype(x[1], DVT_F64);
                    dvt_attach_grad(x[0], DVT_GRAD_WRITE);
                    dvt_attach_grad(wide[0], DVT_GRAD_WRITE);
                    if (n == 2) {
                        dvt_attach_grad(x[1], DVT_GRAD_WRITE);
                        dvt_attach_grad(wide[1], DVT_GRAD_WRITE);
                    }
                    DVT_RECORD {
                        y = row->f(x[0], x[1]);
                        exact = row->f(wide[0], wide[1]);
                    }
                    CHECK_INT(dvt_gradients(&y, NULL, 1, x, n, DVT_FREE_GRAPH, g), DVT_OK);
                    CHECK_INT(dvt_backward(exact), DVT_OK);
                    for (n--; n >= 0; n--) {
                        double *near = dvt_test_values(g[n]);
                        double *far = dvt_test_values(dvt_grad(wide[n]));
                        CHECK_INT(dvt_dtype_of(g[n]), dvt_dtype_of(x[n]));
                        CHECK(dvt_shape_equal(dvt_shape_of(g[n]), dvt_shape_of(x[n])));
                        dvt_test_check(dvt_test_close(near[0], far[0], 0.04), __FILE__, __LINE__,
                                       "%s of %s and %s: gradient %d is %g, in float64 %g",
                                       row->name, dvt_dtype_name(dtypes[a]),
                                       dvt_dtype_name(dtypes[b]), n, near[0], far[0]);
                        free(near);
                        free(far);
                    }
                }
            }
}

/* Squares of a narrow operand must not be computed in its own dtype. */
DVT_TEST(gradients_are_computed_in_the_dtype_of_the_result) {
    dvt_array *a = dvt_full(DVT_SHAPE(1), 100, DVT_U8, dvt_test_ctx());
    dvt_array *b = dvt_full(DVT_SHAPE(1), 100, DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_attach_grad(b, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_atan2(a, b);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(b), 1e-6, -0.005);
}

/* ---- select and copies ---- */
static dvt_array *select_by_pattern(dvt_array *const *x, const void *user) {
    static const double pattern[] = {1, 0, 0, -3, 0, 0.5};
    (void)user;
    return dvt_where(constant_of(pattern, DVT_SHAPE(2, 3)), x[0], x[1]);
}

static dvt_array *select_by_value(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_where(x[0], dvt_square(x[1]), x[2]);
}

static dvt_array *clip_both(dvt_array *const *x, const void *user) {
    const double *bounds = (const double *)user;
    return dvt_clip(dvt_square(x[0]), bounds[0], bounds[1]);
}

static dvt_array *clip_leaf(dvt_array *const *x, const void *user) {
    const double *bounds = (const double *)user;
    return dvt_clip(x[0], bounds[0], bounds[1]);
}

static dvt_array *copy_of(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_mul(dvt_copy(x[0]), dvt_contiguous(dvt_square(x[0])));
}

static dvt_array *copy_to_cpu1_and_back(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_as_in_ctx(dvt_exp(dvt_copyto(x[0], dvt_cpu_id(1))), check_ctx());
}

static dvt_array *copy_into_buffer(dvt_array *const *x, const void *user) {
    dvt_array *buffer = dvt_zeros(DVT_SHAPE(2, 3), check_dtype, check_ctx());
    (void)user;
    return dvt_mul(dvt_copy_into(buffer, x[0]), x[0]);
}

DVT_TEST(gradients_of_select_and_copies) {
    const double bounds[] = {0.5, 2.5}, open[] = {-(double)INFINITY, 1};
    problem p = problem_begin("where by value", select_by_value, NULL);
    check_two("where", select_by_pattern, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(1, 3));
    check_two("where", select_by_pattern, NULL, DVT_SHAPE(2, 1), DVT_SCALAR);
    problem_input(&p, DVT_SHAPE(3), 0.5, 1);
    problem_input(&p, DVT_SHAPE(2, 1), -2, 2);
    problem_input(&p, DVT_SHAPE(3), -2, 2);
    check_problem(&p);
    check_one("clip", clip_both, bounds, DVT_SHAPE(8), -2, 2);
    check_one("clip", clip_leaf, bounds, DVT_SHAPE(8), -2, 4);
    check_one("clip above", clip_both, open, DVT_SHAPE(8), -2, 2);
    check_one("copy", copy_of, NULL, DVT_SHAPE(2, 3), -2, 2);
    check_one("copyto", copy_to_cpu1_and_back, NULL, DVT_SHAPE(2, 3), -2, 2);
    check_one("copy_into", copy_into_buffer, NULL, DVT_SHAPE(2, 3), -2, 2);
}

DVT_TEST(gradients_cross_dtypes) {
    dvt_array *x = dvt_full(DVT_SHAPE(3), 0.5, DVT_F16, dvt_test_ctx()), *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_square(dvt_as_in_dtype(x, DVT_F64));
    }
    CHECK_INT(dvt_dtype_of(y), DVT_F64);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_INT(dvt_dtype_of(dvt_grad(x)), DVT_F16);
    CHECK_VALUES(dvt_grad(x), 0, 1, 1, 1);
}

DVT_TEST(gradients_return_to_the_source_device) {
    dvt_array *x, *w, *y = NULL, *z = NULL, *heads[2];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        x = dvt_full(DVT_SHAPE(2), 3, DVT_F32, dvt_gpu(0));
        w = dvt_full(DVT_SHAPE(2), 2, DVT_F32, dvt_gpu(1));
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        dvt_attach_grad(w, DVT_GRAD_ADD);
        DVT_RECORD {
            dvt_array *there = dvt_mul(dvt_copyto(x, dvt_gpu(1)), w);
            y = dvt_as_in_ctx(there, dvt_cpu());
            z = dvt_square(x);
        }
        heads[0] = y; /* heads on two contexts */
        heads[1] = z;
        CHECK_INT(dvt_backward_from(heads, NULL, 2, DVT_FREE_GRAPH), DVT_OK);
        CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_grad(x)), dvt_gpu(0)));
        CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_grad(w)), dvt_gpu(1)));
        CHECK_VALUES(dvt_grad(x), 0, 8, 8);
        CHECK_VALUES(dvt_grad(w), 0, 3, 3);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- views ---- */
static dvt_array *slices(dvt_array *const *x, const void *user) {
    const int64_t *bound = (const int64_t *)user;
    return dvt_square(dvt_slice(x[0], (int)bound[0], bound[1], bound[2], bound[3]));
}

static dvt_array *reshape_of_view(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_square(dvt_reshape(dvt_transpose(x[0], DVT_ALL), DVT_SHAPE(2, -1)));
}

static dvt_array *many_views(dvt_array *const *x, const void *user) {
    dvt_array *y = dvt_transpose(x[0], DVT_AXES(2, 0, 1));
    (void)user;
    y = dvt_swapaxes(dvt_expand_dims(y, 1), 0, -1);
    y = dvt_flatten(dvt_squeeze(y, DVT_AXES(1)));
    return dvt_exp(y);
}

static dvt_array *rows_and_index(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_mul(dvt_rows(x[0], 1, 3), dvt_index(x[0], -1));
}

static dvt_array *overlapping_windows(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_mul(dvt_slice(x[0], 0, 0, -1, 1), dvt_slice(x[0], 0, 1, DVT_END, 1));
}

static dvt_array *broadcasts(dvt_array *const *x, const void *user) {
    dvt_array *y = dvt_broadcast_to(x[0], DVT_SHAPE(2, 3, 4));
    (void)user;
    return dvt_mul(dvt_square(y), dvt_arange(0, 4, 1, check_dtype, check_ctx()));
}

static dvt_array *only_broadcast(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_broadcast_to(x[0], DVT_SHAPE(2, 3, 4));
}

static dvt_array *split_parts(dvt_array *const *x, const void *user) {
    dvt_array *part[3];
    (void)user;
    if (dvt_array_split(x[0], 3, 1, part) != DVT_OK)
        return NULL;
    return dvt_add(dvt_mul(part[1], part[2]), dvt_slice(part[0], 1, 0, 2, 1));
}

DVT_TEST(gradients_of_views) {
    static const int64_t bounds[][4] = {{0, 1, 3, 1},  {1, 0, DVT_END, 2}, {1, -1, DVT_END, -1},
                                        {1, 4, 0, -3}, {1, 3, DVT_END, 9}, {1, 2, DVT_END, -9},
                                        {0, 2, 2, 1},  {1, 1, 4, 2}};
    int i;
    for (i = 0; i < COUNT(bounds); i++)
        check_one("slice", slices, bounds[i], DVT_SHAPE(3, 5), -2, 2);
    check_one("reshape of a view", reshape_of_view, NULL, DVT_SHAPE(3, 4), -2, 2);
    check_one("views", many_views, NULL, DVT_SHAPE(2, 3, 2), -2, 2);
    check_one("rows and index", rows_and_index, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("overlapping", overlapping_windows, NULL, DVT_SHAPE(5), -2, 2);
    check_one("broadcast_to", broadcasts, NULL, DVT_SHAPE(3, 1), -2, 2);
    check_one("broadcast_to", broadcasts, NULL, DVT_SCALAR, -2, 2);
    check_one("only broadcast_to", only_broadcast, NULL, DVT_SHAPE(2, 1, 4), -2, 2);
    check_one("split", split_parts, NULL, DVT_SHAPE(2, 7), -2, 2);
}

/* ---- joining and indexing ---- */
static dvt_array *concat_three(dvt_array *const *x, const void *user) {
    dvt_array *parts[3];
    (void)user;
    parts[0] = x[0];
    parts[1] = dvt_square(x[1]);
    parts[2] = x[0]; /* one array twice */
    return dvt_mul(dvt_concat(parts, 3, 1), dvt_concat(parts, 3, -1));
}

static dvt_array *stack_two(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_exp(dvt_stack(x, 2, 1));
}

static dvt_array *indices_of(const int64_t *values, dvt_shape shape) {
    return dvt_from_host(values, shape, DVT_I64, check_ctx());
}

static dvt_array *take_rows(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {2, 0, -1, 2};
    (void)user;
    return dvt_square(dvt_take(x[0], indices_of(at, DVT_SHAPE(2, 2)), 0));
}

static dvt_array *take_columns(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {1, 1};
    (void)user;
    return dvt_square(dvt_take(dvt_transpose(x[0], DVT_ALL), indices_of(at, DVT_SHAPE(2)), -1));
}

static dvt_array *take_one(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {1};
    (void)user;
    return dvt_square(dvt_take(x[0], indices_of(at, DVT_SCALAR), 1));
}

static dvt_array *take_along(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {0, 1, 1, -1, 0, 0};
    (void)user;
    return dvt_square(dvt_take_along_axis(x[0], indices_of(at, DVT_SHAPE(3, 2)), 1));
}

static dvt_array *take_along_broadcast(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {0, 2, 2, 1};
    (void)user;
    return dvt_mul(dvt_take_along_axis(x[0], indices_of(at, DVT_SHAPE(4, 1)), 0),
                   dvt_take_along_axis(x[1], indices_of(at, DVT_SHAPE(4, 1)), 0));
}

static dvt_array *pick(dvt_array *const *x, const void *user) {
    static const int64_t at[] = {1, 0, 1};
    bool keepdims = user != NULL;
    return dvt_square(dvt_pick(x[0], indices_of(at, DVT_SHAPE(3)),
                               keepdims ? dvt_keepdims(DVT_AXES(-1)) : DVT_AXES(-1)));
}

DVT_TEST(gradients_of_joining_and_indexing) {
    check_two("concat", concat_three, NULL, DVT_SHAPE(2, 1), DVT_SHAPE(2, 3));
    check_two("concat", concat_three, NULL, DVT_SHAPE(2, 2), DVT_SHAPE(2, 0));
    check_two("stack", stack_two, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(2, 3));
    check_one("take", take_rows, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("take", take_columns, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("take", take_one, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("take_along_axis", take_along, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("take_along_axis", take_along, NULL, DVT_SHAPE(1, 2), -2, 2);
    check_two("take_along_axis", take_along_broadcast, NULL, DVT_SHAPE(3, 2), DVT_SHAPE(3, 1));
    check_one("pick", pick, NULL, DVT_SHAPE(3, 2), -2, 2);
    check_one("pick", pick, "keepdims", DVT_SHAPE(3, 2), -2, 2);
}

/* Returns sorted values whose distances exceed the steps of finite differences. */
static dvt_array *sorted(dvt_array *const *x, const void *user) {
    bool descending = user != NULL;
    return dvt_square(dvt_sort(x[0], 0, descending ? DVT_DESCENDING : DVT_ASCENDING));
}

/* Returns squares, so that gradients differ. Two of three along the axis are chosen, so some
   elements have gradient zero. */
static dvt_array *largest_two(dvt_array *const *x, const void *user) {
    return dvt_square(dvt_topk(x[0], 2, 0, (user == NULL) ? DVT_LARGEST : DVT_SMALLEST, NULL));
}

DVT_TEST(gradients_of_sort) {
    static const double values[] = {0.5, -1, 2, 1.5, -0.5, 1};
    int k;
    for (k = 0; k < 4; k++) {
        problem p = k < 2 ? problem_begin("sort", sorted, k ? "descending" : NULL)
                          : problem_begin("topk", largest_two, k > 2 ? "smallest" : NULL);
        problem_input(&p, DVT_SHAPE(3, 2), -2, 2);
        p.fixed[0] = values;
        check_problem(&p);
    }
}
