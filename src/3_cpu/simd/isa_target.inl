/* One ISA target: its SIMD primitives, the kernels of every family, and the tables of them. */
#include "3_cpu/simd/vec.inl"
#include "2_core/math/basics.inl"
#include "2_core/math/exp.inl"
#include "2_core/math/log.inl"
#include "2_core/math/softplus.inl"
#include "2_core/math/piecewise.inl"
#include "2_core/math/angles.inl"
#include "2_core/math/arcs.inl"
#include "2_core/math/powers.inl"
#include "3_cpu/simd/division.inl"
#include "3_cpu/simd/math64.inl"
#include "3_cpu/simd/angles64.inl"
#include "3_cpu/simd/powers64.inl"
#include "3_cpu/simd/elementwise.inl"
#include "3_cpu/simd/convert.inl"
#if defined(DVTI_NEON) && defined(__GNUC__) && !defined(__clang__)
/* GCC would move the loads of a tile to its beginning before it allocates registers. Then these do
   not suffice, and sums stay in memory. */
#pragma GCC push_options
#pragma GCC optimize("no-schedule-insns")
#endif
#include "3_cpu/simd/gemm.inl"
#include "3_cpu/simd/winograd.inl"
#include "3_cpu/simd/conv.inl"
#if defined(DVTI_NEON) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
#include "3_cpu/simd/optimizer.inl"
#include "2_core/math/box_muller.inl"
#include "3_cpu/simd/random.inl"
#include "3_cpu/simd/transpose_reduce.inl"
#include "3_cpu/simd/softmax.inl"
#include "3_cpu/simd/reduce.inl"
#include "3_cpu/simd/pool.inl"
#include "3_cpu/simd/scan.inl"
#include "3_cpu/simd/topk.inl"
#include "3_cpu/simd/sort_network.inl"
#include "3_cpu/simd/sort_quick.inl"
#include "3_cpu/simd/reduce_f64.inl"
#include "3_cpu/simd/any_all.inl"

/* ---- the tables ---- */
#define DVTI_FAMILY(name, ...)                                                                     \
    DVTI_FN const dvti_simd_##name *V(name##_family)(void) {                                       \
        static const dvti_simd_##name table = {__VA_ARGS__};                                       \
        return &table;                                                                             \
    }
DVTI_FAMILY(reduce, V(reduce), {V(variance_rows), V(variance_columns)},
            {V(any_all_rows), V(any_all_columns)}, V(finish), V(reduce_f64),
            {V(variance_rows_f64), V(columns_f64)})
DVTI_FAMILY(products, &V(gemm_kernels), &V(gemm_dkernels))
DVTI_FAMILY(random, V(random_f32))
DVTI_FAMILY(softmax, V(softmax), V(softmax_columns), V(layer_norm))
DVTI_FAMILY(pool, V(pool))
DVTI_FAMILY(scan, V(running), V(running64), V(store_sums))
DVTI_FAMILY(order, V(kth_bound), V(above), V(sort_columns), V(ranks), V(best_of_columns),
            DVTI_QUICK_TABLE)
DVTI_FAMILY(optimizer, V(step_kernel))
#undef DVTI_FAMILY

DVTI_FN const dvti_simd_conv *V(conv_family)(void) {
    return &V(conv_kernels);
}

static const dvti_simd_f64 V(f64) = {V(delementwise_of), V(load_row64), V(store_row64)};
static const dvti_simd V(table) = {
    DVTI_TARGET_NAME,   DVTI_TARGET_NUMBER, V(gemm_tile_rows), V(gemm_panel_bytes),
    V(elementwise_of), V(transpose),       V(load_row),       V(store_row),
    &V(f64)};
