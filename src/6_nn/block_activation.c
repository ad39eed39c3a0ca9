/* Activations of layers, and the blocks Activation, LeakyReLU, ELU and PReLU. */
#include "6_nn/dvt_nn_internal.h"

/* In the order of dvt_activation. Gluon calls softplus softrelu. */
static const struct dvti_activation_row {
    dvt_array *(*compute)(dvt_array *x);
    const char *text;
} dvti_activation_rows[] = {{NULL, "Activation(linear)"},
                            {dvt_relu, "Activation(relu)"},
                            {dvt_sigmoid, "Activation(sigmoid)"},
                            {dvt_tanh, "Activation(tanh)"},
                            {dvt_softplus, "Activation(softrelu)"},
                            {dvt_gelu, "Activation(gelu)"},
                            {dvt_selu, "Activation(selu)"},
                            {dvt_silu, "Activation(silu)"},
                            {dvt_mish, "Activation(mish)"},
                            {dvt_hard_sigmoid, "Activation(hard_sigmoid)"},
                            {dvt_hard_swish, "Activation(hard_swish)"}};

DVTI_FN bool dvti_activation_ok(const char *function, dvt_activation activation) {
    if ((int)activation >= DVT_IDENTITY && (int)activation <= DVT_HARD_SWISH)
        return true;
    dvti_fail(DVT_ERR_RANGE,
              "%s: activation number %d does not exist; expected one of dvt_activation, from "
              "DVT_IDENTITY to DVT_HARD_SWISH",
              function, (int)activation);
    return false;
}

DVTI_FN dvt_array *dvti_activate(dvt_array *x, dvt_activation activation) {
    return activation == DVT_IDENTITY ? x : dvti_activation_rows[activation].compute(x);
}

DVTI_FN const char *dvti_activation_text(dvt_activation activation) {
    return dvti_activation_rows[activation].text;
}

static dvt_array *dvti_activation_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvti_activate(x, *(const dvt_activation *)user);
}

static size_t dvti_activation_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)self;
    dvti_text_add(&text, "%s", dvti_activation_text(*(const dvt_activation *)user));
    return text.length;
}

DVT_API dvt_block *dvt_nn_activation(dvt_activation activation) {
    static const dvti_nn_kind kind = {"Activation", "activation", dvti_activation_forward, NULL,
                                      dvti_activation_describe};
    const char *function = "dvt_nn_activation";
    return dvti_activation_ok(function, activation)
               ? dvti_nn_block(function, &kind, &activation, sizeof activation)
               : NULL;
}

/* ---- one number: LeakyReLU, ELU ---- */
static dvt_array *dvti_leaky_relu_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvt_leaky_relu(x, *(const double *)user);
}

static dvt_array *dvti_elu_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvt_elu(x, *(const double *)user);
}

static size_t dvti_activation_number_describe(const dvt_block *self, void *user, char *buffer,
                                              size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "%s(%s)", self->desc.kind, dvti_python_number(*(const double *)user));
    return text.length;
}

static dvt_block *dvti_activation_number(const char *function, const dvti_nn_kind *kind,
                                         const char *what, double number) {
    if (number - number == 0)
        return dvti_nn_block(function, kind, &number, sizeof number);
    dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected a finite number", function, what, number);
    return NULL;
}

DVT_API dvt_block *dvt_nn_leaky_relu(double slope) {
    static const dvti_nn_kind kind = {"LeakyReLU", "leakyrelu", dvti_leaky_relu_forward, NULL,
                                      dvti_activation_number_describe};
    return dvti_activation_number("dvt_nn_leaky_relu", &kind, "slope", slope);
}

DVT_API dvt_block *dvt_nn_elu(double alpha) {
    static const dvti_nn_kind kind = {"ELU", "elu", dvti_elu_forward, NULL,
                                      dvti_activation_number_describe};
    return dvti_activation_number("dvt_nn_elu", &kind, "alpha", alpha);
}

/* ---- PReLU: the slope is named alpha, as in Gluon ---- */
static dvt_array *dvti_prelu_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *alpha = dvt_block_data(self, "alpha", dvt_ctx_of(x));
    (void)user;
    return alpha ? dvt_prelu(x, alpha) : NULL;
}

static size_t dvti_prelu_describe(const dvt_block *self, void *user, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    (void)user;
    dvti_text_add(&text, "PReLU(in_channels=%lld)",
                  (long long)dvt_param_shape(self->param[0]).dim[0]);
    return text.length;
}

DVT_API dvt_block *dvt_nn_prelu(int64_t channels) {
    static const dvti_nn_kind kind = {"PReLU", "prelu", dvti_prelu_forward, NULL,
                                      dvti_prelu_describe};
    dvt_block *block;
    if (channels < 1) {
        dvti_fail(DVT_ERR_RANGE,
                  "dvt_nn_prelu: channels is %lld; expected 1 or more: one slope, "
                  "or one for each channel",
                  (long long)channels);
        return NULL;
    }
    block = dvti_nn_block("dvt_nn_prelu", &kind, NULL, 0);
    if (block &&
        !dvt_block_add_param(block, "alpha", DVT_SHAPE(channels), DVT_F32, dvt_init_constant(0.25)))
        return dvti_block_discard(block);
    return block;
}
