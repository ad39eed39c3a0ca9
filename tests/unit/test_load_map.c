/* Tests of networks that load files of other formats and other names: maps of names, tied weights,
   one error for everything that does not fit. */
#include "dvt_golden.h"
#include "parameter_files.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES)

static void write_safetensors(const entry *entries, int n, dvt_dtype dtype) {
    dvt_array *arrays[16];
    const char *names[16];
    int i;
    for (i = 0; i < n; i++) {
        arrays[i] = dvt_full(entries[i].shape, entries[i].value, dtype, dvt_cpu());
        names[i] = entries[i].name;
    }
    CHECK_INT(dvt_save_safetensors(path, arrays, names, n, NULL), DVT_OK);
}

static dvt_load_options with_map(const char *const *map) {
    dvt_load_options options;
    memset(&options, 0, sizeof options);
    options.map = map;
    return options;
}

static double first_of(dvt_block *net, int layer, const char *name) {
    return dvt_item(dvt_max(dvt_block_data(dvt_block_at(net, layer), name, dvt_cpu()), DVT_ALL));
}

DVT_TEST(files_of_nets_as_safetensors) {
    dvt_block *net = two_dense(), *again = dvt_nn_sequential();
    dvt_array_list *list;
    open_file("net.safetensors");
    dvt_fill(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()), 3);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    list = dvt_load_safetensors(path, dvt_cpu());
    CHECK_INT(dvt_array_list_len(list), 4);
    CHECK_STR(dvt_array_list_name(list, 0), "0.weight");
    DVT_NN_ADD(again, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(1, DVT_IDENTITY));
    CHECK_INT(dvt_block_load(again, path, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(again, 0), "weight", dvt_cpu()), 0, 3, 3, 3, 3, 3, 3);
    remove_file();
    open_file("net.gguf");
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    CHECK_INT(dvt_array_list_len(dvt_load_gguf(path, dvt_cpu())), 4);
    CHECK_INT(dvt_block_load(again, path, no_contexts()), DVT_OK);
    remove_file();
    open_file("net.weights"); /* another end: .params */
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    CHECK_INT(dvt_array_list_len(dvt_load_params(path, dvt_cpu())), 4);
    CHECK_INT(dvt_block_load(again, path, no_contexts()), DVT_OK);
    remove_file();
}

/* A file with one tensor, "bias" of float16. The rest of the net keeps its values. Made by Python:
   b"GGUF" + pack("<IQQ", 3, 1, 0) + pack("<Q", 4) + b"bias" + pack("<IQIQ", 1, 2, 1, 0) + padding
   to 64 bytes + pack("<HH", 0x3e00, 0xc000) */
DVT_TEST(files_of_nets_as_gguf) {
    static const char hex[] =
        "47475546030000000100000000000000000000000000000004000000000000006269617301000000"
        "020000000000000001000000000000000000000000000000003e00c0";
    static const char *const map[] = {"bias", "0.bias", NULL};
    dvt_load_options options = with_map(map);
    dvt_block *net = two_dense();
    size_t n;
    unsigned char *bytes = golden_bytes(hex, &n);
    open_file("net.gguf");
    CHECK(golden_write(path, bytes, n));
    free(bytes);
    options.allow_missing = true;
    CHECK_ERROR(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_DTYPE);
    check_untouched(net);
    options.cast_dtype = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu()), 0, 1.5, -2);
    remove_file();
}

DVT_TEST(files_with_mapped_names) {
    const entry entries[] = {{"encoder.weight", DVT_SHAPE(2, 3), 5},
                             {"encoder.bias", DVT_SHAPE(2), 6},
                             {"head.w", DVT_SHAPE(1, 2), 7},
                             {"1.bias", DVT_SHAPE(1), 8},
                             {"norm.num_batches_tracked", DVT_SHAPE(1), 9}};
    static const char *const map[] = {"encoder.*", "0.*", "head.w", "1.weight",
                                      "*_tracked", "",    NULL};
    dvt_load_options options = with_map(map);
    dvt_block *net = two_dense();
    open_file("mapped.safetensors");
    write_safetensors(entries, 5, DVT_F32);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_CLOSE(first_of(net, 0, "weight"), 5, 0);
    CHECK_CLOSE(first_of(net, 0, "bias"), 6, 0);
    CHECK_CLOSE(first_of(net, 1, "weight"), 7, 0);
    CHECK_CLOSE(first_of(net, 1, "bias"), 8, 0);
    remove_file();
}

/* One array sets two parameters. A * matches the empty text, and text in the middle. */
DVT_TEST(files_with_tied_weights) {
    const entry entries[] = {{"w", DVT_SHAPE(3, 3), 5}, {"b.x.bias", DVT_SHAPE(3), 6}};
    static const char *const map[] = {"w*",     "0.weight*", "w",      "1.weight", "b.*.bias",
                                      "0.bias", "b.x*bias",  "1*bias", NULL};
    dvt_load_options options = with_map(map);
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(3, DVT_IDENTITY), dvt_nn_dense(3, DVT_IDENTITY));
    open_file("tied.safetensors");
    write_safetensors(entries, 2, DVT_F32);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_CLOSE(first_of(net, 0, "weight"), 5, 0);
    CHECK_CLOSE(first_of(net, 1, "weight"), 5, 0);
    CHECK_CLOSE(first_of(net, 0, "bias"), 6, 0);
    CHECK_CLOSE(first_of(net, 1, "bias"), 6, 0);
    remove_file();
}

DVT_TEST(files_with_wrong_maps) {
    const entry entries[] = {{"a.weight", DVT_SHAPE(2, 3), 5},
                             {"b.weight", DVT_SHAPE(2, 3), 6},
                             {"0.bias", DVT_SHAPE(2), 6},
                             {"1.weight", DVT_SHAPE(1, 2), 7},
                             {"1.bias", DVT_SHAPE(1), 8}};
    static const char *const both[] = {"*.weight", "0.weight", NULL};
    static const char *const odd[] = {"a", NULL}, *const stars[] = {"*.*", "0.*", NULL};
    static const char *const more[] = {"a.*", "0.**", NULL}, *const lone[] = {"a", "0.*", NULL};
    const char *const *const bad[] = {odd, stars, more, lone};
    dvt_load_options options = with_map(both);
    dvt_block *net = two_dense();
    int i;
    open_file("wrong-map.safetensors");
    write_safetensors(entries, 5, DVT_F32);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("the map gives '0.weight' both 'a.weight' and 'b.weight'");
    dvt_clear_error();
    for (i = 0; i < 4; i++) {
        options.map = bad[i];
        CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_VALUE);
        error_has("expected at most one * in each name. The second name may have one only if");
        dvt_clear_error();
    }
    check_untouched(net);
    remove_file();
}

static char warned[600];

static void keep_warning(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", message);
}

/* Pairs that set nothing, alone and with other faults. */
DVT_TEST(files_with_idle_pairs) {
    const entry entries[] = {{"0.weight", DVT_SHAPE(2, 3), 5},
                             {"0.bias", DVT_SHAPE(2), 6},
                             {"1.weight", DVT_SHAPE(1, 2), 7},
                             {"1.bias", DVT_SHAPE(1), 8}};
    const entry renamed[] = {{"encoder.weight", DVT_SHAPE(2, 3), 5}};
    static const char *const typo[] = {"encodr.*", "0.*", "encoder.bias*", "0.bias", NULL};
    static const char *const target[] = {"0.weight", "0.weight", "0.weight", "1.wieght", NULL};
    static const char *const leaves[] = {"*_tracked", "", NULL};
    dvt_load_options options = with_map(typo);
    dvt_block *net = two_dense();
    open_file("idle.safetensors");
    write_safetensors(renamed, 1, DVT_F32);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("Missing in the file: '0.weight', '0.bias', '1.weight'");
    error_has("Not in the net: 'encoder.weight' (");
    error_has("Pairs of the map that set nothing: 'encodr.*' as '0.*', 'encoder.bias*' as "
              "'0.bias' (allow_missing");
    dvt_clear_error();
    write_safetensors(entries, 4, DVT_F32);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("dvt_block_load_with: The map's pairs 'encodr.*' as '0.*', 'encoder.bias*' as "
              "'0.bias' set nothing. ");
    error_has("contains parameters: '0.weight', '0.bias'");
    dvt_clear_error();
    options.ignore_extra = true; /* ignores other pairs */
    CHECK_ERROR(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    options.ignore_extra = false;
    options.map = target;
    options.allow_missing = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_NAME);
    error_has("The map's pair '0.weight' as '1.wieght' sets nothing. ");
    dvt_clear_error();
    check_untouched(net);
    /* ignored pairs are a warning, those that leave arrays out are none */
    dvt_set_logger(keep_warning, NULL);
    options.map = leaves;
    options.allow_missing = false;
    warned[0] = 0;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_STR(warned, "");
    options.map = typo;
    options.allow_missing = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK(strstr(warned, "pairs 'encodr.*' as '0.*', 'encoder.bias*' as '0.bias' set nothing") !=
          NULL);
    options.map = target;
    options.allow_missing = false;
    options.ignore_extra = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK(strstr(warned, "pair '0.weight' as '1.wieght' sets nothing") != NULL);
    dvt_set_logger(NULL, NULL);
    CHECK_CLOSE(first_of(net, 0, "weight"), 5, 0);
    remove_file();
}

/* Everything that does not fit is in one error. */
DVT_TEST(files_with_many_faults) {
    const entry entries[] = {{"0.weight", DVT_SHAPE(3, 3), 5},
                             {"0.bias", DVT_SHAPE(3), 5},
                             {"decoder.weight", DVT_SHAPE(2), 6},
                             {"decoder.bias", DVT_SHAPE(2), 6}};
    dvt_load_options options = with_map(NULL);
    dvt_block *net = two_dense();
    open_file("faults.safetensors");
    write_safetensors(entries, 4, DVT_F64);
    CHECK_INT(dvt_block_load(net, path, no_contexts()), DVT_ERR_NAME);
    error_has("Missing in the file: '1.weight', '1.bias' (allow_missing");
    error_has("Not in the net: 'decoder.weight', 'decoder.bias' (ignore_extra");
    error_has("Other shapes: '0.weight' expected (2, 3) vs saved (3, 3), '0.bias' expected (2,) vs "
              "saved (3,).");
    error_has("Other dtypes: '0.weight', '0.bias' (cast_dtype");
    dvt_clear_error();
    options.allow_missing = options.ignore_extra = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_SHAPE);
    error_has("Other dtypes");
    dvt_clear_error();
    options.cast_dtype = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_ERR_SHAPE);
    error_has("shape incompatible expected (2, 3) vs saved (3, 3)");
    error_has("All: '0.weight' expected (2, 3) vs saved (3, 3), '0.bias' expected");
    dvt_clear_error();
    check_untouched(net);
    remove_file();
}

static char logged[600];

static void keep_message(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING)
        snprintf(logged, sizeof logged, "%s", message);
}

/* A load that options make partial logs what it has left out; a whole one logs nothing. */
DVT_TEST(partial_loads_say_what_is_left_out) {
    const entry some[] = {{"0.weight", DVT_SHAPE(2, 3), 5}, {"decoder.bias", DVT_SHAPE(2), 6}};
    dvt_load_options options = with_map(NULL);
    dvt_block *net = two_dense();
    open_file("partial.safetensors");
    write_safetensors(some, 2, DVT_F32);
    options.allow_missing = options.ignore_extra = true;
    dvt_set_logger(keep_message, NULL);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK(strstr(logged, "partial.safetensors' was loaded in part; 3 parameters without an array: "
                         "'0.bias', '1.weight', '1.bias'; 1 array without a parameter: "
                         "'decoder.bias'") != NULL);
    *logged = 0;
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    CHECK_INT(dvt_block_load_with(net, path, &options, no_contexts()), DVT_OK);
    CHECK_STR(logged, "");
    dvt_set_logger(NULL, NULL);
    remove_file();
}

/* Unknown extents are question marks, and renamed arrays have both names. */
DVT_TEST(load_faults_show_maps_and_unknown_extents) {
    static const char *const map[] = {"encoder.*", "9.*", NULL};
    const entry entries[] = {{"0.weight", DVT_SHAPE(3, 3), 5}, {"0.bias", DVT_SHAPE(3), 5}};
    const entry mapped[] = {{"encoder.weight", DVT_SHAPE(2, 3), 5}};
    dvt_load_options options = with_map(map);
    dvt_block *net = dvt_nn_sequential();
    CHECK(DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY)) == DVT_OK);
    open_file("unknown.safetensors");
    write_safetensors(entries, 2, DVT_F32);
    CHECK_INT(dvt_block_load(net, path, DVT_CONTEXTS(dvt_cpu())), DVT_ERR_SHAPE);
    error_has("shape incompatible expected (2, ?) vs saved (3, 3)");
    error_has("where ? is any extent above 0");
    dvt_clear_error();
    write_safetensors(mapped, 1, DVT_F32);
    options.allow_missing = true;
    CHECK_INT(dvt_block_load_with(net, path, &options, DVT_CONTEXTS(dvt_cpu())), DVT_ERR_NAME);
    error_has("'encoder.weight' as '9.weight'");
    dvt_clear_error();
    remove_file();
}

/* Names in lists are whole, and a list that is cut says how long it is. */
DVT_TEST(load_faults_cut_lists_between_names) {
    static const char *const map[] = {"features.*", "*", NULL};
    const entry entries[] = {{"features.1.num_batches_tracked", DVT_SHAPE(1), 1},
                             {"features.1.running_mean", DVT_SHAPE(2), 1},
                             {"features.1.running_var", DVT_SHAPE(2), 1},
                             {"features.1.weight_before_the_norm", DVT_SHAPE(2), 1},
                             {"features.1.bias_before_the_norm", DVT_SHAPE(2), 1}};
    dvt_load_options options = with_map(map);
    dvt_block *net = dvt_nn_sequential();
    int i;
    CHECK(DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_batch_norm()) == DVT_OK);
    open_file("norm.safetensors");
    for (i = 1; i <= 5; i += 4) {
        write_safetensors(entries, i, DVT_F32);
        CHECK_INT(dvt_block_load_with(net, path, &options, DVT_CONTEXTS(dvt_cpu())), DVT_ERR_NAME);
        error_has("'features.1.num_batches_tracked' as '1.num_batches_tracked'");
        error_has(i == 1 ? "tracked' (ignore_extra" : "the_norm', ... (3 in all) (ignore_extra");
        error_has("same layers"); /* the whole sentence */
        dvt_clear_error();
    }
    remove_file();
}

/* ---- every allocation fails once ---- */
static long allocations_left;

static void *failing_alloc(void *user, size_t bytes) {
    (void)user;
    return allocations_left-- == 0 ? NULL : malloc(bytes);
}

static void *failing_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return allocations_left-- == 0 ? NULL : realloc(block, bytes);
}

static void failing_release(void *user, void *block) {
    (void)user;
    free(block);
}

DVT_TEST(files_mapped_every_allocation_fails) {
    const entry entries[] = {{"w", DVT_SHAPE(2, 3), 5}, {"b", DVT_SHAPE(2), 5}};
    static const char *const map[] = {"w", "0.weight", "b*", "0.bias*", NULL};
    dvt_allocator failing = {failing_alloc, failing_resize, failing_release, NULL};
    dvt_load_options options = with_map(map);
    dvt_block *net = two_dense();
    dvt_status status = DVT_ERR_INTERNAL;
    long n;
    options.allow_missing = true;
    open_file("failing-map.safetensors");
    write_safetensors(entries, 2, DVT_F32);
    for (n = 0; n < 1000 && status != DVT_OK; n++) {
        allocations_left = n;
        dvt_set_allocator(&failing);
        DVT_SCOPE {
            status = dvt_block_load_with(net, path, &options, no_contexts());
        }
        dvt_set_allocator(NULL);
        CHECK(status == DVT_OK || status == DVT_ERR_HOST_MEMORY);
        dvt_clear_error();
        CHECK_CLOSE(first_of(net, 0, "weight"), status == DVT_OK ? 5 : 1, 0);
    }
    CHECK(n > 30 && n < 1000);
    remove_file();
}

#endif
