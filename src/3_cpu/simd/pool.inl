/* Pooling of planes of floats (dvti_pooling). Reduces the rows of a window to one row in a buffer,
   then its columns:

     rows of x    r0 ........      buffer   n n m m m m m m n n      y   w0 w1 w2 ..
                  r1 ........  ->           neutral elements     ->
                                            next to the plane

   So windows that reach over the left and right edges need no care. */

/* Returns NaN if either is NaN, else the larger. */
DVTI_INLINE V(f) V(pool_most)(V(f) a, V(f) b) {
    return V(select)(V(unord)(a, a), a, V(max)(a, b));
}

DVTI_INLINE V(f) V(pool_two)(bool mean, V(f) a, V(f) b) {
    return mean ? V(add)(a, b) : V(pool_most)(a, b);
}

/* Reduces some rows of x, from column 0 of the plane on. */
DVTI_INLINE void V(pool_rows)(const dvti_pooling *p, bool mean, const float *x, int64_t rows,
                              float *to) {
    int64_t j, r;
    for (j = 0; j < p->width; j += 16) {
        V(f) v = V(load_partial)(x + j, p->width - j);
        for (r = 1; r < rows; r++)
            v = V(pool_two)(mean, v, V(load_partial)(x + r * p->width + j, p->width - j));
        V(store_partial)(to + j, p->width - j, v);
    }
}

/* Writes one row of results from the buffer. count: elements of a column that a mean counts. */
DVTI_INLINE void V(pool_columns)(const dvti_pooling *p, bool mean, const float *from, float count,
                                 float *y) {
    int64_t j, k;
    for (j = 0; j < p->windows[1]; j += 16) {
        const float *x = from + j * p->step;
        V(f) v, a, b;
        if (p->step == 1) {
            v = V(load)(x);
            for (k = 1; k < p->size[1]; k++)
                v = V(pool_two)(mean, v, V(load)(x + k));
        } else {
            a = V(load)(x);
            b = V(load)(x + 16);
            v = V(even)(a, b);
            for (k = 1; k < p->size[1]; k++) {
                if (k % 2 == 0) {
                    a = V(load)(x + k);
                    b = V(load)(x + k + 16);
                }
                v = V(pool_two)(mean, v, k % 2 ? V(odd)(a, b) : V(even)(a, b));
            }
        }
        if (mean)
            v = V(div)(v, V(mul)(V(set)(count), V(load)(p->counted + j)));
        V(store_partial)(y + j, p->windows[1] - j, v);
    }
}

/* Adjacent windows of 2 x 2 need no buffer. */
DVTI_INLINE void V(pool_row_of_pairs)(const dvti_pooling *p, bool mean, const float *x, float *y) {
    int64_t j, n;
    for (j = 0; j < p->windows[1]; j += 16, x += 32) {
        n = 2 * (p->windows[1] - j);
        V(f) a = V(pool_two)(mean, V(load_partial)(x, n), V(load_partial)(x + p->width, n));
        V(f) b = a, v;
        if (n > 16)
            b = V(pool_two)(mean, V(load_partial)(x + 16, n - 16),
                            V(load_partial)(x + p->width + 16, n - 16));
        v = V(pool_two)(mean, V(even)(a, b), V(odd)(a, b));
        if (mean)
            v = V(mul)(v, V(set)(0.25f));
        V(store_partial)(y + j, p->windows[1] - j, v);
    }
}

DVTI_INLINE void V(pool_planes_of_pairs)(const dvti_pooling *p, bool mean, int64_t first,
                                         int64_t last) {
    int64_t plane, i;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++)
            V(pool_row_of_pairs)(p, mean, p->x + (plane * p->height + 2 * i) * p->width,
                                 p->y + (plane * p->windows[0] + i) * p->windows[1]);
}

/* Buffers some rows before it reads any, so that no load waits for the stores before it. */
DVTI_INLINE void V(pool_planes_buffered)(const dvti_pooling *p, bool mean, int64_t first,
                                         int64_t last) {
    float buffer[DVTI_POOL_BUFFER];
    const int64_t area = p->buffered, together = DVTI_MIN(DVTI_POOL_BUFFER / area, 16);
    int64_t plane, i, row;
    for (i = 0; i < DVTI_POOL_BUFFER; i++)
        buffer[i] = mean ? 0 : -INFINITY;
    for (plane = first; plane < last; plane++) {
        const float *x = p->x + plane * p->height * p->width;
        float *y = p->y + plane * p->windows[0] * p->windows[1];
        for (i = 0; i < p->windows[0]; i += together) {
            int64_t end = DVTI_MIN(i + together, p->windows[0]);
            for (row = i; row < end; row++) {
                int64_t from = row * p->stride - p->padding[0];
                int64_t to = DVTI_MIN(from + p->size[0], p->height);
                from = DVTI_MAX(from, 0);
                V(pool_rows)(p, mean, x + from * p->width, to - from,
                             buffer + (row - i) * area + p->padding[1]);
            }
            for (row = i; row < end; row++) {
                int64_t from = row * p->stride - p->padding[0], to = from + p->size[0];
                if (p->inside) {
                    from = DVTI_MAX(from, 0);
                    to = DVTI_MIN(to, p->height);
                }
                to = DVTI_MIN(to, p->height + p->padding[0]);
                V(pool_columns)(p, mean, buffer + (row - i) * area, (float)(to - from),
                                y + row * p->windows[1]);
            }
        }
    }
}

DVTI_INLINE void V(pool_planes)(const dvti_pooling *p, bool mean, int64_t first, int64_t last) {
    if (p->pairs)
        V(pool_planes_of_pairs)(p, mean, first, last);
    else
        V(pool_planes_buffered)(p, mean, first, last);
}

static void V(pool_max)(const dvti_pooling *p, int64_t first, int64_t last) {
    V(pool_planes)(p, false, first, last);
}

static void V(pool_mean)(const dvti_pooling *p, int64_t first, int64_t last) {
    V(pool_planes)(p, true, first, last);
}

/* ---- gradients of adjacent windows of 2 x 2 ---- */
/* Splits 32 elements of a row, of which n exist, into even and odd ones. */
DVTI_INLINE void V(pool_pairs)(const float *x, int64_t n, V(f) * even, V(f) * odd) {
    V(f) a = V(load_partial)(x, n), b = n > 16 ? V(load_partial)(x + 16, n - 16) : V(zero)();
    *even = V(even)(a, b);
    *odd = V(odd)(a, b);
}

DVTI_INLINE void V(pool_zip)(float *x, int64_t n, V(f) even, V(f) odd) {
    V(store_partial)(x, n, V(zip_low)(even, odd));
    if (n > 16)
        V(store_partial)(x + 16, n - 16, V(zip_high)(even, odd));
}

/* Returns whether v equals the maximum. v is NaN only if the maximum is. */
DVTI_INLINE V(m) V(pool_is)(V(f) v, V(f) most) {
    return V(mor)(V(eq)(v, most), V(unord)(v, v));
}

/* Writes two rows of dx. x has the maxima; NULL: the gradient of a mean. relu_masked: a maximum of
   0 gets no gradient. */
DVTI_INLINE void V(pool_back_row)(const float *x, const float *g, float *dx, int64_t width,
                                  int64_t windows, bool relu_masked) {
    const V(f) zero = V(zero)(), none = V(set)(relu_masked ? 0 : NAN);
    int64_t j, n;
    for (j = 0; j < windows; j += 16) {
        /* 0 + -0 is 0, as where gradients are added */
        V(f) share = V(add)(zero, V(load_partial)(g + j, windows - j)), a, b, c, d, most;
        n = 2 * (windows - j);
        if (x) {
            V(m) is_a, is_b, is_c;
            V(pool_pairs)(x + 2 * j, n, &a, &b);
            V(pool_pairs)(x + width + 2 * j, n, &c, &d);
            most = V(pool_most)(V(pool_most)(a, b), V(pool_most)(c, d));
            share = V(select)(V(eq)(most, none), zero, share);
            is_a = V(pool_is)(a, most);
            is_b = V(pool_is)(b, most);
            is_c = V(pool_is)(c, most);
            a = V(select)(is_a, share, zero);
            b = V(select)(is_a, zero, V(select)(is_b, share, zero));
            is_b = V(mor)(is_a, is_b);
            c = V(select)(is_b, zero, V(select)(is_c, share, zero));
            d = V(select)(V(mor)(is_b, is_c), zero, share);
        } else {
            a = b = c = d = V(mul)(share, V(set)(0.25f));
        }
        V(pool_zip)(dx + 2 * j, n, a, b);
        V(pool_zip)(dx + width + 2 * j, n, c, d);
    }
}

/* Writes y, the gradient to x, from g, the gradient of the windows. */
static void V(pool_back)(const dvti_pooling *p, int64_t first, int64_t last) {
    const int64_t area = p->height * p->width, windows = p->windows[1];
    int64_t plane, i;
    for (plane = first; plane < last; plane++) {
        float *to = p->y + plane * area;
        if (2 * windows < p->width || 2 * p->windows[0] < p->height)
            memset(to, 0, (size_t)area * sizeof *to);
        for (i = 0; i < p->windows[0]; i++)
            V(pool_back_row)(p->x ? p->x + plane * area + 2 * i * p->width : NULL,
                             p->g + (plane * p->windows[0] + i) * windows, to + 2 * i * p->width,
                             p->width, windows, p->relu_masked);
    }
}

static dvti_pooling_fn V(pool)(dvti_op op) {
    switch ((int)op) {
    case DVTI_OP_max_pool2d:
        return V(pool_max);
    case DVTI_OP_avg_pool2d:
        return V(pool_mean);
    case DVTI_OP_max_pool2d_data:
    case DVTI_OP_avg_pool2d_data:
        return V(pool_back);
    default:
        return NULL;
    }
}
