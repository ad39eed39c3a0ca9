/* The test harness. A test is DVT_TEST(name) { CHECK(...); } in any file under tests/unit; it
   registers itself. Every failing check prints file:line and values, and the test continues. A test
   also fails when it leaves an error set or leaks an array. Run one: build/.../tests name; all
   whose name contains a text: tests text. */
#ifndef DVT_TEST_H
#define DVT_TEST_H
#include "devtensor_under_test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1 if the sanitizer is active. GCC and Clang announce it in different ways. */
#if !defined(__has_feature)
#define DVT_TEST_HAS_FEATURE(name) 0
#else
#define DVT_TEST_HAS_FEATURE(name) __has_feature(name)
#endif
#if defined(__SANITIZE_ADDRESS__) || DVT_TEST_HAS_FEATURE(address_sanitizer)
#define DVT_TEST_ASAN 1
#else
#define DVT_TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || DVT_TEST_HAS_FEATURE(thread_sanitizer)
#define DVT_TEST_TSAN 1
#else
#define DVT_TEST_TSAN 0
#endif
#if DVT_TEST_HAS_FEATURE(memory_sanitizer) /* GCC has none */
#define DVT_TEST_MSAN 1
#else
#define DVT_TEST_MSAN 0
#endif

typedef struct dvt_test {
    const char *name, *file;
    void (*run)(void);
    struct dvt_test *next;
} dvt_test;

void dvt_test_register(dvt_test *test);
/* Counts a check; on failure prints the location, the text and the values. Returns ok. */
int dvt_test_check(int ok, const char *file, int line, const char *format, ...) DVT_PRINTF(4, 5);
/* Marks the test as "skipped" with its reason; call at most once, then return. */
void dvt_test_skip(const char *reason);
/* Tells whether gpu(i) is a GPU here, real or simulated. Then virtual GPUs share it, and floats may
   differ from the CPU's in their last digits. */
int dvt_test_on_gpus(void);
/* Returns the context of computations in tests: cpu(), or gpu(0) when the variable DVT_TEST_GPU is
   set. With it the tests of gradients and blocks run on a real or simulated GPU. */
dvt_ctx dvt_test_ctx(void);
/* Tells whether the run is in full, as `make test-long` and tests on a real GPU are. */
#define IN_FULL (getenv("DVT_TEST_FULL") != NULL)
/* Tells whether item i is in a selection of every n-th, because on the simulator a program takes
   0.3 to 1.5 s to compile. i is a sum of indices, so that every operation, dtype and layout occurs
   in the selection. EACH_THERE is for tests that other configurations run in full. */
#define EACH(i, n) ((i) % (n) == 0 || IN_FULL)
#define EACH_THERE(i, n) (dvt_test_ctx().type == DVT_DEVICE_CPU || EACH(i, n))
/* Tells whether |a - b| <= tolerance * max(1, |b|). NaN equals only NaN, infinities only
   themselves. */
int dvt_test_close(double a, double b, double tolerance);
/* Returns random numbers from the printed seed, uniform on [low, high). */
double dvt_test_random(double low, double high);
/* Returns the values of x (any dtype, any context) as doubles; the caller frees them. NULL on
   error. */
double *dvt_test_values(dvt_array *x);
/* Checks the elements of x; prints the first that differs. */
int dvt_test_equal(dvt_array *x, const double *expected, int64_t n, double tolerance,
                   const char *file, int line);

#define DVT_TEST(name)                                                                             \
    static void test_##name(void);                                                                 \
    static dvt_test test_entry_##name = {#name, __FILE__, test_##name, NULL};                      \
    __attribute__((constructor)) static void test_register_##name(void) {                          \
        dvt_test_register(&test_entry_##name);                                                     \
    }                                                                                              \
    static void test_##name(void)

#define CHECK(condition) dvt_test_check(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_INT(a, b)                                                                            \
    do {                                                                                           \
        long long check_a_ = (long long)(a), check_b_ = (long long)(b);                            \
        dvt_test_check(check_a_ == check_b_, __FILE__, __LINE__, "%s is %lld, expected %lld", #a,  \
                       check_a_, check_b_);                                                        \
    } while (0)
#define CHECK_CLOSE(a, b, tolerance)                                                               \
    do {                                                                                           \
        double check_a_ = (a), check_b_ = (b);                                                     \
        dvt_test_check(dvt_test_close(check_a_, check_b_, tolerance), __FILE__, __LINE__,          \
                       "%s is %.17g, expected %.17g within %g", #a, check_a_, check_b_,            \
                       (double)(tolerance));                                                       \
    } while (0)
#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *check_a_ = (a), *check_b_ = (b);                                               \
        dvt_test_check(strcmp(check_a_, check_b_) == 0, __FILE__, __LINE__,                        \
                       "%s is\n<<%s>>, expected\n<<%s>>", #a, check_a_, check_b_);                 \
    } while (0)
/* Checks that the expression fails with that status (its value is ignored); clears the error. */
#define CHECK_ERROR(expression, status)                                                            \
    do {                                                                                           \
        dvt_clear_error();                                                                         \
        (void)(expression);                                                                        \
        dvt_test_check(dvt_error_code() == (status), __FILE__, __LINE__,                           \
                       "%s gave %s (%s), expected %s", #expression,                                \
                       dvt_status_name(dvt_error_code()), dvt_error(), dvt_status_name(status));   \
        dvt_clear_error();                                                                         \
    } while (0)
/* Checks the elements of an array: CHECK_VALUES(x, 1e-6, 1, 2, 3); */
#define CHECK_VALUES(x, tolerance, ...)                                                            \
    do {                                                                                           \
        const double check_e_[] = {__VA_ARGS__};                                                   \
        dvt_test_equal((x), check_e_, (int64_t)(sizeof check_e_ / sizeof check_e_[0]), tolerance,  \
                       __FILE__, __LINE__);                                                        \
    } while (0)
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        dvt_test_skip(reason);                                                                     \
        return;                                                                                    \
    } while (0)
/* First line of a test of machines without a GPU. */
#define NEEDS_NO_GPU(what)                                                                         \
    if (dvt_test_on_gpus())                                                                        \
    SKIP("this machine has a GPU, and this is about " what " (DEVTENSOR_CUDA=0 runs it)")

#endif
