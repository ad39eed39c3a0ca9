/* IDX, the format of MNIST: 0, 0, type, number of axes; extents; elements; all big-endian. Plain or
   gzip, detected by content. */
#include "5_io/dvt_io_internal.h"

typedef struct dvti_idx_header {
    dvti_stored stored;
    dvt_shape shape;
    int64_t bytes; /* total size, including the header */
} dvti_idx_header;

static const struct {
    unsigned type;
    char kind;
    int bytes;
    dvt_dtype dtype;
} dvti_idx_types[] = {{0x08, 'u', 1, DVT_U8},  {0x09, 'i', 1, DVT_I8},  {0x0b, 'i', 2, DVT_I32},
                      {0x0c, 'i', 4, DVT_I32}, {0x0d, 'f', 4, DVT_F32}, {0x0e, 'f', 8, DVT_F64}};

static bool dvti_idx_type(unsigned type, dvti_stored *stored) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_idx_types); i++)
        if (dvti_idx_types[i].type == type) {
            stored->kind = dvti_idx_types[i].kind;
            stored->bytes = dvti_idx_types[i].bytes;
            stored->big_endian = true;
            stored->dtype = dvti_idx_types[i].dtype;
            return true;
        }
    return false;
}

/* Returns the type that all elements of the dtype have, 0 if there is none. */
static unsigned dvti_idx_type_of(dvt_dtype dtype) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_idx_types); i++)
        if (dvti_idx_types[i].dtype == dtype &&
            dvti_idx_types[i].bytes == (int)dvt_dtype_size(dtype))
            return dvti_idx_types[i].type;
    return 0;
}

static bool dvti_idx_parse(dvti_source *in, dvti_idx_header *header) {
    const unsigned char *at;
    int i;
    memset(header, 0, sizeof *header);
    if (!dvti_source_peek(in, 4) || in->at[0] != 0 || in->at[1] != 0 ||
        !dvti_idx_type(in->at[2], &header->stored) || in->at[3] == 0)
        return dvti_source_other_format(in, "an IDX file (those begin with 00 00, a type of 08, "
                                            "09, 0b, 0c, 0d or 0e, and the number of axes)");
    at = in->at;
    header->shape.ndim = at[3];
    if (header->shape.ndim > DVT_MAX_DIMS)
        return dvti_source_wrong(
            in, "the header says %d axes; expected at most %d: the file is damaged, or not IDX",
            header->shape.ndim, DVT_MAX_DIMS);
    dvti_source_skip(in, 4);
    for (i = 0; i < header->shape.ndim; i++)
        header->shape.dim[i] = (int64_t)dvti_source_be(in, 4);
    if (in->ended)
        return dvti_source_wrong(in,
                                 "the file ends within its header; expected %d extents of 4 bytes: "
                                 "fetch the file again",
                                 header->shape.ndim);
    if (!dvti_stored_bytes(&header->stored, &header->shape, &header->bytes) ||
        !dvti_sum(header->bytes, in->taken, &header->bytes))
        return dvti_source_wrong(in,
                                 "the header says %s, which is more than any file holds: it is "
                                 "damaged, fetch it again",
                                 dvti_shape_text(header->shape));
    return true;
}

static dvt_array *dvti_idx(dvti_source *in, dvt_ctx ctx) {
    dvti_idx_header header;
    dvt_array *x;
    bool fits;
    if (!dvti_source_gunzip(in) || !dvti_idx_parse(in, &header))
        return NULL;
    x = dvti_stored_whole(&header.stored, in, header.shape, false, ctx, &fits);
    if (!x && !fits)
        dvti_source_wrong(in,
                          "the header says shape %s, which takes %lld bytes, but there are %s; the "
                          "file is cut off, damaged, or followed by something else: fetch it again",
                          dvti_shape_text(header.shape), (long long)header.bytes,
                          dvti_source_size_text(in, 0, header.bytes));
    return x;
}

DVT_API dvt_array *dvt_read_idx(const void *data, size_t bytes, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result;
    if (!data) {
        dvti_null("dvt_read_idx", "data");
        return NULL;
    }
    dvti_source_memory(&in, "dvt_read_idx", data, bytes);
    result = dvti_idx(&in, ctx);
    dvti_source_close(&in);
    return result;
}

DVT_API dvt_array *dvt_load_idx(const char *path, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result = NULL;
    if (dvti_source_open(&in, "dvt_load_idx", path))
        result = dvti_idx(&in, ctx);
    dvti_source_close(&in);
    return result;
}

/* ---- writing ---- */
static dvt_status dvti_idx_write_check(const char *function, const dvt_array *x) {
    int i;
    if (!x)
        return dvti_null(function, "x");
    if (!dvti_idx_type_of(x->dtype))
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: x is %s; expected uint8, int8, int32, float32 or float64: cast it "
                         "with dvt_astype",
                         function, dvti_describe(x));
    if (x->shape.ndim == 0)
        return dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected at least one axis: reshape it",
                         function, dvti_describe(x));
    for (i = 0; i < x->shape.ndim; i++)
        if (x->shape.dim[i] > (int64_t)UINT32_MAX)
            return dvti_fail(DVT_ERR_RANGE,
                             "%s: axis %d of x has %lld elements; expected less than 2^32",
                             function, i, (long long)x->shape.dim[i]);
    return DVT_OK;
}

DVT_API dvt_status dvt_save_idx(const char *path, dvt_array *x) {
    static const char *const function = "dvt_save_idx";
    dvt_status status =
        dvti_file_plain(function, path) ? dvti_idx_write_check(function, x) : dvti_failure();
    unsigned char head[4 + 4 * DVT_MAX_DIMS] = {0};
    dvt_scope_guard scope;
    dvti_file_out out;
    dvt_array *host;
    int i, k;
    if (status != DVT_OK)
        return status;
    head[2] = (unsigned char)dvti_idx_type_of(x->dtype);
    head[3] = (unsigned char)x->shape.ndim;
    for (i = 0; i < x->shape.ndim; i++)
        for (k = 0; k < 4; k++)
            head[4 + 4 * i + k] = (unsigned char)(x->shape.dim[i] >> (24 - 8 * k));
    scope = dvt_scope_begin();
    host = dvti_stored_host_in(function, x, x->dtype, true);
    if (host && dvti_file_begin(&out, function, path)) {
        dvti_file_write(&out, head, 4 + 4 * (size_t)x->shape.ndim);
        dvti_file_write(&out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
        status = dvti_file_end(&out, true);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}
