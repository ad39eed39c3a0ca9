/* Lists of named arrays, as parameter files and archives hold them, and the names of others to be
   written. */
#include "5_io/dvt_io_internal.h"

static void dvti_array_list_destroy(void *object) {
    dvt_array_list *list = (dvt_array_list *)object;
    int i;
    for (i = 0; i < list->n; i++) {
        dvti_disown(list->array[i]);
        if (list->name)
            dvti_free(list->name[i]);
    }
    dvti_free(list->array);
    dvti_free(list->name);
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

DVTI_FN bool dvti_array_list_begin_names(const char *function, dvt_array_list *list) {
    size_t bytes = sizeof(char *) * (size_t)list->n;
    list->name = (char **)dvti_alloc_zero(bytes);
    if (!list->name)
        dvti_fail_memory(function, (int64_t)bytes);
    return list->name != NULL;
}

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

/* ---- names ---- */
static int dvti_names_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

DVTI_FN bool dvti_names_duplicate(const char *function, const char *const *names, int n,
                                  const char **duplicate) {
    const char **sorted = (const char **)dvti_alloc(sizeof *sorted * (size_t)n);
    int i;
    *duplicate = NULL;
    if (!sorted) {
        dvti_fail_memory(function, (int64_t)sizeof *sorted * n);
        return false;
    }
    for (i = 0; i < n; i++)
        sorted[i] = names[i];
    qsort((void *)sorted, (size_t)n, sizeof *sorted, dvti_names_compare);
    for (i = 1; i < n && !*duplicate; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            *duplicate = sorted[i];
    dvti_free((void *)sorted);
    return true;
}

DVTI_FN bool dvti_named_arrays_check(const char *function, dvt_array *const *arrays,
                                     const char *const *names, int n) {
    const char *duplicate = NULL;
    int i;
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected 0 or more arrays", function, n);
        return false;
    }
    if (n && !arrays) {
        dvti_null(function, "arrays");
        return false;
    }
    for (i = 0; i < n; i++)
        if (!arrays[i] || (names && !names[i])) {
            dvti_null(function, arrays[i] ? "a name" : "an array");
            return false;
        }
    if (names && n && !dvti_names_duplicate(function, names, n, &duplicate))
        return false;
    if (duplicate)
        dvti_fail(DVT_ERR_NAME, "%s: two arrays are named \"%.100s\"; give each its own name",
                  function, duplicate);
    return !duplicate;
}
