/* Tests that layers with relu give the bits of the separate operations, gradients too. On cpu() one
   launch computes the whole layer. */
#include "dvt_test.h"
#include "matmul_forms.h"

static dvt_array *normal_array(dvt_shape shape) {
    return dvt_normal(0, 1, shape, DVT_F32, dvt_test_ctx());
}

static bool same_bytes(dvt_array *a, dvt_array *b) {
    size_t n = a && b ? (size_t)dvt_nbytes(a) : 0;
    void *va, *vb;
    bool same;
    if (!a || !b || !dvt_shape_equal(dvt_shape_of(a), dvt_shape_of(b)))
        return false;
    va = malloc(n + 1);
    vb = malloc(n + 1);
    same = dvt_to_host(a, va, (int64_t)n) == DVT_OK && dvt_to_host(b, vb, (int64_t)n) == DVT_OK &&
           memcmp(va, vb, n) == 0;
    free(va);
    free(vb);
    return same;
}

typedef enum layer { DENSE, CONV, LAYERS } layer;

/* Computes the layer by its block or by separate operations. */
static dvt_array *by_operations(layer what, dvt_array *x, dvt_array *w, dvt_array *b) {
    if (what == CONV)
        return dvt_relu(dvt_conv2d(x, w, b, NULL));
    x = matmul_t(dvt_flatten(x), w, false, true);
    return dvt_relu(b ? dvt_add(x, b) : x);
}

static dvt_block *block_of(layer what, int64_t units, bool no_bias) {
    dvt_nn_dense_desc dense;
    dvt_nn_conv2d_desc conv;
    memset(&dense, 0, sizeof dense);
    memset(&conv, 0, sizeof conv);
    dense.units = conv.channels = units;
    dense.activation = conv.activation = DVT_RELU;
    dense.no_bias = conv.no_bias = no_bias;
    conv.kernel[0] = 3;
    return what == CONV ? dvt_nn_conv2d_with(&conv) : dvt_nn_dense_with(&dense);
}

static void check_layer(layer what, dvt_shape shape, int64_t units, bool no_bias) {
    DVT_SCOPE {
        dvt_block *block = block_of(what, units, no_bias);
        dvt_array *x = normal_array(shape), *y = NULL, *z = NULL, *g[2][3], *in[3];
        int n = no_bias ? 2 : 3, i;
        CHECK(dvt_block_initialize(block, dvt_init_normal(1), DVT_CONTEXTS(dvt_test_ctx())) ==
              DVT_OK);
        y = dvt_block_forward(block, x);
        in[0] = x;
        in[1] = dvt_block_data(block, "weight", dvt_test_ctx());
        in[2] = no_bias ? NULL : dvt_block_data(block, "bias", dvt_test_ctx());
        if (!no_bias)
            CHECK(dvt_copy_into(in[2], normal_array(dvt_shape_of(in[2]))) != NULL);
        y = dvt_block_forward(block, x);
        CHECK(!dvt_has_history(y));
        CHECK(same_bytes(y, by_operations(what, in[0], in[1], in[2])));
        CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
        DVT_RECORD {
            z = dvt_block_forward(block, x);
        }
        CHECK(dvt_has_history(z) && same_bytes(y, z));
        CHECK(dvt_gradients(&z, NULL, 1, in, n, DVT_FREE_GRAPH, g[0]) == DVT_OK);
        DVT_RECORD {
            z = by_operations(what, in[0], in[1], in[2]);
        }
        CHECK(dvt_gradients(&z, NULL, 1, in, n, DVT_FREE_GRAPH, g[1]) == DVT_OK);
        for (i = 0; i < n; i++)
            CHECK(same_bytes(g[0][i], g[1][i]));
    }
}

DVT_TEST(layers_with_relu_have_the_bits_of_separate_operations) {
    static const char *const isas[] = {"avx512", "avx2", "neon", "reference"};
    int isa, what;
    for (isa = 0; isa < 4; isa++) {
        if (dvt_set_cpu_isa(isas[isa]) != DVT_OK) {
            dvt_clear_error();
            continue;
        }
        for (what = 0; what < LAYERS; what++) {
            check_layer((layer)what, DVT_SHAPE(1, 2, 9, 11), 10, false);
            check_layer((layer)what, DVT_SHAPE(3, 2, 5, 19), 1, false);
            check_layer((layer)what, DVT_SHAPE(40, 4, 12, 12), 70, false);
            check_layer((layer)what, DVT_SHAPE(5, 1, 28, 28), 7, true);
        }
    }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* The second derivative passes through the same launch. */
DVT_TEST(layers_with_relu_second_order) {
    DVT_SCOPE {
        double vx[] = {1, -2, 3, 0.5}, vw[] = {1, 1, -1, 2}, vb[] = {0.5, -9};
        double twice[] = {0, 0, 2, 2};
        dvt_array *x = dvt_from_host(vx, DVT_SHAPE(2, 2), DVT_F64, dvt_test_ctx()), *y, *g = NULL;
        dvt_array *w = dvt_from_host(vw, DVT_SHAPE(2, 2), DVT_F64, dvt_test_ctx());
        dvt_array *b = dvt_from_host(vb, DVT_SHAPE(2), DVT_F64, dvt_test_ctx()), *h = NULL;
        dvt_block *block = dvt_nn_dense(2, DVT_RELU);
        dvt_ctx here = dvt_test_ctx();
        x = dvt_astype(x, DVT_F32);
        CHECK(dvt_block_initialize(block, dvt_init_normal(1), DVT_CONTEXTS(here)) == DVT_OK);
        CHECK(dvt_block_forward(block, x) != NULL);
        CHECK(dvt_copy_into(dvt_block_data(block, "weight", here), dvt_astype(w, DVT_F32)) &&
              dvt_copy_into(dvt_block_data(block, "bias", here), dvt_astype(b, DVT_F32)));
        w = dvt_block_data(block, "weight", here);
        CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
        DVT_RECORD {
            /* relu(x w' + b) is ((0, 0), (4, 0)); the gradient of half its squared sum with respect
               to x is relu(..) w */
            y = dvt_mul_scalar(dvt_sum(dvt_square(dvt_block_forward(block, x)), DVT_ALL), 0.5);
            CHECK(dvt_gradients(&y, NULL, 1, &x, 1, DVT_CREATE_GRAPH, &g) == DVT_OK);
            g = dvt_sum(g, DVT_ALL);
        }
        /* the sum of that is 2 (x[1][0] + x[1][1] + 0.5) where the unit is active */
        CHECK_CLOSE(dvt_item(g), 8, 1e-5);
        CHECK(dvt_gradients(&g, NULL, 1, &x, 1, DVT_FREE_GRAPH, &h) == DVT_OK);
        dvt_test_equal(h, twice, 4, 1e-5, __FILE__, __LINE__);
    }
}
