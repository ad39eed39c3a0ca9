/* Caches compiled programs on disk, so that NVRTC runs once per machine and not once per process.

   Each program has one file, <directory>/<2 digits>/<30 digits>.bin, named by its key. It holds
   magic, format, key, size and hash of the image, and the image. A truncated, modified or
   foreign file is a cache miss; it is compiled again and replaced.

   The directory is DEVTENSOR_CACHE_DIR, or devtensor under XDG_CACHE_HOME, ~/.cache or
   %LOCALAPPDATA%, or what a symbolic link of that name leads to. A directory that other users can
   write to is refused, because its content runs on the GPU. A read-only directory is read. */
#include "3_cuda/jit/dvt_cuda_jit.h"

DVTI_FN dvti_cuda_key dvti_cuda_key_of(int cc, dvti_cuda_family family, const char *source) {
    static const char version[] = DVT_VERSION_STRING;
    dvti_cuda_key key;
    uint64_t text[2], head[8];
    dvti_hash128(source, strlen(source), text);
    memset(head, 0, sizeof head);
    head[0] = (uint64_t)cc;
    head[1] = (uint64_t)dvti_cuda_fuses(family) | (uint64_t)dvti_cuda_exact(family) << 1;
    head[2] = 1; /* version of the options of dvti_cuda_compile; increment on a change */
    head[3] = text[0];
    head[4] = text[1];
    memcpy(&head[5], version, DVTI_MIN(sizeof version, 16));
    dvti_hash128(head, sizeof head, key.word);
    return key;
}

#if defined(DEVTENSOR_NO_FILES)

DVTI_FN bool dvti_cuda_cache_read(dvti_cuda_key key, dvti_cuda_image *image) {
    (void)key;
    (void)image;
    return false;
}

DVTI_FN void dvti_cuda_cache_write(dvti_cuda_key key, const dvti_cuda_image *image) {
    (void)key;
    (void)image;
}

DVTI_FN bool dvti_cuda_cache_any(void) {
    return false;
}

#else

#define DVTI_CACHE_PATH 1000

typedef struct dvti_cache_head {
    char magic[8];
    uint64_t format;
    uint64_t key[2], size, hash[2];
} dvti_cache_head;

static const char dvti_cache_magic[8] = {'D', 'V', 'T', 'C', 'U', 'D', 'A', '\n'};
#define DVTI_CACHE_FORMAT 1

typedef struct dvti_cache {
    bool ready;
    char directory[DVTI_CACHE_PATH]; /* "": none */
    int64_t most;                    /* limit in bytes */
    int64_t total;                   /* bytes found when it was last listed, and written since */
    int written;                     /* files of this process */
} dvti_cache;

static dvti_cache dvti_the_cache;
static dvti_mutex dvti_cache_lock = DVTI_MUTEX_INIT;

/* ---- the directory ---- */
/* Creates ~/.cache too, which a fresh machine may lack. */
static bool dvti_cache_choose(char *directory) {
    const char *own = dvti_env("DEVTENSOR_CACHE_DIR"), *base;
#if defined(_WIN32)
    base = dvti_env("LOCALAPPDATA");
    if (!own && base)
        snprintf(directory, DVTI_CACHE_PATH, "%s\\devtensor", base);
#else
    base = dvti_env("XDG_CACHE_HOME");
    if (!own && base && base[0] == '/')
        snprintf(directory, DVTI_CACHE_PATH, "%s/devtensor", base);
    else if (!own) {
        base = dvti_env("HOME");
        if (base && base[0] == '/') {
            snprintf(directory, DVTI_CACHE_PATH, "%s/.cache", base);
            dvti_private_directory(directory);
            snprintf(directory, DVTI_CACHE_PATH, "%s/.cache/devtensor", base);
        }
    }
#endif
    if (own)
        snprintf(directory, DVTI_CACHE_PATH, "%s", own);
    return directory[0] && strlen(directory) < DVTI_CACHE_PATH - 64;
}

/* Follows symbolic links once. The target is then checked and used, wherever the link points
   later. */
static bool dvti_cache_follow(char *directory) {
    char *target = dvti_file_target(directory);
    const bool fits = target && strlen(target) < DVTI_CACHE_PATH - 64;
    if (fits)
        snprintf(directory, DVTI_CACHE_PATH, "%s", target);
    dvti_free(target);
    return fits;
}

static const dvti_cache *dvti_cache_ready(void) {
    dvti_cache *cache = &dvti_the_cache;
    const char *size;
    dvti_mutex_lock(&dvti_cache_lock);
    if (!cache->ready) {
        cache->ready = true;
        cache->most = (int64_t)256 << 20;
        size = dvti_env("DEVTENSOR_CACHE_SIZE");
        if (size && dvti_parse_bytes(size) >= 0)
            cache->most = dvti_parse_bytes(size);
        if (!dvti_env_int("DEVTENSOR_CACHE", 0, 1, 1) || !dvti_cache_choose(cache->directory))
            cache->directory[0] = 0;
        else if (!dvti_cache_follow(cache->directory) ||
                 !dvti_private_directory(cache->directory)) {
            dvti_log(DVT_LOG_INFO,
                     "compiled kernels are not cached: %.300s is not a directory of this user, or "
                     "other users may write to it",
                     cache->directory);
            cache->directory[0] = 0;
        }
    }
    dvti_mutex_unlock(&dvti_cache_lock);
    return cache->directory[0] ? cache : NULL;
}

/* The shard is the directory of the first two digits. */
static void dvti_cache_path(const dvti_cache *cache, dvti_cuda_key key, char *shard, char *path) {
    snprintf(shard, DVTI_CACHE_PATH, "%.900s/%02x", cache->directory,
             (unsigned)(key.word[0] >> 56));
    snprintf(path, DVTI_CACHE_PATH, "%.900s/%02x/%014llx%016llx.bin", cache->directory,
             (unsigned)(key.word[0] >> 56),
             (unsigned long long)(key.word[0] & ~((uint64_t)0xff << 56)),
             (unsigned long long)key.word[1]);
}

/* ---- entries ---- */
static dvti_cache_head dvti_cache_head_of(dvti_cuda_key key, const char *bytes, size_t size) {
    dvti_cache_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, dvti_cache_magic, sizeof head.magic);
    head.format = DVTI_CACHE_FORMAT;
    memcpy(head.key, key.word, sizeof head.key);
    head.size = (uint64_t)size;
    dvti_hash128(bytes, size, head.hash);
    return head;
}

DVTI_FN bool dvti_cuda_cache_read(dvti_cuda_key key, dvti_cuda_image *image) {
    const dvti_cache *cache = dvti_cache_ready();
    char shard[DVTI_CACHE_PATH], path[DVTI_CACHE_PATH], *file;
    dvti_cache_head head;
    size_t size = 0;
    if (!cache)
        return false;
    dvti_cache_path(cache, key, shard, path);
    file = dvti_private_directory(shard) ? dvti_private_read(path, &size) : NULL;
    if (!file)
        return false;
    if (size > sizeof head) {
        head = dvti_cache_head_of(key, file + sizeof head, size - sizeof head);
        if (memcmp(file, &head, sizeof head) == 0) {
            memmove(file, file + sizeof head, size - sizeof head);
            image->bytes = file;
            image->size = size - sizeof head;
            return true;
        }
    }
    dvti_free(file);
    remove(path);
    return false;
}

static void dvti_cache_count(void *user, const char *name, int64_t bytes, int64_t changed,
                             bool directory) {
    (void)bytes;
    (void)changed;
    *(bool *)user = *(bool *)user || (directory && strlen(name) == 2);
}

DVTI_FN bool dvti_cuda_cache_any(void) {
    const dvti_cache *cache = dvti_cache_ready();
    bool any = false;
    if (cache)
        (void)dvti_private_list(cache->directory, dvti_cache_count, &any);
    return any;
}

/* ---- size limit: the oldest entries are removed first ---- */
typedef struct dvti_cache_walk {
    const char *folder;   /* NULL: the top directory */
    int64_t total, older; /* bytes in all; entries changed before `older` are removed */
    int64_t oldest, newest;
} dvti_cache_walk;

static void dvti_cache_visit(void *user, const char *name, int64_t bytes, int64_t changed,
                             bool directory) {
    dvti_cache_walk *walk = (dvti_cache_walk *)user, inner;
    char path[DVTI_CACHE_PATH + 300];
    snprintf(path, sizeof path, "%s/%s", walk->folder, name);
    if (directory && strlen(name) == 2) {
        inner = *walk;
        inner.folder = path;
        (void)dvti_private_list(path, dvti_cache_visit, &inner);
        inner.folder = walk->folder;
        *walk = inner;
    } else if (!directory) {
        if (changed < walk->older && remove(path) == 0)
            return;
        walk->total += bytes;
        walk->oldest = DVTI_MIN(walk->oldest, changed);
        walk->newest = DVTI_MAX(walk->newest, changed);
    }
}

/* Returns the bytes that remain. */
static int64_t dvti_cache_prune(const dvti_cache *cache) {
    dvti_cache_walk walk;
    int64_t older = 0;
    int round;
    /* Each round removes the older half of the time span. */
    for (round = 0; round < 40; round++) {
        memset(&walk, 0, sizeof walk);
        walk.folder = cache->directory;
        walk.older = older;
        walk.oldest = INT64_MAX;
        (void)dvti_private_list(cache->directory, dvti_cache_visit, &walk);
        if (walk.total <= cache->most)
            break;
        older = walk.oldest + (walk.newest - walk.oldest) / 2 + 1;
    }
    return walk.total;
}

/* Lists the directory when this process knows of too many bytes, and from time to time, because
   other processes write too. */
static void dvti_cache_grown(const dvti_cache *cache, int64_t bytes) {
    int64_t total;
    bool check;
    dvti_mutex_lock(&dvti_cache_lock);
    total = dvti_the_cache.total += bytes;
    check = dvti_the_cache.written++ % 64 == 0 || total > cache->most;
    dvti_mutex_unlock(&dvti_cache_lock);
    if (!check)
        return;
    total = dvti_cache_prune(cache);
    dvti_mutex_lock(&dvti_cache_lock);
    dvti_the_cache.total = total;
    dvti_mutex_unlock(&dvti_cache_lock);
}

DVTI_FN void dvti_cuda_cache_write(dvti_cuda_key key, const dvti_cuda_image *image) {
    const dvti_cache *cache = dvti_cache_ready();
    char shard[DVTI_CACHE_PATH], path[DVTI_CACHE_PATH], *file;
    dvti_cache_head head;
    bool written;
    if (!cache)
        return;
    dvti_cache_path(cache, key, shard, path);
    file = (char *)dvti_alloc(sizeof head + image->size);
    if (!file)
        return;
    head = dvti_cache_head_of(key, image->bytes, image->size);
    memcpy(file, &head, sizeof head);
    memcpy(file + sizeof head, image->bytes, image->size);
    written =
        dvti_private_directory(shard) && dvti_private_write(path, file, sizeof head + image->size);
    dvti_free(file);
    if (written)
        dvti_cache_grown(cache, (int64_t)(sizeof head + image->size));
}

#undef DVTI_CACHE_PATH
#undef DVTI_CACHE_FORMAT

#endif
