/* Loads modules and manages the memory that kernels may access. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ptx/ptx_compile.h"
#include "check.h"
#include "exec_inside.h"

range *exec_ranges;

static void *add_range(size_t size, size_t align, int constant) {
    range *r = malloc(sizeof *r);
    void *memory = aligned_alloc(align < 256 ? 256 : align, (size + 511) / 256 * 256);
    if (!r || !memory)
        abort();
    *r = (range){exec_ranges, (uint64_t)(uintptr_t)memory, size, constant};
    exec_ranges = r;
    memset(memory, 0xff, size);
    return memory;
}

void *exec_buffer(size_t size) {
    return add_range(size, 256, 0);
}

void exec_forget(void) {
    while (exec_ranges) {
        range *next = exec_ranges->next;
        free((void *)(uintptr_t)exec_ranges->address);
        free(exec_ranges);
        exec_ranges = next;
    }
}

static void place_variables(const sim_module *m) {
    for (uint32_t i = 0; i < m->globals; i++) {
        const sim_global *g = &m->global[i];
        *g->slot = add_range(g->size, g->align, g->constant);
        if (g->init)
            memcpy(*g->slot, g->init, g->size);
        else
            memset(*g->slot, 0, g->size);
    }
    for (uint32_t i = 0; i < m->relocs; i++) {
        const sim_reloc *r = &m->reloc[i];
        const void *target = r->target < 0 ? r->function : *m->global[r->target].slot;
        uint64_t value = (uint64_t)(uintptr_t)target + (uint64_t)r->addend;
        memcpy((char *)*m->global[r->global].slot + r->offset, &value, sizeof value);
    }
}

exec *exec_container(const void *container, size_t size) {
    sim_container header;
    char path[] = "/tmp/simcheckXXXXXX";
    if (!check_that(size >= sizeof header, "a container of %zu bytes", size))
        return NULL;
    memcpy(&header, container, sizeof header);
    const char *object = (const char *)container + header.header_size;
    uint64_t object_size = header.total_size - header.header_size;
    int file = mkstemp(path);
    int written = file >= 0 && write(file, object, object_size) == (ssize_t)object_size;
    void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (file >= 0)
        close(file);
    unlink(path);
    const sim_module *module = library ? dlsym(library, SIM_MODULE_SYMBOL) : NULL;
    if (!check_that(module && module->abi == SIM_ABI, "cannot load a module: %s", dlerror()))
        return NULL;
    exec *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->library = library;
    e->module = module;
    place_variables(module);
    return e;
}

exec *exec_ptx(const char *ptx) {
    void *container;
    size_t size;
    char *log;
    ptx_result result = ptx_compile(ptx, SIM_CONTAINER_PTX, NULL, &container, &size, &log);
    int ok =
        check_that(result == PTX_OK, "translation failed with %d: %s", (int)result, log ? log : "");
    free(log);
    exec *e = ok ? exec_container(container, size) : NULL;
    free(container);
    return e;
}

exec *exec_unit(const char *ptx) {
    exec *e = exec_ptx(ptx);
    if (e)
        e->forms = covered_read(ptx);
    return e;
}

void exec_counts(const exec *e, const char *name) {
    covered_kernel(e->forms, name);
}

void exec_close(exec *e) {
    if (e) {
        dlclose(e->library);
        covered_free(e->forms);
    }
    free(e);
}

const sim_module *exec_module(const exec *e) {
    return e->module;
}

const sim_kernel *exec_kernel(const exec *e, const char *name) {
    for (uint32_t i = 0; i < e->module->kernels; i++)
        if (!strcmp(e->module->kernel[i].name, name))
            return &e->module->kernel[i];
    return NULL;
}

void *exec_global(const exec *e, const char *name, uint64_t *size) {
    for (uint32_t i = 0; i < e->module->globals; i++)
        if (!strcmp(e->module->global[i].name, name)) {
            *size = e->module->global[i].size;
            return *e->module->global[i].slot;
        }
    return NULL;
}
