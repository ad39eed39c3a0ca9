/* devtensor's LeNet in the comparison: a training step, an epoch of Fashion-MNIST with the loader,
   the scores of a batch. All participants start with the same weights: input_value with seeds 11,
   12, ..., within 1 / sqrt(inputs of a unit). */
#ifndef LENET_CASES_H
#define LENET_CASES_H
#include "../../examples/lenet.h"
#include "runner.h"
#include <math.h>

#define LENET_PARAMS 10
#define LENET_RATE 0.01

typedef struct lenet_state {
    dvt_block *net;
    dvt_trainer *trainer;
    dvt_array *x, *labels, *scores;
    dvt_loader *train, *test;
    int64_t batch;
    float *host;
} lenet_state;

static void lenet_weights(dvt_block *net) {
    static const int inputs[LENET_PARAMS / 2] = {25, 54, 400, 120, 84};
    dvt_params *params = dvt_block_collect_params(net, NULL);
    int i;
    must(dvt_params_len(params) == LENET_PARAMS, "dvt_block_collect_params");
    for (i = 0; i < LENET_PARAMS; i++)
        DVT_SCOPE {
            dvt_shape shape = dvt_param_shape(dvt_params_at(params, i));
            int64_t n = dvt_shape_size(shape);
            float bound = 1 / sqrtf((float)inputs[i / 2]);
            float *values = (float *)malloc((size_t)n * sizeof *values);
            must(values != NULL, "malloc");
            input_fill(values, n, 11 + (uint32_t)i, -bound, bound);
            must(dvt_param_set_data(dvt_params_at(params, i),
                                    dvt_from_host(values, shape, DVT_F32, dvt_cpu())) == DVT_OK,
                 "dvt_param_set_data");
            free(values);
        }
}

static void lenet_step(runner_case *c) {
    lenet_state *s = (lenet_state *)c->user;
    DVT_SCOPE {
        dvt_array *loss;
        DVT_RECORD {
            loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(s->net, s->x), s->labels);
        }
        must(dvt_backward(loss) == DVT_OK, "dvt_backward");
        must(dvt_trainer_step(s->trainer, s->batch) == DVT_OK, "dvt_trainer_step");
    }
}

static void lenet_infer(runner_case *c) {
    lenet_state *s = (lenet_state *)c->user;
    DVT_SCOPE {
        dvt_array *y = dvt_block_forward(s->net, s->x);
        must(y != NULL, "dvt_block_forward");
        dvt_retain(y);
        dvt_release(s->scores);
        s->scores = y;
    }
}

static void lenet_epoch(runner_case *c) {
    lenet_state *s = (lenet_state *)c->user;
    DVT_SCOPE {
        train_epoch(s->net, s->trainer, DVT_CONTEXTS(dvt_cpu()), s->train, s->batch, NULL);
    }
}

static float *lenet_host(lenet_state *s, int64_t count) {
    free(s->host);
    s->host = (float *)malloc((size_t)count * sizeof(float));
    must(s->host != NULL, "malloc");
    return s->host;
}

static const float *lenet_scores(runner_case *c, int64_t *count) {
    lenet_state *s = (lenet_state *)c->user;
    *count = dvt_size(s->scores);
    must(dvt_to_host(s->scores, lenet_host(s, *count), *count * (int64_t)sizeof(float)) == DVT_OK,
         "dvt_to_host");
    return s->host;
}

/* Returns the gradient of the first kernels, computed from the change that one step makes to the
   initial weights. */
static const float *lenet_gradient(runner_case *c, int64_t *count) {
    lenet_state *s = (lenet_state *)c->user;
    DVT_SCOPE {
        dvt_param *first = dvt_params_at(dvt_block_collect_params(s->net, NULL), 0);
        dvt_array *before, *change;
        dvt_ctx here;
        memset(&here, 0, sizeof here);
        lenet_weights(s->net);
        before = dvt_copy(dvt_param_data(first, here));
        lenet_step(c);
        change = dvt_div_scalar(dvt_sub(before, dvt_param_data(first, here)), LENET_RATE);
        *count = dvt_size(change);
        must(dvt_to_host(change, lenet_host(s, *count), *count * (int64_t)sizeof(float)) == DVT_OK,
             "dvt_to_host");
    }
    return s->host;
}

static const float *lenet_accuracy(runner_case *c, int64_t *count) {
    lenet_state *s = (lenet_state *)c->user;
    *count = 1;
    lenet_host(s, 1);
    DVT_SCOPE {
        s->host[0] = (float)evaluate(s->net, dvt_cpu(), s->test);
    }
    return s->host;
}

static void lenet_end(runner_case *c) {
    lenet_state *s = (lenet_state *)c->user;
    dvt_release(s->x);
    dvt_release(s->labels);
    dvt_release(s->scores);
    dvt_release(s->train);
    dvt_release(s->test);
    dvt_release(s->trainer);
    dvt_release(s->net);
    free(s->host);
    free(s);
}

static void lenet_inputs(lenet_state *s) {
    int64_t n = s->batch * 784, i;
    float *values = (float *)malloc((size_t)n * sizeof *values);
    int64_t *classes = (int64_t *)malloc((size_t)s->batch * sizeof *classes);
    must(values && classes, "malloc");
    input_fill(values, n, 1, -1, 1);
    for (i = 0; i < s->batch; i++)
        classes[i] = i % 10;
    s->x = dvt_from_host(values, DVT_SHAPE(s->batch, 1, 28, 28), DVT_F32, dvt_cpu());
    s->labels = dvt_from_host(classes, DVT_SHAPE(s->batch), DVT_I64, dvt_cpu());
    must(s->x && s->labels, "dvt_from_host");
    dvt_retain(s->x);
    dvt_retain(s->labels);
    free(values);
    free(classes);
}

static dvt_loader *lenet_loader(bool train) {
    dvt_loader_desc desc;
    dvt_dataset *data = find_fashion_mnist(NULL, train);
    if (!data)
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 256;
    desc.shuffle = train;
    desc.num_workers = 1;
    return (dvt_loader *)dvt_retain(
        dvt_loader_new(dvt_dataset_transform_first(data, lenet_transform()), &desc));
}

/* Returns NULL, or the reason why the case does not exist. */
static const char *lenet_find(const char *op, const char *arguments, runner_case *c) {
    lenet_state *s = (lenet_state *)calloc(1, sizeof *s);
    bool epoch = strcmp(op, "lenet_epoch") == 0, step = strcmp(op, "lenet_step") == 0;
    must(s != NULL, "calloc");
    c->user = s;
    c->end = lenet_end;
    s->batch = epoch ? 256 : argument(arguments, "batch", 1);
    if (epoch) {
        s->train = lenet_loader(true);
        s->test = lenet_loader(false);
        if (!s->train || !s->test) {
            lenet_end(c);
            memset(c, 0, sizeof *c);
            return "no such case: Fashion-MNIST is not here";
        }
    }
    s->net = lenet();
    dvt_retain(s->net);
    must(dvt_block_initialize(s->net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())) == DVT_OK,
         "dvt_block_initialize");
    lenet_inputs(s);
    must(dvt_block_forward(s->net, s->x) != NULL,
         "dvt_block_forward"); /* now all shapes are known */
    lenet_weights(s->net);
    s->trainer = dvt_trainer_new(dvt_block_collect_params(s->net, NULL),
                                 dvt_optimizer_sgd(epoch ? 0.1 : LENET_RATE));
    must(s->trainer != NULL, "dvt_trainer_new");
    dvt_retain(s->trainer);
    c->call = epoch ? lenet_epoch : step ? lenet_step : lenet_infer;
    c->output = epoch ? lenet_accuracy : step ? lenet_gradient : lenet_scores;
    return NULL;
}

#endif
