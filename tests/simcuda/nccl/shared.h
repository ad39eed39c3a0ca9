/* Sums over the processes of one machine, for the test double of NCCL. */
#ifndef SHARED_H
#define SHARED_H
#include <cuda.h>
#include <stddef.h>

/* Results of NCCL. */
enum { OK = 0, INTERNAL = 3, INVALID = 4, REMOTE = 6, IN_PROGRESS = 7 };

struct shared_id {
    char path[128];
};

struct shared;

/* Makes the name of a new file. */
int shared_name(struct shared_id *id);
/* Opens the file, and waits for all processes. NULL on failure. */
struct shared *shared_join(const struct shared_id *id, int rank, int n);
/* Adds up the arrays of all processes, in the order of the ranks. REMOTE: a process does not come;
   IN_PROGRESS: the same, and SIMNCCL_HANGS is set. */
int shared_sum(struct shared *s, const void *own, void *sum, size_t count, int is_double);
void shared_leave(struct shared *s);

#endif
