/* mma.sync, ldmatrix, stmatrix. The fragment layouts follow the tables of the PTX manual, one
   formula per shape. The expected products are computed from whole matrices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"
#include "nearest.h"

/* ---- one kernel per shape: registers of A, B and C from p0, p1, p2; D to p3 ---- */

typedef enum kind { F16, BF16, TF32, S8, U8, F32, S32, F64 } kind;

typedef struct product {
    const char *name; /* the instruction behind "mma.sync.aligned." */
    int m, k;
    kind a, b, c;
    int ra, rb, rc; /* registers per lane */
    int saturates;
} product;

static const product products[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, F16, F16, F32, 4, 2, 4, 0},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, BF16, BF16, F32, 4, 2, 4, 0},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, F16, F16, F16, 4, 2, 2, 0},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, F16, F16, F32, 2, 1, 4, 0},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, BF16, BF16, F32, 2, 1, 4, 0},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, TF32, TF32, F32, 4, 2, 4, 0},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, TF32, TF32, F32, 2, 1, 4, 0},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 32, S8, S8, S32, 4, 2, 4, 0},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 32, S8, S8, S32, 4, 2, 4, 1},
    {"m16n8k32.row.col.s32.u8.s8.s32", 16, 32, U8, S8, S32, 4, 2, 4, 0},
    {"m16n8k16.row.col.s32.s8.u8.s32", 16, 16, S8, U8, S32, 2, 1, 4, 0},
    {"m8n8k16.row.col.s32.s8.s8.s32", 8, 16, S8, S8, S32, 1, 1, 2, 0},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, F64, F64, F64, 1, 1, 2, 0},
};

static void put_operand(FILE *out, char letter, int count) {
    fprintf(out, "{");
    for (int i = 0; i < count; i++)
        fprintf(out, "%s%c%d", i ? ", " : "", letter, i);
    fprintf(out, "}");
}

static void put_loads(FILE *out, char letter, int count, int param, int bytes) {
    fprintf(out, "mad.wide.u32 %%w0, %%i, %d, %%p%d;\n", count * bytes, param);
    for (int i = 0; i < count; i++)
        fprintf(out, "ld.global.b%d %c%d, [%%w0+%d];\n", 8 * bytes, letter, i, i * bytes);
}

static char *mma_module(void) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    fprintf(out, HEAD("sm_90"));
    for (size_t n = 0; n < COUNT(products); n++) {
        const product *p = &products[n];
        int bytes = p->a == F64 ? 8 : 4;
        fprintf(out,
                ".visible .entry mma%zu(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param "
                ".u64 p3) {\n",
                n);
        fprintf(out,
                ".reg .b64 %%p<4>, %%w<2>; .reg .b32 %%i; .reg .b%d a<4>, b<4>, c<4>, "
                "d<4>;\nmov.u32 %%i, %%tid.x;\n",
                8 * bytes);
        for (int i = 0; i < 4; i++)
            fprintf(out, "ld.param.u64 %%p%d, [p%d];\n", i, i);
        put_loads(out, 'a', p->ra, 0, bytes);
        put_loads(out, 'b', p->rb, 1, bytes);
        put_loads(out, 'c', p->rc, 2, bytes);
        fprintf(out, "mma.sync.aligned.%s ", p->name);
        put_operand(out, 'd', p->rc);
        for (const char *letter = "abc"; *letter; letter++) {
            fprintf(out, ", ");
            put_operand(out, *letter, *letter == 'a' ? p->ra : *letter == 'b' ? p->rb : p->rc);
        }
        fprintf(out, ";\nmad.wide.u32 %%w0, %%i, %d, %%p3;\n", p->rc * bytes);
        for (int i = 0; i < p->rc; i++)
            fprintf(out, "st.global.b%d [%%w0+%d], d%d;\n", 8 * bytes, i * bytes, i);
        fprintf(out, "ret;\n}\n");
    }
    fclose(out);
    return text;
}

/* ---- values ---- */

static int bits_in(kind k) {
    return k == F16 || k == BF16 ? 16 : k == S8 || k == U8 ? 8 : k == F64 ? 64 : 32;
}

static u64 random_pattern(kind k) {
    double x = (double)((s64)(check_random() % 2001) - 1000) / 64;
    switch (k) {
    case F16:
        return format_round(&f16, (quad)x, 0, NEAREST, 0);
    case BF16:
        return format_round(&bf16, (quad)x, 0, NEAREST, 0);
    case TF32: /* the low bits are ignored */
        return (bits_of_f32((float)x) & 0xffffe000) | (check_random() & 0x1fff);
    case S8:
    case U8:
        return check_random() & 0xff;
    case F32:
        return bits_of_f32((float)x);
    case S32:
        return check_random() % 5 ? (u32)(s32)x : check_random() % 2 ? 0x7fffffff : 0x80000000;
    default:
        return bits_of_f64(x);
    }
}

static double value(kind k, u64 pattern) {
    switch (k) {
    case F16:
        return format_value(&f16, (u32)pattern);
    case BF16:
        return format_value(&bf16, (u32)pattern);
    case TF32:
        return f32_of(pattern & 0xffffe000);
    case S8:
        return (s8)pattern;
    case U8:
        return (u8)pattern;
    case F32:
        return f32_of(pattern);
    case S32:
        return (s32)pattern;
    default:
        return f64_of(pattern);
    }
}

/* ---- the manual's layouts: row and column of element i of a lane (lane = 4 g + t) ---- */

static void place_a(const product *p, int g, int t, int i, int *row, int *column) {
    int per = bits_in(p->a) == 64 ? 1 : 32 / bits_in(p->a); /* elements in a register */
    if (p->m == 8) {
        *row = g;
        *column = t * per + i;
    } else if (per == 2) { /* f16: i 0,1,4,5 in row g; from 4 on, 8 columns to the right */
        *row = (i >= 0 && i < 2) || (i >= 4 && i < 6) ? g : g + 8;
        *column = t * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    } else if (per == 4) {
        *row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
        *column = t * 4 + (i & 3) + (i >= 8 ? 16 : 0);
    } else { /* tf32: 0 and 2 in row g; 2 and 3 four columns to the right */
        *row = i == 0 || i == 2 ? g : g + 8;
        *column = i < 2 ? t : t + 4;
    }
}

static void place_b(const product *p, int g, int t, int i, int *row, int *column) {
    *column = g;
    if (bits_in(p->b) == 16)
        *row = i < 2 ? t * 2 + i : t * 2 + (i & 1) + 8;
    else if (bits_in(p->b) == 8)
        *row = i < 4 ? t * 4 + i : t * 4 + (i & 3) + 16;
    else
        *row = i == 0 ? t : t + 4;
}

static void place_c(int g, int t, int i, int *row, int *column) {
    *row = i < 2 ? g : g + 8;
    *column = t * 2 + (i & 1);
}

static u64 *cell(void *registers, int lane, int per_lane, int bits, int i, u64 *mask, int *shift) {
    int bytes = bits == 64 ? 8 : 4, per = bytes * 8 / bits;
    char *base = (char *)registers + (lane * per_lane + i / per) * bytes;
    *shift = i % per * bits;
    *mask = bits == 64 ? ~0ull : ((1ull << bits) - 1) << *shift;
    return (u64 *)(void *)base;
}

static void put_element(void *registers, int lane, int per_lane, int bits, int i, u64 pattern) {
    u64 mask, all = 0;
    int shift, bytes = bits == 64 ? 8 : 4;
    void *at = cell(registers, lane, per_lane, bits, i, &mask, &shift);
    memcpy(&all, at, (size_t)bytes);
    all = (all & ~mask) | pattern << shift;
    memcpy(at, &all, (size_t)bytes);
}

static u64 get_element(void *registers, int lane, int per_lane, int bits, int i) {
    u64 mask, all = 0;
    int shift;
    void *at = cell(registers, lane, per_lane, bits, i, &mask, &shift);
    memcpy(&all, at, bits == 64 ? 8 : 4);
    return (all & mask) >> shift;
}

static int good(const product *p, u64 got, double exact, double size) {
    if (p->c == S32) {
        s64 x = (s64)exact;
        return (u32)got == (p->saturates ? (u32)(x > INT32_MAX   ? INT32_MAX
                                                 : x < INT32_MIN ? INT32_MIN
                                                                 : x)
                                         : (u32)x);
    }
    double unit = p->c == F64 ? 0x1p-50 : p->c == F32 ? 0x1p-22 : 0x1p-9;
    return fabs(value(p->c, got) - exact) <= unit * size + 1e-30;
}

static void check_product(exec *e, size_t n) {
    const product *p = &products[n];
    static u64 a[16][32], b[32][8], c[16][8];
    void *registers[4];
    int ea = p->m * p->k / 32, eb = p->k * 8 / 32, ec = p->m * 8 / 32, row, column, wrong = 0;
    char name[16];
    for (int i = 0; i < 4; i++)
        registers[i] = exec_buffer(32 * 4 * 8);
    for (int lane = 0; lane < 32; lane++) {
        int g = lane / 4, t = lane % 4;
        for (int i = 0; i < ea; i++) {
            place_a(p, g, t, i, &row, &column);
            put_element(registers[0], lane, p->ra, bits_in(p->a), i,
                        a[row][column] = random_pattern(p->a));
        }
        for (int i = 0; i < eb; i++) {
            place_b(p, g, t, i, &row, &column);
            put_element(registers[1], lane, p->rb, bits_in(p->b), i,
                        b[row][column] = random_pattern(p->b));
        }
        for (int i = 0; i < ec; i++) {
            place_c(g, t, i, &row, &column);
            put_element(registers[2], lane, p->rc, bits_in(p->c), i,
                        c[row][column] = random_pattern(p->c));
        }
    }
    snprintf(name, sizeof name, "mma%zu", n);
    if (!run(e, name, THREADS(32), P(registers[0]), P(registers[1]), P(registers[2]),
             P(registers[3])))
        return;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < ec; i++) {
            place_c(lane / 4, lane % 4, i, &row, &column);
            double sum = value(p->c, c[row][column]), size = fabs(sum);
            for (int k = 0; k < p->k; k++) {
                double term = value(p->a, a[row][k]) * value(p->b, b[k][column]);
                sum += term;
                size += fabs(term);
            }
            wrong += !good(p, get_element(registers[3], lane, p->rc, bits_in(p->c), i), sum, size);
        }
    check_that(wrong == 0, "mma.sync.%s: %d of %d elements are wrong", p->name, wrong, 32 * ec);
}

/* ---- ldmatrix and stmatrix ---- */

/* The lane's row address: row lane % 8 of matrix lane / 8, rows of 16 bytes; p3 = 1 makes it
   generic. */
#define ROWS                                                                                       \
    ".shared .align 16 .b8 s[512]; mov.u32 %r0, s; mad.lo.u32 %r1, %i, 16, %r0; mad.wide.u32 "     \
    "%w0, %i, 16, %p0; mad.wide.u32 %w1, %i, 16, %p1;\n"                                           \
    "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%w0];\n"
#define FILL                                                                                       \
    ROWS "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5}; mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 "  \
         "%r8, 0; mov.b32 %r9, 0; bar.warp.sync -1;\n"
#define SHOW "st.global.v4.b32 [%w1], {%r6, %r7, %r8, %r9};"
/* clang-format off */
static const char moves[] = HEAD("sm_90")
    KERNEL("load1", FILL "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r1];" SHOW)
    KERNEL("load2", FILL "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r7}, [%r1];"
        SHOW)
    KERNEL("load4", FILL "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r1];"
        SHOW)
    KERNEL("load4t", FILL "cvt.u64.u32 %w2, %r1; cvta.shared.u64 %w2, %w2; "
        "ldmatrix.sync.aligned.m8n8.x4.trans.b16 {%r6, %r7, %r8, %r9}, [%w2];" SHOW)
    KERNEL("load4ts", FILL "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, "
        "[%r1];" SHOW)
    KERNEL("load2t", FILL "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r6, %r7}, [%r1];"
        SHOW)
    KERNEL("store4", ROWS "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r3, %r4, %r5}; "
        "bar.warp.sync -1; ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r1];"
        SHOW)
    KERNEL("store4t", ROWS "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r1], {%r2, %r3, "
        "%r4, %r5}; bar.warp.sync -1; ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r1];"
        SHOW)
    KERNEL("outside", ROWS "add.u32 %r1, %r1, 16; "
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r1];");

/* clang-format on */

/* Checks loading: element j of register i of a lane is row lane / 4, column 2 (lane % 4) + j of
   matrix i, or the transpose. */
static void check_load(exec *e, const char *name, int matrices, int transposed, const u16 *in,
                       u16 *out) {
    int wrong = 0;
    if (!run(e, name, THREADS(32), P(in), P(out), 0, 0))
        return;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 8; i++) {
            int matrix = i / 2, row = lane / 4, column = 2 * (lane % 4) + i % 2;
            int from = 64 * matrix + (transposed ? 8 * column + row : 8 * row + column);
            wrong += out[8 * lane + i] != (matrix < matrices ? in[from] : 0);
        }
    check_that(wrong == 0, "%s: %d elements are wrong", name, wrong);
}

static void check_store(exec *e, const char *name, int transposed, const u16 *in, u16 *out) {
    int wrong = 0;
    if (!run(e, name, THREADS(32), P(in), P(out), 0, 0))
        return;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 8; i++) {
            int matrix = i / 2, row = lane / 4, column = 2 * (lane % 4) + i % 2;
            int to = 64 * matrix + (transposed ? 8 * column + row : 8 * row + column);
            wrong += out[to] != in[8 * lane + i];
        }
    check_that(wrong == 0, "%s: %d elements are wrong", name, wrong);
}

int main(void) {
    char *text = mma_module();
    exec *e = exec_unit(text);
    free(text);
    for (size_t n = 0; e && n < COUNT(products); n++)
        for (int round = 0; round < 5; round++) {
            check_product(e, n);
            exec_forget();
        }
    run_fails(e, "mma0", THREADS(31), "all 32 lanes", P(exec_buffer(2048)), P(exec_buffer(2048)),
              P(exec_buffer(2048)), 0);
    exec_close(e);
    exec_forget();
    e = exec_unit(moves);
    u16 *in = exec_buffer(512), *out = exec_buffer(512);
    for (int i = 0; i < 256; i++)
        in[i] = (u16)check_random();
    check_load(e, "load1", 1, 0, in, out);
    check_load(e, "load2", 2, 0, in, out);
    check_load(e, "load4", 4, 0, in, out);
    check_load(e, "load4t", 4, 1, in, out);
    check_load(e, "load4ts", 4, 1, in, out);
    check_load(e, "load2t", 2, 1, in, out);
    check_store(e, "store4", 0, in, out);
    check_store(e, "store4t", 1, in, out);
    run_fails(e, "outside", THREADS(32), "outside the block's 512 bytes", P(in), P(out), 0, 0);
    exec_close(e);
    exec_forget();
    return check_end();
}
