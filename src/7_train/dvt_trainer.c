/* Trainer: all-reduce and update. */
#include "7_train/dvt_train_internal.h"
