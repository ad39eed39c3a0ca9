/* take, take_along, one_hot. */
#include "3_cpu/dvt_cpu.h"
