/* Histograms of arrays as numbers and text. NaN and infinities are counted, but are in no bin. */
#include "1_base/dvt_float_mode.h"
#include "5_io/dvt_io_internal.h"

/* Values are halved, so that the difference of two of them never overflows. */
static double dvti_histogram_edge(const dvt_histogram *h, double low, double high, int i) {
    return i == h->bins ? high : 2 * (low / 2 + (high / 2 - low / 2) * ((double)i / h->bins));
}

static void dvti_histogram_range(dvt_histogram *h, const double *x, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i++) {
        if (x[i] != x[i])
            h->nan++;
        else if (fabs(x[i]) > DBL_MAX)
            ++*(x[i] > 0 ? &h->positive_infinities : &h->negative_infinities);
        else {
            h->low = h->count ? DVTI_MIN(h->low, x[i]) : x[i];
            h->high = h->count ? DVTI_MAX(h->high, x[i]) : x[i];
            h->sum += x[i];
            h->sum_squares += x[i] * x[i];
            h->count++;
        }
    }
}

static void dvti_histogram_fill(dvt_histogram *h, const double *x, int64_t n) {
    double low = h->low, high = h->high, half;
    int64_t i;
    int k;
    if (!h->count)
        high = 1;
    else if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    half = high / 2 - low / 2;
    for (k = 0; k <= h->bins; k++)
        h->edge[k] = dvti_histogram_edge(h, low, high, k);
    for (i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= DBL_MAX))
            continue;
        k = half > 0 ? (int)((x[i] / 2 - low / 2) / half * h->bins) : 0;
        k = DVTI_MIN(DVTI_MAX(k, 0), h->bins - 1);
        while (k > 0 && x[i] < h->edge[k]) /* corrects the rounding of the quotient */
            k--;
        while (k < h->bins - 1 && x[i] >= h->edge[k + 1])
            k++;
        h->bin[k]++;
    }
}

DVT_API dvt_status dvt_histogram_of(dvt_array *x, int bins, dvt_histogram *out) {
    static const char *const function = "dvt_histogram_of";
    dvt_scope_guard scope;
    dvti_float_mode mode;
    dvt_histogram h;
    dvt_status status;
    dvt_array *host;
    if (!x || !out)
        return dvti_null(function, x ? "out" : "x");
    if (bins < 1 || bins > DVT_HISTOGRAM_BINS)
        return dvti_fail(DVT_ERR_RANGE, "%s: bins is %d; expected 1 to %d", function, bins,
                         DVT_HISTOGRAM_BINS);
    status = dvti_check_guard(function, x);
    if (status != DVT_OK)
        return status;
    memset(&h, 0, sizeof h);
    h.bins = bins;
    scope = dvt_scope_begin();
    host = dvti_host_array(function, x, DVT_F64, false);
    if (host) {
        const double *values = (const double *)dvti_view_of(host).data;
        mode = dvti_float_mode_begin();
        dvti_histogram_range(&h, values, dvt_size(host));
        dvti_histogram_fill(&h, values, dvt_size(host));
        dvti_float_mode_end(&mode);
        *out = h;
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}

/* ---- text ---- */
DVTI_FN const char *dvti_short_number(char *buffer, double value) {
    dvti_float x = dvti_float_read(DVT_F64, &value);
    dvti_number_format format;
    int power;
    if (x.kind != DVTI_FINITE)
        return x.kind == DVTI_NAN ? "nan" : x.negative ? "-inf" : "inf";
    power = value != 0 ? (int)floor(log10(fabs(value))) : 0;
    memset(&format, 0, sizeof format);
    format.scientific = power < -4 || power > 5;
    format.trim = DVTI_TRIM_ALL;
    format.at_most = format.scientific ? 4 : DVTI_MAX(0, 4 - power);
    format.at_least = -1;
    format.exponent_digits = 2;
    dvti_number_text(buffer, &x, &format);
    return buffer;
}

#define DVTI_HISTOGRAM_BAR 40

static void dvti_histogram_write(const dvt_histogram *h, dvti_text *text) {
    char a[DVTI_NUMBER_SIZE], b[DVTI_NUMBER_SIZE], c[DVTI_NUMBER_SIZE], d[DVTI_NUMBER_SIZE];
    double mean = h->count ? h->sum / (double)h->count : 0;
    double variance = h->count ? h->sum_squares / (double)h->count - mean * mean : 0;
    int64_t most = 1;
    int i;
    dvti_text_add(text, "%lld finite elements", (long long)h->count);
    if (h->count)
        dvti_text_add(text, " from %s to %s, mean %s, deviation %s", dvti_short_number(a, h->low),
                      dvti_short_number(b, h->high), dvti_short_number(c, mean),
                      dvti_short_number(d, variance > 0 ? sqrt(variance) : 0));
    dvti_text_add(text, "; %lld NaN, %lld inf, %lld -inf\n", (long long)h->nan,
                  (long long)h->positive_infinities, (long long)h->negative_infinities);
    for (i = 0; i < h->bins; i++)
        most = DVTI_MAX(most, h->bin[i]);
    for (i = 0; h->count && i < h->bins; i++) {
        dvti_text_add(text, "[%11s, %11s%c %10lld ", dvti_short_number(a, h->edge[i]),
                      dvti_short_number(b, h->edge[i + 1]), i + 1 < h->bins ? ')' : ']',
                      (long long)h->bin[i]);
        /* Bins that are not empty have at least one mark. */
        dvti_text_char(text, '#',
                       (int64_t)ceil((double)h->bin[i] / (double)most * DVTI_HISTOGRAM_BAR));
        dvti_text_add(text, "\n");
    }
}

#undef DVTI_HISTOGRAM_BAR

DVT_API size_t dvt_histogram_format(const dvt_histogram *histogram, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_float_mode mode;
    if (!histogram) {
        dvti_null("dvt_histogram_format", "histogram");
        return 0;
    }
    mode = dvti_float_mode_begin();
    dvti_histogram_write(histogram, &text);
    dvti_float_mode_end(&mode);
    return text.length;
}

DVT_API dvt_status dvt_print_histogram(dvt_array *x, int bins) {
    dvt_histogram h;
    dvt_status status = x ? dvt_histogram_of(x, bins, &h) : dvti_null("dvt_print_histogram", "x");
    char text[8192]; /* 65 lines of at most 100 characters */
    if (status == DVT_OK) {
        dvt_histogram_format(&h, text, sizeof text);
        fputs(text, stdout);
    }
    return status;
}
