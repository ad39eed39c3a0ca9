/* The one translation unit with the implementation. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor_under_test.h"
