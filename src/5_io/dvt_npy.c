/* NumPy .npy. */
#include "5_io/dvt_io_internal.h"
