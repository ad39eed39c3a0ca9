/* Curves as SVG. */
#include "7_train/dvt_train_internal.h"
