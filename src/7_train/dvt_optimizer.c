/* Optimizers: their parameters and checks, and one step of one copy of a model parameter.
   Optimizers of the table launch kernel "optimizer"; custom ones call the program's function. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

/* Returns the default values, which are those of Gluon. Fields that a kind does not use have no
   effect. */
static dvt_optimizer dvti_optimizer_of(dvt_optimizer_kind kind, double learning_rate,
                                       double weight_decay, double epsilon) {
    dvt_optimizer optimizer;
    memset(&optimizer, 0, sizeof optimizer);
    optimizer.kind = kind;
    optimizer.learning_rate = learning_rate;
    optimizer.weight_decay = weight_decay;
    optimizer.beta1 = 0.9;
    optimizer.beta2 = 0.999;
    optimizer.rho = 0.9;
    optimizer.epsilon = epsilon;
    return optimizer;
}

/* The public functions of all rows. */
#define DVTI_MAKE_RATE(name, kind, epsilon)                                                        \
    DVT_API dvt_optimizer dvt_optimizer_##name(double learning_rate) {                             \
        return dvti_optimizer_of(DVT_OPTIMIZER_##kind, learning_rate, 0, epsilon);                 \
    }
#define DVTI_MAKE_RATE_DECAY(name, kind, epsilon)                                                  \
    DVT_API dvt_optimizer dvt_optimizer_##name(double learning_rate, double weight_decay) {        \
        return dvti_optimizer_of(DVT_OPTIMIZER_##kind, learning_rate, weight_decay, epsilon);      \
    }
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)          \
    DVTI_MAKE_##make(name, kind, epsilon)
DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_MAKE_RATE
#undef DVTI_MAKE_RATE_DECAY

DVT_API dvt_optimizer dvt_optimizer_custom(const dvt_optimizer_desc *desc, double learning_rate) {
    dvt_optimizer optimizer = dvti_optimizer_of(DVT_OPTIMIZER_CUSTOM, learning_rate, 0, 0);
    if (desc)
        optimizer.custom = *desc;
    else
        dvti_null("dvt_optimizer_custom", "desc");
    return optimizer;
}

static dvt_status dvti_optimizer_need(const char *function, bool ok, const char *name, double value,
                                      const char *expected) {
    return ok ? DVT_OK
              : dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected %s", function, name, value,
                          expected);
}

static dvt_status dvti_optimizer_check_custom(const char *function,
                                              const dvt_optimizer_desc *desc) {
    if (!desc->step)
        return dvti_fail(DVT_ERR_NULL_ARGUMENT,
                         "%s: the optimizer %s has no step; set dvt_optimizer_desc.step", function,
                         desc->name ? desc->name : "without a name");
    if (desc->states < 0 || desc->states > DVT_OPTIMIZER_STATES)
        return dvti_fail(DVT_ERR_RANGE, "%s: the optimizer %s has %d states; expected 0 to %d",
                         function, desc->name ? desc->name : "without a name", desc->states,
                         DVT_OPTIMIZER_STATES);
    return DVT_OK;
}

DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer) {
    static const char *const size = "a finite number that is not negative";
    static const char *const part = "at least 0 and below 1";

    struct {
        const char *name;
        double value;
        bool is_part;
    } field[8];

    dvt_status status = DVT_OK;
    int i;
    memset(field, 0, sizeof field);
    field[0].name = "learning_rate";
    field[0].value = optimizer->learning_rate;
    field[1].name = "weight_decay";
    field[1].value = optimizer->weight_decay;
    field[2].name = "epsilon";
    field[2].value = optimizer->epsilon;
    field[3].name = "clip_gradient";
    field[3].value = optimizer->clip_gradient;
    field[4].name = "momentum";
    field[4].value = optimizer->momentum;
    field[5].name = "beta1";
    field[5].value = optimizer->beta1;
    field[6].name = "beta2";
    field[6].value = optimizer->beta2;
    field[7].name = "rho";
    field[7].value = optimizer->rho;
    for (i = 4; i < 8; i++)
        field[i].is_part = true;
    if ((int)optimizer->kind < 0 || optimizer->kind > DVT_OPTIMIZER_CUSTOM)
        return dvti_fail(DVT_ERR_RANGE, "%s: optimizer.kind is %d, none of dvt_optimizer_kind",
                         function, (int)optimizer->kind);
    for (i = 0; i < 8 && status == DVT_OK; i++)
        status = dvti_optimizer_need(
            function,
            field[i].value >= 0 &&
                (field[i].is_part ? field[i].value < 1 : field[i].value <= DBL_MAX),
            field[i].name, field[i].value, field[i].is_part ? part : size);
    if (status == DVT_OK && optimizer->kind == DVT_OPTIMIZER_RMSPROP && optimizer->momentum != 0 &&
        !optimizer->centered)
        return dvti_fail(
            DVT_ERR_RANGE,
            "%s: momentum is %g; RMSProp has a momentum in its centered form only: set "
            "centered, or momentum to 0",
            function, optimizer->momentum);
    if (status == DVT_OK && optimizer->kind == DVT_OPTIMIZER_CUSTOM)
        status = dvti_optimizer_check_custom(function, &optimizer->custom);
    return status == DVT_OK ? dvti_schedule_check(function, &optimizer->schedule) : status;
}

DVTI_FN int dvti_optimizer_states(const dvt_optimizer *o) {
    switch (o->kind) {
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)          \
    case DVT_OPTIMIZER_##kind:                                                                     \
        return states;
        DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return o->custom.states;
    }
}

/* ---- one step ---- */
static double dvti_adam_rate(const dvt_optimizer *o, double rate, int64_t count) {
    return rate * sqrt(1 - pow(o->beta2, (double)count)) / (1 - pow(o->beta1, (double)count));
}

DVTI_FN dvti_launch dvti_optimizer_launch(const char *function, const dvt_optimizer *o,
                                          const dvti_step_numbers *step) {
    const double rate = step->rate;
    const int64_t count = step->count;
    dvti_launch launch;
    (void)rate;
    (void)count;
    dvti_launch_begin(&launch, function, dvti_kernel_optimizer(), DVTI_OP_COUNT);
    launch.f[0] = step->rate;
    launch.f[1] = step->decay;
    launch.f[2] = step->rescale;
    launch.f[3] = o->clip_gradient;
    switch (o->kind) {
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)          \
    case DVT_OPTIMIZER_##kind:                                                                     \
        launch.op = DVTI_OP_##name;                                                                \
        launch.f[4] = p0;                                                                          \
        launch.f[5] = p1;                                                                          \
        launch.f[6] = p2;                                                                          \
        launch.f[7] = p3;                                                                          \
        launch.i[0] = flag;                                                                        \
        break;
        DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default: /* a custom optimizer launches no library kernel */
        break;
    }
    return launch;
}

/* Runs the program's step on one copy of a parameter, in its own scope. */
DVTI_FN dvt_status dvti_optimizer_custom_step(const char *function, const dvt_optimizer *o,
                                              const dvti_step_numbers *numbers,
                                              const dvti_replica *at) {
    const dvt_optimizer_desc *desc = &o->custom;
    const bool clean = dvt_error_code() == DVT_OK;
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_optimizer_step step;
    dvt_status status;
    memset(&step, 0, sizeof step);
    step.weight = at->weight;
    step.gradient = dvt_mul_scalar(at->gradient, numbers->rescale);
    if (o->clip_gradient > 0)
        step.gradient = dvt_clip(step.gradient, -o->clip_gradient, o->clip_gradient);
    step.state = at->state;
    step.learning_rate = numbers->rate;
    step.weight_decay = numbers->decay;
    step.count = numbers->count;
    status = step.gradient ? desc->step(desc->user, &step) : dvti_failure();
    /* A step that ignored the NULL of a failed call counts as failed. */
    if (status == DVT_OK && clean)
        status = dvt_error_code();
    else if (status != DVT_OK && dvt_error_code() == DVT_OK)
        dvti_fail(status,
                  "%s: step of the optimizer %s returned %s, and no call in it failed; expected "
                  "DVT_OK: see the function given to dvt_optimizer_custom",
                  function, desc->name ? desc->name : "without a name", dvt_status_name(status));
    dvt_scope_end(&scope);
    return status;
}
