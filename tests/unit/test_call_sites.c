/* Tests that arrays know where they were created and errors know where they occurred. With
   DEVTENSOR_NO_CALL_SITES nothing is recorded. */
#include "dvt_test.h"

static const char *site_of(int line) {
    static char text[64];
#if defined(DEVTENSOR_NO_CALL_SITES)
    (void)line;
    text[0] = 0;
#else
    sprintf(text, "test_call_sites.c:%d", line);
#endif
    return text;
}

/* Tells whether the site ends with this file and the line. The directory in front depends on the
   compiler's command line. */
static int ends_with(const char *site, int line) {
    const char *expected = site_of(line);
    size_t n = strlen(site), m = strlen(expected);
    return m ? n >= m && strcmp(site + n - m, expected) == 0 : n == 0;
}

DVT_TEST(site_of_creation) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int line = __LINE__ - 1;
    CHECK(ends_with(dvt_made_at(x), line));
    CHECK_STR(dvt_made_at(NULL), "");
}

DVT_TEST(site_of_nested_calls_and_initializers) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 1, 2), *y;
    int line = __LINE__ - 1;
    CHECK(ends_with(dvt_made_at(x), line));
    y = dvt_add(dvt_mul(x, x), dvt_exp(x));
    line = __LINE__ - 1;
    CHECK(ends_with(dvt_made_at(y), line));
}

/* The call returns x itself, so its site does not change. */
DVT_TEST(site_stays_with_the_array) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int line = __LINE__ - 1;
    CHECK(dvt_as_in_ctx(x, dvt_cpu()) == x);
    CHECK(dvt_add_(x, x) == x);
    CHECK(ends_with(dvt_made_at(x), line));
}

DVT_TEST(site_of_a_failing_call) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_array *y = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()), *z;
    int line;
    z = dvt_exp(dvt_add(x, y));
    line = __LINE__ - 1;
    CHECK(z == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK(ends_with(dvt_error_site(), line));
    /* Passing NULL on does not change the site of the first failure. */
    z = dvt_neg(z);
    CHECK(ends_with(dvt_error_site(), line));
    dvt_clear_error();
    CHECK_STR(dvt_error_site(), "");
}

DVT_TEST(site_of_a_failing_status) {
    dvt_status status = dvt_set_num_threads(-1);
    int line = __LINE__ - 1;
    CHECK(status != DVT_OK);
    CHECK(ends_with(dvt_error_site(), line));
    /* A later failure does not replace the site of the first. */
    CHECK(dvt_neg(NULL) == NULL);
    CHECK(ends_with(dvt_error_site(), line));
    dvt_clear_error();
    CHECK_INT(dvt_set_num_threads(0), DVT_OK);
    CHECK_STR(dvt_error_site(), "");
}

DVT_TEST(sites_in_the_message_about_mixed_contexts) {
    dvt_array *x, *y;
    int line;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    y = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
    line = __LINE__ - 1;
    CHECK(dvt_add(x, y) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
    CHECK(strstr(dvt_error(), site_of(line - 1)) != NULL);
    CHECK(strstr(dvt_error(), site_of(line)) != NULL);
    dvt_clear_error();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* The name without parentheses is the function. */
DVT_TEST(functions_have_addresses) {
    dvt_array *(*function)(dvt_array *, dvt_array *) = dvt_add;
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    CHECK_VALUES(function(x, x), 0, 2, 2);
    CHECK_VALUES((dvt_add)(x, x), 0, 2, 2);
    CHECK_STR(dvt_made_at(function(x, x)), "");
}

/* A borrowed gradient keeps the site of its creation. */
DVT_TEST(gradients_keep_their_site) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    CHECK_STR(dvt_made_at(dvt_grad(x)), "");
    CHECK_INT(dvt_note_status(DVT_OK, "nowhere.c", 1), DVT_OK);
    CHECK_STR(dvt_error_site(), "");
}

/* Calls that return something else than an array or a status. */
#define CHECK_FAILS_HERE(call)                                                                     \
    do {                                                                                           \
        dvt_clear_error();                                                                         \
        (void)(call);                                                                              \
        CHECK(dvt_error_code() != DVT_OK);                                                         \
        CHECK(ends_with(dvt_error_site(), __LINE__));                                              \
        dvt_clear_error();                                                                         \
    } while (0)

DVT_TEST(site_of_failing_numbers_and_memory) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    double zero;
    CHECK_FAILS_HERE(dvt_item(x));
    CHECK_FAILS_HERE(dvt_item_int(x));
    CHECK_FAILS_HERE(dvt_item_at(x, DVT_SHAPE(2)));
    CHECK_FAILS_HERE(dvt_dim(x, 3));
    CHECK_FAILS_HERE(dvt_stride(x, -4));
    CHECK_FAILS_HERE(dvt_data(NULL));
    CHECK_FAILS_HERE(dvt_grad(x));
    CHECK_FAILS_HERE(dvt_cuda_address(x));
#if !defined(DEVTENSOR_NO_FILES)
    CHECK_FAILS_HERE(dvt_load_params("/nowhere/at/all", dvt_cpu()));
#endif
    /* Return values pass through unchanged, and the site of a failure remains. */
    zero = dvt_item(dvt_zeros(DVT_SCALAR, DVT_F64, dvt_cpu()));
    CHECK(zero == 0);
    CHECK_STR(dvt_error_site(), "");
    CHECK(dvt_item(dvt_full(DVT_SCALAR, -2.5, DVT_F64, dvt_cpu())) == -2.5);
    CHECK_INT(dvt_item_int(dvt_full(DVT_SCALAR, -7, DVT_I64, dvt_cpu())), -7);
    CHECK(dvt_data(x) == (dvt_data)(x));
}

#if !defined(DEVTENSOR_NO_NN)
DVT_TEST(site_of_failing_constructors) {
    dvt_block *net = dvt_nn_sequential();
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY));
    CHECK_FAILS_HERE(dvt_nn_dense(-1, DVT_IDENTITY));
    CHECK_FAILS_HERE(dvt_block_new(&desc));
    CHECK_FAILS_HERE(dvt_block_at(net, 4));
    CHECK_FAILS_HERE(dvt_block_len(NULL));
    CHECK_FAILS_HERE(dvt_block_data(net, "weight", dvt_cpu()));
    CHECK_FAILS_HERE(dvt_param_data(dvt_block_param(dvt_block_at(net, 0), "weight"), dvt_cpu()));
    CHECK_FAILS_HERE(dvt_block_collect_params(net, "("));
    CHECK_FAILS_HERE(dvt_trainer_new(NULL, dvt_optimizer_sgd(0.1)));
    CHECK_FAILS_HERE(dvt_loader_new(NULL, NULL));
    CHECK_FAILS_HERE(dvt_loader_next(NULL, NULL, NULL));
    CHECK_FAILS_HERE(dvt_metric_get(NULL));
    CHECK_FAILS_HERE(dvt_trainer_learning_rate(NULL));
}
#endif
