/* IDX, plain and compressed. */
#include "5_io/dvt_io_internal.h"
