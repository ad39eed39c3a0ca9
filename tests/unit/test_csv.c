/* Tests of comma-separated values: every form of a row, options, dtypes, refusals with their
   messages, files. */
#include "dvt_golden.h"

static dvt_csv_options plain(void) {
    dvt_csv_options options;
    memset(&options, 0, sizeof options);
    return options;
}

static dvt_array *read_with(const char *text, const dvt_csv_options *options) {
    return dvt_read_csv(text, strlen(text), options, dvt_cpu());
}

static dvt_array *read_text(const char *text) {
    return read_with(text, NULL);
}

static dvt_array_list *read_columns(const char *text, int header_rows) {
    dvt_csv_options options = plain();
    options.header_rows = header_rows;
    return dvt_read_csv_columns(text, strlen(text), &options, dvt_cpu());
}

/* ---- rows ---- */
DVT_TEST(csv_rows) {
    dvt_array *x = read_text("1,2,3\n4,5,6\n");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 3)));
    CHECK(dvt_dtype_of(x) == DVT_F32);
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
    CHECK_VALUES(read_text("1,2\r\n3,4"), 0, 1, 2, 3, 4);
    CHECK_VALUES(read_text("1,2\r3,4\r"), 0, 1, 2, 3, 4);
    CHECK_VALUES(read_text("\n\r\n1,2\n\n\n3,4\n\n"), 0, 1, 2, 3, 4);
    CHECK_VALUES(read_text("\xef\xbb\xbf"
                           "7,8\n"),
                 0, 7, 8);
    CHECK_VALUES(read_text("  1 ,\t2\n"), 0, 1, 2);
    CHECK_VALUES(read_text("\"1\",\" 2 \"\n"), 0, 1, 2);
    x = read_text("5");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(1, 1)));
    CHECK_VALUES(x, 0, 5);
    CHECK_VALUES(read_text("1,\n,2\n"), 0, 1, NAN, NAN, 2);
    CHECK_VALUES(read_text("1,\"\"\n"), 0, 1, NAN);
    CHECK_VALUES(read_text("nan,-INF\nInfinity,+1e2\n"), 0, NAN, -INFINITY, INFINITY, 100);
}

DVT_TEST(csv_header) {
    dvt_csv_options options = plain();
    options.header_rows = 1;
    CHECK_VALUES(read_with("a,b\n1,2\n", &options), 0, 1, 2);
    CHECK_VALUES(read_with("one title\n1,2\n", &options), 0, 1, 2);
    options.header_rows = 2;
    CHECK_VALUES(read_with("a,b\n\n8,9\n1,2\n", &options), 0, 1, 2);
    options.header_rows = -1;
    CHECK_VALUES(read_with("a,b\n1,2\n", &options), 0, 1, 2);
    CHECK_VALUES(read_with("\"2019\",\"2020\"\n1,2\n", &options), 0, 2019, 2020, 1, 2);
    CHECK_VALUES(read_with(",b\n1,2\n", &options), 0, 1, 2);
    CHECK_VALUES(read_with("3,4\n1,2\n", &options), 0, 3, 4, 1, 2);
    CHECK_VALUES(read_with(",\n1,2\n", &options), 0, NAN, NAN, 1, 2);
    options.skip_text = true;
    CHECK_VALUES(read_with("3,x\n1,y\n", &options), 0, 3, 1); /* a number: no header */
}

DVT_TEST(csv_options) {
    dvt_csv_options options = plain();
    options.delimiter = ';';
    options.decimal_point = ',';
    CHECK_VALUES(read_with("1,5;-2,25\n", &options), 0, 1.5, -2.25);
    CHECK_REFUSED(read_with("1.5;2\n", &options), DVT_ERR_FORMAT, "\"1.5\" is not a number");
    options = plain();
    options.delimiter = '\t';
    CHECK_VALUES(read_with("1\t2\n", &options), 0, 1, 2);
    options = plain();
    options.comment = '#';
    CHECK_VALUES(read_with("# a, \"comment\r\n1,2\n#\n#3,4", &options), 0, 1, 2);
    options = plain();
    options.missing = "NA";
    CHECK_VALUES(read_with("NA, NA ,\"NA\",,1\n", &options), 0, NAN, NAN, NAN, NAN, 1);
    CHECK_REFUSED(read_with("N,1\n", &options), DVT_ERR_FORMAT, "column 1: \"N\" is not a number");
}

DVT_TEST(csv_skips_text) {
    dvt_csv_options options = plain();
    dvt_array *x;
    options.skip_text = true;
    x = read_with("5.1,3.5,setosa\n4.9,3,virginica\n", &options);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 2)));
    CHECK_VALUES(x, 0, 5.1f, 3.5, 4.9f, 3);
    CHECK_VALUES(read_with("\"1\",2\n3,\"4\"\n", &options), 0, 1, 2, 3, 4);
    /* The first cell that is not missing decides. */
    CHECK_VALUES(read_with("1,,2\n3,text,4\n5,6,7\n", &options), 0, 1, 2, 3, 4, 5, 7);
    CHECK_VALUES(read_with("x,1,,2\nx,3,4,5\n", &options), 0, 1, NAN, 2, 3, 4, 5);
    x = read_with("1,,\n2,,\n", &options);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 3)));
    /* Delimiters, line ends and doubled quotes in quoted cells. */
    CHECK_VALUES(read_with("1,\"a,\n\"\"b\"\"\r\n\",2\n3,c,4\n", &options), 0, 1, 2, 3, 4);
    CHECK_REFUSED(read_with("1,a\n?,b\n", &options), DVT_ERR_FORMAT, "row 2, column 1: \"?\"");
    CHECK_REFUSED(read_with("a,b\nc,d\n", &options), DVT_ERR_FORMAT, "no column of numbers");
}

DVT_TEST(csv_dtypes) {
    dvt_csv_options options = plain();
    dvt_array *x;
    options.dtype = DVT_F64;
    x = read_with("0.1\n", &options);
    CHECK(dvt_dtype_of(x) == DVT_F64 && dvt_item(x) == 0.1);
    options.dtype = DVT_I64;
    CHECK_INT(dvt_item_int(read_with("-9223372036854775808", &options)), INT64_MIN);
    CHECK_INT(dvt_item_int(read_with("+9223372036854775807", &options)), INT64_MAX);
    CHECK_INT(dvt_item_int(read_with("12.50e1", &options)), 125);
    CHECK_INT(dvt_item_int(read_with("-0.0", &options)), 0);
    CHECK_REFUSED(read_with("9223372036854775808", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("-9223372036854775809", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("1e19", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("1e99999999999999999999", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("1.5", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("nan", &options), DVT_ERR_FORMAT, "whole number");
    CHECK_REFUSED(read_with("1,\n", &options), DVT_ERR_FORMAT, "int64 has no NaN");
    options.dtype = DVT_I32;
    CHECK_VALUES(read_with("-2147483648,2147483647\n", &options), 0, -2147483648.0, 2147483647.0);
    CHECK_REFUSED(read_with("2147483648", &options), DVT_ERR_FORMAT, "2147483647");
    options.dtype = DVT_U8;
    CHECK_VALUES(read_with("0,255\n", &options), 0, 0, 255);
    CHECK_REFUSED(read_with("256", &options), DVT_ERR_FORMAT, "0 to 255");
    CHECK_REFUSED(read_with("-1", &options), DVT_ERR_FORMAT, "0 to 255");
    options.dtype = DVT_I8;
    CHECK_VALUES(read_with("-128,127\n", &options), 0, -128, 127);
    options.dtype = DVT_BOOL;
    x = read_with("0,1\n", &options);
    CHECK(dvt_dtype_of(x) == DVT_BOOL);
    CHECK_VALUES(x, 0, 0, 1);
    CHECK_REFUSED(read_with("2", &options), DVT_ERR_FORMAT, "0 to 1");
    options.dtype = DVT_F16;
    CHECK_VALUES(read_with("65519.99,65520,-1e-9,5.9604644775390625e-8\n", &options), 0, 65504,
                 INFINITY, 0, 5.9604644775390625e-8);
    options.dtype = DVT_BF16;
    CHECK_VALUES(read_with("1.00390625,1.003906251,3.5e38\n", &options), 0, 1, 1.0078125, INFINITY);
}

/* ---- columns ---- */
DVT_TEST(csv_columns) {
    dvt_array_list *list = read_columns("x, name ,\"y, \"\"2\"\"\",z\n1,anna,2,\n3,bob,4,5\n", -1);
    CHECK_INT(dvt_array_list_len(list), 3);
    CHECK_STR(dvt_array_list_name(list, 0), "x");
    CHECK_STR(dvt_array_list_name(list, 1), "y, \"2\"");
    CHECK_VALUES(dvt_array_list_find(list, "x"), 0, 1, 3);
    CHECK_VALUES(dvt_array_list_find(list, "y, \"2\""), 0, 2, 4);
    CHECK_VALUES(dvt_array_list_find(list, "z"), 0, NAN, 5);
    CHECK(dvt_ndim(dvt_array_list_at(list, 0)) == 1);
    list = read_columns("1,a\n2,b\n", 0);
    CHECK_INT(dvt_array_list_len(list), 1);
    CHECK_STR(dvt_array_list_name(list, 0), "");
    CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1, 2);
    list = read_columns("A title\n a , b\n1,2\n", 2);
    CHECK_VALUES(dvt_array_list_find(list, "a"), 0, 1);
    CHECK_VALUES(dvt_array_list_find(list, "b"), 0, 2);
    CHECK_REFUSED(read_columns("a,b\n1,2,3\n", 1), DVT_ERR_FORMAT,
                  "row 2 has 3 cells, and row 1 has 2");
    CHECK_REFUSED(dvt_read_csv_columns("a\0b\n1\n", 6, NULL, dvt_cpu()), DVT_ERR_FORMAT,
                  "no column");
    {
        dvt_csv_options options = plain();
        options.header_rows = 1;
        CHECK_REFUSED(dvt_read_csv_columns("a\0b\n1\n", 6, &options, dvt_cpu()), DVT_ERR_FORMAT,
                      "column 1: the name is longer");
    }
}

/* ---- refusals ---- */
#define REFUSE(text, words) CHECK_REFUSED(read_text(text), DVT_ERR_FORMAT, words)

DVT_TEST(csv_refuses) {
    REFUSE("", "no row of numbers; expected at least one");
    REFUSE("\n\r\n", "no row of numbers");
    REFUSE("\xff\xfe\x31\x31", "UTF-16");
    REFUSE("\xfe\xff\x31\x31", "UTF-16");
    REFUSE("1,2\n3\n", "row 2 has 1 cells, and row 1 has 2");
    REFUSE("1,2\n\n\n3,4,5\n", "row 4 has 3 cells, and row 1 has 2");
    REFUSE("1,2\n3,4x\n", "row 2, column 2: \"4x\" is not a number; skip_text");
    REFUSE("a,b\n1,2\n",
           "row 1, column 1: \"a\" is not a number; if the row has names, set header");
    REFUSE("1\n\x01\x7f\n", "\"??\" is not a number");
    REFUSE("1\n0123456789012345678901234567890123456789x\n",
           "\"0123456789012345678901234567890123456789...\"");
    REFUSE("1,\"2\n", "row 1, column 2: the quote that begins the cell has no end");
    REFUSE("1\n2\n\"3\"4\n", "row 3, column 1: text follows the quote");
    REFUSE("\"", "has no end");
    REFUSE("\"1\"\"", "has no end");
    REFUSE("1\n-\n", "\"-\" is not a number");
    REFUSE("1\n.\n", "is not a number");
    REFUSE("1\ne5\n", "is not a number");
    REFUSE("1\n1e\n", "is not a number");
    REFUSE("1\n1e+\n", "is not a number");
    REFUSE("1\n1e5.\n", "is not a number");
    REFUSE("1\n1.2.3\n", "is not a number");
    REFUSE("1\n0x10\n", "is not a number");
    REFUSE("1\n--1\n", "is not a number");
    REFUSE("1\n1 2\n", "is not a number");
    REFUSE("1\nnano\n", "is not a number");
    REFUSE("1\nin\n", "is not a number");
    CHECK_ERROR(dvt_read_csv(NULL, 1, NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_read_csv_columns(NULL, 1, NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(csv_refuses_options) {
    static const char bad[] = "\"\n\r1a.+-#";
    dvt_csv_options options = plain();
    const char *at;
    options.comment = '#';
    for (at = bad; *at; at++) {
        options.delimiter = *at;
        CHECK_REFUSED(read_with("1", &options), DVT_ERR_RANGE, "delimiter");
    }
    options = plain();
    options.decimal_point = ',';
    CHECK_REFUSED(read_with("1", &options), DVT_ERR_RANGE, "decimal_point");
    options.decimal_point = ':';
    CHECK_REFUSED(read_with("1", &options), DVT_ERR_RANGE, "decimal_point");
    options = plain();
    options.header_rows = -2;
    CHECK_REFUSED(read_with("1", &options), DVT_ERR_RANGE, "header_rows is -2");
    options = plain();
    options.dtype = (dvt_dtype)99;
    CHECK_REFUSED(read_with("1", &options), DVT_ERR_DTYPE, "99");
}

/* Cells of any length: numbers up to 4096 bytes, text beyond. */
DVT_TEST(csv_long_cells) {
    static char text[300000];
    dvt_csv_options options = plain();
    size_t n;
    memset(text, '0', sizeof text);
    memcpy(text + 4090, "7\n8\n", 5);
    CHECK_VALUES(read_text(text), 0, 7, 8);
    memset(text, '0', sizeof text);
    memcpy(text + 5000, "7\n8\n", 5);
    REFUSE(text, "is not a number");
    options.skip_text = true;
    n = sizeof text - 10;
    memset(text, 'x', sizeof text);
    memcpy(text, "1,\"", 3);
    memset(text + 1000, '\n', 5);
    memcpy(text + n, "\",2\n", 5);
    CHECK_VALUES(read_with(text, &options), 0, 1, 2);
    for (n = 0; n + 1 < sizeof text; n++)
        text[n] = n % 2 ? ',' : '1';
    text[n] = 0;
    CHECK_INT(dvt_dim(read_text(text), 1), 150000);
    CHECK_REFUSED(read_columns(text, 0), DVT_ERR_FORMAT, "limit of 65536 arrays");
}

static void load(const void *bytes, size_t n) {
    dvt_csv_options options = plain();
    options.header_rows = -1;
    dvt_read_csv(bytes, n, NULL, dvt_cpu());
    dvt_read_csv_columns(bytes, n, &options, dvt_cpu());
}

static const char small[] = "a,b,\"c\"\"\"\r\n1.5,x,\n-2e3,\"y\n\",7\n";

DVT_TEST(csv_survives_damage) {
    golden_damage((const unsigned char *)small, sizeof small - 1, load);
    CHECK_INT(dvt_array_list_len(read_columns(small, 1)), 2);
}

static int load_columns(void) {
    return read_columns(small, 1) != NULL;
}

static int load_matrix(void) {
    return read_text("1,2\n3,4\n5,6\n7,8\n9,10\n") != NULL;
}

DVT_TEST(csv_out_of_memory) {
    CHECK(golden_out_of_memory(load_columns) >= 8);
    CHECK(golden_out_of_memory(load_matrix) >= 4);
}

/* ---- files ---- */
#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(csv_without_files) {
    CHECK_ERROR(dvt_load_csv("x.csv", NULL, dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_csv_columns("x.csv", NULL, dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_save_csv("x.csv", dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu()), NULL),
                DVT_ERR_NOT_BUILT);
}
#else
static char path[512];

static void check_file(const char *expected) {
    size_t n;
    unsigned char *bytes = golden_file(path, &n);
    if (CHECK(bytes && n == strlen(expected)))
        CHECK(memcmp(bytes, expected, n) == 0);
    free(bytes);
}

DVT_TEST(csv_saves) {
    static const char *const names[3] = {"x", "a \"b\",c", ""};
    dvt_array *x =
        DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 1, 0.1f, 1e20f, -0.0f, NAN, -INFINITY);
    dvt_csv_options options = plain();
    dvt_array_list *list;
    snprintf(path, sizeof path, "%s", golden_temporary("save.csv"));
    CHECK(dvt_save_csv(path, x, NULL) == DVT_OK);
    check_file("1.0,0.1,1e+20\n-0.0,nan,-inf\n");
    CHECK_VALUES(dvt_load_csv(path, NULL, dvt_cpu()), 0, 1, 0.1f, 1e20f, -0.0, NAN, -INFINITY);
    CHECK(dvt_save_csv(path, x, names) == DVT_OK);
    check_file("x,\"a \"\"b\"\",c\",\"\"\n1.0,0.1,1e+20\n-0.0,nan,-inf\n");
    options.header_rows = 1;
    list = dvt_load_csv_columns(path, &options, dvt_cpu());
    CHECK_STR(dvt_array_list_name(list, 1), "a \"b\",c");
    CHECK_VALUES(dvt_array_list_find(list, "x"), 0, 1, -0.0);
    CHECK(dvt_save_csv(path, dvt_t(x), NULL) == DVT_OK);
    check_file("1.0,-0.0\n0.1,nan\n1e+20,-inf\n");
    CHECK(dvt_save_csv(path, DVT_ARRAY(int64_t, DVT_SHAPE(2), dvt_cpu(), INT64_MIN, 7), NULL) ==
          DVT_OK);
    check_file("-9223372036854775808\n7\n");
    CHECK(dvt_save_csv(path, DVT_ARRAY(bool, DVT_SHAPE(1, 2), dvt_cpu(), true, false), NULL) ==
          DVT_OK);
    check_file("1,0\n");
    CHECK_ERROR(dvt_save_csv(path, dvt_scalar(1, DVT_F32, dvt_cpu()), NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_csv(path, dvt_zeros(DVT_SHAPE(1, 1, 1), DVT_F32, dvt_cpu()), NULL),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_csv(path, dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu()), NULL),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_csv(path, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    {
        static const char *const none[3] = {"a", NULL, "c"};
        CHECK_ERROR(dvt_save_csv(path, x, none), DVT_ERR_NULL_ARGUMENT);
    }
    check_file("1,0\n");
    CHECK(remove(path) == 0);
    CHECK_ERROR(dvt_save_csv("/no/such/directory/x.csv", x, NULL), DVT_ERR_IO);
    CHECK_ERROR(dvt_save_csv(NULL, x, NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(csv_files) {
    /* gzip.GzipFile(fileobj=f, mode='wb', mtime=0).write(b'a,b\n1,2\n3,4.5\n') */
    static const char packed[] = "1f8b08000000000002ff4bd449e232d431e232d631d133e50200c844a6c60e"
                                 "000000";
    dvt_csv_options options = plain();
    size_t n;
    unsigned char *bytes = golden_bytes(packed, &n);
    options.header_rows = 1;
    snprintf(path, sizeof path, "%s", golden_temporary("load.csv"));
    CHECK(golden_write(path, bytes, n));
    CHECK_VALUES(dvt_load_csv(path, &options, dvt_cpu()), 0, 1, 2, 3, 4.5);
    CHECK_VALUES(dvt_read_csv(bytes, n, &options, dvt_cpu()), 0, 1, 2, 3, 4.5);
    bytes[n - 6] ^= 1; /* the checksum */
    CHECK_REFUSED(dvt_read_csv(bytes, n, &options, dvt_cpu()), DVT_ERR_FORMAT, "checksum");
    CHECK_REFUSED(dvt_read_csv_columns(bytes, 20, &options, dvt_cpu()), DVT_ERR_FORMAT,
                  "ends in the middle");
    free(bytes);
    CHECK(golden_write(path, "1,2\n3\n", 6));
    CHECK_REFUSED(dvt_load_csv(path, NULL, dvt_cpu()), DVT_ERR_FORMAT, path);
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *x;
        dvt_array_list *list;
        CHECK(golden_write(path, "1,2\n3,4\n", 8));
        x = dvt_load_csv(path, NULL, dvt_gpu(0));
        CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
        CHECK_VALUES(x, 0, 1, 2, 3, 4);
        list = dvt_load_csv_columns(path, NULL, dvt_gpu(0));
        CHECK_VALUES(dvt_array_list_at(list, 1), 0, 2, 4);
        CHECK(dvt_save_csv(path, dvt_mul_scalar(x, 2), NULL) == DVT_OK);
        check_file("2.0,4.0\n6.0,8.0\n");
        CHECK_ERROR(dvt_load_csv(path, NULL, dvt_gpu(5)), DVT_ERR_NO_DEVICE);
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
    CHECK(remove(path) == 0);
    CHECK_REFUSED(dvt_load_csv(path, NULL, dvt_cpu()), DVT_ERR_IO, path);
    CHECK_ERROR(dvt_load_csv(NULL, NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_load_csv_columns(NULL, NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

/* Rows that cross the buffer of a file, at every position. */
DVT_TEST(csv_file_longer_than_the_buffer) {
    static char text[70000];
    int shift;
    snprintf(path, sizeof path, "%s", golden_temporary("long.csv"));
    for (shift = 0; shift < 12; shift++) {
        size_t n = 0, rows = 0;
        n += (size_t)snprintf(text, sizeof text, "%.*s9,\"9\"\r\n", shift, "000000000000");
        for (rows = 1; n + 20 < sizeof text; rows++)
            n += (size_t)snprintf(text + n, sizeof text - n, "9,\"9\"\r\n");
        CHECK(golden_write(path, text, n));
        DVT_SCOPE {
            dvt_array *x = dvt_load_csv(path, NULL, dvt_cpu());
            CHECK_INT(dvt_dim(x, 0), rows);
            CHECK(dvt_item(dvt_min(x, DVT_ALL)) == 9 && dvt_item(dvt_max(x, DVT_ALL)) == 9);
        }
    }
    CHECK(remove(path) == 0);
}
#endif
