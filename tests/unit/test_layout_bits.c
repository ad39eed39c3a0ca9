/* Tests which results depend on the memory layout, as stated in docs/DECISIONS.md, "Sums in
   float64, in a fixed order". */
#include "dvt_test.h"

typedef dvt_array *(*layout_fn)(dvt_array *x, int axis);

/* axis -1 means all axes, where the operation supports it. */
#define REDUCED(name)                                                                              \
    static dvt_array *name##_of(dvt_array *x, int axis) {                                          \
        return dvt_##name(x, axis < 0 ? DVT_ALL : DVT_AXES(axis));                                 \
    }
REDUCED(sum)
REDUCED(mean)
REDUCED(prod)
REDUCED(norm)
REDUCED(logsumexp)
REDUCED(min)
REDUCED(max)
REDUCED(any)
REDUCED(all)
#undef REDUCED

static dvt_array *std_of(dvt_array *x, int axis) {
    return dvt_std(x, axis < 0 ? DVT_ALL : DVT_AXES(axis), 0);
}

static dvt_array *argmin_of(dvt_array *x, int axis) {
    return dvt_argmin(x, axis < 0 ? DVT_ALL : DVT_AXES(axis));
}

static dvt_array *argmax_of(dvt_array *x, int axis) {
    return dvt_argmax(x, axis < 0 ? DVT_ALL : DVT_AXES(axis));
}

static dvt_array *cumsum_of(dvt_array *x, int axis) {
    return dvt_cumsum(x, axis < 0 ? 0 : axis);
}

static dvt_array *sort_of(dvt_array *x, int axis) {
    return dvt_sort(x, axis < 0 ? 0 : axis, DVT_DESCENDING);
}

static dvt_array *softmax_of(dvt_array *x, int axis) {
    return dvt_softmax(x, axis < 0 ? 0 : axis);
}

static dvt_array *log_softmax_of(dvt_array *x, int axis) {
    return dvt_log_softmax(x, axis < 0 ? 0 : axis);
}

static dvt_array *layer_norm_of(dvt_array *x, int axis) {
    (void)axis;
    return dvt_layer_norm(x, NULL, NULL, 1e-5);
}

/* same: the bits do not depend on the layout. whole: the same holds for integers only. */
typedef struct layout_row {
    const char *name;
    layout_fn f;
    bool same, integers;
} layout_row;

static const layout_row layout_rows[] = {{"sum", sum_of, false, true},
                                         {"prod", prod_of, false, true},
                                         {"mean", mean_of, false, false},
                                         {"norm", norm_of, false, false},
                                         {"std", std_of, false, false},
                                         {"logsumexp", logsumexp_of, false, false},
                                         {"softmax", softmax_of, false, false},
                                         {"log_softmax", log_softmax_of, false, false},
                                         {"min", min_of, true, true},
                                         {"max", max_of, true, true},
                                         {"any", any_of, true, true},
                                         {"all", all_of, true, true},
                                         {"argmin", argmin_of, true, true},
                                         {"argmax", argmax_of, true, true},
                                         {"cumsum", cumsum_of, true, true},
                                         {"sort", sort_of, true, true},
                                         {"layer_norm", layer_norm_of, false, false}};

enum { LAYOUT_ROWS = (int)(sizeof layout_rows / sizeof *layout_rows), LAYOUT_KINDS = 6 };

/* Returns the elements of x in layout `how`. For x = ((a, b, c), (d, e, f)) the memory is:

        0   a b c d e f               C order
        1   a d b e c f               Fortran order
        2   a . b . c . d . e . f .   every second element of the last axis
        3   f e d c b a               all axes reversed
        4   a b c . . . d e f . . .   rows with a gap
        5   a b c . . . d e f . . .   every second row: a gap at the first axis */
static dvt_array *laid_out(dvt_array *x, int how) {
    dvt_shape shape = dvt_shape_of(x);
    int last = shape.ndim - 1, i;
    dvt_array *y = x;
    if (how == 0)
        return x;
    if (how == 1)
        return dvt_transpose(dvt_contiguous(dvt_transpose(x, DVT_ALL)), DVT_ALL);
    if (how == 3) {
        for (i = 0; i < shape.ndim; i++)
            y = dvt_slice(y, i, -1, DVT_END, -1);
        y = dvt_contiguous(y);
        for (i = 0; i < shape.ndim; i++)
            y = dvt_slice(y, i, -1, DVT_END, -1);
        return y;
    }
    shape.dim[how == 5 ? 0 : last] *= 2;
    y = dvt_zeros(shape, dvt_dtype_of(x), dvt_ctx_of(x));
    if (how == 4)
        y = dvt_slice(y, last, 0, dvt_dim(x, last), 1);
    else
        y = dvt_slice(y, how == 5 ? 0 : last, 0, DVT_END, 2);
    return dvt_copy_into(y, x);
}

static dvt_array *layout_values(dvt_shape shape, dvt_dtype dtype) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)n);
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] =
            dvt_dtype_is_float(dtype) ? dvt_test_random(-1.6, 2) : floor(dvt_test_random(0, 100));
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

static bool same_bits(dvt_array *a, dvt_array *b) {
    int64_t n = dvt_nbytes(a);
    char *x = (char *)malloc((size_t)n), *y = (char *)malloc((size_t)n);
    bool same = dvt_to_host(dvt_contiguous(a), x, n) == DVT_OK &&
                dvt_to_host(dvt_contiguous(b), y, n) == DVT_OK && memcmp(x, y, (size_t)n) == 0;
    free(x);
    free(y);
    return same;
}

/* Checks that layouts differ by at most some ulps of the sum of magnitudes. For products the bound
   is one ulp for each factor. */
static void check_last_bits(const layout_row *row, dvt_array *x, int axis, dvt_array *a,
                            dvt_array *b) {
    dvt_dtype dtype = dvt_dtype_of(a);
    double unit = dtype == DVT_F64   ? 0x1p-53
                  : dtype == DVT_F32 ? 0x1p-24
                  : dtype == DVT_F16 ? 0x1p-11
                                     : 0x1p-8;
    dvt_array *sizes = row->f == sum_of || row->f == mean_of ? row->f(dvt_abs(x), axis) : a;
    double *va = dvt_test_values(a), *vb = dvt_test_values(b), *size = dvt_test_values(sizes);
    double most = row->f == prod_of ? 2 * (double)dvt_size(x) : 32;
    int64_t i;
    for (i = 0; i < dvt_size(a); i++) {
        double scale = fabs(size[i]);
        if (row->f == logsumexp_of || row->f == log_softmax_of || row->f == layer_norm_of)
            scale = fmax(scale, 4);
        if (row->f == std_of) /* of equal values: the rounding of their mean */
            scale = fmax(scale, 4);
        if (!dvt_test_check(va[i] == vb[i] || fabs(va[i] - vb[i]) <= most * unit * scale, __FILE__,
                            __LINE__,
                            "%s of %s, axis %d: element %d is %.17g, and %.17g in another layout",
                            row->name, dvt_dtype_name(dtype), axis, (int)i, va[i], vb[i]))
            break;
    }
    free(va);
    free(vb);
    free(size);
}

static const dvt_dtype layout_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16,
                                          DVT_I32, DVT_U8,  DVT_BOOL};

static void check_layouts(dvt_shape shape) {
    int d, r, axis, how;
    for (d = 0; d < 7; d++)
        DVT_SCOPE {
            dvt_array *x = layout_values(shape, layout_dtypes[d]), *laid[LAYOUT_KINDS];
            bool real = dvt_dtype_is_float(layout_dtypes[d]);
            for (how = 0; how < LAYOUT_KINDS; how++)
                laid[how] = laid_out(x, how);
            for (r = 0; r < LAYOUT_ROWS; r++)
                for (axis = -1; axis < shape.ndim; axis++)
                    for (how = 1; how < LAYOUT_KINDS; how++)
                        DVT_SCOPE {
                            const layout_row *row = &layout_rows[r];
                            dvt_array *a = row->f(x, axis), *b = row->f(laid[how], axis);
                            if (row->same || (!real && row->integers))
                                dvt_test_check(same_bits(a, b), __FILE__, __LINE__,
                                               "%s of %s, axis %d, layout %d: bits differ",
                                               row->name, dvt_dtype_name(layout_dtypes[d]), axis,
                                               how);
                            else
                                check_last_bits(row, x, axis, a, b);
                        }
        }
}

DVT_TEST(layout_bits) {
    check_layouts(DVT_SHAPE(5, 3));
    check_layouts(DVT_SHAPE(33, 65));
    check_layouts(DVT_SHAPE(1500));
    check_layouts(DVT_SHAPE(3, 20, 17));
}

/* The result in one layout does not depend on the number of threads or on the address. */
DVT_TEST(layout_bits_threads) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16};
    int d, r, how, axis, threads = dvt_num_threads();
    for (d = 0; d < 3; d++)
        DVT_SCOPE {
            dvt_array *x = layout_values(DVT_SHAPE(40, 1100), dtypes[d]);
            dvt_array *wide = dvt_zeros(DVT_SHAPE(44003), dtypes[d], dvt_cpu());
            dvt_array *moved = dvt_slice(wide, 0, 3, DVT_END, 1);
            moved = dvt_copy_into(dvt_reshape(moved, dvt_shape_of(x)), x);
            CHECK(dvt_shares_memory(moved, wide));
            for (r = 0; r < LAYOUT_ROWS; r++)
                for (how = 0; how < 2; how++)
                    for (axis = -1; axis < 2; axis++)
                        DVT_SCOPE {
                            dvt_array *a, *b;
                            CHECK_INT(dvt_set_num_threads(1), DVT_OK);
                            a = layout_rows[r].f(how ? dvt_transpose(x, DVT_ALL) : x, axis);
                            CHECK_INT(dvt_set_num_threads(3), DVT_OK);
                            b = layout_rows[r].f(how ? dvt_transpose(moved, DVT_ALL) : moved, axis);
                            dvt_test_check(same_bits(a, b), __FILE__, __LINE__,
                                           "%s of %s, axis %d, transposed %d: bits depend on "
                                           "threads or address",
                                           layout_rows[r].name, dvt_dtype_name(dtypes[d]), axis,
                                           how);
                        }
        }
    dvt_set_num_threads(threads);
}

/* Elements repeated by a stride of 0. */
DVT_TEST(layout_bits_broadcast) {
    int d, r, axis;
    for (d = 0; d < 7; d++)
        DVT_SCOPE {
            dvt_array *row = layout_values(DVT_SHAPE(1, 70), layout_dtypes[d]);
            dvt_array *x = dvt_broadcast_to(row, DVT_SHAPE(20, 70)), *y = dvt_copy(x);
            for (r = 0; r < LAYOUT_ROWS; r++)
                for (axis = 0; axis < 2; axis++) {
                    const layout_row *l = &layout_rows[r];
                    dvt_array *a = l->f(y, axis), *b = l->f(x, axis);
                    if (l->same || (!dvt_dtype_is_float(layout_dtypes[d]) && l->integers))
                        CHECK(same_bits(a, b));
                    else
                        check_last_bits(l, y, axis, a, b);
                }
        }
}
