/* Measures with a counting allocator how much memory the readers of files use. The limit is the
   array and small buffers, and only small buffers for an invalid file. Also tests files that are
   not regular, and files that change during reading. */
#include "dvt_golden.h"

#if !defined(DEVTENSOR_NO_FILES) && !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

#define SMALL (256 << 10) /* what a reader may allocate besides the array */
#define BLOCK (1 << 20)   /* additional memory for Fortran order */

/* ---- a counting allocator: counts its own blocks only ---- */
#define BLOCKS 4096

static struct {
    void *at;
    size_t bytes;
} block_of[BLOCKS];

static long long held, most;
static const char
    /* This file is truncated when a block of cut_at bytes or more is allocated. */
    *cut_path;
static size_t cut_at;

static void count_add(void *block, size_t bytes) {
    int i = 0;
    while (i < BLOCKS && block_of[i].at)
        i++;
    if (!CHECK(i < BLOCKS))
        return;
    block_of[i].at = block;
    block_of[i].bytes = bytes;
    held += (long long)bytes;
    most = held > most ? held : most;
}

static size_t count_drop(void *block) {
    size_t bytes = 0;
    int i;
    for (i = 0; i < BLOCKS; i++)
        if (block_of[i].at == block) {
            bytes = block_of[i].bytes;
            block_of[i].at = NULL;
            break;
        }
    held -= (long long)bytes;
    return bytes;
}

static void *count_alloc(void *user, size_t bytes) {
    void *block = malloc(bytes);
    (void)user;
    if (cut_path && bytes >= cut_at && truncate(cut_path, 200) == 0)
        cut_path = NULL;
    if (block)
        count_add(block, bytes);
    return block;
}

static void count_release(void *user, void *block) {
    (void)user;
    count_drop(block);
    free(block);
}

/* Counts both blocks for a moment, as if the block had moved. */
static void *count_resize(void *user, void *block, size_t bytes) {
    size_t before = count_drop(block);
    void *other = realloc(block, bytes);
    (void)user;
    held += (long long)before;
    count_add(other ? other : block, other ? bytes : before);
    held -= (long long)before;
    return other;
}

static dvt_array *load_npy(const char *path) {
    return dvt_load_npy(path, dvt_cpu());
}

static dvt_array *load_idx(const char *path) {
    return dvt_load_idx(path, dvt_cpu());
}

static dvt_array *load_params(const char *path) {
    dvt_array_list *list = dvt_load_params(path, dvt_cpu());
    return list ? dvt_array_list_at(list, 0) : NULL;
}

static dvt_array *load_npz(const char *path) {
    dvt_array_list *list = dvt_load_npz(path, dvt_cpu());
    return list ? dvt_array_list_at(list, 0) : NULL;
}

static dvt_array *load_image(const char *path) {
    return dvt_load_image(path, dvt_cpu());
}

static dvt_array *load_safetensors(const char *path) {
    dvt_array_list *list = dvt_load_safetensors(path, dvt_cpu());
    return list ? dvt_array_list_at(list, 0) : NULL;
}

static dvt_array *load_gguf(const char *path) {
    dvt_array_list *list = dvt_load_gguf(path, dvt_cpu());
    return list ? dvt_array_list_at(list, 0) : NULL;
}

static dvt_array *load_arrays(const char *path) {
    dvt_array_list *list = dvt_load_arrays(path, dvt_cpu());
    return list ? dvt_array_list_at(list, 0) : NULL;
}

/* Returns an array of that many bytes, to compare with the memory that a reader uses. */
static dvt_array *bytes_alone(const char *bytes) {
    return dvt_empty(DVT_SHAPE(strtoll(bytes, NULL, 10)), DVT_U8, dvt_cpu());
}

typedef dvt_array *(*loader)(const char *path);

/* Returns the peak of allocated bytes during the call. *sum gets the sum of the elements, or -1
   after a failure. */
static long long peak_of(loader load, const char *path, double *sum) {
    dvt_allocator counting = {count_alloc, count_resize, count_release, NULL};
    dvt_set_allocator(&counting);
    DVT_SCOPE {
        dvt_array *x;
        memset(block_of, 0, sizeof block_of);
        held = most = 0;
        x = load(path);
        if (sum)
            *sum = x ? dvt_item(dvt_sum(dvt_astype(x, DVT_F64), DVT_ALL)) : -1;
        else
            CHECK(x != NULL);
    }
    dvt_set_allocator(NULL);
    return most;
}

static long long peak_of_load(loader load, const char *path) {
    return peak_of(load, path, NULL);
}

/* Returns the peak of an array of that many bytes alone. */
static long long peak_of_bytes(long long bytes) {
    char text[32];
    snprintf(text, sizeof text, "%lld", bytes);
    return peak_of(bytes_alone, text, NULL);
}

#define CHECK_MOST(peak, limit)                                                                    \
    do {                                                                                           \
        long long peak_ = (peak), limit_ = (limit);                                                \
        dvt_test_check(peak_ <= limit_, __FILE__, __LINE__,                                        \
                       "%s: %lld bytes, expected at most %lld", #peak, peak_, limit_);             \
    } while (0)

/* ---- files by hand ---- */
/* Writes a .npy file: a header of 128 bytes, then `bytes` bytes of data 0, 1, .. 250, 0, .. */
static int write_npy(const char *path, const char *dictionary, size_t bytes) {
    unsigned char head[128], data[251 * 16];
    FILE *file = fopen(path, "wb");
    size_t i, n;
    if (!file)
        return 0;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(head + 10, dictionary, strlen(dictionary));
    head[127] = '\n';
    for (i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i % 251);
    fwrite(head, 1, sizeof head, file);
    for (; bytes; bytes -= n) {
        n = bytes < sizeof data ? bytes : sizeof data;
        fwrite(data, 1, n, file);
    }
    return fclose(file) == 0;
}

/* Writes an IDX file of n bytes of value 1 in a gzip member of uncompressed blocks. */
static int write_gz(const char *path, uint32_t n) {
    unsigned char *plain_bytes = (unsigned char *)malloc(n + 8);
    uint32_t crc = 0xffffffffu, i, total = n + 8, at;
    FILE *file = fopen(path, "wb");
    int k;
    if (!file || !plain_bytes)
        return 0;
    memset(plain_bytes, 1, total);
    memcpy(plain_bytes, "\0\0\x08\x01", 4);
    for (k = 0; k < 4; k++)
        plain_bytes[4 + k] = (unsigned char)(n >> (24 - 8 * k));
    for (i = 0; i < total; i++)
        for (crc ^= plain_bytes[i], k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    fwrite("\x1f\x8b\x08\0\0\0\0\0\0\3", 1, 10, file);
    for (at = 0; at < total; at += i) {
        i = total - at < 65535 ? total - at : 65535;
        fputc(at + i == total, file);
        fputc((int)(i & 255), file);
        fputc((int)(i >> 8), file);
        fputc((int)(~i & 255), file);
        fputc((int)(~i >> 8 & 255), file);
        fwrite(plain_bytes + at, 1, i, file);
    }
    for (k = 0; k < 4; k++)
        fputc((int)(~crc >> 8 * k & 255), file);
    for (k = 0; k < 4; k++)
        fputc((int)(total >> 8 * k & 255), file);
    free(plain_bytes);
    return fclose(file) == 0;
}

static const char *path_of(const char *name) {
    static char path[4][512];
    static int next;
    char *mine = path[next++ % 4];
    snprintf(mine, sizeof path[0], "%s", golden_temporary(name));
    return mine;
}

DVT_TEST(files_peak_memory_of_npy) {
    const char *path = path_of("peak.npy");
    long long array = peak_of_bytes(3000000);
    CHECK(write_npy(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (750, 1000), }",
                    3000000));
    CHECK_MOST(peak_of_load(load_npy, path), array + SMALL);
    CHECK(write_npy(path, "{'descr': '>f4', 'fortran_order': False, 'shape': (750, 1000), }",
                    3000000));
    CHECK_MOST(peak_of_load(load_npy, path), array + SMALL);
    CHECK(write_npy(path, "{'descr': '<f4', 'fortran_order': True, 'shape': (750, 1000), }",
                    3000000));
    CHECK_MOST(peak_of_load(load_npy, path), array + SMALL + BLOCK);
    CHECK(
        write_npy(path, "{'descr': '<u2', 'fortran_order': False, 'shape': (750000,), }", 1500000));
    CHECK_MOST(peak_of_load(load_npy, path), array + SMALL);
    CHECK(remove(path) == 0);
}

/* The shapes make blocks end on every axis; element i of the file is i % 251. */
DVT_TEST(files_fortran_order) {
    static const struct {
        const char *shape;
        int ndim;
        int64_t dim[4];
    } row[] = {{"(3, 700000)", 2, {3, 700000}},
               {"(700000, 3)", 2, {700000, 3}},
               {"(1400000, 2)", 2, {1400000, 2}},
               {"(100, 30, 7, 50)", 4, {100, 30, 7, 50}},
               {"(7, 1500, 2, 100)", 4, {7, 1500, 2, 100}},
               {"(2, 1100000, 1)", 3, {2, 1100000, 1}},
               {"(1, 5, 1, 3)", 4, {1, 5, 1, 3}}};

    const char *path = path_of("order.npy");
    int r, i;
    for (r = 0; r < 7; r++) {
        char dictionary[100];
        int64_t n = 1, k, bad = 0;
        for (i = 0; i < row[r].ndim; i++)
            n *= row[r].dim[i];
        snprintf(dictionary, sizeof dictionary,
                 "{'descr': '|u1', 'fortran_order': True, 'shape': %s, }", row[r].shape);
        CHECK(write_npy(path, dictionary, (size_t)n));
        DVT_SCOPE {
            dvt_array *x = dvt_load_npy(path, dvt_cpu());
            const unsigned char *value = (const unsigned char *)dvt_data(x);
            /* `place` is the position in the file of element k in C order. */
            for (k = 0; value && k < n; k++) {
                int64_t rest = k, place = 0, index[4];
                for (i = row[r].ndim - 1; i >= 0; i--) {
                    index[i] = rest % row[r].dim[i];
                    rest /= row[r].dim[i];
                }
                for (i = row[r].ndim - 1; i >= 0; i--)
                    place = place * row[r].dim[i] + index[i];
                bad += value[k] != place % 251;
            }
            dvt_test_check(value && bad == 0, __FILE__, __LINE__, "%s: %lld of %lld are wrong %s",
                           row[r].shape, (long long)bad, (long long)n, dvt_error());
        }
    }
    CHECK(remove(path) == 0);
}

DVT_TEST(files_peak_memory_of_lists) {
    const char *path = path_of("peak.safetensors");
    static const char *const names[] = {"a", "b"};
    long long array = peak_of_bytes(2000000);
    dvt_array *pair[2];
    pair[0] = dvt_ones(DVT_SHAPE(500000), DVT_F32, dvt_cpu());
    pair[1] = pair[0];
    CHECK(dvt_save_arrays(path, pair, names, 2) == DVT_OK);
    CHECK_MOST(peak_of_load(load_safetensors, path), 2 * array + SMALL);
    CHECK_MOST(peak_of_load(load_arrays, path), 2 * array + SMALL);
    CHECK(remove(path) == 0);
}

DVT_TEST(files_peak_memory_of_params_and_gz) {
    const char *path = path_of("peak.params"), *gz = path_of("peak.gz");
    long long array = peak_of_bytes(2000000);
    dvt_array *pair[2];
    pair[0] = dvt_ones(DVT_SHAPE(500000), DVT_F32, dvt_cpu());
    pair[1] = pair[0];
    CHECK(dvt_save_params(path, pair, NULL, 2) == DVT_OK);
    CHECK_MOST(peak_of_load(load_params, path), 2 * array + SMALL);
    CHECK(remove(path) == 0);
    CHECK(write_gz(gz, 2000000));
    CHECK_MOST(peak_of_load(load_idx, gz), array + SMALL);
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_astype(dvt_load_idx(gz, dvt_cpu()), DVT_I64), DVT_ALL)),
                2000000, 0);
    CHECK(remove(gz) == 0);
}

DVT_TEST(files_peak_memory_of_npz_and_images) {
    const char *path = path_of("peak.npz"), *png = path_of("peak.png");
    long long array = peak_of_bytes(2000000);
    dvt_array *x = dvt_ones(DVT_SHAPE(500000), DVT_F32, dvt_cpu());
    CHECK(dvt_save_npz(path, &x, NULL, 1) == DVT_OK);
    CHECK_MOST(peak_of_load(load_npz, path), array + SMALL);
    CHECK(dvt_save_npz_compressed(path, &x, NULL, 1) == DVT_OK);
    CHECK_MOST(peak_of_load(load_npz, path), array + SMALL);
    CHECK(remove(path) == 0);
    CHECK(dvt_save_image(png, dvt_zeros(DVT_SHAPE(2000, 1000), DVT_U8, dvt_cpu())) == DVT_OK);
    CHECK_MOST(peak_of_load(load_image, png), array + SMALL + (64 << 10));
    CHECK(remove(png) == 0);
}

/* The memory sanitizer needs its own read() to know what is initialized. */
#if defined(__linux__) && !DVT_TEST_MSAN
#include <sys/syscall.h>

static size_t read_limit; /* the largest result of read(); 0: unlimited */

/* Replaces read() of the C library. */
ssize_t read(int file, void *to, size_t n) {
    return (ssize_t)syscall(SYS_read, file, to, read_limit && read_limit < n ? read_limit : n);
}

/* Reads a file a few bytes at a time, as from a pipe. Deflate reads ahead and returns bytes of an
   earlier read. */
static void by_partial_reads(const char *rule, const char *count, const char *hex) {
    size_t n, cut;
    unsigned char *bytes = golden_bytes(hex, &n);
    const char *path = path_of("pieces.gz");
    for (read_limit = 1; read_limit < 9 && n < 60; read_limit += 3)
        for (cut = n; cut + 20 > n && cut > 0; cut--) {
            dvt_array *x;
            CHECK(golden_write(path, bytes, cut));
            x = dvt_load_idx(path, dvt_cpu());
            dvt_test_check(cut < n ? x == NULL : x && dvt_size(x) == strtoll(count, NULL, 10),
                           __FILE__, __LINE__, "%s %s, cut to %lld of %lld: %s", rule, count,
                           (long long)cut, (long long)n, dvt_error());
            dvt_clear_error();
            dvt_discard_all();
        }
    read_limit = 0;
    free(bytes);
    if (n < 60)
        CHECK(remove(path) == 0);
}

DVT_TEST(files_gz_by_partial_reads) {
    CHECK(golden_lines(__FILE__, "gz_ok", by_partial_reads) >= 49);
}
#endif

/* Checks that a file is refused after its first bytes, however long it is. */
static void refused(loader load, const char *path, const char *words) {
    double sum = 0;
    long long peak;
    dvt_clear_error();
    peak = peak_of(load, path, &sum);
    dvt_test_check(sum == -1 && dvt_error_code() == DVT_ERR_FORMAT && strstr(dvt_error(), words),
                   __FILE__, __LINE__, "%s: %s (%s)", path, dvt_error(), words);
    CHECK_MOST(peak, SMALL);
    dvt_clear_error();
}

DVT_TEST(files_refused_by_their_first_bytes) {
    const char *path = path_of("large");
    CHECK(golden_write(path, "", 0));
    if (truncate(path, (off_t)2 << 30) == 0) { /* sparse: occupies no space */
        refused(load_npy, path, "not an .npy");
        refused(load_idx, path, "not an IDX");
        refused(load_params, path, "not an MXNet parameter file");
        refused(load_npz, path, "not an .npz");
        refused(load_image, path, "not a PNG");
        refused(load_safetensors, path, "not a safetensors file");
        refused(load_gguf, path, "not a GGUF file");
        refused(load_arrays, path, "not a file of arrays");
    }
    CHECK(write_npy(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (500000000,), }", 4));
    refused(load_npy, path, "but 4 bytes follow it");
    if (truncate(path, (off_t)2 << 30) == 0)
        refused(load_npy, path, "but 2147483520 bytes follow it");
    CHECK(remove(path) == 0);
    if (access("/dev/zero", R_OK) == 0) {
        refused(load_npy, "/dev/zero", "not an .npy");
        refused(load_idx, "/dev/zero", "not an IDX");
        refused(load_params, "/dev/zero", "not an MXNet parameter file");
        refused(load_npz, "/dev/zero", "not an .npz");
        refused(load_image, "/dev/zero", "not a PNG");
        refused(load_arrays, "/dev/zero", "not a file of arrays");
    }
}

/* A file that is truncated during reading gives an error, not invented content. */
DVT_TEST(files_truncated_during_reading) {
    const char *path = path_of("shrinks.npy");
    dvt_allocator counting = {count_alloc, count_resize, count_release, NULL};
    int way;
    for (way = 0; way < 3; way++) {
        CHECK(write_npy(path,
                        way == 0 ? "{'descr': '<f4', 'fortran_order': False, 'shape': (250000,), }"
                        : way == 1
                            ? "{'descr': '>f4', 'fortran_order': False, 'shape': (250000,), }"
                            : "{'descr': '<f4', 'fortran_order': True, 'shape': (500, 500), }",
                        1000000));
        dvt_set_allocator(&counting);
        cut_path = path;
        cut_at = 1000000; /* the array itself; the header was read before */
        CHECK_REFUSED(dvt_load_npy(path, dvt_cpu()), DVT_ERR_IO,
                      "became shorter while it was read");
        CHECK(cut_path == NULL);
        cut_path = NULL;
        dvt_discard_all();
        dvt_set_allocator(NULL);
    }
    CHECK(remove(path) == 0);
}

/* ---- files that are not regular ---- */
#if !defined(DEVTENSOR_NO_THREADS)
typedef struct feed {
    const char *path;
    const void *bytes;
    size_t n;
} feed;

static void *feeding(void *user) {
    const feed *what = (const feed *)user;
    FILE *file = fopen(what->path, "wb");
    if (file) {
        fwrite(what->bytes, 1, what->n, file);
        fclose(file);
    }
    return NULL;
}

static dvt_array *load_from(loader load, const char *path, const void *bytes, size_t n) {
    feed what;
    pthread_t thread;
    dvt_array *x;
    what.path = path;
    what.bytes = bytes;
    what.n = n;
    if (!CHECK(pthread_create(&thread, NULL, feeding, &what) == 0))
        return NULL;
    x = load(path);
    pthread_join(thread, NULL);
    return x;
}

DVT_TEST(files_pipes) {
    const char *path = path_of("regular"), *pipe_path = path_of("pipe"), *name = "x";
    unsigned char *bytes;
    size_t n;
    dvt_array *x;
    CHECK(mkfifo(pipe_path, 0600) == 0);
    CHECK(
        write_npy(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (200000,), }", 200000));
    bytes = golden_file(path, &n);
    x = load_from(load_npy, pipe_path, bytes, n);
    CHECK(x && memcmp(dvt_data(x), bytes + 128, 200000) == 0);
    /* The excess fits into the pipe's buffer, so the writer does not get SIGPIPE, which would end
       this process. */
    CHECK_REFUSED(load_from(load_npy, pipe_path, bytes, n - 1), DVT_ERR_FORMAT,
                  "but 199999 bytes follow it");
    bytes[n] = 1;
    CHECK_REFUSED(load_from(load_npy, pipe_path, bytes, n + 1), DVT_ERR_FORMAT,
                  "but more bytes follow it");
    CHECK_REFUSED(load_from(load_npy, pipe_path, "text", 4), DVT_ERR_FORMAT, "not an .npy");
    CHECK_REFUSED(load_from(load_npy, pipe_path, "", 0), DVT_ERR_FORMAT, "not an .npy");
    free(bytes);
    CHECK(write_npy(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000000,), }", 4));
    bytes = golden_file(path, &n);
    CHECK_REFUSED(load_from(load_npy, pipe_path, bytes, n), DVT_ERR_FORMAT, "but at most 10737");
    free(bytes);
    CHECK(write_gz(path, 100000));
    bytes = golden_file(path, &n);
    x = load_from(load_idx, pipe_path, bytes, n);
    CHECK_INT(dvt_size(x), 100000);
    free(bytes);
    x = dvt_arange(0, 1000, 1, DVT_F32, dvt_cpu());
    CHECK(dvt_save_params(path, &x, NULL, 1) == DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_CLOSE(dvt_item_at(load_from(load_params, pipe_path, bytes, n), DVT_SHAPE(999)), 999, 0);
    CHECK_REFUSED(load_from(load_params, pipe_path, bytes, n - 9), DVT_ERR_FORMAT,
                  "beyond the end");
    free(bytes);
    x = dvt_ones(DVT_SHAPE(10), DVT_F32, dvt_cpu()); /* so few bytes that one write has them all */
    CHECK(dvt_save_npz(path, &x, NULL, 1) == DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_REFUSED(load_from(load_npz, pipe_path, bytes, n), DVT_ERR_FORMAT,
                  "it is a pipe, a device or compressed");
    free(bytes);
    x = dvt_full(DVT_SHAPE(200, 300), 1, DVT_U8, dvt_cpu());
    CHECK(remove(path) == 0);
    path = path_of("image.pgm");
    CHECK(dvt_save_image(path, x) == DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_CLOSE(dvt_item_at(load_from(load_image, pipe_path, bytes, n), DVT_SHAPE(199, 299, 0)), 1,
                0);
    CHECK_REFUSED(load_from(load_image, pipe_path, bytes, n - 1), DVT_ERR_FORMAT,
                  "ends in the middle");
    bytes[n] = 0;
    CHECK_REFUSED(load_from(load_image, pipe_path, bytes, n + 1), DVT_ERR_FORMAT,
                  "something follows the image");
    free(bytes);
    x = dvt_arange(0, 1000, 1, DVT_F32, dvt_cpu());
    CHECK(dvt_save_safetensors(path, &x, &name, 1, NULL) == DVT_OK);
    bytes = golden_file(path, &n);
    CHECK_CLOSE(dvt_item_at(load_from(load_arrays, pipe_path, bytes, n), DVT_SHAPE(999)), 999, 0);
    CHECK_REFUSED(load_from(load_safetensors, pipe_path, bytes, n - 9), DVT_ERR_FORMAT,
                  "ends within tensor");
    CHECK_REFUSED(load_from(load_safetensors, pipe_path, bytes, 20), DVT_ERR_FORMAT,
                  "does not end");
    bytes[n] = 1;
    CHECK_REFUSED(load_from(load_safetensors, pipe_path, bytes, n + 1), DVT_ERR_FORMAT,
                  "more bytes follow its last tensor");
    free(bytes);
    CHECK(remove(path) == 0);
    CHECK(remove(pipe_path) == 0);
}
#endif
#endif
