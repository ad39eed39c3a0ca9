/* Reading and writing whole files: temporary file and rename. */
#include "5_io/dvt_io_internal.h"
