/* Tests of Netpbm images, of the choice of the format, and of writing images. */
#include "dvt_golden.h"

static dvt_array *read_text(const char *text, size_t n) {
    return dvt_read_image(text, n, dvt_cpu());
}

#define TEXT(text) read_text(text, sizeof(text) - 1)

DVT_TEST(image_netpbm_reads) {
    dvt_array *x = TEXT("P5\n2 2\n255\nabcd");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 2, 1)));
    CHECK_INT(dvt_dtype_of(x), DVT_U8);
    CHECK_VALUES(x, 0, 'a', 'b', 'c', 'd');
    x = TEXT("P6 # a comment\n#another # \n1#third\n\t2\v255\fabcdef");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 1, 3)));
    CHECK_VALUES(x, 0, 'a', 'b', 'c', 'd', 'e', 'f');
    x = TEXT("P2\n3 1\n15\n0 15\r\n#c\n7");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(1, 3, 1)));
    CHECK_INT(dvt_dtype_of(x), DVT_U8);
    CHECK_VALUES(x, 0, 0, 255, 119);
    x = TEXT("P3 1 1 255 1 20 255 \n\n");
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(1, 1, 3)));
    CHECK_VALUES(x, 0, 1, 20, 255);
    x = TEXT("P5 2 1 65535\n\x01\x02\xff\xff");
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, 258, 65535);
    x = TEXT("P2 3 1 1000 0 500 1000");
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, 0, 32768, 65535);
    CHECK_VALUES(TEXT("P5 3 1 1 \x00\x01\x01"), 0, 0, 255, 255);
}

#define REFUSE_TEXT(text, words) CHECK_REFUSED(TEXT(text), DVT_ERR_FORMAT, words)

DVT_TEST(image_netpbm_refuses) {
    REFUSE_TEXT("", "not a PNG, PPM or PGM file");
    REFUSE_TEXT("P", "not a PNG, PPM or PGM file");
    REFUSE_TEXT("P8 1 1 255 a", "not a PNG, PPM or PGM file");
    REFUSE_TEXT("P\0 1 1 255 a", "not a PNG, PPM or PGM file");
    REFUSE_TEXT("\x89PNG\r\n\x1a", "not a PNG, PPM or PGM file");
    REFUSE_TEXT("\xff\xd8\xff\xe0", "JPEG");
    REFUSE_TEXT("P1 1 1 0", "PBM or PAM");
    REFUSE_TEXT("P4 1 1 a", "PBM or PAM");
    REFUSE_TEXT("P7\nWIDTH 1", "PBM or PAM");
    REFUSE_TEXT("P51 1 255 a", "header is damaged");
    REFUSE_TEXT("P5 1 255 a", "header is damaged");
    REFUSE_TEXT("P5 0 1 255 ", "header is damaged");
    REFUSE_TEXT("P5 1 0 255 ", "header is damaged");
    REFUSE_TEXT("P5 1 1 0 a", "header is damaged");
    REFUSE_TEXT("P5 1 1 65536 a", "header is damaged");
    REFUSE_TEXT("P5 -1 1 255 a", "header is damaged");
    REFUSE_TEXT("P5 2147483648 1 255 a", "header is damaged");
    REFUSE_TEXT("P5 1 1 255", "does not end with white space");
    REFUSE_TEXT("P5 1 1 255a", "does not end with white space");
    REFUSE_TEXT("P5 1 1 255#\na", "does not end with white space");
    REFUSE_TEXT("P5 2 1 255 a", "but 1 bytes follow it");
    REFUSE_TEXT("P5 2 1 255 abc", "but 3 bytes follow it");
    REFUSE_TEXT("P6 2147483647 2147483647 65535 abc", "but 3 bytes follow it");
    REFUSE_TEXT("P5 2 1 256 abc", "but 3 bytes follow it");
    REFUSE_TEXT("P2 2147483647 2147483647 9 1", "but 2 bytes follow it");
    REFUSE_TEXT("P2 2 1 9 1", "but 2 bytes follow it");
    REFUSE_TEXT("P2 2 1 9 1    ", "sample 1 is missing");
    REFUSE_TEXT("P2 2 1 9 1  x ", "sample 1 is missing");
    REFUSE_TEXT("P2 2 1 9 1 65536", "sample 1 is missing");
    REFUSE_TEXT("P2 2 1 9 1 2 3", "something follows the image");
    REFUSE_TEXT("P2 2 1 9 1 10", "a sample is 10, above its largest value of 9");
    REFUSE_TEXT("P5 1 1 9 \x0a", "a sample is 10, above its largest value of 9");
    CHECK_ERROR(dvt_read_image(NULL, 1, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
}

static void load(const void *bytes, size_t n) {
    dvt_read_image(bytes, n, dvt_cpu());
}

DVT_TEST(image_netpbm_survives_damage) {
    static const char text[] = "P3 # c\n2 1 9\n1 2 3 4 5 6\n";
    static const char bytes[] = "P6\n1 1\n300\n\1\2\1\3\1\4";
    golden_damage((const unsigned char *)text, sizeof text - 1, load);
    golden_damage((const unsigned char *)bytes, sizeof bytes - 1, load);
}

static int load_text(void) {
    return TEXT("P2 1 1 9 1") != NULL;
}

DVT_TEST(image_netpbm_out_of_memory) {
    CHECK(golden_out_of_memory(load_text) >= 2);
}

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(image_without_files) {
    CHECK_ERROR(dvt_load_image("a.png", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_save_image("a.png", dvt_ones(DVT_SHAPE(1, 1), DVT_U8, dvt_cpu())),
                DVT_ERR_NOT_BUILT);
}
#else
static void check_text(const char *path, const char *text, size_t n_text) {
    size_t n;
    unsigned char *bytes = golden_file(path, &n);
    CHECK_INT(n, n_text);
    CHECK(bytes && n == n_text && memcmp(bytes, text, n) == 0);
    free(bytes);
}

DVT_TEST(image_netpbm_writes) {
    const char *path = golden_temporary("a.PGM");
    char color[600];
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), -1, 0, 0.5f, 1, 2, NAN);
    CHECK(dvt_save_image(path, x) == DVT_OK);
    check_text(path, "P5\n3 2\n255\n\x00\x00\x80\xff\xff\x00", 17);
    CHECK_VALUES(dvt_load_image(path, dvt_cpu()), 0, 0, 0, 128, 255, 255, 0);
    CHECK(dvt_save_image(path, DVT_ARRAY(int32_t, DVT_SHAPE(2, 1, 1), dvt_cpu(), 258, 65535)) ==
          DVT_OK);
    check_text(path, "P5\n1 2\n65535\n\x01\x02\xff\xff", 17);
    CHECK_VALUES(dvt_load_image(path, dvt_cpu()), 0, 258, 65535);
    CHECK(remove(path) == 0);
    snprintf(color, sizeof color, "%s", golden_temporary("a.ppm"));
    x = dvt_reshape(dvt_arange(97, 103, 1, DVT_U8, dvt_cpu()), DVT_SHAPE(1, 2, 3));
    CHECK(dvt_save_image(color, x) == DVT_OK);
    check_text(color, "P6\n2 1\n255\nabcdef", 17);
    CHECK(remove(color) == 0);
}

/* Element i of an image that both prediction and matches make smaller. */
static int32_t value(int64_t i, int channels, int wide) {
    int64_t pixel = i / channels;
    int64_t level = pixel / 70 * 3 + pixel % 70 * 2 + i % channels * 40 + (pixel * 7919 % 11 == 0);
    return (int32_t)(wide ? level * 97 % 65536 : level % 256);
}

DVT_TEST(image_png_round_trip) {
    const char *path = golden_temporary("r.png");
    int channels, wide;
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    for (channels = 1; channels <= 4; channels++)
        for (wide = 0; wide < 2; wide++)
            DVT_SCOPE {
                int64_t n = 60 * 70 * channels, i, wrong = 0;
                int32_t *values = (int32_t *)malloc((size_t)n * sizeof *values);
                dvt_array *x, *y;
                double *again;
                size_t size;
                for (i = 0; i < n; i++)
                    values[i] = value(i, channels, wide);
                x = dvt_from_host(values, DVT_SHAPE(60, 70, channels), DVT_I32, dvt_gpu(0));
                x = wide ? x : dvt_astype(x, DVT_U8);
                CHECK(dvt_save_image(path, x) == DVT_OK);
                y = dvt_load_image(path, dvt_gpu(0));
                CHECK_INT(dvt_dtype_of(y), wide ? DVT_I32 : DVT_U8);
                CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
                CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(60, 70, channels)));
                again = dvt_test_values(y);
                for (i = 0; again && i < n; i++)
                    wrong += again[i] != values[i];
                CHECK_INT(wrong, 0);
                free(golden_file(path, &size));
                CHECK((int64_t)size < n * (wide + 1) / 2);
                free(again);
                free(values);
            }
    CHECK(dvt_save_image(path, dvt_t(DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 0, 0.1f, 0.2f,
                                               0.3f, 0.999f, 1.5f))) == DVT_OK);
    CHECK_VALUES(dvt_load_image(path, dvt_cpu()), 0, 0, 77, 26, 255, 51, 255);
    CHECK(dvt_save_image(path, dvt_full(DVT_SHAPE(1, 1), 0.5, DVT_BF16, dvt_cpu())) == DVT_OK);
    CHECK_VALUES(dvt_load_image(path, dvt_cpu()), 0, 128);
    CHECK(remove(path) == 0);
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
}

DVT_TEST(image_file_errors) {
    const char *path = golden_temporary("e.png");
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 2), DVT_U8, dvt_cpu());
    dvt_array *five = dvt_ones(DVT_SHAPE(2, 2, 5), DVT_U8, dvt_cpu());
    dvt_array *three = dvt_ones(DVT_SHAPE(2, 2, 3), DVT_U8, dvt_cpu());
    CHECK_ERROR(dvt_save_image(NULL, x), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_save_image(path, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_REFUSED(dvt_save_image("a.jpg", x), DVT_ERR_NAME, "expected .png, .ppm or .pgm");
    CHECK_REFUSED(dvt_save_image("png", x), DVT_ERR_NAME, "expected .png, .ppm or .pgm");
    CHECK_REFUSED(dvt_save_image(path, five), DVT_ERR_SHAPE, "1 to 4 channels");
    CHECK_REFUSED(dvt_save_image("a.ppm", x), DVT_ERR_SHAPE, "expected (height, width, 3)");
    CHECK_REFUSED(dvt_save_image("a.pgm", three), DVT_ERR_SHAPE, "(height, width, 1)");
    CHECK_ERROR(dvt_save_image(path, dvt_ones(DVT_SHAPE(2), DVT_U8, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_image(path, dvt_scalar(1, DVT_U8, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_image(path, dvt_ones(DVT_SHAPE(2, 0), DVT_U8, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_save_image(path, dvt_ones(DVT_SHAPE(1, 2, 0), DVT_U8, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_REFUSED(dvt_save_image(path, dvt_astype(x, DVT_I64)), DVT_ERR_DTYPE, "expected uint8");
    CHECK_ERROR(dvt_save_image(path, dvt_astype(x, DVT_BOOL)), DVT_ERR_DTYPE);
    CHECK_REFUSED(
        dvt_save_image(path, DVT_ARRAY(int32_t, DVT_SHAPE(1, 2), dvt_cpu(), 65535, 65536)),
        DVT_ERR_RANGE, "element 1 is 65536");
    CHECK_REFUSED(dvt_save_image(path, DVT_ARRAY(int32_t, DVT_SHAPE(1, 1), dvt_cpu(), -1)),
                  DVT_ERR_RANGE, "element 0 is -1");
    CHECK_REFUSED(dvt_load_image(path, dvt_cpu()), DVT_ERR_IO, path); /* no file was created */
    CHECK(golden_write(path, "P5 1 1 255 ab", 13));
    CHECK_REFUSED(dvt_load_image(path, dvt_cpu()), DVT_ERR_FORMAT, path);
    CHECK_ERROR(dvt_load_image(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK(remove(path) == 0);
}

static char out_path[600];

static int save_one(void) {
    return dvt_save_image(out_path, dvt_ones(DVT_SHAPE(2, 3), DVT_F16, dvt_cpu())) == DVT_OK;
}

DVT_TEST(image_saving_out_of_memory) {
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.png"));
    CHECK(golden_out_of_memory(save_one) >= 5);
    CHECK(remove(out_path) == 0);
    snprintf(out_path, sizeof out_path, "%s", golden_temporary("o.pgm"));
    CHECK(golden_out_of_memory(save_one) >= 4);
    CHECK(remove(out_path) == 0);
}
#endif
