/* Conv2D and pooling. */
#include "6_nn/dvt_nn_internal.h"
