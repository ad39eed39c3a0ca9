/* Programs on GPUs: looked up by family, variant and entry, and compiled or loaded at first use. */
#include "3_cuda/jit/dvt_cuda_jit.h"

/* An image of this process, which its other GPUs can use. */
typedef struct dvti_cuda_kept {
    dvti_cuda_key key;
    dvti_cuda_image image;
} dvti_cuda_kept;

typedef struct dvti_cuda_registry {
    dvti_mutex compiling; /* taken before `lock`: one program at a time, as in NVRTC */
    dvti_mutex lock;      /* for the rest; not held during a compilation */
    dvti_cuda_kept *kept;
    size_t n, capacity;
    dvt_jit_stats stats;
} dvti_cuda_registry;

static dvti_cuda_registry dvti_cuda_the_registry = {DVTI_MUTEX_INIT, DVTI_MUTEX_INIT, NULL, 0, 0,
                                                    {0, 0, 0, 0, 0}};

DVT_API dvt_jit_stats dvt_get_jit_stats(void) {
    dvt_jit_stats stats;
    dvti_mutex_lock(&dvti_cuda_the_registry.lock);
    stats = dvti_cuda_the_registry.stats;
    dvti_mutex_unlock(&dvti_cuda_the_registry.lock);
    return stats;
}

DVTI_FN bool dvti_cuda_fuses(dvti_cuda_family family) {
#define DVTI_CUDA_FUSE(name, fuse) fuse,
    static const bool fuses[] = {DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FUSE)};
#undef DVTI_CUDA_FUSE
    return fuses[family];
}

DVTI_FN bool dvti_cuda_exact(dvti_cuda_family family) {
    return family == DVTI_CUDA_FAMILY_matmul_wgmma;
}

/* ---- images ---- */
static const dvti_cuda_image *dvti_cuda_image_known(dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    size_t i;
    for (i = 0; i < registry->n; i++)
        if (memcmp(&registry->kept[i].key, &key, sizeof key) == 0)
            return &registry->kept[i].image;
    return NULL;
}

static void dvti_cuda_image_forget(dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    size_t i;
    for (i = 0; i < registry->n; i++)
        if (memcmp(&registry->kept[i].key, &key, sizeof key) == 0) {
            dvti_free(registry->kept[i].image.bytes);
            registry->kept[i] = registry->kept[--registry->n];
            return;
        }
}

/* Takes ownership of the image. Returns false without memory. */
static bool dvti_cuda_image_keep(dvti_cuda_key key, const dvti_cuda_image *image) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    if (!dvti_grow((void **)&registry->kept, &registry->capacity, registry->n + 1,
                   sizeof *registry->kept)) {
        dvti_free(image->bytes);
        return false;
    }
    registry->kept[registry->n].key = key;
    registry->kept[registry->n++].image = *image;
    return true;
}

/* Returns the image from memory or from the disk; NULL: it has to be compiled. The caller holds the
   lock. */
static const dvti_cuda_image *dvti_cuda_image_cached(dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    const dvti_cuda_image *known = dvti_cuda_image_known(key);
    dvti_cuda_image image;
    if (known)
        return known;
    if (!dvti_cuda_cache_read(key, &image) || !dvti_cuda_image_keep(key, &image))
        return NULL;
    registry->stats.from_disk++;
    return &registry->kept[registry->n - 1].image;
}

static bool dvti_cuda_image_found(dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    double began;
    bool found;
    dvti_mutex_lock(&registry->lock);
    began = dvti_now();
    found = dvti_cuda_image_cached(key) != NULL;
    registry->stats.load_seconds += dvti_now() - began;
    dvti_mutex_unlock(&registry->lock);
    return found;
}

/* The caller holds `compiling`. */
static dvt_status dvti_cuda_image_make(int cc, dvti_cuda_family family, const char *function,
                                       const char *source, dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    const double began = dvti_now();
    dvti_cuda_image image;
    double seconds;
    bool kept;
    dvt_status status = dvti_cuda_compile(cc, family, function, source, &image);
    if (status != DVT_OK)
        return status;
    seconds = dvti_now() - began;
    if (dvti_listened()) {
        dvti_event event = dvti_event_begin(DVTI_EVENT_COMPILE, function, dvt_cpu());
        event.begin = began;
        dvti_event_end(&event);
    }
    dvti_cuda_cache_write(key, &image);
    dvti_mutex_lock(&registry->lock);
    registry->stats.compiled++;
    registry->stats.compile_seconds += seconds;
    kept = dvti_cuda_image_keep(key, &image);
    dvti_mutex_unlock(&registry->lock);
    return kept ? DVT_OK : dvti_fail_memory(function, (int64_t)sizeof *registry->kept);
}

/* Compiles the image, unless another thread has just done so. */
static dvt_status dvti_cuda_image_compile(int cc, dvti_cuda_family family, const char *function,
                                          const char *source, dvti_cuda_key key) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    dvt_status status = DVT_OK;
    bool known;
    dvti_mutex_lock(&registry->compiling);
    dvti_mutex_lock(&registry->lock);
    known = dvti_cuda_image_known(key) != NULL;
    dvti_mutex_unlock(&registry->lock);
    if (!known)
        status = dvti_cuda_image_make(cc, family, function, source, key);
    dvti_mutex_unlock(&registry->compiling);
    return status;
}

/* ---- modules ---- */
/* Loads a module. The driver's log about a refused image goes to the logger. */
static dvti_cu_result dvti_cuda_module(const dvti_cuda_image *image, const char *function,
                                       dvti_cu_module *module) {
    int options[2] = {DVTI_CU_JIT_ERROR_LOG, DVTI_CU_JIT_ERROR_LOG_BYTES};
    char log[2048];
    void *values[2];
    dvti_cu_result result;
    log[0] = 0;
    values[0] = log;
    values[1] = (void *)(uintptr_t)sizeof log;
    result = dvti_cuda()->cuModuleLoadDataEx(module, image->bytes, 2, options, values);
    log[sizeof log - 1] = 0;
    if (result != DVTI_CU_OK && log[0])
        dvti_log(DVT_LOG_ERROR, "%s: the driver's log: %s", function, log);
    return result;
}

static bool dvti_cuda_image_refused(dvti_cu_result result) {
    return result == DVTI_CU_INVALID_IMAGE || result == DVTI_CU_NO_BINARY ||
           result == DVTI_CU_UNSUPPORTED_PTX;
}

/* Loads the image if memory or the disk has it. The result is INVALID_IMAGE if neither has. */
static dvti_cu_result dvti_cuda_image_load(dvti_cuda_key key, const char *function,
                                           dvti_cu_module *module) {
    dvti_cuda_registry *registry = &dvti_cuda_the_registry;
    const dvti_cuda_image *image;
    dvti_cu_result result = DVTI_CU_INVALID_IMAGE;
    double began;
    dvti_mutex_lock(&registry->lock);
    began = dvti_now();
    image = dvti_cuda_image_cached(key);
    if (image)
        result = dvti_cuda_module(image, function, module);
    if (result != DVTI_CU_OK)
        dvti_cuda_image_forget(key);
    registry->stats.loaded += result == DVTI_CU_OK;
    registry->stats.load_seconds += dvti_now() - began;
    dvti_mutex_unlock(&registry->lock);
    return result;
}

/* Compiles an image, once, if it is missing or the driver refuses it. The file of a refused one is
   replaced only then: without NVRTC, nothing else could replace it. compiles false: returns
   NO_COMPILER instead, without an error. */
static dvt_status dvti_cuda_load(dvti_cuda_physical *physical, const char *function,
                                 dvti_cuda_program program, bool compiles, dvti_cu_module *module) {
    char *source = dvti_cuda_source(program);
    dvti_cuda_key key;
    dvti_cu_result result;
    dvt_status status = DVT_OK;
    if (!source)
        return dvti_fail_memory(function, 1 << 16);
    key = dvti_cuda_key_of(physical->cc, program.family, source);
    result = dvti_cuda_image_load(key, function, module);
    if (dvti_cuda_image_refused(result)) {
        status = !compiles
                     ? DVT_ERR_NO_COMPILER
                     : dvti_cuda_image_compile(physical->cc, program.family, function, source, key);
        if (status == DVT_OK)
            result = dvti_cuda_image_load(key, function, module);
    }
    dvti_free(source);
    if (status == DVT_OK && result != DVTI_CU_OK)
        status = dvti_cuda_fail(function, "cuModuleLoadDataEx", result);
    return status;
}

/* ---- functions ---- */
/* The caller holds the lock of the physical GPU. compiles: as for dvti_cuda_load. */
static dvt_status dvti_cuda_resolve(dvti_cuda_physical *physical, const char *function,
                                    dvti_cuda_program program, const char *entry, bool compiles,
                                    dvti_cu_function *out) {
    const dvti_cuda_loaded *sibling;
    dvti_cuda_loaded *one;
    dvti_cu_module module = NULL;
    dvti_cu_result result;
    dvt_status status = DVT_OK;
    if (dvti_cuda_loaded_function(physical, &program, entry, out))
        return DVT_OK;
    one = (dvti_cuda_loaded *)dvti_alloc(sizeof *one);
    if (!one)
        return dvti_fail_memory(function, (int64_t)sizeof *one);
    sibling = dvti_cuda_find(physical, &program, NULL);
    if (sibling)
        module = sibling->module;
    else
        status = dvti_cuda_load(physical, function, program, compiles, &module);
    if (status != DVT_OK) {
        dvti_free(one);
        return status;
    }
    result = dvti_cuda()->cuModuleGetFunction(out, module, entry);
    if (result != DVTI_CU_OK) {
        dvti_free(one);
        if (!sibling)
            dvti_cuda()->cuModuleUnload(module);
        if (program.source && result == DVTI_CU_NOT_FOUND)
            return dvti_fail(
                DVT_ERR_VALUE,
                "%s: the source has no function %s for the GPU; expected extern \"C\" "
                "__global__ void %s(...): add extern \"C\", or give the function's name",
                function, entry, entry);
        return dvti_cuda_fail(function, "cuModuleGetFunction", result);
    }
    one->program = program;
    one->program.source = NULL; /* belongs to the caller */
    one->module = module;
    one->entry = entry;
    one->function = *out;
    dvti_cuda_loaded_add(physical, one);
    return DVT_OK;
}

static bool dvti_cuda_is_loaded(dvti_cuda_physical *physical, dvti_cuda_program program) {
    return dvti_cuda_find(physical, &program, NULL) != NULL;
}

/* Loads a program from memory or from the disk. Returns NO_COMPILER, without an error, if neither
   has it, or if the driver refuses it. */
static dvt_status dvti_cuda_load_cached(dvti_cuda_physical *physical, const char *function,
                                        dvti_cuda_program program, const char *entry) {
    dvti_cu_function unused;
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    result = dvti_cuda_enter(physical, &pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail(function, "cuCtxPushCurrent", result);
    dvti_mutex_lock(&physical->lock);
    status = dvti_cuda_resolve(physical, function, program, entry, false, &unused);
    dvti_mutex_unlock(&physical->lock);
    dvti_cuda_leave(pushed);
    return status;
}

/* Remembers the programs that cannot be loaded from a cache, so that each plan does not look for
   them. Any other failure counts as loaded: the launch will report it. */
static bool dvti_cuda_loads_cached(dvti_cuda_physical *physical, const char *function,
                                   dvti_cuda_program program, const char *entry) {
    static dvti_atomic absent[8]; /* a bit for each variant */
    dvti_atomic *bits = &absent[program.variant / 64 % DVTI_LENGTH(absent)];
    const int64_t bit = (int64_t)((uint64_t)1 << program.variant % 64);
    dvti_attempt attempt;
    dvt_status status;
    if (dvti_atomic_load(bits) & bit)
        return false;
    attempt = dvti_attempt_begin();
    status = dvti_cuda_load_cached(physical, function, program, entry);
    dvti_attempt_end(&attempt);
    if (status != DVT_ERR_NO_COMPILER)
        return true;
    dvti_atomic_store(bits, dvti_atomic_load(bits) | bit); /* one that is lost is found again */
    return false;
}

DVTI_FN bool dvti_cuda_has_exact(dvti_cuda_physical *physical, const char *function,
                                 dvti_cuda_program program, const char *entry) {
    static dvti_atomic compiles; /* 0: NVRTC was not needed yet, 1: it cannot, 2: it can */
    if (dvti_atomic_load(&compiles) == 2)
        return true;
    if (dvti_cuda_forked()) /* the parent may have held the locks */
        return false;
    if (dvti_cuda_is_loaded(physical, program) ||
        dvti_cuda_loads_cached(physical, function, program, entry))
        return true;
    if (dvti_atomic_load(&compiles) == 0) {
        const bool can = dvti_nvrtc_major() >= 12;
        if (!can)
            dvti_log(DVT_LOG_INFO, "matrix products do without wgmma: it needs NVRTC 12.0 or newer "
                                   "to compile it");
        dvti_atomic_store(&compiles, can ? 2 : 1);
    }
    return dvti_atomic_load(&compiles) == 2;
}

DVTI_FN dvt_status dvti_cuda_prepare(dvti_cuda_physical *physical, const char *function,
                                     dvti_cuda_program program) {
    dvti_cuda_key key;
    char *source;
    dvt_status status = DVT_OK;
    if (dvti_cuda_is_loaded(physical, program))
        return DVT_OK;
    source = dvti_cuda_source(program);
    if (!source)
        return dvti_fail_memory(function, 1 << 16);
    key = dvti_cuda_key_of(physical->cc, program.family, source);
    if (!dvti_cuda_image_found(key))
        status = dvti_cuda_image_compile(physical->cc, program.family, function, source, key);
    dvti_free(source);
    return status;
}

DVTI_FN dvt_status dvti_cuda_function(dvti_cuda_physical *physical, const char *function,
                                      dvti_cuda_program program, const char *entry,
                                      dvti_cu_function *out) {
    dvt_status status;
    dvti_mutex_lock(&physical->lock);
    status = dvti_cuda_resolve(physical, function, program, entry, true, out);
    dvti_mutex_unlock(&physical->lock);
    return status;
}
