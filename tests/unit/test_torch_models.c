/* Tests of whole models that PyTorch has saved as safetensors: a convolutional net, an LSTM and a
   transformer. tests/golden/make_torch_models.py and make_torch_transformer.py wrote the files. */
#include "dvt_golden.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES) && !defined(DEVTENSOR_NO_FORMATS)
#include "../../examples/transformer.h"

static dvt_array_list *torch_models(void) {
    return dvt_load_safetensors(golden_path(__FILE__, "torch/models.safetensors"), dvt_test_ctx());
}

static dvt_status load_mapped(dvt_block *net, const char *name, const char *const *map) {
    dvt_load_options options;
    memset(&options, 0, sizeof options);
    options.map = map;
    return dvt_block_load_with(net, golden_path(__FILE__, name), &options,
                               DVT_CONTEXTS(dvt_test_ctx()));
}

static void check_result(dvt_block *net, const char *x, const char *y) {
    dvt_array_list *list = torch_models();
    dvt_array *result = dvt_block_forward(net, dvt_array_list_find(list, x));
    dvt_array *expected = dvt_array_list_find(list, y);
    CHECK(dvt_shape_equal(dvt_shape_of(result), dvt_shape_of(expected)));
    CHECK(dvt_allclose(result, expected, 1e-5, 1e-5, DVT_NAN_DIFFERS));
    CHECK_INT(dvt_error_code(), DVT_OK);
}

DVT_TEST(torch_models_convolutions) {
    const char *const map[] = {
        "1.weight", "1.gamma", "1.bias", "1.beta", "1.num_batches_tracked", "",
        "4.*",      "4.*",     "7.*",    "5.*",    "1.running_*",           "1.running_*",
        "0.*",      "0.*",     NULL};
    dvt_nn_conv2d_desc desc;
    dvt_block *net = dvt_nn_sequential();
    memset(&desc, 0, sizeof desc);
    desc.channels = 4;
    desc.kernel[0] = desc.kernel[1] = 3;
    desc.options.padding[0] = desc.options.padding[1] = 1;
    DVT_NN_ADD(net, dvt_nn_conv2d_with(&desc), dvt_nn_batch_norm(), dvt_nn_activation(DVT_RELU),
               dvt_nn_max_pool2d(2, 2), dvt_nn_conv2d(8, 3, DVT_RELU),
               dvt_nn_dense(10, DVT_IDENTITY));
    CHECK_INT(load_mapped(net, "torch/cnn.safetensors", map), DVT_OK);
    check_result(net, "cnn.x", "cnn.y");
}

DVT_TEST(torch_models_lstm) {
    const char *const map[] = {"embedding.*",
                               "0.*",
                               "lstm.weight_ih_l0",
                               "1.l0_i2h_weight",
                               "lstm.weight_hh_l0",
                               "1.l0_h2h_weight",
                               "lstm.bias_ih_l0",
                               "1.l0_i2h_bias",
                               "lstm.bias_hh_l0",
                               "1.l0_h2h_bias",
                               "lstm.weight_ih_l1",
                               "1.l1_i2h_weight",
                               "lstm.weight_hh_l1",
                               "1.l1_h2h_weight",
                               "lstm.bias_ih_l1",
                               "1.l1_i2h_bias",
                               "lstm.bias_hh_l1",
                               "1.l1_h2h_bias",
                               "head.*",
                               "2.*",
                               NULL};
    dvt_nn_recurrent_desc desc;
    dvt_nn_dense_desc head;
    dvt_block *net = dvt_nn_sequential();
    memset(&desc, 0, sizeof desc);
    desc.hidden_size = 8;
    desc.layers = 2;
    desc.layout = DVT_NTC;
    memset(&head, 0, sizeof head);
    head.units = 5;
    head.no_flatten = true;
    DVT_NN_ADD(net, dvt_nn_embedding(20, 6), dvt_nn_lstm_with(&desc), dvt_nn_dense_with(&head));
    CHECK_INT(load_mapped(net, "torch/lstm.safetensors", map), DVT_OK);
    check_result(net, "lstm.x", "lstm.y");
}

static dvt_block *torch_transformer(dvt_array_list **file) {
    const char *path = golden_path(__FILE__, "torch/transformer.safetensors");
    *file = dvt_load_safetensors(path, dvt_cpu());
    return *file ? transformer_load(path, *file, dvt_test_ctx()) : NULL;
}

/* The tokens at once, and one after the other with the keys and values of those before. */
DVT_TEST(torch_models_transformer) {
    dvt_array_list *file, *list;
    dvt_block *net = torch_transformer(&file);
    dvt_array *tokens, *expected, *steps[12];
    int i;
    list = dvt_load_safetensors(golden_path(__FILE__, "torch/transformer_logits.safetensors"),
                                dvt_test_ctx());
    if (!CHECK(net != NULL) || !CHECK(list != NULL))
        return;
    tokens = dvt_array_list_find(list, "tokens");
    expected = dvt_array_list_find(list, "logits");
    CHECK(dvt_allclose(dvt_block_forward(net, tokens), expected, 1e-4, 1e-4, DVT_NAN_DIFFERS));
    transformer_remember(net, true);
    for (i = 0; i < 12; i++)
        steps[i] = dvt_block_forward(net, dvt_slice(tokens, 1, i, i + 1, 1));
    CHECK(dvt_allclose(dvt_concat(steps, 12, 1), expected, 1e-4, 1e-4, DVT_NAN_DIFFERS));
    transformer_remember(net, false);
    CHECK_INT(dvt_error_code(), DVT_OK);
}

/* The most probable characters after a prompt are those that PyTorch has found. */
DVT_TEST(torch_models_transformer_writes) {
    dvt_array_list *file;
    dvt_block *net = torch_transformer(&file);
    const char *vocabulary, *prompt, *greedy;
    char text[160];
    size_t n, i;
    if (!CHECK(net != NULL))
        return;
    vocabulary = dvt_array_list_metadata(file, "vocabulary");
    prompt = dvt_array_list_metadata(file, "prompt");
    greedy = dvt_array_list_metadata(file, "greedy");
    if (!CHECK(vocabulary && prompt && greedy && strlen(greedy) == 60))
        return;
    n = strlen(prompt);
    snprintf(text, sizeof text, "%s%s", prompt, greedy);
    transformer_remember(net, true);
    for (i = 0; text[i + 1]; i++) {
        DVT_SCOPED;
        int64_t token = strchr(vocabulary, text[i]) - vocabulary;
        dvt_array *x = dvt_from_host(&token, DVT_SHAPE(1, 1), DVT_I64, dvt_test_ctx());
        token = dvt_item_int(dvt_argmax(dvt_block_forward(net, x), DVT_ALL));
        if (i + 1 >= n)
            CHECK_INT(vocabulary[token], text[i + 1]);
    }
    CHECK_INT(dvt_error_code(), DVT_OK);
}
#endif
