#include "dvt_test.h"

DVT_TEST(print_first) {
    dvt_print(DVT_ARRAY1(dvt_cpu(), float, 3, {20.085537f, 109.1963f, 445.2395f}));
}
