/* Tests of MXNet's .params files. All four versions are written by hand from the description of the
   format. Saved files are compared byte by byte. Also messages of refused files, and lists of named
   arrays. */
#include "dvt_golden.h"

#define V1 0xf993fac8u
#define V2 0xf993fac9u
#define V3 0xf993facau

static unsigned char made[8192];
static size_t n_made;

static void put(uint64_t value, int bytes) {
    for (; bytes > 0; bytes--, value >>= 8)
        made[n_made++] = (unsigned char)value;
}

static void put_bytes(const void *bytes, size_t n) {
    memcpy(made + n_made, bytes, n);
    n_made += n;
}

static void begin(uint64_t arrays) {
    n_made = 0;
    put(0x112, 8);
    put(0, 8);
    put(arrays, 8);
}

static void put_name(const char *name) {
    put(strlen(name), 8);
    put_bytes(name, strlen(name));
}

/* Writes the head of one array of `ndim` extents; put appends the elements. V0 has no version
   number and 32-bit extents. */
static void put_head(uint32_t version, int ndim, const int64_t *extent, int device, int flag) {
    int i;
    if (version)
        put(version, 4);
    if (version == V2 || version == V3)
        put(0, 4);
    put((uint64_t)ndim, 4);
    for (i = 0; i < ndim; i++)
        put((uint64_t)extent[i], version ? 8 : 4);
    put((uint64_t)device, 4);
    put(3, 4);
    put((uint64_t)flag, 4);
}

static dvt_array_list *read_made(void) {
    return dvt_read_params(made, n_made, dvt_cpu());
}

static const int64_t one_two[2] = {1, 2}, three[1] = {3}, none[2] = {2, 0};

static void make_good(void) {
    begin(4);
    put_head(0, 2, one_two, 1, 3);
    put_bytes("\x01\xff", 2);
    put_head(V1, 1, three, 2, 4);
    put(1, 4);
    put((uint64_t)-2, 4);
    put(3, 4);
    put_head(V2, 1, three, 5, 5);
    put_bytes("\x7f\x80\x00", 3);
    put_head(V3, 0, NULL, 77, 6);
    put((uint64_t)-5, 8);
    put(4, 8);
    put_name("0.weight");
    put_name("");
    put_name("arg:conv0_weight");
    put_name("aux:x");
}

DVT_TEST(params_reads_every_version) {
    dvt_array_list *list;
    make_good();
    list = read_made();
    CHECK_INT(dvt_array_list_len(list), 4);
    CHECK_INT(dvt_dtype_of(dvt_array_list_at(list, 0)), DVT_U8);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_at(list, 0)), DVT_SHAPE(1, 2)));
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1, 255);
    CHECK_VALUES(dvt_array_list_at(list, 1), 0, 1, -2, 3);
    CHECK_VALUES(dvt_array_list_at(list, 2), 0, 127, -128, 0);
    CHECK_INT(dvt_ndim(dvt_array_list_at(list, 3)), 0);
    CHECK_INT(dvt_item_int(dvt_array_list_at(list, 3)), -5);
    CHECK_STR(dvt_array_list_name(list, 0), "0.weight");
    CHECK_STR(dvt_array_list_name(list, 1), "");
    CHECK(dvt_array_list_find(list, "arg:conv0_weight") == dvt_array_list_at(list, 2));
    CHECK_REFUSED(dvt_array_list_find(list, "1.weight"), DVT_ERR_NAME,
                  "\"0.weight\", \"\", \"arg:conv0_weight\"");
}

DVT_TEST(params_dtypes) {
    static const struct {
        int flag;
        const char *bytes;
        size_t n;
        dvt_dtype dtype;
        double value;
    } row[] = {{0, "\x00\x00\x20\xc0", 4, DVT_F32, -2.5},
               {1, "\x00\x00\x00\x00\x00\x00\xf8\x3f", 8, DVT_F64, 1.5},
               {2, "\x00\x3c", 2, DVT_F16, 1},
               {3, "\xff", 1, DVT_U8, 255},
               {4, "\xff\xff\xff\x7f", 4, DVT_I32, 2147483647},
               {5, "\xff", 1, DVT_I8, -1},
               {6, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, DVT_I64, -2},
               {7, "\x02", 1, DVT_BOOL, 1},
               {8, "\x00\x80", 2, DVT_I32, -32768},
               {9, "\xff\xff", 2, DVT_I32, 65535},
               {10, "\xff\xff\xff\xff", 4, DVT_I64, 4294967295.0},
               {11, "\x07\x00\x00\x00\x00\x00\x00\x00", 8, DVT_I64, 7},
               {12, "\x80\x3f", 2, DVT_BF16, 1}};

    static const int64_t one[1] = {1};
    int i;
    for (i = 0; i < 13; i++)
        DVT_SCOPE {
            dvt_array *x;
            begin(1);
            put_head(V2, 1, one, 1, row[i].flag);
            put_bytes(row[i].bytes, row[i].n);
            put(0, 8);
            x = dvt_array_list_at(read_made(), 0);
            CHECK_INT(dvt_dtype_of(x), row[i].dtype);
            CHECK_CLOSE(dvt_item(x), row[i].value, 0);
        }
    begin(1);
    put_head(V2, 1, one, 1, 11);
    put((uint64_t)1 << 63, 8);
    put(0, 8);
    CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, "uint64");
}

#define REFUSE(words) CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, words)

static void one_array(uint32_t version, int ndim, const int64_t *extent, int flag) {
    begin(1);
    put_head(version, ndim, extent, 1, flag);
    put(0, 8);
    put(0, 8);
}

DVT_TEST(params_refuses) {
    static const int64_t negative[2] = {2, -1}, huge[2] = {INT64_MAX, 4}, large[1] = {1 << 20};
    static const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    begin(0);
    made[0] = 0x13;
    REFUSE("not an MXNet parameter file");
    n_made = 0;
    REFUSE("not an MXNet parameter file");
    put_bytes("PK\3\4..........................weights.npy", 41);
    REFUSE(".npz");
    n_made = 0;
    put_bytes("PK\3\4..........................archive/data.pkl", 46);
    REFUSE("PyTorch");
    n_made = 0;
    put_bytes("\x93NUMPY\1\0\0\0", 10);
    REFUSE("dvt_read_npy");
    begin(0);
    n_made = 23;
    REFUSE("within its header");
    begin(1);
    REFUSE("more arrays than the file can hold");
    begin((uint64_t)1 << 63);
    put(0, 8);
    put(0, 8);
    REFUSE("more arrays than the file can hold");
    one_array(V2, 2, negative, 0);
    REFUSE("negative extent");
    one_array(V2, 2, huge, 1);
    REFUSE("more than any file holds");
    one_array(V2, 1, large, 0);
    REFUSE("beyond the end");
    one_array(V2, 9, nine, 0);
    REFUSE("more than 8 axes");
    one_array(V2, 0, NULL, 0);
    memset(made + 32, 0xff, 4); /* its number of axes: -1 */
    REFUSE("more than 8 axes");
    made[35] = 0x7f; /* 2^31 - 1 */
    REFUSE("more than 8 axes");
}

DVT_TEST(params_refuses_arrays) {
    static const int64_t one[1] = {1};
    begin(1);
    put(V2, 4);
    put(0, 4);
    put(0, 4);
    put(0, 8);
    REFUSE("without shape");
    begin(1);
    put(V3, 4);
    put(0, 4);
    put((uint64_t)-1, 4);
    put(0, 8);
    REFUSE("without shape");
    begin(1);
    put(0, 4);
    put(0, 8);
    REFUSE("without shape");
    begin(1);
    put(V2, 4);
    put(1, 4);
    put(0, 8);
    REFUSE("sparse");
    one_array(9, 0, NULL, 0);
    REFUSE("unknown version number");
    one_array(V2, 1, one, 13);
    REFUSE("unknown dtype number");
    one_array(V2, 1, one, -1);
    REFUSE("unknown dtype number");
}

DVT_TEST(params_refuses_names) {
    make_good();
    n_made -= 5;
    put_bytes("au\0:x", 5);
    REFUSE("zero byte");
    make_good();
    put(0, 1);
    REFUSE("follows its end");
    make_good();
    n_made -= 1;
    REFUSE("name that goes beyond");
    make_good();
    n_made -= 5 + 8;
    put(UINT64_MAX, 8);
    put_bytes("aux:x", 5);
    REFUSE("name that goes beyond");
    begin(1);
    put_head(V2, 2, none, 1, 0);
    put(2, 8);
    put_name("a");
    put_name("b");
    REFUSE("as many names as arrays");
    begin(2);
    put_head(V2, 2, none, 1, 0);
    put_head(V2, 2, none, 1, 0);
    put(2, 8);
    put_name("same");
    put_name("same");
    REFUSE("two arrays are named \"same\"");
    begin(1);
    put_head(V2, 2, none, 1, 0);
    put(0, 4);
    REFUSE("before the names");
    CHECK_ERROR(dvt_read_params(NULL, 8, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

static void load(const void *bytes, size_t n) {
    dvt_read_params(bytes, n, dvt_cpu());
}

DVT_TEST(params_survives_damage) {
    unsigned char valid[512];
    make_good();
    memcpy(valid, made, n_made);
    golden_damage(valid, n_made, load);
    CHECK(read_made() != NULL);
}

static int load_good(void) {
    make_good();
    return read_made() != NULL;
}

DVT_TEST(params_out_of_memory) {
    CHECK(golden_out_of_memory(load_good) >= 15);
}

DVT_TEST(array_list_errors) {
    dvt_array_list *list;
    begin(0);
    put(0, 8);
    list = read_made();
    CHECK(list != NULL);
    CHECK_INT(dvt_array_list_len(list), 0);
    CHECK_INT(dvt_array_list_len(NULL), 0);
    CHECK_ERROR(dvt_array_list_at(list, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_array_list_at(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_array_list_name(list, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_array_list_find(list, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_REFUSED(dvt_array_list_find(list, "x"), DVT_ERR_NAME, "no names");
    begin(1);
    put_head(V2, 2, none, 1, 0);
    put(0, 8);
    list = read_made();
    CHECK_STR(dvt_array_list_name(list, 0), "");
    CHECK_ERROR(dvt_array_list_name(list, 1), DVT_ERR_RANGE);
}

/* A retained array outlives its list. */
DVT_TEST(array_list_owns) {
    dvt_array *x = NULL;
    make_good();
    DVT_SCOPE {
        x = (dvt_array *)dvt_retain(dvt_array_list_at(read_made(), 1));
    }
    CHECK_VALUES(x, 0, 1, -2, 3);
    dvt_release(x);
}

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(params_without_files) {
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_save_params("a.params", &x, NULL, 1), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_params("a.params", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
static void check_saved(const char *path) {
    size_t n;
    unsigned char *bytes = golden_file(path, &n);
    CHECK_INT(n, n_made);
    CHECK(bytes && n == n_made && memcmp(bytes, made, n) == 0);
    free(bytes);
}

DVT_TEST(params_saves) {
    const char *names[3] = {"0.weight", "0.bias", "s"}, *path = golden_temporary("a.params");
    static const int64_t two_two[2] = {2, 2};
    dvt_array *x[3];
    int i;
    x[0] = dvt_t(DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3, 4));
    x[1] = dvt_zeros(DVT_SHAPE(2, 0), DVT_BF16, dvt_cpu());
    x[2] = dvt_scalar(1, DVT_BOOL, dvt_cpu_id(4));
    CHECK(dvt_save_params(path, x, names, 3) == DVT_OK);
    begin(3);
    for (i = 0; i < 3; i++) {
        put_head(i ? V3 : V2, i == 2 ? 0 : 2, i ? none : two_two, 1, i == 0 ? 0 : i == 1 ? 12 : 7);
        made[n_made - 8] = 0; /* device 0 */
        if (i == 0)
            put_bytes("\0\0\x80\x3f\0\0\x40\x40\0\0\0\x40\0\0\x80\x40", 16);
        if (i == 2)
            put(1, 1);
    }
    put(3, 8);
    for (i = 0; i < 3; i++)
        put_name(names[i]);
    check_saved(path);
    CHECK_VALUES(dvt_array_list_find(dvt_load_params(path, dvt_cpu()), "0.weight"), 0, 1, 3, 2, 4);
    CHECK(dvt_save_params(path, x, NULL, 0) == DVT_OK);
    begin(0);
    put(0, 8);
    check_saved(path);
    CHECK(dvt_save_params(path, NULL, NULL, 0) == DVT_OK);
    CHECK(remove(path) == 0);
}

DVT_TEST(params_round_trip) {
    static const dvt_dtype dtypes[9] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                        DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};
    const char *path = golden_temporary("r.params");
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *x[9];
        dvt_array_list *list;
        int i;
        for (i = 0; i < 9; i++)
            x[i] =
                dvt_astype(dvt_arange(0, 2, 1, DVT_I32, i % 2 ? dvt_gpu(1) : dvt_cpu()), dtypes[i]);
        CHECK(dvt_save_params(path, x, NULL, 9) == DVT_OK);
        list = dvt_load_params(path, dvt_gpu(0));
        CHECK_INT(dvt_array_list_len(list), 9);
        for (i = 0; i < 9; i++) {
            dvt_array *y = dvt_array_list_at(list, i);
            CHECK_INT(dvt_dtype_of(y), dtypes[i]);
            CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
            CHECK_VALUES(y, 0, 0, 1);
        }
    }
    CHECK(remove(path) == 0);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(params_save_errors) {
    const char *twice[2] = {"a", "a"}, *missing[2] = {"a", NULL};
    const char *path = golden_temporary("e.params");
    dvt_array *x[2];
    FILE *file;
    x[0] = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    x[1] = NULL;
    CHECK_ERROR(dvt_save_params(path, x, NULL, 2), DVT_ERR_NULL_ARGUMENT);
    x[1] = x[0];
    CHECK_ERROR(dvt_save_params(path, x, twice, 2), DVT_ERR_NAME);
    CHECK_ERROR(dvt_save_params(path, x, missing, 2), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_params(path, x, NULL, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_save_params(path, NULL, NULL, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_params(NULL, x, NULL, 1), DVT_ERR_NULL_ARGUMENT);
    file = fopen(path, "rb");
    CHECK(file == NULL); /* no file was created */
    if (file)
        fclose(file);
}

static char out_path[600];

static int save_two(void) {
    const char *names[2] = {"b", "a"};
    dvt_array *x[2];
    x[0] = dvt_t(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()));
    x[1] = dvt_ones(DVT_SHAPE(2), DVT_I32, dvt_cpu());
    return x[0] && x[1] && dvt_save_params(out_path, x, names, 2) == DVT_OK;
}

DVT_TEST(params_saving_out_of_memory) {
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.params"));
    CHECK(golden_out_of_memory(save_two) >= 8);
    CHECK_INT(dvt_array_list_len(dvt_load_params(out_path, dvt_cpu())), 2);
    CHECK(remove(out_path) == 0);
}
#endif
