/* Tests of saving and loading parameters: structural names, averages of replicas, other contexts,
   all or nothing. */
#include "parameter_files.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES)

/* Returns two layers with a pool between them, which also takes an index. */
static dvt_block *small_net(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(2, 2, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_dense(3, DVT_IDENTITY));
    return net;
}

static dvt_array *small_input(dvt_ctx ctx) {
    return dvt_mul_scalar(dvt_reshape(dvt_arange(0, 50, 1, DVT_F32, ctx), DVT_SHAPE(2, 1, 5, 5)),
                          0.1);
}

static dvt_block *ready_net(dvt_ctx ctx) {
    dvt_block *net = small_net();
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx));
    CHECK(dvt_block_forward(net, small_input(ctx)) != NULL);
    return net;
}

static int same_output(dvt_block *a, dvt_ctx on_a, dvt_block *b, dvt_ctx on_b) {
    double *x = dvt_test_values(dvt_block_forward(a, small_input(on_a)));
    double *y = dvt_test_values(dvt_block_forward(b, small_input(on_b)));
    int same = x && y && memcmp(x, y, 6 * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

/* ---- there and back ---- */
DVT_TEST(files_round_trip_over_contexts) {
    dvt_block *net, *again = small_net();
    dvt_array_list *list;
    dvt_array *held;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    open_file("round.params");
    net = ready_net(dvt_gpu(0));
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    list = dvt_load_params(path, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 4);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_find(list, "0.weight")),
                          DVT_SHAPE(2, 1, 2, 2)));
    CHECK(dvt_array_list_find(list, "0.bias") != NULL);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_array_list_find(list, "2.weight")), DVT_SHAPE(3, 8)));
    CHECK(dvt_array_list_find(list, "2.bias") != NULL);
    /* into a net that was never initialized, on two other contexts */
    CHECK_INT(dvt_block_load(again, path, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1))), DVT_OK);
    CHECK(same_output(net, dvt_gpu(0), again, dvt_cpu()));
    CHECK(same_output(net, dvt_gpu(0), again, dvt_gpu(1)));
    CHECK(dvt_param_grad(dvt_block_param(dvt_block_at(again, 2), "weight"), dvt_gpu(1)) != NULL);
    /* without a list: the parameters' contexts; the arrays remain the same objects */
    held = dvt_block_data(dvt_block_at(again, 0), "weight", dvt_gpu(1));
    dvt_fill(held, 7);
    CHECK_INT(dvt_block_load(again, path, no_contexts()), DVT_OK);
    CHECK(dvt_block_data(dvt_block_at(again, 0), "weight", dvt_gpu(1)) == held);
    CHECK(same_output(net, dvt_gpu(0), again, dvt_gpu(1)));
    /* and onto one context only */
    CHECK_INT(dvt_block_load(again, path, DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
    CHECK_INT(dvt_param_ctxs(dvt_block_param(dvt_block_at(again, 0), "weight")).n, 1);
    CHECK(same_output(net, dvt_gpu(0), again, dvt_gpu(0)));
    remove_file();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(files_complete_deferred_initialization) {
    dvt_block *net = ready_net(dvt_cpu()), *deferred = small_net(), *bare = small_net();
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    open_file("deferred.params");
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    dvt_block_initialize(deferred, default_init(), DVT_CONTEXTS(dvt_gpu(0)));
    CHECK_INT(dvt_block_load(deferred, path, no_contexts()), DVT_OK);
    CHECK(dvt_block_data(dvt_block_at(deferred, 2), "weight", dvt_gpu(0)) != NULL);
    CHECK(same_output(net, dvt_cpu(), deferred, dvt_gpu(0)));
    DVT_WITH_CTX(dvt_gpu(0)) {
        CHECK_INT(dvt_block_load(bare, path, no_contexts()), DVT_OK);
    }
    CHECK(same_output(net, dvt_cpu(), bare, dvt_gpu(0)));
    remove_file();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(files_hold_the_average) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array_list *list;
    open_file("average.params");
    CHECK_INT(dvt_block_save(net, path), DVT_ERR_UNINITIALIZED);
    dvt_clear_error();
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1)));
    CHECK_INT(dvt_block_save(net, path), DVT_ERR_UNINITIALIZED);
    error_has("deferred");
    dvt_clear_error();
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu())) != NULL);
    dvt_fill(dvt_block_data(net, "weight", dvt_cpu_id(1)), 4);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    list = dvt_load_params(path, dvt_cpu());
    CHECK_VALUES(dvt_array_list_find(list, "weight"), 0, 2.5, 2.5);
    remove_file();
}

/* Each context updates its own running statistics, so they differ although weights do not. A file,
   and replicas on other contexts, get the average. */
DVT_TEST(files_hold_the_average_of_running_statistics) {
    dvt_block *net = dvt_nn_batch_norm(), *again = dvt_nn_batch_norm();
    dvt_ctx_list both = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    dvt_array_list *list;
    int i;
    dvt_block_initialize(net, dvt_init_one(), both);
    DVT_RECORD {
        for (i = 0; i < 2; i++) {
            dvt_array *x = dvt_full(DVT_SHAPE(4, 2), i ? 30 : 10, DVT_F32, both.ctx[i]);
            dvt_fill(dvt_slice(x, 0, 0, 2, 1), 20);
            CHECK(dvt_block_forward(net, x) != NULL);
        }
    }
    /* momentum 0.9: 0.9 of 0 and 1; 0.1 of the means 15 and 25 and of the variance 25 */
    CHECK_VALUES(dvt_block_data(net, "running_mean", both.ctx[0]), 1e-6, 1.5, 1.5);
    CHECK_VALUES(dvt_block_data(net, "running_mean", both.ctx[1]), 1e-6, 2.5, 2.5);
    open_file("statistics.params");
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    list = dvt_load_params(path, dvt_cpu());
    CHECK_VALUES(dvt_array_list_find(list, "running_mean"), 1e-6, 2, 2);
    CHECK_VALUES(dvt_array_list_find(list, "running_var"), 1e-6, 3.4, 3.4);
    CHECK_INT(dvt_block_load(again, path, both), DVT_OK);
    for (i = 0; i < 2; i++)
        CHECK_VALUES(dvt_block_data(again, "running_mean", both.ctx[i]), 1e-6, 2, 2);
    CHECK_INT(
        dvt_params_reset_ctx(dvt_block_collect_params(net, NULL), DVT_CONTEXTS(dvt_cpu_id(2))),
        DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_cpu_id(2)), 1e-6, 2, 2);
    remove_file();
}

/* A single layer has names without a dot, as in the old format. */
DVT_TEST(files_of_one_layer) {
    static const double values[] = {1, 2, 3};
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY), *again = dvt_nn_dense(1, DVT_IDENTITY);
    open_file("one.params");
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_INT(dvt_param_set_data(dvt_block_param(net, "weight"),
                                 dvt_from_host(values, DVT_SHAPE(1, 3), DVT_F64, dvt_cpu())),
              DVT_OK);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    CHECK_INT(dvt_block_load(again, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(again, "weight", dvt_cpu()), 0, 1, 2, 3);
    remove_file();
}

/* The file has both names of a shared layer, and loading needs only one of them. */
DVT_TEST(files_of_shared_layers) {
    dvt_block *net = dvt_nn_sequential(), *shared = dvt_nn_dense(2, DVT_IDENTITY), *plain;
    dvt_array_list *list;
    dvt_array *arrays[2];
    const char *names[] = {"1.weight", "1.bias"};
    DVT_NN_ADD(net, shared, shared);
    open_file("shared.params");
    dvt_block_initialize(net, dvt_init_one(), no_contexts());
    dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu()));
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    list = dvt_load_params(path, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 4);
    plain = dvt_nn_sequential();
    DVT_NN_ADD(plain, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(2, DVT_IDENTITY));
    CHECK_INT(dvt_block_load(plain, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(plain, 1), "weight", dvt_cpu()), 0, 1, 1, 1, 1);
    arrays[0] = dvt_full(DVT_SHAPE(2, 2), 5, DVT_F32, dvt_cpu());
    arrays[1] = dvt_full(DVT_SHAPE(2), 6, DVT_F32, dvt_cpu());
    CHECK_INT(dvt_save_params(path, arrays, names, 2), DVT_OK);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(shared, "weight", dvt_cpu()), 0, 5, 5, 5, 5);
    CHECK_VALUES(dvt_block_data(shared, "bias", dvt_cpu()), 0, 6, 6);
    remove_file();
}

/* ---- mismatches ---- */

DVT_TEST(files_missing_and_extra) {
    const entry entries[] = {{"0.weight", DVT_SHAPE(2, 3), 5},
                             {"1.weight", DVT_SHAPE(1, 2), 6},
                             {"1.bias", DVT_SHAPE(1), 7},
                             {"2.weight", DVT_SHAPE(9), 8}};
    dvt_load_options options;
    dvt_block *net = two_dense();
    memset(&options, 0, sizeof options);
    open_file("missing.params");
    write_file(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_NAME);
    error_has("Missing in the file: '0.bias' (allow_missing ignores them). Not in the net: "
              "'2.weight' (ignore_extra");
    dvt_clear_error();
    check_untouched(net);
    options.ignore_extra = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("Parameter '0.bias' is missing in file '");
    error_has("which contains parameters: '0.weight', '1.weight', '1.bias', '2.weight'. Set "
              "allow_missing of dvt_block_load_with to ignore missing parameters");
    dvt_clear_error();
    check_untouched(net);
    options.ignore_extra = false;
    options.allow_missing = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("Parameter '2.weight' loaded from file '");
    error_has("is not present in the net, which contains parameters '0.weight', '0.bias', "
              "'1.weight', '1.bias'. Set ignore_extra of dvt_block_load_with to ignore it");
    dvt_clear_error();
    check_untouched(net);
    options.ignore_extra = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()), 0, 5, 5, 5, 5, 5, 5);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu()), 0, 0, 0);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()), 0, 7);
    remove_file();
}

DVT_TEST(files_with_other_shapes_and_dtypes) {
    entry entries[] = {{"0.weight", DVT_SHAPE(2, 3), 5},
                       {"0.bias", DVT_SHAPE(2), 5},
                       {"1.weight", DVT_SHAPE(1, 2), 6},
                       {"1.bias", DVT_SHAPE(3), 7}};
    dvt_load_options options;
    dvt_block *net = two_dense();
    memset(&options, 0, sizeof options);
    open_file("shape.params");
    write_file(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_SHAPE);
    error_has("Failed loading Parameter 'dense");
    error_has("from saved params: shape incompatible expected (1,) vs saved (3,)");
    dvt_clear_error();
    check_untouched(net);
    entries[3].shape = DVT_SHAPE(1, 1);
    write_file(entries, 4, DVT_F32);
    CHECK_ERROR(dvt_block_load(net, path, no_contexts()), DVT_ERR_SHAPE);
    entries[3].shape = DVT_SHAPE(0);
    write_file(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_SHAPE);
    error_has("expected (1,) vs saved (0,)");
    dvt_clear_error();
    entries[3].shape = DVT_SHAPE(1);
    write_file(entries, 4, DVT_F64);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_DTYPE);
    error_has("dtype incompatible expected float32 vs saved float64 (0.weight in '");
    error_has("shape.params'). Set cast_dtype of dvt_block_load_with to cast the dtype of saved "
              "params");
    dvt_clear_error();
    check_untouched(net);
    options.cast_dtype = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_INT(dvt_dtype_of(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu())), DVT_F32);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()), 0, 7);
    remove_file();
}

DVT_TEST(files_errors) {
    dvt_block *net = two_dense();
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    FILE *file;
    open_file("errors.params");
    CHECK_ERROR(dvt_block_load(net, path, no_contexts()), DVT_ERR_IO);
    CHECK_ERROR(dvt_block_load(NULL, path, no_contexts()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_load(net, NULL, no_contexts()), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_save(NULL, path), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_save(net, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_save(net, "/no/such/folder/x.params"), DVT_ERR_IO);
    CHECK_ERROR(dvt_block_save(net, "net.npy"), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_block_save(net, "net.SafeTensors.index.json"), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_block_load(net, path, DVT_CONTEXTS(dvt_gpu(9))), DVT_ERR_NO_DEVICE);
    file = fopen(path, "wb");
    fputs("this is no parameter file", file);
    fclose(file);
    CHECK_ERROR(dvt_block_load(net, path, no_contexts()), DVT_ERR_FORMAT);
    CHECK_INT(dvt_save_params(path, &x, NULL, 1), DVT_OK); /* arrays without names */
    CHECK_ERROR(dvt_block_load(net, path, no_contexts()), DVT_ERR_NAME);
    check_untouched(net);
    remove_file();
}

/* When device memory runs out nothing changes, not even parameters that fit. */
DVT_TEST(files_loaded_without_device_memory) {
    dvt_block *net = ready_net(dvt_cpu()), *again = small_net();
    open_file("full.params");
    CHECK_INT(dvt_set_virtual_gpus(1, 200), DVT_OK);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    CHECK_ERROR(dvt_block_load(again, path, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0))),
                DVT_ERR_DEVICE_MEMORY);
    CHECK_ERROR(dvt_block_data(dvt_block_at(again, 0), "bias", dvt_cpu()), DVT_ERR_UNINITIALIZED);
    CHECK(dvt_param_shape(dvt_block_param(dvt_block_at(again, 2), "weight")).dim[1] == 0);
    CHECK_INT(dvt_block_load(again, path, DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    remove_file();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- every allocation fails once ---- */
static long allocations, failing, blocks_alive;

static bool fails_now(void) {
    return ++allocations == failing;
}

static void *failing_alloc(void *user, size_t bytes) {
    (void)user;
    if (fails_now())
        return NULL;
    blocks_alive++;
    return malloc(bytes);
}

static void *failing_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return fails_now() ? NULL : realloc(block, bytes);
}

static void counting_release(void *user, void *block) {
    (void)user;
    blocks_alive--;
    free(block);
}

/* Saves and loads. Afterwards the parameters must be all old or all new. */
static bool save_and_load(dvt_block *net, dvt_block *into, const char *old_file) {
    bool good = false;
    DVT_SCOPE {
        good = dvt_block_save(net, path) == DVT_OK &&
               dvt_block_load(into, path, DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1))) == DVT_OK &&
               dvt_block_load(into, old_file, DVT_CONTEXTS(dvt_cpu())) == DVT_OK;
    }
    return good;
}

DVT_TEST(files_every_allocation_fails) {
    const entry old_entries[] = {{"dense40_weight", DVT_SHAPE(2, 3), 5},
                                 {"dense40_bias", DVT_SHAPE(2), 5},
                                 {"dense41_weight", DVT_SHAPE(1, 2), 5},
                                 {"dense41_bias", DVT_SHAPE(1), 5}};
    dvt_block *net = two_dense(), *into = two_dense();
    dvt_params *params = dvt_block_collect_params(into, NULL);
    dvt_allocator allocator;
    char old_file[600];
    long at, alive;
    bool good = false;
    memset(&allocator, 0, sizeof allocator);
    allocator.alloc = failing_alloc;
    allocator.resize = failing_resize;
    allocator.release = counting_release;
    open_file("old-failing.params");
    snprintf(old_file, sizeof old_file, "%s", path);
    write_file(old_entries, 4, DVT_F32);
    open_file("failing.params");
    CHECK(save_and_load(net, into, old_file));
    dvt_set_allocator(&allocator);
    for (at = 1; at < 5000; at++) {
        double first, last;
        dvt_params_reinitialize(params, dvt_init_constant(9), DVT_CONTEXTS(dvt_cpu()));
        dvt_set_allocator(&allocator); /* frees the cached blocks, here and below */
        alive = blocks_alive;
        allocations = 0;
        failing = at;
        good = save_and_load(net, into, old_file);
        failing = 0;
        if (!good)
            dvt_test_check(dvt_error_code() == DVT_ERR_HOST_MEMORY, __FILE__, __LINE__,
                           "allocation %ld: %s", at, dvt_error());
        dvt_clear_error();
        first = dvt_item_at(dvt_param_data(dvt_params_at(params, 0), dvt_cpu()), DVT_SHAPE(0, 0));
        last = dvt_item_at(dvt_param_data(dvt_params_at(params, 2), dvt_cpu()), DVT_SHAPE(0, 1));
        CHECK_CLOSE(first, last, 0);
        dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_cpu()));
        dvt_set_allocator(&allocator);
        dvt_test_check(blocks_alive == alive, __FILE__, __LINE__,
                       "allocation %ld: %ld blocks are left", at, blocks_alive - alive);
        if (allocations < at)
            break;
    }
    dvt_set_allocator(NULL);
    CHECK(good);
    dvt_test_check(at > 50 && at < 5000, __FILE__, __LINE__, "%ld allocations", at);
    remove(path);
    CHECK(remove(old_file) == 0);
}

#elif !defined(DEVTENSOR_NO_NN)

DVT_TEST(files_left_out) {
    dvt_block *net = dvt_nn_embedding(2, 2);
    dvt_ctx_list none;
    memset(&none, 0, sizeof none);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), none), DVT_OK);
    CHECK_ERROR(dvt_block_save(net, "x.params"), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_block_load(net, "x.params", none), DVT_ERR_NOT_BUILT);
}

#endif
