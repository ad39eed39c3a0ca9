/* f16 and bf16, scalars and pairs: exact results rounded by search (nearest.h). */
#include <math.h>

#include "check.h"
#include "expect.h"
#include "nearest.h"

/* Returns the result of an operation and, in *rest, the sign of its rounding error. */
typedef quad operation(quad x, quad y, quad z, quad *rest);

static quad plus(quad x, quad y, quad z, quad *rest) {
    (void)z;
    return exact_sum(x, y, rest);
}

static quad minus(quad x, quad y, quad z, quad *rest) {
    (void)z;
    return exact_sum(x, -y, rest);
}

static quad times(quad x, quad y, quad z, quad *rest) {
    (void)z;
    *rest = 0;
    return x * y;
}

static quad fused(quad x, quad y, quad z, quad *rest) {
    return exact_sum(x * y, z, rest);
}

static quad saturated(quad x, quad y, quad z, quad *rest) {
    quad r = fused(x, y, z, rest);
    if (r != r || r <= 0 || r >= 1)
        *rest = 0;
    return r != r || r <= 0 ? 0 : r >= 1 ? 1 : r;
}

static quad rectified(quad x, quad y, quad z, quad *rest) {
    quad r = fused(x, y, z, rest);
    if (r < 0)
        *rest = 0;
    return r < 0 || r == 0 ? 0 : r;
}

static quad least(quad x, quad y, quad z, quad *rest) {
    (void)z;
    *rest = 0;
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit((double)x) ? x : y) : x < y ? x : y;
}

static quad most_or_nan(quad x, quad y, quad z, quad *rest) {
    (void)z;
    *rest = 0;
    if (x != x || y != y)
        return (quad)NAN;
    return x == y ? (signbit((double)x) ? y : x) : x > y ? x : y;
}

static u64 apply(const format *f, int lanes, operation *op, u64 a, u64 b, u64 c) {
    u64 r = 0;
    for (int i = 0; i < 16 * lanes; i += 16) {
        quad rest, exact = op((quad)format_value(f, (u32)(a >> i) & 0xffff),
                              (quad)format_value(f, (u32)(b >> i) & 0xffff),
                              (quad)format_value(f, (u32)(c >> i) & 0xffff), &rest);
        r |= (u64)format_round(f, exact, rest, NEAREST, 0) << i;
    }
    return r;
}

#define FOUR(name, op)                                                                             \
    EXPECT(name##_f16, apply(&f16, 1, op, a, b, c))                                                \
    EXPECT(name##_bf16, apply(&bf16, 1, op, a, b, c))                                              \
    EXPECT(name##_f16x2, apply(&f16, 2, op, a, b, c))                                              \
    EXPECT(name##_bf16x2, apply(&bf16, 2, op, a, b, c))
FOUR(add, plus)
FOUR(sub, minus)
FOUR(mul, times)
FOUR(fma, fused)
FOUR(relu, rectified)
FOUR(min, least)
FOUR(max_nan, most_or_nan)
EXPECT(sat_f16, apply(&f16, 1, saturated, a, b, c))
EXPECT(sat_f16x2, apply(&f16, 2, saturated, a, b, c))
EXPECT(neg_pair, a ^ 0x80008000)
EXPECT(abs_pair, a & 0x7fff7fff)
EXPECT(neg_one, a ^ 0x8000)

/* ex2 and tanh may differ by one unit in the last place */
static int next_to(u64 got, u64 expected) {
    s64 difference = (s64)got - (s64)expected;
    return difference >= -1 && difference <= 1;
}
EXPECT(ex2_f16, format_round(&f16, (quad)exp2(format_value(&f16, (u32)a)), 0, NEAREST, 0))
EXPECT(tanh_bf16, format_round(&bf16, (quad)tanh(format_value(&bf16, (u32)a)), 0, NEAREST, 0))
EXPECT(fma_f32x2, bits_of_f32(fmaf(f32_of(a), f32_of(b), f32_of(c))) |
                      bits_of_f32(fmaf(f32_of(a >> 32), f32_of(b >> 32), f32_of(c >> 32))) << 32)

#define ALL(op, modifiers, operands, c16, c32, expected)                                           \
    FORM(op modifiers "f16 %d, " operands ";", 16, 16, c16, 16, expected##_f16),                   \
        FORM(op modifiers "bf16 %d, " operands ";", 16, 16, c16, 16, expected##_bf16),             \
        FORM(op modifiers "f16x2 %d, " operands ";", 32, 32, c32, 32, expected##_f16x2),           \
        FORM(op modifiers "bf16x2 %d, " operands ";", 32, 32, c32, 32, expected##_bf16x2)

static const form forms[] = {
    ALL("add", ".rn.", "%a, %b", 0, 0, add),
    ALL("sub", ".", "%a, %b", 0, 0, sub),
    ALL("mul", ".rn.", "%a, %b", 0, 0, mul),
    ALL("fma", ".rn.", "%a, %b, %c", 16, 32, fma),
    ALL("fma", ".rn.relu.", "%a, %b, %c", 16, 32, relu),
    ALL("min", ".", "%a, %b", 0, 0, min),
    ALL("max", ".NaN.", "%a, %b", 0, 0, max_nan),
    FORM("fma.rn.sat.f16 %d, %a, %b, %c;", 16, 16, 16, 16, sat_f16),
    FORM("fma.rn.sat.f16x2 %d, %a, %b, %c;", 32, 32, 32, 32, sat_f16x2),
    FORM("neg.f16x2 %d, %a;", 32, 0, 0, 32, neg_pair),
    FORM("neg.bf16x2 %d, %a;", 32, 0, 0, 32, neg_pair),
    FORM("abs.bf16x2 %d, %a;", 32, 0, 0, 32, abs_pair),
    FORM("neg.f16 %d, %a;", 16, 0, 0, 16, neg_one),
    {"ex2.approx.f16 %d, %a;", 16, 0, 0, 16, 0, ex2_f16, next_to},
    {"tanh.approx.bf16 %d, %a;", 16, 0, 0, 16, 0, tanh_bf16, next_to},
    FORM("fma.rn.f32x2 %d, %a, %b, %c;", 64, 64, 64, 64, fma_f32x2),
};

static u64 float16_operands(unsigned width, unsigned index, unsigned n) {
    u64 low = floats(16, index, n);
    return width == 16   ? low
           : width == 32 ? low | floats(16, index, n) << 16
                         : floats(32, index, n) | floats(32, index, n) << 32;
}

int main(void) {
    check_forms("sm_100", forms, COUNT(forms), float16_operands, 1000);
    return check_end();
}
