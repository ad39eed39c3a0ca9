/* Gradients of the op table's rows, where, clip, copy. */
#include "5_grad/dvt_grad.h"
