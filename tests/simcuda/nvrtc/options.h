/* Converts the compiler options of a program for the real NVRTC. */
#ifndef OPTIONS_H
#define OPTIONS_H

typedef struct options {
    char **text;
    int count;
    int wants_cubin;   /* a real architecture was requested */
    int reports_usage; /* ptxas runs, and reports the resources of kernels in the log */
} options;

/* Returns 0 when memory ran out. */
int options_read(options *, int count, const char *const *given, int reports_usage);
void options_free(options *);

#endif
