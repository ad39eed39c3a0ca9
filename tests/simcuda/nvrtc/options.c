/* Turns sm_XX into compute_XX, because PTX is all that is needed, and drops options that only the
   PTX assembler knows. With reports_usage ptxas has to run, so sm_XX stays. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Returns the value after "--name=" or "-short=", "" when it is the next option, or NULL when the
   option is another one. */
static const char *value_of(const char *option, const char *name) {
    size_t n = strlen(name);
    if (strncmp(option, name, n) != 0)
        return NULL;
    return option[n] == '=' ? option + n + 1 : option[n] ? NULL : option + n;
}

static int is_for_assembler(const char *option, int *takes_next) {
    static const char *const names[] = {"--ptxas-options", "-Xptxas", NULL};
    for (int i = 0; names[i]; i++) {
        const char *value = value_of(option, names[i]);
        if (value) {
            *takes_next = !*value;
            return 1;
        }
    }
    return 0;
}

static int add(options *o, char *text) {
    if (text)
        o->text[o->count++] = text;
    return text != NULL;
}

static int add_architecture(options *o, const char *architecture) {
    char *text = NULL;
    o->wants_cubin = !strncmp(architecture, "sm_", 3);
    if (o->wants_cubin && o->reports_usage) {
        if (asprintf(&text, "--gpu-architecture=%s", architecture) < 0)
            return 0;
        return add(o, text) && add(o, strdup("--ptxas-options=-v"));
    }
    if (asprintf(&text, "--gpu-architecture=%s%s", o->wants_cubin ? "compute_" : "",
                 architecture + (o->wants_cubin ? 3 : 0)) < 0)
        return 0;
    return add(o, text);
}

int options_read(options *o, int count, const char *const *given, int reports_usage) {
    int takes_next = 0;
    memset(o, 0, sizeof *o);
    o->reports_usage = reports_usage;
    o->text = calloc((size_t)(count > 0 ? count : 0) + 2, sizeof *o->text);
    for (int i = 0; o->text && i < count; i++) {
        const char *value = value_of(given[i], "--gpu-architecture");
        if (!value)
            value = value_of(given[i], "-arch");
        int ok = 1;
        if (value && !*value && i + 1 < count)
            ok = add_architecture(o, given[++i]);
        else if (value && *value)
            ok = add_architecture(o, value);
        else if (is_for_assembler(given[i], &takes_next))
            i += takes_next;
        else
            ok = add(o, strdup(given[i]));
        if (!ok) {
            options_free(o);
            return 0;
        }
    }
    return o->text != NULL;
}

void options_free(options *o) {
    for (int i = 0; i < o->count; i++)
        free(o->text[i]);
    free(o->text);
    memset(o, 0, sizeof *o);
}
