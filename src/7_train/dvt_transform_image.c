/* Transforms of images, (height, width, channels) of uint8 pixels: crops, flips, resizing, colors.
   Crops and flips are views. Resizing and colors compute with integers, so their bits are the same
   on all machines. Random ones draw from Philox: in a loader from its seed, the epoch and the
   number of the sample, so the threads of the loader do not matter. */
#include "1_base/dvt_rng.h"
#include "7_train/dvt_train_internal.h"

#define DVTI_IMAGE_EXTENT ((int64_t)1 << 20) /* the largest height and width of a result */

static DVTI_TLS dvti_sample_random dvti_this_sample;

DVTI_FN dvti_sample_random dvti_set_sample_random(dvti_sample_random random) {
    dvti_sample_random previous = dvti_this_sample;
    dvti_this_sample = random;
    return previous;
}

/* Draws 64 bits. Returns false with the error set. */
static bool dvti_sample_draw(uint64_t *bits) {
    dvti_sample_random *random = &dvti_this_sample;
    uint32_t counter[4], word[4];
    dvt_array *x;
    if (!random->on) {
        int64_t value;
        x = dvt_randint(INT64_MIN, INT64_MAX, DVT_SHAPE(1), DVT_I64, dvt_cpu());
        if (!x || !dvt_data(x))
            return false;
        memcpy(&value, dvt_data(x), sizeof value);
        *bits = (uint64_t)value;
        return true;
    }
    counter[0] = (uint32_t)random->draws;
    counter[1] = (uint32_t)(random->draws >> 32);
    counter[2] = (uint32_t)random->sample;
    counter[3] = (uint32_t)((uint64_t)random->sample >> 32);
    dvti_philox4x32(counter, random->key, word);
    *bits = (uint64_t)word[0] << 32 | word[1];
    random->draws++;
    return true;
}

/* Draws one of low, ..., high. */
static bool dvti_sample_between(int64_t low, int64_t high, int64_t *out) {
    uint64_t bits;
    if (!dvti_sample_draw(&bits))
        return false;
    *out = low + (int64_t)dvti_mulhi64(bits, (uint64_t)(high - low) + 1);
    return true;
}

/* ---- making ---- */
static dvt_transform *dvti_image_new(const char *function, dvti_transform_kind kind, int64_t height,
                                     int64_t width, int64_t padding) {
    dvt_transform *t;
    if (height < 1 || width < 1 || height > DVTI_IMAGE_EXTENT || width > DVTI_IMAGE_EXTENT) {
        dvti_fail(DVT_ERR_RANGE, "%s: height %lld and width %lld; expected 1 to %lld pixels",
                  function, (long long)height, (long long)width, (long long)DVTI_IMAGE_EXTENT);
        return NULL;
    }
    if (padding < 0 || padding > DVTI_IMAGE_EXTENT) {
        dvti_fail(DVT_ERR_RANGE, "%s: padding is %lld; expected 0 to %lld pixels", function,
                  (long long)padding, (long long)DVTI_IMAGE_EXTENT);
        return NULL;
    }
    t = dvti_transform_new(function, kind, 0);
    if (t) {
        t->extent[0] = height;
        t->extent[1] = width;
        t->extent[2] = padding;
    }
    return t;
}

DVT_API dvt_transform *dvt_transform_center_crop(int64_t height, int64_t width) {
    return dvti_image_new("dvt_transform_center_crop", DVTI_TRANSFORM_CENTER_CROP, height, width,
                          0);
}

DVT_API dvt_transform *dvt_transform_random_crop(int64_t height, int64_t width, int64_t padding) {
    return dvti_image_new("dvt_transform_random_crop", DVTI_TRANSFORM_RANDOM_CROP, height, width,
                          padding);
}

DVT_API dvt_transform *dvt_transform_resize(int64_t height, int64_t width) {
    return dvti_image_new("dvt_transform_resize", DVTI_TRANSFORM_RESIZE, height, width, 0);
}

DVT_API dvt_transform *dvt_transform_random_flip(double p) {
    dvt_transform *t;
    if (!(p >= 0 && p <= 1)) {
        dvti_fail(DVT_ERR_RANGE, "dvt_transform_random_flip: p is %g; expected a probability", p);
        return NULL;
    }
    t = dvti_transform_new("dvt_transform_random_flip", DVTI_TRANSFORM_RANDOM_FLIP, 0);
    if (t)
        t->amount[0] = p;
    return t;
}

DVT_API dvt_transform *dvt_transform_color_jitter(double brightness, double contrast,
                                                  double saturation) {
    double amount[3];
    dvt_transform *t;
    int i;
    amount[0] = brightness;
    amount[1] = contrast;
    amount[2] = saturation;
    for (i = 0; i < 3; i++)
        if (!(amount[i] >= 0 && amount[i] <= 100)) {
            dvti_fail(DVT_ERR_RANGE, "dvt_transform_color_jitter: %s is %g; expected 0 to 100",
                      i == 0   ? "brightness"
                      : i == 1 ? "contrast"
                               : "saturation",
                      amount[i]);
            return NULL;
        }
    t = dvti_transform_new("dvt_transform_color_jitter", DVTI_TRANSFORM_COLOR_JITTER, 0);
    if (t)
        memcpy(t->amount, amount, sizeof amount);
    return t;
}

/* ---- crops and flips ---- */
/* Returns the view of `height` rows and `width` columns. */
static dvt_array *dvti_image_part(dvt_array *x, int64_t top, int64_t left, int64_t height,
                                  int64_t width) {
    return dvt_slice(dvt_slice(x, 0, top, top + height, 1), 1, left, left + width, 1);
}

static dvt_array *dvti_image_too_small(const char *function, const dvt_transform *t,
                                       const dvt_array *x) {
    dvti_fail(
        DVT_ERR_SHAPE,
        "%s: x is %s, with a padding of %lld; expected at least (%lld, %lld, channels): apply "
        "dvt_transform_resize first",
        function, dvti_describe(x), (long long)t->extent[2], (long long)t->extent[0],
        (long long)t->extent[1]);
    return NULL;
}

static dvt_array *dvti_center_crop(const dvt_transform *t, dvt_array *x) {
    int64_t top = x->shape.dim[0] - t->extent[0], left = x->shape.dim[1] - t->extent[1];
    if (top < 0 || left < 0)
        return dvti_image_too_small("dvt_transform_center_crop", t, x);
    return dvti_image_part(x, top / 2, left / 2, t->extent[0], t->extent[1]);
}

static dvt_array *dvti_random_crop(const dvt_transform *t, dvt_array *x) {
    const int64_t *dim = x->shape.dim, *extent = t->extent, padding = t->extent[2];
    int64_t begin[2], first[2], last[2];
    dvt_array *y;
    int i;
    for (i = 0; i < 2; i++) {
        if (dim[i] + 2 * padding < extent[i])
            return dvti_image_too_small("dvt_transform_random_crop", t, x);
        if (!dvti_sample_between(-padding, dim[i] + padding - extent[i], &begin[i]))
            return NULL;
        first[i] = DVTI_MAX(begin[i], 0); /* the pixels of x in the result */
        last[i] = DVTI_MIN(begin[i] + extent[i], dim[i]);
    }
    if (last[0] - first[0] == extent[0] && last[1] - first[1] == extent[1])
        return dvti_image_part(x, begin[0], begin[1], extent[0], extent[1]);
    y = dvt_zeros(DVT_SHAPE(extent[0], extent[1], dim[2]), DVT_U8, x->storage->ctx);
    if (!y || last[0] <= first[0] || last[1] <= first[1])
        return y;
    return dvt_copy_into(
               dvti_image_part(y, first[0] - begin[0], first[1] - begin[1], last[0] - first[0],
                               last[1] - first[1]),
               dvti_image_part(x, first[0], first[1], last[0] - first[0], last[1] - first[1]))
               ? y
               : NULL;
}

static dvt_array *dvti_random_flip(const dvt_transform *t, dvt_array *x) {
    uint64_t bits;
    if (!dvti_sample_draw(&bits))
        return NULL;
    return (double)(bits >> 11) < t->amount[0] * 9007199254740992.0 /* 2^53 */
               ? dvt_slice(x, 1, -1, DVT_END, -1)
               : x;
}

/* ---- pixels in host memory ---- */
static const uint8_t *dvti_pixels(const char *function, dvt_array **x) {
    if (!dvti_is_host_memory((*x)->storage->ctx)) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: x is %s; images are transformed in host memory: copy it "
                  "with dvt_copyto(x, dvt_cpu())",
                  function, dvti_describe(*x));
        return NULL;
    }
    *x = dvt_contiguous(*x);
    return *x ? (const uint8_t *)dvt_data(*x) : NULL;
}

/* Returns value / 2^bits as a pixel. */
static uint8_t dvti_to_pixel(int64_t value, int bits) {
    return value <= 0 ? 0 : (uint8_t)DVTI_MIN(value >> bits, 255);
}

/* ---- resizing ---- */
/* The two pixels around the center of a new pixel. The weight of the second one is next / unit,
   that of the first one is the rest. */
typedef struct dvti_between {
    int64_t first, second, next, unit;
} dvti_between;

/* Center i + 1/2 of n lies at (i + 1/2) * from / n - 1/2 of the old pixels. It is moved to the
   first or the last one if it lies outside. */
static dvti_between dvti_resize_at(int64_t i, int64_t n, int64_t from) {
    dvti_between at;
    int64_t center = (2 * i + 1) * from - n;
    center = DVTI_MIN(DVTI_MAX(center, 0), 2 * n * (from - 1));
    at.unit = 2 * n;
    at.first = center / at.unit;
    at.next = center % at.unit;
    at.second = DVTI_MIN(at.first + 1, from - 1);
    return at;
}

static void dvti_resize_row(const uint8_t *from, int64_t width, uint8_t *to, int64_t n,
                            int64_t channels, dvti_between row) {
    const uint8_t *above = from + row.first * width * channels,
                  *below = from + row.second * width * channels;
    int64_t j, c;
    for (j = 0; j < n; j++) {
        dvti_between at = dvti_resize_at(j, n, width);
        const uint8_t *p[4];
        p[0] = above + at.first * channels;
        p[1] = above + at.second * channels;
        p[2] = below + at.first * channels;
        p[3] = below + at.second * channels;
        for (c = 0; c < channels; c++) {
            uint64_t left = (uint64_t)(at.unit - at.next), right = (uint64_t)at.next;
            uint64_t sum = (uint64_t)(row.unit - row.next) * (left * p[0][c] + right * p[1][c]) +
                           (uint64_t)row.next * (left * p[2][c] + right * p[3][c]);
            uint64_t unit = (uint64_t)row.unit * (uint64_t)at.unit;
            *to++ = (uint8_t)((sum + unit / 2) / unit);
        }
    }
}

static dvt_array *dvti_resize(const dvt_transform *t, dvt_array *x) {
    static const char *const function = "dvt_transform_resize";
    int64_t height = t->extent[0], width = t->extent[1], channels = x->shape.dim[2], i;
    const uint8_t *from;
    dvt_array *y;
    uint8_t *to;
    if (x->shape.dim[0] > DVTI_IMAGE_EXTENT || x->shape.dim[1] > DVTI_IMAGE_EXTENT) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected a height and a width of at most %lld",
                  function, dvti_describe(x), (long long)DVTI_IMAGE_EXTENT);
        return NULL;
    }
    from = dvti_pixels(function, &x);
    y = from ? dvti_array_new(function, DVT_SHAPE(height, width, channels), DVT_U8, x->storage->ctx)
             : NULL;
    if (!y)
        return NULL;
    to = (uint8_t *)dvti_view_of(y).data;
    for (i = 0; i < height; i++)
        dvti_resize_row(from, x->shape.dim[1], to + i * width * channels, width, channels,
                        dvti_resize_at(i, height, x->shape.dim[0]));
    return y;
}

/* ---- colors: factors in units of 2^-16 ---- */
#define DVTI_COLOR_ONE 65536

/* Draws a factor of max(0, 1 - amount) to 1 + amount; 1 without drawing if the amount is 0. */
static bool dvti_color_factor(double amount, int64_t *factor) {
    int64_t range = (int64_t)(amount * DVTI_COLOR_ONE + 0.5);
    *factor = DVTI_COLOR_ONE;
    return range == 0 ||
           dvti_sample_between(DVTI_MAX(DVTI_COLOR_ONE - range, 0), DVTI_COLOR_ONE + range, factor);
}

/* Returns 1000 times the brightness of a pixel, by ITU-R BT.601. Without three channels, their
   mean. */
static int64_t dvti_color_luma(const uint8_t *pixel, int64_t channels) {
    int64_t sum = 0, c;
    if (channels == 3)
        return 299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2];
    for (c = 0; c < channels; c++)
        sum += pixel[c];
    return 1000 * sum / channels;
}

static void dvti_color_brightness(uint8_t *pixel, int64_t size, int64_t factor) {
    int64_t i;
    for (i = 0; i < size; i++)
        pixel[i] = dvti_to_pixel(pixel[i] * factor + DVTI_COLOR_ONE / 2, 16);
}

/* Multiplies the distances to the mean brightness. */
static void dvti_color_contrast(uint8_t *pixel, int64_t n, int64_t channels, int64_t factor) {
    int64_t sum = 0, mean, i;
    for (i = 0; i < n; i++)
        sum += dvti_color_luma(pixel + i * channels, channels);
    mean = sum / n * DVTI_COLOR_ONE / 1000;
    for (i = 0; i < n * channels; i++)
        pixel[i] = dvti_to_pixel(mean * DVTI_COLOR_ONE +
                                     (pixel[i] * (int64_t)DVTI_COLOR_ONE - mean) * factor +
                                     ((int64_t)1 << 31),
                                 32);
}

/* Multiplies the distances of the channels to the pixel's brightness. */
static void dvti_color_saturation(uint8_t *pixel, int64_t n, int64_t factor) {
    int64_t i, c;
    for (i = 0; i < n; i++, pixel += 3) {
        int64_t gray = (dvti_color_luma(pixel, 3) + 500) / 1000;
        for (c = 0; c < 3; c++)
            pixel[c] = dvti_to_pixel(
                gray * DVTI_COLOR_ONE + (pixel[c] - gray) * factor + DVTI_COLOR_ONE / 2, 16);
    }
}

static dvt_array *dvti_color_jitter(const dvt_transform *t, dvt_array *x) {
    static const char *const function = "dvt_transform_color_jitter";
    int64_t channels = x->shape.dim[2], pixels = dvti_extents(x->shape.dim, 2), factor[3];
    const uint8_t *from;
    dvt_array *y;
    uint8_t *to;
    int i;
    if (t->amount[2] > 0 && channels != 3) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected 3 channels, or a saturation of 0", function,
                  dvti_describe(x));
        return NULL;
    }
    for (i = 0; i < 3; i++)
        if (!dvti_color_factor(t->amount[i], &factor[i]))
            return NULL;
    from = dvti_pixels(function, &x);
    y = from ? dvti_array_new(function, x->shape, DVT_U8, x->storage->ctx) : NULL;
    if (!y)
        return NULL;
    to = (uint8_t *)dvti_view_of(y).data;
    memcpy(to, from, (size_t)dvt_nbytes(y));
    if (factor[0] != DVTI_COLOR_ONE)
        dvti_color_brightness(to, dvt_nbytes(y), factor[0]);
    if (factor[1] != DVTI_COLOR_ONE)
        dvti_color_contrast(to, pixels, channels, factor[1]);
    if (factor[2] != DVTI_COLOR_ONE)
        dvti_color_saturation(to, pixels, factor[2]);
    return y;
}

/* ---- applying ---- */
DVTI_FN dvt_array *dvti_transform_image(const dvt_transform *t, dvt_array *x) {
    if (x->dtype != DVT_U8) {
        dvti_fail(DVT_ERR_DTYPE,
                  "dvt_transform_apply: x is %s; transforms of images expect uint8 pixels: apply "
                  "them before dvt_transform_to_tensor",
                  dvti_describe(x));
        return NULL;
    }
    if (x->shape.ndim != 3 || !dvti_has_elements(&x->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_transform_apply: x is %s; transforms of images expect one image (height, "
                  "width, channels), not empty",
                  dvti_describe(x));
        return NULL;
    }
    switch (t->kind) {
    case DVTI_TRANSFORM_CENTER_CROP:
        return dvti_center_crop(t, x);
    case DVTI_TRANSFORM_RANDOM_CROP:
        return dvti_random_crop(t, x);
    case DVTI_TRANSFORM_RANDOM_FLIP:
        return dvti_random_flip(t, x);
    case DVTI_TRANSFORM_RESIZE:
        return dvti_resize(t, x);
    default:
        return dvti_color_jitter(t, x);
    }
}

#undef DVTI_IMAGE_EXTENT
#undef DVTI_COLOR_ONE
