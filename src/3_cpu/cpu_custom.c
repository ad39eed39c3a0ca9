/* Kernels of the program on host memory: the C function that it has given computes. */
#include "3_cpu/dvt_cpu.h"

/* Advances to the next position in C order, and the offset of each array. */
static void dvti_custom_next(const dvti_custom *custom, const dvti_view *out, int64_t *index,
                             int64_t *at) {
    int axis, k;
    for (axis = out->ndim - 1; axis >= 0; axis--) {
        const int64_t step = ++index[axis] < out->dim[axis] ? 1 : 1 - out->dim[axis];
        for (k = 0; k < custom->call.n_args; k++)
            if (dvti_arg_is_array(custom->call.arg[k].kind))
                at[k] += step * custom->view[k].stride[axis];
        if (step == 1)
            return;
        index[axis] = 0;
    }
}

/* Converts as elementwise operations do: each value to the class `compute`, the result from
   float64 or int64. */
static double dvti_custom_load(const dvti_view *view, int64_t at, dvti_class compute) {
    const double value = dvti_load_f64(view->data, view->dtype, at);
    return compute == DVTI_F32 ? (double)(float)value : value;
}

static double dvti_custom_scalar(const dvt_kernel_value *value, dvti_class compute) {
    return compute == DVTI_F32 ? (double)(float)value->f : value->f;
}

/* Integers are truncated and wrap in the result's type, as on a GPU. */
static void dvti_custom_store(const dvti_view *out, int64_t at, double value, dvti_class compute) {
    int64_t integer;
    if (compute != DVTI_I64) {
        dvti_store_f64(out->data, out->dtype, at, value);
        return;
    }
    dvti_store_f64(&integer, DVT_I64, 0, value);
    dvti_store_i64(out->data, out->dtype, at, integer);
}

static void dvti_custom_expression(const dvti_launch *launch) {
    const dvti_custom *custom = launch->custom;
    const dvti_view *out = &launch->out[0];
    const int64_t n = dvti_view_size(out);
    int64_t index[DVT_MAX_DIMS] = {0}, at[DVT_KERNEL_ARGS] = {0}, i;
    double value[DVT_KERNEL_ARGS] = {0};
    int k;
    for (i = 0; i < n; i++) {
        for (k = 0; k < custom->call.n_args; k++)
            value[k] = dvti_arg_is_array(custom->call.arg[k].kind)
                           ? dvti_custom_load(&custom->view[k], at[k], launch->compute)
                           : dvti_custom_scalar(&custom->call.arg[k], launch->compute);
        dvti_custom_store(out, i, custom->element(custom->user, value), launch->compute);
        dvti_custom_next(custom, out, index, at);
    }
}

DVTI_FN void dvti_cpu_custom(const dvti_launch *launch) {
    const dvti_custom *custom = launch->custom;
    if (custom->entry)
        custom->host(custom->user, &custom->call);
    else
        dvti_custom_expression(launch);
}
