/* Directories of tensors, as safetensors and GGUF have them. The places of all tensors are checked
   before any element is read: they fill the data without holes and without overlaps. So no byte of
   a file has two meanings, and none is hidden. Tensors are read in the order of their places. So
   pipes and memory work as files do. */
#include "5_io/dvt_formats.h"

DVTI_FN bool dvti_tensors_begin(dvti_tensors *t, dvti_source *in) {
    memset(t, 0, sizeof *t);
    t->in = in;
    t->alignment = 1;
    t->list = dvti_array_list_new(in->function);
    return t->list != NULL;
}

DVTI_FN dvti_tensor *dvti_tensors_add(dvti_tensors *t, char *name) {
    size_t need = (size_t)t->n + 1;
    dvti_tensor *x;
    if (t->n == INT_MAX || !dvti_grow((void **)&t->item, &t->capacity, need, sizeof *t->item)) {
        dvti_fail_memory(t->in->function, (int64_t)(need * sizeof *t->item));
        dvti_free(name);
        return NULL;
    }
    x = &t->item[t->n];
    memset(x, 0, sizeof *x);
    x->name = name;
    x->at = t->n++;
    return x;
}

DVTI_FN void dvti_tensors_free(dvti_tensors *t) {
    int i;
    for (i = 0; i < t->n; i++)
        dvti_free(t->item[i].name);
    dvti_free(t->item);
    memset(t, 0, sizeof *t);
}

DVTI_FN bool dvti_tensors_wrong(const dvti_tensors *t, const dvti_tensor *x, const char *wrong) {
    return dvti_source_wrong(t->in, "tensor \"%.100s\" %s; fetch or write the file again", x->name,
                             wrong);
}

/* Gives the names to the list, in the order of the header. */
static bool dvti_tensors_names(dvti_tensors *t) {
    const char *const *names;
    const char *duplicate = NULL;
    int i;
    if (!dvti_array_list_reserve(t->in->function, t->list, t->n))
        return false;
    for (i = 0; i < t->n; i++) {
        t->list->name[i] = t->item[i].name;
        t->item[i].name = NULL;
    }
    names = (const char *const *)t->list->name;
    if (!dvti_names_duplicate(t->in->function, names, t->n, 1, &duplicate))
        return false;
    return !duplicate || dvti_source_wrong(t->in,
                                           "two tensors are named \"%.100s\"; write the file again "
                                           "with different names",
                                           duplicate);
}

/* A tensor without elements comes before the one that begins at the same place. */
static int dvti_tensors_compare(const void *a, const void *b) {
    const dvti_tensor *x = (const dvti_tensor *)a, *y = (const dvti_tensor *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Returns the first multiple of the alignment from `at` on. at <= the bytes of a file. */
static int64_t dvti_tensors_align(const dvti_tensors *t, int64_t at) {
    int64_t over = at % t->alignment, aligned;
    if (over == 0)
        return at;
    return dvti_sum(at, t->alignment - over, &aligned) ? aligned : INT64_MAX;
}

static bool dvti_tensors_places(dvti_tensors *t) {
    int64_t end = 0, left = dvti_source_left(t->in);
    int i;
    if (t->n > 1)
        qsort(t->item, (size_t)t->n, sizeof *t->item, dvti_tensors_compare);
    for (i = 0; i < t->n; i++) {
        const dvti_tensor *x = &t->item[i];
        int64_t begin = dvti_tensors_align(t, end);
        if (x->begin != begin)
            return dvti_source_wrong(t->in,
                                     "tensor \"%.100s\" begins at byte %lld of the data; expected "
                                     "%lld, because tensors follow each other without a hole or an "
                                     "overlap: fetch or write the file again",
                                     t->list->name[x->at], (long long)x->begin, (long long)begin);
        if (!dvti_sum(begin, x->bytes, &end) || end > left)
            return dvti_source_wrong(t->in,
                                     "tensor \"%.100s\" goes beyond the end of the file; the file "
                                     "is cut off or damaged: fetch it again",
                                     t->list->name[x->at]);
    }
    if (!t->in->known || left == end || left == dvti_tensors_align(t, end))
        return true;
    return dvti_source_wrong(t->in,
                             "%lld bytes follow its last tensor; fetch or write the file again",
                             (long long)(left - end));
}

static bool dvti_tensors_fill(dvti_tensors *t, dvt_ctx ctx) {
    int64_t end = 0;
    int i;
    for (i = 0; i < t->n; i++) {
        const dvti_tensor *x = &t->item[i];
        dvt_array *array;
        if (!dvti_source_zeros(t->in, x->begin - end))
            return false;
        array = dvti_stored_array(&x->stored, t->in, x->shape, false, ctx);
        if (!array)
            return t->in->ended ? dvti_source_wrong(t->in,
                                                    "it ends within tensor \"%.100s\"; fetch or "
                                                    "write the file again",
                                                    t->list->name[x->at])
                                : false;
        dvti_scope_take(array);
        t->list->array[x->at] = array;
        end = x->begin + x->bytes;
    }
    if (dvti_source_at_end(t->in))
        return true;
    return dvti_source_zeros(t->in, dvti_tensors_align(t, end) - end) &&
           (dvti_source_at_end(t->in) ||
            dvti_source_wrong(t->in, "more bytes follow its last tensor; fetch or write the file "
                                     "again"));
}

DVTI_FN bool dvti_tensors_check(dvti_tensors *t) {
    return dvti_tensors_names(t) && dvti_tensors_places(t);
}

DVTI_FN bool dvti_tensors_read(dvti_tensors *t, dvt_ctx ctx) {
    return dvti_tensors_check(t) && dvti_tensors_fill(t, ctx);
}

/* ---- what is written with arrays ---- */
DVTI_FN bool dvti_utf8_check(const char *function, const char *text) {
    if (dvti_utf8_valid(text))
        return true;
    dvti_fail(DVT_ERR_NAME,
              "%s: the text \"%.100s\" is not UTF-8, which the format needs; "
              "convert it",
              function, text);
    return false;
}

DVTI_FN bool dvti_metadata_check(const char *function, const char *const *metadata, int *n) {
    const char *duplicate = NULL;
    for (*n = 0; metadata && metadata[2 * *n]; ++*n) {
        const char *const *pair = &metadata[2 * *n];
        if (!pair[1]) {
            dvti_fail(DVT_ERR_VALUE,
                      "%s: the metadata \"%.100s\" has no value; expected pairs and a NULL",
                      function, pair[0]);
            return false;
        }
        if (!dvti_utf8_check(function, pair[0]) || !dvti_utf8_check(function, pair[1]))
            return false;
    }
    if (*n && !dvti_names_duplicate(function, metadata, *n, 2, &duplicate))
        return false;
    if (duplicate)
        dvti_fail(DVT_ERR_NAME, "%s: the metadata has the key \"%.100s\" twice; give each its own",
                  function, duplicate);
    return !duplicate;
}
