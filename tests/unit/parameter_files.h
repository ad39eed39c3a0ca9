/* Helpers for tests of parameter files: a temporary path, files of given content, a net to load
   them into. */
#ifndef DVT_PARAMETER_FILES_H
#define DVT_PARAMETER_FILES_H
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES)

static char path[600];

static void open_file(const char *name) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/devtensor-test-%lld-%s", folder && *folder ? folder : "/tmp",
             (long long)(dvt_seconds() * 1e6), name);
}

static void remove_file(void) {
    CHECK(remove(path) == 0);
}

static dvt_init default_init(void) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    return init;
}

static dvt_ctx_list no_contexts(void) {
    dvt_ctx_list list;
    memset(&list, 0, sizeof list);
    return list;
}

static int error_has(const char *part) {
    return dvt_test_check(strstr(dvt_error(), part) != NULL, __FILE__, __LINE__,
                          "the error is <<%s>>, expected <<%s>> in it", dvt_error(), part);
}

typedef struct entry {
    const char *name;
    dvt_shape shape;
    double value;
} entry;

static void write_file(const entry *entries, int n, dvt_dtype dtype) {
    dvt_array *arrays[32];
    const char *names[32];
    int i;
    for (i = 0; i < n; i++) {
        arrays[i] = dvt_full(entries[i].shape, entries[i].value, dtype, dvt_cpu());
        names[i] = entries[i].name;
    }
    CHECK_INT(dvt_save_params(path, arrays, names, n), DVT_OK);
}

static dvt_block *two_dense(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_one(), no_contexts());
    dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu()));
    return net;
}

/* Checks that two_dense still has its initial values. */
static void check_untouched(dvt_block *net) {
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()), 0, 1, 1, 1, 1, 1, 1);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu()), 0, 0, 0);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "weight", dvt_cpu()), 0, 1, 1);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()), 0, 0);
}

#endif
#endif
