/* POSIX functions that the tests call, under the same names on Windows. */
#ifndef DVT_HOST_H
#define DVT_HOST_H
#if defined(_WIN32)
#include <direct.h>
#include <stdlib.h>

static inline int setenv(const char *name, const char *value, int replace) {
    return replace || !getenv(name) ? _putenv_s(name, value) : 0;
}

static inline int unsetenv(const char *name) {
    return _putenv_s(name, "");
}

#define mkdir(path, mode) _mkdir(path)
#endif
#endif
