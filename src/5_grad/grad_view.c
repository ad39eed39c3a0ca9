/* Gradients of views. */
#include "5_grad/dvt_grad.h"
