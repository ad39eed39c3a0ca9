/* The random generators Philox 4x32-10, Threefry 2x32-20 and MT19937 as functions on words. Also
   conversions of words to numbers that match other libraries. No state, no arrays, no memory. */
#ifndef DVTI_RNG_H
#define DVTI_RNG_H
#include "1_base/dvt_base.h"

/* The generator of a launch (i[0] of kernel random). */
typedef enum dvti_rng {
    DVTI_RNG_PHILOX,   /* streams, and keys of DVT_RNG_PHILOX and DVT_RNG_MXNET */
    DVTI_RNG_THREEFRY, /* keys of DVT_RNG_JAX */
    DVTI_RNG_MT19937,  /* DVT_RNG_MXNET on cpu() */
    DVTI_RNG_CURAND    /* DVT_RNG_MXNET on gpu(i): Philox in cuRAND's layout of subsequences */
} dvti_rng;

/* The last word of a counter, so that two uses of one key never share a counter. The streams of
   cpu(i) and gpu(i) have DVT_DEVICE_CPU (1) or DVT_DEVICE_GPU (2) there, and i in the word
   before. */
enum {
    DVTI_COUNTER_KEYED = 3,
    DVTI_COUNTER_SPLIT = 4,
    DVTI_COUNTER_FOLD_IN = 5,
    DVTI_COUNTER_SAMPLES = 6, /* the key of an epoch's samples, from the seed of a loader */
    DVTI_COUNTER_PART = 7 /* the numbers of a part of a batch; its number is in the word before */
};

/* Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011. */
DVTI_FN void dvti_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
DVTI_FN void dvti_threefry2x32(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2]);

/* Source: Matsumoto, Nishimura: Mersenne twister. ACM TOMACS 8(1), 1998; the seeding of 2002. */
#define DVTI_MT19937_WORDS 624

typedef struct dvti_mt19937 {
    uint32_t word[DVTI_MT19937_WORDS];
    uint32_t at; /* words used since the last refill */
} dvti_mt19937;

DVTI_FN void dvti_mt19937_seed(dvti_mt19937 *state, uint32_t seed);
DVTI_FN uint32_t dvti_mt19937_next(dvti_mt19937 *state);

/* Returns the upper 64 bits of a 128-bit product: a * b / 2^64. For a uniform 64-bit a, that is a
   number in 0..b-1, each with probability 1/b to within 2^-64. */
DVTI_FN uint64_t dvti_mulhi64(uint64_t a, uint64_t b);

/* JAX's original layout. dvti_jax_word returns word j of n. The counters 0..n-1 form two equal
   parts; an odd n is padded by a 0. Blocks of 2^32 - 1 words have separate keys. dvti_jax_bits
   returns element e of n, with `width` bits (8, 16, 32, 64). Elements below 32 bits share a word,
   lowest bits first. 64-bit elements use words e and n + e of 2n. */
DVTI_FN uint32_t dvti_jax_word(const uint32_t key[2], int64_t n, int64_t j);
DVTI_FN uint64_t dvti_jax_bits(const uint32_t key[2], int64_t n, int64_t e, int width);

/* Return the inverse error function on (-1, 1); the ends give infinities. The relative error is
   below 4e-7 for float32 and 4e-15 for float64. In the far tails of float32 it is 5e-6, because 1 -
   x * x is computed as in XLA. Source: Giles: Approximating the erfinv function. GPU Computing
   Gems, 2011. */
DVTI_FN float dvti_erfinv_f32(float x);
DVTI_FN double dvti_erfinv_f64(double x);

#endif
