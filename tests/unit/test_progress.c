/* Tests of progress lines and training curves. Their text is a function of the state, so it is
   compared completely. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)
#include <unistd.h>

/* Redirects stderr, to which progress is printed, away from the terminal. */
static int hide_stderr(void) {
    FILE *file = tmpfile();
    int kept = dup(2);
    CHECK(file && kept >= 0);
    fflush(stderr);
    if (file)
        dup2(fileno(file), 2);
    if (file)
        fclose(file);
    return kept;
}

static void show_stderr(int kept) {
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
}

static const char *line_of(const dvt_progress *p, double seconds, int width) {
    static char line[512];
    size_t length = dvt_progress_format(p, seconds, width, line, sizeof line);
    CHECK_INT(length, strlen(line));
    return line;
}

DVT_TEST(progress_plain_line) {
    const int kept = hide_stderr();
    dvt_progress *p = dvt_progress_new("epoch 1", 60000);
    dvt_progress_update(p, 27000, 0.43214);
    CHECK_STR(line_of(p, 10, 0), "epoch 1  45%  27000/60000  2700/s  loss 0.4321  0:12 left");
    dvt_progress_update(p, 27000, (double)NAN);
    CHECK_STR(line_of(p, 10, 0), "epoch 1  45%  27000/60000  2700/s  0:12 left");
    CHECK_STR(line_of(p, 0, 0), "epoch 1  45%  27000/60000");
    dvt_progress_update(p, 60000, 1e-5);
    CHECK_STR(line_of(p, 3723.2, 0), "epoch 1 100%  60000/60000  16.1/s  loss 0.0000  in 1:02:03");
    dvt_progress_update(p, 1, (double)NAN);
    CHECK_STR(line_of(p, 4, 0), "epoch 1   0%  1/60000  0.25/s  66:39:56 left");
    show_stderr(kept);
}

DVT_TEST(progress_bar) {
    const int kept = hide_stderr();
    dvt_progress *p = dvt_progress_new("train", 8);
    dvt_progress_update(p, 4, 0.5);
    CHECK_STR(line_of(p, 2, 79),
              "train  50% [==============>              ]  4/8  2.00/s  loss 0.5000  0:02 left");
    CHECK_STR(line_of(p, 2, 120),
              "train  50% [====================>                   ]  4/8  2.00/s  loss 0.5000  "
              "0:02 left");
    CHECK_STR(line_of(p, 2, 58), "train  50% [====>   ]  4/8  2.00/s  loss 0.5000  0:02 left");
    CHECK_STR(line_of(p, 2, 54), "train  50%  4/8  2.00/s  loss 0.5000  0:02 left");
    CHECK_STR(line_of(p, 2, 43), "t  50%  4/8  2.00/s  loss 0.5000  0:02 left");
    CHECK_STR(line_of(p, 2, 12), "4/8  2.00/s ");
    dvt_progress_update(p, 8, 0.5);
    CHECK(strstr(line_of(p, 2, 79), "==]") != NULL);
    CHECK(strchr(line_of(p, 2, 79), '>') == NULL);
    dvt_progress_update(p, 0, 0.5);
    CHECK(strstr(line_of(p, 2, 79), "[>  ") != NULL);
    dvt_progress_finish(p);
    show_stderr(kept);
}

/* The line fits into every width, for titles of every kind. */
DVT_TEST(progress_fits_any_width) {
    const int kept = hide_stderr();
    static const char *const titles[] = {
        "", "short", "a title that is much longer than the width of a narrow terminal",
        "\xe8\xae\xad\xe7\xbb\x83\xe4\xb8\x80\xe4\xb8\xaa\xe7\xbd\x91\xe7\xbb\x9c"};
    int i, width;
    for (i = 0; i < 4; i++) {
        dvt_progress *p = dvt_progress_new(titles[i], 1000000000);
        dvt_progress_update(p, 123456789, 12.5);
        for (width = 1; width < 140; width++) {
            const char *line = line_of(p, 60, width), *c;
            int columns = 0;
            for (c = line; *c; c++)
                columns += ((unsigned char)*c & 0xC0) == 0x80 ? 0
                           : (unsigned char)*c >= 0xE3        ? 2
                                                              : 1;
            CHECK(columns <= width);
            CHECK(((unsigned char)line[0] & 0xC0) != 0x80);
        }
    }
    show_stderr(kept);
}

DVT_TEST(progress_corners) {
    const int kept = hide_stderr();
    dvt_progress *p = dvt_progress_new("none", 0);
    char small[8];
    dvt_progress_update(p, 5, 1);
    CHECK_STR(line_of(p, 1, 80), "");
    dvt_progress_finish(p);
    p = dvt_progress_new(NULL, 10);
    dvt_progress_update(p, -3, (double)NAN);
    CHECK_STR(line_of(p, 1, 0), "  0%  0/10");
    dvt_progress_update(p, 1000, (double)NAN);
    CHECK_STR(line_of(p, 5, 0), "100%  10/10  2.00/s  in 0:05");
    dvt_progress_finish(p);
    dvt_progress_finish(p);
    p = dvt_progress_new("two\nlines", 10);
    CHECK_STR(line_of(p, 1, 0), "two lines   0%  0/10");
    CHECK_INT(dvt_progress_format(p, 1, 0, small, sizeof small), 20);
    CHECK_STR(small, "two lin");
    CHECK_INT(dvt_progress_format(p, 1, 0, NULL, 0), 20);
    CHECK_INT(dvt_progress_format(NULL, 1, 0, small, sizeof small), 0);
    dvt_progress_update(NULL, 1, 1);
    dvt_progress_finish(NULL);
    show_stderr(kept);
}

/* ---- curves ---- */
#if !defined(DEVTENSOR_NO_FILES)
#include <unistd.h>

static const char *scratch(const char *name) {
    static char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/devtensor-%ld-%s", folder && folder[0] ? folder : "/tmp",
             (long)getpid(), name);
    return path;
}

/* Returns the file that the curve writes; the caller frees it. */
static char *svg_of(dvt_curve *curve) {
    const char *path = scratch("curve.svg");
    char *text = (char *)calloc(1, 1 << 20);
    FILE *file;
    CHECK_INT(dvt_curve_save(curve, path), DVT_OK);
    file = fopen(path, "rb");
    CHECK(file != NULL);
    if (file) {
        CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
        fclose(file);
    }
    remove(path);
    return text;
}

static int occurrences(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

/* Checks the XML that we write: every element is closed, in order, and no forbidden character
   remains. */
static void check_xml(const char *text) {
    char open[16][32];
    int depth = 0;
    const char *at;
    for (at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        CHECK(c >= 0x20 || c == '\n');
        if (*at == '&')
            CHECK(strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&lt;", 4) == 0 ||
                  strncmp(at, "&gt;", 4) == 0 || strncmp(at, "&quot;", 6) == 0);
        if (*at != '<')
            continue;
        if (at[1] == '?') {
            at = strchr(at, '>');
        } else if (at[1] == '/') {
            size_t n = strcspn(at + 2, ">");
            if (!CHECK(depth > 0 && strlen(open[depth - 1]) == n &&
                       strncmp(open[depth - 1], at + 2, n) == 0))
                return;
            depth--;
            at = strchr(at, '>');
        } else {
            size_t n = strcspn(at + 1, " >/");
            const char *end = strchr(at, '>');
            if (!CHECK(end != NULL && n < 32 && depth < 16))
                return;
            if (end[-1] != '/') {
                memcpy(open[depth], at + 1, n);
                open[depth++][n] = 0;
            }
            at = end;
        }
    }
    CHECK_INT(depth, 0);
}

DVT_TEST(curve_draws_series) {
    dvt_curve *curve = dvt_curve_new("LeNet", "epoch", "loss");
    char *text;
    int i;
    for (i = 0; i < 10; i++) {
        CHECK_INT(dvt_curve_add(curve, "training", i, 2.0 / (i + 1)), DVT_OK);
        CHECK_INT(dvt_curve_add(curve, "test", i, 2.2 / (i + 1)), DVT_OK);
    }
    CHECK_INT(dvt_curve_add(curve, "test", 10, (double)NAN), DVT_OK);
    CHECK_INT(dvt_curve_add(curve, "test", (double)INFINITY, 1), DVT_OK);
    text = svg_of(curve);
    check_xml(text);
    CHECK_INT(occurrences(text, "<polyline"), 2);
    CHECK_INT(occurrences(text, "<circle"), 20);
    CHECK(strstr(text, ">LeNet</text>") && strstr(text, ">epoch</text>"));
    CHECK(strstr(text, ">training</text>") && strstr(text, ">test</text>"));
    CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
    /* x from 0 to 10 in steps of 2, y from 0 to 2.5 in steps of 0.5: the ends of the axes and two
       points. */
    CHECK(strstr(text, "text-anchor=\"middle\">10</text>") != NULL);
    CHECK(strstr(text, "text-anchor=\"end\">2.5</text>") != NULL);
    CHECK(strstr(text, "text-anchor=\"end\">3.0</text>") == NULL);
    CHECK(strstr(text, "points=\"72.00,108.00 120.80,236.00 ") != NULL);
    free(text);
}

DVT_TEST(curve_escapes_text) {
    dvt_curve *curve =
        dvt_curve_new("a < b && \"c\"", "\x01\xff\xc0\xaf", "\xe8\xae\xad\xef\xbf\xbf");
    char *text;
    CHECK_INT(dvt_curve_add(curve, "</text>", 1, 1), DVT_OK);
    text = svg_of(curve);
    check_xml(text);
    CHECK(strstr(text, ">a &lt; b &amp;&amp; &quot;c&quot;</text>") != NULL);
    CHECK(strstr(text, ">&lt;/text&gt;</text>") != NULL);
    CHECK(strstr(text, ">\?\?\?\?</text>") != NULL);
    CHECK(strstr(text, ">\xe8\xae\xad\?\?\?</text>") != NULL);
    free(text);
}

DVT_TEST(curve_corners) {
    static const double hard[] = {0,    1e-320,    -1e-300, 1e300,  -1e300,  1e308,
                                  5e-7, 123456789, 1e12,    -1e308, 1.7e308, -1.7e308};
    dvt_curve *curve = dvt_curve_new(NULL, NULL, NULL);
    char *text = svg_of(curve);
    int i, k;
    check_xml(text); /* no points: the axes go from 0 to 1 */
    CHECK(strstr(text, ">1.0</text>") != NULL);
    free(text);
    for (i = 0; i < 12; i++)
        for (k = 0; k < 12; k++) {
            DVT_SCOPE {
                curve = dvt_curve_new("hard", "x", "y");
                dvt_curve_add(curve, "s", i, hard[i]);
                dvt_curve_add(curve, "s", k, hard[k]);
                text = svg_of(curve);
                check_xml(text);
                CHECK(occurrences(text, "<text") > 6 && occurrences(text, "<text") < 40);
                CHECK(strlen(text) < 20000);
                CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
                CHECK_INT(occurrences(text, "<circle"), 2);
                free(text);
            }
        }
    curve = dvt_curve_new("range beyond float64", "x", "y");
    for (i = 0; i < 3; i++)
        dvt_curve_add(curve, "s", i, (i - 1) * 1e308);
    text = svg_of(curve);
    CHECK(strstr(text, ">-1.0e308</text>") != NULL && strstr(text, ">1.0e308</text>") != NULL);
    CHECK(strstr(text, "points=\"72.00,364.00 ") != NULL); /* the lower end of the axis */
    free(text);
    DVT_SCOPE {
        curve = dvt_curve_new("logarithmic", "x", "y");
        CHECK_INT(dvt_curve_set_log(curve, false, true), DVT_OK);
        dvt_curve_add(curve, "s", 1, 1.2e308);
        dvt_curve_add(curve, "s", 2, 1.7e308);
        text = svg_of(curve);
        CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
        CHECK_INT(occurrences(text, "<circle"), 2);
        free(text);
    }
    curve = dvt_curve_new("long", "x", "y");
    for (i = 0; i < 1000; i++)
        dvt_curve_add(curve, "s", i, 1e9 + 1e8 * sin(i * 0.01));
    text = svg_of(curve);
    check_xml(text);
    CHECK_INT(occurrences(text, "<circle"), 0);
    CHECK(strstr(text, ">1.10e9</text>") != NULL || strstr(text, ">1.1e9</text>") != NULL);
    free(text);
    CHECK_ERROR(dvt_curve_add(NULL, "s", 1, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_curve_add(curve, NULL, 1, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_curve_save(NULL, "x"), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_curve_save(curve, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_curve_save(curve, "/nowhere/at/all.svg"), DVT_ERR_IO);
}
#else
DVT_TEST(curve_without_files) {
    dvt_curve *curve = dvt_curve_new("a", "b", "c");
    CHECK_INT(dvt_curve_add(curve, "s", 1, 1), DVT_OK);
    CHECK_ERROR(dvt_curve_save(curve, "x.svg"), DVT_ERR_NOT_BUILT);
}
#endif
#endif
