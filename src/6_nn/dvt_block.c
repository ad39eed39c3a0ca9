/* Blocks: children, forward, printing. */
#include "6_nn/dvt_nn_internal.h"
