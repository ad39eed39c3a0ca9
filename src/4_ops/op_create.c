/* Creation: empty, zeros, ones, full, eye, arange, linspace, from_host. */
#include "4_ops/dvt_op.h"
