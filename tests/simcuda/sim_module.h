/* The interface between translated device code and the simulated driver: what a module exports,
   what it receives, and the file format. The translator (ptx/) writes modules, the driver (driver/)
   runs them; they share no other header. Changes are additive: new members go to the end of their
   struct, SIM_ABI increases, and the driver rejects other numbers.

   A module is a shared object that exports one symbol, `const sim_module sim_module_export`. For
   each cuModuleLoad the driver dlopens a private copy and places the module's global variables in
   device memory. It then calls kernels: one call of `entry` is one CUDA thread. A device address is
   a host address: the driver maps device memory where kernels see it.

   All threads of a block run on one host thread, one at a time. Code of a module yields only inside
   a callback. So an atomic is a plain read, modify and write, and each access completes before the
   next thread runs. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define SIM_ABI 3
#define SIM_MODULE_SYMBOL "sim_module_export"
#define SIM_WARP 32

typedef struct sim_u3 {
    uint32_t x, y, z;
} sim_u3;

/* A location in the PTX, for messages. Lives as long as the module. */
typedef struct sim_site {
    const char *function; /* the PTX function, mangled as in the source */
    const char *text;     /* the instruction */
    uint32_t ptx_line;    /* line in the PTX text */
    uint32_t source_line; /* line in the CUDA source when it was compiled with -lineinfo, else 0 */
    const char *source_file; /* its name, NULL when there is none */
} sim_site;

typedef struct sim_thread sim_thread;

/* ---- callbacks: functions of the driver for running code ---- */

/* Kinds of memory access. */
typedef enum sim_access_kind {
    SIM_LOAD,
    SIM_STORE,
    SIM_ATOMIC, /* read and write in one */
    /* ld.relaxed, .acquire, .volatile: such a load does not race with an atomic or with a
       SIM_STORE_STRONG */
    SIM_LOAD_STRONG,
    SIM_STORE_STRONG, /* st.relaxed, .release, .volatile */
    /* no access, only a query: may the thread load this? For instructions that check before they
       act */
    SIM_PROBE
} sim_access_kind;

typedef enum sim_barrier_kind {
    SIM_BARRIER_SYNC,   /* bar.sync: wait until `count` threads have arrived */
    SIM_BARRIER_ARRIVE, /* bar.arrive: count as arrived and go on */
    /* bar.red.popc: wait; the result is the number of arrived threads whose predicate is true */
    SIM_BARRIER_POPC,
    SIM_BARRIER_AND, /* bar.red.and: 1 when all predicates are true */
    SIM_BARRIER_OR   /* bar.red.or: 1 when any is */
} sim_barrier_kind;

typedef enum sim_fault_code {
    SIM_FAULT_TRAP,       /* trap instruction: CUDA_ERROR_LAUNCH_FAILED */
    SIM_FAULT_MISALIGNED, /* CUDA_ERROR_MISALIGNED_ADDRESS */
    /* outside a local array, a parameter or a shared window: CUDA_ERROR_ILLEGAL_ADDRESS */
    SIM_FAULT_ADDRESS,
    SIM_FAULT_ASSERT, /* assert() in device code: CUDA_ERROR_ASSERT */
    /* an instruction whose operands make no sense: CUDA_ERROR_ILLEGAL_INSTRUCTION */
    SIM_FAULT_ILLEGAL
} sim_fault_code;

typedef enum sim_yield_reason {
    /* thread->budget is used up. The driver resets it, and may report a kernel that never ends */
    SIM_YIELD_BUDGET,
    SIM_YIELD_SLEEP /* nanosleep: let others run first */
} sim_yield_reason;

/* Computes the results of a warp collective when all lanes have stored their operands. lane[i] is
   NULL unless bit i of `arrived` is set. The function reads lane[i]->in and writes lane[i]->out.
   The translator writes it; the driver calls it exactly once per rendezvous, on the stack of the
   last thread to arrive. It calls no callback except `access` and `fault`, with a thread of the
   warp. */
typedef void sim_warp_fn(sim_thread *const lane[SIM_WARP], uint32_t arrived);

typedef struct sim_driver {
    /* Waits at named barrier `id` (0..15). count is a multiple of 32, or 0 for all threads of the
       block. Only reductions use predicate; their result is returned. aligned: all threads of a
       warp must come from the same site. */
    uint32_t (*barrier)(sim_thread *, sim_barrier_kind, uint32_t id, uint32_t count, int predicate,
                        int aligned, const sim_site *);
    /* Meets the other lanes in mask. The caller has filled thread->in and returns with thread->out
       filled by fn. Lanes belong together when fn and mask are equal (fn encodes the qualifiers of
       the instruction). Exited lanes are not waited for; the caller must be in mask. aligned: all
       lanes must come from the same site (mma, ldmatrix). */
    void (*collective)(sim_thread *, sim_warp_fn *fn, uint32_t mask, int aligned, const sim_site *);
    /* Checks whether the thread may access these bytes. Returns if so, else reports and does not
       return. A module built with checks calls it for every global, constant, shared and generic
       access outside the thread's [fast_base, fast_base + fast_size). The module itself checks
       local arrays and parameters. */
    void (*access)(sim_thread *, uint64_t address, uint32_t size, sim_access_kind,
                   const sim_site *);
    /* Ends the launch with an error. Never returns. */
    void (*fault)(sim_thread *, sim_fault_code, const char *message, const sim_site *);
    /* Ends this thread from inside a device function (at the kernel's own level the entry simply
       returns). Never returns. */
    void (*exit)(sim_thread *);
    /* Lets other threads run. A kernel without needs_fibers may call this for SIM_YIELD_BUDGET
       only. */
    void (*yield)(sim_thread *, sim_yield_reason, const sim_site *);
    /* %clock64 and %globaltimer: any increasing number. */
    uint64_t (*clock)(sim_thread *);
    /* printf of device code. Arguments lie in args as the CUDA ABI packs them: each at a multiple
       of its own size. Returns their number. */
    int (*print)(sim_thread *, const char *format, const void *args, const sim_site *);
    /* membar, fence: `scope` is 'c' (block), 'g' (device) or 's' (system). May be NULL. */
    void (*fence)(sim_thread *, int scope, const sim_site *);
    /* Counts an access. Only modules built with SIMCUDA_COUNT=1 call it, in all state spaces but
       parameters by name. A copy of cp.async is a load and a store, when it begins. */
    void (*count)(sim_thread *, uint64_t address, uint32_t size, sim_access_kind, const sim_site *);
    /* Suspends the thread until another thread of its block calls unpark, which wakes all. */
    void (*park)(sim_thread *, const sim_site *);
    void (*unpark)(sim_thread *);
} sim_driver;

/* ---- instructions by class, of modules built with SIMCUDA_COUNT=1 ---- */

/* Classes of PTX instructions by the unit that executes them. mov, cvta and loads of parameters are
   in none, because ptxas removes most of them. */
typedef enum sim_class {
    SIM_CLASS_FP32,     /* add, mul, fma of f32 */
    SIM_CLASS_FP64,     /* arithmetic of f64 */
    SIM_CLASS_HALF,     /* arithmetic of f16 and bf16, also packed */
    SIM_CLASS_SPECIAL,  /* ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh, and div of floats */
    SIM_CLASS_CONVERT,  /* cvt */
    SIM_CLASS_INTEGER,  /* integers, logic, comparisons, selections */
    SIM_CLASS_EXCHANGE, /* shfl, vote, match, redux */
    SIM_CLASS_MEMORY,   /* loads, stores, atomics, cp.async, ldmatrix */
    SIM_CLASS_CONTROL,  /* branches, calls, barriers, fences */
    SIM_CLASS_MATRIX,   /* mma, wgmma */
    SIM_CLASS_MACS_16,  /* multiply-adds of mma: of f16 and bf16 */
    SIM_CLASS_MACS_TF32,
    SIM_CLASS_MACS_8,
    SIM_CLASS_MACS_64,
    SIM_CLASSES
} sim_class;

/* A basic block of device code: how many instructions of each class it has. */
typedef struct sim_code_block {
    uint32_t instructions[SIM_CLASSES];
} sim_code_block;

/* ---- data of a running thread ---- */

/* A block. Written by the driver before the block starts, read by the module. */
typedef struct sim_block {
    sim_u3 ctaid, ntid, nctaid;
    char *shared; /* the block's shared memory, 1 KiB aligned; address 0 of the .shared space */
    /* total: sim_kernel.dynamic_offset + dynamic_size, or static_shared without dynamic memory */
    uint32_t shared_size;
    uint32_t dynamic_size; /* dynamic bytes of the launch, %dynamic_smem_size */
    uint32_t smid, nsmid;  /* %smid, %nsmid */
    uint64_t gridid;       /* %gridid: one number per launch */
    const char *params;    /* the launch's parameters, laid out by sim_kernel.param */
    uint32_t params_size;  /* sim_kernel.params_size */
    void *async; /* (module) mbarriers, bulk copies, wgmma; sim_module.end_block frees it */
} sim_block;

/* What cuTensorMapEncodeTiled writes to a CUtensorMap. */
typedef struct sim_tensor_map {
    uint64_t mark; /* SIM_TENSOR_MAP_MARK */
    uint64_t address;
    uint64_t dim[5], stride[4]; /* strides in bytes, of the axes from the second on */
    uint16_t box[5];
    uint8_t element, rank; /* element: bytes */
    uint8_t swizzle;       /* 1: of 128 bytes; 0: none */
} sim_tensor_map;

#define SIM_TENSOR_MAP_MARK 0x70616d726f736e74ull

/* An array of a thread in the .local space: on its stack, listed while its function runs. Used by
   the module only. */
typedef struct sim_local {
    const struct sim_local *outer;
    uint64_t address;
    uint64_t size;
} sim_local;

/* A thread. The driver embeds it as the first member of a structure of its own. Members marked
   (module) start as zero and belong to the module; all others belong to the driver. */
struct sim_thread {
    const sim_driver *driver;
    const sim_block *block;
    sim_u3 tid;
    uint32_t lane, warp;
    /* instructions left. Code counts down at every backward branch and call, and calls yield below
       zero; polling loads and atomics cost 256, so that a spin loop yields early */
    int64_t budget;
    /* an address range that needs no call of `access`. The driver sets it (0, 0: none) to the
       allocation accessed last, when accesses to it need not be recorded */
    uint64_t fast_base, fast_size;
    uint64_t in[16], out[16]; /* operands and results of a warp collective */
    const sim_local *locals;  /* (module) the arrays in scope, innermost first */
    void *async; /* (module) copies that cp.async has begun; sim_module.release frees it */
    /* only for modules that count: how often the thread has entered each basic block. The module
       adds, the driver allocates and clears */
    uint32_t *trips;
};

/* ---- exports of a module ---- */

typedef struct sim_param {
    uint32_t offset, size, align;
} sim_param;

/* A variable in shared memory, for messages. */
typedef struct sim_shared {
    const char *name;
    uint32_t offset, size; /* size 0: dynamic, up to the end */
} sim_shared;

typedef struct sim_kernel {
    const char *name;            /* as in cuModuleGetFunction */
    void (*entry)(sim_thread *); /* runs one thread; returns when it ends */
    const sim_param *param;      /* in order of declaration */
    uint32_t params;             /* number of parameters */
    uint32_t params_size;        /* bytes of all: the size for CU_LAUNCH_PARAM_BUFFER_SIZE */
    uint32_t static_shared;      /* bytes of static shared memory */
    /* where dynamic shared memory starts: static_shared rounded up to its alignment */
    uint32_t dynamic_offset;
    uint32_t local_bytes; /* .local bytes of one thread, as far as calls are known */
    uint32_t stack_bytes; /* upper bound of the host stack of one thread */
    /* the call graph has a cycle or a call through a pointer: give it a large stack */
    int recursive;
    /* may call barrier, collective or yield for SLEEP, or spins on memory: needs its own stack */
    int needs_fibers;
    uint32_t max_threads;     /* .maxntid, 0 when unset */
    sim_u3 required_threads;  /* .reqntid, zeros when unset */
    const sim_shared *shared; /* variables in shared memory */
    uint32_t shareds;
} sim_kernel;

/* A variable of the module. Before the first launch the driver allocates size bytes at a multiple
   of align in device memory. It fills them with `init` (zeros when NULL) and stores their address
   in *slot. */
typedef struct sim_global {
    const char *name; /* as in cuModuleGetGlobal */
    uint64_t size, align;
    const void *init;
    void **slot;
    int constant; /* .const: kernels must not write it */
} sim_global;

/* After all variables are placed: adds the address of a target to the pointer-sized bytes at
   `offset` of variable `global`. */
typedef struct sim_reloc {
    uint32_t global; /* index of the variable to change */
    uint64_t offset;
    int32_t target; /* index of the variable whose address is added, or -1 for `function` */
    const void *function;
    int64_t addend;
} sim_reloc;

typedef struct sim_module {
    uint32_t abi;     /* SIM_ABI */
    uint32_t checked; /* 1: calls `access`; 0: built with SIMCUDA_CHECK=0 */
    uint32_t arch;    /* .target: 75, 80, 90, ... */
    const sim_kernel *kernel;
    uint32_t kernels;
    const sim_global *global;
    uint32_t globals;
    const sim_reloc *reloc;
    uint32_t relocs;
    /* Frees what the module holds for a thread. The driver calls it for each thread with a non-NULL
       `async` when the thread has ended or is abandoned after a fault. */
    void (*release)(sim_thread *);
    uint32_t counted; /* 1: calls `count` and adds to sim_thread.trips */
    const sim_site *site;
    uint32_t sites;
    const sim_code_block *code_block;
    uint32_t code_blocks;
    const char *usage; /* what ptxas -v reports about the kernels; "" when it was not asked */
    /* Ends a block whose `async` may be set. Returns the mistake that it finds, or NULL. The member
       may be NULL. */
    const char *(*end_block)(sim_block *);
} sim_module;

/* ---- the file: what nvrtcGetCUBIN returns and cuModuleLoadData accepts ---- */

#define SIM_CONTAINER_MAGIC "SIMCUBIN"
#define SIM_CONTAINER_PTX 1u   /* flags: made from PTX text, runs on every newer device as well */
#define SIM_CONTAINER_EXACT 2u /* for sm_90a: runs on 9.0 alone */

/* A header before the shared object. cuModuleLoadData gets no length, so total_size gives it. */
typedef struct sim_container {
    char magic[8];        /* SIM_CONTAINER_MAGIC, not zero-terminated */
    uint32_t abi;         /* SIM_ABI */
    uint32_t header_size; /* where the shared object starts */
    uint64_t total_size;  /* header and shared object */
    /* 90 for sm_90. A device of another major version refuses it: CUDA_ERROR_NO_BINARY_FOR_GPU */
    uint32_t arch;
    uint32_t flags;
    char key[40];      /* hexadecimal hash of PTX and flags, zero-terminated */
    uint64_t checksum; /* sim_container_sum of the shared object */
} sim_container;

/* FNV-1a, 64 bits: detects a damaged file before it is opened. */
static inline uint64_t sim_container_sum(const void *data, uint64_t size) {
    const unsigned char *p = (const unsigned char *)data;
    uint64_t sum = 14695981039346656037u;
    for (uint64_t i = 0; i < size; i++)
        sum = (sum ^ p[i]) * 1099511628211u;
    return sum;
}

#endif
