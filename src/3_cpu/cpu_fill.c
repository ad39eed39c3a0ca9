/* Creation of arrays: a constant, evenly spaced numbers, ones on a diagonal. */
#include "3_cpu/dvt_cpu.h"

typedef struct dvti_fill_call {
    const dvti_launch *launch;
    dvti_view out;
    dvti_class compute;
} dvti_fill_call;

static void dvti_fill_range(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_launch *launch = call->launch;
    double f[DVTI_BLOCK];
    int64_t i[DVTI_BLOCK], k, n = DVTI_MIN(end - begin, DVTI_BLOCK);
    int64_t size = dvt_dtype_size(call->out.dtype);
    bool integer = call->compute == DVTI_I64;
    bool plain = call->out.ndim == 1 && call->out.stride[0] == 1;
    const void *values;
    for (k = 0; k < n; k++)
        if (integer)
            i[k] = launch->i[0];
        else
            f[k] = launch->f[0];
    values = integer ? (const void *)i : (const void *)f;
    dvti_store_block(&call->out, begin, n, call->compute, values);
    for (k = begin + n; k < end; k += n)
        if (plain) /* the first block is converted; the others copy it */
            memcpy((char *)call->out.data + k * size, (char *)call->out.data + begin * size,
                   (size_t)(DVTI_MIN(n, end - k) * size));
        else
            dvti_store_block(&call->out, k, DVTI_MIN(n, end - k), call->compute, values);
}

static void dvti_arange_range(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_launch *launch = call->launch;
    double f[DVTI_BLOCK];
    int64_t i[DVTI_BLOCK], at, k, n;
    bool integer = call->compute == DVTI_I64;
    for (at = begin; at < end; at += n) {
        n = DVTI_MIN(end - at, DVTI_BLOCK);
        for (k = 0; k < n; k++)
            if (integer)
                i[k] =
                    (int64_t)((uint64_t)launch->i[0] + (uint64_t)(at + k) * (uint64_t)launch->i[1]);
            else
                f[k] = launch->f[0] + (double)(at + k) * launch->f[1];
        dvti_store_block(&call->out, at, n, call->compute,
                         integer ? (const void *)i : (const void *)f);
    }
}

static void dvti_eye_rows(void *user, int64_t begin, int64_t end) {
    const dvti_fill_call *call = (const dvti_fill_call *)user;
    const dvti_view *out = &call->launch->out[0];
    int64_t row, column;
    for (row = begin; row < end; row++)
        for (column = 0; column < out->dim[1]; column++)
            dvti_store_i64(out->data, out->dtype, row * out->stride[0] + column * out->stride[1],
                           column - row == call->launch->i[0]);
}

DVTI_FN void dvti_cpu_fill(const dvti_launch *launch) {
    dvti_fill_call call;
    int64_t size = dvti_view_size(&launch->out[0]);
    call.launch = launch;
    call.out = launch->out[0];
    call.compute = dvt_dtype_is_float(call.out.dtype) ? DVTI_F64 : DVTI_I64;
    dvti_merge_axes(&call.out);
    if (launch->op == DVTI_OP_eye) {
        dvti_parallel_for(call.launch->out[0].dim[0], 0.5 * (double)(launch->out[0].dim[1] + 1),
                          dvti_eye_rows, &call);
        return;
    }
    dvti_parallel_for(size, 0.15, launch->op == DVTI_OP_fill ? dvti_fill_range : dvti_arange_range,
                      &call);
    if (launch->op == DVTI_OP_arange && launch->i[2] && size > 0)
        dvti_store_f64(launch->out[0].data, launch->out[0].dtype, size - 1, launch->f[2]);
}
