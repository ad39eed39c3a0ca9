/* Files that appear only when they are complete. Output goes to a temporary file in the same
   directory. It is synced to disk before it replaces the old file. It gets the old file's mode and,
   as far as this process may, owner and group. A symbolic link is kept, and its target is replaced.
   A device, a pipe or /dev/stdout is written in place. */
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

DVTI_FN bool dvti_file_close(dvti_file_out *out, bool ok) {
    (void)out;
    return ok;
}

DVTI_FN dvt_status dvti_files_end(dvti_file_out *file, int n) {
    (void)n;
    return dvti_file_end(file, true);
}

DVTI_FN int dvti_live_open(const char *function, const char *path) {
    (void)path;
    (void)dvti_no_files(function);
    return -1;
}

DVTI_FN bool dvti_live_write(int fd, const void *bytes, size_t n) {
    (void)fd;
    (void)bytes;
    return n == 0;
}

DVTI_FN bool dvti_live_cut(int fd, int64_t bytes) {
    return fd < 0 && bytes == 0;
}

DVTI_FN bool dvti_live_close(int fd) {
    return fd < 0;
}

DVTI_FN dvt_status dvti_live_failed(const char *function, const char *path, int error) {
    (void)path;
    (void)error;
    (void)dvti_no_files(function);
    return DVT_ERR_NOT_BUILT;
}
#else

#define DVTI_FILE_BUFFER 65536

/* Reports only the first failure. */
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

static const char *const dvti_file_advice = "check the path, its permissions and the free space";

/* Tries another name when one is taken, by a file that a process with the same id left behind. */
static bool dvti_file_create(dvti_file_out *out, const dvti_fd_info *like) {
    static dvti_atomic counter;
    size_t directory = dvti_path_directory(out->target), capacity = directory + 80;
    int tries, error = 0;
    out->temporary = (char *)dvti_alloc(capacity);
    if (!out->temporary)
        return dvti_file_fail_memory(out, capacity);
    memcpy(out->temporary, out->target, directory);
    for (tries = 0; tries < 100; tries++) {
        snprintf(out->temporary + directory, capacity - directory, DVTI_TEMPORARY "%lld-%lld.tmp",
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
        "the directory must exist and allow new files: data go to a new file, which "
        "replaces the old one when it is complete");
}

/* Opens an existing file first. That shows whether it is writable, what kind of file it is, and
   which mode and owner the new file needs. */
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
        /* Duplicates the descriptor. Opening the path would truncate the file or rewind it. */
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
    out->replaces = true;
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
    if (out->memory) {
        dvti_writer_bytes(out->memory, bytes, n);
        return;
    }
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

/* Syncs all data to disk before the old file is replaced. */
static void dvti_file_finish(dvti_file_out *out) {
    dvti_file_put(out, out->buffer, out->n);
    errno = 0;
    if (!out->failed && out->temporary && !dvti_fd_sync(out->fd))
        dvti_file_fail(out, "written", errno, dvti_file_advice);
}

DVTI_FN bool dvti_file_close(dvti_file_out *out, bool ok) {
    if (ok)
        dvti_file_finish(out);
    errno = 0;
    if (!dvti_fd_close(out->fd) && ok)
        dvti_file_fail(out, "written", errno, dvti_file_advice);
    out->fd = -1;
    dvti_free(out->buffer);
    out->buffer = NULL;
    return ok && !out->failed;
}

DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok) {
    if (out->fd >= 0)
        ok = dvti_file_close(out, ok);
    errno = 0;
    if (ok && out->temporary && !dvti_file_replace(out->temporary, out->target))
        ok = dvti_file_fail(out, "replaced", errno, out->advice ? out->advice : dvti_file_advice);
    if (!ok && out->temporary)
        remove(out->temporary);
    dvti_file_out_free(out);
    return ok ? DVT_OK : dvti_failure();
}

/* Renames the old file. Sets *name, to be freed. */
static bool dvti_file_hide(dvti_file_out *out, char **name) {
    const size_t bytes = strlen(out->temporary) + 5;
    *name = (char *)dvti_alloc(bytes);
    if (!*name)
        return dvti_file_fail_memory(out, bytes);
    snprintf(*name, bytes, "%s.old", out->temporary);
    errno = 0;
    return dvti_file_replace(out->target, *name) ||
           dvti_file_fail(out, "replaced", errno, dvti_file_advice);
}

DVTI_FN dvt_status dvti_files_end(dvti_file_out *file, int n) {
    dvti_file_out *last = &file[n - 1];
    char *hidden = NULL;
    dvt_status status = DVT_OK;
    bool mixes = false, ok = true;
    int i, done = 0;
    for (i = 0; i < n - 1; i++)
        mixes = mixes || (n > 2 && file[i].replaces);
    if (mixes && last->replaces)
        ok = dvti_file_hide(last, &hidden);
    for (i = 0; i < n; i++) {
        if (done && hidden)
            file[i].advice =
                "other files were replaced, so their old index was removed: save again";
        if (i == n - 1 && hidden && !done)
            (void)rename(hidden, last->target);
        status = dvti_file_end(&file[i], ok);
        ok = status == DVT_OK;
        done += ok;
    }
    if (hidden)
        remove(hidden);
    dvti_free(hidden);
    return status;
}

#undef DVTI_FILE_BUFFER

/* ---- files that grow ---- */
DVTI_FN dvt_status dvti_live_failed(const char *function, const char *path, int error) {
    if (error == ENOMEM)
        return dvti_fail_memory(function, (int64_t)strlen(path));
    return dvti_fail(DVT_ERR_IO, "%s: \"%.300s\" could not be written: %s; %s", function, path,
                     error ? strerror(error) : "unknown reason", dvti_file_advice);
}

/* Removes an existing file, so that a reader of the old one is not disturbed. */
static int dvti_live_replace(const char *target) {
    dvti_fd_info info;
    int given = dvti_fd_of_path(target), fd;
    if (given >= 0)
        return dvti_fd_duplicate(given);
    fd = dvti_fd_open_write(target, &info);
    if (fd >= 0 ? !info.regular : errno != ENOENT)
        return fd;
    if (fd < 0)
        return dvti_fd_create(target, NULL);
    (void)dvti_fd_close(fd);
    return remove(target) == 0 ? dvti_fd_create(target, &info) : -1;
}

DVTI_FN int dvti_live_open(const char *function, const char *path) {
    char *target;
    int fd = -1;
    errno = 0;
    target = dvti_file_target(path);
    if (target)
        fd = dvti_live_replace(target);
    if (fd < 0)
        dvti_live_failed(function, path, errno);
    dvti_free(target);
    return fd;
}

DVTI_FN bool dvti_live_write(int fd, const void *bytes, size_t n) {
    return dvti_fd_write(fd, bytes, n);
}

DVTI_FN bool dvti_live_cut(int fd, int64_t bytes) {
    return dvti_fd_cut(fd, bytes);
}

DVTI_FN bool dvti_live_close(int fd) {
    return dvti_fd_close(fd);
}
#endif
