/* fill, arange, eye. */
#include "3_cpu/dvt_cpu.h"
