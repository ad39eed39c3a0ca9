/* Files by descriptors of the system: open, read, write, sync, replace. These functions set no
   error: a failing one leaves its reason in errno. */
#include "1_base/dvt_base.h"

#if !defined(DEVTENSOR_NO_FILES)

#define DVTI_FD_ONCE ((size_t)1 << 30) /* one system call moves less than 2 GiB */

#if defined(_WIN32)

#define DVTI_FD_FLAGS (_O_BINARY | _O_NOINHERIT)
#define dvti_fd_call_open(path, flags, mode) _open((path), (flags) | DVTI_FD_FLAGS, (mode))
#define dvti_fd_call_read(fd, to, n) _read((fd), (to), (unsigned)(n))
#define dvti_fd_call_write(fd, from, n) _write((fd), (from), (unsigned)(n))
#define DVTI_FD_READ _O_RDONLY
#define DVTI_FD_WRITE _O_WRONLY
#define DVTI_FD_CREATE (_O_WRONLY | _O_CREAT | _O_EXCL)
#define DVTI_FD_NEW_MODE (_S_IREAD | _S_IWRITE)
#define DVTI_FD_PRIVATE_MODE (_S_IREAD | _S_IWRITE)

static bool dvti_fd_stat(int fd, dvti_fd_info *info) {
    struct _stat64 state;
    if (_fstat64(fd, &state) != 0)
        return false;
    info->regular = (state.st_mode & _S_IFMT) == _S_IFREG;
    info->size = (int64_t)state.st_size;
    return true;
}

/* Does nothing: on Windows a new file inherits the access lists of its directory. */
static void dvti_fd_copy_access(int fd, const dvti_fd_info *info) {
    (void)fd;
    (void)info;
}

DVTI_FN bool dvti_fd_sync(int fd) {
    return _commit(fd) == 0;
}

DVTI_FN bool dvti_fd_close(int fd) {
    return _close(fd) == 0;
}

DVTI_FN bool dvti_file_replace(const char *from, const char *to) {
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return true;
    errno = GetLastError() == ERROR_ACCESS_DENIED ? EACCES : EIO;
    return false;
}

/* Windows follows links itself, and replaces the link when a file is renamed onto it. */
DVTI_FN char *dvti_file_target(const char *path) {
    char *target = dvti_strdup(path);
    if (!target)
        errno = ENOMEM;
    return target;
}

DVTI_FN int dvti_fd_of_path(const char *path) {
    (void)path;
    return -1;
}

DVTI_FN int dvti_fd_duplicate(int fd) {
    return _dup(fd);
}

DVTI_FN bool dvti_fd_seek(int fd, int64_t at) {
    return _lseeki64(fd, at, SEEK_SET) == at;
}

DVTI_FN bool dvti_fd_cut(int fd, int64_t bytes) {
    return _chsize_s(fd, bytes) == 0 && dvti_fd_seek(fd, bytes);
}

#else

#define dvti_fd_call_open(path, flags, mode) open((path), (flags) | O_CLOEXEC | O_NOCTTY, (mode))
#define dvti_fd_call_read(fd, to, n) read((fd), (to), (n))
#define dvti_fd_call_write(fd, from, n) write((fd), (from), (n))
#define DVTI_FD_READ O_RDONLY
#define DVTI_FD_WRITE O_WRONLY
#define DVTI_FD_CREATE (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
#define DVTI_FD_NEW_MODE 0666 /* masked by the process's umask */
#define DVTI_FD_PRIVATE_MODE 0600
#define DVTI_LINKS_MOST 40 /* as Linux */

static bool dvti_fd_stat(int fd, dvti_fd_info *info) {
    struct stat state;
    if (fstat(fd, &state) != 0)
        return false;
    if (S_ISDIR(state.st_mode)) {
        errno = EISDIR;
        return false;
    }
    info->regular = S_ISREG(state.st_mode);
    info->size = (int64_t)state.st_size;
    info->mode = (unsigned)state.st_mode & 0777;
    info->owner = (int64_t)state.st_uid;
    info->group = (int64_t)state.st_gid;
    return true;
}

/* Copies owner, group and mode from `info`, as far as this process may. If the group cannot be
   kept, its permission bits would apply to another group. That group then gets the bits of
   others. */
static void dvti_fd_copy_access(int fd, const dvti_fd_info *info) {
    unsigned mode = info->mode;
    struct stat state;
    bool kept = fstat(fd, &state) == 0 && (int64_t)state.st_gid == info->group;
    if (fchown(fd, (uid_t)info->owner, (gid_t)info->group) == 0 ||
        fchown(fd, (uid_t)-1, (gid_t)info->group) == 0)
        kept = true;
    if (!kept)
        mode = (mode & ~(unsigned)070) | (mode & 07) << 3;
    (void)!fchmod(fd, (mode_t)mode);
}

/* Some file systems cannot sync, and report that they do not implement the call. */
static bool dvti_fd_no_sync(int error) {
    return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EROFS;
}

DVTI_FN bool dvti_fd_sync(int fd) {
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 || dvti_fd_no_sync(errno);
}

/* An interrupted close has closed the descriptor. Closing again could hit a descriptor that another
   thread opened meanwhile. */
DVTI_FN bool dvti_fd_close(int fd) {
    return close(fd) == 0 || errno == EINTR;
}

/* Returns the offset of the file name. */
static size_t dvti_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Makes the new directory entry durable. A failure is ignored, because the file is already replaced
   and complete. */
static void dvti_directory_sync(const char *path) {
    size_t base = dvti_path_base(path);
    char *directory = dvti_strdup(base ? path : ".");
    int fd;
    if (!directory)
        return;
    if (base)
        directory[base] = 0;
    fd = dvti_fd_call_open(directory, O_RDONLY, 0);
    if (fd >= 0) {
        (void)dvti_fd_sync(fd);
        (void)dvti_fd_close(fd);
    }
    dvti_free(directory);
}

DVTI_FN bool dvti_file_replace(const char *from, const char *to) {
    if (rename(from, to) != 0)
        return false;
    dvti_directory_sync(to);
    return true;
}

/* Returns the path that a link holds, relative to the link's directory. NULL with errno on
   failure. */
static char *dvti_link_step(const char *path) {
    size_t base = dvti_path_base(path), capacity = 256;
    for (;;) {
        char *next = (char *)dvti_alloc(base + capacity);
        ssize_t n;
        int error = ENOMEM;
        if (!next) {
            errno = error;
            return NULL;
        }
        n = readlink(path, next + base, capacity);
        error = errno;
        if (n >= 0 && (size_t)n < capacity) {
            next[base + (size_t)n] = 0;
            if (next[base] == '/')
                memmove(next, next + base, (size_t)n + 1);
            else
                memcpy(next, path, base);
            return next;
        }
        dvti_free(next);
        if (n < 0 || capacity > 65536) {
            errno = n < 0 ? error : ENAMETOOLONG;
            return NULL;
        }
        capacity *= 4;
    }
}

DVTI_FN char *dvti_file_target(const char *path) {
    char *target = dvti_strdup(path), *next;
    int steps;
    if (!target)
        errno = ENOMEM;
    for (steps = 0; target && steps <= DVTI_LINKS_MOST; steps++) {
        if (dvti_fd_of_path(target) >= 0)
            return target; /* also a link, to the file that the descriptor was opened on */
        next = dvti_link_step(target);
        if (!next && errno != ENOMEM && errno != ENAMETOOLONG)
            return target; /* not a link, or missing: opening it reports that */
        dvti_free(target);
        target = next;
    }
    if (target) {
        dvti_free(target);
        errno = ELOOP;
    }
    return NULL;
}

DVTI_FN int dvti_fd_of_path(const char *path) {
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    int i;
    if (strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0)
        return path[8] == 'o' ? 1 : 2;
    for (i = 0; i < DVTI_LENGTH(directories); i++) {
        size_t n = strlen(directories[i]), digits;
        if (strncmp(path, directories[i], n) != 0)
            continue;
        digits = strspn(path + n, "0123456789");
        if (digits > 0 && digits < 9 && !path[n + digits])
            return atoi(path + n);
    }
    return -1;
}

DVTI_FN int dvti_fd_duplicate(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

DVTI_FN bool dvti_fd_seek(int fd, int64_t at) {
    return (int64_t)lseek(fd, (off_t)at, SEEK_SET) == at;
}

DVTI_FN bool dvti_fd_cut(int fd, int64_t bytes) {
    return ftruncate(fd, (off_t)bytes) == 0 && dvti_fd_seek(fd, bytes);
}

#undef DVTI_LINKS_MOST

#endif

/* ---- the same for all systems ---- */
static bool dvti_directory_new(const char *path) {
#if defined(_WIN32)
    if (CreateDirectoryA(path, NULL))
        return true;
    errno = GetLastError() == ERROR_ALREADY_EXISTS ? EEXIST : EACCES;
#else
    if (mkdir(path, 0777) == 0)
        return true;
#endif
    return errno == EEXIST;
}

DVTI_FN bool dvti_directories_make(const char *path) {
    char *part = dvti_strdup(path);
    size_t i;
    bool made;
    if (!part) {
        errno = ENOMEM;
        return false;
    }
    for (i = 1; part[0] && part[i]; i++)
        if (part[i] == '/' || part[i] == '\\') {
            char separator = part[i];
#if !defined(_WIN32)
            if (separator != '/')
                continue;
#endif
            part[i] = 0;
            (void)dvti_directory_new(part); /* the last call reports a failure */
            part[i] = separator;
        }
    made = dvti_directory_new(part);
    dvti_free(part);
    return made;
}

static int dvti_fd_open(const char *path, int flags, int mode, dvti_fd_info *info) {
    int fd;
    memset(info, 0, sizeof *info);
    do
        fd = dvti_fd_call_open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 && !dvti_fd_stat(fd, info)) {
        int error = errno;
        (void)dvti_fd_close(fd);
        if (flags == DVTI_FD_CREATE)
            remove(path);
        errno = error;
        return -1;
    }
    return fd;
}

DVTI_FN int dvti_fd_open_read(const char *path, dvti_fd_info *info) {
    return dvti_fd_open(path, DVTI_FD_READ, 0, info);
}

DVTI_FN int dvti_fd_open_write(const char *path, dvti_fd_info *info) {
    return dvti_fd_open(path, DVTI_FD_WRITE, 0, info);
}

DVTI_FN int dvti_fd_create(const char *path, const dvti_fd_info *like) {
    dvti_fd_info info;
    int fd =
        dvti_fd_open(path, DVTI_FD_CREATE, like ? DVTI_FD_PRIVATE_MODE : DVTI_FD_NEW_MODE, &info);
    if (fd >= 0 && like)
        dvti_fd_copy_access(fd, like);
    return fd;
}

DVTI_FN int64_t dvti_fd_read(int fd, void *to, size_t n) {
    int64_t got;
    do
        got = (int64_t)dvti_fd_call_read(fd, to, DVTI_MIN(n, DVTI_FD_ONCE));
    while (got < 0 && errno == EINTR);
    return got;
}

DVTI_FN bool dvti_fd_write(int fd, const void *from, size_t n) {
    const char *at = (const char *)from;
    while (n > 0) {
        int64_t done = (int64_t)dvti_fd_call_write(fd, at, DVTI_MIN(n, DVTI_FD_ONCE));
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return true;
}

#undef DVTI_FD_ONCE
#undef DVTI_FD_FLAGS
#undef DVTI_FD_READ
#undef DVTI_FD_WRITE
#undef DVTI_FD_CREATE
#undef DVTI_FD_NEW_MODE
#undef DVTI_FD_PRIVATE_MODE
#undef dvti_fd_call_open
#undef dvti_fd_call_read
#undef dvti_fd_call_write

#endif
