/* The interface between the files of virtual GPUs: the command queue.

   A queue is a ring of numbered commands. The worker thread of the device runs them in order:

       command     |  done |  done | running | queued | queued |  free  | ...
                                   ^                           ^
                                completed                     put

   Other devices, and callers that wait, watch `completed`. A copy between devices is a COPY in the
   queue of the destination and an AWAIT in the queue of the source. The source's next commands wait
   for the copy, which waits for the source's earlier commands:

       gpu(0), source         | launch A |  AWAIT: until COPY is completed  | launch B |
                                       |                            ^
                                       v                            |
       gpu(1), destination    | launch | COPY: after A is completed | launch |

   A command waits only for commands that were queued before it, so queues cannot deadlock. */
#ifndef DVTI_VIRTUAL_H
#define DVTI_VIRTUAL_H
#include "3_cpu/dvt_cpu.h"

#define DVTI_QUEUE_LENGTH 128
#define DVTI_INLINE_BYTES 512 /* uploads of at most this size are copied into the command */

typedef enum dvti_command_kind {
    DVTI_COMMAND_LAUNCH,  /* `staging`: its dvti_custom, or NULL */
    DVTI_COMMAND_COPY,    /* src to dst; src may be bytes[], or `staging`, which is freed */
    DVTI_COMMAND_RELEASE, /* returns dst to the heap */
    DVTI_COMMAND_AWAIT,   /* only waits for `after` */
    DVTI_COMMAND_MARK     /* sets the time of dst, a dvti_virtual_mark */
} dvti_command_kind;

typedef struct dvti_command {
    dvti_command_kind kind;
    dvti_launch launch;
    void *dst;
    const void *src;
    int64_t size;
    void *staging;
    double seconds; /* modeled duration; 0: none */
    unsigned char bytes[DVTI_INLINE_BYTES];
    struct dvti_virtual *after; /* NULL, or the queue to wait for; holds a reference */
    int64_t after_number;
} dvti_command;

typedef struct dvti_virtual {
    dvti_atomic references; /* of the device, and of other queues' waiting commands */
    dvt_ctx ctx;
    int64_t process;
    bool threaded;
    dvti_heap heap;
#if DVTI_THREADS
    dvti_thread thread;
    dvti_cond work, done;
#endif
    dvti_mutex lock; /* protects all members below */
    bool stop;
    int64_t put, completed; /* numbers of commands so far */
    double free_at;         /* modeled time at which the queue is free */
    const char *fail_next;  /* for tests: the reason with which the next launch fails */
    bool lost;              /* a launch failed; later commands are skipped */
    char lost_text[512];
    dvt_status pending; /* the result of the next wait */
    char pending_text[512];
    dvti_command ring[DVTI_QUEUE_LENGTH];
} dvti_virtual;

static inline dvti_virtual *dvti_virtual_of(dvti_device *device) {
    return (dvti_virtual *)device->impl;
}

/* A point in a queue. The event and the queued command have a reference each. */
typedef struct dvti_virtual_mark {
    dvti_atomic references;
    int64_t number; /* of its command */
    double at;      /* dvti_now() when the queue came to it */
} dvti_virtual_mark;

DVTI_FN const dvti_marks *dvti_virtual_marks(void);
/* Sets the time of the mark and drops the command's reference. */
DVTI_FN void dvti_virtual_mark_reached(dvti_virtual_mark *mark);
/* Returns an error in a forked child and for a lost device. */
DVTI_FN dvt_status dvti_virtual_usable(dvti_device *device, const char *what);
/* Returns the error that the next wait has to report, and forgets it. */
DVTI_FN dvt_status dvti_virtual_pending(dvti_virtual *v);

static inline bool dvti_virtual_forked(const dvti_virtual *v) {
    return v->process != dvti_process_id();
}

/* Releases a reference, and the queue with the last one. */
DVTI_FN void dvti_virtual_unref(dvti_virtual *v);
/* Initializes the locks and starts the worker thread. Returns false if the system refuses it;
   commands then run in the calling thread. */
DVTI_FN bool dvti_virtual_start(dvti_virtual *v);
/* Runs all queued commands and joins the worker. Does nothing in a forked child. */
DVTI_FN void dvti_virtual_stop(dvti_virtual *v);
/* Adds `seconds` of modeled work that starts when the queue is free, but not before `not_before`.
   Returns the modeled time of its end. */
DVTI_FN double dvti_virtual_book(dvti_virtual *v, double not_before, double seconds);
/* Advances this thread's modeled time to the end of the queue's work. */
DVTI_FN void dvti_virtual_catch_up(dvti_virtual *v);
/* Returns the number of commands queued so far. Once as many are completed, their results are
   visible. */
DVTI_FN int64_t dvti_virtual_now(dvti_virtual *v);
/* Waits until `number` commands are completed. */
DVTI_FN void dvti_virtual_await(dvti_virtual *v, int64_t number);
/* Reports a failed source: if `from` is lost, the next wait of v fails, since the copied values are
   invalid. */
DVTI_FN void dvti_virtual_check_source(dvti_virtual *v, dvti_virtual *from);
/* Runs a command. */
DVTI_FN void dvti_virtual_do(dvti_virtual *v, dvti_command *command);
/* Waits for a free slot of the ring and returns it with the lock held. The caller fills it and
   calls dvti_virtual_put, which releases the lock. */
DVTI_FN dvti_command *dvti_virtual_slot(dvti_virtual *v, dvti_command_kind kind);
/* Makes the command wait until `after` has completed `number` commands. */
DVTI_FN void dvti_virtual_order(dvti_command *command, dvti_virtual *after, int64_t number);
/* Queues the filled slot. Returns its number, counted from 1. */
DVTI_FN int64_t dvti_virtual_put(dvti_virtual *v);
/* Returns whether no command is queued or running. The caller must be the only one that may queue
   commands on the memory in question. */
DVTI_FN bool dvti_virtual_idle(dvti_virtual *v);

#endif
