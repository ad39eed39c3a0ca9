/* Sums the gradients over the contexts by the devices' own all-reduce, where they have one. */
#include "7_train/dvt_train_internal.h"

DVTI_FN bool dvti_arrays_can_all_reduce(dvt_array *const *array, int n, dvti_device **device) {
    int k, j;
    if (n < 2 || n > DVT_MAX_GPUS)
        return false;
    for (k = 0; k < n; k++) {
        device[k] = array[k]->storage->device;
        for (j = 0; j < k; j++)
            if (device[j] == device[k])
                return false;
    }
    return dvti_can_all_reduce(device, n);
}

/* Describes the parts of one gradient. Returns false unless every copy takes part and is
   contiguous. */
static bool dvti_reduce_part_of(const dvt_trainer *t, int i, bool fresh_only,
                                dvti_reduce_part *part) {
    int k;
    for (k = 0; k < t->ctxs.n; k++) {
        dvt_array *gradient = dvti_trainer_at(t, i, k)->gradient;
        if (!dvti_trainer_counts(t, i, k, fresh_only) || !dvt_is_contiguous(gradient))
            return false;
        part->dtype = gradient->dtype;
        part->count = dvt_size(gradient);
        part->at[k] = dvti_view_of(gradient).data;
    }
    return true;
}

DVTI_FN bool dvti_trainer_all_reduce(const char *function, const dvt_trainer *t, bool fresh_only,
                                     dvt_status *status) {
    dvt_array *gradient[DVT_MAX_CONTEXTS];
    dvti_device *device[DVT_MAX_GPUS];
    dvti_reduce_part *part;
    int first = 0, n = 0, i, k;
    bool fits = true;
    while (first < t->n && !dvti_trainer_counts(t, first, 0, false))
        first++;
    for (k = 0; first < t->n && k < t->ctxs.n; k++)
        gradient[k] = dvti_trainer_at(t, first, k)->gradient;
    if (first == t->n || !dvti_arrays_can_all_reduce(gradient, t->ctxs.n, device))
        return false;
    part = (dvti_reduce_part *)dvti_alloc((size_t)t->n * sizeof *part);
    if (!part) /* the other method needs no memory */
        return false;
    for (i = first; i < t->n && fits; i++)
        if (dvti_trainer_counts(t, i, 0, false))
            fits = dvti_reduce_part_of(t, i, fresh_only, &part[n++]);
    if (fits)
        *status = dvti_all_reduce(function, device, t->ctxs.n, part, n);
    dvti_free(part);
    return fits;
}
