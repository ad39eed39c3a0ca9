/* Tests of event files, with a reader of their records and protocol buffers. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_FILES) && !defined(DEVTENSOR_NO_FORMATS)
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the reader ---- */
/* CRC-32C bit by bit, masked. */
static uint32_t board_crc(const unsigned char *at, size_t n) {
    uint32_t crc = 0xffffffffu;
    int k;
    for (; n; n--)
        for (crc ^= *at++, k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t board_le(const unsigned char *at, int n) {
    uint64_t value = 0;
    while (n--)
        value = value << 8 | at[n];
    return value;
}

typedef struct bytes {
    const unsigned char *at;
    size_t n;
} bytes;

static bytes bytes_of(const unsigned char *at, size_t n) {
    bytes part;
    part.at = at;
    part.n = n;
    return part;
}

static uint64_t board_varint(bytes *in) {
    uint64_t value = 0;
    int shift = 0;
    while (in->n) {
        unsigned char c = *in->at++;
        in->n--;
        value |= (uint64_t)(c & 127) << shift;
        shift += 7;
        if (c < 128)
            break;
    }
    return value;
}

/* Returns the content of a field: the bytes of a number, a text or a message; n is 0 and `at` NULL
   when it is missing. *number is the value of an integer. */
static bytes board_field(bytes in, unsigned field, uint64_t *number) {
    bytes none = {NULL, 0};
    while (in.n) {
        uint64_t key = board_varint(&in), value = 0;
        size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;
        const unsigned char *at = in.at;
        if ((key & 7) == 0)
            value = board_varint(&in);
        else if ((key & 7) == 2) {
            size = (size_t)board_varint(&in);
            at = in.at;
        }
        if (size > in.n)
            return none;
        in.at += size;
        in.n -= size;
        if (key >> 3 == field) {
            if (number)
                *number = value;
            return bytes_of(at, (key & 7) == 0 ? (size_t)(in.at - at) : size);
        }
    }
    return none;
}

static double board_double(bytes part, int i) {
    uint64_t bits = part.n >= 8 * (size_t)(i + 1) ? board_le(part.at + 8 * i, 8) : 0;
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static int board_is(bytes part, const char *text) {
    return part.at && part.n == strlen(text) && memcmp(part.at, text, part.n) == 0;
}

typedef struct board_file {
    char folder[512], path[1024];
    unsigned char *data;
    size_t n;
    bytes event[16];
    int events;
} board_file;

static void board_folder(board_file *f) {
    const char *folder = getenv("TMPDIR");
    memset(f, 0, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "%s/devtensor-%ld-board/run",
             folder && folder[0] ? folder : "/tmp", (long)getpid());
}

/* Finds the only file of the folder, and splits it into records, whose sums it checks. */
static void board_read(board_file *f) {
    DIR *directory = opendir(f->folder);
    struct dirent *entry;
    FILE *file;
    size_t at;
    while (directory && (entry = readdir(directory)) != NULL)
        if (strstr(entry->d_name, "tfevents"))
            snprintf(f->path, sizeof f->path, "%s/%s", f->folder, entry->d_name);
    if (directory)
        closedir(directory);
    file = fopen(f->path, "rb");
    CHECK(file != NULL);
    f->data = (unsigned char *)malloc(1 << 20);
    f->n = file ? fread(f->data, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    for (at = 0; at + 16 <= f->n && f->events < 16;) {
        size_t n = (size_t)board_le(f->data + at, 8);
        CHECK(board_le(f->data + at + 8, 4) == board_crc(f->data + at, 8));
        CHECK(n <= f->n - at - 16);
        if (n > f->n - at - 16)
            break;
        f->event[f->events++] = bytes_of(f->data + at + 12, n);
        CHECK(board_le(f->data + at + 12 + n, 4) == board_crc(f->data + at + 12, n));
        at += n + 16;
    }
    CHECK(at == f->n);
}

static void board_remove(board_file *f) {
    char *slash;
    remove(f->path);
    rmdir(f->folder);
    slash = strrchr(f->folder, '/');
    *slash = 0;
    rmdir(f->folder);
    free(f->data);
}

/* Returns the value of event i, whose step and tag it checks. */
static bytes board_value(const board_file *f, int i, const char *tag, int64_t step) {
    uint64_t number = 0;
    bytes value = board_field(board_field(f->event[i], 5, NULL), 1, NULL);
    board_field(f->event[i], 2, &number);
    CHECK_INT((int64_t)number, step);
    CHECK(board_is(board_field(value, 1, NULL), tag));
    return value;
}

/* ---- the tests ---- */
DVT_TEST(board_checksum) { /* the check value of CRC-32C: 0xe3069283 */
    uint32_t crc = 0xe3069283u;
    CHECK(board_crc((const unsigned char *)"123456789", 9) ==
          ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

DVT_TEST(board_events) {
    board_file f;
    dvt_board *board;
    dvt_array *x = dvt_arange(0, 64, 1, DVT_F32, dvt_cpu()), *image, *back;
    bytes value, part, tensor;
    uint64_t number = 0;
    float scalar;
    int i;
    board_folder(&f);
    DVT_SCOPE {
        board = dvt_board_new(f.folder);
        CHECK(board != NULL);
        CHECK_INT(dvt_board_scalar(board, "train/loss", 0.25, 3), DVT_OK);
        CHECK_INT(dvt_board_scalar(board, "train/loss", (double)NAN, -1), DVT_OK);
        CHECK_INT(dvt_board_histogram(board, "weights", x, 300), DVT_OK);
        image = dvt_reshape(dvt_arange(0, 60, 1, DVT_U8, dvt_cpu()), DVT_SHAPE(4, 5, 3));
        CHECK_INT(dvt_board_image(board, "first", image, 1), DVT_OK);
        CHECK_INT(dvt_board_text(board, "note", "# A\n\ntext", (int64_t)1 << 40), DVT_OK);
        board_read(&f); /* while the board is open */
    }
    CHECK_INT(f.events, 6);
    part = board_field(f.event[0], 1, NULL);
    CHECK(fabs(board_double(part, 0) - (double)time(NULL)) < 60);
    CHECK(board_is(board_field(f.event[0], 3, NULL), "brain.Event:2"));
    value = board_value(&f, 1, "train/loss", 3);
    part = board_field(value, 2, NULL);
    CHECK_INT(part.n, 4);
    number = part.at ? board_le(part.at, 4) : 0;
    memcpy(&scalar, &number, 4);  /* of a little-endian machine */
    CHECK(number == 0x3e800000u); /* 0.25f */
    value = board_value(&f, 2, "train/loss", -1);
    CHECK((board_le(board_field(value, 2, NULL).at, 4) & 0x7fc00000u) == 0x7fc00000u);
    value = board_field(board_value(&f, 3, "weights", 300), 5, NULL);
    CHECK(board_double(board_field(value, 1, NULL), 0) == 0);
    CHECK(board_double(board_field(value, 2, NULL), 0) == 63);
    CHECK(board_double(board_field(value, 3, NULL), 0) == 64);
    CHECK(board_double(board_field(value, 4, NULL), 0) == 2016);
    CHECK(board_double(board_field(value, 5, NULL), 0) == 85344);
    CHECK_INT(board_field(value, 6, NULL).n, 8 * 64);
    CHECK_INT(board_field(value, 7, NULL).n, 8 * 64);
    CHECK(board_double(board_field(value, 6, NULL), 63) == 63);
    for (i = 0; i < 64; i++)
        CHECK(board_double(board_field(value, 7, NULL), i) == 1);
    value = board_field(board_value(&f, 4, "first", 1), 4, NULL);
    board_field(value, 1, &number);
    CHECK_INT(number, 4);
    board_field(value, 2, &number);
    CHECK_INT(number, 5);
    board_field(value, 3, &number);
    CHECK_INT(number, 3);
    part = board_field(value, 4, NULL);
    back = dvt_read_image(part.at, part.n, dvt_cpu());
    x = dvt_reshape(dvt_arange(0, 60, 1, DVT_U8, dvt_cpu()), DVT_SHAPE(4, 5, 3));
    CHECK(back && dvt_array_equal(back, x, DVT_NAN_DIFFERS));
    value = board_value(&f, 5, "note", (int64_t)1 << 40);
    part = board_field(board_field(value, 9, NULL), 1, NULL);
    CHECK(board_is(board_field(part, 1, NULL), "text"));
    tensor = board_field(value, 8, NULL);
    board_field(tensor, 1, &number);
    CHECK_INT(number, 7);
    board_field(board_field(board_field(tensor, 2, NULL), 2, NULL), 1, &number);
    CHECK_INT(number, 1);
    CHECK(board_is(board_field(tensor, 8, NULL), "# A\n\ntext"));
    board_remove(&f);
}

/* Limits the size of files, as a full disk does; 0: no limit. */
static void board_limit(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The part of an event that was written is removed. So readers find the events after it. */
DVT_TEST(board_on_a_full_disk) {
    board_file f;
    dvt_board *board;
    dvt_array *x = dvt_ones(DVT_SHAPE(64), DVT_F32, dvt_cpu());
    int i;
    board_folder(&f);
    DVT_SCOPE {
        board = dvt_board_new(f.folder);
        CHECK_INT(dvt_board_scalar(board, "before", 1, 1), DVT_OK);
        board_limit(300);
        for (i = 0; i < 2; i++)
            CHECK_ERROR(dvt_board_histogram(board, "weights", x, 2), DVT_ERR_IO);
        board_limit(0);
        CHECK_INT(dvt_board_scalar(board, "after", 1, 3), DVT_OK);
    }
    board_read(&f);
    CHECK_INT(f.events, 3);
    board_value(&f, 1, "before", 1);
    board_value(&f, 2, "after", 3);
    board_remove(&f);
}

DVT_TEST(board_errors) {
    board_file f;
    dvt_board *board;
    dvt_array *x = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    board_folder(&f);
    DVT_SCOPE {
        board = dvt_board_new(f.folder);
        CHECK_ERROR(dvt_board_scalar(NULL, "a", 1, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_board_scalar(board, NULL, 1, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_board_text(board, "a", NULL, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_board_histogram(board, "a", NULL, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_board_image(board, "a", NULL, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_board_image(board, "a", x, 1), DVT_ERR_SHAPE);
        /* protocol buffers have texts in UTF-8; TensorBoard cannot read others */
        CHECK_ERROR(dvt_board_scalar(board, "caf\xe9", 1, 1), DVT_ERR_NAME);
        CHECK_ERROR(dvt_board_text(board, "caf\xe9", "text", 1), DVT_ERR_NAME);
        CHECK_ERROR(dvt_board_text(board, "a", "caf\xe9", 1), DVT_ERR_NAME);
        CHECK_ERROR(dvt_board_histogram(board, "caf\xe9", x, 1), DVT_ERR_NAME);
        CHECK_ERROR(dvt_board_image(board, "caf\xe9", x, 1), DVT_ERR_NAME);
        CHECK_ERROR(dvt_board_image(board, "a", dvt_ones(DVT_SHAPE(2, 2), DVT_I8, dvt_cpu()), 1),
                    DVT_ERR_DTYPE);
    }
    board_read(&f);
    CHECK_INT(f.events, 1); /* nothing but the version */
    board_remove(&f);
    CHECK_ERROR(dvt_board_new(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_board_new("/dev/null/folder"), DVT_ERR_IO);
}
#else
DVT_TEST(board_that_is_not_built) {
    CHECK_ERROR(dvt_board_new("folder"), DVT_ERR_NOT_BUILT);
}
#endif
