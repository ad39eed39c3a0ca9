/* Gradients of convolution and pooling. */
#include "5_grad/dvt_grad.h"
