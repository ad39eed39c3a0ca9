/* See check.h. */
#include "check.h"
#include <stdarg.h>
#include "../../sim_module.h"

void *check_driver;
long check_passed, check_failed;

int check_that(int ok, const char *file, int line, const char *format, ...) {
    va_list args;
    if (ok) { /* threads check too */
        __atomic_add_fetch(&check_passed, 1, __ATOMIC_RELAXED);
        return 1;
    }
    if (__atomic_add_fetch(&check_failed, 1, __ATOMIC_RELAXED) > 30)
        return 0;
    printf("%s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return 0;
}

void *check_symbol(const char *name) {
    void *p = dlsym(check_driver, name);
    if (!p) {
        printf("the driver has no %s\n", name);
        exit(1);
    }
    return p;
}

void check_open(void) {
    check_driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!check_driver || !dlsym(check_driver, "sim_calls")) {
        printf("%s\n", check_driver ? "libcuda.so.1 is not the simulated driver" : dlerror());
        exit(1);
    }
}

CUcontext check_device(int i) {
    CUcontext ctx = NULL;
    OK(CU(cuDevicePrimaryCtxRetain)(&ctx, i));
    OK(CU(cuCtxSetCurrent)(ctx));
    return ctx;
}

void check_start(void) {
    check_open();
    OK(CU(cuInit)(0));
    check_device(0);
}

void *check_image(unsigned arch, unsigned flags) {
    const char *path = getenv("SIM_CHECK_KERNELS");
    FILE *file = path ? fopen(path, "rb") : NULL;
    sim_container head;
    char *image;
    long size;
    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
        printf("SIM_CHECK_KERNELS does not name kernels.so\n");
        exit(1);
    }
    rewind(file);
    image = malloc(sizeof head + (size_t)size);
    if (!image || fread(image + sizeof head, 1, (size_t)size, file) != (size_t)size)
        exit(1);
    fclose(file);
    memset(&head, 0, sizeof head);
    memcpy(head.magic, SIM_CONTAINER_MAGIC, 8);
    head.abi = SIM_ABI;
    head.header_size = sizeof head;
    head.total_size = sizeof head + (uint64_t)size;
    head.arch = arch;
    head.flags = flags;
    head.checksum = sim_container_sum(image + sizeof head, (uint64_t)size);
    memcpy(image, &head, sizeof head);
    return image;
}

CUmodule check_module(void) {
    CUmodule m = NULL;
    void *image = check_image(80, SIM_CONTAINER_PTX);
    OK(CU(cuModuleLoadData)(&m, image));
    free(image);
    return m;
}

CUfunction check_kernel(CUmodule m, const char *name) {
    CUfunction f = NULL;
    OK(CU(cuModuleGetFunction)(&f, m, name));
    return f;
}

const char *check_last_error(void) {
    return check_driver ? CTL(sim_last_error)() : "";
}

void check_policy(const char *name, uint64_t seed) {
    CHECK(CTL(sim_set_policy)(name, seed) == 0, "policy %s", name);
}

int check_finish(void) {
    printf("%ld passed, %ld failed, 0 skipped\n", check_passed, check_failed);
    return check_failed != 0;
}
