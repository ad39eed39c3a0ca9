/* CIFAR-10 and CIFAR-100 from the directories that their archives contain. */
#include "5_io/dvt_formats.h"
#include "7_train/dvt_train_internal.h"

#if defined(DEVTENSOR_NO_FORMATS)
DVT_API dvt_dataset *dvt_dataset_cifar10(const char *folder, dvt_dataset_part part) {
    (void)folder;
    (void)part;
    dvti_no_formats("dvt_dataset_cifar10");
    return NULL;
}

DVT_API dvt_dataset *dvt_dataset_cifar100(const char *folder, dvt_dataset_part part,
                                          dvt_cifar100_labels labels) {
    (void)folder;
    (void)part;
    (void)labels;
    dvti_no_formats("dvt_dataset_cifar100");
    return NULL;
}
#else

#define DVTI_CIFAR_FILES 5

#if !defined(DEVTENSOR_NO_FILES)
/* The files of one part. */
typedef struct dvti_cifar_files {
    const char *function;
    dvti_cifar_kind kind;
    int n;
    int64_t images[DVTI_CIFAR_FILES];
    dvti_source in[DVTI_CIFAR_FILES];
} dvti_cifar_files;

/* Writes the path of a file. `number` is part of its name, unless it is 0. */
static void dvti_cifar_path(char *path, size_t size, const char *folder, const char *archive,
                            const char *name, int number) {
    char text[12] = "";
    if (number)
        snprintf(text, sizeof text, "%d", number);
    snprintf(path, size, "%s/%s%s%s.bin", folder, archive, name, text);
}

/* Opens all files, and adds up their images. */
static bool dvti_cifar_open(dvti_cifar_files *files, char *const *path, int64_t *total) {
    int i;
    *total = 0;
    for (i = 0; i < files->n; i++)
        if (!dvti_source_open(&files->in[i], files->function, path[i]) ||
            !dvti_cifar_count(&files->in[i], files->kind, &files->images[i]) ||
            !dvti_sum(*total, files->images[i], total))
            return false;
    return true;
}

static dvt_dataset *dvti_cifar_dataset(dvti_cifar_files *files, char *const *path) {
    dvt_array *x, *y;
    int64_t total, at = 0;
    int i;
    if (!dvti_cifar_open(files, path, &total))
        return NULL;
    x = dvti_array_new(files->function, DVT_SHAPE(total, 32, 32, 3), DVT_U8, dvt_cpu());
    y = x ? dvti_array_new(files->function, DVT_SHAPE(total), DVT_I32, dvt_cpu()) : NULL;
    if (!y)
        return NULL;
    for (i = 0; i < files->n; at += files->images[i++])
        if (!dvti_cifar_fill(&files->in[i], files->kind, files->images[i],
                             (uint8_t *)dvti_view_of(x).data + at * DVTI_CIFAR_PIXELS,
                             (int32_t *)dvti_view_of(y).data + at))
            return NULL;
    return dvt_dataset_arrays(x, y);
}

/* Reads the files name.bin, or name1.bin to name5.bin, in `folder` or in the directory of the
   archive below it. */
static dvt_dataset *dvti_cifar_find(dvti_cifar_files *files, const char *folder,
                                    const char *archive, const char *name) {
    size_t size = strlen(folder) + strlen(archive) + 64;
    char *block = (char *)dvti_alloc(size * (size_t)files->n), *path[DVTI_CIFAR_FILES];
    int many = files->n > 1, i, k;
    dvt_dataset *data = NULL;
    dvt_scope_guard scope;
    if (!block) {
        dvti_fail_memory(files->function, (int64_t)size * files->n);
        return NULL;
    }
    for (k = 0; k < 2; k++) {
        for (i = 0; i < files->n; i++) {
            path[i] = block + (size_t)i * size;
            dvti_cifar_path(path[i], size, folder, k ? "" : archive, name, many ? i + 1 : 0);
        }
        if (dvti_dataset_file_exists(path[0]))
            break;
    }
    scope = dvt_scope_begin();
    if (k < 2)
        data = (dvt_dataset *)dvt_keep(dvti_cifar_dataset(files, path));
    else
        dvti_fail(DVT_ERR_IO,
                  "%s: no data in \"%.300s\"; looked for %s.bin there and in %s: unpack the "
                  "archive of the binary version there, or name another folder (nothing is "
                  "downloaded)",
                  files->function, folder, many ? "data_batch_1" : name, archive);
    dvt_scope_end(&scope);
    for (i = 0; i < files->n; i++)
        dvti_source_close(&files->in[i]);
    dvti_free(block);
    return data;
}

static dvt_dataset *dvti_cifar_part(const char *function, dvti_cifar_kind kind, const char *folder,
                                    const char *archive, const char *name, int n) {
    dvti_cifar_files files;
    int i;
    files.function = function;
    files.kind = kind;
    files.n = n;
    for (i = 0; i < n; i++)
        dvti_source_memory(&files.in[i], function, NULL, 0);
    return dvti_cifar_find(&files, folder, archive, name);
}
#else
static dvt_dataset *dvti_cifar_part(const char *function, dvti_cifar_kind kind, const char *folder,
                                    const char *archive, const char *name, int n) {
    (void)kind;
    (void)folder;
    (void)archive;
    (void)name;
    (void)n;
    dvti_fail(DVT_ERR_NOT_BUILT,
              "%s: this build was compiled with DEVTENSOR_NO_FILES; use dvt_read_cifar10 or "
              "dvt_read_cifar100 with dvt_dataset_arrays",
              function);
    return NULL;
}
#endif

static bool dvti_cifar_arguments(const char *function, const char *folder, dvt_dataset_part part) {
    if (!folder) {
        dvti_null(function, "folder");
        return false;
    }
    return dvti_choice(function, "part", (int)part, "DVT_DATASET_TRAIN", "DVT_DATASET_TEST");
}

DVT_API dvt_dataset *dvt_dataset_cifar10(const char *folder, dvt_dataset_part part) {
    static const char *const function = "dvt_dataset_cifar10";
    bool train = part == DVT_DATASET_TRAIN;
    if (!dvti_cifar_arguments(function, folder, part))
        return NULL;
    return dvti_cifar_part(function, dvti_cifar10(), folder, "cifar-10-batches-bin/",
                           train ? "data_batch_" : "test_batch", train ? DVTI_CIFAR_FILES : 1);
}

DVT_API dvt_dataset *dvt_dataset_cifar100(const char *folder, dvt_dataset_part part,
                                          dvt_cifar100_labels labels) {
    static const char *const function = "dvt_dataset_cifar100";
    if (!dvti_cifar_arguments(function, folder, part) ||
        !dvti_choice(function, "labels", (int)labels, "DVT_CIFAR100_FINE", "DVT_CIFAR100_COARSE"))
        return NULL;
    return dvti_cifar_part(function, dvti_cifar100(labels), folder, "cifar-100-binary/",
                           part == DVT_DATASET_TRAIN ? "train" : "test", 1);
}

#undef DVTI_CIFAR_FILES

#endif
