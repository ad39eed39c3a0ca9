/* An NVRTC that pauses each compilation of a kernel between pausing_nvrtc_start and _end, and then
   passes it on to the library that PAUSING_NVRTC_REAL names. Short programs, which test whether
   NVRTC works, compile at once. -DMAJOR=11 makes it an NVRTC 11, which does not know sm_90a. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int started, paused;
static void *kernel; /* the latest long program */

void pausing_nvrtc_start(void);

void pausing_nvrtc_start(void) {
    pthread_mutex_lock(&lock);
    started = 1;
    pthread_mutex_unlock(&lock);
}

/* Returns when a compilation is paused. */
void pausing_nvrtc_begun(void);

void pausing_nvrtc_begun(void) {
    pthread_mutex_lock(&lock);
    while (!paused)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void pausing_nvrtc_end(void);

void pausing_nvrtc_end(void) {
    pthread_mutex_lock(&lock);
    started = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *real(const char *name) {
    static void *library;
    if (!library)
        library = dlopen(getenv("PAUSING_NVRTC_REAL"), RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

#define PASS_ON(type, name, parameters, arguments)                                                 \
    static type real_##name parameters {                                                           \
        type(*function) parameters;                                                                \
        void *symbol = real(#name);                                                                \
        if (!symbol)                                                                               \
            abort();                                                                               \
        memcpy(&function, &symbol, sizeof function);                                               \
        return function arguments;                                                                 \
    }
#define SAME(type, name, parameters, arguments)                                                    \
    PASS_ON(type, name, parameters, arguments)                                                     \
    type name parameters;                                                                          \
    type name parameters {                                                                         \
        return real_##name arguments;                                                              \
    }
SAME(int, nvrtcGetNumSupportedArchs, (int *count), (count))
SAME(int, nvrtcGetSupportedArchs, (int *archs), (archs))
SAME(int, nvrtcDestroyProgram, (void **program), (program))
SAME(int, nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes))
SAME(int, nvrtcGetCUBIN, (void *program, char *image), (program, image))
SAME(int, nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes))
SAME(int, nvrtcGetPTX, (void *program, char *text), (program, text))
SAME(int, nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))
SAME(int, nvrtcGetProgramLog, (void *program, char *log), (program, log))
SAME(const char *, nvrtcGetErrorString, (int result), (result))
PASS_ON(int, nvrtcVersion, (int *major, int *minor), (major, minor))
PASS_ON(int, nvrtcCompileProgram, (void *program, int n, const char *const *options),
        (program, n, options))
PASS_ON(int, nvrtcCreateProgram,
        (void **program, const char *source, const char *name, int n, const char *const *headers,
         const char *const *names),
        (program, source, name, n, headers, names))

int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor) {
    int result = real_nvrtcVersion(major, minor);
#if defined(MAJOR)
    *major = MAJOR;
#endif
    return result;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names);

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names) {
    int result = real_nvrtcCreateProgram(program, source, name, n, headers, names);
    if (strlen(source) > 1000)
        kernel = *program;
    return result;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options);

int nvrtcCompileProgram(void *program, int n, const char *const *options) {
#if defined(MAJOR)
    int i;
    for (i = 0; i < n; i++)
        if (strcmp(options[i], "--gpu-architecture=sm_90a") == 0)
            return 5; /* an invalid option */
#endif
    pthread_mutex_lock(&lock);
    if (program == kernel && started) {
        paused = 1;
        pthread_cond_broadcast(&changed);
        while (started)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return real_nvrtcCompileProgram(program, n, options);
}
