/* Attached gradients: attaching, reading, clearing, and writing them after a backward pass. Also
   detach and stop_gradient, which end gradients. */
#include "5_grad/dvt_grad.h"

/* Returns whether x's gradient may be overwritten. A recorded gradient is replaced instead, because
   its graph may still be needed. */
static bool dvti_grad_is_plain(const dvt_array *x) {
    return x->grad && !x->grad->node;
}

/* Moves a gradient array that is about to be replaced to the innermost scope, because the caller
   may still use it. */
static bool dvti_move_to_scope(const char *name, dvt_array *grad) {
    dvti_own(grad);
    if (!grad || dvti_scope_give(grad))
        return true;
    dvti_disown(grad);
    dvti_fail_memory(name, (int64_t)sizeof(void *));
    return false;
}

/* Writes zeros into x's gradient array, which it makes when there is none. */
static dvt_status dvti_clear_grad(const char *name, dvt_array *x) {
    dvt_array *zeros;
    dvt_scope_guard scope;
    bool good;
    if (dvti_grad_is_plain(x)) {
        dvt_record_guard guard = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
        good = dvt_fill(x->grad, 0) != NULL;
        dvt_record_end(&guard);
        return good ? DVT_OK : dvti_failed(name);
    }
    scope = dvt_scope_begin();
    zeros = dvt_zeros_like(x);
    if (zeros)
        dvti_scope_take(zeros);
    dvt_scope_end(&scope);
    if (!zeros || !dvti_move_to_scope(name, x->grad)) {
        dvti_disown(zeros);
        return dvti_failed(name);
    }
    dvti_disown(x->grad);
    x->grad = zeros;
    return DVT_OK;
}

DVT_API dvt_status dvt_attach_grad(dvt_array *x, dvt_grad_req req) {
    dvt_status status = DVT_OK;
    if (!x)
        return dvti_null("dvt_attach_grad", "x");
    if ((int)req < DVT_GRAD_WRITE || (int)req > DVT_GRAD_NULL)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_attach_grad: req is %d; expected DVT_GRAD_WRITE, DVT_GRAD_ADD or "
                         "DVT_GRAD_NULL",
                         (int)req);
    if (!dvt_dtype_is_float(x->dtype))
        return dvti_fail(DVT_ERR_DTYPE,
                         "dvt_attach_grad: x is %s; only floating-point arrays have gradients: "
                         "convert with dvt_astype",
                         dvti_describe(x));
    if (req != DVT_GRAD_NULL)
        status = dvti_clear_grad("dvt_attach_grad", x);
    else if (!dvti_move_to_scope("dvt_attach_grad", x->grad))
        status = dvti_failed("dvt_attach_grad");
    if (status != DVT_OK)
        return status;
    if (req == DVT_GRAD_NULL) {
        dvti_disown(x->grad);
        x->grad = NULL;
    }
    dvti_node_release(x->node);
    x->node = NULL;
    x->attached = true;
    x->grad_req = req;
    x->grad_fresh = false;
    x->grad_holds = 0;
    return DVT_OK;
}

static bool dvti_has_grad(const char *name, dvt_array *x) {
    if (x->grad)
        return true;
    dvti_fail(DVT_ERR_GRAD,
              "%s: x (%s) has no gradient array%s; give it one with dvt_attach_grad(x, "
              "DVT_GRAD_WRITE) before recording",
              name, dvti_describe(x), x->attached ? ": it was attached with DVT_GRAD_NULL" : "");
    return false;
}

DVT_API dvt_array *dvt_grad(dvt_array *x) {
    if (!x) {
        dvti_null("dvt_grad", "x");
        return NULL;
    }
    return dvti_has_grad("dvt_grad", x) ? x->grad : NULL;
}

DVT_API dvt_status dvt_zero_grad(dvt_array *x) {
    dvt_status status;
    if (!x)
        return dvti_null("dvt_zero_grad", "x");
    if (!dvti_has_grad("dvt_zero_grad", x))
        return dvti_failed("dvt_zero_grad");
    status = dvti_clear_grad("dvt_zero_grad", x);
    if (status == DVT_OK)
        x->grad_holds = 0;
    return status;
}

/* ---- after a backward pass ---- */
/* So it is with DVT_GRAD_ADD. A trainer
   also needs it while it sums the parts of one batch: an earlier part has already written here. */
DVTI_FN bool dvti_leaf_adds(const dvt_array *x) {
    return x->grad_req == DVT_GRAD_ADD ||
           (x->grad_sums && x->grad_fresh && !(x->grad_holds & DVTI_GRAD_SUM));
}

/* Prepares a leaf's gathered gradient: it is written into the existing array, or a new array
   replaces that. All allocations happen here, before the first attached gradient changes. */
static bool dvti_prepare_leaf(const char *name, dvti_slot *slot, bool create_graph) {
    dvt_array *old = slot->leaf->grad, *grad;
    dvt_scope_guard scope;
    slot->in_place = !create_graph && dvti_grad_is_plain(slot->leaf);
    if (slot->in_place)
        return true;
    scope = dvt_scope_begin();
    grad = dvti_leaf_adds(slot->leaf) && old ? dvt_add(old, slot->grad) : dvt_copy(slot->grad);
    if (grad)
        dvti_scope_take(grad);
    dvt_scope_end(&scope);
    if (!grad || !dvti_move_to_scope(name, old)) {
        dvti_disown(grad);
        return false;
    }
    dvti_disown(slot->grad);
    slot->grad = grad;
    return true;
}

/* Returns whether x is all of its storage's memory, in C order, and nobody has its address. */
static bool dvti_is_whole(const dvt_array *x) {
    const dvti_storage *s = x->storage;
    return !s->release && !dvti_atomic_load(&s->shown) && x->offset == 0 && dvt_is_contiguous(x) &&
           s->bytes == dvt_nbytes(x);
}

/* Exchanges the memory of a leaf's gradient array and of the gathered gradient, which nobody else
   reads. Views of the gradient array see the new values, as they do after a copy. */
static bool dvti_hand_over(dvt_array *grad, dvt_array *gathered) {
    void *data = grad->storage->data;
    if (!dvti_exclusive(gathered) || !dvti_is_whole(gathered) || !dvti_is_whole(grad) ||
        grad->dtype != gathered->dtype || grad->storage->device != gathered->storage->device ||
        !dvt_shape_equal(grad->shape, gathered->shape))
        return false;
    grad->storage->data = gathered->storage->data;
    gathered->storage->data = data;
    return true;
}

/* Writes into the existing array: at most one launch, no new memory. */
static bool dvti_write_leaf(const char *name, dvti_slot *slot) {
    dvt_array *x = slot->leaf;
    if (dvti_leaf_adds(x))
        return dvt_add_(x->grad, slot->grad) != NULL;
    if (!dvti_hand_over(x->grad, slot->grad) &&
        dvti_copy_elements(name, x->grad, slot->grad) != DVT_OK)
        return false;
    dvti_written(x->grad);
    return true;
}

DVTI_FN dvt_status dvti_write_leaves(dvti_graph *graph, bool create_graph) {
    dvti_slot *slot, *end = graph->slots + graph->count;
    for (slot = graph->slots; slot < end; slot++)
        if (slot->leaf && slot->grad && !dvti_prepare_leaf(graph->name, slot, create_graph))
            return dvti_failed(graph->name);
    for (slot = graph->slots; slot < end; slot++) {
        if (!slot->leaf || !slot->grad)
            continue;
        if (slot->in_place) {
            if (!dvti_write_leaf(graph->name, slot))
                return dvti_failed(graph->name);
        } else {
            dvti_disown(slot->leaf->grad);
            slot->leaf->grad = slot->grad;
            slot->grad = NULL;
        }
        slot->leaf->grad_holds =
            dvti_leaf_adds(slot->leaf) ? slot->leaf->grad_holds | DVTI_GRAD_OWN : DVTI_GRAD_OWN;
        slot->leaf->grad_fresh = true;
    }
    return DVT_OK;
}

/* ---- detach and stop_gradient ---- */
DVT_API dvt_array *dvt_detach(dvt_array *x) {
    const char *name = "dvt_detach";
    return dvti_check(name, &x, 1) ? dvti_view_new(name, x, x->shape, x->stride, x->offset) : NULL;
}
