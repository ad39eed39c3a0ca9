/* ptx2c: shows the C that a PTX file becomes. usage: ptx2c IN.ptx [OUT.c] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_cache.h"
#include "ptx_translate.h"

int main(int argc, char **argv) {
    size_t size;
    char *c, *log;
    int arch;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: ptx2c IN.ptx [OUT.c]\n");
        return 2;
    }
    char *ptx = ptx_read_file(argv[1], &size);
    if (!ptx) {
        perror(argv[1]);
        return 2;
    }
    ptx_result result = ptx_translate(ptx, 1, &c, &arch, &log);
    free(ptx);
    if (result != PTX_OK) {
        fprintf(stderr, "%s", log ? log : "ptx2c: no memory\n");
        free(log);
        return 1;
    }
    FILE *out = argc == 3 ? fopen(argv[2], "w") : stdout;
    int failed = !out || fputs(c, out) < 0;
    failed |= out && fclose(out) != 0;
    if (failed)
        perror(argc == 3 ? argv[2] : "standard output");
    free(c);
    return failed;
}
