/* What every layer stands on, and knows no arrays: memory, checked sizes, this thread's error, the
   log, growing text, environment values, threads, dynamic libraries. */
#ifndef DVTI_BASE_H
#define DVTI_BASE_H
#include "0_api/dvt_api.h"
#include "1_base/dvt_platform.h"

#define DVTI_STRINGIFY_(x) #x
#define DVTI_STRINGIFY(x) DVTI_STRINGIFY_(x)
#define DVTI_LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))
/* Levels of things that contain their own kind (blocks, transforms, datasets), and of forward calls
   within each other: what recurses over them needs at most 40 KiB of stack. */
#define DVTI_MOST_NESTED 100

/* Calls of one kind within each other on a thread; zeros at the start. A call that an exception or
   longjmp ends does not leave, so the next one to enter drops those with frames below its own. */
typedef struct dvti_nesting {
    int depth;
    uintptr_t frame[DVTI_MOST_NESTED + 1];
} dvti_nesting;

/* Returns how many calls there are around this one, for dvti_nesting_leave; -1: too many. */
DVTI_FN int dvti_nesting_enter(dvti_nesting *nesting);
DVTI_FN void dvti_nesting_leave(dvti_nesting *nesting, int depth);
#define DVTI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DVTI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- memory: everything comes from here, so that a test can make any allocation fail ---- */
/* NULL when exhausted, without setting an error; size 0 gives a block that may be freed. */
DVTI_FN void *dvti_alloc(size_t bytes);
DVTI_FN void *dvti_alloc_zero(size_t bytes);
/* memset to 0, for what every operation clears. */
DVTI_FN void dvti_clear(void *at, size_t bytes);
/* Zeros for 4 or 8 numbers, one store after the other: of a loop, as of a memset, GCC makes `rep
   stos`. */
#define DVTI_ZERO_4(at) ((at)[0] = (at)[1] = (at)[2] = (at)[3] = 0)
#define DVTI_ZERO_8(at) (DVTI_ZERO_4(at), DVTI_ZERO_4((at) + 4))
/* For small objects of a fixed size, which come and go with every operation: a thread between
   dvti_small_begin and dvti_small_end keeps some that were freed. Not set to zero; freed with the
   size that was asked for, by any thread. */
DVTI_FN void *dvti_small_alloc(size_t bytes);
DVTI_FN void dvti_small_free(void *block, size_t bytes);
DVTI_FN void dvti_small_begin(void);
DVTI_FN void dvti_small_end(void);
DVTI_FN void dvti_free(void *block);
/* What dvt_set_allocator has set. */
DVTI_FN const dvt_allocator *dvti_allocator_now(void);
/* Makes room for `need` items in a growing array; false when exhausted (the array is unchanged). */
DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size);
DVTI_FN char *dvti_strdup(const char *text);
/* a * b and a + b for sizes >= 0; false when it does not fit. */
DVTI_FN bool dvti_mul(int64_t a, int64_t b, int64_t *out);
DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out);

/* ---- errors ---- */
/* Keeps the first failure of this thread, logs it, and returns the code. The sentence says:
   function, what was given, what was expected, what to do. */
DVTI_FN DVTI_RARE dvt_status dvti_fail(dvt_status code, const char *format, ...) DVT_PRINTF(2, 3);
/* The same for a failure that another thread has had, and has logged: kept here, not logged
   again. */
DVTI_FN dvt_status dvti_fail_again(dvt_status code, const char *sentence);

/* What this thread is in the middle of, where a function of the caller's or a layer runs operations
   on another's behalf: begins the sentence of everything that fails. write is called while an error
   is made, so it must not need a lock that a failing function may hold. */
typedef struct dvti_error_frame {
    void (*write)(const void *object, char *buffer, size_t size); /* NULL: nothing */
    const void *object;
} dvti_error_frame;

/* Returns the frame that was set, which the caller sets again at its end. */
DVTI_FN dvti_error_frame dvti_set_error_frame(dvti_error_frame frame);
/* Writes the end of every message about missing memory, "; ..." or nothing. Set by 2_core, which
   knows who owns what. */
typedef void (*dvti_advice_fn)(char *buffer, size_t size);
DVTI_FN void dvti_set_memory_advice(dvti_advice_fn write);
/* This thread's latest failure: the status of a call that just failed. dvt_error_code() is its
   first, which may be older. */
DVTI_FN dvt_status dvti_failure(void);
/* The common two. dvti_null: argument `what` of `function` is NULL; silent when an error is already
   kept, since NULL is then that error travelling through a chain. */
DVTI_FN DVTI_RARE dvt_status dvti_fail_memory(const char *function, int64_t bytes);
DVTI_FN DVTI_RARE dvt_status dvti_null(const char *function, const char *what);
/* Reads DEVTENSOR_LOG, and warns when it is no level, before there is anything else to say. */
DVTI_FN void dvti_log_ready(void);
DVTI_FN DVTI_RARE void dvti_log(dvt_log_level level, const char *format, ...) DVT_PRINTF(2, 3);
/* Remembers where the failing call stands, unless it is known. */
DVTI_FN void dvti_error_at(const char *file, int line);

/* ---- growing text with a fixed end: length counts what would have been written ---- */
typedef struct dvti_text {
    char *at;
    size_t size, length;
} dvti_text;

DVTI_FN dvti_text dvti_text_begin(char *buffer, size_t size);
DVTI_FN void dvti_text_add(dvti_text *text, const char *format, ...) DVT_PRINTF(2, 3);
DVTI_FN void dvti_text_char(dvti_text *text, char c, int64_t times);
/* Small texts for messages: a ring of 16 buffers per thread. */
#define DVTI_NAME_SIZE 160
DVTI_FN char *dvti_name_buffer(void);
/* "0 to 9", or that there is nothing when high is below low. */
DVTI_FN const char *dvti_range_text(int64_t low, int64_t high);
/* "(2, 3)", "(3,)", "()"; of a shape that cannot be, what is known of it: "(2, 2, 2, 2, 2, 2, 2, 2,
   ...: 9 axes)". */
DVTI_FN const char *dvti_shape_text(dvt_shape shape);

/* ---- environment ---- */
/* NULL when unset, empty, or not to be trusted (set-user-id programs). */
DVTI_FN const char *dvti_env(const char *name);
/* A whole number of low..high; `fallback` when unset; a warning and `fallback` when it is something
   else. */
DVTI_FN int64_t dvti_env_int(const char *name, int64_t low, int64_t high, int64_t fallback);
/* A number with an optional suffix K, M, G (powers of 1024); -1 when the text is something else. */
DVTI_FN int64_t dvti_parse_bytes(const char *text);

/* ---- threads ---- */
/* Calls body(user, begin, end) over disjoint ranges that cover 0..n, on the caller and the pool's
   threads. `cost` says how many nanoseconds one item takes one thread; a factor of three either way
   does no harm. Work of less than DVTI_PARALLEL_NS in all stays in the caller, as do nested calls,
   calls from device queues and from parallel regions of OpenMP. Where ranges begin depends on the
   number of threads, so it must not decide any rounding. Never fails. */
typedef void (*dvti_range_fn)(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user);
/* The same for costs that are known better, and items whose neighbours nobody else reads or writes:
   while workers look for a job, work is shared from DVTI_HOT_NS on. */
DVTI_FN void dvti_parallel_soon(int64_t n, double cost, dvti_range_fn body, void *user);
/* By at most `parts` threads. `part` is the thread's number, below `parts`: no two ranges with the
   same one run at once. */
typedef void (*dvti_part_fn)(void *user, int64_t begin, int64_t end, int part);
DVTI_FN void dvti_parallel_parts(int64_t n, double cost, int parts, dvti_part_fn body, void *user);
/* A fork and join costs about 0.1 us while the workers look for a job, 5 to 50 us when they sleep.
   As a cost, DVTI_PARALLEL_NS says of an item that it is worth a thread. */
#define DVTI_HOT_NS 3000
#define DVTI_PARALLEL_NS 10000
/* How many threads would take part in a dvti_parallel_for that this thread started now. Never
   waits. */
DVTI_FN int dvti_parallel_width(void);
/* This thread runs everything itself from now on (device queues, loader workers). */
DVTI_FN void dvti_parallel_off(void);
/* Whether this thread is inside a parallel region of OpenMP, by whatever runtime this process
   has. */
DVTI_FN bool dvti_openmp_busy(void);
/* The processors that this process may use: its affinity, and what a container's quota pays for,
   rounded up. */
DVTI_FN int dvti_cpu_count(void);
/* The quota alone; 0: none. `mounts` and `membership`: /sys/fs/cgroup and /proc/self/cgroup. */
DVTI_FN int dvti_cpu_quota(const char *mounts, const char *membership);
#if DVTI_THREADS
/* Starts a thread with all signals blocked, in the default mode of floats; false when the system
   refuses. Its function is DVTI_THREAD_MAIN(name) { .. user .. return 0; } */
DVTI_FN bool dvti_thread_start(dvti_thread *thread, dvti_thread_main run, void *user);
DVTI_FN void dvti_thread_join(dvti_thread thread);
DVTI_FN void dvti_thread_detach(dvti_thread thread);
/* Looks until *word is no longer `value`; false when the time was over first. */
DVTI_FN bool dvti_word_look(const dvti_word *word, dvti_word value, double seconds);
/* Sleeps until then; may return earlier. */
DVTI_FN void dvti_word_sleep(dvti_word *word, dvti_word value);
/* One who sleeps on it, or, without futexes, everybody who sleeps on any; how many, as far as is
   known. */
DVTI_FN int dvti_word_wake(dvti_word *word);
/* In a forked child nobody sleeps. */
DVTI_FN void dvti_word_ready(void);
/* Where threads of the pool run; see dvt_affinity.c. */
#define DVTI_AFFINITY_CPUS 4096

typedef struct dvti_affinity_mask {
    long bytes; /* of a mask; 0: nothing to take back */
    unsigned long before[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))];
    unsigned long without[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))];
    unsigned long others[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))]; /* the main thread's */
} dvti_affinity_mask;

/* Windows has groups of at most 64 processors: which of them a worker belongs to, so that each has
   as many as it has processors; -1: there is no choice. */
DVTI_FN int dvti_affinity_group(int64_t number, const int *processors, int groups);
/* A new worker, by its number. */
DVTI_FN void dvti_affinity_begin(int64_t number);
/* The processor that this thread runs on, -1 where that is not known. */
DVTI_FN int dvti_affinity_now(void);
/* This thread will run elsewhere, where it may, until dvti_affinity_return. */
DVTI_FN void dvti_affinity_leave(dvti_affinity_mask *home, int processor);
DVTI_FN void dvti_affinity_return(dvti_affinity_mask *home);
/* Another thread may run here first. */
DVTI_FN void dvti_affinity_yield(void);
#endif
/* Calls end->run when this thread ends (once per thread) and, for the main thread, at exit. Where
   DVTI_TLS_ENDS_EARLY, `end` lies in a block that is no thread-local variable. */
typedef struct dvti_thread_end {
    void (*run)(struct dvti_thread_end *end);
} dvti_thread_end;

DVTI_FN void dvti_at_thread_end(dvti_thread_end *end);
#if DVTI_TLS_ENDS_EARLY
/* Zeros for what would be a thread-local variable; NULL when there is no memory. */
DVTI_FN void *dvti_thread_block(size_t bytes);
DVTI_FN void dvti_thread_block_free(void *block);
#endif
DVTI_FN int64_t dvti_process_id(void);
DVTI_FN double dvti_now(void);
/* Sleeps for about that long, and may return earlier; short times are spent looking at the clock.
   */
DVTI_FN void dvti_sleep(double seconds);

/* ---- files. A function that fails leaves its reason in errno and sets no error. ---- */
#if !defined(DEVTENSOR_NO_FILES)
typedef struct dvti_fd_info {
    bool regular; /* not a pipe, a device or a socket */
    int64_t size; /* bytes of a regular file */
    unsigned mode;
    int64_t owner, group; /* 0 where the system has none */
} dvti_fd_info;

/* A descriptor, -1 on failure. Opening a directory fails. Opening a FIFO waits for its other end.
   */
DVTI_FN int dvti_fd_open_read(const char *path, dvti_fd_info *info);
/* Of what exists, without changing it. */
DVTI_FN int dvti_fd_open_write(const char *path, dvti_fd_info *info);
/* Makes a file that must not exist, for writing: with mode, owner and group of `like` where this
   process may set them, or as any new file (NULL). */
DVTI_FN int dvti_fd_create(const char *path, const dvti_fd_info *like);
/* Up to n bytes; 0 at the end, -1 on failure. */
DVTI_FN int64_t dvti_fd_read(int fd, void *to, size_t n);
/* All of it or false. */
DVTI_FN bool dvti_fd_write(int fd, const void *from, size_t n);
/* Returns when the content has reached the disk. */
DVTI_FN bool dvti_fd_sync(int fd);
DVTI_FN bool dvti_fd_close(int fd);
/* Renames, replacing what is at `to`, and makes the new name durable. */
DVTI_FN bool dvti_file_replace(const char *from, const char *to);
/* `path`, or where the symbolic links there lead, whether or not it exists. For dvti_free; NULL on
   failure. */
DVTI_FN char *dvti_file_target(const char *path);
/* The descriptor that /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N name; -1 for other
   paths. */
DVTI_FN int dvti_fd_of_path(const char *path);
DVTI_FN int dvti_fd_duplicate(int fd);
#endif

/* ---- hashes and private files: for what is kept between runs ---- */
DVTI_FN void dvti_hash128(const void *bytes, size_t n, uint64_t out[2]);
#if !defined(DEVTENSOR_NO_FILES)
/* Makes the directory when it is not there; false when it cannot be made, or when others may write
   to it. Parents must exist. */
DVTI_FN bool dvti_private_directory(const char *path);
/* The whole file, to be freed; NULL when it is not there, is no plain file of this user's alone, or
   cannot be read. */
DVTI_FN char *dvti_private_read(const char *path, size_t *size);
/* The file appears complete or not at all, whatever other processes do meanwhile. */
DVTI_FN bool dvti_private_write(const char *path, const void *bytes, size_t size);
/* Calls each(user, name, bytes, seconds of the last change, is a directory) for what is in a
   directory. */
typedef void (*dvti_entry_fn)(void *user, const char *name, int64_t bytes, int64_t changed,
                              bool directory);
DVTI_FN void dvti_private_list(const char *path, dvti_entry_fn each, void *user);
#endif

/* ---- dynamic libraries ---- */
DVTI_FN void *dvti_library_open(const char *name);
/* The library only if this process has it already. */
DVTI_FN void *dvti_library_loaded(const char *name);
DVTI_FN void dvti_library_close(void *library);
/* The shared object that this code is part of is never unloaded from now on: dlclose would leave
   threads, and what the system calls at the end of a thread or at a fork, in code that is gone.
   Nothing where it is part of the program itself. */
DVTI_FN void dvti_library_stay(void);
DVTI_FN void *dvti_library_symbol(void *library, const char *name);

#endif
