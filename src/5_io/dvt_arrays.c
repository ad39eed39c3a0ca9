/* The formats of lists of arrays. Files are recognized by their first bytes, and written by the
   extension of their name, in small or capital letters. */
#include "5_io/dvt_io_internal.h"

/* ---- the first bytes of each format ---- */
static bool dvti_source_begins(dvti_source *in, const char *bytes, size_t n) {
    return dvti_source_peek(in, n) && memcmp(in->at, bytes, n) == 0;
}

DVTI_FN bool dvti_safetensors_recognizes(dvti_source *in) {
    return dvti_source_peek(in, 9) && in->at[8] == '{' &&
           dvti_bytes_value(in->at, 8, false) <= DVTI_SAFETENSORS_HEADER;
}

DVTI_FN bool dvti_shards_recognizes(dvti_source *in) {
    return dvti_source_begins(in, "{", 1) && !dvti_safetensors_recognizes(in);
}

DVTI_FN bool dvti_gguf_recognizes(dvti_source *in) {
    return dvti_source_begins(in, "GGUF", 4);
}

/* An archive without members begins with its end record. */
DVTI_FN bool dvti_npz_recognizes(dvti_source *in) {
    return dvti_source_begins(in, "PK\3\4", 4) || dvti_source_begins(in, "PK\5\6", 4);
}

/* A new format of lists is one row. The first row that recognizes a file reads it. */
static const dvti_list_format dvti_list_formats[] = {
    {"a safetensors file", "safetensors", ".safetensors", dvti_safetensors_recognizes,
     dvti_safetensors_list, dvti_safetensors_save},
    {"the index of a model in several safetensors files", "safetensors", ".safetensors.index.json",
     dvti_shards_recognizes, dvti_shards_list, NULL},
    {"a GGUF file", "gguf", ".gguf", dvti_gguf_recognizes, dvti_gguf_list, dvti_gguf_save},
    {"an MXNet parameter file", "params", ".params", dvti_params_recognizes, dvti_params_list,
     dvti_params_save},
    {"a NumPy .npz archive", "npz", ".npz", dvti_npz_recognizes, dvti_npz_list, dvti_npz_save},
};

DVTI_FN bool dvti_ends_with(const char *text, size_t n, const char *end) {
    const size_t m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

DVTI_FN bool dvti_path_ends_with(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    size_t i;
    for (i = 0; n >= m && i < m; i++) {
        char c = path[n - m + i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != end[i])
            return false;
    }
    return n >= m;
}

DVTI_FN bool dvti_file_plain(const char *function, const char *path) {
    if (!path || !dvti_path_ends_with(path, ".gz"))
        return true;
    dvti_fail(DVT_ERR_VALUE,
              "%s: \"%.300s\" ends with .gz, but this writer does not compress: leave that out",
              function, path);
    return false;
}

DVTI_FN const dvti_list_format *dvti_list_format_of(const char *path) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_list_formats); i++)
        if (dvti_path_ends_with(path, dvti_list_formats[i].extension))
            return &dvti_list_formats[i];
    return NULL;
}

static const dvti_list_format *dvti_list_format_in(dvti_source *in) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_list_formats); i++)
        if (dvti_list_formats[i].recognizes(in))
            return &dvti_list_formats[i];
    return NULL;
}

/* ---- files of other kinds ---- */
static bool dvti_source_is_pytorch(dvti_source *in) {
    size_t i;
    if (!dvti_npz_recognizes(in))
        return false;
    dvti_source_peek(in, 512);
    for (i = 0; i + 8 <= in->ready && i + 8 <= 512; i++)
        if (memcmp(in->at + i, "data.pkl", 8) == 0)
            return true;
    return false;
}

/* Returns what a file of a single array is, and its reader as in dvti_list_format; NULL: another
   file. */
static const char *dvti_source_is_one(dvti_source *in, const char **reader) {
    *reader = "npy";
    if (dvti_source_begins(in, "\x93NUMPY", 6))
        return "a NumPy .npy file";
    *reader = "image";
    if (dvti_source_begins(in, "\x89PNG\r\n\x1a\n", 8) ||
        (dvti_source_peek(in, 3) && in->at[0] == 'P' && in->at[1] && strchr("2356", in->at[1]) &&
         in->at[2] <= ' '))
        return "an image";
    *reader = "idx";
    return dvti_source_peek(in, 4) && in->at[0] == 0 && in->at[1] == 0 && in->at[2] >= 8 &&
                   in->at[2] <= 14 && in->at[2] != 10 && in->at[3] >= 1 && in->at[3] <= DVT_MAX_DIMS
               ? "an IDX file"
               : NULL;
}

DVTI_FN bool dvti_source_other_format(dvti_source *in, const char *expected) {
    const dvti_list_format *format = dvti_list_format_in(in);
    const char *reader, *one = dvti_source_is_one(in, &reader);
    const char *verb = in->path ? "load" : "read";
    char begins[40];
    dvti_text text = dvti_text_begin(begins, sizeof begins);
    size_t i;
    if (dvti_source_is_pytorch(in))
        return dvti_source_wrong(in, "this is a PyTorch file, which contains a program; load it "
                                     "there and save its arrays with safetensors.torch.save_file");
    if (format)
        return dvti_source_wrong(in, "this is %s; read it with dvt_%s_%s or dvt_%s_arrays",
                                 format->name, verb, format->reader, verb);
    if (one)
        return dvti_source_wrong(in, "this is %s; read it with dvt_%s_%s", one, verb, reader);
    dvti_text_add(&text, dvti_source_peek(in, 1) ? "it begins with" : "it is empty");
    dvti_source_peek(in, 4);
    for (i = 0; i < in->ready && i < 4; i++)
        dvti_text_add(&text, " %02x", in->at[i]);
    return dvti_source_wrong(in, "this is not %s: %s; check %s", expected, begins,
                             in->path ? "that the path names the right file"
                                      : "where the bytes come from");
}

/* ---- any format ---- */
DVTI_FN dvt_array_list *dvti_arrays_list(dvti_source *in, dvt_ctx ctx) {
    const dvti_list_format *format = dvti_source_is_pytorch(in) ? NULL : dvti_list_format_in(in);
    if (format)
        return format->reads(in, ctx);
    dvti_source_other_format(in, "a file of arrays: safetensors, GGUF, .npz or MXNet .params");
    return NULL;
}

DVTI_FN dvt_array_list *dvti_arrays_load(const char *function, const char *path, dvt_ctx ctx) {
    return dvti_list_load(function, path, ctx, dvti_arrays_list);
}

DVT_API dvt_array_list *dvt_load_arrays(const char *path, dvt_ctx ctx) {
    return dvti_arrays_load("dvt_load_arrays", path, ctx);
}

DVT_API dvt_array_list *dvt_read_arrays(const void *data, size_t bytes, dvt_ctx ctx) {
    return dvti_list_read("dvt_read_arrays", data, bytes, ctx, dvti_arrays_list);
}

DVT_API dvt_status dvt_save_arrays(const char *path, dvt_array *const *arrays,
                                   const char *const *names, int n) {
    const dvti_list_format *format;
    if (!path)
        return dvti_null("dvt_save_arrays", "path");
    format = dvti_list_format_of(path);
    if (!format || !format->saves)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_save_arrays: the end of \"%.300s\" names no format that is written; "
                         "expected .safetensors, .gguf, .npz or .params",
                         path);
    return format->saves("dvt_save_arrays", path, arrays, names, n);
}
