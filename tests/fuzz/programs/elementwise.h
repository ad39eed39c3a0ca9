/* Values that elementwise.c computes. The functions return false where the model has none. */
#ifndef DVT_FUZZ_ELEMENTWISE_H
#define DVT_FUZZ_ELEMENTWISE_H
#include "programs.h"

bool fuzz_unary_value(const char *name, dvt_dtype dtype, fuzz_value x, fuzz_value *out);
bool fuzz_binary_value(const char *name, dvt_dtype dtype, fuzz_value a, fuzz_value b,
                       fuzz_value *out);
/* Converts a scalar operand next to an array of that dtype. */
fuzz_value fuzz_scalar_value(dvt_dtype dtype, double s);

#endif
