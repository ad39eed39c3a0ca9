/* mbarriers, copies by tensor maps, wgmma: products of whole tiles against sums of the matrices in
   global memory, then kernels with one mistake each, which must be reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"
#include "nearest.h"

enum { BOX = 8192, BARRIER = 5 * BOX, SHARED = BARRIER + 64 };

typedef enum number { F16, BF16, TF32 } number;

static const char *const number_names[] = {"f16", "bf16", "tf32"};

typedef struct product {
    int n;
    number type;
    int across_a, across_b; /* across: memory runs along rows of a, columns of b */
} product;

static const product products[] = {
    {256, BF16, 0, 0}, {256, BF16, 0, 1}, {256, F16, 1, 0}, {256, F16, 1, 1},  {128, BF16, 1, 1},
    {128, F16, 0, 1},  {64, BF16, 1, 0},  {24, F16, 0, 0},  {256, TF32, 0, 0}, {128, TF32, 0, 0}};

static int bytes_of(number type) {
    return type == TF32 ? 4 : 2;
}

/* What a kernel does wrong, and a part of the message. */
typedef enum mistake {
    NONE,
    NO_BARRIER_WAIT,
    WRONG_PARITY,
    NEXT_PHASE,
    ONE_WAITS,
    NO_FENCE,
    NO_COMMIT,
    NO_PRODUCT_WAIT,
    NO_PROXY_FENCE,
    EXPECTS_TOO_MUCH,
    ARRIVES_TWICE,
    OVERWRITES,
    READS_EARLY,
    WRITES_GENERIC,
    WRITES_OPERAND,
    LEAVES_COPY,
    NO_SWIZZLE,
    SHIFTED,
    MISPLACED,
    NO_MAP,
    OTHER_AXES,
    NO_BARRIER,
    DAMAGED,
    DIVERGENT,
    MISTAKES
} mistake;

static const char *const says[MISTAKES] = {
    [NO_BARRIER_WAIT] = "reads shared memory that a bulk copy is writing",
    [WRONG_PARITY] = "reads shared memory that a bulk copy is writing",
    [NEXT_PHASE] = "deadlock",
    [ONE_WAITS] = "not all threads have waited",
    [NO_FENCE] = "wgmma.fence is missing",
    [NO_COMMIT] = "wgmma.wait_group is missing",
    [NO_PRODUCT_WAIT] = "accumulator of an unfinished product",
    [NO_PROXY_FENCE] = "fence.proxy.async is missing",
    [EXPECTS_TOO_MUCH] = "deadlock",
    [ARRIVES_TWICE] = "more arrivals",
    [OVERWRITES] = "that an unfinished product reads",
    [READS_EARLY] = "access to shared memory that a bulk copy is writing",
    [WRITES_GENERIC] = "fence.proxy.async is missing",
    [WRITES_OPERAND] = "write of shared memory that an unfinished product reads",
    [LEAVES_COPY] = "ends before a bulk copy",
    [NO_SWIZZLE] = "descriptor without swizzle",
    [SHIFTED] = "multiple of 1024 bytes",
    [MISPLACED] = "misaligned",
    [NO_MAP] = "no tensor map",
    [OTHER_AXES] = "another number of axes",
    [NO_BARRIER] = "no mbarrier was initialized",
    [DAMAGED] = "the mbarrier was overwritten",
    [DIVERGENT] = "different places",
};

/* ---- the kernels: p0 and p1 are the maps, p2 the registers of all threads ---- */
static const char copy[] = "cp.async.bulk.tensor.3d.shared::cluster.global."
                           "mbarrier::complete_tx::bytes [%%r1], [%%p%d, {%%r2, %%r3, %%r4}], "
                           "[%%r0];\n";

static void put_copy(FILE *out, int to, int map, int along, int across) {
    fprintf(out, "add.u32 %%r1, %%r9, %d; mov.u32 %%r2, %d; mov.u32 %%r3, %d; mov.u32 %%r4, 1;\n",
            to, along, across);
    fprintf(out, copy, map);
}

/* Boxes of 64 lines x 128 bytes of k, from line 8 and k 16. */
static void put_copies(FILE *out, const product *p) {
    put_copy(out, 0, 0, p->across_a ? 8 : 16, p->across_a ? 16 : 8);
    for (int i = 0; i < (p->n + 63) / 64; i++)
        put_copy(out, (i + 1) * BOX, 1, p->across_b ? 8 + 64 * i : 16,
                 p->across_b ? 16 : 8 + 64 * i);
}

static void put_products(FILE *out, const product *p, mistake wrong) {
    const char *type = number_names[p->type];
    for (int step = 0; step < 4; step++) {
        fprintf(out, "wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {", p->n,
                32 / bytes_of(p->type), type, type);
        for (int i = 0; i < p->n / 2; i++)
            fprintf(out, "%sd%d", i ? ", " : "", i);
        fprintf(out, "}, %%w0, %%w1, %%q0, 1, 1");
        if (p->type != TF32)
            fprintf(out, ", %d, %d", p->across_a, p->across_b);
        fprintf(out, ";\n");
        fprintf(out, "setp.eq.u32 %%q0, %%i, %%i;\n"); /* the next ones add */
        fprintf(out, "add.u64 %%w0, %%w0, %d; add.u64 %%w1, %%w1, %d;\n", p->across_a ? 128 : 2,
                p->across_b ? 128 : 2);
        if (wrong == DIVERGENT && step == 0)
            fprintf(out, "@%%q1 bra twice;\n");
    }
}

static void put_start(FILE *out, const product *p, mistake wrong) {
    int bytes = (1 + (p->n + 63) / 64) * BOX;
    fprintf(out, "setp.eq.u32 %%q1, %%i, 0; mov.u32 %%r9, dyn; add.u32 %%r0, %%r9, %d;\n", BARRIER);
    fprintf(out, "@!%%q1 bra started;\nmov.u32 %%r5, 1;\n");
    if (wrong != NO_BARRIER)
        fprintf(out, "mbarrier.init.shared::cta.b64 [%%r0], %%r5;\n");
    if (wrong != NO_PROXY_FENCE)
        fprintf(out, "fence.mbarrier_init.release.cluster;\n");
    if (wrong == DAMAGED)
        fprintf(out, "st.shared.b32 [%%r0], %%r5;\nfence.proxy.async;\n");
    fprintf(out, "mov.u32 %%r5, %d;\n", bytes + (wrong == EXPECTS_TOO_MUCH ? 16 : 0));
    fprintf(out, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r0], %%r5;\n");
    if (wrong == ARRIVES_TWICE)
        fprintf(out, "mbarrier.arrive.shared::cta.b64 _, [%%r0];\n");
    if (wrong == MISPLACED)
        fprintf(out, "add.u32 %%r9, %%r9, 512;\n");
    put_copies(out, p);
    if (wrong == READS_EARLY)
        fprintf(out, "ld.shared.b32 %%r5, [%%r9];\n");
    fprintf(out, "started:\nbar.sync 0;\n");
}

static void put_kernel(FILE *out, const char *name, const product *p, mistake wrong) {
    fprintf(out, ".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{\n", name);
    fprintf(out, ".reg .pred %%q<4>; .reg .b32 %%r<12>, %%i; .reg .b64 %%w<4>, %%p<3>; .reg .b32 "
                 "d<128>;\nmov.u32 %%i, %%tid.x;\n");
    for (int i = 0; i < 3; i++)
        fprintf(out, "ld.param.u64 %%p%d, [p%d];\n", i, i);
    fprintf(out, "setmaxnreg.inc.sync.aligned.u32 232;\nsetmaxnreg.dec.sync.aligned.u32 40;\n");
    put_start(out, p, wrong);
    if (wrong == LEAVES_COPY) {
        fprintf(out, "ret;\n}\n");
        return;
    }
    if (wrong == ONE_WAITS)
        fprintf(out, "@!%%q1 bra waited;\n");
    fprintf(out, "mov.u32 %%r5, %d;\nagain:\n", wrong == WRONG_PARITY);
    if (wrong != NO_BARRIER_WAIT)
        fprintf(out, "mbarrier.try_wait.parity.shared::cta.b64 %%q2, [%%r0], %%r5;\n@!%%q2 bra "
                     "again;\n");
    if (wrong == NEXT_PHASE)
        fprintf(out, "mov.u32 %%r5, 1;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 %%q2, [%%r0], %%r5;\n");
    fprintf(out, "waited:\n");
    if (wrong == ONE_WAITS)
        fprintf(out, "bar.sync 0;\n");
    if (wrong == WRITES_GENERIC)
        fprintf(out, "mad.lo.u32 %%r6, %%i, 4, %%r9; st.shared.b32 [%%r6], %%r5;\nbar.sync 0;\n");
    /* descriptors: the swizzle of 128 bytes, 1024 bytes to the next 8, BOX to the next 64 */
    fprintf(out, "mov.u32 %%r6, 0x%x; shr.u32 %%r7, %%r9, 4; or.b32 %%r7, %%r7, %d;\n",
            wrong == NO_SWIZZLE ? 64 : 0x40000040, BOX / 16 << 16);
    if (wrong == SHIFTED)
        fprintf(out, "add.u32 %%r7, %%r7, 8;\n");
    fprintf(out, "mov.b64 %%w0, {%%r7, %%r6}; add.u64 %%w1, %%w0, %d;\n", BOX / 16);
    fprintf(out, "setp.ne.u32 %%q0, %%i, %%i;\n");
    if (wrong != NO_FENCE)
        fprintf(out, "wgmma.fence.sync.aligned;\n");
    put_products(out, p, wrong);
    fprintf(out, "twice:\n");
    if (wrong == DIVERGENT)
        put_products(out, p, NONE);
    if (wrong != NO_COMMIT)
        fprintf(out, "wgmma.commit_group.sync.aligned;\n");
    if (wrong == OVERWRITES) {
        fprintf(out, "@!%%q1 bra over;\n");
        put_copies(out, p);
        fprintf(out, "over:\n");
    }
    if (wrong == WRITES_OPERAND)
        fprintf(out, "st.shared.b32 [%%r9], %%r5;\n");
    fprintf(out, "wgmma.wait_group.sync.aligned %d;\n", wrong == NO_PRODUCT_WAIT);
    fprintf(out, "mad.wide.u32 %%w0, %%i, %d, %%p2;\n", p->n * 2);
    for (int i = 0; i < p->n / 2; i++)
        fprintf(out, "st.global.b32 [%%w0+%d], d%d;\n", i * 4, i);
    fprintf(out, "ret;\n}\n");
}

static char *module_text(void) {
    char *text, name[32];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    fprintf(out, HEAD("sm_90a") ".extern .shared .align 1024 .b8 dyn[];\n");
    for (size_t i = 0; i < COUNT(products); i++) {
        snprintf(name, sizeof name, "product%zu", i);
        put_kernel(out, name, &products[i], NONE);
    }
    for (int wrong = NONE + 1; wrong < MISTAKES; wrong++) {
        snprintf(name, sizeof name, "wrong%d", wrong);
        put_kernel(out, name, &products[6], (mistake)wrong);
    }
    fclose(out);
    return text;
}

/* ---- operands: two matrices, of which the second is read; integers have exact sums. TF32 ignores
   the lower 13 bits of a float32, which are random here ---- */
typedef struct operand {
    sim_tensor_map *map;
    int lines, k, across;
    number type;
    char *data;
} operand;

static size_t place(const operand *o, int line, int k) {
    size_t along = (size_t)(o->across ? line : k), row = (size_t)(o->across ? k : line);
    size_t pitch = (size_t)(o->across ? o->lines : o->k) / 8 * 8 + 8;
    return pitch * ((size_t)(o->across ? o->k : o->lines) + row) + along;
}

static void put_integer(char *to, number type, int value) {
    float f = (float)value;
    u32 bits;
    u16 half;
    if (type == TF32) {
        memcpy(&bits, &f, sizeof f);
        bits |= check_random() & 0x1fff;
        memcpy(to, &bits, sizeof bits);
        return;
    }
    half = (u16)format_round(type == BF16 ? &bf16 : &f16, (quad)value, 0, NEAREST, 0);
    memcpy(to, &half, sizeof half);
}

static void make_operand(operand *o, int lines, int k, int across, number type) {
    const operand made = {exec_buffer(sizeof(sim_tensor_map)), lines, k, across, type, NULL};
    *o = made;
    int inner = across ? lines : k, rows = across ? k : lines, pitch = inner / 8 * 8 + 8;
    u64 size = (u64)bytes_of(type);
    size_t count = (size_t)(2 * rows * pitch);
    o->data = exec_buffer(count * size);
    for (size_t i = 0; i < count; i++)
        put_integer(o->data + i * size, type, (int)(check_random() % 17) - 8);
    *o->map = (sim_tensor_map){SIM_TENSOR_MAP_MARK,
                               P(o->data),
                               {(u64)inner, (u64)rows, 2},
                               {(u64)pitch * size, (u64)(rows * pitch) * size},
                               {(u16)(128 / size), 64, 1},
                               (u8)size,
                               3,
                               1};
}

static double element(const operand *o, int line, int k) {
    const char *at;
    u32 bits;
    u16 half;
    float f;
    if (line >= o->lines || k >= o->k)
        return 0;
    at = o->data + place(o, line, k) * (size_t)bytes_of(o->type);
    if (o->type == TF32) {
        memcpy(&bits, at, sizeof bits);
        bits &= ~(u32)0x1fff;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    memcpy(&half, at, sizeof half);
    return format_value(o->type == BF16 ? &bf16 : &f16, half);
}

static void check_product(exec *e, size_t number) {
    const product *p = &products[number];
    char name[32];
    operand a, b;
    int wrong = 0, depth = 128 / bytes_of(p->type);
    /* 60 of the 64 rows exist, all but 14 of k, all columns but 3 */
    make_operand(&a, 68, depth + 2, p->across_a, p->type);
    make_operand(&b, p->n + 5, depth + 2, p->across_b, p->type);
    float *d = exec_buffer((size_t)(128 * p->n / 2) * 4);
    snprintf(name, sizeof name, "product%zu", number);
    if (!run(
            e, name,
            (exec_launch){.grid = 1, .block = 128, .dynamic_shared = SHARED, .reverse = number % 2},
            P(a.map), P(b.map), P(d), 0))
        return;
    for (int thread = 0; thread < 128; thread++)
        for (int i = 0; i < p->n / 2; i++) {
            /* the manual's figure of D: warps hold 16 rows, groups of 4 lanes a row and 8 below */
            int row = thread / 32 * 16 + thread % 32 / 4 + (i % 4 < 2 ? 0 : 8);
            int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
            double sum = 0;
            for (int k = 0; k < depth; k++)
                sum += element(&a, 8 + row, 16 + k) * element(&b, 8 + column, 16 + k);
            wrong += d[thread * p->n / 2 + i] != sum;
        }
    check_that(wrong == 0, "%s: %d of %d elements are wrong", name, wrong, 64 * p->n);
}

static void check_mistake(exec *e, mistake wrong, const char *message) {
    char name[32];
    operand a, b;
    make_operand(&a, 68, 66, products[6].across_a, products[6].type);
    make_operand(&b, products[6].n + 5, 66, products[6].across_b, products[6].type);
    float *d = exec_buffer(128 * 32 * 4);
    a.map->mark -= wrong == NO_MAP;
    a.map->rank -= wrong == OTHER_AXES;
    snprintf(name, sizeof name, wrong ? "wrong%d" : "product6", (int)wrong);
    run_fails(e, name,
              (exec_launch){.grid = 1, .block = wrong ? 128 : 64, .dynamic_shared = SHARED},
              message, P(a.map), P(b.map), P(d), 0);
    exec_forget();
}

/* ---- phases: three of four arrivals do not complete one ---- */
/* clang-format off */
static const char phases[] = HEAD("sm_90a") KERNEL("phases",
    ".shared .align 8 .b64 bar; mov.u32 %r0, bar; mov.u32 %r1, 4; mov.u32 %r2, 0; mov.u32 %r3, 2;\n"
    "setp.ne.u32 %q0, %i, 0; @%q0 bra wait;\n"
    "mbarrier.init.shared::cta.b64 [%r0], %r1;\n"
    "mbarrier.arrive.shared::cta.b64 _, [%r0], %r3;\n"
    "mbarrier.arrive.shared::cta.b64 _, [%r0];\n"
    "mbarrier.test_wait.parity.shared.b64 %q1, [%r0], %r2; selp.u32 %r5, 1, 0, %q1;\n"
    "bar.sync 0;\n"
    "mbarrier.arrive.shared.b64 _, [%r0];\n"
    "mbarrier.test_wait.parity.shared.b64 %q1, [%r0], %r2; selp.u32 %r6, 2, 0, %q1;\n"
    "add.u32 %r5, %r5, %r6; bra end;\n"
    "wait: bar.sync 0;\n"
    "mbarrier.try_wait.parity.shared::cta.b64 %q1, [%r0], %r2; selp.u32 %r5, 1, 0, %q1;\n"
    "end:" MINE "st.global.b32 [%w0], %r5;")
    /* p1 by the address of p0, in two ways, and whether it is 5; the fence orders nothing here */
    KERNEL("others",
    "mov.b64 %w2, p0; ld.param.v2.u64 {%w3, %w4}, [%w2]; cvta.param.u64 %w5, %w2;\n"
    "ld.u64 %w6, [%w5+8]; add.u64 %w6, %w6, %w4; cvt.u32.u64 %r0, %w4; cvt.u32.u64 %r1, %w6;\n"
    "setp.ne.b32 %q0, %r0, 5; selp.u32 %r2, 100, 0, %q0; add.u32 %r1, %r1, %r2;\n"
    "bar.warp.sync -1; fence.proxy.async;\n" MINE "st.global.b32 [%w0], %r1;");

/* clang-format on */

static void check_phases(void) {
    exec *e = exec_unit(phases);
    u32 *out = exec_buffer(64 * 4), wrong = 0;
    if (e && run(e, "phases", THREADS(64), P(out), 0, 0, 0))
        for (int i = 0; i < 64; i++)
            wrong += out[i] != (i ? 1 : 2);
    check_that(wrong == 0, "phases: %u threads saw another phase", wrong);
    for (u32 p1 = 5; e && p1 < 7; p1++)
        if (run(e, "others", THREADS(32), P(out), p1, 0, 0))
            check_that(out[31] == 2 * p1 + (p1 == 5 ? 0 : 100), "others: %u", out[31]);
    exec_close(e);
    exec_forget();
}

int main(void) {
    char *text = module_text();
    exec *e = exec_unit(text);
    free(text);
    for (size_t i = 0; e && i < COUNT(products); i++) {
        check_product(e, i);
        exec_forget();
    }
    for (int wrong = NONE + 1; e && wrong < MISTAKES; wrong++)
        check_mistake(e, (mistake)wrong, says[wrong]);
    if (e)
        check_mistake(e, NONE, "whole warpgroup");
    exec_close(e);
    exec_forget();
    check_phases();
    return check_end();
}
