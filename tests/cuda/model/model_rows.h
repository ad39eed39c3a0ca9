/* How the rows of the performance model prepare their inputs and compute. Arrays are small enough
   to be simulated, and large enough to select the programs of large arrays on four
   multiprocessors. */

typedef struct work {
    const struct row *row;
    dvt_array *in[4], *y, *head; /* y: recorded, head: its gradient */
    dvt_trainer *trainer;
    double bytes; /* of inputs and results, each once: no program moves less */
    double macs;  /* multiply-adds of products and convolutions */
} work;

typedef struct row {
    const char *text;
    void (*run)(work *w);
    void (*prepare)(work *w);
    int64_t n[6];
    dvt_dtype dtype;
    bool full; /* only with DVT_TEST_FULL=1: its program takes long to compile */
} row;

/* ---- inputs ---- */
static void counted_bytes(work *w, const dvt_array *x) {
    if (x)
        w->bytes += (double)dvt_nbytes(x);
}

static dvt_array *drawn(work *w, int i, dvt_dtype dtype, dvt_shape shape) {
    w->in[i] = dvt_uniform(-1, 1, shape, dtype, dvt_gpu(0));
    counted_bytes(w, w->in[i]);
    return w->in[i];
}

/* Draws integers of [0, below) on cpu() and copies them, so that only the row's kernels are
   launched. */
static dvt_array *indices(work *w, int i, int64_t count, int64_t below) {
    w->in[i] = dvt_copyto(dvt_randint(0, below, DVT_SHAPE(count), DVT_I64, dvt_cpu()), dvt_gpu(0));
    counted_bytes(w, w->in[i]);
    return w->in[i];
}

static void result(work *w, dvt_array *y) {
    must(y != NULL, w->row->text);
    counted_bytes(w, y);
}

static void one_vector(work *w) {
    drawn(w, 0, w->row->dtype, DVT_SHAPE(w->row->n[0]));
}

static void two_vectors(work *w) {
    drawn(w, 1, w->row->dtype, DVT_SHAPE(w->row->n[0]));
    one_vector(w);
}

static void one_matrix(work *w) {
    drawn(w, 0, w->row->dtype, DVT_SHAPE(w->row->n[0], w->row->n[1]));
}

/* Draws a gradient for y, which prepare() has recorded. Its launches are not counted. */
static void recorded(work *w, dvt_array *y) {
    must(y != NULL, w->row->text);
    w->y = y;
    w->head = dvt_uniform(-1, 1, dvt_shape_of(y), dvt_dtype_of(y), dvt_gpu(0));
    counted_bytes(w, w->head);
}

static void attach(work *w, int n) {
    int i;
    for (i = 0; i < n; i++)
        must(dvt_attach_grad(w->in[i], DVT_GRAD_WRITE) == DVT_OK, "dvt_attach_grad");
}

static void gradients_of(work *w, int first, int n) {
    dvt_array *found[4];
    int i;
    must(dvt_gradients(&w->y, &w->head, 1, w->in + first, n, DVT_FREE_GRAPH, found) == DVT_OK,
         w->row->text);
    for (i = 0; i < n; i++)
        counted_bytes(w, found[i]);
}

static void gradient(work *w) {
    gradients_of(w, 0, 1);
}

static void gradient_of_second(work *w) {
    gradients_of(w, 1, 1);
}

static void gradients_of_three(work *w) {
    gradients_of(w, 0, 3);
}

/* ---- elementwise ---- */
static void run_copy(work *w) {
    result(w, dvt_copy(w->in[0]));
}

static void run_add(work *w) {
    result(w, dvt_add(w->in[0], w->in[1]));
}

static void run_exp(work *w) {
    result(w, dvt_exp(w->in[0]));
}

static void run_contiguous(work *w) {
    result(w, dvt_contiguous(w->in[0]));
}

static void run_chain(work *w) {
    dvt_array *t = w->in[0];
    int i;
    for (i = 0; i < 4; i++)
        t = dvt_tanh(dvt_add_scalar(dvt_mul_scalar(t, 0.9), 0.1));
    result(w, t);
}

static void prepare_mixed(work *w) {
    drawn(w, 0, DVT_F32, DVT_SHAPE(w->row->n[0]));
    drawn(w, 1, DVT_BF16, DVT_SHAPE(w->row->n[0]));
}

static void prepare_integers(work *w) {
    drawn(w, 0, DVT_F32, DVT_SHAPE(w->row->n[0]));
    w->in[1] = dvt_astype(w->in[0], DVT_I32);
    counted_bytes(w, w->in[1]);
}

static void prepare_bias(work *w) {
    one_matrix(w);
    drawn(w, 1, w->row->dtype, DVT_SHAPE(w->row->n[1]));
}

static void prepare_where(work *w) {
    two_vectors(w);
    w->in[2] = dvt_greater_scalar(w->in[0], 0);
    counted_bytes(w, w->in[2]);
}

static void run_where(work *w) {
    result(w, dvt_where(w->in[2], w->in[0], w->in[1]));
}

static void prepare_relu(work *w) {
    one_vector(w);
    attach(w, 1);
    DVT_RECORD {
        w->y = dvt_relu(w->in[0]);
    }
    recorded(w, w->y);
}

/* ---- layouts: views, of which only the elements that are read count as bytes ---- */
static void view(work *w, dvt_array *x) {
    w->bytes = 0;
    w->in[0] = x;
    counted_bytes(w, x);
}

static void prepare_transpose(work *w) {
    one_matrix(w);
    view(w, dvt_t(w->in[0]));
}

static void prepare_permute(work *w) { /* NCHW to NHWC */
    drawn(w, 0, w->row->dtype, DVT_SHAPE(w->row->n[0], w->row->n[1], w->row->n[2], w->row->n[3]));
    view(w, dvt_transpose(w->in[0], DVT_AXES(0, 2, 3, 1)));
}

static void prepare_every_second(work *w) {
    one_matrix(w);
    view(w, dvt_slice(w->in[0], 1, 0, DVT_END, 2));
}

static void prepare_from_second(work *w) {
    one_matrix(w);
    view(w, dvt_slice(w->in[0], 1, 1, DVT_END, 1));
}

/* ---- reductions and norms; n[2] is the axis ---- */
static void run_sum(work *w) {
    result(w, dvt_sum(w->in[0], w->row->n[2] < 0 ? DVT_ALL : DVT_AXES((int)w->row->n[2])));
}

static void run_argmax(work *w) {
    result(w, dvt_argmax(w->in[0], DVT_AXES(1)));
}

static void run_softmax(work *w) {
    result(w, dvt_softmax(w->in[0], -1));
}

static void prepare_softmax_gradient(work *w) {
    one_matrix(w);
    attach(w, 1);
    DVT_RECORD {
        w->y = dvt_softmax(w->in[0], -1);
    }
    recorded(w, w->y);
}

static void prepare_layer_norm(work *w) {
    one_matrix(w);
    drawn(w, 1, w->row->dtype, DVT_SHAPE(w->row->n[1]));
    drawn(w, 2, w->row->dtype, DVT_SHAPE(w->row->n[1]));
}

static void run_layer_norm(work *w) {
    result(w, dvt_layer_norm(w->in[0], w->in[1], w->in[2], 1e-5));
}

static void prepare_layer_norm_gradient(work *w) {
    prepare_layer_norm(w);
    attach(w, 3);
    DVT_RECORD {
        w->y = dvt_layer_norm(w->in[0], w->in[1], w->in[2], 1e-5);
    }
    recorded(w, w->y);
}

/* Labels are class numbers. */
static void prepare_cross_entropy(work *w) {
    one_matrix(w);
    indices(w, 1, w->row->n[0], w->row->n[1]);
    attach(w, 1);
}

static void run_cross_entropy(work *w) {
    DVT_RECORD {
        w->y = dvt_loss_softmax_cross_entropy(w->in[0], w->in[1]);
    }
    result(w, w->y);
    must(dvt_backward(w->y) == DVT_OK, w->row->text);
    counted_bytes(w, w->in[0]);
}

/* ---- products: rows, columns, depth, whether each operand is transposed, and how float32 is
   multiplied: as float32, as TF32, as two parts of TF32 ---- */
static void prepare_product(work *w) {
    const int64_t *n = w->row->n;
    drawn(w, 0, w->row->dtype, n[3] ? DVT_SHAPE(n[2], n[0]) : DVT_SHAPE(n[0], n[2]));
    drawn(w, 1, w->row->dtype, n[4] ? DVT_SHAPE(n[1], n[2]) : DVT_SHAPE(n[2], n[1]));
    dvt_allow_tf32(n[5] == 1);
    dvt_allow_tf32x3(n[5] == 2);
    w->macs = (double)(n[0] * n[1] * n[2]);
}

static void run_product(work *w) {
    dvt_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.transpose_a = w->row->n[3] != 0;
    desc.transpose_b = w->row->n[4] != 0;
    result(w, dvt_matmul_with(w->in[0], w->in[1], &desc));
    dvt_allow_tf32(false);
}

/* ---- convolutions: batch, channels, extent, filters, size of a filter, stride; padded so that
   stride 1 keeps the extent, except filters of LeNet ---- */
static dvt_array *convolved(work *w) {
    const int64_t *n = w->row->n;
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    p.stride[0] = p.stride[1] = (int)n[5];
    p.padding[0] = p.padding[1] = n[1] >= 16 || n[5] > 1 ? (int)n[4] / 2 : 0;
    return dvt_conv2d(w->in[0], w->in[1], NULL, &p);
}

static void prepare_conv(work *w) {
    const int64_t *n = w->row->n;
    drawn(w, 0, w->row->dtype, DVT_SHAPE(n[0], n[1], n[2], n[2]));
    drawn(w, 1, w->row->dtype, DVT_SHAPE(n[3], n[1], n[4], n[4]));
}

static void conv_macs(work *w, const dvt_array *y) {
    w->macs = (double)(dvt_size(y) * w->row->n[1] * w->row->n[4] * w->row->n[4]);
}

static void run_conv(work *w) {
    dvt_array *y = convolved(w);
    result(w, y);
    conv_macs(w, y);
}

static void prepare_conv_gradient(work *w) {
    prepare_conv(w);
    attach(w, 2);
    DVT_RECORD {
        w->y = convolved(w);
    }
    recorded(w, w->y);
    conv_macs(w, w->y);
}

static dvt_array *pooled(work *w) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = p.size[1] = (int)w->row->n[3];
    return w->row->n[4] ? dvt_avg_pool2d(w->in[0], &p) : dvt_max_pool2d(w->in[0], &p);
}

static void prepare_pool(work *w) {
    const int64_t *n = w->row->n;
    drawn(w, 0, w->row->dtype, DVT_SHAPE(n[0], n[1], n[2], n[2]));
}

static void run_pool(work *w) {
    result(w, pooled(w));
}

static void prepare_pool_gradient(work *w) {
    prepare_pool(w);
    attach(w, 1);
    DVT_RECORD {
        w->y = pooled(w);
    }
    recorded(w, w->y);
}

/* ---- indices, order, random numbers, optimizers ---- */
static void prepare_take(work *w) {
    drawn(w, 0, w->row->dtype, DVT_SHAPE(w->row->n[0], w->row->n[1]));
    w->bytes = 0; /* as many rows are read as written */
    indices(w, 1, w->row->n[2], w->row->n[0]);
}

static void run_take(work *w) {
    dvt_array *y = dvt_take(w->in[0], w->in[1], 0);
    result(w, y);
    counted_bytes(w, y);
}

static void prepare_embedding_gradient(work *w) {
    prepare_take(w);
    attach(w, 1);
    DVT_RECORD {
        w->y = dvt_take(w->in[0], w->in[1], 0);
    }
    recorded(w, w->y);
}

static void run_sort(work *w) {
    result(w, dvt_sort(w->in[0], -1, DVT_ASCENDING));
}

static void run_cumsum(work *w) {
    result(w, dvt_cumsum(w->in[0], (int)w->row->n[2]));
}

static void run_uniform(work *w) {
    result(w, dvt_uniform(0, 1, DVT_SHAPE(w->row->n[0]), DVT_F32, dvt_gpu(0)));
}

static void run_normal(work *w) {
    result(w, dvt_normal(0, 1, DVT_SHAPE(w->row->n[0]), DVT_F32, dvt_gpu(0)));
}

static void nothing(work *w) {
    (void)w;
}

/* A dense layer's weight; n[2]: the optimizer, as SGD with momentum or Adam. */
static void prepare_step(work *w) {
    const int64_t *n = w->row->n;
    dvt_block *net = dvt_nn_dense_with(&(dvt_nn_dense_desc){.units = n[0], .in_units = n[1]});
    dvt_optimizer optimizer = dvt_optimizer_adam(1e-3);
    dvt_array *y = NULL;
    int step;
    if (!n[2]) {
        optimizer = dvt_optimizer_sgd(0.1);
        optimizer.momentum = 0.9;
    }
    must(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_gpu(0))) == DVT_OK,
         w->row->text);
    w->trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    for (step = 0; step < 2; step++) { /* the first step also fills the optimizer's state */
        DVT_RECORD {
            y = dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, n[1]), DVT_F32, dvt_gpu(0)));
        }
        must(w->trainer && dvt_backward(y) == DVT_OK, w->row->text);
        must(step == 1 || dvt_trainer_step(w->trainer, 1) == DVT_OK, w->row->text);
    }
    /* gradient read; weight and state read and written */
    w->bytes = 4.0 * (double)(n[0] * n[1] + n[0]) * (n[2] ? 7 : 5);
}

static void run_step(work *w) {
    must(dvt_trainer_step(w->trainer, 1) == DVT_OK, w->row->text);
}
