/* Wraps the compiler: records which programs it receives, what ptxas reports, and the time it
   took. */
typedef struct usage {
    int kernels, registers, shared, stack;
} usage;

static double milliseconds_since(clock_t began) {
    return (double)(clock() - began) * 1e3 / CLOCKS_PER_SEC;
}

static int(DVTI_CUDA_CALL *real_compile)(dvti_nvrtc_program program, int n,
                                         const char *const *options);
static int(DVTI_CUDA_CALL *real_create)(dvti_nvrtc_program *program, const char *source,
                                        const char *name, int n, const char *const *headers,
                                        const char *const *names);
static const dvti_nvrtc *rtc;
static usage most[DVTI_CUDA_FAMILY_COUNT];
static int now;                      /* the family of the program that is being compiled */
static char definitions[240];        /* of its variant */
static const char *arch_suffix = ""; /* "a" for sm_90a, which the library requests for one family */

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

/* Finds the family and the variant of a program: the file after the #define lines. */
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

/* Returns the number before `unit` in a line; 0 when there is none. */
static int number_before(const char *line, const char *unit) {
    const char *at = strstr(line, unit);
    while (at && at > line && (at[-1] < '0' || at[-1] > '9'))
        at--;
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

static void read_line(const char *line, char *entry) {
    static int stack; /* printed one line before the registers */
    usage *u = &most[now];
    int registers = number_before(line, " registers"), shared = number_before(line, " bytes smem");
    if (strstr(line, "warning") || strstr(line, "error") || strstr(line, "Performance Loss"))
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

/* Requests the same architecture without its machine code. */
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

/* Writes the machine code of a program for sm_90a to the directory --cubins=. */
static void write_cubin(dvti_nvrtc_program program) {
    static int number;
    size_t size = 0;
    char path[600], *bytes;
    FILE *file;
    if (rtc->nvrtcGetCUBINSize(program, &size) != 0 || !(bytes = (char *)malloc(size)))
        return;
    snprintf(path, sizeof path, "%.500s/%s-%d.cubin", cubins, family_name(now), number++);
    file = rtc->nvrtcGetCUBIN(program, bytes) == 0 ? fopen(path, "wb") : NULL;
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        fail(path, "it cannot be written");
    free(bytes);
}

/* Calls nvrtcCompileProgram and parses what ptxas reports. The architecture is the first option. */
static int DVTI_CUDA_CALL listening_compile(dvti_nvrtc_program program, int n,
                                            const char *const *options) {
    const char *more[16];
    char entry[200] = "?", arch[64], ptx_arch[64], *log, *line;
    size_t size = 0;
    clock_t began;
    int result;
    memcpy(more, options, (size_t)n * sizeof *more);
    snprintf(arch, sizeof arch, "%s%s", more[0],
             more[0][strlen(more[0]) - 1] == 'a' ? "" : arch_suffix);
    more[0] = arch;
    if (ptx_only)
        want_ptx(&more[0], ptx_arch);
    more[n] = "--ptxas-options=-v";
    began = clock();
    result = real_compile(program, n + !ptx_only, more);
    if (times)
        printf("TIME %s %.1f\n", family_name(now), milliseconds_since(began));
    if (result == 0)
        read_ptx(program);
    if (result == 0 && cubins && !ptx_only && now == DVTI_CUDA_FAMILY_matmul_wgmma)
        write_cubin(program);
    if (rtc->nvrtcGetProgramLogSize(program, &size) != 0 || !(log = (char *)calloc(1, size + 1)))
        return result;
    rtc->nvrtcGetProgramLog(program, log);
    for (line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
        read_line(line, entry);
    free(log);
    return result;
}

static void listen_to_nvrtc(void) {
    clock_t began = clock();
    int major = 0, minor = 0;
    dvti_nvrtc *table = (dvti_nvrtc *)dvti_nvrtc_open("compile_all"); /* our own: no GPU is open */
    if (!table)
        return;
    if (times && table->nvrtcVersion(&major, &minor) == 0)
        printf("TIME start %.1f\nNVRTC %d.%d\n", milliseconds_since(began), major, minor);
    rtc = table;
    real_create = table->nvrtcCreateProgram;
    real_compile = table->nvrtcCompileProgram;
    table->nvrtcCreateProgram = listening_create;
    table->nvrtcCompileProgram = listening_compile;
    if (ptx_only) { /* the image is PTX */
        table->nvrtcGetCUBINSize = table->nvrtcGetPTXSize;
        table->nvrtcGetCUBIN = table->nvrtcGetPTX;
    }
}
