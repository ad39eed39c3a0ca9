/* Writes GGUF, version 3, little-endian; dvt_gguf.c has the layout. Limits are those of the readers
   in ggml-org/ggml: 4 axes, names of 63 bytes. */
#include "5_io/dvt_formats.h"

#define DVTI_GGUF_AXES 4
#define DVTI_GGUF_NAME 63 /* bytes */

typedef struct dvti_gguf_out {
    const char *function;
    dvt_array *const *arrays;
    const char *const *names, *const *metadata;
    int n, n_metadata, skipped;
} dvti_gguf_out;

/* ---- checks ---- */
static dvt_status dvti_gguf_check_array(const dvti_gguf_out *o, int i) {
    const dvt_array *x = o->arrays[i];
    if (!dvti_utf8_check(o->function, o->names[i]))
        return dvti_failure();
    if (!*o->names[i] || strlen(o->names[i]) > DVTI_GGUF_NAME)
        return dvti_fail(
            DVT_ERR_NAME, "%s: the name \"%.100s\" of array %d has %lld bytes; expected 1 to %d",
            o->function, o->names[i], i, (long long)strlen(o->names[i]), DVTI_GGUF_NAME);
    if (dvti_gguf_number_of(x->dtype) < 0)
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: array %d, \"%.100s\", is %s, which GGUF does not have; cast it to "
                         "int8 or int32",
                         o->function, i, o->names[i], dvti_describe(x));
    if (x->shape.ndim > DVTI_GGUF_AXES)
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: array %d, \"%.100s\", is %s; GGUF has at most %d axes: reshape it",
                         o->function, i, o->names[i], dvti_describe(x), DVTI_GGUF_AXES);
    if (!dvti_has_elements(&x->shape))
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: array %d, \"%.100s\", is %s; readers of GGUF refuse arrays without "
                         "elements",
                         o->function, i, o->names[i], dvti_describe(x));
    return DVT_OK;
}

static bool dvti_gguf_skips(const char *key) {
    return strcmp(key, "general.alignment") == 0;
}

static dvt_status dvti_gguf_check(dvti_gguf_out *o) {
    dvt_status status = DVT_OK;
    int i;
    if (!o->names && o->n > 0)
        return dvti_null(o->function, "names");
    if (!dvti_arrays_check(o->function, o->arrays, o->names, o->n) ||
        !dvti_metadata_check(o->function, o->metadata, &o->n_metadata))
        return dvti_failure();
    for (i = 0; i < o->n && status == DVT_OK; i++)
        status = dvti_gguf_check_array(o, i);
    for (i = 0; i < o->n_metadata && status == DVT_OK; i++) {
        const char *key = o->metadata[2 * i];
        if (!*key || strlen(key) > DVTI_GGUF_KEY || strncmp(key, "GGUF.", 5) == 0)
            status = dvti_fail(DVT_ERR_NAME,
                               "%s: the metadata has the key \"%.100s\"; expected 1 to %d bytes, "
                               "and no GGUF. in front",
                               o->function, key, DVTI_GGUF_KEY);
        o->skipped += dvti_gguf_skips(key);
    }
    return status;
}

/* ---- the file ---- */
static void dvti_gguf_write_text(dvti_writer *head, const char *text) {
    dvti_writer_le(head, strlen(text), 8);
    dvti_writer_text(head, text);
}

static int64_t dvti_gguf_padding(int64_t bytes) {
    return (DVTI_GGUF_ALIGNMENT - bytes % DVTI_GGUF_ALIGNMENT) % DVTI_GGUF_ALIGNMENT;
}

/* Returns false when the elements take more bytes than any file holds. */
static bool dvti_gguf_head(dvti_writer *head, const dvti_gguf_out *o) {
    int64_t begin = 0;
    int i, k;
    dvti_writer_text(head, "GGUF");
    dvti_writer_le(head, 3, 4);
    dvti_writer_le(head, (uint64_t)o->n, 8);
    dvti_writer_le(head, (uint64_t)(o->n_metadata - o->skipped), 8);
    for (i = 0; i < o->n_metadata; i++) {
        if (dvti_gguf_skips(o->metadata[2 * i]))
            continue;
        dvti_gguf_write_text(head, o->metadata[2 * i]);
        dvti_writer_le(head, DVTI_GGUF_STRING, 4);
        dvti_gguf_write_text(head, o->metadata[2 * i + 1]);
    }
    for (i = 0; i < o->n; i++) {
        const dvt_array *x = o->arrays[i];
        const int64_t bytes = dvt_nbytes(x);
        dvti_gguf_write_text(head, o->names[i]);
        dvti_writer_le(head, (uint64_t)x->shape.ndim, 4);
        for (k = x->shape.ndim - 1; k >= 0; k--)
            dvti_writer_le(head, (uint64_t)x->shape.dim[k], 8);
        dvti_writer_le(head, (uint64_t)dvti_gguf_number_of(x->dtype), 4);
        dvti_writer_le(head, (uint64_t)begin, 8);
        if (!dvti_sum(begin, bytes, &begin) || !dvti_sum(begin, dvti_gguf_padding(bytes), &begin))
            return false;
    }
    dvti_writer_repeat(head, 0, dvti_gguf_padding((int64_t)head->length));
    return true;
}

static bool dvti_gguf_write_elements(const dvti_gguf_out *o, dvti_file_out *out) {
    static const char zeros[DVTI_GGUF_ALIGNMENT] = {0};
    bool good = true;
    int i;
    for (i = 0; i < o->n && good; i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        dvt_array *host = dvti_stored_host(o->function, o->arrays[i], o->arrays[i]->dtype);
        good = host != NULL;
        if (good) {
            dvti_file_write(out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
            dvti_file_write(out, zeros, (size_t)dvti_gguf_padding(dvt_nbytes(host)));
        }
        dvt_scope_end(&scope);
    }
    return good;
}

static dvt_status dvti_gguf_save_with(const char *function, const char *path,
                                      dvt_array *const *arrays, const char *const *names, int n,
                                      const char *const *metadata) {
    dvti_gguf_out o = {function, arrays, names, metadata, n, 0, 0};
    dvt_status status = dvti_gguf_check(&o);
    dvti_writer head = dvti_writer_begin();
    dvti_file_out out;
    if (status != DVT_OK)
        return status;
    if (!dvti_gguf_head(&head, &o))
        status = dvti_fail(DVT_ERR_RANGE, "%s: the arrays take more bytes than any file holds",
                           function);
    else if (head.failed)
        status = dvti_fail_memory(function, (int64_t)head.capacity * 2);
    else if (dvti_file_begin(&out, function, path)) {
        dvti_file_write(&out, head.at, head.length);
        status = dvti_file_end(&out, dvti_gguf_write_elements(&o, &out));
    } else
        status = dvti_failure();
    dvti_writer_free(&head);
    return status;
}

DVTI_FN dvt_status dvti_gguf_save(const char *function, const char *path, dvt_array *const *arrays,
                                  const char *const *names, int n) {
    return dvti_gguf_save_with(function, path, arrays, names, n, NULL);
}

DVT_API dvt_status dvt_save_gguf(const char *path, dvt_array *const *arrays,
                                 const char *const *names, int n, const char *const *metadata) {
    return dvti_gguf_save_with("dvt_save_gguf", path, arrays, names, n, metadata);
}

#undef DVTI_GGUF_AXES
#undef DVTI_GGUF_NAME
