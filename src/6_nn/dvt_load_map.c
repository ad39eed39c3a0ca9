/* Names that a map gives to the arrays of a file, for files of other libraries: pairs of a pattern
   and a name with at most one * each. */
#include "6_nn/dvt_nn_internal.h"

DVTI_FN void dvti_targets_free(dvti_load *load) {
    size_t i;
    for (i = 0; i < load->n_target; i++)
        dvti_free(load->target[i].name);
    dvti_free(load->target);
}

/* Returns whether the name matches. `star` is then the text at the *, of *length characters. */
static bool dvti_map_matches(const char *pattern, const char *name, const char **star,
                             size_t *length) {
    const char *at = strchr(pattern, '*');
    size_t n = strlen(name), head = at ? (size_t)(at - pattern) : 0, tail = at ? strlen(at + 1) : 0;
    *star = name + head;
    *length = 0;
    if (!at)
        return strcmp(pattern, name) == 0;
    if (n < head + tail || memcmp(pattern, name, head) != 0 ||
        memcmp(at + 1, name + n - tail, tail) != 0)
        return false;
    *length = n - head - tail;
    return true;
}

/* Adds the name `pattern`, with its * replaced by the text, to those of array `file`. */
static bool dvti_map_add(dvti_load *load, int file, int pair, const char *pattern, const char *star,
                         size_t length) {
    const char *at = strchr(pattern, '*');
    size_t head = at ? (size_t)(at - pattern) : strlen(pattern),
           bytes = strlen(pattern) + length + 1;
    char *name;
    if (!dvti_grow((void **)&load->target, &load->target_capacity, load->n_target + 1,
                   sizeof *load->target) ||
        !(name = (char *)dvti_alloc(bytes))) {
        dvti_fail_memory(load->function, (int64_t)bytes);
        return false;
    }
    memcpy(name, pattern, head);
    if (at)
        memcpy(name + head, star, length);
    snprintf(name + head + (at ? length : 0), bytes - head - (at ? length : 0), "%s",
             at ? at + 1 : "");
    load->target[load->n_target].name = name;
    load->target[load->n_target].pair = pair;
    load->target[load->n_target++].file = file;
    return true;
}

static bool dvti_map_check(const dvti_load *load) {
    const char *const *pair = load->options.map;
    for (; pair[0]; pair += 2) {
        const char *star = strchr(pair[0], '*'), *ours = pair[1] ? strchr(pair[1], '*') : NULL;
        if (!pair[1] || (star && strchr(star + 1, '*')) || (ours && strchr(ours + 1, '*')) ||
            (ours && !star)) {
            dvti_fail(DVT_ERR_VALUE,
                      "%s: the map has the pair \"%.100s\", \"%.100s\"; expected at most one * in "
                      "each name. The second name may have one only if the first has one. The map "
                      "ends with NULL",
                      load->function, pair[0], pair[1] ? pair[1] : "(NULL)");
            return false;
        }
    }
    return true;
}

/* Collects the names that the map gives to array `file`. */
static bool dvti_map_array(dvti_load *load, int file) {
    const char *name = dvt_array_list_name(load->file, file), *const *map = load->options.map;
    const char *star;
    size_t length, before = load->n_target;
    int pair;
    for (pair = 0; map[2 * pair]; pair++)
        if (dvti_map_matches(map[2 * pair], name, &star, &length) &&
            !dvti_map_add(load, file, pair, map[2 * pair + 1], star, length))
            return false;
    return load->n_target > before ||
           dvti_map_add(load, file, -1, dvti_load_plain_name(load, file), "", 0);
}

/* Finds the array that sets one parameter. */
static bool dvti_map_find(dvti_load *load, size_t k) {
    const char *name = load->named.item[k].name;
    size_t i;
    load->from[k] = -1;
    for (i = 0; i < load->n_target; i++) {
        int file = load->target[i].file;
        if (strcmp(load->target[i].name, name) != 0)
            continue;
        if (load->from[k] >= 0 && load->from[k] != file) {
            dvti_fail(DVT_ERR_NAME,
                      "%s: the map gives '%.100s' both '%.100s' and '%.100s' of '%.200s'; change "
                      "one of the pairs",
                      load->function, name, dvt_array_list_name(load->file, load->from[k]),
                      dvt_array_list_name(load->file, file), load->path);
            return false;
        }
        load->from[k] = file;
    }
    return true;
}

DVTI_FN bool dvti_load_match_map(dvti_load *load) {
    int i, n = dvt_array_list_len(load->file);
    size_t k;
    if (!dvti_map_check(load))
        return false;
    for (i = 0; i < n; i++)
        if (!dvti_map_array(load, i))
            return false;
    for (k = 0; k < load->named.count; k++)
        if (!dvti_map_find(load, k))
            return false;
    return true;
}

DVTI_FN bool dvti_map_leaves_out(const dvti_load *load, int file) {
    size_t i;
    for (i = 0; i < load->n_target; i++)
        if (load->target[i].file == file && !*load->target[i].name)
            return true;
    return false;
}

DVTI_FN int dvti_map_pairs(const dvti_load *load) {
    int n = 0;
    while (load->options.map && load->options.map[2 * n])
        n++;
    return n;
}

static bool dvti_map_names_param(const dvti_load *load, const char *name) {
    size_t k;
    for (k = 0; k < load->named.count; k++)
        if (strcmp(load->named.item[k].name, name) == 0)
            return true;
    return false;
}

DVTI_FN dvti_pair_fault dvti_map_judge(const dvti_load *load, int pair) {
    dvti_pair_fault fault = DVTI_PAIR_WITHOUT_ARRAY;
    size_t i;
    if (!*load->options.map[2 * pair + 1])
        return DVTI_PAIR_GOOD;
    for (i = 0; i < load->n_target; i++)
        if (load->target[i].pair == pair) {
            if (dvti_map_names_param(load, load->target[i].name))
                return DVTI_PAIR_GOOD;
            fault = DVTI_PAIR_WITHOUT_PARAM;
        }
    return fault;
}
