/* Calls that together request the programs of every family: operations by dtypes, layouts, sizes
   and alignments, where these select a program. Arrays are small, because cpu() computes them
   too. */
static dvt_array *filled(dvt_shape shape, dvt_dtype dtype) {
    return dvt_full(shape, 1, dtype, dvt_cpu());
}

static const dvt_dtype floats[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};

static void fills(void) {
    int dtype;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        filled(DVT_SHAPE(3), (dvt_dtype)dtype);
    dvt_arange(0, 5, 1, DVT_F32, dvt_cpu());
    dvt_eye(3, 3, 0, DVT_F32, dvt_cpu());
}

/* ---- elementwise ---- */
typedef struct unary_row {
    dvt_array *(*call)(dvt_array *);
    bool numbers;      /* of integers as well */
    const char *files; /* of 2_core/math that float32's function has; or NULL */
} unary_row;

typedef struct binary_row {
    dvt_array *(*call)(dvt_array *, dvt_array *);
    bool numbers;
    const char *files;
} binary_row;

#define INTEGERS_SAME true
#define INTEGERS_NOBOOL true
#define INTEGERS_BOOL true
#define INTEGERS_FLOAT false
#define ROW(name, rule, cost, f, i, vector, math, ...) {dvt_##name, INTEGERS_##rule, math},
static const unary_row unary_rows[] = {DVTI_UNARY_TABLE(ROW)};
#undef ROW
#define ROW(name, rule, cost, f, i, vector, math, ...) {dvt_##name, INTEGERS_##rule, math},
static const binary_row binary_rows[] = {DVTI_BINARY_TABLE(ROW)};
#undef ROW

/* Calls every fourth row in float32; --full: all rows in every dtype. */
static void rows(void) {
    int i, dtype, step = full ? 1 : 4;
    for (dtype = 0; dtype < (full ? DVT_BOOL : 1); dtype++)
        DVT_SCOPE {
            dvt_array *x = filled(DVT_SHAPE(64), (dvt_dtype)dtype);
            bool integer = !dvt_dtype_is_float((dvt_dtype)dtype);
            for (i = 0; i < DVTI_LENGTH(unary_rows); i += step)
                if (unary_rows[i].numbers || !integer)
                    unary_rows[i].call(x);
            for (i = 0; i < DVTI_LENGTH(binary_rows); i += step)
                if (binary_rows[i].numbers || !integer)
                    binary_rows[i].call(x, x);
        }
}

/* Calls operations that use our own float functions (2_core/math): every second; --full: all. */
static void functions(dvt_dtype dtype) {
    dvt_array *x = filled(DVT_SHAPE(64), dtype);
    int i, step = full ? 1 : 2;
    for (i = 0; i < DVTI_LENGTH(unary_rows); i += step)
        if (unary_rows[i].files)
            unary_rows[i].call(x);
    for (i = 0; i < DVTI_LENGTH(binary_rows); i++)
        if (binary_rows[i].files)
            binary_rows[i].call(x, x);
    dvt_softmax(x, 0);
    dvt_logsumexp(x, DVT_AXES(0));
    dvt_normal(0, 1, DVT_SHAPE(64), dtype, dvt_cpu());
}

static void layouts(dvt_dtype dtype) {
    dvt_array *x = filled(DVT_SHAPE(64, 64), dtype), *y = dvt_slice(x, 1, 1, 63, 2);
    dvt_add(x, x);
    dvt_add(y, y);
    dvt_add(x, dvt_t(x));
    dvt_add(dvt_t(x), dvt_slice(x, 0, -1, DVT_END, -1));
    dvt_contiguous(dvt_t(x));
    dvt_where(dvt_t(filled(DVT_SHAPE(64, 64), DVT_BOOL)), dvt_t(x), x);
    dvt_where(filled(DVT_SHAPE(64, 64), DVT_BOOL), x, x);
    dvt_clip(x, 0, 1);
}

static void mixtures(void) {
    dvt_array *x = filled(DVT_SHAPE(64, 64), DVT_F32), *i = filled(DVT_SHAPE(64, 64), DVT_I32);
    int a, b;
    dvt_mul(x, filled(DVT_SHAPE(64), DVT_BF16));
    dvt_mul(dvt_t(x), filled(DVT_SHAPE(64), DVT_BF16));
    dvt_mul(i, filled(DVT_SHAPE(64), DVT_U8));
    dvt_mul(filled(DVT_SHAPE(64), DVT_F64), x);
    dvt_pow(i, filled(DVT_SHAPE(64), DVT_F32));
    dvt_where(x, i, x);
    for (a = 0; a < DVT_DTYPE_COUNT; a++)
        for (b = 0; b < DVT_DTYPE_COUNT; b++)
            if (full || (a + 2 * b) % 9 == 0)
                dvt_astype(filled(DVT_SHAPE(64), (dvt_dtype)a), (dvt_dtype)b);
}

static void elementwise(void) {
    rows();
    far_apart = full;
    layouts(DVT_F32);
    layouts(DVT_BF16);
    layouts(DVT_I8);
    if (full)
        layouts(DVT_F64);
    far_apart = false;
    mixtures();
}

/* Without CUDA's own functions, whose instructions are not ours. */
static double any_value(void *user, const double *value) {
    (void)user;
    return value[0];
}

static void expressions(dvt_dtype dtype) {
    dvt_kernel *kernel = dvt_kernel_expression("x, y, s", "x * y + s");
    dvt_array *x = filled(DVT_SHAPE(64, 64), dtype);
    dvt_kernel_set_element(kernel, any_value, NULL);
    dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(x), DVT_DOUBLE(2)));
    dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(dvt_t(x)), DVT_INT32(2)));
}

/* ---- along axes ---- */
static void reductions(dvt_dtype dtype) {
    dvt_array *x = filled(DVT_SHAPE(8, 600, 5), dtype);
    dvt_array *one = filled(DVT_SHAPE(200000), dtype);
    dvt_sum(x, DVT_AXES(1));
    dvt_sum(x, DVT_AXES(2));
    dvt_sum(x, DVT_AXES(0, 2));
    dvt_sum(one, DVT_ALL);
    dvt_mean(x, DVT_KEEPDIMS(-1));
    dvt_prod(x, DVT_AXES(1));
    dvt_max(x, DVT_AXES(0));
    dvt_min(one, DVT_ALL);
    dvt_any(x, DVT_AXES(1));
    dvt_norm(x, DVT_AXES(1));
    dvt_logsumexp(x, DVT_AXES(1));
    dvt_argmax(x, DVT_AXES(1));
    dvt_argmin(one, DVT_AXES(0));
}

static void scans(dvt_dtype dtype) {
    dvt_cumsum(filled(DVT_SHAPE(2, 5000), dtype), 1);
    dvt_cumsum(filled(DVT_SHAPE(600, 3), dtype), 0);
}

static void sorts(dvt_dtype dtype) {
    dvt_array *x = filled(DVT_SHAPE(2, 2100), dtype);
    dvt_sort(x, 1, DVT_ASCENDING);
    dvt_argsort(x, 1, DVT_ASCENDING);
    dvt_sort(x, 0, DVT_ASCENDING);
    dvt_topk(x, 3, 1, DVT_LARGEST, NULL);
}

static void softmaxes(dvt_dtype dtype) {
    dvt_softmax(filled(DVT_SHAPE(7, 10), dtype), 1);
    dvt_softmax(filled(DVT_SHAPE(3, 3000), dtype), 1);
    dvt_log_softmax(filled(DVT_SHAPE(2, 40000), dtype), 1);
    dvt_log_softmax(dvt_broadcast_to(filled(DVT_SHAPE(1, 17000), dtype), DVT_SHAPE(512, 17000)), 1);
    dvt_log_softmax(filled(DVT_SHAPE(4, 5, 6), dtype), 1);
}

/* Computes the result and all gradients. */
static void with_gradients(dvt_array *(*f)(dvt_array *x, dvt_array *w), dvt_array *x,
                           dvt_array *w) {
    dvt_array *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    if (w)
        dvt_attach_grad(w, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = f(x, w);
    }
    dvt_backward(y);
}

static dvt_array *layer_norms(dvt_array *x, dvt_array *w) {
    return dvt_layer_norm(x, w, w, 1e-5);
}

static dvt_array *rms_norms(dvt_array *x, dvt_array *w) {
    return dvt_rms_norm(x, w, 1e-5);
}

/* Runs both modes: the second has no statistics of its own. */
static dvt_array *batch_norms(dvt_array *x, dvt_array *w) {
    const dvt_dtype dtype = dvt_dtype_of(x) == DVT_F64 ? DVT_F64 : DVT_F32;
    dvt_array *mean = filled(dvt_shape_of(w), dtype), *var = filled(dvt_shape_of(w), dtype);
    dvt_array *y = dvt_batch_norm(x, w, w, mean, var, 1, 0.9, 1e-5);
    DVT_TRAIN_MODE {
        y = dvt_batch_norm(x, w, w, mean, var, 1, 0.9, 1e-5);
    }
    return y;
}

/* Rows of a few lanes, of a block and beyond registers, aligned and not. */
static void norms(dvt_dtype dtype) {
    static const int64_t lengths[] = {30, 64, 1000, 9000};
    int i;
    for (i = 0; i < DVTI_LENGTH(lengths); i++) {
        const dvt_shape shape = DVT_SHAPE(2, lengths[i]), row = DVT_SHAPE(lengths[i]);
        with_gradients(layer_norms, filled(shape, dtype), filled(row, dtype));
        if (full)
            with_gradients(rms_norms, filled(shape, dtype), filled(row, DVT_F32));
    }
    with_gradients(rms_norms, filled(DVT_SHAPE(2, 64), dtype), filled(DVT_SHAPE(64), dtype));
    with_gradients(layer_norms, filled(DVT_SHAPE(600, 3), dtype), filled(DVT_SHAPE(3), dtype));
    with_gradients(batch_norms, filled(DVT_SHAPE(2, 3, 4), dtype), filled(DVT_SHAPE(3), dtype));
}

/* Positions of 64 bits, which rows and channels of 2^30 elements have. */
static void wide_norms(void) {
    uint64_t step, gradient;
    for (gradient = 0; gradient < 2 && full; gradient++)
        compile_program(DVTI_CUDA_PROGRAM(layer_norm),
                        16 << 12 | 2 << 18 | 1 << 20 | 1 << 22 | gradient << 23, "dvti_layer_norm",
                        sizeof(dvti_klayer_norm));
    for (step = 0; step < 4 && full; step++)
        compile_program(DVTI_CUDA_PROGRAM(batch_norm), 1 << 12 | step << 14, "dvti_batch_norm",
                        sizeof(dvti_kbatch_norm));
}

/* ---- products ---- */
static void products(dvt_dtype dtype) {
    static const int64_t sizes[][3] = {{1, 64, 64},  {64, 1, 64},     {5, 7, 3},
                                       {64, 64, 64}, {128, 128, 256}, {300, 200, 70}};
    int i;
    for (i = 0; i < DVTI_LENGTH(sizes); i++) {
        dvt_array *a = filled(DVT_SHAPE(sizes[i][0], sizes[i][1]), dtype);
        dvt_array *b = filled(DVT_SHAPE(sizes[i][1], sizes[i][2]), dtype);
        dvt_matmul(a, b);
        dvt_matmul(dvt_t(dvt_contiguous(dvt_t(a))), b);
        dvt_matmul(a, dvt_t(dvt_contiguous(dvt_t(b))));
    }
    dvt_matmul(filled(DVT_SHAPE(3, 8, 9), dtype), filled(DVT_SHAPE(9, 4), dtype));
}

/* Returns zeros without a kernel; at most 32768 elements. */
static dvt_array *given(dvt_shape shape, dvt_dtype dtype) {
    static const double zeros[32768]; /* as large as those elements of any dtype */
    return dvt_from_host(zeros, shape, dtype, dvt_cpu());
}

/* A product with a tile of 128x256 (wide) or 128x128 for each of 132 multiprocessors. */
static void large_product(dvt_dtype dtype, bool wide, bool a_across_k, bool b_along_k) {
    const int64_t n = 1408, k = 8, m = wide ? 3072 : 1536;
    dvt_matmul(a_across_k ? dvt_t(given(DVT_SHAPE(k, n), dtype)) : given(DVT_SHAPE(n, k), dtype),
               b_along_k ? dvt_t(given(DVT_SHAPE(m, k), dtype)) : given(DVT_SHAPE(k, m), dtype));
}

static void large_products(dvt_dtype dtype) {
    int layout;
    for (layout = 0; layout < 4; layout++) {
        large_product(dtype, layout % 2, layout & 1, layout >> 1);
        if (full)
            large_product(dtype, !(layout % 2), layout & 1, layout >> 1);
    }
}

/* Products that wgmma computes from copies of the operands: float32 as two TF32 numbers per element
   and as one, float16 at any alignment. With four multiprocessors, small products are worth the
   copies. */
static void copied_product(dvt_dtype dtype, int64_t n, int64_t k, int64_t m) {
    dvt_matmul(given(DVT_SHAPE(n, k), dtype), given(DVT_SHAPE(k, m), dtype));
}

static void copied_products(void) {
    int i;
    for (i = 0; i < n_gpus; i++)
        gpus[i].physical.processors = 4;
    copied_product(DVT_F16, 500, 65, 501);
    dvt_allow_tf32x3(true);
    copied_product(DVT_F32, 500, 65, 500);
    dvt_allow_tf32(true);
    copied_product(DVT_F32, 500, 65, 501);
    if (full)
        copied_product(DVT_F32, 120, 250, 127);
    dvt_allow_tf32(false);
    dvt_allow_tf32x3(false);
    for (i = 0; i < n_gpus; i++)
        gpus[i].physical.processors = 132;
}

static dvt_array *plain_conv(dvt_array *x, dvt_array *w) {
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    p.padding[0] = 1;
    return dvt_conv2d(x, w, NULL, &p);
}

static dvt_array *strided_conv(dvt_array *x, dvt_array *w) {
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    p.stride[0] = 2;
    p.groups = 2;
    return dvt_conv2d(x, w, filled(DVT_SHAPE(dvt_shape_of(w).dim[0]), dvt_dtype_of(w)), &p);
}

static void convolutions(dvt_dtype dtype) {
    with_gradients(plain_conv, filled(DVT_SHAPE(2, 3, 9, 9), dtype),
                   filled(DVT_SHAPE(4, 3, 3, 3), dtype));
    with_gradients(plain_conv, filled(DVT_SHAPE(2, 16, 16, 16), dtype),
                   filled(DVT_SHAPE(32, 16, 3, 3), dtype));
    with_gradients(plain_conv, filled(DVT_SHAPE(2, 16, 8, 8), dtype),
                   filled(DVT_SHAPE(8, 16, 1, 1), dtype));
    with_gradients(strided_conv, filled(DVT_SHAPE(2, 4, 9, 9), dtype),
                   filled(DVT_SHAPE(6, 2, 3, 3), dtype));
}

static dvt_array *pools(dvt_array *x, dvt_array *w) {
    dvt_pool2d_options p;
    (void)w;
    memset(&p, 0, sizeof p);
    p.size[0] = 3;
    p.stride[0] = 2;
    return dvt_add(dvt_max_pool2d(x, &p), dvt_avg_pool2d(x, &p));
}

static void poolings(dvt_dtype dtype) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    with_gradients(pools, filled(DVT_SHAPE(2, 3, 9, 9), dtype), NULL);
    dvt_max_pool2d(filled(DVT_SHAPE(2, 3, 8, 8), dtype), &p);
    p.global = true;
    dvt_avg_pool2d(filled(DVT_SHAPE(2, 3, 8, 8), dtype), &p);
}

/* ---- indexing ---- */
static dvt_array *taken(dvt_array *x, dvt_array *w) {
    dvt_array *index = dvt_zeros(DVT_SHAPE(6), DVT_I64, dvt_cpu());
    (void)w;
    return dvt_take(x, index, 1);
}

static dvt_array *taken_along(dvt_array *x, dvt_array *w) {
    dvt_array *index = dvt_zeros(DVT_SHAPE(5, 6), DVT_I64, dvt_cpu());
    (void)w;
    return dvt_take_along_axis(x, index, 1);
}

static void indices(dvt_dtype dtype) {
    dvt_array *x = filled(DVT_SHAPE(5, 7), dtype);
    if (dvt_dtype_is_float(dtype)) {
        with_gradients(taken, x, NULL);
        with_gradients(taken_along, filled(DVT_SHAPE(5, 7), dtype), NULL);
    } else {
        taken(x, NULL);
        taken_along(x, NULL);
    }
    dvt_one_hot(dvt_zeros(DVT_SHAPE(6), DVT_I64, dvt_cpu()), 4, dtype);
}

/* ---- random numbers ---- */
static void random_numbers(void) {
    int i;
    for (i = 0; i < 4; i++) {
        dvt_uniform(0, 1, DVT_SHAPE(100), floats[i], dvt_cpu());
        dvt_normal(0, 1, DVT_SHAPE(100), floats[i], dvt_cpu());
    }
    dvt_randint(0, 10, DVT_SHAPE(100), DVT_I32, dvt_cpu());
    dvt_randint(0, 10, DVT_SHAPE(100), DVT_I64, dvt_cpu());
    dvt_bernoulli(0.5, DVT_SHAPE(100), DVT_F32, dvt_cpu());
    dvt_bernoulli(0.5, DVT_SHAPE(100), DVT_BOOL, dvt_cpu());
    dvt_permutation(100, dvt_cpu());
    dvt_permutation(10000, dvt_cpu());
}

static void keyed_numbers(void) {
    dvt_key key = dvt_key_new(3);
    int i;
    for (i = 0; i < 4; i++) {
        dvt_key_uniform(key, 0, 1, DVT_SHAPE(100), floats[i], dvt_cpu());
        dvt_key_normal(key, 0, 1, DVT_SHAPE(100), floats[i], dvt_cpu());
    }
    dvt_key_randint(key, 0, 9, DVT_SHAPE(100), DVT_I64, dvt_cpu());
    dvt_key_randint(key, 0, 9, DVT_SHAPE(100), DVT_I32, dvt_cpu());
    dvt_key_bernoulli(key, 0.5, DVT_SHAPE(100), DVT_F32, dvt_cpu());
    dvt_key_permutation(key, 100, dvt_cpu());
}

/* ---- optimizers ---- */
static void train(dvt_optimizer optimizer, dvt_dtype dtype) {
    dvt_block *net = dvt_nn_dense(4, DVT_IDENTITY);
    dvt_array *y = NULL, *x = filled(DVT_SHAPE(2, 3), dtype);
    dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu()));
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    dvt_backward(y);
    dvt_trainer_step(dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer), 2);
}

static void optimizers(void) {
    dvt_optimizer optimizer = dvt_optimizer_sgd(0.1), centered = dvt_optimizer_rmsprop(0.1);
    train(optimizer, DVT_F32);
    optimizer.momentum = 0.9;
    train(optimizer, DVT_F32);
    optimizer.nesterov = true;
    train(optimizer, DVT_F32);
    train(dvt_optimizer_adam(0.1), DVT_F32);
    train(dvt_optimizer_adamw(0.1, 0.1), DVT_F32);
    train(dvt_optimizer_rmsprop(0.1), DVT_F32);
    centered.centered = true;
    train(centered, DVT_F32);
    train(dvt_optimizer_adagrad(0.1), DVT_F32);
}

static void sums_over_devices(void) {
    int dtype;
    for (dtype = 0; dtype < (full ? DVT_BOOL : DVT_BF16); dtype++) {
        compile_program(DVTI_CUDA_PROGRAM(all_reduce), (uint64_t)dtype, "dvti_all_sum",
                        sizeof(dvti_kall));
        compile_program(DVTI_CUDA_PROGRAM(all_reduce), (uint64_t)dtype, "dvti_all_gather",
                        sizeof(dvti_kall));
    }
}

static void of_tensor_cores(dvt_dtype dtype) {
    dvt_matmul(given(DVT_SHAPE(128, 128), dtype), given(DVT_SHAPE(128, 256), dtype));
    plain_conv(given(DVT_SHAPE(2, 16, 16, 16), dtype), given(DVT_SHAPE(32, 16, 3, 3), dtype));
}

/* float32 rounded to TF32: the tiles of mma.sync, also at the sizes that 9.0 leaves to wgmma. */
static void tf32_products(void) {
    dvt_allow_tf32(true);
    of_tensor_cores(DVT_F32);
    large_product(DVT_F32, true, false, false);
    if (full) {
        products(DVT_F32);
        convolutions(DVT_F32);
        large_products(DVT_F32);
    }
    dvt_allow_tf32(false);
}

/* ---- all subjects ---- */
static bool wanted(const char *subject) {
    return !only || strcmp(only, subject) == 0;
}

static void by_dtype(const char *subject, void (*call)(dvt_dtype dtype), const dvt_dtype *dtypes,
                     int n) {
    int i;
    for (i = 0; i < n && wanted(subject); i++)
        DVT_SCOPE {
            call(dtypes[i]);
        }
}

/* Runs a subject by dtype, also with views of more than 2^31 elements. */
static void by_dtype_far(const char *subject, void (*call)(dvt_dtype dtype),
                         const dvt_dtype *dtypes, int n) {
    far_apart = full;
    by_dtype(subject, call, dtypes, n);
    far_apart = false;
}

static void once(const char *subject, void (*call)(void)) {
    if (wanted(subject))
        DVT_SCOPE {
            call();
        }
}

static void compute_some(void) {
    static const dvt_dtype others[] = {DVT_I32, DVT_I64, DVT_U8, DVT_BOOL};
    static const dvt_dtype tensor_core[] = {DVT_F32, DVT_F16, DVT_F64, DVT_BF16};
    static const dvt_dtype small_floats[] = {DVT_F16, DVT_BF16};
    static const dvt_dtype own_functions[] = {DVT_F32, DVT_F16, DVT_BF16};
    int n = full ? 4 : 1, products_of = full ? 4 : 2;
    once("fill", fills);
    once("all_reduce", sums_over_devices);
    once("elementwise", elementwise);
    by_dtype("functions", functions, own_functions, full ? 3 : 1);
    by_dtype("matmul", products, tensor_core, products_of);
    by_dtype("matmul", products, others, n);
    by_dtype("matmul", large_products, small_floats, full ? 2 : 1);
    once("matmul", copied_products);
    once("matmul", tf32_products);
    by_dtype("conv", convolutions, tensor_core, products_of);
    by_dtype_far("reduce", reductions, floats, n);
    by_dtype_far("reduce", reductions, others, n);
    by_dtype_far("softmax", softmaxes, floats, n);
    by_dtype("expressions", expressions, floats, n);
    by_dtype("expressions", expressions, others, n);
    by_dtype("norms", norms, floats, n);
    once("norms", wide_norms);
    by_dtype("order", sorts, floats, n);
    by_dtype("order", sorts, others, n);
    by_dtype("scan", scans, floats, n);
    by_dtype("scan", scans, others, n);
    by_dtype("pool", poolings, floats, n);
    by_dtype("index", indices, floats, n);
    by_dtype("index", indices, others, n);
    once("random", random_numbers);
    dvt_set_rng_engine(DVT_RNG_JAX);
    once("random", keyed_numbers);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    once("optimizer", optimizers);
}

/* ---- the families, each once ---- */

static void every_family(void) {
    dvt_array *x = given(DVT_SHAPE(64, 64), DVT_F32);
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    filled(DVT_SHAPE(64, 64), DVT_F32);
    dvt_add(x, x);
    dvt_sum(x, DVT_AXES(1));
    dvt_softmax(x, 1);
    dvt_layer_norm(x, NULL, NULL, 1e-5);
    batch_norms(x, given(DVT_SHAPE(64), DVT_F32));
    dvt_cumsum(x, 1);
    dvt_sort(x, 1, DVT_ASCENDING);
    of_tensor_cores(DVT_F32); /* whose tiles are float32 sums */
    of_tensor_cores(DVT_F16);
    large_product(DVT_F16, true, false, false);
    tf32_products();
    dvt_max_pool2d(given(DVT_SHAPE(2, 3, 8, 8), DVT_F32), &p);
    expressions(DVT_F32);
    dvti_take_add(x, given(DVT_SHAPE(64), DVT_I64), 0, 10); /* index, sort */
    dvt_uniform(0, 1, DVT_SHAPE(64), DVT_F32, dvt_cpu());
    dvti_warm_step("compile_all", dvt_cpu(), DVTI_OP_sgd, 0, 0);
    compile_program(DVTI_CUDA_PROGRAM(all_reduce), DVT_F32, "dvti_all_sum", sizeof(dvti_kall));
}

static void three_operations(void) {
    dvt_array *x = given(DVT_SHAPE(64, 64), DVT_F32);
    dvt_sum(dvt_matmul(dvt_add(x, x), x), DVT_AXES(1));
}

static void prewarm(void) {
    dvti_warm_all("compile_all", dvt_cpu());
}

static void compute_everything(void) {
    switch (selected) {
    case BASE:
        once("base", every_family);
        break;
    case THREE:
        once("three", three_operations);
        break;
    case PREWARM:
        once("prewarm", prewarm);
        break;
    case SOME:
    case FULL:
        compute_some();
        break;
    }
}
