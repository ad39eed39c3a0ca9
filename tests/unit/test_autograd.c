/* Tests of the tape and the backward pass: recording and modes, write and add, retained graphs,
   heads and every error. test_autograd_orders.c has the other tests; test_gradients.c checks the
   values of gradients. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

static dvt_array *leaf(double value, dvt_grad_req req) {
    dvt_array *x = dvt_full(DVT_SHAPE(2), value, DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_attach_grad(x, req), DVT_OK);
    return x;
}

static void check_message(const char *part) {
    dvt_test_check(strstr(dvt_error(), part) != NULL, __FILE__, __LINE__,
                   "the message <<%s>> lacks <<%s>>", dvt_error(), part);
}

/* ---- modes ---- */
DVT_TEST(autograd_modes_nest_and_return) {
    CHECK(!dvt_is_recording() && !dvt_is_training());
    DVT_RECORD {
        CHECK(dvt_is_recording() && dvt_is_training());
        DVT_PAUSE {
            CHECK(!dvt_is_recording() && !dvt_is_training());
            DVT_TRAIN_MODE {
                CHECK(!dvt_is_recording() && dvt_is_training());
            }
            DVT_RECORD_PREDICT {
                CHECK(dvt_is_recording() && !dvt_is_training());
            }
            CHECK(!dvt_is_recording() && !dvt_is_training());
        }
        CHECK(dvt_is_recording() && dvt_is_training());
        DVT_PREDICT_MODE {
            CHECK(dvt_is_recording() && !dvt_is_training());
        }
        CHECK(dvt_is_training());
    }
    CHECK(!dvt_is_recording() && !dvt_is_training());
}

static void leave_by_return(void) {
    DVT_RECORD {
        DVT_PREDICT_MODE {
            return;
        }
    }
}

/* The break is intended: the compiler warns about it, and the library logs it. */
#if defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 14)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-warning"
#endif
DVT_TEST(autograd_modes_end_on_return_and_break) {
    int i;
    leave_by_return();
    CHECK(!dvt_is_recording() && !dvt_is_training());
    for (i = 0; i < 2; i++) {
        DVT_RECORD {
            break;
        }
        CHECK(!dvt_is_recording());
    }
}
#if defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 14)
#pragma GCC diagnostic pop
#endif

#if !defined(DEVTENSOR_NO_THREADS)
static void *modes_of_another_thread(void *seen) {
    *(int *)seen = dvt_is_recording() + 2 * dvt_is_training();
    return NULL;
}

DVT_TEST(autograd_modes_belong_to_the_thread) {
    pthread_t thread;
    int seen = -1;
    DVT_RECORD {
        CHECK_INT(pthread_create(&thread, NULL, modes_of_another_thread, &seen), 0);
        pthread_join(thread, NULL);
    }
    CHECK_INT(seen, 0);
}
#endif

/* ---- which operations are recorded ---- */
DVT_TEST(autograd_records_only_operations_with_history) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *c = dvt_full(DVT_SHAPE(2), 2, DVT_F64, dvt_test_ctx());
    dvt_array *y = NULL;
    CHECK(dvt_has_history(x));
    CHECK(!dvt_has_history(c) && !dvt_has_history(NULL));
    CHECK(!dvt_has_history(dvt_mul(x, c)));
    DVT_RECORD {
        CHECK(dvt_has_history(dvt_mul(x, c)));
        CHECK(dvt_has_history(dvt_mul(c, x)));
        CHECK(!dvt_has_history(dvt_mul(c, c)));
        CHECK(!dvt_has_history(dvt_greater(x, c))); /* bool has no gradient */
        CHECK(!dvt_has_history(dvt_astype(x, DVT_I32)));
        DVT_PAUSE {
            CHECK(!dvt_has_history(dvt_mul(x, c)));
        }
        y = dvt_mul(x, c);
        CHECK(!dvt_has_history(dvt_detach(y)));
        CHECK(dvt_shares_memory(y, dvt_detach(y)));
    }
    CHECK(dvt_has_history(y));
}

DVT_TEST(autograd_first_derivative) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL;
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
    DVT_RECORD {
        y = dvt_mul(dvt_square(x), x);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 27, 27);
    CHECK(!dvt_has_history(dvt_grad(x)));
}

DVT_TEST(autograd_sums_gradients_of_repeated_uses) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL;
    DVT_RECORD { /* x + x*x + x*x*x with shared intermediate results */
        dvt_array *s = dvt_mul(x, x);
        y = dvt_add(dvt_add(x, s), dvt_mul(s, x));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 34, 34);
}

/* ---- grad_req write, add, null ---- */
static void square_backward(dvt_array *x) {
    DVT_SCOPE {
        dvt_array *y = NULL;
        DVT_RECORD {
            y = dvt_square(x);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
    }
}

DVT_TEST(autograd_write_overwrites_the_same_array) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *g = dvt_grad(x);
    bool reachable = dvt_ctx_of(g).type == DVT_DEVICE_CPU;
    void *data = reachable ? dvt_data(g) : NULL;
    square_backward(x);
    square_backward(x);
    CHECK_VALUES(g, 1e-12, 6, 6);
    CHECK(dvt_grad(x) == g && (!reachable || dvt_data(g) == data));
}

DVT_TEST(autograd_add_accumulates_until_zeroed) {
    dvt_array *x = leaf(3, DVT_GRAD_ADD), *g = dvt_grad(x);
    square_backward(x);
    square_backward(x);
    CHECK_VALUES(g, 1e-12, 12, 12);
    CHECK_INT(dvt_zero_grad(x), DVT_OK);
    CHECK_VALUES(g, 0, 0, 0);
    square_backward(x);
    CHECK_VALUES(g, 1e-12, 6, 6);
    CHECK(dvt_grad(x) == g);
}

DVT_TEST(autograd_null_writes_no_gradient) {
    dvt_array *x = leaf(3, DVT_GRAD_NULL), *w = leaf(2, DVT_GRAD_WRITE), *y = NULL;
    CHECK(!dvt_has_history(x));
    DVT_RECORD {
        CHECK(!dvt_has_history(dvt_square(x)));
        y = dvt_mul(x, w);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(w), 1e-12, 3, 3);
    CHECK_ERROR(dvt_grad(x), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_zero_grad(x), DVT_ERR_GRAD);
}

DVT_TEST(autograd_attaching_again) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *g = dvt_grad(x), *y = NULL, *z = NULL;
    square_backward(x);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_ADD), DVT_OK);
    CHECK(dvt_grad(x) == g);
    CHECK_VALUES(g, 0, 0, 0);
    square_backward(x);
    square_backward(x);
    CHECK_VALUES(g, 1e-12, 12, 12);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_NULL), DVT_OK);
    CHECK_VALUES(g, 1e-12, 12, 12); /* valid until the scope ends */
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD { /* attaching a gradient to a result cuts its history */
        y = dvt_mul_scalar(x, 2);
        CHECK_INT(dvt_attach_grad(y, DVT_GRAD_WRITE), DVT_OK);
        z = dvt_square(y);
    }
    CHECK_INT(dvt_backward(z), DVT_OK);
    CHECK_VALUES(dvt_grad(y), 1e-12, 12, 12);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
}

DVT_TEST(autograd_gradient_has_shape_and_dtype_of_its_array) {
    dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_F64};
    int i;
    for (i = 0; i < 4; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_ones(DVT_SHAPE(3, 1), dtypes[i], dvt_test_ctx());
            dvt_array *t = dvt_t(x), *y = NULL;
            CHECK_INT(dvt_attach_grad(t, DVT_GRAD_WRITE), DVT_OK);
            CHECK_INT(dvt_dtype_of(dvt_grad(t)), dtypes[i]);
            CHECK(dvt_shape_equal(dvt_shape_of(dvt_grad(t)), DVT_SHAPE(1, 3)));
            DVT_RECORD {
                y = dvt_mul(t, dvt_full(DVT_SHAPE(1, 3), 2, DVT_F64, dvt_test_ctx()));
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_INT(dvt_dtype_of(dvt_grad(t)), dtypes[i]);
            CHECK_VALUES(dvt_grad(t), 0, 2, 2, 2);
        }
}

/* ---- retained graphs ---- */
DVT_TEST(autograd_backward_frees_the_graph) {
    dvt_array *x = leaf(3, DVT_GRAD_ADD), *y = NULL;
    DVT_RECORD {
        y = dvt_exp(dvt_square(x));
    }
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-9, 18 * exp(9), 18 * exp(9));
    CHECK_INT(dvt_backward(y), DVT_ERR_GRAD);
    check_message("DVT_RETAIN_GRAPH");
    check_message("dvt_exp");
    dvt_clear_error();
    CHECK_VALUES(dvt_grad(x), 1e-9, 18 * exp(9), 18 * exp(9));
}

DVT_TEST(autograd_backward_frees_part_of_a_graph) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL, *z = NULL;
    DVT_RECORD {
        y = dvt_square(x);
        z = dvt_exp(y);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_ERROR(dvt_backward(z), DVT_ERR_GRAD);
    CHECK_VALUES(dvt_grad(x), 0, 6, 6);
}

DVT_TEST(autograd_backward_frees_memory) {
    dvt_array *x = leaf(0.5, DVT_GRAD_WRITE), *y = NULL;
    dvt_stats before = dvt_get_stats(), recorded, after;
    DVT_SCOPE {
        int i;
        DVT_RECORD {
            y = x;
            for (i = 0; i < 10; i++)
                y = dvt_sin(y);
        }
        dvt_keep(y);
    }
    recorded = dvt_get_stats();
    CHECK(recorded.blocks_of_memory >= before.blocks_of_memory + 10);
    CHECK_INT(dvt_backward(y), DVT_OK);
    after = dvt_get_stats();
    CHECK_INT(after.arrays, before.arrays + 1); /* y itself */
    CHECK_INT(after.blocks_of_memory, before.blocks_of_memory + 1);
}

DVT_TEST(autograd_frees_results_that_backward_does_not_read) {
    dvt_array *x = leaf(0.5, DVT_GRAD_WRITE), *y = NULL;
    int64_t before = dvt_get_stats().blocks_of_memory;
    DVT_SCOPE {
        DVT_RECORD {
            y = dvt_add_scalar(dvt_sin(x),
                               1); /* neither reads a result; the second reads no value */
            y = dvt_tanh(y);       /* reads its own result */
        }
        dvt_keep(y);
    }
    CHECK(dvt_get_stats().blocks_of_memory <= before + 3);
    CHECK_INT(dvt_backward(y), DVT_OK);
}

/* ---- heads ---- */
DVT_TEST(autograd_head_gradients) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL, *g;
    const double values[] = {10, -1};
    DVT_RECORD {
        y = dvt_square(x);
    }
    g = dvt_from_host(values, DVT_SHAPE(2), DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 60, -6);
    CHECK_VALUES(g, 0, 10, -1);
}

DVT_TEST(autograd_several_heads) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *heads[4], *grads[4] = {NULL, NULL, NULL, NULL};
    heads[2] = x; /* a leaf may be a head */
    DVT_RECORD {
        heads[0] = dvt_square(x);
        heads[1] = dvt_mul_scalar(heads[0], 2); /* one head depends on another */
        heads[3] = heads[0];                    /* one head appears twice */
    }
    grads[2] = dvt_full(DVT_SHAPE(2), 100, DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_backward_from(heads, grads, 4, DVT_FREE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 6 + 12 + 100 + 6, 6 + 12 + 100 + 6);
    CHECK_VALUES(grads[2], 0, 100, 100);
}

DVT_TEST(autograd_a_leaf_as_the_only_head) {
    dvt_array *x = leaf(3, DVT_GRAD_ADD);
    CHECK_INT(dvt_backward(x), DVT_OK);
    CHECK_INT(dvt_backward(x), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 2, 2);
}

DVT_TEST(autograd_leaf_gradients_do_not_share_memory) {
    dvt_array *a = leaf(1, DVT_GRAD_WRITE), *b = leaf(2, DVT_GRAD_WRITE), *y = NULL;
    dvt_array *g = dvt_full(DVT_SHAPE(2), 5, DVT_F64, dvt_test_ctx());
    DVT_RECORD {
        y = dvt_add(a, b); /* its gradient passes one array to both */
    }
    CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK(!dvt_shares_memory(dvt_grad(a), dvt_grad(b)));
    CHECK(!dvt_shares_memory(dvt_grad(a), g));
    dvt_fill(dvt_grad(a), 7);
    CHECK_VALUES(dvt_grad(b), 0, 5, 5);
    CHECK_VALUES(g, 0, 5, 5);
}

/* ---- errors ---- */
DVT_TEST(autograd_errors_of_heads) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL, *plain, *g;
    CHECK_ERROR(dvt_backward(NULL), DVT_ERR_NULL_ARGUMENT);
    plain = dvt_square(x);
    CHECK_INT(dvt_backward(plain), DVT_ERR_GRAD);
    check_message("computational graph");
    check_message("DVT_RECORD");
    CHECK(strstr(dvt_error(), "DVT_RETAIN_GRAPH") == NULL); /* no recorded graph to retain */
    check_message("float64 (2,)");
    dvt_clear_error();
    DVT_RECORD {
        y = dvt_square(x);
        CHECK_ERROR(dvt_backward(dvt_detach(y)), DVT_ERR_GRAD);
        CHECK_ERROR(dvt_backward_from(&y, NULL, 1, (dvt_graph_use)3), DVT_ERR_VALUE);
        CHECK_ERROR(dvt_backward(dvt_greater_scalar(y, 0)), DVT_ERR_GRAD);
    }
    CHECK_ERROR(dvt_backward_from(&y, NULL, 0, DVT_FREE_GRAPH), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_backward_from(NULL, NULL, 1, DVT_FREE_GRAPH), DVT_ERR_NULL_ARGUMENT);
    g = dvt_ones(DVT_SHAPE(1), DVT_F64, dvt_test_ctx());
    CHECK_ERROR(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_ERR_SHAPE);
    g = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    CHECK_ERROR(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_ERR_DTYPE);
    g = dvt_ones(DVT_SHAPE(2), DVT_F64, dvt_cpu_id(1));
    CHECK_ERROR(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_ERR_CONTEXT);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
    CHECK_INT(dvt_backward(y), DVT_OK); /* none of them freed the graph */
    CHECK_VALUES(dvt_grad(x), 0, 6, 6);
}

DVT_TEST(autograd_errors_of_attaching) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_I32, dvt_test_ctx()), *y;
    CHECK_ERROR(dvt_attach_grad(NULL, DVT_GRAD_WRITE), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_ERR_DTYPE);
    y = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    CHECK_ERROR(dvt_attach_grad(y, (dvt_grad_req)7), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_grad(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_grad(y), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_zero_grad(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_zero_grad(y), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_detach(NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(autograd_overwritten_values_are_refused) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *w = leaf(2, DVT_GRAD_WRITE), *y = NULL, *z = NULL;
    dvt_array *t = NULL;
    DVT_RECORD {
        y = dvt_mul(x, w);
    }
    dvt_fill(w, 5);
    CHECK_INT(dvt_backward(y), DVT_ERR_GRAD);
    check_message("overwritten");
    check_message("argument 2 of dvt_mul");
    dvt_clear_error();
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
    CHECK_VALUES(dvt_grad(w), 0, 0, 0);
    DVT_RECORD {
        t = dvt_exp(x);
        z = dvt_mul_scalar(t, 1);
    }
    dvt_fill(t, 0);
    CHECK_INT(dvt_backward(z), DVT_ERR_GRAD);
    check_message("result of dvt_exp");
    dvt_clear_error();
    DVT_RECORD { /* overwriting a view overwrites its array */
        y = dvt_square(w);
    }
    dvt_fill(dvt_slice(w, 0, 0, 1, 1), 9);
    CHECK_ERROR(dvt_backward(y), DVT_ERR_GRAD);
}

DVT_TEST(autograd_allows_writes_to_values_that_backward_does_not_read) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *c = dvt_full(DVT_SHAPE(2), 4, DVT_F64, dvt_test_ctx());
    dvt_array *y = NULL;
    DVT_RECORD {
        y = dvt_add(x, c);
    }
    dvt_fill(c, 0);
    dvt_fill(x, 0);
    dvt_fill(y, 0);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 1, 1);
    dvt_fill(x, 3);
    DVT_RECORD {
        y = dvt_mul(x, c); /* the gradient of x reads c, not x */
    }
    dvt_fill(x, 1);
    CHECK_INT(dvt_backward(y), DVT_OK);
}

DVT_TEST(autograd_in_place_rules) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *c = dvt_ones(DVT_SHAPE(2), DVT_F64, dvt_test_ctx()),
              *y = NULL;
    DVT_RECORD {
        CHECK_ERROR(dvt_add_(x, c), DVT_ERR_GRAD);
        CHECK_ERROR(dvt_fill(x, 1), DVT_ERR_GRAD);
        y = dvt_square(x);
        CHECK_ERROR(dvt_exp_(y), DVT_ERR_GRAD);
        CHECK_ERROR(dvt_add_(c, x), DVT_ERR_GRAD); /* the sum's history would be lost */
        CHECK(dvt_add_(c, dvt_ones_like(c)) == c);
        DVT_PAUSE {
            CHECK(dvt_mul_scalar_(x, 2) == x);
        }
    }
    CHECK_VALUES(x, 0, 6, 6);
    CHECK_VALUES(c, 0, 2, 2);
    CHECK(dvt_mul_scalar_(x, 0.5) == x);
}

DVT_TEST(autograd_copy_into_is_recorded) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE),
              *buffer = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    dvt_array *before = NULL, *y = NULL, *both[2];
    DVT_RECORD {
        before = dvt_add(dvt_as_in_dtype(x, DVT_F32), buffer);
        dvt_copy_into(buffer, dvt_square(x));
        y = dvt_mul_scalar(buffer, 10);
    }
    CHECK_VALUES(y, 0, 90, 90);
    both[0] = before; /* no gradient flows: it read the buffer before the write */
    both[1] = y;
    CHECK_INT(dvt_backward_from(both, NULL, 2, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 61, 61);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 60, 60);
    CHECK_INT(dvt_backward(before), DVT_OK); /* does not need the graph that was just freed */
    CHECK_VALUES(dvt_grad(x), 1e-12, 1, 1);
}

/* Refuses a recorded copy into a window of a buffer. Reading the buffer itself would lose the
   gradient silently. */
DVT_TEST(autograd_copy_into_shared_memory_is_refused) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE),
              *buffer = dvt_zeros(DVT_SHAPE(4), DVT_F32, dvt_test_ctx());
    dvt_array *window = dvt_rows(buffer, 0, 2);
    DVT_RECORD {
        CHECK_ERROR(dvt_copy_into(window, dvt_square(x)), DVT_ERR_GRAD);
        CHECK_ERROR(dvt_copy_into(buffer, dvt_concat(&x, 1, 0)), DVT_ERR_SHAPE);
        CHECK_ERROR(dvt_copy_into(window, dvt_sum(x, DVT_ALL)), DVT_ERR_GRAD);
        CHECK(dvt_copy_into(window, dvt_ones_like(window)) == window); /* no history */
    }
    CHECK_VALUES(buffer, 0, 1, 1, 0, 0);
    CHECK(dvt_copy_into(window, x) == window);
    CHECK_VALUES(buffer, 0, 3, 3, 0, 0);
}

DVT_TEST(autograd_detach_stops_the_gradient) {
    dvt_array *x = leaf(3, DVT_GRAD_WRITE), *y = NULL;
    DVT_RECORD {
        y = dvt_mul(dvt_square(x), dvt_detach(dvt_square(x)));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, 54, 54);
}
