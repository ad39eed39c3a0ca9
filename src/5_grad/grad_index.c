/* Gradients of concat, take, take_along. */
#include "5_grad/dvt_grad.h"
