/* The forms of PTX instructions in all programs (tests/simcuda/ptx/ptx_forms.h), each once. */
#include "tests/simcuda/ptx/ptx_forms.h"
#include "tests/simcuda/ptx/ptx_translate.h"

typedef struct form_list {
    char **text; /* sorted */
    int count, capacity;
} form_list;

static form_list forms;

/* Returns the index of a form in the list, or its insertion point. */
static int form_place(const char *text, bool *found) {
    int low = 0, high = forms.count;
    while (low < high) {
        int middle = (low + high) / 2, order = strcmp(forms.text[middle], text);
        if (order == 0)
            low = high = middle;
        else if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < forms.count && strcmp(forms.text[low], text) == 0;
    return low;
}

static void form_add(void *user, const char *kernel, const char *text) {
    bool found;
    int at = form_place(text, &found);
    (void)user, (void)kernel;
    if (found)
        return;
    if (forms.count == forms.capacity) {
        forms.capacity = forms.capacity ? 2 * forms.capacity : 256;
        forms.text = (char **)realloc(forms.text, (size_t)forms.capacity * sizeof *forms.text);
        if (!forms.text)
            abort();
    }
    memmove(forms.text + at + 1, forms.text + at, (size_t)(forms.count - at) * sizeof *forms.text);
    forms.text[at] = strdup(text);
    forms.count++;
}

/* Adds the forms of a program, which the translator must also accept. Returns false with the reason
   in *log. */
static bool forms_of(const char *ptx, char **log) {
    char *c = NULL;
    int arch;
    ptx_mode mode = {1, 0, NULL};
    bool done = ptx_translate(ptx, mode, &c, &arch, log) == PTX_OK;
    free(c);
    return done && ptx_forms(ptx, form_add, NULL, log) == PTX_OK;
}

/* Writes one form per line after the version of NVRTC. */
static bool forms_write(const char *path, const dvti_nvrtc *rtc) {
    FILE *file = fopen(path, "w");
    int major = 0, minor = 0, i;
    bool done;
    if (!file)
        return false;
    rtc->nvrtcVersion(&major, &minor);
    fprintf(file, "# NVRTC %d.%d\n", major, minor);
    for (i = 0; i < forms.count; i++)
        fprintf(file, "%s\n", forms.text[i]);
    done = !ferror(file);
    return fclose(file) == 0 && done;
}
