/* Files that are loaded as code, so only this user may write them. Files and directories that other
   users could have created or changed are refused. No function here sets an error: the caller
   continues without the file. */
#include "1_base/dvt_base.h"

#if !defined(DEVTENSOR_NO_FILES)

#define DVTI_PRIVATE_FILE_MOST ((int64_t)1 << 28)

#if defined(_WIN32)

/* User profiles are private on Windows. */
static bool dvti_directory_ok(const char *path) {
    DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) &&
           !(attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

static bool dvti_directory_make(const char *path) {
    return CreateDirectoryA(path, NULL) || GetLastError() == ERROR_ALREADY_EXISTS;
}

static FILE *dvti_private_open(const char *path, int64_t *size) {
    FILE *file = fopen(path, "rb");
    if (file && (_fseeki64(file, 0, SEEK_END) != 0 || (*size = _ftelli64(file)) < 0 ||
                 _fseeki64(file, 0, SEEK_SET) != 0)) {
        fclose(file);
        return NULL;
    }
    return file;
}

static FILE *dvti_private_create(const char *path) {
    HANDLE handle =
        CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return NULL;
    CloseHandle(handle);
    return fopen(path, "wb");
}

static bool dvti_private_sync(FILE *file) {
    return fflush(file) == 0 && dvti_fd_sync(_fileno(file));
}

#else

/* Other users must not be able to write: by the directory's mode, as its owner, or through a
   symbolic link. */
static bool dvti_directory_ok(const char *path) {
    struct stat state;
    return lstat(path, &state) == 0 && S_ISDIR(state.st_mode) && state.st_uid == geteuid() &&
           (state.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool dvti_directory_make(const char *path) {
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static FILE *dvti_private_open(const char *path, int64_t *size) {
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat state;
    FILE *file = NULL;
    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &state) == 0 && S_ISREG(state.st_mode) && state.st_uid == geteuid() &&
        (state.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
        *size = (int64_t)state.st_size;
        file = fdopen(descriptor, "rb");
    }
    if (!file)
        close(descriptor);
    return file;
}

static FILE *dvti_private_create(const char *path) {
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file && descriptor >= 0)
        close(descriptor);
    return file;
}

static bool dvti_private_sync(FILE *file) {
    return fflush(file) == 0 && dvti_fd_sync(fileno(file));
}

#endif

DVTI_FN bool dvti_private_directory(const char *path) {
    return dvti_directory_make(path) && dvti_directory_ok(path);
}

DVTI_FN char *dvti_private_read(const char *path, size_t *size) {
    int64_t bytes = -1;
    FILE *file = dvti_private_open(path, &bytes);
    char *content = NULL;
    if (!file)
        return NULL;
    if (bytes >= 0 && bytes <= DVTI_PRIVATE_FILE_MOST)
        content = (char *)dvti_alloc((size_t)bytes);
    if (content && fread(content, 1, (size_t)bytes, file) != (size_t)bytes) {
        dvti_free(content);
        content = NULL;
    }
    fclose(file);
    *size = (size_t)bytes;
    return content;
}

DVTI_FN bool dvti_private_write(const char *path, const void *bytes, size_t size) {
    static dvti_atomic serial;
    char temporary[1200];
    FILE *file;
    bool done;
    int length = snprintf(temporary, sizeof temporary, "%s.%lld.%lld.%llx.tmp", path,
                          (long long)dvti_process_id(), (long long)dvti_atomic_add(&serial, 1),
                          (unsigned long long)(dvti_now() * 1e9));
    if (length < 0 || length >= (int)sizeof temporary)
        return false;
    file = dvti_private_create(temporary);
    if (!file)
        return false;
    done = fwrite(bytes, 1, size, file) == size && dvti_private_sync(file);
    done = fclose(file) == 0 && done;
    done = done && dvti_file_replace(temporary, path);
    if (!done)
        remove(temporary);
    return done;
}

/* ---- listing a directory ---- */
static bool dvti_entry_listed(const char *name) {
    return name[0] != '.' || strncmp(name, DVTI_TEMPORARY, sizeof DVTI_TEMPORARY - 1) == 0;
}

#if defined(_WIN32)

DVTI_FN bool dvti_private_list(const char *path, dvti_entry_fn each, void *user) {
    char pattern[1100];
    WIN32_FIND_DATAA found;
    HANDLE search;
    DWORD error;
    if (snprintf(pattern, sizeof pattern, "%s\\*", path) >= (int)sizeof pattern) {
        errno = ENAMETOOLONG;
        return false;
    }
    search = FindFirstFileA(pattern, &found);
    if (search != INVALID_HANDLE_VALUE) {
        do {
            uint64_t time = (uint64_t)found.ftLastWriteTime.dwHighDateTime << 32 |
                            found.ftLastWriteTime.dwLowDateTime;
            int64_t size = (int64_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
            if (dvti_entry_listed(found.cFileName))
                each(user, found.cFileName, size, (int64_t)(time / 10000000),
                     (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0);
        } while (FindNextFileA(search, &found));
        error = GetLastError();
        FindClose(search);
    } else
        error = GetLastError();
    errno = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? ENOENT : EIO;
    return error == ERROR_NO_MORE_FILES;
}

/* Windows does not delete files that are open. */
static bool dvti_process_lives(int64_t id) {
    return id == dvti_process_id();
}

#define DVTI_LISTED_NOW ((int64_t)time(NULL) + 11644473600) /* since 1601 */

#else

DVTI_FN bool dvti_private_list(const char *path, dvti_entry_fn each, void *user) {
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int error = 0;
    if (!directory)
        return false;
    while (errno = 0, (entry = readdir(directory)) != NULL) {
        struct stat state;
        if (!dvti_entry_listed(entry->d_name))
            continue;
        if (fstatat(dirfd(directory), entry->d_name, &state, AT_SYMLINK_NOFOLLOW) != 0)
            error = errno == ENOENT ? error : errno; /* ENOENT: deleted meanwhile */
        else if (S_ISDIR(state.st_mode) || S_ISREG(state.st_mode))
            each(user, entry->d_name, (int64_t)state.st_size, (int64_t)state.st_mtime,
                 S_ISDIR(state.st_mode));
    }
    error = errno ? errno : error;
    closedir(directory);
    errno = error;
    return !error;
}

static bool dvti_process_lives(int64_t id) {
    return id > 0 && id <= INT_MAX && (kill((pid_t)id, 0) == 0 || errno == EPERM);
}

#define DVTI_LISTED_NOW ((int64_t)time(NULL))

#endif

/* After a day, another process has the id. */
DVTI_FN bool dvti_temporary_left(const char *name, int64_t changed) {
    return !dvti_process_lives(strtoll(name + sizeof DVTI_TEMPORARY - 1, NULL, 10)) ||
           DVTI_LISTED_NOW - changed > 86400;
}

#undef DVTI_LISTED_NOW
#undef DVTI_PRIVATE_FILE_MOST

#endif
