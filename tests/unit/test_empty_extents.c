/* Tests of empty arrays whose other extents multiply to more than 2^63: products of extents must
   not overflow. A wrong value would rarely show an overflow; config=ubsan detects it. */
#include "dvt_test.h"
#include "matmul_forms.h"

#define HUGE_EXTENT ((int64_t)1 << 62)

/* ---- calls on one array of three axes; they return NULL where no result exists ---- */
static dvt_array *all_sum(dvt_array *x) {
    return dvt_sum(x, DVT_ALL);
}

static dvt_array *two_mean(dvt_array *x) {
    return dvt_mean(x, DVT_KEEPDIMS(1, 2));
}

static dvt_array *ends_sum(dvt_array *x) {
    return dvt_sum(x, DVT_AXES(0, 2));
}

static dvt_array *first_prod(dvt_array *x) {
    return dvt_prod(x, DVT_AXES(0, 1));
}

static dvt_array *last_norm(dvt_array *x) {
    return dvt_norm(x, DVT_AXES(-1));
}

static dvt_array *two_logsumexp(dvt_array *x) {
    return dvt_logsumexp(x, DVT_AXES(1, 2));
}

static dvt_array *two_max(dvt_array *x) {
    return dvt_max(x, DVT_AXES(1, 2));
}

static dvt_array *flat_argmax(dvt_array *x) {
    return dvt_argmax(x, DVT_ALL);
}

static dvt_array *all_any(dvt_array *x) {
    return dvt_any(x, DVT_ALL);
}

static dvt_array *all_var(dvt_array *x) {
    return dvt_var(x, dvt_keepdims(DVT_ALL), 1);
}

static dvt_array *two_std(dvt_array *x) {
    return dvt_std(x, DVT_AXES(1, 2), 0);
}

static dvt_array *middle_softmax(dvt_array *x) {
    return dvt_softmax(x, 1);
}

static dvt_array *last_log_softmax(dvt_array *x) {
    return dvt_log_softmax(x, 2);
}

static dvt_array *end_of_middle(dvt_array *x) {
    return dvt_slice(x, 1, HUGE_EXTENT - 2, DVT_END, 1);
}

static dvt_array *middle_steps(dvt_array *x) {
    return dvt_slice(x, 1, 1, DVT_END, HUGE_EXTENT / 2);
}

static dvt_array *first_reversed(dvt_array *x) {
    return dvt_slice(x, 0, -1, DVT_END, -3);
}

static dvt_array *last_split(dvt_array *x) {
    dvt_array *part[3];
    return dvt_array_split(x, 3, 2, part) == DVT_OK ? dvt_add(part[2], part[1]) : NULL;
}

static dvt_array *row(dvt_array *x) {
    return dvt_index(x, dvt_dim(x, 0) - 1);
}

static dvt_array *some_rows(dvt_array *x) {
    return dvt_rows(x, 5, HUGE_EXTENT);
}

static dvt_array *transposed(dvt_array *x) {
    return dvt_exp(dvt_transpose(x, DVT_ALL));
}

static dvt_array *other_shape(dvt_array *x) {
    return dvt_reshape(dvt_swapaxes(x, 0, 1), DVT_SHAPE(HUGE_EXTENT, 0, HUGE_EXTENT, 7));
}

static dvt_array *repeated(dvt_array *x) {
    return dvt_broadcast_to(dvt_expand_dims(x, 0),
                            DVT_SHAPE(HUGE_EXTENT, dvt_dim(x, 0), dvt_dim(x, 1), dvt_dim(x, 2)));
}

static dvt_array *copied(dvt_array *x) {
    return dvt_copy(dvt_contiguous(dvt_astype(dvt_transpose(x, DVT_ALL), DVT_F64)));
}

static dvt_array *joined(dvt_array *x) {
    dvt_array *three[3];
    three[0] = three[1] = x;
    three[2] = dvt_slice(x, 1, 0, 1, 1);
    three[1] = dvt_slice(x, 1, 1, 3, 1);
    return dvt_concat(three, 3, 1);
}

static dvt_array *joined_at_the_end(dvt_array *x) {
    dvt_array *two[2];
    two[0] = x;
    two[1] = dvt_slice(x, 2, 1, 3, 1);
    return dvt_concat(two, 2, 2);
}

static dvt_array *stacked(dvt_array *x) {
    dvt_array *two[2];
    two[0] = two[1] = x;
    return dvt_stack(two, 2, 1);
}

static dvt_array *taken(dvt_array *x) {
    return dvt_take(x, dvt_zeros(DVT_SHAPE(2, 0), DVT_I64, dvt_cpu()), 1);
}

static dvt_array *taken_huge(dvt_array *x) {
    return dvt_take(x, dvt_zeros(DVT_SHAPE(HUGE_EXTENT, 4, 0), DVT_I64, dvt_cpu()), 0);
}

static dvt_array *gathered(dvt_array *x) {
    dvt_shape shape = dvt_shape_of(x);
    shape.dim[2] = 0;
    return dvt_take_along_axis(x, dvt_zeros(shape, DVT_I64, dvt_cpu()), 2);
}

static dvt_array *cumulated(dvt_array *x) {
    return dvt_cumsum(x, 1);
}

static dvt_array *sorted(dvt_array *x) {
    return dvt_sort(x, 1, DVT_ASCENDING);
}

static dvt_array *ordered(dvt_array *x) {
    return dvt_argsort(x, 2, DVT_DESCENDING);
}

static dvt_array *chosen(dvt_array *x) {
    return dvt_topk(x, 0, 2, DVT_LARGEST, NULL);
}

static dvt_array *classes(dvt_array *x) {
    return dvt_one_hot(dvt_astype(x, DVT_I32), HUGE_EXTENT, DVT_F32);
}

static dvt_array *squared(dvt_array *x) {
    return matmul_t(x, x, false, true);
}

static dvt_array *dotted(dvt_array *x) {
    return dvt_dot(x, dvt_swapaxes(x, 1, 2));
}

static dvt_array *with_vector(dvt_array *x) {
    return dvt_matmul(x, dvt_reshape(dvt_slice(dvt_swapaxes(x, 0, 2), 1, 0, 0, 1), DVT_SHAPE(0)));
}

static dvt_array *selected(dvt_array *x) {
    return dvt_where(dvt_greater_scalar(x, 0), dvt_clip(x, 0, 1),
                     dvt_mul(x, dvt_transpose(dvt_transpose(x, DVT_ALL), DVT_ALL)));
}

static dvt_array *normalized(dvt_array *x) {
    return dvt_layer_norm(x, NULL, NULL, 1e-5);
}

static dvt_array *dropped(dvt_array *x) {
    return dvt_dropout(x, 0.5);
}

static dvt_array *flattened(dvt_array *x) {
    return dvt_flatten(x);
}

static dvt_array *drawn(dvt_array *x) {
    return dvt_add(x, dvt_normal(0, 1, dvt_shape_of(x), DVT_F32, dvt_ctx_of(x)));
}

static dvt_array *(*const calls[])(dvt_array *) = {
    all_sum,           two_mean,      ends_sum,     first_prod,     last_norm,  two_logsumexp,
    two_max,           flat_argmax,   all_any,      all_var,        two_std,    middle_softmax,
    last_log_softmax,  end_of_middle, middle_steps, first_reversed, last_split, row,
    some_rows,         transposed,    other_shape,  repeated,       copied,     joined,
    joined_at_the_end, stacked,       taken,        taken_huge,     gathered,   classes,
    squared,           dotted,        with_vector,  selected,       normalized, dropped,
    flattened,         drawn,         cumulated,    sorted,         ordered,    chosen};

/* Returns an array with one empty axis, with axes in any memory order. */
static dvt_array *empty_array(int zero, int way) {
    dvt_shape shape = DVT_SHAPE(HUGE_EXTENT, HUGE_EXTENT, HUGE_EXTENT);
    dvt_shape one = DVT_SHAPE(1, 1, 1);
    shape.dim[way == 1 ? 2 - zero : zero] = 0;
    one.dim[zero] = 0;
    if (way == 2)
        return dvt_broadcast_to(dvt_zeros(one, DVT_F32, dvt_cpu()), shape);
    return way == 1 ? dvt_transpose(dvt_zeros(shape, DVT_F32, dvt_cpu()), DVT_ALL)
                    : dvt_zeros(shape, DVT_F32, dvt_cpu());
}

/* Checks that y is an empty array, a scalar or the error that such a shape is impossible. */
static void check_result(size_t call, const dvt_array *x, dvt_array *y) {
    dvt_status status = dvt_error_code();
    char text[200];
    dvt_clear_error();
    dvt_test_check(y ? status == DVT_OK && dvt_size(y) >= 0
                     : status == DVT_ERR_SHAPE || status == DVT_ERR_RANGE,
                   __FILE__, __LINE__, "call %d of an array with %lld, %lld and %lld: %s",
                   (int)call, (long long)dvt_dim(x, 0), (long long)dvt_dim(x, 1),
                   (long long)dvt_dim(x, 2), dvt_status_name(status));
    if (y)
        CHECK_INT(dvt_format(y, NULL, text, sizeof text, NULL), DVT_OK);
}

DVT_TEST(empty_extents_results) {
    int zero, way;
    size_t i;
    for (zero = 0; zero < 3; zero++)
        for (way = 0; way < 3; way++)
            for (i = 0; i < sizeof calls / sizeof *calls; i++)
                DVT_SCOPE {
                    dvt_array *x = empty_array(zero, way), *y = calls[i](x);
                    check_result(i, x, y);
                }
}

DVT_TEST(empty_extents_gradients) {
    int zero, way;
    size_t i;
    for (zero = 0; zero < 3; zero++)
        for (way = 0; way < 3; way++)
            for (i = 0; i < sizeof calls / sizeof *calls; i++)
                DVT_SCOPE {
                    dvt_array *x = empty_array(zero, way), *y = NULL;
                    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
                    DVT_RECORD {
                        y = calls[i](x);
                    }
                    dvt_clear_error();
                    if (!y || !dvt_has_history(y))
                        continue;
                    if (dvt_backward(y) == DVT_OK)
                        CHECK(dvt_shape_equal(dvt_shape_of(dvt_grad(x)), dvt_shape_of(x)));
                    check_result(i, x, dvt_error_code() ? NULL : dvt_grad(x));
                }
}

/* ---- convolution: kernels and images without channels, empty batches ---- */
static dvt_array *convolved(dvt_array *x, dvt_array *w, dvt_array *bias, int padding) {
    dvt_conv2d_options p;
    dvt_array *y = NULL;
    memset(&p, 0, sizeof p);
    p.padding[0] = p.padding[1] = padding;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    dvt_attach_grad(w, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_conv2d(x, w, bias, &p);
    }
    CHECK(y && dvt_backward(y) == DVT_OK);
    return y;
}

DVT_TEST(empty_extents_conv) {
    const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16};
    const int64_t huge = HUGE_EXTENT, wide = (int64_t)INT32_MAX * 2;
    int i;
    for (i = 0; i < 3; i++) {
        dvt_dtype t = dtypes[i];
        dvt_ctx cpu = dvt_cpu();
        dvt_array *x, *w, *bias;
        /* no channels: the kernel is as large as the image, and y is the bias */
        x = dvt_zeros(DVT_SHAPE(2, 0, huge, huge), t, cpu);
        w = dvt_zeros(DVT_SHAPE(1, 0, huge, huge), t, cpu);
        bias = dvt_full(DVT_SHAPE(1), 3, t, cpu);
        CHECK_VALUES(convolved(x, w, bias, 0), 0, 3, 3);
        /* no images */
        x = dvt_zeros(DVT_SHAPE(0, 1, huge, huge), t, cpu);
        w = dvt_ones(DVT_SHAPE(2, 1, 1, 2), t, cpu);
        CHECK_INT(dvt_size(convolved(x, w, NULL, 0)), 0);
        CHECK_VALUES(dvt_grad(w), 0, 0, 0, 0, 0);
        /* no kernels, in an image that is almost all padding */
        x = dvt_ones(DVT_SHAPE(1, 1, 1, 1), t, cpu);
        w = dvt_zeros(DVT_SHAPE(0, 1, wide, wide), t, cpu);
        CHECK_INT(dvt_size(convolved(x, w, NULL, INT32_MAX)), 0);
        CHECK_VALUES(dvt_grad(x), 0, 0);
        w = dvt_zeros(DVT_SHAPE(0, 1, 1, 1), t, cpu);
        CHECK_INT(dvt_size(convolved(x, w, NULL, INT32_MAX)), 0);
        CHECK_VALUES(dvt_grad(x), 0, 0);
    }
}

DVT_TEST(empty_extents_pool) {
    dvt_pool2d_options p;
    int k;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    for (k = 0; k < 2; k++) {
        dvt_array *y = NULL, *x = dvt_zeros(DVT_SHAPE(HUGE_EXTENT, 0, HUGE_EXTENT, HUGE_EXTENT),
                                            DVT_F32, dvt_cpu());
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = k ? dvt_max_pool2d(x, &p) : dvt_avg_pool2d(x, &p);
        }
        CHECK(y && dvt_backward(y) == DVT_OK);
        CHECK_INT(dvt_dim(y, 3), HUGE_EXTENT / 2);
    }
}

/* ---- other contexts, batches, files ---- */
DVT_TEST(empty_extents_contexts) {
    dvt_array *x, *part[2];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        x = dvt_zeros(DVT_SHAPE(4, 0, HUGE_EXTENT, HUGE_EXTENT), DVT_F32, dvt_gpu(0));
        x = dvt_copyto(dvt_transpose(x, DVT_ALL), dvt_gpu(1));
        CHECK(x && dvt_copyto(dvt_exp(x), dvt_cpu()) && dvt_shape_size(dvt_shape_of(x)) == 0);
        CHECK(dvt_copy_into(dvt_zeros(dvt_shape_of(x), DVT_F64, dvt_gpu(0)), x) != NULL);
        CHECK_INT(dvt_to_host(x, NULL, 0), DVT_OK);
        CHECK_INT(dvt_set_from_host(x, NULL, 0), DVT_OK);
#if !defined(DEVTENSOR_NO_NN)
        CHECK_INT(dvt_split_and_load(dvt_transpose(x, DVT_ALL),
                                     DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)), part),
                  DVT_OK);
        CHECK_CLOSE(dvt_clip_global_norm(part, 1, 1), 0, 0);
#else
        (void)part;
#endif
    }
    dvt_set_virtual_gpus(0, 0);
}

#if !defined(DEVTENSOR_NO_NN)
DVT_TEST(empty_extents_batches) {
    int way, workers;
    for (way = 0; way < 3; way++)
        for (workers = 0; workers < 2; workers++)
            DVT_SCOPE {
                dvt_shape shape = DVT_SHAPE(5, HUGE_EXTENT, HUGE_EXTENT, HUGE_EXTENT);
                dvt_loader_desc desc;
                dvt_dataset *data;
                dvt_loader *l;
                dvt_array *x = NULL, *y = NULL;
                shape.dim[1 + way] = 0;
                memset(&desc, 0, sizeof desc);
                desc.batch_size = 2;
                desc.num_workers = workers;
                desc.shuffle = true;
                data = dvt_dataset_arrays(dvt_zeros(shape, DVT_U8, dvt_cpu()),
                                          dvt_arange(0, 5, 1, DVT_I32, dvt_cpu()));
                l = dvt_loader_new(data, &desc);
                CHECK(dvt_loader_next(l, &x, &y));
                CHECK_INT(dvt_dim(x, 1 + way), 0);
                l = dvt_loader_new(dvt_dataset_transform_first(data, dvt_transform_to_tensor()),
                                   &desc);
                CHECK(dvt_loader_next(l, &x, &y));
                CHECK_INT(dvt_dim(x, way == 2 ? 1 : 2 + way), 0);
            }
}
#endif

#if !defined(DEVTENSOR_NO_FILES)
DVT_TEST(empty_extents_npy) {
    static const char dict[] = "{'descr': '<f4', 'fortran_order': True, 'shape': "
                               "(4611686018427387904, 0, 4611686018427387904), }";
    char file[128];
    dvt_array *x;
    memset(file, ' ', sizeof file);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, dict, sizeof dict - 1);
    file[127] = '\n';
    x = dvt_read_npy(file, sizeof file, dvt_cpu());
    CHECK_INT(dvt_dim(x, 0), HUGE_EXTENT);
    CHECK_INT(dvt_size(x), 0);
}
#endif
