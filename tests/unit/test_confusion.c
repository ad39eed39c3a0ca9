/* Tests of confusion matrices and their images, and of logarithmic axes of curves. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)
#if !defined(DEVTENSOR_NO_FILES)
#include <unistd.h>
#endif

DVT_TEST(confusion_counts) {
    dvt_array *labels = DVT_ARRAY(int, DVT_SHAPE(7), dvt_cpu(), 0, 0, 1, 2, 2, 5, -1);
    dvt_array *numbers = DVT_ARRAY(float, DVT_SHAPE(7), dvt_cpu(), 0, 1, 1, 2, 0, 1, 1);
    dvt_array *scores = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 0.1f, 0.7f, 0.2f, 0, 0, 1);
    dvt_array *m = dvt_confusion_matrix(labels, numbers, 3);
    CHECK(dvt_dtype_of(m) == DVT_I64);
    CHECK(dvt_shape_equal(dvt_shape_of(m), DVT_SHAPE(3, 3)));
    CHECK_VALUES(m, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1); /* 5 and -1 are no classes */
    m = dvt_confusion_matrix(DVT_ARRAY(int, DVT_SHAPE(2), dvt_cpu(), 0, 2), scores, 3);
    CHECK_VALUES(m, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1);
    m = dvt_confusion_matrix(dvt_zeros(DVT_SHAPE(0), DVT_I32, dvt_cpu()),
                             dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_cpu()), 2);
    CHECK_VALUES(m, 0, 0, 0, 0, 0);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        m = dvt_confusion_matrix(dvt_copyto(labels, dvt_gpu(0)), dvt_copyto(numbers, dvt_gpu(0)),
                                 3);
        CHECK(dvt_ctx_equal(dvt_ctx_of(m), dvt_gpu(0)));
        CHECK_VALUES(m, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1);
        CHECK_ERROR(dvt_confusion_matrix(labels, dvt_copyto(numbers, dvt_gpu(0)), 3),
                    DVT_ERR_CONTEXT);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK_ERROR(dvt_confusion_matrix(labels, scores, 3), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_confusion_matrix(DVT_ARRAY(int, DVT_SHAPE(2), dvt_cpu(), 0, 2), scores, 4),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_confusion_matrix(labels, dvt_scalar(1, DVT_F32, dvt_cpu()), 3), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_confusion_matrix(labels, numbers, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_confusion_matrix(labels, NULL, 3), DVT_ERR_NULL_ARGUMENT);
}

#if !defined(DEVTENSOR_NO_FILES)
static const char *svg_path(void) {
    static char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/devtensor-%ld-image.svg", folder && folder[0] ? folder : "/tmp",
             (long)getpid());
    return path;
}

/* Returns the content of the image, and removes it; the caller frees the text. */
static char *svg_text(void) {
    char *text = (char *)calloc(1, 1 << 20);
    FILE *file = fopen(svg_path(), "rb");
    CHECK(file != NULL);
    if (file) {
        CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
        fclose(file);
    }
    remove(svg_path());
    return text;
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

DVT_TEST(confusion_image) {
    static const char *const names[] = {"cat", "d<g", "bird"};
    dvt_array *m = DVT_ARRAY(long long, DVT_SHAPE(3, 3), dvt_cpu(), 8, 2, 0, 0, 4, 0, 0, 0, 0);
    char *text;
    CHECK_INT(dvt_confusion_save(m, names, svg_path()), DVT_OK);
    text = svg_text();
    CHECK_INT(count_of(text, "<rect "), 10); /* the background and nine cells */
    CHECK_INT(count_of(text, ">cat</text>"), 2);
    CHECK_INT(count_of(text, ">d&lt;g</text>"), 2);
    /* 8 of 10: white text on four fifths of the color; 2 of 10: black text */
    CHECK_INT(count_of(text, "<rect x=\"120\" y=\"110\" width=\"44\" height=\"44\" "
                             "fill=\"#338ec1\"/>\n<text x=\"142.00\" y=\"136.00\" "
                             "text-anchor=\"middle\" fill=\"#ffffff\">8</text>"),
              1);
    CHECK_INT(count_of(text, "y=\"136.00\" text-anchor=\"middle\">2</text>"), 1);
    CHECK_INT(count_of(text, "fill=\"#0072b2\""), 1); /* 4 of 4 */
    CHECK_INT(count_of(text, ">12 of 14 correct</text>"), 1);
    CHECK(strstr(text, "</svg>\n") == text + strlen(text) - 7);
    free(text);
    CHECK_INT(
        dvt_confusion_save(dvt_ones(DVT_SHAPE(100, 100), DVT_F32, dvt_cpu()), NULL, svg_path()),
        DVT_OK);
    text = svg_text();
    CHECK_INT(count_of(text, ">99</text>"), 2);
    CHECK_INT(count_of(text, "<rect "), 10001);
    free(text);
    CHECK_ERROR(dvt_confusion_save(dvt_ones(DVT_SHAPE(101, 101), DVT_F32, dvt_cpu()), NULL, "x"),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_confusion_save(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), NULL, "x"),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_confusion_save(NULL, NULL, "x"), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_confusion_save(m, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_confusion_save(m, NULL, "/no/such/directory/x.svg"), DVT_ERR_IO);
}

/* ---- logarithmic axes ---- */
static char *curve_text(dvt_curve *curve) {
    CHECK_INT(dvt_curve_save(curve, svg_path()), DVT_OK);
    return svg_text();
}

DVT_TEST(curve_of_logarithms) {
    dvt_curve *curve = dvt_curve_new("loss", "step", "loss");
    char *text;
    int i;
    for (i = 0; i <= 4; i++) { /* 1, 10, 100, ... by 1, 0.1, 0.01, ... */
        CHECK_INT(dvt_curve_add(curve, "a", pow(10, i), pow(10, -i)), DVT_OK);
        CHECK_INT(dvt_curve_add(curve, "b", pow(10, i), 0), DVT_OK);
    }
    dvt_curve_add(curve, "b", -1, 1);
    CHECK_INT(dvt_curve_set_log(curve, true, true), DVT_OK);
    text = curve_text(curve);
    /* a straight line; the second series has no points that can be drawn */
    CHECK_INT(count_of(text, "72.00,44.00 194.00,124.00 316.00,204.00 438.00,284.00 "
                             "560.00,364.00\""),
              1);
    CHECK_INT(count_of(text, "points=\"\""), 1);
    CHECK_INT(count_of(text, "<circle"), 5);
    CHECK_INT(count_of(text, "text-anchor=\"end\">0.0001</text>"), 1);
    CHECK_INT(count_of(text, "text-anchor=\"middle\">1000</text>"), 1);
    free(text);
    CHECK_INT(dvt_curve_set_log(curve, false, false), DVT_OK);
    text = curve_text(curve);
    CHECK_INT(count_of(text, "<circle"), 11);
    free(text);
}

/* Up to three decades have ticks at 2 and 5. */
DVT_TEST(curve_of_few_decades) {
    dvt_curve *curve = dvt_curve_new("loss", "step", "loss");
    char *text;
    dvt_curve_add(curve, "a", 0, 2.3);
    dvt_curve_add(curve, "a", 1, 0.03);
    dvt_curve_set_log(curve, false, true);
    text = curve_text(curve);
    CHECK_INT(count_of(text, "text-anchor=\"end\">"), 9 - 1); /* 0.02 to 5 */
    CHECK(strstr(text, ">0.02</text>") && strstr(text, ">0.05</text>") &&
          strstr(text, ">0.1</text>") && strstr(text, ">2</text>") && strstr(text, ">5</text>"));
    free(text);
}

/* Empty curves, one point, the largest and smallest numbers: all positions are finite. */
DVT_TEST(curve_of_hard_logarithms) {
    static const double hard[] = {5e-324, 1e-300, 1e-299, 1, 1.0000000001, 999, 1e299, 1e300};
    const int n = (int)(sizeof hard / sizeof hard[0]);
    int i, k;
    for (i = -1; i < n; i++)
        for (k = i; k < n && (i >= 0 || k < 0); k++) {
            dvt_curve *curve = dvt_curve_new("hard", "x", "y");
            char *text;
            dvt_curve_set_log(curve, true, true);
            if (i >= 0) {
                dvt_curve_add(curve, "s", hard[i], hard[k]);
                dvt_curve_add(curve, "s", hard[k], hard[i]);
            }
            text = curve_text(curve);
            CHECK(!strstr(text, "nan") && !strstr(text, "inf") && !strstr(text, "--"));
            CHECK_INT(count_of(text, "<circle"),
                      i < 0 || hard[i] < 1e-300 || hard[k] < 1e-300 ? 0 : 2);
            CHECK(count_of(text, "<path") < 40);
            free(text);
        }
    CHECK_ERROR(dvt_curve_set_log(NULL, true, true), DVT_ERR_NULL_ARGUMENT);
}
#endif
#endif
