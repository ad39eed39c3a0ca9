/* The tape records which operations computed an array: recording state, nodes, and the release of
   nodes. The backward pass is in 5_grad. */
#include "4_ops/dvt_op.h"

static DVTI_TLS int dvti_recording, dvti_training, dvti_recorded_scale;

DVT_API bool dvt_is_recording(void) {
    return dvti_recording != 0;
}

DVT_API bool dvt_is_training(void) {
    return dvti_training != 0;
}

DVT_API dvt_record_guard dvt_record_begin(dvt_switch recording, dvt_switch training) {
    dvt_record_guard guard;
    guard.recording = dvti_recording;
    guard.training = dvti_training;
    guard.once = 1;
    if (recording != DVT_UNCHANGED)
        dvti_recording = recording != DVT_OFF;
    if (training != DVT_UNCHANGED)
        dvti_training = training != DVT_OFF;
    return guard;
}

DVT_API void dvt_record_end(dvt_record_guard *guard) {
    if (!guard)
        return;
    dvti_recording = guard->recording;
    dvti_training = guard->training;
    guard->once = 0;
}

DVTI_FN int dvti_set_loss_scale(int log2) {
    const int previous = dvti_recorded_scale;
    dvti_recorded_scale = log2;
    return previous;
}

DVT_API bool dvt_has_history(const dvt_array *x) {
    return x && (x->node || (x->attached && x->grad_req != DVT_GRAD_NULL));
}

DVTI_FN dvti_attr dvti_attr_none(void) {
    dvti_attr attr;
    DVTI_ZERO_4(attr.f);
    DVTI_ZERO_8(attr.i);
    DVTI_ZERO_4(attr.i + 8);
    return attr;
}

/* ---- nodes ---- */
/* Nodes that die while another is being released wait in this thread's list. Releasing an input's
   last owner releases that input's node, and so on; a long chain must not cause a deep
   recursion. */
static DVTI_TLS dvti_node *dvti_dying;
static DVTI_TLS bool dvti_taking_apart;

static void dvti_node_drop(dvti_node *node) {
    int i, n = node->n_in;
    dvt_array *result = node->result;
    node->n_in = 0;
    node->result = NULL;
    for (i = 0; i < n; i++)
        dvti_unhold(node->in[i]);
    dvti_disown(result);
}

DVTI_FN void dvti_node_release(dvti_node *node) {
    if (!node || dvti_atomic_add(&node->references, -1) != 0)
        return;
    node->next = dvti_dying;
    dvti_dying = node;
    if (dvti_taking_apart)
        return;
    dvti_taking_apart = true;
    while (dvti_dying) {
        dvti_node *next = dvti_dying;
        dvti_dying = next->next;
        dvti_node_drop(next);
        dvti_free(next);
    }
    dvti_taking_apart = false;
}

DVTI_FN void dvti_node_clear(dvti_node *node) {
    node->used = true;
    dvti_node_drop(node);
}

DVTI_FN dvt_array *dvti_alias_unowned(dvt_array *x) {
    dvt_array *alias = dvti_view_new("dvt_detach", x, x->shape, x->stride, x->offset);
    if (alias)
        dvti_scope_take(alias);
    return alias;
}

/* Returns the values that the gradient of pow with a scalar reads. grad_elementwise.c lists the
   exponents that need no power. */
static unsigned dvti_reads_of_power(double s) {
    return s == 0 || s == 1 ? 0 : s == 0.5 || s == -1 ? DVTI_READS_Y : DVTI_READS_X;
}

/* Returns the values that a table row's gradient reads. Rows describe arrays. A scalar in attr.f[0]
   is the first operand (attr.i[0] = 1) or the second (2): the array is then the row's b or a. A
   scalar is never overwritten. */
static unsigned dvti_reads_of_row(const dvti_node *node, int input) {
    const dvti_op_row *row = dvti_op_row_of(node->op);
    const unsigned reads = row->reads >> 4 * DVTI_MIN(input, 2) & 15;
    if (row->operands != 2 || node->attr.i[0] == 0)
        return reads;
    if (node->attr.i[0] == 1) {
        const unsigned second = row->reads >> 4 & 15;
        return (second & DVTI_READS_Y) | (second & DVTI_READS_B ? DVTI_READS_X : 0);
    }
    return node->op == DVTI_OP_pow ? dvti_reads_of_power(node->attr.f[0]) : reads & ~DVTI_READS_B;
}

DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input) {
    const unsigned reads = dvti_reads_of_row(node, input);
    return (reads & DVTI_READS_AB) | (reads & DVTI_READS_Y ? DVTI_READS_RESULT : 0);
}

/* Returns whether the gradient to any input with history reads the result. */
static bool dvti_result_is_read(const dvti_node *node, dvt_array *const *in, int n) {
    int i;
    for (i = 0; i < n; i++)
        if (dvt_has_history(in[i]) && dvti_grad_reads(node, i) & DVTI_READS_RESULT)
            return true;
    return false;
}

/* Allocates the node, its inputs and their versions in one block. */
static dvti_node *dvti_node_new(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                                int n, const dvti_attr *attr) {
    static dvti_atomic sequence;
    size_t each = sizeof(dvt_array *) + sizeof(int64_t);
    dvti_node *node = (dvti_node *)dvti_alloc(sizeof *node + each * (size_t)n);
    int i;
    if (!node)
        return NULL;
    memset(node, 0, sizeof *node);
    node->head.release = dvti_node_release;
    node->references = 1;
    node->version = (int64_t *)(void *)(node + 1);
    node->in = (dvt_array **)(void *)(node->version + n);
    node->op = op;
    node->name = name;
    node->loss_scale = dvti_recorded_scale;
    node->attr = attr ? *attr : dvti_attr_none();
    if (dvti_result_is_read(node, in, n)) {
        node->result = dvti_alias_unowned(out);
        if (!node->result) {
            dvti_free(node);
            return NULL;
        }
    }
    for (i = 0; i < n; i++) {
        node->in[i] = in[i];
        dvti_hold(in[i]);
        node->version[i] = dvti_atomic_load(&in[i]->storage->version);
    }
    node->n_in = n;
    node->sequence = dvti_atomic_add(&sequence, 1);
    return node;
}

DVTI_FN bool dvti_prepare(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in, int n,
                          const dvti_attr *attr, dvti_node **node) {
    bool history = false;
    int i;
    *node = NULL;
    if (!dvti_recording || !dvt_dtype_is_float(out->dtype))
        return true;
    for (i = 0; i < n; i++)
        history = history || dvt_has_history(in[i]);
    if (!history)
        return true;
    *node = dvti_node_new(out, op, name, in, n, attr);
    if (!*node)
        dvti_fail_memory(name, (int64_t)sizeof **node);
    return *node != NULL;
}

DVTI_FN dvt_array *dvti_remember(dvt_array *out, dvti_node *node) {
    if (node) {
        node->result_version = dvti_atomic_load(&out->storage->version);
        out->node = node;
    }
    return out;
}

DVTI_FN dvt_array *dvti_record_epilogue(dvt_array *x, dvti_op op, const char *name,
                                        dvt_array *other) {
    dvt_array *in[2], *y;
    if (!x || !dvt_is_recording())
        return x;
    in[0] = x;
    in[1] = other;
    y = dvti_view_new(name, x, x->shape, x->stride, x->offset);
    return y ? dvti_finish(y, op, name, in, other ? 2 : 1, NULL) : NULL;
}

DVTI_FN dvt_array *dvti_finish(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                               int n, const dvti_attr *attr) {
    dvti_node *node;
    return out && dvti_prepare(out, op, name, in, n, attr, &node) ? dvti_remember(out, node) : NULL;
}
