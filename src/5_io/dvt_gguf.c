/* GGUF, versions 2 and 3, little-endian: "GGUF", version, numbers of tensors and metadata; pairs of
   key and value; names, extents, types and places of tensors; padding; the elements. Extents are
   stored from the fastest axis to the slowest, so shapes here are reversed. Quantized tensors are
   refused. Source: docs/gguf.md of ggml-org/ggml. */
#include "5_io/dvt_formats.h"

#define DVTI_GGUF_DEPTH 4 /* of arrays in arrays */

/* The types of metadata values; the others are numbers (dvti_gguf_bytes). */
enum { DVTI_GGUF_BOOL = 7, DVTI_GGUF_ARRAY = 9, DVTI_GGUF_TYPES = 13 };

enum { DVTI_GGUF_U32 = 4, DVTI_GGUF_F32 = 6, DVTI_GGUF_F64 = 12 };

/* The least number of bytes of a value of each type. */
static const int dvti_gguf_bytes[DVTI_GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

typedef struct dvti_gguf {
    dvti_source *in;
    dvti_tensors tensors;
    int64_t n_tensors, n_metadata, alignment;
    char **key; /* of the metadata that was read, also of arrays */
    int keys;
    size_t capacity;
} dvti_gguf;

static bool dvti_gguf_wrong(const dvti_gguf *g, const char *key, const char *wrong) {
    return dvti_source_wrong(g->in, "its metadata \"%.100s\" %s; fetch or write the file again",
                             key, wrong);
}

/* Reads a text, or returns NULL with the error set. */
static char *dvti_gguf_text(const dvti_gguf *g, const char *what) {
    const char *wrong = NULL;
    char *text = dvti_source_text(g->in, &wrong);
    if (text && !dvti_utf8_valid(text)) {
        wrong = "is not UTF-8";
        dvti_free(text);
        text = NULL;
    }
    if (wrong)
        dvti_source_wrong(g->in, "%s %s; fetch or write the file again", what, wrong);
    return text;
}

/* ---- metadata ---- */
/* Checks the elements of an array without keeping them. */
static bool dvti_gguf_skip(const dvti_gguf *g, const char *key, int depth) {
    uint64_t type = dvti_source_le(g->in, 4), count = dvti_source_le(g->in, 8), length;
    if (g->in->ended || type >= DVTI_GGUF_TYPES)
        return dvti_gguf_wrong(g, key, "is an array that is cut off, or of an unknown type");
    if (depth == DVTI_GGUF_DEPTH)
        return dvti_gguf_wrong(g, key, "has more than 4 arrays in each other");
    if (count > (uint64_t)dvti_source_left(g->in) / (uint64_t)dvti_gguf_bytes[type])
        return dvti_gguf_wrong(g, key, "is an array that goes beyond the end of the file");
    if (type != DVTI_GGUF_BOOL && type != DVTI_GGUF_STRING && type != DVTI_GGUF_ARRAY)
        return dvti_source_skip(g->in, (int64_t)count * dvti_gguf_bytes[type]) ||
               dvti_gguf_wrong(g, key, "is an array that goes beyond the end of the file");
    for (; count > 0; count--) {
        if (type == DVTI_GGUF_ARRAY) {
            if (!dvti_gguf_skip(g, key, depth + 1))
                return false;
            continue;
        }
        length = dvti_source_le(g->in, dvti_gguf_bytes[type]);
        if (type == DVTI_GGUF_BOOL && length > 1)
            return dvti_gguf_wrong(g, key, "has a bool other than 0 and 1");
        if (g->in->ended ||
            (type == DVTI_GGUF_STRING && (length > (uint64_t)dvti_source_left(g->in) ||
                                          !dvti_source_skip(g->in, (int64_t)length))))
            return dvti_gguf_wrong(g, key, "is an array that goes beyond the end of the file");
    }
    return true;
}

/* Writes a float with its shortest digits, as NumPy does. */
static void dvti_gguf_float(char *text, uint64_t bits, int bytes) {
    dvti_print_rules rules;
    dvti_element_format format;
    uint32_t low = (uint32_t)bits;
    const void *at = bytes == 4 ? (const void *)&low : (const void *)&bits;
    memset(&rules, 0, sizeof rules);
    rules.style = DVT_PRINT_STR;
    rules.precision = -1;
    format = dvti_element_plan(&rules, bytes == 4 ? DVT_F32 : DVT_F64, at, 1, 0);
    dvti_element_text(text, &format, at);
}

static bool dvti_gguf_number(dvti_gguf *g, const char *key, unsigned type) {
    static const bool is_signed[DVTI_GGUF_TYPES] = {false, true,  false, true,  false, true, false,
                                                    false, false, false, false, true,  false};
    char text[DVTI_NUMBER_SIZE];
    int bytes = dvti_gguf_bytes[type];
    uint64_t value = dvti_source_le(g->in, bytes);
    if (g->in->ended)
        return dvti_gguf_wrong(g, key, "goes beyond the end of the file");
    if (type == DVTI_GGUF_BOOL && value > 1)
        return dvti_gguf_wrong(g, key, "is a bool other than 0 and 1");
    if (type == DVTI_GGUF_BOOL)
        snprintf(text, sizeof text, "%s", value ? "true" : "false");
    else if (type == DVTI_GGUF_F32 || type == DVTI_GGUF_F64)
        dvti_gguf_float(text, value, bytes);
    else if (is_signed[type])
        snprintf(text, sizeof text, "%lld", (long long)dvti_signed(value, bytes));
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (strcmp(key, "general.alignment") == 0) {
        if (type != DVTI_GGUF_U32 || value < 8 || (value & (value - 1)) != 0)
            return dvti_gguf_wrong(g, key, "is no uint32 that is a power of two from 8 on");
        g->alignment = (int64_t)value;
    }
    return dvti_array_list_note(g->in->function, g->tensors.list, key, text);
}

static bool dvti_gguf_value(dvti_gguf *g, const char *key) {
    uint64_t type = dvti_source_le(g->in, 4);
    char *text;
    bool good;
    if (g->in->ended || type >= DVTI_GGUF_TYPES)
        return dvti_gguf_wrong(g, key, "is cut off, or of an unknown type");
    if (type != DVTI_GGUF_STRING && type != DVTI_GGUF_ARRAY)
        return dvti_gguf_number(g, key, (unsigned)type);
    if (strcmp(key, "general.alignment") == 0)
        return dvti_gguf_wrong(g, key, "is no number");
    if (type == DVTI_GGUF_ARRAY)
        return dvti_gguf_skip(g, key, 0);
    text = dvti_gguf_text(g, "a text of its metadata");
    good = text && dvti_array_list_note(g->in->function, g->tensors.list, key, text);
    dvti_free(text);
    return good;
}

static bool dvti_gguf_pair(dvti_gguf *g) {
    size_t need = (size_t)g->keys + 1;
    char *key;
    if (!dvti_grow((void **)&g->key, &g->capacity, need, sizeof *g->key)) {
        dvti_fail_memory(g->in->function, (int64_t)(need * sizeof *g->key));
        return false;
    }
    key = dvti_gguf_text(g, "a key of its metadata");
    if (!key)
        return false;
    g->key[g->keys++] = key;
    if (!*key || strlen(key) > DVTI_GGUF_KEY)
        return dvti_gguf_wrong(g, key, "is a key without characters, or with more than 65535");
    return dvti_gguf_value(g, key);
}

static bool dvti_gguf_metadata(dvti_gguf *g) {
    const char *duplicate = NULL;
    int64_t i;
    for (i = 0; i < g->n_metadata; i++)
        if (!dvti_gguf_pair(g))
            return false;
    if (g->keys &&
        !dvti_names_duplicate(g->in->function, (const char *const *)g->key, g->keys, 1, &duplicate))
        return false;
    return !duplicate || dvti_gguf_wrong(g, duplicate, "occurs twice");
}

/* ---- tensors ---- */
typedef struct dvti_gguf_type {
    const char *name;
    char kind;
    int bytes; /* 0: quantized */
    dvt_dtype dtype;
} dvti_gguf_type;

static const dvti_gguf_type dvti_gguf_types[] = {
    {"F32", 'f', 4, DVT_F32}, {"F16", 'f', 2, DVT_F16},  {"I8", 'i', 1, DVT_I8},
    {"I16", 'i', 2, DVT_I32}, {"I32", 'i', 4, DVT_I32},  {"I64", 'i', 8, DVT_I64},
    {"F64", 'f', 8, DVT_F64}, {"BF16", 'f', 2, DVT_BF16}};
static const int dvti_gguf_type_numbers[] = {0, 1, 24, 25, 26, 27, 28, 30};

/* Returns the number of the type that all elements of the dtype have, -1 if there is none. */
DVTI_FN int dvti_gguf_number_of(dvt_dtype dtype) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_gguf_types); i++)
        if (dvti_gguf_types[i].dtype == dtype &&
            dvti_gguf_types[i].bytes == (int)dvt_dtype_size(dtype))
            return dvti_gguf_type_numbers[i];
    return -1;
}

/* Returns the row of a type, without a name if the type is unknown or was removed. */
static dvti_gguf_type dvti_gguf_type_of(uint64_t type) {
    static const char *const quantized[] = {
        "",      "",           "Q4_0",       "Q4_1",       "",         "",         "Q5_0",
        "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
        "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
        "IQ3_S", "IQ2_S",      "IQ4_XS",     "",           "",         "",         "",
        "",      "IQ1_M",      "",           "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
        "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4"};
    dvti_gguf_type row;
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_gguf_types); i++)
        if (type == (uint64_t)dvti_gguf_type_numbers[i])
            return dvti_gguf_types[i];
    memset(&row, 0, sizeof row);
    row.name = type < (uint64_t)DVTI_LENGTH(quantized) ? quantized[type] : "";
    return row;
}

static bool dvti_gguf_stored(const dvti_gguf *g, dvti_tensor *x) {
    uint64_t type = dvti_source_le(g->in, 4);
    dvti_gguf_type row = dvti_gguf_type_of(type);
    if (row.bytes == 0 && *row.name)
        return dvti_source_wrong(g->in,
                                 "tensor \"%.100s\" is quantized (%s), which devtensor does not "
                                 "have; convert the file with llama-quantize --allow-requantize "
                                 "IN.gguf OUT.gguf F16",
                                 x->name, row.name);
    if (row.bytes == 0)
        return dvti_source_wrong(g->in,
                                 "tensor \"%.100s\" has the unknown type %llu; convert the "
                                 "file to F16",
                                 x->name, (unsigned long long)type);
    x->stored.kind = row.kind;
    x->stored.bytes = row.bytes;
    x->stored.dtype = row.dtype;
    return true;
}

static bool dvti_gguf_tensor(dvti_gguf *g) {
    char *name = dvti_gguf_text(g, "the name of a tensor");
    dvti_tensor *x = name ? dvti_tensors_add(&g->tensors, name) : NULL;
    uint64_t ndim;
    int i;
    if (!x)
        return false;
    ndim = dvti_source_le(g->in, 4);
    if (ndim > DVT_MAX_DIMS)
        return dvti_tensors_wrong(&g->tensors, x, "has more than 8 axes");
    x->shape.ndim = (int)ndim;
    for (i = x->shape.ndim - 1; i >= 0; i--) {
        x->shape.dim[i] = dvti_signed(dvti_source_le(g->in, 8), 8);
        if (x->shape.dim[i] < 0)
            return dvti_tensors_wrong(&g->tensors, x, "has an extent of 2^63 or more");
    }
    if (!dvti_gguf_stored(g, x))
        return false;
    x->begin = dvti_signed(dvti_source_le(g->in, 8), 8);
    if (x->begin < 0)
        return dvti_tensors_wrong(&g->tensors, x, "begins at byte 2^63 of the data or later");
    if (g->in->ended)
        return dvti_source_wrong(g->in, "it ends within its header; fetch it again");
    return dvti_stored_bytes(&x->stored, &x->shape, &x->bytes) ||
           dvti_tensors_wrong(&g->tensors, x, "has a shape that is more than any file holds");
}

/* ---- the file ---- */
static bool dvti_gguf_begin(dvti_gguf *g) {
    uint64_t version, tensors, metadata, left;
    if (!dvti_gguf_recognizes(g->in))
        return dvti_source_other_format(g->in, "a GGUF file (those begin with GGUF)");
    dvti_source_skip(g->in, 4);
    version = dvti_source_le(g->in, 4);
    tensors = dvti_source_le(g->in, 8);
    metadata = dvti_source_le(g->in, 8);
    if (!g->in->ended && (version & 0xffff) == 0 && version)
        return dvti_source_wrong(g->in, "it is big-endian; write it again as little-endian");
    if (g->in->ended || version < 2 || version > 3)
        return dvti_source_wrong(g->in, "it ends within its header, or has an unknown version; "
                                        "expected 2 or 3: write it again");
    left = (uint64_t)dvti_source_left(g->in);
    /* A pair has at least 13 bytes, the description of a tensor 24. */
    if (metadata > left / 13 || tensors > left / 24 || metadata > (uint64_t)INT_MAX ||
        tensors > (uint64_t)INT_MAX)
        return dvti_source_wrong(g->in, "its header promises more than the file can hold; fetch "
                                        "or write it again");
    g->n_tensors = (int64_t)tensors;
    g->n_metadata = (int64_t)metadata;
    return true;
}

/* The elements begin at a multiple of the alignment. A file without tensors may end before it. */
static bool dvti_gguf_align(const dvti_gguf *g) {
    int64_t over = g->in->taken % g->alignment;
    if (over == 0 || (g->n_tensors == 0 && dvti_source_at_end(g->in)))
        return true;
    return dvti_source_zeros(g->in, g->alignment - over);
}

static bool dvti_gguf_read(dvti_gguf *g, dvt_ctx ctx) {
    int64_t i;
    if (!dvti_gguf_begin(g) || !dvti_gguf_metadata(g))
        return false;
    for (i = 0; i < g->n_tensors; i++)
        if (!dvti_gguf_tensor(g))
            return false;
    g->tensors.alignment = g->alignment;
    return dvti_gguf_align(g) && dvti_tensors_read(&g->tensors, ctx);
}

DVTI_FN dvt_array_list *dvti_gguf_list(dvti_source *in, dvt_ctx ctx) {
    dvti_gguf g;
    dvt_array_list *list;
    memset(&g, 0, sizeof g);
    g.in = in;
    g.alignment = DVTI_GGUF_ALIGNMENT;
    list = dvti_tensors_begin(&g.tensors, in) && dvti_gguf_read(&g, ctx) ? g.tensors.list : NULL;
    dvti_tensors_free(&g.tensors);
    while (g.keys > 0)
        dvti_free(g.key[--g.keys]);
    dvti_free(g.key);
    return list;
}

DVT_API dvt_array_list *dvt_load_gguf(const char *path, dvt_ctx ctx) {
    return dvti_list_load("dvt_load_gguf", path, ctx, dvti_gguf_list);
}

DVT_API dvt_array_list *dvt_read_gguf(const void *data, size_t bytes, dvt_ctx ctx) {
    return dvti_list_read("dvt_read_gguf", data, bytes, ctx, dvti_gguf_list);
}

#undef DVTI_GGUF_DEPTH
