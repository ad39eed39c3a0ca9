/* Device, pinned and mapped memory: limits, bounds, rejected calls, detected errors. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>

enum { MIB = 1 << 20 };

static CUcontext zero, one;

static void limits(void) {
    CUdeviceptr p[3];
    size_t left, total;
    OK(CU(cuMemGetInfo_v2)(&left, &total));
    CHECK(left == 64 * MIB && total == 64 * MIB, "%zu of %zu", left, total);
    OK(CU(cuMemAlloc_v2)(&p[0], 40 * MIB));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&p[1], 40 * MIB));
    OK(CU(cuMemAlloc_v2)(&p[1], 24 * MIB));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&p[2], 1));
    OK(CU(cuMemFree_v2)(p[0]));
    OK(CU(cuMemAlloc_v2)(&p[0], 40 * MIB));
    OK(CU(cuMemFree_v2)(p[0]));
    OK(CU(cuMemFree_v2)(p[1]));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(p[1]));
    SAYS("freed before");
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc_v2)(&p[0], 0));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&p[0], SIZE_MAX / 2));
    OK(CU(cuMemFree_v2)(0));
}

static void bounds(void) {
    unsigned char h[64];
    CUdeviceptr p;
    OK(CU(cuMemAlloc_v2)(&p, 33));
    CHECK(p % 256 == 0, "aligned");
    OK(CU(cuMemcpyDtoH_v2)(h, p, 33));
    CHECK(h[0] == 0xFF && h[32] == 0xFF, "fresh memory is poisoned, %d", h[0]);
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(h, p, 34));
    SAYS("1 bytes past the end");
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyHtoD_v2)(p + 32, h, 2));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8_v2)(p, 0, 34));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32_v2)(p, 0, 9));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32_v2)(p + 1, 0, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(h, p - 1, 1));
    SAYS("start 1 bytes before allocation");
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(h, (CUdeviceptr)(uintptr_t)h, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(p + 1));
    OK(CU(cuMemcpyDtoH_v2)(h, p, 0));
    OK(CU(cuMemFree_v2)(p));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(h, p, 1));
    SAYS("use after free");
}

static void sets_and_planes(void) {
    unsigned short h[8 * 6], want[8 * 6];
    CUdeviceptr p;
    CUDA_MEMCPY2D c;
    OK(CU(cuMemAlloc_v2)(&p, sizeof h));
    OK(CU(cuMemsetD16_v2)(p, 0x1234, 48));
    OK(CU(cuMemsetD2D16_v2)(p + 2, 16, 0x5678, 3, 6));
    OK(CU(cuMemcpyDtoH_v2)(h, p, sizeof h));
    for (int i = 0; i < 48; i++)
        want[i] = i % 8 >= 1 && i % 8 < 4 ? 0x5678 : 0x1234;
    CHECK(memcmp(h, want, sizeof h) == 0, "memset of a plane");
    memset(h, 0, sizeof h);
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    c.srcPitch = 16;
    c.srcXInBytes = 2;
    c.srcY = 1;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = h;
    c.dstPitch = 6;
    c.WidthInBytes = 6;
    c.Height = 5;
    OK(CU(cuMemcpy2D_v2)(&c));
    CHECK(h[0] == 0x5678 && h[14] == 0x5678 && h[15] == 0, "copy of a plane %x %x %x", h[0], h[14],
          h[15]);
    c.Height = 6;
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy2D_v2)(&c));
    OK(CU(cuMemFree_v2)(p));
}

static void pinned(void) {
    CUdeviceptr d;
    CUmemorytype type;
    void *p, *plain = malloc(100);
    int device = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &device};
    OK(CU(cuMemHostAlloc)(&p, 100, CU_MEMHOSTALLOC_PORTABLE));
    OK(CU(cuMemHostGetDevicePointer_v2)(&d, p, 0));
    CHECK(d == (CUdeviceptr)(uintptr_t)p, "unified addresses");
    OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
    CHECK(type == CU_MEMORYTYPE_HOST, "type %d", (int)type);
    GIVES(CUDA_ERROR_INVALID_VALUE,
          CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    (CUdeviceptr)(uintptr_t)plain));
    OK(CU(cuPointerGetAttributes)(2, names, values, (CUdeviceptr)(uintptr_t)plain));
    CHECK(type == 0 && device == -2, "unknown memory: %d %d", (int)type, device);
    OK(CU(cuMemHostRegister_v2)(plain, 100, 0));
    GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CU(cuMemHostRegister_v2)(plain, 100, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeHost)(plain));
    OK(CU(cuMemHostUnregister)(plain));
    GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, CU(cuMemHostUnregister)(plain));
    OK(CU(cuMemFreeHost)(p));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeHost)(p));
    free(plain);
}

static void pools(void) {
    CUstream s, t;
    CUdeviceptr p, q;
    CUmemoryPool pool, own;
    CUmemPoolProps props;
    cuuint64_t n;
    CUresult code;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
    OK(CU(cuDeviceGetDefaultMemPool)(&own, 0));
    OK(CU(cuMemPoolCreate)(&pool, &props));
    OK(CU(cuMemAllocFromPoolAsync)(&p, 32 * MIB, pool, s));
    OK(CU(cuMemAllocAsync)(&q, 16 * MIB, s));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAllocAsync)(&q, 17 * MIB, s));
    OK(CU(cuMemsetD8Async)(p, 1, 100, s));
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &n));
    CHECK(n == 32 * MIB, "used %llu", (unsigned long long)n);
    OK(CU(cuMemFreeAsync)(p, s));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeAsync)(p, s));
    OK(CU(cuMemFreeAsync)(q, s));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &n));
    CHECK(n == 0, "reserved %llu after a wait", (unsigned long long)n);
    n = 64 * MIB;
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &n));
    OK(CU(cuMemAllocFromPoolAsync)(&p, MIB, pool, s));
    OK(CU(cuMemFreeAsync)(p, s));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &n));
    CHECK(n == MIB, "kept %llu", (unsigned long long)n);
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &n));
    CHECK(n == 0, "trimmed to %llu", (unsigned long long)n);
    /* used on another stream before the allocation has happened there */
    OK(CU(cuMemAllocFromPoolAsync)(&p, MIB, pool, s));
    code = CU(cuMemsetD8Async)(p, 1, 100, t);
    CHECK(code == CUDA_SUCCESS, "queueing gave %d", code);
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuStreamSynchronize)(t));
    SAYS("an event is missing");
    CTL(sim_reset_device)(0);
    /* used on another stream after it has been freed */
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemsetD8Async)(p, 1, 100, t));
    OK(CU(cuMemFreeAsync)(p, s));
    OK(CU(cuStreamSynchronize)(s));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuStreamSynchronize)(t));
    SAYS("use after free");
    CTL(sim_reset_device)(0);
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemPoolDestroy)(own));
    OK(CU(cuMemPoolDestroy)(pool));
    OK(CU(cuMemAlloc_v2)(&p, 10));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeAsync)(p, s));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
    OK(CU(cuStreamDestroy_v2)(t));
}

static void mapping(void) {
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle h;
    CUdeviceptr va;
    size_t g = 0;
    int v = 0;
    memset(&prop, 0, sizeof prop);
    memset(&access, 0, sizeof access);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(CU(cuMemGetAllocationGranularity)(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&h, g + 1, &prop, 0));
    OK(CU(cuMemCreate)(&h, g, &prop, 0));
    OK(CU(cuMemAddressReserve)(&va, 4 * g, 0, 0, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32_v2)(va, 1, 1));
    OK(CU(cuMemMap)(va, g, 0, h, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(va, g, 0, h, 0));
    OK(CU(cuMemMap)(va + 2 * g, g, 0, h, 0));
    OK(CU(cuMemSetAccess)(va, g, &access, 1));
    OK(CU(cuMemSetAccess)(va + 2 * g, g, &access, 1));
    OK(CU(cuMemsetD32_v2)(va + 400, 77, 1));
    OK(CU(cuMemcpyDtoH_v2)(&v, va + 2 * g + 400, 4));
    CHECK(v == 77, "both mappings show the same bytes, %d", v);
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(va, 4 * g));
    OK(CU(cuMemRelease)(h));
    OK(CU(cuMemcpyDtoH_v2)(&v, va + 400, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(va, g / 2));
    OK(CU(cuMemUnmap)(va, g));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(&v, va + 400, 4));
    OK(CU(cuMemUnmap)(va + 2 * g, g));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemRelease)(h));
    OK(CU(cuMemAddressFree)(va, 4 * g));
}

/* Addresses are reused only after the arena (128 MiB in this program) is used up. */
static void addresses(void) {
    CUdeviceptr first, p, last = 0;
    int again = 0;
    OK(CU(cuMemAlloc_v2)(&first, MIB));
    for (int i = 0; i < 5000; i++) {
        OK(CU(cuMemAlloc_v2)(&p, 64 << 10));
        again += p < last;
        CHECK(p + (64 << 10) <= first || p >= first + MIB, "the live block is spared");
        last = p;
        OK(CU(cuMemFree_v2)(p));
    }
    CHECK(again > 0 && again < 10, "wrapped %d times", again);
    OK(CU(cuMemFree_v2)(first));
}

static void other_contexts(void) {
    CUdeviceptr p, q;
    CUstream s;
    CUevent e;
    int v = 5, w = 0;
    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuCtxSetCurrent)(one));
    OK(CU(cuMemAlloc_v2)(&q, 4));
    OK(CU(cuEventCreate)(&e, 0));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuEventRecord)(e, s));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(p));
    OK(CU(cuMemcpyHtoD_v2)(p, &v, 4));
    OK(CU(cuMemcpyPeer)(q, one, p, zero, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyPeer)(q, zero, p, one, 4));
    OK(CU(cuMemcpy)((CUdeviceptr)(uintptr_t)&w, q, 4));
    CHECK(w == 5, "between devices %d", w);
    OK(CU(cuEventDestroy_v2)(e));
    OK(CU(cuMemFree_v2)(q));
    OK(CU(cuCtxSetCurrent)(zero));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
}

static sigjmp_buf back;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void host_access(void) {
    CUdeviceptr p;
    struct sigaction action, before;
    volatile int value = 0, faulted = 0;
    CUmodule m = check_module();
    float v = 1;
    int n = 1;
    void *args[] = {&p, &v, &n};
    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
    OK(CU(cuCtxSynchronize)()); /* device memory was accessible while the kernel ran */
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(back, 1) == 0)
        value = *(volatile int *)(uintptr_t)p;
    else
        faulted = 1;
    sigaction(SIGSEGV, &before, NULL);
    CHECK(faulted, "a host access to device memory gave %d", value);
    OK(CU(cuModuleUnload)(m));
    OK(CU(cuMemFree_v2)(p));
}

static void destroyed_context(void) {
    CUdeviceptr p;
    CUstream s;
    sim_stats before, after;
    CTL(sim_get_stats)(&before);
    OK(CU(cuCtxSetCurrent)(one));
    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuStreamCreate)(&s, 0));
    OK(CU(cuDevicePrimaryCtxReset_v2)(1));
    CTL(sim_get_stats)(&after);
    CHECK(after.device_allocations == before.device_allocations && after.streams == before.streams,
          "all is gone");
    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuDevicePrimaryCtxRelease_v2)(1));
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, CU(cuMemAlloc_v2)(&p, 4));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSetCurrent)(one));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, CU(cuDevicePrimaryCtxRelease_v2)(1));
    OK(CU(cuCtxSetCurrent)(zero));
}

/* One argument of a right call is changed at a time. */
typedef struct map_call {
    size_t place, address;
    cuuint32_t rank, box[3], step;
    cuuint64_t dim[3], stride[2];
    int type, interleave, swizzle, fill;
} map_call;

static CUresult encode(const map_call *c) {
    static CUtensorMap map[2];
    const cuuint32_t step[3] = {c->step, 1, 1};
    char *base = (char *)zero - (uintptr_t)zero % 64;
    return CU(cuTensorMapEncodeTiled)(
        (CUtensorMap *)(void *)((char *)map + c->place), (CUtensorMapDataType)c->type, c->rank,
        base + c->address, c->dim, c->stride, c->box, step, (CUtensorMapInterleave)c->interleave,
        (CUtensorMapSwizzle)c->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        (CUtensorMapFloatOOBfill)c->fill);
}

static void tensor_maps(void) {
    const map_call right = {.rank = 3,
                            .box = {64, 64, 1},
                            .step = 1,
                            .dim = {100, 50, 4},
                            .stride = {208, 10400},
                            .type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                            .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    map_call c;
    OK(encode(&right));
#define WITH(change, code)                                                                         \
    c = right;                                                                                     \
    c.change;                                                                                      \
    GIVES(code, encode(&c))
    WITH(place = 32, CUDA_ERROR_INVALID_VALUE);
    WITH(address = 8, CUDA_ERROR_INVALID_VALUE);
    SAYS("the address is a multiple of 16 bytes");
    WITH(rank = 6, CUDA_ERROR_INVALID_VALUE);
    WITH(box[1] = 257, CUDA_ERROR_INVALID_VALUE);
    WITH(box[1] = 256, CUDA_SUCCESS);
    WITH(box[1] = 0, CUDA_ERROR_INVALID_VALUE);
    WITH(box[0] = 65, CUDA_ERROR_INVALID_VALUE); /* 130 bytes */
    WITH(box[0] = 72, CUDA_ERROR_INVALID_VALUE);
    SAYS("the bytes of the swizzle");
    WITH(step = 2, CUDA_ERROR_NOT_SUPPORTED);
    WITH(dim[1] = 0, CUDA_ERROR_INVALID_VALUE);
    WITH(dim[2] = ((cuuint64_t)1 << 32) + 1, CUDA_ERROR_INVALID_VALUE);
    WITH(stride[0] = 216, CUDA_ERROR_INVALID_VALUE);
    WITH(stride[0] = 192, CUDA_ERROR_INVALID_VALUE); /* a line has 200 bytes */
    WITH(stride[1] = 10416, CUDA_ERROR_INVALID_VALUE);
    WITH(stride[1] = 0, CUDA_ERROR_INVALID_VALUE);
    WITH(stride[1] = (cuuint64_t)208 << 33, CUDA_ERROR_INVALID_VALUE);
    WITH(interleave = CU_TENSOR_MAP_INTERLEAVE_16B, CUDA_ERROR_NOT_SUPPORTED);
    WITH(swizzle = CU_TENSOR_MAP_SWIZZLE_32B, CUDA_ERROR_NOT_SUPPORTED);
    WITH(fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, CUDA_ERROR_NOT_SUPPORTED);
#undef WITH
}

int main(void) {
    setenv("SIMCUDA_MEM", "64M", 1);
    setenv("SIMCUDA_ARENA", "128M", 1);
    check_start();
    OK(CU(cuCtxGetCurrent)(&zero));
    one = check_device(1);
    OK(CU(cuCtxSetCurrent)(zero));
    limits();
    bounds();
    sets_and_planes();
    pinned();
    pools();
    mapping();
    addresses();
    other_contexts();
    host_access();
    destroyed_context();
    tensor_maps();
    CHECK(CTL(sim_leaks)() == 0, "leaks");
    return check_finish();
}
