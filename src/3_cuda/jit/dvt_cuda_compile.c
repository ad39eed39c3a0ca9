/* Compiles source to an image with NVRTC: a CUBIN if NVRTC knows the architecture, else PTX for the
   newest one that it knows. */
#include "3_cuda/jit/dvt_cuda_jit.h"

/* Returns the newest supported architecture up to cc; 0 when all are newer. */
static int dvti_nvrtc_arch(const dvti_nvrtc *rtc, int cc) {
    int count = 0, best = 0, i, *archs;
    if (rtc->nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0)
        return 0;
    archs = (int *)dvti_alloc((size_t)count * sizeof *archs);
    if (archs && rtc->nvrtcGetSupportedArchs(archs) == 0)
        for (i = 0; i < count; i++)
            if (archs[i] <= cc && archs[i] > best)
                best = archs[i];
    dvti_free(archs);
    return best;
}

static const char *dvti_nvrtc_text(const dvti_nvrtc *rtc, int result) {
    const char *text = rtc->nvrtcGetErrorString(result);
    return text ? text : "an error without a name";
}

static dvt_status dvti_nvrtc_fail(const dvti_nvrtc *rtc, const char *function, const char *call,
                                  int result) {
    return dvti_fail(DVT_ERR_INTERNAL, "%s: %s gave %s", function, call,
                     dvti_nvrtc_text(rtc, result));
}

/* Writes each compiled source, and the log of a failed one, to the directory DEVTENSOR_JIT_DUMP. */
static void dvti_nvrtc_dump(const char *source, const char *log) {
#if !defined(DEVTENSOR_NO_FILES)
    const char *directory = dvti_env("DEVTENSOR_JIT_DUMP");
    uint64_t name[2];
    char path[1100];
    FILE *file;
    if (!directory)
        return;
    dvti_hash128(source, strlen(source), name);
    snprintf(path, sizeof path, "%.1000s/devtensor-%016llx.%s", directory,
             (unsigned long long)name[0], log ? "log" : "cu");
    file = fopen(path, "wb");
    if (!file)
        return;
    fputs(log ? log : source, file);
    fclose(file);
#else
    (void)source;
    (void)log;
#endif
}

/* Sends the compiler's whole log to the logger and the dump. The error holds its beginning. */
static dvt_status dvti_nvrtc_refused(const dvti_nvrtc *rtc, const char *function,
                                     const char *source, dvti_nvrtc_program p, int result,
                                     bool own) {
    size_t size = 0;
    char *log = NULL;
    dvt_status status;
    if (rtc->nvrtcGetProgramLogSize(p, &size) == 0 && size > 1)
        log = (char *)dvti_alloc_zero(size + 1);
    if (log && rtc->nvrtcGetProgramLog(p, log) != 0)
        log[0] = 0;
    if (log) {
        dvti_log(DVT_LOG_ERROR, "%s: NVRTC's log:\n%s", function, log);
        dvti_nvrtc_dump(source, log);
    }
    if (own)
        status =
            dvti_fail(DVT_ERR_VALUE,
                      "%s: the source does not compile (%s); expected CUDA C++ without headers "
                      "of the toolkit: correct it by NVRTC's log, which the logger has in full:"
                      "\n%.600s",
                      function, dvti_nvrtc_text(rtc, result), log ? log : "no log");
    else
        status = dvti_fail(DVT_ERR_INTERNAL, "%s: compiling its kernel gave %s: %.300s", function,
                           dvti_nvrtc_text(rtc, result), log ? log : "no log");
    dvti_free(log);
    return status;
}

static dvt_status dvti_nvrtc_take(const dvti_nvrtc *rtc, const char *function, dvti_nvrtc_program p,
                                  bool cubin, dvti_cuda_image *image) {
    size_t size = 0;
    int result = cubin ? rtc->nvrtcGetCUBINSize(p, &size) : rtc->nvrtcGetPTXSize(p, &size);
    if (result != 0)
        return dvti_nvrtc_fail(rtc, function, cubin ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize",
                               result);
    image->bytes = (char *)dvti_alloc(size);
    if (!image->bytes)
        return dvti_fail_memory(function, (int64_t)size);
    image->size = size;
    result = cubin ? rtc->nvrtcGetCUBIN(p, image->bytes) : rtc->nvrtcGetPTX(p, image->bytes);
    if (result == 0)
        return DVT_OK;
    dvti_free(image->bytes);
    return dvti_nvrtc_fail(rtc, function, cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX", result);
}

/* Headers that a program's source may include: the head of the source has what they declare, or
   NVRTC does. */
static int dvti_nvrtc_create(const dvti_nvrtc *rtc, dvti_nvrtc_program *p, const char *source,
                             bool own) {
    static const char *const name[] = {"stdint.h", "stddef.h", "stdbool.h", "math.h"};
    static const char *const text[] = {"", "", "", ""};
    return rtc->nvrtcCreateProgram(p, source, "devtensor.cu", own ? DVTI_LENGTH(name) : 0,
                                   own ? text : NULL, own ? name : NULL);
}

DVTI_FN dvt_status dvti_cuda_compile(int cc, dvti_cuda_family family, const char *function,
                                     const char *source, dvti_cuda_image *image) {
    const dvti_nvrtc *rtc = dvti_nvrtc_open(function);
    const bool own = family == DVTI_CUDA_FAMILY_custom;
    dvti_nvrtc_program p = NULL;
    const char *options[5];
    char arch[48];
    int n = 0, result, known, major = 0, minor = 0;
    dvt_status status;
    if (!rtc)
        return dvti_failure();
    known = dvti_nvrtc_arch(rtc, cc);
    if (!known)
        return dvti_fail(DVT_ERR_UNSUPPORTED,
                         "%s: the GPU has compute capability %d.%d, for which this NVRTC is too "
                         "new; install an older CUDA toolkit too, and name its libnvrtc in "
                         "DEVTENSOR_NVRTC_PATH",
                         function, cc / 10, cc % 10);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s_%d%s", known == cc ? "sm" : "compute", known,
             dvti_cuda_exact(family) ? "a" : "");
    options[n++] = arch;
    options[n++] = "--std=c++17";
    options[n++] = "-default-device";
    options[n++] = dvti_cuda_fuses(family) ? "--fmad=true" : "--fmad=false";
    /* Disables NVRTC's own cache through the driver (since 12.9): this library has its own. */
    if (rtc->nvrtcVersion(&major, &minor) == 0 && major * 10 + minor >= 129)
        options[n++] = "--no-cache";
    dvti_nvrtc_dump(source, NULL);
    result = dvti_nvrtc_create(rtc, &p, source, own);
    if (result != 0)
        return dvti_nvrtc_fail(rtc, function, "nvrtcCreateProgram", result);
    result = rtc->nvrtcCompileProgram(p, n, options);
    status = result == 0 ? dvti_nvrtc_take(rtc, function, p, known == cc, image)
                         : dvti_nvrtc_refused(rtc, function, source, p, result, own);
    rtc->nvrtcDestroyProgram(&p);
    return status;
}
