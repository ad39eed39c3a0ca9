/* Metrics: sums over batches, kept as an exact count and a float64. The comparison runs where the
   arrays are; only one number is copied to the host. Nothing is recorded. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

typedef enum dvti_metric_kind {
    DVTI_METRIC_ACCURACY,
    DVTI_METRIC_TOP_K,
    DVTI_METRIC_LOSS,
    DVTI_METRIC_CUSTOM
} dvti_metric_kind;

struct dvt_metric {
    dvti_object object;
    dvti_metric_kind kind;
    int k;
    char name[40];
    int64_t count, correct;
    double sum;
    dvt_metric_desc custom;
    dvt_metric_total total; /* of a custom metric */
};

static void dvti_metric_destroy(void *object) {
    dvti_free(object);
}

static dvt_metric *dvti_metric_new(const char *function, dvti_metric_kind kind, const char *name,
                                   int k) {
    dvt_metric *metric = (dvt_metric *)dvti_alloc_zero(sizeof *metric);
    if (!metric) {
        dvti_fail_memory(function, (int64_t)sizeof *metric);
        return NULL;
    }
    if (!dvti_object_begin(metric, dvti_metric_destroy, function)) {
        dvti_free(metric);
        return NULL;
    }
    metric->kind = kind;
    metric->k = k;
    if (k)
        snprintf(metric->name, sizeof metric->name, "%s_%d", name, k);
    else
        snprintf(metric->name, sizeof metric->name, "%s", name);
    return metric;
}

DVT_API dvt_metric *dvt_metric_accuracy(void) {
    return dvti_metric_new("dvt_metric_accuracy", DVTI_METRIC_ACCURACY, "accuracy", 0);
}

DVT_API dvt_metric *dvt_metric_top_k_accuracy(int k) {
    if (k < 1) {
        dvti_fail(DVT_ERR_RANGE, "dvt_metric_top_k_accuracy: k is %d; expected at least 1", k);
        return NULL;
    }
    return dvti_metric_new("dvt_metric_top_k_accuracy", DVTI_METRIC_TOP_K, "top_k_accuracy", k);
}

DVT_API dvt_metric *dvt_metric_mean_loss(void) {
    return dvti_metric_new("dvt_metric_mean_loss", DVTI_METRIC_LOSS, "loss", 0);
}

DVT_API dvt_metric *dvt_metric_custom(const dvt_metric_desc *desc) {
    dvt_metric *metric;
    if (!desc || !desc->update) {
        dvti_null("dvt_metric_custom", desc ? "desc->update" : "desc");
        return NULL;
    }
    metric = dvti_metric_new("dvt_metric_custom", DVTI_METRIC_CUSTOM,
                             desc->name ? desc->name : "custom", 0);
    if (metric)
        metric->custom = *desc;
    return metric;
}

DVT_API const char *dvt_metric_name(const dvt_metric *metric) {
    return metric ? metric->name : "";
}

DVT_API void dvt_metric_reset(dvt_metric *metric) {
    if (!metric)
        return;
    metric->count = metric->correct = 0;
    metric->sum = 0;
    memset(&metric->total, 0, sizeof metric->total);
    if (metric->custom.reset)
        metric->custom.reset(metric->custom.user);
}

static DVTI_NOINLINE double dvti_metric_mean(const dvt_metric *metric) {
    DVTI_NOT_PURE();
    if (metric->kind == DVTI_METRIC_CUSTOM)
        return metric->custom.value ? metric->custom.value(metric->custom.user, &metric->total)
                                    : metric->total.sum / metric->total.count;
    return (metric->kind == DVTI_METRIC_LOSS ? metric->sum : (double)metric->correct) /
           (double)metric->count;
}

DVT_API double dvt_metric_get(const dvt_metric *metric) {
    dvti_float_mode mode;
    double mean;
    if (!metric) {
        dvti_null("dvt_metric_get", "metric");
        return (double)NAN;
    }
    if (!metric->count && metric->total.count == 0)
        return (double)NAN;
    mode = dvti_float_mode_begin();
    mean = dvti_metric_mean(metric);
    dvti_float_mode_end(&mode);
    return mean;
}

/* Checks that the predictions have the labels' shape plus an axis of classes. With `same`, they may
   also be class numbers in the shape of the labels. */
static dvt_status dvti_metric_shapes(dvt_array *labels, dvt_array *predictions, bool same) {
    dvt_shape rows = predictions->shape;
    if (same && dvt_shape_equal(rows, labels->shape))
        return DVT_OK;
    if (rows.ndim) {
        rows.ndim--;
        if (dvt_shape_equal(rows, labels->shape) && predictions->shape.dim[rows.ndim] > 0)
            return DVT_OK;
    }
    return dvti_fail(
        DVT_ERR_SHAPE,
        "dvt_metric_update: labels are %s and predictions are %s; expected predictions "
        "of the labels' shape and one more axis for the classes%s",
        dvti_describe(labels), dvti_describe(predictions),
        same ? ", or class numbers in the labels' shape" : "");
}

/* Returns the number of correct predictions as an array of one int64. */
static dvt_array *dvti_metric_right(dvt_array *labels, dvt_array *predictions) {
    dvt_array *chosen = predictions;
    if (!dvt_shape_equal(labels->shape, predictions->shape))
        chosen = dvt_argmax(predictions, DVT_AXES(-1));
    return dvt_sum(dvt_equal(chosen, labels), DVT_ALL);
}

/* Counts labels among the k largest scores: fewer than k classes precede the label. The order is
   that of argmax: NaN is the largest, and equal scores are ordered by class. An invalid label never
   counts; it is replaced by class 0 for the lookup. */
static dvt_array *dvti_metric_right_in_k(dvt_array *labels, dvt_array *predictions, int k) {
    int64_t classes = predictions->shape.dim[predictions->shape.ndim - 1];
    dvt_array *number = dvt_arange(0, (double)classes, 1, DVT_I64, predictions->storage->ctx);
    dvt_array *label = dvt_expand_dims(dvt_as_in_dtype(labels, DVT_I64), -1);
    dvt_array *known = dvt_logical_and(dvt_greater_equal_scalar(label, 0),
                                       dvt_less_scalar(label, (double)classes));
    dvt_array *place = dvt_where(known, label, dvt_zeros_like(label));
    dvt_array *own = dvt_take_along_axis(predictions, place, -1);
    dvt_array *nan = dvt_isnan(predictions), *own_nan = dvt_isnan(own);
    dvt_array *larger = dvt_logical_or(dvt_greater(predictions, own),
                                       dvt_logical_and(nan, dvt_logical_not(own_nan)));
    dvt_array *equal = dvt_logical_or(dvt_equal(predictions, own), dvt_logical_and(nan, own_nan));
    dvt_array *before = dvt_logical_or(larger, dvt_logical_and(equal, dvt_less(number, label)));
    dvt_array *rank = dvt_sum(before, DVT_KEEPDIMS(-1));
    return dvt_sum(dvt_logical_and(known, dvt_less_scalar(rank, k)), DVT_ALL);
}

static dvt_status dvti_metric_count(dvt_metric *metric, dvt_array *labels, dvt_array *predictions) {
    static const char *const names[] = {"labels", "predictions"};
    dvt_array *in[2], *right;
    int64_t correct = 0;
    dvt_status status;
    in[0] = labels;
    in[1] = predictions;
    if (!dvti_check_named("dvt_metric_update", in, 2, names))
        return dvti_failure();
    status = dvti_metric_shapes(labels, predictions, metric->kind == DVTI_METRIC_ACCURACY);
    if (status != DVT_OK)
        return status;
    right = metric->kind == DVTI_METRIC_TOP_K
                ? dvti_metric_right_in_k(labels, predictions, metric->k)
                : dvti_metric_right(labels, predictions);
    if (!right)
        return dvti_failure();
    status = dvti_read("dvt_metric_update", right, DVT_I64, &correct);
    if (status != DVT_OK)
        return status;
    metric->correct += correct;
    metric->count += dvt_size(labels);
    return DVT_OK;
}

static DVTI_NOINLINE dvt_status dvti_metric_add_loss(dvt_metric *metric, dvt_array *losses) {
    dvt_array *total = dvt_sum(dvt_as_in_dtype(losses, DVT_F64), DVT_ALL);
    double sum = 0;
    dvt_status status =
        total ? dvti_read("dvt_metric_update", total, DVT_F64, &sum) : dvti_failure();
    if (status != DVT_OK)
        return status;
    metric->sum += sum;
    metric->count += dvt_size(losses);
    return DVT_OK;
}

/* Updates a custom metric. A failed update leaves the total unchanged. */
static DVTI_NOINLINE dvt_status dvti_metric_add_custom(dvt_metric *metric, dvt_array *labels,
                                                       dvt_array *predictions) {
    const bool clean = dvt_error_code() == DVT_OK;
    dvt_metric_total total = metric->total;
    dvt_status status = metric->custom.update(metric->custom.user, labels, predictions, &total);
    /* An update that ignored the NULL of a failed call counts as failed. */
    if (status == DVT_OK && clean)
        status = dvt_error_code();
    else if (status != DVT_OK && dvt_error_code() == DVT_OK)
        dvti_fail(
            status,
            "dvt_metric_update: update of the metric %s returned %s, and no call in it failed; "
            "expected DVT_OK: see the function given to dvt_metric_custom",
            metric->name, dvt_status_name(status));
    if (status == DVT_OK)
        metric->total = total;
    return status;
}

DVT_API dvt_status dvt_metric_update(dvt_metric *metric, dvt_array *labels,
                                     dvt_array *predictions) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvti_float_mode mode;
    dvt_status status;
    if (!metric)
        return dvti_null("dvt_metric_update", "metric");
    if (!predictions)
        return dvti_null("dvt_metric_update", "predictions");
    if (!labels && metric->kind != DVTI_METRIC_LOSS && metric->kind != DVTI_METRIC_CUSTOM)
        return dvti_null("dvt_metric_update", "labels");
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    mode = dvti_float_mode_begin();
    status = metric->kind == DVTI_METRIC_LOSS ? dvti_metric_add_loss(metric, predictions)
             : metric->kind == DVTI_METRIC_CUSTOM
                 ? dvti_metric_add_custom(metric, labels, predictions)
                 : dvti_metric_count(metric, labels, predictions);
    dvti_float_mode_end(&mode);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return status;
}
