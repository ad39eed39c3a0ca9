/* Tests that copies keep every bit, also of NaN. Patterns are all 65536 of float16 and bfloat16,
   and signalling and quiet NaN of wider floats. Every route that moves elements without changing
   their dtype is tested. Numbers on the same route show where each element went. */
#include "dvt_test.h"

#define SIDE 256

static dvt_array *by_copy(dvt_array *x) {
    return dvt_copy(x);
}

static dvt_array *by_transposing(dvt_array *x) {
    return dvt_contiguous(dvt_swapaxes(x, 0, 1));
}

static dvt_array *by_three_axes(dvt_array *x) {
    dvt_array *y = dvt_reshape(x, DVT_SHAPE(16, 16, 256));
    return dvt_contiguous(dvt_transpose(y, DVT_AXES(1, 0, 2)));
}

static dvt_array *by_small_axes(dvt_array *x) { /* too short for blocks */
    dvt_array *y = dvt_reshape(x, DVT_SHAPE(SIDE * SIDE / 8, 4, 2));
    return dvt_contiguous(dvt_swapaxes(y, 1, 2));
}

static dvt_array *by_steps(dvt_array *x) {
    return dvt_contiguous(dvt_slice(x, 1, 1, SIDE, 2));
}

static dvt_array *by_backward_steps(dvt_array *x) {
    return dvt_contiguous(dvt_slice(x, 1, SIDE - 1, 3, -1));
}

static dvt_array *by_broadcasting(dvt_array *x) {
    dvt_array *row = dvt_reshape(x, DVT_SHAPE(1, SIDE * SIDE));
    return dvt_contiguous(dvt_broadcast_to(row, DVT_SHAPE(2, SIDE * SIDE)));
}

static dvt_array *by_repeating(dvt_array *x) {
    dvt_array *column = dvt_reshape(x, DVT_SHAPE(SIDE * SIDE, 1));
    return dvt_contiguous(dvt_broadcast_to(column, DVT_SHAPE(SIDE * SIDE, 3)));
}

static dvt_array *by_one_element(dvt_array *x) {
    dvt_array *one = dvt_reshape(dvt_slice(dvt_rows(x, 125, 126), 1, 3, 4, 1), DVT_SHAPE(1));
    return dvt_contiguous(dvt_broadcast_to(one, DVT_SHAPE(100)));
}

static dvt_array *by_concat(dvt_array *x) {
    dvt_array *parts[2];
    parts[0] = x;
    parts[1] = dvt_slice(x, 1, 0, 7, 1);
    return dvt_concat(parts, 2, 1);
}

static dvt_array *by_stack(dvt_array *x) {
    dvt_array *parts[2];
    parts[0] = x;
    parts[1] = dvt_swapaxes(x, 0, 1);
    return dvt_stack(parts, 2, 2);
}

static dvt_array *by_take(dvt_array *x) {
    dvt_array *rows = dvt_arange(SIDE - 1, -1, -1, DVT_I64, dvt_ctx_of(x));
    return dvt_take(x, rows, 1);
}

static dvt_array *by_take_along(dvt_array *x) {
    dvt_array *at = dvt_arange(0, SIDE, 1, DVT_I64, dvt_ctx_of(x));
    return dvt_take_along_axis(x, dvt_broadcast_to(at, DVT_SHAPE(SIDE, SIDE)), 1);
}

static dvt_array *by_assignment(dvt_array *x) {
    dvt_array *y = dvt_zeros(DVT_SHAPE(SIDE, 2 * SIDE), dvt_dtype_of(x), dvt_ctx_of(x));
    dvt_copy_into(dvt_slice(y, 1, 1, 2 * SIDE, 2), x);
    dvt_copy_into(dvt_slice(y, 1, 0, 2 * SIDE, 2), dvt_swapaxes(x, 0, 1));
    return y;
}

static dvt_array *by_astype(dvt_array *x) {
    return dvt_astype(dvt_swapaxes(x, 0, 1), dvt_dtype_of(x));
}

static dvt_array *by_other_context(dvt_array *x) {
    dvt_ctx there = dvt_ctx_equal(dvt_ctx_of(x), dvt_cpu()) ? dvt_gpu(1) : dvt_cpu();
    return dvt_copyto(dvt_slice(dvt_copyto(x, there), 1, 0, SIDE, 3), dvt_gpu(0));
}

typedef dvt_array *(*route)(dvt_array *x);
static const route routes[] = {
    by_copy,         by_transposing, by_three_axes,  by_small_axes,   by_steps, by_backward_steps,
    by_broadcasting, by_repeating,   by_one_element, by_concat,       by_stack, by_take,
    by_take_along,   by_assignment,  by_astype,      by_other_context};

/* Returns bit pattern number i, zero-extended. */
static uint64_t pattern(dvt_dtype dtype, uint32_t i) {
    if (dtype == DVT_F32) /* the sign, the exponent and both ends of the fraction */
        return (uint64_t)(i >> 7) << 23 | (i & 0x78) << 16 | (i & 7);
    if (dtype == DVT_F64)
        return (uint64_t)(i >> 4) << 52 | (uint64_t)(i & 8) << 48 | (i & 7);
    return i;
}

/* Returns an element of at most 8 bytes, zero-extended, for either byte order. */
static uint64_t element(const void *at, int size) {
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    if (size == 8) {
        memcpy(&wide, at, 8);
        return wide;
    }
    if (size == 4) {
        memcpy(&word, at, 4);
        return word;
    }
    memcpy(&half, at, 2);
    return half;
}

static dvt_array *all_patterns(dvt_dtype dtype, dvt_ctx ctx) {
    const int size = (int)dvt_dtype_size(dtype);
    char *bytes = (char *)malloc((size_t)SIDE * SIDE * 8);
    dvt_array *x;
    uint32_t i;
    for (i = 0; bytes && i < SIDE * SIDE; i++) {
        uint64_t wide = pattern(dtype, i);
        uint32_t word = (uint32_t)wide;
        uint16_t half = (uint16_t)wide;
        if (size == 8)
            memcpy(bytes + 8 * i, &wide, 8);
        else if (size == 4)
            memcpy(bytes + 4 * i, &word, 4);
        else
            memcpy(bytes + 2 * i, &half, 2);
    }
    x = dvt_from_host(bytes, DVT_SHAPE(SIDE, SIDE), dtype, ctx);
    free(bytes);
    return x;
}

static void check_route(int number, dvt_dtype dtype, dvt_array *moved, dvt_array *places) {
    const int size = (int)dvt_dtype_size(dtype);
    const int64_t n = moved ? dvt_size(moved) : 0;
    char *bits = (char *)malloc((size_t)(n * size + 1));
    int32_t *place = (int32_t *)malloc((size_t)(n * 4 + 4));
    int64_t k;
    CHECK(moved && places && dvt_size(places) == n && dvt_dtype_of(moved) == dtype);
    CHECK_INT(dvt_to_host(moved, bits, n * size), DVT_OK);
    CHECK_INT(dvt_to_host(places, place, n * 4), DVT_OK);
    for (k = 0; k < n && element(bits + k * size, size) == pattern(dtype, (uint32_t)place[k]);
         k++) {
    }
    if (k < n)
        dvt_test_check(0, __FILE__, __LINE__, "route %d, %s: %llx became %llx", number,
                       dvt_dtype_name(dtype),
                       (unsigned long long)pattern(dtype, (uint32_t)place[k]),
                       (unsigned long long)element(bits + k * size, size));
    CHECK(n > 0);
    free(place);
    free(bits);
}

static void check_routes(dvt_ctx ctx, int n_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_F64};
    int r, d;
    for (r = 0; r < (int)(sizeof routes / sizeof routes[0]); r++)
        DVT_SCOPE {
            dvt_array *numbers = dvt_arange(0, SIDE * SIDE, 1, DVT_I32, ctx), *places;
            places = routes[r](dvt_reshape(numbers, DVT_SHAPE(SIDE, SIDE)));
            for (d = 0; d < n_dtypes; d++)
                check_route(r, dtypes[d], routes[r](all_patterns(dtypes[d], ctx)), places);
        }
}

DVT_TEST(copies_keep_every_bit) {
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    check_routes(dvt_cpu(), 4);
    check_routes(dvt_gpu(0), dvt_test_on_gpus() ? 4 : 2);
    CHECK_INT(dvt_set_cpu_isa("reference"), DVT_OK);
    check_routes(dvt_cpu(), 2);
    dvt_set_cpu_isa(NULL);
    dvt_set_virtual_gpus(0, 0);
}
