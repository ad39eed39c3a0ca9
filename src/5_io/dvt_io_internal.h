/* Shared by printing, the readers and the writers: byte buffers, the text of one float, and lists
   of named arrays. Also files replaced when complete, buffered sources of bytes, compression,
   archives, images, JSON, and elements as stored. No source holds a whole file in memory. */
#ifndef DVTI_IO_H
#define DVTI_IO_H
#include "4_ops/dvt_op.h"

/* ---- growing byte buffer; out of memory sets `failed`, and later writes are dropped ---- */
typedef struct dvti_writer {
    char *at;
    size_t length, capacity;
    bool failed;
} dvti_writer;

DVTI_FN dvti_writer dvti_writer_begin(void);
DVTI_FN void dvti_writer_free(dvti_writer *writer);
DVTI_FN void dvti_writer_bytes(dvti_writer *writer, const void *bytes, size_t n);
DVTI_FN void dvti_writer_text(dvti_writer *writer, const char *text);
DVTI_FN void dvti_writer_repeat(dvti_writer *writer, char c, int64_t times);
DVTI_FN void dvti_writer_int(dvti_writer *writer, int64_t value);
/* Appends an unsigned little-endian integer of `bytes` bytes. */
DVTI_FN void dvti_writer_le(dvti_writer *writer, uint64_t value, int bytes);

/* ---- big integers, not negative; the caller keeps them below 2^(32 * DVTI_BIG_WORDS) ---- */
/* Reading a decimal number needs 10^1131, printing a float 2^1077 * 10. */
#define DVTI_BIG_WORDS 120

typedef struct dvti_big {
    int n;
    uint32_t word[DVTI_BIG_WORDS]; /* low words first; words at n and above are unused */
} dvti_big;

DVTI_FN void dvti_big_set(dvti_big *x, uint64_t value);
/* Copies only the words in use. */
DVTI_FN void dvti_big_copy(dvti_big *to, const dvti_big *from);
/* Returns the number of bits; 0 for 0. */
DVTI_FN int dvti_big_bits(const dvti_big *x);
DVTI_FN void dvti_big_shift(dvti_big *x, int bits);
DVTI_FN void dvti_big_times(dvti_big *x, uint32_t factor);
DVTI_FN void dvti_big_times_power_of_10(dvti_big *x, int power);
/* Returns -1, 0 or 1. */
DVTI_FN int dvti_big_compare(const dvti_big *a, const dvti_big *b);
DVTI_FN void dvti_big_add(dvti_big *x, const dvti_big *y);
/* Requires x >= y. */
DVTI_FN void dvti_big_subtract(dvti_big *x, const dvti_big *y);

/* ---- decimal text of one float: shortest digits that round-trip in its dtype, or exact ---- */
typedef enum dvti_float_kind { DVTI_FINITE, DVTI_INFINITE, DVTI_NAN } dvti_float_kind;

/* The value is mantissa * 2^exponent. */
typedef struct dvti_float {
    dvti_float_kind kind;
    bool negative;
    bool asymmetric; /* the next smaller float is half as far away as the next larger one */
    uint64_t mantissa;
    int exponent;
} dvti_float;

typedef struct dvti_float_layout {
    int fraction_bits, exponent_bits;
} dvti_float_layout;

DVTI_FN dvti_float_layout dvti_float_layout_of(dvt_dtype dtype);
DVTI_FN dvti_float dvti_float_read(dvt_dtype dtype, const void *at);

typedef enum dvti_trim {
    DVTI_TRIM_KEEP,  /* zeros are kept, and added up to at_least */
    DVTI_TRIM_POINT, /* "1." */
    DVTI_TRIM_ZERO,  /* "1.0" */
    DVTI_TRIM_ALL    /* "1" */
} dvti_trim;

/* Number of fraction digits: at most and at least (-1: no bound). Blanks pad the integer part on
   the left and the fraction on the right, up to the given widths. */
typedef struct dvti_number_format {
    bool scientific, exact;
    dvti_trim trim;
    int at_most, at_least;
    int pad_left, pad_right;
    int exponent_digits;
} dvti_number_format;

#define DVTI_MAX_PRECISION 500
#define DVTI_NUMBER_SIZE 2048
/* Writes a finite number, terminated by 0. Returns its length. Independent of the locale. */
DVTI_FN int dvti_number_text(char *buffer, const dvti_float *x, const dvti_number_format *format);

/* ---- numbers from decimal text ---- */
typedef enum dvti_parsed {
    DVTI_PARSED,
    DVTI_PARSED_TEXT,   /* the text is not a number */
    DVTI_PARSED_OUTSIDE /* the number is no value of the integer dtype */
} dvti_parsed;

/* Reads the whole text as a number and stores it as element i at `to`: rounded once, ties to even,
   for floats; exact for integers. Signs, a point, an exponent, nan, inf and infinity are allowed,
   blanks are not. Independent of the locale and of the rounding mode. */
DVTI_FN dvti_parsed dvti_number_parse(const char *text, size_t n, char point, dvt_dtype dtype,
                                      void *to, int64_t i);

/* ---- the elements of one array as text ---- */
typedef struct dvti_element_format {
    dvt_dtype dtype;
    bool torch_like, scalar, integral; /* integral: PyTorch's format for floats without fraction */
    int width;                         /* of integers and bools; of all dtypes in PyTorch's style */
    dvti_number_format number;
} dvti_element_format;

typedef struct dvti_print_rules {
    dvt_print_style style;
    int precision; /* -1: unset */
    int64_t threshold, edge_items, line_width;
    bool suppress;
} dvti_print_rules;

/* Chooses one format for all n elements, as NumPy or PyTorch do. ndim 0: the single element of an
   array without axes. */
DVTI_FN dvti_element_format dvti_element_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                              const void *elements, int64_t n, int ndim);
/* Writes one element, terminated by 0. Returns its length. */
DVTI_FN int dvti_element_text(char *buffer, const dvti_element_format *format, const void *element);

/* ---- writing files ---- */
/* A file that appears under its name only when it is complete and on the disk. Devices and pipes
   are written in place. */
typedef struct dvti_file_out {
    const char *function;
    char *path;      /* as given, for messages */
    char *target;    /* the path after links: the file to replace */
    char *temporary; /* in the directory of target; NULL when written in place */
    unsigned char *buffer;
    size_t n; /* bytes in the buffer */
    int fd;
    bool failed;
} dvti_file_out;

/* Opens the file. Returns false with the error set; nothing needs to be closed then. */
DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path);
/* Does nothing after a failure. */
DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n);
/* Closes the file. Renames the temporary file if all writes succeeded and `ok`; otherwise removes
   it. */
DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok);

/* ---- checksums ---- */
/* The tables of CRC-32, for eight bytes at a time. */
typedef struct dvti_crc {
    uint32_t table[8][256];
} dvti_crc;

DVTI_FN void dvti_crc_build(dvti_crc *crc);
/* Extends the CRC-32 `value` (0: of no bytes) by n bytes. */
DVTI_FN uint32_t dvti_crc_more(const dvti_crc *crc, uint32_t value, const void *bytes, size_t n);
/* Extends the Adler-32 `value` (1: of no bytes) by n bytes. */
DVTI_FN uint32_t dvti_adler_more(uint32_t value, const void *bytes, size_t n);

/* ---- sources of untrusted bytes: memory, a file, a part or the compressed content of one ---- */
/* The largest peek. A source keeps this much in memory, and the state of decompression. */
#define DVTI_SOURCE_PEEK 65536
/* The most bytes that are read from pipes, devices and sockets, whose size is unknown. */
#define DVTI_SOURCE_MOST ((int64_t)1 << 30)

typedef struct dvti_unpack dvti_unpack;
typedef struct dvti_source dvti_source;
/* Reads up to n bytes and subtracts them from in->remaining. Returns 0 at the end, or when reading
   failed; then in->reported is set. */
typedef size_t (*dvti_source_pull)(dvti_source *in, void *to, size_t n);

/* The bytes of a source, in the order of the file:

   | taken: read by the caller | ready: in memory, at `at` | remaining: not read yet |  */
struct dvti_source {
    const char *function, *what; /* for messages; what: the file */
    const char *path;            /* NULL: not a file */
    const unsigned char *at;     /* the next bytes, `ready` of them */
    size_t ready;
    int64_t taken;         /* bytes read so far */
    int64_t remaining;     /* bytes after the ready ones; an upper bound if !known */
    bool known;            /* `remaining` is exact */
    bool ended;            /* a read passed the end; that read and later ones give 0 */
    bool reported;         /* reading failed, and the error is set */
    bool seekable;         /* memory or a regular file: dvti_source_seek works */
    int fd;                /* -1: not a file, or a mapped one */
    dvti_mapping *mapping; /* the file's memory, which arrays may use; NULL: none */
    unsigned char *buffer;
    dvti_source_pull pull; /* fills the buffer; NULL: memory, or compressed */
    void *user;            /* for pull */
    dvti_unpack *unpack;
};

DVTI_FN void dvti_source_memory(dvti_source *in, const char *function, const void *bytes,
                                size_t size);
/* Opens a file. Returns false with IO, NULL_ARGUMENT, HOST_MEMORY or NOT_BUILT set.
   dvti_source_close may be called in either case. */
DVTI_FN bool dvti_source_open(dvti_source *in, const char *function, const char *path);
/* Opens a file as dvti_source_open does, and maps it if the system can. Then dvti_stored_array makes
   arrays on the mapping. */
DVTI_FN bool dvti_source_map(dvti_source *in, const char *function, const char *path);
/* Begins a source of the next n bytes of a mapped one, which moves past them. */
DVTI_FN void dvti_source_window(dvti_source *in, dvti_source *whole, int64_t n);
/* Begins a source of `bytes` bytes (an upper bound if !known) that `pull` reads, typically from
   `whole`, whose function and name it gets. Returns false with HOST_MEMORY set. */
DVTI_FN bool dvti_source_part(dvti_source *in, const dvti_source *whole, dvti_source_pull pull,
                              void *user, int64_t bytes, bool known);
DVTI_FN void dvti_source_close(dvti_source *in);
/* Makes n bytes ready, at most DVTI_SOURCE_PEEK, or all that remain. Returns whether n are ready. 8
   bytes before `at` that were read stay readable. */
DVTI_FN bool dvti_source_peek(dvti_source *in, size_t n);
/* Reads n bytes, or returns false. */
DVTI_FN bool dvti_source_read(dvti_source *in, void *to, int64_t n);
DVTI_FN bool dvti_source_skip(dvti_source *in, int64_t n);
/* Continues at byte `at` of memory or of a regular file. Returns false with FORMAT set for other
   sources, and without an error for a position after the end. */
DVTI_FN bool dvti_source_seek(dvti_source *in, int64_t at);
/* Reads an unsigned integer of `bytes` bytes. */
DVTI_FN uint64_t dvti_source_le(dvti_source *in, int bytes);
DVTI_FN uint64_t dvti_source_be(dvti_source *in, int bytes);
/* Reads n bytes of padding, which are 0; else the error is set. */
DVTI_FN bool dvti_source_zeros(dvti_source *in, int64_t n);
/* Reads a length of 8 bytes and a text of that length, which the caller frees. Returns NULL with
   HOST_MEMORY set, or with *wrong set: "goes beyond the end of the file" or "contains a zero
   byte". */
DVTI_FN char *dvti_source_text(dvti_source *in, const char **wrong);
/* Returns an upper bound of the remaining bytes. Allocations for content never exceed it. */
DVTI_FN int64_t dvti_source_left(const dvti_source *in);
/* Returns whether everything was read without failure. */
DVTI_FN bool dvti_source_at_end(dvti_source *in);
/* Returns the number of bytes after the first `taken`, where `need` were expected, as text: "12".
   If only a bound is known, the text is "more" or "at most 12". */
DVTI_FN const char *dvti_source_size_text(dvti_source *in, int64_t taken, int64_t need);
/* Sets FORMAT with the name of the file and the message. Reports only the first failure of a
   source. Returns false. */
DVTI_FN bool dvti_source_wrong(dvti_source *in, const char *format, ...) DVT_PRINTF(2, 3);
/* Converts to a signed number in two's complement. */
DVTI_FN int64_t dvti_signed(uint64_t value, int bytes);
DVTI_FN uint64_t dvti_bytes_value(const unsigned char *at, int bytes, bool big_endian);

/* ---- elements as files store them ---- */
/* How a file stores a number: kind, size, byte order. `dtype` holds all its values, or those that
   fit. */
typedef struct dvti_stored {
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int bytes;
    bool big_endian;
    dvt_dtype dtype;
} dvti_stored;

/* Computes the stored bytes of the shape. Returns false when no file can hold them. */
DVTI_FN bool dvti_stored_bytes(const dvti_stored *stored, const dvt_shape *shape, int64_t *bytes);
/* Returns whether the bytes of the file are those of the array. */
DVTI_FN bool dvti_stored_as_is(const dvti_stored *stored);
/* Returns an array on ctx with the next elements of `in`, stored in C or Fortran order of the
   shape. It is on the file's mapping where that is possible. Besides the array, and a host copy if ctx is not a CPU, it needs only two small buffers.
   Returns NULL with the error set, or without an error when elements are missing, which the caller
   reports. */
DVTI_FN dvt_array *dvti_stored_array(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx);
/* Returns an array on ctx whose elements `fill` writes to an array in host memory. NULL when that
   returns false, or with the error set. */
DVTI_FN dvt_array *dvti_stored_filled(const char *function, dvt_shape shape, dvt_dtype dtype,
                                      dvt_ctx ctx, bool (*fill)(void *user, dvt_array *host),
                                      void *user);
/* Returns a copy of an array in host memory on ctx, or itself if ctx is a CPU. `function` is for
   messages. NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_to_ctx(const char *function, dvt_array *host, dvt_ctx ctx);
/* Returns whether dvti_stored_mapped can make the array of the next elements: they are as in
   memory, aligned, complete, and of a mapped file. */
DVTI_FN bool dvti_stored_maps(const dvti_stored *stored, const dvti_source *in, dvt_shape shape);
/* Returns an array on the mapping, or a copy of it on a ctx that is no CPU. NULL with the error
   set. */
DVTI_FN dvt_array *dvti_stored_mapped(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                      bool fortran_order, dvt_ctx ctx);
/* Does dvti_stored_array for content that must end with the elements. Compares sizes before it
   allocates. Sets *fits to false, without an error, when the number of bytes differs. */
DVTI_FN dvt_array *dvti_stored_whole(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx, bool *fits);
/* Returns x's elements as files store them: contiguous, little-endian, of `dtype`, in host memory.
   That is x itself if it already matches. Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype);

/* Returns x's elements of `dtype`, contiguous in host memory: x itself if it already matches and
   `copy` is false. Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_host_array(const char *function, dvt_array *x, dvt_dtype dtype, bool copy);
/* Store element i of an array in the byte order of this machine: an integer, which must fit, and
   the bits of a float of `bytes` bytes. */
DVTI_FN void dvti_store_int(dvt_dtype dtype, char *to, int64_t i, int64_t value);
DVTI_FN void dvti_store_bits(char *to, int bytes, int64_t i, uint64_t value);

/* ---- CIFAR's binary files ---- */
/* The label bytes of a record, in front of its pixels. */
typedef struct dvti_cifar_kind {
    int label_bytes;
    int label_at; /* the label byte that is read */
    int classes;
} dvti_cifar_kind;

#define DVTI_CIFAR_PIXELS 3072
DVTI_FN dvti_cifar_kind dvti_cifar10(void);
DVTI_FN dvti_cifar_kind dvti_cifar100(dvt_cifar100_labels labels);
/* Computes the number of images of a whole file. Returns false with the error set. */
DVTI_FN bool dvti_cifar_count(dvti_source *in, dvti_cifar_kind kind, int64_t *n);
/* Reads n images to (n, 32, 32, 3) bytes at x, and their labels to y. */
DVTI_FN bool dvti_cifar_fill(dvti_source *in, dvti_cifar_kind kind, int64_t n, uint8_t *x,
                             int32_t *y);

/* ---- decompression: deflate (RFC 1951) in gzip (RFC 1952), zlib (RFC 1950) and zip ---- */
#define DVTI_INFLATE_LOOKUP 11
#define DVTI_INFLATE_CODE 15
#define DVTI_INFLATE_HISTORY 32768 /* the maximum distance of a match */
#define DVTI_INFLATE_SPACE (DVTI_INFLATE_HISTORY + DVTI_SOURCE_PEEK + 512)

typedef struct dvti_huffman {
    uint16_t
        lookup[1 << DVTI_INFLATE_LOOKUP]; /* symbol * 16 + length of its code; 0: longer, or none */
    uint16_t count[DVTI_INFLATE_CODE + 1]; /* codes of each length */
    uint16_t symbol[288];                  /* by length, then by value */
} dvti_huffman;

typedef enum dvti_inflate_block {
    DVTI_INFLATE_NONE, /* between two blocks */
    DVTI_INFLATE_STORED,
    DVTI_INFLATE_CODES
} dvti_inflate_block;

typedef struct dvti_inflater {
    dvti_source *raw;
    const unsigned char *in, *end; /* the ready bytes of raw, while inflating */
    uint64_t bits;
    int n_bits;
    dvti_inflate_block block;
    bool last;         /* the current block is the last one */
    unsigned stored;   /* bytes left of a stored block */
    size_t n;          /* bytes in out */
    size_t start;      /* start of this member's output: matches do not reach before it */
    const char *wrong; /* error in the data; NULL so far */
    dvti_huffman literal, distance;
    unsigned char out[DVTI_INFLATE_SPACE];
} dvti_inflater;

/* Begins a deflated stream that continues at s->raw. */
DVTI_FN void dvti_inflate_begin(dvti_inflater *s);
/* Appends to s->out until it is full or the stream ends, and sets *ended. Returns false with
   s->wrong set, or when raw failed. */
DVTI_FN bool dvti_inflate(dvti_inflater *s, bool *ended);
DVTI_FN bool dvti_inflate_fail(dvti_inflater *s, const char *wrong);
/* Drops output, except the last `keep` bytes (less than DVTI_SOURCE_PEEK) and the window of
   matches. */
DVTI_FN void dvti_inflate_slide(dvti_inflater *s, size_t keep);

/* Turns a source that begins with a gzip header into the concatenated content of its members.
   Returns false with HOST_MEMORY set. */
DVTI_FN bool dvti_source_gunzip(dvti_source *in);
/* Begin a source with the content, of `bytes` bytes, of a zlib stream, or of the `packed` bytes of
   a zip member with that CRC-32. It reads from raw, which must not be used meanwhile. Return false
   with HOST_MEMORY set. */
DVTI_FN bool dvti_source_zlib(dvti_source *in, dvti_source *raw, int64_t bytes);
DVTI_FN bool dvti_source_zipped(dvti_source *in, dvti_source *raw, int64_t packed, int64_t bytes,
                                uint32_t crc);
/* Appends decompressed bytes after in->at. Returns false at the end, or with the error set. */
DVTI_FN bool dvti_unpack_more(dvti_source *in);
DVTI_FN void dvti_unpack_free(dvti_unpack *unpack);
/* The maximum compression ratio of deflate. */
#define DVTI_DEFLATE_RATIO 1032

/* ---- compression ---- */
/* Receives compressed bytes, in pieces of at most 16 KiB. */
typedef void (*dvti_sink)(void *user, const void *bytes, size_t n);
typedef struct dvti_deflater dvti_deflater;

/* Begins a deflated stream, inside a zlib stream if `zlib`. Needs 340 KiB. Returns NULL with
   HOST_MEMORY set. */
DVTI_FN dvti_deflater *dvti_deflate_begin(const char *function, bool zlib, dvti_sink sink,
                                          void *user);
DVTI_FN void dvti_deflate(dvti_deflater *s, const void *bytes, size_t n);
/* Ends the stream and frees it. Returns the number of compressed bytes. */
DVTI_FN int64_t dvti_deflate_end(dvti_deflater *s);

/* ---- zip archives ---- */
typedef struct dvti_zip_member {
    char *name;
    int64_t n_name;
    int64_t at;  /* its local header */
    int64_t end; /* where the next member or the directory begins */
    int64_t packed, size;
    uint32_t crc;
    unsigned flags, method;
} dvti_zip_member;

typedef struct dvti_zip {
    dvti_source *in;
    dvti_zip_member *member; /* in the order of the directory */
    int n;
    size_t capacity;
    int64_t directory;              /* where it begins */
    const dvti_zip_member *current; /* the member being read */
    uint32_t sum;                   /* of its bytes so far, if stored */
    char what[320];                 /* its name and the archive's, for messages */
    dvti_crc crc;
} dvti_zip;

/* Reads the directory. dvti_zip_free may be called in either case. */
DVTI_FN bool dvti_zip_begin(dvti_zip *zip, dvti_source *in);
DVTI_FN void dvti_zip_free(dvti_zip *zip);
/* Refuses encrypted members, unknown methods, sizes that do not fit, overlaps and equal names. */
DVTI_FN bool dvti_zip_check(dvti_zip *zip);
/* Begins a source with the content of member i, after comparing its local header with the
   directory. The caller closes it in either case. */
DVTI_FN bool dvti_zip_open(dvti_zip *zip, int i, dvti_source *content);
/* Checks what follows the current member, whose content was read to its end. */
DVTI_FN bool dvti_zip_finish(dvti_zip *zip);

/* Reads all bytes of a source. */
DVTI_FN dvt_array *dvti_bytes_read(dvti_source *in, dvt_ctx ctx);

/* ---- .npy, and .npz: a zip archive of it ---- */
/* Reads an array that ends its source. */
DVTI_FN dvt_array *dvti_npy_read(dvti_source *in, dvt_ctx ctx);
/* Writes NumPy's header for an array in C order, and returns its length. */
#define DVTI_NPY_HEADER_SIZE 512
DVTI_FN size_t dvti_npy_header_text(char header[DVTI_NPY_HEADER_SIZE], dvt_dtype dtype,
                                    dvt_shape shape);
/* Returns the dtype that x has in a .npy file: float32 for bfloat16. */
DVTI_FN dvt_dtype dvti_npy_dtype(const dvt_array *x);

/* ---- images ---- */
/* Read an image that ends its source, which begins with the format's first bytes. */
DVTI_FN dvt_array *dvti_png_read(dvti_source *in, dvt_ctx ctx);
DVTI_FN dvt_array *dvti_netpbm_read(dvti_source *in, dvt_ctx ctx);
/* Predicts a byte from those at its left, above and above left, by a filter of PNG (0 to 4). */
DVTI_FN int dvti_png_predict(int filter, int left, int up, int corner);

/* An image to be written. */
typedef struct dvti_image {
    const char *function;
    int64_t height, width;
    int channels, bytes;       /* of a pixel; of a sample: 1 or 2 */
    dvt_dtype dtype;           /* uint8, int32 or float32 */
    const unsigned char *data; /* elements as files store them: little-endian */
} dvti_image;

/* Writes the samples of one row, big-endian. */
DVTI_FN void dvti_image_row(const dvti_image *image, int64_t row, unsigned char *to);
/* Return false with HOST_MEMORY set. */
DVTI_FN bool dvti_png_write(dvti_file_out *out, const dvti_image *image);
DVTI_FN bool dvti_netpbm_write(dvti_file_out *out, const dvti_image *image);

/* ---- text in files: UTF-8 and JSON (RFC 8259) ---- */
/* Returns the length of the UTF-8 character at `at`, where n > 0 bytes are; 0 when there is
   none. */
DVTI_FN size_t dvti_utf8(const unsigned char *at, size_t n);
DVTI_FN bool dvti_utf8_valid(const char *text);

typedef enum dvti_json_kind {
    DVTI_JSON_WRONG, /* no value, and the error is set */
    DVTI_JSON_OBJECT,
    DVTI_JSON_ARRAY,
    DVTI_JSON_STRING,
    DVTI_JSON_NUMBER,
    DVTI_JSON_TRUE,
    DVTI_JSON_FALSE,
    DVTI_JSON_NULL
} dvti_json_kind;

/* A cursor in a JSON text. After dvti_json_value has returned OBJECT, the caller calls
   dvti_json_member until it returns false, and reads or skips one value after each call. ARRAY and
   dvti_json_item are the same. Objects may repeat a key: callers refuse that. */
typedef struct dvti_json {
    dvti_source *in;
    int64_t left;     /* bytes of the text that are not read yet */
    int depth;        /* open objects and arrays */
    bool fresh;       /* the innermost one was just opened */
    bool failed;      /* the error is set; every later call fails */
    dvti_writer text; /* the latest key, string or number, ended by 0; `at` is its start */
} dvti_json;

/* Begins a text of at most `bytes` bytes at `in`. Errors are reported as FORMAT of `in`. */
DVTI_FN void dvti_json_begin(dvti_json *json, dvti_source *in, int64_t bytes);
DVTI_FN void dvti_json_free(dvti_json *json);
/* Reads the next value, of an object or array only its beginning. */
DVTI_FN dvti_json_kind dvti_json_value(dvti_json *json);
/* Goes to the next member and reads its key. Returns false after the last one, or when `failed`. */
DVTI_FN bool dvti_json_member(dvti_json *json);
DVTI_FN bool dvti_json_item(dvti_json *json);
/* Reads a string, or a whole number from 0 to 2^63 - 1. Returns false with the error set. */
DVTI_FN bool dvti_json_string(dvti_json *json);
DVTI_FN bool dvti_json_size(dvti_json *json, int64_t *value);
/* Reads a value of any kind, with everything in it. */
DVTI_FN bool dvti_json_skip(dvti_json *json);
/* Returns whether nothing but white space follows; else the error is set. */
DVTI_FN bool dvti_json_end(dvti_json *json);
/* Appends the text as a JSON string, with its quotes. */
DVTI_FN void dvti_json_write(dvti_writer *writer, const char *text);

/* ---- lists of named arrays ---- */
struct dvt_array_list {
    dvti_object object;
    int n;
    size_t capacity; /* of array */
    dvt_array **array;
    char **name;     /* NULL: the file has no names */
    char **metadata; /* pairs of key and value */
    int n_metadata;  /* pairs */
    size_t metadata_capacity;
};

/* Creates an empty list, owned by the innermost scope. Returns NULL with HOST_MEMORY set. */
DVTI_FN dvt_array_list *dvti_array_list_new(const char *function);
/* Appends x; the list takes ownership. */
DVTI_FN bool dvti_array_list_add(const char *function, dvt_array_list *list, dvt_array *x);
/* Gives an empty list places for n arrays and their names, all NULL until they are set. */
DVTI_FN bool dvti_array_list_reserve(const char *function, dvt_array_list *list, int n);
/* Allocates the names of the list's arrays, initially NULL. */
DVTI_FN bool dvti_array_list_begin_names(const char *function, dvt_array_list *list);
/* Appends a copy of the pair to the metadata. */
DVTI_FN bool dvti_array_list_note(const char *function, dvt_array_list *list, const char *key,
                                  const char *value);
/* Sets *duplicate to a name that occurs twice in names[0], names[step], ..., or to NULL. Returns
   false when memory is exhausted. */
DVTI_FN bool dvti_names_duplicate(const char *function, const char *const *names, int n, int step,
                                  const char **duplicate);
/* Checks the arguments of a writer: n, NULL, names that occur twice. names may be NULL. */
DVTI_FN bool dvti_arrays_check(const char *function, dvt_array *const *arrays,
                               const char *const *names, int n);

/* Reads a list from `in`. Returns NULL with the error set. The current scope owns the result. */
typedef dvt_array_list *(*dvti_list_reader)(dvti_source *in, dvt_ctx ctx);
/* Read a list from a file, from a mapped file or from memory; `function` is the name in
   messages. */
DVTI_FN dvt_array_list *dvti_list_map(const char *function, const char *path, dvt_ctx ctx,
                                      dvti_list_reader reads);
DVTI_FN dvt_array_list *dvti_list_load(const char *function, const char *path, dvt_ctx ctx,
                                       dvti_list_reader reads);
DVTI_FN dvt_array_list *dvti_list_read(const char *function, const void *data, size_t bytes,
                                       dvt_ctx ctx, dvti_list_reader reads);

/* ---- formats of lists of arrays ---- */
typedef struct dvti_list_format {
    const char *name, *function; /* for messages; function: the one that loads it */
    const char *extension;
    bool (*recognizes)(dvti_source *in); /* by the first bytes, which it does not take */
    dvti_list_reader reads;
    /* NULL: the library does not write it */
    dvt_status (*saves)(const char *function, const char *path, dvt_array *const *arrays,
                        const char *const *names, int n);
} dvti_list_format;

/* Returns whether a text of n bytes ends with `end`. */
DVTI_FN bool dvti_ends_with(const char *text, size_t n, const char *end);
/* Returns the format whose extension ends the path; NULL: none. */
DVTI_FN const dvti_list_format *dvti_list_format_of(const char *path);
/* Reads a list in any of the formats. */
DVTI_FN dvt_array_list *dvti_arrays_list(dvti_source *in, dvt_ctx ctx);
/* Implements dvt_load_arrays; `function` is the name in messages. */
DVTI_FN dvt_array_list *dvti_arrays_load(const char *function, const char *path, dvt_ctx ctx);
/* Reports FORMAT for a file that is not `expected`, and says what it is if its first bytes tell. */
DVTI_FN bool dvti_source_other_format(dvti_source *in, const char *expected);

DVTI_FN bool dvti_params_recognizes(dvti_source *in);
DVTI_FN dvt_array_list *dvti_params_list(dvti_source *in, dvt_ctx ctx);
DVTI_FN dvt_status dvti_params_save(const char *function, const char *path,
                                    dvt_array *const *arrays, const char *const *names, int n);
DVTI_FN bool dvti_npz_recognizes(dvti_source *in);
DVTI_FN dvt_array_list *dvti_npz_list(dvti_source *in, dvt_ctx ctx);
DVTI_FN dvt_status dvti_npz_save(const char *function, const char *path, dvt_array *const *arrays,
                                 const char *const *names, int n);
DVTI_FN bool dvti_safetensors_recognizes(dvti_source *in);
DVTI_FN dvt_array_list *dvti_safetensors_list(dvti_source *in, dvt_ctx ctx);
DVTI_FN dvt_status dvti_safetensors_save(const char *function, const char *path,
                                         dvt_array *const *arrays, const char *const *names, int n);
/* The index of a model in several safetensors files. */
DVTI_FN bool dvti_shards_recognizes(dvti_source *in);
DVTI_FN dvt_array_list *dvti_shards_list(dvti_source *in, dvt_ctx ctx);
DVTI_FN bool dvti_gguf_recognizes(dvti_source *in);
DVTI_FN dvt_array_list *dvti_gguf_list(dvti_source *in, dvt_ctx ctx);

/* ---- directories of tensors: a header with names, shapes and places, then the elements ---- */
typedef struct dvti_tensor {
    char *name;
    dvti_stored stored;
    dvt_shape shape;
    int64_t begin, bytes; /* its place in the data */
    int at;               /* its place in the header */
} dvti_tensor;

typedef struct dvti_tensors {
    dvti_source *in;
    dvt_array_list *list; /* the result; the reader of the header adds the metadata */
    int64_t alignment;    /* every place is the first multiple of it after the one before */
    dvti_tensor *item;
    int n;
    size_t capacity;
} dvti_tensors;

/* Begins with an empty list, owned by the current scope. Returns false with HOST_MEMORY set. */
DVTI_FN bool dvti_tensors_begin(dvti_tensors *t, dvti_source *in);
/* Appends a tensor that is zero but for its name, of which it takes ownership in every case. The
   result is valid until the next call. Returns NULL with HOST_MEMORY set. */
DVTI_FN dvti_tensor *dvti_tensors_add(dvti_tensors *t, char *name);
/* Reports FORMAT about a tensor. Returns false. */
DVTI_FN bool dvti_tensors_wrong(const dvti_tensors *t, const dvti_tensor *x, const char *wrong);
/* Checks all names and places, then reads the elements of all tensors in the order of their places,
   up to the end of the file. The list gets the order of the header. */
DVTI_FN bool dvti_tensors_read(dvti_tensors *t, dvt_ctx ctx);
DVTI_FN void dvti_tensors_free(dvti_tensors *t);

#endif
