/* The functions that the op table's F and I texts call, for the CPU. */
#ifndef DVTI_ROW_TEXT_H
#define DVTI_ROW_TEXT_H
#include "1_base/dvt_platform.h"

#define DVTI_ROW_FN static inline DVTI_UNUSED
#include "2_core/math/row_functions.inl"
#undef DVTI_ROW_FN

#endif
