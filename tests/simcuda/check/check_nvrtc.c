/* The NVRTC test double: genuine logs and names, options, cubins and PTX, rejected input, injected
   failures, the cache, concurrent compilations. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ptx/ptx_cache.h"
#include "../ptx/ptx_compile.h"
#include "check.h"
#include "compiler.h"
#include "expect.h"
#include "kernels.h"

enum {
    OUT_OF_MEMORY = 1,
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    INTERNAL = 11
};

static const nvrtc *api;
static const char simple[] = "extern \"C\" __global__ void twice(int *x) { x[threadIdx.x] *= 2; }";

static void *program(const char *source) {
    void *p = NULL;
    CHECK_INT(api->nvrtcCreateProgram(&p, source, "test.cu", 0, NULL, NULL), 0);
    return p;
}

static int compile(void *p, const char *a, const char *b, const char *c) {
    const char *options[] = {a, b, c};
    return api->nvrtcCompileProgram(p, a ? b ? c ? 3 : 2 : 1 : 0, options);
}

static char *text_of(void *p, int (*size_of)(void *, size_t *), int (*get)(void *, char *),
                     size_t *size) {
    *size = 0;
    CHECK_INT(size_of(p, size), 0);
    char *text = calloc(1, *size + 1);
    if (*size)
        CHECK_INT(get(p, text), 0);
    return text;
}

static void check_twice(exec *e) {
    int *x = exec_buffer(128);
    for (int i = 0; i < 32; i++)
        x[i] = i;
    if (run(e, "twice", THREADS(32), P(x), 0, 0, 0))
        for (int i = 0; i < 32; i++)
            CHECK_INT(x[i], 2 * i);
    exec_close(e);
    exec_forget();
}

/* ---- outputs ---- */

static void check_outputs(void) {
    size_t size;
    void *p = program(simple);
    CHECK_INT(compile(p, "-arch=sm_80", "--ptxas-options=-v", "-lineinfo"), 0);
    char *cubin = text_of(p, api->nvrtcGetCUBINSize, api->nvrtcGetCUBIN, &size);
    sim_container header;
    CHECK(size > sizeof header && !memcmp(cubin, SIM_CONTAINER_MAGIC, 8));
    memcpy(&header, cubin, sizeof header);
    CHECK(header.arch == 80 && header.total_size == size && header.flags == 0);
    CHECK(header.checksum ==
          sim_container_sum(cubin + header.header_size, size - header.header_size));
    exec *e = exec_container(cubin, size);
    if (e)
        check_twice(e);
    free(cubin);
    /* compiled again for a virtual architecture: no cubin, but PTX that loads */
    CHECK_INT(compile(p, "--gpu-architecture=compute_75", NULL, NULL), 0);
    CHECK(api->nvrtcGetCUBINSize(p, &size) == 0 && size == 0);
    CHECK_INT(api->nvrtcGetCUBIN(p, (char *)&header), INVALID_INPUT);
    char *ptx = text_of(p, api->nvrtcGetPTXSize, api->nvrtcGetPTX, &size);
    CHECK(strstr(ptx, ".target sm_75") && size == strlen(ptx) + 1);
    e = exec_ptx(ptx);
    if (e)
        check_twice(e);
    free(ptx);
    CHECK_INT(api->nvrtcDestroyProgram(&p), 0);
    CHECK(p == NULL);
}

static void check_options(void) {
    void *p = program(simple);
    CHECK_INT(compile(p, "-arch=sm_90a", "-Xptxas", "-O3"), 0);
    CHECK_INT(compile(p, "--gpu-architecture", "sm_80", "--ptxas-options=--warn-on-spills"), 0);
    CHECK_INT(compile(p, "-arch=sm_12", NULL, NULL), INVALID_OPTION);
    CHECK_INT(compile(p, "-arch=sm_80", "--no-such-option", NULL), INVALID_OPTION);
    CHECK_INT(compile(p, "-arch=sm_80", "--maxrregcount=64", "--use_fast_math"), 0);
    CHECK_INT(api->nvrtcCompileProgram(NULL, 0, NULL), INVALID_PROGRAM);
    CHECK_INT(api->nvrtcDestroyProgram(&p), 0);
    CHECK_INT(api->nvrtcDestroyProgram(&p), INVALID_PROGRAM);
    const char *header[] = {"#define FACTOR 2\n"}, *header_name[] = {"factor.h"};
    const char *source = "#include \"factor.h\"\nextern \"C\" __global__ void twice(int *x) { "
                         "x[threadIdx.x] *= FACTOR; }";
    CHECK_INT(api->nvrtcCreateProgram(&p, source, "with_header.cu", 1, header, header_name), 0);
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), 0);
    CHECK_INT(api->nvrtcDestroyProgram(&p), 0);
}

static void check_logs(void) {
    size_t size;
    void *p = program("extern \"C\" __global__ void k(int *x) { *x = nothing; }");
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), COMPILATION);
    char *log = text_of(p, api->nvrtcGetProgramLogSize, api->nvrtcGetProgramLog, &size);
    check_message(log, "identifier \"nothing\" is undefined", "NVRTC's log");
    check_message(log, "test.cu(1)", "NVRTC's log");
    free(log);
    api->nvrtcDestroyProgram(&p);
    p = program("extern \"C\" __global__ void k(int *x) { asm volatile(\"vadd.s32.s32.s32 "
                "%0, %0, %0;\" : \"+r\"(*x)); }");
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), COMPILATION);
    log = text_of(p, api->nvrtcGetProgramLogSize, api->nvrtcGetProgramLog, &size);
    check_message(log, "kernel k, PTX line", "the translator's log");
    check_message(log, "vadd.s32.s32.s32", "the translator's log");
    CHECK_INT(size, strlen(log) + 1);
    free(log);
    CHECK_INT(compile(p, "-arch=compute_80", NULL, NULL), 0); /* as PTX, not as a cubin */
    api->nvrtcDestroyProgram(&p);
}

/* With -lineinfo, a fault names the line of the source. */
static void check_lines(void) {
    static const char *const lines[] = {"-lineinfo", NULL};
    exec *e = nvrtc_module("\n\nextern \"C\" __global__ void outside(int *x) {\n    x[0] = 1;\n"
                           "    x[100] = 2;\n}\n",
                           "sm_80", lines);
    int *x = exec_buffer(64);
    run_fails(e, "outside", THREADS(1), "test.cu:5: st.global.u32", P(x), 0, 0, 0);
    exec_close(e);
    exec_forget();
}

static void check_names(void) {
    const char *name = NULL;
    void *p =
        program("template <typename T, int N> __global__ void fill(T *x) { x[threadIdx.x] = N; }\n"
                "__constant__ int limits[4]; __device__ float scale;\n"
                "namespace inner { __global__ void f() { scale = limits[1]; } }");
    CHECK_INT(api->nvrtcAddNameExpression(p, "fill<float, 7>"), 0);
    CHECK_INT(api->nvrtcAddNameExpression(p, "inner::f"), 0);
    CHECK_INT(api->nvrtcAddNameExpression(p, "&limits"), 0);
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), 0);
    size_t size;
    char *cubin = text_of(p, api->nvrtcGetCUBINSize, api->nvrtcGetCUBIN, &size);
    exec *e = exec_container(cubin, size);
    free(cubin);
    CHECK_INT(api->nvrtcGetLoweredName(p, "fill<float, 7>", &name), 0);
    float *x = exec_buffer(16);
    if (e && name && run(e, name, THREADS(4), P(x), 0, 0, 0))
        CHECK(x[0] == 7 && x[3] == 7);
    CHECK_INT(api->nvrtcGetLoweredName(p, "inner::f", &name), 0);
    CHECK(e && exec_kernel(e, name));
    uint64_t bytes = 0;
    CHECK_INT(api->nvrtcGetLoweredName(p, "&limits", &name), 0);
    CHECK(e && exec_global(e, name, &bytes) && bytes == 16);
    CHECK(api->nvrtcGetLoweredName(p, "absent", &name) != 0);
    exec_close(e);
    exec_forget();
    api->nvrtcDestroyProgram(&p);
}

/* ---- injected failures ---- */

/* Calls an entry point with harmless arguments. p is a compiled program. */
static int call(const char *name, void **p) {
    int a = 0, b = 0, archs[64];
    size_t size = 0;
    const char *text = NULL;
    static char buffer[1 << 20];
    if (!strcmp(name, "nvrtcVersion"))
        return api->nvrtcVersion(&a, &b);
    if (!strcmp(name, "nvrtcGetNumSupportedArchs"))
        return api->nvrtcGetNumSupportedArchs(&a);
    if (!strcmp(name, "nvrtcGetSupportedArchs"))
        return api->nvrtcGetSupportedArchs(archs);
    if (!strcmp(name, "nvrtcGetErrorString"))
        return api->nvrtcGetErrorString(6) ? 0 : 77;
    if (!strcmp(name, "nvrtcCreateProgram")) {
        void *other = NULL;
        int code = api->nvrtcCreateProgram(&other, simple, "x.cu", 0, NULL, NULL);
        if (other)
            api->nvrtcDestroyProgram(&other);
        return code;
    }
    if (!strcmp(name, "nvrtcCompileProgram"))
        return compile(*p, "-arch=sm_80", NULL, NULL);
    if (!strcmp(name, "nvrtcGetPTXSize"))
        return api->nvrtcGetPTXSize(*p, &size);
    if (!strcmp(name, "nvrtcGetPTX"))
        return api->nvrtcGetPTX(*p, buffer);
    if (!strcmp(name, "nvrtcGetCUBINSize"))
        return api->nvrtcGetCUBINSize(*p, &size);
    if (!strcmp(name, "nvrtcGetCUBIN"))
        return api->nvrtcGetCUBIN(*p, buffer);
    if (!strcmp(name, "nvrtcGetProgramLogSize"))
        return api->nvrtcGetProgramLogSize(*p, &size);
    if (!strcmp(name, "nvrtcGetProgramLog"))
        return api->nvrtcGetProgramLog(*p, buffer);
    if (!strcmp(name, "nvrtcGetLoweredName"))
        return api->nvrtcGetLoweredName(*p, "twice", &text);
    if (!strcmp(name, "nvrtcAddNameExpression")) {
        void *other = program(simple);
        int code = api->nvrtcAddNameExpression(other, "twice");
        api->nvrtcDestroyProgram(&other);
        return code;
    }
    if (!strcmp(name, "nvrtcGetPCHHeapSize"))
        return api->nvrtcGetPCHHeapSize(&size);
    if (!strcmp(name, "nvrtcSetPCHHeapSize"))
        return api->nvrtcSetPCHHeapSize(1 << 20);
    if (!strcmp(name, "nvrtcSetFlowCallback"))
        return api->nvrtcSetFlowCallback(*p, NULL, NULL);
    return -1;
}

static const char *const failable[] = {"nvrtcVersion",           "nvrtcGetNumSupportedArchs",
                                       "nvrtcGetSupportedArchs", "nvrtcGetErrorString",
                                       "nvrtcCreateProgram",     "nvrtcCompileProgram",
                                       "nvrtcGetPTXSize",        "nvrtcGetPTX",
                                       "nvrtcGetCUBINSize",      "nvrtcGetCUBIN",
                                       "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
                                       "nvrtcAddNameExpression", "nvrtcGetPCHHeapSize",
                                       "nvrtcSetPCHHeapSize"};

static void check_failures(void) {
    void *p = program(simple);
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), 0);
    for (size_t i = 0; i < COUNT(failable); i++) {
        const char *name = failable[i];
        api->sim_nvrtc_reset();
        check_that(call(name, &p) == 0, "%s fails by itself", name);
        api->sim_nvrtc_fail(name, 2, 77);
        check_that(call(name, &p) == 0 && call(name, &p) == 77 && call(name, &p) == 0,
                   "%s does not fail at its second call, and only there", name);
        api->sim_nvrtc_fail(name, 0, 77);
        check_that(call(name, &p) == 77 && call(name, &p) == 77, "%s does not always fail", name);
        api->sim_nvrtc_fail(name, 0, 0);
        check_that(call(name, &p) == 0, "%s still fails", name);
        check_that(api->sim_nvrtc_calls(name) == 7, "%s was called 7 times, counted %u", name,
                   api->sim_nvrtc_calls(name));
    }
    api->sim_nvrtc_reset();
    CHECK_INT(api->sim_nvrtc_calls(NULL), 0);
    api->sim_nvrtc_fail("nvrtcDestroyProgram", 1, OUT_OF_MEMORY);
    CHECK_INT(api->nvrtcDestroyProgram(&p), OUT_OF_MEMORY);
    CHECK(p != NULL);
    CHECK_INT(api->nvrtcDestroyProgram(&p), 0);
    CHECK_INT(api->sim_nvrtc_calls(NULL), 2);
}

/* ---- the cache ---- */

static int files_in(const char *folder, char *last, size_t capacity) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *f = d ? readdir(d) : NULL; f; f = readdir(d))
        if (f->d_name[0] != '.') {
            snprintf(last, capacity, "%s/%s", folder, f->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static size_t lines_of(const char *path) {
    size_t size = 0, n = 0;
    char *text = ptx_read_file(path, &size);
    for (size_t i = 0; text && i < size; i++)
        n += text[i] == '\n';
    free(text);
    return n;
}

/* Writes a compiler script that records each call. */
static void counting_compiler(const char *folder, char *script, char *count) {
    FILE *f;
    sprintf(script, "%s/cc.sh", folder);
    sprintf(count, "%s/count", folder);
    f = fopen(script, "w");
    if (!f)
        abort();
    fprintf(f, "#!/bin/sh\necho called >>%s\nexec cc \"$@\"\n", count);
    fclose(f);
    chmod(script, 0700);
}

static void check_cache(void) {
    char folder[] = "/tmp/simcacheXXXXXX", script[64], count[64], cache[64], entry[PATH_MAX],
         command[128];
    char *before = getenv("SIMCUDA_CACHE") ? strdup(getenv("SIMCUDA_CACHE")) : NULL;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    counting_compiler(folder, script, count);
    sprintf(cache, "%s/cache", folder);
    setenv("SIMCUDA_CACHE", cache, 1);
    setenv("SIMNVRTC_CC", script, 1);
    for (int i = 0; i < 3; i++)
        check_twice(nvrtc_module(simple, "sm_80", NULL));
    CHECK_INT(lines_of(count), 1);
    CHECK_INT(files_in(cache, entry, sizeof entry), 1);
    check_twice(nvrtc_module(simple, "sm_90", NULL)); /* another architecture is another module */
    CHECK_INT(lines_of(count), 2);
    setenv("SIMCUDA_CHECK", "0", 1);
    exec *unchecked = nvrtc_module(simple, "sm_90", NULL);
    CHECK(unchecked && exec_module(unchecked)->checked == 0);
    check_twice(unchecked);
    unsetenv("SIMCUDA_CHECK");
    CHECK_INT(lines_of(count), 3);
    size_t size;
    for (int damage = 0; damage < 3; damage++) { /* a bit, the end, the whole file */
        files_in(cache, entry, sizeof entry);
        char *data = ptx_read_file(entry, &size);
        data[size / 2] ^= 4;
        ptx_write_file(entry, data, damage == 0 ? size : damage == 1 ? size - 1 : 0);
        free(data);
        check_twice(nvrtc_module(simple, "sm_80", NULL));
        check_twice(nvrtc_module(simple, "sm_90", NULL));
        setenv("SIMCUDA_CHECK", "0", 1);
        check_twice(nvrtc_module(simple, "sm_90", NULL));
        unsetenv("SIMCUDA_CHECK");
        CHECK_INT(lines_of(count), 4 + damage);
    }
    setenv("SIMNVRTC_CC", "/no/such/compiler", 1);
    void *p = program(simple);
    CHECK_INT(compile(p, "-arch=sm_80", NULL, NULL), INTERNAL);
    char *log = text_of(p, api->nvrtcGetProgramLogSize, api->nvrtcGetProgramLog, &size);
    check_message(log, "/no/such/compiler", "a missing compiler");
    free(log);
    api->nvrtcDestroyProgram(&p);
    unsetenv("SIMNVRTC_CC");
    setenv("SIMCUDA_CACHE", before ? before : "", 1);
    free(before);
    sprintf(command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

/* ---- concurrent compilations ---- */

static void *compile_some(void *result) {
    for (int i = 0; i < 3; i++) {
        void *p = NULL, *container = NULL;
        size_t size = 0;
        const char *options[] = {"-arch=sm_80"};
        if (api->nvrtcCreateProgram(&p, simple, "t.cu", 0, NULL, NULL) == 0 &&
            api->nvrtcCompileProgram(p, 1, options) == 0 && api->nvrtcGetCUBINSize(p, &size) == 0 &&
            size) {
            container = malloc(size);
            *(int *)result += api->nvrtcGetCUBIN(p, container) == 0;
            free(container);
        }
        api->nvrtcDestroyProgram(&p);
    }
    return NULL;
}

static void check_together(void) {
    char folder[] = "/tmp/simcacheXXXXXX", command[128];
    pthread_t thread[4];
    int done[4] = {0}, status = 0;
    char *before = getenv("SIMCUDA_CACHE") ? strdup(getenv("SIMCUDA_CACHE")) : NULL;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    setenv("SIMCUDA_CACHE", folder, 1);
    pid_t child = fork(); /* a second process shares the cache with the threads */
    if (child == 0) {
        int mine = 0;
        compile_some(&mine);
        _exit(mine == 3 ? 0 : 1);
    }
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, compile_some, &done[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK_INT(done[i], 3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    setenv("SIMCUDA_CACHE", before ? before : "", 1);
    free(before);
    sprintf(command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

int main(void) {
    setenv("SIMNVRTC_FAIL", "nvrtcGetNumSupportedArchs@2=9,nvrtcGetSupportedArchs@1=10", 1);
    api = nvrtc_double();
    if (!api || !nvrtc_is_real()) {
        check_skip("the NVRTC double", "no NVRTC: set CUDA_HOME or SIMNVRTC_REAL");
        return check_end();
    }
    int n = 0, archs[64];
    CHECK_INT(api->nvrtcGetNumSupportedArchs(&n), 0);
    CHECK_INT(api->nvrtcGetNumSupportedArchs(&n), 9);
    CHECK_INT(api->nvrtcGetSupportedArchs(archs), 10);
    CHECK(n > 5 && api->nvrtcGetSupportedArchs(archs) == 0 && archs[0] >= 50);
    CHECK(!strcmp(api->nvrtcGetErrorString(COMPILATION), "NVRTC_ERROR_COMPILATION"));
    check_outputs();
    check_options();
    check_logs();
    check_lines();
    check_names();
    check_failures();
    check_cache();
    check_together();
    return check_end();
}
