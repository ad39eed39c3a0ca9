/* ptx2c: prints the C that a PTX file becomes, or the forms of its instructions.
   usage: ptx2c IN.ptx [OUT.c]
   ptx2c -f IN.ptx */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_cache.h"
#include "ptx_forms.h"
#include "ptx_translate.h"

static void print_form(void *user, const char *kernel, const char *form) {
    (void)user;
    printf("%s: %s\n", kernel, form);
}

static int show(ptx_result result, const char *c, const char *log, const char *path) {
    if (result != PTX_OK) {
        fprintf(stderr, "%s", log ? log : "ptx2c: no memory\n");
        return 1;
    }
    FILE *out = path ? fopen(path, "w") : stdout;
    int failed = !out || fputs(c, out) < 0;
    failed |= out && fclose(out) != 0;
    if (failed)
        perror(path ? path : "standard output");
    return failed;
}

int main(int argc, char **argv) {
    int lists = argc == 3 && !strcmp(argv[1], "-f"), arch;
    size_t size;
    char *c = NULL, *log;
    ptx_mode mode = {1, ptx_counts(), NULL};
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: ptx2c [-f] IN.ptx [OUT.c]\n");
        return 2;
    }
    char *ptx = ptx_read_file(argv[lists ? 2 : 1], &size);
    if (!ptx) {
        perror(argv[lists ? 2 : 1]);
        return 2;
    }
    ptx_result result =
        lists ? ptx_forms(ptx, print_form, NULL, &log) : ptx_translate(ptx, mode, &c, &arch, &log);
    int failed = show(result, lists ? "" : c, log, argc == 3 && !lists ? argv[2] : NULL);
    free(ptx);
    free(log);
    free(c);
    return failed;
}
