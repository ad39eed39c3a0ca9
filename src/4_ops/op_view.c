/* Views: other shapes and strides on the same memory. */
#include "4_ops/dvt_op.h"
