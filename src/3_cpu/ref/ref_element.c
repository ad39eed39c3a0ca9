/* Loading and storing single elements of any dtype. */
#include "3_cpu/dvt_cpu.h"
