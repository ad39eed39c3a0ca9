/* Names of parameters in files: for any names, loading changes all parameters or none. The input: a
   byte of options and of the order of shapes, then the names, one per line. */
#include "fuzz.h"

static int lines(const uint8_t *data, size_t size, char *text, const char **name, int most) {
    int n = 0;
    char *end;
    memcpy(text, data, size);
    text[size] = 0;
    for (; n < most && *text; text = end) {
        end = text + strcspn(text, "\n");
        end += *end ? (*end = 0, 1) : 0;
        name[n++] = text;
    }
    return n;
}

static double sum_of(dvt_params *params) {
    double sum = 0;
    int i;
    for (i = 0; i < dvt_params_len(params); i++)
        sum += dvt_item(dvt_sum(dvt_param_data(dvt_params_at(params, i), dvt_cpu()), DVT_ALL));
    return sum;
}

DVT_FUZZ(names) {
    const char *name[12];
    char text[512];
    const char *path;
    static const uint8_t nothing[1] = {0};
    if (size < 2 || size > sizeof text)
        return 0;
    fuzz_begin();
    path = fuzz_file(nothing, 0);
    DVT_SCOPE {
        dvt_block *net = dvt_nn_sequential();
        dvt_array *arrays[12];
        dvt_params *params;
        dvt_load_options options;
        dvt_ctx_list none;
        int n = lines(data + 1, size - 1, text, name, 12), i;
        memset(&none, 0, sizeof none);
        memset(&options, 0, sizeof options);
        options.allow_missing = (data[0] & 1) != 0;
        options.ignore_extra = (data[0] & 2) != 0;
        DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(2, DVT_IDENTITY));
        for (i = 0; i < n; i++) /* weights and biases alternate, or all of one kind */
            arrays[i] = (i + data[0] / 4) % 2 && !(data[0] & 8)
                            ? dvt_full(DVT_SHAPE(2), 1 + i, DVT_F32, dvt_cpu())
                            : dvt_full(DVT_SHAPE(2, 2), 1 + i, DVT_F32, dvt_cpu());
        FUZZ_CHECK(dvt_block_initialize(net, dvt_init_constant(0.5), none) == DVT_OK);
        FUZZ_CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu())) != NULL);
        params = dvt_block_collect_params(net, NULL);
        /* From a file descriptor, at its beginning. */
        if (*path && n && dvt_save_params(path, arrays, name, n) == DVT_OK) {
            double before = sum_of(params);
            dvt_status status = dvt_block_load_with(net, path, &options, none);
            FUZZ_CHECK(status == DVT_OK || status == DVT_ERR_NAME || status == DVT_ERR_SHAPE ||
                       status == DVT_ERR_HOST_MEMORY);
            dvt_clear_error();
            FUZZ_CHECK(status == DVT_OK || sum_of(params) == before);
        } else
            FUZZ_CHECK(!*path || !n || dvt_error_code() == DVT_ERR_NAME);
    }
    fuzz_end();
    return 0;
}
