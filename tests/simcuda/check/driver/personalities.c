/* Devices and drivers that differ or fail. Each case runs in its own child process, which opens the
   driver under its own environment. */
#include "check.h"
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the case with these settings ("NAME=value", NULL at the end) and adds its counts. */
static void with(void (*program)(void), const char *a, const char *b) {
    int pipes[2], status = 0;
    long counted[2] = {0, 0};
    fflush(stdout);
    if (pipe(pipes) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        if (a)
            putenv((char *)(uintptr_t)a);
        if (b)
            putenv((char *)(uintptr_t)b);
        check_passed = check_failed = 0;
        check_open();
        program();
        fflush(stdout);
        counted[0] = check_passed;
        counted[1] = check_failed;
        if (write(pipes[1], counted, sizeof counted) != (ssize_t)sizeof counted)
            _exit(2);
        _exit(0);
    }
    close(pipes[1]);
    CHECK(read(pipes[0], counted, sizeof counted) == (ssize_t)sizeof counted,
          "the case with %s %s ended early", a ? a : "", b ? b : "");
    close(pipes[0]);
    waitpid(child, &status, 0);
    check_passed += counted[0];
    check_failed += counted[1];
}

static int attribute(CUdevice_attribute name, int device) {
    int v = -1;
    OK(CU(cuDeviceGetAttribute)(&v, name, device));
    return v;
}

static void devices(void) {
    int n = 0;
    char name[64], bus[16], bus2[16];
    CUdevice d;
    CUuuid a, b;
    size_t total;
    unsigned flags;
    int active, version = 0;
    GIVES(CUDA_ERROR_NOT_INITIALIZED, CU(cuDeviceGetCount)(&n));
    OK(CU(cuDriverGetVersion)(&version));
    CHECK(version == 13000, "version %d", version);
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuInit)(1));
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGetCount)(&n));
    CHECK(n == 3, "%d devices", n);
    OK(CU(cuDeviceGet)(&d, 2));
    GIVES(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&d, 3));
    OK(CU(cuDeviceGetName)(name, sizeof name, 1));
    CHECK(strcmp(name, "Simulated GPU 1") == 0, "%s", name);
    OK(CU(cuDeviceGetUuid_v2)(&a, 0));
    OK(CU(cuDeviceGetUuid_v2)(&b, 1));
    CHECK(memcmp(&a, &b, sizeof a) != 0, "uuids differ");
    OK(CU(cuDeviceGetPCIBusId)(bus, sizeof bus, 2));
    OK(CU(cuDeviceGetByPCIBusId)(&d, bus));
    OK(CU(cuDeviceGetPCIBusId)(bus2, sizeof bus2, 0));
    CHECK(d == 2 && strcmp(bus, bus2) != 0, "bus %s", bus);
    OK(CU(cuDeviceTotalMem_v2)(&total, 0));
    CHECK(total == 100 << 20, "%zu bytes", total);
    OK(CU(cuDeviceTotalMem_v2)(&total, 2));
    CHECK(total == 200 << 20, "the last item of a list counts on: %zu", total);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == 32, "warp size");
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    CHECK(!active, "asking creates no context");
}

static void capabilities(void) {
    OK(CU(cuInit)(0));
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == 7, "7");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) == 5, "5");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1) == 9, "9");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0) == 65536, "64 KB");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1) == 232448, "227 KB");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0) == 1024, "1024");
}

static void broken(void) {
    int n;
    GIVES(atoi(getenv("SIMCUDA_BROKEN")), CU(cuInit)(0));
    GIVES(CUDA_ERROR_NOT_INITIALIZED, CU(cuDeviceGetCount)(&n));
}

static void no_device(void) {
    GIVES(CUDA_ERROR_NO_DEVICE, CU(cuInit)(0));
}

static void *found(const char *name, int version, CUdriverProcAddressQueryResult *status) {
    typedef CUresult first_form(const char *, void **, int, cuuint64_t);
    void *p = NULL;
    CUresult code =
        dlsym(check_driver, "cuGetProcAddress_v2")
            ? CU(cuGetProcAddress_v2)(name, &p, version, CU_GET_PROC_ADDRESS_DEFAULT, status)
            : ((first_form *)check_symbol("cuGetProcAddress"))(name, &p, version, 0);
    CHECK((code == CUDA_SUCCESS) == (p != NULL), "%s: %d but %p", name, code, p);
    return p;
}

static void symbols(void) {
    CUdriverProcAddressQueryResult status;
    CHECK(found("cuMemsetD32", 12000, NULL) == check_symbol("cuMemsetD32_v2"), "suffixed");
    CHECK(found("cuMemAlloc", 12000, &status) == check_symbol("cuMemAlloc_v2"),
          "the suffixed form");
    CHECK(found("cuStreamGetCaptureInfo", 12000, NULL) == check_symbol("cuStreamGetCaptureInfo_v2"),
          "as asked");
    CHECK(found("cuStreamGetCaptureInfo", 13000, NULL) == check_symbol("cuStreamGetCaptureInfo_v3"),
          "as asked");
    CHECK(found("cuGraphInstantiate", 12000, NULL) == check_symbol("cuGraphInstantiateWithFlags"),
          "renamed");
    CHECK(!found("cuNothing", 13000, &status) && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
          "%d", (int)status);
    CHECK(!found("cuLaunchKernelEx", 11000, &status) &&
              status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
          "%d", (int)status);
    CHECK(!found("cuMemPoolCreate", 13000, &status) &&
              status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
          "missing");
    CHECK(!found("cuMemMap", 13000, &status), "missing");
    CHECK(found("cuMemUnmap", 13000, &status) != NULL, "not missing");
}

/* A driver of CUDA 11.4: no newer symbols, no newer PTX, no newer images. */
static void old_driver(void) {
    CUmodule m;
    CUevent e;
    CUstream s;
    float ms;
    void *image = check_image(80, 0);
    int version;
    OK(CU(cuInit)(0));
    OK(CU(cuDriverGetVersion)(&version));
    CHECK(version == 11040, "%d", version);
    CHECK(!found("cuLaunchKernelEx", 13000, NULL) && found("cuLaunchKernel", 13000, NULL),
          "11.6 is too new");
    CHECK(found("cuEventElapsedTime", 13000, NULL) == check_symbol("cuEventElapsedTime"),
          "then the right one");
    check_device(0);
    GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
          CU(cuModuleLoadData)(&m, ".version 7.5\n.target sm_80\n"));
    GIVES(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoadData)(&m, image));
    free(image);
    OK(CU(cuEventCreate)(&e, 0));
    OK(CU(cuStreamCreate)(&s, 0));
    OK(CU(cuEventRecord)(e, s));
    OK(CU(cuEventSynchronize)(e));
    OK(((CUresult(*)(float *, CUevent, CUevent))check_symbol("cuEventElapsedTime"))(&ms, e, e));
}

static void traps(void) {
    static const char *const names[] = {
        "cuMemAlloc",         "cuMemcpyHtoD",     "cuEventElapsedTime",    "cuStreamBeginCapture",
        "cuGraphInstantiate", "cuCtxPushCurrent", "cuStreamGetCaptureInfo"};
    const void *table = &table;
    close(2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int code = ((int (*)(void *, void *, void *))check_symbol(names[i]))(NULL, NULL, NULL);
        CHECK(code != 0, "%s gave success", names[i]);
        SAYS("unsuffixed symbol called");
        SAYS(names[i]);
    }
    GIVES(CUDA_ERROR_NOT_FOUND, ((CUresult(*)(const void **, const CUuuid *))check_symbol(
                                    "cuGetExportTable"))(&table, NULL));
}

static void errors(void) {
    const char *name, *text;
    OK(CU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    OK(CU(cuGetErrorString)(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0 && strlen(text) > 10, "%s: %s", name,
          text);
    OK(CU(cuGetErrorString)(CUDA_ERROR_STREAM_CAPTURE_MERGE, &text));
    CHECK(strcmp(text, "stream capture merge") == 0, "%s", text);
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuGetErrorName)((CUresult)12345, &name));
    CHECK(name == NULL, "no name");
}

static void no_peers(void) {
    int can = 1;
    CUcontext one;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceCanAccessPeer)(&can, 0, 1));
    CHECK(can == 0, "no");
    one = check_device(1);
    check_device(0);
    GIVES(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, CU(cuCtxEnablePeerAccess)(one, 0));
}

static void lying_peers(void) {
    int can = 0, v = 1;
    CUdeviceptr p, q;
    CUcontext zero, one;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceCanAccessPeer)(&can, 0, 1));
    CHECK(can == 1, "it says yes");
    one = check_device(1);
    OK(CU(cuMemAlloc_v2)(&q, 4));
    zero = check_device(0);
    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuMemcpyHtoD_v2)(p, &v, 4));
    OK(CU(cuMemcpyPeer)(q, one, p, zero, 4));
    OK(CU(cuMemcpyDtoH_v2)(&v, q, 4));
    CHECK(v != 1, "and the bytes are wrong");
    OK(CU(cuMemcpyDtoH_v2)(&v, p, 4));
    CHECK(v == 1, "on one device they are right");
}

static void without(void) {
    CUdeviceptr p;
    CUmemoryPool pool;
    CUmemAllocationProp prop;
    size_t g;
    memset(&prop, 0, sizeof prop);
    OK(CU(cuInit)(0));
    check_device(0);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0) == 0, "no pools");
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) == 0, "no mapping");
    GIVES(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemAllocAsync)(&p, 4, NULL));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemGetAllocationGranularity)(&g, &prop, 0));
}

/* ---- injected failures ---- */

static void injected(void) {
    CUdeviceptr p, q;
    uint64_t calls;
    OK(CU(cuInit)(0));
    check_device(0);
    OK(CU(cuMemAlloc_v2)(&p, 4));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&q, 4));
    OK(CU(cuMemAlloc_v2)(&q, 4));
    CHECK(CTL(sim_calls)("cuMemAlloc_v2") == 3, "3 calls counted");
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemsetD8_v2)(p, 0, 4)); /* the seventh call */
    OK(CU(cuMemsetD8_v2)(p, 0, 4));
    calls = CTL(sim_calls)(NULL);
    CTL(sim_fail)("cuMemFree_v2", 2, CUDA_ERROR_UNKNOWN);
    CTL(sim_fail)("cuCtxSynchronize", 0, CUDA_ERROR_UNKNOWN);
    OK(CU(cuMemFree_v2)(p));
    GIVES(CUDA_ERROR_UNKNOWN, CU(cuMemFree_v2)(q));
    SAYS("on demand");
    GIVES(CUDA_ERROR_UNKNOWN, CU(cuCtxSynchronize)());
    GIVES(CUDA_ERROR_UNKNOWN, CU(cuCtxSynchronize)());
    CTL(sim_fail_clear)();
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuMemFree_v2)(q));
    CHECK(CTL(sim_calls)(NULL) == calls + 6, "all calls counted");
}

static void contexts(void) {
    CUcontext zero, one, c;
    CUdevice d;
    CUstream s;
    unsigned version = 0;
    int low = 1, high = 1;
    OK(CU(cuInit)(0));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxGetDevice)(&d));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, CU(cuStreamCreate)(&s, 0));
    one = check_device(1);
    zero = check_device(0);
    OK(CU(cuCtxPushCurrent_v2)(one));
    OK(CU(cuCtxGetDevice)(&d));
    CHECK(d == 1, "device %d", d);
    OK(CU(cuCtxPopCurrent_v2)(&c));
    CHECK(c == one, "popped");
    OK(CU(cuCtxGetCurrent)(&c));
    CHECK(c == zero, "back");
    OK(CU(cuCtxGetApiVersion)(c, &version));
    CHECK(version == 3020, "%u", version);
    OK(CU(cuCtxGetStreamPriorityRange)(&low, &high));
    CHECK(low == 0 && high == -5, "%d %d", low, high);
    OK(CU(cuCtxSetCurrent)(NULL));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSynchronize)());
}

/* A forked child may not use its parent's driver. */
static void forked(void) {
    int status = 0;
    OK(CU(cuInit)(0));
    check_device(0);
    pid_t child = fork();
    if (child == 0) {
        int n;
        _exit(CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
              CU(cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "a forked child is refused");
    OK(CU(cuCtxSynchronize)());
}

static void leaks(void) {
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    void *h;
    sim_stats stats;
    OK(CU(cuInit)(0));
    check_device(0);
    OK(CU(cuMemAlloc_v2)(&p, 400));
    OK(CU(cuMemHostAlloc)(&h, 10, 0));
    OK(CU(cuStreamCreate)(&s, 0));
    OK(CU(cuEventCreate)(&e, 0));
    CTL(sim_get_stats)(&stats);
    CHECK(stats.device_allocations == 1 && stats.device_bytes == 400 && stats.host_blocks == 1 &&
              stats.streams == 1 && stats.events == 1,
          "live objects are counted");
    close(2);
    CHECK(CTL(sim_leaks)() == 4, "four leaks");
}

/* The library built without newer exports. */
static void old_exports(void) {
    CHECK(dlsym(check_driver, "cuLaunchKernelEx") == NULL, "11.6 is not there");
    CHECK(dlsym(check_driver, "cuEventElapsedTime_v2") == NULL, "12.8 is not there");
    CHECK(dlsym(check_driver, "cuMemAllocAsync") != NULL, "11.2 is there");
    CHECK(dlsym(check_driver, "cuMemAlloc") != NULL, "traps are there");
    OK(CU(cuInit)(0));
    check_device(0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "old") == 0) {
        with(old_exports, NULL, NULL);
        with(old_driver, NULL, NULL);
        return check_finish();
    }
    with(devices, "SIMCUDA_DEVICES=3", "SIMCUDA_MEM=100M,200M");
    with(capabilities, "SIMCUDA_CC=75,90", NULL);
    with(broken, "SIMCUDA_BROKEN=100", NULL);
    with(broken, "SIMCUDA_BROKEN=999", NULL);
    with(broken, "SIMCUDA_BROKEN=34", NULL);
    with(no_device, "SIMCUDA_DEVICES=0", NULL);
    with(symbols, "SIMCUDA_MISSING=cuMemPoolCreate,cuMemMap", NULL);
    with(old_driver, "SIMCUDA_DRIVER=11040", NULL);
    with(traps, NULL, NULL);
    with(errors, NULL, NULL);
    with(no_peers, "SIMCUDA_PEER=no", NULL);
    with(lying_peers, "SIMCUDA_PEER=lies", NULL);
    with(without, "SIMCUDA_NO_POOLS=1", "SIMCUDA_NO_VMM=1");
    with(injected, "SIMCUDA_FAIL=cuMemAlloc_v2@2=2,*@7=700", NULL);
    with(contexts, NULL, NULL);
    with(forked, NULL, NULL);
    with(leaks, NULL, NULL);
    return check_finish();
}
