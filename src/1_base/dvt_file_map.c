/* Files as memory: private mappings, counted by their uses. */
#include "1_base/dvt_base.h"

#if !defined(DEVTENSOR_NO_FILES)

#if defined(_WIN32)
static void *dvti_map_pages(int fd, size_t bytes) {
    HANDLE file = (HANDLE)_get_osfhandle(fd), object;
    void *pages;
    object = file == INVALID_HANDLE_VALUE
                 ? NULL
                 : CreateFileMappingA(file, NULL, PAGE_WRITECOPY, 0, 0, NULL);
    if (!object)
        return NULL;
    pages = MapViewOfFile(object, FILE_MAP_COPY, 0, 0, bytes);
    (void)CloseHandle(object);
    return pages;
}

static void dvti_unmap_pages(void *pages, size_t bytes) {
    (void)bytes;
    (void)UnmapViewOfFile(pages);
}
#else
static void *dvti_map_pages(int fd, size_t bytes) {
    int flags = MAP_PRIVATE;
    void *pages;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE; /* Linux refuses writable pages of more than the machine's memory */
#endif
    pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static void dvti_unmap_pages(void *pages, size_t bytes) {
    (void)munmap(pages, bytes);
}
#endif

DVTI_FN dvti_mapping *dvti_map_file(int fd, int64_t bytes) {
    dvti_mapping *mapping =
        (uint64_t)bytes <= SIZE_MAX ? (dvti_mapping *)dvti_alloc_zero(sizeof *mapping) : NULL;
    if (!mapping)
        return NULL;
    mapping->data = (unsigned char *)dvti_map_pages(fd, (size_t)bytes);
    mapping->bytes = bytes;
    dvti_map_hold(mapping);
    if (mapping->data)
        return mapping;
    dvti_free(mapping);
    return NULL;
}

DVTI_FN void dvti_map_hold(dvti_mapping *mapping) {
    (void)dvti_atomic_add(&mapping->uses, 1);
}

DVTI_FN void dvti_map_release(void *mapping) {
    dvti_mapping *m = (dvti_mapping *)mapping;
    if (dvti_atomic_add(&m->uses, -1) > 0)
        return;
    dvti_unmap_pages(m->data, (size_t)m->bytes);
    dvti_free(m);
}

#endif
