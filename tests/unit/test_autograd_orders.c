/* Further tests of the backward pass: gradients of chosen variables, higher orders, exhausted
   memory, long graphs, threads. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

static dvt_array *leaf(double value, dvt_grad_req req) {
    dvt_array *x = dvt_full(DVT_SHAPE(2), value, DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_attach_grad(x, req), DVT_OK);
    return x;
}

/* ---- gradients of chosen variables ---- */
DVT_TEST(autograd_gradients_of_variables) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *w = leaf(2, DVT_GRAD_WRITE);
    dvt_array *unused = leaf(1, DVT_GRAD_WRITE), *y = NULL, *mid = NULL, *vars[5], *out[5];
    DVT_RECORD {
        mid = dvt_square(x);
        y = dvt_mul(mid, w);
    }
    vars[0] = x;
    vars[1] = mid;
    vars[2] = unused;
    vars[3] = x;
    vars[4] = y;
    CHECK_INT(dvt_gradients(&y, NULL, 1, vars, 5, DVT_RETAIN_GRAPH, out), DVT_OK);
    CHECK_VALUES(out[0], 1e-12, 12, 12);
    CHECK_VALUES(out[1], 1e-12, 2, 2);
    CHECK_VALUES(out[2], 0, 0, 0);
    CHECK_VALUES(out[3], 1e-12, 12, 12);
    CHECK_VALUES(out[4], 0, 1, 1);
    CHECK(!dvt_shares_memory(out[0], out[3]));
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
    CHECK_VALUES(dvt_grad(w), 0, 0, 0);
    CHECK_INT(dvt_gradients(&y, NULL, 1, &w, 1, DVT_FREE_GRAPH, out), DVT_OK);
    CHECK_VALUES(out[0], 1e-12, 9, 9);
}

DVT_TEST(autograd_gradients_belong_to_the_callers_scope) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL, *out = NULL, *g;
    DVT_RECORD {
        y = dvt_add_scalar(x, 1);
    }
    g = dvt_full(DVT_SHAPE(2), 4, DVT_F64, dvt_test_ctx());
    DVT_SCOPE {
        CHECK_INT(dvt_gradients(&y, &g, 1, &x, 1, DVT_FREE_GRAPH, &out), DVT_OK);
        CHECK(!dvt_shares_memory(out, g)); /* the head gradient passed through unchanged */
        dvt_keep(out);
    }
    CHECK_VALUES(out, 0, 4, 4);
}

DVT_TEST(autograd_gradients_of_a_variable_read_only_its_subgraph) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *w = leaf(2, DVT_GRAD_WRITE), *y = NULL, *out = NULL;
    DVT_RECORD {
        y = dvt_add(dvt_square(x), dvt_square(w));
    }
    dvt_fill(w, 7); /* only the gradient of w reads it */
    CHECK_INT(dvt_gradients(&y, NULL, 1, &x, 1, DVT_RETAIN_GRAPH, &out), DVT_OK);
    CHECK_VALUES(out, 0, 6, 6);
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, &w, 1, DVT_RETAIN_GRAPH, &out), DVT_ERR_GRAD);
    CHECK_VALUES(out, 0, 6, 6); /* a failing call leaves `out` unchanged */
}

DVT_TEST(autograd_errors_of_gradients) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *c = dvt_ones(DVT_SHAPE(2), DVT_F64, dvt_test_ctx());
    dvt_array *y = NULL, *out = NULL, *none = NULL;
    DVT_RECORD {
        y = dvt_mul(x, c);
    }
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, &c, 1, DVT_RETAIN_GRAPH, &out), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_gradients(&c, NULL, 1, &x, 1, DVT_RETAIN_GRAPH, &out), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, &x, 0, DVT_RETAIN_GRAPH, &out), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_gradients(&y, NULL, 0, &x, 1, DVT_RETAIN_GRAPH, &out), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, NULL, 1, DVT_RETAIN_GRAPH, &out), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, &x, 1, DVT_RETAIN_GRAPH, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_gradients(&y, NULL, 1, &none, 1, DVT_RETAIN_GRAPH, &out),
                DVT_ERR_NULL_ARGUMENT);
    CHECK(out == NULL);
    CHECK_INT(dvt_gradients(&y, NULL, 1, &x, 1, DVT_RETAIN_GRAPH, &out), DVT_OK);
}

/* ---- higher orders ---- */
DVT_TEST(autograd_derivatives_up_to_fourth_order) {
    dvt_array *x = leaf(2, DVT_GRAD_WRITE), *y = NULL, *next = NULL;
    const double expected[] = {4 * 8, 12 * 4, 24 * 2, 24};
    int order;
    DVT_RECORD {
        y = dvt_pow_scalar(x, 4);
    }
    for (order = 0; order < 4; order++) {
        CHECK_INT(dvt_gradients(&y, NULL, 1, &x, 1, DVT_CREATE_GRAPH, &next), DVT_OK);
        CHECK_VALUES(next, 1e-9, expected[order], expected[order]);
        y = next;
    }
    CHECK(!dvt_is_recording());
}

DVT_TEST(autograd_gradients_use_the_history_of_results) {
    dvt_array *x = leaf(0.5, DVT_GRAD_WRITE), *y = NULL, *first = NULL, *second = NULL;
    DVT_RECORD { /* the gradients of exp and tanh use their results */
        y = dvt_tanh(dvt_exp(x));
    }
    CHECK_INT(dvt_gradients(&y, NULL, 1, &x, 1, DVT_CREATE_GRAPH, &first), DVT_OK);
    CHECK_INT(dvt_gradients(&first, NULL, 1, &x, 1, DVT_FREE_GRAPH, &second), DVT_OK);
    {
        double e = exp(0.5), t = tanh(e), s = 1 - t * t;
        CHECK_VALUES(first, 1e-12, s * e, s * e);
        CHECK_VALUES(second, 1e-12, s * e - 2 * t * s * e * e, s * e - 2 * t * s * e * e);
    }
}

DVT_TEST(autograd_attached_gradients_can_be_differentiated) {
    dvt_array *x = leaf(2, DVT_GRAD_WRITE), *y = NULL, *z = NULL, *first;
    DVT_RECORD {
        y = dvt_mul(dvt_square(x), x);
    }
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    first = dvt_grad(x);
    CHECK(dvt_has_history(first));
    CHECK_VALUES(first, 1e-12, 12, 12);
    DVT_RECORD {
        z = dvt_square(first); /* (3 x^2)^2, whose derivative is 36 x^3 */
    }
    CHECK_INT(dvt_backward_from(&z, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-9, 288, 288);
    CHECK_VALUES(first, 1e-12, 12, 12); /* the recorded gradient is replaced, not overwritten */
    CHECK(!dvt_has_history(dvt_grad(x)));
    CHECK_INT(dvt_backward(z), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-9, 288, 288);
}

DVT_TEST(autograd_recorded_backward_retains_its_graph) {
    dvt_array *x = leaf(0, DVT_GRAD_WRITE), *y = NULL, *first;
    DVT_RECORD {
        y = dvt_exp(dvt_sin(x));
    }
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    first = dvt_grad(x);
    CHECK_VALUES(first, 1e-12, 1, 1);
    CHECK_INT(dvt_backward(first), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 1, 1); /* e^sin x (cos^2 x - sin x) */
    CHECK(!dvt_has_history(dvt_grad(x)));
}

DVT_TEST(autograd_adding_gradients_that_have_history) {
    dvt_array *x = leaf(2, DVT_GRAD_ADD), *y = NULL, *z = NULL, *out = NULL;
    DVT_RECORD {
        y = dvt_square(x);
    }
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 8, 8);
    DVT_RECORD {
        z = dvt_square(dvt_grad(x)); /* (4 x)^2 */
    }
    CHECK_INT(dvt_gradients(&z, NULL, 1, &x, 1, DVT_FREE_GRAPH, &out), DVT_OK);
    CHECK_VALUES(out, 1e-12, 64, 64);
    CHECK_INT(dvt_zero_grad(x), DVT_OK);
    CHECK(!dvt_has_history(dvt_grad(x)));
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
}

DVT_TEST(autograd_graph_of_a_recorded_gradient_is_freed) {
    int64_t before = dvt_get_stats().arrays;
    int way;
    for (way = 0; way < 4; way++) {
        DVT_SCOPE {
            dvt_array *x = leaf(2, DVT_GRAD_WRITE), *y = NULL;
            DVT_RECORD {
                y = dvt_exp(x);
            }
            CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
            if (way == 0)
                CHECK_INT(dvt_zero_grad(x), DVT_OK);
            else if (way == 1)
                CHECK_INT(dvt_attach_grad(x, DVT_GRAD_NULL), DVT_OK);
            else if (way == 2)
                CHECK_INT(dvt_backward(y), DVT_OK);
            if (way == 3) /* alone, with x */
                CHECK(dvt_has_history(dvt_grad(x)));
            else
                CHECK(way == 1 || !dvt_has_history(dvt_grad(x)));
        }
        CHECK_INT(dvt_get_stats().arrays, before);
    }
}

DVT_TEST(autograd_backward_inside_record_records_nothing) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL;
    DVT_RECORD {
        y = dvt_square(x);
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK(dvt_is_recording() && dvt_is_training());
    }
    CHECK(!dvt_has_history(dvt_grad(x)));
    CHECK_VALUES(dvt_grad(x), 0, 6, 6);
}

/* ---- exhausted memory ---- */
typedef struct allocation_limit {
    long left; /* allocations that still succeed; negative: unlimited */
    bool once; /* only one allocation fails, else all later ones */
} allocation_limit;

static bool runs_out(allocation_limit *s) {
    if (s->left < 0 || s->left-- > 0)
        return false;
    s->left = s->once ? -1 : 0;
    return true;
}

static void *limited_alloc(void *user, size_t bytes) {
    return runs_out((allocation_limit *)user) ? NULL : malloc(bytes);
}

static void *limited_resize(void *user, void *block, size_t bytes) {
    return runs_out((allocation_limit *)user) ? NULL : realloc(block, bytes);
}

static void limited_release(void *user, void *block) {
    (void)user;
    free(block);
}

static dvt_array *recorded_graph(dvt_array *x, dvt_array *w) {
    dvt_array *y = NULL;
    DVT_RECORD {
        y = dvt_mean(dvt_mul(dvt_tanh(dvt_mul(x, w)), dvt_add(w, x)), DVT_ALL);
    }
    return y;
}

/* Runs one of the three backward passes with limited allocations. Returns whether it succeeded. */
static bool limited_pass(int way, allocation_limit *s, long left) {
    dvt_array *x = leaf(0.5, DVT_GRAD_WRITE), *w = leaf(2, DVT_GRAD_ADD), *y, *out[2];
    dvt_array *vars[2];
    dvt_status status;
    vars[0] = x;
    vars[1] = w;
    out[0] = out[1] = NULL;
    dvt_fill(dvt_grad(x), 7);
    dvt_fill(dvt_grad(w), 8);
    y = recorded_graph(x, w);
    s->left = left;
    status = way == 0   ? dvt_backward(y)
             : way == 1 ? dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH)
                        : dvt_gradients(&y, NULL, 1, vars, 2, DVT_FREE_GRAPH, out);
    s->left = -1;
    if (status == DVT_OK) {
        dvt_zero_grad(x); /* removes the history of recorded gradients */
        dvt_zero_grad(w);
        return true;
    }
    CHECK_INT(status, DVT_ERR_HOST_MEMORY);
    dvt_clear_error();
    CHECK_VALUES(dvt_grad(x), 0, 7, 7);
    CHECK_VALUES(dvt_grad(w), 0, 8, 8);
    CHECK(!out[0] && !out[1]);
    CHECK(!dvt_is_recording());
    CHECK_INT(dvt_backward(y), DVT_OK); /* the graph is still valid */
    CHECK_CLOSE(dvt_item_at(dvt_grad(x), DVT_SHAPE(1)),
                0.5 * (tanh(1) + 2.5 * 2 * (1 - tanh(1) * tanh(1))), 1e-12);
    return false;
}

DVT_TEST(autograd_every_allocation_fails) {
    allocation_limit s;
    dvt_allocator scarce;
    int64_t arrays = dvt_get_stats().arrays;
    int way, once;
    s.left = -1;
    scarce.alloc = limited_alloc;
    scarce.resize = limited_resize;
    scarce.release = limited_release;
    scarce.user = &s;
    dvt_set_allocator(&scarce);
    for (way = 0; way < 3; way++)
        for (once = 0; once < 2; once++) {
            bool through = false;
            long left;
            s.once = once != 0;
            for (left = 0; !through && left < 1000; left++) {
                DVT_SCOPE {
                    through = limited_pass(way, &s, left);
                }
                CHECK_INT(dvt_get_stats().arrays, arrays);
            }
            CHECK(through && (left > 10 || dvt_test_on_gpus())); /* a GPU may retry */
        }
    dvt_set_allocator(NULL);
}

/* Runs a chain of 40 arrays on a device with memory for 46, which suffices because backward
   releases each gradient early. With four of them taken the pass fails; it succeeds when they are
   free again. */
DVT_TEST(autograd_device_memory) {
    const int64_t n = 512, capacity = 46 * n * 8;
    dvt_array *ballast = NULL, *x, *y;
    double value = 0.5, slope = 1;
    int i;
    CHECK_INT(dvt_set_virtual_gpus(1, capacity), DVT_OK);
    DVT_SCOPE {
        x = y = dvt_full(DVT_SHAPE(n), value, DVT_F64, dvt_gpu(0));
        DVT_SCOPE {
            ballast = (dvt_array *)dvt_retain(dvt_empty(DVT_SHAPE(4 * n), DVT_F64, dvt_gpu(0)));
        }
        CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
        dvt_fill(dvt_grad(x), 7);
        DVT_RECORD {
            for (i = 0; i < 39; i++) {
                y = dvt_sin(y);
                slope *= cos(value);
                value = sin(value);
            }
        }
        CHECK_INT(dvt_backward(y), DVT_ERR_DEVICE_MEMORY);
        dvt_clear_error();
        CHECK_CLOSE(dvt_item_at(dvt_grad(x), DVT_SHAPE(n - 1)), 7, 0);
        dvt_release(ballast);
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_CLOSE(dvt_item_at(dvt_grad(x), DVT_SHAPE(n - 1)), slope, 1e-12);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- size and time ---- */
DVT_TEST(autograd_long_chain) {
    dvt_array *x = leaf(1, DVT_GRAD_WRITE), *y = x;
    int64_t before = dvt_get_stats().arrays;
    int i, n = 100000;
    DVT_SCOPE {
        DVT_RECORD {
            for (i = 0; i < n; i++)
                DVT_SCOPE {
                    y = dvt_keep(dvt_add_scalar(y, 1));
                }
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_VALUES(dvt_grad(x), 0, 1, 1);
    }
    CHECK_INT(dvt_get_stats().arrays, before);
    DVT_SCOPE { /* and one that no backward pass visits */
        DVT_RECORD {
            y = x;
            for (i = 0; i < n; i++)
                DVT_SCOPE {
                    y = dvt_keep(dvt_add(y, y));
                }
        }
    }
    CHECK_INT(dvt_get_stats().arrays, before);
}

DVT_TEST(autograd_training_steps_in_constant_memory) {
    dvt_array *x = dvt_full(DVT_SHAPE(4, 3), 0.5, DVT_F32, dvt_test_ctx());
    dvt_array *w = dvt_full(DVT_SHAPE(3), 0.1, DVT_F32, dvt_test_ctx());
    dvt_stats before, after;
    int step;
    dvt_attach_grad(w, DVT_GRAD_WRITE);
    before = dvt_get_stats();
    for (step = 0; step < 1000; step++)
        DVT_SCOPE {
            dvt_array *loss = NULL;
            DVT_RECORD {
                loss = dvt_square(dvt_sub_scalar(dvt_tanh(dvt_mul(x, w)), 0.1));
            }
            CHECK_INT(dvt_backward(loss), DVT_OK);
            dvt_sub_(w, dvt_mul_scalar(dvt_grad(w), 0.1));
        }
    after = dvt_get_stats();
    CHECK_INT(after.arrays, before.arrays);
    CHECK_INT(after.blocks_of_memory, before.blocks_of_memory);
    CHECK_CLOSE(dvt_item_at(w, DVT_SHAPE(0)), 2 * atanh(0.1), 1e-3);
}

#if !defined(DEVTENSOR_NO_THREADS)
/* ---- threads ---- */
static void *train_in_a_thread(void *result) {
    int step;
    DVT_SCOPE {
        dvt_array *x = leaf(*(double *)result, DVT_GRAD_WRITE);
        for (step = 0; step < 300; step++) {
            DVT_SCOPED;
            dvt_array *y = NULL;
            DVT_RECORD {
                y = dvt_mul(dvt_square(x), dvt_scalar(0.5, DVT_F64, dvt_test_ctx()));
            }
            if (dvt_backward(y) != DVT_OK)
                break;
            dvt_sub_(x, dvt_mul_scalar(dvt_grad(x), 0.01));
        }
        *(double *)result = dvt_item_at(x, DVT_SHAPE(1));
    }
    return NULL;
}

DVT_TEST(autograd_two_threads_with_separate_graphs) {
    pthread_t thread[2];
    double value[2] = {1, -2};
    int i;
    for (i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, train_in_a_thread, &value[i]), 0);
    for (i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CHECK_CLOSE(value[0], pow(0.99, 300), 1e-12);
    CHECK_CLOSE(value[1], -2 * pow(0.99, 300), 1e-12);
}

/* Two threads run backward through one retained graph, which must not be modified. */
static dvt_array *shared_head, *shared_variable;

static void *run_shared_backward(void *good) {
    int i;
    for (i = 0; i < 100; i++)
        DVT_SCOPE {
            dvt_array *out = NULL;
            *(int *)good += dvt_gradients(&shared_head, NULL, 1, &shared_variable, 1,
                                          DVT_RETAIN_GRAPH, &out) == DVT_OK &&
                            dvt_item_at(out, DVT_SHAPE(0)) == 12;
        }
    return NULL;
}

DVT_TEST(autograd_two_threads_in_one_graph) {
    pthread_t thread[2];
    int good[2] = {0, 0}, i;
    shared_variable = leaf(2, DVT_GRAD_WRITE);
    DVT_RECORD {
        shared_head = dvt_mul(dvt_square(shared_variable), shared_variable);
    }
    for (i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&thread[i], NULL, run_shared_backward, &good[i]), 0);
    for (i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CHECK_INT(good[0] + good[1], 200);
}
#endif
