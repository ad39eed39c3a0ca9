/* Top k: the positions of the first k elements of each row in order, as stable sorting gives them
   (cpu_sort.c has the keys). Each row is read once. The k-th best element so far is the bound.
   Elements before the bound are kept. The ISA target compares all others as vectors of floats, for
   dtypes whose order floats keep, and skips them.

   Up to DVTI_TOPK_LIST elements are kept in order, by insertion. More wait in a buffer, which is
   cut back to k when it is full. A radix selection then finds the k-th key. Among equal keys the
   first in the row are kept. Long rows are read in pieces, in parallel. For short rows of floats
   without NaN and -0, each lane of a vector finds the first few of one of 16 rows. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_TOPK_LIST 40         /* largest k that is kept in order */
#define DVTI_TOPK_FEW 16          /* largest k that is kept in lanes, */
#define DVTI_TOPK_INTERLEAVED 256 /* and the longest such rows */
#define DVTI_TOPK_CHUNK 1024      /* elements between two updates of the bound */
#define DVTI_TOPK_SPLIT 131072    /* elements of a long row that a thread takes */
#define DVTI_TOPK_TASK 16384      /* elements of short rows that a thread takes at once */
#define DVTI_TOPK_COST 7.         /* multiply-adds of an element (dvti_task_areas) */

/* Contents of launch->plan. */
typedef struct dvti_topk_plan {
    const dvti_launch *launch; /* set by `run`, as `best` is */
    const dvti_simd *simd;     /* NULL: by keys alone */
    dvt_dtype dtype;
    int64_t rows, n, k, capacity;     /* capacity: pairs in the buffer of an area */
    int64_t pieces, group;            /* of a row; pieces of a task */
    int64_t tasks, area_bytes, areas; /* areas: tasks that run at once at most */
    int bits;                         /* of a key */
    bool interleaved;                 /* rows of floats, 16 at a time if an ISA target computes */
    uint64_t flip;
    dvti_sort_pair *best; /* k of each piece, where rows have several */
} dvti_topk_plan;

/* The best of what was read so far. */
typedef struct dvti_topk_best {
    dvti_sort_pair *pair, *other; /* two buffers */
    void *picked;                 /* space for the elements of a chunk */
    int64_t count, k, capacity;
    bool full; /* only a key below bound can be one of the first k */
    /* The k-th key at the last update; before there are k elements, a bound by kth_bound. */
    uint64_t bound;
    int64_t example; /* position of an element with that key */
    int bits;
} dvti_topk_best;

/* ---- keeping ---- */
/* Returns the key with index `nth` in order, of n; *before: how many are smaller. Changes `key`. */
static uint64_t dvti_topk_select(uint64_t *key, int64_t n, int64_t nth, int bits, int64_t *before) {
    int shift;
    *before = nth;
    for (shift = (bits + 7) / 8 * 8 - 8; shift >= 0; shift -= 8) {
        int64_t count[256], i, kept = 0;
        unsigned digit = 0;
        memset(count, 0, sizeof count);
        for (i = 0; i < n; i++)
            count[key[i] >> shift & 255]++;
        for (; nth >= count[digit]; digit++)
            nth -= count[digit];
        for (i = 0; i < n; i++) {
            key[kept] = key[i];
            kept += (key[i] >> shift & 255) == digit;
        }
        n = kept;
    }
    *before -= nth;
    return key[0];
}

/* Reduces the buffer to the first k, in the order of the row. */
static void dvti_topk_cut(dvti_topk_best *best) {
    uint64_t *key = (uint64_t *)best->other;
    int64_t before, equal, kept = 0, i;
    if (best->count <= best->k)
        return;
    for (i = 0; i < best->count; i++)
        key[i] = best->pair[i].key;
    best->bound = dvti_topk_select(key, best->count, best->k - 1, best->bits, &before);
    best->full = true;
    equal = best->k - before;
    for (i = 0; i < best->count; i++) {
        const dvti_sort_pair own = best->pair[i];
        if (own.key > best->bound || (own.key == best->bound && equal == 0))
            continue;
        if (own.key == best->bound) {
            equal--;
            best->example = (int64_t)own.at;
        }
        best->pair[kept++] = own;
    }
    best->count = kept;
}

static void dvti_topk_insert(dvti_topk_best *best, uint64_t key, int64_t at) {
    dvti_sort_pair *pair = best->pair;
    int64_t i = best->count < best->k ? best->count++ : best->k - 1;
    for (; i > 0 && pair[i - 1].key > key; i--)
        pair[i] = pair[i - 1];
    pair[i].key = key;
    pair[i].at = (uint64_t)at;
    if (best->count == best->k) {
        best->full = true;
        best->bound = pair[best->k - 1].key;
        best->example = (int64_t)pair[best->k - 1].at;
    }
}

/* Elements come in the order of their positions. */
static void dvti_topk_add(dvti_topk_best *best, uint64_t key, int64_t at) {
    if (best->full && key >= best->bound)
        return;
    if (best->k <= DVTI_TOPK_LIST) {
        dvti_topk_insert(best, key, at);
        return;
    }
    best->pair[best->count].key = key;
    best->pair[best->count++].at = (uint64_t)at;
    if (best->count == best->capacity)
        dvti_topk_cut(best);
}

/* ---- reading ---- */
static void dvti_topk_by_keys(const dvti_topk_plan *plan, const void *from, int64_t at, int64_t n,
                              dvti_topk_best *best) {
    uint64_t key[DVTI_TOPK_CHUNK];
    int64_t i;
    dvti_keys_64(from, plan->dtype, n, plan->flip, key);
    for (i = 0; i < n; i++)
        dvti_topk_add(best, key[i], at + i);
}

/* Gathers the elements at n positions. */
static void dvti_topk_pick(const void *from, int64_t size, const uint16_t *place, int64_t n,
                           void *to) {
    int64_t i;
#define DVTI_PICK(T)                                                                               \
    for (i = 0; i < n; i++)                                                                        \
        ((T *)to)[i] = ((const T *)from)[place[i]];                                                \
    break;
    switch (size) {
    case 1:
        DVTI_PICK(uint8_t)
    case 2:
        DVTI_PICK(uint16_t)
    case 4:
        DVTI_PICK(uint32_t)
    default:
        DVTI_PICK(uint64_t)
    }
#undef DVTI_PICK
}

/* Computes keys of only the elements that are above the bound as floats. */
static void dvti_topk_by_floats(const dvti_topk_plan *plan, const void *from, int64_t at, int64_t n,
                                float bound, dvti_topk_best *best) {
    float block[DVTI_TOPK_CHUNK];
    uint64_t key[DVTI_TOPK_CHUNK];
    uint16_t place[DVTI_TOPK_CHUNK];
    const float *x = plan->dtype == DVT_F32 ? (const float *)from : block;
    int64_t i, found;
    if (x == block)
        plan->simd->load_row(from, plan->dtype, n, block);
    found = dvti_simd_order_of(plan->simd)->above(x, n, bound, !plan->flip, place);
    if (!found)
        return;
    dvti_topk_pick(from, dvt_dtype_size(plan->dtype), place, found, best->picked);
    dvti_keys_64(best->picked, plan->dtype, found, plan->flip, key);
    for (i = 0; i < found; i++)
        dvti_topk_add(best, key[i], at + place[i]);
}

/* Returns a float that every element before the bound is above (or below); NaN: there is none.
   Elements that are rounded to floats may round to the bound itself, and must pass. */
static float dvti_topk_bound(const dvti_topk_plan *plan, const void *row, int64_t example) {
    double exact = dvti_load_f64(row, plan->dtype, example);
    float bound = (float)exact;
    if (plan->dtype != DVT_F64 && !(plan->dtype == DVT_I32 && fabs(exact) >= 16777216))
        return bound;
    return isinf(bound) ? NAN : nextafterf(bound, plan->flip ? -INFINITY : INFINITY);
}

/* Returns a first bound from the beginning of a row of floats. Only elements that are better or
   equal can be among the first k. */
static float dvti_topk_first(const dvti_topk_plan *plan, const float *x, int64_t n,
                             dvti_topk_best *best) {
    float bound = dvti_simd_order_of(plan->simd)->kth_bound(x, n, best->k, !plan->flip);
    uint64_t key;
    if (bound != bound || isinf(bound))
        return NAN;
    dvti_keys_64(&bound, DVT_F32, 1, plan->flip, &key);
    best->bound = key + 1;
    best->full = true;
    return nextafterf(bound, plan->flip ? -INFINITY : INFINITY);
}

/* Reads elements begin .. end - 1 of a row. The bound is updated more often at the beginning, where
   it still changes much. */
static void dvti_topk_read(const dvti_topk_plan *plan, const void *row, int64_t begin, int64_t end,
                           dvti_topk_best *best) {
    float first = NAN;
    int64_t at, n;
    if (plan->simd && plan->dtype == DVT_F32)
        first = dvti_topk_first(plan, (const float *)row + begin,
                                DVTI_MIN(end - begin, DVTI_TOPK_CHUNK), best);
    for (at = begin; at < end && !(best->full && best->bound == 0); at += n) {
        const void *from = (const char *)row + at * dvt_dtype_size(plan->dtype);
        float bound = NAN;
        n = DVTI_MIN(DVTI_MAX(at - begin, 64), DVTI_TOPK_CHUNK);
        if (first == first)
            n = DVTI_TOPK_CHUNK;
        n = DVTI_MIN(n, end - at);
        if (best->full && plan->simd)
            bound = best->count < best->k ? first : dvti_topk_bound(plan, row, best->example);
        if (bound == bound)
            dvti_topk_by_floats(plan, from, at, n, bound, best);
        else
            dvti_topk_by_keys(plan, from, at, n, best);
    }
}

/* ---- rows ---- */
static dvti_topk_best dvti_topk_begin(const dvti_topk_plan *plan, void *area) {
    dvti_topk_best best;
    best.pair = (dvti_sort_pair *)area;
    best.other = best.pair + plan->capacity;
    best.picked = best.other + plan->capacity;
    best.count = best.example = 0;
    best.k = plan->k;
    best.capacity = plan->capacity;
    best.full = false;
    best.bound = 0;
    best.bits = plan->bits;
    return best;
}

static void dvti_topk_finish(const dvti_topk_plan *plan, int64_t row, dvti_topk_best *best) {
    int64_t *to = (int64_t *)plan->launch->out[0].data + row * plan->k, i;
    dvti_sort_pair *pair = best->pair;
    if (plan->k > DVTI_TOPK_LIST) {
        dvti_topk_cut(best);
        pair = dvti_sort_pairs(pair, best->other, plan->k, plan->bits);
    }
    for (i = 0; i < plan->k; i++)
        to[i] = (int64_t)pair[i].at;
}

/* Finds the first k of `count` rows, at most 16. Returns false if that is not possible. */
static bool dvti_topk_interleaved(const dvti_topk_plan *plan, int64_t first, int64_t count) {
    float lanes[256], value[16 * DVTI_TOPK_FEW];
    int32_t number[16 * DVTI_TOPK_FEW];
    const float *from = (const float *)plan->launch->in[0].data + first * plan->n;
    int64_t *to = (int64_t *)plan->launch->out[0].data + first * plan->k, at, row, i;
    if (!plan->interleaved || !plan->simd || count < 4)
        return false;
    for (i = 0; i < 16 * plan->k; i++)
        value[i] = NAN;
    memset(number, 0, sizeof number);
    for (at = 0; at < plan->n; at += 16) {
        const int64_t m = DVTI_MIN(plan->n - at, 16);
        dvti_rows_to_lanes(plan->simd, from + at, plan->n, count, m, lanes);
        if (!dvti_simd_order_of(plan->simd)
                 ->best_of_columns(lanes, m, (int32_t)at, plan->k, !plan->flip, value, number))
            return false;
    }
    for (row = 0; row < count; row++)
        for (i = 0; i < plan->k; i++)
            *to++ = number[16 * i + row];
    return true;
}

static void dvti_topk_task(void *user, int64_t task, void *area) {
    const dvti_topk_plan *plan = (const dvti_topk_plan *)user;
    const dvti_view *in = &plan->launch->in[0];
    int64_t at, end = DVTI_MIN(plan->rows * plan->pieces, (task + 1) * plan->group), tried = -1;
    for (at = task * plan->group; at < end; at++) {
        int64_t row = at / plan->pieces, piece = at % plan->pieces;
        dvti_topk_best best = dvti_topk_begin(plan, area);
        if (at > tried) {
            tried = DVTI_MIN(at + 16, end) - 1;
            if (dvti_topk_interleaved(plan, at, tried + 1 - at)) {
                at = tried;
                continue;
            }
        }
        dvti_topk_read(plan, (const char *)in->data + row * plan->n * dvt_dtype_size(in->dtype),
                       piece * plan->n / plan->pieces, (piece + 1) * plan->n / plan->pieces, &best);
        if (plan->pieces == 1) {
            dvti_topk_finish(plan, row, &best);
            continue;
        }
        dvti_topk_cut(&best);
        memcpy(plan->best + at * plan->k, best.pair, (size_t)plan->k * sizeof *best.pair);
    }
}

/* Joins the results of the pieces of each row. */
static void dvti_topk_join(const dvti_topk_plan *plan, void *area) {
    int64_t row, i;
    for (row = 0; row < plan->rows; row++) {
        const dvti_sort_pair *from = plan->best + row * plan->pieces * plan->k;
        dvti_topk_best best = dvti_topk_begin(plan, area);
        for (i = 0; i < plan->pieces * plan->k; i++)
            dvti_topk_add(&best, from[i].key, (int64_t)from[i].at);
        dvti_topk_finish(plan, row, &best);
    }
}

/* ---- the launch ---- */
static double dvti_topk_cost(const dvti_topk_plan *plan) {
    return (double)(plan->rows * plan->n) * DVTI_TOPK_COST;
}

DVTI_FN bool dvti_topk_pays(const dvti_launch *launch) {
    return launch->op == DVTI_OP_topk && launch->out[0].dim[1] <= launch->in[0].dim[1] / 4;
}

DVTI_PLAN_FITS(dvti_topk_plan)

DVTI_FN int64_t dvti_topk_plan_of(dvti_launch *launch, int threads) {
    dvti_topk_plan *plan = (dvti_topk_plan *)(void *)&launch->plan;
    int64_t size = dvt_dtype_size(launch->in[0].dtype), pieces, shared = 0;
    plan->dtype = launch->in[0].dtype;
    plan->simd = plan->dtype == DVT_I64 ? NULL : dvti_simd_now();
    plan->rows = launch->in[0].dim[0];
    plan->n = launch->in[0].dim[1];
    plan->k = launch->out[0].dim[1];
    plan->capacity = plan->k <= DVTI_TOPK_LIST ? plan->k : plan->k + DVTI_MAX(plan->k, 512);
    plan->area_bytes = plan->capacity * 2 * (int64_t)sizeof(dvti_sort_pair) + DVTI_TOPK_CHUNK * 8;
    plan->area_bytes = (plan->area_bytes + 63) / 64 * 64;
    plan->bits = launch->in[0].dtype == DVT_BOOL ? 1 : 8 * (int)size;
    plan->flip = launch->i[0] ? ~(uint64_t)0 : 0;
    /* A piece has more elements than the row has results, by far. */
    pieces = DVTI_MIN(plan->n / DVTI_TOPK_SPLIT, plan->n / plan->k / 16);
    plan->pieces = plan->rows < 16 ? DVTI_MAX(pieces, 1) : 1;
    plan->group = DVTI_MAX(DVTI_TOPK_TASK / (plan->n / plan->pieces), 1);
    plan->interleaved =
        plan->dtype == DVT_F32 && plan->k <= DVTI_TOPK_FEW && plan->n <= DVTI_TOPK_INTERLEAVED;
    if (plan->interleaved)
        plan->group = (plan->group + 15) / 16 * 16;
    plan->tasks = (plan->rows * plan->pieces - 1) / plan->group + 1;
    plan->areas = dvti_task_areas(plan->tasks, dvti_topk_cost(plan), dvti_cpu_threads(threads));
    if (plan->pieces > 1)
        shared = plan->rows * plan->pieces * plan->k * (int64_t)sizeof(dvti_sort_pair);
    return plan->areas * plan->area_bytes + shared;
}

DVTI_FN void dvti_cpu_topk(const dvti_launch *launch) {
    dvti_topk_plan *plan = (dvti_topk_plan *)dvti_cpu_plan_at(launch);
    plan->launch = launch;
    plan->best =
        (dvti_sort_pair *)(void *)((char *)launch->workspace + plan->areas * plan->area_bytes);
    dvti_run_tasks(plan->tasks, dvti_topk_cost(plan), launch->workspace, plan->areas,
                   plan->area_bytes, dvti_topk_task, plan);
    if (plan->pieces > 1)
        dvti_topk_join(plan, launch->workspace);
}

#undef DVTI_TOPK_LIST
#undef DVTI_TOPK_FEW
#undef DVTI_TOPK_INTERLEAVED
#undef DVTI_TOPK_CHUNK
#undef DVTI_TOPK_SPLIT
#undef DVTI_TOPK_TASK
#undef DVTI_TOPK_COST
