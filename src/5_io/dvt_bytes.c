/* Whole files as arrays of bytes, for text and for formats of the program's own. */
#include "5_io/dvt_io_internal.h"

/* Reads a source of unknown size, a pipe for example. */
static dvt_array *dvti_bytes_unknown(dvti_source *in, dvt_ctx ctx) {
    dvti_writer all = dvti_writer_begin();
    dvt_array *x = NULL;
    while (!all.failed && dvti_source_peek(in, 1)) {
        dvti_writer_bytes(&all, in->at, in->ready);
        dvti_source_skip(in, (int64_t)in->ready);
    }
    if (all.failed)
        dvti_fail_memory(in->function, (int64_t)all.capacity * 2);
    else if (!in->reported)
        x = dvti_array_new(in->function, DVT_SHAPE((int64_t)all.length), DVT_U8, ctx);
    if (x && all.length && dvti_write_host(in->function, x, all.at) != DVT_OK)
        x = NULL;
    dvti_writer_free(&all);
    return x;
}

static dvt_array *dvti_bytes_known(dvti_source *in, dvt_ctx ctx) {
    dvti_stored stored;
    memset(&stored, 0, sizeof stored);
    stored.kind = 'u';
    stored.bytes = 1;
    stored.dtype = DVT_U8;
    return dvti_stored_array(&stored, in, DVT_SHAPE(dvti_source_left(in)), false, ctx);
}

DVTI_FN dvt_array *dvti_bytes_read(dvti_source *in, dvt_ctx ctx) {
    return in->known ? dvti_bytes_known(in, ctx) : dvti_bytes_unknown(in, ctx);
}

DVT_API dvt_array *dvt_load_bytes(const char *path, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *x = NULL;
    if (dvti_source_open(&in, "dvt_load_bytes", path))
        x = dvti_bytes_read(&in, ctx);
    dvti_source_close(&in);
    return x;
}

DVT_API dvt_status dvt_save_bytes(const char *path, dvt_array *x) {
    static const char *const function = "dvt_save_bytes";
    dvt_status status = DVT_OK;
    dvt_scope_guard scope;
    dvti_file_out out;
    dvt_array *host;
    if (!x)
        return dvti_null(function, "x");
    if (x->dtype != DVT_U8)
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: x is %s; expected uint8: convert it with dvt_astype, or save numbers "
                         "with dvt_save_npy",
                         function, dvti_describe(x));
    scope = dvt_scope_begin();
    host = dvti_host_array(function, x, DVT_U8, false);
    if (host && dvti_file_begin(&out, function, path)) {
        dvti_file_write(&out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
        status = dvti_file_end(&out, true);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}
