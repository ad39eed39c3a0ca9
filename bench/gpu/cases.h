/* The rows as computations of arrays. The same function computes ours and the reference in float64,
   on any context. */
#ifndef CASES_H
#define CASES_H
#include "examples/lenet.h"

typedef struct row {
    char text[200]; /* operation and arguments, as in rows.txt */
    char op[32], peers[100], floor[32];
    double bound;     /* of the relative error */
    double work;      /* of a call, in units */
    const char *unit; /* GB/s, TFLOP/s, ...: work per second */
    double bytes;     /* moved at least, for the copy engine; 0 for other rows */
    dvt_array *in[4]; /* on gpu(0) */
    dvt_array *out;   /* of products: where the result goes */
    dvt_array *twin;  /* the result of a peer */
    dvt_block *net;   /* training */
    dvt_trainer *trainer;
    dvt_loader *train, *test;
} row;

static int64_t argument(const row *r, const char *name, int64_t otherwise) {
    const char *at = r->text;
    size_t n = strlen(name);
    while ((at = strchr(at, ' ')) != NULL) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return strtoll(at + n + 1, NULL, 10);
    }
    return otherwise;
}

static bool is_op(const row *r, const char *op) {
    return strcmp(r->op, op) == 0;
}

static bool has_dtype(const row *r, const char *name) {
    const char *at = strstr(r->text, "dtype=");
    return at && strncmp(at + 6, name, strlen(name)) == 0;
}

static dvt_dtype dtype_of(const row *r) {
    return has_dtype(r, "f16") ? DVT_F16 : has_dtype(r, "bf16") ? DVT_BF16 : DVT_F32;
}

/* ---- inputs ---- */
static dvt_array *drawn(row *r, int i, double low, double high, dvt_shape shape) {
    r->in[i] = dvt_uniform(low, high, shape, dtype_of(r), dvt_gpu(0));
    must(r->in[i] != NULL, "dvt_uniform");
    dvt_retain(r->in[i]);
    return r->in[i];
}

static void fill_vectors(row *r) {
    const int64_t n = argument(r, "n", 1);
    bool random = is_op(r, "uniform") || is_op(r, "normal"), where = is_op(r, "where");
    bool gradient = is_op(r, "relu_gradient");
    double high = is_op(r, "exp") ? 4 : 1;
    int inputs = random ? 0 : where ? 3 : is_op(r, "add") || gradient ? 2 : 1, i;
    for (i = 0; i < inputs; i++)
        drawn(r, i, -high, high, DVT_SHAPE(n));
    if (where) {
        dvt_release(r->in[0]);
        r->in[0] = (dvt_array *)dvt_retain(dvt_greater_scalar(r->in[0], 0));
        must(r->in[0] != NULL, "dvt_greater_scalar");
    }
    if (gradient)
        must(dvt_attach_grad(r->in[0], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
    /* The gradient of relu reads x, writes y, reads x and y's gradient, writes that of x. */
    r->bytes = (where ? 13.0 : gradient ? 20.0 : 4.0 * (inputs + 1)) * (double)n;
    r->unit = random ? "Gelement/s" : "GB/s";
    r->work = 1e-9 * (random ? (double)n : r->bytes);
}

static void fill_matrix(row *r) {
    const int64_t rows = argument(r, "rows", 1), columns = argument(r, "columns", 1);
    double elements = (double)rows * (double)columns;
    double passes = is_op(r, "sum") ? 1 : 2;
    drawn(r, 0, -1, 1, DVT_SHAPE(rows, columns));
    r->bytes = elements * passes * (double)dvt_dtype_size(dtype_of(r));
    r->unit = is_op(r, "sort") ? "Melement/s" : "GB/s";
    r->work = is_op(r, "sort") ? elements * 1e-6 : r->bytes * 1e-9;
}

static void fill_product(row *r) {
    const int64_t m = argument(r, "m", 1), n = argument(r, "n", 1), k = argument(r, "k", 1);
    bool ta = argument(r, "ta", 0) != 0, tb = argument(r, "tb", 0) != 0;
    drawn(r, 0, -1, 1, ta ? DVT_SHAPE(k, m) : DVT_SHAPE(m, k));
    drawn(r, 1, -1, 1, tb ? DVT_SHAPE(n, k) : DVT_SHAPE(k, n));
    r->out = (dvt_array *)dvt_retain(dvt_empty(DVT_SHAPE(m, n), dtype_of(r), dvt_gpu(0)));
    r->twin = (dvt_array *)dvt_retain(dvt_empty(DVT_SHAPE(m, n), dtype_of(r), dvt_gpu(0)));
    must(r->out && r->twin, "dvt_empty");
    r->work = 2e-12 * (double)m * (double)n * (double)k;
    r->unit = "TFLOP/s";
}

static void fill_conv(row *r) {
    const int64_t b = argument(r, "batch", 1), c = argument(r, "c", 1), h = argument(r, "h", 1);
    const int64_t o = argument(r, "o", 1), k = argument(r, "k", 1);
    const int64_t out = (h + 2 * argument(r, "pad", 0) - k) / argument(r, "stride", 1) + 1;
    drawn(r, 0, -1, 1, DVT_SHAPE(b, c, h, h));
    drawn(r, 1, -1, 1, DVT_SHAPE(o, c, k, k));
    drawn(r, 2, -1, 1, DVT_SHAPE(o));
    if (argument(r, "backward", 0)) {
        int i;
        for (i = 0; i < 3; i++)
            must(dvt_attach_grad(r->in[i], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
        drawn(r, 3, -1, 1, DVT_SHAPE(b, o, out, out));
    }
    r->work = 2e-12 * (double)(b * o * out * out) * (double)(c * k * k) *
              (argument(r, "backward", 0) ? 3 : 1);
    r->unit = "TFLOP/s";
}

/* ---- computations ---- */
static dvt_array *product_of(const row *r, dvt_array **in, dvt_array *out) {
    dvt_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.transpose_a = argument(r, "ta", 0) != 0;
    desc.transpose_b = argument(r, "tb", 0) != 0;
    desc.out = out;
    return dvt_matmul_with(in[0], in[1], &desc);
}

/* Returns the gradients of f's inputs joined as one array of one axis, so that all are compared. */
static dvt_array *gradients_of(dvt_array *y, dvt_array *head, dvt_array **vars, int n, bool all) {
    dvt_array *found[3], *flat[3];
    int i;
    if (dvt_gradients(&y, &head, 1, vars, n, DVT_FREE_GRAPH, found) != DVT_OK)
        return NULL;
    for (i = 0; i < n && all; i++)
        flat[i] = dvt_reshape(found[i], DVT_SHAPE(-1));
    return all ? dvt_concat(flat, n, 0) : found[0];
}

static dvt_array *conv_of(const row *r, dvt_array **in, bool all) {
    dvt_conv2d_options p;
    dvt_array *y = NULL;
    memset(&p, 0, sizeof p);
    p.stride[0] = p.stride[1] = (int)argument(r, "stride", 1);
    p.padding[0] = p.padding[1] = (int)argument(r, "pad", 0);
    if (!argument(r, "backward", 0))
        return dvt_conv2d(in[0], in[1], in[2], &p);
    DVT_RECORD {
        y = dvt_conv2d(in[0], in[1], in[2], &p);
    }
    return gradients_of(y, in[3], in, 3, all);
}

/* Four times tanh(0.9 t + 0.1): twelve operations. */
static dvt_array *chain_of(dvt_array *t) {
    int i;
    for (i = 0; i < 4; i++)
        t = dvt_tanh(dvt_add_scalar(dvt_mul_scalar(t, 0.9), 0.1));
    return t;
}

/* Computes a row from inputs on any context. all: with everything that a check compares. */
static dvt_array *compute(const row *r, dvt_array **in, bool all) {
    dvt_array *x = in[0], *y = NULL;
    int64_t axis = argument(r, "axis", -1);
    if (is_op(r, "copy"))
        return dvt_copy(x);
    if (is_op(r, "add") || is_op(r, "dispatch"))
        return dvt_add(x, in[1]);
    if (is_op(r, "where"))
        return dvt_where(x, in[1], in[2]);
    if (is_op(r, "exp"))
        return dvt_exp(x);
    if (is_op(r, "chain"))
        return chain_of(x);
    if (is_op(r, "relu_gradient")) {
        DVT_RECORD {
            y = dvt_relu(x);
        }
        return gradients_of(y, in[1], &x, 1, all);
    }
    if (is_op(r, "sum"))
        return dvt_sum(x, axis < 0 ? DVT_ALL : DVT_AXES((int)axis));
    if (is_op(r, "softmax"))
        return dvt_softmax(x, -1);
    if (is_op(r, "layer_norm"))
        return dvt_layer_norm(x, NULL, NULL, 1e-5);
    if (is_op(r, "transpose"))
        return dvt_contiguous(dvt_t(x));
    if (is_op(r, "sort"))
        return dvt_sort(x, -1, DVT_ASCENDING);
    if (is_op(r, "mm"))
        return product_of(r, in, r->out && x == r->in[0] ? r->out : NULL);
    if (is_op(r, "conv"))
        return conv_of(r, in, all);
    if (is_op(r, "uniform"))
        return dvt_uniform(0, 1, DVT_SHAPE(argument(r, "n", 1)), DVT_F32, dvt_gpu(0));
    if (is_op(r, "normal"))
        return dvt_normal(0, 1, DVT_SHAPE(argument(r, "n", 1)), DVT_F32, dvt_gpu(0));
    return NULL;
}

#endif
