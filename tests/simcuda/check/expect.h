/* Shorthand for the expected values of forms. */
#ifndef EXPECT_H
#define EXPECT_H

#include "forms.h"

/* Defines a function of a, b, c that returns d; *e is the second result. */
#define EXPECT(name, expression)                                                                   \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        (void)a, (void)b, (void)c, (void)e;                                                        \
        return (uint64_t)(expression);                                                             \
    }

typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

#define COUNT(list) (sizeof(list) / sizeof *(list))

#endif
