/* NumPy's .npz: a zip archive of .npy members. The writer produces one pass of bytes, so that it
   can also write to pipes: a stored member has its CRC in its header, and a deflated one in a data
   descriptor after it. */
#include "5_io/dvt_formats.h"

/* ---- reading ---- */
/* Drops the directories of the file system: names that end in / without content. */
static void dvti_npz_drop_directories(dvti_zip *zip) {
    int i, kept = 0;
    for (i = 0; i < zip->n; i++) {
        dvti_zip_member *m = &zip->member[i];
        if (m->size == 0 && dvti_ends_with(m->name, (size_t)m->n_name, "/"))
            dvti_free(m->name);
        else
            zip->member[kept++] = *m;
    }
    zip->n = kept;
}

/* Refuses archives of other files. */
static bool dvti_npz_names(dvti_zip *zip) {
    const dvti_zip_member *other = NULL;
    int i;
    for (i = 0; i < zip->n; i++) {
        const dvti_zip_member *m = &zip->member[i];
        size_t n = (size_t)m->n_name;
        if (dvti_ends_with(m->name, n, "/data.pkl") || strcmp(m->name, "data.pkl") == 0)
            return dvti_source_wrong(zip->in, "this is a PyTorch file: save it as safetensors");
        if (!other && !dvti_ends_with(m->name, n, ".npy"))
            other = m;
    }
    return !other || dvti_source_wrong(zip->in,
                                       "its member \"%.100s\" is not an .npy file, so this is "
                                       "another kind of archive; expected names ending in .npy",
                                       other->name);
}

/* Moves the names, without ".npy", from the archive to the list. */
static bool dvti_npz_move_names(dvti_zip *zip, dvt_array_list *list) {
    int i;
    if (!dvti_array_list_begin_names(zip->in->function, list))
        return false;
    for (i = 0; i < zip->n; i++) {
        list->name[i] = zip->member[i].name;
        list->name[i][zip->member[i].n_name - 4] = 0;
        zip->member[i].name = NULL;
    }
    return true;
}

static bool dvti_npz_member(dvti_zip *zip, int i, dvt_array_list *list, dvt_ctx ctx) {
    dvti_source content;
    dvt_array *x = NULL;
    if (dvti_zip_open(zip, i, &content))
        x = dvti_npy_read(&content, ctx);
    dvti_source_close(&content);
    return x && dvti_zip_finish(zip) && dvti_array_list_add(zip->in->function, list, x);
}

static bool dvti_npz_fill(dvti_zip *zip, dvti_source *in, dvt_array_list *list, dvt_ctx ctx) {
    int i;
    if (!dvti_zip_begin(zip, in))
        return false;
    dvti_npz_drop_directories(zip);
    if (!dvti_npz_names(zip) || !dvti_zip_check(zip))
        return false;
    for (i = 0; i < zip->n; i++)
        if (!dvti_npz_member(zip, i, list, ctx))
            return false;
    return dvti_npz_move_names(zip, list);
}

DVTI_FN dvt_array_list *dvti_npz_list(dvti_source *in, dvt_ctx ctx) {
    dvt_array_list *list = dvti_array_list_new(in->function);
    dvti_zip *zip = (dvti_zip *)dvti_alloc_zero(sizeof *zip);
    bool ok = list && zip && dvti_npz_fill(zip, in, list, ctx);
    if (list && !zip)
        dvti_fail_memory(in->function, (int64_t)sizeof *zip);
    if (zip)
        dvti_zip_free(zip);
    dvti_free(zip);
    return ok ? list : NULL;
}

DVT_API dvt_array_list *dvt_read_npz(const void *data, size_t bytes, dvt_ctx ctx) {
    return dvti_list_read("dvt_read_npz", data, bytes, ctx, dvti_npz_list);
}

DVT_API dvt_array_list *dvt_load_npz(const char *path, dvt_ctx ctx) {
    return dvti_list_load("dvt_load_npz", path, ctx, dvti_npz_list);
}

/* ---- writing ---- */
#define DVTI_NPZ_LARGE ((int64_t)0xffffffff) /* numbers from here on need zip64 */
#define DVTI_NPZ_DAY 0x21                    /* 1980-01-01, so that equal arrays give equal files */
#define DVTI_NPZ_PAD 6                       /* the least bytes of a field that aligns */

typedef struct dvti_npz_out {
    dvti_file_out file;
    dvti_writer directory;
    int64_t at, members; /* bytes and members so far */
    bool compressed;
    dvti_crc crc;
} dvti_npz_out;

/* One member. */
typedef struct dvti_npz_entry {
    const char *name; /* without ".npy" */
    int64_t at, size, packed;
    uint32_t crc;
    bool wide; /* its sizes may need zip64, which was decided before compression */
} dvti_npz_entry;

static void dvti_npz_put(dvti_npz_out *out, const void *bytes, size_t n) {
    dvti_file_write(&out->file, bytes, n);
    out->at += (int64_t)n;
}

/* Writes and frees what `text` holds. Returns false with HOST_MEMORY set. */
static bool dvti_npz_put_text(dvti_npz_out *out, dvti_writer *text) {
    bool ok = !text->failed;
    if (ok)
        dvti_npz_put(out, text->at, text->length);
    else
        dvti_fail_memory(out->file.function, (int64_t)text->capacity * 2);
    dvti_writer_free(text);
    return ok;
}

/* The number, or all ones if zip64 has it. */
static void dvti_npz_le_32(dvti_writer *to, int64_t value) {
    dvti_writer_le(to, (uint64_t)DVTI_MIN(value, DVTI_NPZ_LARGE), 4);
}

/* Appends the fields that local header and directory have in common: from the version to the length
   of the name. `known`: CRC and sizes are. */
static void dvti_npz_head(dvti_writer *to, const dvti_npz_out *out, const dvti_npz_entry *e,
                          bool wide, bool known) {
    unsigned flags = out->compressed ? 8 : 0; /* a data descriptor follows */
    const char *c;
    for (c = e->name; *c; c++)
        if ((unsigned char)*c >= 0x80)
            flags |= 0x800; /* the name is UTF-8 */
    dvti_writer_le(to, wide ? 45 : 20, 2);
    dvti_writer_le(to, flags, 2);
    dvti_writer_le(to, out->compressed ? 8 : 0, 2);
    dvti_writer_le(to, 0, 2); /* time */
    dvti_writer_le(to, DVTI_NPZ_DAY, 2);
    dvti_writer_le(to, known ? e->crc : 0, 4);
    dvti_npz_le_32(to, known ? e->packed : e->wide ? DVTI_NPZ_LARGE : 0);
    dvti_npz_le_32(to, known ? e->size : e->wide ? DVTI_NPZ_LARGE : 0);
    dvti_writer_le(to, strlen(e->name) + 4, 2);
}

static void dvti_npz_name(dvti_writer *to, const dvti_npz_entry *e) {
    dvti_writer_text(to, e->name);
    dvti_writer_text(to, ".npy");
}

/* Returns the bytes of the field that moves the content of a stored member to a multiple of 64. The
   .npy header has such a length too, so the elements can be mapped. */
static int64_t dvti_npz_padding(const dvti_npz_out *out, const dvti_npz_entry *e) {
    int64_t end = out->at + 30 + (int64_t)strlen(e->name) + 4 + (e->wide ? 20 : 0);
    int64_t n = -end & 63;
    return out->compressed ? 0 : n && n < DVTI_NPZ_PAD ? n + 64 : n;
}

/* Writes the local header, with a zip64 field for both sizes if the member is wide. */
static bool dvti_npz_put_local(dvti_npz_out *out, const dvti_npz_entry *e) {
    dvti_writer head = dvti_writer_begin();
    bool known = !out->compressed;
    int64_t padding = dvti_npz_padding(out, e);
    dvti_writer_bytes(&head, "PK\3\4", 4);
    dvti_npz_head(&head, out, e, e->wide, known);
    dvti_writer_le(&head, (e->wide ? 20u : 0u) + (uint64_t)padding, 2);
    dvti_npz_name(&head, e);
    if (e->wide) {
        dvti_writer_le(&head, 1, 2);
        dvti_writer_le(&head, 16, 2);
        dvti_writer_le(&head, known ? (uint64_t)e->size : 0, 8);
        dvti_writer_le(&head, known ? (uint64_t)e->packed : 0, 8);
    }
    if (padding) {
        dvti_writer_le(&head, 0xd935, 2); /* the field of Android's zipalign: alignment, zeros */
        dvti_writer_le(&head, (uint64_t)padding - 4, 2);
        dvti_writer_le(&head, 64, 2);
        dvti_writer_repeat(&head, 0, padding - DVTI_NPZ_PAD);
    }
    return dvti_npz_put_text(out, &head);
}

static bool dvti_npz_put_descriptor(dvti_npz_out *out, const dvti_npz_entry *e) {
    dvti_writer text = dvti_writer_begin();
    dvti_writer_bytes(&text, "PK\7\10", 4);
    dvti_writer_le(&text, e->crc, 4);
    dvti_writer_le(&text, (uint64_t)e->packed, e->wide ? 8 : 4);
    dvti_writer_le(&text, (uint64_t)e->size, e->wide ? 8 : 4);
    return dvti_npz_put_text(out, &text);
}

/* Appends the member to the directory. Its zip64 field has only the numbers that need it. */
static void dvti_npz_add_entry(dvti_npz_out *out, const dvti_npz_entry *e) {
    dvti_writer *to = &out->directory;
    int64_t number[3];
    int i, large = 0;
    number[0] = e->size;
    number[1] = e->packed;
    number[2] = e->at;
    for (i = 0; i < 3; i++)
        large += number[i] >= DVTI_NPZ_LARGE;
    dvti_writer_bytes(to, "PK\1\2", 4);
    dvti_writer_le(to, 45, 2); /* written by a version with zip64, on no particular system */
    dvti_npz_head(to, out, e, e->wide || large, true);
    dvti_writer_le(to, large ? 4 + 8 * (uint64_t)large : 0, 2);
    dvti_writer_le(to, 0, 2); /* comment */
    dvti_writer_le(to, 0, 2); /* disk */
    dvti_writer_le(to, 0, 2); /* attributes */
    dvti_writer_le(to, 0, 4);
    dvti_npz_le_32(to, e->at);
    dvti_npz_name(to, e);
    if (large) {
        dvti_writer_le(to, 1, 2);
        dvti_writer_le(to, 8 * (uint64_t)large, 2);
    }
    for (i = 0; i < 3; i++)
        if (number[i] >= DVTI_NPZ_LARGE)
            dvti_writer_le(to, (uint64_t)number[i], 8);
    out->members++;
}

static void dvti_npz_sink(void *user, const void *bytes, size_t n) {
    dvti_npz_put((dvti_npz_out *)user, bytes, n);
}

/* Writes the member's content. */
static bool dvti_npz_put_content(dvti_npz_out *out, dvti_npz_entry *e, const char *header,
                                 size_t n_header, const dvt_array *host) {
    const void *data = dvti_view_of(host).data;
    size_t n = (size_t)(e->size - (int64_t)n_header);
    dvti_deflater *deflater;
    if (!out->compressed) {
        dvti_npz_put(out, header, n_header);
        dvti_npz_put(out, data, n);
        return true;
    }
    deflater = dvti_deflate_begin(out->file.function, false, dvti_npz_sink, out);
    if (!deflater)
        return false;
    dvti_deflate(deflater, header, n_header);
    dvti_deflate(deflater, data, n);
    e->packed = dvti_deflate_end(deflater);
    return dvti_npz_put_descriptor(out, e);
}

static bool dvti_npz_put_host(dvti_npz_out *out, const dvt_array *host, dvt_shape shape,
                              const char *name) {
    char header[DVTI_NPY_HEADER_SIZE];
    size_t n_header = dvti_npy_header_text(header, host->dtype, shape);
    dvti_npz_entry e;
    memset(&e, 0, sizeof e);
    e.name = name;
    e.at = out->at;
    e.size = e.packed = (int64_t)n_header + dvt_nbytes(host);
    /* Deflate adds at most 5 bytes to a stored block of 32 KiB. */
    e.wide = e.size + (out->compressed ? e.size / 4096 + 64 : 0) >= DVTI_NPZ_LARGE;
    e.crc = dvti_crc_more(&out->crc, 0, header, n_header);
    e.crc = dvti_crc_more(&out->crc, e.crc, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
    if (!dvti_npz_put_local(out, &e) || !dvti_npz_put_content(out, &e, header, n_header, host))
        return false;
    dvti_npz_add_entry(out, &e);
    return true;
}

static bool dvti_npz_put_array(dvti_npz_out *out, dvt_array *x, const char *name) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *host = dvti_stored_host(out->file.function, x, dvti_npy_dtype(x));
    bool ok = host && dvti_npz_put_host(out, host, x->shape, name);
    dvt_scope_end(&scope);
    return ok;
}

/* Writes the directory and the end records; the zip64 ones only where numbers need them. */
static bool dvti_npz_put_end(dvti_npz_out *out) {
    dvti_writer *to = &out->directory;
    int64_t at = out->at, bytes = (int64_t)to->length, members = out->members;
    if (members >= 0xffff || at >= DVTI_NPZ_LARGE || bytes >= DVTI_NPZ_LARGE) {
        dvti_writer_bytes(to, "PK\6\6", 4);
        dvti_writer_le(to, 44, 8); /* the bytes that follow in this record */
        dvti_writer_le(to, 45, 2);
        dvti_writer_le(to, 45, 2);
        dvti_writer_le(to, 0, 8); /* disks */
        dvti_writer_le(to, (uint64_t)members, 8);
        dvti_writer_le(to, (uint64_t)members, 8);
        dvti_writer_le(to, (uint64_t)bytes, 8);
        dvti_writer_le(to, (uint64_t)at, 8);
        dvti_writer_bytes(to, "PK\6\7", 4);
        dvti_writer_le(to, 0, 4);
        dvti_writer_le(to, (uint64_t)(at + bytes), 8);
        dvti_writer_le(to, 1, 4);
    }
    dvti_writer_bytes(to, "PK\5\6", 4);
    dvti_writer_le(to, 0, 4); /* disks */
    dvti_writer_le(to, (uint64_t)DVTI_MIN(members, 0xffff), 2);
    dvti_writer_le(to, (uint64_t)DVTI_MIN(members, 0xffff), 2);
    dvti_npz_le_32(to, bytes);
    dvti_npz_le_32(to, at);
    dvti_writer_le(to, 0, 2); /* comment */
    return dvti_npz_put_text(out, to);
}

static bool dvti_npz_check_names(const char *function, const char *const *names, int n) {
    int i;
    for (i = 0; names && i < n; i++) {
        if (strlen(names[i]) > 65535 - 4) {
            dvti_fail(DVT_ERR_NAME,
                      "%s: the name of array %d has %lld bytes; expected at most 65531: shorten it",
                      function, i, (long long)strlen(names[i]));
            return false;
        }
        if (!dvti_utf8_valid(names[i])) {
            dvti_fail(DVT_ERR_NAME,
                      "%s: the name of array %d is not UTF-8, which NumPy expects: rename it",
                      function, i);
            return false;
        }
    }
    return true;
}

static bool dvti_npz_put_all(dvti_npz_out *out, dvt_array *const *arrays, const char *const *names,
                             int n) {
    char number[24];
    int i;
    for (i = 0; i < n; i++) {
        snprintf(number, sizeof number, "arr_%d", i);
        if (!dvti_npz_put_array(out, arrays[i], names ? names[i] : number))
            return false;
    }
    return dvti_npz_put_end(out);
}

static dvt_status dvti_npz_write(const char *function, const char *path, dvt_array *const *arrays,
                                 const char *const *names, int n, bool compressed) {
    dvti_npz_out *out;
    dvt_status status;
    if (!dvti_arrays_check(function, arrays, names, n) || !dvti_npz_check_names(function, names, n))
        return dvti_failure();
    out = (dvti_npz_out *)dvti_alloc_zero(sizeof *out);
    if (!out)
        return dvti_fail_memory(function, (int64_t)sizeof *out);
    out->compressed = compressed;
    dvti_crc_build(&out->crc);
    if (dvti_file_begin(&out->file, function, path))
        status = dvti_file_end(&out->file, dvti_npz_put_all(out, arrays, names, n));
    else
        status = dvti_failure();
    dvti_writer_free(&out->directory);
    dvti_free(out);
    return status;
}

DVTI_FN dvt_status dvti_npz_save(const char *function, const char *path, dvt_array *const *arrays,
                                 const char *const *names, int n) {
    return dvti_npz_write(function, path, arrays, names, n, false);
}

DVT_API dvt_status dvt_save_npz(const char *path, dvt_array *const *arrays,
                                const char *const *names, int n) {
    return dvti_npz_save("dvt_save_npz", path, arrays, names, n);
}

DVT_API dvt_status dvt_save_npz_compressed(const char *path, dvt_array *const *arrays,
                                           const char *const *names, int n) {
    return dvti_npz_write("dvt_save_npz_compressed", path, arrays, names, n, true);
}

#undef DVTI_NPZ_LARGE
#undef DVTI_NPZ_DAY
#undef DVTI_NPZ_PAD
