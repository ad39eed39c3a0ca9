/* What keeps a file from fitting a net: names that are missing in either, pairs of the map without
   effect, other shapes, other dtypes. One error tells all of it. If there is one kind of fault, the
   sentence is MXNet's. */
#include "6_nn/dvt_nn_internal.h"

static bool dvti_load_has(const dvti_load *load, const dvt_param *p) {
    size_t k;
    for (k = 0; k < load->named.count; k++)
        if (load->named.item[k].param == p && load->from[k] >= 0)
            return true;
    return false;
}

/* Returns whether k is the first name of its parameter. */
static bool dvti_load_is_first(const dvti_load *load, size_t k) {
    size_t i;
    for (i = 0; i < k; i++)
        if (load->named.item[i].param == load->named.item[k].param)
            return false;
    return true;
}

DVTI_FN const char *dvti_open_shape_text(dvt_shape shape) {
    char *buffer = dvti_name_buffer();
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i;
    if (dvti_shape_known(shape))
        return dvti_shape_text(shape);
    for (i = 0; i < shape.ndim; i++) {
        dvti_text_add(&text, i ? ", " : "(");
        if (shape.dim[i])
            dvti_text_add(&text, "%lld", (long long)shape.dim[i]);
        else
            dvti_text_add(&text, "?");
    }
    dvti_text_add(&text, shape.ndim == 1 ? ",)" : ")");
    return buffer;
}

/* Returns the name of array i of the file, and the one that the map gives it. */
static const char *dvti_report_name(const dvti_load *load, int i) {
    const char *name = dvt_array_list_name(load->file, i), *mapped = name;
    char *both;
    size_t k;
    for (k = 0; k < load->n_target && mapped == name; k++)
        if (load->target[k].file == i && *load->target[k].name)
            mapped = load->target[k].name;
    if (strcmp(mapped, name) == 0)
        return name;
    both = dvti_name_buffer();
    snprintf(both, DVTI_NAME_SIZE, "%.38s' as '%.34s", name, mapped); /* dvti_brief adds quotes */
    return both;
}

typedef bool (*dvti_load_fault)(const dvti_load *load, int i);

static bool dvti_load_keeps(const dvti_load *load, int k) {
    return dvti_load_is_first(load, (size_t)k) && !dvti_load_has(load, load->named.item[k].param);
}

static bool dvti_load_misses(const dvti_load *load, int k) {
    return !load->options.allow_missing && dvti_load_keeps(load, k);
}

static bool dvti_load_skips(const dvti_load *load, int i) {
    return !dvti_load_used(load, i) && !dvti_map_leaves_out(load, i);
}

static bool dvti_load_is_extra(const dvti_load *load, int i) {
    return !load->options.ignore_extra && dvti_load_skips(load, i);
}

static const dvt_array *dvti_load_saved(const dvti_load *load, int k) {
    return load->from[k] < 0 ? NULL : dvt_array_list_at(load->file, load->from[k]);
}

static bool dvti_load_other_shape(const dvti_load *load, int k) {
    const dvt_array *saved = dvti_load_saved(load, k);
    return saved && (!dvti_shape_accepts(load->named.item[k].param->shape, saved->shape) ||
                     !dvti_shape_known(saved->shape));
}

static bool dvti_load_other_dtype(const dvti_load *load, int k) {
    const dvt_array *saved = dvti_load_saved(load, k);
    return saved && !load->options.cast_dtype && saved->dtype != load->named.item[k].param->dtype;
}

/* Returns whether one of the pair's arrays is reported as not in the net. */
static bool dvti_pair_has_extra(const dvti_load *load, int pair) {
    size_t i;
    for (i = 0; i < load->n_target; i++)
        if (load->target[i].pair == pair && dvti_load_is_extra(load, load->target[i].file))
            return true;
    return false;
}

static bool dvti_load_idle_pair(const dvti_load *load, int pair) {
    dvti_pair_fault fault = dvti_map_judge(load, pair);
    if (fault == DVTI_PAIR_WITHOUT_PARAM)
        return !load->options.ignore_extra && !dvti_pair_has_extra(load, pair);
    return fault == DVTI_PAIR_WITHOUT_ARRAY && !load->options.allow_missing;
}

static bool dvti_load_ignored_pair(const dvti_load *load, int pair) {
    return dvti_map_judge(load, pair) != DVTI_PAIR_GOOD;
}

/* ---- lists of faults ---- */
typedef struct dvti_faults {
    const dvti_load *load;
    dvti_load_fault is;
    int of, n, first; /* numbers of candidates and of faults; the first fault */
} dvti_faults;

static dvti_faults dvti_faults_of(const dvti_load *load, dvti_load_fault is, int of) {
    dvti_faults faults;
    int i;
    faults.load = load;
    faults.is = is;
    faults.of = of;
    faults.n = 0;
    faults.first = of;
    for (i = of - 1; i >= 0; i--)
        if (is(load, i)) {
            faults.n++;
            faults.first = i;
        }
    return faults;
}

static int dvti_faults_at(const dvti_faults *faults, int i) {
    int k = faults->first;
    while (i > 0)
        i -= faults->is(faults->load, ++k);
    return k;
}

static const char *dvti_faults_net_name(const void *user, int i) {
    const dvti_faults *faults = (const dvti_faults *)user;
    return faults->load->named.item[dvti_faults_at(faults, i)].name;
}

static const char *dvti_faults_file_name(const void *user, int i) {
    const dvti_faults *faults = (const dvti_faults *)user;
    return dvti_report_name(faults->load, dvti_faults_at(faults, i));
}

static const char *dvti_faults_pair(const void *user, int i) {
    const dvti_faults *faults = (const dvti_faults *)user;
    const char *const *pair = faults->load->options.map + 2 * dvti_faults_at(faults, i);
    char *both = dvti_name_buffer();
    snprintf(both, DVTI_NAME_SIZE, "%.28s' as '%.28s", pair[0], pair[1]);
    return both;
}

static const char *dvti_report_net_name(const void *user, int i) {
    return ((const dvti_load *)user)->named.item[i].name;
}

static const char *dvti_report_file_name(const void *user, int i) {
    return dvti_report_name((const dvti_load *)user, i);
}

/* ---- faults of one kind ---- */
#define DVTI_REPORT_LIST 400

static void dvti_report_missing(dvti_text *text, const dvti_faults *missing) {
    const dvti_load *load = missing->load;
    char names[DVTI_REPORT_LIST], known[DVTI_REPORT_LIST];
    dvti_text_add(text,
                  "Parameter%s %s %s missing in file '%.200s', which contains parameters: %s. Set "
                  "allow_missing of dvt_block_load_with to ignore missing parameters",
                  missing->n > 1 ? "s" : "",
                  dvti_brief(names, sizeof names, missing->n, dvti_faults_net_name, missing),
                  missing->n > 1 ? "are" : "is", load->path,
                  dvti_brief(known, sizeof known, dvt_array_list_len(load->file),
                             dvti_report_file_name, load));
}

static void dvti_report_extra(dvti_text *text, const dvti_faults *extra) {
    const dvti_load *load = extra->load;
    char names[DVTI_REPORT_LIST], known[DVTI_REPORT_LIST];
    dvti_text_add(
        text,
        "Parameter%s %s loaded from file '%.200s' %s not present in the net, which "
        "contains parameters %s. Set ignore_extra of dvt_block_load_with to ignore %s",
        extra->n > 1 ? "s" : "",
        dvti_brief(names, sizeof names, extra->n, dvti_faults_file_name, extra), load->path,
        extra->n > 1 ? "are" : "is",
        dvti_brief(known, sizeof known, (int)load->named.count, dvti_report_net_name, load),
        extra->n > 1 ? "them" : "it");
}

static void dvti_report_pairs(dvti_text *text, const dvti_faults *pairs) {
    const dvti_load *load = pairs->load;
    char names[DVTI_REPORT_LIST], known[DVTI_REPORT_LIST];
    dvti_text_add(text,
                  "The map's %s %s set%s nothing. '%.200s' contains parameters: %s. Correct the "
                  "names, or set allow_missing of dvt_block_load_with to ignore pairs without an "
                  "array, ignore_extra for those without a parameter",
                  pairs->n > 1 ? "pairs" : "pair",
                  dvti_brief(names, sizeof names, pairs->n, dvti_faults_pair, pairs),
                  pairs->n > 1 ? "" : "s", load->path,
                  dvti_brief(known, sizeof known, dvt_array_list_len(load->file),
                             dvti_report_file_name, load));
}

/* Pairs that the options ignore may still be typing errors. */
static void dvti_warn_pairs(const dvti_load *load) {
    dvti_faults pairs = dvti_faults_of(load, dvti_load_ignored_pair, dvti_map_pairs(load));
    char names[DVTI_REPORT_LIST];
    if (pairs.n)
        dvti_log(DVT_LOG_WARNING, "%s: the map's %s %s set%s nothing from '%.200s'; ignored",
                 load->function, pairs.n > 1 ? "pairs" : "pair",
                 dvti_brief(names, sizeof names, pairs.n, dvti_faults_pair, &pairs),
                 pairs.n > 1 ? "" : "s", load->path);
}

/* Logs what a partial load has left out. */
static void dvti_tell_rest(const dvti_load *load) {
    dvti_faults kept = dvti_faults_of(load, dvti_load_keeps, (int)load->named.count);
    dvti_faults skipped = dvti_faults_of(load, dvti_load_skips, dvt_array_list_len(load->file));
    char names[DVTI_REPORT_LIST], text[2 * DVTI_REPORT_LIST + 100];
    dvti_text rest = dvti_text_begin(text, sizeof text);
    if (kept.n)
        dvti_text_add(&rest, "; %d parameter%s without an array: %s", kept.n, kept.n > 1 ? "s" : "",
                      dvti_brief(names, sizeof names, kept.n, dvti_faults_net_name, &kept));
    if (skipped.n)
        dvti_text_add(&rest, "; %d array%s without a parameter: %s", skipped.n,
                      skipped.n > 1 ? "s" : "",
                      dvti_brief(names, sizeof names, skipped.n, dvti_faults_file_name, &skipped));
    if (kept.n || skipped.n)
        dvti_log(DVT_LOG_WARNING, "%s: '%.200s' was loaded in part%s", load->function, load->path,
                 text);
}

/* Lists up to 4 parameters with both shapes. */
static void dvti_report_shape_list(dvti_text *text, const dvti_faults *shapes) {
    const dvti_load *load = shapes->load;
    int i;
    for (i = 0; i < shapes->n && i < 4; i++) {
        int k = dvti_faults_at(shapes, i);
        dvti_text_add(text, "%s'%.60s' expected %s vs saved %s", i ? ", " : "",
                      load->named.item[k].name,
                      dvti_open_shape_text(load->named.item[k].param->shape),
                      dvti_shape_text(dvti_load_saved(load, k)->shape));
    }
    if (shapes->n > 4)
        dvti_text_add(text, ", ... (%d in all)", shapes->n);
}

static void dvti_report_shapes(dvti_text *text, const dvti_faults *shapes) {
    const dvti_load *load = shapes->load;
    const dvti_named *first = &load->named.item[shapes->first];
    dvti_text_add(text,
                  "Failed loading Parameter '%.100s' from saved params: shape incompatible "
                  "expected %s vs saved %s (%.100s in '%.200s')%s; load it into a net of the same "
                  "layers",
                  dvti_param_name(first->param), dvti_open_shape_text(first->param->shape),
                  dvti_shape_text(dvti_load_saved(load, shapes->first)->shape), first->name,
                  load->path,
                  dvti_shape_known(first->param->shape) ? "" : ", where ? is any extent above 0");
    if (shapes->n > 1) {
        dvti_text_add(text, ". All: ");
        dvti_report_shape_list(text, shapes);
    }
}

static void dvti_report_dtypes(dvti_text *text, const dvti_faults *dtypes) {
    const dvti_load *load = dtypes->load;
    const dvti_named *first = &load->named.item[dtypes->first];
    const dvt_param *p = first->param;
    char names[DVTI_REPORT_LIST];
    dvti_text_add(text,
                  "Failed loading Parameter '%.100s' from saved params: dtype incompatible "
                  "expected %s vs saved %s (%.100s in '%.200s'). Set cast_dtype of "
                  "dvt_block_load_with to cast the dtype of saved params",
                  dvti_param_name(p), dvt_dtype_name(p->dtype),
                  dvt_dtype_name(dvti_load_saved(load, dtypes->first)->dtype), first->name,
                  load->path);
    if (dtypes->n > 1)
        dvti_text_add(text, ". All: %s",
                      dvti_brief(names, sizeof names, dtypes->n, dvti_faults_net_name, dtypes));
}

/* ---- faults of several kinds ---- */
#define DVTI_REPORT_BRIEF 180 /* bytes of each list: an error has at most 1023 */

static void dvti_report_all(dvti_text *text, const dvti_faults *missing, const dvti_faults *extra,
                            const dvti_faults *pairs, const dvti_faults *shapes,
                            const dvti_faults *dtypes) {
    char names[DVTI_REPORT_BRIEF];
    dvti_text_add(text, "'%.200s' does not fit the net.", missing->load->path);
    if (missing->n)
        dvti_text_add(text, " Missing in the file: %s (allow_missing ignores them).",
                      dvti_brief(names, sizeof names, missing->n, dvti_faults_net_name, missing));
    if (extra->n)
        dvti_text_add(text, " Not in the net: %s (ignore_extra ignores them, map renames them).",
                      dvti_brief(names, sizeof names, extra->n, dvti_faults_file_name, extra));
    if (pairs->n)
        dvti_text_add(text,
                      " Pairs of the map that set nothing: %s (allow_missing, ignore_extra ignore "
                      "them).",
                      dvti_brief(names, sizeof names, pairs->n, dvti_faults_pair, pairs));
    if (shapes->n) {
        dvti_text_add(text, " Other shapes: ");
        dvti_report_shape_list(text, shapes);
        dvti_text_add(text, ".");
    }
    if (dtypes->n)
        dvti_text_add(text, " Other dtypes: %s (cast_dtype converts them).",
                      dvti_brief(names, sizeof names, dtypes->n, dvti_faults_net_name, dtypes));
    dvti_text_add(text, " Set these options of dvt_block_load_with, or load it into a net of the "
                        "same layers");
}

DVTI_FN bool dvti_load_report(const dvti_load *load) {
    int ours = (int)load->named.count, theirs = dvt_array_list_len(load->file), kinds;
    dvti_faults missing = dvti_faults_of(load, dvti_load_misses, ours);
    dvti_faults extra = dvti_faults_of(load, dvti_load_is_extra, theirs);
    dvti_faults pairs = dvti_faults_of(load, dvti_load_idle_pair, dvti_map_pairs(load));
    dvti_faults shapes = dvti_faults_of(load, dvti_load_other_shape, ours);
    dvti_faults dtypes = dvti_faults_of(load, dvti_load_other_dtype, ours);
    char sentence[1000];
    dvti_text text = dvti_text_begin(sentence, sizeof sentence);
    kinds = (missing.n > 0) + (extra.n > 0) + (pairs.n > 0) + (shapes.n > 0) + (dtypes.n > 0);
    if (kinds == 0) {
        dvti_warn_pairs(load);
        dvti_tell_rest(load);
        return true;
    }
    if (missing.n && !load->options.map &&
        dvt_array_list_metadata(load->file, "devtensor.checkpoint"))
        dvti_text_add(&text,
                      "'%.200s' is a checkpoint: call dvt_checkpoint_load, or map net.* to * with "
                      "ignore_extra of dvt_block_load_with",
                      load->path);
    else if (kinds > 1)
        dvti_report_all(&text, &missing, &extra, &pairs, &shapes, &dtypes);
    else if (missing.n)
        dvti_report_missing(&text, &missing);
    else if (extra.n)
        dvti_report_extra(&text, &extra);
    else if (pairs.n)
        dvti_report_pairs(&text, &pairs);
    else if (shapes.n)
        dvti_report_shapes(&text, &shapes);
    else
        dvti_report_dtypes(&text, &dtypes);
    dvti_fail(missing.n || extra.n || pairs.n ? DVT_ERR_NAME
              : shapes.n                      ? DVT_ERR_SHAPE
                                              : DVT_ERR_DTYPE,
              "%s: %s", load->function, sentence);
    return false;
}

#undef DVTI_REPORT_LIST
#undef DVTI_REPORT_BRIEF
