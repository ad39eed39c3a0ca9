/* Training by several processes: the public functions, and sums over ranks. A sum is cut into one
   slice per rank. Every rank receives its slice of all sums, adds them up in the order of the tree
   of dvt_parts.c, and sends the result to all. So each rank sends about twice the size of the
   gradients, and the order of the sum depends on nothing but the tree. */
#include "7_train/dvt_ranks.h"

#define DVTI_MOST_SUMS 32 /* sums of one process that are not complete: 2 log2(4096) */

DVTI_FN int64_t dvti_rank_row(int64_t rows, int rank) {
    return dvti_part_row(rows, rank, dvt_num_ranks());
}

/* ---- joining and leaving ---- */
DVT_API dvt_status dvt_distributed_init(void) {
    static const char *const function = "dvt_distributed_init";
    if (dvti_ranks_on())
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the processes have joined already; call it once, before "
                         "dvt_distributed_end",
                         function);
    return dvti_ranks_start(function);
}

DVT_API dvt_status dvt_distributed_end(void) {
    dvt_status status;
    if (!dvti_ranks_on())
        return DVT_OK;
    status = dvti_buckets_end("dvt_distributed_end");
    if (status == DVT_OK)
        status = dvt_barrier_ranks();
    dvti_ranks_stop(status == DVT_OK);
    return status;
}

/* ---- gathering ---- */
/* Allocates n messages to send and n to receive, all zeros. */
static dvti_message *dvti_messages(const char *function) {
    size_t bytes = 2 * (size_t)dvt_num_ranks() * sizeof(dvti_message);
    dvti_message *message = (dvti_message *)dvti_alloc_zero(bytes);
    if (!message)
        dvti_fail_memory(function, (int64_t)bytes);
    return message;
}

DVTI_FN dvt_status dvti_ranks_gather(const char *function, const void *own, int64_t bytes,
                                     void *all) {
    const int n = dvt_num_ranks();
    dvti_message *message = dvti_messages(function);
    dvt_status status;
    int r;
    if (!message)
        return dvti_failure();
    for (r = 0; r < n; r++) {
        message[r].at = (char *)own;
        message[n + r].at = (char *)all + r * bytes;
        message[r].bytes = message[n + r].bytes = bytes;
    }
    status = dvti_ranks_exchange(function, message, message + n);
    dvti_free(message);
    return status;
}

DVT_API dvt_status dvt_barrier_ranks(void) {
    static const char *const function = "dvt_barrier_ranks";
    const int n = dvt_num_ranks();
    char *all = (char *)dvti_alloc((size_t)n);
    dvt_status status = all ? DVT_OK : dvti_fail_memory(function, n);
    char own = 0;
    if (status == DVT_OK)
        status = dvti_ranks_gather(function, &own, 1, all);
    dvti_free(all);
    return status;
}

/* ---- sums ---- */
/* The sums of all ranks: for each rank the number, then start and level of each. */
typedef struct dvti_rank_sums {
    int32_t n, at[DVTI_MOST_SUMS][2];
} dvti_rank_sums;

/* What one merge works on, for one dtype. */
typedef struct dvti_rank_merge {
    const char *function;
    dvti_part_batch *p;
    dvt_array *const *like;
    int columns;
    const dvti_rank_sums *sums; /* one per rank */
    dvt_dtype dtype;
    int64_t total, size; /* elements of all columns; bytes of an element */
} dvti_rank_merge;

static int64_t dvti_slice_length(const dvti_rank_merge *m, int rank) {
    return dvti_rank_row(m->total, rank + 1) - dvti_rank_row(m->total, rank);
}

/* Returns column i of a flat array, as a view, and adds its size to *at. */
static dvt_array *dvti_flat_column(const dvti_rank_merge *m, dvt_array *flat, int i, int64_t *at) {
    int64_t n = dvt_size(m->like[i]);
    dvt_array *view = dvt_slice(flat, 0, *at, *at + n, 1);
    *at += n;
    return view ? dvt_reshape(view, m->like[i]->shape) : NULL;
}

static bool dvti_column_is(const dvti_rank_merge *m, int i) {
    return m->like[i] && m->like[i]->dtype == m->dtype;
}

/* Writes the sums of this process to `out`: for each rank, its slice of all sums. */
static bool dvti_merge_pack(const dvti_rank_merge *m, char *out) {
    const dvti_part_batch *p = m->p;
    size_t j;
    for (j = 0; j < p->n; j++) {
        dvt_scope_guard scope = dvt_scope_begin();
        dvt_array *flat = dvt_zeros(DVT_SHAPE(m->total), m->dtype, dvt_cpu());
        int64_t at = 0;
        int i, r;
        for (i = 0; i < m->columns && flat; i++) {
            dvt_array *view;
            if (!dvti_column_is(m, i))
                continue;
            view = dvti_flat_column(m, flat, i, &at);
            if (!view || (p->sum[j].column[i] && !dvt_copy_into(view, p->sum[j].column[i])))
                flat = NULL;
        }
        for (r = 0; r < dvt_num_ranks() && flat; r++) {
            int64_t first = dvti_rank_row(m->total, r), n = dvti_slice_length(m, r);
            if (n)
                memcpy(out + (first * (int64_t)p->n + (int64_t)j * n) * m->size,
                       (const char *)dvt_data(flat) + first * m->size, (size_t)(n * m->size));
        }
        dvt_scope_end(&scope);
        if (!flat)
            return false;
    }
    return true;
}

/* Adds the slice of a sum with that place in the tree to `all`. */
static bool dvti_merge_insert(const char *function, dvti_part_batch *all, int start, int level,
                              dvt_dtype dtype, int64_t length, const char *in) {
    dvt_array *x = dvti_array_new(function, DVT_SHAPE(length), dtype, dvt_cpu());
    dvti_part_sum one;
    one.start = start;
    one.level = level;
    one.column = (dvt_array **)dvti_alloc_zero(sizeof *one.column);
    if (x && !one.column)
        dvti_fail_memory(function, (int64_t)sizeof *one.column);
    if (x && one.column && (!length || dvti_write_host(function, x, in) == DVT_OK)) {
        one.column[0] = (dvt_array *)dvti_own(x);
        return dvti_part_insert(function, all, one, 1, true);
    }
    dvti_free(one.column);
    return false;
}

/* Returns the only sum of `all`, owned, and frees the others. NULL on errors. */
static dvt_array *dvti_merge_end(const char *function, dvti_part_batch *all, bool good) {
    dvt_array *sum = NULL;
    if (good && all->n == 1) {
        sum = all->sum[0].column[0];
        all->sum[0].column[0] = NULL;
    } else if (good) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the parts of the ranks do not make a whole batch; all ranks must make the "
                  "same calls",
                  function);
    }
    while (all->n)
        dvti_part_sum_free(&all->sum[--all->n], 1);
    dvti_free(all->sum);
    return sum;
}

/* Adds the slices of all sums, which are in `in` by ranks. Returns the sum, owned; NULL on
   errors. */
static dvt_array *dvti_merge_add(const dvti_rank_merge *m, const char *in) {
    int64_t length = dvti_slice_length(m, dvt_rank());
    dvti_part_batch all;
    bool good = true;
    int r, j;
    memset(&all, 0, sizeof all);
    all.parts = m->p->parts;
    all.rows = m->p->rows;
    for (r = 0; r < dvt_num_ranks(); r++)
        for (j = 0; j < m->sums[r].n && good; j++, in += length * m->size)
            good = dvti_merge_insert(m->function, &all, m->sums[r].at[j][0], m->sums[r].at[j][1],
                                     m->dtype, length, in);
    return dvti_merge_end(m->function, &all, good);
}

DVTI_FN dvt_array *dvti_ranks_add(const char *function, dvt_dtype dtype, int64_t length,
                                  const char *in) {
    dvti_part_batch all;
    bool good = true;
    int r;
    memset(&all, 0, sizeof all);
    all.rows = all.parts = dvt_num_ranks();
    for (r = 0; r < all.parts && good; r++, in += length * dvt_dtype_size(dtype))
        good = dvti_merge_insert(function, &all, r, 0, dtype, length, in);
    return dvti_merge_end(function, &all, good);
}

/* Sums all columns of one dtype. Returns the flat result, owned; NULL on errors. */
static dvt_array *dvti_merge_dtype(const dvti_rank_merge *m) {
    const int n = dvt_num_ranks(), rank = dvt_rank();
    const int64_t length = dvti_slice_length(m, rank), own = (int64_t)m->p->n;
    int64_t received = 0;
    dvti_message *message = dvti_messages(m->function);
    dvt_array *flat = NULL, *sum = NULL;
    char *out, *in;
    int r;
    for (r = 0; r < n; r++)
        received += m->sums[r].n * length * m->size;
    out = (char *)dvti_alloc((size_t)(m->total * own * m->size));
    in = (char *)dvti_alloc((size_t)received);
    if (!out || !in)
        dvti_fail_memory(m->function, m->total * own * m->size + received);
    else if (message && dvti_merge_pack(m, out)) {
        received = 0;
        for (r = 0; r < n; r++) {
            message[r].at = out + dvti_rank_row(m->total, r) * own * m->size;
            message[r].bytes = dvti_slice_length(m, r) * own * m->size;
            message[n + r].at = in + received;
            message[n + r].bytes = m->sums[r].n * length * m->size;
            received += message[n + r].bytes;
        }
        if (dvti_ranks_exchange(m->function, message, message + n) == DVT_OK)
            sum = dvti_merge_add(m, in);
    }
    if (sum)
        flat = dvti_array_new(m->function, DVT_SHAPE(m->total), m->dtype, dvt_cpu());
    for (r = 0; r < n && flat; r++) {
        message[r].at = (char *)dvt_data(sum);
        message[r].bytes = length * m->size;
        message[n + r].at = (char *)dvt_data(flat) + dvti_rank_row(m->total, r) * m->size;
        message[n + r].bytes = dvti_slice_length(m, r) * m->size;
    }
    if (flat && dvti_ranks_exchange(m->function, message, message + n) != DVT_OK)
        flat = NULL;
    dvti_disown(sum);
    dvti_free(in);
    dvti_free(out);
    dvti_free(message);
    return flat;
}

/* Sums all dtypes, one after the other, into column[]. */
static bool dvti_merge_all(dvti_rank_merge *m, dvt_array **column) {
    int d, i;
    for (d = 0; d < DVT_DTYPE_COUNT; d++) {
        dvt_array *flat;
        int64_t at = 0;
        m->dtype = (dvt_dtype)d;
        m->size = dvt_dtype_size(m->dtype);
        m->total = 0;
        for (i = 0; i < m->columns; i++)
            if (dvti_column_is(m, i))
                m->total += dvt_size(m->like[i]);
        if (!m->total)
            continue;
        flat = dvti_merge_dtype(m);
        if (!flat)
            return false;
        for (i = 0; i < m->columns; i++)
            if (dvti_column_is(m, i)) {
                dvt_array *view = dvti_flat_column(m, flat, i, &at);
                if (!view)
                    return false;
                column[i] = (dvt_array *)dvti_own(view);
            }
    }
    return true;
}

DVTI_FN bool dvti_ranks_merge(const char *function, dvti_part_batch *p, dvt_array *const *like,
                              int columns) {
    const size_t bytes = (size_t)dvt_num_ranks() * sizeof(dvti_rank_sums);
    dvti_rank_sums own, *all = (dvti_rank_sums *)dvti_alloc(bytes);
    dvti_part_sum total;
    dvti_rank_merge m;
    int64_t sums = 0;
    bool good;
    int i;
    memset(&own, 0, sizeof own);
    memset(&m, 0, sizeof m);
    own.n = (int32_t)DVTI_MIN(p->n, DVTI_MOST_SUMS);
    for (i = 0; i < own.n; i++) {
        own.at[i][0] = p->sum[i].start;
        own.at[i][1] = p->sum[i].level;
    }
    total.start = 0;
    for (total.level = 0; (1 << total.level) < p->parts;)
        total.level++;
    total.column = (dvt_array **)dvti_alloc_zero((size_t)columns * sizeof *total.column);
    good =
        all && total.column && dvti_grow((void **)&p->sum, &p->capacity, p->n + 1, sizeof *p->sum);
    if (!good)
        dvti_fail_memory(function, (int64_t)bytes);
    good = good && dvti_ranks_gather(function, &own, sizeof own, all) == DVT_OK;
    for (i = 0; good && i < dvt_num_ranks(); i++)
        sums += all[i].n;
    m.function = function;
    m.p = p;
    m.like = like;
    m.columns = columns;
    m.sums = all;
    if (good && sums)
        good = dvti_merge_all(&m, total.column);
    if (good) {
        while (p->n)
            dvti_part_sum_free(&p->sum[--p->n], columns);
        if (sums) {
            p->sum[p->n++] = total;
            total.column = NULL;
        }
    }
    dvti_part_sum_free(&total, columns);
    dvti_free(all);
    return good;
}

DVTI_FN bool dvti_ranks_sum_begin(const char *function, dvti_part_batch *p, int columns) {
    memset(p, 0, sizeof *p);
    p->parts = dvt_num_ranks();
    p->rows = p->parts;
    p->sum = (dvti_part_sum *)dvti_alloc_zero(sizeof *p->sum);
    if (p->sum) {
        p->n = p->capacity = 1;
        p->sum[0].start = dvt_rank();
        p->sum[0].column =
            (dvt_array **)dvti_alloc_zero((size_t)columns * sizeof *p->sum[0].column);
        if (p->sum[0].column)
            return true;
    }
    dvti_fail_memory(function, columns * (int64_t)sizeof(dvt_array *));
    return false;
}

DVTI_FN void dvti_ranks_sum_end(dvti_part_batch *p, int columns) {
    while (p->n)
        dvti_part_sum_free(&p->sum[--p->n], columns);
    dvti_free(p->sum);
}

/* ---- arrays ---- */
DVT_API dvt_status dvt_all_reduce_ranks(dvt_array *x) {
    static const char *const function = "dvt_all_reduce_ranks";
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvti_part_batch p;
    bool good;
    if (!x)
        return dvti_null(function, "x");
    if (x->dtype == DVT_BOOL)
        return dvti_fail(DVT_ERR_DTYPE, "%s: x is %s; expected numbers: convert it with dvt_astype",
                         function, dvti_describe(x));
    if (!dvti_writable(function, x))
        return dvti_failure();
    if (dvt_num_ranks() == 1)
        return DVT_OK;
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    good = dvti_ranks_sum_begin(function, &p, 1);
    if (good) {
        p.sum[0].column[0] = (dvt_array *)dvti_own(x);
        good = dvti_ranks_merge(function, &p, &x, 1) &&
               (!p.sum[0].column[0] || dvt_copy_into(x, p.sum[0].column[0]));
    }
    dvti_ranks_sum_end(&p, 1);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return good ? DVT_OK : dvti_failure();
}

DVTI_FN dvt_status dvti_ranks_broadcast(const char *function, dvt_array *x, int root) {
    const int n = dvt_num_ranks(), rank = dvt_rank();
    dvti_message *message = dvti_messages(function);
    dvt_array *host = message ? dvt_empty(x->shape, x->dtype, dvt_cpu()) : NULL;
    bool good = host && (rank != root || dvt_copy_into(host, x));
    int r;
    for (r = 0; r < n && good; r++) {
        message[r].at = message[n + r].at = (char *)dvt_data(host);
        message[r].bytes = rank == root && r != root ? dvt_nbytes(x) : 0;
    }
    if (good && rank != root)
        message[n + root].bytes = dvt_nbytes(x);
    good = good && dvti_ranks_exchange(function, message, message + n) == DVT_OK &&
           (rank == root || dvt_copy_into(x, host));
    dvti_free(message);
    return good ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_broadcast_ranks(dvt_array *x, int root) {
    static const char *const function = "dvt_broadcast_ranks";
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_status status;
    if (!x)
        return dvti_null(function, "x");
    if (root < 0 || root >= dvt_num_ranks())
        return dvti_fail(DVT_ERR_RANGE, "%s: root is %d; expected a rank, %s", function, root,
                         dvti_range_text(0, dvt_num_ranks() - 1));
    if (!dvti_writable(function, x))
        return dvti_failure();
    if (dvt_num_ranks() == 1)
        return DVT_OK;
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    status = dvti_ranks_broadcast(function, x, root);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return status;
}

#undef DVTI_MOST_SUMS
