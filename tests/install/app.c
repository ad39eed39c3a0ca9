/* A program outside of the repository, as C and as C++, with its own implementation or with the
 * package's. */
#ifdef WITH_IMPLEMENTATION
#define DEVTENSOR_IMPLEMENTATION
#define DEVTENSOR_NO_SIMD /* compiles in a quarter of the time */
#endif
#include <devtensor.h>

int main(void) {
    dvt_array *x = dvt_arange(0, 5, 1, DVT_F32, dvt_cpu());
    return dvt_item(dvt_sum(x, DVT_ALL)) == 10 ? 0 : 1;
}
