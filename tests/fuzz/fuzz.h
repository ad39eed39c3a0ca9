/* Shared by the harnesses. A harness is

     DVT_FUZZ(npy) { ... data, size ... FUZZ_CHECK(condition); return 0; }

   in tests/fuzz/npy.c. With libFuzzer it is a program of its own (run.sh). With DVT_FUZZ_REPLAY it
   becomes the test fuzz_npy, which runs every input of corpus/npy.txt (one per line, in
   hexadecimal). */
#ifndef DVT_FUZZ_H
#define DVT_FUZZ_H
#include "5_io/dvt_formats.h"
#include "dvt_golden.h"
#include "dvt_test.h"
#include <stdint.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef int (*fuzz_target)(const uint8_t *data, size_t size);

#if defined(DVT_FUZZ_REPLAY)
#define FUZZ_CHECK(condition) CHECK(condition)

__attribute__((unused)) static void fuzz_replay(const char *file, const char *name,
                                                fuzz_target target) {
    static char line[1 << 18];
    char path[512];
    const char *slash = strrchr(file, '/');
    FILE *corpus;
    int inputs = 0;
    snprintf(path, sizeof path, "%.*s/corpus/%s.txt", slash ? (int)(slash - file) : 1,
             slash ? file : ".", name);
    corpus = fopen(path, "rb");
    if (!dvt_test_check(corpus != NULL, __FILE__, __LINE__, "%s is not there", path))
        return;
    while (fgets(line, sizeof line, corpus)) {
        size_t n;
        unsigned char *bytes = golden_bytes(line, &n);
        target(bytes, n);
        free(bytes);
        inputs++;
    }
    fclose(corpus);
    dvt_test_check(inputs > 0, __FILE__, __LINE__, "%s is empty", path);
}

#define DVT_FUZZ(name)                                                                             \
    static int fuzz_##name(const uint8_t *data, size_t size);                                      \
    DVT_TEST(fuzz_##name) {                                                                        \
        fuzz_replay(__FILE__, #name, fuzz_##name);                                                 \
    }                                                                                              \
    static int fuzz_##name(const uint8_t *data, size_t size)
#else
#define FUZZ_CHECK(condition)                                                                      \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, dvt_error());       \
            abort();                                                                               \
        }                                                                                          \
    while (0)
#define DVT_FUZZ(name)                                                                             \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                  \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#endif

/* ---- memory: larger blocks are refused, as on a machine with little memory ---- */
#define FUZZ_MEMORY ((size_t)64 << 20)

static void *fuzz_alloc(void *user, size_t bytes) {
    (void)user;
    return bytes > FUZZ_MEMORY ? NULL : malloc(bytes);
}

static void *fuzz_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return bytes > FUZZ_MEMORY ? NULL : realloc(block, bytes);
}

static void fuzz_release(void *user, void *block) {
    (void)user;
    free(block);
}

static void fuzz_quiet(void *user, dvt_log_level level, const char *text) {
    (void)user;
    (void)level;
    (void)text;
}

/* Begins an input: disables logging, limits blocks, and clears earlier errors. */
__attribute__((unused)) static void fuzz_begin(void) {
    static int begun;
    dvt_allocator bounded = {fuzz_alloc, fuzz_resize, fuzz_release, NULL};
    if (!begun) {
        dvt_set_allocator(&bounded);
        dvt_set_logger(fuzz_quiet, NULL);
    }
    begun = 1;
    dvt_clear_error();
}

/* Ends an input: checks that everything was released. */
__attribute__((unused)) static void fuzz_end(void) {
    dvt_clear_error();
    FUZZ_CHECK(dvt_get_stats().arrays == 0);
}

/* ---- the input as a file ---- */
/* Returns the path, or "" on systems without files outside of the file system. */
__attribute__((unused)) static const char *fuzz_file(const uint8_t *data, size_t size) {
    static char path[40];
#if defined(__linux__) && defined(SYS_memfd_create)
    static int file = -1;
    if (file < 0)
        file = (int)syscall(SYS_memfd_create, "fuzz", 0);
    if (file < 0 || ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0 ||
        pwrite(file, data, size, 0) != (ssize_t)size)
        return "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
#else
    (void)data;
    (void)size;
#endif
    return path;
}

/* Hashes the values and the layout of x. */
__attribute__((unused)) static uint64_t fuzz_hash(dvt_array *x) {
    const unsigned char *at = (const unsigned char *)dvt_data(x);
    uint64_t hash = 1469598103934665603u + (uint64_t)dvt_dtype_of(x);
    int64_t i, n = dvt_nbytes(x);
    for (i = 0; i < dvt_ndim(x); i++)
        hash = (hash ^ (uint64_t)dvt_dim(x, (int)i)) * 0x100000001b3u;
    for (i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

/* Turns a list into one array, so that lists can be compared: a hash of all arrays, names and
   metadata. Every array is also found by its name. */
__attribute__((unused)) static dvt_array *fuzz_list(dvt_array_list *list) {
    int64_t sum = 0;
    const char *key, *value;
    int n = dvt_array_list_len(list), i;
    if (!list)
        return NULL;
    for (i = 0; i < n; i++) {
        const char *name = dvt_array_list_name(list, i);
        sum =
            (int64_t)(((uint64_t)sum ^ fuzz_hash(dvt_array_list_at(list, i))) * 31 + strlen(name));
        FUZZ_CHECK(!*name || dvt_array_list_find(list, name) == dvt_array_list_at(list, i));
    }
    for (i = 0; (value = dvt_array_list_metadata_at(list, i, &key)) != NULL; i++)
        sum = (int64_t)(((uint64_t)sum ^ strlen(key)) * 31 + strlen(value));
    return dvt_from_host(&sum, DVT_SCALAR, DVT_I64, dvt_cpu());
}

/* When not 0, reads of files return 1 to 8 bytes at a time (run.sh links with
   --wrap=dvti_fd_read). */
#if !defined(DVT_FUZZ_REPLAY)
static unsigned fuzz_trickle;
int64_t __real_dvti_fd_read(int fd, void *to, size_t n);
int64_t __wrap_dvti_fd_read(int fd, void *to, size_t n);

int64_t __wrap_dvti_fd_read(int fd, void *to, size_t n) {
    if (fuzz_trickle) {
        size_t few = 1 + (fuzz_trickle >> 16) % 8;
        fuzz_trickle = fuzz_trickle * 1664525u + 1013904223u;
        fuzz_trickle |= 1;
        n = n < few ? n : few;
    }
    return __real_dvti_fd_read(fd, to, n);
}

#define FUZZ_TRICKLE(seed) (fuzz_trickle = (seed))
#else
#define FUZZ_TRICKLE(seed) ((void)(seed))
#endif

/* Reads the input from memory and from a file: both must fail, or give the same. */
typedef dvt_array *(*fuzz_reader)(const void *data, size_t size, const char *path, int i);

__attribute__((unused)) static void fuzz_read(fuzz_reader read, const uint8_t *data, size_t size) {
    fuzz_begin();
    DVT_SCOPE {
        dvt_array *x = read(data, size, NULL, 0), *y;
        dvt_status code = dvt_error_code();
        const char *path;
        uint64_t hash = 0;
        FUZZ_CHECK(x ? code == DVT_OK : code == DVT_ERR_FORMAT || code == DVT_ERR_HOST_MEMORY);
        if (x)
            hash = fuzz_hash(x);
        dvt_clear_error();
        path = fuzz_file(data, size);
        if (*path && size < 65536) {
            FUZZ_TRICKLE(size > 2000 ? 0 : (unsigned)size * 2654435761u | 1);
            y = read(NULL, 0, path, 0);
            FUZZ_TRICKLE(0);
            FUZZ_CHECK(dvt_error_code() == code || code == DVT_ERR_HOST_MEMORY ||
                       dvt_error_code() == DVT_ERR_HOST_MEMORY);
            FUZZ_CHECK(!x || !y || fuzz_hash(y) == hash);
        }
    }
    fuzz_end();
}

#endif
