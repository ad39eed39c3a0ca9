/* Starts the driver and answers device queries. Values that depend on the compute capability follow
   the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide. */
#include "entry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

device *devices;
int device_count;

CUresult cuInit(unsigned flags) {
    int wanted;
    ENTER(NEED_NOTHING);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver_forked())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device_count > 0)
        return CUDA_SUCCESS;
    wanted = settings.devices;
    if (settings.broken)
        return fail((CUresult)settings.broken, "cuInit: broken on demand");
    if (wanted <= 0)
        return CUDA_ERROR_NO_DEVICE;
    if (wanted > 32)
        return fail(CUDA_ERROR_INVALID_VALUE, "SIMCUDA_DEVICES=%d: at most 32", wanted);
    return devices_create();
}

CUresult devices_create(void) {
    CUresult code;
    devices = calloc((size_t)settings.devices, sizeof *devices);
    if (!devices)
        return CUDA_ERROR_OUT_OF_MEMORY;
    device_count = settings.devices;
    for (int i = 0; i < device_count; i++) {
        device *d = &devices[i];
        int cc = (int)config_item(settings.capability, i, 80);
        d->id = i;
        d->major = cc / 10;
        d->minor = cc % 10;
        d->memory = config_item(settings.memory, i, (uint64_t)256 << 20);
        d->ctx.dev = d;
        if ((code = pools_create(d)) != CUDA_SUCCESS)
            break;
    }
    code = memory_start();
    if (code != CUDA_SUCCESS)
        device_count = 0;
    return code;
}

device *device_get(CUdevice id) {
    return id >= 0 && id < device_count ? &devices[id] : NULL;
}

CUresult cuDriverGetVersion(int *version) {
    ENTER(NEED_NOTHING);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = settings.driver;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    ENTER(NEED_INIT);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int i) {
    ENTER(NEED_INIT);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(i))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = i;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice id) {
    ENTER(NEED_INIT);
    if (!name || size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(id))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)size, "Simulated GPU %d", id);
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice id) {
    if (!out || !device_get(id))
        return out ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    memcpy(out->bytes, "simulated GPU \0\0", 16);
    out->bytes[15] = (char)(id + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice id) {
    ENTER(NEED_INIT);
    return uuid(out, id);
}

CUresult old_uuid(CUuuid *out, CUdevice id) {
    ENTER_AS("cuDeviceGetUuid", NEED_INIT);
    return uuid(out, id);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice id) {
    ENTER(NEED_INIT);
    if (!bytes || !device_get(id))
        return bytes ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *bytes = device_get(id)->memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice id) {
    ENTER(NEED_INIT);
    if (!out || size < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(id))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)size, "0000:%02X:00.0", (unsigned)(id + 1) & 0xFF);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *name) {
    unsigned domain, bus, dev;
    ENTER(NEED_INIT);
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if ((sscanf(name, "%x:%x:%x", &domain, &bus, &dev) != 3 || domain != 0) &&
        sscanf(name, "%x:%x", &bus, &dev) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get((int)bus - 1) || dev != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (int)bus - 1;
    return CUDA_SUCCESS;
}

/* ---- attributes ---- */

typedef struct capability { /* shared memory in KiB: per multiprocessor, per block */
    int cc, shared, block, threads, blocks;
} capability;

static const capability capabilities[] = {
    {50, 64, 48, 2048, 32},    {52, 96, 48, 2048, 32},    {53, 64, 48, 2048, 32},
    {60, 64, 48, 2048, 32},    {61, 96, 48, 2048, 32},    {62, 64, 48, 2048, 32},
    {70, 96, 96, 2048, 32},    {72, 96, 96, 2048, 32},    {75, 64, 64, 1024, 16},
    {80, 164, 163, 2048, 32},  {86, 100, 99, 1536, 16},   {87, 164, 163, 1536, 16},
    {89, 100, 99, 1536, 24},   {90, 228, 227, 2048, 32},  {100, 228, 227, 2048, 32},
    {103, 228, 227, 2048, 32}, {110, 228, 227, 2048, 32}, {120, 100, 99, 1536, 24},
    {121, 100, 99, 1536, 24},
};

/* Returns the row of the newest known capability that is not newer than the device's. */
static const capability *capability_of(const device *d) {
    const capability *found = capabilities;
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        if (capabilities[i].cc <= 10 * d->major + d->minor)
            found = &capabilities[i];
    return found;
}

static int cores_ratio(const device *d) { /* throughput of single over double precision */
    int cc = 10 * d->major + d->minor;
    return cc == 60 || cc == 70 || cc == 80 || cc == 90 || cc == 100 ? 2 : cc < 80 ? 32 : 64;
}

typedef struct plain_attribute {
    CUdevice_attribute name;
    int value;
} plain_attribute;

static const plain_attribute plain_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1215000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 41943040},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    /* features that are not simulated */
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, 0},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0},
    {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0},
};

int device_attribute(const device *d, CUdevice_attribute name) {
    const capability *c = capability_of(d);
    switch (name) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return d->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return d->minor;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return settings.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return c->block * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return c->shared * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return c->threads;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        return c->blocks;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        return cores_ratio(d);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return d->id + 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        return !settings.no_vmm;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return !settings.no_pools;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof plain_attributes / sizeof *plain_attributes; i++)
        if (plain_attributes[i].name == name)
            return plain_attributes[i].value;
    return -1;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute name, CUdevice id) {
    int answer;
    ENTER(NEED_INIT);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(id))
        return CUDA_ERROR_INVALID_DEVICE;
    answer = device_attribute(device_get(id), name);
    if (answer < 0) {
        if (name <= 0 || name >= CU_DEVICE_ATTRIBUTE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        say("cuDeviceGetAttribute: attribute %d is not simulated: 0", (int)name);
        answer = 0;
    }
    *value = answer;
    return CUDA_SUCCESS;
}

/* ---- peers ---- */

CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) {
    ENTER(NEED_INIT);
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(a) || !device_get(b))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = a != b && settings.peers != PEER_NO;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute name, CUdevice a, CUdevice b) {
    bool peers = settings.peers != PEER_NO;
    ENTER(NEED_INIT);
    if (!device_get(a) || !device_get(b) || a == b)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (name) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        *value = peers;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = peers;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
