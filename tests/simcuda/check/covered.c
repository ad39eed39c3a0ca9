/* Stores the instruction forms of the kernels that ran, each once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptx/ptx_forms.h"
#include "check.h"
#include "covered.h"

typedef struct item {
    char *kernel, *form;
} item;

struct covered_module {
    item *items;
    size_t count, capacity;
};

/* Forms that count. The kernel names are NULL. */
static covered_module covered;

static void add(covered_module *m, const char *kernel, const char *form) {
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 64;
        m->items = realloc(m->items, m->capacity * sizeof *m->items);
        if (!m->items)
            abort();
    }
    m->items[m->count++] = (item){kernel ? strdup(kernel) : NULL, strdup(form)};
}

static void add_form(void *module, const char *kernel, const char *form) {
    add(module, kernel, form);
}

covered_module *covered_read(const char *ptx) {
    covered_module *m = calloc(1, sizeof *m);
    char *log = NULL;
    if (!m)
        abort();
    int done = ptx_forms(ptx, add_form, m, &log) == PTX_OK;
    check_that(done, "the forms of a module: %s", log ? log : "");
    free(log);
    return m;
}

void covered_free(covered_module *m) {
    for (size_t i = 0; m && i < m->count; i++) {
        free(m->items[i].kernel);
        free(m->items[i].form);
    }
    if (m)
        free(m->items);
    free(m);
}

static int is_covered(const char *form) {
    for (size_t i = 0; i < covered.count; i++)
        if (!strcmp(covered.items[i].form, form))
            return 1;
    return 0;
}

void covered_kernel(const covered_module *m, const char *kernel) {
    for (size_t i = 0; m && i < m->count; i++)
        if (!strcmp(m->items[i].kernel, kernel) && !is_covered(m->items[i].form))
            add(&covered, NULL, m->items[i].form);
}

int covered_write(void) {
    const char *path = getenv("SIMCUDA_FORMS");
    FILE *file = path && *path ? fopen(path, "w") : NULL;
    if (!file)
        return !path || !*path;
    for (size_t i = 0; i < covered.count; i++)
        fprintf(file, "%s\n", covered.items[i].form);
    int failed = ferror(file);
    return fclose(file) == 0 && !failed;
}
