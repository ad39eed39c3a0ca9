/* Contexts, devices, dtypes, shapes, inspection, statuses, log and allocator. */
#include "dvt_test.h"

/* ---- contexts ---- */
DVT_TEST(core_context_values) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
    CHECK_INT(dvt_cpu().type, DVT_DEVICE_CPU);
    CHECK_INT(dvt_cpu().id, 0);
    CHECK_INT(dvt_cpu_id(3).id, 3);
    CHECK_INT(dvt_gpu(2).type, DVT_DEVICE_GPU);
    CHECK_INT(dvt_gpu(2).id, 2);
    CHECK(dvt_ctx_equal(dvt_cpu(), dvt_cpu_id(0)));
    CHECK(!dvt_ctx_equal(dvt_cpu(), dvt_cpu_id(1)));
    CHECK(!dvt_ctx_equal(dvt_cpu(), dvt_gpu(0)));
    CHECK(!dvt_ctx_equal(dvt_gpu(0), dvt_gpu(1)));
    CHECK(dvt_ctx_equal(zero, dvt_cpu()));
    CHECK_STR(dvt_ctx_name(dvt_cpu()), "cpu(0)");
    CHECK_STR(dvt_ctx_name(dvt_cpu_id(42)), "cpu(42)");
    CHECK_STR(dvt_ctx_name(dvt_gpu(10)), "gpu(10)");
    CHECK_STR(dvt_ctx_name(zero), "cpu(0)");
}

/* A name lives through the next 15 of its thread. */
DVT_TEST(core_context_names_live) {
    const char *names[16];
    int i;
    for (i = 0; i < 16; i++)
        names[i] = dvt_ctx_name(dvt_gpu(i));
    for (i = 0; i < 16; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "gpu(%d)", i);
        CHECK_STR(names[i], expected);
    }
}

DVT_TEST(core_context_parse) {
    static const char *const good[] = {"cpu", "gpu", "cpu(0)", "cpu(7)", "gpu(3)", "gpu(12)"};
    static const char *const names[] = {"cpu(0)", "gpu(0)", "cpu(0)",
                                        "cpu(7)", "gpu(3)", "gpu(12)"};
    static const char *const bad[] = {"",
                                      "c",
                                      "CPU",
                                      "cpu()",
                                      "cpu(-1)",
                                      "cpu(1",
                                      "cpu(1)x",
                                      "gpu 1",
                                      "gpu(x)",
                                      "tpu(0)",
                                      " cpu",
                                      "cpu(0x1)",
                                      "cpu( 1)",
                                      "cpu(1 )",
                                      "gpu(1)(2)",
                                      "cpu(99999999999999999999)",
                                      "gpu(4294967296)"};
    dvt_ctx ctx;
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_INT(dvt_ctx_parse(good[i], &ctx), DVT_OK);
        CHECK_STR(dvt_ctx_name(ctx), names[i]);
    }
    ctx = dvt_gpu(5);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_ERROR(dvt_ctx_parse(bad[i], &ctx), DVT_ERR_NAME);
        CHECK(dvt_ctx_equal(ctx, dvt_gpu(5)));
    }
    CHECK_ERROR(dvt_ctx_parse(NULL, &ctx), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_ctx_parse("cpu", NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(core_context_lists) {
    dvt_ctx_list list = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(1));
    char text[64], small[10];
    CHECK_INT(list.n, 3);
    CHECK_INT(dvt_ctx_list_format(list, text, sizeof text), 24);
    CHECK_STR(text, "[cpu(0), gpu(0), gpu(1)]");
    CHECK_INT(dvt_ctx_list_format(list, small, sizeof small), 24);
    CHECK_STR(small, "[cpu(0), ");
    CHECK_INT(dvt_ctx_list_format(list, NULL, 0), 24);
    list = DVT_CONTEXTS(dvt_gpu(3));
    CHECK_INT(list.n, 1);
    dvt_ctx_list_format(list, text, sizeof text);
    CHECK_STR(text, "[gpu(3)]");
    list = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1), dvt_gpu(2), dvt_gpu(3), dvt_gpu(4), dvt_gpu(5),
                        dvt_gpu(6), dvt_gpu(7));
    CHECK_INT(list.n, 8);
    CHECK_INT(list.ctx[7].id, 7);
    list.n = 0;
    dvt_ctx_list_format(list, text, sizeof text);
    CHECK_STR(text, "[]");
}

DVT_TEST(core_gpus) {
    char text[64];
    dvt_ctx_list list;
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK_INT(dvt_num_gpus(), 0);
    CHECK(strlen(dvt_gpu_reason()) > 10);
    CHECK(dvt_ctx_equal(dvt_try_gpu(0), dvt_cpu()));
    CHECK_INT(dvt_try_all_gpus().n, 0);
    list = dvt_try_all_gpus_or_cpu();
    CHECK_INT(list.n, 1);
    CHECK_STR(dvt_ctx_name(list.ctx[0]), "cpu(0)");
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)), DVT_ERR_NO_DEVICE);

    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    CHECK_INT(dvt_num_gpus(), 2);
    CHECK_STR(dvt_gpu_reason(), "");
    CHECK(dvt_ctx_equal(dvt_try_gpu(1), dvt_gpu(1)));
    CHECK(dvt_ctx_equal(dvt_try_gpu(2), dvt_cpu()));
    CHECK(dvt_ctx_equal(dvt_try_gpu(-1), dvt_cpu()));
    dvt_ctx_list_format(dvt_try_all_gpus(), text, sizeof text);
    CHECK_STR(text, "[gpu(0), gpu(1)]");
    dvt_ctx_list_format(dvt_try_all_gpus_or_cpu(), text, sizeof text);
    CHECK_STR(text, "[gpu(0), gpu(1)]");
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(2)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(-1)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_cpu_id(-1)), DVT_ERR_NO_DEVICE);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(core_missing_device_messages) {
    dvt_clear_error();
    dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
    CHECK(strstr(dvt_error(), "dvt_zeros: gpu(0) does not exist") != NULL);
    CHECK(strstr(dvt_error(), dvt_gpu_reason()) != NULL);
    CHECK(strstr(dvt_error(), "dvt_try_gpu(0)") != NULL);
    dvt_clear_error();
    dvt_set_virtual_gpus(2, 0);
    dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(10));
    CHECK(strstr(dvt_error(), "gpu(10) does not exist: there are 2 GPUs, gpu(0) to gpu(1)") !=
          NULL);
    dvt_clear_error();
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_virtual_gpus_setting) {
    dvt_array *x;
    CHECK_ERROR(dvt_set_virtual_gpus(-1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_virtual_gpus(DVT_MAX_GPUS + 1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_virtual_gpus(1, -1), DVT_ERR_RANGE);
    CHECK_INT(dvt_set_virtual_gpus(DVT_MAX_GPUS, 0), DVT_OK);
    x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(DVT_MAX_GPUS - 1));
    CHECK_VALUES(x, 0, 1, 1);
    CHECK_ERROR(dvt_set_virtual_gpus(1, 0), DVT_ERR_VALUE);
    CHECK_INT(dvt_num_gpus(), DVT_MAX_GPUS);
    dvt_release_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* A byte limit makes running out of device memory real; what is released can be used again. */
DVT_TEST(core_virtual_gpu_memory) {
    dvt_device_info info;
    dvt_array *x;
    dvt_set_virtual_gpus(2, 10000);
    CHECK_INT(dvt_device_query(dvt_gpu(1), &info), DVT_OK);
    CHECK(info.is_virtual && info.memory_total == 10000 && info.memory_free == 10000);
    CHECK(info.memory_used == 0 && info.driver_version == 0 && info.threads >= 1);
    CHECK(strlen(info.name) > 0 && dvt_ctx_equal(info.ctx, dvt_gpu(1)));
    DVT_SCOPE {
        x = dvt_zeros(DVT_SHAPE(2000), DVT_F32, dvt_gpu(1));
        CHECK(x != NULL);
        dvt_device_query(dvt_gpu(1), &info);
        CHECK(info.memory_used >= 8000 && info.memory_free == 10000 - info.memory_used);
        CHECK_ERROR(dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_gpu(1)), DVT_ERR_DEVICE_MEMORY);
        CHECK_ERROR(dvt_copy(x), DVT_ERR_DEVICE_MEMORY);
        CHECK_ERROR(dvt_copyto(dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_cpu()), dvt_gpu(1)),
                    DVT_ERR_DEVICE_MEMORY);
        /* its own memory: the other device has all of its */
        CHECK(dvt_copyto(x, dvt_gpu(0)) != NULL);
        dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_gpu(1));
        CHECK(strstr(dvt_error(), "gpu(1)") != NULL && strstr(dvt_error(), "10000") != NULL);
        dvt_clear_error();
    }
    CHECK_INT(dvt_wait_all(), DVT_OK);
    dvt_device_query(dvt_gpu(1), &info);
    CHECK(info.memory_used == 0 && info.memory_peak >= 8000 && info.memory_peak <= 10000);
    DVT_SCOPE {
        CHECK(dvt_zeros(DVT_SHAPE(2400), DVT_F32, dvt_gpu(1)) != NULL);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_device_query) {
    dvt_device_info info;
    char text[4096], small[20];
    size_t length;
    CHECK_INT(dvt_device_query(dvt_cpu(), &info), DVT_OK);
    CHECK(!info.is_virtual && info.threads == dvt_num_threads() && strlen(info.name) > 0);
    CHECK(info.memory_total > 0 && info.memory_free <= info.memory_total);
    CHECK_ERROR(dvt_device_query(dvt_gpu(0), &info), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_device_query(dvt_cpu(), NULL), DVT_ERR_NULL_ARGUMENT);
    length = dvt_devices_format(text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK(strstr(text, "cpu(0)") && strstr(text, DVT_VERSION_STRING));
    CHECK(strstr(text, dvt_gpu_reason()) != NULL && !strstr(text, "gpu(0)"));
    CHECK(dvt_devices_format(small, sizeof small) > sizeof small && strlen(small) == 19);
    dvt_set_virtual_gpus(2, 64 << 20);
    dvt_devices_format(text, sizeof text);
    CHECK(strstr(text, "gpu(1)") && strstr(text, "64 MiB") && !strstr(text, "no GPU"));
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(core_default_context) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0};
    dvt_set_virtual_gpus(2, 0);
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    DVT_WITH_CTX(dvt_gpu(1)) {
        CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
        CHECK_STR(dvt_ctx_name(dvt_ctx_of(dvt_ones(DVT_SHAPE(2), DVT_F32, zero))), "gpu(1)");
        CHECK(dvt_ctx_equal(zero, dvt_gpu(1)));
        DVT_WITH_CTX(dvt_cpu_id(2)) {
            CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(2)");
        }
        /* the default of the default changes nothing */
        DVT_WITH_CTX(zero) {
            CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
        }
        CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "gpu(1)");
    }
    while (1)
        DVT_WITH_CTX(dvt_gpu(0)) {
            goto out;
        }
out:
    CHECK_STR(dvt_ctx_name(dvt_default_ctx()), "cpu(0)");
    dvt_release_all();
    dvt_set_virtual_gpus(0, 0);
}

/* ---- dtypes ---- */
DVT_TEST(core_dtypes) {
    static const char *const names[] = {"float32", "float64", "float16", "bfloat16", "int8",
                                        "uint8",   "int32",   "int64",   "bool"};
    static const int sizes[] = {4, 8, 2, 2, 1, 1, 4, 8, 1};
    dvt_dtype dtype;
    int i;
    CHECK_INT(DVT_F32, 0);
    for (i = 0; i < DVT_DTYPE_COUNT; i++) {
        CHECK_STR(dvt_dtype_name((dvt_dtype)i), names[i]);
        CHECK_INT(dvt_dtype_size((dvt_dtype)i), sizes[i]);
        CHECK_INT(dvt_dtype_parse(names[i], &dtype), DVT_OK);
        CHECK_INT(dtype, i);
        CHECK_INT(dvt_dtype_is_float((dvt_dtype)i), i < 4);
        CHECK_INT(dvt_dtype_is_int((dvt_dtype)i), i >= 4 && i < 8);
    }
    CHECK_STR(dvt_dtype_name((dvt_dtype)-1), "?");
    CHECK_STR(dvt_dtype_name((dvt_dtype)99), "?");
    CHECK_INT(dvt_dtype_size((dvt_dtype)9), 0);
    CHECK_ERROR(dvt_dtype_parse("float", &dtype), DVT_ERR_NAME);
    CHECK_ERROR(dvt_dtype_parse(NULL, &dtype), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(1), (dvt_dtype)9, dvt_cpu()), DVT_ERR_DTYPE);
}

/* The array API standard's table, with our two additions: float16 and bfloat16 beside other floats, and an integer beside a
   float. Its corner: int8 with uint8 is int16 there, which does not exist here: int32. */
DVT_TEST(core_promotion) {
    enum {
        F = DVT_F32,
        D = DVT_F64,
        H = DVT_F16,
        G = DVT_BF16,
        B = DVT_I8,
        U = DVT_U8,
        I = DVT_I32,
        L = DVT_I64,
        O = DVT_BOOL
    };

    static const int table[9][9] = {
        /* F32 F64 F16 BF16 I8 U8 I32 I64 BOOL */
        {F, D, F, F, F, F, F, F, F}, /* float32 */
        {D, D, D, D, D, D, D, D, D}, /* float64 */
        {F, D, H, F, H, H, H, H, H}, /* float16 */
        {F, D, F, G, G, G, G, G, G}, /* bfloat16 */
        {F, D, H, G, B, I, I, L, B}, /* int8 */
        {F, D, H, G, I, U, I, L, U}, /* uint8 */
        {F, D, H, G, I, I, I, L, I}, /* int32 */
        {F, D, H, G, L, L, L, L, L}, /* int64 */
        {F, D, H, G, B, U, I, L, O}, /* bool */
    };
    int a, b;
    for (a = 0; a < DVT_DTYPE_COUNT; a++)
        for (b = 0; b < DVT_DTYPE_COUNT; b++) {
            CHECK_INT(dvt_promote((dvt_dtype)a, (dvt_dtype)b), table[a][b]);
            DVT_SCOPE {
                dvt_array *x = dvt_ones(DVT_SHAPE(2), (dvt_dtype)a, dvt_cpu());
                dvt_array *y = dvt_ones(DVT_SHAPE(2), (dvt_dtype)b, dvt_cpu());
                CHECK_INT(dvt_dtype_of(dvt_maximum(x, y)), table[a][b]);
            }
        }
}

/* ---- shapes ---- */
DVT_TEST(core_shapes) {
    dvt_shape shape = DVT_SHAPE(2, 3, 4), bad;
    dvt_axes axes = DVT_AXES(0, -1);
    CHECK_INT(shape.ndim, 3);
    CHECK_INT(shape.dim[2], 4);
    CHECK_INT(DVT_SHAPE(1, 2, 3, 4, 5, 6, 7, 8).ndim, 8);
    CHECK_INT(DVT_SHAPE(1, 2, 3, 4, 5, 6, 7, 8).dim[7], 8);
    CHECK_INT(axes.n, 2);
    CHECK_INT(axes.axis[1], -1);
    CHECK_INT(DVT_ALL.n, 0);
    CHECK_INT(dvt_shape_size(shape), 24);
    CHECK_INT(dvt_shape_size(DVT_SCALAR), 1);
    CHECK_INT(dvt_shape_size(DVT_SHAPE(5, 0, 7)), 0);
    CHECK_INT(dvt_shape_size(DVT_SHAPE(3000000000, 3)), 9000000000);
    CHECK_INT(dvt_shape_size(DVT_SHAPE(-1, 4)), -1);
    CHECK_INT(dvt_shape_size(DVT_SHAPE((int64_t)1 << 32, (int64_t)1 << 31)), -1);
    CHECK_INT(dvt_shape_size(DVT_SHAPE(INT64_MAX, 1, 1)), INT64_MAX);
    CHECK_INT(dvt_shape_size(DVT_SHAPE(INT64_MAX, INT64_MAX, 0)), 0);
    CHECK(dvt_shape_equal(shape, DVT_SHAPE(2, 3, 4)));
    CHECK(!dvt_shape_equal(shape, DVT_SHAPE(2, 3)));
    CHECK(!dvt_shape_equal(shape, DVT_SHAPE(2, 3, 5)));
    CHECK(dvt_shape_equal(DVT_SCALAR, DVT_SCALAR));
    bad = shape;
    bad.ndim = 9;
    CHECK_INT(dvt_shape_size(bad), -1);
    CHECK_ERROR(dvt_zeros(bad, DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    bad.ndim = -1;
    CHECK_ERROR(dvt_zeros(bad, DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2, -3), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
}

DVT_TEST(core_sizes_that_do_not_fit) {
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 32, (int64_t)1 << 32), DVT_I8, dvt_cpu()),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 62), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 55), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 50), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_arange(0, 1e30, 1, DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_arange(0, 1e18, 1, DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    dvt_set_virtual_gpus(1, 0);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_gpu(0)), DVT_ERR_HOST_MEMORY);
    dvt_set_virtual_gpus(1, 1000);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_gpu(0)), DVT_ERR_DEVICE_MEMORY);
    dvt_set_virtual_gpus(0, 0);
    /* no elements, whatever the other extents */
    CHECK_INT(dvt_size(dvt_zeros(DVT_SHAPE(INT64_MAX, 0, INT64_MAX), DVT_F64, dvt_cpu())), 0);
}

/* More than 2^31 elements, as views of few. */
DVT_TEST(core_huge_views) {
    const int64_t n = 70000;
    dvt_array *row = dvt_arange(0, 70000, 1, DVT_I32, dvt_cpu());
    dvt_array *x = dvt_broadcast_to(row, DVT_SHAPE(n, n)), *y;
    CHECK_INT(dvt_size(x), n * n);
    CHECK_INT(dvt_nbytes(x), n * n * 4);
    CHECK_INT(dvt_item_at(x, DVT_SHAPE(-1, -1)), n - 1);
    CHECK_INT(dvt_item_at(x, DVT_SHAPE(69999, 12345)), 12345);
    CHECK_INT(dvt_item_at(dvt_t(x), DVT_SHAPE(12345, 69999)), 12345);
    CHECK_VALUES(dvt_slice(dvt_index(x, 69998), 0, 69997, DVT_END, 1), 0, 69997, 69998, 69999);
    y = dvt_slice(dvt_slice(x, 0, 69998, DVT_END, 1), 1, -1, 0, -35000);
    CHECK_VALUES(y, 0, 69999, 34999, 69999, 34999);
    CHECK_VALUES(dvt_add_scalar(y, 1), 0, 70000, 35000, 70000, 35000);
    y = dvt_broadcast_to(dvt_scalar(5, DVT_F32, dvt_cpu()), DVT_SHAPE((int64_t)1 << 40, 3));
    CHECK_INT(dvt_size(y), (int64_t)3 << 40);
    CHECK_INT(dvt_dim(y, 0), (int64_t)1 << 40);
    CHECK_VALUES(dvt_slice(y, 0, ((int64_t)1 << 40) - 2, DVT_END, 1), 0, 5, 5, 5, 5, 5, 5);
    CHECK_ERROR(dvt_broadcast_to(row, DVT_SHAPE((int64_t)1 << 62, n)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy(y), DVT_ERR_HOST_MEMORY);
}

/* Offsets beyond 2^31; pages that are never touched cost no memory. */
DVT_TEST(core_huge_offsets) {
    const int64_t n = ((int64_t)1 << 31) + 100;
    dvt_array *x, *end;
    if (sizeof(void *) < 8)
        SKIP("32-bit addresses");
    x = dvt_empty(DVT_SHAPE(n), DVT_I8, dvt_cpu());
    if (!x) {
        dvt_clear_error();
        SKIP("2 GiB of address space are not to be had");
    }
    end = dvt_slice(x, 0, -5, DVT_END, 1);
    CHECK(dvt_fill(end, 7) == end);
    CHECK_VALUES(dvt_add(end, end), 0, 14, 14, 14, 14, 14);
    CHECK_INT(((int8_t *)dvt_data(x))[n - 1], 7);
    CHECK_INT(dvt_item_at(x, DVT_SHAPE(n - 5)), 7);
    CHECK_VALUES(dvt_slice(x, 0, n - 1, n - 4, -1), 0, 7, 7, 7);
}

/* ---- inspection ---- */
DVT_TEST(core_inspection) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 3, 4), DVT_I32, dvt_cpu_id(1));
    CHECK_INT(dvt_ndim(x), 3);
    CHECK_INT(dvt_dim(x, 1), 3);
    CHECK_INT(dvt_dim(x, -1), 4);
    CHECK_INT(dvt_stride(x, 0), 12);
    CHECK_INT(dvt_stride(dvt_t(x), -1), 12);
    CHECK_INT(dvt_size(x), 24);
    CHECK_INT(dvt_nbytes(x), 96);
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_STR(dvt_ctx_name(dvt_ctx_of(x)), "cpu(1)");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 3, 4)));
    CHECK(dvt_is_contiguous(x) && !dvt_is_contiguous(dvt_t(x)));
    CHECK(dvt_is_contiguous(dvt_rows(x, 1, 2)) && dvt_is_contiguous(dvt_slice(x, 1, 0, 0, 1)));
    CHECK(!dvt_is_contiguous(dvt_slice(x, 2, 0, 2, 1)) && dvt_is_contiguous(dvt_index(x, 1)));
    CHECK(dvt_shares_memory(x, dvt_index(x, 1)) && !dvt_shares_memory(x, dvt_copy(x)));
    CHECK_ERROR(dvt_dim(x, 3), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_dim(x, -4), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_stride(x, 3), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_dim(dvt_scalar(1, DVT_F32, dvt_cpu()), 0), DVT_ERR_AXIS);
}

DVT_TEST(core_inspection_of_null) {
    CHECK_INT(dvt_ndim(NULL), 0);
    CHECK_INT(dvt_size(NULL), 0);
    CHECK_INT(dvt_nbytes(NULL), 0);
    CHECK_INT(dvt_shape_of(NULL).ndim, 0);
    CHECK(!dvt_is_contiguous(NULL) && !dvt_shares_memory(NULL, NULL));
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_ERROR(dvt_dim(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_stride(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_data(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_wait(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_zeros_like(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_from_host(NULL, DVT_SHAPE(2), DVT_F32, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_size(dvt_from_host(NULL, DVT_SHAPE(0), DVT_F32, dvt_cpu())), 0);
}

DVT_TEST(core_creation) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_full(DVT_SHAPE(2, 2), -3.5, DVT_F16, cpu);
    CHECK_VALUES(x, 0, -3.5, -3.5, -3.5, -3.5);
    CHECK_VALUES(dvt_full_like(x, 2), 0, 2, 2, 2, 2);
    CHECK_INT(dvt_dtype_of(dvt_ones_like(x)), DVT_F16);
    CHECK_VALUES(dvt_full(DVT_SHAPE(2), 300, DVT_U8, cpu), 0, 255, 255);
    CHECK_VALUES(dvt_full(DVT_SHAPE(2), 0.5, DVT_BOOL, cpu), 0, 1, 1);
    CHECK_VALUES(dvt_full(DVT_SHAPE(1), (double)NAN, DVT_I32, cpu), 0, 0);
    CHECK_INT(dvt_item_int(dvt_full(DVT_SCALAR, 9.3e18, DVT_I64, cpu)), INT64_MAX);
    CHECK_VALUES(dvt_eye(2, 3, 0, DVT_F32, cpu), 0, 1, 0, 0, 0, 1, 0);
    CHECK_VALUES(dvt_eye(3, 2, -1, DVT_BOOL, cpu), 0, 0, 0, 1, 0, 0, 1);
    CHECK_VALUES(dvt_eye(2, 2, 5, DVT_F32, cpu), 0, 0, 0, 0, 0);
    CHECK_VALUES(dvt_arange(0, 1, 0.25, DVT_F32, cpu), 0, 0, 0.25, 0.5, 0.75);
    CHECK_VALUES(dvt_arange(5, 0, -2, DVT_I64, cpu), 0, 5, 3, 1);
    CHECK_INT(dvt_size(dvt_arange(1, 0, 1, DVT_F32, cpu)), 0);
    CHECK_VALUES(dvt_linspace(0, 1, 5, DVT_F64, cpu), 0, 0, 0.25, 0.5, 0.75, 1);
    CHECK_VALUES(dvt_linspace(3, 9, 1, DVT_F32, cpu), 0, 3);
    CHECK_INT(dvt_size(dvt_linspace(3, 9, 0, DVT_F32, cpu)), 0);
    CHECK(dvt_item_at(dvt_linspace(0, 0.1, 7, DVT_F64, cpu), DVT_SHAPE(6)) == 0.1);
    CHECK_INT(
        dvt_item_int(dvt_index(dvt_arange(9007199254740993.0, 9.1e15, 1e12, DVT_I64, cpu), 0)),
        9007199254740992);
    CHECK_ERROR(dvt_arange(0, 1, 0, DVT_F32, cpu), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_arange(0, (double)NAN, 1, DVT_F32, cpu), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_arange(0, 3, 1, DVT_BOOL, cpu), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_linspace(0, 1, -1, DVT_F32, cpu), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_eye(-1, 2, 0, DVT_F32, cpu), DVT_ERR_SHAPE);
}

/* ---- statuses and errors ---- */
DVT_TEST(core_status_table) {
    static const int numbers[] = {
#define ROW(name, number, meaning, fix) number,
        DVT_STATUS_TABLE(ROW)
#undef ROW
    };
    static const char *const names[] = {
#define ROW(name, number, meaning, fix) "DVT_ERR_" #name,
        DVT_STATUS_TABLE(ROW)
#undef ROW
    };
    int n = (int)(sizeof numbers / sizeof numbers[0]), i, k;
    for (i = 0; i < n; i++) {
        dvt_status status = (dvt_status)numbers[i];
        CHECK_STR(dvt_status_name(status), names[i]);
        CHECK(strlen(dvt_status_meaning(status)) > 5);
        CHECK(status == DVT_OK || strlen(dvt_status_fix(status)) > 5);
        CHECK(numbers[i] == 0 || numbers[i] / 100 == 1 || numbers[i] / 100 == 2 ||
              numbers[i] / 100 == 3 || numbers[i] / 100 == 4 || numbers[i] / 100 == 9);
        for (k = 0; k < i; k++)
            CHECK(numbers[k] != numbers[i]);
    }
    CHECK_STR(dvt_status_name((dvt_status)77), "DVT_ERR_?");
    CHECK(strlen(dvt_status_meaning((dvt_status)77)) > 0);
    CHECK_STR(dvt_status_fix((dvt_status)77), "");
    CHECK_STR(dvt_version(), DVT_VERSION_STRING);
    CHECK_INT(dvt_version_number(), DVT_VERSION);
}

/* The first failure is kept; NULL passes through a chain without another. */
DVT_TEST(core_first_error_is_kept) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *y;
    char first[1024];
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_STR(dvt_error(), "");
    y = dvt_add(x, dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()));
    CHECK(y == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "dvt_add") && strstr(dvt_error(), "(2,)") &&
          strstr(dvt_error(), "(3,)"));
    snprintf(first, sizeof first, "%s", dvt_error());
    CHECK(dvt_exp(dvt_mul(y, x)) == NULL);
    CHECK_INT(dvt_copy_into(x, NULL) == NULL, 1);
    CHECK_ERROR(
        (dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), dvt_linspace(0, 1, -1, DVT_F32, dvt_cpu())),
        DVT_ERR_SHAPE);
    y = dvt_add(x, dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()));
    dvt_linspace(0, 1, -1, DVT_F32, dvt_cpu());
    CHECK_STR(dvt_error(), first);
    dvt_clear_error();
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_STR(dvt_error(), "");
    CHECK_STR(dvt_error_site(), "");
    CHECK_VALUES(dvt_add(x, x), 0, 2, 2);
}

typedef struct log_lines {
    int n;
    dvt_log_level level;
    char last[256];
} log_lines;

static void collect(void *user, dvt_log_level level, const char *message) {
    log_lines *lines = (log_lines *)user;
    lines->n++;
    lines->level = level;
    snprintf(lines->last, sizeof lines->last, "%s", message);
}

DVT_TEST(core_logger) {
    log_lines lines = {0, DVT_LOG_DEBUG, ""};
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_set_logger(collect, &lines);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_INT(lines.n, 1);
    CHECK_INT(lines.level, DVT_LOG_ERROR);
    CHECK(strncmp(lines.last, "dvt_zeros: ", 11) == 0);
    CHECK(dvt_copy_into(x, x) == NULL);
    CHECK_INT(lines.n, 2);
    CHECK_INT(lines.level, DVT_LOG_WARNING);
    CHECK_INT(dvt_error_code(), DVT_OK);
    dvt_set_logger(NULL, NULL);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(-1), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_INT(lines.n, 2);
}

/* ---- the allocator ---- */
typedef struct counts {
    long long allocations, releases, refused;
    int refuse;
} counts;

static void *count_alloc(void *user, size_t bytes) {
    counts *c = (counts *)user;
    if (c->refuse) {
        c->refused++;
        return NULL;
    }
    c->allocations++;
    return malloc(bytes);
}

static void *count_resize(void *user, void *block, size_t bytes) {
    counts *c = (counts *)user;
    if (c->refuse) {
        c->refused++;
        return NULL;
    }
    return realloc(block, bytes);
}

static void count_release(void *user, void *block) {
    ((counts *)user)->releases++;
    free(block);
}

DVT_TEST(core_allocator) {
    counts c = {0, 0, 0, 0};
    dvt_allocator allocator = {count_alloc, count_resize, count_release, NULL};
    DVT_SCOPE { /* the stacks of this thread keep what they have grown to */
        dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    }
    allocator.user = &c;
    dvt_set_allocator(&allocator);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, dvt_cpu());
        CHECK(c.allocations >= 3); /* an array, a storage, its elements */
        c.refuse = 1;
        CHECK_ERROR(dvt_copy(x), DVT_ERR_HOST_MEMORY);
        CHECK_ERROR(dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
        CHECK_ERROR(dvt_t(x), DVT_ERR_HOST_MEMORY);
        CHECK(c.refused >= 3);
        c.refuse = 0;
        CHECK(dvt_copy(x) != NULL);
    }
    CHECK_INT(c.allocations, c.releases);
    dvt_set_allocator(NULL);
    c.allocations = 0;
    CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()) != NULL);
    CHECK_INT(c.allocations, 0);
}

/* ---- counters ---- */
DVT_TEST(core_stats) {
    dvt_stats stats;
    dvt_reset_stats();
    stats = dvt_get_stats();
    CHECK(stats.kernels == 0 && stats.waits == 0 && stats.to_device_count == 0);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
        dvt_stats now;
        dvt_t(x);
        now = dvt_get_stats();
        CHECK_INT(now.arrays - stats.arrays, 2);
        CHECK_INT(now.blocks_of_memory - stats.blocks_of_memory, 1);
        CHECK_INT(now.kernels, 1);
        dvt_reset_stats();
        CHECK_INT(dvt_get_stats().kernels, 0);
        CHECK_INT(dvt_get_stats().arrays - stats.arrays, 2);
    }
    CHECK_INT(dvt_get_stats().arrays, stats.arrays);
    CHECK_INT(dvt_get_stats().blocks_of_memory, stats.blocks_of_memory);
}

DVT_TEST(core_threads_setting) {
    int n = dvt_num_threads();
    CHECK(n >= 1 && n <= 256);
    CHECK_INT(dvt_set_num_threads(3), DVT_OK);
    CHECK(dvt_num_threads() == 3 || dvt_num_threads() == 1); /* 1: DEVTENSOR_NO_THREADS */
    CHECK_ERROR(dvt_set_num_threads(-1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_set_num_threads(257), DVT_ERR_RANGE);
    CHECK_INT(dvt_set_num_threads(0), DVT_OK);
    CHECK_INT(dvt_num_threads(), n);
}

/* dvt_error_code() is the first failure; a status is that of the call which returns it. */
DVT_TEST(core_status_is_of_its_own_call) {
    dvt_array *x = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()), *parts[2];
    dvt_clear_error();
    CHECK(dvt_reshape(x, DVT_SHAPE(2)) == NULL);
    CHECK_INT(dvt_split(x, 2, 5, false, parts), DVT_ERR_AXIS);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    dvt_clear_error();
}
