/* Tests of schedules and optimizers: every step of every kind against the formula in float64, on
   one element at a time. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

/* ---- schedules ---- */
DVT_TEST(schedule_rates) {
    static const int64_t at[3] = {5, 2, 9};
    dvt_schedule s;
    int64_t i;
    memset(&s, 0, sizeof s);
    CHECK_CLOSE(dvt_schedule_rate(&s, 0.5, 0), 0.5, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 0.5, 1000000), 0.5, 0);
    s = dvt_schedule_factor(3, 0.5, 0.1);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 2), 1, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 3), 0.5, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 8), 0.25, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 30), 0.1, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 0.05, 0), 0.05, 0); /* below the minimum from the start */
    CHECK_CLOSE(dvt_schedule_rate(&s, 0.05, 30), 0.05, 0);
    s = dvt_schedule_multi_factor(at, 3, 0.1);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 1), 1, 0);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 2), 0.1, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 8), 0.01, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 9), 0.001, 1e-15);
    s = dvt_schedule_poly(10, 2, 0.1);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 0), 1, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 5), 0.1 + 0.9 * 0.25, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 10), 0.1, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 99), 0.1, 1e-15);
    s = dvt_schedule_cosine(8, 0.2);
    for (i = 0; i <= 8; i++)
        CHECK_CLOSE(dvt_schedule_rate(&s, 1, i),
                    0.2 + 0.8 * (1 + cos(3.14159265358979323846 * (double)i / 8)) / 2, 1e-12);
    s.warmup = 4;
    s.warmup_begin = 0.1;
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 0), 0.1, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 2), 0.55, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 4), 1, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 8), 0.6, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, 12), 0.2, 1e-15);
    CHECK_CLOSE(dvt_schedule_rate(&s, 1, -5), 0.1, 1e-15);
    CHECK_ERROR(dvt_schedule_rate(NULL, 1, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_schedule_multi_factor(at, 17, 0.1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_schedule_multi_factor(NULL, 1, 0.1), DVT_ERR_NULL_ARGUMENT);
}

/* ---- a parameter to train ---- */
static dvt_array *identity(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_mul(x, dvt_block_data(self, "weight", dvt_ctx_of(x)));
}

static dvt_block *weight_of(int64_t n, dvt_dtype dtype, double value) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Scale";
    desc.forward = identity;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "weight", DVT_SHAPE(n), dtype, dvt_init_constant(value));
    return block;
}

/* Runs backward of the sum of gradient * weight, so that the gradient has the given values. */
static void push(dvt_block *net, const double *gradient, int64_t n, dvt_dtype dtype) {
    dvt_array *g =
        dvt_as_in_dtype(dvt_from_host(gradient, DVT_SHAPE(n), DVT_F64, dvt_cpu()), dtype);
    dvt_array *y = NULL;
    DVT_RECORD {
        y = dvt_block_forward(net, g);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
}

typedef struct reference {
    double w, m, v, s;
} reference;

/* Computes one step in float64, as the papers and MXNet's documentation define it. */
static void reference_step(reference *r, const dvt_optimizer *o, double rate, double wd,
                           double gradient, double batch, int t) {
    double g = gradient / batch, h;
    if (o->clip_gradient > 0)
        g = fmax(-o->clip_gradient, fmin(o->clip_gradient, g));
    h = g + wd * r->w;
    switch (o->kind) {
    case DVT_OPTIMIZER_SGD:
        if (o->momentum == 0) {
            r->w = (1 - rate * wd) * r->w - rate * g;
        } else {
            r->m = o->momentum * r->m - rate * wd * r->w - rate * g;
            r->w += o->nesterov ? o->momentum * r->m - rate * h : r->m;
        }
        break;
    case DVT_OPTIMIZER_ADAM:
    case DVT_OPTIMIZER_ADAMW: {
        double decay = o->kind == DVT_OPTIMIZER_ADAMW ? rate * wd * r->w : 0;
        double q = o->kind == DVT_OPTIMIZER_ADAMW ? g : h;
        r->m = o->beta1 * r->m + (1 - o->beta1) * q;
        r->v = o->beta2 * r->v + (1 - o->beta2) * q * q;
        r->w -= rate * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t)) * r->m /
                    (sqrt(r->v) + o->epsilon) +
                decay;
        break;
    }
    case DVT_OPTIMIZER_RMSPROP:
        r->v = o->rho * r->v + (1 - o->rho) * h * h;
        if (o->centered) {
            r->s = o->rho * r->s + (1 - o->rho) * h;
            r->m = o->momentum * r->m - rate * h / sqrt(r->v - r->s * r->s + o->epsilon);
            r->w += r->m;
        } else {
            r->w -= rate * h / sqrt(r->v + o->epsilon);
        }
        break;
    case DVT_OPTIMIZER_ADAGRAD:
        r->v += g * g;
        r->w -= rate * (g / sqrt(r->v + o->epsilon) + wd * r->w);
        break;
    default: /* test_custom.c tests custom optimizers */
        break;
    }
}

enum { WEIGHTS = 5, STEPS = 12, BATCH = 4 };

static void check_optimizer(dvt_optimizer o, dvt_dtype dtype, double lr_mult, double wd_mult,
                            double tolerance) {
    dvt_block *net = weight_of(WEIGHTS, dtype, 0.5);
    dvt_param *p = dvt_block_param(net, "weight");
    dvt_trainer *trainer;
    reference r[WEIGHTS];
    double gradient[WEIGHTS], *values;
    int t, i;
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_INT(dvt_param_set_lr_mult(p, lr_mult), DVT_OK);
    CHECK_INT(dvt_param_set_wd_mult(p, wd_mult), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), o);
    memset(r, 0, sizeof r);
    for (i = 0; i < WEIGHTS; i++)
        r[i].w = 0.5;
    for (t = 1; t <= STEPS; t++) {
        double rate = dvt_schedule_rate(&o.schedule, o.learning_rate, t - 1);
        CHECK_CLOSE(dvt_trainer_learning_rate(trainer), rate, 0);
        for (i = 0; i < WEIGHTS; i++) {
            gradient[i] = floor(dvt_test_random(-64, 64)) / 8; /* exact in every dtype */
            reference_step(&r[i], &o, rate * lr_mult, o.weight_decay * wd_mult, gradient[i], BATCH,
                           t);
        }
        push(net, gradient, WEIGHTS, dtype);
        CHECK_INT(dvt_trainer_step(trainer, BATCH), DVT_OK);
    }
    CHECK_INT(dvt_trainer_steps(trainer), STEPS);
    values = dvt_test_values(dvt_param_data(p, dvt_cpu()));
    for (i = 0; i < WEIGHTS; i++)
        CHECK_CLOSE(values[i], r[i].w, tolerance);
    free(values);
}

static dvt_optimizer with(dvt_optimizer o, double wd, double clip) {
    o.weight_decay = wd;
    o.clip_gradient = clip;
    return o;
}

DVT_TEST(optimizer_steps) {
    static const dvt_dtype dtypes[4] = {DVT_F64, DVT_F32, DVT_F16, DVT_BF16};
    static const double tolerances[4] = {1e-12, 2e-6, 1e-2, 8e-2};
    dvt_optimizer o;
    int d;
    for (d = 0; d < 4; d++) {
        dvt_dtype t = dtypes[d];
        double e = tolerances[d];
        check_optimizer(dvt_optimizer_sgd(0.1), t, 1, 1, e);
        check_optimizer(with(dvt_optimizer_sgd(0.1), 0.01, 0.3), t, 1, 1, e);
        o = with(dvt_optimizer_sgd(0.05), 0.01, 0);
        o.momentum = 0.9;
        check_optimizer(o, t, 1, 1, e);
        o.nesterov = true;
        check_optimizer(o, t, 1, 1, e);
        check_optimizer(with(dvt_optimizer_adam(0.01), 0.05, 0), t, 1, 1, e);
        check_optimizer(dvt_optimizer_adamw(0.01, 0.05), t, 1, 1, e);
        check_optimizer(with(dvt_optimizer_rmsprop(0.01), 0.05, 1), t, 1, 1, e);
        o = with(dvt_optimizer_rmsprop(0.01), 0.05, 0);
        o.centered = true;
        o.momentum = 0.5;
        check_optimizer(o, t, 1, 1, d ? 10 * e : e);
        check_optimizer(with(dvt_optimizer_adagrad(0.1), 0.01, 0), t, 1, 1, e);
    }
}

DVT_TEST(optimizer_multipliers_and_schedules) {
    dvt_optimizer o = with(dvt_optimizer_sgd(0.1), 0.1, 0);
    check_optimizer(o, DVT_F64, 0.5, 3, 1e-12);
    check_optimizer(o, DVT_F64, 0, 1, 0);
    check_optimizer(with(dvt_optimizer_adam(0.1), 0.1, 0), DVT_F64, 0.5, 0, 1e-12);
    check_optimizer(dvt_optimizer_adamw(0.1, 0.1), DVT_F64, 2, 0.5, 1e-12);
    check_optimizer(with(dvt_optimizer_adagrad(0.1), 0.1, 0), DVT_F64, 2, 0.5, 1e-12);
    o.schedule = dvt_schedule_cosine(10, 0.01);
    o.schedule.warmup = 3;
    check_optimizer(o, DVT_F64, 1, 1, 1e-12);
    o = dvt_optimizer_adam(0.1);
    o.schedule = dvt_schedule_factor(4, 0.5, 0.03);
    check_optimizer(o, DVT_F64, 1, 1, 1e-12);
}

/* Squares of small float16 gradients underflow float16, so Adam's states must not be float16. */
DVT_TEST(optimizer_float16_states) {
    dvt_block *net = weight_of(1, DVT_F16, 1);
    double gradient = 1e-4, first;
    dvt_trainer *trainer;
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.01));
    push(net, &gradient, 1, DVT_F16);
    CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
    first = dvt_item(dvt_block_data(net, "weight", dvt_cpu()));
    CHECK_CLOSE(first, 0.99, 1e-3);
}

DVT_TEST(optimizer_infinite_and_nan_gradients) {
    dvt_block *net = weight_of(3, DVT_F32, 1);
    const double gradient[3] = {(double)INFINITY, (double)NAN, -(double)INFINITY};
    dvt_optimizer o = with(dvt_optimizer_sgd(1), 0, 0.25);
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    push(net, gradient, 3, DVT_F32);
    CHECK_INT(dvt_trainer_step(dvt_trainer_new(dvt_block_collect_params(net, NULL), o), 1), DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "weight", dvt_cpu()), 0, 0.75, (double)NAN, 1.25);
}

DVT_TEST(optimizer_errors) {
    dvt_block *net = weight_of(1, DVT_F32, 1);
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_optimizer o;
    CHECK_ERROR(dvt_trainer_new(NULL, dvt_optimizer_sgd(1)), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_sgd(-1)), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_sgd((double)NAN)), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_sgd((double)INFINITY)), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_new(params, dvt_optimizer_adamw(1, -1)), DVT_ERR_RANGE);
    o = dvt_optimizer_sgd(1);
    o.momentum = 1;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_adam(1);
    o.beta2 = 1;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_adam(1);
    o.epsilon = -1;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_rmsprop(1);
    o.momentum = 0.5;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_sgd(1);
    o.kind = (dvt_optimizer_kind)9;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_sgd(1);
    o.clip_gradient = (double)NAN;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o = dvt_optimizer_sgd(1);
    o.schedule = dvt_schedule_factor(0, 0.5, 0);
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o.schedule = dvt_schedule_factor(1, 1.5, 0);
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o.schedule = dvt_schedule_cosine(0, 0);
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o.schedule = dvt_schedule_poly(5, -1, 0);
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
    o.schedule.kind = (dvt_schedule_kind)7;
    CHECK_ERROR(dvt_trainer_new(params, o), DVT_ERR_RANGE);
}
#endif
