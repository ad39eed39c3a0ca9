/* Tests of borrowed references. Releasing one is an error that changes nothing, however often it is
   repeated. A retained reference is owned like any other. */
#include "dvt_test.h"
#include <string.h>

static int64_t alive(void) {
    return dvt_get_stats().arrays;
}

static void refused_once(void *object) {
    CHECK_INT(dvt_error_code(), DVT_OK);
    dvt_release(object);
    CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
    CHECK(strstr(dvt_error(), "dvt_release: the object is borrowed") != NULL);
    dvt_clear_error();
    dvt_discard(object);
    CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
    CHECK(strstr(dvt_error(), "dvt_discard: the object is borrowed") != NULL);
    dvt_clear_error();
}

/* Checks that releasing is refused twice in a row, in scopes, after keep and after retain. */
static void borrowed(void *object) {
    int64_t before = alive();
    CHECK(object != NULL);
    refused_once(object);
    refused_once(object);
    CHECK(dvt_keep(object) == object);
    refused_once(object);
    DVT_SCOPE {
        refused_once(object);
        CHECK(dvt_keep(object) == object);
        refused_once(object);
    }
    CHECK(dvt_retain(object) == object && dvt_retain(object) == object);
    dvt_release(object);
    dvt_release(object);
    CHECK_INT(dvt_error_code(), DVT_OK);
    refused_once(object);
    CHECK_INT(alive(), before);
}

DVT_TEST(borrowed_gradients) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *y = NULL, *kept;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        borrowed(dvt_grad(x));
        DVT_RECORD {
            y = dvt_sum(dvt_square(x), DVT_ALL);
        }
        dvt_backward(y);
        borrowed(dvt_grad(x));
        CHECK_VALUES(dvt_grad(x), 0, 2, 2);
        kept = (dvt_array *)dvt_retain(dvt_grad(x));
        dvt_discard(x);
        CHECK_VALUES(kept, 0, 2, 2);
        dvt_release(kept);
    }
    CHECK_INT(alive(), before);
}

/* One thread may retain the last reference and another may release it. The reference of a scope
   belongs to the scope's thread. */
DVT_TEST(borrowed_references_have_one_owner) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
        dvt_retain(x);
        dvt_release(x);
        CHECK_INT(alive() - before, 1);
        dvt_release(x);
        CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
        CHECK(strstr(dvt_error(), "call dvt_discard") != NULL);
        dvt_clear_error();
        dvt_retain(x);
        dvt_discard(x);
        CHECK_INT(alive() - before, 1);
        dvt_discard(x);
        CHECK(strstr(dvt_error(), "dvt_discard: no scope owns the object") != NULL);
        dvt_clear_error();
        dvt_release(x);
        CHECK_INT(alive(), before);
        dvt_discard(NULL);
    }
}

DVT_TEST(scopes_end_accepts_null) {
    dvt_scope_end(NULL);
    dvt_record_end(NULL);
    dvt_ctx_scope_end(NULL);
    CHECK_INT(dvt_error_code(), DVT_OK);
}

static const unsigned char two_arrays[] = {
    /* MXNet's header: two arrays, one float32 of shape (1) each, and their names */
    0x12, 1,    0, 0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xc9, 0xfa,
    0x93, 0xf9, 0, 0, 0, 0, 1,    0,    0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,    0,
    0,    0,    0, 0, 0, 0, 0x80, 0x3f, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'w'};

DVT_TEST(borrowed_from_lists) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array_list *list = dvt_read_params(two_arrays, sizeof two_arrays, dvt_cpu());
        borrowed(dvt_array_list_at(list, 0));
        borrowed(dvt_array_list_find(list, "w"));
        CHECK_VALUES(dvt_array_list_at(list, 0), 0, 1);
    }
    CHECK_INT(alive(), before);
}

#if !defined(DEVTENSOR_NO_NN)
/* The dataset owns x as well, and a second discard may not give that up. */
DVT_TEST(borrowed_after_discard) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    CHECK(dvt_dataset_arrays(x, x) != NULL);
    dvt_discard(x);
    CHECK_INT(dvt_error_code(), DVT_OK);
    dvt_discard(x);
    CHECK(strstr(dvt_error(), "or given up already") != NULL);
    dvt_clear_error();
    CHECK_VALUES(x, 0, 1, 1);
}

DVT_TEST(borrowed_from_blocks) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_block *net = dvt_nn_sequential();
        dvt_params *params;
        dvt_param *weight;
        DVT_NN_ADD(net, dvt_nn_dense(2, DVT_RELU), dvt_nn_dense(1, DVT_IDENTITY));
        dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
        dvt_block_forward(net, dvt_ones(DVT_SHAPE(3, 4), DVT_F32, dvt_cpu()));
        params = dvt_block_collect_params(net, NULL);
        weight = dvt_block_param(dvt_block_at(net, 0), "weight");
        borrowed(weight);
        borrowed(dvt_params_at(params, 1));
        borrowed(dvt_params_find(params, dvt_param_name(weight)));
        borrowed(dvt_param_data(weight, dvt_cpu()));
        borrowed(dvt_param_grad(weight, dvt_cpu()));
        borrowed(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()));
        dvt_discard(params);
        borrowed(weight);
        CHECK_VALUES(dvt_block_data(dvt_block_at(net, 1), "bias", dvt_cpu()), 0, 0);
    }
    CHECK_INT(alive(), before);
}

static dvt_array *identity(dvt_block *block, void *user, dvt_array *x) {
    (void)block;
    (void)user;
    return x;
}

/* A child created here is owned by this scope and by its parent. The scope's reference can be
   released only once. */
DVT_TEST(borrowed_children) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_block_desc desc;
        dvt_block *mine, *child = dvt_nn_dense(2, DVT_RELU);
        memset(&desc, 0, sizeof desc);
        desc.kind = "mine";
        desc.forward = identity;
        mine = dvt_block_new(&desc);
        CHECK_INT(dvt_block_add_child(mine, child), DVT_OK);
        dvt_discard(child);
        borrowed(dvt_block_at(mine, 0));
        borrowed(dvt_block_add_param(mine, "scale", DVT_SHAPE(2), DVT_F32, dvt_init_one()));
        CHECK(dvt_block_at(mine, 0) == child);
    }
    CHECK_INT(alive(), before);
}

/* A trainer, a dataset or a loader keeps its own reference after the scope's reference is
   released. */
DVT_TEST(borrowed_after_the_scope_released_its_reference) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array *x = dvt_arange(0, 4, 1, DVT_F32, dvt_cpu()), *a = NULL, *b = NULL;
        dvt_dataset *data = dvt_dataset_arrays(x, x);
        dvt_loader_desc desc = {2, false, DVT_LAST_KEEP, 0, 0, DVT_CONTEXTS(dvt_cpu())};
        dvt_loader *loader = dvt_loader_new(data, &desc);
        dvt_discard(x);
        borrowed(x);
        dvt_discard(data);
        borrowed(data);
        CHECK(dvt_loader_next(loader, &a, &b));
        CHECK_VALUES(a, 0, 0, 1);
    }
    CHECK_INT(alive(), before);
}

/* A dataset without samples has no order to shuffle. A sanitizer would report the null pointer. */
DVT_TEST(loader_shuffles_an_empty_dataset) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_cpu()), *a, *b;
    int workers;
    for (workers = 0; workers < 2; workers++) {
        dvt_loader_desc desc = {2, true, DVT_LAST_KEEP, workers, 0, DVT_CONTEXTS(dvt_cpu())};
        dvt_loader *loader = dvt_loader_new(dvt_dataset_arrays(x, x), &desc);
        CHECK(!dvt_loader_next(loader, &a, &b));
        CHECK(!dvt_loader_next(loader, &a, &b));
        CHECK_INT(dvt_loader_len(loader), 0);
        CHECK_INT(dvt_error_code(), DVT_OK);
    }
}
#endif
