/* Tests single instructions against expected values. A form is a piece of PTX that reads the
   registers %a, %b, %c and writes %d (and perhaps %e). The harness runs it with many operands and
   compares with a C function.
   In a form, $a, $b, $c stand for an operand that becomes an integer immediate, and #a, #b, #c for
   a float immediate. Such a form runs with several values. Its operands lie at [%in], [%in+8],
   [%in+16]; that buffer has 32 bytes. [%out] has 16 bytes of scratch before the results are written
   there. All forms of a list become one module. */
#ifndef FORMS_H
#define FORMS_H

#include "exec.h"

/* The widths of a, b, c, d, e in bits; 0: not used. */
typedef struct form {
    const char *code;
    unsigned char a, b, c, d, e;
    /* the expected d (and e, in *second) */
    uint64_t (*expected)(uint64_t a, uint64_t b, uint64_t c, uint64_t *second);
    /* NULL: bits must be equal; else tells whether the result is close enough */
    int (*close)(uint64_t got, uint64_t expected);
} form;

/* Returns operands of a width: special patterns for the first indices, then random ones. */
typedef uint64_t operand_source(unsigned width, unsigned index, unsigned n);
uint64_t integers(unsigned width, unsigned index, unsigned n); /* special integers */
/* zeros, subnormals, infinities, NaN, float16 patterns */
uint64_t floats(unsigned width, unsigned index, unsigned n);

/* Checks each form with n triples of operands; one check per form. target: "sm_80". */
void check_forms(const char *target, const form *forms, size_t count, operand_source *source,
                 unsigned n);

/* Conversions between floating-point bits and values. */
float f32_of(uint64_t bits);
double f64_of(uint64_t bits);
uint64_t bits_of_f32(float); /* any NaN is 0x7fffffff, as on the device */
uint64_t bits_of_f64(double);

#define FORM(code, a, b, c, d, expected)                                                           \
    { code, a, b, c, d, 0, expected, NULL }

#endif
