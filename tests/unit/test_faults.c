/* Each allocation fails once: creation, operations of every family, copies, random numbers,
   printing, files, gradients. */
#include "dvt_faults.h"
#include "matmul_forms.h"
#include <unistd.h>

static dvt_array *small(dvt_ctx ctx) {
    return DVT_ARRAY(float, DVT_SHAPE(2, 3), ctx, 1, 2, 3, 4, 5, 6);
}

DVT_FAULTS(creation) {
    dvt_ctx cpu = dvt_cpu();
    FAULTS_ADD(dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, cpu));
    FAULTS_ADD(dvt_full(DVT_SHAPE(4), 7, DVT_F16, cpu));
    FAULTS_ADD(dvt_ones_like(dvt_scalar(1, DVT_F64, cpu)));
    FAULTS_ADD(dvt_eye(3, 3, 0, DVT_I32, cpu));
    FAULTS_ADD(dvt_arange(0, 5, 1, DVT_I64, cpu));
    FAULTS_ADD(dvt_arange(0, 5, 0.5, DVT_I32, cpu)); /* through float64 */
    FAULTS_ADD(dvt_linspace(0, 1, 7, DVT_BF16, cpu));
    FAULTS_ADD(small(cpu));
}

DVT_FAULTS(views) {
    dvt_array *x = small(dvt_cpu()), *part[2] = {NULL, NULL};
    FAULTS_ADD(dvt_slice(x, 1, -1, DVT_END, -1));
    FAULTS_ADD(dvt_index(dvt_rows(x, 0, 2), 1));
    FAULTS_ADD(dvt_reshape(dvt_t(x), DVT_SHAPE(6))); /* copies */
    FAULTS_ADD(dvt_transpose(x, DVT_AXES(1, 0)));
    FAULTS_ADD(dvt_squeeze(dvt_expand_dims(x, 1), DVT_ALL));
    FAULTS_ADD(dvt_broadcast_to(x, DVT_SHAPE(2, 2, 3)));
    FAULTS_ADD(dvt_contiguous(dvt_swapaxes(x, 0, 1)));
    FAULTS_ADD(dvt_flatten(x));
    FAULTS_OK(dvt_split(x, 2, 0, part));
    FAULTS_ADD(part[0]);
    FAULTS_ADD(part[1]);
}

DVT_FAULTS(copies) {
    dvt_array *x = small(dvt_cpu());
    float values[6] = {6, 5, 4, 3, 2, 1};
    FAULTS_ADD(dvt_copy(x));
    FAULTS_ADD(dvt_astype(x, DVT_I8));
    FAULTS_ADD(dvt_copyto(dvt_t(x), dvt_cpu_id(1)));
    FAULTS_INTO(x, dvt_copy_into(x, dvt_ones(DVT_SHAPE(2, 3), DVT_I32, dvt_cpu())));
    FAULTS_INTO(x, dvt_copy_into(x, dvt_slice(x, 1, -1, DVT_END, -1))); /* overlap */
    FAULTS_INTO(x, dvt_set_from_host(x, values, sizeof values) == DVT_OK);
    FAULTS_INTO(x, dvt_set_from_host(dvt_t(x), values, sizeof values) == DVT_OK);
    FAULTS_INTO(x, dvt_fill(x, 3));
    FAULTS_TRUE(dvt_item_at(x, DVT_SHAPE(1, 1)) == 3);
}

/* A recorded copy is both written and recorded, or neither. */
DVT_FAULTS(recorded_copies) {
    dvt_array *x = small(dvt_cpu()), *dst = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *transposed = dvt_zeros(DVT_SHAPE(3, 2), DVT_F64, dvt_cpu()), *loss = NULL;
    FAULTS_OK(dvt_attach_grad(x, DVT_GRAD_WRITE));
    DVT_RECORD {
        dvt_array *y = dvt_exp(x);
        FAULTS_INTO(dst, dvt_copy_into(dst, y));
        FAULTS_INTO(transposed, dvt_copy_into(transposed, dvt_t(y)));
        loss = dvt_add(dvt_sum(dst, DVT_ALL), dvt_sum(transposed, DVT_ALL));
    }
    FAULTS_OK(dvt_backward(loss));
    if (!run->failed)
        FAULTS_ADD(dvt_grad(x));
}

DVT_FAULTS(elementwise) {
    dvt_array *x = small(dvt_cpu()), *row = dvt_arange(1, 4, 1, DVT_I32, dvt_cpu());
    FAULTS_ADD(dvt_add(x, row));
    FAULTS_ADD(dvt_exp(dvt_neg(x)));
    FAULTS_ADD(dvt_scalar_div(1, row));
    FAULTS_ADD(dvt_greater_scalar(x, 2));
    FAULTS_ADD(dvt_where(dvt_greater(x, row), x, dvt_zeros_like(x)));
    FAULTS_ADD(dvt_clip(x, 2, 4));
    FAULTS_INTO(x, dvt_add_(x, row));
    FAULTS_INTO(x, dvt_mul_(x, dvt_broadcast_to(dvt_rows(x, 0, 1), DVT_SHAPE(2, 3)))); /* overlap */
    FAULTS_INTO(x, dvt_sqrt_(x));
    FAULTS_INTO(x, dvt_clip_(x, 0, 2));
}

DVT_FAULTS(reductions) {
    dvt_array *x = small(dvt_cpu());
    FAULTS_ADD(dvt_sum(x, DVT_ALL));
    FAULTS_ADD(dvt_mean(x, DVT_KEEPDIMS(0)));
    FAULTS_ADD(dvt_var(x, DVT_AXES(1), 1));
    FAULTS_ADD(dvt_std(x, DVT_ALL, 0));
    FAULTS_ADD(dvt_prod(dvt_t(x), DVT_AXES(0)));
    FAULTS_ADD(dvt_max(x, DVT_AXES(-1)));
    FAULTS_ADD(dvt_argmax(x, DVT_AXES(1)));
    FAULTS_ADD(dvt_argmin(x, dvt_keepdims(DVT_ALL)));
    FAULTS_ADD(dvt_any(x, DVT_ALL));
    FAULTS_ADD(dvt_norm(x, DVT_ALL));
    FAULTS_ADD(dvt_logsumexp(x, DVT_AXES(1)));
    FAULTS_ADD(dvt_cumsum(dvt_t(x), 1));
    FAULTS_ADD(dvt_cumsum(dvt_ones(DVT_SHAPE(9000), DVT_F32, dvt_cpu()), 0)); /* has a workspace */
    FAULTS_ADD(dvt_softmax(x, 0));
    FAULTS_ADD(dvt_log_softmax(x, 1));
}

DVT_FAULTS(products) {
    dvt_array *x = small(dvt_cpu()), *big = dvt_ones(DVT_SHAPE(3, 40, 30), DVT_F32, dvt_cpu());
    FAULTS_ADD(dvt_matmul(x, dvt_t(x)));
    FAULTS_ADD(matmul_t(x, x, true, false));
    FAULTS_ADD(dvt_matmul(big, dvt_ones(DVT_SHAPE(30, 20), DVT_F32, dvt_cpu())));
    FAULTS_ADD(dvt_dot(dvt_index(x, 0), dvt_index(x, 1)));
    FAULTS_ADD(dvt_dot(x, dvt_t(x)));
    FAULTS_ADD(dvt_linear(x, dvt_ones(DVT_SHAPE(4, 3), DVT_F32, dvt_cpu()),
                          dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu())));
}

DVT_FAULTS(indexing) {
    dvt_array *x = small(dvt_cpu()), *two[2];
    dvt_array *at = DVT_ARRAY(int64_t, DVT_SHAPE(2), dvt_cpu(), 1, 0), *first;
    dvt_array *big = dvt_ones(DVT_SHAPE(900), DVT_F32, dvt_cpu());
    two[0] = x;
    two[1] = dvt_astype(x, DVT_F64);
    FAULTS_ADD(dvt_concat(two, 2, 1));
    FAULTS_ADD(dvt_stack(two, 2, 0));
    FAULTS_ADD(dvt_take(x, dvt_astype(at, DVT_I32), 1));
    FAULTS_ADD(dvt_take_along_axis(x, dvt_reshape(at, DVT_SHAPE(2, 1)), 1));
    FAULTS_ADD(dvt_pick(x, at, DVT_AXES(1)));
    FAULTS_ADD(dvt_one_hot(at, 3, DVT_F32));
    FAULTS_ADD(dvt_sort(x, 0, DVT_ASCENDING));
    FAULTS_ADD(dvt_argsort(dvt_t(x), 1, DVT_DESCENDING));
    FAULTS_ADD(dvt_topk(dvt_t(x), 1, 1, DVT_LARGEST, NULL));
    FAULTS_ADD(dvt_topk(big, 100, 0, DVT_SMALLEST, &first)); /* has a workspace */
    FAULTS_ADD(first);
}

DVT_FAULTS(convolution) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_reshape(dvt_arange(0, 50, 1, DVT_F32, cpu), DVT_SHAPE(1, 2, 5, 5));
    dvt_conv2d_options p;
    dvt_pool2d_options pool;
    memset(&p, 0, sizeof p);
    memset(&pool, 0, sizeof pool);
    p.padding[0] = 1;
    pool.size[0] = 2;
    FAULTS_ADD(dvt_conv2d(x, dvt_ones(DVT_SHAPE(3, 2, 3, 3), DVT_F32, cpu),
                          dvt_ones(DVT_SHAPE(3), DVT_F32, cpu), &p));
    p.groups = 2;
    FAULTS_ADD(dvt_conv2d(dvt_transpose(x, DVT_AXES(0, 1, 3, 2)),
                          dvt_ones(DVT_SHAPE(4, 1, 3, 3), DVT_F32, cpu), NULL, &p));
    FAULTS_ADD(dvt_max_pool2d(x, &pool));
    FAULTS_ADD(dvt_avg_pool2d(x, &pool));
}

DVT_FAULTS(layers) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = small(cpu), *mean = dvt_zeros(DVT_SHAPE(3), DVT_F32, cpu);
    dvt_array *variance = dvt_ones(DVT_SHAPE(3), DVT_F32, cpu), *y = NULL;
    dvt_array *gamma = dvt_ones(DVT_SHAPE(3), DVT_F32, cpu);
    dvt_array *beta = dvt_zeros(DVT_SHAPE(3), DVT_F32, cpu);
    if (!x || !mean || !variance || !gamma || !beta) {
        run->failed = 1;
        return;
    }
    DVT_TRAIN_MODE {
        FAULTS_ADD(dvt_dropout(x, 0.5));
        y = FAULTS_ADD(dvt_batch_norm(x, gamma, beta, mean, variance, 1, 0.9, 1e-5));
        if (!y) { /* both running statistics change, or neither */
            CHECK(dvt_fault_look(mean) == dvt_fault_look(beta));
            CHECK(dvt_fault_look(variance) == dvt_fault_look(gamma));
        }
    }
    FAULTS_ADD(mean);
    FAULTS_ADD(variance);
    FAULTS_ADD(dvt_batch_norm(x, gamma, beta, mean, variance, 1, 0.9, 1e-5));
    FAULTS_ADD(dvt_layer_norm(x, gamma, beta, 1e-5));
}

DVT_FAULTS(random_numbers) {
    dvt_ctx cpu = dvt_cpu();
    dvt_key key = dvt_key_new(3);
    FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(5), DVT_F32, cpu));
    FAULTS_ADD(dvt_normal(0, 1, DVT_SHAPE(5), DVT_F64, dvt_cpu_id(2)));
    FAULTS_ADD(dvt_randint(0, 9, DVT_SHAPE(5), DVT_U8, cpu));
    FAULTS_ADD(dvt_bernoulli(0.5, DVT_SHAPE(5), DVT_BOOL, cpu));
    FAULTS_ADD(dvt_permutation(5, cpu));
    FAULTS_ADD(dvt_key_normal(key, 0, 1, DVT_SHAPE(5), DVT_F32, cpu));
}

DVT_FAULTS(random_jax) {
    dvt_set_rng_engine(DVT_RNG_JAX);
    FAULTS_ADD(dvt_key_permutation(dvt_key_new(1), 50, dvt_cpu())); /* sorts in a workspace */
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

DVT_FAULTS(random_mxnet) {
    dvt_set_rng_engine(DVT_RNG_MXNET);
    FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(300), DVT_F32, dvt_cpu()));
    FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(5), DVT_F32, dvt_cpu()));
    dvt_set_rng_engine(DVT_RNG_PHILOX);
}

static void format(dvt_fault_run *run, dvt_array *x, dvt_print_style style) {
    char text[400] = "";
    size_t length = 0;
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    options.style = style;
    FAULTS_TRUE(x); /* NULL is printed as "(null)" */
    FAULTS_OK(dvt_format(x, &options, text, sizeof text, &length));
    dvt_fault_bytes(run, text, strlen(text));
}

DVT_FAULTS(printing) {
    dvt_array *x = small(dvt_cpu());
    FILE *file = tmpfile();
    format(run, x, DVT_PRINT_MXNET);
    format(run, dvt_t(x), DVT_PRINT_NP);
    format(run, dvt_astype(x, DVT_I8), DVT_PRINT_STR);
    format(run, x, DVT_PRINT_TF);
    format(run, dvt_zeros(DVT_SHAPE(40, 50), DVT_F32, dvt_cpu()), DVT_PRINT_MXNET);
    if (file) {
        FAULTS_OK(x ? dvt_print_file(file, x) : DVT_ERR_NULL_ARGUMENT);
        fclose(file);
    }
}

/* Stores bytes, an IDX file of 2x3 elements, in one stored block of a .gz file. */
static size_t zipped(const unsigned char *bytes, size_t n, unsigned char *out) {
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1};
    uint32_t crc = 0xffffffffu;
    size_t at = sizeof head, i;
    int k;
    memcpy(out, head, sizeof head);
    out[at++] = (unsigned char)n;
    out[at++] = 0;
    out[at++] = (unsigned char)~n;
    out[at++] = 0xff;
    memcpy(out + at, bytes, n);
    at += n;
    for (i = 0; i < n; i++)
        for (crc ^= bytes[i], k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    for (k = 0; k < 4; k++)
        out[at++] = (unsigned char)(~crc >> 8 * k);
    for (k = 0; k < 4; k++)
        out[at++] = (unsigned char)(k ? 0 : n);
    return at;
}

DVT_FAULTS(reading_from_memory) {
    static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    static const char head[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '>f8', 'fortran_order': True, "
                               "'shape': (1, 1), }";
    char npy[136];
    unsigned char gz[64];
    FAULTS_ADD(dvt_read_idx(idx, sizeof idx, dvt_cpu()));
    FAULTS_ADD(dvt_read_idx(gz, zipped(idx, sizeof idx, gz), dvt_cpu_id(1)));
    memset(npy, ' ', sizeof npy);
    memcpy(npy, head, sizeof head - 1);
    memcpy(npy + 127, "\n\x3f\xf8\0\0\0\0\0", 9);
    FAULTS_ADD(dvt_read_npy(npy, sizeof npy, dvt_cpu()));
}

#if !defined(DEVTENSOR_NO_FILES)
static const char *path_of(const char *name) {
    static char path[300];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/dvt-faults-%ld-%s", base && base[0] ? base : "/tmp",
             (long)getpid(), name);
    return path;
}

DVT_FAULTS(files) {
    dvt_array *x = small(dvt_cpu()), *pair[2];
    static const char *const names[] = {"one", "two"};
    dvt_array_list *list;
    pair[0] = x;
    pair[1] = dvt_t(x);
    FAULTS_OK(dvt_save_npy(path_of("x.npy"), dvt_t(x)));
    if (!run->failed)
        FAULTS_ADD(dvt_load_npy(path_of("x.npy"), dvt_cpu()));
    FAULTS_OK(dvt_save_params(path_of("x.params"), pair, names, 2));
    if (!run->failed) {
        list = dvt_load_params(path_of("x.params"), dvt_cpu());
        if (list) {
            FAULTS_ADD(dvt_array_list_at(list, 0));
            FAULTS_ADD(dvt_array_list_find(list, "two"));
        } else
            run->failed = 1;
    }
    FAULTS_OK(dvt_save_npz(path_of("x.npz"), pair, names, 2));
    FAULTS_OK(dvt_save_npz_compressed(path_of("x.npz"), pair, names, 2));
    if (!run->failed)
        FAULTS_ADD(dvt_array_list_find(dvt_load_npz(path_of("x.npz"), dvt_cpu()), "two"));
    FAULTS_OK(dvt_save_image(path_of("x.png"), x));
    if (!run->failed)
        FAULTS_ADD(dvt_load_image(path_of("x.png"), dvt_cpu()));
    FAULTS_OK(dvt_save_image(path_of("x.pgm"), x));
    if (!run->failed)
        FAULTS_ADD(dvt_load_image(path_of("x.pgm"), dvt_cpu()));
    remove(path_of("x.npy"));
    remove(path_of("x.params"));
    remove(path_of("x.npz"));
    remove(path_of("x.png"));
    remove(path_of("x.pgm"));
}

/* A failing writer leaves the file unchanged. */
DVT_FAULTS(files_overwritten) {
    dvt_array *x = small(dvt_cpu()), *y = dvt_neg(x);
    if (!x || !y || dvt_save_npy(path_of("y.npy"), x) != DVT_OK) {
        run->failed = 1;
    } else {
        int saved = dvt_save_npy(path_of("y.npy"), y) == DVT_OK;
        uint64_t now;
        FAULTS_TRUE(saved);
        __atomic_add_fetch(&dvt_faults.paused, 1, __ATOMIC_SEQ_CST);
        now = dvt_fault_look(dvt_load_npy(path_of("y.npy"), dvt_cpu()));
        CHECK(now == dvt_fault_look(saved ? y : x));
        __atomic_add_fetch(&dvt_faults.paused, -1, __ATOMIC_SEQ_CST);
    }
    remove(path_of("y.npy"));
}
#endif

DVT_FAULTS(backward) {
    dvt_array *w = small(dvt_cpu()), *y = NULL;
    FAULTS_OK(dvt_attach_grad(w, DVT_GRAD_WRITE));
    DVT_RECORD {
        y = dvt_mean(dvt_square(dvt_sub(dvt_matmul(w, dvt_t(w)),
                                        dvt_exp(dvt_neg(dvt_rows(dvt_t(w), 0, 2))))),
                     DVT_ALL);
    }
    FAULTS_OK(dvt_backward(y));
    if (!run->failed)
        FAULTS_ADD(dvt_grad(w));
    FAULTS_OK(dvt_zero_grad(w));
}

DVT_FAULTS(backward_twice_and_add) {
    dvt_array *w = small(dvt_cpu()), *y = NULL, *g = NULL, *gg = NULL;
    FAULTS_OK(dvt_attach_grad(w, DVT_GRAD_ADD));
    DVT_RECORD {
        y = dvt_sum(dvt_mul(dvt_square(w), w), DVT_ALL);
    }
    FAULTS_OK(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH));
    FAULTS_OK(dvt_gradients(&y, NULL, 1, &w, 1, DVT_CREATE_GRAPH, &g));
    FAULTS_OK(dvt_gradients(&g, NULL, 1, &w, 1, DVT_RETAIN_GRAPH, &gg));
    FAULTS_OK(dvt_backward(y));
    if (!run->failed) {
        FAULTS_ADD(dvt_grad(w));
        FAULTS_ADD(g);
        FAULTS_ADD(gg);
    }
}

static uint64_t zeros_of(dvt_array *x) {
    uint64_t hash;
    __atomic_add_fetch(&dvt_faults.paused, 1, __ATOMIC_SEQ_CST);
    hash = dvt_fault_look(dvt_zeros_like(x));
    __atomic_add_fetch(&dvt_faults.paused, -1, __ATOMIC_SEQ_CST);
    return hash;
}

DVT_FAULTS(backward_of_every_family) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_reshape(dvt_arange(1, 51, 1, DVT_F32, cpu), DVT_SHAPE(1, 2, 5, 5)),
              *y = NULL, *z = NULL;
    dvt_array *w = dvt_ones(DVT_SHAPE(3, 2, 3, 3), DVT_F32, cpu), *two[2];
    dvt_pool2d_options pool;
    memset(&pool, 0, sizeof pool);
    pool.size[0] = 2;
    FAULTS_OK(dvt_attach_grad(x, DVT_GRAD_WRITE));
    FAULTS_OK(dvt_attach_grad(w, DVT_GRAD_WRITE));
    DVT_RECORD {
        y = dvt_max_pool2d(dvt_conv2d(x, w, NULL, NULL), &pool);
        two[0] = dvt_flatten(y);
        two[1] = dvt_softmax(two[0], 1);
        z = dvt_concat(two, 2, 0);
        z = dvt_add(dvt_take(z, DVT_ARRAY(int32_t, DVT_SHAPE(2), cpu, 1, 0), 1),
                    dvt_logsumexp(z, DVT_KEEPDIMS(1)));
        z = dvt_where(dvt_greater_scalar(z, 0), dvt_tanh(z), dvt_clip(z, -1, 0));
    }
    if (!z || run->failed) {
        run->failed = 1;
    } else if (dvt_backward(z) == DVT_OK) {
        FAULTS_ADD(dvt_grad(x));
        FAULTS_ADD(dvt_grad(w));
    } else { /* all gradients are written, or none */
        run->failed = 1;
        CHECK(dvt_fault_look(dvt_grad(x)) == zeros_of(x));
        CHECK(dvt_fault_look(dvt_grad(w)) == zeros_of(w));
    }
}

/* Gradients composed of several operations, and float16 operations computed in float32. */
DVT_FAULTS(backward_of_composed_gradients) {
    dvt_array *x = dvt_reshape(dvt_arange(0.5, 6.5, 1, DVT_F16, dvt_cpu()), DVT_SHAPE(1, 2, 3));
    dvt_array *ones = dvt_ones(DVT_SHAPE(3), DVT_F16, dvt_cpu()), *y = NULL;
    FAULTS_OK(dvt_attach_grad(x, DVT_GRAD_WRITE));
    DVT_RECORD {
        y = dvt_add(dvt_logsumexp(x, DVT_KEEPDIMS(0, 2)), dvt_norm(x, DVT_KEEPDIMS(2)));
        y = dvt_add(y, dvt_prod(x, DVT_KEEPDIMS(1)));
        y = dvt_add(y, dvt_pow(x, dvt_atan2(x, dvt_asin(dvt_mul_scalar(x, 0.125)))));
        y = dvt_add(y, dvt_layer_norm(dvt_log_softmax(x, 1), ones, ones, 1e-5));
    }
    if (!y || run->failed)
        run->failed = 1;
    else if (dvt_backward(y) == DVT_OK)
        FAULTS_ADD(dvt_grad(x));
    else
        run->failed = 1;
}

/* A failed allocation is reported even by gradients that do not read the operation's scalar. */
DVT_FAULTS(gradients_with_a_scalar) {
    dvt_array *x = small(dvt_cpu()), *y;
    FAULTS_OK(dvt_attach_grad(x, DVT_GRAD_WRITE));
    DVT_RECORD {
        y = dvt_add(dvt_scalar_floor_div(2, x), dvt_mod_scalar(x, 3));
    }
    FAULTS_OK(dvt_backward(y));
    FAULTS_ADD(dvt_grad(x));
}

/* ---- virtual GPUs ---- */
DVT_FAULTS(virtual_gpus) {
    FAULTS_OK(dvt_set_virtual_gpus(2, 100000));
    if (!run->failed) {
        DVT_SCOPE {
            dvt_array *x = small(dvt_gpu(0)), *y = dvt_copyto(x, dvt_gpu(1));
            dvt_array *large = dvt_ones(DVT_SHAPE(1000), DVT_F32, dvt_cpu());
            FAULTS_ADD(dvt_add(dvt_as_in_ctx(y, dvt_gpu(0)), x));
            FAULTS_ADD(dvt_matmul(y, dvt_t(y)));
            FAULTS_ADD(dvt_copyto(dvt_t(y), dvt_cpu()));
            FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(10), DVT_F32, dvt_gpu(1)));
            FAULTS_ADD(dvt_copyto(large, dvt_gpu(1)));
            FAULTS_INTO(x, dvt_copy_into(x, y));
            FAULTS_INTO(y, dvt_copy_into(y, dvt_ones(DVT_SHAPE(2, 3), DVT_I32, dvt_cpu())));
            format(run, x, DVT_PRINT_MXNET);
        }
        dvt_discard_all();
        FAULTS_OK(dvt_set_virtual_gpus(0, 0));
    }
}

/* Without memory for a copy of the values, an upload to a busy device waits for its queue. */
DVT_FAULTS(virtual_gpus_busy_upload) {
    static float values[1000];
    FAULTS_OK(dvt_set_virtual_gpus(1, 0));
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(300, 300), DVT_F64, dvt_gpu(0));
        dvt_array *to = dvt_zeros(DVT_SHAPE(1000), DVT_F32, dvt_gpu(0)), *y;
        bool ready, written;
        int i;
        dvt_fault_pause(1);
        for (y = x, i = 0; y && i < 3; i++)
            y = dvt_matmul(y, x);
        dvt_fault_pause(-1);
        ready = y && to && dvt_error_code() == DVT_OK;
        written = ready && dvt_set_from_host(to, values, sizeof values) == DVT_OK;
        FAULTS_TRUE(written);
        CHECK(written || !ready);
        FAULTS_ADD(to);
    }
    dvt_discard_all();
    FAULTS_OK(dvt_set_virtual_gpus(0, 0));
}

DVT_FAULTS(virtual_gpus_random_mxnet) {
    FAULTS_OK(dvt_set_virtual_gpus(1, 0));
    dvt_set_rng_engine(DVT_RNG_MXNET);
    DVT_SCOPE {
        FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(5), DVT_F32, dvt_gpu(0)));
        FAULTS_ADD(dvt_uniform(0, 1, DVT_SHAPE(200), DVT_F32, dvt_gpu(0)));
    }
    dvt_discard_all();
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_set_virtual_gpus(0, 0);
}

/* A refused draw does not advance the stream: the next draw gets its numbers. */
DVT_FAULTS(random_streams_stay) {
    dvt_array *x = dvt_uniform(0, 1, DVT_SHAPE(6), DVT_F32, dvt_cpu());
    uint64_t first, expected;
    if (!x) {
        run->failed = 1;
        __atomic_add_fetch(&dvt_faults.paused, 1, __ATOMIC_SEQ_CST);
        first = dvt_fault_look(dvt_uniform(0, 1, DVT_SHAPE(6), DVT_F32, dvt_cpu()));
        dvt_seed(1);
        expected = dvt_fault_look(dvt_uniform(0, 1, DVT_SHAPE(6), DVT_F32, dvt_cpu()));
        CHECK(first == expected);
        __atomic_add_fetch(&dvt_faults.paused, -1, __ATOMIC_SEQ_CST);
    } else
        FAULTS_ADD(x);
}
