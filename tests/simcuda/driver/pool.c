/* Memory pools and stream-ordered allocation. A pool reserves memory from its device as needed. It
   returns memory down to its release threshold at a synchronization, or when the device is full. */
#include "entry.h"

struct pool {
    object object;
    device *dev;
    bool own; /* the device's default pool, which cannot be destroyed */
    uint64_t used, reserved, used_high, reserved_high, threshold;
    uint64_t access; /* bit i: device i may touch it */
    int reuse[3];    /* event dependencies, opportunistic, internal dependencies */
};

static CUresult pool_new(pool **out, device *d) {
    pool *p = object_new(KIND_POOL, NULL, sizeof *p);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->dev = d;
    p->access = (uint64_t)1 << d->id;
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    *out = p;
    return CUDA_SUCCESS;
}

CUresult pools_create(device *d) {
    CUresult code = pool_new(&d->default_pool, d);
    if (code == CUDA_SUCCESS)
        d->default_pool->own = true;
    d->current_pool = d->default_pool;
    return code;
}

void pool_trim(pool *p, uint64_t keep) {
    uint64_t floor = p->used > keep ? p->used : keep;
    if (p->reserved <= floor)
        return;
    p->dev->used -= p->reserved - floor;
    p->reserved = floor;
}

void pools_trim(device *d, bool hard) {
    for (object *o = object_first(); o; o = o->next)
        if (o->kind == KIND_POOL && ((pool *)o)->dev == d)
            pool_trim((pool *)o, hard ? 0 : ((pool *)o)->threshold);
}

CUresult pool_take(pool *p, uint64_t size) {
    uint64_t more = p->used + size > p->reserved ? p->used + size - p->reserved : 0;
    if (size > p->dev->memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (more > p->dev->memory - p->dev->used) {
        pools_trim(p->dev, true);
        more = p->used + size - p->reserved;
        if (more > p->dev->memory - p->dev->used)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->dev->used += more;
    p->reserved += more;
    p->used += size;
    if (p->used > p->used_high)
        p->used_high = p->used;
    if (p->reserved > p->reserved_high)
        p->reserved_high = p->reserved;
    return CUDA_SUCCESS;
}

void pool_give(pool *p, uint64_t size) {
    p->used -= size;
}

bool pool_is_own(const pool *p) {
    return p->own;
}

bool pool_access(const pool *p, int id) {
    return p->access >> id & 1;
}

static CUresult take(CUdeviceptr *pointer, size_t size, pool *p, CUstream handle) {
    stream *s = stream_get(handle);
    region *r;
    op o = {.kind = OP_ALLOC};
    CUresult code;
    if (settings.no_pools)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!s || !p)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pointer || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        capture_forbids_stream(s);
        return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "cuMemAllocAsync: allocation nodes of graphs are not simulated");
    }
    code = pool_take(p, size);
    if (code != CUDA_SUCCESS)
        return code;
    r = region_new(p->dev, s->object.ctx, REGION_POOL, size, PAGE);
    if (!r) {
        pool_give(p, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->pool = p;
    r->state = REGION_PENDING; /* other streams wait until this one is here */
    o.region = r;
    *pointer = r->address;
    return stream_push(s, &o);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle) {
    stream *s;
    ENTER(NEED_HEALTHY);
    s = stream_get(handle);
    return take(pointer, size, s ? s->object.ctx->dev->current_pool : NULL, handle);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool handle,
                                 CUstream s) {
    ENTER(NEED_HEALTHY);
    return take(pointer, size, object_get(handle, KIND_POOL), s);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
    stream *s;
    region *r;
    op o = {.kind = OP_FREE};
    ENTER(NEED_HEALTHY);
    if (settings.no_pools)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!pointer)
        return CUDA_SUCCESS;
    s = stream_get(handle);
    r = region_at(pointer);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!r || r->address != pointer || r->kind != REGION_POOL)
        return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFreeAsync: %#llx is not from cuMemAllocAsync",
                    (unsigned long long)pointer);
    if (r->freeing || r->state == REGION_FREED)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "cuMemFreeAsync: allocation %llu has been freed before",
                    (unsigned long long)r->number);
    if (s->capture)
        return capture_forbids_stream(s);
    r->freeing = true;
    o.region = r;
    return stream_push(s, &o);
}

/* ---- pools ---- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice id) {
    device *d;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (CUmemoryPool)d->default_pool;
    return settings.no_pools ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice id) {
    device *d;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (CUmemoryPool)d->current_pool;
    return settings.no_pools ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice id, CUmemoryPool handle) {
    device *d;
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!(d = device_get(id)) || !p || p->dev != d)
        return CUDA_ERROR_INVALID_VALUE;
    d->current_pool = p;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
    device *d;
    pool *p;
    CUresult code;
    ENTER(NEED_INIT);
    if (settings.no_pools)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(d = device_get(props->location.id)))
        return CUDA_ERROR_INVALID_DEVICE;
    code = pool_new(&p, d);
    if (code == CUDA_SUCCESS)
        *out = (CUmemoryPool)p;
    return code;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!p || p->own)
        return CUDA_ERROR_INVALID_VALUE;
    /* The real driver keeps the memory until it is freed. Waiting hides no error that the real one
       would show. */
    context_drain(&p->dev->ctx);
    for (region *r = region_first(); r; r = r->next)
        if (r->kind == REGION_POOL && r->pool == p && r->state != REGION_FREED) {
            say("cuMemPoolDestroy: allocation %llu of %llu bytes is still in use",
                (unsigned long long)r->number, (unsigned long long)r->size);
            region_free(r);
        }
    pool_trim(p, 0);
    if (p->dev->current_pool == p)
        p->dev->current_pool = p->dev->default_pool;
    object_retire(p);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    pool *p;
    ENTER(NEED_INIT);
    if (!(p = object_get(handle, KIND_POOL)))
        return CUDA_ERROR_INVALID_VALUE;
    pool_trim(p, keep);
    return CUDA_SUCCESS;
}

/* Returns the value of a numeric attribute. The three switches are int, the others 64 bits. */
static uint64_t *pool_number(pool *p, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &p->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &p->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &p->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &p->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &p->used_high;
    default:
        return NULL;
    }
}

static int *pool_switch(pool *p, CUmemPool_attribute attribute) {
    int i = (int)attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
    return i >= 0 && i < 3 ? &p->reuse[i] : NULL;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!p || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool_switch(p, attribute))
        *(int *)value = *pool_switch(p, attribute);
    else if (pool_number(p, attribute))
        *(cuuint64_t *)value = *pool_number(p, attribute);
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!p || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool_switch(p, attribute)) {
        *pool_switch(p, attribute) = *(int *)value;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        p->threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    }
    if ((attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH &&
         attribute != CU_MEMPOOL_ATTR_USED_MEM_HIGH) ||
        *(cuuint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE; /* only the high-water marks can be set, and only to 0 */
    p->used_high = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? p->used : p->used_high;
    p->reserved_high =
        attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ? p->reserved : p->reserved_high;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *list, size_t count) {
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!p || (!list && count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        device *d = device_get(list[i].location.id);
        if (!d || list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_DEVICE;
        if (d != p->dev && settings.peers == PEER_NO)
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            p->access |= (uint64_t)1 << d->id;
        else if (d == p->dev)
            return CUDA_ERROR_INVALID_DEVICE; /* its own device keeps access */
        else
            p->access &= ~((uint64_t)1 << d->id);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                            CUmemLocation *location) {
    pool *p;
    ENTER(NEED_INIT);
    p = object_get(handle, KIND_POOL);
    if (!p || !flags || !location || !device_get(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = pool_access(p, location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
