/* A packed matrix product that needs no ISA target: packing, and the multiplication of packed
   tiles. dvt_cpu.h says how the parts fit together; cpu_gemm.inl is the arithmetic.
   cpu_matmul_int.c multiplies wide integers with it, ref/ref_conv.c patches. */
#include "3_cpu/dvt_cpu.h"
/* Functions that take vectors are our own, so their calling convention is nobody else's. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define DVTI_T float
#define DVTI_G(name) dvti_gemm_f32_##name
#define DVTI_DTYPE DVT_F32
#define DVTI_LOAD dvti_load_f64
#include "3_cpu/cpu_gemm.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE

#define DVTI_T double
#define DVTI_G(name) dvti_gemm_f64_##name
#define DVTI_DTYPE DVT_F64
#include "3_cpu/cpu_gemm.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE
#undef DVTI_LOAD

/* Unsigned, so that sums wrap. */
#define DVTI_T uint64_t
#define DVTI_G(name) dvti_gemm_i64_##name
#define DVTI_DTYPE DVT_I64
#define DVTI_LOAD dvti_load_i64
#include "3_cpu/cpu_gemm.inl"
#undef DVTI_T
#undef DVTI_G
#undef DVTI_DTYPE
#undef DVTI_LOAD

static int64_t dvti_gemm_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/* Cuts n into equal parts of at most `most`, each but the last a multiple. */
static int64_t dvti_gemm_cut(int64_t n, int64_t most, int64_t multiple) {
    int64_t parts = n > most ? (n - 1) / most + 1 : 1;
    return n <= multiple ? multiple : dvti_gemm_up((n - 1) / parts + 1, multiple);
}

/* The largest tile: its parts of A (96 KB) and B (144 KB) and its sums (48 KB) stay in the
   second-level cache. */
#define DVTI_GEMM_TILE_ROWS 96
#define DVTI_GEMM_TILE_COLS 128

static dvti_gemm dvti_gemm_cuts(dvti_class compute, int64_t rows, int64_t cols, int64_t depth) {
    dvti_gemm plan;
    plan.compute = compute;
    if (compute == DVTI_F32) {
        plan.size = sizeof(float);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_f32_vector) / plan.size;
    } else if (compute == DVTI_F64) {
        plan.size = sizeof(double);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_f64_vector) / plan.size;
    } else {
        plan.size = sizeof(uint64_t);
        plan.width = 2 * (int64_t)sizeof(dvti_gemm_i64_vector) / plan.size;
    }
    plan.rows = dvti_gemm_cut(rows, DVTI_GEMM_TILE_ROWS, DVTI_GEMM_ROWS);
    plan.cols = dvti_gemm_cut(cols, DVTI_GEMM_TILE_COLS, plan.width);
    plan.depth = dvti_gemm_cut(depth, DVTI_GEMM_DEPTH, 1);
    return plan;
}

#undef DVTI_GEMM_TILE_ROWS
#undef DVTI_GEMM_TILE_COLS

/* Bytes of A and B are given; the rest follows. */
static void dvti_gemm_layout(dvti_gemm *plan, int64_t a, int64_t b) {
    plan->b_at = dvti_gemm_up(a, 64);
    plan->acc_at = plan->b_at + dvti_gemm_up(b, 64);
    plan->row_at = plan->acc_at + dvti_gemm_up(plan->rows * plan->cols * plan->size, 64);
    plan->bytes = plan->row_at + dvti_gemm_up(plan->cols * plan->size, 64);
}

/* Elements in the odd number of 64-byte lines that holds n. */
static int64_t dvti_gemm_lines(int64_t n, int64_t size) {
    return ((n * size + 63) / 64 | 1) * 64 / size;
}

DVTI_FN dvti_gemm dvti_gemm_plan(dvti_class compute, int64_t rows, int64_t cols, int64_t depth) {
    dvti_gemm plan = dvti_gemm_cuts(compute, rows, cols, depth);
    plan.ld = dvti_gemm_lines(plan.cols, plan.size);
    dvti_gemm_layout(&plan, plan.rows * plan.depth * plan.size, plan.ld * plan.depth * plan.size);
    return plan;
}

DVTI_FN dvti_gemm dvti_gemm_plan_dots(dvti_class compute, int64_t rows, int64_t cols,
                                      int64_t depth) {
    dvti_gemm plan = dvti_gemm_cuts(compute, rows, cols, depth);
    plan.ld = dvti_gemm_lines(plan.depth, plan.size);
    dvti_gemm_layout(&plan, plan.rows * plan.ld * plan.size, plan.cols * plan.ld * plan.size);
    return plan;
}

/* The typed functions behind one name: the macro's body stands for each type. */
#define DVTI_GEMM_BY_CLASS(plan, CALL)                                                             \
    if ((plan)->compute == DVTI_F32) {                                                             \
        CALL(f32, float)                                                                           \
    } else if ((plan)->compute == DVTI_F64) {                                                      \
        CALL(f64, double)                                                                          \
    } else {                                                                                       \
        CALL(i64, uint64_t)                                                                        \
    }

DVTI_FN void dvti_gemm_pack_a(const dvti_gemm *plan, void *a, int64_t rows, int64_t depth,
                              const void *data, dvt_dtype dtype, int64_t row_stride,
                              int64_t k_stride) {
#define DVTI_CALL(name, T)                                                                         \
    dvti_gemm_##name##_pack_a((T *)a, rows, depth, data, dtype, row_stride, k_stride);
    DVTI_GEMM_BY_CLASS(plan, DVTI_CALL)
#undef DVTI_CALL
}

DVTI_FN void dvti_gemm_pack_b(const dvti_gemm *plan, void *b, int64_t cols, int64_t depth,
                              const void *data, dvt_dtype dtype, int64_t col_stride,
                              int64_t k_stride) {
#define DVTI_CALL(name, T)                                                                         \
    dvti_gemm_##name##_pack_b((T *)b, plan->ld, cols, depth, data, dtype, col_stride, k_stride);
    DVTI_GEMM_BY_CLASS(plan, DVTI_CALL)
#undef DVTI_CALL
}

DVTI_FN void dvti_gemm_multiply(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                                const void *a, const void *b, void *acc, bool first) {
    if (first)
        memset(acc, 0,
               (size_t)(dvti_gemm_up(rows, DVTI_GEMM_ROWS) * dvti_gemm_up(cols, plan->width) *
                        plan->size));
#define DVTI_CALL(name, T)                                                                         \
    dvti_gemm_##name##_multiply(rows, cols, depth, (const T *)a, (const T *)b, plan->ld, (T *)acc);
    DVTI_GEMM_BY_CLASS(plan, DVTI_CALL)
#undef DVTI_CALL
}

DVTI_FN void dvti_gemm_dots(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                            const void *a, const void *b, void *acc, bool first) {
    if (first)
        memset(acc, 0, (size_t)(rows * plan->cols * plan->size));
#define DVTI_CALL(name, T)                                                                         \
    dvti_gemm_##name##_dots(rows, cols, depth, (const T *)a, (const T *)b, plan->ld, (T *)acc,     \
                            plan->cols);
    DVTI_GEMM_BY_CLASS(plan, DVTI_CALL)
#undef DVTI_CALL
}

DVTI_FN void dvti_gemm_row(const dvti_gemm *plan, int64_t rows, int64_t cols, const void *acc,
                           int64_t r, const void *add, void *out) {
#define DVTI_CALL(name, T)                                                                         \
    dvti_gemm_##name##_row(rows, cols, (const T *)acc, r, (const T *)add, (T *)out);
    DVTI_GEMM_BY_CLASS(plan, DVTI_CALL)
#undef DVTI_CALL
}

#undef DVTI_GEMM_BY_CLASS

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
