/* Layers as functions: linear, dropout, normalisations. */
#include "4_ops/dvt_op.h"
