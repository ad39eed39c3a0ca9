/* Tests of whole files as bytes. */
#include "dvt_golden.h"

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(bytes_without_files) {
    CHECK_ERROR(dvt_load_bytes("x", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_save_bytes("x", dvt_ones(DVT_SHAPE(1), DVT_U8, dvt_cpu())), DVT_ERR_NOT_BUILT);
}
#else
static char path[512];

DVT_TEST(bytes_files) {
    static const char content[] = "\x1f\x8b text\0\xff\r\n"; /* not decompressed */
    dvt_array *x;
    snprintf(path, sizeof path, "%s", golden_temporary("bytes"));
    CHECK(golden_write(path, content, sizeof content));
    x = dvt_load_bytes(path, dvt_cpu());
    CHECK(dvt_dtype_of(x) == DVT_U8 && dvt_ndim(x) == 1);
    if (CHECK(dvt_size(x) == (int64_t)sizeof content))
        CHECK(memcmp(dvt_data(x), content, sizeof content) == 0);
    CHECK(golden_write(path, "", 0));
    x = dvt_load_bytes(path, dvt_cpu());
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(0)));
    CHECK(dvt_save_bytes(path, DVT_ARRAY(unsigned char, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3, 4)) ==
          DVT_OK);
    CHECK_VALUES(dvt_load_bytes(path, dvt_cpu()), 0, 1, 2, 3, 4);
    CHECK(dvt_save_bytes(path, dvt_t(DVT_ARRAY(unsigned char, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3,
                                               4))) == DVT_OK);
    CHECK_VALUES(dvt_load_bytes(path, dvt_cpu()), 0, 1, 3, 2, 4);
    CHECK(dvt_save_bytes(path, dvt_zeros(DVT_SHAPE(0), DVT_U8, dvt_cpu())) == DVT_OK);
    CHECK_INT(dvt_size(dvt_load_bytes(path, dvt_cpu())), 0);
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        CHECK(dvt_save_bytes(path, dvt_full(DVT_SHAPE(3), 200, DVT_U8, dvt_gpu(0))) == DVT_OK);
        x = dvt_load_bytes(path, dvt_gpu(0));
        CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
        CHECK_VALUES(x, 0, 200, 200, 200);
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
    CHECK_ERROR(dvt_save_bytes(path, dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_cpu())), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_save_bytes(path, dvt_zeros(DVT_SHAPE(1), DVT_I8, dvt_cpu())), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_save_bytes(path, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_bytes(NULL, dvt_zeros(DVT_SHAPE(1), DVT_U8, dvt_cpu())),
                DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_load_bytes(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK(remove(path) == 0);
    CHECK_REFUSED(dvt_load_bytes(path, dvt_cpu()), DVT_ERR_IO, path);
}

static int load_path(void) {
    return dvt_load_bytes(path, dvt_cpu()) != NULL;
}

#if defined(__linux__)
#include <unistd.h>

/* Loads n bytes from a pipe, whose size is not known. */
static dvt_array *load_pipe(const void *bytes, size_t n) {
    char name[64];
    dvt_array *x = NULL;
    int ends[2];
    if (!CHECK(pipe(ends) == 0))
        return NULL;
    CHECK(write(ends[1], bytes, n) == (ssize_t)n);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    x = dvt_load_bytes(name, dvt_cpu());
    close(ends[0]);
    return x;
}

DVT_TEST(bytes_pipes) {
    static char large[60000];
    dvt_array *x;
    CHECK_VALUES(load_pipe("abc", 3), 0, 'a', 'b', 'c');
    CHECK_INT(dvt_size(load_pipe("", 0)), 0);
    memset(large, 7, sizeof large);
    x = dvt_load_bytes("/proc/self/status", dvt_cpu()); /* a regular file of 0 bytes */
    CHECK(dvt_size(x) > 100 && dvt_item_at(x, DVT_SHAPE(0)) == 'N');
    x = load_pipe(large, sizeof large);
    CHECK_INT(dvt_size(x), (long long)sizeof large);
    CHECK(dvt_item(dvt_min(x, DVT_ALL)) == 7);
}
#endif

DVT_TEST(bytes_out_of_memory) {
    snprintf(path, sizeof path, "%s", golden_temporary("memory"));
    CHECK(golden_write(path, "abcd", 4));
    CHECK(golden_out_of_memory(load_path) >= 2);
    CHECK(remove(path) == 0);
}
#endif
