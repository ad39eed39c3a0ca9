/* Indexing: take (slices by index), take_along (one element per position), their adjoints, which
   add (the gradients), and one-hot rows. */
#include "3_cpu/dvt_cpu.h"

/* Returns the position of an index. Negative ones count from the end; positions outside are
   clamped. n > 0. */
static int64_t dvti_index_clamp(int64_t index, int64_t n) {
    if (index < 0)
        index += n;
    return index < 0 ? 0 : index >= n ? n - 1 : index;
}

/* Returns whether sums are formed in float32 in the workspace and rounded once. That holds for
   16-bit floats. */
static bool dvti_index_wide(const dvti_launch *launch) {
    bool adds = launch->op == DVTI_OP_take_add || launch->op == DVTI_OP_take_along_add;
    return adds && dvt_dtype_size(launch->out[0].dtype) == 2;
}

DVTI_FN int64_t dvti_cpu_index_workspace(const dvti_launch *launch) {
    return dvti_index_wide(launch) ? dvti_view_size(&launch->out[0]) * 4 : 0;
}

/* Returns the accumulator, zeroed: a contiguous view of the result's shape. */
static dvti_view dvti_index_sums(const dvti_launch *launch) {
    dvti_view sums = launch->out[0];
    if (dvti_index_wide(launch)) {
        sums.data = launch->workspace;
        sums.dtype = DVT_F32;
    }
    memset(sums.data, 0, (size_t)(dvti_view_size(&sums) * dvt_dtype_size(sums.dtype)));
    return sums;
}

static void dvti_index_round(const dvti_launch *launch, const dvti_view *sums) {
    dvti_view out = launch->out[0];
    float x[DVTI_BLOCK];
    int64_t at, n, size = dvti_view_size(&out);
    if (sums->data == out.data)
        return;
    dvti_merge_axes(&out);
    for (at = 0; at < size; at += n) {
        n = DVTI_MIN(size - at, DVTI_BLOCK);
        memcpy(x, (const float *)sums->data + at, (size_t)n * sizeof *x);
        dvti_store_block(&out, at, n, DVTI_F32, x);
    }
}

/* Computes to[k] += from[k], both contiguous. */
static void dvti_index_add(void *to, dvt_dtype to_dtype, const void *from, dvt_dtype dtype,
                           int64_t n) {
    double x[DVTI_BLOCK], y[DVTI_BLOCK];
    int64_t at, k, m;
    for (at = 0; at < n; at += m) {
        m = DVTI_MIN(n - at, DVTI_BLOCK);
        dvti_load_row_f64((const char *)from + at * dvt_dtype_size(dtype), dtype, 1, m, x);
        dvti_load_row_f64((char *)to + at * dvt_dtype_size(to_dtype), to_dtype, 1, m, y);
        for (k = 0; k < m; k++)
            y[k] += x[k];
        dvti_store_row_f64((char *)to + at * dvt_dtype_size(to_dtype), to_dtype, 1, m, y);
    }
}

/* ---- take: (A, N, B) at (M) gives (A, M, B) ---- */
typedef struct dvti_take_plan {
    const dvti_launch *launch;
    dvti_view sums;
} dvti_take_plan;

static void dvti_take_rows(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = ((const dvti_take_plan *)user)->launch;
    const dvti_view *in = &launch->in[0];
    const int64_t *index = (const int64_t *)launch->in[1].data;
    int64_t n = in->dim[1], m = launch->out[0].dim[1], row;
    size_t bytes = (size_t)(in->dim[2] * dvt_dtype_size(in->dtype));
    for (row = begin; row < end; row++) {
        int64_t from = row / m * n + dvti_index_clamp(index[row % m], n);
        memcpy((char *)launch->out[0].data + (size_t)row * bytes,
               (const char *)in->data + (size_t)from * bytes, bytes);
    }
}

/* The least number of columns per block, so that reading the indices costs little. */
#define DVTI_TAKE_COLUMNS 64

/* Adds to the column blocks begin..end-1 of A * B columns. Each column adds in the order of the
   indices, for any number of threads. */
static void dvti_take_add_columns(void *user, int64_t begin, int64_t end) {
    const dvti_take_plan *plan = (const dvti_take_plan *)user;
    const dvti_view *in = &plan->launch->in[0], *sums = &plan->sums;
    const int64_t *index = (const int64_t *)plan->launch->in[1].data;
    int64_t m = in->dim[1], n = sums->dim[1], b = sums->dim[2], j, column, width;
    begin *= DVTI_TAKE_COLUMNS;
    end = DVTI_MIN(end * DVTI_TAKE_COLUMNS, sums->dim[0] * b);
    for (; begin < end; begin += width) {
        int64_t a = begin / b;
        column = begin % b;
        width = DVTI_MIN(end - begin, b - column);
        for (j = 0; j < m; j++) {
            int64_t to = (a * n + dvti_index_clamp(index[j], n)) * b + column;
            int64_t from = (a * m + j) * b + column;
            dvti_index_add((char *)sums->data + to * dvt_dtype_size(sums->dtype), sums->dtype,
                           (const char *)in->data + from * dvt_dtype_size(in->dtype), in->dtype,
                           width);
        }
    }
}

static void dvti_cpu_take(const dvti_launch *launch) {
    dvti_take_plan plan;
    int64_t b = launch->out[0].dim[2], m = launch->in[0].dim[1];
    plan.launch = launch;
    if (launch->op == DVTI_OP_take) {
        dvti_parallel_for(launch->out[0].dim[0] * launch->out[0].dim[1], 5 + 0.6 * (double)b,
                          dvti_take_rows, &plan);
        return;
    }
    plan.sums = dvti_index_sums(launch);
    dvti_parallel_for((launch->out[0].dim[0] * b + DVTI_TAKE_COLUMNS - 1) / DVTI_TAKE_COLUMNS,
                      0.6 * DVTI_TAKE_COLUMNS * (double)(m + 1), dvti_take_add_columns, &plan);
    dvti_index_round(launch, &plan.sums);
}

#undef DVTI_TAKE_COLUMNS

/* ---- take_along: one element per position ---- */
typedef struct dvti_along_plan {
    const dvti_launch *launch;
    dvti_view at;     /* the indices: in[1] */
    dvti_view source; /* in[0]; take_along: with stride 0 along the axis */
    dvti_view target; /* the result or the sums; take_along_add: with stride 0 along the axis */
    int64_t extent, stride; /* of the indexed array along the axis */
    int64_t row;            /* positions per work item */
} dvti_along_plan;

static void dvti_along_items(void *user, int64_t begin, int64_t end) {
    const dvti_along_plan *plan = (const dvti_along_plan *)user;
    bool adds = plan->launch->op == DVTI_OP_take_along_add;
    int64_t position = begin * plan->row, last = end * plan->row, k, n, index[DVTI_BLOCK];
    int64_t from_size = dvt_dtype_size(plan->source.dtype),
            to_size = dvt_dtype_size(plan->target.dtype);
    dvti_cursor from = dvti_cursor_at(&plan->source, position);
    dvti_cursor to = dvti_cursor_at(&plan->target, position);
    for (; position < last; position += n) {
        n = DVTI_MIN(last - position, DVTI_BLOCK);
        dvti_load_block(&plan->at, position, n, DVTI_I64, index);
        for (k = 0; k < n; k++) {
            int64_t step = dvti_index_clamp(index[k], plan->extent) * plan->stride;
            const char *x =
                (const char *)plan->source.data + (from.at + (adds ? 0 : step)) * from_size;
            char *y = (char *)plan->target.data + (to.at + (adds ? step : 0)) * to_size;
            if (adds)
                dvti_index_add(y, plan->target.dtype, x, plan->source.dtype, 1);
            else
                memcpy(y, x, (size_t)from_size);
            dvti_cursor_advance(&from, &plan->source, 1);
            dvti_cursor_advance(&to, &plan->target, 1);
        }
    }
}

static void dvti_cpu_take_along(const dvti_launch *launch) {
    const dvti_view *positions = &launch->in[1];
    dvti_view sums = launch->out[0], *indexed;
    dvti_along_plan plan;
    int axis = (int)launch->i[0];
    bool adds = launch->op == DVTI_OP_take_along_add;
    int64_t size = dvti_view_size(positions), items;
    if (adds)
        sums = dvti_index_sums(launch);
    if (size == 0) {
        if (adds) /* no indices, but the result must still be zeroed */
            dvti_index_round(launch, &sums);
        return;
    }
    plan.launch = launch;
    plan.at = *positions;
    plan.source = launch->in[0];
    plan.target = sums;
    indexed = adds ? &plan.target : &plan.source;
    plan.extent = indexed->dim[axis];
    plan.stride = indexed->stride[axis];
    indexed->dim[axis] = positions->dim[axis];
    indexed->stride[axis] = 0;
    /* Only positions that differ in nothing but the axis can collide. Blocks of the first axis are
       therefore independent unless it is that axis. */
    items = adds && axis == 0 ? 1 : positions->dim[0];
    plan.row = size / items;
    dvti_merge_axes(&plan.at);
    dvti_merge_axes(&plan.source);
    dvti_merge_axes(&plan.target);
    dvti_parallel_for(items, 2.5 * (double)plan.row, dvti_along_items, &plan);
    if (adds)
        dvti_index_round(launch, &sums);
}

/* ---- one_hot ---- */
static void dvti_one_hot_rows(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    const int64_t *index = (const int64_t *)launch->in[0].data;
    int64_t depth = out->dim[out->ndim - 1], size = dvt_dtype_size(out->dtype), row;
    memset((char *)out->data + begin * depth * size, 0, (size_t)((end - begin) * depth * size));
    for (row = begin; row < end; row++)
        if (index[row] >= 0 && index[row] < depth)
            dvti_store_i64(out->data, out->dtype, row * depth + index[row], 1);
}

DVTI_FN void dvti_cpu_index(const dvti_launch *launch) {
    if (launch->op == DVTI_OP_take || launch->op == DVTI_OP_take_add)
        dvti_cpu_take(launch);
    else if (launch->op == DVTI_OP_take_along || launch->op == DVTI_OP_take_along_add)
        dvti_cpu_take_along(launch);
    else
        dvti_parallel_for(dvti_view_size(&launch->in[0]),
                          5 + 0.3 * (double)launch->out[0].dim[launch->out[0].ndim - 1],
                          dvti_one_hot_rows, (void *)launch);
}
