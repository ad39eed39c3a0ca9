/* gzip and deflate, reading. */
#include "5_io/dvt_io_internal.h"
