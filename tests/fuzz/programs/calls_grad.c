/* Recording, backward passes, gradients, and what breaks them. */
#include "programs.h"

static bool has_history(const fuzz_object *o) {
    return o->x && dvt_has_history(o->x);
}

/* Picks an array that is recorded in most cases. */
static fuzz_object *pick_recorded(fuzz_world *w) {
    fuzz_object *a = fuzz_pick(w);
    int k;
    if (!has_history(a) && a->x && w->call->arg[0] % 8 && w->call->arg[1] % 3)
        for (k = 0; k < FUZZ_SLOTS; k++)
            if (w->slot[k] >= 0 && has_history(&w->object[w->slot[k]]))
                return &w->object[w->slot[k]];
    return a;
}

static void call_record(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    (void)op;
    if (w->records == FUZZ_GUARDS)
        return;
    fuzz_say(w, "    %d %d\n", b < 190 ? 1 : b % 3 - 1, b % 5 % 3 - 1);
    w->record[w->records++] =
        dvt_record_begin(b < 190 ? DVT_ON : (dvt_switch)(b % 3 - 1), (dvt_switch)(b % 5 % 3 - 1));
    fuzz_ended(w, false);
}

static void call_record_end(fuzz_world *w, const fuzz_op *op) {
    (void)op;
    if (!w->records)
        return;
    dvt_record_end(&w->record[--w->records]);
    fuzz_ended(w, false);
}

static void call_attach(fuzz_world *w, const fuzz_op *op) {
    fuzz_object none = {NULL, {0}, 0, 0}, *a = fuzz_pick_dtype(w, &none, fuzz_is_float);
    uint8_t b = fuzz_byte(w);
    dvt_status status;
    (void)op;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    else if (b >= 250)
        w->expect.code = DVT_ERR_VALUE;
    else if (!dvt_dtype_is_float(a->view.dtype))
        w->expect.code = DVT_ERR_DTYPE;
    else
        w->expect.must_work = true;
    status = dvt_attach_grad(a->x, b >= 250  ? (dvt_grad_req)(b - 240)
                                   : b < 160 ? DVT_GRAD_WRITE
                                   : b < 230 ? DVT_GRAD_ADD
                                             : DVT_GRAD_NULL);
    if (fuzz_ended(w, status != DVT_OK))
        fuzz_gradients(w);
}

static void call_grad(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = pick_recorded(w);
    dvt_array *g = dvt_grad(a->x);
    (void)op;
    if (!fuzz_ended(w, !g))
        return;
    {
        int i;
        bool known = false;
        for (i = 0; i < FUZZ_OBJECTS; i++)
            known |= w->object[i].x == g;
        if (!known) { /* borrowed: retained, so that the slot may keep it */
            fuzz_object *o = fuzz_adopt(w, (dvt_array *)dvt_retain(g), -1, 1);
            fuzz_value *v;
            int64_t n = dvt_size(g);
            for (i = 0; i < FUZZ_OBJECTS; i++)
                if (w->object[i].x && &w->object[i] != o && n &&
                    dvt_shares_memory(w->object[i].x, g)) {
                    o->view = fuzz_new_view(dvt_shape_of(g), dvt_dtype_of(g), dvt_ctx_of(g));
                    fuzz_drop_view(&o->view);
                    o->view.shape = dvt_shape_of(g);
                    o->view = fuzz_share(&w->object[i].view);
                    if (o->view.buffer->n != n ||
                        !dvt_shape_equal(o->view.shape, dvt_shape_of(g)) ||
                        !fuzz_is_c_order(&o->view)) {
                        dvt_release(g); /* a view of it remains, whose offset in it is unknown */
                        o->retains = 0;
                        fuzz_forget(w, o);
                        return;
                    }
                    break;
                }
            if (!o->view.buffer) {
                void *host = malloc((size_t)n * 8 + 8);
                o->view = fuzz_new_view(dvt_shape_of(g), dvt_dtype_of(g), dvt_ctx_of(g));
                v = o->view.buffer->v;
                fuzz_pause_faults(true);
                fuzz_lift_limits(w, true);
                if (dvt_to_host(g, host, dvt_nbytes(g)) != DVT_OK)
                    fuzz_fail(w, "%s", dvt_error());
                else
                    fuzz_decode(host, dvt_dtype_of(g), n, v);
                fuzz_lift_limits(w, false);
                fuzz_pause_faults(false);
                free(host);
            }
        }
        if (w->failed)
            return;
        fuzz_adopt(w, g, -1, 1)->view.buffer->gradient = true;
        fuzz_result(w, g);
    }
}

static void call_zero_grad(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = pick_recorded(w);
    dvt_status status = dvt_zero_grad(a->x);
    (void)op;
    if (fuzz_ended(w, status != DVT_OK))
        fuzz_gradients(w);
}

static void call_has_history(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = fuzz_pick(w);
    bool has = dvt_has_history(a->x);
    (void)op;
    if (fuzz_ended(w, false))
        fuzz_text(w, has ? "history" : "none");
}

static void call_backward(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = pick_recorded(w);
    dvt_status status = dvt_backward(a->x);
    (void)op;
    if (!a->x)
        w->expect.code = DVT_ERR_NULL_ARGUMENT;
    if (fuzz_ended(w, status != DVT_OK))
        fuzz_gradients(w);
}

static void call_backward_from(fuzz_world *w, const fuzz_op *op) {
    dvt_array *head[2], *grad[2] = {NULL, NULL};
    fuzz_object *a = pick_recorded(w), *b = pick_recorded(w), *g = fuzz_pick_like(w, a, true);
    uint8_t bits = fuzz_byte(w);
    int n = bits >= 250 ? 0 : 1 + (bits & 1);
    dvt_status status;
    (void)op;
    head[0] = a->x;
    head[1] = b->x;
    if (bits & 2)
        grad[0] = g->x;
    status = dvt_backward_from(head, bits & 4 ? grad : NULL, n,
                               (bits & 16)  ? DVT_CREATE_GRAPH
                               : (bits & 8) ? DVT_RETAIN_GRAPH
                                            : DVT_FREE_GRAPH);
    if (fuzz_ended(w, status != DVT_OK))
        fuzz_gradients(w);
}

static void call_gradients(fuzz_world *w, const fuzz_op *op) {
    fuzz_object *a = pick_recorded(w), *var[2], *g = fuzz_pick_like(w, a, true);
    dvt_array *head, *vars[2], *grad, *out[2] = {NULL, NULL};
    uint8_t bits;
    int n, i;
    dvt_status status;
    (void)op;
    for (i = 0; i < 2; i++) {
        var[i] = pick_recorded(w);
        vars[i] = var[i]->x;
    }
    bits = fuzz_byte(w);
    n = bits >= 250 ? bits - 251 : 1 + (bits & 1);
    if (n > 2)
        n = 0;
    head = a->x;
    grad = bits & 2 ? g->x : NULL;
    status = dvt_gradients(&head, bits & 4 ? &grad : NULL, 1, vars, n,
                           (bits & 16)  ? DVT_CREATE_GRAPH
                           : (bits & 8) ? DVT_RETAIN_GRAPH
                                        : DVT_FREE_GRAPH,
                           out);
    if (!fuzz_ended(w, status != DVT_OK))
        return;
    for (i = 0; i < n && i < 2; i++)
        if (!out[i])
            fuzz_fail(w, "gave no gradient");
        else if (!dvt_shape_equal(dvt_shape_of(out[i]), var[i]->view.shape) ||
                 dvt_dtype_of(out[i]) != var[i]->view.dtype)
            fuzz_fail(w, "a gradient has another shape or dtype than its variable");
    if (n > 0 && !w->failed)
        fuzz_result(w, out[0]);
}

const fuzz_op fuzz_ops_grad[] = {
    {"record", call_record, NULL, 25, 0, FUZZ_EXACT, 0},
    {"record_end", call_record_end, NULL, 12, 0, FUZZ_EXACT, 0},
    {"attach_grad", call_attach, NULL, 30, 0, FUZZ_SHAPE_ONLY, 0},
    {"grad", call_grad, NULL, 14, 0, FUZZ_SHAPE_ONLY, 0},
    {"zero_grad", call_zero_grad, NULL, 4, 0, FUZZ_SHAPE_ONLY, 0},
    {"has_history", call_has_history, NULL, 2, 0, FUZZ_EXACT, 0},
    {"backward", call_backward, NULL, 25, 0, FUZZ_SHAPE_ONLY, 0},
    {"backward_from", call_backward_from, NULL, 14, 0, FUZZ_SHAPE_ONLY, 0},
    {"gradients", call_gradients, NULL, 14, 0, FUZZ_SHAPE_ONLY, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
