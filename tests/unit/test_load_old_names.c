/* Tests of parameter files of the old format: names from the process that wrote them, matched by
   the order of the layers. */
#include "parameter_files.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES)

/* Loads entries whose names have any numbers; layers of one kind match in their order. */
static void check_old(const entry *entries) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(1, 1, DVT_IDENTITY), dvt_nn_batch_norm(),
               dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(1, DVT_IDENTITY));
    write_file(entries, 10, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()), 0, 1);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu()), 0, 2);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "gamma", dvt_cpu()), 0, 3);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "running_mean", dvt_cpu()), 0, 5);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "running_var", dvt_cpu()), 0, 6);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 2), "weight", dvt_cpu()), 0, 7, 7);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 2), "bias", dvt_cpu()), 0, 8, 8);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 3), "weight", dvt_cpu()), 0, 9, 9);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 3), "bias", dvt_cpu()), 0, 10);
    remove_file();
}

DVT_TEST(files_old_names) {
    const entry plain[] = {
        {"conv0_weight", DVT_SHAPE(1, 1, 1, 1), 1},   {"conv0_bias", DVT_SHAPE(1), 2},
        {"batchnorm0_gamma", DVT_SHAPE(1), 3},        {"batchnorm0_beta", DVT_SHAPE(1), 4},
        {"batchnorm0_running_mean", DVT_SHAPE(1), 5}, {"batchnorm0_running_var", DVT_SHAPE(1), 6},
        {"dense0_weight", DVT_SHAPE(2, 1), 7},        {"dense0_bias", DVT_SHAPE(2), 8},
        {"dense1_weight", DVT_SHAPE(1, 2), 9},        {"dense1_bias", DVT_SHAPE(1), 10}};
    const entry exported[] = {{"arg:net3_dense10_bias", DVT_SHAPE(1), 10},
                              {"arg:net3_dense9_weight", DVT_SHAPE(2, 1), 7},
                              {"arg:net3_dense10_weight", DVT_SHAPE(1, 2), 9},
                              {"arg:net3_dense9_bias", DVT_SHAPE(2), 8},
                              {"aux:net3_batchnorm4_running_var", DVT_SHAPE(1), 6},
                              {"aux:net3_batchnorm4_running_mean", DVT_SHAPE(1), 5},
                              {"arg:net3_batchnorm4_gamma", DVT_SHAPE(1), 3},
                              {"arg:net3_batchnorm4_beta", DVT_SHAPE(1), 4},
                              {"arg:net3_conv7_bias", DVT_SHAPE(1), 2},
                              {"arg:net3_conv7_weight", DVT_SHAPE(1, 1, 1, 1), 1}};
    open_file("old.params");
    check_old(plain);
    check_old(exported);
}

DVT_TEST(files_old_names_equal_to_the_nets) {
    dvt_block *net = two_dense();
    dvt_params *params = dvt_block_collect_params(net, NULL);
    entry entries[4];
    int i;
    open_file("same.params");
    for (i = 0; i < 4; i++) { /* in reverse */
        dvt_param *p = dvt_params_at(params, 3 - i);
        entries[i].name = dvt_param_name(p);
        entries[i].shape = dvt_param_shape(p);
        entries[i].value = 3 - i;
    }
    write_file(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_OK);
    for (i = 0; i < 4; i++)
        CHECK_CLOSE(dvt_item(dvt_max(dvt_param_data(dvt_params_at(params, i), dvt_cpu()), DVT_ALL)),
                    i, 0);
    remove_file();
}

static dvt_block *dense_in(int64_t in_units) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = 1;
    desc.in_units = in_units;
    return dvt_nn_dense_with(&desc);
}

/* Equal names decide, not the order of their numbers. Here the net's second layer has the lower
   number, because its name was used first. */
DVT_TEST(files_old_names_equal_in_another_order) {
    dvt_block *net = dvt_nn_sequential(), *layers[2];
    entry entries[5];
    char names[4][80];
    int i, n;
    layers[0] = dense_in(1);
    layers[1] = dense_in(1);
    for (i = 1; i >= 0; i--) {
        snprintf(names[2 * i], sizeof names[0], "%s",
                 dvt_param_name(dvt_block_param(layers[i], "weight")));
        snprintf(names[2 * i + 1], sizeof names[0], "%s",
                 dvt_param_name(dvt_block_param(layers[i], "bias")));
    }
    DVT_NN_ADD(net, layers[0], layers[1]);
    for (i = 0; i < 4; i++) {
        entries[i].name = names[i];
        entries[i].shape = i % 2 ? DVT_SHAPE(1) : DVT_SHAPE(1, 1);
        entries[i].value = i + 1;
    }
    entries[4].name = "other0_weight";
    entries[4].shape = DVT_SHAPE(1);
    entries[4].value = 9;
    open_file("equal.params");
    /* All but one, all, and one too many. */
    for (n = 3; n <= 5; n++) {
        dvt_load_options options;
        memset(&options, 0, sizeof options);
        options.allow_missing = n < 4;
        options.ignore_extra = n > 4;
        dvt_block_reinitialize(net, dvt_init_one(), no_contexts());
        write_file(entries, n, DVT_F32);
        CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
        CHECK_VALUES(dvt_block_data(layers[0], "weight", dvt_cpu()), 0, 1);
        CHECK_VALUES(dvt_block_data(layers[0], "bias", dvt_cpu()), 0, 2);
        CHECK_VALUES(dvt_block_data(layers[1], "weight", dvt_cpu()), 0, 3);
        CHECK_VALUES(dvt_block_data(layers[1], "bias", dvt_cpu()), 0, n < 4 ? 0 : 4);
    }
    remove_file();
}

/* A shared parameter has two names. A file may have either; if it has both, the last one counts. */
DVT_TEST(files_several_names_of_one_parameter) {
    const entry entries[] = {{"0.weight", DVT_SHAPE(1, 1), 1},
                             {"0.bias", DVT_SHAPE(1), 2},
                             {"1.weight", DVT_SHAPE(1, 1), 3},
                             {"1.bias", DVT_SHAPE(1), 4}};
    dvt_block *net = dvt_nn_sequential(), *layer = dense_in(1);
    int first;
    DVT_NN_ADD(net, layer, layer);
    dvt_block_initialize(net, dvt_init_one(), no_contexts());
    open_file("several.params");
    write_file(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(layer, "weight", dvt_cpu()), 0, 3);
    CHECK_VALUES(dvt_block_data(layer, "bias", dvt_cpu()), 0, 4);
    for (first = 0; first < 3; first += 2) {
        write_file(entries + first, 2, DVT_F32);
        CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_OK);
        CHECK_VALUES(dvt_block_data(layer, "weight", dvt_cpu()), 0, first + 1);
        CHECK_VALUES(dvt_block_data(layer, "bias", dvt_cpu()), 0, first + 2);
    }
    remove_file();
}

DVT_TEST(files_old_names_mismatches) {
    const entry entries[] = {{"dense4_weight", DVT_SHAPE(2, 3), 1},
                             {"dense4_bias", DVT_SHAPE(2), 2},
                             {"dense5_weight", DVT_SHAPE(1, 2), 3}};
    dvt_load_options options;
    dvt_block *net = two_dense();
    memset(&options, 0, sizeof options);
    open_file("unfit.params");
    write_file(entries, 3, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_NAME);
    error_has("_bias' is missing in file");
    dvt_clear_error();
    check_untouched(net);
    options.allow_missing = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "weight", dvt_cpu()), 0, 3, 3);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()), 0, 0);
    remove_file();
}

#endif
