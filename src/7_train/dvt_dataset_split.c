/* Splits a dataset at random, into parts for training and validation for example. */
#include "7_train/dvt_train_internal.h"

/* Resolves a count of -1 in sizes[0..n). Returns false with RANGE set if the parts are not the
   whole dataset. */
static bool dvti_dataset_sizes(const char *function, const int64_t *counts, int n, int64_t length,
                               int64_t *sizes) {
    int64_t sum = 0;
    int i, rest = -1;
    for (i = 0; i < n; i++) {
        sizes[i] = counts[i];
        if (counts[i] == -1 && rest < 0) {
            rest = i;
            sizes[i] = 0;
        } else if (counts[i] < 0 || !dvti_sum(sum, counts[i], &sum)) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: count %d is %lld; expected 0 or more, or once -1 for the rest", function,
                      i, (long long)counts[i]);
            return false;
        }
    }
    if (sum > length || (rest < 0 && sum != length)) {
        dvti_fail(
            DVT_ERR_RANGE,
            "%s: the counts add up to %lld, and there are %lld samples; expected all of them, "
            "or a count of -1 for the rest",
            function, (long long)sum, (long long)length);
        return false;
    }
    if (rest >= 0)
        sizes[rest] = length - sum;
    return true;
}

/* Makes the part of `size` samples with the numbers at `order`. */
static dvt_dataset *dvti_dataset_part_new(const char *function, dvt_dataset *data,
                                          const int64_t *order, int64_t size) {
    size_t bytes = (size_t)size * sizeof *order;
    dvt_dataset *part = dvti_dataset_on(function, data, size, "datasets");
    if (!part)
        return NULL;
    part->index = (int64_t *)dvti_alloc(bytes);
    if (!part->index) {
        dvti_fail_memory(function, (int64_t)bytes);
        return NULL;
    }
    if (bytes)
        memcpy(part->index, order, bytes);
    return part;
}

static dvt_status dvti_dataset_split(const char *function, dvt_dataset *data, const int64_t *counts,
                                     int n, uint64_t seed, int64_t *order, int64_t *sizes,
                                     dvt_dataset **out) {
    dvt_scope_guard scope;
    int64_t i, at = 0;
    int k;
    if (!dvti_dataset_sizes(function, counts, n, data->length, sizes))
        return dvti_failure();
    for (i = 0; i < data->length; i++)
        order[i] = i;
    dvti_shuffle(order, data->length, seed, -1); /* no loader has this epoch */
    scope = dvt_scope_begin();
    for (k = 0; k < n; at += sizes[k++]) {
        out[k] = dvti_dataset_part_new(function, data, order + at, sizes[k]);
        if (!out[k])
            break;
    }
    for (i = 0; i < n; i++)
        out[i] = k == n ? (dvt_dataset *)dvt_keep(out[i]) : NULL;
    dvt_scope_end(&scope);
    return k == n ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_dataset_split(dvt_dataset *data, const int64_t *counts, int n, uint64_t seed,
                                     dvt_dataset **out) {
    static const char *const function = "dvt_dataset_split";
    int64_t *numbers, bytes;
    dvt_status status;
    int i;
    for (i = 0; out && i < n; i++)
        out[i] = NULL;
    if (!data || !counts || !out)
        return dvti_null(function, !data ? "data" : !counts ? "counts" : "out");
    if (n < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected at least 1", function, n);
    if (!dvti_sum(data->length, n, &bytes) || !dvti_mul(bytes, (int64_t)sizeof *numbers, &bytes) ||
        (uint64_t)bytes > SIZE_MAX)
        return dvti_fail_memory(function, INT64_MAX);
    numbers = (int64_t *)dvti_alloc((size_t)bytes);
    if (!numbers)
        return dvti_fail_memory(function, bytes);
    status =
        dvti_dataset_split(function, data, counts, n, seed, numbers, numbers + data->length, out);
    dvti_free(numbers);
    return status;
}
