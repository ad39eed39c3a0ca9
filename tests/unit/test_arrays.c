/* Tests of dtypes, shapes, sizes beyond 2^31, inspection and creation of arrays. */
#include "dvt_test.h"

/* ---- dtypes ---- */
DVT_TEST(arrays_dtypes) {
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

/* Checks the promotion table of the array API standard. We add float16 and bfloat16 with other
   floats, and integers with floats. One pair differs: int8 with uint8 is int16 there, and int32
   here, because int16 does not exist. */
DVT_TEST(arrays_promotion) {
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
DVT_TEST(arrays_shapes) {
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

DVT_TEST(arrays_sizes_that_do_not_fit) {
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 32, (int64_t)1 << 32), DVT_I8, dvt_cpu()),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 62), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 55), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE((int64_t)1 << 50), DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_ERROR(dvt_arange(0, 1e30, 1, DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_arange(0, 1e18, 1, DVT_F32, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    dvt_set_virtual_gpus(1, 0);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_gpu(0)),
                dvt_test_on_gpus() ? DVT_ERR_DEVICE_MEMORY : DVT_ERR_HOST_MEMORY);
    dvt_set_virtual_gpus(1, 1000);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(INT64_MAX), DVT_I8, dvt_gpu(0)), DVT_ERR_DEVICE_MEMORY);
    dvt_set_virtual_gpus(0, 0);
    /* no elements, for any other extents */
    CHECK_INT(dvt_size(dvt_zeros(DVT_SHAPE(INT64_MAX, 0, INT64_MAX), DVT_F64, dvt_cpu())), 0);
}

/* Views of few elements with sizes above 2^31. */
DVT_TEST(arrays_huge_views) {
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
    /* More than the address space, so that no system tries to find the memory for the copy. */
    y = dvt_broadcast_to(dvt_scalar(5, DVT_F32, dvt_cpu()), DVT_SHAPE((int64_t)1 << 45, 3));
    CHECK_INT(dvt_size(y), (int64_t)3 << 45);
    CHECK_INT(dvt_dim(y, 0), (int64_t)1 << 45);
    CHECK_VALUES(dvt_slice(y, 0, ((int64_t)1 << 45) - 2, DVT_END, 1), 0, 5, 5, 5, 5, 5, 5);
    CHECK_ERROR(dvt_broadcast_to(row, DVT_SHAPE((int64_t)1 << 62, n)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_copy(y), DVT_ERR_HOST_MEMORY);
}

/* Offsets above 2^31; untouched pages cost no memory. */
DVT_TEST(arrays_huge_offsets) {
    const int64_t n = ((int64_t)1 << 31) + 100;
    dvt_array *x, *end;
    if (sizeof(void *) < 8)
        SKIP("32-bit addresses");
    x = dvt_empty(DVT_SHAPE(n), DVT_I8, dvt_cpu());
    if (!x) {
        dvt_clear_error();
        SKIP("2 GiB of address space are not available");
    }
    end = dvt_slice(x, 0, -5, DVT_END, 1);
    CHECK(dvt_fill(end, 7) == end);
    CHECK_VALUES(dvt_add(end, end), 0, 14, 14, 14, 14, 14);
    CHECK_INT(((int8_t *)dvt_data(x))[n - 1], 7);
    CHECK_INT(dvt_item_at(x, DVT_SHAPE(n - 5)), 7);
    CHECK_VALUES(dvt_slice(x, 0, n - 1, n - 4, -1), 0, 7, 7, 7);
}

/* ---- inspection ---- */
DVT_TEST(arrays_inspection) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 3, 4), DVT_I32, dvt_cpu_id(1));
    CHECK_INT(dvt_ndim(x), 3);
    CHECK_INT(dvt_dim(x, 1), 3);
    CHECK_INT(dvt_dim(x, -1), 4);
    CHECK_INT(dvt_stride(x, 0), 12);
    CHECK_INT(dvt_stride(dvt_transpose(x, DVT_ALL), -1), 12);
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

DVT_TEST(arrays_inspection_of_null) {
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

DVT_TEST(arrays_creation) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_full(DVT_SHAPE(2, 2), -3.5, DVT_F16, cpu);
    CHECK_VALUES(x, 0, -3.5, -3.5, -3.5, -3.5);
    CHECK_VALUES(dvt_full_like(x, 2), 0, 2, 2, 2, 2);
    CHECK_INT(dvt_dtype_of(dvt_ones_like(x)), DVT_F16);
    CHECK_VALUES(dvt_full(DVT_SHAPE(2), 300, DVT_U8, cpu), 0, 255, 255);
    CHECK_VALUES(dvt_full(DVT_SHAPE(2), 0.5, DVT_BOOL, cpu), 0, 1, 1);
    CHECK_VALUES(dvt_full(DVT_SHAPE(1), (double)NAN, DVT_I32, cpu), 0, 0);
    CHECK_VALUES(dvt_full(DVT_SHAPE(1), (double)NAN, DVT_BOOL, cpu), 0, 1); /* same as dvt_astype */
    CHECK_VALUES(dvt_fill(dvt_zeros(DVT_SHAPE(1), DVT_BOOL, cpu), (double)NAN), 0, 1);
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
