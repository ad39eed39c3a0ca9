/* Tests of writing .npz: bytes, round trips of both writers, how far contents are compressed, and
   the errors of files. */
#include "dvt_golden.h"

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(npz_without_files) {
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_save_npz("a.npz", &x, NULL, 1), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_save_npz_compressed("a.npz", &x, NULL, 1), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_npz("a.npz", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
static dvt_status save(const char *path, dvt_array *const *x, const char *const *names, int n,
                       int compressed) {
    return compressed ? dvt_save_npz_compressed(path, x, names, n)
                      : dvt_save_npz(path, x, names, n);
}

DVT_TEST(npz_round_trip) {
    static const dvt_dtype dtypes[9] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                        DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};
    const char *path = golden_temporary("r.npz");
    char name[8];
    int compressed, i;
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    for (compressed = 0; compressed < 2; compressed++)
        DVT_SCOPE {
            dvt_array *x[11];
            dvt_array_list *list;
            for (i = 0; i < 9; i++)
                x[i] = dvt_astype(dvt_arange(0, 2, 1, DVT_I32, i % 2 ? dvt_gpu(1) : dvt_cpu()),
                                  dtypes[i]);
            x[9] = dvt_zeros(DVT_SHAPE(2, 0, 3), DVT_I64, dvt_cpu());
            x[10] = dvt_t(dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 3)));
            CHECK(save(path, x, NULL, 11, compressed) == DVT_OK);
            list = dvt_load_npz(path, dvt_gpu(0));
            CHECK_INT(dvt_array_list_len(list), 11);
            for (i = 0; i < 9; i++) {
                dvt_array *y = dvt_array_list_at(list, i);
                snprintf(name, sizeof name, "arr_%d", i);
                CHECK_STR(dvt_array_list_name(list, i), name);
                CHECK_INT(dvt_dtype_of(y), dtypes[i] == DVT_BF16 ? DVT_F32 : dtypes[i]);
                CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
                CHECK_VALUES(y, 0, 0, 1);
            }
            CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_at(list, 9)), DVT_SHAPE(2, 0, 3)));
            CHECK_VALUES(dvt_array_list_find(list, "arr_10"), 0, 0, 3, 1, 4, 2, 5);
        }
    CHECK(remove(path) == 0);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* The archive of one stored array, byte by byte: a field of 27 bytes aligns the content. */
DVT_TEST(npz_bytes_of_stored_files) {
    static const char *const names[1] = {"b\xc3\xb6"};
    static const unsigned char head[] = {'P', 'K', 3, 4, 20, 0, 0, 8, 0, 0, 0, 0, 0x21, 0};
    char path[600], npy[600];
    dvt_array *x = dvt_arange(0, 3, 1, DVT_U8, dvt_cpu());
    size_t n, m;
    unsigned char *bytes, *inner;
    snprintf(path, sizeof path, "%s", golden_temporary("s.npz"));
    snprintf(npy, sizeof npy, "%s", golden_temporary("s.npy"));
    CHECK(dvt_save_npz(path, &x, names, 1) == DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_INT(n, 30 + 7 + 27 + 131 + 46 + 7 + 22);
    CHECK(dvt_save_npy(npy, x) == DVT_OK);
    inner = golden_file(npy, &m);
    if (CHECK(bytes && inner && n == 270 && m == 131)) {
        CHECK(memcmp(bytes, head, sizeof head) == 0);
        CHECK(memcmp(bytes + 30, "b\xc3\xb6.npy", 7) == 0);
        CHECK(memcmp(bytes + 37, "\x35\xd9\x17\0\x40\0\0", 7) == 0);
        CHECK(memcmp(bytes + 64, inner, m) == 0);
        CHECK(memcmp(bytes + 14, bytes + 195 + 16, 14) == 0); /* CRC, sizes, length of the name */
        CHECK(memcmp(bytes + 195, "PK\1\2", 4) == 0 && memcmp(bytes + 248, "PK\5\6", 4) == 0);
    }
    free(bytes);
    free(inner);
    CHECK_VALUES(dvt_array_list_find(dvt_load_npz(path, dvt_cpu()), names[0]), 0, 0, 1, 2);
    CHECK(dvt_save_npz(path, NULL, NULL, 0) == DVT_OK);
    CHECK_INT(dvt_array_list_len(dvt_load_npz(path, dvt_cpu())), 0);
    CHECK(remove(path) == 0 && remove(npy) == 0);
}

/* Byte i of a kind of content. Each makes the compressor choose other blocks. */
static unsigned char rule(int kind, size_t i, uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    switch (kind) {
    case 0:
        return 0;
    case 1:
        return (unsigned char)(*state >> 24); /* random: stored */
    case 2:
        return (unsigned char)(i * 7919 % 251); /* repeats after 251 bytes */
    case 3:
        return (unsigned char)(i / 3 % 7 == 0 ? *state >> 30 : i >> 10);
    case 4:
        return (unsigned char)(i % 40000 < 33000 ? *state >> 24 : 'x'); /* changes between blocks */
    default:
        return (unsigned char)(__builtin_ctz(*state >> 8 | 1u << 20) * 5); /* skewed: long codes */
    }
}

DVT_TEST(npz_compresses) {
    static const size_t sizes[] = {0, 1, 2, 3, 10, 258, 300, 32767, 32768, 32769, 200001};
    const char *path = golden_temporary("z.npz");
    unsigned char *bytes = (unsigned char *)malloc(200001), *file;
    int kind, i;
    for (kind = 0; kind < 6; kind++)
        for (i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
            DVT_SCOPE {
                dvt_array *x, *y;
                uint32_t state = 1;
                size_t k, n;
                for (k = 0; k < sizes[i]; k++)
                    bytes[k] = rule(kind, k, &state);
                x = dvt_from_host(bytes, DVT_SHAPE((int64_t)sizes[i]), DVT_U8, dvt_cpu());
                CHECK(dvt_save_npz_compressed(path, &x, NULL, 1) == DVT_OK);
                y = dvt_array_list_at(dvt_load_npz(path, dvt_cpu()), 0);
                dvt_test_check(y && dvt_size(y) == (int64_t)sizes[i] &&
                                   memcmp(dvt_data(y), bytes, sizes[i]) == 0,
                               __FILE__, __LINE__, "kind %d, %lld bytes: %s", kind,
                               (long long)sizes[i], dvt_error());
                file = golden_file(path, &n);
                free(file);
                /* How far each kind can be compressed; random bytes grow by 5 in 32 KiB. */
                if (sizes[i] == 200001)
                    CHECK(n < (kind == 0   ? 1000u
                               : kind == 1 ? 200600u
                               : kind == 2 ? 3500u
                               : kind == 3 ? 30000u
                               : kind == 4 ? 170000u
                                           : 60000u));
            }
    free(bytes);
    CHECK(remove(path) == 0);
}

/* 65536 members need the zip64 end record. */
DVT_TEST(npz_many_members) {
    const char *path = golden_temporary("m.npz");
    dvt_array **x = (dvt_array **)malloc(65536 * sizeof *x);
    int i;
    DVT_SCOPE {
        dvt_array *one = dvt_scalar(3, DVT_I8, dvt_cpu());
        dvt_array_list *list;
        for (i = 0; i < 65536; i++)
            x[i] = one;
        CHECK(dvt_save_npz(path, x, NULL, 65535) == DVT_OK);
        CHECK_INT(dvt_array_list_len(dvt_load_npz(path, dvt_cpu())), 65535);
        CHECK(dvt_save_npz(path, x, NULL, 65536) == DVT_OK);
        list = dvt_load_npz(path, dvt_cpu());
        CHECK_INT(dvt_array_list_len(list), 65536);
        CHECK_VALUES(dvt_array_list_find(list, "arr_65535"), 0, 3);
    }
    free(x);
    CHECK(remove(path) == 0);
}

DVT_TEST(npz_file_errors) {
    const char *twice[2] = {"a", "a"}, *missing[2] = {"a", NULL}, *latin[1] = {"\xe9"}, *large[1];
    char path[600], *name = (char *)malloc(65533);
    size_t n;
    unsigned char *bytes;
    dvt_array *x[2];
    int compressed;
    snprintf(path, sizeof path, "%s", golden_temporary("e.npz"));
    memset(name, 'n', 65532);
    name[65532] = 0;
    large[0] = name;
    for (compressed = 0; compressed < 2; compressed++) {
        x[0] = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
        x[1] = NULL;
        CHECK_ERROR(save(path, x, NULL, 2, compressed), DVT_ERR_NULL_ARGUMENT);
        x[1] = x[0];
        CHECK_REFUSED(save(path, x, twice, 2, compressed), DVT_ERR_NAME, "two arrays are named");
        CHECK_ERROR(save(path, x, missing, 2, compressed), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(save(path, x, NULL, -1, compressed), DVT_ERR_RANGE);
        CHECK_ERROR(save(path, NULL, NULL, 1, compressed), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(save(NULL, x, NULL, 1, compressed), DVT_ERR_NULL_ARGUMENT);
        CHECK_REFUSED(save(path, x, large, 1, compressed), DVT_ERR_NAME, "at most 65531");
        CHECK_REFUSED(save(path, x, latin, 1, compressed), DVT_ERR_NAME, "not UTF-8");
    }
    CHECK_REFUSED(dvt_load_npz(path, dvt_cpu()), DVT_ERR_IO, path); /* no file was created */
    name[65531] = 0;
    CHECK(dvt_save_npz(path, x, large, 1) == DVT_OK);
    CHECK_VALUES(dvt_array_list_find(dvt_load_npz(path, dvt_cpu()), name), 0, 1);
    bytes = golden_file(path, &n);
    CHECK(golden_write(path, bytes, n - 1));
    CHECK_REFUSED(dvt_load_npz(path, dvt_cpu()), DVT_ERR_FORMAT, path);
    CHECK_ERROR(dvt_load_npz(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK(remove(path) == 0);
    free(bytes);
    free(name);
}

static char out_path[600];
static int out_compressed;

static int save_two(void) {
    const char *names[2] = {"b", "a"};
    dvt_array *x[2];
    x[0] = dvt_t(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()));
    x[1] = dvt_ones(DVT_SHAPE(2), DVT_I32, dvt_cpu());
    return x[0] && x[1] && save(out_path, x, names, 2, out_compressed) == DVT_OK;
}

DVT_TEST(npz_saving_out_of_memory) {
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.npz"));
    for (out_compressed = 0; out_compressed < 2; out_compressed++) {
        CHECK(golden_out_of_memory(save_two) >= 8);
        CHECK_INT(dvt_array_list_len(dvt_load_npz(out_path, dvt_cpu())), 2);
    }
    CHECK(remove(out_path) == 0);
}
#endif
