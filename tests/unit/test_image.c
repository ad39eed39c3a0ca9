/* Tests of reading PNG: every color type, depth and interlacing from an encoder of this file, an
   image that zlib compressed, and refusals with their messages. */
#include "dvt_golden.h"

/* ---- an encoder of PNG: stored blocks of deflate, every filter in turn ---- */
typedef struct image_of { /* what to encode */
    int width, height, color, depth, interlaced;
    int palette; /* entries; entry i is (i, 255 - i, 3 * i) */
    const char *transparency;
    size_t n_transparency;
    size_t piece; /* bytes of an IDAT chunk */
} image_of;

static unsigned char made[1 << 16], raw[1 << 15];
static size_t n_made, n_raw;

static void put(const void *bytes, size_t n) {
    memcpy(made + n_made, bytes, n);
    n_made += n;
}

static void put_be(uint32_t value) {
    int i;
    for (i = 24; i >= 0; i -= 8)
        made[n_made++] = (unsigned char)(value >> i);
}

static void put_chunk(const char *type, const void *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    size_t begin, i;
    int k;
    put_be((uint32_t)n);
    begin = n_made;
    put(type, 4);
    put(bytes, n);
    for (i = begin; i < n_made; i++)
        for (crc ^= made[i], k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    put_be(~crc);
}

static unsigned sample(const image_of *image, int x, int y, int k) {
    unsigned value = (unsigned)(x * 37 + y * 101 + k * 59 + x * y * 7 + 3) * 997u >> 4;
    if (image->palette)
        return value % (unsigned)image->palette;
    return value & ((1u << image->depth) - 1);
}

static int samples_of(int color) {
    static const int samples[7] = {1, 0, 3, 1, 2, 0, 4};
    return samples[color];
}

static int paeth(int a, int b, int c) {
    int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Appends a row, filtered by `filter`. */
static void raw_row(const unsigned char *row, const unsigned char *above, int n, int step,
                    int filter) {
    int i;
    raw[n_raw++] = (unsigned char)filter;
    for (i = 0; i < n; i++) {
        int a = i < step ? 0 : row[i - step], b = above[i], c = i < step ? 0 : above[i - step];
        int predicted = filter == 0   ? 0
                        : filter == 1 ? a
                        : filter == 2 ? b
                        : filter == 3 ? (a + b) / 2
                                      : paeth(a, b, c);
        raw[n_raw++] = (unsigned char)(row[i] - predicted);
    }
}

static void raw_pass(const image_of *image, int x0, int y0, int dx, int dy) {
    unsigned char row[512], above[512];
    int x, y, k, samples = samples_of(image->color), count = 0;
    memset(above, 0, sizeof above);
    for (y = y0; y < image->height && x0 < image->width; y += dy, count++) {
        int bits = 0, n;
        memset(row, 0, sizeof row);
        for (x = x0; x < image->width; x += dx)
            for (k = 0; k < samples; k++, bits += image->depth) {
                unsigned value = sample(image, x, y, k);
                if (image->depth == 16)
                    row[bits / 8 + 1] = (unsigned char)value;
                row[bits / 8] |=
                    (unsigned char)(image->depth == 16 ? value >> 8
                                                       : value << (8 - image->depth - bits % 8));
            }
        n = (bits + 7) / 8;
        raw_row(row, above, n, samples * image->depth < 8 ? 1 : samples * image->depth / 8,
                (count + x0) % 5);
        memcpy(above, row, sizeof above);
    }
}

static void begin(const image_of *image) {
    unsigned char head[13];
    int i;
    memset(head, 0, sizeof head);
    head[2] = (unsigned char)(image->width >> 8);
    head[3] = (unsigned char)image->width;
    head[6] = (unsigned char)(image->height >> 8);
    head[7] = (unsigned char)image->height;
    head[8] = (unsigned char)image->depth;
    head[9] = (unsigned char)image->color;
    head[12] = (unsigned char)image->interlaced;
    n_made = 0;
    put("\x89PNG\r\n\x1a\n", 8);
    put_chunk("IHDR", head, 13);
    if (image->palette) {
        unsigned char palette[768];
        for (i = 0; i < image->palette; i++) {
            palette[3 * i] = (unsigned char)i;
            palette[3 * i + 1] = (unsigned char)(255 - i);
            palette[3 * i + 2] = (unsigned char)(3 * i);
        }
        put_chunk("PLTE", palette, 3 * (size_t)image->palette);
    }
    if (image->transparency)
        put_chunk("tRNS", image->transparency, image->n_transparency);
}

/* Puts raw into IDAT chunks of `piece` bytes. */
static void put_data(size_t piece) {
    static unsigned char packed[1 << 15];
    uint32_t low = 1, high = 0;
    size_t n = 0, i;
    packed[n++] = 0x78;
    packed[n++] = 0x01;
    packed[n++] = 1; /* the last block, stored */
    packed[n++] = (unsigned char)n_raw;
    packed[n++] = (unsigned char)(n_raw >> 8);
    packed[n++] = (unsigned char)~n_raw;
    packed[n++] = (unsigned char)(~n_raw >> 8);
    memcpy(packed + n, raw, n_raw);
    n += n_raw;
    for (i = 0; i < n_raw; i++) {
        low = (low + raw[i]) % 65521;
        high = (high + low) % 65521;
    }
    packed[n++] = (unsigned char)(high >> 8);
    packed[n++] = (unsigned char)high;
    packed[n++] = (unsigned char)(low >> 8);
    packed[n++] = (unsigned char)low;
    for (i = 0; i < n; i += piece)
        put_chunk("IDAT", packed + i, n - i < piece ? n - i : piece);
}

static void make_raw(const image_of *image) {
    static const int adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    int i;
    n_raw = 0;
    for (i = 0; i < (image->interlaced ? 7 : 1); i++)
        if (image->interlaced)
            raw_pass(image, adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3]);
        else
            raw_pass(image, 0, 0, 1, 1);
}

static void make(const image_of *image) {
    begin(image);
    make_raw(image);
    put_data(image->piece);
    put_chunk("IEND", "", 0);
}

static image_of image_like(int width, int height, int color, int depth) {
    image_of image;
    memset(&image, 0, sizeof image);
    image.width = width;
    image.height = height;
    image.color = color;
    image.depth = depth;
    image.palette = color == 3 ? (depth == 8 ? 200 : (1 << depth) - (depth > 1)) : 0;
    image.piece = 4000;
    return image;
}

static dvt_array *read_made(void) {
    return dvt_read_image(made, n_made, dvt_cpu());
}

/* Returns channel k of a pixel, as it is read. */
static double expected(const image_of *image, int x, int y, int k) {
    int samples = samples_of(image->color), i;
    unsigned value = sample(image, x, y, 0), full = image->depth == 16 ? 65535 : 255;
    if (image->color == 3 && k == 3)
        return value < image->n_transparency ? (unsigned char)image->transparency[value] : 255;
    if (image->color == 3)
        return k == 0 ? value : k == 1 ? 255 - value : 3 * value % 256;
    if (k < samples)
        return sample(image, x, y, k) * (image->depth < 8 ? 255u / ((1u << image->depth) - 1) : 1);
    for (i = 0; i < samples; i++)
        if (sample(image, x, y, i) != (unsigned)((unsigned char)image->transparency[2 * i] << 8 |
                                                 (unsigned char)image->transparency[2 * i + 1]))
            return full;
    return 0;
}

static void check_made(const image_of *image) {
    int channels = image->color == 3 ? 3 : samples_of(image->color), x, y, k;
    if (image->transparency)
        channels++;
    DVT_SCOPE {
        dvt_array *read = read_made();
        double *values;
        int64_t at = 0, wrong = 0;
        if (dvt_test_check(read != NULL, __FILE__, __LINE__, "color %d, depth %d: %s", image->color,
                           image->depth, dvt_error())) {
            CHECK_INT(dvt_dtype_of(read), image->depth == 16 ? DVT_I32 : DVT_U8);
            CHECK(dvt_shape_equal(dvt_shape_of(read),
                                  DVT_SHAPE(image->height, image->width, channels)));
            values = dvt_test_values(read);
            for (y = 0; y < image->height; y++)
                for (x = 0; x < image->width; x++)
                    for (k = 0; k < channels; k++)
                        wrong += values[at++] != expected(image, x, y, k);
            dvt_test_check(wrong == 0, __FILE__, __LINE__,
                           "%lld elements of color %d, depth %d, interlacing %d, %d x %d differ",
                           (long long)wrong, image->color, image->depth, image->interlaced,
                           image->width, image->height);
            free(values);
        }
    }
    dvt_clear_error();
}

DVT_TEST(image_png_every_type) {
    static const int types[15][2] = {{0, 1}, {0, 2},  {0, 4},  {0, 8}, {0, 16},
                                     {2, 8}, {2, 16}, {3, 1},  {3, 2}, {3, 4},
                                     {3, 8}, {4, 8},  {4, 16}, {6, 8}, {6, 16}};
    static const int sizes[6][2] = {{1, 1}, {3, 2}, {5, 5}, {9, 11}, {2, 17}, {33, 8}};
    int i, k;
    for (i = 0; i < 15; i++)
        for (k = 0; k < 12; k++) {
            image_of image = image_like(sizes[k / 2][0], sizes[k / 2][1], types[i][0], types[i][1]);
            image.interlaced = k % 2;
            image.piece = k % 3 == 0 ? 5 : k % 3 == 1 ? 1 : 4000;
            make(&image);
            check_made(&image);
        }
}

DVT_TEST(image_png_transparency) {
    static const char alphas[] = "\x00\x80\xff\x10";
    image_of image = image_like(9, 7, 3, 4);
    char key[6];
    int color, depth, k;
    image.transparency = alphas;
    image.n_transparency = 4;
    make(&image);
    check_made(&image);
    for (color = 0; color <= 2; color += 2)
        for (depth = color ? 8 : 1; depth <= 16; depth *= 2) {
            image = image_like(9, 7, color, depth);
            for (k = 0; k < samples_of(color); k++) { /* the color of a pixel */
                unsigned value = sample(&image, 4, 5, k);
                key[2 * k] = (char)(value >> 8);
                key[2 * k + 1] = (char)value;
            }
            image.transparency = key;
            image.n_transparency = color ? 6 : 2;
            make(&image);
            check_made(&image);
        }
}

/* Written by Python: 40 x 30, gray, depth 8, every row with filter 1 and the bytes
   [0, 1, 2, 0, 2, 1] * 6 + [x * y % 3 for x in range(4)], compressed by zlib.compress(rows, 9). */
static const char zlib_hex[] =
    "89504e470d0a1a0a0000000d49484452000000280000001e08000000007bb603010000000774455874546974"
    "6c650078297e4d3a000000274944415478da636460646260622440020123510a8124710a418c51ab47ad1eb5"
    "7ad46aea590d00ffd704930023360c0000000049454e44ae426082";

DVT_TEST(image_png_of_zlib) {
    static const int row[6] = {0, 1, 2, 0, 2, 1};
    size_t n;
    unsigned char *bytes = golden_bytes(zlib_hex, &n);
    dvt_array *read = dvt_read_image(bytes, n, dvt_cpu());
    double *values = dvt_test_values(read);
    int x, y, wrong = 0;
    CHECK(dvt_shape_equal(dvt_shape_of(read), DVT_SHAPE(30, 40, 1)));
    for (y = 0; values && y < 30; y++) {
        int value = 0;
        for (x = 0; x < 40; x++) {
            value += x < 36 ? row[x % 6] : (x - 36) * y % 3;
            wrong += values[40 * y + x] != value;
        }
    }
    CHECK_INT(wrong, 0);
    free(values);
    free(bytes);
}

/* ---- refusals ---- */
#define REFUSE(words) CHECK_REFUSED(read_made(), DVT_ERR_FORMAT, words)

static void make_header(uint32_t width, uint32_t height, const char *rest) {
    unsigned char head[13];
    int i;
    for (i = 0; i < 4; i++) {
        head[i] = (unsigned char)(width >> (24 - 8 * i));
        head[4 + i] = (unsigned char)(height >> (24 - 8 * i));
    }
    memcpy(head + 8, rest, 5);
    n_made = 0;
    put("\x89PNG\r\n\x1a\n", 8);
    put_chunk("IHDR", head, 13);
    put_chunk("IDAT", "x", 1);
}

DVT_TEST(image_png_refuses_headers) {
    static const char *const bad[] = {"\x03\0\0\0", "\x10\3\0\0", "\x04\2\0\0", "\x01\4\0\0",
                                      "\x08\1\0\0", "\x08\7\0\0", "\x08\0\1\0", "\x08\0\0\1",
                                      "\0\0\0\0",   "\x20\0\0\0"};
    int i;
    for (i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        char rest[5];
        memcpy(rest, bad[i], 4);
        rest[4] = 0;
        make_header(1, 1, rest);
        REFUSE("which PNG does not define");
    }
    make_header(1, 1, "\x08\0\0\0\2");
    REFUSE("which PNG does not define");
    make_header(0, 1, "\x08\0\0\0\0");
    REFUSE("0 x 1 pixels");
    make_header(1, 0x80000000u, "\x08\0\0\0\0");
    REFUSE("1 x 2147483648 pixels");
    make_header(0x7fffffff, 0x7fffffff, "\x10\6\0\0\1");
    REFUSE("more than the file can hold");
    make_header(1, 100000, "\x08\0\0\0\0");
    REFUSE("more than the file can hold");
    n_made = 0;
    put("\x89PNG\r\n\x1a\n", 8);
    REFUSE("ends in the middle");
    put_chunk("IDAT", "x", 1);
    REFUSE("does not begin with a header");
}

/* Makes a gray image of 3 x 2, and a chunk before its data, and one after it. */
static void make_between(const char *before, const char *bytes, size_t n, const char *after) {
    image_of image = image_like(3, 2, 0, 8);
    begin(&image);
    if (before)
        put_chunk(before, bytes, n);
    make_raw(&image);
    put_data(4000);
    if (after)
        put_chunk(after, "", 0);
    put_chunk("IEND", "", 0);
}

DVT_TEST(image_png_refuses_chunks) {
    image_of image = image_like(3, 2, 3, 2);
    size_t i;
    make_between("tEXt", "a\0b", 3, "teXt");
    CHECK(read_made() != NULL);
    make_between("TEXt", "", 0, NULL);
    REFUSE("chunk TEXt is unknown or in the wrong place");
    make_between(NULL, "", 0, "TEXt");
    REFUSE("chunk TEXt is unknown or in the wrong place");
    make_between(NULL, "", 0, "tRNS");
    REFUSE("chunk tRNS is unknown or in the wrong place");
    make_between("IHDR", "", 0, NULL);
    REFUSE("chunk IHDR is unknown or in the wrong place");
    make_between("IEND", "", 0, NULL);
    REFUSE("chunk IEND is unknown or in the wrong place");
    make_between("te1t", "", 0, NULL);
    REFUSE("not four letters");
    make_between("PLTE", "abc", 3, NULL); /* gray has none */
    REFUSE("palette (PLTE) is damaged or not allowed");
    make_between("tRNS", "abc", 3, NULL);
    REFUSE("transparency (tRNS) is damaged or not allowed");
    make_between(NULL, "", 0, NULL);
    put("x", 1);
    REFUSE("something follows its end");
    for (i = 8; i < n_made - 1; i++) { /* every chunk has a CRC */
        make_between("tEXt", "a\0b", 3, NULL);
        made[i] ^= 0x20;
        CHECK_ERROR(read_made(), DVT_ERR_FORMAT);
    }
    make_between("tEXt", "ab", 2, NULL);
    made[8 + 25 + 8] ^= 1;
    REFUSE("checksum of its chunk tEXt is wrong");
    made[8 + 25] = 0x7f;
    REFUSE("chunk tEXt goes beyond the end");
    make(&image);
    CHECK(read_made() != NULL);
    image.palette = 2; /* its pixels have more colors */
    begin(&image);
    put_data(4000);
    put_chunk("IEND", "", 0);
    REFUSE("of a palette of 2");
    image.palette = 0;
    begin(&image);
    put_data(4000);
    put_chunk("IEND", "", 0);
    REFUSE("palette (PLTE) is missing");
    image.palette = 5;
    begin(&image);
    REFUSE("palette (PLTE) is damaged or not allowed");
    image.palette = 3;
    image.transparency = "abcd";
    image.n_transparency = 4;
    begin(&image);
    REFUSE("transparency (tRNS) is damaged or not allowed");
    image.n_transparency = 3;
    begin(&image);
    put_chunk("tRNS", "abc", 3);
    REFUSE("transparency (tRNS) is damaged or not allowed");
}

DVT_TEST(image_png_refuses_data) {
    image_of image = image_like(3, 2, 0, 8);
    size_t whole, at = 8 + 25 + 8;
    make(&image);
    for (whole = n_made; n_made > 0; n_made--)
        if (n_made < whole)
            CHECK_ERROR(read_made(), DVT_ERR_FORMAT);
    begin(&image);
    make_raw(&image);
    raw[4] = 5;
    put_data(4000);
    REFUSE("a row has an unknown filter");
    begin(&image);
    make_raw(&image);
    n_raw--;
    put_data(4000);
    REFUSE("shorter than its header says");
    begin(&image);
    make_raw(&image);
    raw[n_raw++] = 0;
    put_data(4000);
    REFUSE("longer than its header says");
    /* The compressed data, with a right CRC of the chunk. */
    begin(&image);
    make_raw(&image);
    put_data(4000);
    {
        unsigned char data[64];
        size_t n = n_made - at - 4;
        memcpy(data, made + at, n);
        data[n - 1] ^= 1;
        n_made = at - 8;
        put_chunk("IDAT", data, n);
        REFUSE("its checksum is wrong");
        data[n - 1] ^= 1;
        data[0] = 0x79;
        n_made = at - 8;
        put_chunk("IDAT", data, n);
        REFUSE("zlib header is damaged");
        data[0] = 0x78;
        data[n] = 0;
        n_made = at - 8;
        put_chunk("IDAT", data, n + 1);
        put_chunk("IEND", "", 0);
        REFUSE("something follows its compressed image data");
        n_made = at - 8;
        put_chunk("IDAT", data, 0);
        put_chunk("IDAT", data, n);
        put_chunk("IDAT", data, 0);
        put_chunk("IEND", "", 0);
        CHECK(read_made() != NULL);
        n_made -= 12;
        put_chunk("teXt", "", 0);
        put_chunk("IDAT", data, 0);
        REFUSE("chunk IDAT is unknown or in the wrong place");
    }
}

static void load(const void *bytes, size_t n) {
    dvt_read_image(bytes, n, dvt_cpu());
}

DVT_TEST(image_png_survives_damage) {
    image_of image = image_like(5, 5, 3, 4);
    static unsigned char copy[sizeof made];
    size_t n;
    unsigned char *zlib = golden_bytes(zlib_hex, &n);
    golden_damage(zlib, n, load);
    free(zlib);
    image.interlaced = 1;
    image.transparency = "\1\2";
    image.n_transparency = 2;
    image.piece = 9;
    make(&image);
    memcpy(copy, made, n_made);
    golden_damage(copy, n_made, load);
}

static int load_made(void) {
    return read_made() != NULL;
}

DVT_TEST(image_png_out_of_memory) {
    image_of image = image_like(5, 5, 2, 16);
    make(&image);
    CHECK(golden_out_of_memory(load_made) >= 5);
}
