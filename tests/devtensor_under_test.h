/* Selects the tested form: the generated header, or with DVT_TEST_SPINE the sources through the
   spine. */
#ifdef DVT_TEST_SPINE
#include "devtensor_spine.h"
#else
#include "devtensor.h"
#endif
