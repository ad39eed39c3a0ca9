/* Apache MXNet's .params format: a list of arrays, each with version, shape and dtype, and then
   their names. Sizes are checked against the remaining bytes before anything is allocated. The
   format is that of NDArray::Save in MXNet; the saved device is ignored. */
#include "5_io/dvt_io_internal.h"

#define DVTI_PARAMS_LIST 0x112
#define DVTI_PARAMS_V1 0xf993fac8u
#define DVTI_PARAMS_V2 0xf993fac9u
#define DVTI_PARAMS_V3 0xf993facau

typedef struct dvti_params_reader {
    dvti_source *in;
    int64_t n, at; /* number of arrays; index of the one being read */
} dvti_params_reader;

/* ---- errors ---- */
static bool dvti_params_wrong(dvti_params_reader *r, const char *wrong) {
    return dvti_source_wrong(r->in, "%s; fetch or write the file again", wrong);
}

static bool dvti_params_wrong_array(dvti_params_reader *r, const char *wrong) {
    return dvti_source_wrong(r->in, "array %lld of %lld %s; fetch or write the file again",
                             (long long)r->at, (long long)r->n, wrong);
}

/* ---- one array ---- */
static bool dvti_params_type(dvti_params_reader *r, int64_t flag, dvti_stored *stored) {
    static const struct {
        char kind;
        int bytes;
        dvt_dtype dtype;
    } known[] = {{'f', 4, DVT_F32}, {'f', 8, DVT_F64}, {'f', 2, DVT_F16}, {'u', 1, DVT_U8},
                 {'i', 4, DVT_I32}, {'i', 1, DVT_I8},  {'i', 8, DVT_I64}, {'b', 1, DVT_BOOL},
                 {'i', 2, DVT_I32}, {'u', 2, DVT_I32}, {'u', 4, DVT_I64}, {'u', 8, DVT_I64},
                 {'f', 2, DVT_BF16}};

    if (flag < 0 || flag >= DVTI_LENGTH(known))
        return dvti_params_wrong_array(r, "has an unknown dtype number");
    stored->kind = known[flag].kind;
    stored->bytes = known[flag].bytes;
    stored->dtype = known[flag].dtype;
    stored->big_endian = false;
    return true;
}

static bool dvti_params_shape(dvti_params_reader *r, int64_t ndim, int extent_bytes,
                              dvt_shape *shape) {
    int i;
    if (ndim < 0 || ndim > DVT_MAX_DIMS)
        return dvti_params_wrong_array(r, "has more than 8 axes, or an unknown number of them");
    shape->ndim = (int)ndim;
    for (i = 0; i < shape->ndim; i++) {
        uint64_t extent = dvti_source_le(r->in, extent_bytes);
        shape->dim[i] = dvti_signed(extent, 8);
        if (shape->dim[i] < 0)
            return dvti_params_wrong_array(r, "has a negative extent");
    }
    return true;
}

/* Reads device, dtype and elements, which are the same in all versions. Returns NULL with the error
   set. */
static dvt_array *dvti_params_data(dvti_params_reader *r, dvt_shape shape, dvt_ctx ctx) {
    dvti_stored stored;
    dvt_array *x;
    int64_t bytes;
    dvti_source_skip(r->in, 8); /* the device it was saved from */
    if (!dvti_params_type(r, dvti_signed(dvti_source_le(r->in, 4), 4), &stored))
        return NULL;
    if (!dvti_stored_bytes(&stored, &shape, &bytes)) {
        dvti_params_wrong_array(r, "has a shape that is more than any file holds");
        return NULL;
    }
    if (r->in->ended || bytes > dvti_source_left(r->in)) {
        dvti_params_wrong_array(r, "goes beyond the end of the file");
        return NULL;
    }
    x = dvti_stored_array(&stored, r->in, shape, false, ctx);
    if (!x && r->in->ended)
        dvti_params_wrong_array(r, "goes beyond the end of the file");
    return x;
}

/* Reads version and shape. The oldest version has no version number: it begins with its ndim. */
static bool dvti_params_head(dvti_params_reader *r, dvt_shape *shape) {
    uint32_t version = (uint32_t)dvti_source_le(r->in, 4);
    bool numbered = version == DVTI_PARAMS_V2 || version == DVTI_PARAMS_V3;
    int64_t ndim;
    if (r->in->ended)
        return dvti_params_wrong_array(r, "goes beyond the end of the file");
    if (numbered && dvti_source_le(r->in, 4) != 0)
        return dvti_params_wrong_array(
            r, "is sparse (row_sparse or csr), which devtensor does not have: convert it with "
               ".tostype('default') before saving");
    if (numbered || version == DVTI_PARAMS_V1)
        ndim = dvti_signed(dvti_source_le(r->in, 4), 4);
    else if (version <= DVT_MAX_DIMS)
        ndim = version;
    else
        return dvti_params_wrong_array(r, "has an unknown version number");
    if (r->in->ended)
        return dvti_params_wrong_array(r, "goes beyond the end of the file");
    if (ndim == (version == DVTI_PARAMS_V3 ? -1 : 0))
        return dvti_params_wrong_array(r, "is without shape and values, which MXNet "
                                          "writes for uninitialized parameters");
    return dvti_params_shape(r, ndim, numbered || version == DVTI_PARAMS_V1 ? 8 : 4, shape);
}

/* ---- names ---- */
static bool dvti_params_name(dvti_params_reader *r, char **name) {
    const char *wrong = NULL;
    *name = dvti_source_text(r->in, &wrong);
    if (wrong)
        dvti_source_wrong(r->in,
                          "array %lld of %lld has a name that %s; fetch or write the file again",
                          (long long)r->at, (long long)r->n, wrong);
    return *name != NULL;
}

static bool dvti_params_names(dvti_params_reader *r, dvt_array_list *list) {
    uint64_t count = dvti_source_le(r->in, 8);
    const char *duplicate = NULL;
    if (r->in->ended)
        return dvti_params_wrong(r, "it ends before the names of its arrays");
    if (count != 0 && count != (uint64_t)r->n)
        return dvti_params_wrong(r, "it does not have as many names as arrays");
    if (count != 0 && !dvti_array_list_begin_names(r->in->function, list))
        return false;
    for (r->at = 0; count != 0 && r->at < r->n; r->at++)
        if (!dvti_params_name(r, &list->name[r->at]))
            return false;
    if (!dvti_source_at_end(r->in))
        return dvti_params_wrong(r, "extra data follows its end");
    if (count > 1 && !dvti_names_duplicate(r->in->function, (const char *const *)list->name,
                                           list->n, 1, &duplicate))
        return false;
    return !duplicate ||
           dvti_source_wrong(r->in,
                             "two arrays are named \"%.100s\"; write the file again with "
                             "different names",
                             duplicate);
}

/* ---- reading ---- */
DVTI_FN bool dvti_params_recognizes(dvti_source *in) {
    return dvti_source_peek(in, 8) && dvti_bytes_value(in->at, 8, false) == DVTI_PARAMS_LIST;
}

static bool dvti_params_begin(dvti_params_reader *r) {
    uint64_t count;
    if (!dvti_params_recognizes(r->in))
        return dvti_source_other_format(r->in,
                                        "an MXNet parameter file (those begin with 12 01 00 00)");
    dvti_source_skip(r->in, 16); /* and 8 reserved bytes */
    count = dvti_source_le(r->in, 8);
    if (r->in->ended)
        return dvti_params_wrong(r, "it ends within its header");
    /* A record has at least 12 bytes. */
    if (count > (uint64_t)dvti_source_left(r->in) / 12 || count > (uint64_t)INT_MAX)
        return dvti_params_wrong(r, "its header promises more arrays than the file can hold");
    r->n = (int64_t)count;
    return true;
}

static bool dvti_params_fill(dvti_params_reader *r, dvt_array_list *list, dvt_ctx ctx) {
    for (r->at = 0; r->at < r->n; r->at++) {
        dvt_shape shape = DVT_SCALAR;
        dvt_array *x = dvti_params_head(r, &shape) ? dvti_params_data(r, shape, ctx) : NULL;
        if (!x || !dvti_array_list_add(r->in->function, list, x))
            return false;
    }
    return dvti_params_names(r, list);
}

DVTI_FN dvt_array_list *dvti_params_list(dvti_source *in, dvt_ctx ctx) {
    dvti_params_reader r;
    dvt_array_list *list;
    memset(&r, 0, sizeof r);
    r.in = in;
    if (!dvti_params_begin(&r))
        return NULL;
    list = dvti_array_list_new(in->function);
    return list && dvti_params_fill(&r, list, ctx) ? list : NULL;
}

DVT_API dvt_array_list *dvt_read_params(const void *data, size_t bytes, dvt_ctx ctx) {
    return dvti_list_read("dvt_read_params", data, bytes, ctx, dvti_params_list);
}

DVT_API dvt_array_list *dvt_load_params(const char *path, dvt_ctx ctx) {
    return dvti_list_load("dvt_load_params", path, ctx, dvti_params_list);
}

/* ---- writing ---- */
static int dvti_params_flag(dvt_dtype dtype) {
    static const int flags[DVT_DTYPE_COUNT] = {0, 1, 2, 12, 5, 3, 4, 6, 7};
    return flags[dtype];
}

/* Writes one array. In version 2, an extent of 0 or no axes means "unknown", so such arrays are
   written as version 3. */
static bool dvti_params_write_array(dvti_file_out *out, dvt_array *x) {
    bool np_shape = x->shape.ndim == 0 || dvt_size(x) == 0, ok;
    dvti_writer head = dvti_writer_begin();
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *host = dvti_stored_host(out->function, x, x->dtype);
    int i;
    dvti_writer_le(&head, np_shape ? DVTI_PARAMS_V3 : DVTI_PARAMS_V2, 4);
    dvti_writer_le(&head, 0, 4); /* dense */
    dvti_writer_le(&head, (uint64_t)x->shape.ndim, 4);
    for (i = 0; i < x->shape.ndim; i++)
        dvti_writer_le(&head, (uint64_t)x->shape.dim[i], 8);
    dvti_writer_le(&head, 1, 4); /* cpu */
    dvti_writer_le(&head, 0, 4);
    dvti_writer_le(&head, (uint64_t)dvti_params_flag(x->dtype), 4);
    if (head.failed)
        dvti_fail_memory(out->function, (int64_t)head.capacity * 2);
    ok = host && !head.failed;
    if (ok) {
        dvti_file_write(out, head.at, head.length);
        dvti_file_write(out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
    }
    dvti_writer_free(&head);
    dvt_scope_end(&scope);
    return ok;
}

static void dvti_params_write_number(dvti_file_out *out, uint64_t value) {
    unsigned char raw[8];
    int i;
    for (i = 0; i < 8; i++)
        raw[i] = (unsigned char)(value >> 8 * i);
    dvti_file_write(out, raw, 8);
}

DVTI_FN dvt_status dvti_params_save(const char *function, const char *path,
                                    dvt_array *const *arrays, const char *const *names, int n) {
    dvti_file_out out;
    bool ok = true;
    int i;
    if (!dvti_arrays_check(function, arrays, names, n) || !dvti_file_begin(&out, function, path))
        return dvti_failure();
    dvti_params_write_number(&out, DVTI_PARAMS_LIST);
    dvti_params_write_number(&out, 0);
    dvti_params_write_number(&out, (uint64_t)n);
    for (i = 0; i < n && ok; i++)
        ok = dvti_params_write_array(&out, arrays[i]);
    dvti_params_write_number(&out, names ? (uint64_t)n : 0);
    for (i = 0; i < n && names; i++) {
        dvti_params_write_number(&out, (uint64_t)strlen(names[i]));
        dvti_file_write(&out, names[i], strlen(names[i]));
    }
    return dvti_file_end(&out, ok);
}

DVT_API dvt_status dvt_save_params(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n) {
    return dvti_params_save("dvt_save_params", path, arrays, names, n);
}

#undef DVTI_PARAMS_LIST
#undef DVTI_PARAMS_V1
#undef DVTI_PARAMS_V2
#undef DVTI_PARAMS_V3
