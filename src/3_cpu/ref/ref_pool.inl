/* Pooling of planes first..last for one element type. Pasted by ref_pool.c with
     DVTI_T                 the type that is computed in   DVTI_G(name)  `name` for that type
     DVTI_READ(view, at)    an element                     DVTI_WRITE(view, at, value) */

/* The place of the first largest element of rows h0..h1, columns w0..w1 of the plane at `base`; a NaN is larger than
   all numbers. */
static int64_t DVTI_G(largest)(const dvti_view *x, int64_t base, int64_t w, const dvti_span *rows,
                               const dvti_span *cols) {
    int64_t best = base + rows->begin * w + cols->begin, r, c;
    DVTI_T most = DVTI_READ(x, best);
    for (r = rows->begin; r < rows->end; r++)
        for (c = cols->begin; c < cols->end; c++) {
            DVTI_T v = DVTI_READ(x, base + r * w + c);
            if (v > most || (v != v && most == most)) {
                most = v;
                best = base + r * w + c;
            }
        }
    return best;
}

static void DVTI_G(max)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *x = &p->launch->in[0];
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t at = (plane * p->extent[0] + rows.begin) * p->extent[1];
                DVTI_T most = DVTI_READ(x, at + cols.begin);
                for (r = rows.begin; r < rows.end; r++, at += p->extent[1])
                    for (c = cols.begin; c < cols.end; c++) {
                        DVTI_T v = DVTI_READ(x, at + c);
                        most = v > most || v != v ? v : most;
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->windows[0] + i) * p->windows[1] + j,
                           most);
            }
        }
}

/* data: the gradient goes to each window's first largest element.   pick: a value comes from there. */
static void DVTI_G(max_places)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    const dvti_view *from = &p->launch->in[0], *x = &p->launch->in[1], *out = &p->launch->out[0];
    bool pick = p->launch->op == DVTI_OP_max_pool2d_pick;
    int64_t plane, i, j, size = p->extent[0] * p->extent[1];
    for (plane = first; plane < last; plane++) {
        for (i = 0; !pick && i < size; i++)
            DVTI_WRITE(out, plane * size + i, 0);
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
                int64_t place = DVTI_G(largest)(x, plane * size, p->extent[1], &rows, &cols);
                int64_t window = (plane * p->windows[0] + i) * p->windows[1] + j;
                if (pick)
                    DVTI_WRITE(out, window, DVTI_READ(from, place));
                else
                    DVTI_WRITE(out, place, DVTI_READ(out, place) + DVTI_READ(from, window));
            }
        }
    }
}

static void DVTI_G(avg)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, i, j, r, c;
    for (plane = first; plane < last; plane++)
        for (i = 0; i < p->windows[0]; i++) {
            dvti_span rows = dvti_pool_window(p, 0, i);
            for (j = 0; j < p->windows[1]; j++) {
                dvti_span cols = dvti_pool_window(p, 1, j);
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

/* Gathers: an element of x gets its part of every window that it lies in, and is rounded once. */
static void DVTI_G(avg_data)(const dvti_pool_plan *p, int64_t first, int64_t last) {
    int64_t plane, r, c, i, j;
    for (plane = first; plane < last; plane++)
        for (r = 0; r < p->extent[0]; r++) {
            dvti_span is = dvti_pool_windows_of(p, 0, r);
            for (c = 0; c < p->extent[1]; c++) {
                dvti_span js = dvti_pool_windows_of(p, 1, c);
                DVTI_T sum = 0;
                for (i = is.begin; i < is.end; i++)
                    for (j = js.begin; j < js.end; j++) {
                        dvti_span rows = dvti_pool_window(p, 0, i);
                        dvti_span cols = dvti_pool_window(p, 1, j);
                        sum += DVTI_READ(&p->launch->in[0],
                                         (plane * p->windows[0] + i) * p->windows[1] + j) /
                               (DVTI_T)(rows.counted * cols.counted);
                    }
                DVTI_WRITE(&p->launch->out[0], (plane * p->extent[0] + r) * p->extent[1] + c, sum);
            }
        }
}

static void DVTI_G(planes)(const dvti_pool_plan *p, int64_t first, int64_t last) {
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
