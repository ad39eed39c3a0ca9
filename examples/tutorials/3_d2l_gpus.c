/* "GPUs" of Dive into Deep Learning, cell by cell: its MXNet, PyTorch and TensorFlow editions, each
   printed in its library's style. Cells are numbered in the document's order. Cells for all
   editions run once per edition. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

/* Variables that the cells of one edition share. */
typedef struct edition {
    dvt_print_style style;
    dvt_array *x, *X, *Y, *Z;
    dvt_block *net;
} edition;

/* Prints x.device where that is a string in Python. */
static void show_string(dvt_ctx ctx, const char *behind) {
    printf("'%s'%s", device(ctx, DVT_PRINT_TF), behind);
}

/* Does print(x): the str of MXNet and TensorFlow differs from their repr. */
static void print_as(dvt_array *x, dvt_print_style style) {
    dvt_print_options options;
    char text[1024];
    if (style == DVT_PRINT_TORCH) {
        show(x, style);
        return;
    }
    memset(&options, 0, sizeof options);
    options.style = DVT_PRINT_STR;
    options.no_newline = true;
    if (dvt_format(x, &options, text, sizeof text, NULL) != DVT_OK)
        return;
    if (style == DVT_PRINT_TF)
        printf("tf.Tensor(\n%s, shape=(%lld, %lld), dtype=%s)\n", text, (long long)dvt_dim(x, 0),
               (long long)dvt_dim(x, 1), dvt_dtype_name(dvt_dtype_of(x)));
    else if (dvt_ctx_of(x).type == DVT_DEVICE_GPU)
        printf("%s @%s\n", text, dvt_ctx_name(dvt_ctx_of(x)));
    else
        puts(text);
}

static void show_try_gpu(dvt_print_style style) {
    printf("(%s, %s, ", device(dvt_try_gpu(0), style), device(dvt_try_gpu(10), style));
    show_devices(dvt_try_all_gpus(), style, ")\n");
}

/* Implements tf.distribute.MirroredStrategy: variables made in its scope have a copy on every GPU,
   or on the CPU without GPUs. */
typedef struct mirrored_strategy {
    dvt_ctx_list devices;
} mirrored_strategy;

static dvt_ctx_list strategy_devices; /* devices of the current scope */

static mirrored_strategy mirrored_strategy_new(void) {
    mirrored_strategy strategy;
    strategy.devices = dvt_try_all_gpus_or_cpu();
    return strategy;
}

#define STRATEGY_SCOPE(strategy)                                                                   \
    for (strategy_devices = (strategy).devices; strategy_devices.n; strategy_devices.n = 0)

/* Implements tf.keras.models.Sequential([tf.keras.layers.Dense(units)]): the scope determines the
   devices of the variables, which Glorot's rule initializes. */
static dvt_block *keras_sequential_dense(int64_t units) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(units, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(),
                         strategy_devices.n ? strategy_devices : DVT_CONTEXTS(dvt_default_ctx()));
    return net;
}

/* d2l.Module, whose attributes are arrays, modules and lists of modules. */
typedef struct d2l_module d2l_module;

typedef struct d2l_attribute {
    dvt_array *array;
    d2l_module *module;
    d2l_module *list[2];
    int n_list;
} d2l_attribute;

struct d2l_module {
    d2l_attribute attribute[4];
    int n;
};

/* Moves parameters that are plain arrays. As in the MXNet edition, it moves them while recording,
   then attaches a gradient on the new device. */
static void set_scratch_params_device(d2l_module *self, dvt_ctx ctx) {
    int i, k;
    for (i = 0; i < self->n; i++) {
        d2l_attribute *a = &self->attribute[i];
        if (a->array) {
            DVT_RECORD {
                a->array = dvt_as_in_ctx(a->array, ctx);
            }
            dvt_attach_grad(a->array, DVT_GRAD_WRITE);
        }
        if (a->module)
            set_scratch_params_device(a->module, ctx);
        for (k = 0; k < a->n_list; k++)
            set_scratch_params_device(a->list[k], ctx);
    }
}

/* Makes w and b, which begin at `first`. */
static d2l_module scratch_linear(double first) {
    d2l_module module;
    memset(&module, 0, sizeof module);
    module.attribute[0].array = dvt_full(DVT_SHAPE(2, 1), first, DVT_F32, dvt_cpu());
    module.attribute[1].array = dvt_full(DVT_SHAPE(1), first + 1, DVT_F32, dvt_cpu());
    module.n = 2;
    return module;
}

static dvt_array *squares(const d2l_module *module) {
    return dvt_add(dvt_sum(dvt_square(module->attribute[0].array), DVT_ALL),
                   dvt_sum(dvt_square(module->attribute[1].array), DVT_ALL));
}

/* d2l.Trainer: uses at most the existing GPUs, moves batches and models to the first, and clips
   gradients. */
typedef struct d2l_trainer {
    int max_epochs;
    double gradient_clip_val;
    dvt_ctx_list gpus;
} d2l_trainer;

static d2l_trainer d2l_trainer_new(int max_epochs, int num_gpus, double gradient_clip_val) {
    d2l_trainer t;
    int i;
    memset(&t, 0, sizeof t);
    t.max_epochs = max_epochs;
    t.gradient_clip_val = gradient_clip_val;
    for (i = 0; i < num_gpus && i < dvt_num_gpus(); i++)
        t.gpus.ctx[t.gpus.n++] = dvt_gpu(i);
    return t;
}

static dvt_array *prepare_batch(const d2l_trainer *t, dvt_array *batch) {
    return t->gpus.n ? dvt_as_in_ctx(batch, t->gpus.ctx[0]) : batch;
}

static void prepare_model(const d2l_trainer *t, dvt_block *model) {
    if (t->gpus.n)
        dvt_params_reset_ctx(dvt_block_collect_params(model, NULL), DVT_CONTEXTS(t->gpus.ctx[0]));
}

/* Fits a line with the trainer above; every step runs on one device. Returns the last loss. */
static double fit(const d2l_trainer *t, dvt_block *model) {
    dvt_trainer *trainer;
    double loss_value = 0;
    int epoch;
    prepare_model(t, model);
    trainer = dvt_trainer_new(dvt_block_collect_params(model, NULL), dvt_optimizer_sgd(0.3));
    for (epoch = 0; epoch < t->max_epochs; epoch++) {
        DVT_SCOPED;
        dvt_array *x = prepare_batch(t, dvt_normal(0, 1, DVT_SHAPE(64, 2), DVT_F32, dvt_cpu()));
        dvt_array *w =
            dvt_as_in_ctx(DVT_ARRAY(float, DVT_SHAPE(2, 1), dvt_cpu(), 2, -3.4f), dvt_ctx_of(x));
        dvt_array *y = dvt_add_scalar(dvt_matmul(x, w), 4.2), *loss;
        DVT_RECORD {
            loss = dvt_loss_l2(dvt_block_forward(model, x), y);
        }
        dvt_backward(loss);
        dvt_trainer_allreduce(trainer);
        if (t->gradient_clip_val >
            0) /* before the division by the batch size, so the bound is proportional to it */
            dvt_trainer_clip_global_norm(trainer, t->gradient_clip_val * 64);
        dvt_trainer_update(trainer, 64);
        loss_value = dvt_item(dvt_mean(loss, DVT_ALL));
    }
    return loss_value;
}

int main(void) {
    edition mx = {DVT_PRINT_NP, NULL, NULL, NULL, NULL, NULL}, torch = mx, tf = mx;
    edition *const all[] = {&mx, &torch, &tf};
    mirrored_strategy strategy;
    d2l_module model, scale, layers[2];
    d2l_trainer trainer;
    dvt_array *loss;
    dvt_block *same;
    int i;

    dvt_set_log_level(DVT_LOG_OFF);
    block("1", "tab.interact_select(['mxnet', 'pytorch', 'tensorflow'])");
    torch.style = DVT_PRINT_TORCH;
    tf.style = DVT_PRINT_TF;
    puts("all three are shown, in this order");

    block("2", "!nvidia-smi");
    dvt_print_devices();

    block("3", "mxnet: from mxnet import np, npx; npx.set_np()");
    dvt_set_print_style(mx.style);
    block("4", "pytorch: import torch");
    printf("printed as %s\n", device(dvt_gpu(0), torch.style));
    block("5", "tensorflow: import tensorflow as tf");
    printf("printed as %s\n", device(dvt_gpu(0), tf.style));

    block("6", "def cpu(); def gpu(i=0); cpu(), gpu(), gpu(1)");
    for (i = 0; i < 3; i++)
        printf("(%s, %s, %s)\n", device(dvt_cpu(), all[i]->style),
               device(dvt_gpu(0), all[i]->style), device(dvt_gpu(1), all[i]->style));

    block("7", "def num_gpus(); num_gpus()");
    printf("%d\n", dvt_num_gpus());

    block("8", "def try_gpu(i=0); def try_all_gpus(); try_gpu(), try_gpu(10), try_all_gpus()");
    for (i = 0; i < 3; i++)
        show_try_gpu(all[i]->style);
    puts("and what the docstring of try_all_gpus promises:");
    show_devices(dvt_try_all_gpus_or_cpu(), mx.style, "\n");

    block("9", "mxnet: x = np.array([1, 2, 3]); x.ctx");
    mx.x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    puts(device(dvt_ctx_of(mx.x), mx.style));

    block("10", "pytorch: x = torch.tensor([1, 2, 3]); x.device");
    torch.x = DVT_ARRAY(int64_t, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    puts(device(dvt_ctx_of(torch.x), torch.style));

    block("11", "tensorflow: x = tf.constant([1, 2, 3]); x.device");
    tf.x = DVT_ARRAY(int32_t, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    show_string(dvt_ctx_of(tf.x), "\n");

    block("12", "mxnet: X = np.ones((2, 3), ctx=try_gpu()); X");
    mx.X = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(0));
    show(mx.X, mx.style);

    block("13", "pytorch: X = torch.ones(2, 3, device=try_gpu()); X");
    torch.X = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(0));
    show(torch.X, torch.style);

    block("14", "tensorflow: with try_gpu(): X = tf.ones((2, 3))");
    DVT_WITH_CTX(dvt_try_gpu(0)) {
        tf.X = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_default_ctx());
    }
    show(tf.X, tf.style);
    show_string(dvt_ctx_of(tf.X), "\n");

    block("15", "mxnet: Y = np.random.uniform(size=(2, 3), ctx=try_gpu(1)); Y");
    mx.Y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(1));
    show(mx.Y, mx.style);

    block("16", "pytorch: Y = torch.rand(2, 3, device=try_gpu(1)); Y");
    torch.Y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(1));
    show(torch.Y, torch.style);

    block("17", "tensorflow: with try_gpu(1): Y = tf.random.uniform((2, 3))");
    DVT_WITH_CTX(dvt_try_gpu(1)) {
        tf.Y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_default_ctx());
    }
    show(tf.Y, tf.style);
    show_string(dvt_ctx_of(tf.Y), "\n");

    block("17 text", "do not simply add X and Y: an exception when they are on two devices");
    if (dvt_add(mx.X, mx.Y))
        printf("no exception: both are on %s\n", dvt_ctx_name(dvt_ctx_of(mx.X)));
    else
        show_error();

    block("18", "mxnet: Z = X.copyto(try_gpu(1)); print(X); print(Z)");
    mx.Z = dvt_copyto(mx.X, dvt_try_gpu(1));
    print_as(mx.X, mx.style);
    print_as(mx.Z, mx.style);

    block("19", "pytorch: Z = X.cuda(1); print(X); print(Z)");
    torch.Z = dvt_as_in_ctx(torch.X, dvt_gpu(1));
    if (!torch.Z) { /* as in PyTorch on a machine without a second GPU */
        printf("~ %s\n", dvt_error());
        dvt_clear_error();
        torch.Z = dvt_as_in_ctx(torch.X, dvt_try_gpu(1));
    }
    print_as(torch.X, torch.style);
    print_as(torch.Z, torch.style);

    /* In TensorFlow this is another name for X, and the sum below copies it. Here Z is copied to
       the scope's device. */
    block("20", "tensorflow: with try_gpu(1): Z = X; print(X); print(Z)");
    DVT_WITH_CTX(dvt_try_gpu(1)) {
        tf.Z = dvt_as_in_ctx(tf.X, dvt_default_ctx());
    }
    print_as(tf.X, tf.style);
    print_as(tf.Z, tf.style);
    show_string(dvt_ctx_of(tf.Z), "\n");

    block("21", "Y + Z");
    for (i = 0; i < 3; i++)
        show(dvt_add(all[i]->Y, all[i]->Z), all[i]->style);

    block("22", "mxnet: Z.as_in_ctx(try_gpu(1)) is Z");
    puts(python_bool(dvt_as_in_ctx(mx.Z, dvt_try_gpu(1)) == mx.Z));
    printf("and Z.copyto(gpu(1)), which makes a copy: %s\n",
           python_bool(dvt_copyto(mx.Z, dvt_try_gpu(1)) == mx.Z));

    block("23", "pytorch: Z.cuda(1) is Z");
    puts(python_bool(dvt_as_in_ctx(torch.Z, dvt_try_gpu(1)) == torch.Z));

    block("24", "tensorflow: with try_gpu(1): Z2 = Z; Z2 is Z");
    DVT_WITH_CTX(dvt_try_gpu(1)) {
        dvt_array *Z2 = dvt_as_in_ctx(tf.Z, dvt_default_ctx());
        puts(python_bool(Z2 == tf.Z));
    }

    block("25",
          "mxnet: net = nn.Sequential(); net.add(nn.Dense(1)); net.initialize(ctx=try_gpu())");
    mx.net = dvt_nn_sequential();
    DVT_NN_ADD(mx.net, dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(mx.net, dvt_init_uniform(0.07), DVT_CONTEXTS(dvt_try_gpu(0)));

    block("26", "pytorch: net = nn.Sequential(nn.LazyLinear(1)); net = net.to(device=try_gpu())");
    torch.net = dvt_nn_sequential();
    DVT_NN_ADD(torch.net,
               dvt_nn_dense(1, DVT_IDENTITY)); /* the first input determines its number of inputs */
    dvt_block_initialize(torch.net, dvt_init_uniform(1 / sqrt(3)), DVT_CONTEXTS(dvt_cpu()));
    dvt_params_reset_ctx(dvt_block_collect_params(torch.net, NULL), DVT_CONTEXTS(dvt_try_gpu(0)));

    block("27",
          "tensorflow: strategy = tf.distribute.MirroredStrategy(); with strategy.scope(): net");
    strategy = mirrored_strategy_new();
    STRATEGY_SCOPE(strategy) {
        tf.net = keras_sequential_dense(1);
    }
    show_devices(strategy.devices, tf.style, "\n");

    block("28", "net(X)");
    for (i = 0; i < 3; i++)
        show(dvt_block_forward(all[i]->net, all[i]->X), all[i]->style);

    block("29", "mxnet: net[0].weight.data().ctx");
    puts(device(dvt_ctx_of(dvt_block_data(dvt_block_at(mx.net, 0), "weight", dvt_try_gpu(0))),
                mx.style));

    block("30", "pytorch: net[0].weight.data.device");
    puts(device(dvt_ctx_of(dvt_block_data(dvt_block_at(torch.net, 0), "weight", dvt_try_gpu(0))),
                torch.style));

    block("31", "tensorflow: net.layers[0].weights[0].device, net.layers[0].weights[1].device");
    printf("(");
    show_string(dvt_ctx_of(dvt_block_data(dvt_block_at(tf.net, 0), "weight", dvt_try_gpu(0))),
                ", ");
    show_string(dvt_ctx_of(dvt_block_data(dvt_block_at(tf.net, 0), "bias", dvt_try_gpu(0))), ")\n");
    printf("copies of the weight: ");
    show_devices(dvt_param_ctxs(dvt_block_param(dvt_block_at(tf.net, 0), "weight")), mx.style,
                 "\n");

    block("32", "mxnet: def set_scratch_params_device(self, device)");
    model = scratch_linear(1);
    scale = scratch_linear(3);
    layers[0] = scratch_linear(5);
    layers[1] = scratch_linear(7);
    model.attribute[2].module = &scale;
    model.attribute[3].list[0] = &layers[0];
    model.attribute[3].list[1] = &layers[1];
    model.attribute[3].n_list = 2;
    model.n = 4;
    set_scratch_params_device(&model, dvt_try_gpu(0));
    DVT_RECORD {
        loss = dvt_add(dvt_add(squares(&model), squares(&scale)),
                       dvt_add(squares(&layers[0]), squares(&layers[1])));
    }
    dvt_backward(loss);
    show(dvt_grad(model.attribute[0].array), mx.style);
    show(dvt_grad(scale.attribute[1].array), mx.style);
    show(dvt_grad(layers[1].attribute[0].array), mx.style);

    block("33", "mxnet, pytorch: class d2l.Trainer: __init__, prepare_batch, prepare_model");
    trainer = d2l_trainer_new(50, 1, 10);
    same = dvt_nn_sequential();
    DVT_NN_ADD(same, dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(same, dvt_init_normal(0.01), DVT_CONTEXTS(dvt_cpu()));
    printf("loss below 0.01: %s\n", python_bool(fit(&trainer, same) < 0.01));
    printf("trained on %s\n",
           dvt_ctx_name(dvt_param_ctxs(dvt_block_param(dvt_block_at(same, 0), "weight")).ctx[0]));

    block("exercise 1", "large and small tasks");
    exercise_large_and_small(dvt_try_gpu(0));
    block("exercise 2", "reading and writing parameters on the GPU");
    same = dvt_nn_sequential();
    DVT_NN_ADD(same, dvt_nn_dense(1, DVT_IDENTITY));
    exercise_parameters(mx.net, same, dvt_try_gpu(0), "tutorial3.params");
    block("exercise 3", "1000 products of 100 x 100 and their norms");
    exercise_thousand_products(dvt_try_gpu(0));
    block("exercise 4", "two products on two GPUs, or in sequence on one");
    exercise_two_devices(dvt_try_gpu(0), dvt_try_gpu(1));
    return finish();
}
