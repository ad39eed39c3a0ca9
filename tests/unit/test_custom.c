/* Tests of custom optimizers, metrics and schedules: they match the built-in ones, and their errors
   are reported. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

enum { WEIGHTS = 6 };

/* Computes y = sum of x * weight, so that the gradient of the weight is x. */
static dvt_array *times_weight(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_sum(dvt_mul(x, dvt_block_data(self, "weight", dvt_ctx_of(x))), DVT_ALL);
}

static dvt_block *times(dvt_dtype dtype, dvt_ctx_list ctxs) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Times";
    desc.forward = times_weight;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "weight", DVT_SHAPE(WEIGHTS), dtype, dvt_init_one());
    CHECK_INT(dvt_block_initialize(block, dvt_init_one(), ctxs), DVT_OK);
    return block;
}

static void back(dvt_block *net, int round, dvt_dtype dtype, dvt_ctx ctx) {
    double values[WEIGHTS];
    dvt_array *x, *y = NULL;
    int i;
    for (i = 0; i < WEIGHTS; i++)
        values[i] = (i - 2) * 0.5 + round * 0.25 + (ctx.type == DVT_DEVICE_GPU ? 0.125 : 0);
    x = dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(WEIGHTS), DVT_F64, ctx), dtype);
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
}

/* ---- an optimizer ---- */
typedef struct seen {
    int calls;
    int64_t count;
    double rate, decay;
    double momentum;
} seen;

/* Updates m <- u m - a (g + d w), w <- w + m, as dvt_optimizer_sgd does with momentum. */
static dvt_status own_sgd(void *user, const dvt_optimizer_step *step) {
    seen *s = (seen *)user;
    dvt_array *g = dvt_add(step->gradient, dvt_mul_scalar(step->weight, step->weight_decay));
    s->calls++;
    s->count = step->count;
    s->rate = step->learning_rate;
    s->decay = step->weight_decay;
    dvt_mul_scalar_(step->state[0], s->momentum);
    dvt_sub_(step->state[0], dvt_mul_scalar(g, step->learning_rate));
    return dvt_add_(step->weight, step->state[0]) ? DVT_OK : dvt_error_code();
}

static dvt_optimizer own(seen *user) {
    dvt_optimizer_desc desc;
    dvt_optimizer optimizer;
    memset(user, 0, sizeof *user);
    user->momentum = 0.9;
    memset(&desc, 0, sizeof desc);
    desc.name = "own_sgd";
    desc.states = 1;
    desc.step = own_sgd;
    desc.user = user;
    optimizer = dvt_optimizer_custom(&desc, 0.1);
    optimizer.weight_decay = 0.25;
    optimizer.clip_gradient = 0.75;
    optimizer.schedule = dvt_schedule_factor(2, 0.5, 0);
    return optimizer;
}

static void check_like_sgd_in_scope(dvt_dtype dtype, dvt_ctx_list ctxs, double tolerance) {
    seen user;
    dvt_optimizer mine = own(&user), theirs = dvt_optimizer_sgd(0.1);
    dvt_block *net[2];
    dvt_trainer *trainer[2];
    int k, c, round;
    theirs.momentum = 0.9;
    theirs.weight_decay = mine.weight_decay;
    theirs.clip_gradient = mine.clip_gradient;
    theirs.schedule = mine.schedule;
    for (k = 0; k < 2; k++) {
        net[k] = times(dtype, ctxs);
        dvt_param_set_lr_mult(dvt_block_param(net[k], "weight"), 0.5);
        dvt_param_set_wd_mult(dvt_block_param(net[k], "weight"), 2);
        trainer[k] = dvt_trainer_new(dvt_block_collect_params(net[k], NULL), k ? theirs : mine);
    }
    for (round = 0; round < 5; round++) {
        double *expected;
        for (k = 0; k < 2; k++) {
            for (c = 0; c < ctxs.n; c++)
                back(net[k], round, dtype, ctxs.ctx[c]);
            CHECK_INT(dvt_trainer_step(trainer[k], 4), DVT_OK);
        }
        expected = dvt_test_values(dvt_block_data(net[1], "weight", ctxs.ctx[0]));
        for (c = 0; c < ctxs.n; c++)
            CHECK(dvt_test_equal(dvt_block_data(net[0], "weight", ctxs.ctx[c]), expected, WEIGHTS,
                                 tolerance, __FILE__, __LINE__));
        free(expected);
        CHECK_INT(user.count, round + 1);
        CHECK_CLOSE(user.rate, 0.5 * dvt_schedule_rate(&mine.schedule, 0.1, round), 0);
        CHECK_CLOSE(user.decay, 0.5, 0);
    }
    CHECK_INT(user.calls, 5 * ctxs.n);
}

static void check_like_sgd(dvt_dtype dtype, dvt_ctx_list ctxs, double tolerance) {
    DVT_SCOPE {
        check_like_sgd_in_scope(dtype, ctxs, tolerance);
    }
}

DVT_TEST(custom_optimizer_is_like_a_built_in_one) {
    dvt_ctx_list two = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0));
    check_like_sgd(DVT_F32, DVT_CONTEXTS(dvt_cpu()), 1e-6);
    check_like_sgd(DVT_F64, DVT_CONTEXTS(dvt_cpu()), 1e-14);
    check_like_sgd(DVT_BF16, DVT_CONTEXTS(dvt_cpu()), 0.05);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    check_like_sgd(DVT_F32, two, 1e-6);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

static dvt_status fails(void *user, const dvt_optimizer_step *step) {
    (void)step;
    return *(dvt_status *)user;
}

/* Ignores the NULL of a failed call. */
static dvt_status ignores_null(void *user, const dvt_optimizer_step *step) {
    (void)user;
    dvt_sub_(step->weight, dvt_add(step->weight, NULL));
    return DVT_OK;
}

DVT_TEST(custom_optimizer_errors) {
    dvt_block *net = times(DVT_F32, DVT_CONTEXTS(dvt_cpu()));
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_status status = DVT_ERR_VALUE;
    dvt_optimizer_desc desc;
    dvt_optimizer optimizer;
    dvt_trainer *trainer;
    memset(&desc, 0, sizeof desc);
    optimizer = dvt_optimizer_custom(NULL, 0.1);
    CHECK_INT(dvt_error_code(), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK_ERROR(dvt_trainer_new(params, optimizer), DVT_ERR_NULL_ARGUMENT);
    desc.step = fails;
    desc.user = &status;
    desc.states = DVT_OPTIMIZER_STATES + 1;
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_custom(&desc, 0.1)), DVT_ERR_RANGE);
    desc.states = -1;
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_custom(&desc, 0.1)), DVT_ERR_RANGE);
    desc.states = 0;
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_custom(&desc, -1)), DVT_ERR_RANGE);
    trainer = dvt_trainer_new(params, dvt_optimizer_custom(&desc, 0.1));
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_trainer_step(trainer, 1), DVT_ERR_VALUE);
    desc.step = ignores_null;
    trainer = dvt_trainer_new(params, dvt_optimizer_custom(&desc, 0.1));
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_trainer_step(trainer, 1), DVT_ERR_NULL_ARGUMENT);
}

/* Fails at its second call, and records the number of every step. */
typedef struct fails_once {
    int calls;
    int64_t count[8];
} fails_once;

static dvt_status fail_second(void *user, const dvt_optimizer_step *step) {
    fails_once *f = (fails_once *)user;
    f->count[f->calls++] = step->count;
    if (f->calls == 2)
        return DVT_ERR_VALUE;
    return dvt_sub_(step->weight, step->gradient) ? DVT_OK : dvt_error_code();
}

DVT_TEST(custom_optimizer_that_fails_does_not_count) {
    dvt_block *net = dvt_nn_sequential();
    dvt_optimizer_desc desc;
    dvt_trainer *trainer;
    fails_once f;
    memset(&f, 0, sizeof f);
    memset(&desc, 0, sizeof desc);
    desc.step = fail_second;
    desc.user = &f;
    DVT_NN_ADD(net, times(DVT_F32, DVT_CONTEXTS(dvt_cpu())));
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_custom(&desc, 1));
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_trainer_step(trainer, 1), DVT_ERR_VALUE);
    CHECK_INT(dvt_trainer_steps(trainer), 1);
    /* The gradient is still there for another try, which has the same number. */
    CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
    CHECK_INT(dvt_trainer_steps(trainer), 2);
    CHECK_INT(f.calls, 3);
    CHECK_INT(f.count[0], 1);
    CHECK_INT(f.count[1], 2);
    CHECK_INT(f.count[2], 2);
}

/* ---- a schedule ---- */
static double triangle(void *user, double base, int64_t step) {
    const int64_t period = *(const int64_t *)user;
    return base * (double)(step % period) / (double)period;
}

static double nowhere(void *user, double base, int64_t step) {
    (void)user;
    (void)base;
    return step ? (double)NAN : 0.1;
}

DVT_TEST(custom_schedule) {
    int64_t period = 4;
    dvt_schedule schedule = dvt_schedule_custom(triangle, &period);
    dvt_block *net = times(DVT_F32, DVT_CONTEXTS(dvt_cpu()));
    dvt_optimizer optimizer = dvt_optimizer_sgd(0.5);
    dvt_trainer *trainer;
    CHECK_CLOSE(dvt_schedule_rate(&schedule, 0.5, 3), 0.375, 0);
    schedule.warmup = 2;
    CHECK_CLOSE(dvt_schedule_rate(&schedule, 0.5, 1), 0.25, 0);
    CHECK_CLOSE(dvt_schedule_rate(&schedule, 0.5, 5), 0.375, 0);
    optimizer.schedule = dvt_schedule_custom(NULL, NULL);
    CHECK_ERROR(dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer), DVT_ERR_RANGE);
    optimizer.schedule = dvt_schedule_custom(nowhere, NULL);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
    back(net, 0, DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_trainer_step(trainer, 1), DVT_ERR_RANGE);
}

/* ---- a metric ---- */
/* Adds the absolute errors and counts them. */
static dvt_status add_errors(void *user, dvt_array *labels, dvt_array *predictions,
                             dvt_metric_total *total) {
    dvt_array *sum = dvt_sum(dvt_abs(dvt_sub(labels, predictions)), DVT_ALL);
    (void)user;
    total->count += (double)dvt_size(predictions);
    if (!sum)
        return dvt_error_code();
    total->sum += dvt_item(sum);
    return DVT_OK;
}

static double root(void *user, const dvt_metric_total *total) {
    (void)user;
    return sqrt(total->sum / total->count);
}

static void count_reset(void *user) {
    ++*(int *)user;
}

static dvt_status without_labels(void *user, dvt_array *labels, dvt_array *predictions,
                                 dvt_metric_total *total) {
    (void)user;
    (void)predictions;
    total->sum += labels ? 1 : 2;
    total->count++;
    return labels ? DVT_ERR_VALUE : DVT_OK;
}

DVT_TEST(custom_metric) {
    dvt_array *labels = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    dvt_array *predictions = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 4, 0);
    dvt_metric_desc desc;
    dvt_metric *metric;
    int resets = 0;
    memset(&desc, 0, sizeof desc);
    CHECK_ERROR(dvt_metric_custom(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_metric_custom(&desc), DVT_ERR_NULL_ARGUMENT);
    desc.update = add_errors;
    desc.user = &resets;
    metric = dvt_metric_custom(&desc);
    CHECK_STR(dvt_metric_name(metric), "custom");
    CHECK(isnan(dvt_metric_get(metric)));
    CHECK_INT(dvt_metric_update(metric, labels, predictions), DVT_OK);
    CHECK_CLOSE(dvt_metric_get(metric), 5.0 / 3, 1e-12);
    CHECK_ERROR(
        dvt_metric_update(metric, DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 1, 2), predictions),
        DVT_ERR_SHAPE);
    CHECK_CLOSE(dvt_metric_get(metric), 5.0 / 3, 1e-12);
    CHECK_INT(dvt_metric_update(metric, labels, labels), DVT_OK);
    CHECK_CLOSE(dvt_metric_get(metric), 5.0 / 6, 1e-12);
    desc.name = "root_of_errors";
    desc.value = root;
    desc.reset = count_reset;
    metric = dvt_metric_custom(&desc);
    CHECK_STR(dvt_metric_name(metric), "root_of_errors");
    CHECK_INT(dvt_metric_update(metric, labels, predictions), DVT_OK);
    CHECK_CLOSE(dvt_metric_get(metric), sqrt(5.0 / 3), 1e-12);
    dvt_metric_reset(metric);
    CHECK_INT(resets, 1);
    CHECK(isnan(dvt_metric_get(metric)));
    desc.update = without_labels;
    desc.value = NULL;
    metric = dvt_metric_custom(&desc);
    CHECK_INT(dvt_metric_update(metric, NULL, predictions), DVT_OK);
    CHECK_ERROR(dvt_metric_update(metric, labels, predictions), DVT_ERR_VALUE);
    CHECK_CLOSE(dvt_metric_get(metric), 2, 0);
}
#endif
