// C++: values, operators, slices and exceptions by devtensor.hpp. A network learns the product of
// two numbers. c++ -std=c++17 -I. examples/cplusplus.cpp -lm -ldl -lpthread
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.hpp"
#include <iostream>
using namespace devtensor;

static void train() {
    const context device = try_gpu(0);
    const array x = uniform(-1, 1, {256, 2}, f32, device);
    const array y = x(all, slice(0, 1)) * x(all, slice(1, 2));
    const block net = sequential({call(dvt_nn_dense, 16, DVT_TANH), //
                                  call(dvt_nn_dense, 1, DVT_IDENTITY)});
    call(dvt_block_initialize, net, dvt_init_xavier(), DVT_CONTEXTS(device));
    const auto trainer = call(dvt_trainer_new, call(dvt_block_collect_params, net, nullptr),
                              dvt_optimizer_adam(0.05));
    for (int step = 0; step <= 60; step++) {
        array loss;
        {
            const record now;
            loss = call(dvt_loss_l2, forward(net, x), y);
        }
        loss.backward();
        call(dvt_trainer_step, trainer, 256);
        if (step % 30 == 0)
            std::cout << "step " << step << ", loss " << mean(loss).item() << "\n";
    }
}

int main() {
    dvt_set_log_level(DVT_LOG_OFF); // errors arrive as exceptions
    try {
        array a = {{1, 2}, {3, 4}};
        array b = exp(a) / 10 + a(0); // a(0) is a view of the first row
        b(all, 1) = 0;
        std::cout << b << "column sums " << sum(b, {0});
        train();
        matmul(a, ones({3, 1})); // (2, 2) with (3, 1)
    } catch (const error &failure) {
        std::cout << "caught: " << failure.what() << "\n";
    }
    std::cout << "arrays alive: " << dvt_get_stats().arrays << "\n";
    return dvt_get_stats().arrays != 0;
}
