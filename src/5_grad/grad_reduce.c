/* Gradients of reductions and softmax. */
#include "5_grad/dvt_grad.h"
