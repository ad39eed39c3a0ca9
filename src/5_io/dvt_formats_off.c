/* The functions of a build with DEVTENSOR_NO_FORMATS: those of the formats it leaves out fail. */
#include "5_io/dvt_io_internal.h"

#if defined(DEVTENSOR_NO_FORMATS)

DVTI_FN dvt_status dvti_no_formats(const char *function) {
    return dvti_fail(DVT_ERR_NOT_BUILT,
                     "%s: this build was compiled with DEVTENSOR_NO_FORMATS, which leaves this "
                     "format out; use .npy, .params, IDX or bytes, or compile without that switch",
                     function);
}

/* ---- gzip ---- */
DVTI_FN bool dvti_source_gunzip(dvti_source *in) {
    if (!dvti_source_peek(in, 2) || in->at[0] != 0x1f || in->at[1] != 0x8b)
        return true;
    dvti_no_formats(in->function);
    in->reported = true;
    return false;
}

DVTI_FN bool dvti_unpack_more(dvti_source *in) {
    (void)in;
    return false;
}

DVTI_FN void dvti_unpack_free(dvti_unpack *unpack) {
    (void)unpack;
}

/* ---- rows of the table of lists ---- */
#define DVTI_OFF_READS(name)                                                                       \
    DVTI_FN dvt_array_list *name(dvti_source *in, dvt_ctx ctx) {                                   \
        (void)ctx;                                                                                 \
        dvti_no_formats(in->function);                                                             \
        return NULL;                                                                               \
    }
#define DVTI_OFF_SAVES(name)                                                                       \
    DVTI_FN dvt_status name(const char *function, const char *path, dvt_array *const *arrays,      \
                            const char *const *names, int n) {                                     \
        (void)path, (void)arrays, (void)names, (void)n;                                            \
        return dvti_no_formats(function);                                                          \
    }

DVTI_OFF_READS(dvti_npz_list)
DVTI_OFF_READS(dvti_safetensors_list)
DVTI_OFF_READS(dvti_shards_list)
DVTI_OFF_READS(dvti_gguf_list)
DVTI_OFF_SAVES(dvti_npz_save)
DVTI_OFF_SAVES(dvti_safetensors_save)
DVTI_OFF_SAVES(dvti_gguf_save)

/* ---- public functions ---- */
static void dvti_off_nothing(dvt_array **x) {
    if (x)
        *x = NULL;
}

#define DVTI_OFF(type, none, name, parameters, unused)                                             \
    DVT_API type name parameters {                                                                 \
        unused;                                                                                    \
        dvti_no_formats(#name);                                                                    \
        return none;                                                                               \
    }
#define DVTI_OFF_LOAD(type, name)                                                                  \
    DVTI_OFF(type, NULL, dvt_load_##name, (const char *path, dvt_ctx ctx),                         \
             ((void)path, (void)ctx))                                                              \
    DVTI_OFF(type, NULL, dvt_read_##name, (const void *data, size_t bytes, dvt_ctx ctx),           \
             ((void)data, (void)bytes, (void)ctx))
#define DVTI_OFF_CSV(type, name)                                                                   \
    DVTI_OFF(type, NULL, dvt_load_##name,                                                          \
             (const char *path, const dvt_csv_options *options, dvt_ctx ctx),                      \
             ((void)path, (void)options, (void)ctx))                                               \
    DVTI_OFF(type, NULL, dvt_read_##name,                                                          \
             (const void *data, size_t bytes, const dvt_csv_options *options, dvt_ctx ctx),        \
             ((void)data, (void)bytes, (void)options, (void)ctx))
DVTI_OFF_LOAD(dvt_array_list *, npz)
DVTI_OFF_LOAD(dvt_array_list *, safetensors)
DVTI_OFF_LOAD(dvt_array_list *, gguf)
DVTI_OFF_LOAD(dvt_array *, image)
DVTI_OFF_CSV(dvt_array *, csv)
DVTI_OFF_CSV(dvt_array_list *, csv_columns)
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_npz,
         (const char *path, dvt_array *const *arrays, const char *const *names, int n),
         ((void)path, (void)arrays, (void)names, (void)n))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_npz_compressed,
         (const char *path, dvt_array *const *arrays, const char *const *names, int n),
         ((void)path, (void)arrays, (void)names, (void)n))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_safetensors,
         (const char *path, dvt_array *const *arrays, const char *const *names, int n,
          const char *const *metadata),
         ((void)path, (void)arrays, (void)names, (void)n, (void)metadata))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_safetensors_shards,
         (const char *path, dvt_array *const *arrays, const char *const *names, int n,
          const char *const *metadata, int64_t bytes),
         ((void)path, (void)arrays, (void)names, (void)n, (void)metadata, (void)bytes))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_gguf,
         (const char *path, dvt_array *const *arrays, const char *const *names, int n,
          const char *const *metadata),
         ((void)path, (void)arrays, (void)names, (void)n, (void)metadata))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_cifar10,
         (const char *path, dvt_array *x, dvt_array *y), ((void)path, (void)x, (void)y))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_cifar100,
         (const char *path, dvt_array *x, dvt_array *coarse, dvt_array *fine),
         ((void)path, (void)x, (void)coarse, (void)fine))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_image, (const char *path, dvt_array *x),
         ((void)path, (void)x))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_save_csv,
         (const char *path, dvt_array *x, const char *const *column_names),
         ((void)path, (void)x, (void)column_names))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_read_cifar10,
         (const void *data, size_t bytes, dvt_array **x, dvt_array **y),
         ((void)data, (void)bytes, dvti_off_nothing(x), dvti_off_nothing(y)))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_read_cifar100,
         (const void *data, size_t bytes, dvt_cifar100_labels labels, dvt_array **x, dvt_array **y),
         ((void)data, (void)bytes, (void)labels, dvti_off_nothing(x), dvti_off_nothing(y)))
DVTI_OFF(dvt_board *, NULL, dvt_board_new, (const char *folder), (void)folder)
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_board_scalar,
         (dvt_board * board, const char *tag, double value, int64_t step),
         ((void)board, (void)tag, (void)value, (void)step))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_board_histogram,
         (dvt_board * board, const char *tag, dvt_array *x, int64_t step),
         ((void)board, (void)tag, (void)x, (void)step))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_board_image,
         (dvt_board * board, const char *tag, dvt_array *x, int64_t step),
         ((void)board, (void)tag, (void)x, (void)step))
DVTI_OFF(dvt_status, DVT_ERR_NOT_BUILT, dvt_board_text,
         (dvt_board * board, const char *tag, const char *text, int64_t step),
         ((void)board, (void)tag, (void)text, (void)step))

#undef DVTI_OFF
#undef DVTI_OFF_LOAD
#undef DVTI_OFF_CSV
#undef DVTI_OFF_READS
#undef DVTI_OFF_SAVES

#endif
