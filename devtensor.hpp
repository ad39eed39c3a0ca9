// devtensor.hpp: devtensor.h for C++17, as values with operators, slices and exceptions.
//
//     #define DEVTENSOR_IMPLEMENTATION // in exactly one source file
//     #include "devtensor.hpp"
//     using namespace devtensor;
//
//     array x = uniform(0, 1, {3, 4}, f32, try_gpu(0));
//     array y = exp(x) * 2 + x(0);     // broadcasts; x(0) is a view of the first row
//     y(all, slice(1, 3)) = 0;         // writes into y
//     std::cout << sum(y, {1}) << '\n';
//
// Copies share one object, as Python's names do: after `b = a`, `b += 1` changes a; copy(a) is new
// memory. Nothing needs a scope. A call that fails throws devtensor::error. Contexts, copies, waits
// and threads: see devtensor.h.
#ifndef DEVTENSOR_HPP
#define DEVTENSOR_HPP
#include "devtensor.h"
#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if !defined(__cpp_exceptions)
#error "devtensor.hpp reports errors as exceptions: without them, use devtensor.h"
#endif

namespace devtensor {
// A failed call. what() is the library's sentence.
struct error : std::runtime_error {
    error(dvt_status status, const char *message) : std::runtime_error(message), code(status) {}
    dvt_status code;
};

// ---- contexts, dtypes, shapes, axes, slices ----
using context = dvt_ctx;
inline context cpu(int id = 0) { return dvt_cpu_id(id); }
inline context gpu(int id = 0) { return dvt_gpu(id); }
inline context try_gpu(int id = 0) { return dvt_try_gpu(id); }
using dtype = dvt_dtype;
inline constexpr dtype f16 = DVT_F16, bf16 = DVT_BF16, f32 = DVT_F32, f64 = DVT_F64, i8 = DVT_I8,
                       u8 = DVT_U8, i32 = DVT_I32, i64 = DVT_I64, boolean = DVT_BOOL;
template <class T> int fill_in(const std::initializer_list<T> &from, T (&to)[DVT_MAX_DIMS]) {
    if (from.size() > DVT_MAX_DIMS)
        throw error(DVT_ERR_RANGE, "devtensor: more than 8 extents or axes in a list");
    return static_cast<int>(std::copy(from.begin(), from.end(), to) - to);
}
struct shape : dvt_shape { // {2, 3}; {} has no axes
    shape(const dvt_shape &s) : dvt_shape(s) {}
    shape(std::initializer_list<int64_t> s) : dvt_shape() { ndim = fill_in(s, dim); }
    int64_t operator[](int axis) const { return dim[axis < 0 ? axis + ndim : axis]; }
    friend bool operator==(const shape &a, const shape &b) { return dvt_shape_equal(a, b); }
};
struct axes : dvt_axes { // of a reduction: {0, -1}; {} means all
    axes() : dvt_axes() {}
    axes(std::initializer_list<int> list) : dvt_axes() { n = fill_in(list, axis); }
};
inline axes keep(axes a = {}) { return a.keepdims = true, a; } // the result keeps reduced axes
struct slice { // start:stop:step of Python; slice(-1, DVT_END, -1) reverses
    slice(int64_t a = 0, int64_t b = DVT_END, int64_t c = 1) : start(a), stop(b), step(c) {}
    int64_t start, stop, step;
};
inline const slice all;
inline constexpr struct newaxis_type {} newaxis{};

// ---- counted references to objects of the library ----
struct handle_base {};
template <class T> class handle : public handle_base { // null by default
public:
    handle() = default;
    explicit handle(T *object) : object_(static_cast<T *>(dvt_retain(object))) {}
    handle(const handle &other) : handle(other.object_) {}
    handle(handle &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    handle &operator=(handle other) noexcept { return std::swap(object_, other.object_), *this; }
    ~handle() { dvt_release(object_); }
    T *get() const { return object_; } // for the C API, borrowed
private:
    T *object_ = nullptr;
};
class array;

namespace detail {
inline void check() {
    if (dvt_error_code() == DVT_OK)
        return;
    const error failure(dvt_error_code(), dvt_error());
    dvt_clear_error();
    throw failure;
}
// A guard of the C API as an object.
template <class G, void (*End)(G *)> struct guard {
    explicit guard(const G &begun) : state(begun) {}
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    ~guard() { End(&state); }
    G state;
};
using scope = guard<dvt_scope_guard, dvt_scope_end>;
template <class T> decltype(auto) raw(T &&value) { // the argument of the C function
    using plain = std::decay_t<T>;
    if constexpr (std::is_base_of<handle_base, plain>::value)
        return value.get();
    else if constexpr (std::is_same<plain, std::string>::value)
        return value.c_str();
    else
        return std::forward<T>(value);
}
template <class R> auto value(R result) {
    if constexpr (std::is_same<R, dvt_array *>::value)
        return array(result);
    else if constexpr (std::is_class<std::remove_pointer_t<R>>::value && std::is_pointer<R>::value)
        return handle<std::remove_pointer_t<R>>(result);
    else
        return result;
}
} // namespace detail

// Calls any C function, with values for its pointers and std::string for its texts, and returns a
// value: call(dvt_cumsum, x, 0). Throws the function's error, or one that C code left behind.
template <class R, class... P, class... A> auto call(R (*function)(P...), A &&...arguments) {
    const detail::scope owns_results(dvt_scope_begin());
    if constexpr (std::is_void<R>::value) {
        function(detail::raw(std::forward<A>(arguments))...), detail::check();
    } else {
        R result = function(detail::raw(std::forward<A>(arguments))...);
        detail::check();
        return detail::value(result);
    }
}

// ---- arrays ----
class array : public handle<dvt_array> {
    template <class T> using list = std::initializer_list<T>;
    template <class T> static int64_t length(const T &x) { return static_cast<int64_t>(x.size()); }
    template <class T> static devtensor::dtype type_of() { return DVT_DTYPE_OF(T); }
public:
    array() = default;
    explicit array(dvt_array *x) : handle(x) {} // shares an array of the C API
    explicit array(double value, dtype t = f32, context on = {})
        : array(call(dvt_scalar, value, t, on)) {}
    array(list<double> v, dtype t = f32, context on = {})
        : array(from(v.begin(), {length(v)}, on).as(t)) {}
    array(list<list<double>> rows, dtype t = f32, context on = {})
        : array(join(dvt_stack, {rows.begin(), rows.end()}, 0).as(t).to(on)) {}
    template <class T> explicit array(const std::vector<T> &v, context on = {})
        : array(from(v.data(), {length(v)}, on)) {}
    template <class T> static array from(const T *data, const shape &s, context on = {}) {
        return call(dvt_from_host, data, s, type_of<T>(), on); // copies elements in C order
    }
    array(const array &) = default;
    array(array &&) noexcept = default;
    array &operator=(const array &) & = default; // x = y: x is y from now on
    array &operator=(array &&) & noexcept = default;
    array &operator=(const array &y) && { return call(dvt_copy_into, *this, y), *this; } // x(0) = y
    array &operator=(double value) && { return call(dvt_fill, *this, value), *this; }

    devtensor::shape shape() const { return call(dvt_shape_of, *this); }
    int ndim() const { return call(dvt_ndim, *this); }
    int64_t size() const { return call(dvt_size, *this); }
    devtensor::dtype dtype() const { return call(dvt_dtype_of, *this); }
    context ctx() const { return call(dvt_ctx_of, *this); }
    array as(devtensor::dtype t) const { return call(dvt_as_in_dtype, *this, t); } // or itself
    array to(context on) const { return call(dvt_as_in_ctx, *this, on); }          // or itself
    array reshape(const devtensor::shape &s) const { return call(dvt_reshape, *this, s); }
    array t() const { return call(dvt_t, *this); }
    template <class F> static array join(F f, const std::vector<array> &arrays, int axis) {
        std::vector<dvt_array *> raw;
        for (const array &x : arrays)
            raw.push_back(x.get());
        return call(f, raw.data(), static_cast<int>(raw.size()), axis);
    }
    void attach_grad(dvt_grad_req r = DVT_GRAD_WRITE) { call(dvt_attach_grad, *this, r); }
    array grad() const { return call(dvt_grad, *this); }
    void backward() const { call(dvt_backward, *this); }

    // Reading waits, and copies them to host memory.
    template <class T = double> T item() const {
        if constexpr (std::is_integral<T>::value && !std::is_same<T, bool>::value)
            return static_cast<T>(call(dvt_item_int, *this));
        else
            return static_cast<T>(call(dvt_item, *this));
    }
    explicit operator bool() const { return item<bool>(); } // of one element, as in NumPy
    template <class T> std::vector<T> to_vector() const {
        static_assert(!std::is_same<T, bool>::value, "use unsigned char");
        std::vector<T> v(static_cast<size_t>(size()));
        call(dvt_to_host, as(type_of<T>()), v.data(), static_cast<int64_t>(v.size() * sizeof(T)));
        return v;
    }
    // Returns a view: x(1), x(slice(1, 3), -1), x(all, newaxis).
    template <class... I> array operator()(I... index) const {
        array view = *this;
        int axis = 0;
        return (view.apply(index, axis), ...), view;
    }
    struct iterator { // for (array row : x)
        const array *x;
        int64_t i;
        array operator*() const { return (*x)(i); }
        iterator &operator++() { return ++i, *this; }
        bool operator!=(const iterator &other) const { return i != other.i; }
    };
    iterator begin() const { return {this, 0}; }
    iterator end() const { return {this, call(dvt_dim, *this, 0)}; }
private:
    void apply(slice s, int &k) { *this = call(dvt_slice, *this, k++, s.start, s.stop, s.step); }
    void apply(newaxis_type, int &axis) { *this = call(dvt_expand_dims, *this, axis++); }
    void apply(int64_t i, int &axis) {
        const array first = call(dvt_swapaxes, *this, 0, axis);
        const array one = call(dvt_expand_dims, call(dvt_index, first, i), 0);
        *this = call(dvt_squeeze, call(dvt_swapaxes, one, 0, axis), axes{axis});
    }
};

// ---- operators and functions; call() reaches all others ----
#define DVT_F1(name) inline array name(const array &x) { return call(dvt_##name, x); }
#define DVT_FA(name) DVT_FN(name, (const array &x, axes a = {}), x, a)
#define DVT_FN(f, parameters, ...) inline array f parameters { return call(dvt_##f, __VA_ARGS__); }
#define DVT_OP(f, name)                                                                            \
    inline array f(const array &a, const array &b) { return call(dvt_##name, a, b); }              \
    inline array f(const array &a, double b) { return call(dvt_##name##_scalar, a, b); }           \
    inline array f(double a, const array &b) { return call(dvt_scalar_##name, a, b); }
#define DVT_TO(f, name) /* writes into a */                                                        \
    inline array f(const array &a, const array &b) { return call(dvt_##name##_, a, b); }           \
    inline array f(const array &a, double b) { return call(dvt_##name##_scalar_, a, b); }
DVT_OP(operator+, add) DVT_OP(operator-, sub) DVT_OP(operator*, mul) DVT_OP(operator/, div)
DVT_OP(operator%, mod) DVT_OP(operator==, equal) DVT_OP(operator!=, not_equal)
DVT_OP(operator<, less) DVT_OP(operator<=, less_equal) DVT_OP(operator>, greater)
DVT_OP(operator>=, greater_equal) DVT_TO(operator+=, add) DVT_TO(operator-=, sub)
DVT_TO(operator*=, mul) DVT_TO(operator/=, div) DVT_TO(operator%=, mod)
inline array operator-(const array &x) { return call(dvt_neg, x); }
inline array operator!(const array &x) { return call(dvt_logical_not, x); }
DVT_OP(pow, pow) DVT_OP(minimum, minimum) DVT_OP(maximum, maximum) DVT_OP(atan2, atan2)
DVT_OP(hypot, hypot) DVT_OP(floor_div, floor_div) DVT_OP(logical_and, logical_and)
DVT_OP(logical_or, logical_or) DVT_OP(logical_xor, logical_xor)
DVT_F1(abs) DVT_F1(sign) DVT_F1(square) DVT_F1(relu) DVT_F1(floor) DVT_F1(ceil) DVT_F1(round)
DVT_F1(trunc) DVT_F1(reciprocal) DVT_F1(sqrt) DVT_F1(rsqrt) DVT_F1(exp) DVT_F1(exp2) DVT_F1(expm1)
DVT_F1(log) DVT_F1(log2) DVT_F1(log10) DVT_F1(log1p) DVT_F1(sin) DVT_F1(cos) DVT_F1(tan)
DVT_F1(asin) DVT_F1(acos) DVT_F1(atan) DVT_F1(sinh) DVT_F1(cosh) DVT_F1(tanh) DVT_F1(sigmoid)
DVT_F1(softplus) DVT_F1(erf) DVT_F1(gelu) DVT_F1(isnan) DVT_F1(isinf) DVT_F1(isfinite) DVT_F1(copy)
DVT_F1(detach) DVT_F1(flatten) DVT_F1(zeros_like) DVT_F1(ones_like)
DVT_FA(sum) DVT_FA(prod) DVT_FA(mean) DVT_FA(min) DVT_FA(max) DVT_FA(norm) DVT_FA(argmin)
DVT_FA(argmax) DVT_FA(logsumexp)
inline array all_of(const array &x, axes a = {}) { return call(dvt_all, x, a); }
inline array any_of(const array &x, axes a = {}) { return call(dvt_any, x, a); }
DVT_FN(matmul, (const array &a, const array &b), a, b)
DVT_FN(softmax, (const array &x, int axis = -1), x, axis)
DVT_FN(where, (const array &condition, const array &a, const array &b), condition, a, b)
DVT_FN(clip, (const array &x, double low, double high), x, low, high)
DVT_FN(zeros, (shape s, dtype t = f32, context c = {}), s, t, c)
DVT_FN(ones, (shape s, dtype t = f32, context c = {}), s, t, c)
DVT_FN(full, (shape s, double value, dtype t = f32, context c = {}), s, value, t, c)
DVT_FN(eye, (int64_t n, dtype t = f32, context c = {}), n, n, 0, t, c)
DVT_FN(arange, (double a, double b, double d = 1, dtype t = f32, context c = {}), a, b, d, t, c)
DVT_FN(uniform, (double a, double b, shape s, dtype t = f32, context c = {}), a, b, s, t, c)
DVT_FN(normal, (double a, double b, shape s, dtype t = f32, context c = {}), a, b, s, t, c)
inline array concat(const std::vector<array> &x, int axis = 0) {
    return array::join(dvt_concat, x, axis);
}
#undef DVT_F1
#undef DVT_FA
#undef DVT_FN
#undef DVT_OP
#undef DVT_TO
// ---- modes until the end of the block: record now; no_record now; on_context now(gpu(1)); ----
using mode = detail::guard<dvt_record_guard, dvt_record_end>;
struct record : mode { record() : guard(dvt_record_begin(DVT_ON, DVT_ON)) {} };
struct no_record : mode { no_record() : guard(dvt_record_begin(DVT_OFF, DVT_OFF)) {} };
using place = detail::guard<dvt_ctx_guard, dvt_ctx_scope_end>;
struct on_context : place { explicit on_context(context c) : guard(dvt_ctx_scope_begin(c)) {} };
inline std::ostream &operator<<(std::ostream &out, const array &x) {
    size_t n = 0;
    call(dvt_format, x, nullptr, nullptr, size_t(0), &n);
    std::string text(n + 1, '\0');
    call(dvt_format, x, nullptr, &text[0], text.size(), nullptr);
    return out.write(text.data(), static_cast<std::streamsize>(n));
}

#if !defined(DEVTENSOR_NO_NN)
// ---- networks: handles of the C API's objects, made and used by call() ----
using block = handle<dvt_block>;
inline block sequential(const std::vector<block> &parts) {
    const block net = call(dvt_nn_sequential);
    for (const block &part : parts)
        call(dvt_block_add_child, net, part);
    return net;
}
inline array forward(const block &net, const array &x) { return call(dvt_block_forward, net, x); }
inline bool next(const handle<dvt_loader> &loader, array &x, array &y) { // false: the epoch's end
    const detail::scope batch(dvt_scope_begin());
    dvt_array *a = nullptr, *b = nullptr;
    const bool more = dvt_loader_next(loader.get(), &a, &b);
    detail::check();
    return x = array(a), y = array(b), more;
}
#endif
} // namespace devtensor
#endif
