/* Shared by printing, the readers and the writers: byte buffers, the text of one float, and lists
   of named arrays. Also files replaced when complete, buffered sources of bytes, and elements as
   stored. No source holds a whole file in memory. */
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

/* Writes five significant digits of any float, "0.0125" or "1.25e+09". Returns the buffer. */
DVTI_FN const char *dvti_short_number(char *buffer, double value);

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
    bool failed, replaces; /* replaces: target exists, and temporary will replace it */
    const char *advice;    /* for a failing rename; NULL: a general one */
    dvti_writer *memory;   /* not NULL: receives all bytes, and there is no file */
} dvti_file_out;

/* Opens the file. Returns false with the error set; nothing needs to be closed then. */
DVTI_FN bool dvti_file_begin(dvti_file_out *out, const char *function, const char *path);
/* Does nothing after a failure. */
DVTI_FN void dvti_file_write(dvti_file_out *out, const void *bytes, size_t n);
/* Closes the file. Renames the temporary file if all writes succeeded and `ok`; otherwise removes
   it. */
DVTI_FN dvt_status dvti_file_end(dvti_file_out *out, bool ok);
/* Syncs and closes a file whose new content is complete. Returns false with the error set. Call
   dvti_file_end afterwards. */
DVTI_FN bool dvti_file_close(dvti_file_out *out, bool ok);
/* Calls dvti_file_end for n closed files. The last one names the others. If they replace older
   files, the old last one is gone until all are replaced. */
DVTI_FN dvt_status dvti_files_end(dvti_file_out *file, int n);

/* Refuses a path that ends with .gz, for formats whose readers decompress. */
DVTI_FN bool dvti_file_plain(const char *function, const char *path);

/* Opens a file that readers may open while it grows: without buffer and rename. Replaces a file,
   and keeps links, devices and pipes. Returns a descriptor, or -1 with the error set. */
DVTI_FN int dvti_live_open(const char *function, const char *path);
/* Write all bytes, shorten the file to `bytes`, and close. They return false with the reason in
   errno. */
DVTI_FN bool dvti_live_write(int fd, const void *bytes, size_t n);
DVTI_FN bool dvti_live_cut(int fd, int64_t bytes);
DVTI_FN bool dvti_live_close(int fd);
/* Sets IO: "could not be written", or HOST_MEMORY. */
DVTI_FN dvt_status dvti_live_failed(const char *function, const char *path, int error);

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
/* Opens a file as dvti_source_open does, and maps it if the system can. Then dvti_stored_array
   makes arrays on the mapping. */
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
/* Turns a source that begins with a gzip header into the concatenated content of its members.
   Returns false with HOST_MEMORY or NOT_BUILT set. */
DVTI_FN bool dvti_source_gunzip(dvti_source *in);
/* Appends decompressed bytes after in->at. Returns false at the end, or with the error set. */
DVTI_FN bool dvti_unpack_more(dvti_source *in);
DVTI_FN void dvti_unpack_free(dvti_unpack *unpack);
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
   shape. It is on the file's mapping where that is possible. Otherwise it needs only two small
   buffers besides the array, and a host copy if ctx is not a CPU. Returns NULL with the error set,
   or without an error when elements are missing, which the caller reports. */
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
/* The same in either byte order. */
DVTI_FN dvt_array *dvti_stored_host_in(const char *function, dvt_array *x, dvt_dtype dtype,
                                       bool big_endian);

/* Returns x's elements of `dtype`, contiguous in host memory: x itself if it already matches and
   `copy` is false. Owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_array *dvti_host_array(const char *function, dvt_array *x, dvt_dtype dtype, bool copy);
/* Store element i of an array in the byte order of this machine: an integer, which must fit, and
   the bits of a float of `bytes` bytes. */
DVTI_FN void dvti_store_int(dvt_dtype dtype, char *to, int64_t i, int64_t value);
DVTI_FN void dvti_store_bits(char *to, int bytes, int64_t i, uint64_t value);

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

/* ---- lists of named arrays ---- */
struct dvt_array_list {
    dvti_object object;
    int n;
    size_t capacity; /* of array */
    dvt_array **array;
    char **name;     /* NULL: the file has no names */
    char **metadata; /* pairs of key and value */
    int n_metadata;  /* pairs */
    size_t name_capacity, metadata_capacity;
};

/* Creates an empty list, owned by the innermost scope. Returns NULL with HOST_MEMORY set. */
DVTI_FN dvt_array_list *dvti_array_list_new(const char *function);
/* Appends x; the list takes ownership. */
DVTI_FN bool dvti_array_list_add(const char *function, dvt_array_list *list, dvt_array *x);
#if defined(DVTI_CHECKPOINTS)
/* Appends a reference to x under a copy of the name, to a list that has names for all arrays. */
DVTI_FN bool dvti_array_list_add_named(const char *function, dvt_array_list *list, const char *name,
                                       dvt_array *x);
#endif
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

#if defined(DEVTENSOR_NO_FORMATS)
/* Sets NOT_BUILT. */
DVTI_FN dvt_status dvti_no_formats(const char *function);
#endif

/* ---- formats of lists of arrays ---- */
#define DVTI_SAFETENSORS_HEADER 100000000 /* the limit of the format */

typedef struct dvti_list_format {
    const char *name, *reader; /* for messages; dvt_load_READER loads it */
    const char *extension;
    bool (*recognizes)(dvti_source *in); /* by the first bytes, which it does not take */
    dvti_list_reader reads;
    /* NULL: the library does not write it */
    dvt_status (*saves)(const char *function, const char *path, dvt_array *const *arrays,
                        const char *const *names, int n);
} dvti_list_format;

/* Returns whether a text of n bytes ends with `end`. */
DVTI_FN bool dvti_ends_with(const char *text, size_t n, const char *end);
/* Does the same for a path, whose letters may be capital ones. */
DVTI_FN bool dvti_path_ends_with(const char *path, const char *end);
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
DVTI_FN dvt_status dvti_gguf_save(const char *function, const char *path, dvt_array *const *arrays,
                                  const char *const *names, int n);

#endif
