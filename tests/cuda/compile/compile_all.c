/* Compiles the CUDA kernels for real architectures, with no card: which programs there are comes from the library itself.

     compile_all [-v] [--full] [--only=SUBJECT] [--forms=FILE] [--ptx] [ARCHITECTURE...]

   Architectures: 75 90 120 when none is named; "all": every one that NVRTC knows.

   The calls below run on cpu(). Every launch that reaches cpu() also goes to the CUDA backend of cards that do not exist, one for each
   architecture: their driver accepts all and does nothing. The programs that these launches ask for are compiled by NVRTC to a CUBIN, and
   what ptxas says is read: registers, shared memory, spills. It fails on an error, a warning, a spill, a kernel whose arguments are not as
   large as the structure that its launch brings, a family that no call reached, or PTX that the translator of tests/simcuda refuses.
   -v: a line for each kernel. --full: every row of the op table in every class. --only: the calls of one subject (compile_calls.h has
   their names). --forms: writes the forms of PTX instructions of all programs (forms.h). --ptx: no CUBINs, which takes half the time. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <limits.h>
#include <stdio.h>

#include "cubin.h"
#include "forms.h"

#define MOST_ARCHS 32

typedef struct card {
    dvti_cuda_card card;
    dvti_cuda_gpu gpu;
    dvti_device device;
} card;

static card cards[MOST_ARCHS];
static int n_cards, verbose, full, ptx_only, passed, failed, skipped;
static const char *only;       /* the subject; NULL: all */
static const char *forms_path; /* NULL: not wanted */
static int reached[DVTI_CUDA_FAMILY_COUNT];
static int compared; /* launches whose arguments were compared with the CUBIN's */

/* ---- the compiler, listened to ---- */
typedef struct usage {
    int kernels, registers, shared, stack;
} usage;

static int(DVTI_CUDA_CALL *real_compile)(dvti_nvrtc_program program, int n,
                                         const char *const *options);
static int(DVTI_CUDA_CALL *real_create)(dvti_nvrtc_program *program, const char *source,
                                        const char *name, int n, const char *const *headers,
                                        const char *const *names);
static const dvti_nvrtc *rtc;
static usage most[DVTI_CUDA_FAMILY_COUNT];
static int now;               /* the family of the program that is being compiled */
static char definitions[600]; /* of its variant */

static const char *family_name(int family) {
#define FAMILY_NAME(name, fuse) #name,
    static const char *const names[] = {DVTI_CUDA_FAMILY_TABLE(FAMILY_NAME)};
#undef FAMILY_NAME
    return names[family];
}

static void fail(const char *what, const char *text) {
    failed++;
    printf("FAIL %s (%s): %s: %s\n", family_name(now), definitions, what, text);
}

/* A program's source says which family it is of, and its variant: the file behind the lines of #define. */
static int DVTI_CUDA_CALL listening_create(dvti_nvrtc_program *program, const char *source,
                                           const char *name, int n, const char *const *headers,
                                           const char *const *names) {
    const char *variant = strstr(source, "#line 1 \"variant\"\n"), *file;
    size_t length = 0;
    char marker[64];
    variant = variant ? strchr(variant, '\n') + 1 : source;
    file = strstr(variant, "#line 1 ");
    for (now = 0; now < DVTI_CUDA_FAMILY_COUNT && file; now++) {
        snprintf(marker, sizeof marker, "#line 1 \"%s.cu\"\n", family_name(now));
        if (strstr(file, marker)) /* not always the first: families share files */
            break;
    }
    for (; variant < file && length + 2 < sizeof definitions; variant++) {
        if (strncmp(variant, "#define ", 8) == 0)
            variant += 8;
        definitions[length++] = *variant == '\n' ? ';' : *variant;
    }
    definitions[length] = 0;
    reached[now]++;
    return real_create(program, source, name, n, headers, names);
}

/* The number that stands before `unit` in a line; 0 when there is none. */
static int number_before(const char *line, const char *unit) {
    const char *at = strstr(line, unit);
    while (at && at > line && (at[-1] < '0' || at[-1] > '9'))
        at--;
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

static void read_line(const char *line, char *entry) {
    static int stack; /* told a line before the registers */
    usage *u = &most[now];
    int registers = number_before(line, " registers"), shared = number_before(line, " bytes smem");
    if (strstr(line, "warning") || strstr(line, "error"))
        fail("said", line);
    if (strstr(line, "Compiling entry function"))
        snprintf(entry, 200, "%.199s", strchr(line, '\'') ? strchr(line, '\'') : line);
    if (number_before(line, " bytes spill stores") || number_before(line, " bytes spill loads"))
        fail(entry, line);
    if (strstr(line, " bytes stack frame"))
        stack = number_before(line, " bytes stack frame");
    if (!strstr(line, " registers"))
        return;
    u->stack = DVTI_MAX(u->stack, stack);
    u->kernels++;
    u->registers = DVTI_MAX(u->registers, registers);
    u->shared = DVTI_MAX(u->shared, shared);
    if (verbose)
        printf("%-12s %-44s %3d registers %6d bytes shared %5d of stack (%s)\n", family_name(now),
               entry, registers, shared, stack, definitions);
}

/* The same architecture without its machine code. */
static void want_ptx(const char **option, char text[64]) {
    const char *number = strstr(*option, "=sm_");
    if (!number)
        return;
    snprintf(text, 64, "--gpu-architecture=compute_%s", number + 4);
    *option = text;
}

static void read_ptx(dvti_nvrtc_program program) {
    size_t size = 0;
    char *text, *log = NULL;
    if (rtc->nvrtcGetPTXSize(program, &size) != 0 || !(text = (char *)calloc(1, size + 1)))
        fail("its PTX", "NVRTC does not give it");
    else if (rtc->nvrtcGetPTX(program, text) != 0 || !forms_of(text, &log))
        fail("its PTX", log ? log : "it cannot be read");
    free(log);
    free(text);
}

/* As nvrtcCompileProgram, and asks ptxas what it did. */
static int DVTI_CUDA_CALL listening_compile(dvti_nvrtc_program program, int n,
                                            const char *const *options) {
    const char *more[16];
    char entry[200] = "?", arch[64], *log, *line;
    size_t size = 0;
    int result, i;
    memcpy(more, options, (size_t)n * sizeof *more);
    for (i = 0; i < n && ptx_only; i++)
        want_ptx(&more[i], arch);
    more[n] = "--ptxas-options=-v";
    result = real_compile(program, n + !ptx_only, more);
    if (result == 0)
        read_ptx(program);
    if (rtc->nvrtcGetProgramLogSize(program, &size) != 0 || !(log = (char *)calloc(1, size + 1)))
        return result;
    rtc->nvrtcGetProgramLog(program, log);
    for (line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
        read_line(line, entry);
    free(log);
    return result;
}

/* ---- cards that do not exist ---- */
/* A module is its image, which the library keeps; a function is one of these. */
typedef struct kernel {
    const char *name;
    int arguments; /* bytes, as the CUBIN says; less than 0: unknown */
} kernel;

static dvti_cu_result DVTI_CUDA_CALL accept_module(dvti_cu_module *module, const void *image,
                                                   unsigned n, int *options, void **values) {
    (void)n, (void)options, (void)values;
    *module = (dvti_cu_module)image;
    return DVTI_CU_OK;
}

static dvti_cu_result DVTI_CUDA_CALL accept_function(dvti_cu_function *function,
                                                     dvti_cu_module module, const char *name) {
    kernel *k = (kernel *)malloc(sizeof *k); /* the library keeps it to the end */
    if (!k)
        abort();
    k->name = name;
    k->arguments = cubin_kernel_arguments((const char *)module, name);
    if (k->arguments == -1)
        fail(name, "the image has no such kernel");
    *function = k;
    return DVTI_CU_OK;
}

/* A structure that the host and the kernel lay out differently would be read in wrong places. */
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
    (void)block_x, (void)block_y, (void)block_z, (void)shared, (void)stream, (void)parameters;
    if (extra[2] != DVTI_CU_PARAM_SIZE)
        fail("its launch", "the size of the arguments is not the second thing that it says");
    else
        compare_arguments((const kernel *)function, *(const size_t *)extra[3]);
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535)
        fail("its grid", "an extent that no card accepts");
    return DVTI_CU_OK;
}

static void make_card(int arch) {
    card *c = &cards[n_cards++];
    c->card.open = true;
    c->card.cc = arch;
    c->card.processors = 132;
    c->gpu.card = &c->card;
    c->gpu.ctx = dvt_gpu(0);
    c->gpu.device = &c->device;
    c->device.ctx = c->gpu.ctx;
    c->device.impl = &c->gpu;
}

static void make_driver(void) {
    dvti_cuda_state *state = &dvti_cuda_the_state;
    state->tried = state->usable = true;
    state->version = INT_MAX; /* no NVRTC is too new for it */
    state->driver.cuModuleLoadDataEx = accept_module;
    state->driver.cuModuleGetFunction = accept_function;
    state->driver.cuLaunchKernel = accept_launch;
}

/* ---- launches on cpu() go to all cards as well ---- */
static const dvti_backend *cpu_backend;

/* Every launch goes to the cards a second time, with a window so large that positions need 64 bits. */
static bool far_apart;

static void launch_on_cards(dvti_launch copy) {
    dvt_status status;
    char text[400];
    int i;
    for (i = 0; i < n_cards; i++) {
        copy.workspace_bytes = dvti_cuda_workspace(&cards[i].device, &copy);
        copy.workspace = copy.workspace_bytes > 0 ? (void *)&cards : NULL;
        status = dvti_cuda_run(&cards[i].gpu, &copy);
        passed += status == DVT_OK;
        skipped += status == DVT_ERR_UNSUPPORTED;
        if (status == DVT_OK)
            continue;
        snprintf(text, sizeof text, "%s", dvt_error());
        failed += status != DVT_ERR_UNSUPPORTED;
        printf("%s %s for %d: %s\n", status == DVT_ERR_UNSUPPORTED ? "SKIP" : "FAIL", copy.name,
               cards[i].card.cc, text);
        dvt_clear_error();
    }
}

static dvt_status both_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_launch apart = *launch;
    int axis = 0;
    launch_on_cards(*launch);
    while (axis < apart.in[0].ndim && apart.in[0].dim[axis] < 2)
        axis++;
    if (far_apart && apart.n_in > 0 && axis < apart.in[0].ndim) {
        apart.in[0].stride[axis] += (int64_t)1 << 31; /* no memory is there, and none is read */
        launch_on_cards(apart);
    }
    return cpu_backend->launch(device, launch);
}

/* The program by itself, for a family that is not launched through the contract. */
static void compile_program(dvti_cuda_family family, uint64_t variant, const char *entry,
                            size_t bytes) {
    dvti_cuda_program program;
    dvti_cu_function function;
    int i;
    program.family = family;
    program.variant = variant;
    for (i = 0; i < n_cards; i++) {
        bool ok =
            dvti_cuda_function(&cards[i].card, "compile_all", program, entry, &function) == DVT_OK;
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
        cpu->backend = &both;
    }
}

static void listen_to_nvrtc(void) {
    dvti_nvrtc *table = (dvti_nvrtc *)dvti_nvrtc_open("compile_all"); /* ours: no card is open */
    if (!table)
        return;
    rtc = table;
    real_create = table->nvrtcCreateProgram;
    real_compile = table->nvrtcCompileProgram;
    table->nvrtcCreateProgram = listening_create;
    table->nvrtcCompileProgram = listening_compile;
    if (ptx_only) { /* the image is PTX, then */
        table->nvrtcGetCUBINSize = table->nvrtcGetPTXSize;
        table->nvrtcGetCUBIN = table->nvrtcGetPTX;
    }
}

/* ---- what is computed ---- */
#include "compile_calls.h"

/* ---- the report ---- */
/* A file without kernels is a family that is not written yet. */
static bool is_written(int family) {
    dvti_cuda_program program;
    char *source;
    bool written;
    program.family = (dvti_cuda_family)family;
    program.variant = 0;
    source = dvti_cuda_source(program);
    written = source && strstr(source, "__global__");
    dvti_free(source);
    return written;
}

/* The families that need tensor cores of 8.0 have nothing to do on older cards. */
static bool is_for_these_cards(int family) {
    int i, highest = 0;
    for (i = 0; i < n_cards; i++)
        highest = DVTI_MAX(highest, cards[i].card.cc);
    return highest >= 80 ||
           (family != DVTI_CUDA_FAMILY_matmul_mma && family != DVTI_CUDA_FAMILY_conv_mma);
}

/* NVRTC knows one of the architectures, so that it makes machine code for it. */
static bool makes_cubins(void) {
    int i;
    for (i = 0; i < n_cards && !ptx_only; i++)
        if (dvti_nvrtc_arch(rtc, cards[i].card.cc) == cards[i].card.cc)
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
        if (reached[i] == 0 && !only && is_for_these_cards(i) && is_written(i)) {
            failed++;
            printf("FAIL %s: no call has reached it\n", family_name(i));
        }
    }
    printf("the arguments of %d launches were compared with the CUBINs\n", compared);
    if (compared == 0 && makes_cubins()) {
        failed++;
        printf("FAIL the images are no CUBINs: is this another NVRTC than the toolkit's?\n");
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
}

static void read_options(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        verbose = verbose || strcmp(argv[i], "-v") == 0;
        full = full || strcmp(argv[i], "--full") == 0;
        ptx_only = ptx_only || strcmp(argv[i], "--ptx") == 0;
        if (strncmp(argv[i], "--only=", 7) == 0)
            only = argv[i] + 7;
        if (strncmp(argv[i], "--forms=", 8) == 0)
            forms_path = argv[i] + 8;
    }
}

static void choose_archs(int argc, char **argv) {
    int archs[64], n = 0, i;
    for (i = 1; i < argc; i++) {
        if (atoi(argv[i]) > 0 && n_cards < MOST_ARCHS)
            make_card(atoi(argv[i]));
        if (strcmp(argv[i], "all") == 0 && rtc->nvrtcGetNumSupportedArchs(&n) == 0 && n <= 64 &&
            rtc->nvrtcGetSupportedArchs(archs) == 0)
            for (; n > 0 && n_cards < MOST_ARCHS; n--)
                make_card(archs[n - 1]);
    }
    if (n_cards == 0) {
        make_card(75);
        make_card(90);
        make_card(120);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("DEVTENSOR_CACHE", "0", 1);
    read_options(argc, argv);
    make_driver(); /* first: NVRTC is chosen by its version */
    listen_to_nvrtc();
    if (!rtc) {
        printf("SKIP compile_all: %s\n0 passed, 0 failed, 1 skipped\n", dvt_error());
        return 0;
    }
    choose_archs(argc, argv);
    listen_to_cpu();
    compute_everything();
    if (forms_path && !forms_write(forms_path, rtc)) {
        failed++;
        printf("FAIL %s: it cannot be written\n", forms_path);
    }
    report();
    return failed != 0;
}
