/* Copies across the order of memory: rows that become columns. A strip of 64 columns is done in blocks of 16 x 16, so that four cache lines
   of a row are written one after the other, and every line of either side is touched in one go: lines of rows that are a power of two
   apart push each other out of the cache. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_TURN 16
#define DVTI_TURN_STRIP 64

typedef struct dvti_turn_plan {
    const dvti_simd *simd;
    dvti_view in, out;     /* the axes apart from the two below */
    int64_t size;          /* of an element */
    int64_t rows, columns; /* of out: elements of a row lie side by side; in: those of a column */
    int64_t row_step, column_step; /* of out from row to row, of in from column to column */
    int64_t strips;
} dvti_turn_plan;

/* Row by row of `to`, for any number of rows and columns. */
#define DVTI_DEFINE_TURN(name, T)                                                                  \
    static void name(const void *from, int64_t from_step, void *to, int64_t to_step, int64_t rows, \
                     int64_t columns) {                                                            \
        const T *x = (const T *)from;                                                              \
        T *y = (T *)to;                                                                            \
        int64_t r, c;                                                                              \
        for (r = 0; r < rows; r++)                                                                 \
            for (c = 0; c < columns; c++)                                                          \
                y[r * to_step + c] = x[c * from_step + r];                                         \
    }
DVTI_DEFINE_TURN(dvti_turn_8, uint8_t)
DVTI_DEFINE_TURN(dvti_turn_16, uint16_t)
DVTI_DEFINE_TURN(dvti_turn_32, uint32_t)
DVTI_DEFINE_TURN(dvti_turn_64, uint64_t)
#undef DVTI_DEFINE_TURN

static void dvti_turn_block(const dvti_turn_plan *p, const void *x, void *y, int64_t rows,
                            int64_t columns) {
    if (p->size == 4 && rows == DVTI_TURN && columns == DVTI_TURN)
        p->simd->turn((const float *)x, p->column_step, (float *)y, p->row_step);
    else if (p->size == 4)
        dvti_turn_32(x, p->column_step, y, p->row_step, rows, columns);
    else if (p->size == 8)
        dvti_turn_64(x, p->column_step, y, p->row_step, rows, columns);
    else if (p->size == 2)
        dvti_turn_16(x, p->column_step, y, p->row_step, rows, columns);
    else
        dvti_turn_8(x, p->column_step, y, p->row_step, rows, columns);
}

static void dvti_turn_strips(void *user, int64_t begin, int64_t end) {
    const dvti_turn_plan *p = (const dvti_turn_plan *)user;
    int64_t r, c;
    for (; begin < end; begin++) {
        int64_t matrix = begin / p->strips, column = begin % p->strips * DVTI_TURN_STRIP;
        int64_t last = DVTI_MIN(p->columns, column + DVTI_TURN_STRIP);
        int64_t x = dvti_cursor_at(&p->in, matrix).at, y = dvti_cursor_at(&p->out, matrix).at;
        for (r = 0; r < p->rows; r += DVTI_TURN)
            for (c = column; c < last; c += DVTI_TURN)
                dvti_turn_block(p,
                                (const char *)p->in.data + (x + c * p->column_step + r) * p->size,
                                (char *)p->out.data + (y + r * p->row_step + c) * p->size,
                                DVTI_MIN(p->rows - r, DVTI_TURN), DVTI_MIN(last - c, DVTI_TURN));
    }
}

/* The axis along which elements lie side by side; -1 when there is none. */
static int dvti_turn_axis(const dvti_view *view) {
    int i;
    for (i = 0; i < view->ndim; i++)
        if (view->stride[i] == 1 && view->dim[i] > 1)
            return i;
    return -1;
}

static void dvti_turn_drop(dvti_view *view, int a, int b) {
    int i, to = 0;
    for (i = 0; i < view->ndim; i++)
        if (i != a && i != b) {
            view->dim[to] = view->dim[i];
            view->stride[to++] = view->stride[i];
        }
    view->ndim = to;
    dvti_merge_axes(view);
}

/* A copy between arrays of one dtype, whose side-by-side axes differ. */
DVTI_FN bool dvti_fast_transpose(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    dvti_turn_plan p;
    int row, column;
    if (launch->op != DVTI_OP_copy || launch->n_in != 1 || launch->i[0] > 0 ||
        in->dtype != out->dtype || dvti_view_size(out) < DVTI_TURN * DVTI_TURN)
        return false;
    row = dvti_turn_axis(in);
    column = dvti_turn_axis(out);
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
    p.strips = (p.columns + DVTI_TURN_STRIP - 1) / DVTI_TURN_STRIP;
    dvti_turn_drop(&p.in, row, column);
    dvti_turn_drop(&p.out, row, column);
    dvti_parallel_for(dvti_view_size(&p.out) * p.strips,
                      0.3 * (double)(p.rows * DVTI_MIN(p.columns, DVTI_TURN_STRIP)),
                      dvti_turn_strips, &p);
    return true;
}

#undef DVTI_TURN
#undef DVTI_TURN_STRIP
