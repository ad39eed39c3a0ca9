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
/* Begins to add up the arrays of all processes, in the order of the ranks. One sum at a time; both
   arrays stay until it ends. */
void shared_begin(struct shared *s, const void *own, void *sum, size_t count, int is_double);
/* Goes on as far as it can without waiting. Returns OK at the end, IN_PROGRESS before it. REMOTE: a
   process does not come; with SIMNCCL_HANGS that is IN_PROGRESS for ever. */
int shared_go_on(struct shared *s);
void shared_leave(struct shared *s);

#endif
