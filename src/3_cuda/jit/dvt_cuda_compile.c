/* From source to an image, by NVRTC: a CUBIN where it knows the card, PTX of the highest architecture that it knows otherwise. */
#include "3_cuda/jit/dvt_cuda_jit.h"

/* The highest supported architecture up to cc; 0 when all are higher. */
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

static dvt_status dvti_nvrtc_fail(const dvti_nvrtc *rtc, const char *function, const char *call,
                                  int result) {
    return dvti_fail(DVT_ERR_INTERNAL, "%s: %s gave %s", function, call,
                     rtc->nvrtcGetErrorString(result));
}

/* The compiler's whole log goes to the logger; the error has its beginning. */
static dvt_status dvti_nvrtc_fail_log(const dvti_nvrtc *rtc, const char *function,
                                      dvti_nvrtc_program p, int result) {
    size_t size = 0;
    char *log = NULL;
    dvt_status status;
    if (rtc->nvrtcGetProgramLogSize(p, &size) == 0 && size > 1)
        log = (char *)dvti_alloc(size + 1);
    if (log && rtc->nvrtcGetProgramLog(p, log) != 0)
        log[0] = 0;
    if (log)
        dvti_log(DVT_LOG_ERROR, "%s: the log of NVRTC:\n%s", function, log);
    status = dvti_fail(DVT_ERR_INTERNAL, "%s: compiling its kernel gave %s: %.300s", function,
                       rtc->nvrtcGetErrorString(result), log ? log : "no log");
    dvti_free(log);
    return status;
}

DVTI_FN dvt_status dvti_cuda_compile(int cc, const char *function, dvti_cuda_program program,
                                     dvti_cuda_image *image) {
#define DVTI_CUDA_FUSE(name, fuse) fuse,
    static const bool fuses[] = {DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FUSE)};
#undef DVTI_CUDA_FUSE
    const dvti_nvrtc *rtc = dvti_nvrtc_open(function);
    dvti_nvrtc_program p = NULL;
    const char *options[6];
    char *source, arch[48];
    bool exact;
    int n = 0, result, known;
    size_t size = 0;
    if (!rtc)
        return dvti_failure();
    known = dvti_nvrtc_arch(rtc, cc);
    if (!known)
        return dvti_fail(DVT_ERR_UNSUPPORTED,
                         "%s: the card has compute capability %d.%d, which this NVRTC is too new "
                         "for; install an older CUDA toolkit",
                         function, cc / 10, cc % 10);
    exact = known == cc;
    source = dvti_cuda_source(program);
    if (!source)
        return dvti_fail_memory(function, 1 << 16);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s_%d", exact ? "sm" : "compute", known);
    options[n++] = arch;
    options[n++] = "--std=c++17";
    options[n++] = "-default-device";
    options[n++] = fuses[program.family] ? "--fmad=true" : "--fmad=false";
    result = rtc->nvrtcCreateProgram(&p, source, "devtensor.cu", 0, NULL, NULL);
    dvti_free(source);
    if (result != 0)
        return dvti_nvrtc_fail(rtc, function, "nvrtcCreateProgram", result);
    result = rtc->nvrtcCompileProgram(p, n, options);
    if (result != 0) {
        dvt_status status = dvti_nvrtc_fail_log(rtc, function, p, result);
        rtc->nvrtcDestroyProgram(&p);
        return status;
    }
    result = exact ? rtc->nvrtcGetCUBINSize(p, &size) : rtc->nvrtcGetPTXSize(p, &size);
    image->bytes = result == 0 ? (char *)dvti_alloc(size + 1) : NULL;
    image->size = size;
    if (result == 0 && !image->bytes) {
        rtc->nvrtcDestroyProgram(&p);
        return dvti_fail_memory(function, (int64_t)size);
    }
    if (result == 0)
        result = exact ? rtc->nvrtcGetCUBIN(p, image->bytes) : rtc->nvrtcGetPTX(p, image->bytes);
    rtc->nvrtcDestroyProgram(&p);
    if (result != 0) {
        dvti_free(image->bytes);
        return dvti_nvrtc_fail(rtc, function, "reading what was compiled", result);
    }
    return DVT_OK;
}
