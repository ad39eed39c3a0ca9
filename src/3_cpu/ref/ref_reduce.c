/* Reductions and softmax. */
#include "3_cpu/dvt_cpu.h"
