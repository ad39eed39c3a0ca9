/* An NVRTC whose compilations of kernels wait for waiting_nvrtc_end, and then fail. Short
   programs, which test whether NVRTC works, compile at once. After waiting_nvrtc_never all do, to
   images that a driver that does nothing can load. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting, ended, never;

/* Returns when a compilation waits. */
void waiting_nvrtc_begun(void);

void waiting_nvrtc_begun(void) {
    pthread_mutex_lock(&lock);
    while (!waiting)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void waiting_nvrtc_end(void);

void waiting_nvrtc_end(void) {
    pthread_mutex_lock(&lock);
    ended = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void waiting_nvrtc_never(void);

void waiting_nvrtc_never(void) {
    never = 1;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options);

int nvrtcCompileProgram(void *program, int n, const char *const *options) {
    (void)n, (void)options;
    if (program != &lock || never)
        return 0;
    pthread_mutex_lock(&lock);
    waiting = 1;
    pthread_cond_broadcast(&changed);
    while (!ended)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return 6;
}

int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count);

int nvrtcGetNumSupportedArchs(int *count) {
    *count = 1;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs);

int nvrtcGetSupportedArchs(int *archs) {
    *archs = 90;
    return 0;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names);

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names) {
    (void)name, (void)n, (void)headers, (void)names;
    *program = strlen(source) > 1000 ? (void *)&lock : (void *)&changed;
    return 0;
}

int nvrtcDestroyProgram(void **program);

int nvrtcDestroyProgram(void **program) {
    *program = NULL;
    return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes);

int nvrtcGetCUBINSize(void *program, size_t *bytes) {
    (void)program;
    *bytes = 4;
    return never ? 0 : 1;
}

int nvrtcGetCUBIN(void *program, char *image);

int nvrtcGetCUBIN(void *program, char *image) {
    (void)program;
    memset(image, 0, 4);
    return never ? 0 : 1;
}

#define NOTHING(name, arguments)                                                                   \
    int name arguments;                                                                            \
    int name arguments {                                                                           \
        return 1;                                                                                  \
    }
NOTHING(nvrtcGetPTXSize, (void *program, size_t *bytes))
NOTHING(nvrtcGetPTX, (void *program, char *text))

int nvrtcGetProgramLogSize(void *program, size_t *bytes);

int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
    (void)program;
    *bytes = 1;
    return 0;
}

int nvrtcGetProgramLog(void *program, char *log);

int nvrtcGetProgramLog(void *program, char *log) {
    (void)program;
    *log = 0;
    return 0;
}

const char *nvrtcGetErrorString(int result);

const char *nvrtcGetErrorString(int result) {
    return result == 6 ? "NVRTC_ERROR_COMPILATION" : "an error";
}
