/* The asynchronous instructions of compute capability 9.0: mbarriers, copies by tensor maps, and
   products of a warpgroup (wgmma). Only modules that use them contain this file.

   A copy is executed as late as possible: when a thread waits for its mbarrier. Until then its
   target holds NaN patterns. A product reads its operands when all 128 threads have arrived, and
   counts as unfinished until wgmma.wait_group. What is known of each 16 bytes of shared memory
   decides whether an access is right; see the messages. Stricter than a GPU: each thread that reads
   what a copy wrote must have waited for the mbarrier itself. */
#ifndef RT_ASYNC_H
#define RT_ASYNC_H

#include "rt_matrix.h"

enum { MOST_BARRIERS = 64, MOST_UNFINISHED = 64, GROUP = 128, MOST_TX = (1 << 20) - 1 };

#define BARRIER_MARK 0x7265697272616d62ull

typedef struct async_barrier {
    u32 offset, count, pending, phase; /* phase: number of completed ones */
    s32 bytes;                         /* still expected */
    u32 waiters;
} async_barrier;

typedef struct bulk_copy {
    const sim_tensor_map *map;
    s32 at[5];
    u32 to, bytes, barrier;
    sim_thread *thread;
    const sim_site *site;
} bulk_copy;

typedef struct async_chunk { /* 16 bytes of shared memory */
    u16 barrier;             /* index + 1 of the mbarrier of the copy that wrote it; 0: none */
    u16 writer;              /* index + 1 of the thread that wrote it; 0: none */
    u8 flying;               /* a copy will write it */
    u32 phase, moment;       /* of the barrier; of the write */
} async_chunk;

typedef struct async_thread {
    u32 seen[MOST_BARRIERS]; /* completed phases that it has waited for */
    u32 committed, waited;   /* groups of products */
    u32 open;                /* products since the last commit */
    u32 fenced;              /* wgmma.fence since the last wait */
    u32 proxy_fence;         /* moment */
} async_thread;

typedef struct product_read { /* shared memory that an unfinished product reads */
    u32 low, high, group;
    u32 lanes[4]; /* of each warp: those that have not waited */
    u32 warp;     /* the first */
} product_read;

typedef struct product_call {
    u32 *d;
    u64 a, b;
    u32 adds;
} product_call;

typedef struct warpgroup {
    u32 arrived, generation;
    const sim_site *site;
    product_call *call[GROUP];
} warpgroup;

typedef struct async_block {
    u32 barriers, copies, copy_capacity, reads, moment, threads;
    async_barrier barrier[MOST_BARRIERS];
    bulk_copy *copy;
    product_read read[MOST_UNFINISHED];
    warpgroup group[8];
    async_chunk *chunk;
    async_thread thread[];
} async_block;

FAR void async_fault(sim_thread *T, const sim_site *site, const char *message) {
    fault(T, SIM_FAULT_TRAP, message, site);
}

FAR async_block *async_of(sim_thread *T, const sim_site *site) {
    sim_block *B = (sim_block *)(uintptr_t)T->block;
    if (B->async)
        return B->async;
    u32 threads = B->ntid.x * B->ntid.y * B->ntid.z;
    u64 bytes = sizeof(async_block) + threads * sizeof(async_thread);
    async_block *A = malloc(bytes);
    u64 chunks = (B->shared_size / 16 + 1) * sizeof(async_chunk);
    async_chunk *chunk = malloc(chunks);
    if (!A || !chunk)
        async_fault(T, site, "no memory in the simulator");
    __builtin_memset(A, 0, bytes);
    __builtin_memset(chunk, 0, chunks);
    A->chunk = chunk;
    A->threads = threads;
    B->async = A;
    return A;
}

INL u32 thread_index(const sim_thread *T) {
    return T->warp * SIM_WARP + T->lane;
}

INL async_thread *async_self(sim_thread *T, const sim_site *site) {
    return &async_of(T, site)->thread[thread_index(T)];
}

/* Ends a block: returns what it left behind, or NULL. */
static const char *end_async_block(sim_block *B) {
    async_block *A = B->async;
    const char *left = NULL;
    if (!A)
        return NULL;
    if (A->copies)
        left = "the block ends before a bulk copy into its shared memory is complete";
    else if (A->reads)
        left = "the block ends before a product is complete: wgmma.wait_group is missing";
    free(A->copy);
    free(A->chunk);
    free(A);
    B->async = NULL;
    return left;
}

/* ---- accesses by ordinary instructions ---- */

FAR void async_touch(sim_thread *T, u32 offset, u32 size, sim_access_kind kind,
                     const sim_site *site) {
    async_block *A = T->block->async;
    int reads = kind == SIM_LOAD || kind == SIM_LOAD_STRONG;
    if (!A || kind == SIM_PROBE)
        return;
    for (u32 i = offset / 16; i <= (offset + size - 1) / 16; i++) {
        async_chunk *c = &A->chunk[i];
        if (c->flying)
            async_fault(T, site,
                        "access to shared memory that a bulk copy is writing: wait for "
                        "its mbarrier first");
        if (c->barrier && A->thread[thread_index(T)].seen[c->barrier - 1] <= c->phase)
            async_fault(T, site,
                        "access to what a bulk copy wrote, without waiting for its "
                        "mbarrier");
        if (reads)
            continue;
        c->writer = (u16)(thread_index(T) + 1);
        c->moment = ++A->moment;
        c->barrier = 0;
    }
    for (u32 i = 0; i < A->reads && !reads; i++)
        if (offset < A->read[i].high && offset + size > A->read[i].low)
            async_fault(T, site,
                        "write of shared memory that an unfinished product reads: "
                        "wgmma.wait_group is missing");
}

/* Checks that the asynchronous proxy sees what ordinary instructions wrote. */
static void check_proxy(sim_thread *T, const async_block *A, u32 offset, const sim_site *site) {
    const async_chunk *c = &A->chunk[offset / 16];
    if (c->writer && A->thread[c->writer - 1].proxy_fence < c->moment)
        async_fault(T, site,
                    "the asynchronous proxy may not see what a thread wrote to shared "
                    "memory: fence.proxy.async is missing");
}

FAR void proxy_fence(sim_thread *T, const sim_site *site) {
    async_block *A = async_of(T, site);
    A->thread[thread_index(T)].proxy_fence = ++A->moment;
}

/* ---- mbarriers ---- */

static async_barrier *barrier_at(sim_thread *T, u32 offset, const sim_site *site) {
    async_block *A = async_of(T, site);
    if (offset % 8)
        misaligned(T, offset, 8, site);
    if ((u64)offset + 8 > T->block->shared_size)
        outside_shared(T, offset, 8, site);
    u64 mark = load_u64((u64)(uintptr_t)T->block->shared + offset);
    for (u32 i = 0; i < A->barriers; i++)
        if (A->barrier[i].offset == offset) {
            if (mark != (BARRIER_MARK ^ offset))
                async_fault(T, site, "the mbarrier was overwritten");
            return &A->barrier[i];
        }
    async_fault(T, site, "no mbarrier was initialized here");
    return NULL;
}

FAR void mbarrier_init(sim_thread *T, u32 offset, u32 count, const sim_site *site) {
    async_block *A = async_of(T, site);
    u64 at = at_shared(T, offset, 8, SIM_STORE, site);
    u32 i = 0;
    if (count == 0 || count > MOST_TX)
        async_fault(T, site, "an mbarrier of this many arrivals: 1 to 2^20 - 1 are possible");
    while (i < A->barriers && A->barrier[i].offset != offset)
        i++;
    if (i == MOST_BARRIERS)
        async_fault(T, site, "more mbarriers than the simulator has");
    A->barriers += i == A->barriers;
    A->barrier[i] = (async_barrier){offset, count, count, 0, 0, 0};
    store_u64(at, BARRIER_MARK ^ offset);
}

static void complete_phase(sim_thread *T, async_barrier *b) {
    if (b->pending || b->bytes)
        return;
    b->phase++;
    b->pending = b->count;
    T->driver->unpark(T);
}

FAR void mbarrier_expect(sim_thread *T, u32 offset, u32 bytes, const sim_site *site) {
    async_barrier *b = barrier_at(T, offset, site);
    if (bytes > MOST_TX || b->bytes + (s32)bytes > MOST_TX)
        async_fault(T, site, "an mbarrier that expects 2^20 bytes or more");
    b->bytes += (s32)bytes;
}

FAR void mbarrier_arrive(sim_thread *T, u32 offset, u32 count, const sim_site *site) {
    async_barrier *b = barrier_at(T, offset, site);
    if (count == 0 || count > b->pending)
        async_fault(T, site, "more arrivals at an mbarrier than it was initialized for");
    b->pending -= count;
    complete_phase(T, b);
}

static void finish_copies(sim_thread *T, u32 barrier);

/* Returns whether the phase of this parity is complete. waits: the thread sleeps until it is. */
FAR u8 mbarrier_test(sim_thread *T, u32 offset, u32 parity, int waits, const sim_site *site) {
    async_block *A = async_of(T, site);
    async_barrier *b = barrier_at(T, offset, site);
    u32 index = (u32)(b - A->barrier);
    if (parity > 1)
        async_fault(T, site, "a parity is 0 or 1");
    if ((b->phase & 1) == parity) /* otherwise it is complete, also if the next one is not */
        finish_copies(T, index);
    while (waits && (b->phase & 1) == parity) {
        b->waiters++;
        T->driver->park(T, site);
        b->waiters--;
    }
    if ((b->phase & 1) == parity)
        return 0;
    A->thread[thread_index(T)].seen[index] = b->phase;
    return 1;
}

/* ---- copies from global to shared memory by a tensor map ---- */

INL u32 swizzled(u32 offset) { /* of 128 bytes */
    return offset ^ (offset >> 3 & 0x70);
}

/* Copies the line of the box that begins at these coordinates. counts: counts the sectors that it
   reads instead. */
static void copy_row(const bulk_copy *c, u32 into, const s64 *at, u32 bytes, int counts) {
    const sim_tensor_map *m = c->map;
    char *shared = c->thread->block->shared;
    u64 from = m->address + (u64)(at[0] * (s64)m->element);
    u32 valid = 0, skipped = 0;
    int inside = 1;
    for (u32 i = 1; i < m->rank; i++) {
        inside &= at[i] >= 0 && at[i] < (s64)m->dim[i];
        from += (u64)(at[i] * (s64)m->stride[i - 1]);
    }
    if (inside && at[0] < (s64)m->dim[0]) {
        s64 last = at[0] + bytes / m->element;
        last = last < (s64)m->dim[0] ? last : (s64)m->dim[0];
        skipped = at[0] < 0 ? (u32)(-at[0]) * m->element : 0;
        valid = last > 0 ? (u32)((last - at[0]) * (s64)m->element) : 0;
    }
    if (counts) {
        for (u64 a = (from + skipped) / 32; valid > skipped && a <= (from + valid - 1) / 32; a++)
            count_access(c->thread, a * 32, 32, SIM_LOAD, c->site);
        return;
    }
    for (u32 i = 0; i < bytes; i += 16) {
        char *to = shared + (m->swizzle ? swizzled(c->to + into + i) : c->to + into + i);
        __builtin_memset(to, 0, 16);
        for (u32 k = i; k < i + 16 && k < bytes; k += m->element)
            if (k >= skipped && k < valid) {
                u32 size = SIM_CHECK && (k == i || k == skipped) ? m->element : 0;
                if (size)
                    c->thread->driver->access(c->thread, from + k, size, SIM_LOAD, c->site);
                __builtin_memcpy(to + (k - i), (const void *)(uintptr_t)(from + k), m->element);
            }
    }
    if (SIM_CHECK && valid > skipped) /* also the last byte */
        c->thread->driver->access(c->thread, from + valid - m->element, m->element, SIM_LOAD,
                                  c->site);
}

static void copy_box(const bulk_copy *c, int counts) {
    const sim_tensor_map *m = c->map;
    u32 rows = 1, bytes = m->box[0] * m->element;
    for (u32 i = 1; i < m->rank; i++)
        rows *= m->box[i];
    for (u32 row = 0; row < rows; row++) {
        s64 at[5];
        u32 left = row;
        at[0] = c->at[0];
        for (u32 i = 1; i < m->rank; i++) {
            at[i] = (s64)c->at[i] + left % m->box[i];
            left /= m->box[i];
        }
        copy_row(c, row * bytes, at, bytes, counts);
    }
}

/* Executes the copies that report to this barrier. */
static void finish_copies(sim_thread *T, u32 barrier) {
    async_block *A = T->block->async;
    async_barrier *b = &A->barrier[barrier];
    u32 kept = 0;
    for (u32 i = 0; i < A->copies; i++) {
        bulk_copy c = A->copy[i];
        if (c.barrier != barrier) {
            A->copy[kept++] = c;
            continue;
        }
        copy_box(&c, 0);
        for (u32 k = c.to / 16; k < (c.to + c.bytes) / 16; k++)
            A->chunk[k] = (async_chunk){(u16)(barrier + 1), 0, 0, b->phase, 0};
        b->bytes -= (s32)c.bytes;
    }
    int any = kept != A->copies;
    A->copies = kept;
    if (any)
        complete_phase(T, b);
}

static const sim_tensor_map *checked_map(sim_thread *T, u64 address, u32 rank,
                                         const sim_site *site) {
    u64 into = address - (u64)(uintptr_t)T->block->params;
    u64 place = into < T->block->params_size ? into : address;
    if (place % 64)
        misaligned(T, address, 64, site);
    if (place == into && into + sizeof(sim_tensor_map) > T->block->params_size)
        fault(T, SIM_FAULT_ADDRESS, "a tensor map outside the kernel's parameters", site);
    if (place != into)
        T->driver->access(T, address, sizeof(sim_tensor_map), SIM_LOAD, site);
    const sim_tensor_map *m = (const sim_tensor_map *)(uintptr_t)address;
    if (m->mark != SIM_TENSOR_MAP_MARK)
        async_fault(T, site, "no tensor map of cuTensorMapEncodeTiled");
    if (m->rank != rank)
        async_fault(T, site, "the tensor map has another number of axes");
    return m;
}

FAR void bulk_begin(sim_thread *T, u32 to, u64 map, u32 rank, const s32 *at, u32 barrier,
                    const sim_site *site) {
    async_block *A = async_of(T, site);
    async_barrier *b = barrier_at(T, barrier, site);
    const sim_tensor_map *m = checked_map(T, map, rank, site);
    u32 bytes = m->element;
    for (u32 i = 0; i < rank; i++)
        bytes *= m->box[i];
    if (to % (m->swizzle ? 1024 : 128))
        misaligned(T, to, m->swizzle ? 1024 : 128, site);
    if ((u64)to + bytes > T->block->shared_size)
        outside_shared(T, to, bytes, site);
    check_proxy(T, A, barrier, site);
    for (u32 i = 0; i < A->reads; i++)
        if (to < A->read[i].high && to + bytes > A->read[i].low)
            async_fault(T, site, "a bulk copy into shared memory that an unfinished product reads");
    for (u32 i = to / 16; i < (to + bytes) / 16; i++) {
        if (A->chunk[i].flying)
            async_fault(T, site, "two bulk copies write the same shared memory");
        A->chunk[i] = (async_chunk){0, 0, 1, 0, 0};
    }
    __builtin_memset(T->block->shared + to, 0xff, bytes);
    if (A->copies == A->copy_capacity) {
        A->copy_capacity = A->copy_capacity ? 2 * A->copy_capacity : 16;
        A->copy = realloc(A->copy, A->copy_capacity * sizeof *A->copy);
        if (!A->copy)
            async_fault(T, site, "no memory in the simulator");
    }
    bulk_copy *c = &A->copy[A->copies++];
    *c = (bulk_copy){m, {0}, to, bytes, (u32)(b - A->barrier), T, site};
    for (u32 i = 0; i < rank; i++)
        c->at[i] = at[i];
    if (SIM_COUNT)
        copy_box(c, 1);
    if (b->waiters)
        finish_copies(T, c->barrier);
}

/* ---- products of a warpgroup: D (64 x n) = A (64 x k) * B (k x n), or added to D. k is 32 bytes
   ---- */

typedef struct product_kind {
    u32 n;
    element in;
    u32 transposed[2]; /* a, b: contiguous along rows of a or columns of b */
} product_kind;

FAR void product_fence(sim_thread *T, const sim_site *site) {
    async_self(T, site)->fenced = 1;
}

FAR void product_commit(sim_thread *T, const sim_site *site) {
    async_thread *t = async_self(T, site);
    t->committed++;
    t->open = 0;
}

/* One lane waits until at most `pending` groups are unfinished. */
static void wait_lane(sim_thread *T, u32 pending) {
    async_block *A = async_of(T, NULL);
    async_thread *t = &A->thread[thread_index(T)];
    u32 done = t->committed > pending ? t->committed - pending : 0, kept = 0;
    t->waited = t->waited > done ? t->waited : done;
    t->fenced = 0;
    for (u32 i = 0; i < A->reads; i++) {
        product_read *r = &A->read[i];
        if (T->warp - r->warp < 4 && r->group < t->waited)
            r->lanes[T->warp - r->warp] &= ~(1u << T->lane);
        if (r->lanes[0] | r->lanes[1] | r->lanes[2] | r->lanes[3])
            A->read[kept++] = *r;
    }
    A->reads = kept;
}

__attribute__((unused)) static void product_wait(sim_thread *const lane[SIM_WARP], u32 arrived) {
    FOR_LANES(l, arrived) wait_lane(lane[l], (u32)lane[l]->in[0]);
}

/* An instruction uses an accumulator. */
FAR void product_settled(sim_thread *T, const sim_site *site) {
    const async_block *A = T->block->async;
    const async_thread *t = A ? &A->thread[thread_index(T)] : NULL;
    if (t && (t->open || t->waited < t->committed))
        async_fault(T, site,
                    "use of an accumulator of an unfinished product: wgmma.wait_group is "
                    "missing");
}

/* Reads 16 bytes of shared memory as numbers; returns how many. */
static u32 read_unit(u64 from, element in, f32 to[8]) {
    u32 n = in == EL_TF32 ? 4 : 8;
    for (u32 i = 0; i < n; i++)
        to[i] =
            (f32)element_of(in == EL_TF32 ? load_u32(from + i * 4) : load_u16(from + i * 2), in, 0);
    return n;
}

/* Reads `lines` x 32 bytes of k by a descriptor: to[line * 16 + k]. */
static void read_operand(sim_thread *T, u64 descriptor, const product_kind *kind, int is_b,
                         const u32 *seen, f32 *to, product_read *range, const sim_site *site) {
    async_block *A = T->block->async;
    u32 start = (u32)(descriptor & 0x3fff) * 16, leading = (u32)(descriptor >> 16 & 0x3fff) * 16;
    u32 stride = (u32)(descriptor >> 32 & 0x3fff) * 16, lines = is_b ? kind->n : 64;
    if (descriptor >> 62 != 1 || descriptor & 0x3fffc000c000c000ull)
        async_fault(T, site,
                    "a matrix descriptor without swizzle of 128 bytes, or with a base "
                    "offset, or with other bits");
    if (start >> 7 & 7)
        async_fault(T, site, "a matrix that does not begin at a multiple of 1024 bytes");
    range->low = ~0u;
    range->high = 0;
    for (u32 unit = 0; unit < lines * 2; unit++) { /* of 16 bytes */
        u32 t = kind->transposed[is_b];
        u32 line = t ? unit % (lines / 8) * 8 : unit / 2, k = t ? unit / (lines / 8) : 0;
        u32 at =
            swizzled(t ? start + line / 64 * leading + k / 8 * stride + k % 8 * 128 + line % 64 * 2
                       : start + line / 8 * stride + line % 8 * 128 + unit % 2 * 16);
        f32 numbers[8];
        if ((u64)at + 16 > T->block->shared_size)
            outside_shared(T, at, 16, site);
        const async_chunk *c = &A->chunk[at / 16];
        if (c->flying)
            async_fault(T, site, "a product reads shared memory that a bulk copy is writing");
        if (c->barrier && seen[c->barrier - 1] <= c->phase)
            async_fault(T, site,
                        "a product reads what a bulk copy wrote, and not all threads "
                        "have waited for its mbarrier");
        check_proxy(T, A, at, site);
        range->low = at < range->low ? at : range->low;
        range->high = at + 16 > range->high ? at + 16 : range->high;
        u32 n = read_unit((u64)(uintptr_t)T->block->shared + at, kind->in, numbers);
        for (u32 i = 0; i < n; i++)
            to[t ? (line + i) * 16 + k : line * 16 + unit % 2 * n + i] = numbers[i];
    }
}

static void multiply_group(sim_thread *T, const warpgroup *g, const product_kind *kind,
                           const sim_site *site) {
    static f32 a[64 * 16], b[256 * 16];
    async_block *A = T->block->async;
    u32 first = T->warp / 4 * GROUP, seen[MOST_BARRIERS];
    product_read range[2] = {{0}, {0}};
    __builtin_memset(seen, 0xff, sizeof seen);
    for (u32 i = 0; i < GROUP; i++) {
        const async_thread *t = &A->thread[first + i];
        if (!t->fenced)
            async_fault(T, site,
                        "wgmma.fence is missing before the first product, or after "
                        "wgmma.wait_group");
        if (g->call[i]->a != g->call[0]->a || g->call[i]->b != g->call[0]->b ||
            g->call[i]->adds != g->call[0]->adds)
            async_fault(T, site, "threads of a warpgroup have different operands");
        for (u32 k = 0; k < A->barriers; k++)
            seen[k] = t->seen[k] < seen[k] ? t->seen[k] : seen[k];
    }
    read_operand(T, g->call[0]->a, kind, 0, seen, a, &range[0], site);
    read_operand(T, g->call[0]->b, kind, 1, seen, b, &range[1], site);
    for (u32 i = 0; i < 2; i++) {
        if (A->reads == MOST_UNFINISHED)
            async_fault(T, site, "more unfinished products than the simulator has");
        range[i].group = A->thread[first].committed;
        range[i].warp = first / SIM_WARP;
        __builtin_memset(range[i].lanes, 0xff, sizeof range[i].lanes);
        A->read[A->reads++] = range[i];
    }
    for (u32 l = 0; l < GROUP; l++) {
        u32 *d = g->call[l]->d;
        for (u32 i = 0; i < kind->n / 2; i++) {
            u32 row = l / 32 * 16 + l % 32 / 4 + 8 * (i >> 1 & 1);
            u32 column = i / 4 * 8 + l % 4 * 2 + (i & 1);
            f64 sum = g->call[0]->adds ? (f64)as_f32(d[i]) : 0;
            for (u32 k = 0; k < (kind->in == EL_TF32 ? 8 : 16); k++)
                sum += (f64)a[row * 16 + k] * (f64)b[column * 16 + k];
            d[i] = bits_f32((f32)sum);
        }
        A->thread[first + l].open++;
    }
}

/* wgmma.mma_async: the last of the 128 threads computes for all. */
FAR void product_call_group(sim_thread *T, product_call call, const product_kind *kind,
                            const sim_site *site) {
    async_block *A = async_of(T, site);
    warpgroup *g = &A->group[T->warp / 4];
    u32 generation = g->generation;
    if (T->warp / 4 >= A->threads / GROUP || A->threads > 8 * GROUP)
        async_fault(T, site, "wgmma without a whole warpgroup of 128 threads");
    if (g->arrived && g->site != site)
        async_fault(T, site, "threads of a warpgroup come to this from different places");
    g->site = site;
    g->call[thread_index(T) % GROUP] = &call;
    if (++g->arrived == GROUP) {
        multiply_group(T, g, kind, site);
        g->arrived = 0;
        g->generation++;
        T->driver->unpark(T);
        return;
    }
    while (g->generation == generation)
        T->driver->park(T, site);
}

#endif
