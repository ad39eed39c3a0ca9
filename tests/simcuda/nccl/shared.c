/* A file below /dev/shm or TMPDIR, which all processes of a group map: a barrier, and a window of
   memory for each. Larger arrays go through it piece by piece. */
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

/* Waits for all processes. Returns false when one does not come. */
static int barrier(const struct shared *s) {
    struct file *f = s->file;
    const struct timespec pause = {0, 50000};
    const int round = atomic_load(&f->round);
    const char *seconds = getenv("SIMNCCL_SECONDS"); /* until a process counts as lost */
    const time_t end = time(NULL) + (seconds ? atoi(seconds) : 30);
    if (atomic_fetch_add(&f->arrived, 1) + 1 == s->n) {
        atomic_store(&f->arrived, 0);
        atomic_fetch_add(&f->round, 1);
        return 1;
    }
    while (atomic_load(&f->round) == round)
        if (time(NULL) > end)
            return 0;
        else
            nanosleep(&pause, NULL);
    return 1;
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

static void add(const struct shared *s, void *sum, size_t count, int is_double) {
    memset(sum, 0, count * (is_double ? 8 : 4));
    for (int r = 0; r < s->n; r++) {
        const char *from = s->file->window + (size_t)r * WINDOW;
        for (size_t i = 0; i < count; i++)
            if (is_double)
                ((double *)sum)[i] += ((const double *)(const void *)from)[i];
            else
                ((float *)sum)[i] += ((const float *)(const void *)from)[i];
    }
}

int shared_sum(struct shared *s, const void *own, void *sum, size_t count, int is_double) {
    const size_t size = is_double ? 8 : 4, most = WINDOW / size;
    for (size_t at = 0; at < count; at += most) {
        const size_t n = count - at < most ? count - at : most;
        memcpy(s->file->window + (size_t)s->rank * WINDOW, (const char *)own + at * size, n * size);
        if (!barrier(s))
            return getenv("SIMNCCL_HANGS") ? IN_PROGRESS : REMOTE;
        add(s, (char *)sum + at * size, n, is_double);
        if (!barrier(s))
            return getenv("SIMNCCL_HANGS") ? IN_PROGRESS : REMOTE;
    }
    return OK;
}

void shared_leave(struct shared *s) {
    munmap(s->file, s->bytes);
    free(s);
}
