/* RNN, LSTM and GRU. One product computes i2h of all time steps, before the steps are visited. */
#include "6_nn/dvt_nn_internal.h"

typedef enum dvti_cell { DVTI_CELL_RNN, DVTI_CELL_LSTM, DVTI_CELL_GRU } dvti_cell;

static const struct dvti_cell_row {
    const char *kind, *stem, *make, *make_with;
    int gates, states;
} dvti_cells[] = {{"RNN", "rnn", "dvt_nn_rnn", "dvt_nn_rnn_with", 1, 1},
                  {"LSTM", "lstm", "dvt_nn_lstm", "dvt_nn_lstm_with", 4, 2},
                  {"GRU", "gru", "dvt_nn_gru", "dvt_nn_gru_with", 3, 1}};

typedef struct dvti_recurrent {
    dvt_nn_recurrent_desc desc; /* with its defaults resolved */
    dvti_cell cell;
    int gates, states, directions;
} dvti_recurrent;

/* The arrays of one dvt_recurrent_forward. */
typedef struct dvti_recurrent_call {
    const dvti_recurrent *r;
    dvt_array *const *states; /* NULL: zeros */
    dvt_array **next;         /* NULL: not wanted */
    dvt_array **last;         /* the states of all layers: h of each, then c of each */
} dvti_recurrent_call;

/* ---- one time step ---- */
static dvt_array *dvti_gate(dvt_array *x, int64_t hidden, int first, int n) {
    return dvt_slice(x, 1, first * hidden, (first + n) * hidden, 1);
}

/* The sigmoid of all gates, also of g, which does not use it, is one operation instead of two. */
static void dvti_lstm_step(int64_t hidden, dvt_array *gates, dvt_array **state) {
    dvt_array *g = dvt_tanh(dvti_gate(gates, hidden, 2, 1)), *s = dvt_sigmoid(gates);
    dvt_array *kept = dvt_mul(dvti_gate(s, hidden, 1, 1), state[1]);
    state[1] = dvt_add(kept, dvt_mul(dvti_gate(s, hidden, 0, 1), g));
    state[0] = dvt_mul(dvti_gate(s, hidden, 3, 1), dvt_tanh(state[1]));
}

static void dvti_gru_step(int64_t hidden, dvt_array *x, dvt_array *h2h, dvt_array **state) {
    dvt_array *s = dvt_sigmoid(dvt_add(dvti_gate(x, hidden, 0, 2), dvti_gate(h2h, hidden, 0, 2)));
    dvt_array *n = dvt_mul(dvti_gate(s, hidden, 0, 1), dvti_gate(h2h, hidden, 2, 1));
    n = dvt_tanh(dvt_add(dvti_gate(x, hidden, 2, 1), n));
    state[0] = dvt_add(n, dvt_mul(dvti_gate(s, hidden, 1, 1), dvt_sub(state[0], n)));
}

/* Replaces the states by the next ones. x is i2h of this step, (N, gates * hidden_size). */
static bool dvti_recurrent_step(const dvti_recurrent *r, dvt_array *x, dvt_array *w, dvt_array *b,
                                dvt_array **state) {
    dvt_array *h2h = dvti_linear(state[0], w, b, false);
    int64_t hidden = r->desc.hidden_size;
    if (!x || !h2h)
        return false;
    if (r->cell == DVTI_CELL_LSTM)
        dvti_lstm_step(hidden, dvt_add(x, h2h), state);
    else if (r->cell == DVTI_CELL_GRU)
        dvti_gru_step(hidden, x, h2h, state);
    else
        state[0] = dvti_activate(dvt_add(x, h2h), r->desc.activation);
    return state[0] != NULL;
}

/* ---- one direction of a layer ---- */
/* Returns parameter number `which` of a direction of a layer, in the order of dvti_recurrent_add.
   Returns NULL on failure. */
static dvt_array *dvti_recurrent_data(dvt_block *self, const dvti_recurrent *r, int at, int which,
                                      dvt_ctx ctx) {
    return dvti_param_compute(self->param[at * (r->desc.no_bias ? 2 : 4) + which], ctx);
}

/* Returns a state of the caller, in a net with mixed precision in the dtype of the net. */
static dvt_array *dvti_recurrent_state(dvt_array *state, const dvt_array *i2h) {
    return state && dvti_region_mixed() ? dvt_as_in_dtype(state, i2h->dtype) : state;
}

/* Sets the states before the first step. `at` counts the directions of all layers. */
static bool dvti_recurrent_begin(const dvti_recurrent_call *call, int at, dvt_array *i2h,
                                 dvt_array **state) {
    const dvti_recurrent *r = call->r;
    int64_t batch = i2h->shape.dim[r->desc.layout == DVT_NTC ? 0 : 1];
    int k;
    for (k = 0; k < r->states; k++) {
        state[k] = call->states ? dvti_recurrent_state(dvt_index(call->states[k], at), i2h)
                                : dvt_zeros(DVT_SHAPE(batch, r->desc.hidden_size), i2h->dtype,
                                            dvt_ctx_of(i2h));
        if (!state[k])
            return false;
    }
    return true;
}

/* Visits the time steps, the last one first for the reverse direction, and stores h of each. */
static bool dvti_recurrent_scan(const dvti_recurrent *r, bool reverse, dvt_array *i2h, dvt_array *w,
                                dvt_array *b, dvt_array **state, dvt_array **h) {
    int axis = r->desc.layout == DVT_NTC;
    int64_t steps = i2h->shape.dim[axis], i;
    for (i = 0; i < steps; i++) {
        int64_t t = reverse ? steps - 1 - i : i;
        dvt_array *before = state[1];
        dvt_scope_guard scope = dvt_scope_begin();
        dvt_array *x = dvt_slice(i2h, axis, t, t + 1, 1);
        bool good = dvti_recurrent_step(r, dvt_squeeze(x, DVT_AXES(axis)), w, b, state);
        dvt_keep(state[0]);
        if (before)
            dvt_keep(state[1]);
        dvt_scope_end(&scope);
        if (!good)
            return false;
        h[t] = state[0];
        if (before) { /* unlike h, the old c is no result */
            dvti_scope_take(before);
            dvti_disown(before);
        }
    }
    return true;
}

/* Returns i2h of all steps. Except in a GRU, both biases are added here: their gradient is then one
   sum. */
static dvt_array *dvti_recurrent_i2h(dvt_block *self, const dvti_recurrent *r, int at, dvt_array *x,
                                     dvt_array **w, dvt_array **b) {
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *i2h = dvti_recurrent_data(self, r, at, 0, ctx), *bias = NULL;
    *w = dvti_recurrent_data(self, r, at, 1, ctx);
    *b = NULL;
    if (!i2h || !*w)
        return NULL;
    if (!r->desc.no_bias) {
        bias = dvti_recurrent_data(self, r, at, 2, ctx);
        *b = dvti_recurrent_data(self, r, at, 3, ctx);
        if (!bias || !*b)
            return NULL;
        if (r->cell != DVTI_CELL_GRU) {
            bias = dvt_add(bias, *b);
            *b = NULL;
            if (!bias)
                return NULL;
        }
    }
    return dvti_linear(x, i2h, bias, false);
}

static dvt_array *dvti_recurrent_direction(dvt_block *self, const dvti_recurrent_call *call, int at,
                                           dvt_array *x) {
    const dvti_recurrent *r = call->r;
    int axis = r->desc.layout == DVT_NTC, k;
    int64_t steps = x->shape.dim[axis];
    dvt_array **h = (dvt_array **)dvti_alloc(sizeof *h * (size_t)steps), *y = NULL;
    dvt_array *state[2] = {NULL, NULL}, *w, *b, *i2h;
    dvt_scope_guard scope;
    if (!h) {
        dvti_fail_memory("dvt_block_forward", (int64_t)sizeof *h * steps);
        return NULL;
    }
    scope = dvt_scope_begin();
    i2h = dvti_recurrent_i2h(self, r, at, x, &w, &b);
    if (i2h && dvti_recurrent_begin(call, at, i2h, state) &&
        dvti_recurrent_scan(r, at % r->directions == 1, i2h, w, b, state, h))
        y = dvt_stack(h, (int)steps, axis);
    for (k = 0; y && call->last && k < r->states; k++)
        call->last[k * r->desc.layers * r->directions + at] = (dvt_array *)dvt_keep(state[k]);
    dvt_keep(y);
    dvt_scope_end(&scope);
    dvti_free(h);
    return y;
}

/* ---- all layers ---- */
static bool dvti_recurrent_accepts(const dvti_recurrent *r, const dvt_array *x, int64_t inputs) {
    bool ntc = r->desc.layout == DVT_NTC;
    char last[24] = "C";
    if (x->shape.ndim == 3 && x->shape.dim[ntc] > 0 && x->shape.dim[ntc] <= INT32_MAX &&
        (inputs ? x->shape.dim[2] == inputs : x->shape.dim[2] > 0))
        return true;
    if (inputs)
        snprintf(last, sizeof last, "%lld", (long long)inputs);
    dvti_fail(DVT_ERR_SHAPE,
              "x is %s; expected (%s, %s) with at least one time step T: reshape it, or make the "
              "block for other sizes",
              dvti_describe(x), ntc ? "N, T" : "T, N", last);
    return false;
}

static bool dvti_recurrent_states_ok(const dvti_recurrent_call *call, const dvt_array *x) {
    const dvti_recurrent *r = call->r;
    dvt_shape expected =
        DVT_SHAPE(r->desc.layers * r->directions, x->shape.dim[r->desc.layout == DVT_NTC ? 0 : 1],
                  r->desc.hidden_size);
    int k;
    for (k = 0; call->states && k < r->states; k++)
        if (!dvt_shape_equal(call->states[k]->shape, expected)) {
            dvti_fail(DVT_ERR_SHAPE,
                      "the state %c is %s; expected %s: layers times directions, batch, "
                      "hidden_size",
                      "hc"[k], dvti_describe(call->states[k]), dvti_shape_text(expected));
            return false;
        }
    return true;
}

static dvt_array *dvti_recurrent_layer(dvt_block *self, const dvti_recurrent_call *call, int layer,
                                       dvt_array *x) {
    const dvti_recurrent *r = call->r;
    dvt_array *way[2] = {NULL, NULL};
    int k;
    for (k = 0; k < r->directions; k++)
        if (!(way[k] = dvti_recurrent_direction(self, call, layer * r->directions + k, x)))
            return NULL;
    x = r->directions == 2 ? dvt_concat(way, 2, -1) : way[0];
    return x && layer + 1 < r->desc.layers ? dvt_dropout(x, r->desc.dropout) : x;
}

static dvt_array *dvti_recurrent_run(dvt_block *self, void *user, dvt_array *x) {
    dvti_recurrent_call *call = (dvti_recurrent_call *)user;
    const dvti_recurrent *r = call->r;
    int n = r->desc.layers * r->directions, k;
    dvt_array *next[2] = {NULL, NULL};
    if (!dvti_recurrent_accepts(r, x, dvt_param_shape(self->param[0]).dim[1]) ||
        !dvti_recurrent_states_ok(call, x))
        return NULL;
    for (k = 0; x && k < r->desc.layers; k++)
        x = dvti_recurrent_layer(self, call, k, x);
    for (k = 0; x && call->next && k < r->states; k++)
        if (!(next[k] = dvt_stack(call->last + k * n, n, 0)))
            return NULL;
    for (k = 0; x && call->next && k < r->states; k++)
        call->next[k] = (dvt_array *)dvt_keep(next[k]);
    return x;
}

static dvt_array *dvti_recurrent_forward(dvt_block *self, void *user, dvt_array *x) {
    dvti_recurrent_call call;
    memset(&call, 0, sizeof call);
    call.r = (const dvti_recurrent *)user;
    return dvti_recurrent_run(self, &call, x);
}

DVT_API dvt_array *dvt_recurrent_forward(dvt_block *block, dvt_array *x, dvt_array *const *states,
                                         int n, dvt_array **next) {
    static const char name[] = "dvt_recurrent_forward";
    dvti_recurrent_call call;
    dvt_array *y;
    size_t bytes;
    int k;
    if (!block || !x) {
        dvti_null(name, block ? "x" : "block");
        return NULL;
    }
    if (block->desc.forward != dvti_recurrent_forward) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the block is a %s; expected one of dvt_nn_rnn, dvt_nn_lstm and dvt_nn_gru: "
                  "call dvt_block_forward",
                  name, block->desc.kind);
        return NULL;
    }
    memset(&call, 0, sizeof call);
    call.r = (const dvti_recurrent *)block->desc.user;
    call.states = states;
    call.next = next;
    if (n != call.r->states) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %d states; expected %d for a %s%s", name, n,
                  call.r->states, block->desc.kind, call.r->states == 2 ? ": h and c" : ": h");
        return NULL;
    }
    for (k = 0; states && k < n; k++)
        if (!states[k]) {
            dvti_null(name, "a state");
            return NULL;
        }
    bytes = sizeof *call.last * (size_t)(n * call.r->desc.layers * call.r->directions);
    if (next && !(call.last = (dvt_array **)dvti_alloc(bytes))) {
        dvti_fail_memory(name, (int64_t)bytes);
        return NULL;
    }
    y = dvti_block_forward(block, x, dvti_recurrent_run, &call);
    dvti_free(call.last);
    for (k = 0; y && next && k < n && block->mixed && !dvti_region_mixed(); k++)
        if (!(next[k] = dvt_as_in_dtype(next[k], DVT_F32))) /* as y */
            y = NULL;
    return y;
}

/* ---- the block ---- */
static dvt_status dvti_recurrent_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvti_recurrent *r = (const dvti_recurrent *)user;
    dvt_status status = DVT_OK;
    int k;
    if (!dvti_recurrent_accepts(r, x, 0))
        return dvti_failure();
    for (k = 0; k < r->directions && status == DVT_OK; k++)
        status = dvt_param_set_shape(self->param[k * (r->desc.no_bias ? 2 : 4)],
                                     DVT_SHAPE(r->gates * r->desc.hidden_size, x->shape.dim[2]));
    return status;
}

static size_t dvti_recurrent_describe(const dvt_block *self, void *user, char *buffer,
                                      size_t size) {
    const dvti_recurrent *r = (const dvti_recurrent *)user;
    int64_t inputs = dvt_param_shape(self->param[0]).dim[1];
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "%s(", self->desc.kind);
    if (inputs)
        dvti_text_add(&text, "%lld", (long long)inputs);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld, %s", (long long)r->desc.hidden_size,
                  r->desc.layout == DVT_NTC ? "NTC" : "TNC");
    if (r->desc.layers != 1)
        dvti_text_add(&text, ", num_layers=%d", r->desc.layers);
    if (r->desc.dropout != 0)
        dvti_text_add(&text, ", dropout=%s", dvti_python_number(r->desc.dropout));
    dvti_text_add(&text, r->directions == 2 ? ", bidirectional)" : ")");
    return text.length;
}

static bool dvti_recurrent_check(const char *function, dvti_cell cell,
                                 const dvt_nn_recurrent_desc *d) {
    if (d->hidden_size < 1 || d->hidden_size > INT64_MAX / 8 || d->input_size < 0 ||
        d->layers < 1 || d->layers > 1000 || !(d->dropout >= 0 && d->dropout < 1)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: hidden_size %lld, input_size %lld, layers %d, dropout %g; expected 1 or "
                  "more, 0 (inferred) or more, up to 1000, and 0 <= dropout < 1",
                  function, (long long)d->hidden_size, (long long)d->input_size, d->layers,
                  d->dropout);
        return false;
    }
    if (cell == DVTI_CELL_RNN ? d->activation != DVT_TANH && d->activation != DVT_RELU
                              : d->activation != DVT_IDENTITY) {
        dvti_fail(DVT_ERR_RANGE, "%s: activation number %d; expected %s", function,
                  (int)d->activation,
                  cell == DVTI_CELL_RNN ? "DVT_TANH (also by 0) or DVT_RELU"
                                        : "0: the activations of the gates are fixed");
        return false;
    }
    if (!dvt_dtype_is_float(d->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype %s; expected a float dtype", function,
                  dvt_dtype_name(d->dtype));
        return false;
    }
    return dvti_choice(function, "layout", (int)d->layout, "DVT_TNC", "DVT_NTC");
}

static bool dvti_recurrent_param(dvt_block *block, char way, int layer, const char *what,
                                 dvt_shape shape, dvt_init init) {
    const dvt_nn_recurrent_desc *d = &((const dvti_recurrent *)block->desc.user)->desc;
    char name[40];
    snprintf(name, sizeof name, "%c%d_%s", way, layer, what);
    if (shape.ndim == 1 && init.kind == DVT_INIT_DEFAULT)
        init = dvt_init_zero();
    return dvt_block_add_param(block, name, shape, d->dtype, init) != NULL;
}

static bool dvti_recurrent_add(dvt_block *block, int layer, char way) {
    const dvti_recurrent *r = (const dvti_recurrent *)block->desc.user;
    const dvt_nn_recurrent_desc *d = &r->desc;
    int64_t rows = r->gates * d->hidden_size;
    int64_t inputs = layer ? d->hidden_size * r->directions : d->input_size;
    return dvti_recurrent_param(block, way, layer, "i2h_weight", DVT_SHAPE(rows, inputs),
                                d->i2h_weight_init) &&
           dvti_recurrent_param(block, way, layer, "h2h_weight", DVT_SHAPE(rows, d->hidden_size),
                                d->h2h_weight_init) &&
           (d->no_bias || (dvti_recurrent_param(block, way, layer, "i2h_bias", DVT_SHAPE(rows),
                                                d->i2h_bias_init) &&
                           dvti_recurrent_param(block, way, layer, "h2h_bias", DVT_SHAPE(rows),
                                                d->h2h_bias_init)));
}

static dvt_block *dvti_recurrent_make(const char *function, dvti_cell cell,
                                      dvt_nn_recurrent_desc d) {
    const struct dvti_cell_row *row = dvti_cells + cell;
    dvt_block_desc desc;
    dvti_recurrent *r;
    dvt_block *block;
    int i;
    if (d.layers == 0)
        d.layers = 1;
    if (cell == DVTI_CELL_RNN && d.activation == DVT_IDENTITY)
        d.activation = DVT_TANH;
    if (!dvti_recurrent_check(function, cell, &d))
        return NULL;
    if (!(r = (dvti_recurrent *)dvti_alloc_zero(sizeof *r))) {
        dvti_fail_memory(function, (int64_t)sizeof *r);
        return NULL;
    }
    r->desc = d;
    r->cell = cell;
    r->gates = row->gates;
    r->states = row->states;
    r->directions = d.bidirectional ? 2 : 1;
    memset(&desc, 0, sizeof desc);
    desc.kind = row->kind;
    desc.forward = dvti_recurrent_forward;
    desc.infer = dvti_recurrent_infer;
    desc.describe = dvti_recurrent_describe;
    block = dvti_block_make(function, &desc, row->stem, r);
    for (i = 0; block && i < d.layers; i++)
        if (!dvti_recurrent_add(block, i, 'l') ||
            (d.bidirectional && !dvti_recurrent_add(block, i, 'r')))
            return dvti_block_discard(block);
    return block;
}

static dvt_block *dvti_recurrent_with(dvti_cell cell, const dvt_nn_recurrent_desc *desc) {
    if (desc)
        return dvti_recurrent_make(dvti_cells[cell].make_with, cell, *desc);
    dvti_null(dvti_cells[cell].make_with, "desc");
    return NULL;
}

static dvt_block *dvti_recurrent_of(dvti_cell cell, int64_t hidden_size) {
    dvt_nn_recurrent_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.hidden_size = hidden_size;
    return dvti_recurrent_make(dvti_cells[cell].make, cell, desc);
}

DVT_API dvt_block *dvt_nn_rnn_with(const dvt_nn_recurrent_desc *desc) {
    return dvti_recurrent_with(DVTI_CELL_RNN, desc);
}

DVT_API dvt_block *dvt_nn_lstm_with(const dvt_nn_recurrent_desc *desc) {
    return dvti_recurrent_with(DVTI_CELL_LSTM, desc);
}

DVT_API dvt_block *dvt_nn_gru_with(const dvt_nn_recurrent_desc *desc) {
    return dvti_recurrent_with(DVTI_CELL_GRU, desc);
}

DVT_API dvt_block *dvt_nn_rnn(int64_t hidden_size) {
    return dvti_recurrent_of(DVTI_CELL_RNN, hidden_size);
}

DVT_API dvt_block *dvt_nn_lstm(int64_t hidden_size) {
    return dvti_recurrent_of(DVTI_CELL_LSTM, hidden_size);
}

DVT_API dvt_block *dvt_nn_gru(int64_t hidden_size) {
    return dvti_recurrent_of(DVTI_CELL_GRU, hidden_size);
}
