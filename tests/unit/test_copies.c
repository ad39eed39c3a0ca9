/* Tests of copies between contexts, arrays and dtypes: which are new, which share memory, what is
   counted, and what is refused. */
#include "dvt_test.h"

static dvt_array *six(dvt_ctx ctx) {
    return DVT_ARRAY(float, DVT_SHAPE(2, 3), ctx, 1, 2, 3, 4, 5, 6);
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
                /* later writes change the array itself, not the copy */
                y = dvt_copyto(x, ctx[k]);
                dvt_fill(x, 9);
                CHECK_VALUES(y, 0, 1, 2, 3, 4, 5, 6);
                if (i == k)
                    CHECK_VALUES(z, 0, 9, 9, 9, 9, 9, 9);
            }
    gpus(0);
}

/* A copy from a GPU goes straight to the caller's memory: host memory holds no second one. */
DVT_TEST(copies_to_memory_of_the_caller) {
    enum { N = 30 };

    dvt_device_info cpu;
    unsigned char bytes[4 * N + 3];
    float value;
    int i, off;
    gpus(1);
    DVT_SCOPE {
        dvt_array *x = dvt_arange(0, N, 1, DVT_F32, dvt_gpu(0));
        dvt_array *t = dvt_transpose(dvt_reshape(x, DVT_SHAPE(5, 6)), DVT_ALL);
        for (off = 0; off < 4; off++) { /* floats at any address */
            memset(bytes, 0xa5, sizeof bytes);
            CHECK_INT(dvt_to_host(t, bytes + off, 4 * N), DVT_OK);
            for (i = 0; i < N; i++) {
                memcpy(&value, bytes + off + 4 * i, sizeof value);
                CHECK(value == i % 5 * 6 + i / 5);
            }
            for (i = 0; i < 4 * N + 3; i++)
                if (i < off || i >= off + 4 * N)
                    CHECK_INT(bytes[i], 0xa5);
        }
    }
    DVT_SCOPE {
        const int64_t n = 1 << 18;
        float *values = (float *)malloc(sizeof *values * (size_t)n);
        dvt_array *x = dvt_full(DVT_SHAPE(n), 7, DVT_F32, dvt_gpu(0));
        CHECK_INT(dvt_device_query(dvt_cpu(), &cpu), DVT_OK);
        dvt_set_memory_limit(cpu.memory_used + n, dvt_cpu());
        CHECK_INT(dvt_to_host(x, values, n * 4), DVT_OK);
        dvt_set_memory_limit(0, dvt_cpu());
        CHECK(values[0] == 7 && values[n - 1] == 7);
        free(values);
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
    CHECK(dvt_as_in_dtype(x, DVT_F32) == x);
    y = dvt_astype(x, DVT_F32);
    CHECK(y != x && !dvt_shares_memory(x, y));
    CHECK_VALUES(y, 0, 1, 2, 3, 4, 5, 6);
    y = dvt_as_in_dtype(x, DVT_I32);
    CHECK(y != x && dvt_dtype_of(y) == DVT_I32);
    CHECK(dvt_contiguous(x) == x);
    y = dvt_contiguous(dvt_t(x));
    CHECK(!dvt_shares_memory(x, y) && dvt_is_contiguous(y));
    CHECK_VALUES(y, 0, 1, 4, 2, 5, 3, 6);
    CHECK_ERROR(dvt_astype(x, (dvt_dtype)12), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_as_in_dtype(NULL, DVT_F32), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copyto(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copyto(x, dvt_gpu(3)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_as_in_ctx(x, dvt_gpu(3)), DVT_ERR_NO_DEVICE);
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

/* ---- copies into existing arrays ---- */
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

DVT_TEST(copies_into_broadcasting) {
    dvt_ctx ctx[2];
    int i, k;
    gpus(1);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_gpu(0);
    for (i = 0; i < 2; i++)
        for (k = 0; k < 2; k++)
            DVT_SCOPE {
                dvt_array *dst = dvt_zeros(DVT_SHAPE(2, 3), DVT_I32, ctx[k]);
                dvt_array *row = dvt_as_in_dtype(dvt_arange(1, 4, 1, DVT_F64, ctx[i]), DVT_F32);
                dvt_array *one = dvt_zeros(DVT_SHAPE(1, 3), DVT_F32, ctx[k]);
                CHECK(dvt_copy_into(dst, row) == dst);
                CHECK_VALUES(dst, 0, 1, 2, 3, 1, 2, 3);
                CHECK(dvt_copy_into(dst, dvt_scalar(7, DVT_F64, ctx[i])) == dst);
                CHECK_VALUES(dst, 0, 7, 7, 7, 7, 7, 7);
                CHECK(dvt_copy_into(
                          dst, dvt_reshape(dvt_slice(row, 0, 0, 2, 1), DVT_SHAPE(2, 1))) == dst);
                CHECK_VALUES(dst, 0, 1, 1, 1, 2, 2, 2);
                /* slice assignment: a column, and every second element in reverse */
                CHECK(dvt_copy_into(dvt_slice(dst, 1, 1, 2, 1), dvt_scalar(9, DVT_I8, ctx[i])));
                CHECK_VALUES(dst, 0, 1, 9, 1, 2, 9, 2);
                CHECK(dvt_copy_into(dvt_slice(dst, 1, -1, DVT_END, -2),
                                    dvt_slice(row, 0, 0, 2, 1)) != NULL);
                CHECK_VALUES(dst, 0, 2, 9, 1, 2, 9, 1);
                /* (3,) into (1, 3); (1, 1, 3) into (1, 3) and (3,): leading axes of extent 1 are
                   dropped */
                CHECK(dvt_copy_into(one, row) == one);
                CHECK_VALUES(one, 0, 1, 2, 3);
                row = dvt_reshape(dvt_mul_scalar(row, 2), DVT_SHAPE(1, 1, 3));
                CHECK(dvt_copy_into(one, row) == one);
                CHECK_VALUES(one, 0, 2, 4, 6);
                CHECK(dvt_copy_into(dvt_index(dst, 1), row) != NULL);
                CHECK_VALUES(dst, 0, 2, 9, 1, 2, 4, 6);
                CHECK(dvt_copy_into(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, ctx[k]), row) != NULL);
            }
    gpus(0);
}

/* The transfer moves src before it is broadcast. */
DVT_TEST(copies_into_broadcast_after_the_transfer) {
    dvt_stats before, after;
    gpus(1);
    DVT_SCOPE {
        dvt_array *dst = dvt_zeros(DVT_SHAPE(100, 4), DVT_F32, dvt_gpu(0));
        dvt_array *row = dvt_arange(0, 4, 1, DVT_F32, dvt_cpu());
        before = dvt_get_stats();
        CHECK(dvt_copy_into(dst, row) == dst);
        after = dvt_get_stats();
        CHECK_INT(after.to_device_bytes - before.to_device_bytes, 16);
        CHECK_CLOSE(dvt_item(dvt_sum(dst, DVT_ALL)), 600, 0);
    }
    gpus(0);
}

DVT_TEST(copies_into_itself) {
    dvt_array *x = six(dvt_cpu()), *wide = dvt_broadcast_to(x, DVT_SHAPE(2, 2, 3));
    CHECK(dvt_copy_into(x, x) == x);
    CHECK(dvt_copy_into(wide, wide) == wide);
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
}

DVT_TEST(copies_into_refusals) {
    dvt_array *x = six(dvt_cpu()), *y = dvt_zeros(DVT_SHAPE(3, 2), DVT_F32, dvt_cpu());
    CHECK(dvt_copy_into(y, x) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "(3, 2)") && strstr(dvt_error(), "(2, 3)"));
    dvt_clear_error();
    CHECK_ERROR(dvt_copy_into(dvt_broadcast_to(x, DVT_SHAPE(4, 2, 3)),
                              dvt_zeros(DVT_SHAPE(4, 2, 3), DVT_F32, dvt_cpu())),
                DVT_ERR_VALUE);
    /* dst never broadcasts, and only axes of extent 1 are dropped */
    CHECK_ERROR(dvt_copy_into(dvt_slice(x, 0, 0, 1, 1), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy_into(dvt_index(x, 0), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy_into(dvt_scalar(1, DVT_F32, dvt_cpu()), x), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy_into(x, dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy_into(x, dvt_ones(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy_into(NULL, x), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_copy_into(x, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
    CHECK_VALUES(y, 0, 0, 0, 0, 0, 0, 0);
    /* src may be broadcast */
    CHECK(dvt_copy_into(y, dvt_broadcast_to(dvt_scalar(2, DVT_F32, dvt_cpu()), DVT_SHAPE(3, 2))) ==
          y);
    CHECK_VALUES(y, 0, 2, 2, 2, 2, 2, 2);
}

/* Source and destination are windows of the same memory. */
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
    CHECK(dvt_copy_into(q, dvt_index(dvt_t(q), 1)) == q); /* also broadcasts */
    CHECK_VALUES(q, 0, 3, 4, 5, 3, 4, 5, 3, 4, 5);
}

/* ---- order: a copy sees exactly what was queued before it ---- */
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

/* ---- counters ---- */
DVT_TEST(copies_update_counters) {
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
        dvt_copyto(dvt_slice(dvt_t(z), 0, 0, 2, 1), dvt_cpu()); /* packed: four elements */
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
        /* empty arrays are not transferred */
        dvt_copyto(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu()), dvt_gpu(0));
        CHECK_INT(dvt_get_stats().to_device_count, 3);
    }
    gpus(0);
}

/* ---- the transfer guard ---- */
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
        /* explicit copies and reads of host memory are allowed */
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
            "int32",   "(3,)",    "gpu(0)", "dvt_as_in_ctx(b, dvt_cpu())"};
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
        /* the advice of the message works */
        CHECK_VALUES(dvt_add(a, dvt_as_in_ctx(b, dvt_ctx_of(a))), 0, 2, 2, 2, 2, 2, 2);
    }
    gpus(0);
}

/* "one.c:11" remains when the library's caller records call sites itself. */
DVT_TEST(copies_mixed_contexts_report_call_sites) {
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
            memset(in, 0, sizeof in); /* may be overwritten immediately */
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
        dvt_array *a = DVT_ARRAY(T, DVT_SHAPE(3), dvt_cpu(), 0, 1, 1);                             \
        dvt_array *b = DVT_ARRAY(T, DVT_SHAPE(2, 2), dvt_cpu(), 0, 1, 1, 0);                       \
        dvt_array *c = DVT_ARRAY(T, DVT_SHAPE(2, 1, 2), dvt_cpu(), 0, 1, 1, 1);                    \
        dvt_array *d = DVT_ARRAY(T, DVT_SHAPE(1, 2, 1, 2), dvt_cpu(), 1, 0, 1, 0);                 \
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

/* The number of values must match the number of elements of any shape. */
DVT_TEST(copies_count_the_values) {
    CHECK_ERROR(DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3), DVT_ERR_SHAPE);
    CHECK_ERROR(DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 1, 2, 3), DVT_ERR_SHAPE);
    CHECK_ERROR(DVT_ARRAY(float, DVT_SHAPE(0, 2), dvt_cpu(), 1), DVT_ERR_SHAPE);
    CHECK_ERROR(DVT_ARRAY(float, DVT_SHAPE(-1), dvt_cpu(), 1), DVT_ERR_SHAPE);
    CHECK(DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2) == NULL);
    CHECK(strstr(dvt_error(), "DVT_ARRAY: 2 values for shape (3,), which has 3 elements") != NULL);
    CHECK(strstr(dvt_error_site(), "test_copies.c") != NULL);
    dvt_clear_error();
    CHECK_CLOSE(dvt_item(DVT_ARRAY(double, DVT_SCALAR, dvt_cpu(), 0.5)), 0.5, 0);
}

DVT_TEST(copies_array_literals) {
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
    CHECK_ERROR(DVT_ARRAY(uint32_t, DVT_SHAPE(2), dvt_cpu(), 1, 2), DVT_ERR_DTYPE);
    CHECK_ERROR(DVT_ARRAY(unsigned long long, DVT_SHAPE(2), dvt_cpu(), 1, 2), DVT_ERR_DTYPE);
    CHECK(DVT_ARRAY(unsigned, DVT_SHAPE(2), dvt_cpu(), 1, 2) == NULL);
    CHECK(strstr(dvt_error(), "DVT_ARRAY: unsigned integers of 32 and 64 bits have no dtype"));
    CHECK(strstr(dvt_error(), "use int32_t or int64_t"));
    dvt_clear_error();
#endif
    gpus(1);
    DVT_SCOPE {
        CHECK_VALUES(DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_gpu(0), 1.5f, 2, 3, -4, 5, 6), 0, 1.5, 2,
                     3, -4, 5, 6);
    }
    gpus(0);
}

/* ---- copies are operations: gradients return to the context of the source ---- */
DVT_TEST(copies_gradients) {
    gpus(2);
    DVT_SCOPE {
        dvt_array *x = six(dvt_cpu()), *y = NULL, *z = NULL;
        CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
        DVT_RECORD {
            z = dvt_mul_scalar(dvt_copyto(x, dvt_gpu(0)), 3);
            y = dvt_copyto(dvt_copyto(z, dvt_gpu(1)), dvt_cpu());
            y = dvt_mul(dvt_copy(y), dvt_astype(dvt_astype(y, DVT_F64), DVT_F32));
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(dvt_grad(x))), "cpu(0)");
        CHECK_VALUES(dvt_grad(x), 1e-6, 18, 36, 54, 72, 90, 108);
    }
    gpus(0);
}
