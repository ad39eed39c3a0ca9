/* IDX, the format of MNIST: 0, 0, type, number of axes; extents; elements; all big-endian. Plain or
   gzip, detected by content. */
#include "5_io/dvt_io_internal.h"

typedef struct dvti_idx_header {
    dvti_stored stored;
    dvt_shape shape;
    int64_t bytes; /* total size, including the header */
} dvti_idx_header;

static bool dvti_idx_type(unsigned type, dvti_stored *stored) {
    static const struct {
        unsigned type;
        char kind;
        int bytes;
        dvt_dtype dtype;
    } known[] = {{0x08, 'u', 1, DVT_U8},  {0x09, 'i', 1, DVT_I8},  {0x0b, 'i', 2, DVT_I32},
                 {0x0c, 'i', 4, DVT_I32}, {0x0d, 'f', 4, DVT_F32}, {0x0e, 'f', 8, DVT_F64}};

    int i;
    for (i = 0; i < DVTI_LENGTH(known); i++)
        if (known[i].type == type) {
            stored->kind = known[i].kind;
            stored->bytes = known[i].bytes;
            stored->big_endian = true;
            stored->dtype = known[i].dtype;
            return true;
        }
    return false;
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
