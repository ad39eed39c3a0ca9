/* The formats of lists of arrays. Files are recognized by their first bytes, and written by the
   extension of their name. */
#include "5_io/dvt_io_internal.h"

/* A new format of lists is one row. The first row that recognizes a file reads it. */
static const dvti_list_format dvti_list_formats[] = {
    {"a safetensors file", "dvt_load_safetensors", ".safetensors", dvti_safetensors_recognizes,
     dvti_safetensors_list, dvti_safetensors_save},
    {"the index of a model in several safetensors files", "dvt_load_safetensors",
     ".safetensors.index.json", dvti_shards_recognizes, dvti_shards_list, NULL},
    {"a GGUF file", "dvt_load_gguf", ".gguf", dvti_gguf_recognizes, dvti_gguf_list, NULL},
    {"an MXNet parameter file", "dvt_load_params", ".params", dvti_params_recognizes,
     dvti_params_list, dvti_params_save},
    {"a NumPy .npz archive", "dvt_load_npz", ".npz", dvti_npz_recognizes, dvti_npz_list,
     dvti_npz_save},
};

DVTI_FN bool dvti_ends_with(const char *text, size_t n, const char *end) {
    const size_t m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

DVTI_FN const dvti_list_format *dvti_list_format_of(const char *path) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_list_formats); i++)
        if (dvti_ends_with(path, strlen(path), dvti_list_formats[i].extension))
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
static bool dvti_bytes_contain(const unsigned char *at, size_t size, const char *text) {
    size_t n = strlen(text), i;
    for (i = 0; i + n <= size; i++)
        if (memcmp(at + i, text, n) == 0)
            return true;
    return false;
}

/* Says what a file without a reader of lists is; NULL: unknown. */
static const char *dvti_source_is(dvti_source *in) {
    const unsigned char *at;
    size_t size;
    dvti_source_peek(in, 512);
    at = in->at;
    size = in->ready < 512 ? in->ready : 512;
    if (size >= 4 && memcmp(at, "PK\3\4", 4) == 0 && dvti_bytes_contain(at, size, "data.pkl"))
        return "a PyTorch file, which contains a program; load it there and save its arrays with "
               "safetensors.torch.save_file";
    if (size >= 6 && memcmp(at, "\x93NUMPY", 6) == 0)
        return "a NumPy .npy file; read it with dvt_load_npy";
    return NULL;
}

DVTI_FN bool dvti_source_other_format(dvti_source *in, const char *expected) {
    const dvti_list_format *format = dvti_list_format_in(in);
    const char *is = dvti_source_is(in);
    if (is)
        return dvti_source_wrong(in, "this is %s", is);
    if (format)
        return dvti_source_wrong(in, "this is %s; read it with %s or dvt_load_arrays", format->name,
                                 format->function);
    return dvti_source_wrong(in, "this is not %s; check that the path names the right one",
                             expected);
}

/* ---- any format ---- */
DVTI_FN dvt_array_list *dvti_arrays_list(dvti_source *in, dvt_ctx ctx) {
    const dvti_list_format *format = dvti_source_is(in) ? NULL : dvti_list_format_in(in);
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
                         "expected .safetensors, .npz or .params",
                         path);
    return format->saves("dvt_save_arrays", path, arrays, names, n);
}
