/* atom and red: each operation and type on one cell, first by one thread against a C function, then
   by many threads. */
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"
#include "nearest.h"

/* %a is the old value of the cell; %b and %c are the operands. %d is the result of atom, %e the
   new value of the cell. The cell is in shared memory. */
#define ATOM(op, type, width, expected)                                                            \
    {                                                                                              \
        ".shared .align 8 .b8 cell[8192]; mad.lo.u32 %t0, %i, 8, 0; mov.u32 %t1, cell; add.u32 "   \
        "%t0, %t0, %t1;"                                                                           \
        "st.shared.b" #width " [%t0], %a; atom.shared." op "." type " %d, [%t0], %b;"              \
        "ld.shared.b" #width " %e, [%t0];",                                                        \
            width, width, 0, width, width, expected, NULL                                          \
    }

/* The same with an immediate operand. */
#define ATOM_CONSTANT(op, type, width, expected)                                                   \
    {                                                                                              \
        ".shared .align 8 .b8 cell[8192]; mad.lo.u32 %t0, %i, 8, 0; mov.u32 %t1, cell; add.u32 "   \
        "%t0, %t0, %t1;"                                                                           \
        "st.shared.b" #width " [%t0], %a; atom.shared." op "." type " %d, [%t0], $b;"              \
        "ld.shared.b" #width " %e, [%t0];",                                                        \
            width, width, 0, width, width, expected, NULL                                          \
    }
/* In global memory, at the address of the operands. */
#define ATOM_GLOBAL(op, type, width, expected)                                                     \
    {                                                                                              \
        "atom.global." op "." type " %d, [%in], %b; ld.global.b" #width " %e, [%in];"              \
        "st.global.b" #width " [%in], %a;",                                                        \
            width, width, 0, width, width, expected, NULL                                          \
    }

#define CHANGE(name, expression)                                                                   \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        (void)b, (void)c;                                                                          \
        *e = (uint64_t)(expression);                                                               \
        return a;                                                                                  \
    }
CHANGE(add, a + b)
CHANGE(and_, a &b)
CHANGE(or_, a | b)
CHANGE(xor_, a ^ b)
CHANGE(exch, b)
CHANGE(min_u, a < b ? a : b)
CHANGE(max_u, a > b ? a : b)
CHANGE(min_s32, (s32)a < (s32)b ? a : b)
CHANGE(max_s32, (s32)a > (s32)b ? a : b)
CHANGE(min_s64, (s64)a < (s64)b ? a : b)
CHANGE(max_s64, (s64)a > (s64)b ? a : b)
CHANGE(inc, a >= b ? 0 : a + 1)
CHANGE(dec, a == 0 || a > b ? b : a - 1)
CHANGE(cas, a == b ? c : a)
CHANGE(add_f32, bits_of_f32(f32_of(a) + f32_of(b)))

static u64 sum(const format *f, u64 a, u64 b) {
    quad rest, exact = exact_sum((quad)format_value(f, (u32)a & 0xffff),
                                 (quad)format_value(f, (u32)b & 0xffff), &rest);
    return format_round(f, exact, rest, NEAREST, 0);
}
CHANGE(add_f16, sum(&f16, a, b))
CHANGE(add_bf16, sum(&bf16, a, b))
CHANGE(add_f16x2, sum(&f16, a, b) | sum(&f16, a >> 16, b >> 16) << 16)
CHANGE(add_bf16x2, sum(&bf16, a, b) | sum(&bf16, a >> 16, b >> 16) << 16)

#define CAS(type, width, expected)                                                                 \
    {                                                                                              \
        "atom.global.cas." type " %d, [%in], %b, %c; ld.global.b" #width                           \
        " %e, [%in]; st.global.b" #width " [%in], %a;",                                            \
            width, width, width, width, width, expected, NULL                                      \
    }
static const form integer_forms[] = {
    ATOM("add", "u32", 32, add),
    ATOM("add", "s32", 32, add),
    ATOM("add", "u64", 64, add),
    ATOM_CONSTANT("add", "u32", 32, add),
    ATOM_CONSTANT("add", "u64", 64, add),
    ATOM_CONSTANT("exch", "b32", 32, exch),
    {".shared .align 4 .b8 cell[4]; st.shared.b32 [cell], %a;" /* one thread at a time */
     "atom.shared.add.u32 %d, [cell], %b; ld.shared.b32 %e, [cell];",
     32, 32, 0, 32, 32, add, NULL},
    ATOM_GLOBAL("add", "u32", 32, add),
    ATOM_GLOBAL("add", "u64", 64, add),
    ATOM_GLOBAL("min", "u64", 64, min_u),
    ATOM_GLOBAL("max", "u64", 64, max_u),
    ATOM_GLOBAL("max", "s64", 64, max_s64),
    ATOM("and", "b32", 32, and_),
    ATOM("and", "b64", 64, and_),
    ATOM("or", "b32", 32, or_),
    ATOM("or", "b64", 64, or_),
    ATOM("xor", "b32", 32, xor_),
    ATOM("xor", "b64", 64, xor_),
    ATOM("exch", "b32", 32, exch),
    ATOM("exch", "b64", 64, exch),
    ATOM("min", "u32", 32, min_u),
    ATOM("max", "u32", 32, max_u),
    ATOM("min", "s32", 32, min_s32),
    ATOM("max", "s32", 32, max_s32),
    ATOM("min", "u64", 64, min_u),
    ATOM("max", "u64", 64, max_u),
    ATOM("min", "s64", 64, min_s64),
    ATOM("max", "s64", 64, max_s64),
    ATOM("inc", "u32", 32, inc),
    ATOM("dec", "u32", 32, dec),
    CAS("b32", 32, cas),
    CAS("b64", 64, cas),
    CAS("b16", 16, cas),
};

static const form float_forms[] = {
    ATOM("add", "f32", 32, add_f32),
    ATOM("add.noftz", "f16", 16, add_f16),
    ATOM("add.noftz", "bf16", 16, add_bf16),
    ATOM("add.noftz", "f16x2", 32, add_f16x2),
    ATOM("add.noftz", "bf16x2", 32, add_bf16x2),
};

static u64 float16_operands(unsigned width, unsigned index, unsigned n) {
    u64 low = floats(16, index, n);
    return width == 32 && (n & 1) ? low | floats(16, index, n) << 16 : floats(width, index, n);
}

/* clang-format off */
static const char shared_cells[] = HEAD("sm_90")
    KERNEL("many", "red.global.add.u32 [%p0], %i; red.relaxed.gpu.global.max.s32 [%p0+4], %i; "
        "atom.inc.u32 %r0, [%p0+8], 5;\n"
        "cvt.rn.f32.u32 %r1, %i; red.add.f32 [%p0+12], %r1; cvt.rn.f64.u32 %w0, %i; "
        "atom.acq_rel.sys.global.add.f64 %w1, [%p0+16], %w0;\n"
        "atom.add.u64 %w2, [%p0+24], 1; mad.wide.u32 %w3, %i, 4, %p1; cvt.u32.u64 %r2, %w2; "
        "st.global.u32 [%w3], %r2;\n"
        "red.or.b64 [%p0+32], 256; red.shared.add.u32 [s], 1; bar.sync 0; "
        "ld.shared.u32 %r3, [s]; st.global.u32 [%p0+40], %r3; .shared .u32 s;\n")
    /* a spin lock: unless it yields, the first thread that loses spins forever */
    KERNEL("lock", "L0: atom.global.cas.b32 %r0, [%p0], 0, 1; setp.ne.u32 %q0, %r0, 0; "
        "@%q0 bra L0;\n"
        "ld.global.u32 %r1, [%p0+4]; nanosleep.u32 20; add.u32 %r1, %r1, 1; "
        "st.global.u32 [%p0+4], %r1; atom.global.exch.b32 %r0, [%p0], 0;\n");

/* clang-format on */

static void check_many(void) {
    exec *e = exec_unit(shared_cells);
    u32 *cell = exec_buffer(64), *order = exec_buffer(256 * 4);
    memset(cell, 0, 64);
    if (run(e, "many", THREADS(256), P(cell), P(order), 0, 0)) {
        float f;
        double d;
        memcpy(&f, cell + 3, 4);
        memcpy(&d, cell + 4, 8);
        CHECK_INT(cell[0], 255 * 128);
        CHECK_INT(cell[1], 255);
        CHECK_INT(cell[2], 256 % 6);
        CHECK(f == 255 * 128 && d == 255 * 128);
        CHECK_INT(cell[6], 256);
        CHECK_INT(cell[8], 256);
        CHECK_INT(cell[10], 255); /* 256 added to 0xffffffff */
        u32 seen = 0;
        for (int i = 0; i < 256; i++)
            seen += order[i];
        CHECK_INT(seen, 255 * 128);
    }
    memset(cell, 0, 64);
    if (run(e, "lock", THREADS(64), P(cell), 0, 0, 0))
        CHECK(cell[0] == 0 && cell[1] == 64);
    exec_close(e);
}

int main(void) {
    check_forms("sm_90", integer_forms, COUNT(integer_forms), integers, 512);
    check_forms("sm_90", float_forms, COUNT(float_forms), float16_operands, 512);
    check_many();
    exec_forget();
    return check_end();
}
