/* Kernels for one instruction set each: a *ISA target*. The text of a kernel stands once, in an .inl of this folder, and is pasted for every
   ISA target (tier_*.c), where V(word) means that ISA target's word. The best ISA target that the machine has is chosen at first use; DEVTENSOR_ISA or
   dvt_set_cpu_isa choose another one. ISA target "reference" has no kernels: then ref/ computes, which is what tests compare with.

   What a ISA target must keep: the same bits as all the others where the machine multiplies and adds in one step (AVX2, AVX-512, NEON); it
   reads and writes no byte outside its operands; it never allocates. */
#ifndef DVTI_SIMD_H
#define DVTI_SIMD_H
#include "1_base/dvt_fma.h"
#include "3_cpu/dvt_cpu.h"
#include "3_cpu/dvt_row_text.h"
#include "3_cpu/simd/dvt_simd_conv.h"
#include "3_cpu/simd/dvt_simd_f64.h"
#include "3_cpu/simd/dvt_simd_gemm.h"

/* Where the upper half of an integer comes first, an int64's halves are lanes of int32 in the other
   order. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#define DVTI_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#else
#define DVTI_BIG_ENDIAN 0
#endif
/* SIMD primitives. Clang without optimization compiles them as calls: inlined into every kernel they
   are 8 MB of code, and four times the compile time. */
#if defined(__clang__) && !DVTI_OPTIMIZED
#define DVTI_INLINE static __attribute__((__unused__))
#elif defined(__GNUC__) || defined(__clang__)
#define DVTI_INLINE static inline __attribute__((__always_inline__, __unused__))
#elif defined(_MSC_VER)
#define DVTI_INLINE static __forceinline
#else
#define DVTI_INLINE static inline
#endif
/* GCC for Windows aligns the stack to 16 bytes, yet moves vectors of 32 and 64 to it as if it were aligned to theirs (bug 54412; some
   distributions have mended it). Unaligned moves of aligned data cost nothing, so the assembler takes them for all. */
#if defined(_WIN32) && DVTI_X86 && defined(__GNUC__) && !defined(__clang__)
#define DVTI_UNALIGNED(from, to) ".macro " from " operands:vararg\n\t" to " \\operands\n.endm\n"
__asm__(
    ".ifndef dvti_unaligned_moves\n.set dvti_unaligned_moves, 1\n" /* once, whatever -flto puts together */
    DVTI_UNALIGNED("vmovaps", "vmovups") DVTI_UNALIGNED("vmovapd", "vmovupd")
        DVTI_UNALIGNED("vmovdqa", "vmovdqu") DVTI_UNALIGNED("vmovdqa32", "vmovdqu32")
            DVTI_UNALIGNED("vmovdqa64", "vmovdqu64") ".endif");
#undef DVTI_UNALIGNED
#endif
/* Arrays of vectors stay in registers only where loops over them are unrolled. */
#define DVTI_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define DVTI_REPEAT(n) DVTI_PRAGMA(clang loop unroll(full))
#elif defined(__GNUC__)
#define DVTI_REPEAT(n) DVTI_PRAGMA(GCC unroll n)
#else
#define DVTI_REPEAT(n)
#endif
/* The ISA target of processors that have no file of their own needs the compiler's vector types. x86 processors without AVX2 are too old to pay
   for it with two seconds of everybody's compile time: there the reference computes, and the tests ask for this ISA target. */
#if (defined(__GNUC__) || defined(__clang__)) && (!DVTI_X86 || defined(DEVTENSOR_PLAIN_TARGET))
#define DVTI_PLAIN 1
#else
#define DVTI_PLAIN 0
#endif
#if defined(__aarch64__) && DVTI_PLAIN
#define DVTI_NEON 1
#endif

/* One step of n weights w, a multiple of 16, with gradients g and states s, in place. f and flag as in a
   launch, but clip (f[3]) may be infinite. */
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

/* The number of the lowest bit that is 1; there is one. */
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

/* How many of 16 bits are 1. */
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

/* Addresses behind this line are formed anew: those from before it would wait on the stack. */
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_AGAIN(pointer) __asm__("" : "+r"(pointer))
#else
#define DVTI_AGAIN(pointer) ((void)(pointer))
#endif

/* Pooling of contiguous planes x to y. Two of each: height, width. */
typedef struct dvti_pooling {
    const float *x, *g; /* g: only of gradients, for which y is x's */
    float *y;
    int64_t height, width, size[2], padding[2], windows[2];
    int64_t stride, step; /* from a window to the one below, to the next one: 1 or 2 */
    int64_t buffered;     /* elements of a row with all that windows touch, whole vectors of them */
    bool inside;          /* a mean counts only the elements of x */
    bool past_relu;       /* a maximum of 0 gets nothing */
    bool pairs; /* windows of 2 x 2 side by side, all inside x: then no buffer is needed */
    const float *counted; /* by each window of a row, for a mean; whole vectors */
} dvti_pooling;

typedef void (*dvti_pooling_fn)(const dvti_pooling *pool, int64_t first_plane, int64_t last_plane);
#define DVTI_POOL_BUFFER 4096

/* Exponents for which pow has the value of a short formula, not of a logarithm: -1, 0, 0.5, 1, 2,
   3. */
DVTI_FN bool dvti_simple_exponent(double exponent);

typedef struct dvti_simd {
    const char *name;
    /* NULL for an operation that this ISA target has no loop for. */
    dvti_loop_fn (*loop_f32)(dvti_op op);
    /* Of floats; .rows is NULL where this target has no kernel. */
    dvti_reduce_kernel (*reduce)(dvti_op op);
    dvti_reduce_kernel variance; /* sums of squares of distances from the means */
    dvti_reduce_kernel any_all;  /* of every dtype */
    /* Finishes n results from joined terms of `count` elements each; into floats, or in place where
       `to` is NULL. s has whole vectors. */
    void (*finish)(dvti_op op, double count, double *s, int64_t n, float *to);
    dvti_update_fn (*step)(dvti_op op, int states);
    const dvti_simd_gemm *gemm_f32, *gemm_f64;
    const dvti_simd_conv *conv;
    /* Groups first..end-1, of four elements each, of uniform, normal or bernoulli from Philox, as float32. */
    void (*random_f32)(const dvti_launch *launch, int64_t first, int64_t end, float *to);
    /* Rows of n > 0 elements, x_step and y_step apart; y may be x. */
    void (*softmax)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                    int64_t n, bool logarithm);
    /* n <= DVTI_BLOCK neighboring ones, whose elements stand in `rows` > 0 rows. */
    void (*softmax_columns)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                            int64_t n, bool logarithm);
    /* Layer norm of a row of n > 0 elements: mean 0 and variance 1, by variance + epsilon; then times
       gamma, plus beta, unless they are NULL. y is not x. The bits are those of the composed operations. */
    void (*layer_norm)(const float *x, float *y, int64_t n, const float *gamma, const float *beta,
                       float epsilon);
    /* Transposes a matrix of 16 x 16 elements of 4 bytes. */
    void (*transpose)(const float *from, int64_t from_step, float *to, int64_t to_step);
    dvti_pooling_fn (*pool)(dvti_op op);
    void (*running)(const dvti_running *rows);
    /* A bound that at least k of n elements are not beyond, of those that fill vectors: not much more than k, mostly. NaN: not found. */
    float (*kth_bound)(const float *x, int64_t n, int64_t k, bool below);
    /* The numbers of those among n <= 65536 elements that are not <= bound (`below`: not >= it), in order, into `at`; how many there are.
       NaN is one of them; bound is none. */
    int64_t (*above)(const float *x, int64_t n, float bound, bool below, uint16_t *at);
    /* Sorts 16 columns of n > 0 floats, or int32; x[.][16] has a power of two of rows, 16 or more. False: there is a NaN or a -0 among floats; x
       is of no use then. */
    bool (*sort_columns)(void *x, int64_t n, bool floats, bool descending);
    /* How many of n floats, or int32, stand before each of them in the order and are not its equals; NaN is the largest. key is for the kernel, and
       both it and rank have room for 64 more. */
    void (*ranks)(const int32_t *x, int64_t n, bool floats, bool descending, int32_t *key,
                  int32_t *rank);
    /* The k best, largest or smallest, of 16 columns and their numbers, [k][16] in order, go on with n rows x[n][16] numbered from `number`
       on; a value of NaN is none yet. Of equal ones the first. Values are negative where the smallest are wanted. False: as above. */
    bool (*best_of_columns)(const float *x, int64_t n, int32_t number, int64_t k, bool below,
                            float *value, int32_t *at);
    /* n elements in one piece, of another dtype, to or from floats. False: not of this one; nothing is done. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, float *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const float *from);
    const dvti_simd_f64 *f64;
} dvti_simd;

/* NULL: the reference computes. */
DVTI_FN const dvti_simd *dvti_simd_now(void);

/* The ISA targets of this build, best first, and how many there are; those that the machine has not are left out. */
DVTI_FN int dvti_simd_targets(const dvti_simd *target[4]);

/* Whole launches by a ISA target's kernels. False: not one that they are made for, nothing is done. */
/* Up to 16 columns of `count` rows, 1 to 16 of them, as lanes[columns][16]. The last of fewer rows stands in all lanes that are left. */
DVTI_FN void dvti_rows_to_lanes(const dvti_simd *simd, const float *rows, int64_t step,
                                int64_t count, int64_t columns, float *lanes);

/* Adds the bias (or NULL) to rows x cols of a result whose rows are `row` elements apart, then applies relu. */
DVTI_FN void dvti_epilogue_rows(const dvti_simd *simd, float *y, int64_t row, int64_t rows,
                                int64_t cols, const float *bias, bool relu);
/* Applies the launch's epilogue to rows x cols of its result, from element `at` on. */
DVTI_FN void dvti_epilogue_part(const dvti_simd *simd, const dvti_launch *launch, int64_t at,
                                int64_t row, int64_t rows, int64_t cols);
/* Applies the launch's epilogue to its whole result. */
DVTI_FN void dvti_epilogue_whole(const dvti_launch *of);
DVTI_FN void dvti_fast_elementwise(const dvti_launch *launch, const dvti_simd *simd);
/* Copies within one dtype; false: the launch is something else. */
DVTI_FN bool dvti_cpu_copy(const dvti_launch *launch, const dvti_simd *simd);
/* Elementwise loops of int64, whose operands have n elements also where step is 0 (all the same), and
   which write int64; and loops of floats by the op table's F, for rows without a vector text. */
DVTI_FN void dvti_loop_i64(const dvti_loop *loop);
DVTI_FN void dvti_scalar_loop_f32(const dvti_loop *loop);
DVTI_FN void dvti_scalar_loop_f64(const dvti_loop *loop);
/* The kernels of int64; .rows is NULL for reductions that see no integers (cpu_reduce_integers.c). */
DVTI_FN dvti_reduce_kernel dvti_reduce_integers(dvti_op op);
DVTI_FN bool dvti_fast_pool2d(const dvti_launch *launch, const dvti_simd *simd);
/* Of float64, as the kernels of floats are, but columns of logsumexp do not continue from the values
   (cpu_softmax64.c). */
DVTI_FN void dvti_softmax64(const dvti_simd *simd, const double *x, int64_t x_step, double *y,
                            int64_t y_step, int64_t rows, int64_t n, bool logarithm);
DVTI_FN void dvti_softmax64_columns(const dvti_simd *simd, const double *x, int64_t x_step,
                                    double *y, int64_t y_step, int64_t rows, int64_t n,
                                    bool logarithm);
DVTI_FN void dvti_logsumexp64(const dvti_simd *simd, const dvti_reduction *p);
DVTI_FN void dvti_logsumexp64_columns(const dvti_simd *simd, const dvti_reduction *p);

/* Of 16 angles those whose bit in `done` is 0: dvti_reduce_angle (2_core/math/quarter_turns.inl). */
DVTI_FN void dvti_reduce_angles(const float *x, uint32_t done, float *rest, float *low,
                                int32_t *quarters);

/* The same for 8 doubles. */
#define DVTI_ANGLE64_MOST 536870912.
DVTI_FN void dvti_reduce_angles64(const double *x, double *rest, double *low, double *quarters);

#if DVTI_X86
#if !defined(DEVTENSOR_NO_AVX512)
DVTI_FN const dvti_simd *dvti_simd_avx512(void);
#endif
DVTI_FN const dvti_simd *dvti_simd_avx2(void);
#endif
#if DVTI_PLAIN
DVTI_FN const dvti_simd *dvti_simd_plain(void);
#endif

#endif
