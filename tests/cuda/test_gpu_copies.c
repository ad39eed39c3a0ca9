/* Copies between host memory and GPUs, and between GPUs: every path (small, one chunk, many
   chunks), and reuse of memory during copies. */
#include "on_gpu.h"

static unsigned char byte_at(int64_t i, unsigned seed) {
    return (unsigned char)((uint64_t)i * 2654435761u >> 7 ^ seed * 77u);
}

static dvt_array *bytes_on(int64_t n, unsigned seed, dvt_ctx ctx) {
    unsigned char *values = (unsigned char *)malloc((size_t)n);
    dvt_array *x;
    int64_t i;
    for (i = 0; i < n; i++)
        values[i] = byte_at(i, seed);
    x = dvt_from_host(values, DVT_SHAPE(n), DVT_U8, ctx);
    memset(values, 0xee, (size_t)n); /* the copy must not read it any more */
    free(values);
    return x;
}

static void check_bytes(dvt_array *x, int64_t n, unsigned seed, const char *what) {
    unsigned char *values = (unsigned char *)malloc((size_t)n);
    int64_t i = 0;
    if (CHECK(dvt_to_host(x, values, n) == DVT_OK))
        while (i < n && values[i] == byte_at(i, seed))
            i++;
    dvt_test_check(i == n, __FILE__, __LINE__, "%s of %lld bytes: byte %lld differs", what,
                   (long long)n, (long long)i);
    free(values);
}

static const int64_t sizes[] = {1,       511,           65535,   65536,         65537,
                                1 << 20, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (13 << 20) + 5};

DVT_TEST(gpu_copies_arrive) {
    size_t k;
    NEEDS_GPU;
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        dvt_array *x = bytes_on(sizes[k], (unsigned)k, dvt_gpu(0));
        check_bytes(x, sizes[k], (unsigned)k, "up and down");
        dvt_release(dvt_retain(x));
    }
}

DVT_TEST(gpu_copies_between_gpus_arrive) {
    size_t k;
    NEEDS_GPU;
    if (dvt_num_gpus() < 2)
        SKIP("one GPU only");
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++)
        DVT_SCOPE {
            dvt_array *x = bytes_on(sizes[k], (unsigned)k, dvt_gpu(0));
            dvt_array *y = dvt_copyto(x, dvt_gpu(1));
            dvt_array *z = dvt_copyto(y, dvt_gpu(0));
            check_bytes(z, sizes[k], (unsigned)k, "around");
            CHECK(dvt_fill(x, 1) != NULL); /* later writes do not reach the copies */
            check_bytes(y, sizes[k], (unsigned)k, "over");
        }
}

/* Blocks are reused while uploads, fills and copies of their earlier contents are still queued. */
DVT_TEST(gpu_memory_is_reused_in_order) {
    const int64_t n = 300000;
    dvt_array *kept[12];
    int round, i, two = dvt_num_gpus() > 1;
    NEEDS_GPU;
    for (round = 0; round < 3; round++)
        DVT_SCOPE {
            for (i = 0; i < 12; i++) {
                dvt_array *x = bytes_on(n, (unsigned)(round * 12 + i), dvt_gpu(0));
                dvt_array *gone = dvt_full(DVT_SHAPE(n), i, DVT_U8, dvt_gpu(0));
                kept[i] = two ? dvt_copyto(x, dvt_gpu(1)) : x;
                CHECK(gone != NULL);
                if (two)
                    CHECK(dvt_fill(x, 200) != NULL);
            }
            for (i = 0; i < 12; i++)
                check_bytes(kept[i], n, (unsigned)(round * 12 + i), "kept");
        }
}

DVT_TEST(gpu_memory_comes_back) {
    dvt_device_info before, after;
    int i;
    NEEDS_GPU;
    CHECK(dvt_device_query(dvt_gpu(0), &before) == DVT_OK);
    for (i = 0; i < 200; i++)
        DVT_SCOPE {
            CHECK(dvt_full(DVT_SHAPE(1 + i * 1000), 1, DVT_F32, dvt_gpu(0)) != NULL);
            CHECK(dvt_full(DVT_SHAPE(1 + i % 7), 1, DVT_F32, dvt_gpu(0)) != NULL);
        }
    CHECK(dvt_device_query(dvt_gpu(0), &after) == DVT_OK);
    CHECK_INT(after.memory_used, before.memory_used);
}

/* A small upload into a part of an array is ordered by the compute stream, before a large download
   of the whole. */
DVT_TEST(gpu_small_writes_before_large_reads) {
    const int64_t rows = 40, columns = 5000;
    int32_t *values = (int32_t *)malloc((size_t)(rows * columns) * sizeof *values);
    dvt_array *x;
    int64_t i, wrong = 0;
    NEEDS_GPU;
    x = dvt_full(DVT_SHAPE(rows, columns), -1, DVT_I32, dvt_gpu(0));
    CHECK_INT(dvt_to_host(x, values, rows * columns * 4), DVT_OK);
    for (i = 0; i < columns; i++)
        values[i] = (int32_t)i;
    for (i = 0; i < rows; i++)
        CHECK_INT(dvt_set_from_host(dvt_index(x, i), values, columns * 4), DVT_OK);
    CHECK_INT(dvt_to_host(x, values, rows * columns * 4), DVT_OK);
    for (i = 0; i < rows * columns; i++)
        wrong += values[i] != i % columns;
    CHECK_INT(wrong, 0);
    free(values);
}
