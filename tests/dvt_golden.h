/* Reads the files under tests/golden: lines of words, numbers in hexadecimal. */
#ifndef DVT_GOLDEN_H
#define DVT_GOLDEN_H
#include "dvt_test.h"

/* Returns the path of a golden file, relative to the directory of the calling test (its
   __FILE__). */
static inline const char *golden_path(const char *test, const char *name) {
    static char path[512];
    const char *slash = strrchr(test, '/');
    snprintf(path, sizeof path, "%.*s/../golden/%s", slash ? (int)(slash - test) : 1,
             slash ? test : ".", name);
    return path;
}

static inline FILE *golden_open(const char *test, const char *name) {
    return fopen(golden_path(test, name), "rb");
}

/* Parses a shape such as "2,3"; "-": no axes. */
static inline dvt_shape golden_shape(const char *at) {
    dvt_shape shape = DVT_SCALAR;
    for (; *at && *at != '-'; at += strcspn(at, ","), at += *at == ',')
        shape.dim[shape.ndim++] = strtoll(at, NULL, 10);
    return shape;
}

/* Returns the bytes of a hexadecimal word; the caller frees them. */
static inline unsigned char *golden_bytes(const char *hex, size_t *n) {
    size_t digits = strspn(hex, "0123456789abcdef"), i;
    unsigned char *bytes = (unsigned char *)malloc(digits / 2 + 1);
    for (i = 0; i < digits / 2; i++) {
        char pair[3];
        pair[0] = hex[2 * i];
        pair[1] = hex[2 * i + 1];
        pair[2] = 0;
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    *n = digits / 2;
    return bytes;
}

/* Calls `each` with the words of every line of tests/golden/files.txt that begins with `kind`.
   Returns the number of lines. */
static inline int golden_lines(const char *test, const char *kind,
                               void (*each)(const char *first, const char *second,
                                            const char *hex)) {
    static char line[1 << 18];
    char word[16], first[64], second[64];
    FILE *file = golden_open(test, "files.txt");
    int found = 0, at;
    if (!CHECK(file != NULL))
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%15s", word) != 1 || strcmp(word, kind) != 0)
            continue;
        if (strcmp(kind, "gz_bad") == 0) {
            CHECK(sscanf(line, "%15s %63s %n", word, first, &at) == 2);
            second[0] = 0;
        } else
            CHECK(sscanf(line, "%15s %63s %63s %n", word, first, second, &at) == 3);
        each(first, second, line + at);
        found++;
    }
    fclose(file);
    return found;
}

/* Damages `n` valid bytes in all basic ways, and calls `load` with each result: truncated to every
   length; every byte set to 0, to 255, with its high bit flipped, and increased by one. The loaded
   values do not matter, but nothing may crash, leak, or read out of bounds. Clears errors. */
static inline void golden_damage(const unsigned char *bytes, size_t n,
                                 void (*load)(const void *bytes, size_t n)) {
    size_t i;
    int way;
    for (i = 0; i < n; i++) {
        unsigned char *copy = (unsigned char *)malloc(
            i ? i : 1); /* of exact size, so that ASan detects reads past the end */
        memcpy(copy, bytes, i);
        DVT_SCOPE {
            load(copy, i);
        }
        dvt_clear_error();
        free(copy);
    }
    for (i = 0; i < n; i++)
        for (way = 0; way < 4; way++) {
            unsigned char *copy = (unsigned char *)malloc(n);
            memcpy(copy, bytes, n);
            copy[i] = (unsigned char)(way == 0   ? 0
                                      : way == 1 ? 255
                                      : way == 2 ? copy[i] ^ 0x80
                                                 : copy[i] + 1);
            DVT_SCOPE {
                load(copy, n);
            }
            dvt_clear_error();
            free(copy);
        }
}

/* Returns a path for a file of this test in the system's temporary directory; remove() it. */
static inline const char *golden_temporary(const char *name) {
    static char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/devtensor-test-%lld-%s", folder && *folder ? folder : "/tmp",
             (long long)(dvt_seconds() * 1e6), name);
    return path;
}

/* Reads a whole file; the caller frees it. Returns NULL when it cannot be read. */
static inline unsigned char *golden_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = (unsigned char *)malloc(1 << 20);
    *n = file ? fread(bytes, 1, 1 << 20, file) : 0;
    if (file) {
        fclose(file);
        return bytes;
    }
    free(bytes);
    return NULL;
}

static inline int golden_write(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    int ok = file && fwrite(bytes, 1, n, file) == n;
    return file ? fclose(file) == 0 && ok : 0;
}

/* Checks that the next call fails with that status, and that its message contains these words. */
#define CHECK_REFUSED(expression, status, words)                                                   \
    do {                                                                                           \
        dvt_clear_error();                                                                         \
        (void)(expression);                                                                        \
        dvt_test_check(dvt_error_code() == (status) && strstr(dvt_error(), words), __FILE__,       \
                       __LINE__, "%s gave %s (%s), expected %s (...%s...)", #expression,           \
                       dvt_status_name(dvt_error_code()), dvt_error(), dvt_status_name(status),    \
                       words);                                                                     \
        dvt_clear_error();                                                                         \
    } while (0)

/* ---- exhausted host memory ---- */
static long golden_allocations_left; /* the one that counts down to 0 fails, and all later ones */

static inline void *golden_alloc(void *user, size_t bytes) {
    (void)user;
    return golden_allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static inline void *golden_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return golden_allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

static inline void golden_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* Runs `action`, which returns whether it succeeded, with the first allocation failing, then the
   second, ... until none fails. Each failure must be reported as HOST_MEMORY and leak nothing.
   Returns the number of failures. The bound ends a sweep that never succeeds: a recurrent training
   step takes 494 allocations, and above 500 with AddressSanitizer, where blocks are not pooled. */
enum { GOLDEN_ALLOCATIONS = 5000 };

static inline int golden_out_of_memory(int (*action)(void)) {
    dvt_allocator failing = {golden_alloc, golden_resize, golden_release, NULL};
    long n;
    for (n = 0; n < GOLDEN_ALLOCATIONS; n++) {
        dvt_stats before = dvt_get_stats(), after;
        int ok = 0;
        dvt_clear_error();
        DVT_SCOPE {
            golden_allocations_left = n;
            dvt_set_allocator(&failing);
            ok = action();
            dvt_set_allocator(NULL);
        }
        after = dvt_get_stats();
        CHECK_INT(after.arrays, before.arrays);
        CHECK_INT(after.blocks_of_memory, before.blocks_of_memory);
        if (ok) {
            CHECK_INT(dvt_error_code(), DVT_OK);
            return (int)n;
        }
        CHECK_INT(dvt_error_code(), DVT_ERR_HOST_MEMORY);
        dvt_clear_error();
    }
    CHECK(n < GOLDEN_ALLOCATIONS);
    return -1;
}

#endif
