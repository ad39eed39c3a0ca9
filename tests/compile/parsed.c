/* The implementation, and behind it code that GCC's -Wmisleading-indentation would reject. GCC's C
   compiler must not compare indentation there: in a file of this size that takes it ten seconds. */
#include "../implementation.c"
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
int misleading(int condition);

/* clang-format off */
int misleading(int condition) {
    int value = 0;
    if (condition)
        value = 1;
        value += 2;
    return value;
}

/* clang-format on */
#endif
