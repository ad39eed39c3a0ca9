/* Virtual GPUs: a memory space with a limit, and a queue with a thread of its own, over the CPU kernels. */
#include "3_cpu/dvt_cpu.h"
