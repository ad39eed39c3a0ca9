/* Files that appear only when they are complete. What is written goes to a temporary file in the
   same folder, which reaches the disk before it takes the name of the old one, and has its mode
   and, where this process may, its owner and group. A symbolic link stays, and the file that it
   leads to is replaced. What is no regular file (a device, a pipe, /dev/stdout) is written in
   place. */
#include "5_io/dvt_io_internal.h"

#if defined(DEVTENSOR_NO_FILES)
static bool dvti_no_files(const char *function) {
    dvti_fail(DVT_ERR_NOT_BUILT,
              "%s: this build was compiled with DEVTENSOR_NO_FILES; read the bytes yourself and "
              "use the form that takes memory, or compile without that switch",
              function);
    return false;
}

DVTI_FN bool dvti_source_open(dvti_source *in, const char *function, const char *path) {
    dvti_source_memory(in, function, NULL, 0);
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

#define DVTI_FILE_BUFFER 65536

/* Only the first failure is told. */
static bool dvti_file_fail(dvti_file_out *out, const char *what, int error, const char *advice) {
    if (!out->failed)
        dvti_fail(DVT_ERR_IO, "%s: \"%.300s\" could not be %s: %s; %s", out->function, out->path,
                  what, error ? strerror(error) : "unknown reason", advice);
    out->failed = true;
    return false;
}

static bool dvti_file_fail_memory(dvti_file_out *out, size_t bytes) {
    if (!out->failed)
        dvti_fail_memory(out->function, (int64_t)bytes);
    out->failed = true;
    return false;
}

static const char *const dvti_file_advice =
    "check the path, its permissions and the space that is left";

/* Another name when this one is taken: by what a process of the same number has left behind. */
static bool dvti_file_create(dvti_file_out *out, const dvti_fd_info *like) {
    static dvti_atomic counter;
    const char *slash = strrchr(out->target, '/');
    size_t folder = slash ? (size_t)(slash - out->target) + 1 : 0, room = folder + 80;
    int tries, error = 0;
#if defined(_WIN32)
    const char *back = strrchr(out->target, '\\');
    if (back && (size_t)(back - out->target) + 1 > folder)
        folder = (size_t)(back - out->target) + 1, room = folder + 80;
#endif
    out->temporary = (char *)dvti_alloc(room);
    if (!out->temporary)
        return dvti_file_fail_memory(out, room);
    memcpy(out->temporary, out->target, folder);
    for (tries = 0; tries < 100; tries++) {
        snprintf(out->temporary + folder, room - folder, ".devtensor-%lld-%lld.tmp",
                 (long long)dvti_process_id(), (long long)dvti_atomic_add(&counter, 1));
        errno = 0;
        out->fd = dvti_fd_create(out->temporary, like);
        error = errno;
        if (out->fd >= 0)
            return true;
        if (error != EEXIST)
            break;
    }
    dvti_free(out->temporary);
    out->temporary = NULL;
    return dvti_file_fail(
        out, "written", error,
        "the folder must exist and allow new files: what is saved is written to a "
        "new file, which replaces the old one when it is complete");
}

/* What exists is opened first: that tells whether it may be written to, what it is, and what its
   successor must look like. */
static bool dvti_file_open(dvti_file_out *out) {
    dvti_fd_info info;
    int given, error;
    errno = 0;
    out->target = dvti_file_target(out->path);
    error = errno;
    if (!out->target)
        return error == ENOMEM ? dvti_file_fail_memory(out, strlen(out->path))
                               : dvti_file_fail(out, "written", error, dvti_file_advice);
    given = dvti_fd_of_path(out->target);
    if (given >= 0) {
        /* Its own descriptor: opening would cut the file off, or begin at its start again. */
        if (given == 1)
            fflush(stdout);
        errno = 0;
        out->fd = dvti_fd_duplicate(given);
        return out->fd >= 0 || dvti_file_fail(out, "written", errno, dvti_file_advice);
    }
    errno = 0;
    out->fd = dvti_fd_open_write(out->target, &info);
    error = errno;
    if (out->fd < 0 && error != ENOENT)
        return dvti_file_fail(out, "written", error, dvti_file_advice);
    if (out->fd >= 0 && !info.regular)
        return true;
    if (out->fd < 0)
        return dvti_file_create(out, NULL);
    (void)dvti_fd_close(out->fd);
    out->fd = -1;
    return dvti_file_create(out, &info);
}

static void dvti_file_out_free(dvti_file_out *out) {
    dvti_free(out->path);
    dvti_free(out->target);
    dvti_free(out->temporary);
    dvti_free(out->buffer);
    memset(out, 0, sizeof *out);
    out->fd = -1;
}

DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path) {
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (!path) {
        dvti_null(function, "path");
        return false;
    }
    out->function = function;
    out->path = dvti_strdup(path);
    out->buffer = (unsigned char *)dvti_alloc(DVTI_FILE_BUFFER);
    if (out->path && out->buffer ? dvti_file_open(out)
                                 : dvti_file_fail_memory(out, DVTI_FILE_BUFFER))
        return true;
    dvti_file_out_free(out);
    return false;
}

static void dvti_file_put(dvti_file_out *out, const void *bytes, size_t n) {
    errno = 0;
    if (!out->failed && n && !dvti_fd_write(out->fd, bytes, n))
        dvti_file_fail(out, "written", errno, dvti_file_advice);
}

DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n) {
    if (n > DVTI_FILE_BUFFER - out->n) {
        dvti_file_put(out, out->buffer, out->n);
        out->n = 0;
    }
    if (n >= DVTI_FILE_BUFFER)
        dvti_file_put(out, bytes, n);
    else if (n) {
        memcpy(out->buffer + out->n, bytes, n);
        out->n += n;
    }
}

/* Everything is known to be on the disk before the old file goes. */
static void dvti_file_finish(dvti_file_out *out) {
    dvti_file_put(out, out->buffer, out->n);
    errno = 0;
    if (!out->failed && out->temporary && !dvti_fd_sync(out->fd))
        dvti_file_fail(out, "written", errno, dvti_file_advice);
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    bool done;
    if (ok)
        dvti_file_finish(out);
    errno = 0;
    if (!dvti_fd_close(out->fd) && ok)
        dvti_file_fail(out, "written", errno, dvti_file_advice);
    errno = 0;
    if (ok && !out->failed && out->temporary && !dvti_file_replace(out->temporary, out->target))
        dvti_file_fail(out, "replaced", errno, dvti_file_advice);
    done = ok && !out->failed;
    if (!done && out->temporary)
        remove(out->temporary);
    dvti_file_out_free(out);
    return done ? DVT_OK : dvti_failure();
}

#undef DVTI_FILE_BUFFER
#endif
