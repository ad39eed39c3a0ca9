/* Executes a queued operation. On a device whose context has an asynchronous error nothing is
   executed any more, as on a GPU. */
#include "sim.h"
#include <string.h>

sim_counts counts;

static void poison_context(context *ctx, CUresult code) {
    if (ctx->sticky == CUDA_SUCCESS)
        ctx->sticky = code;
}

/* Checks the memory again, because another stream may have freed it since the operation was
   queued. */
static region *reachable(context *ctx, const char *what, uint64_t address, uint64_t size) {
    char why[256];
    region *r = region_check(address, size, why, sizeof why);
    if (r && r->state == REGION_PENDING) {
        strcpy(why, "used before the stream-ordered allocation has happened: an event is missing");
        r = NULL;
    }
    if (!r)
        poison_context(ctx, fail(CUDA_ERROR_ILLEGAL_ADDRESS, "%s: %s", what, why));
    return r;
}

static char *place(context *ctx, uint64_t address, uint64_t size, bool host, region **r) {
    *r = NULL;
    if (host)
        return (char *)(uintptr_t)address;
    *r = reachable(ctx, "copy", address, size);
    if (!*r)
        return NULL;
    return (*r)->kind == REGION_HOST ? (char *)(uintptr_t)address : backdoor(address);
}

/* Simulates machines whose driver reports peer access, but whose bus corrupts the data. */
static void lie(char *p, uint64_t size) {
    for (uint64_t i = 0; i < size; i += 7)
        p[i] = (char)(p[i] ^ 0x5A);
}

static void run_copy(const op *o, context *ctx) {
    const copy_plane *c = &o->copy;
    region *to, *from;
    uint64_t rows = c->height - 1;
    char *dst = place(ctx, c->dst, rows * c->dst_pitch + c->width, c->dst_host, &to);
    char *src = place(ctx, c->src, rows * c->src_pitch + c->width, c->src_host, &from);
    if (!dst || !src)
        return;
    for (uint64_t y = 0; y < c->height; y++)
        memmove(dst + y * c->dst_pitch, src + y * c->src_pitch, c->width);
    if (settings.peers == PEER_LIES && to && from && to->dev != from->dev)
        for (uint64_t y = 0; y < c->height; y++)
            lie(dst + y * c->dst_pitch, c->width);
    counts.copies++;
    counts.bytes += c->width * c->height;
}

static void run_set(const op *o, context *ctx) {
    uint64_t row = o->count * o->width;
    region *r = reachable(ctx, "memset", o->address, (o->rows - 1) * o->pitch + row);
    char *p;
    if (!r)
        return;
    p = r->kind == REGION_HOST ? (char *)(uintptr_t)o->address : backdoor(o->address);
    for (uint64_t y = 0; y < o->rows; y++)
        for (uint64_t x = 0; x < o->count; x++)
            memcpy(p + y * o->pitch + x * o->width, &o->value, o->width);
}

/* Runs a host function without the lock: it may take locks that another thread holds while calling
   the driver. */
static void run_host(const op *o, context *ctx) {
    memory_close();
    sim_unlock();
    inside_host_function = true;
    if (o->host)
        o->host(o->user);
    else
        o->callback((CUstream)(o->stream->is_null ? NULL : o->stream), ctx->sticky, o->user);
    inside_host_function = false;
    sim_lock();
}

static void run_kernel(const op *o) {
    context *ctx = o->launch.function->object.ctx;
    char why[1024] = "";
    CUresult code;
    if (ctx->sticky != CUDA_SUCCESS)
        return;
    code = launch_run(ctx->dev, &o->launch, why, sizeof why);
    if (code != CUDA_SUCCESS)
        poison_context(ctx, fail(code, "%s", why));
}

void op_execute(op *o) {
    context *ctx = o->stream->object.ctx;
    if (o->kind == OP_HOST && o->callback) { /* cuStreamAddCallback receives errors */
        run_host(o, ctx);
        return;
    }
    if (ctx->sticky != CUDA_SUCCESS && o->kind != OP_FREE)
        return;
    switch (o->kind) {
    case OP_KERNEL:
        run_kernel(o);
        break;
    case OP_COPY:
        run_copy(o, ctx);
        break;
    case OP_SET:
        run_set(o, ctx);
        break;
    case OP_HOST:
        run_host(o, ctx);
        break;
    case OP_ALLOC:
        if (o->region->state == REGION_PENDING)
            o->region->state = REGION_LIVE;
        break;
    case OP_FREE:
        if (o->region->state != REGION_FREED)
            region_free(o->region);
        break;
    case OP_RECORD:
    case OP_WAIT:
        break;
    }
}
