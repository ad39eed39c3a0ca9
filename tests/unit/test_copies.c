/* Copies between contexts, arrays and dtypes: which are new, which share, what they count, and what is refused. */
#include "dvt_test.h"

static dvt_array *six(dvt_ctx ctx) {
    return DVT_ARRAY2(ctx, float, 2, 3, {{1, 2, 3}, {4, 5, 6}});
}

static void gpus(int n) {
    CHECK_INT(dvt_set_virtual_gpus(n, 0), DVT_OK);
}

/* ---- identity ---- */
DVT_TEST(copies_identity) {
    dvt_ctx ctx[4];
    int i, k;
    gpus(2);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_cpu_id(1);
    ctx[2] = dvt_gpu(0);
    ctx[3] = dvt_gpu(1);
    for (i = 0; i < 4; i++)
        for (k = 0; k < 4; k++)
            DVT_SCOPE {
                dvt_array *x = six(ctx[i]), *y = dvt_copyto(x, ctx[k]),
                          *z = dvt_as_in_ctx(x, ctx[k]);
                CHECK(y != x && !dvt_shares_memory(x, y));
                CHECK((z == x) == (i == k));
                CHECK(dvt_ctx_equal(dvt_ctx_of(y), ctx[k]) && dvt_ctx_equal(dvt_ctx_of(z), ctx[k]));
                CHECK_VALUES(y, 0, 1, 2, 3, 4, 5, 6);
                CHECK_VALUES(z, 0, 1, 2, 3, 4, 5, 6);
                y = dvt_copy(x);
                CHECK(y != x && !dvt_shares_memory(x, y) && dvt_ctx_equal(dvt_ctx_of(y), ctx[i]));
                /* the copy does not follow later writes, the array itself does */
                y = dvt_copyto(x, ctx[k]);
                dvt_fill(x, 9);
                CHECK_VALUES(y, 0, 1, 2, 3, 4, 5, 6);
                if (i == k)
                    CHECK_VALUES(z, 0, 9, 9, 9, 9, 9, 9);
            }
    gpus(0);
}

DVT_TEST(copies_to_the_default_context) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
    gpus(1);
    DVT_SCOPE {
        dvt_array *x = six(dvt_gpu(0));
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(dvt_as_in_ctx(x, zero))), "cpu(0)");
        DVT_WITH_CTX(dvt_gpu(0)) {
            CHECK(dvt_as_in_ctx(x, zero) == x);
        }
    }
    gpus(0);
}

DVT_TEST(copies_astype_and_contiguous) {
    dvt_array *x = six(dvt_cpu()), *y;
    CHECK(dvt_astype(x, DVT_F32, false) == x);
    y = dvt_astype(x, DVT_F32, true);
    CHECK(y != x && !dvt_shares_memory(x, y));
    CHECK_VALUES(y, 0, 1, 2, 3, 4, 5, 6);
    y = dvt_astype(x, DVT_I32, false);
    CHECK(y != x && dvt_dtype_of(y) == DVT_I32);
    CHECK(dvt_contiguous(x) == x);
    y = dvt_contiguous(dvt_t(x));
    CHECK(!dvt_shares_memory(x, y) && dvt_is_contiguous(y));
    CHECK_VALUES(y, 0, 1, 4, 2, 5, 3, 6);
    CHECK_ERROR(dvt_astype(x, (dvt_dtype)12, true), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_astype(NULL, DVT_F32, false), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copyto(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copyto(x, dvt_gpu(3)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_as_in_ctx(x, dvt_gpu(3)), DVT_ERR_NO_DEVICE);
}

/* ---- into what exists ---- */
DVT_TEST(copies_into) {
    dvt_ctx ctx[3];
    int i, k;
    gpus(2);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_gpu(0);
    ctx[2] = dvt_gpu(1);
    for (i = 0; i < 3; i++)
        for (k = 0; k < 3; k++)
            DVT_SCOPE {
                dvt_array *src = six(ctx[i]), *dst = dvt_zeros(DVT_SHAPE(2, 3), DVT_I64, ctx[k]);
                dvt_array *wide = dvt_zeros(DVT_SHAPE(3, 4), DVT_F64, ctx[k]);
                CHECK(dvt_copy_into(dst, src) == dst);
                CHECK_VALUES(dst, 0, 1, 2, 3, 4, 5, 6);
                CHECK_INT(dvt_dtype_of(dst), DVT_I64);
                /* strided on both sides */
                CHECK(dvt_copy_into(dvt_slice(wide, 1, 0, DVT_END, 2), dvt_t(src)) != NULL);
                CHECK_VALUES(wide, 0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0);
            }
    gpus(0);
}

typedef struct last_line {
    int n;
    dvt_log_level level;
    char text[400];
} last_line;

static void keep_line(void *user, dvt_log_level level, const char *message) {
    last_line *line = (last_line *)user;
    line->n++;
    line->level = level;
    snprintf(line->text, sizeof line->text, "%s", message);
}

DVT_TEST(copies_into_refusals) {
    last_line line = {0, DVT_LOG_DEBUG, ""};
    dvt_array *x = six(dvt_cpu()), *y = dvt_zeros(DVT_SHAPE(3, 2), DVT_F32, dvt_cpu());
    dvt_set_logger(keep_line, &line);
    CHECK(dvt_copy_into(x, x) == NULL);
    dvt_set_logger(NULL, NULL);
    CHECK(line.n == 1 && line.level == DVT_LOG_WARNING && strstr(line.text, "onto itself"));
    CHECK_INT(dvt_error_code(), DVT_OK);
    dvt_clear_error();
    CHECK(dvt_copy_into(y, x) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "(3, 2)") && strstr(dvt_error(), "(2, 3)"));
    dvt_clear_error();
    CHECK_ERROR(dvt_copy_into(dvt_broadcast_to(x, DVT_SHAPE(4, 2, 3)),
                              dvt_zeros(DVT_SHAPE(4, 2, 3), DVT_F32, dvt_cpu())),
                DVT_ERR_VALUE);
    CHECK_ERROR(dvt_copy_into(NULL, x), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copy_into(x, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
    CHECK_VALUES(y, 0, 0, 0, 0, 0, 0, 0);
    /* a broadcast source is fine */
    CHECK(dvt_copy_into(y, dvt_broadcast_to(dvt_scalar(2, DVT_F32, dvt_cpu()), DVT_SHAPE(3, 2))) ==
          y);
    CHECK_VALUES(y, 0, 2, 2, 2, 2, 2, 2);
}

/* Source and target are windows on the same memory. */
DVT_TEST(copies_into_overlapping) {
    dvt_array *x = dvt_arange(0, 6, 1, DVT_I32, dvt_cpu()), *q;
    CHECK(dvt_copy_into(x, dvt_slice(x, 0, -1, DVT_END, -1)) == x);
    CHECK_VALUES(x, 0, 5, 4, 3, 2, 1, 0);
    CHECK(dvt_copy_into(dvt_rows(x, 1, 6), dvt_rows(x, 0, 5)) != NULL);
    CHECK_VALUES(x, 0, 5, 5, 4, 3, 2, 1);
    CHECK(dvt_copy_into(dvt_rows(x, 0, 5), dvt_rows(x, 1, 6)) != NULL);
    CHECK_VALUES(x, 0, 5, 4, 3, 2, 1, 1);
    q = dvt_reshape(dvt_arange(0, 9, 1, DVT_I32, dvt_cpu()), DVT_SHAPE(3, 3));
    CHECK(dvt_copy_into(q, dvt_t(q)) == q);
    CHECK_VALUES(q, 0, 0, 3, 6, 1, 4, 7, 2, 5, 8);
}

/* ---- order: a copy sees what was queued before it, and nothing later ---- */
DVT_TEST(copies_in_order) {
    int i;
    gpus(2);
    for (i = 0; i < 50; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(500), i, DVT_F32, dvt_gpu(0)), *y, *z;
            y = dvt_copyto(x, dvt_gpu(1));
            dvt_fill(x, -1);
            z = dvt_copyto(dvt_add_scalar(y, 1), dvt_gpu(0));
            dvt_fill(y, -2);
            CHECK_CLOSE(dvt_item_at(z, DVT_SHAPE(499)), i + 1, 0);
            CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(0)), -1, 0);
            CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(250)), -2, 0);
        }
    gpus(0);
}

/* ---- what is counted ---- */
DVT_TEST(copies_counted) {
    gpus(2);
    DVT_SCOPE {
        dvt_array *x, *y, *z;
        dvt_stats s;
        float out[6];
        dvt_reset_stats();
        x = six(dvt_cpu());
        s = dvt_get_stats();
        CHECK(s.to_device_count == 0 && s.to_host_count == 0 && s.between_devices_count == 0);
        dvt_copy(x);
        dvt_copyto(x, dvt_cpu_id(1));
        CHECK_INT(dvt_get_stats().to_device_count, 0);
        y = dvt_copyto(x, dvt_gpu(0));
        s = dvt_get_stats();
        CHECK(s.to_device_count == 1 && s.to_device_bytes == 24);
        six(dvt_gpu(1));
        s = dvt_get_stats();
        CHECK(s.to_device_count == 2 && s.to_device_bytes == 48);
        z = dvt_copyto(y, dvt_gpu(1));
        s = dvt_get_stats();
        CHECK(s.between_devices_count == 1 && s.between_devices_bytes == 24 &&
              s.to_host_count == 0);
        dvt_as_in_ctx(z, dvt_gpu(1));
        CHECK_INT(dvt_get_stats().between_devices_count, 1);
        dvt_copyto(dvt_slice(dvt_t(z), 0, 0, 2, 1), dvt_cpu()); /* packed there: only four cross */
        s = dvt_get_stats();
        CHECK(s.to_host_count == 1 && s.to_host_bytes == 16 && s.implicit_reads == 0);
        CHECK_INT(dvt_to_host(y, out, sizeof out), DVT_OK);
        s = dvt_get_stats();
        CHECK(s.to_host_count == 2 && s.to_host_bytes == 40 && s.implicit_reads == 1);
        CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(1, 1)), 5, 0);
        s = dvt_get_stats();
        CHECK(s.to_host_count == 3 && s.to_host_bytes == 44 && s.implicit_reads == 2);
        CHECK_INT(dvt_set_from_host(y, out, sizeof out), DVT_OK);
        CHECK_INT(dvt_get_stats().to_device_bytes, 72);
        /* empty arrays do not travel */
        dvt_copyto(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu()), dvt_gpu(0));
        CHECK_INT(dvt_get_stats().to_device_count, 3);
    }
    gpus(0);
}

/* ---- the guard of implicit reads ---- */
DVT_TEST(copies_transfer_guard) {
    last_line line = {0, DVT_LOG_DEBUG, ""};
    gpus(1);
    DVT_SCOPE {
        dvt_array *x = six(dvt_gpu(0)), *here = six(dvt_cpu());
        float out[6] = {0};
        char text[100];
        CHECK_INT(dvt_set_transfer_guard(DVT_TRANSFER_FORBID), DVT_TRANSFER_ALLOW);
        CHECK_ERROR(dvt_to_host(x, out, sizeof out), DVT_ERR_CONTEXT);
        CHECK(out[0] == 0);
        CHECK_ERROR(dvt_item_at(x, DVT_SHAPE(0, 0)), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_item(dvt_index(dvt_index(x, 0), 0)), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_item_int(dvt_index(dvt_index(x, 0), 0)), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_format(x, NULL, text, sizeof text, NULL), DVT_ERR_CONTEXT);
        CHECK(isnan(dvt_item(dvt_index(dvt_index(x, 0), 0))));
        CHECK(strstr(dvt_error(), "transfer guard") && strstr(dvt_error(), "dvt_copyto"));
        dvt_clear_error();
        /* what says that it copies, and what is in main memory, is not meant */
        CHECK_INT(dvt_to_host(dvt_copyto(x, dvt_cpu()), out, sizeof out), DVT_OK);
        CHECK(out[5] == 6);
        CHECK_INT(dvt_to_host(here, out, sizeof out), DVT_OK);
        CHECK_INT(dvt_wait(x), DVT_OK);
        dvt_set_logger(keep_line, &line);
        CHECK_INT(dvt_set_transfer_guard(DVT_TRANSFER_LOG), DVT_TRANSFER_FORBID);
        CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(1, 2)), 6, 0);
        dvt_set_logger(NULL, NULL);
        CHECK(line.n == 1 && line.level == DVT_LOG_WARNING && strstr(line.text, "dvt_item_at"));
        CHECK_INT(dvt_set_transfer_guard(DVT_TRANSFER_ALLOW), DVT_TRANSFER_LOG);
        CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(1, 2)), 6, 0);
    }
    gpus(0);
}

/* ---- mixed contexts ---- */
DVT_TEST(copies_mixed_contexts) {
    gpus(2);
    DVT_SCOPE {
        dvt_array *a = dvt_note_site(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), "one.c", 11);
        dvt_array *b = dvt_note_site(dvt_ones(DVT_SHAPE(3), DVT_I32, dvt_gpu(0)), "two.c", 22);
        static const char *const parts[] = {
            "dvt_add", "float32", "(2, 3)", "cpu(0)",
            "int32",   "(3,)",    "gpu(0)", "dvt_as_in_ctx(b, dvt_cpu(0))"};
        int i;
        CHECK(dvt_add(a, b) == NULL);
        CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
        for (i = 0; i < 8; i++)
            dvt_test_check(strstr(dvt_error(), parts[i]) != NULL, __FILE__, __LINE__,
                           "\"%s\" is not in: %s", parts[i], dvt_error());
#if !defined(DEVTENSOR_NO_CALL_SITES)
        CHECK(strstr(dvt_error(), "made at") != NULL);
#endif
        dvt_clear_error();
        CHECK_ERROR(dvt_add(six(dvt_gpu(0)), six(dvt_gpu(1))), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_add(six(dvt_cpu()), six(dvt_cpu_id(1))), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_add_(six(dvt_cpu()), six(dvt_gpu(1))), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_where(six(dvt_cpu()), six(dvt_cpu()), six(dvt_gpu(1))), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_matmul(six(dvt_gpu(0)), dvt_t(six(dvt_gpu(1)))), DVT_ERR_CONTEXT);
        /* the advice works */
        CHECK_VALUES(dvt_add(a, dvt_as_in_ctx(b, dvt_ctx_of(a))), 0, 2, 2, 2, 2, 2, 2);
    }
    gpus(0);
}

/* "one.c:11" survives when the caller of the library notes places by itself. */
DVT_TEST(copies_mixed_contexts_places) {
    gpus(1);
    DVT_SCOPE {
        dvt_array *a = (dvt_ones)(DVT_SHAPE(2), DVT_F32, dvt_cpu()),
                  *b = (dvt_ones)(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
        (dvt_note_site)(a, "one.c", 11);
        (dvt_note_site)(b, "two.c", 22);
        (dvt_note_site)(b, "later.c", 33);
        CHECK_STR(dvt_made_at(b), "two.c:22");
        CHECK(dvt_mul(a, b) == NULL);
        CHECK(strstr(dvt_error(), "one.c:11") && strstr(dvt_error(), "two.c:22"));
        dvt_clear_error();
    }
    gpus(0);
}

DVT_TEST(copies_data_pointer) {
    dvt_array *x = six(dvt_cpu());
    float *p = (float *)dvt_data(x);
    CHECK(p && p[0] == 1 && p[5] == 6);
    CHECK(dvt_data(dvt_index(x, 1)) == p + 3);
    CHECK(dvt_data(dvt_slice(dvt_t(x), 0, -1, DVT_END, -1)) == p + 2);
    p[1] = 20;
    CHECK_VALUES(x, 0, 1, 20, 3, 4, 5, 6);
    CHECK(dvt_data(six(dvt_cpu_id(1))) != NULL);
    gpus(1);
    DVT_SCOPE {
        CHECK_ERROR(dvt_data(six(dvt_gpu(0))), DVT_ERR_CONTEXT);
    }
    gpus(0);
}

/* ---- host memory ---- */
DVT_TEST(copies_host_memory) {
    int32_t in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0};
    int g;
    gpus(1);
    for (g = 0; g < 2; g++)
        DVT_SCOPE {
            dvt_array *x = dvt_from_host(in, DVT_SHAPE(2, 3), DVT_I32, g ? dvt_gpu(0) : dvt_cpu());
            dvt_array *t = dvt_t(x);
            memset(in, 0, sizeof in); /* may be changed at once */
            CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
            CHECK_INT(dvt_to_host(t, out, sizeof out), DVT_OK);
            CHECK(out[0] == 1 && out[1] == 4 && out[2] == 2 && out[5] == 6);
            CHECK_INT(dvt_set_from_host(t, out, sizeof out), DVT_OK);
            CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
            CHECK_ERROR(dvt_to_host(x, out, 23), DVT_ERR_RANGE);
            CHECK_ERROR(dvt_to_host(x, NULL, 24), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(dvt_set_from_host(x, out, 28), DVT_ERR_RANGE);
            CHECK_ERROR(dvt_set_from_host(x, NULL, 24), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(dvt_set_from_host(dvt_broadcast_to(x, DVT_SHAPE(2, 2, 3)), out, 48),
                        DVT_ERR_VALUE);
            CHECK_ERROR(dvt_item(x), DVT_ERR_SHAPE);
            CHECK_ERROR(dvt_item_at(x, DVT_SHAPE(0)), DVT_ERR_SHAPE);
            CHECK_ERROR(dvt_item_at(x, DVT_SHAPE(0, 3)), DVT_ERR_RANGE);
            CHECK_ERROR(dvt_item_at(x, DVT_SHAPE(-3, 0)), DVT_ERR_RANGE);
            CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(-2, -1)), 3, 0);
            CHECK_INT(dvt_item_int(dvt_scalar(-7, DVT_I8, dvt_ctx_of(x))), -7);
            memcpy(in, out, sizeof in);
            in[0] = 1, in[1] = 2, in[2] = 3, in[3] = 4, in[4] = 5, in[5] = 6;
        }
    gpus(0);
}

#define ARRAYS_OF(T, DTYPE)                                                                        \
    do {                                                                                           \
        dvt_array *a = DVT_ARRAY1(dvt_cpu(), T, 3, {0, 1, 1});                                     \
        dvt_array *b = DVT_ARRAY2(dvt_cpu(), T, 2, 2, {{0, 1}, {1, 0}});                           \
        dvt_array *c = DVT_ARRAY3(dvt_cpu(), T, 2, 1, 2, {{{0, 1}}, {{1, 1}}});                    \
        dvt_array *d = DVT_ARRAY4(dvt_cpu(), T, 1, 2, 1, 2, {{{{1, 0}}, {{1}}}});                  \
        CHECK_INT(dvt_dtype_of(a), DTYPE);                                                         \
        CHECK_VALUES(a, 0, 0, 1, 1);                                                               \
        CHECK(dvt_shape_equal(dvt_shape_of(b), DVT_SHAPE(2, 2)));                                  \
        CHECK_VALUES(b, 0, 0, 1, 1, 0);                                                            \
        CHECK(dvt_shape_equal(dvt_shape_of(c), DVT_SHAPE(2, 1, 2)));                               \
        CHECK_VALUES(c, 0, 0, 1, 1, 1);                                                            \
        CHECK(dvt_shape_equal(dvt_shape_of(d), DVT_SHAPE(1, 2, 1, 2)));                            \
        CHECK_VALUES(d, 0, 1, 0, 1, 0);                                                            \
        CHECK_INT(dvt_dtype_of(d), DTYPE);                                                         \
    } while (0)

DVT_TEST(copies_initialisers) {
    ARRAYS_OF(float, DVT_F32);
    ARRAYS_OF(double, DVT_F64);
    ARRAYS_OF(int8_t, DVT_I8);
    ARRAYS_OF(uint8_t, DVT_U8);
    ARRAYS_OF(int32_t, DVT_I32);
    ARRAYS_OF(int64_t, DVT_I64);
    ARRAYS_OF(bool, DVT_BOOL);
    ARRAYS_OF(int, DVT_I32);
    ARRAYS_OF(long long, DVT_I64);
    ARRAYS_OF(unsigned char, DVT_U8);
    ARRAYS_OF(signed char, DVT_I8);
#ifndef __cplusplus
    CHECK_ERROR(DVT_ARRAY1(dvt_cpu(), uint32_t, 2, {1, 2}), DVT_ERR_DTYPE);
    CHECK_ERROR(DVT_ARRAY1(dvt_cpu(), unsigned long long, 2, {1, 2}), DVT_ERR_DTYPE);
#endif
    gpus(1);
    DVT_SCOPE {
        CHECK_VALUES(DVT_ARRAY2(dvt_gpu(0), float, 2, 3, {{1.5f, 2, 3}, {-4, 5, 6}}), 0, 1.5, 2, 3,
                     -4, 5, 6);
    }
    gpus(0);
}

/* ---- dtypes: every pair, special values ---- */
/* v rounded to `digits` binary digits with least exponent `least` (of the last digit), ties to even. */
static double rounded(long double v, int digits, int least, double largest) {
    int exponent;
    long double unit, result;
    if (v != v || v == 0 || v - v != 0)
        return (double)v;
    frexpl(v, &exponent);
    unit = ldexpl(1, exponent - digits > least ? exponent - digits : least);
    result = rintl(v / unit) * unit;
    if (fabsl(result) > (long double)largest)
        return v > 0 ? (double)INFINITY : -(double)INFINITY;
    return (double)result;
}

static double clamped(long double v, double low, double high) {
    if (v != v)
        return 0;
    return v <= (long double)low ? low : v >= (long double)high ? high : (double)truncl(v) + 0.0;
}

/* What v of one dtype is in another. Integers wrap in narrower ones. */
static double converted(long double v, dvt_dtype from, dvt_dtype to) {
    int whole = !dvt_dtype_is_float(from);
    int64_t i = whole ? (int64_t)v : 0;
    switch (to) {
    case DVT_F32:
        return (double)(float)v;
    case DVT_F64:
        return (double)v;
    case DVT_F16:
        return rounded(v, 11, -24, 65504);
    case DVT_BF16:
        return rounded(v, 8, -133, 3.3895313892515355e38);
    case DVT_I8:
        return whole ? (int8_t)(uint8_t)(uint64_t)i : clamped(v, -128, 127);
    case DVT_U8:
        return whole ? (uint8_t)(uint64_t)i : clamped(v, 0, 255);
    case DVT_I32:
        return whole ? (int32_t)(uint32_t)(uint64_t)i : clamped(v, INT32_MIN, INT32_MAX);
    case DVT_I64:
        return whole ? (double)i : clamped(v, -9223372036854775808.0, 9223372036854775807.0);
    default:
        return v != 0;
    }
}

static const double reals[] = {0,
                               -0.0,
                               1,
                               -1,
                               0.5,
                               -0.5,
                               0.999,
                               1.5,
                               2.5,
                               -2.7,
                               127,
                               127.9,
                               128,
                               -128.9,
                               -129,
                               255,
                               255.5,
                               256,
                               300,
                               1e-8,
                               5.9604644775390625e-8,
                               2.98e-8,
                               6.1e-5,
                               1e-40,
                               1e-45,
                               4e-46,
                               9.2e-41,
                               65504,
                               65519.99,
                               65520,
                               1e6,
                               2147483647,
                               2147483648.0,
                               -2147483648.0,
                               -2147483649.0,
                               16777217,
                               33554433,
                               9007199254740993.0,
                               9.2e18,
                               9.3e18,
                               -9.3e18,
                               3.4e38,
                               3.3961775e38,
                               1e39,
                               -1e300,
                               0.1,
                               1.0 / 3,
                               (double)INFINITY,
                               -(double)INFINITY,
                               (double)NAN};
static const int64_t wholes[] = {0,
                                 1,
                                 -1,
                                 2,
                                 127,
                                 128,
                                 -128,
                                 -129,
                                 255,
                                 256,
                                 257,
                                 300,
                                 32767,
                                 65504,
                                 65519,
                                 65520,
                                 65535,
                                 2147483647,
                                 2147483648,
                                 -2147483648,
                                 -2147483649,
                                 16777217,
                                 33554435,
                                 9007199254740993,
                                 INT64_MAX,
                                 INT64_MIN,
                                 9223371761976868863,
                                 9223372036854775295,
                                 4611686018427387905,
                                 1 << 20};

/* All specials in one dtype, as it holds them; n values, exact in `values`. */
static dvt_array *specials(dvt_dtype dtype, long double *values, int *n) {
    unsigned char bytes[64 * 8];
    int i;
    if (dvt_dtype_is_float(dtype)) {
        dvt_array *x;
        *n = (int)(sizeof reals / sizeof reals[0]);
        x = dvt_astype(dvt_from_host(reals, DVT_SHAPE(*n), DVT_F64, dvt_cpu()), dtype, true);
        for (i = 0; i < *n; i++)
            values[i] = (long double)converted((long double)reals[i], DVT_F64, dtype);
        return x;
    }
    *n = (int)(sizeof wholes / sizeof wholes[0]);
    for (i = 0; i < *n; i++) {
        int64_t v = wholes[i];
        int8_t b = (int8_t)(uint8_t)(uint64_t)v;
        int32_t w = (int32_t)(uint32_t)(uint64_t)v;
        uint8_t u = (uint8_t)(uint64_t)v, o = v != 0;
        int size = (int)dvt_dtype_size(dtype);
        const void *at = dtype == DVT_I64   ? (const void *)&v
                         : dtype == DVT_I32 ? (const void *)&w
                         : dtype == DVT_I8  ? (const void *)&b
                         : dtype == DVT_U8  ? (const void *)&u
                                            : (const void *)&o;
        memcpy(bytes + i * size, at, (size_t)size);
        values[i] = dtype == DVT_I64   ? v
                    : dtype == DVT_I32 ? w
                    : dtype == DVT_I8  ? b
                    : dtype == DVT_U8  ? u
                                       : o;
    }
    return dvt_from_host(bytes, DVT_SHAPE(*n), dtype, dvt_cpu());
}

/* Element i, exactly: int64 beyond 2^53 does not go through double. */
static void check_conversion(dvt_array *x, int i, long double value, dvt_dtype from) {
    dvt_dtype to = dvt_dtype_of(x);
    double expected = converted(value, from, to);
    if (to == DVT_I64) {
        int64_t whole = dvt_dtype_is_float(from)
                            ? (expected >= 9223372036854775807.0 ? INT64_MAX : (int64_t)expected)
                            : (int64_t)value;
        CHECK_INT(dvt_item_int(dvt_index(x, i)), whole);
    } else {
        double got = dvt_item_at(x, DVT_SHAPE(i));
        dvt_test_check((got != got && expected != expected) ||
                           (got == expected && !signbit(got) == !signbit(expected)),
                       __FILE__, __LINE__, "%s %.20Lg as %s is %.17g, expected %.17g",
                       dvt_dtype_name(from), value, dvt_dtype_name(to), got, expected);
    }
}

DVT_TEST(copies_every_pair_of_dtypes) {
    int from, to, g, i, n;
    gpus(1);
    for (g = 0; g < 2; g++)
        for (from = 0; from < DVT_DTYPE_COUNT; from++)
            for (to = 0; to < DVT_DTYPE_COUNT; to++)
                DVT_SCOPE {
                    long double values[64];
                    dvt_ctx ctx = g ? dvt_gpu(0) : dvt_cpu();
                    dvt_array *x = dvt_copyto(specials((dvt_dtype)from, values, &n), ctx), *y,
                              *wide, *z;
                    /* contiguous by astype, strided by copy_into */
                    y = dvt_copyto(dvt_astype(x, (dvt_dtype)to, true), dvt_cpu());
                    wide = dvt_zeros(DVT_SHAPE(n, 2), (dvt_dtype)to, ctx);
                    CHECK(dvt_copy_into(dvt_index(dvt_t(wide), 1), x) != NULL);
                    z = dvt_copyto(dvt_index(dvt_t(wide), 1), dvt_cpu());
                    for (i = 0; i < n; i++) {
                        check_conversion(y, i, values[i], (dvt_dtype)from);
                        check_conversion(z, i, values[i], (dvt_dtype)from);
                    }
                }
    gpus(0);
}

/* All 65536 codes of both 16-bit floats, into every dtype and back. */
DVT_TEST(copies_all_half_codes) {
    static uint16_t codes[65536], back[65536];
    int dtype, to, i;
    for (i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (dtype = DVT_F16; dtype <= DVT_BF16; dtype++)
        DVT_SCOPE {
            dvt_array *x = dvt_from_host(codes, DVT_SHAPE(65536), (dvt_dtype)dtype, dvt_cpu());
            double *values = dvt_test_values(x);
            for (i = 0; values && i < 65536; i++) {
                int digits = dtype == DVT_F16 ? 10 : 7, top = dtype == DVT_F16 ? 31 : 255,
                    bias = dtype == DVT_F16 ? 15 : 127;
                int exponent = (i >> digits) & top, fraction = i & ((1 << digits) - 1);
                double v = exponent == top ? (fraction ? (double)NAN : (double)INFINITY)
                           : exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                                      : ldexp(fraction, 1 - bias - digits);
                if (i & 0x8000)
                    v = -v;
                if (v == v ? values[i] != v || !signbit(values[i]) != !signbit(v)
                           : values[i] == values[i])
                    CHECK_INT(i, -1);
            }
            for (to = 0; to < DVT_DTYPE_COUNT; to++)
                DVT_SCOPE {
                    double *got = dvt_test_values(dvt_astype(x, (dvt_dtype)to, true));
                    for (i = 0; got && values && i < 65536; i++) {
                        double expected =
                            converted((long double)values[i], (dvt_dtype)dtype, (dvt_dtype)to);
                        if (!(got[i] == expected || (got[i] != got[i] && expected != expected)))
                            dvt_test_check(0, __FILE__, __LINE__,
                                           "%s code %d as %s is %.17g, expected %.17g",
                                           dvt_dtype_name((dvt_dtype)dtype), i,
                                           dvt_dtype_name((dvt_dtype)to), got[i], expected);
                    }
                    free(got);
                    if (to != DVT_F32 && to != DVT_F64)
                        continue;
                    dvt_to_host(
                        dvt_astype(dvt_astype(x, (dvt_dtype)to, true), (dvt_dtype)dtype, true),
                        back, sizeof back);
                    for (i = 0; values && i < 65536; i++)
                        if (values[i] == values[i] && back[i] != codes[i])
                            CHECK_INT(back[i], codes[i]);
                }
            free(values);
        }
}

/* Between all neighbours: the quarters, the middle, and one step of the wider dtype beside the middle. */
DVT_TEST(copies_half_rounding) {
    static float points[5 * 0x7c00];
    static double wide[5 * 0x7c00];
    int dtype, i, k;
    for (dtype = DVT_F16; dtype <= DVT_BF16; dtype++)
        DVT_SCOPE {
            int n = dtype == DVT_F16 ? 0x7c00 : 0x7f80, count = 0;
            uint16_t code[2];
            double *got;
            /* bfloat16 has more finite codes than there is room: every second pair */
            for (i = dtype == DVT_F16 ? 0 : 1; i + 1 < n && count + 5 <= 5 * 0x7c00;
                 i += dtype == DVT_F16 ? 1 : 2)
                DVT_SCOPE {
                    double v[2], middle;
                    code[0] = (uint16_t)i;
                    code[1] = (uint16_t)(i + 1);
                    v[0] =
                        dvt_item_at(dvt_from_host(code, DVT_SHAPE(2), (dvt_dtype)dtype, dvt_cpu()),
                                    DVT_SHAPE(0));
                    v[1] =
                        dvt_item_at(dvt_from_host(code, DVT_SHAPE(2), (dvt_dtype)dtype, dvt_cpu()),
                                    DVT_SHAPE(1));
                    middle = (v[0] + v[1]) / 2;
                    wide[count] = (v[0] * 3 + v[1]) / 4;
                    wide[count + 1] = middle;
                    wide[count + 2] = nextafter(middle, 0);
                    wide[count + 3] = nextafter(middle, (double)INFINITY);
                    wide[count + 4] = -middle;
                    for (k = 0; k < 5; k++)
                        points[count + k] = (float)wide[count + k];
                    points[count + 2] = nextafterf((float)middle, 0);
                    points[count + 3] = nextafterf((float)middle, (float)INFINITY);
                    count += 5;
                }
            got = dvt_test_values(dvt_astype(
                dvt_from_host(wide, DVT_SHAPE(count), DVT_F64, dvt_cpu()), (dvt_dtype)dtype, true));
            for (i = 0; got && i < count; i++)
                if (got[i] != converted((long double)wide[i], DVT_F64, (dvt_dtype)dtype))
                    dvt_test_check(0, __FILE__, __LINE__, "%.17g became %.17g", wide[i], got[i]);
            free(got);
            got = dvt_test_values(
                dvt_astype(dvt_from_host(points, DVT_SHAPE(count), DVT_F32, dvt_cpu()),
                           (dvt_dtype)dtype, true));
            for (i = 0; got && i < count; i++)
                if (got[i] != converted((long double)points[i], DVT_F32, (dvt_dtype)dtype))
                    dvt_test_check(0, __FILE__, __LINE__, "%.9g became %.17g", (double)points[i],
                                   got[i]);
            free(got);
            CHECK(count > 80000);
        }
}

/* ---- copies are operations: gradients go back to where the source is ---- */
DVT_TEST(copies_gradients) {
    gpus(2);
    DVT_SCOPE {
        dvt_array *x = six(dvt_cpu()), *y = NULL, *z = NULL;
        CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
        DVT_RECORD {
            z = dvt_mul_scalar(dvt_copyto(x, dvt_gpu(0)), 3);
            y = dvt_copyto(dvt_copyto(z, dvt_gpu(1)), dvt_cpu());
            y = dvt_mul(dvt_copy(y), dvt_astype(dvt_astype(y, DVT_F64, true), DVT_F32, true));
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(dvt_grad(x))), "cpu(0)");
        CHECK_VALUES(dvt_grad(x), 1e-6, 18, 36, 54, 72, 90, 108);
    }
    gpus(0);
}
