/* A program that uses every module of a build, in C99 and C++11. It returns 0 when the values are
   right; otherwise the line of the failed check, modulo 256. */
#if !defined(SMOKE_USES_OBJECT)
#define DEVTENSOR_IMPLEMENTATION
#endif
#include "devtensor.h"
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("smoke.c:%d: %s; %s\n", __LINE__, #condition, dvt_error());                     \
            return __LINE__ % 255 + 1;                                                             \
        }                                                                                          \
    } while (0)

static int arrays(void) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 1, 2, 3, 4, 5, 6);
    dvt_array *sum = dvt_sum(dvt_mul(x, dvt_add_scalar(x, 1)), DVT_ALL);
    char text[200];
    EXPECT(dvt_item(sum) == 112);
    EXPECT(dvt_item_at(dvt_matmul(x, dvt_t(x)), DVT_SHAPE(0, 1)) == 32);
    EXPECT(dvt_format(x, NULL, text, sizeof text, NULL) == DVT_OK);
    EXPECT(strstr(text, "[[1. 2. 3.]") != NULL && strstr(text, "<NDArray 2x3 @cpu(0)>") != NULL);
    return 0;
}

static int contexts(void) {
    dvt_array *here, *there;
    EXPECT(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    here = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu());
    there = dvt_copyto(here, dvt_gpu(0));
    EXPECT(dvt_item(dvt_sum(there, DVT_ALL)) == 4);
    EXPECT(dvt_add(here, there) == NULL && dvt_error_code() == DVT_ERR_CONTEXT);
#if defined(DEVTENSOR_NO_CALL_SITES)
    EXPECT(dvt_error_site()[0] == 0 && dvt_made_at(here)[0] == 0);
#else
    EXPECT(strstr(dvt_error_site(), "smoke.c:") != NULL && strstr(dvt_error(), "smoke.c:") != NULL);
#endif
    dvt_clear_error();
    dvt_discard_all();
    EXPECT(dvt_set_virtual_gpus(0, 0) == DVT_OK);
    return 0;
}

static int gradients(void) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(2), dvt_cpu(), 3, 4), *y = NULL;
    EXPECT(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = dvt_square(x);
    }
    EXPECT(dvt_backward(y) == DVT_OK && dvt_item_at(dvt_grad(x), DVT_SHAPE(1)) == 8);
    return 0;
}

static int files(void) {
    dvt_array *x = dvt_arange(0, 6, 1, DVT_I32, dvt_cpu());
#if defined(DEVTENSOR_NO_FILES)
    EXPECT(dvt_save_npy("smoke.npy", x) == DVT_ERR_NOT_BUILT);
    dvt_clear_error();
#else
    EXPECT(dvt_save_npy("smoke.npy", x) == DVT_OK);
    EXPECT(dvt_item(dvt_sum(dvt_load_npy("smoke.npy", dvt_cpu()), DVT_ALL)) == 15);
    remove("smoke.npy");
#endif
    return 0;
}

/* Formats other than .npy, .params, IDX and bytes. */
static int formats(void) {
    static const unsigned char image[] = {'P', '5', ' ', '1', ' ', '1', ' ', '9', ' ', 9};
    static const unsigned char gzip[] = {0x1f, 0x8b, 8, 0}, zip[] = {'P', 'K', 5, 6};
    static const unsigned char idx[] = {0, 0, 8, 1, 0, 0, 0, 1, 7};
    dvt_array *x = dvt_read_image(image, sizeof image, dvt_cpu());
    EXPECT(dvt_item(dvt_read_idx(idx, sizeof idx, dvt_cpu())) == 7);
#if defined(DEVTENSOR_NO_FORMATS)
    EXPECT(x == NULL && dvt_error_code() == DVT_ERR_NOT_BUILT);
    EXPECT(strstr(dvt_error(), "dvt_read_image: this build was compiled with") != NULL);
    dvt_clear_error();
    EXPECT(dvt_read_idx(gzip, sizeof gzip, dvt_cpu()) == NULL);
    EXPECT(dvt_error_code() == DVT_ERR_NOT_BUILT);
    dvt_clear_error();
    EXPECT(dvt_read_arrays(zip, sizeof zip, dvt_cpu()) == NULL);
    EXPECT(dvt_error_code() == DVT_ERR_NOT_BUILT);
    dvt_clear_error();
    x = dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu());
    EXPECT(dvt_save_arrays("smoke.npz", &x, NULL, 1) == DVT_ERR_NOT_BUILT);
    EXPECT(dvt_save_csv("smoke.csv", x, NULL) == DVT_ERR_NOT_BUILT);
    dvt_clear_error();
#else
    EXPECT(dvt_item(x) == 255);
    EXPECT(dvt_read_idx(gzip, sizeof gzip, dvt_cpu()) == NULL);
    EXPECT(dvt_error_code() == DVT_ERR_FORMAT);
    dvt_clear_error();
    EXPECT(dvt_read_arrays(zip, sizeof zip, dvt_cpu()) == NULL);
    EXPECT(dvt_error_code() == DVT_ERR_FORMAT);
    dvt_clear_error();
#endif
    return 0;
}

#if !defined(DEVTENSOR_NO_NN)
static int networks(void) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *x = dvt_ones(DVT_SHAPE(8, 3), DVT_F32, dvt_cpu()), *loss = NULL;
    dvt_array *target = dvt_ones(DVT_SHAPE(8, 1), DVT_F32, dvt_cpu());
    dvt_trainer *trainer;
    double first = 0, last = 0;
    int step;
    EXPECT(DVT_NN_ADD(net, dvt_nn_dense(4, DVT_RELU), dvt_nn_dense(1, DVT_IDENTITY)) == DVT_OK);
    EXPECT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())) == DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    for (step = 0; step < 20; step++)
        DVT_SCOPE {
            DVT_RECORD {
                loss = dvt_loss_l2(dvt_block_forward(net, x), target);
            }
            EXPECT(dvt_backward(loss) == DVT_OK && dvt_trainer_step(trainer, 8) == DVT_OK);
            last = dvt_item(dvt_mean(loss, DVT_ALL));
            if (step == 0)
                first = last;
        }
    EXPECT(last < first);
    return 0;
}
#endif

int main(void) {
    int failed = arrays();
    if (!failed)
        failed = contexts();
    if (!failed)
        failed = gradients();
    if (!failed)
        failed = files();
    if (!failed)
        failed = formats();
#if !defined(DEVTENSOR_NO_NN)
    if (!failed)
        failed = networks();
#endif
    if (!failed && dvt_error_code() != DVT_OK) {
        printf("an error is left: %s\n", dvt_error());
        failed = 1;
    }
    return failed;
}
