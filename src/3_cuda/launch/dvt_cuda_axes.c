/* Axes of windows, simplified for the families' geometry: few, and in memory order. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN int64_t dvti_cuda_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void dvti_cuda_swap_axes(dvti_kview *view, int a, int b) {
    int64_t dim = view->dim[a], stride = view->stride[a];
    view->dim[a] = view->dim[b];
    view->stride[a] = view->stride[b];
    view->dim[b] = dim;
    view->stride[b] = stride;
}

DVTI_FN void dvti_cuda_simplify_axes(dvti_kview *view, dvti_kview *along, bool sorts) {
    int n = 0, i, k;
    for (i = 0; i < (int)view->ndim; i++)
        if (view->dim[i] != 1) {
            dvti_cuda_swap_axes(view, n, i);
            dvti_cuda_swap_axes(along, n++, i);
        }
    for (i = 1; sorts && i < n; i++)
        for (k = i;
             k > 0 && dvti_cuda_distance(view->stride[k - 1]) < dvti_cuda_distance(view->stride[k]);
             k--) {
            dvti_cuda_swap_axes(view, k - 1, k);
            dvti_cuda_swap_axes(along, k - 1, k);
        }
    for (i = 1, k = 0; i < n; i++) {
        if (view->stride[k] == view->stride[i] * view->dim[i] &&
            along->stride[k] == along->stride[i] * along->dim[i]) {
            view->dim[k] *= view->dim[i];
            along->dim[k] = view->dim[k];
        } else {
            k++;
            view->dim[k] = view->dim[i];
            along->dim[k] = along->dim[i];
        }
        view->stride[k] = view->stride[i];
        along->stride[k] = along->stride[i];
    }
    view->ndim = along->ndim = DVTI_MIN(n, k + 1);
    if (n == 0) { /* a single position */
        view->ndim = along->ndim = 1;
        view->dim[0] = along->dim[0] = 1;
        view->stride[0] = along->stride[0] = 0;
    }
}

DVTI_FN int64_t dvti_cuda_reach(const dvti_kview *view) {
    int64_t reach = 0;
    int i;
    for (i = 0; i < (int)view->ndim; i++)
        reach += DVTI_MAX(view->dim[i] - 1, 0) * dvti_cuda_distance(view->stride[i]);
    return reach;
}

DVTI_FN int64_t dvti_cuda_power(int64_t least) {
    int64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}
