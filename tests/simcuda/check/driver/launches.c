/* Modules, functions, and the limits of a launch. */
#include "check.h"
#include "../../sim_module.h"

static CUmodule m;
static CUstream s;
static CUdeviceptr x;

static CUresult run(CUfunction f, unsigned grid, unsigned block, unsigned dynamic, void **args) {
    return CU(cuLaunchKernel)(f, grid, 1, 1, block, 1, 1, dynamic, s, args, NULL);
}

static CUresult buffer(CUfunction f, void *bytes, size_t size) {
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return CU(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra);
}

static void parameters(void) {
    struct {
        CUdeviceptr x;
        float v;
        int n;
    } bytes = {x, 4, 8};

    float h[9];
    void *args[] = {&bytes.x, &bytes.v, &bytes.n}, *holes[] = {&bytes.x, NULL, &bytes.n};
    CUfunction fill = check_kernel(m, "fill");
    OK(CU(cuMemsetD32Async)(x, 0, 9, s));
    OK(buffer(fill, &bytes, 16));
    GIVES(CUDA_ERROR_INVALID_VALUE, buffer(fill, &bytes, 15));
    GIVES(CUDA_ERROR_INVALID_VALUE, buffer(fill, &bytes, 17));
    SAYS("17 bytes of parameters, it has 16");
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 32, 0, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 32, 0, holes));
    bytes.v = 5; /* parameters are read at the call */
    OK(CU(cuMemcpyDtoHAsync_v2)(h, x, sizeof h, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK(h[0] == 4 && h[7] == 4 && h[8] == 0, "%g %g %g", h[0], h[7], h[8]);
    OK(run(fill, 1, 32, 0, args));
}

static void shapes(void) {
    float v = 1;
    int n = 8, value = 0, blocks = 0, grid = 0;
    void *args[] = {&x, &v, &n};
    CUfunction fill = check_kernel(m, "fill"), bounded = check_kernel(m, "bounded");
    CUfunction required = check_kernel(m, "required");
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 0, 32, 0, args));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 0, 0, args));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 1025, 0, args));
    OK(run(fill, 1, 1024, 0, args));
    GIVES(CUDA_ERROR_INVALID_VALUE,
          CU(cuLaunchKernel)(fill, 1, 65536, 1, 32, 1, 1, 0, s, args, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuLaunchKernel)(fill, 1, 1, 1, 1, 1, 65, 0, s, args, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(bounded, 1, 129, 0, args));
    OK(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
    CHECK(value == 128, "bound %d", value);
    GIVES(CUDA_ERROR_INVALID_VALUE, run(required, 1, 32, 0, args));
    OK(CU(cuLaunchKernel)(required, 1, 1, 1, 32, 2, 1, 0, s, args, NULL));
    OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, fill, 256, 0));
    CHECK(blocks == 8, "%d blocks of 256", blocks);
    OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, fill, 32, 40000));
    CHECK(blocks == 4, "%d blocks with 40000 bytes", blocks);
    OK(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &blocks, fill, NULL, 0, 0));
    CHECK(blocks * grid == 4 * 2048, "%d blocks of %d", grid, blocks);
    GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
          CU(cuLaunchCooperativeKernel)(fill, 33, 1, 1, 256, 1, 1, 0, s, args));
}

/* 48 KiB by default, more after cuFuncSetAttribute. */
static void shared_memory(void) {
    float v = 1;
    int n = 8, value = 0;
    void *args[] = {&x, &v, &n};
    CUfunction fill = check_kernel(m, "fill");
    OK(run(fill, 1, 32, 49152, args));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 32, 49153, args));
    SAYS("cuFuncSetAttribute");
    GIVES(CUDA_ERROR_INVALID_VALUE,
          CU(cuFuncSetAttribute)(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 163 * 1024 + 1));
    OK(CU(cuFuncSetAttribute)(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 163 * 1024));
    OK(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, fill));
    CHECK(value == 163 * 1024, "%d", value);
    OK(run(fill, 1, 32, 163 * 1024, args));
    GIVES(CUDA_ERROR_INVALID_VALUE, run(fill, 1, 32, 163 * 1024 + 4, args));
    OK(CU(cuCtxSynchronize)());
}

static void extended(void) {
    float v = 1;
    int n = 8;
    void *args[] = {&x, &v, &n};
    CUlaunchAttribute a;
    CUlaunchConfig c;
    memset(&a, 0, sizeof a);
    memset(&c, 0, sizeof c);
    c.gridDimX = c.gridDimY = c.gridDimZ = c.blockDimY = c.blockDimZ = 1;
    c.blockDimX = 32;
    c.hStream = s;
    c.attrs = &a;
    OK(CU(cuLaunchKernelEx)(&c, check_kernel(m, "fill"), args, NULL));
    c.numAttrs = 1;
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = 2;
    a.value.clusterDim.y = a.value.clusterDim.z = 1;
    GIVES(CUDA_ERROR_NOT_SUPPORTED, CU(cuLaunchKernelEx)(&c, check_kernel(m, "fill"), args, NULL));
    a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    a.value.cooperative = 1;
    c.gridDimX = 1000;
    GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
          CU(cuLaunchKernelEx)(&c, check_kernel(m, "fill"), args, NULL));
}

static void modules(void) {
    CUmodule other, none;
    CUfunction f;
    CUdeviceptr p;
    CUcontext zero;
    CUstream stream_of_one;
    size_t size = 0, offset = 0;
    int v = 0, n = 1;
    char *image = check_image(80, 0), log[200] = "x";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    void *args[] = {&x, &v, &n};
    OK(CU(cuModuleLoadData)(&other, image));
    GIVES(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetFunction)(&f, other, "no such kernel"));
    OK(CU(cuModuleGetGlobal_v2)(&p, &size, other, "counter"));
    OK(CU(cuMemcpyDtoH_v2)(&v, p, 4));
    CHECK(size == 4 && v == 7, "counter %d of %zu bytes", v, size);
    OK(CU(cuModuleGetGlobal_v2)(&p, &size, other, "table"));
    OK(CU(cuMemsetD32_v2)(p, 5, 4)); /* the host may write constants */
    GIVES(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetGlobal_v2)(&p, &size, other, "no such variable"));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(p));
    f = check_kernel(other, "ticket");
    OK(CU(cuFuncGetParamInfo)(f, 4, &offset, &size));
    CHECK(offset == 32 && size == 4, "parameter at %zu of %zu", offset, size);
    OK(CU(cuModuleUnload)(other));
    GIVES(CUDA_ERROR_INVALID_HANDLE, run(f, 1, 32, 0, args));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuModuleUnload)(other));
    image[200] ^= 1;
    GIVES(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoadData)(&none, image));
    SAYS("damaged");
    free(image);

    static const struct {
        unsigned arch, flags;
        CUresult code;
    } fits[] = {{75, SIM_CONTAINER_EXACT, CUDA_ERROR_NO_BINARY_FOR_GPU},
                {80, SIM_CONTAINER_EXACT, CUDA_SUCCESS},
                {75, SIM_CONTAINER_EXACT | SIM_CONTAINER_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU},
                {86, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
                {75, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
                {90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
                {75, 1, CUDA_SUCCESS},
                {90, 1, CUDA_ERROR_NO_BINARY_FOR_GPU}};

    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        void *p80 = check_image(fits[i].arch, fits[i].flags);
        GIVES(fits[i].code, CU(cuModuleLoadData)(&none, p80));
        if (fits[i].code == CUDA_SUCCESS)
            OK(CU(cuModuleUnload)(none));
        free(p80);
    }
    GIVES(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoadData)(&none, "\177ELF and so on"));
    GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, CU(cuModuleLoadFatBinary)(&none, "x"));
    CUresult ptx = CU(cuModuleLoadDataEx)(
        &none, "// text\n.version 9.0\n.target sm_80\n.visible .entry k( { broken\n", 2, options,
        values);
    CHECK(ptx == CUDA_ERROR_INVALID_PTX || ptx == CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
          "broken PTX gave %d", ptx);
    CHECK(log[0] != 'x', "the log was written");
    GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CU(cuModuleLoadData)(&none, ".version 99.0\n"));
    /* a kernel of one device on a stream of another */
    f = check_kernel(m, "fill");
    OK(CU(cuCtxGetCurrent)(&zero));
    check_device(1);
    OK(CU(cuStreamCreate)(&stream_of_one, 0));
    GIVES(CUDA_ERROR_INVALID_HANDLE,
          CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, stream_of_one, args, NULL));
    SAYS("loaded on device 0");
    OK(CU(cuStreamDestroy_v2)(stream_of_one));
    OK(CU(cuCtxSetCurrent)(zero));
}

/* Modules are loaded and unloaded many times, so file names must not repeat. */
static void many_modules(void) {
    void *image = check_image(80, 1);
    for (int i = 0; i < 40; i++) {
        CUmodule a, b;
        CUdeviceptr p, q;
        OK(CU(cuModuleLoadData)(&a, image));
        OK(CU(cuModuleLoadData)(&b, image));
        OK(CU(cuModuleGetGlobal_v2)(&p, NULL, a, "counter"));
        OK(CU(cuModuleGetGlobal_v2)(&q, NULL, b, "counter"));
        CHECK(p != q, "each load has variables of its own");
        OK(CU(cuModuleUnload)(a));
        OK(CU(cuModuleUnload)(b));
    }
    free(image);
}

int main(void) {
    check_start();
    m = check_module();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&x, 4096));
    parameters();
    shapes();
    shared_memory();
    extended();
    modules();
    many_modules();
    void *args[] = {&x};
    OK(run(check_kernel(m, "speak"), 1, 1, 0, args));
    OK(CU(cuCtxSynchronize)());
    return check_finish();
}
