/* Training curves as an SVG image: axes with round ticks, one line per series, a legend. The text
   depends on the points only: it has no dates and ignores the locale. Points with a NaN or an
   infinity are not drawn. */
#include "1_base/dvt_float_mode.h"
#include "5_io/dvt_io_internal.h"
#include "7_train/dvt_train_internal.h"

/* The rectangle of the axes, in an image of 720 x 420 pixels. */
#define DVTI_CURVE_LEFT 72
#define DVTI_CURVE_RIGHT 560
#define DVTI_CURVE_TOP 44
#define DVTI_CURVE_BOTTOM 364
/* Lines with at most this many points show them as dots. */
#define DVTI_CURVE_DOTS 50

typedef struct dvti_series {
    char *name;
    double *x, *y;
    size_t n, x_capacity, y_capacity;
} dvti_series;

struct dvt_curve {
    dvti_object object;
    char *title, *x_label, *y_label;
    dvti_series *series;
    size_t n, capacity;
    bool log_x, log_y;
};

static void dvti_curve_destroy(void *object) {
    dvt_curve *curve = (dvt_curve *)object;
    size_t i;
    for (i = 0; i < curve->n; i++) {
        dvti_free(curve->series[i].name);
        dvti_free(curve->series[i].x);
        dvti_free(curve->series[i].y);
    }
    dvti_free(curve->series);
    dvti_free(curve->title);
    dvti_free(curve->x_label);
    dvti_free(curve->y_label);
    dvti_free(curve);
}

DVT_API dvt_curve *dvt_curve_new(const char *title, const char *x_label, const char *y_label) {
    dvt_curve *curve = (dvt_curve *)dvti_alloc_zero(sizeof *curve);
    bool ok = curve != NULL;
    if (ok) {
        curve->title = dvti_strdup(title ? title : "");
        curve->x_label = dvti_strdup(x_label ? x_label : "");
        curve->y_label = dvti_strdup(y_label ? y_label : "");
        ok = curve->title && curve->x_label && curve->y_label;
    }
    if (!ok)
        dvti_fail_memory("dvt_curve_new", (int64_t)sizeof *curve);
    if (!ok || !dvti_object_begin(curve, dvti_curve_destroy, "dvt_curve_new")) {
        if (curve)
            dvti_curve_destroy(curve);
        return NULL;
    }
    return curve;
}

static dvti_series *dvti_curve_series(dvt_curve *curve, const char *name) {
    dvti_series *series;
    size_t i;
    for (i = 0; i < curve->n; i++)
        if (strcmp(curve->series[i].name, name) == 0)
            return &curve->series[i];
    if (!dvti_grow((void **)&curve->series, &curve->capacity, curve->n + 1, sizeof *series))
        return NULL;
    series = &curve->series[curve->n];
    memset(series, 0, sizeof *series);
    series->name = dvti_strdup(name);
    if (!series->name)
        return NULL;
    curve->n++;
    return series;
}

DVT_API dvt_status dvt_curve_add(dvt_curve *curve, const char *series, double x, double y) {
    dvti_series *s;
    if (!curve || !series)
        return dvti_null("dvt_curve_add", curve ? "series" : "curve");
    s = dvti_curve_series(curve, series);
    if (!s || !dvti_grow((void **)&s->x, &s->x_capacity, s->n + 1, sizeof *s->x) ||
        !dvti_grow((void **)&s->y, &s->y_capacity, s->n + 1, sizeof *s->y))
        return dvti_fail_memory("dvt_curve_add", (int64_t)sizeof *s);
    if (!(fabs(x) <= DBL_MAX) || !(fabs(y) <= DBL_MAX))
        return DVT_OK;
    s->x[s->n] = x;
    s->y[s->n++] = y;
    return DVT_OK;
}

DVT_API dvt_status dvt_curve_set_log(dvt_curve *curve, bool x, bool y) {
    if (!curve)
        return dvti_null("dvt_curve_set_log", "curve");
    curve->log_x = x;
    curve->log_y = y;
    return DVT_OK;
}

/* ---- axes ---- */
typedef struct dvti_scale {
    double low, high, step; /* of a logarithmic axis: decimal logarithms */
    int ticks;              /* steps from low to high */
    bool log;
    int first; /* logarithmic: ticks are 1, 2 and 5 times powers of ten, from this one */
    bool fine; /* those with 2 and 5, too */
} dvti_scale;

/* Rounds up to 1, 2 or 5 times a power of ten. */
static double dvti_round_step(double rough) {
    double power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static double dvti_scale_linear(const dvti_scale *scale, int i) {
    return DVTI_MIN(2 * (0.5 * scale->low + i * (0.5 * scale->step)), DBL_MAX);
}

/* Returns round bounds around the data; a single value gets a margin. */
static dvti_scale dvti_scale_make(double low, double high) {
    dvti_scale scale;
    double least;
    memset(&scale, 0, sizeof scale);
    if (!(low <= high)) { /* no points */
        low = 0;
        high = 1;
    }
    least = 1e-9 * DVTI_MAX(fabs(low), fabs(high));
    if (high - low <= DVTI_MAX(least, 1e-300)) {
        double margin = DVTI_MAX(0.1 * fabs(low), least > 0 ? least : 0.5);
        low = DVTI_MAX(low - margin, -DBL_MAX);
        high = DVTI_MIN(high + margin, DBL_MAX);
    }
    /* Multiplying by 0.5 is exact, and such differences do not overflow. */
    scale.step = dvti_round_step((0.5 * high - 0.5 * low) / 3);
    scale.low = DVTI_MAX(floor(low / scale.step) * scale.step, -DBL_MAX);
    scale.ticks = (int)ceil((0.5 * high - 0.5 * scale.low) / (0.5 * scale.step) - 1e-9);
    scale.ticks = DVTI_MAX(scale.ticks, 1);
    scale.high = dvti_scale_linear(&scale, scale.ticks);
    return scale;
}

/* Returns tick k of a logarithmic axis that shows 2 and 5: 0 is 1, 1 is 2, 3 is 10, -1 is 0.5. */
static double dvti_fine_tick(int k) {
    static const int digits[] = {1, 2, 5};
    int power = (k + 3000) / 3 - 1000;
    return DVTI_MIN(digits[(k + 3000) % 3] * pow(10, power), DBL_MAX);
}

/* Does the same for logarithms. Up to three decades have ticks at 2 and 5. */
static dvti_scale dvti_scale_log(double low, double high) {
    dvti_scale scale;
    int last;
    memset(&scale, 0, sizeof scale);
    scale.log = true;
    if (!(low <= high)) { /* no points */
        low = 1;
        high = 10;
    }
    scale.fine = log10(high) - log10(low) <= 3;
    if (scale.fine) {
        scale.first = 3 * (int)floor(log10(low)) + 2;
        while (dvti_fine_tick(scale.first) > low * (1 + 1e-9))
            scale.first--;
        last = scale.first + 1;
        while (dvti_fine_tick(last) < high * (1 - 1e-9))
            last++;
        scale.ticks = last - scale.first;
        scale.step = 1;
        scale.low = log10(dvti_fine_tick(scale.first));
        scale.high = log10(dvti_fine_tick(last));
    } else {
        scale.low = floor(log10(low) + 1e-9);
        scale.step = ceil((ceil(log10(high) - 1e-9) - scale.low) / 8);
        scale.ticks = (int)ceil((log10(high) - scale.low) / scale.step - 1e-9);
        scale.high = scale.low + scale.ticks * scale.step;
    }
    return scale;
}

/* Returns the value of tick i. */
static double dvti_scale_tick(const dvti_scale *scale, int i) {
    const double linear = dvti_scale_linear(scale, i);
    return !scale->log   ? linear
           : scale->fine ? dvti_fine_tick(scale->first + i)
                         : DVTI_MIN(pow(10, linear), DBL_MAX);
}

/* Returns the position of a value: 0 at the lower end of the axis, 1 at the upper one. */
static double dvti_scale_share(const dvti_scale *scale, double value) {
    const double at = scale->log ? log10(value) : value;
    return (0.5 * at - 0.5 * scale->low) / (0.5 * scale->high - 0.5 * scale->low);
}

/* A logarithmic axis has positive values only; those near 0 have no exact decimal logarithm. */
static bool dvti_curve_draws(bool log_x, bool log_y, double x, double y) {
    return (!log_x || x >= 1e-300) && (!log_y || y >= 1e-300);
}

static void dvti_curve_scales(const dvt_curve *curve, dvti_scale *x, dvti_scale *y) {
    double x_low = HUGE_VAL, x_high = -HUGE_VAL, y_low = HUGE_VAL, y_high = -HUGE_VAL;
    size_t i, k;
    for (i = 0; i < curve->n; i++)
        for (k = 0; k < curve->series[i].n; k++) {
            if (!dvti_curve_draws(curve->log_x, curve->log_y, curve->series[i].x[k],
                                  curve->series[i].y[k]))
                continue;
            x_low = DVTI_MIN(x_low, curve->series[i].x[k]);
            x_high = DVTI_MAX(x_high, curve->series[i].x[k]);
            y_low = DVTI_MIN(y_low, curve->series[i].y[k]);
            y_high = DVTI_MAX(y_high, curve->series[i].y[k]);
        }
    *x = curve->log_x ? dvti_scale_log(x_low, x_high) : dvti_scale_make(x_low, x_high);
    *y = curve->log_y ? dvti_scale_log(y_low, y_high) : dvti_scale_make(y_low, y_high);
}

/* ---- text ---- */
/* Writes a tick's value with as many decimals as its step needs. Very large and small ones look
   like 1.5e9. */
static void dvti_svg_value(dvti_writer *out, double value, const dvti_scale *scale) {
    double largest = DVTI_MAX(fabs(scale->low), fabs(scale->high));
    dvti_scale digit;
    int step, top;
    if (scale->log) { /* as a linear axis whose step is the tick's first digit */
        memset(&digit, 0, sizeof digit);
        digit.step = pow(10, floor(log10(value) + 1e-9));
        digit.high = value;
        scale = &digit;
        largest = value;
    }
    step = (int)floor(log10(scale->step) + 1e-9);
    top = (int)floor(log10(largest) + 1e-9);
    if (top < 7 && step > -6) {
        dvti_svg_fixed(out, value, step < 0 ? -step : 0);
    } else if (fabs(value) < scale->step / 2) {
        dvti_writer_text(out, "0");
    } else {
        /* Two divisions, because 10^top itself may overflow or underflow. */
        double part = value / pow(10, top / 2) / pow(10, top - top / 2);
        dvti_svg_fixed(out, part, DVTI_MAX(0, DVTI_MIN(top - step, 9)));
        dvti_writer_text(out, "e");
        dvti_writer_int(out, top);
    }
}

/* ---- the parts of the image ---- */
static double dvti_curve_x(const dvti_scale *scale, double x) {
    return DVTI_CURVE_LEFT + dvti_scale_share(scale, x) * (DVTI_CURVE_RIGHT - DVTI_CURVE_LEFT);
}

static double dvti_curve_y(const dvti_scale *scale, double y) {
    return DVTI_CURVE_BOTTOM - dvti_scale_share(scale, y) * (DVTI_CURVE_BOTTOM - DVTI_CURVE_TOP);
}

static void dvti_svg_tick(dvti_writer *out, double x, double y, const char *attributes,
                          double value, const dvti_scale *scale) {
    dvti_writer_text(out, "<text x=\"");
    dvti_svg_fixed(out, x, 2);
    dvti_writer_text(out, "\" y=\"");
    dvti_svg_fixed(out, y, 2);
    dvti_writer_text(out, attributes);
    dvti_svg_value(out, value, scale);
    dvti_writer_text(out, "</text>\n");
}

static void dvti_svg_axes(dvti_writer *out, const dvt_curve *curve, const dvti_scale *x,
                          const dvti_scale *y) {
    static const char *const grid = " stroke=\"#dddddd\"";
    int i;
    for (i = 0; i <= x->ticks; i++) {
        double value = dvti_scale_tick(x, i), at = dvti_curve_x(x, value);
        dvti_svg_line(out, at, DVTI_CURVE_TOP, at, DVTI_CURVE_BOTTOM, grid);
        dvti_svg_tick(out, at, DVTI_CURVE_BOTTOM + 18, "\" text-anchor=\"middle\">", value, x);
    }
    for (i = 0; i <= y->ticks; i++) {
        double value = dvti_scale_tick(y, i), at = dvti_curve_y(y, value);
        dvti_svg_line(out, DVTI_CURVE_LEFT, at, DVTI_CURVE_RIGHT, at, grid);
        dvti_svg_tick(out, DVTI_CURVE_LEFT - 8, at + 4, "\" text-anchor=\"end\">", value, y);
    }
    dvti_svg_line(out, DVTI_CURVE_LEFT, DVTI_CURVE_BOTTOM, DVTI_CURVE_RIGHT, DVTI_CURVE_BOTTOM,
                  " stroke=\"#333333\"");
    dvti_svg_line(out, DVTI_CURVE_LEFT, DVTI_CURVE_TOP, DVTI_CURVE_LEFT, DVTI_CURVE_BOTTOM,
                  " stroke=\"#333333\"");
    dvti_svg_text(out, (DVTI_CURVE_LEFT + DVTI_CURVE_RIGHT) / 2.0, 26,
                  " text-anchor=\"middle\" font-size=\"16\"", curve->title);
    dvti_svg_text(out, (DVTI_CURVE_LEFT + DVTI_CURVE_RIGHT) / 2.0, DVTI_CURVE_BOTTOM + 42,
                  " text-anchor=\"middle\"", curve->x_label);
    /* Rotated by -90 degrees around the origin, so x points upwards. */
    dvti_svg_text(out, -(DVTI_CURVE_TOP + DVTI_CURVE_BOTTOM) / 2.0, 18,
                  " text-anchor=\"middle\" transform=\"rotate(-90)\"", curve->y_label);
}

static void dvti_svg_series(dvti_writer *out, const dvti_series *series, const dvti_scale *x,
                            const dvti_scale *y, const char *attributes, const char *color) {
    size_t i, n = 0;
    dvti_writer_text(out, "<polyline fill=\"none\"");
    dvti_writer_text(out, attributes);
    dvti_writer_text(out, " points=\"");
    for (i = 0; i < series->n; i++) {
        if (!dvti_curve_draws(x->log, y->log, series->x[i], series->y[i]))
            continue;
        if (n++)
            dvti_writer_text(out, (n - 1) % 8 ? " " : "\n");
        dvti_svg_fixed(out, dvti_curve_x(x, series->x[i]), 2);
        dvti_writer_text(out, ",");
        dvti_svg_fixed(out, dvti_curve_y(y, series->y[i]), 2);
    }
    dvti_writer_text(out, "\"/>\n");
    for (i = 0; n <= DVTI_CURVE_DOTS && i < series->n; i++) {
        if (!dvti_curve_draws(x->log, y->log, series->x[i], series->y[i]))
            continue;
        dvti_writer_text(out, "<circle r=\"2.5\" fill=\"");
        dvti_writer_text(out, color);
        dvti_writer_text(out, "\" cx=\"");
        dvti_svg_fixed(out, dvti_curve_x(x, series->x[i]), 2);
        dvti_writer_text(out, "\" cy=\"");
        dvti_svg_fixed(out, dvti_curve_y(y, series->y[i]), 2);
        dvti_writer_text(out, "\"/>\n");
    }
}

static DVTI_NOINLINE void dvti_svg_write(dvti_writer *out, const dvt_curve *curve) {
    /* Colors that color-blind people can distinguish. Source: Okabe and Ito, 2008. */
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                         "#e69f00", "#56b4e9", "#000000"};
    static const char *const dashes[] = {"", " stroke-dasharray=\"6 3\"",
                                         " stroke-dasharray=\"2 3\""};
    dvti_scale x, y;
    size_t i;
    dvti_curve_scales(curve, &x, &y);
    dvti_svg_begin(out, 720, 420);
    dvti_svg_axes(out, curve, &x, &y);
    for (i = 0; i < curve->n; i++) {
        const char *color = colors[i % (size_t)DVTI_LENGTH(colors)];
        double at = DVTI_CURVE_TOP + 12 + 20.0 * (double)i;
        char attributes[96];
        snprintf(attributes, sizeof attributes, " stroke=\"%s\" stroke-width=\"2\"%s", color,
                 dashes[i / (size_t)DVTI_LENGTH(colors) % (size_t)DVTI_LENGTH(dashes)]);
        dvti_svg_series(out, &curve->series[i], &x, &y, attributes, color);
        dvti_svg_line(out, DVTI_CURVE_RIGHT + 16, at, DVTI_CURVE_RIGHT + 40, at, attributes);
        dvti_svg_text(out, DVTI_CURVE_RIGHT + 46, at + 4, "", curve->series[i].name);
    }
    dvti_writer_text(out, "</svg>\n");
}

DVT_API dvt_status dvt_curve_save(dvt_curve *curve, const char *path) {
    static const char *const function = "dvt_curve_save";
    dvti_float_mode mode;
    dvti_writer text;
    if (!curve || !path)
        return dvti_null(function, curve ? "path" : "curve");
    text = dvti_writer_begin();
    mode = dvti_float_mode_begin();
    dvti_svg_write(&text, curve);
    dvti_float_mode_end(&mode);
    return dvti_svg_save(function, path, &text);
}

#undef DVTI_CURVE_LEFT
#undef DVTI_CURVE_RIGHT
#undef DVTI_CURVE_TOP
#undef DVTI_CURVE_BOTTOM
#undef DVTI_CURVE_DOTS
