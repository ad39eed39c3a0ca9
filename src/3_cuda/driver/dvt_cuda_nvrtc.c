/* Finds NVRTC: the path that the user names, libraries of this process, the loader's search path,
   Python wheels, the toolkit. Each candidate must compile a line of code. The most common failure,
   a missing libnvrtc-builtins, appears only then. The version of the driver's generation is tried
   first. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_NVRTC_PATH 1024

typedef struct dvti_nvrtc_search {
    bool tried, usable;
    int driver; /* version of the driver */
    dvti_nvrtc rtc;
    dvti_text tried_text;
    char tried_names[480];
} dvti_nvrtc_search;

static dvti_mutex dvti_nvrtc_lock = DVTI_MUTEX_INIT;
static dvti_nvrtc_search dvti_nvrtc_the_search;

#if defined(_WIN32)
static const char *const dvti_nvrtc_names[] = {"nvrtc64_130_0.dll", "nvrtc64_120_0.dll",
                                               "nvrtc64_112_0.dll"};
#else
static const char *const dvti_nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                               "libnvrtc.so.11.2"};
#endif
static const int dvti_nvrtc_majors[] = {13, 12, 11};

static bool dvti_nvrtc_resolve(void *library, dvti_nvrtc *rtc) {
    void *symbol;
#define DVTI_NVRTC_RESOLVE(name, arguments)                                                        \
    symbol = dvti_library_symbol(library, #name);                                                  \
    if (!symbol)                                                                                   \
        return false;                                                                              \
    memcpy(&rtc->name, &symbol, sizeof symbol);
    DVTI_NVRTC_TABLE(DVTI_NVRTC_RESOLVE)
#undef DVTI_NVRTC_RESOLVE
    symbol = dvti_library_symbol(library, "nvrtcGetErrorString");
    memcpy(&rtc->nvrtcGetErrorString, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool dvti_nvrtc_compiles(const dvti_nvrtc *rtc) {
    dvti_nvrtc_program p = NULL;
    bool done;
    if (rtc->nvrtcCreateProgram(&p, "extern \"C\" __global__ void trial() {}\n", "trial.cu", 0,
                                NULL, NULL) != 0)
        return false;
    done = rtc->nvrtcCompileProgram(p, 0, NULL) == 0;
    rtc->nvrtcDestroyProgram(&p);
    return done;
}

/* A driver loads code of its own NVRTC generation and of older ones. */
static bool dvti_nvrtc_fits(const dvti_nvrtc *rtc, int driver) {
    int major = 0, minor = 0;
    return rtc->nvrtcVersion(&major, &minor) != 0 || major <= driver / 1000;
}

/* Takes ownership of `library`. The caller holds the lock. */
static bool dvti_nvrtc_take_library(dvti_nvrtc_search *s, void *library, const char *name) {
    const char *wrong = "does not compile";
    if (!library)
        return false;
    if (dvti_nvrtc_resolve(library, &s->rtc)) {
        if (!dvti_nvrtc_fits(&s->rtc, s->driver))
            wrong = "too new for the driver";
        else if (dvti_nvrtc_compiles(&s->rtc)) {
            dvti_log(DVT_LOG_DEBUG, "kernels are compiled by %s", name);
            return s->usable = true;
        }
    }
    dvti_text_add(&s->tried_text, "%s%s (%s)", s->tried_text.length ? ", " : "", name, wrong);
    dvti_library_close(library);
    return false;
}

/* Searches a directory, the driver's generation first. */
static bool dvti_nvrtc_try_folder(dvti_nvrtc_search *s, const char *folder) {
    char path[DVTI_NVRTC_PATH];
    int first, i;
    for (first = 1; first >= 0; first--)
        for (i = 0; i < DVTI_LENGTH(dvti_nvrtc_names); i++) {
            if ((dvti_nvrtc_majors[i] == s->driver / 1000) != first)
                continue;
            snprintf(path, sizeof path, "%.900s%s%s", folder, folder[0] ? "/" : "",
                     dvti_nvrtc_names[i]);
            if (dvti_nvrtc_take_library(s, dvti_library_open(path), path))
                return true;
        }
    return false;
}

#if !defined(DEVTENSOR_NO_FILES) && !defined(_WIN32)
/* The wheels of a Python environment: <prefix>/lib/python3.x/site-packages/nvidia/... */
typedef struct dvti_nvrtc_python {
    dvti_nvrtc_search *search;
    const char *lib;
} dvti_nvrtc_python;

static void dvti_nvrtc_try_python(void *user, const char *name, int64_t bytes, int64_t changed,
                                  bool directory) {
    static const char *const wheels[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
    dvti_nvrtc_python *python = (dvti_nvrtc_python *)user;
    char folder[DVTI_NVRTC_PATH];
    int i;
    (void)bytes;
    (void)changed;
    if (!directory || strncmp(name, "python3", 7) != 0)
        return;
    for (i = 0; i < DVTI_LENGTH(wheels) && !python->search->usable; i++) {
        snprintf(folder, sizeof folder, "%.600s/%.40s/site-packages/%s", python->lib, name,
                 wheels[i]);
        dvti_nvrtc_try_folder(python->search, folder);
    }
}

static bool dvti_nvrtc_try_wheels(dvti_nvrtc_search *s) {
    static const char *const variables[][2] = {
        {"VIRTUAL_ENV", "lib"}, {"CONDA_PREFIX", "lib"}, {"HOME", ".local/lib"}};
    char lib[DVTI_NVRTC_PATH];
    int i;
    for (i = 0; i < DVTI_LENGTH(variables) && !s->usable; i++) {
        const char *prefix = dvti_env(variables[i][0]);
        dvti_nvrtc_python python;
        if (!prefix)
            continue;
        snprintf(lib, sizeof lib, "%.800s/%s", prefix, variables[i][1]);
        python.search = s;
        python.lib = lib;
        (void)dvti_private_list(lib, dvti_nvrtc_try_python, &python);
    }
    return s->usable;
}
#else
static bool dvti_nvrtc_try_wheels(dvti_nvrtc_search *s) {
    return s->usable;
}
#endif

static bool dvti_nvrtc_try_toolkit(dvti_nvrtc_search *s) {
#if defined(_WIN32)
    static const char *const places[][2] = {{"CUDA_PATH", "bin\\x64"}, {"CUDA_PATH", "bin"}};
    const char *fallback = NULL;
#else
    static const char *const places[][2] = {
        {"CUDA_HOME", "lib64"}, {"CUDA_HOME", "lib"}, {"CUDA_PATH", "lib64"}, {"CUDA_PATH", "lib"}};
    const char *fallback = "/usr/local/cuda/lib64";
#endif
    char folder[DVTI_NVRTC_PATH];
    int i;
    for (i = 0; i < DVTI_LENGTH(places); i++) {
        const char *prefix = dvti_env(places[i][0]);
        snprintf(folder, sizeof folder, "%.900s/%s", prefix ? prefix : "", places[i][1]);
        if (prefix && dvti_nvrtc_try_folder(s, folder))
            return true;
    }
    return fallback && dvti_nvrtc_try_folder(s, fallback);
}

static void dvti_nvrtc_search_all(dvti_nvrtc_search *s, int driver) {
    const char *own = dvti_env("DEVTENSOR_NVRTC_PATH");
    int i;
    s->driver = driver;
    s->tried_text = dvti_text_begin(s->tried_names, sizeof s->tried_names);
    if (own) { /* a file or its directory; no fallback, so that a wrong setting shows */
        if (!dvti_nvrtc_take_library(s, dvti_library_open(own), own))
            dvti_nvrtc_try_folder(s, own);
        return;
    }
    for (i = 0; i < DVTI_LENGTH(dvti_nvrtc_names); i++)
        if (dvti_nvrtc_take_library(s, dvti_library_loaded(dvti_nvrtc_names[i]),
                                    dvti_nvrtc_names[i]))
            return;
    if (!dvti_nvrtc_try_folder(s, "") && !dvti_nvrtc_try_wheels(s))
        dvti_nvrtc_try_toolkit(s);
}

DVTI_FN bool dvti_nvrtc_find(int driver, char *why, size_t size) {
    dvti_nvrtc_search *s = &dvti_nvrtc_the_search;
    const char *own = dvti_env("DEVTENSOR_NVRTC_PATH");
    bool usable;
    dvti_mutex_lock(&dvti_nvrtc_lock);
    if (!s->tried) {
        dvti_nvrtc_search_all(s, driver);
        s->tried = true;
    }
    usable = s->usable;
    if (!usable && own)
        snprintf(why, size,
                 "DEVTENSOR_NVRTC_PATH=%.200s is not a working NVRTC; expected libnvrtc or its "
                 "directory%s%.200s",
                 own, s->tried_text.length ? "; tried " : "", s->tried_names);
    else if (!usable)
        snprintf(why, size,
                 "NVRTC was not found (%s, %s or %s in the library path, a Python environment, "
                 "CUDA_HOME or the toolkit's default directory%s%.200s); install the CUDA toolkit "
                 "or its "
                 "NVRTC package, or set DEVTENSOR_NVRTC_PATH",
                 dvti_nvrtc_names[0], dvti_nvrtc_names[1], dvti_nvrtc_names[2],
                 s->tried_text.length ? "; tried " : "", s->tried_names);
    dvti_mutex_unlock(&dvti_nvrtc_lock);
    return usable;
}

DVTI_FN int dvti_nvrtc_major(void) {
    char why[600];
    int major = 0, minor = 0;
    if (!dvti_nvrtc_find(dvti_cuda_driver_version(), why, sizeof why) ||
        dvti_nvrtc_the_search.rtc.nvrtcVersion(&major, &minor) != 0)
        major = 0;
    return major;
}

DVTI_FN const dvti_nvrtc *dvti_nvrtc_open(const char *function) {
    char why[600];
    if (dvti_nvrtc_find(dvti_cuda_driver_version(), why, sizeof why))
        return &dvti_nvrtc_the_search.rtc;
    dvti_fail(DVT_ERR_NO_COMPILER, "%s: its kernel has to be compiled, but %s", function, why);
    return NULL;
}

#undef DVTI_NVRTC_PATH
