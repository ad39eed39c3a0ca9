/* Tests of optimizer steps against the published formulas in double: every row of the table of
   optimizers with every option, dtypes, threads, devices. */
#include "../../src/2_core/dvt_optimizer_table.h"
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

#define STEPS 6

/* Computes y = sum of x * weight, so that the gradient of the weight is x. */
static dvt_array *times_weight(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_sum(dvt_mul(x, dvt_block_data(self, "weight", dvt_ctx_of(x))), DVT_ALL);
}

static dvt_block *times(dvt_array *weight) {
    dvt_ctx_list here = DVT_CONTEXTS(dvt_ctx_of(weight));
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Times";
    desc.forward = times_weight;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "weight", dvt_shape_of(weight), dvt_dtype_of(weight),
                        dvt_init_zero());
    CHECK_INT(dvt_block_initialize(block, dvt_init_zero(), here), DVT_OK);
    CHECK_INT(dvt_param_set_data(dvt_block_param(block, "weight"), weight), DVT_OK);
    return block;
}

static dvt_array *random_array(int64_t n, dvt_dtype dtype, dvt_ctx ctx) {
    double *values = (double *)malloc(sizeof(double) * (size_t)n);
    dvt_array *x;
    int64_t i;
    for (i = 0; i < n; i++)
        values[i] = dvt_test_random(-3, 3);
    x = dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(n), DVT_F64, ctx), dtype);
    free(values);
    return x;
}

static void back(dvt_block *net, dvt_array *gradient) {
    dvt_array *y = NULL;
    DVT_RECORD {
        y = dvt_block_forward(net, gradient);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
}

/* Returns the weight of one element after step t, and updates the state. A row of the table without
   a formula here fails: its weights are compared with NaN. */
static double step(const dvt_optimizer *o, double w, double gradient, double rescale, int t,
                   double s[3]) {
    double a = o->learning_rate, d = o->weight_decay, c = o->clip_gradient, g = rescale * gradient;
    if (c > 0)
        g = fmin(fmax(g, -c), c);
    switch (o->kind) {
    case DVT_OPTIMIZER_SGD:
        s[0] = o->momentum * s[0] - a * d * w - a * g;
        return o->nesterov ? (1 - a * d) * w - a * g + o->momentum * s[0] : w + s[0];
    case DVT_OPTIMIZER_ADAM:
    case DVT_OPTIMIZER_ADAMW: {
        double h = o->kind == DVT_OPTIMIZER_ADAM ? g + d * w : g, mean, square;
        s[0] = o->beta1 * s[0] + (1 - o->beta1) * h;
        s[1] = o->beta2 * s[1] + (1 - o->beta2) * h * h;
        mean = s[0] / (1 - pow(o->beta1, t));
        square = sqrt(s[1] / (1 - pow(o->beta2, t)));
        /* MXNet adds epsilon before the bias correction of the square. */
        w -= o->kind == DVT_OPTIMIZER_ADAMW ? a * d * w : 0;
        return w - a * mean / (square + o->epsilon / sqrt(1 - pow(o->beta2, t)));
    }
    case DVT_OPTIMIZER_RMSPROP:
        g += d * w;
        s[0] = o->rho * s[0] + (1 - o->rho) * g * g;
        if (!o->centered)
            return w - a * g / sqrt(s[0] + o->epsilon);
        s[1] = o->rho * s[1] + (1 - o->rho) * g;
        s[2] = o->momentum * s[2] - a * g / sqrt(s[0] - s[1] * s[1] + o->epsilon);
        return w + s[2];
    case DVT_OPTIMIZER_ADAGRAD:
        s[0] += g * g;
        return w - a * g / sqrt(s[0] + o->epsilon) - a * d * w;
    default:
        return NAN;
    }
}

static void check_optimizer(dvt_optimizer optimizer, int64_t n, dvt_dtype dtype, double tolerance,
                            dvt_ctx ctx) {
    DVT_SCOPE {
        dvt_array *start = random_array(n, dtype, ctx);
        dvt_block *net = times(start);
        dvt_trainer *trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
        double *w = dvt_test_values(start);
        double *state = (double *)calloc((size_t)n * 3, sizeof(double));
        int t;
        for (t = 1; t <= STEPS; t++) {
            int64_t batch = t % 2 ? 1 : 4, i;
            dvt_array *gradient = random_array(n, dtype, ctx);
            double *g = dvt_test_values(gradient);
            back(net, gradient);
            CHECK_INT(dvt_trainer_step(trainer, batch), DVT_OK);
            for (i = 0; i < n; i++)
                w[i] = step(&optimizer, w[i], g[i], 1.0 / (double)batch, t, state + 3 * i);
            free(g);
        }
        if (!dvt_test_equal(dvt_block_data(net, "weight", ctx), w, n, tolerance, __FILE__,
                            __LINE__))
            printf("  kind %d momentum %g nesterov %d centered %d decay %g clip %g %s\n",
                   (int)optimizer.kind, optimizer.momentum, optimizer.nesterov, optimizer.centered,
                   optimizer.weight_decay, optimizer.clip_gradient, dvt_dtype_name(dtype));
        free(w);
        free(state);
    }
}

#define MAKE_RATE(name) dvt_optimizer_##name(0.05)
#define MAKE_RATE_DECAY(name) dvt_optimizer_##name(0.05, 0)
#define COUNT(...) +1
#define ROW(name, kind, make, ...) MAKE_##make(name),

enum { ROWS = 0 DVTI_OPTIMIZER_TABLE(COUNT), FORMS = 3, OPTIMIZERS = 3 * FORMS * ROWS };

/* Fills out with every row in each form: plain, with momentum, with Nesterov's. Each form is
   followed by itself with weight decay, and with clipping too. Kinds that have no momentum ignore
   it. */
static void every_optimizer(dvt_optimizer *out) {
    const dvt_optimizer rows[] = {DVTI_OPTIMIZER_TABLE(ROW)};
    int i, form;
    for (i = 0; i < ROWS; i++)
        for (form = 0; form < FORMS; form++, out += 3) {
            out[0] = rows[i];
            if (form) {
                out[0].momentum = 0.9;
                out[0].nesterov = form == 2;
                out[0].centered = true;
                out[0].epsilon = rows[i].kind == DVT_OPTIMIZER_RMSPROP ? 1e-4 : rows[i].epsilon;
            }
            out[1] = out[2] = out[0];
            out[1].weight_decay = out[2].weight_decay = 0.125;
            out[2].clip_gradient = 0.5;
        }
}

#undef MAKE_RATE
#undef MAKE_RATE_DECAY
#undef COUNT
#undef ROW

DVT_TEST(optimizer_formulas) {
    dvt_optimizer optimizer[OPTIMIZERS], momentum = dvt_optimizer_sgd(0.1);
    int i;
    every_optimizer(optimizer);
    for (i = 0; i < OPTIMIZERS; i++) {
        check_optimizer(optimizer[i], 37, DVT_F32, 1e-5, dvt_cpu());
        check_optimizer(optimizer[i], 5, DVT_F64, 1e-12, dvt_cpu());
    }
    check_optimizer(dvt_optimizer_sgd(0.1), 9, DVT_F16, 1e-2, dvt_cpu());
    momentum.momentum = 0.9;
    check_optimizer(momentum, 9, DVT_BF16, 1e-1, dvt_cpu());
    check_optimizer(dvt_optimizer_adam(0.05), 9, DVT_BF16, 1e-1, dvt_cpu());
}

DVT_TEST(optimizer_on_a_virtual_gpu) {
    dvt_optimizer optimizer[OPTIMIZERS];
    int i;
    every_optimizer(optimizer);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (i = 0; i < OPTIMIZERS; i += 3)
        check_optimizer(optimizer[i], 11, DVT_F32, 1e-5, dvt_gpu(0));
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* NaN and Inf change only their own element. Clipping bounds Inf and keeps NaN. */
DVT_TEST(optimizer_special_values) {
    dvt_optimizer clipped = dvt_optimizer_sgd(1);
    dvt_array *w = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu());
    dvt_array *g = DVT_ARRAY(float, DVT_SHAPE(4), dvt_cpu(), NAN, INFINITY, -INFINITY, 1);
    dvt_block *net = times(w), *other = times(w);
    dvt_trainer *plain = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1)),
                *bounded;
    clipped.clip_gradient = 2;
    bounded = dvt_trainer_new(dvt_block_collect_params(other, NULL), clipped);
    back(net, g);
    back(other, g);
    CHECK_INT(dvt_trainer_step(plain, 1), DVT_OK);
    CHECK_INT(dvt_trainer_step(bounded, 1), DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "weight", dvt_cpu()), 0, NAN, -INFINITY, INFINITY, 0);
    CHECK_VALUES(dvt_block_data(other, "weight", dvt_cpu()), 0, NAN, -1, 3, 0);
}

DVT_TEST(optimizer_same_bits_for_any_threads) {
    dvt_array *w = random_array(50001, DVT_F32, dvt_cpu());
    dvt_array *g = random_array(50001, DVT_F32, dvt_cpu()), *first = NULL;
    int threads;
    for (threads = 1; threads <= 3; threads++) {
        dvt_block *net = times(w);
        dvt_trainer *trainer =
            dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.01));
        dvt_array *now = dvt_block_data(net, "weight", dvt_cpu());
        dvt_set_num_threads(threads);
        back(net, g);
        CHECK_INT(dvt_trainer_step(trainer, 3), DVT_OK);
        if (first)
            CHECK(memcmp(dvt_data(first), dvt_data(now), (size_t)dvt_nbytes(now)) == 0);
        else
            first = dvt_copy(now);
    }
    dvt_set_num_threads(0);
}

#endif
