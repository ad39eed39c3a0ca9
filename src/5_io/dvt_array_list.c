/* Lists of named arrays and metadata, as files of parameters hold them. */
#include "5_io/dvt_io_internal.h"

static void dvti_array_list_destroy(void *object) {
    dvt_array_list *list = (dvt_array_list *)object;
    int i;
    for (i = 0; i < list->n; i++) {
        dvti_disown(list->array[i]);
        if (list->name)
            dvti_free(list->name[i]);
    }
    for (i = 0; i < 2 * list->n_metadata; i++)
        dvti_free(list->metadata[i]);
    dvti_free(list->array);
    dvti_free(list->name);
    dvti_free(list->metadata);
    dvti_free(list);
}

DVTI_FN dvt_array_list *dvti_array_list_new(const char *function) {
    dvt_array_list *list = (dvt_array_list *)dvti_alloc_zero(sizeof *list);
    if (!list)
        dvti_fail_memory(function, (int64_t)sizeof *list);
    if (list && dvti_object_begin(list, dvti_array_list_destroy, function))
        return list;
    dvti_free(list);
    return NULL;
}

DVTI_FN bool dvti_array_list_add(const char *function, dvt_array_list *list, dvt_array *x) {
    size_t need = (size_t)list->n + 1;
    if (!dvti_grow((void **)&list->array, &list->capacity, need, sizeof *list->array)) {
        dvti_fail_memory(function, (int64_t)(need * sizeof *list->array));
        return false;
    }
    dvti_scope_take(x);
    list->array[list->n++] = x;
    return true;
}

#if defined(DVTI_CHECKPOINTS)
DVTI_FN bool dvti_array_list_add_named(const char *function, dvt_array_list *list, const char *name,
                                       dvt_array *x) {
    size_t need = (size_t)list->n + 1;
    char *copy = dvti_strdup(name);
    if (!copy || !dvti_grow((void **)&list->name, &list->name_capacity, need, sizeof *list->name) ||
        !dvti_grow((void **)&list->array, &list->capacity, need, sizeof *list->array)) {
        dvti_free(copy);
        dvti_fail_memory(function, (int64_t)(need * sizeof *list->array));
        return false;
    }
    list->name[list->n] = copy;
    list->array[list->n++] = (dvt_array *)dvti_own(x);
    return true;
}
#endif

DVTI_FN bool dvti_array_list_begin_names(const char *function, dvt_array_list *list) {
    size_t bytes = sizeof(char *) * (size_t)list->n;
    list->name = (char **)dvti_alloc_zero(bytes);
    if (!list->name)
        dvti_fail_memory(function, (int64_t)bytes);
    return list->name != NULL;
}

DVTI_FN bool dvti_array_list_reserve(const char *function, dvt_array_list *list, int n) {
    if (!dvti_grow((void **)&list->array, &list->capacity, (size_t)n, sizeof *list->array)) {
        dvti_fail_memory(function, (int64_t)sizeof *list->array * n);
        return false;
    }
    if (n)
        memset(list->array, 0, sizeof *list->array * (size_t)n);
    list->n = n;
    return dvti_array_list_begin_names(function, list);
}

DVTI_FN bool dvti_array_list_note(const char *function, dvt_array_list *list, const char *key,
                                  const char *value) {
    size_t n = (size_t)list->n_metadata;
    bool good =
        n < (size_t)INT_MAX / 2 && dvti_grow((void **)&list->metadata, &list->metadata_capacity,
                                             n + 1, 2 * sizeof *list->metadata);
    if (good) {
        char **pair = list->metadata + 2 * n;
        pair[0] = dvti_strdup(key);
        pair[1] = dvti_strdup(value);
        list->n_metadata++;
        good = pair[0] && pair[1];
    }
    if (!good)
        dvti_fail_memory(function, (int64_t)(strlen(key) + strlen(value)) + 2);
    return good;
}

/* ---- checks of names and arguments ---- */
static int dvti_names_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

DVTI_FN bool dvti_names_duplicate(const char *function, const char *const *names, int n, int step,
                                  const char **duplicate) {
    const char **sorted = (const char **)dvti_alloc(sizeof *sorted * (size_t)n);
    int i;
    *duplicate = NULL;
    if (!sorted) {
        dvti_fail_memory(function, (int64_t)sizeof *sorted * n);
        return false;
    }
    for (i = 0; i < n; i++)
        sorted[i] = names[(size_t)i * (size_t)step];
    qsort((void *)sorted, (size_t)n, sizeof *sorted, dvti_names_compare);
    for (i = 1; i < n && !*duplicate; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            *duplicate = sorted[i];
    dvti_free((void *)sorted);
    return true;
}

/* Reports that entry i of a list is NULL. */
static bool dvti_null_entry(const char *function, const char *list, int i) {
    char what[40];
    snprintf(what, sizeof what, "%s[%d]", list, i);
    dvti_null(function, what);
    return false;
}

static bool dvti_names_check(const char *function, const char *const *names, int n) {
    const char *duplicate;
    int i;
    for (i = 0; i < n; i++)
        if (!names[i])
            return dvti_null_entry(function, "names", i);
    if (!dvti_names_duplicate(function, names, n, 1, &duplicate))
        return false;
    if (duplicate)
        dvti_fail(DVT_ERR_NAME, "%s: two arrays are named \"%.100s\"; give each its own name",
                  function, duplicate);
    return !duplicate;
}

DVTI_FN bool dvti_arrays_check(const char *function, dvt_array *const *arrays,
                               const char *const *names, int n) {
    int i;
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected 0 or more arrays", function, n);
        return false;
    }
    if (!arrays && n > 0) {
        dvti_null(function, "arrays");
        return false;
    }
    for (i = 0; i < n; i++)
        if (!arrays[i])
            return dvti_null_entry(function, "arrays", i);
    return !names || n == 0 || dvti_names_check(function, names, n);
}

/* ---- readers of lists ---- */
/* Runs a reader in its own scope, which frees what it leaves when it fails. */
static dvt_array_list *dvti_list_scoped(dvti_source *in, dvt_ctx ctx, dvti_list_reader reads) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array_list *list = reads(in, ctx);
    dvt_keep(list);
    dvt_scope_end(&scope);
    return list;
}

DVTI_FN dvt_array_list *dvti_list_map(const char *function, const char *path, dvt_ctx ctx,
                                      dvti_list_reader reads) {
    dvti_source in;
    dvt_array_list *list = NULL;
    if (dvti_source_map(&in, function, path))
        list = dvti_list_scoped(&in, ctx, reads);
    dvti_source_close(&in);
    return list;
}

DVTI_FN dvt_array_list *dvti_list_load(const char *function, const char *path, dvt_ctx ctx,
                                       dvti_list_reader reads) {
    dvti_source in;
    dvt_array_list *list = NULL;
    if (dvti_source_open(&in, function, path))
        list = dvti_list_scoped(&in, ctx, reads);
    dvti_source_close(&in);
    return list;
}

DVTI_FN dvt_array_list *dvti_list_read(const char *function, const void *data, size_t bytes,
                                       dvt_ctx ctx, dvti_list_reader reads) {
    dvti_source in;
    dvt_array_list *list;
    if (!data) {
        dvti_null(function, "data");
        return NULL;
    }
    dvti_source_memory(&in, function, data, bytes);
    list = dvti_list_scoped(&in, ctx, reads);
    dvti_source_close(&in);
    return list;
}

/* ---- public functions ---- */
DVT_API int dvt_array_list_len(const dvt_array_list *list) {
    return list ? list->n : 0;
}

static bool dvti_array_list_index(const char *function, const dvt_array_list *list, int i) {
    if (!list) {
        dvti_null(function, "list");
        return false;
    }
    if (i >= 0 && i < list->n)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: index %d of a list of %d arrays; expected %s", function, i,
              list->n, dvti_range_text(0, list->n - 1));
    return false;
}

DVT_API dvt_array *dvt_array_list_at(dvt_array_list *list, int i) {
    return dvti_array_list_index("dvt_array_list_at", list, i) ? list->array[i] : NULL;
}

DVT_API const char *dvt_array_list_name(const dvt_array_list *list, int i) {
    if (!dvti_array_list_index("dvt_array_list_name", list, i) || !list->name)
        return "";
    return list->name[i];
}

DVT_API dvt_array *dvt_array_list_find(dvt_array_list *list, const char *name) {
    char known[512];
    dvti_text text = dvti_text_begin(known, sizeof known);
    int i;
    if (!list || !name) {
        dvti_null("dvt_array_list_find", list ? "name" : "list");
        return NULL;
    }
    for (i = 0; list->name && i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return list->array[i];
    for (i = 0; list->name && i < list->n; i++)
        dvti_text_add(&text, "%s\"%.60s\"", i ? ", " : "", list->name[i]);
    dvti_fail(DVT_ERR_NAME, "dvt_array_list_find: no array is named \"%.100s\"; the list %s%s%s",
              name, list->name ? "has " : "has no names: use dvt_array_list_at", known,
              text.length >= sizeof known ? "..." : "");
    return NULL;
}

DVT_API const char *dvt_array_list_metadata(const dvt_array_list *list, const char *key) {
    int i;
    if (!list || !key) {
        dvti_null("dvt_array_list_metadata", list ? "key" : "list");
        return NULL;
    }
    for (i = 0; i < list->n_metadata; i++)
        if (strcmp(list->metadata[2 * i], key) == 0)
            return list->metadata[2 * i + 1];
    return NULL;
}

DVT_API const char *dvt_array_list_metadata_at(const dvt_array_list *list, int i,
                                               const char **key) {
    bool there = list && i >= 0 && i < list->n_metadata;
    if (key)
        *key = there ? list->metadata[2 * i] : NULL;
    return there ? list->metadata[2 * i + 1] : NULL;
}
