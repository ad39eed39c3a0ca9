/* Matches the arrays of a file to parameters. Files of save_parameters have structural names
   ("0.weight"). Files without a dot in any name use old names ("dense0_weight",
   "arg:lenet0_conv0_weight"). The numbers in old names come from the process that wrote them.
   Unless the names are equal, the layers of one kind are therefore matched by their order. */
#include "6_nn/dvt_nn_internal.h"

DVTI_FN const char *dvti_load_plain_name(const dvti_load *load, int i) {
    const char *name = dvt_array_list_name(load->file, i);
    return strncmp(name, "arg:", 4) == 0 || strncmp(name, "aux:", 4) == 0 ? name + 4 : name;
}

static int dvti_file_find(const dvti_load *load, const char *name) {
    int i, n = dvt_array_list_len(load->file);
    for (i = 0; i < n; i++)
        if (strcmp(dvti_load_plain_name(load, i), name) == 0)
            return i;
    return -1;
}

DVTI_FN bool dvti_load_used(const dvti_load *load, int i) {
    size_t k;
    for (k = 0; k < load->named.count; k++)
        if (load->from[k] == i)
            return true;
    return false;
}

/* Fills in `from` by equal names. Counts the matched names of the net and of the file. */
static void dvti_match_equal(dvti_load *load, size_t *of_net, int *of_file) {
    size_t k;
    int i, n = dvt_array_list_len(load->file);
    *of_net = 0;
    *of_file = 0;
    for (k = 0; k < load->named.count; k++) {
        load->from[k] = dvti_file_find(load, load->named.item[k].name);
        *of_net += load->from[k] >= 0;
    }
    for (i = 0; i < n; i++)
        *of_file += dvti_load_used(load, i);
}

/* ---- old names, by order ---- */
/* "lenet0_conv10_weight": layer "lenet0_conv10", kind "conv", short name "weight". */
typedef struct dvti_old_name {
    const char *text, *short_name;
    size_t layer, kind_at, kind; /* lengths; kind_at: start of the kind */
    bool first;                  /* first name of its layer in its list */
    int rank;                    /* of its layer among those of its kind */
} dvti_old_name;

/* Splits a name into layer, kind and short name. Short names may contain a _, so it takes the net's
   longest short name that ends the text. */
static void dvti_old_split(const dvti_load *load, const char *text, dvti_old_name *out) {
    size_t length = strlen(text), k, best = 0;
    memset(out, 0, sizeof *out);
    out->text = text;
    for (k = 0; k < load->named.count; k++) {
        const char *candidate = load->named.item[k].param->short_name;
        size_t n = strlen(candidate);
        if (n > best && n + 1 < length && text[length - n - 1] == '_' &&
            strcmp(text + length - n, candidate) == 0)
            best = n;
    }
    if (!best)
        return;
    out->short_name = text + length - best;
    out->layer = length - best - 1;
    for (out->kind_at = out->layer; out->kind_at > 0 && text[out->kind_at - 1] != '_';)
        out->kind_at--;
    out->kind = out->layer - out->kind_at;
    while (out->kind > 0 && text[out->kind_at + out->kind - 1] >= '0' &&
           text[out->kind_at + out->kind - 1] <= '9')
        out->kind--;
}

static bool dvti_old_same_kind(const dvti_old_name *a, const dvti_old_name *b) {
    return a->short_name && b->short_name && a->kind == b->kind &&
           memcmp(a->text + a->kind_at, b->text + b->kind_at, a->kind) == 0;
}

/* Orders layers naturally: digits in the text compare as numbers. */
static int dvti_old_compare(const dvti_old_name *a, const dvti_old_name *b) {
    size_t i = 0, k = 0;
    while (i < a->layer && k < b->layer) {
        unsigned char c = (unsigned char)a->text[i], d = (unsigned char)b->text[k];
        if (c >= '0' && c <= '9' && d >= '0' && d <= '9') {
            long long x = strtoll(a->text + i, NULL, 10), y = strtoll(b->text + k, NULL, 10);
            if (x != y)
                return x < y ? -1 : 1;
            while (i < a->layer && a->text[i] >= '0' && a->text[i] <= '9')
                i++;
            while (k < b->layer && b->text[k] >= '0' && b->text[k] <= '9')
                k++;
        } else if (c != d)
            return c < d ? -1 : 1;
        else {
            i++;
            k++;
        }
    }
    return i < a->layer ? 1 : k < b->layer ? -1 : 0;
}

/* Ranks every name's layer among those of its kind: by position in a net, by number in a file. */
static void dvti_old_rank(dvti_old_name *name, size_t n, bool by_place) {
    size_t i, k;
    for (i = 0; i < n; i++) {
        name[i].first = name[i].short_name != NULL;
        for (k = 0; k < i && name[i].first; k++)
            if (dvti_old_same_kind(&name[i], &name[k]) && dvti_old_compare(&name[i], &name[k]) == 0)
                name[i].first = false;
    }
    for (i = 0; i < n; i++)
        for (k = 0; k < n; k++)
            if (name[k].first && dvti_old_same_kind(&name[i], &name[k]) &&
                (by_place ? k <= i && dvti_old_compare(&name[k], &name[i]) != 0
                          : dvti_old_compare(&name[k], &name[i]) < 0))
                name[i].rank++;
}

static bool dvti_match_by_order(dvti_load *load) {
    size_t n = load->named.count, m = (size_t)dvt_array_list_len(load->file), i, k;
    dvti_old_name *net = (dvti_old_name *)dvti_alloc((n + m) * sizeof *net), *file;
    if (!net) {
        dvti_fail_memory(load->function, (int64_t)((n + m) * sizeof *net));
        return false;
    }
    file = net + n;
    for (i = 0; i < n; i++)
        dvti_old_split(load, load->named.item[i].name, &net[i]);
    for (k = 0; k < m; k++)
        dvti_old_split(load, dvti_load_plain_name(load, (int)k), &file[k]);
    dvti_old_rank(net, n, true);
    dvti_old_rank(file, m, false);
    for (i = 0; i < n; i++) {
        load->from[i] = -1;
        for (k = 0; k < m; k++)
            if (dvti_old_same_kind(&net[i], &file[k]) && net[i].rank == file[k].rank &&
                strcmp(net[i].short_name, file[k].short_name) == 0)
                load->from[i] = (int)k;
    }
    dvti_free(net);
    return true;
}

/* ---- which kind of names ---- */
static bool dvti_file_is_old(const dvti_load *load) {
    int i, n = dvt_array_list_len(load->file);
    for (i = 0; i < n; i++)
        if (strchr(dvt_array_list_name(load->file, i), '.'))
            return false;
    return true;
}

/* Lists the net's names as old files have them: each parameter once. */
static bool dvti_named_flat(dvti_load *load) {
    dvti_named_list *list = &load->named;
    size_t i, k, kept = 0;
    for (i = 0; i < list->count; i++) {
        char *name;
        for (k = 0; k < kept && list->item[k].param != list->item[i].param; k++)
            continue;
        name = k == kept ? dvti_strdup(dvti_param_name(list->item[i].param)) : NULL;
        if (k == kept && !name) {
            dvti_fail_memory(load->function, (int64_t)strlen(dvti_param_name(list->item[i].param)));
            memmove(list->item + kept, list->item + i, (list->count - i) * sizeof *list->item);
            list->count -= i - kept;
            return false;
        }
        dvti_free(list->item[i].name);
        if (k == kept) {
            list->item[kept].param = list->item[i].param;
            list->item[kept++].name = name;
        }
    }
    list->count = kept;
    return true;
}

static bool dvti_match_names(dvti_load *load) {
    int n = dvt_array_list_len(load->file), of_file;
    size_t of_net;
    dvti_match_equal(load, &of_net, &of_file);
    if (!dvti_file_is_old(load) || of_net == load->named.count || of_file == n)
        return true;
    if (!dvti_named_flat(load))
        return false;
    dvti_match_equal(load, &of_net, &of_file);
    return of_net == load->named.count || of_file == n || dvti_match_by_order(load);
}

DVTI_FN bool dvti_load_match(dvti_load *load, const dvt_block *net) {
    if (!dvti_named_collect(load->function, net, &load->named))
        return false;
    load->from = (int *)dvti_alloc(load->named.count * sizeof *load->from);
    if (!load->from) {
        dvti_fail_memory(load->function, (int64_t)(load->named.count * sizeof *load->from));
        return false;
    }
    return load->options.map ? dvti_load_match_map(load) : dvti_match_names(load);
}
