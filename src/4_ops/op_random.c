/* Random arrays, streams and keys. */
#include "4_ops/dvt_op.h"
