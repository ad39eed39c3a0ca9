/* BatchNorm and LayerNorm. */
#include "6_nn/dvt_nn_internal.h"
