/* Joining, splitting, taking by index. */
#include "4_ops/dvt_op.h"
