/* Networks and trainers: small ones, in two slots of their own. */
#include "programs.h"

/* Records or compares the values of the parameters. */
static void parameters(fuzz_world *w, dvt_block *net, dvt_ctx ctx) {
    dvt_scope_guard guard;
    dvt_params *params;
    int i, n;
    fuzz_pause_faults(true);
    fuzz_lift_limits(w, true);
    guard = dvt_scope_begin();
    params = dvt_block_collect_params(net, NULL);
    n = dvt_params_len(params);
    for (i = 0; i < n && !w->failed; i++) {
        dvt_array *x = dvt_param_data(dvt_params_at(params, i), ctx);
        dvt_clear_error();
        if (x)
            fuzz_look(w, x);
    }
    dvt_scope_end(&guard);
    fuzz_lift_limits(w, false);
    fuzz_pause_faults(false);
}

static dvt_block *make_net(int kind) {
    dvt_block *net = dvt_nn_sequential(), *inner;
    dvt_nn_dense_desc desc;
    if (!net)
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.units = 3;
    desc.no_flatten = true;
    desc.activation = DVT_SOFTPLUS;
    switch (kind % 8) {
    case 0:
        return DVT_NN_ADD(net, dvt_nn_dense(3, DVT_RELU), dvt_nn_dense(2, DVT_IDENTITY)) == DVT_OK
                   ? net
                   : NULL;
    case 1:
        return DVT_NN_ADD(net, dvt_nn_dense(4, DVT_SIGMOID), dvt_nn_layer_norm(),
                          dvt_nn_dense(1, DVT_TANH)) == DVT_OK
                   ? net
                   : NULL;
    case 2:
        return DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2),
                          dvt_nn_flatten(), dvt_nn_dense(3, DVT_IDENTITY)) == DVT_OK
                   ? net
                   : NULL;
    case 3:
        return DVT_NN_ADD(net, dvt_nn_batch_norm(), dvt_nn_dense(2, DVT_TANH)) == DVT_OK ? net
                                                                                         : NULL;
    case 4:
        return DVT_NN_ADD(net, dvt_nn_dense_with(&desc), dvt_nn_activation(DVT_GELU)) == DVT_OK
                   ? net
                   : NULL;
    case 5:
        inner = dvt_nn_sequential();
        return DVT_NN_ADD(inner, dvt_nn_conv2d(3, 1, DVT_IDENTITY), dvt_nn_batch_norm()) ==
                           DVT_OK &&
                       DVT_NN_ADD(net, inner, dvt_nn_avg_pool2d(2, 1), dvt_nn_global_avg_pool2d(),
                                  dvt_nn_dense(2, DVT_IDENTITY)) == DVT_OK
                   ? net
                   : NULL;
    case 6:
        return DVT_NN_ADD(net, dvt_nn_embedding(5, 3), dvt_nn_dense(2, DVT_IDENTITY)) == DVT_OK
                   ? net
                   : NULL;
    default:
        return DVT_NN_ADD(net, dvt_nn_dense(kind / 8 - 3, DVT_RELU),
                          dvt_nn_dense(2, DVT_IDENTITY)) == DVT_OK
                   ? net
                   : NULL;
    }
}

static void call_net(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    int slot = b & 1;
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_block *net = make_net(c);
    dvt_ctx_list list = DVT_CONTEXTS(fuzz_place(w, 0), fuzz_place(w, 1));
    dvt_status status = DVT_OK;
    (void)op;
    list.n = b & 2 ? 2 : 1;
    dvt_seed(3);
    if (net)
        status = (b & 8 ? dvt_block_reinitialize : dvt_block_initialize)(
            net, b & 4 ? dvt_init_xavier() : dvt_init_uniform(0.5), list);
    if (net && status == DVT_OK) {
        dvt_release(w->net[slot]);
        w->net[slot] = (dvt_block *)dvt_retain(net);
        w->kind[slot] = c % 8;
    }
    dvt_scope_end(&guard);
    fuzz_ended(w, !net || status != DVT_OK);
}

/* Returns an input of the network: valid row numbers for an embedding. */
static dvt_array *input(fuzz_world *w, const dvt_block *net, const fuzz_object *a, int b) {
    int kind = net ? w->kind[net == w->net[1]] : 0;
    if (kind == 6)
        return dvt_clip(dvt_as_in_dtype(a->x, DVT_I64), -5, 4);
    return fuzz_with_axes(w, a, kind == 2 || kind == 5 || b % 8 == 0 ? 4 : 2);
}

static fuzz_object *pick_input(fuzz_world *w) {
    fuzz_object none = {NULL, {0}, 0, 0};
    return fuzz_pick_dtype(w, &none, fuzz_is_float32);
}

static dvt_block *pick_net(fuzz_world *w, int b) {
    return w->net[b & 1] || b & 64 ? w->net[b & 1] : w->net[!(b & 1)];
}

static void call_forward(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    fuzz_object *a = pick_input(w);
    dvt_block *net = pick_net(w, b);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_array *x = input(w, net, a, b), *y;
    (void)op;
    dvt_seed(9);
    y = dvt_keep(dvt_block_forward(net, x));
    dvt_scope_end(&guard);
    if (!fuzz_ended(w, !y))
        return;
    fuzz_result(w, y);
    if (!w->free_running)
        parameters(w, net, a->view.ctx);
}

static void call_trainer(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    int slot = w->net[b & 1] ? b & 1 : !(b & 1);
    dvt_scope_guard guard = dvt_scope_begin();
    dvt_params *params = dvt_block_collect_params(w->net[slot], c & 16 ? ".*weight" : NULL);
    double rate = c >= 240 ? fuzz_double(w) : 0.125;
    dvt_optimizer optimizer = c % 5 == 0   ? dvt_optimizer_sgd(rate)
                              : c % 5 == 1 ? dvt_optimizer_adam(rate)
                              : c % 5 == 2 ? dvt_optimizer_adamw(rate, 0.01)
                              : c % 5 == 3 ? dvt_optimizer_rmsprop(rate)
                                           : dvt_optimizer_adagrad(rate);
    dvt_trainer *trainer;
    (void)op;
    if (c & 32)
        optimizer.momentum = 0.5;
    trainer = dvt_trainer_new(params, optimizer);
    if (trainer) {
        dvt_release(w->trainer[slot]);
        w->trainer[slot] = (dvt_trainer *)dvt_retain(trainer);
    }
    dvt_scope_end(&guard);
    fuzz_ended(w, !trainer);
}

static void call_step(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    int slot = w->trainer[b & 1] ? b & 1 : !(b & 1), i;
    dvt_trainer *trainer = w->trainer[slot];
    int64_t batch = b >= 240 ? fuzz_int(w) : 2;
    dvt_status status = op->rule == 0   ? dvt_trainer_step(trainer, batch)
                        : op->rule == 1 ? dvt_trainer_step_partial(trainer, batch)
                        : op->rule == 2 ? dvt_trainer_allreduce(trainer)
                                        : dvt_trainer_update(trainer, batch);
    if (!fuzz_ended(w, status != DVT_OK))
        return;
    for (i = 0; i < 2 && !w->free_running; i++)
        if (w->net[slot])
            parameters(w, w->net[slot], fuzz_place(w, i));
}

/* Runs one step of training as users write it, so that some steps succeed. */
static void call_train(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    fuzz_object *a = pick_input(w);
    dvt_block *net = pick_net(w, b);
    dvt_status status;
    dvt_scope_guard guard;
    (void)op;
    if (!net || !a->x)
        return;
    guard = dvt_scope_begin();
    {
        dvt_record_guard record = dvt_record_begin(DVT_ON, DVT_ON);
        dvt_array *loss;
        dvt_seed(9);
        loss = dvt_mean(dvt_square(dvt_block_forward(net, input(w, net, a, b))), DVT_ALL);
        dvt_record_end(&record);
        status = dvt_backward(loss);
    }
    dvt_scope_end(&guard);
    if (status == DVT_OK && w->trainer[net == w->net[1]])
        status = dvt_trainer_step_partial(w->trainer[net == w->net[1]], 4);
    if (!fuzz_ended(w, status != DVT_OK))
        return;
    fuzz_gradients(w);
    if (!w->free_running)
        parameters(w, net, a->view.ctx);
}

static void call_net_end(fuzz_world *w, const fuzz_op *op) {
    int slot = fuzz_byte(w) & 1;
    (void)op;
    dvt_release(w->net[slot]);
    w->net[slot] = NULL;
    if (fuzz_byte(w) & 1) {
        dvt_release(w->trainer[slot]);
        w->trainer[slot] = NULL;
    }
    fuzz_ended(w, false);
}

static void call_net_format(fuzz_world *w, const fuzz_op *op) {
    uint8_t b = fuzz_byte(w);
    char text[600];
    size_t length;
    (void)op;
    if (!w->net[b & 1])
        return;
    length = dvt_block_format(w->net[b & 1], text, b & 2 ? sizeof text : (size_t)(b / 4));
    if (fuzz_ended(w, dvt_error_code() != DVT_OK)) {
        fuzz_number_item(w, (double)length);
        if (b & 2)
            fuzz_text(w, text);
    }
}

const fuzz_op fuzz_ops_net[] = {
    {"net", call_net, NULL, 10, 0, FUZZ_SHAPE_ONLY, 0},
    {"forward", call_forward, NULL, 16, 0, FUZZ_SHAPE_ONLY, 0},
    {"trainer", call_trainer, NULL, 6, 0, FUZZ_SHAPE_ONLY, 0},
    {"trainer_step", call_step, NULL, 3, 0, FUZZ_SHAPE_ONLY, 0},
    {"trainer_step_partial", call_step, NULL, 3, 1, FUZZ_SHAPE_ONLY, 0},
    {"trainer_allreduce", call_step, NULL, 2, 2, FUZZ_SHAPE_ONLY, 0},
    {"trainer_update", call_step, NULL, 2, 3, FUZZ_SHAPE_ONLY, 0},
    {"train", call_train, NULL, 10, 0, FUZZ_SHAPE_ONLY, 0},
    {"net_end", call_net_end, NULL, 2, 0, FUZZ_EXACT, 0},
    {"net_format", call_net_format, NULL, 2, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
