/* The protocol of every runner of the comparison: it reads commands from standard input, one per
   line, and answers each with a line.

     case OP key=value ...   prepares a case: "ok", or "no" and the reason
     sample SECONDS          calls it for that time: "seconds_per_call calls"
     result FILE             calls it once more and writes its result as float32: "ok COUNT"
     peak                    peak memory of the process: "kilobytes"
     quit

   Inputs are the same for all participants: input_value(seed, i), in [-1, 1). */
#ifndef RUNNER_H
#define RUNNER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct runner_case {
    void (*call)(struct runner_case *c);
    /* Returns the result of the last call; NULL: nothing to check. */
    const float *(*output)(struct runner_case *c, int64_t *count);
    void (*end)(struct runner_case *c);
    void *user;
} runner_case;

/* Fills *c. Returns NULL, or the reason why there is no such case. */
typedef const char *(*runner_find)(const char *op, const char *arguments, runner_case *c);

/* Hashes a 32-bit number with constants from Chris Wellons's search ("lowbias32"). */
static inline float input_value(uint32_t seed, uint32_t i) {
    uint32_t x = i * 2654435769u + seed * 40503u;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return (float)(int32_t)x * (1.0f / 2147483648.0f);
}

static inline void input_fill(float *to, int64_t n, uint32_t seed, float low, float high) {
    int64_t i;
    for (i = 0; i < n; i++)
        to[i] = low + (high - low) * 0.5f * (input_value(seed, (uint32_t)i) + 1.0f);
}

/* Allocates n floats plus one vector, in huge pages if it is large and the machine has them. */
static inline float *input_alloc(int64_t n) {
    size_t large = (size_t)2 << 20,
           bytes = ((size_t)n * sizeof(float) + 64 + large - 1) / large * large;
    void *block = NULL;
    if (posix_memalign(&block, large, bytes))
        return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(block, bytes, MADV_HUGEPAGE);
#endif
    memset(block, 0, bytes);
    return (float *)block;
}

/* Returns the number after "key=" in the arguments. */
static inline int64_t argument(const char *arguments, const char *key, int64_t otherwise) {
    size_t length = strlen(key);
    const char *at = arguments;
    while (at && *at) {
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return strtoll(at + length + 1, NULL, 10);
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return otherwise;
}

/* Tells whether the comparison is limited to vectors narrower than AVX-512. */
static inline bool runner_narrow(void) {
    const char *isa = getenv("DEVTENSOR_ISA");
    return isa && *isa && strcmp(isa, "avx512") != 0;
}

static inline double runner_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void runner_sample(runner_case *c, double seconds) {
    double begin = runner_now(), spent;
    int64_t calls = 0, batch = 1, i;
    do {
        for (i = 0; i < batch; i++)
            c->call(c);
        calls += batch;
        spent = runner_now() - begin;
        if (spent < seconds / 16)
            batch *= 2;
    } while (spent < seconds);
    printf("%.9g %lld\n", spent / (double)calls, (long long)calls);
}

static inline void runner_result(runner_case *c, const char *path) {
    int64_t count = 0;
    const float *values;
    bool written;
    FILE *file;
    c->call(c);
    values = c->output ? c->output(c, &count) : NULL;
    if (!values) {
        puts("ok 0");
        return;
    }
    file = fopen(path, "wb");
    written = file && fwrite(values, sizeof *values, (size_t)count, file) == (size_t)count;
    if (file)
        written = fclose(file) == 0 && written;
    if (written) /* only now, because the reader of this line reads the file */
        printf("ok %lld\n", (long long)count);
    else
        puts("no could not write");
}

/* Linux only; elsewhere the row is omitted. */
static inline void runner_peak(void) {
    char line[256];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lld", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    if (kilobytes)
        printf("%lld\n", kilobytes);
    else
        puts("no /proc/self/status");
}

static inline int runner_main(runner_find find) {
    char line[512];
    runner_case c;
    memset(&c, 0, sizeof c);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        char *word = strtok(line, " \n"), *rest = strtok(NULL, "\n");
        if (!word || strcmp(word, "quit") == 0)
            break;
        if (strcmp(word, "case") == 0 && rest) {
            char *op = rest, *arguments = strchr(rest, ' ');
            const char *reason;
            if (arguments)
                *arguments++ = 0;
            if (c.end)
                c.end(&c);
            memset(&c, 0, sizeof c);
            reason = find(op, arguments ? arguments : "", &c);
            if (reason)
                printf("no %s\n", reason);
            else
                puts("ok");
        } else if (strcmp(word, "sample") == 0 && c.call && rest) {
            runner_sample(&c, atof(rest));
        } else if (strcmp(word, "result") == 0 && c.call && rest) {
            runner_result(&c, rest);
        } else if (strcmp(word, "peak") == 0) {
            runner_peak();
        } else {
            puts("no such command");
        }
    }
    if (c.end)
        c.end(&c);
    return 0;
}

#endif
