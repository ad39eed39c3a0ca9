/* Matrix instructions: ldmatrix, stmatrix and mma.sync. All are collectives of a whole warp.

   One layout holds for every mma shape here. With g = lane / 4, t = lane % 4 and p elements in a
   32-bit register: register i of A holds row g + 8 (i & 1), columns p t + j + 4 p (i >> 1);
   register i of B holds rows p t + j + 4 p i of column g; the accumulators are row g + 8 (i >> 1),
   column 2 t + (i & 1), two to a register when they are f16. A shape with 8 rows has no odd
   registers in A. */
#ifndef RT_MATRIX_H
#define RT_MATRIX_H

#include "rt_warp.h"

typedef enum element { EL_F16, EL_BF16, EL_TF32, EL_S8, EL_U8, EL_F32, EL_S32, EL_F64 } element;

INL f64 element_of(u64 bits, element kind, u32 j) {
    switch (kind) {
    case EL_F16:
        return f16_to_f32((u16)(bits >> (16 * j)));
    case EL_BF16:
        return bf16_to_f32((u16)(bits >> (16 * j)));
    case EL_TF32:
        return as_f32((u32)bits & 0xffffe000u);
    case EL_S8:
        return (s8)(bits >> (8 * j));
    case EL_U8:
        return (u8)(bits >> (8 * j));
    case EL_F32:
        return as_f32((u32)bits);
    case EL_S32:
        return (s32)bits;
    default:
        return as_f64(bits);
    }
}

INL u32 per_register(element kind) {
    return kind == EL_F16 || kind == EL_BF16 ? 2 : kind == EL_S8 || kind == EL_U8 ? 4 : 1;
}

typedef struct mma_shape {
    u32 m, k; /* n is 8 */
    element a, b, c, d;
    int saturates; /* .satfinite of integers; else they wrap */
} mma_shape;

INL u32 registers_a(const mma_shape *s) {
    return s->m * s->k / (SIM_WARP * per_register(s->a));
}

INL u32 registers_b(const mma_shape *s) {
    return 8 * s->k / (SIM_WARP * per_register(s->b));
}

INL u64 mma_result(f64 sum, element d, int saturates) {
    if (d == EL_F32)
        return bits_f32((f32)sum);
    if (d == EL_F64)
        return bits_f64(sum);
    if (d == EL_F16)
        return f64_to_small(sum, &format_f16, RN, 0);
    return saturates ? (u32)saturate_s32((s64)sum) : (u32)(s64)sum;
}

/* Sums in f64: exact for integers, at least as accurate as the device for floats. */
static void multiply(sim_thread *const lane[SIM_WARP], u32 arrived, const mma_shape *s) {
    f64 a[16][32], b[32][8];
    u32 na = registers_a(s), nb = registers_b(s), pa = per_register(s->a), pb = per_register(s->b);
    u32 tall = s->m == 16;
    if (arrived != 0xffffffffu) {
        sim_thread *T = lane[__builtin_ctz(arrived)];
        fault(T, SIM_FAULT_ILLEGAL, "a matrix instruction without all 32 lanes of the warp",
              (const sim_site *)(uintptr_t)T->in[15]);
    }
    for (u32 l = 0; l < SIM_WARP; l++) {
        u32 g = l >> 2, t = l & 3;
        const u64 *in = lane[l]->in;
        for (u32 i = 0; i < na; i++)
            for (u32 j = 0; j < pa; j++) {
                u32 low = tall ? i & 1 : 0, high = tall ? i >> 1 : i;
                a[g + 8 * low][pa * t + j + 4 * pa * high] = element_of(in[i], s->a, j);
            }
        for (u32 i = 0; i < nb; i++)
            for (u32 j = 0; j < pb; j++)
                b[pb * t + j + 4 * pb * i][g] = element_of(in[na + i], s->b, j);
    }
    u32 pc = per_register(s->c), pd = per_register(s->d), cells = s->m * 8 / SIM_WARP;
    for (u32 l = 0; l < SIM_WARP; l++) {
        u32 g = l >> 2, t = l & 3;
        for (u32 i = 0; i < cells; i++) {
            u32 row = g + 8 * (i >> 1), column = 2 * t + (i & 1);
            f64 sum = 0;
            for (u32 k = 0; k < s->k; k++)
                sum += a[row][k] * b[k][column];
            sum += element_of(lane[l]->in[na + nb + i / pc], s->c, i % pc);
            u64 r = mma_result(sum, s->d, s->saturates);
            u64 *out = &lane[l]->out[i / pd];
            *out = pd == 1 ? r : i % pd ? *out | r << 16 : r;
        }
    }
}

/* ldmatrix: lane 8 i + r gives the address of row r of matrix i, in[0]; in[15] is the site. */
static void matrix_move(sim_thread *const lane[SIM_WARP], u32 arrived, u32 matrices, int transposed,
                        int is_store) {
    sim_thread *first = lane[__builtin_ctz(arrived)];
    const sim_site *site = (const sim_site *)(uintptr_t)first->in[15];
    if (arrived != 0xffffffffu)
        fault(first, SIM_FAULT_ILLEGAL, "ldmatrix or stmatrix without all 32 lanes of the warp",
              site);
    for (u32 i = 0; i < matrices; i++) {
        u16 cell[8][8];
        u64 row[8];
        for (u32 r = 0; r < 8; r++) {
            sim_thread *T = lane[8 * i + r];
            row[r] = at_shared(T, (u32)T->in[0], 16, is_store ? SIM_STORE : SIM_LOAD, site);
            if (!is_store)
                __builtin_memcpy(cell[r], (const void *)(uintptr_t)row[r], 16);
        }
        for (u32 l = 0; l < SIM_WARP; l++)
            for (u32 j = 0; j < 2; j++) {
                u32 r = l >> 2, c = 2 * (l & 3) + j;
                u16 *at = transposed ? &cell[c][r] : &cell[r][c];
                if (is_store)
                    *at = (u16)(lane[l]->in[1 + i] >> (16 * j));
                else
                    lane[l]->out[i] = j ? lane[l]->out[i] | (u64)*at << 16 : *at;
            }
        for (u32 r = 0; r < 8 && is_store; r++)
            __builtin_memcpy((void *)(uintptr_t)row[r], cell[r], 16);
    }
}

#define RT_MATRIX_MOVE(name, matrices, transposed, is_store)                                       \
    __attribute__((unused)) static void name(sim_thread *const lane[SIM_WARP], u32 arrived) {      \
        matrix_move(lane, arrived, matrices, transposed, is_store);                                \
    }
RT_MATRIX_MOVE(ldmatrix_x1, 1, 0, 0)
RT_MATRIX_MOVE(ldmatrix_x2, 2, 0, 0)
RT_MATRIX_MOVE(ldmatrix_x4, 4, 0, 0)
RT_MATRIX_MOVE(ldmatrix_x1_trans, 1, 1, 0)
RT_MATRIX_MOVE(ldmatrix_x2_trans, 2, 1, 0)
RT_MATRIX_MOVE(ldmatrix_x4_trans, 4, 1, 0)
RT_MATRIX_MOVE(stmatrix_x1, 1, 0, 1)
RT_MATRIX_MOVE(stmatrix_x2, 2, 0, 1)
RT_MATRIX_MOVE(stmatrix_x4, 4, 0, 1)
RT_MATRIX_MOVE(stmatrix_x1_trans, 1, 1, 1)
RT_MATRIX_MOVE(stmatrix_x2_trans, 2, 1, 1)
RT_MATRIX_MOVE(stmatrix_x4_trans, 4, 1, 1)
#undef RT_MATRIX_MOVE

/* One function per shape that a module uses; the translator emits the uses of this macro. */
#define RT_MMA(name, m, k, a, b, c, d, saturates)                                                  \
    static void name(sim_thread *const lane[SIM_WARP], u32 arrived) {                              \
        static const mma_shape shape = {m, k, a, b, c, d, saturates};                              \
        multiply(lane, arrived, &shape);                                                           \
    }

INL void matrix_call(sim_thread *T, sim_warp_fn *fn, const sim_site *site) {
    T->in[15] = (u64)(uintptr_t)site;
    T->driver->collective(T, fn, 0xffffffffu, 1, site);
}

#endif
