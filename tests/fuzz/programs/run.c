/* Runs a program in a world, from a clean state to a clean state. */
#include "programs.h"

/* ---- memory that fails ---- */
static struct {
    bool on;
    int paused;
    uint64_t state;
} faults;

static bool fault_now(void) {
    uint64_t s;
    if (!faults.on || __atomic_load_n(&faults.paused, __ATOMIC_SEQ_CST))
        return false;
    s = __atomic_add_fetch(&faults.state, 0x9e3779b97f4a7c15u, __ATOMIC_SEQ_CST);
    s = (s ^ s >> 30) * 0xbf58476d1ce4e5b9u;
    return (s >> 32) % 41 == 0;
}

static void *fault_alloc(void *user, size_t bytes) {
    void *block = fault_now() ? NULL : malloc(bytes);
    (void)user;
    if (block)
        memset(block, 0xa5, bytes < 4096 ? bytes : 4096);
    return block;
}

static void *fault_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return fault_now() ? NULL : realloc(block, bytes);
}

static void fault_release(void *user, void *block) {
    (void)user;
    free(block);
}

void fuzz_pause_faults(bool pause) {
    __atomic_add_fetch(&faults.paused, pause ? 1 : -1, __ATOMIC_SEQ_CST);
}

void fuzz_lift_limits(const fuzz_world *w, bool lift) {
    int i;
    for (i = 0; w->config->limit && i < 2; i++)
        dvt_set_memory_limit(lift ? 0 : w->config->limit, dvt_gpu(i));
}

/* ---- operations ---- */
static const fuzz_op *const families[] = {
    fuzz_ops_create, fuzz_ops_view, fuzz_ops_write, fuzz_ops_math, fuzz_ops_reduce, fuzz_ops_index,
    fuzz_ops_layer,  fuzz_ops_grad, fuzz_ops_life,  fuzz_ops_net,  fuzz_ops_io};
static fuzz_op all_ops[512];
static int n_ops;

const fuzz_op *fuzz_ops(int *n) {
    size_t f;
    const fuzz_op *op;
    if (!n_ops)
        for (f = 0; f < sizeof families / sizeof families[0]; f++)
            for (op = families[f]; op->name; op++)
                all_ops[n_ops++] = *op;
    if (n)
        *n = n_ops;
    return all_ops;
}

int fuzz_find_op(const char *name) {
    int n, i;
    const fuzz_op *ops = fuzz_ops(&n);
    for (i = 0; i < n; i++)
        if (!strcmp(ops[i].name, name))
            return i;
    return -1;
}

/* ---- one program ---- */
static void begin(fuzz_world *w, const fuzz_program *p) {
    dvt_allocator allocator = {fault_alloc, fault_resize, fault_release, NULL};
    int i;
    dvt_trim_memory(dvt_cpu());
    if (w->config->faults)
        dvt_set_allocator(&allocator);
    dvt_set_cpu_isa(w->config->isa);
    dvt_set_num_threads(w->config->threads);
    fuzz_lift_limits(w, false);
    dvt_seed(5);
    dvt_clear_error();
    for (i = 0; i < FUZZ_SLOTS; i++)
        w->slot[i] = -1;
    w->random = 77;
    for (i = 0; i < p->n; i++)
        w->random = w->random * 6364136223846793005u + p->call[i].op + p->call[i].arg[0];
    faults.state = w->random;
    w->context[w->contexts++] = dvt_ctx_scope_begin(fuzz_place(w, 0));
    faults.on = w->config->faults;
}

static void end(fuzz_world *w, const dvt_stats *before) {
    dvt_stats after;
    int i;
    faults.on = false;
    fuzz_lift_limits(w, true);
    while (w->records)
        dvt_record_end(&w->record[--w->records]);
    while (w->contexts)
        dvt_ctx_scope_end(&w->context[--w->contexts]);
    for (i = 0; i < 2; i++) {
        dvt_release(w->trainer[i]);
        dvt_release(w->net[i]);
    }
    for (i = 0; i < FUZZ_OBJECTS; i++)
        if (w->object[i].x) {
            for (; w->object[i].retains; w->object[i].retains--)
                dvt_release(w->object[i].x);
            fuzz_forget(w, &w->object[i]);
        }
    while (w->scopes)
        dvt_scope_end(&w->scope[--w->scopes]);
    dvt_discard_all();
    if (dvt_wait_all() != DVT_OK || dvt_error_code() != DVT_OK)
        fuzz_fail(w, "leaves an error: %s", dvt_error());
    dvt_clear_error();
    dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
    after = dvt_get_stats();
    if (after.arrays != before->arrays || after.blocks_of_memory != before->blocks_of_memory)
        fuzz_fail(w, "leaves %lld arrays and %lld buffers",
                  (long long)(after.arrays - before->arrays),
                  (long long)(after.blocks_of_memory - before->blocks_of_memory));
    if (w->config->faults)
        dvt_set_allocator(NULL);
}

bool fuzz_run(fuzz_world *w, const fuzz_config *config, const fuzz_program *p, fuzz_trace *trace) {
    dvt_stats before = dvt_get_stats();
    int n, i;
    const fuzz_op *ops = fuzz_ops(&n);
    memset(w, 0, sizeof *w);
    w->config = config;
    w->trace = trace;
    begin(w, p);
    for (i = 0; i < p->n && !w->failed; i++) {
        w->number = i;
        w->call = &p->call[i];
        w->cursor = 0;
        w->op = &ops[p->call[i].op % n];
        w->differs = w->lenient = false;
        memset(&w->expect, 0, sizeof w->expect);
        fuzz_say(w, "%2d %s\n", i, w->op->name);
        w->op->call(w, w->op);
        free(w->expect.value);
        w->expect.value = NULL;
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        if (!w->failed && (!config->gpu || w->random >> 61 == 0))
            fuzz_verify(w);
    }
    w->op = NULL;
    if (!w->failed)
        fuzz_verify(w);
    if (!w->failed && config->compare != FUZZ_RECORD && !w->free_running && w->at != trace->n)
        fuzz_fail(w, "does less than in the first world");
    end(w, &before);
    return !w->failed;
}
