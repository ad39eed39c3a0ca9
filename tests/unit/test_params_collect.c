/* Tests of collections of parameters: order, sharing, and the regular expressions that select by
   name. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

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

static dvt_block *dense_in(int64_t units, int64_t in_units) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.in_units = in_units;
    return dvt_nn_dense_with(&desc);
}

static int count_matches(dvt_block *net, const char *pattern) {
    dvt_params *params = dvt_block_collect_params(net, pattern);
    return params ? dvt_params_len(params) : -1;
}

DVT_TEST(params_collect) {
    dvt_block *net = dvt_nn_sequential(), *inner = dvt_nn_sequential(), *shared = dense_in(2, 2);
    dvt_params *params;
    DVT_NN_ADD(inner, shared, dvt_nn_dropout(0.5));
    DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), inner, shared, dvt_nn_batch_norm());
    params = dvt_block_collect_params(net, NULL);
    CHECK_INT(dvt_params_len(params), 8); /* shared parameters count once */
    CHECK(strncmp(dvt_param_name(dvt_params_at(params, 0)), "conv", 4) == 0);
    CHECK(dvt_params_at(params, 2) == dvt_block_param(shared, "weight"));
    CHECK(dvt_params_at(params, 3) == dvt_block_param(shared, "bias"));
    CHECK(strstr(dvt_param_name(dvt_params_at(params, 4)), "_gamma") != NULL);
    CHECK(strstr(dvt_param_name(dvt_params_at(params, 7)), "_running_var") != NULL);
    CHECK(dvt_params_find(params, dvt_param_name(dvt_block_param(shared, "bias"))) ==
          dvt_block_param(shared, "bias"));
    CHECK_ERROR(dvt_params_find(params, "nothing"), DVT_ERR_NAME);
    CHECK_ERROR(dvt_params_find(params, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_params_at(params, 8), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_params_at(params, -1), DVT_ERR_RANGE);
    CHECK_INT(count_matches(net, ".*weight"), 2);
    CHECK_INT(count_matches(net, ".*_(weight|bias)"), 4);
    CHECK_INT(count_matches(net, "conv[0-9]+_.*|dense[0-9]+_bias"), 3);
    CHECK_INT(count_matches(net, "weight"), 0); /* a match must begin at the first character */
    CHECK_INT(count_matches(net, "batchnorm"), 4);
    CHECK_INT(count_matches(net, "batchnorm$"), 0);
    CHECK_INT(count_matches(net, ""), 8);
    CHECK_INT(count_matches(net, ".*running_"), 2);
    CHECK_ERROR(dvt_block_collect_params(NULL, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* Returns x. `matches` gives its block one parameter, named "x<number>_" and the name to match. */
static dvt_array *identity_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    return x;
}

static int matches(const char *pattern, const char *name) {
    dvt_block_desc desc;
    dvt_block *block;
    char whole[300];
    memset(&desc, 0, sizeof desc);
    desc.kind = "X";
    desc.forward = identity_forward;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, name, DVT_SHAPE(1), DVT_F32, default_init());
    snprintf(whole, sizeof whole, "x\\d+_(?:%s)", pattern);
    return count_matches(block, whole);
}

DVT_TEST(params_patterns) {
    static const struct {
        const char *pattern, *name;
        int found;
    } cases[] = {
        {"", "abc", 1},
        {"abc", "abc", 1},
        {"ab", "abc", 1},
        {"abd", "abc", 0},
        {"a.c", "abc", 1},
        {"ab*c", "ac", 1},
        {"ab*c", "abbbc", 1},
        {"ab+c", "ac", 0},
        {"ab+c", "abbc", 1},
        {"ab?c$", "abc", 1},
        {"ab?c$", "abbc", 0},
        {"a|b", "b", 1},
        {"(a|b)+$", "abba", 1},
        {"(a|b)+$", "abca", 0},
        {"(a|)b", "b", 1},
        {"[abc]+$", "cab", 1},
        {"[^abc]", "a", 0},
        {"[^abc]", "d", 1},
        {"[a-c]x", "bx", 1},
        {"[]x]y", "xy", 1},
        {"[a-]b", "-b", 1},
        {"[@-Z]$", "@", 1},
        {"[@-Z]$", "Z", 1},
        {"[@-Z]$", "?", 0},
        {"[@-Z]$", "[", 0},
        {"[@]$", "@", 1},
        {"[?-@]$", "@", 1},
        {"[?-@]$", "A", 0},
        {"[^@]$", "@", 0},
        {"[\\@-\\[]$", "@", 1},
        {"[`-b]$", "`", 1},
        {"[/-0]$", "/", 1},
        {"\\@$", "@", 1},
        {"\\.", "a", 0},
        {"a\\*", "a*", 1},
        {"\\w+$", "a_9", 1},
        {"\\w+$", "a-9", 0},
        {"\\D$", "5", 0},
        {"[\\d_]+$", "4_2", 1},
        {"a$b", "ab", 0},
        {"(a*)*$", "aaaa", 1},
        {"(a*)*b", "aaaa", 0},
        {"a*?b", "aab", 1},
        {"(ab|a)(bc|c)$", "abc", 1},
        {"(((a)))", "a", 1},
        {"()*a", "a", 1},
        {"a||b", "c", 1},
        {"x*$", "xxxx", 1},
        {"(x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0},
    };

    static const char *const bad[] = {"(",  ")",   "a)",    "(a",  "[",     "[a",
                                      "*a", "+",   "a**",   "a|*", "[b-a]", "a{2}",
                                      "\\", "\\q", "(?=a)", "^*",  "a+*",   "[\\q]"};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        dvt_test_check(matches(cases[i].pattern, cases[i].name) == cases[i].found, __FILE__,
                       __LINE__, "pattern %s on %s: expected %d", cases[i].pattern, cases[i].name,
                       cases[i].found);
    CHECK_INT(count_matches(dense_in(1, 1), "^dense"), 2);
    CHECK_INT(count_matches(dense_in(1, 1), "d^ense"), 0);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(dvt_block_collect_params(dense_in(1, 1), bad[i]) == NULL);
        dvt_test_check(dvt_error_code() == DVT_ERR_VALUE, __FILE__, __LINE__, "pattern %s gave %s",
                       bad[i], dvt_error());
        dvt_clear_error();
    }
}

DVT_TEST(params_outlive_their_net) {
    dvt_params *params = NULL;
    DVT_SCOPE {
        dvt_block *net = dense_in(1, 2);
        dvt_block_initialize(net, dvt_init_one(), no_contexts());
        params = dvt_keep(dvt_block_collect_params(net, NULL));
    }
    CHECK_VALUES(dvt_param_data(dvt_params_at(params, 0), dvt_cpu()), 0, 1, 1);
}

#endif
