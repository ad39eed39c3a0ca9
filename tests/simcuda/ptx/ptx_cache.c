/* Files, hashes, and the cache. Several processes may share one directory: an entry is written
   under a unique name and then renamed, so a reader sees a complete entry or none. A second writer
   replaces it by the same bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../sim_module.h"
#include "ptx_cache.h"

ptx_hash ptx_hash_begin(void) {
    return (ptx_hash)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;
}

ptx_hash ptx_hash_add(ptx_hash hash, const void *data, size_t size) {
    const unsigned char *p = data;
    const ptx_hash prime = (ptx_hash)1 << 88 | 0x13b;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * prime;
    return hash;
}

void ptx_hash_text(ptx_hash hash, char text[40]) {
    snprintf(text, 40, "%016llx%016llx", (unsigned long long)(hash >> 64),
             (unsigned long long)hash);
}

char *ptx_read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long length = ftell(f);
        rewind(f);
        data = length >= 0 ? malloc((size_t)length + 1) : NULL;
        if (data && fread(data, 1, (size_t)length, f) != (size_t)length) {
            free(data);
            data = NULL;
            errno = EIO;
        }
        if (data) {
            data[length] = 0;
            *size = (size_t)length;
        }
    }
    fclose(f);
    return data;
}

int ptx_write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f)
        return 0;
    size_t written = fwrite(data, 1, size, f);
    return fclose(f) == 0 && written == size;
}

static int entry_path(char *path, size_t capacity, const char *key, const char *tail) {
    const char *folder = getenv("SIMCUDA_CACHE");
    if (!folder || !*folder)
        return 0;
    int n = snprintf(path, capacity, "%s/%s%s", folder, key, tail);
    return n > 0 && (size_t)n < capacity;
}

static int is_sound(const char *data, size_t size, const char *key) {
    sim_container header;
    if (size < sizeof header)
        return 0;
    memcpy(&header, data, sizeof header);
    return !memcmp(header.magic, SIM_CONTAINER_MAGIC, 8) && header.abi == SIM_ABI &&
           header.total_size == size && header.header_size == sizeof header &&
           !strncmp(header.key, key, sizeof header.key) &&
           header.checksum == sim_container_sum(data + sizeof header, size - sizeof header);
}

void *ptx_cache_get(const char *key, size_t *size) {
    char path[PATH_MAX];
    if (!entry_path(path, sizeof path, key, ".simcubin"))
        return NULL;
    char *data = ptx_read_file(path, size);
    if (data && !is_sound(data, *size, key)) {
        free(data);
        return NULL;
    }
    return data;
}

void ptx_cache_put(const char *key, const void *container, size_t size) {
    static unsigned serial;
    char path[PATH_MAX], temporary[PATH_MAX], tail[64];
    const char *folder = getenv("SIMCUDA_CACHE");
    snprintf(tail, sizeof tail, ".%ld.%u", (long)getpid(),
             __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
    if (!entry_path(path, sizeof path, key, ".simcubin") ||
        !entry_path(temporary, sizeof temporary, key, tail))
        return;
    if ((mkdir(folder, 0777) != 0 && errno != EEXIST) ||
        !ptx_write_file(temporary, container, size) || rename(temporary, path) != 0) {
        fprintf(stderr, "simcuda: cannot write the cache %s: %s\n", folder, strerror(errno));
        unlink(temporary);
    }
}
