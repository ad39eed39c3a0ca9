/* What printing, the readers and the writers share: growing bytes, the text of one float, files
   that are replaced when they are complete, a reader of bytes that never holds a whole file,
   decompression, and lists of named arrays. */
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

/* ---- writing files ---- */
/* A file that appears under its name only when it is complete and on the disk; devices and pipes
   are written in place. */
typedef struct dvti_file_out {
    const char *function;
    char *path;      /* as given, for messages */
    char *target;    /* where links lead: what is replaced */
    char *temporary; /* in the folder of target; NULL when written in place */
    unsigned char *buffer;
    size_t n; /* bytes in it */
    int fd;
    bool failed;
} dvti_file_out;

/* False with the error set; then nothing is left to do. */
DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path);
/* Does nothing after a failure. */
DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n);
/* Ends the file: renames it when all went well and `ok`, else removes it. */
DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok);

/* ---- a reader of bytes that come from outside: memory, a file, or what either holds compressed ---- */
/* A peek sees up to so many bytes; this and the state of decompression is all that a reader keeps
   in memory. */
#define DVTI_SOURCE_PEEK 65536
/* Of pipes, devices and sockets at most so many bytes are read: they do not say how much there is.
   */
#define DVTI_SOURCE_MOST ((int64_t)1 << 30)

typedef struct dvti_gunzip dvti_gunzip;

typedef struct dvti_source {
    const char *function, *what; /* for messages; what: the file */
    const unsigned char *at;     /* the next bytes, `ready` of them */
    size_t ready;
    int64_t taken;  /* bytes read so far */
    int64_t behind; /* bytes behind the ready ones; an upper bound where !known */
    bool known;     /* `behind` is exact */
    bool ended;     /* something was read beyond the end; that and what follows reads as 0 */
    bool told;      /* reading failed, and the error is set */
    int fd;         /* -1: memory, or compressed */
    unsigned char *buffer;
    dvti_gunzip *gunzip;
} dvti_source;

DVTI_FN void dvti_source_memory(dvti_source *in, const char *function, const void *bytes,
                                size_t size);
/* False with IO, NULL_ARGUMENT, HOST_MEMORY or NOT_BUILT set. Then, too, dvti_source_close may be
   called. */
DVTI_FN bool dvti_source_open(dvti_source *in, const char *function, const char *path);
DVTI_FN void dvti_source_close(dvti_source *in);
/* Makes n bytes ready, or all that there are; returns whether there are n. At most
   DVTI_SOURCE_PEEK. 8 bytes before `at` that were read stay readable. */
DVTI_FN bool dvti_source_peek(dvti_source *in, size_t n);
/* n bytes, or false. */
DVTI_FN bool dvti_source_read(dvti_source *in, void *to, int64_t n);
DVTI_FN bool dvti_source_skip(dvti_source *in, int64_t n);
/* Unsigned, `bytes` wide. */
DVTI_FN uint64_t dvti_source_le(dvti_source *in, int bytes);
DVTI_FN uint64_t dvti_source_be(dvti_source *in, int bytes);
/* The most bytes that can follow: what is allocated for them is never more. */
DVTI_FN int64_t dvti_source_left(const dvti_source *in);
/* Whether all was read, and read well. */
DVTI_FN bool dvti_source_at_end(dvti_source *in);
/* How many bytes there are behind the first `taken`, where `need` were expected: "12"; "more" or
   "at most 12" where that is all that is known. */
DVTI_FN const char *dvti_source_size_text(dvti_source *in, int64_t taken, int64_t need);
/* Sets FORMAT: what the file is, and `wrong`. Only the first failure of a source is told. Returns
   false. */
DVTI_FN bool dvti_source_wrong(dvti_source *in, const char *format, ...) DVT_PRINTF(2, 3);
/* The same as a signed number of two's complement. */
DVTI_FN int64_t dvti_signed(uint64_t value, int bytes);
DVTI_FN uint64_t dvti_bytes_value(const unsigned char *at, int bytes, bool big_endian);

/* ---- elements as files store them ---- */
/* How a number is stored: its kind, its bytes, their order, and the dtype that holds all its values (or those that fit). */
typedef struct dvti_stored {
    char kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    int bytes;
    bool big_endian;
    dvt_dtype dtype;
} dvti_stored;

/* The bytes that the shape takes as stored; false when no file holds them. */
DVTI_FN bool dvti_stored_bytes(const dvti_stored *stored, const dvt_shape *shape, int64_t *bytes);
/* An array on ctx with the next elements of `in`, in C order of the shape, or in Fortran order.
   Needs no memory beyond that of the array, and of its copy where ctx is no CPU, but two small
   buffers. NULL when there are too few elements, which is for the caller to tell, or with the error
   set. */
DVTI_FN dvt_array *dvti_stored_array(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx);
/* The same where nothing may follow the elements. Sizes are compared before anything is allocated.
   *fits is false, and no error set, when there are more or fewer bytes. */
DVTI_FN dvt_array *dvti_stored_whole(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx, bool *fits);
/* x's elements as files store them: contiguous, little-endian, of that dtype, in main memory (x itself where it is that
   already). Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype);

/* ---- deflate (RFC 1951) and gzip (RFC 1952) ---- */
#define DVTI_INFLATE_LOOKUP 11
#define DVTI_INFLATE_CODE 15
#define DVTI_INFLATE_HISTORY 32768 /* matches reach so far back */
#define DVTI_INFLATE_ROOM (DVTI_INFLATE_HISTORY + DVTI_SOURCE_PEEK + 512)

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
    const unsigned char *in, *end; /* what is ready of raw, while inflating */
    uint64_t bits;
    int n_bits;
    dvti_inflate_block block;
    bool last;         /* the block is the last one */
    unsigned stored;   /* bytes left of a stored block */
    size_t n;          /* bytes in out */
    size_t start;      /* of this member's output: matches do not reach before it */
    const char *wrong; /* what is wrong with the data; NULL so far */
    dvti_huffman literal, distance;
    unsigned char out[DVTI_INFLATE_ROOM];
} dvti_inflater;

/* Begins a deflated stream behind which s->raw goes on. */
DVTI_FN void dvti_inflate_begin(dvti_inflater *s);
/* Appends to s->out until it is full or the stream ends, which is then *ended. False with s->wrong
   set, or when raw failed. */
DVTI_FN bool dvti_inflate(dvti_inflater *s, bool *ended);
DVTI_FN bool dvti_inflate_fail(dvti_inflater *s, const char *wrong);
/* Drops all output but the last `keep` bytes (less than DVTI_SOURCE_PEEK), and what matches may
   still refer to. */
DVTI_FN void dvti_inflate_slide(dvti_inflater *s, size_t keep);

/* When `in` begins as gzip does, it becomes what all members hold, one after the other. False with
   HOST_MEMORY set. */
DVTI_FN bool dvti_source_gunzip(dvti_source *in);
/* More of it behind in->at; false at the end, or with the error set. */
DVTI_FN bool dvti_gunzip_more(dvti_source *in);
DVTI_FN void dvti_gunzip_free(dvti_gunzip *gunzip);
/* Deflated data are at most so many times shorter than what they hold. */
#define DVTI_DEFLATE_RATIO 1032

/* ---- lists of named arrays ---- */
struct dvt_array_list {
    dvti_object object;
    int n;
    size_t capacity; /* of array */
    dvt_array **array;
    char **name; /* NULL: the file has no names */
};

/* A list without arrays, owned by the innermost scope. NULL with HOST_MEMORY set. */
DVTI_FN dvt_array_list *dvti_array_list_new(const char *function);
/* Appends x, which the list owns from now on. */
DVTI_FN bool dvti_array_list_add(const char *function, dvt_array_list *list, dvt_array *x);
/* Room for the names of its arrays, which are NULL. */
DVTI_FN bool dvti_array_list_begin_names(const char *function, dvt_array_list *list);
/* dvt_load_params and dvt_save_params, for the function that is called. */
DVTI_FN dvt_array_list *dvti_params_load(const char *function, const char *path, dvt_ctx ctx);
DVTI_FN dvt_status dvti_params_save(const char *function, const char *path,
                                    dvt_array *const *arrays, const char *const *names, int n);

#endif
