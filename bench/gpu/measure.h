/* Measures the participants of a row, alternately, and appends their lines. Each sample takes at
   least SAMPLE_SECONDS between two CUDA events, or by the clock of the host where the row says so.
   A peer that fails leaves the row, with a line. */
#ifndef MEASURE_H
#define MEASURE_H
#include "check.h"
#include "host.h"
#include <time.h>

#define MOST_SAMPLES 101
#define SAMPLE_SECONDS 2e-3
#define PATIENCE 6.0 /* seconds of samples of one row, after which three are enough */

typedef enum clock_kind { EVENTS, WALL, QUEUED } clock_kind;

typedef struct participant {
    const char *name;
    bool (*call)(row *r); /* false: a peer failed; ours ends the process */
    clock_kind clock;
    dvt_array *result; /* of a product; NULL: this call has none */
    row_error error;
    double samples[MOST_SAMPLES];
} participant;

typedef row_error check_call(row *r, participant *p);

/* The command line of ours.c. */
static struct settings {
    const char *rows, *out, *part, *only;
    bool once, prepare, alone;
    int samples, limit;
} set = {NULL, NULL, "", NULL, false, false, false, 31, 40};

static void *event[2]; /* before and after a sample */

/* ---- lines ---- */
static void append(const char *line) {
    FILE *out = fopen(set.out, "a");
    must(out != NULL, set.out);
    must(fputs(line, out) >= 0 && fclose(out) == 0, set.out);
}

static void say_failed(const char *text, const char *who, const char *why) {
    char line[900], plain[400];
    size_t i;
    snprintf(plain, sizeof plain, "%s", why);
    for (i = 0; plain[i]; i++)
        if (plain[i] == '"' || plain[i] == '\\' || (unsigned char)plain[i] < ' ')
            plain[i] = '\'';
    snprintf(line, sizeof line,
             "{\"kind\": \"row\", \"row\": \"%s\", \"who\": \"%s\", \"failed\": "
             "\"%s\"}\n",
             text, who, plain);
    append(line);
}

static int by_size(const void *x, const void *y) {
    double d = *(const double *)x - *(const double *)y;
    return (d > 0) - (d < 0);
}

/* Writes an error as JSON, which has no NaN. */
static const char *number(double error, char *text, size_t size) {
    snprintf(text, size, isfinite(error) && error >= 0 ? "%.3g" : "null", error);
    return text;
}

static void say(const row *r, participant *p, int n) {
    char line[900], whole[40], worst[40], spot[40];
    const char *right = p->error.whole < 0             ? "null"
                        : is_right(p->error, r->bound) ? "true"
                                                       : "false";
    qsort(p->samples, (size_t)n, sizeof *p->samples, by_size);
    snprintf(line, sizeof line,
             "{\"kind\": \"row\", \"row\": \"%s\", \"who\": \"%s\", \"seconds\": %.6g, \"low\": "
             "%.6g, \"high\": %.6g, \"samples\": %d, \"work\": %.6g, \"unit\": \"%s\", \"floor\": "
             "\"%s\", \"error\": %s, \"worst\": %s, \"spot\": %s, \"bound\": %g, \"right\": %s}\n",
             r->text, p->name, p->samples[n / 2], p->samples[n / 10], p->samples[n - 1 - n / 10], n,
             r->work, r->unit, r->floor, number(p->error.whole, whole, sizeof whole),
             number(p->error.worst, worst, sizeof worst), number(p->error.spot, spot, sizeof spot),
             r->bound, right);
    append(line);
}

/* ---- measuring ---- */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds of a call, averaged over `calls`; negative if a peer failed. */
static double sample(participant *p, row *r, int calls) {
    void *stream = dvt_cuda_stream(dvt_gpu(0));
    float milliseconds = 0;
    double begin = now(), queued;
    bool ok = true;
    int i;
    if (p->clock == EVENTS)
        need(driver.cuEventRecord(event[0], stream), "cuEventRecord");
    for (i = 0; i < calls && ok; i++)
        ok = p->call(r);
    if (!ok)
        return -1;
    queued = now() - begin;
    if (p->clock == EVENTS) {
        need(driver.cuEventRecord(event[1], stream), "cuEventRecord");
        need(driver.cuEventSynchronize(event[1]), "cuEventSynchronize");
        need(driver.elapsed(&milliseconds, event[0], event[1]), "cuEventElapsedTime");
        return 1e-3 * (double)milliseconds / calls;
    }
    must(dvt_wait_all() == DVT_OK, r->text);
    return (p->clock == WALL ? now() - begin : queued) / calls;
}

/* Removes participant i, a peer that failed. Returns how many are left. */
static int leave(row *r, participant *all, int n, int i) {
    say_failed(r->text, all[i].name, peer_failure);
    memmove(&all[i], &all[i + 1], (size_t)(n - i - 1) * sizeof *all);
    return n - 1;
}

/* Returns how often a sample calls, so that it takes SAMPLE_SECONDS; 0 if a peer failed. */
static int calls_of(participant *p, row *r) {
    double first = is_op(r, "mnist_099") ? 10 : sample(p, r, 1); /* loads and compiles */
    first = first >= 0 && first < SAMPLE_SECONDS ? sample(p, r, 4) : first;
    return first < 0 ? 0 : first < SAMPLE_SECONDS / 1000 ? 1000 : (int)(SAMPLE_SECONDS / first) + 1;
}

/* Measures the participants, of which the first is ours, and then compares those with a result.
   check NULL: there is nothing to compare. */
static void measure(row *r, participant *all, int n, check_call *check) {
    double begin, seconds;
    int calls[4], samples = 0, i, wanted = set.samples, least = is_op(r, "mnist_099") ? 1 : 3;
    for (i = 0; i < n;)
        if ((calls[i] = calls_of(&all[i], r)) > 0)
            i++;
        else
            n = leave(r, all, n, i);
    begin = now();
    while (samples < wanted && (samples < least || now() - begin < PATIENCE)) {
        for (i = 0; i < n; i++) { /* the order rotates */
            int who = (i + samples) % n;
            seconds = sample(&all[who], r, calls[who]);
            must(seconds >= 0, peer_failure); /* it has worked before: the GPU is lost */
            all[who].samples[samples] = seconds;
        }
        samples++;
    }
    for (i = 0; i < n; i++)
        say(r, &all[i], samples);
    for (i = 0; i < n && check; i++)
        if (i == 0 || all[i].result) {
            all[i].error = check(r, &all[i]);
            say(r, &all[i], samples);
        }
}

#endif
