/* Converts the compiler options of a program for the real NVRTC. */
#ifndef OPTIONS_H
#define OPTIONS_H

typedef struct options {
    char **text;
    int count;
    int wants_cubin; /* a real architecture was requested */
} options;

int options_read(options *, int count, const char *const *given); /* 0 when memory ran out */
void options_free(options *);

#endif
