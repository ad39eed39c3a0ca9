/* The backend of cpu(): computes in the call. */
#include "3_cpu/dvt_cpu.h"
