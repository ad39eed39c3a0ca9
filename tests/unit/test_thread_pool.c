/* Tests of the thread pool, and of what determines its number of threads. */
#define POOL_TEST(name) DVT_TEST(thread_pool_##name)
#include "thread_pool_tests.h"

#if !defined(DEVTENSOR_NO_THREADS)
#if defined(__linux__)
#include <dirent.h>
#include <sys/stat.h>
#endif

/* ---- OpenMP ---- */
#if defined(__ELF__)
static int pretended_region;

/* A program with OpenMP defines this function, which the library finds by a weak reference. */
#ifdef __cplusplus
extern "C"
#endif
    int
    omp_in_parallel(void);

int omp_in_parallel(void) {
    return pretended_region;
}

POOL_TEST(serial_in_an_openmp_region) {
    dvt_set_num_threads(2);
    pool->alone_until = 0;
    CHECK(threads_meet(2));
    pretended_region = 1;
    CHECK(dvti_openmp_busy());
    CHECK_INT(dvti_parallel_width(), 1);
    CHECK_INT(run_job(100, LARGE), 1);
    pretended_region = 0;
    pool->alone_until = 0;
    CHECK(threads_meet(2));
    dvt_set_num_threads(0);
}
#endif

/* ---- groups of processors ---- */
/* Checks the group of each worker. The caller runs on the first processor. Each processor gets one
   thread before any gets a second one. */
static void check_groups(const int *processors, int groups) {
    int64_t number, all = 0;
    int count[4] = {1, 0, 0, 0}, k, round = 1;
    for (k = 0; k < groups; k++)
        all += processors[k];
    for (number = 0; number < 2 * all - 1; number++) {
        const int group = dvti_affinity_group(number, processors, groups);
        if (!CHECK(group >= 0 && group < groups))
            return;
        count[group]++;
        for (k = 0; (number + 2) % all == 0 && k < groups; k++)
            CHECK_INT(count[k], round * processors[k]);
        round += (number + 2) % all == 0;
    }
    CHECK_INT(round, 3);
}

POOL_TEST(threads_in_every_group_of_processors) {
    static const int even[] = {64, 64}, uneven[] = {3, 64, 0, 17}, one[] = {48}, none[] = {0, 0};
    check_groups(even, 2);
    check_groups(uneven, 4);
    CHECK_INT(dvti_affinity_group(0, even, 2), 0);
    CHECK_INT(dvti_affinity_group(62, even, 2), 0);
    CHECK_INT(dvti_affinity_group(63, even, 2), 1);
    CHECK_INT(dvti_affinity_group(127, even, 2), 0);
    CHECK_INT(dvti_affinity_group(5, one, 1), -1);
    CHECK_INT(dvti_affinity_group(5, none, 2), -1);
    CHECK_INT(dvti_affinity_group(5, NULL, 0), -1);
}

/* ---- the number of processors ---- */
#if defined(__linux__)
static void *count_here(void *user) {
    cpu_set_t one, all;
    int i, *result = (int *)user;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (i = 0; i < CPU_SETSIZE && !CPU_ISSET(i, &all); i++)
        continue;
    CPU_SET(i, &one);
    result[0] = dvti_cpu_count() <= CPU_COUNT(&all);
    result[1] = sched_setaffinity(0, sizeof one, &one) == 0 ? dvti_cpu_count() : -1;
    return NULL;
}

POOL_TEST(affinity_limits_threads) {
    pthread_t thread;
    int result[2] = {0, 0};
    if (CHECK(pthread_create(&thread, NULL, count_here, result) == 0))
        pthread_join(thread, NULL);
    CHECK(result[0]);
    CHECK_INT(result[1], 1);
}

/* Sets the affinity of all threads of the process, or compares it. Returns the number of
   threads. */
static int tasks(cpu_set_t *set, int compare) {
    DIR *folder = opendir("/proc/self/task");
    struct dirent *task;
    int n = 0;
    while (folder && (task = readdir(folder)) != NULL) {
        const pid_t id = (pid_t)atol(task->d_name);
        cpu_set_t now;
        if (id <= 0)
            continue;
        if (compare)
            n += sched_getaffinity(id, sizeof now, &now) == 0 && CPU_EQUAL(&now, set);
        else
            n += sched_setaffinity(id, sizeof *set, set) == 0;
    }
    if (folder)
        closedir(folder);
    return n;
}

/* Another program changes the affinity, as taskset -a does, while the worker sleeps with its own
   affinity. */
POOL_TEST(keeps_an_affinity_set_by_other_programs) {
    cpu_set_t all, one;
    int i, round;
    sched_getaffinity(0, sizeof all, &all);
    if (CPU_COUNT(&all) < 2) {
        dvt_test_skip("one processor");
        return;
    }
    for (i = 0; !CPU_ISSET(i, &all); i++)
        continue;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    for (round = 0; round < 3; round++) {
        dvt_set_num_threads(2);
        pool->alone_until = 0;
        CHECK(threads_meet(2));
        until_asleep();
        CHECK(tasks(&one, 0) >= 2);
        pool->alone_until = 0;
        CHECK(threads_meet(2));
        until_asleep();
        CHECK_INT(tasks(&one, 1), tasks(&one, 0));
        CHECK(tasks(&all, 0) >= 2);
        pool->alone_until = 0;
        CHECK(threads_meet(2));
    }
    dvt_set_num_threads(0);
    until_asleep();
    tasks(&all, 0);
}

/* A directory with files like those of the kernel. */
static char root[] = "/tmp/dvt_pool_XXXXXX";

static void put(const char *path, const char *text) {
    char full[300], *slash;
    FILE *file;
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    file = fopen(full, "w");
    if (CHECK(file != NULL)) {
        fputs(text, file);
        fclose(file);
    }
}

static int quota(const char *membership) {
    char full[300];
    put("self", membership);
    snprintf(full, sizeof full, "%s/self", root);
    return dvti_cpu_quota(root, full);
}

POOL_TEST(quotas_limit_threads) {
    char command[300];
    if (!mkdtemp(root))
        SKIP("cannot create a directory in /tmp");
    CHECK_INT(quota("0::/\n"), 0);
    /* cgroup version 2 */
    put("a/cpu.max", "max 100000\n");
    put("a/b/cpu.max", "150000 100000\n");
    put("a/b/c/cpu.max", "900000 100000\n");
    CHECK_INT(quota("0::/a\n"), 0);
    CHECK_INT(quota("0::/a/b\n"), 2);
    CHECK_INT(quota("0::/a/b/c\n"), 2); /* parent groups count */
    CHECK_INT(quota("0::/gone/d\n"), 0);
    /* A container sees its own group as the root. */
    put("cpu.max", "400000 100000\n");
    CHECK_INT(quota("0::/gone/d\n"), 4);
    CHECK_INT(quota("0::/../../other\n"), 4);
    put("cpu.max", "nonsense");
    CHECK_INT(quota("0::/\n"), 0);
    put("cpu.max", "1000 100000\n");
    CHECK_INT(quota("0::/\n"), 1);
    put("cpu.max", "99999999999999 1\n");
    CHECK_INT(quota("0::/\n"), 4096);
    /* cgroup version 1, and both */
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota("3:cpu,cpuacct:/job\n"), 0);
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    CHECK_INT(quota("3:cpu,cpuacct:/job\n"), 3);
    CHECK_INT(quota("12:memory:/x\n3:cpuacct,cpu:/job\n4:cpuset:/\nnonsense\n"), 3);
    CHECK_INT(quota("3:cpuset,cpuacct:/job\n"), 0);
    put("unified/a/cpu.max", "200000 100000\n");
    CHECK_INT(quota("3:cpu,cpuacct:/job\n0::/a\n"), 2);
    CHECK_INT(dvti_cpu_quota(root, "/nothing/there"), 0);
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK_INT(system(command), 0);
}
#endif

/* ---- counters ---- */
static int taken_lines(void) {
    int i, n = 0;
    for (i = 0; i < DVTI_LENGTH(dvti_tallies); i++)
        n += dvti_atomic_load(&dvti_tallies[i].taken) != 0;
    return n;
}

static void *release_only(void *array) {
    dvt_release(array);
    return NULL;
}

POOL_TEST(threads_that_only_release_free_their_counter) {
    const int before = taken_lines();
    int i;
    for (i = 0; i < 2 * DVTI_LENGTH(dvti_tallies); i++) {
        dvt_array *x = NULL;
        pthread_t thread;
        DVT_SCOPE {
            x = (dvt_array *)dvt_retain(dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()));
        }
        if (CHECK(pthread_create(&thread, NULL, release_only, x) == 0))
            pthread_join(thread, NULL);
    }
    CHECK(taken_lines() <= before + 1);
}

#else
#include "dvt_test.h"

DVT_TEST(thread_pool_left_out) {
    SKIP("DEVTENSOR_NO_THREADS");
}
#endif
