/* Batches, shuffling, worker threads. */
#include "7_train/dvt_train_internal.h"
