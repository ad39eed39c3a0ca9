/* The backward pass: heads, the sweep from the last recorded operation to the first, and its two
   public forms. Attached gradients change at the very end or not at all. The graph is released only
   after success. */
#include "1_base/dvt_float_mode.h"
#include "5_grad/dvt_grad.h"

DVTI_FN dvt_status dvti_failed(const char *function) {
    dvt_status status = dvti_failure();
    return status != DVT_OK
               ? status
               : dvti_fail(DVT_ERR_INTERNAL,
                           "%s: a step failed without an error; please report this", function);
}

/* ---- heads ---- */
static dvt_status dvti_check_head(const char *name, dvt_array *head, dvt_array *grad, int i) {
    if (!head)
        return dvti_null(name, "a head");
    if (!grad)
        return DVT_OK;
    if (!dvt_ctx_equal(grad->storage->ctx, head->storage->ctx))
        return dvti_fail(DVT_ERR_CONTEXT,
                         "%s: head %d is %s and its gradient is %s; expected one context: copy the "
                         "gradient with dvt_as_in_ctx",
                         name, i, dvti_describe(head), dvti_describe(grad));
    if (!dvt_shape_equal(grad->shape, head->shape))
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: head %d is %s and its gradient is %s; expected equal shapes: reshape "
                         "or broadcast the gradient",
                         name, i, dvti_describe(head), dvti_describe(grad));
    if (grad->dtype != head->dtype)
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: head %d is %s and its gradient is %s; expected equal dtypes: convert "
                         "the gradient with dvt_astype",
                         name, i, dvti_describe(head), dvti_describe(grad));
    return DVT_OK;
}

static dvt_status dvti_check_heads(const char *name, dvt_array *const *heads,
                                   dvt_array *const *grads, int n) {
    dvt_status status = DVT_OK;
    int i;
    if (n < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d heads; expected at least one", name, n);
    if (!heads)
        return dvti_null(name, "heads");
    for (i = 0; status == DVT_OK && i < n; i++)
        if (grads && !dvti_optional(name, "a head's gradient", grads[i]))
            status = dvti_failure();
        else
            status = dvti_check_head(name, heads[i], grads ? grads[i] : NULL, i);
    return status;
}

/* ---- loss scales ---- */
/* Returns log2 of the factor in the slot's gradient. */
static int dvti_slot_scale(const dvti_slot *slot) {
    return slot->node ? slot->node->loss_scale : 0;
}

/* Multiplies a contribution by 2^shift. Takes over its reference; returns NULL on failure. */
static dvt_array *dvti_shifted(dvt_array *part, int shift) {
    dvt_scope_guard scope;
    dvt_array *out;
    if (!shift)
        return part;
    scope = dvt_scope_begin();
    out = dvti_rescaled(part, shift, part->dtype);
    if (out)
        dvti_scope_take(out);
    dvt_scope_end(&scope);
    dvti_disown(part);
    return out;
}

static bool dvti_start_heads(dvti_graph *graph, dvt_array *const *heads, dvt_array *const *grads,
                             int n) {
    int i;
    for (i = 0; i < n; i++) {
        dvti_slot *slot = dvti_graph_slot(graph, NULL, heads[i]);
        dvt_array *g = grads ? grads[i] : NULL;
        if (!slot->needed)
            continue;
        slot->ones = n == 1 && !g && slot->node && slot->node->op == DVTI_OP_cross_entropy &&
                     !slot->variable && !slot->node->loss_scale && !dvt_is_recording();
        if (slot->ones)
            continue;
        if (g)
            dvti_own(g);
        else if ((g = dvt_ones_like(heads[i])) != NULL)
            dvti_scope_take(g);
        if (!g || !(g = dvti_shifted(g, dvti_slot_scale(slot))) || !dvti_slot_add(slot, g))
            return false;
    }
    return true;
}

/* ---- one node ---- */
/* Reports that an operand was overwritten: argument number i, counted from 1, or the result for
   0. */
static bool dvti_overwritten(const char *name, const dvti_node *node, int i, dvt_array *x,
                             int64_t version) {
    int64_t now = dvti_atomic_load(&x->storage->version);
    char what[24] = "the result";
    if (now == version)
        return false;
    if (i)
        snprintf(what, sizeof what, "argument %d", i);
    dvti_fail(DVT_ERR_GRAD,
              "%s: a gradient needs %s of %s (%s), which was overwritten since it was recorded; "
              "write after the backward pass, or compute a new array",
              name, what, node->name, dvti_describe(x));
    return true;
}

/* Checks that all values that the wanted gradients read are unchanged since recording. */
static bool dvti_values_intact(const char *name, const dvti_grad_call *call) {
    const dvti_node *node = call->node;
    unsigned reads = 0;
    int i;
    for (i = 0; i < node->n_in; i++)
        if (call->need[i])
            reads |= dvti_grad_reads(node, i);
    for (i = 0; reads && i < node->n_in && i < 8; i++)
        if (reads & 1u << i && dvti_overwritten(name, node, i + 1, node->in[i], node->version[i]))
            return false;
    return !(reads & DVTI_READS_RESULT) ||
           !dvti_overwritten(name, node, 0, node->result, node->result_version);
}

/* Gives the gradient function the node's result. When this pass is recorded, the result has the
   node as its history. */
static bool dvti_result_of(dvti_grad_call *call, dvti_node *node) {
    call->y = node->result;
    if (!node->result || !dvt_is_recording())
        return true;
    call->y = dvti_view_new(node->name, node->result, node->result->shape, node->result->stride,
                            node->result->offset);
    if (!call->y)
        return false;
    call->y->node = node;
    dvti_atomic_add(&node->references, 1);
    return true;
}

static void dvti_grad_none(dvti_grad_call *call) {
    dvti_fail(DVT_ERR_INTERNAL, "%s: recorded without a gradient; please report this",
              call->node->name);
}

static void dvti_call_family(dvti_grad_call *call) {
    /* in the order of dvti_op */
    static void (*const gradient[DVTI_OP_COUNT])(dvti_grad_call *) = {
#define DVTI_ROW(name, ...) dvti_grad_elementwise,
#define DVTI_OTHER(name, family, reads, doc) dvti_grad_##family,
#define DVTI_REDUCE(name, ...) dvti_grad_reduce,
#define DVTI_OPTIMIZER(name, ...) dvti_grad_none,
        DVTI_UNARY_TABLE(DVTI_ROW) DVTI_BINARY_TABLE(DVTI_ROW) DVTI_SPECIAL_TABLE(DVTI_ROW)
            DVTI_OTHER_TABLE(DVTI_OTHER) DVTI_REDUCE_TABLE(DVTI_REDUCE)
                DVTI_OPTIMIZER_TABLE(DVTI_OPTIMIZER)
#undef DVTI_ROW
#undef DVTI_OTHER
#undef DVTI_REDUCE
#undef DVTI_OPTIMIZER
    };

    gradient[call->node->op](call);
}

/* Computes the gradients of the inputs into call->out, each with its own reference. */
static bool dvti_call_gradient(const char *name, dvti_grad_call *call, const dvti_slot *slot) {
    dvt_scope_guard scope = dvt_scope_begin();
    bool good = dvti_values_intact(name, call) && dvti_result_of(call, slot->node);
    int i;
    if (good && slot->relu_masked)
        call->out[0] = call->g;
    else if (good)
        dvti_call_family(call);
    for (i = 0; good && i < call->n_in; i++)
        if (call->need[i]) {
            call->out[i] = dvti_unbroadcast(call->out[i], call->in[i]);
            good = call->out[i] != NULL;
        }
    for (i = 0; i < call->n_in; i++)
        if (good && call->need[i])
            dvti_own(call->out[i]);
        else
            call->out[i] = NULL;
    dvt_scope_end(&scope);
    return good;
}

/* Returns whether the gradient of a node with relu's result as its first input may apply relu's
   mask. Pooling knows which of relu's results are 0 and skips them as it writes; products have an
   epilogue. relu's own gradient would read and write all elements again. */
static bool dvti_masks_relu(dvti_graph *graph, const dvti_node *node, const dvt_array *g) {
    const dvti_slot *input;
    if (dvt_is_recording() || !g ||
        (node->op != DVTI_OP_max_pool2d &&
         !(node->op == DVTI_OP_matmul && dvti_grad_matmul_masks(node, g))))
        return false;
    input = dvti_graph_slot(graph, node, node->in[0]);
    return input && input->node && input->node->op == DVTI_OP_relu && !input->variable;
}

/* Adds one contribution to an input's gradient and takes over its reference. */
static bool dvti_arrive(dvti_slot *slot, dvt_array *part, bool relu_masked) {
    slot->relu_masked = relu_masked && (!slot->grad || slot->relu_masked);
    return dvti_slot_add(slot, part);
}

/* Adds the gradient of a slice into the elements that it took from its input's gradient, and
   returns true. Returns false when it does nothing: there is no gradient yet, or others share it.
   All slices of an array then cost as much as the array. Zeros of the input's shape for each of T
   slices would cost T times as much. */
static bool dvti_slice_adds(dvti_slot *input, const dvti_node *node, dvt_array *g, bool *good) {
    dvt_scope_guard scope;
    dvt_array *part;
    if (node->op != DVTI_OP_slice || dvt_is_recording() || !input->grad ||
        dvti_slot_scale(input) != node->loss_scale || !dvti_exclusive(input->grad))
        return false;
    scope = dvt_scope_begin();
    part = dvti_grad_sliced(node, g->shape.dim[node->attr.i[0]], input->grad);
    *good = part && dvt_add_(part, g) != NULL;
    dvt_scope_end(&scope);
    input->relu_masked = false;
    return true;
}

/* Passes a node's gradient on to its inputs. */
static bool dvti_step(dvti_graph *graph, dvti_slot *slot, dvti_grad_call *call, bool *need) {
    dvti_node *node = slot->node;
    dvti_float_mode mode;
    bool any = false, good;
    int i;
    for (i = 0; i < node->n_in; i++) {
        const dvti_slot *input = dvti_graph_slot(graph, node, node->in[i]);
        need[i] = input && input->needed;
        if (i == 0)
            call->shift = need[i] ? dvti_slot_scale(input) - node->loss_scale : 0;
        any = any || need[i];
    }
    if (!any)
        return true;
    slot->passed = true;
    if (slot->grad &&
        dvti_slice_adds(dvti_graph_slot(graph, node, node->in[0]), node, slot->grad, &good))
        return good;
    call->node = node;
    call->in = node->in;
    call->n_in = node->n_in;
    call->g = slot->grad;
    call->need = need;
    call->relu_masked = dvti_masks_relu(graph, node, slot->grad);
    memset(call->out, 0, sizeof *call->out * (size_t)node->n_in);
    mode = dvti_float_mode_begin();
    good = dvti_call_gradient(graph->name, call, slot);
    dvti_float_mode_end(&mode);
    for (i = 0; i < node->n_in; i++)
        if (call->out[i] && good) {
            dvti_slot *input = dvti_graph_slot(graph, node, node->in[i]);
            const int shift = i ? dvti_slot_scale(input) - node->loss_scale : call->shift;
            dvt_array *part = dvti_shifted(call->out[i], shift);
            good = part && dvti_arrive(input, part, call->relu_masked && i == 0);
        } else
            dvti_disown(call->out[i]);
    return good;
}

/* ---- the sweep ---- */
static bool dvti_sweep(dvti_graph *graph) {
    dvti_grad_call call;
    int most = 0;
    size_t at;
    bool *need, good = true;
    memset(&call, 0, sizeof call);
    for (at = 0; at < graph->count; at++)
        if (graph->slots[at].node)
            most = DVTI_MAX(most, graph->slots[at].node->n_in);
    need = (bool *)dvti_alloc((sizeof *need) * (size_t)most);
    call.out = (dvt_array **)dvti_alloc(sizeof *call.out * (size_t)most);
    if (!need || !call.out) {
        dvti_fail_memory(graph->name, (int64_t)(sizeof *call.out * (size_t)most));
        good = false;
    }
    for (at = 0; good && at < graph->count; at++) {
        dvti_slot *slot = graph->slots + at;
        if (slot->node && slot->needed && (slot->grad || slot->ones)) {
            good = dvti_step(graph, slot, &call, need);
            if (!slot->variable) {
                dvti_disown(slot->grad);
                slot->grad = NULL;
            }
        }
        if (graph->watched && good)
            good = dvti_watch_step(graph, at);
    }
    dvti_free(need);
    dvti_free(call.out);
    return good;
}

static void dvti_use_up(dvti_graph *graph) {
    size_t at;
    for (at = 0; at < graph->count; at++)
        if (graph->slots[at].passed)
            dvti_node_clear(graph->slots[at].node);
}

static bool dvti_walk_back(dvti_graph *graph, dvt_array *const *heads, dvt_array *const *grads,
                           int n) {
    return dvti_start_heads(graph, heads, grads, n) && dvti_sweep(graph);
}

static dvt_status dvti_check_use(const char *name, dvt_graph_use use) {
    if (use == DVT_FREE_GRAPH || use == DVT_RETAIN_GRAPH || use == DVT_CREATE_GRAPH)
        return DVT_OK;
    return dvti_fail(DVT_ERR_VALUE,
                     "%s: use is %d; expected DVT_FREE_GRAPH, DVT_RETAIN_GRAPH or DVT_CREATE_GRAPH",
                     name, (int)use);
}

static dvt_status dvti_backward(const char *name, dvt_array *const *heads, dvt_array *const *grads,
                                int n, dvt_graph_use use) {
    dvti_graph graph;
    dvt_record_guard guard;
    dvt_status status = dvti_check_heads(name, heads, grads, n);
    bool good;
    if (status == DVT_OK)
        status = dvti_check_use(name, use);
    if (status != DVT_OK)
        return status;
    guard = dvt_record_begin(use == DVT_CREATE_GRAPH ? DVT_ON : DVT_OFF, DVT_UNCHANGED);
    good = dvti_graph_begin(&graph, name, heads, n, NULL, 0);
    if (good && use != DVT_CREATE_GRAPH)
        dvti_watch_begin(&graph);
    if (good && dvti_walk_back(&graph, heads, grads, n))
        status = dvti_write_leaves(&graph, use == DVT_CREATE_GRAPH);
    else
        status = dvti_failed(name);
    if (status == DVT_OK && use == DVT_FREE_GRAPH)
        dvti_use_up(&graph);
    dvti_graph_end(&graph);
    dvt_record_end(&guard);
    return status;
}

DVT_API dvt_status dvt_backward(dvt_array *y) {
    if (!y)
        return dvti_null("dvt_backward", "y");
    return dvti_backward("dvt_backward", &y, NULL, 1, DVT_FREE_GRAPH);
}

DVT_API dvt_status dvt_backward_from(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                     dvt_graph_use use) {
    return dvti_backward("dvt_backward_from", heads, head_grads, n, use);
}

/* ---- gradients of chosen variables ---- */
/* Returns a new array. This is the gathered array itself at its first use, if nothing else refers
   to its memory. */
static dvt_array *dvti_variable_gradient(dvti_graph *graph, dvt_array *var) {
    dvti_slot *slot = dvti_graph_slot(graph, NULL, var);
    dvt_array *grad = slot->grad;
    if (!grad)
        return dvt_zeros_like(var);
    if (dvti_slot_scale(slot))
        return dvti_rescaled(grad, -dvti_slot_scale(slot), grad->dtype);
    if (!slot->variable || !dvti_exclusive(grad) || !dvt_is_contiguous(grad))
        return dvt_copy(grad);
    slot->variable = false;
    dvti_own(grad);
    if (dvti_scope_give(grad))
        return grad;
    dvti_disown(grad);
    dvti_fail_memory(graph->name, (int64_t)sizeof(void *));
    return NULL;
}

/* Writes the gradients to out[0..n_vars), all or none. */
static bool dvti_hand_out(dvti_graph *graph, dvt_array *const *vars, int n_vars, dvt_array **out) {
    dvt_array **found = (dvt_array **)dvti_alloc(sizeof *found * (size_t)n_vars);
    dvt_scope_guard scope = dvt_scope_begin();
    bool good = found != NULL;
    int i;
    if (!good)
        dvti_fail_memory(graph->name, (int64_t)(sizeof *found * (size_t)n_vars));
    for (i = 0; good && i < n_vars; i++)
        good = (found[i] = dvti_variable_gradient(graph, vars[i])) != NULL;
    for (i = n_vars - 1; good && i >= 0; i--) {
        out[i] = found[i];
        dvt_keep(found[i]);
    }
    dvt_scope_end(&scope);
    dvti_free(found);
    return good;
}

static dvt_status dvti_check_variables(dvt_array *const *vars, int n_vars, dvt_array **out) {
    int i;
    if (n_vars < 1)
        return dvti_fail(DVT_ERR_RANGE, "dvt_gradients: %d variables; expected at least one",
                         n_vars);
    if (!vars || !out)
        return dvti_null("dvt_gradients", vars ? "out" : "vars");
    for (i = 0; i < n_vars; i++)
        if (!vars[i])
            return dvti_null("dvt_gradients", "a variable");
    return DVT_OK;
}

DVT_API dvt_status dvt_gradients(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                 dvt_array *const *vars, int n_vars, dvt_graph_use use,
                                 dvt_array **out) {
    static const char name[] = "dvt_gradients";
    dvti_graph graph;
    dvt_record_guard guard;
    dvt_status status = dvti_check_heads(name, heads, head_grads, n);
    if (status == DVT_OK)
        status = dvti_check_variables(vars, n_vars, out);
    if (status == DVT_OK)
        status = dvti_check_use(name, use);
    if (status != DVT_OK)
        return status;
    guard = dvt_record_begin(use == DVT_CREATE_GRAPH ? DVT_ON : DVT_OFF, DVT_UNCHANGED);
    if (!dvti_graph_begin(&graph, name, heads, n, vars, n_vars) ||
        !dvti_walk_back(&graph, heads, head_grads, n) || !dvti_hand_out(&graph, vars, n_vars, out))
        status = dvti_failed(name);
    if (status == DVT_OK && use == DVT_FREE_GRAPH)
        dvti_use_up(&graph);
    dvti_graph_end(&graph);
    dvt_record_end(&guard);
    return status;
}
