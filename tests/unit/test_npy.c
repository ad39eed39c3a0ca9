/* Tests of .npy files: the bytes equal NumPy's (tests/golden/make_files.py). Also every storage
   order and the messages of refused files. */
#include "dvt_golden.h"
#if !defined(_WIN32)
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/* Returns element i by the rule in tests/golden/make_files.py. `is_unsigned` selects unsigned
   integers. */
static double value(dvt_dtype dtype, int64_t i, bool is_unsigned) {
    if (dtype == DVT_BOOL)
        return i % 3 == 1;
    if (dvt_dtype_is_float(dtype))
        return (double)(i * 7919 % 2003 - 1001) * 0.37;
    return (double)(i * 37 % 251 - (is_unsigned ? 0 : 125));
}

static void check_values(dvt_array *x, bool is_unsigned) {
    double *values = dvt_test_values(x);
    int64_t i;
    dvt_dtype dtype = dvt_dtype_of(x);
    double tolerance = dtype == DVT_F16 ? 1e-3 : dtype == DVT_F32 ? 1e-7 : 0;
    for (i = 0; i < dvt_size(x); i++)
        CHECK_CLOSE(values[i], value(dtype, i, is_unsigned), tolerance);
    free(values);
}

static dvt_array *read_golden(const char *dtype, const char *shape, const unsigned char *bytes,
                              size_t n) {
    dvt_dtype expected;
    dvt_array *x = dvt_read_npy(bytes, n, dvt_cpu());
    CHECK(dvt_dtype_parse(dtype, &expected) == DVT_OK);
    if (!dvt_test_check(x != NULL, __FILE__, __LINE__, "%s %s: %s", dtype, shape, dvt_error()))
        return NULL;
    CHECK_INT(dvt_dtype_of(x), expected);
    CHECK(dvt_shape_equal(dvt_shape_of(x), golden_shape(shape)));
    CHECK(dvt_is_contiguous(x));
    return x;
}

static void each_saved(const char *dtype, const char *shape, const char *hex) {
    size_t n, n_again;
    unsigned char *bytes = golden_bytes(hex, &n), *again;
    const char *path = golden_temporary("a.npy");
    DVT_SCOPE {
        dvt_array *x = read_golden(dtype, shape, bytes, n);
        if (x) {
            check_values(x, dvt_dtype_of(x) == DVT_U8);
#if defined(DEVTENSOR_NO_FILES)
            CHECK_ERROR(dvt_save_npy(path, x), DVT_ERR_NOT_BUILT);
            (void)again;
            (void)n_again;
#else
            CHECK(dvt_save_npy(path, x) == DVT_OK);
            again = golden_file(path, &n_again);
            dvt_test_check(again && n_again == n && memcmp(again, bytes, n) == 0, __FILE__,
                           __LINE__, "%s %s is not saved as NumPy saves it", dtype, shape);
            free(again);
            CHECK(remove(path) == 0);
#endif
        }
    }
    free(bytes);
}

DVT_TEST(npy_saves_the_bytes_of_numpy) {
    CHECK(golden_lines(__FILE__, "npy_save", each_saved) >= 65);
}

/* Reads one golden file. The header has the kind of its elements after the byte order: 'u2'. */
static void each_read(const char *dtype, const char *shape, const char *hex) {
    size_t n;
    unsigned char *bytes = golden_bytes(hex, &n);
    DVT_SCOPE {
        dvt_array *x = read_golden(dtype, shape, bytes, n);
        if (x) {
            size_t at = 0;
            while (at + 9 < n && memcmp(bytes + at, "'descr': ", 9) != 0)
                at++;
            check_values(x, bytes[at + 11] == 'u');
        }
    }
    free(bytes);
}

DVT_TEST(npy_reads_every_storage_order) {
    CHECK(golden_lines(__FILE__, "npy_read", each_read) >= 72);
}

/* ---- handwritten headers ---- */
static unsigned char made[20000];

static size_t make(int major, const char *dictionary, size_t n_data) {
    size_t n = strlen(dictionary), begin = major == 1 ? 10 : 12, i;
    memcpy(made, "\x93NUMPY", 6);
    made[6] = (unsigned char)major;
    made[7] = 0;
    for (i = 8; i < begin; i++)
        made[i] = (unsigned char)(n >> 8 * (i - 8));
    memcpy(made + begin, dictionary, n);
    for (i = 0; i < n_data; i++)
        made[begin + n + i] = (unsigned char)i;
    return begin + n + n_data;
}

static void accept(const char *dictionary, size_t n_data, dvt_dtype dtype, dvt_shape shape) {
    DVT_SCOPE {
        size_t n = make(1, dictionary, n_data);
        dvt_array *x = dvt_read_npy(made, n, dvt_cpu());
        if (dvt_test_check(x != NULL, __FILE__, __LINE__, "%s: %s", dictionary, dvt_error())) {
            CHECK_INT(dvt_dtype_of(x), dtype);
            CHECK(dvt_shape_equal(dvt_shape_of(x), shape));
        }
    }
    dvt_clear_error();
}

DVT_TEST(npy_other_writers) {
    accept("{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }", 6, DVT_U8,
           DVT_SHAPE(2, 3));
    accept("{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"|i1\"}\n", 6, DVT_I8, DVT_SHAPE(6));
    accept("{ 'shape' : ( 2 , 3 , ) , 'descr' : 'u1' , 'fortran_order' : True , }   \n", 6, DVT_U8,
           DVT_SHAPE(2, 3));
    accept("{'descr': '=i4', 'fortran_order': False, 'shape': (1,2), }\n", 8, DVT_I32,
           DVT_SHAPE(1, 2));
    accept("{'descr': '<f8', 'fortran_order': True, 'shape': (), }\n", 8, DVT_F64, DVT_SCALAR);
    accept("{'descr': '>i2', 'fortran_order': False, 'shape': (0, 4611686018427387904), }\n", 0,
           DVT_I32, DVT_SHAPE(0, 4611686018427387904));
}

#define REFUSE(dictionary, n_data, words)                                                          \
    CHECK_REFUSED(dvt_read_npy(made, make(1, dictionary, n_data), dvt_cpu()), DVT_ERR_FORMAT, words)

DVT_TEST(npy_refuses_types_by_name) {
    REFUSE("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "pickled");
    REFUSE("{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }", 20, "text");
    REFUSE("{'descr': '|S5', 'fortran_order': False, 'shape': (1,), }", 5, "text");
    REFUSE("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }", 8, "dates");
    REFUSE("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "complex");
    REFUSE("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }", 8, "records");
    REFUSE("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "records");
    REFUSE("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, "unknown");
    REFUSE("{'descr': '', 'fortran_order': False, 'shape': (1,), }", 4, "unknown");
    REFUSE("{'descr': '<f44', 'fortran_order': False, 'shape': (1,), }", 4, "unknown");
}

DVT_TEST(npy_refuses_headers) {
    static const char good[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
    char *longer = (char *)malloc(12000);
    size_t n;
    REFUSE("", 0, "dictionary");
    REFUSE("{", 0, "dictionary");
    REFUSE("{}", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'shape': (2,), }", 2,
           "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'more': 1, }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), } x", 2, "dictionary");
    REFUSE("{'descr': '|u1' 'fortran_order': False, 'shape': (2,), }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': 0, 'shape': (2,), }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2), }", 2,
           "expected a tuple: write (3,) for (3)");
    REFUSE("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 4,
           "shape (0,), which takes 0 bytes, but 4 bytes follow it");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (-2,), }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2 3), }", 6, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (,), }", 1, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (2", 2, "dictionary");
    REFUSE("{'descr': '|u1, 'fortran_order': False, 'shape': (2,), }", 2, "unknown");
    REFUSE("{'descr': '|u\\x31', 'fortran_order': False, 'shape': (2,), }", 2, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 1, "8 axes");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,), }", 2,
           "63 bits");
    REFUSE("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }", 2,
           "follow it");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shape': (3037000500, 3037000500, 2), }", 2,
           "follow it");
    REFUSE(good, 1, "1 bytes follow");
    REFUSE(good, 3, "3 bytes follow");
    n = make(4, good, 2);
    CHECK_REFUSED(dvt_read_npy(made, n, dvt_cpu()), DVT_ERR_FORMAT, "version");
    n = make(1, good, 2);
    made[7] = 1;
    CHECK_REFUSED(dvt_read_npy(made, n, dvt_cpu()), DVT_ERR_FORMAT, "version");
    CHECK_REFUSED(dvt_read_npy(made, 7, dvt_cpu()), DVT_ERR_FORMAT, "version");
    CHECK_REFUSED(dvt_read_npy(made, 5, dvt_cpu()), DVT_ERR_FORMAT, "not an .npy");
    CHECK_REFUSED(dvt_read_npy("hello, world", 12, dvt_cpu()), DVT_ERR_FORMAT, "not an .npy");
    n = make(2, good, 2);
    made[11] = 0x7f; /* a header of 2 GB */
    CHECK_REFUSED(dvt_read_npy(made, n, dvt_cpu()), DVT_ERR_FORMAT, "10000");
    make(1, good, 2);
    CHECK_REFUSED(dvt_read_npy(made, 40, dvt_cpu()), DVT_ERR_FORMAT, "ends within its header");
    memset(longer, ' ', 12000);
    memcpy(longer, good, strlen(good));
    longer[10001] = 0;
    REFUSE(longer, 2, "10000");
    longer[10000] = 0;
    accept(longer, 2, DVT_U8, DVT_SHAPE(2));
    free(longer);
    CHECK_ERROR(dvt_read_npy(NULL, 10, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

/* A string without closing quote ends with the header, whatever follows the header. */
DVT_TEST(npy_unclosed_text) {
    REFUSE("{'descr': '|O", 0, "dictionary");
    REFUSE("{'descr': '|u1', 'fortran_order': False, 'shap", 0, "dictionary");
#if !defined(_WIN32)
    {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), n = make(1, "{'descr': '|u1", 0);
        char *pages = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (CHECK(pages != (char *)MAP_FAILED) &&
            CHECK(mprotect(pages + page, page, PROT_NONE) == 0)) {
            memcpy(pages + page - n, made, n);
            CHECK_REFUSED(dvt_read_npy(pages + page - n, n, dvt_cpu()), DVT_ERR_FORMAT,
                          "dictionary");
            munmap(pages, 2 * page);
        }
    }
#endif
}

DVT_TEST(npy_unsigned_64) {
    size_t n = make(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }", 16);
    memset(made + n - 16, 0, 16);
    made[n - 1] = 0x7f;
    made[n - 16] = 5;
    CHECK_VALUES(dvt_read_npy(made, n, dvt_cpu()), 0, 5, 9151314442816847872.0);
    made[n - 1] = 0x80;
    CHECK_REFUSED(dvt_read_npy(made, n, dvt_cpu()), DVT_ERR_FORMAT, "element 1 is a uint64");
}

/* Any nonzero byte is true. */
DVT_TEST(npy_bool_bytes) {
    size_t n = make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", 4);
    dvt_array *x = dvt_read_npy(made, n, dvt_cpu());
    unsigned char raw[4];
    CHECK(dvt_to_host(x, raw, 4) == DVT_OK);
    CHECK(raw[0] == 0 && raw[1] == 1 && raw[2] == 1 && raw[3] == 1);
}

/* The bits of NaN and of -0 are kept. */
DVT_TEST(npy_bits_survive) {
    static const unsigned char bits[16] = {1, 0, 0, 0, 0, 0, 0xf0, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0x80};
    static const uint64_t values[2] = {UINT64_C(0x7ff0000000000001), UINT64_C(0x8000000000000000)};
    size_t n = make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16);
    memcpy(made + n - 16, bits, 16);
    CHECK(memcmp(dvt_data(dvt_read_npy(made, n, dvt_cpu())), values, 16) == 0);
}

static void load(const void *bytes, size_t n) {
    dvt_read_npy(bytes, n, dvt_cpu());
}

static int damaged;

static void each_damaged(const char *dtype, const char *shape, const char *hex) {
    size_t n;
    unsigned char *bytes = golden_bytes(hex, &n);
    if (++damaged % 9 == 0)
        golden_damage(bytes, n, load);
    (void)dtype;
    (void)shape;
    free(bytes);
}

DVT_TEST(npy_survives_damage) {
    damaged = 0;
    golden_lines(__FILE__, "npy_read", each_damaged);
    CHECK(damaged >= 72);
}

static int load_made(void) {
    return dvt_read_npy(made,
                        make(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", 12),
                        dvt_cpu()) != NULL;
}

DVT_TEST(npy_out_of_memory) {
    CHECK(golden_out_of_memory(load_made) >= 4);
}

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(npy_without_files) {
    CHECK_ERROR(dvt_load_npy("a.npy", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_load_npy(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}
#else
static char out_path[600];

static int save_and_load(void) {
    static const float values[3] = {1, 2, 3};
    dvt_array *x = dvt_astype(dvt_from_host(values, DVT_SHAPE(3), DVT_F32, dvt_cpu()), DVT_BF16);
    return dvt_save_npy(out_path, x) == DVT_OK && dvt_load_npy(out_path, dvt_cpu()) != NULL;
}

DVT_TEST(npy_files_out_of_memory) {
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.npy"));
    CHECK(golden_out_of_memory(save_and_load) >= 8);
    CHECK(remove(out_path) == 0);
}

DVT_TEST(npy_round_trips) {
    const char *path = golden_temporary("r.npy");
    CHECK(dvt_set_virtual_gpus(2, 0) == DVT_OK);
    DVT_SCOPE {
        dvt_array *x = dvt_reshape(dvt_arange(0, 12, 1, DVT_F32, dvt_gpu(1)), DVT_SHAPE(3, 4)), *y;
        dvt_transfer_guard before =
            dvt_set_transfer_guard(DVT_TRANSFER_FORBID); /* saving is an explicit read */
        CHECK(dvt_save_npy(path, dvt_t(x)) == DVT_OK);
        dvt_set_transfer_guard(before);
        y = dvt_load_npy(path, dvt_gpu(0));
        CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
        CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(4, 3)));
        CHECK_VALUES(y, 0, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
        CHECK(dvt_save_npy(path, dvt_astype(dvt_index(x, 1), DVT_BF16)) == DVT_OK);
        y = dvt_load_npy(path, dvt_cpu_id(2));
        CHECK_INT(dvt_dtype_of(y), DVT_F32);
        CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_cpu_id(2)));
        CHECK_VALUES(y, 0, 4, 5, 6, 7);
        CHECK(dvt_save_npy(path, dvt_broadcast_to(dvt_scalar(2, DVT_BOOL, dvt_cpu()),
                                                  DVT_SHAPE(2, 2))) == DVT_OK);
        CHECK_VALUES(dvt_load_npy(path, dvt_cpu()), 0, 1, 1, 1, 1);
    }
    CHECK(remove(path) == 0);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(npy_file_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    char path[600], inside[640];
    size_t n;
    unsigned char *bytes;
    snprintf(path, sizeof path, "%s", golden_temporary("e.npy"));
    CHECK_REFUSED(dvt_load_npy(path, dvt_cpu()), DVT_ERR_IO, path);
    CHECK_ERROR(dvt_load_npy(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_npy(NULL, x), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_npy(path, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK(golden_write(path, "", 0));
    CHECK_REFUSED(dvt_load_npy(path, dvt_cpu()), DVT_ERR_FORMAT, "not an .npy");
    snprintf(inside, sizeof inside, "%s/below.npy", path); /* a file is not a directory */
    CHECK_REFUSED(dvt_save_npy(inside, x), DVT_ERR_IO, "below.npy");
    CHECK(dvt_save_npy(path, x) == DVT_OK); /* replaces the file */
    bytes = golden_file(path, &n);
    CHECK_INT(n, 128 + 8);
    free(bytes);
    CHECK(remove(path) == 0);
}

#if !defined(_WIN32)
DVT_TEST(npy_folders_and_devices) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    char folder[600], link[640];
    struct stat info;
    snprintf(folder, sizeof folder, "%s", golden_temporary("folder"));
    snprintf(link, sizeof link, "%s/link.npy", folder);
    CHECK(mkdir(folder, 0700) == 0);
    CHECK_REFUSED(dvt_load_npy(folder, dvt_cpu()), DVT_ERR_IO, "could not be opened");
    CHECK_REFUSED(dvt_save_npy(folder, x), DVT_ERR_IO, "could not be written");
    /* A device is written to, not replaced by a file. */
    if (symlink("/dev/null", link) == 0) {
        CHECK(dvt_save_npy(link, x) == DVT_OK);
        CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
        CHECK(remove(link) == 0);
    }
    /* A Linux device that is always full. */
    if (access("/dev/full", W_OK) == 0 && symlink("/dev/full", link) == 0) {
        CHECK_REFUSED(dvt_save_npy(link, x), DVT_ERR_IO, "could not be written");
        CHECK(remove(link) == 0);
    }
    CHECK(rmdir(folder) == 0); /* empty: no temporary file remains */
}

/* When writing fails halfway, the old file remains complete, and no other file remains. */
DVT_TEST(npy_failing_write_keeps_the_old_file) {
    dvt_array *small = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_array *large = dvt_ones(DVT_SHAPE(100000), DVT_F32, dvt_cpu());
    char folder[600], path[640];
    struct rlimit limit, tight;
    void (*before)(int);
    snprintf(folder, sizeof folder, "%s", golden_temporary("kept"));
    snprintf(path, sizeof path, "%s/a.npy", folder);
    CHECK(mkdir(folder, 0700) == 0);
    CHECK(dvt_save_npy(path, small) == DVT_OK);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    tight = limit;
    tight.rlim_cur = 4096;
    before = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0);
    CHECK_REFUSED(dvt_save_npy(path, large), DVT_ERR_IO, "could not be written");
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, before);
    CHECK_VALUES(dvt_load_npy(path, dvt_cpu()), 0, 1, 1);
    CHECK(remove(path) == 0);
    CHECK(rmdir(folder) == 0);
}
#endif
#endif
