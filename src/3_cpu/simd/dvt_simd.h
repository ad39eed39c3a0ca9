/* Kernels of the ISA targets. The text of a kernel is written once, in an .inl file of this
   directory, and compiled for every ISA target (target_*.c). V(name) is the name of a function of
   the ISA target that is being compiled.

   The best ISA target of the machine is chosen at first use; DEVTENSOR_ISA or dvt_set_cpu_isa
   choose another one. ISA target "reference" has no kernels: ref/ computes, and tests compare with
   it.

   Every ISA target keeps these rules. It gives the same bits as all others on machines with fused
   multiply-add (AVX2, AVX-512, NEON). It reads and writes no byte outside its operands. It never
   allocates. */
#ifndef DVTI_SIMD_H
#define DVTI_SIMD_H
#include "1_base/dvt_fma.h"
#include "3_cpu/dvt_cpu.h"
#include "3_cpu/dvt_row_text.h"
#include "3_cpu/simd/dvt_simd_conv.h"
#include "3_cpu/simd/dvt_simd_f64.h"
#include "3_cpu/simd/dvt_simd_gemm.h"

/* On big-endian machines the upper 32 bits of an int64 are the even lane of int32. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#define DVTI_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#else
#define DVTI_BIG_ENDIAN 0
#endif
/* SIMD primitives. Clang without optimization compiles them as calls: inlining them into every
   kernel takes 8 MB of code and four times the compile time. */
#if defined(__clang__) && !DVTI_OPTIMIZED
#define DVTI_INLINE static __attribute__((__unused__))
#elif defined(__GNUC__) || defined(__clang__)
#define DVTI_INLINE static inline __attribute__((__always_inline__, __unused__))
#elif defined(_MSC_VER)
#define DVTI_INLINE static __forceinline
#else
#define DVTI_INLINE static inline
#endif
/* GCC for Windows aligns the stack to 16 bytes, but stores vectors of 32 and 64 bytes to it with
   aligned moves (bug 54412; fixed by some distributions). The assembler replaces all of them by
   unaligned moves, which are as fast on aligned data. */
#if defined(_WIN32) && DVTI_X86 && defined(__GNUC__) && !defined(__clang__)
#define DVTI_UNALIGNED(from, to) ".macro " from " operands:vararg\n\t" to " \\operands\n.endm\n"
__asm__(".ifndef dvti_unaligned_moves\n.set dvti_unaligned_moves, 1\n" /* once, also with -flto */
        DVTI_UNALIGNED("vmovaps", "vmovups") DVTI_UNALIGNED("vmovapd", "vmovupd")
            DVTI_UNALIGNED("vmovdqa", "vmovdqu") DVTI_UNALIGNED("vmovdqa32", "vmovdqu32")
                DVTI_UNALIGNED("vmovdqa64", "vmovdqu64") ".endif");
#undef DVTI_UNALIGNED
#endif
/* The compiler keeps arrays of vectors in registers only if it unrolls the loops over them. */
#define DVTI_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define DVTI_REPEAT(n) DVTI_PRAGMA(clang loop unroll(full))
#elif defined(__GNUC__)
#define DVTI_REPEAT(n) DVTI_PRAGMA(GCC unroll n)
#else
#define DVTI_REPEAT(n)
#endif
/* The ISA targets that are compiled. The one for other processors needs the compiler's vector
   types. It is left out on x86: processors without AVX2 are too old to be worth two seconds of
   compile time. There the reference computes; tests define DEVTENSOR_PLAIN_TARGET. */
#if defined(DEVTENSOR_NO_SIMD)
#define DVTI_AVX2 0
#else
#define DVTI_AVX2 DVTI_X86
#endif
#if defined(DEVTENSOR_NO_AVX512)
#define DVTI_AVX512 0
#else
#define DVTI_AVX512 DVTI_AVX2
#endif
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DEVTENSOR_NO_SIMD) &&                    \
    (!DVTI_X86 || defined(DEVTENSOR_PLAIN_TARGET))
#define DVTI_PLAIN 1
#else
#define DVTI_PLAIN 0
#endif
#if defined(__aarch64__) && DVTI_PLAIN
#define DVTI_NEON 1
#endif

/* One optimizer step of n weights w, a multiple of 16, with gradients g and states s, in place. f
   and flag are those of the launch, but clip (f[3]) may be infinite. */
typedef struct dvti_update {
    const float *g;
    float *w, *s[3];
    int64_t n;
    double f[8];
    bool flag;
} dvti_update;

typedef void (*dvti_update_fn)(const dvti_update *step);

#if defined(__clang__)
#define DVTI_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define DVTI_UNROLL _Pragma("GCC unroll 16")
#else
#define DVTI_UNROLL
#endif

/* Returns the index of the lowest 1 bit. bits is not 0. */
static inline int dvti_lowest_bit(uint32_t bits) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctz(bits);
#else
    int k = 0;
    for (; !(bits & 1); bits >>= 1)
        k++;
    return k;
#endif
}

/* Returns the number of 1 bits among 16. */
static inline int dvti_count_bits(uint32_t bits) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_popcount(bits);
#else
    int n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
#endif
}

#if defined(__GNUC__) || defined(__clang__)
#define DVTI_PREFETCH(p) __builtin_prefetch(p)
#else
#define DVTI_PREFETCH(p) ((void)(p))
#endif

/* Makes the compiler form addresses anew after this line. Otherwise it would keep the earlier ones
   on the stack. */
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_AGAIN(pointer) __asm__("" : "+r"(pointer))
#else
#define DVTI_AGAIN(pointer) ((void)(pointer))
#endif

/* Pooling of contiguous planes from x to y. Arrays of two: height, width. */
typedef struct dvti_pooling {
    const float *x, *g; /* g: gradient of the windows; then y is the gradient of x */
    float *y;
    int64_t height, width, size[2], padding[2], windows[2];
    int64_t stride, step; /* distance of windows: down, and to the right (1 or 2) */
    int64_t buffered;     /* elements of a padded row, in whole vectors */
    bool inside;          /* a mean does not count padding */
    bool relu_masked;     /* a maximum of 0 gets no gradient (ReLU backward) */
    bool pairs;           /* adjacent 2 x 2 windows inside x: no buffer is needed */
    const float *counted; /* columns that each window of a row counts, for a mean; whole vectors */
} dvti_pooling;

typedef void (*dvti_pooling_fn)(const dvti_pooling *pool, int64_t first_plane, int64_t last_plane);
#define DVTI_POOL_BUFFER 4096

/* Returns whether pow uses a short formula instead of a logarithm: exponents -1, 0, 0.5, 1, 2,
   3. */
DVTI_FN bool dvti_simple_exponent(double exponent);

/* Kernels by family. Each family has its own table, which dvti_simd_<family>_of returns for an ISA
   target. So a linker drops the families that a program does not use. */
typedef struct dvti_simd_reduce {
    /* Returns the kernel of an operation on float32; .rows is NULL if there is none. */
    dvti_reduce_kernel (*reduce)(dvti_op op);
    dvti_reduce_kernel variance; /* sums of squared deviations from the means */
    dvti_reduce_kernel any_all;  /* of every dtype */
    /* Computes n results from joined terms of `count` elements each. Writes floats to `to`, or
       doubles in place if `to` is NULL. s has whole vectors. */
    void (*finish)(dvti_op op, double count, double *s, int64_t n, float *to);
    /* Return the kernels of float64 as for floats, except logsumexp. */
    dvti_reduce_kernel (*reduce64)(dvti_op op);
    dvti_reduce_kernel variance64;
} dvti_simd_reduce;

typedef struct dvti_simd_products {
    const dvti_simd_gemm *f32, *f64;
} dvti_simd_products;

typedef struct dvti_simd_random {
    /* Generates uniform, normal or bernoulli float32 with Philox: groups first..end-1 of four
       elements each. */
    void (*f32)(const dvti_launch *launch, int64_t first, int64_t end, float *to);
} dvti_simd_random;

typedef struct dvti_simd_softmax {
    /* Computes rows of n > 0 elements, x_step and y_step apart. y may be x. */
    void (*softmax)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                    int64_t n, bool logarithm);
    /* Computes n <= DVTI_BLOCK neighboring columns of `rows` > 0 rows. */
    void (*softmax_columns)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                            int64_t n, bool logarithm);
    /* Normalizes a row of n > 0 elements to mean 0 and variance 1, using variance + epsilon. Then
       multiplies by gamma and adds beta, unless they are NULL. y is not x. The bits equal those of
       the composed operations. */
    void (*layer_norm)(const float *x, float *y, int64_t n, const float *gamma, const float *beta,
                       float epsilon);
} dvti_simd_softmax;

typedef struct dvti_simd_pool {
    dvti_pooling_fn (*of)(dvti_op op);
} dvti_simd_pool;

typedef struct dvti_simd_scan {
    void (*f32)(const dvti_running *rows);
    void (*f64)(const dvti_running *rows);
    /* Stores n doubles plus `before` as floats of any dtype. The doubles are sums of elements of
       that dtype. */
    void (*store_sums)(void *dst, dvt_dtype dtype, int64_t n, const double *from, double before);
} dvti_simd_scan;

/* Sorts long rows of float32 and int32 as keys: int32 in the elements' order. All members are NULL
   on ISA targets without it. */
#define DVTI_SORT_LEAF 256 /* see sort_row */

typedef struct dvti_simd_quick {
    /* Converts n elements to keys. Returns false if floats contain NaN or -0; then the contents of
       key are undefined. */
    bool (*keys)(const int32_t *x, int64_t n, bool floats, bool descending, int32_t *key);
    /* Moves the smaller of n >= DVTI_SORT_LEAF keys before the others. Returns how many they are:
       above 0, and n only if all keys are equal. */
    int64_t (*cut)(int32_t *key, int64_t n);
    /* Sorts n keys. lanes: scratch for 16 * DVTI_SORT_LEAF keys. */
    void (*sort)(int32_t *key, int64_t n, int32_t *lanes);
    /* Converts keys back to elements. */
    void (*elements)(const int32_t *key, int64_t n, bool floats, bool descending, int32_t *x);
} dvti_simd_quick;

typedef struct dvti_simd_order {
    /* Returns a bound that at least k elements reach, and mostly not many more; NaN if none was
       found. Looks only at whole vectors of the n elements. */
    float (*kth_bound)(const float *x, int64_t n, int64_t k, bool below);
    /* Writes the indices of the elements beyond bound to `at`, ascending, and returns their count.
       n <= 65536. Elements x with !(x <= bound) are beyond it, or !(x >= bound) if `below`. NaN
       elements count; bound is not NaN. */
    int64_t (*above)(const float *x, int64_t n, float bound, bool below, uint16_t *at);
    /* Sorts 16 columns of n > 0 floats or int32. x[.][16] has a power of two of rows, at least 16.
       Returns false if floats contain NaN or -0; then x has undefined contents. */
    bool (*sort_columns)(void *x, int64_t n, bool floats, bool descending);
    /* Writes to rank[k] the number of elements that are strictly before element k in the order. x
       has n floats or int32. NaN is the largest. key is scratch; key and rank have space for n +
       64. */
    void (*ranks)(const int32_t *x, int64_t n, bool floats, bool descending, int32_t *key,
                  int32_t *rank);
    /* Updates the k best elements of 16 columns, value[k][16] in order and their indices at[k][16],
       with n more rows x[n][16]. The first of them has index `number`. If `below`, the smallest are
       the best, and value holds their negatives. A value of NaN marks an empty place. The first
       of equal elements wins. Returns false if there is NaN or -0. */
    bool (*best_of_columns)(const float *x, int64_t n, int32_t number, int64_t k, bool below,
                            float *value, int32_t *at);
    dvti_simd_quick quick;
} dvti_simd_order;

typedef struct dvti_simd_optimizer {
    dvti_update_fn (*step)(dvti_op op, int states);
} dvti_simd_optimizer;

#define DVTI_SIMD_FAMILIES(X)                                                                      \
    X(reduce) X(products) X(conv) X(random) X(softmax) X(pool) X(scan) X(order) X(optimizer)

/* An ISA target: what most programs use. */
typedef struct dvti_simd {
    const char *name;
    int number; /* DVTI_SIMD_AVX2 ... */
    /* Of matrix products: rows of a tile of full width, bytes of a row of a panel. They are here so
       that the block sizes can be told without linking the kernels. */
    int tile_rows, panel_bytes;
    /* Returns the loop of an operation, or NULL. */
    dvti_loop_fn (*loop_f32)(dvti_op op);
    /* Transposes a matrix of 16 x 16 elements of 4 bytes. */
    void (*transpose)(const float *from, int64_t from_step, float *to, int64_t to_step);
    /* Convert n contiguous elements of another dtype to or from floats. Return false, and do
       nothing, for a dtype without a vector loop. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, float *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const float *from);
    const dvti_simd_f64 *f64;
} dvti_simd;

enum { DVTI_SIMD_AVX512, DVTI_SIMD_AVX2, DVTI_SIMD_PLAIN, DVTI_SIMD_NUMBERS };

#define DVTI_SIMD_OF(name)                                                                         \
    DVTI_FN const dvti_simd_##name *dvti_simd_##name##_of(const dvti_simd *simd);
DVTI_SIMD_FAMILIES(DVTI_SIMD_OF)
#undef DVTI_SIMD_OF

/* Returns the chosen ISA target, or NULL for the reference. */
#if DVTI_AVX2 || DVTI_PLAIN
DVTI_FN const dvti_simd *dvti_simd_now(void);
#else
/* A constant, so that the compiler omits what needs an ISA target. */
DVTI_INLINE const dvti_simd *dvti_simd_now(void) {
    return NULL;
}
#endif

/* Writes the ISA targets that this build has and the machine supports, best first. Returns their
   number. */
DVTI_FN int dvti_simd_targets(const dvti_simd *target[4]);

/* Transposes `count` rows (1 to 16) of `columns` elements to lanes[columns][16]. If count < 16, the
   last row fills the remaining lanes. */
DVTI_FN void dvti_rows_to_lanes(const dvti_simd *simd, const float *rows, int64_t step,
                                int64_t count, int64_t columns, float *lanes);

/* Adds the bias (or NULL) to rows x cols of a result whose rows are `row` elements apart, then
   applies relu. */
DVTI_FN void dvti_epilogue_rows(const dvti_simd *simd, float *y, int64_t row, int64_t rows,
                                int64_t cols, const float *bias, bool relu);
/* Applies the launch's epilogue to rows x cols of its result, from element `at` on. */
DVTI_FN void dvti_epilogue_part(const dvti_simd *simd, const dvti_launch *launch, int64_t at,
                                int64_t row, int64_t rows, int64_t cols);
/* Applies the launch's epilogue to its whole result. */
DVTI_FN void dvti_epilogue_whole(const dvti_launch *of);
/* Runs a whole elementwise launch with the kernels of an ISA target. */
DVTI_FN void dvti_fast_elementwise(const dvti_launch *launch, const dvti_simd *simd);
/* Copies elements of one dtype. Returns false, and does nothing, for any other launch. */
DVTI_FN bool dvti_cpu_copy(const dvti_launch *launch, const dvti_simd *simd);
/* Elementwise loops. dvti_loop_i64 computes int64 and writes int64; its operands have n elements
   even if step is 0, all equal. The scalar loops of floats use F of the op table, for rows without
   a vector expression. */
DVTI_FN void dvti_loop_i64(const dvti_loop *loop);
DVTI_FN void dvti_scalar_loop_f32(const dvti_loop *loop);
DVTI_FN void dvti_scalar_loop_f64(const dvti_loop *loop);
/* Returns the kernels of int64; .rows is NULL for reductions that never see integers
   (cpu_reduce_integers.c). */
DVTI_FN dvti_reduce_kernel dvti_reduce_integers(dvti_op op);
/* Runs a pooling launch. Returns false, and does nothing, if no kernel fits. */
DVTI_FN bool dvti_fast_pool2d(const dvti_launch *launch, const dvti_simd *simd);
/* Kernels of float64 that match those of floats (cpu_softmax64.c). Columns of logsumexp do not
   continue from the values. */
DVTI_FN void dvti_softmax64(const dvti_simd *simd, const double *x, int64_t x_step, double *y,
                            int64_t y_step, int64_t rows, int64_t n, bool logarithm);
DVTI_FN void dvti_softmax64_columns(const dvti_simd *simd, const double *x, int64_t x_step,
                                    double *y, int64_t y_step, int64_t rows, int64_t n,
                                    bool logarithm);
DVTI_FN void dvti_logsumexp64(const dvti_simd *simd, const dvti_reduction *p);
DVTI_FN void dvti_logsumexp64_columns(const dvti_simd *simd, const dvti_reduction *p);

/* Applies dvti_reduce_angle (2_core/math/quarter_turns.inl) to those of 16 angles whose bit in
   `done` is 0. */
DVTI_FN void dvti_reduce_angles(const float *x, uint32_t done, float *rest, float *low,
                                int32_t *quarters);

/* The same for those of 8 doubles whose magnitude exceeds DVTI_ANGLE64_MOST. */
#define DVTI_ANGLE64_MOST 536870912.
DVTI_FN void dvti_reduce_angles64(const double *x, double *rest, double *low, double *quarters);

#define DVTI_SIMD_AVX512_OF(name) DVTI_FN const dvti_simd_##name *dvti_avx512_##name##_family(void);
#define DVTI_SIMD_AVX2_OF(name) DVTI_FN const dvti_simd_##name *dvti_avx2_##name##_family(void);
#if defined(DVTI_NEON)
#define DVTI_PLAIN_FAMILY(name) dvti_neon_##name##_family
#else
#define DVTI_PLAIN_FAMILY(name) dvti_plain_##name##_family
#endif
#define DVTI_SIMD_PLAIN_OF(name) DVTI_FN const dvti_simd_##name *DVTI_PLAIN_FAMILY(name)(void);
#if DVTI_AVX512
DVTI_FN const dvti_simd *dvti_simd_avx512(void);
DVTI_SIMD_FAMILIES(DVTI_SIMD_AVX512_OF)
#endif
#if DVTI_AVX2
DVTI_FN const dvti_simd *dvti_simd_avx2(void);
DVTI_SIMD_FAMILIES(DVTI_SIMD_AVX2_OF)
#endif
#if DVTI_PLAIN
DVTI_FN const dvti_simd *dvti_simd_plain(void);
DVTI_SIMD_FAMILIES(DVTI_SIMD_PLAIN_OF)
#endif
#undef DVTI_SIMD_AVX512_OF
#undef DVTI_SIMD_AVX2_OF
#undef DVTI_SIMD_PLAIN_OF

#endif
