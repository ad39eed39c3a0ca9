/* Models in several safetensors files ("shards"). An index next to them says which shard has which
   array:

   {"metadata": {...}, "weight_map": {"0.weight": "model-00001-of-00002.safetensors", ...}}

   Shards are read one after the other. Each must have exactly the arrays that the index promises,
   and be a file in the directory of the index. */
#include "5_io/dvt_formats.h"

typedef struct dvti_shard_entry {
    char *name, *file;
    int at; /* its place in the index */
} dvti_shard_entry;

typedef struct dvti_shards {
    dvti_source *in;      /* the index */
    dvt_array_list *list; /* the result, in the order of the index */
    dvti_shard_entry *item;
    int n;
    size_t capacity;
} dvti_shards;

/* ---- the index ---- */
static bool dvti_shards_memory(const dvti_shards *s, size_t bytes) {
    dvti_fail_memory(s->in->function, (int64_t)bytes);
    return false;
}

/* A name is that of a file in the same directory on every system. */
static bool dvti_shards_file_ok(const char *file) {
    return *file && !strpbrk(file, "/\\:") && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

static bool dvti_shards_entry(dvti_shards *s, dvti_json *json) {
    dvti_shard_entry *entry;
    if (s->n == INT_MAX ||
        !dvti_grow((void **)&s->item, &s->capacity, (size_t)s->n + 1, sizeof *s->item))
        return dvti_shards_memory(s, sizeof *s->item * ((size_t)s->n + 1));
    entry = &s->item[s->n];
    memset(entry, 0, sizeof *entry);
    entry->at = s->n++;
    if (!(entry->name = dvti_strdup(json->text.at)))
        return dvti_shards_memory(s, json->text.length + 1);
    if (!dvti_json_string(json))
        return false;
    if (!dvti_shards_file_ok(json->text.at))
        return dvti_source_wrong(s->in,
                                 "\"%.100s\" is in the file \"%.100s\"; expected the name of a "
                                 "file in the same directory",
                                 entry->name, json->text.at);
    if (!(entry->file = dvti_strdup(json->text.at)))
        return dvti_shards_memory(s, json->text.length + 1);
    return true;
}

static bool dvti_shards_map(dvti_shards *s, dvti_json *json) {
    if (dvti_json_value(json) != DVTI_JSON_OBJECT)
        return dvti_source_wrong(s->in, "its weight_map is no object; write the file again");
    while (dvti_json_member(json))
        if (!dvti_shards_entry(s, json))
            return false;
    return !json->failed;
}

static bool dvti_shards_members(dvti_shards *s, dvti_json *json) {
    bool found = false;
    if (dvti_json_value(json) != DVTI_JSON_OBJECT)
        return dvti_source_wrong(s->in, "it is JSON, but no object; expected the index of a model");
    while (dvti_json_member(json)) {
        bool map = strcmp(json->text.at, "weight_map") == 0;
        if (map && found)
            return dvti_source_wrong(s->in, "it has weight_map twice; write the file again");
        found = found || map;
        if (map ? !dvti_shards_map(s, json) : !dvti_json_skip(json))
            return false;
    }
    if (!dvti_json_end(json))
        return false;
    return found ||
           dvti_source_wrong(s->in, "it is JSON without a weight_map; expected a file of arrays, "
                                    "or the index of safetensors files");
}

/* Gives copies of the names to the list, and checks them. */
static bool dvti_shards_names(dvti_shards *s) {
    const char *duplicate = NULL;
    int i;
    if (!dvti_array_list_reserve(s->in->function, s->list, s->n))
        return false;
    for (i = 0; i < s->n; i++)
        if (!(s->list->name[i] = dvti_strdup(s->item[i].name)))
            return dvti_shards_memory(s, strlen(s->item[i].name) + 1);
    if (!dvti_names_duplicate(s->in->function, (const char *const *)s->list->name, s->n, 1,
                              &duplicate))
        return false;
    return !duplicate ||
           dvti_source_wrong(s->in, "it has \"%.100s\" twice; write the file again", duplicate);
}

static bool dvti_shards_index(dvti_shards *s) {
    dvti_json json;
    bool good;
    dvti_json_begin(&json, s->in, dvti_source_left(s->in));
    good = dvti_shards_members(s, &json);
    dvti_json_free(&json);
    return good && dvti_shards_names(s);
}

/* ---- the shards ---- */
static int dvti_shards_by_name(const void *a, const void *b) {
    return strcmp(((const dvti_shard_entry *)a)->name, ((const dvti_shard_entry *)b)->name);
}

static int dvti_shards_by_file(const void *a, const void *b) {
    int order = strcmp(((const dvti_shard_entry *)a)->file, ((const dvti_shard_entry *)b)->file);
    return order ? order : dvti_shards_by_name(a, b);
}

/* Moves the arrays of a shard to the entries that name them. Writes the names of other arrays to
   `other`, and after them those of entries without an array. Sets the numbers of both. */
static void dvti_shards_match(dvti_shards *s, dvt_array_list *shard, const dvti_shard_entry *entry,
                              int n, const char **other, int *extra, int *missing) {
    int i;
    *extra = *missing = 0;
    for (i = 0; i < shard->n; i++) {
        dvti_shard_entry key, *found;
        key.name = shard->name[i];
        found =
            (dvti_shard_entry *)bsearch(&key, entry, (size_t)n, sizeof *entry, dvti_shards_by_name);
        if (!found)
            other[(*extra)++] = shard->name[i];
        else if (!s->list->array[found->at])
            s->list->array[found->at] = (dvt_array *)dvti_own(shard->array[i]);
    }
    for (i = 0; i < n; i++)
        if (!s->list->array[entry[i].at])
            other[*extra + (*missing)++] = entry[i].name;
}

static bool dvti_shards_take(dvti_shards *s, dvt_array_list *shard, const dvti_shard_entry *entry,
                             int n) {
    size_t most = (size_t)shard->n + (size_t)n;
    const char **other = (const char **)dvti_alloc(sizeof *other * most);
    char lacks[300], has[300];
    int missing, extra;
    if (!other)
        return dvti_shards_memory(s, sizeof *other * most);
    dvti_shards_match(s, shard, entry, n, other, &extra, &missing);
    if (missing || extra)
        dvti_source_wrong(s->in,
                          "\"%.100s\" has other arrays than this index says: missing are %s, "
                          "unexpected are %s; fetch all files again",
                          entry->file,
                          dvti_brief_names(lacks, sizeof lacks, missing, other + extra),
                          dvti_brief_names(has, sizeof has, extra, other));
    dvti_free((void *)other);
    return !missing && !extra;
}

/* Keeps the metadata of all shards; of a key that several have, the first value. */
static bool dvti_shards_metadata(dvti_shards *s, const dvt_array_list *shard) {
    const char *key, *value;
    int i;
    for (i = 0; (value = dvt_array_list_metadata_at(shard, i, &key)) != NULL; i++)
        if (!dvt_array_list_metadata(s->list, key) &&
            !dvti_array_list_note(s->in->function, s->list, key, value))
            return false;
    return true;
}

/* Reads the shard of n entries, which are sorted by name. */
static bool dvti_shards_read(dvti_shards *s, const dvti_shard_entry *entry, int n, dvt_ctx ctx) {
    size_t directory = dvti_path_directory(s->in->what);
    size_t bytes = directory + strlen(entry->file) + 1;
    char *path = (char *)dvti_alloc(bytes);
    dvt_array_list *shard;
    dvt_scope_guard scope;
    bool good;
    if (!path)
        return dvti_shards_memory(s, bytes);
    memcpy(path, s->in->what, directory);
    memcpy(path + directory, entry->file, strlen(entry->file) + 1);
    scope = dvt_scope_begin();
    shard = (s->in->mapping ? dvti_list_map : dvti_list_load)(s->in->function, path, ctx,
                                                              dvti_safetensors_list);
    good = shard && dvti_shards_take(s, shard, entry, n) && dvti_shards_metadata(s, shard);
    dvt_scope_end(&scope);
    dvti_free(path);
    return good;
}

static bool dvti_shards_read_all(dvti_shards *s, dvt_ctx ctx) {
    int first, last;
    if (s->n > 1)
        qsort(s->item, (size_t)s->n, sizeof *s->item, dvti_shards_by_file);
    for (first = 0; first < s->n; first = last) {
        for (last = first + 1; last < s->n && strcmp(s->item[first].file, s->item[last].file) == 0;)
            last++;
        if (!dvti_shards_read(s, &s->item[first], last - first, ctx))
            return false;
    }
    return true;
}

DVTI_FN dvt_array_list *dvti_shards_list(dvti_source *in, dvt_ctx ctx) {
    dvti_shards s;
    bool good;
    int i;
    memset(&s, 0, sizeof s);
    s.in = in;
    if (!in->path) {
        dvti_source_wrong(in, "this is JSON, perhaps the index of a model in several safetensors "
                              "files; load it by its path, because it names files");
        return NULL;
    }
    s.list = dvti_array_list_new(in->function);
    good = s.list && dvti_shards_index(&s) && dvti_shards_read_all(&s, ctx);
    for (i = 0; i < s.n; i++) {
        dvti_free(s.item[i].name);
        dvti_free(s.item[i].file);
    }
    dvti_free(s.item);
    return good ? s.list : NULL;
}
