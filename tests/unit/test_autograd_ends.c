/* Tests of how long a recorded graph keeps arrays alive, and of writes that autograd must
   detect. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

static int64_t alive(void) {
    return dvt_get_stats().arrays;
}

static dvt_array *leaf(double value) {
    dvt_array *x = dvt_full(DVT_SHAPE(3), value, DVT_F64, dvt_cpu());
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    return x;
}

/* The gradient of x depends on x. That must not create a reference cycle that keeps both alive. */
DVT_TEST(autograd_gradient_graph_is_freed_with_its_array) {
    int64_t before = alive(), blocks = dvt_get_stats().blocks_of_memory;
    int order;
    for (order = 1; order < 4; order++) {
        DVT_SCOPE {
            dvt_array *x = leaf(2), *y = NULL;
            DVT_RECORD {
                y = dvt_mul(dvt_exp(x), x);
            }
            for (int k = 0; k < order; k++) {
                CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
                y = dvt_grad(x);
                CHECK(dvt_has_history(y));
            }
            CHECK_VALUES(y, 1e-9, (2 + order) * exp(2), (2 + order) * exp(2), (2 + order) * exp(2));
        }
        CHECK_INT(alive(), before);
        CHECK_INT(dvt_get_stats().blocks_of_memory, blocks);
    }
}

/* The gradient of each array depends on both arrays. */
DVT_TEST(autograd_cycle_of_gradient_graphs_is_freed) {
    int64_t before = alive();
    dvt_array *a = NULL, *b = NULL;
    DVT_SCOPE {
        dvt_array *y = NULL;
        a = (dvt_array *)dvt_retain(leaf(2));
        b = (dvt_array *)dvt_retain(leaf(3));
        DVT_RECORD {
            y = dvt_mul(dvt_square(a), dvt_square(b));
        }
        CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    }
    dvt_release(a);
    DVT_SCOPE { /* the remaining graph is still valid */
        dvt_array *g = dvt_grad(b), *out = NULL;
        CHECK_VALUES(g, 1e-12, 24, 24, 24);
        CHECK_INT(dvt_gradients(&g, NULL, 1, &b, 1, DVT_RETAIN_GRAPH, &out), DVT_OK);
        CHECK_VALUES(out, 1e-12, 8, 8, 8);
    }
    dvt_release(b);
    CHECK_INT(alive(), before);
}

/* Releases x before its graph. The graph still needs the values of x, but its gradient is neither
   kept nor computed. */
DVT_TEST(autograd_leaf_released_before_its_graph) {
    int64_t before = alive(), kernels;
    dvt_array *w = leaf(3), *y = NULL;
    DVT_SCOPE {
        dvt_array *x = leaf(2);
        DVT_RECORD {
            y = dvt_mul(x, w);
        }
        dvt_keep(y);
    }
    CHECK_INT(alive() - before, 4); /* w and its gradient, x, y */
    kernels = dvt_get_stats().kernels;
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_INT(dvt_get_stats().kernels - kernels, 2); /* ones, times x */
    CHECK_VALUES(dvt_grad(w), 0, 2, 2, 2);
    CHECK_INT(alive() - before, 4);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_INT(alive() - before, 3); /* backward has freed the graph */
}

/* dvt_mark_written reports a write through a pointer, on any window. Only gradients that read the
   value fail. */
DVT_TEST(autograd_detects_writes_marked_on_a_pointer) {
    int marked, k;
    for (marked = 0; marked < 3; marked++) {
        dvt_array *x = leaf(2), *y = NULL, *z = NULL;
        dvt_array *last = dvt_slice(x, 0, 2, 3, 1);
        DVT_RECORD {
            y = dvt_square(x);
            z = dvt_add(x, x);
        }
        for (k = 0; k < 3; k++)
            ((double *)dvt_data(x))[k] = 5;
        if (marked)
            CHECK_INT(dvt_mark_written(marked == 1 ? x : last), DVT_OK);
        CHECK_INT(dvt_backward(y), marked ? DVT_ERR_GRAD : DVT_OK);
        CHECK_INT(dvt_error_code(), marked ? DVT_ERR_GRAD : DVT_OK);
        dvt_clear_error();
        if (!marked)
            CHECK_VALUES(dvt_grad(x), 0, 10, 10, 10); /* of the new values, as dvt_data documents */
        CHECK_INT(dvt_backward(z), DVT_OK);
        CHECK_VALUES(dvt_grad(x), 0, 2, 2, 2);
    }
    CHECK_ERROR(dvt_mark_written(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* The graph leads only to released arrays. */
DVT_TEST(autograd_all_leaves_released_before_their_graph) {
    dvt_array *y = NULL;
    int64_t before = alive();
    DVT_SCOPE {
        DVT_RECORD {
            y = dvt_exp(leaf(1));
        }
        dvt_keep(y);
    }
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_CREATE_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(y, 1e-12, exp(1), exp(1), exp(1));
    dvt_discard_all();
    CHECK_INT(alive(), before);
}

#if !defined(DEVTENSOR_NO_THREADS)
/* Runs backward in one thread while another releases the last reference to the array that gets the
   gradient. */
static void *run_backward(void *head) {
    dvt_array *y = (dvt_array *)head;
    int k;
    for (k = 0; k < 4; k++)
        DVT_SCOPE {
            if (dvt_backward_from(&y, NULL, 1,
                                  (k % 2 != 0) ? DVT_CREATE_GRAPH : DVT_RETAIN_GRAPH) != DVT_OK)
                return NULL;
        }
    return head;
}

DVT_TEST(autograd_leaf_released_during_backward_of_another_thread) {
    int64_t before = alive();
    int round;
    for (round = 0; round < 40; round++) {
        dvt_array *x = NULL, *w = NULL, *y = NULL;
        void *good = NULL;
        pthread_t thread;
        DVT_SCOPE {
            x = (dvt_array *)dvt_retain(leaf(2));
            w = (dvt_array *)dvt_retain(leaf(3));
            DVT_RECORD {
                y = (dvt_array *)dvt_retain(dvt_mul(dvt_mul(x, w), x));
            }
        }
        if (!CHECK(pthread_create(&thread, NULL, run_backward, y) == 0))
            return;
        if (round % 2)
            dvt_release(dvt_retain(w)); /* not the last reference */
        dvt_release(x);
        pthread_join(thread, &good);
        CHECK(good != NULL);
        CHECK_VALUES(dvt_grad(w), 0, 4, 4, 4);
        dvt_release(w);
        dvt_release(y);
    }
    CHECK_INT(alive(), before);
}
#endif

static dvt_array *leaf_of_two(double value) {
    dvt_array *x = dvt_full(DVT_SHAPE(2), value, DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    return x;
}

/* A broadcast source gets the sum of the gradients of its copies, in its own shape. */
DVT_TEST(autograd_copy_into_broadcasting) {
    dvt_array *x = leaf_of_two(3), *y = NULL;
    dvt_array *weights = dvt_arange(1, 7, 1, DVT_F64, dvt_test_ctx());
    dvt_shape shapes[3];
    int i;
    shapes[0] = DVT_SHAPE(2);
    shapes[1] = DVT_SHAPE(1, 1, 1, 2);
    shapes[2] = DVT_SHAPE(2, 1);
    for (i = 0; i < 3; i++) {
        dvt_array *buffer =
            dvt_zeros(i == 2 ? DVT_SHAPE(2, 3) : DVT_SHAPE(3, 2), DVT_F64, dvt_test_ctx());
        DVT_RECORD {
            dvt_copy_into(buffer, dvt_reshape(dvt_square(x), shapes[i]));
            y = dvt_mul(buffer, dvt_reshape(weights, dvt_shape_of(buffer)));
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        if (i == 2)
            CHECK_VALUES(dvt_grad(x), 1e-12, 36, 90);
        else
            CHECK_VALUES(dvt_grad(x), 1e-12, 54, 72);
    }
}

/* Attaching a gradient to a recorded result makes it a leaf: no gradient flows to its inputs. */
DVT_TEST(autograd_attach_inside_a_recording) {
    dvt_array *x = leaf_of_two(3), *y = NULL, *z = NULL, *g;
    DVT_RECORD {
        y = dvt_square(x);
        CHECK_INT(dvt_attach_grad(y, DVT_GRAD_WRITE), DVT_OK);
        CHECK(dvt_has_history(y));
        z = dvt_mul_scalar(y, 5);
    }
    CHECK_INT(dvt_backward(z), DVT_OK);
    CHECK_VALUES(dvt_grad(y), 0, 5, 5);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
    /* The second attach gives new zeros that are not recorded, although the gradient itself has an
       attached gradient. */
    g = dvt_grad(y);
    CHECK_INT(dvt_attach_grad(g, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        CHECK_INT(dvt_attach_grad(y, DVT_GRAD_ADD), DVT_OK);
        CHECK_VALUES(dvt_grad(y), 0, 0, 0);
        CHECK(dvt_grad(y) == g);
        z = dvt_mul_scalar(y, 7);
    }
    CHECK_INT(dvt_backward_from(&z, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward(z), DVT_OK);
    CHECK_VALUES(dvt_grad(y), 0, 14, 14);
    DVT_RECORD {
        CHECK_INT(dvt_attach_grad(y, DVT_GRAD_NULL), DVT_OK);
    }
    CHECK_ERROR(dvt_grad(y), DVT_ERR_GRAD);
}

/* ---- the memory of attached gradients ---- */
/* A backward pass exchanges the memory of the gradient array with that of the gradient it has
   gathered, where nobody can notice. */
DVT_TEST(gradients_are_handed_over) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *w = dvt_full(DVT_SHAPE(2, 3), 2, DVT_F32, ctx), *y = NULL, *grad, *view;
    dvt_stats before = dvt_get_stats(), after = before;
    int turn;
    CHECK_INT(dvt_attach_grad(w, DVT_GRAD_WRITE), DVT_OK);
    grad = dvt_grad(w);
    view = dvt_index(grad, 1);
    for (turn = 0; turn < 2; turn++) {
        DVT_RECORD {
            y = dvt_mul_scalar(w, turn ? 5 : 3);
        }
        before = dvt_get_stats();
        CHECK_INT(dvt_backward(y), DVT_OK);
        after = dvt_get_stats();
        CHECK(dvt_grad(w) == grad);
        CHECK_VALUES(view, 0, turn ? 5 : 3, turn ? 5 : 3, turn ? 5 : 3);
    }
    CHECK_INT(after.kernels - before.kernels, 2); /* ones, and their product with 5 */
}

/* An address that the caller has stays that of the gradient. */
DVT_TEST(gradients_stay_where_the_caller_looks) {
    dvt_array *w = dvt_full(DVT_SHAPE(3), 2, DVT_F32, dvt_cpu()), *y = NULL;
    const float *at;
    CHECK_INT(dvt_attach_grad(w, DVT_GRAD_WRITE), DVT_OK);
    at = (const float *)dvt_data(dvt_grad(w));
    DVT_RECORD {
        y = dvt_mul_scalar(w, 7);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK(at && dvt_data(dvt_grad(w)) == at);
    CHECK(at && at[0] == 7 && at[2] == 7);
}

/* The gathered gradient is copied where others have it: both sums share one, and a gradient that
   the caller gave stays the caller's. */
DVT_TEST(gradients_that_others_have_are_copied) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *a = dvt_full(DVT_SHAPE(2), 1, DVT_F32, ctx);
    dvt_array *b = dvt_full(DVT_SHAPE(2), 2, DVT_F32, ctx);
    dvt_array *y = NULL, *given = DVT_ARRAY(float, DVT_SHAPE(2), ctx, 3, 4);
    CHECK_INT(dvt_attach_grad(a, DVT_GRAD_WRITE), DVT_OK);
    CHECK_INT(dvt_attach_grad(b, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        y = dvt_add(a, b);
    }
    CHECK_INT(dvt_backward_from(&y, &given, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK(dvt_fill(dvt_grad(a), 9) != NULL);
    CHECK_VALUES(dvt_grad(b), 0, 3, 4);
    CHECK_VALUES(given, 0, 3, 4);
    CHECK_INT(dvt_backward_from(&y, &given, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(a), 0, 3, 4);
}
