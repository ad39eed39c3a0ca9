/* Event files of TensorBoard: scalars, histograms, images, texts.

   A file is a sequence of records. Each has a protocol buffer with one Event:

       | length, 8 bytes | CRC of the length | Event | CRC of the Event |

   CRCs are CRC-32C, rotated by 15 bits plus a constant. Every record is written at once, so a
   reader never waits for a buffer. Readers stop at a record that is cut off, so one that could not
   be written, on a full disk, is removed. Source: tensorflow/core, lib/io/record_writer.h,
   util/event.proto, framework/summary.proto and tensor.proto. */
#include "5_io/dvt_formats.h"

/* The numbers of the fields that are written. */
enum {
    DVTI_BOARD_EVENT_TIME = 1,
    DVTI_BOARD_EVENT_STEP = 2,
    DVTI_BOARD_EVENT_VERSION = 3,
    DVTI_BOARD_EVENT_SUMMARY = 5,
    DVTI_BOARD_SUMMARY_VALUE = 1,
    DVTI_BOARD_VALUE_TAG = 1,
    DVTI_BOARD_VALUE_NUMBER = 2,
    DVTI_BOARD_VALUE_IMAGE = 4,
    DVTI_BOARD_VALUE_HISTOGRAM = 5,
    DVTI_BOARD_VALUE_TENSOR = 8,
    DVTI_BOARD_VALUE_METADATA = 9
};

struct dvt_board {
    dvti_object object;
    char *path;
    int fd;
    int64_t bytes; /* of complete records */
    double began;  /* dvti_now() at `time` */
    double time;   /* seconds since 1970 */
    dvti_crc crc;
};

/* ---- protocol buffers ---- */
static void dvti_proto_number(dvti_writer *out, uint64_t value) {
    for (; value >= 128; value >>= 7)
        dvti_writer_le(out, (value & 127) | 128, 1);
    dvti_writer_le(out, value, 1);
}

static void dvti_proto_int(dvti_writer *out, int field, int64_t value) {
    dvti_proto_number(out, (uint64_t)field << 3);
    dvti_proto_number(out, (uint64_t)value);
}

static void dvti_proto_double(dvti_writer *out, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    dvti_proto_number(out, (uint64_t)field << 3 | 1);
    dvti_writer_le(out, bits, 8);
}

static void dvti_proto_float(dvti_writer *out, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    dvti_proto_number(out, (uint64_t)field << 3 | 5);
    dvti_writer_le(out, bits, 4);
}

static void dvti_proto_bytes(dvti_writer *out, int field, const void *bytes, size_t n) {
    dvti_proto_number(out, (uint64_t)field << 3 | 2);
    dvti_proto_number(out, n);
    dvti_writer_bytes(out, bytes, n);
}

/* Adds `part` as a message or list, and frees it. */
static void dvti_proto_part(dvti_writer *out, int field, dvti_writer *part) {
    dvti_proto_bytes(out, field, part->at, part->length);
    out->failed = out->failed || part->failed;
    dvti_writer_free(part);
}

/* ---- records ---- */
static void dvti_board_crc(const dvt_board *board, dvti_writer *out, const void *bytes, size_t n) {
    uint32_t crc = dvti_crc_more(&board->crc, 0, bytes, n);
    dvti_writer_le(out, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), 4);
}

/* Writes an Event in one record, and frees it. */
static dvt_status dvti_board_write(const char *function, dvt_board *board, dvti_writer *event) {
    dvti_writer record = dvti_writer_begin();
    dvt_status status = DVT_OK;
    dvti_writer_le(&record, event->length, 8);
    if (!record.failed)
        dvti_board_crc(board, &record, record.at, 8);
    dvti_writer_bytes(&record, event->at, event->length);
    dvti_board_crc(board, &record, event->at, event->length);
    errno = 0;
    if (event->failed || record.failed)
        status = dvti_fail_memory(function, (int64_t)event->length * 2);
    else if (dvti_live_write(board->fd, record.at, record.length))
        board->bytes += (int64_t)record.length;
    else {
        status = dvti_live_failed(function, board->path, errno);
        (void)dvti_live_cut(board->fd, board->bytes);
    }
    dvti_writer_free(&record);
    dvti_writer_free(event);
    return status;
}

static dvti_writer dvti_board_event(const dvt_board *board) {
    dvti_writer event = dvti_writer_begin();
    dvti_proto_double(&event, DVTI_BOARD_EVENT_TIME, board->time + (dvti_now() - board->began));
    return event;
}

/* Begins a value of a summary. */
static dvti_writer dvti_board_value(const char *tag) {
    dvti_writer value = dvti_writer_begin();
    dvti_proto_bytes(&value, DVTI_BOARD_VALUE_TAG, tag, strlen(tag));
    return value;
}

/* Writes an Event whose summary has that value, and frees the value. */
static dvt_status dvti_board_add(const char *function, dvt_board *board, int64_t step,
                                 dvti_writer *value) {
    dvti_writer event = dvti_board_event(board), summary = dvti_writer_begin();
    dvti_proto_int(&event, DVTI_BOARD_EVENT_STEP, step);
    dvti_proto_part(&summary, DVTI_BOARD_SUMMARY_VALUE, value);
    dvti_proto_part(&event, DVTI_BOARD_EVENT_SUMMARY, &summary);
    return dvti_board_write(function, board, &event);
}

/* ---- the board ---- */
static void dvti_board_destroy(void *object) {
    dvt_board *board = (dvt_board *)object;
    if (board->fd >= 0)
        (void)dvti_live_close(board->fd);
    dvti_free(board->path);
    dvti_free(board);
}

static bool dvti_board_open(const char *function, dvt_board *board, const char *folder) {
    static dvti_atomic serial;
    dvti_writer event;
    size_t size = strlen(folder) + 100;
    board->path = (char *)dvti_alloc(size);
    if (!board->path) {
        dvti_fail_memory(function, (int64_t)size);
        return false;
    }
#if !defined(DEVTENSOR_NO_FILES)
    errno = 0;
    if (!dvti_directories_make(folder)) {
        dvti_live_failed(function, folder, errno);
        return false;
    }
#endif
    snprintf(board->path, size, "%s/events.out.tfevents.%010lld.devtensor.%lld.%lld", folder,
             (long long)time(NULL), (long long)dvti_process_id(),
             (long long)dvti_atomic_add(&serial, 1) - 1);
    board->fd = dvti_live_open(function, board->path);
    if (board->fd < 0)
        return false;
    board->time = (double)time(NULL);
    board->began = dvti_now();
    dvti_crc_build_of(&board->crc, 0x82f63b78u);
    event = dvti_board_event(board);
    dvti_proto_bytes(&event, DVTI_BOARD_EVENT_VERSION, "brain.Event:2", 13);
    return dvti_board_write(function, board, &event) == DVT_OK;
}

DVT_API dvt_board *dvt_board_new(const char *folder) {
    static const char *const function = "dvt_board_new";
    dvt_board *board;
    if (!folder) {
        dvti_null(function, "folder");
        return NULL;
    }
    board = (dvt_board *)dvti_alloc_zero(sizeof *board);
    if (!board) {
        dvti_fail_memory(function, (int64_t)sizeof *board);
        return NULL;
    }
    board->fd = -1;
    if (dvti_board_open(function, board, folder) &&
        dvti_object_begin(board, dvti_board_destroy, function))
        return board;
    dvti_board_destroy(board);
    return NULL;
}

static dvt_status dvti_board_check(const char *function, const dvt_board *board, const char *tag) {
    if (!board || !tag)
        return dvti_null(function, board ? "tag" : "board");
    return dvti_utf8_check(function, tag) ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_board_scalar(dvt_board *board, const char *tag, double value, int64_t step) {
    static const char *const function = "dvt_board_scalar";
    dvti_writer out;
    dvt_status status = dvti_board_check(function, board, tag);
    if (status != DVT_OK)
        return status;
    out = dvti_board_value(tag);
    dvti_proto_float(&out, DVTI_BOARD_VALUE_NUMBER, (float)value);
    return dvti_board_add(function, board, step, &out);
}

DVT_API dvt_status dvt_board_text(dvt_board *board, const char *tag, const char *text,
                                  int64_t step) {
    static const char *const function = "dvt_board_text";
    dvti_writer out, plugin, metadata, extent, shape, tensor;
    dvt_status status = dvti_board_check(function, board, tag);
    if (status != DVT_OK || !text)
        return status != DVT_OK ? status : dvti_null(function, "text");
    if (!dvti_utf8_check(function, text))
        return dvti_failure();
    out = dvti_board_value(tag);
    plugin = dvti_writer_begin(); /* SummaryMetadata.PluginData */
    metadata = dvti_writer_begin();
    dvti_proto_bytes(&plugin, 1, "text", 4);
    dvti_proto_part(&metadata, 1, &plugin);
    dvti_proto_part(&out, DVTI_BOARD_VALUE_METADATA, &metadata);
    extent = dvti_writer_begin(); /* a TensorProto of one string, shape (1,) */
    shape = dvti_writer_begin();
    tensor = dvti_writer_begin();
    dvti_proto_int(&extent, 1, 1);
    dvti_proto_part(&shape, 2, &extent);
    dvti_proto_int(&tensor, 1, 7); /* DT_STRING */
    dvti_proto_part(&tensor, 2, &shape);
    dvti_proto_bytes(&tensor, 8, text, strlen(text));
    dvti_proto_part(&out, DVTI_BOARD_VALUE_TENSOR, &tensor);
    return dvti_board_add(function, board, step, &out);
}

DVT_API dvt_status dvt_board_image(dvt_board *board, const char *tag, dvt_array *x, int64_t step) {
    static const char *const function = "dvt_board_image";
    dvti_writer out, message, png;
    dvti_image image;
    dvt_scope_guard scope;
    dvt_status status = dvti_board_check(function, board, tag);
    if (status != DVT_OK || !x)
        return status != DVT_OK ? status : dvti_null(function, "x");
    scope = dvt_scope_begin();
    png = dvti_writer_begin();
    status = dvti_image_encode(function, x, &png, &image);
    if (status == DVT_OK) {
        out = dvti_board_value(tag);
        message = dvti_writer_begin();
        dvti_proto_int(&message, 1, image.height);
        dvti_proto_int(&message, 2, image.width);
        dvti_proto_int(&message, 3, image.channels); /* of the color space: gray 1 to RGBA 4 */
        dvti_proto_bytes(&message, 4, png.at, png.length);
        dvti_proto_part(&out, DVTI_BOARD_VALUE_IMAGE, &message);
        status = dvti_board_add(function, board, step, &out);
    }
    dvti_writer_free(&png);
    dvt_scope_end(&scope);
    return status;
}

/* A bucket has a limit, its upper edge; the first one begins at the smallest value. */
DVT_API dvt_status dvt_board_histogram(dvt_board *board, const char *tag, dvt_array *x,
                                       int64_t step) {
    static const char *const function = "dvt_board_histogram";
    dvti_writer out, message, limits, counts;
    dvt_histogram h;
    uint64_t bits;
    double number;
    int i;
    dvt_status status = dvti_board_check(function, board, tag);
    if (status == DVT_OK)
        status = x ? dvt_histogram_of(x, DVT_HISTOGRAM_BINS, &h) : dvti_null(function, "x");
    if (status != DVT_OK)
        return status;
    out = dvti_board_value(tag);
    message = dvti_writer_begin();
    limits = dvti_writer_begin();
    counts = dvti_writer_begin();
    dvti_proto_double(&message, 1, h.low);
    dvti_proto_double(&message, 2, h.high);
    dvti_proto_double(&message, 3, (double)h.count);
    dvti_proto_double(&message, 4, h.sum);
    dvti_proto_double(&message, 5, h.sum_squares);
    for (i = 0; i < h.bins; i++) {
        memcpy(&bits, &h.edge[i + 1], 8);
        dvti_writer_le(&limits, bits, 8);
        number = (double)h.bin[i];
        memcpy(&bits, &number, 8);
        dvti_writer_le(&counts, bits, 8);
    }
    dvti_proto_part(&message, 6, &limits);
    dvti_proto_part(&message, 7, &counts);
    dvti_proto_part(&out, DVTI_BOARD_VALUE_HISTOGRAM, &message);
    return dvti_board_add(function, board, step, &out);
}
