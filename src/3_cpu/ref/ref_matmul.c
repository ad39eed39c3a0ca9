/* Matrix product. */
#include "3_cpu/dvt_cpu.h"
