/* Modules: the shared object of a container is written to an in-memory file and opened from there.
   Its variables get device memory. PTX goes through the translator first, as it goes through the
   JIT compiler of a real driver. */
#define _GNU_SOURCE
#include "entry.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../ptx/ptx_compile.h"

/* Without the translator's files the driver still loads images. */
#pragma weak ptx_compile

/* ---- compatibility with this device and this driver ---- */

/* Returns the newest PTX that a driver knows: CUDA 11.n has ISA 7.n, 12.n has 8.n with one number
   reused, 13.n has 9.n. */
static int newest_ptx(void) {
    int major = settings.driver / 1000, minor = settings.driver / 10 % 100;
    if (major == 12 && minor >= 6)
        minor--;
    return 10 * (major - 4) + (minor > 9 ? 9 : minor);
}

static CUresult ptx_version(const char *text) {
    const char *at = strstr(text, ".version");
    int major, minor;
    if (!at || sscanf(at, ".version %d.%d", &major, &minor) != 2)
        return fail(CUDA_ERROR_INVALID_PTX, "cuModuleLoadData: PTX without .version");
    if (10 * major + minor > newest_ptx())
        return fail(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                    "cuModuleLoadData: PTX ISA %d.%d, this driver knows up to "
                    "%d.%d",
                    major, minor, newest_ptx() / 10, newest_ptx() % 10);
    return CUDA_SUCCESS;
}

static CUresult fits(const sim_container *c) {
    const device *d = current->dev;
    int have = 10 * d->major + d->minor, want = (int)c->arch;
    if (c->abi != SIM_ABI)
        return fail(CUDA_ERROR_INVALID_IMAGE, "cuModuleLoadData: module format %u, expected %u",
                    c->abi, SIM_ABI);
    if (c->total_size < c->header_size || c->header_size < sizeof *c ||
        sim_container_sum((const char *)c + c->header_size, c->total_size - c->header_size) !=
            c->checksum)
        return fail(CUDA_ERROR_INVALID_IMAGE, "cuModuleLoadData: the image is damaged");
    if (c->flags & SIM_CONTAINER_EXACT ? want != have
        : c->flags & SIM_CONTAINER_PTX ? want > have
                                       : want / 10 != d->major || want > have)
        return fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
                    "cuModuleLoadData: an image for sm_%d%s, the device is sm_%d", want,
                    c->flags & SIM_CONTAINER_EXACT ? "a" : "", have);
    /* Images come from the current toolkit; a driver reads those of its own major version. */
    if (!(c->flags & SIM_CONTAINER_PTX) && settings.driver / 1000 < CUDA_VERSION / 1000)
        return fail(CUDA_ERROR_INVALID_IMAGE,
                    "cuModuleLoadData: an image of CUDA %d, the driver is for %d",
                    CUDA_VERSION / 1000, settings.driver / 1000);
    return CUDA_SUCCESS;
}

/* ---- loading ---- */

/* Makes a path that was never used. The loader identifies libraries by name and file numbers are
   reused, so the bits of a counter are spelled as "//" and "/.". */
static void unique_path(char *path, int file) {
    static unsigned loads;
    path += sprintf(path, "/proc/self/fd");
    loads++;
    for (unsigned bit = 0; bit < 32; bit++)
        path += sprintf(path, "%s", loads >> bit & 1 ? "//" : "/.");
    sprintf(path, "/%d", file);
}

static void *open_library(const sim_container *c) {
    char path[128];
    const char *bytes = (const char *)c + c->header_size;
    uint64_t left = c->total_size - c->header_size;
    int file = memfd_create("simmodule", MFD_CLOEXEC);
    void *library;
    while (file >= 0 && left > 0) {
        ssize_t n = write(file, bytes, left);
        if (n <= 0)
            break;
        bytes += n;
        left -= (uint64_t)n;
    }
    unique_path(path, file);
    library = left == 0 && file >= 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        say("cuModuleLoadData: %s", left == 0 ? dlerror() : "no memory for the image");
    if (file >= 0)
        close(file);
    return library;
}

static CUresult place_variables(module *m) {
    const sim_module *code = m->code;
    m->globals = calloc((size_t)code->globals + 1, sizeof *m->globals);
    if (!m->globals)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < code->globals; i++) {
        const sim_global *g = &code->global[i];
        region *r =
            region_new(current->dev, current, REGION_GLOBAL, g->size ? g->size : 1, g->align);
        if (!r)
            return CUDA_ERROR_OUT_OF_MEMORY;
        m->globals[i] = r;
        r->constant = g->constant != 0;
        if (g->init)
            memcpy(backdoor(r->address), g->init, g->size);
        else
            memset(backdoor(r->address), 0, g->size);
        *g->slot = (void *)(uintptr_t)r->address;
    }
    for (uint32_t i = 0; i < code->relocs; i++) {
        const sim_reloc *reloc = &code->reloc[i];
        char *at = backdoor(m->globals[reloc->global]->address) + reloc->offset;
        uint64_t target = reloc->target < 0 ? (uint64_t)(uintptr_t)reloc->function
                                            : m->globals[reloc->target]->address;
        target += (uint64_t)reloc->addend;
        memcpy(at, &target, sizeof target);
    }
    return CUDA_SUCCESS;
}

static CUresult make_functions(module *m) {
    m->functions = calloc((size_t)m->code->kernels + 1, sizeof *m->functions);
    if (!m->functions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < m->code->kernels; i++) {
        function *f = object_new(KIND_FUNCTION, m->object.ctx, sizeof *f);
        if (!f)
            return CUDA_ERROR_OUT_OF_MEMORY;
        f->module = m;
        f->kernel = &m->code->kernel[i];
        f->shared_shift = 2;
        f->max_dynamic = 49152 - (int)f->kernel->static_shared;
        m->functions[i] = f;
    }
    return CUDA_SUCCESS;
}

void module_unload(module *m) {
    context_drain(m->object.ctx);
    for (uint32_t i = 0; m->functions && i < m->code->kernels; i++)
        if (m->functions[i])
            object_retire(m->functions[i]);
    for (uint32_t i = 0; m->globals && i < m->code->globals; i++)
        if (m->globals[i])
            region_free(m->globals[i]);
    free(m->functions);
    free(m->globals);
    dlclose(m->library);
    object_retire(m);
}

static CUresult load_container(module **out, const sim_container *c) {
    CUresult code = fits(c);
    module *m;
    if (code != CUDA_SUCCESS)
        return code;
    if (!(m = object_new(KIND_MODULE, current, sizeof *m)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->library = open_library(c);
    m->code = m->library ? dlsym(m->library, SIM_MODULE_SYMBOL) : NULL;
    if (!m->code || m->code->abi != SIM_ABI) {
        if (m->library)
            dlclose(m->library);
        object_retire(m);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    code = place_variables(m);
    if (code == CUDA_SUCCESS)
        code = make_functions(m);
    if (code != CUDA_SUCCESS) {
        module_unload(m);
        return code;
    }
    *out = m;
    return CUDA_SUCCESS;
}

static CUresult ptx_failure(ptx_result result) {
    switch (result) {
    case PTX_OK:
        return CUDA_SUCCESS;
    case PTX_UNSUPPORTED:
        return CUDA_ERROR_INVALID_PTX;
    case PTX_NO_COMPILER:
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    case PTX_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
}

static CUresult load_ptx(module **out, const char *text, char **log) {
    void *container = NULL;
    size_t size = 0;
    CUresult code = ptx_version(text);
    if (code != CUDA_SUCCESS)
        return code;
    if (!ptx_compile)
        return fail(CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
                    "cuModuleLoadData: this driver was built without the translator");
    code = ptx_failure(ptx_compile(text, SIM_CONTAINER_PTX, NULL, &container, &size, log));
    if (code != CUDA_SUCCESS)
        return fail(code, "cuModuleLoadData: %s", *log ? *log : "the PTX could not be translated");
    code = load_container(out, container);
    free(container);
    return code;
}

static bool looks_like_text(const char *image) {
    while (isspace((unsigned char)*image))
        image++;
    return strncmp(image, "//", 2) == 0 || strncmp(image, "/*", 2) == 0 ||
           strncmp(image, ".version", 8) == 0;
}

static CUresult load(CUmodule *out, const void *image, char **log) {
    module *m = NULL;
    CUresult code;
    if (!out || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(image, SIM_CONTAINER_MAGIC, 8) == 0)
        code = load_container(&m, image);
    else if (looks_like_text(image))
        code = load_ptx(&m, image, log);
    else
        code = fail(CUDA_ERROR_INVALID_IMAGE,
                    "cuModuleLoadData: neither an image of the simulated compiler nor PTX");
    *out = (CUmodule)m;
    return code;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    char *log = NULL;
    CUresult code;
    ENTER(NEED_HEALTHY | UNSAFE);
    code = load(out, image, &log);
    free(log);
    return code;
}

/* Only the log options have an effect: they receive the compiler's messages. */
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options,
                            void **values) {
    char *log = NULL, *text[2] = {NULL, NULL};
    size_t size[2] = {0, 0};
    void **written[2] = {NULL, NULL};
    CUresult code;
    ENTER(NEED_HEALTHY | UNSAFE);
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        int error = options[i] == CU_JIT_ERROR_LOG_BUFFER ||
                    options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER || options[i] == CU_JIT_INFO_LOG_BUFFER) {
            text[error] = values[i];
        } else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
                   options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
            size[error] = (size_t)(uintptr_t)values[i];
            written[error] = &values[i];
        }
    }
    code = load(out, image, &log);
    for (int i = 0; i < 2; i++) {
        int n = 0;
        if (text[i] && size[i])
            n = snprintf(text[i], size[i], "%s", i == 1 && code != CUDA_SUCCESS && log ? log : "");
        if (written[i])
            *written[i] = (void *)(uintptr_t)((size_t)n < size[i] ? (size_t)n : size[i]);
    }
    free(log);
    return code;
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) {
    ENTER(NEED_HEALTHY | UNSAFE);
    (void)out;
    (void)image;
    return fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
                "cuModuleLoadFatBinary: fat binaries hold machine code, which is not "
                "simulated");
}

CUresult cuModuleUnload(CUmodule handle) {
    module *m;
    ENTER(NEED_CONTEXT | UNSAFE);
    if (!(m = object_get(handle, KIND_MODULE)))
        return CUDA_ERROR_INVALID_HANDLE;
    module_unload(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    ENTER(NEED_INIT);
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    module *m;
    ENTER(NEED_HEALTHY);
    if (!(m = object_get(handle, KIND_MODULE)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < m->code->kernels; i++)
        if (strcmp(m->code->kernel[i].name, name) == 0) {
            *out = (CUfunction)m->functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule handle) {
    module *m;
    ENTER(NEED_HEALTHY);
    m = object_get(handle, KIND_MODULE);
    if (!m || !count)
        return m ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *count = m->code->kernels;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle,
                              const char *name) {
    module *m;
    ENTER(NEED_HEALTHY);
    if (!(m = object_get(handle, KIND_MODULE)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < m->code->globals; i++)
        if (strcmp(m->code->global[i].name, name) == 0) {
            if (address)
                *address = m->globals[i]->address;
            if (bytes)
                *bytes = m->code->global[i].size;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}
