/* Gradients of matrix products. */
#include "5_grad/dvt_grad.h"
