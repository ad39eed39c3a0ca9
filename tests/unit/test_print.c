/* Tests of printing, character by character: thousands of arrays as NumPy printed them
   (tests/golden), the tutorials' outputs, and the text around the values in each style. */
#include "comma_locale.h"
#include "dvt_golden.h"

static char text[1 << 16];

static const char *formatted(dvt_array *x, dvt_print_style style) {
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    options.style = style;
    options.no_newline = true;
    text[0] = 0;
    CHECK(dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK);
    return text;
}

/* ---- the golden file, written by tests/golden/make_print_numpy.py ---- */
typedef struct golden_case {
    char line[256], expected[1 << 16];
    size_t n_expected;
    dvt_print_options options;
    dvt_dtype dtype;
    dvt_shape shape;
    unsigned char *bytes;
} golden_case;

static int parse_header(golden_case *c) {
    char style[16], dtype[16], shape[64];
    int suppress;
    long long threshold;
    memset(&c->options, 0, sizeof c->options);
    if (sscanf(c->line, "case %15s %15s %63s %d %lld %d %d %d", style, dtype, shape,
               &c->options.precision, &threshold, &c->options.edge_items, &c->options.line_width,
               &suppress) != 8 ||
        dvt_dtype_parse(dtype, &c->dtype) != DVT_OK)
        return 0;
    c->options.threshold = threshold;
    c->options.suppress = suppress != 0;
    c->options.no_newline = true;
    c->options.style = strcmp(style, "np") == 0      ? DVT_PRINT_NP
                       : strcmp(style, "jax") == 0   ? DVT_PRINT_JAX
                       : strcmp(style, "torch") == 0 ? DVT_PRINT_TORCH
                                                     : DVT_PRINT_STR;
    c->shape = golden_shape(shape);
    return 1;
}

/* Computes element i of the generated cases. */
static void make_element(dvt_dtype dtype, int64_t i, unsigned char *at) {
    double value = (double)(i * 7919 % 2003 - 1001) * 0.37;
    float f32 = (float)value;
    int64_t i64 = (int64_t)value;
    int32_t i32 = (int32_t)i64;
    if (dtype == DVT_F64)
        memcpy(at, &value, 8);
    else if (dtype == DVT_F32)
        memcpy(at, &f32, 4);
    else if (dtype == DVT_I64)
        memcpy(at, &i64, 8);
    else if (dtype == DVT_I32)
        memcpy(at, &i32, 4);
    else if (dtype == DVT_BOOL)
        *at = i64 != 0;
    else
        *at = (unsigned char)i64;
}

static dvt_array *golden_array(golden_case *c, const char *data) {
    int64_t n = dvt_shape_size(c->shape), size = dvt_dtype_size(c->dtype), i;
    unsigned char *bytes = (unsigned char *)calloc((size_t)n + 1, (size_t)size);
    dvt_array *x;
    if (strncmp(data, "make", 4) == 0 && c->dtype == DVT_F16) {
        x = NULL;
        DVT_SCOPE {
            double *wide = (double *)malloc(sizeof(double) * (size_t)n);
            for (i = 0; i < n; i++)
                make_element(DVT_F64, i, (unsigned char *)&wide[i]);
            x = dvt_keep(dvt_astype(dvt_from_host(wide, c->shape, DVT_F64, dvt_cpu()), DVT_F16));
            free(wide);
        }
        free(bytes);
        return x;
    }
    if (strncmp(data, "make", 4) == 0)
        for (i = 0; i < n; i++)
            make_element(c->dtype, i, bytes + i * size);
    else
        for (i = 0, data += 4; i < n; i++) {
            char *end;
            uint64_t value = strtoull(data, &end, 16);
            uint32_t v32 = (uint32_t)value;
            uint16_t v16 = (uint16_t)value;
            data = end;
            if (size == 8)
                memcpy(bytes + 8 * i, &value, 8);
            else if (size == 4)
                memcpy(bytes + 4 * i, &v32, 4);
            else if (size == 2)
                memcpy(bytes + 2 * i, &v16, 2);
            else
                bytes[i] = (unsigned char)value;
        }
    x = dvt_from_host(bytes, c->shape, c->dtype, dvt_cpu());
    free(bytes);
    return x;
}

static int run_case(golden_case *c, const char *data) {
    dvt_array *x = golden_array(c, data);
    size_t length = 0;
    int same;
    if (!CHECK(x != NULL))
        return 0;
    text[0] = 0;
    if (!CHECK(dvt_format(x, &c->options, text, sizeof text, &length) == DVT_OK))
        return 0;
    same = length == c->n_expected && memcmp(text, c->expected, length) == 0;
    return dvt_test_check(same, __FILE__, __LINE__, "%s%sgives\n%s\nexpected\n%.*s", c->line, data,
                          text, (int)c->n_expected, c->expected);
}

static void run_golden(const char *name, int least) {
    static golden_case c;
    static char line[1 << 16], data[1 << 16];
    FILE *file = golden_open(__FILE__, name);
    int cases = 0, more;
    if (!CHECK(file != NULL))
        return;
    more = fgets(line, sizeof line, file) != NULL;
    while (more) {
        snprintf(c.line, sizeof c.line, "%.250s", line);
        CHECK(fgets(data, sizeof data, file) != NULL);
        c.n_expected = 0;
        while ((more = fgets(line, sizeof line, file) != NULL) && line[0] == '|') {
            size_t n = strlen(line);
            memcpy(c.expected + c.n_expected, line + 1, n - 1);
            c.n_expected += n - 1;
        }
        c.n_expected -= c.n_expected ? 1 : 0; /* the newline at the end of the file */
        CHECK(parse_header(&c));
        DVT_SCOPE {
            run_case(&c, data);
        }
        cases++;
    }
    fclose(file);
    CHECK(cases >= least);
}

DVT_TEST(print_as_numpy) {
    run_golden("print_numpy.txt", 3000);
}

DVT_TEST(print_as_torch) {
    run_golden("print_torch.txt", 400);
}

/* ---- the tutorials ---- */
DVT_TEST(print_tutorials) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *y = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 0.57450044f, 0.09968603f,
                             0.7419659f, 0.8941783f, 0.59656656f, 0.45325184f);
    dvt_array *u = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 0.6686509f, 0.17409194f, 0.3850025f,
                             0.24678314f, 0.35134333f, 0.8404298f);
    dvt_array *e = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 20.085537f, 109.1963f, 445.2395f);
    CHECK_STR(formatted(e, DVT_PRINT_MXNET),
              "[ 20.085537 109.1963   445.2395  ]\n<NDArray 3 @cpu(0)>");
    CHECK_STR(formatted(u, DVT_PRINT_MXNET), "[[0.6686509  0.17409194 0.3850025 ]\n"
                                             " [0.24678314 0.35134333 0.8404298 ]]\n"
                                             "<NDArray 2x3 @cpu(0)>");
    CHECK_STR(formatted(x, DVT_PRINT_JAX), "Array([[1., 1., 1.],\n"
                                           "       [1., 1., 1.]], dtype=float32)");
    CHECK_STR(formatted(y, DVT_PRINT_JAX), "Array([[0.57450044, 0.09968603, 0.7419659 ],\n"
                                           "       [0.8941783 , 0.59656656, 0.45325184]], "
                                           "dtype=float32)");
    CHECK_STR(formatted(dvt_add(x, y), DVT_PRINT_JAX),
              "Array([[1.5745004, 1.099686 , 1.7419659],\n"
              "       [1.8941783, 1.5965666, 1.4532518]], dtype=float32)");
    CHECK_STR(formatted(dvt_zeros(DVT_SHAPE(3, 2), DVT_F32, dvt_cpu()), DVT_PRINT_MXNET),
              "[[0. 0.]\n [0. 0.]\n [0. 0.]]\n<NDArray 3x2 @cpu(0)>");
    CHECK_STR(formatted(x, DVT_PRINT_TORCH), "tensor([[1., 1., 1.],\n        [1., 1., 1.]])");
}

DVT_TEST(print_shows_the_context) {
    dvt_array *x;
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    DVT_SCOPE {
        x = dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_gpu(1));
        CHECK_STR(formatted(x, DVT_PRINT_MXNET), "[[1. 1.]]\n<NDArray 1x2 @gpu(1)>");
        CHECK_STR(formatted(x, DVT_PRINT_NP), "array([[1., 1.]], ctx=gpu(1))");
        CHECK_STR(formatted(x, DVT_PRINT_TORCH), "tensor([[1., 1.]], device='cuda:1')");
        CHECK_STR(formatted(x, DVT_PRINT_JAX), "Array([[1., 1.]], dtype=float32)");
        CHECK_STR(formatted(x, DVT_PRINT_STR), "[[1. 1.]]");
        x = dvt_ones(DVT_SHAPE(2), DVT_F64, dvt_gpu(0));
        CHECK_STR(formatted(x, DVT_PRINT_NP), "array([1., 1.], dtype=float64, ctx=gpu(0))");
        CHECK_STR(formatted(x, DVT_PRINT_TORCH),
                  "tensor([1., 1.], device='cuda:0', dtype=torch.float64)");
        x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu_id(3));
        CHECK_STR(formatted(x, DVT_PRINT_MXNET), "[1. 1.]\n<NDArray 2 @cpu(3)>");
        CHECK_STR(formatted(x, DVT_PRINT_TORCH), "tensor([1., 1.])");
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* Only printed elements are transferred, and the guard is checked once. */
DVT_TEST(print_transfers_only_printed_elements) {
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *x = dvt_arange(0, 100000, 1, DVT_F32, dvt_gpu(0));
        dvt_array *wide = dvt_reshape(x, DVT_SHAPE(10, 100, 100));
        dvt_stats before = dvt_get_stats(), after;
        CHECK_STR(formatted(x, DVT_PRINT_STR),
                  "[0.0000e+00 1.0000e+00 2.0000e+00 ... 9.9997e+04 9.9998e+04 9.9999e+04]");
        after = dvt_get_stats();
        CHECK_INT(after.to_host_bytes - before.to_host_bytes, 24);
        CHECK_INT(after.to_host_count - before.to_host_count, 1);
        CHECK_INT(after.implicit_reads - before.implicit_reads, 1);
        before = after;
        formatted(dvt_transpose(wide, DVT_AXES(2, 0, 1)), DVT_PRINT_STR);
        after = dvt_get_stats();
        CHECK_INT(after.to_host_bytes - before.to_host_bytes, 6 * 6 * 6 * 4);
        dvt_set_transfer_guard(DVT_TRANSFER_FORBID);
        text[0] = 'x';
        CHECK_ERROR(dvt_format(x, NULL, text, sizeof text, NULL), DVT_ERR_CONTEXT);
        CHECK(text[0] == 'x');
        dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(print_views) {
    dvt_array *x = dvt_reshape(dvt_arange(0, 12, 1, DVT_I32, dvt_cpu()), DVT_SHAPE(3, 4));
    dvt_array *big = dvt_reshape(dvt_arange(0, 2400, 1, DVT_I32, dvt_cpu()), DVT_SHAPE(40, 60));
    CHECK_STR(formatted(dvt_t(x), DVT_PRINT_STR),
              "[[ 0  4  8]\n [ 1  5  9]\n [ 2  6 10]\n [ 3  7 11]]");
    CHECK_STR(formatted(dvt_slice(x, 1, DVT_END, DVT_END, 2), DVT_PRINT_STR),
              "[[ 0  2]\n [ 4  6]\n [ 8 10]]");
    CHECK_STR(formatted(dvt_slice(x, 0, 2, DVT_END, -1), DVT_PRINT_STR),
              "[[ 8  9 10 11]\n [ 4  5  6  7]\n [ 0  1  2  3]]");
    CHECK_STR(formatted(dvt_broadcast_to(dvt_index(x, 1), DVT_SHAPE(2, 2, 4)), DVT_PRINT_STR),
              "[[[4 5 6 7]\n  [4 5 6 7]]\n\n [[4 5 6 7]\n  [4 5 6 7]]]");
    CHECK_STR(formatted(dvt_t(big), DVT_PRINT_STR),
              "[[   0   60  120 ... 2220 2280 2340]\n [   1   61  121 ... 2221 2281 2341]\n"
              " [   2   62  122 ... 2222 2282 2342]\n ...\n"
              " [  57  117  177 ... 2277 2337 2397]\n [  58  118  178 ... 2278 2338 2398]\n"
              " [  59  119  179 ... 2279 2339 2399]]");
}

DVT_TEST(print_corners) {
    dvt_array *none = dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_cpu());
    CHECK_STR(formatted(NULL, DVT_PRINT_MXNET), "(null)");
    CHECK_STR(formatted(none, DVT_PRINT_MXNET), "[]\n<NDArray 2x0 @cpu(0)>");
    CHECK_STR(formatted(none, DVT_PRINT_TORCH), "tensor([], size=(2, 0))");
    CHECK_STR(formatted(dvt_zeros(DVT_SHAPE(0), DVT_I64, dvt_cpu()), DVT_PRINT_TORCH),
              "tensor([], dtype=torch.int64)");
    CHECK_STR(formatted(dvt_zeros(DVT_SHAPE(0, 3), DVT_BOOL, dvt_cpu()), DVT_PRINT_NP),
              "array([], shape=(0, 3), dtype=bool)");
    CHECK_STR(formatted(dvt_scalar(3, DVT_F32, dvt_cpu()), DVT_PRINT_MXNET),
              "3.0\n<NDArray  @cpu(0)>");
    CHECK_STR(formatted(dvt_scalar(1, DVT_BOOL, dvt_cpu()), DVT_PRINT_NP), "array(True)");
    CHECK_STR(formatted(dvt_scalar(-7, DVT_I8, dvt_cpu()), DVT_PRINT_NP), "array(-7, dtype=int8)");
    CHECK_STR(formatted(dvt_scalar(INT64_MIN, DVT_I64, dvt_cpu()), DVT_PRINT_STR),
              "-9223372036854775808");
}

DVT_TEST(print_buffer_and_options) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    dvt_print_options options;
    char small[8];
    size_t length = 0;
    memset(small, 'x', sizeof small);
    CHECK(dvt_format(x, NULL, small, sizeof small, &length) == DVT_OK);
    CHECK_INT(length, strlen("[1. 2. 3.]\n<NDArray 3 @cpu(0)>\n"));
    CHECK_STR(small, "[1. 2. ");
    CHECK(dvt_format(x, NULL, small, 1, NULL) == DVT_OK);
    CHECK_STR(small, "");
    CHECK(dvt_format(x, NULL, NULL, 0, &length) == DVT_OK);
    CHECK(dvt_format(x, NULL, NULL, 100, NULL) == DVT_OK);
    memset(&options, 0, sizeof options);
    options.precision = -2;
    CHECK_ERROR(dvt_format(x, &options, small, sizeof small, NULL), DVT_ERR_RANGE);
    options.precision = 501;
    CHECK_ERROR(dvt_format(x, &options, small, sizeof small, NULL), DVT_ERR_RANGE);
    options.precision = 0;
    options.edge_items = -1;
    CHECK_ERROR(dvt_format(x, &options, small, sizeof small, NULL), DVT_ERR_RANGE);
    options.edge_items = INT32_MAX; /* doubling it overflows an int */
    options.threshold = 1;
    CHECK(dvt_format(x, &options, NULL, 0, &length) == DVT_OK);
    CHECK_INT(length, strlen("[1. 2. 3.]\n<NDArray 3 @cpu(0)>\n"));
    options.style = (dvt_print_style)7;
    CHECK_ERROR(dvt_format(x, &options, small, sizeof small, NULL), DVT_ERR_RANGE);
}

/* Checks each option alone: its last accepted and its first refused value. */
DVT_TEST(print_options_refused) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    dvt_print_options plain, options;
    size_t length;
    memset(&plain, 0, sizeof plain);
#define TAKEN(field, value)                                                                        \
    options = plain;                                                                               \
    options.field = value;                                                                         \
    CHECK_INT(dvt_format(x, &options, NULL, 0, &length), DVT_OK)
#define REFUSED(field, value)                                                                      \
    options = plain;                                                                               \
    options.field = value;                                                                         \
    CHECK_ERROR(dvt_format(x, &options, NULL, 0, &length), DVT_ERR_RANGE)
    TAKEN(style, DVT_PRINT_TORCH);
    REFUSED(style, (dvt_print_style)(DVT_PRINT_DEFAULT + 1));
    TAKEN(precision, -1);
    REFUSED(precision, -2);
    TAKEN(precision, 500);
    REFUSED(precision, 501);
    TAKEN(threshold, 1);
    REFUSED(threshold, -1);
    TAKEN(edge_items, 1);
    REFUSED(edge_items, -1);
    TAKEN(line_width, 1);
    REFUSED(line_width, -1);
#undef TAKEN
#undef REFUSED
}

/* Prints a summary of an array. */
static int print_summary(void) {
    dvt_array *x = dvt_reshape(dvt_arange(0, 64, 1, DVT_F16, dvt_cpu()), DVT_SHAPE(8, 8));
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    options.threshold = 1;
    return x && dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK;
}

DVT_TEST(print_out_of_memory) {
    CHECK(golden_out_of_memory(print_summary) >= 10);
}

DVT_TEST(print_longest_numbers) {
    dvt_array *x =
        DVT_ARRAY(double, DVT_SHAPE(3), dvt_cpu(), -1.7976931348623157e308, -5e-324, 1.5);
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    options.suppress = true;
    options.precision = 500;
    options.style = DVT_PRINT_TORCH;
    options.no_newline = true;
    CHECK(dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK);
    CHECK(strstr(text, "-17976931348623157081452742373170435679807056752584499659891747680") !=
          NULL);
    options.precision = -1;
    options.style = DVT_PRINT_STR;
    CHECK(dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK);
    CHECK_STR(text,
              "[-1.7976931348623157e+308 -4.9406564584124654e-324\n  1.5000000000000000e+000]");
}

DVT_TEST(print_to_file) {
    FILE *file = tmpfile();
    char line[64];
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 0.5, -2);
    CHECK_ERROR(dvt_print_file(NULL, x), DVT_ERR_NULL_ARGUMENT);
    if (!file)
        SKIP("cannot create a temporary file");
    CHECK(dvt_print_file(file, x) == DVT_OK);
    CHECK(dvt_print_file(file, NULL) == DVT_OK);
    rewind(file);
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR(line, "[ 0.5 -2. ]\n");
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR(line, "<NDArray 2 @cpu(0)>\n");
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR(line, "(null)\n");
    fclose(file);
}

DVT_TEST(print_bfloat16) {
    dvt_array *x = dvt_astype(
        DVT_ARRAY(float, DVT_SHAPE(6), dvt_cpu(), 0.1f, 1, -2.5f, 3.140625f, 90.5f, 0), DVT_BF16);
    CHECK_STR(formatted(x, DVT_PRINT_STR), "[ 0.1   1.   -2.5   3.14 90.5   0.  ]");
    CHECK_STR(formatted(x, DVT_PRINT_JAX),
              "Array([ 0.1 ,  1.  , -2.5 ,  3.14, 90.5 ,  0.  ], dtype=bfloat16)");
    x = dvt_full(DVT_SHAPE(1), 3.3895313892515355e38, DVT_BF16, dvt_cpu());
    CHECK_STR(formatted(x, DVT_PRINT_STR), "[3.39e+38]");
}

static double printed_value(dvt_array *x, int i) {
    double value = 0;
    DVT_SCOPE {
        value = strtod(formatted(dvt_index(x, i), DVT_PRINT_STR), NULL);
    }
    return value;
}

/* Checks that every value of a 16-bit float dtype reads back from its text with the same bits. */
static void check_shortest(dvt_dtype dtype) {
    uint16_t *all = (uint16_t *)malloc(65536 * 2), *again = (uint16_t *)malloc(65536 * 2);
    double *values = (double *)malloc(65536 * sizeof(double));
    int i, wrong = 0;
    for (i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    DVT_SCOPE {
        dvt_array *x = dvt_from_host(all, DVT_SHAPE(65536), dtype, dvt_cpu());
        for (i = 0; i < 65536; i++)
            values[i] = printed_value(x, i);
        x = dvt_astype(dvt_from_host(values, DVT_SHAPE(65536), DVT_F64, dvt_cpu()), dtype);
        CHECK(dvt_to_host(x, again, 65536 * 2) == DVT_OK);
        for (i = 0; i < 65536; i++)
            if (values[i] == values[i] && all[i] != again[i])
                wrong++;
        CHECK_INT(wrong, 0);
    }
    free(all);
    free(again);
    free(values);
}

DVT_TEST(print_round_trips) {
    check_shortest(DVT_F16);
    check_shortest(DVT_BF16);
}

DVT_TEST(print_without_locale) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(2), dvt_cpu(), 1234567.5, 0.25);
    const int found = set_comma_locale();
    CHECK_STR(formatted(x, DVT_PRINT_STR), "[1.2345675e+06 2.5000000e-01]");
    CHECK_STR(formatted(x, DVT_PRINT_TORCH),
              "tensor([1.2346e+06, 2.5000e-01], dtype=torch.float64)");
    setlocale(LC_ALL, "C");
    if (!found)
        SKIP(NO_COMMA_LOCALE);
}
