/* Converts blocks of a view, which are consecutive positions in C order, to and from a contiguous
   buffer of a class. Kernels that work by blocks handle neither dtypes nor strides. */
#include "3_cpu/simd/dvt_simd.h"

static const int dvti_class_size[] = {4, 8, 8};

DVTI_FN int64_t dvti_view_size(const dvti_view *view) {
    return dvti_extents(view->dim, view->ndim);
}

/* Merges neighboring axes that are contiguous with each other, without changing the order of
   positions. Afterwards ndim >= 1. A view without elements becomes one axis of extent 0, since the
   product of its other extents may overflow. */
DVTI_FN void dvti_merge_axes(dvti_view *view) {
    int from, to = 0;
    if (dvti_view_size(view) == 0) {
        view->ndim = 1;
        view->dim[0] = 0;
        view->stride[0] = 1;
        return;
    }
    for (from = 0; from < view->ndim; from++) {
        if (view->dim[from] == 1)
            continue;
        if (to && view->stride[to - 1] == view->stride[from] * view->dim[from]) {
            view->dim[to - 1] *= view->dim[from];
            view->stride[to - 1] = view->stride[from];
        } else {
            view->dim[to] = view->dim[from];
            view->stride[to++] = view->stride[from];
        }
    }
    if (!to) {
        view->dim[0] = 1;
        view->stride[0] = 1;
        to = 1;
    }
    view->ndim = to;
}

static void dvti_load_row(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                          dvti_class compute, void *dst) {
    const dvti_simd *simd = compute != DVTI_I64 && step == 1 ? dvti_simd_now() : NULL;
    if (simd && (compute == DVTI_F32 ? simd->load_row(src, dtype, n, (float *)dst)
                                     : simd->f64->load_row(src, dtype, n, (double *)dst)))
        return;
    if (compute == DVTI_F32)
        dvti_load_row_f32(src, dtype, step, n, (float *)dst);
    else if (compute == DVTI_F64)
        dvti_load_row_f64(src, dtype, step, n, (double *)dst);
    else
        dvti_load_row_i64(src, dtype, step, n, (int64_t *)dst);
}

static void dvti_store_row(void *dst, dvt_dtype dtype, int64_t step, int64_t n, dvti_class compute,
                           const void *src) {
    const dvti_simd *simd = compute != DVTI_I64 && step == 1 ? dvti_simd_now() : NULL;
    if (simd && (compute == DVTI_F32 ? simd->store_row(dst, dtype, n, (const float *)src)
                                     : simd->f64->store_row(dst, dtype, n, (const double *)src)))
        return;
    if (compute == DVTI_F32)
        dvti_store_row_f32(dst, dtype, step, n, (const float *)src);
    else if (compute == DVTI_F64)
        dvti_store_row_f64(dst, dtype, step, n, (const double *)src);
    else
        dvti_store_row_i64(dst, dtype, step, n, (const int64_t *)src);
}

DVTI_FN dvti_cursor dvti_cursor_at(const dvti_view *view, int64_t position) {
    dvti_cursor cursor;
    int i;
    cursor.at = 0;
    for (i = view->ndim - 1; i > 0; i--) {
        cursor.index[i] = position % view->dim[i];
        position /= view->dim[i];
        cursor.at += cursor.index[i] * view->stride[i];
    }
    cursor.index[0] = position;
    cursor.at += position * view->stride[0];
    return cursor;
}

DVTI_FN void dvti_cursor_advance(dvti_cursor *cursor, const dvti_view *view, int64_t n) {
    int i = view->ndim - 1;
    cursor->index[i] += n;
    cursor->at += n * view->stride[i];
    for (; i > 0 && cursor->index[i] == view->dim[i]; i--) {
        cursor->at += view->stride[i - 1] - view->dim[i] * view->stride[i];
        cursor->index[i] = 0;
        cursor->index[i - 1]++;
    }
}

DVTI_FN void dvti_load_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                             void *dst) {
    dvti_cursor cursor = dvti_cursor_at(view, first);
    int64_t size = dvt_dtype_size(view->dtype), step = view->stride[view->ndim - 1];
    char *to = (char *)dst;
    while (n > 0) {
        int64_t row = DVTI_MIN(n, view->dim[view->ndim - 1] - cursor.index[view->ndim - 1]);
        dvti_load_row((const char *)view->data + cursor.at * size, view->dtype, step, row, compute,
                      to);
        to += row * dvti_class_size[compute];
        n -= row;
        dvti_cursor_advance(&cursor, view, row);
    }
}

DVTI_FN void dvti_store_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                              const void *src) {
    dvti_cursor cursor = dvti_cursor_at(view, first);
    int64_t size = dvt_dtype_size(view->dtype), step = view->stride[view->ndim - 1];
    const char *from = (const char *)src;
    while (n > 0) {
        int64_t row = DVTI_MIN(n, view->dim[view->ndim - 1] - cursor.index[view->ndim - 1]);
        dvti_store_row((char *)view->data + cursor.at * size, view->dtype, step, row, compute,
                       from);
        from += row * dvti_class_size[compute];
        n -= row;
        dvti_cursor_advance(&cursor, view, row);
    }
}
