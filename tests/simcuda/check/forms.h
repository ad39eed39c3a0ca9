/* Single instructions against expected values. A form is a piece of PTX that reads the registers
   %a, %b, %c and writes %d (and perhaps %e); the program gives many operands to it and compares
   with a C function. $a, $b, $c stand for an operand that is written into the code as an integer,
   #a, #b, #c for one that is written as a float: such a form is run with several. Its operands lie
   at [%in], [%in+8], [%in+16], with room behind them up to 32 bytes, and [%out] has 16 bytes that it
   may use before the results are written there. All forms of a list become one module. */
#ifndef FORMS_H
#define FORMS_H

#include "exec.h"

/* The widths of a, b, c, d, e in bits; 0: not there. */
typedef struct form {
    const char *code;
    unsigned char a, b, c, d, e;
    /* the expected d (and e, in *second) */
    uint64_t (*expected)(uint64_t a, uint64_t b, uint64_t c, uint64_t *second);
    /* NULL: equal bits. Else whether got is good enough */
    int (*close)(uint64_t got, uint64_t expected);
} form;

/* Operands of a width: interesting patterns for the first few, then random ones. */
typedef uint64_t operand_source(unsigned width, unsigned index, unsigned n);
uint64_t integers(unsigned width, unsigned index, unsigned n); /* corners of the integers */
/* zeros, subnormals, infinities, NaN, halves */
uint64_t floats(unsigned width, unsigned index, unsigned n);

/* Checks each form with n triples of operands; one check per form. target: "sm_80". */
void check_forms(const char *target, const form *forms, size_t count, operand_source *source,
                 unsigned n);

/* Floating-point patterns and values. */
float f32_of(uint64_t bits);
double f64_of(uint64_t bits);
uint64_t bits_of_f32(float); /* any NaN is 0x7fffffff, as on the device */
uint64_t bits_of_f64(double);

#define FORM(code, a, b, c, d, expected)                                                           \
    { code, a, b, c, d, 0, expected, NULL }

#endif
