/* Packs a corpus into a text: one input per line, in hexadecimal.
     corpus unpack TEXT DIRECTORY    writes a file for each line
     corpus pack DIRECTORY TEXT      the reverse, in order of size and content */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t n = strlen(x), m = strlen(y);
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

static char *hex_of(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = (char *)calloc(1, 1 << 18);
    size_t n = 0;
    int c;
    if (!file || !text)
        exit(1);
    while ((c = fgetc(file)) != EOF && n < (1 << 18) - 3)
        n += (size_t)sprintf(text + n, "%02x", c);
    fclose(file);
    return text;
}

static void pack(const char *folder, const char *text) {
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    static char *line[100000];
    char path[1000];
    FILE *file;
    int n = 0, i;
    while (directory && (entry = readdir(directory)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && n < 100000)
            line[n++] = hex_of(path);
    }
    qsort(line, (size_t)n, sizeof *line, by_size);
    file = fopen(text, "wb");
    if (!file)
        exit(1);
    for (i = 0; i < n; i++)
        if (i == 0 || strcmp(line[i], line[i - 1]) != 0)
            fprintf(file, "%s\n", line[i]);
    fclose(file);
}

static void unpack(const char *text, const char *folder) {
    static char line[1 << 18];
    FILE *from = fopen(text, "rb"), *to;
    char path[1000];
    int n = 0;
    while (from && fgets(line, sizeof line, from)) {
        unsigned byte;
        const char *at = line;
        snprintf(path, sizeof path, "%s/seed-%d", folder, n++);
        to = fopen(path, "wb");
        if (!to)
            exit(1);
        for (; sscanf(at, "%2x", &byte) == 1; at += 2)
            fputc((int)byte, to);
        fclose(to);
    }
    if (from)
        fclose(from);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        pack(argv[2], argv[3]);
    else if (argc == 4 && strcmp(argv[1], "unpack") == 0)
        unpack(argv[2], argv[3]);
    else
        return 2;
    return 0;
}
