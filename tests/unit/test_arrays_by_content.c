/* Tests of files of arrays in any format, recognized by content, and of models in several
   safetensors files. */
#include "dvt_golden.h"
#if !defined(DEVTENSOR_NO_FILES)

static char folder_path[4][600];

/* Returns the path of a file with that name in the temporary directory. */
static const char *path_of(const char *name) {
    static int next;
    const char *base = getenv("TMPDIR");
    char *path = folder_path[next++ % 4];
    snprintf(path, sizeof folder_path[0], "%s/%s", base && *base ? base : "/tmp", name);
    return path;
}

static char shard_name[3][100];

/* Chooses names for the files of this test, without their directory. */
static void name_shards(void) {
    int i;
    for (i = 0; i < 3; i++)
        snprintf(shard_name[i], sizeof shard_name[i], "devtensor-test-%lld-%d%s",
                 (long long)(dvt_seconds() * 1e6), i,
                 i == 2 ? ".safetensors.index.json" : ".safetensors");
}

static void write_text(const char *name, const char *text) {
    CHECK(golden_write(path_of(name), text, strlen(text)));
}

static void remove_shards(void) {
    int i;
    for (i = 0; i < 3; i++)
        CHECK(remove(path_of(shard_name[i])) == 0);
}

static void save_shard(int i, const char *first, double value, const char *second) {
    dvt_array *x[2];
    const char *names[2];
    const char *const metadata[] = {"format", i ? "second" : "first", i ? "b" : "a", "1", NULL};
    x[0] = dvt_full(DVT_SHAPE(2), value, DVT_F32, dvt_cpu());
    x[1] = dvt_full(DVT_SHAPE(1), value + 0.5, DVT_F64, dvt_cpu());
    names[0] = first;
    names[1] = second;
    CHECK(dvt_save_safetensors(path_of(shard_name[i]), x, names, second ? 2 : 1, metadata) ==
          DVT_OK);
}

static void write_index(const char *format) {
    char text[2000];
    snprintf(text, sizeof text, format, shard_name[0], shard_name[1], shard_name[0]);
    write_text(shard_name[2], text);
}

#define INDEX                                                                                      \
    "{\"metadata\":{\"total_size\":32,\"x\":[1,-2.5e+1,{\"y\":[]},true,false,null]},"              \
    "\"weight_map\":{\"c\":\"%s\",\"b\":\"%s\",\"a\":\"%s\"}}\n"

DVT_TEST(shards) {
    dvt_array_list *list;
    int way;
    name_shards();
    save_shard(0, "a", 1, "c");
    save_shard(1, "b", 2, NULL);
    write_index(INDEX);
    for (way = 0; way < 2; way++) {
        list = way ? dvt_load_arrays(path_of(shard_name[2]), dvt_cpu())
                   : dvt_load_safetensors(path_of(shard_name[2]), dvt_cpu());
        CHECK_INT(dvt_array_list_len(list), 3);
        CHECK_STR(dvt_array_list_name(list, 0), "c");
        CHECK_STR(dvt_array_list_name(list, 1), "b");
        CHECK_STR(dvt_array_list_name(list, 2), "a");
        CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1.5);
        CHECK_VALUES(dvt_array_list_at(list, 1), 0, 2, 2);
        CHECK_VALUES(dvt_array_list_at(list, 2), 0, 1, 1);
        CHECK(dvt_array_list_metadata(list, "format") != NULL);
        CHECK_STR(dvt_array_list_metadata(list, "a"), "1");
        CHECK_STR(dvt_array_list_metadata(list, "b"), "1");
        CHECK(dvt_array_list_metadata_at(list, 3, NULL) == NULL);
    }
    write_index("{\"weight_map\":{}}");
    CHECK_INT(dvt_array_list_len(dvt_load_arrays(path_of(shard_name[2]), dvt_cpu())), 0);
    remove_shards();
}

#define REFUSE_INDEX(text, words)                                                                  \
    do {                                                                                           \
        write_index(text);                                                                         \
        CHECK_REFUSED(dvt_load_safetensors(path_of(shard_name[2]), dvt_cpu()), DVT_ERR_FORMAT,     \
                      words);                                                                      \
    } while (0)

DVT_TEST(shards_refused) {
    char deep[200] = "{\"metadata\":";
    name_shards();
    save_shard(0, "a", 1, "c");
    save_shard(1, "b", 2, "d");
    REFUSE_INDEX(INDEX, "missing are none, unexpected are 'd'");
    REFUSE_INDEX("{\"weight_map\":{\"c\":\"%s\",\"x\":\"%s\",\"a\":\"%s\"}}",
                 "missing are 'x', unexpected are 'b', 'd'");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"%s\"}}", "unexpected are 'c'");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"../%s\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"x\\\\%s\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"..\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"C:x\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"\"}}", "in the same directory");
    REFUSE_INDEX("{\"weight_map\":{\"a\":[]}}", "a string is missing");
    REFUSE_INDEX("{\"weight_map\":[]}", "no object");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"%s\",\"a\":\"%s\"}}", "\"a\" twice");
    REFUSE_INDEX("{\"weight_map\":{},\"weight_map\":{}}", "weight_map twice");
    REFUSE_INDEX("{\"metadata\":{}}", "without a weight_map");
    REFUSE_INDEX("{\"weight_map\":{}} x", "something follows the end");
    REFUSE_INDEX("{\"x\":[}", "a value is missing");
    /* the outermost object and 31 arrays are accepted */
    memset(deep + 12, '[', 31);
    memset(deep + 43, ']', 31);
    memcpy(deep + 74, ",\"weight_map\":{}}", 18);
    write_text(shard_name[2], deep);
    CHECK_INT(dvt_array_list_len(dvt_load_safetensors(path_of(shard_name[2]), dvt_cpu())), 0);
    memset(deep + 12, '[', 32);
    REFUSE_INDEX(deep, "more than 32");
    write_index("{\"weight_map\":{\"a\":\"no-such-file\"}}");
    CHECK_ERROR(dvt_load_safetensors(path_of(shard_name[2]), dvt_cpu()), DVT_ERR_IO);
    /* an index is no shard */
    write_text(shard_name[0], "{\"weight_map\":{}}");
    REFUSE_INDEX("{\"weight_map\":{\"a\":\"%s\"}}", "the index of a model");
    remove_shards();
}

static int load_shards(void) {
    return dvt_load_safetensors(path_of(shard_name[2]), dvt_cpu()) != NULL;
}

DVT_TEST(shards_out_of_memory) {
    name_shards();
    save_shard(0, "a", 1, "c");
    save_shard(1, "b", 2, NULL);
    write_index(INDEX);
    CHECK(golden_out_of_memory(load_shards) >= 30);
    remove_shards();
}

/* ---- any format ---- */
DVT_TEST(arrays_by_content) {
    static const char *const path_end[] = {"x.safetensors", "x.PARAMS", "x.Npz"};
    const char *names[2] = {"one", "two"}, *path, *other = golden_temporary("other");
    dvt_array *x[2];
    dvt_array_list *list;
    unsigned char *bytes;
    char kept[600];
    size_t n;
    int i;
    x[0] = dvt_arange(0, 3, 1, DVT_F32, dvt_cpu());
    x[1] = dvt_ones(DVT_SHAPE(2, 1), DVT_I64, dvt_cpu());
    snprintf(kept, sizeof kept, "%s", other);
    for (i = 0; i < 3; i++) {
        path = golden_temporary(path_end[i]);
        CHECK(dvt_save_arrays(path, x, names, 2) == DVT_OK);
        bytes = golden_file(path, &n);
        CHECK(bytes && (i == 0   ? bytes[8] == '{'
                        : i == 1 ? bytes[0] == 0x12
                                 : memcmp(bytes, "PK", 2) == 0));
        list = dvt_read_arrays(bytes, n, dvt_cpu());
        CHECK_VALUES(dvt_array_list_find(list, "one"), 0, 0, 1, 2);
        /* the name of a file does not matter */
        CHECK(golden_write(kept, bytes, n));
        list = dvt_load_arrays(kept, dvt_cpu());
        CHECK_VALUES(dvt_array_list_find(list, "two"), 0, 1, 1);
        CHECK(remove(path) == 0);
        free(bytes);
    }
    CHECK(golden_write(kept, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24));
    CHECK_INT(dvt_array_list_len(dvt_load_arrays(kept, dvt_cpu())), 0);
    CHECK(golden_write(kept, "what", 4));
    CHECK_REFUSED(dvt_load_arrays(kept, dvt_cpu()), DVT_ERR_FORMAT, "not a file of arrays");
    CHECK(golden_write(kept, "PK\3\4..........archive/data.pkl", 30));
    CHECK_REFUSED(dvt_load_arrays(kept, dvt_cpu()), DVT_ERR_FORMAT, "PyTorch");
    CHECK(remove(kept) == 0);
    CHECK_ERROR(dvt_load_arrays(kept, dvt_cpu()), DVT_ERR_IO);
}

/* Readers name the reader of what they got: another one for memory than for files. */
DVT_TEST(arrays_name_the_reader) {
    static const char npy[] = "\x93NUMPY\1", png[] = "\x89PNG\r\n\x1a\n", ppm[] = "P6 1 1 255 ";
    static const char idx[] = "\0\0\x08\1\0\0\0\1", zip[] = "PK\5\6", text[] = "1,2,3";
    const char *path = golden_temporary("named");
    CHECK_REFUSED(dvt_read_npy(png, 8, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_read_image");
    CHECK_REFUSED(dvt_read_npy(zip, 4, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_read_npz or dvt_read");
    CHECK_REFUSED(dvt_read_npz(npy, 7, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_read_npy");
    CHECK_REFUSED(dvt_read_idx(ppm, 11, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_read_image");
    CHECK_REFUSED(dvt_read_image(idx, 8, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_read_idx");
    CHECK_REFUSED(dvt_read_gguf(idx, 8, dvt_cpu()), DVT_ERR_FORMAT, "an IDX file");
    CHECK_REFUSED(dvt_read_image(text, 5, dvt_cpu()), DVT_ERR_FORMAT, "where the bytes come from");
    CHECK_REFUSED(dvt_read_npy(text, 5, dvt_cpu()), DVT_ERR_FORMAT, "begins with 31 2c 32 2c");
    CHECK(golden_write(path, npy, 7));
    CHECK_REFUSED(dvt_load_npz(path, dvt_cpu()), DVT_ERR_FORMAT, "with dvt_load_npy");
    CHECK(golden_write(path, text, 5));
    CHECK_REFUSED(dvt_load_npz(path, dvt_cpu()), DVT_ERR_FORMAT, "the path names the right file");
    CHECK(remove(path) == 0);
}

DVT_TEST(arrays_name_what_is_null) {
    dvt_array *x[2] = {NULL, NULL};
    const char *names[2] = {"a", NULL};
    x[0] = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    CHECK_REFUSED(dvt_save_arrays("a.npz", x, names, 2), DVT_ERR_NULL_ARGUMENT,
                  "arrays[1] is NULL");
    x[1] = x[0];
    CHECK_REFUSED(dvt_save_arrays("a.npz", x, names, 2), DVT_ERR_NULL_ARGUMENT, "names[1] is NULL");
    CHECK_REFUSED(dvt_save_arrays("a.npz", NULL, names, 2), DVT_ERR_NULL_ARGUMENT,
                  "arrays is NULL");
}

DVT_TEST(arrays_save_errors) {
    const char *name = "a";
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    CHECK_REFUSED(dvt_save_arrays("/tmp/a.bin", &x, &name, 1), DVT_ERR_VALUE, ".safetensors");
    CHECK_ERROR(dvt_save_arrays("/tmp/a.safetensors.index.json", &x, &name, 1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_save_arrays(NULL, &x, &name, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_load_arrays(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_read_arrays(NULL, 1, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_REFUSED(dvt_read_arrays("", 0, dvt_cpu()), DVT_ERR_FORMAT, "it is empty");
    CHECK_REFUSED(dvt_read_arrays("{}", 2, dvt_cpu()), DVT_ERR_FORMAT, "load it by its path");
}

#else

DVT_TEST(arrays_without_files) {
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    const char *name = "a";
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    CHECK_ERROR(dvt_save_arrays("a.safetensors", &x, &name, 1), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_arrays("a.safetensors", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_INT(dvt_array_list_len(dvt_read_arrays(empty, 10, dvt_cpu())), 0);
    CHECK_ERROR(dvt_read_arrays("{}", 2, dvt_cpu()), DVT_ERR_FORMAT);
}
#endif
