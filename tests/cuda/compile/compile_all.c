/* Compiles the CUDA kernels for real architectures, without a GPU. The library itself determines
   which programs there are.

     compile_all [OPTION...] [ARCHITECTURE...]

   The architectures are 75 90 120 by default; 90a is one; "all" means every one that NVRTC knows.

   Some calls run on cpu(). Every launch that reaches cpu() also goes to the CUDA backend of fake
   GPUs, one for each architecture, whose driver accepts everything and does nothing. NVRTC compiles
   the programs that these launches request to CUBINs. Operations that cpu() has no kernels for are
   launched all the same, and leave their results unset, as products do. The output of ptxas gives
   registers, shared memory and spills. The program fails on:
     - an error, a warning, or a spill
     - a kernel whose arguments differ in size from the structure of its launch (from the CUBIN)
     - a family that no call reached
     - PTX that the translator of tests/simcuda rejects

   Calls (compile_calls.h):
     --base           every family once, as float32 uses it (float16 for tensor cores)
     none             every family with all that selects its program, some operations and dtypes
     --full           every row of the op table in every class, every dtype, 64-bit offsets
     --only=SUBJECT   of those, the calls of one subject
     --three          an addition, a product and a sum; fails when they request any other family
     --prewarm        those of dvt_prewarm
   -v: a line for each kernel. --times: a line for each program, with the CPU time of NVRTC.
   --forms=FILE: writes the forms of PTX instructions of all programs (forms.h).
   --cubins=DIRECTORY: writes the machine code of the programs for sm_90a, for a disassembler.
   --ptx: no CUBINs, which is 2x faster. */
#define DEVTENSOR_IMPLEMENTATION
#define DEVTENSOR_NO_SIMD /* compiles in a quarter of the time */
#include "devtensor.h"
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "cubin.h"
#include "forms.h"

#define MOST_ARCHS 32

typedef struct fake_gpu {
    dvti_cuda_physical physical;
    dvti_cuda_gpu gpu;
    dvti_device device;
    const char *suffix; /* of its architecture: "a", or nothing */
} fake_gpu;

/* Which calls are made; see above. */
typedef enum selection { SOME, BASE, FULL, THREE, PREWARM } selection;

static fake_gpu gpus[MOST_ARCHS];
static int n_gpus, passed, failed, skipped;
static bool verbose, times, full, ptx_only;
static selection selected;
static const char *only;       /* the subject; NULL: all */
static const char *forms_path; /* NULL: not written */
static const char *cubins;     /* directory; NULL: not written */
static int reached[DVTI_CUDA_FAMILY_COUNT];
static int compared; /* launches whose arguments were compared with those in the CUBIN */

#include "compile_nvrtc.h"

/* ---- fake GPUs ---- */
/* A module is its image, which the library keeps. A function is one of these. */
typedef struct kernel {
    const char *name;
    int arguments; /* bytes, from the CUBIN; less than 0: unknown */
} kernel;

static dvti_cu_result DVTI_CUDA_CALL accept_module(dvti_cu_module *module, const void *image,
                                                   unsigned n, int *options, void **values) {
    (void)n, (void)options, (void)values;
    *module = (dvti_cu_module)image;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_function(dvti_cu_function *function,
                                                     dvti_cu_module module, const char *name) {
    kernel *k = (kernel *)malloc(sizeof *k); /* used until exit, never freed */
    if (!k)
        abort();
    k->name = name;
    k->arguments = cubin_kernel_arguments((const char *)module, name);
    if (k->arguments == -1)
        fail(name, "the image has no such kernel");
    *function = k;
    return DVTI_CU_OK;
}

/* Compares sizes, because a structure with another layout in the kernel would be read at wrong
   offsets. */
static void compare_arguments(const kernel *k, size_t bytes) {
    char text[120];
    if (k->arguments < 0)
        return;
    compared++;
    snprintf(text, sizeof text, "%d bytes in the CUBIN, %d of the host", k->arguments, (int)bytes);
    if ((size_t)k->arguments != bytes)
        fail(k->name, text);
}

static dvti_cu_result DVTI_CUDA_CALL accept_launch(dvti_cu_function function, unsigned grid_x,
                                                   unsigned grid_y, unsigned grid_z,
                                                   unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned shared,
                                                   dvti_cu_stream stream, void **parameters,
                                                   void **extra) {
    (void)block_x, (void)block_y, (void)block_z, (void)shared, (void)stream;
    if (parameters)
        compare_arguments((const kernel *)function, sizeof(dvti_kwgmma));
    else if (extra[2] != DVTI_CU_PARAM_SIZE)
        fail("its launch", "the size of the arguments is not the second thing that it says");
    else
        compare_arguments((const kernel *)function, *(const size_t *)extra[3]);
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535)
        fail("its grid", "an extent that no GPU accepts");
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_zeros(dvti_cu_address at, unsigned char value,
                                                  size_t bytes, dvti_cu_stream stream) {
    (void)at, (void)value, (void)bytes, (void)stream;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_context(dvti_cu_context context) {
    (void)context;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_leaving(dvti_cu_context *context) {
    *context = NULL;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_attribute(dvti_cu_function function, int attribute,
                                                      int value) {
    (void)function, (void)attribute, (void)value;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_map(void *map, int dtype, unsigned rank, void *data,
                                                const uint64_t *dim, const uint64_t *stride,
                                                const unsigned *box, const unsigned *step,
                                                int interleave, int swizzle, int promotion,
                                                int fill) {
    (void)dtype, (void)rank, (void)data, (void)dim, (void)stride, (void)box, (void)step;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    memset(map, 0, 128);
    return DVTI_CU_OK;
}

static void make_gpu(int arch, const char *suffix) {
    fake_gpu *c = &gpus[n_gpus++];
    c->suffix = suffix;
    c->physical.open = true;
    c->physical.cc = arch;
    c->physical.processors = 132;
    c->physical.memory = (int64_t)1 << 37;
    c->gpu.physical = &c->physical;
    c->gpu.ctx = dvt_gpu(0);
    c->gpu.device = &c->device;
    c->device.ctx = c->gpu.ctx;
    c->device.impl = &c->gpu;
}

static void make_driver(void) {
    dvti_cuda_state *state = &dvti_cuda_the_state;
    state->tried = state->usable = true;
    state->process = dvti_process_id();
    state->version = INT_MAX; /* newer than every NVRTC */
    state->driver.cuCtxPushCurrent_v2 = accept_context;
    state->driver.cuCtxPopCurrent_v2 = accept_leaving;
    state->driver.cuModuleLoadDataEx = accept_module;
    state->driver.cuModuleGetFunction = accept_function;
    state->driver.cuLaunchKernel = accept_launch;
    state->driver.cuMemsetD8Async = accept_zeros;
    state->driver.cuFuncSetAttribute = accept_attribute;
    state->driver.cuTensorMapEncodeTiled = accept_map;
}

/* ---- launches on cpu() also go to all fake GPUs ---- */
static const dvti_backend *cpu_backend;

/* Every launch goes to the GPUs a second time, with a view so large that offsets need 64 bits. */
static bool far_apart;

static void launch_on_gpus(dvti_launch copy) {
    dvt_status status;
    char text[400];
    int i;
    for (i = 0; i < n_gpus; i++) {
        arch_suffix = gpus[i].suffix;
        copy.workspace_bytes =
            copy.kernel->cuda->plan ? copy.kernel->cuda->plan(&gpus[i].gpu, &copy) : 0;
        copy.workspace = copy.workspace_bytes > 0 ? (void *)&gpus : NULL;
        status = copy.kernel->cuda->run(&gpus[i].gpu, &copy);
        passed += status == DVT_OK;
        skipped += status == DVT_ERR_UNSUPPORTED;
        if (status == DVT_OK)
            continue;
        snprintf(text, sizeof text, "%s", dvt_error());
        failed += status != DVT_ERR_UNSUPPORTED;
        printf("%s %s for %d: %s\n", status == DVT_ERR_UNSUPPORTED ? "SKIP" : "FAIL", copy.name,
               gpus[i].physical.cc, text);
        dvt_clear_error();
    }
}

static bool runs_on_cpu(const dvti_launch *launch) {
    const dvti_kernel *kernel = launch->kernel;
    return cpu_backend->supports(NULL, kernel, launch->op, launch->out[0].dtype, DVTI_CAN_RUN);
}

/* Says what a GPU says of whole operations, so that the calls choose its kernels. */
static bool gpu_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                         dvt_dtype dtype, dvti_feature feature) {
    return feature == DVTI_CAN_RUN ? kernel->cuda->run != NULL
                                   : cpu_backend->supports(device, kernel, op, dtype, feature);
}

/* Products and convolutions stay unset: no index or count depends on them, and most of the time
   would be theirs, in loops that are not optimized. */
static bool stays_unset(const dvti_launch *launch) {
    return launch->kernel == dvti_kernel_matmul() || launch->kernel == dvti_kernel_conv2d();
}

static dvt_status both_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_launch apart = *launch;
    int axis = 0;
    launch_on_gpus(*launch);
    while (axis < apart.in[0].ndim && apart.in[0].dim[axis] < 2)
        axis++;
    if (far_apart && apart.n_in > 0 && axis < apart.in[0].ndim) {
        apart.in[0].stride[axis] += (int64_t)1 << 31; /* never read */
        launch_on_gpus(apart);
    }
    return runs_on_cpu(launch) && !stays_unset(launch) ? cpu_backend->launch(device, launch)
                                                       : DVT_OK;
}

/* Only the GPUs have kernels of some operations, and workspace for them. */
static int64_t both_plan(dvti_device *device, dvti_launch *launch) {
    return runs_on_cpu(launch) ? cpu_backend->plan(device, launch) : 0;
}

/* Compiles a program directly, for a family that is not launched through the backend's
   interface. */
static void compile_program(dvti_cuda_program program, uint64_t variant, const char *entry,
                            size_t bytes) {
    dvti_cu_function function;
    int i;
    program.variant = variant;
    for (i = 0; i < n_gpus; i++) {
        bool ok;
        arch_suffix = gpus[i].suffix;
        ok = dvti_cuda_function(&gpus[i].physical, "compile_all", program, entry, &function) ==
             DVT_OK;
        passed += ok;
        failed += !ok;
        if (ok)
            compare_arguments((const kernel *)function, bytes);
    }
}

static void listen_to_cpu(void) {
    static dvti_backend both;
    dvti_device *cpu;
    DVT_SCOPE {
        cpu = dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_cpu())->storage->device;
        cpu_backend = cpu->backend;
        both = *cpu_backend;
        both.launch = both_launch;
        both.plan = both_plan;
        both.supports = gpu_supports;
        cpu->backend = &both;
    }
}

/* ---- calls ---- */
#include "compile_calls.h"

/* ---- the report ---- */
/* A file without kernels: this build has no kernels of the family. */
static bool is_written(int family) {
#define FAMILY_PROGRAM(name, fuse) DVTI_CUDA_PROGRAM(name),
    const dvti_cuda_program programs[] = {DVTI_CUDA_FAMILY_TABLE(FAMILY_PROGRAM)};
#undef FAMILY_PROGRAM
    char *source = dvti_cuda_source(programs[family]);
    bool written = source && strstr(source, "__global__");
    dvti_free(source);
    return written;
}

/* Tells whether a family has programs for these GPUs. The tensor-core families need compute
   capability 8.0, wgmma 9.0 alone. */
static bool is_for_these_gpus(int family) {
    int i, highest = 0;
    bool has_90 = false;
    for (i = 0; i < n_gpus; i++) {
        highest = DVTI_MAX(highest, gpus[i].physical.cc);
        has_90 = has_90 || gpus[i].physical.cc == 90;
    }
    if (family == DVTI_CUDA_FAMILY_matmul_wgmma)
        return has_90;
    return highest >= 80 ||
           (family != DVTI_CUDA_FAMILY_matmul_mma && family != DVTI_CUDA_FAMILY_conv_mma);
}

/* Tells whether calls of a family were made exactly if requested. */
static bool is_as_expected(int family) {
    bool of_three = family == DVTI_CUDA_FAMILY_elementwise || family == DVTI_CUDA_FAMILY_matmul ||
                    family == DVTI_CUDA_FAMILY_reduce;
    if (selected == THREE)
        return (reached[family] > 0) == of_three;
    return reached[family] > 0 || only || selected == PREWARM || !is_for_these_gpus(family) ||
           !is_written(family);
}

/* Tells whether NVRTC knows one of the architectures, so that it makes machine code for it. */
static bool makes_cubins(void) {
    int i;
    for (i = 0; i < n_gpus && !ptx_only; i++)
        if (dvti_nvrtc_arch(rtc, gpus[i].physical.cc) == gpus[i].physical.cc)
            return true;
    return false;
}

static void report(void) {
    int i;
    for (i = 0; i < DVTI_CUDA_FAMILY_COUNT; i++) {
        printf("%-12s %4d programs, %4d kernels, at most %3d registers, %6d bytes shared, %5d "
               "bytes of stack\n",
               family_name(i), reached[i], most[i].kernels, most[i].registers, most[i].shared,
               most[i].stack);
        if (!is_as_expected(i)) {
            failed++;
            printf("FAIL %s: %s\n", family_name(i),
                   selected == THREE ? "three operations should ask for theirs, and no other"
                                     : "no call has reached it");
        }
    }
    if (selected == THREE && dvt_get_jit_stats().compiled != 3 * n_gpus) {
        failed++;
        printf("FAIL three operations: %d programs\n", (int)dvt_get_jit_stats().compiled);
    }
    printf("the arguments of %d launches were compared with the CUBINs\n", compared);
    if (compared == 0 && makes_cubins()) {
        failed++;
        printf("FAIL the images are no CUBINs: is this another NVRTC than the toolkit's?\n");
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
}

/* Adds an architecture: a number with an optional suffix. */
static void choose_arch(const char *text) {
    int archs[64], n = 0, arch = atoi(text), i;
    for (i = 0; i < n_gpus && arch > 0; i++)
        if (gpus[i].physical.cc == arch) { /* one process keeps one image for both */
            failed++;
            printf("FAIL %s: 90 and 90a want a process each\n", text);
            return;
        }
    if (arch > 0 && n_gpus < MOST_ARCHS)
        make_gpu(arch, text + strspn(text, "0123456789"));
    if (strcmp(text, "all") == 0 && rtc->nvrtcGetNumSupportedArchs(&n) == 0 && n <= 64 &&
        rtc->nvrtcGetSupportedArchs(archs) == 0)
        for (; n > 0 && n_gpus < MOST_ARCHS; n--)
            make_gpu(archs[n - 1], "");
}

static bool choose_option(const char *text) {
    static const char *const names[] = {"", "--base", "--full", "--three", "--prewarm"};
    int i;
    if (strncmp(text, "--only=", 7) == 0)
        only = text + 7;
    else if (strncmp(text, "--forms=", 8) == 0)
        forms_path = text + 8;
    else if (strncmp(text, "--cubins=", 9) == 0)
        cubins = text + 9;
    else if (strcmp(text, "--ptx") == 0)
        ptx_only = true;
    else if (strcmp(text, "-v") == 0)
        verbose = true;
    else if (strcmp(text, "--times") == 0)
        times = true;
    else {
        for (i = 1; i < DVTI_LENGTH(names) && strcmp(text, names[i]) != 0; i++)
            continue;
        if (i == DVTI_LENGTH(names))
            return false;
        selected = (selection)i;
        full = selected == FULL;
    }
    return true;
}

int main(int argc, char **argv) {
    int i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("DEVTENSOR_CACHE", "0", 1);
    for (i = 1; i < argc; i++)
        if (argv[i][0] == '-' && !choose_option(argv[i])) {
            fprintf(stderr, "compile_all: %s: there is no such option\n", argv[i]);
            return 2;
        }
    make_driver(); /* first: the library chooses NVRTC by the driver's version */
    listen_to_nvrtc();
    if (!rtc) {
        printf("SKIP compile_all: %s\n0 passed, 0 failed, 1 skipped\n", dvt_error());
        return 0;
    }
    for (i = 1; i < argc; i++)
        if (argv[i][0] != '-')
            choose_arch(argv[i]);
    if (n_gpus == 0) {
        make_gpu(75, "");
        make_gpu(90, "");
        make_gpu(120, "");
    }
    listen_to_cpu();
    compute_everything();
    if (forms_path && !forms_write(forms_path, rtc)) {
        failed++;
        printf("FAIL %s: it cannot be written\n", forms_path);
    }
    report();
    return failed != 0;
}
