/* [dvt:random] Random numbers: counter-based, the same bits for any number of threads.

   Creation functions, as in [dvt:array].  Copies: never.  Waits: no.  Errors: RANGE (bounds),
   DTYPE.
   Streams: every context has one. dvt_seed(s) restarts them all, so the same program gives the same
   numbers. Streams of different contexts and seeds never overlap: the seed is the key, and the
   context's type and id are the upper half of the 128-bit counter.
   Keys: explicit and without state, as in JAX. A key gives the same numbers wherever and whenever
   it is used. */

/* Restart the streams of all contexts, or of one, with a seed. The seed of a new process is 0. */
DVT_API void dvt_seed(uint64_t seed);
DVT_API void dvt_seed_ctx(uint64_t seed, dvt_ctx ctx);

/* Draws uniform numbers of [low, high), both rounded to the dtype first; low == high gives low.
   Floating dtypes. 24 random bits per element, 53 for float64. Errors: RANGE (low > high, NaN, or
   high - low too large for the dtype). */
DVT_API dvt_array *dvt_uniform(double low, double high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* Draws normal numbers with that mean and standard deviation. Floating dtypes. Source: Box and
   Muller, 1958.
   float32, float16 and bfloat16: the same bits on all GPUs and ISA targets but "plain" and
   "reference". A standard normal number is within 4 ulp of the transform of its 32-bit words. Times
   deviation plus mean is rounded once in float32. float64: last bits may differ where those of log,
   sin and cos do.
   Tails: standard normal numbers are at most 8.57 (float64) and 6.66 (others) in magnitude. A
   normal number is larger with probability 1e-17 and 3e-11.
   Errors: RANGE (deviation < 0, or a bound too large for float32 unless the dtype is float64). */
DVT_API dvt_array *dvt_normal(double mean, double deviation, dvt_shape shape, dvt_dtype dtype,
                              dvt_ctx ctx);
/* Draws integers of [low, high). Integer dtypes. Probabilities are 1 / (high - low) to within
   2^-64. Errors: RANGE (low >= high, or outside the dtype). */
DVT_API dvt_array *dvt_randint(int64_t low, int64_t high, dvt_shape shape, dvt_dtype dtype,
                               dvt_ctx ctx);
/* Draws 1 with probability p, else 0. Any dtype. p is rounded up to a multiple of 2^-32. Errors:
   RANGE (p outside [0, 1]). */
DVT_API dvt_array *dvt_bernoulli(double p, dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx);
/* Returns 0 .. n-1 in random order, int64. Source: Fisher and Yates. Errors: RANGE (n < 0). */
DVT_API dvt_array *dvt_permutation(int64_t n, dvt_ctx ctx);

/* The key of a generator without state. */
typedef struct dvt_key {
    uint32_t word[2];
} dvt_key;

/* Returns a key derived from a number. */
DVT_API dvt_key dvt_key_new(uint64_t seed);
/* Writes n new keys derived from `key` to out[0..n). `key` should not be used again. Errors:
   NULL_ARGUMENT, RANGE (n < 0). */
DVT_API void dvt_key_split(dvt_key key, int n, dvt_key *out);
/* Returns a new key derived from a key and a number, such as a step or a device. */
DVT_API dvt_key dvt_key_fold_in(dvt_key key, uint32_t number);
/* Draw as dvt_uniform, dvt_normal and so on do, but from a key instead of ctx's stream. */
DVT_API dvt_array *dvt_key_uniform(dvt_key key, double low, double high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_normal(dvt_key key, double mean, double deviation, dvt_shape shape,
                                  dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_randint(dvt_key key, int64_t low, int64_t high, dvt_shape shape,
                                   dvt_dtype dtype, dvt_ctx ctx);
DVT_API dvt_array *dvt_key_bernoulli(dvt_key key, double p, dvt_shape shape, dvt_dtype dtype,
                                     dvt_ctx ctx);
DVT_API dvt_array *dvt_key_permutation(dvt_key key, int64_t n, dvt_ctx ctx);

/* The generator behind the functions above. The last two reproduce the numbers of other libraries.

   DVT_RNG_MXNET: float32 of dvt_uniform, bit for bit. cpu(i): mt19937, one state for 64 elements,
   up to 1024 states. gpu(i): MXNet's Philox layout, four generators in rotation, one subsequence
   for 64 elements, up to 32768. Everything else, and keys, are as DVT_RNG_PHILOX.
   DVT_RNG_JAX: keys (new, split, fold_in) and their uniform, bernoulli, randint and permutation,
   bit for bit as jax.random 0.4.30 gives them. int64 and float64: with jax_enable_x64. Later
   versions: with jax_threefry_partitionable off; their 8-bit randint differs. Normal agrees to 1e-6
   relative, or 1e-12 in float64. bfloat16 may differ, and so may uniform's upper bound, which is
   never drawn here.
   Streams are as DVT_RNG_PHILOX. With jax_enable_x64, JAX uses float64 and int64 where a program
   names no dtype: name DVT_F64 and DVT_I64 here. Keys keep the upper half of a 64-bit seed; without
   x64 JAX drops it. Bernoulli always compares 23 bits of a float32, as JAX does for
   numpy.float32(p).
   Tails of normal: 5.42 in float32, 8.30 in float64. */
typedef enum dvt_rng_engine {
    DVT_RNG_PHILOX, /* Philox 4x32-10 for streams and keys. Source: Salmon et al., 2011 */
    DVT_RNG_MXNET,  /* dvt_uniform gives Apache MXNet 1.x's numbers */
    DVT_RNG_JAX     /* keys give JAX's numbers: Threefry 2x32-20 in the original counter layout */
} dvt_rng_engine;

/* Sets the generator of the whole process, and restarts all streams with their seeds. Returns the
   previous one. Errors: VALUE. */
DVT_API dvt_rng_engine dvt_set_rng_engine(dvt_rng_engine engine);
