/* Attached gradients and the backward pass. */
#include "5_grad/dvt_grad.h"
