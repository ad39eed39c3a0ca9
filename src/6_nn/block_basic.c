/* Sequential, Dense, Flatten, Dropout, Embedding. Each is a block like those that users
   write, with its settings as the user pointer. */
#include "6_nn/dvt_nn_internal.h"

/* ---- settings of a block ---- */
static void *dvti_nn_state(const char *function, size_t bytes) {
    void *state = dvti_alloc_zero(bytes);
    if (!state)
        dvti_fail_memory(function, (int64_t)bytes);
    return state;
}

static dvt_block_desc dvti_nn_desc(const char *kind,
                                   dvt_array *(*forward)(dvt_block *, void *, dvt_array *),
                                   size_t (*describe)(const dvt_block *, void *, char *, size_t)) {
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    desc.forward = forward;
    desc.describe = describe;
    return desc;
}

/* ---- Sequential ---- */
/* Frees an intermediate result as soon as the next one exists, unless a tape or a caller owns it
   too. */
DVTI_FN dvt_array *dvti_sequential_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *y = x, *next;
    size_t i;
    (void)user;
    for (i = 0; y && i < self->n_child; i++) {
        next = dvt_block_forward(self->child[i], y);
        if (y != x && y != next) {
            dvti_scope_take(y);
            dvti_disown(y);
        }
        y = next;
    }
    return y;
}

DVTI_FN bool dvti_block_is_sequential(const dvt_block *block) {
    return block->desc.forward == dvti_sequential_forward;
}

DVT_API dvt_block *dvt_nn_sequential(void) {
    dvt_block_desc desc = dvti_nn_desc("Sequential", dvti_sequential_forward, NULL);
    return dvti_block_make("dvt_nn_sequential", &desc, "sequential", NULL);
}

/* ---- Dense ---- */
typedef struct dvti_dense_block {
    int64_t units;
    dvt_activation activation;
    bool no_flatten;
} dvti_dense_block;

/* Returns the elements per row of the input, which is also an extent of the weight. Returns 0 when
   there is no such number. */
static int64_t dvti_dense_block_inputs(const dvti_dense_block *d, const dvt_array *x) {
    int64_t count = x->shape.ndim > 0;
    int i;
    if (d->no_flatten)
        return x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 0;
    for (i = 1; i < x->shape.ndim; i++)
        if (!dvti_mul(count, x->shape.dim[i], &count))
            return 0;
    return count;
}

static bool dvti_dense_block_accepts(const dvti_dense_block *d, const dvt_array *x, int64_t in) {
    char expected[80];
    if (dvti_dense_block_inputs(d, x) == in)
        return true;
    snprintf(expected, sizeof expected,
             d->no_flatten ? "(..., %lld)" : "(batch, %lld), or the same with rows of more axes",
             (long long)in);
    dvti_fail(DVT_ERR_SHAPE, "x is %s; expected %s: reshape it, or make the block for other sizes",
              dvti_describe(x), expected);
    return false;
}

static dvt_array *dvti_dense_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *w = dvt_block_data(self, "weight", ctx), *b = NULL;
    if (!w || (self->n_param > 1 && !(b = dvt_block_data(self, "bias", ctx))))
        return NULL;
    if (!dvti_dense_block_accepts(d, x, w->shape.dim[1]))
        return NULL;
    if (!d->no_flatten && x->shape.ndim != 2)
        x = dvt_flatten(x);
    x = x ? dvti_linear(x, w, b, d->activation == DVT_RELU) : NULL;
    return x && d->activation != DVT_RELU ? dvti_activate(x, d->activation) : x;
}

static dvt_status dvti_dense_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    int64_t in = dvti_dense_block_inputs(d, x);
    if (in <= 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "in_units cannot be inferred from x %s; expected %s with at least one "
                         "element per row, or give in_units",
                         dvti_describe(x), d->no_flatten ? "(..., features)" : "(batch, features)");
    return dvt_param_set_shape(dvt_block_param(self, "weight"), DVT_SHAPE(d->units, in));
}

static size_t dvti_dense_block_describe(const dvt_block *self, void *user, char *buffer,
                                        size_t size) {
    const dvti_dense_block *d = (const dvti_dense_block *)user;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "Dense(");
    if (shape.dim[1])
        dvti_text_add(&text, "%lld", (long long)shape.dim[1]);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld, %s)", (long long)d->units,
                  d->activation == DVT_IDENTITY ? "linear" : dvti_activation_text(d->activation));
    return text.length;
}

static bool dvti_dense_block_check(const char *function, const dvt_nn_dense_desc *desc) {
    if (desc->units < 1 || desc->in_units < 0) {
        dvti_fail(
            DVT_ERR_RANGE,
            "%s: units is %lld and in_units %lld; expected 1 or more outputs, and 0 (inferred) or "
            "more inputs",
            function, (long long)desc->units, (long long)desc->in_units);
        return false;
    }
    if (!dvt_dtype_is_float(desc->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype %s; expected a float dtype", function,
                  dvt_dtype_name(desc->dtype));
        return false;
    }
    return dvti_activation_ok(function, desc->activation);
}

static dvt_block *dvti_dense_block_make(const char *function, const dvt_nn_dense_desc *desc) {
    dvt_block_desc block_desc =
        dvti_nn_desc("Dense", dvti_dense_block_forward, dvti_dense_block_describe);
    dvt_block *block;
    dvti_dense_block *state;
    if (!dvti_dense_block_check(function, desc) ||
        !(state = (dvti_dense_block *)dvti_nn_state(function, sizeof *state)))
        return NULL;
    state->units = desc->units;
    state->activation = desc->activation;
    state->no_flatten = desc->no_flatten;
    block_desc.infer = dvti_dense_block_infer;
    block = dvti_block_make(function, &block_desc, "dense", state);
    if (block && (!dvt_block_add_param(block, "weight", DVT_SHAPE(desc->units, desc->in_units),
                                       desc->dtype, desc->weight_init) ||
                  (!desc->no_bias && !dvt_block_add_param(block, "bias", DVT_SHAPE(desc->units),
                                                          desc->dtype, desc->bias_init))))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_nn_dense_with(const dvt_nn_dense_desc *desc) {
    if (desc)
        return dvti_dense_block_make("dvt_nn_dense_with", desc);
    dvti_null("dvt_nn_dense_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_nn_dense(int64_t units, dvt_activation activation) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.activation = activation;
    return dvti_dense_block_make("dvt_nn_dense", &desc);
}

/* ---- Flatten ---- */
static dvt_array *dvti_flatten_block_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    return dvt_flatten(x);
}

static size_t dvti_flatten_block_describe(const dvt_block *self, void *user, char *buffer,
                                          size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    (void)user;
    dvti_text_add(&text, "Flatten");
    return text.length;
}

DVT_API dvt_block *dvt_nn_flatten(void) {
    dvt_block_desc desc =
        dvti_nn_desc("Flatten", dvti_flatten_block_forward, dvti_flatten_block_describe);
    return dvti_block_make("dvt_nn_flatten", &desc, "flatten", NULL);
}

/* ---- Dropout ---- */
static dvt_array *dvti_dropout_block_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvt_dropout(x, *(const double *)user);
}

static size_t dvti_dropout_block_describe(const dvt_block *self, void *user, char *buffer,
                                          size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    dvti_text_add(&text, "Dropout(p = %s, axes=())", dvti_python_number(*(const double *)user));
    return text.length;
}

DVT_API dvt_block *dvt_nn_dropout(double p) {
    const char *function = "dvt_nn_dropout";
    dvt_block_desc desc =
        dvti_nn_desc("Dropout", dvti_dropout_block_forward, dvti_dropout_block_describe);
    double *state;
    if (!(p >= 0 && p < 1)) {
        dvti_fail(DVT_ERR_RANGE, "%s: p is %g; expected 0 <= p < 1", function, p);
        return NULL;
    }
    if (!(state = (double *)dvti_nn_state(function, sizeof *state)))
        return NULL;
    *state = p;
    return dvti_block_make(function, &desc, "dropout", state);
}

/* ---- Embedding ---- */
/* Looks up rows of the weight. As in Gluon, class numbers may have any dtype. */
static dvt_array *dvti_embedding_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *w = dvt_block_data(self, "weight", dvt_ctx_of(x));
    (void)user;
    x = dvti_region_classes(x);
    if (w && x && !dvt_dtype_is_int(x->dtype))
        x = dvt_as_in_dtype(x, DVT_I64);
    return w && x ? dvt_take(w, x, 0) : NULL;
}

static size_t dvti_embedding_describe(const dvt_block *self, void *user, char *buffer,
                                      size_t size) {
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    (void)user;
    dvti_text_add(&text, "Embedding(%lld -> %lld, %s)", (long long)shape.dim[0],
                  (long long)shape.dim[1], dvt_dtype_name(self->param[0]->dtype));
    return text.length;
}

DVT_API dvt_block *dvt_nn_embedding(int64_t count, int64_t units) {
    const char *function = "dvt_nn_embedding";
    dvt_block_desc desc =
        dvti_nn_desc("Embedding", dvti_embedding_forward, dvti_embedding_describe);
    dvt_init none;
    dvt_block *block;
    if (count < 1 || units < 1) {
        dvti_fail(DVT_ERR_RANGE, "%s: %lld rows of %lld units; expected at least 1 of each",
                  function, (long long)count, (long long)units);
        return NULL;
    }
    memset(&none, 0, sizeof none);
    block = dvti_block_make(function, &desc, "embedding", NULL);
    if (block && !dvt_block_add_param(block, "weight", DVT_SHAPE(count, units), DVT_F32, none))
        return dvti_block_discard(block);
    return block;
}
