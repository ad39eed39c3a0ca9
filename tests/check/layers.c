/* A registry for layers.sh, which links the layers below 3_kernels without it: one backend, in host
   memory, that runs no kernel. Shows that 2_core works with a backend that it does not know. */
#include "2_core/dvt_core.h"

static dvt_status take(dvti_device *device, const char *function, int64_t bytes, void **out) {
    *out = malloc((size_t)bytes + 1);
    (void)device;
    return *out ? DVT_OK : dvti_fail_array_memory(function, bytes);
}

static void give(dvti_device *device, void *block, int64_t bytes) {
    (void)device;
    (void)bytes;
    free(block);
}

static dvt_status move(dvti_device *device, void *dst, const void *src, int64_t bytes) {
    (void)device;
    memmove(dst, src, (size_t)bytes);
    return DVT_OK;
}

static dvt_status move_from(dvti_device *device, void *dst, dvti_device *from, const void *src,
                            int64_t bytes) {
    (void)from;
    return move(device, dst, src, bytes);
}

static bool supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                     dvt_dtype dtype, dvti_feature feature) {
    (void)device;
    (void)kernel;
    (void)op;
    (void)dtype;
    (void)feature;
    return false;
}

static int64_t plan(dvti_device *device, dvti_launch *launch) {
    (void)device;
    (void)launch;
    return 0;
}

static dvt_status launch(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    return dvti_fail(DVT_ERR_UNSUPPORTED, "%s: no kernels here", launch->name);
}

static dvt_status wait_for(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

static dvt_status open_device(dvti_device *device, int index) {
    static const dvti_backend backend = {"test", take,   give,     move, move, move_from, supports,
                                         plan,   launch, wait_for, NULL, NULL, NULL,      NULL,
                                         NULL,   NULL,   false,    NULL, NULL, NULL,      NULL};
    (void)index;
    device->backend = &backend;
    return DVT_OK;
}

static void close_device(dvti_device *device) {
    (void)device;
}

static int count(void) {
    return 1;
}

static const char *reason(void) {
    return "";
}

static void describe(int index, const dvti_device *device, dvt_device_info *out) {
    (void)index;
    (void)device;
    out->threads = 1;
}

static const dvti_backend_kind *kind(void) {
    static const dvti_backend_kind test = {"test", DVT_DEVICE_CPU, false,        count,
                                           reason, open_device,    close_device, describe,
                                           NULL,   NULL,           DVT_DL_CPU};
    return &test;
}

static const dvti_kernel *copy(void) {
    static const dvti_kernel none = {"copy", NULL, NULL};
    return &none;
}

DVTI_FN const dvti_build *dvti_built(void) {
    static const dvti_build built = {{kind, NULL, NULL, NULL, NULL}, copy};
    return &built;
}

int main(void) {
    static const float values[3] = {1, 2, 3};
    float got[3] = {0, 0, 0};
    bool ok = false;
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *x = dvti_array_new("test", DVT_SHAPE(3), DVT_F32, dvt_cpu());
    if (x && dvti_write_host("test", x, values) == DVT_OK)
        ok = dvti_read("test", x, DVT_F32, got) == DVT_OK && memcmp(got, values, sizeof got) == 0 &&
             dvt_num_gpus() == 0 && dvti_copy_elements("test", x, x) == DVT_ERR_UNSUPPORTED;
    dvt_scope_end(&scope);
    return !ok;
}
