/* Optimisers: what each kind needs to know, checked once, and the launch that applies one step to one copy of a parameter.
   The arithmetic itself is a kernel (DVTI_K_OPTIMIZER). */
#include "7_train/dvt_train_internal.h"

/* The usual values, those of Gluon; fields that a kind does not use are harmless. */
static dvt_optimizer dvti_optimizer_of(dvt_optimizer_kind kind, double learning_rate) {
    dvt_optimizer optimizer;
    memset(&optimizer, 0, sizeof optimizer);
    optimizer.kind = kind;
    optimizer.learning_rate = learning_rate;
    optimizer.beta1 = 0.9;
    optimizer.beta2 = 0.999;
    optimizer.rho = 0.9;
    optimizer.epsilon = kind == DVT_OPTIMIZER_ADAGRAD ? 1e-7 : 1e-8;
    return optimizer;
}

DVT_API dvt_optimizer dvt_optimizer_sgd(double learning_rate) {
    return dvti_optimizer_of(DVT_OPTIMIZER_SGD, learning_rate);
}

DVT_API dvt_optimizer dvt_optimizer_adam(double learning_rate) {
    return dvti_optimizer_of(DVT_OPTIMIZER_ADAM, learning_rate);
}

DVT_API dvt_optimizer dvt_optimizer_adamw(double learning_rate, double weight_decay) {
    dvt_optimizer optimizer = dvti_optimizer_of(DVT_OPTIMIZER_ADAMW, learning_rate);
    optimizer.weight_decay = weight_decay;
    return optimizer;
}

DVT_API dvt_optimizer dvt_optimizer_rmsprop(double learning_rate) {
    return dvti_optimizer_of(DVT_OPTIMIZER_RMSPROP, learning_rate);
}

DVT_API dvt_optimizer dvt_optimizer_adagrad(double learning_rate) {
    return dvti_optimizer_of(DVT_OPTIMIZER_ADAGRAD, learning_rate);
}

static dvt_status dvti_optimizer_need(const char *function, bool ok, const char *name, double value,
                                      const char *expected) {
    return ok ? DVT_OK
              : dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected %s", function, name, value,
                          expected);
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
    if ((int)optimizer->kind < 0 || optimizer->kind > DVT_OPTIMIZER_ADAGRAD)
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
    return status == DVT_OK ? dvti_schedule_check(function, &optimizer->schedule) : status;
}

DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer) {
    switch (optimizer->kind) {
    case DVT_OPTIMIZER_SGD:
        return optimizer->momentum != 0 ? 1 : 0;
    case DVT_OPTIMIZER_ADAM:
    case DVT_OPTIMIZER_ADAMW:
        return 2;
    case DVT_OPTIMIZER_RMSPROP:
        return optimizer->centered ? 3 : 1;
    default:
        return 1;
    }
}

static dvti_op dvti_optimizer_op(dvt_optimizer_kind kind) {
    switch (kind) {
    case DVT_OPTIMIZER_ADAM:
        return DVTI_OP_adam;
    case DVT_OPTIMIZER_ADAMW:
        return DVTI_OP_adamw;
    case DVT_OPTIMIZER_RMSPROP:
        return DVTI_OP_rmsprop;
    case DVT_OPTIMIZER_ADAGRAD:
        return DVTI_OP_adagrad;
    default:
        return DVTI_OP_sgd;
    }
}

DVTI_FN dvti_launch dvti_optimizer_launch(const char *function, const dvt_optimizer *optimizer,
                                          double rate, double decay, double rescale,
                                          int64_t count) {
    dvti_launch launch;
    dvti_launch_begin(&launch, function, DVTI_K_OPTIMIZER, dvti_optimizer_op(optimizer->kind));
    launch.f[0] = rate;
    launch.f[1] = decay;
    launch.f[2] = rescale;
    launch.f[3] = optimizer->clip_gradient;
    launch.f[6] = optimizer->epsilon;
    switch (optimizer->kind) {
    case DVT_OPTIMIZER_SGD:
        launch.f[4] = optimizer->momentum;
        launch.i[0] = optimizer->nesterov;
        break;
    case DVT_OPTIMIZER_ADAM:
    case DVT_OPTIMIZER_ADAMW:
        launch.f[4] = optimizer->beta1;
        launch.f[5] = optimizer->beta2;
        launch.f[7] = rate * sqrt(1 - pow(optimizer->beta2, (double)count)) /
                      (1 - pow(optimizer->beta1, (double)count));
        break;
    case DVT_OPTIMIZER_RMSPROP:
        launch.f[4] = optimizer->rho;
        launch.f[5] = optimizer->momentum;
        launch.i[0] = optimizer->centered;
        break;
    default:
        break;
    }
    return launch;
}
