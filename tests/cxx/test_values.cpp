// Tests devtensor.hpp: values, operators, slices, ownership, errors, gradients, networks. Ends in
// the line "N passed, N failed, N skipped".
#include "devtensor.hpp"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <thread>
using namespace devtensor;

static int passed, failed;
#define CHECK(condition)                                                                           \
    ((condition)                                                                                   \
         ? (void)passed++                                                                          \
         : (void)(failed++, std::printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #condition)))

template <class F> static dvt_status code_of(F f) {
    try {
        f();
    } catch (const error &e) {
        CHECK(e.what()[0] != '\0');
        return e.code;
    }
    return DVT_OK;
}

static bool is(const array &x, std::initializer_list<double> wanted) {
    return x.to_vector<double>() == std::vector<double>(wanted);
}

static std::string text(const array &x) {
    std::ostringstream out;
    out << x;
    return out.str();
}

static void creation() {
    CHECK(is(array{1, 2, 3}, {1, 2, 3}) && array({1, 2, 3}).dtype() == f32);
    array rows = {{1, 2, 3}, {4, 5, 6}};
    CHECK((rows.shape() == shape{2, 3}) && rows.ndim() == 2 && rows.size() == 6);
    CHECK(array({1, 2}, i32).dtype() == i32 && array(2.5, f64).ndim() == 0);
    CHECK(code_of([] { array ragged = {{1, 2}, {3}}; }) == DVT_ERR_SHAPE);
    const std::vector<int64_t> whole = {7, 8};
    CHECK(array(whole).dtype() == i64 && array(whole).to_vector<int64_t>() == whole);
    const float four[] = {1, 2, 3, 4};
    CHECK(is(array::from(four, {2, 2}).t(), {1, 3, 2, 4}));
    CHECK(is(zeros({2}), {0, 0}) && is(ones({2}, u8), {1, 1}) && is(full({2}, 7), {7, 7}));
    CHECK(is(eye(2), {1, 0, 0, 1}) && is(arange(0, 3), {0, 1, 2}) && zeros({}).ndim() == 0);
    CHECK(text(rows) == "[[1. 2. 3.]\n [4. 5. 6.]]\n<NDArray 2x3 @cpu(0)>\n");
    CHECK(code_of([] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }) == DVT_ERR_RANGE);
    call(dvt_seed, uint64_t(3));
    const array a = uniform(0, 1, {100}), b = normal(0, 1, {100});
    CHECK(min(a).item() >= 0 && max(a).item() < 1 && min(b).item() < 0);
}

static void operators() {
    const array a = {1, 2, 3}, b = {3, 2, 1};
    CHECK(is(a + b, {4, 4, 4}) && is(a - 1, {0, 1, 2}) && is(1 - a, {0, -1, -2}) &&
          is(-a, {-1, -2, -3}));
    CHECK(is(a * b, {3, 4, 3}) && is(6 / a, {6, 3, 2}) && is(a % 2, {1, 0, 1}));
    CHECK(is(a == b, {0, 1, 0}) && is(a < 2, {1, 0, 0}) && is(2 <= a, {0, 1, 1}) &&
          is(!(a > b), {1, 1, 0}));
    CHECK(is(pow(a, 2), {1, 4, 9}) && is(pow(2, a), {2, 4, 8}) && is(maximum(a, b), {3, 2, 3}));
    CHECK(is(where(a > 1, a, b), {3, 2, 3}) && is(clip(a, 2, 2.5), {2, 2, 2.5}));
    CHECK(std::abs(exp(a)(1).item() - std::exp(2.0)) < 1e-5 && is(sqrt(square(a)), {1, 2, 3}));
    CHECK(is(concat({a, b}), {1, 2, 3, 3, 2, 1}) && is(call(dvt_cumsum, a, 0), {1, 3, 6}));
    const array m = {{1, 2}, {3, 4}};
    CHECK(is(matmul(m, m), {7, 10, 15, 22}) && is(sum(m), {10}) && is(sum(m, {0}), {4, 6}));
    CHECK((sum(m, keep({1})).shape() == shape{2, 1}) && (sum(m, keep()).shape() == shape{1, 1}));
    CHECK(is(argmax(m, {1}), {1, 1}) && is(softmax(array{0, 0}), {0.5, 0.5}));
}

static void slices() {
    array x = arange(0, 24).reshape({2, 3, 4});
    CHECK(is(x(1, 2), {20, 21, 22, 23}) && is(x(1, -1, 0), {20}) && is(x(all, 0, 1), {1, 13}));
    CHECK(is(x(0, slice(1, 3), slice(0, DVT_END, 3)), {4, 7, 8, 11}));
    CHECK(is(x(0, 0, slice(-1, DVT_END, -1)), {3, 2, 1, 0}));
    CHECK((x(newaxis, all, newaxis, 1).shape() == shape{1, 2, 1, 4}) && x.shape()[-1] == 4);
    CHECK(code_of([&] { x(2); }) == DVT_ERR_RANGE && code_of([&] { x(0, 3); }) == DVT_ERR_RANGE);
    CHECK(code_of([&] { x(0, 0, 0, 0); }) == DVT_ERR_AXIS);
    x(0, 0) = 5;                 // a number
    x(0, 1) = array{1, 2, 3, 4}; // an array
    x(1) = x(0, 1);              // broadcasts a view
    x(all, 2) += 100;
    CHECK(is(x(0), {5, 5, 5, 5, 1, 2, 3, 4, 108, 109, 110, 111}));
    CHECK(is(x(1), {1, 2, 3, 4, 1, 2, 3, 4, 101, 102, 103, 104}));
    double total = 0;
    for (const array row : x)
        total += sum(row).item();
    CHECK(total == sum(x).item());
    array first = x(0);
    first = array{1}; // names another array, and leaves x alone
    CHECK(x(0, 0, 0).item() == 5 && first.size() == 1);
}

static void ownership() {
    const int64_t before = dvt_get_stats().arrays;
    {
        array a = {1, 2}, same = a, other = copy(a), moved = std::move(same);
        moved += 1;
        CHECK(is(a, {2, 3}) && is(other, {1, 2}) && same.get() == nullptr);
        for (int i = 0; i < 100; i++)
            a = a + other * 2 - other;
        CHECK(is(a, {102, 203}) && dvt_get_stats().arrays == before + 3);
        array outside(a.get());
        std::thread([outside]() mutable { outside = outside + 1; }).join();
        CHECK(code_of([&] { (a + other)(7); }) == DVT_ERR_RANGE);
        DVT_SCOPE {
            outside = array(dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()));
        }
        CHECK(sum(outside).item() == 3);
    }
    CHECK(dvt_get_stats().arrays == before);
}

static void errors() {
    const array a = {1, 2}, b = {1, 2, 3};
    CHECK(code_of([&] { a + b; }) == DVT_ERR_SHAPE && dvt_error_code() == DVT_OK);
    CHECK(code_of([&] { a.to(gpu(12)); }) == DVT_ERR_NO_DEVICE);
    CHECK(code_of([&] { exp(array()); }) == DVT_ERR_NULL_ARGUMENT);
    CHECK(code_of([&] {
              if (a == a)
                  return;
          }) == DVT_ERR_SHAPE);
    CHECK(static_cast<bool>(all_of(a == a)) && !any_of(a != a));
    CHECK(code_of([&] { a.item(); }) == DVT_ERR_SHAPE && array(3.7).item<int>() == 3);
    try {
        matmul(a, b);
    } catch (const std::runtime_error &e) {
        CHECK(std::strstr(e.what(), "dvt_matmul") != nullptr);
    }
    std::string name = call(dvt_ctx_name, cpu(1));
    CHECK(name == "cpu(1)");
    CHECK(code_of([] { call(dvt_dtype_parse, std::string("no dtype"), nullptr); }) != DVT_OK);
}

static void contexts() {
    call(dvt_set_virtual_gpus, 2, int64_t(0));
    array x = ones({2}, f32, gpu(1));
    CHECK(x.ctx().id == 1 && is(x.to(cpu()), {1, 1}) && x.to(gpu(1)).get() == x.get());
    CHECK(code_of([&] { x + ones({2}); }) == DVT_ERR_CONTEXT);
    {
        const on_context now(gpu(0));
        CHECK(zeros({1}).ctx().type == DVT_DEVICE_GPU);
    }
    CHECK(zeros({1}).ctx().type == DVT_DEVICE_CPU);
}

static void gradients() {
    array w = {1, 2};
    w.attach_grad();
    array loss;
    {
        const record now;
        {
            const no_record here;
            CHECK(!dvt_is_recording());
        }
        loss = sum(square(w));
    }
    CHECK(!dvt_is_recording());
    loss.backward();
    CHECK(is(w.grad(), {2, 4}));
    CHECK(code_of([&] { loss.backward(); }) == DVT_ERR_GRAD);
}

#if !defined(DEVTENSOR_NO_NN)
static void networks() {
    const block net = sequential(
        {call(dvt_nn_dense, int64_t(8), DVT_TANH), call(dvt_nn_dense, int64_t(1), DVT_IDENTITY)});
    call(dvt_block_initialize, net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
    const auto trainer = call(dvt_trainer_new, call(dvt_block_collect_params, net, nullptr),
                              dvt_optimizer_adam(0.05));
    const array x = uniform(-1, 1, {64, 2});
    const array y = x(all, slice(0, 1)) * x(all, slice(1, 2));
    const auto data = call(dvt_dataset_arrays, x, y);
    dvt_loader_desc desc = {};
    desc.batch_size = 16;
    const auto batches = call(dvt_loader_new, data, &desc);
    double begin = 0, end = 0;
    for (int epoch = 0; epoch < 30; epoch++) {
        array a, b;
        end = 0;
        while (next(batches, a, b)) {
            array loss;
            {
                const record now;
                loss = call(dvt_loss_l2, forward(net, a), b);
            }
            loss.backward();
            call(dvt_trainer_step, trainer, a.shape()[0]);
            end += sum(loss).item();
        }
        begin = epoch ? begin : end;
    }
    CHECK(end < begin / 2);
    CHECK(code_of([&] { forward(net, zeros({4, 3})); }) == DVT_ERR_SHAPE);
}
#endif

int main() {
    dvt_set_log_level(DVT_LOG_OFF);
    creation();
    operators();
    slices();
    ownership();
    errors();
    gradients();
#if !defined(DEVTENSOR_NO_NN)
    networks();
#endif
    contexts();
    CHECK(dvt_get_stats().arrays == 0);
    std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
