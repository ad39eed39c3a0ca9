/* NumPy text of arrays. */
#include "5_io/dvt_io_internal.h"
