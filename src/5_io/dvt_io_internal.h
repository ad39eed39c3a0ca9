/* What printing, the readers and the writers share: growing bytes, the text of one float, whole files, a checked
   cursor over bytes, decompression, and lists of named arrays. */
#ifndef DVTI_IO_H
#define DVTI_IO_H
#include "4_ops/dvt_op.h"

/* ---- bytes that grow; `failed` is set when memory runs out, and what follows is dropped ---- */
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
/* Unsigned, little-endian, `bytes` wide. */
DVTI_FN void dvti_writer_le(dvti_writer *writer, uint64_t value, int bytes);

/* ---- the decimal text of one float: the shortest digits that its own dtype reads back, or exact ones ---- */
typedef enum dvti_float_kind { DVTI_FINITE, DVTI_INFINITE, DVTI_NAN } dvti_float_kind;

/* The value is mantissa * 2^exponent. */
typedef struct dvti_float {
    dvti_float_kind kind;
    bool negative;
    bool lopsided; /* the next smaller float is only half as far away as the next larger one */
    uint64_t mantissa;
    int exponent;
} dvti_float;

DVTI_FN dvti_float dvti_float_read(dvt_dtype dtype, const void *at);

typedef enum dvti_trim {
    DVTI_TRIM_KEEP,  /* zeros are kept, and added up to at_least */
    DVTI_TRIM_POINT, /* "1." */
    DVTI_TRIM_ZERO,  /* "1.0" */
    DVTI_TRIM_ALL    /* "1" */
} dvti_trim;

/* Behind the point: at most and at least so many digits (-1: no bound). Blanks on the left of the whole part and on the
   right of the fraction up to the widths given. */
typedef struct dvti_number_format {
    bool scientific, exact;
    dvti_trim trim;
    int at_most, at_least;
    int pad_left, pad_right;
    int exponent_digits;
} dvti_number_format;

#define DVTI_MAX_PRECISION 500
#define DVTI_NUMBER_SIZE 2048
/* Writes a finite number, ended by 0, and returns its length. Independent of the locale. */
DVTI_FN int dvti_number_text(char *buffer, const dvti_float *x, const dvti_number_format *format);

/* ---- one array's elements as text ---- */
typedef struct dvti_element_format {
    dvt_dtype dtype;
    bool torch_like, scalar, whole; /* whole: PyTorch's form for floats without fractions */
    int width;                      /* of integers and bools, of everything in PyTorch's form */
    dvti_number_format number;
} dvti_element_format;

typedef struct dvti_print_rules {
    dvt_print_style style;
    int precision; /* -1: none */
    int64_t threshold, edge_items, line_width;
    bool suppress;
} dvti_print_rules;

/* Looks at all n elements and decides on one form for them, as NumPy or PyTorch do. ndim 0: the one element of an array
   without axes. */
DVTI_FN dvti_element_format dvti_element_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                              const void *elements, int64_t n, int ndim);
/* Writes one element, ended by 0, and returns its length. */
DVTI_FN int dvti_element_text(char *buffer, const dvti_element_format *format, const void *element);

/* ---- whole files. `function` is for messages. ---- */
/* The content of a file, in a block for dvti_free. False with IO, HOST_MEMORY or NOT_BUILT set. */
DVTI_FN bool dvti_file_read(const char *function, const char *path, void **bytes, size_t *size);

/* A file that appears under its name only when it is complete. */
typedef struct dvti_file_out {
    const char *function;
    char *path, *temporary; /* temporary: NULL when written in place (devices, pipes) */
    FILE *file;
    bool failed;
} dvti_file_out;

/* False with the error set; then nothing is left to do. */
DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path);
/* Does nothing after a failure. */
DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n);
/* Ends the file: renames it when all went well and `ok`, else removes it. */
DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok);

/* ---- a reader of bytes that come from outside ---- */
typedef struct dvti_source {
    const unsigned char *at;
    size_t left;
    bool failed; /* something was read beyond the end; that and what follows reads as 0 */
} dvti_source;

DVTI_FN dvti_source dvti_source_begin(const void *bytes, size_t size);
/* n bytes and past them; NULL beyond the end. */
DVTI_FN const unsigned char *dvti_source_bytes(dvti_source *cursor, uint64_t n);
/* Unsigned, `bytes` wide. */
DVTI_FN uint64_t dvti_source_le(dvti_source *cursor, int bytes);
DVTI_FN uint64_t dvti_source_be(dvti_source *cursor, int bytes);
/* The same as a signed number of two's complement. */
DVTI_FN int64_t dvti_signed(uint64_t value, int bytes);

/* ---- elements as files store them ---- */
/* How a number is stored: its kind, its bytes, their order, and the dtype that holds all its values (or those that fit). */
typedef struct dvti_stored {
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int bytes;
    bool big_endian;
    dvt_dtype dtype;
} dvti_stored;

/* n elements at `from` become C-order elements of stored->dtype at `to`. False when one does not fit (uint64 only); its
   number is then in *bad. */
DVTI_FN bool dvti_stored_convert(const dvti_stored *stored, const unsigned char *from, void *to,
                                 int64_t n, int64_t *bad);
/* An array on ctx with these elements, which are the whole shape. NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_array(const char *function, const dvti_stored *stored,
                                     const unsigned char *from, dvt_shape shape, dvt_ctx ctx);
/* x's elements as files store them: contiguous, little-endian, of that dtype, in main memory (x itself where it is that
   already). Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype);

/* ---- deflate (RFC 1951) and gzip (RFC 1952) ---- */
#define DVTI_INFLATE_LOOKUP 11
#define DVTI_INFLATE_CODE 15

typedef struct dvti_huffman {
    uint16_t
        lookup[1 << DVTI_INFLATE_LOOKUP]; /* symbol * 16 + length of its code; 0: longer, or none */
    uint16_t count[DVTI_INFLATE_CODE + 1]; /* codes of each length */
    uint16_t symbol[288];                  /* by length, then by value */
} dvti_huffman;

typedef struct dvti_inflater {
    const unsigned char *in, *end;
    uint64_t bits;
    int n_bits;
    unsigned char *out;
    size_t n, capacity, limit;
    size_t start;      /* of this member's output: matches do not reach before it */
    const char *wrong; /* what is wrong with the data; NULL so far */
    bool no_memory, full;
    dvti_huffman literal, distance;
} dvti_inflater;

/* Appends what the deflated data at s->in hold, and goes past them. False with s->wrong set. */
DVTI_FN bool dvti_inflate(dvti_inflater *s);
DVTI_FN bool dvti_inflate_fail(dvti_inflater *s, const char *wrong);

DVTI_FN bool dvti_is_gzip(const void *bytes, size_t size);
/* All members, one after the other, in a block for dvti_free, of at most `limit` bytes. False with FORMAT or HOST_MEMORY
   set; `what` names the file in messages. */
DVTI_FN bool dvti_gunzip(const char *function, const char *what, const void *bytes, size_t size,
                         size_t limit, void **out, size_t *out_size);
/* The first n bytes of what the data hold, or all that there are. */
DVTI_FN bool dvti_gunzip_head(const char *function, const char *what, const void *bytes,
                              size_t size, unsigned char *head, size_t n, size_t *got);
/* Deflated data are at most so many times shorter than what they hold. */
#define DVTI_DEFLATE_RATIO 1032

/* ---- lists of named arrays ---- */
struct dvt_array_list {
    dvti_object object;
    int n;
    dvt_array **array;
    char **name; /* NULL: the file has no names */
};

/* A list of n places without arrays, owned by the innermost scope. NULL with HOST_MEMORY set. */
DVTI_FN dvt_array_list *dvti_array_list_new(const char *function, int n, bool named);
/* dvt_load_params and dvt_save_params, for the function that is called. */
DVTI_FN dvt_array_list *dvti_params_load(const char *function, const char *path, dvt_ctx ctx);
DVTI_FN dvt_status dvti_params_save(const char *function, const char *path,
                                    dvt_array *const *arrays, const char *const *names, int n);

#endif
