/* Copies as operations: between contexts, dtypes and arrays. 2_core/dvt_copy.c moves the bytes. */
#include "4_ops/dvt_op.h"

static dvt_array *dvti_copied(const char *name, dvt_array *x, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *out;
    if (dvti_is_meta(x->storage->device) && dvti_ctx(ctx).type != DVT_DEVICE_META &&
        !dvti_has_values(name, x))
        return NULL;
    out = dvti_array_new(name, x->shape, dtype, ctx);
    if (!out || dvti_copy_elements(name, out, x) != DVT_OK)
        return NULL;
    return dvti_finish(out, DVTI_OP_copy, name, &x, 1, NULL);
}

DVT_API dvt_array *dvt_copyto(dvt_array *x, dvt_ctx ctx) {
    return dvti_check("dvt_copyto", &x, 1) ? dvti_copied("dvt_copyto", x, x->dtype, ctx) : NULL;
}

DVT_API dvt_array *dvt_as_in_ctx(dvt_array *x, dvt_ctx ctx) {
    if (!dvti_check("dvt_as_in_ctx", &x, 1))
        return NULL;
    return dvt_ctx_equal(x->storage->ctx, ctx) ? x : dvti_copied("dvt_as_in_ctx", x, x->dtype, ctx);
}

DVT_API dvt_array *dvt_copy(dvt_array *x) {
    return dvti_check("dvt_copy", &x, 1) ? dvti_copied("dvt_copy", x, x->dtype, x->storage->ctx)
                                         : NULL;
}

DVT_API dvt_array *dvt_contiguous(dvt_array *x) {
    if (!dvti_check("dvt_contiguous", &x, 1))
        return NULL;
    return dvt_is_contiguous(x) ? x : dvti_copied("dvt_contiguous", x, x->dtype, x->storage->ctx);
}

DVT_API dvt_array *dvt_astype(dvt_array *x, dvt_dtype dtype) {
    return dvti_check("dvt_astype", &x, 1) ? dvti_copied("dvt_astype", x, dtype, x->storage->ctx)
                                           : NULL;
}

DVT_API dvt_array *dvt_as_in_dtype(dvt_array *x, dvt_dtype dtype) {
    if (!dvti_check("dvt_as_in_dtype", &x, 1))
        return NULL;
    return x->dtype == dtype ? x : dvti_copied("dvt_as_in_dtype", x, dtype, x->storage->ctx);
}

/* Returns the shape of src without the leading extents of 1 that dst has no axes for. This is
   NumPy's rule for assignments. */
static dvt_shape dvti_source_shape(const dvt_array *dst, const dvt_array *src) {
    dvt_shape shape = src->shape;
    while (shape.ndim > dst->shape.ndim && shape.dim[0] == 1) {
        shape.ndim--;
        memmove(shape.dim, shape.dim + 1, (size_t)shape.ndim * sizeof shape.dim[0]);
    }
    return shape;
}

static bool dvti_broadcasts_into(const dvt_array *dst, const dvt_array *src) {
    dvt_shape shape = dvti_source_shape(dst, src), common;
    if (dvti_broadcasts(&dst->shape, &shape, &common) && dvt_shape_equal(common, dst->shape))
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "dvt_copy_into: src is %s and dst is %s; src broadcasts to dst, not dst to src: each "
              "extent of src must be dst's or 1, counted from the last; reshape or slice src",
              dvti_describe(src), dvti_describe(dst));
    return false;
}

/* Returns src with dst's shape, on memory that dst does not share. A src that broadcasts is first
   copied to dst's context. */
static dvt_array *dvti_copy_source(dvt_array *dst, dvt_array *src) {
    if (dvti_overlaps(src, dst))
        src = dvt_copy(src);
    if (!src || dvt_shape_equal(src->shape, dst->shape))
        return src;
    src = dvt_as_in_ctx(src, dst->storage->ctx);
    if (src && src->shape.ndim > dst->shape.ndim)
        src = dvt_reshape(src, dvti_source_shape(dst, src));
    return src ? dvt_broadcast_to(src, dst->shape) : NULL;
}

DVT_API dvt_array *dvt_copy_into(dvt_array *dst, dvt_array *src) {
    dvt_scope_guard scope;
    dvt_array *from = NULL;
    dvti_node *node;
    dvt_status status;
    if (!dst || !src) {
        dvti_null("dvt_copy_into", dst ? "src" : "dst");
        return NULL;
    }
    if (dst == src)
        return dst;
    if (!dvti_broadcasts_into(dst, src) || !dvti_writable("dvt_copy_into", dst))
        return NULL;
    if (dvt_is_recording() && dvt_has_history(src) &&
        dvti_atomic_load(&dst->storage->references) > 1) {
        dvti_fail(DVT_ERR_GRAD,
                  "dvt_copy_into: src (%s) belongs to a recorded computation, and dst (%s) is not "
                  "the only array on its memory: the gradient would not reach the others; join "
                  "with dvt_concat or dvt_where, copy into an array of its own, or write inside "
                  "DVT_PAUSE",
                  dvti_describe(src), dvti_describe(dst));
        return NULL;
    }
    if (!dvti_prepare(dst, DVTI_OP_copy, "dvt_copy_into", &src, 1, NULL, &node))
        return NULL;
    scope = dvt_scope_begin();
    DVT_PAUSE {
        from = dvti_copy_source(dst, src);
    }
    status = from ? dvti_copy_elements("dvt_copy_into", dst, from) : dvti_failure();
    dvt_scope_end(&scope);
    if (status != DVT_OK) {
        dvti_node_release(node);
        return NULL;
    }
    dvti_written(dst);
    return dvti_remember(dst, node);
}
