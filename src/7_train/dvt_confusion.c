/* Confusion matrices: counted where the arrays are, by one product of one-hot matrices, and drawn
   as an SVG image of colored cells. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

/* Returns the classes as int64 (N); scores become the class of the largest one. */
static dvt_array *dvti_confusion_classes(dvt_array *x, bool scores) {
    x = dvt_as_in_dtype(scores ? dvt_argmax(x, DVT_AXES(-1)) : x, DVT_I64);
    return dvt_reshape(x, DVT_SHAPE(-1));
}

/* Every product is 0 or 1, so float64 counts exactly to 2^53. */
static dvt_array *dvti_confusion_count(dvt_array *labels, dvt_array *predictions, bool scores,
                                       int64_t classes) {
    dvt_array *row = dvt_one_hot(dvti_confusion_classes(labels, false), classes, DVT_F64);
    dvt_array *column = dvt_one_hot(dvti_confusion_classes(predictions, scores), classes, DVT_F64);
    return dvt_astype(dvt_matmul(dvt_t(row), column), DVT_I64);
}

DVT_API dvt_array *dvt_confusion_matrix(dvt_array *labels, dvt_array *predictions,
                                        int64_t classes) {
    static const char *const function = "dvt_confusion_matrix";
    static const char *const names[] = {"labels", "predictions"};
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array *in[2], *matrix;
    dvt_shape rows;
    bool scores;
    in[0] = labels;
    in[1] = predictions;
    if (!dvti_check_named(function, in, 2, names))
        return NULL;
    if (classes < 1 || classes > 65536) {
        dvti_fail(DVT_ERR_RANGE, "%s: classes is %lld; expected 1 to 65536", function,
                  (long long)classes);
        return NULL;
    }
    scores = !dvt_shape_equal(labels->shape, predictions->shape);
    rows = predictions->shape;
    if (scores && (rows.ndim == 0 || rows.dim[--rows.ndim] != classes ||
                   !dvt_shape_equal(labels->shape, rows))) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: labels are %s and predictions are %s; expected predictions of the labels' "
                  "shape and one more axis of %lld classes, or class numbers in the labels' shape",
                  function, dvti_describe(labels), dvti_describe(predictions), (long long)classes);
        return NULL;
    }
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    matrix = dvti_confusion_count(labels, predictions, scores, classes);
    dvt_keep(matrix);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return matrix;
}

/* ---- the image ---- */
#define DVTI_CONFUSION_MOST 100
#define DVTI_CONFUSION_LEFT 120
#define DVTI_CONFUSION_TOP 110

/* Returns the number of characters, which are about 7 pixels wide. */
static int dvti_confusion_width(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xC0) != 0x80;
    return 7 * n;
}

/* Mixes white with the color #0072b2. Source: Okabe and Ito, 2008. */
static void dvti_confusion_cell(dvti_writer *out, double x, double y, int size, double share) {
    char rest[64];
    dvti_writer_text(out, "<rect x=\"");
    dvti_svg_fixed(out, x, 0);
    dvti_writer_text(out, "\" y=\"");
    dvti_svg_fixed(out, y, 0);
    snprintf(rest, sizeof rest, "\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>\n", size,
             size, (int)(255.5 - 255 * share), (int)(255.5 - (255 - 0x72) * share),
             (int)(255.5 - (255 - 0xb2) * share));
    dvti_writer_text(out, rest);
}

static const char *dvti_confusion_name(char *buffer, const char *const *names, int64_t i) {
    if (names)
        return names[i];
    snprintf(buffer, 24, "%lld", (long long)i);
    return buffer;
}

/* Rows and columns have their names outside, cells their counts where these fit. */
static void dvti_confusion_write(dvti_writer *out, const int64_t *count, int64_t n,
                                 const char *const *names) {
    const int size = n <= 12 ? 44 : n <= 30 ? 30 : 14;
    const int left = DVTI_CONFUSION_LEFT, top = DVTI_CONFUSION_TOP;
    const int end = size * (int)n;
    int64_t all = 0, right = 0, i, k;
    char text[80];
    dvti_svg_begin(out, left + end + 24, top + end + 24);
    for (i = 0; i < n; i++) {
        const char *name = dvti_confusion_name(text, names, i);
        const double middle = size * ((double)i + 0.5);
        const char *smaller = size < 20                                ? " font-size=\"9\""
                              : dvti_confusion_width(name) > left - 40 ? " font-size=\"8\""
                                                                       : "";
        char attributes[120];
        double row = 0;
        snprintf(attributes, sizeof attributes, " text-anchor=\"end\"%s", smaller);
        dvti_svg_text(out, left - 6, top + middle + 4, attributes, name);
        snprintf(attributes, sizeof attributes, " transform=\"translate(%d %d) rotate(-90)\"%s",
                 left + (int)middle + 4, top - 6, smaller);
        dvti_svg_text(out, 0, 0, attributes, name);
        for (k = 0; k < n; k++)
            row += (double)count[i * n + k];
        for (k = 0; k < n; k++) {
            const int64_t c = count[i * n + k];
            const double share = row > 0 ? (double)c / row : 0;
            dvti_confusion_cell(out, left + size * (double)k, top + size * (double)i, size, share);
            all += c;
            right += i == k ? c : 0;
            snprintf(text, sizeof text, "%lld", (long long)c);
            if (size >= 30 && c && dvti_confusion_width(text) <= size)
                dvti_svg_text(out, left + size * ((double)k + 0.5), top + middle + 4,
                              share > 0.5 ? " text-anchor=\"middle\" fill=\"#ffffff\""
                                          : " text-anchor=\"middle\"",
                              text);
        }
    }
    for (i = 0; i <= n; i++) { /* the grid */
        const double at = size * (double)i;
        dvti_svg_line(out, left, top + at, left + end, top + at, " stroke=\"#bbbbbb\"");
        dvti_svg_line(out, left + at, top, left + at, top + end, " stroke=\"#bbbbbb\"");
    }
    dvti_svg_text(out, left + end / 2.0, 20, " text-anchor=\"middle\" font-size=\"14\"",
                  "Predicted class");
    dvti_svg_text(out, -(top + end / 2.0), 18,
                  " text-anchor=\"middle\" font-size=\"14\" transform=\"rotate(-90)\"", "Label");
    snprintf(text, sizeof text, "%lld of %lld correct", (long long)right, (long long)all);
    dvti_svg_text(out, left + end, top + end + 18, " text-anchor=\"end\"", text);
    dvti_writer_text(out, "</svg>\n");
}

static dvt_status dvti_confusion_check(const char *function, dvt_array *matrix,
                                       const char *const *names, const char *path) {
    const int64_t *dim;
    int64_t i;
    if (!matrix || !path)
        return dvti_null(function, matrix ? "path" : "matrix");
    dim = matrix->shape.dim;
    if (matrix->shape.ndim != 2 || dim[0] != dim[1] || dim[0] < 1 || dim[0] > DVTI_CONFUSION_MOST)
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: matrix is %s; expected (classes, classes) with 1 to %d classes, as "
                         "dvt_confusion_matrix returns it",
                         function, dvti_describe(matrix), DVTI_CONFUSION_MOST);
    for (i = 0; names && i < dim[0]; i++)
        if (!names[i])
            return dvti_null(function, "a name");
    return DVT_OK;
}

DVT_API dvt_status dvt_confusion_save(dvt_array *matrix, const char *const *names,
                                      const char *path) {
    static const char *const function = "dvt_confusion_save";
    dvt_status status = dvti_confusion_check(function, matrix, names, path);
    dvt_scope_guard scope;
    dvti_float_mode mode;
    dvti_writer text;
    dvt_array *host;
    if (status != DVT_OK)
        return status;
    scope = dvt_scope_begin();
    host = dvti_host_array(function, matrix, DVT_I64, false);
    status = host ? DVT_OK : dvti_failure();
    if (host) {
        text = dvti_writer_begin();
        mode = dvti_float_mode_begin();
        dvti_confusion_write(&text, (const int64_t *)dvti_view_of(host).data, host->shape.dim[0],
                             names);
        dvti_float_mode_end(&mode);
        status = dvti_svg_save(function, path, &text);
    }
    dvt_scope_end(&scope);
    return status;
}

#undef DVTI_CONFUSION_MOST
#undef DVTI_CONFUSION_LEFT
#undef DVTI_CONFUSION_TOP
