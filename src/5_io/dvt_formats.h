/* Shared by the formats that DEVTENSOR_NO_FORMATS leaves out: numbers from text, checksums,
   compression, archives, images, JSON, directories of tensors, CIFAR. */
#ifndef DVTI_FORMATS_H
#define DVTI_FORMATS_H
#include "5_io/dvt_io_internal.h"

#if !defined(DEVTENSOR_NO_FORMATS)

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

/* ---- checksums ---- */
/* The tables of CRC-32, for eight bytes at a time. */
typedef struct dvti_crc {
    uint32_t table[8][256];
} dvti_crc;

DVTI_FN void dvti_crc_build(dvti_crc *crc);
/* Builds the tables of another polynomial, reflected: 0x82f63b78 gives CRC-32C. */
DVTI_FN void dvti_crc_build_of(dvti_crc *crc, uint32_t polynomial);
/* Extends the CRC-32 `value` (0: of no bytes) by n bytes. */
DVTI_FN uint32_t dvti_crc_more(const dvti_crc *crc, uint32_t value, const void *bytes, size_t n);
/* Extends the Adler-32 `value` (1: of no bytes) by n bytes. */
DVTI_FN uint32_t dvti_adler_more(uint32_t value, const void *bytes, size_t n);

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

/* ---- metadata that is written ---- */
/* Checks pairs of key and text that end with a NULL, or a NULL: values, UTF-8, keys that occur
   twice. Sets *n to the number of pairs. */
DVTI_FN bool dvti_metadata_check(const char *function, const char *const *metadata, int *n);
/* Checks that a name or text is UTF-8. */
DVTI_FN bool dvti_utf8_check(const char *function, const char *text);

/* Writes a safetensors file; `function` is the name in messages. If `later` is not NULL, sets it to
   a closed file, for dvti_files_end. */
DVTI_FN dvt_status dvti_safetensors_save_with(const char *function, const char *path,
                                              dvt_array *const *arrays, const char *const *names,
                                              int n, const char *const *metadata,
                                              dvti_file_out *later);
/* Checks the arguments, as that does first. */
DVTI_FN bool dvti_safetensors_check(const char *function, dvt_array *const *arrays,
                                    const char *const *names, int n, const char *const *metadata);

/* ---- GGUF ---- */
#define DVTI_GGUF_ALIGNMENT 32 /* unless the metadata has another */
#define DVTI_GGUF_KEY 65535    /* the longest key */
#define DVTI_GGUF_STRING 8     /* the type of texts */
/* Returns the number of the type that all elements of the dtype have, -1 if there is none. */
DVTI_FN int dvti_gguf_number_of(dvt_dtype dtype);

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

/* Begin a source with the content, of `bytes` bytes, of a zlib stream, or of the `packed` bytes of
   a zip member with that CRC-32. It reads from raw, which must not be used meanwhile. Return false
   with HOST_MEMORY set. */
DVTI_FN bool dvti_source_zlib(dvti_source *in, dvti_source *raw, int64_t bytes);
DVTI_FN bool dvti_source_zipped(dvti_source *in, dvti_source *raw, int64_t packed, int64_t bytes,
                                uint32_t crc);
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
/* Appends x as a PNG file to `out`, and sets the extents. Returns the errors of dvt_save_image. */
DVTI_FN dvt_status dvti_image_encode(const char *function, dvt_array *x, dvti_writer *out,
                                     dvti_image *image);
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
/* Checks all names and places. */
DVTI_FN bool dvti_tensors_check(dvti_tensors *t);
DVTI_FN void dvti_tensors_free(dvti_tensors *t);

#if defined(DVTI_CHECKPOINTS)
/* ---- safetensors, for checkpoints ---- */
/* Writes a list with its metadata. */
DVTI_FN dvt_status dvti_safetensors_save_list(const char *function, const char *path,
                                              const dvt_array_list *list);
/* Reads the metadata of a whole file, and no elements: a list of no arrays. NULL with the error
   set. */
DVTI_FN dvt_array_list *dvti_safetensors_notes(dvti_source *in, dvt_ctx ctx);
#endif

#endif

#endif
