/* Named ranges of threads: for traces, and for tools by NVTX without its headers.

   NVTX 3 is a protocol between a program and a tool in its process. The tool's library is named by
   NVTX_INJECTION64_PATH. Its function InitializeInjectionNvtx2 receives a function that returns
   tables of the program by number, and from them takes the places where it stores its callbacks.
   Source: nvtx3/nvtxDetail/nvtxTypes.h, nvtxInit.h and nvtxImpl.h of CUDA 13.0. */
#include "2_core/dvt_core.h"

#if !defined(DEVTENSOR_NO_CUDA)

typedef void (*dvti_nvtx_function)(void);

enum {
    DVTI_NVTX_CALLBACKS = 1, /* numbers of tables */
    DVTI_NVTX_VERSION = 3,
    DVTI_NVTX_CORE = 1, /* the only module here */
    DVTI_NVTX_PUSH = 9, /* its functions, from 1 */
    DVTI_NVTX_POP = 11,
    DVTI_NVTX_FUNCTIONS = 15
};

static dvti_nvtx_function dvti_nvtx_callback[DVTI_NVTX_FUNCTIONS + 1]; /* set by the tool */
static dvti_nvtx_function *dvti_nvtx_place[DVTI_NVTX_FUNCTIONS + 2];   /* 0 and the last: NULL */

static int dvti_nvtx_places(int module, dvti_nvtx_function ***places, unsigned *n) {
    if (module != DVTI_NVTX_CORE)
        return 0;
    if (places)
        *places = dvti_nvtx_place;
    if (n)
        *n = DVTI_NVTX_FUNCTIONS + 1;
    return 1;
}

static void dvti_nvtx_set_version(uint32_t version) {
    (void)version;
}

static const void *dvti_nvtx_table(uint32_t number) {
    static const struct {
        size_t size;
        int (*places)(int module, dvti_nvtx_function ***places, unsigned *n);
    } callbacks = {sizeof callbacks, dvti_nvtx_places};

    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*set_version)(uint32_t version);
    } version = {sizeof version, 3, 0, dvti_nvtx_set_version};

    return number == DVTI_NVTX_CALLBACKS ? (const void *)&callbacks
           : number == DVTI_NVTX_VERSION ? (const void *)&version
                                         : NULL;
}

/* A tool that fails is left alone: the library stays loaded, without callbacks. */
static void dvti_nvtx_load(void) {
    const char *path = dvti_env("NVTX_INJECTION64_PATH");
    void *library = path ? dvti_library_open(path) : NULL, *symbol;
    int (*begin)(const void *(*table)(uint32_t number)) = NULL;
    int i;
    if (!library)
        return;
    symbol = dvti_library_symbol(library, "InitializeInjectionNvtx2");
    if (!symbol)
        return;
    for (i = 1; i <= DVTI_NVTX_FUNCTIONS; i++)
        dvti_nvtx_place[i] = &dvti_nvtx_callback[i];
    memcpy(&begin, &symbol, sizeof begin);
    if (!begin(dvti_nvtx_table))
        memset(dvti_nvtx_callback, 0, sizeof dvti_nvtx_callback);
}

static dvti_nvtx_function dvti_nvtx(int number) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    static dvti_atomic tried;
    if (!dvti_atomic_load(&tried)) {
        dvti_mutex_lock(&lock);
        if (!dvti_atomic_load(&tried)) {
            dvti_nvtx_load();
            dvti_atomic_publish(&tried, 1);
        }
        dvti_mutex_unlock(&lock);
    }
    return dvti_nvtx_callback[number];
}

static void dvti_nvtx_push(const char *name) {
    const dvti_nvtx_function function = dvti_nvtx(DVTI_NVTX_PUSH);
    if (function)
        ((int (*)(const char *))function)(name);
}

static void dvti_nvtx_pop(void) {
    const dvti_nvtx_function function = dvti_nvtx(DVTI_NVTX_POP);
    if (function)
        ((int (*)(void))function)();
}

#else

static void dvti_nvtx_push(const char *name) {
    (void)name;
}

static void dvti_nvtx_pop(void) {
}

#endif

/* ---- the ranges of this thread ---- */
#define DVTI_RANGES 16
#define DVTI_RANGE_NAME 48

static DVTI_TLS struct {
    int depth; /* may exceed DVTI_RANGES */
    double begin[DVTI_RANGES];
    char name[DVTI_RANGES][DVTI_RANGE_NAME];
} dvti_ranges;

/* Copies a name, cut before a UTF-8 character that does not fit. */
static void dvti_range_name(char out[DVTI_RANGE_NAME], const char *name) {
    size_t n = strlen(name);
    if (n >= DVTI_RANGE_NAME)
        for (n = DVTI_RANGE_NAME - 1; n && ((unsigned char)name[n] & 0xC0) == 0x80; n--)
            ;
    memcpy(out, name, n);
    out[n] = 0;
}

DVT_API dvt_status dvt_range_push(const char *name) {
    const int i = dvti_ranges.depth;
    if (!name)
        return dvti_null("dvt_range_push", "name");
    dvti_nvtx_push(name);
    if (i < DVTI_RANGES) {
        dvti_ranges.begin[i] = dvti_listened() ? dvti_now() : -1;
        dvti_range_name(dvti_ranges.name[i], name);
    }
    dvti_ranges.depth++;
    return DVT_OK;
}

DVT_API dvt_status dvt_range_pop(void) {
    int i;
    if (dvti_ranges.depth == 0)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_range_pop: no range of this thread has begun; expected "
                         "a dvt_range_push before: call both once for each range");
    dvti_nvtx_pop();
    i = --dvti_ranges.depth;
    /* A range that began before the trace is not in it. */
    if (i < DVTI_RANGES && dvti_listened() && dvti_ranges.begin[i] >= 0) {
        dvti_event event = dvti_event_begin(DVTI_EVENT_RANGE, dvti_ranges.name[i], dvt_cpu());
        event.begin = dvti_ranges.begin[i];
        dvti_event_end(&event);
    }
    return DVT_OK;
}

#undef DVTI_RANGES
#undef DVTI_RANGE_NAME
