/* Pooling of planes first .. last, window by window, for one type. Included by cpu_pool.c with
     DVTI_T                 the type that is computed in   DVTI_G(name)  `name` for that type
     DVTI_READ(view, at)    an element                     DVTI_WRITE(view, at, value) */

/* Returns the place of the first largest element of some rows and columns of the plane at `base`; a
   NaN is larger than all numbers. Branches on which element wins would be mispredicted: selecting
   is 3x faster. */
static int64_t DVTI_G(largest)(const dvti_view *x, int64_t base, int64_t w,
                               const dvti_pool2d_span *rows, const dvti_pool2d_span *cols) {
    int64_t best = base + rows->begin * w + cols->begin, r, c;
    DVTI_T most = DVTI_READ(x, best);
    bool nan = false;
    for (r = rows->begin; r < rows->end; r++)
        for (c = cols->begin; c < cols->end; c++) {
            int64_t at = base + r * w + c;
            DVTI_T v = DVTI_READ(x, at);
            nan |= v != v;
            best ^= (best ^ at) & -(int64_t)(v > most);
            most = v > most ? v : most;
        }
    for (r = rows->begin; nan && r < rows->end; r++)
        for (c = cols->begin; c < cols->end; c++) {
            DVTI_T v = DVTI_READ(x, base + r * w + c);
            if (v != v)
                return base + r * w + c;
        }
    return best;
}

static void DVTI_G(max)(const dvti_pool2d_shape *p, int64_t first, int64_t last) {
    const dvti_view *x = &p->launch->in[0];
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_pool2d_span rows = dvti_pool2d_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_pool2d_span cols = dvti_pool2d_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T most = DVTI_READ(x, at + cols.begin);
                bool nan = false;
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++) {
                        DVTI_T v = DVTI_READ(x, at + c);
                        nan |= v != v;
                        most = v > most ? v : most;
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           nan ? (DVTI_T)NAN : most);
            }
        }
}

/* data: adds the gradient to each window's first largest element.   pick: copies a value from
   there. */
static void DVTI_G(max_places)(const dvti_pool2d_shape *p, int64_t first, int64_t last) {
    const dvti_view *from = &p->launch->in[0], *x = &p->launch->in[1], *out = &p->launch->out[0];
    bool pick = p->launch->op == DVTI_OP_max_pool2d_pick, relu_masked = p->launch->i[7] == 1;
    int64_t plane, i, j, size = p->extent[0] * p->extent[1];
    for (plane = first; plane < last; plane++) {
        for (i = 0; !pick && i < size; i++)
            DVTI_WRITE(out, plane * size + i, 0);
        for (i = 0; i < p->windows[0]; i++) {
            dvti_pool2d_span rows = dvti_pool2d_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_pool2d_span cols = dvti_pool2d_window(p, 1, j);
                int64_t place = DVTI_G(largest)(x, plane * size, p->extent[1], &rows, &cols);
                int64_t window = (plane * p->windows[0] + i) * p->windows[1] + j;
                if (pick)
                    DVTI_WRITE(out, window, DVTI_READ(from, place));
                else if (!relu_masked || DVTI_READ(x, place) != 0)
                    DVTI_WRITE(out, place, DVTI_READ(out, place) + DVTI_READ(from, window));
            }
        }
    }
}

static void DVTI_G(avg)(const dvti_pool2d_shape *p, int64_t first, int64_t last) {
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_pool2d_span rows = dvti_pool2d_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_pool2d_span cols = dvti_pool2d_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T sum = 0;
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++)
                        sum += DVTI_READ(&p->launch->in[0], at + c);
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           sum / (DVTI_T)(rows.counted * cols.counted));
            }
        }
}

static void DVTI_G(avg_data)(const dvti_pool2d_shape *p, int64_t first, int64_t last) {
    const dvti_view *g = &p->launch->in[0], *out = &p->launch->out[0];
    int64_t plane, i, j, r, c, size = p->extent[0] * p->extent[1];
    for (plane = first; plane < last; plane++) {
        for (i = 0; i < size; i++)
            DVTI_WRITE(out, plane * size + i, 0);
        for (i = 0; i < p->windows[0]; i++) {
            dvti_pool2d_span rows = dvti_pool2d_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_pool2d_span cols = dvti_pool2d_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T part = DVTI_READ(g, (plane * p->windows[0] + i) * p->windows[1] + j) /
                              (DVTI_T)(rows.counted * cols.counted);
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++)
                        DVTI_WRITE(out, at + c, DVTI_READ(out, at + c) + part);
            }
        }
    }
}

static void DVTI_G(planes)(const dvti_pool2d_shape *p, int64_t first, int64_t last) {
    switch (p->launch->op) {
    case DVTI_OP_max_pool2d:
        DVTI_G(max)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d:
        DVTI_G(avg)(p, first, last);
        break;
    case DVTI_OP_avg_pool2d_data:
        DVTI_G(avg_data)(p, first, last);
        break;
    default:
        DVTI_G(max_places)(p, first, last);
    }
}
