/* Blocks: creation, children, parameters, forward. The computations of the library's blocks are in
   block_*.c. */
#include "6_nn/dvt_nn_internal.h"

/* ---- making ---- */
/* Detaches the block's parameters. Those with other owners live on and keep their names. */
static void dvti_block_leave(dvt_block *block) {
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if (dvti_atomic_load(&block->param[i]->object.references) > 1)
            dvti_block_name(block);
    for (i = 0; i < block->n_param; i++) {
        block->param[i]->block = NULL;
        dvti_disown(block->param[i]);
    }
}

static void dvti_block_destroy(void *object) {
    dvt_block *block = (dvt_block *)object;
    size_t i;
    for (i = 0; i < block->n_child; i++)
        dvti_disown(block->child[i]);
    dvti_block_leave(block);
    dvti_mixed_leave(block);
    if (block->desc.release)
        block->desc.release(block->desc.user);
    dvti_free(block->child);
    dvti_free(block->param);
    dvti_free(block->stem);
    dvti_free((void *)block->desc.kind);
    dvti_free(block);
}

/* Creates a block. On failure the caller keeps desc->user. */
static dvt_block *dvti_block_create(const char *function, const dvt_block_desc *desc,
                                    const char *stem) {
    dvt_block *block = (dvt_block *)dvti_alloc_zero(sizeof *block);
    char *kind = dvti_strdup(desc->kind), *own_stem = dvti_strdup(stem);
    if (!block || !kind || !own_stem)
        dvti_fail_memory(function, (int64_t)(sizeof *block + strlen(desc->kind) + strlen(stem)));
    else if (dvti_object_begin(block, dvti_block_destroy, function)) {
        block->desc = *desc;
        block->desc.kind = kind;
        block->stem = own_stem;
        dvti_atomic_store(&block->number, -1);
        return block;
    }
    dvti_free(block);
    dvti_free(kind);
    dvti_free(own_stem);
    return NULL;
}

DVTI_FN dvt_block *dvti_block_make(const char *function, const dvt_block_desc *desc,
                                   const char *stem, void *state) {
    dvt_block_desc own = *desc;
    dvt_block *block;
    own.user = state;
    own.release = dvti_free;
    block = dvti_block_create(function, &own, stem);
    if (!block)
        dvti_free(state);
    return block;
}

DVTI_FN dvt_block *dvti_nn_block(const char *function, const dvti_nn_kind *kind,
                                 const void *settings, size_t bytes) {
    dvt_block_desc desc;
    void *state = NULL;
    if (bytes) {
        if (!(state = dvti_alloc(bytes))) {
            dvti_fail_memory(function, (int64_t)bytes);
            return NULL;
        }
        memcpy(state, settings, bytes);
    }
    memset(&desc, 0, sizeof desc);
    desc.kind = kind->kind;
    desc.forward = kind->forward;
    desc.infer = kind->infer;
    desc.describe = kind->describe;
    return dvti_block_make(function, &desc, kind->stem, state);
}

DVTI_FN dvt_block *dvti_block_discard(dvt_block *block) {
    dvti_scope_take(block);
    dvti_disown(block);
    return NULL;
}

DVT_API dvt_block *dvt_block_new(const dvt_block_desc *desc) {
    char stem[64];
    size_t i;
    if (!desc || !desc->kind || !desc->forward) {
        dvti_null("dvt_block_new", !desc ? "desc" : !desc->kind ? "desc->kind" : "desc->forward");
        return NULL;
    }
    if (!desc->kind[0] || strlen(desc->kind) >= sizeof stem) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_new: the kind \"%.70s\" has %llu characters; expected 1 to %d",
                  desc->kind, (unsigned long long)strlen(desc->kind), (int)sizeof stem - 1);
        return NULL;
    }
    for (i = 0; desc->kind[i]; i++)
        stem[i] = (char)(desc->kind[i] >= 'A' && desc->kind[i] <= 'Z' ? desc->kind[i] + 'a' - 'A'
                                                                      : desc->kind[i]);
    stem[i] = 0;
    return dvti_block_create("dvt_block_new", desc, stem);
}

/* ---- parameters of a block ---- */
static dvt_param *dvti_block_find(const dvt_block *block, const char *name) {
    size_t i;
    for (i = 0; i < block->n_param; i++)
        if (strcmp(block->param[i]->short_name, name) == 0)
            return block->param[i];
    return NULL;
}

static bool dvti_param_name_ok(const dvt_block *self, const char *name) {
    if (!name[0] || strchr(name, '.')) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_add_param: the name \"%.60s\" is empty or has a dot in it; dots "
                  "separate blocks in files: choose another name",
                  name);
        return false;
    }
    if (dvti_block_find(self, name)) {
        dvti_fail(DVT_ERR_NAME,
                  "dvt_block_add_param: %s has a parameter '%.60s' already; choose another name",
                  self->desc.kind, name);
        return false;
    }
    return true;
}

DVT_API dvt_param *dvt_block_add_param(dvt_block *self, const char *name, dvt_shape shape,
                                       dvt_dtype dtype, dvt_init init) {
    const char *function = "dvt_block_add_param";
    dvt_param *p;
    int64_t bytes;
    if (!self || !name) {
        dvti_null(function, self ? "name" : "self");
        return NULL;
    }
    if (!dvti_dtype_ok(dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype number %d does not exist; use DVT_F32 or another",
                  function, (int)dtype);
        return NULL;
    }
    if (!dvti_param_name_ok(self, name) || !dvti_nbytes(function, shape, dtype, &bytes) ||
        !dvti_init_check(function, NULL, init))
        return NULL;
    if (!dvti_grow((void **)&self->param, &self->param_capacity, self->n_param + 1,
                   sizeof *self->param)) {
        dvti_fail_memory(function, (int64_t)(sizeof *self->param * (self->n_param + 1)));
        return NULL;
    }
    p = dvti_param_new(function, self, name, shape, dtype, init);
    if (p)
        self->param[self->n_param++] = p;
    return p;
}

DVTI_FN dvt_param *dvti_block_add_fixed(dvt_block *block, const char *name, dvt_shape shape,
                                        dvt_dtype dtype) {
    dvt_init none;
    dvt_param *p;
    memset(&none, 0, sizeof none);
    p = dvt_block_add_param(block, name, shape, dtype, none);
    if (p) {
        p->fixed = true;
        p->grad_req = DVT_GRAD_NULL;
    }
    return p;
}

static const char *dvti_block_param_name_at(const void *user, int i) {
    return ((const dvt_block *)user)->param[i]->short_name;
}

DVT_API dvt_param *dvt_block_param(dvt_block *block, const char *name) {
    char known[600];
    dvt_param *p;
    if (!block || !name) {
        dvti_null("dvt_block_param", block ? "name" : "block");
        return NULL;
    }
    p = dvti_block_find(block, name);
    if (!p)
        dvti_fail(
            DVT_ERR_NAME,
            "dvt_block_param: %s has no parameter '%.60s' of its own; it has %s (children's "
            "are found with dvt_block_at or dvt_block_collect_params)",
            block->desc.kind, name,
            dvti_brief(known, sizeof known, (int)block->n_param, dvti_block_param_name_at, block));
    return p;
}

DVT_API dvt_array *dvt_block_data(dvt_block *block, const char *name, dvt_ctx ctx) {
    dvt_param *p = dvt_block_param(block, name);
    return p ? dvti_param_compute(p, ctx) : NULL;
}

/* ---- children ---- */
static bool dvti_block_reaches(const dvt_block *from, const dvt_block *to) {
    size_t i;
    if (from == to)
        return true;
    for (i = 0; from->above < to->above && i < from->n_child; i++)
        if (dvti_block_reaches(from->child[i], to))
            return true;
    return false;
}

typedef struct dvti_raised {
    dvt_block *block;
    int was;
} dvti_raised;

typedef struct dvti_raises {
    dvti_raised *item;
    size_t count, capacity;
} dvti_raises;

static dvt_status dvti_block_raise(const char *function, dvti_raises *all, dvt_block *block,
                                   int above) {
    if (block->above >= above)
        return DVT_OK;
    if (above > DVTI_MOST_NESTED)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: blocks would be nested more than %d deep; expected fewer: a "
                         "Sequential takes any number of children",
                         function, DVTI_MOST_NESTED);
    if (!dvti_grow((void **)&all->item, &all->capacity, all->count + 1, sizeof *all->item))
        return dvti_fail_memory(function, (int64_t)(sizeof *all->item * (all->count + 1)));
    all->item[all->count].block = block;
    all->item[all->count++].was = block->above;
    block->above = above;
    return DVT_OK;
}

/* Raises the nesting depth of all blocks below self; changes all of them or none. */
static dvt_status dvti_block_nest(const char *function, const dvt_block *self,
                                  dvt_block *const *child, int n) {
    dvti_raises all;
    dvt_status status = DVT_OK;
    size_t at, i;
    int k;
    memset(&all, 0, sizeof all);
    for (k = 0; k < n && status == DVT_OK; k++)
        status = dvti_block_raise(function, &all, child[k], self->above + 1);
    for (at = 0; at < all.count && status == DVT_OK; at++) {
        const dvt_block *parent = all.item[at].block;
        for (i = 0; i < parent->n_child && status == DVT_OK; i++)
            status = dvti_block_raise(function, &all, parent->child[i], parent->above + 1);
    }
    while (status != DVT_OK && all.count) {
        all.count--;
        all.item[all.count].block->above = all.item[all.count].was;
    }
    dvti_free(all.item);
    return status;
}

/* Adds all children or none. */
static dvt_status dvti_block_adopt(const char *function, dvt_block *self, dvt_block *const *child,
                                   int n) {
    int i;
    for (i = 0; i < n; i++) {
        if (!child[i])
            return dvti_null(function, "a block");
        if (dvti_block_reaches(child[i], self))
            return dvti_fail(DVT_ERR_VALUE,
                             "%s: a %s cannot be added to a %s that is itself or one of its own "
                             "descendants; blocks must not form a cycle",
                             function, child[i]->desc.kind, self->desc.kind);
        if (dvti_mixed_admits(function, self, child[i]) != DVT_OK)
            return dvti_failure();
    }
    if (!dvti_grow((void **)&self->child, &self->child_capacity, self->n_child + (size_t)n,
                   sizeof *self->child))
        return dvti_fail_memory(function,
                                (int64_t)(sizeof *self->child * (self->n_child + (size_t)n)));
    if (dvti_block_nest(function, self, child, n) != DVT_OK)
        return dvti_failure();
    for (i = 0; i < n; i++) {
        dvti_block_name(child[i]);
        self->child[self->n_child++] = (dvt_block *)dvti_own(child[i]);
        dvti_mixed_extend(self, child[i]);
    }
    return DVT_OK;
}

DVT_API dvt_status dvt_block_add_child(dvt_block *self, dvt_block *child) {
    if (!self || !child)
        return dvti_null("dvt_block_add_child", self ? "child" : "self");
    return dvti_block_adopt("dvt_block_add_child", self, &child, 1);
}

DVT_API dvt_status dvt_nn_sequential_add(dvt_block *net, int n, dvt_block *b0, dvt_block *b1,
                                         dvt_block *b2, dvt_block *b3, dvt_block *b4, dvt_block *b5,
                                         dvt_block *b6, dvt_block *b7, dvt_block *b8, dvt_block *b9,
                                         dvt_block *b10, dvt_block *b11, dvt_block *b12,
                                         dvt_block *b13, dvt_block *b14, dvt_block *b15) {
    dvt_block *all[16];
    if (!net)
        return dvti_null("dvt_nn_sequential_add", "net");
    if (!dvti_block_is_sequential(net))
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_nn_sequential_add: net is a %s; expected a block of "
                         "dvt_nn_sequential() (others take children with dvt_block_add_child)",
                         net->desc.kind);
    if (n < 1 || n > 16)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_nn_sequential_add: %d blocks; expected 1 to 16 in a call", n);
    all[0] = b0;
    all[1] = b1;
    all[2] = b2;
    all[3] = b3;
    all[4] = b4;
    all[5] = b5;
    all[6] = b6;
    all[7] = b7;
    all[8] = b8;
    all[9] = b9;
    all[10] = b10;
    all[11] = b11;
    all[12] = b12;
    all[13] = b13;
    all[14] = b14;
    all[15] = b15;
    return dvti_block_adopt("dvt_nn_sequential_add", net, all, n);
}

DVT_API int dvt_block_len(const dvt_block *net) {
    if (net)
        return (int)net->n_child;
    dvti_null("dvt_block_len", "net");
    return 0;
}

DVT_API dvt_block *dvt_block_at(dvt_block *net, int i) {
    int64_t n, at;
    if (!net) {
        dvti_null("dvt_block_at", "net");
        return NULL;
    }
    n = (int64_t)net->n_child;
    at = i < 0 ? i + n : i;
    if (at >= 0 && at < n)
        return net->child[at];
    dvti_fail(DVT_ERR_RANGE, "dvt_block_at: index %d of a %s with %lld children; expected %s", i,
              net->desc.kind, (long long)n, dvti_range_text(-n, n - 1));
    return NULL;
}

DVT_API const char *dvt_block_kind(const dvt_block *block) {
    if (block)
        return block->desc.kind;
    dvti_null("dvt_block_kind", "block");
    return "";
}

DVT_API void *dvt_block_user(const dvt_block *block) {
    if (block)
        return block->desc.user;
    dvti_null("dvt_block_user", "block");
    return NULL;
}

/* ---- forward ---- */
static DVTI_TLS dvti_tracer dvti_tracing;

DVTI_FN dvti_tracer dvti_set_tracer(dvti_tracer tracer) {
    dvti_tracer previous = dvti_tracing;
    dvti_tracing = tracer;
    return previous;
}

static void dvti_block_write_frame(const void *object, char *buffer, size_t size) {
    const dvt_block *block = (const dvt_block *)object;
    int64_t number = dvti_atomic_load((dvti_atomic *)&block->number);
    char own[120];
    dvti_text text = dvti_text_begin(buffer, size);
    snprintf(own, sizeof own, "%s", block->desc.kind);
    if (block->desc.describe &&
        block->desc.describe(block, block->desc.user, own, sizeof own) >= sizeof own)
        memcpy(own + sizeof own - 4, "...", 4);
    dvti_text_add(&text,
                  "%s: ", dvti_tracing.function ? dvti_tracing.function : "dvt_block_forward");
    if (number < 0)
        dvti_text_add(&text, "%s: ", own);
    else
        dvti_text_add(&text, "%s%lld (%s): ", block->stem, (long long)number, own);
}

DVTI_FN dvti_error_frame dvti_block_frame(const dvt_block *block) {
    dvti_error_frame frame;
    frame.write = dvti_block_write_frame;
    frame.object = block;
    return frame;
}

DVTI_FN bool dvti_block_infer(dvt_block *block, dvt_array *x) {
    bool good = block->desc.infer(block, block->desc.user, x) == DVT_OK;
    if (!good && dvt_error_code() == DVT_OK)
        dvti_fail(DVT_ERR_SHAPE, "the infer function failed without an error, for x %s",
                  dvti_describe(x));
    return good;
}

/* Initializes parameters that wait for a shape. An input that the block cannot compute must not
   determine their shape. */
static bool dvti_block_prepare(dvt_block *block, dvt_array *x) {
    bool waiting = false, unknown = false;
    size_t i;
    if (dvti_inferring())
        return dvti_infer_prepare(block, x);
    for (i = 0; i < block->n_param; i++)
        if (dvti_atomic_load(&block->param[i]->state) == DVTI_PARAM_DEFERRED) {
            if (!dvti_param_is_on("dvt_param_data", block->param[i], dvt_ctx_of(x)))
                return false;
            waiting = true;
            unknown = unknown || !dvti_shape_known(dvt_param_shape(block->param[i]));
        }
    if (!waiting)
        return true;
    if (unknown && block->desc.infer && !dvti_block_infer(block, x))
        return false;
    for (i = 0; i < block->n_param; i++)
        if (!dvti_param_finish("dvt_block_initialize", block->param[i]))
            return false;
    return true;
}

static DVTI_TLS dvti_nesting dvti_forwards;

DVTI_FN int dvti_forward_depth(void) {
    const int depth = dvti_nesting_enter(&dvti_forwards);
    dvti_nesting_leave(&dvti_forwards, depth);
    return depth < 0 ? DVTI_MOST_NESTED : depth;
}

static dvt_array *dvti_block_compute(dvt_block *block, dvt_array *x, dvti_forward_fn forward,
                                     void *user, int depth) {
    dvt_array *y;
    if (depth < 0) {
        dvti_fail(DVT_ERR_VALUE,
                  "forward runs inside forward more than %d deep; expected fewer: does a forward "
                  "function call dvt_block_forward on its own block?",
                  DVTI_MOST_NESTED);
        return NULL;
    }
    y = forward(block, user, x);
    if (!y && dvt_error_code() == DVT_OK)
        dvti_fail(DVT_ERR_VALUE, "the forward function returned NULL without an error");
    return y;
}

DVTI_FN dvt_array *dvti_block_forward(dvt_block *net, dvt_array *x, dvti_forward_fn forward,
                                      void *user) {
    static const dvti_error_frame none = {NULL, NULL};
    dvti_error_frame outer;
    dvti_region region;
    dvt_scope_guard scope;
    dvt_array *y = NULL;
    int depth;
    depth = dvti_nesting_enter(&dvti_forwards);
    dvti_infer_enter(depth);
    scope = dvt_scope_begin();
    /* Errors name only the innermost block, not those around it. */
    outer = dvti_set_error_frame(none);
    if (depth == 0)
        outer = none; /* an exception ended a forward pass, which left its frame */
    if (dvti_tracing.visit)
        dvti_tracing.visit(dvti_tracing.user, net, NULL);
    dvti_set_error_frame(dvti_block_frame(net));
    region = dvti_region_begin(net, &x, depth);
    if (x && dvti_block_prepare(net, x))
        y = dvti_block_compute(net, x, forward, user, depth);
    y = dvti_region_end(&region, y);
    dvti_set_error_frame(none);
    if (y && dvti_tracing.visit)
        dvti_tracing.visit(dvti_tracing.user, net, y);
    dvt_keep(y);
    dvt_scope_end(&scope);
    dvti_set_error_frame(outer);
    dvti_nesting_leave(&dvti_forwards, depth);
    return y;
}

DVT_API dvt_array *dvt_block_forward(dvt_block *net, dvt_array *x) {
    if (net && x)
        return dvti_block_forward(net, x, net->desc.forward, net->desc.user);
    dvti_null("dvt_block_forward", net ? "x" : "net");
    return NULL;
}
