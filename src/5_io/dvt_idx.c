/* IDX, the format of MNIST: 0, 0, type, number of axes; the extents; the elements; all big-endian. Plain or gzip, told
   apart by content. */
#include "5_io/dvt_io_internal.h"

#define DVTI_IDX_HEADER (4 + 4 * DVT_MAX_DIMS)

typedef struct dvti_idx_header {
    dvti_stored stored;
    dvt_shape shape;
    int64_t begin, bytes; /* of the header, and of all */
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

static bool dvti_idx_parse(const char *function, const char *what, const void *bytes, size_t size,
                           dvti_idx_header *header) {
    dvti_source in = dvti_source_begin(bytes, size);
    unsigned zero = (unsigned)dvti_source_be(&in, 2), type = (unsigned)dvti_source_be(&in, 1);
    int ndim = (int)dvti_source_be(&in, 1), i;
    int64_t count = 1;
    bool fits = true;
    memset(header, 0, sizeof *header);
    if (in.failed || zero != 0 || !dvti_idx_type(type, &header->stored) || ndim == 0) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: this is not an IDX file (it has %lld bytes and begins with %02x %02x "
            "%02x %02x); expected 00 00, a type of 08, 09, 0b, 0c, 0d or 0e, and the number of "
            "axes: check that the path names the right file",
            function, what, (long long)size, zero >> 8, zero & 255, type, (unsigned)ndim);
        return false;
    }
    if (ndim > DVT_MAX_DIMS) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says %d axes; expected at most %d: the file is damaged, or "
            "not IDX",
            function, what, ndim, DVT_MAX_DIMS);
        return false;
    }
    header->shape.ndim = ndim;
    for (i = 0; i < ndim; i++) {
        header->shape.dim[i] = (int64_t)dvti_source_be(&in, 4);
        fits = fits && dvti_mul(count, header->shape.dim[i], &count);
    }
    if (in.failed) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the file ends within its header, after %lld bytes; expected %d extents "
            "of 4 bytes: fetch the file again",
            function, what, (long long)size, ndim);
        return false;
    }
    header->begin = 4 + 4 * ndim;
    if (!fits || !dvti_mul(count, header->stored.bytes, &header->bytes) ||
        !dvti_sum(header->bytes, header->begin, &header->bytes)) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says %s, which is more than any file holds: it is damaged, "
            "fetch it again",
            function, what, dvti_shape_text(header->shape));
        return false;
    }
    return true;
}

static dvt_array *dvti_idx_plain(const char *function, const char *what, const void *bytes,
                                 size_t size, dvt_ctx ctx) {
    dvti_idx_header header;
    if (!dvti_idx_parse(function, what, bytes, size, &header))
        return NULL;
    if ((uint64_t)header.bytes != size) {
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the header says shape %s, which takes %lld bytes, but there are %lld; "
            "the file is cut off, damaged, or followed by something else: fetch it again",
            function, what, dvti_shape_text(header.shape), (long long)header.bytes,
            (long long)size);
        return NULL;
    }
    return dvti_stored_array(function, &header.stored, (const unsigned char *)bytes + header.begin,
                             header.shape, ctx);
}

/* The header, which is unpacked first, says how much there may be. */
static dvt_array *dvti_idx_gzip(const char *function, const char *what, const void *bytes,
                                size_t size, dvt_ctx ctx) {
    unsigned char head[DVTI_IDX_HEADER];
    dvti_idx_header header;
    dvt_array *result;
    void *plain;
    size_t got;
    if (!dvti_gunzip_head(function, what, bytes, size, head, sizeof head, &got) ||
        !dvti_idx_parse(function, what, head, got, &header))
        return NULL;
    if ((uint64_t)header.bytes / DVTI_DEFLATE_RATIO > size) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: %.300s: the header says shape %s, which takes %lld bytes, more than %lld "
                  "compressed bytes can hold; the file is cut off or damaged: fetch it again",
                  function, what, dvti_shape_text(header.shape), (long long)header.bytes,
                  (long long)size);
        return NULL;
    }
    if (!dvti_gunzip(function, what, bytes, size, (size_t)header.bytes, &plain, &got))
        return NULL;
    result = dvti_idx_plain(function, what, plain, got, ctx);
    dvti_free(plain);
    return result;
}

static dvt_array *dvti_idx(const char *function, const char *what, const void *bytes, size_t size,
                           dvt_ctx ctx) {
    return dvti_is_gzip(bytes, size) ? dvti_idx_gzip(function, what, bytes, size, ctx)
                                     : dvti_idx_plain(function, what, bytes, size, ctx);
}

DVT_API dvt_array *dvt_read_idx(const void *data, size_t bytes, dvt_ctx ctx) {
    if (!data) {
        dvti_null("dvt_read_idx", "data");
        return NULL;
    }
    return dvti_idx("dvt_read_idx", "the data", data, bytes, ctx);
}

DVT_API dvt_array *dvt_load_idx(const char *path, dvt_ctx ctx) {
    void *bytes;
    size_t size;
    dvt_array *result;
    if (!dvti_file_read("dvt_load_idx", path, &bytes, &size))
        return NULL;
    result = dvti_idx("dvt_load_idx", path, bytes, size, ctx);
    dvti_free(bytes);
    return result;
}

#undef DVTI_IDX_HEADER
