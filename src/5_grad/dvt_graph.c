/* The graph that produced the heads: its nodes and leaves, their order, and the gradients gathered
   at each. Nothing is written into nodes. A failing pass therefore leaves no trace, and two threads
   never write the same node. */
#include "5_grad/dvt_grad.h"

typedef struct dvti_origin {
    dvti_node *node;
    dvt_array *leaf;
} dvti_origin;

/* Returns the node or leaf that produced x. A node recorded after its consumer did not make the
   value that the consumer read: the array was written later. */
static dvti_origin dvti_origin_of(const dvti_node *consumer, dvt_array *x) {
    dvti_origin origin;
    origin.node = NULL;
    origin.leaf = NULL;
    if (x->node && (!consumer || x->node->sequence < consumer->sequence))
        origin.node = x->node;
    else if (x->attached && x->grad_req != DVT_GRAD_NULL)
        origin.leaf = x;
    return origin;
}

/* ---- the table ---- */
static size_t dvti_graph_hash(const void *key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32);
}

/* Returns the key's entry in the table, or the free entry where it belongs. */
static size_t *dvti_graph_place(const dvti_graph *graph, const void *key) {
    size_t mask = graph->table_size - 1, at = dvti_graph_hash(key) & mask;
    for (;; at = (at + 1) & mask) {
        const dvti_slot *slot = graph->table[at] ? graph->slots + graph->table[at] - 1 : NULL;
        if (!slot || (const void *)slot->node == key || (const void *)slot->leaf == key)
            return graph->table + at;
    }
}

static const void *dvti_slot_key(const dvti_slot *slot) {
    return slot->node ? (const void *)slot->node : (const void *)slot->leaf;
}

static void dvti_graph_enter_all(dvti_graph *graph) {
    size_t i;
    memset(graph->table, 0, sizeof *graph->table * graph->table_size);
    for (i = 0; i < graph->count; i++)
        *dvti_graph_place(graph, dvti_slot_key(graph->slots + i)) = i + 1;
}

/* Makes space for one more slot; the table stays at most half full. */
static bool dvti_graph_reserve(dvti_graph *graph) {
    size_t *table;
    if (!dvti_grow((void **)&graph->slots, &graph->capacity, graph->count + 1,
                   sizeof *graph->slots))
        return false;
    if (graph->table_size >= 2 * (graph->count + 1))
        return true;
    table = (size_t *)dvti_alloc(sizeof *table * graph->capacity * 2);
    if (!table)
        return false;
    dvti_free(graph->table);
    graph->table = table;
    graph->table_size = graph->capacity * 2;
    dvti_graph_enter_all(graph);
    return true;
}

/* Returns the slot of an origin, which it makes when it is new. Returns NULL with HOST_MEMORY
   set. */
static dvti_slot *dvti_graph_add(dvti_graph *graph, dvti_origin origin) {
    const void *key = origin.node ? (const void *)origin.node : (const void *)origin.leaf;
    dvti_slot *slot;
    size_t *place;
    if (!dvti_graph_reserve(graph)) {
        dvti_fail_memory(graph->name, (int64_t)(sizeof *slot * 2 * (graph->count + 1)));
        return NULL;
    }
    place = dvti_graph_place(graph, key);
    if (*place)
        return graph->slots + *place - 1;
    slot = graph->slots + graph->count++;
    memset(slot, 0, sizeof *slot);
    slot->node = origin.node;
    slot->leaf = origin.leaf;
    if (slot->node)
        dvti_atomic_add(&slot->node->references, 1);
    else
        dvti_own(slot->leaf);
    *place = graph->count;
    return slot;
}

DVTI_FN dvti_slot *dvti_graph_slot(dvti_graph *graph, const dvti_node *consumer, dvt_array *x) {
    dvti_origin origin = dvti_origin_of(consumer, x);
    const void *key = origin.node ? (const void *)origin.node : (const void *)origin.leaf;
    size_t *place = key && graph->table_size ? dvti_graph_place(graph, key) : NULL;
    return place && *place ? graph->slots + *place - 1 : NULL;
}

/* ---- collecting ---- */
static bool dvti_graph_add_origin(dvti_graph *graph, const char *kind, int i, dvt_array *x,
                                  dvti_slot **out) {
    dvti_origin origin = dvti_origin_of(NULL, x);
    if (!origin.node && !origin.leaf && !dvt_dtype_is_float(x->dtype)) {
        dvti_fail(DVT_ERR_GRAD,
                  "%s: %s %d is %s; expected a floating dtype, since integers and bool have no "
                  "gradients: convert the arrays that it depends on with dvt_astype",
                  graph->name, kind, i, dvti_describe(x));
        return false;
    }
    if (!origin.node && !origin.leaf) {
        dvti_fail(
            DVT_ERR_GRAD,
            "%s: %s %d (%s) is not in a computational graph; compute it inside DVT_RECORD { ... } "
            "from arrays with dvt_attach_grad",
            graph->name, kind, i, dvti_describe(x));
        return false;
    }
    *out = dvti_graph_add(graph, origin);
    return *out != NULL;
}

/* Adds a node or leaf to the graph. A leaf without an owner is left out: its gradient is
   unreachable. The graph owns its leaves while it exists. */
static bool dvti_graph_reach(dvti_graph *graph, dvti_origin origin) {
    bool good;
    if (!origin.node && (!origin.leaf || !dvti_retain_owned(origin.leaf)))
        return true;
    good = dvti_graph_add(graph, origin) != NULL;
    if (!origin.node)
        dvti_disown(origin.leaf);
    return good;
}

/* Visits every slot once, in the order of discovery. It does not recurse, so long graphs do not
   exhaust the stack. */
static bool dvti_graph_follow(dvti_graph *graph) {
    size_t at;
    int i;
    for (at = 0; at < graph->count; at++) {
        const dvti_node *node = graph->slots[at].node;
        if (!node)
            continue;
        if (node->used) {
            dvti_fail(DVT_ERR_GRAD,
                      "%s: the graph behind a result of %s was freed by an earlier backward; to "
                      "differentiate it twice pass DVT_RETAIN_GRAPH to the first "
                      "dvt_backward_from, or compute it again inside DVT_RECORD",
                      graph->name, node->name);
            return false;
        }
        for (i = 0; i < node->n_in; i++) {
            dvti_origin origin = dvti_origin_of(node, node->in[i]);
            if (!dvti_graph_reach(graph, origin))
                return false;
        }
    }
    return true;
}

static int dvti_slot_compare(const void *a, const void *b) {
    const dvti_slot *x = (const dvti_slot *)a, *y = (const dvti_slot *)b;
    int64_t p = x->node ? x->node->sequence : -1, q = y->node ? y->node->sequence : -1;
    return p > q ? -1 : p < q;
}

/* Marks the slots that depend on a wanted one, from the inputs to the heads. */
static void dvti_graph_mark_needed(dvti_graph *graph, bool all_leaves) {
    size_t at;
    int i;
    for (at = graph->count; at-- > 0;) {
        dvti_slot *slot = graph->slots + at;
        slot->needed = slot->variable || (slot->leaf && all_leaves);
        for (i = 0; slot->node && !slot->needed && i < slot->node->n_in; i++) {
            const dvti_slot *input = dvti_graph_slot(graph, slot->node, slot->node->in[i]);
            slot->needed = input && input->needed;
        }
    }
}

DVTI_FN bool dvti_graph_begin(dvti_graph *graph, const char *name, dvt_array *const *heads, int n,
                              dvt_array *const *vars, int n_vars) {
    dvti_slot *slot;
    int i;
    memset(graph, 0, sizeof *graph);
    graph->name = name;
    for (i = 0; i < n; i++)
        if (!dvti_graph_add_origin(graph, "head", i, heads[i], &slot))
            return false;
    if (!dvti_graph_follow(graph))
        return false;
    for (i = 0; i < n_vars; i++) {
        if (!dvti_graph_add_origin(graph, "variable", i, vars[i], &slot))
            return false;
        slot->variable = true;
    }
    qsort(graph->slots, graph->count, sizeof *graph->slots, dvti_slot_compare);
    dvti_graph_enter_all(graph);
    dvti_graph_mark_needed(graph, vars == NULL);
    return true;
}

DVTI_FN void dvti_graph_end(dvti_graph *graph) {
    size_t i;
    for (i = 0; i < graph->count; i++) {
        dvti_node_release(graph->slots[i].node);
        dvti_disown(graph->slots[i].leaf);
        dvti_disown(graph->slots[i].grad);
    }
    dvti_free(graph->slots);
    dvti_free(graph->table);
    memset(graph, 0, sizeof *graph);
}

/* ---- gathering ---- */
DVTI_FN bool dvti_exclusive(dvt_array *x) {
    return dvti_atomic_load(&x->object.references) == 1 &&
           dvti_atomic_load(&x->storage->references) == 1 && !x->storage->release && !x->broadcast;
}

/* Adds `part` to the gathered gradient. Addition commutes, so the sum is formed in whichever array
   has no other owner. */
DVTI_FN bool dvti_slot_add(dvti_slot *slot, dvt_array *part) {
    dvt_array *sum = NULL;
    dvt_scope_guard scope;
    if (!slot->grad) {
        slot->grad = part;
        return true;
    }
    if (!dvt_is_recording() && dvti_exclusive(slot->grad))
        sum = dvt_add_(slot->grad, part);
    else if (!dvt_is_recording() && dvti_exclusive(part)) {
        sum = dvt_add_(part, slot->grad);
        if (sum) {
            part = slot->grad;
            slot->grad = sum;
        }
    } else {
        scope = dvt_scope_begin();
        sum = dvt_add(slot->grad, part);
        if (sum) {
            dvti_disown(slot->grad);
            slot->grad = sum;
            dvti_scope_take(sum);
        }
        dvt_scope_end(&scope);
    }
    dvti_disown(part);
    return sum != NULL;
}
