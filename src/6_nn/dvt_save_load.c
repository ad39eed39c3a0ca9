/* save_parameters and load_parameters. */
#include "6_nn/dvt_nn_internal.h"
