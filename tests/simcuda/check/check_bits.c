/* Logic, shifts, fields, permutes, moves. The expected values follow the loops of the PTX manual
   bit by bit. */
#include "check.h"
#include "expect.h"

EXPECT(and_, a &b)
EXPECT(or_, a | b)
EXPECT(xor_, a ^ b)
EXPECT(not_, ~a)
EXPECT(cnot, a == 0)
EXPECT(predicates, a &&b ? 1 : 2)
EXPECT(shl32, b > 31 ? 0 : a << b)
EXPECT(shr_u32, b > 31 ? 0 : a >> b)
EXPECT(shr_s32, (s64)(s32)a >> (b > 31 ? 31 : b))
EXPECT(shl64, b > 63 ? 0 : a << b)
EXPECT(shr_u64, b > 63 ? 0 : a >> b)
EXPECT(shr_s64, (s64)a >> (b > 63 ? 63 : b))
EXPECT(shl16, b > 15 ? 0 : a << b)
EXPECT(shr_s16, (s16)a >> (b > 15 ? 15 : b))

/* shf: bit i of the result is bit i - n (left) of the pair's upper half, or i + n (right) of its
   lower */
static int pair_bit(u64 low, u64 high, int i) {
    return i < 32 ? (int)(low >> i & 1) : i < 64 ? (int)(high >> (i - 32) & 1) : 0;
}

static u64 funnel(u64 low, u64 high, int first) {
    u64 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (u64)pair_bit(low, high, first + i) << i;
    return r;
}
EXPECT(shf_l_wrap, funnel(a, b, 32 - (int)(c & 31)))
EXPECT(shf_l_clamp, funnel(a, b, 32 - (int)(c > 32 ? 32 : c)))
EXPECT(shf_r_wrap, funnel(a, b, (int)(c & 31)))
EXPECT(shf_r_clamp, funnel(a, b, (int)(c > 32 ? 32 : c)))

static u64 extract(u64 a, u64 b, u64 c, int bits, int is_signed) {
    u64 r = 0;
    int position = (int)(b & 255), length = (int)(c & 255), top = bits - 1;
    int last = position + length - 1 < top ? position + length - 1 : top;
    u64 sign = !is_signed || length == 0 ? 0 : a >> last & 1;
    for (int i = 0; i <= top; i++)
        r |= (i < length && position + i <= top ? a >> (position + i) & 1 : sign) << i;
    return r;
}
EXPECT(bfe_u32, extract(a, b, c, 32, 0))
EXPECT(bfe_s32, extract(a, b, c, 32, 1))
EXPECT(bfe_u64, extract(a, b, c, 64, 0))
EXPECT(bfe_s64, extract(a, b, c, 64, 1))

static u64 insert(u64 a, u64 b, int position, int length, int bits) {
    for (int i = 0; i < length && position + i < bits; i++) {
        b &= ~(1ull << (position + i));
        b |= (a >> i & 1) << (position + i);
    }
    return b;
}
EXPECT(bfi_32, insert(a, b, (int)(c & 255), (int)(c >> 8 & 255), 32))
EXPECT(bfi_64, insert(a, b, (int)(c & 255), (int)(c >> 8 & 255), 64))

static u64 find(u64 a, int bits, int is_signed, int shift_amount) {
    u64 sign = is_signed ? a >> (bits - 1) & 1 : 0;
    for (int i = bits - 1; i >= 0; i--)
        if ((a >> i & 1) != sign)
            return (u64)(shift_amount ? bits - 1 - i : i);
    return 0xffffffff;
}
EXPECT(bfind_u32, find(a, 32, 0, 0))
EXPECT(bfind_s32, find(a, 32, 1, 0))
EXPECT(bfind_shift, find(a, 32, 0, 1))
EXPECT(bfind_u64, find(a, 64, 0, 0))
EXPECT(bfind_s64_shift, find(a, 64, 1, 1))

static u64 reverse(u64 a, int bits) {
    u64 r = 0;
    for (int i = 0; i < bits; i++)
        r |= (a >> i & 1) << (bits - 1 - i);
    return r;
}

static u64 ones(u64 a) {
    u64 n = 0;
    for (; a; a >>= 1)
        n += a & 1;
    return n;
}

static u64 zeros_above(u64 a, int bits) {
    u64 n = 0;
    for (int i = bits - 1; i >= 0 && !(a >> i & 1); i--)
        n++;
    return n;
}
EXPECT(brev32, reverse(a, 32))
EXPECT(brev64, reverse(a, 64))
EXPECT(popc, ones(a))
EXPECT(clz32, zeros_above(a, 32))
EXPECT(clz64, zeros_above(a, 64))

static u64 byte_of(u64 a, u64 b, u64 selector) {
    u64 byte = (selector & 4 ? b : a) >> (8 * (selector & 3)) & 255;
    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}

static u64 bytes(u64 a, u64 b, const u64 s[4]) {
    return byte_of(a, b, s[0]) | byte_of(a, b, s[1]) << 8 | byte_of(a, b, s[2]) << 16 |
           byte_of(a, b, s[3]) << 24;
}
EXPECT(prmt, bytes(a, b, (const u64[]){c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15}))

static u64 clip(u64 x) {
    return x & 3;
}
EXPECT(prmt_f4e, bytes(a, b, (const u64[]){clip(c), clip(c) + 1, clip(c) + 2, clip(c) + 3}))
EXPECT(prmt_b4e,
       bytes(a, b, (const u64[]){clip(c), (clip(c) + 7) % 8, (clip(c) + 6) % 8, (clip(c) + 5) % 8}))
EXPECT(prmt_rc8, bytes(a, b, (const u64[]){clip(c), clip(c), clip(c), clip(c)}))

static u64 larger(u64 x, u64 y) {
    return x > y ? x : y;
}

static u64 smaller(u64 x, u64 y) {
    return x < y ? x : y;
}
EXPECT(prmt_ecl,
       bytes(a, b, (const u64[]){larger(0, clip(c)), larger(1, clip(c)), larger(2, clip(c)), 3}))
EXPECT(prmt_ecr,
       bytes(a, b, (const u64[]){0, smaller(1, clip(c)), smaller(2, clip(c)), smaller(3, clip(c))}))
EXPECT(prmt_rc16,
       bytes(a, b, (const u64[]){2 * (c & 1), 2 * (c & 1) + 1, 2 * (c & 1), 2 * (c & 1) + 1}))

/* lop3: the table is indexed by the three bits */
static u64 logic3(u64 a, u64 b, u64 c, u64 table) {
    u64 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
    return r;
}
EXPECT(lop3_80, logic3(a, b, c, 0x80))
EXPECT(lop3_96, logic3(a, b, c, 0x96))
EXPECT(lop3_ca, logic3(a, b, c, 0xca))
EXPECT(lop3_1b, logic3(a, b, c, 0x1b))

static uint64_t lop3_or(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    u64 r = logic3(a, b, c, 0xc0);
    *e = r != 0 || (a & 1);
    return r;
}

static uint64_t lop3_and(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    u64 r = logic3(a, b, c, 0xc0);
    *e = r != 0 && (a & 1);
    return r;
}

static u64 nth(u64 mask, u64 base, s64 offset) {
    s64 left = offset < 0 ? -offset : offset;
    if (offset == 0)
        return base < 32 && (mask >> base & 1) ? base : 0xffffffff;
    for (s64 i = (s64)base; i >= 0 && i < 32; i += offset < 0 ? -1 : 1)
        if ((mask >> i & 1) && --left == 0)
            return (u64)i;
    return 0xffffffff;
}
EXPECT(fns, nth(a, b & 31, (s64)(c % 9) - 4))

static u64 mask_of(u64 position, u64 length) {
    u64 r = 0;
    for (u64 i = position; i < 32 && i < position + length; i++)
        r |= 1ull << i;
    return r;
}
EXPECT(bmsk_wrap, mask_of(a & 31, b & 31))
EXPECT(bmsk_clamp, mask_of(smaller(a, 32), smaller(b, 32)))

static u64 extend(u64 x, u64 from, int is_signed) {
    u64 sign = is_signed && from ? x >> (from > 32 ? 31 : from - 1) & 1 : 0;
    for (u64 i = from; i < 32; i++)
        x = (x & ~(1ull << i)) | sign << i;
    return x;
}
EXPECT(szext_s_wrap, extend(a, b & 31, 1))
EXPECT(szext_u_clamp, extend(a, smaller(b, 32), 0))

static uint64_t swapped_words(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)b, (void)c;
    *e = a >> 48 | (a >> 32 & 0xffff) << 16;
    return a >> 32 | a << 32;
}

#define PREDICATE "and.b32 %t0, %a, 1; setp.ne.u32 %p, %t0, 0;"

#define LOGIC(op, expected)                                                                        \
    FORM(op ".b16 %d, %a, %b;", 16, 16, 0, 16, expected),                                          \
        FORM(op ".b32 %d, %a, %b;", 32, 32, 0, 32, expected),                                      \
        FORM(op ".b64 %d, %a, %b;", 64, 64, 0, 64, expected)

static const form forms[] = {
    LOGIC("and", and_),
    LOGIC("or", or_),
    LOGIC("xor", xor_),
    FORM("not.b16 %d, %a;", 16, 0, 0, 16, not_),
    FORM("not.b32 %d, %a;", 32, 0, 0, 32, not_),
    FORM("not.b64 %d, %a;", 64, 0, 0, 64, not_),
    FORM("cnot.b32 %d, %a;", 32, 0, 0, 32, cnot),
    FORM("setp.ne.u32 %p, %a, 0; setp.ne.u32 %q, %b, 0; and.pred %p, %p, %q; not.pred %q, %p;"
         "mov.b32 %d, 7; @%p mov.b32 %d, 1; @!%p mov.b32 %d, 0; @%q xor.b32 %d, %d, 2;",
         32, 32, 0, 32, predicates),
    FORM("shl.b32 %d, %a, %b;", 32, 32, 0, 32, shl32),
    FORM("shr.u32 %d, %a, %b;", 32, 32, 0, 32, shr_u32),
    FORM("shr.b32 %d, %a, %b;", 32, 32, 0, 32, shr_u32),
    FORM("shr.s32 %d, %a, %b;", 32, 32, 0, 32, shr_s32),
    FORM("shl.b64 %d, %a, %b;", 64, 32, 0, 64, shl64),
    FORM("shr.u64 %d, %a, %b;", 64, 32, 0, 64, shr_u64),
    FORM("shr.s64 %d, %a, %b;", 64, 32, 0, 64, shr_s64),
    FORM("shl.b16 %d, %a, %b;", 16, 32, 0, 16, shl16),
    FORM("shr.s16 %d, %a, %b;", 16, 32, 0, 16, shr_s16),
    FORM("shf.l.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32, shf_l_wrap),
    FORM("shf.l.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32, shf_l_clamp),
    FORM("shf.r.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32, shf_r_wrap),
    FORM("shf.r.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32, shf_r_clamp),
    FORM("bfe.u32 %d, %a, %b, %c;", 32, 32, 32, 32, bfe_u32),
    FORM("bfe.s32 %d, %a, %b, %c;", 32, 32, 32, 32, bfe_s32),
    FORM("bfe.u64 %d, %a, %b, %c;", 64, 32, 32, 64, bfe_u64),
    FORM("bfe.s64 %d, %a, %b, %c;", 64, 32, 32, 64, bfe_s64),
    FORM("shr.u32 %t0, %c, 8; bfi.b32 %d, %a, %b, %c, %t0;", 32, 32, 32, 32, bfi_32),
    FORM("shr.u32 %t0, %c, 8; bfi.b64 %d, %a, %b, %c, %t0;", 64, 64, 32, 64, bfi_64),
    FORM("bfind.u32 %d, %a;", 32, 0, 0, 32, bfind_u32),
    FORM("bfind.s32 %d, %a;", 32, 0, 0, 32, bfind_s32),
    FORM("bfind.shiftamt.u32 %d, %a;", 32, 0, 0, 32, bfind_shift),
    FORM("bfind.u64 %d, %a;", 64, 0, 0, 32, bfind_u64),
    FORM("bfind.shiftamt.s64 %d, %a;", 64, 0, 0, 32, bfind_s64_shift),
    FORM("brev.b32 %d, %a;", 32, 0, 0, 32, brev32),
    FORM("brev.b64 %d, %a;", 64, 0, 0, 64, brev64),
    FORM("popc.b32 %d, %a;", 32, 0, 0, 32, popc),
    FORM("popc.b64 %d, %a;", 64, 0, 0, 32, popc),
    FORM("clz.b32 %d, %a;", 32, 0, 0, 32, clz32),
    FORM("clz.b64 %d, %a;", 64, 0, 0, 32, clz64),
    FORM("prmt.b32 %d, %a, %b, %c;", 32, 32, 32, 32, prmt),
    FORM("prmt.b32.f4e %d, %a, %b, %c;", 32, 32, 32, 32, prmt_f4e),
    FORM("prmt.b32.b4e %d, %a, %b, %c;", 32, 32, 32, 32, prmt_b4e),
    FORM("prmt.b32.rc8 %d, %a, %b, %c;", 32, 32, 32, 32, prmt_rc8),
    FORM("prmt.b32.ecl %d, %a, %b, %c;", 32, 32, 32, 32, prmt_ecl),
    FORM("prmt.b32.ecr %d, %a, %b, %c;", 32, 32, 32, 32, prmt_ecr),
    FORM("prmt.b32.rc16 %d, %a, %b, %c;", 32, 32, 32, 32, prmt_rc16),
    FORM("lop3.b32 %d, %a, %b, %c, 0x80;", 32, 32, 32, 32, lop3_80),
    FORM("lop3.b32 %d, %a, %b, %c, 0x96;", 32, 32, 32, 32, lop3_96),
    FORM("lop3.b32 %d, %a, %b, %c, 202;", 32, 32, 32, 32, lop3_ca),
    FORM("lop3.b32 %d, %a, %b, %c, 0x1b;", 32, 32, 32, 32, lop3_1b),
    {PREDICATE "lop3.or.b32 %d|%q, %a, %b, %c, 0xc0, %p; selp.b32 %e, 1, 0, %q;", 32, 32, 32, 32,
     32, lop3_or, NULL},
    {PREDICATE "lop3.and.b32 %d|%q, %a, %b, %c, 0xc0, %p; selp.b32 %e, 1, 0, %q;", 32, 32, 32, 32,
     32, lop3_and, NULL},
    FORM("and.b32 %t0, %b, 31; rem.u32 %t1, %c, 9; sub.s32 %t1, %t1, 4; fns.b32 %d, %a, %t0, %t1;",
         32, 32, 32, 32, fns),
    FORM("bmsk.wrap.b32 %d, %a, %b;", 32, 32, 0, 32, bmsk_wrap),
    FORM("bmsk.clamp.b32 %d, %a, %b;", 32, 32, 0, 32, bmsk_clamp),
    FORM("szext.wrap.s32 %d, %a, %b;", 32, 32, 0, 32, szext_s_wrap),
    FORM("szext.clamp.u32 %d, %a, %b;", 32, 32, 0, 32, szext_u_clamp),
    {"mov.b64 {%t0, %t1}, %a; mov.b64 %d, {%t1, %t0}; mov.b64 {%h0, _, %h1, %h2}, %a; mov.b32 %e, "
     "{%h2, %h1};",
     64, 0, 0, 64, 32, swapped_words, NULL},
};

int main(void) {
    check_forms("sm_80", forms, COUNT(forms), integers, 512);
    return check_end();
}
