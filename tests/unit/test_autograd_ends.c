/* What a recorded graph keeps alive, and when that ends; writes that it is told of. */
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

/* x's gradient was computed with x: that must not keep x alive, nor x it. */
DVT_TEST(autograd_ends_with_its_array) {
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

/* The gradient of each was computed with both. */
DVT_TEST(autograd_ends_with_arrays_in_a_circle) {
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
    DVT_SCOPE { /* what is left is whole */
        dvt_array *g = dvt_grad(b), *out = NULL;
        CHECK_VALUES(g, 1e-12, 24, 24, 24);
        CHECK_INT(dvt_gradients(&g, NULL, 1, &b, 1, DVT_RETAIN_GRAPH, &out), DVT_OK);
        CHECK_VALUES(out, 1e-12, 8, 8, 8);
    }
    dvt_release(b);
    CHECK_INT(alive(), before);
}

/* The graph still needs x's values, but nobody can ask for its gradient: that is neither kept nor computed. */
DVT_TEST(autograd_ends_of_an_array_before_its_graph) {
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
    CHECK_INT(dvt_get_stats().kernels - kernels, 3); /* ones, times x, into the gradient */
    CHECK_VALUES(dvt_grad(w), 0, 2, 2, 2);
    CHECK_INT(alive() - before, 4);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_INT(alive() - before, 3); /* the graph is used up */
}

/* Writes through a pointer are seen when they are said, on any window; and only by gradients that read the value. */
DVT_TEST(autograd_written_through_a_pointer) {
    int said, k;
    for (said = 0; said < 3; said++) {
        dvt_array *x = leaf(2), *y = NULL, *z = NULL;
        dvt_array *last = dvt_slice(x, 0, 2, 3, 1);
        DVT_RECORD {
            y = dvt_square(x);
            z = dvt_add(x, x);
        }
        for (k = 0; k < 3; k++)
            ((double *)dvt_data(x))[k] = 5;
        if (said)
            CHECK_INT(dvt_mark_written(said == 1 ? x : last), DVT_OK);
        CHECK_INT(dvt_backward(y), said ? DVT_ERR_GRAD : DVT_OK);
        CHECK_INT(dvt_error_code(), said ? DVT_ERR_GRAD : DVT_OK);
        dvt_clear_error();
        if (!said)
            CHECK_VALUES(dvt_grad(x), 0, 10, 10, 10); /* of the new values, as dvt_data says */
        CHECK_INT(dvt_backward(z), DVT_OK);
        CHECK_VALUES(dvt_grad(x), 0, 2, 2, 2);
    }
    CHECK_ERROR(dvt_mark_written(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* A graph that leads to nothing but such arrays. */
DVT_TEST(autograd_ends_of_all_arrays_before_their_graph) {
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
/* One thread walks back while another gives up the last owner of what the gradients are for. */
static void *walk_back(void *head) {
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

DVT_TEST(autograd_ends_in_another_thread) {
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
        if (!CHECK(pthread_create(&thread, NULL, walk_back, y) == 0))
            return;
        if (round % 2)
            dvt_release(dvt_retain(w)); /* not its last */
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

/* What broadcasts gets the sum of its copies' gradients, in its own shape. */
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

/* An array that is attached while it is recorded becomes a leaf: nothing flows to what it was made of. */
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
    /* Attached again there, the gradient is zeros of its own, and the zeros are not recorded, though somebody wants the
       gradient's own gradient. */
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
