/* Blocks and parameters from the inside. */
#ifndef DVTI_NN_H
#define DVTI_NN_H
#include "4_ops/dvt_op.h"

#endif
