/* Convolution and pooling. */
#include "4_ops/dvt_op.h"
