/* Copies within one dtype: bits are moved as they are. A conversion through float would make a
   signaling NaN of 16 bits quiet.

   If source and result are contiguous along different axes, a copy is a transpose. It visits panels
   of 64 columns of the result, and in a panel blocks of 16 x 16. So four cache lines of a row are
   written one after the other, and each line of either side is loaded once. Otherwise lines of rows
   that are a power of two apart would evict each other. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_TRANSPOSE 16
#define DVTI_TRANSPOSE_COLUMNS 64

/* y[r * y_step + c] = x[c * x_step + r] for rows r and columns c. */
#define DVTI_DEFINE_TRANSPOSE(name, T)                                                             \
    static void name(const void *from, int64_t x_step, void *to, int64_t y_step, int64_t rows,     \
                     int64_t columns) {                                                            \
        const T *x = (const T *)from;                                                              \
        T *y = (T *)to;                                                                            \
        int64_t r, c;                                                                              \
        for (r = 0; r < rows; r++)                                                                 \
            for (c = 0; c < columns; c++)                                                          \
                y[r * y_step + c] = x[c * x_step + r];                                             \
    }
DVTI_DEFINE_TRANSPOSE(dvti_transpose_8, uint8_t)
DVTI_DEFINE_TRANSPOSE(dvti_transpose_16, uint16_t)
DVTI_DEFINE_TRANSPOSE(dvti_transpose_32, uint32_t)
DVTI_DEFINE_TRANSPOSE(dvti_transpose_64, uint64_t)
#undef DVTI_DEFINE_TRANSPOSE

/* y[k * y_step] = x[k * x_step] for n elements. */
#define DVTI_DEFINE_MOVE(name, T)                                                                  \
    static void name(const void *from, int64_t x_step, void *to, int64_t y_step, int64_t n) {      \
        const T *x = (const T *)from;                                                              \
        T *y = (T *)to;                                                                            \
        int64_t k;                                                                                 \
        if (y_step == 1)                                                                           \
            for (k = 0; k < n; k++)                                                                \
                y[k] = x[k * x_step];                                                              \
        else                                                                                       \
            for (k = 0; k < n; k++)                                                                \
                y[k * y_step] = x[k * x_step];                                                     \
    }
DVTI_DEFINE_MOVE(dvti_move_8, uint8_t)
DVTI_DEFINE_MOVE(dvti_move_16, uint16_t)
DVTI_DEFINE_MOVE(dvti_move_32, uint32_t)
DVTI_DEFINE_MOVE(dvti_move_64, uint64_t)
#undef DVTI_DEFINE_MOVE

/* ---- transposes ---- */
typedef struct dvti_transpose_plan {
    const dvti_simd *simd;
    dvti_view in, out;             /* without the two axes below */
    int64_t size;                  /* of an element */
    int64_t rows, columns;         /* out is contiguous along rows, in along columns */
    int64_t row_step, column_step; /* from row to row of out, from column to column of in */
    int64_t panels;
} dvti_transpose_plan;

static void dvti_transpose_block(const dvti_transpose_plan *p, const void *x, void *y, int64_t rows,
                                 int64_t columns) {
    if (p->size == 4 && rows == DVTI_TRANSPOSE && columns == DVTI_TRANSPOSE)
        p->simd->transpose((const float *)x, p->column_step, (float *)y, p->row_step);
    else if (p->size == 4)
        dvti_transpose_32(x, p->column_step, y, p->row_step, rows, columns);
    else if (p->size == 8)
        dvti_transpose_64(x, p->column_step, y, p->row_step, rows, columns);
    else if (p->size == 2)
        dvti_transpose_16(x, p->column_step, y, p->row_step, rows, columns);
    else
        dvti_transpose_8(x, p->column_step, y, p->row_step, rows, columns);
}

static void dvti_transpose_columns(void *user, int64_t begin, int64_t end) {
    const dvti_transpose_plan *p = (const dvti_transpose_plan *)user;
    int64_t r, c;
    for (; begin < end; begin++) {
        int64_t matrix = begin / p->panels, column = begin % p->panels * DVTI_TRANSPOSE_COLUMNS;
        int64_t last = DVTI_MIN(p->columns, column + DVTI_TRANSPOSE_COLUMNS);
        int64_t x = dvti_cursor_at(&p->in, matrix).at, y = dvti_cursor_at(&p->out, matrix).at;
        for (r = 0; r < p->rows; r += DVTI_TRANSPOSE)
            for (c = column; c < last; c += DVTI_TRANSPOSE)
                dvti_transpose_block(
                    p, (const char *)p->in.data + (x + c * p->column_step + r) * p->size,
                    (char *)p->out.data + (y + r * p->row_step + c) * p->size,
                    DVTI_MIN(p->rows - r, DVTI_TRANSPOSE), DVTI_MIN(last - c, DVTI_TRANSPOSE));
    }
}

/* The axis along which the view is contiguous; -1 when there is none. */
static int dvti_transpose_axis(const dvti_view *view) {
    int i;
    for (i = 0; i < view->ndim; i++)
        if (view->stride[i] == 1 && view->dim[i] > 1)
            return i;
    return -1;
}

static void dvti_transpose_drop(dvti_view *view, int a, int b) {
    int i, to = 0;
    for (i = 0; i < view->ndim; i++)
        if (i != a && i != b) {
            view->dim[to] = view->dim[i];
            view->stride[to++] = view->stride[i];
        }
    view->ndim = to;
    dvti_merge_axes(view);
}

static bool dvti_copy_transposed(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    dvti_transpose_plan p;
    int row, column;
    if (dvti_view_size(out) < DVTI_TRANSPOSE * DVTI_TRANSPOSE)
        return false;
    row = dvti_transpose_axis(in);
    column = dvti_transpose_axis(out);
    if (row < 0 || column < 0 || row == column || out->dim[row] < 8 || out->dim[column] < 8)
        return false;
    p.simd = simd;
    p.in = *in;
    p.out = *out;
    p.size = dvt_dtype_size(out->dtype);
    p.rows = out->dim[row];
    p.columns = out->dim[column];
    p.row_step = out->stride[row];
    p.column_step = in->stride[column];
    p.panels = (p.columns + DVTI_TRANSPOSE_COLUMNS - 1) / DVTI_TRANSPOSE_COLUMNS;
    dvti_transpose_drop(&p.in, row, column);
    dvti_transpose_drop(&p.out, row, column);
    dvti_parallel_for(dvti_view_size(&p.out) * p.panels,
                      0.3 * (double)(p.rows * DVTI_MIN(p.columns, DVTI_TRANSPOSE_COLUMNS)),
                      dvti_transpose_columns, &p);
    return true;
}

/* ---- other copies ---- */
typedef struct dvti_copy_plan {
    dvti_view in, out;
    void (*move)(const void *from, int64_t x_step, void *to, int64_t y_step, int64_t n);
} dvti_copy_plan;

static int64_t dvti_copy_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* The order of positions is free: that of the result's memory. */
static void dvti_copy_order_axes(dvti_view *in, dvti_view *out) {
    int i, j;
    for (i = 1; i < out->ndim; i++)
        for (j = i;
             j > 0 && dvti_copy_distance(out->stride[j - 1]) < dvti_copy_distance(out->stride[j]);
             j--) {
            dvti_view *view = in;
            for (;;) {
                int64_t dim = view->dim[j], stride = view->stride[j];
                view->dim[j] = view->dim[j - 1];
                view->stride[j] = view->stride[j - 1];
                view->dim[j - 1] = dim;
                view->stride[j - 1] = stride;
                if (view == out)
                    break;
                view = out;
            }
        }
}

static int64_t dvti_copy_left(const dvti_view *view, const dvti_cursor *cursor) {
    return view->dim[view->ndim - 1] - cursor->index[view->ndim - 1];
}

static void dvti_copy_range(void *user, int64_t begin, int64_t end) {
    const dvti_copy_plan *plan = (const dvti_copy_plan *)user;
    const dvti_view *in = &plan->in, *out = &plan->out;
    const int64_t size = dvt_dtype_size(out->dtype), from_step = in->stride[in->ndim - 1];
    const int64_t to_step = out->stride[out->ndim - 1];
    dvti_cursor from = dvti_cursor_at(in, begin), to = dvti_cursor_at(out, begin);
    int64_t n;
    for (; begin < end; begin += n) {
        const char *x = (const char *)in->data + from.at * size;
        char *y = (char *)out->data + to.at * size;
        n = DVTI_MIN(end - begin, DVTI_MIN(dvti_copy_left(in, &from), dvti_copy_left(out, &to)));
        if (from_step == 1 && to_step == 1)
            memmove(y, x, (size_t)(n * size));
        else
            plan->move(x, from_step, y, to_step, n);
        dvti_cursor_advance(&from, in, n);
        dvti_cursor_advance(&to, out, n);
    }
}

DVTI_FN bool dvti_cpu_copy(const dvti_launch *launch, const dvti_simd *simd) {
    const int64_t size = dvti_view_size(&launch->out[0]);
    const int bytes = (int)dvt_dtype_size(launch->out[0].dtype);
    dvti_copy_plan plan;
    if (launch->i[0] > 0 || launch->in[0].dtype != launch->out[0].dtype)
        return false;
    if (size == 0 || dvti_copy_transposed(launch, simd))
        return true;
    plan.in = launch->in[0];
    plan.out = launch->out[0];
    plan.move = bytes == 8   ? dvti_move_64
                : bytes == 4 ? dvti_move_32
                : bytes == 2 ? dvti_move_16
                             : dvti_move_8;
    dvti_copy_order_axes(&plan.in, &plan.out);
    dvti_merge_axes(&plan.in);
    dvti_merge_axes(&plan.out);
    dvti_parallel_for(size, 0.3, dvti_copy_range, &plan);
    return true;
}

#undef DVTI_TRANSPOSE
#undef DVTI_TRANSPOSE_COLUMNS
