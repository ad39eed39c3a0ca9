/* Tests of what forward functions of the program may do while dvt_block_infer_shapes runs: values,
   contexts, nested calls, jumps, threads, memory failures. */
#include "custom_block.h"
#include "dvt_faults.h"
#include "in_threads.h"
#if !defined(DEVTENSOR_NO_NN)
#include <setjmp.h>

/* ---- values ---- */
static int reading; /* which value the forward function reads */

static dvt_array *reads_forward(dvt_block *self, void *user, dvt_array *x) {
    char text[100];
    float values[6];
    size_t length;
    (void)self;
    (void)user;
    switch (reading) {
    case 0:
        return dvt_item(dvt_sum(x, DVT_ALL)) > 1 ? x : dvt_t(x);
    case 1:
        dvt_to_host(x, values, sizeof values);
        return x;
    case 2:
        return dvt_allclose(x, x, 0, 0, DVT_NAN_DIFFERS) ? x : dvt_t(x);
    case 3:
        dvt_format(x, NULL, text, sizeof text, &length);
        return x;
    case 4:
        return dvt_copyto(x, dvt_cpu());
    case 5:
        return dvt_data(x) ? x : NULL;
    case 6:
        return dvt_item_at(x, DVT_SHAPE(0, 0)) > 1 ? x : NULL;
    case 7:
        dvt_copy_into(dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), x);
        return x;
    case 8:
        return dvt_to_dlpack(x) ? x : NULL;
    default:
        return x;
    }
}

static int logged;

static void count_messages(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)message;
    logged += level >= DVT_LOG_WARNING;
}

DVT_TEST(infer_shapes_has_no_values) {
    static const char *const functions[] = {"dvt_item:",    "dvt_to_host:",   "dvt_allclose",
                                            "dvt_format:",  "dvt_copyto:",    "dvt_data:",
                                            "dvt_item_at:", "dvt_copy_into:", "dvt_to_dlpack:"};
    dvt_block *net = dvt_nn_sequential();
    dvt_block_cost cost;
    dvt_shape output;
    DVT_NN_ADD(net, dvt_nn_dense(3, DVT_IDENTITY), custom(reads_forward, NULL));
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    for (reading = 0; reading < 9; reading++) {
        CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(2, 3), DVT_F32, &output), DVT_ERR_VALUE);
        error_begins("dvt_block_infer_shapes: custom", "has no values");
        error_begins("dvt_block_infer_shapes: custom", "dvt_block_forward instead");
        if (reading != 2) /* it reads by dvt_item */
            error_begins("dvt_block_infer_shapes: custom", functions[reading]);
        dvt_clear_error();
        CHECK_ERROR(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()),
                    DVT_ERR_UNINITIALIZED);
    }
    /* measuring then computes on zeros */
    reading = 0;
    logged = 0;
    dvt_set_logger(count_messages, NULL);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 3), &cost), DVT_OK);
    dvt_set_logger(NULL, NULL);
    CHECK_INT(logged, 0);
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(cost.multiply_adds, 2 * 3 * 3);
    CHECK_INT(cost.trained, 12);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 4), &cost), DVT_ERR_SHAPE);
    error_begins("dvt_block_measure: dense", "(2, 4)");
    dvt_clear_error();
}

/* Parameters get no values and no context meanwhile: they would stay when the call has ended. */
static dvt_array *writes_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_block *child = dvt_block_at(self, 0);
    dvt_param *weight = dvt_block_param(child, "weight");
    dvt_ctx_list here = DVT_CONTEXTS(dvt_ctx_of(x));
    dvt_status status;
    switch (*(int *)user) {
    case 0:
        status = dvt_block_initialize(child, usual(), here);
        break;
    case 1:
        status = dvt_param_set_data(weight, dvt_zeros(DVT_SHAPE(3, 4), DVT_F32, dvt_cpu()));
        break;
    default:
        status = dvt_params_reset_ctx(dvt_block_collect_params(child, NULL), here);
    }
    return status == DVT_OK ? dvt_block_forward(child, x) : NULL;
}

DVT_TEST(infer_shapes_writes_no_parameter) {
    int way;
    for (way = 0; way < 3; way++)
        DVT_SCOPE {
            dvt_block *net = custom(writes_forward, &way), *child = dvt_nn_dense(3, DVT_IDENTITY);
            dvt_block_cost cost;
            dvt_shape output;
            dvt_block_add_child(net, child);
            if (way)
                dvt_block_initialize(child, usual(), DVT_CONTEXTS(dvt_cpu()));
            CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(2, 4), DVT_F32, &output),
                      DVT_ERR_VALUE);
            error_begins("dvt_block_infer_shapes: Custom", "dvt_block_forward instead");
            dvt_clear_error();
            CHECK_INT(dvt_param_shape(dvt_block_param(child, "weight")).dim[1], 0);
            CHECK_INT(dvt_param_ctxs(dvt_block_param(child, "weight")).n, way ? 1 : 0);
            CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 4), &cost), DVT_OK);
            CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_cpu())) != NULL);
        }
}

/* Range checks of indices do not read memory that is not there. */
DVT_TEST(infer_shapes_of_indices) {
    dvt_block *net = dvt_nn_embedding(4, 2);
    dvt_shape output;
    dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(3, 5), DVT_I64, &output), DVT_OK);
    CHECK(dvt_shape_equal(output, DVT_SHAPE(3, 5, 2)));
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(3, 5), DVT_U8, &output), DVT_OK);
}

/* ---- contexts ---- */
static dvt_array *kept;

static dvt_array *explicit_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *one = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    (void)self;
    kept = (dvt_array *)dvt_retain(x);
    CHECK(dvt_ctx_of(x).type == DVT_DEVICE_META);
    CHECK_STR(dvt_ctx_name(dvt_ctx_of(x)), "meta(0)");
    return user ? dvt_add(one, x) : dvt_add(x, one);
}

DVT_TEST(infer_shapes_checks_contexts) {
    int flag = 1;
    dvt_block *left = custom(explicit_forward, NULL), *right = custom(explicit_forward, &flag);
    CHECK_INT(dvt_block_infer_shapes(left, DVT_SHAPE(2), DVT_F32, NULL), DVT_ERR_CONTEXT);
    error_begins("dvt_block_infer_shapes: Custom: dvt_add: ", "dvt_as_in_ctx(b, dvt_ctx_of(a))");
    dvt_clear_error();
    dvt_release(kept);
    CHECK_INT(dvt_block_infer_shapes(right, DVT_SHAPE(2), DVT_F32, NULL), DVT_ERR_CONTEXT);
    error_begins("dvt_block_infer_shapes: Custom: dvt_add: ", "dvt_as_in_ctx(a, dvt_ctx_of(b))");
    dvt_clear_error();
    /* an array that outlives the call */
    CHECK_INT(dvt_size(kept), 2);
    CHECK_ERROR(dvt_item_at(kept, DVT_SHAPE(0)), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_add(kept, kept), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_ctx_of(kept)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_block_forward(dvt_nn_dense(1, DVT_IDENTITY), kept), DVT_ERR_UNINITIALIZED);
    dvt_release(kept);
    CHECK(dvt_default_ctx().type == DVT_DEVICE_CPU);
}

/* ---- forward functions that infer, jump, or use other threads ---- */
static dvt_array *nested_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_shape output;
    CHECK_INT(dvt_block_infer_shapes(dvt_block_at(self, 0), dvt_shape_of(x), DVT_F32, &output),
              DVT_OK);
    CHECK(dvt_shape_equal(output, DVT_SHAPE(2, 4)));
    if (user)
        return dvt_add(x, dvt_ones(DVT_SHAPE(77), DVT_F32, dvt_ctx_of(x)));
    return dvt_block_forward(dvt_block_at(self, 0), x);
}

DVT_TEST(infer_shapes_within_forward) {
    int flag = 1;
    dvt_block *bad = custom(nested_forward, &flag), *good = custom(nested_forward, NULL);
    dvt_block *dense = dvt_nn_dense(4, DVT_IDENTITY);
    dvt_param *weight = dvt_block_param(dense, "weight");
    dvt_block_add_child(bad, dense);
    dvt_block_add_child(good, dense);
    dvt_block_initialize(dense, usual(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_ERROR(dvt_block_infer_shapes(bad, DVT_SHAPE(2, 3), DVT_F32, NULL), DVT_ERR_SHAPE);
    CHECK(dvt_shape_equal(dvt_param_shape(weight), DVT_SHAPE(4, 0)));
    CHECK_INT(dvt_block_infer_shapes(good, DVT_SHAPE(2, 3), DVT_F32, NULL), DVT_OK);
    CHECK(dvt_shape_equal(dvt_param_shape(weight), DVT_SHAPE(4, 3)));
    CHECK(dvt_block_forward(good, dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu())) != NULL);
}

static jmp_buf left_by;

static dvt_array *jumps_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    longjmp(left_by, 1);
}

/* A jump or an exception ends forward. The next forward pass restores the state before. */
DVT_TEST(infer_shapes_left_by_longjmp) {
    static volatile int i;
    dvt_block *net = dvt_nn_sequential(), *dense = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu());
    DVT_NN_ADD(net, dense, custom(jumps_forward, NULL));
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    for (i = 0; i < 3; i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        if (setjmp(left_by) == 0)
            dvt_block_infer_shapes(net, DVT_SHAPE(1, 9), DVT_F32, NULL);
        dvt_scope_end(&scope);
    }
    CHECK_VALUES(dvt_block_forward(dense, x), 0, 3, 3);
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(dense, "weight")), DVT_SHAPE(2, 3)));
    CHECK(dvt_default_ctx().type == DVT_DEVICE_CPU);
    CHECK_ERROR(dvt_block_forward(dense, dvt_ones(DVT_SHAPE(1, 4), DVT_F32, dvt_cpu())),
                DVT_ERR_SHAPE);
}

#if !defined(DEVTENSOR_NO_THREADS)
static dvt_block *shared_net;

static void *infers(void *user) {
    worker *w = (worker *)user;
    dvt_block *own = dvt_nn_dense(3, DVT_IDENTITY);
    dvt_shape output;
    dvt_block_initialize(own, usual(), DVT_CONTEXTS(dvt_cpu()));
    w->status = dvt_block_infer_shapes(shared_net, DVT_SHAPE(2, 5), DVT_F32, &output);
    w->count = (int)output.dim[1];
    if (w->status == DVT_OK)
        w->status = dvt_block_infer_shapes(own, DVT_SHAPE(2, 4 + w->number), DVT_F32, &output);
    if (dvt_param_shape(dvt_block_param(own, "weight")).dim[1] != 4 + w->number)
        w->status = DVT_ERR_INTERNAL;
    dvt_discard_all();
    return NULL;
}

DVT_TEST(infer_shapes_in_threads) {
    worker workers[THREADS];
    int i, round;
    for (round = 0; round < 10; round++) {
        memset(workers, 0, sizeof workers);
        shared_net = dvt_nn_sequential();
        for (i = 0; i < 8; i++)
            DVT_NN_ADD(shared_net, dvt_nn_dense(8, DVT_RELU), dvt_nn_batch_norm());
        dvt_block_initialize(shared_net, usual(), DVT_CONTEXTS(dvt_cpu()));
        in_threads(infers, workers);
        for (i = 0; i < THREADS; i++) {
            CHECK_INT(workers[i].status, DVT_OK);
            CHECK_INT(workers[i].count, 8);
        }
        CHECK(dvt_block_data(dvt_block_at(shared_net, 15), "gamma", dvt_cpu()) != NULL);
    }
}

static void *forwards_child(void *user) {
    worker *w = (worker *)user;
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 7), DVT_F32, dvt_cpu());
    w->status = dvt_block_forward(shared_net, x) ? DVT_OK : DVT_ERR_SHAPE;
    dvt_clear_error();
    dvt_discard_all();
    return NULL;
}

/* Lets another thread fix the width 7 of the child after it was inferred. */
static dvt_array *raced_forward(dvt_block *self, void *user, dvt_array *x) {
    pthread_t thread;
    worker other;
    dvt_array *y = dvt_block_forward(dvt_block_at(self, 0), x);
    memset(&other, 0, sizeof other);
    (void)user;
    if (CHECK(pthread_create(&thread, NULL, forwards_child, &other) == 0))
        pthread_join(thread, NULL);
    CHECK_INT(other.status, DVT_OK);
    return y;
}

DVT_TEST(infer_shapes_after_another_thread) {
    dvt_block *net = dvt_nn_sequential(), *first = dvt_nn_dense(3, DVT_IDENTITY), *race;
    shared_net = dvt_nn_dense(2, DVT_IDENTITY);
    race = custom(raced_forward, NULL);
    dvt_block_add_child(race, shared_net);
    DVT_NN_ADD(net, first, race);
    dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(2, 5), DVT_F32, NULL), DVT_ERR_SHAPE);
    error_begins("dvt_block_infer_shapes: Parameter 'dense", "needs shape (2, 3)");
    dvt_clear_error();
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(first, "weight")), DVT_SHAPE(3, 0)));
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(shared_net, "weight")), DVT_SHAPE(2, 7)));
}
#endif

/* ---- memory ---- */
DVT_FAULTS(infer_shapes) {
    dvt_block *net = dvt_nn_sequential(), *first = dvt_nn_dense(4, DVT_RELU);
    dvt_shape output = DVT_SHAPE(9);
    dvt_param *weight;
    FAULTS_OK(DVT_NN_ADD(net, dvt_nn_lstm(2), first, dvt_nn_batch_norm()));
    FAULTS_OK(dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu())));
    if (run->failed)
        return;
    weight = dvt_block_param(first, "weight");
    if (dvt_block_infer_shapes(net, DVT_SHAPE(3, 2, 5), DVT_F32, &output) != DVT_OK) {
        run->failed = 1;
        CHECK_INT(output.dim[0], 9);
        CHECK_INT(dvt_param_shape(weight).dim[1], 0);
        return;
    }
    dvt_fault_bytes(run, &output, sizeof output);
    FAULTS_ADD(dvt_param_data(weight, dvt_cpu()));
    FAULTS_ADD(dvt_block_data(dvt_block_at(net, 0), "l0_i2h_weight", dvt_cpu()));
}

static dvt_array *careful_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *sum = dvt_sum(x, DVT_ALL);
    (void)self;
    (void)user;
    return sum && dvt_item(sum) == 0 ? dvt_t(x) : NULL;
}

DVT_FAULTS(infer_measure) {
    dvt_block *net = custom(careful_forward, NULL);
    dvt_block_cost cost;
    FAULTS_TRUE(net);
    if (!net)
        return;
    FAULTS_OK(dvt_block_measure(net, DVT_SHAPE(2, 2), &cost));
    FAULTS_OK(dvt_block_measure(net, DVT_SHAPE(3, 3), &cost));
}

#endif
