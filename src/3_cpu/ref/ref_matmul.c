/* The oracle of matrix products: three loops in the accumulator's type, k ascending, one thread,
   any dtype and strides. */
#include "3_cpu/dvt_cpu.h"

/* Multiplies row i of a with column j of b, whose first elements are at a_at and b_at. */
#define DVTI_ORACLE_SUM(name, T, load, store)                                                      \
    static void dvti_oracle_##name(const dvti_view *out, const dvti_view *a, const dvti_view *b,   \
                                   int64_t at, int64_t a_at, int64_t b_at) {                       \
        const int64_t depth = a->dim[a->ndim - 1];                                                 \
        T sum = 0;                                                                                 \
        int64_t k;                                                                                 \
        for (k = 0; k < depth; k++)                                                                \
            sum += (T)load(a->data, a->dtype, a_at + k * a->stride[a->ndim - 1]) *                 \
                   (T)load(b->data, b->dtype, b_at + k * b->stride[b->ndim - 2]);                  \
        store(out->data, out->dtype, at, sum);                                                     \
    }
#define DVTI_ORACLE_STORE_I64(data, dtype, at, sum) dvti_store_i64(data, dtype, at, (int64_t)(sum))
DVTI_ORACLE_SUM(f32, float, dvti_load_f64, dvti_store_f64)
DVTI_ORACLE_SUM(f64, double, dvti_load_f64, dvti_store_f64)
DVTI_ORACLE_SUM(i64, uint64_t, dvti_load_i64, DVTI_ORACLE_STORE_I64) /* unsigned: sums wrap */
#undef DVTI_ORACLE_SUM
#undef DVTI_ORACLE_STORE_I64

DVTI_FN void dvti_ref_matmul(const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    const int last = out->ndim - 1;
    const int64_t size = dvti_view_size(out);
    int64_t at, index[DVT_MAX_DIMS], rest, a_at, b_at;
    int i;
    for (at = 0; at < size; at++) {
        for (i = last, rest = at; i >= 0; i--) {
            index[i] = rest % out->dim[i];
            rest /= out->dim[i];
        }
        a_at = index[last - 1] * a->stride[last - 1];
        b_at = index[last] * b->stride[last];
        for (i = 0; i < last - 1; i++) {
            a_at += index[i] * a->stride[i];
            b_at += index[i] * b->stride[i];
        }
        if (out->dtype == DVT_F64)
            dvti_oracle_f64(out, a, b, at, a_at, b_at);
        else if (dvt_dtype_is_float(out->dtype))
            dvti_oracle_f32(out, a, b, at, a_at, b_at);
        else
            dvti_oracle_i64(out, a, b, at, a_at, b_at);
    }
}
