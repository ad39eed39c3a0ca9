/* The random generators: Philox 4x32-10, Threefry 2x32-20, MT19937. Plain functions on words; know no arrays. */
#include "1_base/dvt_base.h"
