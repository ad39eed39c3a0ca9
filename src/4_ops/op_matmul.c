/* Matrix products. */
#include "4_ops/dvt_op.h"
