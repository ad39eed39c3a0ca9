/* Elementwise programs, in blocks. */
#include "3_cpu/dvt_cpu.h"
