/* [dvt:random] Random numbers: counter-based, the same bits for any number of threads.

   Creation functions, as in [dvt:array].  Copies: never.  Waits: no.  Errors: RANGE (bounds),
   DTYPE.
   Streams: every context has one; dvt_seed(s) restarts them all, so the same program gives the same
   numbers. Streams of different contexts and seeds never meet: the seed is the key, and the
   context's type and id are the upper half of the 128-bit counter.
   Keys: explicit and without state, as in JAX. A key gives the same numbers wherever and whenever
   it is used. */

/* Restarts the streams of all contexts, or of one. The seed of a fresh process is 0. */
DVT_API void dvt_seed(uint64_t seed);
DVT_API void dvt_seed_ctx(uint64_t seed, dvt_ctx ctx);

/* Uniform on [low, high), both rounded to the dtype first; low == high gives low. Floating dtypes. 24 random bits an element, 53
   for float64. Errors: RANGE (low > high, NaN, or high - low too large for the dtype). */
DVT_API dvt_array *dvt_uniform(double low, double high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* Normal with that mean and standard deviation. Source: Box and Muller, 1958. Errors: RANGE (deviation < 0, or either too large for
   float32 unless the dtype is float64). What is too large for float16 becomes an infinity.
   float32, float16 and bfloat16: both are rounded to float32; a number of mean 0 and deviation 1 is within 4 units in the last place of
   the transform of its 32-bit words; times deviation plus mean is rounded once, for 16 bits once more. The same bits on all cards and on
   processors with AVX2, AVX-512 or NEON. float64: computed in float64; last bits may differ where
   log, sin and cos do.
   Tails: the transform takes sqrt(-2 log u) of a uniform u, a multiple of 2^-53 for float64 and of
   2^-32 otherwise. So numbers of mean 0 and deviation 1 end at 8.5717 and at 6.6605; a normal
   number lies beyond with probability 1e-17 and 3e-11. */
DVT_API dvt_array *dvt_normal(double mean, double deviation, dvt_shape shape, dvt_dtype dtype,
                              dvt_ctx ctx);
/* Integers of [low, high). Integer dtypes. Each has the probability 1 / (high - low) to within 2^-64.
   Errors: RANGE (low >= high, or outside the dtype). */
DVT_API dvt_array *dvt_randint(int64_t low, int64_t high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* 1 with probability p, else 0. Any dtype. A word of 32 random bits is compared with p * 2^32, so
   the probability is p rounded up to a multiple of 2^-32: exact for 0, 1 and short binary
   fractions, at least 2^-32 for any p above 0. Errors: RANGE (p outside [0, 1]). */
DVT_API dvt_array *dvt_bernoulli(double p, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
/* 0 .. n-1 in random order, int64. Source: Fisher and Yates. */
DVT_API dvt_array *dvt_permutation(int64_t n, dvt_ctx ctx);

typedef struct dvt_key {
    uint32_t word[2];
} dvt_key;

/* A key from a number. */
DVT_API dvt_key dvt_key_new(uint64_t seed);
/* n new keys from one, which should not be used again. Errors: NULL_ARGUMENT, RANGE (n < 0). */
DVT_API void dvt_key_split(dvt_key key, int n, dvt_key *out);
/* A new key from one and a number, such as a step or a device. */
DVT_API dvt_key dvt_key_fold_in(dvt_key key, uint32_t number);
DVT_API dvt_array *dvt_key_uniform(dvt_key key, double low, double high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_normal(dvt_key key, double mean, double deviation, dvt_shape shape,
                                  dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_randint(dvt_key key, int64_t low, int64_t high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_bernoulli(dvt_key key, double p, dvt_shape shape, dvt_dtype dtype,
                                     dvt_ctx ctx);
DVT_API dvt_array *dvt_key_permutation(dvt_key key, int64_t n, dvt_ctx ctx);

/* Which generator the functions above use. The last two give the numbers that other libraries print.

   DVT_RNG_MXNET: float32 of dvt_uniform, bit for bit: mt19937 on cpu(i), one state for every 64 elements up to 1024; on gpu(i) its
   Philox layout, four generators in turn, one subsequence for every 64 elements up to 32768. Everything else, and keys, are as
   DVT_RNG_PHILOX.
   DVT_RNG_JAX: dvt_key_new, split and fold_in, and uniform, bernoulli, randint and permutation of a key, bit for bit as
   jax.random 0.4.30 gives them (int64 and float64: with jax_enable_x64; later versions: with jax_threefry_partitionable off, and
   other 8-bit randint). Normal uses the same polynomial for the inverse error function, and agrees to 1e-6 relative, or 1e-12
   in float64. bfloat16, and uniform's upper bound, which is never drawn here, may differ. Streams
   are as DVT_RNG_PHILOX.
   With jax_enable_x64, dtypes that a JAX program does not name are float64 and int64: name DVT_F64
   and DVT_I64 here. Keys keep the upper half of a 64-bit seed, as they always do here; without it
   JAX drops that half. Not reproduced: bernoulli of a Python float, which draws float64 there; here
   it always compares 23 bits of a float32, as JAX does for numpy.float32(p), in steps of 2^-23.
   Tails of normal: 5.42 in float32, 8.30 in float64. */
typedef enum dvt_rng_engine {
    DVT_RNG_PHILOX, /* Philox 4x32-10 for streams and keys. Source: Salmon et al., 2011 */
    DVT_RNG_MXNET,  /* dvt_uniform gives Apache MXNet 1.x's numbers */
    DVT_RNG_JAX     /* keys give JAX's numbers: Threefry 2x32-20 in the original counter layout */
} dvt_rng_engine;

/* For the whole process; restarts all streams with their seeds. Returns the previous engine.
   Errors: VALUE. */
DVT_API dvt_rng_engine dvt_set_rng_engine(dvt_rng_engine engine);
