/* Tests of the functions for several processes where there is one: the library without MPI.
   tests/mpi has the others. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

DVT_TEST(distributed_without_mpi) {
    dvt_array *x = dvt_full(DVT_SHAPE(3), 2, DVT_F32, dvt_cpu());
    CHECK_INT(dvt_distributed_init(), DVT_ERR_NOT_BUILT);
    CHECK(strstr(dvt_error(), "mpicc -DDEVTENSOR_MPI") != NULL);
    dvt_clear_error();
    CHECK_INT(dvt_rank(), 0);
    CHECK_INT(dvt_num_ranks(), 1);
    CHECK_INT(dvt_all_reduce_ranks(x), DVT_OK);
    CHECK_INT(dvt_broadcast_ranks(x, 0), DVT_OK);
    CHECK_VALUES(x, 0, 2, 2, 2);
    CHECK_INT(dvt_barrier_ranks(), DVT_OK);
    CHECK_INT(dvt_rank_bytes(), 0);
    CHECK_INT(dvt_distributed_end(), DVT_OK);
}

DVT_TEST(distributed_bucket_bytes) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_trainer *trainer =
        dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    CHECK_INT(dvt_trainer_set_bucket_bytes(trainer, 0), DVT_OK);
    CHECK_INT(dvt_trainer_set_bucket_bytes(trainer, 1 << 20), DVT_OK);
    CHECK_ERROR(dvt_trainer_set_bucket_bytes(trainer, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_set_bucket_bytes(NULL, 0), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(distributed_errors) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(2), DVT_BOOL, dvt_cpu());
    CHECK_ERROR(dvt_all_reduce_ranks(x), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_all_reduce_ranks(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_broadcast_ranks(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_broadcast_ranks(x, 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_broadcast_ranks(x, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_broadcast_ranks(dvt_broadcast_to(x, DVT_SHAPE(3, 2)), 0), DVT_ERR_VALUE);
}
#endif
