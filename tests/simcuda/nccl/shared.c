/* A file below /dev/shm or TMPDIR, which all processes of a group map: a barrier, and a window of
   memory for each. Larger arrays go through it piece by piece. A sum waits for nothing: each call
   goes on as far as the other processes have come. */
#include "shared.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 1 << 16 };

struct file {
    atomic_int arrived, round; /* of the barrier */
    char pad[56];
    char window[];
};

struct shared {
    struct file *file;
    size_t bytes;
    int rank, n;
    /* the sum in progress */
    const char *own;
    char *sum;
    size_t count, at; /* elements; the first one of the piece in the window */
    int is_double;

    enum { WRITE, FULL, READ } stage; /* FULL: until all have written; READ: until all have read */

    int round;  /* of the barrier where it waits */
    time_t end; /* then a missing process counts as lost */
};

int shared_name(struct shared_id *id) {
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                         : getenv("TMPDIR")            ? getenv("TMPDIR")
                                                       : "/tmp";
    int file;
    memset(id, 0, sizeof *id);
    snprintf(id->path, sizeof id->path, "%s/simnccl.XXXXXX", folder);
    file = mkstemp(id->path);
    if (file >= 0)
        close(file);
    return file >= 0 ? OK : INTERNAL;
}

/* Arrives at the barrier. */
static void arrive(struct shared *s) {
    struct file *f = s->file;
    const char *seconds = getenv("SIMNCCL_SECONDS"); /* until a process counts as lost */
    s->end = time(NULL) + (seconds ? atoi(seconds) : 30);
    s->round = atomic_load(&f->round);
    if (atomic_fetch_add(&f->arrived, 1) + 1 == s->n) {
        atomic_store(&f->arrived, 0);
        atomic_fetch_add(&f->round, 1);
    }
}

/* Returns OK when all have arrived, or IN_PROGRESS, or REMOTE. */
static int passed(const struct shared *s) {
    if (atomic_load(&s->file->round) != s->round)
        return OK;
    return time(NULL) > s->end ? REMOTE : IN_PROGRESS;
}

static int barrier(struct shared *s) {
    const struct timespec pause = {0, 50000};
    int result;
    arrive(s);
    while ((result = passed(s)) == IN_PROGRESS)
        nanosleep(&pause, NULL);
    return result == OK;
}

struct shared *shared_join(const struct shared_id *id, int rank, int n) {
    struct shared *s = calloc(1, sizeof *s);
    int file = open(id->path, O_RDWR);
    s->bytes = sizeof(struct file) + (size_t)n * WINDOW;
    s->rank = rank;
    s->n = n;
    if (file < 0 || ftruncate(file, (off_t)s->bytes)) {
        free(s);
        return NULL;
    }
    s->file = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (s->file == MAP_FAILED || !barrier(s)) {
        free(s);
        return NULL;
    }
    if (rank == 0) /* all have opened it */
        unlink(id->path);
    return s;
}

static size_t piece(const struct shared *s) {
    const size_t most = WINDOW / (s->is_double ? 8 : 4), left = s->count - s->at;
    return left < most ? left : most;
}

static void add(const struct shared *s) {
    const size_t size = s->is_double ? 8 : 4, n = piece(s);
    char *sum = s->sum + s->at * size;
    memset(sum, 0, n * size);
    for (int r = 0; r < s->n; r++) {
        const char *from = s->file->window + (size_t)r * WINDOW;
        for (size_t i = 0; i < n; i++)
            if (s->is_double)
                ((double *)(void *)sum)[i] += ((const double *)(const void *)from)[i];
            else
                ((float *)(void *)sum)[i] += ((const float *)(const void *)from)[i];
    }
}

void shared_begin(struct shared *s, const void *own, void *sum, size_t count, int is_double) {
    s->own = own;
    s->sum = sum;
    s->count = count;
    s->is_double = is_double;
    s->at = 0;
    s->stage = WRITE;
}

int shared_go_on(struct shared *s) {
    const size_t size = s->is_double ? 8 : 4;
    while (s->at < s->count) {
        const int result = s->stage == WRITE ? OK : passed(s);
        if (result == REMOTE)
            return getenv("SIMNCCL_HANGS") ? IN_PROGRESS : REMOTE;
        if (result != OK)
            return result;
        if (s->stage == WRITE) {
            memcpy(s->file->window + (size_t)s->rank * WINDOW, s->own + s->at * size,
                   piece(s) * size);
            arrive(s);
            s->stage = FULL;
        } else if (s->stage == FULL) {
            add(s);
            arrive(s);
            s->stage = READ;
        } else {
            s->at += piece(s);
            s->stage = WRITE;
        }
    }
    return OK;
}

void shared_leave(struct shared *s) {
    munmap(s->file, s->bytes);
    free(s);
}
