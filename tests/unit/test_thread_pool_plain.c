/* Tests of the thread pool without futex: threads sleep on a condition variable. */
#define DVTI_FUTEX 0
#define POOL_TEST(name) DVT_TEST(thread_pool_plain_##name)
#include "thread_pool_tests.h"
