/* The test double of libnvrtc. The real NVRTC compiles to PTX; the translator makes the "cubin"
   (ptx_compile.h). Logs, errors, lowered names and PTX are the real ones. Every entry point counts
   its calls and can be made to fail (inject.h). */
#include <stdlib.h>
#include <string.h>

#include "../ptx/ptx_compile.h"
#include "../sim_module.h"
#include "inject.h"
#include "options.h"
#include "real.h"

typedef struct program {
    real_program real;
    void *cubin;
    size_t cubin_size;
    char *note; /* lines that the translator adds to the log, or NULL */
    int silent; /* the log holds only the report of ptxas, which callers do not expect */
} program;

/* Enters a function with these parameters: counts it, fails if a failure is set, and finds the real
   one. */
#define ENTER(name, ...)                                                                           \
    result (*real)(__VA_ARGS__);                                                                   \
    int injected_ = inject(#name), found_ = real_function(#name, &real);                           \
    if (injected_)                                                                                 \
        return (result)injected_;                                                                  \
    if (!found_)                                                                                   \
    return NVRTC_INTERNAL_ERROR

#define ENTER_PROGRAM(name, ...)                                                                   \
    ENTER(name, __VA_ARGS__);                                                                      \
    if (!p)                                                                                        \
    return NVRTC_INVALID_PROGRAM

EXPORT const char *nvrtcGetErrorString(result code) {
    const char *(*real)(result);
    int found = real_function("nvrtcGetErrorString", &real);
    if (inject("nvrtcGetErrorString") || !found)
        return NULL;
    return real(code);
}

EXPORT result nvrtcVersion(int *major, int *minor) {
    ENTER(nvrtcVersion, int *, int *);
    return real(major, minor);
}

EXPORT result nvrtcGetNumSupportedArchs(int *count) {
    ENTER(nvrtcGetNumSupportedArchs, int *);
    return real(count);
}

EXPORT result nvrtcGetSupportedArchs(int *archs) {
    ENTER(nvrtcGetSupportedArchs, int *);
    return real(archs);
}

EXPORT result nvrtcCreateProgram(program **out, const char *source, const char *name, int headers,
                                 const char *const *header, const char *const *header_name) {
    ENTER(nvrtcCreateProgram, real_program *, const char *, const char *, int, const char *const *,
          const char *const *);
    if (!out)
        return NVRTC_INVALID_INPUT;
    program *p = calloc(1, sizeof *p);
    if (!p)
        return NVRTC_OUT_OF_MEMORY;
    result code = real(&p->real, source, name, headers, header, header_name);
    if (code) {
        free(p);
        return code;
    }
    *out = p;
    return NVRTC_SUCCESS;
}

static void drop_output(program *p) {
    free(p->cubin);
    free(p->note);
    p->cubin = NULL;
    p->cubin_size = 0;
    p->note = NULL;
    p->silent = 0;
}

EXPORT result nvrtcDestroyProgram(program **at) {
    ENTER(nvrtcDestroyProgram, real_program *);
    if (!at || !*at)
        return NVRTC_INVALID_PROGRAM;
    result code = real(&(*at)->real);
    drop_output(*at);
    free(*at);
    *at = NULL;
    return code;
}

/* Returns the real PTX; the caller frees it. */
static char *ptx_of(program *p) {
    result (*size_of)(real_program, size_t *);
    result (*get)(real_program, char *);
    size_t size = 0;
    if (!real_function("nvrtcGetPTXSize", &size_of) || !real_function("nvrtcGetPTX", &get) ||
        size_of(p->real, &size) || !size)
        return NULL;
    char *ptx = malloc(size);
    if (ptx && get(p->real, ptx)) {
        free(ptx);
        return NULL;
    }
    return ptx;
}

/* Returns the real log; the caller frees it. */
static char *log_of(program *p) {
    result (*size_of)(real_program, size_t *);
    result (*get)(real_program, char *);
    size_t size = 0;
    if (!real_function("nvrtcGetProgramLogSize", &size_of) ||
        !real_function("nvrtcGetProgramLog", &get) || size_of(p->real, &size))
        return NULL;
    char *log = calloc(1, size + 1);
    if (log && get(p->real, log)) {
        free(log);
        return NULL;
    }
    return log;
}

/* $SIMNVRTC_USAGE=1: modules that count carry the report of ptxas, which costs its time. */
static int wants_usage(void) {
    const char *usage = getenv("SIMNVRTC_USAGE");
    return ptx_counts() && usage && !strcmp(usage, "1");
}

static result make_cubin(program *p, int reports_usage) {
    char *ptx = ptx_of(p), *usage = reports_usage ? log_of(p) : NULL;
    p->silent = reports_usage;
    if (!ptx) {
        free(usage);
        return NVRTC_INTERNAL_ERROR;
    }
    ptx_result code = ptx_compile(ptx, 0, usage, &p->cubin, &p->cubin_size, &p->note);
    free(ptx);
    free(usage);
    switch (code) {
    case PTX_OK:
        return NVRTC_SUCCESS;
    case PTX_UNSUPPORTED:
        return NVRTC_COMPILATION;
    case PTX_NO_MEMORY:
        return NVRTC_OUT_OF_MEMORY;
    default:
        return NVRTC_INTERNAL_ERROR;
    }
}

EXPORT result nvrtcCompileProgram(program *p, int count, const char *const *given) {
    ENTER_PROGRAM(nvrtcCompileProgram, real_program, int, const char *const *);
    options o;
    if (count < 0 || (count > 0 && !given))
        return NVRTC_INVALID_INPUT;
    if (!options_read(&o, count, given, wants_usage()))
        return NVRTC_OUT_OF_MEMORY;
    drop_output(p);
    result code = real(p->real, o.count, (const char *const *)o.text);
    if (!code && o.wants_cubin)
        code = make_cubin(p, o.reports_usage);
    options_free(&o);
    return code;
}

/* As in the real one, without a real architecture there is no cubin, and its size is 0. */
EXPORT result nvrtcGetCUBINSize(program *p, size_t *size) {
    ENTER_PROGRAM(nvrtcGetCUBINSize, real_program, size_t *);
    if (!size)
        return NVRTC_INVALID_INPUT;
    *size = p->cubin_size;
    return NVRTC_SUCCESS;
}

EXPORT result nvrtcGetCUBIN(program *p, char *cubin) {
    ENTER_PROGRAM(nvrtcGetCUBIN, real_program, char *);
    if (!cubin || !p->cubin)
        return NVRTC_INVALID_INPUT;
    memcpy(cubin, p->cubin, p->cubin_size);
    return NVRTC_SUCCESS;
}

EXPORT result nvrtcGetProgramLogSize(program *p, size_t *size) {
    ENTER_PROGRAM(nvrtcGetProgramLogSize, real_program, size_t *);
    result code = real(p->real, size);
    if (!code && p->silent)
        *size = 1;
    if (!code && p->note)
        *size += strlen(p->note);
    return code;
}

EXPORT result nvrtcGetProgramLog(program *p, char *log) {
    ENTER_PROGRAM(nvrtcGetProgramLog, real_program, char *);
    if (p->silent && log)
        *log = 0;
    result code = p->silent && log ? NVRTC_SUCCESS : real(p->real, log);
    if (!code && p->note)
        strcat(log, p->note);
    return code;
}

EXPORT result nvrtcAddNameExpression(program *p, const char *expression) {
    ENTER_PROGRAM(nvrtcAddNameExpression, real_program, const char *);
    return real(p->real, expression);
}

EXPORT result nvrtcGetLoweredName(program *p, const char *expression, const char **name) {
    ENTER_PROGRAM(nvrtcGetLoweredName, real_program, const char *, const char **);
    return real(p->real, expression, name);
}

/* Size and content queries that are forwarded to the real program. */
#define PASS_SIZE(name)                                                                            \
    EXPORT result name(program *p, size_t *size) {                                                 \
        ENTER_PROGRAM(name, real_program, size_t *);                                               \
        return real(p->real, size);                                                                \
    }
#define PASS_TEXT(name)                                                                            \
    EXPORT result name(program *p, char *text) {                                                   \
        ENTER_PROGRAM(name, real_program, char *);                                                 \
        return real(p->real, text);                                                                \
    }
PASS_SIZE(nvrtcGetPTXSize)
PASS_TEXT(nvrtcGetPTX)
PASS_SIZE(nvrtcGetLTOIRSize)
PASS_TEXT(nvrtcGetLTOIR)
PASS_SIZE(nvrtcGetOptiXIRSize)
PASS_TEXT(nvrtcGetOptiXIR)
PASS_SIZE(nvrtcGetNVVMSize) /* removed in version 13: an error then */
PASS_TEXT(nvrtcGetNVVM)
PASS_SIZE(nvrtcGetPCHHeapSizeRequired)

EXPORT result nvrtcGetPCHCreateStatus(program *p) {
    ENTER_PROGRAM(nvrtcGetPCHCreateStatus, real_program);
    return real(p->real);
}

EXPORT result nvrtcGetPCHHeapSize(size_t *size) {
    ENTER(nvrtcGetPCHHeapSize, size_t *);
    return real(size);
}

EXPORT result nvrtcSetPCHHeapSize(size_t size) {
    ENTER(nvrtcSetPCHHeapSize, size_t);
    return real(size);
}

EXPORT result nvrtcSetFlowCallback(program *p, int (*callback)(void *, void *), void *payload) {
    ENTER_PROGRAM(nvrtcSetFlowCallback, real_program, int (*)(void *, void *), void *);
    return real(p->real, callback, payload);
}
