/* Sequential, Dense, Flatten, Activation, Dropout, Embedding. */
#include "6_nn/dvt_nn_internal.h"
