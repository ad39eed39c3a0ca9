/* save_parameters and load_parameters. Names in files are structural, "0.weight": the path of child
   numbers, then the short name. dvt_load_match.c and dvt_load_map.c match the names of a file to
   parameters, dvt_load_report.c tells what does not fit. */
#include "5_io/dvt_io_internal.h"
#include "6_nn/dvt_nn_internal.h"

/* ---- structural names ---- */
DVTI_FN void dvti_named_free(dvti_named_list *list) {
    size_t i;
    for (i = 0; i < list->count; i++)
        dvti_free(list->item[i].name);
    dvti_free(list->item);
    memset(list, 0, sizeof *list);
}

/* Returns path + name in newly allocated memory. */
static char *dvti_path_join(const char *path, const char *name) {
    size_t bytes = strlen(path) + strlen(name) + 1;
    char *joined = (char *)dvti_alloc(bytes);
    if (joined)
        snprintf(joined, bytes, "%s%s", path, name);
    return joined;
}

static bool dvti_named_add(dvti_named_list *list, const char *path, dvt_param *p) {
    char *name;
    if (!dvti_grow((void **)&list->item, &list->capacity, list->count + 1, sizeof *list->item) ||
        !(name = dvti_path_join(path, p->short_name)))
        return false;
    list->item[list->count].name = name;
    list->item[list->count++].param = p;
    return true;
}

static bool dvti_named_walk(dvti_named_list *list, const dvt_block *block, const char *path) {
    bool good = true;
    size_t i;
    for (i = 0; good && i < block->n_param; i++)
        good = dvti_named_add(list, path, block->param[i]);
    for (i = 0; good && i < block->n_child; i++) {
        char number[24], *inner;
        snprintf(number, sizeof number, "%lld.", (long long)i);
        inner = dvti_path_join(path, number);
        good = inner && dvti_named_walk(list, block->child[i], inner);
        dvti_free(inner);
    }
    return good;
}

DVTI_FN bool dvti_named_collect(const char *function, const dvt_block *net, dvti_named_list *list) {
    memset(list, 0, sizeof *list);
    if (dvti_named_walk(list, net, ""))
        return true;
    dvti_fail_memory(function, (int64_t)(sizeof *list->item * (list->count + 1)));
    dvti_named_free(list);
    return false;
}

/* ---- saving ---- */
static dvt_status dvti_save_named(const dvti_named_list *list, const char *path) {
    const dvti_list_format *format = dvti_list_format_of(path);
    dvt_array **array = (dvt_array **)dvti_alloc(list->count * sizeof *array);
    const char **name = (const char **)dvti_alloc(list->count * sizeof *name);
    dvt_status status = DVT_OK;
    size_t i;
    if (!array || !name)
        status = dvti_fail_memory("dvt_block_save", (int64_t)(list->count * 2 * sizeof *array));
    for (i = 0; status == DVT_OK && i < list->count; i++) {
        name[i] = list->item[i].name;
        array[i] = dvti_param_average("dvt_block_save", list->item[i].param);
        if (!array[i])
            status = dvti_failure();
    }
    if (status == DVT_OK)
        status = (format && format->saves ? format->saves : dvti_params_save)(
            "dvt_block_save", path, array, name, (int)list->count);
    dvti_free(array);
    dvti_free((void *)name);
    return status;
}

DVT_API dvt_status dvt_block_save(dvt_block *net, const char *path) {
    dvti_named_list list;
    dvt_scope_guard scope;
    dvt_status status;
    if (!net || !path)
        return dvti_null("dvt_block_save", net ? "path" : "net");
    if (dvti_path_ends_with(path, ".npy") || dvti_path_ends_with(path, ".safetensors.index.json"))
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_block_save: \"%.300s\" is not written; expected .safetensors, "
                         ".gguf, .npz or .params",
                         path);
    if (!dvti_named_collect("dvt_block_save", net, &list))
        return dvti_failure();
    scope = dvt_scope_begin();
    status = dvti_save_named(&list, path);
    dvt_scope_end(&scope);
    dvti_named_free(&list);
    return status;
}

/* ---- loading ---- */
/* Returns whether i is the last name of its parameter. A parameter with several names takes the
   last one, as in Gluon. */
static bool dvti_load_is_last(const dvti_load *load, size_t i) {
    size_t k;
    for (k = i + 1; k < load->named.count; k++)
        if (load->named.item[k].param == load->named.item[i].param && load->from[k] >= 0)
            return false;
    return true;
}

static bool dvti_load_plan(const dvti_load *load, size_t i, dvti_plan *plan) {
    dvt_param *p = load->named.item[i].param;
    dvt_array *saved = dvt_array_list_at(load->file, load->from[i]);
    if (!saved)
        return false;
    if (!dvti_load_is_last(load, i))
        return true;
    plan->param = p;
    plan->shape = saved->shape;
    plan->sums = load->ctxs.n ? load->sums : p->sums;
    if (load->ctxs.n)
        plan->ctxs = load->ctxs;
    else if (p->ctxs.n)
        plan->ctxs = p->ctxs;
    else if (!dvti_ctxs_resolve(load->function, load->ctxs, &plan->ctxs))
        return false;
    return true;
}

/* Checks everything, then copies everything, then changes all parameters. */
static dvt_status dvti_load_apply(const dvti_load *load) {
    size_t i, n = load->named.count;
    dvti_plan *plans = dvti_plans_new(load->function, n);
    bool good = plans != NULL;
    for (i = 0; good && i < n; i++)
        if (load->from[i] >= 0)
            good = dvti_load_plan(load, i, &plans[i]);
    for (i = 0; good && i < n; i++)
        if (plans[i].param)
            good = dvti_plan_fill(&plans[i], dvt_array_list_at(load->file, load->from[i]));
    if (good)
        dvti_plans_commit(plans, n);
    dvti_plans_drop(plans, n);
    return good ? DVT_OK : dvti_failure();
}

static dvt_status dvti_load_run(dvti_load *load, dvt_block *net) {
    load->file = dvti_arrays_load(load->function, load->path, dvt_cpu());
    if (!load->file || !dvti_load_match(load, net) || !dvti_load_report(load))
        return dvti_failure();
    return dvti_load_apply(load);
}

static dvt_status dvti_block_load(const char *function, dvt_block *net, const char *path,
                                  const dvt_load_options *options, dvt_ctx_list ctxs) {
    dvti_load load;
    dvt_scope_guard scope;
    dvt_status status;
    if (!net || !path)
        return dvti_null(function, net ? "path" : "net");
    memset(&load, 0, sizeof load);
    load.function = function;
    load.path = path;
    if (options)
        load.options = *options;
    if (ctxs.n && !dvti_ctxs_resolve(function, ctxs, &load.ctxs))
        return dvti_failure();
    load.sums = dvti_ctxs_repeat(&ctxs);
    scope = dvt_scope_begin();
    status = dvti_load_run(&load, net);
    dvt_scope_end(&scope);
    dvti_named_free(&load.named);
    dvti_targets_free(&load);
    dvti_free(load.from);
    return status;
}

DVT_API dvt_status dvt_block_load(dvt_block *net, const char *path, dvt_ctx_list ctxs) {
    return dvti_block_load("dvt_block_load", net, path, NULL, ctxs);
}

DVT_API dvt_status dvt_block_load_with(dvt_block *net, const char *path,
                                       const dvt_load_options *options, dvt_ctx_list ctxs) {
    return dvti_block_load("dvt_block_load_with", net, path, options, ctxs);
}
