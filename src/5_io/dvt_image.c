/* Reads and writes images as arrays (height, width, channels). The format is found by content when
   reading and by the path's extension when writing. */
#include "5_io/dvt_formats.h"

/* ---- reading ---- */
static dvt_array *dvti_image_read(dvti_source *in, dvt_ctx ctx) {
    dvti_source_peek(in, 8);
    if (in->ready >= 8 && memcmp(in->at, "\x89PNG\r\n\x1a\n", 8) == 0)
        return dvti_png_read(in, ctx);
    if (in->ready >= 2 && in->at[0] == 'P' && in->at[1] && strchr("2356", in->at[1]))
        return dvti_netpbm_read(in, ctx);
    if (in->ready >= 2 && in->at[0] == 'P' && in->at[1] && strchr("147", in->at[1]))
        dvti_source_wrong(in, "this is a PBM or PAM file; convert it to PNG, PPM or PGM");
    else if (in->ready >= 3 && memcmp(in->at, "\xff\xd8\xff", 3) == 0)
        dvti_source_wrong(in, "this is a JPEG file; convert it to PNG, PPM or PGM");
    else
        dvti_source_other_format(in, "a PNG, PPM or PGM file");
    return NULL;
}

DVT_API dvt_array *dvt_read_image(const void *data, size_t bytes, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result;
    if (!data) {
        dvti_null("dvt_read_image", "data");
        return NULL;
    }
    dvti_source_memory(&in, "dvt_read_image", data, bytes);
    result = dvti_image_read(&in, ctx);
    dvti_source_close(&in);
    return result;
}

DVT_API dvt_array *dvt_load_image(const char *path, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result = NULL;
    if (dvti_source_open(&in, "dvt_load_image", path))
        result = dvti_image_read(&in, ctx);
    dvti_source_close(&in);
    return result;
}

/* ---- writing ---- */
typedef enum dvti_image_format {
    DVTI_IMAGE_NONE,
    DVTI_IMAGE_PNG,
    DVTI_IMAGE_PPM,
    DVTI_IMAGE_PGM
} dvti_image_format;

/* Finds the format by the extension, in small or capital letters. */
static dvti_image_format dvti_image_format_of(const char *path) {
    static const char *const known[] = {"", ".png", ".ppm", ".pgm"};
    int i = DVTI_LENGTH(known) - 1;
    while (i > 0 && !dvti_path_ends_with(path, known[i]))
        i--;
    return (dvti_image_format)i;
}

/* Fills the extents. Returns false with SHAPE set. */
static bool dvti_image_shape(dvti_image *image, const dvt_array *x, dvti_image_format format) {
    static const char *const expected[] = {
        "", "(height, width) or (height, width, 1 to 4 channels) with at least one pixel",
        "(height, width, 3) with at least one pixel",
        "(height, width) or (height, width, 1) with at least one pixel"};
    const dvt_shape *shape = &x->shape;
    int64_t channels = shape->ndim == 3 ? shape->dim[2] : 1, most = 0x7fffffff;
    int fewest = format == DVTI_IMAGE_PPM ? 3 : 1, largest = format == DVTI_IMAGE_PNG ? 4 : fewest;
    bool ok = (shape->ndim == 2 || shape->ndim == 3) && channels >= fewest && channels <= largest &&
              shape->dim[0] >= 1 && shape->dim[1] >= 1 && shape->dim[0] <= most &&
              shape->dim[1] <= most;
    if (!ok) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected %s", image->function, dvti_describe(x),
                  expected[format]);
        return false;
    }
    image->height = shape->dim[0];
    image->width = shape->dim[1];
    image->channels = (int)channels;
    return true;
}

/* Chooses how elements are stored. Returns false with DTYPE set. */
static bool dvti_image_dtype(dvti_image *image, const dvt_array *x) {
    image->dtype = dvt_dtype_is_float(x->dtype) ? DVT_F32 : x->dtype;
    image->bytes = image->dtype == DVT_I32 ? 2 : 1;
    if (image->dtype == DVT_F32 || image->dtype == DVT_I32 || image->dtype == DVT_U8)
        return true;
    dvti_fail(DVT_ERR_DTYPE,
              "%s: x is %s; expected uint8, int32 with values of 0 to 65535, or a float with "
              "values of 0 to 1: convert with dvt_astype",
              image->function, dvti_describe(x));
    return false;
}

/* Returns whether int32 elements fit in 16 bits. */
static bool dvti_image_check_values(const dvti_image *image) {
    int64_t n = image->height * image->width * image->channels, i;
    for (i = 0; image->dtype == DVT_I32 && i < n; i++) {
        int64_t value = dvti_signed(dvti_bytes_value(image->data + 4 * i, 4, false), 4);
        if (value < 0 || value > 65535) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: element %lld is %lld; expected 0 to 65535 for 16-bit samples: clip x, "
                      "or convert it to uint8",
                      image->function, (long long)i, (long long)value);
            return false;
        }
    }
    return true;
}

/* Returns 255 * value, rounded and clipped; 0 for NaN. */
static unsigned char dvti_image_byte(float value) {
    if (!(value > 0))
        return 0;
    return value >= 1 ? 255 : (unsigned char)(value * 255.0f + 0.5f);
}

DVTI_FN void dvti_image_row(const dvti_image *image, int64_t row, unsigned char *to) {
    int64_t n = image->width * image->channels, i;
    const unsigned char *from = image->data + row * n * (image->dtype == DVT_U8 ? 1 : 4);
    if (image->dtype == DVT_U8) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)dvti_bytes_value(from + 4 * i, 4, false);
        float value;
        if (image->dtype == DVT_I32) {
            to[2 * i] = (unsigned char)(bits >> 8);
            to[2 * i + 1] = (unsigned char)bits;
        } else {
            memcpy(&value, &bits, 4);
            to[i] = dvti_image_byte(value);
        }
    }
}

static dvt_status dvti_image_save(dvti_image *image, const char *path, dvt_array *x,
                                  dvti_image_format format) {
    dvt_array *host = dvti_stored_host(image->function, x, image->dtype);
    dvti_file_out out;
    if (!host)
        return dvti_failure();
    image->data = (const unsigned char *)dvti_view_of(host).data;
    if (!dvti_image_check_values(image) || !dvti_file_begin(&out, image->function, path))
        return dvti_failure();
    return dvti_file_end(&out, format == DVTI_IMAGE_PNG ? dvti_png_write(&out, image)
                                                        : dvti_netpbm_write(&out, image));
}

DVT_API dvt_status dvt_save_image(const char *path, dvt_array *x) {
    dvti_image image;
    dvti_image_format format;
    dvt_scope_guard scope;
    dvt_status status;
    memset(&image, 0, sizeof image);
    image.function = "dvt_save_image";
    if (!path || !x)
        return dvti_null(image.function, path ? "x" : "path");
    format = dvti_image_format_of(path);
    if (format == DVTI_IMAGE_NONE)
        return dvti_fail(DVT_ERR_NAME,
                         "%s: \"%.300s\" has no known extension; expected .png, .ppm or .pgm",
                         image.function, path);
    if (!dvti_image_shape(&image, x, format) || !dvti_image_dtype(&image, x))
        return dvti_failure();
    scope = dvt_scope_begin();
    status = dvti_image_save(&image, path, x, format);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN dvt_status dvti_image_encode(const char *function, dvt_array *x, dvti_writer *out,
                                     dvti_image *image) {
    dvt_array *host;
    dvti_file_out file;
    memset(image, 0, sizeof *image);
    memset(&file, 0, sizeof file);
    image->function = file.function = function;
    file.memory = out;
    if (!dvti_image_shape(image, x, DVTI_IMAGE_PNG) || !dvti_image_dtype(image, x))
        return dvti_failure();
    host = dvti_stored_host(function, x, image->dtype);
    if (!host)
        return dvti_failure();
    image->data = (const unsigned char *)dvti_view_of(host).data;
    if (!dvti_image_check_values(image) || !dvti_png_write(&file, image))
        return dvti_failure();
    return out->failed ? dvti_fail_memory(function, (int64_t)out->length) : DVT_OK;
}
