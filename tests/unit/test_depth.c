/* Tests that recursion is bounded: the library refuses deeply nested input or handles it with a
   loop, also in threads with a small stack. */
#include "dvt_test.h"
#include <limits.h>
#include <setjmp.h>
#include <string.h>
#if !defined(DEVTENSOR_NO_NN)
#if !defined(DEVTENSOR_NO_THREADS) && !defined(_WIN32) && !DVT_TEST_ASAN && !DVT_TEST_TSAN
#include <pthread.h>
#define SMALL_STACKS 1
#endif

static void *run(void *user) {
    void (*body)(void) = *(void (**)(void))user;
    body();
    return NULL;
}

/* Runs body in a thread with a stack of that size, or of the system's minimum if that is larger. */
static void in_thread_of(size_t kilobytes, void (*body)(void)) {
#if defined(SMALL_STACKS)
    pthread_attr_t attributes;
    pthread_t thread;
    size_t size = kilobytes << 10;
    bool started;
    pthread_attr_init(&attributes);
    while (pthread_attr_setstacksize(&attributes, size) != 0 && size < 1 << 20)
        size *= 2;
    started = pthread_create(&thread, &attributes, run, &body) == 0;
    CHECK(started);
    if (started)
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
#else
    (void)kilobytes;
    run(&body);
#endif
}

/* ---- patterns ---- */
static dvt_block *small_net(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY));
    return net;
}

static void many_alternatives(void) {
    enum { COUNT = 4900 };

    static char pattern[2 * COUNT + 40];
    dvt_block *net = small_net();
    char name[64];
    int i;
    snprintf(name, sizeof name, "%s",
             dvt_param_name(dvt_block_param(dvt_block_at(net, 0), "bias")));
    for (i = 0; i < COUNT; i++)
        memcpy(pattern + 2 * i, "x|", 2);
    snprintf(pattern + 2 * COUNT, 40, "%s", name);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, pattern)), 1);
    memset(pattern, '|', 2 * COUNT);
    pattern[2 * COUNT] = 0;
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, pattern)),
              2); /* the empty alternative matches every name */
    for (i = 0; i < 2000; i++)
        memcpy(pattern + 3 * i, "()|", 3);
    snprintf(pattern + 6000, 40, "q");
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, pattern)), 2);
}

DVT_TEST(depth_of_alternatives) {
    static const char *const matched[] = {"dense.*(bias|none)",      "x|y|dense.*_bias",
                                          "(x|y|dense).*(a|b)ias",   ".*(w|b)(eight|ias)x|.*bias",
                                          "(((x|y)|z)|dense.*)bias", "(x|y|)dense.*bias|",
                                          "(x|dense)+.*bias|y"};
    dvt_block *net = small_net();
    int i;
    in_thread_of(64, many_alternatives);
    for (i = 0; i < 7; i++)
        CHECK(dvt_params_len(dvt_block_collect_params(net, matched[i])) >= 1);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, "x|y|z|(a|b|c)|dense$")), 0);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, "(x|y)?dense\\d+_(bias|q)|w")), 1);
}

/* ---- blocks ---- */
/* Nests up to n blocks until one is refused. Returns the innermost; the error remains set. */
static dvt_block *nest_outside_in(dvt_block *net, int n, int *depth) {
    dvt_block *inner = net;
    for (*depth = 0; *depth < n; ++*depth) {
        dvt_block *next = dvt_nn_sequential();
        if (dvt_block_add_child(inner, next) != DVT_OK)
            break;
        inner = next;
    }
    return inner;
}

static void check_refused(void) {
    CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
    CHECK(strstr(dvt_error(), "nested more than 100 deep") != NULL);
    dvt_clear_error();
}

/* Calls the functions that walk over blocks, on the deepest possible nesting. */
static void use_deepest(void) {
    dvt_block *net = dvt_nn_sequential(), *inner;
    int depth;
    char text[64];
    inner = nest_outside_in(net, 100000, &depth);
    CHECK_INT(depth, 100);
    check_refused();
    CHECK_INT(dvt_block_add_child(inner, dvt_nn_dense(2, DVT_IDENTITY)), DVT_ERR_VALUE);
    check_refused();
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, NULL)), 0);
    CHECK(dvt_block_format(net, text, sizeof text) > 100);
    dvt_discard(net);
}

static void run_deep(void) {
    dvt_block *net = dvt_nn_sequential(), *inner;
    int depth;
    char text[64];
    inner = nest_outside_in(net, 99, &depth); /* and one more: the maximum depth of blocks */
    CHECK_INT(depth, 99);
    CHECK_INT(dvt_block_add_child(inner, dvt_nn_dense(2, DVT_IDENTITY)), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu())), 0, 3, 3);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, NULL)), 2);
    CHECK(dvt_block_format(net, text, sizeof text) > 100);
}

DVT_TEST(depth_of_blocks) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY), *other;
    int i, depth;
    in_thread_of(64, use_deepest);
    in_thread_of(256, run_deep);   /* a product alone needs 63 KiB with clang -O3 */
    for (i = 0; i < 100000; i++) { /* builds the nesting from the inside */
        other = dvt_nn_sequential();
        if (dvt_block_add_child(other, net) != DVT_OK)
            break;
        net = other;
    }
    CHECK_INT(i, 100);
    check_refused();
    /* Two nestings of 60 levels exceed the limit together; the failed call changes nothing. */
    net = dvt_nn_sequential();
    other = dvt_nn_sequential();
    nest_outside_in(other, 60, &depth);
    CHECK_INT(dvt_block_add_child(nest_outside_in(net, 60, &depth), other), DVT_ERR_VALUE);
    check_refused();
    CHECK_INT(dvt_block_add_child(net, other), DVT_OK);
    /* Cycles are refused. A shared block is visited once, not once for each path to it. */
    CHECK_ERROR(dvt_block_add_child(dvt_block_at(other, 0), net), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_block_add_child(net, net), DVT_ERR_VALUE);
    net = dvt_nn_sequential();
    for (i = 0; i < 60; i++) {
        other = dvt_nn_sequential();
        DVT_NN_ADD(other, net, net);
        net = other;
    }
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(dvt_block_len(net), 2);
}

static dvt_array *forward_recurses(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_block_forward(self, dvt_add_scalar(x, 1));
}

static void forward_without_end(void) {
    dvt_block_desc desc;
    dvt_block *net;
    int round;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Endless";
    desc.forward = forward_recurses;
    net = dvt_block_new(&desc);
    for (round = 0; round < 2; round++) {
        DVT_SCOPED;
        CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu())) == NULL);
        CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
        CHECK(strstr(dvt_error(), "Endless") != NULL && strstr(dvt_error(), "100 deep") != NULL);
        dvt_clear_error();
    }
}

/* A longjmp of the host program, or a C++ exception, leaves a forward that then never returns. */
#if !defined(_WIN32)
static jmp_buf left_by;

static dvt_array *jumps_out(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    longjmp(left_by, 1);
}

DVT_TEST(depth_of_forward_left_by_longjmp) {
    static volatile int i;
    dvt_block_desc desc;
    dvt_block *jumper, *net = small_net();
    memset(&desc, 0, sizeof desc);
    desc.kind = "Jumper";
    desc.forward = jumps_out;
    jumper = dvt_block_new(&desc);
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    for (i = 0; i < 250; i++) {
        dvt_scope_guard scope = dvt_scope_begin();
        if (setjmp(left_by) == 0)
            dvt_block_forward(jumper, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu()));
        dvt_scope_end(&scope);
    }
    CHECK_VALUES(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu())), 0, 3, 3);
    CHECK(dvt_ones(DVT_SHAPE(-1), DVT_F32, dvt_cpu()) == NULL);
    CHECK(strstr(dvt_error(), "Jumper") == NULL);
    dvt_clear_error();
}
#endif

DVT_TEST(depth_of_forward) {
    forward_without_end();
    in_thread_of(256, forward_without_end);
}

/* ---- data ---- */
static dvt_array *applies_itself(void *user, dvt_array *x) {
    return dvt_transform_apply(*(dvt_transform **)user, x);
}

DVT_TEST(depth_of_transforms) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_transform *endless = NULL;
    endless = dvt_transform_new(applies_itself, &endless);
    CHECK_ERROR(dvt_transform_apply(endless, x), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_transform_apply(endless, x), DVT_ERR_VALUE);
    CHECK_VALUES(dvt_transform_apply(dvt_transform_compose(NULL, 0), x), 0, 1, 1);
}

DVT_TEST(depth_of_data) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *a, *b;
    dvt_dataset *data = dvt_dataset_arrays(x, x), *next;
    dvt_transform *transform = dvt_transform_compose(NULL, 0), *outer;
    int i;
    for (i = 0; (outer = dvt_transform_compose(&transform, 1)) != NULL; i++)
        transform = outer;
    CHECK_INT(i, 100);
    check_refused();
    CHECK_VALUES(dvt_transform_apply(transform, x), 0, 1, 1);
    for (i = 0; (next = dvt_dataset_transform_first(data, transform)) != NULL; i++)
        data = next;
    CHECK_INT(i, 100);
    CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(dvt_dataset_get(data, 1, &a, &b), DVT_OK);
    CHECK_VALUES(a, 0, 1);
}
#endif

/* Makes a chain of 4000 gradients of gradients. A loop frees it, also when the tape holds it. */
static void many_gradients(void) {
    int held, i;
    for (held = 0; held < 2; held++)
        DVT_SCOPE {
            dvt_array *x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu()), *y = x, *last = x;
            DVT_MODE_SCOPE(held ? DVT_ON : DVT_OFF, DVT_OFF) {
                for (i = 0; i < 4000; i++) {
                    DVT_SCOPED;
                    if (dvt_attach_grad(y, DVT_GRAD_WRITE) != DVT_OK)
                        return;
                    if (held)
                        last = (dvt_array *)dvt_keep(dvt_add(last, y));
                    y = dvt_grad(y);
                }
            }
            CHECK(y != NULL);
            dvt_discard(x);
        }
}

DVT_TEST(depth_of_gradients) {
    int64_t before = dvt_get_stats().arrays;
    many_gradients();
#if defined(SMALL_STACKS)
    in_thread_of(64, many_gradients);
#endif
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(dvt_get_stats().arrays, before);
}
