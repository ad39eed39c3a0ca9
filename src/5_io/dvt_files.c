/* Whole files into memory, files that appear only when they are complete, the checked cursor over bytes, and elements as
   files store them. */
#include "5_io/dvt_io_internal.h"

/* ---- cursor ---- */
DVTI_FN dvti_source dvti_source_begin(const void *bytes, size_t size) {
    dvti_source cursor;
    cursor.at = (const unsigned char *)bytes;
    cursor.left = size;
    cursor.failed = false;
    return cursor;
}

DVTI_FN const unsigned char *dvti_source_bytes(dvti_source *cursor, uint64_t n) {
    const unsigned char *at = cursor->at;
    if (cursor->failed || n > cursor->left) {
        cursor->failed = true;
        return NULL;
    }
    if (n) { /* adding 0 to NULL is undefined */
        cursor->at += n;
        cursor->left -= (size_t)n;
    }
    return at;
}

static uint64_t dvti_bytes_value(const unsigned char *at, int bytes, bool big_endian) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < bytes; i++)
        value = value << 8 | at[big_endian ? i : bytes - 1 - i];
    return value;
}

DVTI_FN uint64_t dvti_source_le(dvti_source *cursor, int bytes) {
    const unsigned char *at = dvti_source_bytes(cursor, (uint64_t)bytes);
    return at ? dvti_bytes_value(at, bytes, false) : 0;
}

DVTI_FN uint64_t dvti_source_be(dvti_source *cursor, int bytes) {
    const unsigned char *at = dvti_source_bytes(cursor, (uint64_t)bytes);
    return at ? dvti_bytes_value(at, bytes, true) : 0;
}

DVTI_FN int64_t dvti_signed(uint64_t value, int bytes) {
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    int64_t result;
    value = (value ^ sign) - sign;
    memcpy(&result, &value, sizeof result);
    return result;
}

/* ---- stored elements ---- */
static void dvti_store_int(dvt_dtype dtype, char *to, int64_t i, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (dtype == DVT_I64)
        memcpy(to + 8 * i, &value, 8);
    else if (dtype == DVT_I32)
        memcpy(to + 4 * i, &narrow, 4);
    else if (dtype == DVT_BOOL)
        to[i] = value != 0;
    else
        memcpy(to + i, &narrow, 1);
}

/* Floats keep their bits, whatever the byte order of this machine. */
static void dvti_store_bits(char *to, int bytes, int64_t i, uint64_t value) {
    uint32_t b32 = (uint32_t)value;
    uint16_t b16 = (uint16_t)value;
    if (bytes == 8)
        memcpy(to + 8 * i, &value, 8);
    else if (bytes == 4)
        memcpy(to + 4 * i, &b32, 4);
    else
        memcpy(to + 2 * i, &b16, 2);
}

static bool dvti_host_is_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

DVTI_FN bool dvti_stored_convert(const dvti_stored *stored, const unsigned char *from, void *to,
                                 int64_t n, int64_t *bad) {
    int64_t i;
    if (n == 0)
        return true;
    if (stored->kind != 'b' && stored->bytes == (int)dvt_dtype_size(stored->dtype) &&
        (stored->bytes == 1 || stored->big_endian == dvti_host_is_big_endian()) &&
        (stored->kind != 'u' || stored->bytes == 1)) {
        memcpy(to, from, (size_t)n * (size_t)stored->bytes);
        return true;
    }
    for (i = 0; i < n; i++) {
        uint64_t value =
            dvti_bytes_value(from + i * stored->bytes, stored->bytes, stored->big_endian);
        if (stored->kind == 'f')
            dvti_store_bits((char *)to, stored->bytes, i, value);
        else if (stored->kind == 'i')
            dvti_store_int(stored->dtype, (char *)to, i, dvti_signed(value, stored->bytes));
        else if (value > (uint64_t)INT64_MAX) {
            *bad = i;
            return false;
        } else
            dvti_store_int(stored->dtype, (char *)to, i, (int64_t)value);
    }
    return true;
}

DVTI_FN dvt_array *dvti_stored_array(const char *function, const dvti_stored *stored,
                                     const unsigned char *from, dvt_shape shape, dvt_ctx ctx) {
    dvt_array *host, *result = NULL;
    int64_t bad = 0;
    dvt_scope_guard scope;
    ctx = dvti_ctx(ctx);
    scope = dvt_scope_begin();
    host = dvti_array_new(function, shape, stored->dtype,
                          ctx.type == DVT_DEVICE_CPU ? ctx : dvt_cpu());
    if (host) {
        if (!dvti_stored_convert(stored, from, dvti_view_of(host).data, dvt_size(host), &bad))
            dvti_fail(DVT_ERR_FORMAT,
                      "%s: element %lld is a uint64 above 9223372036854775807, which int64 cannot "
                      "hold; convert the data to int64 or a float before saving",
                      function, (long long)bad);
        else if (ctx.type == DVT_DEVICE_CPU)
            result = host;
        else {
            result = dvti_array_new(function, shape, stored->dtype, ctx);
            if (result && dvti_copy_elements(function, result, host) != DVT_OK)
                result = NULL;
        }
    }
    dvt_keep(result);
    dvt_scope_end(&scope);
    return result;
}

static void dvti_swap_bytes(unsigned char *at, int bytes, int64_t n) {
    for (; n > 0; n--, at += bytes) {
        int i;
        for (i = 0; i < bytes / 2; i++) {
            unsigned char low = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = low;
        }
    }
}

/* A named way to read values: the guard of implicit reads does not apply. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype) {
    dvt_array *host;
    bool swap = dvti_host_is_big_endian() && dvt_dtype_size(dtype) > 1;
    if (!swap && x->storage->ctx.type == DVT_DEVICE_CPU && x->dtype == dtype &&
        dvt_is_contiguous(x))
        return dvt_wait(x) == DVT_OK ? x : NULL;
    host = dvti_array_new(function, x->shape, dtype, dvt_cpu());
    if (!host || dvti_copy_elements(function, host, x) != DVT_OK || dvt_wait(host) != DVT_OK)
        return NULL;
    if (swap)
        dvti_swap_bytes((unsigned char *)dvti_view_of(host).data, (int)dvt_dtype_size(dtype),
                        dvt_size(host));
    return host;
}

/* ---- files ---- */
#if defined(DEVTENSOR_NO_FILES)
static bool dvti_no_files(const char *function) {
    dvti_fail(DVT_ERR_NOT_BUILT,
              "%s: this build was compiled with DEVTENSOR_NO_FILES; read the bytes yourself and "
              "use the form that takes memory, or compile without that switch",
              function);
    return false;
}

DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size) {
    *bytes = NULL;
    *size = 0;
    return path ? dvti_no_files(function) : (dvti_null(function, "path"), false);
}

DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path) {
    memset(out, 0, sizeof *out);
    return path ? dvti_no_files(function) : (dvti_null(function, "path"), false);
}

DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n) {
    (void)out;
    (void)bytes;
    (void)n;
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    (void)ok;
    return dvti_no_files(out->function) ? DVT_OK : DVT_ERR_NOT_BUILT;
}
#else
static bool dvti_file_error(const char *function, const char *path, const char *what, int error) {
    dvti_fail(DVT_ERR_IO,
              "%s: \"%.300s\" could not be %s: %s; check the path, its permissions and "
              "the space that is left",
              function, path, what, error ? strerror(error) : "unknown reason");
    return false;
}

/* What can be asked beforehand: the bytes from here to the end; -1 for pipes and other streams. */
static int64_t dvti_file_size(FILE *file) {
    long size;
    if (fseek(file, 0, SEEK_END) != 0)
        return -1;
    size = ftell(file);
    return fseek(file, 0, SEEK_SET) == 0 && size >= 0 ? (int64_t)size : -1;
}

/* Reads until the end, in steps that grow: the size asked for beforehand is a hint, the end of the file decides. */
static bool dvti_file_read_all(const char *function, FILE *file, const char *path, int64_t size,
                               void **bytes, size_t *got) {
    size_t capacity = 0, want = size >= 0 ? (size_t)size + 1 : 65536, n;
    for (;;) {
        if (want - *got > capacity - *got) {
            if (!*bytes && (*bytes = dvti_alloc(want)) != NULL)
                capacity = want;
            if (!*bytes || !dvti_grow(bytes, &capacity, want, 1)) {
                dvti_fail_memory(function, (int64_t)want);
                return false;
            }
        }
        n = fread((char *)*bytes + *got, 1, capacity - *got, file);
        *got += n;
        if (ferror(file))
            return dvti_file_error(function, path, "read", errno);
        if (n == 0 || feof(file))
            return true;
        want = *got + 65536;
    }
}

DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size) {
    FILE *file;
    int64_t known;
    bool ok = true;
    int first;
    *bytes = NULL;
    *size = 0;
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    errno = 0;
    file = fopen(path, "rb");
    if (!file)
        return dvti_file_error(function, path, "opened", errno);
    known = dvti_file_size(file);
    /* A directory opens, and claims to be enormous; reading one byte tells. */
    first = fgetc(file);
    if (first == EOF && ferror(file))
        ok = dvti_file_error(function, path, "read", errno);
    else if (first != EOF) {
        ungetc(first, file);
        ok = dvti_file_read_all(function, file, path, known, bytes, size);
    }
    fclose(file);
    if (!ok) {
        dvti_free(*bytes);
        *bytes = NULL;
        *size = 0;
    }
    return ok;
}

/* Renaming onto a device or a pipe would replace it by a file: such are written in place. */
static bool dvti_file_in_place(const char *path) {
#if defined(_WIN32)
    (void)path;
    return false;
#else
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
#endif
}

static bool dvti_file_name_temporary(dvti_file_out *out) {
    static dvti_atomic counter;
    size_t room = strlen(out->path) + 64;
    out->temporary = (char *)dvti_alloc(room);
    if (!out->temporary)
        return false;
    snprintf(out->temporary, room, "%s.tmp%lld-%lld", out->path, (long long)dvti_process_id(),
             (long long)dvti_atomic_add(&counter, 1));
    return true;
}

static void dvti_file_out_free(dvti_file_out *out) {
    dvti_free(out->path);
    dvti_free(out->temporary);
    memset(out, 0, sizeof *out);
}

DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path) {
    memset(out, 0, sizeof *out);
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    out->function = function;
    out->path = dvti_strdup(path);
    if (!out->path || (!dvti_file_in_place(path) && !dvti_file_name_temporary(out))) {
        dvti_fail_memory(function, (int64_t)strlen(path) + 64);
        dvti_file_out_free(out);
        return false;
    }
    errno = 0;
    /* x: never through a link that somebody else put there */
    out->file = fopen(out->temporary ? out->temporary : path, out->temporary ? "wbx" : "wb");
    if (!out->file) {
        dvti_file_error(function, path, "written", errno);
        dvti_file_out_free(out);
        return false;
    }
    return true;
}

DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n) {
    if (out->failed || !n)
        return;
    errno = 0;
    if (fwrite(bytes, 1, n, out->file) != n) {
        out->failed = true;
        dvti_file_error(out->function, out->path, "written", errno);
    }
}

static bool dvti_file_rename(const char *from, const char *to) {
#if defined(_WIN32)
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
#else
    return rename(from, to) == 0;
#endif
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    bool done;
    errno = 0;
    if (fclose(out->file) != 0 && !out->failed && ok) {
        out->failed = true;
        dvti_file_error(out->function, out->path, "written", errno);
    }
    done = ok && !out->failed;
    if (done && out->temporary && !dvti_file_rename(out->temporary, out->path)) {
        dvti_file_error(out->function, out->path, "replaced", errno);
        done = false;
    }
    if (!done && out->temporary)
        remove(out->temporary);
    dvti_file_out_free(out);
    return done ? DVT_OK : dvti_failure();
}
#endif
