/* What the readers and writers share: whole files in memory, and a checked cursor over bytes. */
#ifndef DVTI_IO_H
#define DVTI_IO_H
#include "4_ops/dvt_op.h"

#endif
