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

/* What a program's source may include: NVRTC declares CUDA's functions by itself, and has neither
   these headers nor their macros. The types are in the head of the source. */
static const char dvti_nvrtc_stdint[] = "#pragma once\n"
                                        "#define INT8_MIN (-128)\n"
                                        "#define INT8_MAX 127\n"
                                        "#define UINT8_MAX 255\n"
                                        "#define INT16_MIN (-32768)\n"
                                        "#define INT16_MAX 32767\n"
                                        "#define UINT16_MAX 65535\n"
                                        "#define INT32_MIN (-2147483647 - 1)\n"
                                        "#define INT32_MAX 2147483647\n"
                                        "#define UINT32_MAX 4294967295u\n"
                                        "#define INT64_MIN (-9223372036854775807ll - 1)\n"
                                        "#define INT64_MAX 9223372036854775807ll\n"
                                        "#define UINT64_MAX 18446744073709551615ull\n"
                                        "#define SIZE_MAX 18446744073709551615ull\n"
                                        "typedef long long intptr_t;\n"
                                        "typedef unsigned long long uintptr_t;\n";
static const char dvti_nvrtc_limits[] = "#pragma once\n"
                                        "#define CHAR_BIT 8\n"
                                        "#define SCHAR_MIN (-128)\n"
                                        "#define SCHAR_MAX 127\n"
                                        "#define UCHAR_MAX 255\n"
                                        "#define SHRT_MIN (-32768)\n"
                                        "#define SHRT_MAX 32767\n"
                                        "#define USHRT_MAX 65535\n"
                                        "#define INT_MIN (-2147483647 - 1)\n"
                                        "#define INT_MAX 2147483647\n"
                                        "#define UINT_MAX 4294967295u\n"
                                        "#define LLONG_MIN (-9223372036854775807ll - 1)\n"
                                        "#define LLONG_MAX 9223372036854775807ll\n"
                                        "#define ULLONG_MAX 18446744073709551615ull\n";
static const char dvti_nvrtc_float[] = "#pragma once\n"
                                       "#define FLT_MIN 0x1p-126f\n"
                                       "#define FLT_MAX 0x1.fffffep127f\n"
                                       "#define FLT_EPSILON 0x1p-23f\n"
                                       "#define DBL_MIN 0x1p-1022\n"
                                       "#define DBL_MAX 0x1.fffffffffffffp1023\n"
                                       "#define DBL_EPSILON 0x1p-52\n";
static const char dvti_nvrtc_math[] = "#pragma once\n"
                                      "#define INFINITY __int_as_float(0x7f800000)\n"
                                      "#define NAN __int_as_float(0x7fc00000)\n"
                                      "#define HUGE_VALF INFINITY\n"
                                      "#define HUGE_VAL ((double)INFINITY)\n"
                                      "#define M_E 2.7182818284590452354\n"
                                      "#define M_LN2 0.69314718055994530942\n"
                                      "#define M_LN10 2.30258509299404568402\n"
                                      "#define M_PI 3.14159265358979323846\n"
                                      "#define M_PI_2 1.57079632679489661923\n"
                                      "#define M_SQRT2 1.41421356237309504880\n";

static int dvti_nvrtc_create(const dvti_nvrtc *rtc, dvti_nvrtc_program *p, const char *source,
                             bool own) {
    static const char *const name[] = {"stdint.h", "limits.h", "float.h",
                                       "math.h",   "stddef.h", "stdbool.h"};
    static const char *const text[] = {
        dvti_nvrtc_stdint, dvti_nvrtc_limits, dvti_nvrtc_float, dvti_nvrtc_math, "", ""};
    return rtc->nvrtcCreateProgram(p, source, "devtensor.cu", own ? DVTI_LENGTH(name) : 0,
                                   own ? text : NULL, own ? name : NULL);
}

DVTI_FN dvt_status dvti_cuda_compile(int cc, dvti_cuda_family family, const char *function,
                                     const char *source, dvti_cuda_image *image) {
    const dvti_nvrtc *rtc = dvti_nvrtc_open(function);
    const bool own = family == DVTI_CUDA_FAMILY_custom;
    dvti_nvrtc_program p = NULL;
    const char *options[6];
    char arch[48];
    int n = 0, result, known, major = 0, minor = 0, version;
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
    version = rtc->nvrtcVersion(&major, &minor) == 0 ? major * 10 + minor : 0;
    /* Disables NVRTC's own cache through the driver (since 12.9): this library has its own. */
    if (version >= 129)
        options[n++] = "--no-cache";
    /* Leaves out declarations, such as those of textures, that the library's kernels do not use.
       12.0 does not know the option. The code is the same, so keys of the cache are, too. */
    if (version >= 130 && !own)
        options[n++] = "--minimal";
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
