/* Writes a model in several safetensors files, and the index that dvt_shards.c reads:

   {"metadata": {"total_size": bytes}, "weight_map": {"0.weight": "NAME-00001-of-00002..."}}

   All files are written under temporary names, and then renamed, the index last. */
#include "5_io/dvt_formats.h"

#define DVTI_SHARDS_END ".safetensors.index.json"

typedef struct dvti_shards_out {
    const char *function, *path;
    size_t stem; /* bytes of path before DVTI_SHARDS_END */
    dvt_array *const *arrays;
    const char *const *names, *const *metadata;
    int n, shards;
    int64_t limit;
} dvti_shards_out;

/* Returns the number of arrays from `first` on that go into one file. */
static int dvti_shard_length(const dvti_shards_out *o, int first) {
    int64_t bytes = 0;
    int i;
    for (i = first; i < o->n; i++) {
        const int64_t more = dvt_nbytes(o->arrays[i]);
        if (i > first && more > o->limit - bytes)
            break;
        bytes += DVTI_MIN(more, o->limit);
    }
    return i - first;
}

/* Writes the path of a shard, or its name without the directory. */
static void dvti_shard_path(const dvti_shards_out *o, int shard, bool name, char *text,
                            size_t size) {
    const size_t skip = name ? dvti_path_directory(o->path) : 0;
    snprintf(text, size, "%.*s-%05d-of-%05d.safetensors", (int)(o->stem - skip), o->path + skip,
             shard + 1, o->shards);
}

static dvt_status dvti_shards_check(dvti_shards_out *o) {
    const size_t length = strlen(o->path), end = sizeof DVTI_SHARDS_END - 1;
    const char *const name = o->path + dvti_path_directory(o->path);
    int i;
    if (o->limit < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: bytes is %lld; expected at least 1", o->function,
                         (long long)o->limit);
    if (!dvti_path_ends_with(name, DVTI_SHARDS_END) || length > 4000 || strlen(name) == end ||
        strpbrk(name, "\\:"))
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the path is \"%.300s\"; expected NAME" DVTI_SHARDS_END
                         ", where NAME is not empty and has no : and \\",
                         o->function, o->path);
    o->stem = length - end;
    if (!dvti_utf8_check(o->function, name) ||
        !dvti_safetensors_check(o->function, o->arrays, o->names, o->n, o->metadata))
        return dvti_failure();
    for (i = 0; i < o->n; i += dvti_shard_length(o, i))
        o->shards++;
    return DVT_OK;
}

static dvt_status dvti_shards_write_index(const dvti_shards_out *o, dvti_writer *index,
                                          dvti_file_out *out) {
    char name[4100];
    int64_t total = 0;
    int first = 0, shard, i;
    for (i = 0; i < o->n; i++)
        total += dvt_nbytes(o->arrays[i]);
    dvti_writer_text(index, "{\"metadata\":{\"total_size\":");
    dvti_writer_int(index, total);
    dvti_writer_text(index, "},\"weight_map\":{");
    for (shard = 0; shard < o->shards; shard++) {
        const int n = dvti_shard_length(o, first);
        dvti_shard_path(o, shard, true, name, sizeof name);
        for (i = first; i < first + n; i++) {
            dvti_writer_text(index, i ? ",\n" : "\n");
            dvti_json_write(index, o->names[i]);
            dvti_writer_text(index, ":");
            dvti_json_write(index, name);
        }
        first += n;
    }
    dvti_writer_text(index, "}}\n");
    if (index->failed)
        return dvti_fail_memory(o->function, (int64_t)index->capacity * 2);
    if (!dvti_file_begin(out, o->function, o->path))
        return dvti_failure();
    dvti_file_write(out, index->at, index->length);
    return dvti_file_close(out, true) ? DVT_OK : dvti_file_end(out, false);
}

static dvt_status dvti_shards_write(const dvti_shards_out *o) {
    const size_t bytes = sizeof(dvti_file_out) * ((size_t)o->shards + 1);
    dvti_file_out *file = (dvti_file_out *)dvti_alloc(bytes);
    dvti_writer index = dvti_writer_begin();
    char name[4100];
    dvt_status status = file ? DVT_OK : dvti_fail_memory(o->function, (int64_t)bytes);
    int first = 0, n = 0;
    while (status == DVT_OK && n < o->shards) {
        const int length = dvti_shard_length(o, first);
        dvti_shard_path(o, n, false, name, sizeof name);
        status = dvti_safetensors_save_with(o->function, name, o->arrays + first, o->names + first,
                                            length, o->metadata, &file[n]);
        first += length;
        n += status == DVT_OK;
    }
    if (status == DVT_OK)
        status = dvti_shards_write_index(o, &index, &file[n]);
    if (status == DVT_OK)
        status = dvti_files_end(file, n + 1);
    else
        while (n > 0)
            (void)dvti_file_end(&file[--n], false);
    dvti_writer_free(&index);
    dvti_free(file);
    return status;
}

DVT_API dvt_status dvt_save_safetensors_shards(const char *path, dvt_array *const *arrays,
                                               const char *const *names, int n,
                                               const char *const *metadata, int64_t bytes) {
    dvt_status status;
    dvti_shards_out o;
    memset(&o, 0, sizeof o);
    o.function = "dvt_save_safetensors_shards";
    o.path = path;
    o.arrays = arrays;
    o.names = names;
    o.n = n;
    o.metadata = metadata;
    o.limit = bytes;
    if (!path)
        return dvti_null(o.function, "path");
    status = dvti_shards_check(&o);
    return status == DVT_OK ? dvti_shards_write(&o) : status;
}

#undef DVTI_SHARDS_END
