/* Tests of safetensors: values and order, every refusal of the header and of the JSON in it, bytes
   of saved files, metadata. */
#include "dvt_golden.h"

static unsigned char made[1 << 16];
static size_t n_made;

/* Makes a file of a header and n bytes of data: 1, 2, 3, ... */
static void make(const char *header, size_t n) {
    size_t length = strlen(header), i;
    for (i = 0; i < 8; i++)
        made[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(made + 8, header, length);
    n_made = 8 + length;
    for (i = 0; i < n; i++)
        made[n_made++] = (unsigned char)(i + 1);
}

static dvt_array_list *read_made(void) {
    return dvt_read_safetensors(made, n_made, dvt_cpu());
}

/* mlx.core.save_safetensors(path, {"0.weight": float32 [[1, 2, 3], [4, 5, 6.5]],
   "b/\u00e9": bfloat16 [1, -2], "mask": [True, False, True], "i16": int16 [-3, 300],
   "u32": uint32 [4000000000], "scalar": int64 7}, {"format": "mlx"}) of MLX 0.32 */
static const char by_mlx[] = "81010000000000007b22302e776569676874223a7b22646174615f6f66667365"
                             "7473223a5b32332c34375d2c226474797065223a22463332222c227368617065"
                             "223a5b322c335d7d2c225f5f6d657461646174615f5f223a7b22666f726d6174"
                             "223a226d6c78227d2c22622fc3a9223a7b22646174615f6f666673657473223a"
                             "5b31392c32335d2c226474797065223a2242463136222c227368617065223a5b"
                             "325d7d2c22693136223a7b22646174615f6f666673657473223a5b31322c3136"
                             "5d2c226474797065223a22493136222c227368617065223a5b325d7d2c226d61"
                             "736b223a7b22646174615f6f666673657473223a5b31362c31395d2c22647479"
                             "7065223a22424f4f4c222c227368617065223a5b335d7d2c227363616c617222"
                             "3a7b22646174615f6f666673657473223a5b302c385d2c226474797065223a22"
                             "493634222c227368617065223a5b5d7d2c22753332223a7b22646174615f6f66"
                             "6673657473223a5b382c31325d2c226474797065223a22553332222c22736861"
                             "7065223a5b315d7d7d070000000000000000286beefdff2c01010001803f00c0"
                             "0000803f0000004000004040000080400000a0400000d040";

DVT_TEST(safetensors_of_mlx) {
    size_t n;
    unsigned char *bytes = golden_bytes(by_mlx, &n);
    dvt_array_list *list = dvt_read_safetensors(bytes, n, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 6);
    CHECK_STR(dvt_array_list_name(list, 0), "0.weight");
    CHECK_STR(dvt_array_list_name(list, 1), "b/\xc3\xa9");
    CHECK_STR(dvt_array_list_name(list, 5), "u32");
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_at(list, 0)), DVT_SHAPE(2, 3)));
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1, 2, 3, 4, 5, 6.5);
    CHECK_INT(dvt_dtype_of(dvt_array_list_at(list, 1)), DVT_BF16);
    CHECK_VALUES(dvt_array_list_at(list, 1), 0, 1, -2);
    CHECK_INT(dvt_dtype_of(dvt_array_list_find(list, "mask")), DVT_BOOL);
    CHECK_VALUES(dvt_array_list_find(list, "mask"), 0, 1, 0, 1);
    CHECK_VALUES(dvt_array_list_find(list, "i16"), 0, -3, 300);
    CHECK_VALUES(dvt_array_list_find(list, "u32"), 0, 4000000000.0);
    CHECK_INT(dvt_ndim(dvt_array_list_find(list, "scalar")), 0);
    CHECK_INT(dvt_item_int(dvt_array_list_find(list, "scalar")), 7);
    CHECK_STR(dvt_array_list_metadata(list, "format"), "mlx");
    CHECK(dvt_array_list_metadata(list, "other") == NULL);
    free(bytes);
}

DVT_TEST(safetensors_dtypes) {
    static const struct {
        const char *name, *bytes;
        size_t n;
        dvt_dtype dtype;
        double value;
    } row[] = {{"F32", "\x00\x00\x20\xc0", 4, DVT_F32, -2.5},
               {"F64", "\x00\x00\x00\x00\x00\x00\xf8\x3f", 8, DVT_F64, 1.5},
               {"F16", "\x00\x3c", 2, DVT_F16, 1},
               {"BF16", "\x80\x3f", 2, DVT_BF16, 1},
               {"U8", "\xff", 1, DVT_U8, 255},
               {"I8", "\xff", 1, DVT_I8, -1},
               {"BOOL", "\x02", 1, DVT_BOOL, 1},
               {"I16", "\x00\x80", 2, DVT_I32, -32768},
               {"U16", "\xff\xff", 2, DVT_I32, 65535},
               {"I32", "\xff\xff\xff\x7f", 4, DVT_I32, 2147483647},
               {"U32", "\xff\xff\xff\xff", 4, DVT_I64, 4294967295.0},
               {"I64", "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, DVT_I64, -2},
               {"U64", "\x07\x00\x00\x00\x00\x00\x00\x00", 8, DVT_I64, 7}};

    char header[200];
    int i;
    for (i = 0; i < (int)(sizeof row / sizeof *row); i++)
        DVT_SCOPE {
            dvt_array *x;
            snprintf(header, sizeof header,
                     "{\"a\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%d]}}",
                     row[i].name, (int)row[i].n);
            make(header, 0);
            memcpy(made + n_made, row[i].bytes, row[i].n);
            n_made += row[i].n;
            x = dvt_array_list_at(read_made(), 0);
            CHECK_INT(dvt_dtype_of(x), row[i].dtype);
            CHECK_CLOSE(dvt_item(x), row[i].value, 0);
        }
    make("{\"a\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 7);
    made[n_made++] = 0x80;
    CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, "uint64");
}

/* The list has the order of the header, whatever the order of the data. Keys come in any order, and
   white space is allowed. */
DVT_TEST(safetensors_order) {
    dvt_array_list *list;
    make("{ \"b\" : {\"shape\":[2], \"data_offsets\":[3,5] ,\"dtype\":\"U8\"},\n"
         "\"none\":{\"dtype\":\"F64\",\"shape\":[4,0],\"data_offsets\":[3,3]},\t"
         "\"a\":{\"data_offsets\":[0,3],\"dtype\":\"U8\",\"shape\":[1,3]}}   \r\n ",
         5);
    list = read_made();
    CHECK_INT(dvt_array_list_len(list), 3);
    CHECK_STR(dvt_array_list_name(list, 0), "b");
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 4, 5);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_at(list, 1)), DVT_SHAPE(4, 0)));
    CHECK_VALUES(dvt_array_list_at(list, 2), 0, 1, 2, 3);
    make("{}", 0);
    CHECK_INT(dvt_array_list_len(read_made()), 0);
    make("{\"__metadata__\":{}}      ", 0);
    list = read_made();
    CHECK(list != NULL);
    CHECK(dvt_array_list_metadata_at(list, 0, NULL) == NULL);
}

DVT_TEST(safetensors_text) {
    dvt_array_list *list;
    const char *key = "x", *value;
    make("{\"__metadata__\":{\"a\\u00e9\\ud83d\\ude00\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\","
         "\"\xf4\x8f\xbf\xbf\":\"\xe2\x82\xac\"},"
         "\"\\u20AC\\u0024\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
         1);
    list = read_made();
    CHECK_STR(dvt_array_list_name(list, 0), "\xe2\x82\xac$");
    value = dvt_array_list_metadata_at(list, 0, &key);
    CHECK_STR(value, "\"\\/\b\f\n\r\t");
    CHECK_STR(key, "a\xc3\xa9\xf0\x9f\x98\x80");
    CHECK_STR(dvt_array_list_metadata_at(list, 1, NULL), "\xe2\x82\xac");
    CHECK(dvt_array_list_metadata_at(list, 2, &key) == NULL && key == NULL);
    CHECK(dvt_array_list_metadata_at(list, -1, &key) == NULL);
    CHECK(dvt_array_list_metadata_at(NULL, 0, &key) == NULL);
    CHECK_ERROR(dvt_array_list_metadata(NULL, "x"), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_array_list_metadata(list, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* ---- refusals ---- */
#define REFUSE(words) CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, words)
#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define U8(name, begin, end, n)                                                                    \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" n "],\"data_offsets\":[" begin "," end "]}"

DVT_TEST(safetensors_refuses) {
    static const struct {
        const char *header;
        int bytes;
        const char *words;
    } row[] = {
        {ENTRY("U8", "[2]", "[0,2]"), 1, "goes beyond the end"},
        {ENTRY("U8", "[2]", "[0,2]"), 3, "1 bytes follow its last tensor"},
        {ENTRY("U8", "[2]", "[0,3]"), 3, "which takes 2 bytes, and 3 bytes of data"},
        {ENTRY("U8", "[2]", "[2,0]"), 2, "needs data_offsets"},
        {ENTRY("U8", "[2]", "[2]"), 2, "needs data_offsets"},
        {ENTRY("U8", "[2]", "[0,1,2]"), 2, "more than two data_offsets"},
        {ENTRY("U8", "[2]", "2"), 2, "no array"},
        {ENTRY("U8", "2", "[0,2]"), 2, "no array"},
        {ENTRY("U8", "[-2]", "[0,2]"), 2, "a sign, a fraction or an exponent"},
        {ENTRY("U8", "[2.0]", "[0,2]"), 2, "a sign, a fraction or an exponent"},
        {ENTRY("U8", "[1e1]", "[0,10]"), 10, "a sign, a fraction or an exponent"},
        {ENTRY("U8", "[\"2\"]", "[0,2]"), 2, "a number is missing"},
        {ENTRY("U8", "[9223372036854775808]", "[0,2]"), 2, "63 bits"},
        {ENTRY("F64", "[1152921504606846976]", "[0,0]"), 0, "more than any file holds"},
        {ENTRY("U8", "[4294967296,4294967296]", "[0,0]"), 0, "more than any file holds"},
        {ENTRY("U8", "[4611686018427387904]", "[0,4611686018427387904]"), 0, "beyond the end"},
        {ENTRY("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 8 axes"},
        {ENTRY("F8_E4M3", "[1]", "[0,1]"), 1, "dtype F8_E4M3, which devtensor does not have"},
        {ENTRY("f32", "[1]", "[0,4]"), 4, "dtype f32"},
        {"{\"a\":{\"dtype\":7}}", 0, "a string is missing"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "lacks a key"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "unknown or repeated"},
        {"{\"a\":{\"strides\":[1]}}", 0, "unknown or repeated"},
        {"{\"a\":[]}", 0, "is no object"},
        {"{" U8("a", "1", "2", "1") "}", 2, "begins at byte 1 of the data; expected 0"},
        {"{" U8("a", "0", "1", "1") "," U8("b", "2", "3", "1") "}", 3, "expected 1"},
        {"{" U8("a", "0", "2", "2") "," U8("b", "1", "3", "2") "}", 3, "expected 2"},
        {"{" U8("a", "0", "2", "2") "," U8("b", "0", "2", "2") "}", 2, "expected 2"},
        {"{" U8("a", "0", "1", "1") "," U8("a", "1", "2", "1") "}", 2, "two tensors are named"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "key \"a\" twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ twice"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "a string is missing"},
        {"{\"__metadata__\":null}", 0, "no object"},
    };

    int i;
    for (i = 0; i < (int)(sizeof row / sizeof *row); i++) {
        make(row[i].header, (size_t)row[i].bytes);
        REFUSE(row[i].words);
    }
}

DVT_TEST(safetensors_refuses_json) {
    static const struct {
        const char *header, *words;
    } row[] = {{"{", "a key is missing"},
               {"{}x", "something follows the end"},
               {"{}{}", "something follows the end"},
               {"{,}", "a key is missing"},
               {"{\"a\"}", "a colon is missing"},
               {"{\"a\":}", "a value is missing"},
               {"{a:1}", "a key is missing"},
               {"{'a':1}", "a key is missing"},
               {"{\"a", "does not end"},
               {"{\"a\\", "unknown escape"},
               {"{\"a\\x\":1}", "unknown escape"},
               {"{\"a\\u12g4\":1}", "gives no character"},
               {"{\"\\ud800\":1}", "gives no character"},
               {"{\"\\ud800x\":1}", "gives no character"},
               {"{\"\\ud800\\n\":1}", "gives no character"},
               {"{\"\\ud800\\ud800\":1}", "gives no character"},
               {"{\"\\udc00\":1}", "gives no character"},
               {"{\"\\u0000\":1}", "zero character"},
               {"{\"a\nb\":1}", "control character"},
               {"{\"\x80\":1}", "not UTF-8"},
               {"{\"\xc0\xaf\":1}", "not UTF-8"},
               {"{\"\xe0\x9f\xbf\":1}", "not UTF-8"},
               {"{\"\xed\xa0\x80\":1}", "not UTF-8"},
               {"{\"\xf0\x8f\xbf\xbf\":1}", "not UTF-8"},
               {"{\"\xf4\x90\x80\x80\":1}", "not UTF-8"},
               {"{\"\xf5\x80\x80\x80\":1}", "not UTF-8"},
               {"{\"\xe2\x82", "not UTF-8"},
               {"{\"__metadata__\":{\"a\":\"b\",}}", "a key is missing"},
               {"{\"__metadata__\":{\"a\":\"b\" \"c\":\"d\"}}", "a comma is missing"},
               {"{\"__metadata__\":{\"a\":\"b\"]}", "a comma is missing"},
               {"{\"__metadata__\":{}", "a comma is missing"},
               {ENTRY("U8", "[01]", "[0,1]"), "a comma is missing"},
               {ENTRY("U8", "[1,]", "[0,1]"), "a value is missing"},
               {ENTRY("U8", "[,1]", "[0,1]"), "a value is missing"},
               {ENTRY("U8", "[1 2]", "[0,1]"), "a comma is missing"},
               {ENTRY("U8", "[-]", "[0,1]"), "a digit is missing"},
               {ENTRY("U8", "[1.]", "[0,1]"), "a digit is missing"},
               {ENTRY("U8", "[1e]", "[0,1]"), "a digit is missing"},
               {ENTRY("U8", "[+1]", "[0,1]"), "a value is missing"},
               {ENTRY("U8", "[nul]", "[0,1]"), "a word other than"},
               {ENTRY("U8", "[true]", "[0,1]"), "a number is missing"},
               {ENTRY("U8", "[1}", "[0,1]"), "a comma is missing"}};

    int i;
    for (i = 0; i < (int)(sizeof row / sizeof *row); i++) {
        make(row[i].header, 0);
        REFUSE(row[i].words);
    }
}

DVT_TEST(safetensors_refuses_other_files) {
    make("{}", 0);
    made[0] = 3;
    REFUSE("header of 3 bytes goes beyond the end");
    made[3] = 6; /* above 100000000 */
    REFUSE("at most 100000000");
    made[3] = 0;
    made[7] = 0x80;
    REFUSE("at most 100000000");
    make("[]", 0);
    REFUSE("this is not a safetensors file");
    make(" {}", 0); /* the { comes first */
    REFUSE("this is not a safetensors file");
    n_made = 0;
    REFUSE("this is not a safetensors file");
    memset(made, 0, 16);
    n_made = 9;
    REFUSE("this is not a safetensors file");
    memcpy(made, "\x93NUMPY\1\0\0\0", 10);
    n_made = 10;
    REFUSE("dvt_read_npy");
    memcpy(made, "GGUF\3\0\0\0", 8);
    REFUSE("this is a GGUF file; read it with dvt_read_gguf");
    memcpy(made, "\x12\1\0\0\0\0\0\0\0\0", 10);
    REFUSE("dvt_read_params");
    memcpy(made, "{\"weight_map\":{}}", 17);
    n_made = 17;
    REFUSE("load it by its path");
    CHECK_ERROR(dvt_read_safetensors(NULL, 8, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

static void make_good(void) {
    make("{\"__metadata__\":{\"k\":\"v\\u00e9\"},\"b\":{\"dtype\":\"I16\",\"shape\":[2,1],"
         "\"data_offsets\":[4,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
         8);
}

static void load(const void *bytes, size_t n) {
    dvt_read_safetensors(bytes, n, dvt_cpu());
}

DVT_TEST(safetensors_survives_damage) {
    unsigned char valid[512];
    size_t n, i;
    make_good();
    n = n_made;
    memcpy(valid, made, n);
    golden_damage(valid, n, load);
    for (i = 0; i < n; i++)
        CHECK_ERROR(dvt_read_safetensors(valid, i, dvt_cpu()), DVT_ERR_FORMAT);
    CHECK(read_made() != NULL);
}

static int load_good(void) {
    make_good();
    return read_made() != NULL;
}

DVT_TEST(safetensors_out_of_memory) {
    CHECK(golden_out_of_memory(load_good) >= 15);
}

/* ---- writing ---- */
#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(safetensors_without_files) {
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    const char *name = "a";
    CHECK_ERROR(dvt_save_safetensors("a.safetensors", &x, &name, 1, NULL), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_safetensors("a.safetensors", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
/* Compares a file with a header, which is padded here to a multiple of 8, and its data. */
static void check_saved(const char *path, const char *header, const void *data, size_t n) {
    char padded[600];
    size_t size;
    unsigned char *bytes = golden_file(path, &size);
    snprintf(padded, sizeof padded, "%s%.*s", header, (int)((8 - strlen(header) % 8) % 8),
             "        ");
    make(padded, 0);
    memcpy(made + n_made, data, n);
    n_made += n;
    CHECK_INT(size, n_made);
    CHECK(bytes && size == n_made && memcmp(bytes, made, size) == 0);
    free(bytes);
}

/* Larger elements come first in the data, so that all are aligned. The header is padded to a
   multiple of 8. */
DVT_TEST(safetensors_saves) {
    const char *names[3] = {"m\"\n\\", "w", "b"}, *path = golden_temporary("a.safetensors");
    const char *const metadata[] = {"format", "pt", "e", "\xc3\xa9", NULL}, *const none[] = {NULL};
    dvt_array *x[3];
    x[0] = dvt_scalar(1, DVT_BOOL, dvt_cpu());
    x[1] = dvt_t(DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3, 4));
    x[2] = dvt_ones(DVT_SHAPE(1), DVT_F16, dvt_cpu_id(3));
    CHECK(dvt_save_safetensors(path, x, names, 3, metadata) == DVT_OK);
    check_saved(path,
                "{\"__metadata__\":{\"format\":\"pt\",\"e\":\"\xc3\xa9\"},"
                "\"m\\\"\\u000a\\\\\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[18,19]},"
                "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[16,18]}}",
                "\0\0\x80\x3f\0\0\x40\x40\0\0\0\x40\0\0\x80\x40\0\x3c\1", 19);
    CHECK_VALUES(dvt_array_list_find(dvt_load_safetensors(path, dvt_cpu()), "w"), 0, 1, 3, 2, 4);
    CHECK(dvt_save_safetensors(path, NULL, NULL, 0, none) == DVT_OK);
    check_saved(path, "{}", "", 0);
    CHECK(dvt_save_safetensors(path, NULL, NULL, 0, metadata) == DVT_OK);
    CHECK_STR(dvt_array_list_metadata(dvt_load_safetensors(path, dvt_cpu()), "e"), "\xc3\xa9");
    CHECK(remove(path) == 0);
}

DVT_TEST(safetensors_round_trip) {
    static const dvt_dtype dtypes[9] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                        DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};
    static const char *const names[9] = {"a", "b", "c", "d", "e", "f", "g", "h", ""};
    const char *path = golden_temporary("r.safetensors");
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *x[9];
        dvt_array_list *list;
        int i;
        for (i = 0; i < 9; i++)
            x[i] =
                dvt_astype(dvt_arange(0, 2, 1, DVT_I32, i % 2 ? dvt_gpu(1) : dvt_cpu()), dtypes[i]);
        CHECK(dvt_save_safetensors(path, x, names, 9, NULL) == DVT_OK);
        list = dvt_load_safetensors(path, dvt_gpu(0));
        CHECK_INT(dvt_array_list_len(list), 9);
        for (i = 0; i < 9; i++) {
            dvt_array *y = dvt_array_list_at(list, i);
            CHECK_STR(dvt_array_list_name(list, i), names[i]);
            CHECK_INT(dvt_dtype_of(y), dtypes[i]);
            CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
            CHECK_VALUES(y, 0, 0, 1);
        }
    }
    CHECK(remove(path) == 0);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(safetensors_save_errors) {
    const char *twice[2] = {"a", "a"}, *missing[2] = {"a", NULL}, *good[2] = {"a", "b"};
    const char *own[2] = {"a", "__metadata__"}, *bytes[2] = {"a", "\xff"};
    const char *const odd[] = {"k", NULL}, *const same[] = {"k", "1", "k", "2", NULL};
    const char *const not_text[] = {"k", "\xc0\x80", NULL};
    const char *path = golden_temporary("e.safetensors");
    dvt_array *x[2];
    FILE *file;
    x[0] = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    x[1] = NULL;
    CHECK_ERROR(dvt_save_safetensors(path, x, good, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    x[1] = x[0];
    CHECK_ERROR(dvt_save_safetensors(path, x, NULL, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_safetensors(path, x, missing, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_safetensors(path, NULL, good, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_safetensors(NULL, x, good, 2, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_safetensors(path, x, good, -1, NULL), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_save_safetensors(path, x, twice, 2, NULL), DVT_ERR_NAME);
    CHECK_ERROR(dvt_save_safetensors(path, x, own, 2, NULL), DVT_ERR_NAME);
    CHECK_ERROR(dvt_save_safetensors(path, x, bytes, 2, NULL), DVT_ERR_NAME);
    CHECK_ERROR(dvt_save_safetensors(path, x, good, 2, odd), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_save_safetensors(path, x, good, 2, same), DVT_ERR_NAME);
    CHECK_ERROR(dvt_save_safetensors(path, x, good, 2, not_text), DVT_ERR_NAME);
    file = fopen(path, "rb");
    CHECK(file == NULL); /* no file was created */
    if (file)
        fclose(file);
}

static char out_path[600];

static int save_two(void) {
    const char *names[2] = {"b", "a"};
    const char *const metadata[] = {"k", "v", NULL};
    dvt_array *x[2];
    x[0] = dvt_t(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()));
    x[1] = dvt_ones(DVT_SHAPE(2), DVT_I32, dvt_cpu());
    return x[0] && x[1] && dvt_save_safetensors(out_path, x, names, 2, metadata) == DVT_OK;
}

DVT_TEST(safetensors_saving_out_of_memory) {
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.safetensors"));
    CHECK(golden_out_of_memory(save_two) >= 8);
    CHECK_INT(dvt_array_list_len(dvt_load_safetensors(out_path, dvt_cpu())), 2);
    CHECK(remove(out_path) == 0);
}
#endif
