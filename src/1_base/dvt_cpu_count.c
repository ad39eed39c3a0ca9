/* Counts the processors that this process may use, once, when the thread pool is created. sysconf
   alone counts the whole machine. In a container with a quota of two processors, a pool of that
   size spends its time descheduled. */
#include "1_base/dvt_base.h"

#define DVTI_MOST_CPUS 4096

#if defined(__linux__)
static int dvti_smaller_quota(int a, int b) {
    return !a ? b : !b ? a : DVTI_MIN(a, b);
}

static long long dvti_number_in(const char *directory, const char *file) {
    char path[640];
    long long number = -1;
    FILE *stream;
    snprintf(path, sizeof path, "%s/%s", directory, file);
    stream = fopen(path, "r");
    if (!stream)
        return -1;
    if (fscanf(stream, "%lld", &number) != 1)
        number = -1;
    fclose(stream);
    return number;
}

static int dvti_quota_in(const char *directory) {
    char path[640];
    long long quota = -1, period = -1;
    FILE *stream;
    snprintf(path, sizeof path, "%s/cpu.max",
             directory); /* version 2: "200000 100000", or "max 100000" */
    stream = fopen(path, "r");
    if (stream) {
        if (fscanf(stream, "%lld %lld", &quota, &period) != 2)
            quota = -1;
        fclose(stream);
    } else {
        quota = dvti_number_in(directory, "cpu.cfs_quota_us");
        period = dvti_number_in(directory, "cpu.cfs_period_us");
    }
    if (quota <= 0 || period <= 0)
        return 0;
    return (int)DVTI_MIN((quota - 1) / period + 1, DVTI_MOST_CPUS);
}

/* Returns the smallest quota of a group and of all groups that contain it. */
static int dvti_quota_up(const char *root, const char *group) {
    char directory[600];
    size_t least = strlen(root);
    int quota = 0;
    /* A group outside of the container's view is "/../other"; then only the mount's root is
       known. */
    snprintf(directory, sizeof directory, "%s%s", root, strstr(group, "..") ? "" : group);
    for (;;) {
        char *cut;
        quota = dvti_smaller_quota(quota, dvti_quota_in(directory));
        cut = strrchr(directory, '/');
        if (!cut || strlen(directory) <= least)
            return quota;
        *cut = 0;
    }
}

/* Returns whether "cpu" is one of the names in "cpuacct,cpu". */
static bool dvti_controls_cpu(const char *names) {
    while (*names) {
        size_t length = strcspn(names, ",");
        if (length == 3 && memcmp(names, "cpu", 3) == 0)
            return true;
        names += length + (names[length] == ',');
    }
    return false;
}

/* Lines are "4:cpu,cpuacct:/group" in version 1 and "0::/group" in version 2. A machine may have
   both. */
DVTI_FN int dvti_cpu_quota(const char *mounts, const char *membership) {
    static const char *const place[] = {"/cpu", "/cpu,cpuacct", "/cpuacct,cpu"};
    FILE *file = fopen(membership, "r");
    char line[512], root[128];
    int quota = 0, i;
    while (file && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *names++ = *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (!*names) {
            snprintf(root, sizeof root, "%s/unified", mounts);
            quota = dvti_smaller_quota(quota, dvti_quota_up(mounts, group));
            quota = dvti_smaller_quota(quota, dvti_quota_up(root, group));
        }
        for (i = 0; i < DVTI_LENGTH(place) && dvti_controls_cpu(names); i++) {
            snprintf(root, sizeof root, "%s%s", mounts, place[i]);
            quota = dvti_smaller_quota(quota, dvti_quota_up(root, group));
        }
    }
    if (file)
        fclose(file);
    return quota;
}

/* Counts the affinity mask by the system call, because the C library's wrapper is limited to 1024
   processors. Returns 0 when the call is refused. */
static int dvti_affinity(void) {
    int count = 0;
#if DVTI_LINUX && defined(SYS_sched_getaffinity)
    unsigned char mask[DVTI_MOST_CPUS];
    long bytes, i;
    int bits;
    memset(mask, 0, sizeof mask);
    bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    for (i = 0; i < bytes; i++)
        for (bits = mask[i]; bits; bits &= bits - 1)
            count++;
#endif
    return count;
}
#else
DVTI_FN int dvti_cpu_quota(const char *mounts, const char *membership) {
    (void)mounts;
    (void)membership;
    return 0;
}
#endif

DVTI_FN int dvti_cpu_count(void) {
#if defined(_WIN32)
    DWORD_PTR allowed = 0, online = 0;
    int count = 0;
    /* The mask covers one group. It is zero when threads are in several groups; then nothing limits
       the process. */
    if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &online))
        for (; allowed; allowed &= allowed - 1)
            count++;
    return count && GetActiveProcessorGroupCount() == 1
               ? count
               : (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#else
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int count = online > 0 ? (int)DVTI_MIN(online, DVTI_MOST_CPUS) : 1;
#if defined(__linux__)
    int allowed = dvti_affinity(), quota = dvti_cpu_quota("/sys/fs/cgroup", "/proc/self/cgroup");
    if (allowed > 0)
        count = allowed;
    count = dvti_smaller_quota(quota, count);
#endif
    return count;
#endif
}

#undef DVTI_MOST_CPUS
