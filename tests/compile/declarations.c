/* The declarations alone, twice, with every macro that users write. Only compiled, not linked or
   run. */
#include "devtensor.h"
#include "devtensor.h"

dvt_array *declarations(void);

dvt_array *declarations(void) {
    dvt_array *(*function)(dvt_array *, dvt_array *) = dvt_add;
    dvt_array *x = DVT_ARRAY2(dvt_cpu(), float, 2, 2, {{1, 2}, {3, 4}}), *y = NULL;
    dvt_ctx_list all = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1));
    dvt_axes axes = DVT_AXES(0, -1);
    int steps = 0;
    DVT_SCOPE {
        DVT_WITH_CTX(all.ctx[1]) {
            DVT_RECORD {
                DVT_PREDICT_MODE {
                    y = (dvt_add)(dvt_sum(x, axes, true),
                                  dvt_zeros(DVT_SCALAR, DVT_F64, dvt_cpu()));
                }
            }
            if (steps++)
                continue;
        }
        DVT_RECORD_PREDICT {
            DVT_PAUSE {
                DVT_TRAIN_MODE {
                    y = function(y, DVT_ARRAY1(all.ctx[0], int32_t, 3, {1, 2, 3}));
                }
            }
        }
        dvt_keep(y);
    }
#if defined(__GNUC__) || defined(__cplusplus) /* other C compilers reject these */
    while (steps++ < 3) {
        DVT_SCOPED;
        DVT_CTX_SCOPED(dvt_cpu());
        DVT_RECORD_SCOPED(1, 1);
        if (dvt_item(dvt_add(y, y)) > 3)
            break;
    }
#endif
    y = dvt_add(y, DVT_ARRAY3(dvt_cpu(), double, 1, 1, 2, {{{1, 2}}}));
    y = dvt_add(y, DVT_ARRAY4(dvt_cpu(), unsigned char, 1, 1, 1, 2, {{{{1, 2}}}}));
    y = dvt_add(y, DVT_ARRAY1(dvt_cpu(), bool, 2, {true, false}));
    y = dvt_add(y, DVT_ARRAY1(dvt_cpu(), signed char, 2, {1, 2}));
    y = dvt_add(y, DVT_ARRAY1(dvt_cpu(), char, 2, {1, 2}));
    y = dvt_add(y, DVT_ARRAY1(dvt_cpu(), int64_t, 2, {1, 2}));
    return y;
}
