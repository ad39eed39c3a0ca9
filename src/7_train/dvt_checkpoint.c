/* Checkpoints: what a file holds, its checksum, saving and loading. dvt_checkpoint_restore.c
   applies a file, dvt_checkpoint_folder.c keeps several. */
#include "7_train/dvt_checkpoint_internal.h"

#if defined(DVTI_CHECKPOINTS)
/* ---- collecting ---- */
static bool dvti_checkpoint_fail_name(const char *function) {
    dvti_fail_memory(function, 64);
    return false;
}

/* Adds x under prefix + name, and @k unless k is negative. */
static bool dvti_checkpoint_add(const char *function, dvt_array_list *list, const char *prefix,
                                const char *name, int k, dvt_array *x) {
    dvti_writer text = dvti_writer_begin();
    bool good;
    dvti_writer_text(&text, prefix);
    dvti_writer_text(&text, name);
    if (k >= 0) {
        dvti_writer_text(&text, "@");
        dvti_writer_int(&text, k);
    }
    dvti_writer_bytes(&text, "", 1);
    good = text.failed ? dvti_checkpoint_fail_name(function)
                       : dvti_array_list_add_named(function, list, text.at, x);
    dvti_writer_free(&text);
    return good;
}

/* Adds one array when all copies have the same bytes, else each. */
static bool dvti_checkpoint_add_copies(const char *function, dvt_array_list *list,
                                       const char *prefix, const char *name, dvt_array *const *copy,
                                       int n) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *host[DVT_MAX_CONTEXTS];
    bool good = true, equal = true;
    int k;
    for (k = 0; good && k < n; k++) {
        host[k] = dvti_host_array(function, copy[k], copy[k]->dtype, false);
        good = host[k] != NULL;
        equal = equal && good &&
                memcmp(dvti_view_of(host[k]).data, dvti_view_of(host[0]).data,
                       (size_t)dvt_nbytes(host[0])) == 0;
    }
    for (k = 0; good && k < (equal ? 1 : n); k++)
        good = dvti_checkpoint_add(function, list, prefix, name, equal ? -1 : k, host[k]);
    dvt_scope_end(&scope);
    return good;
}

static bool dvti_checkpoint_add_net(const char *function, dvt_array_list *list,
                                    const dvt_block *net) {
    dvti_named_list named;
    bool good = dvti_named_collect(function, net, &named);
    size_t i, k;
    for (i = 0; good && i < named.count; i++) {
        dvt_param *p = named.item[i].param;
        for (k = 0; k < i && named.item[k].param != p; k++)
            continue;
        if (k < i) /* a shared parameter has the first of its names */
            continue;
        good = dvti_param_ready(p)
                   ? dvti_checkpoint_add_copies(function, list, "net.", named.item[i].name, p->copy,
                                                p->ctxs.n)
                   : dvti_param_on(function, p, dvt_default_ctx()) != NULL;
    }
    dvti_named_free(&named);
    return good;
}

static bool dvti_checkpoint_add_states(const char *function, dvt_array_list *list,
                                       const dvt_trainer *t, int i) {
    dvt_array *copy[DVT_MAX_CONTEXTS];
    char name[40];
    int k, s;
    for (s = 0; s < t->states; s++) {
        for (k = 0; k < t->ctxs.n && dvti_trainer_at(t, i, k)->state[s]; k++)
            copy[k] = dvti_trainer_at(t, i, k)->state[s];
        snprintf(name, sizeof name, "%d.%d", i, s);
        if (k && k == t->ctxs.n &&
            !dvti_checkpoint_add_copies(function, list, "trainer.", name, copy, k))
            return false;
    }
    return true;
}

/* Adds the state of the loss scale; nothing without mixed precision. */
static bool dvti_checkpoint_add_scale(const char *function, dvt_array_list *list,
                                      const dvti_mixed *mixed) {
    return !mixed || (dvti_array_list_note(function, list, "trainer.compute",
                                           dvt_dtype_name(mixed->compute)) &&
                      dvti_note_int(function, list, "trainer.scale", mixed->scale) &&
                      dvti_note_int(function, list, "trainer.good", mixed->good) &&
                      dvti_note_int(function, list, "trainer.skipped", mixed->skipped));
}

static bool dvti_checkpoint_add_trainer(const char *function, dvt_array_list *list,
                                        const dvt_trainer *t) {
    char text[DVTI_SETTING_SIZE];
    const char *key;
    dvt_array *counts = dvti_array_new(function, DVT_SHAPE(t->n), DVT_I64, dvt_cpu());
    bool good = counts && dvti_note_int(function, list, "trainer.steps", t->steps) &&
                dvti_note_number(function, list, "trainer.learning_rate", DVT_F64,
                                 &t->optimizer.learning_rate) &&
                dvti_checkpoint_add_scale(function, list, dvti_trainer_mixed(t)) &&
                dvti_checkpoint_add(function, list, "trainer.", "counts", -1, counts);
    int i;
    for (i = 0; good && (key = dvti_optimizer_setting(&t->optimizer, i, text)) != NULL; i++)
        good = dvti_array_list_note(function, list, key, text);
    for (i = 0; good && i < t->n; i++) {
        ((int64_t *)dvti_view_of(counts).data)[i] = t->trained[i].count;
        good = !t->replica || dvti_checkpoint_add_states(function, list, t, i);
    }
    return good;
}

static bool dvti_checkpoint_add_loader(const char *function, dvt_array_list *list,
                                       const dvt_loader *loader) {
    dvt_loader_state state = dvt_loader_get_state(loader);
    char text[DVTI_SETTING_SIZE];
    const char *key;
    bool good = dvti_note_int(function, list, "loader.seed", (int64_t)state.seed) &&
                dvti_note_int(function, list, "loader.epoch", state.epoch) &&
                dvti_note_int(function, list, "loader.batch", state.batch);
    int i;
    for (i = 0; good && (key = dvti_loader_setting(loader, i, text)) != NULL; i++)
        good = dvti_array_list_note(function, list, key, text);
    return good;
}

static bool dvti_checkpoint_add_own(const char *function, dvt_array_list *list,
                                    const dvt_checkpoint *c) {
    bool good = true;
    int i;
    for (i = 0; good && i < c->n_arrays; i++)
        good = dvti_checkpoint_add_copies(function, list, "array.", c->array_names[i],
                                          &c->arrays[i], 1);
    for (i = 0; good && i < c->n_numbers; i++) {
        dvt_array *number = dvti_array_new(function, DVT_SCALAR, DVT_F64, dvt_cpu());
        if (number)
            *(double *)dvti_view_of(number).data = c->numbers[i];
        good = number &&
               dvti_checkpoint_add(function, list, "number.", c->number_names[i], -1, number);
    }
    return good;
}

DVTI_FN int64_t dvti_checkpoint_step(const dvt_checkpoint *c) {
    const bool own = c->step != 0 && c->step != c->loaded_step;
    return own || !c->trainer ? c->step : c->trainer->steps;
}

/* Checks the caller's lists, before anything is read from them. */
static bool dvti_checkpoint_check(const char *function, const dvt_checkpoint *c) {
    const char *wrong = NULL;
    int i;
    if (c->n_arrays < 0 || c->n_numbers < 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: n_arrays is %d and n_numbers is %d; expected 0 or more",
                  function, c->n_arrays, c->n_numbers);
        return false;
    }
    if (c->n_arrays && (!c->arrays || !c->array_names))
        wrong = c->arrays ? "array_names" : "arrays";
    if (c->n_numbers && (!c->numbers || !c->number_names))
        wrong = c->numbers ? "number_names" : "numbers";
    for (i = 0; !wrong && i < c->n_arrays; i++)
        if (!c->arrays[i] || !c->array_names[i])
            wrong = c->arrays[i] ? "a name of array_names" : "an array of arrays";
    for (i = 0; !wrong && i < c->n_numbers; i++)
        if (!c->number_names[i])
            wrong = "a name of number_names";
    if (wrong)
        dvti_null(function, wrong);
    return !wrong;
}

/* Computes the CRC-32 of all metadata but the checksum itself, and of all arrays. */
static bool dvti_checkpoint_sum(const char *function, const dvt_array_list *list, uint32_t *sum) {
    dvti_crc *crc = (dvti_crc *)dvti_alloc(sizeof *crc);
    bool good = true;
    int i;
    if (!crc) {
        dvti_fail_memory(function, (int64_t)sizeof *crc);
        return false;
    }
    dvti_crc_build(crc);
    *sum = 0;
    for (i = 0; i < 2 * list->n_metadata; i += 2)
        if (strcmp(list->metadata[i], DVTI_CHECKPOINT_SUM) != 0) {
            *sum = dvti_crc_more(crc, *sum, list->metadata[i], strlen(list->metadata[i]) + 1);
            *sum =
                dvti_crc_more(crc, *sum, list->metadata[i + 1], strlen(list->metadata[i + 1]) + 1);
        }
    for (i = 0; good && i < list->n; i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        dvt_array *x = list->array[i], *host = dvti_stored_host(function, x, x->dtype);
        const char *shape = dvti_shape_text(x->shape), *dtype = dvt_dtype_name(x->dtype);
        good = host != NULL;
        if (good) {
            *sum = dvti_crc_more(crc, *sum, list->name[i], strlen(list->name[i]) + 1);
            *sum = dvti_crc_more(crc, *sum, dtype, strlen(dtype));
            *sum = dvti_crc_more(crc, *sum, shape, strlen(shape));
            *sum = dvti_crc_more(crc, *sum, dvti_view_of(host).data, (size_t)dvt_nbytes(host));
        }
        dvt_scope_end(&scope);
    }
    dvti_free(crc);
    return good;
}

DVTI_FN dvt_array_list *dvti_checkpoint_collect(const char *function, const dvt_checkpoint *c) {
    dvt_array_list *list = dvti_array_list_new(function);
    dvt_array *random = NULL;
    uint32_t sum = 0;
    bool good = list && dvti_note_int(function, list, DVTI_CHECKPOINT_FORMAT, 1) &&
                dvti_note_int(function, list, "epoch", c->epoch) &&
                dvti_note_int(function, list, "step", dvti_checkpoint_step(c)) &&
                dvti_note_number(function, list, "metric", DVT_F64, &c->metric);
    if (good && c->net)
        good = dvti_checkpoint_add_net(function, list, c->net);
    if (good && c->trainer)
        good = dvti_checkpoint_add_trainer(function, list, c->trainer);
    if (good && c->loader)
        good = dvti_checkpoint_add_loader(function, list, c->loader);
    if (good && !c->no_random) {
        random = dvti_streams_state(function);
        good = random && dvti_checkpoint_add(function, list, "random", "", -1, random);
    }
    good = good && dvti_checkpoint_add_own(function, list, c) &&
           dvti_checkpoint_sum(function, list, &sum) &&
           dvti_note_int(function, list, DVTI_CHECKPOINT_SUM, sum);
    return good ? list : NULL;
}

/* ---- saving ---- */
DVTI_FN dvt_status dvti_checkpoint_write(const char *function, const dvt_checkpoint *c,
                                         const char *path) {
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_array_list *list;
    dvt_status status;
    if (!c || !path)
        return dvti_null(function, c ? "path" : "c");
    if (!dvti_checkpoint_check(function, c))
        return dvti_failure();
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    list = dvti_checkpoint_collect(function, c);
    status = list ? dvti_safetensors_save_list(function, path, list) : dvti_failure();
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_checkpoint_save(const dvt_checkpoint *c, const char *path) {
    return dvti_checkpoint_write("dvt_checkpoint_save", c, path);
}

/* ---- loading ---- */
DVTI_FN dvt_array_list *dvti_checkpoint_read(const char *function, const char *path) {
    dvt_array_list *list = dvti_list_load(function, path, dvt_cpu(), dvti_safetensors_list);
    int64_t version = 0, noted = -1;
    uint32_t sum = 0;
    if (!list)
        return NULL;
    if (!dvti_noted_number(list, DVTI_CHECKPOINT_FORMAT, DVT_I64, &version)) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: '%.200s' is a safetensors file, but no checkpoint; load its arrays with "
                  "dvt_block_load or dvt_load_arrays",
                  function, path);
        return NULL;
    }
    if (version != 1) {
        dvti_fail(DVT_ERR_FORMAT,
                  "%s: '%.200s' is a checkpoint of version %lld, and this library reads version 1; "
                  "use the library that wrote it",
                  function, path, (long long)version);
        return NULL;
    }
    if (!dvti_checkpoint_sum(function, list, &sum))
        return NULL;
    if (dvti_noted_number(list, DVTI_CHECKPOINT_SUM, DVT_I64, &noted) && noted == (int64_t)sum)
        return list;
    dvti_fail(DVT_ERR_FORMAT,
              "%s: '%.200s' is damaged: the checksum of its content is %lld, and %lld is noted; "
              "copy it again, or take an older checkpoint",
              function, path, (long long)sum, (long long)noted);
    return NULL;
}

DVT_API dvt_status dvt_checkpoint_load(dvt_checkpoint *c, const char *path) {
    static const char *const function = "dvt_checkpoint_load";
    dvt_scope_guard scope;
    dvt_record_guard record;
    dvt_array_list *list;
    dvt_status status;
    if (!c || !path)
        return dvti_null(function, c ? "path" : "c");
    if (!dvti_checkpoint_check(function, c))
        return dvti_failure();
    scope = dvt_scope_begin();
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    list = dvti_checkpoint_read(function, path);
    status = list ? dvti_checkpoint_restore(function, c, list, path) : dvti_failure();
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return status;
}
#endif
