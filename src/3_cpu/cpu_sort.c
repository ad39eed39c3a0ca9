/* Sorts rows, stable.

     float32, int32, sort, up to 4096      16 rows at a time, each in a lane of the ISA target's
                                           vectors, where there is neither NaN nor -0
     float32, int32, sort, longer          quicksort of int32 keys, where the ISA target has it and
                                           there is neither NaN nor -0; threads share a long row
     float32, int32, argsort, up to 256    counts the elements before each
     others                                radix sort (cpu_sort_radix.c) */
#include "3_cpu/cpu_sort.h"

#define DVTI_SORT_TASK 4096        /* elements of rows that a thread takes at once */
#define DVTI_SORT_AHEAD 256        /* elements of rows of which the next ones are fetched ahead */
#define DVTI_SORT_INTERLEAVED 4096 /* elements of the longest rows that are sorted side by side */
#define DVTI_SORT_RANKED 256       /* elements of rows whose places are counted */
#define DVTI_SORT_QUICK 512        /* elements from which on quicksort is faster than radix sort */
#define DVTI_SORT_SHARED 65536     /* elements of a row that threads share */
#define DVTI_SORT_PARTS 64         /* parts of a shared row at most */
#define DVTI_SORT_LANES (16 * DVTI_SORT_LEAF * (int64_t)sizeof(int32_t))
#define DVTI_SORT_COST 130. /* per element, in multiply-adds (dvti_task_areas) */
#define DVTI_SORT_QUICK_COST 40.
#define DVTI_SORT_INTERLEAVED_COST 20.

/* ---- 16 rows side by side, each in a lane ---- */
DVTI_FN void dvti_rows_to_lanes(const dvti_simd *simd, const float *rows, int64_t step,
                                int64_t count, int64_t columns, float *lanes) {
    float block[256];
    int64_t k;
    if (columns == 16 && count == 16) {
        simd->transpose(rows, step, lanes, 16);
        return;
    }
    for (k = 0; k < 16; k++)
        memcpy(block + 16 * k, rows + DVTI_MIN(k, count - 1) * step,
               (size_t)columns * sizeof *rows);
    simd->transpose(block, 16, block, 16);
    memcpy(lanes, block, (size_t)(16 * columns) * sizeof *lanes);
}

/* Returns where the 16 columns after those from `at` on begin. The last block overlaps the one
   before it, since a whole block takes less time than a partial one. */
static int64_t dvti_sort_next(int64_t at, int64_t n) {
    return at + 16 < n && at + 32 > n ? n - 16 : at + 16;
}

static void dvti_sort_from_lanes(const dvti_simd *simd, const float *lanes, int64_t count,
                                 int64_t n, float *rows) {
    float block[256];
    int64_t at, next, k;
    for (at = 0; at < n; at = next) {
        const int64_t m = DVTI_MIN(n - at, 16);
        next = dvti_sort_next(at, n);
        if (m == 16 && count == 16) {
            simd->transpose(lanes + 16 * at, 16, rows + at, n);
            continue;
        }
        memcpy(block, lanes + 16 * at, (size_t)(16 * m) * sizeof *lanes);
        simd->transpose(block, 16, block, 16);
        for (k = 0; k < count; k++)
            memcpy(rows + k * n + at, block + 16 * k, (size_t)m * sizeof *rows);
    }
}

/* Prefetches short rows: no processor does for 16 streams, and the rows of a large array would wait
   for memory longer than their sort takes. */
static void dvti_sort_ahead(const float *p, int64_t n) {
    int64_t i;
    for (i = 0; i < n && n <= 16 * DVTI_SORT_AHEAD; i += 16)
        DVTI_PREFETCH(p + i);
}

/* Sorts rows first .. first + count - 1, at most 16. Returns false where it does not: a few rows
   take as long as 16. */
static bool dvti_sort_interleaved(const dvti_sort_plan *plan, int64_t first, int64_t count,
                                  float *area) {
    const dvti_simd *simd = plan->simd;
    const float *from = (const float *)plan->launch->in[0].data + first * plan->n;
    float *to = (float *)plan->launch->out[0].data + first * plan->n;
    int64_t n = plan->n, at;
    if (!plan->interleaved || !simd || count < (n <= 1024 ? 4 : 8))
        return false;
    for (at = 0; at < n; at = dvti_sort_next(at, n))
        dvti_rows_to_lanes(simd, from + at, n, count, DVTI_MIN(n - at, 16), area + 16 * at);
    dvti_sort_ahead(from + count * n, DVTI_MIN(plan->rows - first - count, 16) * n);
    dvti_sort_ahead(to, count * n);
    if (!dvti_simd_order_of(simd)->sort_columns(area, n, plan->launch->in[0].dtype == DVT_F32,
                                                plan->launch->i[0] != 0))
        return false;
    dvti_sort_from_lanes(simd, area, count, n, to);
    return true;
}

/* Writes the positions of a short row in order. Elements with the same count before them are equal,
   and the first of them comes first. */
static bool dvti_sort_ranked(const dvti_sort_plan *plan, const void *src, int64_t *dst) {
    const dvti_simd *simd = plan->simd;
    const dvt_dtype dtype = plan->launch->in[0].dtype;
    const int64_t n = plan->n;
    int32_t key[DVTI_SORT_RANKED + 64], rank[DVTI_SORT_RANKED + 64], next[DVTI_SORT_RANKED];
    int64_t i;
    if (!simd || plan->launch->op != DVTI_OP_argsort || plan->k < n || n > DVTI_SORT_RANKED ||
        (dtype != DVT_F32 && dtype != DVT_I32))
        return false;
    dvti_simd_order_of(simd)->ranks((const int32_t *)src, n, dtype == DVT_F32,
                                    plan->launch->i[0] != 0, key, rank);
    for (i = 0; i < n; i++)
        next[i] = (int32_t)i;
    for (i = 0; i < n; i++)
        dst[next[rank[i]]++] = i;
    return true;
}

/* ---- quicksort ---- */
/* A row that threads share: begin[k] is where part k begins. */
typedef struct dvti_sort_row {
    const dvti_sort_plan *plan;
    const dvti_simd_quick *quick;
    const int32_t *src;
    int32_t *dst, *key;
    char *lanes; /* DVTI_SORT_LANES bytes for each thread */
    bool floats, descending;
    dvti_atomic special; /* 1: there is NaN or -0 */
    int64_t begin[DVTI_SORT_PARTS + 1];
} dvti_sort_row;

static dvti_sort_row dvti_sort_row_of(const dvti_sort_plan *plan, const void *src, void *dst,
                                      void *area, int64_t threads) {
    dvti_sort_row row;
    row.plan = plan;
    row.quick = &dvti_simd_order_of(plan->simd)->quick;
    row.src = (const int32_t *)src;
    row.dst = (int32_t *)dst;
    row.lanes = (char *)area;
    row.key = (int32_t *)(void *)(row.lanes + threads * DVTI_SORT_LANES);
    row.floats = plan->launch->in[0].dtype == DVT_F32;
    row.descending = plan->launch->i[0] != 0;
    row.special = 0;
    return row;
}

/* Returns false if there is NaN or -0. */
static bool dvti_sort_quick(const dvti_sort_plan *plan, const void *src, void *dst, void *area) {
    const dvti_sort_row row = dvti_sort_row_of(plan, src, dst, area, 1);
    if (!row.quick->keys(row.src, plan->n, row.floats, row.descending, row.key))
        return false;
    row.quick->sort(row.key, plan->n, (int32_t *)(void *)row.lanes);
    row.quick->elements(row.key, plan->n, row.floats, row.descending, row.dst);
    return true;
}

static void dvti_sort_shared_keys(void *user, int64_t begin, int64_t end) {
    dvti_sort_row *row = (dvti_sort_row *)user;
    if (!row->quick->keys(row->src + begin, end - begin, row->floats, row->descending,
                          row->key + begin))
        dvti_atomic_store(&row->special, 1);
}

static void dvti_sort_shared_parts(void *user, int64_t begin, int64_t end, int thread) {
    const dvti_sort_row *row = (const dvti_sort_row *)user;
    for (; begin < end; begin++) {
        const int64_t at = row->begin[begin], n = row->begin[begin + 1] - at;
        row->quick->sort(row->key + at, n,
                         (int32_t *)(void *)(row->lanes + thread * DVTI_SORT_LANES));
        row->quick->elements(row->key + at, n, row->floats, row->descending, row->dst + at);
    }
}

/* Cuts the largest part that has unequal keys, until there are `most` parts or it is small. Returns
   their number. */
static int dvti_sort_cut(dvti_sort_row *row, int64_t n, int most) {
    int64_t uncut[DVTI_SORT_PARTS]; /* sizes; 0: all keys of the part are equal */
    int count = 1, k, at;
    row->begin[0] = 0;
    row->begin[1] = uncut[0] = n;
    while (count < most) {
        int64_t first;
        for (k = 1, at = 0; k < count; k++)
            if (uncut[k] > uncut[at])
                at = k;
        if (uncut[at] < DVTI_SORT_SHARED / 8)
            break;
        first = row->quick->cut(row->key + row->begin[at], uncut[at]);
        if (first == uncut[at]) {
            uncut[at] = 0;
            continue;
        }
        for (k = count++; k > at; k--) {
            row->begin[k + 1] = row->begin[k];
            uncut[k] = uncut[k - 1];
        }
        row->begin[at + 1] = row->begin[at] + first;
        uncut[at + 1] = uncut[at] - first;
        uncut[at] = first;
    }
    return count;
}

/* Sorts a row with all threads. */
static void dvti_sort_shared(const dvti_sort_plan *plan, int64_t number) {
    const int threads = (int)plan->areas;
    const int32_t *src = (const int32_t *)plan->launch->in[0].data + number * plan->n;
    int32_t *dst = (int32_t *)plan->launch->out[0].data + number * plan->n;
    dvti_sort_row row = dvti_sort_row_of(plan, src, dst, plan->launch->workspace, threads);
    int count;
    dvti_parallel_for(plan->n, 0.2, dvti_sort_shared_keys, &row);
    if (dvti_atomic_load(&row.special)) {
        dvti_sort_narrow(plan, src, dst, row.key);
        return;
    }
    count = dvti_sort_cut(&row, plan->n, DVTI_MIN(4 * threads, DVTI_SORT_PARTS));
    dvti_parallel_parts(count, 3 * (double)plan->n / count, threads, dvti_sort_shared_parts, &row);
}

/* ---- tasks ---- */
static void dvti_sort_one(const dvti_sort_plan *plan, int64_t row, void *area) {
    const dvti_view *in = &plan->launch->in[0], *out = &plan->launch->out[0];
    const void *src = (const char *)in->data + row * plan->n * dvt_dtype_size(in->dtype);
    void *dst = (char *)out->data + row * plan->k * dvt_dtype_size(out->dtype);
    if (plan->wide)
        dvti_sort_wide(plan, src, dst, area);
    else if ((!plan->quick || !dvti_sort_quick(plan, src, dst, area)) &&
             !dvti_sort_ranked(plan, src, (int64_t *)dst))
        dvti_sort_narrow(plan, src, dst, area);
}

static void dvti_sort_task(void *user, int64_t task, void *area) {
    const dvti_sort_plan *plan = (const dvti_sort_plan *)user;
    int64_t first = task * plan->group, end = DVTI_MIN(plan->rows, first + plan->group), row;
    for (; first < end; first += 16) {
        const int64_t count = DVTI_MIN(end - first, 16);
        if (!dvti_sort_interleaved(plan, first, count, (float *)area))
            for (row = first; row < first + count; row++)
                dvti_sort_one(plan, row, area);
    }
}

/* ---- the kernel ---- */
static double dvti_sort_cost(const dvti_sort_plan *plan) {
    return (double)(plan->rows * plan->n) * (plan->interleaved ? DVTI_SORT_INTERLEAVED_COST
                                             : plan->quick     ? DVTI_SORT_QUICK_COST
                                                               : DVTI_SORT_COST);
}

DVTI_PLAN_FITS(dvti_sort_plan)

DVTI_FN int64_t dvti_sort_plan_of(dvti_launch *launch, int threads) {
    dvti_sort_plan *plan = (dvti_sort_plan *)(void *)&launch->plan;
    const dvt_dtype dtype = launch->in[0].dtype;
    const int64_t size = dvt_dtype_size(dtype);
    const int64_t rows = launch->in[0].dim[0], n = launch->in[0].dim[1];
    const dvti_simd *simd = dvti_simd_now();
    const bool words = launch->op == DVTI_OP_sort && (dtype == DVT_F32 || dtype == DVT_I32);
    const bool interleaved = words && rows >= 4 && n > 1 && n <= DVTI_SORT_INTERLEAVED;
    const bool wide = size == 8 || n > UINT32_MAX;
    int64_t group = DVTI_MAX(DVTI_SORT_TASK / n, 1), bytes = (n * (wide ? 32 : 16) + 63) / 64 * 64;
    plan->simd = simd;
    plan->rows = rows;
    plan->n = n;
    plan->k = launch->out[0].dim[1];
    plan->interleaved = interleaved;
    plan->quick =
        words && !wide && n >= DVTI_SORT_QUICK && simd && dvti_simd_order_of(simd)->quick.sort;
    plan->bits = dtype == DVT_BOOL ? 1 : 8 * (int)size;
    plan->wide = wide;
    if (interleaved) {
        int64_t lanes = 1024;
        group = (group + 15) / 16 * 16;
        while (lanes < 64 * n)
            lanes *= 2;
        bytes = DVTI_MAX(bytes, lanes);
    }
    if (plan->quick)
        bytes += DVTI_SORT_LANES;
    plan->group = group;
    plan->tasks = (rows - 1) / group + 1;
    plan->area_bytes = bytes;
    threads = dvti_cpu_threads(threads);
    plan->areas = dvti_task_areas(plan->tasks, dvti_sort_cost(plan), threads);
    plan->shared = plan->quick && n >= DVTI_SORT_SHARED && plan->tasks < threads;
    if (plan->shared) {
        plan->areas = threads;
        return bytes + (threads - 1) * DVTI_SORT_LANES;
    }
    return plan->areas * bytes;
}

DVTI_FN void dvti_cpu_sort(const dvti_launch *launch) {
    dvti_sort_plan *plan = (dvti_sort_plan *)dvti_cpu_plan_at(launch);
    int64_t row;
    plan->launch = launch;
    if (!plan->shared) {
        dvti_run_tasks(plan->tasks, dvti_sort_cost(plan), launch->workspace, plan->areas,
                       plan->area_bytes, dvti_sort_task, plan);
        return;
    }
    for (row = 0; row < plan->rows; row++)
        dvti_sort_shared(plan, row);
}

#undef DVTI_SORT_TASK
#undef DVTI_SORT_AHEAD
#undef DVTI_SORT_INTERLEAVED
#undef DVTI_SORT_RANKED
#undef DVTI_SORT_QUICK
#undef DVTI_SORT_SHARED
#undef DVTI_SORT_PARTS
#undef DVTI_SORT_LANES
#undef DVTI_SORT_COST
#undef DVTI_SORT_QUICK_COST
#undef DVTI_SORT_INTERLEAVED_COST
