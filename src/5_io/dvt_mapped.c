/* Arrays on the pages of files: sources that read from a mapping, and elements that stay in it. */
#include "5_io/dvt_io_internal.h"

DVTI_FN bool dvti_source_map(dvti_source *in, const char *function, const char *path) {
    bool opened = dvti_source_open(in, function, path);
#if !defined(DEVTENSOR_NO_FILES)
    int64_t bytes = in->remaining;
    dvti_mapping *mapping = opened && in->known && bytes > 0 ? dvti_map_file(in->fd, bytes) : NULL;
    if (mapping) {
        dvti_source_close(in);
        dvti_source_memory(in, function, mapping->data, (size_t)bytes);
        in->what = in->path = path;
        in->mapping = mapping;
    }
#endif
    return opened;
}

DVTI_FN void dvti_source_window(dvti_source *in, dvti_source *whole, int64_t n) {
    dvti_source_memory(in, whole->function, whole->at, (size_t)n);
    in->what = whole->what;
    in->path = whole->path;
#if !defined(DEVTENSOR_NO_FILES)
    in->mapping = whole->mapping;
    dvti_map_hold(in->mapping);
#endif
    dvti_source_skip(whole, n);
}

DVTI_FN bool dvti_stored_maps(const dvti_stored *stored, const dvti_source *in, dvt_shape shape) {
    int64_t bytes;
    return in->mapping && !in->pull && !in->unpack && dvti_stored_as_is(stored) &&
           dvti_stored_bytes(stored, &shape, &bytes) && bytes > 0 && (uint64_t)bytes <= in->ready &&
           (uintptr_t)in->at % (uintptr_t)stored->bytes == 0;
}

#if !defined(DEVTENSOR_NO_FILES)
DVTI_FN dvt_array *dvti_stored_mapped(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                      bool fortran_order, dvt_ctx ctx) {
    dvt_scope_guard scope = dvt_scope_begin();
    int64_t stride[DVT_MAX_DIMS], step = 1;
    dvti_memory memory;
    dvt_array *x;
    int i;
    for (i = 0; i < shape.ndim; i++) {
        stride[i] = step;
        step *= shape.dim[i];
    }
    ctx = dvti_ctx(ctx);
    memset(&memory, 0, sizeof memory);
    memory.data = in->mapping->data + (in->at - in->mapping->data);
    memory.shape = shape;
    memory.stride = fortran_order ? stride : NULL;
    memory.dtype = stored->dtype;
    memory.release = dvti_map_release;
    memory.user = in->mapping;
    x = dvti_array_over(in->function, &memory, dvti_is_host_memory(ctx) ? ctx : dvt_cpu());
    if (x) {
        dvti_map_hold(in->mapping);
        dvti_source_skip(in, dvt_nbytes(x));
        x = (dvt_array *)dvt_keep(dvti_stored_to_ctx(in->function, x, ctx));
    }
    dvt_scope_end(&scope);
    return x;
}
#else
DVTI_FN dvt_array *dvti_stored_mapped(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                      bool fortran_order, dvt_ctx ctx) {
    (void)fortran_order;
    (void)ctx;
    (void)stored;
    (void)in;
    (void)shape;
    return NULL;
}
#endif

/* ---- public functions ---- */
static dvt_array *dvti_array_map(const char *function, const char *path, dvt_ctx ctx,
                                 dvt_array *(*reads)(dvti_source *in, dvt_ctx ctx)) {
    dvti_source in;
    dvt_array *x = NULL;
    if (dvti_source_map(&in, function, path))
        x = reads(&in, ctx);
    dvti_source_close(&in);
    return x;
}

DVT_API dvt_array_list *dvt_map_arrays(const char *path, dvt_ctx ctx) {
    return dvti_list_map("dvt_map_arrays", path, ctx, dvti_arrays_list);
}

DVT_API dvt_array *dvt_map_npy(const char *path, dvt_ctx ctx) {
    return dvti_array_map("dvt_map_npy", path, ctx, dvti_npy_read);
}

DVT_API dvt_array *dvt_map_bytes(const char *path, dvt_ctx ctx) {
    return dvti_array_map("dvt_map_bytes", path, ctx, dvti_bytes_read);
}
