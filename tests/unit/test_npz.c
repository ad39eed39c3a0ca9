/* Tests of reading .npz: archives that NumPy and zipfile wrote, handmade ones with one error each,
   and every refusal with its message. */
#include "dvt_golden.h"

/* numpy.savez(f, a, b=b), numpy.savez_compressed(f, w=a, c=c), and zipfile.ZipFile on a stream that
   cannot seek, with a comment: data descriptors of x.npy (b) and, zip64, y.npy (c). For
   a = numpy.arange(6, dtype=float32).reshape(2, 3), b = int16 [-1, 300], c = bool True. */
static const char stored_hex[] =
    "504b03042d0000000000000021005e5ea49effffffffffffffff05001400622e6e7079010010008400000000"
    "0000008400000000000000934e554d5059010076007b276465736372273a20273c6932272c2027666f727472"
    "616e5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020200affff2c01504b03042d0000000000000021004fe9002affffffffffffffff09001400617272"
    "5f302e6e70790100100098000000000000009800000000000000934e554d5059010076007b27646573637227"
    "3a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a202832"
    "2c2033292c207d20202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020200a000000000000803f0000004000004040000080400000"
    "a040504b01022d032d0000000000000021005e5ea49e84000000840000000500000000000000000000008001"
    "00000000622e6e7079504b01022d032d0000000000000021004fe9002a980000009800000009000000000000"
    "00000000008001bb0000006172725f302e6e7079504b050600000000020002006a0000008e0100000000";
static const char deflated_hex[] =
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400772e6e7079010010009800000000"
    "00000055000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f5452"
    "9498179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e063068b007120e40"
    "04c40d40bcc00100504b03042d000000080000002100822df8d3ffffffffffffffff05001400632e6e707901"
    "001000810000000000000043000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e9364a8"
    "aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a9a3a0ab50a14012e4600504b"
    "01022d032d0000000800000021004fe9002a5500000098000000050000000000000000000000800100000000"
    "772e6e7079504b01022d032d000000080000002100822df8d343000000810000000500000000000000000000"
    "0080018c000000632e6e7079504b0506000000000200020066000000060100000000";
static const char streamed_hex[] =
    "504b03041400080008000000210000000000000000000000000005000000782e6e70799bec17ea1b10c9c850"
    "c650ad9e925a9c5ca46ea5a06e9369a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416"
    "a402f91a463a9a3a0ab50a1400aeffff751801504b07085e5ea49e4800000084000000504b03042d00080008"
    "000000210000000000ffffffffffffffff05001400792e6e7079010010000000000000000000000000000000"
    "00009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e9364a8aea3a09e965f54529498179f5f94920a12"
    "774bcc294e058a17672416a402f91a9a3a0ab50a14012e4600504b0708822df8d34300000000000000810000"
    "0000000000504b01021403140008000800000021005e5ea49e48000000840000000500000000000000000000"
    "00800100000000782e6e7079504b01022d032d000800080000002100822df8d3430000008100000005000000"
    "000000000000000080017b000000792e6e7079504b05060000000002000200660000000d0100000c006e6f20"
    "504b05062068657265";

static dvt_array_list *read_hex(const char *hex) {
    size_t n;
    unsigned char *bytes = golden_bytes(hex, &n);
    dvt_array_list *list = dvt_read_npz(bytes, n, dvt_cpu());
    dvt_test_check(list != NULL, __FILE__, __LINE__, "%s", dvt_error());
    free(bytes);
    return list;
}

static void check_a(dvt_array *x) {
    CHECK_INT(dvt_dtype_of(x), DVT_F32);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 3)));
    CHECK_VALUES(x, 0, 0, 1, 2, 3, 4, 5);
}

static void check_b(dvt_array *x) {
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, -1, 300);
}

static void check_c(dvt_array *x) {
    CHECK_INT(dvt_dtype_of(x), DVT_BOOL);
    CHECK_INT(dvt_ndim(x), 0);
    CHECK_VALUES(x, 0, 1);
}

DVT_TEST(npz_reads_what_numpy_writes) {
    dvt_array_list *list = read_hex(stored_hex);
    CHECK_INT(dvt_array_list_len(list), 2);
    CHECK_STR(dvt_array_list_name(list, 0), "b");
    CHECK_STR(dvt_array_list_name(list, 1), "arr_0");
    check_b(dvt_array_list_at(list, 0));
    check_a(dvt_array_list_find(list, "arr_0"));
    list = read_hex(deflated_hex);
    CHECK_INT(dvt_array_list_len(list), 2);
    CHECK_STR(dvt_array_list_name(list, 0), "w");
    check_a(dvt_array_list_at(list, 0));
    check_c(dvt_array_list_find(list, "c"));
    list = read_hex(streamed_hex);
    CHECK_INT(dvt_array_list_len(list), 2);
    check_b(dvt_array_list_find(list, "x"));
    check_c(dvt_array_list_find(list, "y"));
}

/* ---- handmade archives ---- */
typedef struct member {
    const char *name;
    const char *data;
    unsigned method, flags; /* method 8: one stored block of deflate */
    int wide;               /* zip64 fields in both headers */
    int descriptor;         /* bytes of the sizes in the descriptor, + 100: with a signature */
} member;

static unsigned char made[4096];
static size_t n_made, local_at[4], content_at[4], entry_at[4], end_at;

static void put(uint64_t value, int bytes) {
    int i;
    for (i = 0; i < bytes; i++)
        made[n_made++] = (unsigned char)(i < 8 ? value >> 8 * i : 0);
}

static void put_bytes(const void *bytes, size_t n) {
    memcpy(made + n_made, bytes, n);
    n_made += n;
}

static uint32_t crc_of(const void *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    size_t i;
    int k;
    for (i = 0; i < n; i++)
        for (crc ^= ((const unsigned char *)bytes)[i], k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    return ~crc;
}

/* A .npy file of one byte. */
static char npy_one[80];
static size_t n_npy_one;

static void make_one(void) {
    static const char dictionary[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n";
    memcpy(npy_one, "\x93NUMPY\1\0", 8);
    npy_one[8] = (char)(sizeof dictionary - 1);
    npy_one[9] = 0;
    memcpy(npy_one + 10, dictionary, sizeof dictionary - 1);
    npy_one[10 + sizeof dictionary - 1] = 7;
    n_npy_one = 10 + sizeof dictionary;
}

static void put_head(const member *m, int known, size_t n) {
    uint64_t packed = m->method ? n + 5 : n;
    put(20, 2);
    put(m->flags | (m->descriptor ? 8 : 0), 2);
    put(m->method, 2);
    put(0, 4);
    put(known ? crc_of(m->data, n) : 0, 4);
    put(m->wide ? 0xffffffffu : known ? packed : 0, 4);
    put(m->wide ? 0xffffffffu : known ? n : 0, 4);
    put(strlen(m->name), 2);
}

/* Puts the zip64 field with both sizes, after a field of another kind. */
static void put_wide(uint64_t size, uint64_t packed) {
    put(0x7777, 2);
    put(1, 2);
    put(0, 1);
    put(1, 2);
    put(16, 2);
    put(size, 8);
    put(packed, 8);
}

static void make(const member *members, int n) {
    int i;
    n_made = 0;
    for (i = 0; i < n; i++) {
        const member *m = &members[i];
        size_t size = n_npy_one, packed = m->method ? size + 5 : size;
        int known = !m->descriptor, bytes = m->descriptor % 100;
        local_at[i] = n_made;
        put(0x04034b50, 4);
        put_head(m, known, size);
        put(m->wide ? 25 : 0, 2);
        put_bytes(m->name, strlen(m->name));
        if (m->wide)
            put_wide(known ? size : 0, known ? packed : 0);
        content_at[i] = n_made;
        if (m->method) {
            put(1, 1);
            put(size, 2);
            put(~size, 2);
        }
        put_bytes(m->data, size);
        if (m->descriptor > 100)
            put(0x08074b50, 4);
        if (m->descriptor) {
            put(crc_of(m->data, size), 4);
            put(packed, bytes);
            put(size, bytes);
        }
    }
    for (i = 0; i < n; i++) {
        const member *m = &members[i];
        entry_at[i] = n_made;
        put(0x02014b50, 4);
        put(20, 2);
        put_head(m, 1, n_npy_one);
        put(m->wide ? 25 : 0, 2);
        put(0, 10);
        put(local_at[i], 4);
        put_bytes(m->name, strlen(m->name));
        if (m->wide)
            put_wide(n_npy_one, m->method ? n_npy_one + 5 : n_npy_one);
    }
    end_at = n_made;
    put(0x06054b50, 4);
    put(0, 4);
    put((uint64_t)n, 2);
    put((uint64_t)n, 2);
    put(n ? end_at - entry_at[0] : 0, 4);
    put(n ? entry_at[0] : 0, 4);
    put(0, 2);
}

static const member two[2] = {{"a.npy", npy_one, 0, 0, 0, 0}, {"b.npy", npy_one, 8, 0, 0, 0}};

static void make_two(void) {
    make_one();
    make(two, 2);
}

static dvt_array_list *read_made(void) {
    return dvt_read_npz(made, n_made, dvt_cpu());
}

static void set(size_t at, uint64_t value, int bytes) {
    int i;
    for (i = 0; i < bytes; i++)
        made[at + (size_t)i] = (unsigned char)(value >> 8 * i);
}

#define REFUSE(words) CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, words)
/* Refuses the two members after one change. */
#define REFUSE_SET(at, value, bytes, words)                                                        \
    do {                                                                                           \
        make_two();                                                                                \
        set((at), (value), (bytes));                                                               \
        REFUSE(words);                                                                             \
    } while (0)

DVT_TEST(npz_forms_of_members) {
    static const int descriptors[] = {0, 4, 8, 104, 108};
    int i, form;
    make_one();
    for (i = 0; i < 5; i++)
        for (form = 0; form < 4; form++)
            DVT_SCOPE {
                member both[2];
                dvt_array_list *list;
                both[0] = two[form & 1];
                both[0].descriptor = descriptors[i];
                both[0].wide = form / 2;
                both[1] = two[1 - (form & 1)];
                make(both, 2);
                list = read_made();
                dvt_test_check(list != NULL, __FILE__, __LINE__, "%d %d: %s", i, form, dvt_error());
                CHECK_VALUES(dvt_array_list_find(list, "a"), 0, 7);
                CHECK_VALUES(dvt_array_list_find(list, "b"), 0, 7);
            }
}

DVT_TEST(npz_empty_archive) {
    dvt_array_list *list;
    make(NULL, 0);
    list = read_made();
    CHECK(list != NULL);
    CHECK_INT(dvt_array_list_len(list), 0);
}

/* A file ends nowhere but at its end. */
DVT_TEST(npz_refuses_cut_files) {
    size_t whole;
    make_two();
    for (whole = n_made; n_made > 0; n_made--)
        if (n_made < whole)
            CHECK_ERROR(read_made(), DVT_ERR_FORMAT);
    make_two();
    put(0, 1);
    REFUSE("the directory at its end is missing");
    n_made = 3;
    REFUSE("not an .npz file");
    n_made = 0;
    REFUSE("it is empty");
    CHECK_REFUSED(dvt_read_npz("hello, world", 12, dvt_cpu()), DVT_ERR_FORMAT, "not an .npz file");
    CHECK_ERROR(dvt_read_npz(NULL, 1, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

/* zipfile.ZipFile: folder/ and folder/a.npy (7), empty/ (deflated) and b.npy (9); a.npy and x/ with
   one byte. */
static const char folders_hex[] =
    "504b03041400000000000000210000000000000000000000000007000000666f6c6465722f504b0304140000"
    "00000000002100fcda90a843000000430000000c000000666f6c6465722f612e6e7079934e554d5059010038"
    "007b276465736372273a20277c7531272c2027666f727472616e5f6f72646572273a2046616c73652c202773"
    "68617065273a2028292c207d0a07504b03041400000008000000210000000000020000000000000006000000"
    "656d7074792f0300504b030414000000000000002100fbf7284f430000004300000005000000622e6e707993"
    "4e554d5059010038007b276465736372273a20277c7531272c2027666f727472616e5f6f72646572273a2046"
    "616c73652c20277368617065273a2028292c207d0a09504b0102140314000000000000002100000000000000"
    "000000000000070000000000000000000000800100000000666f6c6465722f504b0102140314000000000000"
    "002100fcda90a843000000430000000c0000000000000000000000800125000000666f6c6465722f612e6e70"
    "79504b0102140314000000080000002100000000000200000000000000060000000000000000000000800192"
    "000000656d7074792f504b0102140314000000000000002100fbf7284f430000004300000005000000000000"
    "00000000008001b8000000622e6e7079504b05060000000004000400d60000001e0100000000";
static const char full_folder_hex[] =
    "504b030414000000000000002100fcda90a8430000004300000005000000612e6e7079934e554d5059010038"
    "007b276465736372273a20277c7531272c2027666f727472616e5f6f72646572273a2046616c73652c202773"
    "68617065273a2028292c207d0a07504b030414000000000000002100b7efdc83010000000100000002000000"
    "782f31504b0102140314000000000000002100fcda90a8430000004300000005000000000000000000000080"
    "0100000000612e6e7079504b0102140314000000000000002100b7efdc830100000001000000020000000000"
    "000000000000800166000000782f504b0506000000000200020063000000870000000000";

/* Directories, as `zip -r` adds them, are no arrays. With content they are refused. */
DVT_TEST(npz_skips_directories) {
    dvt_array_list *list = read_hex(folders_hex);
    size_t n;
    unsigned char *bytes = golden_bytes(full_folder_hex, &n);
    CHECK_INT(dvt_array_list_len(list), 2);
    CHECK_VALUES(dvt_array_list_find(list, "folder/a"), 0, 7);
    CHECK_VALUES(dvt_array_list_find(list, "b"), 0, 9);
    CHECK_REFUSED(dvt_read_npz(bytes, n, dvt_cpu()), DVT_ERR_FORMAT, "\"x/\" is not an .npy file");
    free(bytes);
}

DVT_TEST(npz_refuses_kinds_of_members) {
    member others[3];
    memcpy(others, two, sizeof two);
    others[2] = two[0];
    make_one();
    others[2].name = "c.txt";
    make(others, 3);
    REFUSE("member \"c.txt\" is not an .npy file");
    others[2].name = "npy";
    make(others, 3);
    REFUSE("member \"npy\" is not");
    others[2].name = "x/data.pkl";
    make(others, 3);
    REFUSE("this is a PyTorch file: save it as safetensors");
    others[2].name = "a.npy";
    make(others, 3);
    REFUSE("two members are named \"a.npy\"");
    others[2].name = ".npy"; /* an array without a name */
    make(others, 3);
    CHECK_INT(dvt_array_list_len(read_made()), 3);
    REFUSE_SET(entry_at[0] + 46, 0, 1, "zero byte");
    make_two();
    made[local_at[0] + 6] |= 1;
    made[entry_at[0] + 8] |= 1;
    REFUSE("\"a.npy\" is encrypted");
    REFUSE_SET(entry_at[1] + 8, 0x2000, 2, "\"b.npy\" is encrypted");
    REFUSE_SET(entry_at[1] + 8, 0x20, 2, "method 8");
    REFUSE_SET(entry_at[1] + 10, 12, 2, "\"b.npy\" has compression method 12");
}

DVT_TEST(npz_refuses_content) {
    make_two();
    made[content_at[0] + n_npy_one - 1] ^= 1;
    REFUSE("member \"a.npy\" of the data: its checksum is wrong");
    make_two();
    made[content_at[1] + 5 + n_npy_one - 1] ^= 1;
    REFUSE("member \"b.npy\" of the data: the compressed data cannot be read: its checksum");
    /* The block of b.npy is one byte shorter than the sizes say, or not the last one. */
    make_two();
    set(content_at[1] + 1, n_npy_one - 1, 2);
    set(content_at[1] + 3, ~(uint64_t)(n_npy_one - 1), 2);
    REFUSE("shorter than its header says");
    REFUSE_SET(content_at[1], 0, 1, "the compressed data cannot be read");
    /* Sizes that both headers have, and the content does not. */
    make_two();
    set(local_at[1] + 22, n_npy_one - 1, 4);
    set(entry_at[1] + 24, n_npy_one - 1, 4);
    REFUSE("longer than its header says");
    make_two();
    set(local_at[1] + 22, n_npy_one + 1, 4);
    set(entry_at[1] + 24, n_npy_one + 1, 4);
    REFUSE("shorter than its header says");
    make_two();
    set(local_at[1] + 18, n_npy_one + 4, 4);
    set(entry_at[1] + 20, n_npy_one + 4, 4);
    REFUSE("another compressed size");
}

/* Makes an archive of npy_one with one other byte. */
static void make_other(size_t at, char value, unsigned method) {
    static char other[80];
    member one[1];
    make_one();
    memcpy(other, npy_one, sizeof other);
    other[at] = value;
    one[0] = two[0];
    one[0].data = other;
    one[0].method = method;
    make(one, 1);
}

DVT_TEST(npz_refuses_arrays) {
    unsigned method;
    for (method = 0; method <= 8; method += 8) {
        make_other(0, 1, method);
        REFUSE("member \"a.npy\" of the data: this is not an .npy file");
        make_other(8, 100, method);
        REFUSE("ends within its header");
        make_other(10 + 13, '2', method); /* |u1 becomes |u2 */
        REFUSE("which takes 2 bytes, but 1 bytes follow it");
    }
}

DVT_TEST(npz_refuses_local_headers) {
    static const char words[] = "disagrees with the directory";
    REFUSE_SET(local_at[1], 0, 1, words);
    REFUSE_SET(local_at[0] + 6, 8, 1, words);  /* flags */
    REFUSE_SET(local_at[0] + 8, 8, 1, words);  /* method */
    REFUSE_SET(local_at[1] + 14, 1, 4, words); /* CRC */
    REFUSE_SET(local_at[1] + 18, 1, 4, words); /* sizes */
    REFUSE_SET(local_at[1] + 22, 1, 4, words);
    REFUSE_SET(local_at[0] + 26, 4, 2, words); /* lengths of name and extra field */
    REFUSE_SET(local_at[0] + 28, 9, 2, words);
    REFUSE_SET(local_at[1] + 28, 65535, 2, words);
    REFUSE_SET(local_at[0] + 30, 'b', 1, words); /* name */
    REFUSE_SET(entry_at[1] + 42, 1, 4, "overlaps");
    make_two();
    set(entry_at[1] + 42, n_made, 4);
    REFUSE("entry of its directory is damaged");
}

DVT_TEST(npz_refuses_sizes_and_overlaps) {
    REFUSE_SET(entry_at[1] + 42, local_at[0], 4, "overlaps");
    REFUSE_SET(entry_at[1] + 42, entry_at[0] - 3, 4, "overlaps");
    REFUSE_SET(entry_at[1] + 24, 0x7fffffff, 4, "which is impossible");
    REFUSE_SET(entry_at[0] + 24, n_npy_one + 1, 4, "which is impossible");
    REFUSE_SET(entry_at[0] + 20, 0xfffffff0, 4, "entry of its directory is damaged");
    make_two();
    set(entry_at[0] + 20, n_npy_one + 60, 4);
    set(entry_at[0] + 24, n_npy_one + 60, 4);
    REFUSE("overlaps");
}

DVT_TEST(npz_refuses_directories) {
    REFUSE_SET(end_at + 4, 1, 2, "several parts");
    REFUSE_SET(end_at + 6, 1, 2, "several parts");
    REFUSE_SET(end_at + 8, 1, 2, "several parts");
    REFUSE_SET(end_at + 12, 5, 4, "not where its end record says");
    REFUSE_SET(end_at + 16, 0xfffffffe, 4, "not where its end record says");
    REFUSE_SET(end_at + 20, 1, 2, "the directory at its end is missing");
    make_two();
    set(end_at + 8, 1, 2);
    set(end_at + 10, 1, 2);
    REFUSE("more entries than");
    set(end_at + 8, 3, 2);
    set(end_at + 10, 3, 2);
    REFUSE("promises more members");
    REFUSE_SET(entry_at[0], 0, 1, "entry of its directory is damaged");
    REFUSE_SET(entry_at[1] + 28, 6, 2, "entry of its directory is damaged");
    REFUSE_SET(entry_at[1] + 30, 1, 2, "entry of its directory is damaged");
    REFUSE_SET(entry_at[1] + 34, 1, 2, "entry of its directory is damaged");
    /* The comment is another end record, which ends the file as well. */
    make_two();
    set(end_at + 20, 22, 2);
    put_bytes(made + end_at, 22);
    set(n_made - 2, 0, 2);
    REFUSE("two directories");
}

/* Inserts the zip64 records before the end record. */
static void make_end_64(void) {
    unsigned char end[22];
    make_two();
    memcpy(end, made + end_at, 22);
    n_made = end_at;
    put(0x06064b50, 4);
    put(44, 8);
    put(45, 4);
    put(0, 8);
    put(2, 8);
    put(2, 8);
    put(end_at - entry_at[0], 8);
    put(entry_at[0], 8);
    put(0x07064b50, 4);
    put(0, 4);
    put(end_at, 8);
    put(1, 4);
    put_bytes(end, 22);
}

DVT_TEST(npz_zip64_ends) {
    size_t i;
    make_end_64();
    CHECK_INT(dvt_array_list_len(read_made()), 2);
    for (i = 8; i < 20; i++) /* counts, size and place only in the zip64 record */
        made[n_made - 22 + i] = 0xff;
    CHECK_INT(dvt_array_list_len(read_made()), 2);
    set(n_made - 22 + 16, 5, 4);
    REFUSE("end records disagree");
    for (i = 0; i < 4; i++) {
        static const struct {
            size_t at;
            int bytes;
        } field[4] = {{4, 8}, {16, 4}, {56 + 4, 4}, {56 + 8, 8}};

        make_end_64();
        set(end_at + field[i].at, 3, field[i].bytes);
        REFUSE("zip64 end record is missing or damaged");
    }
    make_end_64();
    set(end_at + 24, 3, 8);
    REFUSE("end records disagree");
    make_end_64();
    set(end_at, 0, 4);
    REFUSE("zip64 end record is missing");
}

DVT_TEST(npz_refuses_zip64_fields) {
    static const member wide[1] = {{"a.npy", npy_one, 0, 0, 1, 0}};
    size_t entry;
    make_one();
    make(wide, 1);
    entry = entry_at[0] + 46 + 5;
    CHECK_INT(dvt_array_list_len(read_made()), 1);
    set(entry + 7, 15, 2); /* the field is too short, or reaches too far */
    REFUSE("entry of its directory is damaged");
    set(entry + 7, 17, 2);
    REFUSE("entry of its directory is damaged");
    make(wide, 1);
    set(entry + 9, (uint64_t)1 << 63, 8);
    REFUSE("entry of its directory is damaged");
    make(wide, 1);
    set(entry + 9, (uint64_t)1 << 62, 8);
    REFUSE("which is impossible");
    make(wide, 1);
    set(content_at[0] - 16, 1, 8);
    REFUSE("disagrees with the directory");
    /* no zip64 field for sizes that are all ones */
    make(wide, 1);
    set(entry + 5, 2, 2);
    REFUSE("entry of its directory is damaged");
}

DVT_TEST(npz_refuses_descriptors) {
    member with[1];
    int i;
    make_one();
    with[0] = two[1];
    for (i = 0; i < 2; i++) {
        with[0].descriptor = i ? 108 : 4;
        make(with, 1);
        made[entry_at[0] - 1] ^= 1;
        REFUSE("after member \"b.npy\" disagree");
        make(with, 1);
        made[entry_at[0] - (i ? 20 : 12)] ^= 1;
        REFUSE("after member \"b.npy\" disagree");
    }
}

static void load(const void *bytes, size_t n) {
    dvt_read_npz(bytes, n, dvt_cpu());
}

DVT_TEST(npz_survives_damage) {
    static const char *const hex[3] = {stored_hex, deflated_hex, streamed_hex};
    unsigned char copy[sizeof made];
    int i;
    for (i = 0; i < 3; i++) {
        size_t n;
        unsigned char *bytes = golden_bytes(hex[i], &n);
        golden_damage(bytes, n, load);
        free(bytes);
    }
    make_end_64();
    memcpy(copy, made, n_made);
    golden_damage(copy, n_made, load);
    CHECK(read_made() != NULL);
}

static int load_both(void) {
    make_two();
    return read_made() != NULL;
}

DVT_TEST(npz_out_of_memory) {
    CHECK(golden_out_of_memory(load_both) >= 8);
}
