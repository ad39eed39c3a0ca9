/* The declarations alone, twice, with every macro that users write. Only compiled, not linked or
   run. */
#include "devtensor.h"
#include "devtensor.h"

dvt_array *declarations(void);

dvt_array *declarations(void) {
    dvt_array *(*function)(dvt_array *, dvt_array *) = dvt_add;
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3, 4), *y = NULL;
    dvt_ctx_list all = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1));
    dvt_axes axes = DVT_AXES(0, -1);
    int steps = 0;
    DVT_SCOPE {
        DVT_WITH_CTX(all.ctx[1]) {
            DVT_RECORD {
                DVT_PREDICT_MODE {
                    y = (dvt_add)(dvt_sum(dvt_sum(x, DVT_KEEPDIMS(0)), dvt_keepdims(axes)),
                                  dvt_zeros(DVT_SCALAR, DVT_F64, dvt_cpu()));
                }
            }
            if (steps++)
                continue;
        }
        DVT_RECORD_PREDICT {
            DVT_PAUSE {
                DVT_TRAIN_MODE {
                    y = function(y, DVT_ARRAY(int32_t, DVT_SHAPE(3), all.ctx[0], 1, 2, 3));
                }
            }
        }
        dvt_keep(y);
    }
#if defined(__GNUC__) || defined(__cplusplus) /* other C compilers reject these */
    while (steps++ < 3) {
        DVT_SCOPED;
        DVT_CTX_SCOPED(dvt_cpu());
        DVT_RECORD_SCOPED;
        DVT_MODE_SCOPED(DVT_UNCHANGED, DVT_OFF);
        if (dvt_item(dvt_add(y, y)) > 3)
            break;
        {
            DVT_PAUSE_SCOPED;
            y = dvt_detach(y);
        }
    }
#endif
#if !defined(DEVTENSOR_NO_NN)
    {
        dvt_block *net = dvt_nn_sequential();
        dvt_loader *loader = dvt_loader_new(dvt_dataset_arrays(x, y), NULL);
        dvt_array *a, *b;
        DVT_NN_ADD(net, dvt_nn_dense(3, DVT_RELU), dvt_nn_flatten());
        DVT_NN_ADD(net, dvt_nn_dropout(0.5));
        DVT_FOR_BATCHES(loader, a, b) {
            y = dvt_loss_l2(dvt_block_forward(net, a), b);
        }
    }
#endif
    y = dvt_slice(y, 0, 0, DVT_END, 1);
    y = dvt_max(dvt_squeeze(y, DVT_ALL), DVT_ALL);
    y = dvt_add(y, DVT_ARRAY(double, DVT_SHAPE(1, 1, 2), dvt_cpu(), 1, 2));
    y = dvt_add(y, DVT_ARRAY(unsigned char, DVT_SHAPE(1, 1, 1, 2), dvt_cpu(), 1, 2));
    y = dvt_add(y, DVT_ARRAY(bool, DVT_SHAPE(2), dvt_cpu(), true, false));
    y = dvt_add(y, DVT_ARRAY(signed char, DVT_SHAPE(2), dvt_cpu(), 1, 2));
    y = dvt_add(y, DVT_ARRAY(char, DVT_SHAPE(2), dvt_cpu(), 1, 2));
    y = dvt_add(y, DVT_ARRAY(int64_t, DVT_SHAPE(2), dvt_cpu(), 1, 2));
    y = dvt_add(
        y, DVT_ARRAY(bool, DVT_SCALAR, dvt_cpu(), dvt_allclose(x, y, 1e-5, 1e-8, DVT_NAN_DIFFERS)));
    return y;
}
