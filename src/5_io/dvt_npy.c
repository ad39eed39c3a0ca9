/* NumPy's .npy format: a magic number, a version, a Python dictionary with exactly three keys, and
   the elements. Pickled objects are refused with a message. The writer produces the same bytes as
   NumPy for an array in C order. */
#include "5_io/dvt_io_internal.h"

/* NumPy's own limit for untrusted files. */
#define DVTI_NPY_HEADER 10000
/* NumPy pads the header so that the first extent can grow to this many digits. */
#define DVTI_NPY_GROWTH 21

typedef struct dvti_npy_header {
    dvti_stored stored;
    bool fortran_order;
    dvt_shape shape;
} dvti_npy_header;

/* ---- the dictionary ---- */
typedef struct dvti_literal {
    const char *at, *end;
    const char *wrong;
} dvti_literal;

static bool dvti_literal_fail(dvti_literal *in, const char *wrong) {
    if (!in->wrong)
        in->wrong = wrong;
    return false;
}

static void dvti_literal_blanks(dvti_literal *in) {
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n'))
        in->at++;
}

/* Consumes the character if it is next. */
static bool dvti_literal_char(dvti_literal *in, char c) {
    dvti_literal_blanks(in);
    if (in->at >= in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

/* Reads a quoted string without escapes, of fewer than `size` characters. */
static bool dvti_literal_text(dvti_literal *in, char *text, size_t size) {
    const char *start;
    char quote;
    dvti_literal_blanks(in);
    if (in->at >= in->end || (*in->at != '\'' && *in->at != '"'))
        return false;
    quote = *in->at++;
    start = in->at;
    while (in->at < in->end && *in->at != quote)
        if (*in->at++ == '\\')
            return false;
    if (in->at >= in->end || (size_t)(in->at - start) >= size)
        return false;
    memcpy(text, start, (size_t)(in->at - start));
    text[in->at - start] = 0;
    in->at++;
    return true;
}

static bool dvti_literal_word(dvti_literal *in, const char *word) {
    size_t n = strlen(word);
    dvti_literal_blanks(in);
    if ((size_t)(in->end - in->at) < n || memcmp(in->at, word, n) != 0)
        return false;
    in->at += n;
    return true;
}

/* Reads digits and the L that Python 2 appended. */
static bool dvti_literal_extent(dvti_literal *in, int64_t *value) {
    int digits = 0;
    *value = 0;
    dvti_literal_blanks(in);
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++, digits++)
        if (!dvti_mul(*value, 10, value) || !dvti_sum(*value, *in->at - '0', value))
            return dvti_literal_fail(in, "an extent does not fit in 63 bits");
    if (in->at < in->end && *in->at == 'L' && digits)
        in->at++;
    return digits > 0;
}

static bool dvti_literal_shape(dvti_literal *in, dvt_shape *shape) {
    bool comma = true;
    if (!dvti_literal_char(in, '('))
        return false;
    while (!dvti_literal_char(in, ')')) {
        int64_t extent;
        if (!comma || !dvti_literal_extent(in, &extent))
            return false;
        if (shape->ndim == DVT_MAX_DIMS)
            return dvti_literal_fail(in, "it has more than 8 axes");
        shape->dim[shape->ndim++] = extent;
        comma = dvti_literal_char(in, ',');
    }
    return shape->ndim != 1 || comma ||
           dvti_literal_fail(in, "its shape is a number in parentheses; expected a tuple: write "
                                 "(3,) for (3)");
}

/* ---- the type ---- */
static const char *dvti_descr_refusal(char kind) {
    switch (kind) {
    case 'O':
        return "it holds pickled Python objects, which are programs and never loaded; save plain "
               "numbers";
    case 'U':
    case 'S':
    case 'a':
        return "it holds text; save numbers";
    case 'M':
    case 'm':
        return "it holds dates or times; convert them with .astype('int64') before saving";
    case 'c':
        return "it holds complex numbers; save .real and .imag";
    case 'V':
        return "it holds records or raw bytes; save each field as a separate array";
    default:
        return "its dtype is unknown; convert it with .astype('float32') before saving";
    }
}

static bool dvti_descr_parse(const char *descr, dvti_stored *stored, const char **wrong) {
    static const struct {
        const char *name;
        dvt_dtype dtype;
    } known[] = {{"b1", DVT_BOOL}, {"i1", DVT_I8},  {"u1", DVT_U8},  {"i2", DVT_I32},
                 {"u2", DVT_I32},  {"i4", DVT_I32}, {"u4", DVT_I64}, {"i8", DVT_I64},
                 {"u8", DVT_I64},  {"f2", DVT_F16}, {"f4", DVT_F32}, {"f8", DVT_F64}};

    const char *name = descr;
    int i;
    stored->big_endian = *descr == '>';
    if (*descr && strchr("<>|=", *descr))
        name++;
    for (i = 0; i < DVTI_LENGTH(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            stored->kind = name[0];
            stored->bytes = name[1] - '0';
            stored->dtype = known[i].dtype;
            return true;
        }
    *wrong = dvti_descr_refusal(name[0]);
    return false;
}

/* ---- reading ---- */
static bool dvti_npy_dictionary(dvti_literal *in, dvti_npy_header *header) {
    char key[32], descr[32];
    unsigned seen = 0;
    bool comma = true;
    if (!dvti_literal_char(in, '{'))
        return false;
    while (!dvti_literal_char(in, '}')) {
        unsigned bit;
        bool ok;
        if (!comma || !dvti_literal_text(in, key, sizeof key) || !dvti_literal_char(in, ':'))
            return false;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            dvti_literal_blanks(in);
            if (in->at < in->end && *in->at == '[')
                return dvti_literal_fail(in, dvti_descr_refusal('V'));
            ok = dvti_literal_text(in, descr, sizeof descr) &&
                 dvti_descr_parse(descr, &header->stored, &in->wrong);
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            header->fortran_order = dvti_literal_word(in, "True");
            ok = header->fortran_order || dvti_literal_word(in, "False");
        } else {
            bit = 4;
            ok = strcmp(key, "shape") == 0 && dvti_literal_shape(in, &header->shape);
        }
        if (!ok || seen & bit)
            return false;
        seen |= bit;
        comma = dvti_literal_char(in, ',');
    }
    dvti_literal_blanks(in);
    return seen == 7 && in->at == in->end;
}

static bool dvti_npy_parse(dvti_source *in, dvti_npy_header *header) {
    unsigned major, minor;
    uint64_t length;
    dvti_literal literal;
    memset(header, 0, sizeof *header);
    if (!dvti_source_peek(in, 6) || memcmp(in->at, "\x93NUMPY", 6) != 0)
        return dvti_source_other_format(in, "an .npy file (those begin with \\x93NUMPY)");
    dvti_source_skip(in, 6);
    major = (unsigned)dvti_source_le(in, 1);
    minor = (unsigned)dvti_source_le(in, 1);
    if (in->ended || major < 1 || major > 3 || minor != 0)
        return dvti_source_wrong(in, "the version is unknown; expected 1.0, 2.0 or 3.0: write the "
                                     "file again with numpy.save");
    length = dvti_source_le(in, major == 1 ? 2 : 4);
    if (length > DVTI_NPY_HEADER)
        return dvti_source_wrong(in, "the header is longer than 10000 bytes, which NumPy refuses "
                                     "too; the file is damaged, or holds records");
    if (in->ended || !dvti_source_peek(in, (size_t)length))
        return dvti_source_wrong(in, "it ends within its header; fetch or write it again");
    literal.at = (const char *)in->at;
    literal.end = literal.at + length;
    literal.wrong = NULL;
    if (!dvti_npy_dictionary(&literal, header))
        return dvti_source_wrong(in, "%s",
                                 literal.wrong ? literal.wrong
                                               : "the header is not the dictionary that NumPy "
                                                 "writes (descr, fortran_order, shape); write it "
                                                 "again with numpy.save");
    return dvti_source_skip(in, (int64_t)length);
}

DVTI_FN dvt_array *dvti_npy_read(dvti_source *in, dvt_ctx ctx) {
    dvti_npy_header header;
    dvt_array *x;
    int64_t begin;
    bool fits;
    if (!dvti_npy_parse(in, &header))
        return NULL;
    begin = in->taken;
    x = dvti_stored_whole(&header.stored, in, header.shape, header.fortran_order, ctx, &fits);
    if (!x && !fits) {
        int64_t need;
        bool large = !dvti_stored_bytes(&header.stored, &header.shape, &need);
        if (large)
            need = INT64_MAX;
        dvti_source_wrong(
            in,
            "the header says shape %s, which takes %s%lld bytes, but %s bytes follow it; the file "
            "is cut off, damaged, or followed by something else: fetch or write it again",
            dvti_shape_text(header.shape), large ? "over " : "", (long long)need,
            dvti_source_size_text(in, begin, need));
    }
    return x;
}

DVT_API dvt_array *dvt_read_npy(const void *data, size_t bytes, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result;
    if (!data) {
        dvti_null("dvt_read_npy", "data");
        return NULL;
    }
    dvti_source_memory(&in, "dvt_read_npy", data, bytes);
    result = dvti_npy_read(&in, ctx);
    dvti_source_close(&in);
    return result;
}

DVT_API dvt_array *dvt_load_npy(const char *path, dvt_ctx ctx) {
    dvti_source in;
    dvt_array *result = NULL;
    if (dvti_source_open(&in, "dvt_load_npy", path))
        result = dvti_npy_read(&in, ctx);
    dvti_source_close(&in);
    return result;
}

/* ---- writing ---- */
DVTI_FN size_t dvti_npy_header_text(char header[DVTI_NPY_HEADER_SIZE], dvt_dtype dtype,
                                    dvt_shape shape) {
    static const char *const descr[DVT_DTYPE_COUNT] = {"<f4", "<f8", "<f2", "<f4", "|i1",
                                                       "|u1", "<i4", "<i8", "|b1"};
    char first[32];
    dvti_text text = dvti_text_begin(header, DVTI_NPY_HEADER_SIZE);
    int64_t begin = 10;
    dvti_text_add(&text, "%cNUMPY%c%c%c%c", 0x93, 1, 0, 0, 0);
    dvti_text_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr[dtype],
                  dvti_shape_text(shape));
    if (shape.ndim > 0) {
        int digits = snprintf(first, sizeof first, "%lld", (long long)shape.dim[0]);
        dvti_text_char(&text, ' ', DVTI_NPY_GROWTH - digits);
    }
    dvti_text_char(&text, ' ', 64 - (int64_t)((text.length + 1) % 64));
    dvti_text_char(&text, '\n', 1);
    begin = (int64_t)text.length - begin;
    header[8] = (char)(begin & 255);
    header[9] = (char)(begin >> 8);
    return text.length;
}

DVTI_FN dvt_dtype dvti_npy_dtype(const dvt_array *x) {
    return x->dtype == DVT_BF16 ? DVT_F32 : x->dtype;
}

DVT_API dvt_status dvt_save_npy(const char *path, dvt_array *x) {
    char header[DVTI_NPY_HEADER_SIZE];
    dvt_scope_guard scope;
    dvt_array *host;
    dvti_file_out out;
    dvt_status status;
    if (!x)
        return dvti_null("dvt_save_npy", "x");
    scope = dvt_scope_begin();
    host = dvti_stored_host("dvt_save_npy", x, dvti_npy_dtype(x));
    if (host && dvti_file_begin(&out, "dvt_save_npy", path)) {
        dvti_file_write(&out, header, dvti_npy_header_text(header, host->dtype, x->shape));
        dvti_file_write(&out, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
        status = dvti_file_end(&out, true);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}

#undef DVTI_NPY_HEADER
#undef DVTI_NPY_GROWTH
