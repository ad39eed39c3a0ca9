/* Progress on a terminal. */
#include "7_train/dvt_train_internal.h"
