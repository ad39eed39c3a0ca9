/* Tests of dvt_attention: values and gradients against PyTorch's, queries without keys, several
   extents, 16-bit floats, devices, and arguments that are refused. */
#include "dvt_golden.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_attention_options options_of(bool causal, double scale, double dropout) {
    dvt_attention_options p;
    p.causal = causal;
    p.scale = scale;
    p.dropout = dropout;
    return p;
}

static dvt_array *waves(dvt_shape shape, dvt_dtype dtype) {
    dvt_array *x = dvt_arange(0, (double)dvt_shape_size(shape), 1, DVT_F64, dvt_test_ctx());
    return dvt_astype(dvt_reshape(dvt_sin(dvt_mul_scalar(x, 1.7)), shape), dtype);
}

#if !defined(DEVTENSOR_NO_FILES)
static void check_case(dvt_array_list *list, const char *name, bool causal, double scale) {
    static const char *const names[] = {"q", "k", "v"};
    dvt_attention_options p = options_of(causal, scale, 0);
    dvt_array *in[3], *y = NULL, *mask = NULL, *n;
    char key[60];
    int i;
    for (i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "%s.%s", name, names[i]);
        in[i] = dvt_array_list_find(list, key);
        CHECK_INT(dvt_attach_grad(in[i], DVT_GRAD_WRITE), DVT_OK);
    }
    snprintf(key, sizeof key, "%s.mask", name);
    if (scale != 0 || strstr(name, "bool"))
        mask = dvt_array_list_find(list, key);
    DVT_RECORD {
        y = dvt_attention(in[0], in[1], in[2], mask, &p);
    }
    n = dvt_cos(dvt_arange(0, (double)dvt_size(y), 1, DVT_F64, dvt_test_ctx()));
    n = dvt_reshape(n, dvt_shape_of(y));
    CHECK_INT(dvt_backward_from(&y, &n, 1, DVT_FREE_GRAPH), DVT_OK);
    snprintf(key, sizeof key, "%s.y", name);
    CHECK(dvt_allclose(y, dvt_array_list_find(list, key), 1e-9, 1e-11, DVT_NAN_DIFFERS));
    for (i = 0; i < 3; i++) {
        snprintf(key, sizeof key, "%s.grad.%s", name, names[i]);
        CHECK(dvt_allclose(dvt_grad(in[i]), dvt_array_list_find(list, key), 1e-9, 1e-11,
                           DVT_NAN_DIFFERS));
    }
}

DVT_TEST(attention_matches_pytorch) {
    dvt_array_list *list =
        dvt_load_safetensors(golden_path(__FILE__, "torch/layers.safetensors"), dvt_test_ctx());
    if (!CHECK(list != NULL))
        return;
    check_case(list, "attention", false, 0);
    check_case(list, "attention_causal", true, 0);
    check_case(list, "attention_bool", false, 0);
    check_case(list, "attention_float", false, 0.3);
    check_case(list, "attention_grouped", false, 0);
}
#endif

/* With equal scores the result is the mean of the allowed values: query i of 2 sees the keys up to
   i + 1 of 3, query i of 4 those up to i - 1. */
DVT_TEST(attention_causal_is_aligned_with_the_last_key) {
    dvt_attention_options p = options_of(true, 0, 0);
    dvt_array *v = DVT_ARRAY(float, DVT_SHAPE(1, 1, 3, 1), dvt_test_ctx(), 2, 4, 12);
    dvt_array *k = dvt_ones_like(v), *q = dvt_ones(DVT_SHAPE(1, 1, 2, 1), DVT_F32, dvt_test_ctx());
    CHECK_VALUES(dvt_attention(q, k, v, NULL, &p), 1e-6, 3, 6);
    q = dvt_ones(DVT_SHAPE(1, 1, 1, 1), DVT_F32, dvt_test_ctx());
    CHECK_VALUES(dvt_attention(q, k, v, NULL, &p), 1e-6, 6);
    q = dvt_ones(DVT_SHAPE(1, 1, 4, 1), DVT_F32, dvt_test_ctx());
    CHECK_VALUES(dvt_attention(q, k, v, NULL, &p), 1e-6, 0, 2, 3, 6);
}

/* Both kinds of masks, alone and with causal; the gradients have no NaN either. */
DVT_TEST(attention_without_allowed_keys_is_zero) {
    dvt_array *v = DVT_ARRAY(float, DVT_SHAPE(1, 1, 2, 1), dvt_test_ctx(), 2, 4), *y = NULL;
    dvt_array *k = dvt_ones_like(v), *q = dvt_ones_like(v), *mask[2];
    int i, causal;
    mask[0] = DVT_ARRAY(bool, DVT_SHAPE(2, 2), dvt_test_ctx(), false, true, true, true);
    mask[1] = dvt_log(dvt_astype(mask[0], DVT_F32)); /* -INFINITY and 0 */
    dvt_attach_grad(q, DVT_GRAD_WRITE);
    dvt_attach_grad(v, DVT_GRAD_WRITE);
    for (i = 0; i < 2; i++)
        for (causal = 0; causal < 2; causal++) {
            dvt_attention_options p = options_of(causal == 1, 0, 0);
            DVT_RECORD {
                y = dvt_attention(q, k, v, mask[i], &p);
            }
            CHECK_VALUES(y, 1e-6, causal ? 0 : 4, 3);
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_VALUES(dvt_grad(q), 1e-6, 0, 0);
            CHECK_VALUES(dvt_grad(v), 1e-6, 0.5, causal ? 0.5 : 1.5);
        }
}

DVT_TEST(attention_of_16_bit_floats_is_rounded_once) {
    dvt_array *q = waves(DVT_SHAPE(1, 2, 3, 4), DVT_F16), *wide = dvt_astype(q, DVT_F32);
    dvt_array *y = dvt_attention(q, q, q, NULL, NULL);
    CHECK_INT(dvt_dtype_of(y), DVT_F16);
    wide = dvt_astype(dvt_attention(wide, wide, wide, NULL, NULL), DVT_F16);
    CHECK(dvt_array_equal(y, wide, DVT_NAN_DIFFERS));
}

DVT_TEST(attention_drops_weights_in_train_mode) {
    dvt_attention_options p = options_of(false, 0, 0.5);
    dvt_array *q = waves(DVT_SHAPE(1, 2, 8, 4), DVT_F32), *y = NULL;
    dvt_array *plain = dvt_attention(q, q, q, NULL, NULL);
    CHECK(dvt_array_equal(dvt_attention(q, q, q, NULL, &p), plain, DVT_NAN_DIFFERS));
    DVT_RECORD {
        y = dvt_attention(q, q, q, NULL, &p);
    }
    CHECK(!dvt_array_equal(y, plain, DVT_NAN_DIFFERS));
}

DVT_TEST(attention_refuses) {
    dvt_array *q = waves(DVT_SHAPE(2, 4, 3, 5), DVT_F32),
              *k = waves(DVT_SHAPE(2, 3, 3, 5), DVT_F32);
    dvt_array *flat = dvt_ones(DVT_SHAPE(3, 5), DVT_F32, dvt_test_ctx());
    dvt_attention_options p = options_of(false, 0, 1), far = options_of(false, INFINITY, 0);
    CHECK_REFUSED(dvt_attention(q, k, k, NULL, NULL), DVT_ERR_SHAPE, "where groups divides heads");
    CHECK_REFUSED(dvt_attention(q, q, flat, NULL, NULL), DVT_ERR_SHAPE, "dvt_attention: q is");
    CHECK_REFUSED(dvt_attention(q, q, NULL, NULL, NULL), DVT_ERR_NULL_ARGUMENT, "v is NULL");
    CHECK_REFUSED(dvt_attention(q, q, q, flat, NULL), DVT_ERR_SHAPE, "mask is float32 (3, 5)");
    CHECK_REFUSED(dvt_attention(q, q, q, dvt_ones(DVT_SHAPE(3, 3), DVT_I32, dvt_test_ctx()), NULL),
                  DVT_ERR_DTYPE, "expected bool");
    CHECK_REFUSED(dvt_attention(q, q, q, NULL, &p), DVT_ERR_RANGE, "dropout is 1");
    CHECK_REFUSED(dvt_attention(q, q, q, NULL, &far), DVT_ERR_RANGE, "scale inf");
}
#endif
