/* Directories of checkpoints: the newest complete one, and the best few. */
#include "7_train/dvt_checkpoint_internal.h"

#if defined(DVTI_CHECKPOINTS)
#define DVTI_CHECKPOINT_STEM "checkpoint-"
#define DVTI_CHECKPOINT_END ".safetensors"

typedef struct dvti_kept {
    char *path;
    int64_t step, epoch, changed;
    double metric;
    bool ours; /* named as dvt_checkpoint_keep_best names files */
} dvti_kept;

typedef struct dvti_folder {
    const char *function, *folder;
    dvti_kept *item;
    size_t count, capacity;
    bool temporary;  /* delete what killed processes left */
    bool memory;     /* exhausted */
    bool unreadable; /* a file could not be read */
    bool tells;      /* of checkpoints that are cut off */
} dvti_folder;

static char *dvti_folder_path(const char *folder, const char *name) {
    const size_t n = strlen(folder), bytes = n + strlen(name) + 2;
    char *path = (char *)dvti_alloc(bytes);
    if (path)
        snprintf(path, bytes, "%s%s%s", folder, dvti_path_directory(folder) == n ? "" : "/", name);
    return path;
}

static void dvti_folder_visit(void *user, const char *name, int64_t bytes, int64_t changed,
                              bool directory) {
    dvti_folder *f = (dvti_folder *)user;
    const size_t n = strlen(name);
    const bool temporary = strncmp(name, DVTI_TEMPORARY, sizeof DVTI_TEMPORARY - 1) == 0;
    dvti_kept *item;
    char *path;
    (void)bytes;
    if (directory || f->memory ||
        !(temporary ? f->temporary && dvti_temporary_left(name, changed)
                    : dvti_ends_with(name, n, DVTI_CHECKPOINT_END)))
        return;
    path = dvti_folder_path(f->folder, name);
    f->memory = !path || !dvti_grow((void **)&f->item, &f->capacity, f->count + 1, sizeof *item);
    if (f->memory || temporary) {
        if (!f->memory)
            remove(path);
        dvti_free(path);
        return;
    }
    item = &f->item[f->count++];
    memset(item, 0, sizeof *item);
    item->path = path;
    item->changed = changed;
    item->ours = strncmp(name, DVTI_CHECKPOINT_STEM, sizeof DVTI_CHECKPOINT_STEM - 1) == 0;
}

/* Reads the header, or verifies all. Returns false for files that are no checkpoints, damaged or
   unreadable. */
static bool dvti_kept_read(dvti_folder *f, dvti_kept *item, bool all) {
    const dvti_attempt attempt = dvti_attempt_begin();
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array_list *list =
        all ? dvti_checkpoint_read(f->function, item->path)
            : dvti_list_load(f->function, item->path, dvt_cpu(), dvti_safetensors_notes);
    int64_t version = 0;
    bool good =
        list && (all || (dvti_noted_number(list, DVTI_CHECKPOINT_FORMAT, DVT_I64, &version) &&
                         dvti_noted_number(list, "step", DVT_I64, &item->step) &&
                         dvti_noted_number(list, "epoch", DVT_I64, &item->epoch) &&
                         dvti_noted_number(list, "metric", DVT_F64, &item->metric)));
    const bool unreadable = !good && dvti_failure() == DVT_ERR_IO;
    dvt_scope_end(&scope);
    f->memory = f->memory || dvti_failure() == DVT_ERR_HOST_MEMORY;
    f->unreadable = f->unreadable || unreadable;
    if (!good && f->tells && !f->memory && (all || item->ours || unreadable))
        dvti_log(DVT_LOG_WARNING,
                 "%s: '%.300s' %s; an older checkpoint is looked for. The reason: %s", f->function,
                 item->path, unreadable ? "cannot be read" : "is damaged",
                 attempt.clean && *dvt_error() ? dvt_error() : "see level debug");
    dvti_attempt_end(&attempt);
    return good;
}

static void dvti_folder_free(dvti_folder *f) {
    size_t i;
    for (i = 0; i < f->count; i++)
        dvti_free(f->item[i].path);
    dvti_free(f->item);
}

/* Lists the checkpoints of the directory. Returns false with HOST_MEMORY or IO set. */
static bool dvti_folder_list(dvti_folder *f) {
    size_t i, n = 0;
    if (!dvti_private_list(f->folder, dvti_folder_visit, f) && errno != ENOENT) {
        dvti_fail(DVT_ERR_IO, "%s: the directory \"%.300s\" could not be listed: %s", f->function,
                  f->folder, strerror(errno));
        return false;
    }
    for (i = 0; i < f->count && !f->memory; i++) {
        dvti_kept item = f->item[i];
        if (dvti_kept_read(f, &item, false))
            f->item[n++] = item;
        else
            dvti_free(item.path);
    }
    for (; i < f->count; i++)
        dvti_free(f->item[i].path);
    f->count = n;
    if (f->memory)
        dvti_fail_memory(f->function, (int64_t)((n + 1) * sizeof *f->item));
    return !f->memory;
}

/* ---- the newest ---- */
static int dvti_kept_newest(const void *a, const void *b) {
    const dvti_kept *x = (const dvti_kept *)a, *y = (const dvti_kept *)b;
    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->epoch != y->epoch)
        return x->epoch > y->epoch ? -1 : 1;
    if (x->changed != y->changed)
        return x->changed > y->changed ? -1 : 1;
    return strcmp(y->path, x->path);
}

static bool dvti_folder_newest(dvti_folder *f, char *path, size_t size) {
    size_t i = 0;
    f->tells = true;
    if (!dvti_folder_list(f))
        return false;
    if (f->count > 1)
        qsort(f->item, f->count, sizeof *f->item, dvti_kept_newest);
    while (i < f->count && !dvti_kept_read(f, &f->item[i], true) && !f->memory)
        i++;
    if (f->memory)
        dvti_fail_memory(f->function, DVTI_SOURCE_PEEK);
    else if (i == f->count && f->unreadable)
        dvti_fail(DVT_ERR_IO, "%s: no checkpoint of \"%.300s\" can be read; the log says why",
                  f->function, f->folder);
    if (i == f->count || f->memory)
        return false;
    if (strlen(f->item[i].path) >= size) {
        dvti_fail(DVT_ERR_RANGE, "%s: size is %lld; expected %lld bytes for the path '%.300s'",
                  f->function, (long long)size, (long long)strlen(f->item[i].path) + 1,
                  f->item[i].path);
        return false;
    }
    snprintf(path, size, "%s", f->item[i].path);
    return true;
}

static dvti_folder dvti_folder_begin(const char *function, const char *folder) {
    dvti_folder f;
    memset(&f, 0, sizeof f);
    f.function = function;
    f.folder = folder && !*folder ? "." : folder;
    return f;
}

DVT_API bool dvt_checkpoint_latest(const char *folder, char *path, size_t size) {
    dvti_folder f = dvti_folder_begin("dvt_checkpoint_latest", folder);
    bool found;
    if (!folder || !path) {
        dvti_null(f.function, folder ? "path" : "folder");
        return false;
    }
    found = dvti_folder_newest(&f, path, size);
    dvti_folder_free(&f);
    return found;
}

/* ---- the best ---- */
/* The largest metric first; NaN last. */
static int dvti_kept_best(const void *a, const void *b) {
    const dvti_kept *x = (const dvti_kept *)a, *y = (const dvti_kept *)b;
    const bool x_nan = x->metric != x->metric, y_nan = y->metric != y->metric;
    if (x_nan != y_nan)
        return x_nan ? 1 : -1;
    if (!x_nan && x->metric != y->metric)
        return x->metric > y->metric ? -1 : 1;
    return dvti_kept_newest(a, b);
}

/* Deletes all files but the first n and the one at `saved`. A file that cannot be deleted does not
   make the saved one wrong. */
static void dvti_folder_thin(dvti_folder *f, int n, const char *saved) {
    size_t i, kept = 0;
    for (i = 0; i < f->count; i++) {
        const dvti_kept *item = &f->item[i];
        if (!item->ours || (kept < (size_t)n && ++kept) || strcmp(item->path, saved) == 0)
            continue;
        if (remove(item->path) != 0)
            dvti_log(DVT_LOG_WARNING, "%s: '%.300s' could not be deleted: %s", f->function,
                     item->path, strerror(errno));
    }
}

static dvt_status dvti_folder_keep(dvti_folder *f, const char *saved, int n, dvt_extreme best) {
    size_t i;
    f->temporary = true;
    if (!dvti_folder_list(f))
        return dvti_failure();
    for (i = 0; best == DVT_SMALLEST && i < f->count; i++)
        f->item[i].metric = -f->item[i].metric;
    if (f->count > 1)
        qsort(f->item, f->count, sizeof *f->item, dvti_kept_best);
    dvti_folder_thin(f, n, saved);
    return DVT_OK;
}

DVT_API dvt_status dvt_checkpoint_keep_best(const dvt_checkpoint *c, const char *folder, int n,
                                            dvt_extreme best) {
    dvti_folder f = dvti_folder_begin("dvt_checkpoint_keep_best", folder);
    char name[80], *path;
    dvt_status status;
    if (!c || !folder)
        return dvti_null(f.function, c ? "folder" : "c");
    if (n < 0)
        return dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected the number of files, at least 0",
                         f.function, n);
    snprintf(name, sizeof name, DVTI_CHECKPOINT_STEM "%09lld" DVTI_CHECKPOINT_END,
             (long long)dvti_checkpoint_step(c));
    path = dvti_folder_path(f.folder, name);
    if (!path)
        return dvti_fail_memory(f.function, (int64_t)strlen(folder) + (int64_t)sizeof name);
    (void)dvti_directories_make(f.folder); /* the writer reports a failure */
    status = dvti_checkpoint_write(f.function, c, path);
    if (status == DVT_OK)
        status = dvti_folder_keep(&f, path, n, best);
    dvti_folder_free(&f);
    dvti_free(path);
    return status;
}

#undef DVTI_CHECKPOINT_STEM
#undef DVTI_CHECKPOINT_END
#endif
