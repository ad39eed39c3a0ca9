/* Apache MXNet .params. */
#include "5_io/dvt_io_internal.h"
