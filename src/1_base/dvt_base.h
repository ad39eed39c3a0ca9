/* The base of all layers: memory, checked sizes, this thread's error, the log, text buffers,
   environment values, threads, dynamic libraries. This layer knows no arrays. */
#ifndef DVTI_BASE_H
#define DVTI_BASE_H
#include "0_api/dvt_api.h"
#include "1_base/dvt_platform.h"

/* Checkpoints need networks, files and safetensors. */
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES) && !defined(DEVTENSOR_NO_FORMATS)
#define DVTI_CHECKPOINTS
#endif

#define DVTI_STRINGIFY_(x) #x
#define DVTI_STRINGIFY(x) DVTI_STRINGIFY_(x)
#define DVTI_LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))
/* Limits the depth of objects that contain their own kind (blocks, transforms, datasets), and of
   nested forward calls. Recursion over them needs at most 40 KiB of stack. */
#define DVTI_MOST_NESTED 100

/* Counts nested calls of one kind on a thread; starts as zeros. A call that ends by an exception or
   longjmp never leaves. So the next call to enter drops the calls whose frames are below its
   own. */
typedef struct dvti_nesting {
    int depth;
    uintptr_t frame[DVTI_MOST_NESTED + 1];
} dvti_nesting;

/* Returns how many calls enclose this one, for dvti_nesting_leave; -1 when there are too many. */
DVTI_FN int dvti_nesting_enter(dvti_nesting *nesting);
DVTI_FN void dvti_nesting_leave(dvti_nesting *nesting, int depth);
#define DVTI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DVTI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- memory: all allocations go through these functions, so tests can make any one fail ---- */
/* Returns NULL when memory is exhausted, without setting an error. Size 0 gives a block that may be
   freed. */
DVTI_FN void *dvti_alloc(size_t bytes);
DVTI_FN void *dvti_alloc_zero(size_t bytes);
/* Sets memory to 0. Every operation clears its structs with it. */
DVTI_FN void dvti_clear(void *at, size_t bytes);
/* Clears 4 or 8 numbers by separate stores. GCC turns a loop or a memset into `rep stos`, which is
   slower. */
#define DVTI_ZERO_4(at) ((at)[0] = (at)[1] = (at)[2] = (at)[3] = 0)
#define DVTI_ZERO_8(at) (DVTI_ZERO_4(at), DVTI_ZERO_4((at) + 4))
/* Allocates small objects of a fixed size that every operation creates and frees. Between
   dvti_small_begin and dvti_small_end, a thread keeps some freed blocks for reuse. Blocks are not
   cleared. Any thread may free them, with the size that was requested. */
DVTI_FN void *dvti_small_alloc(size_t bytes);
DVTI_FN void dvti_small_free(void *block, size_t bytes);
DVTI_FN void dvti_small_begin(void);
DVTI_FN void dvti_small_end(void);
DVTI_FN void dvti_free(void *block);
/* Returns the allocator that dvt_set_allocator has set. */
DVTI_FN const dvt_allocator *dvti_allocator_now(void);
/* Grows an array to hold `need` items. Returns false when memory is exhausted; the array is then
   unchanged. */
DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size);
DVTI_FN char *dvti_strdup(const char *text);
/* Compute a * b and a + b for sizes >= 0. Return false on overflow. */
DVTI_FN bool dvti_mul(int64_t a, int64_t b, int64_t *out);
DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out);

/* Returns the position of the highest set bit of x > 0, which is log2(x) rounded down. */
static inline int dvti_highest_bit(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return 63 - __builtin_clzll(x);
#else
    int bit = 0, step;
    for (step = 32; step; step /= 2)
        if (x >> step) {
            x >>= step;
            bit += step;
        }
    return bit;
#endif
}

/* ---- errors ---- */
/* Keeps the first failure of this thread, logs it and returns the code. The sentence names the
   function, the value given, the value expected, and what to do. */
DVTI_FN DVTI_RARE dvt_status dvti_fail(dvt_status code, const char *format, ...) DVT_PRINTF(2, 3);
/* Records a failure of another thread on this one, without logging it again. */
DVTI_FN dvt_status dvti_fail_relay(dvt_status code, const char *sentence);

/* Describes what this thread is doing while an operation runs on behalf of a layer or of a caller's
   function. The text starts the sentence of every failure. `write` runs while an error is created,
   so it must not take a lock that a failing function may hold. */
typedef struct dvti_error_frame {
    void (*write)(const void *object, char *buffer, size_t size); /* NULL: nothing */
    const void *object;
} dvti_error_frame;

/* Returns the previous frame; the caller restores it at its end. */
DVTI_FN dvti_error_frame dvti_set_error_frame(dvti_error_frame frame);
/* Sets the function that writes the end of the message for a memory failure: "; ..." or nothing.
   2_core sets it, because it knows the owners of memory. */
typedef void (*dvti_advice_fn)(char *buffer, size_t size);
DVTI_FN void dvti_set_memory_advice(dvti_advice_fn write);
/* Returns this thread's latest failure: the status of a call that just failed. dvt_error_code()
   returns the first one, which may be older. */
DVTI_FN dvt_status dvti_failure(void);

/* Between these two, failures of this thread are attempts: they are logged as debug messages, and
   are forgotten at the end. dvti_failure() returns the latest one until then. */
typedef struct dvti_attempt {
    bool clean;
    dvt_status latest;
} dvti_attempt;

DVTI_FN dvti_attempt dvti_attempt_begin(void);
DVTI_FN void dvti_attempt_end(const dvti_attempt *attempt);
/* The two common failures. dvti_null reports that argument `what` of `function` is NULL. It is
   silent when an error is already kept, because NULL is then that error passed along a chain. */
DVTI_FN DVTI_RARE dvt_status dvti_fail_memory(const char *function, int64_t bytes);
DVTI_FN DVTI_RARE dvt_status dvti_null(const char *function, const char *what);
/* Reads DEVTENSOR_LOG before the first message, and warns when it is not a level. */
DVTI_FN void dvti_log_ready(void);
DVTI_FN DVTI_RARE void dvti_log(dvt_log_level level, const char *format, ...) DVT_PRINTF(2, 3);
/* Records the source position of the failing call, unless it is already known. */
DVTI_FN void dvti_error_at(const char *file, int line);

/* ---- text buffers of a fixed size: length counts the characters that the whole text needs ---- */
typedef struct dvti_text {
    char *at;
    size_t size, length;
} dvti_text;

DVTI_FN dvti_text dvti_text_begin(char *buffer, size_t size);
DVTI_FN void dvti_text_add(dvti_text *text, const char *format, ...) DVT_PRINTF(2, 3);
DVTI_FN void dvti_text_char(dvti_text *text, char c, int64_t times);
/* Returns a buffer for a small text in a message, from a ring of 16 per thread. */
#define DVTI_NAME_SIZE 160
DVTI_FN char *dvti_name_buffer(void);
/* Returns "0 to 9", or a text that says the range is empty when high < low. */
DVTI_FN const char *dvti_range_text(int64_t low, int64_t high);
/* Returns "(2, 3)", "(3,)" or "()". For an invalid shape it returns the known part: "(2, 2, 2, 2,
   2, 2, 2, 2, ...: 9 axes)". */
DVTI_FN const char *dvti_shape_text(dvt_shape shape);
/* Formats one line for messages: "'a', 'b', 'c', ..., 'z' (12 in all)", or "none". name(user, i)
   returns the texts. */
DVTI_FN const char *dvti_brief(char *buffer, size_t size, int n,
                               const char *(*name)(const void *user, int i), const void *user);
DVTI_FN const char *dvti_brief_names(char *buffer, size_t size, int n, const char *const *names);
/* Returns the length of the directory in a path, with its last separator; 0 when there is none. */
DVTI_FN size_t dvti_path_directory(const char *path);

/* ---- environment ---- */
/* Returns NULL when the variable is unset or empty, or the program is set-user-id. */
DVTI_FN const char *dvti_env(const char *name);
/* Reads an integer in low..high. Returns `fallback` when the variable is unset, and warns when it
   is invalid. */
DVTI_FN int64_t dvti_env_int(const char *name, int64_t low, int64_t high, int64_t fallback);
/* Parses a number with an optional suffix K, M, G (powers of 1024). Returns -1 for other text. */
DVTI_FN int64_t dvti_parse_bytes(const char *text);

/* ---- threads ---- */
/* Calls body(user, begin, end) over disjoint ranges that cover 0..n, on the caller and on the
   workers of the thread pool. `cost` is the time of one item on one thread in nanoseconds. An error
   by a factor of three does no harm. The caller runs everything itself when the total is below
   DVTI_PARALLEL_NS. The same holds for nested calls, calls from device queues, and calls inside
   OpenMP parallel regions. The bounds of ranges depend on the number of threads, so no rounding may
   depend on them. Never fails. */
typedef void (*dvti_range_fn)(void *user, int64_t begin, int64_t end);
DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user);
/* Like dvti_parallel_for, for costs that are known better and items on cache lines that no other
   thread uses. While workers spin, it shares work from DVTI_HOT_NS on. */
DVTI_FN void dvti_parallel_fine(int64_t n, double cost, dvti_range_fn body, void *user);
/* Uses at most `parts` threads. `part` is the thread's number, below `parts`. Ranges with the same
   number never run concurrently. */
typedef void (*dvti_part_fn)(void *user, int64_t begin, int64_t end, int part);
DVTI_FN void dvti_parallel_parts(int64_t n, double cost, int parts, dvti_part_fn body, void *user);
/* A fork and join costs about 0.1 us while workers spin, and 5 to 50 us while they sleep. An item
   whose cost is DVTI_PARALLEL_NS is always worth a thread. */
#define DVTI_HOT_NS 3000
#define DVTI_PARALLEL_NS 10000
/* Returns how many threads would take part in a dvti_parallel_for that this thread started now.
   Never waits. */
DVTI_FN int dvti_parallel_width(void);
/* Makes this thread run everything itself from now on (device queues, loader workers). */
DVTI_FN void dvti_parallel_off(void);
/* Returns whether this thread is inside an OpenMP parallel region, of any runtime in the
   process. */
DVTI_FN bool dvti_openmp_busy(void);
/* Returns how many processors this process may use: its affinity mask, limited by the container's
   CPU quota, rounded up. */
DVTI_FN int dvti_cpu_count(void);
/* Returns the CPU quota alone; 0 when there is none. `mounts` and `membership` stand for
   /sys/fs/cgroup and /proc/self/cgroup. */
DVTI_FN int dvti_cpu_quota(const char *mounts, const char *membership);

/* ---- caches (dvt_cache.c) ---- */
typedef struct dvti_data_cache {
    int64_t bytes; /* 0: there is none */
    int ways, line;
    int threads; /* processors that share it, as far as is known */
} dvti_data_cache;

typedef struct dvti_caches {
    dvti_data_cache level[3]; /* L1 for data, L2, L3 */
} dvti_caches;

/* Asks the machine, or DEVTENSOR_CPU_CACHES. L1 and L2 always have a size afterwards. Takes
   microseconds. */
DVTI_FN void dvti_caches_find(dvti_caches *out);
/* Reads "32K/8,512K/8,32M/16": bytes and ways of L1, L2 and, optionally, L3. */
DVTI_FN bool dvti_caches_parse(const char *text, dvti_caches *out);
/* Reads what Linux tells in root/index0, root/index1 and so on. */
DVTI_FN void dvti_caches_read(const char *root, dvti_caches *out);
/* Returns the size from which results are written with non-temporal stores: they leave the last
   cache before they are read. */
DVTI_FN int64_t dvti_stream_bytes(void);
/* Returns about how many cache lines share a set if `rows` rows of `bytes` bytes, `stride` bytes
   apart, are kept. More than the cache has ways cannot stay. */
DVTI_FN int64_t dvti_cache_lines_per_set(const dvti_data_cache *cache, int64_t rows, int64_t bytes,
                                         int64_t stride);
#if DVTI_X86
/* Reads a CPUID leaf; zeros if the processor does not have it. */
DVTI_FN void dvti_cpuid(unsigned leaf, unsigned subleaf, unsigned out[4]);
#endif
#if DVTI_THREADS
/* Starts a thread with all signals blocked and the default floating-point mode. Returns false when
   the system refuses. The thread's function is DVTI_THREAD_MAIN(name) { .. user .. return 0; } */
DVTI_FN bool dvti_thread_start(dvti_thread *thread, dvti_thread_main run, void *user);
DVTI_FN void dvti_thread_join(dvti_thread thread);
DVTI_FN void dvti_thread_detach(dvti_thread thread);
/* Spins until *word differs from `value`. Returns false on a timeout. */
DVTI_FN bool dvti_futex_spin(const dvti_futex *word, dvti_futex value, double seconds);
/* Sleeps while *word is `value`. May return earlier. */
DVTI_FN void dvti_futex_wait(dvti_futex *word, dvti_futex value);
/* Wakes one thread that sleeps on the word. Without futexes it wakes the sleepers of all words.
   Returns how many threads it woke, as far as is known. */
DVTI_FN int dvti_futex_wake(dvti_futex *word);
/* Resets the state in a forked child, where no thread sleeps. */
DVTI_FN void dvti_futex_reset(void);
/* The processors of the pool's workers; see dvt_affinity.c. */
#define DVTI_AFFINITY_CPUS 4096

typedef struct dvti_affinity_mask {
    long bytes; /* of a mask; 0: nothing to restore */
    unsigned long before[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))];
    unsigned long without[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))];
    unsigned long others[DVTI_AFFINITY_CPUS / (8 * sizeof(unsigned long))]; /* the main thread's */
} dvti_affinity_mask;

/* Returns the processor group of a worker on Windows, where a group has at most 64 processors. Each
   group gets as many workers as it has processors. Returns -1 when there is one group. */
DVTI_FN int dvti_affinity_group(int64_t number, const int *processors, int groups);
/* Assigns a new worker to its processor group. */
DVTI_FN void dvti_affinity_begin(int64_t number);
/* Returns the processor that this thread runs on; -1 where that is not known. */
DVTI_FN int dvti_affinity_now(void);
/* Moves this thread off the processor until dvti_affinity_return, where its mask allows that. */
DVTI_FN void dvti_affinity_leave(dvti_affinity_mask *home, int processor);
DVTI_FN void dvti_affinity_return(dvti_affinity_mask *home);
/* Yields the processor to another thread. */
DVTI_FN void dvti_affinity_yield(void);
#endif
/* Calls end->run once when this thread ends and, for the main thread, at exit. If
   DVTI_TLS_ENDS_EARLY, `end` must not be in a thread-local variable. */
typedef struct dvti_thread_end {
    void (*run)(struct dvti_thread_end *end);
} dvti_thread_end;

DVTI_FN void dvti_at_thread_end(dvti_thread_end *end);
#if DVTI_TLS_ENDS_EARLY
/* Allocates zeros in place of a thread-local variable. Returns NULL when memory is exhausted. */
DVTI_FN void *dvti_thread_block(size_t bytes);
DVTI_FN void dvti_thread_block_free(void *block);
#endif
DVTI_FN int64_t dvti_process_id(void);
DVTI_FN double dvti_now(void);
/* Sleeps for about `seconds`, and may return earlier. Spins on the clock for short times. */
DVTI_FN void dvti_sleep(double seconds);

/* ---- files: a function that fails leaves its reason in errno and sets no error ---- */
/* A file as memory. Its pages are read at their first use, and copied at the first write. */
typedef struct dvti_mapping {
    unsigned char *data;
    int64_t bytes;
    dvti_atomic uses;
} dvti_mapping;

#if !defined(DEVTENSOR_NO_FILES)
typedef struct dvti_fd_info {
    bool regular; /* not a pipe, a device or a socket */
    int64_t size; /* bytes of a regular file */
    unsigned mode;
    int64_t owner, group; /* 0 where the system has none */
} dvti_fd_info;

/* Returns a descriptor; -1 on failure. Opening a directory fails. Opening a FIFO waits for its
   other end. */
DVTI_FN int dvti_fd_open_read(const char *path, dvti_fd_info *info);
/* Opens an existing file without changing it. */
DVTI_FN int dvti_fd_open_write(const char *path, dvti_fd_info *info);
/* Creates a file that must not exist, for writing. It gets the mode, owner and group of `like`
   where this process may set them. With NULL it gets those of any new file. */
DVTI_FN int dvti_fd_create(const char *path, const dvti_fd_info *like);
/* Reads up to n bytes. Returns 0 at the end, -1 on failure. */
DVTI_FN int64_t dvti_fd_read(int fd, void *to, size_t n);
/* Continues reading at byte `at` of a regular file. */
DVTI_FN bool dvti_fd_seek(int fd, int64_t at);
/* Shortens a regular file to `bytes`, and continues there. */
DVTI_FN bool dvti_fd_cut(int fd, int64_t bytes);
/* Writes all n bytes, or returns false. */
DVTI_FN bool dvti_fd_write(int fd, const void *from, size_t n);
/* Waits until the content has reached the disk. */
DVTI_FN bool dvti_fd_sync(int fd);
DVTI_FN bool dvti_fd_close(int fd);
/* Renames a file, replaces the one at `to`, and makes the new name durable. */
DVTI_FN bool dvti_file_replace(const char *from, const char *to);
/* Returns `path` with its symbolic links followed, whether or not the target exists. Free it with
   dvti_free. NULL on failure. */
DVTI_FN char *dvti_file_target(const char *path);
/* Creates a directory and its parents, where they are missing. */
DVTI_FN bool dvti_directories_make(const char *path);
/* Returns the descriptor that /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N names; -1 for
   other paths. */
DVTI_FN int dvti_fd_of_path(const char *path);
DVTI_FN int dvti_fd_duplicate(int fd);

/* Maps the `bytes` > 0 of a regular file, with one use. The descriptor may be closed afterwards.
   Returns NULL if the system cannot map it. */
DVTI_FN dvti_mapping *dvti_map_file(int fd, int64_t bytes);
/* Adds a use. */
DVTI_FN void dvti_map_hold(dvti_mapping *mapping);
/* Ends a use of a dvti_mapping; the last one unmaps it. */
DVTI_FN void dvti_map_release(void *mapping);
#endif

/* ---- hashes and private files, for data kept between runs ---- */
DVTI_FN void dvti_hash128(const void *bytes, size_t n, uint64_t out[2]);
#if !defined(DEVTENSOR_NO_FILES)
/* Creates the directory if it is missing. Returns false when that fails or when other users may
   write to it. Parents must exist. */
DVTI_FN bool dvti_private_directory(const char *path);
/* Reads the whole file into a block to be freed. Returns NULL when the file is missing, is not a
   plain file that only this user can write, or cannot be read. */
DVTI_FN char *dvti_private_read(const char *path, size_t *size);
/* Writes the file atomically: it appears complete or not at all, also with concurrent writers. */
DVTI_FN bool dvti_private_write(const char *path, const void *bytes, size_t size);
/* The names of temporary files that become public ones begin so. */
#define DVTI_TEMPORARY ".devtensor-"
/* Calls each(user, name, bytes, modification time in seconds, is a directory) for every entry of a
   directory, except names with a point in front that are not DVTI_TEMPORARY. Returns false with the
   reason in errno if it could not list all. */
typedef void (*dvti_entry_fn)(void *user, const char *name, int64_t bytes, int64_t changed,
                              bool directory);
DVTI_FN bool dvti_private_list(const char *path, dvti_entry_fn each, void *user);
/* Returns whether the listed temporary file is left over from a process that has ended. */
DVTI_FN bool dvti_temporary_left(const char *name, int64_t changed);
#endif

/* ---- dynamic libraries ---- */
DVTI_FN void *dvti_library_open(const char *name);
/* Returns the library only if this process has loaded it already. */
DVTI_FN void *dvti_library_loaded(const char *name);
DVTI_FN void dvti_library_close(void *library);
/* Prevents this shared object from being unloaded. Otherwise dlclose would unmap the code of
   running threads, thread-end handlers and fork handlers. Does nothing if the library is linked
   into the program. */
DVTI_FN void dvti_library_stay(void);
DVTI_FN void *dvti_library_symbol(void *library, const char *name);

#endif
