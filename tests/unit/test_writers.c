/* Writers of IDX, CIFAR, GGUF and of models in several safetensors files: bytes, what their readers
   get back, refusals. */
#include "dvt_golden.h"
#if !defined(DEVTENSOR_NO_FILES)
#include <signal.h>
#include <sys/resource.h>
#endif

#define LIST(dtype, n, ...)                                                                        \
    dvt_astype(DVT_ARRAY(double, DVT_SHAPE(n), dvt_cpu(), __VA_ARGS__), dtype)

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(writers_without_files) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(1, 32, 32, 3), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_zeros(DVT_SHAPE(1), DVT_I32, dvt_cpu());
    const char *name = "a";
    CHECK_INT(dvt_save_idx("a.idx", y), DVT_ERR_NOT_BUILT);
    dvt_clear_error();
    CHECK_INT(dvt_save_cifar10("a.bin", x, y), DVT_ERR_NOT_BUILT);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf("a.gguf", &y, &name, 1, NULL), DVT_ERR_NOT_BUILT);
    dvt_clear_error();
}
#else

/* Returns whether the file has these bytes, given in hexadecimal, at the beginning. */
static bool begins(const char *path, const char *hex) {
    size_t n, m;
    unsigned char *expected = golden_bytes(hex, &n), *got = golden_file(path, &m);
    bool same = got && m >= n && memcmp(expected, got, n) == 0;
    free(expected);
    free(got);
    return same;
}

static void error_has(const char *text) {
    CHECK(strstr(dvt_error(), text) != NULL);
    dvt_clear_error();
}

/* ---- IDX ---- */
DVT_TEST(idx_is_written) {
    static const dvt_dtype dtypes[] = {DVT_U8, DVT_I8, DVT_I32, DVT_F32, DVT_F64};
    const char *path = golden_temporary("written.idx");
    dvt_array *x = dvt_arange(-3, 3, 1, DVT_F64, dvt_cpu()), *got;
    int i;
    for (i = 0; i < 5; i++) {
        dvt_array *typed = dvt_transpose(
            dvt_reshape(dvt_astype(dvt_abs(x), dtypes[i]), DVT_SHAPE(2, 1, 3)), DVT_AXES(2, 1, 0));
        CHECK_INT(dvt_save_idx(path, typed), DVT_OK);
        got = dvt_load_idx(path, dvt_cpu());
        CHECK_INT(dvt_dtype_of(got), dtypes[i]);
        CHECK(dvt_shape_equal(dvt_shape_of(got), DVT_SHAPE(3, 1, 2)));
        CHECK_VALUES(got, 0, 3, 0, 2, 1, 1, 2);
    }
    CHECK_INT(dvt_save_idx(path, LIST(DVT_I32, 2, -2, 258)), DVT_OK);
    CHECK(begins(path, "00000c0100000002fffffffe00000102"));
    CHECK_INT(dvt_save_idx(path, dvt_zeros(DVT_SHAPE(0, 4), DVT_U8, dvt_cpu())), DVT_OK);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_load_idx(path, dvt_cpu())), DVT_SHAPE(0, 4)));
    CHECK_INT(dvt_save_idx("a.idx.gz", LIST(DVT_I32, 1, 1)), DVT_ERR_VALUE);
    error_has("this writer does not compress");
    CHECK_INT(dvt_save_csv("a.csv.GZ", LIST(DVT_I32, 1, 1), NULL), DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(dvt_save_idx(path, LIST(DVT_I64, 1, 1)), DVT_ERR_DTYPE);
    error_has("expected uint8, int8, int32, float32 or float64");
    CHECK_INT(dvt_save_idx(path, dvt_zeros(DVT_SCALAR, DVT_U8, dvt_cpu())), DVT_ERR_SHAPE);
    error_has("at least one axis");
    CHECK_INT(dvt_save_idx(path, NULL), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK(dvt_load_idx(path, dvt_cpu()) != NULL); /* the refusals kept the file */
    CHECK(remove(path) == 0);
}

#if !defined(DEVTENSOR_NO_FORMATS)
/* ---- CIFAR ---- */
static dvt_array *pixels(int n) {
    dvt_array *x =
        dvt_key_randint(dvt_key_new(3), 0, 256, DVT_SHAPE(n, 32, 32, 3), DVT_I32, dvt_cpu());
    return dvt_astype(x, DVT_U8);
}

DVT_TEST(cifar_is_written) {
    const char *path = golden_temporary("written.bin");
    dvt_array *x = pixels(3), *y = LIST(DVT_I64, 3, 9, 0, 4);
    dvt_array *fine = LIST(DVT_I32, 3, 99, 0, 50), *images, *labels;
    unsigned char *bytes;
    size_t n;
    CHECK_INT(dvt_save_cifar10(path, x, y), DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_INT(n, 3 * 3073);
    CHECK_INT(dvt_read_cifar10(bytes, n, &images, &labels), DVT_OK);
    free(bytes);
    CHECK(dvt_array_equal(images, x, DVT_NAN_DIFFERS));
    CHECK_VALUES(labels, 0, 9, 0, 4);
    CHECK_INT(dvt_save_cifar100(path, x, dvt_mod(y, dvt_full_like(y, 20)), fine), DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_INT(n, 3 * 3074);
    CHECK_INT(dvt_read_cifar100(bytes, n, DVT_CIFAR100_FINE, &images, &labels), DVT_OK);
    CHECK(dvt_array_equal(images, x, DVT_NAN_DIFFERS));
    CHECK_VALUES(labels, 0, 99, 0, 50);
    CHECK_INT(dvt_read_cifar100(bytes, n, DVT_CIFAR100_COARSE, &images, &labels), DVT_OK);
    CHECK_VALUES(labels, 0, 9, 0, 4);
    free(bytes);
    CHECK_INT(dvt_save_cifar10(path, x, LIST(DVT_I32, 3, 1, 10, 2)), DVT_ERR_RANGE);
    error_has("y[1] is 10; expected 0 to 9");
    CHECK_INT(dvt_save_cifar100(path, x, fine, fine), DVT_ERR_RANGE);
    error_has("coarse[0] is 99; expected 0 to 19");
    CHECK_INT(dvt_save_cifar10(path, x, LIST(DVT_I32, 1, 1)), DVT_ERR_SHAPE);
    error_has("a label for each image");
    CHECK_INT(dvt_save_cifar10(path, x, LIST(DVT_F32, 3, 1, 2, 3)), DVT_ERR_DTYPE);
    error_has("a label for each image");
    CHECK_INT(dvt_save_cifar10(path, dvt_astype(x, DVT_F32), y), DVT_ERR_DTYPE);
    error_has("expected uint8 (N, 32, 32, 3)");
    CHECK_INT(dvt_save_cifar10(path, dvt_slice(x, 0, 0, 0, 1), y), DVT_ERR_SHAPE);
    error_has("N above 0");
    CHECK_INT(dvt_save_cifar10(path, NULL, y), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK_INT(dvt_save_cifar100(path, x, y, NULL), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    bytes = golden_file(path, &n); /* the refusals kept the file */
    CHECK_INT(n, 3 * 3074);
    free(bytes);
    CHECK(remove(path) == 0);
}

/* ---- GGUF ---- */
DVT_TEST(gguf_is_written) {
    static const char *const metadata[] = {"general.name", "small \xc3\xa9", "a.b", "", NULL};
    static const char *const names[] = {"a", "b.weight", "c", "d", "e", "f", "g"};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16,
                                       DVT_I8,  DVT_I32, DVT_I64};
    const char *path = golden_temporary("written.gguf");
    dvt_array *x = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 1, 3));
    dvt_array *arrays[7], *bias = LIST(DVT_F16, 2, 1.5, -2), *got;
    const char *name = "bias";
    dvt_array_list *list;
    int i;
    CHECK_INT(dvt_save_gguf(path, &bias, &name, 1, NULL), DVT_OK);
    CHECK(begins(path, "47475546030000000100000000000000000000000000000004000000000000006269617301"
                       "000000020000000000000001000000000000000000000000000000003e00c0"));
    for (i = 0; i < 7; i++)
        arrays[i] = dvt_astype(i % 2 ? dvt_transpose(x, DVT_AXES(2, 1, 0)) : x, dtypes[i]);
    arrays[6] = dvt_zeros(DVT_SCALAR, DVT_I64, dvt_cpu());
    CHECK_INT(dvt_save_gguf(path, arrays, names, 7, metadata), DVT_OK);
    list = dvt_load_gguf(path, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 7);
    CHECK_STR(dvt_array_list_metadata(list, "general.name"), metadata[1]);
    CHECK_STR(dvt_array_list_metadata(list, "a.b"), "");
    for (i = 0; i < 7; i++) {
        got = dvt_array_list_find(list, names[i]);
        CHECK_INT(dvt_dtype_of(got), dtypes[i]);
        CHECK(dvt_array_equal(got, arrays[i], DVT_NAN_DIFFERS));
    }
    CHECK(dvt_map_arrays(path, dvt_cpu()) != NULL);
    CHECK_INT(dvt_save_arrays(path, arrays, names, 2), DVT_OK);
    CHECK_INT(dvt_array_list_len(dvt_load_gguf(path, dvt_cpu())), 2);
    CHECK_INT(dvt_save_gguf(path, NULL, NULL, 0, NULL), DVT_OK);
    CHECK_INT(dvt_array_list_len(dvt_load_gguf(path, dvt_cpu())), 0);
    CHECK(remove(path) == 0);
}

/* What a reader returns can be written, also the alignment of the file that was read. */
DVT_TEST(gguf_metadata_of_a_reader) {
    static const char *const metadata[] = {"a", "1", "general.alignment", "64", "b", "2", NULL};
    const char *path = golden_temporary("alignment.gguf"), *name = "a";
    dvt_array *x = LIST(DVT_F32, 2, 1, 2);
    dvt_array_list *list;
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, metadata), DVT_OK);
    list = dvt_load_gguf(path, dvt_cpu());
    CHECK_VALUES(dvt_array_list_find(list, "a"), 0, 1, 2);
    CHECK_STR(dvt_array_list_metadata(list, "a"), "1");
    CHECK_STR(dvt_array_list_metadata(list, "b"), "2");
    CHECK(dvt_array_list_metadata(list, "general.alignment") == NULL);
    CHECK(remove(path) == 0);
}

DVT_TEST(gguf_writing_refuses) {
    static const char *const odd[] = {"key", NULL}, *const twice[] = {"k", "1", "k", "2", NULL};
    static const char *const header[] = {"GGUF.version", "3", NULL};
    static const char *const latin[] = {"k", "\xe9", NULL}, *const none[] = {"", "1", NULL};
    const char *path = golden_temporary("refused.gguf"), *name = "a", *empty = "";
    const char *same[] = {"a", "a"};
    char long_name[65];
    const char *too_long = long_name;
    dvt_array *x = LIST(DVT_F32, 2, 1, 2), *u8 = dvt_astype(x, DVT_U8);
    dvt_array *no_elements = dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_cpu());
    dvt_array *deep = dvt_reshape(x, DVT_SHAPE(1, 1, 1, 1, 2)), *both[2];
    FILE *f;
    memset(long_name, 'n', 64);
    long_name[64] = 0;
    both[0] = both[1] = x;
    CHECK_INT(dvt_save_gguf(path, &u8, &name, 1, NULL), DVT_ERR_DTYPE);
    error_has("which GGUF does not have; cast it to int8 or int32");
    CHECK_INT(dvt_save_gguf(path, &deep, &name, 1, NULL), DVT_ERR_SHAPE);
    error_has("at most 4 axes");
    CHECK_INT(dvt_save_gguf(path, &x, &too_long, 1, NULL), DVT_ERR_NAME);
    error_has("has 64 bytes; expected 1 to 63");
    CHECK_INT(dvt_save_gguf(path, &x, &empty, 1, NULL), DVT_ERR_NAME);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, both, same, 2, NULL), DVT_ERR_NAME);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, &x, NULL, 1, NULL), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, odd), DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, twice), DVT_ERR_NAME);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, header), DVT_ERR_NAME);
    error_has("no GGUF. in front");
    CHECK_INT(dvt_save_gguf(path, &no_elements, &name, 1, NULL), DVT_ERR_SHAPE);
    error_has("refuse arrays without elements");
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, latin), DVT_ERR_NAME);
    dvt_clear_error();
    CHECK_INT(dvt_save_gguf(path, &x, &name, 1, none), DVT_ERR_NAME);
    dvt_clear_error();
    f = fopen(path, "rb");
    CHECK(f == NULL); /* nothing was written */
    if (f)
        fclose(f);
}

/* ---- models in several safetensors files ---- */
DVT_TEST(safetensors_shards_are_written) {
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "\"1\""};
    static const char *const metadata[] = {"format", "pt", NULL};
    const char *path = golden_temporary("m.safetensors.index.json");
    const int64_t limits[] = {1, 40, 1000};
    const int files[] = {3, 2, 1}; /* the empty array needs no file of its own */
    dvt_array *arrays[4], *weight = dvt_arange(0, 8, 1, DVT_F32, dvt_cpu());
    char shard[600], stem[500];
    dvt_array_list *list;
    int i, k;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(path) - strlen(".safetensors.index.json")),
             path);
    arrays[0] = weight;
    arrays[1] = LIST(DVT_F64, 1, 3);
    arrays[2] = dvt_reshape(weight, DVT_SHAPE(2, 4));
    arrays[3] = dvt_zeros(DVT_SHAPE(0), DVT_I8, dvt_cpu());
    for (k = 0; k < 3; k++) {
        CHECK_INT(dvt_save_safetensors_shards(path, arrays, names, 4, metadata, limits[k]), DVT_OK);
        list = dvt_load_safetensors(path, dvt_cpu());
        CHECK_INT(dvt_array_list_len(list), 4);
        for (i = 0; i < 4; i++)
            CHECK(dvt_array_equal(dvt_array_list_find(list, names[i]), arrays[i], DVT_NAN_DIFFERS));
        for (i = 1; i <= files[k]; i++) {
            snprintf(shard, sizeof shard, "%s-%05d-of-%05d.safetensors", stem, i, files[k]);
            list = dvt_load_safetensors(shard, dvt_cpu());
            CHECK_STR(dvt_array_list_metadata(list, "format"), "pt");
            CHECK(remove(shard) == 0);
        }
    }
    CHECK_ERROR(dvt_load_safetensors(path, dvt_cpu()), DVT_ERR_IO); /* its files are gone */
    CHECK_INT(dvt_save_safetensors_shards(path, arrays, names, 4, NULL, 0), DVT_ERR_RANGE);
    dvt_clear_error();
    CHECK_INT(dvt_save_safetensors_shards("m.safetensors", arrays, names, 4, NULL, 9),
              DVT_ERR_VALUE);
    error_has("expected NAME.safetensors.index.json, where NAME is not empty");
    CHECK_INT(dvt_save_safetensors_shards(".safetensors.index.json", arrays, names, 4, NULL, 9),
              DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(dvt_save_safetensors_shards("a:b.safetensors.index.json", arrays, names, 4, NULL, 9),
              DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(dvt_save_safetensors_shards("\xe9.safetensors.index.json", arrays, names, 4, NULL, 9),
              DVT_ERR_NAME); /* JSON could not name its files */
    dvt_clear_error();
    CHECK_INT(dvt_save_safetensors_shards(path, arrays, NULL, 4, NULL, 9), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK_INT(dvt_save_safetensors_shards(NULL, arrays, names, 4, NULL, 9), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK(remove(path) == 0);
}

/* Limits the size of files, as a full disk does; 0: no limit. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Checks that both arrays of the model have that value. */
static void model_is(const char *path, double value) {
    dvt_array_list *list = dvt_load_arrays(path, dvt_cpu());
    CHECK(list != NULL);
    CHECK_CLOSE(dvt_item_at(dvt_array_list_at(list, 0), DVT_SHAPE(0)), value, 0);
    CHECK_CLOSE(dvt_item_at(dvt_array_list_at(list, 1), DVT_SHAPE(0)), value, 0);
}

/* A call that fails keeps the older model, whenever it finds the error. */
DVT_TEST(safetensors_shards_replace_all_or_nothing) {
    static const char *const names[] = {"a", "b"}, *const latin[] = {"a", "\xe9"};
    static const char *const reserved[] = {"a", "__metadata__"}, *const odd[] = {"key", NULL};
    char path[600], shard[700];
    dvt_array *old[2], *new[2];
    int i;
    snprintf(path, sizeof path, "%s", golden_temporary("all.safetensors.index.json"));
    for (i = 0; i < 2; i++) {
        old[i] = dvt_full(DVT_SHAPE(10), 1, DVT_F32, dvt_cpu());
        new[i] = dvt_full(DVT_SHAPE(i ? 10000 : 10), 2, DVT_F32, dvt_cpu());
    }
    CHECK_INT(dvt_save_safetensors_shards(path, old, names, 2, NULL, 40), DVT_OK);
    CHECK_ERROR(dvt_save_safetensors_shards(path, new, latin, 2, NULL, 40), DVT_ERR_NAME);
    model_is(path, 1);
    CHECK_ERROR(dvt_save_safetensors_shards(path, new, reserved, 2, NULL, 40), DVT_ERR_NAME);
    model_is(path, 1);
    CHECK_ERROR(dvt_save_safetensors_shards(path, new, names, 2, odd, 40), DVT_ERR_VALUE);
    model_is(path, 1);
    limit_files(20000);
    CHECK_ERROR(dvt_save_safetensors_shards(path, new, names, 2, NULL, 40), DVT_ERR_IO);
    limit_files(0);
    model_is(path, 1);
    CHECK_INT(dvt_save_safetensors_shards(path, new, names, 2, NULL, 40), DVT_OK);
    model_is(path, 2);
    for (i = 1; i <= 2; i++) {
        snprintf(shard, sizeof shard, "%.*s-%05d-of-00002.safetensors",
                 (int)(strlen(path) - strlen(".safetensors.index.json")), path, i);
        CHECK(remove(shard) == 0);
    }
    CHECK(remove(path) == 0);
}

/* ---- memory ---- */
static const char *folder_path(const char *end) {
    static char path[600];
    snprintf(path, sizeof path, "%s%s", golden_temporary("memory"), end);
    return path;
}

static int saves_gguf(void) {
    static const char *const names[] = {"a", "b"}, *const metadata[] = {"k", "v", NULL};
    const char *path = folder_path(".gguf");
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), *both[2];
    int good;
    both[0] = x;
    both[1] = dvt_transpose(x, DVT_ALL); /* needs a contiguous copy */
    good = x && both[1] && dvt_save_gguf(path, both, names, 2, metadata) == DVT_OK;
    remove(path);
    return good;
}

static int saves_shards(void) {
    static const char *const names[] = {"a", "b"};
    const char *path = folder_path(".safetensors.index.json");
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), *both[2];
    char shard[700];
    int good, i;
    both[0] = both[1] = x;
    good = x && dvt_save_safetensors_shards(path, both, names, 2, NULL, 8) == DVT_OK;
    for (i = 1; i <= 2; i++) {
        snprintf(shard, sizeof shard, "%.*s-%05d-of-00002.safetensors",
                 (int)(strlen(path) - strlen(".safetensors.index.json")), path, i);
        remove(shard);
    }
    remove(path);
    return good;
}

static int saves_data_sets(void) {
    const char *path = folder_path(".bin");
    dvt_array *x = dvt_zeros(DVT_SHAPE(1, 32, 32, 3), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_zeros(DVT_SHAPE(1), DVT_I32, dvt_cpu());
    int good =
        x && y && dvt_save_cifar100(path, x, y, y) == DVT_OK && dvt_save_idx(path, y) == DVT_OK;
    remove(path);
    return good;
}

DVT_TEST(writers_out_of_memory) {
    CHECK(golden_out_of_memory(saves_gguf) >= 5);
    CHECK(golden_out_of_memory(saves_shards) >= 5);
    CHECK(golden_out_of_memory(saves_data_sets) >= 5);
}
#endif
#endif
