/* What the files of the simulated driver share: its objects and the functions between directories.
   One mutex protects all state. ENTER (entry.h) takes it, and it is released only while a host
   function of the user runs. Handles of the API are pointers to these structures. */
#ifndef SIM_H
#define SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#pragma GCC visibility push(default)
#include <cuda.h>
/* exported by drivers and hidden by the header */
CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *g, const CUgraphNode **after, size_t *count);
CUresult cuGetExportTable(const void **table, const CUuuid *id);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#pragma GCC visibility pop
#include "../sim_module.h"

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))

typedef struct context context;
typedef struct device device;
typedef struct stream stream;
typedef struct event event;
typedef struct module module;
typedef struct function function;
typedef struct graph graph;
typedef struct pool pool;
typedef struct region region;
typedef struct op op;

/* ---- objects behind handles ---- */

typedef enum handle_kind {
    KIND_STREAM = 0x53545245,
    KIND_EVENT = 0x45564e54,
    KIND_MODULE = 0x4d4f4455,
    KIND_FUNCTION = 0x46554e43,
    KIND_GRAPH = 0x47525048,
    KIND_EXEC = 0x45584543,
    KIND_POOL = 0x504f4f4c,
    KIND_PHYSICAL = 0x50485953
} handle_kind;

typedef struct object {
    uint32_t kind; /* 0 when destroyed: dead handles are kept so that their use is detected */
    context *ctx;  /* NULL for objects without a context: graphs, pools, physical memory */
    struct object *prev, *next; /* all live objects */
} object;

void *object_new(handle_kind kind, context *ctx, size_t size);
void object_retire(void *object);
/* Returns the live object of this kind behind a handle, or NULL. */
void *object_get(const void *handle, handle_kind kind);
object *object_first(void);
const char *object_kind_name(uint32_t kind);

/* ---- configuration: read once from the environment, at the first call ---- */

typedef enum policy { POLICY_LAZY, POLICY_EAGER, POLICY_RANDOM } policy;

typedef enum peer_mode { PEER_YES, PEER_NO, PEER_LIES } peer_mode;

typedef struct config {
    int devices, driver, multiprocessors;
    int broken; /* result of cuInit, 0 when it works */
    policy policy;
    peer_mode peers;
    bool no_vmm, no_pools, races, exited_lanes, verbose, leaks;
    uint64_t seed, arena, quanta;
    const char *missing, *memory, *capability;
} config;

extern config settings;
void config_read(void);
uint64_t random_next(void);
void random_seed(uint64_t seed);
/* Returns the i-th number of a list such as "80,90"; the last one applies to all further
   devices. */
uint64_t config_item(const char *list, int i, uint64_t otherwise);

/* ---- errors ---- */

/* Remembers an error sentence (sim_last_error; also stderr when SIMCUDA_VERBOSE=1) and returns the
   code. */
CUresult fail(CUresult code, const char *format, ...) SIM_PRINTF(2, 3);
void say(const char *format, ...) SIM_PRINTF(1, 2);

/* ---- devices and contexts ---- */

struct context {
    device *dev;
    bool alive;
    int retains;
    unsigned flags;
    CUresult sticky; /* an asynchronous error: every later call returns it */
    uint64_t peers;  /* bit i: kernels may access memory of device i */
    stream *null_stream;
    size_t limits[CU_LIMIT_MAX];
};

struct device {
    int id, major, minor;
    uint64_t memory, used;
    context ctx; /* the primary context */
    pool *default_pool, *current_pool;
    uint64_t graph_memory;
};

extern device *devices;
extern int device_count;
extern _Thread_local context *current;

device *device_get(CUdevice id);
int device_attribute(const device *d, CUdevice_attribute attribute);
context *context_get(CUcontext handle);
void context_destroy(context *ctx);
CUresult devices_create(void);

/* ---- memory ---- */

typedef enum region_kind {
    REGION_DEVICE,
    REGION_POOL,
    REGION_MAPPED,
    REGION_GLOBAL,
    REGION_HOST
} region_kind;

typedef enum region_state { REGION_PENDING, REGION_LIVE, REGION_FREED } region_state;

struct region {
    uint64_t address, size, span; /* span: whole pages */
    region_kind kind;
    region_state state;
    device *dev; /* device of the memory; for host memory, the one that pinned it */
    context *ctx;
    pool *pool;
    bool constant, registered;
    bool freeing; /* its stream-ordered free is queued */
    unsigned flags;
    uint64_t number; /* allocations count from 1 */
    uint64_t access; /* mapped memory: bit i, device i may read and write; bit 32 + i, read */
    void *physical;  /* mapped memory */
    void *shadow;    /* race_global.c: accesses of this launch */
    unsigned shadow_shift;
    size_t shadow_bytes;
    struct region *prev, *next;
};

#define PAGE 4096u

CUresult memory_start(void);
/* Allocates address space and memory on a device, filled with 0xFF. Returns NULL when the device is
   full. */
region *region_new(device *d, context *ctx, region_kind kind, uint64_t size, uint64_t align);
void region_free(region *r);
/* Reserves address space only. arena: a device's number, or device_count for mapped memory. */
uint64_t region_reserve(int arena, uint64_t size, uint64_t align, uint64_t wanted);
void region_place(region *r);
void region_displace(region *r);
region *region_first(void);
/* Returns the region that covers or, if freed, last covered this address; otherwise NULL. */
region *region_at(uint64_t address);
region *region_host(const void *p);
region *region_host_new(void *p, uint64_t size, unsigned flags, bool registered);
void region_host_free(region *r);
/* Checks whether these bytes may be accessed. Returns the region, or NULL with a sentence in
   why. */
region *region_check(uint64_t address, uint64_t size, char *why, size_t capacity);
bool in_device_space(uint64_t address);
/* Returns the driver's own address of device memory, which is inaccessible to everybody else. */
char *backdoor(uint64_t address);
/* Makes device memory accessible to kernels; the end of ENTER's scope closes it. */
void memory_open(void);
void memory_close(void);
void region_forget_shadow(region *r);

void pool_trim(pool *p, uint64_t keep);
void pools_trim(device *d, bool hard);
CUresult pool_take(pool *p, uint64_t size);
void pool_give(pool *p, uint64_t size);
bool pool_is_own(const pool *p);
bool pool_access(const pool *p, int device);
CUresult pools_create(device *d);

/* ---- streams ---- */

/* The completion of one operation, to which events and waits point. Reference counted. */
typedef struct mark {
    int references;
    bool done;
    stream *stream; /* valid until done */
    uint64_t sequence;
    double time;
    context *ctx;
} mark;

typedef enum op_kind {
    OP_KERNEL,
    OP_COPY,
    OP_SET,
    OP_HOST,
    OP_RECORD,
    OP_WAIT,
    OP_ALLOC,
    OP_FREE
} op_kind;

typedef struct copy_plane { /* rows of bytes; a plain copy is one row */
    uint64_t dst, src;
    bool dst_host, src_host;
    uint64_t width, height, dst_pitch, src_pitch;
} copy_plane;

typedef struct launch_plan {
    function *function;
    sim_u3 grid, block;
    uint32_t dynamic;
    bool cooperative;
    char *params; /* owned */
} launch_plan;

struct op {
    op_kind kind;
    op *next;
    stream *stream;
    uint64_t sequence;
    mark *mark; /* completed with the operation; may be NULL */
    mark *wait; /* OP_WAIT */
    copy_plane copy;
    void *staged;                         /* owned: a copy of pageable memory taken at the call */
    uint64_t address, count, pitch, rows; /* memset; rows of count elements */
    uint32_t value, width;
    CUhostFn host;
    CUstreamCallback callback;
    void *user;
    region *region; /* alloc, free */
    launch_plan launch;
};

struct stream {
    object object;
    unsigned flags;
    int priority;
    bool is_null, per_thread, busy, zombie;
    op *head, *tail;
    uint64_t submitted, finished;
    uint64_t urgency; /* random policy: the highest runnable stream runs first */
    uint64_t id;
    struct capture *capture;
    int *after; /* graph.c: capture nodes that the next one depends on */
    int after_count, after_capacity;
};

struct event {
    object object;
    unsigned flags;
    mark *mark;               /* of the latest record, NULL before */
    struct capture *captured; /* recorded in a capture: the dependencies of the event */
    uint64_t capture_id;
    int *after;
    int after_count, after_capacity;
};

/* Returns the stream behind a handle for the current context (NULL: unknown handle). */
stream *stream_get(CUstream handle);
stream *stream_new(context *ctx, unsigned flags, int priority);
CUresult stream_push(stream *s, const op *o);
void stream_run_to(stream *s, uint64_t sequence);
void stream_drain(stream *s);
void context_drain(context *ctx);
/* Runs some queued operations, as the random policy decides. */
void streams_step(void);
/* Runs one operation of this stream if it is ready, as a query does. */
void stream_poke(stream *s);
mark *stream_mark(stream *s);
mark *mark_hold(mark *m);
void mark_drop(mark *m);
void mark_run(mark *m);
/* Overwrites host memory that a copy will write, so that its old bytes are not visible before. */
void copy_spoil(const copy_plane *c);
bool streams_touch_host(const void *p, uint64_t size);
void op_execute(op *o);
void op_dispose(op *o);
double clock_now(void);
uint64_t next_id(void);
extern _Thread_local bool inside_host_function;
void sim_unlock(void);
void sim_lock(void);
void stream_wait_idle(stream *s);
void stream_wake(void);

/* ---- capture ---- */

bool capture_add(stream *s, const op *o, CUresult *result);
/* Tells whether a synchronizing or allocating call is forbidden now. Invalidates the capture that
   forbids it. */
CUresult capture_forbids(void);
CUresult capture_forbids_context(const context *ctx);
CUresult capture_forbids_stream(stream *s);
/* Checks an operation on the legacy stream while blocking streams of the context capture. */
CUresult capture_forbids_legacy(const context *ctx);
CUresult capture_record(stream *s, event *e);
CUresult capture_wait(stream *s, event *e);
bool event_is_captured(event *e);
void capture_abandon(stream *s);

/* ---- modules and kernels ---- */

struct module {
    object object;
    void *library;
    const sim_module *code;
    region **globals;
    function **functions; /* one for each kernel */
};

struct function {
    object object;
    module *module;
    const sim_kernel *kernel;
    int max_dynamic; /* cuFuncSetAttribute; values above 48 KiB need an explicit request */
    int carveout;
    unsigned shared_shift; /* race_shared.c: log2 of the bytes per record */
};

void module_unload(module *m);
CUresult launch_plan_make(launch_plan *plan, void **params, void **extra);
CUresult launch_run(device *d, const launch_plan *plan, char *why, size_t capacity);

/* What ptxas reported for this kernel: bytes, except registers. Returns false without a report. */
typedef struct kernel_usage {
    int registers, shared, stack, spills;
} kernel_usage;

bool function_usage(const function *f, kernel_usage *usage);
uint32_t occupancy_blocks(const device *d, const function *f, uint32_t threads, uint32_t dynamic);
uint32_t function_max_threads(const function *f);
int function_registers(const function *f);

typedef struct sim_counts {
    uint64_t launches, blocks, threads, switches, accesses, copies, bytes;
} sim_counts;

extern sim_counts counts;

#endif
