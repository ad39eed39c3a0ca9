/* The oracle of convolution: the definition, one sum per result, in float64, rounded once. Any
   float dtype, one thread. */
#include "3_cpu/dvt_cpu.h"

/* x (n, c, h, w), w (o, c / groups, kh, kw), y (n, o, oh, ow). The views are contiguous. */
typedef struct dvti_ref_conv {
    const dvti_view *x, *w, *y;
    int64_t cg, og; /* input and output channels of a group */
    const int64_t *stride, *padding, *dilation;
} dvti_ref_conv;

static inline double dvti_ref_conv_get(const dvti_view *v, int64_t a, int64_t b, int64_t i,
                                       int64_t j) {
    const int64_t at = ((a * v->dim[1] + b) * v->dim[2] + i) * v->dim[3] + j;
    return v->dtype == DVT_F64 ? ((const double *)v->data)[at]
                               : dvti_load_f64(v->data, v->dtype, at);
}

/* Finds the row (axis 0) or column of x that window i reads through row or column k of the kernel.
   Returns false for padding. */
static inline bool dvti_ref_conv_source(const dvti_ref_conv *p, int axis, int64_t i, int64_t k,
                                        int64_t *at) {
    *at = i * p->stride[axis] + k * p->dilation[axis] - p->padding[axis];
    return *at >= 0 && *at < p->x->dim[2 + axis];
}

/* Finds the window that reads row or column `at` of x through k. Returns false if there is none. */
static inline bool dvti_ref_conv_window(const dvti_ref_conv *p, int axis, int64_t at, int64_t k,
                                        int64_t *i) {
    const int64_t from = at + p->padding[axis] - k * p->dilation[axis];
    *i = from / p->stride[axis];
    return from >= 0 && from % p->stride[axis] == 0 && *i < p->y->dim[2 + axis];
}

static double dvti_ref_conv_forward(const dvti_ref_conv *p, int64_t n, int64_t o, int64_t i,
                                    int64_t j) {
    double sum = 0;
    int64_t c, r, s, row, column;
    for (c = 0; c < p->cg; c++)
        for (r = 0; r < p->w->dim[2]; r++)
            for (s = 0; s < p->w->dim[3] && dvti_ref_conv_source(p, 0, i, r, &row); s++)
                if (dvti_ref_conv_source(p, 1, j, s, &column))
                    sum += dvti_ref_conv_get(p->w, o, c, r, s) *
                           dvti_ref_conv_get(p->x, n, o / p->og * p->cg + c, row, column);
    return sum;
}

static double dvti_ref_conv_data(const dvti_ref_conv *p, int64_t n, int64_t c, int64_t row,
                                 int64_t column) {
    const int64_t first = c / p->cg * p->og;
    double sum = 0;
    int64_t o, r, s, i, j;
    for (o = first; o < first + p->og; o++)
        for (r = 0; r < p->w->dim[2]; r++)
            for (s = 0; s < p->w->dim[3] && dvti_ref_conv_window(p, 0, row, r, &i); s++)
                if (dvti_ref_conv_window(p, 1, column, s, &j))
                    sum += dvti_ref_conv_get(p->w, o, c % p->cg, r, s) *
                           dvti_ref_conv_get(p->y, n, o, i, j);
    return sum;
}

static double dvti_ref_conv_weight(const dvti_ref_conv *p, int64_t o, int64_t c, int64_t r,
                                   int64_t s) {
    double sum = 0;
    int64_t n, i, j, row, column;
    for (n = 0; n < p->x->dim[0]; n++)
        for (i = 0; i < p->y->dim[2]; i++)
            for (j = 0; j < p->y->dim[3] && dvti_ref_conv_source(p, 0, i, r, &row); j++)
                if (dvti_ref_conv_source(p, 1, j, s, &column))
                    sum += dvti_ref_conv_get(p->y, n, o, i, j) *
                           dvti_ref_conv_get(p->x, n, o / p->og * p->cg + c, row, column);
    return sum;
}

DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch) {
    const bool data = launch->op == DVTI_OP_conv2d_data;
    const bool weight = launch->op == DVTI_OP_conv2d_weight;
    const dvti_view *out = &launch->out[0], *bias = &launch->in[2];
    dvti_ref_conv p;
    int64_t a, b, i, j, at = 0;
    p.x = data ? out : &launch->in[0];
    p.w = weight ? out : &launch->in[1];
    p.y = data ? &launch->in[0] : weight ? &launch->in[1] : out;
    p.cg = p.w->dim[1];
    p.og = p.w->dim[0] / launch->i[6];
    p.stride = launch->i;
    p.padding = launch->i + 2;
    p.dilation = launch->i + 4;
    for (a = 0; a < out->dim[0]; a++)
        for (b = 0; b < out->dim[1]; b++)
            for (i = 0; i < out->dim[2]; i++)
                for (j = 0; j < out->dim[3]; j++) {
                    double sum = data     ? dvti_ref_conv_data(&p, a, b, i, j)
                                 : weight ? dvti_ref_conv_weight(&p, a, b, i, j)
                                          : dvti_ref_conv_forward(&p, a, b, i, j);
                    if (launch->op == DVTI_OP_conv2d && launch->n_in == 3)
                        sum += dvti_load_f64(bias->data, bias->dtype, b);
                    dvti_store_f64(out->data, out->dtype, at++, sum);
                }
}
