/* Runs every kernel of every ISA target with each operand ending, and beginning, at a page without
   access. All tails and all offsets in a vector must give the same bits. Other tests check that
   they are correct. */
#include "bounds.h"
#include "launches.h"

enum { LONGEST = 83 };

static int64_t next_length(int64_t n) {
    return n < 36 ? n + 1 : n + 47;
}

/* ---- elementwise loops ---- */
typedef struct loop_how {
    dvti_op op;
    int operands, step[3];
    int64_t n;
    bool wide, stream;
} loop_how;

static dvti_loop_fn loop_of(const dvti_simd *target, dvti_op op, bool wide) {
    return wide ? target->f64->loop(op) : target->loop_f32(op);
}

static void run_loop(const dvti_simd *target, void *const *at, const void *user) {
    const loop_how *how = (const loop_how *)user;
    dvti_loop loop;
    int k;
    memset(&loop, 0, sizeof loop);
    loop.op = how->op;
    for (k = 0; k < how->operands; k++) {
        loop.in[k] = at[k];
        loop.step[k] = how->step[k];
    }
    loop.out = at[how->operands];
    loop.n = how->n;
    loop.low = -1.5;
    loop.high = 2.5;
    loop.stream = how->stream;
    loop_of(target, how->op, how->wide)(&loop);
}

static void check_loop(const char *name, dvti_op op, int operands, bool wide) {
    const dvt_dtype own = wide ? DVT_F64 : DVT_F32, result = dvti_loop_dtype(op, own);
    int form, k, around;
    loop_how how;
    memset(&how, 0, sizeof how);
    how.op = op;
    how.operands = operands;
    how.wide = wide;
    for (how.n = 1; how.n <= LONGEST; how.n = next_length(how.n))
        for (form = 0; form < 1 << operands; form++)
            for (around = 0; around < (wide || result != own ? 1 : 2); around++) {
                bounds_call call = bounds_of(name, run_loop, &how);
                for (k = 0; k < operands; k++) {
                    how.step[k] = !(form >> k & 1);
                    bounds_reads(&call, own, how.step[k] ? how.n : 1);
                }
                how.stream = around != 0;
                bounds_writes(&call, result, how.n, how.n)->align = around ? 64 : 0;
                bounds_check(&call);
            }
}

#define UNARY(name, rule, ...) {#name, DVTI_OP_##name, 1},
#define BINARY(name, rule, ...) {#name, DVTI_OP_##name, 2},

static const struct {
    const char *name;
    dvti_op op;
    int operands;
} loops[] = {DVTI_UNARY_TABLE(UNARY) DVTI_BINARY_TABLE(BINARY){"where", DVTI_OP_where, 3},
             {"clip", DVTI_OP_clip, 1}};

#undef UNARY
#undef BINARY

static void check_loops(void) {
    int checked[2] = {0, 0}, there[2] = {0, 0}, r, wide;
    const dvti_simd *target[4];
    if (!dvti_simd_targets(target))
        return;
    for (wide = 0; wide < 2; wide++) {
        for (r = 0; r < (int)DVTI_OP_COUNT; r++)
            there[wide] += loop_of(target[0], (dvti_op)r, wide != 0) != NULL;
        for (r = 0; r < (int)(sizeof loops / sizeof *loops); r++)
            if (loop_of(target[0], loops[r].op, wide != 0)) {
                check_loop(loops[r].name, loops[r].op, loops[r].operands, wide != 0);
                bounds_report(loops[r].name);
                checked[wide]++;
            }
        CHECK_INT(checked[wide], there[wide]);
    }
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, loop_f32);
    BOUNDS_SEEN(BOUNDS_F64, dvti_simd_f64, loop);
}

/* ---- rows of other dtypes ---- */
typedef struct row_how {
    dvt_dtype dtype;
    int64_t n;
    bool wide, store;
} row_how;

static void run_row(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    bool done;
    if (how->wide)
        done = how->store ? target->f64->store_row(at[1], how->dtype, how->n, (const double *)at[0])
                          : target->f64->load_row(at[0], how->dtype, how->n, (double *)at[1]);
    else
        done = how->store ? target->store_row(at[1], how->dtype, how->n, (const float *)at[0])
                          : target->load_row(at[0], how->dtype, how->n, (float *)at[1]);
    *(uint8_t *)at[2] = done;
}

static void check_rows(void) {
    row_how how;
    int d, form;
    memset(&how, 0, sizeof how);
    for (d = 0; d < DVT_DTYPE_COUNT; d++)
        for (form = 0; form < 4; form++)
            for (how.n = 1; how.n <= LONGEST; how.n = next_length(how.n)) {
                bounds_call call = bounds_of("rows", run_row, &how);
                how.dtype = (dvt_dtype)d;
                how.wide = form / 2 != 0;
                how.store = form % 2 != 0;
                bounds_reads(&call, how.store ? how.wide ? DVT_F64 : DVT_F32 : how.dtype, how.n);
                bounds_writes(&call,
                              how.store  ? how.dtype
                              : how.wide ? DVT_F64
                                         : DVT_F32,
                              how.n, how.n);
                bounds_writes(&call, DVT_BOOL, 1, 1);
                bounds_check(&call);
            }
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, load_row);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, store_row);
    BOUNDS_SEEN(BOUNDS_F64, dvti_simd_f64, load_row);
    BOUNDS_SEEN(BOUNDS_F64, dvti_simd_f64, store_row);
}

/* ---- optimizer steps ---- */
typedef struct step_how {
    dvti_op op;
    int states;
    int64_t n;
} step_how;

static void run_step(const dvti_simd *target, void *const *at, const void *user) {
    static const double f[8] = {0.1, 0.01, 0.5, 1.5, 0.9, 0.999, 1e-3, 0.004};
    const step_how *how = (const step_how *)user;
    dvti_update step;
    int k;
    memset(&step, 0, sizeof step);
    step.g = (const float *)at[0];
    step.w = (float *)at[1];
    for (k = 0; k < how->states; k++)
        step.s[k] = (float *)at[2 + k];
    step.n = how->n;
    memcpy(step.f, f, sizeof f);
    step.flag = how->n % 2 != 0;
    dvti_simd_optimizer_of(target)->step(how->op, how->states)(&step);
}

static void check_step(step_how how) {
    int k;
    for (how.n = 16; how.n <= LONGEST; how.n += 16) {
        bounds_call call = bounds_of("step", run_step, &how);
        bounds_reads(&call, DVT_F32, how.n);
        for (k = 0; k <= how.states; k++)
            bounds_writes(&call, DVT_F32, how.n, how.n);
        bounds_check(&call);
    }
}

/* Runs every row with both of its numbers of states. No other operation has a kernel here. */
static void check_steps(void) {
#define ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)               \
    {DVTI_OP_##name, few, 0}, {DVTI_OP_##name, many, 0},
    static const step_how rows[] = {DVTI_OPTIMIZER_TABLE(ROW)};
#undef ROW
    const int n_rows = (int)(sizeof rows / sizeof *rows);
    const dvti_simd *target[4];
    int r, op, states;
    if (!dvti_simd_targets(target))
        return;
    for (op = 0; op < (int)DVTI_OP_COUNT; op++)
        for (states = 0; states <= 3; states++) {
            bool listed = false;
            for (r = 0; r < n_rows; r++)
                listed = listed || (rows[r].op == (dvti_op)op && rows[r].states == states);
            CHECK((dvti_simd_optimizer_of(target[0])->step((dvti_op)op, states) != NULL) == listed);
        }
    for (r = 0; r < n_rows; r++)
        if (r == 0 || rows[r].op != rows[r - 1].op || rows[r].states != rows[r - 1].states)
            check_step(rows[r]);
    BOUNDS_SEEN(BOUNDS_OPTIMIZER, dvti_simd_optimizer, step);
}

/* ---- random numbers ---- */
typedef struct random_how {
    dvti_launch launch;
    int64_t first;
} random_how;

static void run_random(const dvti_simd *target, void *const *at, const void *user) {
    const random_how *how = (const random_how *)user;
    dvti_simd_random_of(target)->f32(&how->launch, how->first, (how->launch.i[6] + 3) / 4,
                                     (float *)at[0]);
}

static void check_random(void) {
    static const dvti_op ops[] = {DVTI_OP_uniform, DVTI_OP_normal, DVTI_OP_bernoulli};
    random_how how;
    int64_t n;
    int k;
    for (k = 0; k < 3; k++)
        for (how.first = 0; how.first < 4; how.first += 3)
            for (n = 1; n <= 200; n++) {
                bounds_call call = bounds_of("random", run_random, &how);
                how.launch =
                    random_launch(ops[k], DVT_F32, n + 4 * how.first, 0x9e3779b97f4a7c15u, 77, 1);
                how.launch.f[0] = 0.25;
                how.launch.f[1] = 2;
                how.launch.f[2] = 1.75;
                bounds_writes(&call, DVT_F32, n, n);
                bounds_check(&call);
            }
    BOUNDS_SEEN(BOUNDS_RANDOM, dvti_simd_random, f32);
}

/* ---- the first k, order ---- */
typedef struct order_how {
    int64_t n, k;
    bool flag, floats;
    float bound;
} order_how;

static void run_kth_bound(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    *(float *)at[1] =
        dvti_simd_order_of(target)->kth_bound((const float *)at[0], how->n, how->k, how->flag);
}

static void run_above(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    *(int64_t *)at[2] = dvti_simd_order_of(target)->above((const float *)at[0], how->n, how->bound,
                                                          how->flag, (uint16_t *)at[1]);
}

static void run_sort(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    *(uint8_t *)at[1] =
        dvti_simd_order_of(target)->sort_columns(at[0], how->n, how->floats, how->flag);
}

static void run_ranks(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    dvti_simd_order_of(target)->ranks((const int32_t *)at[0], how->n, how->floats, how->flag,
                                      (int32_t *)at[1], (int32_t *)at[2]);
}

static void run_best(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    *(uint8_t *)at[3] = dvti_simd_order_of(target)->best_of_columns(
        (const float *)at[0], how->n, 5, how->k, how->flag, (float *)at[1], (int32_t *)at[2]);
}

static void run_keys(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    if (quick->keys)
        quick->keys((const int32_t *)at[0], how->n, how->floats, how->flag, (int32_t *)at[1]);
}

static void run_elements(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    if (quick->elements)
        quick->elements((const int32_t *)at[0], how->n, how->floats, how->flag, (int32_t *)at[1]);
}

static void run_quicksort(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    if (quick->sort)
        quick->sort((int32_t *)at[0], how->n, (int32_t *)at[1]);
}

static void run_cut(const dvti_simd *target, void *const *at, const void *user) {
    const order_how *how = (const order_how *)user;
    const dvti_simd_quick *quick = &dvti_simd_order_of(target)->quick;
    if (quick->cut)
        *(int64_t *)at[1] = quick->cut((int32_t *)at[0], how->n);
}

/* Targets without quicksort write nothing, so results are not compared; test_sort_quick.c checks
   them. */
static void check_quicksort(order_how *how) {
    bounds_call keys = bounds_of("keys", run_keys, how);
    bounds_call elements = bounds_of("elements of keys", run_elements, how);
    bounds_call sort = bounds_of("quicksort", run_quicksort, how);
    bounds_call cut = bounds_of("cut of keys", run_cut, how);
    const int64_t more = how->n + DVTI_SORT_LEAF;
    bounds_reads(&keys, DVT_I32, how->n);
    bounds_writes(&keys, DVT_I32, how->n, 0);
    bounds_check(&keys);
    bounds_reads(&elements, DVT_I32, how->n);
    bounds_writes(&elements, DVT_I32, how->n, 0);
    bounds_check(&elements);
    bounds_writes(&sort, DVT_I32, how->n, 0);
    bounds_writes(&sort, DVT_I32, 16 * DVTI_SORT_LEAF, 0)->align = 64;
    bounds_check(&sort);
    how->n = more;
    bounds_writes(&cut, DVT_I32, more, 0);
    bounds_writes(&cut, DVT_I64, 1, 0);
    bounds_check(&cut);
    how->n -= DVTI_SORT_LEAF;
}

/* All elements are beyond a bound of -infinity, which fills the capacity. */
static void check_firsts(order_how *how) {
    bounds_call bound = bounds_of("kth_bound", run_kth_bound, how);
    bounds_call above = bounds_of("above", run_above, how);
    how->bound = how->k == 1 ? -INFINITY : 0;
    bounds_reads(&bound, DVT_F32, how->n);
    bounds_writes(&bound, DVT_F32, 1, 1);
    bounds_check(&bound);
    bounds_reads(&above, DVT_F32, how->n);
    bounds_writes(&above, DVT_F16, how->n, how->n);
    bounds_writes(&above, DVT_I64, 1, 1);
    bounds_check(&above);
}

static void check_orders(order_how *how) {
    static float none[16 * 16];
    static const int32_t nowhere[16 * 16] = {0};
    bounds_call sort = bounds_of("sort of columns", run_sort, how);
    bounds_call ranks = bounds_of("ranks", run_ranks, how);
    bounds_call best = bounds_of("best of columns", run_best, how);
    const dvt_dtype dtype = how->floats ? DVT_F32 : DVT_I32;
    int64_t rows = 16, k;
    while (rows < how->n)
        rows *= 2;
    for (k = 0; k < 16 * 16; k++)
        none[k] = NAN;
    bounds_writes(&sort, dtype, 16 * rows, 16 * how->n);
    bounds_writes(&sort, DVT_BOOL, 1, 1);
    bounds_check(&sort);
    bounds_reads(&ranks, dtype, how->n);
    bounds_writes(&ranks, DVT_I32, how->n + 64, 0);
    bounds_writes(&ranks, DVT_I32, how->n + 64, how->n);
    bounds_check(&ranks);
    how->k = how->n % 16 + 1;
    bounds_reads(&best, DVT_F32, 16 * how->n);
    bounds_writes(&best, DVT_F32, 16 * how->k, 16 * how->k)->set = none;
    bounds_writes(&best, DVT_I32, 16 * how->k, 16 * how->k)->set = nowhere;
    bounds_writes(&best, DVT_BOOL, 1, 1);
    bounds_check(&best);
}

static void check_order(void) {
    order_how how;
    int form;
    memset(&how, 0, sizeof how);
    for (how.n = 1; how.n <= 150; how.n++)
        for (form = 0; form < 4; form++) {
            how.flag = form % 2 != 0;
            how.floats = form / 2 != 0;
            how.k = how.floats ? 1 : 7;
            check_firsts(&how);
            check_orders(&how);
            if (form == how.n % 4)
                check_quicksort(&how);
        }
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, kth_bound);
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, above);
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, sort_columns);
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, ranks);
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, best_of_columns);
    BOUNDS_SEEN(BOUNDS_ORDER, dvti_simd_order, quick);
}

DVT_TEST(every_kernel_at_the_edge_of_memory) {
    check_loops();
    check_rows();
    bounds_report("rows of dtypes");
    check_steps();
    bounds_report("steps");
    check_random();
    bounds_report("random kernels");
    check_order();
    bounds_report("order");
    bounds_of_axes();
    bounds_of_products();
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, name);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, number);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, tile_rows);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, panel_bytes);
    bounds_all_seen();
}
