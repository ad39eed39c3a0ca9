/* What is set within a guard is known to be set: an optimising compiler has nothing to warn of. Only compiled. */
#include "devtensor.h"

double guards(dvt_array *x);

double guards(dvt_array *x) {
    dvt_array *loss, *copy;
    double value;
    DVT_SCOPE {
        DVT_RECORD {
            loss = dvt_mean(x, DVT_ALL, false);
        }
        dvt_backward(loss);
        DVT_WITH_CTX(dvt_cpu()) {
            copy = dvt_zeros_like(loss);
        }
        value = dvt_item(copy);
    }
    return value;
}
