/* Tests of custom blocks. Each allocation in the lifecycle of a net fails once. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_init default_init(void) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    return init;
}

static dvt_ctx_list no_contexts(void) {
    dvt_ctx_list list;
    memset(&list, 0, sizeof list);
    return list;
}

static int error_has(const char *part) {
    return dvt_test_check(strstr(dvt_error(), part) != NULL, __FILE__, __LINE__,
                          "the error is <<%s>>, expected <<%s>> in it", dvt_error(), part);
}

#define CHECK_PRINTS(block, expected)                                                              \
    do {                                                                                           \
        char check_text_[2000];                                                                    \
        size_t check_n_ = dvt_block_format(block, check_text_, sizeof check_text_);                \
        CHECK_STR(check_text_, expected);                                                          \
        CHECK_INT(check_n_, strlen(expected));                                                     \
    } while (0)

/* ---- custom blocks ---- */
typedef struct scale_state {
    int released, inferred;
    double factor;
} scale_state;

static dvt_array *scale_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *gain = dvt_block_data(self, "gain", dvt_ctx_of(x));
    return dvt_mul_scalar(dvt_mul(dvt_block_forward(dvt_block_at(self, 0), x), gain),
                          ((scale_state *)user)->factor);
}

static dvt_status scale_infer(dvt_block *self, void *user, dvt_array *x) {
    ((scale_state *)user)->inferred++;
    return dvt_param_set_shape(dvt_block_param(self, "gain"), DVT_SHAPE(dvt_dim(x, -1)));
}

static size_t scale_describe(const dvt_block *self, void *user, char *buffer, size_t size) {
    char text[80];
    size_t n = (size_t)snprintf(text, sizeof text, "%s by %g,\nsecond line", dvt_block_kind(self),
                                ((scale_state *)user)->factor);
    if (size)
        snprintf(buffer, size, "%s", text);
    return n;
}

static void scale_release(void *user) {
    ((scale_state *)user)->released++;
}

static dvt_block_desc scale_desc(scale_state *state) {
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = "ScaleBy";
    desc.forward = scale_forward;
    desc.infer = scale_infer;
    desc.describe = scale_describe;
    desc.release = scale_release;
    desc.user = state;
    return desc;
}

DVT_TEST(custom_blocks_compute_and_release_state) {
    static scale_state state = {0, 0, 2}; /* outlives the blocks */
    DVT_SCOPE {
        dvt_block_desc desc = scale_desc(&state);
        dvt_block *net = dvt_nn_sequential(), *own = dvt_block_new(&desc);
        dvt_param *gain;
        dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(1, 3), dvt_test_ctx(), 1, -2, 3), *y = NULL;
        desc.kind = "changed"; /* the description was copied */
        gain = dvt_block_add_param(own, "gain", DVT_SHAPE(0), DVT_F32, dvt_init_constant(10));
        CHECK(gain != NULL && dvt_block_param(own, "gain") == gain);
        CHECK(strncmp(dvt_param_name(gain), "scaleby", 7) == 0);
        CHECK_INT(dvt_block_add_child(own, dvt_nn_activation(DVT_RELU)), DVT_OK);
        DVT_NN_ADD(net, own);
        CHECK(dvt_block_user(own) == &state);
        CHECK_PRINTS(net, "Sequential(\n  (0): ScaleBy by 2,\n  second line\n)");
        dvt_block_initialize(net, default_init(), no_contexts());
        DVT_RECORD {
            y = dvt_block_forward(net, x);
        }
        CHECK_VALUES(y, 1e-6, 20, 0, 60);
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_VALUES(dvt_param_grad(gain, dvt_test_ctx()), 1e-6, 2, 0, 6);
        dvt_block_forward(net, x);
        CHECK_INT(state.inferred, 1);
        CHECK_INT(state.released, 0);
    }
    CHECK_INT(state.released, 1);
}

static dvt_array *silent_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    return NULL;
}

static dvt_status failing_infer(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    return DVT_ERR_SHAPE;
}

DVT_TEST(custom_blocks_errors) {
    static scale_state state = {0, 0, 1};
    dvt_block_desc desc = scale_desc(&state);
    dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_test_ctx());
    dvt_block *own = dvt_block_new(&desc);
    CHECK_ERROR(dvt_block_new(NULL), DVT_ERR_NULL_ARGUMENT);
    desc.kind = "";
    CHECK_ERROR(dvt_block_new(&desc), DVT_ERR_NAME);
    desc.kind = NULL;
    CHECK_ERROR(dvt_block_new(&desc), DVT_ERR_NULL_ARGUMENT);
    desc.kind = "Silent";
    desc.forward = NULL;
    CHECK_ERROR(dvt_block_new(&desc), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(state.released, 0); /* a failed constructor does not release the user pointer */
    desc.forward = silent_forward;
    CHECK_ERROR(dvt_block_forward(dvt_block_new(&desc), x), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_block_add_param(own, "a.b", DVT_SHAPE(1), DVT_F32, default_init()),
                DVT_ERR_NAME);
    CHECK_ERROR(dvt_block_add_param(own, "", DVT_SHAPE(1), DVT_F32, default_init()), DVT_ERR_NAME);
    CHECK_ERROR(dvt_block_add_param(own, "w", DVT_SHAPE(-1), DVT_F32, default_init()),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_block_add_param(own, "w", DVT_SHAPE(1), (dvt_dtype)40, default_init()),
                DVT_ERR_DTYPE);
    CHECK(dvt_block_add_param(own, "w", DVT_SHAPE(1), DVT_F32, default_init()) != NULL);
    CHECK_ERROR(dvt_block_add_param(own, "w", DVT_SHAPE(1), DVT_F32, default_init()), DVT_ERR_NAME);
    CHECK_ERROR(dvt_block_add_child(own, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_add_child(own, own), DVT_ERR_VALUE);
    /* a shape that stays unknown, and an infer function that fails without an error */
    desc.infer = NULL;
    own = dvt_block_new(&desc);
    dvt_block_add_param(own, "w", DVT_SHAPE(0), DVT_F32, default_init());
    dvt_block_initialize(own, default_init(), no_contexts());
    CHECK(dvt_block_forward(own, x) == NULL);
    error_has("Cannot initialize Parameter");
    CHECK_INT(dvt_error_code(), DVT_ERR_UNINITIALIZED);
    desc.infer = failing_infer;
    own = dvt_block_new(&desc);
    dvt_block_add_param(own, "w", DVT_SHAPE(0), DVT_F32, default_init());
    dvt_block_initialize(own, default_init(), no_contexts());
    CHECK_ERROR(dvt_block_forward(own, x), DVT_ERR_SHAPE);
}

/* Integer parameters have no gradient and are initialized to 0. */
DVT_TEST(blocks_integer_parameters) {
    static scale_state state = {0, 0, 1};
    dvt_block_desc desc = scale_desc(&state);
    dvt_block *own = dvt_block_new(&desc);
    dvt_param *count = dvt_block_add_param(own, "count", DVT_SHAPE(2), DVT_I32, default_init());
    CHECK_INT(dvt_block_initialize(own, default_init(), no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_param_data(count, dvt_test_ctx()), 0, 0, 0);
    CHECK_ERROR(dvt_param_grad(count, dvt_test_ctx()), DVT_ERR_GRAD);
    CHECK_INT(dvt_param_set_grad_req(count, DVT_GRAD_WRITE), DVT_OK);
    CHECK_ERROR(dvt_param_grad(count, dvt_test_ctx()), DVT_ERR_GRAD);
}

/* Each kind gets its own names, even when there are more kinds than the table of names holds. */
DVT_TEST(blocks_many_kinds) {
    static scale_state state = {0, 0, 1};
    dvt_block_desc desc = scale_desc(&state);
    char kind[32], names[3][64];
    int i;
    for (i = 0; i < 100; i++) {
        snprintf(kind, sizeof kind, "Kind%cX%d", 'a' + i % 26, i);
        desc.kind = kind;
        CHECK(dvt_block_new(&desc) != NULL);
    }
    for (i = 0; i < 3; i++) {
        dvt_block *block = dvt_block_new(&desc);
        dvt_block_add_param(block, "w", DVT_SHAPE(1), DVT_F32, default_init());
        snprintf(names[i], sizeof names[i], "%s", dvt_param_name(dvt_block_param(block, "w")));
    }
    CHECK(strcmp(names[0], names[1]) != 0 && strcmp(names[1], names[2]) != 0);
}

/* ---- every allocation fails once ---- */
/* Atomic, because queues of virtual GPUs free memory in their own threads. */
static long allocations, failing, blocks_alive;

static bool fails_now(void) {
    return __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST) == failing;
}

static void *failing_alloc(void *user, size_t bytes) {
    (void)user;
    if (fails_now())
        return NULL;
    __atomic_add_fetch(&blocks_alive, 1, __ATOMIC_SEQ_CST);
    return malloc(bytes);
}

static void *failing_resize(void *user, void *block, size_t bytes) {
    (void)user;
    if (fails_now())
        return NULL;
    return realloc(block, bytes);
}

static void counting_release(void *user, void *block) {
    (void)user;
    __atomic_add_fetch(&blocks_alive, -1, __ATOMIC_SEQ_CST);
    free(block);
}

/* Creates, initializes, runs, differentiates, moves and prints a net. Returns false when a call
   failed. */
static bool run_lifecycle(dvt_ctx_list ctxs) {
    bool good = false;
    DVT_SCOPE {
        static scale_state state = {0, 0, 2}; /* outlives the blocks */
        dvt_block_desc desc = scale_desc(&state);
        dvt_block *net = dvt_nn_sequential(), *own = dvt_block_new(&desc);
        dvt_params *params;
        dvt_array *loss = NULL;
        char text[400];
        good = net && own && dvt_block_add_child(own, dvt_nn_dense(3, DVT_TANH)) == DVT_OK &&
               dvt_block_add_param(own, "gain", DVT_SHAPE(3), DVT_F32, dvt_init_one()) &&
               DVT_NN_ADD(net, dvt_nn_dense(4, DVT_RELU), dvt_nn_dropout(0.5), own) == DVT_OK &&
               dvt_block_initialize(net, dvt_init_xavier(), ctxs) == DVT_OK;
        if (good) {
            DVT_RECORD {
                loss = dvt_loss_l2(
                    dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 5), DVT_F32, ctxs.ctx[0])),
                    dvt_ones(DVT_SHAPE(2, 3), DVT_F32, ctxs.ctx[0]));
            }
            params = loss ? dvt_block_collect_params(net, ".*(weight|gain)") : NULL;
            good = params && dvt_params_len(params) == 3 && dvt_backward(loss) == DVT_OK &&
                   dvt_params_set_grad_req(params, DVT_GRAD_NULL) == DVT_OK &&
                   dvt_params_set_grad_req(params, DVT_GRAD_ADD) == DVT_OK &&
                   dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_cpu_id(3))) == DVT_OK &&
                   dvt_params_reinitialize(params, dvt_init_one(), ctxs) == DVT_OK &&
                   dvt_param_set_data(dvt_params_at(params, 0),
                                      dvt_ones(DVT_SHAPE(4, 5), DVT_F64, dvt_test_ctx())) == DVT_OK;
            dvt_block_format(net, text, sizeof text);
        }
    }
    return good;
}

/* Returns how many blocks remain allocated after the lifecycle with allocation `at` failing.
   Setting the allocator frees the cached blocks. */
static long blocks_left_by(dvt_ctx_list ctxs, const dvt_allocator *allocator, long at, bool *good) {
    long alive;
    dvt_set_allocator(allocator);
    alive = blocks_alive;
    allocations = 0;
    failing = at;
    *good = run_lifecycle(ctxs);
    dvt_wait_all();
    failing = 0;
    dvt_set_allocator(allocator);
    return blocks_alive - alive;
}

static void fail_each_allocation(dvt_ctx_list ctxs) {
    dvt_allocator allocator;
    long at, left;
    bool good = false;
    dvt_stats before, after;
    memset(&allocator, 0, sizeof allocator);
    allocator.alloc = failing_alloc;
    allocator.resize = failing_resize;
    allocator.release = counting_release;
    CHECK(run_lifecycle(ctxs)); /* allocates the tables that persist */
    CHECK_INT(dvt_wait_all(), DVT_OK);
    before = dvt_get_stats();
    for (at = 1; at < 5000; at++) {
        left = blocks_left_by(ctxs, &allocator, at, &good);
        /* A GPU keeps compiled programs and staging buffers: once, not for each call. */
        if (left && ctxs.ctx[0].type == DVT_DEVICE_GPU && dvt_test_on_gpus()) {
            dvt_clear_error();
            left = blocks_left_by(ctxs, &allocator, at, &good);
        }
        if (!good) /* some allocations are optional: a failing scope is no error */
            dvt_test_check(dvt_error_code() == DVT_ERR_HOST_MEMORY, __FILE__, __LINE__,
                           "allocation %ld: %s", at, dvt_error());
        dvt_test_check(left == 0, __FILE__, __LINE__, "allocation %ld: %ld blocks are left", at,
                       left);
        dvt_clear_error();
        after = dvt_get_stats();
        CHECK_INT(after.arrays, before.arrays);
        if (allocations < at)
            break;
    }
    dvt_set_allocator(NULL);
    CHECK(good);
    dvt_test_check(at > 200 && at < 5000, __FILE__, __LINE__, "%ld allocations", at);
    CHECK(run_lifecycle(ctxs));
}

DVT_TEST(blocks_every_allocation_fails) {
    fail_each_allocation(DVT_CONTEXTS(dvt_test_ctx(), dvt_cpu_id(1)));
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    fail_each_allocation(DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

#endif
