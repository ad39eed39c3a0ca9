/* Convolution and pooling. */
#include "3_cpu/dvt_cpu.h"
