/* Training from the inside. */
#ifndef DVTI_TRAIN_H
#define DVTI_TRAIN_H
#include "6_nn/dvt_nn_internal.h"

#endif
