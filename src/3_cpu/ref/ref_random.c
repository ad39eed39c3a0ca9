/* Random numbers. */
#include "3_cpu/dvt_cpu.h"
