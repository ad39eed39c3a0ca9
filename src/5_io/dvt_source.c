/* Buffered sources of bytes for every format: from memory, from a file or a part of one by a buffer
   of 64 KiB, or decompressed (dvt_unpack.c). A source knows an upper bound of the remaining bytes.
   So the sizes in a header are checked before anything is allocated for them. */
#include "5_io/dvt_io_internal.h"

#define DVTI_SOURCE_HISTORY 8 /* readable bytes before in->at: decompression may step back */

DVTI_FN void dvti_source_memory(dvti_source *in, const char *function, const void *bytes,
                                size_t size) {
    memset(in, 0, sizeof *in);
    in->function = function;
    in->what = "the data";
    in->at = (const unsigned char *)bytes;
    in->ready = size;
    in->known = true;
    in->seekable = true;
    in->fd = -1;
}

/* Allocates the buffer that `pull` fills. Returns false with HOST_MEMORY set. */
static bool dvti_source_buffered(dvti_source *in, dvti_source_pull pull) {
    in->buffer = (unsigned char *)dvti_alloc(DVTI_SOURCE_HISTORY + DVTI_SOURCE_PEEK);
    if (!in->buffer) {
        dvti_fail_memory(in->function, DVTI_SOURCE_HISTORY + DVTI_SOURCE_PEEK);
        in->reported = true;
        return false;
    }
    memset(in->buffer, 0, DVTI_SOURCE_HISTORY);
    in->at = in->buffer + DVTI_SOURCE_HISTORY;
    in->pull = pull;
    return true;
}

DVTI_FN bool dvti_source_part(dvti_source *in, const dvti_source *whole, dvti_source_pull pull,
                              void *user, int64_t bytes, bool known) {
    dvti_source_memory(in, whole->function, NULL, 0);
    in->what = whole->what;
    in->path = whole->path;
    in->user = user;
    in->remaining = bytes;
    in->known = known;
    in->seekable = false;
    return dvti_source_buffered(in, pull);
}

DVTI_FN bool dvti_source_wrong(dvti_source *in, const char *format, ...) {
    char sentence[800];
    va_list arguments;
    if (in->reported)
        return false;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    dvti_fail(DVT_ERR_FORMAT, "%s: %.300s: %s", in->function, in->what, sentence);
    in->reported = true;
    return false;
}

/* ---- files ---- */
#if !defined(DEVTENSOR_NO_FILES)
static bool dvti_source_error(dvti_source *in, const char *what, int error) {
    if (!in->reported)
        dvti_fail(DVT_ERR_IO,
                  "%s: \"%.300s\" could not be %s: %s; check the path and its permissions",
                  in->function, in->what, what, error ? strerror(error) : "unknown reason");
    in->reported = true;
    return false;
}

/* Reads up to n bytes from the file. Returns 0 at its end, or when it cannot be read. */
static size_t dvti_source_pull_file(dvti_source *in, void *to, size_t n) {
    int64_t most = in->known ? in->remaining : in->remaining + 1,
            got; /* 1: tests whether more follows */
    if (most == 0 || in->reported)
        return 0;
    errno = 0;
    got = dvti_fd_read(in->fd, to, (uint64_t)most < n ? (size_t)most : n);
    if (got < 0)
        return (void)dvti_source_error(in, "read", errno), (size_t)0;
    if (got == 0 && in->known) {
        dvti_fail(
            DVT_ERR_IO,
            "%s: \"%.300s\" became shorter while it was read: %lld bytes are missing; write to "
            "another file and rename it when it is complete, as dvt_save_npy does",
            in->function, in->what, (long long)in->remaining);
        in->reported = true;
    }
    if (got > in->remaining) {
        dvti_source_wrong(
            in,
            "it is not a regular file and holds more than %lld bytes, the limit for pipes and "
            "devices; write it to a regular file first",
            (long long)DVTI_SOURCE_MOST);
        return 0;
    }
    in->remaining -= got;
    if (got == 0) {
        in->remaining = 0;
        in->known = true;
    }
    return (size_t)got;
}

DVTI_FN bool dvti_source_open(dvti_source *in, const char *function, const char *path) {
    dvti_fd_info info;
    dvti_source_memory(in, function, NULL, 0);
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    in->what = in->path = path;
    errno = 0;
    in->fd = dvti_fd_open_read(path, &info);
    if (in->fd < 0)
        return dvti_source_error(in, "opened", errno);
    in->known = info.regular && info.size > 0;
    in->remaining = in->known ? info.size : DVTI_SOURCE_MOST;
    if (!dvti_source_buffered(in, dvti_source_pull_file))
        return false;
    /* Files of /proc have content, but no size. An empty file becomes known here. */
    if (info.regular && !in->known)
        (void)dvti_source_peek(in, 1);
    in->seekable = info.regular && in->known;
    return !in->reported;
}

/* Empties the buffer and continues at byte `at`. */
static bool dvti_source_seek_file(dvti_source *in, int64_t at, int64_t size) {
    errno = 0;
    if (!dvti_fd_seek(in->fd, at))
        return dvti_source_error(in, "read", errno);
    in->at = in->buffer + DVTI_SOURCE_HISTORY;
    in->ready = 0;
    in->taken = at;
    in->remaining = size - at;
    return true;
}

static void dvti_source_close_file(dvti_source *in) {
    if (in->fd >= 0)
        (void)dvti_fd_close(in->fd);
    if (in->mapping)
        dvti_map_release(in->mapping);
}
#else
static bool dvti_source_seek_file(dvti_source *in, int64_t at, int64_t size) {
    (void)in;
    (void)at;
    (void)size;
    return false;
}

static void dvti_source_close_file(dvti_source *in) {
    (void)in;
}
#endif

DVTI_FN void dvti_source_close(dvti_source *in) {
    dvti_source_close_file(in);
    dvti_free(in->buffer);
    dvti_unpack_free(in->unpack);
    in->fd = -1;
    in->mapping = NULL;
    in->buffer = NULL;
    in->pull = NULL;
    in->unpack = NULL;
    in->at = NULL;
    in->ready = 0;
}

/* ---- bytes ---- */
static bool dvti_source_fill_buffer(dvti_source *in) {
    size_t got, history = (size_t)(in->at - in->buffer); /* less after decompression stepped back */
    history = DVTI_MIN(history, DVTI_SOURCE_HISTORY);
    memmove(in->buffer + DVTI_SOURCE_HISTORY - history, in->at - history, history + in->ready);
    in->at = in->buffer + DVTI_SOURCE_HISTORY;
    got = in->pull(in, in->buffer + DVTI_SOURCE_HISTORY + in->ready, DVTI_SOURCE_PEEK - in->ready);
    in->ready += got;
    return got > 0;
}

/* Makes at least one more byte ready. Returns false at the end, or with the error set. */
static bool dvti_source_fill(dvti_source *in) {
    if (in->reported)
        return false;
    if (in->unpack)
        return dvti_unpack_more(in);
    return in->pull && dvti_source_fill_buffer(in);
}

DVTI_FN bool dvti_source_peek(dvti_source *in, size_t n) {
    while (in->ready < n)
        if (!dvti_source_fill(in))
            return false;
    return true;
}

static void dvti_source_advance(dvti_source *in, size_t n) {
    if (n) { /* adding 0 to NULL is undefined */
        in->at += n;
        in->ready -= n;
        in->taken += (int64_t)n;
    }
}

DVTI_FN bool dvti_source_read(dvti_source *in, void *to, int64_t n) {
    char *at = (char *)to;
    while (n > 0 && !in->ended && !in->reported) {
        size_t got = (uint64_t)n < in->ready ? (size_t)n : in->ready;
        if (got) {
            memcpy(at, in->at, got);
            dvti_source_advance(in, got);
        } else if (in->pull && n >= DVTI_SOURCE_PEEK) { /* bypasses the empty buffer */
            got = in->pull(in, at, (size_t)n);
            in->taken += (int64_t)got;
            in->ended = got == 0;
        } else
            in->ended = !dvti_source_fill(in);
        at += got;
        n -= (int64_t)got;
    }
    return n == 0 && !in->ended && !in->reported;
}

DVTI_FN bool dvti_source_skip(dvti_source *in, int64_t n) {
    while (n > 0 && !in->ended) {
        size_t got = (uint64_t)n < in->ready ? (size_t)n : in->ready;
        if (!got)
            in->ended = !dvti_source_fill(in);
        dvti_source_advance(in, got);
        n -= (int64_t)got;
    }
    return !in->ended;
}

DVTI_FN bool dvti_source_seek(dvti_source *in, int64_t at) {
    int64_t size = in->taken + dvti_source_left(in), move = at - in->taken;
    if (!in->seekable)
        return dvti_source_wrong(
            in,
            "it is a pipe, a device or compressed, and this format is read from its end; write it "
            "to a regular file first");
    if (in->reported || at < 0 || at > size)
        return false;
    in->ended = false;
    if (in->pull && (move < 0 || (uint64_t)move > in->ready))
        return dvti_source_seek_file(in, at, size);
    if (move) {
        in->at += move;
        in->ready = (size_t)((int64_t)in->ready - move);
        in->taken = at;
    }
    return true;
}

DVTI_FN uint64_t dvti_bytes_value(const unsigned char *at, int bytes, bool big_endian) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < bytes; i++)
        value = value << 8 | at[big_endian ? i : bytes - 1 - i];
    return value;
}

static uint64_t dvti_source_value(dvti_source *in, int bytes, bool big_endian) {
    uint64_t value;
    if (in->ended || !dvti_source_peek(in, (size_t)bytes)) {
        in->ended = true;
        return 0;
    }
    value = dvti_bytes_value(in->at, bytes, big_endian);
    dvti_source_advance(in, (size_t)bytes);
    return value;
}

DVTI_FN uint64_t dvti_source_le(dvti_source *in, int bytes) {
    return dvti_source_value(in, bytes, false);
}

DVTI_FN uint64_t dvti_source_be(dvti_source *in, int bytes) {
    return dvti_source_value(in, bytes, true);
}

DVTI_FN bool dvti_source_zeros(dvti_source *in, int64_t n) {
    bool zero = true;
    for (; n > 0 && zero && !in->ended; n--)
        zero = dvti_source_le(in, 1) == 0;
    return (zero && !in->ended) ||
           dvti_source_wrong(in, "%s; fetch or write the file again",
                             zero ? "it ends within padding" : "its padding is not 0");
}

DVTI_FN char *dvti_source_text(dvti_source *in, const char **wrong) {
    uint64_t length = dvti_source_le(in, 8);
    char *text;
    *wrong = "goes beyond the end of the file";
    if (in->ended || length > (uint64_t)dvti_source_left(in))
        return NULL;
    text = length < SIZE_MAX ? (char *)dvti_alloc((size_t)length + 1) : NULL;
    if (!text) {
        dvti_fail_memory(in->function, (int64_t)length + 1);
        *wrong = NULL;
    } else if (dvti_source_read(in, text, (int64_t)length)) {
        *wrong = memchr(text, 0, (size_t)length) ? "contains a zero byte" : NULL;
        text[length] = 0;
    }
    if (text && *wrong) {
        dvti_free(text);
        text = NULL;
    }
    return text;
}

DVTI_FN int64_t dvti_signed(uint64_t value, int bytes) {
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    int64_t result;
    value = (value ^ sign) - sign;
    memcpy(&result, &value, sizeof result);
    return result;
}

/* ---- size ---- */
DVTI_FN int64_t dvti_source_left(const dvti_source *in) {
    int64_t left;
    return dvti_sum((int64_t)in->ready, in->remaining, &left) ? left : INT64_MAX;
}

DVTI_FN bool dvti_source_at_end(dvti_source *in) {
    return !dvti_source_peek(in, 1) && !in->reported;
}

DVTI_FN const char *dvti_source_size_text(dvti_source *in, int64_t taken, int64_t need) {
    int64_t before = in->taken - taken,
            left = in->ended ? (int64_t)in->ready : dvti_source_left(in);
    char *text = dvti_name_buffer();
    if (!dvti_sum(before, left, &left))
        left = INT64_MAX;
    if (!in->known && !in->ended && need <= left)
        return "more";
    snprintf(text, DVTI_NAME_SIZE, "%s%lld", in->known || in->ended ? "" : "at most ",
             (long long)left);
    return text;
}

#undef DVTI_SOURCE_HISTORY
