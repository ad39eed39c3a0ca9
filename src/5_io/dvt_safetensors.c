/* safetensors: 8 bytes with the length of a JSON header, the header, the elements of all tensors.

   {"__metadata__": {"format": "pt"},
    "0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}

   Everything is little-endian and in C order. Source: the README of huggingface/safetensors. */
#include "5_io/dvt_formats.h"

#define DVTI_SAFETENSORS_METADATA "__metadata__"

static bool dvti_safetensors_dtype(const char *name, dvti_stored *stored) {
    static const struct {
        const char *name;
        char kind;
        int bytes;
        dvt_dtype dtype;
    } known[] = {{"F32", 'f', 4, DVT_F32},  {"F16", 'f', 2, DVT_F16}, {"BF16", 'f', 2, DVT_BF16},
                 {"F64", 'f', 8, DVT_F64},  {"I64", 'i', 8, DVT_I64}, {"I32", 'i', 4, DVT_I32},
                 {"I16", 'i', 2, DVT_I32},  {"I8", 'i', 1, DVT_I8},   {"U8", 'u', 1, DVT_U8},
                 {"U16", 'u', 2, DVT_I32},  {"U32", 'u', 4, DVT_I64}, {"U64", 'u', 8, DVT_I64},
                 {"BOOL", 'b', 1, DVT_BOOL}};

    int i;
    for (i = 0; i < DVTI_LENGTH(known); i++)
        if (strcmp(known[i].name, name) == 0) {
            stored->kind = known[i].kind;
            stored->bytes = known[i].bytes;
            stored->dtype = known[i].dtype;
            stored->big_endian = false;
            return true;
        }
    return false;
}

/* ---- reading ---- */
static bool dvti_safetensors_read_dtype(dvti_tensors *t, dvti_json *json, dvti_tensor *x) {
    if (!dvti_json_string(json))
        return false;
    return dvti_safetensors_dtype(json->text.at, &x->stored) ||
           dvti_source_wrong(t->in,
                             "tensor \"%.100s\" has dtype %.20s, which devtensor does not have; "
                             "convert it to F32, F16 or BF16 before saving",
                             x->name, json->text.at);
}

static bool dvti_safetensors_read_shape(dvti_tensors *t, dvti_json *json, dvti_tensor *x) {
    if (dvti_json_value(json) != DVTI_JSON_ARRAY)
        return dvti_tensors_wrong(t, x, "has a shape that is no array");
    while (dvti_json_item(json)) {
        if (x->shape.ndim == DVT_MAX_DIMS)
            return dvti_tensors_wrong(t, x, "has more than 8 axes");
        if (!dvti_json_size(json, &x->shape.dim[x->shape.ndim]))
            return false;
        x->shape.ndim++;
    }
    return !json->failed;
}

static bool dvti_safetensors_read_offsets(dvti_tensors *t, dvti_json *json, dvti_tensor *x) {
    int64_t offset[2];
    int n = 0;
    if (dvti_json_value(json) != DVTI_JSON_ARRAY)
        return dvti_tensors_wrong(t, x, "has data_offsets that are no array");
    while (dvti_json_item(json)) {
        if (n == 2)
            return dvti_tensors_wrong(t, x, "has more than two data_offsets");
        if (!dvti_json_size(json, &offset[n++]))
            return false;
    }
    if (json->failed)
        return false;
    if (n < 2 || offset[0] > offset[1])
        return dvti_tensors_wrong(t, x, "needs data_offsets of a begin and an end after it");
    x->begin = offset[0];
    x->bytes = offset[1] - offset[0];
    return true;
}

/* Reads dtype, shape and data_offsets, in any order. */
static bool dvti_safetensors_tensor(dvti_tensors *t, dvti_json *json, dvti_tensor *x) {
    static const struct {
        const char *key;
        bool (*read)(dvti_tensors *t, dvti_json *json, dvti_tensor *x);
    } part[] = {{"dtype", dvti_safetensors_read_dtype},
                {"shape", dvti_safetensors_read_shape},
                {"data_offsets", dvti_safetensors_read_offsets}};

    unsigned seen = 0;
    int64_t bytes;
    if (dvti_json_value(json) != DVTI_JSON_OBJECT)
        return dvti_tensors_wrong(t, x, "is no object with dtype, shape and data_offsets");
    while (dvti_json_member(json)) {
        int i = 0;
        while (i < DVTI_LENGTH(part) && strcmp(part[i].key, json->text.at) != 0)
            i++;
        if (i == DVTI_LENGTH(part) || seen & 1u << i)
            return dvti_tensors_wrong(t, x,
                                      "has a key that is unknown or repeated; expected "
                                      "dtype, shape and data_offsets");
        seen |= 1u << i;
        if (!part[i].read(t, json, x))
            return false;
    }
    if (json->failed)
        return false;
    if (seen != 7)
        return dvti_tensors_wrong(t, x, "lacks a key; expected dtype, shape and data_offsets");
    if (!dvti_stored_bytes(&x->stored, &x->shape, &bytes))
        return dvti_tensors_wrong(t, x, "has a shape that is more than any file holds");
    if (bytes == x->bytes)
        return true;
    return dvti_source_wrong(t->in,
                             "tensor \"%.100s\" has shape %s, which takes %lld bytes, and %lld "
                             "bytes of data; fetch or write the file again",
                             x->name, dvti_shape_text(x->shape), (long long)bytes,
                             (long long)x->bytes);
}

static bool dvti_safetensors_metadata(dvti_tensors *t, dvti_json *json) {
    const char *duplicate = NULL;
    if (dvti_json_value(json) != DVTI_JSON_OBJECT)
        return dvti_source_wrong(t->in, "its __metadata__ is no object; write the file again");
    while (dvti_json_member(json)) {
        char *key = dvti_strdup(json->text.at);
        bool good = key != NULL;
        if (!good)
            dvti_fail_memory(t->in->function, (int64_t)json->text.length + 1);
        good = good && dvti_json_string(json) &&
               dvti_array_list_note(t->in->function, t->list, key, json->text.at);
        dvti_free(key);
        if (!good)
            return false;
    }
    if (json->failed ||
        !dvti_names_duplicate(t->in->function, (const char *const *)t->list->metadata,
                              t->list->n_metadata, 2, &duplicate))
        return false;
    return !duplicate ||
           dvti_source_wrong(t->in,
                             "its __metadata__ has the key \"%.100s\" twice; write the file "
                             "again",
                             duplicate);
}

static bool dvti_safetensors_members(dvti_tensors *t, dvti_json *json) {
    bool noted = false;
    if (dvti_json_value(json) != DVTI_JSON_OBJECT)
        return false;
    while (dvti_json_member(json)) {
        if (strcmp(json->text.at, DVTI_SAFETENSORS_METADATA) == 0) {
            if (noted)
                return dvti_source_wrong(t->in, "it has __metadata__ twice; write the file again");
            noted = true;
            if (!dvti_safetensors_metadata(t, json))
                return false;
        } else {
            char *name = dvti_strdup(json->text.at);
            dvti_tensor *x = name ? dvti_tensors_add(t, name) : NULL;
            if (!name)
                dvti_fail_memory(t->in->function, (int64_t)json->text.length + 1);
            if (!x || !dvti_safetensors_tensor(t, json, x))
                return false;
        }
    }
    return dvti_json_end(json);
}

static bool dvti_safetensors_header(dvti_tensors *t) {
    uint64_t size;
    dvti_json json;
    bool good;
    if (!dvti_safetensors_recognizes(t->in))
        return dvti_source_other_format(t->in, "a safetensors file (those begin with the length of "
                                               "a header, at most 100000000, and a {)");
    size = dvti_source_le(t->in, 8);
    if (size > (uint64_t)dvti_source_left(t->in))
        return dvti_source_wrong(t->in,
                                 "its header of %llu bytes goes beyond the end of the file; the "
                                 "file is cut off or damaged: fetch it again",
                                 (unsigned long long)size);
    dvti_json_begin(&json, t->in, (int64_t)size);
    good = dvti_safetensors_members(t, &json);
    if (good && json.left > 0)
        good = dvti_source_wrong(t->in, "it ends within its header; fetch it again");
    dvti_json_free(&json);
    return good;
}

DVTI_FN dvt_array_list *dvti_safetensors_list(dvti_source *in, dvt_ctx ctx) {
    dvti_tensors t;
    bool good =
        dvti_tensors_begin(&t, in) && dvti_safetensors_header(&t) && dvti_tensors_read(&t, ctx);
    dvt_array_list *list = good ? t.list : NULL;
    dvti_tensors_free(&t);
    return list;
}

#if defined(DVTI_CHECKPOINTS)
DVTI_FN dvt_array_list *dvti_safetensors_notes(dvti_source *in, dvt_ctx ctx) {
    dvti_tensors t;
    bool good = dvti_tensors_begin(&t, in) && dvti_safetensors_header(&t) && dvti_tensors_check(&t);
    dvt_array_list *list;
    int i;
    (void)ctx;
    /* The arrays were not read, so the list keeps none of their names. */
    for (i = 0; good && i < t.list->n; i++) {
        dvti_free(t.list->name[i]);
        t.list->name[i] = NULL;
    }
    if (good)
        t.list->n = 0;
    list = good ? t.list : NULL;
    dvti_tensors_free(&t);
    return list;
}
#endif

/* The index of shards is a file of this format for its users. */
static dvt_array_list *dvti_safetensors_any(dvti_source *in, dvt_ctx ctx) {
    return dvti_shards_recognizes(in) ? dvti_shards_list(in, ctx) : dvti_safetensors_list(in, ctx);
}

DVT_API dvt_array_list *dvt_load_safetensors(const char *path, dvt_ctx ctx) {
    return dvti_list_load("dvt_load_safetensors", path, ctx, dvti_safetensors_any);
}

DVT_API dvt_array_list *dvt_read_safetensors(const void *data, size_t bytes, dvt_ctx ctx) {
    return dvti_list_read("dvt_read_safetensors", data, bytes, ctx, dvti_safetensors_any);
}

/* ---- writing ---- */
typedef struct dvti_safetensors_out {
    const char *function;
    dvt_array *const *arrays;
    const char *const *names, *const *metadata;
    int n;
    int64_t *begin; /* of each array, in the data */
    dvti_file_out *later;
} dvti_safetensors_out;

DVTI_FN bool dvti_safetensors_check(const char *function, dvt_array *const *arrays,
                                    const char *const *names, int n, const char *const *metadata) {
    int i;
    if (!names && n > 0) {
        dvti_null(function, "names");
        return false;
    }
    if (!dvti_arrays_check(function, arrays, names, n) ||
        !dvti_metadata_check(function, metadata, &i))
        return false;
    for (i = 0; i < n; i++) {
        if (!dvti_utf8_check(function, names[i]))
            return false;
        if (strcmp(names[i], DVTI_SAFETENSORS_METADATA) == 0) {
            dvti_fail(DVT_ERR_NAME,
                      "%s: array %d is named " DVTI_SAFETENSORS_METADATA
                      ", which the format uses itself; give it another name",
                      function, i);
            return false;
        }
    }
    return true;
}

/* Places the arrays by the size of their elements, the largest first. So each begins at a multiple
   of that size. Calls write(array i) in this order; without it, only sets the places. */
static bool dvti_safetensors_places(const dvti_safetensors_out *o, dvti_file_out *out) {
    int64_t size, end = 0;
    bool good = true;
    int i;
    for (size = 8; size > 0; size /= 2)
        for (i = 0; i < o->n && good; i++) {
            dvt_array *x = o->arrays[i];
            if (dvt_dtype_size(x->dtype) != size)
                continue;
            o->begin[i] = end;
            good = dvti_sum(end, dvt_nbytes(x), &end);
            if (good && out) {
                dvt_scope_guard scope = dvt_scope_begin();
                dvt_array *host = dvti_stored_host(o->function, x, x->dtype);
                good = host != NULL;
                if (good)
                    dvti_file_write(out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
                dvt_scope_end(&scope);
            }
        }
    return good;
}

static void dvti_safetensors_write_tensor(dvti_writer *header, const dvti_safetensors_out *o,
                                          int i) {
    static const char *const dtypes[DVT_DTYPE_COUNT] = {"F32", "F64", "F16", "BF16", "I8",
                                                        "U8",  "I32", "I64", "BOOL"};
    const dvt_array *x = o->arrays[i];
    int k;
    dvti_json_write(header, o->names[i]);
    dvti_writer_text(header, ":{\"dtype\":\"");
    dvti_writer_text(header, dtypes[x->dtype]);
    dvti_writer_text(header, "\",\"shape\":[");
    for (k = 0; k < x->shape.ndim; k++) {
        dvti_writer_text(header, k ? "," : "");
        dvti_writer_int(header, x->shape.dim[k]);
    }
    dvti_writer_text(header, "],\"data_offsets\":[");
    dvti_writer_int(header, o->begin[i]);
    dvti_writer_text(header, ",");
    dvti_writer_int(header, o->begin[i] + dvt_nbytes(o->arrays[i]));
    dvti_writer_text(header, "]}");
}

static void dvti_safetensors_write_header(dvti_writer *header, const dvti_safetensors_out *o) {
    int i;
    dvti_writer_text(header, "{");
    if (o->metadata && o->metadata[0]) {
        dvti_writer_text(header, "\"" DVTI_SAFETENSORS_METADATA "\":{");
        for (i = 0; o->metadata[i]; i++) {
            dvti_json_write(header, o->metadata[i]);
            dvti_writer_text(header, i % 2 == 0 ? ":" : o->metadata[i + 1] ? "," : "}");
        }
        dvti_writer_text(header, o->n ? "," : "");
    }
    for (i = 0; i < o->n; i++) {
        dvti_writer_text(header, i ? "," : "");
        dvti_safetensors_write_tensor(header, o, i);
    }
    dvti_writer_text(header, "}");
    dvti_writer_repeat(header, ' ', (int64_t)(7 - (header->length + 7) % 8));
}

static dvt_status dvti_safetensors_write(const dvti_safetensors_out *o, const char *path,
                                         const dvti_writer *header) {
    dvti_writer length = dvti_writer_begin();
    dvti_file_out own, *out = o->later ? o->later : &own;
    bool good;
    if (!dvti_file_begin(out, o->function, path))
        return dvti_failure();
    dvti_writer_le(&length, header->length, 8);
    good = !length.failed;
    if (good) {
        dvti_file_write(out, length.at, length.length);
        dvti_file_write(out, header->at, header->length);
        good = dvti_safetensors_places(o, out);
    } else
        dvti_fail_memory(o->function, 8);
    dvti_writer_free(&length);
    good = dvti_file_close(out, good);
    return good && o->later ? DVT_OK : dvti_file_end(out, good);
}

static dvt_status dvti_safetensors_save_all(dvti_safetensors_out *o, const char *path) {
    dvti_writer header = dvti_writer_begin();
    dvt_status status;
    if (!dvti_safetensors_check(o->function, o->arrays, o->names, o->n, o->metadata))
        return dvti_failure();
    o->begin = (int64_t *)dvti_alloc(sizeof *o->begin * (size_t)o->n);
    if (!o->begin)
        return dvti_fail_memory(o->function, (int64_t)sizeof *o->begin * o->n);
    if (!dvti_safetensors_places(o, NULL))
        status = dvti_fail(DVT_ERR_RANGE, "%s: the arrays take more bytes than any file holds",
                           o->function);
    else {
        dvti_safetensors_write_header(&header, o);
        if (header.failed)
            status = dvti_fail_memory(o->function, (int64_t)header.capacity * 2);
        else if (header.length > DVTI_SAFETENSORS_HEADER)
            status = dvti_fail(DVT_ERR_RANGE,
                               "%s: the header of %lld bytes is longer than the 100000000 of the "
                               "format; save fewer arrays in one file",
                               o->function, (long long)header.length);
        else
            status = dvti_safetensors_write(o, path, &header);
    }
    dvti_writer_free(&header);
    dvti_free(o->begin);
    return status;
}

DVTI_FN dvt_status dvti_safetensors_save_with(const char *function, const char *path,
                                              dvt_array *const *arrays, const char *const *names,
                                              int n, const char *const *metadata,
                                              dvti_file_out *later) {
    dvti_safetensors_out o;
    memset(&o, 0, sizeof o);
    o.function = function;
    o.arrays = arrays;
    o.names = names;
    o.n = n;
    o.metadata = metadata;
    o.later = later;
    return dvti_safetensors_save_all(&o, path);
}

DVTI_FN dvt_status dvti_safetensors_save(const char *function, const char *path,
                                         dvt_array *const *arrays, const char *const *names,
                                         int n) {
    return dvti_safetensors_save_with(function, path, arrays, names, n, NULL, NULL);
}

DVT_API dvt_status dvt_save_safetensors(const char *path, dvt_array *const *arrays,
                                        const char *const *names, int n,
                                        const char *const *metadata) {
    return dvti_safetensors_save_with("dvt_save_safetensors", path, arrays, names, n, metadata,
                                      NULL);
}

#if defined(DVTI_CHECKPOINTS)
DVTI_FN dvt_status dvti_safetensors_save_list(const char *function, const char *path,
                                              const dvt_array_list *list) {
    size_t n = 2 * (size_t)list->n_metadata;
    const char **metadata = (const char **)dvti_alloc_zero((n + 1) * sizeof *metadata);
    dvt_status status;
    if (!metadata)
        return dvti_fail_memory(function, (int64_t)((n + 1) * sizeof *metadata));
    if (n)
        memcpy((void *)metadata, (const void *)list->metadata, n * sizeof *metadata);
    status = dvti_safetensors_save_with(function, path, list->array,
                                        (const char *const *)list->name, list->n, metadata, NULL);
    dvti_free((void *)metadata);
    return status;
}
#endif

#undef DVTI_SAFETENSORS_METADATA
