/* Tests of GGUF: values, metadata as text, alignment, every refusal. */
#include "dvt_golden.h"

static unsigned char made[8192];
static size_t n_made;

static void put(uint64_t value, int bytes) {
    for (; bytes > 0; bytes--, value >>= 8)
        made[n_made++] = (unsigned char)value;
}

static void put_text(const char *text) {
    put(strlen(text), 8);
    memcpy(made + n_made, text, strlen(text));
    n_made += strlen(text);
}

static void begin(unsigned version, uint64_t tensors, uint64_t metadata) {
    n_made = 0;
    put(0x46554747, 4); /* GGUF */
    put(version, 4);
    put(tensors, 8);
    put(metadata, 8);
}

static void put_pair(const char *key, unsigned type, uint64_t value, int bytes) {
    put_text(key);
    put(type, 4);
    put(value, bytes);
}

/* Describes a tensor of one axis. */
static void put_tensor(const char *name, uint64_t extent, unsigned type, uint64_t place) {
    put_text(name);
    put(1, 4);
    put(extent, 8);
    put(type, 4);
    put(place, 8);
}

static void pad(size_t alignment) {
    while (n_made % alignment)
        made[n_made++] = 0;
}

static dvt_array_list *read_made(void) {
    return dvt_read_gguf(made, n_made, dvt_cpu());
}

/* mlx.core.save_gguf(path, {"0.weight": float32 [[1, 2, 3], [4, 5, 6.5]],
   "bias": float16 [1.5, -2], "i8": int8 [[1, -1]], "i32": int32 [5]}, {"general.name": "small",
   "answer": uint32 42, "eps": float32 1e-5}) of MLX 0.32 */
static const char by_mlx[] = "4747554603000000040000000000000003000000000000000600000000000000"
                             "616e73776572040000002a000000030000000000000065707306000000acc527"
                             "370c0000000000000067656e6572616c2e6e616d650800000005000000000000"
                             "00736d616c6c03000000000000006933320100000001000000000000001a0000"
                             "0000000000000000000200000000000000693802000000020000000000000001"
                             "0000000000000018000000200000000000000004000000000000006269617301"
                             "0000000200000000000000010000004000000000000000080000000000000030"
                             "2e77656967687402000000030000000000000002000000000000000000000060"
                             "0000000000000000000000000000000000000000000000000000000000000000"
                             "0500000000000000000000000000000000000000000000000000000000000000"
                             "01ff000000000000000000000000000000000000000000000000000000000000"
                             "003e00c000000000000000000000000000000000000000000000000000000000"
                             "0000803f0000004000004040000080400000a0400000d040";

DVT_TEST(gguf_of_mlx) {
    size_t n;
    unsigned char *bytes = golden_bytes(by_mlx, &n);
    dvt_array_list *list = dvt_read_gguf(bytes, n, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 4);
    CHECK_STR(dvt_array_list_name(list, 0), "i32");
    CHECK_STR(dvt_array_list_name(list, 3), "0.weight");
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 5);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_find(list, "i8")), DVT_SHAPE(1, 2)));
    CHECK_VALUES(dvt_array_list_find(list, "i8"), 0, 1, -1);
    CHECK_INT(dvt_dtype_of(dvt_array_list_find(list, "bias")), DVT_F16);
    CHECK_VALUES(dvt_array_list_find(list, "bias"), 0, 1.5, -2);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_at(list, 3)), DVT_SHAPE(2, 3)));
    CHECK_VALUES(dvt_array_list_at(list, 3), 0, 1, 2, 3, 4, 5, 6.5);
    CHECK_STR(dvt_array_list_metadata(list, "general.name"), "small");
    CHECK_STR(dvt_array_list_metadata(list, "answer"), "42");
    CHECK_STR(dvt_array_list_metadata(list, "eps"), "1e-05");
    free(bytes);
}

DVT_TEST(gguf_types) {
    static const struct {
        unsigned type;
        const char *bytes;
        size_t n;
        dvt_dtype dtype;
        double value;
    } row[] = {{0, "\x00\x00\x20\xc0", 4, DVT_F32, -2.5},
               {1, "\x00\x3c", 2, DVT_F16, 1},
               {24, "\xff", 1, DVT_I8, -1},
               {25, "\x00\x80", 2, DVT_I32, -32768},
               {26, "\xff\xff\xff\x7f", 4, DVT_I32, 2147483647},
               {27, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, DVT_I64, -2},
               {28, "\x00\x00\x00\x00\x00\x00\xf8\x3f", 8, DVT_F64, 1.5},
               {30, "\x80\x3f", 2, DVT_BF16, 1}};

    unsigned version;
    int i;
    for (i = 0; i < (int)(sizeof row / sizeof *row); i++)
        for (version = 2; version <= 3; version++)
            DVT_SCOPE {
                dvt_array *x;
                begin(version, 1, 0);
                put_tensor("a", 1, row[i].type, 0);
                pad(32);
                memcpy(made + n_made, row[i].bytes, row[i].n);
                n_made += row[i].n;
                if (version == 3) /* the end may be padded too */
                    pad(32);
                x = dvt_array_list_at(read_made(), 0);
                CHECK_INT(dvt_dtype_of(x), row[i].dtype);
                CHECK_CLOSE(dvt_item(x), row[i].value, 0);
            }
}

DVT_TEST(gguf_place_beyond_63_bits) {
    begin(3, 1, 0);
    put_tensor("a", 1, 0, (uint64_t)1 << 63);
    pad(32);
    CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, "begins at byte 2^63 of the data or later");
}

DVT_TEST(gguf_metadata) {
    static const struct {
        const char *key;
        unsigned type;
        int bytes;
        uint64_t value;
        const char *text;
    } row[] = {{"u8", 0, 1, 200, "200"},
               {"i8", 1, 1, 200, "-56"},
               {"u16", 2, 2, 65535, "65535"},
               {"i16", 3, 2, 65535, "-1"},
               {"u32", 4, 4, 4294967295u, "4294967295"},
               {"i32", 5, 4, 0x80000000u, "-2147483648"},
               {"f32", 6, 4, 0x3dcccccd, "0.1"},
               {"inf", 6, 4, 0xff800000u, "-inf"},
               {"yes", 7, 1, 1, "true"},
               {"no", 7, 1, 0, "false"},
               {"u64", 10, 8, UINT64_MAX, "18446744073709551615"},
               {"i64", 11, 8, UINT64_MAX - 1, "-2"},
               {"f64", 12, 8, 0x400921fb54442d18u, "3.141592653589793"}};

    const int rows = (int)(sizeof row / sizeof *row);
    dvt_array_list *list;
    int i;
    begin(3, 0, (uint64_t)rows + 4);
    for (i = 0; i < rows; i++)
        put_pair(row[i].key, row[i].type, row[i].value, row[i].bytes);
    put_text("text");
    put(8, 4);
    put_text("a\xc3\xa9");
    put_text("numbers"); /* three int16 */
    put(9, 4);
    put(3, 4);
    put(3, 8);
    put(0, 6);
    put_text("texts");
    put(9, 4);
    put(8, 4);
    put(2, 8);
    put_text("\xff"); /* tokens may be any bytes */
    put_text("");
    put_text("nested");
    put(9, 4);
    put(9, 4);
    put(1, 8);
    put(7, 4);
    put(2, 8);
    put(0x0100, 2);
    list = read_made();
    CHECK_INT(dvt_array_list_len(list), 0);
    for (i = 0; i < rows; i++)
        CHECK_STR(dvt_array_list_metadata(list, row[i].key), row[i].text);
    CHECK_STR(dvt_array_list_metadata(list, "text"), "a\xc3\xa9");
    CHECK(dvt_array_list_metadata(list, "numbers") == NULL);
    CHECK(dvt_array_list_metadata_at(list, rows + 1, NULL) == NULL);
    pad(32);
    CHECK(read_made() != NULL);
}

static void make_aligned(uint64_t alignment) {
    begin(3, 2, 1);
    put_pair("general.alignment", 4, alignment, 4);
    put_tensor("a", 3, 24, 0);
    put_tensor("b", 2, 24, 64);
    pad(64);
    put(0x030201, 3);
    pad(64);
    put(0x0504, 2);
}

DVT_TEST(gguf_alignment) {
    dvt_array_list *list;
    make_aligned(64);
    list = read_made();
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1, 2, 3);
    CHECK_VALUES(dvt_array_list_at(list, 1), 0, 4, 5);
    CHECK_STR(dvt_array_list_metadata(list, "general.alignment"), "64");
}

/* ---- refusals ---- */
#define REFUSE(words) CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, words)

DVT_TEST(gguf_refuses_headers) {
    static const uint64_t alignments[] = {0, 1, 4, 24, 0xffffffffu};
    int i;
    n_made = 0;
    REFUSE("this is not a GGUF file (those begin with GGUF): it is empty");
    begin(1, 0, 0);
    REFUSE("unknown version");
    begin(4, 0, 0);
    REFUSE("unknown version");
    begin(0x03000000, 0, 0);
    REFUSE("big-endian");
    begin(3, 0, 0);
    n_made = 20;
    REFUSE("ends within its header");
    begin(3, 1, 0);
    REFUSE("more than the file can hold");
    begin(3, 0, UINT64_MAX);
    REFUSE("more than the file can hold");
    begin(3, 0, 0);
    put(0, 7);
    REFUSE("ends within padding");
    begin(3, 0, 0);
    put(1, 8);
    REFUSE("padding is not 0");
    for (i = 0; i < (int)(sizeof alignments / sizeof *alignments); i++) {
        make_aligned(alignments[i]);
        REFUSE("power of two");
    }
    begin(3, 0, 1);
    put_pair("general.alignment", 10, 32, 8); /* uint64 */
    REFUSE("power of two");
    begin(3, 0, 1);
    put_text("general.alignment");
    put(8, 4);
    put_text("32");
    REFUSE("no number");
    CHECK_ERROR(dvt_read_gguf(NULL, 8, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

static void put_array(unsigned type, uint64_t count) {
    put_text("k");
    put(9, 4);
    put(type, 4);
    put(count, 8);
}

DVT_TEST(gguf_refuses_metadata) {
    int i;
    begin(3, 0, 2);
    put_pair("k", 0, 1, 1);
    put_pair("k", 1, 1, 1);
    REFUSE("\"k\" occurs twice");
    begin(3, 0, 1);
    put_pair("k", 13, 1, 8);
    REFUSE("unknown type");
    begin(3, 0, 1);
    put_pair("k", 7, 2, 1);
    REFUSE("bool other than 0 and 1");
    begin(3, 0, 1);
    put_pair("", 0, 1, 1);
    put(0, 8);
    REFUSE("without characters");
    begin(3, 0, 1);
    put_pair("\xff", 0, 1, 1);
    REFUSE("not UTF-8");
    begin(3, 0, 1);
    put(100, 8);
    put(0, 8);
    REFUSE("goes beyond the end");
    begin(3, 0, 1);
    put_text("k");
    put(8, 4);
    put(3, 8);
    put(0x006161, 3);
    REFUSE("zero byte");
    begin(3, 0, 1);
    put_array(13, 0);
    REFUSE("unknown type");
    begin(3, 0, 1);
    put_array(12, 1);
    REFUSE("beyond the end");
    begin(3, 0, 1);
    put_array(0, UINT64_MAX);
    REFUSE("beyond the end");
    begin(3, 0, 1);
    put_array(7, 2);
    put(0x0201, 2);
    REFUSE("bool other than 0 and 1");
    begin(3, 0, 1);
    put_array(8, 1);
    put(5, 8);
    REFUSE("beyond the end");
    begin(3, 0, 1);
    put_array(9, 1);
    for (i = 0; i < 5; i++) {
        put(9, 4);
        put(1, 8);
    }
    put(0, 16);
    REFUSE("more than 4 arrays");
}

/* Makes a file with one tensor of two bytes. */
static void one_tensor(const char *name, uint64_t extent, unsigned type, uint64_t place) {
    begin(3, 1, 0);
    put_tensor(name, extent, type, place);
    pad(32);
    put(0x0201, 2);
}

DVT_TEST(gguf_refuses_tensors) {
    one_tensor("blk.0.ffn", 2, 12, 0);
    REFUSE("tensor \"blk.0.ffn\" is quantized (Q4_K)");
    REFUSE("llama-quantize");
    one_tensor("a", 2, 39, 0);
    REFUSE("MXFP4");
    one_tensor("a", 2, 4, 0);
    REFUSE("unknown type 4");
    one_tensor("a", 2, 77, 0);
    REFUSE("unknown type 77");
    one_tensor("a", 2, 24, 32);
    REFUSE("begins at byte 32 of the data; expected 0");
    one_tensor("a", 3, 24, 0);
    REFUSE("beyond the end");
    one_tensor("a", 1, 24, 0);
    REFUSE("1 bytes follow its last tensor");
    one_tensor("a", UINT64_MAX, 24, 0);
    REFUSE("extent of 2^63");
    one_tensor("a", (uint64_t)1 << 62, 27, 0);
    REFUSE("more than any file holds");
    one_tensor("a", 2, 24, 0);
    made[n_made - 4] = 1;
    REFUSE("padding is not 0");
    begin(3, 1, 0);
    put_text("a");
    put(9, 4);
    put(0, 40);
    REFUSE("more than 8 axes");
    begin(3, 2, 0);
    put_tensor("same", 1, 24, 0);
    put_tensor("same", 1, 24, 32);
    pad(32);
    put(1, 33);
    REFUSE("two tensors are named \"same\"");
    begin(3, 2, 0);
    put_tensor("a", 1, 24, 0);
    put_tensor("b", 1, 24, 1); /* not aligned */
    pad(32);
    put(1, 2);
    REFUSE("begins at byte 1 of the data; expected 32");
    begin(3, 2, 0);
    put_tensor("a", 1, 24, 0);
    put_tensor("b", 1, 24, 32);
    pad(32);
    put(0x0101, 33); /* the padding after a is not 0 */
    REFUSE("padding is not 0");
}

static void make_good(void) {
    begin(3, 2, 2);
    put_text("texts");
    put(9, 4);
    put(8, 4);
    put(2, 8);
    put_text("a");
    put_text("b");
    put_pair("eps", 6, 0x3f800000, 4);
    put_tensor("b", 1, 25, 32);
    put_tensor("a", 3, 24, 0);
    pad(32);
    put(0x030201, 3);
    pad(32);
    put(7, 2);
}

static void load(const void *bytes, size_t n) {
    dvt_read_gguf(bytes, n, dvt_cpu());
}

DVT_TEST(gguf_survives_damage) {
    unsigned char valid[512];
    size_t n, i;
    make_good();
    n = n_made;
    memcpy(valid, made, n);
    golden_damage(valid, n, load);
    for (i = 0; i < n; i++)
        CHECK_ERROR(dvt_read_gguf(valid, i, dvt_cpu()), DVT_ERR_FORMAT);
    CHECK_VALUES(dvt_array_list_find(read_made(), "b"), 0, 7);
    CHECK_STR(dvt_array_list_name(read_made(), 0), "b");
}

static int load_good(void) {
    make_good();
    return read_made() != NULL;
}

DVT_TEST(gguf_out_of_memory) {
    CHECK(golden_out_of_memory(load_good) >= 15);
}

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(gguf_without_files) {
    CHECK_ERROR(dvt_load_gguf("a.gguf", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
DVT_TEST(gguf_files) {
    const char *path = golden_temporary("a.gguf");
    make_good();
    CHECK(golden_write(path, made, n_made));
    CHECK_VALUES(dvt_array_list_find(dvt_load_gguf(path, dvt_cpu()), "a"), 0, 1, 2, 3);
    CHECK(remove(path) == 0);
    CHECK_ERROR(dvt_load_gguf(path, dvt_cpu()), DVT_ERR_IO);
}
#endif
