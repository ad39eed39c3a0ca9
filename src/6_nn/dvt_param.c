/* Parameters and collections of them. */
#include "6_nn/dvt_nn_internal.h"
