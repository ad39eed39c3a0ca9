/* Copies between arrays, contexts and dtypes, as recorded operations. */
#include "4_ops/dvt_op.h"
