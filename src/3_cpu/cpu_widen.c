/* Copies of small whole numbers, and of truth, to float32: a gradient's mask becomes factors this way. In blocks they would pass through
   int64; the numbers are the same. */
#include "3_cpu/simd/dvt_simd.h"

typedef struct dvti_widen {
    const dvti_simd *simd;
    const char *from;
    dvt_dtype dtype;
    float *to;
} dvti_widen;

static bool dvti_in_c_order(const dvti_view *view) {
    int64_t stride = 1;
    int i;
    for (i = view->ndim - 1; i >= 0; i--) {
        if (view->stride[i] != stride && view->dim[i] != 1)
            return false;
        stride *= view->dim[i];
    }
    return true;
}

static void dvti_widen_range(void *user, int64_t begin, int64_t end) {
    const dvti_widen *w = (const dvti_widen *)user;
    w->simd->load_row(w->from + begin * dvt_dtype_size(w->dtype), w->dtype, end - begin,
                      w->to + begin);
}

DVTI_FN bool dvti_fast_widen(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    dvti_widen w;
    if (launch->op != DVTI_OP_copy || launch->i[0] || out->dtype != DVT_F32 ||
        (in->dtype != DVT_BOOL && in->dtype != DVT_U8 && in->dtype != DVT_I8 &&
         in->dtype != DVT_I32) ||
        !dvti_in_c_order(in) || !dvti_in_c_order(out))
        return false;
    w.simd = simd;
    w.from = (const char *)in->data;
    w.dtype = in->dtype;
    w.to = (float *)out->data;
    dvti_parallel_for(dvti_view_size(out), 0.15, dvti_widen_range, &w);
    return true;
}
