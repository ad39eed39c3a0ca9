/* A small test harness for the programs of this directory, which must not depend on the library. A
   program ends in check_end(), which prints "N passed, N failed, N skipped". */
#ifndef CHECK_H
#define CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Counts a check, and prints the text when it fails. Returns ok. */
int check_that(int ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_skip(const char *name, const char *reason);
int check_end(void); /* the exit status */

/* Checks that the message contains the text. A NULL message contains nothing. */
int check_message(const char *message, const char *text, const char *what);

uint64_t check_random(void); /* the same sequence in every run */

#define CHECK(condition) check_that(!!(condition), "%s:%d: %s", __FILE__, __LINE__, #condition)
#define CHECK_INT(a, b)                                                                            \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        check_that(a_ == b_, "%s:%d: %s is %lld, expected %lld", __FILE__, __LINE__, #a, a_, b_);  \
    } while (0)

#endif
