// C++: the same header. c++ -I. examples/cplusplus.cpp -lm -ldl -lpthread
// Operators are two lines of your own, and scopes end when an exception passes.
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <cstdio>
#include <stdexcept>

struct tensor {
    dvt_array *at;
};

static tensor checked(dvt_array *x) {
    if (!x)
        throw std::runtime_error(dvt_error());
    return tensor{x};
}

static tensor operator+(tensor a, tensor b) {
    return checked(dvt_add(a.at, b.at));
}

static tensor operator*(tensor a, double s) {
    return checked(dvt_mul_scalar(a.at, s));
}

int main() {
    dvt_set_log_level(DVT_LOG_OFF);
    try {
        DVT_SCOPED; // an exception ends it too
        tensor x = checked(DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1, 2, 3, 4));
        tensor y = checked(dvt_eye(2, 2, 0, DVT_F32, dvt_cpu()));
        dvt_print((x + y * 10).at);
        checked(
            dvt_matmul(x.at, dvt_ones(DVT_SHAPE(3, 1), DVT_F32, dvt_cpu()))); // 2 x 2 with 3 x 1
    } catch (const std::exception &error) {
        std::printf("caught: %s\n", error.what());
        dvt_clear_error();
    }
    std::printf("arrays alive after the scope: %lld\n", (long long)dvt_get_stats().arrays);
    return dvt_get_stats().arrays != 0;
}
