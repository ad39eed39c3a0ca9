/* Copies and memsets. Pageable memory is read at the call, pinned memory when the copy runs, which
   exposes a staging buffer that is refilled too early. Host memory that a copy will write is filled
   with 0xCB until then, which exposes a read without a wait. */
#include "entry.h"
#include <stdlib.h>
#include <string.h>

enum { SYNC = 1, SRC_HOST = 2, DST_HOST = 4, GUESS = 8 };

static uint64_t extent(const copy_plane *c, uint64_t pitch) {
    return (c->height - 1) * pitch + c->width;
}

/* Device memory must be allocated to the last byte; a copy must not end outside the pinned block
   that it starts in. */
static CUresult check_side(const char *name, uint64_t address, uint64_t size, bool host) {
    char why[256];
    if (host) {
        region *r = region_host((void *)(uintptr_t)address);
        if (in_device_space(address))
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "%s: a device pointer where host memory was expected", name);
        if (r && size > r->size - (address - r->address))
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "%s: %llu bytes past the end of a pinned block of %llu", name,
                        (unsigned long long)(address - r->address + size - r->size),
                        (unsigned long long)r->size);
        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (region_check(address, size, why, sizeof why))
        return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: %s", name, why);
}

static CUresult stage(op *o) {
    copy_plane *c = &o->copy;
    char *bytes = malloc(c->width * c->height);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint64_t y = 0; y < c->height; y++)
        memcpy(bytes + y * c->width, (char *)(uintptr_t)c->src + y * c->src_pitch, c->width);
    o->staged = bytes;
    c->src = (uint64_t)(uintptr_t)bytes;
    c->src_pitch = c->width;
    return CUDA_SUCCESS;
}

/* Fills the destination, unless queued work still reads the bytes: such a program is correct and
   must stay so. */
void copy_spoil(const copy_plane *c) {
    char *p = (char *)(uintptr_t)c->dst;
    if (streams_touch_host(p, extent(c, c->dst_pitch)))
        return;
    for (uint64_t y = 0; y < c->height; y++)
        memset(p + y * c->dst_pitch, 0xCB, c->width);
}

static CUresult copy(const char *name, copy_plane c, int flags, CUstream handle) {
    stream *s = stream_get(handle);
    op o = {.kind = OP_COPY};
    CUresult code;
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (c.width == 0 || c.height == 0)
        return CUDA_SUCCESS;
    c.src_host = flags & SRC_HOST || (flags & GUESS && !in_device_space(c.src));
    c.dst_host = flags & DST_HOST || (flags & GUESS && !in_device_space(c.dst));
    if (c.height > 1 && (c.src_pitch < c.width || c.dst_pitch < c.width))
        return CUDA_ERROR_INVALID_VALUE;
    if ((code = check_side(name, c.dst, extent(&c, c.dst_pitch), c.dst_host)) != CUDA_SUCCESS ||
        (code = check_side(name, c.src, extent(&c, c.src_pitch), c.src_host)) != CUDA_SUCCESS)
        return code;
    if (flags & SYNC && s->is_null &&
        (code = capture_forbids_legacy(s->object.ctx)) != CUDA_SUCCESS)
        return code;
    if (flags & SYNC && (code = capture_forbids()) != CUDA_SUCCESS)
        return code;
    o.copy = c;
    if (!s->capture) { /* a graph reads and writes when it is launched */
        if (c.src_host && !region_host((void *)(uintptr_t)c.src) &&
            (code = stage(&o)) != CUDA_SUCCESS)
            return code;
        if (c.dst_host)
            copy_spoil(&c);
    }
    code = stream_push(s, &o);
    if (code != CUDA_SUCCESS || !(flags & SYNC) || (!c.src_host && !c.dst_host))
        return code; /* from device to device even the synchronous form returns at once */
    stream_drain(s);
    return s->object.ctx->sticky;
}

static CUresult line(const char *name, uint64_t dst, uint64_t src, size_t bytes, int flags,
                     CUstream s) {
    copy_plane c = {.dst = dst, .src = src, .width = bytes, .height = 1};
    return copy(name, c, flags, s);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, (uint64_t)(uintptr_t)src, bytes, SYNC | SRC_HOST, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream s) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, (uint64_t)(uintptr_t)src, bytes, SRC_HOST, s);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes) {
    ENTER(NEED_HEALTHY);
    return line(__func__, (uint64_t)(uintptr_t)dst, src, bytes, SYNC | DST_HOST, NULL);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream s) {
    ENTER(NEED_HEALTHY);
    return line(__func__, (uint64_t)(uintptr_t)dst, src, bytes, DST_HOST, s);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, src, bytes, SYNC, NULL);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, src, bytes, 0, s);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, src, bytes, SYNC | GUESS, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s) {
    ENTER(NEED_HEALTHY);
    return line(__func__, dst, src, bytes, GUESS, s);
}

static CUresult peer(const char *name, CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
                     CUcontext src_ctx, size_t bytes, int flags, CUstream s) {
    context *to = context_get(dst_ctx), *from = context_get(src_ctx);
    region *a = region_at(dst), *b = region_at(src);
    if (!to || !from || !to->alive || !from->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((a && a->dev != to->dev) || (b && b->dev != from->dev))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s: the memory is not of the device that is named",
                    name);
    return line(name, dst, src, bytes, flags, s);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                      size_t bytes) {
    ENTER(NEED_HEALTHY);
    return peer(__func__, dst, dst_ctx, src, src_ctx, bytes, SYNC, NULL);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                           size_t bytes, CUstream s) {
    ENTER(NEED_HEALTHY);
    return peer(__func__, dst, dst_ctx, src, src_ctx, bytes, 0, s);
}

/* ---- pitched and 3D copies ---- */

static bool side(CUmemorytype type, const void *host, CUdeviceptr dev, uint64_t offset,
                 uint64_t *at, bool *is_host) {
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return false; /* arrays are not simulated */
    *is_host =
        type == CU_MEMORYTYPE_HOST || (type == CU_MEMORYTYPE_UNIFIED && !in_device_space(dev));
    *at = (type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : dev) + offset;
    return true;
}

static CUresult plane(const char *name, const CUDA_MEMCPY2D *m, int flags, CUstream s) {
    copy_plane c = {.width = m->WidthInBytes, .height = m->Height};
    c.src_pitch = m->srcPitch ? m->srcPitch : m->WidthInBytes;
    c.dst_pitch = m->dstPitch ? m->dstPitch : m->WidthInBytes;
    if (!side(m->srcMemoryType, m->srcHost, m->srcDevice, m->srcY * c.src_pitch + m->srcXInBytes,
              &c.src, &c.src_host) ||
        !side(m->dstMemoryType, m->dstHost, m->dstDevice, m->dstY * c.dst_pitch + m->dstXInBytes,
              &c.dst, &c.dst_host))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(name, c, flags | (c.src_host ? SRC_HOST : 0) | (c.dst_host ? DST_HOST : 0), s);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *m) {
    ENTER(NEED_HEALTHY);
    return plane(__func__, m, SYNC, NULL);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *m) {
    ENTER(NEED_HEALTHY);
    return plane(__func__, m, SYNC, NULL);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *m, CUstream s) {
    ENTER(NEED_HEALTHY);
    return plane(__func__, m, 0, s);
}

/* Copies a box plane by plane. */
static CUresult box(const char *name, const CUDA_MEMCPY3D *m, int flags, CUstream s) {
    uint64_t src_plane = m->srcPitch * m->srcHeight, dst_plane = m->dstPitch * m->dstHeight;
    CUresult code = CUDA_SUCCESS;
    for (size_t z = 0; z < m->Depth && code == CUDA_SUCCESS; z++) {
        copy_plane c = {.width = m->WidthInBytes,
                        .height = m->Height,
                        .src_pitch = m->srcPitch,
                        .dst_pitch = m->dstPitch};
        if (!side(m->srcMemoryType, m->srcHost, m->srcDevice,
                  (m->srcZ + z) * src_plane + m->srcY * m->srcPitch + m->srcXInBytes, &c.src,
                  &c.src_host) ||
            !side(m->dstMemoryType, m->dstHost, m->dstDevice,
                  (m->dstZ + z) * dst_plane + m->dstY * m->dstPitch + m->dstXInBytes, &c.dst,
                  &c.dst_host))
            return CUDA_ERROR_INVALID_VALUE;
        code = copy(name, c, flags | (c.src_host ? SRC_HOST : 0) | (c.dst_host ? DST_HOST : 0), s);
    }
    return code;
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *m) {
    ENTER(NEED_HEALTHY);
    return box(__func__, m, SYNC, NULL);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *m, CUstream s) {
    ENTER(NEED_HEALTHY);
    return box(__func__, m, 0, s);
}

/* ---- memset: always asynchronous for device memory ---- */

static CUresult set(const char *name, CUdeviceptr at, size_t pitch, uint32_t value, uint32_t width,
                    size_t count, size_t rows, CUstream handle) {
    stream *s = stream_get(handle);
    op o = {.kind = OP_SET,
            .address = at,
            .count = count,
            .pitch = pitch,
            .rows = rows,
            .value = value,
            .width = width};
    char why[256];
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (at % width || (rows > 1 && (pitch % width || pitch < count * width)))
        return CUDA_ERROR_INVALID_VALUE;
    if (count == 0 || rows == 0)
        return CUDA_SUCCESS;
    if (!region_check(at, (rows - 1) * pitch + count * width, why, sizeof why))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s: %s", name, why);
    return stream_push(s, &o);
}

#define SETS(bits, type)                                                                           \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr at, type value, size_t count) {                      \
        ENTER(NEED_HEALTHY);                                                                       \
        return set(__func__, at, 0, value, bits / 8, count, 1, NULL);                              \
    }                                                                                              \
    CUresult cuMemsetD##bits##Async(CUdeviceptr at, type value, size_t count, CUstream s) {        \
        ENTER(NEED_HEALTHY);                                                                       \
        return set(__func__, at, 0, value, bits / 8, count, 1, s);                                 \
    }                                                                                              \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr at, size_t pitch, type value, size_t width,        \
                                    size_t height) {                                               \
        ENTER(NEED_HEALTHY);                                                                       \
        return set(__func__, at, pitch, value, bits / 8, width, height, NULL);                     \
    }                                                                                              \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr at, size_t pitch, type value, size_t width,      \
                                      size_t height, CUstream s) {                                 \
        ENTER(NEED_HEALTHY);                                                                       \
        return set(__func__, at, pitch, value, bits / 8, width, height, s);                        \
    }

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
