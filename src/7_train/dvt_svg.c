/* Parts that SVG images share: numbers that ignore the locale, escaped text, lines, the file. */
#include "7_train/dvt_train_internal.h"

DVTI_FN void dvti_svg_fixed(dvti_writer *out, double value, int decimals) {
    int64_t unit = 1, number;
    int i;
    for (i = 0; i < decimals; i++)
        unit *= 10;
    number = (int64_t)(fabs(value) * (double)unit + 0.5);
    if (value < 0 && number)
        dvti_writer_text(out, "-");
    dvti_writer_int(out, number / unit);
    for (number %= unit, i = 0; i < decimals; i++) {
        unit /= 10;
        if (i == 0)
            dvti_writer_text(out, ".");
        dvti_writer_int(out, number / unit);
        number %= unit;
    }
}

/* Returns the length of the UTF-8 character at `at`, or 0 when it is invalid or XML 1.0 forbids
   it. */
static int dvti_utf8_length(const unsigned char *at) {
    uint32_t c = at[0], least;
    int n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0, i;
    if (n < 2)
        return n && (c >= 0x20 || c == '\t' || c == '\n' || c == '\r') ? 1 : 0;
    least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
    c &= 0x7Fu >> n;
    for (i = 1; i < n; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3Fu);
    }
    return c < least || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) || c == 0xFFFE || c == 0xFFFF
               ? 0
               : n;
}

static void dvti_svg_escape(dvti_writer *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        int n = dvti_utf8_length(at);
        if (*at == '&')
            dvti_writer_text(out, "&amp;");
        else if (*at == '<')
            dvti_writer_text(out, "&lt;");
        else if (*at == '>')
            dvti_writer_text(out, "&gt;");
        else if (*at == '"')
            dvti_writer_text(out, "&quot;");
        else if (n)
            dvti_writer_bytes(out, at, (size_t)n);
        else
            dvti_writer_text(out, "?");
        at += n ? n : 1;
    }
}

DVTI_FN void dvti_svg_text(dvti_writer *out, double x, double y, const char *attributes,
                           const char *content) {
    dvti_writer_text(out, "<text x=\"");
    dvti_svg_fixed(out, x, 2);
    dvti_writer_text(out, "\" y=\"");
    dvti_svg_fixed(out, y, 2);
    dvti_writer_text(out, "\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, ">");
    dvti_svg_escape(out, content);
    dvti_writer_text(out, "</text>\n");
}

DVTI_FN void dvti_svg_line(dvti_writer *out, double x1, double y1, double x2, double y2,
                           const char *attributes) {
    dvti_writer_text(out, "<path d=\"M");
    dvti_svg_fixed(out, x1, 2);
    dvti_writer_text(out, " ");
    dvti_svg_fixed(out, y1, 2);
    dvti_writer_text(out, " L");
    dvti_svg_fixed(out, x2, 2);
    dvti_writer_text(out, " ");
    dvti_svg_fixed(out, y2, 2);
    dvti_writer_text(out, "\" fill=\"none\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, "/>\n");
}

DVTI_FN void dvti_svg_begin(dvti_writer *out, int width, int height) {
    char head[400];
    snprintf(head, sizeof head,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
             width, height, width, height, width, height);
    dvti_writer_text(out, head);
}

DVTI_FN dvt_status dvti_svg_save(const char *function, const char *path, dvti_writer *text) {
    dvti_file_out file;
    dvt_status status;
    if (text->failed) {
        status = dvti_fail_memory(function, (int64_t)text->length);
    } else if (!dvti_file_begin(&file, function, path)) {
        status = dvti_failure();
    } else {
        dvti_file_write(&file, text->at, text->length);
        status = dvti_file_end(&file, true);
    }
    dvti_writer_free(text);
    return status;
}
