/* Tests of IDX files: every type, plain and compressed, refusals with their messages, and the
   original data sets if present. */
#include "dvt_golden.h"

static unsigned char made[4096];

/* Writes a header of `ndim` extents, 4 bytes each, followed by `bytes` bytes of data. */
static size_t make(unsigned type, int ndim, const uint32_t *extent, const void *data,
                   size_t n_data) {
    size_t n = 0;
    int i, k;
    made[n++] = 0;
    made[n++] = 0;
    made[n++] = (unsigned char)type;
    made[n++] = (unsigned char)ndim;
    for (i = 0; i < ndim; i++)
        for (k = 24; k >= 0; k -= 8)
            made[n++] = (unsigned char)(extent[i] >> k);
    memcpy(made + n, data, n_data);
    return n + n_data;
}

DVT_TEST(idx_types) {
    static const uint32_t two = 2, none = 0, many[3] = {1, 2, 1};
    static const unsigned char f32[8] = {0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0};
    static const unsigned char f64[16] = {0x3f, 0xf8, 0, 0, 0, 0, 0, 0,
                                          0xff, 0xf0, 0, 0, 0, 0, 0, 0};
    dvt_array *x = dvt_read_idx(made, make(0x08, 1, &two, "\x00\xff", 2), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_U8);
    CHECK_VALUES(x, 0, 0, 255);
    x = dvt_read_idx(made, make(0x09, 3, many, "\x7f\xff", 2), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_I8);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(1, 2, 1)));
    CHECK_VALUES(x, 0, 127, -1);
    x = dvt_read_idx(made, make(0x0b, 1, &two, "\x80\x00\x01\x02", 4), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, -32768, 258);
    x = dvt_read_idx(made, make(0x0c, 1, &two, "\x80\x00\x00\x00\x00\x00\x01\x02", 8), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, -2147483648.0, 258);
    x = dvt_read_idx(made, make(0x0d, 1, &two, f32, 8), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_F32);
    CHECK_VALUES(x, 0, 1, -2.5);
    x = dvt_read_idx(made, make(0x0e, 1, &two, f64, 16), dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_F64);
    CHECK_VALUES(x, 0, 1.5, -INFINITY);
    x = dvt_read_idx(made, make(0x08, 1, &none, "", 0), dvt_cpu());
    CHECK_INT(dvt_size(x), 0);
}

#define REFUSE(bytes, words)                                                                       \
    CHECK_REFUSED(dvt_read_idx(made, bytes, dvt_cpu()), DVT_ERR_FORMAT, words)

DVT_TEST(idx_refuses) {
    static const uint32_t two = 2, huge[4] = {0xffffffff, 0xffffffff, 0xffffffff, 2},
                          big[2] = {0xffffffff, 4};
    uint32_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    REFUSE(make(0x0a, 1, &two, "ab", 2), "not an IDX file");
    REFUSE(make(0x00, 1, &two, "ab", 2), "not an IDX file");
    REFUSE(make(0x08, 0, &two, "a", 1), "not an IDX file");
    REFUSE(make(0x08, 9, nine, "a", 1), "9 axes");
    made[3] = 255;
    REFUSE(44, "255 axes");
    REFUSE(make(0x08, 1, &two, "a", 1), "takes 10 bytes, but there are 9");
    REFUSE(make(0x08, 1, &two, "abc", 3), "takes 10 bytes, but there are 11");
    REFUSE(make(0x0e, 4, huge, "abc", 3), "more than any file holds");
    REFUSE(make(0x08, 2, big, "abc", 3), "takes 17179869192 bytes");
    make(0x08, 2, big, "", 0);
    REFUSE(11, "ends within its header");
    REFUSE(4, "ends within its header");
    REFUSE(3, "not an IDX file");
    REFUSE(0, "not an IDX file");
    made[1] = 1;
    REFUSE(12, "begins with 00 01 08 02");
    /* Only the first of gzip's two magic bytes. */
    REFUSE((made[0] = 0x1f, made[1] = 0, 12), "begins with 1f 00 08 02");
    REFUSE((made[0] = 0, made[1] = 0x8b, 12), "begins with 00 8b 08 02");
    CHECK_ERROR(dvt_read_idx(NULL, 4, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

static void load(const void *bytes, size_t n) {
    dvt_read_idx(bytes, n, dvt_cpu());
}

DVT_TEST(idx_survives_damage) {
    static const uint32_t extents[3] = {3, 2, 2};
    unsigned char valid[40];
    size_t n = make(0x0b, 3, extents, "abcdefghijklmnopqrstuvwx", 24);
    memcpy(valid, made, n);
    golden_damage(valid, n, load);
    CHECK(dvt_read_idx(valid, n, dvt_cpu()) != NULL);
}

static int load_made(void) {
    static const uint32_t two = 2;
    return dvt_read_idx(made, make(0x0b, 1, &two, "abcd", 4), dvt_cpu()) != NULL;
}

static const char *packed_hex;

static int load_packed(void) {
    size_t n;
    unsigned char *bytes = golden_bytes(packed_hex, &n);
    int ok = dvt_read_idx(bytes, n, dvt_cpu()) != NULL;
    free(bytes);
    return ok;
}

static void remember(const char *rule, const char *count, const char *hex) {
    static char kept[2048];
    if (strcmp(rule, "pattern") == 0 && strcmp(count, "100") == 0) {
        snprintf(kept, sizeof kept, "%s", hex);
        packed_hex = kept;
    }
}

DVT_TEST(idx_out_of_memory) {
    CHECK(golden_out_of_memory(load_made) >= 3);
    golden_lines(__FILE__, "gz_ok", remember);
    if (CHECK(packed_hex != NULL))
        CHECK(golden_out_of_memory(load_packed) >= 4);
}

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(idx_without_files) {
    CHECK_ERROR(dvt_load_idx("images", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
DVT_TEST(idx_files) {
    static const uint32_t extents[2] = {2, 3};
    const char *path = golden_temporary("a.idx");
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    CHECK(golden_write(path, made, make(0x08, 2, extents, "abcdef", 6)));
    DVT_SCOPE {
        dvt_array *x = dvt_load_idx(path, dvt_gpu(0));
        CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
        CHECK_VALUES(x, 0, 'a', 'b', 'c', 'd', 'e', 'f');
        CHECK_ERROR(dvt_load_idx(path, dvt_gpu(5)), DVT_ERR_NO_DEVICE);
    }
    CHECK(golden_write(path, made, 9));
    CHECK_REFUSED(dvt_load_idx(path, dvt_cpu()), DVT_ERR_FORMAT, path);
    CHECK(remove(path) == 0);
    CHECK_REFUSED(dvt_load_idx(path, dvt_cpu()), DVT_ERR_IO, path);
    CHECK_ERROR(dvt_load_idx(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

/* ---- the original data sets ---- */
/* Updates an MD5 hash (RFC 1321), to compare with published sums. */
static void md5_block(uint32_t h[4], const unsigned char *at) {
    static const int shift[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static uint32_t sine[64];
    uint32_t w[16], a = h[0], b = h[1], c = h[2], d = h[3], f, t;
    int i, g;
    for (i = 0; i < 64 && !sine[63]; i++)
        sine[i] = (uint32_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)at[4 * i] | (uint32_t)at[4 * i + 1] << 8 | (uint32_t)at[4 * i + 2] << 16 |
               (uint32_t)at[4 * i + 3] << 24;
    for (i = 0; i < 64; i++) {
        f = i < 16   ? (b & c) | (~b & d)
            : i < 32 ? (d & b) | (~d & c)
            : i < 48 ? b ^ c ^ d
                     : c ^ (b | ~d);
        g = i < 16 ? i : i < 32 ? (5 * i + 1) % 16 : i < 48 ? (3 * i + 5) % 16 : 7 * i % 16;
        t = a + f + sine[i] + w[g];
        a = d;
        d = c;
        c = b;
        b += t << shift[i / 16][i % 4] | t >> (32 - shift[i / 16][i % 4]);
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
}

/* Computes the MD5 hash of `head` followed by `data`. */
static void md5(const unsigned char *head, size_t n_head, const unsigned char *data, size_t n,
                char *hex) {
    uint32_t h[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    uint64_t bits = (uint64_t)(n_head + n) * 8;
    unsigned char block[64];
    size_t at = 0, total = n_head + n, i;
    for (at = 0; at < total + 9; at += 64) {
        if (at >= n_head && at + 64 <= total) {
            md5_block(h, data + (at - n_head));
            continue;
        }
        for (i = 0; i < 64; i++) {
            size_t k = at + i;
            block[i] = k < n_head ? head[k] : k < total ? data[k - n_head] : k == total ? 0x80 : 0;
        }
        if (at + 64 >= total + 9)
            for (i = 0; i < 8; i++)
                block[56 + i] = (unsigned char)(bits >> 8 * i);
        md5_block(h, block);
    }
    for (i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", h[i / 4] >> 8 * (i % 4) & 255);
}

static void check_real(const char *folder, const char *name, int ndim, int64_t n,
                       const char *expected) {
    char path[700], sum[33];
    dvt_array *x;
    int i;
    snprintf(path, sizeof path, "%s/%s.gz", folder, name);
    x = dvt_load_idx(path, dvt_cpu());
    if (!dvt_test_check(x != NULL, __FILE__, __LINE__, "%s: %s", name, dvt_error()))
        return;
    CHECK_INT(dvt_ndim(x), ndim);
    CHECK_INT(dvt_dim(x, 0), n);
    CHECK_INT(dvt_dtype_of(x), DVT_U8);
    made[0] = made[1] = 0;
    made[2] = 8;
    made[3] = (unsigned char)ndim;
    for (i = 0; i < 4 * ndim; i++)
        made[4 + i] = (unsigned char)(dvt_dim(x, i / 4) >> (24 - 8 * (i % 4)));
    md5(made, 4 + 4 * (size_t)ndim, (const unsigned char *)dvt_data(x), (size_t)dvt_nbytes(x), sum);
    dvt_test_check(strcmp(sum, expected) == 0, __FILE__, __LINE__, "%s: md5 %s, expected %s", name,
                   sum, expected);
}

DVT_TEST(idx_real_files) {
    const char *folder = getenv("DEVTENSOR_DATA");
    char probe[700];
    FILE *file;
    if (!folder || !*folder)
        folder = "../shared/data";
    snprintf(probe, sizeof probe, "%s/fashion-t10k-labels-idx1-ubyte.gz", folder);
    file = fopen(probe, "rb");
    if (!file)
        SKIP("Fashion-MNIST was not found; set DEVTENSOR_DATA to its directory");
    fclose(file);
    DVT_SCOPE {
        check_real(folder, "fashion-train-images-idx3-ubyte", 3, 60000,
                   "f4a8712d7a061bf5bd6d2ca38dc4d50a");
        check_real(folder, "fashion-t10k-images-idx3-ubyte", 3, 10000,
                   "8181f5470baa50b63fa0f6fddb340f0a");
        check_real(folder, "fashion-train-labels-idx1-ubyte", 1, 60000,
                   "9018921c3c673c538a1fc5bad174d6f9");
        check_real(folder, "fashion-t10k-labels-idx1-ubyte", 1, 10000,
                   "15d484375f8d13e6eb1aabb0c3f46965");
    }
}
#endif
