/* devtensor's cases of the comparison, written as a user would write them. */
#include "runner.h"
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "lenet_cases.h"

typedef struct state {
    int op; /* index in the family, for `call` */
    dvt_array *in[4], *last;
    dvt_axes axes;
    int axis;
    int64_t n[4];
    dvt_conv2d_options conv;
    bool backward;
    float *host;
} state;

static dvt_array *input(dvt_shape shape, uint32_t seed, float low, float high) {
    int64_t n = dvt_shape_size(shape);
    float *values = (float *)malloc((size_t)n * sizeof *values);
    dvt_array *x;
    must(values != NULL, "malloc");
    input_fill(values, n, seed, low, high);
    x = dvt_from_host(values, shape, DVT_F32, dvt_cpu());
    must(x != NULL, "dvt_from_host");
    free(values);
    return (dvt_array *)dvt_retain(x);
}

/* Keeps the newest result until the next one, as a program that uses it would. */
static void keep(state *s, dvt_array *y) {
    must(y != NULL, "the operation");
    dvt_retain(y);
    dvt_release(s->last);
    s->last = y;
}

static const float *output(runner_case *c, int64_t *count) {
    state *s = (state *)c->user;
    free(s->host);
    *count = dvt_size(s->last);
    s->host = (float *)malloc((size_t)*count * sizeof(float));
    must(s->host != NULL, "malloc");
    DVT_SCOPE {
        dvt_array *plain = dvt_astype(s->last, DVT_F32);
        must(dvt_to_host(plain, s->host, *count * (int64_t)sizeof(float)) == DVT_OK, "dvt_to_host");
    }
    return s->host;
}

static void end(runner_case *c) {
    state *s = (state *)c->user;
    int i;
    for (i = 0; i < 4; i++)
        dvt_release(s->in[i]);
    dvt_release(s->last);
    free(s->host);
    free(s);
}

/* ---- products: like the other libraries, we write into an existing C ---- */
static void call_mm(runner_case *c) {
    state *s = (state *)c->user;
    dvt_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.transpose_a = s->n[0] != 0;
    desc.transpose_b = s->n[1] != 0;
    desc.out = s->last;
    must(dvt_matmul_with(s->in[0], s->in[1], &desc) != NULL, "dvt_matmul_with");
}

static void call_mm_norms(runner_case *c) {
    state *s = (state *)c->user;
    double sum = 0;
    int64_t i;
    for (i = 0; i < s->n[0]; i++)
        DVT_SCOPE {
            sum += dvt_item(dvt_norm(dvt_matmul(s->in[0], s->in[1]), DVT_ALL));
        }
    DVT_SCOPE {
        keep(s, dvt_scalar(sum, DVT_F32, dvt_cpu()));
    }
}

/* ---- elementwise ---- */
static const struct {
    const char *name;
    dvt_array *(*call)(dvt_array *);
    float low, high;
} unary[] = {{"exp", dvt_exp, -4, 4},   {"log", dvt_log, 0.01f, 10},     {"tanh", dvt_tanh, -4, 4},
             {"sin", dvt_sin, -10, 10}, {"sigmoid", dvt_sigmoid, -8, 8}, {"erf", dvt_erf, -3, 3},
             {"gelu", dvt_gelu, -4, 4}, {"sqrt", dvt_sqrt, 0, 10},       {"relu", dvt_relu, -1, 1}};

static void call_unary(runner_case *c) {
    state *s = (state *)c->user;
    DVT_SCOPE {
        keep(s, unary[s->op].call(s->in[0]));
    }
}

/* The tutorials' chains, each operation by itself. */
static void call_chain(runner_case *c) {
    state *s = (state *)c->user;
    dvt_array *z = s->in[0], *y = s->in[1];
    DVT_SCOPE {
        keep(s, s->op ? dvt_sub(dvt_pow_scalar(z, 0.5), dvt_log(dvt_abs(z)))
                      : dvt_mul(dvt_exp(dvt_add_scalar(z, 2)), y));
    }
}

static void call_add(runner_case *c) {
    state *s = (state *)c->user;
    DVT_SCOPE {
        keep(s, dvt_add(s->in[0], s->in[1]));
    }
}

/* ---- along axes ---- */
enum { SUM, MEAN, VAR, MAX, ARGMAX, SOFTMAX, LAYERNORM, CUMSUM, SORT, ARGSORT, TOPK, TRANSPOSE };

static const char *const along[] = {"sum",    "mean",    "var",       "max",
                                    "argmax", "softmax", "layernorm", "cumsum",
                                    "sort",   "argsort", "topk",      "transpose"};

static void call_along(runner_case *c) {
    state *s = (state *)c->user;
    dvt_array *x = s->in[0];
    DVT_SCOPE {
        keep(s, s->op == SUM         ? dvt_sum(x, s->axes)
                : s->op == MEAN      ? dvt_mean(x, s->axes)
                : s->op == VAR       ? dvt_var(x, s->axes, 0)
                : s->op == MAX       ? dvt_max(x, s->axes)
                : s->op == ARGMAX    ? dvt_argmax(x, DVT_AXES(s->axis))
                : s->op == SOFTMAX   ? dvt_softmax(x, -1)
                : s->op == LAYERNORM ? dvt_layer_norm(x, NULL, NULL, 1e-5)
                : s->op == CUMSUM    ? dvt_cumsum(x, s->axis)
                : s->op == SORT      ? dvt_sort(x, s->axis, DVT_ASCENDING)
                : s->op == ARGSORT   ? dvt_argsort(x, s->axis, DVT_ASCENDING)
                : s->op == TOPK      ? dvt_topk(x, s->n[0], s->axis, DVT_LARGEST, NULL)
                                     : dvt_contiguous(dvt_t(x)));
    }
}

/* ---- convolution: forward, and forward with both gradients ---- */
static void call_conv(runner_case *c) {
    state *s = (state *)c->user;
    DVT_SCOPE {
        if (s->backward) {
            dvt_array *y;
            DVT_RECORD {
                y = dvt_conv2d(s->in[0], s->in[1], s->in[2], &s->conv);
            }
            must(dvt_backward(y) == DVT_OK, "dvt_backward");
            keep(s, dvt_grad(s->in[1]));
        } else {
            keep(s, dvt_conv2d(s->in[0], s->in[1], s->in[2], &s->conv));
        }
    }
}

static void call_pool(runner_case *c) {
    state *s = (state *)c->user;
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    DVT_SCOPE {
        keep(s, dvt_max_pool2d(s->in[0], &p));
    }
}

/* ---- random numbers ---- */
static void call_random(runner_case *c) {
    state *s = (state *)c->user;
    DVT_SCOPE {
        keep(s, s->op ? dvt_normal(0, 1, DVT_SHAPE(s->n[0]), DVT_F32, dvt_cpu())
                      : dvt_uniform(0, 1, DVT_SHAPE(s->n[0]), DVT_F32, dvt_cpu()));
    }
}

/* ---- finding a case ---- */
static int index_of(const char *name, const char *const *names, int n) {
    int i;
    for (i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static const char *find_conv(const char *a, state *s, runner_case *c) {
    int64_t n = argument(a, "n", 1), ch = argument(a, "c", 1), h = argument(a, "h", 1);
    int64_t w = argument(a, "w", h), o = argument(a, "o", 1), k = argument(a, "k", 1);
    s->conv.stride[0] = (int)argument(a, "stride", 1);
    s->conv.padding[0] = s->conv.padding[1] = (int)argument(a, "pad", 0);
    s->backward = argument(a, "backward", 0) != 0;
    s->in[0] = input(DVT_SHAPE(n, ch, h, w), 1, -1, 1);
    s->in[1] = input(DVT_SHAPE(o, ch, k, k), 2, -1, 1);
    s->in[2] = input(DVT_SHAPE(o), 3, -1, 1);
    if (s->backward) {
        must(dvt_attach_grad(s->in[0], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
        must(dvt_attach_grad(s->in[1], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
        must(dvt_attach_grad(s->in[2], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
    }
    c->call = call_conv;
    return NULL;
}

static const char *find_case(const char *op, const char *a, state *s, runner_case *c) {
    int64_t rows = argument(a, "rows", 1), columns = argument(a, "columns", 1);
    int i;
    if (strcmp(op, "mm") == 0) {
        int64_t m = argument(a, "m", 1), n = argument(a, "n", 1), k = argument(a, "k", 1);
        s->n[0] = argument(a, "ta", 0);
        s->n[1] = argument(a, "tb", 0);
        s->in[0] = input(s->n[0] ? DVT_SHAPE(k, m) : DVT_SHAPE(m, k), 1, -1, 1);
        s->in[1] = input(s->n[1] ? DVT_SHAPE(n, k) : DVT_SHAPE(k, n), 2, -1, 1);
        s->last = input(DVT_SHAPE(m, n), 3, -1, 1);
        c->call = call_mm;
        return NULL;
    }
    if (strcmp(op, "mm_norms") == 0) {
        s->n[0] = argument(a, "count", 1);
        s->in[0] = input(DVT_SHAPE(100, 100), 1, -1, 1);
        s->in[1] = input(DVT_SHAPE(100, 100), 2, -1, 1);
        c->call = call_mm_norms;
        return NULL;
    }
    for (i = 0; i < (int)(sizeof unary / sizeof unary[0]); i++)
        if (strcmp(op, unary[i].name) == 0) {
            s->op = i;
            s->in[0] = input(DVT_SHAPE(argument(a, "n", 1)), 1, unary[i].low, unary[i].high);
            c->call = call_unary;
            return NULL;
        }
    if (strcmp(op, "add") == 0) {
        s->in[0] = input(DVT_SHAPE(argument(a, "n", 1)), 1, -1, 1);
        s->in[1] = input(DVT_SHAPE(argument(a, "n", 1)), 2, -1, 1);
        c->call = call_add;
        return NULL;
    }
    if (strcmp(op, "exp_chain") == 0 || strcmp(op, "log_chain") == 0) {
        s->op = op[0] == 'l';
        s->in[0] = input(DVT_SHAPE(argument(a, "n", 1)), 1, s->op ? 0.01f : -1, s->op ? 10 : 1);
        s->in[1] = input(DVT_SHAPE(argument(a, "n", 1)), 2, -1, 1);
        c->call = call_chain;
        return NULL;
    }
    s->op = index_of(op, along, (int)(sizeof along / sizeof along[0]));
    if (s->op >= 0) {
        s->in[0] = input(DVT_SHAPE(rows, columns), 1, -1, 1);
        s->axis = (int)argument(a, "axis", -1);
        s->n[0] = argument(a, "k", 1);
        s->axes = argument(a, "all", 0) ? DVT_ALL : DVT_AXES(s->axis);
        c->call = call_along;
        return NULL;
    }
    if (strcmp(op, "conv") == 0)
        return find_conv(a, s, c);
    if (strcmp(op, "maxpool") == 0) {
        s->in[0] = input(DVT_SHAPE(64, 20, 24, 24), 1, -1, 1);
        c->call = call_pool;
        return NULL;
    }
    if (strcmp(op, "uniform") == 0 || strcmp(op, "normal") == 0) {
        s->op = op[0] == 'n';
        s->n[0] = argument(a, "n", 1);
        c->call = call_random;
        return NULL;
    }
    return "no such case";
}

static const char *find(const char *op, const char *arguments, runner_case *c) {
    const char *reason = NULL;
    state *s;
    if (strncmp(op, "lenet_", 6) == 0) {
        DVT_SCOPE {
            reason = lenet_find(op, arguments, c);
        }
        return reason;
    }
    s = (state *)calloc(1, sizeof *s);
    must(s != NULL, "calloc");
    s->op = -1;
    DVT_SCOPE {
        reason = find_case(op, arguments, s, c);
    }
    c->user = s;
    c->end = end;
    c->output = output;
    if (reason) {
        end(c);
        memset(c, 0, sizeof *c);
    }
    return reason;
}

/* With the argument "isa" it prints the ISA target. */
int main(int argc, char **argv) {
    if (argc == 2 &&
        strcmp(argv[1], "blocks") == 0) { /* of float32 products: bench/cpu/blocks.py */
        dvt_cpu_info info;
        dvt_cpu_query(&info);
        return printf("%d %d %d\n", (int)info.rows, (int)info.depth, (int)info.cols) < 0;
    }
    if (argc == 2 && strcmp(argv[1], "isa") == 0)
        return puts(dvt_cpu_isa()) < 0;
    return runner_main(find);
}
