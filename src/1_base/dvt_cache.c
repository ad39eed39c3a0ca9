/* Reads the sizes of the processor's data caches: DEVTENSOR_CPU_CACHES, CPUID on x86, /sys on
   Linux, sysctl on macOS. What cannot be read is a small, common cache. Blocks of matrix products
   follow from them (3_cpu/cpu_gemm_blocks.c). */
#include "1_base/dvt_base.h"

/* Row r starts at r * stride modulo a way. If q strides come within `off` bytes of a multiple of a
   way, rows r, r + q, r + 2 q .. move on by only `off` bytes each, so all rows fall into q parts of
   the way of rows / q * off + bytes bytes. The q with the smallest parts counts. */
DVTI_FN int64_t dvti_cache_lines_per_set(const dvti_data_cache *cache, int64_t rows, int64_t bytes,
                                         int64_t stride) {
    const int64_t line = cache->line, way = DVTI_MAX(cache->bytes / line / cache->ways, 1) * line;
    const int64_t step = (stride < 0 ? -stride : stride) % way;
    const int64_t lines = step % line ? bytes + line - 1 : (bytes + line - 1) / line * line;
    int64_t used = way, at = 0, q;
    for (q = 1; q * lines < used; q++) {
        at += step;
        at -= at >= way ? way : 0;
        used = DVTI_MIN(used, q * lines + rows * DVTI_MIN(at, way - at));
    }
    return (rows * lines + used - 1) / used;
}

/* Sets a cache if the values can be true. */
static bool dvti_data_cache_set(dvti_data_cache *cache, int64_t bytes, int64_t ways, int64_t line,
                                int64_t threads) {
    if (bytes < 4096 || bytes > (int64_t)1 << 37 || line < 16 || line > 1024 || ways < 1 ||
        ways > 1024 || bytes % (ways * line))
        return false;
    cache->bytes = bytes;
    cache->ways = (int)ways;
    cache->line = (int)line;
    cache->threads = (int)DVTI_MAX(1, DVTI_MIN(threads, 4096));
    return true;
}

DVTI_FN bool dvti_caches_parse(const char *text, dvti_caches *out) {
    static const int ways[] = {8, 8, 16};
    dvti_caches caches;
    int i;
    memset(&caches, 0, sizeof caches);
    for (i = 0; i < DVTI_LENGTH(ways); i++) {
        char part[32];
        const size_t length = strcspn(text, ",");
        char *slash;
        int64_t associative = ways[i], bytes;
        if (length >= sizeof part)
            return false;
        memcpy(part, text, length);
        part[length] = 0;
        slash = strchr(part, '/');
        if (slash) {
            *slash = 0;
            associative = dvti_parse_bytes(slash + 1);
        }
        bytes = dvti_parse_bytes(part);
        if (!(bytes == 0 && i == 2) && /* no L3 */
            !dvti_data_cache_set(&caches.level[i], bytes, associative, 64, 1))
            return false;
        text += length;
        if (!*text)
            break;
        text++;
    }
    if (*text && i == DVTI_LENGTH(ways))
        return false;
    if (!caches.level[0].bytes || !caches.level[1].bytes)
        return false;
    *out = caches;
    return true;
}

#if DVTI_X86
static void dvti_cpuid_leaf(unsigned leaf, unsigned subleaf, unsigned out[4]) {
#if defined(_MSC_VER) && !defined(__clang__)
    __cpuidex((int *)out, (int)leaf, (int)subleaf);
#else
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(subleaf));
#endif
}

DVTI_FN void dvti_cpuid(unsigned leaf, unsigned subleaf, unsigned out[4]) {
    unsigned highest[4];
    dvti_cpuid_leaf(leaf & 0x80000000u, 0, highest); /* basic or extended leaves */
    memset(out, 0, 4 * sizeof *out);
    if (leaf <= highest[0])
        dvti_cpuid_leaf(leaf, subleaf, out);
}

/* Reads one entry of CPUID leaf 4 (Intel) or 0x8000001D (AMD), which have the same form. Returns
   false after the last. */
static bool dvti_cache_cpuid(unsigned leaf, unsigned entry, dvti_caches *out) {
    unsigned reg[4];
    int type, level;
    dvti_cpuid(leaf, entry, reg);
    type = (int)(reg[0] & 31);
    level = (int)(reg[0] >> 5 & 7);
    if (!type)
        return false;
    if (type != 2 && level >= 1 && level <= 3) { /* not for instructions */
        const int64_t ways = (reg[1] >> 22) + 1, parts = (reg[1] >> 12 & 1023) + 1;
        const int64_t line = (reg[1] & 4095) + 1, sets = (int64_t)reg[2] + 1;
        dvti_data_cache_set(&out->level[level - 1], ways * parts * line * sets, ways, line,
                            (reg[0] >> 14 & 4095) + 1);
    }
    return true;
}

static void dvti_caches_cpuid(dvti_caches *out) {
    const unsigned topology = 1u << 22;
    unsigned reg[4], entry;
    dvti_cpuid(0x80000001u, 0, reg);
    if (reg[2] & topology)
        for (entry = 0; entry < 16 && dvti_cache_cpuid(0x8000001du, entry, out); entry++)
            ;
    for (entry = 0; !out->level[0].bytes && entry < 16 && dvti_cache_cpuid(4, entry, out); entry++)
        ;
}
#endif

/* Counts the processors of a list such as "0-3,8". */
static int64_t dvti_processors_in(const char *list) {
    int64_t count = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        long long first = strtoll(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoll(end + 1, &end, 10);
        count += last - first + 1;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

DVTI_FN void dvti_caches_read(const char *root, dvti_caches *out) {
    static const char *const file[] = {
        "level", "type", "size", "ways_of_associativity", "coherency_line_size", "shared_cpu_list"};
    int index;
    for (index = 0; index < 8; index++) {
        char text[DVTI_LENGTH(file)][64];
        int64_t level;
        int i;
        for (i = 0; i < DVTI_LENGTH(file); i++) {
            char path[640];
            FILE *stream;
            text[i][0] = 0;
            snprintf(path, sizeof path, "%s/index%d/%s", root, index, file[i]);
            stream = fopen(path, "r");
            if (stream) {
                if (!fgets(text[i], (int)sizeof text[i], stream))
                    text[i][0] = 0;
                fclose(stream);
            }
            text[i][strcspn(text[i], "\n")] = 0;
        }
        level = dvti_parse_bytes(text[0]);
        if (level >= 1 && level <= 3 && strcmp(text[1], "Instruction") != 0)
            dvti_data_cache_set(&out->level[level - 1], dvti_parse_bytes(text[2]),
                                DVTI_MAX(dvti_parse_bytes(text[3]), 1), dvti_parse_bytes(text[4]),
                                dvti_processors_in(text[5]));
    }
}

#if defined(__APPLE__)
static int64_t dvti_sysctl(const char *performance, const char *name) {
    int64_t value = 0;
    size_t size = sizeof value;
    if (sysctlbyname(performance, &value, &size, NULL, 0) != 0 &&
        sysctlbyname(name, &value, &size, NULL, 0) != 0)
        return 0;
    return size == sizeof(int32_t) ? (int32_t)value : value;
}
#endif

DVTI_FN void dvti_caches_find(dvti_caches *out) {
    static dvti_atomic warned;
    const char *text = dvti_env("DEVTENSOR_CPU_CACHES");
    memset(out, 0, sizeof *out);
    if (text && dvti_caches_parse(text, out))
        return;
    if (text && dvti_atomic_swap(&warned, 0, 1))
        dvti_log(DVT_LOG_WARNING,
                 "DEVTENSOR_CPU_CACHES is \"%.80s\"; expected sizes of two or three levels, each "
                 "with /ways if known, such as 32K/8,512K/8,32M/16; asking the machine",
                 text);
#if DVTI_X86
    dvti_caches_cpuid(out);
#elif defined(__linux__)
    dvti_caches_read("/sys/devices/system/cpu/cpu0/cache", out);
#elif defined(__APPLE__)
    {
        int64_t line = DVTI_MAX(dvti_sysctl("hw.cachelinesize", "hw.cachelinesize"), 64);
        dvti_data_cache_set(&out->level[0],
                            dvti_sysctl("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"), 8, line,
                            1);
        dvti_data_cache_set(&out->level[1],
                            dvti_sysctl("hw.perflevel0.l2cachesize", "hw.l2cachesize"), 8, line,
                            dvti_sysctl("hw.perflevel0.cpusperl2", "hw.perflevel0.cpusperl2"));
    }
#endif
    if (!out->level[0].bytes)
        dvti_data_cache_set(&out->level[0], 32 << 10, 8, 64, 1);
    if (!out->level[1].bytes)
        dvti_data_cache_set(&out->level[1], 256 << 10, 8, 64, 1);
}

DVTI_FN int64_t dvti_stream_bytes(void) {
    static dvti_atomic known;
    int64_t bytes = dvti_atomic_load(&known);
    if (!bytes) {
        /* Virtual machines often report a part of L3, or another processor's. */
        const int64_t least = 16 << 20, most = 64 << 20;
        dvti_caches caches;
        dvti_caches_find(&caches);
        bytes = DVTI_MAX(least, DVTI_MIN(caches.level[2].bytes, most));
        dvti_atomic_store(&known, bytes);
    }
    return bytes;
}
