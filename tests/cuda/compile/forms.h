/* The forms of PTX instructions in all programs (tests/simcuda/ptx/ptx_forms.h), each once. */
#include "tests/simcuda/ptx/ptx_forms.h"
#include "tests/simcuda/ptx/ptx_translate.h"

typedef struct form_list {
    char **text; /* sorted */
    int count, room;
} form_list;

static form_list forms;

/* The place of a form in the list, or where it belongs. */
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
    if (forms.count == forms.room) {
        forms.room = forms.room ? 2 * forms.room : 256;
        forms.text = (char **)realloc(forms.text, (size_t)forms.room * sizeof *forms.text);
        if (!forms.text)
            abort();
    }
    memmove(forms.text + at + 1, forms.text + at, (size_t)(forms.count - at) * sizeof *forms.text);
    forms.text[at] = strdup(text);
    forms.count++;
}

/* Adds those of a program, which must also be one that the translator takes. False: *log says why. */
static bool forms_of(const char *ptx, char **log) {
    char *c = NULL;
    int arch;
    bool done = ptx_translate(ptx, 1, &c, &arch, log) == PTX_OK;
    free(c);
    return done && ptx_forms(ptx, form_add, NULL, log) == PTX_OK;
}

/* One a line, behind the version of NVRTC that they are of. */
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
