/* The harness: registration, checks, the closing line. */
#include "dvt_test.h"
#if !defined(_WIN32)
#include <signal.h>
#include <unistd.h>
#endif
#include <stdarg.h>

/* Impossible sizes must be returned as errors under the sanitizers too. */
#ifdef __cplusplus
extern "C" {
#endif
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__msan_default_options(void);

const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

const char *__msan_default_options(void) {
    return "allocator_may_return_null=1";
}
#ifdef __cplusplus
}
#endif

static dvt_test *first_test;
static long checks, failed_checks_of_test;
static const char *skip_reason;
static uint64_t seed = 20260101, state;

void dvt_test_register(dvt_test *test) {
    dvt_test **at = &first_test;
    while (*at && (strcmp((*at)->file, test->file) < 0 ||
                   (strcmp((*at)->file, test->file) == 0 && strcmp((*at)->name, test->name) < 0)))
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

int dvt_test_check(int ok, const char *file, int line, const char *format, ...) {
    va_list args;
    /* Threads of a test check too. */
    __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
    if (ok)
        return 1;
    if (__atomic_add_fetch(&failed_checks_of_test, 1, __ATOMIC_RELAXED) > 20)
        return 0;
    printf("%s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return 0;
}

void dvt_test_skip(const char *reason) {
    skip_reason = reason;
}

int dvt_test_on_gpus(void) {
    dvt_device_info info;
    int found = dvt_num_gpus() > 0 && dvt_device_query(dvt_gpu(0), &info) == DVT_OK;
    return found && info.driver_version != 0;
}

dvt_ctx dvt_test_ctx(void) {
    return getenv("DVT_TEST_GPU") ? dvt_gpu(0) : dvt_cpu();
}

int dvt_test_close(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

/* splitmix64 */
double dvt_test_random(double low, double high) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) * 0x1p-53);
}

double *dvt_test_values(dvt_array *x) {
    int64_t n = dvt_size(x);
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    DVT_SCOPE {
        dvt_array *wide;
        DVT_PAUSE {
            wide = dvt_as_in_dtype(x, DVT_F64);
            if (!wide || dvt_to_host(wide, values, n * 8) != DVT_OK) {
                free(values);
                values = NULL;
            }
        }
    }
    return values;
}

int dvt_test_equal(dvt_array *x, const double *expected, int64_t n, double tolerance,
                   const char *file, int line) {
    double *values;
    int64_t i;
    int ok = 1;
    if (!dvt_test_check(x != NULL, file, line, "the array is NULL: %s", dvt_error()) ||
        !dvt_test_check(dvt_size(x) == n, file, line, "the array has %lld elements, expected %lld",
                        (long long)dvt_size(x), (long long)n))
        return 0;
    values = dvt_test_values(x);
    if (!dvt_test_check(values != NULL, file, line, "cannot read the array: %s", dvt_error()))
        return 0;
    for (i = 0; i < n && ok; i++)
        ok = dvt_test_check(dvt_test_close(values[i], expected[i], tolerance), file, line,
                            "element %lld is %.17g, expected %.17g within %g", (long long)i,
                            values[i], expected[i], tolerance);
    free(values);
    return ok;
}

/* Prints a line from time to time, to show the progress of long runs. */
static void say_where(const dvt_test *test, int verbose, long done) {
    static double said;
    const double now = dvt_seconds();
    if (verbose)
        return;
    if (said == 0)
        said = now;
    if (now - said < 30)
        return;
    said = now;
    printf("   %ld tests done, at %s\n", done, test->name);
    fflush(stdout);
}

static int run_one(dvt_test *test, int verbose) {
    dvt_stats before, after;
    double start = dvt_seconds();
    failed_checks_of_test = 0;
    skip_reason = NULL;
    state = seed;
    dvt_clear_error();
    dvt_seed(0);
    before = dvt_get_stats();
    DVT_WITH_CTX(dvt_test_ctx()) {
        test->run();
    }
    if (dvt_error_code() != DVT_OK)
        dvt_test_check(0, test->file, 0, "%s left an error behind: %s", test->name, dvt_error());
    dvt_clear_error();
    dvt_discard_all();
    after = dvt_get_stats();
    if (after.arrays != before.arrays || after.blocks_of_memory != before.blocks_of_memory)
        dvt_test_check(0, test->file, 0, "%s leaks: %lld arrays and %lld buffers more than before",
                       test->name, (long long)(after.arrays - before.arrays),
                       (long long)(after.blocks_of_memory - before.blocks_of_memory));
    if (failed_checks_of_test)
        printf("FAIL %s (seed %llu)\n", test->name, (unsigned long long)seed);
    else if (skip_reason)
        printf("SKIP %s: %s\n", test->name, skip_reason);
    else if (verbose)
        printf("pass %s (%.2f s)\n", test->name, dvt_seconds() - start);
    fflush(stdout);
    return failed_checks_of_test ? 1 : skip_reason ? 2 : 0;
}

/* ---- a run that a time limit ends says where it was ---- */
#if !defined(_WIN32)
static const char *volatile running = "no test";
static pid_t own_process;

/* A child that a test has forked ends as without this. */
static void stopped(int number) {
    static const char before[] = "stopped in ";
    const char *name = running;
    if (getpid() != own_process) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    /* stdout may be locked: only write() is safe here */
    if (write(1, before, sizeof before - 1) < 0 || write(1, name, strlen(name)) < 0 ||
        write(1, "\n", 1) < 0)
        _exit(1);
    _exit(128 + number);
}

static void say_where_stopped(void) {
    own_process = getpid();
    if (signal(SIGTERM, stopped) == SIG_IGN)
        signal(SIGTERM, SIG_IGN);
}

#define RUNNING(name) (running = (name))
#else
#define say_where_stopped() ((void)0)
#define RUNNING(name) ((void)(name))
#endif

/* Tells whether a filter is a part of the test's name, or the name of its file, "test_core.c". */
static int is_wanted(const dvt_test *test, char **filters, int n) {
    const char *slash = strrchr(test->file, '/'), *file = slash ? slash + 1 : test->file;
    int i;
    for (i = 0; i < n; i++)
        if (strstr(test->name, filters[i]) || strcmp(file, filters[i]) == 0)
            return 1;
    return n == 0;
}

int main(int argc, char **argv) {
    long counts[3] = {0, 0, 0};
    int verbose = 0, filters = 0, i;
    dvt_test *test;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "-v") == 0)
            verbose = 1;
        else if (strcmp(argv[i], "--list") == 0)
            verbose = 2;
        else
            argv[1 + filters++] = argv[i];
    }
#if defined(__linux__)
    /* Saved files are synced, which takes 10 ms and more on a disk. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
#endif
    say_where_stopped();
    dvt_set_log_level(DVT_LOG_OFF);
    printf("seed %llu\n", (unsigned long long)seed);
    for (test = first_test; test; test = test->next) {
        if (!is_wanted(test, argv + 1, filters))
            continue;
        if (verbose == 2)
            printf("%s\n", test->name);
        else {
            say_where(test, verbose, counts[0] + counts[1] + counts[2]);
            RUNNING(test->name);
            counts[run_one(test, verbose)]++;
        }
    }
    printf("%ld checks\n", checks);
    printf("%ld passed, %ld failed, %ld skipped\n", counts[0], counts[1], counts[2]);
    return counts[1] ? 1 : 0;
}
